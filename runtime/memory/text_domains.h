// Text on the device: 4-byte codes, and the domain that says what they mean (docs/decisions.md, 9).
//
// A domain is a dictionary (codes are distinct texts), a column with many different texts (code = row), pieces of the texts of another domain,
// another domain with more texts, the distinct texts of another domain (code = place in byte order), these with a few more in their places, or
// several domains one after the other. Texts are compared, joined and grouped only as codes of one domain whose codes are distinct; whatever is
// needed for that is made on first need and stays with the domain: ranks, the ordered form, the strings on the device, tables that translate
// codes into those of other domains.
//
//   DomainPtr d = Domain::of_column(column);
//   Result<DomainPtr> distinct = d->distinct(tools);       // *distinct == d for a dictionary; else d->ranks() translates into it
//   std::optional<uint32_t> code = d->code_of("EUROPE");   // of distinct domains
//   DomainPtr both = Domain::joined({a, b});               // its ordered form has the texts of a and b; no text is looked up on the host
//
// Private to this folder. Not thread-safe.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "libraries/base/report/timing.h"
#include "libraries/operators/api.h"
#include "runtime/memory/arena.h"
#include "runtime/data/column.h"

namespace rndn::runtime {

inline constexpr uint32_t missing_code = UINT32_MAX;  // of a text that the domain lacks

class Domain;
using DomainPtr = std::shared_ptr<Domain>;

// What making tables on the device takes.
struct TextTools {
  device::Device& device;
  Arena& arena;                    // for what stays with the domain
  operators::Operators* rank = nullptr;  // null: ranks are made on the host
  operators::Memory* memory = nullptr;   // for `rank`
  uint64_t* walked = nullptr;            // counts texts that the host read, or whose codes it made, for what a domain keeps
};

class Domain : public std::enable_shared_from_this<Domain> {
 public:
  // Of a text column. `keeper` (may be null) outlives the domain and holds what is derived from it.
  static DomainPtr of_column(std::shared_ptr<const data::Column> column, std::vector<DomainPtr>* keeper);
  // code = position; texts may repeat.
  static DomainPtr of_texts(std::shared_ptr<const std::vector<std::string>> texts, uint64_t count);
  // The same of distinct texts in byte order.
  static DomainPtr of_sorted(std::vector<std::string> texts);
  // The codes of each after those of the ones before; texts may repeat. Its ordered form is what they have in common.
  static DomainPtr joined(std::span<const DomainPtr> domains);

  uint64_t count() const { return count_; }                // codes are 0 .. count - 1
  bool is_ordered() const { return is_ordered_; }          // codes are in byte order
  bool is_pieces() const { return kind_ == Kind::piece; }  // far fewer texts than codes
  std::string_view text(uint32_t code);                    // code < count
  // The texts by code, where they are there as such; else null.
  std::shared_ptr<const std::vector<std::string>> texts() const;
  bool extends(const Domain& other) const;                 // the codes of `other` mean the same here
  std::optional<uint32_t> code_of(std::string_view text, const TextTools& tools);  // requires that equal codes are equal texts
  bool rests_on(const Domain& other) const;                // is made of `other`, or of what rests on it
  bool is_kept() const { return is_kept_; }                // of columns alone, which outlive a run
  // Of `inserted`: the domain that the texts were inserted into; else null.
  DomainPtr inserted_into() const { return kind_ == Kind::inserted ? base_ : nullptr; }

  // The domain of the distinct texts: this one, or its ordered form.
  Result<DomainPtr> distinct(const TextTools& tools);
  // The domain of the distinct texts with codes in byte order: this one, or one whose codes are the ranks of this one's.
  Result<DomainPtr> ordered(const TextTools& tools);
  // u32 per code: its place in byte order, equal for equal texts.
  Result<device::Address> ranks(const TextTools& tools);
  // u32 per code: the code in `to`, or missing_code. Both are distinct.
  Result<device::Address> translation(const DomainPtr& to, const TextTools& tools);
  // The texts themselves. `keep`: for the next time; else `held` has them.
  Result<operators::Strings> strings(const TextTools& tools, bool keep, std::vector<BufferPtr>& held);
  // Gives back the strings that were kept; false: there are none.
  bool drop_strings();
  // The pieces of `length` bytes that begin at byte `start` (from 0), clipped to each text; kept, the same for equal arguments.
  DomainPtr pieces(uint64_t start, uint64_t length);
  // What a function makes of each text, by code: texts, or elements on the device. Kept under the
  // function's name and constants; neither is there before it is made.
  struct Image {
    DomainPtr texts;
    BufferPtr values;
  };
  Image& image(const std::string& call) { return images_[call]; }
  // This domain with these texts too, after its own; requires is_distinct. Kept.
  DomainPtr with(const std::vector<std::string>& more, const TextTools& tools);
  // This domain with these few texts too, in their places; requires is_ordered. Not kept.
  DomainPtr inserted(std::vector<std::string> more, const TextTools& tools);

 private:
  // Each text as offset << 24 | length into a pad, on the host. What is not made points into the column.
  struct Packed {
    std::vector<uint64_t> made_handles;
    std::string made_pad;
    const uint64_t* handles = nullptr;
    std::string_view pad;
  };
  void pack(Packed& packed) const;
  uint64_t place_of(std::string_view text);
  Result<void> rank(const TextTools& tools);
  DomainPtr derive();  // a domain of base this, known to the keeper

  enum class Kind : uint8_t { texts, dictionary, column, piece, more, distinct, inserted, joined } kind_ = Kind::texts;
  uint64_t count_ = 0;
  bool is_distinct_ = false;  // equal codes exactly where texts are equal
  bool is_ordered_ = false;
  bool is_kept_ = false;
  std::shared_ptr<const std::vector<std::string>> texts_;  // texts; more, inserted: those beyond base_'s
  std::shared_ptr<const data::Column> column_;             // dictionary, column
  DomainPtr base_;                                         // piece, more, distinct, inserted
  std::vector<DomainPtr> parts_;                           // joined
  std::vector<uint64_t> firsts_;                           // joined: the first code of each part; inserted: the codes of texts_
  uint64_t piece_start_ = 0, piece_length_ = 0;
  std::vector<DomainPtr>* keeper_ = nullptr;

  // Made on need.
  std::unordered_map<std::string_view, uint32_t> codes_;
  BufferPtr ranks_, handles_, pad_;
  std::vector<uint32_t> first_;  // with ranks_: per distinct text, in order, the first code that has it
  uint64_t distinct_count_ = 0, longest_ = 0;
  std::weak_ptr<Domain> ordered_;  // its base_ is this domain
  std::map<std::pair<uint64_t, uint64_t>, std::weak_ptr<Domain>> pieces_;
  std::map<std::vector<std::string>, std::weak_ptr<Domain>> more_;
  struct Translation {
    std::weak_ptr<Domain> to;
    BufferPtr table;
  };
  std::map<const Domain*, Translation> translations_;
  std::map<std::string, Image> images_;
};

}  // namespace rndn::runtime
