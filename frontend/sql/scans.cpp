// Scans of tables and rows that stand in the text: columns as cells.
//
// A column is loaded where it is read, not before. A column that refers to a table's key is that
// key at the row numbers that the table knows of it (`values` of the enumeration): the same vector
// as the key picked by a join, so that keys on both sides of a join, of a grouping or of a result
// are one. Decimals kept as binary floats become the integers that they round to, times of day and
// timestamps microseconds.
// A column that holds nulls is loaded with zeros under them, beside its validity; a foreign key then
// gives its values instead of row numbers.
// Left out: months and complex numbers; they are refused by name.
#include <algorithm>
#include <cmath>

#include "frontend/sql/translator.h"

namespace rndn::sql {

using hir::BasicType;

namespace {

std::string symbol(std::string_view name) {
  std::string out = "`\"";
  for (char c : name) out += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  bool plain = !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0]));
  for (char c : name) plain = plain && (std::isalnum(static_cast<unsigned char>(c)) || c == '_');
  return plain ? fmt::format("`{}:sym", name) : out + "\":sym";
}

Bounds bounds_of(const Column& c) {
  if (c.min && c.max) return Bounds::of(*c.min, *c.max);
  if (c.wide_min && c.wide_max)  // not known beyond 38 digits
    return Bounds::of(*c.wide_min, *c.wide_max) + Bounds::of(0, 0);
  if (c.type.id != TypeId::decimal || !c.float_min || !c.float_max) return bounds_of(c.type);
  const double factor = std::pow(10.0, c.type.scale);
  const double least = std::floor(*c.float_min * factor), most = std::ceil(*c.float_max * factor);
  if (!(std::abs(least) < 9e18 && std::abs(most) < 9e18)) return bounds_of(c.type);
  return Bounds::of(static_cast<int64_t>(least), static_cast<int64_t>(most));
}

