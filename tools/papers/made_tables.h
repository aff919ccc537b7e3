// Tables that are made for a benchmark, the same on every machine: element i of a column is a
// function of a seed and of i, so that all cores make a column and a check computes it again.
//
//   MadeTables made;
//   made.add("t", n, {{"k", BasicType::i32, [](uint64_t i) { return int64_t(random_at(1, i) % 1000); }}});
//   std::shared_ptr<data::Source> source = made.source();
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/types.h"
#include "runtime/data/source.h"

namespace rndn::tools::papers {

// Number i of the sequence that the seed names: its bits are as good as random (Steele, Lea, Flood:
// "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014).
uint64_t random_at(uint64_t seed, uint64_t i);
// The same in [0, 1).
double fraction_at(uint64_t seed, uint64_t i);

// How keys are spread.
enum class Spreading : uint8_t { uniform, normal, pareto };
std::string_view name_of(Spreading spreading);
// The value in [0, 1) below which this part of all values lies. normal: mean 1/2, deviation 1/8,
// cut at both ends; pareto: four fifths of all values in the first fifth, and so on.
double quantile(Spreading spreading, double part);

// Every number below 2^bits once, in no order.
uint64_t shuffled(uint64_t seed, uint64_t i, unsigned bits);

struct MadeColumn {
  std::string name;
  hir::BasicType type{};                       // i32 or i64; f64 is `value` / 100
  std::function<int64_t(uint64_t row)> value;  // called by all cores
};
struct MadeTable {
  std::string name;
  uint64_t rows = 0;
  std::vector<MadeColumn> columns;
};
// Columns are made when they are first read.
std::shared_ptr<data::Source> source_of(std::vector<MadeTable> tables);

// body(first, last) for ranges that make up [0, n), on all cores.
void in_ranges(uint64_t n, const std::function<void(uint64_t first, uint64_t last)>& body);

}  // namespace rndn::tools::papers
