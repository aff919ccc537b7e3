// What the files of code generation share: the state of one kernel while its PTX is written. Private to this folder.
//
// Shape of a kernel:
//   prologue   parameters, element count n, scalars and constants (every thread computes them)
//   tile loop  tile = block_size * items elements; block b takes the tiles b, b + grid, ... An item is one element of a thread; the items of a
//              thread lie block_size apart, so that every load of a warp is contiguous. All loads of a tile come first; then the
//              statements, item by item (few predicates are live at a time). The last, partial tile takes the same code: loads and effects
//              of an item are guarded by its being within n
//   epilogue   reductions: thread -> warp -> block -> last block
// Numbers of elements, tiles and rows are below 2^32 (data::longest_vector), so that an address is one wide multiply-add.
#pragma once
#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "frontend/builtins.h"
#include "libraries/base/containers/flat_map.h"
#include "ptx/builder.h"
#include "ptx/codegen/codegen.h"
#include "ptx/encodings/encodings.h"
#include "ptx/lookup/lookup.h"

namespace rndn::codegen {

using hir::BasicType;
using hir::Builtin;
using ptx::Address;
using ptx::Builder;
using ptx::Condition;
using ptx::F32;
using ptx::F64;
using ptx::Operand;
using ptx::Pred;
using ptx::Reg;
using ptx::RegisterId;
using ptx::S32;
using ptx::S64;
using ptx::Space;
using ptx::U32;
using ptx::U64;

// --- elements.cpp: how values live in registers and in memory -----------------------------------------------------------------

using encodings::Cursor;
using encodings::Rep;
using encodings::rep_of;
using encodings::Stored;
// Bytes of a value in registers. Only ptx/encodings knows how many it has in memory.
inline uint32_t width_of(BasicType type) { return hir::row(type).device_width; }
int64_t float_bits(BasicType type, double v);
// The least and the greatest number of a type in integer registers; codes of text and calendar values: of 32 or 64 bits.
std::pair<int64_t, int64_t> range_of(BasicType type);

// Calls f.operator()<T>() with the builder's type of `rep`.
template <class F>
decltype(auto) with_rep(Rep rep, F&& f) {
  switch (rep) {
    case Rep::pred: return f.template operator()<Pred>();
    case Rep::s32: return f.template operator()<S32>();
    case Rep::s64: return f.template operator()<S64>();
    case Rep::f32: return f.template operator()<F32>();
    case Rep::wide: CHECK(false, "two registers as one");
    case Rep::f64:
    case Rep::complex: break;
  }
  return f.template operator()<F64>();
}
// The same for real numbers only: `rep` is neither pred, complex nor wide.
template <class F>
decltype(auto) with_number(Rep rep, F&& f) {
  switch (rep) {
    case Rep::s64: return f.template operator()<S64>();
    case Rep::f32: return f.template operator()<F32>();
    case Rep::f64: return f.template operator()<F64>();
    case Rep::complex:
    case Rep::wide: CHECK(false, "two registers as one");
    case Rep::pred:
    case Rep::s32: break;
  }
  return f.template operator()<S32>();
}

// One element: a register or an immediate, of a type, perhaps deselected by a mask.
struct Element {
  BasicType type{};
  Operand value;         // of a complex number: the real part, in a register; of i128: the low half, or all of an immediate
  Reg<Pred> mask;        // not valid: always selected. The tile's bound is not in it
  Reg<F64> imaginary{};  // of a complex number
  Reg<S32> stored{};     // of a bool that comes from memory: it as 0 or 1
  Reg<S64> high{};       // of an i128 in registers: the high half
  Reg<S32> low{};        // of an i64 that lies in 32 bits or fewer in memory: the same number
  bool immediate() const { return value.kind == Operand::immediate; }
};

// Constants that PTX should not see as immediates where they are used: 64-bit patterns that SASS cannot hold in an instruction.
bool fits_immediate(Rep rep, int64_t bits);

struct Emitter;

// Facts per step or variable; those of most kernels fit without an allocation.
using Marks = InlineVector<uint8_t, 64>;
inline Marks marks(size_t n) {
  Marks m;
  m.resize(n);
  return m;
}

// Of one call.
inline constexpr uint32_t most_arguments = 14;
using Arguments = InlineVector<Element, most_arguments>;
using ArgumentTypes = InlineVector<BasicType, most_arguments>;

template <class T>
Reg<T> reg(const Element& e) {
  return {static_cast<RegisterId>(e.value.id)};
}  // requires a register
template <class T>
Element element(BasicType type, Reg<T> r, Reg<Pred> mask = {}) {
  return {type, Builder::use(r), mask};
}

inline Element complex_element(Reg<F64> real, Reg<F64> imaginary, Reg<Pred> mask) {
  return {BasicType::complex, Builder::use(real), mask, imaginary};
}

inline Element wide_element(Reg<U64> low, Reg<S64> high, Reg<Pred> mask) {
  Element x{BasicType::i128, Builder::use(low), mask};
  x.high = high;
  return x;
}

Element literal_element(Emitter& e, const hir::Literal& literal);
Element constant_element(BasicType type, int64_t bits);
Element convert(Emitter& e, Element from, BasicType to);  // docs/horseir.md, "check_cast"; keeps the mask
// An operand of type T: a register, or an immediate that SASS can hold in an instruction.
template <class T>
ptx::Value<T> source(Emitter& e, const Element& x);
Element in_register(Emitter& e, Element from);  // an immediate becomes a register (from the prologue when it is there)
Element normalise(Emitter& e, Element x);       // wraps i8, i16 and char to their width

template <class T>
ptx::Value<T> source(Emitter& e, const Element& x) {
  ptx::Value<T> v{Reg<T>{}};
  v.operand = !x.immediate() || fits_immediate(rep_of(x.type), x.value.value) ? x.value : in_register(e, x).value;
  return v;
}
template <class T>
ptx::Value<T> immediate(const Element& x) {  // for moves, which take any constant
  ptx::Value<T> v{Reg<T>{}};
  v.operand = x.value;
  return v;
}

// --- The kernel ---------------------------------------------------------------------------------------------------------------

struct Input {  // a vector (or list) parameter with one element per thread
  hir::VariableId variable{};
  BasicType type{};
  Stored stored{};
  ptx::ParameterOf<U64> data{};
  Cursor at;                      // this thread's first element of the current tile
  bool wanted = true;             // by the loop that is being written
  std::optional<uint32_t> guard;  // of Emitter::guards: it is loaded where that holds
  bool loaded = false;            // the items are, in the code that has been written
  InlineVector<encodings::Words, 4> items;   // loaded
};

struct Output {  // a result
  uint32_t ordinal = 0;
  hir::VariableId variable{};
  BasicType type{};
  // reduced: one element, at the end of the kernel; cells, rows: one element per cell of the list, by their forms; scattered: written by an index_a
  // folded: an entry per possible key
  enum Kind : uint8_t { scalar, vector, compressed, reduced, cells, rows, scattered, folded } kind = scalar;
  bool list = false;  // the result is a list: its size slot holds its cells
  Stored stored{};    // vector, compressed; others are plain
  ptx::ParameterOf<U64> data{}, size{};
  Cursor at;                       // vector: as of an input
  InlineVector<Element, 4> items;  // of what the loop that is being written stores: in storable form
};

// A vector parameter that is read at computed positions.
struct Gathered {
  Stored stored{};
  ptx::ParameterOf<U64> data_at{}, size_at{};
  bool narrow = false;  // some positions are of 32 bits
  Reg<U64> data, size;
  Reg<U32> size32;  // at most 2^31, so that negative positions are outside
  void load(Builder& b) {
    data = b.ld_param(data_at);
    size = b.ld<U64>(Space::global, Address(b.ld_param(size_at)));
    if (narrow) size32 = b.min(b.cvt<U32>(size), 0x80000000u);
  }
};

// A table that a GPU.probe asks.
struct Lookup {
  hir::StatementId step{};
  std::vector<hir::VariableId> columns;        // of the left side
  std::vector<Stored> stored;                  // of theirs
  std::vector<ptx::ParameterOf<U64>> data;     // of theirs
  std::optional<hir::VariableId> mask;         // which rows of the left side count
  Stored mask_stored;
  ptx::ParameterOf<U64> mask_data;
  std::vector<ptx::ParameterOf<U64>> words;    // ptx/lookup/lookup.h
  Reg<U32> count;                              // of its slots
  uint8_t known = 0;                           // KernelEncodings::lookups
  bool filtered = false;                       // there as well
  Reg<U32> shift;                              // of its filter
  void load(Builder& b);
  bool is_hashed() const { return columns.size() > lookup::most_shifted; }
};

// The reductions of one grouping (sink.cpp).
struct Fold {
  hir::VariableId result{}, values{};
  Builtin reduce{};
  BasicType type{};       // of the result
  bool position = false;  // the least position: the values are rows
  std::optional<size_t> part = {};  // the sum of that part of floats (GPU.sum_part)
  uint32_t output = 0;    // into Emitter::outputs; UINT32_MAX: nobody reads it
};
struct Sink {
  int64_t number = 0;
  std::vector<hir::VariableId> keys;
  std::vector<Fold> folds;
  std::vector<uint8_t> key_word;  // KernelEncodings::hashed
  std::vector<ptx::ParameterOf<U64>> words;
  int64_t shared_at = 0;  // bytes, in sink_shared
  uint32_t slots = 0;     // hashed: of the block's own table, whose keys come first there
  bool hashed() const { return !key_word.empty(); }
  uint32_t word_count() const {  // of its parameters
    return sink_keys + words_per_key * static_cast<uint32_t>(keys.size()) + (hashed() ? uint32_t{hash_words} : 0);
  }
  uint32_t hash_word(uint32_t word) const { return word_count() - hash_words + word; }
};

// One accumulator of a reduction. Threads start from `identity`.
struct Accumulator {
  enum Kind : uint8_t { add, min, max, any, all } kind = add;
  BasicType type{};    // of the accumulated values: i32 counts become i64 at the end of the tile loop
  bool count = false;  // counts selected elements; the value is not read
  hir::VariableId argument{};
  uint8_t part = 0;  // a sum of floats is three accumulators in a row, its high, low and error (ptx/sums/exact_sum.h)
  InlineVector<RegisterId, 2> registers;  // independent partial results of a thread
  Element total;                          // after the tail, in every thread of the last block
};

struct Reduction {
  hir::VariableId result{};
  hir::VariableId argument{};
  Builtin builtin{};
  BasicType type{};            // of the result
  int sum = -1, counter = -1;  // indices of accumulators; counter -1 in len and avg: all n elements count
};

// A reduction of every cell of a list.
struct CellReduction {
  hir::VariableId result{};
  hir::VariableId argument{};
  Builtin builtin{};
  BasicType type{};                       // of the reduction, before casts
  std::vector<Accumulator> accumulators;  // at most two, and parts
  int value = -1;                         // index into accumulators; -1: a len
  int count = -1;                         // of the selected elements; -1: all count
  struct Store {
    uint32_t output;                     // index into Emitter::outputs
    std::vector<BasicType> conversions;  // on the way to it
  };
  std::vector<Store> stores;
};

using Masks = InlineVector<hir::Operand, 4>;

// The positions of selected elements among all selected ones: one per mask whose selection is stored.
struct Scan {
  outliner::SizeId size{};  // of the selected vector: equal sizes, equal mask
  std::vector<uint32_t> outputs;
  Masks masks;                      // its elements are those where all of them hold; unused when `evaluate`
  bool evaluate = false;            // the mask is known by evaluating the first output
  Marks wanted, needed;             // by step and by variable: evaluated, read for the selected elements
  // The elements themselves, not their positions, go to shared memory: all that the one output reads is there when the masks are evaluated.
  bool early = false;
  uint32_t unit = 2;      // bytes of a position, or of such an element
  int64_t shared_at = 0;  // where the tile's begin in shared memory
  Reg<U32> cursor;        // where the warp's next selected one goes, less shared_at
};

// What a variable of the kernel is to a thread.
enum class Form : uint8_t {
  scalar,    // computed once by every thread, before the loop
  element,   // one element per item
  selected,  // a lazily masked selection of the items
  cell,      // one element per cell of the list, reduced from it
  row,       // one element per cell of the list, of vectors that lie beside it
  reduced,   // one element, known at the end of the kernel
  copy,      // result of an index_a: starts as a copy of a parameter
};

// A statement of the kernel, looked at once.
struct Step {
  hir::StatementId id{};
  hir::VariableId target{};
  InlineVector<hir::Operand, 2> operands;  // of the innermost operand or call; without the function of the each family
  InlineVector<BasicType, 4> casts;        // inner to outer
  bool call = false;
  Builtin builtin{};    // of the each family: its function. raze is a copy
  BasicType result{};   // element type of the call, before casts
  bool scalar = false;  // of Form::scalar
  bool reduction = false;
  uint32_t place = UINT32_MAX;  // number of its KernelCode::Place; UINT32_MAX: it has none
};

// A predicate of the current item that is a comparison, or a conjunction of comparisons each of which takes the one before it in.
struct Conjunction {
  hir::VariableId variable{};
  RegisterId result{};
  uint32_t comparisons = 1;  // 2: or more
  uint32_t head =
      UINT32_MAX;  // instruction of the first comparison, which can take one more condition in; UINT32_MAX: none
};

// Conditions of the elements that must hold for what is read at computed places (guards.cpp).
struct Guard {
  InlineVector<hir::VariableId, 6> conditions;
  size_t stage = 0;                 // 0: they follow from the loaded elements
  Marks steps;                      // that they follow from, after early ones that read memory
  InlineVector<Reg<S32>, 8> items;  // for every item of the tile: 1 where all hold and it is within n, else 0
};

// When an element of a tile may count (skips.cpp): where a column's element compares so with a scalar, or all or any of others may hold.
struct Test {
  enum Kind : uint8_t { compares, all, any } kind = compares;
  uint32_t parameter = 0;  // of the kernel
  Builtin builtin{};
  uint32_t column_at = 0;  // which of its operands is the column's
  hir::Operand scalar{};   // the other
  std::vector<Test> parts;
  bool operator==(const Test& other) const;
};
struct TileBounds {
  uint32_t parameter = 0;  // of the kernel
  ptx::ParameterOf<U64> data{};
  Reg<U64> at;  // of the tile's first vector
};

using Conditions = decltype(Guard::conditions);

struct Emitter {
  const outliner::Outlined& outlined;
  const outliner::Kernel& kernel;
  const hir::Program& program;
  const hir::Function& function;
  ptx::Module& module;
  Builder b;
  KernelCode& code;
  uint32_t kernel_index = 0;
  KernelEncodings encodings{};

