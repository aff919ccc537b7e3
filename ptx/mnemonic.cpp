// Reads a mnemonic with its suffixes. Suffixes are looked up in this order: the opcode's own modes (opcodes.def), types, then the words
// that all opcodes share. A few words mean different things for different opcodes (`lo` of mul and of setp): see `words`.
// The parser calls this once per distinct mnemonic of a module, so that it need not be fast. Suffix order is free, as in ptxas.
#include "ptx/mnemonic.h"

#include <fmt/format.h>

#include <algorithm>

#include "libraries/base/errors/diagnostic.h"
#include "ptx/string_table.h"

namespace rndn::ptx {
namespace {

// Opcodes of the PTX manual that have no row.
constexpr std::string_view unsupported_opcodes[] = {"tex",
                                                    "tld4",
                                                    "txq",
                                                    "istypep",
                                                    "suld",
                                                    "sust",
                                                    "sured",
                                                    "suq",
                                                    "wmma",
                                                    "mma",
                                                    "movmatrix",
                                                    "mapa",
                                                    "setmaxnreg",
                                                    "getctarank",
                                                    "wgmma",
                                                    "tcgen05",
                                                    "multimem",
                                                    "tensormap",
                                                    "clusterlaunchcontrol"};

enum class Field : uint8_t {
  rounding,
  compare,
  combine,
  part,
  space,
  cache,
  semantics,
  scope,
  atomic,
  shuffle,
  vote,
  shift,
  vector,
  flag
};
enum Flag : uint8_t { ftz, sat, approx, full, carry_out, sync, uni, to };

struct Word {
  std::string_view text;
  Field field;
  uint8_t value;
};
template <class E>
constexpr uint8_t v(E e) {
  return static_cast<uint8_t>(e);
}

constexpr Word words[] = {
    {"rn", Field::rounding, v(Rounding::rn)},
    {"rz", Field::rounding, v(Rounding::rz)},
    {"rm", Field::rounding, v(Rounding::rm)},
    {"rp", Field::rounding, v(Rounding::rp)},
    {"rni", Field::rounding, v(Rounding::rni)},
    {"rzi", Field::rounding, v(Rounding::rzi)},
    {"rmi", Field::rounding, v(Rounding::rmi)},
    {"rpi", Field::rounding, v(Rounding::rpi)},
    {"wide", Field::part, v(MulPart::wide)},
    {"param", Field::space, v(Space::param)},
    {"param::entry", Field::space, v(Space::param)},
    {"param::func", Field::space, v(Space::param)},
    {"local", Field::space, v(Space::local)},
    {"shared", Field::space, v(Space::shared)},
    {"shared::cta", Field::space, v(Space::shared)},
    {"global", Field::space, v(Space::global)},
    {"const", Field::space, v(Space::constant)},
    {"ca", Field::cache, v(Cache::ca)},
    {"cg", Field::cache, v(Cache::cg)},
    {"cs", Field::cache, v(Cache::cs)},
    {"lu", Field::cache, v(Cache::lu)},
    {"cv", Field::cache, v(Cache::cv)},
    {"wb", Field::cache, v(Cache::wb)},
    {"wt", Field::cache, v(Cache::wt)},
    {"nc", Field::cache, v(Cache::nc)},
    {"weak", Field::semantics, v(Semantics::weak)},
    {"relaxed", Field::semantics, v(Semantics::relaxed)},
    {"acquire", Field::semantics, v(Semantics::acquire)},
    {"release", Field::semantics, v(Semantics::release)},
    {"acq_rel", Field::semantics, v(Semantics::acq_rel)},
    {"sc", Field::semantics, v(Semantics::sc)},
    {"volatile", Field::semantics, v(Semantics::volatile_)},
    {"cta", Field::scope, v(Scope::cta)},
    {"cluster", Field::scope, v(Scope::cluster)},
    {"gpu", Field::scope, v(Scope::gpu)},
    {"gl", Field::scope, v(Scope::gpu)},
    {"sys", Field::scope, v(Scope::sys)},
    {"wrap", Field::shift, v(ShiftMode::wrap)},
    {"clamp", Field::shift, v(ShiftMode::clamp)},
    {"v2", Field::vector, 2},
    {"v4", Field::vector, 4},
    {"ftz", Field::flag, ftz},
    {"sat", Field::flag, sat},
    {"approx", Field::flag, approx},
    {"full", Field::flag, full},
    {"cc", Field::flag, carry_out},
    {"sync", Field::flag, sync},
    {"to", Field::flag, to},
};
// Words whose meaning depends on the opcode.
constexpr Word compare_words[] = {
    {"eq", Field::compare, v(Compare::eq)},    {"ne", Field::compare, v(Compare::ne)},
    {"lt", Field::compare, v(Compare::lt)},    {"le", Field::compare, v(Compare::le)},
    {"gt", Field::compare, v(Compare::gt)},    {"ge", Field::compare, v(Compare::ge)},
    {"lo", Field::compare, v(Compare::lo)},    {"ls", Field::compare, v(Compare::ls)},
    {"hi", Field::compare, v(Compare::hi)},    {"hs", Field::compare, v(Compare::hs)},
    {"equ", Field::compare, v(Compare::equ)},  {"neu", Field::compare, v(Compare::neu)},
    {"ltu", Field::compare, v(Compare::ltu)},  {"leu", Field::compare, v(Compare::leu)},
    {"gtu", Field::compare, v(Compare::gtu)},  {"geu", Field::compare, v(Compare::geu)},
    {"num", Field::compare, v(Compare::num)},  {"nan", Field::compare, v(Compare::nan)},
    {"and", Field::combine, v(Combine::and_)}, {"or", Field::combine, v(Combine::or_)},
    {"xor", Field::combine, v(Combine::xor_)},
};
constexpr Word atomic_words[] = {
    {"add", Field::atomic, v(AtomicOp::add)},   {"min", Field::atomic, v(AtomicOp::min)},
    {"max", Field::atomic, v(AtomicOp::max)},   {"inc", Field::atomic, v(AtomicOp::inc)},
    {"dec", Field::atomic, v(AtomicOp::dec)},   {"and", Field::atomic, v(AtomicOp::and_)},
    {"or", Field::atomic, v(AtomicOp::or_)},    {"xor", Field::atomic, v(AtomicOp::xor_)},
    {"exch", Field::atomic, v(AtomicOp::exch)}, {"cas", Field::atomic, v(AtomicOp::cas)},
};
constexpr Word shuffle_words[] = {{"up", Field::shuffle, v(ShuffleMode::up)},
                                  {"down", Field::shuffle, v(ShuffleMode::down)},
                                  {"bfly", Field::shuffle, v(ShuffleMode::bfly)},
                                  {"idx", Field::shuffle, v(ShuffleMode::idx)}};
constexpr Word vote_words[] = {{"all", Field::vote, v(VoteMode::all)},
                               {"any", Field::vote, v(VoteMode::any)},
                               {"uni", Field::vote, v(VoteMode::uni)},
                               {"ballot", Field::vote, v(VoteMode::ballot)}};
constexpr Word part_words[] = {{"lo", Field::part, v(MulPart::lo)}, {"hi", Field::part, v(MulPart::hi)}};
constexpr Word flow_words[] = {{"uni", Field::flag, uni}};

std::span<const Word> own_words(Opcode op) {
  switch (op) {
    case Opcode::setp:
    case Opcode::set: return compare_words;
    case Opcode::atom:
    case Opcode::red:
    case Opcode::redux: return atomic_words;
    case Opcode::shfl: return shuffle_words;
    case Opcode::vote: return vote_words;
    case Opcode::bra:
    case Opcode::brx:
    case Opcode::call:
    case Opcode::ret: return flow_words;
    default: return part_words;
  }
}

const Word* find_word(std::span<const Word> table, std::string_view text) {
  for (const Word& w : table)
    if (w.text == text) return &w;
  return nullptr;
}

// Opcodes, types and the words that all opcodes share, by their texts; made once, on first use.
struct Vocabulary {
  StringTable opcodes, types, shared;
  std::vector<uint32_t> dotted;  // opcodes whose mnemonic has a dot
  StringTable dotted_bases;      // what stands before it
  Vocabulary() {
    for (uint32_t k = 0; k < opcode_count; ++k) {
      const std::string_view name = opcode_name(static_cast<Opcode>(k));
      opcodes[name] = k;
      const size_t dot = name.find('.');
      if (dot != std::string_view::npos) dotted.push_back(k), dotted_bases[name.substr(0, dot)] = 1;
    }
    for (uint32_t t = 1; t <= static_cast<uint32_t>(Type::f64); ++t) types[type_name(static_cast<Type>(t))] = t;
    for (uint32_t k = 0; k < std::size(words); ++k) shared[words[k].text] = k;
  }
  Type type(std::string_view text) const {
    const uint32_t t = types.get(text);
    return t == UINT32_MAX ? Type::none : static_cast<Type>(t);
  }
  const Word* word(std::string_view text) const {
    const uint32_t k = shared.get(text);
    return k == UINT32_MAX ? nullptr : &words[k];
  }
};
const Vocabulary& vocabulary() {
  static const Vocabulary all;
  return all;
}

// False when a modifier of that group is there already.
bool apply(Modifiers& m, const Word& w) {
  auto once = [&](auto& field) {
    bool fresh = static_cast<uint8_t>(field) == 0;
    field = static_cast<std::remove_reference_t<decltype(field)>>(w.value);
    return fresh;
  };
  switch (w.field) {
    case Field::rounding: return once(m.rounding);
    case Field::compare: return once(m.compare);
    case Field::combine: return once(m.combine);
    case Field::part: return once(m.part);
    case Field::space: {
      bool fresh = m.space == Space::generic;
      m.space = static_cast<Space>(w.value);
      return fresh;
    }
    case Field::cache:
      // ld.global.ca.nc: the non-coherent path wins, the other is a hint.
      if (m.cache == Cache::nc && w.value <= v(Cache::cs)) return true;
      if (w.value == v(Cache::nc) && m.cache <= Cache::cs) {
        m.cache = Cache::nc;
        return true;
      }
      return once(m.cache);
    case Field::semantics: return once(m.semantics);
    case Field::scope: return once(m.scope);
    case Field::atomic: return once(m.atomic);
    case Field::shuffle: return once(m.shuffle);
    case Field::vote: return once(m.vote);
    case Field::shift: return once(m.shift);
    case Field::vector: {
      bool fresh = m.vector == 1;
      m.vector = w.value;
      return fresh;
    }
    case Field::flag: break;
  }
  bool was = false;
  switch (w.value) {
    case ftz: was = m.ftz, m.ftz = true; break;
    case sat: was = m.sat, m.sat = true; break;
    case approx: was = m.approx, m.approx = true; break;
    case full: was = m.full, m.full = true; break;
    case carry_out: was = m.carry_out, m.carry_out = true; break;
    case sync: was = m.sync, m.sync = true; break;
    case uni: was = m.uni, m.uni = true; break;
    case to: was = m.to, m.to = true; break;
  }
  return !was;
}

Mnemonic refuse(std::string_view kind, std::string problem) {
  Mnemonic r;
  r.kind = kind;
  r.problem = std::move(problem);
  return r;
}

// Barriers of a block have two names and may say that they are of the block: barrier.cta.sync, and barrier.red.and.aligned.pred for
// bar.red.and.pred. Empty when there is no other name.
std::string block_barrier_name(std::string_view text) {
  if (!text.starts_with("bar")) return {};
  std::string name(text);
  const auto drop = [&](std::string_view what) {
    const size_t at = name.find(what);
    if (at == std::string::npos || (at + what.size() < name.size() && name[at + what.size()] != '.')) return false;
    name.erase(at, what.size());
    return true;
  };
  const bool is_barrier = text.starts_with("barrier.");
  if (is_barrier || text.starts_with("bar.")) drop(".cta");
  if (is_barrier && (name.starts_with("barrier.red.") || name.starts_with("barrier.arrive.")) && drop(".aligned"))
    name.erase(3, 4);
  return name;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('.', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

// A video instruction, whose suffixes ptxas takes in any order, in that of the rows. Empty: it is none.
std::string video_in_order(std::string_view text) {
  if (text[0] != 'v' || text.starts_with("vote")) return {};
  std::vector<std::string_view> words = words_of(text);
  const auto rank = [](std::string_view w) {
    if (w.size() == 3 && (w[0] == 'u' || w[0] == 's') && w != "sat") return 0;
    if (w == "add" || w == "min" || w == "max") return 4;
    return w == "po" ? 1 : w == "sat" ? 2 : 3;
  };
  std::stable_sort(words.begin() + 1, words.end(),
                   [&](std::string_view a, std::string_view b) { return rank(a) < rank(b); });
  return fmt::format("{}", fmt::join(words, "."));
}

// Modes of several words, which ptxas takes in any order and between others: bar.red.u32.popc, cp.async.shared.global.ca,
// ldmatrix.aligned.m8n8.sync.x2. The text with the words of the longest mode that it has in their order; types and state spaces
// stand as they do there, for these ptxas tells apart by their order. Empty: it has no such mode.
std::string modes_in_order(std::string_view text) {
  const Vocabulary& known = vocabulary();
  const std::vector<std::string_view> words = words_of(text);
  const auto is_placed = [&](std::string_view w) {
    const Word* word = known.word(w);
    return known.type(w) != Type::none || (word && word->field == Field::space);
  };
  std::string longest;
  size_t most = 0;
  for (uint32_t k = 0; k < opcode_count; ++k) {
    const Opcode op = static_cast<Opcode>(k);
    const std::string_view name = opcode_name(op);
    if (!text.starts_with(name.substr(0, name.find('.'))) || words_of(name)[0] != words[0]) continue;
    for (const Mode& m : modes(op)) {
      const std::string wanted = fmt::format("{}.{}", name, m.text);
      const std::vector<std::string_view> first = words_of(wanted);
      if (first.size() <= most || first.size() > words.size()) continue;
      std::vector<std::string_view> rest = words;
      std::vector<size_t> places;
      for (std::string_view w : first) {
        const auto at = std::find(rest.begin(), rest.end(), w);
        if (at == rest.end()) break;
        if (is_placed(w)) places.push_back(static_cast<size_t>(at - rest.begin()));
        *at = {};  // its place stays
      }
      const size_t found = static_cast<size_t>(std::count(rest.begin(), rest.end(), std::string_view()));
      if (found != first.size() || !std::is_sorted(places.begin(), places.end())) continue;
      std::erase(rest, std::string_view());
      most = first.size();
      longest = wanted;
      for (std::string_view w : rest) longest.append(".").append(w);
    }
  }
  return longest == text ? std::string() : longest;
}

// What old modules leave unsaid (PTX ISA, "mad" and "Semantics of floating-point instructions for sm_1x"; measured with ptxas 11.8):
// mad.f32 without a rounding, before PTX 4.0 or for sm_1x, fuses and rounds as .rn does; for sm_1x f32 has no subnormal numbers,
// but where PTX 1.4 converts to 64 bits or from f64.
void add_implied(Instruction& i, uint32_t version, uint32_t target) {
  if (i.op == Opcode::mad && i.type == Type::f32 && i.mods.rounding == Rounding::none && (version < 40 || target < 20))
    i.mods.rounding = Rounding::rn;
  if (target >= 20 || (i.type != Type::f32 && i.type2 != Type::f32) || i.mods.ftz) return;
  if (version < 20 && i.op == Opcode::cvt && (type_bytes(i.type) == 8 || i.type2 == Type::f64)) return;
  i.mods.ftz = std::ranges::any_of(forms(i.op), [&](const Form& f) {
    return (f.types & type_bit(i.type)) && (f.types2 & type_bit(i.type2)) && (f.allowed >> modifier::ftz & 1);
  });
}

}  // namespace

// Modes 128 and up of cp.async, by twos.
static constexpr std::string_view prefetched[] = {"L2::64B", "L2::128B", "L2::256B"};

Type type_named(std::string_view name) { return vocabulary().type(name); }

static Mnemonic read_in_order(std::string_view text, uint32_t version, uint32_t target) {
  Mnemonic result;
  size_t end = text.find('.');
  std::string_view base = text.substr(0, end);
  const Vocabulary& known_words = vocabulary();
  size_t op = std::min<size_t>(known_words.opcodes.get(base), opcode_count);
  const bool dotted = known_words.dotted_bases.get(base) != UINT32_MAX;
  for (uint32_t k : dotted ? known_words.dotted : std::vector<uint32_t>()) {  // mbarrier.try_wait: a row's whole name
    const std::string_view name = opcode_name(static_cast<Opcode>(k));
    if (name.size() > base.size() && text.starts_with(name) && (text.size() == name.size() || text[name.size()] == '.'))
      op = k, base = name, end = text.size() == name.size() ? std::string_view::npos : name.size();
  }
  if (op == opcode_count) {
    if (std::find(std::begin(unsupported_opcodes), std::end(unsupported_opcodes), base) !=
        std::end(unsupported_opcodes))
      return refuse("unsupported", fmt::format("unsupported opcode `{}`", base));
    std::vector<std::string_view> known;
    for (size_t k = 0; k < opcode_count; ++k) known.push_back(opcode_name(static_cast<Opcode>(k)));
    std::string_view near = did_you_mean(base, known);
    return refuse("unknown-opcode", near.empty() ? fmt::format("unknown opcode `{}`", base)
                                                 : fmt::format("unknown opcode `{}`, did you mean `{}`?", base, near));
  }
  Instruction& i = result.instruction;
  i.op = static_cast<Opcode>(op);
  while (end != std::string_view::npos) {
    std::string_view rest = text.substr(end + 1);
    const Mode* mode = nullptr;
    for (const Mode& m : modes(i.op))
      if (rest.starts_with(m.text) && (rest.size() == m.text.size() || rest[m.text.size()] == '.')) mode = &m;
    size_t length = mode ? mode->text.size() : std::min(rest.find('.'), rest.size());
    std::string_view word = rest.substr(0, length);
    end = length < rest.size() ? end + 1 + length : std::string_view::npos;
    if (mode) {
      if (i.mods.mode != 0)
        return refuse("bad-modifier", fmt::format("`.{}` does not go with the other modifiers of `{}`", word, text));
      i.mods.mode = mode->value;
      continue;
    }
    if (Type t = known_words.type(word); t != Type::none) {
      if (i.type == Type::none)
        i.type = t;
      else if (i.type2 == Type::none)
        i.type2 = t;
      else
        return refuse("bad-modifier", fmt::format("`{}` has more than two types", text));
      continue;
    }
    // No address in another block's shared memory can be had: mapa is refused.
    if (word == "shared::cluster" && target >= 90) word = "shared";
    const Word* w = find_word(own_words(i.op), word);
    if (!w) w = known_words.word(word);
    if (!w) {
      // Behind .L2::cache_hint or .shared::cta, which is what cp.async of the same name without them does.
      if (const size_t size = std::ranges::find(prefetched, word) - std::begin(prefetched);
          is_copy(i) && size < std::size(prefetched) && (i.mods.mode == 1 || i.mods.mode == 2)) {
        i.mods.mode = static_cast<uint8_t>(128 + 2 * size + i.mods.mode - 1);
        continue;
      }
      // Cache hints that change no value.
      if (word.starts_with("L1::evict_") || word == "L1::no_allocate" || word == "L2::64B" || word == "L2::128B" ||
          word == "L2::256B")
        continue;
      const bool accesses = i.op == Opcode::ld || i.op == Opcode::st;
      if (word == "L2::cache_hint" && (accesses || i.op == Opcode::atom || i.op == Opcode::red || i.op == Opcode::cp ||
                                       i.op == Opcode::cp_async_bulk)) {
        result.policy = true;
        continue;
      }
      if (word == "mmio" && accesses) continue;  // with .relaxed.sys, whose accesses are made as they are written
      if (word == "f32x2")
        return refuse("unsupported", fmt::format("unsupported `{}.f32x2`, which needs .target sm_100 or higher", base));
      return refuse("unsupported", fmt::format("unsupported modifier `.{}` of `{}`", word, base));
    }
    if (!apply(i.mods, *w))
      return refuse("bad-modifier", fmt::format("`.{}` does not go with the other modifiers of `{}`", word, text));
    // Of accesses to memory, a cluster is no more than the GPU.
    if (i.mods.scope == Scope::cluster && target >= 90 &&
        (i.op == Opcode::ld || i.op == Opcode::st || i.op == Opcode::atom || i.op == Opcode::red ||
         i.op == Opcode::fence || is_barrier_object(i)))
      i.mods.scope = Scope::gpu;
    if (i.mods.scope == Scope::cluster)
      return refuse("unsupported", fmt::format("unsupported modifier `.cluster` of `{}`", base));
  }
  add_implied(i, version, target);
  if ((i.op == Opcode::shfl || i.op == Opcode::vote) && !i.mods.sync) i.mods.sync = result.rewritten = true;
  const bool accesses = i.op == Opcode::ld || i.op == Opcode::ldu || i.op == Opcode::st;
  if (i.type == Type::b128 && i.mods.vector == 1 && (accesses || i.op == Opcode::mov)) {
    i.type = Type::b64, i.mods.vector = accesses ? 2 : 1;
    result.rewritten = true;
  }
  if (i.type == Type::b128 && i.op == Opcode::atom) return refuse("unsupported", "unsupported type .b128 of `atom`");
  if (i.op == Opcode::fence && i.mods.scope != Scope::none && i.mods.semantics == Semantics::none)
    i.mods.semantics = Semantics::acq_rel;
  if ((i.op == Opcode::atom || i.op == Opcode::red) && i.mods.vector > 1 && i.mods.space != Space::shared &&
      is_floating(i.type) && target >= 90) {
    result.elements = i.mods.vector, i.mods.vector = 1;
    result.rewritten = true;
  }
  result.rewritten |= i.op == Opcode::call || i.op == Opcode::ret;
  if (i.op == Opcode::mov && i.mods.vector > 1) i.mods.vector = 1, result.rewritten = true;
  result.rewritten |= moves_matrices(i);
  result.rewritten |= is_copy(i) || is_video(i.op);
  result.simple = !result.policy && !result.rewritten && i.op != Opcode::call;
  return result;
}

Mnemonic read_mnemonic(std::string_view text, uint32_t version, uint32_t target) {
  const std::string barrier = block_barrier_name(text);
  if (!barrier.empty()) text = barrier;
  const std::string video = video_in_order(text);
  if (!video.empty()) text = video;
  Mnemonic read = read_in_order(text, version, target);
  if (read.problem.empty()) return read;
  const std::string ordered = modes_in_order(text);
  if (ordered.empty()) return read;
  Mnemonic other = read_in_order(ordered, version, target);
  return other.problem.empty() ? other : read;
}

}  // namespace rndn::ptx
