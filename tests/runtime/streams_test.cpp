// Copies beside the work: right in every order that the streams and events allow, and wrong in some
// order once any one of the waits is missing.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <optional>
#include <vector>

#include "libraries/base/errors/diagnostic.h"
#include "libraries/base/system/cancel.h"
#include "libraries/base/system/host_memory.h"
#include "runtime/compiler/compile.h"
#include "runtime/engine.h"
#include "runtime/memory/arena.h"
#include "runtime/memory/pinned_bytes.h"
#include "runtime/print_result.h"
#include "runtime/simulator/simulator_device.h"
#include "runtime/simulator/streams.h"
#include "tests/runtime/faulty_device.h"
#include "tests/runtime/forwarding_device.h"
#include "tests/support/made_tables.h"

namespace rndn::runtime::streams_test {
namespace {

std::vector<StreamOrder> all_orders() {
  std::vector<StreamOrder> orders{{.policy = StreamOrder::work_first},
                                  {.policy = StreamOrder::copies_first}};
  for (uint64_t seed = 1; seed <= 12; ++seed)
    orders.push_back({.policy = StreamOrder::random, .seed = seed});
  return orders;
}

// Runs something on a device whose streams run apart: whether the outcome was right.
using Scenario = std::function<bool(StreamsDevice&)>;

// Right in all orders; the number of waits.
uint64_t expect_right(const Scenario& run) {
  uint64_t waits = 0;
  for (const StreamOrder& order : all_orders()) {
    auto simulator = open_simulator("sm_86");
    StreamsDevice device(**simulator, order);
    EXPECT_TRUE(run(device)) << "policy " << order.policy << ", seed " << order.seed;
    waits = device.waits();
  }
  return waits;
}

// Each wait is needed.
void expect_waits_needed(const Scenario& run, uint64_t waits) {
  for (uint64_t ignored = 1; ignored <= waits; ++ignored) {
    bool seen = false;
    for (StreamOrder order : all_orders()) {
      if (seen) break;
      order.ignored = ignored;
      auto simulator = open_simulator("sm_86");
      StreamsDevice device(**simulator, order);
      seen = !run(device);
    }
    EXPECT_TRUE(seen) << "nothing shows that wait " << ignored << " of " << waits << " is missing";
  }
}

std::vector<uint32_t> numbers(uint32_t first) {
  std::vector<uint32_t> v(4096);
  std::iota(v.begin(), v.end(), first);
  return v;
}

// The work is a copy on the device, which stands for a kernel that reads the buffer.
class Buffers {
 public:
  explicit Buffers(StreamsDevice& device) : device_(device), memory_(device), arena_(memory_, {}) {}

  BufferPtr send(const std::vector<uint32_t>& v) { return *arena_.send(v.data(), bytes(v)); }
  BufferPtr send_from(const std::byte* from, uint64_t bytes) { return *arena_.send(from, bytes); }
  BufferPtr work(Buffer& from) {
    EXPECT_TRUE(arena_.arrive(from));
    BufferPtr to = *arena_.allocate(from.bytes);
    EXPECT_TRUE(device_.copy(to->address, from.address, from.bytes));
    return to;
  }
  BufferPtr fill(uint8_t value) {
    BufferPtr to = *arena_.allocate(bytes(numbers(0)));
    EXPECT_TRUE(device_.fill(to->address, value, to->bytes));
    return to;
  }
  std::vector<uint32_t> read(const Buffer& from) {
    std::vector<uint32_t> v(numbers(0).size());
    EXPECT_TRUE(device_.copy_to_host(v.data(), from.address, bytes(v)));
    return v;
  }

