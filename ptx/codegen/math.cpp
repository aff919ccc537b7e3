// Functions of libdevice (docs/horseir.md, "Builtins: mathematics"):
// logarithms, powers, trigonometric and hyperbolic functions, the remainder of floats.
//
// In: a PTX module with the functions as .func (Options::math). A kernel calls them; what it calls is copied into the kernel's module, with the
// functions and variables that it needs, once per module. The assembler puts the bodies in the place of the calls.
// Cost of a copy: O(size of the function).
#include <algorithm>
#include <map>

#include "ptx/codegen/emitter.h"

namespace rndn::codegen {
namespace {

using ptx::Function;
using ptx::Module;
using ptx::Opcode;

// Copies functions of one module into another.
class Import {
 public:
  Import(const Module& from, Module& to) : from_(from), to_(to) {}

  // The index in `to` of a function of `from`. Functions of one name are one function.
  uint32_t function(uint32_t source) {
    const Function& f = from_.functions[source];
    for (uint32_t k = 0; k < to_.functions.size(); ++k)
      if (!to_.functions[k].is_entry && to_.functions[k].name == f.name) return k;
    const auto at = static_cast<uint32_t>(to_.functions.size());
    to_.functions.push_back(f);
    to_.functions[at].visible = false;
    std::map<ptx::VariableId, ptx::VariableId> own;  // variables of the function
    for (RawVector<Operand> Function::*list : {&Function::operands, &Function::vector_elements})
      for (size_t k = 0; k < (to_.functions[at].*list).size(); ++k) {
        Operand o = (to_.functions[at].*list)[k];
        if (o.kind == Operand::variable || o.kind == Operand::address_var)
          o.id = index(variable(o.variable_id(), at, own));
        else if (o.kind == Operand::function)
          o.id = function(o.id);
        (to_.functions[at].*list)[k] = o;
      }
    return at;
  }

 private:
  ptx::VariableId variable(ptx::VariableId source, uint32_t function, std::map<ptx::VariableId, ptx::VariableId>& own) {
    const ptx::Variable& v = from_.variables[source];
    const bool of_module = v.function == UINT32_MAX;
    if (const auto known = own.find(source); known != own.end()) return known->second;
    ptx::VariableId at = none<ptx::VariableId>();
    for (uint32_t k = 0; k < to_.variables.size() && of_module; ++k)
      if (to_.variables[ptx::VariableId{k}].name == v.name) at = ptx::VariableId{k};
    if (is_none(at)) {
      at = to_.variables.add(v);
      if (!of_module) to_.variables[at].function = function;
      to_.variables[at].visible = false;
    }
    return own[source] = at;
  }

  const Module& from_;
  Module& to_;
};

std::string function_of(Builtin builtin) {
  return fmt::format("__nv_{}", builtin == Builtin::power ? "pow"
                                : builtin == Builtin::mod ? "fmod"
                                                          : hir::row(builtin).name);
}

// result = name(arguments), all of type T.
template <class T>
Reg<T> call(Emitter& e, const std::string& name, std::initializer_list<Reg<T>> arguments) {
  const auto& functions = e.math->functions;
  const auto at = std::find_if(functions.begin(), functions.end(), [&](const Function& f) { return f.name == name; });
  CHECK(at != functions.end(), "no function {} in the PTX of libdevice", name);
  const uint32_t callee = Import(*e.math, e.module).function(static_cast<uint32_t>(at - functions.begin()));
  const auto variable = [&](std::string_view what) -> ptx::SharedVariable {
    return {e.module.variables.add({Space::param,
                                    T::type,
                                    fmt::format("{}_call{}_{}", e.code.name, e.math_calls, what),
                                    0,
                                    0,
                                    false,
                                    false,
                                    {},
                                    e.self})};
  };
  std::vector<Operand> sources{{.kind = Operand::function, .id = callee}};
  for (Reg<T> x : arguments) {
    const ptx::SharedVariable to = variable(fmt::format("argument{}", sources.size()));
    e.b.emit(Opcode::st, T::type, {.space = Space::param}, {}, {Address(to).operand, Builder::use(x)});
    sources.push_back({.kind = Operand::variable, .id = index(to.id)});
  }
  const ptx::SharedVariable result = variable("result");
  ++e.math_calls;
  const Operand destination{.kind = Operand::variable, .id = index(result.id)};
  if (sources.size() == 2)
    e.b.emit(Opcode::call, ptx::Type::none, {}, {destination}, {sources[0], sources[1]});
  else
    e.b.emit(Opcode::call, ptx::Type::none, {}, {destination}, {sources[0], sources[1], sources[2]});
  Reg<T> r = e.b.reg<T>();
  e.b.emit(Opcode::ld, T::type, {.space = Space::param}, {Builder::use(r)}, {Address(result).operand});
  return r;
}

}  // namespace

Element math(Emitter& e, Builtin builtin, std::span<const Element> x, BasicType result, Reg<Pred> mask) {
  if (!e.math) {
    refuse(e, fmt::format("{} without libdevice", hir::row(builtin).name), none<hir::StatementId>());
    return x[0];
  }
  const auto of = [&]<class T>(std::string_view suffix) {
    const auto argument = [&](size_t k) { return reg<T>(in_register(e, x[k])); };
    const auto name = [&](std::string_view f) { return fmt::format("{}{}", f, suffix); };
    Reg<T> r;
    if (builtin == Builtin::logb)  // logb(x, y): the logarithm of y to the base x
      r = e.b.div_rn(call<T>(e, name("__nv_log"), {argument(1)}), call<T>(e, name("__nv_log"), {argument(0)}));
    else if (x.size() == 2)
      r = call<T>(e, name(function_of(builtin)), {argument(0), argument(1)});
    else
      r = call<T>(e, name(function_of(builtin)), {argument(0)});
    return element(result, r, mask);
  };
  return rep_of(result) == Rep::f32 ? of.template operator()<F32>("f") : of.template operator()<F64>("");
}

}  // namespace rndn::codegen
