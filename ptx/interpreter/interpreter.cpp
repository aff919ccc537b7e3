// The machine around semantics.cpp: threads, memory spaces, control flow, and what threads do together.
//
// Spaces. Global addresses are Memory's. Shared, local and constant variables have small addresses within their space; generic
// addresses of them lie in windows far from Memory's addresses. Every access is checked against the space's size and its alignment.
// Waiting. A thread that reaches a cooperative instruction stops there. When no thread of the block can run, warps whose waiting lanes
// are complete proceed, then barriers; when nothing proceeds, the block is deadlocked and that is an error. Lanes that have exited are
// not waited for, as on the hardware.
// Branches that say .uni. Threads of a warp are surely together where they have come the same way since the warp last met: such threads must go the
// same way again. Each thread hashes the ways that it takes, and the first that comes to a place by a way leaves there where it went.
// Registers start with a pattern that is not zero, so that programs that read one unset differ from machines that start with zeros.
// Left out: weak memory (every access is seen at once), timing, textures, calls of external functions but those of the device runtime that
// `call_external` names.
#include "ptx/interpreter/interpreter.h"

#include <bit>
#include <cstring>
#include <numeric>

#include "libraries/base/report/device_print.h"
#include "ptx/interpreter/semantics.h"
#include "ptx/opcodes.h"
#include "ptx/parse.h"

namespace rndn::ptx {
namespace {

constexpr uint64_t shared_window = 0x7E00'0000'0000, local_window = 0x7D00'0000'0000,
                   constant_window = 0x7C00'0000'0000, parameter_window = 0x7B00'0000'0000;
constexpr uint64_t window_bytes = 1ull << 40;
constexpr uint64_t unset = 0xBAAD'F00D'BAAD'F00D;
constexpr uint32_t slice = 20000;  // instructions that a thread runs before the next one gets a turn (spin loops)
constexpr size_t max_local_bytes = 1 << 20;  // per thread
constexpr uint64_t max_shared_bytes = 256 << 10;
constexpr size_t max_depth = 200;  // of calls

uint64_t align_up(uint64_t v, uint64_t a) { return a ? (v + a - 1) / a * a : v; }

uint64_t variable_bytes(const Variable& v) {
  return v.count == UINT64_MAX ? 0 : std::max<uint64_t>(v.count, 1) * type_bytes(v.type);
}
uint64_t variable_align(const Variable& v) { return v.align ? v.align : std::max<uint32_t>(type_bytes(v.type), 1); }

// Offsets of parameters (then results) and their total size.
struct ParameterLayout {
  std::vector<uint32_t> offsets;
  uint32_t parameter_bytes = 0, bytes = 0;
};
ParameterLayout layout_of(const Function& f) {
  ParameterLayout l;
  auto place = [&](const Parameter& p) {
    uint32_t size = type_bytes(p.type), align = p.align ? p.align : size;
    l.bytes = static_cast<uint32_t>(align_up(l.bytes, align));
    l.offsets.push_back(l.bytes);
    l.bytes += size * std::max(p.count, 1u);
  };
  for (const Parameter& p : f.parameters) place(p);
  l.parameter_bytes = l.bytes;
  for (const Parameter& p : f.results) place(p);
  return l;
}

struct Frame {
  uint32_t function = 0;
  uint32_t pc = 0;
  std::vector<uint64_t> registers;
  const uint64_t* masks = nullptr;    // per register: the bits that its type has
  std::vector<std::byte> parameters;  // and results
  std::vector<std::byte> arguments;   // .param variables of the body
  uint32_t local_base = 0;            // of its .local variables
};

enum class State : uint8_t { running, warp_wait, barrier_wait, done };

struct Thread {
  State state = State::running;
  bool carry = false;
  uint32_t index = 0;  // within the block
  uint64_t steps = 0;
  uint64_t way = 0;  // hash of the branches taken since the warp last met
  std::vector<Frame> frames;
  std::vector<std::byte> local;
  // While waiting:
  uint32_t mask = 0;        // warp_wait: lanes that take part
  uint64_t inputs[5] = {};  // warp_wait: this lane's operands; of ldmatrix and stmatrix, where its row lies here
  uint32_t barrier = 0, expected = 0;
  bool predicate = false;  // bar.red
};

}  // namespace

uint64_t Memory::allocate(uint64_t bytes) {
  uint64_t at = next_;
  next_ = align_up(next_ + bytes + 256, 256);
  blocks_[at].resize(bytes);
  return at;
}
void Memory::release(uint64_t address) { blocks_.erase(address); }
std::byte* Memory::find(uint64_t address, uint64_t bytes) {
  auto it = blocks_.upper_bound(address);
  if (it == blocks_.begin()) return nullptr;
  --it;
  uint64_t offset = address - it->first;
  if (offset > it->second.size() || it->second.size() - offset < bytes) return nullptr;
  return it->second.data() + offset;
}
bool Memory::write(uint64_t address, std::span<const std::byte> from) {
  std::byte* p = find(address, from.size());
  if (p && !from.empty()) std::memcpy(p, from.data(), from.size());
  return p != nullptr;
}
bool Memory::read(uint64_t address, std::span<std::byte> into) {
  const std::byte* p = find(address, into.size());
  if (p && !into.empty()) std::memcpy(into.data(), p, into.size());
  return p != nullptr;
}

class Machine {
 public:
  Machine(Interpreter& owner, const Launch& launch, uint32_t kernel)
      : owner_(owner),
        m_(owner.module_),
        memory_(owner.memory_),
        launch_(launch),
        kernel_(kernel),
        random_(launch.seed) {
    for (const Function& f : m_.functions) {
      layouts_.push_back(layout_of(f));
      std::vector<uint64_t>& masks = masks_.emplace_back();
      for (const Register& r : f.registers) {
        const uint32_t bytes = type_bytes(r.type);
        masks.push_back(bytes == 0 ? 1 : bytes >= 8 ? UINT64_MAX : (uint64_t{1} << (8 * bytes)) - 1);
      }
    }
    place_variables();
  }

