// Symbol tables, scopes and the making of instructions for the parser.
//
// Names. Registers of a range (%r<100>) are found by splitting the name into prefix and number; ranges whose prefixes have the same hash
// are in one list, innermost first. All other names are in one table of symbols with scopes as a stack. The IR has no scopes: a name that an inner block declares again is renamed (t, t_1), so
// that it prints as a different register. A label that an inner block only mentions belongs to the block around it: it gets a label of
// its own at first, which is merged with the outer one when the block ends.
// Instructions. Operands are collected raw, since constants take their bits from the type of their place: `instruction` looks up the
// form for the mnemonic and operand count (remembered from the last time), writes the operands and checks them (verify.h).
// Cost: linear in the text, but for ranges times names of one block.
#include "ptx/reader.h"

#include "ptx/opcodes.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "ptx/parse.h"
#include "ptx/verify.h"

namespace rndn::ptx {
namespace {

// Registers of a module may be this many more than its text has bytes, so that a short text cannot ask for gigabytes.
constexpr uint32_t free_registers = 1u << 17;
constexpr uint64_t max_variable_bytes = 1ull << 30;

// "%r12" -> 12 and the length of "%r"; false when there is no number or it has a leading zero or is too large.
bool split_number(std::string_view name, size_t& prefix, uint32_t& number) {
  size_t p = name.size();
  uint32_t value = 0, scale = 1;
  for (; p > 0 && name[p - 1] >= '0' && name[p - 1] <= '9'; --p, scale *= 10)
    value += static_cast<uint32_t>(name[p - 1] - '0') * scale;
  const size_t digits = name.size() - p;
  if (digits == 0 || digits > 7 || (digits > 1 && name[p] == '0')) return false;
  number = value;
  prefix = p;
  return true;
}

}  // namespace

// ---- module level

// Bytes of an input that are no text are named, not repeated: messages go to terminals.
void Reader::bad_token(Range at) {
  std::string_view bytes = text_.substr(at.begin, at.end - at.begin);
  unsigned char first = static_cast<unsigned char>(bytes[0]);
  if (first > 32 && first < 127)
    error("syntax", at, "`{}` is no PTX", bytes.substr(0, 40));
  else if (bytes.size() == 1)
    error("syntax", at, "byte 0x{:02x} is no PTX", first);
  else
    error("syntax", at, "byte 0x{:02x} and the {} after it are no PTX", first, bytes.size() - 1);
}

void Reader::version(const Token& t, Range at) {
  has_version_ = true;
  uint32_t major = 0, minor = 0;
  const char* end = t.text().data() + t.text().size();
  auto [dot, e1] = std::from_chars(t.text().data(), end, major);
  auto [last, e2] =
      dot < end ? std::from_chars(dot + 1, end, minor) : std::from_chars_result{dot, std::errc::invalid_argument};
  const bool is_number = e1 != std::errc::invalid_argument && e2 != std::errc::invalid_argument && last == end;
  if (!is_number) {
    error("bad-directive", at, "expected a version such as 7.8, got `{}`", t.text());
    return;
  }
  // In the words of ptxas: programs that call it ask with a version that there never will be (XLA).
  if (e1 != std::errc() || e2 != std::errc() || minor > 9 || major > 24) {
    error("bad-directive", at, "Unsupported .version {}; current version is '{}.{}'", t.text(), current_version / 10,
          current_version % 10);
    return;
  }
  module_.version = version_ = 10 * major + minor;
}

void Reader::target(const Token& t, Range at) {
  has_target_ = true;
  if (t.text() == "debug" || t.text() == "texmode_unified" || t.text() == "texmode_independent" ||
      t.text() == "map_f64_to_f32")
    return;
  uint32_t number = 0;
  std::string_view digits = t.text().starts_with("sm_") ? t.text().substr(3) : std::string_view();
  if (digits.ends_with('a')) digits.remove_suffix(1);  // sm_90a: sm_90 plus what is unsupported here by name
  auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (digits.empty() || failure != std::errc() || end != digits.data() + digits.size() || number < 10 || number > 250) {
    error("unsupported", at, "unsupported target `{}`", t.text());
    return;
  }
  module_.target = target_ = number;
}

void Reader::address_size(const Token& t, Range at) {
  if (t.value != 64) error("unsupported", at, "unsupported address size `{}`, expected 64", t.text());
}

// The name is a function declared before without a body; take() puts the other in its places.
void Reader::alias(const Token& name, const Token& of, Range at) {
  Operand from, to;
  if (!resolve(name.text(), from, at) || !resolve(of.text(), to, at)) return;
  const auto is_function = [&](const Operand& o) {
    return o.kind == Operand::function && !module_.functions[o.id].is_entry;
  };
  if (!is_function(from) || !is_function(to))
    return void(error("bad-directive", at, "`{}` and `{}` are not both functions", name.text(), of.text()));
  const Function &f = module_.functions[from.id], &g = module_.functions[to.id];
  if (!f.external || g.external)
    return void(error("bad-directive", at, "expected a function without a body and one with it, got `{}` and `{}`",
                      name.text(), of.text()));
  if (f.parameters.size() != g.parameters.size() || f.results.size() != g.results.size())
    return void(error("bad-directive", at, "`{}` and `{}` are declared differently", name.text(), of.text()));
  aliases_.push_back({from.id, to.id});
}

void Reader::unsupported(std::string_view what, std::string_view name, Range at) {
  error("unsupported", at, "unsupported {} `{}`", what, name);
}

void Reader::align(const Token& t, Range at) {
  if (t.constant != Token::integer || t.value <= 0 || t.value > int64_t{1} << 31 || (t.value & (t.value - 1))) {
    error("bad-directive", at, "expected a power of two up to 2^31, got `{}`", t.text());
    return;
  }
  attributes.align = static_cast<uint32_t>(t.value);
}

void Reader::attribute(const Token& t, Range at) {
  if (t.text() == ".v2" || t.text() == ".v4")
    attributes.vector = t.text() == ".v2" ? 2 : 4;
  else
    unsupported("directive", t.text(), at);
}

void Reader::attribute(const Token& t, const Token& value, Range at) {
  if (t.text() == ".attribute" && value.text() == ".managed" && attributes.space == Space::global)
    attributes.managed = true;
  else
    unsupported("directive", fmt::format("{}({})", t.text(), value.text()), at);
}

void Reader::dimension(const Token& t, Range at) {
  if (t.constant != Token::integer || t.value <= 0 || static_cast<uint64_t>(t.value) > max_variable_bytes ||
      static_cast<uint64_t>(t.value) * std::max<uint64_t>(attributes.count, 1) > max_variable_bytes) {
    error("bad-directive", at, "expected a number of elements from 1 to {}, got `{}`", max_variable_bytes, t.text());
    return;
  }
  attributes.count = std::max<uint64_t>(attributes.count, 1) * static_cast<uint64_t>(t.value);
}

void Reader::variable(Space space, Type type, const Token& name, Range at) {
  if (type == Type::b128 && attributes.vector == 1 && !attributes.initialised && has_registers(type, at))
    type = Type::b64, attributes.vector = 2;
  uint32_t size = type_bytes(type);
  // A vector is its elements, aligned as a whole.
  const Attributes& a = attributes;
  if (a.vector > 1) {
    if (!a.unsized) attributes.count = std::max<uint64_t>(a.count, 1) * a.vector;
    if (a.align == 0) attributes.align = size * a.vector;
    if (size == 0 || size * a.vector > 16)
      error("bad-type", at, "a vector of {} .{} cannot be a variable", a.vector, type_name(type));
  }
  bool function_scope = self_ != UINT32_MAX;
  if (space == Space::local && a.external)  // the assembler's own top of the stack is one (inline_calls.cpp)
    error("bad-directive", at, "`{}` in .local cannot be .extern", name.text());
  Variable v{
      space, type, std::string(), a.align, a.count, a.external, a.visible, {}, function_scope ? self_ : UINT32_MAX, {}};
  if (type == Type::none) {  // said already
    size = 1;
  } else if (size == 0 || type == Type::b128) {
    error("bad-type", at, "a variable cannot be .{}", type_name(type));
    size = 1;
  }
  if (a.unsized) {
    if (a.count) {
      error("unsupported", at, "unsupported array `{}` with an open dimension among others", name.text());
    } else if (a.external) {
      v.count = UINT64_MAX;
    } else if (a.initialised) {
      v.count = a.initial.size();
    } else {
      error("bad-directive", at, "`{}` needs a size: only .extern arrays may go without", name.text());
    }
  } else if (a.count * size > max_variable_bytes) {
    error("unsupported", at, "unsupported array `{}` of {} bytes, at most {}", name.text(), a.count * size,
          max_variable_bytes);
    v.count = 1;
  }
  if (a.initialised) {
    if (space != Space::global && space != Space::constant)
      error("bad-directive", at, "`{}` in .{} cannot have an initial value", name.text(), ptx::name(space));
    uint64_t elements = std::max<uint64_t>(v.count == UINT64_MAX ? 0 : v.count, 1);
    if (a.initial.size() > elements || (!a.braces && v.count))
      error("bad-directive", at, "`{}` has {} elements, its initial value {}", name.text(), elements, a.initial.size());
    else
      v.initial.resize(a.initial.size() * size);
    for (size_t k = 0; k < a.addresses.size() && !v.initial.empty();) {
      const Attributes::Address& x = a.addresses[k];
      Operand o;
      if (!resolve(x.name.text(), o, x.at)) {
        bad_ = false;
        break;
      }
      const bool whole = x.byte < 0;
      size_t bytes = 1;
      while (!whole && bytes < 8 && k + bytes < a.addresses.size() &&
             a.addresses[k + bytes].byte == static_cast<int>(bytes) &&
             a.addresses[k + bytes].index == x.index + bytes && a.addresses[k + bytes].name.text() == x.name.text() &&
             a.addresses[k + bytes].name.value == x.name.value)
        ++bytes;
      const Space in = o.kind == Operand::variable ? module_.variables[o.variable_id()].space : Space::generic;
      if (o.kind != Operand::function && in != Space::global && (in != Space::constant || x.generic)) {
        error("unsupported", x.at, "unsupported address in an initial value: `{}` is no .global variable or function",
              x.name.text());
        break;
      }
      if (whole ? size != 8 : size != 1 || x.byte != 0 || bytes != 8) {
        error("unsupported", x.at, "unsupported address in an initial value: `{}` has 8 bytes", x.name.text());
        break;
      }
      v.addresses.push_back(
          {static_cast<uint32_t>(x.index * size), o.kind == Operand::function, x.generic, o.id, x.name.value});
      k += bytes;
    }
    for (size_t k = 0; k < a.initial.size() && !v.initial.empty(); ++k) {
      RawOperand raw{.operand = {.kind = Operand::immediate, .value = a.initial[k].value},
                     .literal = true,
                     .constant = a.initial[k].constant,
                     .at = at};
      if (!literal(raw, type)) break;
      std::memcpy(v.initial.data() + k * size, &raw.operand.value, size);
    }
  }
  uint32_t id = static_cast<uint32_t>(module_.variables.size());
  if (!define(name.text(), Kind::variable, id, at)) return;
  v.managed = a.managed;
  v.name = function_scope ? unique(name.text()) : std::string(name.text());
  module_.variables.add(std::move(v));
}

void Reader::initial_address(const Token& name, bool generic, int byte, Range at) {
  attributes.addresses.push_back({attributes.initial.size(), name, generic, byte, at});
  attributes.initial.push_back({});
}

int Reader::address_byte(const Token& mask, Range at) {
  for (int k = 0; k < 8; ++k)
    if (static_cast<uint64_t>(mask.value) == uint64_t{0xff} << (8 * k)) return k;
  error("bad-directive", at, "expected a mask of one byte such as 0xFF00, got `{}`", mask.text());
  return 0;
}

// ---- functions

void Reader::parameter(Type type, const Token& name, Range at) {
  if (type != Type::none && (type_bytes(type) == 0 || type == Type::b128))
    error("bad-type", at, "a parameter cannot be .{}", type_name(type));
  if (attributes.vector > 1) {
    attributes.count = std::max<uint64_t>(attributes.count, 1) * attributes.vector;
    if (attributes.align == 0) attributes.align = type_bytes(type) * attributes.vector;
  }
  if (attributes.unsized)
    error("unsupported", at, "unsupported function of any number of arguments: its parameter `{}` has no size",
          name.text());
  // All parameters of an entry fit 32 KiB - 4; a little slack for later targets.
  if (attributes.count * type_bytes(type) > 65536)
    error("unsupported", at, "unsupported parameter `{}` of more than 64 KiB", name.text());
  pending_.push_back({type, std::string(name.text()), attributes.align, static_cast<uint32_t>(attributes.count)});
  pending_names_.push_back({name.text(), at});
  clear_attributes();
  clear_declarator();
}

void Reader::set_three(std::array<uint32_t, 3>& field, Range at) {
  if (numbers.empty() || numbers.size() > 3) {
    error("bad-directive", at, "expected one to three numbers");
    return;
  }
  field = {1, 1, 1};
  for (size_t k = 0; k < numbers.size(); ++k) {
    if (numbers[k].constant != Token::integer || numbers[k].value < 1 || numbers[k].value > 65536)
      error("bad-directive", at, "expected a number from 1 to 65536, got `{}`", numbers[k].text());
    else
      field[k] = static_cast<uint32_t>(numbers[k].value);
  }
}

void Reader::bound(std::string_view directive, Range at) {
  std::array<uint32_t, 3> one{};
  if (directive == ".maxntid")
    set_three(header_.max_threads, at);
  else if (directive == ".reqntid")
    set_three(header_.required_threads, at);
  else if (directive == ".minnctapersm" || directive == ".maxnctapersm")
    set_three(one, at), header_.min_blocks = one[0];
  else if (directive == ".maxnreg")
    set_three(one, at), header_.max_registers = one[0];
  else if (directive != ".noreturn")
    unsupported("directive", directive, at);
  numbers.clear();
}

// The function's place in the module, made or found; its header is stored there.
uint32_t Reader::declare_function() {
  header_.parameters.swap(pending_);
  pending_.clear();
  uint32_t symbol = find(header_name_.name);
  if (symbol != UINT32_MAX && symbols_[symbol].kind == Kind::function) {
    uint32_t id = symbols_[symbol].id;
    const Function& known = module_.functions[id];
    if (known.is_entry != header_.is_entry || known.parameters.size() != header_.parameters.size() ||
        known.results.size() != header_.results.size())
      error("redefined", header_name_.at, "`{}` is declared differently before", header_name_.name)
          .note(span(symbols_[symbol].at), "here");
    return id;
  }
  uint32_t id = static_cast<uint32_t>(module_.functions.size());
  module_.functions.emplace_back();
  module_.functions.back().external = true;                        // until a body is seen
  for (uint32_t k = 0; k < pending_names_.size(); ++k)
    if (pending_names_[k].is_predicate) predicates_.insert({id, k});
  for (uint32_t k = 0; k < result_names_.size(); ++k)
    if (result_names_[k].is_predicate)
      predicates_.insert({id, static_cast<uint32_t>(header_.parameters.size()) + k});
  define(header_name_.name, Kind::function, id, header_name_.at);  // taken: reported, and read on for its own errors
  return id;
}

void Reader::prototype() {
  in_header = false;
  function_nounroll_ = false;
  if (header_.is_entry) error("bad-directive", header_name_.at, "the entry `{}` has no body", header_name_.name);
  uint32_t id = declare_function();
  Function& f = module_.functions[id];
  bool external = f.external;
  if (f.name.empty()) {
    f = std::move(header_);
    f.external = external;
  }
  clear_linkage();
}

void Reader::begin_body() {
  in_header = false;
  uint32_t id = declare_function();
  Function& place = module_.functions[id];
  if (!place.external) error("redefined", header_name_.at, "`{}` has a body already", header_name_.name);
  header_.external = false;
  place.name = header_.name;
  place.is_entry = header_.is_entry;
  place.parameters = header_.parameters;
  place.results = header_.results;
  place.external = false;
  f_ = std::move(header_);
  f_.instructions = std::move(instructions_), f_.instructions.clear();
  f_.operands = std::move(operands_), f_.operands.clear();
  f_.vector_elements = std::move(vector_elements_), f_.vector_elements.clear();
  self_ = id;
  defined_order_.push_back(id);
  for (StringTable* t : {&used_names_, &used_prefixes_, &renamed_prefixes_, &least_number_}) t->clear();
  label_alias_.clear();
  vector_registers_.clear();
  aliased_ = range_shadowed_ = false;
  push_scope();
  uint32_t n = static_cast<uint32_t>(f_.parameters.size());
  for (uint32_t k = 0; k < n && k < pending_names_.size(); ++k)
    if (!pending_names_[k].in_register) define(pending_names_[k].name, Kind::parameter, k, pending_names_[k].at);
  for (uint32_t k = 0; k < f_.results.size() && k < result_names_.size(); ++k)
    if (!result_names_[k].in_register) define(result_names_[k].name, Kind::parameter, n + k, result_names_[k].at);
  clear_linkage();
  clear_declarator();
  abandon();
  define_register_parameters();
}

void Reader::end_body(Range) {
  if (f_.instructions.empty() || f_.instructions.back().op != Opcode::ret) store_register_results();
  for (size_t k = scopes_.back().symbols; k < symbols_.size(); ++k) {
    const Symbol& s = symbols_[k];
    if (s.kind == Kind::label && f_.labels[static_cast<LabelId>(s.id)].at == UINT32_MAX)
      error("undefined", s.at, "the label `{}` is not defined in `{}`", s.name, f_.name);
  }
  pop_scope();
  if (aliased_) merge_labels();
  if (std::exchange(function_nounroll_, false) || module_nounroll_)
    for (Label& l : f_.labels) l.nounroll = true;
  // The function gets as much memory as it needs.
  instructions_ = std::move(f_.instructions), f_.instructions = instructions_;
  operands_ = std::move(f_.operands), f_.operands = operands_;
  vector_elements_ = std::move(f_.vector_elements), f_.vector_elements = vector_elements_;
  if (self_ < module_.functions.size()) module_.functions[self_] = std::move(f_);
  f_ = Function();
  self_ = UINT32_MAX;
}

Module Reader::take() {
  // After other errors they may be there, behind what could not be read.
  if (sink_.error_count() == errors_before_) {
    if (!has_version_) error("missing-directive", {0, 0}, "expected a `.version` directive, such as `.version 7.8`");
    if (!has_target_) error("missing-directive", {0, 0}, "expected a `.target` directive, such as `.target sm_80`");
  }
  name_inlined_functions();
  for (const Alias& a : aliases_) {
    const auto replace = [&](uint32_t& id) {
      if (id == a.name) id = a.of;
    };
    for (Function& f : module_.functions)
      for (Operand& o : f.operands)
        if (o.kind == Operand::function) replace(o.id);
    for (Variable& v : module_.variables)
      for (Variable::Address& x : v.addresses)
        if (x.function) replace(x.id);
  }
  // Functions without a body first, then the others in the order of their bodies: the order in which print() gives them.
  std::vector<uint32_t> place(module_.functions.size(), UINT32_MAX), order;
  for (uint32_t k = 0; k < module_.functions.size(); ++k)
    if (module_.functions[k].external) order.push_back(k);
  for (uint32_t k : defined_order_)
    if (!module_.functions[k].external && std::find(order.begin(), order.end(), k) == order.end()) order.push_back(k);
  bool moved = false;
  for (uint32_t k = 0; k < order.size(); ++k) {
    place[order[k]] = k;
    moved |= order[k] != k;
  }
  if (moved) {
    std::vector<Function> sorted;
    for (uint32_t k : order) sorted.push_back(std::move(module_.functions[k]));
    module_.functions = std::move(sorted);
    for (Variable& v : module_.variables) {
      if (v.function != UINT32_MAX) v.function = place[v.function];
      for (Variable::Address& a : v.addresses)
        if (a.function) a.id = place[a.id];
    }
    for (Function& f : module_.functions)
      for (Operand& o : f.operands)
        if (o.kind == Operand::function && o.id < place.size()) o.id = place[o.id];
  }
  return std::move(module_);
}

// ---- what brx.idx and calls through registers name

void Reader::end_prototype(const Token& name, Range at) {
  const uint32_t id = static_cast<uint32_t>(f_.prototypes.size());
  if (define(name.text(), Kind::prototype, id, at))
    f_.prototypes.push_back({unique(name.text()), std::move(header_.results), std::move(pending_)});
  pending_.clear();
  header_.results.clear();
}

void Reader::target_label(const Token& name, Range at) {
  const uint32_t id = label_id(name.text(), at);
  if (id != UINT32_MAX) targets_.push_back(static_cast<LabelId>(id));
}

void Reader::end_targets(const Token& name, Range at) {
  const uint32_t id = static_cast<uint32_t>(f_.targets.size());
  if (define(name.text(), Kind::targets, id, at)) f_.targets.push_back({unique(name.text()), std::move(targets_)});
  targets_.clear();
}

// All of them have the signature of the first; the call may go to any function that has it.
void Reader::call_targets(const Token& name, const Token& first, Range at) {
  Operand o;
  if (!resolve(first.text(), o, at)) return;
  if (o.kind != Operand::function)
    return void(error("bad-operand", at, "`{}` is no function that a call could go to", first.text()));
  const Function& g = module_.functions[o.id];
  const uint32_t id = static_cast<uint32_t>(f_.prototypes.size());
  if (define(name.text(), Kind::prototype, id, at))
    f_.prototypes.push_back({unique(name.text()), g.results, g.parameters});
}

// ---- scopes and names

void Reader::push_scope() { scopes_.push_back({symbols_.size(), ranges_.size()}); }

void Reader::pop_scope() {
  Scope scope = scopes_.back();
  std::vector<Symbol> unresolved;
  while (symbols_.size() > scope.symbols) {
    const Symbol& s = symbols_.back();
    if (depth() >= 2 && s.kind == Kind::label && f_.labels[static_cast<LabelId>(s.id)].at == UINT32_MAX)
      unresolved.push_back(s);
    names_[s.name] = s.shadows;
    symbols_.pop_back();
  }
  for (; ranges_.size() > scope.ranges; ranges_.pop_back())
    last_range_[prefix_slot(ranges_.back().key)] = ranges_.back().shadows;
  scopes_.pop_back();
  for (const Symbol& s : unresolved) {
    uint32_t outer = label_id(s.name, s.at);
    if (outer == UINT32_MAX) continue;
    label_alias_[s.id] = outer;
    aliased_ = true;
  }
}

uint32_t Reader::find(std::string_view name) const { return names_.get(name); }

bool Reader::define(std::string_view name, Kind kind, uint32_t id, Range at) {
  uint32_t number;
  if (const RegisterRange* r = find_range(name, number)) {
    if (r->depth == depth()) {
      error("redefined", at, "`{}` is a register already", name);
      return false;
    }
    range_shadowed_ = true;
  }
  uint32_t& slot = names_[name];
  if (slot != UINT32_MAX && symbols_[slot].depth == depth()) {
    error("redefined", at, "`{}` is defined twice", name).note(span(symbols_[slot].at), "first here");
    return false;
  }
  uint32_t shadows = slot;
  slot = static_cast<uint32_t>(symbols_.size());
  symbols_.push_back({name, kind, id, shadows, depth(), at});
  return true;
}

const Reader::RegisterRange* Reader::find_range(std::string_view name, uint32_t& number) const {
  size_t length;
  if (ranges_.empty() || !split_number(name, length, number)) return nullptr;
  const std::string_view prefix = name.substr(0, length);
  const uint64_t key = prefix_key(prefix);
  const RegisterRange* r = last_range(key);
  while (r && (r->key != key || r->count <= number || (length > 7 && r->prefix != prefix))) r = outer_range(*r);
  return r;
}

// `name`, or `name_1`, `name_2`, ... when the function prints that name already.
std::string Reader::unique(std::string_view name) {
  std::string_view candidate = name;
  for (uint32_t k = 1;; ++k) {
    uint32_t number, count = 0;
    size_t prefix;
    if (split_number(candidate, prefix, number)) {
      count = used_prefixes_.get(candidate.substr(0, prefix));
      if (count == UINT32_MAX || number >= count) count = 0;
    }
    uint32_t& used = used_names_[candidate];
    const bool fresh = used == UINT32_MAX && count == 0;
    if (used == UINT32_MAX) used = 0;
    if (fresh) {
      if (split_number(candidate, prefix, number)) {
        uint32_t& least = least_number_[candidate.substr(0, prefix)];
        least = std::min(least, number);
      }
      return std::string(candidate);
    }
    // Skipping ahead keeps many redeclarations of one name linear, and a name beside the registers `name_0`, `name_1`, ... short.
    if (count != 0 && prefix == name.size() + 1 && candidate.size() > name.size()) k = std::max(k, count);
    uint32_t& last = used_names_[name];
    last = k = std::max(k, last + 1);
    candidate = arena_.copy(fmt::format("{}_{}", name, k));
  }
}

bool Reader::count_registers(uint64_t n, Range at) {
  uint64_t limit = text_.size() + free_registers;
  if (n > limit || registers_ + n > limit) {
    error("unsupported", at, "unsupported module of more than {} registers", limit);
    return false;
  }
  registers_ += n;
  return true;
}

// A register of 8 bits holds what ld and cvt leave in one of 16 bits, which those take in its place.
static Type register_type(Type type) {
  return type == Type::u8 ? Type::u16 : type == Type::s8 ? Type::s16 : type == Type::b8 ? Type::b16 : type;
}

bool Reader::has_registers(Type type, Range at) {
  if (type == Type::bf16 || type == Type::bf16x2)
    error("unsupported", at, "unsupported register type .{}", type_name(type));
  else if (type == Type::b128 && (module_.version < 83 || module_.target < 70))
    error("bad-type", at, "a register of type .b128 needs .version 8.3 and .target sm_70");
  else
    return true;
  return false;
}

// A vector is a register per component, which prints as such.
void Reader::vector_register(Type type, std::string_view name, Range at) {
  const uint32_t first = static_cast<uint32_t>(f_.registers.size());
  if (!count_registers(attributes.vector, at)) return;
  if (!define(name, Kind::vector, static_cast<uint32_t>(vector_registers_.size()), at)) return;
  vector_registers_.push_back({first, static_cast<uint8_t>(attributes.vector)});
  for (uint32_t k = 0; k < attributes.vector; ++k)
    f_.add_register(type, unique(arena_.copy(fmt::format("{}_{}", name, "xyzw"[k]))));
}

void Reader::register_name(Type type, const Token& name, Range at) {
  type = register_type(type);
  if (!has_registers(type, at)) return;
  if (attributes.vector > 1) return vector_register(type, name.text(), at);
  if (!count_registers(1, at)) return;
  if (!define(name.text(), Kind::reg, static_cast<uint32_t>(f_.registers.size()), at)) return;
  f_.add_register(type, unique(name.text()));
}

void Reader::register_range(Type type, const Token& name, const Token& count, Range at) {
  type = register_type(type);
  if (!has_registers(type, at)) return;
  if (count.constant != Token::integer || count.value < 0) {
    error("bad-directive", at, "expected a number of registers, got `{}`", count.text());
    return;
  }
  if (!count_registers(static_cast<uint64_t>(count.value), at)) return;
  uint32_t n = static_cast<uint32_t>(count.value), number;
  if (attributes.vector > 1) {
    for (uint32_t k = 0; k < n; ++k) vector_register(type, arena_.copy(fmt::format("{}{}", name.text(), k)), at);
    return;
  }
  const uint64_t key = prefix_key(name.text());
  uint32_t& last = last_range_[prefix_slot(key)];
  for (uint32_t k = last; k != UINT32_MAX && ranges_[k].depth == depth(); k = ranges_[k].shadows)
    if (ranges_[k].prefix == name.text()) {
      error("redefined", at, "`{}<..>` is defined twice", name.text());
      return;
    }
  for (size_t k = scopes_.back().symbols; k < symbols_.size(); ++k) {
    size_t prefix;
    if (split_number(symbols_[k].name, prefix, number) && number < n &&
        symbols_[k].name.substr(0, prefix) == name.text()) {
      error("redefined", at, "`{}` is defined already", symbols_[k].name).note(span(symbols_[k].at), "here");
      return;
    }
  }
  // The prefix that prints: another one when an outer or an earlier block has used it.
  std::string prefix(name.text());
  for (uint32_t k = 1;; ++k) {
    const uint32_t least = least_number_.get(prefix);
    if (used_prefixes_.get(prefix) == UINT32_MAX && (least == UINT32_MAX || least >= n)) break;
    uint32_t& last = renamed_prefixes_[name.text()];  // skipping ahead, as in unique()
    if (last != UINT32_MAX) k = std::max(k, last + 1);
    last = k;
    prefix = fmt::format("{}_{}_", name.text(), k);
  }
  used_prefixes_[arena_.copy(prefix)] = n;
  ranges_.push_back({name.text(), key, type_bit(type), static_cast<uint32_t>(f_.registers.size()), n, depth(), last});
  last = static_cast<uint32_t>(ranges_.size() - 1);
  if (prefix == register_prefix(type)) {  // they need no names of their own
    std::vector<Register>& registers = f_.registers.raw();
    registers.resize(registers.size() + n, {type, false, 0});
    for (uint32_t k = 0; k < n; ++k) registers[registers.size() - n + k].number = k;
    return;
  }
  char digits[10];
  for (uint32_t k = 0; k < n; ++k) {
    char* end = std::to_chars(digits, digits + 10, k).ptr;
    std::string text;
    text.reserve(prefix.size() + static_cast<size_t>(end - digits));
    text.append(prefix).append(digits, end);
    f_.add_register(type, std::move(text));
  }
}

// The label `name` of the current scope, made when it is new; UINT32_MAX (reported) when the name is taken.
uint32_t Reader::label_id(std::string_view name, Range at) {
  uint32_t s = find(name);
  if (s != UINT32_MAX && symbols_[s].kind == Kind::label && symbols_[s].depth == depth()) return symbols_[s].id;
  uint32_t id = static_cast<uint32_t>(f_.labels.size());
  if (!define(name, Kind::label, id, at)) return UINT32_MAX;
  label_alias_.push_back(id);
  f_.labels.add({std::string(name)});
  return id;
}

// In a loop's first block, before its instructions (PTX ISA, "Pragma Strings").
void Reader::block_pragma() {
  if (!std::exchange(nounroll_, false)) return;
  for (Label& l : f_.labels) l.nounroll |= l.at == f_.instructions.size();
}

void Reader::label(const Token& name, Range at) {
  uint32_t id = label_id(name.text(), at);
  if (id == UINT32_MAX) return;
  Label& l = f_.labels[static_cast<LabelId>(id)];
  if (l.at != UINT32_MAX) {
    error("redefined", at, "the label `{}` is defined twice", name.text());
    return;
  }
  l.at = static_cast<uint32_t>(f_.instructions.size());
  l.name = unique(name.text());
}

// Labels that inner blocks mentioned and outer ones defined: gives all operands the defined one, and drops the others.
void Reader::merge_labels() {
  std::vector<uint32_t> place(f_.labels.size());
  IdVector<LabelId, Label> kept;
  for (uint32_t k = 0; k < f_.labels.size(); ++k)
    if (label_alias_[k] == k) place[k] = index(kept.add(std::move(f_.labels[static_cast<LabelId>(k)])));
  for (uint32_t k = 0; k < place.size(); ++k) {
    uint32_t target = k;
    while (label_alias_[target] != target) target = label_alias_[target];  // always further out: no cycles
    if (target != k) place[k] = place[target];
  }
  for (Operand& o : f_.operands)
    if (o.kind == Operand::label) o.id = place[o.id];
  for (BranchTargets& t : f_.targets)
    for (LabelId& l : t.labels) l = static_cast<LabelId>(place[index(l)]);
  f_.labels = std::move(kept);
}

// ---- statements

uint32_t Reader::line(uint32_t offset) {
  const char* p = text_.data() + line_at_;
  const char* end = text_.data() + offset;
  while (p < end && (p = static_cast<const char*>(std::memchr(p, '\n', static_cast<size_t>(end - p))))) ++line_, ++p;
  line_at_ = std::max(line_at_, offset);
  return line_;
}

void Reader::guard(const Token& name, bool negated, Range at) {
  Operand o;
  if (!resolve(name.text(), o, at)) return;
  if (o.kind != Operand::reg || f_.registers[o.reg_id()].type != Type::pred) {
    error("bad-operand", at, "the guard `{}` is no predicate register", name.text());
    bad_ = true;
    return;
  }
  guard_ = o.reg_id();
  guard_negated_ = negated;
}

uint32_t Reader::add_mnemonic(std::string_view text) {
  mnemonics_.push_back(read_mnemonic(text, version_, target_));
  return static_cast<uint32_t>(mnemonics_.size() - 1);
}

void Reader::opcode(const Token& mnemonic, Range at) {
  uint32_t& slot = mnemonic_index_[mnemonic.text()];
  if (slot == UINT32_MAX) slot = add_mnemonic(mnemonic.text());
  current_ = slot;
  opcode_at_ = at;
  const Mnemonic& m = mnemonics_[current_];
  if (!m.problem.empty()) {
    error(m.kind, at, "{}", m.problem);
    bad_ = true;
  }
}

// What the name stands for: a register, a symbol, or a special register. False when it is none of them.
bool Reader::lookup(std::string_view name, Operand& out) const {
  static const StringTable special_registers = [] {
    StringTable all;
    for (uint32_t k = 1; k < special_register_count; ++k)
      all[special_register_name(static_cast<SpecialRegister>(k))] = k;
    return all;
  }();
  uint32_t number;
  const RegisterRange* range = find_range(name, number);
  const uint32_t s = range && !range_shadowed_ ? UINT32_MAX : find(name);
  if (range && (s == UINT32_MAX || symbols_[s].depth < range->depth)) {
    out.kind = Operand::reg;
    out.id = range->first + number;
    return true;
  }
  if (s != UINT32_MAX) {
    const Symbol& symbol = symbols_[s];
    out.id = symbol.id;
    switch (symbol.kind) {
      case Kind::reg: out.kind = Operand::reg; break;
      case Kind::vector: out.kind = Operand::vector; break;  // its place among vector_registers_
      case Kind::label: out.kind = Operand::label; break;
      case Kind::variable: out.kind = Operand::variable; break;
      case Kind::parameter: out.kind = Operand::parameter; break;
      case Kind::function: out.kind = Operand::function; break;
      case Kind::prototype: out.kind = Operand::prototype; break;
      case Kind::targets: out.kind = Operand::targets; break;
    }
    return true;
  }
  const uint32_t special = special_registers.get(name);
  if (special == UINT32_MAX) return component(name, out);
  out.kind = Operand::special;
  out.id = special;
  return true;
}

// v.x, or v.r: of a register that is a vector.
bool Reader::component(std::string_view name, Operand& out) const {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot + 2 != name.size()) return false;
  const uint32_t s = find(name.substr(0, dot));
  const size_t letter = std::string_view("xyzwrgba").find(name.back()), k = letter % 4;
  if (letter == std::string_view::npos || s == UINT32_MAX || symbols_[s].kind != Kind::vector ||
      k >= vector_registers_[symbols_[s].id].count)
    return false;
  out.kind = Operand::reg;
  out.id = vector_registers_[symbols_[s].id].first + static_cast<uint32_t>(k);
  return true;
}

