// The recipe of every column: its stream of random numbers and what is made of the draws.
//
// Seeds, ranges and the order of draws are those of the official generator (TPC-H clause 4.2.3 gives the ranges). All
// numbers are integers: keys, cents, days since 1970-01-01, positions in word lists. O(rows) per column, O(log first
// row) to begin.
#include "tpch/chunk.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace rndn::tpch {
namespace {

constexpr uint32_t lines_per_order = 7;  // at most
constexpr uint32_t suppliers_per_part = 4;
constexpr int64_t first_date = 8035;  // 1992-01-01, as days since 1970-01-01
constexpr int64_t last_order_date = first_date + 2557 - 121 - 30 - 1;
constexpr int64_t today = 9298;  // 1995-06-17, the "current date" of the specification
constexpr Stream line_count_stream{1434868289, 1};

int64_t order_key(int64_t index) { return (index >> 3) << 5 | (index & 7); }  // eight keys used, 24 left out
int64_t part_price(int64_t key) { return 90000 + key / 10 % 20001 + key % 1000 * 100; }

int64_t supplier_of_part(int64_t part, int64_t number, int64_t suppliers) {
  return (part + number * (suppliers / suppliers_per_part + (part - 1) / suppliers)) % suppliers + 1;
}

int64_t piece(uint64_t offset, uint64_t length) { return static_cast<int64_t>(offset << 24 | length); }

}  // namespace

