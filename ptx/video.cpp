// Video instructions: what their suffixes say, and what of their operands becomes instructions around them:
//
//   %r.b2, %r.h1 as source       that byte or half, extended by its type
//   %r.b2, %r.h1 as destination  the result, clamped to so many bits where it is to be, put into c
//   %r.h10, %r.b7531 as source   a permutation of the parts of a and b
//   %r.h0, %r.b210 as mask       other parts are those of c, or add nothing to it
//   -%r of vmad                  c - ab is ~(ab + ~c), and ab - c is ab + ~c + 1
//
// Those of whole words mean what the code of ptxas 11.8, 12.9 and 13.5 for sm_75 and later gives, which is not the manual's everywhere.
// The value is exact, in 64 bits. Then
//   .sat        to u32, negative values become 0, but only those of vshl are cut at the upper end; vshl's have 34 bits before that
//   .min, .max  of 64 bits: c is extended by the type of the result (of a, for vset), and the value counts as it is, but the low word
//               of sums and differences, and of .sat's shifts, is extended by its sign. Of u32 they compare without a sign
//   d.b0 ..     .sat takes what is negative or too large for the part for the largest number; shifts are not clamped to the part
//   vmad        the product and c count as signed whatever their types; these say how .sat clamps and how .shr shifts: without a sign
//               where a and b are u32 and nothing is negated, else with one
// d.h1 is the low half of the result, as in the manual and in 13.5 (11.8 and 12.9 take the upper half).
#include <algorithm>

#include "ptx/opcodes.h"
#include "ptx/reader.h"

