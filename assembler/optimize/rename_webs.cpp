// Splitting: a value that a block writes several times becomes several values, one for each web of writes and their readers.
//
// Input and output: functions over virtual registers with their liveness, which stays right: what is alive across blocks keeps its name. PTX that was
// written by hand, or made from a template, uses a register again for the next intermediate result. Then every order of the code keeps the order of these
// writes (backend/schedule_for_pressure.cpp), though nothing else asks for it.
//
// Algorithm: renaming of the webs within a block (Muchnick, "Advanced Compiler Design and Implementation", 1997, 16.3.3). Backwards, a write is the
// beginning of a web where all units of its value are dead before it. Of the webs of a value in a block, the last keeps the name if it is alive at the end,
// the first if it has no beginning in the block; all others get names of their own.
// Cost: O(operands).
//
// Left out: webs across blocks, predicates, pairs whose halves are written while the other half still lives (sums into themselves).
#include <algorithm>

#include "assembler/machine/operands.h"
#include "assembler/optimize/optimize.h"

namespace rndn::assembler {
namespace {


void rename(Function& f, InstId i, Range& r, uint32_t reg) {
  r.set_reg(reg);
  f[i].sass.operands[r.operand()].reg = reg;
}

class Splitter {
 public:
  Splitter(Function& f, const Liveness& live) : f_(f), live_(live), units_(f.units) {}

  std::span<const Renamed> run() {
    for (BlockId b : f_.layout) {
      if (!writes_again(b)) continue;
      begun_.clear();
      walk(b, false);
      if (std::ranges::any_of(begun_.all(), [&](uint32_t v) { return value_[v].webs > 1; })) walk(b, true);
      for (uint32_t v : begun_.all()) value_[v] = {};
    }
    return renamed_.all();
  }

 private:
  // Of a value, by its first unit, in the block.
  struct Value {
    uint32_t webs = 0;       // that begin; from the second walk on, those that are left
    uint32_t name = nobody;  // register of the web; nobody: the value's own
  };

  bool writes_again(BlockId b) {
    bool again = false;
    for (InstId i : f_.blocks[b].code) {
      const auto [reads, writes, end] = units_.of(i);
      for (const uint32_t* w = writes; w != end; ++w) {
        if (*w & Units::lasts || !units_.is_gpr(*w)) continue;
        again |= written_[*w] == index(b);
        written_[*w] = index(b);
      }
    }
    return again;
  }

  uint32_t value_of(uint32_t unit) const { return f_.gprs[unit - units_.first_gpr].first; }
  bool is_alive(uint32_t v) const {
    const auto first = alive_.begin() + units_.first_gpr + v;
    return std::any_of(first, first + f_.gprs[v].width, [](bool x) { return x; });
  }

  // From the end of the block to its beginning: counts the webs that begin, or gives them their names.
  void walk(BlockId b, bool names) {
    const std::vector<InstId>& code = f_.blocks[b].code;
    for (uint32_t u : live_.out(b)) alive_[u] = true;
    if (names)
      for (uint32_t v : begun_.all())
        if (value_[v].webs > 1 && !is_alive(v)) begin_name(v);
    for (size_t c = code.size(); c-- > 0;) {
      const Facts& x = f_.facts[index(code[c])];
      const auto [reads, writes, end] = units_.of(code[c]);
      if (names) give_names(code[c], x.read_count, x.count);
      for (const uint32_t* w = writes; w != end; ++w) alive_[*w & ~Units::lasts] = (*w & Units::lasts) != 0;  // as compute_liveness says
      for (const uint32_t* w = writes; w != end; ++w) {
        if (*w & Units::lasts || !units_.is_gpr(*w)) continue;
        const uint32_t v = value_of(*w);
        if ((w != writes && units_.is_gpr(w[-1]) && value_of(w[-1]) == v) || is_alive(v) || updates(x, v)) continue;
        if (f_.gprs[v].unspillable) continue;  // other places name this register
        if (names) {
          value_[v].name = nobody;
          if (--value_[v].webs > 0) begin_name(v);
        } else if (value_[v].webs++ == 0) {
          begun_.push(v);
        }
      }
      if (names) give_names(code[c], 0, x.read_count);
      for (const uint32_t* r = reads; r != writes; ++r) alive_[*r] = true;
    }
    for (uint32_t u : live_.out(b)) alive_[u] = false;
    for (InstId i : code) {
      const auto [reads, writes, end] = units_.of(i);
      for (const uint32_t* u = reads; u != end; ++u) alive_[*u & ~Units::lasts] = false;
    }
  }

  void begin_name(uint32_t v) { value_[v].name = new_gpr(f_, f_.gprs[v].width, f_.gprs[v].temporary); }
  // Whether an operand is both read and written.
  bool updates(const Facts& x, uint32_t v) const {
    for (Range w : x.writes())
      for (Range r : x.reads())
        if (r.operand() == w.operand() && r.file() == Range::gpr && r.reg() >= isa::first_virtual &&
            f_.gprs[r.reg() - isa::first_virtual].first == v)
          return true;
    return false;
  }
  void give_names(InstId i, uint32_t from, uint32_t to) {
    for (uint32_t k = from; k < to; ++k) {
      Range& r = f_.facts[index(i)].ranges[k];
      if (r.file() != Range::gpr || r.reg() < isa::first_virtual) continue;
      const uint32_t unit = r.reg() - isa::first_virtual, v = f_.gprs[unit].first;
      if (v >= value_.size() || value_[v].name == nobody) continue;
      renamed_.push({i, k, r.reg()});
      rename(f_, i, r, value_[v].name + unit - v);
    }
  }

  Function& f_;
  const Liveness& live_;
  const Units& units_;
  std::span<bool> alive_ = f_.arena->make_span<bool>(units_.count);
  std::span<uint32_t> written_ = f_.arena->make_span<uint32_t>(units_.count, nobody);  // the last block that writes the unit
  std::span<Value> value_ = f_.arena->make_span<Value>(f_.gprs.size());
  ArenaList<uint32_t> begun_{*f_.arena, 64};
  ArenaList<Renamed> renamed_{*f_.arena, 64};
};

}  // namespace

std::span<const Renamed> rename_webs(Function& f, const Liveness& live) {
  const std::span<const Renamed> renamed = Splitter(f, live).run();
  if (!renamed.empty()) list_units(f);
  f.units.count = f.units.first_gpr + static_cast<uint32_t>(f.gprs.size());
  return renamed;
}

void undo_rename_webs(Function& f, std::span<const Renamed> renamed) {
  for (const Renamed& x : renamed) rename(f, x.inst, f.facts[index(x.inst)].ranges[x.range], x.reg);
  if (!renamed.empty()) list_units(f);
}

}  // namespace rndn::assembler
