// Columns of Arrow arrays. A column comes in pieces, one per array of the stream; what a piece needs
// of the others (where its rows and its characters go) is known before it is converted.
#include "runtime/data/arrow.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <mutex>
#include <new>
#include <optional>
#include <unordered_map>

#include "libraries/base/system/parallel.h"
#include "runtime/data/arrow_types.h"

namespace rndn::data {
namespace {

using hir::BasicType;

constexpr uint64_t longest_text = (1 << 24) - 1;           // bytes
constexpr uint64_t longest_pad = (uint64_t{1} << 40) - 1;  // bytes, all of a column's text
constexpr int64_t microseconds_of_day = 86'400'000'000;
constexpr uint64_t rows_per_task = 1 << 18;

bool bit(const void* bits, uint64_t at) {
  return static_cast<const uint8_t*>(bits)[at / 8] >> (at % 8) & 1;
}

// Rows of an array, from `first` on (which counts the array's own offset).
struct Piece {
  const ArrowArray* array;
  uint64_t first, rows;
  uint64_t at;       // the row of the column that the first one is
  uint64_t pad = 0;  // where its characters go

  const void* buffer(int64_t i) const { return i < array->n_buffers ? array->buffers[i] : nullptr; }
  // Null: all are there.
  const void* validity() const {
    return array->null_count == 0 || array->n_buffers == 0 ? nullptr : array->buffers[0];
  }
  template <class T>
  const T* values() const {
    return static_cast<const T*>(buffer(1)) + first;
  }
};

struct Failure {
  uint64_t row;
  std::string reason;
};

// The first of the failures that threads meet.
class FirstFailure {
 public:
  void meet(uint64_t row, std::string reason) {
    std::lock_guard lock(mutex_);
    if (!first_ || row < first_->row) first_ = Failure{row, std::move(reason)};
  }
  const std::optional<Failure>& get() const { return first_; }

