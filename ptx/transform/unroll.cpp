// Unrolls small counted loops, so that loads of several iterations are under way at once and fewer instructions count and branch.
//
// Which: innermost loops of contiguous code with their test at the end, `top: ..; @p bra top`, that nothing enters but through `top` and nothing leaves but
// through the test. A counter i changes by a literal c once per iteration, p compares it behind that with n, which is a literal or not written in the loop.
// Left alone: loops under .pragma "nounroll", and loops with what waits for other lanes, reads clocks, ends threads or is not known to be harmless
// (`may_be_copied`).
//
//   top:                 the guard: when the tests behind the next U-1 iterations are all going to say "go on" ..
//     @!q bra rest
//   main:                .. U copies of the body run without them
//     ..
//     @q bra main        the same question
//     @!p bra exit       the last copy's own test
//   rest:                the loop as it was, for the iterations that are left
//     ..
//     @p bra rest
//   exit:
//
// The question, for any i and n of w bits, since PTX arithmetic wraps. With K = U-1 and i_k = i + k*c mod 2^w, the test behind iteration k compares i_k.
//   !=      i_k meets n for some k in 1..K exactly if the distance d from i to n in the direction of c, n-i or i-n mod 2^w, is k*|c|, for K*|c| < 2^w.
//           So d > K*|c| (unsigned) is enough. Whether c divides d does not matter.
//   < <=    (c > 0) m = n - K*c as an integer, where it is a number of the type: if i < m, all i_k <= i + K*c < n are such numbers, too, and none wraps. Where m is
//           no number of the type, no iteration runs in `main`. > and >= likewise with c < 0; a test against the direction of the steps is left alone.
//
// Linear values (Aho, Lam, Sethi, Ullman: Compilers, 9.1: induction variables): i, pointers, and what is a copy of them or differs by a literal. In the
// copies they are a register that changes at the end of `main` alone, plus a literal, which goes into the offset of an address where it can. What an iteration
// writes before it reads it has a register of its own in each copy (but the last, if it is read behind the loop), so that copies do not wait for each other;
// anything else keeps its name, which makes the copies the iterations they stand for, whatever the instructions mean.
//
// Invariant: the result has the meaning of the input for all values, and passes the PTX verifier.
// Cost: linear in the function and in the result; a function without branches back is only looked through.
// Left out: loops that are left in the middle, steps that are no literals, tests of the counter before its step.
#include "ptx/transform/unroll.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <vector>

#include "ptx/opcodes.h"
#include "ptx/traits.h"

namespace rndn::ptx {
namespace {

using ptx::Compare;
using ptx::LabelId;
using ptx::Opcode;
using ptx::Operand;
using ptx::RegisterId;
using ptx::Type;

// ptxas 13.0 unrolls the loops of ordinary programs by four up to about this many PTX instructions in the copies. Loads of one copy mostly cannot go
// before stores of another: what there is to gain from loops that write memory is their overhead.
constexpr uint32_t copies = 4, most_instructions = 192, most_with_stores = 128;
constexpr int64_t longest_step = int64_t{1} << 24;  // steps of counters: sums of a few of them do not overflow
constexpr int64_t longest_offset = 1 << 23;         // of addresses

int64_t wrapped(int64_t v, uint32_t bytes) {
  const uint32_t unused = 64 - 8 * bytes;
  return static_cast<int64_t>(static_cast<uint64_t>(v) << unused) >> unused;
}
int64_t sum(int64_t a, int64_t b, uint32_t bytes) {
  return wrapped(static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)), bytes);
}

// n * a mod 2^64
int64_t times(int64_t n, int64_t a) {
  return static_cast<int64_t>(static_cast<uint64_t>(n) * static_cast<uint64_t>(a));
}

// How the loop goes on: `counter` `compare` `bound`, of `type`.
struct Loop {
  uint32_t begin = 0, branch = 0, test = 0;  // instructions: the first, the branch back, the comparison
  RegisterId counter{};
  int64_t step = 0;
  Compare compare{};
  Type type{};
  Operand bound;
  bool swapped = false;  // the comparison names the bound first
};

