// PTX as data: modules, functions, instructions. Written by the typed builder (builder.h) and by the parser (parse.h);
// read by the printer, the verifier, the interpreter and the assembler. Knows nothing of HorseIR or SASS.
//
// An instruction is a row of opcodes.def (its mnemonic), modifiers, one or two types and operands, destinations first.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libraries/base/containers/id.h"
#include "libraries/base/containers/raw_vector.h"
#include "libraries/base/errors/source.h"

namespace rndn::ptx {

enum class Type : uint8_t {
  none,
  pred,
  b8,
  b16,
  b32,
  b64,
  b128,
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  f16,
  f16x2,
  bf16,
  bf16x2,
  f32,
  f64
};
std::string_view type_name(Type type);   // "u32"
inline uint32_t type_bytes(Type type) {  // pred and none: 0
  static constexpr uint8_t sizes[] = {0, 0, 1, 2, 4, 8, 16, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 2, 4, 4, 8};
  return static_cast<size_t>(type) < sizeof sizes ? sizes[static_cast<size_t>(type)] : 0;
}
inline bool is_signed(Type t) { return t >= Type::s8 && t <= Type::s64; }
inline bool is_unsigned(Type t) { return t >= Type::u8 && t <= Type::u64; }
inline bool is_bits(Type t) { return t >= Type::b8 && t <= Type::b128; }
inline bool is_floating(Type t) { return t >= Type::f16; }

enum class Space : uint8_t { generic, reg, param, local, shared, global, constant };

// Mnemonics without modifiers: add, sub, mul, mad, ..., from opcodes.def.
enum class Opcode : uint16_t {
#define OPCODE(name, ...) name,
#include "ptx/opcodes.def"
#undef OPCODE
};
std::string_view opcode_name(Opcode op);  // "add"; `and_`, `or_`, `not_`, `xor_` print without the underscore

enum class Rounding : uint8_t { none, rn, rz, rm, rp, rni, rzi, rmi, rpi };
enum class Compare : uint8_t { none, eq, ne, lt, le, gt, ge, lo, ls, hi, hs, equ, neu, ltu, leu, gtu, geu, num, nan };
enum class Combine : uint8_t { none, and_, or_, xor_ };  // setp.CMP.BOOL
enum class MulPart : uint8_t { none, lo, hi, wide };
enum class Cache : uint8_t { none, ca, cg, cs, lu, cv, wb, wt, nc };  // nc: ld.global.nc
enum class Semantics : uint8_t { none, weak, relaxed, acquire, release, acq_rel, sc, volatile_ };
enum class Scope : uint8_t { none, cta, cluster, gpu, sys };  // membar: cta, gl = gpu, sys
enum class AtomicOp : uint8_t { none, add, min, max, inc, dec, and_, or_, xor_, exch, cas };
enum class ShuffleMode : uint8_t { none, up, down, bfly, idx };
enum class VoteMode : uint8_t { none, all, any, uni, ballot };
enum class ShiftMode : uint8_t { none, wrap, clamp };

// Everything between mnemonic and type. Default = absent. Which ones a row allows is in opcodes.def.
struct Modifiers {
  Rounding rounding = Rounding::none;
  Compare compare = Compare::none;
  Combine combine = Combine::none;
  MulPart part = MulPart::none;
  Space space = Space::generic;
  Cache cache = Cache::none;
  Semantics semantics = Semantics::none;
  Scope scope = Scope::none;
  AtomicOp atomic = AtomicOp::none;
  ShuffleMode shuffle = ShuffleMode::none;
  VoteMode vote = VoteMode::none;
  ShiftMode shift = ShiftMode::none;
  uint8_t vector = 1;  // .v2, .v4
  bool ftz : 1 = false;
  bool sat : 1 = false;
  bool approx : 1 = false;
  bool full : 1 = false;
  bool carry_out : 1 = false;  // .cc
  bool sync : 1 = false;       // shfl.sync, vote.sync, bar.sync, ...
  bool uni : 1 = false;        // bra.uni
  bool to : 1 = false;         // cvta.to
  uint8_t mode = 0;            // what only one opcode has (prmt mode, testp kind, ...): its table is in opcodes.def
  bool operator==(const Modifiers&) const = default;
};

enum class RegisterId : uint32_t {};  // within its function
enum class LabelId : uint32_t {};     // within its function
enum class VariableId : uint32_t {};  // within its module: global, shared, constant, local variables

enum class SpecialRegister : uint8_t {
  none,
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  laneid,
  warpid,
  nwarpid,
  smid,
  nsmid,
  gridid,
  lanemask_eq,
  lanemask_le,
  lanemask_lt,
  lanemask_ge,
  lanemask_gt,
  clock,
  clock_hi,
  clock64,
  globaltimer,
  globaltimer_lo,
  globaltimer_hi,
  dynamic_smem_size,
  total_smem_size,
  reserved_smem_offset_1,  // of shared memory that cooperative groups use
  envreg0,  // %envreg0 .. %envreg31: constants that the driver gives
  envreg31 = envreg0 + 31,
};
inline constexpr uint32_t special_register_count = static_cast<uint32_t>(SpecialRegister::envreg31) + 1;
std::string_view special_register_name(SpecialRegister r);  // "%tid.x"
inline uint32_t special_register_bytes(SpecialRegister r) {
  using enum SpecialRegister;
  return r == clock64 || r == globaltimer || r == gridid ? 8 : 4;
}

struct Operand {
  enum Kind : uint8_t {
    none,
    reg,        // id: RegisterId; `negated` for a predicate source `!p`
    immediate,  // value: the bits, sign-extended integers; floats as their IEEE bits of the instruction's type
    special,    // id: SpecialRegister
    label,      // id: LabelId
    variable,   // id: VariableId, value: byte offset (address of the variable as a value: mov)
    parameter,  // id: index of the function's parameter (results of a .func follow its parameters), value: byte offset
                // ([p+4] of ld.param)
    address_reg,  // [reg + value]
    address_var,  // [variable + value]
    address_imm,  // [value]
    vector,       // {a, b, ..}: id = first of `count` operands in Function::vector_elements
    sink,         // `_`
    function,     // id: index into Module::functions (call; mov: its address)
    prototype,    // id: index into Function::prototypes (last operand of a call through a register)
    targets,      // id: index into Function::targets (brx.idx)
  } kind = none;
  bool negated = false;
  uint8_t count = 0;  // vector: 2, 4 or 8
  uint32_t id = 0;
  int64_t value = 0;
  RegisterId reg_id() const { return static_cast<RegisterId>(id); }
  LabelId label_id() const { return static_cast<LabelId>(id); }
  VariableId variable_id() const { return static_cast<VariableId>(id); }
  bool operator==(const Operand&) const = default;
};
static_assert(sizeof(Operand) == 16);

struct Instruction {
  Opcode op{};
  Type type = Type::none;
  Type type2 = Type::none;  // cvt, set, shfl with packed predicates: the source type
  bool guard_negated = false;
  uint8_t operand_count = 0;
  uint8_t destination_count = 0;                // the first operands
  RegisterId guard = rndn::none<RegisterId>();  // @p / @!p
  uint32_t first_operand = 0;                   // into Function::operands
  Modifiers mods;
  uint32_t line = 0;  // of the PTX text, 0 = unknown
};

// What threads wait for (opcodes.def has the numbers of the modes).
inline bool is_warp_barrier(const Instruction& i) { return i.op == Opcode::bar && i.mods.mode == 32; }  // bar.warp.sync
inline bool is_block_barrier(const Instruction& i) {
  return i.op == Opcode::barrier || (i.op == Opcode::bar && !is_warp_barrier(i));
}
// cp.async that copies; others end groups of copies, wait, or arrive at a barrier object.
inline bool is_copy(const Instruction& i) { return i.op == Opcode::cp && (i.mods.mode < 32 || i.mods.mode >= 128); }
// What an instruction does to a barrier object, which counts arrivals and bytes.
struct BarrierStep {
  enum What : uint8_t { nothing, init, invalidate, arrive, test, count_bytes } what = nothing;
  bool drops = false;      // arrive: nobody is expected in its place from the next phase on
  bool parity = false;     // test: of a phase's parity, not of a token
  bool expects = false;    // bytes to come
  bool completes = false;  // bytes that have come
};
BarrierStep barrier_step(const Instruction& i);
inline bool is_barrier_object(const Instruction& i) {  // works on one, and does nothing else
  switch (i.op) {
    case Opcode::mbarrier:
    case Opcode::mbarrier_try_wait:
    case Opcode::mbarrier_expect_tx:
    case Opcode::mbarrier_complete_tx:
    case Opcode::mbarrier_arrive_expect_tx:
    case Opcode::mbarrier_drop_expect_tx: return true;
    case Opcode::cp: return i.mods.mode >= 96 && i.mods.mode < 128;
    default: return false;
  }
}
// All threads of the warp that have not exited come to it together.
inline bool is_aligned_barrier(const Instruction& i) {
  return is_block_barrier(i) && (i.op == Opcode::bar || i.mods.mode == 1);
}
// Waits for the lanes that its last operand names.
inline bool names_members(const Instruction& i) {
  return i.operand_count != 0 && (i.op == Opcode::shfl || i.op == Opcode::match || i.op == Opcode::redux ||
                                  (i.op == Opcode::vote && i.operand_count > 2) || is_warp_barrier(i));
}
inline bool moves_matrices(const Instruction& i) { return i.op == Opcode::ldmatrix || i.op == Opcode::stmatrix; }
inline uint32_t matrix_count(const Instruction& i) { return 1u << (i.mods.mode / 32); }  // of those
inline bool uses_stack(const Instruction& i) {
  return i.op == Opcode::alloca_ || i.op == Opcode::stacksave || i.op == Opcode::stackrestore;
}
inline bool is_warp_operation(const Instruction& i) {
  return moves_matrices(i) || i.op == Opcode::shfl || i.op == Opcode::vote || i.op == Opcode::match ||
         i.op == Opcode::redux || i.op == Opcode::elect || i.op == Opcode::activemask || is_warp_barrier(i);
}

struct Register {
  Type type{};
  bool named = false;   // has a name of its own: Function::register_names[number]
  uint32_t number = 0;  // else among those of one prefix: its name is the type's prefix and this
};
static_assert(sizeof(Register) == 8, "most of a generated kernel's registers are written once and read once");
std::string_view register_prefix(Type type);  // by width, as nvcc does: "%p", "%rs", "%r", "%rd", "%f", "%fd"

struct Label {
  std::string name;
  uint32_t at = UINT32_MAX;  // index of the instruction it precedes (may be the number of instructions)
  bool nounroll = false;     // .pragma "nounroll": the loop that begins here stays as it is
};

struct Parameter {
  Type type{};
  std::string name;
  uint32_t align = 0;  // bytes; 0: natural
  uint32_t count = 0;  // array length in elements; 0: scalar
};

struct Variable {
  Space space{};
  Type type{};
  std::string name;
  uint32_t align = 0;
  uint64_t count = 0;  // elements; 0: scalar; UINT64_MAX: extern unsized array
  bool external = false, visible = false;
  std::vector<std::byte> initial;  // may be shorter than the variable: the rest is zero
  uint32_t function = UINT32_MAX;  // index of the function that declares it, or none for module scope
  struct Address {                 // 8 bytes of the initial value are an address
    uint32_t offset = 0;           // of them
    bool function = false;         // of a function, else of a variable
    bool generic = false;          // generic(name)
    uint32_t id = 0;               // of the function or the variable
    int64_t addend = 0;
    bool operator==(const Address&) const = default;
  };
  std::vector<Address> addresses;  // ascending
  bool managed = false;            // .attribute(.managed): memory that host and device share
};

// The signature of calls through a register (.callprototype).
struct Prototype {
  std::string name;
  std::vector<Parameter> results, parameters;
};

// Where brx.idx can go (.branchtargets), by index.
struct BranchTargets {
  std::string name;
  std::vector<LabelId> labels;
};

// A file of the source that the PTX was made from (.file).
struct SourceFile {
  uint32_t number = 0;  // by which .loc names it
  std::string name;
  uint64_t time = 0, bytes = 0;  // 0: not told
  bool operator==(const SourceFile&) const = default;
};

// Where in the source the instructions from `at` to the next location come from (.loc).
struct Location {
  static constexpr uint32_t not_inlined = UINT32_MAX;
  uint32_t at = 0;  // index of the first instruction; ascending within a function, several may share one
  uint32_t file = 0, line = 0, column = 0;
  uint32_t inlined =
      not_inlined;  // code of this function (index into Module::inlined), which was inlined into its caller ..
  uint32_t caller_file = 0, caller_line = 0, caller_column = 0;  // .. here
  bool operator==(const Location&) const = default;
};

struct Function {
  std::string name;
  uint32_t line = 0;  // of the name in the text
  bool is_entry = true;
  bool visible = true;
  bool external = false;  // .func declared elsewhere (vprintf, malloc): no body
  std::vector<Parameter> parameters;
  std::vector<Parameter> results;                             // .func only
  std::array<uint32_t, 3> max_threads{}, required_threads{};  // .maxntid, .reqntid; 0 = absent
  uint32_t min_blocks = 0;                                    // .minnctapersm
  uint32_t max_registers = 0;                                 // .maxnreg
  IdVector<RegisterId, Register> registers;
  std::vector<std::string> register_names;  // of those that are named
  IdVector<LabelId, Label> labels;
  RawVector<Instruction> instructions;
  RawVector<Operand> operands;
  RawVector<Operand> vector_elements;
  std::vector<Prototype> prototypes;
  std::vector<BranchTargets> targets;
  std::vector<Location> locations;

  const Operand& operand(const Instruction& i, uint32_t k) const { return operands[i.first_operand + k]; }
  RegisterId add_register(Type type, std::string name) {
    register_names.push_back(std::move(name));
    return registers.add({type, true, static_cast<uint32_t>(register_names.size() - 1)});
  }
};
std::string register_name(const Function& f, RegisterId id);  // "%r12"

struct Module {
  uint32_t version = 60;  // 10 * major + minor
  uint32_t target = 60;   // sm_60
  uint32_t address_size = 64;
  IdVector<VariableId, Variable> variables;
  std::vector<Function> functions;
  std::vector<SourceFile> files;
  std::vector<std::string> inlined;  // names of functions that locations tell of
};

// A function's address as a value: any non-zero number that tells the functions of a module apart will do, since calls through registers
// choose among the functions of their own module.
inline uint64_t function_address(uint32_t function) { return 16 * (uint64_t{function} + 1); }

std::string print(const Module& module);
std::string print(const Module& module, const Function& function);
std::string print(const Module& module, const Function& function, const Instruction& instruction);

}  // namespace rndn::ptx
