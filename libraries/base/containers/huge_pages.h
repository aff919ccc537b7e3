// Memory that is about to be filled for the first time, by pages of 2 MiB where the system gives them: a fault per 4 KiB costs more than the filling.
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace rndn {

// A hint: nothing depends on what becomes of it. Only whole huge pages within the memory are concerned.
inline void prefer_huge_pages(void* memory, size_t bytes) {
  constexpr uintptr_t huge_page = uintptr_t{2} << 20;
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(memory) + huge_page - 1) / huge_page * huge_page;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(memory) + bytes) / huge_page * huge_page;
#ifdef MADV_HUGEPAGE
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
}

}  // namespace rndn