 private:
  static uint64_t bytes(const std::vector<uint32_t>& v) { return v.size() * sizeof(uint32_t); }
  StreamsDevice& device_;
  DeviceMemory memory_;
  Arena arena_;
};

TEST(Streams, TheWorkWaitsForWhatItReads) {
  const Scenario run = [](StreamsDevice& device) {
    Buffers b(device);
    const BufferPtr first = b.send(numbers(1)), one = b.work(*first);
    const BufferPtr second = b.send(numbers(2)), two = b.work(*second), again = b.work(*second);
    return b.read(*one) == numbers(1) && b.read(*two) == numbers(2) && b.read(*again) == numbers(2);
  };
  EXPECT_EQ(expect_right(run), 2u) << "one for each copy";
  expect_waits_needed(run, 2);
}

// A wait that the driver refuses is made by the next who reads.
TEST(Streams, AWaitThatFailsIsMadeAgain) {
  const auto simulator = open_simulator("sm_86");
  StreamsDevice streams(**simulator, {.policy = StreamOrder::work_first});
  test::FaultyStreams device(streams);
  DeviceMemory memory(device);
  Arena arena(memory, {});
  const std::vector<uint32_t> sent = numbers(3);
  const uint64_t bytes = sent.size() * sizeof(uint32_t);
  const BufferPtr buffer = *arena.send(sent.data(), bytes);
  device.fails_at = device.calls + 1;
  EXPECT_FALSE(arena.arrive(*buffer));
  EXPECT_TRUE(arena.arrive(*buffer));
  EXPECT_EQ(streams.waits(), 1u);
  const BufferPtr read = *arena.allocate(bytes);  // by the work
  ASSERT_TRUE(device.copy(read->address, buffer->address, bytes));
  std::vector<uint32_t> got(sent.size());
  ASSERT_TRUE(device.copy_to_host(got.data(), read->address, bytes));
  EXPECT_EQ(got, sent);
}

TEST(Streams, ACopyWaitsForWhoeverHadTheMemory) {
  const Scenario run = [](StreamsDevice& device) {
    Buffers b(device);
    BufferPtr first = b.send(numbers(1));
    const BufferPtr one = b.work(*first);
    const device::Address place = first->address;
    first = nullptr;  // though the work has not read it yet
    const BufferPtr second = b.send(numbers(2));
    EXPECT_EQ(second->address, place);
    const BufferPtr two = b.work(*second);
    return b.read(*one) == numbers(1) && b.read(*two) == numbers(2);
  };
  EXPECT_EQ(expect_right(run), 3u);
  expect_waits_needed(run, 3);
}

TEST(Streams, WhoeverHasTheMemoryNextWaitsForTheCopy) {
  const Scenario run = [](StreamsDevice& device) {
    Buffers b(device);
    BufferPtr first = b.send(numbers(1));
    const device::Address place = first->address;
    first = nullptr;  // though it has not arrived
    const BufferPtr filled = b.fill(7);
    EXPECT_EQ(filled->address, place);
    const BufferPtr copy = b.work(*filled);
    return b.read(*copy) == std::vector<uint32_t>(numbers(0).size(), 0x07070707);
  };
  EXPECT_EQ(expect_right(run), 1u);
  expect_waits_needed(run, 1);
}

TEST(Streams, MemoryThatNobodyHadIsNotWaitedFor) {
  auto simulator = open_simulator("sm_86");
  StreamsDevice device(**simulator, {});
  Buffers b(device);
  std::vector<BufferPtr> kept;
  for (uint32_t i = 0; i < 5; ++i) kept.push_back(b.send(numbers(i)));
  EXPECT_EQ(device.waits(), 0u);
}

// Pages stay for the next run of columns: once all work is done nobody is in the way.
TEST(Streams, PagesThatRestAreNotWaitedFor) {
  const auto scenario = [](bool rests) {
    return Scenario([rests](StreamsDevice& device) {
      DeviceMemory memory(device);
      Arena arena(memory, {.keep_pages = false});
      arena.keep_pages(true);
      const std::vector<uint32_t> first = numbers(1), second = numbers(2);
      const uint64_t bytes = first.size() * sizeof(uint32_t);
      const device::Address to = *device.allocate(2 * bytes);
      BufferPtr buffer = *arena.send(first.data(), bytes);
      const device::Address place = buffer->address;
      EXPECT_TRUE(arena.arrive(*buffer));
      EXPECT_TRUE(device.copy(to, place, bytes));
      buffer = nullptr;
      const uint64_t in_use = memory.in_use();
      EXPECT_GT(in_use, 0u) << "the page stays";
      EXPECT_TRUE(device.synchronize());
      if (rests) arena.rest();
      buffer = *arena.send(second.data(), bytes);
      EXPECT_EQ(buffer->address, place);
      EXPECT_EQ(memory.in_use(), in_use);
      EXPECT_TRUE(arena.arrive(*buffer));
      EXPECT_TRUE(device.copy(to + bytes, place, bytes));
      std::vector<uint32_t> got(2 * first.size());
      EXPECT_TRUE(device.copy_to_host(got.data(), to, 2 * bytes));
      EXPECT_TRUE(device.free(to));
      buffer = nullptr;
      arena.keep_pages(false);
      EXPECT_TRUE(arena.trim());
      return std::equal(first.begin(), first.end(), got.begin()) &&
             std::equal(second.begin(), second.end(), got.begin() + static_cast<std::ptrdiff_t>(first.size()));
    });
  };
  EXPECT_EQ(expect_right(scenario(false)), 3u);
  EXPECT_EQ(expect_right(scenario(true)), 2u) << "one for each copy, none for the work before";
}

// A device on which the work is cancelled when half of a large copy beside it is queued, as pieces of staged ones are.
class CancelledSends final : public test::ForwardingDevice, public device::Streams {
 public:
  explicit CancelledSends(StreamsDevice& to) : ForwardingDevice(to), streams_(to) {}
  bool is_cancelled = false;
  Result<void> send(device::Address to, const void* from, uint64_t bytes) override {
    if (!is_cancelled || bytes < 10000) return streams_.send(to, from, bytes);
    EXPECT_TRUE(streams_.send(to, from, bytes / 2));
    throw Cancelled{Error{Fault::interrupted, "cancelled"}.as(Cause::cancelled)};
  }
  Result<device::Event> record_event(device::Stream stream) override { return streams_.record_event(stream); }
  Result<void> wait_event(device::Stream stream, device::Event event) override { return streams_.wait_event(stream, event); }

