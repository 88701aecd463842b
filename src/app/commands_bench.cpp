// millrace bench.
#include <fmt/format.h>

#include <algorithm>

#include "app/observer.h"
#include "app/stop_signal.h"
#include "base/file.h"
#include "bench/bench_loop.h"
#include "bench/flag_words.h"
#include "bench/steady.h"
#include "data/text_fields.h"
#include "train/option_values.h"
#include "train/output.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

Error usage(std::string message) { return {ErrorCode::Usage, std::move(message)}; }

/// Sets `value` to the whole number of flag `key`, if given. Error: Usage.
Result<void> take_count(const ParsedArguments& arguments, const char* key, uint32_t least,
                        uint32_t& value) {
  if (!arguments.has(key)) return {};
  const std::string text = arguments.text(key);
  const auto number = parse_integer<uint32_t>(trim(text));
  if (!number || *number < least || *number > 10000) {
    return usage(fmt::format("{}: expected a whole number from {} to 10000, found '{}'",
                             flag_of_key(key), least, text));
  }
  value = *number;
  return {};
}

/// The flags of `train` that were given to bench, as words for a run. What bench sets itself is
/// left out.
std::vector<std::string> common_words(const ParsedArguments& arguments) {
  std::vector<std::string> words;
  for (const Flag& flag : train_flags()) {
    if (flag.key == "output" || flag.key == "overwrite" || flag.key == "dataset") continue;
    if (!arguments.has(flag.key)) continue;
    for (const std::string& text : arguments.values.at(flag.key)) {
      words.push_back(main_name(flag) + "=" + text);
    }
  }
  return words;
}

/// Refuses what would make the runs of a side something else than bench says. Only this program's
/// own flags are known; another binary may have more.
Result<void> check_side(const char* flag, const std::vector<std::string>& words, bool is_this) {
  std::vector<Flag> flags = train_flags();
  for (const Flag& known : flags) {
    if (known.key != "output" && known.key != "overwrite") continue;
    const std::vector<std::string> names = all_names(known);
    for (const std::string& word : words) {
      const std::string name = with_dashes(word).substr(0, word.find('='));
      if (std::ranges::find(names, name) == names.end()) continue;
      return usage(fmt::format("{} may not hold {}: bench chooses each run's folder", flag, word));
    }
  }
  if (!is_this) return {};
  const std::vector<Flag> common = common_flags();
  flags.insert(flags.end(), common.begin(), common.end());
  const Result<ParsedArguments> parsed = parse_arguments(flags, words);
  if (!parsed.ok()) return usage(fmt::format("{}: {}", flag, parsed.error().message));
  if (!parsed.value().positionals.empty()) {
    return usage(fmt::format("{} holds '{}', which is no flag; the dataset is the same for all",
                             flag, parsed.value().positionals.front()));
  }
  return {};
}

Result<BenchOptions::Side> side_of(const ParsedArguments& arguments, const char* key,
                                   const char* binary_key, const std::vector<std::string>& common) {
  BenchOptions::Side side;
  side.flags = arguments.text(key);
  const Result<std::vector<std::string>> words = split_flag_words(side.flags);
  if (!words.ok()) {
    return usage(fmt::format("{}: {}", flag_of_key(key), words.error().message));
  }
  const bool is_this = !arguments.has(binary_key);
  side.binary = is_this ? this_program() : fs::absolute(arguments.text(binary_key));
  MILLRACE_TRY(check_side(flag_of_key(key).c_str(), words.value(), is_this));
  side.arguments = common;
  side.arguments.insert(side.arguments.end(), words.value().begin(), words.value().end());
  return side;
}

/// The folder of the bench, claimed. Error: Usage if it holds an earlier bench or run.
Result<fs::path> claim_folder(const TrainOptions& options) {
  fs::path name = fs::absolute(options.dataset).lexically_normal();
  if (!name.has_filename()) name = name.parent_path();
  const std::string title = "bench-" + name.filename().string();
  MILLRACE_ASSIGN(const OutputFolder folder,
                  open_output_folder(options.output, title, options.overwrite));
  std::error_code ec;
  if (fs::exists(folder.root / "bench.json", ec) && !options.overwrite) {
    return usage(
        fmt::format("{} holds an earlier bench; choose another folder with -o, or replace "
                    "it with --overwrite",
                    folder.root.string()));
  }
  for (const char* old : {"bench.json", "bench.svg", "runs"}) fs::remove_all(folder.root / old, ec);
  return folder.root;
}

