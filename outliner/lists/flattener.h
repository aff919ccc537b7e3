// Work on the cells of lists as work on flat vectors (flatten.cpp): the values that it is about, and what makes them.
// Private to this folder.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "libraries/base/errors/result.h"
#include "outliner/editing.h"

namespace rndn::outliner::flattening {

using hir::BasicType;
using hir::Builtin;
using hir::Expression;
using hir::ExpressionId;
using hir::Function;
using hir::FunctionRef;
using hir::Operand;
using hir::Statement;
using hir::StatementId;
using hir::TypeId;
using hir::TypeKind;
using hir::VariableId;

inline constexpr size_t most_made = 4000, deepest_list_calls = 20, most_rounds = 4;
inline constexpr int64_t most_list_columns = 64;
inline constexpr VariableId no_variable = none<VariableId>();

// A value as every cell sees it.
struct Cellwise {
  enum Kind : uint8_t {
    whole,    // the same for all cells: `operand`
    cells,    // per cell a vector: elements `values`, `lengths`; without lengths each is one element
    lists,    // per cell a list: parts[0] per cell of the list, `lengths` each; in main: one list
    dict,     // per cell a dict: parts are its keys and values
    columns,  // a list that is known cell by cell
    mixed,  // per cell one of several kinds: parts are cells of one kind each, `values` the number of every cell, which
            // counts the cells of all parts
  } kind = whole;
  Operand operand{};
  bool single = false;  // whole: surely one element
  TypeId type{};        // whole: of the operand; cells: of the elements
  VariableId values = no_variable, lengths = no_variable;
  VariableId begins = no_variable;  // cells: where in `values` each begins; none: one behind the other
  SizeId count = none<SizeId>();    // lists, in main: how many cells, where that is a known size
  std::vector<Cellwise> parts;
};

struct Level {
  VariableId per_cell;  // a vector with an element per cell
};

class Flattener : Editing {
 public:
  Flattener(hir::Program& program, Shapes& shapes, ShapeTable& table, const Options& options, Function& own)
      : Editing(program, shapes, table), f_(own), options_(options) {}
  bool run(DiagnosticSink& sink);

 private:
  static Error refuse(std::string_view why) { return input_error("{}", why); }
  const hir::TypeTable& types() const { return *program_.types; }
  TypeId basic(BasicType t) const { return program_.types->basic(t); }
  bool is_list(TypeId t) const;

  // --- Statements of main ------------------------------------------------------------------------
  bool rewrite(StatementId id);
  void forget(VariableId v);
  void recall(VariableId target, const Expression& e);
  bool wanted(StatementId id, const Expression& e);
  bool applies_to_list(const Expression& e) const;
  static unsigned split_operands(Builtin form);
  bool has_known_count(StatementId id, size_t k) const;
  int64_t known_count(ShapeId id) const;
  bool reads_known(const Expression& e) const;
  const Expression* only_value(const Operand& o) const;
  bool is_columns(const Operand& o) const;
  Result<Cellwise> made_by(const Expression& e, TypeId type, const StatementFacts& facts);
  bool is_function(const Operand& o) const;
  Result<Cellwise> value_of(const Operand& o, ShapeId shape);
  Result<Cellwise> elements_of(VariableId v, TypeId type, ShapeId shape);
  std::optional<Expression> expression_of(const Cellwise& v, const Expression& original);
  struct ListCall {
    Builtin builtin;
    Operands operands;
    TypeId type;
  };
  Result<ListCall> list_call(const Cellwise& v);
  Result<VariableId> list_variable(const Cellwise& v);
  void prune();

