// From the outlined program to steps. What has no step of its own on the device (a kernel without code, a user function, a builtin of complex
// values or of lists of lists) becomes a step of the reference interpreter and is listed as a fallback, unless the specification puts it on the host.
// A program with control flow on the host or with globals that change has no plan. One pass over main, and one back over the steps for last uses.
#include "runtime/plan/plan.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>

#include "runtime/plan/fallbacks.h"

namespace rndn::runtime {

using hir::BasicType;
using hir::Builtin;
using hir::Operator;
using hir::TypeKind;

bool element_type(const hir::TypeTable& types, hir::TypeId type, BasicType& element, bool& is_list) {
  is_list = types[type].kind == TypeKind::list;
  const hir::TypeId of = is_list ? types[type].components[0] : type;
  if (!types.is_basic(of)) return false;
  element = types.basic_of(of);
  return true;
}

TextClasses text_classes(const hir::Program& program, const hir::Function& f) {
  const size_t n = f.variables.size();
  std::vector<uint32_t> parent(n);
  std::iota(parent.begin(), parent.end(), 0u);
  auto find = [&](uint32_t v) {
    while (parent[v] != v) v = parent[v] = parent[parent[v]];
    return v;
  };
  auto is_text = [&](uint32_t v) {
    BasicType element{};
    bool list = false;
    return element_type(*program.types, f.variables[static_cast<hir::VariableId>(v)].type, element, list) &&
           hir::is_text(element);
  };
  std::vector<uint32_t> compared, ordered, keys, carried, among_rows;
  std::vector<std::vector<uint32_t>> comparisons;
  const auto builtin_of = [&](const hir::Expression& e) -> std::optional<Builtin> {
    if (e.kind != hir::Expression::call || e.callee.kind != hir::FunctionRef::builtin) return std::nullopt;
    Builtin b = e.callee.builtin_id;
    if (!e.operands.empty() && e.operands[0].kind == hir::Operand::literal)  // the each family
      if (const auto* functions =
              std::get_if<std::vector<hir::FunctionRef>>(&program.literals[e.operands[0].literal_id()].values);
          functions && functions->size() == 1 && functions->front().kind == hir::FunctionRef::builtin)
        b = functions->front().builtin_id;
    return b;
  };
  for (const hir::Statement& s : f.statements) {
    if (is_none(s.value)) continue;
    hir::ExpressionId id = s.value;
    while (f.expressions[id].kind == hir::Expression::cast) id = f.expressions[id].inner;
    const hir::Expression& e = f.expressions[id];
    uint32_t first = UINT32_MAX;
    auto join = [&](uint32_t v) {
      if (!is_text(v)) return;
      if (first == UINT32_MAX) first = v;
      parent[find(v)] = find(first);
    };
    if (e.kind == hir::Expression::call && e.callee.kind == hir::FunctionRef::builtin &&
        e.callee.builtin_id == Builtin::gpu_probe) {  // a column of the left side is compared with its own on the right
      for (size_t k = 1; k <= (e.operands.size() - 1) / 2; ++k) {
        first = UINT32_MAX;
        for (const hir::Operand& o : {e.operands[k], e.operands[k + e.operands.size() / 2]})
          if (o.kind == hir::Operand::variable) join(o.id);
        if (first != UINT32_MAX) compared.push_back(first), among_rows.push_back(first);
      }
      continue;
    }
    if (e.kind == hir::Expression::call && e.callee.kind == hir::FunctionRef::builtin &&
        e.callee.builtin_id == Builtin::gpu_fold) {  // every text of a key has a code of its own, in the order of texts
      for (const hir::Operand& o : e.operands)
        if (o.kind == hir::Operand::variable && is_text(o.id)) keys.push_back(o.id);
      continue;
    }
    for (const hir::Operand& o : e.operands)
      if (o.kind == hir::Operand::variable) join(o.id);
    // A comparison gives no text: everything that gives none compares.
    std::vector<uint32_t> texts;
    for (const hir::Operand& o : e.operands)
      if (o.kind == hir::Operand::variable && is_text(o.id)) texts.push_back(o.id);
    if (first != UINT32_MAX && s.targets.size() == 1 && s.targets[0].kind == hir::Target::variable &&
        !is_text(s.targets[0].id)) {
      compared.push_back(first);
      const std::optional<Builtin> b = builtin_of(e);
      const bool orders = b == Builtin::lt || b == Builtin::gt || b == Builtin::leq || b == Builtin::geq;
      if (orders) ordered.push_back(first);
      if (orders || b == Builtin::eq || b == Builtin::neq)
        comparisons.push_back(std::move(texts));
      else if (b != Builtin::len)
        among_rows.push_back(first);
    } else {
      carried.insert(carried.end(), texts.begin(), texts.end());
    }
    for (const hir::Target& t : s.targets)
      if (t.kind == hir::Target::variable && is_text(t.id)) carried.push_back(t.id);
    for (const hir::Target& t : s.targets)
      if (t.kind == hir::Target::variable) join(t.id);
  }
  TextClasses out;
  out.of.assign(n, -1);
  std::vector<int> class_of(n, -1);
  for (uint32_t v = 0; v < n; ++v) {
    if (!is_text(v)) continue;
    int& c = class_of[find(v)];
    if (c < 0) {
      c = static_cast<int>(out.classes.size());
      out.classes.emplace_back();
    }
    out.of[v] = c;
  }
  for (uint32_t v : compared) out.classes[static_cast<size_t>(out.of[v])].compared = true;
  for (uint32_t v : keys) {
    TextClasses::Class& of_key = out.classes[static_cast<size_t>(out.of[v])];
    of_key.compared = of_key.ordered = of_key.escapes = of_key.among_rows = true;
  }
  const auto class_of_variable = [&](uint32_t v) -> TextClasses::Class& {
    return out.classes[static_cast<size_t>(out.of[v])];
  };
  for (uint32_t v : among_rows) class_of_variable(v).among_rows = true;
  for (uint32_t v : carried) class_of_variable(v).carried.push_back(v);
  for (std::vector<uint32_t>& operands : comparisons) {
    const uint32_t v = operands[0];
    class_of_variable(v).comparisons.push_back(std::move(operands));
  }
  for (uint32_t v : ordered) out.classes[static_cast<size_t>(out.of[v])].ordered = true;
  for (const hir::Statement& s : f.statements)
    if (s.kind == hir::Statement::return_)
      for (const hir::Operand& o : s.results)
        if (o.kind == hir::Operand::variable && out.of[o.id] >= 0) {
          class_of_variable(o.id).escapes = true;
          class_of_variable(o.id).carried.push_back(o.id);
        }
  return out;
}

namespace {

class Planner {
 public:
  Planner(const Compiled& compiled, const SourceManager& sources)
      : program_(compiled.outlined.program), compiled_(compiled), sources_(sources) {
    for (uint32_t i = 0; i < compiled.outlined.kernels.size(); ++i)
      kernel_of_[compiled.outlined.kernels[i].function] = i;
    for (const outliner::FusedGroup& g : compiled.fusions.groups) {
      fused_.insert({g.group, g.values});
      if (!is_none(g.keys)) fused_.insert(g.keys);
      fused_.insert(g.launches.begin(), g.launches.end());
    }
  }

