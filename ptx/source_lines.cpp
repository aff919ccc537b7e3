// Line tables of the parser: .file, .loc, and the section .debug_str with the names of inlined functions (PTX ISA, debugging directives).
//
// A location holds for the instructions that follow it in the text, to the next one of its function. The names of inlined functions are
// offsets into .debug_str, which may come after all functions: they are looked up at the end. All other sections are passed over. Cost: linear.
#include <algorithm>
#include <charconv>

#include "ptx/reader.h"

namespace rndn::ptx {
namespace {

// What the data of a section is made of, without white space, commas and comments; empty at the end.
std::string_view next_word(std::string_view text, size_t& at) {
  static constexpr std::string_view between = " \t\r\n\f\v,";
  while (true) {
    at = std::min(text.find_first_not_of(between, at), text.size());
    const bool line = text.substr(at, 2) == "//";
    if (!line && text.substr(at, 2) != "/*") break;
    const size_t end = line ? text.find('\n', at) : text.find("*/", at + 2);
    at = end == std::string_view::npos ? text.size() : end + (line ? 1 : 2);
  }
  const size_t begin = at;
  if (at < text.size() && (text[at] == '{' || text[at] == '}' || text[at] == ':')) return text.substr(at++, 1);
  at = std::min(text.find_first_of(" \t\r\n\f\v,:{}/", at), text.size());
  return text.substr(begin, at - begin);
}

bool number(std::string_view word, uint64_t& value) {
  const int base = word.starts_with("0x") || word.starts_with("0X") ? 16 : 10;
  if (base == 16) word.remove_prefix(2);
  const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), value, base);
  return failure == std::errc() && end == word.data() + word.size();
}

bool fits(const Token& t) { return t.constant == Token::integer && t.value >= 0 && t.value <= INT32_MAX; }

}  // namespace

void Reader::source_file(const Token& number, const Token& name, const Token& time, const Token& bytes, Range at) {
  if (!fits(number)) return void(error("bad-directive", at, "expected the number of a file, got `{}`", number.text()));
  const std::string_view quoted = name.text();
  SourceFile f{static_cast<uint32_t>(number.value), std::string(quoted.substr(1, quoted.size() - 2)),
               static_cast<uint64_t>(time.value), static_cast<uint64_t>(bytes.value)};
  const auto same = std::find_if(module_.files.begin(), module_.files.end(),
                                 [&](const SourceFile& x) { return x.number == f.number; });
  if (same == module_.files.end())
    module_.files.push_back(std::move(f));
  else if (same->name != f.name)
    error("redefined", at, "file {} is `{}` already", f.number, same->name);
}

void Reader::location(const Token& file, const Token& line, const Token& column, Range at) {
  for (const Token* t : {&file, &line, &column})
    if (!fits(*t)) return void(error("bad-directive", at, "expected file, line and column, got `{}`", t->text()));
  if (self_ == UINT32_MAX) return;  // outside of functions
  f_.locations.push_back({.at = static_cast<uint32_t>(f_.instructions.size()),
                          .file = static_cast<uint32_t>(file.value),
                          .line = static_cast<uint32_t>(line.value),
                          .column = static_cast<uint32_t>(column.value)});
}

void Reader::inlined_location(const Token& file, const Token& line, const Token& column, const Token& function_name,
                              const Token& label, const Token& inlined_at, const std::array<Token, 3>& caller,
                              Range at) {
  if (function_name.text() != "function_name" || inlined_at.text() != "inlined_at")
    return void(error("bad-directive", at, "expected `function_name` and `inlined_at`, got `{}` and `{}`",
                      function_name.text(), inlined_at.text()));
  for (const Token& t : caller)
    if (!fits(t)) return void(error("bad-directive", at, "expected file, line and column, got `{}`", t.text()));
  const size_t before = f_.locations.size();
  location(file, line, column, at);
  if (f_.locations.size() == before) return;
  Location& l = f_.locations.back();
  l.caller_file = static_cast<uint32_t>(caller[0].value);
  l.caller_line = static_cast<uint32_t>(caller[1].value);
  l.caller_column = static_cast<uint32_t>(caller[2].value);
  inlined_names_.push_back({self_, static_cast<uint32_t>(before), label.text(), label.value, at});
}

void Reader::section(Range at) {
  const std::string_view text = text_.substr(at.begin, at.end - at.begin);
  size_t p = 0;
  if (next_word(text, p) != ".debug_str" || next_word(text, p) != "{") return;
  uint32_t size = 1;  // of the values to come
  std::string_view before;
  for (std::string_view word; !(word = next_word(text, p)).empty(); before = word) {
    uint64_t value = 0;
    if (word == ":") {
      debug_labels_.push_back({before, debug_strings_.size()});
    } else if (word.starts_with(".b")) {
      if (!number(word.substr(2), value) || (value != 8 && value != 16 && value != 32 && value != 64))
        return void(error("unsupported", at, "unsupported type `{}` in section .debug_str", word));
      size = static_cast<uint32_t>(value) / 8;
    } else if (number(word, value)) {
      for (uint32_t k = 0; k < size; ++k) debug_strings_ += static_cast<char>(value >> 8 * k);
    }
  }
}

void Reader::name_inlined_functions() {
  std::sort(debug_labels_.begin(), debug_labels_.end(),
            [](const DebugLabel& a, const DebugLabel& b) { return a.name < b.name; });
  StringTable known;  // name -> index
  for (const InlinedName& n : inlined_names_) {
    const auto label = std::lower_bound(debug_labels_.begin(), debug_labels_.end(), n.label,
                                        [](const DebugLabel& l, std::string_view name) { return l.name < name; });
    if (label == debug_labels_.end() || label->name != n.label) {
      error("undefined", n.at, "section .debug_str has no label `{}`", n.label);
      continue;
    }
    const uint64_t offset = label->offset + static_cast<uint64_t>(n.offset);
    if (offset >= debug_strings_.size()) {
      error("bad-directive", n.at, "`{}+{}` lies outside of section .debug_str", n.label, n.offset);
      continue;
    }
    const std::string_view name =
        std::string_view(debug_strings_).substr(offset, debug_strings_.find('\0', offset) - offset);
    uint32_t& id = known[name];
    if (id == UINT32_MAX) {
      id = static_cast<uint32_t>(module_.inlined.size());
      module_.inlined.emplace_back(name);
    }
    std::vector<Location>& locations = module_.functions[n.function].locations;
    if (n.location < locations.size()) locations[n.location].inlined = id;  // not so after errors
  }
}

}  // namespace rndn::ptx
