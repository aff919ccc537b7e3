// What the grammar's actions do: symbol tables, scopes, and the making of instructions. parser.y only hands over what bison knows.
#pragma once
#include <array>
#include <initializer_list>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libraries/base/containers/arena.h"
#include "libraries/base/errors/diagnostic.h"
#include "ptx/ir.h"
#include "ptx/mnemonic.h"
#include "ptx/string_table.h"

namespace rndn::ptx {

// Bytes [begin, end) of the file. Bison's location type.
struct Range {
  uint32_t begin = 0, end = 0;
};

// A token's value.
struct Token {
  enum Constant : uint8_t { integer, single, real };  // real: f64 bits
  const char* begin = nullptr;                        // of its text, in the source
  int64_t value = 0;  // constants: the integer, or IEEE bits; names: the offset added to them
  uint32_t length = 0;
  Constant constant = integer;
  bool is_unsigned = false;      // an integer with a suffix U, or of 2^63 and more
  Type type = Type::none;        // TYPE
  Space space = Space::generic;  // SPACE
  std::string_view text() const { return {begin, length}; }
};
static_assert(sizeof(Token) == 24);  // bison copies tokens several times per rule

// Of a parameter, argument or result that PTX names as a register.
Instruction parameter_access(Opcode op, Type type);

class Reader {
 public:
  Reader(FileId file, std::string_view text, DiagnosticSink& sink) : file_(file), text_(text), sink_(sink) {
    scopes_.push_back({0, 0});
    mnemonics_.reserve(64);
    instructions_.reserve(text.size() / 32), operands_.reserve(text.size() / 16);  // about as many as there will be
  }
  Module take();  // at the end: looks for what is missing, orders functions, gives the module away

  // ---- module level
  void version(const Token& t, Range at);
  void target(const Token& t, Range at);
  void address_size(const Token& t, Range at);
  void alias(const Token& name, const Token& of, Range at);  // .alias name, of;
  void unsupported(std::string_view what, std::string_view name, Range at);

  // Attributes collected before a declaration is complete.
  struct Attributes {
    bool external = false, visible = false;
    Space space = Space::generic;
    Type type = Type::none;
    uint32_t align = 0;
    uint32_t vector = 1;   // .v2, .v4
    bool managed = false;  // .attribute(.managed)
    uint64_t count = 0;    // product of the dimensions; 0: none
    bool unsized = false;  // []
    bool initialised = false, braces = false;
    std::vector<Token> initial;
    struct Address {  // an element of `initial`, or one byte of an address
      size_t index;
      Token name;
      bool generic;
      int byte;  // -1: all of it
      Range at;
    };
    std::vector<Address> addresses;
  } attributes;
  void initial_address(const Token& name, bool generic, int byte, Range at);
  int address_byte(const Token& mask, Range at);  // 0xFF00 -> 1
  void align(const Token& t, Range at);
  void attribute(const Token& t, Range at);                      // .v2, .v4
  void attribute(const Token& t, const Token& value, Range at);  // .attribute(.managed)
  void dimension(const Token& t, Range at);
  void clear_declarator() {
    attributes.count = 0;
    attributes.unsized = attributes.initialised = attributes.braces = false;
    attributes.initial.clear();
    attributes.addresses.clear();
  }
  void clear_attributes() { attributes.align = 0, attributes.vector = 1, attributes.managed = false; }
  void clear_linkage() {
    attributes.external = attributes.visible = false;
    clear_attributes();
  }

  void variable(Space space, Type type, const Token& name, Range at);

  // ---- functions
  void begin_function(bool entry) {
    header_ = Function();
    header_.is_entry = entry;
    header_.visible = attributes.visible;
    header_.external = attributes.external;
    attributes.align = 0;
    pending_.clear();
    pending_names_.clear();
    result_names_.clear();
    in_header = true;
  }
  void parameter(Type type, const Token& name, Range at);
  void register_parameter(Type type, const Token& name, Range at);  // of a .func (rewrite.cpp)
  void results_end() {
    header_.results.swap(pending_);
    result_names_.swap(pending_names_);
    pending_.clear();
    pending_names_.clear();
  }
  void function_name(const Token& name, Range at) {
    header_.name = name.text();
    header_.line = line(at.begin);
    header_name_ = {name.text(), at};
  }
  void bound(std::string_view directive, Range at);
  // .pragma: each of its strings, then where it stands. One is heeded, "nounroll".
  void pragma(const Token& t) { nounroll_ |= t.text() == "\"nounroll\""; }
  void module_pragma() { module_nounroll_ |= std::exchange(nounroll_, false); }
  void function_pragma() { function_nounroll_ |= std::exchange(nounroll_, false); }
  void block_pragma();
  std::vector<Token> numbers;  // of the directive being read
  void prototype();
  void begin_body();
  void begin_prototype() {
    pending_.clear(), pending_names_.clear(), result_names_.clear();
    header_.results.clear();
    targets_.clear();
  }
  void end_prototype(const Token& name, Range at);
  void begin_targets() { targets_.clear(); }
  void target_label(const Token& name, Range at);
  void end_targets(const Token& name, Range at);
  void call_targets(const Token& name, const Token& first, Range at);
  void end_body(Range at);

