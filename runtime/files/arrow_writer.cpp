// Writing of Arrow IPC, whose form arrow_file.cpp describes: a schema, a message for each array
// with its buffers as they lie in memory, an end; in a file also the marks and a footer that says
// where the batches are. Nothing is compressed.
#include "runtime/files/arrow_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "runtime/data/arrow_types.h"
#include "runtime/data/arrow_values.h"

namespace rndn::files {
namespace {

using data::ArrowLayout;

// A FlatBuffer, written from its root on: what is pointed to comes later.
class FlatWriter {
 public:
  // A field of a table: a number of `size` bytes, or the place of something (size 0).
  struct Field {
    unsigned number, size;
    uint64_t value = 0;
  };
  // Appends a table; `places` gets where its places are to be put, in the order of the fields.
  size_t table(std::initializer_list<Field> fields, std::vector<size_t>* places = nullptr) {
    unsigned count = 0;
    for (const Field& f : fields) count = std::max(count, f.number + 1);
    std::vector<uint16_t> offsets(count);
    uint16_t end = 4;  // behind where the table says its layout
    for (unsigned size : {8u, 4u, 2u, 1u})
      for (const Field& f : fields)
        if (std::max(f.size, f.size ? 1u : 4u) == size) {
          end = static_cast<uint16_t>((end + size - 1) / size * size);
          offsets[f.number] = end;
          end = static_cast<uint16_t>(end + size);
        }
    align(2, 0);
    const size_t layout = bytes_.size();
    put<uint16_t>(static_cast<uint16_t>(4 + count * 2));
    put<uint16_t>(end);
    for (uint16_t offset : offsets) put<uint16_t>(offset);
    align(8, 0);
    const size_t at = bytes_.size();
    bytes_.resize(at + end);
    set<int32_t>(at, static_cast<int32_t>(at - layout));
    for (const Field& f : fields) {
      if (f.size == 0 && places) places->push_back(at + offsets[f.number]);
      std::memcpy(bytes_.data() + at + offsets[f.number], &f.value, f.size);
    }
    return at;
  }
  size_t text(std::string_view text) {
    align(4, 0);
    const size_t at = bytes_.size();
    put<uint32_t>(static_cast<uint32_t>(text.size()));
    bytes_ += text;
    bytes_ += '\0';
    return at;
  }
  // The count of a vector; its elements, aligned to 8 bytes, are put behind it.
  size_t vector(size_t count) {
    align(8, 4);
    const size_t at = bytes_.size();
    put<uint32_t>(static_cast<uint32_t>(count));
    return at;
  }
  template <class T>
  size_t put(T value) {
    const size_t at = bytes_.size();
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return at;
  }
  void point(size_t place, size_t target) {
    set<uint32_t>(place, static_cast<uint32_t>(target - place));
  }
  std::string take() {
    align(8, 0);
    return std::move(bytes_);
  }

