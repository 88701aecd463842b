// The table of formats.
#include "formats/model_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "formats/compressed_ply.h"
#include "formats/quantize.h"
#include "formats/sog.h"
#include "formats/space_order.h"
#include "formats/splat_file.h"
#include "io/cloud_check.h"
#include "io/ply.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

struct FormatRow {
  ModelFormat format;
  const char* name;
  const char* extension;
};
// A longer ending stands before one that it ends in.
constexpr std::array kFormats = {
    FormatRow{ModelFormat::CompressedPly, "compressed-ply", ".compressed.ply"},
    FormatRow{ModelFormat::Ply, "ply", ".ply"},
    FormatRow{ModelFormat::Splat, "splat", ".splat"},
    FormatRow{ModelFormat::Spz, "spz", ".spz"},
    FormatRow{ModelFormat::Sog, "sog", ".sog"},
    FormatRow{ModelFormat::Html, "html", ".html"},
};

const FormatRow& row_of(ModelFormat format) {
  return *std::ranges::find(kFormats, format, &FormatRow::format);
}

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

template <class Text>
std::string listed(Text FormatRow::*text) {
  std::string out;
  for (const FormatRow& row : kFormats) out += (out.empty() ? "" : ", ") + std::string(row.*text);
  return out;
}

std::string first_bytes(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string head(4, '\0');
  in.read(head.data(), 4);
  head.resize(static_cast<size_t>(in.gcount()));
  return head;
}

}  // namespace

const char* format_name(ModelFormat format) { return row_of(format).name; }
const char* format_extension(ModelFormat format) { return row_of(format).extension; }

Result<ModelFormat> format_of_path(const fs::path& path) {
  const std::string name = lower(path.filename().string());
  for (const FormatRow& row : kFormats) {
    if (name.ends_with(row.extension)) return row.format;
  }
  return Error{ErrorCode::Usage, fmt::format("{}: the name has to end in one of {}", path.string(),
                                             listed(&FormatRow::extension))};
}

Result<std::vector<ModelFormat>> formats_of_names(const std::vector<std::string>& names) {
  std::vector<ModelFormat> formats;
  for (const std::string& name : names) {
    const auto* row = std::ranges::find_if(
        kFormats, [&](const FormatRow& candidate) { return name == candidate.name; });
    if (row == kFormats.end()) {
      return Error{ErrorCode::Usage,
                   fmt::format("'{}' is no format; there are {}", name, listed(&FormatRow::name))};
    }
    if (std::ranges::find(formats, row->format) == formats.end()) formats.push_back(row->format);
  }
  return formats;
}

GaussianCloud drawable_rows(const GaussianCloud& cloud) {
  std::vector<uint32_t> rows;
  for (uint32_t i = 0; i < cloud.count(); ++i) {
    if (has_rotation(&cloud.rotations[4 * size_t{i}])) rows.push_back(i);
  }
  return rows.size() == cloud.count() ? cloud : take_rows(cloud, rows);
}

Result<void> write_model(const fs::path& path, const GaussianCloud& cloud, ModelFormat format,
                         const WriteOptions& options) {
  if (format == ModelFormat::Ply) return write_gaussian_ply(path, cloud);
  MILLRACE_TRY(check_writable(cloud, path));  // before rows are left out: indices are the caller's
  const GaussianCloud drawn = drawable_rows(cloud);
  switch (format) {
    case ModelFormat::CompressedPly:
      return write_compressed_ply(path, drawn);
    case ModelFormat::Splat:
      return write_splat(path, drawn);
    case ModelFormat::Spz:
      return write_spz(path, drawn, options.spz);
    case ModelFormat::Sog:
      return write_sog(path, drawn);
    case ModelFormat::Html:
      return write_html(path, drawn, options.html);
    case ModelFormat::Ply:
      break;
  }
  return {};
}

Result<GaussianCloud> read_model(const fs::path& path) {
  const std::string head = first_bytes(path);
  const std::string name = lower(path.filename().string());
  if (head.starts_with("ply")) {
    return is_compressed_ply(path) ? read_compressed_ply(path) : read_gaussian_ply(path);
  }
  if (head.starts_with("NGSP") || head.starts_with("\x1f\x8b")) return read_spz(path);
  std::error_code ec;
  const bool is_folder = fs::is_directory(path, ec) || name == "meta.json";
  if (is_folder || head.starts_with("PK")) return read_sog(path);
  if (name.ends_with(".splat")) return read_splat(path);
  if (head.starts_with("<")) return read_html(path);
  return read_gaussian_ply(path);  // says why it is none
}

}  // namespace millrace
