// Which of DuckDB's functions reads what, and which files a path means.
#include "runtime/files/files.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>

#include "libraries/base/system/files.h"
#include "runtime/data/arrow_abi.h"
#include "runtime/files/arrow_file.h"
#include "runtime/files/arrow_writer.h"
#include "runtime/files/duckdb_source.h"
#include "runtime/files/parquet_source.h"
#include "runtime/planner/database.h"

namespace rndn::files {
namespace {

namespace fs = std::filesystem;

enum class Reader : uint8_t { parquet, csv, json, arrow };

// DuckDB's function, and what it is told of files that say nothing of themselves: types are found out
// from all rows.
struct ReaderRow {
  Reader reader;
  std::string_view function, options;
};
constexpr ReaderRow reader_rows[] = {
    {Reader::parquet, "read_parquet", ""},
    {Reader::csv, "read_csv", ", sample_size = -1"},
    {Reader::json, "read_json", ", sample_size = -1"},
    {Reader::arrow, "", ""},  // read here
};
const ReaderRow& row_of(Reader reader) { return reader_rows[static_cast<size_t>(reader)]; }

// Names that SQL has for them.
constexpr std::string_view names[] = {"read_parquet",  "parquet_scan",    "read_csv",
                                      "read_csv_auto", "read_json",       "read_json_auto",
                                      "read_ndjson",   "read_ndjson_auto"};

std::string list_of(const std::vector<std::string>& paths) {
  std::string list;
  for (const std::string& path : paths)
    list += (list.empty() ? "" : ", ") + planner::quote_text(path);
  return "[" + list + "]";
}

template <Reader kind>
Result<std::unique_ptr<data::TableLoader>> open_files(const std::string& path,
                                                      const std::string& table,
                                                      const data::SourceOptions&);

constexpr data::FileFormat file_formats[] = {
    {".parquet", open_files<Reader::parquet>},
    {".csv.gz", open_files<Reader::csv>},
    {".csv.zst", open_files<Reader::csv>},
    {".tsv.gz", open_files<Reader::csv>},
    {".tsv.zst", open_files<Reader::csv>},
    {".tbl.gz", open_files<Reader::csv>},
    {".tbl.zst", open_files<Reader::csv>},
    {".json", open_files<Reader::json>},
    {".jsonl", open_files<Reader::json>},
    {".ndjson", open_files<Reader::json>},
    {".json.gz", open_files<Reader::json>},
    {".jsonl.gz", open_files<Reader::json>},
    {".ndjson.gz", open_files<Reader::json>},
    {".json.zst", open_files<Reader::json>},
    {".jsonl.zst", open_files<Reader::json>},
    {".ndjson.zst", open_files<Reader::json>},
    {".arrow", open_files<Reader::arrow>},
    {".arrows", open_files<Reader::arrow>},
    {".feather", open_files<Reader::arrow>},
    {".ipc", open_files<Reader::arrow>},
    // Many of them are one table; one alone is the affair of runtime/data.
    {".csv", open_files<Reader::csv>},
    {".tsv", open_files<Reader::csv>},
};

template <Reader kind>
bool is_read(std::string name) {
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::any_of(std::begin(file_formats), std::end(file_formats), [&](const auto& format) {
    return format.open == open_files<kind> && name.ends_with(format.extension);
  });
}

// The files of a path, a folder or a pattern, in the order of their names.
template <Reader kind>
Result<std::vector<std::string>> paths_of(const std::string& path) {
  std::error_code ignored;
  std::vector<std::string> paths;
  if (fs::is_directory(path, ignored)) {
    for (fs::recursive_directory_iterator entry(path, ignored), end; !ignored && entry != end;
         entry.increment(ignored)) {
      const std::string name = entry->path().filename().string();
      std::error_code unknown;
      if (entry->is_regular_file(unknown) && is_read<kind>(name) && !name.starts_with('.'))
        paths.push_back(entry->path().string());
    }
  } else if (path.find_first_of("*?[") != path.npos && !fs::exists(path, ignored)) {
    ASSIGN_OR_RETURN(const auto duckdb, reader());
    auto found = duckdb->run(fmt::format("SELECT file FROM glob({})", planner::quote_text(path)));
    if (!found) return of_file(path, found.error());
    for (const auto& row : found->rows) paths.push_back(row[0]);
  } else {
    return std::vector<std::string>{path};
  }
  if (paths.empty()) return input_error("cannot read `{}`: there is no such file", path);
  std::sort(paths.begin(), paths.end());
  return paths;
}

template <Reader kind>
Result<std::unique_ptr<data::TableLoader>> open_files(const std::string& path,
                                                      const std::string& table,
                                                      const data::SourceOptions&) {
  ASSIGN_OR_RETURN(std::vector<std::string> paths, paths_of<kind>(path));
  if constexpr (kind == Reader::arrow) return open_arrow_files(path, std::move(paths), table);
  const ReaderRow& row = row_of(kind);
  const std::string from = fmt::format("{}({}{})", row.function, list_of(paths), row.options);
  auto scan = [=] {
    return open_scan(
        {.place = path, .from = from, .paths = paths, .is_parquet = kind == Reader::parquet});
  };
  ASSIGN_OR_RETURN(auto source,
                   kind == Reader::parquet ? open_parquet(path, paths, scan) : scan());
  return data::open_batches(table, std::move(source));
}

}  // namespace

std::span<const data::FileFormat> formats() { return file_formats; }
std::span<const std::string_view> readers() { return names; }

Result<std::shared_ptr<data::Source>> open_call(const std::string& function,
                                                const std::string& arguments,
                                                const std::string& table,
                                                const data::SourceOptions&) {
  const std::string from = function + "(" + arguments + ")";
  ASSIGN_OR_RETURN(auto source,
                   open_scan({.place = from,
                              .from = from,
                              .paths = {},
                              .is_parquet = function.find("parquet") != function.npos}));
  ASSIGN_OR_RETURN(auto loader, data::open_batches(table, std::move(source)));
  return std::make_shared<data::Source>(std::move(loader));
}

namespace {

// COPY's options, with those that the end of the path stands for where they are not given.
struct CopyOptions {
  std::string text;
  bool is_arrow = false;  // and no text
  bool is_json = false;
};
Result<CopyOptions> options_of(std::string_view path, const std::string& given) {
  const std::string_view given_path = path;
  std::string all = given;
  std::vector<std::string> words;  // outside of strings
  bool in_string = false, goes_on = false;
  for (const char c : given) {
    if (c == '\'') in_string = !in_string;
    const bool is_part = !in_string && (std::isalnum(static_cast<unsigned char>(c)) || c == '_');
    if (is_part && !goes_on) words.emplace_back();
    if (is_part) words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    goes_on = is_part;
  }
  const auto is_given = [&](std::string_view option) {
    return std::find(words.begin(), words.end(), option) != words.end();
  };
  for (const char* many : {"partition_by", "per_thread_output", "file_size_bytes"})
    if (is_given(many)) return input_error("COPY with {} writes several files: it is not taken", many);
  const auto format = std::find(words.begin(), words.end(), "format");
  if (format == words.end() ? is_read<Reader::arrow>(std::string(path))
                            : format + 1 != words.end() && format[1] == "arrow") {
    if (words.size() > (format == words.end() ? 0 : 2))
      return input_error("COPY to a file of Arrow's has no options but its format");
    return CopyOptions{.text = "", .is_arrow = true};
  }
  auto add = [&](std::string_view option, std::string_view value) {
    if (!is_given(option))
      all += fmt::format("{}{} {}", all.empty() ? "" : ", ", option, value);
  };
  for (const auto& [end, packed] : {std::pair(".gz", "gzip"), std::pair(".zst", "zstd")})
    if (path.ends_with(end)) {
      add("compression", packed);
      path = path.substr(0, path.rfind('.'));
    }
  static constexpr std::pair<std::string_view, std::string_view> written[] = {
      {".parquet", "parquet"}, {".json", "json"}, {".jsonl", "json"}, {".ndjson", "json"},
      {".csv", "csv"},         {".tsv", "csv"},   {".tbl", "csv"},    {".txt", "csv"},
      {"", "csv"}};
  const std::string suffix = std::filesystem::path(path).extension().string();
  const auto* known = std::find_if(std::begin(written), std::end(written),
                                   [&](const auto& row) { return row.first == suffix; });
  if (known == std::end(written) && format == words.end())
    return input_error("COPY TO `{}`: `{}` tells no format; write (FORMAT csv), parquet, json or arrow",
                       given_path, suffix);
  if (known != std::end(written)) add("format", known->second);
  const bool is_json = format == words.end()       ? known->second == "json"
                       : format + 1 != words.end() ? format[1] == "json"
                                                   : false;
  return CopyOptions{.text = all, .is_json = is_json};
}

// The columns as DuckDB's writer of JSON is to have them. It makes doubles of decimals of at most 15
// digits, so that those below 10^-6 get an exponent, which its reader takes for no decimal; with more
// digits they stay what they are.
Result<std::string> columns_for_json(ArrowArrayStream& stream) {
  data::Owned<ArrowSchema> schema;
  if (stream.get_schema(&stream, schema.get()) != 0) return world_error("there is not enough memory");
  std::vector<std::string> names;
  std::string replaced;
  for (int64_t c = 0; c < schema->n_children; ++c) {
    const std::string name = schema->children[c]->name;
    const bool is_first = std::none_of(names.begin(), names.end(), [&](const std::string& other) {
      return planner::is_same_name(name, other);
    });
    names.push_back(name);
    unsigned digits = 0, scale = 0;
    if (std::sscanf(schema->children[c]->format, "d:%u,%u", &digits, &scale) != 2 || digits > 15 ||
        scale < 7 || !is_first)
      continue;
    replaced += fmt::format("{}CAST({} AS DECIMAL(38, {})) AS {}", replaced.empty() ? "" : ", ",
                            planner::quote_name(name), scale, planner::quote_name(name));
  }
  return replaced.empty() ? "*" : "* REPLACE (" + replaced + ")";
}

// DuckDB asks a stream for its schema several times and releases none of them: it is lent them.
class LentStream {
 public:
  explicit LentStream(ArrowArrayStream& from) : from_(from) {
    lent_.get_schema = [](ArrowArrayStream* s, ArrowSchema* out) { return self(s).lend(*out); };
    lent_.get_next = [](ArrowArrayStream* s, ArrowArray* out) {
      ArrowArrayStream& from = self(s).from_;
      return from.get_next(&from, out);
    };
    lent_.get_last_error = [](ArrowArrayStream* s) {
      ArrowArrayStream& from = self(s).from_;
      return from.get_last_error(&from);
    };
    lent_.release = [](ArrowArrayStream* s) { s->release = nullptr; };
    lent_.private_data = this;
  }
  ~LentStream() {
    for (auto& [schema, releases] : schemas_) {
      for (size_t k = 0; k < releases.size(); ++k) schema->children[k]->release = releases[k];
      schema->release(schema.get());
    }
  }
  LentStream(const LentStream&) = delete;
  LentStream& operator=(const LentStream&) = delete;
  ArrowArrayStream* get() { return &lent_; }