 private:
  template <class T>
  void set(size_t at, T value) {
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }
  // So that what comes `later` bytes behind is aligned.
  void align(size_t alignment, size_t later) {
    while ((bytes_.size() + later) % alignment) bytes_ += '\0';
  }
  std::string bytes_;
};

constexpr uint64_t version = 4;  // V5

// Types by their formats: the number in Arrow's union, and the table's fields.
struct WrittenType {
  std::string_view format;
  uint8_t number;
  std::array<FlatWriter::Field, 2> fields = {};
  unsigned count = 0;
};
constexpr WrittenType written_types[] = {
    {"b", 6},
    {"c", 2, {{{0, 4, 8}, {1, 1, 1}}}, 2},
    {"s", 2, {{{0, 4, 16}, {1, 1, 1}}}, 2},
    {"i", 2, {{{0, 4, 32}, {1, 1, 1}}}, 2},
    {"l", 2, {{{0, 4, 64}, {1, 1, 1}}}, 2},
    {"C", 2, {{{0, 4, 8}}}, 1},
    {"S", 2, {{{0, 4, 16}}}, 1},
    {"I", 2, {{{0, 4, 32}}}, 1},
    {"L", 2, {{{0, 4, 64}}}, 1},
    {"f", 3, {{{0, 2, 1}}}, 1},
    {"g", 3, {{{0, 2, 2}}}, 1},
    {"u", 5},
    {"U", 20},
    {"tdD", 8, {{{0, 2, 0}}}, 1},
    {"ttu", 9, {{{0, 2, 2}, {1, 4, 64}}}, 2},
};

// The number of the type, and its table; 0: it is not written.
uint8_t write_type(FlatWriter& out, const std::string& format, size_t& table) {
  for (const WrittenType& row : written_types)
    if (row.format == format) {
      table = row.count == 2   ? out.table({row.fields[0], row.fields[1]})
              : row.count == 1 ? out.table({row.fields[0]})
                               : out.table({});
      return row.number;
    }
  uint32_t precision = 0, scale = 0;
  if (std::sscanf(format.c_str(), "d:%u,%u", &precision, &scale) == 2) {
    table = out.table({{0, 4, precision}, {1, 4, scale}, {2, 4, 128}});
    return 7;
  }
  if (format.starts_with("tsu:")) {
    std::vector<size_t> zone;
    if (format.size() == 4) {
      table = out.table({{0, 2, 2}});
    } else {
      table = out.table({{0, 2, 2}, {1, 0}}, &zone);
      out.point(zone[0], out.text(std::string_view(format).substr(4)));
    }
    return 10;
  }
  return 0;
}

// Appends the schema; empty: a column has a type that is not written, which `refused` names.
size_t write_schema(FlatWriter& out, const ArrowSchema& schema, std::string& refused) {
  std::vector<size_t> places;
  const size_t at = out.table({{1, 0}}, &places);
  const auto count = static_cast<size_t>(schema.n_children);
  const size_t fields = out.vector(count);
  out.point(places[0], fields);
  std::vector<size_t> elements;
  for (size_t i = 0; i < count; ++i) elements.push_back(out.put<uint32_t>(0));
  for (size_t i = 0; i < count; ++i) {
    const ArrowSchema& column = *schema.children[i];
    FlatWriter ignored;
    size_t type = 0;
    const std::string format = column.format;
    const uint8_t number = column.dictionary ? 0 : write_type(ignored, format, type);
    if (number == 0) refused = fmt::format("column `{}` is of type `{}`", column.name, format);
    places.clear();
    out.point(elements[i], out.table({{0, 0}, {1, 1, 1}, {2, 1, number}, {3, 0}, {5, 0}}, &places));
    out.point(places[0], out.text(column.name));
    write_type(out, format, type);
    out.point(places[1], type);
    out.point(places[2], out.vector(0));
  }
  return at;
}

constexpr uint64_t alignment = 64;
uint64_t aligned(uint64_t size) { return (size + alignment - 1) / alignment * alignment; }

struct Part {
  const void* bytes;
  uint64_t size;
};

class Writer {
 public:
  explicit Writer(NewFile& file) : file_(file) {}

  Result<void> put(const void* bytes, uint64_t size) {
    at_ += size;
    return file_.write({static_cast<const char*>(bytes), size});
  }
  Result<void> put(std::string_view text) { return put(text.data(), text.size()); }
  uint64_t at() const { return at_; }

  // A message without its body; `size` gets its bytes.
  Result<void> message(std::string metadata, uint64_t* size = nullptr) {
    const uint32_t head[2] = {UINT32_MAX, static_cast<uint32_t>(metadata.size())};
    if (size) *size = sizeof head + metadata.size();
    RETURN_IF_ERROR(put(head, sizeof head));
    return put(metadata);
  }