  bool make() {
    if (is_none(program_.main)) return fail("there is no main");
    main_ = &program_.functions[program_.main];
    out.constants.resize(main_->variables.size());
    if (!globals_stay() || !block(main_->body)) return false;
    if (out.steps.empty() || out.steps.back().kind != Step::results) {  // no return: empty values of the declared types
      std::vector<uint32_t> slots;
      for (hir::TypeId type : main_->result_types) slots.push_back(add_slot(empty_value(type)));
      finish(std::move(slots), {});
    }
    find_last_uses();
    return true;
  }

  Steps out;
  std::string why;

 private:
  bool fail(std::string reason) {
    why = std::move(reason);
    return false;
  }
  bool finish(std::vector<uint32_t> slots, Span span) {
    add({.kind = Step::results, .inputs = std::move(slots), .outputs = {}, .last_uses = {}, .span = span});
    return true;
  }
  void add(Step step) { out.steps.push_back(std::move(step)); }
  uint32_t add_slot(ItemPtr constant = nullptr) {
    out.constants.push_back(std::move(constant));
    return static_cast<uint32_t>(out.constants.size() - 1);
  }

  // What the reference interpreter gives for a result of this type when there is no return.
  ItemPtr empty_value(hir::TypeId type) const {
    const hir::TypeTable& types = *program_.types;
    data::Value value;
    if (types.is_basic(type)) {
      const BasicType basic = types.basic_of(type);
      value = hir::is_text(basic) ? data::vector_of_texts(basic, {})
                                  : data::vector_from_bytes(basic, 0, std::vector<std::byte>{});
    } else if (types[type].kind == TypeKind::list) {
      value = data::list({});
    }
    return host_item(std::move(value), Item::of_plan);
  }