 private:
  StreamsDevice& streams_;
};

// Pieces of a copy that was broken off come before whoever has the memory next, whether all work has been waited for since or not.
TEST(Streams, WhoeverHasTheMemoryNextWaitsForACancelledCopy) {
  for (const bool rests : {false, true}) {
    const Scenario run = [&](StreamsDevice& streams) {
      CancelledSends device(streams);
      DeviceMemory memory(device);
      Arena arena(memory, {});
      const std::vector<uint32_t> sent = numbers(1);
      const uint64_t bytes = sent.size() * sizeof(uint32_t);
      const device::Address place = (*arena.allocate(bytes))->address;
      device.is_cancelled = true;
      const Result<BufferPtr> gone = errors_of([&] { return arena.send(sent.data(), bytes); });
      EXPECT_FALSE(gone);
      EXPECT_EQ(gone.error().cause, Cause::cancelled);
      EXPECT_EQ(arena.in_use(), 0u);
      if (rests) {
        EXPECT_TRUE(device.synchronize());
        arena.rest();
      }
      const BufferPtr next = *arena.allocate(bytes), read = *arena.allocate(bytes);
      EXPECT_EQ(next->address, place);
      EXPECT_TRUE(device.fill(next->address, 7, bytes));
      EXPECT_TRUE(device.copy(read->address, next->address, bytes));
      std::vector<uint32_t> got(sent.size());
      EXPECT_TRUE(device.copy_to_host(got.data(), read->address, bytes));
      return got == std::vector<uint32_t>(sent.size(), 0x07070707);
    };
    expect_right(run);
  }
}

// --- Pinned memory

std::shared_ptr<data::Bytes> shared_bytes(const std::vector<uint32_t>& v) {
  auto made = std::make_shared<data::Bytes>(v.size() * sizeof(uint32_t));
  std::memcpy(made->data(), v.data(), made->size());
  return made;
}

TEST(Pinned, FromTheSecondTimeOnAndAsLongAsTheColumnIsThere) {
  const auto simulator = open_simulator("sm_86");
  StreamsDevice device(**simulator, {});
  PinnedBytes pinned(device, {.least_bytes = 1000, .most_bytes = 40000});
  ThreadPool pool(2);
  std::shared_ptr<data::Bytes> column = shared_bytes(numbers(5)), other = shared_bytes(numbers(6));  // 16,384 bytes each
  EXPECT_EQ(pinned.of(column, &pool).from, column->data());
  EXPECT_FALSE(pinned.has(column));
  EXPECT_EQ(pinned.bytes(), 0u);
  const PinnedBytes::Source second = pinned.of(column, &pool);
  EXPECT_TRUE(second.is_pinned && second.from != column->data());
  EXPECT_EQ(std::memcmp(second.from, column->data(), column->size()), 0);
  EXPECT_EQ(pinned.bytes(), column->size());
  EXPECT_TRUE(pinned.has(column));
  EXPECT_EQ(pinned.of(column, nullptr).from, second.from);
  // Within the bound, and not what is small.
  (void)pinned.of(other, nullptr);
  EXPECT_TRUE(pinned.of(other, nullptr).is_pinned);
  const auto third = shared_bytes(numbers(7)), few = std::make_shared<data::Bytes>(999);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(pinned.of(third, nullptr).from, third->data());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(pinned.of(few, nullptr).from, few->data());
  EXPECT_EQ(pinned.of(nullptr, nullptr).from, nullptr);
  EXPECT_EQ(pinned.bytes(), 2 * column->size());
  other = nullptr;
  EXPECT_TRUE(pinned.of(third, nullptr).is_pinned) << "where a column that is gone was";
  EXPECT_EQ(pinned.bytes(), 2 * column->size());
  pinned.give_back(true);
  EXPECT_EQ(pinned.bytes(), 0u);
  for (const auto& again : {column, third}) {
    EXPECT_EQ(pinned.of(again, nullptr).from, again->data());
    EXPECT_TRUE(pinned.of(again, nullptr).is_pinned) << "sent again and again";
  }
  column = nullptr;
  EXPECT_EQ(pinned.of(few, nullptr).from, few->data());
  EXPECT_EQ(pinned.bytes(), 2 * third->size()) << "few bytes look for nothing";
  (void)pinned.of(third, nullptr);
  EXPECT_EQ(pinned.bytes(), third->size());
}

TEST(Pinned, WhereItIsRefusedBytesStayWhereTheyAre) {
  const auto simulator = open_simulator("sm_86");
  StreamsDevice streams(**simulator, {});
  test::FaultyStreams device(streams);
  {
    PinnedBytes pinned(device, {.least_bytes = 1});
    const auto column = shared_bytes(numbers(1)), other = shared_bytes(numbers(2));
    (void)pinned.of(column, nullptr);
    (void)pinned.of(other, nullptr);
    device.fails_at = 1;
    EXPECT_EQ(pinned.of(column, nullptr).from, column->data());
    EXPECT_EQ(pinned.of(column, nullptr).from, column->data()) << "asked for once";
    EXPECT_EQ(device.calls, 1u);
    CancelToken token({.bytes = 1 << 20});
    {
      const CancelScope scope(token);
      EXPECT_EQ(pinned.of(other, nullptr).from, other->data());
    }
    EXPECT_TRUE(pinned.of(other, nullptr).is_pinned);
    EXPECT_EQ(device.held, 1);
  }
  EXPECT_EQ(device.held, 0);
  PinnedBytes of_one_stream(**simulator, {.least_bytes = 1});
  const auto column = shared_bytes(numbers(1));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(of_one_stream.of(column, nullptr).from, column->data());
}

// What kernels read stays for as long as somebody has the buffer, whoever else gives it back, and is counted so long.
TEST(Pinned, MappedBytesStayAsLongAsTheirBuffer) {
  const auto simulator = open_simulator("sm_86");
  StreamsDevice streams(**simulator, {});
  test::FaultyStreams device(streams);
  PinnedBytes pinned(device, {.least_bytes = 1});
  std::shared_ptr<data::Bytes> column = shared_bytes(numbers(5));
  const auto bytes_at = [&](const Buffer& b) {
    std::vector<uint32_t> read(4096);
    EXPECT_TRUE(device.copy_to_host(read.data(), b.address, 4 * read.size())) << "nothing is there";
    return read;
  };
  BufferPtr buffer = *pinned.mapped(column, nullptr);
  EXPECT_EQ(buffer->bytes, column->size());
  EXPECT_EQ(bytes_at(*buffer), numbers(5));
  EXPECT_EQ((*pinned.mapped(column, nullptr))->address, buffer->address) << "one copy for all";
  EXPECT_EQ(pinned.of(column, nullptr).from, static_cast<const std::byte*>(buffer->host));
  EXPECT_EQ(device.held, 1);
  column = nullptr;
  pinned.give_back(true);
  EXPECT_EQ(pinned.bytes(), 4 * 4096u) << "it is still held";
  EXPECT_EQ(bytes_at(*buffer), numbers(5));
  // Work that reads it comes before it goes.
  const device::Address to = *device.allocate(4 * 4096);
  ASSERT_TRUE(device.copy(to, buffer->address, 4 * 4096));
  buffer = nullptr;
  EXPECT_EQ(pinned.bytes(), 0u);
  EXPECT_EQ(device.held, 1) << "what was allocated above";
  std::vector<uint32_t> read(4096);
  ASSERT_TRUE(device.copy_to_host(read.data(), to, 4 * read.size()));
  EXPECT_EQ(read, numbers(5));
  ASSERT_TRUE(device.free(to));
}

TEST(Pinned, MappedBytesCountForLimitsOfMemory) {
  const auto simulator = open_simulator("sm_86");
  StreamsDevice streams(**simulator, {});
  test::FaultyStreams device(streams);
  PinnedBytes pinned(device, {});
  const auto column = shared_bytes(numbers(1)), other = shared_bytes(numbers(2));  // 16,384 bytes each
  {
    CancelToken token({.bytes = 20000});
    const CancelScope scope(token);
    const auto first = pinned.mapped(column, nullptr);
    ASSERT_TRUE(first);
    const auto second = errors_of([&] { return pinned.mapped(other, nullptr); });
    EXPECT_FALSE(second);
    EXPECT_EQ(device.held, 1) << "nothing is pinned for what does not fit";
  }
  {
    const HostMemoryScope full([] { return uint64_t{1} << 10; });
    EXPECT_FALSE(errors_of([&] { return pinned.mapped(other, nullptr); })) << "the host has no room";
  }
  device.calls = 0, device.fails_at = 1;
  const auto refused = pinned.mapped(other, nullptr);
  EXPECT_FALSE(refused);
  EXPECT_EQ(refused.error().fault, Fault::world);
  device.fails_at = 0;
  EXPECT_TRUE(pinned.mapped(other, nullptr)) << "it is asked for again";
}

// What a control group leaves of the machine's memory, pages of files not counted as used.
TEST(Pinned, AControlGroupLimitsWhatIsAvailable) {
  namespace fs = std::filesystem;
  const fs::path root = fs::path(testing::TempDir()) / fmt::format("available_{}", getpid());
  const auto put = [&](const char* file, const char* text) {
    fs::create_directories((root / file).parent_path());
    std::ofstream(root / file) << text;
  };
  EXPECT_EQ(memory_available(root.string()), UINT64_MAX);
  put("proc/meminfo", "MemTotal: 900 kB\nMemFree: 100 kB\nMemAvailable: 800 kB\nBuffers: 5 kB\n");
  EXPECT_EQ(memory_available(root.string()), 800u << 10);
  put("sys/fs/cgroup/memory.max", "max\n");
  put("sys/fs/cgroup/memory.current", "500000\n");
  EXPECT_EQ(memory_available(root.string()), 800u << 10);
  put("sys/fs/cgroup/memory.max", "600000\n");
  EXPECT_EQ(memory_available(root.string()), 100000u);
  put("sys/fs/cgroup/memory.stat", "anon 7\nfile 9\ninactive_file 30000\nactive_file 5000\n");
  EXPECT_EQ(memory_available(root.string()), 135000u);
  put("sys/fs/cgroup/memory.current", "700000\n");
  EXPECT_EQ(memory_available(root.string()), 0u);
  fs::remove_all(root);
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "600000\n");
  put("sys/fs/cgroup/memory/memory.usage_in_bytes", "200000\n");
  EXPECT_EQ(memory_available(root.string()), 400000u);
  fs::remove_all(root);
}

// A copy that is under way when its column goes has happened before the memory does.
TEST(Pinned, CopiesReadItBeforeItGoes) {
  const Scenario run = [](StreamsDevice& device) {
    Buffers b(device);
    BufferPtr sent;
    {
      PinnedBytes pinned(device, {.least_bytes = 1});
      std::shared_ptr<data::Bytes> column = shared_bytes(numbers(3));
      (void)pinned.of(column, nullptr);
      const PinnedBytes::Source source = pinned.of(column, nullptr);
      EXPECT_TRUE(source.is_pinned);
      sent = b.send_from(source.from, column->size());
      column = nullptr;
      (void)pinned.of(shared_bytes(numbers(4)), nullptr);
      EXPECT_EQ(pinned.bytes(), 0u);
    }
    const BufferPtr read = b.work(*sent);
    return b.read(*read) == numbers(3);
  };
  EXPECT_EQ(expect_right(run), 1u);
}

// Programs on the engine. Each column is read by a kernel of its own, before the next one is sent:
// of two copies that one kernel reads the wait for the later one would do.
class Programs : public ::testing::Test {
 protected:
  Programs() {
    std::vector<int64_t> numbers(5000), others(3000);
    std::vector<std::string> texts;
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int64_t>(i * 7919 % 1000);
    for (size_t i = 0; i < others.size(); ++i) others[i] = static_cast<int64_t>(i * 31 % 500) - 100;
    for (size_t i = 0; i < 4000; ++i)
      texts.push_back(std::vector<std::string>{"red", "green", "blue"}[i % 3]);
    tables_.put("t", "a", hir::BasicType::i64, numbers);
    tables_.put("u", "b", hir::BasicType::i32, others);
    tables_.put("v", "s", true, texts);
  }
  void compile_body(const std::string& body, bool notes_work = false) {
    DiagnosticSink sink;
    Timings timings;
    CompileOptions options;
    options.target = "sm_86";
    options.notes_work = notes_work;
    auto compiled = compile(
        sources_.add("t.hir", "module m { import Builtin.*; def main() : table {" + body + "} }"),
        sources_, options, sink, timings);
    ASSERT_TRUE(compiled) << render(sink, sources_);
    compiled_ = *std::move(compiled);
    auto right = reference::run(compiled_.program, tables_, sources_, nullptr);
    ASSERT_TRUE(right) << right.error().message;
    right_ = *print_result(*right, Format::csv);
  }
  // `runs` times on one engine, whose columns leave the device in between where `cache` is false.
  bool run(StreamsDevice& device, int runs, bool cache) {
    Engine engine(device, tables_);
    Timings timings;
    auto plan =
        engine.plan(compiled_, sources_, {.measure_kernels = false, .cache = cache}, timings);
    EXPECT_TRUE(plan) << plan.error().message;
    for (int i = 0; i < runs; ++i) {
      auto got = engine.run(**plan, timings);
      if (!got || *print_result(*got, Format::csv) != right_) return false;
    }
    return true;
  }

