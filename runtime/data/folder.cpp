// Loads columns from the delimited files of a folder.
//
// A load reads the file once, whatever the number of columns: threads take blocks of whole rows, whose place in the columns is
// known, and parse the wanted fields of each row straight into it. Text goes to a pad per block, the pads are joined, and a column
// of few distinct values is recoded with a dictionary. Every row's number of fields is checked, asked for or not.
//
// Errors: the first one in the file is reported, whatever thread met which; nothing of the load is kept.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <new>

#include "libraries/base/system/files.h"
#include "libraries/base/system/parallel.h"
#include "libraries/base/report/progress.h"
#include "runtime/data/cache.h"
#include "runtime/data/parse_value.h"
#include "runtime/data/source.h"
#include "runtime/data/text_file.h"

namespace rndn::data {
namespace {

constexpr size_t longest_text = (1 << 24) - 1;  // bytes

// A column with at most this many distinct values gets a dictionary.
uint64_t dictionary_limit(uint64_t rows) { return std::max<uint64_t>(256, std::min<uint64_t>(rows / 8, 1 << 16)); }

struct Failure {
  size_t offset;
  std::string reason;
};

// The field with what it was meant to be, cut where it gets long.
std::string quote(std::string_view text) {
  constexpr size_t longest = 40;
  if (text.empty()) return "nothing";
  std::string out = "`";
  for (char c : text.substr(0, longest))
    out += c >= ' ' && c <= '~' ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<uint8_t>(c));
  return out + (text.size() > longest ? "...`" : "`");
}

class FolderLoader : public TableLoader {
 public:
  FolderLoader(std::string folder, Schema schema, const FolderOptions& options)
      : folder_(std::move(folder)), schema_(std::move(schema)), options_(options), files_(schema_.tables.size()) {}

  const Schema& schema() const override { return schema_; }

  Result<uint64_t> rows(size_t table) override {
    RETURN_IF_ERROR(open(table));
    return files_[table]->rows();
  }

  Result<std::vector<Column>> load(size_t table, std::span<const size_t> columns) override {
    RETURN_IF_ERROR(open(table));
    try {
      return read(table, columns);
    } catch (const std::bad_alloc&) {
      return world_error("not enough memory for {} columns of `{}`", columns.size(), files_[table]->path());
    }
  }

  // The file by name and version, and all of the schema that decides how the column is read from it. What comes from a
  // file that has another version by now has no name.
  std::string fingerprint(size_t table, size_t column) const override {
    const TableSchema& schema = schema_.tables[table];
    const std::string path = path_of(schema), version = version_of(path);
    std::unique_ptr<char, void (*)(void*)> real(realpath(path.c_str(), nullptr), std::free);
    if (!real || version.empty() || (files_[table] && files_[table]->version() != version)) return "";
    return fmt::format("{} {} delimiter {} header {} column {} of {} type {} foreign {}", real.get(), version,
                       schema.delimiter, schema.header, column, schema.columns.size(),
                       hir::basic_type_name(schema.columns[column].type), schema.columns[column].foreign_table);
  }

  std::string describe(size_t table, size_t column, uint64_t row) const override {
    // A cached column did not need the file.
    if (!files_[table]) return fmt::format("{}: row {}", path_of(schema_.tables[table]), row + 1);
    const TextFile& file = *files_[table];
    return file.describe(file.offset_of(static_cast<int64_t>(row), column));
  }

 private:
  std::string path_of(const TableSchema& table) const {
    return folder_ + "/" + table.file;  // below the folder: open_folder checks
  }

  Result<void> open(size_t table) {
    if (files_[table]) return {};
    const TableSchema& schema = schema_.tables[table];
    std::string path = path_of(schema);
    TextFormat format{.delimiter = schema.delimiter, .quoted = schema.file.ends_with(".csv"), .header = schema.header};
    Result<std::unique_ptr<TextFile>> file = TextFile::open(path, format, options_.threads);
    if (!file) return Error{file.error().fault, fmt::format("table `{}`: {}", schema.name, file.error().message)};
    if (format.header && (*file)->text().empty())
      return input_error("{}:1:1: expected the header `{}`, found nothing", path, schema.columns[0].name);
    files_[table] = std::move(*file);
    return {};
  }

  // One block into the columns; the first failure ends it. `pads` and `wanted` are by position in the load.
  static std::optional<Failure> read_block(const TextFile& file, const TextFile::Block& block,
                                           const TableSchema& schema, std::span<const int> wanted,
                                           std::vector<Column>& columns, std::vector<std::string>& pads) {
    FieldReader reader(file.text(), block.begin, file.format());
    const size_t fields = schema.columns.size();
    for (int64_t row = block.first_row; row < block.first_row + block.rows; ++row) {
      const size_t start = reader.offset();
      for (size_t c = 0; c < fields; ++c) {
        FieldReader::Field field = reader.next();
        if (field.broken_quote) return Failure{field.offset, "the quotes of this field do not match"};
        bool last = field.after == FieldReader::After::row;
        if (last && c + 1 < fields) return Failure{start, fmt::format("expected {} columns, found {}", fields, c + 1)};
        if (row < 0) {
          if (field.text != schema.columns[c].name)
            return Failure{field.offset, fmt::format("expected the header `{}`, found {}", schema.columns[c].name,
                                                     quote(field.text))};
        } else if (int slot = wanted[c]; slot >= 0) {
          Column& column = columns[slot];
          std::byte* out = column.data->data() + static_cast<uint64_t>(row) * column.width;
          if (column.encoding == Encoding::text) {
            if (field.text.size() > longest_text)
              return Failure{field.offset, fmt::format("this text has {} bytes; at most {} are possible",
                                                       field.text.size(), longest_text)};
            *reinterpret_cast<uint64_t*>(out) = pads[slot].size() << 24 | field.text.size();
            pads[slot].append(field.text);
          } else if (ParseStatus status = parse_value(column.type, field.text, out); status != ParseStatus::ok) {
            const char* format = status == ParseStatus::malformed ? "expected {} for `{}`, found {}"
                                                                  : "{2} does not fit {0} (column `{1}`)";
            return Failure{field.offset, fmt::format(fmt::runtime(format), expectation(column.type),
                                                     schema.columns[c].name, quote(field.text))};
          }
        }
        // The delimiter may also end the row.
        if (!last && c + 1 == fields && !reader.skip_end_of_row())
          return Failure{start, fmt::format("expected {} columns, found more", fields)};
      }
    }
    return std::nullopt;
  }

