// A program as several that run with a part of a table at a time (outliner/split.h): what the passes of split.cpp and
// divide.cpp know of variables and statements. Private to this folder.
#pragma once
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "outliner/analysis.h"
#include "outliner/split.h"

namespace rndn::outliner::splitting {

using hir::BasicType;
using hir::Builtin;
using hir::Expression;
using hir::Function;
using hir::Operand;
using hir::ShapeRule;
using hir::Statement;
using hir::StatementId;
using hir::TypeId;
using hir::TypeKind;
using hir::VariableId;

// What a variable is in a run of a range.
struct State {
  enum Kind : uint8_t {
    same,       // the same in every range: it does not depend on the table
    whole,      // only known when all ranges have been run
    table,      // the table itself
    foreign,    // a foreign key of it
    rows,       // a vector with an element per row of the range, or of a selection of them
    rows_list,  // a list of such
    length,     // how many elements such a vector has
    groups,     // of such vectors: the dictionary,
    places,     // its values,
    first,      // its keys,
    cells,      // the elements of a vector by group,
    per_cell,   // a value for each of these, as cells, and
    per_group,  // as a vector
    pairs,      // of a join
    reduced,    // a value per range, which `builtin` reduces further
    carried,    // index_a into a vector of other rows
  } kind = same;
  SizeId size = none<SizeId>();          // rows, length
  SizeId counts = none<SizeId>();        // rows: whose elements are numbers of rows of that size
  SizeId counts_other = none<SizeId>();  // pairs: cell 1; `counts`: cell 0
  // rows, foreign: equal elements are never in different ranges, and later ranges have greater ones
  bool cut = false;
  StatementId at = none<StatementId>();  // groups .. per_group: the group; pairs: the join
  VariableId of = none<VariableId>();    // cells .. per_group, reduced floats: the elements
  Builtin builtin{};                     // per_cell, per_group, reduced: how pieces are put together; index: of first
  // Where the rows of the table are ordered by keys: a vector that is in another order than when
  // they are not, numbers of such rows, and the how manieth key it is, from 1.
  bool moved = false, counts_moved = false, other_moved = false;
  size_t key = 0;
  bool is_rows() const { return kind == rows; }
};

class Splitter {
 public:
  Splitter(const hir::Program& program, const SplitOptions& options) : options_(options), program_(program) {}
  Split run();
  Split divide();

 private:
  Split attempt(Split out);

  // --- The program as two ---
  // What is read behind a place and made before it.
  struct Alive {
    bool possible = true;                      // all of it are vectors
    std::vector<VariableId> vectors, lengths;  // to be left as columns; `len` of such a vector
    std::set<StatementId> again;               // what costs nothing: both programs have it
    size_t columns = 0;                        // vectors of more than one element
  };
  Split two(Split out);
  void bring_together();
  bool is_scalar_result(StatementId id);
  bool is_light(StatementId at);
  bool is_counted(StatementId at);
  bool is_len(StatementId at);
  bool is_work(StatementId at);
  Alive alive_at(size_t place);
  void leave(const Alive& alive, size_t place, const char* kind);
  void describe_operation(Split& out);
  static bool can_carry_on(Builtin builtin, std::optional<BasicType> made);
  std::string name_of_work();
  std::vector<Operand> vectors_of(const Operand& o);
  Operand make_list(const std::vector<Operand>& columns);
  bool leave_operation(Split& out, StatementId at, size_t place, const std::array<std::vector<Operand>, 2>& sides);

  // --- The program ---
  Function& main() { return program_.functions[program_.main]; }
  const Statement& statement(StatementId id) { return main().statements[id]; }
  const Expression& call_of(StatementId id);
  std::vector<Operand> operands_of(StatementId id);
  const hir::TypeTable& types() const { return *program_.types; }
  TypeId type_of(VariableId v) { return main().variables[v].type; }
  std::optional<BasicType> basic_of(VariableId v);
  std::optional<BasicType> basic_of(const Operand& o);
  std::string prepare();
  void reset();
  void forbid(StatementId s) { again_ |= forbidden_.insert(s).second; }

