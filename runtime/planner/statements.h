// A SQL text cut into statements, and what can be said of one without a planner.
//
// Only what tells where a statement ends is known here: quotes ('..' and ".." with the quote
// doubled, E'..' with backslashes, $tag$..$tag$), comments (-- to the end of the line, /* */
// nested) and the semicolon. One pass over the text. Everything else about SQL is the planner's.
#pragma once
#include <cstddef>
#include <string_view>
#include <vector>

namespace rndn::planner {

struct Statement {
  size_t begin = 0,
         end = 0;  // from its first word to its last; comments around it and the semicolon left out
  bool ended = false;  // by a semicolon
};

// The statements in their order; what is empty or comments only is none.
std::vector<Statement> split_statements(std::string_view text);

// Whether the text ends within a quote or a comment, so that a line typed next belongs to it.
bool is_open(std::string_view text);

// Whether the same text means the same tomorrow: it names nothing that depends on the clock, on
// chance, or on the connection (current_date, now(), random(), ...). A column of such a name
// counts, too.
bool is_repeatable(std::string_view statement);

// Names of functions that make a text not repeatable, in lower case, ascending.
const std::vector<std::string_view>& unrepeatable_names();

}  // namespace rndn::planner
