// Binds names to what they mean (docs/horseir.md, "Modules"): calls and function literals to
// builtins and functions, operands and targets to variables and globals. Declarations make the
// variables of a function here.
//
// Look-up order: enclosing blocks innermost first, then the module's own names, then imports, the last one first, then (with a
// warning) the builtins. Functions and values have separate tables.
//
// Algorithm: variables by a dense table from name to innermost binding, with an undo log per scope; functions and globals by one
// hash table of (module, name), and a cache of what a name means inside the module at hand. Cost O(text), plus distinct names of
// a module times the modules that it imports. Unknown modules and names in imports are warnings: published programs contain them.
#include <algorithm>
#include <unordered_map>

#include "frontend/builtins.h"
#include "frontend/habits.h"
#include "frontend/passes.h"

namespace rndn::hir {

namespace {

struct Resolver {
  Program& program;
  const Options& options;
  DiagnosticSink& sink;

  // Looking for the name that was meant costs O(names in sight): told often enough, the rest of a large broken file goes without.
  static constexpr size_t most_unknown = 50;
  size_t unknown = 0;

  // --- Modules ------------------------------------------------------------------------------------------------------------------
  std::vector<ModuleId> module_of_name;  // by NameId
  std::unordered_map<uint64_t, FunctionId> functions;
  std::unordered_map<uint64_t, GlobalId> globals;
  NameId builtin_module{}, gpu_module{}, sink_name{}, main_name{};

  // --- The module at hand ---------------------------------------------------------------------------------------------------------
  ModuleId module{};
  struct Cached {
    uint32_t stamp = 0;  // module index + 1 for which the entry holds
    FunctionRef meaning;
  };
  std::vector<Cached> cache;  // unqualified function names, by NameId
  bool missing_import_reported = false;
  struct Source {
    const Import* import;
    ModuleId from;  // none: Builtin
  };
  std::vector<Source> sources;          // its imports in the order of look-up, those that can give something, each once
  std::vector<uint32_t> all_of_module;  // by NameId: module index + 1 that has all of it among its sources

  // --- The function at hand -------------------------------------------------------------------------------------------------------
  Function* function = nullptr;
  struct Binding {
    VariableId variable = none<VariableId>();
    uint32_t depth = 0;
  };
  std::vector<Binding> bindings;  // by NameId
  struct Undo {
    NameId name;
    Binding before;
  };
  std::vector<Undo> undo;
  uint32_t depth = 0;

  static uint64_t key(ModuleId m, NameId n) { return uint64_t{index(m)} << 32 | index(n); }
  std::string_view text(NameId id) const { return program.text(id); }
  ModuleId find_module(NameId name) const {
    return index(name) < module_of_name.size() ? module_of_name[index(name)] : none<ModuleId>();
  }

  std::string suggestion(std::string_view word, const std::vector<std::string_view>& candidates) {
    if (++unknown > most_unknown) return {};
    std::string_view near = foreign_builtin(word);
    if (std::find(candidates.begin(), candidates.end(), near) == candidates.end())
      near = did_you_mean(word, candidates);
    return near.empty() ? std::string() : fmt::format("; did you mean `{}`?", near);
  }

  // --- Declarations of the whole program ------------------------------------------------------------------------------------------

  void declare_modules() {
    builtin_module = program.names->intern("Builtin");
    gpu_module = program.names->intern("GPU");
    sink_name = program.names->intern("_");
    main_name = program.names->intern("main");
    size_t names = program.names->size();
    module_of_name.assign(names, none<ModuleId>());
    cache.resize(names);
    all_of_module.resize(names);
    bindings.resize(names);
    for (uint32_t i = 0; i < program.modules.size(); ++i) {
      ModuleId id = static_cast<ModuleId>(i);
      const Module& m = program.modules[id];
      if (!is_none(m.name)) {
        if (m.name == builtin_module)
          sink.error("reserved-module", m.span,
                     "`Builtin` is the module of the builtin functions; expected another name");
        ModuleId& slot = module_of_name[index(m.name)];
        if (!is_none(slot))
          sink.error("redeclaration", m.span, "module `{}` is declared twice", text(m.name))
              .note(program.modules[slot].span, "the first `{}` is here", text(m.name));
        else
          slot = id;
      }
      for (FunctionId f : m.functions) {
        const Function& declared = program.functions[f];
        not_sink(declared.name, declared.name_span, "a function");
        auto [at, fresh] = functions.emplace(key(id, declared.name), f);
        if (!fresh)
          sink.error("redeclaration", declared.name_span, "function `{}` is declared twice in one module",
                     text(declared.name))
              .note(program.functions[at->second].name_span, "the first `{}` is here", text(declared.name));
        if (declared.name != main_name) continue;
        if (!is_none(program.main) && fresh)
          sink.error("main", declared.name_span, "expected one function `main` in the program, got another")
              .note(program.functions[program.main].name_span, "the first `main` is here");
        else if (fresh)
          program.main = f;
      }
      for (GlobalId g : m.globals) {
        const Global& declared = program.globals[g];
        not_sink(declared.name, declared.span, "a global");
        auto [at, fresh] = globals.emplace(key(id, declared.name), g);
        if (!fresh)
          sink.error("redeclaration", declared.span, "global `{}` is declared twice in one module", text(declared.name))
              .note(program.globals[at->second].span, "the first `{}` is here", text(declared.name));
      }
    }
  }