Compare swapped(Compare c) {
  switch (c) {
    case Compare::lt: return Compare::gt;
    case Compare::le: return Compare::ge;
    case Compare::gt: return Compare::lt;
    case Compare::ge: return Compare::le;
    default: return c;
  }
}
Compare negated(Compare c) {
  switch (c) {
    case Compare::eq: return Compare::ne;
    case Compare::ne: return Compare::eq;
    case Compare::lt: return Compare::ge;
    case Compare::le: return Compare::gt;
    case Compare::gt: return Compare::le;
    case Compare::ge: return Compare::lt;
    default: return Compare::none;
  }
}
// .lo and so on are .lt and so on of unsigned types, which alone have them.
Compare plain(Compare c) {
  switch (c) {
    case Compare::lo: return Compare::lt;
    case Compare::ls: return Compare::le;
    case Compare::hi: return Compare::gt;
    case Compare::hs: return Compare::ge;
    default: return c;
  }
}

// A register's value as one that a register had when the iteration began, plus a literal.
struct Linear {
  RegisterId root = none<RegisterId>();  // none: not such a value
  int64_t offset = 0;
};

// What is known of a register in the loop that is being looked at.
struct Facts {
  uint32_t loop = 0;  // of which the rest tells; another number: nothing is known
  uint32_t reads = 0;
  uint32_t block = 0;  // in which it has been written whatever way led there
  bool written = false;
  bool sure = false;       // every iteration writes it
  bool carried = false;    // read, perhaps, before the iteration writes it
  bool computed = false;   // written as something that is not linear in a register that is
  bool induction = false;  // changes by `step` per iteration, or not at all
  bool own = false;        // has a register of its own in each copy
  int64_t step = 0;
  Linear value;                             // at the present place
  RegisterId renamed = none<RegisterId>();  // in the present copy
};

class Analysis {
 public:
  explicit Analysis(const ptx::Function& f) : f_(f) {}

  // The loops to unroll, in order. They do not overlap.
  std::vector<Loop> run() {
    std::vector<Loop> found;
    find_candidates();
    if (candidates_.empty()) return found;
    facts_.resize(f_.registers.size());
    for (const Candidate& c : candidates_)
      if (c.fits)
        if (const std::optional<Loop> loop = look_at(c.begin, c.branch)) found.push_back(*loop);
    return found;
  }
  // Looks at one of them again; facts() tells of its registers from then on.
  void look_at(const Loop& loop) { look_at(loop.begin, loop.branch); }
  Facts& facts(RegisterId r) {
    Facts& x = facts_[r];
    if (x.loop != loop_) x = {.loop = loop_, .value = {r, 0}};
    return x;
  }
  const std::vector<RegisterId>& written() const {
    return written_;
  }  // in the loop, in the order of their first writes
  bool is_target(uint32_t k) const { return targets_[k]; }
  bool read_outside(RegisterId r) { return reads_[r] > facts(r).reads; }
  // Follows the linear values through an instruction that every iteration runs. True when it does nothing but write such a value.
  bool follow(const ptx::Instruction& i) {
    const std::optional<Linear> value = linear(i);
    for_each_destination(i, [&](RegisterId r) { facts(r).value = {}; });
    if (!value) return false;
    facts(f_.operand(i, 0).reg_id()).value = *value;
    return true;
  }
  void forget(const ptx::Instruction& i) {
    for_each_destination(i, [&](RegisterId r) { facts(r).value = {}; });
  }
  // Whether copies do without the register: it is where `main` ends, or where someone reads it, computed from one that is.
  bool is_implied(RegisterId r) {
    const Facts& x = facts(r);
    return x.written && (x.induction || (!x.computed && !x.carried));
  }
  template <class F>
  void for_each_destination(const ptx::Instruction& i, F&& visit) const {
    for (uint32_t k = 0; k < i.destination_count; ++k) for_each_register(f_.operand(i, k), visit);
  }