  // ---- line tables (source_lines.cpp)
  void source_file(const Token& number, const Token& name, const Token& time, const Token& bytes, Range at);
  void location(const Token& file, const Token& line, const Token& column, Range at);
  void inlined_location(const Token& file, const Token& line, const Token& column, const Token& function_name,
                        const Token& label, const Token& inlined_at, const std::array<Token, 3>& caller, Range at);
  void section(Range text);  // of a .section, from its name to its closing brace

  // ---- bodies
  void push_scope();
  void pop_scope();
  void register_name(Type type, const Token& name, Range at);
  void register_range(Type type, const Token& name, const Token& count, Range at);
  void label(const Token& name, Range at);
  void guard(const Token& name, bool negated, Range at);
  void opcode(const Token& mnemonic, Range at);
  void operand_name(const Token& name, bool negated, int64_t offset, Range at);
  void negative_operand(const Token& name, Range at);
  void operand_constant(const Token& t, Range at);
  void address_name(const Token& name, int64_t offset, Range at);
  void address_constant(const Token& t, Range at);
  void coordinates(Range at);
  void begin_vector() {
    in_vector_ = true;
    vector_begin_ = static_cast<uint32_t>(vector_raw_.size());
  }
  void end_vector(Range at);
  void begin_group(uint32_t read) {  // so many of its operands have been read
    groups_.push_back({static_cast<uint32_t>(raw_.size()) - read, static_cast<uint32_t>(raw_.size())});
  }
  void end_group() { groups_.back().end = static_cast<uint32_t>(raw_.size()); }
  void instruction(Range at);
  // Reads simple statements of a body from the offset on by hand (statements.cpp); returns the offset behind the last of them.
  uint32_t statements(uint32_t from);
  // Likewise all but the last of a list of parameters.
  uint32_t parameters(uint32_t from);
  bool in_call = false;           // nvcc -G writes locations between the parts of a call; the one before it holds
  bool statement_begins = false;  // the last token was one that a statement follows
  bool in_initial = false;        // of a variable, with braces of its own
  bool in_header = false, in_parameters = false;  // of a function
  bool parameter_begins = false;                  // the last token was one that a parameter follows
  void abandon() {                                // forget the statement, at its end or after a syntax error
    raw_.clear();
    results_.clear();
    after_.clear();
    other_mode_ = 0;
    vector_raw_.clear();
    groups_.clear();
    in_vector_ = bad_ = guard_negated_ = false;
    guard_ = none<RegisterId>();
  }

  Token fold(const Token& a, std::string_view op, const Token& b, Range at);  // a + b, a == b, ..
  Token fold_real(const Token& a, std::string_view op, const Token& b, Range at);
  bool truth(const Token& a, Range at);
  Token cast(Type to, Token a, Range at);  // (.u64)a
  Range parentheses;                       // the last ones read
  Token offset(const Token& name, const Token& by, bool minus, Range at);
  static Token negate(Token a);
  Token invert(Token a, Range at);  // !a
  void syntax_error(Range at, const std::string& message) { error("syntax", at, "{}", message); }
  void bad_token(Range at);
  bool too_many_errors() const { return sink_.error_count() >= 50; }
  Span span(Range at) const { return {file_, at.begin, at.end}; }

  void* scanner = nullptr;  // flex's state
  std::string_view text() const { return text_; }
  const char* buffer = nullptr;  // flex's copy of the text: token offsets count from here
  uint32_t section_depth = 0, section_begin = 0;

 private:
  struct Alias {
    uint32_t name, of;  // functions
  };
  std::vector<Alias> aliases_;
  enum class Kind : uint8_t { reg, vector, label, variable, parameter, function, prototype, targets };
  struct Symbol {
    std::string_view name;
    Kind kind;
    uint32_t id;
    uint32_t shadows;  // symbol of the same name in an outer scope, or UINT32_MAX
    uint32_t depth;
    Range at;
  };
  struct RegisterRange {
    std::string_view prefix;
    uint64_t key;   // prefix_key(prefix)
    TypeSet types;  // of the registers: one
    uint32_t first, count, depth;
    uint32_t shadows;  // range before it whose prefix has the same slot, or UINT32_MAX
  };
  struct Scope {
    size_t symbols, ranges;  // how many there were when it was opened
  };
  struct RawOperand {
    Operand operand;
    bool literal = false;        // a constant whose bits depend on the type of its place
    bool parenthesised = false;  // (5), which may be a call's list
    Token::Constant constant = Token::integer;
    std::string_view selector = {};  // of a video instruction: b0
    bool negative = false;           // -%r, of vmad
    Range at;
  };

