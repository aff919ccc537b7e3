// Results that stay on the device (runtime/memory/result_memory.h), on the simulator: what is copied
// and when, what a vector outlives, and who gives its memory back; and what
// sessions give back.
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "runtime/device/sharing.h"
#include "runtime/memory/result_memory.h"
#include "runtime/session/session.h"
#include "runtime/simulator/simulator_device.h"
#include "tests/runtime/forwarding_device.h"

namespace rndn::runtime::results_test {
namespace {

constexpr int64_t rows = 20'000, selected = 15'000;
constexpr const char* program = R"(module m { import Builtin.*; def main() : table {
  a:? = @range(20000:i64);
  b:? = @mul(a, 3:i64);
  m:? = @geq(b, 15000:i64);
  x:? = @compress(m, b);
  h:? = @mul(b, 0.5:f64);
  y:? = @compress(m, h);
  c:? = @list(x, y);
  r:? = @table((`x,`y):sym, c);
  return r; } })";

// Counts what comes to the host and what is allocated.
struct Counts {
  uint64_t to_host = 0, allocated = 0;
};
class CountingDevice final : public test::ForwardingDevice {
 public:
  CountingDevice(std::unique_ptr<device::Device> to, std::shared_ptr<Counts> counts)
      : ForwardingDevice(*to), own_(std::move(to)), counts_(std::move(counts)) {}
  Result<device::Address> allocate(uint64_t n) override {
    ++counts_->allocated;
    return to_.allocate(n);
  }
  Result<void> free(device::Address a) override {
    --counts_->allocated;
    return to_.free(a);
  }
  Result<void> copy_to_host(void* to, device::Address a, uint64_t n) override {
    counts_->to_host += n;
    return to_.copy_to_host(to, a, n);
  }

 private:
  const std::unique_ptr<device::Device> own_;
  const std::shared_ptr<Counts> counts_;
};

// As a GPU is: a thread uses it once it has attached itself, and gives nothing back before.
class BoundDevice final : public test::ForwardingDevice, public device::Sharing {
 public:
  BoundDevice(std::unique_ptr<device::Device> to, std::shared_ptr<Counts> counts)
      : ForwardingDevice(*to), own_(std::move(to)), counts_(std::move(counts)) {}
  Result<void> attach() override {
    user_ = std::this_thread::get_id();
    return {};
  }
  int ordinal() const override { return 0; }
  Result<device::Address> allocate(uint64_t n) override {
    RETURN_IF_ERROR(check());
    return taken(to_.allocate(n));
  }
  Result<device::Mapped> allocate_mapped(uint64_t n) override {
    RETURN_IF_ERROR(check());
    return taken(to_.allocate_mapped(n));
  }
  Result<device::ModuleHandle> load_module(std::span<const std::byte> cubin) override {
    RETURN_IF_ERROR(check());
    return taken(to_.load_module(cubin));
  }
  Result<void> free(device::Address a) override { return given(to_.free(a)); }
  Result<void> free_mapped(const device::Mapped& m) override { return given(to_.free_mapped(m)); }
  Result<void> unload_module(device::ModuleHandle m) override { return given(to_.unload_module(m)); }

 private:
  Result<void> check() const {
    if (user_ == std::this_thread::get_id()) return {};
    return Error{Fault::internal, "a thread that is not attached"};
  }
  template <class T>
  T taken(T result) {
    counts_->allocated += result ? 1 : 0;
    return result;
  }
  Result<void> given(Result<void> result) {
    RETURN_IF_ERROR(check());
    --counts_->allocated;
    return result;
  }

  const std::unique_ptr<device::Device> own_;
  const std::shared_ptr<Counts> counts_;
  std::thread::id user_ = std::this_thread::get_id();
};

