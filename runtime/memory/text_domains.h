// Text on the device: 4-byte codes, and the domain that says what they mean (docs/decisions.md, 9).
//
// A domain is a dictionary (codes are distinct texts), a column with many different texts (code = row), pieces of the texts of another domain,
// another domain with more texts, the distinct texts of another domain (code = place in byte order, or in order of the first codes that have them), these with a few more in their places,
// several domains one after the other, what a function makes of each text of another domain, or strings that the device made. Texts are compared, joined and grouped only as codes of one domain whose codes are distinct; whatever is
// needed for that is made on first need and stays with the domain: ranks, the ordered form, the strings on the device, tables that translate
// codes into those of other domains.
//
//   DomainPtr d = Domain::of_column(column);
//   Result<DomainPtr> distinct = d->distinct(tools);       // *distinct == d for a dictionary; else d->codes_in(*distinct) translates into it
//   auto codes = d->codes_of(texts, tools);                // of distinct domains
//   DomainPtr both = Domain::joined({a, b});               // its ordered form has the texts of a and b; no text is looked up on the host
//
// A column of many texts has no dictionary: its bytes go to the device as they lie, and all of the above is made of them there. Where order is not
// asked for, the texts are made distinct by hashes and their bytes; an order is then that of the distinct ones. Where its texts
// are only compared with a few constants, no ranks are made either: `against` gives the constants and what equals them codes in common.
//
// Private to this folder. Not thread-safe.
#pragma once
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "libraries/base/report/timing.h"
#include "libraries/operators/api.h"
#include "runtime/memory/arena.h"
#include "runtime/data/column.h"
#include "runtime/text/text_functions.h"

namespace rndn::runtime {

inline constexpr uint32_t missing_code = UINT32_MAX;  // of a text that the domain lacks

class Domain;
using DomainPtr = std::shared_ptr<Domain>;

// What making tables on the device takes.
struct TextTools {
  device::Device& device;
  Arena& arena;                    // for what stays with the domain
  operators::Operators* sql = nullptr;
  operators::Memory* memory = nullptr;  // for `sql`
  uint64_t* walked = nullptr;           // counts texts that the host read, or whose codes it made, for what a domain keeps
  // Bytes of a column, which arrive beside the work.
  std::function<Result<BufferPtr>(const std::shared_ptr<const data::Bytes>&)> send;
};

// Texts that the host works on while a launch would start.
inline constexpr uint64_t few_texts_of_domain = 4096;

// A function of one text and of constants (frontend/text_functions.def).
struct TextMap {
  hir::TextFunctionId id{};
  std::vector<text::TextArgument> constants;  // all arguments, of which that at `variable` is not read; their texts are in `held`
  size_t variable = 0;
  std::deque<std::string> held;
  // Whether the device makes the texts of it; of some functions not those that are not ASCII.
  bool is_on_device() const;
};

// Reads texts of domains; what it gave last is valid until the next.
class TextReader {
 public:
  std::string_view operator()(Domain& domain, uint32_t code);

 private:
  friend class Domain;
  struct Made {
    explicit Made(const TextMap& map);
    text::TextFunction function;
    std::vector<text::TextArgument> arguments;
    text::TextResult result;
  };
  std::map<const Domain*, Made> made_;
};

class Domain : public std::enable_shared_from_this<Domain> {
 public:
  // Of a text column. `keeper` (may be null) outlives the domain and holds what is derived from it.
  static DomainPtr of_column(std::shared_ptr<const data::Column> column, std::vector<DomainPtr>* keeper);
  // code = position; texts may repeat.
  static DomainPtr of_texts(std::shared_ptr<const std::vector<std::string>> texts, uint64_t count);
  // The same of distinct texts in byte order.
  static DomainPtr of_sorted(std::vector<std::string> texts);
  // code = position in strings of the device, which the host has no other copy of.
  static DomainPtr of_strings(BufferPtr handles, BufferPtr pad, uint64_t pad_bytes, uint64_t count);
  // The codes of each after those of the ones before; texts may repeat. Its ordered form is what they have in common.
  static DomainPtr joined(std::span<const DomainPtr> domains);

