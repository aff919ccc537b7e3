// Opening what the user names, and several sources as one.
#include "runtime/data/sources.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "libraries/base/report/utf8.h"
#include "libraries/base/system/files.h"
#include "runtime/data/cache.h"
#include "runtime/data/text_file.h"
#include "runtime/data/text_loader.h"

namespace rndn::data {
namespace {

namespace fs = std::filesystem;
using Loader = std::unique_ptr<TableLoader>;

// Delimited text, which this folder reads. What is named and has no row here or in the options is
// taken for such text all the same.
constexpr FileFormat text_formats[] = {
    {".csv", open_text_file},
    {".tbl", open_text_file},
    {".tsv", open_text_file},
};

bool ends_with(std::string_view path, std::string_view extension) {
  return path.size() > extension.size() &&
         std::equal(extension.rbegin(), extension.rend(), path.rbegin(), [](char a, char b) {
           return a == std::tolower(static_cast<unsigned char>(b));
         });
}

// Of formats whose extension the path has, the one with the longest: `.csv.gz`, not `.gz`.
const FileFormat* format_in(std::span<const FileFormat> formats, std::string_view path) {
  const FileFormat* best = nullptr;
  for (const FileFormat& format : formats)
    if (ends_with(path, format.extension) &&
        (!best || format.extension.size() > best->extension.size()))
      best = &format;
  return best;
}
const FileFormat* format_of(const std::string& path, const SourceOptions& options) {
  const FileFormat* text = format_in(text_formats, path);
  return text ? text : format_in(options.formats, path);
}

// The path's last part without the extension.
std::string table_name(const fs::path& path, const SourceOptions& options) {
  const std::string name = (path.has_filename() ? path : path.parent_path()).filename().string();
  const FileFormat* format = format_of(name, options);
  return format ? name.substr(0, name.size() - format->extension.size())
                : fs::path(name).stem().string();
}

std::string extensions(const SourceOptions& options) {
  std::string all;
  for (const FileFormat& format : text_formats)
    (all += all.empty() ? "" : ", ") += format.extension;
  for (const FileFormat& format : options.formats)
    if (!format_in(text_formats, "x" + std::string(format.extension)))
      (all += ", ") += format.extension;
  return all;
}

bool is_pattern(const std::string& path) {
  std::error_code ignored;
  return path.find_first_of("*?[") != path.npos && !fs::exists(path, ignored);
}

// The format of the files in a folder, however deep, that are one table; null: there are none.
// Delimited text is only where the user says so: a file of it is rather a table of its own.
enum class Text : bool { no, yes };
// `other` gets a file of another format, if there is one.
const FileFormat* format_within(const fs::path& folder, const SourceOptions& options, Text text,
                                std::string* other = nullptr) {
  const FileFormat* found = nullptr;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (!entry->is_regular_file(ignored) || entry->path().filename().string().starts_with('.'))
      continue;
    const std::string path = entry->path().string();
    const FileFormat* format = format_in(options.formats, path);
    if (!format || (text == Text::no && format_in(text_formats, path))) continue;
    if (!other) return format;
    if (found && found->open != format->open) *other = path;
    if (!found) found = format;
  }
  return found;
}

// Whether the folder has subfolders `key=value`.
bool is_partitioned(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    const size_t equals = entry->path().filename().string().find('=');
    if (entry->is_directory(ignored) && equals != std::string::npos && equals > 0) return true;
  }
  return false;
}

Loader kept(Loader loader, const std::string& cache, std::string place) {
  return cache.empty() ? std::move(loader) : cached(std::move(loader), cache, std::move(place));
}

std::string absolute(const std::string& path) {
  std::error_code ignored;
  return fs::absolute(path, ignored).lexically_normal().string();
}

// A name of a place elsewhere: `s3://bucket/x.parquet`.
bool is_remote(std::string_view path) {
  const size_t colon = path.find("://");
  return colon != path.npos && colon > 0 &&
         std::all_of(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(colon),
                     [](unsigned char c) { return std::isalnum(c) || c == '+' || c == '-'; });
}

Result<Loader> open_file(const std::string& path, const std::string& table,
                         const SourceOptions& options) {
  if (is_remote(path))
    return usage_error("`{}` is not on this machine: rndn reads local files only", path);
  std::error_code ignored;
  const bool is_folder = fs::is_directory(path, ignored);
  std::string other;
  const FileFormat* format = is_folder          ? format_within(path, options, Text::yes, &other)
                             : is_pattern(path) ? format_in(options.formats, path)
                                                : format_of(path, options);
  if (!format && (is_folder || is_pattern(path)))
    return input_error("`{}` is no table: a folder or a pattern is one of files that end in {}",
                       path, extensions(options));
  if (!other.empty())
    return input_error("`{}` holds files of several formats, `{}` among them: one table is of one",
                       path, other);
  ASSIGN_OR_RETURN(Loader loader, (format ? format->open : open_text_file)(path, table, options));
  return kept(std::move(loader), options.cache, absolute(path));
}

