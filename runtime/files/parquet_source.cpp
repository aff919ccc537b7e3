// Reading of Parquet files, column chunk by column chunk.
//
// Footers are read when the table is opened; they say its columns, its rows and where each column's
// chunk of each row group is. Chunks of all columns that are asked for are then read and decoded on
// all cores, column after column, so that the first are complete, and can be used, while others are
// decoded. Taken are files whose columns are not nested and have types as below, in pages as
// parquet_pages.h has them, not compressed or by Snappy or ZSTD: what DuckDB, Arrow, Spark and
// their kin write if they are not told otherwise. The other reader takes all other columns, those that
// seem damaged as well, so that its words for what is wrong stand.
// Row groups can be read alone, where all columns that are asked for are taken here: what footers
// say of their values and nulls is given as facts, which are checked where they were relied upon.
#include "runtime/files/parquet_source.h"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <future>
#include <map>
#include <mutex>
#include <set>

#include "libraries/base/system/cancel.h"
#include "libraries/base/system/parallel.h"
#include "libraries/base/system/wait.h"
#include "runtime/data/arrow_values.h"
#include "runtime/files/duckdb_source.h"
#include "runtime/files/file_bytes.h"
#include "runtime/files/parquet_columns.h"
#include "runtime/files/parquet_footer.h"

namespace rndn::files {
namespace {

using data::ArrowFormat;
using data::Meaning;
using hir::BasicType;
using enum data::ArrowLayout;

// ---- types

// A column's type by what the file says: its physical type, and its logical type or, in older
// files, its converted type. 0 or -1: none.
struct TypeRow {
  Physical physical;
  int64_t logical, converted;
  ArrowFormat format;
  int64_t bits = 0;  // of integers
  bool is_signed = false;
  int64_t unit = 0;  // of timestamps: 1 milliseconds, 2 microseconds
  bool is_utc = false;
};
constexpr int64_t string_ = 1, decimal_ = 5, date_ = 6, timestamp_ = 8, integer_ = 10;
constexpr TypeRow types[] = {
    {Physical::boolean, 0, -1, {"", "BOOLEAN", bytes, 1, BasicType::boolean}},
    {Physical::int32, 0, -1, {"", "INTEGER", signed_, 4, BasicType::i32}},
    {Physical::int32, integer_, 15, {"", "TINYINT", signed_, 4, BasicType::i8}, 8, true},
    {Physical::int32, integer_, 16, {"", "SMALLINT", signed_, 4, BasicType::i16}, 16, true},
    {Physical::int32, integer_, 17, {"", "INTEGER", signed_, 4, BasicType::i32}, 32, true},
    {Physical::int32, integer_, 11, {"", "UTINYINT", unsigned_, 4, BasicType::i16, Meaning::u8}, 8},
    {Physical::int32,
     integer_,
     12,
     {"", "USMALLINT", unsigned_, 4, BasicType::i32, Meaning::u16},
     16},
    {Physical::int32,
     integer_,
     13,
     {"", "UINTEGER", unsigned_, 4, BasicType::i64, Meaning::u32},
     32},
    {Physical::int32, date_, 6, {"", "DATE", signed_, 4, BasicType::date}},
    {Physical::int32, decimal_, 5, {"", "DECIMAL", decimal, 4, BasicType::i64}},
    {Physical::int64, 0, -1, {"", "BIGINT", signed_, 8, BasicType::i64}},
    {Physical::int64, integer_, 18, {"", "BIGINT", signed_, 8, BasicType::i64}, 64, true},
    {Physical::int64,
     integer_,
     14,
     {"", "UBIGINT", unsigned_, 8, BasicType::i64, Meaning::u64},
     64},
    {Physical::int64, decimal_, 5, {"", "DECIMAL", decimal, 8, BasicType::i64}},
    {Physical::int64,
     timestamp_,
     -1,
     {"", "TIMESTAMP", signed_, 8, BasicType::i64, Meaning::timestamp, 1000},
     0,
     false,
     1,
     false},
    {Physical::int64,
     timestamp_,
     -1,
     {"", "TIMESTAMP", signed_, 8, BasicType::i64, Meaning::timestamp},
     0,
     false,
     2,
     false},
    {Physical::int64,
     timestamp_,
     -1,
     {"", "TIMESTAMP WITH TIME ZONE", signed_, 8, BasicType::i64, Meaning::timestamp_utc, 1000},
     0,
     false,
     1,
     true},
    {Physical::int64,
     timestamp_,
     -1,
     {"", "TIMESTAMP WITH TIME ZONE", signed_, 8, BasicType::i64, Meaning::timestamp_utc},
     0,
     false,
     2,
     true},
    {Physical::fixed, decimal_, 5, {"", "DECIMAL", decimal, 16, BasicType::i64}},
    {Physical::float_, 0, -1, {"", "FLOAT", floats, 4, BasicType::f32}},
    {Physical::double_, 0, -1, {"", "DOUBLE", floats, 8, BasicType::f64}},
    {Physical::bytes, string_, 0, {"", "VARCHAR", pointers, 16, BasicType::str}},
};

// Null: another reader knows it, or nobody does.
const TypeRow* type_of(const SchemaElement& e) {
  for (const TypeRow& row : types) {
    if (e.type != static_cast<int64_t>(row.physical)) continue;
    if (e.logical ? e.logical != row.logical : e.converted.value_or(-1) != row.converted) continue;
    if (e.logical == 0 && row.logical == timestamp_) continue;
    if (e.logical == integer_ && (e.bits != row.bits || e.is_signed != row.is_signed)) continue;
    if (e.logical == timestamp_ && (e.unit != row.unit || e.is_utc != row.is_utc)) continue;
    return &row;
  }
  return nullptr;
}

// A column of the table as its files have it.
struct Leaf {
  std::string name;
  const TypeRow* type = nullptr;
  const ArrowFormat* format = nullptr;  // the type's, or a wide one
  bool may_miss = false;
  uint32_t length = 0;  // of type `fixed`
  std::optional<data::Decimal> decimal;
  size_t chunk = 0;  // of each row group

