// The graph of vectors (graph.h): nodes without repetitions, the rules of keeping and picking, and
// the text.
//
// Algorithm: value numbering by a table of nodes (Cocke, Schwartz, Programming Languages and their
// Compilers, 1970); what the results do not reach is not printed. Cost: O(log n) per node for n
// nodes, and the size of an element-wise expression where rows are kept of it.
#include "frontend/sql/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <unordered_map>

#include "frontend/calendar.h"

namespace rndn::sql {

using hir::BasicType;

namespace {

// Bounds beyond this are not known: products of two that are within stay within 128 bits.
constexpr uint16_t deepest =
    200;  // element-wise operations on each other that keeping and picking go through

// Elements of a vector at most (runtime/data/column.h): a join that gives more ends in an error
// there.
constexpr double longest = 4294967296.0;

// The greatest DECIMAL of 38 digits.
constexpr __int128 widest = [] {
  __int128 power = 1;
  for (int digit = 0; digit < 38; ++digit) power *= 10;
  return power - 1;
}();

Bounds checked(__int128 least, __int128 most) {
  return least < -widest || most > widest ? Bounds{} : Bounds::of(least, most);
}
__int128 magnitude(Bounds a) {
  return std::max(a.most < 0 ? -a.most : a.most, a.least < 0 ? -a.least : a.least);
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default: out += c;
    }
  }
  return out + '"';
}

std::string digits(__int128 value) {
  if (value == 0) return "0";
  std::string out;
  const bool negative = value < 0;
  for (; value != 0; value /= 10)
    out.insert(out.begin(), static_cast<char>('0' + std::abs(static_cast<int>(value % 10))));
  return negative ? "-" + out : out;
}

std::string integer_text(BasicType type, __int128 value) {
  return fmt::format("{}:{}",
                     type == BasicType::date ? hir::calendar_text(type, static_cast<int64_t>(value))
                                             : digits(value),
                     hir::basic_type_name(type));
}

}  // namespace

Bounds operator+(Bounds a, Bounds b) {
  __int128 least, most;
  if (!a.known || !b.known || __builtin_add_overflow(a.least, b.least, &least) ||
      __builtin_add_overflow(a.most, b.most, &most))
    return {};
  return checked(least, most);
}
Bounds operator-(Bounds a, Bounds b) {
  __int128 least, most;
  if (!a.known || !b.known || __builtin_sub_overflow(a.least, b.most, &least) ||
      __builtin_sub_overflow(a.most, b.least, &most))
    return {};
  return checked(least, most);
}
Bounds operator*(Bounds a, Bounds b) {
  if (!a.known || !b.known) return {};
  const __int128 x = magnitude(a), y = magnitude(b);
  if (y != 0 && x > widest / y) return {};
  const __int128 corners[] = {a.least * b.least, a.least * b.most, a.most * b.least,
                              a.most * b.most};
  return checked(*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4));
}
Bounds join(Bounds a, Bounds b) {
  return a.known && b.known ? Bounds::of(std::min(a.least, b.least), std::max(a.most, b.most))
                            : Bounds{};
}

BasicType fitting(Bounds bounds) {
  return bounds.within(INT8_MIN, INT8_MAX)     ? BasicType::i8
         : bounds.within(INT16_MIN, INT16_MAX) ? BasicType::i16
         : bounds.within(INT32_MIN, INT32_MAX) ? BasicType::i32
         : bounds.fits_i64()                   ? BasicType::i64
                                               : BasicType::i128;
}

Graph::Graph() { spaces_.add({}); }

VectorId Graph::add(Vector v) {
  std::string key = v.head + '\n';
  for (VectorId a : v.arguments) key += fmt::format(" {}", index(a));
  key += '\n' + v.tail;
  const auto [at, is_new] = known_.emplace(std::move(key), vectors_.next_id());
  if (is_new) vectors_.add(std::move(v));
  return at->second;
}

VectorId Graph::integer(BasicType type, __int128 value) {
  if (type == BasicType::i8 || type == BasicType::i16 || type == BasicType::i32 || type == BasicType::i64)
    CHECK(hir::widest(type, fitting(Bounds::of(value, value))) == type, "a literal beyond its type");
  Vector v;
  v.kind = Vector::literal;
  v.type = type;
  v.bounds = Bounds::of(value, value);
  v.head = integer_text(type, value);
  return add(std::move(v));
}

VectorId Graph::real(BasicType type, double value) {
  Vector v;
  v.kind = Vector::literal;
  v.type = type;
  v.head = fmt::format("{}:{}", value, hir::basic_type_name(type));
  return add(std::move(v));
}

