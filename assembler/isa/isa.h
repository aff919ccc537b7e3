// SASS as data. An instruction set is a table of forms (form.h, forms_*.cpp): one row per instruction form with its bits, operand
// slots, modifiers, latency class and provenance. This header is what encoder, decoder, printer, assembler and simulator share.
//
// Conventions
//   * Operands are in the order in which nvdisasm prints them, destinations first, e.g. ISETP: Pd, Pq, A, B, Ps.
//     All forms of a mnemonic in a family have the same operand order; forms differ in the kinds that a slot takes.
//   * A modifier's value is the value of its bit field, as docs/sass.md lists them (ISETP: 1 = LT).
//   * Register numbers: the file's zero/true register is 255 (RZ), 63 (URZ), 7 (PT, UPT). Numbers >= first_virtual are virtual registers of
//     the assembler; encode() refuses them.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libraries/base/containers/id.h"
#include "libraries/base/errors/check.h"
#include "libraries/base/numbers/gpu_limits.h"

namespace rndn::isa {

enum class Family : uint8_t { pascal, volta };  // Maxwell/Pascal 64-bit words; Volta and later 128-bit words

// Facts about one target (targets.cpp); sources: docs/sass.md.
// Targets as bits; the order of targets.cpp.
inline constexpr uint32_t sm_60 = 1, sm_61 = 2, sm_75 = 4, sm_80 = 8, sm_86 = 16, sm_89 = 32, sm_90 = 64;
inline constexpr uint32_t pascal = sm_60 | sm_61, ampere = sm_80 | sm_86 | sm_89, before_90 = sm_75 | ampere,
                          volta = before_90 | sm_90, after_75 = ampere | sm_90;

enum class Feature : uint8_t {
#define FEATURE(name, targets) name,
#include "assembler/isa/features.def"
#undef FEATURE
};

struct Target : GpuLimits {  // sm: 86
  std::string_view name;     // "sm_86"
  Family family;
  uint32_t bit;                // 1 << position in the table of targets; Form::targets is a set of these
  uint32_t elf_flags;          // low bits of e_flags
  uint32_t instruction_bytes;  // 16; Pascal: 8 (plus a control word per three)
  uint32_t parameter_base;     // offset of the first kernel parameter in constant bank 0
  uint32_t descriptor_offset;  // of the memory descriptor in bank 0; 0: none (before sm_80)
  uint32_t ntid_offset, nctaid_offset, stack_offset;  // in bank 0: block size x y z, grid size x y z, initial R1
  // In bank 0: where constant bank 3 and (0: there is none) bank 0 lie for generic addresses; what the latter is counted from.
  uint32_t generic_constants_offset, generic_parameters_offset, generic_parameters_from;
  uint32_t shared_base;               // bytes reserved at the start of shared memory (sm_90: 0x400)
  uint32_t max_registers;             // usable per thread: 253 on Volta+, 255 on Pascal
  uint32_t reported_registers_extra;  // REGCOUNT = used + this (Volta+: 2)
  uint32_t max_parameter_bytes;       // of a kernel; the second: of PTX 8.1 and later for .target sm_70 and later
  uint32_t max_parameter_bytes_81;
  uint32_t environment_offset, reserved_shared_offset;  // in bank 0: %envreg0, where the driver's part of shared memory begins
  uint64_t features;                                    // set of Feature
  constexpr bool has(Feature f) const { return features >> static_cast<uint32_t>(f) & 1; }
};
std::span<const Target> targets();
// Null: none. sm_90a is sm_90: what the suffix adds is tensor instructions, which are refused where they stand.
const Target* find_target(std::string_view name);

// One instruction word. Volta+: all 128 bits. Pascal: lo = the instruction, hi = its 21-bit control field.
struct Word {
  uint64_t lo = 0, hi = 0;
  bool operator==(const Word&) const = default;
};

// Scheduling fields; the same six on both families.
struct Control {
  uint8_t stall = 0;          // issue cycles before the next instruction of the warp, 0..15
  bool yield = false;         // the bit of docs/sass.md
  uint8_t write_barrier = 7;  // scoreboard 0..5 released when results are written; 7 = none
  uint8_t read_barrier = 7;   // scoreboard 0..5 released when sources have been read; 7 = none
  uint8_t wait_mask = 0;      // scoreboards that must be free before issue
  uint8_t reuse = 0;          // operand cache flags
  bool operator==(const Control&) const = default;
};

enum class Mnemonic : uint16_t {
#define MNEMONIC(name) name,
#include "assembler/isa/mnemonics.def"
#undef MNEMONIC
};
std::string_view mnemonic_name(Mnemonic m);

// Every kind of modifier of either family, such as Signed, Compare, Size, X (modifiers.def explains each).
enum class ModifierKind : uint8_t {
#define MODIFIER(name, text) name,
#include "assembler/isa/modifiers.def"
#undef MODIFIER
};
inline constexpr size_t modifier_kinds = 0
#define MODIFIER(name, text) +1
#include "assembler/isa/modifiers.def"
#undef MODIFIER
    ;

enum class FormId : uint32_t {};

enum class OperandKind : uint8_t {
  none,
  gpr,        // reg
  predicate,  // reg; `negated`
  uniform,    // reg (UR)
  uniform_predicate,
  barrier,  // reg: B0..B15
  immediate,  // value: the 32 bits of the field as the instruction sees them (f64 immediates: the high word), sign- or zero-extended
  constant,  // c[bank][value], value unsigned; with reg != 255: c[bank][reg + value], with uniform != 63: c[bank][uniform + value], value signed
  special,   // value: special register number
  label,     // value: byte address of the target within the section (assembler before layout: a block id)
  address,   // [reg + uniform + value]: reg 255 = none; uniform 63 = none
  scoreboard,  // value: SBn of DEPBAR
};

struct Operand {
  OperandKind kind = OperandKind::none;
  bool negated : 1 = false;     // -x, ~x or !p
  bool absolute : 1 = false;    // |x|
  bool wide : 1 = false;        // address: reg is a 64-bit pair (.64)
  bool descriptor : 1 = false;  // address: `uniform` is the memory descriptor, not an addend
  uint8_t part : 4 = 0;         // half/byte selector where a slot has one (.H1, .B2), as encoded
  uint8_t bank = 0;             // constant
  uint8_t uniform = 63;         // address
  uint32_t reg = 255;
  int64_t value = 0;
  bool operator==(const Operand&) const = default;
};
static_assert(sizeof(Operand) == 16);  // passes stream over instructions: an operand is a quarter of a cache line

inline constexpr uint32_t first_virtual = 256;
inline constexpr uint32_t RZ = 255, PT = 7, URZ = 63;
inline constexpr size_t max_operands = 8, max_modifiers = 12;

struct Instruction {
  FormId form = none<FormId>();
  Mnemonic mnemonic{};
  uint8_t operand_count = 0;
  uint32_t guard = PT;  // predicate register (uniform predicate for uniform-datapath forms)
  bool guard_negated = false;
  Control control;
  std::array<uint8_t, max_modifiers> modifiers{};  // parallel to the form's modifiers
  std::array<Operand, max_operands> operands{};
};

enum class Access : uint8_t { none, read, write, read_write };
enum class RegisterFile : uint8_t { none, gpr, predicate, uniform, uniform_predicate, barrier };

// Latency classes; distances between them are per target (latencies.h).
enum class LatencyClass : uint8_t {
#define LATENCY_CLASS(name, text) name,
#include "assembler/isa/latency_classes.def"
#undef LATENCY_CLASS
};

enum class Provenance : uint8_t {
  inferred,
  ptxas,
  device
};  // inferred; seen in ptxas's output; seen to work on the H200

// --- Rows, as passes see them --------------------------------------------------------------------------------------------------
size_t form_count();
Family form_family(FormId form);
uint32_t form_targets(FormId form);  // set of Target::bit
LatencyClass latency_class(const Instruction& instruction);
Provenance provenance(FormId form);

// What a row says about its slots, gathered for passes that look at every instruction. Bit k of a set is operand k.
struct RowFacts {
  uint8_t gprs = 0, predicates = 0, uniforms = 0, uniform_predicates = 0;  // slots of the file; addresses are GPRs
  uint8_t other_files = 0;                                                 // slots of B registers
  uint8_t addresses = 0;                                                   // slots that may name a uniform register too
  uint8_t reads = 0, writes = 0;
  // Operands that name registers of the four files above, those that are read, then those that are written.
  struct Named {
    uint8_t operand = 0, file = 0;  // file: 0 GPR, 1 predicate, 2 uniform, 3 uniform predicate
  };
  std::array<Named, 2 * max_operands> named{};
  uint8_t named_reads = 0, named_count = 0;
  // The register count of an operand: less one, two bits for each value of one modifier.
  struct Width {
    uint8_t modifier = 0;  // its place in Instruction::modifiers
    bool varies = false;   // with modifiers
    bool ask = false;      // with several: ask register_count
    uint32_t by_value = 0;
    uint32_t of(const Instruction& instruction) const {
      return 1 + (by_value >> (2 * instruction.modifiers[modifier] & 31) & 3);
    }
  };
  std::array<Width, max_operands> widths{};
  Mnemonic mnemonic{};
  LatencyClass latency{};  // CS2R.32 differs: ask latency_class when it is cs2r
  bool uniform_guard = false;
  bool carry = false;  // may read or write Pascal's condition code: ask reads_carry, writes_carry
  // By kind: the place in Instruction::modifiers of one that says nothing about others; others: ask set_modifier.
  static constexpr uint8_t ask = 255;
  std::array<uint8_t, modifier_kinds> modifier_places{};
};
const RowFacts& row_facts(FormId form);

// Operand k of the instruction: how it is used, in which file, and over how many consecutive registers (pairs, quads; from modifiers such
// as Size). An address reads its base pair (and the uniform register).
Access access(const Instruction& instruction, uint32_t k);
RegisterFile register_file(const Instruction& instruction, uint32_t k);
uint32_t register_count(const Instruction& instruction, uint32_t k);
// Whether the operand, a register, may be RZ.
bool takes_rz(const Instruction& instruction, uint32_t k);
// Pascal's condition code, an operand that has no slot: read by .X forms, written by .CC.
bool reads_carry(const Instruction& instruction);
bool writes_carry(const Instruction& instruction);
// Predicates named by a mask instead of a slot (R2P writes, P2R reads): bit i = Pi.
uint8_t implicit_predicate_writes(const Instruction& instruction);
uint8_t implicit_predicate_reads(const Instruction& instruction);
// Uniform-datapath forms are guarded by a uniform predicate.
bool guard_is_uniform(FormId form);
uint32_t slot_count(FormId form);
std::string_view form_name(FormId form);  // as printed, without modifiers: "IMAD.WIDE"

// --- Modifiers ---------------------------------------------------------------------------------------------------------------
bool has_modifier(FormId form, ModifierKind kind);
uint8_t modifier(const Instruction& instruction, ModifierKind kind);  // 0 (or the row's default) when the form has none
// CHECKs that the form has it. May change the form: Volta's conversions have an opcode of their own for 64-bit operands.
void set_modifier(Instruction& instruction, ModifierKind kind, uint8_t value);
// The same where the instruction's row is at hand.
inline void set_modifier(Instruction& instruction, const RowFacts& row, ModifierKind kind, uint8_t value) {
  const uint8_t at = row.modifier_places[static_cast<size_t>(kind)];
  if (at == RowFacts::ask) [[unlikely]]
    return set_modifier(instruction, kind, value);
  instruction.modifiers[at] = value;
}
// Gives `to` the guard and all modifiers of `from`; false when its form lacks one of them.
bool copy_modifiers(const Instruction& from, Instruction& to);

// --- Building, encoding, decoding, printing ------------------------------------------------------------------------------------
// Finds the form of `mnemonic` on `target` whose slots take these operands (B as register, immediate, constant or uniform register) and
// sets default modifiers. Returns false when there is none.
// Optional slots (mnemonics.def) may be left out anywhere, or given as OperandKind::none for the default: IADD3 takes {Rd, A, B, C} as well as
// {Rd, P0, A, B, C}. Immediates that do not fit a form's field exclude the form. An address with `descriptor` set, or with a uniform register,
// selects the form with a uniform register.
bool make(const Target& target, Mnemonic mnemonic, std::span<const Operand> operands, Instruction& instruction);

class FormCache;  // for those who make many instructions (make.h)

// False when a field does not fit (an immediate, an offset, a virtual register): the caller takes another form.
// `address`: byte address of the instruction, for relative branches.
bool encode(const Target& target, const Instruction& instruction, uint64_t address, Word& word);
// False when no row matches.
bool decode(const Target& target, Word word, uint64_t address, Instruction& instruction);
// A random instruction of the form, for tests and fuzzers; branch targets are random numbers.
Instruction random_instruction(FormId form, uint64_t seed);
// An instruction of the form with its initial modifiers, no signs and distinct registers, for tests.
Instruction sample_instruction(FormId form);
// As nvdisasm 11.8 prints the instruction, without the final semicolon. A branch target prints as `label_of_target`, or as its address
// when that is empty. `address`: of the instruction (BRX prints a distance).
std::string text(const Target& target, const Instruction& instruction, const std::string& label_of_target = {},
                 uint64_t address = 0);
std::string_view special_register_name(const Target& target, uint32_t number);  // "SR_TID.X"; empty when it has none

// --- Streams of instructions ---------------------------------------------------------------------------------------------------
// Lays out code for the target (Pascal: bundles with a control word) and back. Addresses as nvdisasm gives them.
struct Located {
  uint64_t address = 0;  // byte address in the section
  Word word;
};
// Byte address of the i-th instruction of a section: 16*i, or on Pascal 32*(i/3) + 8*(i%3) + 8.
uint64_t instruction_address(const Target& target, uint64_t index);
std::vector<std::byte> pack(const Target& target, std::span<const Word> words);
std::vector<Located> unpack(const Target& target, std::span<const std::byte> code);

}  // namespace rndn::isa
