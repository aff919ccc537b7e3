// Functions made of stencils (stencils.h): the quickest way from PTX to machine code, for -O0.
//
// What it does, over the blocks that flow/structurize.cpp made, in their order:
//   1. Finds the stencil of every statement by its shape, and notes where registers are written and read.
//   2. Finds out where registers that live in several blocks are alive: what is written before loops, to the ends of those that read it; what loops write,
//      from each block that reads it before writing it, back to the writes (path
//      exploration: Boissinot et al., "Computing Liveness Sets for SSA-Form Programs", 2011). A register lives from its first such place in the order
//      of the code to its last.
//   3. Copies the stencils, giving registers places as they come to life (Poletto and Sarkar, "Linear Scan Register Allocation", 1999) and patching them
//      in. A first instruction waits for the scoreboards of what its statement touches, an exit for its predicate's; branches wait for all.
// What does not fit (too many registers, calls, memory by alloca, lanes that meet in divergent code) is left to the other passes.
// Cost: O(operands), and O(blocks that values live through).
#include <algorithm>
#include <bit>
#include <cstring>

#include "assembler/check/check.h"
#include "assembler/machine/latency.h"
#include "assembler/machine/operands.h"
#include "assembler/stencils/stencils.h"
#include "ptx/traits.h"

namespace rndn::assembler {

using enum ptx::Trait;
using ptx::expands_to_branches, ptx::may_be_copied, ptx::traits_of;

void StencilCache::start(const ptx::Module& module, const isa::Target& target) {
  constexpr size_t most = 1 << 14;
  const std::array<uint32_t, 3> head = {module.version, module.target, module.address_size};
  if (target_ == &target && head_ == head && count_ < most) return;
  target_ = &target, head_ = head;
  slots_.assign(256, {}), mask_ = 255, count_ = 0;
  records_.assign(1, 0);
  bring = keep = nullptr;
  branches = {};
  arena_.reset();
}
void StencilCache::add(const Key& key, Entry entry) {
  const auto put = [&](uint32_t record, uint64_t hash) {
    size_t at = hash & mask_;
    while (slots_[at].record) at = (at + 1) & mask_;
    slots_[at] = {tag(hash), record};
  };
  if (2 * ++count_ > slots_.size()) {
    slots_.assign(slots_.size() * 2, {});
    mask_ = slots_.size() - 1;
    for (size_t at = 1; at < records_.size(); at += 3 + static_cast<uint32_t>(records_[at]))
      put(static_cast<uint32_t>(at), records_[at + 2 + static_cast<uint32_t>(records_[at])]);
  }
  const uint32_t record = static_cast<uint32_t>(records_.size());
  uint64_t made = 0;
  std::memcpy(&made, &entry.made, sizeof entry.made);
  records_.push_back(key.size | uint64_t{entry.exact} << 32);
  records_.push_back(made);
  records_.insert(records_.end(), key.words.begin(), key.words.begin() + key.size);
  records_.push_back(key.hash);
  put(record, key.hash);
}

namespace {

using ptx::Opcode;
using OperandKind = ptx::Operand;
using isa::Mnemonic;

constexpr uint16_t unplaced = 0xffff;
constexpr uint32_t constant_bank_bytes = 65536;
constexpr uint32_t one_row = 0xff, bytes_of_rows[] = {one_row, one_row, 0xffff, 0, 0xffffffff};  // by units
constexpr uint32_t nowhere = UINT32_MAX;
constexpr int64_t instruction_reach = (1u << 23) - 4096;  // of offsets in addresses, less what is added to them

// Statements whose literals of this type may be any: their instructions take them as they are. make_stencil.cpp finds that the code is the same for two
// literals of which nothing is special; that it is right for those that are (0, 1, -1, powers of two) rests on this list.
bool takes_any_literal(const ptx::Instruction& i) {
  const uint32_t bytes = ptx::type_bytes(i.type);
  const bool floats = ptx::is_floating(i.type);
  if (bytes == 4 && (!floats || i.type == ptx::Type::f32)) switch (i.op) {
      case Opcode::mul:
      case Opcode::mad: return floats || i.mods.part == ptx::MulPart::lo;
      case Opcode::add:
      case Opcode::sub: return !i.mods.sat || floats;
      case Opcode::fma:
      case Opcode::and_:
      case Opcode::or_:
      case Opcode::xor_:
      case Opcode::mov:
      case Opcode::setp:
      case Opcode::selp:
      case Opcode::st: return true;
      default: return false;
    }
  if (bytes == 8 && !floats)
    switch (i.op) {  // not sub: the high word of a literal's negative depends on whether the low word is zero
      case Opcode::add:
      case Opcode::and_:
      case Opcode::or_:
      case Opcode::xor_:
      case Opcode::mov:
      case Opcode::st: return true;
      default: return false;
    }
  return false;
}

struct Patcher {
  const ptx::Module& m;
  const ptx::Function& p;
  const Flow& flow;
  const Options& o;
  isa::FormCache& forms;
  Arena& arena;
  SelectionRoom& room;
  StencilCache& cache;
  cubin::Kernel& k;
  const isa::Target& t = *o.target;
  const bool volta = t.family == isa::Family::volta;

  struct Use {
    uint32_t low, high;  // of a Shape::Operand
  };
  struct Statement {
    const Stencil* stencil;
    uint32_t first_use, at;  // at: position
    ptx::VariableId symbol;
  };
  ArenaList<Statement> statements{arena, p.instructions.size() + 8};
  ArenaList<Use> uses{arena, p.operands.size() + p.vector_elements.size() + p.instructions.size() + most_operands};
  // A register of the function, in three parts: what step 1 asks at every operand, what step 3 asks there, and what is asked now and then.
  struct alignas(32) Value {
    uint32_t start = nowhere, end = 0;                    // positions
    uint32_t defined_in = nowhere, exposed_in = nowhere;  // the last such block
    uint32_t statement = nowhere;                         // the last that names it
    uint16_t word = 0;                                    // how keys know it: Shape::reg and its type
    uint8_t operand = 0;                                  // of that statement: the first that is this register
  };
  struct alignas(16) Home {
    uint16_t place = unplaced;
    uint16_t row = 0;             // the first of its rows of what is under way
    uint8_t units = 0;            // 0: a predicate
    bool kept = false;            // a predicate in a general register
    uint32_t bytes = one_row;     // of what is under way: all ones in the rows that are its
    uint32_t next_end = nowhere;  // of the values that end at one place
  };
  struct Blocks {
    uint32_t definitions = nowhere, exposures = nowhere;  // lists; the last definition is not among them
    uint32_t next_born = nowhere;                         // of the values that are born at one place
  };
  std::span<Value> values;
  std::span<Home> homes;
  std::span<Blocks> blocks_of;
  struct Listed {
    uint32_t block, next;
  };
  ArenaList<Listed> lists{arena, 64};
  ArenaList<uint32_t> exposed{arena, 64};  // values with exposures
  struct Extent {
    uint32_t first_statement, begin, end;  // positions
    uint32_t born = nowhere;  // values that are alive where it begins, and were not before in the order of the code
  };
  std::span<Extent> extents;     // by place in the layout
  std::span<uint32_t> place_of;  // by block: its place in the layout
  std::span<uint32_t> ends;      // by position: values that end there
  uint32_t positions = 0;

  std::optional<ptx::SharedLayout> shared;  // once a statement names a variable there
  std::optional<ptx::LocalLayout> local;    // as well
  std::optional<ptx::ConstantLayout> constants;
  std::span<uint32_t> parameter_offsets;
  // Of the statement that make_key saw last.
  StencilCache::Key key;
  uint32_t use_count = 0;
  ptx::VariableId symbol = none<ptx::VariableId>();