  // --- Making statements -------------------------------------------------------------------------
  Operand var(VariableId v) const { return operand(f_, v); }
  TypeId list_type(TypeId cell) { return program_.types->list(cell); }
  VariableId emit(Builtin b, TypeId type, Operands operands);
  VariableId emit(Builtin b, BasicType type, Operands operands);
  VariableId number(Builtin b, Operands operands);
  VariableId mask(Builtin b, Operands operands);
  VariableId copy(Operand o, TypeId type);
  Operand zero(TypeId type);
  VariableId required(VariableId ok, Operand x, TypeId type);
  static Cellwise whole(Operand o, TypeId type);
  Cellwise whole_variable(VariableId v, bool single);
  static Cellwise list_of(Cellwise inner);
  static Cellwise cells(VariableId values, VariableId lengths, TypeId type);
  bool is_single(const Cellwise& v) const;
  bool is_scalar_cells(const Cellwise& v) const;

  // --- Elements, lengths, places -----------------------------------------------------------------
  VariableId length(VariableId v) { return number(Builtin::len, {var(v)}); }
  VariableId positions(VariableId v) { return number(Builtin::range, {var(length(v))}); }
  template <class Key>
  static VariableId& slot(std::map<Key, VariableId>& map, Key key) {
    return map.try_emplace(key, no_variable).first->second;
  }
  VariableId begins(VariableId lengths);
  VariableId cell_numbers(VariableId lengths, VariableId like = no_variable);
  VariableId places(VariableId lengths, VariableId like = no_variable);
  VariableId ones(VariableId values);
  VariableId element(VariableId values, TypeId type, VariableId at);
  Cellwise contiguous(const Cellwise& v);
  VariableId lengths_of(const Cellwise& v);
  VariableId list_variable_of(const Cellwise& flat);
  VariableId count(VariableId ones_of, VariableId lengths);
  VariableId sum_of_cells(VariableId numbers, VariableId lengths);
  Cellwise reduced(Builtin b, TypeId type, const Cellwise& v);
  // A value as a run of `values` per cell.
  struct Run {
    VariableId values;
    Operand begin, length;
    bool begins_vary, lengths_vary;  // one per cell, not one for all
  };
  Run run_of(const Cellwise& v);
  Operand at_cell(Operand per_cell, bool varies, VariableId c);
  VariableId per_cell(const Cellwise& v) const;
  VariableId for_all(Operand n, const Level& level);

  // --- Calls -------------------------------------------------------------------------------------
  Result<Cellwise> call(const Expression& e, TypeId type, std::vector<Cellwise> args, const Level* level);
  Result<Cellwise> apply(const FunctionRef& f, TypeId type, std::vector<Cellwise> args, const Level* level);
  Result<Cellwise> each_form(Builtin form, TypeId type, std::vector<Cellwise> args, const Level* level);
  void check_counts(const Cellwise& x, const Cellwise& y);
  Cellwise seen_from(const Cellwise& v, VariableId counts, const Level& inner);
  Cellwise for_each_cell(const Cellwise& v, const Level& level);
  Result<Cellwise> repeated(const Cellwise& v, const Level& level);
  Result<Cellwise> follow(hir::FunctionId id, const std::vector<Cellwise>& args, const Level* level);
  Result<Cellwise> statements_of(const Function& g, const std::vector<StatementId>& order,
                                 const std::vector<Cellwise>& args, const Level* level);
  Result<Cellwise> cast(const Cellwise& v, TypeId to);

