// Measurements and how they are shown: Markdown, JSON and a self-contained HTML page, and compared with earlier ones.
//
//   Samples samples;
//   samples.add("compile", "q06", "rndn -O3", milliseconds);       // many times; table, row, column
//   write_file("evaluation.md", samples.markdown("rndn bench tpch", tables, machine));
#pragma once
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libraries/base/errors/result.h"

namespace rndn::tools {

// Of several measurements of one thing, the highest and the lowest dropped when there are at least five.
struct Spread {
  double median = 0, low = 0, high = 0;
  size_t count = 0;  // of those that were kept
};
Spread spread_of(std::vector<double> values);

// How a table of samples is shown. Rows are queries, columns variants.
struct BenchTable {
  std::string_view name;   // as in Samples::add
  std::string_view title;  // a sentence
  std::string_view unit;   // "ms"; "": a plain number that repeats exactly
  std::string_view
      base;         // column that the last line compares with: geometric mean of column / base; empty: no such line
  bool sum = true;  // a line with the sums
  bool extremes = false;  // lines with the least and the largest of column / base
};

class Samples {
 public:
  void add(std::string_view table, std::string_view row, std::string_view column, double value);
  bool has(std::string_view table) const { return tables_.count(std::string(table)) > 0; }

  // Facts about machine and versions come first in every form, in their order.
  using Facts = std::vector<std::pair<std::string, std::string>>;
  // command: that has measured.
  std::string markdown(std::string_view command, std::span<const BenchTable> tables, const Facts& facts) const;
  std::string html(std::span<const BenchTable> tables, const Facts& facts) const;
  std::string json(const Facts& facts) const;
  // Reads what json() wrote, the facts too.
  static Result<Samples> parse(const std::string& text, const std::string& name, Facts* facts = nullptr);
  // Lines for every value that is worse than in `before` by more than 5 % and more than both spreads; larger is worse. Empty: none.
  std::string regressions(const Samples& before) const;

 private:
  struct Table {
    std::vector<std::string> rows, columns;  // in order of first use
    std::map<std::pair<std::string, std::string>, std::vector<double>> values;
  };
  std::map<std::string, Table, std::less<>> tables_;
};

}  // namespace rndn::tools