 private:
  struct Candidate {
    uint32_t begin, branch;
    bool fits = true;
  };

  // A look without tables, which tells most loops that are not to be unrolled: the test compares integers, of which one is written there and may have
  // a literal step.
  bool promises(uint32_t begin, uint32_t branch) const {
    const RegisterId p = f_.instructions[branch].guard;
    if (is_none(p) || branch - begin > most_instructions / copies) return false;
    const ptx::Instruction* test = nullptr;
    for (uint32_t k = begin; k < branch; ++k) {
      const ptx::Instruction& i = f_.instructions[k];
      if (i.op != Opcode::bra && !may_be_copied(f_, i)) return false;
      if (i.op == Opcode::setp && f_.operand(i, 0).kind == Operand::reg && f_.operand(i, 0).reg_id() == p) test = &i;
    }
    if (!test || ptx::is_floating(test->type)) return false;
    return std::any_of(&f_.instructions[begin], &f_.instructions[branch], [&](const ptx::Instruction& i) {
      const bool steps = i.op == Opcode::mov ||
                         ((i.op == Opcode::add || i.op == Opcode::sub) && i.operand_count == 3 &&
                          (f_.operand(i, 1).kind == Operand::immediate || f_.operand(i, 2).kind == Operand::immediate));
      return steps && (f_.operand(i, 0) == f_.operand(*test, 1) || f_.operand(i, 0) == f_.operand(*test, 2));
    });
  }

  // Loops without a loop in them: disjoint, in order.
  void find_candidates() {
    const uint32_t n = static_cast<uint32_t>(f_.instructions.size());
    uint32_t behind_last = 0;  // the last branch back
    for (uint32_t k = 0; k < n; ++k) {
      const ptx::Instruction& i = f_.instructions[k];
      if (i.op == Opcode::brx) return candidates_.clear();
      if (i.op != Opcode::bra) continue;
      const uint32_t to = f_.labels[f_.operand(i, 0).label_id()].at;
      if (to > k) continue;
      if (to >= behind_last && promises(to, k)) candidates_.push_back({to, k});
      behind_last = k + 1;
    }
    if (candidates_.empty()) return;
    const auto containing = [&](uint32_t k) -> Candidate* {
      const auto at = std::ranges::lower_bound(candidates_, k, {}, &Candidate::branch);
      return at == candidates_.end() || at->begin > k ? nullptr : &*at;
    };
    targets_.assign(n + 1, false);
    for (const ptx::Label& l : f_.labels) {
      targets_[l.at] = true;
      if (Candidate* c = l.nounroll ? containing(l.at) : nullptr) c->fits &= c->begin != l.at;
    }
    for (uint32_t k = 0; k < n; ++k) {
      if (f_.instructions[k].op != Opcode::bra) continue;
      const uint32_t to = f_.labels[f_.operand(f_.instructions[k], 0).label_id()].at;
      if (Candidate* c = containing(to)) c->fits &= to == c->begin || (k >= c->begin && k <= c->branch);
    }
  }

  template <class F>
  void for_each_register(const Operand& o, F&& visit) const {
    if (o.kind == Operand::reg || o.kind == Operand::address_reg) visit(o.reg_id());
    if (o.kind != Operand::vector) return;
    for (uint32_t e = 0; e < o.count; ++e) {
      const Operand& x = f_.vector_elements[o.id + e];
      if (x.kind == Operand::reg) visit(x.reg_id());
    }
  }
  template <class F>
  void for_each_source(const ptx::Instruction& i, F&& visit) const {
    if (!is_none(i.guard)) visit(i.guard);
    for (uint32_t k = i.destination_count; k < i.operand_count; ++k) for_each_register(f_.operand(i, k), visit);
  }
  void count_reads() {
    if (!reads_.empty()) return;
    reads_.resize(f_.registers.size());
    for (const ptx::Instruction& i : f_.instructions) for_each_source(i, [&](RegisterId r) { ++reads_[r]; });
  }