  template <class... Args>
  DiagnosticSink::Builder error(std::string_view kind, Range at, fmt::format_string<Args...> format, Args&&... args) {
    return sink_.error(kind, span(at), format, std::forward<Args>(args)...);
  }
  uint32_t depth() const { return static_cast<uint32_t>(scopes_.size()) - 1; }
  bool define(std::string_view name, Kind kind, uint32_t id, Range at);
  uint32_t find(std::string_view name) const;  // index of the innermost symbol, or UINT32_MAX
  // A prefix of up to seven bytes in one number; 1 of all others.
  static uint64_t prefix_key(std::string_view prefix) {
    uint64_t key = 0;
    for (char c : prefix) key = key << 8 | static_cast<unsigned char>(c);
    return prefix.size() < 8 ? key : 1;
  }
  static size_t prefix_slot(uint64_t key) { return key * 0x9E3779B97F4A7C15 >> 56; }
  // The ranges whose prefixes have the key's slot, innermost first.
  const RegisterRange* last_range(uint64_t key) const { return range_at(last_range_[prefix_slot(key)]); }
  const RegisterRange* outer_range(const RegisterRange& r) const { return range_at(r.shadows); }
  const RegisterRange* range_at(uint32_t k) const { return k == UINT32_MAX ? nullptr : &ranges_[k]; }
  const RegisterRange* find_range(std::string_view name, uint32_t& number) const;
  std::string unique(std::string_view name);
  void vector_register(Type type, std::string_view name, Range at);
  bool component(std::string_view name, Operand& out) const;
  uint32_t label_id(std::string_view name, Range at);
  static bool fit(int64_t& value, Token::Constant constant, Type type);
  bool literal(RawOperand& raw, Type type);
  bool lookup(std::string_view name, Operand& out) const;
  bool resolve(std::string_view name, Operand& out, Range at);
  bool call_instruction(Instruction& i);
  uint32_t add_mnemonic(std::string_view text);
  std::string expect(Mnemonic& m, uint32_t operand_count);
  bool drop_policy();
  uint32_t declare_function();
  bool count_registers(uint64_t n, Range at);
  bool has_registers(Type type, Range at);
  // rewrite.cpp
  struct Halves {
    Operand low, high;
  };
  Operand fresh_register(Type type);
  bool add_before(Instruction i, std::span<const Operand> operands);
  bool add_before(Instruction i, std::initializer_list<Operand> operands) {
    return add_before(i, std::span(operands.begin(), operands.size()));
  }
  bool rewrite(const Instruction& i);
  bool is_wide(const Operand& o) const;  // a register of 128 bits
  Halves halves(const Operand& o);
  bool rewrite_wide(const Instruction& i);
  bool rewrite_atomic(const Instruction& i, uint32_t elements);
  bool rewrite_call();
  bool rewrite_video(const Instruction& i);  // video.cpp
  bool negate_product(const Instruction& i);
  bool rewrite_vector_move(const Instruction& i);
  bool rewrite_operands(const Mnemonic& m);
  bool take_space_of_name(Instruction& i);
  bool pass(Opcode op, Type type, Operand at, std::span<const Operand> registers, bool is_predicate);
  void define_register_parameters();
  bool store_register_results();
  // statements.cpp; false: the grammar must look at it
  struct Cursor;
  bool simple_location(Cursor& s);
  bool simple_registers(Cursor& s);
  bool simple_statement(Cursor& s);
  bool simple_label(Cursor& s, std::string_view name);
  static uint32_t simple_count(Cursor s);
  bool simple_guard(Cursor& s, RegisterId& guard) const;
  bool simple_instruction(Cursor& s, const Mnemonic& m);
  bool simple_operands(Cursor& s, const Mnemonic& m, Operand* o, bool& plain);
  bool simple_operand(Cursor& s, const Mnemonic& m, uint32_t k, Operand& o, bool& plain);
  bool simple_value(Cursor& s, const PlainOperands::Place& place, Operand& o, bool& plain) const;
  bool simple_address(Cursor& s, const PlainOperands::Place& place, Operand& o, bool& plain) const;
  bool simple_target(Cursor& s, Operand& o);
  const RegisterRange* simple_register(const char*& p, uint32_t& id) const;
  void add_operand(const RawOperand& raw) { (in_vector_ ? vector_raw_ : raw_).push_back(raw); }
  uint32_t line(uint32_t offset);
  void merge_labels();
  void name_inlined_functions();
  void set_three(std::array<uint32_t, 3>& field, Range at);

