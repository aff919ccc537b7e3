// What `--data` and `--table` name: the register of sources.
//
//   constexpr Scheme schemes[] = {tpch::scheme};
//   open_source({.data = "tpch:0.01"}, schemes, options);       // a scheme, and what follows its colon
//   open_source({.data = "shop/"}, schemes, options);           // a folder
//   open_source({.data = "orders.csv"}, schemes, options);      // a file: the table `orders`
//   open_source({.tables = {"o=orders.csv"}}, schemes, options);   // the table `o`
//
// A new source is one file and one row: a generator is a Scheme, which the program lists; a kind of
// file is a row of the table in sources.cpp, or of options.formats, which the program lists.
//
// Of a folder, each subfolder that holds files of options.formats is a table as well, and the folder
// itself is one where its subfolders are named as Hive names partitions: `year=2024`.
//
// A folder with schema.json has the tables that this describes. Of any other folder each delimited
// file (.csv, .tbl, .tsv) is a table by its name. Such a file, alone or in a folder, shows what it is:
//   delimiter  of , ; tab | the one that cuts the first rows into equally many fields
//   header     the first row, where a field of it is none of its column's type or it can be told by
//              its names (guess.cpp). Without one the columns are c0, c1, ...; an empty name is
//              one of these, too, and a name that repeats gets _2, _3, ...
//   types      the first of i64, f64, bool, month, minute, second, time, date and dt that takes every
//              field, else sym. Integers beyond i64 make a column f64; nan and inf are numbers beside
//              numbers; digits after a leading zero are text (007). Dates are ISO 8601's, or have day,
//              month and year apart by - / or . where all rows tell which is which. Times with Z or an
//              offset are UTC; ISO times with more digits than a dt has, microseconds in i64.
//   quotes     in .csv files always, else where the first rows have some
// The whole file is looked at before its types are known. What the first rows do not show, and the
// user might not expect, is said in a note.
#pragma once
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/source.h"

namespace rndn::data {

struct Scheme {
  std::string_view name;  // before the colon: "tpch"
  std::string_view form;  // "tpch:SF", for help and messages
  // Of what follows the colon.
  Result<std::unique_ptr<TableLoader>> (*open)(std::string_view what, const SourceOptions& options);
  Result<Schema> (*schema)(std::string_view what);  // what open's would be; opens nothing
};

struct SourceNames {
  std::string data;                 // --data; empty: none
  std::vector<std::string> tables;  // --table: NAME=FILE
  bool empty() const { return data.empty() && tables.empty(); }
};

// The tables of all that is named. `file_cache` is for columns of files, options.cache, which the user
// has named, for those of files and schemes: an error where that cannot be written.
Result<std::shared_ptr<Source>> open_source(const SourceNames& names,
                                            std::span<const Scheme> schemes,
                                            const SourceOptions& options,
                                            const std::string& file_cache = "");
// All tables of the sources, in their order; columns that they have loaded are shared.
Result<std::shared_ptr<Source>> join_sources(std::vector<std::shared_ptr<Source>> sources);
// The schema alone, for commands that read no data.
Result<Schema> open_schema(const SourceNames& names, std::span<const Scheme> schemes,
                           const SourceOptions& options, const std::string& file_cache = "");
// The schema of a folder's delimited files, or of one file, as they show it, whatever schema.json is there;
// the files by their names in the folder.
Result<Schema> guess_schema(const std::string& path, const SourceOptions& options);
// A file, a folder of files or a pattern as the table of that name.
Result<std::shared_ptr<Source>> open_table(const std::string& table, const std::string& path,
                                           const SourceOptions& options,
                                           const std::string& file_cache = "");
// Names the contents of a file by what the system says of it (text_file.h); empty: it may change yet.
std::string version_of(const std::string& path);
// Whether the text can only be a path of a file, or of many: it ends as one of those that are tables do.
bool is_table_path(std::string_view text, const SourceOptions& options);
// "tpch:SF, a folder or a file (.csv, .tbl, .tsv)".
std::string source_forms(std::span<const Scheme> schemes, const SourceOptions& options = {});

// Files that programs name themselves (`load_csv`), each a source of one table. They are kept until they
// change. Thread-safe.
class Files {
 public:
  explicit Files(SourceOptions options = {}) : options_(std::move(options)) {}
  Result<std::shared_ptr<Source>> open(const std::string& path);

 private:
  struct Known {
    std::string version;
    std::shared_ptr<Source> source;
  };
  const SourceOptions options_;
  std::mutex mutex_;
  std::map<std::string, Known> files_;
};

}  // namespace rndn::data
