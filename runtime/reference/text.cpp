// Text builtins (docs/horseir.md, "Builtins: text"): like, sub_string, str, print.
#include "runtime/reference/builtins.h"

namespace rndn::reference {

using hir::BasicType;

namespace {

// `%` any run of bytes, `_` one byte, everything else literal, the whole text must match. Greedy with one point of
// return: the last `%` seen is the only one that may need to take more bytes. O(|text| * |pattern|) at worst.
bool matches(std::string_view text, std::string_view pattern) {
  size_t t = 0, p = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '%') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '_' || pattern[p] == text[t])) {
      ++p, ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '%') ++p;
  return p == pattern.size();
}

Result<Value> like(Context&, Arguments a) {
  const Value &x = a[0], &pattern = a[1];
  if (!x.is_text_vector() || !pattern.is_text_vector())
    return input_error("`like` is not defined for {}, {}", describe(x), describe(pattern));
  if (pattern.size != 1 && pattern.size != x.size)
    return input_error("`like` expects one pattern or one per element, got {} and {} elements", pattern.size, x.size);
  std::vector<uint8_t> out(x.size);
  CancelTicker tick;
  for (uint64_t i = 0; i < x.size; ++i) tick(), out[i] = matches(x.text(i), pattern.text(pattern.size == 1 ? 0 : i));
  return make_bool(out);
}

Result<Value> sub_string(Context&, Arguments a) {
  if (!a[0].is_text_vector() || !a[1].is_vector() || !hir::is_integer(a[1].type) || a[1].size != 2)
    return input_error("`sub_string` expects text and (start, length), got {}, {}", describe(a[0]), describe(a[1]));
  std::vector<int64_t> range = elements<int64_t>(a[1]);
  if (range[0] < 1 || range[1] < 0)
    return input_error("`sub_string` counts from 1 and takes 0 or more bytes, got ({}, {})", range[0], range[1]);
  std::vector<std::string> out(a[0].size);
  for (uint64_t i = 0; i < a[0].size; ++i) {
    const std::string& text = a[0].text(i);
    size_t start = static_cast<size_t>(range[0] - 1);
    if (start < text.size()) out[i] = text.substr(start, static_cast<size_t>(range[1]));
  }
  return vector_of_texts(a[0].type, std::move(out));
}

std::string element_text(const Value& v, uint64_t i) {
  if (v.is_text_vector()) return v.text(i);
  switch (v.type) {
    case BasicType::boolean: return v.as<uint8_t>()[i] ? "1" : "0";
    case BasicType::character: return std::string(1, static_cast<char>(v.as<int8_t>()[i]));
    case BasicType::complex: {
      auto z = v.as<std::complex<double>>()[i];
      return fmt::format("{}{:+}i", z.real(), z.imag());
    }
    default: return with_type(v.type, [&](auto zero) { return fmt::format("{}", v.as<decltype(zero)>()[i]); });
  }
}

// Appends the printed form of a value; false when the text gets longer than `limit` (values share their parts, so that a
// small program can ask for any length).
bool append_text(const Value& v, uint64_t limit, std::string& out) {
  auto separated = [&](uint64_t n, auto&& item) {
    out += '(';
    for (uint64_t i = 0; i < n; ++i) {
      if (i) out += ',';
      if (!item(i) || out.size() > limit) return false;
    }
    out += ')';
    return true;
  };
  switch (v.kind) {
    case Value::vector: {
      auto element = [&](uint64_t i) {
        out += element_text(v, i);
        return true;
      };
      return v.size == 1 ? element(0) : separated(v.size, element);
    }
    case Value::enumeration: {  // the values that it stands for; nothing for those that are not among the keys
      const Value &keys = v.parts()[0], &rows = v.parts()[1];
      if (!keys.is_vector()) return append_text(rows, limit, out);
      return separated(rows.size, [&](uint64_t i) {
        uint64_t row = static_cast<uint64_t>(rows.as<int64_t>()[i]);
        if (row < keys.size) out += element_text(keys, row);
        return true;
      });
    }
    case Value::dict:
    case Value::ktable:
      if (!append_text(v.parts()[0], limit, out)) return false;
      out += "!";
      return append_text(v.parts()[1], limit, out);
    case Value::list:
      return separated(v.parts().size(), [&](uint64_t i) { return append_text(v.parts()[i], limit, out); });
    case Value::table:
      if (!v.cells) {
        out += fmt::format("table {}", v.source);
        return true;
      }
      return separated(v.parts().size(), [&](uint64_t i) {
        out += (*v.names)[i] + ":";
        return append_text(v.parts()[i], limit, out);
      });
    case Value::functions: out += "function"; return true;
    case Value::none: return true;
  }
  return true;
}

Result<std::string> text_of(Context& context, std::string_view function, const Value& value) {
  ASSIGN_OR_RETURN(const Value v, with_columns(value, context.tables));
  std::string out;
  if (!append_text(v, context.state->longest, out))
    return input_error("`{}`: the text is longer than the {} bytes that it may have", function, context.state->longest);
  return out;
}

Result<Value> str(Context& context, Arguments a) {
  ASSIGN_OR_RETURN(std::string text, text_of(context, "str", a[0]));
  return vector_of_texts(BasicType::str, {std::move(text)});
}

Result<Value> print(Context& context, Arguments a) {
  ASSIGN_OR_RETURN(std::string text, text_of(context, "print", a[0]));
  if (context.printed) *context.printed += text + "\n";
  return scalar_i64(0);
}

}  // namespace

std::span<const BuiltinEntry> text_builtins() {
  static constexpr BuiltinEntry entries[] = {
      {"like", like}, {"sub_string", sub_string}, {"str", str}, {"print", print}};
  return entries;
}

}  // namespace rndn::reference
