// The typed builder: PTX written as C++, where a wrong operand type does not compile.
//
//   Module module;
//   Builder b(module, "saxpy");                   // an entry; a .func: Builder::Kind::function
//   auto x = b.parameter<U64>("x");               // parameters are declared in order
//   auto i = b.mad_lo(b.special(SpecialRegister::ctaid_x), b.special(SpecialRegister::ntid_x),
//                     b.special(SpecialRegister::tid_x));
//   Address at{b.add(b.ld_param(x), b.mul_wide(i, 8u))};
//   Reg<F64> v = b.ld<F64>(Space::global, at);
//   auto p = b.setp(Compare::lt, v, 24.0);        // Reg<Pred>
//   b.when(p).st<F64>(Space::global, at, 0.0);    // @p st.global.f64 [..], 0d0; unless(p) is @!p;
//                                                 // holds for one instruction
//   LabelId done = b.label();                     // bra before it is bound is fine
//   b.when(p).bra(done);
//   b.bind(done);
//   b.ret();
//   b.finish();                                   // moves the function into the module
//
// Types are the empty structs U32, F64, Pred, ...; Reg<T> is a register, Value<T> a register or a C++ constant of T. A
// function takes its first operand as a Reg<T> (which fixes T) and the others as Value<T>; signed and unsigned do not
// mix: as<S32>(x) reinterprets a register of the same width, free of charge. Each function returns a new register;
// passing `into` as the last argument writes an existing one instead (loop variables): b.add(sum, x, sum).
//
// Writes straight into Function's vectors; no other allocation. Modifiers that have no function: emit() takes any
// instruction. Nothing is checked at run time here: verify() (parse.h) says what is wrong, in debug builds and tests.
#pragma once
#include <bit>
#include <charconv>
#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

#include "libraries/base/errors/check.h"
#include "ptx/ir.h"

