// "ld.global.nc.v2.f64" to opcode, modifiers and types, driven by opcodes.def.
#pragma once
#include <string>
#include <string_view>

#include "ptx/verify.h"

namespace rndn::ptx {

struct Mnemonic {
  Instruction instruction;  // op, type, type2 and mods; the rest is default
  std::string problem;      // not empty: what is wrong with it
  std::string_view kind;    // diagnostic kind of the problem
  bool policy = false;  // .L2::cache_hint: the last operand is a cache policy, which changes no value and is left out
  bool rewritten = false;  // rewrite.cpp has another form of the same meaning
  uint8_t elements = 1;    // of an atomic operation's vectors, which are rewritten
  bool simple = false;     // none of these, and no call: statements.cpp may write its operands as they stand
  // Form and places for the operand count last asked for.
  const Form* form = nullptr;
  uint32_t operand_count = UINT32_MAX;
  Places places;
  PlainOperands plain;
};
Type type_named(std::string_view name);  // "u32"; none when there is no such type
// version, target: what the module names, 78 of 7.8 and 60 of sm_60. Old ones mean other things by the same words.
Mnemonic read_mnemonic(std::string_view text, uint32_t version, uint32_t target);

}  // namespace rndn::ptx
