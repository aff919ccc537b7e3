// Functions of regular expressions, by RE2 (github.com/google/re2): linear in the text, no
// backtracking. Without it in the build they have no value.
#include "runtime/text/regexp.h"

#include <vector>

#include "runtime/text/implementation.h"

namespace rndn::text {

#if RNDN_RE2

bool has_regular_expressions() { return true; }

const Patterns::Pattern* Patterns::find(std::string_view pattern, std::string_view options) {
  constexpr size_t most_kept = 256;
  const auto key = std::pair(std::string(pattern), std::string(options));
  if (const auto at = known_.find(key); at != known_.end())
    return at->second.expression ? &at->second : nullptr;
  if (known_.size() >= most_kept) known_.clear();
  Pattern& made = known_[key];
  re2::RE2::Options how;
  how.set_log_errors(false);
  for (char option : options) switch (option) {
      case 'c': how.set_case_sensitive(true); break;
      case 'i': how.set_case_sensitive(false); break;
      case 'l': how.set_literal(true); break;
      case 'm':
      case 'n':
      case 'p': how.set_dot_nl(false); break;
      case 's': how.set_dot_nl(true); break;
      case 'g': made.all = true; break;
      case 'k': made.keeps = true; break;
      case ' ':
      case '\t':
      case '\n': break;
      default: return nullptr;
    }
  auto expression = std::make_unique<re2::RE2>(re2::StringPiece(pattern.data(), pattern.size()), how);
  if (!expression->ok()) return nullptr;
  made.expression = std::move(expression);
  return &made;
}

namespace {

re2::StringPiece piece(std::string_view text) { return {text.data(), text.size()}; }
std::string_view options_of(const Call& c, size_t k) { return c.size() > k ? c.text(k) : std::string_view(); }

bool match(Call& c, re2::RE2::Anchor anchor) {
  const Patterns::Pattern* p = c.patterns.find(c.text(1), options_of(c, 2));
  return p && !p->keeps && c.give_integer(p->expression->Match(piece(c.text(0)), 0, c.text(0).size(), anchor, nullptr, 0));
}

}  // namespace

bool call_regexp_matches(Call& c) { return match(c, re2::RE2::UNANCHORED); }
bool call_regexp_full_match(Call& c) { return match(c, re2::RE2::ANCHOR_BOTH); }

bool call_regexp_extract(Call& c) {
  const Patterns::Pattern* p = c.patterns.find(c.text(1), options_of(c, 3));
  const __int128 group = c.size() > 2 ? c.integer(2) : 0;
  if (!p || group < 0 || group > 9) return false;
  if (group > p->expression->NumberOfCapturingGroups()) return c.give(std::string_view());
  std::vector<re2::StringPiece> groups(static_cast<size_t>(group) + 1);
  if (!p->expression->Match(piece(c.text(0)), 0, c.text(0).size(), re2::RE2::UNANCHORED, groups.data(),
                            static_cast<int>(groups.size())))
    return c.give(p->keeps ? c.text(0) : std::string_view());
  return c.give(std::string_view(groups.back().data(), groups.back().size()));
}

bool call_regexp_replace(Call& c) {
  const Patterns::Pattern* p = c.patterns.find(c.text(1), options_of(c, 3));
  std::string why;
  if (!p || p->keeps || !p->expression->CheckRewriteString(piece(c.text(2)), &why)) return false;
  std::string text(c.text(0));
  if (p->all)
    re2::RE2::GlobalReplace(&text, *p->expression, piece(c.text(2)));
  else
    re2::RE2::Replace(&text, *p->expression, piece(c.text(2)));
  return c.give(std::move(text));
}

#else

bool has_regular_expressions() { return false; }
bool call_regexp_matches(Call&) { return false; }
bool call_regexp_full_match(Call&) { return false; }
bool call_regexp_extract(Call&) { return false; }
bool call_regexp_replace(Call&) { return false; }

#endif

}  // namespace rndn::text
