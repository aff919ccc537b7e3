// The C API, through the shared library, beside the C++ calls that it stands for (linked statically).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "assembler/assemble.h"
#include "assembler/isa/isa.h"
#include "libraries/base/report/version.h"
#include "ptx/parse.h"
#include "rndn_assembler.h"
#include "runtime/cuda/driver.h"
#include "tests/support/corpus.h"

extern "C" size_t size_of_cubin_in_c(const char* text, size_t length, const char* target);

namespace rndn {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Free {
  void operator()(rndn_assembler_result* r) const { rndn_assembler_result_free(r); }
  void operator()(rndn_assembler_workspace* w) const { rndn_assembler_workspace_free(w); }
};
using Workspace = std::unique_ptr<rndn_assembler_workspace, Free>;

rndn_assembler_options options_for(const char* target) {
  rndn_assembler_options o{};
  o.size = sizeof o;
  o.target = target;
  return o;
}

// A call, with its answer in C++.
struct Call {
  rndn_assembler_status status;
  std::unique_ptr<rndn_assembler_result, Free> result;

  Call(std::string_view text, const rndn_assembler_options* options, rndn_assembler_workspace* workspace = nullptr,
       const char* name = "t.ptx") {
    rndn_assembler_result* r = nullptr;
    status = rndn_assembler_assemble(text.data(), text.size(), name, options, workspace, &r);
    result.reset(r);
  }
  std::string cubin() const {
    return {static_cast<const char*>(rndn_assembler_cubin(result.get())), rndn_assembler_cubin_size(result.get())};
  }
  std::string text() const { return rndn_assembler_diagnostics(result.get()); }
  // "error 6:13 message", one per diagnostic
  std::vector<std::string> diagnostics() const {
    static constexpr const char* names[] = {"error", "warning", "note"};
    std::vector<std::string> out;
    for (size_t i = 0; i < rndn_assembler_diagnostic_count(result.get()); ++i) {
      const rndn_assembler_diagnostic* d = rndn_assembler_diagnostic_at(result.get(), i);
      out.push_back(fmt::format("{} {}:{} {}", names[d->severity], d->line, d->column, d->message));
    }
    EXPECT_EQ(rndn_assembler_diagnostic_at(result.get(), out.size()), nullptr);
    return out;
  }
  std::vector<std::string> kernels() const {
    std::vector<std::string> out;
    for (size_t i = 0; i < rndn_assembler_kernel_count(result.get()); ++i) {
      const rndn_assembler_kernel* k = rndn_assembler_kernel_at(result.get(), i);
      out.push_back(
          fmt::format("{} {} {} {} {}", k->name, k->registers, k->instructions, k->spill_bytes, k->shared_bytes));
    }
    EXPECT_EQ(rndn_assembler_kernel_at(result.get(), out.size()), nullptr);
    return out;
  }
};

// What the C++ call makes of the text, contracting floats as rndn-as does unless told otherwise.
struct Direct {
  std::string cubin;
  std::vector<std::string> kernels;
};
assembler::Options for_target(const isa::Target* target) { return {.target = target, .contract = true}; }
Direct direct(const std::string& text, const assembler::Options& options) {
  SourceManager sources;
  DiagnosticSink sink;
  const ptx::Module module = ptx::parse(sources.add("t.ptx", text), sources, sink);
  EXPECT_FALSE(sink.has_errors()) << render(sink, sources);
  Timings timings;
  auto made = assembler::assemble(module, options, timings);
  EXPECT_TRUE(made) << made.error().message;
  Direct d;
  if (!made) return d;
  d.cubin.assign(reinterpret_cast<const char*>(made->cubin.data()), made->cubin.size());
  for (const auto& k : made->kernels)
    d.kernels.push_back(
        fmt::format("{} {} {} {} {}", k.name, k.registers, k.instructions, k.spill_bytes, k.shared_bytes));
  return d;
}

const std::vector<rndn::testing::CorpusFile>& corpus() {
  static const std::vector<rndn::testing::CorpusFile> files = rndn::testing::corpus();
  return files;
}
const std::string& program(const std::string& name) {
  for (const auto& f : corpus())
    if (f.name == name) return f.text;
  ADD_FAILURE() << "no " << name;
  static const std::string none;
  return none;
}

// More values at once than 24 registers hold, two kernels, and locations: every option makes another cubin of it.
std::string telling_program() {
  std::string s = ".version 7.8\n.target sm_60\n.address_size 64\n.file 1 \"t.cu\"\n";
  for (const char* name : {"first", "second"}) {
    s += fmt::format(
        ".visible .entry {}(.param .u64 out) {{\n.reg .u64 %a;\n.reg .u32 %v<40>;\n.reg .u32 %s;\n.reg .f32 %f<3>;\n",
        name);
    s += ".shared .align 4 .b8 room[128];\n.loc 1 7 0\nld.param.u64 %a, [out];\n";
    for (int i = 0; i < 40; ++i) s += fmt::format("ld.volatile.global.u32 %v{0}, [%a+{1}];\n", i, 4 * i);
    s += ".loc 1 8 0\nmov.u32 %s, room;\n";
    for (int i = 0; i < 40; ++i) s += fmt::format("mad.lo.u32 %s, %s, %v{}, %v{};\n", i, 39 - i);
    s += "cvt.rn.f32.u32 %f0, %s;\nmul.f32 %f1, %f0, %f0;\nadd.f32 %f2, %f1, 0f3F800000;\nst.global.f32 [%a+4], %f2;\n";
    s += "st.global.u32 [%a], %s;\nret;\n}\n";
  }
  return s;
}

TEST(CApi, MakesTheCubinsOfTheCxxCallOnEveryTarget) {
  for (const isa::Target& target : isa::targets()) {
    const std::string name(target.name), text = rndn::testing::corpus_module(corpus(), target.sm);
    const rndn_assembler_options options = options_for(name.c_str());
    const Call call(text, &options);
    ASSERT_EQ(call.status, RNDN_ASSEMBLER_OK) << call.text();
    const Direct want = direct(text, for_target(&target));
    EXPECT_TRUE(call.cubin() == want.cubin) << target.name;
    EXPECT_EQ(call.kernels(), want.kernels) << target.name;
    EXPECT_GT(want.kernels.size(), 50u);
    EXPECT_EQ(call.text(), "");
    EXPECT_THAT(call.diagnostics(), ElementsAre());
  }
}

TEST(CApi, EveryOptionDoesWhatItDoesInCxx) {
  const std::string text = telling_program();
  struct Case {
    const char* what;
    void (*c)(rndn_assembler_options&);
    void (*cxx)(assembler::Options&);
    bool differs = true;  // from the defaults, on some target
  };
  static constexpr Case cases[] = {
      {"nothing", [](auto&) {}, [](auto&) {}, false},
      {"-O0", [](auto& o) { o.level = RNDN_ASSEMBLER_LEVEL_0; },
       [](auto& o) { o.level = 0, o.stencils = assembler::Stencils::always; }},
      {"-O1", [](auto& o) { o.level = 1; }, [](auto& o) { o.level = 1; }},
      {"-O2", [](auto& o) { o.level = 2; }, [](auto& o) { o.level = 2; }, false},
      {"-O3", [](auto& o) { o.level = 3; }, [](auto& o) { o.level = 3; }, false},
      {"registers", [](auto& o) { o.max_registers = 24; }, [](auto& o) { o.max_registers = 24; }},
      {"no fma", [](auto& o) { o.no_fmad = 1; }, [](auto& o) { o.contract = false; }},
      {"lines", [](auto& o) { o.line_tables = 1; }, [](auto& o) { o.line_tables = true; }},
      {"checkers", [](auto& o) { o.verify_passes = 1; }, [](auto& o) { o.verify_passes = true; }, false},
      {"threads", [](auto& o) { o.threads = 2; }, [](auto&) {}, false}};
  bool changed[std::size(cases)] = {};
  for (const isa::Target& target : isa::targets()) {
    const std::string name(target.name);
    const std::string by_default = direct(text, for_target(&target)).cubin;
    for (size_t i = 0; i < std::size(cases); ++i) {
      rndn_assembler_options options = options_for(name.c_str());
      cases[i].c(options);
      assembler::Options same = for_target(&target);
      cases[i].cxx(same);
      const Call call(text, &options);
      ASSERT_EQ(call.status, RNDN_ASSEMBLER_OK) << call.text();
      const Direct want = direct(text, same);
      EXPECT_TRUE(call.cubin() == want.cubin) << cases[i].what << " on " << name;
      EXPECT_EQ(call.kernels(), want.kernels) << cases[i].what << " on " << name;
      changed[i] |= call.cubin() != by_default;
    }
  }
  for (size_t i = 0; i < std::size(cases); ++i)
    EXPECT_EQ(changed[i], cases[i].differs) << cases[i].what << ": the text does not show whether it was heard";
}

TEST(CApi, TheTextNamesTheTargetWhenTheOptionsDoNot) {
  const std::string head = ".version 7.8\n.target ", tail = "\n.visible .entry k() { ret; }\n";
  const isa::Target* sm_86 = isa::find_target("sm_86");
  const rndn_assembler_options none = options_for(nullptr);
  for (const rndn_assembler_options* options : {static_cast<const rndn_assembler_options*>(nullptr), &none}) {
    const Call call(head + "sm_86" + tail, options);
    EXPECT_EQ(call.status, RNDN_ASSEMBLER_OK);
    EXPECT_TRUE(call.cubin() == direct(head + "sm_86" + tail, for_target(sm_86)).cubin);
  }
  const Call unknown(head + "sm_70" + tail, nullptr);
  EXPECT_EQ(unknown.status, RNDN_ASSEMBLER_INPUT);
  EXPECT_EQ(
      unknown.text(),
      "error: t.ptx: .target 70 is none of sm_60 sm_61 sm_75 sm_80 sm_86 sm_89 sm_90; the options may name one\n");
  const rndn_assembler_options sm_80 = options_for("sm_80");
  EXPECT_EQ(Call(head + "sm_70" + tail, &sm_80).status, RNDN_ASSEMBLER_OK);
}

TEST(CApi, ReadsNoByteBehindTheText) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* memory = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  char* end = static_cast<char*>(memory) + page;
  ASSERT_EQ(mprotect(end, page, PROT_NONE), 0);
  const std::string text = ".version 7.8\n.target sm_80\n.visible .entry k() { ret; }";
  std::memcpy(end - text.size(), text.data(), text.size());
  const Call call({end - text.size(), text.size()}, nullptr);
  EXPECT_EQ(call.status, RNDN_ASSEMBLER_OK) << call.text();
  EXPECT_EQ(Call({end - text.size(), text.size() - 1}, nullptr).status, RNDN_ASSEMBLER_INPUT);  // no `}`
  munmap(memory, 2 * page);
}

