// The outermost frame of every program.
#pragma once

namespace rndn {

// Returns body(argc, argv). What it throws becomes a message and an exit code: memory that ran out 3, any other exception, by name, 70. What it has
// printed and stdout does not take is an exit code 3.
int guarded_main(int (*body)(int, char**), int argc, char** argv);

}  // namespace rndn
