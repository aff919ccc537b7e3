// The recipe of every column of the Star Schema Benchmark, over the chunks of TPC-H's generator
// (tpch/chunk.h): many columns are its columns, with other sizes of the tables; others draw from
// the same streams of random numbers. Each table is as when it is generated alone.
//
// What differs from TPC-H: customers, suppliers and parts are fewer (parts grow with log2 of the
// scale, the part keys of lines with its natural logarithm); suppliers of lines are drawn from all;
// cities are nine letters of the nation and a digit; colors are those of a whole shuffle; dates are a
// table of their own, 1992-01-01 to 1998-12-30, whose days of the week are one ahead of the
// calendar's and whose flag of a month's last day is set on all others, as the benchmark has it. Below scale 1 all tables but the dates shrink in proportion.
//
// Cost: as TPC-H's columns. Left out: the fifth table's other lengths below scale 1.
#include "ssb/source.h"

#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>

#include "tpch/recipe.h"
#include "tpch/source.h"

namespace rndn::ssb {
namespace {

using tpch::Chunk;
using tpch::ColumnId;
using enum tpch::ColumnId;
using tpch::Recipe;
using tpch::Stream;
using Numbers = std::vector<int64_t>;

constexpr int64_t first_day = 8035;  // 1992-01-01, as days since 1970-01-01
constexpr uint64_t days = 2556;
constexpr uint32_t lines_per_order = 7;  // at most: a stream's draws per order

constexpr std::array<std::string_view, 7> day_names = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                       "Thursday", "Friday", "Saturday"};
constexpr std::array<std::string_view, 12> month_names = {
    "January", "February", "March",     "April",    "May",      "June",
    "July",    "Augest",   "September", "Octorber", "November", "December"};
constexpr std::array<std::string_view, 5> season_names = {"Winter", "Spring", "Summer", "Fall",
                                                          "Christmas"};

struct Day {
  int64_t year, month, day, of_year, weekday;  // weekday from 0, called Sunday
  bool is_last_of_month;