TEST(CApi, IsRightInC) {
  const std::string& text = program("bits_count");
  const Direct want = direct(text, for_target(isa::find_target("sm_90")));
  EXPECT_EQ(size_of_cubin_in_c(text.data(), text.size(), "sm_90"), want.cubin.size());
  EXPECT_EQ(size_of_cubin_in_c(text.data(), text.size(), "sm_1"), 0u);
}

TEST(CApi, TellsOfEveryMistakeInATextAndWhereItIs) {
  const std::string text =
      ".version 7.8\n.target sm_80\n.visible .entry k(.param .u64 out) {\n  .reg .b32 %r<4>;\n  .reg .f32 %x, %x;\n"
      "  add.u32 %r0, %r1, %zz;\n\tfrob.u32 %r0;\n  ret;\n}\n";
  const Call call(text, nullptr, nullptr, "some/where.ptx");
  EXPECT_EQ(call.status, RNDN_ASSEMBLER_INPUT);
  EXPECT_THAT(call.diagnostics(), ElementsAre("error 5:17 `%x` is defined twice", "note 5:13 first here",
                                              "error 6:21 `%zz` is not defined", "error 7:2 unknown opcode `frob`"));
  EXPECT_EQ(call.text(), R"(some/where.ptx:5:17: error: `%x` is defined twice
    .reg .f32 %x, %x;
                  ^~
some/where.ptx:5:13: note: first here
    .reg .f32 %x, %x;
              ^~
some/where.ptx:6:21: error: `%zz` is not defined
    add.u32 %r0, %r1, %zz;
                      ^~~
some/where.ptx:7:2: error: unknown opcode `frob`
  	frob.u32 %r0;
  	^~~~~~~~
3 errors generated
)");
  EXPECT_EQ(rndn_assembler_cubin(call.result.get()), nullptr);
  EXPECT_EQ(rndn_assembler_cubin_size(call.result.get()), 0u);
  EXPECT_THAT(call.kernels(), ElementsAre());
  EXPECT_THAT(Call(text, nullptr, nullptr, nullptr).text(), StartsWith("<ptx>:5:17: error: "));
}

