/* The grammar of PTX. Instructions have one rule: a mnemonic and operands; which ones are right is in opcodes.def. Actions only hand
   over to the Reader. Errors recover at the next semicolon. Simple statements and parameters do not come here: statements.cpp. */
%skeleton "lalr1.cc"
%require "3.8"
%define api.namespace {rndn::ptx::grammar}
%define api.parser.class {Grammar}
%define api.value.type {rndn::ptx::Token}
%define api.location.type {rndn::ptx::Range}
%define parse.error detailed
%locations
%param {rndn::ptx::Reader& r}
%expect 4  /* a directive or pragma behind a function without a body belongs to it (.entry, .func) */

%code requires {
#include "ptx/reader.h"
}
%code {
int rndn_ptx_token(rndn::ptx::Token* value, rndn::ptx::Range* range, rndn::ptx::Reader& reader, void* scanner);

namespace rndn::ptx {
void skip_simple(Reader& reader);  // lexer.l
}
namespace rndn::ptx::grammar {
static int yylex(Token* value, Range* range, Reader& r) {
  if (r.statement_begins || r.parameter_begins) skip_simple(r);
  const int token = rndn_ptx_token(value, range, r, r.scanner);
  if (token == Grammar::token::MNEMONIC || token == Grammar::token::IDENT)
    r.in_call |= value->text() == "call" || value->text().starts_with("call.");
  else if (token == ';' || token == ':' || token == '{')  // ':' and '{': a label or a function of that name
    r.in_call = false;
  // Not behind a label: the grammar looks one token further before it places it.
  r.in_initial = token == '=' || (r.in_initial && token != ';');
  r.statement_begins = token == ';' || ((token == '{' || token == '}') && !r.in_initial);
  if (token == '(' && r.in_parameters) r.in_header = false;  // of an attribute
  if (token == '(' || token == ')') r.in_parameters = r.in_header && token == '(';
  r.parameter_begins = r.in_parameters && (token == '(' || token == ',');
  return token;
}
void Grammar::error(const Range& at, const std::string& message) { r.syntax_error(at, message); }
}  // namespace rndn::ptx::grammar
#define STOP_IF_HOPELESS if (r.too_many_errors()) YYABORT
}

%token END 0 "end of file"
%token VERSION ".version" TARGET ".target" ADDRESS_SIZE ".address_size" ENTRY ".entry" FUNC ".func" PARAM ".param" REG ".reg"
%token CALLPROTOTYPE ".callprototype" BRANCHTARGETS ".branchtargets" CALLTARGETS ".calltargets"
%token LOC ".loc" SOURCE_FILE ".file"
%token ALIAS ".alias"
%token ALIGN ".align" PTR ".ptr" EXTERN ".extern" VISIBLE ".visible" PRAGMA ".pragma"
%token SPACE "state space" TYPE "type" DIRECTIVE "directive"
%token IDENT "name" MNEMONIC "instruction" CONSTANT "constant" STRING "string"
%token OR "||" AND "&&" EQUAL "==" DIFFERENT "!=" AT_MOST "<=" AT_LEAST ">=" LEFT "<<" RIGHT ">>"

/* Constant expressions, as in C. */
%precedence OPERAND
%right '?' ':'
%left "||"
%left "&&"
%left '|'
%left '^'
%left '&'
%left "==" "!="
%left '<' "<=" '>' ">="
%left "<<" ">>"
%left '+' '-'
%left '*' '/' '%'
%precedence ')'

%%

module: %empty | module item;

