#include "runtime/arrow_result.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>

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

// A column whose rows are asked for by ranges.
struct Whole {
  const std::string& name;
  sql::Type type;
  const Value* valid;  // null: there is no NULL
  const Value& values;
};
Whole whole_column(const Grid& grid, size_t c) {
  const std::optional<Value>& valid = grid.sql[c].valid;
  return {grid.names[c], grid.sql[c].type, valid ? &*valid : nullptr, grid.columns[c]};
}
struct Range {
  uint64_t first, count;
};

const Row& row_of(const Whole& column) {
  return *std::find_if(std::begin(rows_), std::end(rows_),
                       [&](const Row& r) { return r.type == column.type.id; });
}

// One bit per row, from one byte per row.
std::shared_ptr<const Bytes> bits_of(const uint8_t* bytes, Range rows) {
  auto bits = std::make_shared<Bytes>((rows.count + 7) / 8);
  for (uint64_t i = 0; i < rows.count; ++i)
    (*bits)[i / 8] |= static_cast<uint8_t>((bytes[rows.first + i] != 0) << (i % 8));
  return bits;
}

// `text(i)` is that of row i.
template <class Offset, class Text>
void add_text(Column& column, Range rows, Text&& text) {
  auto offsets = std::make_shared<std::vector<Offset>>(rows.count + 1);
  uint64_t size = 0;
  for (uint64_t i = 0; i < rows.count; ++i)
    (*offsets)[i + 1] = static_cast<Offset>(size += text(rows.first + i).size());
  auto characters = std::make_shared<std::vector<char>>(size);
  for (uint64_t i = 0; i < rows.count; ++i) {
    const auto& from = text(rows.first + i);
    std::copy(from.begin(), from.end(), characters->begin() + static_cast<int64_t>((*offsets)[i]));
  }
  add_buffer<Offset>(column, std::move(offsets));
  add_buffer<char>(column, std::move(characters));
}

// Integers in the width of the type; 16 bytes: with their sign.
void add_integers(Column& column, const Value& values, Range rows, uint8_t bytes) {
  auto made = std::make_shared<Bytes>(rows.count * bytes);
  for (uint64_t i = 0; i < rows.count; ++i) {
    const uint64_t at = rows.first + i;
    const __int128 value =
        hir::is_wide(values.type) ? values.as<__int128>()[at] : integer_at(values, at);
    std::memcpy(made->data() + i * bytes, &value, bytes);
  }
  add_buffer<uint8_t>(column, std::move(made));
}

// Months and days of 32 bits, and nanoseconds of 64.
void add_intervals(Column& column, const Value& values, Range rows) {
  auto made = std::make_shared<Bytes>(rows.count * 16);
  for (uint64_t i = 0; i < rows.count; ++i) {
    const text::IntervalParts p = text::interval_parts(values.as<__int128>()[rows.first + i]);
    const int64_t nanoseconds = p.micros * 1000;
    std::memcpy(made->data() + i * 16, &p.months, 4);
    std::memcpy(made->data() + i * 16 + 4, &p.days, 4);
    std::memcpy(made->data() + i * 16 + 8, &nanoseconds, 8);
  }
  add_buffer<uint8_t>(column, std::move(made));
}

// Whether all values have a form; what follows does not fail.
Result<void> check(const Whole& column) {
  const Value& values = column.values;
  if (column.type.id == TypeId::interval) {
    for (uint64_t i = 0; i < values.size; ++i) {
      int64_t nanoseconds;  // some intervals have too many
      if (__builtin_mul_overflow(text::interval_parts(values.as<__int128>()[i]).micros, 1000,
                                 &nanoseconds))
        return input_error("an INTERVAL of column `{}` has more nanoseconds than 64 bits hold",
                           column.name);
    }
  } else if (column.type.id != TypeId::varchar && hir::is_float(values.type) &&
             data::plain_width(values.type) != row_of(column).bytes) {
    return Error{Fault::internal,
                 fmt::format("column `{}` is {} and holds {}", column.name,
                             sql::type_name(column.type), hir::basic_type_name(values.type))};
  }
  return {};
}

uint64_t text_size(const Value& values) {
  uint64_t size = 0;
  if (!values.is_text_vector()) return values.size;  // one character each
  for (uint64_t i = 0; i < values.size; ++i) size += values.text(i).size();
  return size;
}

std::string format_of(const Whole& column, ArrowResult::Texts texts) {
  if (column.type.id == TypeId::decimal)
    return fmt::format("d:{},{}", column.type.width, column.type.scale);
  if (column.type.id == TypeId::varchar &&
      (texts == ArrowResult::Texts::large || text_size(column.values) > INT32_MAX))
    return "U";
  return row_of(column).format;
}