  Result<InterpreterStats> run() {
    const auto& g = launch_.grid;
    const auto& b = launch_.block;
    const uint64_t blocks = uint64_t{g[0]} * g[1] * g[2], threads = uint64_t{b[0]} * b[1] * b[2];
    const Function& f = m_.functions[kernel_];
    if (threads == 0 || threads > 1024)
      return input_error("kernel {}: a block of {} threads, expected 1 to 1024", f.name, threads);
    if (blocks == 0 || blocks > (1ull << 40)) return input_error("kernel {}: a grid of {} blocks", f.name, blocks);
    if (f.required_threads[0] && f.required_threads != b)
      return input_error("kernel {}: launched with blocks of {}x{}x{}, .reqntid says {}x{}x{}", f.name, b[0], b[1],
                         b[2], f.required_threads[0], f.required_threads[1], f.required_threads[2]);
    if (launch_.parameters.size() != layouts_[kernel_].parameter_bytes)
      return input_error("kernel {}: {} bytes of parameters, expected {}", f.name, launch_.parameters.size(),
                         layouts_[kernel_].parameter_bytes);
    if (shared_bytes_ > max_shared_bytes)
      return input_error("kernel {}: {} bytes of shared memory, at most {}", f.name, shared_bytes_, max_shared_bytes);
    if (module_local_bytes_ + local_bytes_[kernel_] > max_local_bytes)
      return input_error("kernel {}: {} bytes of local memory, at most {}", f.name,
                         module_local_bytes_ + local_bytes_[kernel_], max_local_bytes);
    // A random order of blocks: x -> (a x + c) mod blocks with a prime to blocks visits each once.
    uint64_t factor = 1, shift = 0;
    if (launch_.seed) {
      shift = next_random() % blocks;
      do factor = next_random() % blocks + 1;
      while (std::gcd(factor, blocks) != 1);
    }
    for (uint64_t k = 0; k < blocks; ++k) {
      uint64_t block = static_cast<uint64_t>((static_cast<unsigned __int128>(factor) * k + shift) % blocks);
      ctaid_ = {static_cast<uint32_t>(block % g[0]), static_cast<uint32_t>(block / g[0] % g[1]),
                static_cast<uint32_t>(block / g[0] / g[1])};
      RETURN_IF_ERROR(run_block(static_cast<uint32_t>(threads)));
    }
    return stats_;
  }

 private:
  // ---- places of variables
  void place_variables() {
    places_ = owner_.places_;
    local_bytes_.resize(m_.functions.size());
    argument_bytes_.resize(m_.functions.size());
    for (uint32_t k = 0; k < m_.variables.size(); ++k) {
      const Variable& v = m_.variables[static_cast<VariableId>(k)];
      if (v.function != UINT32_MAX && v.function >= m_.functions.size()) continue;
      bool other_kernel = v.function != UINT32_MAX && v.function != kernel_ && m_.functions[v.function].is_entry;
      uint64_t* counter = nullptr;
      if (v.space == Space::shared && v.count != UINT64_MAX && !other_kernel) counter = &shared_bytes_;
      if (v.space == Space::local)
        counter = v.function == UINT32_MAX ? &module_local_bytes_ : &local_bytes_[v.function];
      if (v.space == Space::param && v.function != UINT32_MAX) counter = &argument_bytes_[v.function];
      if (!counter) continue;
      *counter = align_up(*counter, variable_align(v));
      places_[k] = *counter;
      *counter += variable_bytes(v);
    }
    dynamic_base_ = align_up(shared_bytes_, 16);
    for (uint32_t k = 0; k < m_.variables.size(); ++k) {
      const Variable& v = m_.variables[static_cast<VariableId>(k)];
      if (v.space == Space::shared && v.count == UINT64_MAX) places_[k] = align_up(dynamic_base_, variable_align(v));
    }
    static_shared_ = shared_bytes_;
    if (launch_.dynamic_shared) shared_bytes_ = dynamic_base_ + launch_.dynamic_shared;
    const auto reserved = [](const Operand& o) {
      return o.kind == Operand::special &&
             static_cast<SpecialRegister>(o.id) == SpecialRegister::reserved_smem_offset_1;
    };
    for (const Function& f : m_.functions)
      if (std::any_of(f.operands.begin(), f.operands.end(), reserved)) reserved_bytes_ = 1024;
  }

  // ---- scheduling
  Result<void> run_block(uint32_t count) {
    shared_.assign(reserved_bytes_ ? align_up(shared_bytes_, 16) + reserved_bytes_ : shared_bytes_, std::byte{0xA5});
    threads_.resize(count);
    live_ = count;
    barriers_.fill({});
    ++meetings_;
    for (uint32_t k = 0; k < count; ++k) {
      Thread& t = threads_[k];
      t.state = State::running;
      t.carry = false;
      t.index = k;
      t.steps = 0;
      t.way = meetings_;
      t.frames.clear();
      t.local.assign(module_local_bytes_, std::byte{0});
      enter(t, kernel_);
      std::copy(launch_.parameters.begin(), launch_.parameters.end(), t.frames.back().parameters.begin());
    }
    std::vector<uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    while (live_ > 0) {
      if (launch_.seed)
        for (uint32_t k = count; k > 1; --k) std::swap(order[k - 1], order[next_random() % k]);
      for (uint32_t k : order)
        if (threads_[k].state == State::running) RETURN_IF_ERROR(run_thread(threads_[k]));
      bool running = false;  // threads whose slice is over: they may spin until a waiting one gets on
      for (const Thread& t : threads_) running |= t.state == State::running;
      if (live_ == 0) break;
      bool progress = running;
      for (uint32_t w = 0; w * 32 < count; ++w) progress |= release_warp(w, !running);
      progress |= release_barriers();
      if (!progress) {
        for (Thread& t : threads_)
          if (t.state == State::warp_wait || t.state == State::barrier_wait)
            return fail(t, instruction(t),
                        "deadlock: the threads that this one waits for are elsewhere or wait themselves");
      }
    }
    return {};
  }

  Result<void> run_thread(Thread& t) {
    for (uint32_t k = 0; k < slice && t.state == State::running; ++k) RETURN_IF_ERROR(step(t));
    return {};
  }

  void enter(Thread& t, uint32_t function) {
    Frame& f = t.frames.emplace_back();
    f.function = function;
    f.registers.assign(m_.functions[function].registers.size(), unset);
    f.masks = masks_[function].data();
    f.parameters.assign(layouts_[function].bytes, std::byte{0});
    f.arguments.assign(argument_bytes_[function], std::byte{0});
    f.local_base = static_cast<uint32_t>(align_up(t.local.size(), 16));
    t.local.resize(f.local_base + local_bytes_[function]);
  }

  void finish(Thread& t) {
    t.state = State::done;
    t.frames.resize(1);
    --live_;
  }

  const Function& function(const Thread& t) const { return m_.functions[t.frames.back().function]; }
  const Instruction& instruction(const Thread& t) const { return function(t).instructions[t.frames.back().pc]; }

  Error fail(const Thread& t, const Instruction& i, const std::string& what) const {
    const auto& b = launch_.block;
    uint32_t x = t.index % b[0], y = t.index / b[0] % b[1], z = t.index / b[0] / b[1];
    return input_error("function {}, line {}, block ({},{},{}), thread ({},{},{}): `{}`: {}", function(t).name, i.line,
                       ctaid_[0], ctaid_[1], ctaid_[2], x, y, z, print(m_, function(t), i), what);
  }

