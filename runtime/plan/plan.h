// The flat launch plan: the straight-line main of an outlined program as steps over slots, one slot per variable and literal. Private to this folder.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "frontend/builtins.h"
#include "runtime/compiler/compile.h"
#include "runtime/memory/device_value.h"

namespace rndn::runtime {

inline constexpr uint32_t no_slot = UINT32_MAX;  // a result that is dropped

struct Step {
  enum Kind : uint8_t {
    copy,
    load_table,
    column_value,
    column_valid,
    check_cast,
    list,
    table,
    keys,    // of a dict or an enumeration: no work
    values,  // the same
    fetch,
    index_list,  // a cell of a list: no work
    raze,        // of a list whose cells lie in one piece: no work
    length,      // a kernel that does nothing but @len: sizes are there already
    len,         // the builtin itself
    launch,      // a kernel
    order,       // SQL operators; with a third input: only that many rows, top-k
    group,
    aggregate,  // a fused group (outliner/grouping_fusion.h); inputs: the columns, then values; outputs: the keys, then results
    unique,
    unique_cells,  // each(@unique, cells)
    exact_sum,     // sum or avg, of a vector or of each cell, by an operator (outliner::Options::exact_sums)
    join,
    member,
    index_of,
    scan,
    like,
    sub_string,
    text_map,  // also text_valid
    take,  // runs of elements, copied on the device
    drop,
    append,
    tolist,     // no work
    cells,         // a list from its elements and the lengths of its cells
    pick,          // a list of cells of others: no work
    cell_begins,   // where its cells begin
    cell_numbers,  // per element of such a list, its cell
    call,       // a builtin on the reference interpreter
    interpret,  // a function of the program there
    results
  } kind = copy;
  hir::Builtin builtin{};
  uint32_t kernel = 0;                                 // launch: index into the compiled kernels
  hir::FunctionId function = none<hir::FunctionId>();  // launch, length and interpret: of the outlined program
  hir::TypeId cast{};                                  // check_cast
  bool column = false;                                 // check_cast: of a table's column
  std::optional<hir::BasicType> expected;              // static type of the result
  std::vector<uint32_t> inputs;                        // slots
  std::vector<uint32_t> outputs;                       // slots or no_slot
  std::vector<uint32_t> last_uses;                     // slots that no later step reads
  struct Reduction {
    outliner::GroupReduction reduce{};
    uint32_t input = 0;  // index into inputs; not for len
    hir::BasicType type{};
  };
  std::vector<Reduction> reductions;  // aggregate: per result
  std::vector<Step> instead;          // aggregate: the same one by one, with the reference interpreter for the kernels
  Span span;
};

// The texts of a kernel function: which of its variables must hold codes of one domain.
struct TextClasses {
  struct Class {
    bool compared = false;  // equal codes must be equal texts
    bool ordered = false;   // codes must be in the order of the texts
    bool escapes = false;   // a result: its codes must be texts, also those of literals
    bool among_rows = false;  // compared by more than the comparisons below, which have these operands
    std::vector<std::vector<uint32_t>> comparisons;
    std::vector<uint32_t> carried;  // variables that texts are made of, or that are written
  };
  std::vector<int> of;  // per variable; -1: no text
  std::vector<Class> classes;
};
TextClasses text_classes(const hir::Program& program, const hir::Function& kernel);

// The element type of a basic type, or of a list of one; false for everything else.
bool element_type(const hir::TypeTable& types, hir::TypeId type, hir::BasicType& element, bool& is_list);

struct Steps {
  std::vector<Step> steps;
  std::vector<ItemPtr> constants;  // initial contents of the slots: literals, and null for variables
  std::vector<std::string> fallbacks;
  std::vector<bool> read_on_device;  // per slot: by a kernel or an operator
  bool sizes_unsure = false;  // a step of the host relies on sizes that are only assumed, and compares them for itself
};

// `why`, when not empty, says what keeps the program from having a plan: control flow on the host, globals that change.
Steps make_steps(const Compiled& compiled, const SourceManager& sources, std::string& why);

}  // namespace rndn::runtime