  rndn::test::MadeTables tables_;
  SourceManager sources_;
  Compiled compiled_;
  std::string right_;
};

constexpr const char* three_tables = R"(
  t:? = @load_table(`t:sym); a:i64 = check_cast(@column_value(t, `a:sym), i64);
  m:? = @geq(a, 100:i64); ka:? = @compress(m, a); sa:? = @sum(ka);
  u:? = @load_table(`u:sym); b:i32 = check_cast(@column_value(u, `b:sym), i32);
  n:? = @lt(b, 250:i32); kb:? = @compress(n, b); sb:? = @sum(kb);
  v:? = @load_table(`v:sym); s:sym = check_cast(@column_value(v, `s:sym), sym);
  e:? = @eq(s, `green:sym); ks:? = @compress(e, s); c:? = @len(ks);
  l:? = @list(sa, sb, c); r:? = @table((`sa,`sb,`c):sym, l); return r;)";

TEST_F(Programs, ColumnsArriveBesideKernels) {
  ASSERT_NO_FATAL_FAILURE(compile_body(three_tables));
  const Scenario once = [&](StreamsDevice& device) { return run(device, 1, true); };
  const uint64_t waits = expect_right(once);
  EXPECT_GE(waits, 3u);
  expect_waits_needed(once, waits);
}

