// Runs a HorseIR program on the reference interpreter, and compares its rows with those of SQLite.
#include "tests/queries/answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "frontend/frontend.h"

namespace rndn::testing {
namespace {

// The elements of a result column as cells.
std::vector<Cell> cells(const reference::Value& column) {
  using hir::BasicType;
  std::vector<Cell> out;
  for (uint64_t i = 0; i < column.size; ++i) {
    switch (column.type) {
      case BasicType::f64: out.emplace_back(column.as<double>()[i]); break;
      case BasicType::f32: out.emplace_back(static_cast<double>(column.as<float>()[i])); break;
      case BasicType::i16: out.emplace_back(static_cast<int64_t>(column.as<int16_t>()[i])); break;
      case BasicType::i32: out.emplace_back(static_cast<int64_t>(column.as<int32_t>()[i])); break;
      case BasicType::i64: out.emplace_back(column.as<int64_t>()[i]); break;
      case BasicType::date: out.emplace_back(iso_date(column.as<int32_t>()[i])); break;
      case BasicType::character: out.emplace_back(std::string(1, static_cast<char>(column.as<int8_t>()[i]))); break;
      default: out.emplace_back(column.text(i));
    }
  }
  return out;
}

Rows rows_of(const reference::Value& table) {
  Rows rows;
  if (table.kind != reference::Value::table) return rows;
  rows.names = *table.names;
  std::vector<std::vector<Cell>> columns;
  for (const reference::Value& c : table.parts()) columns.push_back(cells(c));
  for (size_t r = 0; !columns.empty() && r < columns[0].size(); ++r) {
    rows.rows.emplace_back();
    for (auto& column : columns) rows.rows.back().push_back(column[r]);
  }
  return rows;
}

}  // namespace

bool same(const Cell& a, const Cell& b) {
  if (std::holds_alternative<std::string>(a) || std::holds_alternative<std::string>(b)) return a == b;
  auto number = [](const Cell& c) {
    return std::holds_alternative<double>(c) ? std::get<double>(c) : static_cast<double>(std::get<int64_t>(c));
  };
  double x = number(a), y = number(b);
  return std::abs(x - y) <= 1e-9 * std::max(std::abs(x), std::abs(y));
}

std::string text(const std::vector<Cell>& row) {
  std::string out;
  for (const Cell& c : row) out += std::visit([](const auto& x) { return fmt::format("{}|", x); }, c);
  return out;
}

Result<Rows> run_program(const std::string& text, const data::Schema& schema, const reference::Tables& tables) {
  SourceManager sources;
  FileId file = sources.add("query.hir", text);
  DiagnosticSink sink;
  Timings timings;
  hir::Options options;
  options.schema = &schema;
  options.strict = true;
  hir::Program program = hir::run(file, sources, options, sink, timings);
  if (!sink.diagnostics().empty()) return input_error("{}", render(sink, sources));
  Result<std::vector<reference::Value>> results = reference::run(program, tables, sources, nullptr);
  if (!results) return results.error();
  if (results->size() != 1) return input_error("{} results", results->size());
  return rows_of((*results)[0]);
}

namespace {

struct Key {
  size_t column;
  bool descending;
};

// The sort keys of a query that ends in ORDER BY name [DESC], ... [LIMIT n], as columns of its result; names may
// be of a table.
std::vector<Key> order_of(const std::string& sql, const std::vector<std::string>& names) {
  std::string text = sql;
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  std::vector<Key> keys;
  size_t at = text.rfind("order by ");
  if (at == text.npos) return keys;
  std::string list = text.substr(at + 9);
  list.resize(std::min({list.find(" limit"), list.find(';'), list.size()}));
  for (size_t begin = 0; begin < list.size();) {
    size_t end = std::min(list.find(',', begin), list.size());
    std::string item = list.substr(begin, end - begin);
    begin = end + 1;
    bool descending = item.find(" desc") != item.npos;
    item.erase(0, item.find_first_not_of(" \n"));
    item.resize(std::min(item.find_first_of(" \n"), item.size()));
    item.erase(0, item.find('.') + 1);
    auto found = std::find(names.begin(), names.end(), item);
    if (found != names.end()) keys.push_back({static_cast<size_t>(found - names.begin()), descending});
  }
  return keys;
}

// Numbers that are equal but for rounding count as equal.
int compare(const Cell& a, const Cell& b) {
  if (same(a, b)) return 0;
  if (std::holds_alternative<std::string>(a)) return std::get<std::string>(a) < std::get<std::string>(b) ? -1 : 1;
  auto number = [](const Cell& c) {
    return std::holds_alternative<double>(c) ? std::get<double>(c) : static_cast<double>(std::get<int64_t>(c));
  };
  return number(a) < number(b) ? -1 : 1;
}

}  // namespace

std::string difference(const Rows& got, const Rows& wanted, const std::string& sql) {
  if (got.names != wanted.names) return "other columns";
  if (got.rows.size() != wanted.rows.size())
    return fmt::format("{} rows, expected {}", got.rows.size(), wanted.rows.size());
  std::vector<Key> keys = order_of(sql, wanted.names);
  auto by_keys = [&](const std::vector<Cell>& a, const std::vector<Cell>& b) {
    for (const Key& k : keys)
      if (int order = compare(a[k.column], b[k.column])) return k.descending ? -order : order;
    return 0;
  };
  for (size_t r = 1; r < got.rows.size(); ++r)
    if (by_keys(got.rows[r - 1], got.rows[r]) > 0)
      return fmt::format("row {} stands before its order: {}", r, text(got.rows[r]));
  // Rows of equal keys may stand in any order: each wanted row takes one of them.
  std::vector<bool> taken(got.rows.size());
  for (size_t r = 0; r < wanted.rows.size(); ++r) {
    bool found = false;
    auto take = [&](size_t g) {
      if (taken[g] || by_keys(got.rows[g], wanted.rows[r]) != 0) return false;
      for (size_t c = 0; c < wanted.rows[r].size(); ++c)
        if (!same(got.rows[g][c], wanted.rows[r][c])) return false;
      return found = taken[g] = true;
    };
    if (!take(r))
      for (size_t g = 0; g < got.rows.size() && !found; ++g) take(g);
    if (!found) return fmt::format("no row like {} (at that place: {})", text(wanted.rows[r]), text(got.rows[r]));
  }
  return {};
}

}  // namespace rndn::testing
