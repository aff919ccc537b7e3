// Calls and jump tables become branches, so that every pass after this one sees entries without either.
//
// Per entry, every call of a .func is replaced by the body with registers, labels and .local variables of its own; `ret` becomes a branch behind
// the copy. Parameters and results travel in .param variables of the caller: in the copy they are named directly, since the callee only reads
// its parameters and the caller does not touch them during the call (PTX ISA, "Parameter passing").
// Then the .param variables of the entry go: one that is only read and written in pieces that do not overlap becomes a register per piece, any
// other one (a structure accessed in different ways, or whose address is taken) becomes a .local variable.
//
// Calls through a register: a function's address is a number (ptx::function_address), and the call is a chain of comparisons with the functions
// of the module whose address is taken and whose signature fits; another number traps.
// Recursion: a function that can reach itself has one copy per entry, reached by branches. Its activations are frames on a stack in local memory:
// the number of the place to return to, parameters, results, .local and .param variables, and the registers that are alive across its calls.
// The stack has room for `stack_frames` of the largest frames; a call beyond it traps.
// Functions of the driver (vprintf, malloc, free, __assertfail) stay calls: their operands are .local variables made for them, which selection
// takes to the registers of the ABI; what is alive across them is kept in local memory.
// brx.idx: a tree of comparisons.
// alloca: memory below the kernel's frame. A word at the frame's beginning, the .extern .local variable $top, says how far down it reaches; a function
// that takes some puts the word back when it is left. Only such kernels have the word.
//
// Invariant: the result has the meaning of the input, and passes the PTX verifier.
// Cost: linear in the size of the result, which is limited (`max_instructions`).
#include "ptx/transform/inline_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "ptx/opcodes.h"
#include "ptx/transform/call_graph.h"
#include "ptx/transform/driver_calls.h"

namespace rndn::ptx {
namespace {

using ptx::Opcode;
using ptx::Operand;
using ptx::Space;
using ptx::Type;

constexpr size_t max_instructions = 4'000'000;  // of one function with all that it calls
constexpr size_t max_depth = 200;
constexpr uint64_t stack_frames = 64, least_stack = 2048,
                   most_stack = 65536;  // of the largest frames; bytes per thread

// A body under construction. Labels get their places as instructions are added.
struct Body {
  ptx::Function f;

  uint32_t add_operand(const Operand& o) {
    f.operands.push_back(o);
    return static_cast<uint32_t>(f.operands.size() - 1);
  }
  void add(ptx::Instruction i, std::initializer_list<Operand> operands) {
    i.first_operand = static_cast<uint32_t>(f.operands.size());
    i.operand_count = static_cast<uint8_t>(operands.size());
    f.operands.append({operands.begin(), operands.size()});
    f.instructions.push_back(i);
  }
  ptx::LabelId label(std::string name) { return f.labels.add({std::move(name), UINT32_MAX}); }
  void place(ptx::LabelId l) { f.labels[l].at = static_cast<uint32_t>(f.instructions.size()); }
  Operand reg(Type type, std::string name) {
    return {Operand::reg, false, 0, static_cast<uint32_t>(index(f.add_register(type, std::move(name)))), 0};
  }
  // op of type `type`, the first operand its destination.
  void compute(Opcode op, Type type, uint32_t line, std::initializer_list<Operand> operands, Type type2 = Type::none) {
    ptx::Instruction i;
    i.op = op, i.type = type, i.type2 = type2, i.line = line, i.destination_count = 1;
    add(i, operands);
  }
  void compare(ptx::Compare c, Type type, uint32_t line, Operand p, Operand a, Operand b) {
    ptx::Instruction i;
    i.op = Opcode::setp, i.type = type, i.line = line, i.destination_count = 1;
    i.mods.compare = c;
    add(i, {p, a, b});
  }
  void load(Type type, Space space, uint32_t line, Operand to, Operand from) {
    ptx::Instruction i;
    i.op = Opcode::ld, i.type = type, i.line = line, i.destination_count = 1;
    i.mods.space = space;
    add(i, {to, from});
  }
  void store(Type type, Space space, uint32_t line, Operand to, Operand from) {
    ptx::Instruction i;
    i.op = Opcode::st, i.type = type, i.line = line;
    i.mods.space = space;
    add(i, {to, from});
  }
  void plain(Opcode op, uint32_t line) {
    ptx::Instruction i;
    i.op = op, i.line = line;
    add(i, {});
  }
  void branch(ptx::LabelId to, uint32_t line, ptx::RegisterId guard = none<ptx::RegisterId>(), bool negated = false) {
    ptx::Instruction i;
    i.op = Opcode::bra;
    i.line = line, i.guard = guard, i.guard_negated = negated;
    add(i, {{Operand::label, false, 0, static_cast<uint32_t>(index(to)), 0}});
  }
};

Operand immediate(int64_t value) { return {Operand::immediate, false, 0, 0, value}; }
Operand at_register(const Operand& base, int64_t offset) { return {Operand::address_reg, false, 0, base.id, offset}; }
uint32_t align_of(const ptx::Parameter& p) { return std::max(p.align, ptx::type_bytes(p.type)); }
uint64_t align_up(uint64_t v, uint64_t a) { return a ? (v + a - 1) / a * a : v; }

class Inliner {
 public:
  Inliner(ptx::Module& module, const CallGraph& graph) : m_(module), graph_(graph) {}