VectorId Graph::text(BasicType type, std::string_view value) {
  Vector v;
  v.kind = Vector::literal;
  v.type = type;
  v.text = value;
  if (type == BasicType::character) {
    std::string byte = quoted(value);
    byte = byte.substr(1, byte.size() - 2);
    v.head = fmt::format("'{}':char", byte == "'" ? "\\'" : byte == "\\\"" ? "\"" : byte);
  } else {
    v.head = fmt::format("{}{}:{}", type == BasicType::sym ? "`" : "", quoted(value),
                         hir::basic_type_name(type));
  }
  return add(std::move(v));
}

VectorId Graph::list_literal(BasicType type, const std::vector<VectorId>& literals) {
  if (literals.size() == 1) return literals[0];
  Vector v;
  v.kind = Vector::literal;
  v.type = type;
  std::string values;
  for (VectorId l : literals) {
    const std::string& text = vectors_[l].head;  // value:type
    values += fmt::format("{}{}", values.empty() ? "" : ",", text.substr(0, text.rfind(':')));
  }
  v.head = fmt::format("({}):{}", values, hir::basic_type_name(type));
  return add(std::move(v));
}

VectorId Graph::zero(BasicType type) {
  if (type == BasicType::f32 || type == BasicType::f64) return real(type, 0);
  if (hir::is_text(type)) return text(type, "");
  if (type == BasicType::character) return text(type, " ");
  return integer(type, 0);
}

SpaceId Graph::space_of(const std::vector<VectorId>& arguments) const {
  for (VectorId a : arguments)
    if (vectors_[a].space != one_row) return vectors_[a].space;
  return one_row;
}

// Adds an element-wise operation; one on too many others is a wall, so that recursion ends.
VectorId Graph::settle(Vector v) {
  for (VectorId a : v.arguments)
    if (vectors_[a].kind == Vector::element_wise)
      v.depth = std::max<uint16_t>(v.depth, vectors_[a].depth + 1);
  if (v.depth > deepest) {
    v.kind = Vector::plain;
    v.depth = 0;
  }
  return add(std::move(v));
}

VectorId Graph::map(std::string_view builtin, const std::vector<VectorId>& arguments,
                    BasicType type, Bounds bounds) {
  Vector v;
  v.kind = Vector::element_wise;
  v.head = fmt::format("@{}(", builtin);
  v.tail = ")";
  v.arguments = arguments;
  v.type = type;
  v.space = space_of(arguments);
  v.bounds = bounds;
  v.hint = builtin;
  return settle(std::move(v));
}

VectorId Graph::cast(VectorId x, BasicType type) {
  if (vectors_[x].type == type) return x;
  Vector v;
  v.kind = Vector::element_wise;
  v.head = "check_cast(";
  v.tail = fmt::format(", {})", hir::basic_type_name(type));
  v.arguments = {x};
  v.type = type;
  v.space = vectors_[x].space;
  const auto whole = [](BasicType t) { return hir::is_integer(t) || hir::is_wide(t); };
  if (whole(type) && whole(vectors_[x].type)) {
    v.bounds = vectors_[x].bounds;
    v.unique = vectors_[x].unique;
  }
  v.hint = vectors_[x].hint;
  return settle(std::move(v));
}

VectorId Graph::call(std::string head, const std::vector<VectorId>& arguments, BasicType type,
                     SpaceId space, Hint hint, Bounds bounds, std::string tail,
                     std::string declared) {
  Vector v;
  v.head = std::move(head);
  v.tail = std::move(tail);
  v.declared = std::move(declared);
  v.arguments = arguments;
  v.type = type;
  v.space = space;
  v.bounds = bounds;
  v.hint = std::move(hint.text);
  return add(std::move(v));
}

void Graph::name(VectorId v, std::string_view hint) {
  if (!hint.empty() && std::isalpha(static_cast<unsigned char>(hint[0]))) vectors_[v].hint = hint;
}

VectorId Graph::not_(VectorId a) {
  if (is_true(a)) return integer(BasicType::boolean, 0);
  if (is_false(a)) return integer(BasicType::boolean, 1);
  return map("not", {a}, BasicType::boolean);
}
VectorId Graph::and_(VectorId a, VectorId b) {
  if (is_none(a) || (!is_none(b) && (is_true(a) || is_false(b)))) return b;
  if (is_none(b) || is_true(b) || is_false(a) || a == b) return a;
  if (const VectorId met = meet(a, b); !is_none(met)) return met;
  return map("and", {a, b}, BasicType::boolean);
}

