// Columns that lie in bits on the device and, after a run, on the host too: their elements come back
// when the host reads them, for whoever reads them first, and whoever had them before keeps them.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <thread>

#include "libraries/base/system/files.h"
#include "libraries/base/system/host_memory.h"
#include "runtime/session/session.h"
#include "tpch/source.h"

namespace rndn::runtime::packed_columns_test {
namespace {

using Columns = std::vector<std::shared_ptr<const data::Column>>;

Result<std::string> answer_of(Session& session, int query, bool* by_ranges = nullptr) {
  const std::string file = fmt::format("tpch/queries/q{:02}.hir", query);
  auto text = read_file(std::string(RNDN_SOURCE_DIR "/") + file);
  if (!text) return text.error();
  RunOptions options;
  options.engine.encode = Encode::packed;
  options.reports = by_ranges != nullptr;
  ASSIGN_OR_RETURN(const auto outcome, session.run({"q", file, *text}, options));
  if (by_ranges)
    for (const KernelReport& k : outcome.reports.front().kernels) *by_ranges |= k.name.find("range/") != k.name.npos;
  return print(outcome, Format::csv);
}

std::unique_ptr<Session> session_of(std::shared_ptr<data::Source> source, const char* device,
                                    uint64_t device_memory = UINT64_MAX) {
  auto choice = DeviceChoice::start(device, "", [](const std::string&) {});
  EXPECT_TRUE(choice);
  if (device_memory != UINT64_MAX) {
    EXPECT_TRUE(choice->limit_memory(device_memory));
  }
  return std::make_unique<Session>(std::move(source), *std::move(choice),
                                   SessionOptions{.say = [](const std::string&) {}});
}

uint64_t bytes_here(const Columns& columns) {
  uint64_t bytes = 0;
  for (const auto& c : columns)
    for (const auto& part : {c->data, c->foreign_rows})
      if (part && part->are_here()) bytes += part->size();
  return bytes;
}

TEST(PackedColumns, AreOnTheHostInBitsAlone) {
  constexpr int queries[] = {1, 3, 12};
  auto right_source = tpch::open_source("tpch:0.02", {.progress = false});
  auto source = tpch::open_source("tpch:0.02", {.progress = false});
  ASSERT_TRUE(right_source && source);
  const auto reference = session_of(*right_source, "cpu"), session = session_of(*source, "sim");
  std::vector<std::string> right;
  for (const int q : queries) {
    const auto answer = answer_of(*reference, q);
    ASSERT_TRUE(answer) << answer.error().message;
    right.push_back(*answer);
  }
  const auto are_right = [&](Session& s, const char* when) {
    for (size_t i = 0; i < std::size(queries); ++i) {
      const auto answer = answer_of(s, queries[i]);
      ASSERT_TRUE(answer) << answer.error().message;
      EXPECT_EQ(*answer, right[i]) << when << ", query " << queries[i];
    }
  };
  // What somebody holds before the first run.
  const auto held = (*source)->column("lineitem", "l_quantity");
  ASSERT_TRUE(held);
  const double* quantities = (*held)->as<double>();

  are_right(*session, "first runs");
  const Columns all = (*right_source)->loaded(), packed = (*source)->loaded();
  ASSERT_EQ(all.size(), packed.size());
  EXPECT_LT(bytes_here(packed), bytes_here(all) / 4);
  EXPECT_EQ((*held)->as<double>(), quantities) << "as long as it is held";
  are_right(*session, "the host has the bits alone");
  EXPECT_LT(bytes_here((*source)->loaded()), bytes_here(all) / 4) << "nothing asked for more";

  // Two threads are the first readers.
  const Columns again = (*source)->loaded();
  const auto read = [&] {
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(*all[i]->data, *again[i]->data) << i;
      EXPECT_EQ(!all[i]->foreign_rows, !again[i]->foreign_rows);
      if (all[i]->foreign_rows) {
        EXPECT_EQ(*all[i]->foreign_rows, *again[i]->foreign_rows) << i;
      }
    }
  };
  std::thread other(read);
  read();
  other.join();
  EXPECT_EQ(bytes_here(again), bytes_here(all));
  are_right(*session, "the host has read them");
  EXPECT_EQ(bytes_here((*source)->loaded()), bytes_here(all)) << "what it read stays";

