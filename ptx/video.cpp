// Video instructions: what their suffixes say, and selectors of their operands, which become instructions around them:
//
//   %r.b2, %r.h1 as source       that byte or half, extended by its type
//   %r.b2, %r.h1 as destination  the result, clamped to so many bits where it is to be, put into c
//   %r.h10, %r.b7531 as source   a permutation of the parts of a and b
//   %r.h0, %r.b210 as mask       other parts are those of c, or add nothing to it
#include "ptx/opcodes.h"
#include "ptx/reader.h"

namespace rndn::ptx {

VideoSuffix video_suffix(const Instruction& i) {
  VideoSuffix v;
  const std::string_view name = opcode_name(i.op);
  v.what = name.substr(1);
  if (name.ends_with('2') || name.ends_with('4')) {
    v.parts = name.ends_with('2') ? 2 : 4;
    v.what.remove_suffix(1);
  }
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
    else if (word == "clamp" || word == "wrap")
      v.wrap = word == "wrap";
    else if (word == "add" || word == "min" || word == "max")
      v.second = word;
    else
      v.compare = word;
  }
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
Operand constant(uint32_t value) { return {.kind = Operand::immediate, .value = static_cast<int32_t>(value)}; }

}  // namespace

bool Reader::rewrite_video(const Instruction& i) {
  const VideoSuffix v = video_suffix(i);
  const size_t sources = raw_.size();
  bool merges = false;
  for (size_t k = 0; k < sources; ++k) {
    const RawOperand& x = raw_[k];
    if (x.selector.empty()) continue;
    merges |= k == 0;
    const bool has_place = k < 3 && (k > 0 || v.parts > 1 || v.second.empty()) && x.operand.kind == Operand::reg;
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
    x = {.operand = to, .at = x.at};
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
      for (uint32_t p = 0; p < 4; ++p)
        bytes |= (v.parts == 4 ? s.of[p] : s.of[p / 2] * 2u + p % 2) << (4 * p);
      done = before(Opcode::prmt, Type::b32, raw_[k], {whole[1], whole[2], constant(bytes)});
    }
    if (!done) return false;
  }
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
  if (v.sat) {
    const Type type = v.is_signed ? Type::s32 : Type::u32;
    const uint32_t most = (1u << (v.is_signed ? s.bits - 1 : s.bits)) - 1, least = v.is_signed ? ~most : 0;
    const Operand high = fresh_register(Type::b32);
    clamped = fresh_register(Type::b32);
    after_.push_back({{.op = Opcode::max, .type = type}, {high, part, constant(least)}});
    after_.push_back({{.op = Opcode::min, .type = type}, {clamped, high, constant(most)}});
  }
  after_.push_back({{.op = Opcode::bfi, .type = Type::b32},
                    {whole[0], clamped, c, constant(s.of[0] * s.bits), constant(s.bits)}});
  return true;
}

}  // namespace rndn::ptx