  // A slot of a global has the value that it begins with: no function of the program may give it another.
  bool globals_stay() {
    for (const hir::Function& f : program_.functions)
      for (const hir::Statement& s : f.statements)
        for (const hir::Target& t : s.targets)
          if (t.kind == hir::Target::global)
            return fail(fmt::format("{}: assignment to a global", sources_.describe(t.span)));
    return true;
  }

  bool slot_of(const hir::Operand& operand, uint32_t& slot) {
    switch (operand.kind) {
      case hir::Operand::variable: slot = operand.id; return true;
      case hir::Operand::literal: slot = literal(operand.literal_id()); return true;
      case hir::Operand::global: {
        const hir::Operand& value = program_.globals[operand.global_id()].value;
        if (value.kind == hir::Operand::literal) {
          slot = literal(value.literal_id());
          return true;
        }
        return fail(
            fmt::format("global `{}` is not a literal", program_.text(program_.globals[operand.global_id()].name)));
      }
      case hir::Operand::unresolved: break;
    }
    return fail("an operand is not resolved");
  }
  uint32_t literal(hir::LiteralId id) {
    auto [at, fresh] = literals_.try_emplace(id, 0);
    if (fresh) at->second = add_slot(host_item(data::from_literal(program_, program_.literals[id]), Item::of_plan));
    return at->second;
  }

  bool block(hir::BlockId id) {
    if (is_none(id)) return true;
    for (hir::StatementId s : main_->blocks[id].statements) {
      if (!out.steps.empty() && out.steps.back().kind == Step::results) return true;  // dead code after return
      for (const outliner::FusedGroup& g : compiled_.fusions.groups)
        if (g.at == s && !aggregate(g)) return false;
      if (fused_.count(s)) continue;
      if (!statement(main_->statements[s])) return false;
    }
    return true;
  }

  bool aggregate(const outliner::FusedGroup& g) {
    Step step{.kind = Step::aggregate, .builtin = Builtin::group, .inputs = {}, .outputs = {}, .last_uses = {}};
    step.span = main_->statements[g.group].span;
    step.inputs.emplace_back();
    if (!slot_of(g.columns, step.inputs[0])) return false;
    step.outputs.push_back(is_none(g.first) ? no_slot : index(g.first));
    for (const outliner::FusedGroup::Reduction& r : g.reductions) {
      Step::Reduction to{r.reduce, 0, r.type};
      if (r.reduce != outliner::GroupReduction::len) {
        to.input = static_cast<uint32_t>(step.inputs.size());
        step.inputs.emplace_back();
        if (!slot_of(r.values, step.inputs.back())) return false;
      }
      step.reductions.push_back(to);
      step.outputs.push_back(is_none(r.target) ? no_slot : index(r.target));
    }
    // The kernels have no code, which is no fallback as long as nobody needs them.
    const size_t steps = out.steps.size(), fallbacks = out.fallbacks.size();
    std::vector<hir::StatementId> parts{g.group, g.values};
    if (!is_none(g.keys)) parts.push_back(g.keys);
    parts.insert(parts.end(), g.launches.begin(), g.launches.end());
    for (hir::StatementId part : parts)
      if (!statement(main_->statements[part])) return false;
    step.instead.assign(std::make_move_iterator(out.steps.begin() + static_cast<std::ptrdiff_t>(steps)),
                        std::make_move_iterator(out.steps.end()));
    out.steps.resize(steps);
    out.fallbacks.resize(fallbacks);
    add(std::move(step));
    return true;
  }

  bool statement(const hir::Statement& s) {
    switch (s.kind) {
      case hir::Statement::declare: return true;
      case hir::Statement::block: return block(s.body);
      case hir::Statement::assign: {
        std::vector<uint32_t> outputs;
        for (const hir::Target& t : s.targets) outputs.push_back(t.kind == hir::Target::variable ? t.id : no_slot);
        const bool declared = outputs.size() == 1 && outputs[0] != no_slot;
        return expression(s.value, std::move(outputs), s.span,
                          declared ? &main_->variables[s.targets[0].variable_id()].type : nullptr);
      }
      case hir::Statement::expression: return expression(s.value, {}, s.span);
      case hir::Statement::return_: {
        std::vector<uint32_t> slots(s.results.size());
        for (size_t i = 0; i < slots.size(); ++i)
          if (!slot_of(s.results[i], slots[i])) return false;
        return finish(std::move(slots), s.span);
      }
      default: return fail(fmt::format("{}: control flow on the host", sources_.describe(s.span)));
    }
  }