  Result<std::vector<Column>> read(size_t table, std::span<const size_t> positions) {
    const TextFile& file = *files_[table];
    const TableSchema& schema = schema_.tables[table];
    std::vector<int> wanted(schema.columns.size(), -1);
    std::vector<Column> columns(positions.size());
    auto make = [&](size_t slot) {  // zeroing that much memory is work for all cores
      const ColumnSchema& from = schema.columns[positions[slot]];
      columns[slot] = make_column(from.type, file.rows(), hir::is_text(from.type) ? Encoding::text : Encoding::plain);
      columns[slot].is_foreign_key = from.is_foreign_key();
      columns[slot].foreign_table = from.foreign_table;
    };
    parallel_for(positions.size(), make, options_.threads);
    for (size_t slot = 0; slot < positions.size(); ++slot) wanted[positions[slot]] = static_cast<int>(slot);

    const std::vector<TextFile::Block>& blocks = file.blocks();
    std::vector<std::vector<std::string>> pads(blocks.size());
    std::mutex mutex;
    std::optional<Failure> failure;
    bool out_of_memory = false;
    {
      Progress line("loading " + file.path(), file.text().size(), options_.progress);
      auto body = [&](size_t number) {
        const TextFile::Block& block = blocks[number];
        try {
          pads[number].resize(columns.size());
          std::optional<Failure> found = read_block(file, block, schema, wanted, columns, pads[number]);
          std::lock_guard lock(mutex);
          if (found && (!failure || found->offset < failure->offset)) failure = std::move(found);
        } catch (const std::bad_alloc&) {  // no exception may leave a thread
          std::lock_guard lock(mutex);
          out_of_memory = true;
        }
        line.advance(block.end - block.begin);
      };
      parallel_for(blocks.size(), body, options_.threads);
    }
    if (out_of_memory) throw std::bad_alloc();
    if (failure) return input_error("{}: {}", file.describe(failure->offset), failure->reason);

    for (size_t slot = 0; slot < columns.size(); ++slot) {
      Column& column = columns[slot];
      if (column.encoding == Encoding::text) {
        join_pads(column, blocks, pads, slot);
        encode_dictionary(column, dictionary_limit(column.rows), options_.threads);
      }
      compute_statistics(column, options_.threads);
    }
    return columns;
  }

  void join_pads(Column& column, const std::vector<TextFile::Block>& blocks,
                 std::vector<std::vector<std::string>>& pads, size_t slot) const {
    std::vector<uint64_t> starts;
    uint64_t total = 0;
    for (auto& pad : pads) {
      starts.push_back(total);
      total += pad[slot].size();
    }
    column.pad->reserve(total);
    for (auto& pad : pads) {
      column.pad->append(pad[slot]);
      pad[slot] = std::string();
    }
    uint64_t* words = reinterpret_cast<uint64_t*>(column.data->data());
    auto shift = [&](size_t number) {
      const TextFile::Block& block = blocks[number];
      for (int64_t row = std::max<int64_t>(block.first_row, 0); row < block.first_row + block.rows; ++row)
        words[row] += starts[number] << 24;
    };
    parallel_for(blocks.size(), shift, options_.threads);
  }

  const std::string folder_;
  const Schema schema_;
  const FolderOptions options_;
  std::vector<std::unique_ptr<TextFile>> files_;  // by table; null: not opened yet
};

// A schema comes with its data, maybe from far away: it must not reach for other files of this machine, by links neither.
Result<void> check_below(const std::string& folder, const std::string& schema, const TableSchema& table) {
  namespace fs = std::filesystem;
  std::error_code error;
  bool below = !table.file.empty() && table.file.find('\0') == table.file.npos && fs::path(table.file).is_relative();
  if (below) {
    fs::path root = fs::canonical(folder, error);
    fs::path file = error ? fs::path() : fs::weakly_canonical(root / table.file, error);
    auto [in_root, in_file] = std::mismatch(root.begin(), root.end(), file.begin(), file.end());
    below = !error && in_root == root.end() && in_file != file.end();
  }
  if (below) return {};
  return input_error("{}: table `{}`: the file {} is not below the folder `{}`", schema, table.name, quote(table.file),
                     folder);
}

}  // namespace

Result<std::shared_ptr<Source>> open_folder(const std::string& folder, const FolderOptions& options) {
  std::string path = folder + "/schema.json";
  Result<std::string> text = read_file(path);
  if (!text)
    return Error{text.error().fault,
                 fmt::format("the folder `{}` is no data source: {}", folder, text.error().message)};
  ASSIGN_OR_RETURN(Schema schema, parse_schema(*text, path));
  for (const TableSchema& table : schema.tables) RETURN_IF_ERROR(check_below(folder, path, table));
  std::unique_ptr<TableLoader> loader = std::make_unique<FolderLoader>(folder, std::move(schema), options);
  if (!options.cache.empty()) loader = cached(std::move(loader), options.cache);
  return std::make_shared<Source>(std::move(loader));
}

}  // namespace rndn::data