  // ---- operands
  uint64_t reg(const Thread& t, uint32_t id) const {
    const Frame& f = t.frames.back();
    return f.registers[id] & f.masks[id];
  }
  uint64_t read(const Thread& t, const Operand& o) const {
    switch (o.kind) {
      case Operand::reg: return o.negated ? !(reg(t, o.id) & 1) : reg(t, o.id);
      case Operand::immediate: return static_cast<uint64_t>(o.value);
      case Operand::special: return special(t, static_cast<SpecialRegister>(o.id));
      case Operand::variable: return variable_address(t, o.id) + static_cast<uint64_t>(o.value);
      case Operand::function: return function_address(o.id);
      case Operand::parameter: return layouts_[t.frames.back().function].offsets[o.id] + static_cast<uint64_t>(o.value);
      default: return 0;
    }
  }
  // Results of a signed type fill a wider register with the sign, others with zeros.
  void write(Thread& t, const Operand& o, uint64_t value, Type type) {
    if (o.kind != Operand::reg) return;  // sink
    t.frames.back().registers[o.id] = type == Type::pred ? value & 1 : extend(value, type);
  }
  uint64_t variable_address(const Thread& t, uint32_t id) const {
    const Variable& v = m_.variables[static_cast<VariableId>(id)];
    uint64_t base = v.space == Space::local && v.function != UINT32_MAX ? t.frames.back().local_base : 0;
    return base + places_[id];
  }

  uint64_t special(const Thread& t, SpecialRegister r) const {
    const auto& b = launch_.block;
    const auto& g = launch_.grid;
    const uint32_t lane = t.index % 32;
    const uint64_t bit = uint64_t{1} << lane;
    switch (r) {
      case SpecialRegister::tid_x: return t.index % b[0];
      case SpecialRegister::tid_y: return t.index / b[0] % b[1];
      case SpecialRegister::tid_z: return t.index / b[0] / b[1];
      case SpecialRegister::ntid_x: return b[0];
      case SpecialRegister::ntid_y: return b[1];
      case SpecialRegister::ntid_z: return b[2];
      case SpecialRegister::ctaid_x: return ctaid_[0];
      case SpecialRegister::ctaid_y: return ctaid_[1];
      case SpecialRegister::ctaid_z: return ctaid_[2];
      case SpecialRegister::nctaid_x: return g[0];
      case SpecialRegister::nctaid_y: return g[1];
      case SpecialRegister::nctaid_z: return g[2];
      case SpecialRegister::laneid: return lane;
      case SpecialRegister::warpid: return t.index / 32;
      case SpecialRegister::nwarpid: return (threads_.size() + 31) / 32;
      case SpecialRegister::smid: return 0;
      case SpecialRegister::nsmid: return 1;
      case SpecialRegister::gridid: return 1;
      case SpecialRegister::lanemask_eq: return bit;
      case SpecialRegister::lanemask_le: return (bit << 1) - 1;
      case SpecialRegister::lanemask_lt: return bit - 1;
      case SpecialRegister::lanemask_ge: return ~(bit - 1) & 0xFFFFFFFF;
      case SpecialRegister::lanemask_gt: return ~((bit << 1) - 1) & 0xFFFFFFFF;
      case SpecialRegister::clock:
      case SpecialRegister::clock64:
      case SpecialRegister::globaltimer: return t.steps;
      case SpecialRegister::globaltimer_lo: return t.steps & 0xFFFFFFFF;
      case SpecialRegister::clock_hi:
      case SpecialRegister::globaltimer_hi: return t.steps >> 32;
      case SpecialRegister::dynamic_smem_size: return launch_.dynamic_shared;
      case SpecialRegister::total_smem_size: return shared_bytes_;
      case SpecialRegister::reserved_smem_offset_1: return align_up(shared_bytes_, 16);
      case SpecialRegister::none: break;
      default: break;  // %envreg: nothing is passed in them
    }
    return 0;
  }

  // ---- memory
  struct Place {
    Space space = Space::global;
    uint64_t address = 0;  // within the space
    std::byte* bytes = nullptr;
    std::string problem;
  };

  // Where [operand] of an access of `size` bytes lies.
  Place locate(Thread& t, const Operand& o, Space space, uint64_t size, bool store) {
    Place p;
    Frame& f = t.frames.back();
    uint64_t address = static_cast<uint64_t>(o.value);
    if (o.kind == Operand::address_reg) {
      address += reg(t, o.id);
      if (type_bytes(function(t).registers[o.reg_id()].type) == 4) address &= 0xFFFFFFFF;
    } else if (o.kind == Operand::address_var) {
      address += variable_address(t, o.id);
      space = m_.variables[o.variable_id()].space;
    } else if (o.kind == Operand::parameter) {
      address += layouts_[f.function].offsets[o.id];
    }
    if (space == Space::generic) {
      space = Space::global;
      for (auto [window, of] : {std::pair{shared_window, Space::shared},
                                {local_window, Space::local},
                                {constant_window, Space::constant},
                                {parameter_window, Space::param}})
        if (address >= window && address - window < window_bytes) space = of, address -= window;
      if (space == Space::param) {  // the kernel's, wherever its address went
        if (store)
          p.problem = "a kernel's parameters cannot be written";
        else if (std::vector<std::byte>& bytes = t.frames.front().parameters; address + size <= bytes.size())
          p.bytes = bytes.data() + address;
        else
          p.problem = fmt::format("address {:#x} is outside the {} bytes of parameters", address, bytes.size());
        return p;
      }
    }
    p.space = space;
    p.address = address;
    if (size && address % size != 0) {
      p.problem = fmt::format("address {:#x} is not a multiple of {}", address, size);
      return p;
    }
    auto within = [&](std::vector<std::byte>& bytes) {
      if (address <= bytes.size() && bytes.size() - address >= size)
        p.bytes = bytes.data() + address;
      else
        p.problem =
            fmt::format("address {:#x} is outside the {} bytes of {} memory", address, bytes.size(), name(space));
    };
    switch (space) {
      case Space::shared: within(shared_); break;
      case Space::local: within(t.local); break;
      case Space::constant:
        if (store)
          p.problem = "constant memory cannot be written";
        else
          within(owner_.constants_);
        break;
      case Space::param: within(o.kind == Operand::address_var ? f.arguments : f.parameters); break;
      default:
        p.bytes = memory_.find(address, size);
        if (!p.bytes) p.problem = fmt::format("address {:#x} is outside every allocation", address);
    }
    return p;
  }

  static uint64_t load(const std::byte* from, uint32_t bytes) {
    uint64_t v = 0;
    std::memcpy(&v, from, bytes);
    return v;
  }

  Result<void> load_store(Thread& t, const Function& f, const Instruction& i) {
    const bool store = i.op == Opcode::st;
    const Operand& at = f.operand(i, store ? 0 : 1);
    const Operand& data = f.operand(i, store ? 1 : 0);
    const uint32_t size = type_bytes(i.type);
    Place p = locate(t, at, i.mods.space, uint64_t{size} * i.mods.vector, store);
    if (!p.bytes) return fail(t, i, p.problem);
    for (uint32_t k = 0; k < i.mods.vector; ++k) {
      const Operand& o = data.kind == Operand::vector ? f.vector_elements[data.id + k] : data;
      if (store) {
        uint64_t v = read(t, o);
        std::memcpy(p.bytes + k * size, &v, size);
      } else {
        write(t, o, load(p.bytes + k * size, size), i.type);
      }
    }
    return {};
  }

