// Looking image files up by name.
#include "data/image_finder.h"

#include <algorithm>
#include <array>

namespace millrace {
namespace {

namespace fs = std::filesystem;

// In order of preference where only the ending differs.
constexpr std::array<std::string_view, 7> kEndings = {".png", ".jpg",  ".jpeg", ".webp",
                                                      ".tif", ".tiff", ".bmp"};

// Bytes above 127 stay as they are: letter case is folded in ASCII only.
std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

/// The length of the image ending of `lower_path`, or 0.
size_t ending_length(std::string_view lower_path) {
  for (const std::string_view ending : kEndings) {
    if (lower_path.ends_with(ending)) return ending.size();
  }
  return 0;
}

size_t rank_of(const std::string& path) {
  const std::string lowered = lower(path);
  for (size_t i = 0; i < kEndings.size(); ++i) {
    if (lowered.ends_with(kEndings[i])) return i;
  }
  return kEndings.size();
}

bool is_file(const fs::path& path) {
  std::error_code ec;
  return fs::is_regular_file(path, ec);
}

}  // namespace

bool has_image_ending(std::string_view path) { return ending_length(lower(path)) > 0; }

void ImageFinder::list_folder() {
  listed_ = true;
  std::error_code ec;
  const auto options = fs::directory_options::follow_directory_symlink |
                       fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator it(folder_, options, ec), end; !ec && it != end;
       it.increment(ec)) {
    // A link that leads back up would never end.
    if (it.depth() > 8) it.disable_recursion_pending();
    const std::string name = it->path().filename().string();
    if (name.starts_with(".")) {  // .DS_Store, ._IMG_1.jpg, .git
      it.disable_recursion_pending();
      continue;
    }
    if (!has_image_ending(name) || !is_file(it->path())) continue;
    const std::string path = it->path().lexically_relative(folder_).generic_string();
    const std::string key = lower(path);
    std::string& known = by_path_[key];
    if (known.empty() || path < known) known = path;
    by_stem_[key.substr(0, key.size() - ending_length(key))].push_back(path);
  }
  for (auto& [stem, paths] : by_stem_) {
    std::sort(paths.begin(), paths.end(), [](const std::string& a, const std::string& b) {
      const size_t rank_a = rank_of(a), rank_b = rank_of(b);
      return rank_a != rank_b ? rank_a < rank_b : a < b;
    });
  }
}

std::optional<fs::path> ImageFinder::find(const std::string& name) {
  if (name.empty() || name.find('\0') != std::string::npos) return std::nullopt;
  if (is_file(folder_ / name)) return folder_ / name;
  std::string path = name;
  std::replace(path.begin(), path.end(), '\\', '/');
  path = fs::path(path).lexically_normal().generic_string();
  if (!listed_) list_folder();
  const std::string key = lower(path);
  if (const auto found = by_path_.find(key); found != by_path_.end())
    return folder_ / found->second;
  const auto found = by_stem_.find(key.substr(0, key.size() - ending_length(key)));
  if (found != by_stem_.end()) return folder_ / found->second.front();
  return std::nullopt;
}

}  // namespace millrace
