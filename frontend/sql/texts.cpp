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
      row.name.starts_with("to_") ? fmt::format("a text cannot be cast to {}", type_name(type)) : std::string(row.why);
  return strict(type, demanded(value, holds, a, message, bounds), a);
}

Cell Translator::text_function(const Expression& e, std::span<const Cell> a, std::string_view builtin) {
  return text_cell(e.type, builtin, a);
}
Cell Translator::text_or_null(const Expression& e, std::span<const Cell> a, std::string_view builtin) {
  return text_cell(e.type, builtin, a, Undefined::is_null);
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
