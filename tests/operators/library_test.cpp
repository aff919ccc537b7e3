// The library of kernels: built once, launched often.
#include "libraries/operators/library.h"

#include "libraries/operators/emit.h"
#include "tests/operators/support.h"

namespace rndn::operators {
namespace {

TEST(LibraryTest, BuildsAKernelOnceAndLaunchesItOften) {
  test::Bench bench("sm_86");
  Timings timings;
  int built = 0;
  Library library(*bench.device, [&](const ptx::Module& module) -> Result<std::vector<std::byte>> {
    assembler::Options options;
    options.target = isa::find_target("sm_86");
    ASSIGN_OR_RETURN(assembler::Assembled made, assembler::assemble(module, options, timings));
    return std::move(made.cubin);
  });
  const auto build = [&](ptx::Module& module, std::string_view name) {
    ++built;
    KernelBuilder b(module, name);
    auto counter = b.parameter<ptx::U64>("counter");
    ptx::Reg<ptx::U64> at = b.ld_param(counter);
    b.atom<ptx::U32>(ptx::AtomicOp::add, ptx::Space::global, ptx::Address(at), 1);
    b.ret();
    b.finish();
    return 64u;
  };
  const Vector counter = bench.put<int32_t>(Type::i32, {0});
  library.measure = true;
  for (uint32_t launch = 1; launch <= 3; ++launch) {
    auto kernel = library.kernel("count", build);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    EXPECT_GE((*kernel)->resident_blocks, 4u) << "one block per multiprocessor at least";
    EXPECT_EQ(library.grid(**kernel, 0), 1u);
    EXPECT_EQ(library.grid(**kernel, uint64_t{1} << 40), (*kernel)->resident_blocks);
    ASSERT_TRUE(library.launch(**kernel, library.grid(**kernel, 2), Arguments().add(counter.data), 4).ok());
    EXPECT_EQ(bench.get<int32_t>(counter), std::vector<int32_t>{static_cast<int32_t>(launch * 2 * 64)});
  }
  EXPECT_EQ(built, 1);
  ASSERT_EQ(library.launches.size(), 3u);
  EXPECT_EQ(library.launches[2].kernel, "count");
  EXPECT_EQ(library.launches[2].floor_bytes, 4u);
  EXPECT_LT(library.launches[2].first_mark, library.launches[2].last_mark);
}

uint32_t build_count(ptx::Module& module, std::string_view name) {
  KernelBuilder b(module, name);
  auto counter = b.parameter<ptx::U64>("counter");
  b.atom<ptx::U32>(ptx::AtomicOp::add, ptx::Space::global, ptx::Address(b.ld_param(counter)), 1);
  b.ret();
  b.finish();
  return 64;
}

// Code that is there is launched as it is; what is not there is late once, at the launch that it was made for.
TEST(LibraryTest, TakesCodeThatIsThere) {
  test::Bench bench("sm_86");
  Timings timings;
  int assembled = 0;
  const auto assemble = [&](const ptx::Module& module) -> Result<std::vector<std::byte>> {
    ++assembled;
    assembler::Options options;
    options.target = isa::find_target("sm_86");
    ASSIGN_OR_RETURN(assembler::Assembled made, assembler::assemble(module, options, timings));
    return std::move(made.cubin);
  };
  ptx::Module module = Library::new_module();
  const uint32_t block_size = build_count(module, "there");
  const std::vector<std::byte> cubin = *assemble(module);
  assembled = 0;
  Library library(*bench.device, assemble, [&](std::string_view name) -> std::optional<KernelCode> {
    if (name != "there") return std::nullopt;
    return KernelCode{block_size, cubin};
  });
  const Vector counter = bench.put<int32_t>(Type::i32, {0});
  for (const char* name : {"there", "elsewhere", "there", "elsewhere"}) {
    auto kernel = library.kernel(name, [](ptx::Module& to, std::string_view called) {
      EXPECT_EQ(called, "elsewhere");
      return build_count(to, called);
    });
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    EXPECT_EQ((*kernel)->block_size, 64u);
    ASSERT_TRUE(library.launch(**kernel, 1, Arguments().add(counter.data)).ok());
  }
  EXPECT_EQ(bench.get<int32_t>(counter), (std::vector<int32_t>{4 * 64}));
  EXPECT_EQ(assembled, 1);
  std::vector<bool> late;
  for (const Launch& l : library.launches) late.push_back(l.is_late);
  EXPECT_EQ(late, (std::vector<bool>{false, true, false, false}));
}

uint32_t build_answer(ptx::Module& module, std::string_view name) {
  KernelBuilder b(module, name);
  const Param word = b.parameter<U64>("word");
  const Answer answer = answer_parameters(b, 1);
  tell(b, answer, 0, b.setp(Is::eq, b.special(ptx::SpecialRegister::tid_x), 0u), b.ld_param(word));
  b.ret();
  b.finish();
  return 64;
}

// What an earlier run was told.
class ForeseeingMemory final : public Memory {
 public:
  explicit ForeseeingMemory(Memory& to) : to_(to) {}
  std::vector<uint64_t> words;  // none: nothing is foreseen
  size_t waits = 0;
  Result<Address> temporary(uint64_t bytes) override { return to_.temporary(bytes); }
  Result<Address> result(uint64_t bytes) override { return to_.result(bytes); }
  Result<device::Mapped> mapped(uint64_t bytes) override { return to_.mapped(bytes); }
  const uint64_t* foreseen(std::string_view, const device::Mapped&, size_t) override { return words.empty() ? nullptr : words.data(); }
  Result<void> waited() override { return ++waits, Result<void>(); }