 private:
  std::mutex mutex_;
  std::optional<Failure> first_;
};

// ---- numbers

// One stored number of one in the array; `reason` says why there is none.
template <class To, class From>
To convert(From value, const ArrowFormat& format, const char*& reason) {
  if constexpr (std::is_floating_point_v<From>) {
    return static_cast<To>(value);
  } else {
    int64_t wide = static_cast<int64_t>(value);
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
void numbers(const Piece& p, const ArrowFormat& format, Column& out, FirstFailure& failure) {
  To* to = reinterpret_cast<To*>(out.data->data()) + p.at;
  const From* from = p.values<From>();
  if constexpr (sizeof(To) == sizeof(From))
    if (format.mul == 1 && format.div == 1 && format.meaning != Meaning::time) {
      std::memcpy(to, from, p.rows * sizeof(To));
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

// Decimals: little end first, of `format.bytes`; all words above the lowest are its sign.
void decimals(const Piece& p, const ArrowFormat& format, Column& out, FirstFailure& failure) {
  int64_t* to = reinterpret_cast<int64_t*>(out.data->data()) + p.at;
  const auto* from = static_cast<const std::byte*>(p.buffer(1)) + p.first * format.bytes;
  const void* validity = p.validity();
  for (uint64_t i = 0; i < p.rows; ++i, from += format.bytes) {
    if (format.bytes == 4) {
      int32_t narrow;
      std::memcpy(&narrow, from, 4);
      to[i] = narrow;
      continue;
    }
    std::memcpy(&to[i], from, 8);
    for (uint8_t b = 8; b < format.bytes; b += 8) {
      int64_t word;
      std::memcpy(&word, from + b, 8);
      if (word == to[i] >> 63 || (validity && !bit(validity, p.first + i))) continue;
      return failure.meet(p.at + i, "has more digits than its type says");
    }
  }
}

using Numbers = void (*)(const Piece&, const ArrowFormat&, Column&, FirstFailure&);
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
    {ArrowLayout::signed_, 8, 4, numbers<int32_t, int64_t>},  // date64
    {ArrowLayout::signed_, 4, 8, numbers<int64_t, int32_t>},  // time32
    {ArrowLayout::unsigned_, 1, 2, numbers<int16_t, uint8_t>},
    {ArrowLayout::unsigned_, 2, 4, numbers<int32_t, uint16_t>},
    {ArrowLayout::unsigned_, 4, 8, numbers<int64_t, uint32_t>},
    {ArrowLayout::floats, 4, 4, numbers<float, float>},
    {ArrowLayout::floats, 8, 8, numbers<double, double>},
    {ArrowLayout::decimal, 4, 8, decimals},
    {ArrowLayout::decimal, 8, 8, decimals},
    {ArrowLayout::decimal, 16, 8, decimals},
    {ArrowLayout::decimal, 32, 8, decimals},
};

// ---- text

// The text of a row, counted as the array does; only where it is not missing.
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
  constexpr int32_t most_within = 12;
  if (word[0] <= most_within)
    return {reinterpret_cast<const char*>(view) + 4, static_cast<size_t>(word[0])};
  return characters(2 + word[2], word[3], word[0]);
}

bool is_there(const Piece& p, uint64_t i) {
  const void* validity = p.validity();
  return !validity || bit(validity, p.first + i);
}

uint64_t characters_of(const Piece& p, const ArrowFormat& format) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < p.rows; ++i)
    if (is_there(p, i)) sum += text_of(*p.array, format, p.first + i).size();
  return sum;
}

void texts(const Piece& p, const ArrowFormat& format, Column& out, FirstFailure& failure) {
  auto* to = reinterpret_cast<uint64_t*>(out.data->data()) + p.at;
  uint64_t pad = p.pad;
  for (uint64_t i = 0; i < p.rows; ++i) {
    const std::string_view text =
        is_there(p, i) ? text_of(*p.array, format, p.first + i) : std::string_view();
    if (text.size() > longest_text)
      return failure.meet(p.at + i, fmt::format("is a text of more than {} bytes", longest_text));
    to[i] = pad << 24 | text.size();
    if (!text.empty()) std::memcpy(out.pad->data() + pad, text.data(), text.size());
    pad += text.size();
  }
}

// ---- columns

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

bool may_miss(std::span<const Piece> pieces, const ArrowFormat& format) {
  return format.layout == ArrowLayout::none ||
         std::any_of(pieces.begin(), pieces.end(), [](const Piece& p) { return p.validity(); });
}

void keep_validity_if_needed(Column& column) {
  const auto& valid = *column.validity;
  if (std::find(valid.begin(), valid.end(), std::byte{0}) == valid.end()) column.validity = nullptr;
}

// Pieces of at most rows_per_task rows each.
std::vector<Piece> tasks_of(std::span<const Piece> pieces) {
  std::vector<Piece> tasks;
  for (const Piece& p : pieces)
    for (uint64_t done = 0; done < p.rows; done += rows_per_task)
      tasks.push_back({.array = p.array,
                       .first = p.first + done,
                       .rows = std::min(rows_per_task, p.rows - done),
                       .at = p.at + done});
  return tasks;
}

// Without a dictionary.
Column plain_column(std::span<const Piece> pieces, uint64_t rows, const ArrowFormat& format,
                    FirstFailure& failure) {
  const bool is_text = format.layout == ArrowLayout::text || format.layout == ArrowLayout::view;
  Column out = make_column(format.stored, rows, is_text ? Encoding::text : Encoding::plain);
  std::vector<Piece> tasks = tasks_of(pieces);
  if (may_miss(pieces, format)) out.validity = std::make_shared<Bytes>(rows);
  if (is_text) {
    std::vector<uint64_t> sizes(tasks.size());
    parallel_for(tasks.size(), [&](size_t t) { sizes[t] = characters_of(tasks[t], format); });
    uint64_t pad = 0;
    for (size_t t = 0; t < tasks.size(); ++t) {
      tasks[t].pad = pad;
      pad += sizes[t];
    }
    if (pad > longest_pad) {
      failure.meet(0, "begins more than 2^40 bytes of text");
      return out;
    }
    out.pad = std::make_shared<Bytes>(pad);
  }
  const auto row = std::find_if(std::begin(number_rows), std::end(number_rows), [&](const auto& r) {
    return r.layout == format.layout && r.bytes == format.bytes && r.width == out.width;
  });
  parallel_for(tasks.size(), [&](size_t t) {
    const Piece& task = tasks[t];
    if (is_text) {
      texts(task, format, out, failure);
    } else if (format.layout == ArrowLayout::bits) {
      for (uint64_t i = 0; i < task.rows; ++i)
        (*out.data)[task.at + i] = std::byte{bit(task.buffer(1), task.first + i)};
    } else if (format.layout != ArrowLayout::none) {
      CHECK(row != std::end(number_rows));
      row->convert(task, format, out, failure);
    }
    if (out.validity) mark_missing(task, format, out);
  });
  if (out.validity) keep_validity_if_needed(out);
  return out;
}

// A negative code is none of a dictionary; read without sign it is too large to be one.
uint64_t code_of(const Piece& p, const ArrowFormat& codes, uint64_t i) {
  switch (codes.bytes) {
    case 1:
      return p.values<uint8_t>()[i];
    case 2:
      return p.values<uint16_t>()[i];
    case 4:
      return p.values<uint32_t>()[i];
    default:
      return p.values<uint64_t>()[i];
  }
}

// Arrays may have a dictionary each. Of texts one dictionary is made, of those values that rows
// have, in the order of their first row; other values are put in place of the codes.
Column coded_column(std::span<const Piece> pieces, uint64_t rows, const ArrowType& type,
                    FirstFailure& failure) {
  const ArrowFormat& format = *type.format;
  const bool is_text = hir::is_text(format.stored);
  Column out = make_column(format.stored, rows, Encoding::plain, is_text ? 4 : 0);
  out.validity = std::make_shared<Bytes>(rows);
  auto dictionary = std::make_shared<Dictionary>();
  std::unordered_map<std::string_view, uint32_t> numbers;  // of texts that the arrays keep
  auto number = [&](std::string_view text) {
    const auto [at, is_new] = numbers.emplace(text, dictionary->values.size());
    if (is_new) dictionary->values.emplace_back(text);
    return at->second;
  };
  for (const Piece& p : pieces) {
    const ArrowArray* values = p.array->dictionary;
    const uint64_t count = values ? static_cast<uint64_t>(values->length) : 0;
    const Piece of_values{.array = values,
                          .first = values ? static_cast<uint64_t>(values->offset) : 0,
                          .rows = count,
                          .at = 0};
    Column table;
    if (!is_text) table = plain_column({&of_values, count ? size_t{1} : 0}, count, format, failure);
    constexpr uint32_t unknown = UINT32_MAX;
    std::vector<uint32_t> numbered(is_text ? count : 0, unknown);
    for (uint64_t i = 0; i < p.rows; ++i) {
      bool there = is_there(p, i);
      const uint64_t code = there ? code_of(p, *type.codes, i) : 0;
      if (there && code >= count)
        return failure.meet(p.at + i, "has a code that its dictionary does not have"), out;
      if (there && is_text) {
        there = is_there(of_values, code);
        if (there && numbered[code] == unknown) {
          const std::string_view text = text_of(*values, format, of_values.first + code);
          if (text.size() > longest_text)
            return failure.meet(p.at + i,
                                fmt::format("is a text of more than {} bytes", longest_text)),
                   out;
          numbered[code] = number(text);
        }
      } else if (there) {
        there = !table.validity || (*table.validity)[code] == std::byte{1};
        if (there)
          std::memcpy(out.data->data() + (p.at + i) * out.width,
                      table.data->data() + code * out.width, out.width);
      }
      (*out.validity)[p.at + i] = std::byte{there};
      if (is_text)
        reinterpret_cast<uint32_t*>(out.data->data())[p.at + i] =
            there ? numbered[code] : number("");
    }
  }
  keep_validity_if_needed(out);
  if (!is_text) return out;
  Column coded =
      make_column(format.stored, rows, Encoding::dictionary, code_width(dictionary->values.size()));
  for (uint64_t i = 0; i < rows; ++i)
    std::memcpy(coded.data->data() + i * coded.width, out.data->data() + i * 4, coded.width);
  coded.dictionary = std::move(dictionary);
  coded.validity = std::move(out.validity);
  return coded;
}

// ---- streams

std::string_view name_of(const ArrowSchema& schema) { return schema.name ? schema.name : ""; }

Result<void> check(ArrowArrayStream& stream, int code, std::string_view place) {
  if (code == 0) return {};
  const char* said = stream.get_last_error(&stream);
  return input_error("{}: {}", place, said ? said : std::strerror(code));
}

// The arrays of a stream, and the rows in them.
struct Chunks {
  Owned<ArrowSchema> schema;
  std::vector<Owned<ArrowArray>> arrays;
  uint64_t rows = 0;