TEST_F(Programs, AgainFromTheDeviceFromTheHostAndAsAGraph) {
  ASSERT_NO_FATAL_FAILURE(compile_body(three_tables));
  const uint64_t once = expect_right([&](StreamsDevice& device) { return run(device, 1, true); });
  EXPECT_EQ(expect_right([&](StreamsDevice& device) { return run(device, 5, true); }), once)
      << "what is there is not waited for";
  expect_right([&](StreamsDevice& device) { return run(device, 3, false); });
}

// Columns that leave the device after each run: pinned when they are sent again, and then sent when the program names them.
TEST_F(Programs, ColumnsThatAreSentAgainArePinned) {
  std::vector<int64_t> numbers(20000), others(20000);
  std::vector<std::string> texts;
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<int64_t>(i * 7919 % 1000);
    others[i] = static_cast<int64_t>(i * 31 % 500) - 100;
    texts.push_back(std::vector<std::string>{"red", "green", "blue"}[i % 3]);
  }
  tables_.put("t", "a", hir::BasicType::i64, numbers);
  tables_.put("u", "b", hir::BasicType::i32, others);
  tables_.put("v", "s", true, texts);
  ASSERT_NO_FATAL_FAILURE(compile_body(three_tables));
  constexpr uint64_t a = 8 * 20000, b = 4 * 20000, s = 20000;  // s: fewer bytes than are pinned
  for (const StreamOrder& order : {StreamOrder{.policy = StreamOrder::work_first}, StreamOrder{.policy = StreamOrder::copies_first},
                                   StreamOrder{.policy = StreamOrder::random, .seed = 3}}) {
    auto simulator = open_simulator("sm_86");
    StreamsDevice device(**simulator, order);
    Engine engine(device, tables_);
    Timings timings;
    auto plan = engine.plan(compiled_, sources_, {.measure_kernels = false, .cache = false}, timings);
    ASSERT_TRUE(plan) << plan.error().message;
    uint64_t sent = 0, pinned = 0, stays = 0, peak = 0;
    for (int run = 0; run < 4; ++run) {
      auto got = engine.run(**plan, timings);
      ASSERT_TRUE(got) << got.error().message;
      EXPECT_EQ(*print_result(*got, Format::csv), right_) << "run " << run;
      EXPECT_EQ(engine.column_bytes() - sent, a + b + s) << "run " << run;
      EXPECT_EQ(engine.pinned_column_bytes() - pinned, run ? a + b : 0) << "run " << run;
      sent = engine.column_bytes(), pinned = engine.pinned_column_bytes();
      if (run == 0) stays = engine.device_bytes();
      EXPECT_EQ(engine.device_bytes(), stays) << "the plan's own: " << run;
      if (run == 1) peak = engine.peak_bytes();
      if (run > 1) EXPECT_EQ(engine.peak_bytes(), peak) << "pages that stay are used again: " << run;
      EXPECT_LT(stays, a);
    }
  }
}

// With the cache a column may be sent twice all the same, such as for another encoding: that it stays on the device is what counts.
TEST_F(Programs, ColumnsThatStayAreNotPinned) {
  tables_.put("t", "a", hir::BasicType::i64, std::vector<int64_t>(20000, 3));
  ASSERT_NO_FATAL_FAILURE(compile_body(three_tables));
  auto simulator = open_simulator("sm_86");
  StreamsDevice device(**simulator, {});
  Engine engine(device, tables_);
  Timings timings;
  for (int run = 0; run < 3; ++run)
    for (const Encode encode : {Encode::plain, Encode::narrow}) {
      auto plan = engine.plan(compiled_, sources_, {.measure_kernels = false, .cache = true, .encode = encode}, timings);
      ASSERT_TRUE(plan) << plan.error().message;
      const uint64_t sent = engine.column_bytes();
      auto got = engine.run(**plan, timings);
      ASSERT_TRUE(got) << got.error().message;
      EXPECT_EQ(*print_result(*got, Format::csv), right_);
      EXPECT_GT(engine.column_bytes(), sent);
      EXPECT_EQ(engine.pinned_column_bytes(), 0u);
    }
}