  uint32_t scratch_units = 0, scratch_predicates = 0, most_words = 0, barriers = 0, guarded_branches = 0;
  bool descriptor = false, crs = false, block_z = false;

  // --- 1. Statements

  // What is asked of a literal, and by which words the shape knows it. A literal that is part of the shape stands behind its operand's word.
  struct Literal {
    Shape::Kind kind;
    bool near;
    uint32_t low, high;
  };
  static Literal literal(const ptx::Instruction& i, uint32_t operand, const ptx::Operand& x, uint64_t v,
                         bool is_address, bool exact) {
    const uint32_t low = static_cast<uint32_t>(v), high = static_cast<uint32_t>(v >> 32);
    const bool near = is_address && v < uint64_t{instruction_reach};
    const bool data = x.kind != OperandKind::address_imm && x.kind != OperandKind::address_var;
    const bool open = near || (data && takes_any_literal(i) && !is_predicate_literal(i, operand) &&
                               (ptx::type_bytes(i.type) != 8 || high == 0 || high == UINT32_MAX));
    if (!open || exact) return {open ? Shape::literal : Shape::exact, near, low, high};
    return {Shape::literal, near, low, ptx::type_bytes(i.type) == 8 || near ? high : 0};
  }
  static Shape::Kind offset(int64_t v) {
    return v > -instruction_reach && v < instruction_reach ? Shape::address : Shape::offset_exact;
  }
  // Of a variable in shared memory: where it lies.
  uint64_t shared_place(const ptx::Operand& x) {
    if (!shared) shared = ptx::lay_out_shared(m, p);
    return static_cast<uint64_t>(t.shared_base + shared->offsets[x.id] + x.value);
  }
  bool is_shared(const ptx::Instruction& i, const ptx::Operand& x) const {
    return m.variables[x.variable_id()].space == ptx::Space::shared &&
           (x.kind == OperandKind::variable || i.mods.space == ptx::Space::shared);
  }
  // Of a variable in local or constant memory: its place in the frame or in the bank; none: it is not there, or its place not known, or far away.
  struct Placed {
    Shape::Kind kind = Shape::none;
    uint32_t at = 0;
  };
  Placed find_place(const ptx::Instruction& i, const ptx::Operand& x) {
    const ptx::Space space = m.variables[x.variable_id()].space;
    if (x.kind == OperandKind::address_var && i.mods.space != space) return {};
    int64_t at = x.value;
    if (space == ptx::Space::local) {
      if (!local) local = ptx::lay_out_local(m, p);
      at += local->offsets[x.id];
      if (local->dynamic || at < 0 || at >= instruction_reach) return {};
      return {Shape::local, static_cast<uint32_t>(at)};
    }
    if (space == ptx::Space::constant) {
      if (!constants) constants = ptx::lay_out_constants(m);
      at += constants->offsets[x.id];
      if (constants->bytes > constant_bank_bytes || at < 0 || at >= constant_bank_bytes) return {};
      return {Shape::constant, static_cast<uint32_t>(at)};
    }
    return {};
  }
  bool is_symbol(const ptx::Operand& x) const {
    return m.variables[x.variable_id()].space == ptx::Space::global && x.value == static_cast<int32_t>(x.value);
  }
  static bool is_predicate_literal(const ptx::Instruction& i, uint32_t operand) {
    return (i.op == Opcode::setp || i.op == Opcode::selp) && operand >= i.destination_count + 2u;
  }
  static bool is_atomic(const ptx::Instruction& i) { return i.op == Opcode::atom || i.op == Opcode::red; }
  bool is_one_address(const FlowItem& item, const FlowBlock& block, const ptx::Instruction& i) const {
    return is_atomic(i) && item.one_address && (block.convergent || !item.one_read);
  }