  Result<void> atomic(Thread& t, const Function& f, const Instruction& i) {
    const uint32_t first = i.destination_count, size = type_bytes(i.type);
    Place p = locate(t, f.operand(i, first), i.mods.space, size, true);
    if (!p.bytes) return fail(t, i, p.problem);
    uint64_t old = load(p.bytes, size), a = read(t, f.operand(i, first + 1));
    uint64_t b = i.operand_count > first + 2 ? read(t, f.operand(i, first + 2)) : 0;
    // The manual: f32 atomic addition flushes subnormals in global memory, not in shared.
    uint64_t v = atomic_result(i.mods.atomic, i.type, old, a, b, p.space == Space::global);
    std::memcpy(p.bytes, &v, size);
    if (first) write(t, f.operand(i, 0), old, i.type);
    return {};
  }

  // ---- the ways of threads
  static uint64_t mixed(uint64_t a, uint64_t b) {
    a = (a ^ b) * 0x9E3779B97F4A7C15ull;
    a = (a ^ a >> 29) * 0xBF58476D1CE4E5B9ull;
    return a ^ a >> 32;
  }
  // A branch or call that the thread takes, and where to: threads of the warp that have come the same way may not go another when it says .uni.
  Result<void> follow(Thread& t, const Function& f, const Instruction& i, bool skipped) {
    const Operand& to = f.operand(i, i.op == Opcode::call ? i.destination_count : 0);
    if (is_none(i.guard) && to.kind != Operand::reg) return {};
    const uint64_t place = uint64_t{t.frames.back().function} << 32 | t.frames.back().pc;
    const uint64_t direction = skipped ? 0 : 1 + (to.kind == Operand::reg ? read(t, to) : 0);
    if (i.mods.uni) {
      const uint64_t key = mixed(mixed(t.way, place), t.index / 32);
      Way& first = ways_[key % ways_.size()];  // what another place has taken is forgotten
      if (first.key == key && first.direction != direction)
        return fail(t, i,
                    "undefined: threads of the warp that have come here together go different ways, against .uni");
      first = {key, direction};
    }
    t.way = mixed(mixed(t.way, place), direction);
    return {};
  }
  // The thread stands where all that it waited for are; all those at one instruction go on together.
  void met(Thread& t) { t.way = mixed(meetings_, uint64_t{t.frames.back().function} << 32 | t.frames.back().pc); }

  // ---- one instruction of one thread
  Result<void> step(Thread& t) {
    if (++stats_.instructions > launch_.max_instructions)
      return input_error("kernel {}: more than {} instructions executed", m_.functions[kernel_].name,
                         launch_.max_instructions);
    ++t.steps;
    Frame& frame = t.frames.back();
    const Function& f = m_.functions[frame.function];
    if (frame.pc >= f.instructions.size()) {
      return_from(t);
      return {};
    }
    const Instruction& i = f.instructions[frame.pc];
    const bool skipped = !is_none(i.guard) && static_cast<bool>(reg(t, index(i.guard)) & 1) == i.guard_negated;
    if (i.op == Opcode::bra || i.op == Opcode::brx || i.op == Opcode::call) RETURN_IF_ERROR(follow(t, f, i, skipped));
    if (skipped) {
      ++frame.pc;
      return {};
    }
    switch (i.op) {
      case Opcode::bra: frame.pc = f.labels[f.operand(i, 0).label_id()].at; return {};
      case Opcode::brx: {
        const BranchTargets& to = f.targets[f.operand(i, 1).id];
        const uint64_t k = read(t, f.operand(i, 0)) & 0xFFFFFFFF;
        if (k >= to.labels.size()) return fail(t, i, fmt::format("target {} of {}", k, to.labels.size()));
        frame.pc = f.labels[to.labels[k]].at;
        return {};
      }
      case Opcode::ret: return_from(t); return {};
      case Opcode::exit: finish(t); return {};
      case Opcode::trap: return fail(t, i, "trap");
      case Opcode::call: return call(t, f, i);
      case Opcode::brkpt:
      case Opcode::nanosleep:
      case Opcode::pmevent:
      case Opcode::griddepcontrol:  // one kernel at a time
      case Opcode::membar:
      case Opcode::fence: break;
      case Opcode::applypriority:
      case Opcode::discard:
      case Opcode::prefetch:
      case Opcode::prefetchu: break;  // a hint, even for addresses that nothing lies at
      case Opcode::ld:
      case Opcode::ldu:
      case Opcode::st: RETURN_IF_ERROR(load_store(t, f, i)); break;
      case Opcode::atom:
      case Opcode::red: RETURN_IF_ERROR(atomic(t, f, i)); break;
      case Opcode::cp:
        if (is_copy(i)) RETURN_IF_ERROR(copy(t, f, i));
        if (i.mods.mode == 97)
          RETURN_IF_ERROR(memory_barrier(t, f, i));  // arrives; without .noinc it was also expected
        break;
      case Opcode::cp_async_bulk: RETURN_IF_ERROR(copy_in_bulk(t, f, i)); break;
      case Opcode::mbarrier:
      case Opcode::mbarrier_expect_tx:
      case Opcode::mbarrier_complete_tx:
      case Opcode::mbarrier_arrive_expect_tx:
      case Opcode::mbarrier_drop_expect_tx:
      case Opcode::mbarrier_try_wait: RETURN_IF_ERROR(memory_barrier(t, f, i)); break;
      case Opcode::cvta: convert_address(t, f, i); break;
      case Opcode::alloca_: RETURN_IF_ERROR(allocate(t, f, i)); break;
      case Opcode::stacksave: write(t, f.operand(i, 0), t.local.size(), i.type); break;
      case Opcode::stackrestore: t.local.resize(std::min<uint64_t>(t.local.size(), read(t, f.operand(i, 0)))); break;
      case Opcode::isspacep: {
        uint64_t a = read(t, f.operand(i, 1)), w = window(i.mods.space);
        bool inside = a >= w && a - w < window_bytes;
        if (i.mods.space == Space::global) inside = !(a >= parameter_window && a < shared_window + window_bytes);
        write(t, f.operand(i, 0), inside, Type::pred);
        break;
      }
      case Opcode::shfl:
      case Opcode::vote:
      case Opcode::match:
      case Opcode::redux:
      case Opcode::elect:
      case Opcode::ldmatrix:
      case Opcode::stmatrix:
      case Opcode::activemask: return wait_for_warp(t, f, i);
      case Opcode::bar:
      case Opcode::barrier: return wait_at_barrier(t, f, i);
      default: RETURN_IF_ERROR(compute_one(t, f, i));
    }
    ++t.frames.back().pc;
    return {};
  }