// Two masks that are picked at the same row numbers meet where they come from: there are fewer
// rows. `a` may be an AND with such a mask in it.
VectorId Graph::meet(VectorId a, VectorId b) {
  const Vector x = vectors_[a], y = vectors_[b];
  if (y.kind != Vector::picked) return none<VectorId>();
  if (x.kind == Vector::picked && x.arguments[1] == y.arguments[1]) {
    const VectorId from = x.arguments[0], to = y.arguments[0];
    if (vectors_[from].space != vectors_[to].space) return none<VectorId>();
    return pick(and_(from, to), x.arguments[1]);
  }
  if (x.kind != Vector::element_wise || x.head != "@and(") return none<VectorId>();
  for (size_t k : {0, 1})
    if (const VectorId met = meet(x.arguments[k], b); !is_none(met))
      return and_(met, x.arguments[1 - k]);
  return none<VectorId>();
}
VectorId Graph::or_(VectorId a, VectorId b) {
  if (is_none(a) || is_none(b)) return none<VectorId>();
  if (is_false(a) || is_true(b)) return b;
  if (is_false(b) || is_true(a) || a == b) return a;
  return map("or", {a, b}, BasicType::boolean);
}
VectorId Graph::select(VectorId mask, VectorId a, VectorId b) {
  if (a == b || is_none(mask) || is_true(mask)) return a;
  if (is_false(mask)) return b;
  return map("select", {mask, a, b}, vectors_[a].type,
             join(vectors_[a].bounds, vectors_[b].bounds));
}

SpaceId Graph::space(double most_rows, VectorId witness) {
  Space s;
  s.most_rows = std::min(most_rows, longest);
  s.witness = witness;
  return spaces_.add(s);
}

SpaceId Graph::kept(SpaceId parent, VectorId mask) {
  const auto [at, is_new] = kept_.emplace(std::pair(parent, mask), spaces_.next_id());
  if (is_new) {
    Space s;
    s.parent = parent;
    s.mask = spread(mask, parent);
    s.most_rows = spaces_[parent].most_rows;
    spaces_.add(s);
  }
  return at->second;
}

VectorId Graph::keep(SpaceId to, VectorId x) {
  const auto at = kept_vectors_.find({to, x});
  if (at != kept_vectors_.end()) return at->second;
  const VectorId v = kept_of(to, x);
  kept_vectors_.emplace(std::pair(to, x), v);
  return v;
}

VectorId Graph::pick(VectorId x, VectorId rows) {
  const auto at = picked_vectors_.find({x, rows});
  const VectorId v = at != picked_vectors_.end() ? at->second : picked_of(x, rows);
  if (at == picked_vectors_.end()) picked_vectors_.emplace(std::pair(x, rows), v);
  // Also where what it is made of in the end is not unique: the first rows of groups.
  if (vectors_[x].unique && vectors_[rows].unique) vectors_[v].unique = true;
  return v;
}

VectorId Graph::kept_of(SpaceId to, VectorId x) {
  const Space s = spaces_[to];
  const Vector v = vectors_[x];
  if (s.parent != one_row) {
    if (v.space != s.parent) return x;  // a scalar
    if (v.kind == Vector::picked) return pick(v.arguments[0], keep(to, v.arguments[1]));
    if (v.kind == Vector::element_wise) {
      Vector moved = v;
      for (VectorId& a : moved.arguments) a = keep(to, a);
      moved.space = to;
      return add(std::move(moved));
    }
  } else if (v.space != one_row) {
    return x;
  }
  if (v.head == "@range(") {
    const VectorId where = call("@where(", {s.mask}, BasicType::i64, to, "row", v.bounds);
    vectors_[where].unique = true;
    return where;
  }
  Vector k;
  k.kind = Vector::kept;
  k.head = "@compress(";
  k.tail = ")";
  k.arguments = {s.mask, x};
  k.type = v.type;
  k.space = to;
  k.bounds = v.bounds;
  k.unique = v.unique;
  k.hint = v.hint;
  return add(std::move(k));
}