namespace rndn::ptx {

// The types as C++ types. `native`: what constants of the type are in C++. `family`: prefix of their registers.
template <Type t, class N, uint32_t bytes, class Wide = void>
struct TypeTag {
  static constexpr Type type = t;
  static constexpr uint32_t size = bytes;
  using native = N;
  using wide = Wide;
};
struct Pred : TypeTag<Type::pred, bool, 0> {};
struct B64 : TypeTag<Type::b64, uint64_t, 8> {};
struct B32 : TypeTag<Type::b32, uint32_t, 4, B64> {};
struct B16 : TypeTag<Type::b16, uint16_t, 2, B32> {};
struct U64 : TypeTag<Type::u64, uint64_t, 8> {};
struct U32 : TypeTag<Type::u32, uint32_t, 4, U64> {};
struct U16 : TypeTag<Type::u16, uint16_t, 2, U32> {};
struct S64 : TypeTag<Type::s64, int64_t, 8> {};
struct S32 : TypeTag<Type::s32, int32_t, 4, S64> {};
struct S16 : TypeTag<Type::s16, int16_t, 2, S32> {};
struct F32 : TypeTag<Type::f32, float, 4> {};
struct F64 : TypeTag<Type::f64, double, 8> {};
// In memory only; a register that holds one is a U16, S16 or B16 (PTX has no 8-bit registers).
struct U8 : TypeTag<Type::u8, uint8_t, 1> {};
struct S8 : TypeTag<Type::s8, int8_t, 1> {};
struct B8 : TypeTag<Type::b8, uint8_t, 1> {};

template <class T>
concept Tag = requires {
  { T::type } -> std::convertible_to<Type>;
  typename T::native;
};
template <class T>
concept IntegerTag =
    Tag<T> && T::size >= 2 && std::integral<typename T::native> && !(T::type >= Type::b8 && T::type <= Type::b128);
template <class T>
concept SignedTag = IntegerTag<T> && std::signed_integral<typename T::native>;
template <class T>
concept FloatTag = Tag<T> && std::floating_point<typename T::native>;
template <class T>
concept NumberTag = IntegerTag<T> || FloatTag<T>;
template <class T>
concept PredTag = std::same_as<T, Pred>;
template <class T>
concept ByteTag = Tag<T> && T::size == 1;
template <class T>
concept BitTag = Tag<T> && T::size >= 2 && T::type >= Type::b8&& T::type <= Type::b128;
template <class T>
concept MemoryTag = Tag<T> && T::size >= 1;  // may be loaded and stored
template <class T>
concept WordTag = Tag<T> && T::size >= 2 && !FloatTag<T>;  // integers and bits
template <class T>
concept Tag32 = Tag<T> && T::size == 4;
template <class T>
concept Tag64 = Tag<T> && T::size == 8;
template <class T>
concept Widening = IntegerTag<T> && !std::is_void_v<typename T::wide>;

// The register that a loaded T lives in: bytes in 16-bit registers, everything else in its own.
template <class T>
struct RegisterTagOf {
  using type = T;
};
template <>
struct RegisterTagOf<U8> {
  using type = U16;
};
template <>
struct RegisterTagOf<S8> {
  using type = S16;
};
template <>
struct RegisterTagOf<B8> {
  using type = B16;
};
template <Tag T>
using RegisterTag = typename RegisterTagOf<T>::type;

// A register of type T. Default: no register.
template <Tag T>
struct Reg {
  RegisterId id = none<RegisterId>();
  bool valid() const { return !is_none(id); }
  bool operator==(const Reg&) const = default;
};

template <Tag T>
constexpr int64_t constant_bits(typename T::native value) {
  if constexpr (std::same_as<typename T::native, float>)
    return static_cast<int64_t>(std::bit_cast<uint32_t>(value));
  else if constexpr (std::same_as<typename T::native, double>)
    return std::bit_cast<int64_t>(value);
  else if constexpr (std::same_as<typename T::native, bool>)
    return value ? 1 : 0;
  else
    return static_cast<int64_t>(
        static_cast<std::make_signed_t<typename T::native>>(value));  // sign-extended, also for unsigned T
}

// A source operand of type T: a register, or a constant. Constants convert from integers to integer types and from
// floating types to floating types only, so that neither b.add(f32, 1) nor b.add(u32, 1.0) compiles.
template <Tag T>
struct Value {
  Operand operand;
  Value(Reg<T> r) : operand{.kind = Operand::reg, .id = index(r.id)} {}
  template <class N>
  requires(std::integral<N> && !std::same_as<N, bool> && std::integral<typename T::native> && !PredTag<T>)
      Value(N value)
      : operand{.kind = Operand::immediate, .value = constant_bits<T>(static_cast<typename T::native>(value))} {}
  template <class N>
  requires(std::floating_point<N>&& std::floating_point<typename T::native>) Value(N value)
      : operand{.kind = Operand::immediate, .value = constant_bits<T>(static_cast<typename T::native>(value))} {}
  template <class N>
  requires(std::same_as<N, bool>&& PredTag<T>) Value(N value)
      : operand{.kind = Operand::immediate, .value = value ? 1 : 0} {}
};
template <class T>
using Source = std::type_identity_t<Value<T>>;  // no deduction: T comes from the first operand

// A predicate source that may be negated: p or !p.
struct Condition {
  RegisterId id;
  bool negated = false;
  Condition(Reg<Pred> p) : id(p.id) {}
  Condition(RegisterId r, bool n) : id(r), negated(n) {}
  Condition operator!() const { return {id, !negated}; }
};
inline Condition operator!(Reg<Pred> p) { return {p.id, true}; }

struct SharedVariable {
  VariableId id;
};  // a variable of any space; its address is an operand
// [register + offset], [variable + offset] or [constant].
struct Address {
  Operand operand;
  explicit Address(Reg<U64> base, int64_t offset = 0)
      : operand{.kind = Operand::address_reg, .id = index(base.id), .value = offset} {}
  explicit Address(Reg<S64> base, int64_t offset = 0)
      : operand{.kind = Operand::address_reg, .id = index(base.id), .value = offset} {}
  explicit Address(Reg<B64> base, int64_t offset = 0)
      : operand{.kind = Operand::address_reg, .id = index(base.id), .value = offset} {}
  explicit Address(Reg<U32> base, int64_t offset = 0)
      : operand{.kind = Operand::address_reg, .id = index(base.id), .value = offset} {}  // shared, local
  explicit Address(SharedVariable v, int64_t offset = 0)
      : operand{.kind = Operand::address_var, .id = index(v.id), .value = offset} {}
  Address plus(int64_t bytes) const {
    Address a = *this;
    a.operand.value += bytes;
    return a;
  }
};

template <Tag T>
struct ParameterOf {
  uint32_t index;
};  // a scalar kernel parameter of type T

// How a load or store touches memory.
struct Access {
  Cache cache = Cache::none;
  Semantics semantics = Semantics::none;
  Scope scope = Scope::none;
};

class Builder {
 public:
  enum class Kind : uint8_t { entry, function };

  Builder(Module& module, std::string name, Kind kind = Kind::entry)
      : module_(module), self_(static_cast<uint32_t>(module.functions.size())) {
    f_.name = std::move(name);
    f_.is_entry = kind == Kind::entry;
    f_.visible = true;
    module.functions.emplace_back().name = f_.name;  // takes the place; finish() fills it
  }
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  // Moves the function into the module; the builder is spent. Every label must have been bound (verify says if not).
  uint32_t finish() {
    DCHECK(is_none(guard_), "a guard without an instruction in {}", f_.name);
    module_.functions[self_] = std::move(f_);
    return self_;
  }
  Function& function() { return f_; }