  Result<void> compute_one(Thread& t, const Function& f, const Instruction& i) {
    const uint32_t d = i.destination_count;
    const Operand& to = f.operand(i, 0);
    if (i.op == Opcode::mov) {
      const Operand& from = f.operand(i, 1);
      uint64_t v = 0;
      if (from.kind == Operand::vector) {
        const uint32_t bits = 8 * type_bytes(i.type) / from.count;
        for (uint32_t k = 0; k < from.count; ++k)
          v |= (read(t, f.vector_elements[from.id + k]) & ((uint64_t{1} << bits) - 1)) << (k * bits);
      } else {
        v = read(t, from);
      }
      if (to.kind == Operand::vector) {
        const uint32_t bits = 8 * type_bytes(i.type) / to.count;
        for (uint32_t k = 0; k < to.count; ++k)
          write(t, f.vector_elements[to.id + k], v >> (k * bits),
                bits == 8    ? Type::b8
                : bits == 16 ? Type::b16
                             : Type::b32);
      } else {
        write(t, to, v, i.type);
      }
      return {};
    }
    uint64_t sources[5] = {};
    uint32_t n = 0;
    for (uint32_t k = d; k < i.operand_count && n < 5; ++k) sources[n++] = read(t, f.operand(i, k));
    Computed result;
    if (!compute(i, sources, n, t.carry, result))
      return fail(t, i, fmt::format("unsupported opcode `{}`", opcode_name(i.op)));
    write(t, to, result.value, operand_type_of(i));
    if (d > 1) write(t, f.operand(i, 1), result.second, Type::pred);
    return {};
  }

  // The type of a computation's first destination.
  static Type operand_type_of(const Instruction& i) {
    if (i.op == Opcode::setp || i.op == Opcode::testp) return Type::pred;
    if (i.op == Opcode::popc || i.op == Opcode::clz || i.op == Opcode::bfind) return Type::u32;
    if (i.op == Opcode::cvt && i.type == Type::none) return i.mods.mode < 96 ? Type::b16 : Type::b32;
    if (i.op == Opcode::mbarrier_pending_count) return Type::u32;
    if (i.op == Opcode::dp4a || i.op == Opcode::dp2a || i.type == Type::none) return Type::b32;
    return i.mods.part == MulPart::wide ? widened(i.type) : i.type;
  }

  static uint64_t window(Space s) {
    return s == Space::shared     ? shared_window
           : s == Space::local    ? local_window
           : s == Space::constant ? constant_window
           : s == Space::param    ? parameter_window
                                  : 0;
  }

  void convert_address(Thread& t, const Function& f, const Instruction& i) {
    uint64_t v = read(t, f.operand(i, 1)), w = window(i.mods.space);
    write(t, f.operand(i, 0), i.mods.to ? v - w : v + w, i.type);
  }

  // On top of the frame, which return_from takes away with it.
  Result<void> allocate(Thread& t, const Function& f, const Instruction& i) {
    const uint64_t align = i.operand_count > 2 ? static_cast<uint64_t>(f.operand(i, 2).value) : 8;
    const uint64_t at = align_up(t.local.size(), align), bytes = read(t, f.operand(i, 1));
    if (at > max_local_bytes || bytes > max_local_bytes - at)
      return fail(t, i, fmt::format("more than {} bytes of local memory", max_local_bytes));
    t.local.resize(at + bytes);
    write(t, f.operand(i, 0), at, i.type);
    return {};
  }

  Result<void> copy(Thread& t, const Function& f, const Instruction& i) {
    const uint64_t size = static_cast<uint64_t>(f.operand(i, 2).value);
    if (size != 4 && size != 8 && size != 16) return fail(t, i, "expected a copy of 4, 8 or 16 bytes");
    Place to = locate(t, f.operand(i, 0), Space::shared, size, true);
    if (!to.bytes) return fail(t, i, to.problem);
    Place from = locate(t, f.operand(i, 1), Space::global, size, false);
    if (!from.bytes) return fail(t, i, from.problem);
    const uint64_t copied = i.operand_count > 3 ? std::min(size, read(t, f.operand(i, 3)) & 0xFFFFFFFF) : size;
    std::memset(to.bytes, 0, size);
    std::memcpy(to.bytes, from.bytes, copied);
    return {};
  }

  Result<void> copy_in_bulk(Thread& t, const Function& f, const Instruction& i) {
    if (i.mods.mode >= 64) return {};  // commit_group, wait_group: nothing is under way
    const bool to_shared = i.mods.mode < 32;
    const uint64_t size = read(t, f.operand(i, 2)) & 0xFFFFFFFF;
    if (size % 16) return fail(t, i, fmt::format("a copy of {} bytes, expected a multiple of 16", size));
    for (uint64_t k = 0; k < size; k += 16) {
      Operand a = f.operand(i, 0), b = f.operand(i, 1);
      a.value += static_cast<int64_t>(k), b.value += static_cast<int64_t>(k);
      const Place to = locate(t, a, to_shared ? Space::shared : Space::global, 16, true);
      if (!to.bytes) return fail(t, i, to.problem);
      const Place from = locate(t, b, to_shared ? Space::global : Space::shared, 16, false);
      if (!from.bytes) return fail(t, i, from.problem);
      std::memcpy(to.bytes, from.bytes, 16);
    }
    return to_shared ? memory_barrier(t, f, i) : Result<void>();
  }

  // mbarrier, an object of 64 bits: the phase's number in bits 62 and 63, the bytes that are still to come (which may be fewer than none) from bit
  // 40 on, the arrivals that it expects from bit 20 on, those that it has had. A token is the object as it was at the arrival.
  Result<void> memory_barrier(Thread& t, const Function& f, const Instruction& i) {
    constexpr uint64_t most = (1u << 20) - 1;
    const uint32_t d = i.destination_count;
    const bool bulk = i.op == Opcode::cp_async_bulk;
    const BarrierStep step = barrier_step(i);
    Place p = locate(t, f.operand(i, bulk ? 3 : d), bulk ? Space::shared : i.mods.space, 8, true);
    if (!p.bytes) return fail(t, i, p.problem);
    if (p.space != Space::shared) return fail(t, i, "a barrier object lies in shared memory");
    const uint64_t old = load(p.bytes, 8), last = i.operand_count > d + 1 ? read(t, f.operand(i, bulk ? 2 : d + 1)) : 1;
    uint64_t phase = old >> 62, expected = old >> 20 & most, had = old & most;
    int64_t bytes = static_cast<int64_t>(old << 2) >> 42;
    const auto end_of_phase = [&] {
      if (had == expected && bytes == 0) phase = (phase + 1) & 3, had = 0;
    };
    if (step.expects || step.completes) {
      bytes += static_cast<int64_t>(last & 0xFFFFFFFF) * (step.completes ? -1 : 1);
      if (bytes > static_cast<int64_t>(most) || -bytes > static_cast<int64_t>(most))
        return fail(t, i, fmt::format("{} bytes are to come at a barrier object", bytes));
    }
    switch (step.what) {
      case BarrierStep::nothing: return {};
      case BarrierStep::count_bytes: end_of_phase(); break;
      case BarrierStep::init: phase = 0, bytes = 0, expected = last & 0xFFFFFFFF, had = 0; break;
      case BarrierStep::invalidate: phase = expected = had = 0, bytes = 0; break;
      case BarrierStep::test:
        write(t, f.operand(i, 0), step.parity ? (phase & 1) != (last & 1) : phase != last >> 62, Type::pred);
        return {};
      case BarrierStep::arrive: {
        const uint64_t count = step.expects ? 1 : last & 0xFFFFFFFF;
        if (count == 0 || had + count > expected || expected > most)
          return fail(t, i, fmt::format("{} arrivals at a barrier object that has had {} of {}", count, had, expected));
        if (step.drops)
          expected -= count;
        else
          had += count;
        end_of_phase();
        if (d) write(t, f.operand(i, 0), old, Type::b64);
      }
    }
    const uint64_t now = phase << 62 | (static_cast<uint64_t>(bytes) & 0x3FFFFF) << 40 | expected << 20 | had;
    std::memcpy(p.bytes, &now, 8);
    return {};
  }

