// Skipping: a tile none of whose elements counts, as the least and the greatest elements of its vectors tell, is passed over before anything of it is
// loaded (G. Moerkotte, "Small materialized aggregates", VLDB 1998).
//
//   1. Effects of a loop: what is reduced, folded or stored, and errors. All of them must be of selected elements: where one is of every element, nothing is
//      skipped, so that an error is raised for a row whatever its mask says, and counts and places of the rest stay as they are.
//   2. An effect needs all masks that select its elements. A mask follows, by conjunctions and disjunctions, from comparisons; of these the ones of a column's
//      elements with a scalar are tested, whatever else is taken to hold. A tile counts where the masks of any effect may hold.
//   3. The test compares the scalar with the vector's least or greatest element by the comparison's own code: x < s holds for some x where it does for the
//      least. Conversions before it must keep the order of elements. A NaN satisfies none of these comparisons and is no bound; -0 equals 0; missing
//      elements are zeros, and are in the bounds as such.
//   4. Which columns have bounds is part of the code's key (KernelEncodings::bounds): code that has no use for them has no test. Scalars are read where
//      they are, so that other numbers in the program cost no compilation.
//
// Bounds are of bounds_rows elements, {least, greatest} of 4 or 8 bytes. A tile of fewer lies within a vector; of one of more each vector is tested. Kernels
// that store selections test the segment of a warp, which then selects nothing: its place among the others is found as ever.
// Cost: a shift, an address per column, a load and a comparison per comparison, and a branch per tile; O(steps) here. Left out: lists; gathers and probes as
// conditions; `neq`, `not`, `member`; texts, whose codes may be brought into another domain.
#include <algorithm>

#include "ptx/codegen/emitter.h"

namespace rndn::codegen {
namespace {

using hir::VariableId;

constexpr uint32_t most_visits = 64;  // of operands: masks may share theirs

bool is_comparison(Builtin b) {
  return b == Builtin::lt || b == Builtin::leq || b == Builtin::gt || b == Builtin::geq || b == Builtin::eq;
}

bool has_bounds(BasicType type) {
  return type != BasicType::boolean && type != BasicType::character &&
         (hir::is_integer(type) || hir::is_calendar(type) || hir::is_float(type));
}

// Elements of the type, as elements of the other, are in the same order, or equal.
bool keeps_order(BasicType from, BasicType to) {
  if (from == to) return true;
  if (hir::is_calendar(from) || hir::is_calendar(to)) return false;
  if (hir::is_integer(from)) return hir::is_float(to) || (hir::is_integer(to) && width_of(to) >= width_of(from));
  return hir::is_float(from) && hir::is_float(to);
}

using Tests = std::vector<Test>;

Test joined(Test::Kind kind, Tests parts) {
  if (parts.size() == 1) return Test(std::move(parts[0]));
  return {.kind = kind, .parts = std::move(parts)};
}
void add_test(Tests& tests, Test test) {
  if (std::find(tests.begin(), tests.end(), test) == tests.end()) tests.push_back(std::move(test));
}

class TestFinder {
 public:
  explicit TestFinder(const Emitter& e) : e_(e) {}

  // Adds what holds where the mask may; nothing is known of the rest of it.
  void find(const hir::Operand& o, Tests& all) {
    const Step* s = defining(o);
    if (!s || !s->casts.empty() || e_.type_of(s->target) != BasicType::boolean || ++visits_ > most_visits) return;
    if (!s->call) return find(s->operands[0], all);
    switch (s->builtin) {
      case Builtin::compress: return find(s->operands[1], all);
      case Builtin::and_:
      case Builtin::or_: {
        if (!is_boolean(s->operands[0]) || !is_boolean(s->operands[1])) return;
        if (s->builtin == Builtin::and_) {
          find(s->operands[0], all);
          return find(s->operands[1], all);
        }
        Tests left, right, any;
        find(s->operands[0], left);
        if (left.empty()) return;
        find(s->operands[1], right);
        if (right.empty()) return;
        add_test(any, joined(Test::all, std::move(left)));
        add_test(any, joined(Test::all, std::move(right)));
        return add_test(all, joined(Test::any, std::move(any)));
      }
      default:
        if (auto test = comparison(*s)) add_test(all, *std::move(test));
    }
  }

  // None: it is no comparison of a column's elements with a scalar that their bounds tell of.
  std::optional<Test> comparison(const Step& s) const {
    if (!s.call || !is_comparison(s.builtin) || s.scalar) return std::nullopt;
    for (uint32_t k = 0; k < 2; ++k) {
      const auto parameter = column(s.operands[k]);
      if (!parameter || e_.form(s.operands[1 - k]) != Form::scalar) continue;
      const ArgumentTypes types{type_of(s.operands[0]), type_of(s.operands[1])};
      if (has_bounds(types[k]) && keeps_order(types[k], operand_type(s.builtin, types, k, s.result)))
        return Test{
            .parameter = *parameter, .builtin = s.builtin, .column_at = k, .scalar = s.operands[1 - k], .parts = {}};
      break;
    }
    return std::nullopt;
  }

