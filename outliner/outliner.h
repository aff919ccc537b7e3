// From a typed program to a host program plus kernels: shapes, dependences, geometry, fusion, rewriting. pipeline.cpp shows the passes.
#pragma once
#include <string>
#include <vector>

#include "frontend/ir.h"
#include "libraries/base/errors/diagnostic.h"
#include "libraries/base/containers/inline_vector.h"
#include "libraries/base/report/timing.h"

namespace rndn::outliner {

// --- Sizes and shapes --------------------------------------------------------------------------------------------------------

enum class SizeId : uint32_t {};    // interned: equal sizes have equal ids
enum class ObjectId : uint32_t {};  // a data object: every assignment of a new value makes one, copies pass it on

struct Size {
  enum Kind : uint8_t { init, constant, symbol, compressed, dynamic } kind = init;
  int64_t value = 0;                   // constant
  NameId name = none<NameId>();        // symbol, such as "data.lineitem.rows"
  ObjectId object = none<ObjectId>();  // compressed: the mask; dynamic: what made it
  uint32_t tag = 0;                    // dynamic: distinguishes several sizes of one call
  SizeId base = none<SizeId>();        // compressed: size before compression
  bool operator==(const Size&) const = default;
};

enum class ShapeId : uint32_t {};  // interned like sizes

struct Shape {
  enum Kind : uint8_t { wild, vector, list, table, dict, enumeration, ktable } kind = wild;
  SizeId size = none<SizeId>();    // vector, list: length; table: rows
  SizeId size2 = none<SizeId>();   // table: columns
  InlineVector<ShapeId, 2> parts;  // list: cell shapes (one = all alike); dict, enumeration, ktable: the two sides
  bool operator==(const Shape&) const = default;
};

class ShapeTable {
 public:
  SizeId intern(const Size& size);
  ShapeId intern(const Shape& shape);
  const Size& operator[](SizeId id) const { return sizes_[id]; }
  const Shape& operator[](ShapeId id) const { return shapes_[id]; }
  SizeId constant(int64_t n) { return intern(Size{.kind = Size::constant, .value = n}); }
  ShapeId vector(SizeId size) {
    if (index(size) < vectors_.size() && !is_none(vectors_[size])) return vectors_[size];
    return intern_vector(size);
  }
  ShapeId scalar() {
    if (is_none(one_)) one_ = constant(1);
    return vector(one_);
  }
  // A new data object; `name` is the variable that first held it, for printing.
  ObjectId add_object(NameId name) { return objects_.add(name); }
  NameId object_name(ObjectId id) const { return objects_[id]; }
  // "data.lineitem.rows", "comp(t5, data.lineitem.rows)". Of bounded length: of long chains and deep shapes, the ends.
  std::string text(SizeId id, const hir::Program& program) const;
  std::string text(ShapeId id, const hir::Program& program) const {  // "vector<data.lineitem.rows>"
    return text(id, program, 0);
  }

 private:
  ShapeId intern_vector(SizeId size);
  std::string text(ShapeId id, const hir::Program& program, size_t level) const;

