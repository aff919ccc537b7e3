// Diagnostics: what is wrong with an input, where, and what would be right. Values sent to a sink, rendered at the end.
//
//   sink.error("type-mismatch", span, "`lt` expects operands of one type, got {} and {}", a, b)
//       .note(declared, "`{}` is declared here", name);
//
// Wording: lower case, no full stop, names what was found and what was expected, quotes source as `x`.
// Every kind (the first argument) has at least one golden test.
#pragma once
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "libraries/base/errors/source.h"

namespace rndn {

enum class Severity : uint8_t { error, warning, note };

struct Diagnostic {
  Severity severity = Severity::error;
  std::string_view kind;  // stable name with static lifetime, such as "unknown-builtin"
  Span span;
  std::string message;
  std::vector<Span> highlights;  // further ranges of the same statement to underline with ~
  struct Note {
    Span span;
    std::string message;
  };
  std::vector<Note> notes;
};

class DiagnosticSink {
 public:
  // Lets the caller attach notes and highlights to the diagnostic just reported.
  class Builder {
   public:
    Builder(DiagnosticSink& sink, size_t at) : sink_(sink), at_(at) {}
    template <class... Args>
    Builder& note(Span span, fmt::format_string<Args...> format, Args&&... args) {
      sink_.diagnostics_[at_].notes.push_back({span, fmt::format(format, std::forward<Args>(args)...)});
      return *this;
    }
    Builder& highlight(Span span) {
      sink_.diagnostics_[at_].highlights.push_back(span);
      return *this;
    }

   private:
    DiagnosticSink& sink_;
    size_t at_;
  };

  template <class... Args>
  Builder error(std::string_view kind, Span span, fmt::format_string<Args...> format, Args&&... args) {
    return report(Severity::error, kind, span, fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  Builder warning(std::string_view kind, Span span, fmt::format_string<Args...> format, Args&&... args) {
    return report(Severity::warning, kind, span, fmt::format(format, std::forward<Args>(args)...));
  }
  Builder report(Severity severity, std::string_view kind, Span span, std::string message);

  bool has_errors() const { return errors_ > 0; }
  size_t error_count() const { return errors_; }
  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }
  void sort_by_position();  // stable; within one file by offset

 private:
  std::vector<Diagnostic> diagnostics_;
  size_t errors_ = 0;
};

// "q6.hir:9:17: error: ...", the source line, a caret line, then the notes in the same form.
std::string render(const Diagnostic& diagnostic, const SourceManager& sources);
// The first 20 errors and warnings, "and 3 more", and "2 errors, 1 warning generated" when there is more than one.
std::string render(const DiagnosticSink& sink, const SourceManager& sources);

// The candidate nearest to `word` by edit distance (insert, delete, replace, swap of neighbours), or empty when none is
// near enough to be a plausible misspelling (distance <= max(1, length / 3)).
std::string_view did_you_mean(std::string_view word, const std::vector<std::string_view>& candidates);
// What follows "there is no x": "; did you mean `y`?", "; <listed> `a`, `b`" (8 of them at most), or nothing when there
// are no candidates.
std::string alternatives(std::string_view word, const std::vector<std::string_view>& candidates,
                         std::string_view listed = "there are");

}  // namespace rndn