  // `asked`: the type that a cast or a declaration asks for, which columns of files are read as.
  bool expression(hir::ExpressionId id, std::vector<uint32_t> outputs, Span span, const hir::TypeId* asked = nullptr) {
    const hir::Expression& e = main_->expressions[id];
    Step step{.inputs = {}, .outputs = std::move(outputs), .last_uses = {}, .span = span.known() ? span : e.span};
    if (e.kind == hir::Expression::cast) {
      uint32_t inner = add_slot();
      if (!expression(e.inner, {inner}, span, &e.cast_type)) return false;
      step.kind = Step::check_cast;
      step.cast = e.types.size() == 1 && !program_.types->is_wildcard(e.types[0]) ? e.types[0] : e.cast_type;
      const hir::Expression& of = main_->expressions[e.inner];
      step.column = of.kind == hir::Expression::call && of.callee.kind == hir::FunctionRef::builtin &&
                    of.callee.builtin_id == Builtin::column_value;
      step.inputs = {inner};
      add(std::move(step));
      return true;
    }
    for (const hir::Operand& operand : e.operands) {
      uint32_t slot = 0;
      if (!slot_of(operand, slot)) return false;
      step.inputs.push_back(slot);
    }
    if (e.kind == hir::Expression::operand) {
      step.kind = Step::copy;
      for (std::set<uint32_t>* slots : {&in_one_piece_, &of_group_})
        for (uint32_t slot : step.outputs)
          if (slots->count(step.inputs[0]))
            slots->insert(slot);
          else
            slots->erase(slot);
      add(std::move(step));
      return true;
    }
    if (e.callee.kind == hir::FunctionRef::user)
      function(e, step);
    else
      builtin(e, step);
    if (step.kind == Step::column_value && !step.expected && asked && program_.types->is_basic(*asked))
      step.expected = program_.types->basic_of(*asked);
    note_pieces(step);
    add(std::move(step));
    return true;
  }

  // Lists that kernels and operators make lie in one piece; those of @list and of the interpreter do not.
  void note_pieces(const Step& step) {
    for (uint32_t slot : step.outputs) {
      in_one_piece_.erase(slot);
      if (step.kind == Step::launch || step.kind == Step::unique_cells || step.kind == Step::tolist ||
          step.kind == Step::cells ||
          (step.kind == Step::exact_sum && step.builtin == Builtin::each) ||
          (step.kind == Step::values && of_group_.count(step.inputs[0])))
        in_one_piece_.insert(slot);
      of_group_.erase(slot);
      if (step.kind == Step::group) of_group_.insert(slot);
    }
  }

  // --- Functions of the program ---

  void function(const hir::Expression& e, Step& step) {
    const hir::Function& f = program_.functions[e.callee.function];
    step.function = e.callee.function;
    step.outputs.resize(f.result_types.size(), no_slot);
    auto kernel = kernel_of_.find(e.callee.function);
    if (kernel == kernel_of_.end()) {
      step.kind = Step::interpret;
      out.fallbacks.push_back(fmt::format("{}: function `{}`", sources_.describe(step.span), program_.text(f.name)));
      return;
    }
    step.kernel = kernel->second;
    if (!step.span.known())  // the call was made by the outliner
      for (hir::StatementId id : f.blocks[f.body].statements)
        if (!step.span.known() && !is_none(f.statements[id].value)) step.span = f.statements[id].span;
    if (only_lengths(f)) {
      step.kind = Step::length;
      return;
    }
    step.kind = Step::launch;
    const codegen::KernelCode& code = compiled_.code.kernels[step.kernel];
    std::string reason = code.refused;
    for (hir::VariableId p : f.parameters) {
      BasicType element{};
      bool list = false;
      if (reason.empty() && !element_type(*program_.types, f.variables[p].type, element, list))
        reason = fmt::format("its parameter `{}` is of type {}", program_.text(f.variables[p].name),
                             program_.types->text(f.variables[p].type));
    }
    if (!reason.empty()) {
      step.kind = Step::interpret;
      out.sizes_unsure |= compiled_.outlined.kernels[step.kernel].assumes;
      refuse(f, code, reason);
    }
  }

