// Waits for what another thread notifies. std::condition_variable::wait is the one function that the wheels of the Python package would ask of a
// libstdc++ newer than that of glibc 2.34's distributions (GLIBCXX_3.4.30): what runs in the package waits by this one.
#pragma once
#include <pthread.h>

#include <condition_variable>
#include <mutex>

namespace rndn {

// Until done(), which is asked while the lock is held: at once, and whenever the thread is woken.
template <class Done>
void wait_for_change(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, Done done) {
  while (!done()) pthread_cond_wait(changed.native_handle(), lock.mutex()->native_handle());
}

}  // namespace rndn