  // ---- calls
  std::byte* parameter_bytes(Frame& f, const Operand& o, uint64_t size) {
    uint64_t at = o.kind == Operand::parameter ? layouts_[f.function].offsets[o.id] : places_[o.id];
    std::vector<std::byte>& bytes = o.kind == Operand::parameter ? f.parameters : f.arguments;
    return at <= bytes.size() && bytes.size() - at >= size ? bytes.data() + at : nullptr;
  }

  Result<void> call(Thread& t, const Function& f, const Instruction& i) {
    const uint32_t d = i.destination_count;
    uint32_t callee = f.operand(i, d).id, end = i.operand_count;
    if (f.operand(i, d).kind == Operand::reg) {
      const uint64_t address = read(t, f.operand(i, d));
      --end;
      callee = 0;
      while (callee < m_.functions.size() && (m_.functions[callee].is_entry || function_address(callee) != address))
        ++callee;
      if (callee == m_.functions.size()) return fail(t, i, fmt::format("call of {:#x}, which is no function", address));
      const Function& g = m_.functions[callee];
      if (g.results.size() != d || g.parameters.size() != end - d - 1)
        return fail(t, i, fmt::format("call of `{}`, which has another signature", g.name));
    }
    const Function& g = m_.functions[callee];
    if (g.external) return call_external(t, f, i, g);
    if (t.frames.size() >= max_depth || t.local.size() + local_bytes_[callee] > max_local_bytes)
      return fail(t, i, "calls nested too deep");
    const ParameterLayout& l = layouts_[callee];
    std::vector<std::byte> arguments(l.bytes);
    for (uint32_t k = d + 1; k < end; ++k) {
      const Parameter& p = g.parameters[k - d - 1];
      uint64_t size = uint64_t{type_bytes(p.type)} * std::max(p.count, 1u);
      const std::byte* from = parameter_bytes(t.frames.back(), f.operand(i, k), size);
      if (!from) return fail(t, i, fmt::format("argument {} is smaller than the parameter", k - d));
      std::memcpy(arguments.data() + l.offsets[k - d - 1], from, size);
    }
    enter(t, callee);
    t.frames.back().parameters = std::move(arguments);
    return {};
  }

  // The string at a generic address; ends where the memory does.
  std::string text_at(Thread& t, uint64_t address) {
    std::string s;
    for (; s.size() < 4096; ++address) {
      Place p =
          locate(t, {.kind = Operand::address_imm, .value = static_cast<int64_t>(address)}, Space::generic, 1, false);
      if (!p.bytes || *p.bytes == std::byte{0}) break;
      s += static_cast<char>(*p.bytes);
    }
    return s;
  }

  Result<void> call_external(Thread& t, const Function& f, const Instruction& i, const Function& g) {
    const uint32_t d = i.destination_count;
    uint64_t a[5] = {};
    for (uint32_t k = 0; k < 5 && k < g.parameters.size() && d + 1 + k < i.operand_count; ++k) {
      const uint32_t size = std::min(type_bytes(g.parameters[k].type), 8u);
      if (const std::byte* from = parameter_bytes(t.frames.back(), f.operand(i, d + 1 + k), size))
        a[k] = load(from, size);
    }
    uint64_t result = 0;
    if (g.name == "vprintf") {
      const std::string line = device_print(
          text_at(t, a[0]),
          [&](uint64_t offset, uint32_t bytes) -> std::optional<uint64_t> {
            Place p = locate(t, {.kind = Operand::address_imm, .value = static_cast<int64_t>(a[1] + offset)},
                             Space::generic, bytes, false);
            if (!p.bytes) return std::nullopt;
            return load(p.bytes, bytes);
          },
          [&](uint64_t address) { return text_at(t, address); });
      if (launch_.output) *launch_.output += line;
    } else if (g.name == "malloc") {
      result = memory_.allocate(a[0]);
    } else if (g.name == "free") {
      if (a[0]) memory_.release(a[0]);
    } else if (g.name == "__assertfail") {
      return fail(t, i,
                  fmt::format("{}:{}: {}: assertion `{}` failed", text_at(t, a[1]), a[2] & 0xFFFFFFFF, text_at(t, a[3]),
                              text_at(t, a[0])));
    } else {
      return fail(t, i, fmt::format("unsupported call of the external function `{}`", g.name));
    }
    if (d)
      if (std::byte* to =
              parameter_bytes(t.frames.back(), f.operand(i, 0), std::min(type_bytes(g.results[0].type), 8u)))
        std::memcpy(to, &result, std::min(type_bytes(g.results[0].type), 8u));
    ++t.frames.back().pc;
    return {};
  }

  void return_from(Thread& t) {
    if (t.frames.size() == 1) return finish(t);
    Frame frame = std::move(t.frames.back());
    t.frames.pop_back();
    t.local.resize(frame.local_base);
    Frame& caller = t.frames.back();
    const Function& f = m_.functions[caller.function];
    const Function& g = m_.functions[frame.function];
    const Instruction& i = f.instructions[caller.pc];
    const ParameterLayout& l = layouts_[frame.function];
    for (uint32_t k = 0; k < i.destination_count; ++k) {
      uint64_t size = uint64_t{type_bytes(g.results[k].type)} * std::max(g.results[k].count, 1u);
      std::byte* to = parameter_bytes(caller, f.operand(i, k), size);
      if (to) std::memcpy(to, frame.parameters.data() + l.offsets[g.parameters.size() + k], size);
    }
    ++caller.pc;
  }

  // ---- warps
  Result<void> wait_for_warp(Thread& t, const Function& f, const Instruction& i) {
    const uint32_t d = i.destination_count;
    uint32_t n = 0;
    if (moves_matrices(i)) {
      if (t.index % 32 < 8 * matrix_count(i)) {
        const Place row = locate(t, f.operand(i, d), i.mods.space, 16, d == 0);
        if (!row.bytes) return fail(t, i, row.problem);
        if (row.space != Space::shared) return fail(t, i, "matrices lie in shared memory");
        t.inputs[0] = reinterpret_cast<uint64_t>(row.bytes);
      }
      for (uint32_t k = d + 1; k < i.operand_count; ++k) t.inputs[k - d] = read(t, f.operand(i, k));
      t.mask = 0xFFFFFFFF;
      return enter_warp_wait(t, i);
    }
    for (uint32_t k = d; k < i.operand_count; ++k) t.inputs[n++] = read(t, f.operand(i, k));
    // The member mask is the last operand; activemask takes whoever is there.
    t.mask = i.op == Opcode::activemask ? 0 : static_cast<uint32_t>(t.inputs[n - 1]);
    return enter_warp_wait(t, i);
  }
  Result<void> enter_warp_wait(Thread& t, const Instruction& i) {
    if (i.op != Opcode::activemask && !(t.mask >> (t.index % 32) & 1))
      return fail(t, i, fmt::format("lane {} is not in its own member mask {:#x}", t.index % 32, t.mask));
    t.state = State::warp_wait;
    return {};
  }