  void not_sink(NameId name, Span span, std::string_view what) {
    if (name == sink_name)
      sink.error("sink", span, "expected the name of {}, got `_`, which only drops a result", what);
  }

  void check_main(FileId file) {
    if (is_none(program.main)) {
      sink.error("main", {file, 0, 0}, "expected a function `main` in the program, got none");
      return;
    }
    const Function& main = program.functions[program.main];
    if (!main.parameters.empty())
      sink.error("main", main.variables[main.parameters[0]].span, "expected `main` without parameters, got {}",
                 main.parameters.size());
  }

  std::vector<std::string_view> module_names() const {
    if (unknown >= most_unknown) return {};
    std::vector<std::string_view> names{"Builtin"};
    for (const Module& m : program.modules)
      if (!is_none(m.name)) names.push_back(text(m.name));
    return names;
  }

  std::vector<std::string_view> members(ModuleId id) const {
    if (unknown >= most_unknown) return {};
    std::vector<std::string_view> names;
    for (FunctionId f : program.modules[id].functions) names.push_back(text(program.functions[f].name));
    for (GlobalId g : program.modules[id].globals) names.push_back(text(program.globals[g].name));
    return names;
  }

  void check_imports(const Module& m) {
    for (const Import& import : m.imports) {
      if (import.module == gpu_module) continue;
      ModuleId from = find_module(import.module);
      if (import.module != builtin_module && is_none(from)) {
        sink.warning("unknown-import", import.span, "there is no module `{}`{}", text(import.module),
                     suggestion(text(import.module), module_names()));
        continue;
      }
      for (NameId name : import.names) {
        Builtin ignored;
        bool known = import.module == builtin_module
                         ? find_builtin(text(name), ignored)
                         : functions.contains(key(from, name)) || globals.contains(key(from, name));
        if (!known)
          sink.warning("unknown-import", import.span, "module `{}` has no `{}`{}", text(import.module), text(name),
                       suggestion(text(name), import.module == builtin_module ? builtin_names() : members(from)));
      }
    }
  }

  // --- Functions ------------------------------------------------------------------------------------------------------------------

  static bool imports_name(const Import& import, NameId name) {
    return import.wildcard || std::find(import.names.begin(), import.names.end(), name) != import.names.end();
  }

  void find_sources(const Module& m) {
    sources.clear();
    for (size_t i = m.imports.size(); i-- > 0;) {
      const Import& import = m.imports[i];
      ModuleId from = find_module(import.module);
      if (import.module != builtin_module && is_none(from)) continue;
      uint32_t& stamp = all_of_module[index(import.module)];
      if (stamp == index(module) + 1) continue;  // a later import gives all that this one could
      if (import.wildcard) stamp = index(module) + 1;
      sources.push_back({&import, from});
    }
  }

