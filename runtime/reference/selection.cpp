// Builtins that choose, place and make elements (docs/horseir.md): compress, where, index, take,
// range, ...
#include <unordered_map>
#include <unordered_set>

#include "runtime/reference/builtins.h"

namespace rndn::reference {

using hir::BasicType;

Value gather(const Value& x, const std::vector<int64_t>& rows) {
  if (x.kind == Value::enumeration) return enumeration(x.parts()[0], gather(x.parts()[1], rows));
  CHECK(x.is_vector());
  if (x.is_text_vector())
    return make_texts(x.type, rows.size(), [&](uint64_t i) -> std::string_view {
      return x.text(static_cast<uint64_t>(rows[i]));
    });
  size_t width = data::plain_width(x.type);
  std::vector<std::byte> out(rows.size() * width);
  for (size_t i = 0; i < rows.size(); ++i)
    std::memcpy(out.data() + i * width, x.bytes->data() + static_cast<size_t>(rows[i]) * width, width);
  return vector_from_bytes(x.type, rows.size(), std::move(out));
}

Result<int64_t> integer_scalar(std::string_view function, const Value& v) {
  if (!v.is_vector() || !hir::is_integer(v.type) || v.size != 1)
    return input_error("`{}` expects one integer, got {}", function, describe(v));
  return elements<int64_t>(v)[0];
}

namespace {

// A vector of n copies of the type's zero: 0, false, "".
Value zeros(BasicType type, uint64_t n) {
  if (hir::is_text(type)) return vector_of_texts(type, std::vector<std::string>(n));
  return vector_from_bytes(type, n, std::vector<std::byte>(n * data::plain_width(type)));
}

Value concatenate(const Value& x, const Value& y) {
  if (x.is_text_vector())
    return make_texts(x.type, x.size + y.size, [&](uint64_t i) -> std::string_view {
      return i < x.size ? x.text(i) : y.text(i - x.size);
    });
  size_t width = data::plain_width(x.type);
  std::vector<std::byte> out;
  for (const Value* v : {&x, &y})
    if (v->size) out.insert(out.end(), v->bytes->begin(), v->bytes->begin() + static_cast<ptrdiff_t>(v->size * width));
  return vector_from_bytes(x.type, x.size + y.size, std::move(out));
}

std::vector<int64_t> counting(int64_t from, int64_t to) {
  std::vector<int64_t> out;
  for (int64_t i = from; i < to; ++i) out.push_back(i);
  return out;
}

// A length that a program asks for, before anything of that length is made.
Result<int64_t> bounded_length(const Context& context, std::string_view function, int64_t n) {
  if (n > 0 && static_cast<uint64_t>(n) > context.state->longest)
    return input_error("`{}` of {} elements is more than the {} that one vector may have", function, n,
                       context.state->longest);
  if (n > 0) expect_memory(static_cast<uint64_t>(n) * sizeof(int64_t));
  return n;
}

Result<Value> range(Context& context, Arguments a) {
  ASSIGN_OR_RETURN(int64_t n, integer_scalar("range", a[0]));
  ASSIGN_OR_RETURN(n, bounded_length(context, "range", n));
  return make<int64_t>(BasicType::i64, counting(0, n));
}

Result<Value> reverse(Context&, Arguments a) {
  if (!a[0].is_vector()) return input_error("`reverse` expects a vector, got {}", describe(a[0]));
  std::vector<int64_t> rows = counting(0, static_cast<int64_t>(a[0].size));
  return gather(a[0], {rows.rbegin(), rows.rend()});
}

std::vector<int64_t> true_rows(const Value& mask) {
  std::vector<int64_t> rows;
  std::vector<uint8_t> m = elements<uint8_t>(mask);
  for (size_t i = 0; i < m.size(); ++i)
    if (m[i]) rows.push_back(static_cast<int64_t>(i));
  return rows;
}

Result<Value> where(Context&, Arguments a) {
  if (!a[0].is_vector() || a[0].type != BasicType::boolean)
    return input_error("`where` expects a bool vector, got {}", describe(a[0]));
  return make<int64_t>(BasicType::i64, true_rows(a[0]));
}

Result<Value> compress(Context&, Arguments a) {
  if (!a[0].is_vector() || a[0].type != BasicType::boolean)
    return input_error("`compress` expects a bool vector as mask, got {}", describe(a[0]));
  if (!a[1].is_vector() && a[1].kind != Value::enumeration)
    return input_error("`compress` expects a vector, got {}", describe(a[1]));
  if (a[0].size != length(a[1]))
    return input_error("`compress` expects a mask as long as the vector, got {} and {} elements", a[0].size,
                       length(a[1]));
  return gather(a[1], true_rows(a[0]));
}

Result<Value> take(Context& context, Arguments a) {
  ASSIGN_OR_RETURN(int64_t k, integer_scalar("take", a[0]));
  if (!a[1].is_vector()) return input_error("`take` expects a vector, got {}", describe(a[1]));
  int64_t n = static_cast<int64_t>(a[1].size);
  if (k == INT64_MIN) return input_error("`take` of {} elements", k);
  int64_t wanted = k < 0 ? -k : k, got = std::min(wanted, n);
  ASSIGN_OR_RETURN(wanted, bounded_length(context, "take", wanted));
  Value part = gather(a[1], k >= 0 ? counting(0, got) : counting(n - got, n));
  if (wanted == got) return part;
  Value padding = zeros(a[1].type, static_cast<uint64_t>(wanted - got));
  return k >= 0 ? concatenate(part, padding) : concatenate(padding, part);
}

Result<Value> drop(Context&, Arguments a) {
  ASSIGN_OR_RETURN(int64_t k, integer_scalar("drop", a[0]));
  if (!a[1].is_vector()) return input_error("`drop` expects a vector, got {}", describe(a[1]));
  int64_t n = static_cast<int64_t>(a[1].size);
  return gather(a[1], k >= 0 ? counting(std::min(k, n), n) : counting(0, k <= -n ? 0 : n + k));
}

Result<Value> append(Context&, Arguments a) {
  const Value &x = a[0], &y = a[1];
  if (x.kind == Value::list || y.kind == Value::list) {
    std::vector<Value> cells;
    for (const Value* v : {&x, &y}) {
      if (v->kind == Value::list)
        cells.insert(cells.end(), v->parts().begin(), v->parts().end());
      else
        cells.push_back(*v);
    }
    return list(std::move(cells));
  }
  if (x.kind == Value::enumeration && y.is_vector()) {
    const Value& keys = x.parts()[0];
    BasicType as = keys.is_text_vector() || keys.type == y.type ? keys.type : hir::widest(keys.type, y.type);
    std::vector<std::string> known = row_keys({&keys, 1}, {&as, 1}, nullptr),
                             wanted = row_keys({&y, 1}, {&as, 1}, nullptr);
    std::unordered_map<std::string_view, int64_t> first;
    for (size_t i = 0; i < known.size(); ++i) first.emplace(known[i], static_cast<int64_t>(i));
    std::vector<int64_t> rows = elements<int64_t>(x.parts()[1]);
    for (size_t i = 0; i < wanted.size(); ++i) {
      auto it = first.find(wanted[i]);
      if (it == first.end()) return input_error("`append` to an enum: element {} is not among its keys", i);
      rows.push_back(it->second);
    }
    return enumeration(keys, make<int64_t>(BasicType::i64, rows));
  }
  if (!x.is_vector() || !y.is_vector())
    return input_error("`append` is not defined for {}, {}", describe(x), describe(y));
  if (x.type == y.type || (x.is_text_vector() && y.is_text_vector())) return concatenate(x, y);
  if (!hir::is_ordered_number(x.type) || !hir::is_ordered_number(y.type))
    return input_error("`append` is not defined for {}, {}", describe(x), describe(y));
  BasicType type = hir::widest(x.type, y.type);
  return with_type(type, [&](auto zero) {
    using T = decltype(zero);
    return concatenate(make<T>(type, elements<T>(x)), make<T>(type, elements<T>(y)));
  });
}

Result<Value> replicate(Context& context, Arguments a) {
  ASSIGN_OR_RETURN(int64_t k, integer_scalar("replicate", a[0]));
  ASSIGN_OR_RETURN(k, bounded_length(context, "replicate", k));
  std::vector<Value> cells;
  for (int64_t i = 0; i < k; ++i) {
    if (a[1].kind == Value::list)
      cells.insert(cells.end(), a[1].parts().begin(), a[1].parts().end());
    else
      cells.push_back(a[1]);
  }
  return list(std::move(cells));
}

Result<Value> vector_(Context& context, Arguments a) {
  ASSIGN_OR_RETURN(int64_t k, integer_scalar("vector", a[0]));
  ASSIGN_OR_RETURN(k, bounded_length(context, "vector", k));
  if (!a[1].is_vector()) return input_error("`vector` expects a vector to repeat, got {}", describe(a[1]));
  if (k < 0) return input_error("`vector` of the negative length {}", k);
  int64_t m = static_cast<int64_t>(a[1].size);
  if (m == 0 && k > 0) return input_error("`vector` cannot repeat an empty vector to {} elements", k);
  std::vector<int64_t> rows(static_cast<size_t>(k));
  for (int64_t i = 0; i < k; ++i) rows[static_cast<size_t>(i)] = i % m;
  return gather(a[1], rows);
}

Result<Value> index_(Context&, Arguments a) {
  const Value &x = a[0], &k = a[1];
  if (!k.is_vector() || !hir::is_integer(k.type))
    return input_error("`index` expects integers as indexes, got {}", describe(k));
  std::vector<int64_t> rows = elements<int64_t>(k);
  int64_t n = static_cast<int64_t>(length(x));
  for (size_t i = 0; i < rows.size(); ++i)
    if (rows[i] < 0 || rows[i] >= n)
      return input_error("`index` {} at element {} is out of range: {} has {} elements", rows[i], i, describe(x), n);
  if (x.kind == Value::list) {
    if (rows.size() != 1) return input_error("`index` into a list expects one index, got {}", rows.size());
    return x.parts()[static_cast<size_t>(rows[0])];
  }
  if (!x.is_vector() && x.kind != Value::enumeration)
    return input_error("`index` expects a vector or a list, got {}", describe(x));
  return gather(x, rows);
}

// Element i of the result: element rows[i] of x, or of `other` where rows[i] is below 0.
Value gather_or(const Value& x, const std::vector<int64_t>& rows, const Value& other, const std::vector<int64_t>& other_rows) {
  if (x.is_text_vector())
    return make_texts(x.type, rows.size(), [&](uint64_t i) -> std::string_view {
      return rows[i] < 0 ? other.text(static_cast<uint64_t>(other_rows[i])) : x.text(static_cast<uint64_t>(rows[i]));
    });
  const size_t width = data::plain_width(x.type);
  std::vector<std::byte> out(rows.size() * width);
  for (size_t i = 0; i < rows.size(); ++i) {
    const Value& from = rows[i] < 0 ? other : x;
    const auto at = static_cast<size_t>(rows[i] < 0 ? other_rows[i] : rows[i]);
    std::memcpy(out.data() + i * width, from.bytes->data() + at * width, width);
  }
  return vector_from_bytes(x.type, rows.size(), std::move(out));
}

Result<Value> index_or(Context&, Arguments a) {
  const Value &x = a[0], &k = a[1], &other = a[2];
  if (!x.is_vector() || !k.is_vector() || !hir::is_integer(k.type) || !other.is_vector() || other.type != x.type)
    return input_error("`index_or` is not defined for {}, {}, {}", describe(x), describe(k), describe(other));
  if (other.size != 1) return input_error("`index_or` expects a scalar for rows that are not there, got {}", describe(other));
  std::vector<int64_t> rows = elements<int64_t>(k);
  for (int64_t& row : rows)
    if (row >= static_cast<int64_t>(x.size)) row = -1;
  return gather_or(x, rows, other, std::vector<int64_t>(rows.size(), 0));
}

Result<Value> select(Context&, Arguments a) {
  const Value &mask = a[0], &x = a[1], &y = a[2];
  if (!mask.is_vector() || mask.type != BasicType::boolean || !x.is_vector() || !y.is_vector() || x.type != y.type)
    return input_error("`select` is not defined for {}, {}, {}", describe(mask), describe(x), describe(y));
  uint64_t n = 1;
  for (const Value& v : a)
    if (v.size != 1) {
      if (n != 1 && v.size != n)
        return input_error("`select` expects vectors of one length or scalars, got {}, {} and {} elements", mask.size, x.size, y.size);
      n = v.size;
    }
  const auto at = [](const Value& v, uint64_t i) { return static_cast<int64_t>(v.size == 1 ? 0 : i); };
  std::vector<int64_t> from_x(n), from_y(n);
  for (uint64_t i = 0; i < n; ++i) {
    from_x[i] = mask.as<uint8_t>()[at(mask, i)] ? at(x, i) : -1;
    from_y[i] = at(y, i);
  }
  return gather_or(x, from_x, y, from_y);
}

Result<Value> require(Context&, Arguments a) {
  const Value &ok = a[0], &x = a[1], &message = a[2];
  if (!ok.is_vector() || ok.type != BasicType::boolean || !x.is_vector() || !message.is_vector() || message.size != 1 ||
      message.type != BasicType::sym)
    return input_error("`require` is not defined for {}, {}, {}", describe(ok), describe(x), describe(message));
  if (ok.size != 1 && x.size != 1 && ok.size != x.size)
    return input_error("`require` expects vectors of one length or scalars, got {} and {} elements", ok.size, x.size);
  const uint64_t n = ok.size != 1 ? ok.size : x.size;
  for (uint64_t i = 0; i < ok.size && n != 0; ++i)
    if (!ok.as<uint8_t>()[i]) {
      const std::string text = message.text(0);
      Error error = input_error("`require` is not met at element {}: {}", i, text);
      error.subject = text;
      return error;
    }
  return n == x.size ? x : gather_or(x, std::vector<int64_t>(n, 0), x, std::vector<int64_t>(n, 0));
}

Result<Value> index_assign(Context&, Arguments a) {
  const Value &x = a[0], &k = a[1], &m = a[2];
  if (!x.is_vector() || !m.is_vector() || !k.is_vector() || !hir::is_integer(k.type))
    return input_error("`index_a` is not defined for {}, {}, {}", describe(x), describe(k), describe(m));
  if (m.size != k.size && m.size != 1)
    return input_error("`index_a` expects one value per index or a scalar, got {} indexes and {} values", k.size,
                       m.size);
  std::vector<int64_t> rows = elements<int64_t>(k);
  for (size_t i = 0; i < rows.size(); ++i)
    if (rows[i] < 0 || rows[i] >= static_cast<int64_t>(x.size))
      return input_error("`index_a` index {} at element {} is out of range: {} elements", rows[i], i, x.size);
  if (x.is_text_vector()) {
    if (!m.is_text_vector()) return input_error("`index_a` cannot put {} into {}", describe(m), describe(x));
    constexpr uint64_t stays = UINT64_MAX;
    std::vector<uint64_t> from(x.size, stays);
    for (size_t i = 0; i < rows.size(); ++i) from[static_cast<size_t>(rows[i])] = m.size == 1 ? 0 : i;
    return make_texts(x.type, x.size, [&](uint64_t i) -> std::string_view {
      return from[i] == stays ? x.text(i) : m.text(from[i]);
    });
  }
  bool fits =
      m.type == x.type || (hir::is_numeric(x.type) && hir::is_numeric(m.type) && hir::widest(x.type, m.type) == x.type);
  if (!fits) return input_error("`index_a` cannot put {} into {}", describe(m), describe(x));
  if (x.type == BasicType::complex) {
    std::vector<std::complex<double>> out = complexes(x), values = complexes(m);
    for (size_t i = 0; i < rows.size(); ++i) out[static_cast<size_t>(rows[i])] = values[m.size == 1 ? 0 : i];
    return make<std::complex<double>>(x.type, out);
  }
  return with_type(x.type, [&](auto zero) {
    using T = decltype(zero);
    std::vector<T> out = elements<T>(x), values = elements<T>(m);
    for (size_t i = 0; i < rows.size(); ++i) out[static_cast<size_t>(rows[i])] = values[values.size() == 1 ? 0 : i];
    return make<T>(x.type, out);
  });
}

// Pseudo-random numbers: the Lehmer generator 16807 modulo 2^31 - 1, two draws per number. Its state belongs to the run of
// the program.
uint64_t next_random(RunState& state) { return state.random = state.random * 16807 % 2147483647; }
int64_t random_below(RunState& state, int64_t x) {
  uint64_t high = next_random(state);
  return static_cast<int64_t>((high << 31 | next_random(state)) % static_cast<uint64_t>(x));
}

Result<Value> seed(Context& context, Arguments a) {
  ASSIGN_OR_RETURN(int64_t s, integer_scalar("seed", a[0]));
  uint64_t reduced = static_cast<uint64_t>(s) % 2147483647;
  context.state->random = reduced ? reduced : 16807;
  return scalar_i64(s);
}

Result<Value> rand_(Context& context, Arguments a) {
  ASSIGN_OR_RETURN(int64_t x, integer_scalar("rand", a[0]));
  if (x <= 0) return input_error("`rand` expects a positive bound, got {}", x);
  return scalar_i64(random_below(*context.state, x));
}

Result<Value> randk(Context& context, Arguments a) {
  ASSIGN_OR_RETURN(int64_t k, integer_scalar("randk", a[0]));
  ASSIGN_OR_RETURN(int64_t x, integer_scalar("randk", a[1]));
  if (k < 0 || k >= x) return input_error("`randk` cannot draw {} distinct numbers below {}", k, x);
  ASSIGN_OR_RETURN(k, bounded_length(context, "randk", k));
  // Floyd's sampling: k distinct numbers in k steps (Bentley, Programming Pearls, column 12).
  std::vector<int64_t> out;
  std::unordered_set<int64_t> seen;
  for (int64_t j = x - k; j < x; ++j) {
    int64_t t = random_below(*context.state, j + 1);
    if (!seen.insert(t).second) seen.insert(t = j);
    out.push_back(t);
  }
  return make<int64_t>(BasicType::i64, out);
}

}  // namespace

std::span<const BuiltinEntry> selection_builtins() {
  static constexpr BuiltinEntry entries[] = {
      {"range", range},    {"reverse", reverse}, {"where", where},          {"compress", compress},
      {"take", take},      {"drop", drop},       {"append", append},        {"replicate", replicate},
      {"vector", vector_}, {"index", index_},    {"index_a", index_assign}, {"index_or", index_or}, {"select", select}, {"require", require}, {"seed", seed},
      {"rand", rand_},     {"randk", randk},
  };
  return entries;
}

}  // namespace rndn::reference
