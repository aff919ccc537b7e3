// The typed builder: what must not compile does not, and what compiles prints as meant and verifies.
#include "ptx/builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ptx/parse.h"
#include "tests/ptx/reference_ptxas.h"

namespace rndn::ptx::builder_test {
namespace {

// ---- compile time. Each concept is first shown to hold for right operands, so that a misspelt expression cannot pass as "refused".
template <class A, class B>
concept CanAdd = requires(Builder& b, A x, B y) {
  b.add(x, y);
};
template <class A, class B>
concept CanMulWide = requires(Builder& b, A x, B y) {
  b.mul_wide(x, y);
};
template <class A, class B>
concept CanAnd = requires(Builder& b, A x, B y) {
  b.and_(x, y);
};
template <class A, class B>
concept CanShl = requires(Builder& b, A x, B y) {
  b.shl(x, y);
};
template <class A, class B>
concept CanSetp = requires(Builder& b, A x, B y) {
  b.setp(Compare::lt, x, y);
};
template <class A, class B, class P>
concept CanSelp = requires(Builder& b, A x, B y, P p) {
  b.selp(x, y, p);
};
template <class A>
concept CanFma = requires(Builder& b, A x) {
  b.fma(x, x, x);
};
template <class A>
concept CanMulLo = requires(Builder& b, A x) {
  b.mul_lo(x, x);
};
template <class A>
concept CanMul = requires(Builder& b, A x) {
  b.mul(x, x);
};
template <class A>
concept CanAbs = requires(Builder& b, A x) {
  b.abs(x);
};
template <class A>
concept CanPopc = requires(Builder& b, A x) {
  b.popc(x);
};
template <class A>
concept CanShuffle = requires(Builder& b, A x) {
  b.shfl_sync(ShuffleMode::bfly, x, 1, 31);
};
template <class A>
concept CanGuard = requires(Builder& b, A x) {
  b.when(x);
};
template <class T, class V>
concept CanStore = requires(Builder& b, Address at, V v) {
  b.st<T>(Space::global, at, v);
};
template <class T>
concept CanLoadFour = requires(Builder& b, Address at) {
  b.ld_v4<T>(Space::global, at);
};
template <class A>
concept CanAddress = requires(A x) {
  Address(x);
};
template <class To, class From>
concept CanReinterpret = requires(Reg<From> r) {
  Builder::as<To>(r);
};
template <class To, class From>
concept CanConvert = requires(Builder& b, Reg<From> r) {
  b.cvt<To>(r);
};
template <class R, class V>
concept CanAssign = requires(Builder& b, R r, V v) {
  b.assign(r, v);
};
template <class T, class V>
concept CanAtom = requires(Builder& b, Address at, V v) {
  b.atom<T>(AtomicOp::add, Space::global, at, v);
};
template <class T>
concept CanCas = requires(Builder& b, Address at, Reg<T> v) {
  b.atom_cas<T>(Space::global, at, v, v);
};

static_assert(CanAdd<Reg<F64>, Reg<F64>> && CanAdd<Reg<U32>, Reg<U32>> && CanAdd<Reg<S64>, int> &&
              CanAdd<Reg<F32>, double>);
static_assert(!CanAdd<Reg<F64>, Reg<U32>>);
static_assert(!CanAdd<Reg<U32>, Reg<F64>>);
static_assert(!CanAdd<Reg<U32>, Reg<S32>>);  // signedness does not mix silently
static_assert(!CanAdd<Reg<U32>, Reg<U64>>);
static_assert(!CanAdd<Reg<F32>, Reg<F64>>);
static_assert(!CanAdd<Reg<U32>, double>);  // nor do constants
static_assert(!CanAdd<Reg<F64>, int>);
static_assert(!CanAdd<Reg<Pred>, Reg<Pred>> && !CanAdd<Reg<B32>, Reg<B32>>);
static_assert(CanMulWide<Reg<U32>, Reg<U32>> && CanMulWide<Reg<S16>, int>);
static_assert(!CanMulWide<Reg<U64>, Reg<U64>> && !CanMulWide<Reg<F32>, Reg<F32>>);
static_assert(CanAnd<Reg<U32>, Reg<U32>> && CanAnd<Reg<Pred>, Reg<Pred>> && CanAnd<Reg<B64>, int>);
static_assert(!CanAnd<Reg<F32>, Reg<F32>> && !CanAnd<Reg<Pred>, Reg<U32>>);
static_assert(CanShl<Reg<U64>, Reg<U32>> && !CanShl<Reg<U64>, Reg<U64>> && !CanShl<Reg<F32>, Reg<U32>>);
static_assert(CanSetp<Reg<F64>, double> && !CanSetp<Reg<F64>, Reg<F32>> && !CanSetp<Reg<Pred>, Reg<Pred>>);
static_assert(CanSelp<Reg<F64>, Reg<F64>, Reg<Pred>> && !CanSelp<Reg<F64>, Reg<F64>, Reg<U32>>);
static_assert(!CanSelp<Reg<F64>, Reg<F32>, Reg<Pred>> && !CanSelp<Reg<Pred>, Reg<Pred>, Reg<Pred>>);
static_assert(CanFma<Reg<F32>> && !CanFma<Reg<S32>>);
static_assert(CanMulLo<Reg<S64>> && !CanMulLo<Reg<F64>> && CanMul<Reg<F64>> && !CanMul<Reg<S32>>);
static_assert(CanAbs<Reg<S32>> && CanAbs<Reg<F32>> && !CanAbs<Reg<U32>>);
static_assert(CanPopc<Reg<B32>> && !CanPopc<Reg<U16>> && !CanPopc<Reg<F32>>);
static_assert(CanShuffle<Reg<F32>> && CanShuffle<Reg<U32>> && !CanShuffle<Reg<F64>> && !CanShuffle<Reg<Pred>>);
static_assert(CanGuard<Reg<Pred>> && CanGuard<Condition> && !CanGuard<Reg<U32>> && !CanGuard<bool>);
static_assert(CanStore<F64, Reg<F64>> && CanStore<F64, double> && !CanStore<F64, Reg<U64>> && !CanStore<F64, int>);
static_assert(CanStore<U8, Reg<U16>> && !CanStore<U8, Reg<U32>>);
static_assert(CanLoadFour<F32> && !CanLoadFour<F64>);
static_assert(CanAddress<Reg<U64>> && CanAddress<Reg<U32>> && !CanAddress<Reg<F64>> && !CanAddress<Reg<U16>> &&
              !CanAddress<Reg<Pred>>);
static_assert(CanReinterpret<S32, U32> && CanReinterpret<B64, U64> && !CanReinterpret<U64, U32> &&
              !CanReinterpret<F32, U32>);
static_assert(CanConvert<F64, S32> && !CanConvert<F64, F64> && !CanConvert<F64, Pred> && !CanConvert<B32, U32>);
static_assert(CanAssign<Reg<F64>, Reg<F64>> && CanAssign<Reg<F64>, double> && !CanAssign<Reg<F64>, Reg<F32>> &&
              !CanAssign<Reg<U32>, Reg<Pred>>);
static_assert(CanAtom<F64, Reg<F64>> && CanAtom<U32, int> && !CanAtom<U32, Reg<F32>> && !CanAtom<U16, Reg<U16>>);
static_assert(CanCas<U64> && !CanCas<F64>);

// The instructions of a function's text, without declarations.
std::vector<std::string> instructions(const Module& m) {
  std::vector<std::string> out;
  for (const Instruction& i : m.functions[0].instructions) out.push_back(print(m, m.functions[0], i));
  return out;
}

TEST(Builder, WritesWhatItSays) {
  Module m;
  Builder b(m, "k");
  auto p = b.parameter<U64>("p");
  Reg<U64> a = b.ld_param(p);
  Address at(a, 8);
  Reg<F64> x = b.ld<F64>(Space::global, at);
  Reg<F64> y = b.fma(x, 0.5, x);
  b.add(y, x, y);
  Reg<Pred> c = b.setp(Compare::lt, x, 24.0);
  Reg<Pred> d = b.setp(Compare::ge, Combine::and_, y, 1.0, !c);
  b.when(d).st<F64>(Space::global, at.plus(-16), y);
  b.unless(c).trap();
  b.trap();
  Reg<U32> lane = b.special(SpecialRegister::laneid);
  Reg<U64> wide = b.mad_wide(lane, 4, a);
  b.assign(lane, 0xFFFFFFFFu);
  b.st<U32>(Space::global, Address(wide), b.shr(lane, 3));
  b.st<S32>(Space::global, Address(wide), b.shr(Builder::as<S32>(lane), 3));
  b.constant<F32>(1.0);
  b.ret();
  b.finish();
  EXPECT_THAT(verify(m), ::testing::IsEmpty());
  EXPECT_THAT(instructions(m),
              ::testing::ElementsAre(
                  "ld.param.u64 %rd0, [p];", "ld.global.f64 %fd0, [%rd0+8];",
                  "fma.rn.f64 %fd1, %fd0, 0d3FE0000000000000, %fd0;", "add.f64 %fd1, %fd1, %fd0;",
                  "setp.lt.f64 %p0, %fd0, 0d4038000000000000;", "setp.ge.and.f64 %p1, %fd1, 0d3FF0000000000000, !%p0;",
                  "@%p1 st.global.f64 [%rd0+-8], %fd1;", "@!%p0 trap;", "trap;", "mov.u32 %r0, %laneid;",
                  "mad.wide.u32 %rd1, %r0, 4, %rd0;", "mov.u32 %r0, 4294967295;", "shr.u32 %r1, %r0, 3;",
                  "st.global.u32 [%rd1], %r1;", "shr.s32 %r2, %r0, 3;", "st.global.s32 [%rd1], %r2;",
                  "mov.f32 %f0, 0f3F800000;", "ret;"));
}

// Every function of the builder once, for verifier, printer, parser and the reference assembler.
Module everything() {
  Module m;
  m.target = 70;
  Builder b(m, "k");
  auto p = b.parameter<U64>("p");
  auto q = b.parameter<F32>("q");
  auto r = b.parameter<U8>("r");
  b.set_block_size(64, 2);
  SharedVariable s = b.shared<F32>("s", 64, 16), dynamic = b.dynamic_shared<B8>("dynamic");
  SharedVariable l = b.variable<U32>(Space::local, "l", 4), g = b.variable<U64>(Space::global, "g", 2);
  Reg<U64> a = b.cvta_to(Space::global, b.ld_param(p));
  Address at(a), shared(s, 4);
  Reg<F32> f = b.ld_param(q);
  Reg<F64> d = b.ld_nc<F64>(at);
  Reg<U32> u = b.ld<U32>(Space::shared, Address(dynamic));
  Reg<S32> i = Builder::as<S32>(u);
  Reg<U16> h = b.ld_param(r);
  Reg<Pred> c = b.setp(Compare::ne, u, 3), e = b.not_(c);
  f = b.rcp_rn(b.sqrt_rn(b.div_rn(b.max(b.min(b.mul_rn(b.sub_rn(b.add_rn(f, 1.0), 2.0), f), 3.0), f), f)));
  d = b.abs(b.neg(b.mul(b.sub(b.add(d, d), 1.0), d)));
  u = b.rem(b.div(b.mul_hi(b.mul_lo(u, 3), u), 7), 5);
  i = b.abs(b.neg(b.mad_lo(i, 2, i)));
  Reg<U64> w = b.add(b.mul_wide(u, u), b.cvt<U64>(h));
  u = b.xor_(b.or_(b.and_(u, 7), u), 9);
  u = b.prmt(b.bfi(b.bfe(b.brev(b.not_(b.shl(b.shr(u, 1), u))), 2, 3), u, 4, 5), u, 0x3210);
  u = b.add(b.popc(w), b.add(b.clz(w), b.bfind(w)));
  c = b.and_(b.xor_(c, e), b.setp(Compare::eq, Combine::or_, i, 5, e));
  f = b.selp(f, 1.0, c);
  d = b.select<F64>(1.0, 0.0, !c);
  b.st<F32>(Space::shared, shared, f);
  b.st<F64>(Space::global, Access{.cache = Cache::cs}, at, b.mov(d));
  b.st<U32>(Space::local, Address(l, 4), u);
  b.st<U64>(Space::global, Address(g, 8), b.special64(SpecialRegister::clock64));
  b.st<U8>(Space::global, at, h);
  b.st<F32>(Space::global, at, b.bitcast<F32>(u));
  b.st<S64>(Space::global, at, b.cvt<S64>(d));
  b.st<F32>(Space::global, at, b.cvt<F32>(d));
  b.st<F64>(Space::global, at, b.cvt<F64>(f));
  b.st<F32>(Space::global, at, b.cvt<F32>(i));
  b.st<S32>(Space::global, at, b.cvt<S32>(Rounding::rni, f));
  b.st<U32>(Space::global, at, b.cvt_byte<U32, S8>(h));
  auto [low, high] = b.unpack(d);
  b.st<F64>(Space::global, at, b.pack<F64>(high, low));
  auto pair = b.ld_v2<F64>(Space::global, at);
  auto four = b.ld_v4<F32>(Space::global, at, Access{.cache = Cache::nc});
  b.st_v2<F64>(Space::global, at, pair[1], 0.0);
  b.st_v4<F32>(Space::shared, Address(b.address_of_32(s)), four[0], four[1], four[2], 1.0);
  b.st<U32>(Space::generic, Address(b.cvta(Space::shared, b.address_of(s))), u);
  u = b.atom<U32>(AtomicOp::max, Space::global, at, u);
  b.atom<F64>(AtomicOp::add, Space::global, at, d);
  b.atom<S64>(AtomicOp::add, Space::global, at, 1);
  b.atom<U64>(AtomicOp::exch, Space::generic, at, w);
  w = b.atom_cas<U64>(Space::global, at, w, 1, Access{.semantics = Semantics::relaxed, .scope = Scope::gpu});
  b.red<U32>(AtomicOp::or_, Space::shared, shared, u);
  u = b.ld<U32>(Space::global, Access{.semantics = Semantics::acquire, .scope = Scope::gpu}, at);
  b.st<U32>(Space::global, Access{.semantics = Semantics::release, .scope = Scope::gpu}, at, u);
  b.membar(Scope::gpu);
  b.fence(Semantics::acq_rel, Scope::sys);
  b.bar_sync();
  b.bar_sync(3);
  b.bar_warp_sync();
  f = b.shfl_sync(ShuffleMode::down, f, 4, 31);
  d = b.shfl_sync_64(ShuffleMode::bfly, d, 4, 31);
  u = b.add(u, b.ballot(c));
  c = b.vote(VoteMode::all, !c);
  LabelId end = b.label(), loop = b.here();
  b.set_line(17);
  b.when(c).bra(end);
  b.bra_uni(loop);
  b.bind(end);
  b.when(c).exit();
  b.ret();
  b.finish();
  return m;
}

TEST(Builder, EverythingVerifiesPrintsAndParses) {
  Module m = everything();
  EXPECT_THAT(verify(m), ::testing::IsEmpty());
  std::string text = print(m);
  SourceManager sources;
  DiagnosticSink sink;
  Module again = parse(sources.add("k.ptx", text), sources, sink);
  ASSERT_FALSE(sink.has_errors()) << render(sink, sources);
  EXPECT_EQ(print(again), text);
  EXPECT_EQ(m.functions[0].instructions[m.functions[0].instructions.size() - 2].line, 17u);
}

TEST(Builder, ReferenceAssemblerAcceptsEverything) {
  std::string why, ptxas = test::find_ptxas(why);
  if (ptxas.empty()) GTEST_SKIP() << "skipped: " << why;
  std::string messages;
  Module m = everything();
  EXPECT_TRUE(test::ptxas_accepts(ptxas, print(m), "sm_70", messages)) << messages << print(m);
}

// An instruction among the arguments of a guarded one would take its guard.
TEST(BuilderDeathTest, GuardedInstructionsMakeNoRegisters) {
  const auto load = [](bool among_arguments) {
    Module module;
    Builder b(module, "k");
    Reg<U64> base = b.ld_param(b.parameter<U64>("base"));
    Reg<U32> i = b.special(SpecialRegister::tid_x), x = b.constant<U32>(0);
    Reg<Pred> p = b.setp(Compare::lt, i, 7u);
    if (among_arguments) {
      b.when(p).ld<U32>(Space::global, Address(b.mad_wide(i, 4u, base)), x);
    } else {
      Reg<U64> at = b.mad_wide(i, 4u, base);
      b.when(p).ld<U32>(Space::global, Address(at), x);
    }
    return b.function().instructions;
  };
  EXPECT_DEATH(load(true), "`mad` in k is guarded and makes a register");
  const RawVector<Instruction> right = load(false);
  EXPECT_TRUE(is_none(right[right.size() - 2].guard));
  EXPECT_FALSE(is_none(right.back().guard));
  Module module;
  Builder b(module, "k");
  Reg<U64> base = b.ld_param(b.parameter<U64>("base"));
  Reg<Pred> p = b.setp(Compare::lt, b.special(SpecialRegister::tid_x), 7u);
  EXPECT_DEATH(b.when(p).ld<U32>(Space::global, Address(base)), "`ld` in k is guarded");
  EXPECT_DEATH((void)b.when(p).ld_v2<U32>(Space::global, Address(base)), "`ld` in k is guarded");
  EXPECT_DEATH((void)b.when(p).unpack(base), "`mov` in k is guarded");
}

// What the C++ types cannot see, the verifier does.
TEST(Builder, VerifierSeesTheRest) {
  auto problems = [](auto write, uint32_t target = 60) {
    Module m;
    m.target = target;
    Builder b(m, "k");
    write(b);
    b.finish();
    std::vector<std::string> p = verify(m);
    return p.empty() ? std::string() : p.front();
  };
  using ::testing::HasSubstr;
  EXPECT_EQ(problems([](Builder& b) { b.ret(); }), "");
  EXPECT_THAT(problems([](Builder& b) { b.bra(b.label()); }), HasSubstr("the label `$L0` is not defined"));
  EXPECT_THAT(problems([](Builder& b) { b.setp(Compare::lo, b.constant<F64>(1.0), 2.0); }),
              HasSubstr("modifiers of `setp`"));
  EXPECT_THAT(problems([](Builder& b) { b.atom<F64>(AtomicOp::max, Space::global, Address(b.constant<U64>(8)), 1.0); }),
              HasSubstr("`atom`"));
  auto acquire = [](Builder& b) {
    b.ld<U32>(Space::global, Access{.semantics = Semantics::acquire, .scope = Scope::gpu}, Address(b.constant<U64>(8)));
  };
  EXPECT_THAT(problems(acquire), HasSubstr("sm_70"));
  EXPECT_EQ(problems(acquire, 70), "");
  EXPECT_THAT(problems([](Builder& b) { b.ld<F32>(Space::global, Address(b.shared<F32>("s", 4))); }),
              HasSubstr("lies in .shared"));
  EXPECT_THAT(problems([](Builder& b) { b.emit(Opcode::add, Type::u32, {}, {}, {Builder::use(b.constant<U32>(1))}); }),
              HasSubstr("operands"));
  EXPECT_THAT(problems([](Builder& b) {
                b.emit(Opcode::add, Type::u32, {}, {Builder::use(b.reg<U32>())},
                       {Builder::use(b.reg<U64>()), Builder::use(b.reg<U32>())});
              }),
              HasSubstr("`%rd0` is a .b64 register, expected .u32"));
  EXPECT_THAT(problems([](Builder& b) {
                b.emit(Opcode::add, Type::f32, {}, {Builder::use(b.reg<F32>())},
                       {Builder::use(b.reg<F32>()), Operand{.kind = Operand::reg, .id = 999}});
              }),
              HasSubstr("no register"));
}

}  // namespace
}  // namespace rndn::ptx::builder_test
