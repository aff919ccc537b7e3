// Files as tables: Parquet, JSON, and delimited text that is compressed or cut into many files.
//
//   data::SourceOptions options{.formats = files::formats()};
//   data::open_source({.data = "sales/"}, schemes, options);             // a folder of such files
//   files::open_call("read_csv", "'x.csv', header = false", "t", options);   // as SQL calls a reader
//
// Parquet files of plain columns and pages are read here (parquet_source.cpp). All else DuckDB
// (runtime/planner/duckdb.h) decodes on all cores, and no query of the user's: what is asked for is
// columns, each once. A Parquet file says its rows and columns in its footer, which is all that is
// read when it is opened. Text is read whole for its types, and again with the first columns that
// are needed. Without the library an error (fault world) says what to install.
//
// Types: bool, integers of all widths, decimals, floats, dates, times, timestamps of every unit,
// text, enumerations. UBIGINT and decimals of more than 18 digits of Parquet files are kept in 128
// bits where the footers' bounds do not say that 64 hold them; else they and HUGEINT must fit 64, or
// a row that does not is named. Other columns (blobs, lists, structs, ..) are refused by name when a
// query asks for them. Not cached on disk are columns of Parquet files: reading them is as fast.
#pragma once
#include <memory>
#include <span>
#include <string>

#include "runtime/data/source.h"

struct ArrowArrayStream;

namespace rndn::files {

std::span<const data::FileFormat> formats();

// Names of the functions of SQL that read files: "read_parquet"; with their other names.
std::span<const std::string_view> readers();
// What such a function reads; `arguments` as the statement has them.
Result<std::shared_ptr<data::Source>> open_call(const std::string& function,
                                                const std::string& arguments,
                                                const std::string& table,
                                                const data::SourceOptions& options);

// Options of the readers and of COPY that people ask for most, each with a value; DuckDB 2.0.1 has more.
struct FileOption {
  std::string_view of;     // "read_csv", "COPY to .parquet"
  std::string_view value;  // "header = true"
  std::string_view meaning;
};
std::span<const FileOption> file_options();

// Writes what the stream has, and releases it: as Arrow IPC, or by DuckDB's COPY, whose options are given as SQL has
// them; a format and a compression that they do not name are told by the path's end (.arrow,
// .parquet, .jsonl.gz, .csv, none: csv; any other is an error). The file takes its place when it is complete.
Result<void> write(ArrowArrayStream* stream, const std::string& path, const std::string& options);

}  // namespace rndn::files