  // Geometry of the tile.
  uint32_t bytes_in_flight = 32;  // wanted per thread
  bool notes_work = false;        // Options::notes_work
  uint32_t items = 1;             // that are evaluated side by side
  uint32_t scan_items = 16;       // elements of a thread per tile of a scan
  uint32_t block_size = 256;
  uint32_t stride = 256;  // elements from an item of a thread to its next
  uint32_t local_offset(uint32_t item) const { return item * stride; }

  std::vector<Step> steps;
  Marks definitions;            // by kernel variable: steps that define it, and 1 for a parameter; 2: or more
  std::vector<Form> forms;      // by kernel variable
  Marks low;                    // by kernel variable: Element::low is there
  std::vector<Element> values;  // by kernel variable: scalars, and vectors for the current item
  std::vector<Input> inputs;
  FlatMap<hir::VariableId, Gathered> gathered;
  std::vector<Lookup> lookups;
  std::vector<Guard> guards;                             // of the loop that is being written
  FlatMap<hir::StatementId, uint32_t> guard_of;  // which of them a step has
  std::optional<uint32_t> guard_of_items;        // which of them an item has that is only accumulated
  std::vector<Output> outputs;
  std::vector<Accumulator> accumulators;
  std::vector<Reduction> reductions;
  std::vector<CellReduction> cell_reductions;
  std::vector<Sink> sinks;
  ptx::SharedVariable sink_shared{};
  uint32_t cell_slots = 0;  // accumulators of theirs
  std::vector<Scan> scans;
  std::optional<Test> test;        // none: no tile is skipped
  std::vector<TileBounds> bounds;  // that it reads
  FlatMap<std::pair<Rep, int64_t>, RegisterId> constants;  // in registers since the prologue
  ptx::ParameterOf<U64> scratch{}, error{}, sum_flags{}, differs{};
  bool has_scratch = false, has_error = false;
  Reg<Pred> huge;                   // sums::note_huge; not valid: no sums of floats
  Reg<Pred> no_parts;               // sums::note_large, note_rest, of what sinks add; not valid: no parts
  Reg<U64> n;                       // elements
  Reg<U64> cells;                   // of the geometry's list
  ptx::ParameterOf<U64> offsets{};  // of the geometry's list
  Reg<U32> n32;                     // n, in 32 bits
  Reg<S32> room;                    // elements of the tile from this thread's first on; may be negative
  Reg<U32> worst;                   // the largest ErrorWord so far; 0: none
  Reg<U32> tid, ctaid, nctaid;
  Reg<U64> first_index;    // element index of this thread's first item; when wanted
  // Of collected elements (collect.cpp): the conditions, which hold; per item its element's number, and its place in the tile.
  Conditions given;
  InlineVector<Reg<U32>, 4> numbers, places;
  uint32_t item = 0;       // current item
  bool all_valid = false;  // every item of the tile is within n
  bool in_loop = false;
  bool guards_items = false;          // what every item does is guarded by its being within n
  bool selected = false;              // the elements are those of a selection: masks hold
  ptx::SharedVariable scan_shared{};  // see compress.cpp
  Reg<U32> lane, warp, lanes_below, segment;
  Reg<U32> tile_number, tiles;
  InlineVector<Reg<Pred>, 4> within;                     // items within n, as far as they are kept
  Reg<Pred> valid;                                       // the current item is within n
  std::vector<std::pair<RegisterId, Reg<Pred>>> active;  // mask -> mask and valid, for the current item
  std::vector<Conjunction> conjunctions;                 // of the current item
  std::vector<uint32_t> reads;                           // by kernel variable: operands and results that are it
  uint32_t self = 0;                                     // the entry's index in the module
  const ptx::Module* math = nullptr;                     // the functions of libdevice, if there are any
  uint32_t math_calls = 0;                               // so far
  size_t noted_instructions = 0;                         // so far, of the loops (work.cpp)
  std::string problem;                                   // the first operation without GPU code
  hir::StatementId problem_at = none<hir::StatementId>();