  uint64_t count() const { return count_; }                // codes are 0 .. count - 1
  bool is_ordered() const { return is_ordered_; }          // codes are in byte order
  bool is_pieces() const { return kind_ == Kind::piece; }  // far fewer texts than codes
  bool is_distinct() const { return is_distinct_; }        // equal codes exactly where texts are equal
  bool has_ranks() const { return ranks_ != nullptr; }
  // Codes of texts that equal literals are known, or where they are among them, and nothing else; from `against`.
  bool is_against() const { return kind_ == Kind::same || kind_ == Kind::places; }
  // Of those: the domain that the texts are of.
  DomainPtr base() const { return base_; }
  // What codes that a kernel gives mean.
  DomainPtr meaning() { return kind_ == Kind::same ? base_ : shared_from_this(); }
  // The texts by code, where they are there as such; else null.
  std::shared_ptr<const std::vector<std::string>> texts() const;
  bool extends(const Domain& other) const;                 // the codes of `other` mean the same here
  // The code of each text, or missing_code. Requires that equal codes are equal texts.
  Result<std::vector<uint32_t>> codes_of(std::span<const std::string> texts, const TextTools& tools);
  // Brings what reading the texts takes to the host.
  Result<void> readable(const TextTools& tools);
  // A domain that is readable and has the texts of these few codes, which become its codes.
  Result<DomainPtr> texts_of(std::vector<uint32_t>& codes, const TextTools& tools);
  bool rests_on(const Domain& other) const;                // is made of `other`, or of what rests on it
  bool is_kept() const { return is_kept_; }                // of columns alone, which outlive a run
  // Of `inserted`: the domain that the texts were inserted into; else null.
  DomainPtr inserted_into() const { return kind_ == Kind::inserted ? base_ : nullptr; }

  // The domain of the distinct texts: this one, or one whose codes are in any order.
  Result<DomainPtr> distinct(const TextTools& tools);
  // u32 per code: the code in `to`, which `distinct` or `ordered` gave for this domain and is not it.
  Result<device::Address> codes_in(const Domain& to, const TextTools& tools);
  // The domain of the distinct texts with codes in byte order: this one, or one whose codes are the ranks of this one's.
  Result<DomainPtr> ordered(const TextTools& tools);
  // u32 per code: its place in byte order, equal for equal texts.
  Result<device::Address> ranks(const TextTools& tools);
  // u32 per code: the code in `to`, or missing_code. Both are distinct.
  Result<device::Address> translation(const DomainPtr& to, const TextTools& tools);
  // u32 per code, of this domain's literals, which are ascending: the code in `same` that stands for each. After `translation` into it.
  device::Address literal_codes() const { return literals_->address; }
  // The texts themselves. `keep`: for the next time; else `held` has them.
  Result<operators::Strings> strings(const TextTools& tools, bool keep, std::vector<BufferPtr>& held);
  // Gives back the strings that were kept; false: there are none.
  bool drop_strings();
  // The pieces of `length` bytes that begin at byte `start` (from 0), clipped to each text; kept, the same for equal arguments.
  DomainPtr pieces(uint64_t start, uint64_t length);
  // What the function makes of each text. Nothing is made before it is asked for. Kept under `call`.
  DomainPtr mapped(const std::string& call, TextMap map);
  bool is_mapped(const std::string& call) const {
    const auto at = mapped_.find(call);
    return at != mapped_.end() && !at->second.expired();
  }
  // Codes for comparisons with these literals, which are distinct and ascending, and with nothing else. Equality: what equals a literal has the code
  // of the first such text, everything else its own. `ordered`: twice the number of the literals before it, and 1 more for what equals one.
  DomainPtr against(std::vector<std::string> literals, bool ordered);
  // What a function makes of each text, by code: texts, or elements on the device. Kept under the
  // function's name and constants; neither is there before it is made.
  struct Image {
    DomainPtr texts;
    BufferPtr values;
  };
  Image& image(const std::string& call) { return images_[call]; }
  // This domain with these texts too, after its own; requires is_distinct. Kept.
  Result<DomainPtr> with(const std::vector<std::string>& more, const TextTools& tools);
  // This domain with these few texts too, in their places; requires is_ordered. Not kept.
  Result<DomainPtr> inserted(std::vector<std::string> more, const TextTools& tools);

