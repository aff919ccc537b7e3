// Columns of batches, and the loader around them.
#include "runtime/data/batches.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <new>

#include "libraries/base/system/parallel.h"
#include "runtime/data/arrow_values.h"
#include "runtime/data/text_codes.h"

namespace rndn::data {
namespace {

// A text column as batches make it. A Part belongs to one thread at a time.
class TextBuilder {
 public:
  TextBuilder(hir::BasicType type, uint64_t rows)
      : type_(type), rows_(rows), limit_(dictionary_limit(rows)), codes_(zeros(rows * 4)) {}

  void put(const Piece& piece, const ArrowFormat& format, FirstFailedRow& failure) {
    std::unique_ptr<Part> part = take_part();
    const bool coded = !too_many_.load(std::memory_order_relaxed);
    part->runs.push_back({piece.at, piece.rows, coded});
    if (coded)
      number(*part, piece, format, failure);
    else
      copy(*part, piece, format, failure);
    if (part->codes.texts().size() > limit_) too_many_ = true;
    std::lock_guard lock(mutex_);
    free_.push_back(std::move(part));
  }

  // All pieces have been put.
  Column finish(FirstFailedRow& failure) { return too_many_ || !join() ? plain(failure) : coded(); }

 private:
  struct Run {
    uint64_t first, rows;
    bool coded;
  };
  struct Part {
    TextCodes codes;
    std::vector<uint32_t> joined;      // of each code: that of the column,
    std::vector<uint64_t> handles;     // or where its text is
    std::vector<std::unique_ptr<char[]>> kept;
    size_t room = 0;  // in the last of these
    std::string pad;  // of runs that are not coded
    uint64_t pad_at = 0;
    std::vector<Run> runs;

    std::string_view keep(std::string_view text) {
      constexpr size_t block = 1 << 16;
      if (text.size() > room) {
        room = std::max(block, text.size());
        kept.push_back(std::make_unique_for_overwrite<char[]>(room));
        at = kept.back().get();
      }
      if (!text.empty()) std::memcpy(at, text.data(), text.size());
      const std::string_view copy(at, text.size());
      at += text.size();
      room -= text.size();
      return copy;
    }
    char* at = nullptr;
  };

  std::unique_ptr<Part> take_part() {
    std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<Part>();
    std::unique_ptr<Part> part = std::move(free_.back());
    free_.pop_back();
    return part;
  }

  template <class Use>
  void for_texts(const Piece& piece, const ArrowFormat& format, FirstFailedRow& failure,
                 Use&& use) {
    for (uint64_t i = 0; i < piece.rows; ++i) {
      const std::string_view text =
          is_there(piece, i) ? text_of(*piece.array, format, piece.first + i) : std::string_view();
      if (text.size() > longest_text)
        return failure.meet(piece.at + i,
                            fmt::format("is a text of more than {} bytes", longest_text));
      use(piece.at + i, text);
    }
  }

  void number(Part& part, const Piece& piece, const ArrowFormat& format, FirstFailedRow& failure) {
    auto* codes = reinterpret_cast<uint32_t*>(codes_->data());
    for_texts(piece, format, failure, [&](uint64_t row, std::string_view text) {
      codes[row] = part.codes.add(text, [&](std::string_view t) { return part.keep(t); });
    });
  }

  void copy(Part& part, const Piece& piece, const ArrowFormat& format, FirstFailedRow& failure) {
    uint64_t* handles = handles_of_column();
    for_texts(piece, format, failure, [&](uint64_t row, std::string_view text) {
      handles[row] = part.pad.size() << 24 | text.size();
      part.pad.append(text);
    });
  }

  uint64_t* handles_of_column() {
    std::call_once(has_handles_, [&] { handles_ = zeros(rows_ * 8); });
    return reinterpret_cast<uint64_t*>(handles_->data());
  }

  // One number for each text of the column; false: they are too many.
  bool join() {
    TextCodes all;
    for (const auto& part : free_)
      for (std::string_view text : part->codes.texts()) {
        part->joined.push_back(all.add(text));
        if (all.texts().size() > limit_) return false;
      }
    const std::vector<uint32_t> places = places_of(all.texts());
    values_ = at_places(all.texts(), places);
    for (const auto& part : free_)
      for (uint32_t& code : part->joined) code = places[code];
    return true;
  }

  template <class Use>
  void for_runs(Use&& use) {
    struct Task {
      Part* part;
      size_t begin, end;
    };
    constexpr size_t most = 64;  // runs
    std::vector<Task> tasks;
    for (const auto& part : free_)
      for (size_t r = 0; r < part->runs.size(); r += most)
        tasks.push_back({part.get(), r, std::min(r + most, part->runs.size())});
    parallel_for(tasks.size(), [&](size_t t) {
      for (size_t r = tasks[t].begin; r < tasks[t].end; ++r)
        use(*tasks[t].part, tasks[t].part->runs[r]);
    });
  }