  // ---- declarations
  template <MemoryTag T>
  ParameterOf<T> parameter(std::string name) {
    Parameter& p = f_.parameters.emplace_back();
    p.type = T::type;
    p.name = std::move(name);
    return {static_cast<uint32_t>(f_.parameters.size() - 1)};
  }
  template <Tag T>
  Reg<T> reg() {
    static_assert(T::size != 1, "PTX has no 8-bit registers");
    constexpr uint32_t k = family<T>();
    return {f_.registers.add({family_type[k], false, next_[k]++})};  // its name is made when somebody asks for it
  }
  // A variable in shared memory: `count` elements of T (0: a scalar).
  template <MemoryTag T>
  SharedVariable shared(std::string name, uint64_t count = 0, uint32_t align = 0) {
    return variable<T>(Space::shared, std::move(name), count, align);
  }
  // Dynamic shared memory: .extern .shared name[], its size given at launch.
  template <MemoryTag T>
  SharedVariable dynamic_shared(std::string name, uint32_t align = 16) {
    return {module_.variables.add(
        {Space::shared, T::type, std::move(name), align, UINT64_MAX, true, false, {}, UINT32_MAX})};
  }
  // A variable of this function (shared, local) or of the module (global, constant).
  template <MemoryTag T>
  SharedVariable variable(Space space, std::string name, uint64_t count = 0, uint32_t align = 0) {
    bool own = space == Space::shared || space == Space::local;
    return {module_.variables.add(
        {space, T::type, std::move(name), align, count, false, false, {}, own ? self_ : UINT32_MAX})};
  }
  void set_block_size(uint32_t x, uint32_t y = 1, uint32_t z = 1) { f_.required_threads = {x, y, z}; }
  void set_line(uint32_t line) { line_ = line; }  // source line of the instructions to come

  // ---- control flow
  LabelId label() {
    char name[12] = "$L";
    const char* end = std::to_chars(name + 2, std::end(name), f_.labels.size()).ptr;
    f_.labels.raw().emplace_back().name.assign(name, static_cast<size_t>(end - name));
    return static_cast<LabelId>(f_.labels.size() - 1);
  }
  void bind(LabelId l) { f_.labels[l].at = static_cast<uint32_t>(f_.instructions.size()); }
  LabelId here() {
    LabelId l = label();
    bind(l);
    return l;
  }
  // Guards the next instruction, whose result must be a register that there is already (`into`): one made for it would have no value where the condition
  // fails. This also catches an instruction among the arguments of the guarded one, which would take the guard:
  //   Reg<U64> at = b.mad_wide(i, 4u, base);     // and not b.when(p).ld<U32>(space, Address(b.mad_wide(i, 4u, base)), x)
  //   b.when(p).ld<U32>(space, Address(at), x);
  Builder& when(Condition c) {
    guard_ = c.id;
    guard_negated_ = c.negated;
    return *this;
  }
  Builder& unless(Condition c) { return when(!c); }
  void bra(LabelId target) { put(Opcode::bra, Type::none, {}, {}, {{.kind = Operand::label, .id = index(target)}}); }
  void bra_uni(LabelId target) {
    put(Opcode::bra, Type::none, {.uni = true}, {}, {{.kind = Operand::label, .id = index(target)}});
  }
  void ret() { put(Opcode::ret, Type::none, {}, {}, {}); }
  void exit() { put(Opcode::exit, Type::none, {}, {}, {}); }
  void trap() { put(Opcode::trap, Type::none, {}, {}, {}); }

  // ---- arithmetic
#define RNDN_BINARY(function, opcode, concept_name, ...)                                        \
  template <concept_name T>                                                                     \
  Reg<T> function(Reg<T> a, Source<T> b, Reg<T> into = {}) {                                    \
    return make<T>(Opcode::opcode, T::type, Modifiers{__VA_ARGS__}, {use(a), b.operand}, into); \
  }
#define RNDN_UNARY(function, opcode, concept_name, ...)                              \
  template <concept_name T>                                                          \
  Reg<T> function(Reg<T> a, Reg<T> into = {}) {                                      \
    return make<T>(Opcode::opcode, T::type, Modifiers{__VA_ARGS__}, {use(a)}, into); \
  }
  RNDN_BINARY(add, add, NumberTag)  // float: default rounding, and ptxas may contract it with a mul; add_rn may not be
  RNDN_BINARY(sub, sub, NumberTag)
  RNDN_BINARY(add_rn, add, FloatTag, .rounding = Rounding::rn)
  RNDN_BINARY(sub_rn, sub, FloatTag, .rounding = Rounding::rn)
  RNDN_BINARY(add_rp, add, FloatTag, .rounding = Rounding::rp)
  RNDN_BINARY(add_rm, add, FloatTag, .rounding = Rounding::rm)
  RNDN_BINARY(mul_rn, mul, FloatTag, .rounding = Rounding::rn)
  RNDN_BINARY(mul, mul, FloatTag)
  RNDN_BINARY(mul_lo, mul, IntegerTag, .part = MulPart::lo)
  RNDN_BINARY(mul_hi, mul, IntegerTag, .part = MulPart::hi)
  RNDN_BINARY(div, div, IntegerTag)
  RNDN_BINARY(div_rn, div, FloatTag, .rounding = Rounding::rn)
  RNDN_BINARY(rem, rem, IntegerTag)
  RNDN_BINARY(min, min, NumberTag)
  RNDN_BINARY(max, max, NumberTag)
  RNDN_UNARY(neg, neg, NumberTag)
  RNDN_UNARY(sqrt_rn, sqrt, FloatTag, .rounding = Rounding::rn)
  RNDN_UNARY(rcp_rn, rcp, FloatTag, .rounding = Rounding::rn)