 private:
  // The one step that the variable is the target of.
  const Step* defining(const hir::Operand& o) const {
    if (o.kind != hir::Operand::variable || e_.definitions[o.id] != 1) return nullptr;
    const auto at =
        std::find_if(e_.steps.begin(), e_.steps.end(), [&](const Step& s) { return index(s.target) == o.id; });
    return at == e_.steps.end() ? nullptr : &*at;
  }
  bool is_boolean(const hir::Operand& o) const {
    return o.kind == hir::Operand::variable && e_.type_of(o.variable_id()) == BasicType::boolean;
  }
  // The kernel's parameter of whose elements these are some.
  std::optional<uint32_t> column(const hir::Operand& o) const {
    if (o.kind != hir::Operand::variable || e_.definitions[o.id] != 1) return std::nullopt;
    const auto& parameters = e_.function.parameters;
    if (const auto at = std::find(parameters.begin(), parameters.end(), o.variable_id()); at != parameters.end())
      return e_.form(o) == Form::element ? std::optional(static_cast<uint32_t>(at - parameters.begin())) : std::nullopt;
    const Step* s = defining(o);
    if (!s || !s->casts.empty() || (s->call && s->builtin != Builtin::compress)) return std::nullopt;
    const hir::Operand& from = s->operands[s->call ? 1 : 0];
    if (from.kind != hir::Operand::variable || e_.type_of(from.variable_id()) != e_.type_of(s->target))
      return std::nullopt;
    return column(from);
  }
  BasicType type_of(const hir::Operand& o) const {
    return o.kind == hir::Operand::literal ? e_.basic(e_.program.literals[o.literal_id()].type)
                                           : e_.type_of(o.variable_id());
  }

  const Emitter& e_;
  uint32_t visits_ = 0;
};

void note_parameters(const Test& test, InlineVector<uint32_t, 4>& found) {
  for (const Test& part : test.parts) note_parameters(part, found);
  if (test.kind == Test::compares && std::find(found.begin(), found.end(), test.parameter) == found.end())
    found.push_back(test.parameter);
}

// With what has bounds alone; none: nothing has.
std::optional<Test> with_bounds(const Emitter& e, Test test) {
  if (test.kind == Test::compares) {
    const std::vector<uint8_t>& bounds = e.encodings.bounds;
    return test.parameter < bounds.size() && bounds[test.parameter] ? std::optional(std::move(test)) : std::nullopt;
  }
  Tests parts;
  for (Test& part : test.parts)
    if (auto kept = with_bounds(e, std::move(part)))
      add_test(parts, *std::move(kept));
    else if (test.kind == Test::any)
      return std::nullopt;
  return parts.empty() ? std::nullopt : std::optional(joined(test.kind, std::move(parts)));
}

bool may_fail(const Emitter& e, const Step& s) { return !s.scalar && !s.reduction && can_fail(e, s); }

// Calls f(v) for the variables whose masks say where the kernel's loop does anything but to registers; false: it does something for every element.
template <class F>
bool for_effects(const Emitter& e, F&& f) {
  const auto visit = [&](VariableId v) { return e.form(v) == Form::selected && f(v); };
  if (std::any_of(e.definitions.begin(), e.definitions.end(), [](uint8_t n) { return n > 1; })) return false;
  for (const Output& out : e.outputs) switch (out.kind) {
      case Output::scalar:
      case Output::reduced:
      case Output::folded: break;
      case Output::compressed:
        if (!visit(out.variable)) return false;
        break;
      default: return false;
    }
  for (const Accumulator& a : e.accumulators)
    if (!visit(a.argument)) return false;
  for (const Sink& sink : e.sinks) {
    const auto key =
        std::find_if(sink.keys.begin(), sink.keys.end(), [&](VariableId k) { return e.form(k) == Form::selected; });
    if (key == sink.keys.end() || !visit(*key)) return false;
  }
  for (const Step& s : e.steps)
    if (may_fail(e, s) && !visit(s.target)) return false;
  return true;
}

}  // namespace

bool Test::operator==(const Test& o) const {
  return kind == o.kind && parameter == o.parameter && builtin == o.builtin && column_at == o.column_at &&
         scalar.kind == o.scalar.kind && scalar.id == o.scalar.id && parts == o.parts;
}

void find_test(Emitter& e) {
  TestFinder finder(e);
  const auto compares = [&](const Step& s) { return finder.comparison(s).has_value(); };
  if (e.kernel.list || std::none_of(e.steps.begin(), e.steps.end(), compares)) return;
  if (std::any_of(e.scans.begin(), e.scans.end(), [](const Scan& s) { return s.evaluate; })) return;
  if (!for_effects(e, [](VariableId) { return true; })) return;
  std::optional<Test> test;
  Masks masks, before;
  const bool known = for_effects(e, [&](VariableId v) {
    masks.clear();
    if (!find_masks(e, {.kind = hir::Operand::variable, .id = index(v)}, masks)) return false;
    const auto same = [](const hir::Operand& x, const hir::Operand& y) { return x.kind == y.kind && x.id == y.id; };
    if (std::equal(masks.begin(), masks.end(), before.begin(), before.end(), same)) return test.has_value();
    Tests all;
    all.reserve(8);
    for (const hir::Operand& m : masks) finder.find(m, all);
    if (all.empty()) return false;
    Test of_effect = joined(Test::all, std::move(all));
    test = test ? joined(Test::any, {*std::move(test), std::move(of_effect)}) : std::move(of_effect);
    std::swap(before, masks);
    return true;
  });
  if (!known || !test) return;
  note_parameters(*test, e.code.compared);
  if (e.encodings.bounds.empty()) return;
  e.test = with_bounds(e, *std::move(test));
  if (!e.test) return;
  InlineVector<uint32_t, 4> tested;
  note_parameters(*e.test, tested);
  for (uint32_t k : tested) e.bounds.push_back({.parameter = k});
}

namespace {

// Bounds that one test reads: a vector's.
class Tester {
 public:
  Tester(Emitter& e, uint32_t vector) : e_(e), vector_(vector) {}