  Column coded() {
    Column out = make_column(type_, rows_, Encoding::dictionary, code_width(values_.size()));
    out.dictionary->values = std::move(values_);
    const auto* from = reinterpret_cast<const uint32_t*>(codes_->data());
    for_runs([&](Part& part, const Run& run) {
      auto store = [&]<class To>(To* to) {
        for (uint64_t row = run.first; row < run.first + run.rows; ++row)
          to[row] = static_cast<To>(part.joined[from[row]]);
      };
      std::byte* data = out.data->data();
      if (out.width == 1)
        store(reinterpret_cast<uint8_t*>(data));
      else if (out.width == 2)
        store(reinterpret_cast<uint16_t*>(data));
      else
        store(reinterpret_cast<uint32_t*>(data));
    });
    return out;
  }

  // A text that was numbered stands once in the pad, for all of its rows.
  Column plain(FirstFailedRow& failure) {
    uint64_t* handles = handles_of_column();
    uint64_t size = 0;
    for (const auto& part : free_) {
      part->pad_at = size;
      for (std::string_view text : part->codes.texts()) {
        part->handles.push_back((part->pad.size() + size) << 24 | text.size());
        part->pad.append(text);
      }
      size += part->pad.size();
    }
    Column out = make_column(type_, 0, Encoding::text);
    if (size > longest_pad) {
      failure.meet(0, "begins more than 2^40 bytes of text");
      return out;
    }
    out.rows = rows_;
    out.pad = zeros(size);
    parallel_for(free_.size(), [&](size_t p) {
      Part& part = *free_[p];
      if (!part.pad.empty())
        std::memcpy(out.pad->data() + part.pad_at, part.pad.data(), part.pad.size());
      part.pad = std::string();
    });
    const auto* codes = reinterpret_cast<const uint32_t*>(codes_->data());
    for_runs([&](Part& part, const Run& run) {
      for (uint64_t row = run.first; row < run.first + run.rows; ++row)
        handles[row] = run.coded ? part.handles[codes[row]] : handles[row] + (part.pad_at << 24);
    });
    out.data = handles_;
    return out;
  }

  const hir::BasicType type_;
  const uint64_t rows_, limit_;
  std::shared_ptr<Bytes> codes_, handles_;  // 4 and 8 bytes per row
  std::once_flag has_handles_;
  std::atomic<bool> too_many_{false};
  std::mutex mutex_;
  std::vector<std::unique_ptr<Part>> free_;  // at the end all
  std::vector<std::string> values_;
};

// A column as batches make it.
class ColumnBuilder {
 public:
  ColumnBuilder(const ArrowType& type, uint64_t rows) : format_(*type.format), rows_(rows) {
    if (is_text(format_))
      text_.emplace(format_.stored, rows);
    else
      column_ = make_column(format_.stored, rows);
  }

  // A row that the column cannot hold; none: the rows are there.
  std::optional<FailedRow> put(const BatchVector& vector, uint64_t first, uint64_t rows) {
    FirstFailedRow failure;
    const void* buffers[] = {vector.validity, vector.values};
    const ArrowArray array{.length = static_cast<int64_t>(rows),
                           .null_count = vector.validity ? -1 : 0,
                           .offset = 0,
                           .n_buffers = 2,
                           .n_children = 0,
                           .buffers = buffers,
                           .children = nullptr,
                           .dictionary = nullptr,
                           .release = nullptr,
                           .private_data = nullptr};
    const Piece piece{.array = &array, .first = 0, .rows = rows, .at = first};
    if (text_)
      text_->put(piece, format_, failure);
    else
      put_values(piece, format_, column_, failure);
    for (uint64_t i = 0; vector.validity && i < rows; ++i)
      if (!is_there(piece, i)) miss(first + i);
    return failure.get();
  }

  // The column is empty where there is a failure.
  Column finish(FirstFailedRow& failure) {
    if (text_) {
      column_ = text_->finish(failure);
      text_.reset();
    }
    column_.validity = std::move(validity_);
    if (!failure.get()) compute_statistics(column_);
    return std::move(column_);
  }

 private:
  void miss(uint64_t row) {
    std::call_once(has_missing_, [&] { validity_ = std::make_shared<Bytes>(rows_, std::byte{1}); });
    (*validity_)[row] = std::byte{0};
    if (!text_) std::memset(column_.data->data() + row * column_.width, 0, column_.width);
  }

  const ArrowFormat& format_;
  const uint64_t rows_;
  Column column_;
  std::optional<TextBuilder> text_;
  std::once_flag has_missing_;
  std::shared_ptr<Bytes> validity_;
};

class BatchLoader final : public TableLoader {
 public:
  explicit BatchLoader(std::unique_ptr<BatchSource> source) : source_(std::move(source)) {}

