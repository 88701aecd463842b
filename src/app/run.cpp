// Choosing the command, and turning whatever goes wrong into a message and an exit code.
#include "app/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <string>
#include <vector>

#include "app/commands.h"
#include "app/help.h"
#include "app/stop_signal.h"
#include "base/host_memory.h"
#include "train/near_match.h"
#include "train/version.h"

namespace millrace {
namespace {

constexpr const char* kMemoryHelp =
    "three ways out: fewer Gaussians (--max-cap), smaller images (-r 2 or --max-width), "
    "less kept in memory (--image-cache-bytes)";

const Command* find_command(const std::string& name) {
  for (const Command& command : commands()) {
    if (name == command.name) return &command;
  }
  return nullptr;
}

Error unknown_command(const std::string& name) {
  std::vector<std::string> names;
  for (const Command& command : commands()) names.emplace_back(command.name);
  std::string message = fmt::format("there is no command '{}'{}", name, did_you_mean(name, names));
  if (near_matches(name, names).empty()) {
    message += fmt::format("; to train on a dataset: millrace train {}", name);
  }
  return {ErrorCode::Usage, message};
}

Result<LogLevel> log_level(const ParsedArguments& arguments) {
  if (arguments.is_on("quiet")) return LogLevel::Error;
  if (arguments.is_on("verbose")) return LogLevel::Debug;
  const std::string name = arguments.text("log_level", "info");
  if (name == "error") return LogLevel::Error;
  if (name == "warning" || name == "warn") return LogLevel::Warning;
  if (name == "info") return LogLevel::Info;
  if (name == "debug") return LogLevel::Debug;
  return Error{ErrorCode::Usage,
               fmt::format("--log-level must be error, warning, info or debug, not '{}'", name)};
}

Result<int> run_command(Context& context, const Command& command,
                        const std::vector<std::string>& words) {
  std::vector<Flag> flags = command.flags();
  const std::vector<Flag> common = common_flags();
  flags.insert(flags.end(), common.begin(), common.end());
  MILLRACE_ASSIGN(const ParsedArguments arguments, parse_arguments(flags, words));
  MILLRACE_ASSIGN(const LogLevel level, log_level(arguments));
  context.console.set_level(level);
  return command.run(context, arguments);
}

Result<int> run(Context& context, const std::vector<std::string>& words) {
  if (words.empty()) {
    std::fputs(short_help().c_str(), stderr);
    return static_cast<int>(ErrorCode::Usage);
  }
  const std::string& first = words.front();
  if (first == "--version") {
    context.console.output(fmt::format("millrace {} ({})", kVersion, kCommit));
    return 0;
  }
  const bool asks_for_help = first == "--help" || first == "-h" || first == "help";
  const bool names_command = asks_for_help && words.size() > 1 && find_command(words[1]) != nullptr;
  if (asks_for_help) {
    std::fputs((names_command ? command_help(*find_command(words[1])) : long_help()).c_str(),
               stdout);
    return 0;
  }
  if (first.starts_with('-')) {
    return Error{
        ErrorCode::Usage,
        fmt::format("{} stands before a command; write millrace COMMAND {}", first, first)};
  }
  const Command* command = find_command(first);
  if (!command) return unknown_command(first);
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  if (has_flag(rest, "--help") || has_flag(rest, "-h")) {
    std::fputs(command_help(*command).c_str(), stdout);
    return 0;
  }
  return run_command(context, *command, rest);
}

/// Tells the error and returns its exit code.
int report(Context& context, Error error, const std::vector<std::string>& words) {
  if (error.code == ErrorCode::OutOfMemory &&
      error.message.find("--max-cap") == std::string::npos) {
    error.message += fmt::format("; {}", kMemoryHelp);
  }
  context.console.end_progress();
  context.console.error(error.message);
  if (error.code == ErrorCode::Usage) {
    const Command* command = words.empty() ? nullptr : find_command(words.front());
    context.console.info(command ? fmt::format("see `millrace {} --help`", command->name)
                                 : std::string("see `millrace --help`"));
  }
  context.events.emit("error",
                      {{"code", static_cast<int>(error.code)}, {"message", error.message}});
  return static_cast<int>(error.code);
}

}  // namespace

int run_main(int argc, const char* const* argv) {
  ignore_write_signals();
  return_large_blocks_at_once();  // a memory plan is about what is in use
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  Events events(stdout, has_flag(words, "--json-events"));
  Console console(stderr, stdout, stderr_is_terminal(), stderr_columns());
  if (events.is_on()) console.keep_stdout_free();
  Context context{console, events};
  Error error;
  try {
    const Result<int> result = run(context, words);
    if (result.ok()) return result.value();
    error = result.error();
  } catch (const Exception& exception) {
    error = exception.error();
  } catch (const std::bad_alloc&) {
    error = {ErrorCode::OutOfMemory, "the memory of this machine has run out"};
  } catch (const std::exception& exception) {
    error = {ErrorCode::Internal,
             fmt::format("{} (this is a bug in millrace; please report it with the command line)",
                         exception.what())};
  }
  return report(context, std::move(error), words);
}

}  // namespace millrace
