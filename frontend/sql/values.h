// What the rules of expressions share: families of SQL's types, their bounds and scales. Private.
#pragma once
#include "frontend/sql/catalog.h"
#include "frontend/sql/graph.h"

namespace rndn::sql {

// The type that holds integers of `type` and within the bounds.
inline hir::BasicType holding(hir::BasicType type, Bounds bounds) {
  return bounds.known && !bounds.fits_i64() ? hir::BasicType::i128 : type;
}
inline bool is_floating(Type t) { return t.id == TypeId::real || t.id == TypeId::double_; }
inline bool is_integral(Type t) { return t.id >= TypeId::tinyint && t.id <= TypeId::ubigint; }
inline bool is_exact(Type t) {
  return is_integral(t) || t.id == TypeId::hugeint || t.id == TypeId::decimal;
}
inline bool is_timestamp(Type t) {
  return t.id == TypeId::timestamp || t.id == TypeId::timestamptz;
}
inline bool is_moment(Type t) { return t.id == TypeId::date || is_timestamp(t); }
inline unsigned scale_of(Type t) { return t.id == TypeId::decimal ? t.scale : 0; }

inline __int128 power_of_ten(unsigned n) {
  __int128 p = 1;
  while (n-- > 0) p *= 10;
  return p;
}

// What values of an exact type can be; of HUGEINT: not known, all of 128 bits.
inline Bounds bounds_of(Type t) {
  switch (t.id) {
    case TypeId::tinyint: return Bounds::of(INT8_MIN, INT8_MAX);
    case TypeId::smallint: return Bounds::of(INT16_MIN, INT16_MAX);
    case TypeId::integer: return Bounds::of(INT32_MIN, INT32_MAX);
    case TypeId::bigint: return Bounds::of(INT64_MIN, INT64_MAX);
    case TypeId::utinyint: return Bounds::of(0, UINT8_MAX);
    case TypeId::usmallint: return Bounds::of(0, UINT16_MAX);
    case TypeId::uinteger: return Bounds::of(0, UINT32_MAX);
    case TypeId::ubigint: return Bounds::of(0, UINT64_MAX);
    case TypeId::decimal: return Bounds::of(1 - power_of_ten(t.width), power_of_ten(t.width) - 1);
    default: return {};
  }
}

inline constexpr int64_t second_us = 1000000, minute_us = 60 * second_us, hour_us = 60 * minute_us,
                         day_us = 24 * hour_us;  // of TIME and TIMESTAMP

}  // namespace rndn::sql
