// ZIP after PKWARE's APPNOTE 6.3.3: local headers, the central directory and its end record.
// Our own, because stored entries are some forty lines and a library would be one more dependency.
#include "formats/zip.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/quantize.h"

namespace millrace {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50;
constexpr size_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22;
constexpr uint16_t kVersion = 20, kStored = 0, kDeflated = 8;
constexpr uint16_t kDate = 0x21;         // 1 January 1980: archives do not tell when they were made
constexpr uint64_t kMostRatio = 1032;    // of deflate
constexpr size_t kMostComment = 0xffff;  // behind the end record

// What a local header and a central one have in common, from the version needed to the two lengths.
void append_facts(const ZipEntry& entry, ByteVector& out) {
  append_bytes(out, kVersion);
  append_bytes(out, uint16_t{0});  // flags
  append_bytes(out, kStored);
  append_bytes(out, uint16_t{0});  // time
  append_bytes(out, kDate);
  append_bytes(out, crc32_of(entry.bytes));
  append_bytes(out, static_cast<uint32_t>(entry.bytes.size()));
  append_bytes(out, static_cast<uint32_t>(entry.bytes.size()));
  append_bytes(out, static_cast<uint16_t>(entry.name.size()));
  append_bytes(out, uint16_t{0});  // extra field
}

void append_text(const std::string& text, ByteVector& out) {
  const auto bytes = std::as_bytes(std::span(text));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

Error damaged(const std::string& what, uint64_t byte, const std::string& text) {
  return {ErrorCode::Dataset, fmt::format("{}: byte {}: {}", what, byte, text)};
}

// Where the end record begins, or the size of the file.
size_t find_end(ByteSpan bytes) {
  if (bytes.size() < kEndBytes) return bytes.size();
  const size_t last = bytes.size() - kEndBytes;
  const size_t first = last - std::min(last, kMostComment);
  for (size_t at = last + 1; at-- > first;) {
    if (bytes_at<uint32_t>(bytes, at) == kEnd) return at;
  }
  return bytes.size();
}

// The entry whose central header is at `at`.
Result<ZipEntry> read_entry(ByteSpan bytes, size_t at, const std::string& what) {
  const auto method = bytes_at<uint16_t>(bytes, at + 10);
  const auto crc = bytes_at<uint32_t>(bytes, at + 16);
  const uint64_t packed = bytes_at<uint32_t>(bytes, at + 20);
  const uint64_t size = bytes_at<uint32_t>(bytes, at + 24);
  const size_t name_bytes = bytes_at<uint16_t>(bytes, at + 28);
  const uint64_t local = bytes_at<uint32_t>(bytes, at + 42);
  ZipEntry entry;
  entry.name.assign(reinterpret_cast<const char*>(bytes.data() + at + kCentralBytes), name_bytes);
  const std::string where = fmt::format("{}: {}", what, entry.name);
  if (local + kLocalBytes > bytes.size() || bytes_at<uint32_t>(bytes, local) != kLocal) {
    return damaged(where, local, "there is no local header");
  }
  const uint64_t begin = local + kLocalBytes + bytes_at<uint16_t>(bytes, local + 26) +
                         bytes_at<uint16_t>(bytes, local + 28);
  if (begin + packed > bytes.size() || size > kMostRatio * packed + 64) {
    return damaged(where, begin,
                   fmt::format("{} bytes for {} are not in the file: it is truncated "
                               "or corrupt",
                               packed, size));
  }
  const ByteSpan body = bytes.subspan(begin, packed);
  if (method == kStored && size == packed) {
    entry.bytes.assign(body.begin(), body.end());
  } else if (method == kDeflated) {
    MILLRACE_ASSIGN(entry.bytes, inflate_exactly(body, Deflate::Raw, size, where));
  } else {
    return damaged(where, at + 10, fmt::format("compression method {} is not read", method));
  }
  if (crc32_of(entry.bytes) != crc) return damaged(where, begin, "the checksum is wrong");
  return entry;
}

}  // namespace

ByteVector encode_zip(const std::vector<ZipEntry>& entries) {
  ByteVector out, directory;
  for (const ZipEntry& entry : entries) {
    append_bytes(directory, kCentral);
    append_bytes(directory, kVersion);  // made by
    append_facts(entry, directory);
    append_bytes(directory, uint16_t{0});  // comment
    append_bytes(directory, uint16_t{0});  // disk
    append_bytes(directory, uint16_t{0});  // attributes
    append_bytes(directory, uint32_t{0});
    append_bytes(directory, static_cast<uint32_t>(out.size()));
    append_text(entry.name, directory);
    append_bytes(out, kLocal);
    append_facts(entry, out);
    append_text(entry.name, out);
    out.insert(out.end(), entry.bytes.begin(), entry.bytes.end());
  }
  const auto begin = static_cast<uint32_t>(out.size());
  out.insert(out.end(), directory.begin(), directory.end());
  append_bytes(out, kEnd);
  append_bytes(out, uint32_t{0});  // disks
  append_bytes(out, static_cast<uint16_t>(entries.size()));
  append_bytes(out, static_cast<uint16_t>(entries.size()));
  append_bytes(out, static_cast<uint32_t>(directory.size()));
  append_bytes(out, begin);
  append_bytes(out, uint16_t{0});  // comment
  return out;
}

Result<std::vector<ZipEntry>> decode_zip(ByteSpan bytes, const std::string& what) {
  const size_t end = find_end(bytes);
  if (end == bytes.size()) {
    return damaged(what, bytes.size(), "it ends without a ZIP directory: truncated or no archive");
  }
  const size_t n_entries = bytes_at<uint16_t>(bytes, end + 10);
  uint64_t at = bytes_at<uint32_t>(bytes, end + 16);
  std::vector<ZipEntry> entries;
  for (size_t i = 0; i < n_entries; ++i) {
    if (at + kCentralBytes > end || bytes_at<uint32_t>(bytes, at) != kCentral) {
      return damaged(what, at, fmt::format("entry {} of {} is not in the directory", i, n_entries));
    }
    const uint64_t next = at + kCentralBytes + bytes_at<uint16_t>(bytes, at + 28) +
                          bytes_at<uint16_t>(bytes, at + 30) + bytes_at<uint16_t>(bytes, at + 32);
    if (next > end) return damaged(what, at, fmt::format("entry {} is cut off", i));
    MILLRACE_ASSIGN(ZipEntry entry, read_entry(bytes, at, what));
    if (!entry.name.ends_with('/')) entries.push_back(std::move(entry));
    at = next;
  }
  return entries;
}

}  // namespace millrace
