// How the elements of a vector lie in memory, apart from their type: the one place that knows it.
//
// An encoding is a row of encodings.def and a file that implements `Encoding`: what it needs to
// know of the elements, its form on the host, and its accesses in kernels. A form is made once, on
// the host or by the kernel that stores a vector, and is never widened on the device: kernels read
// elements as they lie and restore them in registers. Its parameters (`Stored`) are constants of
// the code that reads them, and so a part of that code's key.
//
// The host's form and the device's are the same bytes, which caches may keep as they are.
//
//   const Stored stored = *find(Kind::narrow).fits(type, {.known = true, .min = 0, .max = 200});
//   bool held = find(stored).make(type, stored, plain, rows, bytes); // host
//   Cursor at = e.place(b, type, stored, base, row);                 // kernel
//   Words words = e.fresh(b, type, stored);
//   e.load(b, type, stored, at, 0, guard, words);
//   Words element = e.decode(b, type, stored, words);                // in registers of its type
#pragma once
#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/types.h"
#include "ptx/builder.h"

namespace rndn::encodings {

using hir::BasicType;
using ptx::Builder;
using ptx::Pred;
using ptx::Reg;
using ptx::Space;
using ptx::U32;
using ptx::U64;

enum class Kind : uint8_t {
#define ENCODING(id) id,
#include "ptx/encodings/encodings.def"
#undef ENCODING
};

// An encoding with its parameters. What an encoding does not use is zero.
struct Stored {
  Kind kind = Kind::plain;
  uint8_t bytes = 0;       // of an element, where it is not that of the type
  bool is_signed = false;  // elements are extended by their sign
  int64_t reference = 0;   // added to what is stored
  uint8_t bits = 0;        // of an element, where elements lie side by side in bits
  uint8_t exponent = 0;    // f64: elements are integers divided by 10^exponent
  uint8_t begin = 0;       // record: the bit of a row's record where its element begins
  auto operator<=>(const Stored&) const = default;
};

// Bytes of an element that is stored plainly; text is a code of 4 bytes.
inline uint32_t plain_bytes(BasicType type) { return hir::row(type).device_width; }

// What is known of the elements: integers, calendar values and codes of text lie in min..max;
// f64: they are integers in min..max, each divided by 10^exponent.
struct Facts {
  bool known = false;
  int64_t min = 0, max = 0;
  uint8_t exponent = 0;
};

// Registers of an element in generated code. Integers of 8 and 16 bits are kept sign-extended in
// s32; calendar values and text codes as integers; bools as predicates, but 0 or 1 in s32 where
// they come from or go to memory. Complex numbers are two registers of f64; i128 is two of s64.
enum class Rep : uint8_t { pred, s32, s64, f32, f64, complex, wide };
Rep rep_of(BasicType type);

// Registers that a load fills, or that an element is restored to; none: not used.
struct Words {
  explicit Words(ptx::RegisterId first = none<ptx::RegisterId>(),
                 ptx::RegisterId second = none<ptx::RegisterId>(),
                 ptx::RegisterId third = none<ptx::RegisterId>())
      : at{first, second, third} {}
  std::array<ptx::RegisterId, 3> at;
  Reg<U32> begin;     // loaded: the bit of the first word where the element begins (modulo 32)
  Reg<ptx::S32> low;  // restored, where the form holds_low: what is extended by its sign
};

// Where a reading of a vector stands.
struct Cursor {
  Reg<U64> pointer;
  Reg<U32> begin;  // as of Words; not all encodings have it
};

class Addressed;

class Encoding {
 public:
  virtual ~Encoding() = default;
  virtual std::string_view name() const = 0;

  // The parameters for elements of the type; none: it cannot store them, or not in fewer bytes.
  virtual std::optional<Stored> fits(BasicType type, const Facts& facts) const = 0;
  virtual uint32_t bits(BasicType type, const Stored& stored) const = 0;  // per element
  virtual uint64_t bytes(BasicType type, const Stored& stored, uint64_t rows) const = 0;