  static_assert(static_cast<uint32_t>(ptx::Type::f64) < 64 && most_operands <= 32, "key words have room for them");
  // The statement's key and its uses, in one go, and where its registers are read and written; false: stencils are not for it. `exact`: with all
  // literals. Says what look_at says of it.
  //
  // A key is the statement's head and its modifiers, a word per operand, and literals that are shown behind theirs.
  bool make_key(const FlowItem& item, const FlowBlock& block, uint32_t place, uint32_t position, bool exact) {
    const ptx::Instruction& i = p.instructions[item.inst];
    static_assert(sizeof i.mods == 15 && offsetof(ptx::Instruction, mods) == 16 &&
                  offsetof(ptx::Instruction, destination_count) == 6);
    // Whole words at once: what lies behind them is masked.
    uint64_t head, mods[2];
    std::memcpy(&head, &i, sizeof head);
    std::memcpy(mods, reinterpret_cast<const char*>(&i) + offsetof(ptx::Instruction, mods), sizeof mods);
    constexpr uint64_t negation = uint64_t{0xff} << 8 * offsetof(ptx::Instruction, guard_negated),
                       seven_bytes = ~uint64_t{0} >> 8;
    const bool guarded = !is_none(item.guard);
    uint64_t flags = uint64_t{guarded} << 56 | uint64_t{exact} << 57 | uint64_t{1} << 58;
    if (is_atomic(i)) [[unlikely]]
      flags ^= uint64_t{!block.convergent} << 58 | uint64_t{is_one_address(item, block, i)} << 59;
    key.words[0] = (head & ~negation & seven_bytes) | flags;
    key.words[1] = mods[0], key.words[2] = mods[1] & seven_bytes;
    // Each word by a factor of its own, side by side.
    constexpr uint64_t first_factor = 0x9E3779B97F4A7C15ull, next_factor = 0x3C6EF372FE94F82Aull;
    uint64_t sum = key.words[0] * first_factor + key.words[1] * (first_factor + next_factor) +
                   key.words[2] * (first_factor + 2 * next_factor);
    uint64_t factor = first_factor + 3 * next_factor;
    uint64_t* word = key.words.data() + 3;
    const auto put = [&](uint64_t x) {
      *word++ = x;
      sum += x * factor, factor += next_factor;
    };
    const uint32_t statement = static_cast<uint32_t>(statements.size());
    Use* const first_use = uses.more(most_operands);
    Use* use = first_use;
    uint32_t written[most_operands];
    uint32_t written_count = 0;
    // A register; `more`: what else the key knows of the operand.
    const auto reg = [&](uint32_t id, uint64_t more, uint32_t high, bool is_read) {
      Value& v = values[id];
      if (v.statement != statement) v.statement = statement, v.operand = static_cast<uint8_t>(use - first_use);
      put(v.word + (more | uint32_t{v.operand} << 12));
      *use++ = {id, high};
      if (is_read)
        read(v, id, place, position);
      else
        written[written_count++] = id;
    };
    if (guarded)
      reg(index(item.guard), uint32_t{item.negated} << 10, 0, true);
    else
      *use++ = {0, 0};
    symbol = none<ptx::VariableId>();
    const ptx::Operand* const operands = p.operands.data() + i.first_operand;
    const uint32_t operand_count = i.operand_count;
    if (operand_count >= most_operands) return false;
    uint32_t room = most_operands - 1 - operand_count;                // for more elements of vectors
    const uint32_t destinations = guarded ? 0 : i.destination_count;  // under a guard they are read, too
    for (uint32_t k = 0; k < operand_count; ++k) {
      const ptx::Operand& o = operands[k];
      if (o.kind == OperandKind::reg) {
        reg(o.id, uint32_t{o.negated} << 10, 0, k >= destinations);
        continue;
      }
      const bool vector = o.kind == OperandKind::vector;
      const ptx::Operand* const first = vector ? p.vector_elements.data() + o.id : &o;
      const uint32_t count = vector ? o.count : 1;
      if (vector) {
        if (count - 1 > room) return false;
        room -= count - 1;
      }
      uint32_t group = vector ? uint32_t{o.count} << 17 : 0;
      for (const ptx::Operand& x : std::span(first, count)) {
        const auto number = [&](uint64_t v, bool is_address) {
          const Literal l = literal(i, k, x, v, is_address, exact);
          const bool shown = exact || l.kind == Shape::exact;
          const uint64_t high = shown || l.near ? 0 : l.high;
          put(l.kind | uint32_t{x.negated} << 10 | uint32_t{l.near} << 11 | group | uint32_t{shown} << 22 | high << 32);
          if (shown) put(uint64_t{l.high} << 32 | l.low);
          *use++ = {l.low, l.high};
        };
        const auto other = [&](Shape::Kind kind, uint32_t shown, uint32_t low, uint32_t high) {
          put(kind | group | uint64_t{shown} << 32);
          *use++ = {low, high};
        };
        switch (x.kind) {
          case OperandKind::reg: reg(x.id, uint32_t{x.negated} << 10 | group, 0, k >= destinations); break;
          case OperandKind::address_reg: {
            if (x.value != static_cast<int32_t>(x.value)) return false;
            const uint32_t at = static_cast<uint32_t>(x.value);
            const Shape::Kind kind = offset(x.value);
            const uint64_t shown = exact || kind == Shape::offset_exact ? at : 0;
            reg(x.id, static_cast<uint32_t>(kind - Shape::reg) + group + (shown << 32), at, true);
            break;
          }
          case OperandKind::immediate: number(static_cast<uint64_t>(x.value), false); break;
          case OperandKind::address_imm:
            number(static_cast<uint64_t>(x.value), i.mods.space == ptx::Space::shared);
            break;
          case OperandKind::sink: other(Shape::sink, 0, 0, 0); break;
          case OperandKind::special: other(Shape::special, x.id, x.id, 0); break;
          case OperandKind::parameter: {
            const uint32_t at = parameter_offsets[x.id] + static_cast<uint32_t>(x.value);
            other(Shape::parameter, at, at, 0);
            break;
          }
          case OperandKind::variable:
          case OperandKind::address_var:
            if (is_shared(i, x)) {
              number(shared_place(x), x.kind == OperandKind::address_var);
              break;
            }
            if (const Placed y = find_place(i, x); y.kind != Shape::none) {
              other(y.kind, y.at, y.at, 0);
              break;
            }
            if (!is_symbol(x) || !is_none(symbol)) return false;
            symbol = x.variable_id();
            other(Shape::symbol, static_cast<uint32_t>(x.value), x.id, static_cast<uint32_t>(x.value));
            break;
          default: return false;
        }
        group = 0;
      }
    }
    for (uint32_t n = 0; n < written_count; ++n) write(written[n], place, position);
    key.size = static_cast<uint32_t>(word - key.words.data());
    key.hash = sum ^ sum >> 32;
    use_count = static_cast<uint32_t>(use - first_use);
    return true;
  }
  // Not where statements have to do with each other: carries; asynchronous copies, which keep a scoreboard.
  static bool stands_alone(const ptx::Instruction& i) {
    return !i.mods.carry_out && i.op != Opcode::addc && i.op != Opcode::subc && i.op != Opcode::madc &&
           i.op != Opcode::cp;
  }
  // The shape of a statement of which make_key has said that it has one.
  Shape look_at(const FlowItem& item, const FlowBlock& block, bool exact) {
    const ptx::Instruction& i = p.instructions[item.inst];
    Shape shape;
    shape.inst = &i;
    shape.convergent = !is_atomic(i) || block.convergent;
    shape.one_address = is_one_address(item, block, i);
    shape.count = 1;
    if (!is_none(item.guard))
      shape.operands[0] = {
          .kind = Shape::reg, .type = ptx::Type::pred, .negated = item.negated, .low = index(item.guard)};
    const auto take = [&](const ptx::Operand& x, uint32_t operand) {
      const uint32_t k = shape.count++;
      Shape::Operand& y = shape.operands[k];
      y.negated = x.negated;
      const auto number = [&](uint64_t v, bool is_address) {
        const Literal l = literal(i, operand, x, v, is_address, exact);
        y.kind = exact ? Shape::exact : l.kind, y.near = l.near, y.low = l.low, y.high = l.high;
      };
      const auto reg = [&](Shape::Kind kind) {
        y.kind = kind, y.type = p.registers[x.reg_id()].type, y.low = x.id, y.same = static_cast<uint8_t>(k);
        for (uint8_t n = 0; n < k; ++n)
          if (const Shape::Operand& z = shape.operands[n]; z.is_register() && z.low == x.id) {
            y.same = n;
            break;
          }
      };
      switch (x.kind) {
        case OperandKind::reg: return reg(Shape::reg);
        case OperandKind::address_reg:
          reg(exact ? Shape::offset_exact : offset(x.value));
          y.high = static_cast<uint32_t>(x.value);
          return;
        case OperandKind::immediate: return number(static_cast<uint64_t>(x.value), false);
        case OperandKind::address_imm:
          return number(static_cast<uint64_t>(x.value), i.mods.space == ptx::Space::shared);
        case OperandKind::sink: y.kind = Shape::sink; return;
        case OperandKind::special: y.kind = Shape::special, y.low = x.id; return;
        case OperandKind::parameter:
          y.kind = Shape::parameter, y.low = parameter_offsets[x.id] + static_cast<uint32_t>(x.value);
          return;
        default:
          if (is_shared(i, x)) return number(shared_place(x), x.kind == OperandKind::address_var);
          if (const Placed at = find_place(i, x); at.kind != Shape::none) {
            y.kind = at.kind, y.low = at.at;
            return;
          }
          y.kind = Shape::symbol, y.low = x.id, y.high = static_cast<uint32_t>(x.value);
      }
    };
    for (uint32_t k = 0; k < i.operand_count; ++k) {
      const ptx::Operand& x = p.operand(i, k);
      if (x.kind != OperandKind::vector)
        take(x, k);
      else
        for (uint32_t e = 0; e < x.count; ++e) take(p.vector_elements[x.id + e], k);
      if (k + 1 == i.destination_count) shape.destinations = shape.count - 1;
    }
    return shape;
  }
  // Null: there is none. Its uses are the last ones.
  const Stencil* stencil(const FlowItem& item, const FlowBlock& block, uint32_t place, uint32_t position) {
    for (const bool exact : {false, true}) {
      if (!make_key(item, block, place, position, exact)) return nullptr;
      StencilCache::Entry known;
      if (!cache.find(key, known)) [[unlikely]] {
        if (stands_alone(p.instructions[item.inst]))
          known.made = make_stencil(m, p, look_at(item, block, exact), o, forms, arena, room, cache, known.exact);
        cache.add(key, known);
      }
      if (known.made || !known.exact) return known.made;
    }
    return nullptr;
  }