  Result<void> run(uint32_t entry) {
    entry_ = entry;
    const ptx::Function original = m_.functions[entry];
    body_.f = original;
    body_.f.registers.clear(), body_.f.register_names.clear(), body_.f.labels.clear(), body_.f.instructions.clear(),
        body_.f.operands.clear(), body_.f.vector_elements.clear(), body_.f.prototypes.clear(), body_.f.targets.clear();
    if (graph_.reaches_allocation(entry)) {
      top_ = add_variable(Type::b32, 0, 16, "$top");
      m_.variables[ptx::VariableId{top_}].external = true;
      const Operand below = reg(Type::b32, "%top");
      body_.compute(Opcode::mov, Type::u32, 0, {below, {Operand::variable, false, 0, top_, 0}});
      set_top(0, below);
    }
    RETURN_IF_ERROR(copy(entry, original, nullptr, nullptr, none<ptx::LabelId>(), nullptr));
    if (!bodies_.empty()) body_.plain(Opcode::exit, 0);
    for (size_t k = 0; k < bodies_.size(); ++k) RETURN_IF_ERROR(shared_body(k));  // grows
    finish_stack();
    replace_parameters();
    save_registers(m_, entry_, body_.f, sites_);
    finish_frames();
    m_.functions[entry] = std::move(body_.f);
    return {};
  }

 private:
  static Error fail(const ptx::Function& f, const ptx::Instruction& i, std::string why) {
    return Error{Fault::input, fmt::format("function {}, line {}: {}", f.name, i.line, why)}.about(f.name);
  }

  // --- copies of bodies

  // The recursive functions that a call from outside of them reaches. Their calls and returns all lead through one choice of where to go on, so
  // that the graph stays reducible; another such call has copies of its own, so that no cycle goes through the code between them.
  struct SharedBody;
  struct Group {
    ptx::LabelId choice{};
    std::vector<ptx::LabelId> places;        // by number - 1
    std::map<uint32_t, SharedBody*> bodies;  // by function
  };

  // The one copy of a recursive function in a group, and its frames.
  struct SharedBody {
    Group* group = nullptr;
    uint32_t function = 0, number = 0;  // number: of its beginning
    ptx::LabelId end{};
    std::vector<uint32_t> parameters;        // offsets in the frame: parameters, then results
    std::map<uint32_t, uint32_t> variables;  // VariableId -> offset
    uint64_t bytes = 8;                      // the number of the place to return to comes first
    uint32_t first_register = 0, end_register = 0;
  };