  // What the instruction writes, when that is a register plus a literal and nothing but the register's declaration tells the two apart.
  std::optional<Linear> linear(const ptx::Instruction& i) {
    if (!is_none(i.guard) || i.destination_count != 1) return std::nullopt;
    const bool move = i.op == Opcode::mov && i.operand_count == 2, add = i.op == Opcode::add;
    if (!move && (!(add || i.op == Opcode::sub) || ptx::is_floating(i.type) || i.mods.sat || i.mods.carry_out))
      return std::nullopt;
    const Operand& to = f_.operand(i, 0);
    const Operand* from = &f_.operand(i, 1);
    int64_t literal = 0;
    if (!move) {
      const Operand* other = &f_.operand(i, 2);
      if (add && from->kind == Operand::immediate) std::swap(from, other);
      if (other->kind != Operand::immediate) return std::nullopt;
      literal = times(add ? 1 : -1, other->value);
    }
    if (to.kind != Operand::reg || from->kind != Operand::reg) return std::nullopt;
    const Type type = f_.registers[to.reg_id()].type;
    if (type == Type::pred || f_.registers[from->reg_id()].type != type) return std::nullopt;
    const Linear& x = facts(from->reg_id()).value;
    if (is_none(x.root)) return std::nullopt;
    return Linear{x.root, sum(x.offset, literal, ptx::type_bytes(type))};
  }

  std::optional<Loop> look_at(uint32_t begin, uint32_t branch) {
    ++loop_;
    written_.clear();
    linear_writes_.clear();
    const ptx::Instruction& back = f_.instructions[branch];
    Loop loop{.begin = begin, .branch = branch, .test = branch};
    Linear compared[2];
    uint32_t joined = begin;  // from there on every iteration comes by
    uint32_t block = 1, weight = 0, tests = 0;
    bool stores = false;
    for (uint32_t k = begin; k < branch; ++k) {
      const ptx::Instruction& i = f_.instructions[k];
      block += targets_[k];
      for_each_source(i, [&](RegisterId r) {
        Facts& x = facts(r);
        ++x.reads;
        x.carried |= !x.sure && x.block != block;
      });
      if (i.op == Opcode::bra) {
        const uint32_t to = f_.labels[f_.operand(i, 0).label_id()].at;
        if (to <= k || to > branch) return std::nullopt;
        joined = std::max(joined, to);
        ++block, ++weight;
        continue;
      }
      if (!may_be_copied(f_, i)) return std::nullopt;
      const bool always = k >= joined && is_none(i.guard);
      ++weight;
      stores |= i.op == Opcode::st || i.op == Opcode::atom || i.op == Opcode::red;
      for_each_destination(i, [&](RegisterId r) {
        Facts& x = facts(r);
        if (!x.written) written_.push_back(r);
        x.written = true;
        x.sure |= always;
        if (is_none(i.guard)) x.block = block;
        if (r != back.guard) return;
        ++tests;
        if (i.op != Opcode::setp || !always || i.operand_count != 3) tests = 2;
        loop.test = k;
        for (uint32_t n = 1; n < 3 && tests == 1; ++n)
          if (f_.operand(i, n).kind == Operand::reg) compared[n - 1] = facts(f_.operand(i, n).reg_id()).value;
      });
      if (always && follow(i)) {
        linear_writes_.push_back({f_.operand(i, 0).reg_id(), facts(f_.operand(i, 0).reg_id()).value.root});
      } else {
        forget(i);
        for_each_destination(i, [&](RegisterId r) { facts(r).computed = true; });
      }
    }
    ++facts(back.guard).reads;
    for (const RegisterId r : written_) {
      Facts& x = facts(r);
      x.induction = !x.computed && x.value.root == r;
      x.step = x.value.offset;
    }
    // What is linear in a register that is none of them is computed, and is then none of them either.
    for (bool changed = true; changed;) {
      changed = false;
      for (const auto& [r, root] : linear_writes_)
        if (!facts(root).induction && (!facts(r).computed || facts(r).induction))
          facts(r).computed = true, facts(r).induction = false, changed = true;
    }
    if (tests != 1 || facts(back.guard).reads != 1 || copies * weight > (stores ? most_with_stores : most_instructions))
      return std::nullopt;
    if (!counted(loop, compared)) return std::nullopt;
    count_reads();
    for (const RegisterId r : written_) {
      Facts& x = facts(r);
      x.own = !x.carried && (x.sure || !read_outside(r));
    }
    return loop;
  }

