// libFuzzer target: any bytes as a program: diagnostics, a run-time error or results of the types that the frontend inferred, never
// a crash or a hang. Build with the `fuzz` preset; start it on tests/frontend/accept as corpus.
#include <cstdio>
#include <cstdlib>

#include "tests/frontend/robust.h"
#include "tests/reference/random_run.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  std::string complaint = rndn::hir::check_robust(text);
  if (complaint.empty()) complaint = rndn::reference::testing::run_bounded(text).complaint;
  if (!complaint.empty()) {
    std::fprintf(stderr, "%s\n", complaint.c_str());
    std::abort();
  }
  return 0;
}