  // Appends a copy of g's body. `call` with its `arguments`, already in terms of the entry; null for the entry itself and for a shared body.
  // `frame`: the shared body that the copy belongs to.
  Result<void> copy(uint32_t function, const ptx::Function& g, const ptx::Instruction* call, const Operand* arguments,
                    ptx::LabelId end, SharedBody* frame) {
    stack_.push_back(function);
    const bool inlined = call != nullptr, own_frame = frame && !call;
    const std::string suffix = inlined || own_frame ? fmt::format("_i{}", ++copies_) : std::string();
    const uint32_t first_register = static_cast<uint32_t>(body_.f.registers.size());
    for (uint32_t r = 0; r < g.registers.size(); ++r)
      body_.f.add_register(g.registers[ptx::RegisterId{r}].type, ptx::register_name(g, ptx::RegisterId{r}) + suffix);
    const uint32_t first_label = static_cast<uint32_t>(body_.f.labels.size());
    for (const ptx::Label& l : g.labels) body_.f.labels.add({l.name + suffix, UINT32_MAX, l.nounroll});
    // Labels by place, to set them as instructions come out.
    std::vector<std::pair<uint32_t, uint32_t>> labels;
    for (uint32_t k = 0; k < g.labels.size(); ++k) labels.push_back({g.labels[ptx::LabelId{k}].at, k});
    std::sort(labels.begin(), labels.end());
    size_t next_label = 0;
    const bool gives_back = (inlined || own_frame) && graph_.allocates[function];
    const Operand taken = gives_back ? top(0) : Operand();
    const ptx::LabelId left = gives_back ? body_.label(fmt::format("$left_{}", ++labels_)) : end;

    auto map = [&](Operand o) {
      switch (o.kind) {
        case Operand::reg:
        case Operand::address_reg: o.id += first_register; break;
        case Operand::label: o.id += first_label; break;
        case Operand::variable:
        case Operand::address_var:
          if (const std::optional<uint32_t> at = frame ? in_frame(*frame, function, o.id) : std::nullopt)
            o = at_register(frame_register(), o.value + *at);
          else
            o.id = variable(function, o.id, inlined || own_frame);
          break;
        case Operand::parameter:
          if (own_frame) {
            o = at_register(frame_register(), o.value + frame->parameters[o.id]);
          } else if (inlined) {
            const Operand& a = o.id < g.parameters.size() ? arguments[call->destination_count + 1 + o.id]
                                                          : arguments[o.id - g.parameters.size()];
            const int64_t offset = o.value;
            o = a;
            o.value += offset;
            if (o.kind == Operand::variable) o.kind = Operand::address_var;
          }
          break;
        default: break;
      }
      return o;
    };
    for (uint32_t k = 0; k <= g.instructions.size(); ++k) {
      for (; next_label < labels.size() && labels[next_label].first <= k; ++next_label)
        body_.place(ptx::LabelId{first_label + labels[next_label].second});
      if (k == g.instructions.size()) break;
      ptx::Instruction i = g.instructions[k];
      if (!is_none(i.guard)) i.guard = ptx::RegisterId{static_cast<uint32_t>(index(i.guard)) + first_register};
      if ((inlined || own_frame) && i.op == Opcode::ret) {
        body_.branch(left, i.line, i.guard, i.guard_negated);
        continue;
      }
      if (body_.f.instructions.size() > max_instructions)
        return fail(g, i, fmt::format("more than {} instructions once its calls are inlined", max_instructions));
      if (i.op == Opcode::brx) {
        std::vector<ptx::LabelId> targets;
        for (ptx::LabelId l : g.targets[g.operand(i, 1).id].labels)
          targets.push_back(ptx::LabelId{first_label + static_cast<uint32_t>(index(l))});
        jump_table(i, map(g.operand(i, 0)), targets);
        continue;
      }
      std::vector<Operand> operands;
      for (uint32_t o = 0; o < i.operand_count; ++o) {
        const Operand& original = g.operand(i, o);
        Operand x = map(original);
        if (x.kind == Operand::vector) {
          const uint32_t first = static_cast<uint32_t>(body_.f.vector_elements.size());
          for (uint32_t e = 0; e < x.count; ++e)
            body_.f.vector_elements.push_back(map(g.vector_elements[original.id + e]));
          x.id = first;
        }
        if (i.op == Opcode::mov || i.op == Opcode::cvta) {
          // `mov %rd, param`: the address, not what lies there.
          if (x.kind == Operand::address_var) x.kind = Operand::variable;
          if (x.kind == Operand::address_reg) x = address_in_frame(x, ptx::type_bytes(i.type) == 8, i.line);
          if (x.kind == Operand::function) x = immediate(static_cast<int64_t>(ptx::function_address(x.id)));
        }
        operands.push_back(x);
      }
      if (i.op == Opcode::call) {
        RETURN_IF_ERROR(expand(g, i, operands, frame));
        continue;
      }
      if (ptx::uses_stack(i)) {
        change_top(i, operands);
        continue;
      }
      // Through a register, a .func reaches its parameters where the caller put them.
      if ((inlined || own_frame) && (i.op == Opcode::ld || i.op == Opcode::st) && i.mods.space == Space::param)
        for (const Operand& o : operands)
          if (o.kind == Operand::address_reg) i.mods.space = Space::local;
      i.first_operand = static_cast<uint32_t>(body_.f.operands.size());
      body_.f.operands.append(operands);
      body_.f.instructions.push_back(i);
    }
    if (gives_back) {
      body_.place(left);
      set_top(0, taken);
    }
    stack_.pop_back();
    return {};
  }

  // --- the stack's top

  Operand top_address() const { return {Operand::address_var, false, 0, top_, 0}; }
  Operand top(uint32_t line) {
    const Operand here = reg(Type::b32, "%top");
    body_.load(Type::u32, Space::local, line, here, top_address());
    return here;
  }
  void set_top(uint32_t line, Operand to) { body_.store(Type::u32, Space::local, line, top_address(), to); }

  // alloca, stacksave, stackrestore. Addresses in local memory have 32 bits, sizes of 64 count their low half.
  void change_top(const ptx::Instruction& i, const std::vector<Operand>& operands) {
    const ptx::LabelId skip = body_.label(fmt::format("$skip_{}", ++labels_));
    if (!is_none(i.guard)) body_.branch(skip, i.line, i.guard, !i.guard_negated);
    const bool wide = ptx::type_bytes(i.type) == 8;
    const auto narrow = [&](Operand o) {
      if (o.kind != Operand::reg || !wide) {
        o.value = static_cast<int32_t>(o.value);
        return o;
      }
      const Operand low = reg(Type::b32, "%low");
      body_.compute(Opcode::cvt, Type::u32, i.line, {low, o}, Type::u64);
      return low;
    };
    if (i.op == Opcode::stackrestore) {
      set_top(i.line, narrow(operands[0]));
    } else {
      Operand place = top(i.line);
      if (i.op == Opcode::alloca_) {
        const Operand below = reg(Type::b32, "%below"), aligned = reg(Type::b32, "%taken");
        body_.compute(Opcode::sub, Type::u32, i.line, {below, place, narrow(operands[1])});
        body_.compute(Opcode::and_, Type::b32, i.line,
                      {aligned, below, immediate(operands.size() > 2 ? -operands[2].value : -8)});
        set_top(i.line, place = aligned);
      }
      if (wide)
        body_.compute(Opcode::cvt, Type::u64, i.line, {operands[0], place}, Type::u32);
      else
        body_.compute(Opcode::mov, Type::b32, i.line, {operands[0], place});
    }
    body_.place(skip);
  }

