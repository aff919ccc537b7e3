// Stall counts and scoreboards of the final stream.
//
// Input: allocated code in its final order with explicit branches. Output: Inst::sass.control of every instruction.
//
// Fixed latencies: inside a block an instruction issues no earlier than each producer's issue plus the distance of isa/latencies.h; the stall of the
// instruction before it makes up the difference. At the end of a block everything in flight is drained, so that no block depends on the times
// of another.
// Variable latencies: a producer sets one of six scoreboards; whoever touches its result first waits for it. Which scoreboards are pending for
// which register is a forward data flow over the stream's blocks (union at joins), so that an outstanding scoreboard is waited for by the first
// reader on every path. Waiting clears a scoreboard as a whole (it counts all its producers down to zero).
// Read barriers: instructions that read their sources late get one when a source may be overwritten before the instruction is known to be done:
// stores always, others when the block shows such a write or ends first.
// Scoreboards by use: 0..2 global memory, 3 shared memory and other lanes, 4 FP64 and function units, 5 late reads; a busy one gives way to a
// free one of the first five.
// Cost: O(instructions * operands + blocks * rounds * registers).
//
// Left out: reuse flags, dual issue, DEPBAR's partial waits.
#include <array>

#include "assembler/latency.h"
#include "assembler/passes.h"

namespace rndn::assembler {
namespace {

using isa::RegisterFile;
using L = isa::LatencyClass;

constexpr uint32_t predicate_base = 256, carry = 264, uniform_base = 272, uniform_predicate_base = 336,
                   resource_count = 344;
constexpr uint32_t nobody = UINT32_MAX;

RegisterFile file_of(uint32_t resource) {
  return resource < predicate_base           ? RegisterFile::gpr
         : resource < carry                  ? RegisterFile::predicate
         : resource < uniform_base           ? RegisterFile::none
         : resource < uniform_predicate_base ? RegisterFile::uniform
                                             : RegisterFile::uniform_predicate;
}

// Every register that the instruction touches, but for the condition code: f(resource, file, is_write, is_guard).
template <class F>
void for_each_resource(const Inst& inst, F&& f) {
  for_each_register(inst, [&](uint32_t reg, uint32_t width, RegisterFile file, bool write, bool guard) {
    const uint32_t base = file == RegisterFile::gpr         ? 0
                          : file == RegisterFile::predicate ? predicate_base
                          : file == RegisterFile::uniform   ? uniform_base
                                                            : uniform_predicate_base;
    for (uint32_t w = 0; w < width; ++w) f(base + reg + w, file, write, guard);
  });
}

// Scoreboards pending per register.
struct Pending {
  std::array<uint8_t, resource_count> write{}, read{};
  uint8_t any = 0;
  bool merge(const Pending& o) {
    bool changed = (o.any & ~any) != 0;
    any |= o.any;
    for (uint32_t r = 0; r < resource_count; ++r) {
      changed |= (o.write[r] & ~write[r]) != 0 || (o.read[r] & ~read[r]) != 0;
      write[r] |= o.write[r];
      read[r] |= o.read[r];
    }
    return changed;
  }
  void clear(uint8_t mask) {
    if (!(any & mask)) return;
    any &= static_cast<uint8_t>(~mask);
    for (uint32_t r = 0; r < resource_count; ++r)
      write[r] &= static_cast<uint8_t>(~mask), read[r] &= static_cast<uint8_t>(~mask);
  }
};

struct Assigner {
  const isa::Target& t;
  Code& code;

  uint8_t waits(const Inst& inst, const Pending& p) const {
    if (!p.any) return 0;
    uint8_t mask = 0;
    for_each_resource(inst, [&](uint32_t r, RegisterFile, bool write, bool) {
      mask |= p.write[r];
      if (write) mask |= p.read[r];
    });
    return mask;
  }
  void issue(const Inst& inst, Pending& p) const {
    const isa::Control& c = inst.sass.control;
    if (c.write_barrier == 7 && c.read_barrier == 7) return;
    for_each_resource(inst, [&](uint32_t r, RegisterFile, bool write, bool guard) {
      if (guard) return;
      if (write && c.write_barrier != 7)
        p.write[r] |= static_cast<uint8_t>(1u << c.write_barrier), p.any |= static_cast<uint8_t>(1u << c.write_barrier);
      if (!write && c.read_barrier != 7)
        p.read[r] |= static_cast<uint8_t>(1u << c.read_barrier), p.any |= static_cast<uint8_t>(1u << c.read_barrier);
    });
  }