  // Of value number `id` in the block at `place` of the layout.
  void read(Value& v, uint32_t id, uint32_t place, uint32_t position) {
    v.start = std::min(v.start, position), v.end = position;
    if (v.defined_in == place || v.exposed_in == place) return;
    v.exposed_in = place;
    uint32_t& exposures = blocks_of[id].exposures;
    if (exposures == nowhere) exposed.push(id);
    exposures = lists.push({place, exposures});
  }
  void write(uint32_t id, uint32_t place, uint32_t position) {
    Value& v = values[id];
    v.start = std::min(v.start, position), v.end = position;
    if (v.defined_in == place) return;
    if (v.defined_in != nowhere) blocks_of[id].definitions = lists.push({v.defined_in, blocks_of[id].definitions});
    v.defined_in = place;
  }
  // What the function needs for the stencil, which has not been met in it before.
  void meet(const Stencil& s) {
    scratch_units = std::max<uint32_t>(scratch_units, s.scratch_units);
    scratch_predicates = std::max<uint32_t>(scratch_predicates, s.scratch_predicates);
    barriers = std::max<uint32_t>(barriers, s.barriers);
    descriptor |= s.descriptor, crs |= s.crs, block_z |= s.block_z;
  }

  bool find_stencils() {
    const uint32_t n = static_cast<uint32_t>(p.registers.size());
    values = arena.make_span<Value>(n), homes = arena.make_span<Home>(n), blocks_of = arena.make_span<Blocks>(n);
    const ptx::Register* const declared = p.registers.raw().data();
    for (uint32_t r = 0; r < n; ++r) {
      const ptx::Type type = declared[r].type;
      values[r].word = static_cast<uint16_t>(Shape::reg | static_cast<uint32_t>(type) << 4);
      homes[r].units = static_cast<uint8_t>(type == ptx::Type::pred ? 0 : std::max(ptx::type_bytes(type) / 4, 1u));
      homes[r].bytes = bytes_of_rows[homes[r].units];
    }
    parameter_offsets = arena.make_raw<uint32_t>(p.parameters.size());
    ptx::lay_out_parameters(p, [&](uint32_t k, uint32_t at, uint32_t) { parameter_offsets[k] = at; });
    extents = arena.make_span<Extent>(flow.layout.size() + 1);
    place_of = arena.make_span<uint32_t>(flow.blocks.size(), nowhere);
    uint32_t position = 0;
    for (uint32_t k = 0; k < flow.layout.size(); ++k) {
      const FlowBlock& block = flow.blocks[flow.layout[k]];
      place_of[index(flow.layout[k])] = k;
      extents[k].first_statement = static_cast<uint32_t>(statements.size());
      extents[k].begin = position++;
      for (const FlowItem& item : block.items) {
        const Stencil* s = stencil(item, block, k, position);
        if (!s) return false;
        if (!block.convergent && s->meets) return false;  // lanes that meet in divergent code
        statements.push({s, static_cast<uint32_t>(uses.size()), position++, symbol});
        uses.take(use_count);
        if (s->met_in != cache.functions) s->met_in = cache.functions, meet(*s);
        most_words += s->size + (s->ends_slowly ? 4u : 0u);
      }
      if (!is_none(block.predicate)) read(values[index(block.predicate)], index(block.predicate), k, position);
      extents[k].end = position++;
      most_words += 2 * static_cast<uint32_t>(block.opens.size()) + 20;
    }
    extents[flow.layout.size()].first_statement = static_cast<uint32_t>(statements.size());
    positions = position;
    return true;
  }

  // --- 2. Lives

  template <class F>
  void each_edge(F&& use) const {  // use(from, to), by place
    for (uint32_t k = 0; k < flow.layout.size(); ++k) {
      const FlowBlock& b = flow.blocks[flow.layout[k]];
      const bool branches = !is_none(b.predicate) && !is_none(b.taken);
      if (branches) use(k, place_of[index(b.taken)]);
      if (!is_none(b.next) && !(branches && b.next == b.taken)) use(k, place_of[index(b.next)]);
    }
  }
  // Parts of the layout that lanes may go back in: by place, where the part around it ends; 0: there is none. Edges back do not leave a part, and whoever has
  // left one goes on behind it.
  std::span<uint32_t> find_parts() {
    const std::span<uint32_t> end = arena.make_span<uint32_t>(flow.layout.size(), 0u);
    each_edge([&](uint32_t from, uint32_t to) {
      if (to <= from) end[to] = std::max(end[to], from + 1);
    });
    uint32_t begin = 0, until = 0;
    const auto close = [&] { std::fill(end.begin() + begin, end.begin() + until, until); };
    for (uint32_t k = 0; k < end.size(); ++k) {
      if (k >= until && end[k]) close(), begin = k;
      until = std::max(until, end[k]);
    }
    close();
    return end;
  }
  // Those that are written where lanes go back: along the paths that they are alive on.
  bool explore() {
    const uint32_t n = static_cast<uint32_t>(flow.layout.size());
    // Predecessors, by place.
    const std::span<uint32_t> begin = arena.make_span<uint32_t>(n + 1, 0u);
    uint32_t edges = 0;
    each_edge([&](uint32_t, uint32_t to) { ++begin[to], ++edges; });
    for (uint32_t k = 0, sum = 0; k <= n; ++k) sum += begin[k], begin[k] = sum;
    const std::span<uint32_t> from = arena.make_raw<uint32_t>(edges);
    each_edge([&](uint32_t k, uint32_t to) { from[--begin[to]] = k; });
    const std::span<uint32_t> defines = arena.make_span<uint32_t>(
                                  n, nowhere),  // by place: the last value asked about that it writes
        met = arena.make_span<uint32_t>(n, nowhere);
    const std::span<uint32_t> work = arena.make_raw<uint32_t>(n);
    size_t budget = 64 * (statements.size() + n) + 4096;
    for (uint32_t id : exposed.all()) {
      Value& v = values[id];
      if (v.defined_in != nowhere) defines[v.defined_in] = id;
      for (uint32_t e = blocks_of[id].definitions; e != nowhere; e = lists[e].next) defines[lists[e].block] = id;
      uint32_t count = 0, first = nowhere;
      for (uint32_t e = blocks_of[id].exposures; e != nowhere; e = lists[e].next)
        met[lists[e].block] = id, work[count++] = lists[e].block;
      while (count) {
        const uint32_t b = work[--count];
        if (extents[b].begin < v.start) v.start = extents[b].begin, first = b;
        for (uint32_t e = begin[b]; e < begin[b + 1]; ++e) {
          const uint32_t q = from[e];
          v.end = std::max(v.end, extents[q].end);
          if (met[q] == id) continue;
          if (defines[q] == id) continue;
          met[q] = id, work[count++] = q;
        }
        if (budget-- == 0) return false;
      }
      if (first != nowhere) blocks_of[id].next_born = std::exchange(extents[first].born, id);
    }
    return true;
  }
  // False: they are too long to be looked at this way.
  bool find_lives() {
    if (!exposed.empty()) {
      const std::span<const uint32_t> part = find_parts();
      uint32_t explored = 0;
      for (const uint32_t id : exposed.all()) {
        Value& v = values[id];
        bool again = v.defined_in != nowhere && part[v.defined_in];
        for (uint32_t e = blocks_of[id].definitions; e != nowhere && !again; e = lists[e].next)
          again = part[lists[e].block];
        // Writes under a guard are reads: where the first of all is in a part, what they write may be alive around it.
        for (uint32_t e = blocks_of[id].exposures; e != nowhere && !again; e = lists[e].next)
          again = part[lists[e].block] && v.start >= extents[lists[e].block].begin;
        if (again)
          exposed[explored++] = id;
        else  // written before, where lanes do not come again: alive to the end of what its readers are in
          for (uint32_t e = blocks_of[id].exposures; e != nowhere; e = lists[e].next)
            if (const uint32_t end = part[lists[e].block]) v.end = std::max(v.end, extents[end - 1].end);
      }
      exposed.resize_down(explored);
      if (explored && !explore()) return false;
    }
    ends = arena.make_span<uint32_t>(positions, nowhere);
    for (uint32_t id = 0; id < values.size(); ++id)
      if (const Value& v = values[id]; v.start != nowhere) homes[id].next_end = std::exchange(ends[v.end], id);
    return true;
  }