  Result<void> expand(const ptx::Function& caller, const ptx::Instruction& i, std::vector<Operand>& operands,
                      SharedBody* frame) {
    const ptx::LabelId end = body_.label(fmt::format("$end_{}", ++labels_));
    if (!is_none(i.guard)) body_.branch(end, i.line, i.guard, !i.guard_negated);
    const Operand callee = operands[i.destination_count];
    if (callee.kind == Operand::reg)
      RETURN_IF_ERROR(call_through_register(caller, i, operands, frame, end));
    else
      RETURN_IF_ERROR(call(caller, i, callee.id, operands, frame, end));
    body_.place(end);
    return {};
  }

  // Calls the function `callee`; the code after it goes on at `end`, which the caller places.
  Result<void> call(const ptx::Function& caller, const ptx::Instruction& i, uint32_t callee,
                    const std::vector<Operand>& operands, SharedBody* frame, ptx::LabelId end) {
    if (callee >= m_.functions.size()) return fail(caller, i, "a call of no function");
    const ptx::Function& g = m_.functions[callee];
    if (g.external) {
      if (!driver_resolves(g))
        return fail(caller, i, fmt::format("unsupported call of `{}`, which has no body in this module", g.name));
      return call_driver(caller, i, callee, operands);
    }
    if (graph_.recursive[callee]) return call_shared(caller, i, callee, operands, frame);
    if (stack_.size() > max_depth) return fail(caller, i, fmt::format("calls nested deeper than {}", max_depth));
    return copy(callee, g, &i, operands.data(), end, frame);
  }

  Result<void> call_through_register(const ptx::Function& caller, const ptx::Instruction& i,
                                     std::vector<Operand>& operands, SharedBody* frame, ptx::LabelId end) {
    const std::vector<uint32_t> candidates = graph_.candidates(m_, caller, i);
    const Operand address = operands[i.destination_count];
    ptx::Instruction direct = i;
    direct.guard = none<ptx::RegisterId>();
    --direct.operand_count;  // the prototype
    operands.pop_back();
    for (uint32_t g : candidates) {
      const Operand other = reg(Type::pred, "%call");
      const ptx::LabelId next = body_.label(fmt::format("$next_{}", ++labels_));
      body_.compare(ptx::Compare::ne, Type::b64, i.line, other, address,
                    immediate(static_cast<int64_t>(ptx::function_address(g))));
      body_.branch(next, i.line, other.reg_id());
      const ptx::LabelId after = body_.label(fmt::format("$end_{}", ++labels_));
      RETURN_IF_ERROR(call(caller, direct, g, operands, frame, after));
      body_.place(after);
      body_.branch(end, i.line);
      body_.place(next);
    }
    body_.plain(Opcode::trap, i.line);
    return {};
  }

  // brx.idx: halves the targets until one is left.
  void jump_table(const ptx::Instruction& i, const Operand& number, std::span<const ptx::LabelId> targets) {
    const ptx::LabelId skip = body_.label(fmt::format("$skip_{}", ++labels_));
    if (!is_none(i.guard)) body_.branch(skip, i.line, i.guard, !i.guard_negated);
    const auto choose = [&](auto&& self, uint32_t first, std::span<const ptx::LabelId> among) -> void {
      if (among.size() <= 1) {
        if (among.empty())
          body_.plain(Opcode::trap, i.line);
        else
          body_.branch(among[0], i.line);
        return;
      }
      const uint32_t half = static_cast<uint32_t>(among.size() / 2);
      const Operand low = reg(Type::pred, "%brx");
      const ptx::LabelId below = body_.label(fmt::format("$below_{}", ++labels_));
      body_.compare(ptx::Compare::lt, Type::u32, i.line, low, number, immediate(first + half));
      body_.branch(below, i.line, low.reg_id());
      self(self, first + half, among.subspan(half));
      body_.place(below);
      self(self, first, among.first(half));
    };
    choose(choose, 0, targets);
    body_.place(skip);
  }

  // --- functions of the driver

  // Arguments and result in .local variables of the call; selection (Selector::call_driver) takes them to registers and back.
  Result<void> call_driver(const ptx::Function& caller, const ptx::Instruction& i, uint32_t callee,
                           const std::vector<Operand>& operands) {
    const ptx::Function& g = m_.functions[callee];
    const std::vector<ptx::Parameter> parameters = g.parameters, results = g.results;  // m_ grows
    auto storage = [&](const ptx::Parameter& p, uint32_t k) {
      auto [at, fresh] = abi_variables_.try_emplace({callee, k}, 0);
      if (fresh) at->second = add_variable(p.type, p.count, 8, fmt::format("$abi_{}_{}", m_.functions[callee].name, k));
      return Operand{Operand::variable, false, 0, at->second, 0};
    };
    std::vector<Operand> made;
    for (uint32_t k = 0; k < results.size(); ++k) made.push_back(storage(results[k], 100 + k));
    made.push_back({Operand::function, false, 0, callee, 0});
    for (uint32_t k = 0; k < parameters.size(); ++k) {
      if (bytes_of(parameters[k]) != 4 && bytes_of(parameters[k]) != 8)
        return fail(caller, i, fmt::format("unsupported parameter {} of `{}`", k + 1, m_.functions[callee].name));
      made.push_back(storage(parameters[k], k));
      Operand to = made.back();
      to.kind = Operand::address_var;
      copy_bytes(i.line, to, Space::local, operands[i.destination_count + 1u + k], parameters[k]);
    }
    const bool returns = m_.functions[callee].name != "__assertfail";
    Site site;
    if (returns) {
      site.save = body_.label(fmt::format("$save_{}", ++labels_));
      site.restore = body_.label(fmt::format("$restore_{}", labels_));
      body_.place(site.save);
    }
    ptx::Instruction c;
    c.op = Opcode::call, c.line = i.line, c.destination_count = static_cast<uint8_t>(results.size());
    c.operand_count = static_cast<uint8_t>(made.size());
    c.first_operand = static_cast<uint32_t>(body_.f.operands.size());
    body_.f.operands.append(made);
    body_.f.instructions.push_back(c);
    if (!returns) {
      body_.plain(Opcode::exit, i.line);
      return {};
    }
    body_.place(site.restore);
    sites_.push_back(site);
    for (uint32_t k = 0; k < results.size(); ++k) {
      Operand from = made[k];
      from.kind = Operand::address_var;
      copy_out(i.line, operands[k], from, results[k]);
    }
    return {};
  }

