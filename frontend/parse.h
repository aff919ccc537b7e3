// What the grammar's actions build with (private to the frontend): parser.y says what is recognised, ParseContext what is made
// of it. One object per parse; the scanner and the parser hold nothing else.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "frontend/frontend.h"
#include "frontend/ir.h"

namespace rndn::hir {

// Byte offsets [begin, end) of a symbol of the grammar.
struct Location {
  uint32_t begin = 0;
  uint32_t end = 0;
};

// The value of a token or nonterminal; which members mean something depends on the symbol.
struct SemanticValue {
  uint32_t id = 0;                 // a typed id, the start of a list on its stack, or an operand's literal
  NameId module = none<NameId>();  // operands and references, `M.x`
  NameId name = none<NameId>();    // names
  bool is_literal = false;         // operands: `id` is a LiteralId
  TypeId type() const { return static_cast<TypeId>(id); }
  StatementId statement() const { return static_cast<StatementId>(id); }
  ExpressionId expression() const { return static_cast<ExpressionId>(id); }
  BlockId block() const { return static_cast<BlockId>(id); }
};

// A value token of a literal: its kind (a token number), place, and the sign if a blank stands behind it.
struct ValueToken {
  int kind = 0;
  Location location;
  char sign = 0;
};

struct Habit;  // habits.h

class ParseContext {
 public:
  ParseContext(FileId file, std::string_view text, Program& program, DiagnosticSink& sink);

  // Scanner.
  uint32_t offset = 0;
  NameId intern(std::string_view text) { return program_.names->intern(text); }
  void unterminated(Location at, std::string_view what, std::string_view quote);
  void unterminated_comment(Location at);
  void illegal_characters(Location at);

  // Parser.
  int next_token(SemanticValue* value, Location* location);
  void syntax_error(Location at, const std::vector<std::string_view>& expected);
  void internal_error(Location at, std::string_view message);
  void recovered() { recovering_ = false; }
  void set_scanner(void* scanner) { scanner_ = scanner; }
  // Makes the simple statements from `offset` on (statements.cpp); returns the offset behind the last of them.
  uint32_t simple_statements();

  // Modules and functions.
  void begin_module(NameId name, Location at);
  void enter_anonymous_module();
  uint32_t push_name(NameId name);
  void import(NameId module, bool wildcard, uint32_t names, Location at);
  void global(NameId name, Location name_at, TypeId type, const SemanticValue& value, Location value_at);
  void begin_function(bool is_kernel, NameId name, Location at);
  void parameter(NameId name, Location at, TypeId type);
  void results(uint32_t types);
  void end_function(uint32_t body, Location at);

  // Statements. `next_unread`: the parser has not read a token beyond what is reduced, as it has after an `if`.
  uint32_t mark_statements(bool next_unread) {
    statement_begins_ = next_unread;
    return static_cast<uint32_t>(statements_.size());
  }
  uint32_t mark_operands() const { return static_cast<uint32_t>(operands_.size()); }
  void push_statement(StatementId statement, bool next_unread) {
    statements_.push_back(statement);
    statement_begins_ = next_unread;
  }
  BlockId block(uint32_t statements, Location at);
  BlockId block_of(StatementId statement);  // its block, or a new one around it
  uint32_t assign(uint32_t targets, ExpressionId value, Location at);
  uint32_t expression_statement(ExpressionId value, Location at);
  uint32_t declare(uint32_t targets, TypeId type, Location at);
  uint32_t declare_assign(uint32_t targets, TypeId type, ExpressionId value, Location at);
  uint32_t if_else(const SemanticValue& condition, Location condition_at, StatementId then, StatementId otherwise,
                   Location at);
  uint32_t loop(Statement::Kind kind, const SemanticValue& condition, Location condition_at, StatementId body,
                Location at);
  uint32_t return_(uint32_t operands, Location at);
  uint32_t simple(Statement::Kind kind, Location at);
  uint32_t block_statement(BlockId block, Location at);
  uint32_t failed_statement(Location at);
  uint32_t push_target(const SemanticValue& name, Location at, bool declares, TypeId type);

