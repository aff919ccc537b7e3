// The frontend in one call: HorseIR text to a typed program. pipeline.cpp shows the passes.
#pragma once
#include <optional>
#include <string_view>

#include "frontend/ir.h"
#include "libraries/base/errors/diagnostic.h"
#include "libraries/base/report/timing.h"

namespace rndn::hir {

// What the type checker knows about tables. Implemented by the schema of runtime/data; lives here so that the frontend sees no data.
class SchemaView {
 public:
  virtual ~SchemaView() = default;
  struct Column {
    BasicType type;            // of the column, or of the key values of a foreign key
    bool is_foreign_key = false;  // then its HorseIR type is enum<type> and `table` is referenced
    std::string_view foreign_table;
  };
  // False when there is no such table / column.
  virtual bool has_table(std::string_view table) const = 0;
  virtual bool find_column(std::string_view table, std::string_view column, Column& out) const = 0;
  virtual std::vector<std::string_view> table_names() const = 0;
  virtual std::vector<std::string_view> column_names(std::string_view table) const = 0;
  // Where the tables come from, said beside one that is not there. Empty: from where they were asked for.
  virtual std::string_view origin() const { return {}; }
};

struct Options {
  bool strict = false;                  // check_cast: strict mode of docs/horseir.md, "check_cast"
  bool dialect_v0 = false;              // member(set, x), index_of(haystack, needles)
  const SchemaView* schema = nullptr;   // none: columns get their type from casts and declarations alone
  bool parse_only = false;              // stop after the parser: `--emit hir`
};

// Parses and checks `file`. Every problem goes to `sink`; the program is usable only if sink has no errors.
Program run(FileId file, const SourceManager& sources, const Options& options, DiagnosticSink& sink, Timings& timings);

}  // namespace rndn::hir