item:
    VERSION CONSTANT                       { r.version($2, @2); }
  | TARGET targets
  | ADDRESS_SIZE CONSTANT                  { r.address_size($2, @2); }
  | PRAGMA strings ';'                   { r.module_pragma(); }
  | ALIAS IDENT ',' IDENT ';'              { r.alias($2, $4, @2); }
  | source_file
  | location
  | DIRECTIVE                              { r.unsupported("directive", $1.text(), @1); YYERROR; }
  | linkage variable                       { r.clear_linkage(); }
  | linkage function                       { r.clear_linkage(); }
  | ';'
  | error ';'                              { r.abandon(); r.clear_linkage(); STOP_IF_HOPELESS; }
  | error '}'                              { r.abandon(); r.clear_linkage(); STOP_IF_HOPELESS; }
  ;

/* Line tables. Locations outside of functions place nothing. */
source_file:
    SOURCE_FILE CONSTANT STRING            { r.source_file($2, $3, Token(), Token(), @2); }
  | SOURCE_FILE CONSTANT STRING ',' CONSTANT ',' CONSTANT { r.source_file($2, $3, $5, $7, @2); }
  ;
location:
    LOC CONSTANT CONSTANT CONSTANT         { r.location($2, $3, $4, @$); }
  | LOC CONSTANT CONSTANT CONSTANT ',' IDENT offset ',' IDENT CONSTANT CONSTANT CONSTANT
                                           { r.inlined_location($2, $3, $4, $6, $7, $9, {$10, $11, $12}, @$); }
  ;

targets: target | targets ',' target;
target: IDENT                              { r.target($1, @1); };
strings: STRING { r.pragma($1); } | strings ',' STRING { r.pragma($3); };

linkage:
    %empty
  | linkage EXTERN                         { r.attributes.external = true; }
  | linkage VISIBLE                        { r.attributes.visible = true; }
  ;

/* .shared .align 8 .b8 a[16], b; */
variable: space attributes type attributes declarators ';' { r.clear_attributes(); };
space: SPACE                               { r.attributes.space = $1.space; };
type: TYPE                                 { if ($1.type == Type::none) r.unsupported("directive", $1.text(), @1); r.attributes.type = $1.type; };
attributes:
    %empty
  | attributes ALIGN CONSTANT              { r.align($3, @3); }
  | attributes DIRECTIVE                   { r.attribute($2, @2); }
  | attributes DIRECTIVE '(' DIRECTIVE ')' { r.attribute($2, $4, @2); }
  ;
declarators: declarator | declarators ',' declarator;
declarator:
    IDENT dimensions initial               { r.variable(r.attributes.space, r.attributes.type, $1, @1); r.clear_declarator(); }
  ;
dimensions:
    %empty
  | dimensions '[' ']'                     { r.attributes.unsized = true; }
  | dimensions '[' constant ']'            { r.dimension($3, @3); }
  ;
initial:
    %empty
  | '=' constant                           { r.attributes.initialised = true; r.attributes.initial.push_back($2); }
  | '=' address                            { r.attributes.initialised = true; }
  | '=' braces                             { r.attributes.initialised = r.attributes.braces = true; }
  ;
braces: '{' values '}' | '{' '}';
values: value | values ',' value;
value:
    constant                               { r.attributes.initial.push_back($1); }
  | address
  | braces
  ;
/* name+8, generic(name)+8, 0xFF00(name): a byte of the address */
address:
    offset                                 { r.initial_address($1, false, -1, @1); }
  | generic                                { r.initial_address($1, true, -1, @1); }
  | CONSTANT '(' offset ')'                { r.initial_address($3, false, r.address_byte($1, @1), @3); }
  | CONSTANT '(' generic ')'               { r.initial_address($3, true, r.address_byte($1, @1), @3); }
  ;
generic:
    IDENT '(' offset ')'                   { $$ = $3; if ($1.text() != "generic") r.unsupported("initial value", $1.text(), @1); }
  | generic '+' simple                     { $$ = r.offset($1, $3, false, @3); }
  | generic '-' simple                     { $$ = r.offset($1, $3, true, @3); }
  ;

function:
    ENTRY                                  { r.begin_function(true); }
    function_name parameters bounds function_end
  | FUNC                                   { r.begin_function(false); }
    function_attributes results function_name parameters bounds function_end
  ;