bool Reader::resolve(std::string_view name, Operand& out, Range at) {
  if (lookup(name, out)) return true;
  const bool moves = !mnemonics_.empty() && mnemonics_[current_].instruction.op == Opcode::mov;
  if (moves && (name == "%tid.w" || name == "%ntid.w" || name == "%ctaid.w" || name == "%nctaid.w")) {
    out.kind = Operand::immediate;
    return true;
  }
  // %tid of mov.v4: rewrite.cpp
  if (moves && mnemonics_[current_].rewritten && lookup(std::string(name) + ".x", out) && out.kind == Operand::special)
    return true;
  bool special = name.starts_with("%pm") || name.starts_with("%cluster") || name.starts_with("%nclusterid") ||
                 name == "%is_explicit_cluster" || name.starts_with("%aggr_smem") ||
                 name.starts_with("%reserved_smem") || name == "%current_graph_exec" || name == "%nwarpid_max";
  if (!bad_) {
    if (special)
      error("unsupported", at, "unsupported special register `{}`", name);
    else
      error("undefined", at, "`{}` is not defined", name);
  }
  bad_ = true;
  return false;
}

void Reader::operand_name(const Token& name, bool negated, int64_t offset, Range at) {
  const bool label = !bad_ && mnemonics_[current_].instruction.op == Opcode::bra;
  RawOperand raw;
  raw.at = at;
  if (name.text() == "_") {
    raw.operand.kind = Operand::sink;
  } else if (label) {
    raw.operand.kind = Operand::label;
    raw.operand.id = label_id(name.text(), at);
    bad_ |= raw.operand.id == UINT32_MAX;
  } else {
    std::string_view text = name.text();
    const size_t dot = text.rfind('.');
    if (!bad_ && dot != text.npos && dot + 2 < text.size() && (text[dot + 1] == 'b' || text[dot + 1] == 'h') &&
        is_video(mnemonics_[current_].instruction.op)) {
      raw.selector = text.substr(dot + 1);
      text = text.substr(0, dot);
      for (char c : raw.selector.substr(1))
        if (c < '0' || c > '7') text = name.text();
    }
    resolve(text, raw.operand, at);
  }
  if (raw.operand.kind == Operand::vector && !bad_) {
    if (in_vector_ || negated || offset != 0) {
      error("bad-operand", at, "`{}` is a vector", name.text());
      bad_ = true;
      return;
    }
    const VectorRegister v = vector_registers_[raw.operand.id];
    begin_vector();
    for (uint32_t k = 0; k < v.count; ++k)
      add_operand({.operand = {.kind = Operand::reg, .id = v.first + k}, .at = at});
    return end_vector(at);
  }
  raw.operand.negated = negated;
  raw.operand.value += offset;
  const bool sum = raw.operand.kind == Operand::reg && !in_vector_ && !mnemonics_[current_].rewritten;  // rewrite.cpp
  if (offset != 0 && raw.operand.kind != Operand::variable && raw.operand.kind != Operand::parameter && !sum && !bad_) {
    error("bad-operand", at, "an offset needs brackets, a variable or a register");
    bad_ = true;
  }
  add_operand(raw);
}

