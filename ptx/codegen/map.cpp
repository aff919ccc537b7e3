// Element-wise builtins: one element to PTX (docs/horseir.md, "Builtins: arithmetic" and
// "Builtins: comparison and logic").
//
// Operands are converted to operand_type() first; results of 8 and 16 bits are wrapped. No contraction: multiplications and additions
// of floats are rounded apart (.rn). Integer division by zero reports the error and divides by one, so that nothing undefined runs.
// Calendar values: calendar.cpp. Complex numbers: complex.cpp. Functions of libdevice and the remainder of floats: math.cpp.
#include <algorithm>
#include <bit>
#include <limits>
#include <numbers>

#include "libraries/base/numbers/sum_parts.h"
#include "ptx/codegen/emitter.h"
#include "ptx/sums/sum_parts.h"

namespace rndn::codegen {

using ptx::Compare;

BasicType operand_type(Builtin builtin, std::span<const BasicType> arguments, size_t k, BasicType result) {
  switch (builtin) {
    case Builtin::lt:
    case Builtin::gt:
    case Builtin::leq:
    case Builtin::geq:
    case Builtin::eq:
    case Builtin::neq:
      if (hir::is_text(arguments[0]) || hir::is_calendar(arguments[0])) return arguments[0];
      return hir::widest(arguments[0], arguments[1]);
    case Builtin::plus:
    case Builtin::minus:
    case Builtin::datetime_diff:
      if (hir::is_calendar(arguments[0]) || hir::is_calendar(arguments[1])) {
        const bool difference = hir::is_calendar(arguments[0]) && hir::is_calendar(arguments[1]);
        if (difference) return arguments[0];
        return hir::is_calendar(arguments[k]) ? arguments[k]
               : rep_of(result) == Rep::s64   ? BasicType::i64
                                              : BasicType::i32;
      }
      return result;
    case Builtin::mul:
    case Builtin::div:
    case Builtin::mod:
    case Builtin::abs:
    case Builtin::neg:
    case Builtin::recip:
    case Builtin::pi:
    case Builtin::sqrt:
    case Builtin::vector: return builtin == Builtin::vector && k == 0 ? arguments[0] : result;
    case Builtin::signum: return arguments[0] == BasicType::boolean ? BasicType::i16 : arguments[0];
    case Builtin::ceil:
    case Builtin::floor:
    case Builtin::round: return arguments[0];
    case Builtin::fact: return BasicType::i64;
    case Builtin::select: return k == 0 ? BasicType::boolean : result;
    case Builtin::require: return k == 1 ? result : arguments[k];
    default: return hir::needs_math(builtin, result) ? result : arguments[k];
  }
}

namespace {

// Reports code 1 (integer division by zero) when `divisor` is zero in a selected element; returns a divisor that is not zero.
template <class T>
Reg<T> checked_divisor(Emitter& e, const Element& divisor, Reg<Pred> mask, uint32_t statement) {
  Builder& b = e.b;
  Reg<T> d = reg<T>(in_register(e, divisor));
  if (divisor.immediate() && divisor.value.value != 0) return d;
  Reg<Pred> zero = b.setp(Compare::eq, d, 0);
  Reg<Pred> bad = both(e, zero, active(e, mask));
  report_error(e, bad, statement, RuntimeError::division_by_zero);
  return b.selp(b.constant<T>(1), d, zero);
}

template <class T>
Element arithmetic(Emitter& e, Builtin builtin, const Element& x, const Element& y, BasicType result, Reg<Pred> mask,
                   uint32_t statement) {
  Builder& b = e.b;
  Reg<T> a = reg<T>(in_register(e, x));
  if constexpr (ptx::FloatTag<T>) {
    switch (builtin) {
      case Builtin::plus: return element(result, b.add_rn(a, source<T>(e, y)), mask);
      case Builtin::minus: return element(result, b.sub_rn(a, source<T>(e, y)), mask);
      case Builtin::mul: return element(result, b.mul_rn(a, source<T>(e, y)), mask);
      default: return element(result, b.div_rn(a, source<T>(e, y)), mask);
    }
  } else {
    Reg<T> r;
    switch (builtin) {
      case Builtin::plus: r = b.add(a, source<T>(e, y)); break;
      case Builtin::minus: r = b.sub(a, source<T>(e, y)); break;
      case Builtin::mul: r = b.mul_lo(a, source<T>(e, y)); break;
      case Builtin::div: r = b.div(a, checked_divisor<T>(e, y, mask, statement)); break;
      default: r = b.rem(a, checked_divisor<T>(e, y, mask, statement)); break;
    }
    return normalise(e, element(result, r, mask));
  }
}

// date + days, month + months, minute + minutes, second + seconds, time and dt + milliseconds.
Element calendar(Emitter& e, Builtin builtin, const Element& x, const Element& y, BasicType result, Reg<Pred> mask) {
  const BasicType stored = hir::is_calendar(x.type) ? x.type : y.type;
  return with_number(rep_of(stored), [&]<class T>() -> Element {
    if constexpr (ptx::FloatTag<T>) {
      return x;  // no calendar type is a float
    } else {
      Builder& b = e.b;
      Reg<T> p = reg<T>(in_register(e, x)), q = reg<T>(in_register(e, y));
      const bool minutes = stored == BasicType::minute;
      if (hir::is_calendar(x.type) && hir::is_calendar(y.type)) {
        Reg<T> r = b.sub(p, q);
        if (minutes) r = b.div(r, 60);
        return convert(e, element(rep_of(stored) == Rep::s64 ? BasicType::i64 : BasicType::i32, r, mask), result);
      }
      if (minutes) (hir::is_calendar(x.type) ? q : p) = b.mul_lo(hir::is_calendar(x.type) ? q : p, 60);
      return element(stored, builtin == Builtin::plus ? b.add(p, q) : b.sub(p, q), mask);
    }
  });
}

Element compare(Emitter& e, Builtin builtin, const Element& x, const Element& y, Reg<Pred> mask) {
  Builder& b = e.b;
  const Rep rep = rep_of(x.type);
  if (rep == Rep::pred) {  // as 0 and 1
    return compare(e, builtin, convert(e, x, BasicType::i32), convert(e, y, BasicType::i32), mask);
  }
  Compare how = Compare::eq;
  switch (builtin) {
    case Builtin::lt: how = Compare::lt; break;
    case Builtin::gt: how = Compare::gt; break;
    case Builtin::leq: how = Compare::le; break;
    case Builtin::geq: how = Compare::ge; break;
    case Builtin::neq: how = hir::is_float(x.type) ? Compare::neu : Compare::ne; break;  // NaN differs from everything
    default: break;
  }
  return with_number(rep, [&]<class T>() {
    return element(BasicType::boolean, b.setp(how, reg<T>(in_register(e, x)), source<T>(e, y)), mask);
  });
}

Element logic(Emitter& e, Builtin builtin, const Element& x, const Element& y, Reg<Pred> mask) {
  Builder& b = e.b;
  Reg<Pred> p = reg<Pred>(in_register(e, x)), q = reg<Pred>(in_register(e, y)), r;
  switch (builtin) {
    case Builtin::and_: r = b.and_(p, q); break;
    case Builtin::or_: r = b.or_(p, q); break;
    case Builtin::xor_: r = b.xor_(p, q); break;
    case Builtin::nand: r = b.not_(b.and_(p, q)); break;
    default: r = b.not_(b.or_(p, q)); break;
  }
  return element(BasicType::boolean, r, mask);
}

// Half away from zero: x - trunc(x) is exact, so comparing it with a half decides rightly also next to 0.5.
template <class T>
Reg<T> round_half_away(Builder& b, Reg<T> x) {
  Reg<T> whole = b.cvt<T, T>(ptx::Rounding::rzi, x);
  Reg<Pred> up = b.setp(Compare::ge, b.abs(b.sub_rn(x, whole)), 0.5);
  Reg<Pred> negative = b.setp(Compare::lt, x, 0.0);
  Reg<T> next = b.add_rn(whole, b.template select<T>(-1.0, 1.0, negative));
  return b.selp(next, whole, up);
}

template <class T>
Element unary(Emitter& e, Builtin builtin, const Element& x, BasicType result) {
  Builder& b = e.b;
  Reg<T> a = reg<T>(in_register(e, x));
  Reg<T> r = a;
  switch (builtin) {
    case Builtin::abs: r = b.abs(a); break;
    case Builtin::neg: r = b.neg(a); break;
    case Builtin::signum: {
      const auto zero = [] {
        if constexpr (ptx::FloatTag<T>)
          return 0.0;
        else
          return 0;
      }();
      Reg<S32> positive = b.select<S32>(1, 0, b.setp(Compare::gt, a, zero));
      Reg<S32> minus = b.constant<S32>(-1);
      return element(result, b.selp(minus, positive, b.setp(Compare::lt, a, zero)), x.mask);
    }
    default:
      if constexpr (ptx::FloatTag<T>) {
        switch (builtin) {
          case Builtin::ceil: r = b.cvt<T, T>(ptx::Rounding::rpi, a); break;
          case Builtin::floor: r = b.cvt<T, T>(ptx::Rounding::rmi, a); break;
          case Builtin::round: r = round_half_away(b, a); break;
          case Builtin::recip: r = b.div_rn(b.constant<T>(1.0), a); break;
          case Builtin::pi: {  // the product in f64, also of f32
            const Element wide = convert(e, x, BasicType::f64);
            return convert(e,
                           element(BasicType::f64,
                                   b.mul_rn(reg<F64>(in_register(e, wide)), b.constant<F64>(std::numbers::pi)), x.mask),
                           result);
          }
          case Builtin::sqrt: r = b.sqrt_rn(a); break;
          default: break;
        }
      }
      break;  // ceil, floor, round of integers: the integer
  }
  return normalise(e, element(result, r, x.mask));
}

// The second or the third of three, as the first says.
Element chosen(Emitter& e, std::span<const Element> x, BasicType result, Reg<Pred> mask) {
  Builder& b = e.b;
  const Reg<Pred> p = reg<Pred>(in_register(e, x[0]));
  if (rep_of(result) == Rep::pred) {
    const Reg<Pred> yes = b.and_(p, reg<Pred>(in_register(e, x[1])));
    const Reg<Pred> no = b.and_(b.not_(p), reg<Pred>(in_register(e, x[2])));
    return element(result, b.or_(yes, no), mask);
  }
  if (rep_of(result) == Rep::complex)
    return complex_element(b.selp(reg<F64>(x[1]), reg<F64>(x[2]), p), b.selp(x[1].imaginary, x[2].imaginary, p), mask);
  if (rep_of(result) == Rep::wide) {
    const Element yes = in_register(e, x[1]), no = in_register(e, x[2]);
    return wide_element(b.selp(reg<U64>(yes), reg<U64>(no), p), b.selp(yes.high, no.high, p), mask);
  }
  return with_number(rep_of(result), [&]<class T>() {
    return element(result, b.selp(reg<T>(in_register(e, x[1])), reg<T>(in_register(e, x[2])), p), mask);
  });
}

// The product of 1 to x, modulo 2^64, from a table: 66! and all after it are 0.
Element factorial(Emitter& e, const Element& x, uint32_t statement) {
  constexpr uint32_t largest = 66;
  const std::string name = "rndn_factorials";
  auto table = none<ptx::VariableId>();
  for (uint32_t k = 0; k < e.module.variables.size(); ++k)
    if (e.module.variables[ptx::VariableId{k}].name == name) table = ptx::VariableId{k};
  if (is_none(table)) {
    ptx::Variable v{.space = Space::global, .type = ptx::Type::u64, .name = name, .align = 8, .count = largest + 1};
    uint64_t product = 1;
    for (uint32_t k = 0; k <= largest; ++k) {
      product *= std::max(k, 1u);
      const auto* bytes = reinterpret_cast<const std::byte*>(&product);
      v.initial.insert(v.initial.end(), bytes, bytes + sizeof product);
    }
    table = e.module.variables.add(std::move(v));
  }
  Builder& b = e.b;
  Reg<S64> k = reg<S64>(in_register(e, x));
  Reg<Pred> negative = b.setp(Compare::lt, k, 0);
  report_error(e, both(e, negative, active(e, x.mask)), statement, RuntimeError::negative_factorial);
  Reg<U64> first = b.reg<U64>();
  b.emit(ptx::Opcode::mov, ptx::Type::u64, {}, {Builder::use(first)},
         {{.kind = Operand::variable, .id = index(table)}});
  Reg<S64> row = b.min(b.max(k, 0), int64_t{largest});
  Reg<U64> at = b.add(first, b.shl(Builder::as<U64>(row), 3));
  return element(BasicType::i64, b.ld<S64>(Space::global, Address(at)), x.mask);
}

// The last part of a number checks that it has parts; another one where the kernel has no such part.
bool checks_parts(const Emitter& e, uint32_t statement, size_t part) {
  if (part == sum_parts::last) return true;
  const auto own =
      std::find_if(e.steps.begin(), e.steps.end(), [&](const Step& s) { return index(s.id) == statement; });
  if (own == e.steps.end() || own->operands[0].kind != hir::Operand::variable) return true;
  return std::none_of(e.steps.begin(), e.steps.end(), [&](const Step& s) {
    return s.call && s.builtin == Builtin::gpu_sum_part && s.operands[0].kind == hir::Operand::variable &&
           s.operands[0].variable_id() == own->operands[0].variable_id() &&
           s.operands[1].kind == hir::Operand::literal &&
           std::get<std::vector<int64_t>>(e.program.literals[s.operands[1].literal_id()].values).front() ==
               static_cast<int64_t>(sum_parts::last);
  });
}

// Where the numbers are only folded, the sink makes their parts (sink.cpp).
Element sum_part(Emitter& e, const Element& x, size_t part, bool checks, Reg<Pred> mask) {
  const Reg<F64> number = reg<F64>(in_register(e, x));
  Reg<F64> rest = number;
  Reg<S32> low;
  for (size_t k = 0; k < sum_parts::count && (k <= part || checks); ++k) {
    Reg<S32> taken = sums::take_part(e.b, k, rest);
    if (k == part) low = taken;
  }
  if (checks) {
    const Reg<Pred> outside = e.b.constant<Pred>(false), counts = active(e, mask);
    sums::note_large(e.b, number, outside);
    sums::note_rest(e.b, rest, outside);
    sums::report_no_parts(e.b, counts.valid() ? e.b.and_(outside, counts) : outside, e.sum_flags);
  }
  return element(BasicType::i64, e.b.cvt<S64>(low), mask);
}

// A float's bits as an integer, all but the top one turned over where that is set: in the order of the floats. Done again, it gives the bits back.
template <class T>
Reg<T> turned(Builder& b, Reg<T> bits) {
  constexpr typename T::native most = std::numeric_limits<typename T::native>::max();
  return b.xor_(bits, b.and_(b.shr(bits, 8 * uint32_t{sizeof most} - 1), most));
}

template <class F, class S>
Element order_key(Emitter& e, const Element& x, bool nan_last, BasicType result, Reg<Pred> mask) {
  Builder& b = e.b;
  const Reg<F> number = reg<F>(in_register(e, x));
  constexpr auto infinity = std::bit_cast<typename S::native>(std::numeric_limits<typename F::native>::infinity());
  Reg<S> of_nan = b.constant<S>(nan_last ? infinity : ~infinity);
  return element(result, b.selp(turned(b, b.bitcast<S>(number)), of_nan, b.setp(Compare::eq, number, number)), mask);
}

template <class F, class S>
Element of_order_key(Emitter& e, const Element& x, BasicType result, Reg<Pred> mask) {
  return element(result, e.b.bitcast<F>(turned(e.b, reg<S>(in_register(e, x)))), mask);
}

}  // namespace

Element element_wise(Emitter& e, Builtin builtin, std::span<const Element> arguments, BasicType result,
                     uint32_t statement) {
  ArgumentTypes types;
  for (const Element& x : arguments) types.push_back(x.type);
  Arguments x;
  if (builtin == Builtin::require) arguments = arguments.first(2);
  for (size_t k = 0; k < arguments.size(); ++k)
    x.push_back(convert(e, arguments[k], operand_type(builtin, types, k, result)));
  Reg<Pred> mask = arguments[0].mask;
  // Two selected operands have the same mask: their sizes are equal. One is not selected when it is a scalar.
  for (size_t k = 1; k < arguments.size() && !mask.valid(); ++k) mask = arguments[k].mask;
  if (builtin == Builtin::select) return chosen(e, x, result, mask);
  if (builtin == Builtin::require) {
    const Reg<Pred> broken = e.b.not_(reg<Pred>(in_register(e, x[0])));
    report_error(e, both(e, broken, active(e, mask)), statement, RuntimeError::requirement);
    x[1].mask = mask;
    return x[1];
  }
  if (x[0].type == BasicType::complex) return complex_wise(e, builtin, x, mask);
  if (hir::is_wide(x[0].type)) return wide_wise(e, builtin, x, mask, statement);
  switch (builtin) {
    case Builtin::lt:
    case Builtin::gt:
    case Builtin::leq:
    case Builtin::geq:
    case Builtin::eq:
    case Builtin::neq: return compare(e, builtin, x[0], x[1], mask);
    case Builtin::and_:
    case Builtin::or_:
    case Builtin::nand:
    case Builtin::nor:
    case Builtin::xor_: return logic(e, builtin, x[0], x[1], mask);
    case Builtin::not_: return element(BasicType::boolean, e.b.not_(reg<Pred>(in_register(e, x[0]))), mask);
    case Builtin::datetime_diff: return calendar(e, Builtin::minus, x[0], x[1], result, mask);
    case Builtin::fact: return factorial(e, x[0], statement);
    case Builtin::plus:
    case Builtin::minus:
      if (hir::is_calendar(types[0]) || hir::is_calendar(types[1]))
        return calendar(e, builtin, x[0], x[1], result, mask);
      [[fallthrough]];
    case Builtin::mul:
    case Builtin::div:
    case Builtin::mod:
      if (hir::needs_math(builtin, result)) return math(e, builtin, x, result, mask);
      if (rep_of(x[0].type) == Rep::pred) {  // bool op bool that stays bool: as 0 and 1, then back
        const std::array<Element, 2> numbers{convert(e, x[0], BasicType::i32), convert(e, x[1], BasicType::i32)};
        const Element wide = element_wise(e, builtin, numbers, BasicType::i32, statement);
        return convert(e, wide, BasicType::boolean);
      }
      return with_number(rep_of(x[0].type),
                         [&]<class T>() { return arithmetic<T>(e, builtin, x[0], x[1], result, mask, statement); });
    case Builtin::abs:
    case Builtin::ceil:
    case Builtin::floor:
    case Builtin::round:
      if (rep_of(x[0].type) == Rep::pred) return x[0];
      [[fallthrough]];
    case Builtin::neg:
    case Builtin::recip:
    case Builtin::signum:
    case Builtin::pi:
    case Builtin::sqrt:
      return with_number(rep_of(x[0].type), [&]<class T>() { return unary<T>(e, builtin, x[0], result); });
    case Builtin::date:
    case Builtin::time:
    case Builtin::date_year:
    case Builtin::date_month:
    case Builtin::date_day:
    case Builtin::time_hour:
    case Builtin::time_minute:
    case Builtin::time_second:
    case Builtin::time_mill: return calendar_part(e, builtin, x[0], result);
    case Builtin::gpu_sum_part: {
      const auto part = static_cast<size_t>(x[1].value.value);
      return sum_part(e, x[0], part, checks_parts(e, statement, part), mask);
    }
    case Builtin::gpu_order_key:
      return (result == BasicType::i64 ? order_key<F64, S64> : order_key<F32, S32>)(e, x[0], x[1].value.value != 0, result, mask);
    case Builtin::gpu_of_order_key:
      return (result == BasicType::f64 ? of_order_key<F64, S64> : of_order_key<F32, S32>)(e, x[0], result, mask);
    case Builtin::gpu_sum_of_parts: {
      std::array<Reg<S64>, sum_parts::count> parts{};
      for (size_t k = 0; k < parts.size(); ++k) parts[k] = reg<S64>(in_register(e, x[k]));
      return element(result, sums::sum_of_parts(e.b, parts, e.b.ld_param(e.sum_flags), active(e, mask)), mask);
    }
    default:
      if (hir::needs_math(builtin, result)) return math(e, builtin, x, result, mask);
      break;
  }
  if (e.problem.empty()) {
    e.problem = std::string(hir::row(builtin).name);
    e.problem_at = static_cast<hir::StatementId>(statement);
  }
  return constant_element(result, 0);
}

}  // namespace rndn::codegen
