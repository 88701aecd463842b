// ImageFinder: from the name that a capture gives an image to a file; never by position in a list.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace millrace {

/// Whether `path` ends like an image file.
bool has_image_ending(std::string_view path);

/// Looks names up below one folder: the exact relative path, then regardless of letter case, then
/// with another image ending (or one added). The folder is listed only when an exact look-up has
/// failed.
class ImageFinder {
 public:
  explicit ImageFinder(std::filesystem::path folder) : folder_(std::move(folder)) {}
  const std::filesystem::path& folder() const { return folder_; }

  std::optional<std::filesystem::path> find(const std::string& name);

 private:
  void list_folder();

  std::filesystem::path folder_;
  bool listed_ = false;
  std::unordered_map<std::string, std::string> by_path_;               // lower case -> as on disk
  std::unordered_map<std::string, std::vector<std::string>> by_stem_;  // without ending, lower case
};

}  // namespace millrace