void Reader::negative_operand(const Token& name, Range at) {
  if (!bad_ && mnemonics_[current_].instruction.op != Opcode::vmad) {
    error("bad-operand", at, "only operands of vmad may be negated");
    bad_ = true;
    return;
  }
  const size_t before = raw_.size();
  operand_name(name, false, 0, at);
  if (!bad_ && raw_.size() == before + 1) raw_.back().negative = true;
}

void Reader::operand_constant(const Token& t, Range at) {
  add_operand({.operand = {.kind = Operand::immediate, .value = t.value},
               .literal = true,
               .parenthesised = at.begin == parentheses.begin && at.end == parentheses.end,
               .constant = t.constant,
               .at = at});
}

void Reader::address_name(const Token& name, int64_t offset, Range at) {
  RawOperand raw;
  raw.at = at;
  if (resolve(name.text(), raw.operand, at)) {
    if (raw.operand.kind == Operand::reg)
      raw.operand.kind = Operand::address_reg;
    else if (raw.operand.kind == Operand::variable)
      raw.operand.kind = Operand::address_var;
    else if (raw.operand.kind != Operand::parameter) {
      error("bad-operand", at, "`{}` cannot be an address", name.text());
      bad_ = true;
    }
  }
  raw.operand.value = offset;
  add_operand(raw);
}