Sizes::Sizes(double scale) {
  // A scale factor such as 0.29 is not exact in binary: a millionth of a row makes up for it.
  auto rows = [&](double base) { return std::max<uint64_t>(1, static_cast<uint64_t>(base * scale + 1e-6)); };
  suppliers = rows(10'000);
  parts = rows(200'000);
  customers = rows(150'000);
  orders = rows(1'500'000);
  clerks = static_cast<int64_t>(std::max<uint64_t>(1000, rows(1000)));
}

uint64_t Sizes::driving_rows(Table table) const {
  switch (table) {
    case Table::region: return regions.size();
    case Table::nation: return nations.size();
    case Table::supplier: return suppliers;
    case Table::part:
    case Table::partsupp: return parts;
    case Table::customer: return customers;
    case Table::orders:
    case Table::lineitem: return orders;
  }
  return 0;
}

Result<void> check_scale(double scale) {
  if (!(scale > 0)) return input_error("the TPC-H scale factor must be above 0, got {}", scale);
  // From there on the official generator draws keys in another way.
  if (!(scale < 30000)) return input_error("the TPC-H scale factor must be below 30000, got {}", scale);
  return {};
}

uint64_t count_lines(uint64_t first, uint64_t count) {
  uint64_t lines = 0;
  uint32_t seed = line_count_stream.at(first);
  for (uint64_t i = 0; i < count; ++i) {
    seed = step(seed);
    lines += 1 + scaled(seed, lines_per_order);
  }
  return lines;
}

Chunk::Chunk(const Sizes& sizes, const TextPool* pool) : sizes_(sizes), pool_(pool) {
  size_t columns = 0;
#define COLUMN(table, name, form) ++columns;
#include "tpch/columns.def"
#undef COLUMN
  made_.resize(columns);
}

void Chunk::start(uint64_t first, uint64_t count) {
  first_ = first;
  count_ = count;
  for (Made& made : made_) made.valid = false;
  line_counts_.clear();
  text_.clear();
}

std::span<const int64_t> Chunk::column(ColumnId id) {
  Made& made = made_[index(id)];
  if (!made.valid) {
    made.values.clear();
    make(id, made.values);
    made.valid = true;
  }
  return made.values;
}

uint64_t Chunk::rows(Table table) {
  if (table == Table::partsupp) return count_ * suppliers_per_part;
  if (table != Table::lineitem) return count_;
  line_counts();
  return lines_;
}

std::span<const uint8_t> Chunk::line_counts() {
  if (line_counts_.empty()) {
    uint32_t seed = line_count_stream.at(first_);
    lines_ = 0;
    line_counts_.resize(count_);
    for (uint8_t& lines : line_counts_) {
      seed = step(seed);
      lines = static_cast<uint8_t>(1 + scaled(seed, lines_per_order));
      lines_ += lines;
    }
  }
  return line_counts_;
}

// value(seed at the start of the row, row from 0 within the chunk) for every driving row.
template <class F>
void Chunk::each_row(Stream stream, F&& value, std::vector<int64_t>& out) {
  out.resize(count_);
  const uint32_t jump = power(stream.draws_per_row);
  uint32_t seed = stream.at(first_);
  for (uint64_t i = 0; i < count_; ++i, seed = multiply(seed, jump)) out[i] = value(seed, i);
}

// value(seed at the start of the child's draws, driving row within the chunk) for every line of the orders; a line has
// `draws` draws.
template <class F>
void Chunk::each_child(Stream stream, uint32_t draws, F&& value, std::vector<int64_t>& out) {
  std::span<const uint8_t> counts = line_counts();
  out.resize(lines_);
  const uint32_t jump = power(stream.draws_per_row), next = power(draws);
  uint32_t seed = stream.at(first_);
  int64_t* at = out.data();
  for (uint64_t i = 0; i < count_; ++i, seed = multiply(seed, jump)) {
    uint32_t line_seed = seed;
    for (uint32_t line = 0; line < counts[i]; ++line, line_seed = multiply(line_seed, next))
      *at++ = value(line_seed, i);
  }
}

void Chunk::draw(Stream stream, int64_t low, int64_t high, std::vector<int64_t>& out) {
  each_row(
      stream, [=](uint32_t seed, uint64_t) { return bounded(step(seed), low, high); }, out);
}

void Chunk::draw_lines(uint32_t seed, int64_t low, int64_t high, std::vector<int64_t>& out) {
  each_child(
      {seed, lines_per_order}, 1, [=](uint32_t at, uint64_t) { return bounded(step(at), low, high); }, out);
}

namespace {

// Two draws: where the text starts in the pool and how long it is.
struct Cut {
  int64_t shortest, longest;
  explicit Cut(int average_length) : shortest(average_length * 2 / 5), longest(average_length * 8 / 5) {}
  int64_t operator()(uint32_t seed) const {
    seed = step(seed);
    int64_t offset = bounded(seed, 0, TextPool::size - longest);
    return piece(offset, bounded(step(seed), shortest, longest));
  }
};

}  // namespace

void Chunk::cut_comments(Stream stream, int average_length, std::vector<int64_t>& out) {
  each_row(
      stream, [cut = Cut(average_length)](uint32_t seed, uint64_t) { return cut(seed); }, out);
}

// 10 to 40 characters, five of them from the bits of one draw. The draw is over the range 2^31, which the official
// generator computes as -2^31: the bits are those of a negative number.
void Chunk::make_addresses(uint32_t seed, std::vector<int64_t>& out) {
  static constexpr char alphabet[] = "0123456789abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ,";
  auto make_one = [this](uint32_t at, uint64_t) {
    at = step(at);
    size_t offset = text_.size(), length = static_cast<size_t>(bounded(at, 10, 40));
    int64_t bits = 0;
    for (size_t i = 0; i < length; ++i) {
      if (i % 5 == 0) bits = scaled_in_double(at = step(at), -2147483648.0);
      text_.push_back(alphabet[bits & 63]);
      bits >>= 6;
    }
    return piece(offset, length);
  };
  each_row({seed, 9}, make_one, out);
}

void Chunk::make_phones(uint32_t seed, ColumnId nation, std::vector<int64_t>& out) {
  std::span<const int64_t> nations = column(nation);
  auto make_one = [nations](uint32_t at, uint64_t row) {
    int64_t number = 10 + nations[row];
    number = number * 1000 + bounded(at = step(at), 100, 999);
    number = number * 1000 + bounded(at = step(at), 100, 999);
    return number * 10000 + bounded(step(at), 1000, 9999);
  };
  each_row({seed, 3}, make_one, out);
}

// Ten suppliers of 10,000 have "Customer", some text, and "Complaints" or "Recommends" written over their comment.
void Chunk::make_supplier_comments(std::vector<int64_t>& out) {
  constexpr std::string_view customer = "Customer ", complaints = "Complaints", recommends = "Recommends";
  auto draw_at = [this](uint32_t seed, uint64_t row, int64_t low, int64_t high) {
    return bounded(step(Stream{seed, 1}.at(first_ + row)), low, high);
  };
  auto make_one = [&, cut = Cut(63)](uint32_t seed, uint64_t row) {
    uint64_t source = static_cast<uint64_t>(cut(seed));
    size_t length = source & 0xffffff, begin = text_.size();
    text_.append(pool_->view().substr(source >> 24, length));
    if (draw_at(202794285, row, 1, 10'000) <= 10) {
      int64_t spare = static_cast<int64_t>(length - customer.size() - complaints.size());
      int64_t between = draw_at(263032577, row, 0, spare);
      int64_t before = draw_at(715851524, row, 0, spare - between);
      bool complains = draw_at(753643799, row, 0, 100) < 50;
      text_.replace(begin + before, customer.size(), customer);
      text_.replace(begin + before + customer.size() + between, complaints.size(), complains ? complaints : recommends);
    }
    return piece(begin, length);
  };
  each_row({1341315363, 2}, make_one, out);
}

void Chunk::make(ColumnId id, std::vector<int64_t>& out) {
  using enum ColumnId;
  const int64_t first = static_cast<int64_t>(first_), last_nation = static_cast<int64_t>(nations.size()) - 1;
  auto rows = [&](auto&& value) {  // of a driving table
    out.resize(count_);
    for (uint64_t i = 0; i < count_; ++i) out[i] = value(i);
  };
  auto lines = [&](auto&& value) {
    out.resize(Chunk::rows(Table::lineitem));
    for (uint64_t i = 0; i < lines_; ++i) out[i] = value(i);
  };
  // value(order, line from 0)
  auto lines_of_orders = [&](auto&& value) {
    std::span<const uint8_t> counts = line_counts();
    out.clear();
    out.reserve(lines_);
    for (uint64_t i = 0; i < count_; ++i)
      for (int64_t line = 0; line < counts[i]; ++line) out.push_back(value(i, line));
  };
  auto choose = [&](uint32_t seed, std::span<const std::string_view> words) {
    draw({seed, 1}, 0, static_cast<int64_t>(words.size()) - 1, out);
  };
  // value(seed at the start of the row of partsupp, part, number of the supplier)
  auto part_suppliers = [&](Stream stream, uint32_t draws, auto&& value) {
    out.clear();
    const uint32_t jump = power(stream.draws_per_row), next = power(draws);
    uint32_t seed = stream.at(first_);
    for (uint64_t i = 0; i < count_; ++i, seed = multiply(seed, jump)) {
      uint32_t at = seed;
      for (uint32_t s = 0; s < suppliers_per_part; ++s, at = multiply(at, next))
        out.push_back(value(at, first + 1 + static_cast<int64_t>(i), s));
    }
  };

  switch (id) {
    case r_regionkey:
    case r_name:
    case n_nationkey:
    case n_name: return rows([&](int64_t i) { return first + i; });
    case r_comment: return cut_comments({1500869201, 2}, 72, out);
    case n_regionkey: return rows([&](int64_t i) { return nation_regions[first + i]; });
    case n_comment: return cut_comments({606179079, 2}, 72, out);

    case s_suppkey:
    case s_name:
    case p_partkey:
    case c_custkey:
    case c_name: return rows([&](int64_t i) { return first + i + 1; });
    case s_address: return make_addresses(706178559, out);
    case s_nationkey: return draw({110356601, 1}, 0, last_nation, out);
    case s_phone: return make_phones(884434366, s_nationkey, out);
    case s_acctbal: return draw({962338209, 1}, -99999, 999999, out);
    case s_comment: return make_supplier_comments(out);

    case p_name: {
      // The first five places of a shuffle of all colors; a row has as many draws as there are colors.
      auto shuffle = [](uint32_t seed, uint64_t) {
        uint8_t order[256];
        const int64_t colors = static_cast<int64_t>(part_colors.size());
        for (int64_t i = 0; i < colors; ++i) order[i] = static_cast<uint8_t>(i);
        int64_t name = 0;
        for (int64_t i = 0; i < 5; ++i) {
          seed = step(seed);
          std::swap(order[i], order[bounded(seed, i, colors - 1)]);
          name |= static_cast<int64_t>(order[i]) << 8 * i;
        }
        return name;
      };
      return each_row({709314158, static_cast<uint32_t>(part_colors.size())}, shuffle, out);
    }
    case p_mfgr: return draw({1, 1}, 1, 5, out);
    case p_brand: {
      std::span<const int64_t> maker = column(p_mfgr);
      return each_row(
          {46831694, 1}, [=](uint32_t seed, uint64_t i) { return maker[i] * 10 + bounded(step(seed), 1, 5); }, out);
    }
    case p_type: return choose(1841581359, part_types);
    case p_size: return draw({1193163244, 1}, 1, 50, out);
    case p_container: return choose(727633698, part_containers);
    case p_retailprice: return rows([&](int64_t i) { return part_price(first + i + 1); });
    case p_comment: return cut_comments({804159733, 2}, 14, out);

    case ps_partkey: return part_suppliers({1, 0}, 0, [](uint32_t, int64_t part, int64_t) { return part; });
    case ps_suppkey: {
      const int64_t suppliers = static_cast<int64_t>(sizes_.suppliers);
      return part_suppliers(
          {1, 0}, 0, [=](uint32_t, int64_t part, int64_t number) { return supplier_of_part(part, number, suppliers); });
    }
    case ps_availqty:
      return part_suppliers({1671059989, 4}, 1,
                            [](uint32_t at, int64_t, int64_t) { return bounded(step(at), 1, 9999); });
    case ps_supplycost:
      return part_suppliers({1051288424, 4}, 1,
                            [](uint32_t at, int64_t, int64_t) { return bounded(step(at), 100, 100000); });
    case ps_comment:
      return part_suppliers({1961692154, 8}, 2, [cut = Cut(124)](uint32_t at, int64_t, int64_t) { return cut(at); });

    case c_address: return make_addresses(881155353, out);
    case c_nationkey: return draw({1489529863, 1}, 0, last_nation, out);
    case c_phone: return make_phones(1521138112, c_nationkey, out);
    case c_acctbal: return draw({298370230, 1}, -99999, 999999, out);
    case c_mktsegment: return choose(1140279430, market_segments);
    case c_comment: return cut_comments({1335826707, 2}, 73, out);

    case o_orderkey: return rows([&](int64_t i) { return order_key(first + i + 1); });
    case o_custkey: {
      // A third of the customers never order: a key divisible by three moves up and down until it is not.
      const int64_t customers = static_cast<int64_t>(sizes_.customers);
      auto pick = [=](uint32_t seed, uint64_t) {
        int64_t customer = bounded(step(seed), 1, customers);
        for (int64_t delta = 1; customer % 3 == 0; delta = -delta) customer = std::min(customer + delta, customers);
        return customer;
      };
      return each_row({851767375, 1}, pick, out);
    }
    case o_orderstatus: {
      std::span<const int64_t> ship_dates = column(l_shipdate);
      std::span<const uint8_t> counts = line_counts();
      size_t line = 0;
      return rows([&](int64_t i) -> int64_t {
        int shipped = 0;
        for (size_t end = line + counts[i]; line < end; ++line) shipped += ship_dates[line] <= today;
        return shipped == counts[i] ? 'F' : shipped > 0 ? 'P' : 'O';
      });
    }
    case o_totalprice: {
      std::span<const int64_t> price = column(l_extendedprice), discount = column(l_discount), tax = column(l_tax);
      std::span<const uint8_t> counts = line_counts();
      size_t line = 0;
      return rows([&](int64_t i) {
        int64_t total = 0;
        for (size_t end = line + counts[i]; line < end; ++line)
          total += price[line] * (100 - discount[line]) / 100 * (100 + tax[line]) / 100;
        return total;
      });
    }
    case o_orderdate: return draw({1066728069, 1}, first_date, last_order_date, out);
    case o_orderpriority: return choose(591449447, order_priorities);
    case o_clerk: return draw({1171034773, 1}, 1, sizes_.clerks, out);
    case o_shippriority: return rows([](int64_t) { return 0; });
    case o_comment: return cut_comments({276090261, 2}, 49, out);

    case l_orderkey: return lines_of_orders([&](int64_t order, int64_t) { return order_key(first + order + 1); });
    case l_linenumber: return lines_of_orders([](int64_t, int64_t line) { return line + 1; });
    case l_partkey: return draw_lines(1808217256, 1, static_cast<int64_t>(sizes_.parts), out);
    case l_suppkey: {
      const int64_t* part = column(l_partkey).data();
      const int64_t suppliers = static_cast<int64_t>(sizes_.suppliers);
      auto pick = [=](uint32_t at, uint64_t) mutable {
        return supplier_of_part(*part++, bounded(step(at), 0, 3), suppliers);
      };
      return each_child({2095021727, lines_per_order}, 1, pick, out);
    }
    case l_quantity: return draw_lines(209208115, 1, 50, out);
    case l_extendedprice: {
      std::span<const int64_t> part = column(l_partkey), quantity = column(l_quantity);
      return lines([&](int64_t i) { return part_price(part[i]) * quantity[i]; });
    }
    case l_discount: return draw_lines(554590007, 0, 10, out);
    case l_tax: return draw_lines(721958466, 0, 8, out);
    case l_shipdate:
    case l_commitdate: {
      std::span<const int64_t> ordered = column(o_orderdate);
      int64_t low = id == l_shipdate ? 1 : 30, high = id == l_shipdate ? 121 : 90;
      return each_child(
          {id == l_shipdate ? 1769349045u : 904914315u, lines_per_order}, 1,
          [=](uint32_t at, uint64_t order) { return ordered[order] + bounded(step(at), low, high); }, out);
    }
    case l_receiptdate: {
      const int64_t* shipped = column(l_shipdate).data();
      return each_child(
          {373135028, lines_per_order}, 1,
          [=](uint32_t at, uint64_t) mutable { return *shipped++ + bounded(step(at), 1, 30); }, out);
    }
    case l_returnflag: {
      // Only lines that have arrived draw; the draw is taken from the next place of the order's seven.
      const int64_t* received = column(l_receiptdate).data();
      uint64_t order = UINT64_MAX;
      uint32_t next = 0;
      auto pick = [=](uint32_t at, uint64_t i) mutable -> int64_t {
        if (i != order) order = i, next = at;
        if (*received++ > today) return 'N';
        next = step(next);
        return scaled(next, 2) == 0 ? 'R' : 'A';
      };
      return each_child({717419739, lines_per_order}, 1, pick, out);
    }
    case l_linestatus: {
      std::span<const int64_t> shipped = column(l_shipdate);
      return lines([&](int64_t i) { return shipped[i] <= today ? 'F' : 'O'; });
    }
    case l_shipinstruct: return draw_lines(1371272478, 0, static_cast<int64_t>(ship_instructions.size()) - 1, out);
    case l_shipmode: return draw_lines(675466456, 0, static_cast<int64_t>(ship_modes.size()) - 1, out);
    case l_comment:
      return each_child(
          {1095462486, 2 * lines_per_order}, 2, [cut = Cut(27)](uint32_t at, uint64_t) { return cut(at); }, out);
  }
}

char* Chunk::write_text(const ColumnInfo& info, int64_t value, char* out) const {
  auto append = [&](std::string_view text) {
    std::memcpy(out, text.data(), text.size());
    out += text.size();
  };
  auto digits = [&](int64_t number, int at_least) {
    char buffer[20];
    char* begin = std::end(buffer);
    for (int written = 0; number > 0 || written < at_least; number /= 10, ++written)
      *--begin = static_cast<char>('0' + number % 10);
    append({begin, static_cast<size_t>(std::end(buffer) - begin)});
  };
  uint64_t bits = static_cast<uint64_t>(value);
  switch (info.form) {
    case Form::choice: append((*info.words)[bits]); break;
    case Form::numbered:
      append(info.prefix);
      digits(value, info.digits);
      break;
    case Form::phone:
      digits(value / 10'000'000'000, 2);
      *out++ = '-';
      digits(value / 10'000'000 % 1000, 3);
      *out++ = '-';
      digits(value / 10'000 % 1000, 3);
      *out++ = '-';
      digits(value % 10'000, 4);
      break;
    case Form::colors:
      for (int i = 0; i < 5; ++i) {
        if (i) *out++ = ' ';
        append(part_colors[bits >> 8 * i & 255]);
      }
      break;
    case Form::comment: append({pool_->data() + (bits >> 24), bits & 0xffffff}); break;
    case Form::made: append({text_.data() + (bits >> 24), bits & 0xffffff}); break;
    default: CHECK(false, "{} is no text column", info.name);
  }
  return out;
}

}  // namespace rndn::tpch
