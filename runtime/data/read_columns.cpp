// Reads columns of delimited text.
//
// In: a file cut into blocks of whole rows, whose place in the columns is known. Out: columns.
// One pass over the file, whatever the number of columns: threads take blocks and parse the wanted
// fields of each row straight into its place. Text goes to a pad per block, the pads are joined, and
// a column of few distinct values is recoded with a dictionary. Every row's number of fields is
// checked, asked for or not. Memory: the columns, twice the text of those that are text, and the
// blocks of the file that threads are at.
//
// An empty field is a missing value, also within quotes (as DuckDB reads it): zero or an empty text,
// and a 0 in the column's validity, which is made when the first one is met.
//
// Errors: the first one in the file is reported, whatever thread met which; nothing is kept.
#include "runtime/data/read_columns.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <unordered_map>
#include <unordered_set>

#include "libraries/base/report/progress.h"
#include "libraries/base/report/utf8.h"
#include "libraries/base/system/parallel.h"
#include "runtime/data/parse_value.h"
#include "runtime/data/rows.h"

namespace rndn::data {

std::string quote(std::string_view text) {
  constexpr size_t longest = 40;
  if (text.empty()) return "nothing";
  std::string out = "`";
  for (char c : text.substr(0, longest))
    out += c >= ' ' && c <= '~' ? std::string(1, c)
                                : fmt::format("\\x{:02x}", static_cast<uint8_t>(c));
  return out + (text.size() > longest ? "...`" : "`");
}

namespace {

constexpr size_t longest_text = (1 << 24) - 1;  // bytes

class ColumnReader {
 public:
  ColumnReader(const TextFile& file, const TableSchema& table, const SourceOptions& options)
      : file_(file), table_(table), options_(options), slots_(table.columns.size(), none) {}

  Result<std::vector<Column>> read(std::span<const WantedColumn> wanted) {
    targets_ = std::vector<Target>(wanted.size());
    auto make = [&](size_t i) {  // zeroing that much memory is work for all cores
      const ColumnSchema& from = table_.columns[wanted[i].position];
      Target& target = targets_[i];
      target.schema = &from;
      target.column = make_column(wanted[i].type, file_.rows(),
                                  hir::is_text(wanted[i].type) ? Encoding::text : Encoding::plain);
      target.column.is_foreign_key = from.is_foreign_key();
      target.column.foreign_table = from.foreign_table;
      target.out = target.column.data->data();
    };
    parallel_for(wanted.size(), make, options_.threads);
    for (size_t i = 0; i < wanted.size(); ++i) slots_[wanted[i].position] = i;

    const std::vector<TextFile::Block>& blocks = file_.blocks();
    pads_.resize(blocks.size());
    FirstFailure failure;
    {
      Progress line("loading " + file_.path(), file_.text().size(), options_.progress);
      auto body = [&](size_t number) {
        pads_[number].resize(wanted.size());
        failure.meet(read_block(blocks[number], pads_[number]));
        file_.release(blocks[number].begin, blocks[number].end);
        line.advance(blocks[number].end - blocks[number].begin);
      };
      parallel_for(blocks.size(), body, options_.threads);
    }
    RETURN_IF_ERROR(failure.result(file_));

    std::vector<Column> columns;
    for (size_t i = 0; i < targets_.size(); ++i) {
      Target& target = targets_[i];
      if (target.column.encoding == Encoding::text) {
        join_pads(target.column, i);
        encode_dictionary(target.column, dictionary_limit(target.column.rows), options_.threads);
      }
      if (target.infinite != SIZE_MAX)
        options_.tell(fmt::format(
            "{}: numbers of column `{}` from here on are beyond an f64: they are infinite",
            file_.describe(target.infinite), target.schema->name));
      compute_statistics(target.column, options_.threads);
      columns.push_back(std::move(target.column));
    }
    return columns;
  }

 private:
  static constexpr size_t none = SIZE_MAX;
  struct Target {
    const ColumnSchema* schema = nullptr;
    Column column;
    std::byte* out = nullptr;
    std::atomic<std::byte*> validity{nullptr};
    std::atomic<size_t> infinite{SIZE_MAX};  // where the first f64 stands that is out of range
    Target() = default;
    Target(const Target&) = delete;
  };