Column make_column(const Whole& whole, const std::string& format, Range rows) {
  const Value& values = whole.values;
  const uint8_t bytes = row_of(whole).bytes;
  Column column{.name = whole.name, .format = format, .buffers = {nullptr}, .owners = {}};
  if (whole.valid) {
    const auto* valid = whole.valid->as<uint8_t>() + rows.first;
    column.missing = std::count(valid, valid + rows.count, 0);
    if (column.missing) {
      column.buffers.clear();
      add_buffer<uint8_t>(column, bits_of(whole.valid->as<uint8_t>(), rows));
    }
  }
  if (whole.type.id == TypeId::varchar) {
    const auto add = [&](auto&& text) {
      if (format == "u")
        add_text<int32_t>(column, rows, text);
      else
        add_text<int64_t>(column, rows, text);
    };
    if (values.is_text_vector())
      add([&](uint64_t i) -> const std::string& { return values.text(i); });
    else  // one character each
      add([&](uint64_t i) { return element_text(values, i, true); });
  } else if (whole.type.id == TypeId::interval) {
    add_intervals(column, values, rows);
  } else if (whole.type.id == TypeId::boolean) {
    add_buffer<uint8_t>(column, bits_of(values.as<uint8_t>(), rows));
  } else if (data::plain_width(values.type) == bytes) {
    column.buffers.push_back(values.bytes ? values.bytes->data() + rows.first * bytes : nullptr);
    column.owners.push_back(values.bytes);
  } else {
    add_integers(column, values, rows, bytes);
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

std::vector<std::string> formats_of(const Grid& grid, ArrowResult::Texts texts) {
  std::vector<std::string> formats;
  for (size_t c = 0; c < grid.columns.size(); ++c)
    formats.push_back(format_of(whole_column(grid, c), texts));
  return formats;
}

Result<void> check(const Grid& grid) {
  for (size_t c = 0; c < grid.columns.size(); ++c)
    RETURN_IF_ERROR(check(whole_column(grid, c)));
  return {};
}

Shared made_of(const Grid& grid, const std::vector<std::string>& formats, Range rows) {
  auto result = std::make_shared<ArrowResult>();
  result->rows = rows.count;
  for (size_t c = 0; c < grid.columns.size(); ++c)
    result->columns.push_back(make_column(whole_column(grid, c), formats[c], rows));
  return result;
}

// A stream of what `next` gives until it gives nothing; `head` has its columns.
ArrowArrayStream stream_by(Shared head, std::function<Shared()> next) {
  struct State {
    Shared head;
    std::function<Shared()> next;
  };
  ArrowArrayStream stream{};
  stream.get_schema = [](ArrowArrayStream* s, ArrowSchema* out) {
    try {
      *out = ArrowResult::schema(static_cast<State*>(s->private_data)->head);
    } catch (const std::bad_alloc&) {
      return ENOMEM;
    }
    return 0;
  };
  stream.get_next = [](ArrowArrayStream* s, ArrowArray* out) {
    *out = {};
    try {
      if (Shared batch = static_cast<State*>(s->private_data)->next())
        *out = array_of(std::move(batch));
    } catch (const std::bad_alloc&) {
      return ENOMEM;
    }
    return 0;
  };
  stream.get_last_error = [](ArrowArrayStream*) -> const char* { return nullptr; };
  stream.release = [](ArrowArrayStream* s) {
    delete static_cast<State*>(s->private_data);
    s->release = nullptr;
  };
  stream.private_data = new State{std::move(head), std::move(next)};
  return stream;
}

}  // namespace

Result<Shared> ArrowResult::make(const Grid& grid, Texts texts) {
  RETURN_IF_ERROR(check(grid));
  return made_of(grid, formats_of(grid, texts), {0, grid.rows});
}

Result<ArrowArrayStream> ArrowResult::batches(std::vector<Grid> results, uint64_t most_rows) {
  std::vector<std::string> formats;
  for (const Grid& grid : results) {
    RETURN_IF_ERROR(check(grid));
    std::vector<std::string> own = formats_of(grid, Texts::as_needed);
    if (formats.empty()) formats = own;
    for (size_t c = 0; c < own.size(); ++c)
      if (own[c] == "U") formats[c] = own[c];  // one form for all
  }
  Shared head = results.empty() ? std::make_shared<const ArrowResult>()
                                : made_of(results[0], formats, {0, 0});
  return stream_by(std::move(head), [results = std::move(results), formats = std::move(formats),
                                     most_rows, at = size_t{0}, first = uint64_t{0}]() mutable {
    if (at == results.size()) return Shared();
    const uint64_t count = std::min(most_rows, results[at].rows - first);
    Shared batch = made_of(results[at], formats, {first, count});
    first += count;
    if (first == results[at].rows) {
      results[at] = {};  // the batches have what they need of it
      ++at;
      first = 0;
    }
    return batch;
  });
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

ArrowArrayStream ArrowResult::stream(std::vector<Shared> results) {
  Shared head = results[0];
  return stream_by(std::move(head), [results = std::move(results), at = size_t{0}]() mutable {
    return at == results.size() ? Shared() : results[at++];
  });
}

}  // namespace rndn::runtime