  // Lets complete groups of waiting lanes go on; true if there were any. activemask takes the lanes that are there once nothing runs.
  bool release_warp(uint32_t warp, bool quiet) {
    const uint32_t first = warp * 32, end = std::min<uint32_t>(first + 32, static_cast<uint32_t>(threads_.size()));
    uint32_t live = 0, handled = 0;
    bool moved = false;
    for (uint32_t k = first; k < end; ++k)
      if (threads_[k].state != State::done) live |= 1u << (k - first);
    for (uint32_t k = first; k < end; ++k) {
      const Thread& t = threads_[k];
      if (t.state != State::warp_wait || (handled >> (k - first) & 1)) continue;
      const Instruction& i = instruction(t);
      // The manual: all lanes of the mask that have not exited execute the operation with the same qualifiers and mask.
      uint32_t here = 0;
      for (uint32_t j = first; j < end; ++j) {
        const Thread& u = threads_[j];
        if (u.state != State::warp_wait || u.mask != t.mask) continue;
        const Instruction& o = instruction(u);
        bool same = i.op == Opcode::activemask ? &o == &i : o.op == i.op && o.mods == i.mods && o.type == i.type;
        if (same) here |= 1u << (j - first);
      }
      handled |= here;
      if (i.op == Opcode::activemask ? !quiet : here != (t.mask & live)) continue;
      together(first, here, i);
      moved = true;
    }
    return moved;
  }

  // Executes a warp instruction for the lanes `here`, all at hand.
  void together(uint32_t first, uint32_t here, const Instruction& i) {
    uint64_t results[32] = {};
    bool predicates[32] = {};
    auto lane = [&](uint32_t k) -> Thread& { return threads_[first + k]; };
    auto each = [&](auto&& body) {
      for (uint32_t k = 0; k < 32; ++k)
        if (here >> k & 1) body(k);
    };
    switch (i.op) {
      case Opcode::shfl:
        each([&](uint32_t k) {
          const uint64_t* in = lane(k).inputs;
          const uint32_t segment = in[2] >> 8 & 31, c = in[2] & 31, b = in[1] & 31;
          const int32_t high = static_cast<int32_t>((k & segment) | (c & ~segment)),
                        low = static_cast<int32_t>(k & segment);
          int32_t j = 0;
          bool p = false;
          switch (i.mods.shuffle) {
            case ShuffleMode::up: j = static_cast<int32_t>(k - b), p = j >= high; break;
            case ShuffleMode::down: j = static_cast<int32_t>(k + b), p = j <= high; break;
            case ShuffleMode::bfly: j = static_cast<int32_t>(k ^ b), p = j <= high; break;
            default: j = low | static_cast<int32_t>(b & ~segment), p = j <= high; break;
          }
          if (!p) j = static_cast<int32_t>(k);
          results[k] = here >> (j & 31) & 1 ? lane(static_cast<uint32_t>(j & 31)).inputs[0] : unset;
          predicates[k] = p;
        });
        break;
      case Opcode::vote: {
        uint32_t ballot = 0;
        each([&](uint32_t k) { ballot |= static_cast<uint32_t>(lane(k).inputs[0] & 1) << k; });
        uint64_t value = 0;
        switch (i.mods.vote) {
          case VoteMode::all: value = ballot == here; break;
          case VoteMode::any: value = ballot != 0; break;
          case VoteMode::uni: value = ballot == 0 || ballot == here; break;
          default: value = ballot; break;
        }
        each([&](uint32_t k) { results[k] = value; });
        break;
      }
      case Opcode::match: {
        uint32_t every = 0;
        each([&](uint32_t k) {
          uint32_t same = 0;
          each([&](uint32_t j) {
            same |= static_cast<uint32_t>(extend(lane(j).inputs[0], i.type) == extend(lane(k).inputs[0], i.type)) << j;
          });
          results[k] = same;
          every = same;
        });
        if (i.mods.mode == 32)  // match.all
          each([&](uint32_t k) { predicates[k] = every == here, results[k] = every == here ? here : 0; });
        break;
      }
      case Opcode::redux: {
        uint64_t value = 0;
        bool start = true;
        each([&](uint32_t k) {
          value = start ? extend(lane(k).inputs[0], i.type)
                        : atomic_result(i.mods.atomic, i.type, value, lane(k).inputs[0], 0, false);
          start = false;
        });
        each([&](uint32_t k) { results[k] = value; });
        break;
      }
      case Opcode::activemask: each([&](uint32_t k) { results[k] = here; }); break;
      case Opcode::ldmatrix:
      case Opcode::stmatrix:
        // Of matrix m, lane k has the elements 2 * (k % 4) and the next of row k / 4, or with .trans of that column.
        each([&](uint32_t k) {
          for (uint32_t m = 0; m < matrix_count(i); ++m) {
            uint32_t both = 0;
            for (uint32_t e = 0; e < 2; ++e) {
              const uint32_t along = 2 * (k % 4) + e, across = k / 4;
              const bool transposed = i.mods.mode % 32 != (i.mods.mode < 32 ? 1 : 0);
              const uint32_t row = 8 * m + (transposed ? along : across), column = transposed ? across : along;
              if (!(here >> row & 1)) continue;
              std::byte* at = reinterpret_cast<std::byte*>(lane(row).inputs[0]) + 2 * column;
              const uint16_t half = static_cast<uint16_t>(lane(k).inputs[1 + m] >> (16 * e));
              if (i.op == Opcode::stmatrix)
                std::memcpy(at, &half, 2);
              else
                both |= static_cast<uint32_t>(load(at, 2)) << (16 * e);
            }
            const Instruction& own = instruction(lane(k));
            if (i.op == Opcode::ldmatrix) write(lane(k), function(lane(k)).operand(own, m), both, Type::b32);
          }
        });
        break;
      case Opcode::elect:  // any lane may be chosen; the assembler takes the lowest too
        each([&](uint32_t k) {
          results[k] = static_cast<uint32_t>(std::countr_zero(here));
          predicates[k] = k == results[k];
        });
        break;
      default: break;  // bar.warp.sync
    }
    ++meetings_;
    each([&](uint32_t k) {
      Thread& t = lane(k);
      const Function& f = function(t);
      const Instruction& own = instruction(t);
      if (i.op != Opcode::activemask) met(t);
      if (own.destination_count && !moves_matrices(i))
        write(t, f.operand(own, 0), results[k], own.type == Type::none || i.op == Opcode::match ? Type::u32 : i.type);
      if (own.destination_count > 1 && !moves_matrices(i)) write(t, f.operand(own, 1), predicates[k], Type::pred);
      t.state = State::running;
      ++t.frames.back().pc;
    });
  }

