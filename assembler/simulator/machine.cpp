// The simulated GPU as its users see it: memory, modules, launches (simulator.h).
//
// Loading places the module's variables in device memory, patches their addresses into the code, and decodes every kernel once.
// Launching fills constant bank 0 as the driver does for the target (docs/sass.md, section 7) and runs all blocks.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "assembler/cubin/cubin.h"
#include "assembler/simulator/driver_calls.h"
#include "assembler/simulator/execute.h"
#include "assembler/simulator/lanes.h"
#include "assembler/simulator/select.h"
#include "assembler/simulator/simulator.h"
#include "libraries/base/system/cancel.h"

namespace rndn::sim {

namespace {
constexpr uint32_t call_stack_bytes =
    1024;  // local memory on top of a kernel's own, for functions that it calls, and alloca
constexpr uint64_t descriptor_value = 0x0003'ffff'0c0d'e000;
constexpr uint32_t constant_banks =
    5;  // 0: parameters, 2: a kernel's literals, 3: .const, 4: addresses (ptxas 12.9 and later)

struct Module {
  std::vector<std::unique_ptr<Program>> programs;
  std::vector<std::pair<std::string, uint64_t>> variables;  // device addresses of the global ones
  std::vector<uint64_t> allocations;
  std::array<std::vector<std::byte>, constant_banks> constants;  // the module's banks
};

template <class T>
void put(std::vector<std::byte>& bank, uint64_t offset, T v) {
  if (offset + sizeof v <= bank.size()) std::memcpy(bank.data() + offset, &v, sizeof v);
}
}  // namespace

struct Machine::State {
  const isa::Target* target = nullptr;
  std::string target_name;
  Memory memory;
  std::vector<std::optional<Module>> modules;