  // Reads the test: one side is the counter behind its step, the other never changes.
  bool counted(Loop& loop, const Linear (&compared)[2]) {
    const ptx::Instruction& test = f_.instructions[loop.test];
    loop.type = test.type;
    loop.compare = plain(test.mods.compare);
    if (f_.instructions[loop.branch].guard_negated) loop.compare = negated(loop.compare);
    const uint32_t bytes = ptx::type_bytes(test.type);
    if (bytes < 4 || ptx::is_floating(test.type)) return false;
    for (const uint32_t side : {0u, 1u}) {
      const Linear& x = compared[side];
      const Operand& bound = f_.operand(test, 2 - side);
      if (is_none(x.root) || !facts(x.root).induction || x.offset != facts(x.root).step) continue;
      if (bound.kind != Operand::immediate && (bound.kind != Operand::reg || facts(bound.reg_id()).written)) continue;
      loop.counter = x.root, loop.step = x.offset, loop.bound = bound, loop.swapped = side != 0;
      if (loop.swapped) loop.compare = swapped(loop.compare);
      if (loop.step == 0 || loop.step >= longest_step || loop.step <= -longest_step) return false;
      if (loop.compare == Compare::ne) return true;
      const bool up = loop.compare == Compare::lt || loop.compare == Compare::le;
      if (!up && loop.compare != Compare::gt && loop.compare != Compare::ge) return false;
      return up == (loop.step > 0) && (bound.kind != Operand::immediate || main_bound(loop));
    }
    return false;
  }

 public:
  // Of a loop that counts to a literal by an order: m, if it is a number of the type.
  static std::optional<int64_t> main_bound(const Loop& loop) {
    const int64_t way = (copies - 1) * loop.step;
    const uint32_t bytes = ptx::type_bytes(loop.type);
    if (!ptx::is_unsigned(loop.type)) {
      int64_t m = 0;
      if (__builtin_sub_overflow(loop.bound.value, way, &m) || wrapped(m, bytes) != m) return std::nullopt;
      return m;
    }
    const uint64_t largest = UINT64_MAX >> (64 - 8 * bytes), n = static_cast<uint64_t>(loop.bound.value) & largest,
                   m = n - static_cast<uint64_t>(way);
    if (way > 0 ? m > n : m < n || m > largest) return std::nullopt;
    return wrapped(static_cast<int64_t>(m), bytes);
  }

 private:
  const ptx::Function& f_;
  std::vector<Candidate> candidates_;
  std::vector<bool> targets_;
  IdVector<RegisterId, Facts> facts_;
  IdVector<RegisterId, uint32_t> reads_;  // in the function
  uint32_t loop_ = 0;
  std::vector<RegisterId> written_;
  std::vector<std::pair<RegisterId, RegisterId>> linear_writes_;
};

class Unroller {
 public:
  // `to` is a copy of `from`.
  Unroller(const ptx::Function& from, ptx::Function& to, Analysis& analysis) : from_(from), to_(to), a_(analysis) {}

