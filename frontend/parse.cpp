// The actions of the grammar: builds the program while parser.y recognises it, words the syntax errors, and helps the parser out
// of them.
//
// Invariants: a list under construction is what lies on its stack above its start, so nothing is copied twice; after an error the
// stacks may hold leftovers of what was abandoned, which only lists outside of the failed statement could see, and those begin
// below. A function enters the program when it is complete. The passes that follow recurse over statements, casts and types, so
// nesting is bounded here (most_nested). Cost: O(length of the text).
#include "frontend/parse.h"

#include <algorithm>

#include "frontend/habits.h"
#include "frontend/parser.hpp"

namespace rndn::hir {

namespace {

using token = Parser::token;
constexpr size_t most_errors = 20;
constexpr size_t most_bytes = size_t{1} << 30;  // offsets are 32 bits and the scanner's lengths are int

bool is_value_token(int kind) {
  switch (kind) {
    case token::INT:
    case token::FLOAT:
    case token::COMPLEX:
    case token::CHAR:
    case token::MONTH:
    case token::DATE:
    case token::MINUTE:
    case token::SECOND:
    case token::TIME:
    case token::DT: return true;
    default: return false;
  }
}

std::string_view suffix_for(int kind) {
  switch (kind) {
    case token::INT: return "i64";
    case token::FLOAT: return "f64";
    case token::COMPLEX: return "complex";
    case token::CHAR: return "char";
    case token::MONTH: return "month";
    case token::DATE: return "date";
    case token::MINUTE: return "minute";
    case token::SECOND: return "second";
    case token::TIME: return "time";
    default: return "dt";
  }
}

// What of `expected` (names of tokens as parser.y declares them) is worth telling: groups of tokens become the thing that they
// begin, and continuations that hardly anybody means are left out.
std::vector<std::string_view> summarise(std::vector<std::string_view> expected) {
  auto has = [&](std::string_view name) { return std::find(expected.begin(), expected.end(), name) != expected.end(); };
  auto drop = [&](std::initializer_list<std::string_view> names) {
    std::erase_if(expected,
                  [&](std::string_view e) { return std::find(names.begin(), names.end(), e) != names.end(); });
  };
  auto drop_operand = [&] {
    drop({"`check_cast`", "`@`", "a name", "`(`", "an integer", "a float", "a complex number", "a char", "a string",
          "a symbol", "a month", "a date", "a minute", "a second", "a time", "a timestamp", "`+`", "`-`"});
  };
  std::string_view what;
  if (has("`if`") && has("`while`")) {
    what = "a statement";
    drop({"`if`", "`while`", "`repeat`", "`var`", "`return`", "`break`", "`continue`"});
    if (!has("`:`")) drop({"`{`"});
    drop_operand();
  } else if (has("`check_cast`") && has("`@`") && has("a name")) {
    what = "an expression";
    drop_operand();
  } else if (has("`@`") && has("a name") && has("an integer")) {
    what = "an operand";
    drop_operand();
  } else if (has("a name") && has("`?`")) {
    what = "a type";
    drop({"a name", "`?`"});
  } else if (has("an integer") && has("a string")) {
    what = "a value";
    drop_operand();
  } else if (has("an integer") && has("a float")) {
    what = "a number";
    drop_operand();
  }
  if (!what.empty()) expected.insert(expected.begin(), what);
  for (std::string_view rare : {"`<`", "`.`", "`@`", "a symbol", "`...`"})
    if (expected.size() > 1) drop({rare});
  return expected;
}

std::string either(const std::vector<std::string_view>& names) {
  std::string out;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) out += i + 1 == names.size() ? " or " : ", ";
    out += names[i];
  }
  return out;
}

}  // namespace

ParseContext::ParseContext(FileId file, std::string_view text, Program& program, DiagnosticSink& sink)
    : file_(file), text_(text), program_(program), sink_(sink) {}

DiagnosticSink::Builder ParseContext::error(std::string_view kind, Location at, std::string message) {
  if (sink_.error_count() + 1 == most_errors && !stopped_) {
    stopped_ = true;
    return sink_.report(Severity::error, kind, span(at), std::move(message))
        .note(span(at), "this is error number {}: the rest of the file was not read", most_errors);
  }
  return sink_.report(Severity::error, kind, span(at), std::move(message));
}

// --- Scanner ------------------------------------------------------------------------------------------------------------------