  template <Tag T>
  requires(SignedTag<T> || FloatTag<T>) Reg<T> abs(Reg<T> a, Reg<T> into = {}) {
    return make<T>(Opcode::abs, T::type, {}, {use(a)}, into);
  }
  template <Widening T>
  Reg<typename T::wide> mul_wide(Reg<T> a, Source<T> b, Reg<typename T::wide> into = {}) {
    return make<typename T::wide>(Opcode::mul, T::type, {.part = MulPart::wide}, {use(a), b.operand}, into);
  }
  template <IntegerTag T>
  Reg<T> mad_lo(Reg<T> a, Source<T> b, Source<T> c, Reg<T> into = {}) {
    return make<T>(Opcode::mad, T::type, {.part = MulPart::lo}, {use(a), b.operand, c.operand}, into);
  }
  template <Widening T>
  Reg<typename T::wide> mad_wide(Reg<T> a, Source<T> b, Source<typename T::wide> c, Reg<typename T::wide> into = {}) {
    return make<typename T::wide>(Opcode::mad, T::type, {.part = MulPart::wide}, {use(a), b.operand, c.operand}, into);
  }
  template <FloatTag T>
  Reg<T> fma(Reg<T> a, Source<T> b, Source<T> c, Reg<T> into = {}) {  // fma.rn
    return make<T>(Opcode::fma, T::type, {.rounding = Rounding::rn}, {use(a), b.operand, c.operand}, into);
  }

  // ---- bits. and_, or_, xor_, not_ on predicates, integers and bits; the instruction's type is the bit type of that
  // width.
#define RNDN_LOGIC(function)                                                                    \
  template <Tag T>                                                                              \
  requires(WordTag<T> || PredTag<T>) Reg<T> function(Reg<T> a, Source<T> b, Reg<T> into = {}) { \
    return make<T>(Opcode::function, bits_type<T>(), {}, {use(a), b.operand}, into);            \
  }
  RNDN_LOGIC(and_)
  RNDN_LOGIC(or_)
  RNDN_LOGIC(xor_)
  template <Tag T>
  requires(WordTag<T> || PredTag<T>) Reg<T> not_(Reg<T> a, Reg<T> into = {}) {
    return make<T>(Opcode::not_, bits_type<T>(), {}, {use(a)}, into);
  }
  template <WordTag T>
  Reg<T> shl(Reg<T> a, Value<U32> amount, Reg<T> into = {}) {
    return make<T>(Opcode::shl, bits_type<T>(), {}, {use(a), amount.operand}, into);
  }
  template <WordTag T>
  Reg<T> shr(Reg<T> a, Value<U32> amount, Reg<T> into = {}) {
    return make<T>(Opcode::shr, T::type, {}, {use(a), amount.operand}, into);
  }
  template <WordTag T>
  requires(T::size >= 4) Reg<U32> popc(Reg<T> a, Reg<U32> into = {}) {
    return make<U32>(Opcode::popc, bits_type<T>(), {}, {use(a)}, into);
  }
  template <WordTag T>
  requires(T::size >= 4) Reg<U32> clz(Reg<T> a, Reg<U32> into = {}) {
    return make<U32>(Opcode::clz, bits_type<T>(), {}, {use(a)}, into);
  }
  template <WordTag T>
  requires(T::size >= 4) Reg<T> brev(Reg<T> a, Reg<T> into = {}) {
    return make<T>(Opcode::brev, bits_type<T>(), {}, {use(a)}, into);
  }
  template <IntegerTag T>
  requires(T::size >= 4) Reg<U32> bfind(Reg<T> a, Reg<U32> into = {}) {
    return make<U32>(Opcode::bfind, T::type, {}, {use(a)}, into);
  }
  template <IntegerTag T>
  requires(T::size >= 4) Reg<T> bfe(Reg<T> a, Value<U32> position, Value<U32> length, Reg<T> into = {}) {
    return make<T>(Opcode::bfe, T::type, {}, {use(a), position.operand, length.operand}, into);
  }
  template <WordTag T>
  requires(T::size >= 4) Reg<T> bfi(Reg<T> field, Source<T> base, Value<U32> position, Value<U32> length,
                                    Reg<T> into = {}) {
    return make<T>(Opcode::bfi, bits_type<T>(), {}, {use(field), base.operand, position.operand, length.operand}, into);
  }
  Reg<U32> prmt(Reg<U32> a, Value<U32> b, Value<U32> selector, Reg<U32> into = {}) {
    return make<U32>(Opcode::prmt, Type::b32, {}, {use(a), b.operand, selector.operand}, into);
  }

