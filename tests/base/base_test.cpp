#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <random>
#include <set>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "libraries/base/containers/arena.h"
#include "libraries/base/containers/bitset.h"
#include "libraries/base/containers/byte_mask.h"
#include "libraries/base/system/deep_stack.h"
#include "libraries/base/errors/diagnostic.h"
#include "libraries/base/system/files.h"
#include "libraries/base/errors/guarded_main.h"
#include "libraries/base/containers/id.h"
#include "libraries/base/containers/intern.h"
#include "libraries/base/containers/lazy_table.h"
#include "libraries/base/system/parallel.h"
#include "libraries/base/report/json.h"
#include "libraries/base/report/progress.h"
#include "libraries/base/containers/raw_vector.h"
#include "libraries/base/errors/result.h"
#include "libraries/base/report/timing.h"
#include "libraries/base/report/version.h"

namespace rndn {
namespace {

TEST(ByteMask, TellsEqualBytes) {
  char bytes[64 + 1];  // read from an odd address too
  for (int i = 0; i < 65; ++i) bytes[i] = static_cast<char>(i * 37);
  for (int shift = 0; shift < 2; ++shift)
    for (int c = 0; c < 256; ++c) {
      uint64_t expected = 0;
      for (int i = 0; i < 64; ++i) expected |= static_cast<uint64_t>(bytes[i + shift] == static_cast<char>(c)) << i;
      ASSERT_EQ(equal_bytes(bytes + shift, static_cast<char>(c)), expected) << c;
    }
  std::fill(bytes, bytes + 64, '\x80');
  EXPECT_EQ(equal_bytes(bytes, '\x80'), ~uint64_t{0});
  EXPECT_EQ(equal_bytes(bytes, '\0'), 0u);
  EXPECT_EQ(equal_bytes(bytes, '\x7f'), 0u);
}

TEST(ByteMask, TellsWhatIsBehindOddNumbers) {
  EXPECT_EQ(odd_so_far(0), 0u);
  EXPECT_EQ(odd_so_far(0b1001000100), ~uint64_t{0x3ff} | 0b1000111100);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(odd_so_far(uint64_t{1} << i), ~uint64_t{0} << i);
}

TEST(Arena, AlignsAndKeepsObjectsApart) {
  Arena arena;
  std::mt19937 random(7);
  std::vector<std::span<uint64_t>> spans;
  for (int i = 0; i < 2000; ++i) {
    arena.allocate(random() % 33, 1);  // disturbs alignment
    auto s = arena.make_span<uint64_t>(random() % 700);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(s.data()) % alignof(uint64_t), 0u);
    for (uint64_t& x : s) {
      EXPECT_EQ(x, 0u);
      x = static_cast<uint64_t>(i);
    }
    spans.push_back(s);
  }
  for (size_t i = 0; i < spans.size(); ++i)
    for (uint64_t x : spans[i]) ASSERT_EQ(x, i) << "a later object overlaps span " << i;
}

TEST(Arena, ServesRequestsLargerThanASlabAndStartsOverAfterReset) {
  Arena arena;
  for (size_t bytes : {size_t{1}, size_t{100'000}, size_t{5'000'000}, size_t{3}}) {
    auto s = arena.make_span<char>(bytes);
    s[0] = s[bytes - 1] = 'x';
  }
  void* aligned = arena.allocate(64, 4096);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(aligned) % 4096, 0u);
  arena.reset();
  auto again = arena.make_span<int>(10);
  EXPECT_EQ(again[9], 0);
}

TEST(RawVector, GrowsCopiesAndMovesWithItsElements) {
  RawVector<uint64_t> v;
  EXPECT_TRUE(v.empty());
  for (uint64_t i = 0; i < 1000; ++i) {
    if (i % 2)
      v.push() = i;
    else
      v.push_back(i);
    v.push_back(v[0]);  // an element, also when it has to grow
  }
  ASSERT_EQ(v.size(), 2000u);
  for (uint64_t i = 0; i < 1000; ++i) EXPECT_TRUE(v[2 * i] == i && v[2 * i + 1] == 0) << i;
  RawVector<uint64_t> copy = v, moved = std::move(v);
  copy[0] = 7;
  EXPECT_EQ(moved[0], 0u);
  EXPECT_EQ(copy.size(), moved.size());
  EXPECT_TRUE(std::equal(copy.begin() + 1, copy.end(), moved.begin() + 1));
  moved = copy;
  EXPECT_EQ(moved[0], 7u);
  moved.pop_back();
  EXPECT_EQ(moved.back(), 999u);
  moved.resize(3);
  EXPECT_EQ(moved.size(), 3u);
  moved.clear();
  EXPECT_TRUE(moved.empty());
}

TEST(LazyTable, MakesAnEntryOnceWhoeverAsks) {
  struct Square {
    size_t of, value;
  };
  constexpr size_t entries = 100;
  const LazyTable<Square> table(entries);
  std::atomic<size_t> made = 0;
  std::vector<std::vector<const Square*>> found(4);
  std::vector<std::thread> threads;
  for (auto& mine : found)
    threads.emplace_back([&] {
      for (size_t k = 0; k < entries; ++k) mine.push_back(&table.get(k, [&] { return ++made, Square{k, k * k}; }));
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(made, entries);
  for (size_t k = 0; k < entries; ++k) {
    EXPECT_EQ(found[0][k]->of, k);
    EXPECT_EQ(found[0][k]->value, k * k);
    for (const auto& other : found) EXPECT_EQ(other[k], found[0][k]);
  }
}

TEST(Interner, GivesEqualTextsEqualIdsForever) {
  Interner names;
  std::vector<NameId> ids;
  for (int i = 0; i < 5000; ++i) ids.push_back(names.intern("name" + std::to_string(i)));
  for (int i = 0; i < 5000; ++i) {
    EXPECT_EQ(names.intern("name" + std::to_string(i)), ids[static_cast<size_t>(i)]);
    EXPECT_EQ(names.text(ids[static_cast<size_t>(i)]), "name" + std::to_string(i));
  }
  EXPECT_EQ(names.size(), 5000u);
  EXPECT_NE(names.intern(""), names.intern(std::string_view("\0", 1)));
}

TEST(Bitset, BehavesAsASetOfIntegers) {
  std::mt19937 random(3);
  for (size_t n : {size_t{0}, size_t{1}, size_t{63}, size_t{64}, size_t{65}, size_t{500}}) {
    Bitset a(n), b(n);
    std::set<size_t> sa, sb;
    for (size_t i = 0; n && i < n; ++i) {
      size_t x = random() % n, y = random() % n;
      a.set(x), sa.insert(x);
      b.set(y), sb.insert(y);
      if (random() % 4 == 0) a.reset(y), sa.erase(y);
    }
    size_t before = sa.size();
    EXPECT_EQ(a.count(), before);
    Bitset c = a;
    sa.merge(std::set<size_t>(sb));
    EXPECT_EQ(c.merge(b), sa.size() != before);
    EXPECT_FALSE(c.merge(b));
    std::vector<size_t> members;
    c.for_each([&](size_t i) { members.push_back(i); });
    EXPECT_EQ(members, std::vector<size_t>(sa.begin(), sa.end()));
    c.subtract(b);
    for (size_t x : sb) EXPECT_FALSE(c.test(x));
  }
}

enum class ThingId : uint32_t {};
enum class OtherId : uint32_t {};
template <class V, class I>
concept Indexable = requires(V v, I i) {
  v[i];
};

TEST(IdVector, IsIndexedByItsOwnIdsOnly) {
  using Things = IdVector<ThingId, int>;
  static_assert(Indexable<Things, ThingId>);
  static_assert(!Indexable<Things, OtherId> && !Indexable<Things, int>);
  Things things;
  ThingId first = things.add(4), second = things.add(5);
  EXPECT_EQ(things[first], 4);
  EXPECT_EQ(things[second], 5);
  EXPECT_TRUE(is_none(none<ThingId>()));
  EXPECT_FALSE(is_none(first));
}

Result<int> half(int x) {
  if (x % 2) return input_error("{} is odd", x);
  return x / 2;
}
Result<int> quarter(int x) {
  ASSIGN_OR_RETURN(int h, half(x));
  return half(h);
}

TEST(Result, PassesErrorsOn) {
  EXPECT_EQ(*quarter(8), 2);
  Result<int> failed = quarter(6);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message, "3 is odd");
  EXPECT_EQ(failed.error().exit_code(), 1);
}

// How many are there; never made from nothing.
struct Counted {
  explicit Counted(int n) : number(n) { ++alive; }
  Counted(const Counted& other) : number(other.number) { ++alive; }
  Counted(Counted&& other) noexcept : number(std::exchange(other.number, -1)) { ++alive; }
  ~Counted() { --alive; }
  int number;
  static inline int alive = 0;
};

TEST(Result, MakesMovesAndDestroysItsValueOnce) {
  {
    Result<Counted> a = Counted(1);
    EXPECT_EQ(Counted::alive, 1);
    Result<Counted> copy = a;
    Result<Counted> moved = std::move(a);
    EXPECT_EQ(Counted::alive, 3);
    EXPECT_EQ(copy->number, 1);
    EXPECT_EQ(moved->number, 1);
    ASSERT_TRUE(a);  // moved from, and has a value as before
    EXPECT_EQ(a->number, -1);
    a = copy;
    EXPECT_EQ(a->number, 1);
    EXPECT_EQ(Counted::alive, 3);
    a = Error{Fault::world, "gone"};
    EXPECT_FALSE(a);
    EXPECT_EQ(Counted::alive, 2);
    copy = a;
    EXPECT_EQ(copy.error().message, "gone");
    EXPECT_EQ(Counted::alive, 1);
    copy = moved;
    EXPECT_EQ(copy->number, 1);
    EXPECT_EQ(Counted::alive, 2);
    Result<Counted>& itself = moved;
    moved = itself;
    EXPECT_EQ(moved->number, 1);
    moved = std::move(itself);
    EXPECT_EQ(moved->number, 1);
    const Counted taken = *std::move(moved);
    EXPECT_EQ(taken.number, 1);
    EXPECT_EQ(moved->number, -1);
    EXPECT_EQ(Counted::alive, 3);
  }
  EXPECT_EQ(Counted::alive, 0);
}

TEST(Result, CopiesOfAnErrorOutliveIt) {
  std::optional<Result<std::string>> first = world_error("{}", std::string(100, 'm')).about("a function").as(Cause::device_full).at(7);
  Result<std::string> copy = *first;
  Result<std::string> moved = *std::move(first);
  Result<void> passed = [&]() -> Result<void> {
    RETURN_IF_ERROR(copy);
    return {};
  }();
  EXPECT_EQ(first->error().line, 7u);  // moved from, and has the error as before
  first.reset();
  Result<void> other = passed;
  passed = Result<void>();
  EXPECT_TRUE(passed);
  for (const Error& e : {copy.error(), moved.error(), other.error()}) {
    EXPECT_EQ(e.fault, Fault::world);
    EXPECT_EQ(e.message, std::string(100, 'm'));
    EXPECT_EQ(e.subject, "a function");
    EXPECT_EQ(e.cause, Cause::device_full);
    EXPECT_EQ(e.line, 7u);
  }
  std::vector<std::thread> threads;  // which give it up at once
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([copy] {
      for (int k = 0; k < 1000; ++k) {
        Result<std::string> mine = copy;
        EXPECT_EQ(mine.error().line, 7u);
      }
    });
  for (std::thread& t : threads) t.join();
}

TEST(Result, HasValuesThatOnlyMove) {
  Result<std::unique_ptr<const int>> number = std::make_unique<const int>(5);
  static_assert(!std::is_copy_constructible_v<decltype(number)> && !std::is_copy_assignable_v<decltype(number)>);
  static_assert(std::is_nothrow_move_constructible_v<decltype(number)> && std::is_move_assignable_v<decltype(number)>);
  static_assert(!std::is_default_constructible_v<Result<int>>);
  std::vector<Result<std::unique_ptr<const int>>> several;
  several.push_back(std::move(number));
  several.push_back(input_error("none"));
  for (int i = 0; i < 10; ++i) several.insert(several.begin(), std::make_unique<const int>(i));
  EXPECT_EQ(**several[0], 9);
  EXPECT_EQ(**several[10], 5);
  EXPECT_EQ(several[11].error().message, "none");
  EXPECT_EQ(*number, nullptr);
  std::unique_ptr<const int> taken = *std::move(several[10]);
  EXPECT_EQ(*taken, 5);
}

TEST(ResultDeathTest, AskedForWhatItHasNot) {
  const Result<int> failed = input_error("3 is odd"), made = 2;
  EXPECT_EXIT((void)*failed, testing::ExitedWithCode(70), "the result has a value: 3 is odd");
  EXPECT_EXIT((void)made.error(), testing::ExitedWithCode(70), "the result has an error");
  EXPECT_EXIT((void)Result<void>().error(), testing::ExitedWithCode(70), "the result has an error");
}

TEST(Diagnostic, ShowsFileLineColumnCaretAndNotes) {
  SourceManager sources;
  FileId file = sources.add("q.hir", "first;\n\tsum = lt(a, b);\nlast");
  DiagnosticSink sink;
  auto at = [&](uint32_t b, uint32_t e) { return Span{file, b, e}; };
  sink.error("shapes", at(14, 16), "`lt` expects operands of one shape")
      .highlight(at(17, 18))
      .highlight(at(20, 21))
      .note(at(0, 5), "declared here");
  sink.warning("end", at(28, 28), "at the end");
  EXPECT_EQ(render(sink, sources),
            "q.hir:2:8: error: `lt` expects operands of one shape\n"
            "  \tsum = lt(a, b);\n"
            "  \t      ^~ ~  ~\n"
            "q.hir:1:1: note: declared here\n"
            "  first;\n"
            "  ^~~~~\n"
            "q.hir:3:5: warning: at the end\n"
            "  last\n"
            "      ^\n"
            "1 error, 1 warning generated\n");
}

// No warnings take the place of errors.
TEST(Diagnostic, ShowsTwentyErrorsAndTwentyWarnings) {
  for (const size_t count : {20, 21, 400}) {
    SourceManager sources;
    FileId file = sources.add("f", "abc");
    DiagnosticSink sink;
    for (size_t i = 0; i < 30; ++i) sink.warning("w", {file, 0, 1}, "warning {}", i);
    for (size_t i = 0; i < count; ++i) sink.error("e", {file, 1, 2}, "error {}", i);
    const std::string text = render(sink, sources);
    EXPECT_NE(text.find("warning: warning 19\n"), std::string::npos);
    EXPECT_EQ(text.find("warning: warning 20\n"), std::string::npos);
    EXPECT_NE(text.find("error: error 19\n"), std::string::npos);
    EXPECT_EQ(text.find("error: error 20\n"), std::string::npos);
    const std::string end = fmt::format("  ^\nand {} more\n{} errors, 30 warnings generated\n", 10 + count - 20, count);
    EXPECT_TRUE(text.ends_with(end)) << text;
  }
}

// Editors do not show a byte order mark; columns count from behind it.
TEST(SourceManager, AByteOrderMarkIsNoText) {
  SourceManager sources;
  FileId file = sources.add("q.hir", "\xef\xbb\xbf" "abc\n");
  EXPECT_EQ(sources.text(file), "abc\n");
  EXPECT_EQ(sources.describe({file, 1, 2}), "q.hir:1:2");
  EXPECT_EQ(sources.text(sources.add("q", "\xef\xbb")), "\xef\xbb");
}

TEST(Diagnostic, SortsByPositionAndCountsErrorsOnly) {
  SourceManager sources;
  FileId file = sources.add("f", "abc");
  DiagnosticSink sink;
  sink.warning("w", {file, 2, 3}, "second");
  sink.error("e", {file, 0, 1}, "first");
  sink.sort_by_position();
  EXPECT_EQ(sink.diagnostics()[0].message, "first");
  EXPECT_EQ(sink.error_count(), 1u);
}

TEST(Diagnostic, NeverSendsControlBytesToTheTerminal) {
  SourceManager sources;
  FileId file = sources.add("f", std::string("a\x1b[31mb\0c", 9));
  DiagnosticSink sink;
  sink.error("e", {file, 0, 1}, "x");
  std::string text = render(sink, sources);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find('\0'), std::string::npos);
}

TEST(DidYouMean, FindsNearNamesOnly) {
  std::vector<std::string_view> names = {"compress", "column_value", "sum", "len"};
  EXPECT_EQ(did_you_mean("compres", names), "compress");
  EXPECT_EQ(did_you_mean("colunm_value", names), "column_value");
  EXPECT_EQ(did_you_mean("smu", names), "sum");
  EXPECT_EQ(did_you_mean("frobnicate", names), "");
  EXPECT_EQ(did_you_mean("", names), "");
}

TEST(Timings, PhasesAreExclusiveAndAddUpToTheTotal) {
  Timings timings;
  auto wait = [] { std::this_thread::sleep_for(std::chrono::milliseconds(3)); };
  auto start = std::chrono::steady_clock::now();
  {
    auto total = timings.measure(Phase::frontend);
    wait();
    {
      auto inner = timings.measure(Phase::select, "kernel");
      wait();
    }
    wait();
  }
  auto wall = static_cast<uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count());
  EXPECT_GE(timings.exclusive_ns(Phase::frontend), 6'000'000u);
  EXPECT_GE(timings.exclusive_ns(Phase::select), 3'000'000u);
  EXPECT_EQ(timings.total_ns(PhaseGroup::compile),
            timings.exclusive_ns(Phase::frontend) + timings.exclusive_ns(Phase::select));
  EXPECT_LE(timings.total_ns(PhaseGroup::compile), wall);
  EXPECT_EQ(timings.total_ns(PhaseGroup::execute), 0u);
  EXPECT_EQ(timings.events().size(), 2u);
  EXPECT_EQ(timings.events()[1].depth, 1);
}

TEST(Timings, CreditMovesTimeAndOverlapIsTakenOut) {
  Timings timings;
  {
    auto total = timings.measure(Phase::overhead);
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    timings.credit(Phase::kernels, 2'000'000);
    timings.credit(Phase::kernels, 1'000'000'000'000);  // more than passed: bounded by the wall clock
    timings.add_overlap(Phase::data, 500);
  }
  EXPECT_GE(timings.exclusive_ns(Phase::kernels), 2'000'000u);
  EXPECT_LT(timings.exclusive_ns(Phase::kernels), 1'000'000'000u);
  EXPECT_EQ(timings.overlap_ns(PhaseGroup::execute), 500u);
  EXPECT_EQ(timings.total_ns(PhaseGroup::execute), timings.exclusive_ns(Phase::kernels) +
                                                       timings.exclusive_ns(Phase::overhead) +
                                                       timings.exclusive_ns(Phase::data) - 500);
}

TEST(ParallelFor, CallsEveryIndexOnce) {
  for (unsigned threads : {1u, 2u, 7u}) {
    std::vector<std::atomic<int>> calls(1000);
    parallel_for(
        calls.size(), [&](size_t i) { ++calls[i]; }, threads);
    for (auto& c : calls) ASSERT_EQ(c.load(), 1);
  }
  parallel_for(0, [](size_t) { FAIL(); });
}

TEST(ThreadPool, RunsLoopAfterLoopOnTheSameThreads) {
  ThreadPool pool(4);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  for (size_t n = 0; n < 200; ++n) {
    std::vector<std::atomic<int>> calls(n), of_worker(4);
    pool.run(n, [&](size_t i, unsigned worker) {
      EXPECT_EQ(of_worker.at(worker).fetch_add(1), 0);  // a worker runs one body at a time
      ++calls[i];
      {
        std::lock_guard lock(mutex);
        threads.insert(std::this_thread::get_id());
      }
      --of_worker[worker];
    });
    for (auto& c : calls) ASSERT_EQ(c.load(), 1);
  }
  EXPECT_LE(threads.size(), 4u);
  // An exception ends one loop, not the pool.
  EXPECT_THROW(pool.run(100,
                        [](size_t i, unsigned) {
                          if (i == 5) throw std::runtime_error("5");
                        }),
               std::runtime_error);
  std::atomic<int> calls{0};
  pool.run(100, [&](size_t, unsigned) { ++calls; });
  EXPECT_EQ(calls, 100);
}

// Threads that wait awake for a loop, those that sleep, and those on the way from one to the other do the same work, and end with the pool.
TEST(ThreadPool, ExpectedLoopsAndOthers) {
  for (unsigned threads : {1u, 2u, 5u}) {
    for (int round = 0; round < 60; ++round) {
      ThreadPool pool(threads);
      for (int loop = 0; loop < 6; ++loop) {
        if ((round + loop) % 3 == 0) pool.expect_loops();
        if ((round + loop) % 13 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));  // they sleep again
        std::vector<std::atomic<int>> calls(1 + (round * 7 + loop) % 40);
        pool.run(calls.size(), [&](size_t i, unsigned worker) {
          EXPECT_LT(worker, threads);
          ++calls[i];
        });
        for (const std::atomic<int>& c : calls) ASSERT_EQ(c, 1);
      }
      if (round % 2) pool.expect_loops();  // of which none comes
    }
  }
}

TEST(ThreadPool, SeveralCallersTakeTurns) {
  ThreadPool pool(3);
  std::vector<std::thread> callers;
  std::atomic<int> calls{0};
  for (int c = 0; c < 4; ++c)
    callers.emplace_back([&] {
      for (int round = 0; round < 50; ++round) pool.run(20, [&](size_t, unsigned) { ++calls; });
    });
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(calls, 4 * 50 * 20);
}

TEST(Files, ReportWhatWasTried) {
  Result<std::string> missing = read_file("/nonexistent/file");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().message, "cannot read `/nonexistent/file`: No such file or directory");
  EXPECT_EQ(missing.error().fault, Fault::input);
  Result<std::string> folder = read_file("/");
  ASSERT_FALSE(folder.ok());
  EXPECT_EQ(folder.error().message, "cannot read `/`: it is a directory");
}