  // --- Builtins ----------------------------------------------------------------------------------
  Result<Cellwise> builtin(Builtin b, TypeId type, std::vector<Cellwise> args, const Level* level);
  std::optional<int64_t> literal_integer(const Operand& o) const;
  Result<void> check_vectors(std::span<const Cellwise> args) const;
  Result<Cellwise> elementwise(Builtin b, TypeId type, std::vector<Cellwise> args, const Level& level);
  Run run_of_operand(const Cellwise& v);
  // Vectors that must be equally long in every cell: their elements, and the lengths.
  struct Aligned {
    std::vector<VariableId> values;
    VariableId lengths = no_variable;
  };
  Result<Aligned> aligned(std::span<const Cellwise> args);
  Result<Cellwise> index_of_cells(TypeId type, const Cellwise& x, const Cellwise& k, const Level& level);
  VariableId checked_place(const Run& run, Operand place, VariableId c);
  Result<Cellwise> cell_of_list(const Cellwise& x, const Cellwise& k);
  Cellwise view(const Cellwise& v, VariableId numbers);
  Result<Cellwise> compress(TypeId type, std::span<const Cellwise> args);
  Result<Cellwise> where(const Cellwise& m);
  Result<Cellwise> reverse(const Cellwise& x);
  Result<Operand> number_of(const Cellwise& k);
  Result<Cellwise> part(Builtin b, TypeId type, const Cellwise& k, const Cellwise& x, const Level& level);
  Result<Cellwise> append(TypeId type, const Cellwise& x, const Cellwise& y, const Level* level);
  // Where the elements of both runs of every cell lie in the elements of a and, behind them, of b.
  struct Joined {
    VariableId places, lengths;
  };
  Joined joined(const Run& a, const Run& b, const Level& level);
  Result<Cellwise> only_cell(const Cellwise& v, const Level* level);
  Result<Cellwise> as_list(const Cellwise& v, const Level* level);
  Result<Cellwise> append_lists(const Cellwise& x, const Cellwise& y, const Level* level);
  bool alike(const Cellwise& x, const Cellwise& y) const;
  Cellwise behind(const Cellwise& x, const Cellwise& y);
  Result<Cellwise> unique(const Cellwise& x);
  Result<Aligned> rows_of(const Cellwise& x);
  VariableId keyed(const Aligned& a, VariableId c);
  Result<Cellwise> order(const Cellwise& x, const Cellwise& up, const Level& level);
  // A dict per cell; what it groups is grouped in one go, cell by cell.
  struct Grouped {
    VariableId first, rows, row_list, counts;  // per group, of all rows, as a list, groups per cell
  };
  Grouped grouped(const Aligned& a, VariableId c);
  Result<Cellwise> group(const Cellwise& x);
  Result<Cellwise> search(Builtin b, const Cellwise& x, const Cellwise& y, const Level& level);
  Result<TypeId> compared_as(TypeId a, TypeId b);
  Result<Cellwise> range(const Cellwise& n);
  Result<Cellwise> vector(TypeId type, const Cellwise& n, const Cellwise& x);
  Result<Cellwise> raze(const Cellwise& x);
  Result<Cellwise> raze_columns(TypeId type, const Cellwise& x, const Level* level);
  Result<Cellwise> tolist(const Cellwise& x);
  Result<Cellwise> scan(Builtin b, TypeId type, std::span<const Cellwise> args);
  Result<Cellwise> index_a(TypeId type, std::span<const Cellwise> args, const Level& level);

  // --- Lists of main as wholes -------------------------------------------------------------------
  Result<Cellwise> of_lists(Builtin b, TypeId type, std::vector<Cellwise>& args);
  Result<Cellwise> replicate(TypeId, std::span<const Cellwise> args);
  Result<Cellwise> repeated_list(const Cellwise& v, const Level& level);

  Function& f_;
  const Options& options_;
  std::map<VariableId, Cellwise> known_;  // what variables of main hold
  // What was made already, by variables that never change.
  struct Caches {
    std::map<VariableId, VariableId> begins, numbers, places, ones;  // by lengths; by values
    std::map<std::pair<VariableId, VariableId>, VariableId> list_of;
    std::map<VariableId, Cellwise> of_list;  // by variable of main
    std::map<ShapeId, VariableId> lengths_of;
  } caches_;
  std::vector<StatementId> made_;         // for the statement at hand
  std::set<StatementId> ours_, checked_;  // made by this pass; of these, indexes that may be out of range
  Span span_;
  size_t total_ = 0, calls_ = 0;
};

}  // namespace rndn::outliner::flattening
