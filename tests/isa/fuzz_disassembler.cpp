// libFuzzer on decoder, printer and encoder: the first byte chooses a target, the rest are code. A word decodes or not; one that does prints, and encodes
// to the same bits.
#include <cstdint>
#include <span>

#include "assembler/isa/isa.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rndn;
  if (size < 1) return 0;
  const auto targets = isa::known_targets();
  const isa::Target& t = targets[data[0] % targets.size()];
  for (const isa::Located& l : isa::unpack(t, std::as_bytes(std::span(data + 1, size - 1)))) {
    isa::Instruction in;
    if (!isa::decode(t, l.word, l.address, in)) continue;
    CHECK(!isa::text(t, in, "", l.address).empty(), "{} prints as nothing", isa::form_name(in.form));
    isa::Word back;
    CHECK(isa::encode(t, in, l.address, back), "{} decodes and does not encode", isa::form_name(in.form));
    CHECK(back == l.word, "{}: {:016x}_{:016x} became {:016x}_{:016x}", isa::form_name(in.form), l.word.hi, l.word.lo,
          back.hi, back.lo);
  }
  return 0;
}
