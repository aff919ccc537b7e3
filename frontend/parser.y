// The grammar of HorseIR (docs/horseir.md, "Grammar"), all dialects in one. Actions only call
// ParseContext (parse.h), which builds the program. Lists are collected on stacks of the context;
// the value of a list is where it begins on its stack.
//
// Errors recover at the end of a statement, of a block, or at the next member of a module; tables are exact (canonical LR, default
// reductions only where there is no other action) so that the tokens said to be expected are the right ones.

%skeleton "lalr1.cc"
%require "3.8"
%language "c++"
%locations
%define lr.type canonical-lr
%define lr.default-reduction consistent
%define parse.error custom
%define api.namespace {rndn::hir}
%define api.parser.class {Parser}
%define api.value.type {rndn::hir::SemanticValue}
%define api.location.type {rndn::hir::Location}
%param {rndn::hir::ParseContext& builder}
%expect 0

%code requires {
#include "frontend/parse.h"
}

%code {
namespace {
inline int yylex(rndn::hir::SemanticValue* value, rndn::hir::Location* location, rndn::hir::ParseContext& builder) {
  return builder.next_token(value, location);
}
}  // namespace
}

%token END 0 "the end of the file"
%token MODULE "`module`" IMPORT "`import`" GLOBAL "`global`" DEF "`def`" KERNEL "`kernel`" CHECK_CAST "`check_cast`"
%token IF "`if`" ELSE "`else`" WHILE "`while`" REPEAT "`repeat`" VAR "`var`" RETURN "`return`" BREAK "`break`"
%token CONTINUE "`continue`" ID "a name" ELLIPSIS "`...`"
%token INT "an integer" FLOAT "a float" COMPLEX "a complex number" CHAR "a char" STRING "a string" SYMBOL "a symbol"
%token MONTH "a month" DATE "a date" MINUTE "a minute" SECOND "a second" TIME "a time" DT "a timestamp"
%token '(' "`(`" ')' "`)`" '{' "`{`" '}' "`}`" '[' "`[`" ']' "`]`" '<' "`<`" '>' "`>`" '=' "`=`" ':' "`:`" ';' "`;`"
%token ',' "`,`" '.' "`.`" '*' "`*`" '@' "`@`" '?' "`?`" '+' "`+`" '-' "`-`" '/' "`/`" '&' "`&`"

%precedence THEN
%precedence ELSE

%%

program: items;
items: %empty
     | items module
     | items { builder.enter_anonymous_module(); } function
     | items error { builder.recovered(); }
     ;

module: MODULE ID { builder.begin_module($2.name, @2); } '{' contents module_end;
module_end: '}'
          | error '}' { builder.recovered(); yyerrok; }
          ;
contents: %empty
        | contents content
        ;
content: import
       | global
       | function
       | error ';' { builder.recovered(); yyerrok; }
       ;

import: IMPORT ID '.' '*' ';' { builder.import($2.name, true, 0, @$); }
      | IMPORT ID '.' ID ';' { builder.import($2.name, false, builder.push_name($4.name), @$); }
      | IMPORT ID '.' '{' names '}' ';' { builder.import($2.name, false, $5.id, @$); }
      ;
names: ID { $$.id = builder.push_name($1.name); }
     | names ',' ID { $$ = $1; builder.push_name($3.name); }
     ;
global: GLOBAL ID ':' type '=' operand ';' { builder.global($2.name, @2, $4.type(), $6, @6); };

function: definer ID { builder.begin_function($1.id, $2.name, @2); } '(' parameters ')' results body { builder.end_function($8.id, @$); };
definer: DEF { $$.id = 0; }
       | KERNEL { $$.id = 1; }
       ;
parameters: %empty
          | parameter_list
          ;
parameter_list: parameter
              | parameter_list ',' parameter
              ;
parameter: ID ':' type { builder.parameter($1.name, @1, $3.type()); };
results: %empty
       | ':' types { builder.results($2.id); }
       ;
body: statement { $$.id = index(builder.block_of($1.statement())); };

block: '{' block_start statements block_end { $$.id = index(builder.block($2.id, @$)); };
block_start: %empty { $$.id = builder.mark_statements(yyla.empty()); };
block_end: '}'
         | error '}' { builder.recovered(); yyerrok; }
         ;
statements: %empty
          | statements statement { builder.push_statement($2.statement(), yyla.empty()); }
          ;

statement: targets '=' expression ';' { $$.id = builder.assign($1.id, $3.expression(), @$); }
         | expression ';' { $$.id = builder.expression_statement($1.expression(), @$); }
         | VAR variables ':' type ';' { $$.id = builder.declare($2.id, $4.type(), @$); }
         | VAR variables ':' type '=' expression ';' { $$.id = builder.declare_assign($2.id, $4.type(), $6.expression(), @$); }
         | IF '(' operand ')' statement %prec THEN { $$.id = builder.if_else($3, @3, $5.statement(), none<StatementId>(), @$); }
         | IF '(' operand ')' statement ELSE statement { $$.id = builder.if_else($3, @3, $5.statement(), $7.statement(), @$); }
         | WHILE '(' operand ')' statement { $$.id = builder.loop(Statement::while_loop, $3, @3, $5.statement(), @$); }
         | REPEAT '(' operand ')' statement { $$.id = builder.loop(Statement::repeat, $3, @3, $5.statement(), @$); }
         | RETURN ';' { $$.id = builder.return_(builder.mark_operands(), @$); }
         | RETURN operands ';' { $$.id = builder.return_($2.id, @$); }
         | BREAK ';' { $$.id = builder.simple(Statement::break_, @$); }
         | CONTINUE ';' { $$.id = builder.simple(Statement::continue_, @$); }
         | block { $$.id = builder.block_statement($1.block(), @$); }
         | error ';' { $$.id = builder.failed_statement(@$); builder.recovered(); yyerrok; }
         ;