namespace rndn::ptx {

VideoSuffix video_suffix(const Instruction& i) {
  VideoSuffix v;
  const std::string_view name = opcode_name(i.op);
  v.what = name.substr(1);
  v.parts = video_parts(i.op);
  if (v.parts > 1) v.what.remove_suffix(1);
  bool* types[] = {&v.is_signed, &v.a_signed, &v.b_signed};
  size_t type = v.what == "set" ? 1 : 0;
  for (std::string_view rest = mode_text(i.op, i.mods.mode); !rest.empty();) {
    const size_t end = std::min(rest.find('.'), rest.size());
    const std::string_view word = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (word == "u32" || word == "s32")
      *types[type++] = word == "s32";
    else if (word == "sat")
      v.sat = true;
    else if (word == "po")
      v.plus_one = true;
    else if (word == "shr7" || word == "shr15")
      v.shift = word == "shr7" ? 7 : 15;
    else if (word == "clamp" || word == "wrap")
      v.wrap = word == "wrap";
    else if (word == "add" || word == "min" || word == "max")
      v.second = word;
    else
      v.compare = word;
  }
  if (v.what == "set") v.is_signed = v.a_signed;
  if (v.what == "mad") v.is_signed = v.a_signed || v.b_signed;
  return v;
}

namespace {

// "b2" of a word, or "h10" of parts: the numbers that it names, the last one first. Empty: it is none of these.
struct Selector {
  uint32_t bits = 0, count = 0;
  uint8_t of[4] = {};
};
Selector read_selector(std::string_view text, uint32_t parts, bool is_source) {
  Selector s;
  const uint32_t bits = !text.empty() && text[0] == 'h' ? 16 : 8;
  const uint32_t most = 32 / bits * (parts > 1 && is_source ? 2 : 1), count = static_cast<uint32_t>(text.size()) - 1;
  if (parts > 1 ? bits != 32 / parts || (is_source && count != parts) || count > parts : count != 1) return {};
  for (uint32_t k = 0; k < count; ++k) {
    s.of[k] = static_cast<uint8_t>(text[text.size() - 1 - k] - '0');
    if (s.of[k] >= most || (!is_source && k && s.of[k] <= s.of[k - 1])) return {};
  }
  s.bits = bits;
  s.count = count;
  return s;
}
// The mode whose text has `words` at a place, in place of as many letters or (`insert`) between them.
uint8_t other_mode(Opcode op, uint8_t mode, size_t at, std::string_view words, bool insert = false) {
  std::string other(mode_text(op, mode));
  other.replace(at, insert ? 0 : words.size(), words);
  const auto all = modes(op);
  const auto found = std::ranges::find(all, other, &Mode::text);
  return found == all.end() ? mode : found->value;
}

Operand constant(uint32_t value) { return {.kind = Operand::immediate, .value = static_cast<int32_t>(value)}; }

}  // namespace

// -ab + c and ab - c, as said above.
bool Reader::negate_product(const Instruction& i) {
  if (raw_[0].negative) {
    error("bad-operand", raw_[0].at, "what vmad writes is not negated");
    return false;
  }
  const bool product = raw_[1].negative != raw_[2].negative, sum = raw_[3].negative;
  if (!product && !sum) return true;
  if ((product && sum) || video_suffix(i).plus_one) {
    error("bad-operand", opcode_at_, "vmad: the product or c is negated, not both, and neither of .po");
    return false;
  }
  const Operand c = fresh_register(Type::b32);
  if (!add_before({.op = Opcode::not_, .type = Type::b32}, std::initializer_list<Operand>{c, raw_[3].operand}))
    return false;
  raw_[3] = {.operand = c, .at = raw_[3].at};
  other_mode_ = other_mode(i.op, i.mods.mode, 4, "s32");
  if (sum) {
    other_mode_ = other_mode(i.op, other_mode_, 11, ".po", true);
    return true;
  }
  const Operand d = raw_[0].operand, complement = fresh_register(Type::b32);
  raw_[0].operand = complement;
  after_.push_back({{.op = Opcode::not_, .type = Type::b32}, {d, complement}});
  return true;
}

bool Reader::rewrite_video(const Instruction& i) {
  const VideoSuffix v = video_suffix(i);
  const size_t sources = raw_.size();
  bool merges = false;
  for (size_t k = 0; k < sources; ++k) {
    const RawOperand& x = raw_[k];
    if (x.selector.empty()) continue;
    merges |= k == 0;
    const bool has_place =
        k < 3 && (k > 0 || v.parts > 1 || (v.second.empty() && v.what != "mad")) && x.operand.kind == Operand::reg;
    if (has_place && read_selector(x.selector, v.parts, k > 0).count > 0) continue;
    error("bad-operand", x.at, "{}: `.{}` selects no part here", opcode_name(i.op), x.selector);
    return false;
  }
  if (merges && sources != 4) {
    error("bad-operand", opcode_at_, "{}: a selector of the result needs c", opcode_name(i.op));
    return false;
  }
  for (size_t k = 1; k < sources; ++k)
    if (raw_[k].literal && !literal(raw_[k], Type::b32)) return false;
  const Operand whole[] = {raw_[0].operand, sources > 1 ? raw_[1].operand : Operand(),
                           sources > 2 ? raw_[2].operand : Operand()};
  const auto before = [&](Opcode op, Type type, RawOperand& x, std::initializer_list<Operand> from) {
    const Operand to = fresh_register(Type::b32);
    std::vector<Operand> all = {to};
    all.insert(all.end(), from.begin(), from.end());
    x = {.operand = to, .negative = x.negative, .at = x.at};
    return add_before({.op = op, .type = type}, all);
  };
  for (size_t k = 1; k < 3 && k < sources; ++k) {
    if (raw_[k].selector.empty()) continue;
    const Selector s = read_selector(raw_[k].selector, v.parts, true);
    bool done;
    if (v.parts == 1) {
      const Type type = (k == 1 ? v.a_signed : v.b_signed) ? Type::s32 : Type::u32;
      done = before(Opcode::bfe, type, raw_[k], {whole[k], constant(s.of[0] * s.bits), constant(s.bits)});
    } else {
      uint32_t bytes = 0;
      for (uint32_t p = 0; p < 4; ++p) bytes |= (v.parts == 4 ? s.of[p] : s.of[p / 2] * 2u + p % 2) << (4 * p);
      done = before(Opcode::prmt, Type::b32, raw_[k], {whole[1], whole[2], constant(bytes)});
    }
    if (!done) return false;
  }
  if (v.what == "mad" && sources == 4 && !negate_product(i)) return false;
  if (!merges) return true;
  const Selector s = read_selector(raw_[0].selector, v.parts, false);
  const Operand c = raw_[3].operand;
  uint32_t mask = 0;
  for (uint32_t k = 0; k < s.count; ++k) mask |= ((1u << s.bits) - 1) << (s.of[k] * s.bits);
  if (v.parts > 1 && !v.second.empty()) {
    // Parts of which nothing comes: zeros, and for comparisons two numbers that are not so.
    const bool equal = v.compare == "eq" || v.compare == "le" || v.compare == "ge";
    for (size_t k = 1; k < 3; ++k) {
      if (!before(Opcode::and_, Type::b32, raw_[k], {raw_[k].operand, constant(mask)})) return false;
      if (equal && (k == 1) == (v.compare == "le") &&
          !before(Opcode::or_, Type::b32, raw_[k],
                  {raw_[k].operand, constant((v.parts == 2 ? 0x10001u : 0x1010101u) & ~mask)}))
        return false;
    }
    raw_[0].selector = {};
    return true;
  }
  const Operand part = fresh_register(Type::b32);
  raw_[0].operand = part;
  if (v.parts > 1) {
    const Operand kept = fresh_register(Type::b32), taken = fresh_register(Type::b32);
    after_.push_back({{.op = Opcode::and_, .type = Type::b32}, {kept, c, constant(~mask)}});
    after_.push_back({{.op = Opcode::and_, .type = Type::b32}, {taken, part, constant(mask)}});
    after_.push_back({{.op = Opcode::or_, .type = Type::b32}, {whole[0], kept, taken}});
    return true;
  }
  raw_.pop_back();
  Operand clamped = part;
  if (v.sat && v.what != "shl" && v.what != "shr") {
    other_mode_ = other_mode(i.op, i.mods.mode, 0, "s32");
    clamped = fresh_register(Type::b32);
    after_.push_back({{.op = Opcode::min, .type = Type::u32},
                      {clamped, part, constant((1u << (v.is_signed ? s.bits - 1 : s.bits)) - 1)}});
  }
  after_.push_back(
      {{.op = Opcode::bfi, .type = Type::b32}, {whole[0], clamped, c, constant(s.of[0] * s.bits), constant(s.bits)}});
  return true;
}

}  // namespace rndn::ptx
