// One random Arrow stream through what reads such: cells come out as they went in, what is wrong is an
// error of the input that names its column, whatever is read lies within what it is of, and
// everything is released. For tests, and for the fuzzer, whose failures end it (fuzz_arrow.cpp).
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libraries/base/report/utf8.h"
#include "runtime/data/arrow.h"
#include "runtime/data/source.h"
#include "tests/support/random_arrow.h"

namespace rndn::data {

using rndn::testing::RandomArrow;

inline std::string cell(const Column& c, uint64_t row) {
  if (hir::is_text(c.type)) return std::string(c.text_at(row));
  int64_t value = 0;
  std::memcpy(&value, c.data->data() + row * c.width, c.width);
  const unsigned spare = 64 - 8 * c.width;
  return std::to_string(static_cast<int64_t>(static_cast<uint64_t>(value) << spare) >> spare);
}

inline void expect_cells(const RandomArrow::Column& wanted, const Column& got) {
  ASSERT_EQ(wanted.cells.size(), got.rows);
  for (uint64_t row = 0; row < got.rows; ++row) {
    const bool there = !got.validity || (*got.validity)[row] == std::byte{1};
    ASSERT_EQ(there, wanted.cells[row].has_value()) << row;
    if (there) {
      ASSERT_EQ(cell(got, row), *wanted.cells[row]) << row;
    }
  }
}

// Columns that were read with the right cells, and what was refused.
struct StreamRun {
  uint64_t right = 0, refused = 0;
};
inline StreamRun read_random_stream(rndn::testing::Choices& random, bool is_wrong) {
  StreamRun run;
  RandomArrow made(random);
  auto loader = open_arrow("t", ArrowStream(made.stream({.is_wrong = is_wrong})));
  if (!loader) {
    const std::string& said = loader.error().message;
    EXPECT_EQ(loader.error().fault, Fault::input) << said;
    EXPECT_THAT(said, ::testing::StartsWith("table `t`: "));
    EXPECT_TRUE(is_utf8(said)) << said;
    EXPECT_TRUE(is_wrong || said.find("of a type that SQL has") != said.npos) << said;
    EXPECT_EQ(made.held(), 0);
    return {.refused = 1};
  }
  {
    Source source(*std::move(loader));
    const TableSchema& table = source.schema().tables[0];
    for (const ColumnSchema& column : table.columns) {
      bool is_text_wrong = false;
      const RandomArrow::Column* wanted = nullptr;
      for (const RandomArrow::Column& c : made.columns())
        if (!is_wrong && c.name == column.name && c.has_cells) wanted = &c;
      if (wanted)
        for (const auto& value : wanted->cells) is_text_wrong |= value && !is_utf8(*value);
      auto loaded = source.column("t", column.name);
      if (!loaded) {
        EXPECT_EQ(loaded.error().fault, Fault::input) << loaded.error().message;
        EXPECT_THAT(loaded.error().message, ::testing::HasSubstr("column `" + column.name + "`"));
        EXPECT_TRUE(!wanted || is_text_wrong) << loaded.error().message;
        ++run.refused;
        continue;
      }
      EXPECT_FALSE(is_text_wrong);
      const Column& c = **loaded;
      EXPECT_EQ(c.rows, *source.rows("t"));
      EXPECT_EQ(c.data->size(), c.rows * c.width);
      EXPECT_TRUE(!c.validity || c.validity->size() == c.rows);
      uint64_t characters = 0;
      for (uint64_t row = 0; hir::is_text(c.type) && row < c.rows; ++row)
        for (const char letter : c.text_at(row)) characters += letter != 0;
      EXPECT_LT(characters, 1u << 20);
      if (is_wrong) continue;
      if (wanted) expect_cells(*wanted, c);
      ++run.right;
    }
  }
  EXPECT_EQ(made.held(), 0);
  return run;
}

}  // namespace rndn::data
