#include "runtime/files/parquet_pages.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>
#include <utility>

#include "runtime/files/decompress.h"
#include "runtime/files/snappy.h"

namespace rndn::files {
namespace {

static_assert(buffer_slack >= snappy_slack);

// ---- integers of a few bits

// Groups of eight, `bits` bits each, the lowest first.
template <unsigned bits>
void unpack(const std::byte* from, uint32_t* to, size_t groups) {
  constexpr uint64_t mask = (uint64_t{1} << bits) - 1;
  for (size_t g = 0; g < groups; ++g, from += bits, to += 8)
    [&]<unsigned... k>(std::integer_sequence<unsigned, k...>) {
      auto value = [&](unsigned bit) {
        uint64_t word;
        std::memcpy(&word, from + bit / 8, 8);
        return static_cast<uint32_t>(word >> bit % 8 & mask);
      };
      ((to[k] = value(k * bits)), ...);
    }
  (std::make_integer_sequence<unsigned, 8>());
}
using Unpack = void (*)(const std::byte*, uint32_t*, size_t);
constexpr unsigned most_bits = 32;
constexpr auto unpackers = []<unsigned... bits>(std::integer_sequence<unsigned, bits...>) {
  return std::array<Unpack, most_bits + 1>{unpack<bits>...};
}
(std::make_integer_sequence<unsigned, most_bits + 1>());

// Runs of one value, and groups of eight values each, in turn.
class Hybrid {
 public:
  Hybrid() = default;
  Hybrid(std::span<const std::byte> bytes, unsigned bits)
      : at_(bytes.data()), end_(at_ + bytes.size()), bits_(bits), value_bytes_((bits + 7) / 8) {}

  // Whether the next `count` values are one run, which are then passed by.
  bool skip_run(uint32_t value, uint64_t count) {
    if (same_ == 0 && packed_ == 0 && !next_run()) return false;
    if (same_ < count || value_ != value) return false;
    same_ -= count;
    return true;
  }

  bool read(uint32_t* to, size_t count) {
    while (count > 0) {
      if (same_ > 0) {
        const auto now = static_cast<size_t>(std::min<uint64_t>(same_, count));
        std::fill_n(to, now, value_);
        same_ -= now;
        to += now;
        count -= now;
      } else if (packed_ > 0) {
        const auto now = static_cast<size_t>(std::min<uint64_t>(packed_, count));
        take_packed(to, now);
        to += now;
        count -= now;
      } else if (!next_run()) {
        return false;
      }
    }
    return true;
  }

 private:
  // After what is no run nothing follows.
  bool next_run() {
    if (take_run()) return true;
    at_ = end_;
    return false;
  }
  bool take_run() {
    uint64_t head = 0;
    for (unsigned shift = 0;; shift += 7) {
      if (at_ == end_ || shift > 28) return false;
      const auto byte = static_cast<uint8_t>(*at_++);
      head |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    const auto left = static_cast<uint64_t>(end_ - at_);
    if (head & 1) {
      const uint64_t groups = head >> 1;
      if (groups == 0 || groups * bits_ > left) return false;
      packed_ = groups * 8;
      taken_ = 0;
      group_ = at_;
      at_ += groups * bits_;
      return true;
    }
    if (head == 0 || value_bytes_ > left) return false;
    uint32_t value = 0;
    std::memcpy(&value, at_, value_bytes_);
    if (bits_ < most_bits && value >> bits_) return false;
    at_ += value_bytes_;
    value_ = value;
    same_ = head >> 1;
    return true;
  }

  void take_packed(uint32_t* to, size_t count) {
    packed_ -= count;
    while (count > 0) {
      if (taken_ == 0 && count >= 8) {
        const size_t groups = count / 8;
        unpackers[bits_](group_, to, groups);
        group_ += groups * bits_;
        to += groups * 8;
        count -= groups * 8;
        continue;
      }
      uint32_t eight[8];
      unpackers[bits_](group_, eight, 1);
      const size_t now = std::min<size_t>(8 - taken_, count);
      std::copy_n(eight + taken_, now, to);
      taken_ = (taken_ + now) % 8;
      if (taken_ == 0) group_ += bits_;
      to += now;
      count -= now;
    }
  }

  const std::byte *at_ = nullptr, *end_ = nullptr, *group_ = nullptr;
  unsigned bits_ = 0, value_bytes_ = 0;
  uint64_t same_ = 0, packed_ = 0;  // values left of a run
  size_t taken_ = 0;                // of the group
  uint32_t value_ = 0;
};

uint32_t u32_at(const std::byte* at) {
  uint32_t value;
  std::memcpy(&value, at, 4);
  return value;
}

// ---- pages

constexpr const char* damaged = "a page is damaged";
constexpr const char* not_plain = "a page has an encoding of another kind";

class ChunkDecoder {
 public:
  ChunkDecoder(std::span<const std::byte> bytes, const ChunkForm& form, Buffer& page,
               PageSink& sink)
      : rest_(bytes), form_(form), sink_(sink), page_(page) {}

