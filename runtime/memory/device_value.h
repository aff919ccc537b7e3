// What a slot of a launch plan holds: values on the host, on the device, or both. Private to this folder.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "outliner/outliner.h"
#include "ptx/encodings/encodings.h"
#include "runtime/memory/arena.h"
#include "libraries/operators/api.h"
#include "runtime/data/column.h"
#include "runtime/data/value.h"

namespace rndn::runtime {

class Domain;
using DomainPtr = std::shared_ptr<Domain>;

// Every element lies in min..max; nothing is known when min > max. Not for floats; text: of the codes.
struct Bounds {
  int64_t min = 1, max = 0;
  bool known() const { return min <= max; }
  bool operator==(const Bounds&) const = default;
};

struct Item;
using ItemPtr = std::shared_ptr<Item>;

struct Item {
  enum Kind : uint8_t {
    vector,
    cells,  // a list of vectors in one piece: parts[0] has their elements; without offsets every cell is one element
    list,   // parts: the cells
    picked,  // a list; parts: numbers of cells, and the lists whose cells they count
    dict,   // parts: keys, values
    enumeration,  // parts: keys, rows
    table,        // parts: the columns
    other         // `host` alone
  } kind = other;

  // vector, cells
  hir::BasicType type{};
  uint64_t capacity = 0;                                // upper bound of the elements; cells: their number
  bool exact = false;                                   // the size is the capacity
  outliner::SizeId size_id = none<outliner::SizeId>();  // vectors of one program whose ids are equal are equally long
  Bounds bounds;
  bool ascending = false;                               // integers: no element is less than the one before it
  encodings::Stored stored;                             // how the elements lie in `data`
  device::Address data = 0, size_slot = 0;              // on the device; 0: not there
  BufferPtr data_buffer, size_buffer;                   // what keeps them; may be null for memory that outlives the run
  const void* mapped_data = nullptr;                    // where the host sees `data` and
  BufferPtr mapped_buffer;                              // keeps a mapped copy of `data`
  const uint64_t* mapped_size = nullptr;                // `size_slot`, when they are in mapped memory
  DomainPtr domain;                                     // text: what its codes mean
  bool codes_are_rows = false;                          // text: the code of row k is k, whether `data` is there or not
  std::shared_ptr<const data::Column> column;           // the vector is this column, or
  std::shared_ptr<const data::FileColumn> fields;  // of the column, in a file: a cast reads them anew
  bool foreign_rows = false;                            // the rows that this foreign key refers to, as i64
  device::Address offsets = 0;                          // cells: u64[capacity + 1]; a vector: those of cells of these lengths, once asked for
  BufferPtr offsets_buffer;
  ItemPtr decoded;     // the same in the plain form, once that was asked for
  ItemPtr translated;  // text: the same in another domain, the last that was asked for
  // A column whose elements are all different: its rows by them, once a kernel asked (run/lookups.cpp).
  operators::Lookup rows_by_key;
  BufferPtr rows_by_key_buffer;
  // The same of other columns of its table, side by side in the order of its elements.
  struct Records {
    std::vector<std::weak_ptr<Item>> of;
    std::vector<encodings::Stored> forms;
    BufferPtr buffer;
  };
  std::vector<Records> records;
  BufferPtr vector_bounds;  // of a column (memory/vector_bounds.h), once a kernel asked
  struct Piece {
    std::pair<uint64_t, uint64_t> range;  // first byte from 0, bytes
    ItemPtr item;
  };
  std::vector<Piece> pieces;  // text: what sub_string made of it

  uint32_t result_slot = UINT32_MAX;  // of the plan, of a vector that a kernel made for the host alone: in mapped memory only where it was short in the run before

  // How long the item lives: its memory comes from an arena that lives as long.
  enum Lifetime : uint8_t { of_run, of_plan, of_engine } lifetime = of_run;

  std::optional<data::Value> host;
  std::vector<ItemPtr> parts;
  std::shared_ptr<const std::vector<std::string>> names;  // table
};

// The value, with the parts of dicts and enumerations as items of their own.
ItemPtr host_item(data::Value value, Item::Lifetime lifetime = Item::of_run);
ItemPtr column_item(std::shared_ptr<const data::Column> column);
// The rows of a foreign key as an enumeration over the referenced key column.
ItemPtr enumeration_item(std::shared_ptr<const data::Column> foreign, std::shared_ptr<const data::Column> key);
ItemPtr parts_item(Item::Kind kind, std::vector<ItemPtr> parts);
// What holds for the elements of a column: of the stored integers, dictionary codes and row numbers.
Bounds bounds_of(const data::Column& column);

// A column of integers or times of which the host knows that no two elements are equal.
bool has_different_elements(const Item& v);

// Bytes of so many elements of the vector on the device.
inline uint64_t device_bytes(const Item& v, uint64_t elements) {
  return encodings::find(v.stored).bytes(v.type, v.stored, elements);
}

// Elements in the plain form, as operators see them.
operators::Type type_on_device(hir::BasicType type);

}  // namespace rndn::runtime