  // --- Keys that the rows are ordered by ---
  bool set_keys(StatementId at);
  template <class T>
  const std::vector<T>* literal_of(const Operand& o) {
    return o.kind == Operand::literal ? std::get_if<std::vector<T>>(&program_.literals[o.literal_id()].values)
                                      : nullptr;
  }
  bool are_keys(const std::vector<VariableId>& columns);
  static bool same_order(const State& x, const State& y) { return x.moved == y.moved; }

  // --- What each variable is ---
  State of(const Operand& o);
  SizeId size_of_result(StatementId id);
  bool is_one(StatementId id, size_t operand);
  static State whole() { return {.kind = State::whole}; }
  static State rows(SizeId size);
  static State in_order_of(const State& x, SizeId size);
  // A vector of the range whose elements are values.
  static bool is_values(const State& s) { return s.is_rows() && is_none(s.counts); }
  void classify(StatementId id);
  bool is_table(const Expression& e);
  std::string text_of(const Operand& o);
  std::optional<Builtin> function_of(const Operand& o);
  std::optional<int64_t> number_of(const Operand& o);
  State after_all(const Expression& e);
  void forbid_numbers(const Expression& e);
  bool is_values_of_group(const Operand& x, StatementId group);
  bool is_elementwise(Builtin b);
  static bool is_set(Builtin b, size_t operand);
  State elementwise(StatementId id, const Expression& e);
  std::vector<VariableId> columns_of(const Operand& o);
  State of_range(StatementId id, const Expression& e, VariableId target);
  bool is_ordered_so(const Operand& o);
  bool is_summed_in_parts(const Operand& x);
  bool is_cut(StatementId group) { return states_[statement(group).targets[0].id].cut; }
  bool is_ascending(const std::string& column, std::optional<BasicType> type);
  State gather(StatementId id, const Expression& e);
  State join(StatementId id, const Expression& e);

  // --- What is needed, and where ---
  void need_all();
  void check_numbers(const Statement& s);
  void need_after(VariableId v);
  bool counts_in_own_order(const State& s);
  void refuse_own_order(VariableId v);
  void refuse(std::string why);
  bool done_after_(VariableId v) { return !in_after_.insert(v).second; }
  void copy_after(StatementId at);
  void whole_after(StatementId at);
  void copy(VariableId to, VariableId from);
  VariableId part_of(VariableId x, VariableId numbers);
  VariableId by_numbers(VariableId x, VariableId numbers, VariableId target = none<VariableId>());
  hir::ExpressionId copy_expressions(hir::ExpressionId& value);
  void need_range(VariableId v);
  void need_before(VariableId v);
  bool is_cheap(StatementId at);

  // --- Columns between the programs ---
  Operand variable(VariableId v);
  Operand literal(hir::Literal literal);
  Operand number(int64_t n);
  Operand symbol(const std::string& text);
  Operand function(Builtin b);
  VariableId new_variable(TypeId type);
  void emit(std::vector<StatementId>& to, VariableId target, Builtin b, std::vector<Operand> operands, TypeId type,
            Span span = {});
  void load(std::vector<StatementId>& to, VariableId v, const std::string& table, const std::string& column);
  std::string column_name(VariableId v) { return options_.prefix + std::to_string(index(v)); }
  std::string table_of(SizeId size, const char* kind);
  size_t before_result(VariableId v, SizeId size, bool one);
  void read_before(VariableId v);
  void send(VariableId v, const std::string& table, VariableId to);
  void send_rows(VariableId v);
  size_t length_result(SizeId size);
  void carry(VariableId v);

