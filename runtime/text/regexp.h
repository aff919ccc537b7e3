// Regular expressions, compiled once per pattern and options. Private.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#if RNDN_RE2
#include <re2/re2.h>
#endif

namespace rndn::text {

bool has_regular_expressions();

class Patterns {
#if RNDN_RE2
 public:
  struct Pattern {
    std::unique_ptr<re2::RE2> expression;
    bool all = false;  // option g: replace every match
    bool keeps = false;  // `regexp_extract` gives the text itself where nothing matches: option k
  };
  // null: the expression or an option is not valid. They stay as long as this object, up to a
  // number.
  const Pattern* find(std::string_view pattern, std::string_view options);

 private:
  std::map<std::pair<std::string, std::string>, Pattern> known_;
#endif
};

}  // namespace rndn::text
