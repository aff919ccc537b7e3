// Memory that runs out anywhere in a call: it answers OUT_OF_MEMORY, keeps nothing, and the next call is as good as ever. This program's operator new
// is the library's, too, since the library takes it from outside.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <ostream>
#include <string>

#include "rndn_assembler.h"

namespace {

enum class Failure { memory, other };  // std::bad_alloc; something that is no std::exception
std::atomic<long> left{-1};            // allocations until they fail; negative: never
std::atomic<long> alive{0}, made{0};
Failure failure = Failure::memory;
bool failed = false;

void* allocate(size_t bytes, size_t alignment) {
  if (left >= 0 && left-- == 0) {
    failed = true;
    if (failure == Failure::other) throw 17;  // once
    left = 0;                                 // memory does not come back: all that follow fail, too
    throw std::bad_alloc();
  }
  void* memory = alignment ? std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment)
                           : std::malloc(bytes ? bytes : 1);
  if (!memory) throw std::bad_alloc();
  ++alive, ++made;
  return memory;
}
void release(void* memory) {
  if (memory) --alive;
  std::free(memory);
}

}  // namespace

void* operator new(size_t bytes) { return allocate(bytes, 0); }
void* operator new(size_t bytes, std::align_val_t alignment) { return allocate(bytes, static_cast<size_t>(alignment)); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return allocate(bytes, 0);
  } catch (...) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete(void* memory, size_t) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { release(memory); }

namespace {

// Two kernels, a division (a subroutine) and line tables; the parser's slow path (`.b32 %r2, %r3`).
constexpr const char* good = R"(.version 7.8
.target sm_80
.address_size 64
.file 1 "t.cu"
.visible .entry first(.param .u64 out, .param .u32 n) {
  .reg .b32 %r2, %r3; .reg .b64 %o; .reg .f32 %f<4>;
  .loc 1 3 0
  ld.param.u64 %o, [out]; ld.param.u32 %r2, [n];
  cvt.rn.f32.u32 %f0, %r2; div.rn.f32 %f1, %f0, 0f40400000; st.global.f32 [%o], %f1;
  ret;
}
.visible .entry second(.param .u64 out) { .reg .b64 %o; ld.param.u64 %o, [out]; st.global.u32 [%o], 7; ret; }
)";
constexpr const char* bad =
    ".version 7.8\n.target sm_80\n.visible .entry k() {\n  frob;\n  .reg .b32 %a;\n  .reg .b32 %a;\n  ret;\n}\n";

struct Case {
  const char* name;
  const char* text;
  rndn_assembler_status status;
  bool workspace;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }  // ctest names the cases so
class Memory : public testing::TestWithParam<Case> {
 protected:
  rndn_assembler_workspace* workspace_ = GetParam().workspace ? rndn_assembler_workspace_new() : nullptr;
  ~Memory() override { rndn_assembler_workspace_free(workspace_); }

  rndn_assembler_status assemble(rndn_assembler_result** result) {
    rndn_assembler_options options{};
    options.size = sizeof options, options.line_tables = 1, options.verify_passes = 1;
    const char* text = GetParam().text;
    return rndn_assembler_assemble(text, std::strlen(text), "t.ptx", &options, workspace_, result);
  }
  // The whole answer.
  std::string answer() {
    rndn_assembler_result* r = nullptr;
    const rndn_assembler_status status = assemble(&r);
    std::string text = std::to_string(status) + rndn_assembler_diagnostics(r);
    text.append(static_cast<const char*>(rndn_assembler_cubin(r)), rndn_assembler_cubin_size(r));
    rndn_assembler_result_free(r);
    return text;
  }
};

TEST_P(Memory, FailsAtEveryAllocation) {
  const std::string right = answer();
  ASSERT_EQ(right.substr(0, 1), std::to_string(GetParam().status)) << right;
  long failures = 0;
  for (bool done = false; !done; ++failures) {
    rndn_assembler_result* r = nullptr;
    failed = false;
    left = failures;
    const rndn_assembler_status status = assemble(&r);
    left = -1;
    done = !failed;
    if (done) {
      EXPECT_EQ(status, GetParam().status);
    } else {
      ASSERT_EQ(status, RNDN_ASSEMBLER_OUT_OF_MEMORY) << "allocation " << failures;
      EXPECT_STREQ(rndn_assembler_diagnostics(r), "error: not enough memory\n");
      EXPECT_EQ(rndn_assembler_cubin(r), nullptr);
      EXPECT_EQ(rndn_assembler_cubin_size(r), 0u);
      EXPECT_EQ(rndn_assembler_kernel_count(r), 0u);
      EXPECT_EQ(rndn_assembler_diagnostic_count(r), 0u);
    }
    rndn_assembler_result_free(r);
    if (failures % 16 == 0) {
      ASSERT_EQ(answer(), right) << "after allocation " << failures << " had failed";
    }
    ASSERT_LT(failures, 20000);
  }
  EXPECT_GT(failures, 30) << "the library does not allocate by this program's operator new";
}

TEST_P(Memory, NothingIsLost) {
  answer();  // tables that the library makes once
  const auto count_after = [&](long allocations) {
    rndn_assembler_result* r = nullptr;
    left = allocations;
    assemble(&r);
    left = -1;
    rndn_assembler_result_free(r);
    rndn_assembler_workspace_free(workspace_);
    workspace_ = nullptr;
    return alive.load();
  };
  const long before = count_after(-1);
  for (long n = 0; n < 400; ++n) {
    if (GetParam().workspace) workspace_ = rndn_assembler_workspace_new();
    ASSERT_EQ(count_after(n), before) << "allocation " << n << " failed";
  }
}

TEST_P(Memory, AnExceptionOfNoKnownKindIsInternal) {
  const std::string right = answer();
  failure = Failure::other;
  for (long n = 1; n < 20; ++n) {  // the first is the result's own
    rndn_assembler_result* r = nullptr;
    left = n;
    const rndn_assembler_status status = assemble(&r);
    left = -1;
    EXPECT_EQ(status, RNDN_ASSEMBLER_INTERNAL) << n;
    EXPECT_EQ(rndn_assembler_cubin(r), nullptr);
    EXPECT_EQ(std::string(rndn_assembler_diagnostics(r)).rfind("error: internal error: ", 0), 0u);
    EXPECT_EQ(rndn_assembler_diagnostic_count(r), 1u);
    rndn_assembler_result_free(r);
  }
  failure = Failure::memory;
  EXPECT_EQ(answer(), right);
}

// The checkers change no byte of a cubin; that they ran is seen from what they need.
TEST(CheckersMemory, IsAskedForByTheOption) {
  const auto allocations = [](int verify) {
    rndn_assembler_options options{};
    options.size = sizeof options, options.verify_passes = verify;
    rndn_assembler_result* r = nullptr;
    const long before = made;
    EXPECT_EQ(rndn_assembler_assemble(good, std::strlen(good), nullptr, &options, nullptr, &r), RNDN_ASSEMBLER_OK);
    rndn_assembler_result_free(r);
    return made - before;
  };
  allocations(1);  // tables that the library makes once
  EXPECT_GT(allocations(1), allocations(0) + 50);
}

INSTANTIATE_TEST_SUITE_P(Calls, Memory,
                         testing::Values(Case{"good", good, RNDN_ASSEMBLER_OK, false},
                                         Case{"good_workspace", good, RNDN_ASSEMBLER_OK, true},
                                         Case{"bad", bad, RNDN_ASSEMBLER_INPUT, false}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
