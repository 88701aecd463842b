// Help texts.
#pragma once

#include <string>

#include "app/commands.h"

namespace millrace {

/// What `millrace` alone prints.
std::string short_help();
/// What `millrace --help` prints.
std::string long_help();
/// What `millrace COMMAND --help` prints: every flag with its default and aliases.
std::string command_help(const Command& command);

}  // namespace millrace