// --- Columns that kernels read in the host's memory

// Counts what comes over the bus.
class Counted final : public test::ForwardingDevice, public device::Streams {
 public:
  explicit Counted(StreamsDevice& to) : ForwardingDevice(to), streams_(to) {}
  uint64_t mapped_bytes = 0, launches = 0;
  Result<void> send(device::Address to, const void* from, uint64_t bytes) override { return streams_.send(to, from, bytes); }
  Result<device::Event> record_event(device::Stream stream) override { return streams_.record_event(stream); }
  Result<void> wait_event(device::Stream stream, device::Event event) override { return streams_.wait_event(stream, event); }
  Result<void> launch(device::KernelHandle k, device::Dim3 g, device::Dim3 b, uint32_t s, std::span<const std::byte> p) override {
    RETURN_IF_ERROR(ForwardingDevice::launch(k, g, b, s, p));
    if (is_recording) return {};
    RETURN_IF_ERROR(streams_.record_mark());  // it happens
    ++marks_;
    mapped_bytes += 32 * streams_.last_launch().mapped_load_sectors;
    ++launches;
    return {};
  }
  Result<void> begin_graph() override {
    is_recording = true;
    return ForwardingDevice::begin_graph();
  }
  Result<device::GraphHandle> end_graph() override {
    is_recording = false;
    return ForwardingDevice::end_graph();
  }
  uint64_t host_calls() const override { return ForwardingDevice::host_calls() - marks_; }
  bool is_recording = false;

 private:
  StreamsDevice& streams_;
  uint64_t marks_ = 0;
};

// b is read where a is 7, which is rare; c where it is not below 100, which is not.
constexpr const char* sparse = R"(
  t:? = @load_table(`t:sym); a:i64 = check_cast(@column_value(t, `a:sym), i64);
  b:i32 = check_cast(@column_value(t, `b:sym), i32); c:i32 = check_cast(@column_value(t, `c:sym), i32);
  m:? = @eq(a, 7:i64); kb:? = @compress(m, b); sb:? = @sum(kb);
  n:? = @geq(a, 100:i64); kc:? = @compress(n, c); sc:? = @sum(kc);
  l:? = @list(sb, sc); r:? = @table((`sb,`sc):sym, l); return r;)";

class Mapped : public Programs {
 protected:
  static constexpr uint64_t rows = 64000;
  void SetUp() override {
    std::vector<int64_t> a(rows), b(rows), c(rows);
    for (size_t i = 0; i < rows; ++i) {
      a[i] = static_cast<int64_t>(i * 7919 % 1000);
      b[i] = static_cast<int64_t>(i % 512) - 100;
      c[i] = static_cast<int64_t>(i * 31 % 500) - 100;
    }
    tables_.put("t", "a", hir::BasicType::i64, a);
    tables_.put("t", "b", hir::BasicType::i32, b);
    tables_.put("t", "c", hir::BasicType::i32, c);
    ASSERT_NO_FATAL_FAILURE(compile_body(sparse, true));
  }
};

// Where columns do not stay, those of which little is read are read where they are, from the second run on; and that is as much as was expected.
TEST_F(Mapped, WhatIsReadRarelyStaysWhereItIs) {
  auto simulator = open_simulator("sm_86");
  StreamsDevice streams(**simulator, {});
  Counted device(streams);
  Engine engine(device, tables_);
  Timings timings;
  const encodings::Stored in_bits{.kind = encodings::Kind::packed, .reference = -100, .bits = 9};
  for (const Encode encode : {Encode::narrow, Encode::packed})
    for (const Transfer transfer : {Transfer::automatic, Transfer::copied}) {
      auto plan = engine.plan(compiled_, sources_, {.measure_kernels = false, .cache = false, .encode = encode, .transfer = transfer}, timings);
      ASSERT_TRUE(plan) << plan.error().message;
      uint64_t b_bytes = 0;
      for (int run = 0; run < 4; ++run) {
        const uint64_t mapped = engine.mapped_column_bytes(), sent = engine.column_bytes();
        device.mapped_bytes = 0;
        auto got = engine.run(**plan, timings);
        ASSERT_TRUE(got) << got.error().message;
        EXPECT_EQ(*print_result(*got, Format::csv), right_) << "run " << run;
        const uint64_t now = engine.mapped_column_bytes() - mapped;
        if (transfer == Transfer::copied) {
          EXPECT_EQ(now, 0u);
          continue;
        }
        if (run == 0) continue;
        EXPECT_GT(now, 0u) << "run " << run;
        if (b_bytes) EXPECT_EQ(now, b_bytes);
        b_bytes = now;
        EXPECT_EQ(now, encode == Encode::narrow ? 4 * rows : encodings::find(in_bits).bytes(hir::BasicType::i32, in_bits, rows));
        EXPECT_GE(engine.column_bytes() - sent, encode == Encode::narrow ? 12 * rows : 2 * rows) << "a and c are sent";
        // As many rows have 7, each in a sector of its own.
        EXPECT_GE(device.mapped_bytes, 32 * rows / 1000);
        EXPECT_LE(device.mapped_bytes, 2 * 32 * rows / 1000);
      }
    }
}

