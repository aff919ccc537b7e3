// Reading of Arrow IPC (arrow.apache.org/docs/format/Columnar.html; Message.fbs, Schema.fbs).
//
// A stream is messages: a FlatBuffer that says what it is, and a body of buffers. The first is the
// schema, the others batches of rows and dictionaries. A file is a stream between two marks, with a
// footer that is not needed: messages are passed by one after another, and only what describes them
// is read when the table is opened. Buffers of columns are read when these are asked for, on all
// cores, and are then arrays as any (runtime/data/arrow.h). Nothing in them is trusted: sizes,
// offsets of texts and UTF-8 are checked first. Not taken, by name: numbers with the high end
// first, dictionaries that grow (deltas), and files of Feather's first version.
#include "runtime/files/arrow_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <unordered_map>

#include "libraries/base/report/utf8.h"
#include "libraries/base/system/parallel.h"
#include "runtime/data/arrow.h"
#include "runtime/data/arrow_types.h"
#include "runtime/data/arrow_values.h"
#include "runtime/files/decompress.h"
#include "runtime/files/duckdb_source.h"
#include "runtime/files/file_bytes.h"
#include "runtime/files/flatbuffer.h"

namespace rndn::files {
namespace {

using data::ArrowLayout;

// ---- schema

// A column, or a part of one that is nested.
struct Field {
  std::string name, format;  // as the C data interface writes it; of a dictionary: the indices
  std::string values;        // of a dictionary: the format of its values
  std::optional<int64_t> dictionary;
  unsigned buffers = 2;
  bool has_more_buffers = false;  // as many as the batch says
  std::vector<Field> children;