TEST(Files, AFullDeviceIsAnError) {
  struct stat status {};
  if (stat("/dev/full", &status) != 0 || !S_ISCHR(status.st_mode))
    GTEST_SKIP() << "skipped: this machine has no device /dev/full";
  Result<void> full = write_file("/dev/full", "x");
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().message, "cannot write `/dev/full`: No space left on device");
  EXPECT_EQ(full.error().fault, Fault::world);
}

// Files that are written whole: what fails leaves what was there, and nothing beside it.
class NewFileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "rndn_files_XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const char* name) const { return folder_ + "/" + name; }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) found.push_back(entry.path().filename());
    std::sort(found.begin(), found.end());
    return found;
  }
  std::string folder_;
};

TEST_F(NewFileTest, TakesItsPlaceWhenItIsComplete) {
  ASSERT_TRUE(write_file(path("f"), "before"));
  ASSERT_EQ(chmod(path("f").c_str(), 0640), 0);
  {
    Result<NewFile> given_up = NewFile::create(path("f"));
    ASSERT_TRUE(given_up);
    ASSERT_TRUE(given_up->write("half of"));
    EXPECT_EQ(*read_file(path("f")), "before");
  }
  EXPECT_EQ(names(), std::vector<std::string>{"f"});
  EXPECT_EQ(*read_file(path("f")), "before");
  {
    Result<NewFile> file = NewFile::create(path("f"));
    ASSERT_TRUE(file && file->write("af") && file->write("ter") && file->commit());
  }
  EXPECT_EQ(names(), std::vector<std::string>{"f"});
  EXPECT_EQ(*read_file(path("f")), "after");
  struct stat status {};
  ASSERT_EQ(stat(path("f").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0640u);
}

TEST_F(NewFileTest, AFileThatMayNotGrowIsAsItWas) {
  ASSERT_TRUE(write_file(path("f"), "before"));
  const auto child = [&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const struct rlimit most = {1000, 1000};
    setrlimit(RLIMIT_FSIZE, &most);
    const Result<void> written = write_file(path("f"), std::string(100'000, 'x'));
    const bool told = !written && written.error().message.ends_with("f`: File too large");
    _exit(told && written.error().exit_code() == 3 ? 0 : 1);
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(0), "");
  EXPECT_EQ(*read_file(path("f")), "before");
  EXPECT_EQ(names(), std::vector<std::string>{"f"});
}

TEST_F(NewFileTest, LinksStayLinks) {
  ASSERT_TRUE(write_file(path("f"), "before"));
  ASSERT_EQ(symlink("f", path("link").c_str()), 0);
  ASSERT_EQ(symlink("link", path("far").c_str()), 0);
  ASSERT_EQ(symlink(path("later").c_str(), path("ahead").c_str()), 0);
  ASSERT_TRUE(write_file(path("far"), "after"));
  ASSERT_TRUE(write_file(path("ahead"), "new"));
  EXPECT_EQ(*read_file(path("f")), "after");
  EXPECT_EQ(*read_file(path("later")), "new");
  EXPECT_EQ(names(), (std::vector<std::string>{"ahead", "f", "far", "later", "link"}));
  EXPECT_TRUE(std::filesystem::is_symlink(path("far")) && std::filesystem::is_symlink(path("ahead")));
}

TEST_F(NewFileTest, PipesAndOwnDescriptorsAreWrittenInPlace) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] { read = *read_file(path("pipe")); });
  EXPECT_TRUE(write_file(path("pipe"), "through the pipe"));
  reader.join();
  EXPECT_EQ(read, "through the pipe");
  struct stat status {};
  ASSERT_EQ(stat(path("pipe").c_str(), &status), 0);
  EXPECT_TRUE(S_ISFIFO(status.st_mode));
  // A descriptor that stands in the middle of a file: what is written goes there.
  const int file = open(path("f").c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_GE(file, 0);
  ASSERT_EQ(write(file, "one ", 4), 4);
  EXPECT_TRUE(write_file(fmt::format("/dev/fd/{}", file), "two "));
  ASSERT_EQ(write(file, "three", 5), 5);
  close(file);
  EXPECT_EQ(*read_file(path("f")), "one two three");
  const Result<void> closed = write_file("/dev/fd/987654", "x");
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().message, "cannot write `/dev/fd/987654`: Bad file descriptor");
  EXPECT_EQ(write_file(folder_, "x").error().message, fmt::format("cannot write `{}`: Is a directory", folder_));
  EXPECT_EQ(write_file(path("no/f"), "x").error().exit_code(), 3);
}