// Calendar values as microseconds: what `minus` of the least one counts.
struct Clock {
  BasicType stored;
  TypeId type;
  std::string_view zero;
  BasicType difference;
  int64_t microseconds;
};
constexpr Clock clocks[] = {
    {BasicType::dt, TypeId::timestamp, "1970-01-01T00:00:00.000:dt", BasicType::i64, 1'000},
    {BasicType::dt, TypeId::timestamptz, "1970-01-01T00:00:00.000:dt", BasicType::i64, 1'000},
    {BasicType::time, TypeId::time, "00:00:00.000:time", BasicType::i32, 1'000},
    {BasicType::second, TypeId::time, "00:00:00:second", BasicType::i32, 1'000'000},
    {BasicType::minute, TypeId::time, "00:00:minute", BasicType::i32, 60'000'000},
};

bool is_key(const Table& table, const Column& c) {
  return c.unique || (table.primary.size() == 1 && table.primary[0] == c.name);
}

}  // namespace

SpaceId Translator::table_space(const Table& table) {
  const auto [at, is_new] = table_spaces_.emplace(&table, one_row);
  if (is_new) at->second = g_.space(static_cast<double>(table.rows));
  return at->second;
}

VectorId Translator::loaded_table(const Table& table) {
  return g_.call("@load_table(", {}, BasicType::i64, one_row, table.name, {}, fmt::format("{})", symbol(table.name)),
                 "table");
}

// The column as HorseIR gives it.
VectorId Translator::key_vector(const Table& table, const Column& column) {
  const SpaceId space = table_space(table);
  const VectorId loaded = loaded_table(table);
  const std::string_view basic = hir::basic_type_name(column.stored);
  const bool refers = !column.foreign_table.empty() && !column.has_nulls;
  const std::string type = refers ? fmt::format("enum<{}>", basic) : std::string(basic);
  const VectorId v =
      g_.call("check_cast(@column_value(", {loaded}, column.stored, space, column.name, bounds_of(column),
              fmt::format(", {}{}), {})", symbol(column.name), column.has_nulls ? ", 1:bool" : "", type), type);
  if (column.has_nulls) return v;
  Vector& vector = g_.change(v);
  vector.unique = is_key(table, column);
  vector.dense =
      vector.unique && column.ascending && column.min && column.max && table.rows > 0 &&
      static_cast<__int128>(*column.max) - *column.min + 1 == static_cast<__int128>(table.rows);
  return v;
}

// Of a foreign key, as HorseIR gives it: the row of `to` for each row.
VectorId Translator::referred_rows(VectorId enumeration, const Table& to) {
  return g_.call("@values(", {enumeration}, BasicType::i64, g_[enumeration].space,
                 g_[enumeration].hint + "_row", Bounds::of(0, static_cast<__int128>(to.rows)));
}

Cell Translator::column(const Table& table, const Column& column, SpaceId space) {
  Cell c = values_of(table, column, space);
  if (!column.has_nulls) return c;
  const VectorId loaded = loaded_table(table);
  c.valid = g_.call("@column_valid(", {loaded}, BasicType::boolean, space, column.name + "_valid", {},
                    fmt::format(", {})", symbol(column.name)));
  // The byte that stands for nothing is not the one that is read for nothing.
  return g_[c.value].type == BasicType::character ? canonical(c.type, c.value, c.valid) : c;
}

// Zeros stay zeros in all that is made of them here.
Cell Translator::values_of(const Table& table, const Column& column, SpaceId space) {
  const auto refuse = [&] {
    fail("column {} of {}: values stored as {} have no translation to {}", column.name, table.name,
         hir::basic_type_name(column.stored), type_name(column.type));
    return failed(column.type);
  };
  VectorId v = key_vector(table, column);
  const BasicType wanted = basic_of(column.type);
  BasicType stored = column.stored;
  if (!column.foreign_table.empty() && !column.has_nulls) {
    const Table* to = catalog_.find(column.foreign_table);
    const Column* key = to ? to->find(column.foreign_key) : nullptr;
    if (!key) {
      fail("column {} of {} refers to {}.{}, which is not there", column.name, table.name,
           column.foreign_table, column.foreign_key);
      return failed(column.type);
    }
    const VectorId rows = referred_rows(v, *to);
    const VectorId key_values = key_vector(*to, *key);
    g_.change(key_values).unique = true;  // what is referred to
    if (is_none(g_[table_space(*to)].witness)) g_.set_witness(table_space(*to), key_values);
    v = g_.pick(key_values, rows);
    if (column.min && column.max) g_.change(v).bounds = bounds_of(column);
    stored = key->stored;
  }
  if (is_none(g_[space].witness)) g_.set_witness(space, v);
  if (stored == BasicType::i128) {  // of 64 bits, where all of its values are
    if (!is_exact(column.type)) return refuse();
    return {bounds_of(column).fits_i64() ? g_.cast(v, BasicType::i64) : v, nothing, column.type};
  }
  if (column.type.id == TypeId::decimal) {
    if (stored == BasicType::f64 || stored == BasicType::f32) {
      const double factor = std::pow(10.0, column.type.scale);
      const VectorId wide = g_.cast(v, BasicType::f64);
      const VectorId scaled =
          g_.map("mul", {wide, g_.real(BasicType::f64, factor)}, BasicType::f64);
      const VectorId whole = g_.cast(g_.map("round", {scaled}, BasicType::f64), BasicType::i64);
      g_.change(whole).bounds = bounds_of(column);
      g_.name(whole, column.name);
      return {whole, nothing, column.type};
    }
    if (!hir::is_integer(stored)) return refuse();
    return {g_.cast(v, BasicType::i64), nothing, column.type};
  }
  if (column.type.id == TypeId::varchar)
    return hir::is_text(stored) || stored == BasicType::character ? Cell{v, nothing, column.type}
                                                                  : refuse();
  for (const Clock& clock : clocks) {
    if (stored != clock.stored || column.type.id != clock.type) continue;
    const VectorId zero = g_.call("", {}, stored, one_row, "zero", {}, std::string(clock.zero));
    const VectorId since = g_.cast(g_.map("minus", {v, zero}, clock.difference), BasicType::i64);
    return {g_.map("mul", {since, g_.integer(BasicType::i64, clock.microseconds)}, BasicType::i64,
                   bounds_of(column)),
            nothing, column.type};
  }
  if (stored == wanted) return {v, nothing, column.type};
  const bool numbers =
      hir::is_real(stored) && hir::is_real(wanted) && stored != BasicType::character;
  // A narrower vector of integers stays: operations widen it where they must.
  if (numbers && hir::is_integer(stored) == hir::is_integer(wanted))
    return {hir::is_integer(stored) ? v : g_.cast(v, wanted), nothing, column.type};
  return refuse();
}

// The numbers of range and generate_series.
Relation Translator::series(const Node& n) {
  Relation out;
  const Bounds bounds = n.count == 0 ? Bounds::of(0, 0)
                                     : rndn::sql::join(Bounds::of(n.first, n.first),
                                                       Bounds::of(n.first, n.first) +
                                                           Bounds::of(n.step, n.step) *
                                                               Bounds::of(n.count - 1, n.count - 1));
  const VectorId row = g_.call("@range(", {g_.integer(BasicType::i64, n.count)}, BasicType::i64,
                               g_.space(static_cast<double>(n.count)), "row", Bounds::of(0, n.count));
  out.space = g_[row].space;
  g_.set_witness(out.space, row);
  g_.change(row).unique = true;
  const VectorId scaled =
      g_.map("mul", {row, g_.integer(BasicType::i64, n.step)}, BasicType::i64, bounds);
  const VectorId value =
      g_.map("plus", {scaled, g_.integer(BasicType::i64, n.first)}, BasicType::i64, bounds);
  g_.change(value).unique = true;
  for (uint32_t c : plan_.of(n.columns))
    out.columns.push_back(c == UINT32_MAX ? Cell{row, nothing, {TypeId::bigint}}
                                          : Cell{value, nothing, plan_.of(n.types)[0]});
  project(out, n.projects, n.projection);
  return out;
}

Relation Translator::scan(const Node& n) {
  if (n.table.empty()) return series(n);
  Relation out;
  const Table* table = catalog_.find(n.table);
  if (!table) {
    fail("the plan reads table {}, which is not there", n.table);
    return out;
  }
  out.space = table_space(*table);
  const std::span<const std::string> names = plan_.of(n.names);
  if (is_none(g_[out.space].witness) && !table->columns.empty()) {
    // What is read anyway tells how many rows there are; of another nobody knows its nulls.
    Column first = table->columns[0];
    first.has_nulls = true;
    for (uint32_t c : plan_.of(n.columns))
      if (c < names.size() && table->find(names[c])) {
        first = *table->find(names[c]);
        break;
      }
    const Table* to = first.foreign_table.empty() || first.has_nulls ? nullptr : catalog_.find(first.foreign_table);
    const VectorId loaded = key_vector(*table, first);
    g_.set_witness(out.space, to ? referred_rows(loaded, *to) : loaded);
  }
  for (uint32_t c : plan_.of(n.columns)) {
    if (c == row_id || c == row_number) {  // the former stands for no column, too
      VectorId row = g_.rows(out.space);
      if (c == row_number)
        row = g_.map("plus", {row, g_.integer(BasicType::i64, 1)}, BasicType::i64,
                     Bounds::of(1, static_cast<__int128>(table->rows)));
      out.columns.push_back({row, nothing, {TypeId::bigint}});
      continue;
    }
    const Column* named = table->find(names[c]);
    if (named) {
      out.columns.push_back(column(*table, *named, out.space));
    } else {
      fail("the plan reads column {} of {}, which is not there", names[c], n.table);
      out.columns.push_back(failed(plan_.of(n.types)[c]));
    }
  }
  if (table->primary.size() > 1) {
    std::vector<VectorId> key;
    for (size_t i = 0; i < out.columns.size(); ++i) {
      const uint32_t c = plan_.of(n.columns)[i];
      if (c < names.size() && std::count(table->primary.begin(), table->primary.end(), names[c]))
        key.push_back(out.columns[i].value);
    }
    if (key.size() == table->primary.size()) g_.add_identity(out.space, key);
  }
  filter(out, plan_.of(n.expressions), out.columns);
  project(out, n.projects, n.projection);
  return out;
}

Relation Translator::no_rows(std::span<const Type> types) {
  Relation out;
  out.mask = g_.integer(BasicType::boolean, 0);
  for (Type t : types) out.columns.push_back(null_of(t));
  return out;
}

// Rows of cells: where all are constants, a column is one literal; else rows are appended one by
// one.
Relation Translator::values(const Node& n) {
  const std::span<const Type> types = plan_.of(n.types);
  const std::span<const ExpressionId> cells = plan_.of(n.expressions);
  const size_t rows = types.empty() ? 0 : cells.size() / types.size();
  if (rows == 0) return no_rows(types);
  std::vector<Relation> parts(rows);
  bool literals = true;
  for (size_t i = 0; i < cells.size(); ++i) {
    Relation& part = parts[i / types.size()];
    Cell c = evaluate(cells[i], Relation{});
    c.type = types[i % types.size()];
    literals = literals && g_.is_literal(c.value) && g_[c.value].type == basic_of(c.type);
    part.columns.push_back(c);
  }
  if (rows == 1 || !literals) return append(std::move(parts));
  Relation out;
  out.space = g_.space(static_cast<double>(rows));
  // Vectors of their own, so that columns alike are still of this space.
  const auto column_of = [&](BasicType type, const std::vector<VectorId>& list) {
    Bounds bounds = g_[list[0]].bounds;
    for (VectorId v : list) bounds = rndn::sql::join(bounds, g_[v].bounds);
    const VectorId v =
        g_.call("", {}, type, out.space, "cell", bounds, g_[g_.list_literal(type, list)].head,
                fmt::format("{}", hir::basic_type_name(type)));
    if (is_none(g_[out.space].witness)) g_.set_witness(out.space, v);
    return v;
  };
  for (size_t c = 0; c < types.size(); ++c) {
    std::vector<VectorId> list, valid;
    bool nulls = false;
    for (const Relation& part : parts) {
      list.push_back(part.columns[c].value);
      valid.push_back(valid_of(part.columns[c]));
      nulls = nulls || !is_none(part.columns[c].valid);
    }
    out.columns.push_back({column_of(basic_of(types[c]), list),
                           nulls ? column_of(BasicType::boolean, valid) : nothing, types[c]});
  }
  return out;
}

}  // namespace rndn::sql