  // Every statement is x = @len(parameter), every result such an x or a parameter's.
  bool only_lengths(const hir::Function& f) const {
    for (hir::StatementId id : f.blocks[f.body].statements) {
      const hir::Statement& s = f.statements[id];
      if (s.kind == hir::Statement::declare || s.kind == hir::Statement::return_) continue;
      if (s.kind != hir::Statement::assign) return false;
      const hir::Expression& e = f.expressions[s.value];
      if (e.kind != hir::Expression::call || e.callee.kind != hir::FunctionRef::builtin ||
          e.callee.builtin_id != Builtin::len || e.operands[0].kind != hir::Operand::variable ||
          !f.variables[e.operands[0].variable_id()].is_parameter)
        return false;
    }
    return true;
  }

  // Notes a kernel without code: the statement at fault or the kernel's first, and its builtins.
  void refuse(const hir::Function& f, const codegen::KernelCode& code, const std::string& reason) {
    std::string builtins;
    Span at;
    auto add = [&](const hir::Statement& s) {
      if (is_none(s.value)) return;
      hir::ExpressionId id = s.value;
      while (f.expressions[id].kind == hir::Expression::cast) id = f.expressions[id].inner;
      if (f.expressions[id].kind != hir::Expression::call) return;
      if (!at.known()) at = s.span;
      std::string name = fmt::format("`{}`", hir::row(f.expressions[id].callee.builtin_id).name);
      if (builtins.find(name) == std::string::npos) builtins += (builtins.empty() ? "" : ", ") + name;
    };
    if (!is_none(code.refused_at))
      add(f.statements[code.refused_at]);
    else
      for (hir::StatementId s : f.blocks[f.body].statements) add(f.statements[s]);
    out.fallbacks.push_back(
        fmt::format("{}: kernel `{}` with {} ({})", sources_.describe(at), program_.text(f.name), builtins, reason));
  }

  // --- Builtins on the host, and operators ---

  void builtin(const hir::Expression& e, Step& step) {
    step.builtin = e.callee.builtin_id;
    if (e.types.size() == 1 && program_.types->is_basic(e.types[0]))
      step.expected = program_.types->basic_of(e.types[0]);
    step.kind = kind_of(e);
    if (reason_.empty() && step.kind == Step::call && needs_math(e)) reason_ = compiled_.no_math;
    if (step.kind == Step::call && device_of(e) != hir::Device::cpu)
      out.fallbacks.push_back(fmt::format("{}: `{}`{}", sources_.describe(step.span), hir::row(step.builtin).name,
                                          reason_.empty() ? "" : " (" + reason_ + ")"));
  }

  // Of a call or of the function that an each form applies.
  bool needs_math(const hir::Expression& e) const {
    const hir::FunctionRef* f = e.operands.empty() ? nullptr : function_literal(e.operands[0]);
    const Builtin b = f && f->kind == hir::FunctionRef::builtin ? f->builtin_id : e.callee.builtin_id;
    return hir::needs_math(b, BasicType::f64);
  }

  TypeKind kind_of(const hir::Operand& o) const {
    if (o.kind == hir::Operand::variable) return (*program_.types)[main_->variables[o.variable_id()].type].kind;
    if (o.kind == hir::Operand::literal) return (*program_.types)[program_.literals[o.literal_id()].type].kind;
    return TypeKind::wildcard;
  }
  hir::TypeId type_of(const hir::Operand& o) const {
    if (o.kind == hir::Operand::variable) return main_->variables[o.variable_id()].type;
    if (o.kind == hir::Operand::literal) return program_.literals[o.literal_id()].type;
    return program_.globals[o.global_id()].type;
  }
  // The only function literal of an operand, or null.
  const hir::FunctionRef* function_literal(const hir::Operand& o) const {
    if (o.kind != hir::Operand::literal) return nullptr;
    const auto* functions = std::get_if<std::vector<hir::FunctionRef>>(&program_.literals[o.literal_id()].values);
    return functions && functions->size() == 1 ? &functions->front() : nullptr;
  }