function_attributes: %empty | function_attributes DIRECTIVE { r.bound($2.text(), @2); };
function_name: IDENT                       { r.function_name($1, @1); };
results: %empty | '(' ')' | '(' parameter_list ')'   { r.results_end(); };
parameters: %empty | '(' ')' | '(' parameter_list ')';
parameter_list: parameter | parameter_list ',' parameter;
parameter:
    PARAM attributes type pointer IDENT dimensions { r.parameter(r.attributes.type, $5, @5); }
  | REG vector type IDENT                  { r.register_parameter(r.attributes.type, $4, @4); }
  /* .param .u64 .ptr .texref t */
  | PARAM attributes type PTR TYPE IDENT   { r.unsupported("directive", $5.text(), @5); r.parameter(r.attributes.type, $6, @6); }
  ;
/* .ptr and what follows it describe what the parameter points to. */
pointer: %empty | PTR pointees | ALIGN CONSTANT { r.align($2, @2); };
pointees: %empty | pointees SPACE | pointees ALIGN CONSTANT;

bounds: %empty | bounds bound;
bound:
    DIRECTIVE numbers                      { r.bound($1.text(), @1); }
  | PRAGMA strings ';'                   { r.function_pragma(); }
  ;
numbers: %empty | number_list;
number_list: number | number_list ',' number;
number: CONSTANT                           { r.numbers.push_back($1); };

function_end: body | %empty                { r.prototype(); };  /* without a semicolon, too: CUDA before 5 */
body: '{'                                  { r.begin_body(); }
      statements '}'                       { r.end_body(@4); };

statements: %empty | statements statement;
statement:
    instruction ';'                        { r.instruction(@1); }
  | IDENT ':'                              { r.label($1, @1); }
  | IDENT ':' CALLPROTOTYPE                { r.begin_prototype(); }
    results prototype_name parameters prototype_attributes ';' { r.end_prototype($1, @1); }
  | IDENT ':' BRANCHTARGETS                { r.begin_targets(); }
    target_labels ';'                      { r.end_targets($1, @1); }
  | IDENT ':' CALLTARGETS names ';'        { r.call_targets($1, $4, @1); }
  | REG vector type register_list ';'      { r.clear_attributes(); }
  | variable
  | parameter_space attributes type attributes declarators ';' { r.clear_attributes(); }
  | '{'                                    { r.push_scope(); }
    statements '}'                         { r.pop_scope(); }
  | PRAGMA strings ';'                   { r.block_pragma(); }
  | source_file
  | location
  | DIRECTIVE                              { r.unsupported("directive", $1.text(), @1); YYERROR; }
  | ';'
  | error ';'                              { r.abandon(); r.clear_declarator(); r.clear_attributes(); STOP_IF_HOPELESS; yyerrok; }
  ;
prototype_name: IDENT;
prototype_attributes: %empty | prototype_attributes DIRECTIVE | prototype_attributes CONSTANT;
target_labels: target_label | target_labels ',' target_label;
target_label: IDENT                        { r.target_label($1, @1); };
names: IDENT                               { $$ = $1; } | names ',' IDENT { $$ = $1; };  /* the first */
parameter_space: PARAM                     { r.attributes.space = Space::param; };
vector: %empty | DIRECTIVE                 { r.attribute($1, @1); };
register_list: register | register_list ',' register;
register:
    IDENT                                  { r.register_name(r.attributes.type, $1, @1); }
  | IDENT '<' CONSTANT '>'                 { r.register_range(r.attributes.type, $1, $3, @1); }
  ;

instruction: opcode operands | guard opcode operands;
guard:
    '@' IDENT                              { r.guard($2, false, @2); }
  | '@' '!' IDENT                          { r.guard($3, true, @3); }
  ;