  const char* decode(uint64_t first, uint64_t rows) {
    for (uint64_t done = 0; done < rows;) {
      const std::optional<PageHeader> header = read_page_header(rest_);
      if (!header) return damaged;
      rest_ = rest_.subspan(header->bytes);
      if (header->compressed < 0 || header->uncompressed < 0 || header->values < 0 ||
          static_cast<uint64_t>(header->compressed) > rest_.size())
        return header->kind == static_cast<int64_t>(PageKind::index) ? not_plain : damaged;
      const auto body = rest_.first(static_cast<size_t>(header->compressed));
      rest_ = rest_.subspan(body.size());
      const char* wrong = nullptr;
      switch (header->kind) {
        case static_cast<int64_t>(PageKind::dictionary):
          if (done > 0 || has_dictionary_) return damaged;
          wrong = take_dictionary(*header, body);
          break;
        case static_cast<int64_t>(PageKind::data):
        case static_cast<int64_t>(PageKind::data_v2):
          if (static_cast<uint64_t>(header->values) > rows - done) return damaged;
          wrong = take_data(*header, body, first + done);
          done += static_cast<uint64_t>(header->values);
          break;
        default: wrong = not_plain;
      }
      if (wrong) return wrong;
    }
    return nullptr;
  }

 private:
  // Empty, and what is wrong, or what the bytes say.
  const char* unpack_body(std::span<const std::byte> body, uint64_t size, bool is_compressed,
                          std::span<const std::byte>& out) {
    if (!is_compressed || form_.codec == static_cast<int64_t>(Codec::none)) {
      out = body;
      return body.size() == size ? nullptr : damaged;
    }
    const bool is_snappy = form_.codec == static_cast<int64_t>(Codec::snappy);
    constexpr uint64_t most_of_a_byte = 64;  // Snappy's elements of 3 bytes stand for 64 at most
    if (is_snappy && size > body.size() * most_of_a_byte) return damaged;
    const std::span<std::byte> page(page_.make(size), size);
    out = page;
    if (is_snappy) return decompress_snappy(body, page) ? nullptr : damaged;
    if (form_.codec == static_cast<int64_t>(Codec::zstd)) return decompress_zstd(body, page);
    return "its compression is of another kind";
  }

  const char* take_dictionary(const PageHeader& header, std::span<const std::byte> body) {
    std::span<const std::byte> values;
    if (const char* wrong =
            unpack_body(body, static_cast<uint64_t>(header.uncompressed), true, values))
      return wrong;
    if (header.encoding != static_cast<int64_t>(Encoding::plain) &&
        header.encoding != static_cast<int64_t>(Encoding::plain_dictionary))
      return not_plain;
    has_dictionary_ = true;
    in_dictionary_ = static_cast<uint64_t>(header.values);
    return sink_.dictionary(values, in_dictionary_) ? nullptr : damaged;
  }