// Several loaders as one, the tables of the first first.
class JoinedLoader final : public TableLoader {
 public:
  static Result<Loader> make(std::vector<Loader> loaders) {
    if (loaders.size() == 1) return std::move(loaders[0]);
    auto joined = std::make_unique<JoinedLoader>();
    for (size_t i = 0; i < loaders.size(); ++i)
      for (size_t t = 0; t < loaders[i]->schema().tables.size(); ++t) {
        const TableSchema& table = loaders[i]->schema().tables[t];
        if (joined->schema_.find(table.name))
          return usage_error("there are two tables `{}`; --table NAME=FILE gives one another name",
                             table.name);
        joined->schema_.tables.push_back(table);
        joined->tables_.push_back({i, t});
      }
    joined->loaders_ = std::move(loaders);
    return Loader(std::move(joined));
  }

  const Schema& schema() const override { return schema_; }
  Result<uint64_t> rows(size_t table) override { return of(table).rows(tables_[table].position); }
  std::optional<uint64_t> rows_at_hand(size_t table) const override {
    return of(table).rows_at_hand(tables_[table].position);
  }
  Result<std::vector<Column>> load(size_t table, std::span<const size_t> columns) override {
    return of(table).load(tables_[table].position, columns);
  }
  Result<std::vector<Column>> load(size_t table, std::span<const size_t> columns, const Shown& shown) override {
    return of(table).load(tables_[table].position, columns, shown);
  }
  Result<Column> load_as(size_t table, size_t column, hir::BasicType type) override {
    return of(table).load_as(tables_[table].position, column, type);
  }
  std::vector<RowRange> ranges(size_t table, std::span<const size_t> columns) const override {
    return of(table).ranges(tables_[table].position, columns);
  }
  Loader of_ranges(size_t table, std::span<const size_t> ranges) const override {
    return of(table).of_ranges(tables_[table].position, ranges);
  }
  bool keys_hold(size_t table) const override {
    return of(table).keys_hold(tables_[table].position);
  }
  std::string fingerprint(size_t table, size_t column) const override {
    return of(table).fingerprint(tables_[table].position, column);
  }
  std::string describe(size_t table, size_t column, uint64_t row) override {
    return of(table).describe(tables_[table].position, column, row);
  }

 private:
  struct Place {
    size_t loader, position;
  };
  TableLoader& of(size_t table) const { return *loaders_[tables_[table].loader]; }

  std::vector<Loader> loaders_;
  Schema schema_;
  std::vector<Place> tables_;
};

// A source as the loader of another.
class SharedLoader final : public TableLoader {
 public:
  explicit SharedLoader(std::shared_ptr<Source> source) : source_(std::move(source)) {}

  const Schema& schema() const override { return source_->schema(); }
  Result<uint64_t> rows(size_t table) override { return source_->rows(at(table).name); }
  std::optional<uint64_t> rows_at_hand(size_t table) const override {
    return source_->rows_at_hand(at(table).name);
  }
  Result<std::vector<Column>> load(size_t table, std::span<const size_t> columns) override {
    return load(table, columns, {});
  }
  Result<std::vector<Column>> load(size_t table, std::span<const size_t> columns, const Shown& shown) override {
    std::vector<std::string> names;
    for (size_t c : columns) names.push_back(at(table).columns[c].name);
    ASSIGN_OR_RETURN(const auto loaded, source_->columns(at(table).name, names, shown));
    std::vector<Column> copies;  // that share their data
    for (const std::shared_ptr<const Column>& column : loaded) copies.push_back(*column);
    return copies;
  }
  Result<Column> load_as(size_t table, size_t column, hir::BasicType type) override {
    ASSIGN_OR_RETURN(const auto loaded,
                     source_->column_as(at(table).name, at(table).columns[column].name, type));
    return *loaded;
  }
  std::vector<RowRange> ranges(size_t table, std::span<const size_t> columns) const override {
    return source_->ranges_at(table, columns);
  }
  Loader of_ranges(size_t table, std::span<const size_t> ranges) const override {
    return source_->loader_of_ranges(table, ranges);
  }
  bool keys_hold(size_t) const override { return true; }  // the source has checked them
  std::string fingerprint(size_t, size_t) const override { return ""; }
  std::string describe(size_t table, size_t column, uint64_t row) override {
    return source_->describe(table, column, row);
  }