  bool operator==(const Field&) const = default;
};

enum TypeNumber : uint8_t {
  null_ = 1,
  integer = 2,
  floating = 3,
  binary = 4,
  utf8 = 5,
  boolean = 6,
  decimal = 7,
  date = 8,
  time_ = 9,
  timestamp = 10,
  interval = 11,
  list = 12,
  struct_ = 13,
  union_ = 14,
  fixed_binary = 15,
  fixed_list = 16,
  map = 17,
  duration = 18,
  large_binary = 19,
  large_utf8 = 20,
  large_list = 21,
  run_ends = 22,
  binary_view = 23,
  utf8_view = 24,
  list_view = 25,
  large_list_view = 26
};

// The types whose format is one text, and how many buffers an array of each has.
struct TypeRow {
  TypeNumber number;
  const char* format;
  unsigned buffers = 2;
  bool has_more_buffers = false;
};
constexpr TypeRow types[] = {
    {null_, "n", 0},
    {binary, "z", 3},
    {utf8, "u", 3},
    {boolean, "b"},
    {interval, "ti"},
    {list, "+l"},
    {struct_, "+s", 1},
    {fixed_binary, "w:"},
    {fixed_list, "+w:", 1},
    {map, "+m"},
    {duration, "tD"},
    {large_binary, "Z", 3},
    {large_utf8, "U", 3},
    {large_list, "+L"},
    {run_ends, "+r", 0},
    {binary_view, "vz", 2, true},
    {utf8_view, "vu", 2, true},
    {list_view, "+vl", 3},
    {large_list_view, "+vL", 3},
};

std::string integer_format(const FlatTable& type) {
  const bool is_signed = type.number<uint8_t>(1, 0);
  switch (type.number<int32_t>(0, 0)) {
    case 8: return is_signed ? "c" : "C";
    case 16: return is_signed ? "s" : "S";
    case 32: return is_signed ? "i" : "I";
    case 64: return is_signed ? "l" : "L";
    default: return "?";
  }
}

std::string format_of(uint8_t number, const FlatTable& type, Field& field) {
  const auto unit = static_cast<size_t>(type.number<int16_t>(0, number == timestamp ? 0 : 1)) & 3;
  constexpr std::string_view units = "smun";
  for (const TypeRow& row : types)
    if (row.number == number) {
      field.buffers = row.buffers;
      field.has_more_buffers = row.has_more_buffers;
      return row.format;
    }
  switch (number) {
    case integer: return integer_format(type);
    case floating: {
      const int16_t precision = type.number<int16_t>(0, 0);
      return precision == 0 ? "e" : precision == 1 ? "f" : "g";
    }
    case decimal:
      return fmt::format("d:{},{},{}", type.number<int32_t>(0, 0), type.number<int32_t>(1, 0),
                         type.number<int32_t>(2, 128));
    case date: return unit == 0 ? "tdD" : "tdm";
    case time_: return fmt::format("tt{}", units[unit]);
    case timestamp: return fmt::format("ts{}:{}", units[unit], type.text(1));
    case union_: {
      const bool is_dense = type.number<int16_t>(0, 0);
      field.buffers = is_dense ? 2 : 1;
      return is_dense ? "+ud:" : "+us:";
    }
    default: return "?";
  }
}

// What a field takes of `room`, which is twice the bytes of its message: FlatBuffers may point to one
// part many times, and trees of such parts grow without end.
bool take(uint64_t& room, uint64_t size) {
  if (size > room) return false;
  room -= size;
  return true;
}

// False: it is nested too deep to be true, its name is no text, or it is more than there is room for.
bool read_field(const FlatTable& from, Field& out, uint64_t& room, unsigned depth = 0) {
  constexpr uint64_t least = 16;  // with its place in a vector
  const std::string_view name = from.text(0);
  if (depth > 64 || !take(room, least + name.size()) || !is_utf8(name)) return false;
  out.name = name;
  out.format = format_of(from.number<uint8_t>(2, 0), from.table(3), out);
  if (!take(room, out.format.size())) return false;
  if (const FlatTable dictionary = from.table(4); dictionary.is_there()) {
    out.values = out.format;
    out.dictionary = dictionary.number<int64_t>(0, 0);
    out.format = dictionary.table(1).is_there() ? integer_format(dictionary.table(1)) : "i";
    out.buffers = 2;
    out.has_more_buffers = false;
    return true;  // its children are in the dictionary
  }
  const FlatVector children = from.vector(5, 4);
  for (uint64_t i = 0; i < children.count; ++i)
    if (!read_field(children.table(i), out.children.emplace_back(), room, depth + 1)) return false;
  return true;
}

// ---- messages

struct Place {
  uint64_t at, size;  // in the file
};
struct Node {
  int64_t length, nulls;
};
struct Batch {
  int64_t rows = 0;
  std::vector<Node> nodes;
  std::vector<Place> buffers;
  std::vector<int64_t> more_buffers;  // of each array that has such
  std::optional<int8_t> codec;
};
struct RowBatch {
  size_t file = 0, number = 0;  // in the file, from 0
  uint64_t first = 0;           // row of the table
  Batch batch;
};
// What a dictionary is for the batches of its file from `from` on, until there is another.
struct DictionaryBatch {
  size_t from = 0;
  Batch batch;
};
struct ArrowFile {
  std::string path, stamp;
  uint64_t size = 0;
};

constexpr uint8_t schema_message = 1, dictionary_message = 2, batch_message = 3;

// False: it is damaged.
bool read_batch(const FlatTable& from, uint64_t body, uint64_t body_size, Batch& out) {
  if (!from.is_there()) return false;
  out.rows = from.number<int64_t>(0, 0);
  if (out.rows < 0) return false;
  const FlatVector nodes = from.vector(1, 16), buffers = from.vector(2, 16),
                   more = from.vector(4, 8);
  for (uint64_t i = 0; i < nodes.count; ++i)
    out.nodes.push_back({nodes.number<int64_t>(i, 16), nodes.number<int64_t>(i, 16, 8)});
  for (uint64_t i = 0; i < buffers.count; ++i) {
    const auto at = buffers.number<uint64_t>(i, 16), size = buffers.number<uint64_t>(i, 16, 8);
    if (at > body_size || size > body_size - at) return false;
    out.buffers.push_back({body + at, size});
  }
  for (uint64_t i = 0; i < more.count; ++i) out.more_buffers.push_back(more.number<int64_t>(i));
  if (const FlatTable compression = from.table(3); compression.is_there())
    out.codec = compression.number<int8_t>(0, 0);
  return true;
}

// ---- arrays

// An array with what its buffers point to.
struct HeldArray {
  std::vector<Buffer> bytes;
  std::vector<uint64_t> sizes;
  std::vector<const void*> buffers;
  ArrowArray array{};
  std::shared_ptr<HeldArray> dictionary;  // which the batches of a file have in common
};
// The columns of a batch.
struct HeldBatch {
  std::vector<std::unique_ptr<HeldArray>> columns;
  std::vector<ArrowArray*> children;
  const void* none[1] = {nullptr};
};
// A schema, or a part of one.
struct HeldSchema {
  std::string name, format;
  std::vector<std::unique_ptr<ArrowSchema>> children;
  std::vector<ArrowSchema*> pointers;
  std::unique_ptr<ArrowSchema> dictionary;
};

void release_schema(ArrowSchema* schema) {
  auto* held = static_cast<HeldSchema*>(schema->private_data);
  for (auto& child : held->children)
    if (child->release) child->release(child.get());
  if (held->dictionary && held->dictionary->release)
    held->dictionary->release(held->dictionary.get());
  delete held;
  schema->release = nullptr;
}
ArrowSchema make_schema(const std::string& name, const std::string& format,
                        std::vector<std::unique_ptr<ArrowSchema>> children,
                        std::unique_ptr<ArrowSchema> dictionary) {
  auto* held = new HeldSchema{name, format, std::move(children), {}, std::move(dictionary)};
  for (auto& child : held->children) held->pointers.push_back(child.get());
  ArrowSchema schema{};
  schema.format = held->format.c_str();
  schema.name = held->name.c_str();
  schema.flags = ARROW_FLAG_NULLABLE;
  schema.n_children = static_cast<int64_t>(held->pointers.size());
  schema.children = held->pointers.data();
  schema.dictionary = held->dictionary.get();
  schema.release = release_schema;
  schema.private_data = held;
  return schema;
}
std::unique_ptr<ArrowSchema> schema_of(const Field& field) {
  std::unique_ptr<ArrowSchema> dictionary;
  if (field.dictionary)
    dictionary = std::make_unique<ArrowSchema>(make_schema("", field.values, {}, nullptr));
  return std::make_unique<ArrowSchema>(
      make_schema(field.name, field.format, {}, std::move(dictionary)));
}

// Batches that are there, as a stream.
struct HeldStream {
  std::vector<const Field*> fields;
  std::vector<std::unique_ptr<HeldBatch>> batches;
  std::vector<int64_t> rows;
  size_t next = 0;
};
data::ArrowStream make_stream(std::unique_ptr<HeldStream> held) {
  ArrowArrayStream stream{};
  stream.get_schema = [](ArrowArrayStream* s, ArrowSchema* out) {
    std::vector<std::unique_ptr<ArrowSchema>> children;
    for (const Field* field : static_cast<HeldStream*>(s->private_data)->fields)
      children.push_back(schema_of(*field));
    *out = make_schema("", "+s", std::move(children), nullptr);
    return 0;
  };
  stream.get_next = [](ArrowArrayStream* s, ArrowArray* out) {
    auto& held = *static_cast<HeldStream*>(s->private_data);
    *out = {};
    if (held.next == held.batches.size()) return 0;
    HeldBatch* batch = held.batches[held.next].release();
    for (auto& column : batch->columns) batch->children.push_back(&column->array);
    out->length = held.rows[held.next++];
    out->n_buffers = 1;
    out->buffers = batch->none;
    out->n_children = static_cast<int64_t>(batch->children.size());
    out->children = batch->children.data();
    out->private_data = batch;
    out->release = [](ArrowArray* array) {
      delete static_cast<HeldBatch*>(array->private_data);
      array->release = nullptr;
    };
    return 0;
  };
  stream.get_last_error = [](ArrowArrayStream*) -> const char* { return nullptr; };
  stream.release = [](ArrowArrayStream* s) {
    delete static_cast<HeldStream*>(s->private_data);
    s->release = nullptr;
  };
  stream.private_data = held.release();
  return data::ArrowStream(std::move(stream));
}

// Null: what the buffers hold is an array of that format; else what is wrong.
const char* check_values(const HeldArray& a, const data::ArrowFormat& format) {
  const auto rows = static_cast<uint64_t>(a.array.length);
  const auto size = [&](size_t i) { return i < a.sizes.size() ? a.sizes[i] : 0; };
  if (format.layout == ArrowLayout::none) return nullptr;
  constexpr const char* short_ = "a buffer is shorter than its rows";
  if (a.array.null_count != 0 && size(0) > 0 && size(0) < (rows + 7) / 8) return short_;
  if (format.layout == ArrowLayout::bits) return size(1) < (rows + 7) / 8 ? short_ : nullptr;
  if (format.layout != ArrowLayout::text)
    if (size(1) / format.bytes < rows) return short_;
  if (!data::is_text(format)) return nullptr;
  if (rows == 0) return nullptr;
  constexpr const char* beyond = "a text lies outside of its buffer";
  const auto* starts = static_cast<const std::byte*>(a.array.buffers[1]);
  if (format.layout == ArrowLayout::text) {
    if (size(1) / format.bytes < rows + 1) return short_;
    int64_t before = 0;
    for (uint64_t i = 0; i <= rows; ++i) {
      int64_t offset = 0;
      std::memcpy(&offset, starts + i * format.bytes, format.bytes);
      if (format.bytes == 4) offset = static_cast<int32_t>(offset);
      if (offset < before) return beyond;
      before = offset;
    }
    if (static_cast<uint64_t>(before) > size(2)) return beyond;
  } else {
    for (uint64_t i = 0; i < rows; ++i) {
      int32_t view[4];
      std::memcpy(view, starts + i * 16, sizeof view);
      if (view[0] < 0) return beyond;
      if (view[0] <= 12) continue;
      if (view[2] < 0 || view[3] < 0 || static_cast<size_t>(view[2]) + 2 >= a.sizes.size())
        return beyond;
      const uint64_t there = a.sizes[static_cast<size_t>(view[2]) + 2];
      if (static_cast<uint64_t>(view[3]) + static_cast<uint64_t>(view[0]) > there) return beyond;
    }
  }
  const data::Piece piece{.array = &a.array, .first = 0, .rows = rows, .at = 0};
  for (uint64_t i = 0; i < rows; ++i)
    if (data::is_there(piece, i) && !is_utf8(data::text_of(a.array, format, i)))
      return "a text is no UTF-8";
  return nullptr;
}

// ---- the table

class ArrowFiles final : public data::TableLoader {
 public:
  Result<void> open(const std::string& place, std::vector<std::string> paths,
                    const std::string& table) {
    place_ = place;
    for (std::string& path : paths) {
      struct stat s {};
      if (stat(path.c_str(), &s) != 0)
        return input_error("cannot read `{}`: {}", path, std::strerror(errno));
      if (!S_ISREG(s.st_mode)) return input_error("cannot read `{}`: it is no regular file", path);
      ArrowFile file{.path = std::move(path), .size = static_cast<uint64_t>(s.st_size)};
      file.stamp = stamp_of(file.path);
      files_.push_back(std::move(file));
      RETURN_IF_ERROR(read_messages(files_.size() - 1));
    }
    if (rows_ > data::longest_vector)
      return input_error("{}: there are more than {} rows", place, data::longest_vector);
    // What the columns are is told by the schema alone.
    auto nothing = std::make_unique<HeldStream>();
    for (const Field& field : fields_) nothing->fields.push_back(&field);
    auto empty = data::open_arrow(table, make_stream(std::move(nothing)));
    if (!empty) return input_error("{}", in_place_of("table `" + table + "`", empty.error()));
    schema_ = (*empty)->schema();
    std::unordered_map<std::string_view, size_t> places;
    for (size_t f = 0; f < fields_.size(); ++f) places.emplace(fields_[f].name, f);
    for (const data::ColumnSchema& column : schema_.tables[0].columns)
      field_of_.push_back(places.at(column.name));
    return {};
  }