  bool operator==(const Leaf&) const = default;
};

// The columns that are not nested and have a type that is known; `all`: the others are none.
std::vector<Leaf> leaves_of(const Footer& footer, bool& all) {
  std::vector<Leaf> leaves;
  size_t chunk = 0;
  all = true;
  for (size_t i = 1; i < footer.schema.size();) {
    const SchemaElement& e = footer.schema[i];
    if (e.children != 0 || !e.type) {  // its nodes follow
      all = false;
      int64_t open = 1;
      for (; open > 0 && i < footer.schema.size(); ++i) {
        const SchemaElement& node = footer.schema[i];
        if (node.children < 0 || static_cast<uint64_t>(node.children) > footer.schema.size())
          return leaves;
        open += node.children - 1;
        chunk += node.children == 0;
      }
      continue;
    }
    Leaf leaf{.name = e.name, .type = type_of(e), .may_miss = e.repetition == 1, .chunk = chunk};
    if (leaf.type && leaf.type->format.layout == decimal) {
      if (e.precision < 1 || e.precision > 38 || e.scale < 0 || e.scale > e.precision)
        leaf.type = nullptr;
      leaf.decimal =
          data::Decimal{static_cast<uint8_t>(e.precision), static_cast<uint8_t>(e.scale)};
    }
    if (leaf.type && leaf.type->physical == Physical::fixed) {
      if (e.type_length < 1 || e.type_length > 16) leaf.type = nullptr;
      leaf.length = static_cast<uint32_t>(std::clamp<int64_t>(e.type_length, 0, 16));
    }
    if (leaf.type && e.repetition <= 1 && !e.name.empty()) {
      leaf.format = &leaf.type->format;
      leaves.push_back(std::move(leaf));
    } else {
      all = false;
    }
    ++chunk;
    ++i;
  }
  return leaves;
}

// ---- files

struct ParquetFile {
  std::string path, stamp;
  uint64_t size = 0, first = 0, rows = 0;
  Footer footer;
};

// The end of the file: the footer, its length, and four characters. None: it is no such file.
std::optional<Footer> footer_of(const std::string& path, uint64_t size) {
  constexpr uint64_t tail = 8;
  const OpenFile file(path);
  std::byte end[tail];
  if (size < tail || !file.read(size - tail, end)) return std::nullopt;
  uint32_t length;
  std::memcpy(&length, end, sizeof length);
  if (std::memcmp(end + 4, "PAR1", 4) != 0 || length > size - tail) return std::nullopt;
  std::vector<std::byte> bytes(length);
  if (!file.read(size - tail - length, bytes)) return std::nullopt;
  std::optional<Footer> footer = read_footer(bytes);
  if (!footer || footer->rows < 0) return std::nullopt;
  uint64_t rows = 0;
  for (RowGroup& group : footer->groups) {
    if (group.rows < 0 || group.rows > footer->rows) return std::nullopt;
    group.first = rows;
    group.number = static_cast<size_t>(&group - footer->groups.data());
    rows += static_cast<uint64_t>(group.rows);
  }
  if (rows != static_cast<uint64_t>(footer->rows)) return std::nullopt;
  return footer;
}

constexpr uint64_t decodable = uint64_t{1} << static_cast<unsigned>(Encoding::plain) |
                               uint64_t{1} << static_cast<unsigned>(Encoding::plain_dictionary) |
                               uint64_t{1} << static_cast<unsigned>(Encoding::rle) |
                               uint64_t{1} << static_cast<unsigned>(Encoding::rle_dictionary) |
                               uint64_t{1} << static_cast<unsigned>(Encoding::byte_stream_split);

// Where its pages are: the dictionary's first.
uint64_t begin_of(const Chunk& c) {
  return static_cast<uint64_t>(
      c.dictionary_at.value_or(0) > 0 ? std::min(*c.dictionary_at, c.data_at) : c.data_at);
}

bool is_codec(int64_t codec) {
  return codec == static_cast<int64_t>(Codec::none) ||
         codec == static_cast<int64_t>(Codec::snappy) || codec == static_cast<int64_t>(Codec::zstd);
}

bool is_plain(const Chunk& c, const Leaf& leaf, const RowGroup& group, uint64_t file_size) {
  return !c.is_elsewhere && c.path == leaf.name &&
         c.type == static_cast<int64_t>(leaf.type->physical) && c.values == group.rows &&
         is_codec(c.codec) && (c.encodings & ~decodable) == 0 && c.data_at > 0 &&
         c.compressed >= 0 && c.uncompressed >= 0 && begin_of(c) <= file_size &&
         static_cast<uint64_t>(c.compressed) <= file_size - begin_of(c);
}

// Bytes of text that a chunk can hold: its pages', less the length of each text where all stand in
// plain pages.
uint64_t characters_of(const Chunk& c) {
  const auto all = static_cast<uint64_t>(c.uncompressed);
  const bool is_coded =
      c.encodings & ~(uint64_t{1} | uint64_t{1} << static_cast<unsigned>(Encoding::rle));
  if (is_coded || !c.nulls || *c.nulls < 0 || *c.nulls > c.values) return all;
  return all - std::min(all, static_cast<uint64_t>(c.values - *c.nulls) * 4);
}

// Whether values of the column may be beyond 64 bits.
bool may_be_wide(const Leaf& leaf) {
  return leaf.type->physical == Physical::fixed ? leaf.decimal && leaf.decimal->precision > 18
                                                : leaf.format->meaning == Meaning::u64;
}
// Whether the chunk's bounds say that none is.
bool is_within_64_bits(const Chunk& c, const Leaf& leaf) {
  if (c.nulls && *c.nulls == c.values) return true;
  if (!c.least || !c.greatest) return false;
  const auto byte = [](const std::string& bound, size_t i) {
    return static_cast<uint8_t>(bound[i]);
  };
  for (const std::string* bound : {&*c.least, &*c.greatest}) {
    if (leaf.type->physical == Physical::fixed) {  // the high end first
      if (bound->size() != leaf.length || bound->empty()) return false;
      if (bound->size() <= 8) continue;
      const size_t above = bound->size() - 8;
      const uint8_t sign = byte(*bound, above) & 0x80 ? 0xff : 0;
      for (size_t i = 0; i < above; ++i)
        if (byte(*bound, i) != sign) return false;
    } else if (bound->size() != 8 || byte(*bound, 7) & 0x80) {
      return false;
    }
  }
  return true;
}

// A bound as the column's elements have it; none: it is not of the type's size.
std::optional<__int128> integer_of(const std::string& bound, const Leaf& leaf) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(bound[i]); };
  const bool is_fixed = leaf.type->physical == Physical::fixed;  // the high end first
  const size_t size = is_fixed                                      ? leaf.length
                      : leaf.type->physical == Physical::boolean ? 1
                                                                 : leaf.type->format.bytes;
  if (bound.size() != size || size == 0) return std::nullopt;
  const uint8_t high = byte(is_fixed ? 0 : size - 1);
  const bool is_signed = leaf.type->format.layout != unsigned_;
  unsigned __int128 value = is_signed && high & 0x80 ? ~static_cast<unsigned __int128>(0) : 0;
  for (size_t i = 0; i < size; ++i) value = value << 8 | byte(is_fixed ? i : size - 1 - i);
  return static_cast<__int128>(value) * leaf.format->mul;
}

