// Choosing the held-out views.
#include "data/split.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/file.h"
#include "data/image_finder.h"
#include "data/text_fields.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

std::string base_of(const std::string& name) { return fs::path(name).filename().string(); }

std::string stem_of(const std::string& name) {
  return has_image_ending(name) ? name.substr(0, name.find_last_of('.')) : name;
}

/// The views called `name`: by full name, else without ending, else by base name with or without
/// ending.
std::vector<size_t> views_named(const std::vector<View>& views, const std::string& name) {
  std::vector<size_t> found;
  const auto collect = [&](auto&& key) {
    if (!found.empty()) return;
    for (size_t i = 0; i < views.size(); ++i) {
      if (key(views[i].name) == key(name)) found.push_back(i);
    }
  };
  collect([](const std::string& text) { return text; });
  collect(stem_of);
  collect(base_of);
  collect([](const std::string& text) { return stem_of(base_of(text)); });
  return found;
}

size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1] ? 1 : 0)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string close_names(const std::vector<View>& views, const std::string& name) {
  std::vector<std::pair<size_t, std::string>> ranked;
  ranked.reserve(views.size());
  for (const View& view : views) {
    ranked.emplace_back(
        std::min(edit_distance(name, view.name), edit_distance(name, base_of(view.name))),
        view.name);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min<size_t>(3, ranked.size()); ++i) names.push_back(ranked[i].second);
  return list_names(names);
}

/// The names of a list file, one a line; '#' opens a comment.
Result<std::vector<std::string>> read_name_list(const fs::path& path) {
  MILLRACE_ASSIGN(const std::string text, read_text_file(path));
  std::vector<std::string> names;
  std::string_view rest = text, line;
  while (take_line(rest, line)) {
    line = trim(line);
    if (!line.empty() && line.front() != '#') names.emplace_back(line);
  }
  return names;
}

/// False, with a warning, if no name of the lists is known: they are then about something else.
Result<bool> split_by_lists(const fs::path& train, const fs::path& test, Dataset& dataset) {
  std::error_code ec;
  const bool has_train = fs::is_regular_file(train, ec), has_test = fs::is_regular_file(test, ec);
  enum class Side : uint8_t { Neither, Train, Test };
  std::vector<Side> sides(dataset.views.size(), Side::Neither);
  std::vector<std::string> unknown;
  const auto mark = [&](const fs::path& path, Side side) -> Result<void> {
    MILLRACE_ASSIGN(const std::vector<std::string> names, read_name_list(path));
    for (const std::string& name : names) {
      const std::vector<size_t> found = views_named(dataset.views, name);
      if (found.empty()) unknown.push_back(name);
      for (const size_t i : found) sides[i] = side;
    }
    return {};
  };
  if (has_train) MILLRACE_TRY(mark(train, Side::Train));
  if (has_test) MILLRACE_TRY(mark(test, Side::Test));

  if (std::all_of(sides.begin(), sides.end(), [](Side side) { return side == Side::Neither; })) {
    dataset.warnings.push_back(
        "train.txt or test.txt names no view of this capture and is not used");
    return false;
  }
  std::vector<View> kept;
  for (size_t i = 0; i < sides.size(); ++i) {
    if (sides[i] == Side::Neither && has_train && has_test) continue;
    View& view = dataset.views[i];
    view.held_out = has_test ? sides[i] == Side::Test : sides[i] == Side::Neither;
    kept.push_back(std::move(view));
  }
  const size_t n_left_out = dataset.views.size() - kept.size();
  dataset.views = std::move(kept);
  for (size_t i = 0; i < dataset.views.size(); ++i)
    dataset.views[i].index = static_cast<uint32_t>(i);
  dataset.notes.push_back(fmt::format(
      "the hold-out is taken from {}{}{} (--test-every is not used)", has_train ? "train.txt" : "",
      has_train && has_test ? " and " : "", has_test ? "test.txt" : ""));
  if (n_left_out > 0) {
    dataset.warnings.push_back(
        fmt::format("{} views are in neither train.txt nor test.txt and are left out", n_left_out));
  }
  if (!unknown.empty()) {
    dataset.warnings.push_back(
        fmt::format("{} names of train.txt or test.txt match no usable view: {}", unknown.size(),
                    list_names(unknown)));
  }
  return true;
}

Result<void> split_by_names(const std::vector<std::string>& names, Dataset& dataset) {
  for (const std::string& name : names) {
    const std::vector<size_t> found = views_named(dataset.views, name);
    if (found.empty()) {
      return Error{ErrorCode::Usage,
                   fmt::format("--test-images: no view is called '{}'; close are {}", name,
                               close_names(dataset.views, name))};
    }
    if (found.size() > 1) {
      return Error{
          ErrorCode::Usage,
          fmt::format("--test-images: '{}' could be any of {} views, for example {} and {}; give "
                      "the name with its folder",
                      name, found.size(), dataset.views[found[0]].name,
                      dataset.views[found[1]].name)};
    }
    dataset.views[found[0]].held_out = true;
  }
  dataset.notes.push_back(fmt::format("held out by --test-images: {}", list_names(names)));
  return {};
}

}  // namespace

Result<void> split_views(const DatasetOptions& options, const std::vector<bool>& from_test_file,
                         Dataset& dataset) {
  std::error_code ec;
  const fs::path train = dataset.root / "train.txt", test = dataset.root / "test.txt";
  bool has_lists = fs::is_regular_file(train, ec) || fs::is_regular_file(test, ec);
  if (!options.test_images.empty()) {
    MILLRACE_TRY(split_by_names(options.test_images, dataset));
    if (has_lists)
      dataset.notes.push_back("train.txt and test.txt are not used: --test-images was given");
  } else if (has_lists) {
    MILLRACE_ASSIGN(has_lists, split_by_lists(train, test, dataset));
  }
  if (!options.test_images.empty() || has_lists) {
    // Done above.
  } else if (!from_test_file.empty()) {
    for (size_t i = 0; i < dataset.views.size(); ++i) dataset.views[i].held_out = from_test_file[i];
    dataset.notes.push_back(
        "held out: the frames of transforms_test.json (--test-every is not used)");
  } else if (options.test_every > 0) {
    if (options.test_fold >= options.test_every) {
      return Error{ErrorCode::Usage, fmt::format("--test-fold {} must be below --test-every {}",
                                                 options.test_fold, options.test_every)};
    }
    for (View& view : dataset.views)
      view.held_out = view.index % options.test_every == options.test_fold;
  }
  const bool none_left = std::all_of(dataset.views.begin(), dataset.views.end(),
                                     [](const View& view) { return view.held_out; });
  const bool by_rule = options.test_images.empty() && !has_lists && from_test_file.empty();
  if (none_left && by_rule && options.test_every > 1) {
    for (View& view : dataset.views) view.held_out = false;
    dataset.notes.push_back("too few views to hold any out: all are trained on");
  } else if (none_left) {
    return Error{
        ErrorCode::Usage,
        fmt::format("all {} views are held out: none is left to train on", dataset.views.size())};
  }
  return {};
}

}  // namespace millrace