  // --- recursion

  // The register with the place of the running activation's frame in local memory.
  Operand frame_register() {
    if (frame_register_.kind == Operand::none) {
      frame_register_ = reg(Type::b32, "%frame");
      where_ = reg(Type::b32, "%where");
      stack_variable_ = add_variable(Type::b8, 16, 16, "$stack");
    }
    return frame_register_;
  }

  // Offset in the frame of a .local or .param variable of the function.
  std::optional<uint32_t> in_frame(SharedBody& b, uint32_t function, uint32_t id) {
    const ptx::Variable& v = m_.variables[ptx::VariableId{id}];
    if (v.function != function || (v.space != Space::local && v.space != Space::param)) return std::nullopt;
    auto [at, fresh] = b.variables.try_emplace(id, 0);
    if (fresh) {
      const uint64_t size = uint64_t{ptx::type_bytes(v.type)} * std::max<uint64_t>(v.count, 1);
      b.bytes = align_up(b.bytes, std::max(v.align, ptx::type_bytes(v.type)));
      at->second = static_cast<uint32_t>(b.bytes);
      b.bytes += size;
    }
    return at->second;
  }

  // The address that [frame + offset] names, as a value.
  Operand address_in_frame(const Operand& x, bool wide, uint32_t line) {
    const Operand sum = reg(Type::b32, "%local");
    body_.compute(Opcode::add, Type::u32, line, {sum, {Operand::reg, false, 0, x.id, 0}, immediate(x.value)});
    if (!wide) return sum;
    const Operand address = reg(Type::b64, "%local");
    body_.compute(Opcode::cvt, Type::u64, line, {address, sum}, Type::u32);
    return address;
  }

  // The number of a place where shared bodies go on.
  static uint32_t place(Group& group, ptx::LabelId label) {
    group.places.push_back(label);
    return static_cast<uint32_t>(group.places.size());
  }

  SharedBody& shared(Group& group, uint32_t function) {
    SharedBody*& at = group.bodies[function];
    if (at) return *at;
    bodies_.push_back(std::make_unique<SharedBody>());
    at = bodies_.back().get();
    SharedBody& b = *at;
    b.group = &group;
    b.function = function;
    const ptx::Function& g = m_.functions[function];
    b.number = place(group, body_.label(fmt::format("$begin_{}", ++labels_)));
    b.end = body_.label(fmt::format("$return_{}", labels_));
    for (const std::vector<ptx::Parameter>* list : {&g.parameters, &g.results})
      for (const ptx::Parameter& p : *list) {
        b.bytes = align_up(b.bytes, align_of(p));
        b.parameters.push_back(static_cast<uint32_t>(b.bytes));
        b.bytes += bytes_of(p);
      }
    return b;
  }