void Reader::address_constant(const Token& t, Range at) {
  if (t.constant != Token::integer && !bad_) {
    error("bad-operand", at, "`{}` cannot be an address", t.text());
    bad_ = true;
  }
  add_operand({.operand = {.kind = Operand::address_imm, .value = t.value}, .at = at});
}

void Reader::coordinates(Range at) {
  if (!bad_) error("unsupported", at, "unsupported address with coordinates");
  bad_ = true;
}

void Reader::end_vector(Range at) {
  in_vector_ = false;
  uint32_t n = static_cast<uint32_t>(vector_raw_.size()) - vector_begin_;
  if (n > 8 && !bad_) {
    error("unsupported", at, "unsupported vector of {} elements", n);
    bad_ = true;
  }
  using enum Opcode;  // Triton writes a single register so
  if (const Opcode op = mnemonics_[current_].instruction.op; n == 1 && (op == ld || op == ldu || op == st)) {
    raw_.push_back(vector_raw_.back());
    vector_raw_.pop_back();
    return;
  }
  raw_.push_back(
      {.operand = {.kind = Operand::vector, .count = static_cast<uint8_t>(n), .id = vector_begin_}, .at = at});
}

// Turns a constant's text value into the bits that a place of that type takes: of an integer the lowest ones, as ptxas does. False when it is of another kind.
bool Reader::fit(int64_t& v, Token::Constant constant, Type type) {
  const uint32_t size = type_bytes(type);
  if (constant == Token::integer) {
    if (is_floating(type)) return false;
    if (type == Type::pred)
      v = v != 0;
    else if (size > 0 && size < 8)
      v = static_cast<int64_t>(static_cast<uint64_t>(v) << (64 - 8 * size)) >> (64 - 8 * size);
    return true;
  }
  if (constant == Token::single) {
    if (type == Type::f64)
      v = std::bit_cast<int64_t>(static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(v))));
    else if (type == Type::b32)
      v = static_cast<int32_t>(v);
    return type == Type::f64 || type == Type::b32 || type == Type::f32;
  }
  if (type == Type::f32) v = std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(v)));
  return type == Type::f32 || type == Type::f64 || type == Type::b64;
}