  // ---- comparison and selection
  template <Tag T>
  requires(NumberTag<T> || BitTag<T>) Reg<Pred> setp(Compare compare, Reg<T> a, Source<T> b, Reg<Pred> into = {}) {
    return make<Pred>(Opcode::setp, T::type, {.compare = compare}, {use(a), b.operand}, into);
  }
  // (a compare b) combine c
  template <Tag T>
  requires(NumberTag<T> || BitTag<T>) Reg<Pred> setp(Compare compare, Combine combine, Reg<T> a, Source<T> b,
                                                     Condition c, Reg<Pred> into = {}) {
    return make<Pred>(Opcode::setp, T::type, {.compare = compare, .combine = combine}, {use(a), b.operand, use(c)},
                      into);
  }
  // p ? a : b
  template <Tag T>
  requires(T::size >= 2) Reg<T> selp(Reg<T> a, Source<T> b, Condition p, Reg<T> into = {}) {
    return make<T>(Opcode::selp, T::type, {}, {use(a), b.operand, use(p)}, into);
  }
  template <Tag T>
  requires(T::size >= 2) Reg<T> select(Value<T> a, Value<T> b, Condition p,
                                       Reg<T> into = {}) {  // with constants on both sides: b.select<F64>(1.0, 0.0, p)
    return make<T>(Opcode::selp, T::type, {}, {a.operand, b.operand, use(p)}, into);
  }

  // The low word of {high, low} >> the amount's lowest five bits.
  Reg<U32> funnel_right(Reg<U32> low, Reg<U32> high, Value<U32> amount, Reg<U32> into = {}) {
    return make<U32>(Opcode::shf, Type::b32, {.shift = ShiftMode::wrap, .mode = 2},
                     {use(low), use(high), amount.operand}, into);
  }

