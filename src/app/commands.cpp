// The table of commands, and what several of them share.
#include "app/commands.h"

#include <fmt/format.h>

#include <array>

#include "base/file.h"
#include "train/option_values.h"
#include "train/trainer.h"

namespace millrace {
namespace {

constexpr std::array<Command, 9> kCommands = {{
    {"train", "DATASET [-o DIR] [flags]", "Trains Gaussians from a capture.", train_flags,
     run_train},
    {"eval", "DATASET --model PLY [-o DIR] [flags]",
     "Scores a model on a capture's held-out views.", eval_flags, run_eval},
    {"render", "PLY --cameras cameras.json -o DIR [flags]", "Renders a model from given cameras.",
     render_flags, run_render},
    {"export", "MODEL --to FORMATS -o DIR [flags]",
     "Writes a model in other formats and proves each file.", export_flags, run_export},
    {"convert", "IN OUT [--to FORMAT] [flags]", "Writes a model in another format.", convert_flags,
     run_convert},
    {"devices", "", "Lists the devices of this machine, best first.", no_flags, run_devices},
    {"make-capture", "DIR [flags]", "Makes a synthetic capture with its ground truth.",
     make_capture_flags, run_make_capture},
    {"score", "RENDERS PHOTOS [--json]", "Scores rendered images against photographs.", score_flags,
     run_score},
    {"bench", "DATASET [train flags] [--a FLAGS] [--b FLAGS] [-o DIR]",
     "Compares the speed of two configurations, devices or binaries.", bench_flags, run_bench},
}};

}  // namespace

std::span<const Command> commands() { return kCommands; }

Result<void> check_positionals(const ParsedArguments& arguments,
                               const std::vector<std::string>& names) {
  const std::vector<std::string>& given = arguments.positionals;
  if (given.size() < names.size()) {
    return Error{ErrorCode::Usage, fmt::format("{} is missing", names[given.size()])};
  }
  if (given.size() > names.size()) {
    return Error{ErrorCode::Usage,
                 fmt::format("'{}' is one argument too many", given[names.size()])};
  }
  return {};
}

Result<TrainOptions> train_options(const ParsedArguments& arguments) {
  TrainOptions options;
  if (arguments.has("config")) {
    const std::string file = arguments.text("config");
    MILLRACE_ASSIGN(const std::string text, read_text_file(file, ErrorCode::Usage));
    MILLRACE_ASSIGN(options, options_from_json(text, file, options));
  }
  std::vector<std::string> keys;
  visit_options(options, [&](const char* key, auto&, const char*, const char*) {
    if (arguments.has(key)) keys.emplace_back(key);
  });
  for (const std::string& key : keys) {
    MILLRACE_TRY(set_option(options, key, arguments.values.at(key)));
  }
  if (!arguments.positionals.empty()) {
    MILLRACE_TRY(check_positionals(arguments, {"DATASET"}));
    options.dataset = arguments.positionals.front();
  } else if (arguments.has("dataset")) {
    options.dataset = arguments.text("dataset");
  }
  return options;
}

}  // namespace millrace