  // What an unqualified function name means in the module at hand; kind `unresolved` when nothing.
  const FunctionRef& meaning_of(NameId name, Span use) {
    Cached& entry = cache[index(name)];
    if (entry.stamp == index(module) + 1) return entry.meaning;
    entry.stamp = index(module) + 1;
    entry.meaning = {};
    FunctionRef& out = entry.meaning;
    Builtin builtin;
    auto user = [&](ModuleId m) {
      auto at = functions.find(key(m, name));
      if (at == functions.end()) return false;
      out.kind = FunctionRef::user;
      out.function = at->second;
      return true;
    };
    if (user(module)) return out;
    const Module& here = program.modules[module];
    for (const Source& source : sources) {
      if (!imports_name(*source.import, name)) continue;
      if (source.import->module == builtin_module) {
        if (!find_builtin(text(name), builtin)) continue;
        out.kind = FunctionRef::builtin;
        out.builtin_id = builtin;
        return out;
      }
      if (user(source.from)) return out;
    }
    if (find_builtin(text(name), builtin)) {
      out.kind = FunctionRef::builtin;
      out.builtin_id = builtin;
      if (!is_none(here.name) && !missing_import_reported) {
        missing_import_reported = true;
        sink.warning("missing-import", use,
                     "`{}` is a builtin that module `{}` does not import; expected `import Builtin.*;`", text(name),
                     text(here.name));
      }
    }
    return out;
  }

  std::string_view describe_module(ModuleId id) const {
    NameId name = program.modules[id].name;
    return is_none(name) ? std::string_view("the program") : text(name);
  }

  void reference(FunctionRef& f) {
    if (!is_none(f.module)) {
      if (f.module == builtin_module) {
        if (find_builtin(text(f.name), f.builtin_id))
          f.kind = FunctionRef::builtin;
        else
          sink.error("unknown-function", f.span, "there is no builtin `{}`{}", text(f.name),
                     suggestion(text(f.name), builtin_names()));
        return;
      }
      ModuleId from = find_module(f.module);
      if (is_none(from)) {
        if (f.module == gpu_module && find_builtin(fmt::format("GPU.{}", text(f.name)), f.builtin_id))
          f.kind = FunctionRef::builtin;
        else if (f.module == gpu_module)
          sink.error("unknown-function", f.span, "module `GPU` has no function `{}`{}", text(f.name),
                     suggestion(text(f.name), gpu_names()));
        else
          sink.error("unknown-module", f.span, "there is no module `{}`{}", text(f.module),
                     suggestion(text(f.module), module_names()));
        return;
      }
      auto at = functions.find(key(from, f.name));
      if (at == functions.end()) {
        sink.error("unknown-function", f.span, "module `{}` has no function `{}`{}", text(f.module), text(f.name),
                   suggestion(text(f.name), members(from)))
            .note(program.modules[from].span, "module `{}` is declared here", text(f.module));
        return;
      }
      f.kind = FunctionRef::user;
      f.function = at->second;
      return;
    }
    const FunctionRef& meaning = meaning_of(f.name, f.span);
    f.kind = meaning.kind;
    f.builtin_id = meaning.builtin_id;
    f.function = meaning.function;
    if (f.kind != FunctionRef::unresolved) return;
    if (++unknown > most_unknown) {
      sink.error("unknown-function", f.span, "`{}` is neither a builtin nor a function that is visible here",
                 text(f.name));
      return;
    }
    auto candidates = builtin_names();
    for (FunctionId known : program.modules[module].functions)
      candidates.push_back(text(program.functions[known].name));
    sink.error("unknown-function", f.span, "`{}` is neither a builtin nor a function that is visible here{}",
               text(f.name), suggestion(text(f.name), candidates));
  }

  // --- Values ---------------------------------------------------------------------------------------------------------------------

  GlobalId find_global(NameId name) const {
    auto own = globals.find(key(module, name));
    if (own != globals.end()) return own->second;
    for (const Source& source : sources) {
      if (is_none(source.from) || !imports_name(*source.import, name)) continue;
      auto at = globals.find(key(source.from, name));
      if (at != globals.end()) return at->second;
    }
    return none<GlobalId>();
  }

  GlobalId qualified_global(NameId module_name, NameId name, Span span) {
    ModuleId from = find_module(module_name);
    if (is_none(from)) {
      auto report = sink.error("unknown-module", span, "there is no module `{}`{}", text(module_name),
                               suggestion(text(module_name), module_names()));
      if (!is_none(bindings[index(module_name)].variable))
        report.note(span, "a column of a table is a call: `@column_value({}, `{}:sym)`", text(module_name), text(name));
      return none<GlobalId>();
    }
    auto at = globals.find(key(from, name));
    if (at != globals.end()) return at->second;
    sink.error("undeclared", span, "module `{}` has no global `{}`{}", text(module_name), text(name),
               suggestion(text(name), members(from)));
    return none<GlobalId>();
  }