  const data::Schema& schema() const override { return schema_; }
  Result<uint64_t> rows(size_t) override { return rows_; }
  std::optional<uint64_t> rows_at_hand(size_t) const override { return rows_; }
  std::string fingerprint(size_t, size_t) const override { return ""; }
  std::string describe(size_t, size_t column, uint64_t row) override {
    const std::string& name = schema_.tables[0].columns[column].name;
    for (const RowBatch& part : batches_)
      if (row >= part.first && row - part.first < static_cast<uint64_t>(part.batch.rows))
        return fmt::format("{}: batch {}, row {} of column `{}`", files_[part.file].path,
                           part.number, row - part.first + 1, name);
    return fmt::format("{}: row {} of column `{}`", place_, row + 1, name);
  }

  Result<std::vector<data::Column>> load(size_t, std::span<const size_t> columns) override {
    try {
      return load_all(columns);
    } catch (const std::bad_alloc&) {
      return world_error("not enough memory for {} columns of {}", columns.size(), place_);
    }
  }

 private:
  std::string in_place_of(const std::string& name, const Error& error) const {
    std::string text = error.message;
    if (text.starts_with(name)) text.replace(0, name.size(), place_);
    return text;
  }

  // Passes by the messages of a file, and keeps what describes them.
  Result<void> read_messages(size_t number) {
    const ArrowFile& file = files_[number];
    const OpenFile bytes(file.path);
    auto damaged = [&](std::string_view what) { return input_error("{}: {}", file.path, what); };
    char mark[8] = {};
    (void)bytes.read(0,
                     std::as_writable_bytes(std::span(mark).first(std::min<size_t>(file.size, 8))));
    if (std::memcmp(mark, "FEA1", 4) == 0)
      return damaged("it is a file of Feather's first version, which is not read: write it anew");
    const bool is_file = std::memcmp(mark, "ARROW1", 6) == 0;
    constexpr const char* cut = "it ends in the middle of a message";
    if (is_file) {
      char end[6] = {};
      if (file.size < 16 || !bytes.read(file.size - 6, std::as_writable_bytes(std::span(end))) ||
          std::memcmp(end, mark, 6) != 0)
        return damaged("it has no end");
    }
    bool has_schema = false, has_end = false;
    size_t batch = 0;
    for (uint64_t at = is_file ? 8 : 0; at < file.size;) {
      const std::string where = has_schema ? fmt::format("batch {}: ", batch) : "";
      uint32_t words[2] = {};
      const auto head = std::as_writable_bytes(std::span(words));
      if (file.size - at < 4 || !bytes.read(at, head.first(file.size - at < 8 ? 4 : 8)))
        return damaged(where + cut);
      constexpr uint32_t continuation = UINT32_MAX;
      const bool is_new = words[0] == continuation;  // before version 0.15 the size stood alone
      if (is_new && file.size - at < 8) return damaged(where + cut);
      const uint64_t size = is_new ? words[1] : words[0];
      at += is_new ? 8 : 4;
      has_end = size == 0;
      if (has_end) break;  // a file's footer follows
      if (at > file.size || size > file.size - at)
        return damaged(where + (has_schema || is_file ? cut : "it is no file of Arrow's"));
      std::vector<std::byte> metadata(size);
      if (!bytes.read(at, metadata)) return damaged(where + "it cannot be read");
      at += size;
      Flat flat(metadata);
      const FlatTable message = flat.root();
      const auto body = static_cast<uint64_t>(message.number<int64_t>(3, 0));
      const auto kind = message.number<uint8_t>(1, 0);
      const FlatTable header = message.table(2);
      if (flat.is_bad() || !header.is_there() || body > file.size - at)
        return damaged(where +
                       (body > file.size - at && !flat.is_bad() ? cut : "a message is damaged"));
      if (kind == schema_message && !has_schema) {
        RETURN_IF_ERROR(read_schema(number, flat, header, 2 * size));
        has_schema = true;
      } else if (!has_schema || kind < dictionary_message || kind > batch_message) {
        return damaged(where + "there is a message of an unknown kind");
      } else {
        const bool is_rows = kind == batch_message;
        Batch read;
        if (!read_batch(is_rows ? header : header.table(1), at, body, read) || flat.is_bad())
          return damaged(where + "a message is damaged");
        if (is_rows) {
          batches_.push_back({number, batch++, rows_, std::move(read)});
          rows_ += static_cast<uint64_t>(batches_.back().batch.rows);
          if (rows_ > data::longest_vector)
            return input_error("{}: there are more than {} rows", place_, data::longest_vector);
        } else {
          const auto id = header.number<int64_t>(0, 0);
          if (header.number<uint8_t>(2, 0))
            return damaged(where + "its dictionaries grow from batch to batch, which is not read");
          dictionaries_[{number, id}].push_back({batch, std::move(read)});
        }
      }
      at += body;
    }
    if (!has_schema) return damaged("it is no file of Arrow's: there is no schema");
    if (!has_end) return damaged("it has no end");
    return {};
  }

