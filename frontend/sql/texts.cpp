// Functions of texts: HorseIR's `text_map` (frontend/text_functions.def), once per distinct value,
// and `like` where that does the same on the device.
//
// A function that has no value for some arguments is an error for the rows for which it counts, or
// null where SQL says so (TRY_CAST). Left out: collations other than that of bytes.
#include <algorithm>

#include "frontend/sql/translator.h"
#include "frontend/text_functions.h"

namespace rndn::sql {

using hir::BasicType;

Cell Translator::text_cell(Type type, std::string_view function, std::span<const Cell> a, Undefined undefined) {
  hir::TextFunctionId id;
  if (!hir::find_text_function(function, id)) {
    fail("the function {} has no translation", function);
    return failed(type);
  }
  const hir::TextFunctionRow& row = hir::row(id);
  std::vector<VectorId> arguments{g_.text(BasicType::sym, function)};
  BasicType result = row.result;
  bool fits = a.size() >= row.least() && a.size() <= row.most(), typed = false;
  for (size_t k = 0; fits && k < a.size(); ++k) {
    const BasicType stored = g_[a[k].value].type;
    switch (row.letter(k)) {
      case 't':
        fits = a[k].type.id == TypeId::varchar;
        if (!typed && hir::is_text(stored) && result == BasicType::str) {
          result = stored;
          typed = true;
        }
        break;
      case 'f': fits = is_floating(a[k].type); break;
      default: fits = !is_floating(a[k].type) && a[k].type.id != TypeId::varchar; break;
    }
    arguments.push_back(a[k].value);
  }
  if (!fits) {
    std::string types;
    for (const Cell& c : a) types += fmt::format("{}{}", types.empty() ? "" : ", ", type_name(c.type));
    fail("the function {} of {} has no translation", function, types);
    return failed(type);
  }
  Bounds bounds;
  if (row.result == BasicType::i64) bounds = bounds_of(type);
  if (function == "length" || function == "strlen" || function == "position")
    bounds = Bounds::of(0, 1 << 24);  // lengths of texts have 24 bits
  VectorId value = g_.map("text_map", arguments, result, bounds);
  if (row.why.empty()) return strict(type, value, a);
  const VectorId holds = g_.map("text_valid", arguments, BasicType::boolean);
  if (undefined == Undefined::is_null) {
    VectorId valid = holds;
    for (const Cell& c : a) valid = g_.and_(valid, c.valid);
    return canonical(type, value, valid);
  }
  const std::string message =
      row.name.starts_with("to_") ? fmt::format("a text cannot be cast to {}: it does not read as one (TRY_CAST gives NULL instead)", type_name(type)) : std::string(row.why);
  return strict(type, demanded(value, holds, a, message, bounds), a);
}

Cell Translator::text_function(const Expression& e, std::span<const Cell> a, std::string_view builtin) {
  return text_cell(e.type, builtin, a);
}
Cell Translator::text_or_null(const Expression& e, std::span<const Cell> a, std::string_view builtin) {
  return text_cell(e.type, builtin, a, Undefined::is_null);
}

// The digits of a text's bytes, or of an integer.
Cell Translator::digits(const Expression& e, std::span<const Cell> a, std::string_view base) {
  if (a[0].type.id == TypeId::varchar) return text_cell(e.type, base, a);
  const bool wide = a[0].type.id == TypeId::hugeint;
  const Cell bits{g_.integer(BasicType::i64, wide ? 128 : 64), nothing, {TypeId::bigint}};
  return text_cell(e.type, fmt::format("{}_of", base), {a[0], bits});
}

// format ("{") and printf ("%"): the parts of a constant format one after the other, each value by
// its own spec, where its type has such a one.
Cell Translator::formatted_text(const Expression& e, std::span<const Cell> a, std::string_view mark) {
  const std::optional<std::string> format = g_[a[0].value].text;
  const Type text{TypeId::varchar};
  const auto refuse = [&](std::string_view what) {
    fail("the function {} has no translation for {}", name_of(e.function), what);
    return failed(e.type);
  };
  if (!format || !is_none(a[0].valid)) return refuse("a format that is no constant");
  const bool braces = mark == "{";
  std::vector<Cell> parts;
  std::string plain;
  const auto end_plain = [&] {
    if (!plain.empty()) parts.push_back({g_.text(BasicType::str, plain), nothing, text});
    plain.clear();
  };
  size_t next = 1;
  for (size_t k = 0; k < format->size(); ++k) {
    const char c = (*format)[k];
    if ((c == mark[0] || (braces && c == '}')) && k + 1 < format->size() && (*format)[k + 1] == c) {
      plain += c;
      ++k;
      continue;
    }
    if (c != mark[0]) {
      if (braces && c == '}') return refuse("a brace that nothing opens");
      plain += c;
      continue;
    }
    const size_t end = braces ? format->find('}', k) : format->find_first_of("diuxXocsfFeEgG", k + 1);
    if (end == std::string::npos) return refuse("'" + format->substr(k) + "'");
    std::string spec = format->substr(k, end + 1 - k);
    const std::string given = spec;
    k = end;
    size_t at = next++;
    if (braces) {  // {number:spec}
      const size_t colon = std::min(spec.find(':'), spec.size() - 1);
      const std::string number = spec.substr(1, colon - 1);
      if (number.find_first_not_of("0123456789") != std::string::npos || number.size() > 3) return refuse("'" + given + "'");
      if (!number.empty()) at = static_cast<size_t>(std::stoi(number)) + 1;
      spec = "{" + spec.substr(colon);
    }
    if (at >= a.size()) return refuse("'" + given + "', which no argument is for");
    const Cell& value = a[at];
    end_plain();
    const std::string_view inner = std::string_view(spec).substr(1, spec.size() - (braces ? 2 : 1));
    const bool is_text = value.type.id == TypeId::varchar;
    const bool is_plain = braces ? inner.empty() : inner == "s" || (inner == "d" && is_integral(value.type));
    if (is_plain && (braces || is_text || inner == "d" || value.type.id == TypeId::boolean)) {
      parts.push_back(is_text ? value : cast_cell(value, text));
      continue;
    }
    const bool is_real = is_floating(value.type), is_whole = is_integral(value.type);
    // What may stand in a spec of the type: flags, width and precision, and its last letter.
    const std::string_view flags = is_text ? "0123456789<>^-.:" : braces ? "0123456789<>^+- .,_:" : "0123456789+- .,#";
    const std::string_view last = is_text ? "s" : is_real ? "fFeEgG" : braces ? "dxXob" : "diuxXo";
    const char letter = spec[spec.size() - (braces ? 2 : 1)];
    const bool has_letter = last.find(letter) != std::string_view::npos;
    const std::string_view rest = inner.substr(0, inner.size() - has_letter);
    if ((!is_text && !is_real && !is_whole) || rest.find_first_not_of(flags) != std::string_view::npos ||
        (!has_letter && (!braces || is_real)) || (!is_real && !is_text && rest.find('.') != std::string_view::npos))
      return refuse(fmt::format("'{}' of {}", given, type_name(value.type)));
    const std::string_view function = is_text ? "format_text" : is_real ? "format_real" : "format_integer";
    parts.push_back(text_cell(text, function, {value, {g_.text(BasicType::str, spec), nothing, text}}));
  }
  end_plain();
  if (parts.empty()) parts.push_back({g_.text(BasicType::str, ""), nothing, text});
  return strict(e.type, text_cell(text, "concat", parts).value, a);
}

// --- Patterns ------------------------------------------------------------------------------------

// `like` of HorseIR does it where the pattern is a constant in which no `_` has to be a character,
// and the constant's own % and _ need not stand for themselves (`quote`).
Cell Translator::like_cell(std::span<const Cell> a, bool quote, std::string_view before,
                           std::string_view behind, std::string_view function) {
  const Type truth{TypeId::boolean};
  const std::optional<std::string> pattern = g_[a[1].value].text;
  const bool plain = pattern && is_none(a[1].valid) && hir::is_text(g_[a[0].value].type) &&
                     pattern->find_first_of(quote ? "%_" : "_") == std::string::npos;
  if (!plain) return text_cell(truth, function, a);
  // Of rows of a table with fewer rows, there: what reads it has the mask's elements to gather.
  VectorId text = a[0].value, rows = nothing;
  if (g_.is_of_fewer_rows(text)) {
    rows = g_[text].arguments[1];
    text = g_[text].arguments[0];
  }
  const VectorId like = g_.call(
      "@like(", {text, g_.text(BasicType::str, fmt::format("{}{}{}", before, *pattern, behind))},
      BasicType::boolean, g_[text].space, "like");
  return strict(truth, is_none(rows) ? like : g_.pick(like, rows), a);
}
Cell Translator::like(const Expression&, std::span<const Cell> a, std::string_view) {
  return like_cell(a, false, "", "", "like");
}
Cell Translator::not_like(const Expression& e, std::span<const Cell> a, std::string_view) {
  const Cell c = like_cell(a, false, "", "", "like");
  return negation(e, {&c, 1}, "");
}
Cell Translator::not_text_function(const Expression& e, std::span<const Cell> a, std::string_view builtin) {
  const Cell c = text_cell(e.type, builtin, a);
  return negation(e, {&c, 1}, "");
}
Cell Translator::contains(const Expression&, std::span<const Cell> a, std::string_view) {
  return like_cell(a, true, "%", "%", "contains");
}
Cell Translator::prefix(const Expression&, std::span<const Cell> a, std::string_view) {
  return like_cell(a, true, "", "%", "prefix");
}
Cell Translator::suffix(const Expression&, std::span<const Cell> a, std::string_view) {
  return like_cell(a, true, "%", "", "suffix");
}

// --- What skips nulls ----------------------------------------------------------------------------

namespace {
constexpr Type varchar{TypeId::varchar};
}

// A text, or nothing in place of null.
Cell Translator::text_or_empty(const Cell& c) {
  if (is_none(c.valid)) return c;
  if (hir::is_text(g_[c.value].type)) return {c.value, nothing, c.type};
  const Cell text = text_cell(varchar, "concat", {c});
  return {text.value, nothing, varchar};
}
Cell Translator::concat(const Expression& e, std::span<const Cell> a, std::string_view) {
  std::vector<Cell> parts;
  for (const Cell& c : a) {
    if (c.type.id != TypeId::varchar) {
      no_rule(e, a);
      return failed(e.type);
    }
    parts.push_back(text_or_empty(c));
  }
  return text_cell(e.type, "concat", parts);
}
// The parts with the first argument between them.
Cell Translator::concat_ws(const Expression& e, std::span<const Cell> a, std::string_view) {
  const std::optional<std::string> separator = g_[a[0].value].text;
  if (!separator || !is_none(a[0].valid)) {
    fail("the function concat_ws has a translation with a constant separator alone");
    return failed(e.type);
  }
  std::vector<Cell> parts;
  for (const Cell& c : a.subspan(1))
    parts.push_back(text_or_empty(text_cell(varchar, "concat", std::vector<Cell>{a[0], c})));
  const Cell all = text_cell(varchar, "concat", parts);
  int64_t begin = 1;
  for (char c : *separator) begin += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return text_cell(e.type, "substring", std::vector<Cell>{all, {g_.integer(BasicType::i64, begin), nothing, {TypeId::bigint}}});
}

}  // namespace rndn::sql
