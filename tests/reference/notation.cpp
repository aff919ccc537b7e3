#include "tests/reference/notation.h"

#include <fmt/format.h>

#include "frontend/builtins.h"

namespace rndn::reference {
namespace testing {
namespace {

using hir::BasicType;

std::vector<std::string> split(std::string_view text, char at) {  // at depth 0 of brackets
  std::vector<std::string> parts(1);
  int depth = 0;
  for (char c : text) {
    if (c == '[' || c == '{' || c == '<') ++depth;
    if (c == ']' || c == '}' || c == '>') --depth;
    if (c == at && depth == 0)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  if (parts.size() == 1 && parts[0].find_first_not_of(' ') == std::string::npos) parts.clear();
  return parts;
}

std::string trim(std::string_view s) {
  size_t b = s.find_first_not_of(' '), e = s.find_last_not_of(' ');
  return b == std::string_view::npos ? "" : std::string(s.substr(b, e - b + 1));
}

}  // namespace

Value parse(std::string_view raw) {
  std::string text = trim(raw);
  CHECK(!text.empty());
  auto inside = [&] { return std::string_view(text).substr(1, text.size() - 2); };
  auto parse_all = [](std::vector<std::string> parts) {
    std::vector<Value> out;
    for (auto& p : parts) out.push_back(parse(p));
    return out;
  };
  if (text[0] == '[') return list(parse_all(split(inside(), ';')));
  if (text[0] == '{') {
    auto parts = parse_all(split(inside(), ';'));
    return dict(parts[0], parts[1]);
  }
  if (text[0] == '<') {
    auto parts = parse_all(split(inside(), ';'));
    return enumeration(parts[0], parts[1]);
  }
  if (text[0] == '|') {
    std::vector<std::string> names;
    std::vector<Value> columns;
    for (const std::string& part : split(inside(), ';')) {
      size_t eq = part.find('=');
      names.push_back(trim(part.substr(0, eq)));
      columns.push_back(parse(part.substr(eq + 1)));
    }
    return table(names, columns);
  }
  if (text[0] == '@') {
    std::vector<hir::FunctionRef> refs;
    for (const std::string& name : split(std::string_view(text).substr(1), '@')) {
      hir::FunctionRef ref;
      ref.kind = hir::FunctionRef::builtin;
      CHECK(hir::find_builtin(name, ref.builtin_id), "{}", name);
      refs.push_back(ref);
    }
    return functions(refs);
  }
  std::vector<std::string> words = split(text, ' ');
  BasicType type;
  CHECK(hir::parse_basic_type(words[0], type), "{}", text);
  words.erase(words.begin());
  if (hir::is_text(type)) {
    for (std::string& w : words) {
      if (w == "''") w = "";
      for (char& c : w)
        if (c == '~') c = ' ';
    }
    return vector_of_texts(type, words);
  }
  auto numbers = [&]<class T>(T) {
    std::vector<T> out;
    for (const std::string& w : words)
      out.push_back(
          static_cast<T>(std::is_integral_v<T> ? static_cast<T>(std::stoll(w)) : static_cast<T>(std::stod(w))));
    return vector_of<T>(type, std::span<const T>(out));
  };
  if (type == BasicType::complex) {
    std::vector<std::complex<double>> out;
    for (const std::string& w : words) {
      size_t used = 0;
      double re = std::stod(w, &used);
      out.emplace_back(re, std::stod(w.substr(used)));
    }
    return vector_of<std::complex<double>>(type, std::span<const std::complex<double>>(out));
  }
  if (type == BasicType::f32) return numbers(float{});
  if (type == BasicType::f64) return numbers(double{});
  switch (data::plain_width(type)) {
    case 1: return numbers(int8_t{});
    case 2: return numbers(int16_t{});
    case 4: return numbers(int32_t{});
    default: return numbers(int64_t{});
  }
}

std::string show(const Value& v) {
  auto joined = [&](const std::vector<Value>& cells, const char* open, const char* close) {
    std::string out = open;
    for (size_t i = 0; i < cells.size(); ++i) out += (i ? "; " : "") + show(cells[i]);
    return out + close;
  };
  switch (v.kind) {
    case Value::none: return "none";
    case Value::list: return joined(v.parts(), "[", "]");
    case Value::dict: return joined(v.parts(), "{", "}");
    case Value::enumeration: return joined(v.parts(), "<", ">");
    case Value::ktable: return joined(v.parts(), "(", ")");
    case Value::functions: return "@";
    case Value::table: {
      std::string out = "|";
      for (size_t i = 0; i < v.parts().size(); ++i) out += (i ? "; " : "") + (*v.names)[i] + "=" + show(v.parts()[i]);
      return out + "|";
    }
    case Value::vector: break;
  }
  std::string out(hir::basic_type_name(v.type));
  for (uint64_t i = 0; i < v.size; ++i) {
    if (hir::is_text(v.type)) {
      std::string t = v.text(i).empty() ? "''" : v.text(i);
      for (char& c : t)
        if (c == ' ') c = '~';
      out += ' ' + t;
    } else if (v.type == BasicType::complex) {
      auto z = v.as<std::complex<double>>()[i];
      out += fmt::format(" {}{:+}i", z.real(), z.imag());
    } else if (v.type == BasicType::f32) {
      out += fmt::format(" {}", v.as<float>()[i]);
    } else if (v.type == BasicType::f64) {
      out += fmt::format(" {}", v.as<double>()[i]);
    } else {
      switch (data::plain_width(v.type)) {
        case 1: out += fmt::format(" {}", v.as<int8_t>()[i]); break;
        case 2: out += fmt::format(" {}", v.as<int16_t>()[i]); break;
        case 4: out += fmt::format(" {}", v.as<int32_t>()[i]); break;
        default: out += fmt::format(" {}", v.as<int64_t>()[i]);
      }
    }
  }
  return out;
}

}  // namespace testing
}  // namespace rndn::reference