  std::optional<Failure> read_block(const TextFile::Block& block, std::vector<std::string>& pads) {
    FieldReader reader(file_.text(), block.begin, file_.format());
    const size_t fields = table_.columns.size();
    int64_t row = block.first_row;
    if (row < 0) {  // the header, which is checked already
      reader.skip_empty_lines();
      while (reader.next().after != FieldReader::After::row) {
      }
      ++row;
    }
    auto take = [&](size_t c, const FieldReader::Field& field) -> std::optional<Failure> {
      const size_t slot = slots_[c];
      if (slot == none) return std::nullopt;
      return store(targets_[slot], pads[slot], static_cast<uint64_t>(row), field);
    };
    auto behind = [&](size_t start, const FieldReader::Field&) {
      return Failure{start, fmt::format("expected {} columns, found more", fields)};
    };
    for (; row < block.first_row + block.rows; ++row)
      if (std::optional<Failure> failure = read_row(reader, fields, take, behind)) return failure;
    return std::nullopt;
  }

  std::optional<Failure> store(Target& target, std::string& pad, uint64_t row,
                               const FieldReader::Field& field) {
    Column& column = target.column;
    std::byte* out = target.out + row * column.width;
    if (column.encoding == Encoding::text) {
      if (field.text.size() > longest_text)
        return Failure{field.offset, fmt::format("this text has {} bytes; at most {} are possible",
                                                 field.text.size(), longest_text)};
      if (!is_utf8(field.text))
        return Failure{field.offset,
                       fmt::format("the text of column `{}` is not in UTF-8: read_csv(.., encoding = 'latin-1') "
                                   "of SQL reads other encodings",
                                   target.schema->name)};
      *reinterpret_cast<uint64_t*>(out) = pad.size() << 24 | field.text.size();
      pad.append(field.text);
      if (field.text.empty()) validity_of(target)[row] = std::byte{0};
      return std::nullopt;
    }
    const Meaning meaning = target.schema->meaning;
    const bool is_timestamp = column.type == hir::BasicType::i64 && target.schema->type == column.type &&
                              (meaning == Meaning::timestamp || meaning == Meaning::timestamp_utc);
    const ParseStatus status = is_timestamp ? parse_timestamp(field.text, out)
                                            : parse_value(column.type, field.text, out, target.schema->format);
    if (status == ParseStatus::ok) {
      const std::optional<Decimal>& decimal = target.schema->decimal;
      if (!decimal || column.type != hir::BasicType::f64 || decimal->holds(*reinterpret_cast<const double*>(out)))
        return std::nullopt;
      return Failure{field.offset, fmt::format("{} does not fit {} (column `{}`)", quote(field.text),
                                               type_text(*target.schema), target.schema->name)};
    }
    if (column.type == hir::BasicType::character ? field.text.empty() : is_blank(field.text)) {
      std::fill_n(out, column.width, std::byte{0});
      validity_of(target)[row] = std::byte{0};
      return std::nullopt;
    }
    if (status == ParseStatus::out_of_range && column.type == hir::BasicType::f64) {
      for (size_t first = target.infinite;
           field.offset < first && !target.infinite.compare_exchange_weak(first, field.offset);) {
      }
      return std::nullopt;
    }
    const char* format = status == ParseStatus::malformed ? "expected {} for `{}`, found {}"
                                                          : "{2} does not fit {0} (column `{1}`)";
    return Failure{field.offset, fmt::format(fmt::runtime(format),
                                             expectation(is_timestamp ? hir::BasicType::dt : column.type,
                                                         target.schema->format),
                                             target.schema->name, quote(field.text))};
  }

  std::byte* validity_of(Target& target) {
    if (std::byte* made = target.validity) return made;
    std::lock_guard lock(validity_mutex_);
    if (!target.validity) {
      target.column.validity =
          std::make_shared<Bytes>(target.column.rows, std::byte{1});
      target.validity = target.column.validity->data();
    }
    return target.validity;
  }