template <class Float>
std::optional<double> float_of(const std::string& bound) {
  Float value;
  if (bound.size() != sizeof value) return std::nullopt;
  std::memcpy(&value, bound.data(), sizeof value);
  return std::isnan(value) ? std::nullopt : std::optional<double>(value);
}

template <class T>
std::optional<std::pair<T, T>> both(std::optional<T> least, std::optional<T> greatest) {
  if (!least || !greatest || *greatest < *least) return std::nullopt;
  return std::pair(*std::move(least), *std::move(greatest));
}

data::ColumnFacts facts_of(const Chunk& c, const Leaf& leaf) {
  data::ColumnFacts facts{.bytes = static_cast<uint64_t>(c.compressed),
                          .nulls = {},
                          .integers = {},
                          .floats = {},
                          .texts = {}};
  if (!leaf.may_miss)
    facts.nulls = 0;
  else if (c.nulls && *c.nulls >= 0 && *c.nulls <= c.values)
    facts.nulls = static_cast<uint64_t>(*c.nulls);
  if (!c.least || !c.greatest) return facts;
  switch (leaf.type->physical) {
    case Physical::bytes: facts.texts = both<std::string>(c.least, c.greatest); break;
    case Physical::float_:
      facts.floats = both(float_of<float>(*c.least), float_of<float>(*c.greatest));
      break;
    case Physical::double_:
      facts.floats = both(float_of<double>(*c.least), float_of<double>(*c.greatest));
      break;
    default: facts.integers = both(integer_of(*c.least, leaf), integer_of(*c.greatest, leaf));
  }
  return facts;
}

