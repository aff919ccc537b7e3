// In which encoding a column lies on the device, and its bytes in that encoding.
//
// In: a column with its statistics, what --encode asks for. Out: the form, its bytes where they are
// others than the host's, and why. Statistics propose a form; making it looks at every element and
// refuses one that the form would not restore (a file of the column cache may have been written by
// anyone, and decimals are proposed from a sample), so that the next best is taken. What was made, or
// could not be, is kept beside the column where a cache keeps that (runtime/data/cache.h), and is
// sent from there by the next process.
//
// Cost: one pass over the column, on all cores, in pieces that fit a core's cache. Of a kept form:
// one over it, and one that restores it and compares it with the column where its bits reach beyond
// the bounds of integers, which serve as indices, or where the column has no file in the cache
// (Parquet, Arrow): what is known then is where it comes from, not that it is the same as before,
// nor that no form holds it, which is tried again. Of such a column one form is kept, the newest.
// Left out: floats that are no decimals, texts without a dictionary: they lie as on the host.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "libraries/base/system/parallel.h"
#include "ptx/encodings/encodings.h"
#include "runtime/data/column.h"

namespace rndn::runtime {

// --encode. plain: as the types have elements. narrow: as the host has them, codes of text and row
// numbers in few bytes. packed: in bits, or in fewer bytes, where that saves enough.
enum class Encode : uint8_t { automatic, plain, narrow, packed };
std::optional<Encode> find_encode(std::string_view name);  // "auto", "plain", ..

// --transfer. copied: columns are copied to the device. mapped: kernels read them in the host's memory. automatic: of those that do not stay on the
// device, the ones of which so few elements are read that it takes less time (model::transfer_of).
enum class Transfer : uint8_t { automatic, copied, mapped };
std::optional<Transfer> find_transfer(std::string_view name);  // "auto", "copied", "mapped"

// Bits are taken instead of bytes where an element is at most this part of what bytes would be: it
// costs one more load and three instructions to read one.
inline constexpr double packed_saves_from = 0.75;

struct ColumnForm {
  encodings::Stored stored;
  std::shared_ptr<const data::Bytes> bytes;  // null: the host's own are in that form
  std::string reason;
  uint32_t encoded = 0;  // how often the elements were put in a form, or tried to be, for this
};

// Rows of the table that a foreign key refers to: its row numbers are meant; none: its elements.
using RowsReferred = std::optional<uint64_t>;

// pool may be null.
ColumnForm form_of(const data::Column& column, RowsReferred rows_of, Encode encode,
                   ThreadPool* pool);

// Of what is stored: i64 for row numbers.
inline hir::BasicType element_type(const data::Column& column, RowsReferred rows_of) {
  return rows_of ? hir::BasicType::i64 : column.type;
}

// Forms that were made, as long as their columns are there.
class ColumnForms {
 public:
  const ColumnForm& of(const std::shared_ptr<const data::Column>& column, RowsReferred rows_of,
                       Encode encode, ThreadPool* pool);
  // The column with what lies in another form on the device kept in that form alone: the host's own is restored when
  // somebody reads it. So are the values of a foreign key, from its rows and `key`, the column that it refers to. Null:
  // nothing would go, since it is small, a file of a cache has it, or the host has asked for it again: what it has asked
  // for goes with `again`.
  std::shared_ptr<const data::Column> in_form_alone(const data::Column& column,
                                                    const std::shared_ptr<const data::Column>& key, bool again) const;
  // `to` has the elements that `from` had, and its forms.
  void move(const data::Column* from, const std::shared_ptr<const data::Column>& to);
  // ColumnForm::encoded of all that were asked for.
  uint64_t encoded() const { return encoded_; }

 private:
  struct Known {
    std::weak_ptr<const data::Column> column;
    Encode encode;
    ColumnForm form;
  };
  const ColumnForm* find(const data::Column& column, bool of_rows) const;
  std::map<std::pair<const data::Column*, bool>, Known> known_;
  uint64_t encoded_ = 0;
};

}  // namespace rndn::runtime