TEST(CApi, TellsOfWhatIsFoundBehindTheParser) {
  const rndn_assembler_options options = options_for("sm_80");
  const Call call(".version 7.8\n.target sm_90\n.visible .entry k() { ret; }\n", &options);
  EXPECT_EQ(call.status, RNDN_ASSEMBLER_INPUT);
  EXPECT_EQ(call.text(), "error: t.ptx: .target sm_90 does not run on sm_80\n");
  EXPECT_THAT(call.diagnostics(), ElementsAre("error 0:0 t.ptx: .target sm_90 does not run on sm_80"));
  EXPECT_EQ(rndn_assembler_cubin(call.result.get()), nullptr);
  EXPECT_THAT(call.kernels(), ElementsAre());
}

// The line of the statement where it is about one, else that of the function; with threads and without.
TEST(CApi, WhatIsFoundBehindTheParserHasItsLine) {
  const std::string head = ".version 7.8\n.target sm_80\n.address_size 64\n\n.visible .entry fits() { ret; }\n";
  const std::string statement =
      head +
      ".visible .entry k()\n{\n.reg .b32 %r<4>;\nmov.u32 %r1, 5;\n\nld.const.u32 %r0, [70000];\n"
      "st.global.u32 [0x7f0000000000], %r0;\nret;\n}\n";
  const std::string function =
      head + "\n.visible .entry\nlarge()\n{\n.shared .b8 s[400000];\nst.shared.u8 [s+5], 1;\nret;\n}\n";
  for (const unsigned threads : {1u, 4u})
    for (const int level : {int{RNDN_ASSEMBLER_LEVEL_0}, 3}) {
      rndn_assembler_options options = options_for("sm_80");
      options.threads = threads, options.level = level;
      const Call at_statement(statement, &options), at_function(function, &options);
      EXPECT_EQ(at_statement.status, RNDN_ASSEMBLER_INPUT);
      EXPECT_THAT(at_statement.diagnostics(), ElementsAre(StartsWith("error 11:0 t.ptx: function k, line 11: ")));
      EXPECT_EQ(at_function.status, RNDN_ASSEMBLER_INPUT);
      EXPECT_THAT(at_function.diagnostics(), ElementsAre(StartsWith("error 8:0 t.ptx: function large: 400000 bytes")));
    }
}

