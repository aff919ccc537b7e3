#include "tools/compare_results.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "runtime/print_sql.h"

namespace rndn::tools {
namespace {

// A cell as SQL writes it, where the grid is of a query; NULL is NULL.
std::string cell_of(const runtime::Grid& grid, size_t k, uint64_t i) {
  if (grid.sql.empty()) return runtime::element_text(grid.columns[k], i, true);
  const runtime::SqlCells& cells = grid.sql[k];
  return cells.valid && !cells.valid->as<uint8_t>()[i] ? "NULL" : runtime::sql_text(cells.type, grid.columns[k], i);
}

// Fields of one record; `at` moves behind its line end.
Result<std::vector<std::string>> record(std::string_view text, size_t& at, char delimiter, const std::string& name) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  size_t start = at;
  for (; at < text.size(); ++at) {
    char c = text[at];
    if (quoted) {
      if (c != '"')
        fields.back() += c;
      else if (at + 1 < text.size() && text[at + 1] == '"')
        fields.back() += text[++at];
      else
        quoted = false;
    } else if (c == '"' && delimiter == ',' && fields.back().empty()) {
      quoted = true;
    } else if (c == delimiter) {
      fields.emplace_back();
    } else if (c == '\n') {
      ++at;
      if (!fields.back().empty() && fields.back().back() == '\r') fields.back().pop_back();
      return fields;
    } else {
      fields.back() += c;
    }
  }
  if (quoted) return input_error("{}: the quoted field that starts behind byte {} does not end", name, start);
  return fields;
}

bool parse_number(const std::string& text, double& value) {
  if (text.empty()) return false;
  char* end = nullptr;
  value = std::strtod(text.c_str(), &end);
  return *end == 0;
}

}  // namespace

Result<Expected> parse_expected(std::string_view text, const std::string& name) {
  Expected expected;
  char delimiter = text.substr(0, text.find('\n')).find('|') != std::string_view::npos ? '|' : ',';
  size_t at = 0;
  ASSIGN_OR_RETURN(expected.names, record(text, at, delimiter, name));
  while (at < text.size()) {
    ASSIGN_OR_RETURN(std::vector<std::string> fields, record(text, at, delimiter, name));
    if (fields.size() != expected.names.size())
      return input_error("{}: row {} has {} fields, the header has {}", name, expected.rows.size() + 1, fields.size(),
                         expected.names.size());
    expected.rows.push_back(std::move(fields));
  }
  return expected;
}

Expected expected_of(const runtime::Grid& grid) {
  Expected expected{grid.names, {}};
  for (uint64_t i = 0; i < grid.rows; ++i) {
    std::vector<std::string> row;
    for (size_t k = 0; k < grid.columns.size(); ++k) row.push_back(cell_of(grid, k, i));
    expected.rows.push_back(std::move(row));
  }
  return expected;
}

std::string difference(const runtime::Grid& grid, const Expected& expected, uint64_t& reordered,
                       double relative) {
  reordered = 0;
  if (grid.names.size() != expected.names.size())
    return fmt::format("{} columns, expected {}", grid.names.size(), expected.names.size());
  for (size_t k = 0; k < grid.names.size(); ++k)
    if (grid.names[k] != expected.names[k])
      return fmt::format("column {} is named `{}`, expected `{}`", k + 1, grid.names[k], expected.names[k]);
  if (grid.rows != expected.rows.size()) return fmt::format("{} rows, expected {}", grid.rows, expected.rows.size());
  auto alike = [&](size_t k, const std::string& got, const std::string& want) {
    double a = 0, b = 0;
    if (got == want) return true;
    if (!hir::is_real(grid.columns[k].type) || !parse_number(got, a) || !parse_number(want, b)) return false;
    double tolerance = hir::is_float(grid.columns[k].type) ? relative * std::max(std::fabs(a), std::fabs(b)) : 0;
    return std::fabs(a - b) <= tolerance;
  };
  std::vector<std::vector<std::string>> rows(grid.rows);
  for (uint64_t i = 0; i < grid.rows; ++i)
    for (size_t k = 0; k < grid.columns.size(); ++k) rows[i].push_back(cell_of(grid, k, i));

  // In order, until the first difference.
  std::string first;
  uint64_t at = 0;
  for (; at < grid.rows && first.empty(); ++at)
    for (size_t k = 0; k < grid.columns.size() && first.empty(); ++k)
      if (!alike(k, rows[at][k], expected.rows[at][k]))
        first = fmt::format("row {}, column `{}`: {}, expected {}", at + 1, grid.names[k], rows[at][k],
                            expected.rows[at][k]);
  if (first.empty()) return "";

  // From there on as multisets: every row takes an expected one that is alike and not taken, among those whose other cells are equal.
  auto key = [&](const std::vector<std::string>& row) {
    std::string text;
    for (size_t k = 0; k < row.size(); ++k) {
      double number = 0;
      bool exact = !hir::is_real(grid.columns[k].type) || !parse_number(row[k], number);
      text += exact ? row[k] : !hir::is_float(grid.columns[k].type) ? fmt::format("{}", number) : "";
      text += '\n';
    }
    return text;
  };
  std::multimap<std::string, const std::vector<std::string>*> left;
  for (uint64_t i = at - 1; i < grid.rows; ++i) left.emplace(key(expected.rows[i]), &expected.rows[i]);
  for (uint64_t i = at - 1; i < grid.rows; ++i) {
    auto [from, to] = left.equal_range(key(rows[i]));
    auto match = std::find_if(from, to, [&](const auto& candidate) {
      for (size_t k = 0; k < rows[i].size(); ++k)
        if (!alike(k, rows[i][k], (*candidate.second)[k])) return false;
      return true;
    });
    if (match == to) return first;
    left.erase(match);
  }
  reordered = at;
  return "";
}

}  // namespace rndn::tools