// Hive's folders `key=value` are columns, which hide those of the files.
bool is_key_of_folder(const std::string& path, const std::string& name) {
  return ("/" + path).find("/" + name + "=") != std::string::npos;
}

class ParquetSource final : public data::BatchSource {
 public:
  ParquetSource(const std::string& where, std::vector<ParquetFile> files, OpenOther open_other)
      : files_(std::move(files)), open_other_(std::move(open_other)) {
    place = where;
    uint64_t rows = 0;
    for (ParquetFile& file : files_) {
      file.first = rows;
      rows += file.rows = static_cast<uint64_t>(file.footer.rows);
    }
    rows_ = rows;
  }

  // The columns that are said by the files alone, or by the other reader.
  Result<void> describe_columns() {
    bool all = true, same = true;
    leaves_ = leaves_of(files_[0].footer, all);
    for (const ParquetFile& file : files_) {
      bool ignored;
      if (&file != &files_[0]) same &= leaves_of(file.footer, ignored) == leaves_;
      for (const Leaf& leaf : leaves_) all &= !is_key_of_folder(file.path, leaf.name);
      all &= file.path.find('=') == std::string::npos;
    }
    if (!same) leaves_.clear();
    for (Leaf& leaf : leaves_)
      if (may_be_wide(leaf) && !fits_64_bits(leaf)) leaf.format = data::wide_format(*leaf.format);
    if (all && same && !has_repeated_names()) {
      for (const Leaf& leaf : leaves_)
        columns.push_back({leaf.name, {.format = leaf.format, .decimal = leaf.decimal}});
      for (size_t i = 0; i < leaves_.size(); ++i) leaf_of_.push_back(i);
      return {};
    }
    RETURN_IF_ERROR(open_other());
    columns = other_->columns;
    refused = other_->refused;
    for (Column& c : columns) {
      for (const Leaf& leaf : leaves_)
        if (leaf.name == c.name && c.type.format->stored == BasicType::i128 &&
            leaf.format->meaning == c.type.format->meaning && leaf.decimal == c.type.decimal)
          c.type.format = leaf.format->stored == BasicType::i128
                              ? leaf.format
                              : data::narrow_format(*c.type.format);
      leaf_of_.push_back(leaf_for(c));
    }
    return {};
  }

