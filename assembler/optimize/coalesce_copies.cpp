// Copies within a block disappear: either the instruction that makes the source writes the destination itself, or the readers of the destination
// read the source.
//
// Input and output: functions over virtual registers, with their survey, which is kept up to date. Selection copies words in and out of 64-bit
// values, since each PTX instruction has registers of its own; the allocator cannot give both ends one register when one is half of a pair.
//   Into the source's definition: the source has one definition, of one word, and this reader; from there to the copy nothing reads or writes the
//   destination; both run under the same guard, which stays as it is.
//   Into the readers: the destination has one definition; all that read it, as a single word, follow in the block, before the source changes.
// Cost: O(copies x length of the block), on lists of units.
//
// Not for Pascal, where it costs as much as it saves: pairs whose halves are written earlier take 5 % more registers, and code becomes 5 % shorter
// (tests/assembler/quality.tsv).
// Left out: readers in other blocks, pairs copied as a whole.
#include <algorithm>

#include "assembler/optimize/optimize.h"

namespace rndn::assembler {
namespace {


class Copies {
 public:
  Copies(Function& f, Survey& survey) : f_(f), uses_(survey.units) {}

  void run() {
    for (BlockId b : f_.layout) {
      std::vector<InstId>& code = f_.blocks[b].code;
      size_t kept = 0;
      for (size_t at = 0; at < code.size(); ++at) {
        const Facts& x = f_.facts[index(code[at])];
        // What is dropped stays in place, as itself, until the block is done: the places before `kept` are in order.
        if (x.copies && is_copy(x) &&
            (into_definition({code.data(), kept}, b, code[at], x) ||
             into_readers({code.data() + at + 1, code.size() - at - 1}, x)))
          continue;
        code[kept++] = code[at];
      }
      code.resize(kept);
    }
  }

 private:
  uint32_t unit(Range r) const { return f_.units.of(r.file(), r.reg()); }

  // From one virtual register to another.
  bool is_copy(const Facts& x) const {
    const Range from = x.ranges[0], to = x.ranges[x.read_count];
    return x.read_count == 1u + x.guarded && x.count == x.read_count + 1 && from.file() == Range::gpr &&
           from.width() == 1 && from.reg() >= isa::first_virtual && to.reg() >= isa::first_virtual && !x.pinned;
  }
  bool same_guard(InstId a, InstId b) const {
    const isa::Instruction &x = f_[a].sass, &y = f_[b].sass;
    return x.guard == y.guard && x.guard_negated == y.guard_negated;
  }
  uint32_t* find(const uint32_t* from, const uint32_t* to, uint32_t u) const {
    for (; from != to; ++from)
      if ((*from & ~Units::lasts) == u) return const_cast<uint32_t*>(from);
    return nullptr;
  }

  bool into_definition(std::span<const InstId> before, BlockId block, InstId copy, const Facts& x) {
    const uint32_t from = unit(x.ranges[0]), to = unit(x.ranges[x.read_count]);
    UnitUse& source = uses_[from];
    if (source.several || source.readers != 1 || source.inst == nobody || source.block != index(block)) return false;
    const InstId definition{source.inst};
    Facts& d = f_.facts[source.inst];
    if (!same_guard(definition, copy)) return false;
    const uint32_t guard = x.guarded ? f_.units.of(Range::predicate, f_[copy].sass.guard) : nobody;
    const auto write = std::find_if(d.ranges.begin() + d.read_count, d.ranges.begin() + d.count, [&](Range r) {
      return r.file() == Range::gpr && r.width() == 1 && r.reg() >= isa::first_virtual && unit(r) == from;
    });
    if (write == d.ranges.begin() + d.count) return false;
    for (size_t k = before.size();;) {
      if (k-- == 0) return false;  // the definition is behind the copy
      const Units::List list = f_.units.of(before[k]);
      if (find(list.writes, list.end, to) || (guard != nobody && find(list.writes, list.end, guard))) return false;
      if (before[k] == definition) break;
      if (find(list.reads, list.writes, to)) return false;
    }
    const Units::List list = f_.units.of(definition);
    const bool temporary = f_.gprs[to - f_.units.first_gpr].temporary;
    *find(list.writes, list.end, from) = to | (d.guarded && !temporary ? Units::lasts : 0);
    const uint32_t reg = x.ranges[x.read_count].reg();
    write->set_reg(reg);
    f_[definition].sass.operands[write->operand()].reg = reg;
    if (uses_[to].inst == index(copy)) uses_[to].inst = index(definition);
    source = {};
    return true;
  }

  bool into_readers(std::span<const InstId> behind, const Facts& x) {
    const uint32_t from = unit(x.ranges[0]), to = unit(x.ranges[x.read_count]);
    UnitUse& destination = uses_[to];
    if (x.guarded || destination.several || f_.gprs[from - f_.units.first_gpr].temporary) return false;
    uint32_t left = destination.readers;
    size_t end = 0;
    for (; left > 0; ++end) {
      if (end == behind.size()) return false;
      const Units::List list = f_.units.of(behind[end]);
      const uint32_t reads = static_cast<uint32_t>(std::count(list.reads, list.writes, to));
      if (reads > 0) {
        if (!reads_words(f_.facts[index(behind[end])], to)) return false;
        left -= reads;
      }
      if (left > 0 && find(list.writes, list.end, from)) return false;
    }
    const uint32_t reg = x.ranges[0].reg();
    for (InstId i : behind.first(end)) {
      const Units::List list = f_.units.of(i);
      if (!find(list.reads, list.writes, to)) continue;
      std::replace(const_cast<uint32_t*>(list.reads), const_cast<uint32_t*>(list.writes), to, from);
      Facts& reader = f_.facts[index(i)];
      for (uint32_t k = 0; k < reader.read_count; ++k) {
        Range& r = reader.ranges[k];
        if (r.file() != Range::gpr || r.reg() < isa::first_virtual || unit(r) != to) continue;
        r.set_reg(reg);
        f_[i].sass.operands[r.operand()].reg = reg;
      }
      reader.crosses |= x.crosses;
    }
    uses_[from].readers += destination.readers - 1;
    destination = {};
    return true;
  }

  // Whether all that the instruction reads of the unit is operands of one word that it does not write.
  bool reads_words(const Facts& x, uint32_t u) const {
    for (Range r : x.reads()) {
      if (r.file() != Range::gpr || r.reg() < isa::first_virtual) continue;
      const uint32_t first = unit(r);
      if (u < first || u >= first + r.width()) continue;
      if (r.width() != 1) return false;
      for (Range w : x.writes())
        if (w.operand() == r.operand()) return false;
    }
    return true;
  }

  Function& f_;
  std::span<UnitUse> uses_;
};

}  // namespace

void coalesce_copies(Function& f, Survey& survey) { Copies(f, survey).run(); }

}  // namespace rndn::assembler
