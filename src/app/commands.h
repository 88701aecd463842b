// The commands of the program: a table of names, flags and functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "app/arguments.h"
#include "app/console.h"
#include "app/events.h"
#include "base/result.h"
#include "formats/model_file.h"
#include "train/options.h"

namespace millrace {

/// Where a command speaks.
struct Context {
  Console& console;
  Events& events;
};

struct Command {
  const char* name;
  const char* usage;             // what follows "millrace NAME"
  const char* summary;           // one sentence
  std::vector<Flag> (*flags)();  // without the common ones
  /// The exit code of a run that did not fail. Errors carry their own.
  Result<int> (*run)(Context& context, const ParsedArguments& arguments);
};

/// All commands, in the order of the help.
std::span<const Command> commands();
/// Flags that every command has: -q, -v, --log-level, --json-events.
std::vector<Flag> common_flags();

// ---- Flags (flags.cpp)
// ----------------------------------------------------------------------------

std::vector<Flag> train_flags();
std::vector<Flag> eval_flags();
std::vector<Flag> render_flags();
std::vector<Flag> no_flags();
std::vector<Flag> make_capture_flags();
std::vector<Flag> score_flags();
std::vector<Flag> bench_flags();
std::vector<Flag> convert_flags();
std::vector<Flag> export_flags();

// ---- What they do (commands_*.cpp)
// ------------------------------------------------------------------

Result<int> run_train(Context& context, const ParsedArguments& arguments);
Result<int> run_eval(Context& context, const ParsedArguments& arguments);
Result<int> run_render(Context& context, const ParsedArguments& arguments);
Result<int> run_devices(Context& context, const ParsedArguments& arguments);
Result<int> run_make_capture(Context& context, const ParsedArguments& arguments);
Result<int> run_score(Context& context, const ParsedArguments& arguments);
Result<int> run_export(Context& context, const ParsedArguments& arguments);
Result<int> run_convert(Context& context, const ParsedArguments& arguments);
Result<int> run_bench(Context& context, const ParsedArguments& arguments);

/// Exactly `names.size()` positional arguments. Error: Usage naming the missing or surplus one.
Result<void> check_positionals(const ParsedArguments& arguments,
                               const std::vector<std::string>& names);
/// --spz-version and --spz-sh-bits. Errors: Usage.
Result<WriteOptions> write_options(const ParsedArguments& arguments);
/// The settings of a configuration file (--config; its defaults without one), the flags given, and
/// the dataset (positional, else --source, else the file's; may be empty). Errors: Usage.
Result<TrainOptions> train_options(const ParsedArguments& arguments);

}  // namespace millrace
