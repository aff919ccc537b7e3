// libFuzzer target: any bytes give diagnostics or a program, never a crash or a hang; what parses prints and parses again to the
// same text. Build with the `fuzz` preset; start it on tests/frontend/accept as corpus.
#include <cstdlib>
#include <string>

#include "tests/frontend/robust.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string complaint = rndn::hir::check_robust(std::string(reinterpret_cast<const char*>(data), size));
  if (!complaint.empty()) {
    fprintf(stderr, "%s\n", complaint.c_str());
    abort();
  }
  return 0;
}
