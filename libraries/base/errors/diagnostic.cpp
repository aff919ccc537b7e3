#include "libraries/base/errors/diagnostic.h"

#include <algorithm>
#include <cctype>

namespace rndn {

DiagnosticSink::Builder DiagnosticSink::report(Severity severity, std::string_view kind, Span span,
                                               std::string message) {
  diagnostics_.push_back({severity, kind, span, std::move(message), {}, {}});
  if (severity == Severity::error) ++errors_;
  return Builder(*this, diagnostics_.size() - 1);
}

void DiagnosticSink::sort_by_position() {
  std::stable_sort(diagnostics_.begin(), diagnostics_.end(), [](const Diagnostic& a, const Diagnostic& b) {
    if (a.span.file != b.span.file) return index(a.span.file) < index(b.span.file);
    return a.span.begin < b.span.begin;
  });
}

namespace {

// The length of the UTF-8 sequence of a printable character at `at`; 0 when there is none.
size_t printable_length(std::string_view text, size_t at) {
  auto byte = [&](size_t i) { return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u; };
  const unsigned first = byte(0);
  if (first < 0x80) return first == '\t' || (first >= 32 && first != 127);
  const size_t length = first >= 0xc2 && first < 0xe0   ? 2
                        : first >= 0xe0 && first < 0xf0 ? 3
                        : first >= 0xf0 && first < 0xf5 ? 4
                                                        : 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  return first == 0xc2 && byte(1) < 0xa0 ? 0 : length;  // U+0080 .. U+009F are control characters, too
}

// Never send raw control bytes of an input to a terminal.
void mask_control_bytes(std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = printable_length(text, at);
    if (!length) text[at] = '?';
    at += length ? length : 1;
  }
}

// One message with its source line and marks. Tabs are kept in the mark line so that carets align in any terminal.
std::string render_one(std::string_view severity, Span span, const std::string& message,
                       const std::vector<Span>& highlights, const SourceManager& sources) {
  if (!span.known()) return fmt::format("{}: {}\n", severity, message);
  LineColumn at = sources.position(span);
  std::string_view line = sources.line(span.file, at.line);
  std::string out = fmt::format("{}:{}:{}: {}: {}\n", sources.name(span.file), at.line, at.column, severity, message);
  constexpr size_t longest = 400;  // a machine-made line would bury the message
  if (line.size() > longest) return out;
  uint32_t line_begin = span.begin - (at.column - 1);
  std::string marks(line.size() + 1, ' ');
  for (size_t i = 0; i < line.size(); ++i)
    if (line[i] == '\t') marks[i] = '\t';
  auto mark = [&](Span s, char first) {
    if (!s.known() || s.file != span.file || s.begin < line_begin || s.begin > line_begin + line.size()) return;
    size_t from = s.begin - line_begin;
    size_t to = std::min<size_t>(s.end > s.begin ? s.end - line_begin : from + 1, line.size());
    for (size_t i = from; i < std::max(to, from + 1) && i < marks.size(); ++i) marks[i] = '~';
    if (first != '~') marks[from] = first;
  };
  for (Span h : highlights) mark(h, '~');
  mark(span, '^');
  while (!marks.empty() && std::isspace(static_cast<unsigned char>(marks.back()))) marks.pop_back();
  std::string shown(line);
  mask_control_bytes(shown);
  return out + fmt::format("  {}\n  {}\n", shown, marks);
}

}  // namespace

std::string render(const Diagnostic& d, const SourceManager& sources) {
  static constexpr std::string_view names[] = {"error", "warning", "note"};
  std::string out = render_one(names[static_cast<int>(d.severity)], d.span, d.message, d.highlights, sources);
  for (const auto& note : d.notes) out += render_one("note", note.span, note.message, {}, sources);
  return out;
}

std::string render(const DiagnosticSink& sink, const SourceManager& sources) {
  constexpr size_t most = 20;
  std::string out;
  size_t seen[3] = {}, more = 0;
  for (const Diagnostic& d : sink.diagnostics()) {
    if (++seen[static_cast<int>(d.severity)] > most)
      ++more;
    else
      out += render(d, sources);
  }
  const size_t errors = seen[static_cast<int>(Severity::error)], warnings = seen[static_cast<int>(Severity::warning)];
  if (more) out += fmt::format("and {} more\n", more);
  if (errors + warnings > 1) {
    auto count = [](size_t n, const char* what) { return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s"); };
    if (errors && warnings)
      out += fmt::format("{}, {} generated\n", count(errors, "error"), count(warnings, "warning"));
    else
      out += fmt::format("{} generated\n", errors ? count(errors, "error") : count(warnings, "warning"));
  }
  return out;
}

std::string_view did_you_mean(std::string_view word, const std::vector<std::string_view>& candidates) {
  size_t best = std::max<size_t>(1, word.size() / 3) + 1;
  std::string_view found;
  for (std::string_view c : candidates) {
    if (c.size() > word.size() + best || word.size() > c.size() + best) continue;
    // Optimal string alignment, three rolling rows (Damerau 1964).
    std::vector<size_t> before(c.size() + 1), previous(c.size() + 1), row(c.size() + 1);
    for (size_t j = 0; j <= c.size(); ++j) previous[j] = j;
    for (size_t i = 1; i <= word.size(); ++i) {
      row[0] = i;
      for (size_t j = 1; j <= c.size(); ++j) {
        row[j] = std::min({previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (word[i - 1] != c[j - 1])});
        if (i > 1 && j > 1 && word[i - 1] == c[j - 2] && word[i - 2] == c[j - 1])
          row[j] = std::min(row[j], before[j - 2] + 1);
      }
      before.swap(previous);
      previous.swap(row);
    }
    if (previous[c.size()] < best && previous[c.size()] < word.size()) {  // something must be left of the word
      best = previous[c.size()];
      found = c;
    }
  }
  return found;
}

std::string alternatives(std::string_view word, const std::vector<std::string_view>& candidates,
                         std::string_view listed) {
  if (std::string_view near = did_you_mean(word, candidates); !near.empty())
    return fmt::format("; did you mean `{}`?", near);
  constexpr size_t most = 8;
  std::string list;
  for (size_t i = 0; i < std::min(candidates.size(), most); ++i)
    list += fmt::format("{} `{}`", i ? "," : fmt::format("; {}", listed), candidates[i]);
  return candidates.size() > most ? fmt::format("{} and {} more", list, candidates.size() - most) : list;
}

}  // namespace rndn