  // Expressions.
  uint32_t cast(ExpressionId inner, TypeId type, Location at);
  uint32_t call(const SemanticValue& callee, Location callee_at, uint32_t operands, Location at);
  uint32_t operand_expression(const SemanticValue& operand, Location at);
  void push_operand(const SemanticValue& operand, Location at);
  uint32_t push_reference(const SemanticValue& name, Location at);
  SemanticValue function_literal(uint32_t references, Location at);
  void check_function_suffix(NameId word, Location at);

  // Literals (literals.cpp).
  uint32_t push_value(int kind, Location at, char sign);
  SemanticValue literal(uint32_t values, TypeId type, Location type_at, Location at);
  SemanticValue untyped_literal(uint32_t values, Location at);

  // Types.
  TypeId wildcard() const { return program_.types->wildcard(); }
  TypeId type(NameId name, Location name_at, uint32_t arguments, Location at);
  uint32_t push_type(TypeId type);

 private:
  Span span(Location at) const { return {file_, at.begin, at.end}; }
  std::string_view text(Location at) const { return text_.substr(at.begin, at.end - at.begin); }
  DiagnosticSink::Builder error(std::string_view kind, Location at, std::string message);
  int scan_token(SemanticValue* value, Location* location);
  Operand make_operand(const SemanticValue& value, Location at) const;
  FunctionRef make_reference(const SemanticValue& name, Location at) const;
  uint32_t add(Statement statement, uint32_t depth);
  uint32_t add(Expression expression, uint32_t depth);
  uint32_t body_depth(StatementId body) const;
  bool literal_values(std::span<const ValueToken> tokens, BasicType type, Location type_at, Location at, Literal& out);
  std::string unescape(Location at);
  Habit habit_at(Location last, int last_kind, Location at, int kind) const;

  FileId file_;
  std::string_view text_;
  Program& program_;
  DiagnosticSink& sink_;
  void* scanner_ = nullptr;

  bool statement_begins_ = false;  // with the next token, and no other statement is open

  // Error recovery.
  bool recovering_ = false;   // between a syntax error and the end of the statement: braces are skipped in pairs
  bool skip_block_ = false;   // the token in error was the `{` of a block
  bool skip_header_ = false;  // the token in error was the `(` of a header of another language
  bool quiet_ = false;        // a malformed token was reported: what follows in its statement is not
  bool type_failed_ = false;  // a type was reported and reads as `?` since
  bool stopped_ = false;      // too many errors: the rest of the text is not read
  Location last_;             // the token before the one in error
  int last_kind_ = 0;
  Location token_;  // the last token handed to the parser
  int token_kind_ = 0;
  std::vector<Location> open_braces_;
  int condition_ = 0;          // the keyword whose condition is open; 0: none
  uint32_t illegal_end_ = 0;   // behind the last characters without meaning

  // The module and function being built.
  ModuleId module_ = none<ModuleId>();
  ModuleId anonymous_ = none<ModuleId>();
  Function function_;
  std::vector<uint16_t> statement_depth_, expression_depth_;  // nesting below each; later passes recurse
  bool too_deep_reported_ = false;

  // Lists under construction; a list is what lies above its start.
  std::vector<NameId> names_;
  std::vector<TypeId> types_;
  std::vector<StatementId> statements_;
  std::vector<Target> targets_;
  std::vector<Operand> operands_;
  std::vector<FunctionRef> references_;
  std::vector<ValueToken> values_;
};

void skip(uint32_t bytes, void* scanner);                           // lexer.l: these were read by hand
int scan(SemanticValue* value, Location* location, void* scanner);  // the next token (lexer.l)
void* open_scanner(ParseContext* context, std::string& buffer);     // writes to the buffer, which outlives the scanner
void close_scanner(void* scanner);

// Parses the whole file into `program`. Errors go to the sink.
void parse(FileId file, std::string_view text, Program& program, DiagnosticSink& sink);

}  // namespace rndn::hir