  Result<void> read_schema(size_t number, Flat& flat, const FlatTable& schema, uint64_t room) {
    if (schema.number<int16_t>(0, 0) != 0)
      return input_error("{}: its numbers have their high end first, which is not read",
                         files_[number].path);
    std::vector<Field> fields;
    const FlatVector from = schema.vector(1, 4);
    bool is_damaged = false;
    for (uint64_t i = 0; i < from.count && !is_damaged; ++i)
      is_damaged = !read_field(from.table(i), fields.emplace_back(), room) || flat.is_bad();
    if (is_damaged || flat.is_bad())
      return input_error("{}: its schema is damaged", files_[number].path);
    if (number == 0)
      fields_ = std::move(fields);
    else if (fields != fields_)
      return input_error("`{}` has other columns than `{}`: one table is of one schema",
                         files_[number].path, files_[0].path);
    return {};
  }

  // Where the parts of a top field begin in a batch.
  struct Start {
    size_t node = 0, buffer = 0, more = 0;
  };
  static bool pass(const Field& field, const Batch& batch, Start& at) {
    ++at.node;
    at.buffer += field.buffers;
    if (field.has_more_buffers) {
      if (at.more >= batch.more_buffers.size()) return false;
      const int64_t more = batch.more_buffers[at.more++];
      if (more < 0 || static_cast<uint64_t>(more) > batch.buffers.size()) return false;
      at.buffer += static_cast<size_t>(more);
    }
    for (const Field& child : field.children)
      if (!pass(child, batch, at)) return false;
    return true;
  }