  // Another device that has nothing yet; then the reference interpreter over what that leaves.
  auto fresh = tpch::open_source("tpch:0.02", {.progress = false});
  ASSERT_TRUE(fresh);
  are_right(*session_of(*fresh, "sim"), "the first device");
  are_right(*session_of(*fresh, "sim"), "the second device");
  are_right(*session_of(*fresh, "cpu"), "the interpreter");
}

// Queries by ranges make the elements of a range alone. What the host lacks is given back by columns that it can make again;
// then the query ends with sizes, at whatever it was about to allocate, and the next one is right.
TEST(PackedColumns, AreMadeByRanges) {
  constexpr int queries[] = {18, 21};
  auto source = tpch::open_source("tpch:0.01", {.progress = false}), others = tpch::open_source("tpch:0.01", {.progress = false});
  ASSERT_TRUE(source && others);
  const auto reference = session_of(*others, "cpu"), session = session_of(*source, "sim", 640 << 10);
  std::vector<std::string> right;
  for (const int q : queries) {
    const auto answer = answer_of(*reference, q);
    ASSERT_TRUE(answer) << answer.error().message;
    right.push_back(*answer);
  }
  for (const int q : {6, 12}) {  // whole: their columns are in bits from here on
    bool by_ranges = false;
    const auto answer = answer_of(*session, q, &by_ranges);
    ASSERT_TRUE(answer) << answer.error().message;
    ASSERT_FALSE(by_ranges) << q;
  }
  const auto here = [&] {  // of the columns in bits
    Columns columns;
    for (const auto& c : (*source)->loaded())
      if ((c->data && c->data->is_on_demand()) || (c->foreign_rows && c->foreign_rows->is_on_demand())) columns.push_back(c);
    EXPECT_GE(columns.size(), 5u);
    return bytes_here(columns);
  };
  const uint64_t in_bits = here();
  uint64_t asked = 0, available = UINT64_MAX, fewer_from = UINT64_MAX, fewer_to = UINT64_MAX;
  const HostMemoryScope scope([&] { return ++asked, asked >= fewer_from && asked < fewer_to ? available : UINT64_MAX; });
  std::vector<uint64_t> asks;
  for (size_t i = 0; i < std::size(queries); ++i) {
    for (int run = 0; run < 2; ++run) {  // the second knows what fits
      asked = 0;
      bool by_ranges = false;
      const auto answer = answer_of(*session, queries[i], &by_ranges);
      ASSERT_TRUE(answer) << answer.error().message;
      EXPECT_TRUE(by_ranges) << queries[i];
      EXPECT_EQ(*answer, right[i]) << queries[i];
    }
    asks.push_back(asked);
    EXPECT_EQ(here(), in_bits) << "query " << queries[i] << " has made whole columns";
  }
  available = 0;
  for (size_t i = 0; i < std::size(queries); ++i) {
    asked = 0, fewer_from = asks[i] / 2;
    const auto none = answer_of(*session, queries[i]);
    fewer_from = UINT64_MAX;
    ASSERT_FALSE(none) << queries[i];
    EXPECT_EQ(none.error().exit_code(), 3);
    EXPECT_NE(none.error().message.find("the host has 0 bytes of memory left, and "), std::string::npos)
        << none.error().message;
    const auto answer = answer_of(*session, queries[i]);
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(*answer, right[i]) << queries[i] << " after an error";
  }
  // Once too little: what the host has made goes, and the query runs.
  for (const auto& c : (*source)->loaded()) (void)c->data->data();
  ASSERT_GT(here(), in_bits);
  asked = 0, available = 0, fewer_from = asks[0] / 2, fewer_to = asks[0] / 2 + 1;
  const auto answer = answer_of(*session, queries[0]);
  fewer_from = UINT64_MAX;
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(*answer, right[0]);
  EXPECT_EQ(here(), in_bits);
}

}  // namespace
}  // namespace rndn::runtime::packed_columns_test
