// The printer: a program as HorseIR that parses to the same program, in one canonical spelling (modules in order; within one the
// imports, globals, functions; one statement per line; calls and literals as the newest dialect writes them).
#include "frontend/ir.h"

#include <fmt/format.h>

#include "frontend/builtins.h"
#include "frontend/calendar.h"

namespace rndn::hir {

namespace {

void append_quoted(std::string& out, std::string_view text, char quote) {
  out += quote;
  for (char c : text) {
    switch (c) {
      case '\a': out += "\\a"; break;
      case '\b': out += "\\b"; break;
      case '\f': out += "\\f"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      case '\v': out += "\\v"; break;
      case '\\': out += "\\\\"; break;
      default:
        if (c == quote) out += '\\';
        out += c;
    }
  }
  out += quote;
}

bool is_identifier(std::string_view text) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  for (char c : text)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_')) return false;
  return true;
}

// Shortest text that reads back to the same value of the type.
std::string float_text(double value, BasicType type) {
  return type == BasicType::f32 ? fmt::format("{}", static_cast<float>(value)) : fmt::format("{}", value);
}

struct Printer {
  const Program& program;
  bool typed;
  std::string out;

  std::string_view name(NameId id) const { return program.text(id); }
  std::string type(TypeId id) const { return program.types->text(id); }

  void suffix(const std::string& type_text) {
    out += ':';
    out += type_text;
  }

  void qualified(NameId module, NameId id) {
    if (!is_none(module)) {
      out += name(module);
      out += '.';
    }
    out += name(id);
  }

  // Names the compiler resolved are printed from what they mean, so that a transformed program prints right; a function of another
  // module keeps the qualification it was written with.
  void reference(const FunctionRef& f) {
    out += '@';
    if (!is_none(f.name))
      qualified(f.module, f.name);
    else if (f.kind == FunctionRef::builtin)
      out += row(f.builtin_id).name;
    else
      out += name(program.functions[f.function].name);
  }

  void literal(const Literal& literal) {
    if (const auto* functions = std::get_if<std::vector<FunctionRef>>(&literal.values)) {
      for (const FunctionRef& f : *functions) reference(f);
      return;
    }
    BasicType basic = program.types->is_basic(literal.type) ? program.types->basic_of(literal.type) : BasicType::sym;
    size_t n = literal.size();
    if (n != 1) out += '(';
    for (size_t i = 0; i < n; ++i) {
      if (i > 0) out += ", ";
      if (const auto* v = std::get_if<std::vector<int64_t>>(&literal.values)) {
        if (basic == BasicType::character)
          append_quoted(out, std::string(1, static_cast<char>((*v)[i])), '\'');
        else if (is_calendar(basic))
          out += calendar_text(basic, (*v)[i]);
        else
          out += fmt::format("{}", (*v)[i]);
      } else if (const auto* v = std::get_if<std::vector<__int128>>(&literal.values)) {
        out += fmt::format("{}", (*v)[i]);
      } else if (const auto* v = std::get_if<std::vector<double>>(&literal.values)) {
        out += float_text((*v)[i], basic);
      } else if (const auto* v = std::get_if<std::vector<std::complex<double>>>(&literal.values)) {
        out += fmt::format("{}{:+}i", (*v)[i].real(), (*v)[i].imag());
      } else if (const auto* v = std::get_if<std::vector<std::string>>(&literal.values)) {
        if (basic == BasicType::sym) out += '`';
        if (basic == BasicType::sym && is_identifier((*v)[i]))
          out += (*v)[i];
        else
          append_quoted(out, (*v)[i], '"');
      }
    }
    if (n != 1) out += ')';
    out += ':';
    out += type(literal.type);
  }

  void operand(const Function* function, const Operand& o) {
    if (o.kind == Operand::literal)
      literal(program.literals[o.literal_id()]);
    else if (o.kind == Operand::variable && function)
      out += name(function->variables[o.variable_id()].name);
    else if (!is_none(o.name))
      qualified(o.module, o.name);
    else
      out += name(program.globals[o.global_id()].name);
  }

  void operands(const Function& function, std::span<const Operand> list) {
    for (size_t i = 0; i < list.size(); ++i) {
      if (i > 0) out += ", ";
      operand(&function, list[i]);
    }
  }

  void expression(const Function& function, ExpressionId id) {
    const Expression& e = function.expressions[id];
    switch (e.kind) {
      case Expression::operand: operand(&function, e.operands[0]); break;
      case Expression::call:
        reference(e.callee);
        out += '(';
        operands(function, e.operands);
        out += ')';
        break;
      case Expression::cast:
        out += "check_cast(";
        expression(function, e.inner);
        out += ", ";
        out += type(e.cast_type);
        out += ')';
        break;
    }
  }