void ParseContext::unterminated(Location at, std::string_view what, std::string_view quote) {
  quiet_ = true;
  error("unterminated", at, fmt::format("unterminated {}: expected {} before the end of the line", what, quote));
}

void ParseContext::unterminated_comment(Location at) {
  error("unterminated", at, "unterminated comment: expected `*/` before the end of the file");
  offset = static_cast<uint32_t>(text_.size());
  stopped_ = true;
}

void ParseContext::illegal_characters(Location at) {
  const bool again = illegal_end_ == at.begin;  // the second of `||`
  illegal_end_ = at.end;
  if (stopped_ || (quiet_ && again)) return;
  quiet_ = true;
  unsigned char first = static_cast<unsigned char>(text_[at.begin]);
  if (std::string known = habit(habit_at(token_, token_kind_, at, 0)); !known.empty())
    error("unexpected-character", at, std::move(known));
  else if (first > 32 && first < 127)
    error("unexpected-character", at, fmt::format("`{}` has no meaning in HorseIR", static_cast<char>(first)));
  else
    error("unexpected-character", at,
          fmt::format("byte 0x{:02x} has no meaning in HorseIR outside of strings, symbols and comments", first));
}

int ParseContext::scan_token(SemanticValue* value, Location* location) {
  int kind = stopped_ ? 0 : scan(value, location, scanner_);
  if (stopped_) {  // also when the token itself brought the last error
    kind = 0;
    *location = {offset, offset};
  }
  if (kind == token::IF || kind == token::WHILE || kind == token::REPEAT) condition_ = kind;
  if (kind == ')' || kind == ';' || kind == '{') condition_ = 0;
  if (kind == '{') open_braces_.push_back(*location);
  if (kind == '}' && !open_braces_.empty()) open_braces_.pop_back();
  return kind;
}

int ParseContext::next_token(SemanticValue* value, Location* location) {
  if (statement_begins_) {
    statement_begins_ = false;
    const uint32_t from = offset;
    if (const uint32_t to = simple_statements(); to > from) hir::skip(to - from, scanner_);
    statement_begins_ = false;
  }
  int kind = 0;
  if (skip_header_) {  // up to its closing parenthesis; semicolons in it end no statement
    skip_header_ = false;
    for (size_t depth = 1; depth > 0;) {
      kind = scan_token(value, location);
      if (kind == 0 || kind == '{') break;
      depth += kind == '(';
      depth -= kind == ')';
    }
    skip_block_ = kind == '{';
  }
  bool skip = skip_block_;
  if (!skip) {
    kind = scan_token(value, location);
    skip = recovering_ && kind == '{';
  }
  if (skip) {  // the block that belongs to a statement in error: one `;` in the parser's eyes
    skip_block_ = false;
    for (size_t depth = 1; depth > 0;) {
      kind = scan_token(value, location);
      if (kind == 0) break;
      depth += kind == '{';
      depth -= kind == '}';
    }
    if (kind != 0) kind = ';';
  }
  if (kind == ';' || kind == '}') quiet_ = false;
  last_kind_ = token_kind_;
  last_ = token_;
  token_kind_ = kind;
  token_ = *location;
  return kind;
}

// --- Syntax errors ------------------------------------------------------------------------------------------------------------

Habit ParseContext::habit_at(Location last, int last_kind, Location at, int kind) const {
  return {.text = text_,
          .last = last,
          .at = at,
          .last_is_name = last_kind == token::ID,
          .last_is_value = is_value_token(last_kind) || last_kind == token::STRING,
          .at_is_name = kind == token::ID,
          .condition = condition_ == token::IF       ? "if"
                       : condition_ == token::WHILE  ? "while"
                       : condition_ == token::REPEAT ? "repeat"
                                                     : ""};
}

