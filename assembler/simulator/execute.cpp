// Runs the blocks of a launch: warps in slices, blocks in rotation, threads of the host in parallel.
//
// A warp runs until it waits, yields or has used up its slice; then the block's next warp runs. A block runs until it is finished or every
// warp has had a few slices; then the thread's next resident block runs. When no resident block of a thread has finished in a turn and there
// are blocks left, the thread admits another one: so blocks that wait for blocks that were not started make progress,
// while blocks that wait for nothing run one after the other in warm caches.
// Deterministic mode is the same with one thread, the blocks in an order that the seed chooses.
#include "assembler/simulator/execute.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "assembler/simulator/hazards.h"
#include "assembler/simulator/lanes.h"
#include "assembler/simulator/races.h"
#include "libraries/base/system/parallel.h"

namespace rndn::sim {

namespace {

constexpr std::string_view class_names[] = {
#define LATENCY_CLASS(name, text) #name,
#include "assembler/isa/latency_classes.def"
#undef LATENCY_CLASS
};

constexpr uint32_t slice_instructions = 2048, slices_per_turn = 2;
constexpr size_t max_reports = 100;
constexpr size_t resident_bytes = size_t{256} << 20;  // of a thread's blocks

std::array<uint32_t, 3> thread_of(const Warp& w, uint32_t lane) {
  return {w.tid[0][lane], w.tid[1][lane], w.tid[2][lane]};
}

void add_counts(Counts& to, const Counts& from) {
  to.global_load_bytes += from.global_load_bytes;
  to.global_store_bytes += from.global_store_bytes;
  to.shared_bank_conflicts += from.shared_bank_conflicts;
  for (size_t c = 0; c < instruction_classes; ++c) {
    to.warp_by_class[c] += from.warp_by_class[c];
    to.thread_by_class[c] += from.thread_by_class[c];
  }
  to.warp_instructions += from.warp_instructions;
  to.thread_instructions += from.thread_instructions;
  to.issue_cycles += from.issue_cycles;
  to.global_load_sectors += from.global_load_sectors;
  to.mapped_load_sectors += from.mapped_load_sectors;
  to.global_store_sectors += from.global_store_sectors;
  to.shared_accesses += from.shared_accesses;
  to.divergent_branches += from.divergent_branches;
  to.partial_exits += from.partial_exits;
}
void add_counts(Counters& to, const Counters& from) {
  add_counts(static_cast<Counts&>(to), from);
  add_counts(to.spinning, from.spinning);
  to.spin_iterations += from.spin_iterations;
  to.blocks += from.blocks;
  to.hazards += from.hazards;
}

// Counts an iteration of a loop that waits until it is known whether the warp goes on or waits again. Iterations are not interrupted, so that
// none is half counted.
class Spinning {
 public:
  Spinning(Warp& w) : w_(w), own_(w.tally), heads_(w.launch->program->spin_head.data()) {}
  ~Spinning() { stop(); }
  bool inside() const { return inside_; }
  uint64_t instructions() const { return instructions_; }  // of iterations that were left out
  uint64_t threads() const { return threads_; }

  // Before the instruction at pc.
  void at(uint32_t pc, uint64_t instructions, uint64_t threads) {
    const uint32_t head = heads_[pc];
    if (inside_ && head != head_) stop();
    if (head == Program::no_loop || inside_) return;
    inside_ = true, head_ = head, from_instructions_ = instructions, from_threads_ = threads;
    iteration_ = {};
    w_.tally = &iteration_;
  }
  // After a branch from pc back to the loop's first instruction: the iteration led to nothing.
  void back(uint32_t pc, uint64_t instructions, uint64_t threads) {
    if (!inside_ || w_.pc != head_ || heads_[pc + 1] == head_) return;
    Counts& counts = own_->counters.spinning;
    add_counts(counts, static_cast<const Counts&>(iteration_.counters));
    counts.warp_instructions += instructions - from_instructions_, instructions_ += instructions - from_instructions_;
    counts.thread_instructions += threads - from_threads_, threads_ += threads - from_threads_;
    ++own_->counters.spin_iterations;
    own_->counters.hazards += iteration_.counters.hazards;
    inside_ = false;
    w_.tally = own_;
  }
  void stop() {
    if (inside_) add_counts(own_->counters, iteration_.counters);
    inside_ = false;
    w_.tally = own_;
  }