VectorId Graph::picked_of(VectorId x, VectorId rows) {
  const Vector v = vectors_[x];
  if (v.space == one_row) return x;
  if (vectors_[rows].head == "@range(" && vectors_[rows].space == v.space) return x;
  const auto fewer = [&](SpaceId s) {
    return spaces_[s].most_rows < spaces_[vectors_[rows].space].most_rows;
  };
  if (v.type == BasicType::boolean && vectors_[rows].kind == Vector::picked) {
    // A mask comes step by step over tables with fewer rows than the last, so that masks of one
    // table meet there (and_).
    const std::vector<VectorId> steps = vectors_[rows].arguments;
    if (fewer(vectors_[steps[0]].space)) return pick(pick(x, steps[0]), steps[1]);
  }
  if (v.kind == Vector::picked && (v.type != BasicType::boolean || !fewer(v.space)))
    return pick(v.arguments[0], pick(v.arguments[1], rows));
  // The key that is its place: of `v - least` it is v.
  const Vector& r = vectors_[rows];
  if (v.dense && r.kind == Vector::element_wise && r.head == "@minus(" && r.type == v.type &&
      vectors_[r.arguments[1]].head == integer_text(v.type, v.bounds.least) &&
      vectors_[r.arguments[0]].type == v.type)
    return r.arguments[0];
  // A conversion of one vector goes behind the picking; what compares stays on the side with fewer
  // rows.
  if (v.kind == Vector::element_wise && v.type != BasicType::boolean) {
    size_t vectors = 0;
    for (VectorId a : v.arguments) vectors += vectors_[a].space != one_row;
    if (vectors == 1) {
      Vector moved = v;
      for (VectorId& a : moved.arguments) a = pick(a, rows);
      moved.space = vectors_[rows].space;
      moved.unique = v.unique && vectors_[rows].unique;
      return add(std::move(moved));
    }
  }
  Vector p;
  p.kind = Vector::picked;
  p.head = "@index(";
  p.tail = ")";
  p.arguments = {x, rows};
  p.type = v.type;
  p.space = vectors_[rows].space;
  p.bounds = v.bounds;
  p.unique = v.unique && vectors_[rows].unique;
  p.hint = v.hint;
  return add(std::move(p));
}

void Graph::add_identity(SpaceId s, std::vector<VectorId> vectors) {
  auto& all = spaces_[s].identities;
  if (!vectors.empty() && std::find(all.begin(), all.end(), vectors) == all.end())
    all.push_back(std::move(vectors));
}

std::vector<std::vector<VectorId>> Graph::identities_of(SpaceId s) {
  std::vector<std::vector<VectorId>> out = spaces_[s].identities;
  if (spaces_[s].parent == one_row) return out;
  for (std::vector<VectorId> identity : identities_of(spaces_[s].parent)) {
    for (VectorId& v : identity) v = keep(s, v);
    out.push_back(std::move(identity));
  }
  return out;
}

void Graph::inherit_identities(SpaceId to, SpaceId from, VectorId rows) {
  for (std::vector<VectorId> identity : identities_of(from)) {
    for (VectorId& v : identity) v = pick(v, rows);
    add_identity(to, std::move(identity));
  }
}

// What a vector is made of by operations that keep different values different: integers and texts
// made wider, exact numbers times a constant.
VectorId Graph::origin(VectorId v) const {
  for (;;) {
    const Vector& x = vectors_[v];
    if (x.kind != Vector::element_wise) return v;
    const BasicType from = vectors_[x.arguments[0]].type;
    const auto whole = [](BasicType t) { return hir::is_integer(t) || hir::is_wide(t); };
    const bool wider = x.head == "check_cast(" && ((whole(x.type) && whole(from)) ||
                                                   (hir::is_text(x.type) && hir::is_text(from)));
    const bool scaled = x.head == "@mul(" && whole(x.type) && x.bounds.known &&
                        is_literal(x.arguments[1]) && vectors_[x.arguments[1]].bounds.least > 0;
    if (!wider && !scaled) return v;
    v = x.arguments[0];
  }
}

bool Graph::tell_apart(SpaceId s, const std::vector<VectorId>& of) {
  std::vector<VectorId> vectors;
  for (VectorId v : of) {
    if (vectors_[v].space != s) continue;
    vectors.push_back(origin(v));
    if (vectors_[vectors.back()].unique) return true;
  }
  // A vector tells apart what row numbers do that pick it from a unique one.
  const auto tells = [&](VectorId v, VectorId part) {
    while (v != part && vectors_[v].kind == Vector::picked &&
           vectors_[vectors_[v].arguments[0]].unique)
      v = vectors_[v].arguments[1];
    return v == part;
  };
  const auto has = [&](VectorId part) {
    return std::any_of(vectors.begin(), vectors.end(), [&](VectorId v) { return tells(v, part); });
  };
  const auto identities = identities_of(s);
  return std::any_of(identities.begin(), identities.end(), [&](const auto& identity) {
    return std::all_of(identity.begin(), identity.end(), has);
  });
}

