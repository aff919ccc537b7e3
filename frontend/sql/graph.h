// A HorseIR program in the making: vectors as nodes of a graph in which no node stands twice.
//
// Every vector belongs to a *space*, the rows that it has an element for: a table, the rows that a
// mask keeps of another space, the rows that a vector of row numbers picks, the groups of a
// grouping. Space `one` is that of scalars, which go with every space. Making a node costs nothing
// in the program: only what the results need is printed, in the order of making. Two rules keep
// work where there is least of it: keeping and picking move towards columns through element-wise
// operations, and row numbers of row numbers become one vector (late materialisation; Abadi, Myers,
// DeWitt, Madden, ICDE 2007).
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/sql/plan.h"
#include "frontend/types.h"
#include "libraries/base/containers/id.h"

namespace rndn::sql {

enum class VectorId : uint32_t {};
enum class SpaceId : uint32_t {};
inline constexpr SpaceId one_row{0};

// What is known of the integers (dates: days) of a vector. Wide enough that sums and products of
// 64-bit bounds do not leave it; what would leave it is not known.
struct Bounds {
  bool known = false;
  __int128 least = 0, most = 0;
  static Bounds of(__int128 least, __int128 most) { return {true, least, most}; }
  bool within(__int128 low, __int128 high) const { return known && least >= low && most <= high; }
  bool fits_i64() const { return within(INT64_MIN, INT64_MAX); }
};
Bounds operator+(Bounds a, Bounds b);
Bounds operator-(Bounds a, Bounds b);
Bounds operator*(Bounds a, Bounds b);
Bounds join(Bounds a, Bounds b);
// The narrowest type of integers that holds them; i128 where they are not known.
hir::BasicType fitting(Bounds bounds);

struct Vector {
  enum Kind : uint8_t { literal, plain, element_wise, kept, picked };
  Kind kind = plain;
  std::string head, tail;           // as printed around the arguments; a literal is its head
  std::vector<VectorId> arguments;  // kept: mask, vector; picked: vector, row numbers
  std::string declared = "?";       // the type of its declaration
  hir::BasicType type{};
  SpaceId space = one_row;
  Bounds bounds;
  uint16_t depth = 0;               // of element-wise operations, up to a bound
  bool unique = false;              // no value stands twice
  bool dense = false;               // a table's column that ascends by one from row to row
  std::string hint;                 // of its name in the program
  std::optional<std::string> text;  // literal: a text
  Place place;                      // of what may fail: where it stands in the text of the query
};

struct Space {
  SpaceId parent = one_row;  // of which `mask` keeps rows
  VectorId mask = none<VectorId>();
  VectorId witness = none<VectorId>();  // a vector that has an element for each row
  double most_rows = 1;                 // an upper bound
  // Each: vectors that together tell its rows apart, such as those of pairs.
  std::vector<std::vector<VectorId>> identities;
};

// What a vector is named after. It owns its text: that of another vector moves when vectors are
// added, as other arguments of the same call may do.
struct Hint {
  template <class Text>
  Hint(const Text& from) : text(from) {}  // NOLINT: texts of any type stand for one
  std::string text;
};

class Graph {
 public:
  Graph();

  const Vector& operator[](VectorId v) const { return vectors_[v]; }
  Vector& change(VectorId v) { return vectors_[v]; }
  const Space& operator[](SpaceId s) const { return spaces_[s]; }

  VectorId integer(hir::BasicType type, __int128 value);  // also bool and date (days since 1970)
  VectorId real(hir::BasicType type, double value);
  VectorId text(hir::BasicType type, std::string_view value);  // sym, str, or character of one byte
  VectorId list_literal(hir::BasicType type, const std::vector<VectorId>& literals);  // (1,2,3):i32
  VectorId zero(hir::BasicType type);  // what stands under a null
  bool is_literal(VectorId v) const { return vectors_[v].kind == Vector::literal; }
  bool is_true(VectorId v) const {
    return is_literal(v) && vectors_[v].type == hir::BasicType::boolean &&
           vectors_[v].head == "1:bool";
  }
  bool is_false(VectorId v) const {
    return is_literal(v) && vectors_[v].type == hir::BasicType::boolean &&
           vectors_[v].head == "0:bool";
  }