  static Result<Chunks> take(ArrowStream stream, std::string_view place) {
    Chunks chunks;
    ArrowArrayStream* s = stream.get();
    RETURN_IF_ERROR(check(*s, s->get_schema(s, chunks.schema.get()), place));
    const std::string_view format = chunks.schema->format ? chunks.schema->format : "";
    if (format != "+s") return input_error("{}: it is one column, and no table", place);
    for (;;) {
      Owned<ArrowArray> array;
      RETURN_IF_ERROR(check(*s, s->get_next(s, array.get()), place));
      if (!array.is_there()) break;
      if (array->n_children != chunks.schema->n_children)
        return input_error("{}: an array of its stream has another number of columns", place);
      const Piece whole{array.get(), static_cast<uint64_t>(array->offset),
                        static_cast<uint64_t>(array->length), 0};
      for (uint64_t i = 0; whole.validity() && i < whole.rows; ++i)
        if (!is_there(whole, i))
          return input_error("{}: row {} is missing as a whole", place, chunks.rows + i + 1);
      chunks.rows += static_cast<uint64_t>(array->length);
      if (chunks.rows > longest_vector)
        return input_error("{}: there are more than {} rows", place, longest_vector);
      if (array->length) chunks.arrays.push_back(std::move(array));
    }
    return chunks;
  }

