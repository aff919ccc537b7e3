// Text builtins (horseir.md 4.9, 4.10): like, sub_string, str, print.
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
  for (uint64_t i = 0; i < x.size; ++i) out[i] = matches(x.text(i), pattern.text(pattern.size == 1 ? 0 : i));
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

std::string text_of(const Value& v) {
  std::string out;
  auto separated = [&](uint64_t n, auto&& item) {
    out += '(';
    for (uint64_t i = 0; i < n; ++i) out += (i ? "," : "") + item(i);
    out += ')';
  };
  switch (v.kind) {
    case Value::vector:
      if (v.size == 1) return element_text(v, 0);
      separated(v.size, [&](uint64_t i) { return element_text(v, i); });
      return out;
    case Value::enumeration: return text_of(gather(v.parts()[0], elements<int64_t>(v.parts()[1])));
    case Value::list: separated(v.parts().size(), [&](uint64_t i) { return text_of(v.parts()[i]); }); return out;
    case Value::dict:
    case Value::ktable: return text_of(v.parts()[0]) + "!" + text_of(v.parts()[1]);
    case Value::table:
      if (!v.cells) return fmt::format("table {}", v.source);
      separated(v.parts().size(), [&](uint64_t i) { return (*v.names)[i] + ":" + text_of(v.parts()[i]); });
      return out;
    case Value::functions: return "function";
    case Value::none: return "";
  }
  return out;
}

Result<Value> str(Context&, Arguments a) { return vector_of_texts(BasicType::str, {text_of(a[0])}); }

Result<Value> print(Context& context, Arguments a) {
  if (context.printed) *context.printed += text_of(a[0]) + "\n";
  return scalar_i64(0);
}

}  // namespace

std::span<const BuiltinEntry> text_builtins() {
  static constexpr BuiltinEntry entries[] = {
      {"like", like}, {"sub_string", sub_string}, {"str", str}, {"print", print}};
  return entries;
}

}  // namespace rndn::reference
