// libFuzzer on the cubin reader: any bytes are refused with a reason or give an image, and an image that was written reads back as itself.
// Seeds: cubins, of rndn-as or ptxas.
#include <cstdint>
#include <span>

#include "assembler/cubin/cubin.h"
#include "libraries/base/errors/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rndn;
  auto image = cubin::read(std::as_bytes(std::span(data, size)));
  if (!image.ok()) {
    CHECK(!image.error().message.empty(), "refused without a reason");
    return 0;
  }
  const cubin::Bytes written = cubin::write(*image);
  auto again = cubin::read(written);
  CHECK(again.ok(), "what was written is refused: {}", again.error().message);
  for (cubin::Image* i : {&*image, &*again})
    for (cubin::Variable& v : i->variables) v.offset = 0;
  CHECK(*again == *image, "an image changes when it is written and read");
  return 0;
}