 private:
  NewFile& file_;
  uint64_t at_ = 0;
};

std::string make_schema_message(const ArrowSchema& schema, std::string& refused) {
  FlatWriter out;
  const size_t root = out.put<uint32_t>(0);
  std::vector<size_t> places;
  out.point(root, out.table({{0, 2, version}, {1, 1, 1}, {2, 0}, {3, 8, 0}}, &places));
  out.point(places[0], write_schema(out, schema, refused));
  return out.take();
}

// The buffers of an array, as many bytes as its rows need.
std::vector<Part> parts_of(const ArrowArray& a, const data::ArrowFormat& format) {
  const auto rows = static_cast<uint64_t>(a.length);
  const bool has_validity = a.null_count != 0 && a.buffers[0];
  std::vector<Part> parts{{a.buffers[0], has_validity ? (rows + 7) / 8 : 0}};
  if (format.layout == ArrowLayout::bits) {
    parts.push_back({a.buffers[1], (rows + 7) / 8});
  } else if (format.layout == ArrowLayout::text) {
    int64_t last = 0;
    std::memcpy(&last, static_cast<const std::byte*>(a.buffers[1]) + rows * format.bytes,
                format.bytes);
    parts.push_back({a.buffers[1], (rows + 1) * format.bytes});
    parts.push_back({a.buffers[2], static_cast<uint64_t>(last)});
  } else {
    parts.push_back({a.buffers[1], rows * format.bytes});
  }
  return parts;
}

struct Block {
  uint64_t at, head, body;
};

std::string footer(const ArrowSchema& schema, const std::vector<Block>& blocks) {
  FlatWriter out;
  std::string refused;
  const size_t root = out.put<uint32_t>(0);
  std::vector<size_t> places;
  out.point(root, out.table({{0, 2, version}, {1, 0}, {2, 0}, {3, 0}}, &places));
  out.point(places[0], write_schema(out, schema, refused));
  out.point(places[1], out.vector(0));
  out.point(places[2], out.vector(blocks.size()));
  for (const Block& block : blocks) {
    out.put<uint64_t>(block.at);
    out.put<uint64_t>(block.head);  // 4 bytes, and 4 of nothing
    out.put<uint64_t>(block.body);
  }
  return out.take();
}

}  // namespace

Result<void> write_arrow(data::ArrowStream stream, bool as_file, NewFile& file) {
  constexpr std::string_view mark("ARROW1\0\0", 8), end_mark("ARROW1");
  Writer out(file);
  auto check = [&](int code) -> Result<void> {
    if (code == 0) return {};
    const char* said = stream->get_last_error(stream.get());
    return world_error("{}", said ? said : std::strerror(code));
  };
  data::Owned<ArrowSchema> schema;
  RETURN_IF_ERROR(check(stream->get_schema(stream.get(), schema.get())));
  std::string refused;
  std::string first = make_schema_message(*schema.get(), refused);
  if (!refused.empty()) return input_error("{}, which is not written to Arrow's files", refused);
  std::vector<data::ArrowType> columns;
  for (int64_t c = 0; c < schema->n_children; ++c) {
    const auto type = data::arrow_type(*schema->children[c], refused);
    CHECK(type, "a type that is written is read");
    columns.push_back(*type);
  }
  if (as_file) RETURN_IF_ERROR(out.put(mark));
  RETURN_IF_ERROR(out.message(std::move(first)));
  std::vector<Block> blocks;
  for (;;) {
    data::Owned<ArrowArray> array;
    RETURN_IF_ERROR(check(stream->get_next(stream.get(), array.get())));
    if (!array.is_there()) break;
    std::vector<Part> parts;
    FlatWriter flat;
    const size_t root = flat.put<uint32_t>(0);
    for (size_t c = 0; c < columns.size(); ++c) {
      CHECK(array->children[c]->offset == 0 && array->offset == 0, "an array is a part of another");
      for (const Part& part : parts_of(*array->children[c], *columns[c].format))
        parts.push_back(part);
    }
    uint64_t body = 0;
    for (const Part& part : parts) body += aligned(part.size);
    std::vector<size_t> message, batch;
    flat.point(root, flat.table({{0, 2, version}, {1, 1, 3}, {2, 0}, {3, 8, body}}, &message));
    const auto rows = static_cast<uint64_t>(array->length);
    flat.point(message[0], flat.table({{0, 8, rows}, {1, 0}, {2, 0}}, &batch));
    flat.point(batch[0], flat.vector(columns.size()));
    for (size_t c = 0; c < columns.size(); ++c) {
      flat.put<int64_t>(array->children[c]->length);
      flat.put<int64_t>(array->children[c]->null_count);
    }
    flat.point(batch[1], flat.vector(parts.size()));
    uint64_t at = 0;
    for (const Part& part : parts) {
      flat.put<uint64_t>(at);
      flat.put<uint64_t>(part.size);
      at += aligned(part.size);
    }
    Block block{out.at(), 0, body};
    RETURN_IF_ERROR(out.message(flat.take(), &block.head));
    for (const Part& part : parts) {
      constexpr std::array<char, alignment> zeros{};
      if (part.size) RETURN_IF_ERROR(out.put(part.bytes, part.size));
      RETURN_IF_ERROR(out.put(zeros.data(), aligned(part.size) - part.size));
    }
    blocks.push_back(block);
  }
  RETURN_IF_ERROR(out.message(""));
  if (!as_file) return {};
  const std::string last = footer(*schema.get(), blocks);
  RETURN_IF_ERROR(out.put(last));
  const auto size = static_cast<uint32_t>(last.size());
  RETURN_IF_ERROR(out.put(&size, sizeof size));
  return out.put(end_mark);
}

}  // namespace rndn::files