opcode:
    IDENT                                  { r.opcode($1, @1); }
  | MNEMONIC                               { r.opcode($1, @1); }
  ;
operands: %empty | operand_list;
operand_list: item_of_list | operand_list ',' item_of_list | operand_list '|' item_of_list;
item_of_list:
    operand
  | '[' offset ']'                         { r.address_name($2, $2.value, @2); }
  | '[' constant ']'                       { r.address_constant($2, @2); }
  | '[' offset ',' coordinates ']'         { r.coordinates(@$); }
  | '{'                                    { r.begin_vector(); }
    elements '}'                           { r.end_vector(@$); }
  | '(' ')'                                { r.begin_group(0); r.end_group(); }
  | '(' group ')'                          { r.end_group(); }
  ;
/* of a texture, surface or tensor */
coordinates: coordinate | coordinates ',' coordinate;
coordinate:
    operand
  | '{'                                    { r.begin_vector(); }
    elements '}'                           { r.end_vector(@$); }
  ;
elements: operand | elements ',' operand;
group: operand                             { r.begin_group(1); } | group ',' operand;
operand:
    offset                                 { r.operand_name($1, false, $1.value, @1); }
  | '!' IDENT                              { r.operand_name($2, true, 0, @2); }
  | '-' IDENT                              { r.negative_operand($2, @$); }
  | constant %prec OPERAND                 { r.operand_constant($1, @1); }
  ;
/* name, name+4, name+-4 */
offset:
    IDENT
  | MNEMONIC  /* v.x */
  | offset '+' product                     { $$ = r.offset($1, $3, false, @3); }
  | offset '-' product                     { $$ = r.offset($1, $3, true, @3); }
  ;
constant:
    product
  | constant '+' constant                  { $$ = r.fold($1, "+", $3, @3); }
  | constant '-' constant                  { $$ = r.fold($1, "-", $3, @3); }
  | constant "<<" constant                 { $$ = r.fold($1, "<<", $3, @3); }
  | constant ">>" constant                 { $$ = r.fold($1, ">>", $3, @3); }
  | constant '<' constant                  { $$ = r.fold($1, "<", $3, @3); }
  | constant "<=" constant                 { $$ = r.fold($1, "<=", $3, @3); }
  | constant '>' constant                  { $$ = r.fold($1, ">", $3, @3); }
  | constant ">=" constant                 { $$ = r.fold($1, ">=", $3, @3); }
  | constant "==" constant                 { $$ = r.fold($1, "==", $3, @3); }
  | constant "!=" constant                 { $$ = r.fold($1, "!=", $3, @3); }
  | constant '&' constant                  { $$ = r.fold($1, "&", $3, @3); }
  | constant '^' constant                  { $$ = r.fold($1, "^", $3, @3); }
  | constant '|' constant                  { $$ = r.fold($1, "|", $3, @3); }
  | constant "&&" constant                 { $$ = r.fold($1, "&&", $3, @3); }
  | constant "||" constant                 { $$ = r.fold($1, "||", $3, @3); }
  | constant '?' constant ':' constant     { $$ = r.truth($1, @1) ? $3 : $5; }
  ;
product:
    simple
  | product '*' simple                     { $$ = r.fold($1, "*", $3, @3); }
  | product '/' simple                     { $$ = r.fold($1, "/", $3, @3); }
  | product '%' simple                     { $$ = r.fold($1, "%", $3, @3); }
  ;
simple:
    CONSTANT
  | '-' simple                             { $$ = Reader::negate($2); }
  | '+' simple                             { $$ = $2; }
  | '!' simple                             { $$ = r.invert($2, @2); }
  | '~' simple                             { $$ = r.fold($2, "^", {.value = -1, .is_unsigned = true}, @2); }
  | '(' constant ')'                       { $$ = $2; r.parentheses = @$; }
  | '(' TYPE ')' simple                    { $$ = r.cast($2.type, $4, @$); }
  ;

%%