TEST(DeepStack, IsAsLargeAsAskedAndGoneAfter) {
  EXPECT_GT(stack_left(), size_t{64} << 10);
  size_t left = 0;
  ASSERT_TRUE(on_own_stack(size_t{48} << 20, [&] { left = stack_left(); }));
  EXPECT_GT(left, size_t{47} << 20);
  EXPECT_LE(left, size_t{48} << 20);
  EXPECT_THROW((void)on_own_stack(size_t{1} << 20, [] { throw std::bad_alloc(); }), std::bad_alloc);
  const Result<void> huge = on_own_stack(size_t{1} << 62, [] {});
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.error().exit_code(), 3);
  EXPECT_THAT(huge.error().message, testing::StartsWith("cannot start a thread with "));
}

TEST(Version, IsANumber) { EXPECT_TRUE(std::isdigit(static_cast<unsigned char>(version()[0]))); }

TEST(Diagnostics, ShowTextButNoControlBytes) {
  SourceManager sources;
  FileId file = sources.add("f", "a\tä€😀\x1b\x7f\xc2\x9b\x9b\xe2\x82z");
  DiagnosticSink sink;
  sink.error("x", {file, 0, 1}, "m");
  EXPECT_EQ(render(sink, sources), "f:1:1: error: m\n  a\tä€😀???????z\n  ^\n");
}

