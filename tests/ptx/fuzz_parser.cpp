// libFuzzer on the parser: any bytes give diagnostics or a module; a module verifies and prints to a fixed point.
// Build with -DRNDN_FUZZ=ON (clang), run: build/fuzz/bin/fuzz_ptx_parser tests/ptx/accept
#include <cstdint>
#include <string>

#include "libraries/base/errors/check.h"
#include "ptx/parse.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rndn;
  SourceManager sources;
  DiagnosticSink sink;
  ptx::Module module =
      ptx::parse(sources.add("input.ptx", std::string(reinterpret_cast<const char*>(data), size)), sources, sink);
  (void)render(sink, sources);
  if (sink.has_errors()) return 0;
  CHECK(ptx::verify(module).empty(), "the parser let pass what the verifier refuses: {}", ptx::verify(module).front());
  std::string text = ptx::print(module);
  DiagnosticSink second;
  ptx::Module again = ptx::parse(sources.add("printed.ptx", text), sources, second);
  CHECK(!second.has_errors(), "the printer's text is refused:\n{}\n{}", render(second, sources), text);
  CHECK(ptx::print(again) == text, "print is no fixed point of\n{}", text);
  return 0;
}