  void run(const std::vector<Loop>& loops) {
    const uint32_t n = static_cast<uint32_t>(from_.instructions.size());
    to_.instructions.clear();
    std::vector<uint32_t> moved(n + 1);  // index of an instruction -> its new one; of a loop's first, of the guard
    auto loop = loops.begin();
    LabelId rest{}, exit{};
    for (uint32_t k = 0; k < n; ++k) {
      moved[k] = here();
      if (loop != loops.end() && k == loop->begin) {
        rest = label(), exit = label();
        unroll(*loop, rest, exit);
        place(rest);
      }
      const ptx::Instruction& i = from_.instructions[k];
      if (loop == loops.end() || k < loop->begin || i.op != Opcode::bra) {
        to_.instructions.push_back(i);
      } else if (k < loop->branch) {
        branch(from_.operand(i, 0).label_id(), i);
      } else {
        branch(rest, i);
        place(exit);
        ++loop;
      }
    }
    moved[n] = here();
    for (uint32_t k = 0; k < from_.labels.size(); ++k) to_.labels[LabelId{k}].at = moved[from_.labels[LabelId{k}].at];
    for (size_t k = 0; k < from_.locations.size(); ++k) to_.locations[k].at = moved[from_.locations[k].at];
  }

 private:
  uint32_t here() const { return static_cast<uint32_t>(to_.instructions.size()); }
  LabelId label() { return to_.labels.add({fmt::format("$unrolled{}", to_.labels.size())}); }
  void place(LabelId l) { to_.labels[l].at = here(); }
  RegisterId fresh(Type type) { return to_.add_register(type, fmt::format("%unrolled{}", to_.registers.size())); }
  static Operand reg(RegisterId r) { return {.kind = Operand::reg, .id = index(r)}; }
  static Operand literal(int64_t value) { return {.kind = Operand::immediate, .value = value}; }
  void add(ptx::Instruction i, std::initializer_list<Operand> operands) {
    i.first_operand = static_cast<uint32_t>(to_.operands.size());
    i.operand_count = static_cast<uint8_t>(operands.size());
    to_.operands.append({operands.begin(), operands.size()});
    to_.instructions.push_back(i);
  }
  // The branch like `i`, or with the opposite sense. That lanes agreed (.uni) in an iteration tells nothing where they may be in different ones: `main` and the
  // loop for the rest have lanes of different bounds.
  void branch(LabelId to, ptx::Instruction i, bool opposite = false) {
    i.mods.uni &= is_none(i.guard);
    i.guard_negated ^= opposite;
    add(i, {{.kind = Operand::label, .id = index(to)}});
  }
  void branch_if(RegisterId p, bool negated, LabelId to) {
    add({.op = Opcode::bra, .guard_negated = negated, .guard = p, .line = line_},
        {{.kind = Operand::label, .id = index(to)}});
  }
  static Type integer(uint32_t bytes) { return bytes == 8 ? Type::s64 : bytes == 4 ? Type::s32 : Type::s16; }
  static Type natural(uint32_t bytes) { return bytes == 8 ? Type::u64 : Type::u32; }
  // to = from + value
  void shifted(RegisterId to, RegisterId from, int64_t value) {
    const uint32_t bytes = ptx::type_bytes(from_.registers[from].type);
    add({.op = Opcode::add, .type = integer(bytes), .destination_count = 1, .line = line_},
        {reg(to), reg(from), literal(value)});
  }
  void compare(RegisterId p, Compare c, Type type, const Operand& a, const Operand& b) {
    ptx::Instruction i{.op = Opcode::setp, .type = type, .destination_count = 1, .line = line_};
    i.mods.compare = c;
    add(i, {reg(p), a, b});
  }

  void unroll(const Loop& loop, LabelId rest, LabelId exit) {
    a_.look_at(loop);
    line_ = from_.instructions[loop.test].line;
    const RegisterId q = fresh(Type::pred);
    const Operand bound = guard(loop, q);
    branch_if(q, true, rest);
    const LabelId main = label();
    place(main);
    computed_.clear();
    for (uint32_t c = 0; c < copies; ++c) copy(loop, c);
    line_ = from_.instructions[loop.test].line;
    for (const RegisterId r : a_.written())
      if (const Facts& x = a_.facts(r); x.induction && x.step != 0)
        shifted(r, r, wrapped(times(copies, x.step), ptx::type_bytes(from_.registers[r].type)));
    ask(loop, q, bound);
    branch_if(q, false, main);
    for (const RegisterId r : a_.written()) {
      const Facts& x = a_.facts(r);
      if (!a_.is_implied(r) || x.induction || !a_.read_outside(r)) continue;
      const uint32_t bytes = ptx::type_bytes(from_.registers[r].type);
      shifted(r, x.value.root, sum(x.value.offset, times(-1, a_.facts(x.value.root).step), bytes));
    }
    const Operand counter = reg(loop.counter);
    const ptx::Instruction& test = from_.instructions[loop.test];
    compare(from_.operand(test, 0).reg_id(), test.mods.compare, test.type, loop.swapped ? loop.bound : counter,
            loop.swapped ? counter : loop.bound);
    branch(exit, from_.instructions[loop.branch], true);
  }