  std::vector<Piece> pieces(size_t child) const {
    std::vector<Piece> pieces;
    uint64_t at = 0;
    for (const Owned<ArrowArray>& array : arrays) {
      const ArrowArray* column = array->children[child];
      const auto rows = static_cast<uint64_t>(array->length);
      pieces.push_back({column, static_cast<uint64_t>(array->offset + column->offset), rows, at});
      at += rows;
    }
    return pieces;
  }
};

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

class ArrowLoader final : public TableLoader {
 public:
  // The table's columns, or what is wrong with them.
  Result<void> describe_schema(const std::string& table, const ArrowSchema& from,
                               std::string_view place) {
    TableSchema& out = schema_.tables.emplace_back();
    out.name = out.file = table;
    std::unordered_map<std::string, int64_t> names;
    for (int64_t c = 0; c < from.n_children; ++c) {
      const ArrowSchema& column = *from.children[c];
      const std::string name(name_of(column));
      if (name.empty()) return input_error("{}: column {} has no name", place, c + 1);
      const auto [before, is_new] = names.emplace(lower(name), c);
      if (!is_new)
        return input_error("{}: columns {} and {} are both called `{}`", place, before->second + 1,
                           c + 1, name);
      std::string refused;
      const std::optional<ArrowType> type = arrow_type(column, refused);
      if (!type) {
        out.refused.push_back({name, refused});
        continue;
      }
      out.columns.push_back({.name = name,
                             .type = type->format->stored,
                             .decimal = type->decimal,
                             .meaning = type->format->meaning});
      types_.push_back(*type);
      children_.push_back(static_cast<size_t>(c));
    }
    if (out.columns.empty())
      return input_error("{}: there is no column{}", place,
                         out.refused.empty() ? ""
                                             : " of a type that SQL has: `" + out.refused[0].name +
                                                   "` is " + out.refused[0].type);
    place_ = place;
    return {};
  }

  void hold(Chunks chunks) {
    rows_ = chunks.rows;
    chunks_ = std::move(chunks);
  }
  void read_by(ArrowReader reader) {
    rows_ = reader.rows;
    reader_ = std::move(reader);
  }