  Result<uint64_t> rows() override { return rows_; }
  std::optional<uint64_t> rows_at_hand() const override { return rows_; }
  std::string fingerprint() const override { return ""; }
  std::string describe(uint64_t row) override {
    for (const Part& part : parts()) {
      const RowGroup& group = part.file->footer.groups[part.group];
      if (row >= part.first && row - part.first < static_cast<uint64_t>(group.rows))
        return fmt::format("{}: row {}", part.file->path, group.first + row - part.first + 1);
    }
    return fmt::format("{}: row {}", place, row + 1);
  }

  std::vector<data::RowRange> ranges(std::span<const size_t> wanted) const override;
  std::unique_ptr<data::BatchSource> of_ranges(std::span<const size_t> ranges) const override;

  Result<void> read(std::span<const size_t> wanted, const Begin& begin, const Take& take) override {
    if (is_part_) return input_error("{}", problem_.empty() ? place + ": it cannot be read" : problem_);
    Result<void> opened = open_other();
    if (!opened)
      return problem_.empty() ? opened : input_error("{} ({})", problem_, opened.error().message);
    std::vector<size_t> positions;
    for (size_t c : wanted) {
      const auto found =
          std::find_if(other_->columns.begin(), other_->columns.end(),
                       [&](const Column& other) { return other.name == columns[c].name; });
      if (found == other_->columns.end())
        return input_error("{}: it has changed since it was opened", place);
      positions.push_back(static_cast<size_t>(found - other_->columns.begin()));
    }
    // Which may have another form there: the caller reads by the forms of `columns`.
    for (size_t i = 0; i < wanted.size(); ++i) {
      data::ArrowType& type = columns[wanted[i]].type;
      const bool is_wide = type.format->stored == BasicType::i128;
      type = other_->columns[positions[i]].type;
      if (!is_wide && type.format->stored == BasicType::i128)
        type.format = data::narrow_format(*type.format);
    }
    return other_->read(positions, begin, take);
  }

  Result<std::vector<std::optional<data::Column>>> make(std::span<const size_t> wanted,
                                                        const data::Shown& shown) override;

 private:
  struct Making {
    const Leaf* leaf;
    std::unique_ptr<ChunkedColumn> column;
    std::atomic<bool> failed{false};
    std::atomic<size_t> left{0};  // parts that are still to be decoded, then to be placed
    std::optional<data::Column> made;
  };
  struct Part {
    const ParquetFile* file;
    size_t group;
    uint64_t first;  // row of the table
  };
  static constexpr size_t no_leaf = SIZE_MAX;

  bool has_repeated_names() const {
    const auto before = [](const std::string* a, const std::string* b) {
      return strcasecmp(a->c_str(), b->c_str()) < 0;
    };
    std::set<const std::string*, decltype(before)> names(before);
    return !std::all_of(leaves_.begin(), leaves_.end(),
                        [&](const Leaf& leaf) { return names.insert(&leaf.name).second; });
  }
  bool fits_64_bits(const Leaf& leaf) const {
    for (const ParquetFile& file : files_)
      for (const RowGroup& group : file.footer.groups)
        if (group.rows > 0 && (leaf.chunk >= group.chunks.size() ||
                               !is_within_64_bits(group.chunks[leaf.chunk], leaf)))
          return false;
    return true;
  }
  size_t leaf_for(const Column& c) const {
    size_t found = no_leaf;
    for (size_t i = 0; i < leaves_.size(); ++i) {
      if (leaves_[i].name != c.name) continue;
      const ArrowFormat &mine = *leaves_[i].format, &its = *c.type.format;
      if (found != no_leaf || mine.stored != its.stored || mine.meaning != its.meaning ||
          leaves_[i].decimal != c.type.decimal)
        return no_leaf;
      found = i;
    }
    for (const ParquetFile& file : files_)
      if (is_key_of_folder(file.path, c.name)) return no_leaf;
    return found;
  }