TEST(ParallelFor, ThrowsTheExceptionOfAWorkerWhenAllHaveStopped) {
  for (unsigned threads : {1u, 4u}) {
    std::atomic<int> running{0}, calls{0};
    auto body = [&](size_t i) {
      ++running;
      ++calls;
      if (i == 10) {
        --running;
        throw std::runtime_error("body 10");
      }
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      --running;
    };
    try {
      parallel_for(1'000'000, body, threads);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::runtime_error& e) {
      EXPECT_STREQ(e.what(), "body 10");
    }
    EXPECT_EQ(running, 0);
    EXPECT_LT(calls, 500'000);  // indices were no longer handed out
  }
}

TEST(ParallelFor, MakesDoWithTheThreadsThatExist) {
  auto child = [] {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    // No address space has room for such a stack.
    if (pthread_attr_setstacksize(&attributes, size_t{1} << 47) != 0 || pthread_setattr_default_np(&attributes) != 0)
      _exit(7);
    bool refused = false;
    try {
      std::thread([] {}).join();
    } catch (const std::system_error&) {
      refused = true;
    }
    std::atomic<int> calls{0};
    parallel_for(
        100, [&](size_t) { ++calls; }, 8);
    _exit(!refused ? 8 : calls == 100 ? 0 : 9);
  };
  EXPECT_EXIT(child(), testing::ExitedWithCode(0), "");
}

TEST(ReadFile, HasALimit) {
  std::string path = testing::TempDir() + "rndn_base_read_file";
  ASSERT_TRUE(write_file(path, "12345"));
  EXPECT_EQ(*read_file(path, 5), "12345");
  auto longer = read_file(path, 4);
  ASSERT_FALSE(longer);
  EXPECT_EQ(longer.error().exit_code(), 1);
  EXPECT_EQ(longer.error().message, "cannot read `" + path + "`: it is larger than 4 bytes");
  unlink(path.c_str());
  EXPECT_FALSE(read_file("/dev/zero", 1 << 20));  // has no size, and no end
}

TEST(GuardedMain, TurnsExceptionsIntoExitCodes) {
  auto run = [](int (*body)(int, char**)) {
    testing::internal::CaptureStderr();
    int code = guarded_main(body, 0, nullptr);
    return std::pair(code, testing::internal::GetCapturedStderr());
  };
  const std::string bug = "this is a bug in rndn; please report it with the input\n";
  EXPECT_EQ(run([](int, char**) { return 5; }), std::pair(5, std::string()));
  EXPECT_EQ(run([](int, char**) -> int { throw std::bad_alloc(); }),
            std::pair(3, std::string("error: not enough memory\n")));
  EXPECT_EQ(run([](int, char**) -> int { throw std::out_of_range("at 7"); }),
            std::pair(70, "internal error: exception std::out_of_range: at 7\n" + bug));
  EXPECT_EQ(run([](int, char**) -> int { throw 7; }), std::pair(70, "internal error: exception int\n" + bug));
}

}  // namespace
TEST(Progress, EstimatesTheRestOnlyWhenAHundredthIsDone) {
  for (const auto& [done, line] : {std::pair{9u, "making   1 % ("}, {500u, "making  50 % ("}}) {
    testing::internal::CaptureStderr();
    {
      rndn::Progress progress("making", 1000);
      std::this_thread::sleep_for(std::chrono::milliseconds(1050));
      progress.advance(done);
    }
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(said.find(line), 0u) << said;
    EXPECT_EQ(said.find("left") != std::string::npos, done == 500) << said;
  }
}

TEST(Json, StringsAreValidUtf8) {
  EXPECT_EQ(json_string("\x01 \t\\"), "\"\\u0001 \\u0009\\\\\"");
  EXPECT_EQ(json_string("gr\xc3\xbc\xc3\x9f"), "\"gr\xc3\xbc\xc3\x9f\"");
  EXPECT_EQ(json_string("\xff\xc3"), "\"\xef\xbf\xbd\xef\xbf\xbd\"");
  EXPECT_EQ(json_string("\xed\xa0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");  // a surrogate is no character
}

}  // namespace rndn