  explicit State(uint64_t bytes) : memory(bytes) {}
  Result<const isa::Target*> checked_target() const {
    if (!target) return usage_error("the simulator knows no target `{}`", target_name);
    return target;
  }
  const Module* find(ModuleId id) const {
    return index(id) < modules.size() && modules[index(id)] ? &*modules[index(id)] : nullptr;
  }
  Result<const Program*> program(ModuleId id, std::string_view name) const {
    const Module* module = find(id);
    if (!module) return usage_error("no such module");
    for (const auto& p : module->programs)
      if (p->name == name) return p.get();
    return input_error("the module has no kernel `{}`", name);
  }
  // `what`, for messages, changes memory by f(where it lies here).
  template <class F>
  Result<void> change(std::string_view what, uint64_t address, uint64_t bytes, F&& f) {
    if (bytes == 0) return {};
    std::byte* to = memory.translate_range(address, bytes, true);
    if (!to)
      return world_error("{} of {} bytes at device address {:#x}: {}", what, bytes, address, memory.describe(address + bytes - 1));
    f(to);
    memory.note_written(address, bytes);
    return {};
  }
};

Machine::Machine(std::string_view target, uint64_t memory_bytes) : state_(std::make_unique<State>(memory_bytes)) {
  state_->target = isa::find_target(target);
  state_->target_name = target;
}
Machine::~Machine() = default;

Result<uint64_t> Machine::allocate(uint64_t bytes, uint64_t alignment) {
  return state_->memory.allocate(bytes, alignment);
}
Result<void> Machine::free(uint64_t address) { return state_->memory.free(address); }
Result<uint64_t> Machine::map(void* host, uint64_t bytes) { return state_->memory.map(host, bytes); }
Result<void> Machine::unmap(uint64_t address) { return state_->memory.unmap(address); }

Result<void> Machine::write(uint64_t address, const void* from, uint64_t bytes) {
  return state_->change("write", address, bytes, [&](std::byte* to) { std::memcpy(to, from, bytes); });
}
Result<void> Machine::read(uint64_t address, void* to, uint64_t bytes) const {
  if (bytes == 0) return {};
  const std::byte* from = state_->memory.translate_range(address, bytes, true);
  if (!from)
    return world_error("read of {} bytes at device address {:#x}: {}", bytes, address,
                       state_->memory.describe(address + bytes - 1));
  std::memcpy(to, from, bytes);
  return {};
}
Result<void> Machine::fill(uint64_t address, uint8_t value, uint64_t bytes) {
  return state_->change("fill", address, bytes, [&](std::byte* to) { std::memset(to, value, bytes); });
}
Result<void> Machine::fill_words(uint64_t address, uint32_t value, uint64_t words) {
  return state_->change("fill", address, 4 * words, [&](std::byte* to) {
    for (uint64_t k = 0; k < words; ++k) std::memcpy(to + 4 * k, &value, 4);
  });
}

Result<ModuleId> Machine::load(std::span<const std::byte> cubin) {
  ASSIGN_OR_RETURN(const isa::Target* target, state_->checked_target());
  ASSIGN_OR_RETURN(cubin::Image image, cubin::read(cubin));
  if (image.sm / 10 != target->sm / 10 || image.sm > target->sm)
    return input_error("the cubin is for sm_{}, the simulated GPU is {}", image.sm, target->name);
  Module module;
  const auto address_of = [&](const std::string& name) -> std::optional<uint64_t> {
    for (const auto& [n, address] : module.variables)
      if (n == name) return address;
    return std::nullopt;
  };
  const auto give_up = [&](Error error) {
    for (uint64_t a : module.allocations) (void)state_->memory.free(a);
    return error;
  };
  // Places, then contents (which may hold addresses of other variables).
  for (const cubin::Variable& v : image.variables) {
    if (v.constant) {
      if (v.offset > 0x10000 || v.size > 0x10000)
        return give_up(input_error("constant variable `{}` lies beyond the bank's 64 KiB", v.name));
      if (v.bank >= constant_banks)
        return give_up(
            input_error("constant variable `{}` lies in bank {}, which the simulator does not know", v.name, v.bank));
      std::vector<std::byte>& bank = module.constants[v.bank];
      bank.resize(std::max<size_t>(bank.size(), v.offset + v.size));
      std::copy_n(v.initial.begin(), std::min<size_t>(v.initial.size(), v.size),
                  bank.begin() + static_cast<ptrdiff_t>(v.offset));
      module.variables.emplace_back(v.name, v.offset);
      continue;
    }
    auto place = state_->memory.allocate(std::max<uint64_t>(v.size, 1),
                                         std::max<uint64_t>(256, std::bit_ceil(std::max<uint32_t>(v.align, 1))));
    if (!place) return give_up(place.error());
    module.allocations.push_back(*place);
    module.variables.emplace_back(v.name, *place);
  }
  // Functions with sections of their own lie behind every kernel's code, each at one address in all of them, which data may hold.
  constexpr uint64_t code_alignment = 128;
  const auto room = [](const cubin::Kernel& k) { return (k.code.size() + code_alignment - 1) / code_alignment * code_alignment; };
  std::vector<std::pair<const cubin::Kernel*, uint64_t>> functions;
  uint64_t end_of_code = 0;
  for (const cubin::Kernel& k : image.kernels)
    if (k.role == cubin::Kernel::entry) end_of_code = std::max<uint64_t>(end_of_code, room(k));
  for (const cubin::Kernel& k : image.kernels)
    if (k.role != cubin::Kernel::entry) functions.emplace_back(&k, end_of_code), end_of_code += room(k);
  const auto function_named = [&](const std::string& name) -> std::optional<uint64_t> {
    for (const auto& [function, address] : functions)
      if (function->name == name) return address;
    return std::nullopt;
  };
  for (const cubin::Variable& v : image.variables) {
    std::byte* host = nullptr;
    if (v.constant) {
      host = module.constants[v.bank].data() + v.offset;
    } else {
      const uint64_t place = *address_of(v.name);
      host = state_->memory.translate_range(place, v.size, true);
      std::memset(host, 0, v.size);
      state_->memory.note_written(place, v.size);
      std::copy_n(v.initial.begin(), std::min<size_t>(v.initial.size(), v.size), host);
    }
    for (const cubin::Relocation& r : v.relocations) {
      auto value = address_of(r.symbol);
      if (value && r.kind == cubin::Relocation::low_32)
        return give_up(
            input_error("variable `{}` holds half of the address of `{}`, which takes 8 bytes", v.name, r.symbol));
      if (!value) value = function_named(r.symbol);
      if (const auto function = driver_function(r.symbol); !value && function)
        value = driver_function_address(*function);
      const uint64_t bytes = r.kind == cubin::Relocation::generic_64 ? 8 : r.kind == cubin::Relocation::low_32 ? 4 : 0;
      if (!value || !bytes || v.size < bytes || r.offset > v.size - bytes)
        return give_up(input_error("variable `{}` refers to `{}`, which cannot be resolved", v.name, r.symbol));
      const uint64_t resolved = *value + static_cast<uint64_t>(r.addend);
      std::memcpy(host + r.offset, &resolved, bytes);
    }
  }
  for (cubin::Kernel& k : image.kernels) {
    if (k.role != cubin::Kernel::entry) continue;
    std::vector<std::byte> code = k.code;
    if (!functions.empty()) code.resize(end_of_code);
    std::vector<std::pair<uint64_t, uint32_t>> driver_calls;  // places and functions
    std::vector<std::pair<uint64_t, uint64_t>> calls;         // places and addresses of the module's functions
    // A section's code at its address, with what its relocations put there.
    const auto put_code = [&](const cubin::Kernel& part, uint64_t base) -> Result<void> {
      std::copy(part.code.begin(), part.code.end(), code.begin() + static_cast<ptrdiff_t>(base));
      for (const cubin::Relocation& r : part.relocations) {
        // A place in the section itself, or in a function: a kernel's own code begins at address 0.
        const auto here = r.symbol == part.name ? std::optional<uint64_t>(base) : function_named(r.symbol);
        if (r.kind == cubin::Relocation::call) {
          const auto function = driver_function(r.symbol);
          if (here)
            calls.emplace_back(base + r.offset, *here + static_cast<uint64_t>(r.addend));
          else if (function)
            driver_calls.emplace_back(base + r.offset, *function);
          else
            return input_error("kernel `{}` calls `{}`, which the simulator does not know", part.name, r.symbol);
          continue;
        }
        const auto value = here ? here : address_of(r.symbol);
        if (!value)
          return input_error("kernel `{}` refers to `{}`, which the module does not define", part.name, r.symbol);
        const uint64_t resolved = *value + static_cast<uint64_t>(r.addend);
        const uint32_t half =
            static_cast<uint32_t>(r.kind == cubin::Relocation::absolute_high_32 ? resolved >> 32 : resolved);
        if (r.kind == cubin::Relocation::generic_64 || r.kind == cubin::Relocation::low_32 || part.code.size() < 8 ||
            r.offset > part.code.size() - 8)
          return input_error("kernel `{}` has a relocation that the simulator does not know", part.name);
        uint64_t word;
        std::memcpy(&word, code.data() + base + r.offset, 8);
        const uint32_t shift = target->family == isa::Family::volta ? 32 : 20;
        word = (word & ~(uint64_t{0xffffffff} << shift)) | static_cast<uint64_t>(half) << shift;
        std::memcpy(code.data() + base + r.offset, &word, 8);
      }
      return {};
    };
    if (auto done = put_code(k, 0); !done) return give_up(done.error());
    for (const auto& [function, address] : functions) {
      if (!function->constants.empty())
        return give_up(input_error("function `{}` has constants of its own, which the simulator does not know", function->name));
      if (auto done = put_code(*function, address); !done) return give_up(done.error());
    }
    if (k.local_bytes > 512 * 1024)
      return give_up(input_error("kernel `{}`: {} bytes of local memory per thread", k.name, k.local_bytes));
    auto program = std::make_unique<Program>();
    program->name = k.name;
    program->shared_bytes = k.shared_bytes;
    if (k.uses_shared) program->shared_bytes = std::max(program->shared_bytes, target->shared_base);
    program->local_bytes = k.local_bytes;
    program->dynamic_stack = k.dynamic_stack;
    program->parameter_bytes = k.parameter_bytes;
    program->constants2 = std::move(k.constants);
    program->reported_registers = k.registers;
    program->max_threads = k.max_threads;
    program->required_threads = k.required_threads;
    if (auto decoded = decode_program(*target, code, *program); !decoded) return give_up(decoded.error());
    const auto call_at = [&](uint64_t place) -> Op* {
      const uint32_t at = program->index_of(place);
      return at < program->size() && program->addresses[at] == place ? &program->ops[at] : nullptr;
    };
    const auto no_call = [&](uint64_t place) {
      return give_up(input_error("kernel `{}` calls a function at {:#x}, which holds no instruction", k.name, place));
    };
    for (const auto& [place, function] : driver_calls) {
      Op* const op = call_at(place);
      if (!op) return no_call(place);
      op->run = driver_call;
      op->x = function;
    }
    for (const auto& [place, address] : calls) {
      Op* const op = call_at(place);
      if (!op) return no_call(place);
      op->target = program->index_of(address);
    }
    module.programs.push_back(std::move(program));
  }
  state_->modules.emplace_back(std::move(module));
  return static_cast<ModuleId>(state_->modules.size() - 1);
}

Result<void> Machine::unload(ModuleId id) {
  if (!state_->find(id)) return usage_error("no such module");
  for (uint64_t a : state_->modules[index(id)]->allocations) RETURN_IF_ERROR(state_->memory.free(a));
  state_->modules[index(id)].reset();
  return {};
}

Result<KernelInfo> Machine::kernel(ModuleId id, std::string_view name) const {
  ASSIGN_OR_RETURN(const Program* p, state_->program(id, name));
  return KernelInfo{p->name, p->reported_registers, p->shared_bytes, p->local_bytes, p->parameter_bytes, p->size()};
}

std::vector<std::string> Machine::kernels(ModuleId id) const {
  std::vector<std::string> names;
  if (const Module* module = state_->find(id))
    for (const auto& p : module->programs) names.push_back(p->name);
  return names;
}

Result<uint64_t> Machine::variable(ModuleId id, std::string_view name) const {
  const Module* module = state_->find(id);
  if (!module) return usage_error("no such module");
  for (const auto& [n, address] : module->variables)
    if (n == name) return address;
  return input_error("the module has no variable `{}`", name);
}

namespace {

// The driver reserves 1 KiB of a block's shared memory from sm_80 on: on sm_90 the first one. Where the part begins that cooperative groups use stands in
// bank 0. Before sm_90 only kernels that read it have the memory here, behind their own, so that others' accesses beyond theirs are found.
constexpr uint32_t reserved_shared = 0x400;
bool uses_reserved_shared(const Program& program, const isa::Target& t) {
  if (!t.has(isa::Feature::reserves_shared)) return false;
  for (const isa::Instruction& in : program.instructions)
    for (const isa::Operand& o : in.operands)
      if (o.kind == isa::OperandKind::constant && o.bank == 0 && o.value == t.reserved_shared_offset) return true;
  return false;
}

void fill_bank0(Launch& launch, const isa::Target& t, uint32_t dynamic_shared, std::span<const std::byte> parameters) {
  std::vector<std::byte>& bank = launch.banks[0];
  launch.bank_bytes[0] = t.parameter_base + static_cast<uint32_t>(parameters.size());
  bank.assign(std::max<size_t>(launch.bank_bytes[0], t.parameter_base) + 16, std::byte{0});
  for (uint32_t i = 0; i < 3; ++i) {
    put(bank, t.ntid_offset + 4 * i, i == 0 ? launch.block.x : i == 1 ? launch.block.y : launch.block.z);
    put(bank, t.nctaid_offset + 4 * i, i == 0 ? launch.grid.x : i == 1 ? launch.grid.y : launch.grid.z);
  }
  put(bank, t.stack_offset, launch.local_bytes);
  put(bank, t.generic_constants_offset, constant_window);
  if (t.generic_parameters_offset) {
    put(bank, t.generic_parameters_offset, parameter_window + t.generic_parameters_from);
    // Where they end, for the isspacep.param of ptxas.
    if (t.generic_parameters_from)
      put(bank, t.generic_parameters_offset + 8, parameter_window + launch.bank_bytes[0]);
    else
      put(bank, 0x12c, launch.bank_bytes[0]);
  }
  constexpr auto low = [](uint64_t v) { return static_cast<uint32_t>(v); };
  constexpr auto high = [](uint64_t v) { return static_cast<uint32_t>(v >> 32); };
  if (t.family == isa::Family::volta) {
    put(bank, 0x18, shared_window);
    put(bank, 0x20, local_window);
    put(bank, 0x2c, dynamic_shared);
    put(bank, 0x30, uint64_t{1});  // grid id
    put(bank, 0x10c, 1u);          // multiprocessors
    if (t.descriptor_offset) put(bank, t.descriptor_offset, descriptor_value);
  } else {
    put(bank, 0x00, low(shared_window));
    put(bank, 0x100, high(shared_window));
    put(bank, 0x04, low(local_window));
    put(bank, 0x104, high(local_window));
    put(bank, 0x28, uint64_t{1});
    put(bank, 0xfc, dynamic_shared);
    put(bank, 0x10c, 16u);  // rounds of the loops that read a 64-bit clock
  }
  if (!parameters.empty()) std::memcpy(bank.data() + t.parameter_base, parameters.data(), parameters.size());
}

}  // namespace

Result<Counters> Machine::launch(ModuleId id, std::string_view kernel, Dim3 grid, Dim3 block, uint32_t dynamic_shared,
                                 std::span<const std::byte> parameters, const Options& options,
                                 std::vector<Report>* reports) {
  ASSIGN_OR_RETURN(const isa::Target* target, state_->checked_target());
  ASSIGN_OR_RETURN(const Program* program, state_->program(id, kernel));
  const Module& module = *state_->find(id);

  const uint64_t threads = static_cast<uint64_t>(block.x) * block.y * block.z;
  if (threads == 0 || threads > GpuLimits::threads_per_block || block.z > 64)
    return usage_error("kernel `{}`: a block of {}x{}x{} threads", kernel, block.x, block.y, block.z);
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 0x7fffffff || grid.y > 65535 || grid.z > 65535)
    return usage_error("kernel `{}`: a grid of {}x{}x{} blocks", kernel, grid.x, grid.y, grid.z);
  for (uint32_t i = 0; i < 3; ++i) {
    const uint32_t extent = i == 0 ? block.x : i == 1 ? block.y : block.z;
    if (program->required_threads[i] && program->required_threads[i] != extent)
      return usage_error("kernel `{}` requires blocks of {}x{}x{} threads", kernel, program->required_threads[0],
                         program->required_threads[1], program->required_threads[2]);
  }
  if (program->max_threads[0] && threads > static_cast<uint64_t>(program->max_threads[0]) *
                                               std::max(1u, program->max_threads[1]) *
                                               std::max(1u, program->max_threads[2]))
    return usage_error("kernel `{}` allows at most {} threads per block", kernel,
                       program->max_threads[0] * program->max_threads[1] * program->max_threads[2]);
  // Registers are allocated to warps in units of 256.
  const uint64_t per_warp = (program->reported_registers * uint64_t{lanes} + 255) / 256 * 256;
  if (per_warp * ((threads + lanes - 1) / lanes) > target->registers_per_sm)
    return world_error("kernel `{}`: {} threads of {} registers exceed the multiprocessor's {}", kernel, threads,
                       program->reported_registers, target->registers_per_sm);
  if (parameters.size() < program->parameter_bytes || parameters.size() > (program->parameter_bytes + 15) / 8 * 8)
    return usage_error("kernel `{}` takes {} bytes of parameters, not {}", kernel, program->parameter_bytes,
                       parameters.size());
  const uint64_t shared = (program->shared_bytes + uint64_t{15}) / 16 * 16 + dynamic_shared;
  if (shared > target->max_dynamic_shared + target->shared_base)
    return world_error("kernel `{}`: {} bytes of shared memory, {} has {}", kernel, shared, target->name,
                       target->max_dynamic_shared);