// Forced, all are, whether they stay or not; nothing is copied, and the device has no memory of them.
TEST_F(Mapped, AllOfThemByForce) {
  for (const bool cache : {true, false}) {
    auto simulator = open_simulator("sm_86");
    StreamsDevice streams(**simulator, {});
    Counted device(streams);
    Engine engine(device, tables_);
    Timings timings;
    auto copied = engine.plan(compiled_, sources_, {.measure_kernels = false, .cache = true, .transfer = Transfer::copied}, timings);
    auto plan = engine.plan(compiled_, sources_, {.measure_kernels = false, .cache = cache, .transfer = Transfer::mapped}, timings);
    ASSERT_TRUE(plan && copied);
    ASSERT_TRUE(engine.run(**copied, timings));  // what it has sent is not what the other reads
    const uint64_t sent = engine.column_bytes(), with_columns = engine.device_bytes();
    for (int run = 0; run < 5; ++run) {
      device.mapped_bytes = device.launches = 0;
      auto got = engine.run(**plan, timings);
      ASSERT_TRUE(got) << got.error().message;
      EXPECT_EQ(*print_result(*got, Format::csv), right_) << "run " << run;
      EXPECT_EQ(engine.mapped_column_bytes(), (cache ? 1 : run + 1) * 16 * rows);
      if (device.launches) EXPECT_GE(device.mapped_bytes, 12 * rows) << "all of a, nearly all of c";
      if (run == 4) EXPECT_EQ(device.launches == 0, cache) << "a graph";
    }
    EXPECT_EQ(engine.column_bytes(), sent);
    EXPECT_LT(engine.device_bytes() + 8 * rows, with_columns);
  }
}

// A graph holds what it reads; after the memory has been given back it is pinned anew, and read where it is now.
TEST_F(Mapped, AGraphReadsNoMemoryThatIsGone) {
  auto simulator = open_simulator("sm_86");
  StreamsDevice device(**simulator, {});
  Engine engine(device, tables_);
  Timings timings;
  const EngineOptions how{.measure_kernels = false, .cache = true, .transfer = Transfer::mapped};
  auto plan = engine.plan(compiled_, sources_, how, timings), other = engine.plan(compiled_, sources_, {.measure_kernels = false, .transfer = Transfer::copied}, timings);
  ASSERT_TRUE(plan && other);
  const auto runs = [&](Engine::Plan& of, int times) {
    for (int run = 0; run < times; ++run) {
      auto got = engine.run(of, timings);
      ASSERT_TRUE(got) << got.error().message;
      EXPECT_EQ(*print_result(*got, Format::csv), right_) << "run " << run;
    }
  };
  ASSERT_NO_FATAL_FAILURE(runs(**plan, 4));
  ASSERT_NO_FATAL_FAILURE(runs(**other, 4));  // columns are dropped for it
  ASSERT_NO_FATAL_FAILURE(runs(**plan, 4));
  std::vector<std::shared_ptr<const data::Column>> columns;
  for (const char* name : {"a", "b", "c"}) columns.push_back(*tables_.column("t", name));
  engine.forget(columns);
  ASSERT_NO_FATAL_FAILURE(runs(**plan, 5));
  EXPECT_EQ(engine.mapped_column_bytes(), 3 * 16 * rows);
}

// Notes copies of columns and launches, in the order of the calls.
class Noted final : public test::ForwardingDevice, public device::Streams {
 public:
  explicit Noted(StreamsDevice& to) : ForwardingDevice(to), streams_(to) {}
  std::string noted;
  Result<void> send(device::Address to, const void* from, uint64_t bytes) override {
    if (bytes >= 64 << 10) noted += 's';
    return streams_.send(to, from, bytes);
  }
  Result<device::Event> record_event(device::Stream stream) override { return streams_.record_event(stream); }
  Result<void> wait_event(device::Stream stream, device::Event event) override { return streams_.wait_event(stream, event); }
  Result<void> launch(device::KernelHandle k, device::Dim3 g, device::Dim3 b, uint32_t s, std::span<const std::byte> p) override {
    noted += 'l';
    return ForwardingDevice::launch(k, g, b, s, p);
  }

 private:
  StreamsDevice& streams_;
};

TEST_F(Programs, PinnedColumnsGoBeforeTheirFirstUse) {
  tables_.put("t", "a", hir::BasicType::i64, std::vector<int64_t>(20000, 3));
  tables_.put("u", "b", hir::BasicType::i32, std::vector<int64_t>(30000, 4));
  ASSERT_NO_FATAL_FAILURE(compile_body(R"(
    t:? = @load_table(`t:sym); a:i64 = check_cast(@column_value(t, `a:sym), i64);
    u:? = @load_table(`u:sym); b:i32 = check_cast(@column_value(u, `b:sym), i32);
    m:? = @geq(a, 1:i64); ka:? = @compress(m, a); sa:? = @sum(ka); n:? = @lt(b, 250:i32); kb:? = @compress(n, b); sb:? = @sum(kb);
    l:? = @list(sa, sb); r:? = @table((`sa,`sb):sym, l); return r;)"));
  for (const bool cache : {false, true}) {
    auto simulator = open_simulator("sm_86");
    StreamsDevice streams(**simulator, {});
    Noted device(streams);
    Engine engine(device, tables_);
    Timings timings;
    auto plan = engine.plan(compiled_, sources_, {.measure_kernels = false, .cache = cache}, timings);
    ASSERT_TRUE(plan) << plan.error().message;
    for (int run = 0; run < 5; ++run) {
      device.noted.clear();
      auto got = engine.run(**plan, timings);
      ASSERT_TRUE(got) << got.error().message;
      EXPECT_EQ(*print_result(*got, Format::csv), right_) << "run " << run;
      const std::string sends_first = device.noted.substr(0, 2);
      EXPECT_EQ(std::count(device.noted.begin(), device.noted.end(), 's'), cache && run ? 0 : 2) << device.noted;
      EXPECT_EQ(sends_first == "ss", !cache && run >= 2) << device.noted << ", run " << run;
    }
  }
}