  // ---- moves and conversions
  template <Tag T>
  Reg<T> mov(Reg<T> a, Reg<T> into = {}) {
    return make<T>(Opcode::mov, T::type, {}, {use(a)}, into);
  }
  // A register that holds a constant: b.constant<F64>(0.5).
  template <Tag T>
  Reg<T> constant(Value<T> v, Reg<T> into = {}) {
    return make<T>(Opcode::mov, T::type, {}, {v.operand}, into);
  }
  // into = v, for loop variables.
  template <Tag T>
  void assign(Reg<T> into, Source<T> v) {
    make<T>(Opcode::mov, T::type, {}, {v.operand}, into);
  }
  Reg<U32> special(SpecialRegister r, Reg<U32> into = {}) {
    return make<U32>(Opcode::mov, Type::u32, {}, {{.kind = Operand::special, .id = static_cast<uint32_t>(r)}}, into);
  }
  Reg<U64> special64(SpecialRegister r, Reg<U64> into = {}) {  // clock64, globaltimer, gridid
    return make<U64>(Opcode::mov, Type::u64, {}, {{.kind = Operand::special, .id = static_cast<uint32_t>(r)}}, into);
  }
  // Address of a variable within its own space.
  Reg<U64> address_of(SharedVariable v, int64_t offset = 0, Reg<U64> into = {}) {
    return make<U64>(Opcode::mov, Type::u64, {}, {{.kind = Operand::variable, .id = index(v.id), .value = offset}},
                     into);
  }
  Reg<U32> address_of_32(SharedVariable v, int64_t offset = 0, Reg<U32> into = {}) {
    return make<U32>(Opcode::mov, Type::u32, {}, {{.kind = Operand::variable, .id = index(v.id), .value = offset}},
                     into);
  }
  Reg<U64> cvta_to(Space space, Reg<U64> generic, Reg<U64> into = {}) {
    return make<U64>(Opcode::cvta, Type::u64, {.space = space, .to = true}, {use(generic)}, into);
  }
  Reg<U64> cvta(Space space, Reg<U64> a, Reg<U64> into = {}) {
    return make<U64>(Opcode::cvta, Type::u64, {.space = space}, {use(a)}, into);
  }
  // The same bits under another type of the same width: no instruction, no cost.
  template <Tag To, Tag From>
  requires(To::size == From::size && FloatTag<To> == FloatTag<From>) static Reg<To> as(Reg<From> r) { return {r.id}; }
  // The same bits between integer and floating registers: mov.b32, mov.b64.
  template <Tag To, Tag From>
  requires(To::size == From::size && To::size >= 2 &&
           FloatTag<To> != FloatTag<From>) Reg<To> bitcast(Reg<From> r, Reg<To> into = {}) {
    return make<To>(Opcode::mov, bits_type<To>(), {}, {use(r)}, into);
  }
  // Numeric conversion with the rounding that C++ has: to integer rzi, to or between floating types rn where rounding
  // can occur.
  template <NumberTag To, NumberTag From>
  requires(!std::same_as<To, From>) Reg<To> cvt(Reg<From> r, Reg<To> into = {}) {
    Rounding rounding = Rounding::none;
    if constexpr (IntegerTag<To> && FloatTag<From>)
      rounding = Rounding::rzi;
    else if constexpr (FloatTag<To> && (IntegerTag<From> || To::size < From::size))
      rounding = Rounding::rn;
    return cvt<To, From>(rounding, r, into);
  }
  template <NumberTag To, NumberTag From>
  Reg<To> cvt(Rounding rounding, Reg<From> r, Reg<To> into = {}) {
    return make<To>(Opcode::cvt, To::type, {.rounding = rounding}, {use(r)}, into, From::type);
  }
  // Sign- or zero-extends the low byte of a register: cvt.u32.u8.
  template <NumberTag To, ByteTag From, IntegerTag Holder>
  Reg<To> cvt_byte(Reg<Holder> r, Reg<To> into = {}) {
    return make<To>(Opcode::cvt, To::type, {.rounding = FloatTag<To> ? Rounding::rn : Rounding::none}, {use(r)}, into,
                    From::type);
  }
  // {low, high} of a 64-bit register, and back.
  template <Tag64 T>
  std::pair<Reg<U32>, Reg<U32>> unpack(Reg<T> r) {
    Reg<U32> low = result<U32>(Opcode::mov), high = result<U32>(Opcode::mov);
    Operand v = vector({use(low), use(high)});
    put(Opcode::mov, Type::b64, {}, {v}, {use(r)});
    return {low, high};
  }
  template <Tag64 T>
  Reg<T> pack(Reg<U32> low, Reg<U32> high, Reg<T> into = {}) {
    Operand v = vector({use(low), use(high)});
    return make<T>(Opcode::mov, Type::b64, {}, {v}, into);
  }

  // ---- memory. T is the type in memory; bytes arrive in 16-bit registers.
  template <MemoryTag T>
  Reg<RegisterTag<T>> ld_param(ParameterOf<T> p, Reg<RegisterTag<T>> into = {}) {
    return make<RegisterTag<T>>(Opcode::ld, T::type, {.space = Space::param},
                                {{.kind = Operand::parameter, .id = p.index}}, into);
  }
  template <MemoryTag T>
  Reg<RegisterTag<T>> ld(Space space, Address at, Reg<RegisterTag<T>> into = {}) {
    return ld<T>(space, Access{}, at, into);
  }
  template <MemoryTag T>
  Reg<RegisterTag<T>> ld(Space space, Access access, Address at, Reg<RegisterTag<T>> into = {}) {
    return make<RegisterTag<T>>(Opcode::ld, T::type, memory(space, access), {at.operand}, into);
  }
  // ld.global.nc: the kernel never writes that memory.
  template <MemoryTag T>
  Reg<RegisterTag<T>> ld_nc(Address at, Reg<RegisterTag<T>> into = {}) {
    return ld<T>(Space::global, Access{.cache = Cache::nc}, at, into);
  }
  template <MemoryTag T>
  void st(Space space, Address at, Source<RegisterTag<T>> v) {
    st<T>(space, Access{}, at, v);
  }
  template <MemoryTag T>
  void st(Space space, Access access, Address at, Source<RegisterTag<T>> v) {
    put(Opcode::st, T::type, memory(space, access), {}, {at.operand, v.operand});
  }
  template <MemoryTag T>
  std::array<Reg<RegisterTag<T>>, 2> ld_v2(Space space, Address at, Access access = {}) {
    return load_vector<T, 2>(space, access, at);
  }
  template <MemoryTag T>
  requires(T::size <= 4) std::array < Reg<RegisterTag<T>>,
  4 > ld_v4(Space space, Address at, Access access = {}) { return load_vector<T, 4>(space, access, at); }
  template <MemoryTag T>
  void st_v2(Space space, Address at, Source<RegisterTag<T>> a, Source<RegisterTag<T>> b, Access access = {}) {
    Modifiers m = memory(space, access);
    m.vector = 2;
    Operand v = vector({a.operand, b.operand});
    put(Opcode::st, T::type, m, {}, {at.operand, v});
  }
  template <MemoryTag T>
  requires(T::size <= 4) void st_v4(Space space, Address at, Source<RegisterTag<T>> a, Source<RegisterTag<T>> b,
                                    Source<RegisterTag<T>> c, Source<RegisterTag<T>> d, Access access = {}) {
    Modifiers m = memory(space, access);
    m.vector = 4;
    Operand v = vector({a.operand, b.operand, c.operand, d.operand});
    put(Opcode::st, T::type, m, {}, {at.operand, v});
  }