class Results : public testing::Test {
 protected:
  void SetUp() override {
    auto simulator = open_simulator("sm_86");
    ASSERT_TRUE(simulator) << simulator.error().message;
    choice_ = std::make_shared<DeviceChoice>(DeviceChoice::of(
        std::make_unique<CountingDevice>(*std::move(simulator), counts_)));
    memory_ = std::make_shared<ResultMemory>(
        choice_, ResultMemory::Options{.least_bytes = 1, .simulated = true});
    open();
  }
  void open() {
    session_ = std::make_unique<Session>(nullptr, choice_,
                                         SessionOptions{.file_cache = "", .say = [](const std::string&) {}});
  }
  // The columns x and y.
  std::vector<data::Value> run(bool stay = true) {
    const ResultMemory::Scope scope(memory_.get(), stay);
    auto outcome = session_->run({"m", "m.hir", program}, {});
    EXPECT_TRUE(outcome) << outcome.error().message;
    return outcome ? outcome->results.at(0).parts() : std::vector<data::Value>(2);
  }
  static void expect_right(const std::vector<data::Value>& columns) {
    for (const data::Value& column : columns) ASSERT_EQ(column.size, uint64_t{selected});
    for (int64_t i = 0; i < selected; ++i) {
      ASSERT_EQ(columns[0].as<int64_t>()[i], (rows - selected + i) * 3) << i;
      ASSERT_EQ(columns[1].as<double>()[i], static_cast<double>((rows - selected + i) * 3) / 2) << i;
    }
  }
  void fetch(const std::vector<data::Value>& columns) {
    for (const data::Value& column : columns) {
      const auto there = memory_->find(column);
      ASSERT_TRUE(there);
      ASSERT_TRUE(there->fetch());
    }
  }

  const std::shared_ptr<Counts> counts_ = std::make_shared<Counts>();
  std::shared_ptr<DeviceChoice> choice_;
  std::shared_ptr<ResultMemory> memory_;
  std::unique_ptr<Session> session_;
};

TEST_F(Results, ComeToTheHostWhenTheyAreAskedFor) {
  const uint64_t before = counts_->to_host;
  const auto columns = run();
  EXPECT_LT(counts_->to_host - before, uint64_t{selected});
  EXPECT_EQ(memory_->bytes(), uint64_t{2 * 8 * selected});
  std::vector<int64_t> first(2);
  ASSERT_TRUE(memory_->find(columns[0])->read(first.data(), 16));
  EXPECT_EQ(first[1] - first[0], 3);
  EXPECT_FALSE(memory_->find(columns[0])->is_fetched());
  EXPECT_DEATH((void)(columns[0].as<volatile int64_t>()[0] + 1), "") << "who forgets it stops";
  fetch(columns);
  EXPECT_GE(counts_->to_host - before, uint64_t{2 * 8 * selected});
  expect_right(columns);
}

TEST_F(Results, StayOnTheHostWhereTheyAreToBeReadThere) {
  const auto columns = run(false);
  EXPECT_FALSE(memory_->find(columns[0]));
  expect_right(columns);
  const ResultMemory::Scope scope(memory_.get(), true);
  EXPECT_EQ(ResultMemory::for_results(), memory_.get());
  {
    const ResultMemory::OnHost read_here;
    EXPECT_EQ(ResultMemory::for_results(), nullptr);
    EXPECT_EQ(ResultMemory::current(), memory_.get());
  }
  EXPECT_EQ(ResultMemory::for_results(), memory_.get());
}

// From the third run on a program may be a graph, which writes where it wrote before.
TEST_F(Results, AreNotWrittenByLaterRuns) {
  std::vector<std::vector<data::Value>> all;
  std::set<device::Address> places;
  for (int i = 0; i < 6; ++i) {
    all.push_back(run());
    places.insert(*memory_->find(all.back()[0])->pin());
  }
  EXPECT_EQ(places.size(), all.size());
  for (const auto& columns : all) {
    fetch(columns);
    expect_right(columns);
  }
}

TEST_F(Results, OutliveTheirSession) {
  const auto columns = run();
  session_.reset();
  choice_.reset();
  fetch(columns);
  expect_right(columns);
}

