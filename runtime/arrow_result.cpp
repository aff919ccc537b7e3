#include "runtime/arrow_result.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/text/text_functions.h"

namespace rndn::runtime {
namespace {

using data::Value;
using sql::TypeId;
using Column = ArrowResult::Column;

// How a type is written. Bytes: of an element, 0 where they are no integers of one width.
struct Row {
  TypeId type;
  const char* format;
  uint8_t bytes;
};
constexpr Row rows_[] = {
    {TypeId::boolean, "b", 0},
    {TypeId::tinyint, "c", 1},
    {TypeId::smallint, "s", 2},
    {TypeId::integer, "i", 4},
    {TypeId::bigint, "l", 8},
    {TypeId::utinyint, "C", 1},
    {TypeId::usmallint, "S", 2},
    {TypeId::uinteger, "I", 4},
    {TypeId::ubigint, "L", 8},
    {TypeId::real, "f", 4},
    {TypeId::double_, "g", 8},
    {TypeId::decimal, "d:", 16},
    {TypeId::hugeint, "d:38,0", 16},
    {TypeId::varchar, "u", 0},
    {TypeId::date, "tdD", 4},
    {TypeId::time, "ttu", 8},
    {TypeId::timestamp, "tsu:", 8},
    {TypeId::timestamptz, "tsu:UTC", 8},
    {TypeId::interval, "tin", 16},
};
#define SQL_TYPE(id, name, horseir) +1
static_assert(std::size(rows_) == 0
#include "frontend/sql/types.def"
);
#undef SQL_TYPE

template <class T>
void add_buffer(Column& column, std::shared_ptr<const std::vector<T>> made) {
  column.buffers.push_back(made->data());
  column.owners.push_back(std::move(made));
}

using Bytes = std::vector<uint8_t>;

// One bit per row, from one byte per row.
std::shared_ptr<const Bytes> bits_of(const uint8_t* bytes, uint64_t rows) {
  auto bits = std::make_shared<Bytes>((rows + 7) / 8);
  for (uint64_t i = 0; i < rows; ++i)
    (*bits)[i / 8] |= static_cast<uint8_t>((bytes[i] != 0) << (i % 8));
  return bits;
}

template <class Offset>
void add_text(Column& column, const Value& values) {
  auto offsets = std::make_shared<std::vector<Offset>>(values.size + 1);
  auto characters = std::make_shared<std::vector<char>>();
  for (uint64_t i = 0; i < values.size; ++i) {
    const std::string& text = values.text(i);
    characters->insert(characters->end(), text.begin(), text.end());
    (*offsets)[i + 1] = static_cast<Offset>(characters->size());
  }
  add_buffer<Offset>(column, std::move(offsets));
  add_buffer<char>(column, std::move(characters));
}

// Integers in the width of the type; 16 bytes: with their sign.
void add_integers(Column& column, const Value& values, uint8_t bytes) {
  auto made = std::make_shared<Bytes>(values.size * bytes);
  for (uint64_t i = 0; i < values.size; ++i) {
    const __int128 value =
        hir::is_wide(values.type) ? values.as<__int128>()[i] : integer_at(values, i);
    std::memcpy(made->data() + i * bytes, &value, bytes);
  }
  add_buffer<uint8_t>(column, std::move(made));
}

// Months and days of 32 bits, and nanoseconds of 64, which some intervals have too many of.
Result<std::shared_ptr<const Bytes>> intervals_of(const std::string& name, const Value& values) {
  auto made = std::make_shared<Bytes>(values.size * 16);
  for (uint64_t i = 0; i < values.size; ++i) {
    const text::IntervalParts p = text::interval_parts(values.as<__int128>()[i]);
    int64_t nanoseconds;
    if (__builtin_mul_overflow(p.micros, 1000, &nanoseconds))
      return input_error("an INTERVAL of column `{}` has more nanoseconds than 64 bits hold", name);
    std::memcpy(made->data() + i * 16, &p.months, 4);
    std::memcpy(made->data() + i * 16 + 4, &p.days, 4);
    std::memcpy(made->data() + i * 16 + 8, &nanoseconds, 8);
  }
  return std::shared_ptr<const Bytes>(std::move(made));
}

Result<Column> make_column(const std::string& name, const SqlCells& cells, const Value& values,
                           ArrowResult::Texts texts) {
  const Row& row = *std::find_if(std::begin(rows_), std::end(rows_),
                                 [&](const Row& r) { return r.type == cells.type.id; });
  Column column{.name = name, .format = row.format, .buffers = {nullptr}, .owners = {}};
  if (cells.type.id == TypeId::decimal)
    column.format = fmt::format("d:{},{}", cells.type.width, cells.type.scale);
  if (cells.valid) {
    const auto* valid = cells.valid->as<uint8_t>();
    column.missing = std::count(valid, valid + values.size, 0);
    if (column.missing) {
      column.buffers.clear();
      add_buffer<uint8_t>(column, bits_of(valid, values.size));
    }
  }
  if (cells.type.id == TypeId::varchar) {
    const auto add = [&](const Value& all) {
      uint64_t size = 0;
      for (uint64_t i = 0; i < all.size; ++i) size += all.text(i).size();
      if (texts == ArrowResult::Texts::as_needed && size <= INT32_MAX)
        return add_text<int32_t>(column, all);
      column.format = "U";
      add_text<int64_t>(column, all);
    };
    if (values.is_text_vector()) {
      add(values);
    } else {  // one character each
      std::vector<std::string> cells_text;
      for (uint64_t i = 0; i < values.size; ++i)
        cells_text.push_back(element_text(values, i, true));
      add(data::vector_of_texts(hir::BasicType::str, std::move(cells_text)));
    }
  } else if (cells.type.id == TypeId::interval) {
    ASSIGN_OR_RETURN(auto made, intervals_of(name, values));
    add_buffer<uint8_t>(column, std::move(made));
  } else if (cells.type.id == TypeId::boolean) {
    add_buffer<uint8_t>(column, bits_of(values.as<uint8_t>(), values.size));
  } else if (data::plain_width(values.type) == row.bytes) {
    column.buffers.push_back(values.bytes ? values.bytes->data() : nullptr);
    column.owners.push_back(values.bytes);
  } else if (hir::is_float(values.type)) {
    return Error{Fault::internal,
                 fmt::format("column `{}` is {} and holds {}", name, sql::type_name(cells.type),
                             hir::basic_type_name(values.type))};
  } else {
    add_integers(column, values, row.bytes);
  }
  return column;
}

using Shared = std::shared_ptr<const ArrowResult>;

// What a record of ours has behind it. Columns may be taken out of a table's record and released
// on their own, so that each has its share of the result.
template <class Record>
struct Behind {
  Shared result;
  std::vector<Record> children;
  std::vector<Record*> pointers;
  std::vector<const void*> buffers;
};

template <class Record>
void release(Record* record) {
  auto* behind = static_cast<Behind<Record>*>(record->private_data);
  for (Record& child : behind->children)
    if (child.release) child.release(&child);
  record->release = nullptr;
  delete behind;
}

// The record of the whole, whose children `fill` makes.
template <class Record, class Fill>
Record whole(Shared result, Fill&& fill) {
  auto behind = std::make_unique<Behind<Record>>();
  behind->children.resize(result->columns.size());
  for (size_t i = 0; i < behind->children.size(); ++i) {
    Record& child = behind->children[i];
    auto of_child = std::make_unique<Behind<Record>>();
    of_child->result = result;
    fill(child, result->columns[i], *of_child);
    child.release = release<Record>;
    child.private_data = of_child.release();
    behind->pointers.push_back(&child);
  }
  Record record{};
  record.n_children = static_cast<int64_t>(behind->children.size());
  record.children = behind->pointers.data();
  record.release = release<Record>;
  behind->result = std::move(result);
  record.private_data = behind.release();
  return record;
}

ArrowArray array_of(Shared result) {
  const auto rows = static_cast<int64_t>(result->rows);
  ArrowArray array = whole<ArrowArray>(
      std::move(result), [&](ArrowArray& child, const Column& column, Behind<ArrowArray>& behind) {
        behind.buffers = column.buffers;
        child.length = rows;
        child.null_count = column.missing;
        child.n_buffers = static_cast<int64_t>(behind.buffers.size());
        child.buffers = behind.buffers.data();
      });
  auto* behind = static_cast<Behind<ArrowArray>*>(array.private_data);
  behind->buffers = {nullptr};
  array.length = rows;
  array.n_buffers = 1;
  array.buffers = behind->buffers.data();
  return array;
}

struct StreamState {
  std::vector<Shared> results;
  size_t given = 0;
};

}  // namespace

Result<std::shared_ptr<const ArrowResult>> ArrowResult::make(const Grid& grid, Texts texts) {
  auto result = std::make_shared<ArrowResult>();
  result->rows = grid.rows;
  for (size_t i = 0; i < grid.columns.size(); ++i) {
    ASSIGN_OR_RETURN(Column column, make_column(grid.names[i], grid.sql[i], grid.columns[i], texts));
    result->columns.push_back(std::move(column));
  }
  return std::shared_ptr<const ArrowResult>(std::move(result));
}

ArrowSchema ArrowResult::schema(std::shared_ptr<const ArrowResult> result) {
  ArrowSchema schema = whole<ArrowSchema>(
      std::move(result), [](ArrowSchema& child, const Column& column, Behind<ArrowSchema>&) {
        child.format = column.format.c_str();
        child.name = column.name.c_str();
        child.flags = ARROW_FLAG_NULLABLE;
      });
  schema.format = "+s";
  schema.name = "";
  return schema;
}

ArrowArrayStream ArrowResult::stream(std::vector<std::shared_ptr<const ArrowResult>> results) {
  ArrowArrayStream stream{};
  stream.get_schema = [](ArrowArrayStream* s, ArrowSchema* out) {
    try {
      *out = schema(static_cast<StreamState*>(s->private_data)->results[0]);
    } catch (const std::bad_alloc&) {
      return ENOMEM;
    }
    return 0;
  };
  stream.get_next = [](ArrowArrayStream* s, ArrowArray* out) {
    auto& state = *static_cast<StreamState*>(s->private_data);
    *out = {};
    if (state.given == state.results.size()) return 0;
    try {
      *out = array_of(state.results[state.given]);
      ++state.given;
    } catch (const std::bad_alloc&) {
      return ENOMEM;
    }
    return 0;
  };
  stream.get_last_error = [](ArrowArrayStream*) -> const char* { return nullptr; };
  stream.release = [](ArrowArrayStream* s) {
    delete static_cast<StreamState*>(s->private_data);
    s->release = nullptr;
  };
  stream.private_data = new StreamState{std::move(results)};
  return stream;
}

}  // namespace rndn::runtime
