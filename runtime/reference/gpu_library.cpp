// The library calls of the module GPU (docs/horseir.md, "Builtins: the module GPU"),
// which outlined programs may hold, in terms of the builtins that they
// stand for. What the call leaves to its kernels (the order of order_lib, the predicates of joins) is read from the literals of
// the primitives in those kernels. The primitives themselves run in kernels only: they have no meaning here.
#include <algorithm>

#include "runtime/reference/builtins.h"

namespace rndn::reference {

using hir::Builtin;

namespace {

// The arguments behind the leading kernels.
Arguments data_of(Arguments a) {
  return a.subspan(static_cast<size_t>(
      std::find_if(a.begin(), a.end(), [](const Value& v) { return v.kind != Value::functions; }) - a.begin()));
}

// The first call of one of `primitives` in the kernels among the arguments; `function` is where it stands.
const hir::Expression* find_primitive(const Context& context, Arguments a, std::initializer_list<Builtin> primitives) {
  if (!context.program) return nullptr;
  for (const Value& v : a.first(a.size() - data_of(a).size()))
    for (const hir::FunctionRef& ref : v.functions_) {
      if (ref.kind != hir::FunctionRef::user) continue;
      for (const hir::Expression& e : context.program->functions[ref.function].expressions)
        if (e.kind == hir::Expression::call && e.callee.kind == hir::FunctionRef::builtin &&
            std::find(primitives.begin(), primitives.end(), e.callee.builtin_id) != primitives.end())
          return &e;
    }
  return nullptr;
}

Value literal_operand(const Context& context, const hir::Operand& operand) {
  return operand.kind == hir::Operand::literal
             ? from_literal(*context.program, context.program->literals[operand.literal_id()])
             : Value{};
}

Result<Value> order_lib(Context& context, Arguments a) {
  Arguments data = data_of(a);
  if (data.size() == 2) return invoke(context, Builtin::order, data);
  if (data.size() != 1) return input_error("`GPU.order_lib` expects data and an order behind its kernels");
  const hir::Expression* init = find_primitive(context, a, {Builtin::gpu_order_init});
  Value order = init && init->operands.size() == 2 ? literal_operand(context, init->operands[1]) : Value{};
  if (order.kind != Value::vector)
    return input_error("`GPU.order_lib` without an order expects a kernel whose `GPU.order_init` has it as a literal");
  const Value both[] = {data[0], order};
  return invoke(context, Builtin::order, both);
}

// The first rows of an order.
Result<Value> top_lib(Context& context, Arguments a) {
  ASSIGN_OR_RETURN(const Value rows, invoke(context, Builtin::order, a.first(2)));
  ASSIGN_OR_RETURN(const Value within,
                   invoke(context, Builtin::range,
                          std::array{vector_of<int64_t>(hir::BasicType::i64, {static_cast<int64_t>(rows.size)})}));
  ASSIGN_OR_RETURN(const Value first, invoke(context, Builtin::lt, std::array{within, a[2]}));
  return invoke(context, Builtin::compress, std::array{first, rows});
}

template <Builtin builtin, size_t arguments>
Result<Value> plain_lib(Context& context, Arguments a) {
  Arguments data = data_of(a);
  if (data.size() != arguments)
    return input_error("`GPU` library call expects {} values behind its kernels, got {}", arguments, data.size());
  return invoke(context, builtin, data);
}

Result<Value> join_lib(Context& context, Arguments a) {
  Arguments data = data_of(a);
  const hir::Expression* join = find_primitive(context, a, {Builtin::gpu_loop_join, Builtin::gpu_hash_join});
  if (!join || data.size() != 2)
    return input_error(
        "a join of the GPU library expects two operands and a kernel with `GPU.loop_join` or `GPU.hash_join`");
  std::vector<Value> arguments;
  for (const hir::Operand& operand : join->operands) {
    Value v = literal_operand(context, operand);
    if (v.kind == Value::functions) arguments.push_back(std::move(v));
  }
  arguments.insert(arguments.end(), data.begin(), data.end());
  return invoke(context, Builtin::join_index, arguments);
}

}  // namespace

std::span<const BuiltinEntry> gpu_library_builtins() {
  static constexpr BuiltinEntry entries[] = {
      {"GPU.order_lib", order_lib},
      {"GPU.top_lib", top_lib},
      {"GPU.group_lib", plain_lib<Builtin::group, 1>},
      {"GPU.unique_lib", plain_lib<Builtin::unique, 1>},
      {"GPU.loop_join_lib", join_lib},
      {"GPU.hash_join_lib", join_lib},
      {"GPU.hash_member_lib", plain_lib<Builtin::member, 2>},
      {"GPU.like_lib", plain_lib<Builtin::like, 2>},
      {"GPU.like_cache_lib", plain_lib<Builtin::like, 2>},
  };
  return entries;
}

}  // namespace rndn::reference
