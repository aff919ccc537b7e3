// CHECK: for mistakes of ours only; no input may ever reach one. Prints place and message and aborts with exit code 70.
// DCHECK: the same, compiled out of release builds.
#pragma once
#include <fmt/format.h>

#include <string>

namespace rndn {
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& message);
}  // namespace rndn

#define CHECK(condition, ...)                                                              \
  do {                                                                                     \
    if (!(condition)) [[unlikely]]                                                         \
      ::rndn::check_failed(__FILE__, __LINE__, #condition, ::fmt::format("" __VA_ARGS__)); \
  } while (0)
#ifdef NDEBUG
#define DCHECK(condition, ...) \
  do {                         \
  } while (0)
#else
#define DCHECK(...) CHECK(__VA_ARGS__)
#endif
