// Random Arrow streams, right ones and wrong ones: cells come out as they went in, what is wrong is
// an error of the input, whatever is read lies within what it is of, and everything is released.
#include <gtest/gtest.h>

#include "runtime/data/arrow.h"
#include "runtime/data/source.h"
#include "tests/support/random_arrow.h"
#include "tests/support/random_seeds.h"

namespace rndn::data {
namespace {

using rndn::testing::RandomArrow;

std::string cell(const Column& c, uint64_t row) {
  if (hir::is_text(c.type)) return std::string(c.text_at(row));
  int64_t value = 0;
  std::memcpy(&value, c.data->data() + row * c.width, c.width);
  const unsigned spare = 64 - 8 * c.width;
  return std::to_string(static_cast<int64_t>(static_cast<uint64_t>(value) << spare) >> spare);
}

void expect_cells(const RandomArrow::Column& wanted, const Column& got) {
  ASSERT_EQ(wanted.cells.size(), got.rows);
  for (uint64_t row = 0; row < got.rows; ++row) {
    const bool there = !got.validity || (*got.validity)[row] == std::byte{1};
    ASSERT_EQ(there, wanted.cells[row].has_value()) << row;
    if (there) {
      ASSERT_EQ(cell(got, row), *wanted.cells[row]) << row;
    }
  }
}

TEST(RandomArrow, StreamsAreReadOrRefused) {
  uint64_t right = 0, refused = 0;
  const unsigned rounds = rndn::testing::random_seeds(3000);
  for (unsigned seed = 0; seed < rounds && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    RandomArrow made(random);
    const bool is_wrong = seed % 2;
    auto loader = open_arrow("t", ArrowStream(made.stream({.is_wrong = is_wrong})));
    if (!loader) {
      EXPECT_EQ(loader.error().fault, Fault::input) << loader.error().message;
      EXPECT_NE(loader.error().message, "");
      const bool has_types =
          loader.error().message.find("of a type that SQL has") == std::string::npos;
      EXPECT_TRUE(is_wrong || !has_types) << loader.error().message;
      EXPECT_EQ(made.held(), 0);
      ++refused;
      continue;
    }
    {
      Source source(*std::move(loader));
      const TableSchema& table = source.schema().tables[0];
      for (const ColumnSchema& column : table.columns) {
        auto loaded = source.column("t", column.name);
        if (!loaded) {
          EXPECT_EQ(loaded.error().fault, Fault::input) << loaded.error().message;
          ++refused;
          continue;
        }
        const Column& c = **loaded;
        ASSERT_EQ(c.rows, *source.rows("t"));
        ASSERT_EQ(c.data->size(), c.rows * c.width);
        ASSERT_TRUE(!c.validity || c.validity->size() == c.rows);
        uint64_t characters = 0;
        for (uint64_t row = 0; hir::is_text(c.type) && row < c.rows; ++row)
          for (const char letter : c.text_at(row)) characters += letter != 0;
        EXPECT_LT(characters, 1u << 20);
        if (is_wrong) continue;
        for (const RandomArrow::Column& wanted : made.columns())
          if (wanted.name == column.name && wanted.has_cells) expect_cells(wanted, c);
        ++right;
      }
    }
    EXPECT_EQ(made.held(), 0);
  }
  EXPECT_GT(right, rounds / 3);
  EXPECT_GT(refused, rounds / 4);
}

}  // namespace
}  // namespace rndn::data