void ParseContext::syntax_error(Location at, const std::vector<std::string_view>& expected) {
  recovering_ = true;
  skip_block_ = token_kind_ == '{';
  if (stopped_ || quiet_) return;  // the end of the file is made up; the scanner has told what is wrong here
  bool at_end = token_kind_ == 0;
  bool label = (token_kind_ == '>' && last_kind_ == token::ID) ||
               (token_kind_ == token::ID && last_kind_ == token::BREAK) ||
               (token_kind_ == token::ID && last_kind_ == token::ID && text(last_) == "goto");
  if (label) {
    Location both{last_.begin, at.end};
    error("label", both,
          "labels and `goto` are not supported: expected `if`, `while`, `repeat`, `break` or `continue`");
    return;
  }
  if (std::string known = habit(habit_at(last_, last_kind_, at, token_kind_)); !known.empty()) {
    skip_header_ = token_kind_ == '(' && has_foreign_header(text(last_));
    error("syntax", at, std::move(known));
    return;
  }
  auto wanted = summarise(expected);
  if (wanted.size() == 1 && wanted[0] == "`:`" && is_value_token(last_kind_)) {
    if (std::string sum = last_kind_ == token::COMPLEX ? sum_for_complex(text(last_)) : ""; !sum.empty()) {
      error("untyped-literal", last_, std::move(sum));
      return;
    }
    auto report = error("untyped-literal", last_,
                        fmt::format("the literal `{}` has no type: expected a suffix such as `:{}`",
                                    text(last_).substr(0, 40), suffix_for(last_kind_)));
    if (last_kind_ == token::CHAR) report.note(span(last_), "text stands in double quotes: `\"abc\":str`");
    return;
  }
  std::string got = at_end ? std::string("the end of the file") : fmt::format("`{}`", text(at).substr(0, 40));
  // A thing missing at the end of a line is shown there, not at the next line's first token.
  bool next_line =
      text_.substr(last_.end, at.begin - std::min(at.begin, last_.end)).find('\n') != std::string_view::npos;
  bool closes = std::find(expected.begin(), expected.end(), "`;`") != expected.end();
  Location place = (at_end || (next_line && closes)) && last_.end > 0 ? Location{last_.end, last_.end} : at;
  auto report = error("syntax", place, fmt::format("expected {}, got {}", either(wanted), got));
  auto expects = [&](std::string_view name) {
    return std::find(expected.begin(), expected.end(), name) != expected.end();
  };
  bool operand_ended = expects("`:`") && (expects("`)`") || expects("`;`"));
  if ((token_kind_ == '(' && last_kind_ == token::ID && operand_ended) || token_kind_ == token::CHECK_CAST)
    report.note(span(at), "operands are variables and literals: assign this call to a variable first");
  if (at_end && !open_braces_.empty()) report.note(span(open_braces_.back()), "this `{{` is not closed");
}

void ParseContext::internal_error(Location at, std::string_view message) {
  if (!stopped_) error("syntax", at, std::string(message));
}

// --- Modules and functions ----------------------------------------------------------------------------------------------------

void ParseContext::begin_module(NameId name, Location at) {
  module_ = program_.modules.add({.name = name, .imports = {}, .functions = {}, .globals = {}, .span = span(at)});
}

void ParseContext::enter_anonymous_module() {
  if (is_none(anonymous_)) anonymous_ = program_.modules.add({});
  module_ = anonymous_;
}

uint32_t ParseContext::push_name(NameId name) {
  names_.push_back(name);
  return static_cast<uint32_t>(names_.size() - 1);
}

void ParseContext::import(NameId module, bool wildcard, uint32_t names, Location at) {
  Import import{module, wildcard, {}, span(at)};
  if (!wildcard) {
    import.names.assign(names_.begin() + names, names_.end());
    names_.resize(names);
  }
  program_.modules[module_].imports.push_back(std::move(import));
}

void ParseContext::global(NameId name, Location name_at, TypeId type, const SemanticValue& value, Location value_at) {
  GlobalId id = program_.globals.add({name, module_, type, make_operand(value, value_at), span(name_at)});
  program_.modules[module_].globals.push_back(id);
}

void ParseContext::begin_function(bool is_kernel, NameId name, Location at) {
  function_ = {};
  function_.name = name;
  function_.module = module_;
  function_.is_kernel = is_kernel;
  function_.name_span = span(at);
  constexpr size_t many = 64;  // few functions have more statements
  function_.variables.raw().reserve(many);
  function_.statements.raw().reserve(many);
  function_.expressions.raw().reserve(2 * many);
  statement_depth_.clear();
  expression_depth_.clear();
  too_deep_reported_ = false;
}

void ParseContext::parameter(NameId name, Location at, TypeId type) {
  function_.parameters.push_back(function_.variables.add({name, type, true, span(at)}));
}

void ParseContext::results(uint32_t types) {
  function_.result_types.assign(types_.begin() + types, types_.end());
  types_.resize(types);
}

