// Calendar values as stored (docs/horseir.md, "Calendar values"): date = days since 1970-01-01,
// month = months since 1970-01, minute and second = seconds of the day, time = milliseconds of the
// day, dt = milliseconds since 1970-01-01T00:00.
#pragma once
#include <cstdint>
#include <string>

#include "frontend/types.h"

namespace rndn::hir {

// Proleptic Gregorian calendar. Algorithm: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", days_from_civil.
constexpr int64_t days_from_civil(int64_t year, int64_t month, int64_t day) {
  year -= month <= 2;
  int64_t era = (year >= 0 ? year : year - 399) / 400;
  int64_t of_era = year - era * 400;                                           // [0, 399]
  int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;  // [0, 365], from 1 March
  return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

struct CivilDate {
  int64_t year, month, day;
};
constexpr CivilDate civil_from_days(int64_t days) {
  days += 719468;
  int64_t era = (days >= 0 ? days : days - 146096) / 146097;
  int64_t of_era = days - era * 146097;
  int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
  int64_t m = (5 * of_year + 2) / 153;
  int64_t month = m < 10 ? m + 3 : m - 9;
  return {year + era * 400 + (month <= 2), month, of_year - (153 * m + 2) / 5 + 1};
}

constexpr int64_t days_in_month(int64_t year, int64_t month) {
  constexpr int64_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return month == 2 && (year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)) ? 29 : days[month - 1];
}

// The stored value as a HorseIR literal without its suffix, such as 1998-09-02. Requires is_calendar(type).
std::string calendar_text(BasicType type, int64_t value);

}  // namespace rndn::hir
