// The stack that programs may count on in any thread: musl and many runtimes give 2 MB. Sanitizers
// and components that are not optimized (RNDN_OPTIMIZED: tests themselves never are) take several times as much for the same calls.
#pragma once
#include <cstddef>

#include "libraries/base/system/deep_stack.h"

namespace rndn::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(RNDN_OPTIMIZED)
inline constexpr size_t small_stack = size_t{16} << 20;
#else
inline constexpr size_t small_stack = size_t{2} << 20;
#endif

}  // namespace rndn::test
