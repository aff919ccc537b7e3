// Stack for recursion that goes deep by right: how much the calling thread has left, and a thread
// with more.
//
//   if (stack_left() < 256 << 10)
//     RETURN_IF_ERROR(on_own_stack(64 << 20, [&] { result = visit(child); }));
//   else
//     result = visit(child);
#pragma once
#include <cstddef>
#include <functional>

#include "libraries/base/errors/result.h"

namespace rndn {

// Bytes that the calling thread can still push. 0 where that is not known, as on a stack that no
// thread started with.
size_t stack_left();

// Runs body on a thread with that many bytes of stack and waits for its end. What body throws is
// thrown here. Pages of the stack take memory when they are touched. A thread that cannot be
// started is the world's fault.
Result<void> on_own_stack(size_t bytes, const std::function<void()>& body);

}  // namespace rndn
