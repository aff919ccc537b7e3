// A SQL text cut into statements, and what can be said of one without a planner.
//
// Only what tells where a statement ends is known here: quotes ('..' and ".." with the quote
// doubled, E'..' with backslashes, $tag$..$tag$), comments (-- to the end of the line, /* */
// nested) and the semicolon. One pass over the text. Everything else about SQL is the planner's.
#pragma once
#include <cstddef>
#include <map>
#include <span>
#include <string>
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

// Calls of functions that read files, such as `read_csv('x.csv', header = false)`, by the names of
// tables that stand for them: the path, or, where there is more than one argument, all of them.
struct FileCall {
  std::string function, arguments;
  bool is_path;  // the only argument is one
};
using FileCalls = std::map<std::string, FileCall, std::less<>>;
// The statement with such names in place of the calls, as long as it was: places stay what they are.
std::string name_file_calls(std::string_view statement, std::span<const std::string_view> functions,
                            FileCalls& calls);

}  // namespace rndn::planner