  explicit Day(int64_t since_1970) {
    using namespace std::chrono;
    const sys_days at{std::chrono::days(since_1970)};
    const year_month_day date(at);
    year = static_cast<int>(date.year());
    month = static_cast<unsigned>(date.month());
    day = static_cast<unsigned>(date.day());
    of_year = (at - sys_days(date.year() / January / 1)).count() + 1;
    weekday = (std::chrono::weekday(at).c_encoding() + 1) % 7;
    is_last_of_month = date.day() == (date.year() / date.month() / last).day();
  }
  int64_t key() const { return year * 10000 + month * 100 + day; }
  int64_t season() const {
    return month <= 3 ? 0 : month == 4 ? 1 : month <= 8 ? 2 : month <= 10 ? 3 : 4;
  }
  bool is_holiday() const {
    constexpr std::array<std::pair<int, int>, 10> holidays = {{{12, 24},
                                                               {1, 1},
                                                               {2, 20},
                                                               {4, 20},
                                                               {5, 20},
                                                               {7, 20},
                                                               {8, 20},
                                                               {9, 20},
                                                               {10, 20},
                                                               {11, 20}}};
    for (auto [m, d] : holidays)
      if (month == m && day == d) return true;
    return false;
  }
};

int64_t date_key(int64_t since_1970) { return Day(since_1970).key(); }
int64_t date_row(int64_t key) {
  using namespace std::chrono;
  const year_month_day date{year(static_cast<int>(key / 10000)),
                            month(static_cast<unsigned>(key / 100 % 100)),
                            day(static_cast<unsigned>(key % 100))};
  return sys_days(date).time_since_epoch().count() - first_day;
}
int64_t key_row(int64_t key) { return key - 1; }
int64_t revenue(int64_t price, int64_t discount) { return price * (100 - discount) / 100; }
int64_t supply_cost(int64_t price, int64_t quantity) { return 6 * (price / quantity) / 10; }

char* append(std::string_view text, char* out) {
  std::memcpy(out, text.data(), text.size());
  return out + text.size();
}

// value(row) for each row of the driving table.
template <class F>
Recipe by_row(F value) {
  return {.values = [value](Chunk& chunk, Numbers& out) -> std::span<const int64_t> {
    out.resize(chunk.count());
    for (uint64_t i = 0; i < out.size(); ++i) out[i] = value(chunk.first() + i);
    return out;
  }};
}
// value(seed at the start of the row's draws, number of another column) for each row.
template <class F>
Recipe by_draws(Stream stream, ColumnId other, F value) {
  return {.values = [=](Chunk& chunk, Numbers& out) -> std::span<const int64_t> {
    const std::span<const int64_t> others = chunk.column(other);
    const uint32_t jump = tpch::power(stream.draws_per_row);
    uint32_t seed = stream.at(chunk.first());
    out.resize(chunk.count());
    for (uint64_t i = 0; i < out.size(); ++i, seed = tpch::multiply(seed, jump))
      out[i] = value(seed, others[i]);
    return out;
  }};
}
template <class F>
Recipe of_day(F value) {
  return by_row([value](uint64_t row) -> int64_t {
    return value(Day(first_day + static_cast<int64_t>(row)));
  });
}
Recipe words(Recipe recipe, std::span<const std::string_view> list) {
  recipe.range = list.size();
  recipe.write_text = [list](const Chunk&, int64_t v, char* out) { return append(list[v], out); };
  return recipe;
}

// A column of TPC-H.
Recipe same(ColumnId id) {
  const tpch::ColumnInfo& info = tpch::column_info(id);
  return {.values = [id](Chunk& chunk, Numbers&) { return chunk.column(id); },
          .write_text = [&info](const Chunk& chunk, int64_t value,
                                char* out) { return chunk.write_text(info, value, out); },
          .range = info.form == tpch::Form::choice ? info.words->size() : 0};
}
// A column of orders, once for each line.
Recipe of_order(ColumnId id) {
  Recipe recipe = same(id);
  recipe.values = [id](Chunk& chunk, Numbers& out) -> std::span<const int64_t> {
    const std::span<const int64_t> orders = chunk.column(id), line = chunk.column(l_linenumber);
    out.resize(line.size());
    for (size_t i = 0, order = 0; i < line.size(); ++i) {
      if (i && line[i] == 1) ++order;
      out[i] = orders[order];
    }
    return out;
  };
  return recipe;
}
Recipe line_draw(uint32_t seed, int64_t low, int64_t high) {
  return {.values = [=](Chunk& chunk, Numbers& out) -> std::span<const int64_t> {
    const std::span<const int64_t> line = chunk.column(l_linenumber);
    const uint32_t jump = tpch::power(lines_per_order);
    uint32_t order = Stream{seed, lines_per_order}.at(chunk.first()), at = order;
    out.resize(line.size());
    for (size_t i = 0; i < line.size(); ++i) {
      if (i && line[i] == 1) at = order = tpch::multiply(order, jump);
      out[i] = tpch::bounded(at = tpch::step(at), low, high);
    }
    return out;
  }};
}
Recipe map(Recipe recipe, int64_t (*f)(int64_t)) {
  recipe.values = [f, from = std::move(recipe.values)](Chunk& chunk,
                                                       Numbers& out) -> std::span<const int64_t> {
    const std::span<const int64_t> values = from(chunk, out);
    out.resize(values.size());
    for (size_t i = 0; i < values.size(); ++i) out[i] = f(values[i]);
    return out;
  };
  return recipe;
}
Recipe combine(ColumnId a, ColumnId b, int64_t (*f)(int64_t, int64_t)) {
  return {.values = [=](Chunk& chunk, Numbers& out) -> std::span<const int64_t> {
    const std::span<const int64_t> x = chunk.column(a), y = chunk.column(b);
    out.resize(x.size());
    for (size_t i = 0; i < x.size(); ++i) out[i] = f(x[i], y[i]);
    return out;
  }};
}

// MFGR#, and as many of maker, category and brand as `parts` says: the first two are drawn from one
// stream, two draws for a part.
Recipe maker(int parts) {
  const Stream brands{46831694, 1};
  Recipe recipe = by_row([=](uint64_t row) {
    uint32_t at = tpch::step(Stream{1, 2}.at(row));
    int64_t value = tpch::bounded(at, 1, 5);
    if (parts > 1) value = value * 10 + tpch::bounded(tpch::step(at), 1, 5);
    if (parts > 2) value = value * 100 + tpch::bounded(tpch::step(brands.at(row)), 1, 40);
    return value;
  });
  recipe.range = parts == 1 ? 6 : parts == 2 ? 56 : 5541;
  // A brand's number is not padded: MFGR#121, MFGR#1210.
  recipe.write_text = [parts](const Chunk&, int64_t v, char* out) {
    return parts < 3 ? fmt::format_to(out, "MFGR#{}", v)
                     : fmt::format_to(out, "MFGR#{}{}", v / 100, v % 100);
  };
  return recipe;
}
// Colors of a shuffle of them all, from the first to before the last: a byte each.
Recipe part_name(int first, int last) {
  const uint32_t colors = static_cast<uint32_t>(tpch::part_colors.size());
  Recipe recipe = by_row([=](uint64_t row) {
    std::array<uint8_t, 256> order;
    std::iota(order.begin(), order.begin() + colors, uint8_t{0});
    uint32_t at = Stream{709314158, colors}.at(row);
    for (uint32_t i = 0; i < colors; ++i)
      std::swap(order[i], order[tpch::scaled(at = tpch::step(at), colors)]);
    int64_t name = 0;
    for (int i = first; i < last; ++i) name |= int64_t{order[i]} << 8 * (i - first);
    return name;
  });
  recipe.write_text = [=](const Chunk&, int64_t v, char* out) {
    for (int i = first; i < last; ++i, v >>= 8) {
      if (i > first) *out++ = ' ';
      out = append(tpch::part_colors[v & 255], out);
    }
    return out;
  };
  if (last - first == 1) recipe.range = colors;
  return recipe;
}

Recipe nation(ColumnId key) { return words(same(key), tpch::nations); }
Recipe region(ColumnId key) {
  return words(map(same(key), [](int64_t v) -> int64_t { return tpch::nation_regions[v]; }),
               tpch::regions);
}
// Nine letters of the nation, blank-padded, and a digit.
Recipe city(ColumnId key) {
  Recipe recipe = by_draws({1, 1}, key, [](uint32_t seed, int64_t nation) {
    return nation * 10 + tpch::bounded(tpch::step(seed), 0, 9);
  });
  recipe.range = tpch::nations.size() * 10;
  recipe.write_text = [](const Chunk&, int64_t v, char* out) {
    return fmt::format_to(out, "{:<9}{}", tpch::nations[v / 10].substr(0, 9), v % 10);
  };
  return recipe;
}
// Suppliers and customers share a stream.
Recipe phone(ColumnId key) {
  Recipe recipe = by_draws({1521138112, 3}, key, [](uint32_t at, int64_t nation) {
    int64_t number = 10 + nation;
    number = number * 1000 + tpch::bounded(at = tpch::step(at), 100, 999);
    number = number * 1000 + tpch::bounded(at = tpch::step(at), 100, 999);
    return number * 10000 + tpch::bounded(tpch::step(at), 1000, 9999);
  });
  recipe.write_text = same(tpch::ColumnId::c_phone).write_text;
  return recipe;
}
// 6 to 24 characters, five to a draw.
Recipe address(uint32_t seed) {
  Recipe recipe = by_row([](uint64_t row) { return static_cast<int64_t>(row); });
  recipe.write_text = [seed](const Chunk&, int64_t row, char* out) {
    constexpr std::string_view alphabet =
        "0123456789abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ,";
    uint32_t at = tpch::step(Stream{seed, 9}.at(static_cast<uint64_t>(row)));
    const int64_t length = tpch::bounded(at, 6, 24);
    for (int64_t i = 0, bits = 0; i < length; ++i, bits >>= 6) {
      if (i % 5 == 0) bits = tpch::bounded(at = tpch::step(at), 0, 2147483647);
      *out++ = alphabet[bits & 63];
    }
    return out;
  };
  return recipe;
}

Recipe day_text() {
  Recipe recipe = by_row([](uint64_t row) { return static_cast<int64_t>(row); });
  recipe.range = days;
  recipe.write_text = [](const Chunk&, int64_t row, char* out) {
    const Day d(first_day + row);
    return fmt::format_to(out, "{} {}, {}", month_names[d.month - 1], d.day, d.year);
  };
  return recipe;
}
// Jan1992
Recipe month_and_year() {
  Recipe recipe = of_day([](const Day& d) { return (d.year - 1992) * 12 + d.month - 1; });
  recipe.range = 84;
  recipe.write_text = [](const Chunk&, int64_t v, char* out) {
    return fmt::format_to(out, "{}{}", month_names[v % 12].substr(0, 3), 1992 + v / 12);
  };
  return recipe;
}

// Rows of part, and the numbers that decide about TPC-H's columns: its parts are the keys that
// lines have.
struct Rows {
  explicit Rows(double scale) : sizes(scale), parts(sizes.parts) {
    const tpch::Sizes fifth(scale * 0.2);
    sizes.suppliers = fifth.suppliers;  // 2,000 and 30,000 at scale 1
    sizes.customers = fifth.customers;
    if (scale < 1) return;
    parts = 200'000 * static_cast<uint64_t>(1 + std::log2(scale));
    sizes.parts = 200'000 * (static_cast<uint64_t>(std::log(scale)) + 1);
  }
  // lineorder is driven by orders.
  uint64_t driving(std::string_view table) const {
    return table == "lineorder"  ? sizes.orders
           : table == "part"     ? parts
           : table == "supplier" ? sizes.suppliers
           : table == "customer" ? sizes.customers
                                 : days;
  }
  tpch::Sizes sizes;
  uint64_t parts;
};

Recipe recipe_of(const data::ColumnSchema& column, const tpch::Sizes& sizes) {
  const auto suppliers = static_cast<int64_t>(sizes.suppliers);
  Recipe made;
#define TABLE(n)
#define COLUMN(n, t, ...) \
  if (column.name == #n) made = __VA_ARGS__;
#define KEY(n, t, ...) COLUMN(n, t, __VA_ARGS__)
#define FOREIGN(n, t, to, key, recipe, row) \
  if (column.name == #n) made = recipe, made.referenced_row = row;
#include "ssb/columns.def"
#undef TABLE
#undef COLUMN
#undef KEY
#undef FOREIGN
  made.schema = &column;
  return made;
}

// The columns of a table; all of them where none is named. The schema outlives the recipe.
Result<tpch::TableRecipe> table_recipe(const data::TableSchema& table, const data::Schema& schema,
                                       std::span<const std::string> columns, double scale) {
  const Rows rows(scale);
  tpch::TableRecipe recipe{.name = table.name,
                           .scale = scale,
                           .sizes = rows.sizes,
                           .driving_rows = rows.driving(table.name)};
  if (table.name == "lineorder") {
    RETURN_IF_ERROR(tpch::check_order_keys(table.name, rows.sizes, scale));
    recipe.rows_of = tpch::count_lines;
  } else {
    recipe.rows_of = [](uint64_t, uint64_t count) { return count; };
  }
  for (const std::string& name : columns) {
    ASSIGN_OR_RETURN(const data::ColumnSchema* column, schema.column(table, name));
    recipe.columns.push_back(recipe_of(*column, rows.sizes));
  }
  if (columns.empty())
    for (const data::ColumnSchema& column : table.columns)
      recipe.columns.push_back(recipe_of(column, rows.sizes));
  return recipe;
}

// The schema, or the same without foreign keys.
data::Schema schema_for(const data::Scheme& of) {
  data::Schema schema = ssb::schema();
  if (&of == &joins_scheme)
    for (data::TableSchema& table : schema.tables)
      for (data::ColumnSchema& column : table.columns)
        column.foreign_table.clear(), column.foreign_key.clear();
  return schema;
}

template <const data::Scheme& of>
Result<std::unique_ptr<data::TableLoader>> open(std::string_view what,
                                                const data::SourceOptions& options) {
  ASSIGN_OR_RETURN(const double scale, tpch::parse_scale(of.name, what));
  auto rows = [scale](const std::string& table) {
    const uint64_t driving = Rows(scale).driving(table);
    return table == "lineorder" ? tpch::count_lines(0, driving) : driving;
  };
  auto columns = [scale, options](const std::string& table, std::span<const std::string> names)
      -> Result<std::vector<data::Column>> {
    const data::Schema schema = schema_for(of);
    ASSIGN_OR_RETURN(const data::TableSchema* found, schema.table(table));
    ASSIGN_OR_RETURN(const tpch::TableRecipe recipe, table_recipe(*found, schema, names, scale));
    return tpch::make_columns(recipe, options.threads, options.progress);
  };
  return tpch::make_loader({.name = of.name, .schema = schema_for(of), .rows = rows, .columns = columns},
                           scale);
}

template <const data::Scheme& of>
Result<data::Schema> schema_of(std::string_view what) {
  RETURN_IF_ERROR(tpch::parse_scale(of.name, what));
  return schema_for(of);
}

}  // namespace

const data::Scheme scheme = {
    .name = "ssb", .form = "ssb:SF", .open = open<scheme>, .schema = schema_of<scheme>};
const data::Scheme joins_scheme = {.name = "ssb-joins",
                                   .form = "ssb-joins:SF",
                                   .open = open<joins_scheme>,
                                   .schema = schema_of<joins_scheme>};

data::Schema schema() {
  data::Schema schema;
#define TABLE(n) schema.tables.push_back({.name = #n, .file = #n ".tbl"});
#define COLUMN(n, t, ...) \
  schema.tables.back().columns.push_back({.name = #n, .type = hir::BasicType::t});
#define KEY(n, t, ...) COLUMN(n, t) schema.tables.back().primary.push_back(#n);
#define FOREIGN(n, t, to, key, recipe, row) \
  schema.tables.back().columns.push_back(   \
      {.name = #n, .type = hir::BasicType::t, .foreign_table = #to, .foreign_key = #key});
#include "ssb/columns.def"
#undef TABLE
#undef COLUMN
#undef KEY
#undef FOREIGN
  return schema;
}

Result<void> write_tables(double scale, const std::string& directory, unsigned threads,
                          bool progress) {
  const data::Schema schema = ssb::schema();
  std::vector<tpch::TableRecipe> tables;
  for (const data::TableSchema& table : schema.tables) {
    ASSIGN_OR_RETURN(tpch::TableRecipe recipe, table_recipe(table, schema, {}, scale));
    tables.push_back(std::move(recipe));
  }
  return tpch::write_folder("SSB", tables, schema, directory, threads, progress);
}

}  // namespace rndn::ssb
