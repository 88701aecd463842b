// Compression by zlib and zstd.
#include "formats/compress.h"

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <limits>

namespace millrace {
namespace {

constexpr int kZstdLevel = 12;
constexpr size_t kPiece = 1u << 30;  // zlib counts in 32 bits

Bytef* zlib_bytes(const std::byte* bytes) {
  return const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes));
}

}  // namespace

ByteVector gzip(ByteSpan bytes) {
  z_stream stream = {};
  constexpr int kGzipWindow = MAX_WBITS + 16;
  if (deflateInit2(&stream, 9, Z_DEFLATED, kGzipWindow, 9, Z_DEFAULT_STRATEGY) != Z_OK) {
    raise({ErrorCode::OutOfMemory, "no memory is left to compress"});
  }
  ByteVector out(1 << 16);
  size_t taken = 0, made = 0;
  int state = Z_OK;
  while (state != Z_STREAM_END) {
    if (stream.avail_in == 0) {
      const size_t piece = std::min(bytes.size() - taken, kPiece);
      stream.next_in = zlib_bytes(bytes.data() + taken);
      stream.avail_in = static_cast<uInt>(piece);
      taken += piece;
    }
    if (made == out.size()) out.resize(2 * out.size());
    const size_t room = std::min(out.size() - made, kPiece);
    stream.next_out = zlib_bytes(out.data() + made);
    stream.avail_out = static_cast<uInt>(room);
    state = deflate(&stream, taken == bytes.size() ? Z_FINISH : Z_NO_FLUSH);
    made += room - stream.avail_out;
  }
  deflateEnd(&stream);
  out.resize(made);
  return out;
}

Result<ByteVector> inflate_at_most(ByteSpan bytes, Deflate kind, uint64_t most_bytes,
                                   const std::string& what) {
  z_stream stream = {};
  if (inflateInit2(&stream, kind == Deflate::Gzip ? MAX_WBITS + 16 : -MAX_WBITS) != Z_OK) {
    raise({ErrorCode::OutOfMemory, "no memory is left to decompress"});
  }
  ByteVector out(most_bytes);
  size_t taken = 0, made = 0;
  int state = Z_OK;
  while (state == Z_OK && made < most_bytes) {
    if (stream.avail_in == 0) {
      const size_t piece = std::min(bytes.size() - taken, kPiece);
      if (piece == 0) break;
      stream.next_in = zlib_bytes(bytes.data() + taken);
      stream.avail_in = static_cast<uInt>(piece);
      taken += piece;
    }
    const size_t room = std::min<size_t>(most_bytes - made, kPiece);
    stream.next_out = zlib_bytes(out.data() + made);
    stream.avail_out = static_cast<uInt>(room);
    state = inflate(&stream, Z_NO_FLUSH);
    made += room - stream.avail_out;
  }
  const size_t at = taken - stream.avail_in;
  inflateEnd(&stream);
  if (state != Z_OK && state != Z_STREAM_END) {
    return Error{
        ErrorCode::Dataset,
        fmt::format("{}: byte {}: the compressed stream is damaged or truncated", what, at)};
  }
  out.resize(made);
  return out;
}

Result<ByteVector> inflate_exactly(ByteSpan bytes, Deflate kind, uint64_t n_bytes,
                                   const std::string& what) {
  MILLRACE_ASSIGN(ByteVector out, inflate_at_most(bytes, kind, n_bytes + 1, what));
  if (out.size() == n_bytes) return out;
  return Error{ErrorCode::Dataset,
               fmt::format("{}: byte {}: {} bytes were announced, the compressed stream holds {}",
                           what, bytes.size(), n_bytes,
                           out.size() > n_bytes ? "more" : fmt::format("{} and ends", out.size()))};
}

ByteVector zstd(ByteSpan bytes) {
  ByteVector out(ZSTD_compressBound(bytes.size()));
  const size_t n = ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), kZstdLevel);
  if (ZSTD_isError(n)) raise({ErrorCode::OutOfMemory, "no memory is left to compress"});
  out.resize(n);
  return out;
}

Result<ByteVector> unzstd_exactly(ByteSpan bytes, uint64_t n_bytes, const std::string& what) {
  ByteVector out(n_bytes);
  const size_t n = ZSTD_decompress(out.data(), out.size(), bytes.data(), bytes.size());
  if (!ZSTD_isError(n) && n == n_bytes) return out;
  return Error{ErrorCode::Dataset,
               fmt::format("{}: the zstd stream of {} bytes does not hold the {} bytes that were "
                           "announced: it is damaged or truncated",
                           what, bytes.size(), n_bytes)};
}

uint32_t crc32_of(ByteSpan bytes) {
  uLong crc = crc32(0, nullptr, 0);
  for (size_t at = 0; at < bytes.size(); at += kPiece) {
    const size_t piece = std::min(bytes.size() - at, kPiece);
    crc = crc32(crc, zlib_bytes(bytes.data() + at), static_cast<uInt>(piece));
  }
  return static_cast<uint32_t>(crc);
}

}  // namespace millrace