  // --- 3. Code

  struct Registers {
    std::array<uint64_t, 4> free{};
    uint32_t used = 0;
    void give_back(uint32_t r, uint32_t n) { free[r / 64] |= ((uint64_t{1} << n) - 1) << r % 64; }
    // n neighbours, 1, 2 or 4, aligned; unplaced: there are none.
    uint16_t take(uint32_t n) {
      constexpr uint64_t even = 0x5555555555555555u, fourth = 0x1111111111111111u;
      uint16_t whole = unplaced;
      for (uint32_t w = 0; w < 4; ++w) {
        const uint64_t x = free[w], pairs = x & x >> 1 & even;
        const uint64_t fit = n == 1 ? x & ~(pairs | pairs << 1) : n == 2 ? pairs : pairs & pairs >> 2 & fourth;
        // A single one breaks no pair while there are others.
        if (n == 1 && whole == unplaced && x)
          whole = static_cast<uint16_t>(64 * w + static_cast<uint32_t>(std::countr_zero(x)));
        if (!fit) continue;
        return get(static_cast<uint16_t>(64 * w + static_cast<uint32_t>(std::countr_zero(fit))), n);
      }
      return whole == unplaced ? unplaced : get(whole, n);
    }

   private:
    uint16_t get(uint16_t r, uint32_t n) {
      free[r / 64] &= ~(((uint64_t{1} << n) - 1) << r % 64);
      used = std::max(used, r + n);
      return r;
    }
  };
  Registers gprs;
  uint32_t free_predicates = 0;
  bool lacks_predicates = false;

  bool place(Home& v) {
    const auto in_general = [&](uint32_t units) {
      v.place = gprs.take(units);
      v.row = v.place == unplaced ? uint16_t{0} : v.place;
      return v.place != unplaced;
    };
    if (v.units) return in_general(v.units);
    if (free_predicates) {
      v.place = static_cast<uint16_t>(std::countr_zero(free_predicates));
      v.row = static_cast<uint16_t>(predicate_row + v.place);
      free_predicates &= free_predicates - 1;
      return true;
    }
    v.kept = carriers != 0;
    lacks_predicates |= !v.kept;
    return v.kept && in_general(1);
  }

  // Scoreboards under way, by GPR, then by predicate, then of scratch registers: of any access, and of writes alone.
  static constexpr uint32_t predicate_row = 256, scratch_row = 264, rows = 268;
  std::array<uint8_t, rows> under_way{}, writes_under_way{};
  std::array<std::array<uint16_t, 64>, 6> named;  // by scoreboard: rows that name it
  std::array<uint32_t, 6> named_count{};
  uint8_t any_under_way = 0, waits_behind = 0;
  void note_under_way(uint32_t row, uint8_t scoreboard, bool reads) {
    const uint8_t bit = static_cast<uint8_t>(1u << scoreboard);
    if (!reads) writes_under_way[row] |= bit;
    if (under_way[row] & bit) return;
    under_way[row] |= bit, any_under_way |= bit;
    uint32_t& count = named_count[scoreboard];
    if (count < named[0].size()) named[scoreboard][count] = static_cast<uint16_t>(row);
    ++count;
  }
  void settle(uint8_t scoreboards) {
    any_under_way &= static_cast<uint8_t>(~scoreboards);
    for (uint32_t set = scoreboards; set; set &= set - 1) {
      const uint32_t s = static_cast<uint32_t>(std::countr_zero(set));
      const uint8_t keep = static_cast<uint8_t>(~(1u << s));
      if (named_count[s] > named[0].size()) {
        for (uint32_t row = 0; row < rows; ++row) under_way[row] &= keep, writes_under_way[row] &= keep;
      } else {
        for (uint32_t n = 0; n < named_count[s]; ++n) {
          const uint32_t row = named[s][n];
          under_way[row] &= keep, writes_under_way[row] &= keep;
        }
      }
      named_count[s] = 0;
    }
  }

  RawVector<isa::Word>& words = cache.words;
  uint32_t since = 0;  // Pascal: cycles since what late instructions count from (emit.cpp), at least
  std::vector<std::byte> literals;
  // A branch whose target is not known yet.
  struct Fixup {
    uint32_t at, block;  // block: place in the layout
    bool behind_first;   // the label is the instruction behind the block's first
    StencilCache::Branch which;
    uint32_t guard;
    bool negated;
    uint32_t barrier;
    uint8_t waits;
  };
  ArenaList<Fixup> fixups{arena, 2 * flow.layout.size() + 8};
  std::span<uint32_t> first_word;  // by place in the layout
  bool loops = false;              // a branch leads back

  void add_waits(isa::Word& w, uint8_t mask) const { w.hi |= uint64_t{mask} << (volta ? 116 - 64 : 11); }
  uint64_t address(uint32_t at) const { return isa::instruction_address(t, at); }

  Result<void> put(const isa::Instruction& x, uint32_t at, isa::Word& w) {
    if (!isa::encode(t, x, address(at), w))
      return input_error("function {}: internal limit: `{}` cannot be encoded on {}", p.name, isa::text(t, x), t.name);
    return {};
  }
  isa::Instruction make(Mnemonic mnemonic, std::initializer_list<isa::Operand> operands) {
    Inst inst = make_inst(t, mnemonic, operands, &forms);
    isa::Instruction& x = inst.sass;
    const Facts facts = facts_of(t, inst);
    x.control.stall = facts.least_stall;
    x.control.yield = yields(t, facts.latency, facts.least_stall);
    return x;
  }
  static void name_barrier(isa::Instruction& x, uint32_t barrier) {
    for (uint32_t n = 0; n < x.operand_count; ++n)
      if (x.operands[n].kind == isa::OperandKind::barrier) x.operands[n].reg = barrier;
  }
  // Control flow: made once, then copied. A label is the last operand.
  isa::Instruction branch_of(StencilCache::Branch which, uint32_t guard, bool negated) {
    using B = StencilCache::Branch;
    std::optional<isa::Instruction>& x = cache.branches[static_cast<size_t>(which)];
    if (!x) {
      const isa::Operand place = label(0), barrier{.kind = isa::OperandKind::barrier, .reg = 0};
      switch (which) {
        case B::go: x = volta ? make(Mnemonic::BRA, {isa::Operand{}, place}) : make(Mnemonic::BRA, {place}); break;
        case B::clear: x = make(Mnemonic::BMOV, {gpr(isa::RZ), barrier}); break;
        case B::open: x = volta ? make(Mnemonic::BSSY, {barrier, place}) : make(Mnemonic::SSY, {place}); break;
        case B::join: x = volta ? make(Mnemonic::BSYNC, {barrier}) : make(Mnemonic::SYNC, {}); break;
        case B::exit: x = make(Mnemonic::EXIT, {}); break;
        case B::nothing: x = make(Mnemonic::NOP, {}); break;
        case B::count: break;
      }
    }
    isa::Instruction copy = *x;
    copy.guard = guard, copy.guard_negated = negated;
    return copy;
  }
  isa::Word* push() {
    words.resize(words.size() + 1);
    return &words.back();
  }
  void pad() {
    if (volta || since >= 49) return;
    for (uint32_t left = 49 - since; left;) {
      const uint32_t cycles = std::min(left, 15u);
      isa::Instruction nop = branch_of(StencilCache::Branch::nothing, isa::PT, false);
      nop.control.stall = static_cast<uint8_t>(cycles);
      nop.control.yield = false;
      CHECK(isa::encode(t, nop, 0, *push()), "a NOP cannot be encoded");
      left -= cycles;
    }
    since = 49;
  }

