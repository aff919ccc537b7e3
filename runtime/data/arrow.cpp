// Columns of Arrow arrays. A column comes in pieces, one per array of the stream; what a piece needs
// of the others (where its rows and its characters go) is known before it is converted.
#include "runtime/data/arrow.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <unordered_map>

#include "libraries/base/report/utf8.h"
#include "libraries/base/system/cancel.h"
#include "libraries/base/system/parallel.h"
#include "runtime/data/arrow_values.h"
#include "runtime/data/text_codes.h"

namespace rndn::data {
namespace {

constexpr uint64_t rows_per_task = 1 << 18;

// ---- text

uint64_t characters_of(const Piece& p, const ArrowFormat& format) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < p.rows; ++i)
    if (is_there(p, i)) sum += text_of(*p.array, format, p.first + i).size();
  return sum;
}

void texts(const Piece& p, const ArrowFormat& format, Column& out, FirstFailedRow& failure) {
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

bool may_miss(std::span<const Piece> pieces, const ArrowFormat& format) {
  return format.layout == ArrowLayout::none ||
         std::any_of(pieces.begin(), pieces.end(), [](const Piece& p) { return p.validity(); });
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
                    FirstFailedRow& failure) {
  const bool as_text = is_text(format);
  Column out = make_column(format.stored, rows, as_text ? Encoding::text : Encoding::plain);
  std::vector<Piece> tasks = tasks_of(pieces);
  if (as_text) {
    parallel_for(tasks.size(), [&](size_t t) {
      FirstFailedRow wrong;  // what lies nowhere is not read
      check_texts(tasks[t], format, wrong);
      if (wrong.get()) failure.meet(wrong.get()->row, wrong.get()->reason);
      else check_utf8(tasks[t], format, failure);
    });
    if (failure.get()) return out;
  }
  if (may_miss(pieces, format)) out.validity = std::make_shared<Bytes>(rows);
  if (as_text) {
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
  parallel_for(tasks.size(), [&](size_t t) {
    const Piece& task = tasks[t];
    if (as_text)
      texts(task, format, out, failure);
    else
      put_values(task, format, out, failure);
    if (out.validity) mark_missing(task, format, out);
  });
  if (out.validity) keep_validity_if_needed(out);
  return out;
}

// Whether a value is beyond 64 bits, of formats that have such.
bool is_wide(std::span<const Piece> pieces, const ArrowType& type) {
  const ArrowFormat& format = *type.format;
  if (!wide_format(format) || (type.decimal && type.decimal->precision <= 18)) return false;
  for (Piece p : pieces) {
    if (type.codes) {
      const ArrowArray* values = p.array->dictionary;
      if (!values) continue;
      p = {.array = values, .first = static_cast<uint64_t>(values->offset),
           .rows = static_cast<uint64_t>(values->length), .at = 0};
    }
    if (p.rows == 0) continue;
    const auto* from = static_cast<const std::byte*>(p.buffer(1)) + p.first * format.bytes;
    for (uint64_t i = 0; i < p.rows; ++i, from += format.bytes) {
      int64_t low, word;
      std::memcpy(&low, from, 8);
      bool is_beyond = format.bytes == 8 && low < 0;
      for (uint8_t b = 8; b < format.bytes; b += 8) {
        std::memcpy(&word, from + b, 8);
        is_beyond |= word != low >> 63;
      }
      if (is_beyond && is_there(p, i)) return true;
    }
  }
  return false;
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
// have; other values are put in place of the codes.
Column coded_column(std::span<const Piece> pieces, uint64_t rows, const ArrowType& type,
                    FirstFailedRow& failure) {
  const ArrowFormat& format = *type.format;
  const bool as_text = hir::is_text(format.stored);
  Column out = make_column(format.stored, rows, Encoding::plain, as_text ? 4 : 0);
  out.validity = std::make_shared<Bytes>(rows);
  TextCodes numbers;  // of texts that the arrays keep
  for (const Piece& p : pieces) {
    const ArrowArray* values = p.array->dictionary;
    const uint64_t count = values ? static_cast<uint64_t>(values->length) : 0;
    const Piece of_values{.array = values,
                          .first = values ? static_cast<uint64_t>(values->offset) : 0,
                          .rows = count,
                          .at = 0};
    Column table;
    if (as_text && count) {
      FirstFailedRow wrong;
      check_texts(of_values, format, wrong);
      if (!wrong.get()) check_utf8(of_values, format, wrong);
      if (wrong.get())
        return failure.meet(p.at, fmt::format("has a dictionary whose value {} {}",
                                              wrong.get()->row + 1, wrong.get()->reason)),
               out;
    }
    if (!as_text) table = plain_column({&of_values, count ? size_t{1} : 0}, count, format, failure);
    constexpr uint32_t unknown = UINT32_MAX;
    std::vector<uint32_t> numbered(as_text ? count : 0, unknown);
    for (uint64_t i = 0; i < p.rows; ++i) {
      bool there = is_there(p, i);
      const uint64_t code = there ? code_of(p, *type.codes, i) : 0;
      if (there && code >= count)
        return failure.meet(p.at + i, "has a code that its dictionary does not have"), out;
      if (there && as_text) {
        there = is_there(of_values, code);
        if (there && numbered[code] == unknown) {
          const std::string_view text = text_of(*values, format, of_values.first + code);
          if (text.size() > longest_text)
            return failure.meet(p.at + i,
                                fmt::format("is a text of more than {} bytes", longest_text)),
                   out;
          numbered[code] = numbers.add(text);
        }
      } else if (there) {
        there = !table.validity || (*table.validity)[code] == std::byte{1};
        if (there)
          std::memcpy(out.data->data() + (p.at + i) * out.width,
                      table.data->data() + code * out.width, out.width);
      }
      (*out.validity)[p.at + i] = std::byte{there};
      if (as_text) reinterpret_cast<uint32_t*>(out.data->data())[p.at + i] = there ? numbered[code] : numbers.add("");
    }
  }
  keep_validity_if_needed(out);
  if (!as_text) return out;
  const std::vector<uint32_t> places = places_of(numbers.texts());
  Column coded = make_column(format.stored, rows, Encoding::dictionary, code_width(places.size()));
  for (uint64_t i = 0; i < rows; ++i)
    std::memcpy(coded.data->data() + i * coded.width, &places[out.as<uint32_t>()[i]], coded.width);
  coded.dictionary->values = at_places(numbers.texts(), places);
  coded.validity = std::move(out.validity);
  return coded;
}

// ---- streams

std::string_view name_of(const ArrowSchema& schema) { return schema.name ? schema.name : ""; }

Result<void> check(ArrowArrayStream& stream, int code, std::string_view place) {
  if (code == 0) return {};
  const char* said = stream.get_last_error ? stream.get_last_error(&stream) : nullptr;
  return input_error("{}: {}", place, as_utf8(said ? said : std::strerror(code)));
}

Result<void> take_schema(ArrowArrayStream& stream, Owned<ArrowSchema>& schema, std::string_view place) {
  if (!stream.get_schema || !stream.get_next)
    return input_error("{}: its stream has no function to read it by", place);
  return check(stream, stream.get_schema(&stream, schema.get()), place);
}

// As flaw_of, of the array of a table: its one buffer says which rows are missing as a whole.
std::string flaw_of_table(const ArrowArray& array) {
  if (array.length < 0) return fmt::format("has a length of {}", array.length);
  if (array.offset < 0 || array.offset > INT64_MAX - array.length)
    return fmt::format("has an offset of {}", array.offset);
  if (array.n_buffers < 0 || array.n_buffers > 1 || (array.n_buffers && !array.buffers))
    return fmt::format("has {} buffers, and a table has 1", array.n_buffers);
  return "";
}

// The arrays of a stream, and the rows in them.
struct Chunks {
  Owned<ArrowSchema> schema;
  std::vector<Owned<ArrowArray>> arrays;
  uint64_t rows = 0;

  static Result<Chunks> take(ArrowStream stream, std::string_view place) {
    Chunks chunks;
    ArrowArrayStream* s = stream.get();
    RETURN_IF_ERROR(take_schema(*s, chunks.schema, place));
    if (!chunks.schema.is_there()) return input_error("{}: its stream has no schema", place);
    const std::string_view format = chunks.schema->format ? chunks.schema->format : "";
    if (format != "+s") return input_error("{}: it is one column, and no table", place);
    const int64_t columns = chunks.schema->n_children;
    if (columns < 0 || (columns > 0 && !chunks.schema->children))
      return input_error("{}: its schema has {} columns, and does not say which", place, columns);
    for (int64_t c = 0; c < columns; ++c)
      if (const ArrowSchema* column = chunks.schema->children[c];
          !column || !column->release || !column->format)
        return input_error("{}: its schema does not say what column {} is", place, c + 1);
    for (;;) {
      Owned<ArrowArray> array;
      RETURN_IF_ERROR(check(*s, s->get_next(s, array.get()), place));
      if (!array.is_there()) break;
      if (array->n_children != chunks.schema->n_children || (columns > 0 && !array->children))
        return input_error("{}: an array of its stream has another number of columns", place);
      if (const std::string flaw = flaw_of_table(*array.get()); !flaw.empty())
        return input_error("{}: an array of its stream {}", place, flaw);
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
  Result<void> describe_schema(const std::string& table, const ArrowSchema& from, ArrowNames called,
                               std::string_view place) {
    TableSchema& out = schema_.tables.emplace_back();
    out.name = out.file = table;
    std::unordered_map<std::string, int64_t> names;
    for (int64_t c = 0; c < from.n_children; ++c) {
      const ArrowSchema& column = *from.children[c];
      const std::string name = called == ArrowNames::places ? fmt::format("c{}", c + 1)
                                                            : std::string(name_of(column));
      if (name.empty()) return input_error("{}: column {} has no name", place, c + 1);
      if (!is_speakable(name))
        return input_error("{}: the name of column {} is no text in UTF-8", place, c + 1);
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

  // Chunks whose arrays are what the schema says.
  Result<void> hold(Chunks chunks) {
    for (const Owned<ArrowArray>& array : chunks.arrays)
      for (size_t c = 0; c < types_.size(); ++c)
        if (const std::string flaw =
                flaw_of(array->children[children_[c]], types_[c],
                        static_cast<uint64_t>(array->offset + array->length));
            !flaw.empty())
          return input_error("{}: an array of column `{}` {}", place_,
                             schema_.tables[0].columns[c].name, flaw);
    rows_ = chunks.rows;
    chunks_ = std::move(chunks);
    for (size_t c = 0; c < types_.size(); ++c)
      if (is_wide(chunks_.pieces(children_[c]), types_[c])) {
        types_[c].format = wide_format(*types_[c].format);
        schema_.tables[0].columns[c].type = types_[c].format->stored;
      }
    return {};
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
      for (size_t position : positions) {
        ASSIGN_OR_RETURN(Column column, convert(chunks_, children_[position], position));
        columns.push_back(std::move(column));
      }
    } catch (const std::bad_alloc&) {
      return world_error("not enough memory for {} columns of {}", positions.size(), place_);
    }
    return columns;
  }

 private:
  Result<Column> convert(const Chunks& chunks, size_t child, size_t position) {
    const ArrowType& type = types_[position];
    const std::vector<Piece> pieces = chunks.pieces(child);
    FirstFailedRow failure;
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
};

}  // namespace

Result<std::unique_ptr<TableLoader>> open_arrow(const std::string& table, ArrowStream stream,
                                                ArrowNames names) {
  if (!is_speakable(table))
    return usage_error("the name of a table is a text in UTF-8, not empty and without bytes of 0");
  const std::string place = fmt::format("table `{}`", table);
  ASSIGN_OR_RETURN(Chunks chunks, Chunks::take(std::move(stream), place));
  auto loader = std::make_unique<ArrowLoader>();
  RETURN_IF_ERROR(loader->describe_schema(table, *chunks.schema.get(), names, place));
  RETURN_IF_ERROR(loader->hold(std::move(chunks)));
  return std::unique_ptr<TableLoader>(std::move(loader));
}

namespace {

// A stream of arrays that are there.
struct HeldArrays {
  Owned<ArrowSchema> schema;
  std::vector<Owned<ArrowArray>> arrays = {};
  size_t next = 0;

  static ArrowStream stream(HeldArrays held) {
    ArrowArrayStream stream{};
    stream.get_schema = [](ArrowArrayStream* s, ArrowSchema* out) {
      *out = static_cast<HeldArrays*>(s->private_data)->schema.give();
      return 0;
    };
    stream.get_next = [](ArrowArrayStream* s, ArrowArray* out) {
      auto& of = *static_cast<HeldArrays*>(s->private_data);
      *out = of.next < of.arrays.size() ? of.arrays[of.next++].give() : ArrowArray{};
      return 0;
    };
    stream.get_last_error = [](ArrowArrayStream*) -> const char* { return nullptr; };
    stream.release = [](ArrowArrayStream* s) {
      delete static_cast<HeldArrays*>(s->private_data);
      s->release = nullptr;
    };
    stream.private_data = new HeldArrays(std::move(held));
    return ArrowStream(std::move(stream));
  }
};

}  // namespace

ArrowStream stream_of(Owned<ArrowSchema> schema, Owned<ArrowArray> array) {
  HeldArrays held{.schema = std::move(schema)};
  held.arrays.push_back(std::move(array));
  return HeldArrays::stream(std::move(held));
}

Result<ArrowStream> read_whole(ArrowStream stream, std::string_view place) {
  HeldArrays held;
  ArrowArrayStream* s = stream.get();
  RETURN_IF_ERROR(take_schema(*s, held.schema, place));
  for (;;) {
    RETURN_IF_ERROR(check_cancelled());
    Owned<ArrowArray> array;
    RETURN_IF_ERROR(check(*s, s->get_next(s, array.get()), place));
    if (!array.is_there()) return HeldArrays::stream(std::move(held));
    held.arrays.push_back(std::move(array));
  }
}

}  // namespace rndn::data