TEST_F(Results, GiveTheirMemoryBackInAnyThread) {
  auto columns = run();
  const uint64_t allocated = counts_->allocated;
  std::thread([gone = std::exchange(columns[0], {})]() mutable { gone = {}; }).join();
  EXPECT_EQ(memory_->bytes(), uint64_t{8 * selected});
  EXPECT_EQ(counts_->allocated, allocated - 1);
  {
    std::lock_guard a_call(memory_->in_use());  // which uses the device in this thread
    std::thread([gone = std::exchange(columns[1], {})]() mutable { gone = {}; }).join();
    EXPECT_EQ(memory_->bytes(), uint64_t{8 * selected}) << "it waits for the end of the call";
    memory_->collect();
  }
  EXPECT_EQ(memory_->bytes(), 0u);
  EXPECT_EQ(counts_->allocated, allocated - 2);
}

TEST_F(Results, AreTakenBackByAFullDeviceUnlessSomebodyHasThem) {
  const auto columns = run();
  const auto held = memory_->find(columns[0]);
  const device::Address place = *held->pin();
  EXPECT_TRUE(memory_->give_up());
  EXPECT_FALSE(memory_->give_up());
  EXPECT_EQ(memory_->bytes(), uint64_t{8 * selected});
  EXPECT_TRUE(memory_->find(columns[1])->is_fetched());
  EXPECT_FALSE(held->is_fetched());
  EXPECT_EQ(*held->pin(), place);
  EXPECT_TRUE(memory_->find(columns[1])->pin()) << "it is sent again";
  EXPECT_EQ(memory_->bytes(), uint64_t{2 * 8 * selected});
  fetch(columns);
  expect_right(columns);
}

TEST_F(Results, TakeTheirPartOfALimit) {
  ASSERT_TRUE(choice_->limit_memory(8 << 20));
  open();
  std::vector<std::vector<data::Value>> all;
  size_t stayed = 0;
  for (int i = 0; i < 60; ++i) {  // 60 times 240 KB
    all.push_back(run());
    stayed += memory_->find(all.back()[0]) != nullptr;
    ASSERT_LE(memory_->bytes(), uint64_t{8 << 20});
  }
  EXPECT_GT(stayed, 0u);
  for (const auto& columns : all) {
    for (const data::Value& column : columns)
      if (const auto there = memory_->find(column)) ASSERT_TRUE(there->fetch());
    expect_right(columns);
  }
}

TEST_F(Results, OfTheHostAreSent) {
  const std::vector<int64_t> numbers{1, 2, 3};
  const auto sent = memory_->send(**choice_->open(), numbers.data(), 24);
  ASSERT_TRUE(sent) << sent.error().message;
  std::vector<int64_t> back(3);
  ASSERT_TRUE((*sent)->read(back.data(), 24));
  EXPECT_EQ(back, numbers);
  EXPECT_EQ(memory_->bytes(), 24u);
}

// What a session has on the device, its plans and kernels, is not the device's last owner's to free.
TEST(Sessions, GiveBackWhatTheyHaveOnTheDeviceInAnyThread) {
  const auto counts = std::make_shared<Counts>();
  auto simulator = open_simulator("sm_86");
  ASSERT_TRUE(simulator) << simulator.error().message;
  const auto choice = std::make_shared<DeviceChoice>(
      DeviceChoice::of(std::make_unique<BoundDevice>(*std::move(simulator), counts)));
  auto session = std::make_unique<Session>(
      nullptr, choice, SessionOptions{.file_cache = "", .say = [](const std::string&) {}});
  ASSERT_TRUE(session->run({"m", "m.hir", program}, {}));
  EXPECT_GT(counts->allocated, 2u);
  std::thread([gone = std::move(session)]() mutable { gone.reset(); }).join();
  EXPECT_EQ(counts->allocated, 0u);
}

}  // namespace
}  // namespace rndn::runtime::results_test