  // A vector, or a list of vectors, of a type that the step knows; else reason_ says what it is. Only what moves
  // elements as they are knows i128, and `order` no complex numbers.
  bool columns_ok(const hir::Operand& o, Step::Kind kind) {
    const hir::TypeTable& types = *program_.types;
    const hir::Type& type = types[type_of(o)];
    auto basic_ok = [&](hir::TypeId t) {
      // Cells of any types: whether they are vectors is known when they are there.
      if (types.is_wildcard(t)) return kind == Step::group || kind == Step::order;
      if (!types.is_basic(t)) return false;
      if (hir::is_wide(types.basic_of(t))) return kind == Step::take || kind == Step::drop || kind == Step::tolist || kind == Step::append;
      return kind != Step::order || types.basic_of(t) != BasicType::complex;
    };
    bool ok = false;
    switch (type.kind) {
      case TypeKind::basic: ok = basic_ok(type_of(o)); break;
      case TypeKind::list:
      case TypeKind::tuple: ok = std::all_of(type.components.begin(), type.components.end(), basic_ok); break;
      default: break;
    }
    if (!ok) reason_ = fmt::format("an argument is of type {}", types.text(type_of(o)));
    return ok;
  }

  bool is_wide(const hir::Operand& o) {
    const hir::TypeId type = type_of(o);
    return program_.types->is_basic(type) && hir::is_wide(program_.types->basic_of(type));
  }

  Step::Kind kind_of(const hir::Expression& e) {
    reason_.clear();
    auto argument = [&](size_t i) { return i < e.operands.size() ? kind_of(e.operands[i]) : TypeKind::wildcard; };
    auto on_columns = [&](Step::Kind kind, std::initializer_list<size_t> which) {
      for (size_t i : which)
        if (i >= e.operands.size() || !columns_ok(e.operands[i], kind)) return Step::call;
      return kind;
    };
    switch (hir::row(e.callee.builtin_id).operation) {
      case Operator::none: return Step::call;
      case Operator::load_table: return Step::load_table;
      case Operator::column_value: return Step::column_value;
      case Operator::column_valid: return Step::column_valid;
      case Operator::list: return Step::list;
      case Operator::table: return Step::table;
      case Operator::keys:
        return argument(0) == TypeKind::dict || argument(0) == TypeKind::enumeration ? Step::keys : Step::call;
      case Operator::values:
        return argument(0) == TypeKind::dict || argument(0) == TypeKind::enumeration ? Step::values : Step::call;
      case Operator::fetch: return argument(0) == TypeKind::enumeration ? Step::fetch : Step::call;
      case Operator::len: return Step::len;
      case Operator::index_list:
        return argument(0) == TypeKind::list || argument(0) == TypeKind::tuple ? Step::index_list : Step::call;
      case Operator::order: return on_columns(Step::order, {0});
      case Operator::group: return on_columns(Step::group, {0});
      case Operator::unique: return on_columns(Step::unique, {0});
      case Operator::member: return on_columns(Step::member, {0, 1});
      case Operator::index_of: return on_columns(Step::index_of, {0, 1});
      case Operator::take: return on_columns(Step::take, {1});
      case Operator::drop: return on_columns(Step::drop, {1});
      case Operator::append:
        if (argument(0) != TypeKind::basic || argument(1) != TypeKind::basic) return Step::call;
        if (is_wide(e.operands[0]) != is_wide(e.operands[1])) {
          reason_ = "one argument alone is of type i128";
          return Step::call;
        }
        return on_columns(Step::append, {0, 1});
      case Operator::tolist: return on_columns(Step::tolist, {0});
      case Operator::cells: return Step::cells;
      case Operator::pick: return Step::pick;
      case Operator::cell_begins: return Step::cell_begins;
      case Operator::cell_numbers: return Step::cell_numbers;
      case Operator::scan: return on_columns(Step::scan, {0, 1});
      case Operator::like: return on_columns(Step::like, {0, 1});
      case Operator::sub_string: return on_columns(Step::sub_string, {0});
      case Operator::text_map: return Step::text_map;
      case Operator::join:
        for (size_t i = 0; i + 2 < e.operands.size(); ++i) {
          if (e.operands[i].kind != hir::Operand::literal) return Step::call;
          const auto* functions =
              std::get_if<std::vector<hir::FunctionRef>>(&program_.literals[e.operands[i].literal_id()].values);
          if (!functions) return Step::call;
          for (const hir::FunctionRef& f : *functions)
            if (f.kind != hir::FunctionRef::builtin) {
              reason_ = "a predicate is a function of the program";
              return Step::call;
            }
        }
        return on_columns(Step::join, {e.operands.size() - 2, e.operands.size() - 1});
      case Operator::exact_sum:
        if (!compiled_.exact_sums || argument(0) != TypeKind::basic) return Step::call;
        return on_columns(Step::exact_sum, {0});
      case Operator::each: {
        const hir::FunctionRef* f = function_literal(e.operands[0]);
        if (f && f->kind == hir::FunctionRef::builtin && (f->builtin_id == Builtin::sum || f->builtin_id == Builtin::avg))
          return compiled_.exact_sums && argument(1) == TypeKind::list ? on_columns(Step::exact_sum, {1}) : Step::call;
        if (f && f->kind == hir::FunctionRef::builtin && f->builtin_id == Builtin::unique)
          return argument(1) == TypeKind::list ? on_columns(Step::unique_cells, {1}) : Step::call;
        return Step::call;
      }
      case Operator::raze:
        if (argument(0) != TypeKind::list) return Step::call;
        if (e.operands[0].kind == hir::Operand::variable && in_one_piece_.count(e.operands[0].id)) return Step::raze;
        reason_ = "the cells do not lie in one piece";
        return Step::call;
    }
    return Step::call;
  }