variables: ID { $$.id = builder.push_target({.name = $1.name}, @1, false, {}); }
         | variables ',' ID { $$ = $1; builder.push_target({.name = $3.name}, @3, false, {}); }
         ;
targets: target { $$.id = $1.id; }
       | targets ',' target { $$.id = $1.id; }
       ;
target: ID ':' type { $$.id = builder.push_target({.name = $1.name}, @1, true, $3.type()); }
      | name { $$.id = builder.push_target($1, @1, false, {}); }
      ;
name: ID { $$ = {.name = $1.name}; }
    | ID '.' ID { $$ = {.module = $1.name, .name = $3.name}; }
    ;

expression: CHECK_CAST '(' expression ',' type ')' { $$.id = builder.cast($3.expression(), $5.type(), @$); }
          | reference '(' ')' { $$.id = builder.call($1, @1, builder.mark_operands(), @$); }
          | reference '(' operands ')' { $$.id = builder.call($1, @1, $3.id, @$); }
          | operand { $$.id = builder.operand_expression($1, @1); }
          ;
operands: operand { $$.id = builder.mark_operands(); builder.push_operand($1, @1); }
        | operands ',' operand { $$ = $1; builder.push_operand($3, @3); }
        ;
operand: name
       | vector
       | functions { $$ = builder.function_literal($1.id, @$); }
       | functions ':' ID function_arguments { builder.check_function_suffix($3.name, @3); $$ = builder.function_literal($1.id, @$); }
       ;
functions: reference { $$.id = builder.push_reference($1, @1); }
         | functions reference { $$ = $1; builder.push_reference($2, @2); }
         ;
reference: '@' ID { $$ = {.name = $2.name}; }
         | '@' ID '.' ID { $$ = {.module = $2.name, .name = $4.name}; }
         ;
function_arguments: %empty
                  | '<' function_parts '>'
                  ;
function_parts: %empty
              | function_parts function_part
              ;
function_part: ELLIPSIS | ':' | ',' | type;

vector: simple ':' type { $$ = builder.literal($1.id, $3.type(), @3, @$); }
      | symbols ':' type { $$ = builder.literal($1.id, $3.type(), @3, @$); }
      | symbols { $$ = builder.untyped_literal($1.id, @$); }
      | STRING { $$ = builder.untyped_literal(builder.push_value(Parser::token::STRING, @1, 0), @$); }
      | '(' values ')' ':' type { $$ = builder.literal($2.id, $5.type(), @5, @$); }
      | '(' values ')' { $$ = builder.untyped_literal($2.id, @$); }
      ;
symbols: SYMBOL { $$.id = builder.push_value(Parser::token::SYMBOL, @1, 0); }
       | symbols SYMBOL { $$ = $1; builder.push_value(Parser::token::SYMBOL, @2, 0); }
       ;
values: value { $$ = $1; }
      | values ',' value { $$ = $1; }
      ;
value: simple
     | SYMBOL { $$.id = builder.push_value(Parser::token::SYMBOL, @1, 0); }
     ;
simple: number { $$.id = builder.push_value($1.id, @1, 0); }
      | '-' number { $$.id = builder.push_value($2.id, @2, '-'); }
      | '+' number { $$.id = builder.push_value($2.id, @2, '+'); }
      | CHAR { $$.id = builder.push_value(Parser::token::CHAR, @1, 0); }
      | STRING { $$.id = builder.push_value(Parser::token::STRING, @1, 0); }
      | MONTH { $$.id = builder.push_value(Parser::token::MONTH, @1, 0); }
      | DATE { $$.id = builder.push_value(Parser::token::DATE, @1, 0); }
      | MINUTE { $$.id = builder.push_value(Parser::token::MINUTE, @1, 0); }
      | SECOND { $$.id = builder.push_value(Parser::token::SECOND, @1, 0); }
      | TIME { $$.id = builder.push_value(Parser::token::TIME, @1, 0); }
      | DT { $$.id = builder.push_value(Parser::token::DT, @1, 0); }
      ;
number: INT { $$.id = Parser::token::INT; }
      | FLOAT { $$.id = Parser::token::FLOAT; }
      | COMPLEX { $$.id = Parser::token::COMPLEX; }
      ;

type: '?' { $$.id = index(builder.wildcard()); }
    | ID { $$.id = index(builder.type($1.name, @1, UINT32_MAX, @$)); }
    | ID '<' types '>' { $$.id = index(builder.type($1.name, @1, $3.id, @$)); }
    ;
types: type { $$.id = builder.push_type($1.type()); }
     | types ',' type { $$ = $1; builder.push_type($3.type()); }
     ;

%%

// The texts are made in parse.cpp; here only what bison knows is handed over.
void rndn::hir::Parser::report_syntax_error(const context& state) const {
  constexpr int most = YYNTOKENS;
  symbol_kind_type expected[most];
  int n = state.expected_tokens(expected, most);
  std::vector<std::string_view> names;
  for (int i = 0; i < n; ++i) names.push_back(symbol_name(expected[i]));
  builder.syntax_error(state.location(), names);
}

void rndn::hir::Parser::error(const Location& location, const std::string& message) { builder.internal_error(location, message); }