  // Between the plain form and this one, on the host. Parts of a vector may be made side by side:
  // one that begins at a row divisible by 64 lies bits() times that row into the vector. False:
  // an element is not as the facts said, which it could not be restored from.
  [[nodiscard]] virtual bool make(BasicType type, const Stored& stored, const std::byte* plain, uint64_t rows,
                    std::byte* to) const = 0;
  virtual void restore(BasicType type, const Stored& stored, const std::byte* from, uint64_t rows,
                       std::byte* plain) const = 0;

  // In kernels. `place`: at that row; `load`: the element that lies `beyond` rows after it, where
  // `guard` holds (always when it is no register), else the registers stay as they are. Steps of
  // `advance` and `beyond` are divisible by 32.
  virtual Cursor place(Builder& b, BasicType type, const Stored& stored, Reg<U64> base,
                       Reg<U32> row) const = 0;
  virtual void advance(Builder& b, BasicType type, const Stored& stored, Cursor& at,
                       uint32_t rows) const = 0;
  virtual Words fresh(Builder& b, BasicType type, const Stored& stored) const = 0;
  virtual void clear(Builder& b, BasicType type, const Stored& stored, const Words& w) const = 0;
  virtual void load(Builder& b, BasicType type, const Stored& stored, const Cursor& at,
                    int64_t beyond, Reg<Pred> guard, Words& into) const = 0;
  virtual Words decode(Builder& b, BasicType type, const Stored& stored, const Words& w) const = 0;
  // An integer of 64 bits is restored from a register of 32 bits, extended by its sign: Words::low.
  virtual bool holds_low(BasicType type, const Stored& stored) const = 0;
  // The form whose elements have addresses of their own, so that kernels can store them; else null.
  virtual const Addressed* addressed() const = 0;
};

const Encoding& find(Kind kind);
inline const Encoding& find(const Stored& stored) { return find(stored.kind); }
inline uint32_t bits_of(BasicType type, const Stored& s) { return find(s).bits(type, s); }

// Encodings where element i lies at base + i * (bytes of an element).
class Addressed : public Encoding {
 public:
  uint32_t bits(BasicType type, const Stored& s) const final { return 8 * width(type, s); }
  uint64_t bytes(BasicType type, const Stored& s, uint64_t rows) const final {
    return rows * width(type, s);
  }
  Cursor place(Builder& b, BasicType type, const Stored& stored, Reg<U64> base,
               Reg<U32> row) const final;
  void advance(Builder& b, BasicType type, const Stored& stored, Cursor& at,
               uint32_t rows) const final;
  void clear(Builder& b, BasicType type, const Stored& stored, const Words& w) const final;
  void load(Builder& b, BasicType type, const Stored& stored, const Cursor& at, int64_t beyond,
            Reg<Pred> guard, Words& into) const final;
  const Addressed* addressed() const final { return this; }

  virtual uint32_t width(BasicType type, const Stored& stored) const = 0;  // bytes per element
  virtual ptx::Type memory(BasicType type, const Stored& stored) const = 0;
  // What decode restores, and back: registers that `store` takes.
  virtual Words encode(Builder& b, BasicType type, const Stored& s, const Words& element) const = 0;

  void load(Builder& b, BasicType type, const Stored& stored, Space space, ptx::Address at,
            Reg<Pred> guard, const Words& into) const;
  void store(Builder& b, BasicType type, const Stored& stored, Space space, ptx::Address at,
             Reg<Pred> guard, const Words& from) const;
};

// Of a vector that kernels store: `stored` is one of these.
const Addressed& find_addressed(const Stored& stored);

// Vectors whose elements of a row lie in one record (record.cpp): where, by what is known of them. None: they do not fit, or have types that no record
// holds. They are restored as Encoding has it; each gets the address of all records.
struct Vector {
  BasicType type{};
  Facts facts;
};
std::optional<std::vector<Stored>> record_of(std::span<const Vector> vectors);
// What a kernel that makes records stores of an element: its bits at their place in the word of 8 bytes where they lie, to be joined by `or`.
Reg<U64> record_bits(Builder& b, BasicType type, const Stored& stored, const Words& element);

// Short, of letters, digits and underscores: for names of kernels.
std::string text(const Stored& stored);

}  // namespace rndn::encodings