  // Where an operand lies: its first register, and its rows of what is under way.
  struct Place {
    uint32_t reg, row, bytes;
  };
  static Place place_of_value(const Home& v) { return {v.place, v.row, v.bytes}; }
  // Copies the stencil and patches it. Its register operands lie at(k), which is asked for each of them before anything is done, and then only if they are
  // ready().
  template <class At, class Ready>
  void paste(const Stencil& x, const Use* use, At&& at, Ready&& ready, ptx::VariableId symbol) {
    std::array<uint32_t, Stencil::slot_count> slots;
    // Mostly there are no more than four; there is room to read as many.
    std::memcpy(&slots[Stencil::first_operand], use, 4 * sizeof(Use));
    for (uint32_t n = 4; n < x.operands; ++n) std::memcpy(&slots[Stencil::first_operand + 2 * n], &use[n], sizeof(Use));
    uint32_t touched = 0;
    for (uint32_t set = x.registers; set; set &= set - 1) {
      const uint32_t n = static_cast<uint32_t>(std::countr_zero(set));
      const Place y = at(n);
      slots[Stencil::first_operand + 2 * n] = y.reg;
      uint32_t rows;
      std::memcpy(&rows, &under_way[y.row], sizeof rows);
      touched |= rows & y.bytes;
    }
    if (!ready()) [[unlikely]]
      return;
    slots[Stencil::scratch] = scratch_gpr, slots[Stencil::scratch_predicate] = scratch_predicate;
    if (x.unusual) {
      slots[Stencil::barrier] = depth;
      if (!x.literals.empty()) slots[Stencil::literal_pool] = pool(x) / 4;
      if (x.ends_slowly) pad();
    }
    const uint32_t first = static_cast<uint32_t>(words.size()), size = x.size;
    words.resize(first + size);
    if (x.is_plain) {
      const Stencil::Plain& y = x.plain;
      isa::Word w = y.word;
      for (uint32_t n = 0; n < 4; ++n) w.lo ^= slots[y.slots[n]] * y.factors[n];
      w.hi ^= slots[y.slots[4]] * y.factors[4];
      words[first] = w;
    } else if (size) {
      static_assert(sizeof(isa::Word) == 2 * sizeof(uint64_t));
      uint64_t* const to = &words[first].lo;
      std::memcpy(to, x.words, size * sizeof(isa::Word));
      for (const Stencil::Patch& y : std::span(x.patches, x.patch_count))
        to[y.half] ^= uint64_t{((slots[y.slot] ^ y.flip) + y.add) & y.mask} << y.shift;
    }
    if (touched | waits_behind | (under_way[scratch_row] & x.scratch_mask)) wait(x, at, first);
    if (x.leaves_behind) leave_behind(x, at, first, symbol);
    since += x.cycles;
  }
  // The first instruction of the stencil waits for what its operands are under way in.
  template <class At>
  void wait(const Stencil& x, At&& at, uint32_t first) {
    uint8_t waits = waits_behind;
    for (uint32_t set = x.registers; set; set &= set - 1) {
      const uint32_t n = static_cast<uint32_t>(std::countr_zero(set));
      const Place y = at(n);
      for (uint32_t u = 0; u < 4 && y.bytes >> 8 * u; ++u)
        waits |= x.writes >> n & 1 ? under_way[y.row + u] : writes_under_way[y.row + u];
    }
    waits |= static_cast<uint8_t>(under_way[scratch_row] & x.scratch_mask);
    if (x.size == 0 || waits == 0) return;
    add_waits(words[first], waits);
    settle(waits);
    waits_behind = 0;
  }
  // What is under way, or to be told of, behind the stencil.
  template <class At>
  void leave_behind(const Stencil& x, At&& at, uint32_t first, ptx::VariableId symbol) {
    waits_behind |= x.waits_behind;
    for (const Stencil::Pending& y : x.pending) {
      if (y.operand == Stencil::no_operand) {
        note_under_way(scratch_row, y.scoreboard, y.reads);
        continue;
      }
      const Place z = at(y.operand);
      for (uint32_t u = 0; u < 4 && z.bytes >> 8 * u; ++u) note_under_way(z.row + u, y.scoreboard, y.reads);
    }
    if (x.restarts) since = 0 - x.cycles;
    for (const Stencil::Note& y : x.notes) note(y, first, symbol);
  }
  // A predicate that lies in a general register, as 0 or 1, comes to a predicate register, and back.
  void bring(const Home& v, uint32_t predicate) { move_predicate(*cache.bring, 1, v, predicate); }
  void keep(const Home& v, uint32_t predicate) { move_predicate(*cache.keep, 4, v, predicate); }
  void move_predicate(const Stencil& x, uint32_t predicate_operand, const Home& v, uint32_t predicate) {
    static constexpr std::array<Use, most_operands> nothing{};
    const auto at = [&](uint32_t n) {
      return n == predicate_operand ? Place{predicate, predicate_row + predicate, one_row} : place_of_value(v);
    };
    paste(
        x, nothing.data(), at, [] { return true; }, none<ptx::VariableId>());
  }
  // False: there are not enough registers.
  bool copy(const Statement& s) {
    const Use* const use = &uses[s.first_use];
    bool placed = true;
    bool kept = false;  // a predicate lies in a general register
    const auto at = [&](uint32_t n) {
      Home& v = homes[use[n].low];
      if (v.place == unplaced) placed &= place(v);
      kept |= v.kept;
      return place_of_value(v);
    };
    paste(
        *s.stencil, use, at, [&] { return placed && !kept; }, s.symbol);
    return placed && !overflows && (!kept || copy_with_kept(s));
  }
  // The same with such operands, all of which have places.
  bool copy_with_kept(const Statement& s) {
    const Stencil& x = *s.stencil;
    const Use* const use = &uses[s.first_use];
    uint32_t kept = 0;  // set of operands
    for (uint32_t set = x.registers; set; set &= set - 1) {
      const uint32_t n = static_cast<uint32_t>(std::countr_zero(set));
      kept |= uint32_t{homes[use[n].low].kept} << n;
    }
    std::array<uint32_t, most_operands> carried{};  // by operand: the predicate that carries it
    const bool guarded = x.reads & 1;
    uint32_t used = 0;
    for (uint32_t set = kept; set; set &= set - 1) {
      const uint32_t n = static_cast<uint32_t>(std::countr_zero(set));
      uint32_t other = 0;
      while (other < n && !(kept >> other & 1 && use[other].low == use[n].low)) ++other;
      if (other == n && used == carriers) return false;
      carried[n] = other < n ? carried[other] : first_carrier + used++;
      if (guarded || x.reads >> n & 1) bring(homes[use[n].low], carried[n]);
    }
    const auto at = [&](uint32_t n) {
      return kept >> n & 1 ? Place{carried[n], predicate_row + carried[n], one_row} : place_of_value(homes[use[n].low]);
    };
    paste(
        x, use, at, [] { return true; }, s.symbol);
    for (uint32_t set = kept & x.writes; set; set &= set - 1) {
      const uint32_t n = static_cast<uint32_t>(std::countr_zero(set));
      keep(homes[use[n].low], carried[n]);
    }
    return true;
  }
  uint32_t depth = 0;                        // regions open
  uint32_t carriers = 0, first_carrier = 0;  // predicates for those that lie in general registers
  void note(const Stencil::Note& y, uint32_t first, ptx::VariableId symbol) {
    const uint64_t at = address(first + y.at);
    switch (y.what) {
      case Stencil::Note::exit: k.exit_offsets.push_back(static_cast<uint32_t>(at)); break;
      case Stencil::Note::block_index: k.ctaid_offsets.push_back(static_cast<uint32_t>(at)); break;
      case Stencil::Note::cooperative: k.cooperative_offsets.push_back(static_cast<uint32_t>(at)); break;
      case Stencil::Note::symbol_low:
      case Stencil::Note::symbol_high:
        k.relocations.push_back({y.what == Stencil::Note::symbol_high ? cubin::Relocation::absolute_high_32
                                                                      : cubin::Relocation::absolute_low_32,
                                 at, ptx::symbol_of(m, symbol), 0});
        break;
    }
  }
  // Where the stencil's literals lie; where there is no more room in the bank, `overflows`.
  uint32_t pool(const Stencil& x) {
    if (x.pooled_in != cache.functions) {
      literals.resize((literals.size() + 7) / 8 * 8);
      x.pooled_in = cache.functions, x.pooled_at = static_cast<uint32_t>(literals.size());
      literals.insert(literals.end(), x.literals.begin(), x.literals.end());
      overflows |= literals.size() > constant_bank_bytes;
    }
    return x.pooled_at;
  }
  bool overflows = false;
  uint32_t scratch_gpr = 0, scratch_predicate = 0;

