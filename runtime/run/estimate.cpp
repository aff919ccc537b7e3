#include "runtime/run/estimate.h"

#include <algorithm>
#include <cmath>

#include "frontend/builtins.h"
#include "runtime/memory/text_domains.h"

namespace rndn::runtime {
namespace {

using hir::Builtin;

constexpr double usually_equal = 0.1, usually_less = 1.0 / 3, usually_true = 1.0 / 3;

Builtin mirrored(Builtin b) {
  switch (b) {
    case Builtin::lt: return Builtin::gt;
    case Builtin::gt: return Builtin::lt;
    case Builtin::leq: return Builtin::geq;
    case Builtin::geq: return Builtin::leq;
    default: return b;
  }
}

bool is_comparison(Builtin b) {
  return b == Builtin::lt || b == Builtin::gt || b == Builtin::leq || b == Builtin::geq || b == Builtin::eq ||
         b == Builtin::neq;
}

std::optional<double> number_of(const data::Value& v) {
  if (!v.is_vector() || v.size != 1 || v.is_text_vector() || !v.bytes) return std::nullopt;
  if (v.type == hir::BasicType::f64) return v.as<double>()[0];
  if (v.type == hir::BasicType::f32) return static_cast<double>(v.as<float>()[0]);
  if (v.type == hir::BasicType::complex || hir::is_wide(v.type)) return std::nullopt;
  switch (data::plain_width(v.type)) {
    case 1: return static_cast<double>(v.as<int8_t>()[0]);
    case 2: return static_cast<double>(v.as<int16_t>()[0]);
    case 4: return static_cast<double>(v.as<int32_t>()[0]);
    default: return static_cast<double>(v.as<int64_t>()[0]);
  }
}

}  // namespace

double Estimate::Condition::chance() const {
  double all = 1;
  for (const Part& p : parts) all *= std::clamp(p.high - p.low, 0.0, 1.0);
  for (const auto& [v, chance] : others) all *= chance;
  return std::clamp(all, 0.0, 1.0);
}

void Estimate::Condition::meet(const Condition& other) {
  for (const Part& p : other.parts) {
    const auto at = std::find_if(parts.begin(), parts.end(), [&](const Part& q) { return q.variable == p.variable; });
    if (at == parts.end())
      parts.push_back(p);
    else
      at->low = std::max(at->low, p.low), at->high = std::min(at->high, p.high);
  }
  for (const auto& o : other.others)
    if (std::none_of(others.begin(), others.end(), [&](const auto& q) { return q.first == o.first; }))
      others.push_back(o);
}

Estimate::Estimate(const hir::Program& program, const hir::Function& f, double elements,
                   std::span<const ItemPtr> inputs, std::span<const Expected> expected,
                   std::span<const VariableBounds> bounds)
    : program_(program), f_(f), elements_(elements), inputs_(inputs), expected_(expected), of_(f.variables.size()) {
  for (uint32_t v = 0; v < of_.size(); ++v) {
    of_[v].root = v;
    if (v >= bounds.size() || !bounds[v].bounds.known()) continue;
    of_[v].low = static_cast<double>(bounds[v].bounds.min), of_[v].high = static_cast<double>(bounds[v].bounds.max);
    of_[v].step = 1;
    of_[v].distinct = of_[v].high - of_[v].low + 1;
  }
  for (size_t k = 0; k < f.parameters.size() && k < inputs.size(); ++k) {
    Variable& v = of_[index(f.parameters[k])];
    const Item& item = inputs[k]->kind == Item::cells && !inputs[k]->parts.empty() ? *inputs[k]->parts[0] : *inputs[k];
    if (item.column && !item.foreign_rows && v.low > v.high) {
      const data::Statistics& s = item.column->statistics;
      if (s.known && hir::is_float(item.type)) v.low = s.float_min, v.high = s.float_max;
    }
    if (item.type == hir::BasicType::boolean && item.kind == Item::vector)
      v.condition.others = {{index(f.parameters[k]),
                             k < expected.size() && expected[k].chance >= 0 ? expected[k].chance : usually_true}};
    if (item.domain && v.distinct <= 0) v.distinct = static_cast<double>(std::max<uint64_t>(1, item.domain->count()));
  }
  for (hir::StatementId id : f.blocks[f.body].statements) {
    const hir::Statement& s = f.statements[id];
    if (s.kind != hir::Statement::assign || s.targets.size() != 1) continue;
    hir::ExpressionId value = s.value;
    while (f.expressions[value].kind == hir::Expression::cast) value = f.expressions[value].inner;
    assign(s.targets[0].id, f.expressions[value]);
  }
}

std::optional<double> Estimate::number(const hir::Operand& o) const {
  if (o.kind == hir::Operand::literal) {
    const hir::Literal& l = program_.literals[o.literal_id()];
    if (l.size() != 1) return std::nullopt;
    if (const auto* n = std::get_if<std::vector<int64_t>>(&l.values)) return static_cast<double>(n->front());
    if (const auto* n = std::get_if<std::vector<double>>(&l.values)) return n->front();
    return std::nullopt;
  }
  if (o.kind != hir::Operand::variable) return std::nullopt;
  for (size_t k = 0; k < f_.parameters.size() && k < inputs_.size(); ++k)
    if (index(f_.parameters[k]) == of_[o.id].root && inputs_[k]->host) return number_of(*inputs_[k]->host);
  return std::nullopt;
}

Estimate::Condition Estimate::condition_of(const hir::Operand& o) const {
  if (o.kind == hir::Operand::variable) {
    if (const Condition& c = of_[o.id].condition; !c.parts.empty() || !c.others.empty()) return c;
    return {.parts = {}, .others = {{of_[o.id].root, usually_true}}};
  }
  const std::optional<double> n = number(o);
  return n && *n != 0 ? Condition{} : Condition{.parts = {}, .others = {{UINT32_MAX, 0}}};
}

Estimate::Condition Estimate::compare(Builtin builtin, const hir::Operand& a, const hir::Operand& b,
                                      uint32_t target) const {
  if (a.kind != hir::Operand::variable && b.kind == hir::Operand::variable)
    return compare(mirrored(builtin), b, a, target);
  const auto by_chance = [&](double chance) { return Condition{.parts = {}, .others = {{target, chance}}}; };
  const bool equal = builtin == Builtin::eq || builtin == Builtin::neq;
  if (a.kind != hir::Operand::variable) return by_chance(equal ? usually_equal : usually_less);
  const Variable& v = of_[a.id];
  const std::optional<double> n = number(b);
  if (!n && b.kind == hir::Operand::variable && number(a)) return compare(mirrored(builtin), b, a, target);
  if (v.hit >= 0 && n) {  // rows, or -1
    const bool asks = (builtin == Builtin::geq && *n == 0) || (builtin == Builtin::gt && *n == -1) ||
                      (builtin == Builtin::neq && *n == -1);
    const bool asks_not = (builtin == Builtin::lt && *n == 0) || (builtin == Builtin::eq && *n == -1);
    if (asks || asks_not) return by_chance(asks ? v.hit : 1 - v.hit);
  }
  if (equal) {
    double distinct = v.distinct;
    if (!n && b.kind == hir::Operand::variable) distinct = std::max(distinct, of_[b.id].distinct);
    const bool is_outside = n && v.low <= v.high && (*n < v.low || *n > v.high);
    const double chance = is_outside ? 0 : distinct > 0 ? 1 / distinct : usually_equal;
    return by_chance(builtin == Builtin::eq ? chance : 1 - chance);
  }
  if (!n || v.low > v.high) return by_chance(usually_less);
  const double width = v.high - v.low + v.step;
  const bool above = builtin == Builtin::gt || builtin == Builtin::geq;
  const double beyond = builtin == Builtin::leq || builtin == Builtin::gt ? v.step : 0;  // the number's own elements
  const double at = width > 0 ? std::clamp((*n + beyond - v.low) / width, 0.0, 1.0)
                              : (*n > v.low || (*n == v.low && builtin == Builtin::leq) ? 1.0 : 0.0);
  return {.parts = {above ? Condition::Part{v.root, at, 1} : Condition::Part{v.root, 0, at}}, .others = {}};
}

void Estimate::assign(uint32_t target, const hir::Expression& e) {
  Variable& to = of_[target];
  const auto copy = [&](const hir::Operand& o) {
    if (o.kind != hir::Operand::variable) return;
    const Variable from = of_[o.id];
    const double share = to.share;
    to = from;
    to.share = std::min(share, from.share);
  };
  if (e.kind == hir::Expression::operand) return copy(e.operands[0]);
  if (e.kind != hir::Expression::call || e.callee.kind != hir::FunctionRef::builtin) return;
  const Builtin b = e.callee.builtin_id;
  const auto& o = e.operands;
  const auto variable = [&](size_t k) { return k < o.size() && o[k].kind == hir::Operand::variable; };
  for (const hir::Operand& x : o)  // of selected elements, if one is
    if (x.kind == hir::Operand::variable) to.share = std::min(to.share, of_[x.id].share);
  if (is_comparison(b) && o.size() == 2) {
    to.condition = compare(b, o[0], o[1], target);
  } else if (b == Builtin::and_) {
    to.condition = condition_of(o[0]);
    to.condition.meet(condition_of(o[1]));
  } else if (b == Builtin::or_) {
    const double neither = (1 - condition_of(o[0]).chance()) * (1 - condition_of(o[1]).chance());
    to.condition = {.parts = {}, .others = {{target, 1 - neither}}};
  } else if (b == Builtin::not_) {
    to.condition = {.parts = {}, .others = {{target, 1 - condition_of(o[0]).chance()}}};
  } else if (b == Builtin::compress && o.size() == 2) {
    if (variable(1)) copy(o[1]);
    const double before = variable(1) ? of_[o[1].id].share : 1;
    to.share = before * condition_of(o[0]).chance();
  } else if (b == Builtin::where && !o.empty()) {
    to.share *= condition_of(o[0]).chance();
  } else if (b == Builtin::index && variable(0)) {
    const Variable& from = of_[o[0].id];
    const double share = variable(1) ? of_[o[1].id].share : 1;
    to.low = from.low, to.high = from.high, to.distinct = from.distinct, to.step = from.step;
    to.share = share;
    if (!from.condition.parts.empty() || !from.condition.others.empty())
      to.condition = {.parts = {}, .others = {{target, from.condition.chance()}}};
  } else if (b == Builtin::gpu_probe && o.size() >= 3 && variable(1)) {
    // The number, the columns of the table, a mask of its rows where it has one, the keys.
    const size_t columns = (o.size() - 1) / 2;
    double rows = 0, most_rows = 0, keys = 1;
    for (size_t k = 0; k < f_.parameters.size() && k < inputs_.size(); ++k)
      if (index(f_.parameters[k]) == o[1].id) {
        most_rows = static_cast<double>(inputs_[k]->capacity);
        rows = k < expected_.size() ? expected_[k].rows : most_rows;
      }
    for (size_t k = o.size() - columns; k < o.size(); ++k)
      keys = variable(k) && of_[o[k].id].distinct > 0 ? keys * of_[o[k].id].distinct : HUGE_VAL;
    if (columns > 1) keys = std::min(keys, most_rows);  // combinations of elements are no keys
    to.share = variable(o.size() - 1) ? of_[o.back().id].share : 1;
    to.hit = keys > 0 && std::isfinite(keys) ? std::min(1.0, rows / keys) : most_rows > 0 ? std::min(1.0, rows / most_rows) : 1;
    if (o.size() % 2 == 0) to.hit *= condition_of(o[o.size() / 2]).chance();  // among rows that a mask says
  }
}

double Estimate::chance(std::span<const hir::VariableId> conditions) const {
  Condition all;
  for (hir::VariableId v : conditions)
    all.meet(condition_of(hir::Operand{.kind = hir::Operand::variable, .id = index(v)}));
  return all.chance();
}

Expected Estimate::result(hir::VariableId v) const {
  const Variable& of = of_[index(v)];
  const bool is_condition = !of.condition.parts.empty() || !of.condition.others.empty();
  return {.rows = elements_ * of.share, .chance = is_condition ? of.condition.chance() : -1};
}

}  // namespace rndn::runtime