 private:
  static LentStream& self(ArrowArrayStream* s) { return *static_cast<LentStream*>(s->private_data); }
  int lend(ArrowSchema& out) {
    auto schema = std::make_unique<ArrowSchema>();
    if (const int error = from_.get_schema(&from_, schema.get())) return error;
    out = *schema;
    out.release = [](ArrowSchema* s) { s->release = nullptr; };
    // It may leave other functions behind in the children.
    std::vector<void (*)(ArrowSchema*)> releases;
    for (int64_t k = 0; k < schema->n_children; ++k) releases.push_back(schema->children[k]->release);
    schemas_.emplace_back(std::move(schema), std::move(releases));
    return 0;
  }

  ArrowArrayStream& from_;
  ArrowArrayStream lent_{};
  std::vector<std::pair<std::unique_ptr<ArrowSchema>, std::vector<void (*)(ArrowSchema*)>>> schemas_;
};

}  // namespace

Result<void> write(ArrowArrayStream* from, const std::string& path, const std::string& options) {
  data::ArrowStream stream(std::move(*from));
  ASSIGN_OR_RETURN(const CopyOptions all, options_of(path, options));
  if (all.is_arrow) {
    ASSIGN_OR_RETURN(NewFile file, NewFile::create(path));
    RETURN_IF_ERROR(write_arrow(std::move(stream), !path.ends_with(".arrows"), file));
    return file.commit();
  }
  ASSIGN_OR_RETURN(const auto duckdb, writer());
  std::string columns = "*";
  if (all.is_json) {
    ASSIGN_OR_RETURN(columns, columns_for_json(*stream.get()));
  }
  ASSIGN_OR_RETURN(NewFile file, NewFile::create(path));
  const std::string place = fmt::format("/proc/self/fd/{}", file.descriptor());
  LentStream lent(*stream.get());
  auto written = duckdb->run_over(
      "rndn_result", lent.get(),
      fmt::format("COPY (SELECT {} FROM rndn_result) TO {} ({}, USE_TMP_FILE false)", columns,
                  planner::quote_text(place), all.text));
  if (written) return file.commit();
  // Where the system refuses it DuckDB says so within JSON, with the number of the error.
  constexpr std::string_view number = "\"errno\":\"";
  const std::string& said = written.error().message;
  if (const size_t at = said.find(number); at != said.npos)
    return world_error("cannot write `{}`: {}", path,
                       std::strerror(std::atoi(said.c_str() + at + number.size())));
  return of_file("cannot write `" + path + "`", written.error());
}

}  // namespace rndn::files