  void target(const Function& function, const Target& t) {
    if (t.kind == Target::sink)
      out += '_';
    else if (t.kind == Target::variable)
      out += name(function.variables[t.variable_id()].name);
    else if (!is_none(t.name))
      qualified(t.module, t.name);
    else
      out += name(program.globals[static_cast<GlobalId>(t.id)].name);
    if (t.declares) suffix(target_type(function, t));
  }

  std::string target_type(const Function& function, const Target& t) const {
    return type(typed && t.kind == Target::variable ? function.variables[t.variable_id()].type : t.declared_type);
  }

  void block(const Function& function, BlockId id, size_t depth) {
    out += "{\n";
    for (StatementId s : function.blocks[id].statements) statement(function, s, depth + 1);
    out.append(depth * 4, ' ');
    out += "}";
  }

  void statement(const Function& function, StatementId id, size_t depth) {
    const Statement& s = function.statements[id];
    out.append(depth * 4, ' ');
    switch (s.kind) {
      case Statement::assign:
        for (size_t i = 0; i < s.targets.size(); ++i) {
          if (i > 0) out += ", ";
          target(function, s.targets[i]);
        }
        out += " = ";
        expression(function, s.value);
        out += ";\n";
        break;
      case Statement::expression:
        expression(function, s.value);
        out += ";\n";
        break;
      case Statement::declare:
        // `var x, y:T;` declares one type; inferred types may differ, so the typed form gives each variable a line.
        for (size_t i = 0; i < s.targets.size(); ++i) {
          const Target& t = s.targets[i];
          if (i == 0 || typed) out += "var ";
          out += t.kind == Target::variable ? name(function.variables[t.variable_id()].name) : name(t.name);
          bool last = i + 1 == s.targets.size();
          if (typed || last) suffix(target_type(function, t));
          out += typed || last ? ";\n" : ", ";
          if (typed && !last) out.append(depth * 4, ' ');
        }
        break;
      case Statement::if_else:
        out += "if (";
        operand(&function, s.condition);
        out += ") ";
        block(function, s.body, depth);
        if (!is_none(s.otherwise)) {
          out += " else ";
          block(function, s.otherwise, depth);
        }
        out += '\n';
        break;
      case Statement::while_loop:
      case Statement::repeat:
        out += s.kind == Statement::repeat ? "repeat (" : "while (";
        operand(&function, s.condition);
        out += ") ";
        block(function, s.body, depth);
        out += '\n';
        break;
      case Statement::block:
        block(function, s.body, depth);
        out += '\n';
        break;
      case Statement::return_:
        out += s.results.empty() ? "return" : "return ";
        operands(function, s.results);
        out += ";\n";
        break;
      case Statement::break_: out += "break;\n"; break;
      case Statement::continue_: out += "continue;\n"; break;
    }
  }

  void function(const Function& f, size_t depth) {
    out.append(depth * 4, ' ');
    out += f.is_kernel ? "kernel " : "def ";
    out += name(f.name);
    out += '(';
    for (size_t i = 0; i < f.parameters.size(); ++i) {
      if (i > 0) out += ", ";
      const Variable& v = f.variables[f.parameters[i]];
      out += name(v.name);
      suffix(type(v.type));
    }
    out += ')';
    for (size_t i = 0; i < f.result_types.size(); ++i) {
      out += i == 0 ? " : " : ", ";
      out += type(f.result_types[i]);
    }
    out += ' ';
    block(f, f.body, depth);
    out += '\n';
  }

  void module(const Module& m) {
    size_t depth = is_none(m.name) ? 0 : 1;
    if (depth) out += fmt::format("module {} {{\n", name(m.name));
    for (const Import& import : m.imports) {
      out.append(depth * 4, ' ');
      out += fmt::format("import {}.", name(import.module));
      if (import.wildcard) {
        out += '*';
      } else if (import.names.size() == 1) {
        out += name(import.names[0]);
      } else {
        out += '{';
        for (size_t i = 0; i < import.names.size(); ++i) {
          if (i > 0) out += ", ";
          out += name(import.names[i]);
        }
        out += '}';
      }
      out += ";\n";
    }
    for (GlobalId id : m.globals) {
      const Global& g = program.globals[id];
      out.append(depth * 4, ' ');
      out += fmt::format("global {}:{} = ", name(g.name), type(g.type));
      operand(nullptr, g.value);
      out += ";\n";
    }
    for (FunctionId id : m.functions) function(program.functions[id], depth);
    if (depth) out += "}\n";
  }
};

}  // namespace

std::string print(const Program& program, bool typed) {
  Printer printer{program, typed, {}};
  for (const Module& m : program.modules) printer.module(m);
  return std::move(printer.out);
}

std::string print(const Program& program, const Function& function, bool typed) {
  Printer printer{program, typed, {}};
  printer.function(function, 0);
  return std::move(printer.out);
}

}  // namespace rndn::hir
