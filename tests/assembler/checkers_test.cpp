// The checker of register allocation on allocations with faults put in: reads of other general registers and of RZ, loads from other slots, spills of RZ.
// The checker of orders on code whose instructions have changed places, and on code that has lost some or has them twice.
#include <set>

#include "assembler/assemble.h"
#include "assembler/backend/backend.h"
#include "assembler/check/check.h"
#include "assembler/optimize/optimize.h"
#include "assembler/select/selection.h"
#include "tests/assembler/support.h"

namespace rndn::assembler::testing {
namespace {

struct Allocated {
  Function before, after;
};

// The kernel in at most so many registers, as it leaves the allocator.
Result<Allocated> allocated(const ptx::Module& module, const isa::Target& target, uint32_t most, Arena& arena) {
  Options options;
  options.target = &target;
  isa::FormCache forms;
  SelectionRoom room;
  const ptx::Function& kernel = module.functions[0];
  ASSIGN_OR_RETURN(const Flow flow, structure(module, kernel, target, true, true, arena));
  ASSIGN_OR_RETURN(Function f, select(module, kernel, flow, ptx::lay_out_shared(module, kernel), options, forms, arena, room));
  Survey known = survey(f);
  find_predicated_live_ranges(f, known);
  remove_dead_code(f, known);
  f.max_registers = most;
  const Liveness live = compute_liveness(f);
  Allocated result;
  result.before = f;
  RETURN_IF_ERROR(allocate_registers(f, live, 0, false));
  result.after = std::move(f);
  return result;
}

// seed(instruction, its id, operand) changes the operand and says whether it did, of some fifty instructions across the code. All changes must be noticed.
template <class F>
void expect_noticed(const Allocated& a, size_t at_least, F&& seed) {
  size_t faults = 0, met = 0;
  const size_t stride = std::max<size_t>(a.after.insts.size() / 50, 1);
  Function faulty = a.after;
  for (const BlockId b : a.after.layout)
    for (const InstId id : a.after.blocks[b].code)
      for (uint32_t k = 0; k < a.after[id].sass.operand_count; ++k) {
        isa::Instruction& sass = faulty[id].sass;
        if (seed(sass, id, k) && met++ % stride == 0) {
          ++faults;
          EXPECT_FALSE(check_allocation(a.before, faulty).empty())
              << isa::text(*a.after.target, a.after[id].sass) << " as " << isa::text(*a.after.target, sass);
        }
        sass = a.after[id].sass;
      }
  EXPECT_GE(faults, at_least);
}

TEST(CheckAllocation, NoticesOtherRegistersAndSlots) {
  for (const char* name : {"sm_61", "sm_86"})
    for (const auto& [file, most] : {std::pair("joins.ptx", 255u), {"pressure.ptx", 255u}, {"pressure.ptx", 24u}}) {
      SCOPED_TRACE(fmt::format("{} {} {}", name, file, most));
      const ptx::Module module = parse_file(fmt::format(RNDN_SOURCE_DIR "/tests/assembler/ptx/{}", file));
      Arena arena;
      auto a = allocated(module, *isa::find_target(name), most, arena);
      ASSERT_TRUE(a.ok()) << a.error().message;
      EXPECT_THAT(check_allocation(a->before, a->after), ::testing::IsEmpty());
      EXPECT_EQ(a->after.spill_bytes > 0, most < 255);
      const auto original = [&](InstId id) { return index(id) < a->before.insts.size(); };
      // A read of the next general register, or of RZ.
      for (const bool zero : {false, true})
        expect_noticed(*a, 20, [&](isa::Instruction& sass, InstId id, uint32_t k) {
          if (!original(id) || isa::register_file(sass, k) != isa::RegisterFile::gpr || isa::access(sass, k) != isa::Access::read)
            return false;
          uint32_t& reg = sass.operands[k].reg;
          if (reg == isa::RZ || a->before[id].sass.operands[k].reg < isa::first_virtual) return false;
          reg = zero ? isa::RZ : reg + 1;
          return true;
        });
      if (most == 255) continue;
      for (const isa::Mnemonic moved : {isa::Mnemonic::LDL, isa::Mnemonic::STL})
        expect_noticed(*a, 4, [&](isa::Instruction& sass, InstId id, uint32_t k) {
          if (original(id) || sass.mnemonic != moved || isa::register_file(sass, k) != isa::RegisterFile::gpr || sass.operands[k].reg <= 1) return false;
          sass.operands[k].reg = isa::RZ;
          return true;
        });
      expect_noticed(*a, 4, [&](isa::Instruction& sass, InstId id, uint32_t k) {
        if (original(id) || k != 1 || sass.mnemonic != isa::Mnemonic::LDL) return false;
        sass.operands[k].value += 4;
        return true;
      });
    }
}

// Registers that the instruction names, as far as they are general ones or predicates.
std::set<std::pair<isa::RegisterFile, uint32_t>> named(const isa::Instruction& sass, bool writes) {
  std::set<std::pair<isa::RegisterFile, uint32_t>> out;
  for (uint32_t k = 0; k < sass.operand_count; ++k) {
    const isa::Access access = isa::access(sass, k);
    const isa::RegisterFile file = isa::register_file(sass, k);
    if (access == isa::Access::none || file == isa::RegisterFile::none) continue;
    if (sass.operands[k].reg == (file == isa::RegisterFile::gpr ? isa::RZ : isa::PT)) continue;
    if (writes ? access == isa::Access::read : access == isa::Access::write) continue;
    for (uint32_t w = 0; w < isa::register_count(sass, k); ++w) out.emplace(file, sass.operands[k].reg + w);
  }
  if (!writes && sass.guard != isa::PT) out.emplace(isa::RegisterFile::predicate, sass.guard);
  if (writes ? isa::writes_carry(sass) : isa::reads_carry(sass)) out.emplace(isa::RegisterFile::none, 0);
  return out;
}
bool meet(const auto& a, const auto& b) {
  return std::any_of(a.begin(), a.end(), [&](const auto& x) { return b.contains(x); });
}
bool is_arithmetic(const isa::Instruction& sass) {
  using L = isa::LatencyClass;
  const L x = isa::latency_class(sass);
  return x == L::alu || x == L::fma || x == L::wide;
}

TEST(CheckOrder, NoticesWhatReadsSomethingElse) {
  for (const char* name : {"sm_61", "sm_86"})
    for (const char* file : {"joins.ptx", "pressure.ptx"}) {
      SCOPED_TRACE(fmt::format("{} {}", name, file));
      const ptx::Module module = parse_file(fmt::format(RNDN_SOURCE_DIR "/tests/assembler/ptx/{}", file));
      Arena arena;
      auto a = allocated(module, *isa::find_target(name), 255, arena);
      ASSERT_TRUE(a.ok()) << a.error().message;
      for (const Function& f : {a->before, a->after}) {  // over virtual registers and over real ones
        EXPECT_THAT(check_order(f, f), ::testing::IsEmpty());
        Function other = f;
        size_t dependent = 0, independent = 0;
        for (const BlockId b : f.layout)
          for (size_t k = 0; k + 1 < f.blocks[b].code.size(); ++k) {
            const isa::Instruction &x = f[f.blocks[b].code[k]].sass, &y = f[f.blocks[b].code[k + 1]].sass;
            const bool depends = meet(named(x, true), named(y, false)) || meet(named(x, false), named(y, true)) ||
                                 meet(named(x, true), named(y, true));
            if (!depends && !(is_arithmetic(x) && is_arithmetic(y))) continue;
            std::swap(other.blocks[b].code[k], other.blocks[b].code[k + 1]);
            const std::vector<std::string> problems = check_order(f, other);
            std::swap(other.blocks[b].code[k], other.blocks[b].code[k + 1]);
            EXPECT_EQ(problems.empty(), !depends) << isa::text(*f.target, x) << " and " << isa::text(*f.target, y);
            ++(depends ? dependent : independent);
          }
        EXPECT_GE(dependent, 10u);
        EXPECT_GE(independent, 5u);
        // Gone, there twice, and in another block.
        size_t blocks = 0;
        for (const BlockId b : f.layout) {
          if (f.blocks[b].code.size() < 2) continue;
          ++blocks;
          std::vector<InstId>& code = other.blocks[b].code;
          code.pop_back();
          EXPECT_FALSE(check_order(f, other).empty());
          code.push_back(code.front());
          EXPECT_FALSE(check_order(f, other).empty());
          for (const BlockId elsewhere : f.layout)
            if (elsewhere != b && !f.blocks[elsewhere].code.empty()) code.back() = f.blocks[elsewhere].code.front();
          EXPECT_FALSE(check_order(f, other).empty());
          code = f.blocks[b].code;
        }
        EXPECT_GE(blocks, 1u);
      }
    }
}

// Loads and stores of words behind one address: those of the same bytes keep their order, if one of them stores.
TEST(CheckOrder, NoticesAccessesThatPassEachOther) {
  const ptx::Module module = parse_text(
      "accesses.ptx", ".version 6.4\n.target sm_61\n.address_size 64\n.visible .entry k(.param .u64 p) {\n.reg .u64 %a; .reg .u32 %r<9>;\n"
      "ld.param.u64 %a, [p];\nld.global.u32 %r1, [%a+4];\nld.global.u32 %r2, [%a+8];\nst.global.u32 [%a], %r1;\n"
      "st.global.u32 [%a+8], %r2;\nld.global.u32 %r3, [%a+8];\nld.global.u32 %r4, [%a+16];\nst.global.v2.u32 [%a+16], {%r3, %r4};\n"
      "st.global.u32 [%a+20], %r4;\nst.global.u32 [%a+24], %r1;\nret;\n}\n");
  for (const char* name : {"sm_61", "sm_90"}) {
    Arena arena;
    auto a = allocated(module, *isa::find_target(name), 255, arena);
    ASSERT_TRUE(a.ok()) << a.error().message;
    const Function& f = a->before;
    Function other = f;
    struct Bytes {
      int64_t first = 0, end = 0;
      bool store = false;
    };
    const auto bytes_of = [&](InstId id) {
      const isa::Instruction& sass = f[id].sass;
      const isa::LatencyClass x = isa::latency_class(sass);
      Bytes bytes{0, 0, x == isa::LatencyClass::global_store};
      if (!bytes.store && x != isa::LatencyClass::global_load) return bytes;
      uint32_t words = 0;
      for (uint32_t k = 0; k < sass.operand_count; ++k)
        if (sass.operands[k].kind == isa::OperandKind::address)
          bytes.first = sass.operands[k].value;
        else if (sass.operands[k].kind == isa::OperandKind::gpr)
          words = isa::register_count(sass, k);
      bytes.end = bytes.first + 4 * words;
      return bytes;
    };
    size_t passing = 0, free = 0;
    for (const BlockId b : f.layout) {
      const std::vector<InstId>& code = f.blocks[b].code;
      for (size_t to = 0; to < code.size(); ++to)
        for (size_t from = to + 1; from < code.size(); ++from) {  // `from` before `to`
          const isa::Instruction& moved = f[code[from]].sass;
          const Bytes mine = bytes_of(code[from]);
          if (mine.end == 0) continue;
          bool depends = false, meets = false;
          for (size_t k = to; k < from; ++k) {
            const isa::Instruction& passed = f[code[k]].sass;
            depends |= meet(named(passed, true), named(moved, false)) || meet(named(passed, false), named(moved, true));
            const Bytes theirs = bytes_of(code[k]);
            meets |= theirs.end > 0 && (mine.store || theirs.store) && mine.first < theirs.end && theirs.first < mine.end;
          }
          if (depends) continue;
          std::vector<InstId>& now = other.blocks[b].code;
          std::rotate(now.begin() + static_cast<std::ptrdiff_t>(to), now.begin() + static_cast<std::ptrdiff_t>(from),
                      now.begin() + static_cast<std::ptrdiff_t>(from + 1));
          EXPECT_EQ(check_order(f, other).empty(), !meets) << name << " " << isa::text(*f.target, moved) << " before number " << to;
          now = code;
          ++(meets ? passing : free);
        }
    }
    EXPECT_GE(passing, 3u);
    EXPECT_GE(free, 3u);
  }
}

}  // namespace
}  // namespace rndn::assembler::testing