  // --- Groups ---
  static constexpr size_t sum_parts = 3;  // of a float: of 80 bits and more together
  struct Merged {
    VariableId groups, places, first_of_range;
    // Where floats are summed: the rows of a range's groups; in `after` those of the keys that come
    // with parts of sums, and the numbers and lengths of the groups; which results the keys are.
    VariableId rows_of_range = none<VariableId>(), places_of_parts = none<VariableId>(), numbers = none<VariableId>(),
               count = none<VariableId>();
    std::vector<size_t> keys_of_parts;
  };
  struct FloatSum {  // of each group
    size_t result;   // of the range program: its parts, of all groups one behind the other
    VariableId sum;  // in `after`
  };
  std::string group_table(StatementId group);
  // Of parts of sums: those of all groups one behind the other, beside the keys as often.
  std::string parts_table(StatementId group) { return group_table(group) + "p"; }
  const Merged& merged(StatementId group);
  Merged group_again(std::vector<StatementId>& to, StatementId group, const std::vector<VariableId>& keys);
  VariableId gathered(StatementId group, VariableId v);
  void merge(VariableId v);
  void reduce_cells(std::vector<StatementId>& to, VariableId v, Builtin by, VariableId parts, VariableId places,
                    Span span);
  void emit_each(std::vector<StatementId>& to, VariableId v, Builtin by, VariableId cells, Span span);

  // --- Sums of floats ---
  // A vector as vectors whose sums are exact (sums.cpp).
  struct Parts {
    std::array<VariableId, sum_parts> parts;
    VariableId rest;
  };
  Parts float_parts(std::vector<StatementId>& to, VariableId x);
  const Parts& parts_of_range(VariableId x);
  VariableId append_all(std::vector<StatementId>& to, const std::vector<VariableId>& vectors);
  VariableId repeat(std::vector<StatementId>& to, VariableId v);
  VariableId pieces_of(VariableId v, VariableId of);
  void reduce_floats(VariableId v);
  void merge_floats(VariableId v);
  size_t send_group(const std::string& table, VariableId v, VariableId to);
  void make_merge(StatementId group, Split& out);

  // --- The programs ---
  hir::Program make(const std::vector<StatementId>& statements, std::vector<Operand> results,
                    std::vector<TypeId> types);
  hir::ExpressionId moved(Function& to, hir::ExpressionId id);
  hir::Program make(const std::vector<StatementId>& statements, const std::vector<VariableId>& results);
  void finish(Split& out);

  const SplitOptions& options_;
  hir::Program program_;
  ShapeTable table_;
  Shapes shapes_;
  std::vector<StatementId> order_;
  StatementId return_ = none<StatementId>();
  size_t statements_ = 0, literals_ = 0, variables_ = 0, expressions_ = 0;  // of the program given
  std::set<StatementId> forbidden_;                                         // to be part of the range program
  bool again_ = false;
  std::vector<State> states_;     // per variable
  std::vector<StatementId> def_;  // per variable
  std::map<StatementId, SizeId> group_size_;
  std::map<StatementId, bool> group_moved_;
  std::string cut_column_;
  bool cut_used_ = false;
  std::vector<SplitKey> keys_;  // the rows are ordered by them
  std::map<StatementId, size_t> key_columns_;
  SizeId rows_of_table_ = none<SizeId>();
  std::string refused_;
  std::set<VariableId> in_before_, in_range_, in_after_;
  std::vector<StatementId> before_made_, range_made_, after_made_;
  std::vector<VariableId> before_vars_, range_vars_;
  std::vector<SplitResult> before_results_, range_results_;
  std::map<const std::vector<StatementId>*, std::map<std::string, VariableId>> tables_read_;  // by who reads them
  std::map<size_t, Builtin> range_how_;  // results of groups: how pieces are put together
  std::map<std::pair<StatementId, VariableId>, size_t> gathered_result_;
  std::map<SizeId, size_t> lengths_;
  std::map<StatementId, Merged> merged_;
  std::map<std::pair<StatementId, VariableId>, VariableId> gathered_;
  std::map<std::pair<VariableId, VariableId>, VariableId> by_numbers_, parts_;
  std::map<VariableId, Parts> float_parts_;
  std::map<std::pair<StatementId, VariableId>, FloatSum> float_sums_;
  std::vector<Split::Whole> whole_;
  std::map<StatementId, size_t> place_;  // in order_
};

}  // namespace rndn::outliner::splitting