void ParseContext::end_function(uint32_t body, Location at) {
  function_.body = static_cast<BlockId>(body);
  function_.span = span(at);
  program_.modules[module_].functions.push_back(program_.functions.add(std::move(function_)));
}

// --- Statements ---------------------------------------------------------------------------------------------------------------

// Of the body of an `if` or loop: braces around it are no level of their own.
uint32_t ParseContext::body_depth(StatementId body) const {
  if (is_none(body)) return 0;
  return statement_depth_[index(body)] - (function_.statements[body].kind == Statement::block);
}

uint32_t ParseContext::add(Statement statement, uint32_t depth) {
  if (depth > most_nested) {
    if (!too_deep_reported_)
      sink_.error("too-deep", statement.span, "statements are nested deeper than {} levels", most_nested);
    too_deep_reported_ = true;
    depth = most_nested;
  }
  statement_depth_.push_back(static_cast<uint16_t>(depth));
  return index(function_.statements.add(std::move(statement)));
}

BlockId ParseContext::block(uint32_t statements, Location at) {
  Block block{{statements_.begin() + statements, statements_.end()}, span(at)};
  statements_.resize(statements);
  return function_.blocks.add(std::move(block));
}

BlockId ParseContext::block_of(StatementId id) {
  const Statement& statement = function_.statements[id];
  if (statement.kind == Statement::block) return statement.body;
  Span at = statement.span;
  return function_.blocks.add({{id}, at});
}

uint32_t ParseContext::assign(uint32_t targets, ExpressionId value, Location at) {
  Statement s{.kind = Statement::assign, .span = span(at), .value = value};
  s.targets.assign(targets_.begin() + targets, targets_.end());
  targets_.resize(targets);
  return add(std::move(s), 1);
}

uint32_t ParseContext::expression_statement(ExpressionId value, Location at) {
  return add({.kind = Statement::expression, .span = span(at), .value = value}, 1);
}

uint32_t ParseContext::declare(uint32_t targets, TypeId type, Location at) {
  Statement s{.kind = Statement::declare, .span = span(at)};
  s.targets.assign(targets_.begin() + targets, targets_.end());
  targets_.resize(targets);
  for (Target& t : s.targets) t.declares = true, t.declared_type = type;
  return add(std::move(s), 1);
}

uint32_t ParseContext::declare_assign(uint32_t targets, TypeId type, ExpressionId value, Location at) {
  for (size_t i = targets; i < targets_.size(); ++i) targets_[i].declares = true, targets_[i].declared_type = type;
  if (targets_.size() - targets > 1)
    sink_.error("syntax", targets_[targets + 1].span, "expected `=` after a single name, got {} names before it",
                targets_.size() - targets);
  return assign(targets, value, at);
}

uint32_t ParseContext::if_else(const SemanticValue& condition, Location condition_at, StatementId then,
                               StatementId otherwise, Location at) {
  Statement s{.kind = Statement::if_else, .span = span(at)};
  s.condition = make_operand(condition, condition_at);
  s.body = block_of(then);
  if (!is_none(otherwise)) s.otherwise = block_of(otherwise);
  return add(std::move(s), 1 + std::max(body_depth(then), body_depth(otherwise)));
}

uint32_t ParseContext::loop(Statement::Kind kind, const SemanticValue& condition, Location condition_at,
                            StatementId body, Location at) {
  Statement s{.kind = kind, .span = span(at)};
  s.condition = make_operand(condition, condition_at);
  s.body = block_of(body);
  return add(std::move(s), 1 + body_depth(body));
}

uint32_t ParseContext::return_(uint32_t operands, Location at) {
  Statement s{.kind = Statement::return_, .span = span(at)};
  s.results.assign(operands_.begin() + operands, operands_.end());
  operands_.resize(operands);
  return add(std::move(s), 1);
}

uint32_t ParseContext::simple(Statement::Kind kind, Location at) { return add({.kind = kind, .span = span(at)}, 1); }

uint32_t ParseContext::block_statement(BlockId block, Location at) {
  uint32_t depth = 0;
  for (StatementId s : function_.blocks[block].statements)
    depth = std::max<uint32_t>(depth, statement_depth_[index(s)]);
  return add({.kind = Statement::block, .span = span(at), .body = block}, depth + 1);
}

uint32_t ParseContext::failed_statement(Location at) {
  types_.clear();
  targets_.clear();
  operands_.clear();
  references_.clear();
  values_.clear();
  return block_statement(function_.blocks.add({{}, span(at)}), at);
}