  Result<void> call_shared(const ptx::Function& caller, const ptx::Instruction& i, uint32_t callee,
                           const std::vector<Operand>& operands, SharedBody* frame) {
    const Operand running = frame_register();
    if (!frame) {
      groups_.push_back(std::make_unique<Group>());
      groups_.back()->choice = body_.label(fmt::format("$choice_{}", ++labels_));
    }
    Group& group = frame ? *frame->group : *groups_.back();
    SharedBody& to = shared(group, callee);
    const ptx::Function& g = m_.functions[callee];
    const std::vector<ptx::Parameter> parameters = g.parameters, results = g.results;  // m_ grows
    const uint32_t line = i.line;
    const ptx::LabelId back = body_.label(fmt::format("$back_{}", ++labels_));
    const uint32_t number = place(group, back);
    (void)caller;
    const Operand stack{Operand::variable, false, 0, stack_variable_, 0};
    // The frame of the callee.
    auto next_frame = [&] {
      const Operand next = reg(Type::b32, "%next");
      if (frame) {
        body_.compute(Opcode::add, Type::u32, line, {next, running, immediate(0)});
        frame_sizes_.push_back({static_cast<uint32_t>(body_.f.operands.size() - 1), frame});
      } else {
        body_.compute(Opcode::mov, Type::u32, line, {next, stack});
      }
      return next;
    };
    const Operand next = next_frame();
    if (frame) {
      const Operand base = reg(Type::b32, "%base"), used = reg(Type::b32, "%used"), full = reg(Type::pred, "%full");
      const ptx::LabelId fits = body_.label(fmt::format("$fits_{}", ++labels_));
      body_.compute(Opcode::mov, Type::u32, line, {base, stack});
      body_.compute(Opcode::sub, Type::u32, line, {used, next, base});
      body_.compare(ptx::Compare::le, Type::u32, line, full, used, immediate(0));
      stack_limits_.push_back(static_cast<uint32_t>(body_.f.operands.size() - 1));
      body_.branch(fits, line, full.reg_id());
      body_.plain(Opcode::trap, line);
      body_.place(fits);
    }
    for (uint32_t k = 0; k < parameters.size(); ++k)
      copy_bytes(line, at_register(next, to.parameters[k]), Space::local, operands[i.destination_count + 1u + k],
                 parameters[k]);
    body_.store(Type::u32, Space::local, line, at_register(next, 0), immediate(number));
    Site site{body_.label(fmt::format("$save_{}", ++labels_)),
              body_.label(fmt::format("$restore_{}", labels_)),
              running,
              frame ? frame->first_register : 0,
              frame ? UINT32_MAX - 1 : 0,
              nullptr};
    body_.place(site.save);
    body_.compute(Opcode::mov, Type::b32, line, {running, next});
    body_.compute(Opcode::mov, Type::u32, line, {where_, immediate(to.number)});
    body_.branch(group.choice, line);
    body_.place(back);
    if (frame) {
      body_.compute(Opcode::sub, Type::u32, line, {running, running, immediate(0)});
      frame_sizes_.push_back({static_cast<uint32_t>(body_.f.operands.size() - 1), frame});
      body_.place(site.restore);
      site.frame_bytes = &frame->bytes;
      sites_.push_back(site);
      site_bodies_.push_back({sites_.size() - 1, frame});
    } else {
      body_.place(site.restore);
    }
    const Operand after = next_frame();
    for (uint32_t k = 0; k < results.size(); ++k)
      copy_out(line, operands[k], at_register(after, to.parameters[parameters.size() + k]), results[k]);
    return {};
  }

  // The body that all calls share: its code, then the way back to where the activation's number says.
  Result<void> shared_body(size_t k) {
    SharedBody& b = *bodies_[k];
    const ptx::Function g = m_.functions[b.function];
    b.first_register = static_cast<uint32_t>(body_.f.registers.size());
    body_.place(b.group->places[b.number - 1]);
    RETURN_IF_ERROR(copy(b.function, g, nullptr, nullptr, b.end, &b));
    b.end_register = static_cast<uint32_t>(body_.f.registers.size());
    body_.place(b.end);
    body_.load(Type::u32, Space::local, 0, where_, at_register(frame_register_, 0));
    body_.branch(b.group->choice, 0);
    return {};
  }

  void finish_stack() {
    for (const auto& group : groups_) {
      body_.place(group->choice);
      for (uint32_t k = 0; k + 1 < group->places.size(); ++k) {
        const Operand here = reg(Type::pred, "%here");
        body_.compare(ptx::Compare::eq, Type::u32, 0, here, where_, immediate(k + 1));
        body_.branch(group->places[k], 0, here.reg_id());
      }
      body_.branch(group->places.back(), 0);
    }
    for (auto& [site, b] : site_bodies_) {
      sites_[site].first_register = b->first_register;
      sites_[site].end_register = b->end_register;
    }
  }

  // Frames have their sizes: with room for the registers that save_registers put there.
  void finish_frames() {
    if (bodies_.empty()) return;
    uint64_t largest = 16;
    for (const auto& b : bodies_) {
      b->bytes = align_up(b->bytes, 16);
      largest = std::max(largest, b->bytes);
    }
    const uint64_t bytes = std::max(std::clamp(stack_frames * largest, least_stack, most_stack), 4 * largest);
    m_.variables[ptx::VariableId{stack_variable_}].count = bytes;
    for (auto& [operand, b] : frame_sizes_) body_.f.operands[operand].value = static_cast<int64_t>(b->bytes);
    for (uint32_t operand : stack_limits_) body_.f.operands[operand].value = static_cast<int64_t>(bytes - largest);
  }

  // --- services

  Operand reg(Type type, const char* name) { return body_.reg(type, fmt::format("{}_{}", name, ++registers_)); }

  uint32_t add_variable(Type type, uint64_t count, uint32_t align, std::string name) {
    ptx::Variable v;
    v.space = Space::local, v.type = type, v.count = count, v.align = align, v.function = entry_;
    v.name = fmt::format("{}_{}", name, m_.functions[entry_].name);
    m_.variables.add(std::move(v));
    return static_cast<uint32_t>(m_.variables.size() - 1);
  }

  static Space space_of(const Operand& o) { return o.kind == Operand::address_reg ? Space::local : Space::param; }
  static Operand as_address(Operand o) {
    if (o.kind == Operand::variable) o.kind = Operand::address_var;
    return o;
  }