  const Schema& schema() const override { return schema_; }
  Result<uint64_t> rows(size_t) override { return rows_; }
  std::optional<uint64_t> rows_at_hand(size_t) const override { return rows_; }
  std::string fingerprint(size_t, size_t) const override { return ""; }
  std::string describe(size_t, size_t column, uint64_t row) override {
    return fmt::format("{}: row {} of column `{}`", place_, row + 1,
                       schema_.tables[0].columns[column].name);
  }

  Result<std::vector<Column>> load(size_t, std::span<const size_t> positions) override {
    std::vector<Column> columns;
    try {
      if (reader_.read) {
        ASSIGN_OR_RETURN(const Chunks read, read_columns(positions));
        for (size_t i = 0; i < positions.size(); ++i) {
          ASSIGN_OR_RETURN(Column column, convert(read, i, positions[i]));
          columns.push_back(std::move(column));
        }
      } else {
        for (size_t position : positions) {
          ASSIGN_OR_RETURN(Column column, convert(chunks_, children_[position], position));
          columns.push_back(std::move(column));
        }
      }
    } catch (const std::bad_alloc&) {
      return world_error("not enough memory for {} columns of {}", positions.size(), place_);
    }
    return columns;
  }

 private:
  Result<Chunks> read_columns(std::span<const size_t> positions) const {
    std::vector<std::string> names;
    for (size_t p : positions) names.push_back(schema_.tables[0].columns[p].name);
    ASSIGN_OR_RETURN(ArrowStream stream, reader_.read(names));
    ASSIGN_OR_RETURN(Chunks chunks, Chunks::take(std::move(stream), place_));
    bool same =
        chunks.rows == rows_ && chunks.schema->n_children == static_cast<int64_t>(positions.size());
    for (size_t i = 0; same && i < positions.size(); ++i) {
      std::string refused;
      const std::optional<ArrowType> type = arrow_type(*chunks.schema->children[i], refused);
      const ArrowType& known = types_[positions[i]];
      same = name_of(*chunks.schema->children[i]) == names[i] && type &&
             type->format == known.format && type->decimal == known.decimal &&
             type->codes == known.codes;
    }
    if (!same) return input_error("{}: it has changed since it was opened", place_);
    return chunks;
  }

  Result<Column> convert(const Chunks& chunks, size_t child, size_t position) {
    const ArrowType& type = types_[position];
    const std::vector<Piece> pieces = chunks.pieces(child);
    FirstFailure failure;
    Column column = type.codes ? coded_column(pieces, rows_, type, failure)
                               : plain_column(pieces, rows_, *type.format, failure);
    if (failure.get())
      return input_error("{} {} ({})", describe(0, position, failure.get()->row),
                         failure.get()->reason, type.format->name);
    if (column.encoding == Encoding::text) encode_dictionary(column, dictionary_limit(rows_));
    compute_statistics(column);
    return column;
  }

  Schema schema_;
  std::vector<ArrowType> types_;  // by column
  std::vector<size_t> children_;  // the same: where it is in the arrays
  std::string place_;
  uint64_t rows_ = 0;
  Chunks chunks_;
  ArrowReader reader_;
};

}  // namespace

Result<std::unique_ptr<TableLoader>> open_arrow(const std::string& table, ArrowStream stream) {
  const std::string place = fmt::format("table `{}`", table);
  ASSIGN_OR_RETURN(Chunks chunks, Chunks::take(std::move(stream), place));
  auto loader = std::make_unique<ArrowLoader>();
  RETURN_IF_ERROR(loader->describe_schema(table, *chunks.schema.get(), place));
  loader->hold(std::move(chunks));
  return std::unique_ptr<TableLoader>(std::move(loader));
}

Result<std::unique_ptr<TableLoader>> open_arrow(const std::string& table, ArrowReader reader) {
  auto loader = std::make_unique<ArrowLoader>();
  RETURN_IF_ERROR(loader->describe_schema(table, *reader.schema.get(), reader.place));
  loader->read_by(std::move(reader));
  return std::unique_ptr<TableLoader>(std::move(loader));
}

}  // namespace rndn::data