VectorId Graph::count(SpaceId s) {
  if (s == one_row) return integer(BasicType::i64, 1);
  const Space& space = spaces_[s];
  VectorId witness = space.witness;
  if (is_none(witness)) {
    const SpaceId parent = space.parent;
    witness = parent == one_row ? space.mask : spaces_[parent].witness;
    if (is_none(witness)) witness = rows(parent);
    witness = keep(s, witness);
  }
  return call("@len(", {witness}, BasicType::i64, one_row, "count",
              Bounds::of(0, static_cast<__int128>(spaces_[s].most_rows)));
}

VectorId Graph::rows(SpaceId s) {
  const VectorId n = count(s);
  const VectorId r = call("@range(", {n}, BasicType::i64, s, "row", vectors_[n].bounds);
  vectors_[r].unique = true;
  return r;
}

VectorId Graph::spread(VectorId v, SpaceId s) {
  if (s == one_row || vectors_[v].space != one_row) return v;
  const VectorId rows = count(s);  // may add vectors: references to others end here
  const Vector x = vectors_[v];
  return call("@vector(", {rows, v}, x.type, s, "all", x.bounds);
}

bool Graph::determines(VectorId key, VectorId v) const {
  std::map<VectorId, bool> known;
  return determines(key, v, known);
}

bool Graph::determines(VectorId key, VectorId v, std::map<VectorId, bool>& known) const {
  if (key == v || vectors_[v].space == one_row) return true;
  if (const auto at = known.find(v); at != known.end()) return at->second;
  const Vector &k = vectors_[key], &x = vectors_[v];
  bool yes = false;
  if (x.kind == Vector::picked) {
    yes = determines(key, x.arguments[1], known);
  } else if (x.kind == Vector::element_wise) {
    yes = true;
    for (VectorId a : x.arguments) yes = yes && determines(key, a, known);
  } else if (x.kind == Vector::kept && k.kind == Vector::kept && x.arguments[0] == k.arguments[0]) {
    yes = determines(k.arguments[1], x.arguments[1]);
  }
  return known[v] = yes;
}

VectorId Graph::require(VectorId ok, VectorId v, std::string_view message, Place place) {
  if (is_true(ok)) return v;
  const VectorId said = text(BasicType::sym, message);  // adds vectors: references to others end here
  const VectorId r = map("require", {ok, v, said}, vectors_[v].type, vectors_[v].bounds);
  vectors_[r].place = place.known() ? place : Place{0, 0};  // then the statement as a whole
  return r;
}

std::string Graph::print(const std::vector<VectorId>& results) {
  std::vector<bool> needed(vectors_.size());
  for (VectorId r : results) needed[index(r)] = true;
  for (size_t i = vectors_.size(); i-- > 0;)
    if (needed[i])
      for (VectorId a : vectors_[static_cast<VectorId>(i)].arguments) needed[index(a)] = true;

  names_.assign(vectors_.size(), "");
  places_.clear();
  uint32_t line = 0;
  std::set<std::string> taken = {"module",     "import", "global", "def",     "kernel",
                                 "check_cast", "if",     "else",   "while",   "repeat",
                                 "var",        "return", "break",  "continue"};
  std::unordered_map<std::string, size_t> numbers;  // of each hint: all below are taken
  std::string out;
  for (size_t i = 0; i < vectors_.size(); ++i) {
    const Vector& v = vectors_[static_cast<VectorId>(i)];
    if (!needed[i]) continue;
    if (v.kind == Vector::literal) {
      names_[i] = v.head;
      continue;
    }
    std::string hint;
    for (char c : v.hint.substr(0, 40))
      hint += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    // A name begins with a letter, and `_` alone is none.
    if (hint.empty() || !std::isalpha(static_cast<unsigned char>(hint[0]))) hint.insert(0, "v");
    std::string name = hint;
    size_t& number = numbers.try_emplace(hint, 2).first->second;
    while (!taken.insert(name).second) name = fmt::format("{}_{}", hint, number++);
    names_[i] = name;
    std::string arguments;
    for (VectorId a : v.arguments)
      arguments += fmt::format("{}{}", arguments.empty() ? "" : ", ", names_[index(a)]);
    out += fmt::format("        {}:{} = {}{}{};\n", name, v.declared, v.head, arguments, v.tail);
    if (v.place.known()) places_.emplace_back(line, v.place);
    ++line;
  }
  return out;
}

}  // namespace rndn::sql