 private:
  const TableSchema& at(size_t table) const { return schema().tables[table]; }
  const std::shared_ptr<Source> source_;
};

// The files and folders of a folder that are tables, in the order of their names.
Result<std::vector<fs::path>> tables_of(const std::string& folder, const SourceOptions& options) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path& path = entry->path();
    std::error_code ignored;
    if (path.filename().string().starts_with('.')) continue;
    if (entry->is_regular_file(ignored) ? format_of(path.string(), options) != nullptr
                                        : entry->is_directory(ignored) &&
                                              format_within(path, options, Text::no) != nullptr)
      files.push_back(path);
  }
  if (error) return input_error("cannot read the folder `{}`: {}", folder, error.message());
  if (files.empty())
    return input_error(
        "the folder `{}` is no data source: it has no schema.json and no file that ends in {}",
        folder, extensions(options));
  std::sort(files.begin(), files.end());
  std::map<std::string, std::string> paths;  // by the table
  for (const fs::path& path : files) {
    const auto [before, is_new] = paths.emplace(table_name(path, options), path.string());
    if (!is_new)
      return input_error(
          "`{}` and `{}` would both be the table `{}`; a schema.json or --table NAME=FILE tells "
          "them apart",
          before->second, path.string(), before->first);
  }
  return files;
}

// A file that is no table does not keep the others from being some.
Result<std::vector<Loader>> open_files(const std::string& folder, const SourceOptions& options) {
  ASSIGN_OR_RETURN(std::vector<fs::path> files, tables_of(folder, options));
  std::vector<Loader> loaders;
  std::vector<Error> failures;
  for (const fs::path& path : files) {
    Result<Loader> loader = open_file(path.string(), table_name(path, options), options);
    if (loader)
      loaders.push_back(std::move(*loader));
    else
      failures.push_back(loader.error());
  }
  if (loaders.empty()) return failures[0];
  for (const Error& failure : failures) options.tell(failure.message + "; it is left out");
  return loaders;
}

Result<Loader> open_path(const std::string& path, const SourceOptions& options) {
  std::error_code error;
  if (is_pattern(path) && format_of(path, options))
    return usage_error("`{}` is many files: --table NAME=PATTERN makes them one table", path);
  if (!fs::is_directory(path, error) || (is_partitioned(path) && format_within(path, options, Text::no)))
    return open_file(path, table_name(path, options), options);
  const std::string schema_path = path + "/schema.json";
  if (!fs::exists(schema_path, error)) {
    ASSIGN_OR_RETURN(std::vector<Loader> loaders, open_files(path, options));
    return JoinedLoader::make(std::move(loaders));
  }
  Result<std::string> text = read_file(schema_path);
  if (!text)
    return Error{text.error().fault,
                 fmt::format("the folder `{}` is no data source: {}", path, text.error().message)};
  ASSIGN_OR_RETURN(Schema schema, parse_schema(*text, schema_path));
  ASSIGN_OR_RETURN(Loader loader, open_text_schema(path, std::move(schema), schema_path, options));
  return kept(std::move(loader), options.cache, absolute(path));
}

// Null: the text names none of them.
const Scheme* scheme_of(std::string_view text, std::span<const Scheme> schemes) {
  const size_t colon = text.find(':');
  for (const Scheme& scheme : schemes)
    if (colon != text.npos && text.substr(0, colon) == scheme.name) return &scheme;
  return nullptr;
}

// What looks like a scheme and is no file.
Result<void> check_path(const std::string& text, std::span<const Scheme> schemes,
                        const SourceOptions& options) {
  std::error_code error;
  const size_t colon = text.find(':');
  if (is_remote(text) || colon == text.npos || colon < 2 || text.find('/') < colon || fs::exists(text, error))
    return {};
  return usage_error("there is no source `{}`: expected {}", text, source_forms(schemes, options));
}

Result<void> check_name(const std::string& table) {
  if (is_speakable(table)) return {};
  return usage_error("the name of a table is a text in UTF-8, not empty and without bytes of 0");
}

Result<std::pair<std::string, std::string>> parse_table(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == text.npos || equals == 0 || equals + 1 == text.size())
    return usage_error("--table is NAME=FILE, not `{}`", text);
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

}  // namespace