  // Where the call should run: builtins.def, where the each family takes its function's place, and cells are the CPU's.
  hir::Device device_of(const hir::Expression& e) const {
    const TypeKind first = e.operands.empty() ? TypeKind::wildcard : kind_of(e.operands[0]);
    if (hir::is_each(e.callee.builtin_id)) {
      const hir::FunctionRef* f = e.operands.empty() ? nullptr : function_literal(e.operands[0]);
      if (f && f->kind == hir::FunctionRef::builtin) return hir::row(f->builtin_id).device;
    }
    if (e.callee.builtin_id == Builtin::append && first >= TypeKind::list && first <= TypeKind::tuple)
      return hir::Device::cpu;
    return hir::row(e.callee.builtin_id).device;
  }

  void find_last_uses() {
    out.read_on_device.resize(out.constants.size());
    std::vector<bool> used(out.constants.size());
    for (size_t i = out.steps.size(); i-- > 0;) {
      Step& s = out.steps[i];
      auto use = [&](uint32_t slot) {
        if (slot == no_slot || used[slot]) return;
        used[slot] = true;
        s.last_uses.push_back(slot);
      };
      for (uint32_t slot : s.inputs) use(slot);
      for (uint32_t slot : s.outputs) use(slot);
      // Copies, and lists and their cells, may reach the device under another name.
      const bool passes_on = s.kind == Step::copy || s.kind == Step::list || s.kind == Step::check_cast;
      const bool on_device =
          s.kind != Step::results && s.kind != Step::table && s.kind != Step::call && s.kind != Step::interpret;
      for (uint32_t slot : s.inputs)
        if (passes_on ? std::any_of(s.outputs.begin(), s.outputs.end(),
                                    [&](uint32_t o) { return o != no_slot && out.read_on_device[o]; })
                      : on_device)
          out.read_on_device[slot] = true;
    }
  }

  const hir::Program& program_;
  const Compiled& compiled_;
  const SourceManager& sources_;
  const hir::Function* main_ = nullptr;
  std::map<hir::FunctionId, uint32_t> kernel_of_;
  std::map<hir::LiteralId, uint32_t> literals_;
  std::set<uint32_t> in_one_piece_, of_group_;  // slots
  std::set<hir::StatementId> fused_;            // of main: part of a fused operator
  std::string reason_;
};

}  // namespace

Steps make_steps(const Compiled& compiled, const SourceManager& sources, std::string& why) {
  Planner planner(compiled, sources);
  if (!planner.make()) why = planner.why;
  planner.out.sizes_unsure |= compiled.outlined.assumes_on_host;
  return std::move(planner.out);
}

std::vector<std::string> fallbacks_of(const Compiled& compiled, const SourceManager& sources) {
  std::string why;
  Steps steps = make_steps(compiled, sources, why);
  if (!why.empty()) return {whole_program_fallback(why)};
  return std::move(steps.fallbacks);
}

std::string whole_program_fallback(const std::string& why) { return fmt::format("the whole program ({})", why); }

}  // namespace rndn::runtime
