// One pass over main collects who assigns and who reads each variable; then every group is looked at by itself. Cost: linear in main.
// Left alone: groups whose rows anything but a reduction reads, variables that are assigned twice, reductions of text, more results than fit into
// the registers of one kernel, and programs with control flow on the host.
#include "outliner/grouping_fusion.h"

#include <algorithm>
#include <optional>

#include "frontend/builtins.h"

namespace rndn::outliner {

using hir::BasicType;
using hir::Builtin;
using hir::TypeKind;

bool has_operator(GroupReduction reduce, BasicType values, BasicType result) {
  if (hir::is_text(values) || hir::is_wide(values) || hir::is_wide(result)) return false;
  switch (reduce) {
    case GroupReduction::len:
    case GroupReduction::distinct: return result == BasicType::i64;
    case GroupReduction::sum:
      if (values == BasicType::complex) return false;
      return hir::is_float(values) ? result == values : result == BasicType::i32 || result == BasicType::i64;
    case GroupReduction::avg: return hir::is_float(result);
    case GroupReduction::min:
    case GroupReduction::max: return values != BasicType::boolean && result == values;
  }
  return false;
}

namespace {

constexpr size_t most_reductions = 12;

std::optional<GroupReduction> reduction_of(Builtin builtin) {
  switch (builtin) {
    case Builtin::len: return GroupReduction::len;
    case Builtin::sum: return GroupReduction::sum;
    case Builtin::avg: return GroupReduction::avg;
    case Builtin::min: return GroupReduction::min;
    case Builtin::max: return GroupReduction::max;
    default: return std::nullopt;
  }
}

class FusionFinder {
 public:
  explicit FusionFinder(const Outlined& outlined)
      : outlined_(outlined), program_(outlined.program), types_(*outlined.program.types) {}

  Fusions find() {
    out_.kernels.assign(outlined_.kernels.size(), false);
    if (is_none(program_.main)) return out_;
    main_ = &program_.functions[program_.main];
    const bool groups = std::any_of(main_->expressions.begin(), main_->expressions.end(), [](const hir::Expression& e) {
      return e.kind == hir::Expression::call && e.callee.kind == hir::FunctionRef::builtin &&
             e.callee.builtin_id == Builtin::group;
    });
    if (is_none(main_->body) || !groups) return out_;
    uses_.resize(main_->variables.size());
    order_.reserve(main_->statements.size());
    if (!collect(main_->body)) return out_;
    kernel_of_.resize(program_.functions.size(), no_kernel);
    for (uint32_t k = 0; k < outlined_.kernels.size(); ++k) kernel_of_[outlined_.kernels[k].function] = k;
    for (size_t place = 0; place < order_.size(); ++place) group(place);
    return std::move(out_);
  }

 private:
  struct Uses {
    InlineVector<uint32_t, 2> written;  // places in order_
    InlineVector<uint32_t, 4> read;
  };

  bool collect(hir::BlockId block) {
    for (hir::StatementId id : main_->blocks[block].statements) {
      const hir::Statement& s = main_->statements[id];
      const auto place = static_cast<uint32_t>(order_.size());
      switch (s.kind) {
        case hir::Statement::declare: break;
        case hir::Statement::block:
          if (!is_none(s.body) && !collect(s.body)) return false;
          break;
        case hir::Statement::assign:
        case hir::Statement::expression:
          order_.push_back(id);
          for (hir::ExpressionId e = s.value; !is_none(e); e = main_->expressions[e].inner) {
            for (const hir::Operand& o : main_->expressions[e].operands) read(o, place);
            if (main_->expressions[e].kind != hir::Expression::cast) break;
          }
          for (const hir::Target& t : s.targets)
            if (t.kind == hir::Target::variable) uses_[t.id].written.push_back(place);
          break;
        case hir::Statement::return_:
          order_.push_back(id);
          for (const hir::Operand& o : s.results) read(o, place);
          break;
        default: return false;
      }
    }
    return true;
  }
  void read(const hir::Operand& o, uint32_t place) {
    if (o.kind == hir::Operand::variable) uses_[o.id].read.push_back(place);
  }

  const hir::Statement& at(size_t place) const { return main_->statements[order_[place]]; }
  // x = @builtin(..) with one target.
  const hir::Expression* call_of(const hir::Function& f, const hir::Statement& s, Builtin builtin) const {
    if (s.kind != hir::Statement::assign || s.targets.size() != 1 || s.targets[0].kind != hir::Target::variable)
      return nullptr;
    const hir::Expression& e = f.expressions[s.value];
    const bool is_it =
        e.kind == hir::Expression::call && e.callee.kind == hir::FunctionRef::builtin && e.callee.builtin_id == builtin;
    return is_it ? &e : nullptr;
  }
  bool assigned_once(const hir::Operand& o) const {
    return o.kind == hir::Operand::variable && uses_[o.id].written.size() == 1;
  }
  bool is_column(hir::TypeId type) const {
    return types_.is_basic(type) && types_.basic_of(type) != BasicType::complex && !hir::is_wide(types_.basic_of(type));
  }
  bool are_columns(hir::TypeId type) const {
    const hir::Type& t = types_[type];
    if (t.kind == TypeKind::basic) return is_column(type);
    return (t.kind == TypeKind::list || t.kind == TypeKind::tuple) &&
           std::all_of(t.components.begin(), t.components.end(), [&](hir::TypeId c) { return is_column(c); });
  }

