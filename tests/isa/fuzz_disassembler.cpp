// libFuzzer on decoder, printer and encoder: the first byte chooses a target, the rest are code. A word decodes or not; one that does prints, and encodes
// to the same bits, or for a branch of Pascal to other bits of the same instruction.
#include <algorithm>
#include <cstdint>
#include <span>

#include "assembler/isa/isa.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rndn;
  if (size < 1) return 0;
  const auto targets = isa::targets();
  const isa::Target& t = targets[data[0] % targets.size()];
  for (const isa::Located& l : isa::unpack(t, std::as_bytes(std::span(data + 1, size - 1)))) {
    isa::Instruction in;
    if (!isa::decode(t, l.word, l.address, in)) continue;
    CHECK(!isa::text(t, in, "", l.address).empty(), "{} prints as nothing", isa::form_name(in.form));
    isa::Word back;
    CHECK(isa::encode(t, in, l.address, back), "{} decodes and does not encode", isa::form_name(in.form));
    if (back == l.word) continue;
    // Pascal has two words for a branch to the first instruction of a bundle: the bundle's address, which we write, and the instruction's.
    isa::Instruction again;
    CHECK(t.family == isa::Family::pascal && isa::decode(t, back, l.address, again) &&
              isa::text(t, again, "", l.address) == isa::text(t, in, "", l.address) &&
              std::any_of(in.operands.begin(), in.operands.end(),
                          [](const isa::Operand& o) { return o.kind == isa::OperandKind::label; }),
          "{}: {:016x}_{:016x} became {:016x}_{:016x}", isa::form_name(in.form), l.word.hi, l.word.lo, back.hi,
          back.lo);
  }
  return 0;
}