  // ---- atomics. The old value is returned; red has none. Types per operation are the verifier's matter, except where
  // they are obvious.
  template <Tag T>
  requires(T::size >= 4) Reg<T> atom(AtomicOp op, Space space, Address at, Value<T> v, Access access = {},
                                     Reg<T> into = {}) {
    return make<T>(Opcode::atom, atomic_type<T>(op), atomic(op, space, access), {at.operand, v.operand}, into);
  }
  template <WordTag T>
  requires(T::size >= 4) Reg<T> atom_cas(Space space, Address at, Value<T> expected, Value<T> desired,
                                         Access access = {}, Reg<T> into = {}) {
    return make<T>(Opcode::atom, bits_type<T>(), atomic(AtomicOp::cas, space, access),
                   {at.operand, expected.operand, desired.operand}, into);
  }
  template <Tag T>
  requires(T::size >= 4) void red(AtomicOp op, Space space, Address at, Value<T> v, Access access = {}) {
    put(Opcode::red, atomic_type<T>(op), atomic(op, space, access), {}, {at.operand, v.operand});
  }
  void membar(Scope scope) { put(Opcode::membar, Type::none, {.scope = scope}, {}, {}); }
  void fence(Semantics semantics, Scope scope) {
    put(Opcode::fence, Type::none, {.semantics = semantics, .scope = scope}, {}, {});
  }

  // ---- warps and blocks
  void bar_sync(Value<U32> barrier = 0) { put(Opcode::bar, Type::none, {.sync = true}, {}, {barrier.operand}); }
  void bar_warp_sync(Value<U32> mask = 0xFFFFFFFFu) {
    put(Opcode::bar, Type::none, {.sync = true, .mode = 32}, {}, {mask.operand});
  }
  // clamp: as CUDA's __shfl_*_sync make it; 31 for down, bfly and idx over a whole warp, 0 for up.
  template <Tag32 T>
  Reg<T> shfl_sync(ShuffleMode mode, Reg<T> a, Value<U32> lane, Value<U32> clamp, Value<U32> mask = 0xFFFFFFFFu,
                   Reg<T> into = {}) {
    return make<T>(Opcode::shfl, Type::b32, {.shuffle = mode, .sync = true},
                   {use(a), lane.operand, clamp.operand, mask.operand}, into);
  }
  // A 64-bit value in two shuffles.
  template <Tag64 T>
  Reg<T> shfl_sync_64(ShuffleMode mode, Reg<T> a, Value<U32> lane, Value<U32> clamp, Value<U32> mask = 0xFFFFFFFFu,
                      Reg<T> into = {}) {
    auto [low, high] = unpack(a);
    Reg<U32> l = shfl_sync(mode, low, lane, clamp, mask), h = shfl_sync(mode, high, lane, clamp, mask);
    return pack<T>(l, h, into);
  }
  Reg<Pred> vote(VoteMode mode, Condition p, Value<U32> mask = 0xFFFFFFFFu, Reg<Pred> into = {}) {  // all, any, uni
    return make<Pred>(Opcode::vote, Type::pred, {.vote = mode, .sync = true}, {use(p), mask.operand}, into);
  }
  Reg<U32> ballot(Condition p, Value<U32> mask = 0xFFFFFFFFu, Reg<U32> into = {}) {
    return make<U32>(Opcode::vote, Type::b32, {.vote = VoteMode::ballot, .sync = true}, {use(p), mask.operand}, into);
  }

  // Of all lanes, in each of them; sm_80 and later.
  template <IntegerTag T>
  requires(T::size == 4) Reg<T> redux_sync(AtomicOp how, Reg<T> a, Value<U32> mask = 0xFFFFFFFFu, Reg<T> into = {}) {
    return make<T>(Opcode::redux, T::type, {.atomic = how, .sync = true}, {use(a), mask.operand}, into);
  }