  Launch launch;
  launch.program = program;
  launch.memory = &state_->memory;
  launch.heap = &state_->memory;
  launch.options = options;
  launch.grid = grid;
  launch.block = block;
  launch.shared_bytes = dynamic_shared ? static_cast<uint32_t>(shared) : program->shared_bytes;
  bool calls = program->dynamic_stack;
  for (const isa::Instruction& in : program->instructions)
    calls |= in.mnemonic == isa::Mnemonic::CALL_ABS || in.mnemonic == isa::Mnemonic::CALL_ABS_R ||
             in.mnemonic == isa::Mnemonic::JCAL || in.mnemonic == isa::Mnemonic::CALL_REL || in.mnemonic == isa::Mnemonic::CALL_REL_R ||
             in.mnemonic == isa::Mnemonic::CAL || in.mnemonic == isa::Mnemonic::PRET;
  launch.local_bytes = (program->local_bytes + 15) / 16 * 16 + (calls ? call_stack_bytes : 0);
  launch.banks.resize(constant_banks);
  launch.bank_bytes.assign(constant_banks, 0);
  launch.descriptor = descriptor_value;
  fill_bank0(launch, *target, dynamic_shared, parameters);
  uint32_t reserved = std::min(launch.shared_bytes, target->shared_base);
  if (uses_reserved_shared(*program, *target)) {
    const uint32_t at = target->shared_base ? 0 : static_cast<uint32_t>(shared);
    reserved = reserved_shared;
    put(launch.banks[0], target->reserved_shared_offset, at);
    launch.shared_bytes = std::max(launch.shared_bytes, at + reserved);
  }
  if (target->family == isa::Family::volta) put(launch.banks[0], 0x114, reserved);  // which %total_smem_size leaves out
  const auto set_bank = [&](uint32_t bank, const std::vector<std::byte>& bytes) {
    launch.banks[bank] = bytes;
    launch.banks[bank].resize(bytes.size() + 16);
    launch.bank_bytes[bank] = static_cast<uint32_t>(bytes.size());
  };
  set_bank(2, program->constants2);
  for (const uint32_t bank : {1u, 3u, 4u}) set_bank(bank, module.constants[bank]);
  launch.pool.resize((program->pool.size() + 1) * lanes);
  for (size_t i = 0; i < program->pool.size(); ++i) {
    const PoolEntry& entry = program->pool[i];
    uint32_t v = entry.value;
    if (entry.constant) {
      if (entry.bank >= constant_banks ||
          uint64_t{entry.value} + 4 > (entry.bank == 0 ? launch.banks[0].size() : launch.bank_bytes[entry.bank]))
        return input_error("kernel `{}` at {:#x}: `{}` reads c[{:#x}][{:#x}], beyond the bank's {} bytes", kernel,
                           program->addresses[entry.op], isa::text(*target, program->instructions[entry.op]),
                           entry.bank, entry.value, entry.bank < constant_banks ? launch.bank_bytes[entry.bank] : 0);
      std::memcpy(&v, launch.banks[entry.bank].data() + entry.value, 4);
    }
    std::fill_n(launch.pool.begin() + static_cast<ptrdiff_t>(i * lanes), lanes, v);
  }

  if (!options.check_uninitialised)
    state_->memory.distrust();
  else if (!state_->memory.track())
    return world_error("no memory to note which bytes of device memory are written");
  Counters counters;
  execute(launch, counters);
  RETURN_IF_ERROR(check_cancelled());
  if (reports) *reports = launch.reports;
  if (!launch.reports.empty()) return world_error("{}", launch.reports.front().text());
  return counters;
}

std::string Report::text() const {
  return fmt::format("kernel `{}` at {:#x}: `{}`: {} (block {},{},{} thread {},{},{})", kernel, address, instruction,
                     message, block[0], block[1], block[2], thread[0], thread[1], thread[2]);
}

}  // namespace rndn::sim
