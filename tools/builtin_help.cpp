#include "tools/builtin_help.h"

namespace rndn::tools {
namespace {

constexpr std::string_view family_mark = "## Builtins: ", entry_mark = "### ", item_mark = "- `";
constexpr size_t dash = 2;  // of an item, which is no part of its text

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.front() == '\n' || s.front() == ' ')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == '\n' || s.back() == ' ')) s.remove_suffix(1);
  return s;
}

// What stands between the first pair of backquotes; `rest` is what follows it.
std::string_view code_span(std::string_view s, std::string_view& rest) {
  const size_t open = s.find('`');
  const size_t close = open == s.npos ? s.npos : s.find('`', open + 1);
  if (close == s.npos) return {};
  rest = s.substr(close + 1);
  return s.substr(open + 1, close - open - 1);
}

// Up to the first full stop that ends a line or stands before a blank, on one line.
std::string first_sentence(std::string_view s) {
  std::string sentence;
  for (size_t i = 0; i < s.size(); ++i) {
    const bool ends = i + 1 == s.size() || s[i + 1] == ' ' || s[i + 1] == '\n';
    sentence += s[i] == '\n' ? ' ' : s[i];
    if (s[i] == '.' && ends) break;
  }
  return sentence;
}

// Fills in the parts of an entry from its text.
void read_parts(HelpEntry& entry, std::string_view text) {
  entry.text = trimmed(text);
  std::string_view rest;
  entry.signature = code_span(entry.text, rest);
  if (entry.is_item) {
    if (rest.starts_with(':')) rest.remove_prefix(1);
    entry.summary = first_sentence(trimmed(rest));
    return;
  }
  const size_t paragraph = rest.find("\n\n");
  entry.facts = trimmed(rest.substr(0, paragraph));
  if (paragraph != rest.npos) entry.summary = first_sentence(trimmed(rest.substr(paragraph)));
}

}  // namespace

std::vector<HelpFamily> parse_builtin_help(std::string_view markdown) {
  std::vector<HelpFamily> families;
  HelpEntry* open = nullptr;  // its text begins at `begin`
  size_t begin = 0, number = 0;
  bool within = false;  // a family
  auto close = [&](size_t end) {
    if (open) read_parts(*open, markdown.substr(begin, end - begin));
    open = nullptr;
  };
  auto add = [&](std::string_view name, bool is_item, size_t text_begin) {
    families.back().entries.push_back({.name = name, .is_item = is_item, .line = number});
    open = &families.back().entries.back();
    begin = text_begin;
  };
  for (size_t at = 0; at < markdown.size();) {
    const size_t end = std::min(markdown.find('\n', at), markdown.size());
    const std::string_view line = markdown.substr(at, end - at);
    ++number;
    if (line.starts_with("## ") || line.starts_with("# ")) {
      close(at);
      within = line.starts_with(family_mark);
      if (within) families.push_back({.title = line.substr(family_mark.size()), .entries = {}});
    } else if (within && line.starts_with(entry_mark)) {
      close(at);
      add(line.substr(entry_mark.size()), false, end);
    } else if (within && line.starts_with(item_mark) && (!open || open->is_item)) {
      close(at);
      const size_t name_end = std::min(line.find_first_of("(`", item_mark.size()), line.size());
      add(line.substr(item_mark.size(), name_end - item_mark.size()), true, at + dash);
    }
    at = end + 1;
  }
  close(markdown.size());
  return families;
}

}  // namespace rndn::tools