Result<int> compare(Context& context, const ParsedArguments& arguments,
                    const TrainOptions& settings) {
  BenchOptions options;
  MILLRACE_TRY(take_count(arguments, "pairs", 1, options.pairs));
  MILLRACE_TRY(take_count(arguments, "warm_up", 0, options.warm_up));
  options.keep_runs = arguments.is_on("keep_runs");
  options.dataset = settings.dataset;
  std::vector<std::string> common = {"train", settings.dataset};
  const std::vector<std::string> flags = common_words(arguments);
  common.insert(common.end(), flags.begin(), flags.end());
  options.command = "millrace bench " + settings.dataset + (flags.empty() ? "" : " ") +
                    join_flag_words(flags) +
                    fmt::format(" --pairs {} --warm-up {}", options.pairs, options.warm_up);
  const auto add_side = [&](const char* key, const char* binary_key) -> Result<void> {
    MILLRACE_ASSIGN(BenchOptions::Side side, side_of(arguments, key, binary_key, common));
    for (const char* given : {key, binary_key}) {
      if (!arguments.has(given)) continue;
      options.command += " " + flag_of_key(given) + " " + join_flag_words({arguments.text(given)});
    }
    options.sides.push_back(std::move(side));
    return {};
  };
  MILLRACE_TRY(add_side("a", "binary_a"));
  if (arguments.has("b") || arguments.has("binary_b")) MILLRACE_TRY(add_side("b", "binary_b"));
  MILLRACE_TRY(check_binaries(options));
  MILLRACE_ASSIGN(options.output, claim_folder(settings));

  const StopSignal stop(context.console.level() == LogLevel::Error);
  BenchObserver observer;
  // Without a terminal a line per run is enough.
  if (context.console.is_terminal()) {
    observer.progress = [&](const std::string& line) { context.console.progress(line); };
  }
  observer.run_ended = [&](const std::string& line) {
    context.console.end_progress();
    context.console.info(line);
    context.events.emit("note", {{"message", line}});
  };
  MILLRACE_ASSIGN(const BenchOutcome outcome, run_bench_blocking(options, observer, stop.flag()));
  const BenchReport& report = outcome.report;
  context.console.end_progress();
  if (!report.runs.empty()) context.console.result(bench_table(report));
  const fs::path json = options.output / "bench.json", plot = options.output / "bench.svg";
  context.console.result("figures: " + absolute_text(json));
  context.console.result("plot: " + absolute_text(plot));
  const BenchSummary summary = summarise(report);
  Json ms = Json::array();
  for (const SideSummary& side : summary.sides) ms.push_back(side.metrics[0].median);
  const Json done = {{"interrupted", report.interrupted},
                     {"runs", report.runs.size()},
                     {"ms_per_step", ms},
                     {"ratio", summary.ratio.median},
                     {"report", absolute_text(json)},
                     {"plot", absolute_text(plot)}};
  if (outcome.failure) return *outcome.failure;
  context.events.emit("done", done);
  if (!report.interrupted) return 0;
  context.console.warning(fmt::format("interrupted after {} of {} runs", report.runs.size(),
                                      options.pairs * options.sides.size()));
  return static_cast<int>(ErrorCode::Interrupted);
}

Result<int> hold_steady(Context& context, const ParsedArguments& arguments,
                        const TrainOptions& settings) {
  for (const char* key : {"a", "b", "binary_a", "binary_b", "pairs", "warm_up"}) {
    if (!arguments.has(key)) continue;
    return usage(
        fmt::format("--steady runs in this process: it does not go with {}", flag_of_key(key)));
  }
  SteadyOptions options;
  options.train = settings;
  options.model = arguments.text("init");
  if (options.model.empty()) return usage("--steady needs --init PLY");
  if (!value_from_texts("steady", arguments.values.at("steady"), options.n_gaussians) ||
      options.n_gaussians < 1) {
    return usage(fmt::format("--steady: expected a whole number from 1 up, found '{}'",
                             arguments.text("steady")));
  }
  if (arguments.has("iterations")) options.n_steps = settings.iterations;
  const StopSignal stop(context.console.level() == LogLevel::Error);
  const auto tell = [&](const std::string& line) { context.console.info(line); };
  MILLRACE_ASSIGN(const SteadyReport report, run_steady_blocking(options, tell, stop.flag()));
  context.console.result(steady_table(report));
  if (!settings.output.empty()) {
    MILLRACE_ASSIGN(const fs::path folder, claim_folder(settings));
    MILLRACE_TRY(write_file_atomically(folder / "bench.json", to_json(report).dump(2) + "\n"));
    context.console.result("figures: " + absolute_text(folder / "bench.json"));
  }
  Json done = to_json(report);
  context.events.emit("done", done);
  return report.interrupted ? static_cast<int>(ErrorCode::Interrupted) : 0;
}

}  // namespace

Result<int> run_bench(Context& context, const ParsedArguments& arguments) {
  MILLRACE_ASSIGN(TrainOptions settings, train_options(arguments));
  // A run's config.json names the run's own folder; only an -o given here says where to write.
  settings.output = arguments.text("output");
  settings.overwrite = arguments.is_on("overwrite");
  if (settings.dataset.empty()) return usage("DATASET is missing: the folder of the capture");
  MILLRACE_TRY(checked_options(settings));
  if (arguments.has("steady")) return hold_steady(context, arguments, settings);
  if (arguments.has("init")) return usage("--init goes with --steady N");
  return compare(context, arguments, settings);
}

}  // namespace millrace