// The same, and reports it.
bool Reader::literal(RawOperand& raw, Type type) {
  if (fit(raw.operand.value, raw.constant, type)) return true;
  if (raw.constant != Token::integer)
    error("bad-operand", raw.at, "expected a .{} constant, got one of .{}", type_name(type),
          raw.constant == Token::single ? "f32" : "f64");
  else
    error("bad-operand", raw.at, "expected a .{} constant such as 1.0 or 0{}.., got an integer", type_name(type),
          type_bytes(type) == 8 ? "d" : "f");
  return false;
}

bool Reader::call_instruction(Instruction& i) {
  // [ (results), ] callee [ , (arguments) ]
  uint32_t n = static_cast<uint32_t>(raw_.size());
  size_t g = 0;
  uint32_t callee = 0;
  if (!groups_.empty() && groups_[0].begin == 0) callee = groups_[g++].end;
  uint32_t end = callee + 1;
  if (g < groups_.size() && groups_[g].begin == callee + 1) end = groups_[g++].end;
  if (end + 1 == n && raw_[end].operand.kind == Operand::prototype) ++end;
  if (callee >= n || g != groups_.size() || end != n) {
    error("unsupported", opcode_at_, "unsupported form of `call`: expected (results), function, (arguments)");
    return false;
  }
  i.destination_count = static_cast<uint8_t>(callee);
  return true;
}

