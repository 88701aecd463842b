// Help texts, made from the tables of commands and flags.
#include "app/help.h"

#include <fmt/format.h>

#include "train/version.h"

namespace millrace {
namespace {

constexpr size_t kHelpColumn = 34;

std::string flag_line(const Flag& flag) {
  const std::string main = main_name(flag);
  std::string short_name, aliases;
  for (const std::string& name : all_names(flag)) {
    if (name == main) continue;
    if (short_name.empty() && !name.starts_with("--")) {
      short_name = name;
    } else {
      aliases += (aliases.empty() ? "" : ", ") + name;
    }
  }
  std::string left = short_name.empty() ? "      " + main : "  " + short_name + ", " + main;
  if (!flag.value_name.empty()) left += " " + flag.value_name;
  std::string right = flag.help;
  if (!flag.default_text.empty()) right += " [" + flag.default_text + "]";
  if (left.size() + 2 > kHelpColumn) left += "\n" + std::string(kHelpColumn - 2, ' ');
  std::string line = fmt::format("{:<{}}{}\n", left, kHelpColumn, right);
  if (left.find('\n') != std::string::npos) line = left + "  " + right + "\n";
  if (!aliases.empty()) line += std::string(kHelpColumn, ' ') + "also " + aliases + "\n";
  return line;
}

}  // namespace

std::string short_help() {
  std::string text = "usage: millrace COMMAND ...\n\n";
  for (const Command& command : commands()) {
    text +=
        fmt::format("  millrace {}{}{}\n", command.name, *command.usage ? " " : "", command.usage);
  }
  return text +
         "\n`millrace --help` says more, `millrace COMMAND --help` lists a command's flags.\n";
}

std::string long_help() {
  std::string text =
      fmt::format("millrace {}: trains 3D Gaussian splats from photographs.\n\n", kVersion);
  for (const Command& command : commands()) {
    text += fmt::format("  millrace {}{}{}\n      {}\n", command.name, *command.usage ? " " : "",
                        command.usage, command.summary);
  }
  text +=
      "\n`millrace COMMAND --help` lists a command's flags. Flags may be written with dashes or\n"
      "underscores. Of every command:\n\n";
  for (const Flag& flag : common_flags()) text += flag_line(flag);
  return text +
         "\nExit codes: 0 ok, 1 internal error, 2 usage, 3 dataset unusable, 4 out of memory,\n"
         "5 device lost, 6 diverged, 7 output cannot be written, 130 interrupted.\n";
}

std::string command_help(const Command& command) {
  std::string text = fmt::format("usage: millrace {}{}{}\n\n{}\n\n", command.name,
                                 *command.usage ? " " : "", command.usage, command.summary);
  for (const Flag& flag : command.flags()) text += flag_line(flag);
  for (const Flag& flag : common_flags()) text += flag_line(flag);
  return text;
}

}  // namespace millrace