uint32_t ParseContext::push_target(const SemanticValue& name, Location at, bool declares, TypeId type) {
  Target t;
  t.module = name.module;
  t.name = name.name;
  t.declares = declares;
  t.declared_type = type;
  t.span = span(at);
  targets_.push_back(t);
  return static_cast<uint32_t>(targets_.size() - 1);
}

// --- Expressions --------------------------------------------------------------------------------------------------------------

uint32_t ParseContext::add(Expression expression, uint32_t depth) {
  if (depth > most_nested) {
    if (!too_deep_reported_)
      sink_.error("too-deep", expression.span, "`check_cast` is nested deeper than {} levels", most_nested);
    too_deep_reported_ = true;
    depth = most_nested;
  }
  expression_depth_.push_back(static_cast<uint16_t>(depth));
  return index(function_.expressions.add(std::move(expression)));
}

Operand ParseContext::make_operand(const SemanticValue& value, Location at) const {
  Operand o;
  if (value.is_literal) {
    o.kind = Operand::literal;
    o.id = value.id;
  } else {
    o.module = value.module;
    o.name = value.name;
  }
  o.span = span(at);
  return o;
}

FunctionRef ParseContext::make_reference(const SemanticValue& name, Location at) const {
  FunctionRef f;
  f.module = name.module;
  f.name = name.name;
  f.span = span(at);
  return f;
}

uint32_t ParseContext::cast(ExpressionId inner, TypeId type, Location at) {
  Expression e{
      .kind = Expression::cast, .span = span(at), .operands = {}, .callee = {}, .inner = inner, .cast_type = type};
  return add(std::move(e), 1u + expression_depth_[index(inner)]);
}

uint32_t ParseContext::call(const SemanticValue& callee, Location callee_at, uint32_t operands, Location at) {
  Expression e{.kind = Expression::call, .span = span(at), .operands = {}, .callee = make_reference(callee, callee_at)};
  e.operands.assign(operands_.begin() + operands, operands_.end());
  operands_.resize(operands);
  return add(std::move(e), 1);
}

uint32_t ParseContext::operand_expression(const SemanticValue& operand, Location at) {
  Expression e{.kind = Expression::operand, .span = span(at), .operands = {make_operand(operand, at)}, .callee = {}};
  return add(std::move(e), 1);
}

// `@f@g` as an argument is the two arguments `@f, @g`.
void ParseContext::push_operand(const SemanticValue& operand, Location at) {
  if (operand.is_literal) {
    auto* functions =
        std::get_if<std::vector<FunctionRef>>(&program_.literals[static_cast<LiteralId>(operand.id)].values);
    if (functions && functions->size() > 1) {
      std::vector<FunctionRef> all = std::move(*functions);
      functions->assign(1, all[0]);
      for (const FunctionRef& f : all) {
        LiteralId id = static_cast<LiteralId>(operand.id);
        if (&f != &all[0])
          id = program_.literals.add({program_.types->function(), std::vector<FunctionRef>{f}, f.span});
        program_.literals[id].span = f.span;
        Operand o;
        o.kind = Operand::literal;
        o.id = index(id);
        o.span = f.span;
        operands_.push_back(o);
      }
      return;
    }
  }
  operands_.push_back(make_operand(operand, at));
}

uint32_t ParseContext::push_reference(const SemanticValue& name, Location at) {
  references_.push_back(make_reference(name, at));
  return static_cast<uint32_t>(references_.size() - 1);
}

SemanticValue ParseContext::function_literal(uint32_t references, Location at) {
  std::vector<FunctionRef> functions(references_.begin() + references, references_.end());
  references_.resize(references);
  LiteralId id = program_.literals.add({program_.types->function(), std::move(functions), span(at)});
  return {.id = index(id), .is_literal = true};
}

void ParseContext::check_function_suffix(NameId word, Location at) {
  types_.clear();  // of the ignored `<...>`
  if (program_.text(word) != "func")
    error("literal-type", at,
          fmt::format("expected `func` as the type of a function literal, got `{}`", program_.text(word)));
}

// --- Types --------------------------------------------------------------------------------------------------------------------

uint32_t ParseContext::push_type(TypeId type) {
  types_.push_back(type);
  return static_cast<uint32_t>(types_.size() - 1);
}

