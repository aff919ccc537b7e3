// Results leave in batches: how much memory their way out takes does not depend on their rows. This
// program's operator new counts what is there, which repeats exactly, unlike the memory of a process.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>

#include "libraries/base/system/cancel.h"
#include "libraries/base/system/files.h"
#include "runtime/arrow_result.h"
#include "runtime/data/arrow_abi.h"
#include "runtime/files/files.h"
#include "runtime/print_result.h"

namespace {
size_t there = 0, most_there = 0;
}

// Each piece says its size in front of it.
constexpr size_t head = 16;
[[gnu::noinline]] void* operator new(size_t bytes) {
  auto* p = static_cast<char*>(std::malloc(bytes + head));
  if (!p) throw std::bad_alloc();
  std::memcpy(p, &bytes, sizeof bytes);
  there += bytes;
  most_there = std::max(most_there, there);
  return p + head;
}
[[gnu::noinline]] void operator delete(void* p) noexcept {
  if (!p) return;
  size_t bytes;
  std::memcpy(&bytes, static_cast<char*>(p) - head, sizeof bytes);
  there -= bytes;
  std::free(static_cast<char*>(p) - head);
}
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { operator delete(p); }

namespace rndn::runtime::large_results_test {
namespace {

using hir::BasicType;
using sql::TypeId;

// The most that was allocated at once in a piece of work, beyond what was there before.
template <class Work>
size_t peak_of(Work&& work) {
  const size_t before = most_there = there;
  work();
  return most_there - before;
}

// Rows that repeat each 1000: numbers as they lie, decimals in another width, bits, NULLs, texts by
// codes and of their own, integers of another width.
Grid grid_of(uint64_t rows) {
  std::vector<int64_t> numbers, prices;
  std::vector<uint8_t> flags, valid;
  std::vector<uint32_t> codes;
  std::vector<std::string> texts;
  for (uint64_t i = 0; i < rows; ++i) {
    numbers.push_back(static_cast<int64_t>(1000 + i % 1000));
    prices.push_back(-static_cast<int64_t>(10'000 + i % 1000));
    flags.push_back(i % 3 == 0);
    valid.push_back(i % 5 != 0);
    codes.push_back(i % 10);
    texts.push_back("a text of its own, " + std::to_string(100 + i % 100));
  }
  auto values = std::make_shared<std::vector<std::string>>();
  for (char c = 'a'; c < 'k'; ++c) values->push_back(std::string(20, c));
  Grid grid;
  auto add = [&](const char* name, sql::Type type, data::Value value, bool nulls) {
    grid.names.emplace_back(name);
    grid.types.push_back(sql::type_name(type));
    grid.columns.push_back(std::move(value));
    SqlCells cells{.type = type, .valid = {}};
    if (nulls) cells.valid = data::vector_of<uint8_t>(BasicType::boolean, valid);
    grid.sql.push_back(std::move(cells));
  };
  const std::span<const int64_t> n = numbers, p = prices;
  const std::span<const uint8_t> f = flags;
  add("n", {TypeId::bigint}, data::vector_of<int64_t>(BasicType::i64, n), true);
  add("price", {TypeId::decimal, 12, 2}, data::vector_of<int64_t>(BasicType::i64, p), false);
  add("small", {TypeId::integer}, data::vector_of<int64_t>(BasicType::i64, n), false);
  add("flag", {TypeId::boolean}, data::vector_of<uint8_t>(BasicType::boolean, f), true);
  add("coded", {TypeId::varchar}, data::vector_of_codes(BasicType::str, values, codes), false);
  add("own", {TypeId::varchar}, data::vector_of_texts(BasicType::str, texts), true);
  grid.rows = rows;
  return grid;
}

ArrowArrayStream stream_of(const Grid& grid, uint64_t most_rows) {
  auto stream = ArrowResult::batches({grid}, most_rows);
  EXPECT_TRUE(stream) << stream.error().message;
  return *stream;
}

// The columns' cells in an array, as bytes of Arrow's buffers say them.
std::string cells_of(const ArrowArray& array) {
  std::string all;
  for (int64_t r = 0; r < array.length; ++r)
    for (int64_t c = 0; c < array.n_children; ++c) {
      const ArrowArray& a = *array.children[c];
      const auto bit = [&](int buffer) {
        return static_cast<const uint8_t*>(a.buffers[buffer])[r / 8] >> (r % 8) & 1;
      };
      const auto bytes = [&](size_t width) {
        return std::string(static_cast<const char*>(a.buffers[1]) + r * width, width);
      };
      if (a.buffers[0] && !bit(0))
        all += "NULL";
      else if (c == 3)
        all += bit(1) ? "true" : "false";
      else if (c < 3)
        all += bytes(c == 1 ? 16 : c == 2 ? 4 : 8);
      else {
        const auto* at = static_cast<const int32_t*>(a.buffers[1]) + r;
        all += std::string(static_cast<const char*>(a.buffers[2]) + at[0], at[1] - at[0]);
      }
      all += '|';
    }
  return all;
}

constexpr uint64_t few = 5'000, many = 20'000;

TEST(LargeResults, ArrowArraysAreMadeOneByOne) {
  size_t peaks[2] = {}, batches[2] = {};
  for (const uint64_t rows : {few, many}) {
    const Grid grid = grid_of(rows);
    const bool is_many = rows == many;
    peaks[is_many] = peak_of([&] {
      data::ArrowStream stream(stream_of(grid, 1000));
      for (;; ++batches[is_many]) {
        data::Owned<ArrowArray> array;
        ASSERT_EQ(stream->get_next(stream.get(), array.get()), 0);
        if (!array.is_there()) break;
        ASSERT_EQ(array->length, 1000);
        const ArrowArray& numbers = *array->children[0];
        ASSERT_EQ(numbers.buffers[1], grid.columns[0].as<int64_t>() + batches[is_many] * 1000) << "numbers are copied";
        ASSERT_EQ(numbers.null_count, 200);
      }
    });
  }
  EXPECT_EQ(batches[0], few / 1000);
  EXPECT_EQ(batches[1], many / 1000);
  EXPECT_GT(peaks[0], 1000u * (16 + 4 + 20 + 22)) << "nothing was counted";
  EXPECT_LT(peaks[0], 150'000u);
  EXPECT_EQ(peaks[0], peaks[1]) << "memory grows with the rows";
}

TEST(LargeResults, BatchesHaveTheRowsOfTheWhole) {
  for (const uint64_t rows : {uint64_t{0}, uint64_t{1}, uint64_t{999}, uint64_t{1000}, uint64_t{1001}, uint64_t{2500}}) {
    const Grid grid = grid_of(rows);
    std::string whole, parts;
    std::vector<int64_t> lengths;
    data::ArrowStream one(ArrowResult::stream({*ArrowResult::make(grid)})), several(stream_of(grid, 1000));
    for (auto* stream : {&one, &several})
      for (;;) {
        data::Owned<ArrowArray> array;
        ASSERT_EQ((*stream)->get_next(stream->get(), array.get()), 0);
        if (!array.is_there()) break;
        (stream == &one ? whole : parts) += cells_of(*array.get());
        if (stream == &several) lengths.push_back(array->length);
      }
    EXPECT_TRUE(whole == parts) << rows;
    std::vector<int64_t> wanted;
    for (uint64_t left = rows; left > 1000 || wanted.empty() || left > 0; left -= std::min<uint64_t>(left, 1000))
      wanted.push_back(static_cast<int64_t>(std::min<uint64_t>(left, 1000)));
    EXPECT_EQ(lengths, wanted) << rows;
  }
}

// What was given stays when the stream and the result are gone, and goes with who has it.
TEST(LargeResults, ReadersStopEarly) {
  const size_t before = there;
  {
    data::Owned<ArrowArray> second;
    std::string wanted;
    {
      const Grid grid = grid_of(5000);
      data::ArrowStream stream(stream_of(grid, 1000));
      data::Owned<ArrowArray> first;
      ASSERT_EQ(stream->get_next(stream.get(), first.get()), 0);
      ASSERT_EQ(stream->get_next(stream.get(), second.get()), 0);
      wanted = cells_of(*second.get());
    }
    EXPECT_TRUE(cells_of(*second.get()) == wanted);
    EXPECT_NE(cells_of(*second.get()).find("a text of its own, 199|"), std::string::npos);
  }
  EXPECT_EQ(there, before) << "memory is kept";
}

// A few results are one stream of one form of text.
TEST(LargeResults, ResultsFollowEachOther) {
  auto stream = ArrowResult::batches({grid_of(1500), grid_of(0), grid_of(10)}, 1000);
  ASSERT_TRUE(stream);
  data::ArrowStream all(std::move(*stream));
  std::vector<int64_t> lengths;
  for (;;) {
    data::Owned<ArrowArray> array;
    ASSERT_EQ(all->get_next(all.get(), array.get()), 0);
    if (!array.is_there()) break;
    lengths.push_back(array->length);
  }
  EXPECT_EQ(lengths, (std::vector<int64_t>{1000, 500, 0, 10}));
}

TEST(LargeResults, TextLeavesInPieces) {
  for (const Format format : {Format::csv, Format::json, Format::table}) {
    size_t peaks[2] = {}, largest = 0;
    for (const uint64_t rows : {few, many}) {
      const Grid grid = grid_of(rows);
      size_t size = 0;
      uint64_t sum = 0;
      peaks[rows == many] = peak_of([&] {
        auto printed = print_grid(grid, format, UINT64_MAX, [&](std::string_view piece) -> Result<void> {
          largest = std::max(largest, piece.size());
          size += piece.size();
          for (const char c : piece) sum = sum * 31 + static_cast<unsigned char>(c);
          return {};
        });
        ASSERT_TRUE(printed);
      });
      const std::string whole = *print_grid(grid, format);
      uint64_t wanted = 0;
      for (const char c : whole) wanted = wanted * 31 + static_cast<unsigned char>(c);
      EXPECT_EQ(size, whole.size());
      EXPECT_EQ(sum, wanted);
    }
    EXPECT_GT(peaks[0], 1u << 16) << "nothing was counted";
    EXPECT_LT(largest, (1u << 16) + 200) << "a piece is more than some rows";
    EXPECT_EQ(peaks[0], peaks[1]) << "memory grows with the rows";
  }
}

TEST(LargeResults, SinksEndThePrinting) {
  const Grid grid = grid_of(many);
  size_t calls = 0;
  const TextSink full = [&](std::string_view) -> Result<void> {
    if (++calls == 2) return world_error("the disk is full");
    return {};
  };
  for (const Format format : {Format::csv, Format::json, Format::table}) {
    calls = 0;
    const auto printed = print_grid(grid, format, UINT64_MAX, full);
    ASSERT_FALSE(printed);
    EXPECT_EQ(printed.error().message, "the disk is full");
    EXPECT_EQ(calls, 2u);
  }
  CancelToken token;
  const CancelScope scope(token);
  token.cancel();
  EXPECT_FALSE(print_grid(grid, Format::csv)) << "a cancelled one goes on";
}

// A batch's message is all that a file of Arrow's takes, and a line of its end for each.
TEST(LargeResults, ArrowFilesAreWrittenBatchByBatch) {
  const std::string path = testing::TempDir() + "rndn_large_results_" + std::to_string(getpid()) + ".arrow";
  size_t peaks[2] = {};
  for (const uint64_t rows : {few, many}) {
    const Grid grid = grid_of(rows);
    peaks[rows == many] = peak_of([&] {
      ArrowArrayStream stream = stream_of(grid, 1000);
      const auto written = files::write(&stream, path, "");
      ASSERT_TRUE(written) << written.error().message;
    });
    EXPECT_GT(std::filesystem::file_size(path), rows * (8 + 16 + 4 + 20 + 22));
  }
  std::filesystem::remove(path);
  EXPECT_LT(peaks[1], peaks[0] + 15 * 64);
}

}  // namespace
}  // namespace rndn::runtime::large_results_test