  void undeclared(NameId name, Span span, bool assigned = false) {
    if (++unknown > most_unknown) {
      sink.error("undeclared", span, "`{}` is not declared here", text(name));
      return;
    }
    std::vector<std::string_view> visible;
    const Variable* ended = nullptr;
    if (function)
      for (const Variable& v : function->variables) {
        if (v.name == name) ended = &v;
        if (!is_none(bindings[index(v.name)].variable)) visible.push_back(text(v.name));
      }
    for (GlobalId g : program.modules[module].globals) visible.push_back(text(program.globals[g].name));
    auto report = sink.error("undeclared", span, "`{}` is not declared here{}", text(name),
                             ended ? std::string() : suggestion(text(name), visible));
    if (assigned) report.note(span, "a first assignment declares its variable: `{}:? = ...`", text(name));
    if (std::string_view ours = foreign_value(text(name)); !ours.empty())
      report.note(span, "it is `{}` in HorseIR", ours);
    if (ended) report.note(ended->span, "this `{}` ends with the block around it", text(name));
  }

  void operand(Operand& o) {
    if (o.kind == Operand::literal) {
      if (auto* list = std::get_if<std::vector<FunctionRef>>(&program.literals[o.literal_id()].values))
        for (FunctionRef& f : *list) reference(f);
      return;
    }
    if (!is_none(o.module)) {
      GlobalId g = qualified_global(o.module, o.name, o.span);
      if (is_none(g)) return;
      o.kind = Operand::global;
      o.id = index(g);
      return;
    }
    if (o.name == sink_name) {
      sink.error("sink", o.span, "`_` drops a result and cannot be read; expected a variable or a literal");
      return;
    }
    if (function && !is_none(bindings[index(o.name)].variable)) {
      o.kind = Operand::variable;
      o.id = index(bindings[index(o.name)].variable);
      return;
    }
    GlobalId g = find_global(o.name);
    if (is_none(g)) {
      undeclared(o.name, o.span);
      return;
    }
    o.kind = Operand::global;
    o.id = index(g);
  }

  void bind(NameId name, VariableId variable) {
    undo.push_back({name, bindings[index(name)]});
    bindings[index(name)] = {variable, depth};
  }

  // A variable of its own that hides the earlier one of the same name; its name in print is new.
  void declare_again(Target& t) {
    const size_t known = program.names->size();
    NameId fresh{};
    for (uint32_t n = 2; program.names->size() == known; ++n)
      fresh = program.names->intern(fmt::format("{}_{}", text(t.name), n));
    bindings.resize(program.names->size());
    VariableId v = function->variables.add({fresh, t.declared_type, false, t.span});
    bind(t.name, v);
    t.id = index(v);
  }

  void declare(Target& t) {
    if (t.name == sink_name) {
      sink.error("sink", t.span, "`_` drops a result and takes no type, got `{}`",
                 program.types->text(t.declared_type));
      return;
    }
    t.kind = Target::variable;
    Binding here = bindings[index(t.name)];
    if (!is_none(here.variable) && here.depth == depth) {
      const Variable& before = function->variables[here.variable];
      // Two declarations with `?` may infer two types: two variables, of which the later one hides the earlier one.
      if (program.types->is_wildcard(before.type) && program.types->is_wildcard(t.declared_type) && !options.strict)
        return declare_again(t);
      bool open = program.types->is_wildcard(before.type) || program.types->is_wildcard(t.declared_type);
      if (before.type != t.declared_type && !open)
        sink.error("redeclaration", t.span, "`{}` is declared again with another type: expected {}, got {}",
                   text(t.name), program.types->text(before.type), program.types->text(t.declared_type))
            .note(before.span, "`{}` is declared here", text(t.name));
      t.id = index(here.variable);
      return;
    }
    VariableId v = function->variables.add({t.name, t.declared_type, false, t.span});
    bind(t.name, v);
    t.id = index(v);
  }

  void target(Target& t) {
    if (t.declares) return declare(t);
    if (!is_none(t.module)) {
      GlobalId g = qualified_global(t.module, t.name, t.span);
      if (is_none(g)) return;
      t.kind = Target::global;
      t.id = index(g);
      return;
    }
    if (t.name == sink_name) {
      t.kind = Target::sink;
      return;
    }
    Binding here = bindings[index(t.name)];
    if (!is_none(here.variable)) {
      t.kind = Target::variable;
      t.id = index(here.variable);
      return;
    }
    GlobalId g = find_global(t.name);
    if (is_none(g)) return undeclared(t.name, t.span, true);
    t.kind = Target::global;
    t.id = index(g);
  }

