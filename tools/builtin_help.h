// The entries of docs/horseir.md: what `rndn help` prints, and what the tests of that page read.
//
//   std::vector<HelpFamily> families = parse_builtin_help(language_reference());
//   families[0].title;               // "arithmetic"
//   families[0].entries[0].summary;  // "The magnitude of every element."
//
// A family is a section `## Builtins: TITLE`. An entry in it is `### NAME` up to the next heading:
// a first paragraph with the signature in backquotes and the facts behind it, a second one that
// begins with a sentence for lists of builtins, and more. Where a family is told as one list, an
// entry is an item "- `NAME(..)`: text" up to the next item. Cost: one pass over the text.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace rndn::tools {

struct HelpEntry {
  std::string_view name;       // "abs", "GPU.top_lib"
  std::string_view signature;  // "abs(x: real) -> type of x"
  std::string_view facts;      // "Shape: as x. Cost: one pass. Runs: device."; empty for an item
  std::string summary;         // one sentence on one line
  std::string_view text;       // all of it below the heading; of an item all but the dash
  bool is_item = false;
  size_t line = 0;  // of the heading or item, from 1
};
struct HelpFamily {
  std::string_view title;
  std::vector<HelpEntry> entries;
};

// Views into `markdown`, which must outlive the result.
std::vector<HelpFamily> parse_builtin_help(std::string_view markdown);

// The page itself, which the build puts into the binary.
std::string_view language_reference();

}  // namespace rndn::tools