 private:
  friend class TextReader;
  struct OnDevice {
    BufferPtr handles, pad;
    uint64_t pad_bytes = 0;
  };
  Result<OnDevice> make_strings(const TextTools& tools, bool keep);
  Result<OnDevice> map_strings(const TextTools& tools);
  Result<OnDevice> send_texts(std::span<const std::string> texts, const TextTools& tools) const;
  std::string_view read(uint32_t code, TextReader& reader);
  uint64_t place_of(std::string_view text);
  uint32_t known_code_of(const std::string& text, const TextTools& tools);
  Result<void> find(std::span<const std::string> texts, const TextTools& tools);
  Result<void> fetch(const TextTools& tools);
  Result<void> rank(const TextTools& tools);
  Result<DomainPtr> hashed(uint64_t most, const TextTools& tools);
  DomainPtr derive_distinct(bool ordered, uint64_t count, BufferPtr first);
  Result<device::Address> look_up(const DomainPtr& literals, const TextTools& tools);
  DomainPtr derive();  // a domain of base this, known to the keeper

  enum class Kind : uint8_t {
    texts, dictionary, column, piece, more, distinct, inserted, joined, mapped, same, places, made
  } kind_ = Kind::texts;
  uint64_t count_ = 0;
  bool is_distinct_ = false;  // equal codes exactly where texts are equal
  bool is_ordered_ = false;
  bool is_kept_ = false;
  std::shared_ptr<const std::vector<std::string>> texts_;  // texts; made, when it is readable; more, inserted: those beyond base_'s; same, places: the literals
  std::shared_ptr<const data::Column> column_;             // dictionary, column
  DomainPtr base_;                                         // all but texts, dictionary, column, joined
  std::vector<DomainPtr> parts_;                           // joined
  std::vector<uint64_t> firsts_;                           // joined: the first code of each part; inserted: the codes of texts_
  uint64_t piece_start_ = 0, piece_length_ = 0;
  std::vector<DomainPtr>* keeper_ = nullptr;
  TextMap map_;  // mapped

  // Made on need.
  std::unordered_map<std::string_view, uint32_t> codes_;
  BufferPtr ranks_;     // same, places: the codes of base_'s texts
  BufferPtr literals_;  // same
  OnDevice strings_;
  // Of what was ranked or hashed: u32 per distinct text, the first code that has it.
  BufferPtr ranked_first_, hashed_first_;
  uint64_t ranked_count_ = 0, hashed_count_ = 0;
  BufferPtr hashed_codes_;            // u32 per code: equal for equal texts
  bool has_many_distinct_ = false;    // too many to be hashed before they are ranked
  std::weak_ptr<Domain> ordered_;     // its base_ is this domain, or that of `hashed_`
  std::weak_ptr<Domain> hashed_;      // its base_ is this domain
  BufferPtr first_on_device_;         // distinct: u32 per code, the first code of base_ that has the text
  std::vector<uint32_t> first_;       // the same, when it is readable
  std::unordered_map<uint32_t, uint32_t> read_first_;  // the same, of some codes that the host has read
  std::map<std::string, uint32_t> found_;  // codes that the device looked for
  std::map<std::pair<uint64_t, uint64_t>, std::weak_ptr<Domain>> pieces_;
  std::map<std::vector<std::string>, std::weak_ptr<Domain>> more_;
  std::map<std::string, std::weak_ptr<Domain>> mapped_;
  struct Translation {
    std::weak_ptr<Domain> to;
    BufferPtr table;
  };
  std::map<const Domain*, Translation> translations_;
  std::map<std::string, Image> images_;
};

}  // namespace rndn::runtime
