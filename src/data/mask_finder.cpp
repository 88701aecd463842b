// Looking masks up by the names of their photographs.
#include "data/mask_finder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "data/capture.h"
#include "data/image.h"
#include "data/image_finder.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolders[] = {"masks", "mask", "segmentation", "dynamic_masks"};

bool is_folder(const fs::path& path) {
  std::error_code ec;
  return fs::is_directory(path, ec);
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return text;
}

/// `text` without an image ending, if it has one.
std::string without_ending(const std::string& text) {
  return has_image_ending(text) ? text.substr(0, text.rfind('.')) : text;
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// The masks of one folder by the names of the photographs that they may belong to.
class MaskFolder {
 public:
  explicit MaskFolder(fs::path folder) : folder_(std::move(folder)) {
    std::vector<std::string> names;
    std::error_code ec;
    for (fs::recursive_directory_iterator it(folder_, ec), end; !ec && it != end;
         it.increment(ec)) {
      if (it.depth() > 8) it.disable_recursion_pending();
      const std::string name = it->path().filename().string();
      std::error_code type;
      if (name.starts_with(".") || !it->is_regular_file(type)) continue;
      if (!has_image_ending(name) && !lower(name).ends_with(".mask")) continue;
      names.push_back(it->path().lexically_relative(folder_).generic_string());
    }
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) add(name);
    names_ = std::move(names);
  }

  const fs::path& folder() const { return folder_; }
  const std::vector<std::string>& names() const { return names_; }

  /// The mask of the photograph `name`, or none.
  fs::path find(const std::string& name) const {
    std::string path = lower(name);
    std::replace(path.begin(), path.end(), '\\', '/');
    // Names may begin with the image folder, as those of transforms.json do.
    const size_t slash = path.find('/');
    for (const std::string& key :
         {path, slash == std::string::npos ? path : path.substr(slash + 1)}) {
      if (const auto found = by_name_.find(key); found != by_name_.end())
        return folder_ / found->second;
      const auto found = by_name_.find(without_ending(key));
      if (found != by_name_.end()) return folder_ / found->second;
    }
    // Two masks of that name in different folders: neither is known to be the right one.
    const auto stem = by_base_.find(without_ending(base_name(path)));
    if (stem != by_base_.end() && stem->second.empty()) return {};
    for (const std::string& key : {base_name(path), without_ending(base_name(path))}) {
      const auto found = by_base_.find(key);
      if (found != by_base_.end() && !found->second.empty()) return folder_ / found->second;
    }
    return {};
  }

 private:
  void add(const std::string& name) {
    std::string key = lower(name);
    if (key.ends_with(".mask")) {
      key.resize(key.size() - 5);
    } else {
      key = without_ending(key);
    }
    for (const std::string_view suffix : {".mask", "_mask"}) {
      if (key.ends_with(suffix)) key.resize(key.size() - suffix.size());
    }
    // "a.jpg" of a.jpg.png goes before "a" of a.png; the first of equals stays.
    for (const std::string& known : {key, without_ending(key)}) {
      by_name_.emplace(known, name);
      const auto [at, is_new] = by_base_.emplace(base_name(known), name);
      if (!is_new && at->second != name) at->second.clear();
    }
  }

  fs::path folder_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::string> by_name_, by_base_;
};

/// The first of the usual mask folders that is there, beside the photographs or at the root; for a
/// reduced set, of that size first.
fs::path usual_folder(const DatasetOptions& options, const Dataset& dataset) {
  std::vector<fs::path> parents = {dataset.root};
  if (!dataset.views.empty()) {
    parents.push_back(dataset.views.front().image_path.parent_path().parent_path());
  }
  for (const fs::path& parent : parents) {
    for (const char* name : kFolders) {
      const fs::path reduced = parent / fmt::format("{}_{}", name, options.resize_factor);
      if (options.resize_factor > 1 && is_folder(reduced)) return reduced;
      if (is_folder(parent / name)) return parent / name;
    }
  }
  return {};
}

