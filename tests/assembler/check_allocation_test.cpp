// The checker of register allocation on allocations with faults put in: reads of other general registers and of RZ, loads from other slots, spills of RZ.
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
  find_guarded_values(f, known);
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

}  // namespace
}  // namespace rndn::assembler::testing