  Result<void> describe_schema(const std::string& table) {
    TableSchema& out = schema_.tables.emplace_back();
    out.name = out.file = table;
    out.refused = source_->refused;
    std::map<std::string, std::string> names;
    for (const BatchSource::Column& c : source_->columns) {
      const auto [before, is_new] = names.emplace(lower_case(c.name), c.name);
      if (c.name.empty()) return input_error("{}: a column has no name", source_->place);
      if (!is_new)
        return input_error("{}: columns `{}` and `{}` have one name", source_->place,
                           before->second, c.name);
      out.columns.push_back({.name = c.name,
                             .type = c.type.format->stored,
                             .decimal = c.type.decimal,
                             .meaning = c.type.format->meaning});
    }
    if (out.columns.empty())
      return input_error("{}: there is no column{}", source_->place,
                         out.refused.empty() ? ""
                                             : " of a type that SQL has: `" + out.refused[0].name +
                                                   "` is " + out.refused[0].type);
    return {};
  }

  const Schema& schema() const override { return schema_; }
  Result<uint64_t> rows(size_t) override { return source_->rows(); }
  std::optional<uint64_t> rows_at_hand(size_t) const override { return source_->rows_at_hand(); }
  std::string fingerprint(size_t, size_t column) const override {
    const std::string contents = source_->fingerprint();
    return contents.empty() ? "" : contents + "\n" + schema_.tables[0].columns[column].name;
  }
  std::vector<RowRange> ranges(size_t, std::span<const size_t> columns) const override {
    return source_->ranges(columns);
  }
  std::unique_ptr<TableLoader> of_ranges(size_t, std::span<const size_t> ranges) const override {
    std::unique_ptr<BatchSource> some = source_->of_ranges(ranges);
    if (!some) return nullptr;
    auto loader = std::make_unique<BatchLoader>(std::move(some));
    loader->schema_ = schema_;
    return loader;
  }
  std::string describe(size_t, size_t column, uint64_t row) override {
    return fmt::format("{} of column `{}`", source_->describe(row),
                       schema_.tables[0].columns[column].name);
  }

  Result<std::vector<Column>> load(size_t table, std::span<const size_t> positions) override {
    return load(table, positions, {});
  }
  Result<std::vector<Column>> load(size_t, std::span<const size_t> positions, const Shown& shown) override {
    try {
      ASSIGN_OR_RETURN(auto made, source_->make(positions, shown));
      std::vector<size_t> left;
      for (size_t i = 0; i < positions.size(); ++i)
        if (!made[i]) left.push_back(positions[i]);
      std::vector<Column> columns;
      if (!left.empty()) {
        ASSIGN_OR_RETURN(columns, load_all(left));
      }
      for (size_t i = 0; i < made.size(); ++i)
        if (made[i])
          columns.insert(columns.begin() + static_cast<std::ptrdiff_t>(i), *std::move(made[i]));
      return columns;
    } catch (const std::bad_alloc&) {
      return world_error("not enough memory for {} columns of {}", positions.size(),
                         source_->place);
    }
  }

 private:
  Result<std::vector<Column>> load_all(std::span<const size_t> positions) {
    std::vector<std::unique_ptr<ColumnBuilder>> builders;
    uint64_t rows = 0;
    std::atomic<uint64_t> seen{0};
    auto changed = [&] {
      return input_error("{}: it has changed since it was opened", source_->place);
    };
    auto begin = [&](uint64_t count) -> Result<void> {
      if (count > longest_vector)
        return input_error("{}: there are more than {} rows", source_->place, longest_vector);
      rows = count;
      for (size_t p : positions)
        builders.push_back(std::make_unique<ColumnBuilder>(source_->columns[p].type, rows));
      return {};
    };
    auto take = [&](const Batch& batch) -> Result<void> {
      if (batch.first > rows || batch.rows > rows - batch.first) return changed();
      seen += batch.rows;
      for (size_t c = 0; c < builders.size(); ++c) {
        if (const auto failed = builders[c]->put(batch.columns[c], batch.first, batch.rows))
          return input_error("{} {} ({})", describe(0, positions[c], failed->row), failed->reason,
                             source_->columns[positions[c]].type.format->name);
      }
      return {};
    };
    RETURN_IF_ERROR(source_->read(positions, begin, take));
    if (seen != rows) return changed();
    std::vector<Column> columns;
    for (size_t c = 0; c < builders.size(); ++c) {
      FirstFailedRow failure;
      columns.push_back(builders[c]->finish(failure));
      if (const auto& failed = failure.get())
        return input_error("{} {}", describe(0, positions[c], failed->row), failed->reason);
      builders[c].reset();
    }
    return columns;
  }

  static std::string lower_case(std::string text) {
    for (char& c : text)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return text;
  }

  std::unique_ptr<BatchSource> source_;
  Schema schema_;
};

}  // namespace

Result<std::unique_ptr<TableLoader>> open_batches(const std::string& table,
                                                  std::unique_ptr<BatchSource> source) {
  auto loader = std::make_unique<BatchLoader>(std::move(source));
  RETURN_IF_ERROR(loader->describe_schema(table));
  return std::unique_ptr<TableLoader>(std::move(loader));
}

}  // namespace rndn::data