Error mask_error(const View& view, const std::string& what) {
  return {
      ErrorCode::Dataset,
      fmt::format("{}; it is the mask of {}. Make it again, or remove it: a photograph without a "
                  "mask counts whole",
                  what, view.image_path.string())};
}

/// Sets the mask of `view` and checks its file.
Result<void> take_file(const fs::path& file, View& view) {
  const Result<ImageSize> size = read_image_size(file);
  if (!size) return mask_error(view, size.error().message);
  const auto [width, height] = size.value();
  // The same shape at another size will do; a pixel more or less is rounding.
  const double wanted = static_cast<double>(width) * view.file_height / view.file_width;
  const double rounding = 1 + 0.5 * view.file_height / view.file_width + 0.005 * height;
  if (std::abs(wanted - height) > rounding) {
    return mask_error(
        view, fmt::format("{}: the mask is {}x{}, and its photograph {}x{}", file.string(), width,
                          height, view.file_width, view.file_height));
  }
  view.mask_path = file;
  view.mask_width = width;
  view.mask_height = height;
  return {};
}

Error no_masks(const Dataset& dataset, const MaskFolder* folder) {
  const std::string example = dataset.views.front().name;
  const std::string stem = without_ending(example);
  if (folder == nullptr) {
    return {ErrorCode::Usage,
            fmt::format("--mask-mode needs masks: {} has none of the folders {}, and no photograph "
                        "has an alpha channel. Name the folder with --masks",
                        dataset.root.string(), fmt::join(kFolders, ", "))};
  }
  const auto& names = folder->names();
  const std::string holds = names.empty() ? "no image" : list_names(names);
  return {
      ErrorCode::Usage,
      fmt::format("--mask-mode needs masks: no file of {} belongs to a photograph. For {} these "
                  "were looked for: {}.png, {}.png, {}.mask.png, {}_mask.png, {}.png.mask, and "
                  "the same with other image endings; the folder holds {}",
                  folder->folder().string(), example, example, stem, stem, stem, stem, holds)};
}

}  // namespace

Result<void> find_masks(const DatasetOptions& options, Dataset& dataset) {
  if (!options.use_masks) {
    const fs::path unused = usual_folder(options, dataset);
    if (!unused.empty()) {
      dataset.notes.push_back(fmt::format(
          "the masks in {} are not used; --mask-mode ignore leaves out what they show in "
          "black",
          unused.string()));
    }
    return {};
  }
  fs::path path = usual_folder(options, dataset);
  if (!options.masks.empty()) {
    path = is_folder(dataset.root / options.masks) ? dataset.root / options.masks
                                                   : fs::path(options.masks);
    if (!is_folder(path)) {
      return Error{ErrorCode::Usage,
                   fmt::format("--masks {}: there is no such folder, neither in {} nor where the "
                               "program was started",
                               options.masks, dataset.root.string())};
    }
  }
  size_t n_found = 0;
  if (path.empty()) {
    for (View& view : dataset.views)
      n_found += view.mask_from_alpha = image_has_alpha(view.image_path);
    if (n_found == 0) return no_masks(dataset, nullptr);
    dataset.notes.push_back(fmt::format("masks are the alpha channels of {} of {} photographs",
                                        n_found, dataset.views.size()));
    return {};
  }
  const MaskFolder folder(path);
  std::vector<std::string> without;
  for (View& view : dataset.views) {
    const fs::path file = folder.find(view.name);
    if (file.empty()) {
      without.push_back(view.name);
      continue;
    }
    MILLRACE_TRY(take_file(file, view));
    ++n_found;
  }
  if (n_found == 0) return no_masks(dataset, &folder);
  dataset.notes.push_back(fmt::format("{} of {} photographs have a mask in {}{}", n_found,
                                      dataset.views.size(), path.string(),
                                      without.empty() ? "" : "; without: " + list_names(without)));
  return {};
}

}  // namespace millrace
