// Kernels of an outlined program to typed PTX. One file per family of operations (map, reduce, compress, ...).
//
// Kernel ABI. The runtime fills parameters by walking `parameters`; it needs no knowledge of the code. A vector lives in device
// memory as data and, apart from it, a 64-bit element count ("size slot"), so that sizes never need the host. Kernels run a persistent
// grid: any grid of at least one block is right, and each block loops over tiles of block_size * items_per_thread elements.
//
// A list of vectors lies in one piece: the elements of all cells in order, and u64 offsets[cells + 1] (offsets[0] = 0) that tell where each cell
// begins. Its size slot holds the number of cells. A kernel with list geometry (outliner::Kernel::list) shares the elements of all cells evenly
// among its threads, however long the cells are.
// Text is 4-byte codes: the runtime sees to it that texts that a kernel compares are codes of one dictionary, where equal codes are equal texts, and
// that a text which the dictionary lacks is the code 2^32 - 1.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "frontend/ir.h"
#include "libraries/base/containers/inline_vector.h"
#include "libraries/base/errors/result.h"
#include "libraries/base/report/timing.h"
#include "outliner/outliner.h"
#include "ptx/encodings/encodings.h"
#include "ptx/ir.h"

namespace rndn {
class ThreadPool;
}
namespace rndn::codegen {

enum class ParameterRole : uint8_t {
  input_data,     // u64: address of the elements of kernel parameter `ordinal`
  input_size,     // u64: address of its size slot (a list: of the number of its cells)
  input_value,    // u64: bits of the one element of kernel parameter `ordinal` (outliner::Kernel::by_value), its words by `part`
  input_offsets,  // u64: address of the offsets of kernel parameter `ordinal`, a list
  input_bounds,   // u64: address of the bounds of kernel parameter `ordinal`: {least, greatest} of each bounds_rows elements, of bound_bytes(type) each
  output_data,    // u64: address with room for `capacity` elements of kernel result `ordinal`
  output_size,    // u64: address of the result's size slot; the kernel writes it
  lookup,         // u64: word `part` of the table that KernelCode::lookups[ordinal] asks for (ptx/lookup/lookup.h)
  sink,    // u64: word `part` of KernelCode::sinks[ordinal] (SinkWord)
  scratch,  // u64: address of scratch_bytes(kernel, elements, grid) bytes, 256-byte aligned. All zero before the first launch; the
  // kernel leaves all of it zero again, so launches repeat without a memset and kernels may share it
  differs,  // u64: address of a u32: where it is not 0, the kernel does nothing (outliner::Kernel::looks)
  sum_flags,  // u64: address of the flags of sums of floats (ptx/sums/exact_sum.h)
  error,  // u64: address of the error word (docs/decisions.md, 18), see ErrorWord: 0 = none. Of several errors the largest stays
};

// Elements of which a kernel may be given the least and the greatest (skips.cpp): of every so many of a vector, and for the rest of the largest tile, too.
inline constexpr uint32_t bounds_rows = 1024, most_bounds_per_tile = 4;
inline uint32_t bound_bytes(hir::BasicType type) { return std::max(4u, encodings::plain_bytes(type)); }

enum class RuntimeError : uint32_t { none = 0, division_by_zero = 1, index_out_of_range = 2, negative_factorial = 3, requirement = 4 };

// What an error word says. It has 32 bits of the 64 that are set apart for it.
struct ErrorWord {
  static constexpr uint32_t code_bits = 3, statement_bits = 16;
  uint32_t kernel = 0;     // index into Outlined::kernels
  uint32_t statement = 0;  // StatementId in the kernel's function
  RuntimeError code{};
  constexpr uint32_t packed() const {
    return (kernel << statement_bits | (statement & ((1u << statement_bits) - 1))) << code_bits |
           static_cast<uint32_t>(code);
  }
  static constexpr ErrorWord of(uint64_t word) {
    const uint32_t w = static_cast<uint32_t>(word);
    return {w >> (statement_bits + code_bits), w >> code_bits & ((1u << statement_bits) - 1),
            static_cast<RuntimeError>(w & ((1u << code_bits) - 1))};
  }
};

struct KernelParameter {
  ParameterRole role{};
  uint32_t ordinal = 0;   // index into the kernel function's parameters or results
  hir::BasicType type{};  // element type, for *_data
  uint32_t part = 0;      // lookup, sink, input_value
};

// What a kernel that folds gets of each of its groups: the number of entries; how many copies of an entry a block has in shared memory, 0 or a
// power of two; then per key the least element, in 64 bits, and how many entries a step of its elements skips.
enum SinkWord : uint32_t { sink_entries, sink_copies, sink_keys };
enum SinkKeyWord : uint32_t { key_least, key_factor, words_per_key };
// Behind those, where entries are found by hashing (sink_hash.cpp): the tables of keys, with as many slots as there are entries, one after the other;
// the address of a u32 that tells whether they were too small, a FoldState.
enum SinkHashWord : uint32_t { hash_tables, hash_state, hash_words };
enum FoldState : uint32_t { fold_full = 1, fold_impossible = 2, fold_fits = UINT32_MAX };
// What a slot of those tables holds that no key has.
inline constexpr uint64_t free_slot = UINT64_MAX;
// Keys of several words: a table for each word, then one for each pair of numbers of slots, {the entry so far, the next word's slot}.
inline uint32_t hash_table_count(uint32_t words) { return 2 * words - 1; }

// How the elements of a kernel's parameters and results lie in memory: with the kernel, the key of
// its code. Those beyond the end are plain.
struct KernelEncodings {
  std::vector<encodings::Stored> parameters, results;
  // Per sink, and of each of its keys, which word of a hashed key it is part of, ascending; none: entries are what the keys say.
  std::vector<std::vector<uint8_t>> hashed;
  // Where a block has the entries of its one sink: in shared memory of the code's size, or of a size that the launch gives,
  // with copies of those that come first beside them or not.
  enum Table : uint8_t { usual, large, large_and_hot } table = usual;
  // Per look-up 1 + the form of its table (lookup::Form), of fewer than 2^31 rows; 0: it is told at the launch; `filtered`: it is told, and
  // a filter may stand in front of the table.
  static constexpr uint8_t filtered = 0x80;
  std::vector<uint8_t> lookups;
  // Per parameter of KernelCode::compared: 1 where its bounds are given.
  std::vector<uint8_t> bounds;
  // Per KernelCode::places: 1 where every position is known to lie within the vector, so that none is checked.
  std::vector<uint8_t> inside;
  // Elements for which KernelCode::collected may hold are few: a warp collects them before it evaluates the rest (collect.cpp).
  bool collects = false;
  bool operator==(const KernelEncodings&) const = default;
};

struct KernelCode {
  std::string name;     // entry name in the module, such as "main_1"
  std::string refused;  // why the kernel has no code, a phrase; empty: it has. Else only `name` and
  hir::StatementId refused_at = none<hir::StatementId>();  // the statement that is at fault, if one is, count
  std::vector<KernelParameter> parameters;                 // all are u64, in declaration order
  uint32_t block_size = 256;                               // threads per block (x), fixed (.reqntid)
  uint32_t items_per_thread = 1;                           // elements that a thread takes per tile
  uint32_t scratch_fixed_bytes = 0;
  uint32_t scratch_bytes_per_tile =
      0;  // per block_size * items_per_thread elements of the geometry, rounded up; at least once
  uint32_t scratch_bytes_per_block = 0;
  uint64_t floor_bits_per_element = 0;  // that must move per element of the geometry, for reports
  // What is done for each element of the geometry, for estimates (work.cpp).
  struct Work {
    enum Kind : uint8_t {
      load,         // an element of a parameter, in order
      gather,       // of a parameter, at a computed place
      probe,        // of a table: lookups[number]
      store,        // of a result, in order
      fold,         // into a table of groups: sinks[number]
      instructions  // of PTX: `count` of `all` of the kernel
    } kind = load;
    hir::VariableId variable{};             // load, gather: the parameter; probe: the rows; store: the result
    std::optional<hir::VariableId> at;      // gather, probe: the place, or the key
    uint32_t number = 0;
    uint32_t bits = 0;                      // load, gather, store: of an element
    double count = 1;                       // for each element
    InlineVector<hir::VariableId, 6> where;  // only where these hold
    std::optional<hir::VariableId> selected;  // only for the elements that this result is made of
  };
  std::vector<Work> work;  // where Options::notes_work asks for it
  uint32_t all_instructions = 0;  // of PTX
  // Tables of rows by key, to be filled before the launch.
  struct Lookup {
    std::vector<uint32_t> columns;  // kernel parameters
    std::optional<int64_t> join;    // its number (outliner::Outlined::joins); none: membership
    bool once = false;              // it relies on it that no key repeats
    bool masked = false;            // among all rows, of which a mask says which count
    // Kernel parameters that are read at its rows and nowhere else: the rows serve for nothing else, so that other numbers may stand for them by which
    // these are read. None: they do, or a mask says which count.
    std::optional<std::vector<uint32_t>> fields;
  };
  std::vector<Lookup> lookups;
  // Groups that the kernel reduces: tables of all entries that there may be, which it is given with every 4 bytes of a result at `fill`.
  struct Sink {
    int64_t number = 0;                // of GPU.fold
    std::vector<hir::VariableId> keys;  // of the kernel
    struct Table {
      uint32_t result = 0;  // of the kernel
      uint32_t fill = 0;
      bool extreme = false;  // of values: they must lie between what `fill` means as a minimum and as a maximum
      hir::VariableId values{};
    };
    std::vector<Table> tables;
    bool selected_by_gathers = false;  // rows are selected by what is looked up or gathered: mostly few are
    uint32_t entry_bytes = 0, shared_bytes = 0;  // of one copy of an entry, and of all: in shared memory
    // KernelEncodings::large: what the block needs beside the entries; 0: there is no such code. And with hot ones, besides 4 bytes an entry.
    uint32_t beside_large = 0, beside_hot = 0;
    // Of shared memory, which the launch gives: for a copy of the entries and what lies beside it.
    uint64_t large_bytes(uint64_t entries, KernelEncodings::Table table) const;
  };
  std::vector<Sink> sinks;
  // Parameters by whose bounds tiles may be skipped.
  InlineVector<uint32_t, 4> compared;
  // What is read at computed places, which is an error where one lies outside; of vectors as long as a table alone, so that a forecast knows it, too.
  struct Place {
    uint32_t vector = 0;      // kernel parameter that is read
    hir::VariableId at{};     // the positions
    // Parameters that they are computed from, and earlier places: what is read outside a vector is 0, whatever bounds say.
    std::array<uint32_t, 4> from{}, after{};
    uint8_t from_count = 0, after_count = 0;
    bool everywhere = false;  // also those of elements for which `collected` does not hold
  };
  InlineVector<Place, 4> places;
  // Conditions that all elements meet which a loop has a use for, and that follow from loaded elements alone: what it could collect is where they
  // hold, if no position that is read everywhere can be outside. Empty: there is nothing.
  InlineVector<hir::VariableId, 6> collected;
  // Per result (may be shorter): the kernel parameter that the result starts as a copy of, size included (index_a); -1: none.
  std::vector<int32_t> starts_as;
  // Per result (may be shorter): a list result has the cells of this list parameter, whose offsets it shares; -1: no list, or each cell is one element.
  std::vector<int32_t> cells_of;
  // Per result: it may be stored in a form other than the plain one.
  std::vector<bool> may_be_encoded;
};

// Scratch memory for a launch over `elements` elements (or an upper bound of them; list geometry: elements of all cells plus cells) with `grid`
// blocks.
inline uint64_t scratch_bytes(const KernelCode& k, uint64_t elements, uint32_t grid) {
  const uint64_t tile = uint64_t{k.block_size} * k.items_per_thread;
  const uint64_t tiles = elements ? (elements + tile - 1) / tile : 1;
  return k.scratch_fixed_bytes + tiles * k.scratch_bytes_per_tile + uint64_t{grid} * k.scratch_bytes_per_block;
}

struct Options {
  uint32_t ptx_target = 60;  // .target sm_NN of the module, and the .version that knows it; from 80 on with redux
  std::vector<std::string> refused;   // by kernel, may be shorter: why it shall get no code; empty: it shall
  const ptx::Module* math = nullptr;  // the functions of libdevice; null: kernels that need them have no code
  uint32_t bytes_in_flight =
      32;                      // of loads, wanted per thread: decides how many elements a thread evaluates side by side
  ThreadPool* pool = nullptr;  // makes kernels side by side; null: one thread
  std::vector<KernelEncodings> encodings;  // by kernel, may be shorter
  bool notes_work = false;  // KernelCode::work, for estimates
};

struct ModuleCode {
  ptx::Module module;
  std::vector<KernelCode> kernels;  // parallel to Outlined::kernels
};

// A kernel with an operation that has no GPU code yet is left out of the module and says why; the caller turns that into a diagnostic or
// a fallback.
Result<ModuleCode> generate(const outliner::Outlined& outlined, const Options& options, Timings& timings);

}  // namespace rndn::codegen