 private:
  Memory& to_;
};

// A kernel that finds another answer than was foreseen keeps all later ones from doing anything, until what the library keeps zero is made so again.
TEST(LibraryTest, KernelsDoNothingAfterAnAnswerThatWasNotForeseenSo) {
  test::Bench bench("sm_86");
  Timings timings;
  Library library(*bench.device, [&](const ptx::Module& module) -> Result<std::vector<std::byte>> {
    assembler::Options options;
    options.target = isa::find_target("sm_86");
    ASSIGN_OR_RETURN(assembler::Assembled made, assembler::assemble(module, options, timings));
    return std::move(made.cubin);
  });
  ForeseeingMemory memory(*bench.memory);
  const Vector counter = bench.put<int32_t>(Type::i32, {0});
  const auto counted = [&]() -> int32_t {
    auto kernel = library.kernel("count", build_count);
    EXPECT_TRUE(kernel.ok() && library.launch(**kernel, 1, Arguments().add(counter.data)).ok());
    return bench.get<int32_t>(counter)[0] / 64;
  };
  const auto learnt = [&](uint64_t word) -> uint64_t {
    auto kernel = library.kernel("answer", build_answer);
    auto question = library.ask("how many", 1, memory);
    if (!kernel || !question) return UINT64_MAX;
    Arguments a;
    add(a.add(word), *question, 0, 1);
    EXPECT_TRUE(library.launch(**kernel, 1, a).ok());
    auto answer = library.learn(*question, memory);
    EXPECT_EQ(*static_cast<const uint64_t*>(question->found.host), word);
    return answer ? **answer : UINT64_MAX;
  };
  EXPECT_EQ(learnt(6), 6u);
  EXPECT_EQ(memory.waits, 1u);
  EXPECT_EQ(counted(), 1);
  memory.words = {5};
  EXPECT_EQ(learnt(5), 5u);
  EXPECT_EQ(counted(), 2);
  EXPECT_EQ(learnt(6), 5u);
  EXPECT_EQ(memory.waits, 1u);
  EXPECT_EQ(counted(), 2) << "it did something";
  library.zero_again();
  EXPECT_EQ(counted(), 3);
}

}  // namespace
}  // namespace rndn::operators