  IdVector<SizeId, Size> sizes_;
  IdVector<ShapeId, Shape> shapes_;
  std::vector<uint32_t> size_slots_, shape_slots_;  // hash tables of ids, a power of two in size; UINT32_MAX: free
  IdVector<SizeId, ShapeId> vectors_;               // of that size, as far as they were asked for
  SizeId one_ = none<SizeId>();
  IdVector<ObjectId, NameId> objects_;
};

inline bool is_scalar(const ShapeTable& shapes, ShapeId id) {
  if (is_none(id) || shapes[id].kind != Shape::vector) return false;
  const Size& size = shapes[shapes[id].size];
  return size.kind == Size::constant && size.value == 1;
}

// --- Result -------------------------------------------------------------------------------------------------------------------

// One outlined kernel: a `kernel` function of the outlined program, and what the analyses know of it.
struct Kernel {
  hir::FunctionId function{};
  SizeId
      geometry{};  // threads: one per element of a vector of this size; list: of all cells of a list of this many cells
  bool list = false;  // list geometry: geometry_variable is a list parameter
  bool assumes =
      false;  // that parameters of one size are equally long is not proven for all: to be compared before a launch
  bool looks = false;  // an operator before it may have gone on with a count that a run foresaw: to be passed by where that is wrong
  hir::VariableId
      geometry_variable{};  // a vector parameter (or, for none, none) whose length is the geometry at run time
  IdVector<hir::VariableId, ShapeId> shapes;  // of every variable of the kernel
  std::vector<ShapeId> result_shapes;         // in order of the kernel's results; Compressed: bounded by its base
  std::vector<hir::VariableId> by_value;      // parameters that stand for a number of the program: passed in its place
  std::vector<hir::StatementId>
      statements;  // of main, after calls of functions were replaced, that the kernel computes
};

// Why a statement runs where it does, or why two kernels were or were not made one. For `rndn explain` and tests.
struct Decision {
  NameId first = none<NameId>();   // the statement's first target, or none
  NameId second = none<NameId>();  // fusion: the first target of the other kernel
  bool fused = false;
  std::string_view why;  // static text
  hir::StatementId first_at =
      none<hir::StatementId>();  // those statements, in main after calls of functions were replaced
  hir::StatementId second_at = none<hir::StatementId>();  // none: about one statement
};

struct Outlined {
  hir::Program program;         // host `main` (calls kernels) plus kernels; prints as valid HorseIR
  std::vector<Kernel> kernels;  // in call order
  bool assumes_on_host =
      false;  // a statement of main that stays there has operands that are only assumed to be equally long
  ShapeTable shapes;
  std::vector<Decision> decisions;  // with Options::explain
  // Numbers of the joins that are look-ups: `program` is right only where GPU.probe with one of these numbers finds no key twice.
  std::vector<uint32_t> joins;
  std::vector<uint32_t> whole_joins;  // of these, those that look among all rows of a table, of which a mask says which count
  // Numbers of the groups that are reductions of kernels: GPU.fold. All of one number stand in one kernel.
  std::vector<uint32_t> folds;
  std::vector<uint32_t> float_folds;  // of these, those that sum floats: `program` is right only where all numbers have parts (GPU.sum_part)
  bool groups_ascend = false;  // `program` relies on groups that come by their keys
  // Calls on cells became calls on vectors (outliner/lists): where one fails, the program as it was says what is wrong.
  bool flattened = false;
  std::vector<uint32_t> not_folded;  // that stayed, as the options say and because they did not fit one kernel
};

enum class Mode : uint8_t { none, flow, full };  // --outline: a kernel per statement; pipelines only; all fusions

struct Options {
  Mode mode = Mode::full;
  bool text_codes = true;  // text columns are dictionary codes on the device, so that text equality is a GPU operation
  bool math = true;        // code generation has the functions of libdevice
  // A kernel that reduces the cells of a list also takes in what is done to vectors with an element per cell. Not wanted where an operator is to take
  // the place of such kernels.
  bool beside_cells = true;
  bool tops = true;  // an order of which only the first rows are looked at becomes GPU.top_lib (top.cpp)
  bool lists = true;  // calls on the cells of lists that have no kernel become calls on vectors (outliner/lists)
  bool joins = true;  // joins by unique keys and membership become GPU.probe (joins.cpp)
  std::vector<uint32_t> not_unique;  // joins, by number, whose left keys are known to repeat, or to be too wide: they stay
  std::vector<uint32_t> not_whole;   // joins, by number, with some rows of a table whose keys are not known to differ: no look-up among all rows
  // Numbers that elements are compared with, added to or multiplied by are passed to kernels, so that programs which differ in them share code.
  bool numbers_as_parameters = false;
  bool exact_sums = false;           // sums of floats are an operator's, which takes more bits than kernels do
  bool sinks = false;  // groups of which only reductions are asked become GPU.fold (sinks.cpp); with Mode::full
  std::vector<uint32_t> not_folded;  // groups, by number, that stay
  std::vector<uint32_t> folds_apart;  // folds, by number, whose keys and values are stored before a kernel of their own folds them
  bool explain = true;  // Outlined::decisions are made
};

Outlined run(const hir::Program& program, const Options& options, DiagnosticSink& sink, Timings& timings);

}  // namespace rndn::outliner
