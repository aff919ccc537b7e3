// Other programs.
#pragma once
#include <string>
#include <vector>

#include "libraries/base/errors/result.h"

namespace rndn {

// Runs arguments[0], looked up on PATH when it has no slash, with the others and waits for its end. What it writes goes to the file `messages`, or where
// our own output goes (""). Fails (fault world) when it cannot run or ends badly, with the exit code or signal and what it wrote into `messages`.
Result<void> run_program(std::vector<std::string> arguments, const std::string& messages = {});

}  // namespace rndn
