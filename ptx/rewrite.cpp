// Writes what has another form of the same meaning in that form while it is read, so that nothing behind the parser knows of it:
//
//   shfl, vote without .sync (before PTX 6.4)   .sync of the lanes that are there: activemask
//   cp.async with a predicate, ignore-src       a source of no bytes where it is true
//   ldmatrix, stmatrix                          the elements of their vector are operands of their own
//   mov.v2, .v4 of vectors; of %tid, ..         a move per component; the fourth of %tid, %ntid, %ctaid and %nctaid is 0
//   atom and red of vectors                     an operation per element, which is all that is atomic
//   registers of 128 bits                       two registers of 64; ld and st of .b128 access them as a vector, which is one access too
//   parameters and results in registers         .param ones, loaded where the function begins and stored where it returns
//   arguments and results that are registers    .param variables around the call
//   cvt of a special register, half of one      a move of it before that
//   r + 1, a register and a constant            a sum before that
//   ld, st, atom, red of a name, without space  the name's space
#include "ptx/opcodes.h"
#include "ptx/reader.h"
#include "ptx/verify.h"

namespace rndn::ptx {
Operand Reader::fresh_register(Type type) {
  return {.kind = Operand::reg, .id = index(f_.add_register(type, unique("%rewritten")))};
}

// An instruction before the one being read, under its guard, with one result or none (st). False, and reported, when it is not right.
bool Reader::add_before(Instruction i, std::span<const Operand> operands) {
  i.operand_count = static_cast<uint8_t>(operands.size());
  i.destination_count = i.op == Opcode::st || i.op == Opcode::red ? 0 : 1;
  i.first_operand = static_cast<uint32_t>(f_.operands.size());
  i.guard = guard_;
  i.guard_negated = guard_negated_;
  i.line = line(opcode_at_.begin);
  f_.operands.append(operands);
  if (const std::string problem = check_instruction(module_, f_, i); !problem.empty()) {
    error("bad-operand", opcode_at_, "{}: {}", opcode_name(i.op), problem);
    return false;
  }
  f_.instructions.push_back(i);
  return true;
}

// ---- registers of 128 bits

bool Reader::is_wide(const Operand& o) const {
  return o.kind == Operand::reg && f_.registers[o.reg_id()].type == Type::b128;
}

Reader::Halves Reader::halves(const Operand& o) {
  if (o.kind == Operand::immediate) return {o, {.kind = Operand::immediate}};  // constants have 64 bits, without a sign
  const auto [at, fresh] = halves_.try_emplace(o.id);
  if (fresh) {
    const std::string name = ptx::register_name(f_, o.reg_id());
    for (Operand* half : {&at->second.low, &at->second.high})
      *half = {.kind = Operand::reg,
               .id = index(f_.add_register(Type::b64,
                                           unique(arena_.copy(name + (half == &at->second.low ? "_low" : "_high")))))};
  }
  return at->second;
}

// ld, ldu, st and mov of .b128, whose type has become .b64 (mnemonic.cpp).
bool Reader::rewrite_wide(const Instruction& i) {
  if (!has_registers(Type::b128, opcode_at_)) return false;
  const auto expected = [&](Range at) {
    error("bad-operand", at, "{}: expected a register of type .b128", opcode_name(i.op));
    return false;
  };
  if (raw_.size() != 2) return expected(opcode_at_);
  const auto is_small = [](const RawOperand& x) { return x.literal && x.constant == Token::integer; };
  if (i.op != Opcode::mov) {
    RawOperand& data = raw_[i.op == Opcode::st ? 1 : 0];
    if (!is_wide(data.operand) && !(i.op == Opcode::st && is_small(data))) return expected(data.at);
    const Halves h = halves(data.operand);
    data.operand = {.kind = Operand::vector, .count = 2, .id = static_cast<uint32_t>(vector_raw_.size())};
    vector_raw_.push_back({.operand = h.low, .at = data.at});
    vector_raw_.push_back({.operand = h.high, .at = data.at});
    return true;
  }
  // A half of an operand: of a register, or one or two elements of a vector.
  const auto half = [&](const RawOperand& x, uint32_t k, Operand& out) {
    if (is_wide(x.operand) || (&x == &raw_[1] && is_small(x))) {
      const Halves h = halves(x.operand);
      out = k ? h.high : h.low;
      return true;
    }
    if (x.operand.kind != Operand::vector || (x.operand.count != 2 && x.operand.count != 4)) return false;
    const uint32_t elements = x.operand.count / 2u, first = x.operand.id + k * elements;
    out = vector_raw_[first].operand;
    if (elements == 1) return true;
    out = {.kind = Operand::vector, .count = 2, .id = static_cast<uint32_t>(f_.vector_elements.size())};
    for (uint32_t e = 0; e < 2; ++e) f_.vector_elements.push_back(vector_raw_[first + e].operand);
    return true;
  };
  if (!is_wide(raw_[0].operand) && !is_wide(raw_[1].operand)) return expected(raw_[0].at);
  Operand to[2], from[2];
  for (uint32_t k = 0; k < 2; ++k)
    if (!half(raw_[0], k, to[k]) || !half(raw_[1], k, from[k]))
      return expected(raw_[!half(raw_[0], k, to[k]) ? 0 : 1].at);
  // The last one takes the place of the instruction being read.
  const uint32_t last = to[1].kind == Operand::sink ? 0 : 1;
  if (last == 1 && to[0].kind != Operand::sink && !add_before({.op = Opcode::mov, .type = Type::b64}, {to[0], from[0]}))
    return false;
  raw_[0] = {.operand = to[last], .at = raw_[0].at};
  raw_[1] = {.operand = from[last], .at = raw_[1].at};
  for (RawOperand& x : raw_)
    if (x.operand.kind == Operand::vector) {  // as the statement's own
      const uint32_t first = x.operand.id;
      x.operand.id = static_cast<uint32_t>(vector_raw_.size());
      for (uint32_t e = 0; e < x.operand.count; ++e)
        vector_raw_.push_back({.operand = f_.vector_elements[first + e], .at = x.at});
    }
  return true;
}

// ---- parameters, arguments and results in registers

// Loads and stores have no types of halves: their bits.
Instruction parameter_access(Opcode op, Type type) {
  type = type == Type::f16 ? Type::b16 : type == Type::f16x2 ? Type::b32 : type;
  return {.op = op, .type = type, .mods = {.space = Space::param}};
}

void Reader::register_parameter(Type type, const Token& name, Range at) {
  if (header_.is_entry) error("bad-directive", at, "the parameter `{}` of an entry cannot be a register", name.text());
  const bool is_predicate = type == Type::pred && attributes.vector == 1;
  parameter(is_predicate ? Type::u32 : type, name, at);
  std::string& printed = pending_.back().name;
  printed.erase(0, printed.starts_with('%'));
  printed += "_parameter";
  pending_names_.back().in_register = true;
  pending_names_.back().is_predicate = is_predicate;
}

// A parameter's load into its register, or its store: of a vector as one, of a predicate as a number.
bool Reader::pass(Opcode op, Type type, Operand at, std::span<const Operand> registers, bool is_predicate) {
  Instruction i = parameter_access(op, type);
  Operand value = registers[0];
  const auto access = [&] { return op == Opcode::ld ? add_before(i, {value, at}) : add_before(i, {at, value}); };
  if (registers.size() > 1) {
    i.mods.vector = static_cast<uint8_t>(registers.size());
    value = {.kind = Operand::vector, .count = i.mods.vector, .id = static_cast<uint32_t>(f_.vector_elements.size())};
    for (const Operand& r : registers) f_.vector_elements.push_back(r);
  }
  if (!is_predicate) return access();
  value = fresh_register(Type::u32);
  const Operand zero{.kind = Operand::immediate}, one{.kind = Operand::immediate, .value = 1};
  if (op == Opcode::st)
    return add_before({.op = Opcode::selp, .type = Type::u32}, {value, one, zero, registers[0]}) && access();
  return access() && add_before({.op = Opcode::setp, .type = Type::u32, .mods = {.compare = Compare::ne}},
                                {registers[0], value, zero});
}

void Reader::define_register_parameters() {
  halves_.clear();
  register_results_.assign(f_.results.size(), {});
  const auto define_one = [&](const NameAt& n, const Parameter& p) {
    const uint32_t first = static_cast<uint32_t>(f_.registers.size());
    attributes.vector = static_cast<uint8_t>(std::max<uint64_t>(p.count, 1));
    register_name(n.is_predicate ? Type::pred : p.type,
                  Token{.begin = n.name.data(), .length = static_cast<uint32_t>(n.name.size())}, n.at);
    clear_attributes();
    std::vector<Operand> registers;
    for (uint32_t r = first; r < f_.registers.size(); ++r) registers.push_back({.kind = Operand::reg, .id = r});
    return registers;
  };
  for (uint32_t k = 0; k < f_.results.size() && k < result_names_.size(); ++k)
    if (result_names_[k].in_register) register_results_[k] = define_one(result_names_[k], f_.results[k]);
  for (uint32_t k = 0; k < f_.parameters.size() && k < pending_names_.size(); ++k)
    if (pending_names_[k].in_register) {
      opcode_at_ = pending_names_[k].at;
      if (const auto registers = define_one(pending_names_[k], f_.parameters[k]); !registers.empty())
        pass(Opcode::ld, f_.parameters[k].type, {.kind = Operand::parameter, .id = k}, registers,
             pending_names_[k].is_predicate);
    }
}

// Where the function returns.
bool Reader::store_register_results() {
  for (uint32_t k = 0; k < register_results_.size(); ++k)
    if (const uint32_t number = static_cast<uint32_t>(f_.parameters.size()) + k;
        !register_results_[k].empty() &&
        !pass(Opcode::st, f_.results[k].type, {.kind = Operand::parameter, .id = number}, register_results_[k],
              predicates_.contains({self_, number})))
      return false;
  return true;
}

// The values are taken before the first result is written, which may be among them.
bool Reader::rewrite_atomic(const Instruction& i, uint32_t elements) {
  if (module_.version < 81) {
    error("bad-instruction", opcode_at_, "`{}` of a vector needs .version 8.1", opcode_name(i.op));
    return false;
  }
  const size_t address = i.op == Opcode::atom ? 1 : 0;
  const auto is_vector = [&](const RawOperand& x) {
    return x.operand.kind == Operand::vector && x.operand.count == elements;
  };
  if (raw_.size() != address + 2 || !is_vector(raw_.back()) || (address && !is_vector(raw_[0]))) {
    error("bad-operand", opcode_at_, "{}: expected an address and vectors of {}", opcode_name(i.op), elements);
    return false;
  }
  const Type bits = type_bytes(i.type) == 2 ? Type::b16 : Type::b32;
  std::vector<Operand> values;
  for (uint32_t e = 0; e < elements; ++e) {
    RawOperand& x = vector_raw_[raw_.back().operand.id + e];
    if (x.literal && !literal(x, i.type)) return false;
    values.push_back(fresh_register(bits));
    if (!add_before({.op = Opcode::mov, .type = bits}, {values.back(), x.operand})) return false;
  }
  for (uint32_t e = 0; e < elements; ++e) {
    Operand to = address ? vector_raw_[raw_[0].operand.id + e].operand : Operand(), at = raw_[address].operand;
    at.value += e * type_bytes(i.type);
    if (e + 1 == elements) {
      raw_.back() = {.operand = values[e], .at = opcode_at_};
      raw_[address].operand = at;
      if (address) raw_[0].operand = to;
    } else if (!(address ? add_before(i, {to, at, values[e]}) : add_before(i, {at, values[e]}))) {
      return false;
    }
  }
  return true;
}

bool Reader::rewrite_call() {
  const uint32_t n = static_cast<uint32_t>(raw_.size());
  const uint32_t callee = !groups_.empty() && groups_[0].begin == 0 ? groups_[0].end : 0;
  if (callee >= n) return true;
  if (callee + 1 < n && raw_[callee + 1].parenthesised) groups_.push_back({callee + 1, callee + 2});
  const std::vector<Parameter>*results = nullptr, *parameters = nullptr;
  uint32_t called = UINT32_MAX;
  if (const Operand& o = raw_[callee].operand; o.kind == Operand::function && o.id < module_.functions.size())
    results = &module_.functions[o.id].results, parameters = &module_.functions[o.id].parameters, called = o.id;
  else if (const Operand& last = raw_[n - 1].operand; last.kind == Operand::prototype && last.id < f_.prototypes.size())
    results = &f_.prototypes[last.id].results, parameters = &f_.prototypes[last.id].parameters;
  if (!results) return true;
  for (const Group& g : groups_)
    for (uint32_t k = g.begin; k < g.end; ++k) {
      RawOperand& x = raw_[k];
      const bool result = k < callee;
      const bool nowhere = result && x.operand.kind == Operand::sink;
      const bool is_vector = x.operand.kind == Operand::vector;
      if (x.operand.kind != Operand::reg && !is_vector && !x.literal && !nowhere) continue;
      const std::vector<Parameter>& list = result ? *results : *parameters;
      if (k - g.begin >= list.size() || (result && x.literal)) return true;  // the check says what is wrong
      const Type type = list[k - g.begin].type;
      std::vector<Operand> registers{x.operand};
      if (is_vector) {
        registers.clear();
        for (uint32_t e = 0; e < x.operand.count; ++e) registers.push_back(vector_raw_[x.operand.id + e].operand);
        if (registers.size() != list[k - g.begin].count) {
          const uint32_t count = list[k - g.begin].count;
          error("bad-operand", x.at, "call: a vector of {}, expected {}", registers.size(),
                count ? std::to_string(count) : "one register");
          return false;
        }
      }
      const bool is_predicate =
          predicates_.contains({called, k - g.begin + (result ? static_cast<uint32_t>(parameters->size()) : 0)});
      if (is_predicate && !nowhere &&
          (x.operand.kind != Operand::reg || f_.registers[x.operand.reg_id()].type != Type::pred)) {
        error("bad-operand", x.at, "call: expected a predicate");
        return false;
      }
      const uint32_t id = static_cast<uint32_t>(module_.variables.size());
      Variable v{.space = Space::param, .type = type, .name = unique("argument"), .function = self_};
      if (nowhere || is_vector) v.count = list[k - g.begin].count, v.align = list[k - g.begin].align;
      if (result && !nowhere)
        results_.push_back({registers, {.kind = Operand::variable, .id = id}, is_predicate});
      else if (x.literal && !literal(x, type))
        return false;
      module_.variables.add(std::move(v));
      if (registers.size() == 1) registers[0] = x.operand;  // a constant has its bits by now
      if (!result && !pass(Opcode::st, type, {.kind = Operand::address_var, .id = id}, registers, is_predicate))
        return false;
      x = {.operand = {.kind = Operand::variable, .id = id}, .at = x.at};
    }
  return true;
}

// Operands that any instruction may have, once its form is known.
bool Reader::rewrite_operands(const Mnemonic& m) {
  const Instruction& i = m.instruction;
  for (uint32_t k = 0; k < raw_.size(); ++k) {
    RawOperand& x = raw_[k];
    const bool read = i.op != Opcode::call && !m.places.at[k].destination;
    if (x.operand.kind == Operand::reg && x.operand.value != 0) {
      const Type type = f_.registers[x.operand.reg_id()].type;
      if (!read || is_floating(type) || type_bytes(type) < 2 || type_bytes(type) > 8) {
        error("bad-operand", x.at, "an offset needs brackets, a variable or a register of integers that is read");
        return false;
      }
      const Operand sum = fresh_register(type), offset{.kind = Operand::immediate, .value = x.operand.value};
      const Type plain = type_bytes(type) == 2 ? Type::u16 : type_bytes(type) == 4 ? Type::u32 : Type::u64;
      x.operand.value = 0;
      if (!add_before({.op = Opcode::add, .type = plain}, {sum, x.operand, offset})) return false;
      x.operand = sum;
    } else if (x.operand.kind == Operand::special && read) {
      const uint32_t bytes = special_register_bytes(static_cast<SpecialRegister>(x.operand.id));
      const bool converts =
          i.op == Opcode::cvt && i.mods.mode == 0 && !is_floating(i.type2) && type_bytes(i.type2) <= bytes;
      const bool halves = i.op == Opcode::mov && !is_floating(i.type) && type_bytes(i.type) == 2 && bytes == 4;
      if (!converts && !halves) continue;
      const Operand whole = fresh_register(bytes == 4 ? Type::b32 : Type::b64);
      if (!add_before({.op = Opcode::mov, .type = bytes == 4 ? Type::b32 : Type::b64}, {whole, x.operand}))
        return false;
      x.operand = halves ? fresh_register(Type::b16) : whole;
      if (halves && !add_before({.op = Opcode::cvt, .type = Type::u16, .type2 = Type::u32}, {x.operand, whole}))
        return false;
    }
  }
  return true;
}

// A name as the address may tell the space. What only this thread sees need not be .volatile.
bool Reader::take_space_of_name(Instruction& i) {
  using enum Opcode;
  if (i.mods.space != Space::generic || (i.op != ld && i.op != st && i.op != atom && i.op != red)) return true;
  for (const RawOperand& x : raw_) {
    if (x.operand.kind != Operand::address_var) continue;
    const Variable& v = module_.variables[x.operand.variable_id()];
    if (v.space == Space::constant || v.space == Space::param) {
      error("bad-operand", x.at, "{}: `{}` lies in .{}, which the instruction does not name", opcode_name(i.op), v.name,
            name(v.space));
      return false;
    }
    i.mods.space = v.space;
  }
  if (i.mods.space == Space::local && i.mods.semantics == Semantics::volatile_) i.mods.semantics = Semantics::none;
  return true;
}

// All elements are taken before the first is written, which may be among them.
bool Reader::rewrite_vector_move(const Instruction& i) {
  const uint32_t n = raw_[0].operand.count, to = raw_[0].operand.id, from = raw_[1].operand.id;
  if (n != raw_[1].operand.count) {
    error("bad-operand", raw_[1].at, "expected a vector of {}", n);
    return false;
  }
  std::vector<Operand> values;
  for (uint32_t k = 0; k < n; ++k) {
    RawOperand& x = vector_raw_[from + k];
    if (x.literal && !literal(x, i.type)) return false;
    values.push_back(fresh_register(i.type));
    if (!add_before(i, {values.back(), x.operand})) return false;
  }
  for (uint32_t k = 0; k < n; ++k) {
    Operand x = vector_raw_[to + k].operand;
    if (x.kind == Operand::sink) x = fresh_register(i.type);
    if (k + 1 == n)
      raw_[0] = {.operand = x, .at = raw_[0].at}, raw_[1] = {.operand = values[k], .at = raw_[1].at};
    else if (!add_before(i, {x, values[k]}))
      return false;
  }
  return true;
}

// Changes the operands of the statement being read, whose mnemonic is marked.
bool Reader::rewrite(const Instruction& i) {
  if (i.op == Opcode::call) return rewrite_call();
  if (i.op == Opcode::ret) return store_register_results();
  if (is_video(i.op)) return rewrite_video(i);
  if (i.op == Opcode::atom || i.op == Opcode::red) return rewrite_atomic(i, mnemonics_[current_].elements);
  const bool accesses = i.op == Opcode::ld || i.op == Opcode::ldu || i.op == Opcode::st;
  if (accesses || (i.op == Opcode::mov && type_bytes(i.type) == 8)) return rewrite_wide(i);
  if (i.op == Opcode::shfl || i.op == Opcode::vote) {
    if (module_.version >= 64 && module_.target >= 70) {
      error("bad-instruction", opcode_at_, "`{}` without .sync needs .version below 6.4 or .target below sm_70",
            opcode_name(i.op));
      return false;
    }
    module_.version = std::max(module_.version, 62u);  // which have activemask
    module_.target = std::max(module_.target, 30u);
    const Operand lanes = fresh_register(Type::b32);
    if (!add_before({.op = Opcode::activemask, .type = Type::b32}, {lanes})) return false;
    raw_.push_back({.operand = lanes, .at = opcode_at_});
  } else if (i.op == Opcode::cp && raw_.size() == 4) {
    const Operand ignore = raw_[3].operand;
    if (ignore.kind != Operand::reg || f_.registers[ignore.reg_id()].type != Type::pred) return true;
    const Operand bytes = fresh_register(Type::b32);
    if (!add_before({.op = Opcode::selp, .type = Type::b32},
                    {bytes,
                     {.kind = Operand::immediate},
                     {.kind = Operand::immediate, .value = raw_[2].operand.value},
                     ignore}))
      return false;
    raw_[3].operand = bytes;
  } else if (moves_matrices(i)) {
    const size_t at = i.op == Opcode::ldmatrix ? 0 : 1;
    if (raw_.size() != 2 || raw_[at].operand.kind != Operand::vector || raw_[at].operand.count != matrix_count(i)) {
      error("bad-operand", opcode_at_, "expected a vector of {} and an address", matrix_count(i));
      return false;
    }
    const auto first = vector_raw_.begin() + raw_[at].operand.id;
    raw_.erase(raw_.begin() + static_cast<ptrdiff_t>(at));
    raw_.insert(raw_.begin() + static_cast<ptrdiff_t>(at), first, first + matrix_count(i));
  } else if (i.op == Opcode::mov && raw_.size() == 2 && raw_[0].operand.kind == Operand::vector &&
             raw_[1].operand.kind == Operand::vector) {
    return rewrite_vector_move(i);
  } else if (i.op == Opcode::mov) {
    using S = SpecialRegister;
    const auto has_components = [&](const RawOperand& x) {  // and is named without one
      if (x.operand.kind != Operand::special || text_.substr(x.at.begin, x.at.end - x.at.begin).find('.') != text_.npos)
        return false;
      const S r = static_cast<S>(x.operand.id);
      return r == S::tid_x || r == S::ntid_x || r == S::ctaid_x || r == S::nctaid_x;
    };
    const auto takes_word = [&](const Operand& to) {
      return to.kind == Operand::sink || (to.kind == Operand::reg && type_bytes(f_.registers[to.reg_id()].type) == 4);
    };
    if (raw_.size() != 2 || raw_[0].operand.kind != Operand::vector || raw_[0].operand.count != 4 ||
        type_bytes(i.type) != 4 || !has_components(raw_[1])) {
      error("unsupported", opcode_at_, "unsupported mov.v4 of what is no special register of four components");
      return false;
    }
    for (uint32_t k = 0; k < 4; ++k)
      if (const RawOperand& to = vector_raw_[raw_[0].operand.id + k]; !takes_word(to.operand)) {
        error("bad-operand", to.at, "expected a register of 32 bits");
        return false;
      }
    const uint32_t first = raw_[0].operand.id;
    for (uint32_t k = 0; k < 3; ++k)
      if (const Operand& to = vector_raw_[first + k].operand;
          to.kind == Operand::reg && !add_before({.op = Opcode::mov, .type = i.type},
                                                 {to, {.kind = Operand::special, .id = raw_[1].operand.id + k}}))
        return false;
    raw_[0] = vector_raw_[first + 3];
    raw_[1] = {.operand = {.kind = Operand::immediate}, .literal = true, .at = raw_[1].at};
  }
  return true;
}

}  // namespace rndn::ptx
