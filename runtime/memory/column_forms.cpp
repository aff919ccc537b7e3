#include "runtime/memory/column_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <vector>

#include "runtime/data/cache.h"
#include "runtime/memory/device_value.h"

namespace rndn::runtime {

namespace {

using encodings::Facts;
using encodings::Kind;
using encodings::Stored;

// What --encode auto stands for. Measured times of packed forms on a GPU may change it.
constexpr Encode automatic = Encode::narrow;

constexpr uint64_t piece_rows = uint64_t{1} << 16;  // divisible by 64: encodings.h
constexpr uint64_t sample_rows = 1024;
constexpr uint8_t most_digits = 4;

const std::byte* host_bytes(const data::Column& c, RowsReferred rows_of) {
  const auto& bytes = rows_of ? c.foreign_rows : c.data;
  return bytes ? bytes->data() : nullptr;
}

// How the host has the elements.
Stored host_form(const data::Column& c, RowsReferred rows_of) {
  if (rows_of)
    return c.foreign_rows->size() < 8 * c.rows
               ? Stored{.kind = Kind::narrow, .bytes = 4, .is_signed = true}
               : Stored{};
  if (c.encoding == data::Encoding::dictionary && c.width < 4)
    return {.kind = Kind::narrow, .bytes = static_cast<uint8_t>(c.width)};
  return {};
}

// Calls body(piece) for all pieces of the rows.
template <class Body>
void for_pieces(uint64_t rows, ThreadPool* pool, Body&& body) {
  const size_t pieces = (rows + piece_rows - 1) / piece_rows;
  if (pool && pieces > 1)
    pool->run(pieces, [&](size_t k, unsigned) { body(k); });
  else
    for (size_t k = 0; k < pieces; ++k) body(k);
}

// Rows first.. of the column, in the plain form: where they lie, or in `space`.
const std::byte* plain_rows(const data::Column& c, RowsReferred rows_of, uint64_t first,
                            uint64_t rows, std::vector<std::byte>& space) {
  const Stored host = host_form(c, rows_of);
  const hir::BasicType type = element_type(c, rows_of);
  const std::byte* from = host_bytes(c, rows_of) + first * encodings::bits_of(type, host) / 8;
  if (host == Stored{}) return from;
  space.resize(rows * encodings::plain_bytes(type));
  encodings::find(host).restore(type, host, from, rows, space.data());
  return space.data();
}

// The column in that form; null: it has an element that the form does not hold.
std::shared_ptr<const data::Bytes> made(const data::Column& c, RowsReferred rows_of,
                                        const Stored& to, ThreadPool* pool) {
  const hir::BasicType type = element_type(c, rows_of);
  const encodings::Encoding& form = encodings::find(to);
  std::shared_ptr<data::Bytes> bytes = data::zeros(form.bytes(type, to, c.rows));
  std::atomic<bool> held = true;
  const auto piece = [&](size_t k) {
    if (!held) return;
    const uint64_t first = k * piece_rows, rows = std::min(piece_rows, c.rows - first);
    std::vector<std::byte> space;
    const std::byte* plain = plain_rows(c, rows_of, first, rows, space);
    if (!form.make(type, to, plain, rows, bytes->data() + first * form.bits(type, to) / 8))
      held = false;
  };
  for_pieces(c.rows, pool, piece);
  return held ? bytes : nullptr;
}

// Whether bits of the form can be an element beyond the bounds.
bool reaches_beyond(hir::BasicType type, const Stored& form, const Facts& facts) {
  const uint32_t bits = encodings::bits_of(type, form);
  return bits >= 63 || form.reference != facts.min ||
         (uint64_t{1} << bits) - 1 != static_cast<uint64_t>(facts.max) - static_cast<uint64_t>(facts.min);
}

// Whether bytes that stood in a file restore to the column, of which that is known. What is of these very elements is taken
// as it is where no bits can be an index out of range, whoever wrote the file.
bool is_sound(const data::Bytes& bytes, bool is_of_these, const data::Column& c, RowsReferred rows_of, const Stored& form,
              const Facts& facts, ThreadPool* pool) {
  const hir::BasicType type = element_type(c, rows_of);
  const encodings::Encoding& e = encodings::find(form);
  if (bytes.size() != e.bytes(type, form, c.rows)) return false;
  if (is_of_these && (encodings::rep_of(type) == encodings::Rep::f64 || !reaches_beyond(type, form, facts))) return true;
  std::atomic<bool> sound = true;
  for_pieces(c.rows, pool, [&](size_t k) {
    if (!sound) return;
    const uint64_t first = k * piece_rows, rows = std::min(piece_rows, c.rows - first);
    std::vector<std::byte> restored(rows * encodings::plain_bytes(type)), space;
    e.restore(type, form, bytes.data() + first * e.bits(type, form) / 8, rows, restored.data());
    if (std::memcmp(restored.data(), plain_rows(c, rows_of, first, rows, space), restored.size()) != 0) sound = false;
  });
  return sound;
}

// The same as `made`, from the cache where that has it; else it is left there.
std::shared_ptr<const data::Bytes> kept_or_made(const data::Column& c, RowsReferred rows_of, const Stored& to,
                                                const Facts& facts, ThreadPool* pool, uint32_t& encoded) {
  const hir::BasicType type = element_type(c, rows_of);
  const auto& own = rows_of ? c.foreign_rows : c.data;
  const auto file =
      own ? data::FormFile::of(*own, fmt::format("{}.{}.{}", hir::row(type).name,
                                                 encodings::text(host_form(c, rows_of)), encodings::text(to)))
          : std::nullopt;
  if (file)
    if (auto found = file->read();
        found && (*found ? is_sound(**found, file->is_of_these(), c, rows_of, to, facts, pool) : file->is_of_these()))
      return *std::move(found);
  ++encoded;
  auto bytes = made(c, rows_of, to, pool);
  if (file && (bytes || file->is_of_these())) (void)file->write(bytes.get());
  return bytes;
}

// What the statistics say of doubles if all are decimals of so many digits; none: some are not.
std::optional<Facts> decimals(const data::Column& c, uint8_t digits) {
  const data::Statistics& s = c.statistics;
  const double power = std::pow(10.0, digits);
  constexpr double most = 0x1p51;
  if (!s.known || !(std::abs(s.float_min) * power < most) ||
      !(std::abs(s.float_max) * power < most))
    return std::nullopt;
  const Facts facts{.known = true,
                    .min = std::llround(s.float_min * power),
                    .max = std::llround(s.float_max * power),
                    .exponent = digits};
  const auto form = encodings::find(Kind::packed).fits(c.type, facts);
  if (!form) return std::nullopt;
  const uint64_t count = std::min(c.rows, sample_rows);
  std::vector<double> sample(count);
  for (uint64_t i = 0; i < count; ++i) sample[i] = c.as<double>()[i * (c.rows / count)];
  std::vector<std::byte> space(encodings::find(*form).bytes(c.type, *form, count));
  if (!encodings::find(*form).make(c.type, *form, reinterpret_cast<const std::byte*>(sample.data()),
                                   count, space.data()))
    return std::nullopt;
  return facts;
}

// What may hold for the elements, the most likely first.
std::vector<Facts> facts_of(const data::Column& c, RowsReferred rows_of) {
  std::vector<Facts> out;
  if (c.rows == 0) return out;
  if (rows_of) {
    if (*rows_of)
      out.push_back({.known = true, .min = 0, .max = static_cast<int64_t>(*rows_of) - 1});
  } else if (c.type == hir::BasicType::f64) {
    for (uint8_t digits = 0; digits <= most_digits; ++digits)
      if (const auto facts = decimals(c, digits)) out.push_back(*facts);
  } else if (c.type == hir::BasicType::boolean) {
    out.push_back({.known = true, .min = 0, .max = 1});
  } else if (const Bounds b = bounds_of(c); b.known()) {
    out.push_back({.known = true, .min = b.min, .max = b.max});
  }
  return out;
}

std::string said(const data::Column& c, RowsReferred rows_of, const Facts& f) {
  if (rows_of) return fmt::format("row numbers up to {}", f.max);
  if (hir::is_text(c.type)) return fmt::format("{} texts", f.max + 1);
  if (c.type == hir::BasicType::f64) {
    const double power = std::pow(10.0, f.exponent);
    return fmt::format("decimals with {} digits, {} to {}", f.exponent,
                       static_cast<double>(f.min) / power, static_cast<double>(f.max) / power);
  }
  return fmt::format("integers {} to {}", f.min, f.max);
}

// Fewer bytes are not worth it.
constexpr size_t least_bytes_to_go = 64 << 10;

// again: also what the host has asked for since.
bool can_go(const std::shared_ptr<data::Bytes>& bytes, bool again) {
  return bytes && (again ? bytes->are_here() : !bytes->is_on_demand()) && bytes->size() >= least_bytes_to_go &&
         !(bytes->forms() && bytes->forms()->is_version);
}

// Rows first.. in pieces that begin where forms can be read: body(row, rows, from, to), of the rows from .. to below
// those of a piece.
template <class Body>
void for_pieces_of(uint64_t rows, uint64_t first, uint64_t count, Body&& body) {
  const uint64_t begin = first / piece_rows;
  parallel_for((first + count + piece_rows - 1) / piece_rows - begin, [&](size_t k) {
    const uint64_t row = (begin + k) * piece_rows, of_piece = std::min(piece_rows, rows - row);
    body(row, of_piece, std::max(first, row) - row, std::min(first + count, row + of_piece) - row);
  });
}

// Bytes of elements as the host has them, from those in that form.
std::shared_ptr<data::Bytes> restored_later(hir::BasicType type, uint64_t rows, const Stored& host,
                                            const Stored& form, std::shared_ptr<const data::Bytes> from) {
  const encodings::Encoding &to = encodings::find(host), &of = encodings::find(form);
  const size_t width = to.bits(type, host) / 8;
  return std::make_shared<data::Bytes>(rows * width, [=, &to, &of](size_t first, size_t size) {
    CHECK(first % width == 0 && size % width == 0 && first + size <= rows * width);
    std::shared_ptr<data::Bytes> bytes = data::zeros(size);
    for_pieces_of(rows, first / width, size / width, [&](uint64_t row, uint64_t count, uint64_t begin, uint64_t end) {
      const std::byte* stored = from->data() + row * of.bits(type, form) / 8;
      std::byte* at = bytes->data() + (row + begin) * width - first;
      if (host == Stored{} && end - begin == count) return of.restore(type, form, stored, count, at);
      std::vector<std::byte> space(count * encodings::plain_bytes(type));
      of.restore(type, form, stored, count, space.data());
      const std::byte* plain = space.data() + begin * encodings::plain_bytes(type);
      if (host == Stored{}) {
        std::memcpy(at, plain, (end - begin) * width);
        return;
      }
      CHECK(to.make(type, host, plain, end - begin, at), "elements that the host had in this form");
    });
    return bytes;
  });
}

// Values of a foreign key from the rows that it refers to.
std::shared_ptr<data::Bytes> referred_later(uint64_t rows, uint32_t width, const std::shared_ptr<data::Bytes>& numbers,
                                            std::shared_ptr<const data::Column> key) {
  return std::make_shared<data::Bytes>(rows * width, [=](size_t first, size_t size) {
    CHECK(first % width == 0 && size % width == 0 && first + size <= rows * width);
    const size_t number_width = numbers->size() / rows;
    const uint64_t first_row = first / width, count = size / width;
    const auto some = data::Bytes::part(numbers, first_row * number_width, count * number_width);
    const std::byte *number_bytes = some->data(), *values = key->data->data();
    std::shared_ptr<data::Bytes> bytes = data::zeros(size);
    std::byte* to = bytes->data();
    const auto piece = [&](size_t k) {
      for (uint64_t row = k * piece_rows; row < std::min((k + 1) * piece_rows, count); ++row) {
        uint64_t number = 0;
        std::memcpy(&number, number_bytes + row * number_width, number_width);
        std::memcpy(to + row * width, values + number * width, width);
      }
    };
    parallel_for((count + piece_rows - 1) / piece_rows, piece);
    return bytes;
  });
}

}  // namespace

std::optional<Encode> find_encode(std::string_view name) {
  if (name == "auto") return Encode::automatic;
  if (name == "plain") return Encode::plain;
  if (name == "narrow") return Encode::narrow;
  if (name == "packed") return Encode::packed;
  return std::nullopt;
}

std::optional<Transfer> find_transfer(std::string_view name) {
  if (name == "auto") return Transfer::automatic;
  if (name == "copied") return Transfer::copied;
  if (name == "mapped") return Transfer::mapped;
  return std::nullopt;
}

ColumnForm form_of(const data::Column& c, RowsReferred rows_of, Encode encode, ThreadPool* pool) {
  if (encode == Encode::automatic) encode = automatic;
  const Stored host = host_form(c, rows_of);
  const hir::BasicType type = element_type(c, rows_of);
  ColumnForm as_on_host{.stored = host, .bytes = nullptr, .reason = "as the host has it"};
  if (c.encoding == data::Encoding::text) {
    as_on_host.reason = "texts without a dictionary";
    return as_on_host;
  }
  if (encode == Encode::narrow) return as_on_host;
  if (encode == Encode::plain) {
    if (host == Stored{}) return as_on_host;
    return {.stored = {}, .bytes = made(c, rows_of, {}, pool), .reason = "widened", .encoded = 1};
  }
  as_on_host.reason = c.rows == 0                   ? "no rows"
                      : type == hir::BasicType::f64 ? "no decimals of up to 4 digits"
                                                    : "nothing is known of its elements";
  for (const Facts& facts : facts_of(c, rows_of)) {
    const auto narrow = encodings::find(Kind::narrow).fits(type, facts);
    const auto packed = encodings::find(Kind::packed).fits(type, facts);
    const Stored bytes = narrow.value_or(host);
    const bool in_bits = packed && encodings::bits_of(type, *packed) <=
                                       packed_saves_from * encodings::bits_of(type, bytes);
    const Stored form = in_bits ? *packed : bytes;
    std::string reason = said(c, rows_of, facts);
    if (!in_bits && packed) reason += fmt::format(": {} bits save little", packed->bits);
    if (form == host)
      return {.stored = host, .bytes = nullptr, .reason = std::move(reason), .encoded = as_on_host.encoded};
    if (auto in_form = kept_or_made(c, rows_of, form, facts, pool, as_on_host.encoded))
      return {.stored = form, .bytes = std::move(in_form), .reason = std::move(reason), .encoded = as_on_host.encoded};
  }
  return as_on_host;
}

const ColumnForm& ColumnForms::of(const std::shared_ptr<const data::Column>& column,
                                  RowsReferred rows_of, Encode encode, ThreadPool* pool) {
  std::erase_if(known_, [](const auto& entry) { return entry.second.column.expired(); });
  const auto [at, fresh] = known_.try_emplace({column.get(), rows_of.has_value()});
  if (fresh || at->second.encode != encode) {
    at->second = {column, encode, form_of(*column, rows_of, encode, pool)};
    encoded_ += at->second.form.encoded;
  }
  return at->second.form;
}

const ColumnForm* ColumnForms::find(const data::Column& column, bool of_rows) const {
  const auto at = known_.find({&column, of_rows});
  return at == known_.end() || at->second.column.expired() ? nullptr : &at->second.form;
}

std::shared_ptr<const data::Column> ColumnForms::in_form_alone(const data::Column& c,
                                                               const std::shared_ptr<const data::Column>& key,
                                                               bool again) const {
  const ColumnForm *values = find(c, false), *rows = find(c, true);
  data::Column out = c;
  if (values && values->bytes && can_go(c.data, again))
    out.data = restored_later(c.type, c.rows, host_form(c, {}), values->stored, values->bytes);
  if (rows && rows->bytes && can_go(c.foreign_rows, again))
    out.foreign_rows =
        restored_later(hir::BasicType::i64, c.rows, host_form(c, RowsReferred(0)), rows->stored, rows->bytes);
  if (rows && key && key->data && out.data == c.data && can_go(c.data, again) && c.foreign_rows && !c.has_nulls() &&
      c.encoding == data::Encoding::plain && key->encoding == data::Encoding::plain && key->width == c.width && hir::is_integer(c.type) && hir::is_integer(key->type))
    out.data = referred_later(c.rows, c.width, out.foreign_rows, key);
  if (out.data == c.data && out.foreign_rows == c.foreign_rows) return nullptr;
  if (out.data != c.data && c.data->forms()) out.data->keep_forms(*c.data->forms());
  if (out.foreign_rows != c.foreign_rows && c.foreign_rows->forms())
    out.foreign_rows->keep_forms(*c.foreign_rows->forms());
  return std::make_shared<const data::Column>(std::move(out));
}

void ColumnForms::move(const data::Column* from, const std::shared_ptr<const data::Column>& to) {
  for (const bool of_rows : {false, true})
    if (auto node = known_.extract({from, of_rows})) {
      node.key().first = to.get();
      node.mapped().column = to;
      known_.insert(std::move(node));
    }
}

}  // namespace rndn::runtime
