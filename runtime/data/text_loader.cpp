// Tables in delimited files: opening them, what names their contents for a cache, where values stand.
//
// What was found out of a file without a schema is kept in the cache beside its columns, so that the
// file is looked through once.
#include "runtime/data/text_loader.h"

#include <cstdlib>
#include <filesystem>
#include <new>
#include <optional>

#include "runtime/data/cache.h"
#include "runtime/data/guess.h"
#include "runtime/data/read_columns.h"
#include "runtime/data/rows.h"

namespace rndn::data {
namespace {

// Empty when one of them is not known.
std::string name_and_version(const std::string& path, const std::string& version) {
  std::unique_ptr<char, void (*)(void*)> real(realpath(path.c_str(), nullptr), std::free);
  return real && !version.empty() ? fmt::format("{} {}", real.get(), version) : "";
}

class TextLoader final : public TableLoader {
 public:
  TextLoader(std::string folder, Schema schema, const SourceOptions& options)
      : folder_(std::move(folder)),
        schema_(std::move(schema)),
        options_(options),
        files_(schema_.tables.size()) {}

  // A file that is open and cut already.
  void give(std::unique_ptr<TextFile> file) { files_[0] = std::move(file); }

  const Schema& schema() const override { return schema_; }

  Result<uint64_t> rows(size_t table) override {
    RETURN_IF_ERROR(open(table));
    return files_[table]->rows();
  }

  std::optional<uint64_t> rows_at_hand(size_t table) const override {
    return files_[table] ? std::optional(files_[table]->rows()) : std::nullopt;
  }

  Result<std::vector<Column>> load(size_t table, std::span<const size_t> columns) override {
    std::vector<WantedColumn> wanted;
    for (size_t position : columns)
      wanted.push_back({position, schema_.tables[table].columns[position].type});
    return read(table, wanted);
  }

  Result<Column> load_as(size_t table, size_t column, hir::BasicType type) override {
    const WantedColumn wanted{column, type};
    ASSIGN_OR_RETURN(std::vector<Column> read_as, read(table, {&wanted, 1}));
    return std::move(read_as[0]);
  }

  // The file by name and version, and all of the schema that decides how the column is read from it. What comes from a
  // file that has another version by now has no name.
  std::string fingerprint(size_t table, size_t column) const override {
    const TableSchema& schema = schema_.tables[table];
    const ColumnSchema& of = schema.columns[column];
    const std::string path = path_of(schema), version = version_of(path),
                      file = name_and_version(path, version);
    if (file.empty() || (files_[table] && files_[table]->version() != version)) return "";
    return fmt::format("{} delimiter {} header {} quoted {} column {} of {} type {} {} foreign {}",
                       file, schema.delimiter, schema.header, schema.quoted, column,
                       schema.columns.size(), type_text(of),
                       date_format_text(of.format), of.foreign_table);
  }

  std::string describe(size_t table, size_t column, uint64_t row) override {
    // A cached column did not need the file, which may be gone or shorter by now.
    if (!open(table) || row >= files_[table]->rows())
      return fmt::format("{}: row {}", path_of(schema_.tables[table]), row + 1);
    const TextFile& file = *files_[table];
    return file.describe(file.offset_of(static_cast<int64_t>(row), column));
  }

 private:
  std::string path_of(const TableSchema& table) const {
    return folder_.empty() ? table.file : folder_ + "/" + table.file;
  }

  Result<void> open(size_t table) {
    if (files_[table]) return {};
    const TableSchema& schema = schema_.tables[table];
    Result<std::unique_ptr<TextFile>> file =
        TextFile::open(path_of(schema), format_of(schema), options_.threads);
    if (!file)
      return Error{file.error().fault,
                   fmt::format("table `{}`: {}", schema.name, file.error().message)};
    if (schema.header) RETURN_IF_ERROR(check_header(**file, schema));
    files_[table] = std::move(*file);
    return {};
  }

  Result<std::vector<Column>> read(size_t table, std::span<const WantedColumn> wanted) {
    RETURN_IF_ERROR(open(table));
    try {
      return read_columns(*files_[table], schema_.tables[table], wanted, options_);
    } catch (const std::bad_alloc&) {
      return world_error("not enough memory for {} columns of `{}`", wanted.size(),
                         files_[table]->path());
    }
  }

  const std::string folder_;
  const Schema schema_;
  const SourceOptions options_;
  std::vector<std::unique_ptr<TextFile>> files_;  // by table; null: not opened yet
};

// A schema comes with its data, maybe from far away: it must not reach for other files of this
// machine, by links neither.
Result<void> check_below(const std::string& folder, const std::string& schema,
                         const TableSchema& table) {
  namespace fs = std::filesystem;
  std::error_code error;
  bool below = !table.file.empty() && table.file.find('\0') == table.file.npos &&
               fs::path(table.file).is_relative();
  if (below) {
    fs::path root = fs::canonical(folder, error);
    fs::path file = error ? fs::path() : fs::weakly_canonical(root / table.file, error);
    auto [in_root, in_file] = std::mismatch(root.begin(), root.end(), file.begin(), file.end());
    below = !error && in_root == root.end() && in_file != file.end();
  }
  if (below) return {};
  return input_error("{}: table `{}`: the file {} is not below the folder `{}`", schema, table.name,
                     quote(table.file), folder);
}

// What a cache keeps of a guess: the schema, and the notes.
std::vector<std::string> guess_texts(const Guess& guess) {
  Schema schema;
  schema.tables.push_back(guess.table);
  schema.tables[0].name = schema.tables[0].file = "t";  // they are not of the guess
  std::vector<std::string> texts{schema_text(schema)};
  texts.insert(texts.end(), guess.notes.begin(), guess.notes.end());
  return texts;
}

Result<Guess> guess_or_recall(const std::string& path, const SourceOptions& options) {
  const std::string before = options.cache.empty() ? "" : name_and_version(path, version_of(path));
  if (before.empty()) return guess_table(path, options);
  const std::string entry = cache_entry(options.cache, path, before, "types");
  if (const auto texts = read_texts(entry, before); texts && !texts->empty())
    if (Result<Schema> schema = parse_schema((*texts)[0], entry);
        schema && schema->tables.size() == 1)
      return Guess{std::move(schema->tables[0]), {texts->begin() + 1, texts->end()}, nullptr};
  ASSIGN_OR_RETURN(Guess guess, guess_table(path, options));
  if (name_and_version(path, guess.file->version()) == before)
    write_texts(entry, before, guess_texts(guess));
  return guess;
}

}  // namespace

Result<std::unique_ptr<TableLoader>> open_text_schema(const std::string& folder, Schema schema,
                                                      const std::string& schema_path,
                                                      const SourceOptions& options) {
  for (const TableSchema& table : schema.tables)
    RETURN_IF_ERROR(check_below(folder, schema_path, table));
  return std::unique_ptr<TableLoader>(
      std::make_unique<TextLoader>(folder, std::move(schema), options));
}

Result<std::unique_ptr<TableLoader>> open_text_file(const std::string& path,
                                                    const std::string& table,
                                                    const SourceOptions& options) {
  ASSIGN_OR_RETURN(Guess guess, guess_or_recall(path, options));
  for (const std::string& note : guess.notes) options.tell(note);
  guess.table.name = table;
  guess.table.file = path;
  Schema schema;
  schema.tables.push_back(std::move(guess.table));
  auto loader = std::make_unique<TextLoader>("", std::move(schema), options);
  if (guess.file) loader->give(std::move(guess.file));
  return std::unique_ptr<TableLoader>(std::move(loader));
}

}  // namespace rndn::data