  // --- Expressions and statements -------------------------------------------------------------------------------------------------

  // Older spellings of calls of builtins (docs/horseir.md, "Older spellings").
  void canonicalise(Expression& call) {
    FunctionRef& f = call.callee;
    std::string_view written = text(f.name);
    if (written != row(f.builtin_id).name && f.module != gpu_module) {
      if (f.builtin_id == Builtin::list && call.operands.size() != 1)
        sink.error("arity", f.span, "`enlist` expects 1 argument, got {}", call.operands.size());
      f.name = program.names->intern(row(f.builtin_id).name);
    }
    auto is_function = [&](const Operand& o) {
      return o.kind == Operand::literal && program.literals[o.literal_id()].type == program.types->function();
    };
    if (is_each(f.builtin_id) && call.operands.size() > 1 && !is_function(call.operands.front()) &&
        is_function(call.operands.back()))
      std::rotate(call.operands.begin(), call.operands.end() - 1, call.operands.end());
    if ((f.builtin_id == Builtin::member || f.builtin_id == Builtin::index_of) && options.dialect_v0 &&
        call.operands.size() == 2)
      std::swap(call.operands[0], call.operands[1]);
  }

  void expression(ExpressionId id) {
    Expression& e = function->expressions[id];
    if (e.kind == Expression::cast) return expression(e.inner);
    for (Operand& o : e.operands) operand(o);
    if (e.kind != Expression::call) return;
    reference(e.callee);
    if (e.callee.kind == FunctionRef::builtin) canonicalise(e);
  }

  void block(BlockId id) {
    size_t mark = undo.size();
    ++depth;
    statements(id);
    --depth;
    while (undo.size() > mark) {
      bindings[index(undo.back().name)] = undo.back().before;
      undo.pop_back();
    }
  }

  void statements(BlockId id) {
    // By index: declarations do not touch the blocks.
    for (StatementId s : function->blocks[id].statements) statement(function->statements[s]);
  }

  void statement(Statement& s) {
    switch (s.kind) {
      case Statement::assign:
        expression(s.value);
        for (Target& t : s.targets) target(t);
        break;
      case Statement::declare:
        for (Target& t : s.targets) target(t);
        break;
      case Statement::expression: expression(s.value); break;
      case Statement::if_else:
      case Statement::while_loop:
      case Statement::repeat:
        operand(s.condition);
        block(s.body);
        if (!is_none(s.otherwise)) block(s.otherwise);
        break;
      case Statement::block: block(s.body); break;
      case Statement::return_:
        for (Operand& o : s.results) operand(o);
        break;
      case Statement::break_:
      case Statement::continue_: break;
    }
  }

  void resolve(Function& f) {
    function = &f;
    depth = 1;
    for (VariableId v : f.parameters) {
      const Variable& parameter = f.variables[v];
      not_sink(parameter.name, parameter.span, "a parameter");
      Binding before = bindings[index(parameter.name)];
      if (!is_none(before.variable))
        sink.error("redeclaration", parameter.span, "parameter `{}` is declared twice", text(parameter.name))
            .note(f.variables[before.variable].span, "the first `{}` is here", text(parameter.name));
      bind(parameter.name, v);
    }
    statements(f.body);
    while (!undo.empty()) {
      bindings[index(undo.back().name)] = undo.back().before;
      undo.pop_back();
    }
    function = nullptr;
  }
};

}  // namespace

void resolve_names(FileId file, Program& program, const Options& options, DiagnosticSink& sink) {
  Resolver r{program, options, sink, {}, {}, {}};
  r.declare_modules();
  for (uint32_t i = 0; i < program.modules.size(); ++i) {
    r.module = static_cast<ModuleId>(i);
    r.missing_import_reported = false;
    const Module& m = program.modules[r.module];
    r.check_imports(m);
    r.find_sources(m);
    for (GlobalId g : m.globals) r.operand(program.globals[g].value);
    for (FunctionId f : m.functions) r.resolve(program.functions[f]);
  }
  r.check_main(file);
}

}  // namespace rndn::hir