bool Reader::drop_policy() {
  const bool reg = raw_.size() > 2 && raw_.back().operand.kind == Operand::reg;
  if (!reg || type_bytes(f_.registers[raw_.back().operand.reg_id()].type) != 8) {
    error("bad-operand", reg ? raw_.back().at : opcode_at_, "expected a cache policy in a register of 64 bits");
    return false;
  }
  raw_.pop_back();
  return true;
}

// Remembers what an instruction of that many operands is made of; or says why there is none.
std::string Reader::expect(Mnemonic& m, uint32_t operand_count) {
  Instruction i = m.instruction;
  i.operand_count = static_cast<uint8_t>(operand_count);
  i.first_operand = static_cast<uint32_t>(f_.operands.size());
  m.operand_count = UINT32_MAX;
  f_.operands.extend(operand_count);  // the check looks that they exist
  std::string problem = check_head(module_, f_, i, m.form);
  f_.operands.resize(i.first_operand);
  if (!problem.empty()) return problem;
  m.operand_count = operand_count;
  if (m.form->operands[0] != '*') {
    places(*m.form, operand_count, m.places);
    m.plain = plain_operands(i, m.places);
  }
  return problem;
}

void Reader::instruction(Range at) {
  if (bad_ || self_ == UINT32_MAX) return abandon();
  Mnemonic& m = mnemonics_[current_];
  if (m.policy && !drop_policy()) return abandon();
  if (m.rewritten && !rewrite(m.instruction)) return abandon();
  const uint32_t n = static_cast<uint32_t>(raw_.size());
  if (n > 255) {
    error("unsupported", at, "unsupported instruction of {} operands", n);
    return abandon();
  }
  if (n != m.operand_count)
    if (const std::string problem = expect(m, n); !problem.empty()) {
      error(problem.starts_with("unsupported") ? "unsupported" : "bad-instruction", opcode_at_, "{}", problem);
      return abandon();
    }
  const bool call = m.form->operands[0] == '*';
  if (call) m.places = {};
  if (!rewrite_operands(m)) return abandon();
  Instruction& i = f_.instructions.push() = m.instruction;
  if (other_mode_) i.mods.mode = other_mode_;
  auto drop = [&] {
    f_.instructions.pop_back();
    abandon();
  };
  i.operand_count = static_cast<uint8_t>(n);
  i.first_operand = static_cast<uint32_t>(f_.operands.size());
  i.guard = guard_;
  i.guard_negated = guard_negated_;
  i.line = line(opcode_at_.begin);
  if (!take_space_of_name(i)) return drop();
  if (call) {
    if (!call_instruction(i)) return drop();
  } else {
    i.destination_count = m.places.destinations;
    if (!groups_.empty()) {
      error("bad-operand", at, "only a call has operands in parentheses");
      return drop();
    }
  }
  bool plain = !call;
  for (uint32_t k = 0; k < n; ++k) {
    RawOperand& raw = raw_[k];
    if (raw.literal && !literal(raw, call ? Type::none : place_type(m.places.at[k].kind, i))) {
      f_.operands.resize(i.first_operand);
      return drop();
    }
    plain = plain && m.plain.at[k].takes(module_, f_, raw.operand);
    if (raw.operand.kind == Operand::vector) {
      const Type type = call ? Type::none : place_type(m.places.at[k].kind, i);
      // The elements of a vector that mov packs or unpacks are parts of its type.
      Type element = type;
      if (!call && m.places.at[k].kind == 'm') {
        uint32_t size = raw.operand.count ? type_bytes(type) / raw.operand.count : 0;
        element = size == 2 ? Type::b16 : size == 4 ? Type::b32 : Type::none;
      }
      uint32_t first = static_cast<uint32_t>(f_.vector_elements.size());
      for (uint32_t e = 0; e < raw.operand.count; ++e) {
        RawOperand& part = vector_raw_[raw.operand.id + e];
        if (part.literal && !literal(part, element)) {
          f_.operands.resize(i.first_operand);
          return drop();
        }
        f_.vector_elements.push_back(part.operand);
      }
      raw.operand.id = first;
    }
    f_.operands.push_back(raw.operand);
  }
  if (plain && after_.empty()) return abandon();
  std::string problem = check_operands(module_, f_, i, *m.form, m.places);
  if (!problem.empty()) {
    // "operand 2: ..." underlines that operand.
    Range where = opcode_at_;
    if (problem.starts_with("operand ")) {
      uint32_t k = 0;
      auto [end, failure] = std::from_chars(problem.data() + 8, problem.data() + problem.size(), k);
      if (failure == std::errc() && k >= 1 && k <= n) {
        where = raw_[k - 1].at;
        problem.erase(0, static_cast<size_t>(end - problem.data()) + 2);
      }
    }
    error(problem.find("unsupported") != std::string::npos ? "unsupported" : "bad-operand", where, "{}: {}",
          opcode_name(i.op), problem);
    f_.operands.resize(i.first_operand);
    return drop();
  }
  for (const RegisterResult& r : results_)
    pass(Opcode::ld, module_.variables[r.from.variable_id()].type, {.kind = Operand::address_var, .id = r.from.id},
         r.registers, r.is_predicate);
  for (const Following& next : after_)
    if (!add_before(next.instruction, next.operands)) break;
  abandon();
}

}  // namespace rndn::ptx
