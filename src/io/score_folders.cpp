// Scoring a folder of renders against a folder of photographs.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "io/image_read_float.h"
#include "io/metrics.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

constexpr size_t kNamedFiles = 5;  // how many files a message names

bool is_image_name(const fs::path& path) {
  constexpr std::array<std::string_view, 7> kExtensions = {".png",  ".jpg", ".jpeg", ".webp",
                                                           ".tiff", ".tif", ".bmp"};
  std::string extension = path.extension().string();
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::find(kExtensions.begin(), kExtensions.end(), extension) != kExtensions.end();
}

// Relative paths of the image files below `folder`, sorted.
Result<std::vector<fs::path>> images_below(const fs::path& folder) {
  std::error_code ec;
  if (!fs::is_directory(folder, ec)) {
    return Error{ErrorCode::Dataset, fmt::format("{} is not a folder", folder.string())};
  }
  std::vector<fs::path> found;
  fs::recursive_directory_iterator it(folder, ec);
  while (!ec && it != fs::recursive_directory_iterator()) {
    if (is_image_name(it->path()) && it->is_regular_file(ec)) {
      found.push_back(it->path().lexically_relative(folder));
    }
    it.increment(ec);
  }
  if (ec) {
    return Error{ErrorCode::Dataset,
                 fmt::format("cannot list {}: {}", folder.string(), ec.message())};
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string without_extension(fs::path path) { return path.replace_extension().generic_string(); }

// "3 renders have no photograph below DIR: a.png, b.png, ..."
std::string some_of(const std::vector<std::string>& names) {
  const size_t n_named = std::min(names.size(), kNamedFiles);
  const std::vector<std::string> named(names.begin(),
                                       names.begin() + static_cast<ptrdiff_t>(n_named));
  return fmt::format("{}{}", fmt::join(named, ", "), names.size() > n_named ? ", ..." : "");
}

// Pairs each render with the photograph of the same path: the same extension first, else any.
Result<std::vector<std::pair<fs::path, fs::path>>> pair_up(const fs::path& renders,
                                                           const fs::path& photos) {
  MILLRACE_ASSIGN(const std::vector<fs::path> render_paths, images_below(renders));
  MILLRACE_ASSIGN(const std::vector<fs::path> photo_paths, images_below(photos));
  if (render_paths.empty()) {
    return Error{ErrorCode::Dataset, fmt::format("there is no image below {}", renders.string())};
  }
  std::map<std::string, std::vector<fs::path>> by_stem;
  for (const fs::path& photo : photo_paths) by_stem[without_extension(photo)].push_back(photo);
  std::vector<std::pair<fs::path, fs::path>> pairs;
  std::vector<std::string> unmatched, ambiguous;
  for (const fs::path& render : render_paths) {
    const auto found = by_stem.find(without_extension(render));
    if (found == by_stem.end()) {
      unmatched.push_back(render.generic_string());
      continue;
    }
    const std::vector<fs::path>& candidates = found->second;
    const auto same = std::find(candidates.begin(), candidates.end(), render);
    if (same == candidates.end() && candidates.size() > 1) {
      ambiguous.push_back(render.generic_string());
      continue;
    }
    pairs.emplace_back(render, same == candidates.end() ? candidates.front() : *same);
  }
  if (!unmatched.empty()) {
    return Error{
        ErrorCode::Dataset,
        fmt::format("{} of {} renders have no photograph of the same name below {}: {}",
                    unmatched.size(), render_paths.size(), photos.string(), some_of(unmatched))};
  }
  if (!ambiguous.empty()) {
    return Error{ErrorCode::Dataset,
                 fmt::format("{} renders have several photographs of the same name below {}: {}; "
                             "keep one of each",
                             ambiguous.size(), photos.string(), some_of(ambiguous))};
  }
  return pairs;
}

}  // namespace

Result<std::vector<FileScore>> score_folders(const fs::path& renders, const fs::path& photos) {
  MILLRACE_ASSIGN(const auto pairs, pair_up(renders, photos));
  // Sizes first: a wrong folder is told at once, and all of it.
  std::vector<std::string> other_size;
  for (const auto& [render, photo] : pairs) {
    MILLRACE_ASSIGN(const ImageSize render_size, read_image_size(renders / render));
    MILLRACE_ASSIGN(const ImageSize photo_size, read_image_size(photos / photo));
    if (render_size.width == photo_size.width && render_size.height == photo_size.height) continue;
    other_size.push_back(fmt::format("{} ({} x {}, photograph {} x {})", render.generic_string(),
                                     render_size.width, render_size.height, photo_size.width,
                                     photo_size.height));
  }
  if (!other_size.empty()) {
    return Error{
        ErrorCode::Dataset,
        fmt::format("{} of {} renders differ in size from their photograph below {}: {}",
                    other_size.size(), pairs.size(), photos.string(), some_of(other_size))};
  }
  std::vector<FileScore> scores;
  scores.reserve(pairs.size());
  for (const auto& [render, photo] : pairs) {
    MILLRACE_ASSIGN(const ImageF render_image, read_image_float(renders / render));
    MILLRACE_ASSIGN(const ImageF photo_image, read_image_float(photos / photo));
    scores.push_back({render.generic_string(), score_image(render_image, photo_image)});
  }
  return scores;
}

}  // namespace millrace