TypeId ParseContext::type(NameId name, Location name_at, uint32_t arguments, Location at) {
  TypeTable& types = *program_.types;
  std::vector<TypeId> parts;
  if (arguments != UINT32_MAX) {
    parts.assign(types_.begin() + arguments, types_.end());
    types_.resize(arguments);
  }
  std::string_view word = program_.text(name);
  size_t errors_before = sink_.error_count();
  TypeId made = types.wildcard();
  BasicType basic;
  auto plain = [&] {
    if (!parts.empty())
      error("type-arguments", at, fmt::format("expected no component types after `{}`, got {}", word, parts.size()));
  };
  if (parse_basic_type(word, basic)) {
    plain();
    made = types.basic(basic);
  } else if (word == "table") {
    plain();
    made = types.table();
  } else if (word == "ktable") {
    plain();
    made = types.ktable();
  } else if (word == "list") {
    const bool alike = std::all_of(parts.begin(), parts.end(), [&](TypeId t) { return t == parts[0]; });
    made = parts.empty() ? types.list(types.wildcard()) : alike ? types.list(parts[0]) : types.tuple(parts);
  } else if (word == "dict") {
    if (parts.empty()) parts = {types.wildcard(), types.wildcard()};
    if (parts.size() == 2)
      made = types.dict(parts[0], parts[1]);
    else
      error("type-arguments", at, fmt::format("expected `dict<key, value>`, got {} component types", parts.size()));
  } else if (word == "enum") {
    if (parts.empty()) parts = {types.wildcard()};
    Type key = types[parts[0]];
    bool basic_key =
        key.kind == TypeKind::wildcard || key.kind == TypeKind::basic ||
        (key.kind == TypeKind::list && (types.is_basic(key.components[0]) || types.is_wildcard(key.components[0])));
    if (!basic_key)
      error("type-arguments", at,
            fmt::format("expected a basic type or a list of one as the key of `enum`, got {}", types.text(parts[0])));
    else if (parts.size() > 2)
      error("type-arguments", at, fmt::format("expected `enum<key>`, got {} component types", parts.size()));
    else
      made = types.enumeration(parts[0]);
  } else if (word == "func") {
    error("literal-type", name_at,
          "the type `func` belongs to function literals such as `@plus:func`; expected the type of a value");
  } else {
    static const std::vector<std::string_view> words = {
        "bool", "char", "i8",    "i16",    "i32",    "i64",  "f32",  "f64",  "complex", "sym",   "str",
        "date", "dt",   "month", "minute", "second", "time", "list", "dict", "enum",    "table", "ktable"};
    std::string_view near = foreign_type(word);
    if (near.empty()) near = did_you_mean(word, words);
    error("unknown-type", name_at,
          near.empty() ? fmt::format("expected a type, got `{}`", word)
                       : fmt::format("expected a type, got `{}`; did you mean `{}`?", word, near));
  }
  if (sink_.error_count() > errors_before) type_failed_ = true;
  if (types.too_large(made)) {
    error("too-deep", at, "this type is nested too deeply or too long: expected at most 32 levels and 20000 parts");
    type_failed_ = true;
    return types.wildcard();
  }
  return made;
}

// ------------------------------------------------------------------------------------------------------------------------------

void parse(FileId file, std::string_view text, Program& program, DiagnosticSink& sink) {
  if (text.size() > most_bytes) {
    sink.error("too-large", {file, 0, 0}, "expected a program of at most {} bytes, got {}", most_bytes, text.size());
    return;
  }
  // A zero byte ends the scanner's buffer: it looks back to the start of the token each time, which is quadratic in a long run.
  std::string without_zeros;
  if (size_t zero = text.find('\0'); zero != std::string_view::npos) {
    uint32_t at = static_cast<uint32_t>(zero);
    sink.error("zero-byte", {file, at, at + 1}, "expected text, got a zero byte ({} in the file)",
               std::count(text.begin(), text.end(), '\0'));
    without_zeros.assign(text);
    std::replace(without_zeros.begin(), without_zeros.end(), '\0', ' ');
    text = without_zeros;
  }
  ParseContext context(file, text, program, sink);
  std::string buffer;
  buffer.reserve(text.size() + 2);
  buffer = text;
  void* scanner = open_scanner(&context, buffer);
  context.set_scanner(scanner);
  Parser(context).parse();
  close_scanner(scanner);
}

}  // namespace rndn::hir