  void join_pads(Column& column, size_t slot) {
    const std::vector<TextFile::Block>& blocks = file_.blocks();
    std::vector<uint64_t> starts;
    uint64_t total = 0;
    for (auto& pads : pads_) {
      starts.push_back(total);
      total += pads[slot].size();
    }
    std::string pad;
    pad.reserve(total);
    for (auto& pads : pads_) {
      pad.append(pads[slot]);
      pads[slot] = std::string();
    }
    column.pad = std::make_shared<Bytes>(Bytes::of(std::move(pad)));
    uint64_t* words = reinterpret_cast<uint64_t*>(column.data->data());
    auto shift = [&](size_t number) {
      const TextFile::Block& block = blocks[number];
      for (int64_t row = std::max<int64_t>(block.first_row, 0); row < block.first_row + block.rows;
           ++row)
        words[row] += starts[number] << 24;
    };
    parallel_for(blocks.size(), shift, options_.threads);
  }

  const TextFile& file_;
  const TableSchema& table_;
  const SourceOptions& options_;
  std::vector<size_t> slots_;  // by column of the table: its target, or none
  std::vector<Target> targets_;
  std::vector<std::vector<std::string>> pads_;  // by block and target
  std::mutex validity_mutex_;
};

struct Header {
  std::vector<std::string> fields;
  std::vector<size_t> offsets;
};

Result<Header> read_fields(const TextFile& file) {
  Header header;
  FieldReader reader(file.text(), 0, file.format());
  reader.skip_empty_lines();
  for (bool more = true; more;) {
    const FieldReader::Field field = reader.next();
    if (field.broken_quote)
      return input_error("{}: the quotes of this field do not match", file.describe(field.offset));
    more = field.after == FieldReader::After::delimiter;
    header.fields.emplace_back(field.text);
    header.offsets.push_back(field.offset);
  }
  return header;
}

}  // namespace

Result<std::vector<Column>> read_columns(const TextFile& file, const TableSchema& table,
                                         std::span<const WantedColumn> wanted,
                                         const SourceOptions& options) {
  return ColumnReader(file, table, options).read(wanted);
}

// SQL's names, in which the case of ASCII letters does not count.
static std::string folded(std::string name) {
  for (char& c : name)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return name;
}

std::vector<std::string> column_names(std::vector<std::string> fields) {
  std::unordered_set<std::string> taken;
  for (size_t i = 0; i < fields.size(); ++i) {
    std::string_view name = fields[i];
    while (!name.empty() && (name.front() == ' ' || name.front() == '\t')) name.remove_prefix(1);
    while (!name.empty() && (name.back() == ' ' || name.back() == '\t')) name.remove_suffix(1);
    fields[i] = name.empty() ? fmt::format("c{}", i) : as_utf8(name);
    taken.insert(folded(fields[i]));
  }
  // A name that stands in the file is not given to another: a, a, a_2 become a, a_3, a_2.
  std::unordered_map<std::string, size_t> numbers;  // the last that a name got
  for (std::string& name : fields) {
    size_t& number = numbers[folded(name)];
    if (++number == 1) continue;
    std::string other = fmt::format("{}_{}", name, number);
    while (!taken.insert(folded(other)).second) other = fmt::format("{}_{}", name, ++number);
    name = std::move(other);
  }
  return fields;
}

Result<std::vector<std::string>> read_header(const TextFile& file, size_t columns) {
  ASSIGN_OR_RETURN(Header header, read_fields(file));
  header.fields.resize(columns);
  return column_names(std::move(header.fields));
}

Result<void> check_header(const TextFile& file, const TableSchema& table) {
  const std::vector<ColumnSchema>& columns = table.columns;
  if (file.text().empty())
    return input_error("{}:1:1: expected the header `{}`, found nothing", file.path(),
                       columns[0].name);
  ASSIGN_OR_RETURN(Header header, read_fields(file));
  std::vector<std::string>& found = header.fields;
  if (found.size() == columns.size() + 1 && found.back().empty())
    found.pop_back();  // a last delimiter
  if (found.size() > columns.size())
    return input_error("{}: expected {} columns, found {}", file.describe(header.offsets[0]),
                       columns.size(), found.size());
  const size_t end = found.size();
  found.resize(columns.size());
  const std::vector<std::string> names = column_names(found);
  for (size_t c = 0; c < columns.size(); ++c)
    if (found[c] != columns[c].name && names[c] != columns[c].name)
      return input_error("{}: expected the header `{}`, found {}",
                         file.describe(header.offsets[std::min(c, end - 1)]), columns[c].name,
                         quote(found[c]));
  return {};
}

}  // namespace rndn::data