  // Which instructions need a read barrier: block by block.
  void mark_late_reads() {
    std::vector<uint32_t> pending;  // late readers whose completion is not known
    for (const CodeBlock& b : code.blocks) {
      pending.clear();
      for (uint32_t k = b.begin; k < b.end; ++k) {
        Inst& inst = code.insts[k];
        if (!pending.empty()) {
          size_t kept = 0;
          for (uint32_t p : pending) {
            Inst& reader = code.insts[p];
            bool done = false, overwritten = false;
            for_each_resource(inst, [&](uint32_t r, RegisterFile, bool write, bool) {
              for_each_resource(reader, [&](uint32_t rr, RegisterFile, bool reader_writes, bool guard) {
                if (rr != r || guard) return;
                if (reader_writes && sets_write_barrier(t, reader)) done = true;  // waits for its result
                if (!reader_writes && write) overwritten = true;
              });
            });
            if (overwritten && !done) reader.sass.control.read_barrier = 5;
            if (!done && !overwritten) pending[kept++] = p;
          }
          pending.resize(kept);
        }
        if (!reads_late(t, inst)) continue;
        bool sources = false;
        for_each_resource(inst, [&](uint32_t, RegisterFile file, bool write, bool guard) {
          sources |= !write && !guard && file == RegisterFile::gpr;
        });
        if (!sources) continue;
        if (!sets_write_barrier(t, inst))
          inst.sass.control.read_barrier = 5;
        else
          pending.push_back(k);
      }
      if (b.successors.empty()) continue;
      for (uint32_t p : pending) code.insts[p].sass.control.read_barrier = 5;
    }
  }

  uint8_t preferred(const Inst& inst) const {
    switch (inst.latency) {
      case L::global_load:
      case L::global_atomic:
      case L::local_load: return 0;
      case L::fp64:
      case L::sfu: return 4;
      default: return 3;
    }
  }
  void choose_scoreboards() {
    // A local view of what is busy suffices for the choice: correctness comes from the data flow below.
    Pending p;
    uint8_t last_global = 0;
    for (const CodeBlock& b : code.blocks) {
      p.clear(0x3f);
      for (uint32_t k = b.begin; k < b.end; ++k) {
        Inst& inst = code.insts[k];
        p.clear(waits(inst, p));
        if (sets_write_barrier(t, inst)) {
          uint8_t want = preferred(inst), pick = want;
          auto is_free = [&](uint8_t s) { return !(p.any >> s & 1); };
          if (want == 0) {
            pick = 7;
            for (uint8_t s : {0, 1, 2})
              if (is_free(s)) {
                pick = s;
                break;
              }
            if (pick == 7) pick = last_global;  // joins the youngest: it returns last
            last_global = pick;
          } else if (!is_free(want)) {
            for (uint8_t s : {3, 4, 2, 1, 0})
              if (is_free(s)) {
                pick = s;
                break;
              }
          }
          inst.sass.control.write_barrier = pick;
        }
        issue(inst, p);
      }
    }
  }

  void wait_masks() {
    std::vector<Pending> in(code.blocks.size());
    std::vector<bool> queued(code.blocks.size(), true);
    // In order of the stream until nothing changes: two or three rounds.
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t b = 0; b < code.blocks.size(); ++b) {
        if (!queued[b]) continue;
        queued[b] = false;
        Pending p = in[b];
        for (uint32_t k = code.blocks[b].begin; k < code.blocks[b].end; ++k) {
          Inst& inst = code.insts[k];
          inst.sass.control.wait_mask = waits(inst, p);
          p.clear(inst.sass.control.wait_mask);
          issue(inst, p);
        }
        for (uint32_t s : code.blocks[b].successors)
          if (in[s].merge(p)) queued[s] = true, changed = true;
      }
    }
  }

