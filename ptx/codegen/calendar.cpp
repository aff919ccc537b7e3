// Parts of calendar values (docs/horseir.md, "Calendar values" and "Builtins: calendar"):
// year, month, day, hour, minute, second, millisecond; date and time of a dt.
// Moving by units: months and years keep the day, clipped to the month's last.
//
// Dates to year, month, day: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days, in unsigned 32-bit
// arithmetic over days shifted to be positive: right for all dates up to the year 5,879,000. Divisions by constants are a
// multiplication with the high half kept (Granlund and Montgomery, "Division by Invariant Integers using Multiplication", 1994).
// A dt is split by a 64-bit division. Times of day lie within the day, as the loader and the literals guarantee.
#include "ptx/codegen/emitter.h"

namespace rndn::codegen {
namespace {

// x / divisor for x <= largest.
Reg<U32> divide(Builder& b, Reg<U32> x, uint32_t divisor, uint64_t largest = UINT32_MAX) {
  for (uint32_t shift = 0; shift < 32; ++shift) {
    const uint64_t power = uint64_t{1} << (32 + shift);
    const uint64_t factor = (power + divisor - 1) / divisor;
    if (factor > UINT32_MAX) break;
    if ((factor * divisor - power) * static_cast<unsigned __int128>(largest) >= power) continue;  // not exact for all x
    Reg<U32> high = b.mul_hi(x, static_cast<uint32_t>(factor));
    return shift ? b.shr(high, shift) : high;
  }
  return b.div(x, divisor);
}

// x - q * divisor
Reg<U32> rest(Builder& b, Reg<U32> x, Reg<U32> q, uint32_t divisor) { return b.sub(x, b.mul_lo(q, divisor)); }

struct Civil {
  Reg<S32> year, month, day;
};

Civil civil(Builder& b, Reg<S32> days) {
  // Shifted by whole eras of 400 years, so that no date is negative; day 0 is 0000-03-01 of the first era.
  constexpr uint32_t eras = 14695;
  Reg<U32> from_first = b.add(Builder::as<U32>(days), eras * 146097u + 719468u);
  Reg<U32> era = divide(b, from_first, 146097);
  Reg<U32> of_era = rest(b, from_first, era, 146097);
  constexpr uint32_t last = 146096;
  Reg<U32> leap = b.add(b.sub(of_era, divide(b, of_era, 1460, last)), divide(b, of_era, 36524, last));
  Reg<U32> year = divide(b, b.sub(leap, divide(b, of_era, 146096, last)), 365, last);
  Reg<U32> leap_days = b.sub(b.shr(year, 2), divide(b, year, 100, 399));
  Reg<U32> of_year = b.sub(of_era, b.add(b.mul_lo(year, 365), leap_days));
  Reg<U32> march = divide(b, b.add(b.mul_lo(of_year, 5), 2), 153, 2000);  // months since March
  Reg<U32> month_start = divide(b, b.add(b.mul_lo(march, 153), 2), 5, 2000);
  Reg<Pred> spring = b.setp(ptx::Compare::lt, march, 10);  // March to December
  Civil c;
  c.day = Builder::as<S32>(b.add(b.sub(of_year, month_start), 1));
  c.month = b.add(Builder::as<S32>(march), b.select<S32>(3, -9, spring));
  Reg<S32> base = b.add(Builder::as<S32>(b.mul_lo(era, 400)), Builder::as<S32>(year));
  c.year = b.add(base, b.select<S32>(-static_cast<int32_t>(eras) * 400, 1 - static_cast<int32_t>(eras) * 400, spring));
  return c;
}

struct Moment {
  Reg<S64> day;     // since 1970-01-01
  Reg<S64> of_day;  // milliseconds
};

Moment split(Builder& b, Reg<S64> moment) {
  constexpr int64_t day_length = 86'400'000;
  Reg<Pred> negative = b.setp(ptx::Compare::lt, moment, 0);
  Reg<S64> whole = b.selp(b.sub(moment, day_length - 1), moment, negative);  // floor
  Moment m;
  m.day = b.div(whole, b.constant<S64>(day_length));
  m.of_day = b.sub(moment, b.mul_lo(m.day, b.constant<S64>(day_length)));
  return m;
}

}  // namespace

namespace {

// Days since 1970-01-01 of the first day of a month, counted from January of year 0; `days`: the month's length.
Reg<S64> first_of_month(Builder& b, Reg<S64> month, Reg<S32>& days) {
  const auto floor_div = [&](Reg<S64> x, int64_t divisor) {
    Reg<Pred> negative = b.setp(ptx::Compare::lt, x, 0);
    return b.div(b.selp(b.sub(x, divisor - 1), x, negative), b.constant<S64>(divisor));
  };
  Reg<S64> year = floor_div(month, 12);
  Reg<S32> of_year = b.cvt<S32>(b.sub(month, b.mul_lo(year, 12)));  // 0: January
  // Hinnant, days_from_civil: years begin in March.
  Reg<Pred> winter = b.setp(ptx::Compare::lt, of_year, 2);
  Reg<S64> march_year = b.selp(b.sub(year, 1), year, winter);
  Reg<S64> era = floor_div(march_year, 400);
  Reg<S32> of_era = b.cvt<S32>(b.sub(march_year, b.mul_lo(era, 400)));
  Reg<S32> march = b.add(of_year, b.select<S32>(10, -2, winter));  // months since March
  Reg<S32> of_march_year = b.div(b.add(b.mul_lo(march, 153), 2), 5);
  const auto quotient = [&](Reg<S32> x, uint32_t divisor) {
    return Builder::as<S32>(divide(b, Builder::as<U32>(x), divisor, 400));
  };
  Reg<S32> leap_days = b.sub(b.shr(of_era, 2), quotient(of_era, 100));
  Reg<S32> of_era_days = b.add(b.add(b.mul_lo(of_era, 365), leap_days), of_march_year);
  // February has 29 days when its year, the one after the March year, is a leap year.
  Reg<S32> next = b.add(of_era, 1);
  Reg<S32> century = b.sub(next, b.mul_lo(quotient(next, 100), 100));
  Reg<Pred> fourth = b.setp(ptx::Compare::eq, b.and_(next, 3), 0);
  Reg<Pred> leap = b.or_(b.and_(fourth, b.setp(ptx::Compare::ne, century, 0)), b.setp(ptx::Compare::eq, next, 400));
  // March has 31 days, April 30, and so on; August and January begin again with 31.
  Reg<Pred> autumn = b.setp(ptx::Compare::lt, Builder::as<U32>(b.sub(march, 5)), 5);
  Reg<S32> short_month = b.and_(b.selp(b.add(march, 1), march, autumn), 1);
  Reg<S32> length = b.sub(b.constant<S32>(31), short_month);
  Reg<Pred> february = b.setp(ptx::Compare::eq, march, 11);
  days = b.selp(b.select<S32>(29, 28, leap), length, february);
  Reg<S64> whole = b.mul_lo(era, b.constant<S64>(146097));
  return b.add(b.sub(whole, 719468), b.cvt<S64>(of_era_days));
}

}  // namespace

Element calendar_shift(Emitter& e, const Element& x, const Element& k, std::string_view unit, int sign) {
  Builder& b = e.b;
  const bool wide = rep_of(x.type) == Rep::s64;
  Reg<Pred> mask = x.mask.valid() ? x.mask : k.mask;
  Element step = in_register(e, convert(e, k, BasicType::i64));
  if (sign < 0) step = element(BasicType::i64, b.neg(reg<S64>(step)), step.mask);
  // Storage units per unit; 0: months, which have no fixed length in days.
  int64_t scale = 0;
  if (unit == "day") scale = x.type == BasicType::dt ? 86'400'000 : 1;
  const int64_t ms = unit == "hour"     ? 3'600'000
                     : unit == "minute" ? 60'000
                     : unit == "second" ? 1000
                     : unit == "mill"   ? 1
                                        : 0;
  if (ms) scale = wide ? ms : ms / 1000;
  const bool in_months = scale == 0;
  if (in_months) scale = unit == "year" ? 12 : 1;
  Reg<S64> units = scale == 1 ? reg<S64>(step) : b.mul_lo(reg<S64>(step), b.constant<S64>(scale));
  const Element from = in_register(e, x);
  const auto stored = [&](Reg<S64> r) {
    return wide ? element(x.type, r, mask) : element(x.type, b.cvt<S32>(r), mask);
  };
  if (!in_months || x.type == BasicType::month) {
    Reg<S64> old = wide ? reg<S64>(from) : b.cvt<S64>(reg<S32>(from));
    return stored(b.add(old, units));
  }
  Moment moment;
  if (wide) moment = split(b, reg<S64>(from));
  const Civil c = civil(b, wide ? b.cvt<S32>(moment.day) : reg<S32>(from));
  Reg<S64> month = b.add(b.add(b.mul_lo(b.cvt<S64>(c.year), 12), b.sub(b.cvt<S64>(c.month), 1)), units);
  Reg<S32> days;
  Reg<S64> first = first_of_month(b, month, days);
  Reg<S64> day = b.add(first, b.cvt<S64>(b.sub(b.min(c.day, days), 1)));
  return stored(wide ? b.add(b.mul_lo(day, b.constant<S64>(86'400'000)), moment.of_day) : day);
}

Element calendar_part(Emitter& e, Builtin builtin, const Element& x, BasicType result) {
  Builder& b = e.b;
  const Element in = in_register(e, x);
  const auto i16 = [&](Reg<S32> r) { return normalise(e, element(BasicType::i16, r, x.mask)); };
  const auto part = [&](Reg<U32> r) { return element(BasicType::i16, Builder::as<S32>(r), x.mask); };
  Moment moment;
  if (x.type == BasicType::dt) moment = split(b, reg<S64>(in));
  switch (builtin) {
    case Builtin::date: return element(result, b.cvt<S32>(moment.day), x.mask);
    case Builtin::time: return element(result, moment.of_day, x.mask);
    case Builtin::date_year:
    case Builtin::date_month:
    case Builtin::date_day: {
      if (x.type == BasicType::month) {
        constexpr uint32_t years = 178956971;  // shifts every month to be positive
        Reg<U32> from_first = b.add(Builder::as<U32>(reg<S32>(in)), years * 12);
        Reg<U32> year = divide(b, from_first, 12);
        if (builtin == Builtin::date_year)
          return i16(b.add(Builder::as<S32>(year), 1970 - static_cast<int32_t>(years)));
        return part(b.add(rest(b, from_first, year, 12), 1));
      }
      const Civil c = civil(b, x.type == BasicType::dt ? b.cvt<S32>(moment.day) : reg<S32>(in));
      return i16(builtin == Builtin::date_year ? c.year : builtin == Builtin::date_month ? c.month : c.day);
    }
    default: break;
  }
  // Times of day: in milliseconds or in seconds.
  const bool milliseconds = rep_of(x.type) == Rep::s64;
  const uint32_t second = milliseconds ? 1000 : 1;
  Reg<U32> t;
  if (x.type == BasicType::dt) {
    t = b.cvt<U32>(moment.of_day);
  } else {
    t = milliseconds ? b.cvt<U32>(reg<S64>(in)) : Builder::as<U32>(reg<S32>(in));
  }
  switch (builtin) {
    case Builtin::time_hour: return part(divide(b, t, 3600 * second));
    case Builtin::time_minute: {
      Reg<U32> minutes = divide(b, t, 60 * second);
      return part(rest(b, minutes, divide(b, minutes, 60), 60));
    }
    case Builtin::time_second: {
      Reg<U32> seconds = second == 1 ? t : divide(b, t, second);
      return part(rest(b, seconds, divide(b, seconds, 60), 60));
    }
    default: return part(rest(b, t, divide(b, t, 1000), 1000));
  }
}

}  // namespace rndn::codegen