  Reg<Pred> may_hold(const Test& test) {
    if (test.kind == Test::compares) return compares(test);
    Reg<Pred> joined;
    for (const Test& part : test.parts) {
      Reg<Pred> holds = may_hold(part);
      joined = !joined.valid() ? holds : test.kind == Test::all ? e_.b.and_(joined, holds) : e_.b.or_(joined, holds);
    }
    return joined;
  }

 private:
  Reg<Pred> compares(const Test& test) {
    if (test.builtin == Builtin::eq) {
      const bool first = test.column_at == 0;
      Reg<Pred> from = compare(test, first ? Builtin::leq : Builtin::geq, false);
      return e_.b.and_(from, compare(test, first ? Builtin::geq : Builtin::leq, true));
    }
    const bool less = test.builtin == Builtin::lt || test.builtin == Builtin::leq;
    return compare(test, test.builtin, less != (test.column_at == 0));
  }
  Reg<Pred> compare(const Test& test, Builtin how, bool greatest) {
    Arguments arguments{bound(test.parameter, greatest), operand_element(e_, test.scalar)};
    if (test.column_at == 1) std::swap(arguments[0], arguments[1]);
    return reg<Pred>(in_register(e_, element_wise(e_, how, arguments, BasicType::boolean, 0)));
  }
  Element bound(uint32_t parameter, bool greatest) {
    for (const Known& k : known_)
      if (k.parameter == parameter && k.greatest == greatest) return k.element;
    const TileBounds& of = *std::find_if(e_.bounds.begin(), e_.bounds.end(),
                                         [&](const TileBounds& b) { return b.parameter == parameter; });
    const BasicType type = e_.type_of(e_.function.parameters[parameter]);
    const uint32_t width = bound_bytes(type);
    const Address at(of.at, int64_t{2 * width} * vector_ + (greatest ? width : 0));
    known_.push_back({parameter, greatest, with_number(rep_of(type), [&]<class T>() {
                        return element(type, e_.b.ld<T>(Space::global, at));
                      })});
    return known_.back().element;
  }

  Emitter& e_;
  uint32_t vector_;  // of the tile
  struct Known {
    uint32_t parameter;
    bool greatest;
    Element element;
  };
  std::vector<Known> known_;
};

}  // namespace

void skip_tile(Emitter& e, Reg<U32> first, uint32_t rows, ptx::LabelId past) {
  Builder& b = e.b;
  Reg<U32> vector = b.shr(first, std::countr_zero(bounds_rows));
  for (TileBounds& of : e.bounds)
    of.at = b.mad_wide(vector, 2 * bound_bytes(e.type_of(e.function.parameters[of.parameter])), b.ld_param(of.data));
  Reg<Pred> counts;
  for (uint32_t k = 0; k < std::max(1u, rows / bounds_rows); ++k) {
    Reg<Pred> of_vector = Tester(e, k).may_hold(*e.test);
    counts = counts.valid() ? b.or_(counts, of_vector) : of_vector;
  }
  b.unless(counts).bra_uni(past);
}

}  // namespace rndn::codegen