TEST(CApi, TakesTextsThatAreNoPtx) {
  for (const Call& call : {Call("", nullptr), Call({nullptr, 0}, nullptr)}) {
    EXPECT_EQ(call.status, RNDN_ASSEMBLER_INPUT);
    EXPECT_THAT(call.text(), StartsWith("t.ptx:1:1: error: expected a `.version` directive"));
  }
  uint32_t state = 1;
  const std::string& right = program("bits_count");
  for (int n = 0; n < 300; ++n) {
    std::string text = n % 2 ? right : std::string(400, ' ');
    for (size_t i = 0; i < text.size(); i += n % 2 ? 50 : 1) {
      state = state * 1664525 + 1013904223;
      text[i] = static_cast<char>(state >> 24);
    }
    const Call call(text, nullptr);
    EXPECT_EQ(call.status, RNDN_ASSEMBLER_INPUT) << n << call.text();
    EXPECT_GT(call.diagnostics().size(), 0u) << n;
  }
}

// Each as a call that asks for what there is not; `right` must go on working.
TEST(CApi, RefusesWrongCalls) {
  const std::string& text = program("bits_count");
  const auto refused = [&](const rndn_assembler_options& o, const std::string& message) {
    const Call call(text, &o);
    EXPECT_EQ(call.status, RNDN_ASSEMBLER_USAGE);
    EXPECT_EQ(call.text(), "error: " + message + "\n");
    EXPECT_THAT(call.diagnostics(), ElementsAre("error 0:0 " + message));
    EXPECT_EQ(rndn_assembler_cubin(call.result.get()), nullptr);
  };
  for (const char* name : {"sm_70", "sm_9", "SM_90", ""})
    refused(options_for(name),
            fmt::format("unknown target `{}`; targets are sm_60 sm_61 sm_75 sm_80 sm_86 sm_89 sm_90", name));
  const auto with = [](auto&& change) {
    rndn_assembler_options o = options_for("sm_80");
    change(o);
    return o;
  };
  refused(with([](auto& o) { o.level = 4; }), "options: level 4, expected -1 to 3");
  refused(with([](auto& o) { o.level = -2; }), "options: level -2, expected -1 to 3");
  refused(with([](auto& o) { o.max_registers = 256; }), "options: 256 registers, expected 0 to 255");
  refused(with([](auto& o) { o.threads = 1025; }), "options: 1025 threads, expected 0 to 1024");
  for (size_t size : {size_t{0}, size_t{8}, sizeof(rndn_assembler_options) - 1, ~size_t{0}})
    refused(with([&](auto& o) { o.size = size; }),
            fmt::format("options: a size of {} bytes; it is to be sizeof(rndn_assembler_options)", size));
  EXPECT_EQ(Call({nullptr, 1}, nullptr).text(), "error: text: 1 bytes at NULL\n");
  EXPECT_EQ(Call({nullptr, 1}, nullptr).status, RNDN_ASSEMBLER_USAGE);
  EXPECT_EQ(rndn_assembler_assemble(text.data(), text.size(), "t.ptx", nullptr, nullptr, nullptr),
            RNDN_ASSEMBLER_USAGE);
}

