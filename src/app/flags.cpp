// The flags of each command. Settings come from visit_options, so a setting is written down once.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "app/commands.h"
#include "train/option_values.h"
#include "train/trainer.h"

namespace millrace {
namespace {

const char* value_name(std::string_view key, const std::string&) {
  if (key == "output" || key == "images") return "DIR";
  if (key == "device") return "ID";
  if (key == "trace" || key == "commands") return "FILE";
  return "NAME";
}
const char* value_name(std::string_view, bool) { return ""; }
const char* value_name(std::string_view, int) { return "N"; }
const char* value_name(std::string_view, uint32_t) { return "N"; }
const char* value_name(std::string_view key, uint64_t) { return is_bytes_key(key) ? "BYTES" : "N"; }
const char* value_name(std::string_view, double) { return "X"; }
const char* value_name(std::string_view, const std::array<float, 3>&) { return "COLOUR"; }
const char* value_name(std::string_view, const std::vector<std::string>&) { return "NAME,..."; }
const char* value_name(std::string_view, const std::vector<uint32_t>&) { return "STEP,..."; }
const char* value_name(std::string_view, const std::vector<ForcedCapacity>&) { return "N@S"; }

template <class T>
FlagKind flag_kind(const T&) {
  if constexpr (std::is_same_v<T, bool>) return FlagKind::Switch;
  const bool is_numbers =
      std::is_same_v<T, std::vector<uint32_t>> || std::is_same_v<T, std::array<float, 3>>;
  return is_numbers ? FlagKind::Numbers : FlagKind::Value;
}

/// The default as the user would type it.
std::string default_text(const Json& value) {
  if (value.is_boolean()) return "";
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string text;
  for (const Json& element : value) text += (text.empty() ? "" : ",") + default_text(element);
  return text;
}

/// The settings whose keys are in `only`, or all if it is empty.
std::vector<Flag> setting_flags(const std::set<std::string>& only) {
  TrainOptions options;
  const Json defaults = Json::parse(options_to_json(options));
  std::vector<Flag> flags;
  visit_options(options, [&](const char* key, auto& member, const char* help, const char* aliases) {
    if (!only.empty() && !only.contains(key)) return;
    Flag flag{key, flag_of_key(key) + " " + aliases, help, flag_kind(member)};
    flag.value_name = value_name(key, member);
    flag.default_text = default_text(defaults.at(key));
    if (std::string_view(key) == "resize_factor") flag.default_text = "auto";
    if (std::is_same_v<decltype(member), std::array<float, 3>&>) flag.most_numbers = 3;
    flags.push_back(std::move(flag));
  });
  return flags;
}

Flag value_flag(const char* key, const char* names, const char* help, const char* value_name,
                const char* default_text = "") {
  return {key, names, help, FlagKind::Value, value_name, default_text};
}

Flag switch_flag(const char* key, const char* names, const char* help) {
  return {key, names, help, FlagKind::Switch};
}

std::vector<Flag> with(std::vector<Flag> flags, std::vector<Flag> more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

Flag dataset_flag() {
  return value_flag("dataset", "-s --source --source-path -d --data --data-path --data-dir",
                    "the dataset, where it is not the first argument", "DIR");
}

Flag config_flag() {
  return value_flag("config", "--config", "settings from a JSON file; flags win", "FILE");
}

}  // namespace

std::vector<Flag> common_flags() {
  return {
      switch_flag("quiet", "-q --quiet", "print errors only"),
      switch_flag("verbose", "-v --verbose", "print more"),
      value_flag("log_level", "--log-level", "error, warning, info or debug", "LEVEL", "info"),
      switch_flag("json_events", "--json-events", "one JSON object per line on stdout"),
  };
}

std::vector<Flag> train_flags() {
  return with(
      setting_flags({}),
      {dataset_flag(), config_flag(),
       switch_flag("eval", "--eval", "accepted; holding out is the default"),
       switch_flag("headless", "--headless --disable-viewer", "accepted; there is no window")});
}

std::vector<Flag> eval_flags() {
  const std::set<std::string> settings = {"output",    "overwrite",  "images",    "resize_factor",
                                          "max_width", "test_every", "test_fold", "test_images",
                                          "bg_color",  "device",     "threads"};
  std::vector<Flag> flags = setting_flags(settings);
  for (Flag& flag : flags) {
    if (flag.key != "output") continue;
    // Here -m and --model-path would be taken for the model.
    flag.names = "--output -o --output-path --result-dir";
    flag.help = "also write renders/, contact_sheet.png and stats/ there";
  }
  return with(
      std::move(flags),
      {value_flag("model", "--model -m --ply", "the Gaussians, a PLY file", "PLY"), dataset_flag(),
       config_flag(), switch_flag("all_views", "--all-views", "render the training views too")});
}

std::vector<Flag> render_flags() {
  std::vector<Flag> flags = setting_flags({"output", "overwrite", "bg_color", "device"});
  for (Flag& flag : flags) {
    if (flag.key != "output") continue;
    flag.names = "--output -o --output-path --result-dir";
    flag.help = "where the images go";
    flag.default_text.clear();
  }
  return with(std::move(flags),
              {value_flag("cameras", "--cameras", "the views, a cameras.json", "FILE"),
               switch_flag("depth", "--depth", "depth images too"),
               switch_flag("png16", "--png16", "16 bits per channel")});
}

std::vector<Flag> export_flags() {
  std::vector<Flag> flags = setting_flags({"output", "overwrite", "device"});
  for (Flag& flag : flags) {
    if (flag.key != "output") continue;
    flag.names = "--output -o --output-path --result-dir";
    flag.help = "where the files go";
    flag.default_text.clear();
  }
  return with(std::move(flags),
              {value_flag("to", "--to", "the formats, with commas", "FORMAT,..."),
               value_flag("cameras", "--cameras",
                          "views to prove the files from, and of the page; a cameras.json", "FILE"),
               value_flag("spz_version", "--spz-version", "version of SPZ files, 3 or 4", "N", "3"),
               value_flag("spz_sh_bits", "--spz-sh-bits",
                          "bits of SPZ's higher SH coefficients, 1 to 8", "N", "8")});
}

std::vector<Flag> convert_flags() {
  return {value_flag("to", "--to", "the format, if OUT's name does not tell it", "FORMAT"),
          value_flag("spz_version", "--spz-version", "version of SPZ files, 3 or 4", "N", "3"),
          value_flag("spz_sh_bits", "--spz-sh-bits", "bits of SPZ's higher SH coefficients, 1 to 8",
                     "N", "8"),
          switch_flag("overwrite", "--overwrite", "replace an earlier file")};
}

std::vector<Flag> no_flags() { return {}; }

std::vector<Flag> make_capture_flags() {
  return {
      value_flag("views", "--views", "photographs", "N", "48"),
      value_flag("size", "--size", "pixels of each", "WxH", "640x480"),
      value_flag("seed", "--seed", "seed of the scene", "N", "1"),
      value_flag("points", "--points", "most sparse points", "N", "6000"),
      value_flag("samples", "--samples", "rays per pixel side", "N", "4"),
      switch_flag("exposure", "--exposure", "exposure and white balance differ by image"),
      switch_flag("vignetting", "--vignetting", "darker corners"),
      switch_flag("masks", "--masks", "a distractor in each image, and masks that cover it"),
      switch_flag("distortion", "--distortion", "an OPENCV lens instead of a pinhole"),
      switch_flag("text", "--text", "the model as text files"),
      switch_flag("overwrite", "--overwrite", "replace an earlier capture"),
  };
}

std::vector<Flag> bench_flags() {
  std::vector<Flag> flags = train_flags();
  for (Flag& flag : flags) {
    if (flag.key == "output")
      flag.help = "folder of the bench (default runs/bench-<dataset>-<time>)";
    if (flag.key == "overwrite") flag.help = "replace an earlier bench in the output folder";
  }
  const auto text_flag = [](const char* key, const char* name, const char* help) {
    return Flag{key, name, help, FlagKind::Text, "FLAGS"};
  };
  return with(
      {text_flag("a", "--a", "train flags of A, as one text"),
       text_flag("b", "--b", "train flags of B; without it and --binary-b, A runs alone"),
       value_flag("binary_a", "--binary-a", "the program of A, if not this one", "PATH"),
       value_flag("binary_b", "--binary-b", "the program of B, if not this one", "PATH"),
       value_flag("pairs", "--pairs", "runs of each", "N", "3"),
       value_flag("warm_up", "--warm-up", "runs before that do not count", "N", "1"),
       switch_flag("keep_runs", "--keep-runs", "keep each run's model and images"),
       value_flag("steady", "--steady",
                  "time steps of a model of N Gaussians instead, without refinement", "N"),
       value_flag("init", "--init", "the model of --steady; its Gaussians are repeated", "PLY")},
      std::move(flags));
}

std::vector<Flag> score_flags() { return {switch_flag("json", "--json", "print JSON")}; }

}  // namespace millrace