  // An element-wise builtin: keeping and picking go through it.
  VectorId map(std::string_view builtin, const std::vector<VectorId>& arguments,
               hir::BasicType type, Bounds bounds = {});
  VectorId cast(
      VectorId v,
      hir::BasicType
          type);  // of numbers and bool to a type that is not narrower, or of floats; itself where equal
  // Any other call, of the given space. `head` ends where the arguments begin: "@each_right(@index,
  // ".
  VectorId call(std::string head, const std::vector<VectorId>& arguments, hir::BasicType type,
                SpaceId space, Hint hint, Bounds bounds = {}, std::string tail = ")",
                std::string declared = "?");
  void name(VectorId v, std::string_view hint);  // where it has none yet

  VectorId not_(VectorId a);
  VectorId and_(VectorId a, VectorId b);  // folds literals; none counts as true
  VectorId or_(VectorId a, VectorId b);
  VectorId select(VectorId mask, VectorId a, VectorId b);
  // v; where `ok` is false the program ends with the message.
  VectorId require(VectorId ok, VectorId v, std::string_view message, Place place);

  SpaceId space(double most_rows, VectorId witness = none<VectorId>());
  void add_identity(SpaceId s, std::vector<VectorId> vectors);
  std::vector<std::vector<VectorId>> identities_of(SpaceId s);  // also of what is kept of a space
  // The rows of `to` are rows of `from`, each once at most, at `rows`.
  void inherit_identities(SpaceId to, SpaceId from, VectorId rows);
  // Do these vectors of the space tell its rows apart?
  bool tell_apart(SpaceId s, const std::vector<VectorId>& vectors);
  void set_witness(SpaceId s, VectorId v) { spaces_[s].witness = v; }
  SpaceId kept(SpaceId parent,
               VectorId mask);  // the rows that the mask keeps; the same for the same mask
  VectorId keep(SpaceId kept, VectorId v);   // a vector of kept's parent, there
  VectorId pick(VectorId v, VectorId rows);  // v's elements at row numbers
  // Is v picked from a space with fewer rows than its own?
  bool is_of_fewer_rows(VectorId v) const {
    return vectors_[v].kind == Vector::picked &&
           spaces_[vectors_[vectors_[v].arguments[0]].space].most_rows < spaces_[vectors_[v].space].most_rows;
  }
  VectorId count(SpaceId s);                 // i64
  VectorId rows(SpaceId s);                  // 0, 1, ..: row numbers within itself
  VectorId spread(VectorId v, SpaceId s);    // a scalar as a vector of s
  // Does every row with one element of `key` have one element of `v`? Both of one space.
  bool determines(VectorId key, VectorId v) const;

  // The statements that `results` need, indented, and the name of each vector after it.
  std::string print(const std::vector<VectorId>& results);
  // Of the lines of print (from 0), those that may fail, and where in the query's text they come from.
  const std::vector<std::pair<uint32_t, Place>>& places() const { return places_; }
  const std::string& name_of(VectorId v) const { return names_[index(v)]; }

 private:
  VectorId add(Vector vector);
  VectorId settle(Vector vector);
  VectorId kept_of(SpaceId kept, VectorId v);
  VectorId picked_of(VectorId v, VectorId rows);
  VectorId meet(VectorId a, VectorId b);
  bool determines(VectorId key, VectorId v, std::map<VectorId, bool>& known) const;
  VectorId origin(VectorId v) const;
  SpaceId space_of(const std::vector<VectorId>& arguments) const;

  // An argument of a call may be a part of one, such as its bounds, while another argument adds to them.
  StableIdVector<VectorId, Vector> vectors_;
  StableIdVector<SpaceId, Space> spaces_;
  std::map<std::string, VectorId> known_;
  std::map<std::pair<SpaceId, VectorId>, SpaceId> kept_;
  std::map<std::pair<SpaceId, VectorId>, VectorId> kept_vectors_;     // keep's results,
  std::map<std::pair<VectorId, VectorId>, VectorId> picked_vectors_;  // and pick's
  std::vector<std::string> names_;
  std::vector<std::pair<uint32_t, Place>> places_;
};

}  // namespace rndn::sql
