// A program as three, so that it runs with a part of a table at a time: `before` once, `range` for
// each range of the table's rows, `after` once. What they leave for each other are columns.
//
//   Split s = split(program, {.table = "lineitem", .prefix = "@1."});
//   if (s.refused.empty())   // run s.before; for all ranges s.range, and put its results together;
//                            // s.after, whose results are the program's
//
// In: a typed program whose main has no control flow. What the range program computes is element by
// element of the table's rows, or of selections of them, up to these ends:
//   sum, min, max, len, any, all   a value per range, reduced once more by `after`
//   groups                         a row per group and range, grouped once more; not where a result
//                                  is an average of integers or a list of rows
//   sums and averages of f64       sums of parts of the elements that are exact; the last `sum` rounds
//   index_a into other tables      the vector goes from range to range
//   everything else                `after` has the rows of all ranges one behind the other
// All of that is exact: the same sequence of rows, integers whose sum does not depend on the order,
// the first row of each group. Where a group's first key is a column that ascends, ranges end where
// it changes; then groups, with any sum and average, and joins by that key are whole within a range.
// Where that leaves `after` with more than fits: rows that are ordered by the keys of a group or an
// order first (SplitOptions::by_keys). All of a group is in one range then, and ranges one behind
// the other are ordered. What is in the order of the table's rows stays with the range.
// A number of a row of the table, or of a selection, counts from the range's first; it becomes one
// that counts from the table's first where `after` reads it. What is gathered by such a number is
// gathered per range.
// Cost: linear in the program, times the groups and joins that turn out to be no ends. Left out:
// programs with control flow or effects in main.
//
//   Split s = divide(program, "@1.");   // s.before, then s.after
//
// The program as two, one behind the other, for which no table is cut: where it has two statements
// or more that work on vectors, each of them is smaller and has its own tables to cut. They are
// divided where few vectors are alive, near the middle of those statements. Statements that read
// lists and dictionaries stand beside what made them: no column holds such. Of a single statement
// that only moves elements, or joins or looks up rows, Split::Operation says what it is. Cost:
// places tried, times the statements.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "frontend/ir.h"

namespace rndn::outliner {

struct SplitOptions {
  std::string table;
  std::string prefix;  // of the tables and columns that are made; no other has it
  struct Ascending {
    std::string column;
    std::optional<hir::BasicType> type;  // none: a foreign key, the rows that it refers to
  };
  std::vector<Ascending> ascending;  // columns of the table whose elements ascend
  // The rows of the table are ordered by the keys of a group or an order, which ranges end with.
  bool by_keys = false;
  bool float_sums = true;            // false: `after` sums the elements of all ranges
};

// A result of `before` or `range`, a vector, as the programs behind it read it: as a column.
struct SplitResult {
  enum Merge : uint8_t {
    append,  // of all ranges, one behind the other
    rebase,  // numbers of rows, which count from the range's first: appended, each with the sum of
             // the results `rows` of the ranges before it
    place,   // numbers of rows in the order of the keys, from the range's first: appended, each as
             // the table's number of that row
    carry,   // read by the range program; it replaces the one before
    refutes  // true: sums of floats do not come out exactly; split without SplitOptions::float_sums
  } merge = append;
  std::string table, column;
  size_t rows = 0;   // rebase: the result that says how many rows a range has
  size_t first = 0;  // carry: the result of `before` that it begins as
};

// A column whose elements rows are ordered by, as `order` does it.
struct SplitKey {
  std::string column;
  bool valid = false;  // whether the elements are there, not what they are
  hir::BasicType type{};
  bool ascending = true;
};

struct Split {
  std::string refused;  // why there are no programs; empty: there are
  hir::Program before, range, after;
  std::vector<SplitResult> before_results, range_results;
  // Rows of groups: reads these results, of several ranges, and gives them as if of one. It need
  // not run.
  struct Merge {
    hir::Program program;
    std::vector<size_t> results;  // of `range`; what the program gives besides these refutes
  };
  std::vector<Merge> merges;
  std::string cut;  // ranges end where this column changes; empty: anywhere
  std::vector<SplitKey> keys;  // SplitOptions::by_keys: whose; ranges end where one changes
  // Statements of `after` that read all selected rows of the table: what keeps memory from being
  // bounded. Their builtins, and where they are.
  struct Whole {
    std::string_view builtin;
    Span span;
  };
  std::vector<Whole> whole;
  // Of a program that cannot be divided: the one statement that works on vectors.
  struct Operation {
    enum Kind : uint8_t {
      none,   // there is another number of them, or it is of no kind that is named here
      moves,  // only places elements: nothing is computed
      pairs,  // `join_index`
      looks_up,  // `member`, `index_of`
      scans,  // running sums and extremes
      zips    // a row of the result for one of each operand, or in an order of them: `order`
    } kind = none;
    hir::Builtin builtin{};
    // The others: the first results of `before` are the columns of its two sides, those behind them
    // columns that `after` reads. `range` computes it of the columns `names` of the tables `sides`:
    // pairs: two vectors; the others: one. range_results: whose of these, by `cells`.
    std::array<std::string, 2> sides;        // of joins, x and y; of look-ups, where and what; of
    std::array<std::vector<std::string>, 2> names;  // scans and zips, one, and single values
    std::vector<size_t> equal;  // of the columns, by number: whose elements must be equal
    std::vector<size_t> cells;
  } operation;
};

Split split(const hir::Program& program, const SplitOptions& options);
Split divide(const hir::Program& program, const std::string& prefix);

}  // namespace rndn::outliner