// A caller that was compiled with fewer fields: what lies behind them is not the library's to read.
TEST(CApi, TakesTheOptionsOfAnOlderCaller) {
  const std::string text = telling_program();
  const isa::Target* target = isa::find_target("sm_86");
  for (size_t known : {offsetof(rndn_assembler_options, level), offsetof(rndn_assembler_options, line_tables)}) {
    rndn_assembler_options options;
    std::memset(&options, 0x77, sizeof options);
    options.size = known;
    options.target = "sm_86";
    options.level = 3;
    options.max_registers = 24;
    const Call call(text, &options);
    ASSERT_EQ(call.status, RNDN_ASSEMBLER_OK) << call.text();
    const bool has_registers = known > offsetof(rndn_assembler_options, max_registers);
    EXPECT_TRUE(call.cubin() ==
                direct(text, {.target = target, .max_registers = has_registers ? 24u : 0u, .contract = true}).cubin);
  }
}

TEST(CApi, TakesTheOptionsOfANewerCallerWhereItsFieldsAreUnset) {
  const std::string& text = program("bits_count");
  struct {
    rndn_assembler_options known;
    int more[3];
  } options{options_for("sm_86"), {}};
  options.known.size = sizeof options;
  const Call unset(text, &options.known);
  EXPECT_EQ(unset.status, RNDN_ASSEMBLER_OK) << unset.text();
  EXPECT_TRUE(unset.cubin() == direct(text, for_target(isa::find_target("sm_86"))).cubin);
  for (int& field : options.more) {
    field = 1 << 24;
    const Call set(text, &options.known);
    EXPECT_EQ(set.status, RNDN_ASSEMBLER_USAGE);
    EXPECT_THAT(set.text(), HasSubstr("a field is set that version " + std::string(version()) + " "));
    field = 0;
  }
}