  const char* read_buffer(const OpenFile& file, const Batch& batch, const Place& place, Buffer& out,
                          uint64_t& size) const {
    size = place.size;
    if (!batch.codec || size == 0)
      return file.read(place.at, {out.make(size), size}) ? nullptr : "it cannot be read";
    constexpr uint64_t head = 8;  // the size behind it
    Buffer packed;
    const std::span<std::byte> bytes(packed.make(size), size);
    if (!file.read(place.at, bytes)) return "it cannot be read";
    int64_t unpacked = 0;
    if (size < head) return "a buffer is damaged";
    std::memcpy(&unpacked, bytes.data(), head);
    const std::span<const std::byte> from = bytes.subspan(head);
    if (unpacked == -1) {
      size = from.size();
      std::memcpy(out.make(size), from.data(), size);
      return nullptr;
    }
    const uint64_t most = from.size() * (*batch.codec == 0 ? most_by_lz4 : most_by_zstd);
    if (unpacked < 0 || static_cast<uint64_t>(unpacked) > most) return "a buffer is damaged";
    size = static_cast<uint64_t>(unpacked);
    const std::span<std::byte> to(out.make(size), size);
    switch (*batch.codec) {
      case 0: return decompress_lz4_frame(from, to);
      case 1: return decompress_zstd(from, to);
      default: return "its buffers are compressed in an unknown way";
    }
  }

