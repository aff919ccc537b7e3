#include "runtime/data/arrow_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "libraries/base/report/utf8.h"

namespace rndn::data {
namespace {

using hir::BasicType;

constexpr int64_t microseconds_of_day = 86'400'000'000;

// ---- numbers

// One stored number of one in the array; `reason` says why there is none.
template <class To, class From>
To convert(From value, const ArrowFormat& format, const char*& reason) {
  if constexpr (std::is_floating_point_v<From>) {
    return static_cast<To>(value);
  } else {
    int64_t wide = static_cast<int64_t>(value);
    if (std::is_unsigned_v<From> && wide < 0) reason = "is beyond 64 bits";
    if (format.mul != 1 && __builtin_mul_overflow(wide, format.mul, &wide))
      reason = "is beyond 64 bits of microseconds";
    if (format.div != 1) {
      if (wide % format.div)
        reason = format.stored == BasicType::date ? "is no whole day" : "is no whole microsecond";
      wide /= format.div;
    }
    if (format.meaning == Meaning::time && (wide < 0 || wide >= microseconds_of_day))
      reason = "is no time of a day";
    if (sizeof(To) < 8 &&
        (wide < std::numeric_limits<To>::min() || wide > std::numeric_limits<To>::max()))
      reason = "is out of range";
    return static_cast<To>(wide);
  }
}

template <class To, class From>
void numbers(const Piece& p, const ArrowFormat& format, Column& out, FirstFailedRow& failure) {
  To* to = reinterpret_cast<To*>(out.data->data()) + p.at;
  const From* from = p.values<From>();
  if constexpr (sizeof(To) == sizeof(From) && std::is_signed_v<From>)
    if (format.mul == 1 && format.div == 1 && format.meaning != Meaning::time) {
      if (p.rows) std::memcpy(to, from, p.rows * sizeof(To));  // without rows there may be no buffer
      return;
    }
  const void* validity = p.validity();
  for (uint64_t i = 0; i < p.rows; ++i) {
    const char* reason = nullptr;
    to[i] = convert<To>(from[i], format, reason);
    if (reason && (!validity || bit(validity, p.first + i))) {
      failure.meet(p.at + i, reason);
      return;
    }
  }
}

// Decimals of more than 8 bytes: little end first; all words above the lowest are its sign.
void decimal_values(const Piece& p, const ArrowFormat& format, Column& out, FirstFailedRow& failure) {
  int64_t* to = reinterpret_cast<int64_t*>(out.data->data()) + p.at;
  const auto* from = static_cast<const std::byte*>(p.buffer(1)) + p.first * format.bytes;
  const void* validity = p.validity();
  for (uint64_t i = 0; i < p.rows; ++i, from += format.bytes) {
    std::memcpy(&to[i], from, 8);
    for (uint8_t b = 8; b < format.bytes; b += 8) {
      int64_t word;
      std::memcpy(&word, from + b, 8);
      if (word == to[i] >> 63 || (validity && !bit(validity, p.first + i))) continue;
      return failure.meet(p.at + i, "is beyond 64 bits");
    }
  }
}

// Of more than 128 bits.
void wide_decimals(const Piece& p, const ArrowFormat& format, Column& out,
                   FirstFailedRow& failure) {
  auto* to = out.data->data() + p.at * sizeof(__int128);
  const auto* from = static_cast<const std::byte*>(p.buffer(1)) + p.first * format.bytes;
  for (uint64_t i = 0; i < p.rows; ++i, from += format.bytes, to += sizeof(__int128)) {
    std::memcpy(to, from, sizeof(__int128));
    int64_t sign;
    std::memcpy(&sign, from + 8, 8);
    for (uint8_t b = sizeof(__int128); b < format.bytes; b += 8) {
      int64_t word;
      std::memcpy(&word, from + b, 8);
      if (word != sign >> 63 && is_there(p, i))
        return failure.meet(p.at + i, "is beyond 128 bits");
    }
  }
}

// Integers of 128 bits, of which nothing is lost.
template <class From>
void wide(const Piece& p, const ArrowFormat&, Column& out, FirstFailedRow&) {
  auto* to = out.data->data() + p.at * sizeof(__int128);
  const auto* from = static_cast<const std::byte*>(p.buffer(1)) + p.first * sizeof(From);
  if constexpr (sizeof(From) == sizeof(__int128)) {
    if (p.rows) std::memcpy(to, from, p.rows * sizeof(__int128));
  } else {
    for (uint64_t i = 0; i < p.rows; ++i) {
      From value;
      std::memcpy(&value, from + i * sizeof(From), sizeof(From));
      const auto whole = static_cast<__int128>(value);
      std::memcpy(to + i * sizeof whole, &whole, sizeof whole);
    }
  }
}

using Numbers = void (*)(const Piece&, const ArrowFormat&, Column&, FirstFailedRow&);
struct NumberRow {
  ArrowLayout layout;
  uint8_t bytes, width;  // of the array, of the column
  Numbers convert;
};
constexpr NumberRow number_rows[] = {
    {ArrowLayout::signed_, 1, 1, numbers<int8_t, int8_t>},
    {ArrowLayout::signed_, 2, 2, numbers<int16_t, int16_t>},
    {ArrowLayout::signed_, 4, 4, numbers<int32_t, int32_t>},
    {ArrowLayout::signed_, 8, 8, numbers<int64_t, int64_t>},
    {ArrowLayout::signed_, 4, 1, numbers<int8_t, int32_t>},  // Parquet has no narrower integers
    {ArrowLayout::signed_, 4, 2, numbers<int16_t, int32_t>},
    {ArrowLayout::unsigned_, 4, 2, numbers<int16_t, uint32_t>},
    {ArrowLayout::unsigned_, 4, 4, numbers<int32_t, uint32_t>},
    {ArrowLayout::signed_, 8, 4, numbers<int32_t, int64_t>},  // date64
    {ArrowLayout::signed_, 4, 8, numbers<int64_t, int32_t>},  // time32
    {ArrowLayout::unsigned_, 1, 2, numbers<int16_t, uint8_t>},
    {ArrowLayout::unsigned_, 2, 4, numbers<int32_t, uint16_t>},
    {ArrowLayout::unsigned_, 4, 8, numbers<int64_t, uint32_t>},
    {ArrowLayout::unsigned_, 8, 8, numbers<int64_t, uint64_t>},
    {ArrowLayout::floats, 4, 4, numbers<float, float>},
    {ArrowLayout::floats, 8, 8, numbers<double, double>},
    {ArrowLayout::bytes, 1, 1, numbers<int8_t, int8_t>},
    {ArrowLayout::decimal, 2, 8, numbers<int64_t, int16_t>},
    {ArrowLayout::decimal, 4, 8, numbers<int64_t, int32_t>},
    {ArrowLayout::decimal, 8, 8, numbers<int64_t, int64_t>},
    {ArrowLayout::decimal, 16, 8, decimal_values},
    {ArrowLayout::decimal, 32, 8, decimal_values},
    {ArrowLayout::decimal, 16, 16, wide<__int128>},
    {ArrowLayout::decimal, 32, 16, wide_decimals},
    {ArrowLayout::unsigned_, 8, 16, wide<uint64_t>},
};

}  // namespace

std::string flaw_of(const ArrowArray* array, const ArrowType& type, uint64_t end) {
  if (!array || !array->release) return "is not there";
  if (array->length < 0) return fmt::format("has a length of {}", array->length);
  if (array->offset < 0) return fmt::format("has an offset of {}", array->offset);
  const auto length = static_cast<uint64_t>(array->length);
  if (length > longest_vector || static_cast<uint64_t>(array->offset) > INT64_MAX - longest_vector)
    return "has more rows than there can be";
  if (length < end) return fmt::format("has {} rows, and the table has {}", length, end);
  if (array->null_count < -1 || array->null_count > array->length)
    return fmt::format("has {} missing rows among {}", array->null_count, length);
  const ArrowFormat& values = type.codes ? *type.codes : *type.format;
  const bool is_view = values.layout == ArrowLayout::view;
  const int64_t wanted = values.layout == ArrowLayout::none   ? 0
                         : values.layout == ArrowLayout::text ? 3
                         : is_view                            ? 3
                                                              : 2;
  if (wanted && (array->n_buffers < wanted || (array->n_buffers > wanted && !is_view)))
    return fmt::format("has {} buffers, and its type has {}", array->n_buffers, wanted);
  if (array->n_buffers < 0) return fmt::format("has {} buffers", array->n_buffers);
  if (array->n_buffers && !array->buffers) return "has no buffers";
  if (length && wanted && !array->buffers[1]) return "has no buffer of values";
  if (wanted && array->null_count > 0 && !array->buffers[0])
    return "has missing rows, and does not say which";
  if (is_view)
    for (int64_t i = 2; i < array->n_buffers; ++i)
      if (!array->buffers[i] && array->n_buffers > 3)
        return fmt::format("has nothing in the place of buffer {}", i + 1);
  if (!type.codes) return "";
  if (!array->dictionary) return "has no dictionary";
  if (array->dictionary->length == 0) return "";
  const std::string inner = flaw_of(array->dictionary, {.format = type.format}, 0);
  return inner.empty() ? "" : "has a dictionary that " + inner;
}

void check_texts(const Piece& p, const ArrowFormat& format, FirstFailedRow& failure) {
  const auto offsets = [&]<class T>(const T* at) {
    for (uint64_t i = 0; i < p.rows; ++i) {
      if (at[i] < 0 || at[i + 1] < at[i])
        return failure.meet(p.at + i, fmt::format("is a text from byte {} to {}", at[i], at[i + 1]));
      if (at[i + 1] > at[i] && !p.buffer(2))
        return failure.meet(p.at + i, "is a text of an array without characters");
    }
  };
  if (format.layout == ArrowLayout::text && format.bytes == 4) return offsets(p.values<int32_t>());
  if (format.layout == ArrowLayout::text) return offsets(p.values<int64_t>());
  if (format.layout != ArrowLayout::view) return;
  // Characters lie in the buffers between the second and the last, which has their lengths.
  const int64_t last = p.array->n_buffers - 1;
  const auto* lengths = static_cast<const int64_t*>(p.array->buffers[last]);
  const auto* views = static_cast<const std::byte*>(p.array->buffers[1]) + p.first * 16;
  for (uint64_t i = 0; i < p.rows; ++i) {
    int32_t word[4];
    std::memcpy(word, views + i * 16, sizeof word);
    if (!is_there(p, i) || (word[0] >= 0 && word[0] <= 12)) continue;
    if (word[0] < 0 || word[2] < 0 || word[3] < 0 || 2 + int64_t{word[2]} >= last ||
        int64_t{word[3]} + word[0] > lengths[word[2]])
      return failure.meet(p.at + i, "is a text that lies outside of its buffer");
  }
}

void check_utf8(const Piece& p, const ArrowFormat& format, FirstFailedRow& failure) {
  if (format.layout == ArrowLayout::text && p.rows) {  // mostly all of it is ASCII, at one glance
    const auto place = [&](uint64_t i) {
      return format.bytes == 4 ? p.values<int32_t>()[i] : p.values<int64_t>()[i];
    };
    const int64_t begin = place(0), end = place(p.rows);
    if (begin == end) return;
    if (is_ascii({static_cast<const char*>(p.buffer(2)) + begin, static_cast<size_t>(end - begin)}))
      return;
  }
  for (uint64_t i = 0; i < p.rows; ++i)
    if (is_there(p, i) && !is_utf8(text_of(*p.array, format, p.first + i)))
      return failure.meet(p.at + i, "is no text in UTF-8");
}

void put_values(const Piece& p, const ArrowFormat& format, Column& out, FirstFailedRow& failure) {
  if (format.layout == ArrowLayout::none) return;
  if (format.layout == ArrowLayout::bits) {
    for (uint64_t i = 0; i < p.rows; ++i)
      (*out.data)[p.at + i] = std::byte{bit(p.buffer(1), p.first + i)};
    return;
  }
  const auto row = std::find_if(std::begin(number_rows), std::end(number_rows), [&](const auto& r) {
    return r.layout == format.layout && r.bytes == format.bytes && r.width == out.width;
  });
  CHECK(row != std::end(number_rows));
  row->convert(p, format, out, failure);
}

// Of rows that are missing: theirs in the bitmap, or all.
void mark_missing(const Piece& p, const ArrowFormat& format, Column& out) {
  std::byte* valid = out.validity->data() + p.at;
  std::byte* data = out.data->data() + p.at * out.width;
  const void* validity = p.validity();
  for (uint64_t i = 0; i < p.rows; ++i) {
    const bool there =
        format.layout != ArrowLayout::none && (!validity || bit(validity, p.first + i));
    valid[i] = std::byte{there};
    if (!there && out.encoding == Encoding::plain) std::memset(data + i * out.width, 0, out.width);
  }
}

void keep_validity_if_needed(Column& column) {
  const auto& valid = *column.validity;
  if (std::find(valid.begin(), valid.end(), std::byte{0}) == valid.end()) column.validity = nullptr;
}

std::string_view text_of(const ArrowArray& array, const ArrowFormat& format, uint64_t row) {
  const auto characters = [&](int64_t i, int64_t begin, int64_t size) {
    return std::string_view(static_cast<const char*>(array.buffers[i]) + begin,
                            static_cast<size_t>(size));
  };
  if (format.layout == ArrowLayout::text) {
    if (format.bytes == 4) {
      const auto* offsets = static_cast<const int32_t*>(array.buffers[1]) + row;
      return offsets[1] == offsets[0] ? std::string_view()
                                      : characters(2, offsets[0], offsets[1] - offsets[0]);
    }
    const auto* offsets = static_cast<const int64_t*>(array.buffers[1]) + row;
    return offsets[1] == offsets[0] ? std::string_view()
                                    : characters(2, offsets[0], offsets[1] - offsets[0]);
  }
  const auto* view = static_cast<const std::byte*>(array.buffers[1]) + row * 16;
  int32_t word[4];
  std::memcpy(word, view, sizeof word);
  constexpr uint32_t most_within = 12;
  const auto size = static_cast<uint32_t>(word[0]);
  if (size <= most_within) return {reinterpret_cast<const char*>(view) + 4, size};
  if (format.layout == ArrowLayout::pointers) {
    const char* characters_at;
    std::memcpy(&characters_at, view + 8, sizeof characters_at);
    return {characters_at, size};
  }
  return characters(2 + word[2], word[3], word[0]);
}

}  // namespace rndn::data
