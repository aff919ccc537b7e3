// The stack that programs may count on in any thread: musl and many runtimes give 2 MB. Sanitizers
// and code that is not optimized take several times as much for the same calls.
#pragma once
#include <cstddef>

#include "libraries/base/system/deep_stack.h"

namespace rndn::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
inline constexpr size_t small_stack = size_t{16} << 20;
#else
inline constexpr size_t small_stack = size_t{2} << 20;
#endif

}  // namespace rndn::test