  void stalls() {
    struct Write {
      uint32_t time = 0, inst = nobody;
    };
    Distances distances(t);
    uint64_t present = 0;  // latency classes of the kernel
    for (const Inst& inst : code.insts) present |= uint64_t{1} << static_cast<unsigned>(inst.latency);
    std::vector<Write> last(resource_count);
    std::vector<uint32_t> touched;
    for (const CodeBlock& b : code.blocks) {
      for (uint32_t r : touched) last[r] = {};
      touched.clear();
      uint32_t time = 0, previous_time = 0;
      for (uint32_t k = b.begin; k < b.end; ++k) {
        Inst& inst = code.insts[k];
        uint32_t earliest = time;
        auto read = [&](uint32_t r, RegisterFile file, bool guard) {
          const Write& w = last[r];
          if (w.inst == nobody) return;
          const Inst& producer = code.insts[w.inst];
          earliest = std::max(earliest, w.time + distances.read_after_write(producer, file, inst, guard));
        };
        for_each_resource(inst, [&](uint32_t r, RegisterFile file, bool write, bool guard) {
          if (!write) return read(r, file, guard);
          const Write& w = last[r];
          if (w.inst != nobody)
            earliest = std::max(earliest, w.time + distances.write_after_write(code.insts[w.inst], inst, file));
        });
        if (inst.reads_carry) read(carry, RegisterFile::none, false);
        if (k > b.begin) {
          Inst& before = code.insts[k - 1];
          const isa::Control& c = before.sass.control;
          // A scoreboard set by the instruction right before is visible after two cycles.
          uint8_t set = static_cast<uint8_t>((c.write_barrier != 7 ? 1u << c.write_barrier : 0) |
                                             (c.read_barrier != 7 ? 1u << c.read_barrier : 0));
          if (set & inst.sass.control.wait_mask)
            earliest = std::max(earliest, previous_time + isa::scoreboard_distance);
          before.sass.control.stall = static_cast<uint8_t>(std::min(earliest - previous_time, 15u));
          time = earliest;
        }
        auto record = [&](uint32_t r) {
          if (last[r].inst == nobody) touched.push_back(r);
          last[r] = {time, k};
        };
        for_each_resource(inst, [&](uint32_t r, RegisterFile, bool write, bool) {
          if (write) record(r);
        });
        if (inst.writes_carry) record(carry);
        previous_time = time;
        inst.sass.control.stall = static_cast<uint8_t>(least_stall(t, inst));
        time += inst.sass.control.stall;
      }
      if (b.end == b.begin) continue;
      // Drain. The last instruction may also set a scoreboard that the next block waits for at once.
      uint32_t until = previous_time + 1;
      Inst& end = code.insts[b.end - 1];
      if (end.sass.control.write_barrier != 7 || end.sass.control.read_barrier != 7)
        until = previous_time + isa::scoreboard_distance;
      for (uint32_t r : touched) {
        const uint32_t d = distances.settled(code.insts[last[r].inst], file_of(r), present);
        until = std::max(until, last[r].time + d);
      }
      end.sass.control.stall =
          static_cast<uint8_t>(std::min(15u, std::max<uint32_t>(end.sass.control.stall, until - previous_time)));
    }
    for (Inst& inst : code.insts) {
      isa::Control& c = inst.sass.control;
      if (t.family == isa::Family::volta)
        // Stalls of 12 and more leave no room for the flag: nvdisasm knows no such words.
        c.yield = c.stall == 1 || (c.stall < 12 && (inst.latency == L::branch || inst.latency == L::barrier));
      else
        c.yield = c.stall != 12 && inst.latency != L::nop;
    }
  }
};

}  // namespace

void assign_barriers(const isa::Target& target, Code& code) {
  Assigner a{target, code};
  for (Inst& inst : code.insts) inst.sass.control = {};
  a.mark_late_reads();
  a.choose_scoreboards();
  a.wait_masks();
  a.stalls();
}

}  // namespace rndn::assembler