  const char* take_data(const PageHeader& header, std::span<const std::byte> body, uint64_t first) {
    std::span<const std::byte> page, levels;
    if (header.kind == static_cast<int64_t>(PageKind::data_v2)) {
      if (header.repeats != 0 || header.levels < 0 ||
          header.levels > std::min(header.compressed, header.uncompressed))
        return damaged;
      levels = body.first(static_cast<size_t>(header.levels));
      if (const char* wrong =
              unpack_body(body.subspan(levels.size()),
                          static_cast<uint64_t>(header.uncompressed) - levels.size(),
                          header.is_compressed, page))
        return wrong;
    } else {
      if (const char* wrong =
              unpack_body(body, static_cast<uint64_t>(header.uncompressed), true, page))
        return wrong;
      if (form_.may_miss) {
        if (header.level_encoding != static_cast<int64_t>(Encoding::rle)) return not_plain;
        if (page.size() < 4 || u32_at(page.data()) > page.size() - 4) return damaged;
        levels = page.subspan(4, u32_at(page.data()));
        page = page.subspan(4 + levels.size());
      }
    }
    Hybrid present(levels, 1), codes;
    const auto values = static_cast<uint64_t>(header.values);
    const bool all = !form_.may_miss || present.skip_run(1, values);
    bool is_coded = false;
    switch (header.encoding) {
      case static_cast<int64_t>(Encoding::plain): break;
      case static_cast<int64_t>(Encoding::byte_stream_split): {
        const size_t width = value_bytes();
        if (width == 0) return not_plain;
        if (page.size() % width) return damaged;
        page = joined(page, width);
        break;
      }
      case static_cast<int64_t>(Encoding::plain_dictionary):
      case static_cast<int64_t>(Encoding::rle_dictionary): {
        if (!has_dictionary_) return damaged;
        is_coded = true;
        if (page.empty()) break;  // no value is there
        const auto bits = static_cast<unsigned>(page[0]);
        if (bits > most_bits) return damaged;
        codes = Hybrid(page.subspan(1), bits);
        break;
      }
      case static_cast<int64_t>(Encoding::rle): {
        if (form_.type != Physical::boolean || page.size() < 4) return not_plain;
        if (u32_at(page.data()) > page.size() - 4) return damaged;
        Hybrid runs(page.subspan(4, u32_at(page.data())), 1);
        return take_runs(runs, present, all, first, values);
      }
      default: return not_plain;
    }
    uint64_t taken = 0;
    return for_batches(present, all, first, values, [&](const BatchRows& rows) {
      if (!is_coded) {
        const bool ok = sink_.plain(rows, page, taken);
        taken += rows.present;
        return ok;
      }
      return codes.read(numbers_.data(), rows.present) && are_codes(rows.present) &&
             sink_.coded(rows, numbers_.data());
    });
  }

  // Of types whose values may be split; 0: they are not.
  size_t value_bytes() const {
    switch (form_.type) {
      case Physical::int32:
      case Physical::float_: return 4;
      case Physical::int64:
      case Physical::double_: return 8;
      case Physical::fixed: return form_.length;
      default: return 0;
    }
  }
  std::span<const std::byte> joined(std::span<const std::byte> split, size_t width) {
    const size_t count = split.size() / width;
    std::byte* to = joined_.make(split.size());
    for (size_t b = 0; b < width; ++b)
      for (size_t i = 0; i < count; ++i) to[i * width + b] = split[b * count + i];
    return {to, split.size()};
  }

  bool are_codes(uint32_t count) const {
    bool all = true;
    for (uint32_t i = 0; i < count; ++i) all &= numbers_[i] < in_dictionary_;
    return all;
  }

  // Booleans in runs, as bits for the sink.
  const char* take_runs(Hybrid& runs, Hybrid& present, bool all, uint64_t first, uint64_t values) {
    return for_batches(present, all, first, values, [&](const BatchRows& rows) {
      if (!runs.read(numbers_.data(), rows.present)) return false;
      std::array<std::byte, batch_rows / 8> bits{};
      for (uint32_t i = 0; i < rows.present; ++i)
        bits[i / 8] |= static_cast<std::byte>(numbers_[i] << i % 8);
      return sink_.plain(rows, bits, 0);
    });
  }

  template <class Take>
  const char* for_batches(Hybrid& present, bool all, uint64_t first, uint64_t values, Take&& take) {
    for (uint64_t done = 0; done < values;) {
      const auto rows = static_cast<uint32_t>(std::min<uint64_t>(batch_rows, values - done));
      BatchRows batch{first + done, rows, rows, nullptr};
      if (!all) {
        if (!present.read(numbers_.data(), rows)) return damaged;
        for (uint32_t i = 0; i < rows; ++i) valid_[i] = static_cast<uint8_t>(numbers_[i]);
        batch.present = std::accumulate(valid_.begin(), valid_.begin() + rows, uint32_t{0});
        if (batch.present < rows) batch.valid = valid_.data();
      }
      if (!take(batch)) return damaged;
      done += rows;
    }
    return nullptr;
  }

  std::span<const std::byte> rest_;
  const ChunkForm form_;
  PageSink& sink_;
  Buffer& page_;
  Buffer joined_;  // split values of a page
  bool has_dictionary_ = false;
  uint64_t in_dictionary_ = 0;  // values
  std::array<uint32_t, batch_rows> numbers_;
  std::array<uint8_t, batch_rows> valid_;
};

}  // namespace

const char* decode_chunk(std::span<const std::byte> bytes, const ChunkForm& form, uint64_t first,
                         uint64_t rows, Buffer& scratch, PageSink& sink) {
  return ChunkDecoder(bytes, form, scratch, sink).decode(first, rows);
}

}  // namespace rndn::files