std::string source_forms(std::span<const Scheme> schemes, const SourceOptions& options) {
  std::string all;
  for (const Scheme& scheme : schemes) (all += scheme.form) += ", ";
  return all + "a folder or a file (" + extensions(options) + ")";
}

Result<std::shared_ptr<Source>> open_folder(const std::string& folder,
                                            const SourceOptions& options) {
  ASSIGN_OR_RETURN(Loader loader, open_path(folder, options));
  return std::make_shared<Source>(std::move(loader));
}

Result<std::shared_ptr<Source>> open_source(const SourceNames& names,
                                            std::span<const Scheme> schemes,
                                            const SourceOptions& options,
                                            const std::string& file_cache) {
  if (!options.cache.empty()) RETURN_IF_ERROR(check_cache(options.cache));
  SourceOptions for_files = options;
  if (for_files.cache.empty()) for_files.cache = file_cache;
  std::vector<Loader> loaders;
  if (const Scheme* scheme = scheme_of(names.data, schemes)) {
    ASSIGN_OR_RETURN(Loader loader,
                     scheme->open(names.data.substr(scheme->name.size() + 1), options));
    loaders.push_back(kept(std::move(loader), options.cache, names.data));
  } else if (!names.data.empty()) {
    RETURN_IF_ERROR(check_path(names.data, schemes, options));
    ASSIGN_OR_RETURN(Loader loader, open_path(names.data, for_files));
    loaders.push_back(std::move(loader));
  }
  for (const std::string& text : names.tables) {
    ASSIGN_OR_RETURN(const auto table, parse_table(text));
    RETURN_IF_ERROR(check_name(table.first));
    ASSIGN_OR_RETURN(Loader loader, open_file(table.second, table.first, for_files));
    loaders.push_back(std::move(loader));
  }
  ASSIGN_OR_RETURN(Loader loader, JoinedLoader::make(std::move(loaders)));
  return std::make_shared<Source>(std::move(loader));
}

Result<std::shared_ptr<Source>> open_table(const std::string& table, const std::string& path,
                                           const SourceOptions& options,
                                           const std::string& file_cache) {
  RETURN_IF_ERROR(check_name(table));
  SourceOptions for_files = options;
  if (for_files.cache.empty()) for_files.cache = file_cache;
  ASSIGN_OR_RETURN(Loader loader, open_file(path, table, for_files));
  return std::make_shared<Source>(std::move(loader));
}

bool is_table_path(std::string_view text, const SourceOptions& options) {
  return is_remote(text) || format_of(std::string(text), options);
}

Result<std::shared_ptr<Source>> join_sources(std::vector<std::shared_ptr<Source>> sources) {
  if (sources.size() == 1) return std::move(sources[0]);
  std::vector<Loader> loaders;
  for (std::shared_ptr<Source>& source : sources)
    loaders.push_back(std::make_unique<SharedLoader>(std::move(source)));
  ASSIGN_OR_RETURN(Loader loader, JoinedLoader::make(std::move(loaders)));
  return std::make_shared<Source>(std::move(loader));
}

Result<Schema> open_schema(const SourceNames& names, std::span<const Scheme> schemes,
                           const SourceOptions& options, const std::string& file_cache) {
  const Scheme* scheme = scheme_of(names.data, schemes);
  if (scheme && names.tables.empty())
    return scheme->schema(names.data.substr(scheme->name.size() + 1));
  ASSIGN_OR_RETURN(std::shared_ptr<Source> source,
                   open_source(names, schemes, options, file_cache));
  return source->schema();
}

Result<Schema> guess_schema(const std::string& path, const SourceOptions& options) {
  std::vector<Loader> loaders;
  std::error_code error;
  if (fs::is_directory(path, error)) {
    ASSIGN_OR_RETURN(loaders, open_files(path, options));
  } else {
    ASSIGN_OR_RETURN(Loader loader, open_file(path, table_name(path, options), options));
    loaders.push_back(std::move(loader));
  }
  Schema schema;
  for (const Loader& loader : loaders)
    for (TableSchema table : loader->schema().tables) {
      table.file = fs::path(table.file).filename().string();
      schema.tables.push_back(std::move(table));
    }
  return schema;
}

Result<std::shared_ptr<Source>> Files::open(const std::string& path) {
  std::lock_guard lock(mutex_);
  const std::string version = version_of(path);
  Known& known = files_[path];
  if (known.source && !version.empty() && known.version == version) return known.source;
  ASSIGN_OR_RETURN(Loader loader, open_file(path, table_name(path, options_), options_));
  known = {version, std::make_shared<Source>(std::move(loader))};
  return known.source;
}

}  // namespace rndn::data