  void group(size_t place) {
    const hir::Expression* e = call_of(*main_, at(place), Builtin::group);
    if (!e || e->operands.size() != 1 || !assigned_once(e->operands[0]) ||
        !are_columns(main_->variables[e->operands[0].variable_id()].type))
      return;
    FusedGroup g{.group = order_[place], .columns = e->operands[0]};
    const uint32_t dict = at(place).targets[0].id;
    if (uses_[dict].written.size() != 1) return;
    std::optional<uint32_t> rows;
    for (size_t user : uses_[dict].read) {
      const hir::Statement& s = at(user);
      const bool keys = call_of(*main_, s, Builtin::keys), values = call_of(*main_, s, Builtin::values);
      if ((!keys && !values) || uses_[s.targets[0].id].written.size() != 1) return;
      if (keys && is_none(g.keys)) {
        g.keys = order_[user];
        g.first = s.targets[0].variable_id();
      } else if (values && !rows) {
        g.values = order_[user];
        rows = s.targets[0].id;
      } else {
        return;
      }
    }
    if (!rows || uses_[*rows].read.empty()) return;
    std::vector<uint32_t> kernels;
    size_t last = 0, known = std::max<size_t>(place, uses_[g.columns.id].written[0]);
    for (size_t user : uses_[*rows].read) {
      std::vector<Listed> lists;
      uint32_t kernel = 0;
      if (!launch(at(user), *rows, false, g, lists, kernel)) return;
      kernels.push_back(kernel);
      g.launches.push_back(order_[user]);
      last = std::max<size_t>(last, user);
      for (const Listed& list : lists) {
        if (!count_distinct(list, g, kernels, last)) return;
      }
    }
    if (g.reductions.size() > most_reductions) return;
    const auto distinct = std::count_if(g.reductions.begin(), g.reductions.end(), [](const FusedGroup::Reduction& r) {
      return r.reduce == GroupReduction::distinct;
    });
    if (distinct > 1) return;
    size_t asked = order_.size();  // the first that reads a result
    const auto note = [&](hir::VariableId v) {
      if (is_none(v)) return;
      for (size_t user : uses_[index(v)].read) asked = std::min<size_t>(asked, user);
    };
    note(g.first);
    for (const FusedGroup::Reduction& r : g.reductions) {
      note(r.target);
      if (r.reduce != GroupReduction::len) known = std::max<size_t>(known, uses_[r.values.id].written[0]);
    }
    const size_t where = std::min(last, asked);
    if (known >= where) return;
    g.at = order_[where];
    for (uint32_t k : kernels) out_.kernels[k] = true;
    out_.groups.push_back(std::move(g));
  }

  // A list of a group's values, as a variable of main.
  struct Listed {
    uint32_t variable = 0;
    hir::Operand values;
  };

  // d = each(@unique, list), then a kernel that does nothing but count d's cells.
  bool count_distinct(const Listed& list, FusedGroup& g, std::vector<uint32_t>& kernels, size_t& last) {
    const Uses& uses = uses_[list.variable];
    if (uses.written.size() != 1 || uses.read.size() != 1) return false;
    const hir::Statement& s = at(uses.read[0]);
    const hir::Expression* each = call_of(*main_, s, Builtin::each);
    if (!each || each->operands.size() != 2 || function(*each) != Builtin::unique) return false;
    const Uses& of_cells = uses_[s.targets[0].id];
    if (of_cells.written.size() != 1 || of_cells.read.size() != 1) return false;
    const size_t before = g.reductions.size();
    std::vector<Listed> none;
    uint32_t kernel = 0;
    if (!launch(at(of_cells.read[0]), s.targets[0].id, true, g, none, kernel) || !none.empty()) return false;
    for (size_t k = before; k < g.reductions.size(); ++k) {
      if (g.reductions[k].reduce != GroupReduction::len) return false;
      g.reductions[k].reduce = GroupReduction::distinct;
      g.reductions[k].values = list.values;
    }
    kernels.push_back(kernel);
    g.launches.push_back(order_[uses.read[0]]);
    g.launches.push_back(order_[of_cells.read[0]]);
    last = std::max<size_t>(last, of_cells.read[0]);
    return true;
  }

  // The only function literal that an each form applies.
  std::optional<Builtin> function(const hir::Expression& call) const {
    if (call.operands.empty() || call.operands[0].kind != hir::Operand::literal) return std::nullopt;
    const auto* functions =
        std::get_if<std::vector<hir::FunctionRef>>(&program_.literals[call.operands[0].literal_id()].values);
    if (!functions || functions->size() != 1 || functions->front().kind != hir::FunctionRef::builtin)
      return std::nullopt;
    return functions->front().builtin_id;
  }