// One workspace through texts, targets, threads and failures: it changes nothing, and results outlive it.
TEST(CApi, AWorkspaceChangesNothing) {
  Workspace workspace(rndn_assembler_workspace_new());
  ASSERT_NE(workspace, nullptr);
  std::vector<std::pair<Call, std::string>> made;
  for (const char* target : {"sm_90", "sm_61", "sm_80", "sm_90"})
    for (unsigned threads : {0u, 3u, 2u}) {
      rndn_assembler_options options = options_for(target);
      options.threads = threads;
      EXPECT_EQ(Call("no ptx", &options, workspace.get()).status, RNDN_ASSEMBLER_INPUT);
      for (const std::string& text : {program("program_fft"), telling_program(), program("bits_count")})
        made.emplace_back(Call(text, &options, workspace.get()),
                          direct(text, for_target(isa::find_target(target))).cubin);
    }
  workspace.reset();
  for (const auto& [call, want] : made) {
    EXPECT_EQ(call.status, RNDN_ASSEMBLER_OK) << call.text();
    EXPECT_TRUE(call.cubin() == want);
  }
}

size_t threads_of_this_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

// As many as asked for, no more than kernels, as long as the workspace: and none that was not asked for.
TEST(CApi, ThreadsAreTheWorkspaces) {
  const std::string text = telling_program();  // two kernels
  std::thread([] {}).join();                   // with the first one, ThreadSanitizer starts one of its own
  const size_t before = threads_of_this_process();
  Workspace workspace(rndn_assembler_workspace_new());
  rndn_assembler_options options = options_for("sm_90");
  for (unsigned threads : {0u, 1u}) {
    options.threads = threads;
    EXPECT_EQ(Call(text, &options, workspace.get()).status, RNDN_ASSEMBLER_OK);
    EXPECT_EQ(threads_of_this_process(), before);
  }
  options.threads = 3;
  EXPECT_EQ(Call(text, &options, workspace.get()).status, RNDN_ASSEMBLER_OK);
  EXPECT_EQ(threads_of_this_process(), before + 1);
  workspace.reset();
  EXPECT_EQ(Call(text, &options).status, RNDN_ASSEMBLER_OK);
  EXPECT_EQ(threads_of_this_process(), before);
}