// A run whose work is cancelled in the middle of a column that is sent; then one that makes something of another column in the same memory.
TEST_F(Programs, AfterACancelledSendMemoryIsUsedAgain) {
  std::vector<int64_t> few(20000), wide(30000);
  for (size_t i = 0; i < few.size(); ++i) few[i] = static_cast<int64_t>(i * 7919 % 1000);
  for (size_t i = 0; i < wide.size(); ++i) wide[i] = static_cast<int64_t>(i * 0x9e3779b97f4a7c15 >> 8);
  tables_.put("t", "a", hir::BasicType::i64, few);
  tables_.put("u", "b", hir::BasicType::i64, wide);
  const std::string a = "t:? = @load_table(`t:sym); a:i64 = check_cast(@column_value(t, `a:sym), i64); ";
  const std::string b = "u:? = @load_table(`u:sym); b:i64 = check_cast(@column_value(u, `b:sym), i64); ";
  const std::string bodies[] = {a + "r:? = @sum(a); l:? = @list(r); o:? = @table(`r:sym, l); return o;",
                                b + "r:? = @sum(b); l:? = @list(r); o:? = @table(`r:sym, l); return o;",
                                a + "n:? = @order(a, 1:bool); l:? = @list(n); o:? = @table(`r:sym, l); return o;"};
  Compiled compiled[3];
  std::string right[3];
  for (size_t k = 0; k < 3; ++k) {
    ASSERT_NO_FATAL_FAILURE(compile_body(bodies[k]));
    compiled[k] = std::move(compiled_);
    right[k] = right_;
  }
  for (const bool cache : {true, false})
    for (const StreamOrder& order : all_orders()) {
      SCOPED_TRACE(fmt::format("cache {}, policy {}, seed {}", cache, static_cast<int>(order.policy), order.seed));
      auto simulator = open_simulator("sm_86");
      StreamsDevice streams(**simulator, order);
      CancelledSends device(streams);
      Engine engine(device, tables_);
      Timings timings;
      std::unique_ptr<Engine::Plan> plans[3];
      for (size_t k = 0; k < 3; ++k) {
        auto plan = engine.plan(compiled[k], sources_, {.measure_kernels = false, .cache = cache}, timings);
        ASSERT_TRUE(plan) << plan.error().message;
        plans[k] = *std::move(plan);
      }
      const auto is_right = [&](size_t k) {
        auto got = engine.run(*plans[k], timings);
        return got && *print_result(*got, Format::csv) == right[k];
      };
      EXPECT_TRUE(is_right(0));
      device.is_cancelled = true;
      const auto got = engine.run(*plans[1], timings);
      ASSERT_FALSE(got);
      EXPECT_EQ(got.error().cause, Cause::cancelled);
      device.is_cancelled = false;
      EXPECT_TRUE(is_right(2));
      EXPECT_TRUE(is_right(1));
    }
}

// Texts without a dictionary, where they lie and their bytes: beside the work, counted, pinned when they are sent again.
TEST_F(Programs, TextsArriveBesideKernels) {
  std::vector<std::string> texts;
  uint64_t bytes = 0;
  for (size_t i = 0; i < 20000; ++i) bytes += texts.emplace_back(fmt::format("t{}{}", i * 7919 % 20011, i == 19999 ? "-1!" : "")).size();
  ASSERT_NE(bytes % 8, 0u) << "words end with zeros";
  tables_.put("w", "n", false, texts);
  ASSERT_NO_FATAL_FAILURE(compile_body(R"(
    w:? = @load_table(`w:sym); n:str = check_cast(@column_value(w, `n:sym), str);
    m:? = @like(n, "%1!":str); k:? = @compress(m, n); l:? = @list(k); r:? = @table(`k:sym, l); return r;)"));
  ASSERT_NE(right_.find("-1!"), right_.npos);
  for (const StreamOrder& order : {StreamOrder{.policy = StreamOrder::work_first}, StreamOrder{.policy = StreamOrder::copies_first},
                                   StreamOrder{.policy = StreamOrder::random, .seed = 3}}) {
    auto simulator = open_simulator("sm_86");
    StreamsDevice device(**simulator, order);
    Engine engine(device, tables_);
    Timings timings;
    auto plan = engine.plan(compiled_, sources_, {.measure_kernels = false, .cache = false}, timings);
    ASSERT_TRUE(plan) << plan.error().message;
    for (uint64_t run = 1; run <= 3; ++run) {
      auto got = engine.run(**plan, timings);
      ASSERT_TRUE(got) << got.error().message;
      EXPECT_EQ(*print_result(*got, Format::csv), right_) << "run " << run;
      EXPECT_EQ(engine.column_bytes(), run * (8 * texts.size() + bytes));
      EXPECT_EQ(engine.pinned_column_bytes(), (run - 1) * (8 * texts.size() + bytes));
    }
  }
}

// A device whose copies notice that the work is cancelled, as loops of a launch do.
class Cancelling final : public test::ForwardingDevice {
 public:
  using test::ForwardingDevice::ForwardingDevice;
  Result<void> copy(device::Address, device::Address, uint64_t) override {
    throw Cancelled{Error{Fault::interrupted, "cancelled"}.as(Cause::cancelled)};
  }
  Result<void> free(device::Address address) override {
    ++freed;
    return test::ForwardingDevice::free(address);
  }
  int freed = 0;
};

TEST(Streams, WhatIsQueuedWhenWorkIsCancelledThrowsNothingAndIsFreed) {
  auto simulator = open_simulator("sm_86");
  Cancelling below(**simulator);
  for (bool freed_first : {false, true}) {
    StreamsDevice device(below, {});
    const device::Address from = *device.allocate(256), to = *device.allocate(256);
    EXPECT_TRUE(device.copy(to, from, 256));
    EXPECT_TRUE(device.copy(from, to, 256));
    if (!freed_first) continue;  // both copies are left to the destructor
    const Result<void> done = device.free(to);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().cause, Cause::cancelled);
    EXPECT_EQ(below.freed, 1);
    EXPECT_TRUE(device.free(from));
    EXPECT_EQ(below.freed, 2);
  }
}

}  // namespace
}  // namespace rndn::runtime::streams_test