  // A call of a kernel that does nothing but reduce the rows, or list values of theirs. `alone`: the rows are its only argument.
  bool launch(const hir::Statement& s, uint32_t rows, bool alone, FusedGroup& g, std::vector<Listed>& lists,
              uint32_t& kernel) {
    if (s.kind != hir::Statement::assign) return false;
    const hir::Expression& e = main_->expressions[s.value];
    if (e.kind != hir::Expression::call || e.callee.kind != hir::FunctionRef::user) return false;
    kernel = kernel_of_[e.callee.function];
    if (kernel == no_kernel) return false;
    const hir::Function& f = program_.functions[e.callee.function];
    if (e.operands.size() != f.parameters.size() || (alone && e.operands.size() != 1)) return false;
    // What the kernel's variables hold.
    struct Held {
      enum { nothing, rows, values, gathered, reduced, result } kind = nothing;
      hir::Operand of;  // values and what comes from them: of main
      GroupReduction reduce{};
    };
    IdVector<hir::VariableId, Held> held;
    held.resize(f.variables.size());
    for (size_t i = 0; i < e.operands.size(); ++i) {
      const hir::Operand& o = e.operands[i];
      if (!assigned_once(o)) return false;
      Held& h = held[f.parameters[i]];
      h.kind = o.id == rows ? Held::rows : Held::values;
      h.of = o;
    }
    const auto of = [&](const hir::Operand& o) {
      return o.kind == hir::Operand::variable ? held[o.variable_id()] : Held{};
    };
    for (hir::StatementId id : f.blocks[f.body].statements) {
      const hir::Statement& t = f.statements[id];
      if (t.kind == hir::Statement::declare) continue;
      if (t.kind == hir::Statement::return_) {
        if (t.results.size() != s.targets.size()) return false;
        for (size_t i = 0; i < t.results.size(); ++i) {
          const Held h = of(t.results[i]);
          if (h.kind == Held::gathered && !alone && s.targets[i].kind == hir::Target::variable &&
              is_column(main_->variables[h.of.variable_id()].type)) {
            lists.push_back({s.targets[i].id, h.of});
            continue;
          }
          if (h.kind != Held::result || i >= f.result_types.size() || !types_.is_basic(f.result_types[i])) return false;
          FusedGroup::Reduction r{h.reduce, h.of, types_.basic_of(f.result_types[i])};
          BasicType values = BasicType::i64;
          if (r.reduce != GroupReduction::len) {
            const hir::TypeId type = main_->variables[h.of.variable_id()].type;
            if (!is_column(type)) return false;
            values = types_.basic_of(type);
          }
          if (!has_operator(r.reduce, values, r.type)) return false;
          if (s.targets[i].kind == hir::Target::variable) {
            r.target = s.targets[i].variable_id();
            if (uses_[index(r.target)].written.size() != 1) return false;
          } else if (s.targets[i].kind != hir::Target::sink) {
            return false;
          }
          g.reductions.push_back(r);
        }
        return true;
      }
      if (t.kind != hir::Statement::assign || t.targets.size() != 1 || t.targets[0].kind != hir::Target::variable)
        return false;
      Held made;
      if (const hir::Expression* c = call_of(f, t, Builtin::each_right)) {
        if (c->operands.size() != 3 || function(*c) != Builtin::index) return false;
        const Held x = of(c->operands[1]);
        if (x.kind != Held::values || of(c->operands[2]).kind != Held::rows) return false;
        made = {Held::gathered, x.of, {}};
      } else if (const hir::Expression* each = call_of(f, t, Builtin::each)) {
        const std::optional<Builtin> b = function(*each);
        const std::optional<GroupReduction> reduce = b ? reduction_of(*b) : std::nullopt;
        if (!reduce || each->operands.size() != 2) return false;
        const Held x = of(each->operands[1]);
        if (x.kind != Held::gathered && !(x.kind == Held::rows && *reduce == GroupReduction::len)) return false;
        made = {Held::reduced, x.of, *reduce};
      } else if (const hir::Expression* raze = call_of(f, t, Builtin::raze)) {
        const Held x = of(raze->operands[0]);
        if (x.kind != Held::reduced) return false;
        made = {Held::result, x.of, x.reduce};
      } else {
        return false;
      }
      held[t.targets[0].variable_id()] = made;
    }
    return false;
  }

  const Outlined& outlined_;
  const hir::Program& program_;
  const hir::TypeTable& types_;
  const hir::Function* main_ = nullptr;
  std::vector<hir::StatementId> order_;  // of main, as they run
  std::vector<Uses> uses_;               // per variable of main
  static constexpr uint32_t no_kernel = UINT32_MAX;
  IdVector<hir::FunctionId, uint32_t> kernel_of_;
  Fusions out_;
};

}  // namespace

Fusions find_fusions(const Outlined& outlined) { return FusionFinder(outlined).find(); }

}  // namespace rndn::outliner
