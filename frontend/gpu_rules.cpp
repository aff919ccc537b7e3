// Types of the primitives of the module GPU (docs/horseir.md, "Builtins: the module GPU"):
// what stands in the kernels of library calls. A table gives for each
// how its arguments and results look; only kinds of values are checked, since these calls are written by the compiler.
#include <string_view>

#include "frontend/check_types.h"
#include "libraries/base/errors/check.h"

namespace rndn::hir {

namespace {

// Arguments, one letter each: f any number of functions, at least one; i an i64 vector; b bool; d data, a vector or a list of
// vectors. Results: i an i64 vector; l list<i64>; b bool; 0 1 ... the type of that data argument.
struct Primitive {
  Builtin builtin;
  std::string_view arguments, results;
};
constexpr Primitive primitives[] = {
    {Builtin::gpu_order_init, "db", "i0"},
    {Builtin::gpu_order, "idb", ""},
    {Builtin::gpu_order_shared, "idb", ""},
    {Builtin::gpu_group, "id", "ii"},
    {Builtin::gpu_unique, "id", "i"},
    {Builtin::gpu_loop_join_count, "fdd", "ii"},
    {Builtin::gpu_loop_join, "fddii", "l"},
    {Builtin::gpu_hash_join_create, "fd", "0i"},
    {Builtin::gpu_hash_join_count, "fdd", "ii"},
    {Builtin::gpu_hash_join, "fdidii", "l"},
    {Builtin::gpu_hash_member_create, "d", "0"},
    {Builtin::gpu_hash_member, "dd", "b"},
};

std::string expectation(std::string_view arguments) {
  std::string out;
  for (char c : arguments) {
    if (!out.empty()) out += ", ";
    out += c == 'f' ? "comparison functions" : c == 'i' ? "i64" : c == 'b' ? "bool" : "data";
  }
  return out;
}

}  // namespace

bool TypeChecker::apply_primitive(const Call& call, std::vector<TypeId>& results) {
  const Primitive* found = nullptr;
  for (const Primitive& p : primitives)
    if (p.builtin == call.builtin) found = &p;
  CHECK(found, "no row for `{}`", row(call.builtin).name);
  std::vector<TypeId> data;
  size_t at = 0;
  bool fits = true;
  for (char kind : found->arguments) {
    if (kind == 'f') {
      fits = fits && at < call.size() && call[at].type == types.function();
      while (at < call.size() && call[at].type == types.function()) ++at;
      continue;
    }
    if (at >= call.size()) {
      fits = false;
      break;
    }
    TypeId type = call[at++].type;
    TypeKind of = types[type].kind;
    switch (kind) {
      case 'i': fits = fits && type == types.basic(BasicType::i64); break;
      case 'b': fits = fits && type == types.basic(BasicType::boolean); break;
      default:
        fits = fits && (of == TypeKind::basic || of == TypeKind::list || of == TypeKind::tuple);
        data.push_back(type);
    }
  }
  if (!fits || at != call.size()) {
    mismatch(call, expectation(found->arguments));
    return false;
  }
  for (char kind : found->results)
    results.push_back(kind == 'i'   ? types.basic(BasicType::i64)
                      : kind == 'b' ? types.basic(BasicType::boolean)
                      : kind == 'l' ? types.list(types.basic(BasicType::i64))
                                    : data[static_cast<size_t>(kind - '0')]);
  return true;
}

}  // namespace rndn::hir
