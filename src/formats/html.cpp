// Filling the page of src/formats/viewer/.
#include "formats/html.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/file.h"
#include "formats/default_views.h"
#include "formats/spz.h"
#include "formats/viewer_page.h"
#include "io/cloud_check.h"

namespace millrace {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kModelBegin = "<script id=\"model\" type=\"text/plain\">";
constexpr std::string_view kModelEnd = "</script>";

ordered_json camera_json(const NamedCamera& named) {
  const Camera& c = named.camera;
  const auto& m = c.world_to_camera;
  return {{"name", named.name},
          {"width", c.width},
          {"height", c.height},
          {"fx", c.fx},
          {"fy", c.fy},
          {"cx", c.cx},
          {"cy", c.cy},
          {"rotation", {m[0], m[1], m[2], m[4], m[5], m[6], m[8], m[9], m[10]}},
          {"translation", {m[3], m[7], m[11]}}};
}

// As JSON that cannot end the element that it stands in.
std::string scene_text(const GaussianCloud& cloud, const HtmlOptions& options) {
  constexpr uint32_t kRing = 8, kWidth = 960, kHeight = 640;
  const std::vector<NamedCamera> cameras =
      options.cameras.empty() ? ring_cameras(cloud, kRing, kWidth, kHeight) : options.cameras;
  const std::array<double, 3> centre = model_centre(cloud);
  ordered_json scene = {{"title", options.title},
                        {"near", near_plane_for(cameras, centre)},
                        {"target", centre},
                        {"background", options.background},
                        {"cameras", ordered_json::array()}};
  for (const NamedCamera& camera : cameras) scene["cameras"].push_back(camera_json(camera));
  std::string text =
      scene.dump(-1, ' ', /*ensure_ascii=*/true, ordered_json::error_handler_t::replace);
  for (size_t at = 0; (at = text.find('<', at)) != std::string::npos;) {
    text.replace(at, 1, "\\u003c");
  }
  return text;
}

// `page` with `text` in the place of `mark`.
std::string filled(const std::string& page, std::string_view mark, const std::string& text) {
  const size_t at = page.find(mark);
  return page.substr(0, at) + text + page.substr(at + mark.size());
}

}  // namespace

std::string base64(ByteSpan bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t n = std::min<size_t>(3, bytes.size() - i);
    uint32_t word = 0;
    for (size_t k = 0; k < 3; ++k) {
      word = word << 8 | (k < n ? std::to_integer<uint32_t>(bytes[i + k]) : 0);
    }
    for (size_t k = 0; k < 4; ++k) {
      out.push_back(k <= n ? kAlphabet[word >> (18 - 6 * k) & 63] : '=');
    }
  }
  return out;
}

Result<ByteVector> unbase64(std::string_view text, const std::string& what) {
  std::array<int, 256> values;
  values.fill(-1);
  for (size_t k = 0; k < kAlphabet.size(); ++k) {
    values[static_cast<uint8_t>(kAlphabet[k])] = static_cast<int>(k);
  }
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  ByteVector out;
  out.reserve(text.size() / 4 * 3 + 3);
  uint32_t word = 0, n_bits = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const int value = values[static_cast<uint8_t>(text[i])];
    if (value < 0) {
      return Error{ErrorCode::Dataset,
                   fmt::format("{}: character {} of the model is no base64", what, i)};
    }
    word = word << 6 | static_cast<uint32_t>(value);
    n_bits += 6;
    if (n_bits < 8) continue;
    n_bits -= 8;
    out.push_back(static_cast<std::byte>(word >> n_bits & 255));
  }
  return out;
}

Result<void> write_html(const std::filesystem::path& path, const GaussianCloud& cloud,
                        const HtmlOptions& options) {
  MILLRACE_TRY(check_writable(cloud, path));
  std::string page = filled(kViewerHtml, "@SCRIPT@", kViewerScript);
  page = filled(page, "@SCENE@", scene_text(cloud, options));
  page = filled(page, "@MODEL@", base64(encode_spz(cloud)));
  return write_file_atomically(path, page);
}

Result<GaussianCloud> read_html(const std::filesystem::path& path) {
  MILLRACE_ASSIGN(const std::string page, read_text_file(path));
  const size_t mark = page.find(kModelBegin);
  const size_t begin = mark + kModelBegin.size();
  const size_t end = mark == std::string::npos ? mark : page.find(kModelEnd, begin);
  if (end == std::string::npos) {
    return Error{ErrorCode::Dataset,
                 fmt::format("{}: byte {}: no model was found: it is truncated or no page of "
                             "`millrace export`",
                             path.string(), page.size())};
  }
  const std::string what = fmt::format("{} (model at byte {})", path.string(), begin);
  MILLRACE_ASSIGN(const ByteVector bytes,
                  unbase64(std::string_view(page).substr(begin, end - begin), what));
  return decode_spz(bytes, what);
}

}  // namespace millrace