  Result<void> open_other() {
    if (other_) return {};
    ASSIGN_OR_RETURN(other_, open_other_());
    return {};
  }
  Result<void> check_unchanged() const {
    for (const ParquetFile& file : files_)
      if (stamp_of(file.path) != file.stamp)
        return input_error("{}: it has changed since it was opened", file.path);
    return {};
  }

  // The chunk of a column, if it can be decoded here.
  const Chunk* chunk_of(const Part& part, const Leaf& leaf) const {
    const RowGroup& group = part.file->footer.groups[part.group];
    if (leaf.chunk >= group.chunks.size()) return nullptr;
    const Chunk& chunk = group.chunks[leaf.chunk];
    return is_plain(chunk, leaf, group, part.file->size) ? &chunk : nullptr;
  }
  bool is_as_said(const data::Column& column, const Leaf& leaf) const;

  std::vector<Part> parts() const {
    std::vector<Part> parts;
    for (const ParquetFile& file : files_) {
      uint64_t first = file.first;
      for (size_t g = 0; g < file.footer.groups.size(); ++g) {
        parts.push_back({&file, g, first});
        first += static_cast<uint64_t>(file.footer.groups[g].rows);
      }
    }
    return parts;
  }

  void fail(Making& making, const Part& part, const char* wrong) {
    if (making.failed.exchange(true)) return;
    std::lock_guard lock(mutex_);
    problem_ = fmt::format("{}: column `{}`, row group {}: {}", part.file->path, making.leaf->name,
                           part.file->footer.groups[part.group].number, wrong);
  }
  void decode(Making& making, const Part& part, size_t number, Buffer& bytes, Buffer& scratch);
  class Work;

  std::vector<ParquetFile> files_;
  const OpenOther open_other_;
  std::unique_ptr<data::BatchSource> other_;
  std::vector<Leaf> leaves_;
  std::vector<size_t> leaf_of_;  // by column; no_leaf: the other reader has it
  uint64_t rows_ = 0;
  bool is_part_ = false;  // some row groups alone, which the other reader cannot tell apart
  std::mutex mutex_;
  std::string problem_;  // why a column was left to the other reader
};

void ParquetSource::decode(Making& making, const Part& part, size_t number, Buffer& bytes,
                           Buffer& scratch) {
  const RowGroup& group = part.file->footer.groups[part.group];
  const Chunk& chunk = group.chunks[making.leaf->chunk];
  const auto size = static_cast<size_t>(chunk.compressed);
  const std::span<std::byte> read(bytes.make(size), size);
  if (!OpenFile(part.file->path).read(begin_of(chunk), read))
    return fail(making, part, "it cannot be read");
  const auto sink = making.column->sink(number);
  const char* wrong =
      decode_chunk(read,
                   {making.leaf->type->physical, making.leaf->length, making.leaf->may_miss,
                    chunk.codec},
                   part.first, static_cast<uint64_t>(group.rows), scratch, *sink);
  if (wrong) return fail(making, part, wrong);
  making.column->finish_part(number);
}

// The steps of all columns on all cores: a column's parts are decoded, joined and placed, and then it is
// complete. The first columns come first, and what completes one comes before what begins another, so that
// columns are complete one after the other. Threads take steps until there are none.
class ParquetSource::Work {
 public:
  Work(ParquetSource& source, std::span<const std::unique_ptr<Making>> makings, std::span<const Part> parts)
      : source_(source), parts_(parts), columns_left_(makings.size()) {
    for (const auto& making : makings) {
      making->left = parts.size();
      for (size_t p = 0; p < parts.size(); ++p) steps_.push_back({Step::decode, making.get(), p});
      if (parts.empty()) steps_.push_back({Step::join, making.get(), 0});
    }
  }

  void run() try {
    Buffer bytes, page;
    while (const std::optional<Step> step = next()) {
      Making& m = *step->making;
      const size_t p = step->part;
      switch (step->kind) {
        case Step::decode:
          if (!m.failed) source_.decode(m, parts_[p], p, bytes, page);
          if (--m.left == 0) add({Step::join, &m, 0}, 1);
          break;
        case Step::join:
          if (!m.failed) m.column->join();
          m.left = parts_.size();
          if (parts_.empty() || m.failed)
            complete(m);
          else
            add({Step::place, &m, 0}, parts_.size());
          break;
        case Step::place:
          if (!m.column->place(p)) source_.fail(m, parts_[p], "its texts are longer than the file says");
          if (--m.left == 0) complete(m);
          break;
      }
    }
  } catch (...) {  // cancelled, or out of memory
    end();
    throw;
  }

