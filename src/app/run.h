// run_main: the program, from its arguments to its exit code.
#pragma once

namespace millrace {

/// Runs the command line and returns the exit code (docs/cli.md). The one place that catches.
int run_main(int argc, const char* const* argv);

}  // namespace millrace
