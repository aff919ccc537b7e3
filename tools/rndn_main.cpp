// rndn. All else is the library of its commands, which parses the headers of the command line for all of them.
#include "libraries/base/errors/guarded_main.h"

namespace rndn::tools {
int run_command_line(int argc, char** argv);  // rndn.cpp
}

int main(int argc, char** argv) { return rndn::guarded_main(rndn::tools::run_command_line, argc, argv); }