  // The array of a field whose parts begin there, without its dictionary.
  const char* read_array(const OpenFile& file, const Field& field, const data::ArrowFormat& format,
                         const Batch& batch, Start at, HeldArray& out) const {
    Start end = at;
    constexpr const char* missing = "a batch has fewer buffers than its columns need";
    if (!pass(field, batch, end)) return missing;
    if (end.node > batch.nodes.size() || end.buffer > batch.buffers.size()) return missing;
    const Node& node = batch.nodes[at.node];
    if (node.length != batch.rows || node.nulls < 0 || node.nulls > node.length)
      return "a column has another number of rows than its batch";
    const size_t count = end.buffer - at.buffer;
    out.bytes.resize(count);
    out.sizes.resize(count);
    for (size_t i = 0; i < count; ++i)
      if (const char* wrong =
              read_buffer(file, batch, batch.buffers[at.buffer + i], out.bytes[i], out.sizes[i]))
        return wrong;
    for (size_t i = 0; i < count; ++i)
      out.buffers.push_back(i == 0 && out.sizes[0] == 0 ? nullptr : out.bytes[i].data());
    if (format.layout == ArrowLayout::view)  // whose last buffer has the lengths of the others
      out.buffers.push_back(out.sizes.data() + 2);
    out.array.length = node.length;
    out.array.null_count = node.nulls;
    out.array.n_buffers = static_cast<int64_t>(out.buffers.size());
    out.array.buffers = out.buffers.data();
    out.array.release = [](ArrowArray* array) { array->release = nullptr; };
    return check_values(out, format);
  }