  // q = whether U iterations may run from here without a test between them. Returns what ask() compares with.
  Operand guard(const Loop& loop, RegisterId q) {
    if (loop.compare == Compare::ne || loop.bound.kind == Operand::immediate) {
      const Operand bound = loop.compare == Compare::ne ? loop.bound : literal(*Analysis::main_bound(loop));
      ask(loop, q, bound);
      return bound;
    }
    const uint32_t bytes = ptx::type_bytes(loop.type);
    const bool up = loop.step > 0, is_unsigned = ptx::is_unsigned(loop.type);
    const int64_t way = (copies - 1) * loop.step,
                  least = is_unsigned ? 0 : wrapped(int64_t{1} << (8 * bytes - 1), bytes),
                  most = is_unsigned ? -1 : ~least;
    const RegisterId m = fresh(from_.registers[loop.bound.reg_id()].type);
    shifted(m, loop.bound.reg_id(), wrapped(-way, bytes));
    compare(q, up ? Compare::ge : Compare::le, loop.type, loop.bound, literal(sum(up ? least : most, way, bytes)));
    ptx::Instruction i{.op = Opcode::setp, .type = loop.type, .destination_count = 1, .line = line_};
    i.mods.compare = loop.compare, i.mods.combine = ptx::Combine::and_;
    add(i, {reg(q), reg(loop.counter), reg(m), reg(q)});
    return reg(m);
  }
  void ask(const Loop& loop, RegisterId q, const Operand& bound) {
    if (loop.compare != Compare::ne) return compare(q, loop.compare, loop.type, reg(loop.counter), bound);
    const uint32_t bytes = ptx::type_bytes(loop.type);
    Operand distance = reg(loop.counter);
    if (loop.step > 0 || bound.kind != Operand::immediate || bound.value != 0) {
      const Operand to = reg(fresh(from_.registers[loop.counter].type));
      add({.op = Opcode::sub, .type = integer(bytes), .destination_count = 1, .line = line_},
          {to, loop.step > 0 ? bound : distance, loop.step > 0 ? distance : bound});
      distance = to;
    }
    compare(q, Compare::gt, natural(bytes), distance, literal((copies - 1) * std::abs(loop.step)));
  }

  // Iteration c of `main`.
  void copy(const Loop& loop, uint32_t c) {
    copy_ = c;
    for (const RegisterId r : a_.written()) {
      Facts& x = a_.facts(r);
      x.value = x.induction ? Linear{r, 0} : Linear{};
      const bool last = c + 1 == copies && a_.read_outside(r);
      x.renamed = x.own && !last && !a_.is_implied(r) ? fresh(from_.registers[r].type) : r;
    }
    std::vector<std::pair<uint32_t, LabelId>> labels;  // of what this copy branches to
    uint32_t joined = loop.begin;
    for (uint32_t k = loop.begin;; ++k) {
      if (a_.is_target(k))
        for (const auto& [at, l] : labels)
          if (at == k) place(l);
      always_ = k >= joined;
      if (a_.is_target(k)) std::erase_if(computed_, [](const Computed& x) { return !x.always; });
      if (k == loop.branch) break;
      const ptx::Instruction& i = from_.instructions[k];
      line_ = i.line;
      if (k == loop.test) continue;
      if (i.op == Opcode::bra) {
        const uint32_t to = from_.labels[from_.operand(i, 0).label_id()].at;
        auto at = std::ranges::find(labels, to, &std::pair<uint32_t, LabelId>::first);
        if (at == labels.end()) at = labels.insert(at, {to, label()});
        ptx::Instruction own = i;
        if (!is_none(i.guard)) own.guard = renamed(i.guard);
        branch(at->second, own);
        joined = std::max(joined, to);
        continue;
      }
      if (!writes_implied(i)) copy(i);
      if (always_ && is_none(i.guard))
        a_.follow(i);
      else
        a_.forget(i);
    }
  }