  bool only_exits(const FlowBlock& x) const {
    return x.items.empty() && is_none(x.taken) && is_none(x.next) && is_none(x.joins) && x.opens.empty();
  }
  uint32_t barrier(RegionId r) const { return flow.regions[r].depth; }

  Result<void> exit(uint32_t guard, bool negated) {
    pad();
    const uint32_t at = static_cast<uint32_t>(words.size());
    k.exit_offsets.push_back(static_cast<uint32_t>(address(at)));
    since = 0;
    isa::Instruction inst = branch_of(StencilCache::Branch::exit, guard, negated);
    if (guard != isa::PT) {
      inst.control.wait_mask = static_cast<uint8_t>(writes_under_way[predicate_row + guard] | waits_behind);
      settle(inst.control.wait_mask), waits_behind = 0;
    }
    return put(inst, at, *push());
  }
  void branch(StencilCache::Branch which, uint32_t block, bool behind_first, uint32_t guard, bool negated,
              uint32_t barrier, uint8_t waits) {
    fixups.push({static_cast<uint32_t>(words.size()), block, behind_first, which, guard, negated, barrier, waits});
    *push() = {};
  }
  // Lanes with the predicate go to block `to`; behind it nothing is under way.
  Result<void> jump(BlockId to, uint32_t from, uint32_t guard, bool negated) {
    const FlowBlock& x = flow.blocks[to];
    if (only_exits(x)) return exit(guard, negated);
    const uint8_t waits = any_under_way | waits_behind;
    settle(any_under_way), waits_behind = 0;
    guarded_branches += guard != isa::PT;
    loops |= place_of[index(to)] <= from;
    if (volta || is_none(x.joins)) {
      branch(StencilCache::Branch::go, place_of[index(to)], false, guard, negated, 0, waits);
      return {};
    }
    isa::Instruction inst = branch_of(StencilCache::Branch::join, guard, negated);
    inst.control.wait_mask = waits;
    const uint32_t at = static_cast<uint32_t>(words.size());
    return put(inst, at, *push());
  }
  // What follows the statements of a block.
  Result<void> leave(const FlowBlock& b, uint32_t at) {
    for (RegionId r : b.opens) {
      crs |= volta;
      if (t.has(isa::Feature::clears_barriers)) {
        isa::Instruction clear = branch_of(StencilCache::Branch::clear, isa::PT, false);
        name_barrier(clear, barrier(r));
        const auto place = static_cast<uint32_t>(words.size());
        RETURN_IF_ERROR(put(clear, place, *push()));
      }
      branch(StencilCache::Branch::open, place_of[index(flow.regions[r].join)], volta, isa::PT, false, barrier(r), 0);
    }
    const BlockId following = at + 1 < flow.layout.size() ? flow.layout[at + 1] : none<BlockId>();
    const auto falls_to = [&](BlockId to) { return to == following && (volta || is_none(flow.blocks[to].joins)); };
    if (is_none(b.taken) && is_none(b.next)) return exit(isa::PT, false);
    if (is_none(b.predicate) || is_none(b.taken)) {
      if (!falls_to(b.next)) return jump(b.next, at, isa::PT, false);
      return {};
    }
    const Home& v = homes[index(b.predicate)];
    const uint32_t guard = v.kept ? first_carrier : v.place;
    if (v.kept) bring(v, guard);
    if (falls_to(b.taken)) return jump(b.next, at, guard, !b.negated);
    RETURN_IF_ERROR(jump(b.taken, at, guard, b.negated));
    if (!falls_to(b.next)) return jump(b.next, at, isa::PT, false);
    return {};
  }
  void expire(uint32_t position) {
    for (uint32_t id = ends[position]; id != nowhere; id = homes[id].next_end) {
      const Home& v = homes[id];
      if (v.place == unplaced) continue;
      if (v.units || v.kept)
        gprs.give_back(v.place, std::max<uint32_t>(v.units, 1));
      else
        free_predicates |= 1u << v.place;
    }
  }