  FileId file_;
  std::string_view text_;
  DiagnosticSink& sink_;
  Module module_;

  std::vector<Symbol> symbols_;
  StringTable names_;  // name -> index of the innermost symbol
  std::vector<RegisterRange> ranges_;
  std::array<uint32_t, 256> last_range_ = [] {  // by slot of the prefix
    std::array<uint32_t, 256> none;
    none.fill(UINT32_MAX);
    return none;
  }();
  std::vector<Scope> scopes_;

  struct NameAt {
    std::string_view name;
    Range at;
    bool in_register = false;   // a parameter or result in a register
    bool is_predicate = false;  // which is one; the parameter is a .u32
  };
  Function header_;  // of the function being declared
  NameAt header_name_;
  std::vector<Parameter> pending_;  // the parameter list being read
  std::vector<NameAt> pending_names_, result_names_;
  std::vector<LabelId> targets_;         // of the .branchtargets being read
  Function f_;                           // whose body is being read
  RawVector<Instruction> instructions_;  // memory for the next body
  RawVector<Operand> operands_, vector_elements_;
  uint32_t self_ = UINT32_MAX;           // its place in module_.functions
  std::vector<uint32_t> defined_order_;  // functions in the order of their bodies
  StringTable used_names_;               // names that print in this function, to rename those of inner scopes
  StringTable used_prefixes_;            // prefixes of the registers that print as ranges -> how many registers
  StringTable least_number_;             // prefix -> the least number of a name that prints alone: t_3
  StringTable renamed_prefixes_;         // prefix in the source -> number of its last renaming
  Arena arena_;                          // names made by renaming
  uint64_t registers_ = 0;               // of the module so far
  bool range_shadowed_ = false;          // a name of an inner scope hides a register of an outer range
  std::vector<uint32_t> label_alias_;  // label of an inner scope -> the outer label that it turned out to be, or itself
  bool nounroll_ = false, module_nounroll_ = false, function_nounroll_ = false;  // .pragma
  bool aliased_ = false;

  std::vector<Mnemonic> mnemonics_;
  StringTable mnemonic_index_;
  // Which names .loc gives is known at the end: the section that holds them comes last.
  struct InlinedName {
    uint32_t function, location;
    std::string_view label;
    int64_t offset;
    Range at;
  };
  std::vector<InlinedName> inlined_names_;
  std::string debug_strings_;  // contents of the section .debug_str
  struct DebugLabel {
    std::string_view name;
    size_t offset;  // into debug_strings_
  };
  std::vector<DebugLabel> debug_labels_;

  uint32_t current_ = 0;  // mnemonic of the statement being read
  Range opcode_at_;
  RegisterId guard_ = none<RegisterId>();
  bool guard_negated_ = false;
  bool bad_ = false;  // something in the statement was wrong and has been reported
  std::vector<RawOperand> raw_;
  std::vector<RawOperand> vector_raw_;  // elements of the statement's vectors
  struct Group {
    uint32_t begin, end;
  };
  std::vector<Group> groups_;  // parenthesised lists of a call, as ranges of raw_
  struct RegisterResult {
    std::vector<Operand> registers;  // of a vector several
    Operand from;                    // the .param variable that they come in
    bool is_predicate;
  };
  std::vector<RegisterResult> results_;  // of the call being read
  struct Following {
    Instruction instruction;
    std::vector<Operand> operands;
  };
  std::vector<Following> after_;  // the instruction being read: what makes its result that of the statement
  uint8_t other_mode_ = 0;        // and its mode in place of the mnemonic's
  struct VectorRegister {  // .reg .v2 .u32 v: one per component
    uint32_t first;
    uint8_t count;
  };
  std::vector<VectorRegister> vector_registers_;
  std::map<uint32_t, Halves> halves_;  // of the function's registers of 128 bits
  std::vector<std::vector<Operand>> register_results_;  // of the function: the registers of each, more than one of a vector
  std::set<std::pair<uint32_t, uint32_t>> predicates_;  // parameters and then results of functions that are such
  bool in_vector_ = false;
  uint32_t vector_begin_ = 0;
  uint32_t line_ = 1, line_at_ = 0;  // line number at offset line_at_
  bool has_version_ = false, has_target_ = false;
  uint32_t version_ = 0, target_ = 0;  // as written: what is rewritten may raise the module's
  size_t errors_before_ = sink_.error_count();
};

}  // namespace rndn::ptx