TEST(CApi, ThreadsAssembleDifferentTextsAtOnce) {
  struct Work {
    std::string text, want;
    const char* target;
  };
  std::vector<Work> work;
  for (const char* target : {"sm_61", "sm_90", "sm_80", "sm_89"})
    for (const auto& f : corpus())
      if (const isa::Target* t = isa::find_target(target); f.target <= t->sm)
        work.push_back({f.text, direct(f.text, for_target(t)).cubin, target});
  ASSERT_GT(work.size(), 200u);
  constexpr size_t count = 4;
  std::vector<size_t> wrong(count, 0), done(count, 0);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < count; ++t)
    threads.emplace_back([&, t] {
      Workspace workspace(rndn_assembler_workspace_new());
      for (size_t i = 0; i < work.size(); ++i) {
        const Work& w = work[(i * (2 * t + 1) + t * work.size() / count) % work.size()];  // each in an order of its own
        const rndn_assembler_options options = options_for(w.target);
        const Call call(w.text, &options, i % 2 ? workspace.get() : nullptr);
        wrong[t] += call.cubin() != w.want;
        ++done[t];
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, std::vector<size_t>(count, 0));
  EXPECT_EQ(done, std::vector<size_t>(count, work.size()));
}

TEST(CApi, NamesItsTargets) {
  std::vector<std::string> names, want;
  for (size_t i = 0; rndn_assembler_target(i); ++i) names.push_back(rndn_assembler_target(i));
  for (const isa::Target& t : isa::targets()) want.push_back(std::string(t.name));
  EXPECT_EQ(names, want);
  EXPECT_EQ(rndn_assembler_target(~size_t{0}), nullptr);
  for (int major = -1; major <= 12; ++major)
    for (int minor = -1; minor <= 10; ++minor) {
      const char* target = rndn_assembler_target_of_capability(major, minor);
      EXPECT_EQ(target ? target : "", cuda::target_of_capability(major, minor)) << major << "." << minor;
    }
  EXPECT_STREQ(rndn_assembler_target_of_capability(8, 7), "sm_86");
  EXPECT_EQ(rndn_assembler_version(), version());
}

TEST(CApi, TakesNull) {
  rndn_assembler_result_free(nullptr);
  rndn_assembler_workspace_free(nullptr);
  EXPECT_EQ(rndn_assembler_cubin(nullptr), nullptr);
  EXPECT_EQ(rndn_assembler_cubin_size(nullptr), 0u);
  EXPECT_STREQ(rndn_assembler_diagnostics(nullptr), "error: not enough memory\n");
  EXPECT_EQ(rndn_assembler_diagnostic_count(nullptr), 0u);
  EXPECT_EQ(rndn_assembler_diagnostic_at(nullptr, 0), nullptr);
  EXPECT_EQ(rndn_assembler_kernel_count(nullptr), 0u);
  EXPECT_EQ(rndn_assembler_kernel_at(nullptr, 0), nullptr);
}

// --- The file ------------------------------------------------------------------------------------------------------------------

std::string output_of(const std::string& command) {
  std::string text;
  std::FILE* pipe = popen(command.c_str(), "r");
  char buffer[4096];
  for (size_t n; pipe && (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, n);
  EXPECT_TRUE(pipe && pclose(pipe) == 0) << command;
  return text;
}
// The last word of every line of nm's, without a version.
std::set<std::string> symbols(const std::string& flag) {
  std::set<std::string> names;
  std::istringstream lines(output_of("nm -D " + flag + " '" RNDN_ASSEMBLER_LIBRARY "'"));
  for (std::string line; std::getline(lines, line);) {
    const std::string name = line.substr(line.rfind(' ') + 1);
    names.insert(name.substr(0, name.find('@')));
  }
  return names;
}

TEST(CApiLibrary, ExportsWhatTheHeaderDeclares) {
  std::ifstream in(RNDN_SOURCE_DIR "/assembler/c/rndn_assembler.h");
  const std::string header{std::istreambuf_iterator<char>(in), {}};
  std::set<std::string> declared = {"RNDN_ASSEMBLER_1"};  // the version of the symbols
  const std::regex declaration(R"(\nRNDN_ASSEMBLER_EXPORT [^;(]*?(\w+)\()");
  for (std::sregex_iterator i(header.begin(), header.end(), declaration), end; i != end; ++i) declared.insert((*i)[1]);
  EXPECT_GT(declared.size(), 12u);
  EXPECT_EQ(symbols("--defined-only"), declared);
}

// Nothing to read, print or run with, nothing that reads numbers as the process's locale has them, and no end of the process: CHECK throws (throwing_checks.cpp).
TEST(CApiLibrary, ImportsNothingThatReadsPrintsOrEnds) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "skipped: AddressSanitizer has imports of its own";
#endif
  const std::set<std::string> imports = symbols("--undefined-only");
  EXPECT_EQ(imports.count("memcpy"), 1u) << "is this nm's list?";
  for (const char* name :
       {"_exit",         "exit",      "quick_exit",   "abort",         "open",   "open64", "read",        "write",
        "fopen",         "fopen64",   "fread",        "fwrite",        "fputs",  "fputc",  "puts",        "printf",
        "fprintf",       "vfprintf",  "__printf_chk", "__fprintf_chk", "getc",   "putc",   "strtod",      "getenv",
        "secure_getenv", "setenv",    "dlopen",       "system",        "execve", "fork",   "posix_spawn", "signal",
        "sigaction",     "setlocale", "_ZSt4cout",    "_ZSt4cerr"})
    EXPECT_EQ(imports.count(name), 0u) << name;
}

TEST(CApiLibrary, NeedsNothingOfCudaOrLlvm) {
  const std::string needed = output_of("readelf -d '" RNDN_ASSEMBLER_LIBRARY "'");
  EXPECT_THAT(needed, HasSubstr("soname: [librndn_assembler.so.1]"));
  const std::regex library(R"(NEEDED.*\[(.*?)\.so)");
  for (std::sregex_iterator i(needed.begin(), needed.end(), library), end; i != end; ++i)
    EXPECT_THAT((*i)[1].str(), AnyOf("libfmt", "libstdc++", "libgcc_s", "libc", "libm", "libpthread", "libasan",
                                     "libubsan", "libtsan", "ld-linux-x86-64", "ld-linux-aarch64"));
}

}  // namespace
}  // namespace rndn