 private:
  Warp& w_;
  Tally* own_;
  const uint32_t* heads_;
  Tally iteration_;
  bool inside_ = false;
  uint32_t head_ = 0;
  uint64_t from_instructions_ = 0, from_threads_ = 0, instructions_ = 0, threads_ = 0;
};
struct NotSpinning {
  NotSpinning(Warp&) {}
  static constexpr bool inside() { return false; }
  static constexpr uint64_t instructions() { return 0; }
  static constexpr uint64_t threads() { return 0; }
  void at(uint32_t, uint64_t, uint64_t) {}
  void back(uint32_t, uint64_t, uint64_t) {}
  void stop() {}
};

enum class End : uint8_t { finished, waiting, preempted, fault };

bool has_ready_group(const Warp& w) {
  return std::any_of(w.groups.begin(), w.groups.end(), [](const Group& g) { return g.wait == Wait::ready; });
}

// Puts the running group behind the others.
void rotate_group(Warp& w) {
  w.groups.insert(w.groups.begin(), {w.pc, w.active, Wait::ready, 0});
  w.active = 0;
  pick_group(w);
  pass_time(w);
}

template <bool checks, class Spins>
End run_slice(Warp& w) {
  if (!w.active && !pick_group(w)) return w.alive ? End::waiting : End::finished;
  pass_time(w);
  const Op* ops = w.launch->program->ops.data();
  const Footprint* footprints = w.launch->program->footprints.data();
  const bool initialised = w.launch->options.check_uninitialised;
  const uint8_t* classes = w.launch->options.count_classes ? w.launch->program->classes.data() : nullptr;
  uint64_t instructions = 0, threads = 0;
  End end = End::preempted;
  Spins spins(w);
  bool yielded = false;
  const uint64_t slice = w.launch->weak ? w.launch->weak->slice() : slice_instructions;
  while ((instructions < slice && !yielded) || spins.inside()) {
    const uint32_t pc = w.pc;
    spins.at(pc, instructions, threads);
    Counters& counters = w.tally->counters;
    const Op& op = ops[pc];
    const uint32_t mask = (w.active | op.full) & (w.pred[op.guard.index] ^ op.guard.flip);
    w.pc = pc + 1;
    ++instructions;
    const uint32_t working = mask & w.active;
    threads += working == all_lanes ? lanes : static_cast<uint32_t>(std::popcount(working));
    counters.issue_cycles += op.stall;
    if (classes) [[unlikely]] {
      ++counters.warp_by_class[classes[pc]];
      counters.thread_by_class[classes[pc]] += static_cast<uint32_t>(std::popcount(working));
    }
    Status status = Status::go;
    if constexpr (checks) {
      const Footprint& f = footprints[pc];
      if (initialised) check_initialised(w, op, f, mask);
      if (w.timing) {
        Swapped swapped;
        before_issue(w, op, f, mask, swapped);
        if (mask) status = op.run(w, op, mask);
        after_issue(w, op, f, mask, swapped);
      } else if (mask) {
        status = op.run(w, op, mask);
      }
    } else {
      if (mask) status = op.run(w, op, mask);
    }
    if (status == Status::go) [[likely]] {
      spins.back(pc, instructions, threads);
      continue;
    }
    if (status == Status::yield && spins.inside()) {
      yielded = true;
      continue;
    }
    if (status == Status::fault) {
      end = End::fault;
      break;
    }
    if (status == Status::yield) {
      if (!has_ready_group(w)) break;
      rotate_group(w);
      continue;
    }
    if (!pick_group(w)) {
      end = w.alive ? End::waiting : End::finished;
      break;
    }
    pass_time(w);
  }
  if (w.launch->weak) w.launch->weak->drift();
  if (end == End::preempted && !w.alone && has_ready_group(w)) rotate_group(w);
  spins.stop();
  w.tally->counters.warp_instructions += instructions - spins.instructions();
  w.tally->counters.thread_instructions += threads - spins.threads();
  Launch& launch = *w.launch;
  if (launch.options.max_warp_instructions) {
    const uint64_t all = launch.instructions.fetch_add(instructions, std::memory_order_relaxed) + instructions;
    if (all > launch.options.max_warp_instructions && end != End::fault && end != End::finished) {
      if (!launch.stop.load())
        fail(w, ops[w.pc < w.launch->program->size() ? w.pc : 0], std::countr_zero(w.active ? w.active : w.alive),
             fmt::format("hang: the launch has executed more than {} warp instructions",
                         launch.options.max_warp_instructions));
      return End::fault;
    }
  }
  return end;
}

void report_deadlock(Block& block) {
  std::string who;
  Warp* first = nullptr;
  const Group* where = nullptr;
  uint32_t shown = 0;
  for (Warp& w : block.warps)
    for (const Group& g : w.groups) {
      if (!first) first = &w, where = &g;
      if (++shown > 8) continue;
      const char* what = g.wait == Wait::barrier       ? "barrier"
                         : g.wait == Wait::convergence ? "convergence barrier B"
                                                       : "warp synchronisation of lanes";
      who += fmt::format("{}warp {} lanes {:#x} at {} {}", who.empty() ? "" : ", ", w.number, g.mask, what,
                         g.wait == Wait::barrier || g.wait == Wait::convergence ? std::to_string(g.sync)
                                                                                : fmt::format("{:#x}", g.sync));
    }
  if (!first) {
    for (Warp& w : block.warps)
      if (w.alive) {
        fail(w, w.launch->program->ops[0], static_cast<uint32_t>(std::countr_zero(w.alive)),
             "deadlock: lanes are left that nothing on the divergence stack resumes");
        return;
      }
    return;
  }
  if (shown > 8) who += fmt::format(" and {} more", shown - 8);
  const Program& program = *first->launch->program;
  const uint32_t index = where->pc > 0 && where->pc <= program.size() ? where->pc - 1 : 0;
  fail(*first, program.ops[index], std::countr_zero(where->mask), "deadlock: no warp of the block can go on: " + who);
}

// Gives every warp some slices.
template <bool checks>
End run_turn(Block& block) {
  const bool spins = !block.warps[0].launch->program->spin_loops.empty();
  for (uint32_t round = 0; round < slices_per_turn; ++round) {
    bool progress = false, live = false;
    for (Warp& w : block.warps) {
      if (!w.alive) continue;
      if (w.launch->stop.load(std::memory_order_relaxed)) return End::fault;
      const bool could_run = w.active || has_ready_group(w);
      const End end = spins ? run_slice<checks, Spinning>(w) : run_slice<checks, NotSpinning>(w);
      if (end == End::fault) return End::fault;
      progress |= could_run;
      live |= end != End::finished;
      if (end != End::preempted) release_barriers(block);
    }
    if (!live) return End::finished;
    if (!progress) {
      for (const Warp& w : block.warps) progress |= w.alive && (w.active || has_ready_group(w));
      if (!progress) {
        report_deadlock(block);
        return End::fault;
      }
    }
  }
  return End::preempted;
}

// Makes a block ready to start. Registers and shared memory hold a pattern: real ones hold whatever was there.
void start_block(Block& block, Launch& launch, Tally& tally, std::vector<Timing>& timings, uint64_t number) {
  const Program& program = *launch.program;
  const uint32_t threads = launch.block.x * launch.block.y * launch.block.z, warps = (threads + lanes - 1) / lanes;
  const size_t words = program.row_words();
  ++tally.counters.blocks;
  block.ctaid[0] = static_cast<uint32_t>(number % launch.grid.x);
  block.ctaid[1] = static_cast<uint32_t>(number / launch.grid.x % launch.grid.y);
  block.ctaid[2] = static_cast<uint32_t>(number / launch.grid.x / launch.grid.y);
  block.shared_bytes = launch.shared_bytes;
  block.shared.assign((launch.shared_bytes + 15) / 8, 0xcdcdcdcdcdcdcdcd);
  if (launch.options.check_uninitialised) block.shared_written.assign(launch.shared_bytes / 16 + 1, 0);
  block.registers.resize(words * warps + 16);
  auto* base = reinterpret_cast<uint32_t*>((reinterpret_cast<uintptr_t>(block.registers.data()) + 63) & ~uintptr_t{63});
  std::fill(base, base + words * warps, 0xcdcdcdcd);
  for (Barrier& b : block.barriers) {
    b = Barrier{};
    b.arrived.assign(warps, 0);
  }
  block.warps.resize(warps);
  for (uint32_t i = 0; i < warps; ++i) {
    Warp& w = block.warps[i];
    w.rows[0] = base + words * i;
    w.rows[1] = launch.pool.data();
    std::fill(w.rows[0], w.rows[0] + trash_row, 0);
    for (uint32_t p = 0; p < 17; ++p)
      w.pred[p] = p == true_predicate || p == uniform_predicates + isa::PT ? all_lanes : p > 7 ? 0 : 0x5a5a5a5a;
    w.carry = w.zero = w.negative = w.overflow = 0x5a5a5a5a;
    w.pc = 0;
    const uint32_t left = threads - i * lanes;
    w.alive = w.active = left >= lanes ? all_lanes : (1u << left) - 1;
    w.number = i;
    w.block = &block;
    w.launch = &launch;
    w.tally = &tally;
    w.groups.clear();
    w.stack.clear();
    w.copies.clear();
    w.copy_groups.clear();
    w.groups_ended = 0;
    std::fill(std::begin(w.collective), std::end(w.collective), all_lanes);
    for (uint32_t l = 0; l < lanes; ++l) {
      const uint32_t t = i * lanes + l;
      w.tid[0][l] = t % launch.block.x;
      w.tid[1][l] = t / launch.block.x % launch.block.y;
      w.tid[2][l] = t / launch.block.x / launch.block.y;
    }
    w.local.assign(static_cast<size_t>(launch.local_bytes) * lanes, std::byte{0xcd});
    w.timing = nullptr;
    if (!timings.empty()) {
      w.timing = &timings[i];
      w.timing->start(program);
    }
    if (launch.options.check_uninitialised) {
      w.written.assign(row_count, 0);
      w.local_written.assign(w.local.size() / 16 + 1, 0);
    }
  }
  if (launch.options.check_races) {
    if (!block.races) block.races = std::make_shared<Races>();
    block.races->start(block, launch.shared_bytes);
  }
}

struct Resident {
  Block block;
  std::vector<Timing> timings;
};

template <bool checks>
void run_thread(Launch& launch, std::atomic<uint64_t>& next, uint64_t blocks, uint64_t stride, uint64_t first,
                Counters& total) {
  Tally tally;
  std::vector<std::unique_ptr<Resident>> resident, idle;
  const uint32_t warps = (launch.block.x * launch.block.y * launch.block.z + lanes - 1) / lanes;
  const size_t block_bytes =
      warps * (launch.program->row_words() * size_t{4} + size_t{launch.local_bytes} * lanes + 8192) +
      launch.shared_bytes +
      (launch.options.check_races ? size_t{launch.shared_bytes} * 16 + size_t{warps} * warps * lanes * 4 : 0);
  const size_t limit = std::clamp<size_t>(resident_bytes / block_bytes, 4, 4096);
  const auto admit = [&] {
    const uint64_t i = next.fetch_add(1, std::memory_order_relaxed);
    if (i >= blocks) return false;
    std::unique_ptr<Resident> r;
    if (idle.empty()) {
      r = std::make_unique<Resident>();
      if (launch.options.check_hazards) r->timings.resize(warps);
    } else {
      r = std::move(idle.back());
      idle.pop_back();
    }
    const uint64_t number = static_cast<uint64_t>((static_cast<unsigned __int128>(i) * stride + first) % blocks);
    start_block(r->block, launch, tally, r->timings, number);
    resident.push_back(std::move(r));
    return true;
  };
  bool more = true;
  while (!launch.stop.load(std::memory_order_relaxed)) {
    if (is_cancelled()) {
      launch.stop = true;
      break;
    }
    if (resident.empty() && !admit()) break;
    bool finished = false;
    for (size_t i = 0; i < resident.size();) {
      const End end = run_turn<checks>(resident[i]->block);
      if (end == End::fault) {
        launch.stop = true;
        break;
      }
      if (end == End::finished) {
        finished = true;
        idle.push_back(std::move(resident[i]));
        resident.erase(resident.begin() + static_cast<ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
    if (!finished && more && resident.size() < limit) more = admit();
  }
  const std::lock_guard lock(launch.mutex);
  add_counts(total, tally.counters);
}

}  // namespace

void report(Warp& w, const Op& op, uint32_t lane, std::string message) {
  Launch& launch = *w.launch;
  const Program& program = *launch.program;
  const size_t index = static_cast<size_t>(&op - program.ops.data());
  Report r;
  r.kernel = program.name;
  if (index < program.size()) {
    r.address = program.addresses[index];
    const bool decoded = std::none_of(program.undecodable.begin(), program.undecodable.end(),
                                      [&](const auto& u) { return u.first == index; });
    if (decoded) r.instruction = isa::text(*program.target, program.instructions[index]);
  }
  r.message = std::move(message);
  r.block = {w.block->ctaid[0], w.block->ctaid[1], w.block->ctaid[2]};
  r.thread = thread_of(w, lane & 31);
  const std::lock_guard lock(launch.mutex);
  // One report per place and kind is enough.
  if (launch.reports.size() >= max_reports) return;
  for (const Report& other : launch.reports)
    if (other.address == r.address && other.message == r.message) return;
  launch.reports.push_back(std::move(r));
}

Status fail(Warp& w, const Op& op, uint32_t lane, std::string message) {
  report(w, op, lane, std::move(message));
  w.launch->stop = true;
  return Status::fault;
}

void execute(Launch& launch, Counters& total) {
  const uint64_t blocks = static_cast<uint64_t>(launch.grid.x) * launch.grid.y * launch.grid.z;
  if (launch.options.weak_memory) {
    launch.options.deterministic = true;
    launch.weak = std::make_unique<Weak>(launch.options.seed);
  }
  launch.lane_by_lane = launch.options.check_uninitialised || launch.options.check_races || launch.weak;
  if (launch.options.check_races) launch.relaxed = relaxed_loads(*launch.program);
  const unsigned threads = launch.options.deterministic ? 1
                           : launch.options.threads     ? launch.options.threads
                                                        : hardware_threads();
  // An order of the blocks: i -> i * stride + first, a permutation as stride and the count have no common divisor.
  uint64_t stride = 1, first = 0;
  if (launch.options.deterministic && blocks > 2) {
    const uint64_t mixed = (launch.options.seed + 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9;
    first = mixed % blocks;
    stride = (mixed >> 32) % blocks;
    while (stride == 0 || std::gcd(stride, blocks) != 1) stride = (stride + 1) % blocks;
  }
  const bool checks = launch.options.check_hazards || launch.options.check_uninitialised;
  std::atomic<uint64_t> next{0};
  const auto body = [&](size_t) {
    if (checks)
      run_thread<true>(launch, next, blocks, stride, first, total);
    else
      run_thread<false>(launch, next, blocks, stride, first, total);
  };
  const unsigned used = static_cast<unsigned>(std::min<uint64_t>(threads, blocks));
  if (used <= 1)
    body(0);
  else
    parallel_for(used, body, used);
  if (launch.weak) launch.weak->finish();
}

std::string_view instruction_class_name(size_t instruction_class) { return class_names[instruction_class]; }

uint32_t resident_blocks(const isa::Target& target, const KernelInfo& kernel, uint32_t threads,
                         uint32_t dynamic_shared) {
  const uint32_t warps = std::max(1u, (threads + lanes - 1) / lanes);
  const uint32_t by_warps = target.warps_per_sm / warps;
  const uint32_t registers_per_warp = std::max(1u, (kernel.registers + 7) / 8 * 8) * lanes;
  const uint32_t by_registers = target.registers_per_sm / (registers_per_warp * warps);
  const uint32_t shared = kernel.shared_bytes + dynamic_shared;
  const uint32_t by_shared = shared ? target.shared_per_sm / shared : target.blocks_per_sm;
  return std::max(1u, std::min({by_warps, by_registers, by_shared, target.blocks_per_sm}));
}

}  // namespace rndn::sim
