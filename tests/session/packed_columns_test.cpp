// Columns that lie in bits on the device and, after a run, on the host too: their elements come back
// when the host reads them, for whoever reads them first, and whoever had them before keeps them.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <thread>

#include "libraries/base/system/files.h"
#include "runtime/session/session.h"
#include "tpch/source.h"

namespace rndn::runtime::packed_columns_test {
namespace {

using Columns = std::vector<std::shared_ptr<const data::Column>>;

Result<std::string> answer_of(Session& session, int query) {
  const std::string file = fmt::format("tpch/queries/q{:02}.hir", query);
  auto text = read_file(std::string(RNDN_SOURCE_DIR "/") + file);
  if (!text) return text.error();
  RunOptions options;
  options.engine.encode = Encode::packed;
  ASSIGN_OR_RETURN(const auto outcome, session.run({"q", file, *text}, options));
  return print(outcome, Format::csv);
}

std::unique_ptr<Session> session_of(std::shared_ptr<data::Source> source, const char* device) {
  auto choice = DeviceChoice::start(device, "", [](const std::string&) {});
  EXPECT_TRUE(choice);
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

}  // namespace
}  // namespace rndn::runtime::packed_columns_test