  // The dictionary of a batch's column; null: there is none.
  const Batch* dictionary_of(const RowBatch& part, const Field& field) const {
    const auto found = dictionaries_.find({part.file, *field.dictionary});
    if (found == dictionaries_.end()) return nullptr;
    const auto after =
        std::upper_bound(found->second.begin(), found->second.end(), part.number,
                         [](size_t n, const DictionaryBatch& d) { return n < d.from; });
    return after == found->second.begin() ? nullptr : &std::prev(after)->batch;
  }

  static std::optional<data::ArrowType> type_of(const Field& field) {
    std::string refused;
    const auto schema = schema_of(field);
    auto type = data::arrow_type(*schema, refused);
    schema->release(schema.get());
    return type;
  }

  const char* read_dictionary(size_t number, const Batch& batch, size_t f, HeldArray& out) const {
    const auto type = type_of(fields_[f]);
    if (!type) return "its type is not read";
    Field values{.format = fields_[f].values};
    const ArrowLayout layout = type->format->layout;
    values.buffers = layout == ArrowLayout::text ? 3 : layout == ArrowLayout::none ? 0 : 2;
    values.has_more_buffers = layout == ArrowLayout::view;
    return read_array(OpenFile(files_[number].path), values, *type->format, batch, {}, out);
  }

  // Its dictionary, if it has one, is there.
  const char* read_column(const RowBatch& part, size_t f, HeldArray& out) const {
    const OpenFile file(files_[part.file].path);
    Start at;
    for (size_t i = 0; i < f; ++i)
      if (!pass(fields_[i], part.batch, at)) return "a batch has fewer buffers than columns";
    const Field& field = fields_[f];
    const auto type = type_of(field);
    if (!type) return "its type is not read";
    if (const char* wrong = read_array(file, field, type->codes ? *type->codes : *type->format,
                                       part.batch, at, out))
      return wrong;
    if (!field.dictionary) return nullptr;
    if (!out.dictionary) {
      if (out.array.length != out.array.null_count) return "its dictionary is missing";
      out.dictionary = std::make_shared<HeldArray>();
      out.dictionary->array.release = [](ArrowArray* array) { array->release = nullptr; };
    }
    out.array.dictionary = &out.dictionary->array;
    return nullptr;
  }