  // [to] = [from] for a parameter: an argument of the call, in a .param variable or a frame.
  void copy_bytes(uint32_t line, Operand to, Space to_space, Operand from, const ptx::Parameter& p) {
    move_bytes(line, to, to_space, as_address(from), space_of(from), p);
  }
  void copy_out(uint32_t line, Operand to, Operand from, const ptx::Parameter& p) {
    move_bytes(line, as_address(to), space_of(to), from, Space::local, p);
  }
  void move_bytes(uint32_t line, Operand to, Space to_space, Operand from, Space from_space, const ptx::Parameter& p) {
    const uint64_t size = bytes_of(p);
    uint32_t step = std::min(8u, p.count ? std::max(p.align, ptx::type_bytes(p.type)) : ptx::type_bytes(p.type));
    while (step > 1 && size % step) step /= 2;
    const Type type = step == 8 ? Type::b64 : step == 4 ? Type::b32 : step == 2 ? Type::b16 : Type::b8;
    for (uint64_t at = 0; at < size; at += step) {
      const Operand value = reg(step == 1 ? Type::b16 : type, "%copy");
      Operand source = from, target = to;
      source.value += static_cast<int64_t>(at), target.value += static_cast<int64_t>(at);
      body_.load(type, from_space, line, value, source);
      body_.store(type, to_space, line, target, value);
    }
  }

  // The entry's own copy of a function's .local and .param variables.
  uint32_t variable(uint32_t function, uint32_t id, bool inlined) {
    const ptx::Variable& v = m_.variables[ptx::VariableId{id}];
    if (!inlined || v.function != function || (v.space != Space::local && v.space != Space::param)) return id;
    auto [at, fresh] = variables_.try_emplace(id, static_cast<uint32_t>(m_.variables.size()));
    if (fresh) {
      ptx::Variable copy = v;
      copy.function = entry_;
      copy.name = fmt::format("{}_{}", copy.name, m_.functions[entry_].name);
      m_.variables.add(std::move(copy));
    }
    return at->second;
  }

  // --- .param variables of the entry to registers or .local variables

  struct Storage {
    bool memory = false;
    std::map<uint64_t, std::pair<uint32_t, Operand>> pieces;  // offset -> bytes, register
    void access(uint64_t offset, uint32_t bytes) {
      auto [at, fresh] = pieces.try_emplace(offset, bytes, Operand{});
      if (!fresh) memory |= at->second.first != bytes;
    }
    void finish() {
      uint64_t end = 0;
      for (const auto& [offset, piece] : pieces) {
        if (offset < end) memory = true;
        end = offset + piece.first;
      }
    }
  };

  bool is_parameter(const Operand& o) const {
    return (o.kind == Operand::address_var || o.kind == Operand::variable) &&
           m_.variables[o.variable_id()].space == Space::param;
  }

  void replace_parameters() {
    std::map<uint32_t, Storage> storage;
    for (const ptx::Instruction& i : body_.f.instructions)
      for (uint32_t k = 0; k < i.operand_count; ++k) {
        const Operand& o = body_.f.operand(i, k);
        if (!is_parameter(o)) continue;
        Storage& s = storage[o.id];
        const uint32_t bytes = ptx::type_bytes(i.type);
        const uint64_t total = static_cast<uint64_t>(bytes) * i.mods.vector;
        const ptx::Variable& v = m_.variables[o.variable_id()];
        const uint64_t size = uint64_t{ptx::type_bytes(v.type)} * std::max<uint64_t>(v.count, 1);
        if ((i.op != Opcode::ld && i.op != Opcode::st) || o.value < 0 || bytes > 8 ||
            static_cast<uint64_t>(o.value) + total > size) {
          s.memory = true;
          continue;
        }
        for (uint32_t e = 0; e < i.mods.vector; ++e) s.access(static_cast<uint64_t>(o.value) + e * bytes, bytes);
      }
    if (storage.empty()) return;
    uint32_t number = 0;
    for (auto& [id, s] : storage) {
      s.finish();
      if (s.memory) {
        m_.variables[ptx::VariableId{id}].space = Space::local;
        m_.variables[ptx::VariableId{id}].function = entry_;
        continue;
      }
      for (auto& [offset, piece] : s.pieces)
        piece.second = body_.reg(piece.first == 8   ? Type::b64
                                 : piece.first == 4 ? Type::b32
                                                    : Type::b16,
                                 fmt::format("%param_{}", number++));
    }
    // Instructions that access registers become moves; labels follow.
    const RawVector<ptx::Instruction> old = std::exchange(body_.f.instructions, {});
    std::vector<uint32_t> moved(old.size() + 1);
    for (uint32_t k = 0; k < old.size(); ++k) {
      moved[k] = static_cast<uint32_t>(body_.f.instructions.size());
      ptx::Instruction i = old[k];
      const uint32_t at = i.op == Opcode::st ? 0 : 1;
      if ((i.op != Opcode::ld && i.op != Opcode::st) || i.operand_count < 2) {
        body_.f.instructions.push_back(i);
        continue;
      }
      const Operand address = body_.f.operand(i, at), data = body_.f.operand(i, 1 - at);
      auto s = address.kind == Operand::address_var ? storage.find(address.id) : storage.end();
      if (s == storage.end()) {
        body_.f.instructions.push_back(i);
        continue;
      }
      if (s->second.memory) {
        i.mods.space = Space::local;
        body_.f.instructions.push_back(i);
        continue;
      }
      const uint32_t bytes = ptx::type_bytes(i.type);
      for (uint32_t e = 0; e < i.mods.vector; ++e) {
        const Operand& piece = s->second.pieces.at(static_cast<uint64_t>(address.value) + e * bytes).second;
        const Operand value = data.kind == Operand::vector ? body_.f.vector_elements[data.id + e] : data;
        i.op == Opcode::st ? move(i, piece, value, bytes, true) : move(i, value, piece, bytes, false);
      }
    }
    moved[old.size()] = static_cast<uint32_t>(body_.f.instructions.size());
    for (ptx::Label& l : body_.f.labels)
      if (l.at <= old.size()) l.at = moved[l.at];
  }

