// Element-wise builtins (docs/horseir.md): arithmetic, mathematics, comparison, logic, calendar.
//
// Every operand is first converted to the type in which the specification computes, then one plain loop does the work.
#include <numbers>

#include "runtime/reference/builtins.h"

namespace rndn::reference {

using hir::BasicType;

Value make_bool(const std::vector<uint8_t>& elements) { return make<uint8_t>(BasicType::boolean, elements); }
Value scalar_i64(int64_t x) { return make<int64_t>(BasicType::i64, {x}); }

std::string describe(const Value& v) {
  switch (v.kind) {
    case Value::vector: return fmt::format("{}[{}]", hir::basic_type_name(v.type), v.size);
    case Value::list: return fmt::format("list[{}]", length(v));
    case Value::dict: return "dict";
    case Value::enumeration: return "enum";
    case Value::table: return "table";
    case Value::ktable: return "ktable";
    case Value::functions: return "function";
    case Value::none: return "nothing";
  }
  return "?";
}

Value empty_vector(BasicType type) {
  return hir::is_text(type) ? vector_of_texts(type, {}) : vector_from_bytes(type, 0, std::vector<std::byte>());
}

namespace {

using Complex = std::complex<double>;

Error domain(std::string_view name, Arguments a) {
  std::string types;
  for (const Value& v : a) types += (types.empty() ? "" : ", ") + describe(v);
  return input_error("`{}` is not defined for {}", name, types);
}

bool ordered(const Value& v) { return v.is_vector() && hir::is_ordered_number(v.type); }
bool real(const Value& v) { return v.is_vector() && hir::is_real(v.type); }
bool integer(const Value& v) { return v.is_vector() && hir::is_integer(v.type); }
bool numeric(const Value& v) { return v.is_vector() && hir::is_numeric(v.type); }
bool calendar(const Value& v) { return v.is_vector() && hir::is_calendar(v.type); }
bool boolean(const Value& v) { return v.is_vector() && v.type == BasicType::boolean; }

// Length of a broadcast result: equal lengths, or one operand of length 1.
Result<uint64_t> broadcast(std::string_view name, const Value& a, const Value& b) {
  if (a.size == b.size || b.size == 1) return a.size;
  if (a.size == 1) return b.size;
  return input_error("`{}` expects vectors of one length or a scalar, got {} and {} elements", name, a.size, b.size);
}

// result[i] = f(a[i], b[i]) over vectors of T with broadcasting.
template <class R, class T, class F>
Value zip(BasicType type, const std::vector<T>& a, const std::vector<T>& b, uint64_t n, F f) {
  std::vector<R> out(n);
  for (uint64_t i = 0; i < n; ++i) out[i] = f(a[a.size() == 1 ? 0 : i], b[b.size() == 1 ? 0 : i]);
  return make<R>(type, out);
}

// --- Arithmetic
// ----------------------------------------------------------------------------------------------------------------

// Integer results wrap: compute unsigned. bool op bool gives i16
// (docs/horseir.md, "Conversions in operations").
BasicType arithmetic_type(BasicType a, BasicType b) {
  BasicType w = hir::widest(a, b);
  return w == BasicType::boolean ? BasicType::i16 : w;
}

int64_t unit(BasicType type) { return type == BasicType::minute ? 60 : 1; }  // storage units per unit of arithmetic

enum class Op { plus, minus, mul, div, mod };

// Products and quotients of complex numbers are those of these formulas, not what a compiler's library makes of infinities and NaN: the same bits on
// every device. Division: R. L. Smith, "Algorithm 116: Complex division", CACM 5:8, 1962.
Complex product(Complex x, Complex y) {
  return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
}
Complex quotient(Complex x, Complex y) {
  if (std::abs(y.real()) >= std::abs(y.imag())) {
    const double ratio = y.imag() / y.real(), scale = y.real() + y.imag() * ratio;
    return {(x.real() + x.imag() * ratio) / scale, (x.imag() - x.real() * ratio) / scale};
  }
  const double ratio = y.real() / y.imag(), scale = y.imag() + y.real() * ratio;
  return {(x.imag() + x.real() * ratio) / scale, -(x.real() - x.imag() * ratio) / scale};
}

template <class T>
T compute(Op op, T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    switch (op) {
      case Op::plus: return x + y;
      case Op::minus: return x - y;
      case Op::mul: return x * y;
      case Op::div: return x / y;
      case Op::mod: return std::fmod(x, y);
    }
  } else {
    using U = std::make_unsigned_t<T>;
    // Products of 16-bit unsigned values would promote to int and overflow: go through 64 bits or more.
    std::common_type_t<U, uint64_t> ux = static_cast<U>(x), uy = static_cast<U>(y);
    switch (op) {
      case Op::plus: return static_cast<T>(static_cast<U>(ux + uy));
      case Op::minus: return static_cast<T>(static_cast<U>(ux - uy));
      case Op::mul: return static_cast<T>(static_cast<U>(ux * uy));
      case Op::div: return y == -1 ? static_cast<T>(static_cast<U>(0 - ux)) : static_cast<T>(x / y);
      case Op::mod: return y == -1 ? 0 : static_cast<T>(x % y);
    }
  }
  return {};
}

template <Op op>
Result<Value> arithmetic(Context&, Arguments a) {
  static constexpr std::string_view names[] = {"plus", "minus", "mul", "div", "mod"};
  std::string_view name = names[static_cast<int>(op)];
  const Value &x = a[0], &y = a[1];
  if constexpr (op == Op::plus || op == Op::minus) {
    bool xc = calendar(x), yc = calendar(y);
    if (xc || yc) {
      bool both = xc && yc;
      if (both ? (op != Op::minus || x.type != y.type) : !(integer(xc ? y : x) && (xc || op == Op::plus)))
        return domain(name, a);
      ASSIGN_OR_RETURN(uint64_t n, broadcast(name, x, y));
      std::vector<int64_t> u = elements<int64_t>(x), v = elements<int64_t>(y);
      BasicType type = xc ? x.type : y.type;
      int64_t scale = unit(type);
      if (both) {
        BasicType result = type == BasicType::dt ? BasicType::i64 : BasicType::i32;
        Value wide = zip<int64_t>(BasicType::i64, u, v, n,
                                  [&](int64_t p, int64_t q) { return compute(Op::minus, p, q) / scale; });
        return result == BasicType::i64 ? wide : make<int32_t>(result, elements<int32_t>(wide));
      }
      for (int64_t& k : xc ? v : u) k = compute(Op::mul, k, scale);
      Value wide = zip<int64_t>(BasicType::i64, u, v, n, [](int64_t p, int64_t q) { return compute(op, p, q); });
      return with_type(type, [&](auto zero) { return make<decltype(zero)>(type, elements<decltype(zero)>(wide)); });
    }
  }
  const bool both = op == Op::mod ? real(x) && real(y) : (numeric(x) && numeric(y)) || (ordered(x) && ordered(y));
  if (!both) return domain(name, a);
  ASSIGN_OR_RETURN(uint64_t n, broadcast(name, x, y));
  BasicType type = arithmetic_type(x.type, y.type);
  if (type == BasicType::complex)
    return zip<Complex>(type, complexes(x), complexes(y), n, [](Complex p, Complex q) {
      return op == Op::plus ? p + q : op == Op::minus ? p - q : op == Op::mul ? product(p, q) : quotient(p, q);
    });
  return with_type(type, [&](auto zero) -> Result<Value> {
    using T = decltype(zero);
    std::vector<T> u = elements<T>(x), v = elements<T>(y);
    if constexpr (std::is_integral_v<T>)
      if (op == Op::div || op == Op::mod)
        for (uint64_t i = 0; i < (n ? v.size() : 0); ++i)
          if (v[i] == 0) return input_error("`{}` divides by zero at element {}", name, i);
    return zip<T>(type, u, v, n, [](T p, T q) { return compute(op, p, q); });
  });
}

// --- Comparison and logic
// --------------------------------------------------------------------------------------------------------

enum class Cmp { lt, gt, leq, geq, eq, neq };

template <class T>
bool holds(Cmp c, const T& x, const T& y) {
  switch (c) {
    case Cmp::lt: return x < y;
    case Cmp::gt: return x > y;
    case Cmp::leq: return x <= y;
    case Cmp::geq: return x >= y;
    case Cmp::eq: return x == y;
    case Cmp::neq: return x != y;
  }
  return false;
}

template <Cmp c>
Result<Value> comparison(Context&, Arguments a) {
  static constexpr std::string_view names[] = {"lt", "gt", "leq", "geq", "eq", "neq"};
  std::string_view name = names[static_cast<int>(c)];
  const Value &x = a[0], &y = a[1];
  if (!x.is_vector() || !y.is_vector()) return domain(name, a);
  ASSIGN_OR_RETURN(uint64_t n, broadcast(name, x, y));
  std::vector<uint8_t> out(n);
  auto at = [](const Value& v, uint64_t i) { return v.size == 1 ? 0 : i; };
  if (x.is_text_vector() && y.is_text_vector()) {
    for (uint64_t i = 0; i < n; ++i) out[i] = holds(c, x.text(at(x, i)), y.text(at(y, i)));
    return make_bool(out);
  }
  bool comparable = (ordered(x) && ordered(y)) || (calendar(x) && x.type == y.type);
  if ((c == Cmp::eq || c == Cmp::neq) && numeric(x) && numeric(y) && !comparable) {
    std::vector<Complex> u = complexes(x), v = complexes(y);
    for (uint64_t i = 0; i < n; ++i) out[i] = (u[at(x, i)] == v[at(y, i)]) == (c == Cmp::eq);
    return make_bool(out);
  }
  if (!comparable) return domain(name, a);
  BasicType type = calendar(x) ? x.type : hir::widest(x.type, y.type);
  return with_type(type, [&](auto zero) {
    using T = decltype(zero);
    return zip<uint8_t>(BasicType::boolean, elements<T>(x), elements<T>(y), n,
                        [](T p, T q) { return static_cast<uint8_t>(holds(c, p, q)); });
  });
}

enum class Logic { and_, or_, nand, nor, xor_ };

template <Logic op>
Result<Value> logic(Context&, Arguments a) {
  static constexpr std::string_view names[] = {"and", "or", "nand", "nor", "xor"};
  std::string_view name = names[static_cast<int>(op)];
  if (!boolean(a[0]) || !boolean(a[1])) return domain(name, a);
  ASSIGN_OR_RETURN(uint64_t n, broadcast(name, a[0], a[1]));
  return zip<uint8_t>(BasicType::boolean, elements<uint8_t>(a[0]), elements<uint8_t>(a[1]), n,
                      [](uint8_t p, uint8_t q) -> uint8_t {
                        bool x = p, y = q;
                        switch (op) {
                          case Logic::and_: return x && y;
                          case Logic::or_: return x || y;
                          case Logic::nand: return !(x && y);
                          case Logic::nor: return !(x || y);
                          case Logic::xor_: return x != y;
                        }
                        return 0;
                      });
}

Result<Value> not_(Context&, Arguments a) {
  if (!boolean(a[0])) return domain("not", a);
  std::vector<uint8_t> x = elements<uint8_t>(a[0]);
  for (uint8_t& b : x) b = !b;
  return make_bool(x);
}

// --- Unary numeric
// -----------------------------------------------------------------------------------------------------------------

template <class F>
Result<Value> map_number(std::string_view name, Arguments a, BasicType type, F f) {
  if (!ordered(a[0])) return domain(name, a);
  return with_type(type, [&](auto zero) {
    using T = decltype(zero);
    std::vector<T> x = elements<T>(a[0]);
    for (T& e : x) e = f(e);
    return make<T>(type, x);
  });
}

Result<Value> abs_(Context&, Arguments a) {
  return map_number("abs", a, a[0].type, [](auto x) {
    using T = decltype(x);
    if constexpr (std::is_floating_point_v<T>)
      return std::fabs(x);
    else
      return x < 0 ? compute<T>(Op::minus, T{0}, x) : x;
  });
}

Result<Value> neg(Context&, Arguments a) {
  BasicType type = boolean(a[0]) ? BasicType::i16 : a[0].type;
  return map_number("neg", a, type, [](auto x) {
    using T = decltype(x);
    if constexpr (std::is_floating_point_v<T>)
      return -x;
    else
      return compute<T>(Op::minus, T{0}, x);
  });
}

enum class Round { ceil, floor, round };
template <Round r>
Result<Value> rounding(Context&, Arguments a) {
  static constexpr std::string_view names[] = {"ceil", "floor", "round"};
  return map_number(names[static_cast<int>(r)], a, a[0].type, [](auto x) {
    using T = decltype(x);
    if constexpr (std::is_floating_point_v<T>)
      return r == Round::ceil ? std::ceil(x) : r == Round::floor ? std::floor(x) : std::round(x);
    else
      return x;
  });
}

Result<Value> conj_(Context&, Arguments a) {
  if (!a[0].is_vector() || a[0].type != BasicType::complex) return domain("conj", a);
  std::vector<Complex> x = complexes(a[0]);
  for (Complex& z : x) z = std::conj(z);
  return make<Complex>(BasicType::complex, x);
}

Result<Value> signum(Context&, Arguments a) {
  if (!real(a[0])) return domain("signum", a);
  std::vector<int16_t> out(a[0].size);
  std::vector<double> x = elements<double>(a[0]);
  std::vector<int64_t> k = elements<int64_t>(a[0]);
  bool whole = hir::is_integer(a[0].type);  // an i64 may not fit a double, but its sign does
  for (uint64_t i = 0; i < out.size(); ++i) out[i] = whole ? (k[i] > 0) - (k[i] < 0) : (x[i] > 0) - (x[i] < 0);
  return make<int16_t>(BasicType::i16, out);
}

// Float-valued functions: f64 for i64 and f64, else f32 (docs/horseir.md, "Types").
BasicType float_type(BasicType t) { return hir::is_extended(t) ? BasicType::f64 : BasicType::f32; }

#define FLOAT_FUNCTION(name, expression)                   \
  Result<Value> name##_(Context&, Arguments a) {           \
    if (!real(a[0])) return domain(#name, a);              \
    BasicType type = float_type(a[0].type);                \
    if (type == BasicType::f64) {                          \
      std::vector<double> v = elements<double>(a[0]);      \
      for (double& x : v) x = expression;                  \
      return make<double>(type, v);                        \
    }                                                      \
    std::vector<float> v = elements<float>(a[0]);          \
    for (float& x : v) x = static_cast<float>(expression); \
    return make<float>(type, v);                           \
  }
FLOAT_FUNCTION(recip, 1 / x)
FLOAT_FUNCTION(log, std::log(x))
FLOAT_FUNCTION(log2, std::log2(x))
FLOAT_FUNCTION(log10, std::log10(x))
FLOAT_FUNCTION(sqrt, std::sqrt(x))
FLOAT_FUNCTION(exp, std::exp(x))
FLOAT_FUNCTION(cos, std::cos(x))
FLOAT_FUNCTION(sin, std::sin(x))
FLOAT_FUNCTION(tan, std::tan(x))
FLOAT_FUNCTION(acos, std::acos(x))
FLOAT_FUNCTION(asin, std::asin(x))
FLOAT_FUNCTION(atan, std::atan(x))
FLOAT_FUNCTION(cosh, std::cosh(x))
FLOAT_FUNCTION(sinh, std::sinh(x))
FLOAT_FUNCTION(tanh, std::tanh(x))
FLOAT_FUNCTION(acosh, std::acosh(x))
FLOAT_FUNCTION(asinh, std::asinh(x))
FLOAT_FUNCTION(atanh, std::atanh(x))
FLOAT_FUNCTION(pi_real, std::numbers::pi* x)
#undef FLOAT_FUNCTION

Result<Value> pi(Context& context, Arguments a) {
  if (!a[0].is_vector() || a[0].type != BasicType::complex)
    return numeric(a[0]) ? pi_real_(context, a) : domain("pi", a);
  std::vector<Complex> x = complexes(a[0]);
  for (Complex& z : x) z *= std::numbers::pi;
  return make<Complex>(BasicType::complex, x);
}

template <class F>
Result<Value> binary_float(std::string_view name, Arguments a, F f) {
  if (!real(a[0]) || !real(a[1])) return domain(name, a);
  ASSIGN_OR_RETURN(uint64_t n, broadcast(name, a[0], a[1]));
  BasicType type = float_type(hir::widest(a[0].type, a[1].type));
  if (type == BasicType::f64) return zip<double>(type, elements<double>(a[0]), elements<double>(a[1]), n, f);
  return zip<float>(type, elements<float>(a[0]), elements<float>(a[1]), n,
                    [&](float x, float y) { return static_cast<float>(f(x, y)); });
}
Result<Value> power(Context&, Arguments a) {
  return binary_float("power", a, [](auto x, auto y) { return std::pow(x, y); });
}
Result<Value> logb(Context&, Arguments a) {
  return binary_float("logb", a, [](auto x, auto y) { return std::log(y) / std::log(x); });
}

Result<Value> fact(Context&, Arguments a) {
  if (!integer(a[0])) return domain("fact", a);
  std::vector<int64_t> x = elements<int64_t>(a[0]);
  for (uint64_t i = 0; i < x.size(); ++i) {
    if (x[i] < 0) return input_error("`fact` of the negative number {} at element {}", x[i], i);
    uint64_t product = 1;
    for (int64_t k = 2; k <= std::min<int64_t>(x[i], 66); ++k)
      product *= static_cast<uint64_t>(k);  // 66! is 0 modulo 2^64
    x[i] = static_cast<int64_t>(product);
  }
  return make<int64_t>(BasicType::i64, x);
}

// --- Calendar (storage: docs/horseir.md, "Calendar values")
// ----------------------------------------------------------------------------------------------

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a % b < 0) != (b < 0)); }

