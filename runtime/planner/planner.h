// SQL text to a bound, decorrelated, ordered plan: DuckDB plans, and never runs the user's query.
//
//   ASSIGN_OR_RETURN(std::unique_ptr<Planner> planner, Planner::open(Options::of_environment()));
//   RETURN_IF_ERROR(planner->set_catalog(catalog));
//   ASSIGN_OR_RETURN(Planned planned, planner->plan(statement, sources, sink));
//   planned.plan;                  // JSON of json_serialize_plan: read by frontend/sql
//
// The database is private and in memory, has one thread and no access to files or extensions. Its
// tables are shadows (shadow.h): the names and types of the user's, and, for queries that join,
// rows enough that join orders come out as on the real ones. A statement is planned on what is
// there. Where its joins depend on more (frontend/sql/estimates.h), shadows of its tables are made
// anew, and it is planned again. Optimizers that draw conclusions from data, or put functions
// of their own into plans, are off (planner.cpp names them): a plan is right for whatever the
// tables hold. Cost: 0.1 s to open; 1 to 2 ms a planning (rndn bench sql
// measures it); 10 ms for the shadow of a large table.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/sql/catalog.h"
#include "frontend/sql/plan.h"
#include "libraries/base/errors/diagnostic.h"
#include "libraries/base/errors/result.h"
#include "libraries/base/errors/source.h"
#include "libraries/base/system/background.h"
#include "runtime/planner/database.h"
#include "runtime/planner/shadow.h"

namespace rndn::planner {

struct Names;

inline constexpr uint32_t first_view_place = 1 << 20;
// A view: a name for a query, whose text lies in a file. The planner counts the bytes of its text
// from `place`, which no statement reaches, so that what is wrong in a view is told from what is
// wrong in the statement that names it.
struct View {
  std::string name;
  std::vector<std::string> columns;  // other names than the query's; empty: none
  std::string text;                  // of the query, as long as its span
  Span span;
  uint32_t place = first_view_place;
};
using Views = std::vector<View>;
// Where a byte of a statement's plan is: in the statement, or in a view. All of the statement where
// its plan is of a longer text that stands for it, and the byte behind the statement's own.
Span place_of(Span statement, const Views& views, uint32_t at, uint32_t length);

struct ResultColumn {
  std::string name, type;  // the type as SQL writes it: "DECIMAL(15,2)"
  bool operator==(const ResultColumn&) const = default;
};

// A type that a statement has made: a name, and what it is: ENUM ('a', 'b').
struct NamedType {
  std::string name, definition;
};

struct Planned {
  std::string plan;  // JSON: {"error":false,"plans":[..]} with one plan
  std::optional<sql::Plan> tree;  // of it; none: it has what frontend/sql does not know
  std::vector<ResultColumn> columns;
  std::map<std::string, std::set<std::string>>
      reads;               // tables and their columns, as the catalog names them
  bool repeatable = true;  // the same text has this plan for as long as the catalog stays
};

class Planner {
 public:
  static Result<std::unique_ptr<Planner>> open(const Options& options);
  ~Planner();

  // The tables that queries may name. Shadows of those with the same columns as before stay.
  Result<void> set_catalog(const sql::Catalog& catalog);

  // Plans one statement (statements.h), a part of a file. What is wrong with it goes to `sink`,
  // with its place; the error is empty then.
  Result<Planned> plan(Span statement, const SourceManager& sources, DiagnosticSink& sink);
  // Hears of a name that the catalog does not have; says whether it has it now (set_catalog).
  using OpenTable = std::function<Result<bool>(const std::string& name)>;
  // The same of a text that stands for the statement, with its places. `learn` hears the plan, and
  // which columns it reads, and may know more of them then (set_catalog).
  using Columns = std::map<std::string, std::set<std::string>>;  // by table
  using Learn = std::function<Result<void>(const Planned&)>;
  Result<Planned> plan(std::string_view text, Span statement, DiagnosticSink& sink,
                       const OpenTable& open, const Learn& learn = {});

  // Makes a view, which queries may name like a table from then on; `open` and `sink` as above. Two
  // views' places must not overlap.
  Result<void> make_view(const View& view, DiagnosticSink& sink, const OpenTable& open);
  Result<void> drop_views();
  // The types that queries may name.
  Result<void> set_types(const std::vector<NamedType>& types);

  struct Counts {
    uint64_t plannings = 0;
    uint64_t shadows = 0, columns = 0;  // made with rows; of those changed alone
  };
  const Counts& counts() const { return counts_; }

 private:
  explicit Planner(std::unique_ptr<Database> database);
  Result<std::string> serialize(std::string_view text, Span statement, DiagnosticSink& sink,
                                const OpenTable& open);
  Result<bool> make_shadows(const Planned& planned);
  Result<void> change(const std::string& changes, std::map<std::string, Shadow> shadows);

  std::unique_ptr<Database> database_, beside_;  // beside_: of describing_; may be null
  Background describing_;
  sql::Catalog catalog_;
  std::map<std::string, Shadow> shadows_;  // by table, as they are
  Counts counts_;
  std::unique_ptr<Names> names_;
  Views views_;  // that are made
  std::vector<std::string> types_;
};

}  // namespace rndn::planner