  const hir::Variable& variable(hir::VariableId v) const { return function.variables[v]; }
  Form form(hir::VariableId v) const { return forms[index(v)]; }
  Form form(const hir::Operand& o) const { return o.kind == hir::Operand::variable ? forms[o.id] : Form::scalar; }
  BasicType basic(hir::TypeId t) const {  // of a list: of its elements
    while (!program.types->is_basic(t) && !(*program.types)[t].components.empty())
      t = (*program.types)[t].components[0];
    return program.types->basic_of(t);
  }
  BasicType type_of(hir::VariableId v) const { return basic(variable(v).type); }
  // How the elements of a parameter lie in memory.
  Stored stored(hir::VariableId parameter) const;
};

// The predicate under which the current item counts for something with that mask; in the prologue: always (an invalid register).
Reg<Pred> active(Emitter& e, Reg<Pred> mask);
Reg<Pred> both(Emitter& e, Reg<Pred> a, Reg<Pred> b);  // conjunction; an invalid register is `true`

// Notes `error` of a statement when `bad` holds; the kernel's end puts the largest of all threads into the error word.
void report_error(Emitter& e, Reg<Pred> bad, uint32_t statement, RuntimeError error);

// --- plan.cpp -----------------------------------------------------------------------------------------------------------------

// Fills steps and forms. False, with `problem` set, when the kernel has a shape that code generation does not know.
bool plan_steps(Emitter& e);
// The operand is read whole, at computed positions, not element by element.
bool reads_whole(const Step& step, size_t operand);
bool masks(const Step& step, size_t operand);  // the operand selects elements
bool is_inside(const Emitter& e, const Step& step);  // what it reads at computed places lies within the vector (KernelEncodings::inside)
bool can_fail(const Emitter& e, const Step& step);
void refuse(Emitter& e, std::string what, hir::StatementId at);  // the first problem stays

// --- work.cpp -----------------------------------------------------------------------------------------------------------------

// What the loop reads whose guards are there; of a selection's elements where that is of one of its results.
void note_reads(Emitter& e, const Marks& wanted, std::optional<hir::VariableId> selected);
// The instructions since that one, for so many elements; `noted`: e.noted_instructions at that one.
void note_instructions(Emitter& e, size_t first, size_t noted, uint32_t elements,
                       std::optional<hir::VariableId> selected);
// What is stored and folded.
void note_results(Emitter& e);

// --- kernel.cpp ---------------------------------------------------------------------------------------------------------------

void run_step(Emitter& e, const Step& step);  // for the current item, or in the prologue
// Steps from which the variables marked in `needed` follow; marks those that they read. `selected`: of a selection's elements, for which no mask is read.
Marks steps_for(const Emitter& e, Marks& needed, bool selected);
// How many items a loop over them evaluates side by side.
uint32_t items_of(const Emitter& e, const Marks& steps);
bool reads_positions(const Emitter& e, const Marks& steps);

Element operand_element(Emitter& e, const hir::Operand& operand);

// --- probe.cpp ----------------------------------------------------------------------------------------------------------------

// The right side's elements of an item, and where it counts.
struct ProbeItem {
  std::vector<Element> key;
  Reg<Pred> mask;    // of the elements
  Reg<Pred> wanted;  // not valid: always
};
void plan_lookup(Emitter& e, const Step& step);
void plan_fields(Emitter& e);  // KernelCode::Lookup::fields, once all is planned
const Lookup& lookup_of(const Emitter& e, const Step& step);
ProbeItem probe_item(Emitter& e, const Step& step);  // of the current item
// i64 per item, side by side: the row, or -1.
std::vector<Element> look_up(Emitter& e, const Lookup& lookup, std::span<const ProbeItem> items);

// --- items.cpp ----------------------------------------------------------------------------------------------------------------

using EarlyResults = InlineVector<Element, 8>;  // of a variable, for every item

// How the items of a tile are evaluated.
struct ItemPlan {
  InlineVector<const Step*, 32> late;            // item by item
  FlatMap<hir::VariableId, EarlyResults> early;  // already evaluated
};
// Evaluates chains of gathers among the marked steps for all items of the tile, whose inputs are loaded.
ItemPlan start_items(Emitter& e, const Marks& wanted_steps, const Marks& early_steps);
// Which of the wanted steps are evaluated for all items before any other.
Marks early_steps(const Emitter& e, const Marks& wanted_steps);
void evaluate_item(Emitter& e, const ItemPlan& plan);  // the rest of the steps, for the current item

// --- guards.cpp ---------------------------------------------------------------------------------------------------------------

// Fills guards and guard_of, and the guards of inputs.
void find_guards(Emitter& e, const Marks& wanted_steps, const Marks& early_steps);
void drop_guards(Emitter& e);                              // at the end of the loop
// The conditions of stage 0 that hold for all elements that the loop has a use for; notes which places are read everywhere.
Conditions conditions_of_all(Emitter& e, const Marks& wanted_steps, const Marks& early_steps);
void note_guard(Emitter& e, Guard& guard);                 // of the current item, whose conditions are evaluated
Reg<Pred> guard_of(Emitter& e, hir::StatementId step);  // for the current item; not valid: none

// --- cells.cpp ----------------------------------------------------------------------------------------------------------------

void plan_cells(Emitter& e);  // fills cell_reductions
uint32_t cell_scratch_bytes(
    const Emitter& e);           // per block; 0: the kernel reduces no cells, or only counts their elements
void store_lengths(Emitter& e);  // len of every cell
void reduce_cells(Emitter& e);   // all other reductions

// --- map.cpp ------------------------------------------------------------------------------------------------------------------

// The type that operand k of an element-wise builtin is converted to.
BasicType operand_type(Builtin builtin, std::span<const BasicType> arguments, size_t k, BasicType result);
// One element of an element-wise builtin. statement: for the error word.
Element element_wise(Emitter& e, Builtin builtin, std::span<const Element> arguments, BasicType result,
                     uint32_t statement);

// --- complex.cpp --------------------------------------------------------------------------------------------------------------

// One element of conj, pi, mul, div, eq, neq of complex numbers.
Element complex_wise(Emitter& e, Builtin builtin, std::span<const Element> arguments, Reg<Pred> mask);

// --- wide.cpp -----------------------------------------------------------------------------------------------------------------

// One element of abs, neg, plus, minus, mul, div and of the comparisons of i128.
Element wide_wise(Emitter& e, Builtin builtin, std::span<const Element> arguments, Reg<Pred> mask, uint32_t statement);
Element to_wide(Emitter& e, const Element& x);                    // from any real number, in registers
Element from_wide(Emitter& e, const Element& x, BasicType to);  // to any real number

// --- math.cpp -----------------------------------------------------------------------------------------------------------------

// One element of it; the arguments are of the result's type.
Element math(Emitter& e, Builtin builtin, std::span<const Element> arguments, BasicType result, Reg<Pred> mask);

// --- calendar.cpp -------------------------------------------------------------------------------------------------------------

// One element of date, time, date_year .. date_day, time_hour .. time_mill.
Element calendar_part(Emitter& e, Builtin builtin, const Element& x, BasicType result);
// One element of datetime_add (sign 1) or datetime_sub (-1): x moved by k of that unit.
Element calendar_shift(Emitter& e, const Element& x, const Element& k, std::string_view unit, int sign);

// --- memory.cpp ---------------------------------------------------------------------------------------------------------------

void start_input_items(Emitter& e, bool zero);  // fresh registers for Input::items
// Those inputs that the guard keeps back, for all items.
void load_guarded_inputs(Emitter& e, uint32_t guard);
// One item of an input from `beyond` elements behind where its cursor stands.
void load_input(Emitter& e, Input& in, uint32_t item, int64_t beyond, Reg<Pred> guard);
Element input_item(Emitter& e, const Input& in, uint32_t item);  // a bool: without a value yet
void load_all_items(Emitter& e);              // every item is within n
void load_items(Emitter& e);                  // items beyond n stay as they are
void store_outputs(Emitter& e);               // Output::items of the tile, kind vector
Reg<Pred> within(Emitter& e, uint32_t item);  // the item is within n
Element storable(Emitter& e, Element x);      // bool as 0 or 1 in s32; immediates in registers; no mask
// The element at position `at` of a gathered parameter; a position outside gives zero and is reported as the statement's error. With `bad`,
// positions outside are only noted there, and a bool comes as an i8 of 0 or 1, which waits for no load. `inside`: none can be outside.
Element gather(Emitter& e, hir::VariableId vector, const Element& at, uint32_t statement, Reg<Pred>* bad = nullptr,
               Reg<Pred> guard = {}, bool inside = false);
Element load_scalar(Emitter& e, BasicType type, const Stored& stored, Reg<U64> address);
// Where a reading or writing of a vector at that row begins.
Cursor place(Emitter& e, BasicType type, const Stored& stored, Reg<U64> base, Reg<U32> row);
void advance(Emitter& e, BasicType type, const Stored& stored, Cursor& at, uint32_t rows);
// x: storable. A single element, in the plain form; the element of a vector that lies `beyond` rows
// behind the cursor; and in shared memory, in the vector's form.
void store_element(Emitter& e, const Element& x, Reg<U64> address, Reg<Pred> guard);
void store_element(Emitter& e, const Output& out, const Element& x, int64_t beyond, Reg<Pred> guard);
void store_shared(Emitter& e, const Output& out, const Element& x, Reg<U32> address, int64_t offset,
                  Reg<Pred> guard);
uint32_t stored_bytes(const Output& out);  // of an element
// From shared to global memory.
void copy_element(Emitter& e, const Output& out, Address from, Address to, Reg<Pred> guard);

// The element of that row where `guard` holds (always when it is invalid), else any.
Element load_where(Emitter& e, BasicType type, const Stored& stored, Reg<U64> base, Reg<U32> row,
                   Reg<Pred> guard);

// --- positions.cpp ------------------------------------------------------------------------------------------------------------

Element item_index(Emitter& e);                   // the current item's among the kernel's elements
Element mirrored(Emitter& e, hir::VariableId v);  // as far from the vector's end as the item is from its beginning
Element mirrored_in_cell(Emitter& e,
                         hir::VariableId v);  // the same within the item's cell; v: a list of the geometry's cells

// --- reduce.cpp ---------------------------------------------------------------------------------------------------------------

void plan_reduction(Emitter& e, hir::VariableId result, hir::VariableId argument, Builtin builtin,
                    bool argument_masked);
bool sums_floats(const Emitter& e);  // exactly: such kernels have flags (ptx/sums/exact_sum.h)
bool sums_parts(const Emitter& e);   // and so have those of parts of sums (ptx/sums/sum_parts.h)
void start_accumulators(Emitter& e);
void accumulate(Emitter& e);  // the current item
// The end of a kernel with reductions or scans: the last block combines, cleans the scratch memory and stores the results.
void finish_kernel(Emitter& e);

// --- sink.cpp -----------------------------------------------------------------------------------------------------------------

void plan_fold(Emitter& e, const Step& step);
// A wide part that nothing but folds reads: the variable holds the number itself.
bool is_part_of_folds(const Emitter& e, const Step& step);
void place_sinks(Emitter& e);        // after outputs are known: fills KernelCode::sinks
bool has_large_table(const Emitter& e);  // its size is given by the launch
uint32_t sink_bytes(const Emitter& e);  // of shared memory
void start_sinks(Emitter& e);
void fold_item(Emitter& e);          // the current item
void finish_sinks(Emitter& e);       // the block's entries to the tables
void store_sink_sizes(Emitter& e);   // one thread of the grid

// --- sink_hash.cpp ------------------------------------------------------------------------------------------------------------

// A key's element as its distance from the least one.
Reg<U64> wide_step(Emitter& e, const Sink& sink, size_t key);
// What stands for the current item's key in the last of its tables; to `missing` where it has no slot, which is noted.
Reg<U64> hashed_key(Emitter& e, const Sink& sink, ptx::LabelId missing);
// Its slot there.
Reg<U32> hashed_entry(Emitter& e, const Sink& sink, Reg<U64> key, ptx::LabelId missing);
// Its slot in the block's own table, whose keys begin at `keys`; to `missing` where others are in the way.
Reg<U32> slot_in_block(Emitter& e, const Sink& sink, Reg<U32> keys, Reg<U64> key, ptx::LabelId missing);

// Scratch memory of a kernel: counters, then a status word per tile and scan, then a partial result per accumulator and block.
inline constexpr ptx::Access volatile_access{.semantics = ptx::Semantics::volatile_};
inline constexpr uint32_t finished_counter = 0;  // byte offsets of the counters
inline constexpr uint32_t tile_counter = 8;
inline constexpr uint32_t scratch_fixed_bytes = 16;

// --- skips.cpp ----------------------------------------------------------------------------------------------------------------

void find_test(Emitter& e);  // after scans and sinks are known: fills KernelCode::compared, test and bounds
// Past the elements of a tile, or of a warp's part of it, that begin at `first` or lie within one vector with it, if none counts.
void skip_tile(Emitter& e, Reg<U32> first, uint32_t rows, ptx::LabelId past);

// --- collect.cpp --------------------------------------------------------------------------------------------------------------

// Of a loop that the steps are wanted of: what holds for all elements that count. Empty: they are not collected.
Conditions find_collected(Emitter& e, const Marks& wanted_steps);
// Adds those of the items for which the conditions hold to the warp's: 2 bytes each, its place in the tile, or 4, its number.
void collect_items(Emitter& e, const Conditions& conditions, const Marks& steps, Reg<U32> first, uint32_t unit, Reg<U32> cursor);
// The items are the collected elements from `at` of lane 0 on, of which e.room says how many there are.
void take_collected(Emitter& e, uint32_t unit, Reg<U32> at, Reg<U32> tile_begin);
void end_collected(Emitter& e);

// --- compress.cpp -------------------------------------------------------------------------------------------------------------

void plan_scans(Emitter& e);
// The masks that select v's elements; false when they cannot be told from the statements.
bool find_masks(const Emitter& e, const hir::Operand& v, Masks& found);
void declare_scan_memory(Emitter& e);
void take_tile(Emitter& e);                          // sets tile_number to the next tile, which may lie beyond n
Reg<U32> start_scans(Emitter& e);                    // of a tile; the thread's first element in it
// Where the warp's positions of a scan are in shared memory, room for those of all its elements; not valid: there is no such scan.
Reg<U32> positions_of_warp(Emitter& e);
void note_selection(Emitter& e, Reg<U32> position);  // the current item, whose place in the tile is `position`
void store_selections(Emitter& e);                   // all of the tile's, after its last item

}  // namespace rndn::codegen