  bool writes_implied(const ptx::Instruction& i) {
    return i.destination_count == 1 && from_.operand(i, 0).kind == Operand::reg &&
           a_.is_implied(from_.operand(i, 0).reg_id());
  }
  void copy(ptx::Instruction i) {
    std::vector<Operand> operands;
    for (uint32_t k = 0; k < i.operand_count; ++k)
      operands.push_back(mapped(from_.operand(i, k), k < i.destination_count));
    if (!is_none(i.guard)) i.guard = renamed(i.guard);
    i.first_operand = static_cast<uint32_t>(to_.operands.size());
    to_.operands.append(operands);
    to_.instructions.push_back(i);
  }
  RegisterId renamed(RegisterId r) {
    const Facts& x = a_.facts(r);
    return x.written ? x.renamed : r;
  }
  Operand mapped(Operand o, bool destination) {
    if (o.kind == Operand::vector) {
      std::vector<Operand> elements;
      for (uint32_t e = 0; e < o.count; ++e) elements.push_back(mapped(from_.vector_elements[o.id + e], destination));
      o.id = static_cast<uint32_t>(to_.vector_elements.size());
      to_.vector_elements.append(elements);
    }
    if (o.kind != Operand::reg && o.kind != Operand::address_reg) return o;
    const Linear x = a_.facts(o.reg_id()).value;
    if (destination || is_none(x.root) || !a_.facts(x.root).induction) {
      o.id = index(renamed(o.reg_id()));
      return o;
    }
    const uint32_t bytes = ptx::type_bytes(from_.registers[x.root].type);
    const int64_t offset = sum(x.offset, times(copy_, a_.facts(x.root).step), bytes);
    const int64_t from_root = sum(o.value, offset, bytes);
    if (o.kind == Operand::address_reg && from_root > -longest_offset && from_root < longest_offset) {
      o.id = index(x.root), o.value = from_root;
    } else {
      o.id = index(computed(x.root, offset));
    }
    return o;
  }
  // The register plus a literal.
  RegisterId computed(RegisterId root, int64_t offset) {
    if (offset == 0) return root;
    for (const Computed& x : computed_)
      if (x.root == root && x.offset == offset) return x.result;
    const RegisterId to = fresh(from_.registers[root].type);
    shifted(to, root, offset);
    computed_.push_back({root, offset, to, always_});
    return to;
  }

  struct Computed {
    RegisterId root;
    int64_t offset;
    RegisterId result;
    bool always;  // else in the present block only
  };

  const ptx::Function& from_;
  ptx::Function& to_;
  Analysis& a_;
  std::vector<Computed> computed_;  // in `main`
  uint32_t line_ = 0, copy_ = 0;
  bool always_ = true;  // the present place is one that every iteration comes by
};

}  // namespace

Result<std::optional<ptx::Module>> unroll(const ptx::Module& module) {
  std::optional<ptx::Module> result;
  for (size_t k = 0; k < module.functions.size(); ++k) {
    const ptx::Function& from = module.functions[k];
    if (!from.is_entry) continue;
    Analysis analysis(from);
    const std::vector<Loop> loops = analysis.run();
    if (loops.empty()) continue;
    if (!result) result = module;
    Unroller(from, result->functions[k], analysis).run(loops);
  }
  return result;
}

}  // namespace rndn::ptx
