// The millrace program.
#include "app/run.h"

int main(int argc, char** argv) { return millrace::run_main(argc, argv); }