  // to = from; the access had i's type of `bytes` bytes. Registers may be wider than the access.
  void move(const ptx::Instruction& i, const Operand& to, const Operand& from, uint32_t bytes, bool store) {
    if (to.kind == Operand::sink) return;
    ptx::Instruction out;
    out.line = i.line, out.guard = i.guard, out.guard_negated = i.guard_negated, out.destination_count = 1;
    const uint32_t width =
        ptx::type_bytes(body_.f.registers[(store && from.kind == Operand::reg ? from : to).reg_id()].type);
    static constexpr Type unsigned_of[] = {Type::u8, Type::u16, Type::u32, Type::u64},
                          signed_of[] = {Type::s8, Type::s16, Type::s32, Type::s64},
                          bits_of[] = {Type::b8, Type::b16, Type::b32, Type::b64};
    auto log2 = [](uint32_t n) { return n == 8 ? 3u : n == 4 ? 2u : n == 2 ? 1u : 0u; };
    if (bytes == width || (from.kind == Operand::immediate && bytes > 1)) {
      out.op = Opcode::mov;
      out.type = bits_of[log2(bytes)];
    } else if (from.kind == Operand::immediate) {  // one byte
      out.op = Opcode::mov;
      out.type = Type::b16;
      body_.add(out, {to, {Operand::immediate, false, 0, 0, from.value & 0xff}});
      return;
    } else if (store) {  // the low bytes
      out.op = Opcode::cvt;
      out.type = unsigned_of[log2(bytes)];
      out.type2 = unsigned_of[log2(width)];
    } else {
      const bool s = ptx::is_signed(i.type);
      out.op = Opcode::cvt;
      out.type = (s ? signed_of : unsigned_of)[log2(width)];
      out.type2 = (s ? signed_of : unsigned_of)[log2(bytes)];
    }
    body_.add(out, {to, from});
  }

  ptx::Module& m_;
  const CallGraph& graph_;
  uint32_t entry_ = 0, copies_ = 0, labels_ = 0, registers_ = 0;
  Body body_;
  std::vector<std::unique_ptr<SharedBody>> bodies_;
  std::vector<std::unique_ptr<Group>> groups_;
  Operand frame_register_, where_;  // where_: number of the place to go on at
  uint32_t stack_variable_ = 0, top_ = 0;
  std::vector<std::pair<uint32_t, SharedBody*>> frame_sizes_;  // operands that are the size of a frame
  std::vector<uint32_t> stack_limits_;                         // operands that are the place of the last frame
  std::vector<Site> sites_;
  std::vector<std::pair<size_t, SharedBody*>> site_bodies_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> abi_variables_;  // function and operand -> .local variable
  std::vector<uint32_t> stack_;                                      // functions being copied, outermost first
  std::map<uint32_t, uint32_t> variables_;                           // of callees -> the entry's copies
};

constexpr auto may_call = [] {
  std::array<bool, ptx::opcode_count> table{};
  for (Opcode op : {Opcode::call, Opcode::brx, Opcode::alloca_, Opcode::stacksave, Opcode::stackrestore, Opcode::mov})
    table[static_cast<size_t>(op)] = true;
  return table;
}();
// Whether some entry calls a function, or has variables for arguments.
bool has_calls(const ptx::Module& module) {
  for (const ptx::Variable& v : module.variables)
    if (v.space == Space::param) return true;  // where calls put their arguments
  for (const ptx::Function& f : module.functions) {
    if (!f.is_entry) continue;
    for (const ptx::Instruction& i : f.instructions)
      if (may_call[static_cast<size_t>(i.op)] &&
          (i.op != Opcode::mov || (i.operand_count == 2 && f.operand(i, 1).kind == Operand::function)))
        return true;
  }
  return false;
}

}  // namespace

Result<std::optional<ptx::Module>> inline_calls(const ptx::Module& module) {
  if (!has_calls(module)) return std::optional<ptx::Module>();
  ptx::Module out = module;
  const CallGraph graph(out);
  for (uint32_t k = 0; k < out.functions.size(); ++k)
    if (out.functions[k].is_entry && !out.functions[k].external) RETURN_IF_ERROR(Inliner(out, graph).run(k));
  return std::optional(std::move(out));
}

}  // namespace rndn::ptx