  // False: there are not enough registers.
  Result<bool> write_code() {
    const uint32_t limit = register_limit(p, o) & ~1u;
    constexpr uint32_t first_scratch = 4;
    if (first_scratch + scratch_units > limit || scratch_predicates + carriers > isa::PT) return false;
    gprs = {}, free_predicates = 0;
    for (uint32_t w = 0; w < gprs.free.size() && 64 * w < limit; ++w)
      gprs.free[w] = limit - 64 * w >= 64 ? ~uint64_t{0} : (uint64_t{1} << (limit - 64 * w)) - 1;
    for (uint32_t r = first_scratch; r < first_scratch + scratch_units; ++r)
      gprs.free[r / 64] &= ~(uint64_t{1} << r % 64);
    gprs.free[0] &= ~(uint64_t{1} << stack_register);
    scratch_gpr = first_scratch;
    if (scratch_units) gprs.used = first_scratch + scratch_units;
    scratch_predicate = isa::PT - scratch_predicates;
    first_carrier = scratch_predicate - carriers;
    free_predicates = (1u << first_carrier) - 1;
    guarded_branches = 0;
    words.clear();
    words.reserve(most_words + 64);
    first_word = arena.make_raw<uint32_t>(flow.layout.size());
    for (uint32_t at = 0; at < flow.layout.size(); ++at) {
      const FlowBlock& b = flow.blocks[flow.layout[at]];
      const Extent& extent = extents[at];
      first_word[at] = static_cast<uint32_t>(words.size());
      since = 0;
      for (uint32_t id = extent.born; id != nowhere; id = blocks_of[id].next_born)
        if (!place(homes[id])) return false;
      if (at == 0 && descriptor) {
        isa::Instruction inst = make(Mnemonic::ULDC, {uniform(descriptor_register), constant(0, t.descriptor_offset)});
        isa::set_modifier(inst, isa::ModifierKind::Size, 5);
        inst.control.stall = 15, inst.control.yield = false;
        RETURN_IF_ERROR(put(inst, 0, *push()));
      }
      if (at == 0 && local)
        for (const Inst& x : stack_prologue(t, local->bytes)) {
          isa::Instruction inst = x.sass;
          inst.control.stall = 15, inst.control.yield = false;
          const uint32_t place = static_cast<uint32_t>(words.size());
          RETURN_IF_ERROR(put(inst, place, *push()));
        }
      if (volta && !is_none(b.joins)) {
        isa::Instruction inst = branch_of(StencilCache::Branch::join, isa::PT, false);
        name_barrier(inst, barrier(b.joins));
        const uint32_t place = static_cast<uint32_t>(words.size());
        RETURN_IF_ERROR(put(inst, place, *push()));
      }
      depth = is_none(b.innermost) ? 0 : barrier(b.innermost) + 1;
      for (uint32_t n = extent.first_statement; n < extents[at + 1].first_statement; ++n) {
        if (!copy(statements[n])) return false;
        expire(statements[n].at);
      }
      if (!is_none(b.predicate) && homes[index(b.predicate)].place == unplaced && !place(homes[index(b.predicate)]))
        return false;
      RETURN_IF_ERROR(leave(b, at));
      expire(extent.end);
    }
    return true;
  }
  // From now on predicates may lie in general registers, too; false: those who bring them cannot be made.
  bool prepare_carriers() {
    if (!cache.bring) {
      ptx::Function f;
      const ptx::RegisterId predicate = f.registers.add({ptx::Type::pred}),
                            word = f.registers.add({ptx::Type::u32, false, 1});
      const auto reg = [](ptx::RegisterId r) { return OperandKind{OperandKind::reg, false, 0, index(r)}; };
      const auto literal = [](int64_t v) { return OperandKind{OperandKind::immediate, false, 0, 0, v}; };
      for (const OperandKind& x :
           {reg(predicate), reg(word), literal(0), reg(word), literal(1), literal(0), reg(predicate)})
        f.operands.push_back(x);
      ptx::Instruction test, choose;
      test.op = Opcode::setp, test.mods.compare = ptx::Compare::ne, test.operand_count = 3;
      choose.op = Opcode::selp, choose.operand_count = 4, choose.first_operand = 3;
      test.type = choose.type = ptx::Type::u32, test.destination_count = choose.destination_count = 1;
      const auto made = [&](const ptx::Instruction& i) {
        Shape s;
        s.inst = &i, s.destinations = 1, s.count = i.operand_count + 1u;
        for (uint8_t k = 0; k < i.operand_count; ++k) {
          const OperandKind& x = f.operand(i, k);
          Shape::Operand& y = s.operands[k + 1u];
          y.kind = x.kind == OperandKind::reg ? Shape::reg : Shape::exact;
          y.low = x.kind == OperandKind::reg ? x.id : static_cast<uint32_t>(x.value);
          y.same = static_cast<uint8_t>(k + 1),
          y.type = x.kind == OperandKind::reg ? f.registers[x.reg_id()].type : ptx::Type::none;
        }
        bool exact = false;
        return make_stencil(m, f, s, o, forms, arena, room, cache, exact);
      };
      cache.bring = made(test), cache.keep = made(choose);
    }
    constexpr uint32_t most_carriers = 3;
    carriers = most_carriers;
    return cache.bring && cache.keep && !cache.bring->scratch_units && !cache.keep->scratch_units &&
           !cache.bring->scratch_predicates && !cache.keep->scratch_predicates;
  }
  void forget_places() {
    for (Home& v : homes) v.place = unplaced, v.kept = false;
    fixups.clear();
    under_way.fill(0), writes_under_way.fill(0), named_count.fill(0), any_under_way = waits_behind = 0;
    k = {}, literals.clear(), loops = false;
    ++cache.functions;  // literals have no places yet
  }
  isa::Operand label(uint32_t at) const {
    return {.kind = isa::OperandKind::label, .value = static_cast<int64_t>(address(at))};
  }
  Result<void> write_branches() {
    for (const Fixup& x : fixups.all()) {
      isa::Instruction inst = branch_of(x.which, x.guard, x.negated);
      inst.operands[inst.operand_count - 1u].value =
          static_cast<int64_t>(address(first_word[x.block] + x.behind_first));
      if (volta && x.which == StencilCache::Branch::open) name_barrier(inst, x.barrier);
      inst.control.wait_mask = x.waits;
      RETURN_IF_ERROR(put(inst, x.at, words[x.at]));
    }
    return {};
  }
  // Behind the code: a branch to itself, then NOPs.
  Result<void> write_end() {
    const uint32_t self = static_cast<uint32_t>(words.size()), n = self + 1;
    isa::Instruction end = branch_of(StencilCache::Branch::go, isa::PT, false);
    end.operands[end.operand_count - 1u].value = static_cast<int64_t>(address(self));
    end.control = {};
    if (!volta) end.control = {.stall = 15, .yield = true};
    RETURN_IF_ERROR(put(end, self, *push()));
    const uint32_t total = padded_size(t, n);
    isa::Instruction nop = branch_of(StencilCache::Branch::nothing, isa::PT, false);
    nop.control = {};
    isa::Word word;
    RETURN_IF_ERROR(put(nop, n, word));
    while (words.size() < total) *push() = word;
    return {};
  }
  Result<void> verify() {
    std::vector<isa::Instruction> stream;
    std::vector<uint64_t> addresses;
    for (uint32_t n = 0; n < words.size(); ++n) {
      isa::Instruction x;
      if (!isa::decode(t, words[n], address(n), x))
        return Error{Fault::internal, fmt::format("function {}: a word made of stencils is no instruction", p.name)};
      stream.push_back(x), addresses.push_back(address(n));
    }
    for (const auto& problems : {check_regions(t, stream, addresses), check_schedule(t, stream, addresses)})
      if (!problems.empty()) return Error{Fault::internal, fmt::format("function {}: {}", p.name, problems[0])};
    return {};
  }

  Result<bool> run(KernelReport& report) {
    if (flow.calls || !find_stencils() || !find_lives()) return false;
    ASSIGN_OR_RETURN(bool placed, write_code());
    if (!placed && lacks_predicates && prepare_carriers()) {
      forget_places();
      ASSIGN_OR_RETURN(placed, write_code());
    }
    if (!placed) {
      k = {};
      return false;
    }
    RETURN_IF_ERROR(write_branches());
    report.instructions = static_cast<uint32_t>(words.size()) + 1;
    RETURN_IF_ERROR(write_end());
    if (o.verify_passes) RETURN_IF_ERROR(verify());
    declare(k, p);
    k.code = isa::pack(t, {words.data(), words.size()});
    k.registers = std::max(gprs.used, stack_register + 1) + t.reported_registers_extra;
    k.barriers = barriers;
    k.uses_shared = shared.has_value();
    k.shared_bytes = shared ? shared->bytes + t.shared_base : 0;
    k.local_bytes = local ? local->bytes : 0;
    k.uses_ctaid_z = block_z;
    k.has_crs_attribute = crs;
    k.constants.assign(literals.begin(), literals.end());
    if (!volta) {
      uint32_t depth = 0;
      for (const Region& r : flow.regions) depth = std::max(depth, r.depth + 1);
      if (depth || guarded_branches) k.stack_bytes = divergence_stack_bytes(depth, guarded_branches, loops);
    }
    if (o.max_registers) k.max_registers = o.max_registers;
    report.name = p.name;
    report.registers = k.registers;
    report.shared_bytes = k.shared_bytes;
    report.of_stencils = true;
    return true;
  }
};

}  // namespace

Result<bool> copy_and_patch(const ptx::Module& module, const ptx::Function& function, const Flow& flow,
                            const Options& options, isa::FormCache& forms, Arena& arena, SelectionRoom& room,
                            StencilCache& cache, cubin::Kernel& kernel, KernelReport& report) {
  ArenaScope scope(arena);
  cache.start(module, *options.target);
  ++cache.functions;
  return Patcher{module, function, flow, options, forms, arena, room, cache, kernel}.run(report);
}

}  // namespace rndn::assembler