  Result<std::vector<data::Column>> load_all(std::span<const size_t> columns) {
    auto held = std::make_unique<HeldStream>();
    for (size_t c : columns) held->fields.push_back(&fields_[field_of_[c]]);
    for (const RowBatch& part : batches_) {
      auto batch = std::make_unique<HeldBatch>();
      for (size_t c = 0; c < columns.size(); ++c)
        batch->columns.push_back(std::make_unique<HeldArray>());
      held->batches.push_back(std::move(batch));
      held->rows.push_back(part.batch.rows);
    }
    std::mutex mutex;
    std::optional<std::pair<size_t, std::string>> failed;  // the first batch with one
    const auto fail = [&](size_t b, size_t c, const char* wrong) {
      std::lock_guard lock(mutex);
      if (!failed || b < failed->first)
        failed = {
            b, fmt::format("{}: batch {}: column `{}`: {}", files_[batches_[b].file].path,
                           batches_[b].number, schema_.tables[0].columns[columns[c]].name, wrong)};
    };
    // Each dictionary once, for the batches from `b` on.
    struct Wanted {
      size_t b, c;
      const Batch* batch;
      std::shared_ptr<HeldArray> array;
    };
    std::vector<Wanted> wanted;
    for (size_t c = 0; c < columns.size(); ++c) {
      const Field& field = fields_[field_of_[columns[c]]];
      const Batch* before = nullptr;
      for (size_t b = 0; field.dictionary && b < batches_.size(); ++b) {
        const Batch* const dictionary = dictionary_of(batches_[b], field);
        if (!dictionary) continue;
        if (dictionary != before) {
          wanted.push_back({b, c, dictionary, std::make_shared<HeldArray>()});
          before = dictionary;
        }
        held->batches[b]->columns[c]->dictionary = wanted.back().array;
      }
    }
    parallel_for(wanted.size(), [&](size_t i) {
      const Wanted& w = wanted[i];
      if (const char* wrong = read_dictionary(batches_[w.b].file, *w.batch,
                                              field_of_[columns[w.c]], *w.array))
        fail(w.b, w.c, wrong);
    });
    parallel_for(batches_.size() * columns.size(), [&](size_t i) {
      const size_t b = i / columns.size(), c = i % columns.size();
      if (const char* wrong =
              read_column(batches_[b], field_of_[columns[c]], *held->batches[b]->columns[c]))
        fail(b, c, wrong);
    });
    for (const ArrowFile& file : files_)
      if (stamp_of(file.path) != file.stamp)
        return input_error("{}: it has changed since it was opened", file.path);
    if (failed) return input_error("{}", failed->second);
    auto loader = data::open_arrow("t", make_stream(std::move(held)));
    if (!loader) return input_error("{}", in_place_of("table `t`", loader.error()));
    std::vector<size_t> all(columns.size());
    for (size_t c = 0; c < all.size(); ++c) all[c] = c;
    auto loaded = (*loader)->load(0, all);
    if (!loaded) return Error{loaded.error().fault, in_place_of("table `t`", loaded.error())};
    return loaded;
  }

  std::string place_;
  std::vector<ArrowFile> files_;
  std::vector<Field> fields_;
  std::vector<RowBatch> batches_;
  std::map<std::pair<size_t, int64_t>, std::vector<DictionaryBatch>> dictionaries_;  // file, number
  data::Schema schema_;
  std::vector<size_t> field_of_;  // by column of the schema
  uint64_t rows_ = 0;
};

}  // namespace

Result<std::unique_ptr<data::TableLoader>> open_arrow_files(const std::string& place,
                                                            std::vector<std::string> paths,
                                                            const std::string& table) {
  auto files = std::make_unique<ArrowFiles>();
  RETURN_IF_ERROR(files->open(place, std::move(paths), table));
  return std::unique_ptr<data::TableLoader>(std::move(files));
}

}  // namespace rndn::files
