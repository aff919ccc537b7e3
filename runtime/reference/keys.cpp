// Equality and order of elements, whatever their type: what unique, group, order, member and joins share.
//
// Rows become byte strings that are equal exactly when the rows are; a hash table over them needs no case per type.
// -0.0 and 0.0 are one key. Cost O(total bytes).
#include <cstring>

#include "runtime/reference/builtins.h"

namespace rndn::reference {

using hir::BasicType;

namespace {
template <class T>
int compare(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    bool na = std::isnan(a), nb = std::isnan(b);
    if (na || nb) return static_cast<int>(na) - static_cast<int>(nb);
  }
  return a < b ? -1 : a > b ? 1 : 0;
}
}  // namespace

int compare_elements(const Value& a, uint64_t i, const Value& b, uint64_t j) {
  if (a.is_text_vector()) {
    int order = a.text(i).compare(b.text(j));
    return order < 0 ? -1 : order > 0 ? 1 : 0;
  }
  if (a.type == BasicType::complex || b.type == BasicType::complex) {
    auto element = [](const Value& v, uint64_t at) {
      if (v.type == BasicType::complex) return v.as<std::complex<double>>()[at];
      return std::complex<double>(
          with_type(v.type, [&](auto from) { return convert<double>(v.as<decltype(from)>()[at]); }));
    };
    std::complex<double> x = element(a, i), y = element(b, j);
    int real = compare(x.real(), y.real());
    return real ? real : compare(x.imag(), y.imag());
  }
  BasicType type = a.type == b.type ? a.type : hir::widest(a.type, b.type);
  return with_type(type, [&](auto zero) {
    using T = decltype(zero);
    T x = with_type(a.type, [&](auto from) { return convert<T>(a.as<decltype(from)>()[i]); });
    T y = with_type(b.type, [&](auto from) { return convert<T>(b.as<decltype(from)>()[j]); });
    return compare(x, y);
  });
}

std::vector<std::string> row_keys(std::span<const Value> columns, std::span<const BasicType> as,
                                  std::vector<uint8_t>* has_nan) {
  uint64_t rows = columns.empty() ? 0 : columns[0].size;
  std::vector<std::string> keys(rows);
  if (has_nan) has_nan->assign(rows, 0);
  CancelTicker tick;
  auto append = [&](uint64_t row, const void* bytes, size_t n) {
    tick();
    keys[row].append(static_cast<const char*>(bytes), n);
  };
  auto append_float = [&](uint64_t row, double x) {
    if (std::isnan(x)) {
      if (has_nan) (*has_nan)[row] = 1;
      x = std::nan("");
    }
    if (x == 0) x = 0;  // -0.0
    append(row, &x, sizeof x);
  };
  for (size_t c = 0; c < columns.size(); ++c) {
    const Value& column = columns[c];
    if (column.is_text_vector()) {
      for (uint64_t i = 0; i < rows; ++i) {
        uint64_t n = column.text(i).size();
        append(i, &n, sizeof n);
        append(i, column.text(i).data(), n);
      }
    } else if (column.type == BasicType::complex) {
      for (uint64_t i = 0; i < rows; ++i) {
        append_float(i, column.as<std::complex<double>>()[i].real());
        append_float(i, column.as<std::complex<double>>()[i].imag());
      }
    } else if (as[c] == BasicType::complex) {
      std::vector<double> x = elements<double>(column);
      for (uint64_t i = 0; i < rows; ++i) append_float(i, x[i]), append_float(i, 0);
    } else if (as[c] == BasicType::f32) {
      std::vector<float> x = elements<float>(column);
      for (uint64_t i = 0; i < rows; ++i) append_float(i, x[i]);
    } else if (as[c] == BasicType::f64) {
      std::vector<double> x = elements<double>(column);
      for (uint64_t i = 0; i < rows; ++i) append_float(i, x[i]);
    } else if (hir::is_wide(as[c])) {
      std::vector<__int128> x = elements<__int128>(column);
      for (uint64_t i = 0; i < rows; ++i) append(i, &x[i], sizeof x[i]);
    } else {
      std::vector<int64_t> x = elements<int64_t>(column);
      for (uint64_t i = 0; i < rows; ++i) append(i, &x[i], sizeof x[i]);
    }
  }
  return keys;
}

Result<std::vector<Value>> key_columns(std::string_view function, const Value& v) {
  std::vector<Value> columns = v.kind == Value::list ? v.parts() : std::vector<Value>{v};
  if (columns.empty()) return input_error("`{}` needs at least one column, got an empty list", function);
  for (Value& column : columns) {
    if (column.kind == Value::enumeration) {
      ASSIGN_OR_RETURN(column, enumerated_values(function, column));
    }
    if (!column.is_vector()) return input_error("`{}` expects vectors as columns, got {}", function, describe(column));
    if (column.size != columns[0].size)
      return input_error("`{}` expects columns of one length, got {} and {} elements", function, columns[0].size,
                         column.size);
  }
  return columns;
}

}  // namespace rndn::reference