  // ---- anything else
  // Appends an instruction with operands as they are; takes and clears the guard.
  void emit(Opcode op, Type type, const Modifiers& mods, std::initializer_list<Operand> destinations,
            std::initializer_list<Operand> sources, Type type2 = Type::none) {
    put(op, type, mods, destinations, sources, type2);
  }
  template <Tag T>
  static Operand use(Reg<T> r) {
    return {.kind = Operand::reg, .id = index(r.id)};
  }
  static Operand use(Condition c) { return {.kind = Operand::reg, .negated = c.negated, .id = index(c.id)}; }
  Operand vector(std::initializer_list<Operand> elements) {
    Operand o{.kind = Operand::vector,
              .count = static_cast<uint8_t>(elements.size()),
              .id = static_cast<uint32_t>(f_.vector_elements.size())};
    f_.vector_elements.append({elements.begin(), elements.size()});
    return o;
  }

 private:
  // Registers are declared by width (register_prefix).
  static constexpr Type family_type[] = {Type::pred, Type::b16, Type::b32, Type::b64, Type::f32, Type::f64};
  template <Tag T>
  static constexpr uint32_t family() {
    if constexpr (PredTag<T>)
      return 0;
    else if constexpr (FloatTag<T>)
      return T::size == 4 ? 4 : 5;
    else
      return T::size == 2 ? 1 : T::size == 4 ? 2 : 3;
  }
  template <Tag T>
  static constexpr Type bits_type() {
    return PredTag<T> ? Type::pred : T::size == 2 ? Type::b16 : T::size == 4 ? Type::b32 : Type::b64;
  }
  template <Tag T>
  static constexpr Type atomic_type(AtomicOp op) {  // exch and the logic operations are .b32/.b64
    if (op == AtomicOp::and_ || op == AtomicOp::or_ || op == AtomicOp::xor_ || op == AtomicOp::exch)
      return bits_type<T>();
    if (op == AtomicOp::add && T::type == Type::s64)
      return Type::u64;  // there is no atom.add.s64; the sum's bits are the same
    return T::type;
  }
  static Modifiers memory(Space space, Access a) {
    return {.space = space, .cache = a.cache, .semantics = a.semantics, .scope = a.scope};
  }
  static Modifiers atomic(AtomicOp op, Space space, Access a) {
    return {.space = space, .semantics = a.semantics, .scope = a.scope, .atomic = op};
  }

  void put(Opcode op, Type type, const Modifiers& mods, std::initializer_list<Operand> destinations,
           std::initializer_list<Operand> sources, Type type2 = Type::none) {
    const size_t made = destinations.size(), count = made + sources.size();
    const auto first = static_cast<uint32_t>(f_.operands.size());
    Operand* const to = f_.operands.extend(count);
    for (size_t k = 0; k < count; ++k)  // in one loop: compilers make a call of memcpy of each of two
      to[k] = k < made ? destinations.begin()[k] : sources.begin()[k - made];
    Instruction& i = f_.instructions.push();  // field by field in its place: a copy would wait for its parts
    i.op = op;
    i.type = type;
    i.type2 = type2;
    i.mods = mods;
    i.guard = guard_;
    i.guard_negated = guard_negated_;
    i.line = line_;
    i.first_operand = first;
    i.destination_count = static_cast<uint8_t>(made);
    i.operand_count = static_cast<uint8_t>(count);
    guard_ = none<RegisterId>();
    guard_negated_ = false;
  }
  template <Tag T>
  Reg<T> result(Opcode op) {
    if (!is_none(guard_)) [[unlikely]]
      refuse_guard(op);
    return reg<T>();
  }
  [[gnu::cold, gnu::noinline]] void refuse_guard(Opcode op) const {
    CHECK(is_none(guard_), "`{}` in {} is guarded and makes a register, which has no value where the guard fails",
          opcode_name(op), f_.name);
  }
  template <Tag T>
  Reg<T> make(Opcode op, Type type, const Modifiers& mods, std::initializer_list<Operand> sources, Reg<T> into,
              Type type2 = Type::none) {
    if (!into.valid()) into = result<T>(op);
    put(op, type, mods, {use(into)}, sources, type2);
    return into;
  }
  template <MemoryTag T, uint8_t n>
  std::array<Reg<RegisterTag<T>>, n> load_vector(Space space, Access access, Address at) {
    std::array<Reg<RegisterTag<T>>, n> out;
    Operand v{.kind = Operand::vector, .count = n, .id = static_cast<uint32_t>(f_.vector_elements.size())};
    for (auto& r : out) {
      r = result<RegisterTag<T>>(Opcode::ld);
      f_.vector_elements.push_back(use(r));
    }
    Modifiers m = memory(space, access);
    m.vector = n;
    put(Opcode::ld, T::type, m, {v}, {at.operand});
    return out;
  }

  Module& module_;
  uint32_t self_;
  Function f_;
  uint32_t next_[6] = {};  // registers per family so far
  RegisterId guard_ = none<RegisterId>();
  bool guard_negated_ = false;
  uint32_t line_ = 0;
};
#undef RNDN_BINARY
#undef RNDN_UNARY
#undef RNDN_LOGIC

}  // namespace rndn::ptx