  // Nobody waits for what will not come: the threads have stopped, or one of them cannot go on.
  void end() {
    std::lock_guard lock(mutex_);
    is_over_ = true;
    changed_.notify_all();
  }

  // Waits for a column that is complete; null: there are no more.
  Making* take() {
    std::unique_lock lock(mutex_);
    wait_for_change(changed_, lock, [&] { return !complete_.empty() || columns_left_ == 0 || is_over_; });
    if (complete_.empty()) return nullptr;
    Making* const m = complete_.front();
    complete_.pop_front();
    return m;
  }

 private:
  struct Step {
    enum Kind : uint8_t { decode, join, place } kind;
    Making* making;
    size_t part;
  };

  std::optional<Step> next() {
    throw_if_cancelled();
    std::unique_lock lock(mutex_);
    wait_for_change(changed_, lock, [&] { return !steps_.empty() || columns_left_ == 0 || is_over_; });
    if (steps_.empty() || is_over_) return std::nullopt;
    const Step step = steps_.front();
    steps_.pop_front();
    return step;
  }
  void add(Step step, size_t parts) {
    std::lock_guard lock(mutex_);
    for (size_t p = parts; p-- > 0;) {
      step.part = p;
      steps_.push_front(step);
    }
    changed_.notify_all();
  }
  void complete(Making& m) {
    if (!m.failed) m.made = m.column->take();
    std::lock_guard lock(mutex_);
    complete_.push_back(&m);
    --columns_left_;
    changed_.notify_all();
  }

  ParquetSource& source_;
  std::span<const Part> parts_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Step> steps_;
  std::deque<Making*> complete_;
  size_t columns_left_;
  bool is_over_ = false;
};

Result<std::vector<std::optional<data::Column>>> ParquetSource::make(std::span<const size_t> wanted,
                                                                     const data::Shown& shown) {
  std::vector<std::optional<data::Column>> made(wanted.size());
  if (rows_ > data::longest_vector) return made;
  const std::vector<Part> parts = this->parts();
  std::vector<std::unique_ptr<Making>> makings;
  std::vector<size_t> place_of;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const size_t position = leaf_of_[wanted[i]];
    if (position == no_leaf) continue;
    const Leaf& leaf = leaves_[position];
    std::vector<ColumnPart> places;
    uint64_t characters = 0;
    for (const Part& part : parts) {
      const Chunk* chunk = chunk_of(part, leaf);
      if (!chunk || (characters += characters_of(*chunk)) > data::longest_pad) break;
      places.push_back({part.first, static_cast<uint64_t>(chunk->values), characters_of(*chunk)});
    }
    if (places.size() != parts.size()) continue;
    auto making = std::make_unique<Making>();
    making->leaf = &leaf;
    making->column =
        make_column(*leaf.format, leaf.type->physical, leaf.length, std::move(places));
    makings.push_back(std::move(making));
    place_of.push_back(i);
  }
  if (makings.empty()) return made;

  Work work(*this, makings, parts);
  ThreadPool pool(static_cast<unsigned>(std::clamp<size_t>(
      makings.size() * std::max<size_t>(parts.size(), 1), 1, hardware_threads())));
  const auto all = [&] { pool.run(pool.threads(), [&](size_t, unsigned) { work.run(); }); };
  if (shown) {
    std::future<void> done = std::async(std::launch::async, [&, token = CancelToken::current()] {
      const CancelScope scope(token);
      try {
        all();
      } catch (...) {  // perhaps before any thread has begun
        work.end();
        throw;
      }
    });
    while (const Making* m = work.take())
      if (m->made) shown(*m->made);
    done.get();
  } else {
    all();
  }
  RETURN_IF_ERROR(check_unchanged());
  for (size_t m = 0; m < makings.size(); ++m) {
    if (makings[m]->failed) continue;
    data::Column column = *std::move(makings[m]->made);
    if (is_part_ && !is_as_said(column, *makings[m]->leaf))
      return input_error("{}: column `{}` has values or nulls that the footer denies", place,
                         makings[m]->leaf->name);
    made[place_of[m]] = std::move(column);
  }
  return made;
}

