// Rows of the 128-bit family that only print: products of matrices by tensor cores, copies of tiles, barriers in shared memory. Part of the table of
// forms_volta.cpp, which says where facts come from; those of sm_90 are of ptxas 12.9 and 13.5 and nvdisasm 13.5. Private to this folder.
#pragma once
#include <array>

#include "assembler/isa/fields_volta.h"

namespace rndn::isa::fields {

inline constexpr const char* t_bf16_matrix[] = {"", ".BF16"};
inline constexpr const char* t_e8[] = {".E4M3", ".E5M2"};
inline constexpr const char* t_view[] = {".S", ".G"};
inline constexpr const char* t_map[] = {".IV", ".PF"};
inline constexpr const char* t_trywait[] = {"", ".TRYWAIT"};
inline constexpr const char* t_im2col[] = {"", ".IM2COL"};
inline constexpr const char* t_only_im2col[] = {nullptr, ".IM2COL"};
inline constexpr const char* t_multicast[] = {"", ".MULTICAST"};
inline constexpr const char* t_copied[] = {".G", ".S"};
inline constexpr const char* t_only_shared[] = {nullptr, ".S"};
inline constexpr const char* t_reduction[] = {".ADD", ".MIN", ".MAX", ".INC", ".DEC", ".AND", ".OR", ".XOR"};
inline constexpr const char* t_reduced[] = {
    "",         ".S32",  ".U64",  ".S64",  ".F16.RN", ".F32.RN", ".F32.FTZ.RN", ".F64.RN",
    ".BF16.RN", nullptr, nullptr, nullptr, nullptr,   nullptr,   nullptr,       nullptr};
inline constexpr const char* t_arrival[] = {"", ".TMASK", ".RED", nullptr};
inline constexpr const char* t_optout[] = {"", ".OPTOUT"};
inline constexpr const char* t_arrivals[] = {"", ".A1T0", ".A0T1", ".A0TR", ".A0TX", ".ART0", nullptr, nullptr};
inline constexpr const char* t_counted[] = {"", ".ARVCNT", ".TRANSCNT", nullptr};
inline constexpr const char* t_system[] = {nullptr, nullptr, nullptr, nullptr, nullptr,       nullptr,
                                           nullptr, nullptr, nullptr, nullptr, ".STRONG.SYS", nullptr,
                                           nullptr, nullptr, nullptr, nullptr};
inline constexpr const char* t_all_op[] = {".ADD", ".MIN", ".MAX", nullptr, nullptr, ".AND", ".OR", ".XOR"};
inline constexpr const char* t_all_type[] = {".32", ".S32", ".64", ".S64", nullptr, nullptr, nullptr, nullptr};
inline constexpr const char* t_all_float_op[] = {".ADD", ".MIN", ".MAX", ".F32ADD"};
inline constexpr const char* t_all_float[] = {
    ".F16x2.RN", ".F16x4.RN", ".F16x8.RN", ".BF16x2.RN", ".BF16x4.RN", ".BF16x8.RN", nullptr,     nullptr,
    nullptr,     nullptr,     nullptr,     nullptr,      ".F32.RN",    ".F32x2.RN",  ".F32x4.RN", ".F64.RN"};
inline constexpr const char* t_dimensions[] = {".1D", ".2D", ".3D", ".4D", ".5D", nullptr, nullptr, nullptr};

// Products by one warp: rows by shape, since it says how many registers the operands take. Signs, sparse matrices and 4-bit numbers are left out:
// nothing that was compiled shows them.
template <size_t N>
constexpr void matrix_rows(Table<N>& t) {
  const Span_ one = Span_::one, two = Span_::two, four = Span_::four;
  const auto row = [](M mn, const char* name, unsigned opcode, L l, uint32_t on, Span_ d, Span_ a, Span_ b) {
    return op(mn, name, opcode, l, on).slots(Rd.with(d), A.with(a), B.with(b), C.with(d));
  };
  const auto half = [&](const char* name, bool k16, bool f32) {
    for (const uint32_t on : {sm_75, after_75}) {
      if (k16 && on == sm_75) continue;
      t.add(row(M::HMMA, name, 0x23c, L::half, on, f32 ? four : two, k16 ? four : two, k16 ? two : one)
                .fix(75, 1, k16)
                .fix(76, 1, f32)
                .mods(m(K::Pack, 82, 1, f32 && on != sm_75 ? t_bf16_matrix : t_clear)));
    }
  };
  half("HMMA.1688.F16", false, false);
  half("HMMA.1688.F32", false, true);
  half("HMMA.16816.F16", true, false);
  half("HMMA.16816.F32", true, true);
  t.add(row(M::HMMA, "HMMA.1684.F32.TF32", 0x23c, L::half, after_75, four, two, one)
            .fix(76, 1, 1)
            .fix(78, 1, 1)
            .fix(83, 1, 1));
  t.add(row(M::HMMA, "HMMA.1688.F32.TF32", 0x23c, L::half, after_75, four, four, two).fix(76, 1, 1).fix(83, 1, 1));
  const auto ordered = [](M mn, const char* name, unsigned opcode, uint32_t on, Span_ d, Span_ a, Span_ b) {
    return op(mn, name, opcode, L::half, on)
        .fix(74, 1, 1)
        .slots(Rd.with(d), A.with(a).as(Style::row), B.with(b).as(Style::column), C.with(d));
  };
  const auto bytes = [&](const Builder& b) {
    t.add(b.mods(m(K::SignedA, 76, 1, t_u8s8), m(K::SignedB, 78, 1, t_u8s8), m(K::SAT, 82, 1, t_sat)));
  };
  bytes(ordered(M::IMMA, "IMMA.8816", 0x237, volta, two, one, one));
  bytes(ordered(M::IMMA, "IMMA.16816", 0x237, after_75, four, two, one).fix(86, 1, 1));
  bytes(ordered(M::IMMA, "IMMA.16832", 0x237, after_75, four, four, two).fix(75, 1, 1).fix(86, 1, 1));
  for (const bool f32 : {false, true})
    t.add(ordered(M::QMMA, f32 ? "QMMA.16832.F32" : "QMMA.16832.F16", 0x27a, sm_89, f32 ? four : two, four, two)
              .fix(75, 1, 1)
              .fix(77, 1, f32)
              .mods(m(K::DestFormat, 78, 1, t_e8), m(K::SourceFormat, 79, 1, t_e8)));
  for (const bool sm90 : {false, true})
    t.add(row(M::DMMA, sm90 ? "DMMA.8x8x4" : "DMMA.884", 0x23f, L::fp64, sm90 ? sm_90 : ampere, four, two, two));
}

// Copies of tiles, barriers in shared memory and groups of warps of sm_90.
template <size_t N>
constexpr void tile_rows(Table<N>& t) {
  const auto row = [](M mn, const char* name, unsigned opcode, L l) { return op(mn, name, opcode, l, sm_90); };
  t.add(row(M::ELECT, "ELECT", 0x82f, L::vote).slots(Pd, URd, Ps));
  t.add(row(M::FENCE_VIEW_ASYNC, "FENCE.VIEW.ASYNC", 0x3c6, L::fence).mods(m(K::AddressSpace, 72, 1, t_view)));
  t.add(row(M::WARPGROUP_ARRIVE, "WARPGROUP.ARRIVE", 0x9c5, L::barrier));
  t.add(row(M::WARPGROUP_DEPBAR, "WARPGROUP.DEPBAR.LE", 0x9c5, L::wait).fix(47, 1, 1).fix(80, 1, 1).slots(imm(72, 3)));
  t.add(row(M::UTMACMDFLUSH, "UTMACMDFLUSH", 0x9b7, L::async_copy).guard_uniform());
  // Tiles of tensors and runs of bytes, the destination first; each with and without a policy for the cache.
  const Slot from = UA.as(Style::bracket), to = UB.as(Style::bracket);
  t.add(row(M::UTMACCTL, "UTMACCTL", 0x9b9, L::fence)
            .guard_uniform()
            .fix(91, 1, 1)
            .slots(from)
            .mods(m(K::CacheOp, 82, 1, t_map)));
  for (const bool policy : {false, true}) {
    const auto copy = [&](M mn, const char* name, unsigned opcode, const auto&... slots) {
      const Builder b =
          row(mn, name, opcode, L::async_copy).guard_uniform().fix(76, 1, policy).fix(91, 1, 1).slots(slots...);
      return policy ? b.slot(make_slot(uniform, 40, R).as(Style::policy)) : b;
    };
    const auto dimensions = m(K::Dimensions, 79, 3, t_dimensions), im2col = m(K::Im2col, 82, 1, t_im2col),
               multicast = m(K::Multicast, 75, 1, t_multicast), reduction = m(K::AtomOp, 87, 3, t_reduction),
               dest = m(K::DestSpace, 73, 1, t_copied);
    t.add(copy(M::UTMALDG, "UTMALDG", 0x5b4, to, from).mods(dimensions));
    t.add(copy(M::UTMALDG, "UTMALDG", 0x3b4, to, from, UC).mods(dimensions, im2col, multicast));
    t.add(copy(M::UTMASTG, "UTMASTG", 0x3b5, to, from).mods(dimensions, im2col));
    t.add(copy(M::UTMAREDG, "UTMAREDG", 0x3b6, to, from).mods(dimensions, im2col, reduction));
    t.add(copy(M::UTMAPF, "UTMAPF.L2", 0x5b8, to, from).mods(dimensions));
    t.add(copy(M::UTMAPF, "UTMAPF.L2", 0x3b8, to, from, UC).mods(dimensions, m(K::Im2col, 82, 1, t_only_im2col, 1)));
    t.add(copy(M::UBLKPF, "UBLKPF.L2", 0x3bc, from, UC));
    t.add(copy(M::UBLKCP, "UBLKCP", 0x3ba, to, from, UC).mods(dest, m(K::SourceSpace, 74, 1, t_copied), multicast));
    t.add(copy(M::UBLKRED, "UBLKRED", 0x3bb, to, from, UC)
              .mods(dest, m(K::SourceSpace, 74, 1, t_only_shared, 1), reduction, m(K::AtomType, 81, 4, t_reduced)));
  }
  // Barriers: of a block, in shared memory, and of a cluster.
  const Slot place = memory(40, 24, 64);
  t.add(
      row(M::SYNCS_ARRIVE, "SYNCS.ARRIVE.TRANS64", 0x9a7, L::shared_atomic)
          .fix(91, 1, 1)
          .slots(Rd, place, B)
          .mods(m(K::ResultMode, 73, 2, t_arrival), m(K::OptOut, 75, 1, t_optout), m(K::Arrivals, 84, 3, t_arrivals)));
  t.add(row(M::SYNCS_PHASECHK, "SYNCS.PHASECHK.TRANS64", 0x5a7, L::shared_atomic)
            .fix(70, 1, 1)
            .fix(91, 1, 1)
            .slots(Pd, place, B)
            .mods(m(K::TryWait, 72, 1, t_trywait)));
  t.add(row(M::SYNCS_CCTL, "SYNCS.CCTL.IV", 0x9b1, L::fence).fix(91, 1, 1).slots(place));
  Slot uniform_place = memory(40, 24, 24);
  uniform_place.lo = no_bit;
  t.add(row(M::SYNCS_EXCH, "SYNCS.EXCH.64", 0x5b2, L::shared_atomic)
            .guard_uniform()
            .fix(72, 1, 1)
            .fix(91, 1, 1)
            .slots(URd.with(Span_::two), uniform_place, UB.with(Span_::two)));
  t.add(row(M::ARRIVES, "ARRIVES.LDGSTSBAR.64", 0x9b0, L::shared_atomic)
            .fix(72, 4, 10)
            .fix(91, 1, 1)
            .slots(place)
            .mods(m(K::Arrivals, 70, 2, t_counted)));
  // To shared memory of another block, counted at a barrier there: the pair of registers has the addresses of both.
  const Slot there = memory(40, 24, 64).with(Span_::two).as(Style::no_urz);
  t.add(row(M::STAS, "STAS", 0xdbd, L::shared_store)
            .fix(90, 2, 3)
            .slots(there, B.with(Span_::size))
            .mods(m(K::Size, 73, 3, t_size_async, 4)));
  t.add(row(M::REDAS, "REDAS", 0xdbe, L::shared_store)
            .fix(72, 1, 1)
            .fix(91, 1, 1)
            .slots(there, B.with(Span_::atom))
            .mods(m(K::AtomOp, 87, 3, t_reduction), m(K::AtomType, 73, 2, t_atoms_type)));
  // What the same place of several GPUs holds, reduced.
  for (const bool wide : {false, true}) {
    const Slot at = wide ? memory(40, 24, 64, 71).with(Span_::two) : memory(40, 24, 64).as(Style::base_32);
    const auto reduced = [&](unsigned opcode, Span_ span) {
      return row(M::LDGMC, "LDGMC.E", opcode, L::global_load)
          .fix(70, 1, wide)
          .fix(72, 1, 1)
          .fix(91, 1, 1)
          .slots(Rd.with(span), at);
    };
    const auto order = m(K::Order, 77, 4, t_system, 10);
    t.add(reduced(0x9a4, Span_::atom).mods(m(K::AtomOp, 87, 3, t_all_op), m(K::AtomType, 73, 3, t_all_type), order));
    t.add(reduced(0x9a5, Span_::vector)
              .mods(m(K::AtomOp, 88, 2, t_all_float_op), m(K::AtomType, 73, 4, t_all_float), order));
  }
  // Halves of the program counter to return to.
  const Slot half = imm(31, 1).as(Style::rpc_half);
  t.add(row(M::RPCMOV, "RPCMOV.32", 0x352, L::alu).slots(half, B));
  t.add(row(M::RPCMOV, "RPCMOV.32", 0x353, L::alu).slots(Rd, half));
  t.add(row(M::UCGABAR_ARV, "UCGABAR_ARV", 0x9c7, L::barrier).guard_uniform().fix(91, 1, 1));
  t.add(row(M::UCGABAR_WAIT, "UCGABAR_WAIT", 0xdc7, L::wait).guard_uniform().fix(91, 1, 1));
  t.add(row(M::BRA_UNIFORM, "BRA.U", 0x547, L::branch)
            .fix(32, 1, 1)
            .fix(91, 1, 1)
            .slots(Px, upred(24, 27), make_slot(label_split, 34, R)));
  t.add(row(M::BRA_ANY, "BRA.U.ANY", 0x947, L::branch)
            .fix(32, 1, 1)
            .fix(84, 1, 1)
            .slots(Px, make_slot(label_split, 34, R)));
  t.add(row(M::NANOSLEEP_SYNCS, "NANOSLEEP.SYNCS", 0x35d, L::nop).fix(84, 1, 1).slots(Px, B));
}

// Products by four warps of sm_90: 64 rows, of which each of the 128 threads holds its part. B and mostly A lie in shared memory, where the descriptors in
// uniform registers say; of a sparse A, a register says where its elements belong. UPx: whether C is added.
inline constexpr const char* t_columns[] = {
    ".64x8x",   ".64x16x",  ".64x24x",  ".64x32x",  ".64x40x",  ".64x48x",  ".64x56x",  ".64x64x",
    ".64x72x",  ".64x80x",  ".64x88x",  ".64x96x",  ".64x104x", ".64x112x", ".64x120x", ".64x128x",
    ".64x136x", ".64x144x", ".64x152x", ".64x160x", ".64x168x", ".64x176x", ".64x184x", ".64x192x",
    ".64x200x", ".64x208x", ".64x216x", ".64x224x", ".64x232x", ".64x240x", ".64x248x", ".64x256x"};
// Of integers and bits: 8 to 32 in steps of 8, then in steps of 16; by code / step.
constexpr std::array<const char*, 64> integer_columns(unsigned step, unsigned first) {
  std::array<const char*, 64> texts{};
  for (unsigned i = 0; i < 18; ++i) texts[step * i + first] = t_columns[i < 4 ? i : 2 * i - 3];
  return texts;
}
inline constexpr std::array t_integer_columns{integer_columns(3, 0), integer_columns(3, 1)};
inline constexpr auto t_bit_columns = integer_columns(1, 0);
inline constexpr const char* t_half_depth[2][2][4] = {
    {{"16.F16", "8.F16", nullptr, nullptr}, {"16.F32", "8.F32", nullptr, nullptr}},
    {{"16.F16", nullptr, "32.F16", nullptr}, {"16.F32", nullptr, "32.F32", nullptr}}};
inline constexpr const char* t_half_type[] = {"", ".BF16", ".TF32", nullptr};
inline constexpr const char* t_e8_depth[2][2][2] = {{{"32.F16.E4M3", "32.F16.E5M2"}, {"32.F32.E4M3", "32.F32.E5M2"}},
                                                    {{"64.F16.E4M3", "64.F16.E5M2"}, {"64.F32.E4M3", "64.F32.E5M2"}}};
inline constexpr const char* t_byte_depth[2][2] = {{"32.U8", "32.S8"}, {"64.U8", "64.S8"}};
inline constexpr const char* t_bit_depth[] = {nullptr, "256.AND.POPC"};
inline constexpr const char* t_group[] = {", gsb0", nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, ""};

template <size_t N>
constexpr void warp_group_rows(Table<N>& t) {
  const Slot added = make_slot(uniform_predicate_inverted, 87, R).n(90).opt(PT);
  // flags: the first of those of the matrices in memory, up to bit 63; bit 72 is the sign of A. Integers have none
  const auto row = [&](M mn, const char* name, unsigned opcode, Span_ span, bool in_memory, uint8_t flags,
                       bool sparse) {
    Slot matrices = (in_memory ? UA.with(Span_::four) : UB.with(Span_::two)).as(Style::matrix), a = A.with(Span_::four);
    if (flags != no_bit) {
      matrices = matrices.half(flags, static_cast<uint8_t>(64 - flags));
      (in_memory ? matrices : a).neg = 72;
    }
    Builder b = op(mn, name, opcode | (in_memory ? 0x800 : 0xc00), L::half, sm_90)
                    .fix(73, 1, sparse)
                    .fix(91, 1, 1)
                    .mods(m(K::Group, 84, 3, t_group, 7))
                    .slot(Rd.with(span));
    if (!in_memory) b = b.slot(a);
    b = b.slots(matrices, C.with(span), added);
    if (!sparse) return b;
    const Slot which = imm(48, 2);
    return b.slots(make_slot(gpr, 40, R), mn == M::HGMMA ? which : which.when(Show::optional).def(0));
  };
  const auto columns = m(K::Shape, 53, 5, t_columns);
  for (const bool in_memory : {false, true}) {
    for (const bool sparse : {false, true}) {
      for (const bool f32 : {false, true}) {
        const Span_ span = f32 ? Span_::tile : Span_::half_tile;
        t.add(
            row(M::HGMMA, sparse ? "HGMMA.SP" : "HGMMA", 0x1f0, span, in_memory, in_memory ? 61 : 62, sparse)
                .fix(75, 1, f32)
                .mods(columns, m(K::Depth, 58, 2, t_half_depth[sparse][f32]), m(K::SourceFormat, 76, 2, t_half_type)));
        t.add(row(M::QGMMA, sparse ? "QGMMA.SP" : "QGMMA", 0x1f3, span, in_memory, 63, sparse)
                  .fix(58, 1, sparse)
                  .fix(75, 1, f32)
                  .mods(columns, m(K::Depth, 76, 1, t_e8_depth[sparse][f32]), m(K::SourceFormat, 77, 1, t_e8)));
      }
      t.add(row(M::IGMMA, sparse ? "IGMMA.SP" : "IGMMA", 0x1f1, Span_::tile, in_memory, no_bit, sparse)
                .mods(m(K::Shape, 53, 6, t_integer_columns[sparse].data(), sparse),
                      m(K::SignedA, 76, 1, t_byte_depth[sparse]), m(K::SignedB, 82, 1, t_u8s8),
                      m(K::SAT, 75, 1, t_sat)));
    }
    t.add(row(M::BGMMA, "BGMMA", 0x1f2, Span_::tile, in_memory, no_bit, false)
              .fix(80, 1, 1)
              .mods(m(K::Shape, 53, 5, t_bit_columns.data()), m(K::Depth, 78, 1, t_bit_depth, 1)));
  }
}

}  // namespace rndn::isa::fields