  // ---- barriers
  struct Barrier {
    uint32_t arrived = 0;  // by bar.arrive, which does not wait
    uint32_t expected = 0;
  };

  Result<void> wait_at_barrier(Thread& t, const Function& f, const Instruction& i) {
    const uint32_t d = i.destination_count;
    const bool arrive = (i.op == Opcode::bar && i.mods.mode == 1) || (i.op == Opcode::barrier && i.mods.mode == 32);
    const bool reduce = i.mods.mode >= 64;
    if (is_warp_barrier(i)) {
      t.mask = static_cast<uint32_t>(read(t, f.operand(i, d)));
      return enter_warp_wait(t, i);
    }
    t.barrier = static_cast<uint32_t>(read(t, f.operand(i, d)));
    if (t.barrier >= 16) return fail(t, i, fmt::format("barrier {}, there are 16", t.barrier));
    const uint32_t rest = i.operand_count - d - 1 - (reduce ? 1 : 0);
    t.expected = rest ? static_cast<uint32_t>(read(t, f.operand(i, d + 1))) : 0;
    if (rest && (t.expected == 0 || t.expected % 32 != 0))
      return fail(t, i, fmt::format("{} threads at a barrier, expected a multiple of 32", t.expected));
    t.predicate = reduce && (read(t, f.operand(i, i.operand_count - 1)) & 1);
    if (arrive) {
      ++barriers_[t.barrier].arrived;
      barriers_[t.barrier].expected = t.expected;
      ++t.frames.back().pc;
      return {};
    }
    t.state = State::barrier_wait;
    return {};
  }

  bool release_barriers() {
    bool moved = false;
    for (uint32_t b = 0; b < 16; ++b) {
      uint32_t waiting = 0, expected = barriers_[b].expected, votes = 0;
      for (const Thread& t : threads_)
        if (t.state == State::barrier_wait && t.barrier == b)
          ++waiting, votes += t.predicate, expected = std::max(expected, t.expected);
      if (waiting == 0) continue;
      // Without a count: all threads that have not exited. A count is of whole warps: a partial last warp counts as 32.
      uint32_t total = waiting + barriers_[b].arrived;
      uint32_t need =
          expected ? std::min<uint32_t>(expected, static_cast<uint32_t>(align_up(threads_.size(), 32))) : live_;
      if (expected && threads_.size() % 32 && need > threads_.size()) need = static_cast<uint32_t>(threads_.size());
      if (total < need) continue;
      barriers_[b] = {};
      ++meetings_;
      for (Thread& t : threads_) {
        if (t.state != State::barrier_wait || t.barrier != b) continue;
        const Function& f = function(t);
        const Instruction& i = instruction(t);
        if (i.mods.mode == 64) write(t, f.operand(i, 0), votes, Type::u32);
        if (i.mods.mode == 96) write(t, f.operand(i, 0), votes == waiting, Type::pred);
        if (i.mods.mode == 97) write(t, f.operand(i, 0), votes != 0, Type::pred);
        if (is_aligned_barrier(i)) met(t);
        t.state = State::running;
        ++t.frames.back().pc;
      }
      moved = true;
    }
    return moved;
  }

  uint64_t next_random() {  // splitmix64
    uint64_t z = random_ += 0x9E3779B97F4A7C15ull;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ z >> 27) * 0x94D049BB133111EBull;
    return z ^ z >> 31;
  }

  Interpreter& owner_;
  const Module& m_;
  Memory& memory_;
  const Launch& launch_;
  const uint32_t kernel_;
  uint64_t random_;
  std::vector<ParameterLayout> layouts_;      // per function
  std::vector<std::vector<uint64_t>> masks_;  // per function and register
  std::vector<uint64_t> places_;          // per variable: address within its space (local: within its frame)
  std::vector<uint64_t> local_bytes_, argument_bytes_;  // per function
  uint64_t shared_bytes_ = 0, static_shared_ = 0, dynamic_base_ = 0, reserved_bytes_ = 0, module_local_bytes_ = 0;
  std::array<uint32_t, 3> ctaid_{};
  std::vector<std::byte> shared_;
  std::vector<Thread> threads_;  // of the block at hand
  std::array<Barrier, 16> barriers_{};
  struct Way {
    uint64_t key = 0, direction = 0;
  };
  std::vector<Way> ways_ = std::vector<Way>(1 << 14);
  uint64_t meetings_ = 0;
  uint32_t live_ = 0;  // threads that have not exited
  InterpreterStats stats_;
};

Interpreter::Interpreter(const Module& module, Memory& memory)
    : module_(module), memory_(memory), places_(module.variables.size()) {
  std::vector<std::string> problems = verify(module);  // the machine trusts ids and operand kinds
  if (!problems.empty()) problem_ = problems.front();
  for (uint32_t k = 0; k < module.variables.size(); ++k) {
    const Variable& v = module.variables[static_cast<VariableId>(k)];
    if (v.space == Space::global) {
      places_[k] = memory.allocate(variable_bytes(v));
      if (variable_bytes(v) >= v.initial.size()) memory.write(places_[k], v.initial);
    } else if (v.space == Space::constant) {
      constants_.resize(align_up(constants_.size(), variable_align(v)));
      places_[k] = constants_.size();
      constants_.insert(constants_.end(), v.initial.begin(), v.initial.end());
      constants_.resize(places_[k] + std::max<uint64_t>(variable_bytes(v), v.initial.size()));
    }
  }
  for (uint32_t k = 0; k < module.variables.size(); ++k) {
    const Variable& v = module.variables[static_cast<VariableId>(k)];
    for (const Variable::Address& a : v.addresses) {
      const uint64_t value = (a.function ? function_address(a.id) : places_[a.id]) + static_cast<uint64_t>(a.addend);
      if (v.space == Space::global)
        memory.write(places_[k] + a.offset, std::as_bytes(std::span(&value, 1)));
      else if (places_[k] + a.offset + 8 <= constants_.size())
        std::memcpy(constants_.data() + places_[k] + a.offset, &value, 8);
    }
  }
}

uint64_t Interpreter::global(std::string_view name) const {
  for (uint32_t k = 0; k < module_.variables.size(); ++k) {
    const Variable& v = module_.variables[static_cast<VariableId>(k)];
    if (v.space == Space::global && v.name == name) return places_[k];
  }
  return 0;
}

Result<InterpreterStats> Interpreter::launch(std::string_view kernel, const Launch& launch) {
  if (!problem_.empty()) return input_error("{}", problem_);
  for (uint32_t k = 0; k < module_.functions.size(); ++k) {
    const Function& f = module_.functions[k];
    if (f.name == kernel && f.is_entry && !f.external) return Machine(*this, launch, k).run();
  }
  return input_error("no kernel `{}` in the module", kernel);
}

Result<InterpreterStats> interpret(const Module& module, std::string_view kernel, const Launch& launch,
                                   Memory& memory) {
  return Interpreter(module, memory).launch(kernel, launch);
}

}  // namespace rndn::ptx