int64_t floor_mod(int64_t a, int64_t b) { return a % b < 0 ? a % b + b : a % b; }

struct Civil {
  int64_t year;
  int month, day;
};

// Proleptic Gregorian calendar from days since 1970-01-01 (Hinnant, "chrono-compatible low-level date algorithms").
Civil civil(int64_t days) {
  int64_t z = days + 719468, era = floor_div(z, 146097), doe = z - era * 146097;
  int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365, doy = doe - (365 * yoe + yoe / 4 - yoe / 100),
          mp = (5 * doy + 2) / 153;
  int month = static_cast<int>(mp < 10 ? mp + 3 : mp - 9);
  return {yoe + era * 400 + (month <= 2), month, static_cast<int>(doy - (153 * mp + 2) / 5 + 1)};
}

int64_t days_of(int64_t year, int month, int day) {
  int64_t y = year - (month <= 2), era = floor_div(y, 400), yoe = y - era * 400;
  int64_t doy = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
  return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

constexpr int64_t day_ms = 86'400'000;

// The parts of a calendar value, of which each type has some.
struct Parts {
  Civil date{};
  int64_t ms = 0;  // of the day
  bool has_date = false, has_day = false, has_time = false, has_second = false, has_mill = false;
};

Parts parts_of(BasicType type, int64_t x) {
  Parts p;
  switch (type) {
    case BasicType::date: p.date = civil(x), p.has_date = p.has_day = true; break;
    case BasicType::month:
      p.date = {floor_div(x, 12) + 1970, static_cast<int>(floor_mod(x, 12)) + 1, 1};
      p.has_date = true;
      break;
    case BasicType::dt:
      p.date = civil(floor_div(x, day_ms)), p.ms = floor_mod(x, day_ms);
      p.has_date = p.has_day = p.has_time = p.has_second = p.has_mill = true;
      break;
    case BasicType::minute: p.ms = x * 1000, p.has_time = true; break;
    case BasicType::second: p.ms = x * 1000, p.has_time = p.has_second = true; break;
    case BasicType::time: p.ms = x, p.has_time = p.has_second = p.has_mill = true; break;
    default: break;
  }
  return p;
}

enum class Part { year, month, day, hour, minute, second, mill };
template <Part part>
Result<Value> calendar_part(Context&, Arguments a) {
  static constexpr std::string_view names[] = {"date_year",   "date_month",  "date_day", "time_hour",
                                               "time_minute", "time_second", "time_mill"};
  std::string_view name = names[static_cast<int>(part)];
  if (!calendar(a[0])) return domain(name, a);
  Parts has = parts_of(a[0].type, 0);
  bool defined = part <= Part::month    ? has.has_date
                 : part == Part::day    ? has.has_day
                 : part <= Part::minute ? has.has_time
                 : part == Part::second ? has.has_second
                                        : has.has_mill;
  if (!defined) return domain(name, a);
  std::vector<int64_t> x = elements<int64_t>(a[0]);
  std::vector<int16_t> out(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    Parts p = parts_of(a[0].type, x[i]);
    switch (part) {
      case Part::year: out[i] = static_cast<int16_t>(p.date.year); break;
      case Part::month: out[i] = static_cast<int16_t>(p.date.month); break;
      case Part::day: out[i] = static_cast<int16_t>(p.date.day); break;
      case Part::hour: out[i] = static_cast<int16_t>(p.ms / 3'600'000); break;
      case Part::minute: out[i] = static_cast<int16_t>(p.ms / 60'000 % 60); break;
      case Part::second: out[i] = static_cast<int16_t>(p.ms / 1000 % 60); break;
      case Part::mill: out[i] = static_cast<int16_t>(p.ms % 1000); break;
    }
  }
  return make<int16_t>(BasicType::i16, out);
}

Result<Value> date_of(Context&, Arguments a) {
  if (!a[0].is_vector() || a[0].type != BasicType::dt) return domain("date", a);
  std::vector<int64_t> x = elements<int64_t>(a[0]);
  std::vector<int32_t> out(x.size());
  for (size_t i = 0; i < x.size(); ++i) out[i] = static_cast<int32_t>(floor_div(x[i], day_ms));
  return make<int32_t>(BasicType::date, out);
}

Result<Value> time_of(Context&, Arguments a) {
  if (!a[0].is_vector() || a[0].type != BasicType::dt) return domain("time", a);
  std::vector<int64_t> x = elements<int64_t>(a[0]);
  for (int64_t& t : x) t = floor_mod(t, day_ms);
  return make<int64_t>(BasicType::time, x);
}

// Adds k units; years and months keep the day, clipped to the month's last. False when the type lacks the unit. Wraps; years and
// months beyond what any type holds count as 2^32.
bool shift(BasicType type, std::string_view unit, int64_t k, int64_t& x) {
  Parts has = parts_of(type, 0);
  auto add = [&](int64_t unit_size) {
    x = static_cast<int64_t>(static_cast<uint64_t>(x) + static_cast<uint64_t>(k) * static_cast<uint64_t>(unit_size));
  };
  if (unit == "year" || unit == "month") {
    if (!has.has_date) return false;
    if (type == BasicType::month) return add(unit == "year" ? 12 : 1), true;
    constexpr int64_t most = int64_t{1} << 32;
    int64_t months = std::clamp(k, -most, most) * (unit == "year" ? 12 : 1);
    int64_t days = type == BasicType::dt ? floor_div(x, day_ms) : x,
            ms = type == BasicType::dt ? floor_mod(x, day_ms) : 0;
    Civil c = civil(days);
    int64_t m = c.year * 12 + (c.month - 1) + months;
    int64_t year = floor_div(m, 12);
    int month = static_cast<int>(m - year * 12) + 1;
    int64_t first = days_of(year, month, 1), next = month == 12 ? days_of(year + 1, 1, 1) : days_of(year, month + 1, 1);
    days = first + std::min<int64_t>(c.day, next - first) - 1;
    x = days;
    if (type == BasicType::dt)
      x = static_cast<int64_t>(static_cast<uint64_t>(days) * static_cast<uint64_t>(day_ms) + static_cast<uint64_t>(ms));
    return true;
  }
  if (unit == "day") {
    if (!has.has_day) return false;
    add(type == BasicType::dt ? day_ms : 1);
    return true;
  }
  int64_t ms = unit == "hour" ? 3'600'000 : unit == "minute" ? 60'000 : unit == "second" ? 1000 : 1;
  bool defined = unit == "second" ? has.has_second : unit == "mill" ? has.has_mill : has.has_time;
  if (!defined) return false;
  bool in_seconds = type == BasicType::minute || type == BasicType::second;
  add(in_seconds ? ms / 1000 : ms);
  return true;
}

template <int sign>
Result<Value> datetime_shift(Context&, Arguments a) {
  std::string_view name = sign > 0 ? "datetime_add" : "datetime_sub";
  if (!calendar(a[0]) || !integer(a[1]) || !a[2].is_text_vector() || a[2].size != 1) return domain(name, a);
  static constexpr std::string_view units[] = {"year", "month", "day", "hour", "minute", "second", "mill"};
  const std::string& unit = a[2].text(0);
  if (std::find(std::begin(units), std::end(units), unit) == std::end(units))
    return input_error("`{}` knows the units year, month, day, hour, minute, second and mill, got `{}`", name, unit);
  ASSIGN_OR_RETURN(uint64_t n, broadcast(name, a[0], a[1]));
  std::vector<int64_t> x = elements<int64_t>(a[0]), k = elements<int64_t>(a[1]), out(n);
  for (uint64_t i = 0; i < n; ++i) {
    out[i] = x[x.size() == 1 ? 0 : i];
    if (!shift(a[0].type, unit, compute<int64_t>(Op::mul, sign, k[k.size() == 1 ? 0 : i]), out[i]))
      return input_error("`{}` cannot move a {} by a {}", name, hir::basic_type_name(a[0].type), unit);
  }
  Value wide = make<int64_t>(BasicType::i64, out);
  return with_type(a[0].type,
                   [&](auto zero) { return make<decltype(zero)>(a[0].type, elements<decltype(zero)>(wide)); });
}

Result<Value> datetime_diff(Context& context, Arguments a) {
  if (!calendar(a[0]) || a[0].type != a[1].type) return domain("datetime_diff", a);
  return arithmetic<Op::minus>(context, a);
}

}  // namespace

std::span<const BuiltinEntry> elementwise_builtins() {
  static constexpr BuiltinEntry entries[] = {
      {"plus", arithmetic<Op::plus>},
      {"minus", arithmetic<Op::minus>},
      {"mul", arithmetic<Op::mul>},
      {"div", arithmetic<Op::div>},
      {"mod", arithmetic<Op::mod>},
      {"power", power},
      {"logb", logb},
      {"lt", comparison<Cmp::lt>},
      {"gt", comparison<Cmp::gt>},
      {"leq", comparison<Cmp::leq>},
      {"geq", comparison<Cmp::geq>},
      {"eq", comparison<Cmp::eq>},
      {"neq", comparison<Cmp::neq>},
      {"and", logic<Logic::and_>},
      {"or", logic<Logic::or_>},
      {"nand", logic<Logic::nand>},
      {"nor", logic<Logic::nor>},
      {"xor", logic<Logic::xor_>},
      {"not", not_},
      {"abs", abs_},
      {"neg", neg},
      {"ceil", rounding<Round::ceil>},
      {"floor", rounding<Round::floor>},
      {"round", rounding<Round::round>},
      {"conj", conj_},
      {"recip", recip_},
      {"signum", signum},
      {"pi", pi},
      {"log", log_},
      {"log2", log2_},
      {"log10", log10_},
      {"sqrt", sqrt_},
      {"exp", exp_},
      {"cos", cos_},
      {"sin", sin_},
      {"tan", tan_},
      {"acos", acos_},
      {"asin", asin_},
      {"atan", atan_},
      {"cosh", cosh_},
      {"sinh", sinh_},
      {"tanh", tanh_},
      {"acosh", acosh_},
      {"asinh", asinh_},
      {"atanh", atanh_},
      {"fact", fact},
      {"date", date_of},
      {"time", time_of},
      {"date_year", calendar_part<Part::year>},
      {"date_month", calendar_part<Part::month>},
      {"date_day", calendar_part<Part::day>},
      {"time_hour", calendar_part<Part::hour>},
      {"time_minute", calendar_part<Part::minute>},
      {"time_second", calendar_part<Part::second>},
      {"time_mill", calendar_part<Part::mill>},
      {"datetime_add", datetime_shift<1>},
      {"datetime_sub", datetime_shift<-1>},
      {"datetime_diff", datetime_diff},
  };
  return entries;
}

}  // namespace rndn::reference