std::vector<data::RowRange> ParquetSource::ranges(std::span<const size_t> wanted) const {
  std::vector<data::RowRange> ranges;
  for (const Part& part : parts()) {
    data::RowRange& range = ranges.emplace_back();
    range.rows = static_cast<uint64_t>(part.file->footer.groups[part.group].rows);
    for (size_t c : wanted) {
      const size_t position = leaf_of_[c];
      const Chunk* chunk = position == no_leaf ? nullptr : chunk_of(part, leaves_[position]);
      if (!chunk) return {};
      range.columns.push_back(facts_of(*chunk, leaves_[position]));
    }
  }
  return ranges;
}

std::unique_ptr<data::BatchSource> ParquetSource::of_ranges(std::span<const size_t> ranges) const {
  std::vector<ParquetFile> files = files_;
  for (ParquetFile& file : files) {
    file.footer.groups.clear();
    file.footer.rows = 0;
  }
  const std::vector<Part> parts = this->parts();
  for (size_t r : ranges) {
    ParquetFile& file = files[static_cast<size_t>(parts[r].file - files_.data())];
    file.footer.groups.push_back(parts[r].file->footer.groups[parts[r].group]);
    file.footer.rows += file.footer.groups.back().rows;
  }
  std::erase_if(files, [](const ParquetFile& file) { return file.footer.groups.empty(); });
  auto some = std::make_unique<ParquetSource>(place, std::move(files), open_other_);
  // As all row groups decide it.
  some->columns = columns;
  some->refused = refused;
  some->leaves_ = leaves_;
  some->leaf_of_ = leaf_of_;
  some->is_part_ = true;
  return some;
}

// Others have relied on what the footers say: bounds of integers, and where nothing is missing.
bool ParquetSource::is_as_said(const data::Column& column, const Leaf& leaf) const {
  std::optional<std::pair<__int128, __int128>> all;
  bool has_bounds = true, may_miss = false;
  for (const Part& part : parts()) {
    const data::ColumnFacts facts = facts_of(*chunk_of(part, leaf), leaf);
    may_miss |= facts.nulls != 0;
    if (facts.nulls == static_cast<uint64_t>(part.file->footer.groups[part.group].rows)) continue;
    has_bounds &= facts.integers.has_value();
    if (!facts.integers) continue;
    if (!all) all = facts.integers;
    all = {std::min(all->first, facts.integers->first), std::max(all->second, facts.integers->second)};
  }
  if (column.has_nulls() && !may_miss) return false;
  if (!has_bounds || !all || column.encoding != data::Encoding::plain) return true;
  if (column.has_nulls()) all = {std::min<__int128>(all->first, 0), std::max<__int128>(all->second, 0)};
  const data::Statistics& s = column.statistics;
  if (s.known) return s.min >= all->first && s.max <= all->second;
  return !s.wide_known || (s.wide_min >= all->first && s.wide_max <= all->second);
}

}  // namespace

Result<std::unique_ptr<data::BatchSource>> open_parquet(const std::string& place,
                                                        std::vector<std::string> paths,
                                                        OpenOther open_other) {
  std::vector<ParquetFile> files;
  int64_t rows = 0;
  for (std::string& path : paths) {
    struct stat s {};
    if (stat(path.c_str(), &s) != 0 || !S_ISREG(s.st_mode)) return open_other();
    ParquetFile file{.path = std::move(path), .size = static_cast<uint64_t>(s.st_size)};
    file.stamp = stamp_of(file.path);
    std::optional<Footer> footer = footer_of(file.path, file.size);
    if (!footer || footer->schema.empty() ||
        __builtin_add_overflow(rows, footer->rows, &rows))
      return open_other();
    file.footer = *std::move(footer);
    files.push_back(std::move(file));
  }
  if (files.empty()) return open_other();
  auto source = std::make_unique<ParquetSource>(place, std::move(files), std::move(open_other));
  RETURN_IF_ERROR(source->describe_columns());
  return std::unique_ptr<data::BatchSource>(std::move(source));
}

}  // namespace rndn::files
