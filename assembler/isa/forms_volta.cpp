// Instruction forms of the 128-bit family (sm_75, sm_80, sm_86, sm_89, sm_90). Facts: the encodings that ptxas 11.8 writes, and the texts that
// nvdisasm 11.8 gives for edited words; for VIADD, VIADDMNMX, VIMNMX3, the types of VIMNMX, QSPC.D and LEPC with a target the same of ptxas 12.9 and
// nvdisasm 13.5. Operand order: mnemonics.def. Flags go by position: bits 63/62 negate and take the absolute value
// of the operand in bits 32..63, bits 75/74 of the operand in bits 64..71, bits 72/73 of A.
//
// Left out: bindless constants (cx[UR]), texture instructions, JMP and the indirect forms that no compiled kernel uses.
#include "assembler/isa/fields_volta.h"
#include "assembler/isa/rows_tensor.h"

namespace rndn::isa {
namespace {

using namespace fields;

// --- Texts of modifier values (null: no such value) ----------------------------------------------------------------------------
constexpr const char* t_x[] = {"", ".X"};
constexpr const char* t_ex[] = {"", ".EX"};
constexpr const char* t_unsigned[] = {".U32", ""};
constexpr const char* t_vector[] = {".U32", "", ".U16x2", ".S16x2"};
constexpr const char* t_16x2[] = {"", ".16x2"};
constexpr const char* t_silent[] = {"", "", "", "", "", "", "", "", "", "", "", "", "", "", "", ""};
constexpr const char* t_signed_only[] = {"", ".S32"};
constexpr const char* t_bool[] = {".AND", ".OR", ".XOR", nullptr};
constexpr const char* t_compare[] = {".F", ".LT", ".EQ", ".LE", ".GT", ".NE", ".GE", ".T"};
constexpr const char* t_fcompare[] = {".F",   ".LT",  ".EQ",  ".LE",  ".GT",  ".NE",  ".GE",  ".NUM",
                                      ".NAN", ".LTU", ".EQU", ".LEU", ".GTU", ".NEU", ".GEU", ".T"};
constexpr const char* t_dcompare[] = {".MIN", ".LT",  ".EQ",  ".LE",  ".GT",  ".NE",  ".GE",  ".NUM",
                                      ".NAN", ".LTU", ".EQU", ".LEU", ".GTU", ".NEU", ".GEU", ".MAX"};
constexpr const char* t_pand[] = {"", ".PAND"};
constexpr const char* t_right[] = {".L", ".R"};
constexpr const char* t_wrap[] = {"", ".W"};
constexpr const char* t_shift_type[] = {".S64", ".U64", ".S32", ".U32"};
constexpr const char* t_high[] = {"", ".HI"};
constexpr const char* t_sx32[] = {"", ".SX32"};
constexpr const char* t_permute[] = {"", ".F4E", ".B4E", ".RC8", ".ECL", ".ECR", ".RC16", nullptr};
constexpr const char* t_sh[] = {"", ".SH"};
constexpr const char* t_byte[] = {"", ".B1", ".B2", ".B3"};
constexpr const char* t_rounding[] = {"", ".RM", ".RP", ".RZ"};
constexpr const char* t_integral[] = {"", ".FLOOR", ".CEIL", ".TRUNC"};
constexpr const char* t_ftz[] = {"", ".FTZ"};
constexpr const char* t_fmz[] = {"", ".FMZ"};
constexpr const char* t_scale[] = {nullptr, ".D8", ".D4", ".D2", "", ".M2", ".M4", ".M8"};
constexpr const char* t_nan[] = {"", ".NAN"};
constexpr const char* t_xorsign[] = {"", ".XORSIGN"};
constexpr const char* t_function[] = {".COS",  ".SIN",  ".EX2",  ".LG2",  ".RCP",  ".RSQ",  ".RCP64H", ".RSQ64H",
                                      ".SQRT", ".TANH", nullptr, nullptr, nullptr, nullptr, nullptr,   nullptr};
constexpr const char* t_ntz[] = {"", ".NTZ"};
constexpr const char* t_size[] = {".U8", ".S8", ".U16", ".S16", "", ".64", ".128", nullptr};
constexpr const char* t_size_u[] = {".U8", ".S8", ".U16", ".S16", "", ".64", ".128", ".U.128"};
constexpr const char* t_size64[] = {".U8", ".S8", ".U16", ".S16", "", ".64", nullptr, nullptr};
constexpr const char* t_e[] = {"", ".E"};
constexpr const char* t_order_load[] = {"",
                                        nullptr,
                                        nullptr,
                                        nullptr,
                                        ".CONSTANT",
                                        ".STRONG.SM",
                                        ".STRONG.GPU.PRIVATE",
                                        ".STRONG.GPU",
                                        ".MMIO.GPU",
                                        nullptr,
                                        ".STRONG.SYS",
                                        nullptr,
                                        ".MMIO.SYS",
                                        nullptr,
                                        nullptr,
                                        nullptr};
constexpr const char* t_order[] = {"",
                                   nullptr,
                                   nullptr,
                                   nullptr,
                                   ".STRONG.SM.PRIVATE",
                                   ".STRONG.SM",
                                   ".STRONG.GPU.PRIVATE",
                                   ".STRONG.GPU",
                                   ".MMIO.GPU",
                                   nullptr,
                                   ".STRONG.SYS",
                                   nullptr,
                                   ".MMIO.SYS",
                                   nullptr,
                                   nullptr,
                                   nullptr};
// sm_75: scope in the lower bits, kind above; a weak access names its scope.
constexpr const char* t_order_load_75[] = {".CONSTANT.CTA", ".CONSTANT.SM", ".CONSTANT.GPU", ".CONSTANT.SYS",
                                           ".CTA",          ".SM",          ".GPU",          ".SYS",
                                           ".STRONG.CTA",   ".STRONG.SM",   ".STRONG.GPU",   ".STRONG.SYS",
                                           ".MMIO.CTA",     ".MMIO.SM",     ".MMIO.GPU",     ".MMIO.SYS"};
constexpr const char* t_order_75[] = {
    nullptr,       nullptr,      nullptr,       nullptr,       ".CTA",      ".SM",      ".GPU",      ".SYS",
    ".STRONG.CTA", ".STRONG.SM", ".STRONG.GPU", ".STRONG.SYS", ".MMIO.CTA", ".MMIO.SM", ".MMIO.GPU", ".MMIO.SYS"};
constexpr const char* t_uniform_address[] = {"", ".U"};
constexpr const char* t_evict[] = {".EF", "", ".EL", ".LU", ".EU", ".NA", nullptr, nullptr};
constexpr const char* t_prefetch[] = {"", ".LTC64B", ".LTC128B", ".LTC256B"};
constexpr const char* t_address_scale[] = {"", ".X4", ".X8", ".X16"};
constexpr const char* t_index_mode[] = {"", ".IL", ".IS", ".ISL"};
constexpr const char* t_atom_op[] = {".ADD",  ".MIN",  ".MAX",  ".INC",  ".DEC",  ".AND",  ".OR",   ".XOR",
                                     ".EXCH", nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr};
constexpr const char* t_red_op[] = {".ADD", ".MIN", ".MAX", ".INC", ".DEC", ".AND", ".OR", ".XOR"};
constexpr const char* t_atom_type[] = {"", ".S32", ".64", ".F32.FTZ.RN", ".F16x2.RN", ".S64", ".F64.RN", nullptr};
constexpr const char* t_atom_type_90[] = {"", ".S32", ".64", ".S64", ".128", nullptr, nullptr, nullptr};
constexpr const char* t_atom_float[] = {
    ".F16x2.RN", ".F16x4.RN",   ".F16x8.RN",     ".BF16x2.RN",    ".BF16x4.RN", ".BF16x8.RN", nullptr,     nullptr,
    nullptr,     ".F32.FTZ.RN", ".F32x2.FTZ.RN", ".F32x4.FTZ.RN", ".F32.RN",    ".F32x2.RN",  ".F32x4.RN", ".F64.RN"};
constexpr const char* t_float_op[] = {".ADD", ".MIN", ".MAX", nullptr};
constexpr const char* t_cas_type[] = {"", ".S32", ".64", nullptr};
constexpr const char* t_cas_pair[] = {"", nullptr, ".64", nullptr};
constexpr const char* t_cas_mode[] = {".CAS", ".CAST", nullptr, ".CAST.SPIN"};
constexpr const char* t_cas_only[] = {".CAS", nullptr, nullptr, nullptr};
constexpr const char* t_to_32[] = {"", "", "", nullptr};
constexpr const char* t_float_32[] = {nullptr, "", "", nullptr, "", nullptr, nullptr, nullptr};
constexpr const char* t_format[] = {"", "", "", "", "", nullptr, nullptr, nullptr};
constexpr const char* t_cs2r[] = {".32", ""};
constexpr const char* t_bypass[] = {".BYPASS", ""};
constexpr const char* t_zfill[] = {"", ".ZFILL"};
constexpr const char* t_cctl[] = {".PF1",  ".PF2",  ".WB",   ".IV",   ".IVALL", nullptr, ".IVALLP", ".WBALL",
                                  nullptr, ".PML2", ".DML2", ".RML2", nullptr,  nullptr, nullptr,   nullptr};
constexpr const char* t_scope[] = {".CTA", ".SM", ".GPU", ".SYS", nullptr, ".VC", nullptr, nullptr};
constexpr const char* t_fence[] = {".SC", ".ALL", "", ".MMIO"};
constexpr const char* t_space[] = {".G", ".L", ".S", nullptr};
constexpr const char* t_space_90[] = {".G", ".L", ".S", ".D"};
constexpr const char* t_shuffle[] = {".IDX", ".UP", ".DOWN", ".BFLY"};
constexpr const char* t_vote[] = {".ALL", ".ANY", ".EQ", nullptr};
constexpr const char* t_match[] = {".ALL", ".ANY"};
constexpr const char* t_u64[] = {"", ".U64"};
constexpr const char* t_reduce[] = {"", ".OR", ".XOR", ".SUM", ".MIN", ".MAX", nullptr, nullptr};
constexpr const char* t_bar[] = {".SYNC", ".ARV", ".RED", nullptr, ".SYNCALL", nullptr, nullptr, nullptr};
constexpr const char* t_defer[] = {"", ".DEFER_BLOCKING"};
constexpr const char* t_result[] = {nullptr, ".RESULT", ".WARP", nullptr};
constexpr const char* t_branch_uniform[] = {"", ".U"};
constexpr const char* t_branch_stack[] = {"", ".INC", ".DEC", nullptr};
constexpr const char* t_noinc[] = {"", ".NOINC"};
constexpr const char* t_nodec[] = {"", ".NODEC"};
constexpr const char* t_exit[] = {"", ".KEEPREFCOUNT", ".PREEMPTED", nullptr};
constexpr const char* t_sleep[] = {"", ".WARP", ".RAND", ".RAND.WARP"};
constexpr const char* t_exclusive[] = {"", ".EXCLUSIVE"};
constexpr const char* t_trap[] = {nullptr, nullptr, nullptr, ".TRAP", nullptr, nullptr, nullptr, nullptr};
constexpr const char* t_le[] = {"", ".LE"};
constexpr const char* t_dot[] = {".4A", ".2A.LO", nullptr, ".2A.HI"};
constexpr const char* t_pack[] = {".PACK_AB", ".BF16.PACK_AB"};
constexpr const char* t_merge[] = {".MERGE_C", ".BF16.MERGE_C"};
constexpr const char* t_merge_89[] = {".F16.F32.MERGE_C", ".BF16.F32.MERGE_C"};
constexpr const char* t_pack_89[] = {".F16.F32.PACK_AB", ".BF16.F32.PACK_AB"};
constexpr const char* t_to_e8[] = {".E5M2.F32.PACK_AB_MERGE_C", ".E4M3.F32.PACK_AB_MERGE_C"};
constexpr const char* t_half_to_e8[] = {".E5M2.F16.UNPACK_B_MERGE_C", ".E4M3.F16.UNPACK_B_MERGE_C"};
constexpr const char* t_from_e8[] = {".F16.E5M2.UNPACK_B", ".F16.E4M3.UNPACK_B"};
constexpr const char* t_i2ip[] = {".U8.S32.SAT", ".S8.S32.SAT", ".U16.S32.SAT", ".S16.S32.SAT",
                                  ".U2.S32.SAT", ".S2.S32.SAT", ".U4.S32.SAT",  ".S4.S32.SAT"};
constexpr const char* t_matrices[] = {"", ".2", ".4", nullptr};
constexpr const char* t_transposed[] = {".M88", ".MT88"};
constexpr const char* t_f2ip[] = {".U8.F32", ".S8.F32"};
// Instructions that round to nearest or towards zero only; the vendor's disassembler calls the other codes invalid.
constexpr const char* t_trunc[] = {"", nullptr, nullptr, ".TRUNC"};
constexpr const char* t_rz[] = {"", nullptr, nullptr, ".RZ"};
constexpr const char* t_half[] = {"", ".F32"};
constexpr const char* t_bf[] = {"", ".BF"};
constexpr const char* t_h_and[] = {"", ".H_AND"};
constexpr const char* t_f16[] = {"", ".F16"};
constexpr const char* t_bf16[] = {"", ".BF16_V2"};
constexpr const char* t_relu[] = {"", ".RELU"};
constexpr const char* t_is_relu[] = {".RELU"};
constexpr const char* t_u8[] = {".U8", ""};
constexpr const char* t_acc[] = {"", ".ACC"};

// The operand forms of one operation with two or three sources, from one description. Forms as in bits 9..11: 1 all registers, 2 C immediate,
// 3 C constant, 4 B immediate, 5 B constant, 6 B uniform, 7 C uniform. In forms 2, 3 and 7, B sits in bits 64..71.
struct Sources {
  Slot a = A;
  bool neg_b = false, abs_b = false, neg_c = false, abs_c = false;  // by position: bits 63, 62 and 75, 74
  Style neg_style = Style::plain;
  Slot immediate = S32;
  Span_ span_b = Span_::one, span_c = Span_::one;
  uint8_t part_b = no_bit;  // selector of a byte or half of a register
  uint8_t h1 = no_bit;      // bit that selects the upper half of a register
};
constexpr Slot at_32(Slot s, const Sources& d) {
  if (s.kind != immediate && s.kind != immediate_signed) {
    if (d.neg_b) s = s.n(63).as(d.neg_style);
    if (d.abs_b) s = s.a(62);
    if (d.part_b != no_bit) s = s.half(d.part_b, 2, 2);
    if (d.h1 != no_bit && s.kind == gpr) s = s.half(d.h1);
  }
  return s;
}
constexpr Slot at_64(Slot s, const Sources& d) {
  if (d.neg_c) s = s.n(75).as(d.neg_style);
  if (d.abs_c) s = s.a(74);
  return s;
}

template <size_t N, class Post>
constexpr void three_sources(Table<N>& t, const Builder& before, const char* forms, const Sources& d, Post&& post) {
  for (const char* f = forms; *f; ++f) {
    unsigned form = static_cast<unsigned>(*f - '0');
    Builder b = before.fix(9, 3, form).slot(d.a);
    Slot c_low = at_64(C, d);
    switch (form) {
      case 1: b = b.slots(at_32(B, d).with(d.span_b), c_low.with(d.span_c)); break;
      case 4: b = b.slots(d.immediate, c_low.with(d.span_c)); break;
      case 5: b = b.slots(at_32(Cb, d).with(d.span_b), c_low.with(d.span_c)); break;
      case 6: b = b.fix(91, 1, 1).slots(at_32(UB, d).with(d.span_b), c_low.with(d.span_c)); break;
      case 2: b = b.slots(c_low.with(d.span_b), d.immediate); break;
      case 3: b = b.slots(c_low.with(d.span_b), at_32(Cb, d).with(d.span_c)); break;
      case 7: b = b.fix(91, 1, 1).slots(c_low.with(d.span_b), at_32(UB, d).with(d.span_c)); break;
    }
    t.add(post(b));
  }
}
// Two sources A and B (bits 32..63). Forms 2, 3, 7 mean the same positions as 4, 5, 6: FADD and DSETP are numbered that way.
template <size_t N, class Post>
constexpr void two_sources(Table<N>& t, const Builder& before, const char* forms, const Sources& d, Post&& post) {
  for (const char* f = forms; *f; ++f) {
    unsigned form = static_cast<unsigned>(*f - '0');
    Builder b = before.fix(9, 3, form);
    if (d.a.kind != none) b = b.slot(d.a);
    switch (form) {
      case 1: b = b.slot(at_32(B, d).with(d.span_b)); break;
      case 2:
      case 4: b = b.slot(d.immediate); break;
      case 3:
      case 5: b = b.slot(at_32(Cb, d).with(d.span_b)); break;
      case 6:
      case 7: b = b.fix(91, 1, 1).slot(at_32(UB, d).with(d.span_b)); break;
    }
    t.add(post(b));
  }
}
constexpr auto same = [](const Builder& b) { return b; };
constexpr Slot no_source = Slot{};
constexpr Slot same_register = Slot{}.as(Style::repeat);  // prints the operand before it again

template <size_t N>
constexpr void integer_rows(Table<N>& t) {
  const auto X = m(K::X, 74, 1, t_x);
  const auto U32 = m(K::Signed, 73, 1, t_unsigned, 1);
  Sources plain;
  Sources unary;
  unary.a = no_source;
  Sources bits = plain;
  bits.immediate = I32;

  {  // MOV
    Sources d = unary;
    d.immediate = I32;
    two_sources(t, op(M::MOV, "MOV", 0x002, L::alu).slot(Rd), "1456", d,
                [](const Builder& b) { return b.mods(m(K::LaneMask, 72, 4, t_silent, 15)); });
  }
  {  // IADD3
    Sources d;
    d.a = A.nx(72);
    d.neg_b = d.neg_c = true;
    d.neg_style = Style::invert_by_x;
    three_sources(t, op(M::IADD3, "IADD3", 0x010, L::alu).slots(Rd, Pu, Pv), "1456", d,
                  [&](const Builder& b) { return b.slots(carry1, carry2).mods(X); });
  }
  {  // IMAD: bits 81..83 are always 7
    Sources d;
    d.neg_c = true;
    d.neg_style = Style::invert_by_x;
    auto family = [&](M mnemonic, const char* name, unsigned low, L latency, bool wide) {
      for (unsigned form = 1; form <= 7; ++form) {
        if (wide && form == 2) continue;  // no immediate where C is a pair
        Builder b =
            op(mnemonic, name, low, latency).fix(9, 3, form).slot(mnemonic == M::IMAD_WIDE ? Rd.with(Span_::two) : Rd);
        if (wide)
          b = b.slot(Pu);
        else
          b = b.fix(81, 3, 7);
        b = b.slot(A);
        Span_ sc = wide ? Span_::two : Span_::one;
        Slot c = C.nx(75).with(sc);
        switch (form) {
          case 1: b = b.slots(B, c); break;
          case 4: b = b.slots(S32, c); break;
          case 5: b = b.slots(Cb, c); break;
          case 6: b = b.fix(91, 1, 1).slots(UB, c); break;
          case 2: b = b.slots(C, S32); break;
          case 3: b = b.slots(C, Cb.nx(63).with(sc)); break;
          case 7: b = b.fix(91, 1, 1).slots(C, UB.nx(63).with(sc)); break;
        }
        t.add(b.slot(carry1).mods(U32, X));
      }
    };
    family(M::IMAD, "IMAD", 0x024, L::fma, false);
    family(M::IMAD_WIDE, "IMAD.WIDE", 0x025, L::wide, true);
    family(M::IMAD_HI, "IMAD.HI", 0x027, L::fma, true);
  }
  {  // IDP
    Sources d;
    d.neg_c = true;
    three_sources(t, op(M::IDP, "IDP", 0x026, L::fma).slot(Rd), "156", d, [](const Builder& b) {
      return b.mods(m(K::DotMode, 76, 2, t_dot), m(K::SignedA, 73, 1, t_u8s8), m(K::SignedB, 74, 1, t_u8s8));
    });
  }
  {  // Minimum and maximum
    two_sources(t, op(M::IMNMX, "IMNMX", 0x017, L::alu, before_90).slot(Rd), "1456", plain,
                [&](const Builder& b) { return b.slot(Ps).mods(U32); });
    const auto vector = [](const Builder& b) {
      return b.slot(Ps).mods(m(K::Signed, 72, 2, t_vector, 1), m(K::Relu, 76, 1, t_relu));
    };
    two_sources(t, op(M::VIMNMX, "VIMNMX", 0x048, L::alu, sm_90).slots(Rd, Pu, Pv), "146", plain, vector);
    three_sources(t, op(M::VIMNMX3, "VIMNMX3", 0x00f, L::alu, sm_90).slot(Rd), "146", bits, vector);
    for (unsigned form : {1u, 2u, 4u, 6u, 7u}) {  // the sign is B's, wherever it is
      Builder b = op(M::VIADDMNMX, "VIADDMNMX", 0x046, L::alu, sm_90).fix(9, 3, form).slots(Rd, A);
      switch (form) {
        case 1: b = b.slots(B.n(63), C); break;
        case 2: b = b.slots(C.n(75), I32); break;
        case 4: b = b.slots(I32, C); break;
        case 6: b = b.fix(91, 1, 1).slots(UB.n(63), C); break;
        case 7: b = b.fix(91, 1, 1).slots(C.n(75), UB); break;
      }
      t.add(vector(b));
    }
  }
  {  // Sums of two, or of two pairs of halves: by the unit of products (ptxas 12.9: 4 cycles to and from FFMA and IMAD, 5 to and from IADD3)
    Sources d = bits;
    d.neg_b = true;
    two_sources(t, op(M::VIADD, "VIADD", 0x036, L::fma, sm_90).slot(Rd), "146", d,
                [](const Builder& b) { return b.mods(m(K::Halves, 73, 1, t_16x2)); });
  }
  {  // ISETP
    two_sources(t, op(M::ISETP, "ISETP", 0x00c, L::alu).slots(Pd, Pq), "1456", plain, [&](const Builder& b) {
      return b.slots(Ps, pred(68, 71).when(Show::with_ex).def(PT))
          .mods(m(K::Compare, 76, 3, t_compare), U32, m(K::Bool, 74, 2, t_bool), m(K::EX, 72, 1, t_ex));
    });
  }
  {  // Logic
    for (unsigned form : {1u, 4u, 5u, 6u}) {
      Builder b = op(M::LOP3, "LOP3.LUT", 0x012, L::alu).fix(9, 3, form).slots(Pu, Rd, A);
      b = form == 1 ? b.slot(B) : form == 4 ? b.slot(I32) : form == 5 ? b.slot(Cb) : b.fix(91, 1, 1).slot(UB);
      t.add(b.slots(C, imm(72, 8), pred(87, 90).def(PT, true)).mods(m(K::PAnd, 80, 1, t_pand)));
    }
    Slot lut = imm(64, 3, immediate_split);
    lut.second = 72;
    for (bool u : {false, true})
      t.add(op(M::PLOP3, "PLOP3.LUT", 0x81c, L::alu)
                .fix(67, 1, u)
                .slots(Pd, Pq, Ps, pred(77, 80), u ? upred(68, 71) : pred(68, 71), lut, imm(16, 8)));
    for (unsigned form : {1u, 5u, 6u}) {
      const Builder b = op(M::PLOP3, "PLOP3.LUT", 0x01f, L::alu).fix(9, 3, form).slots(Pd, Pq, A.as(Style::sign));
      t.add((form == 1   ? b.slot(B.as(Style::sign))
             : form == 5 ? b.slot(Cb.as(Style::sign))
                         : b.fix(91, 1, 1).slot(UB.as(Style::sign)))
                .slots(C.as(Style::sign), imm(72, 8), imm(16, 8)));
    }
  }
  {  // Shifts
    three_sources(t, op(M::SHF, "SHF", 0x019, L::alu).slot(Rd), "1234567", bits, [](const Builder& b) {
      return b.mods(m(K::Right, 76, 1, t_right), m(K::Wrap, 75, 1, t_wrap), m(K::ShiftType, 73, 2, t_shift_type, 3),
                    m(K::High, 80, 1, t_high));
    });
    for (unsigned form : {1u, 4u, 5u, 6u}) {
      auto b_slot = [&](const Builder& b) {
        return form == 1   ? b.slot(B.nx(63))
               : form == 4 ? b.slot(I32)
               : form == 5 ? b.slot(Cb.nx(63))
                           : b.fix(91, 1, 1).slot(UB.nx(63));
      };
      t.add(b_slot(op(M::LEA, "LEA", 0x011, L::alu).fix(9, 3, form).fix(64, 8, 255).slots(Rd, Pu, A.nx(72)))
                .slots(imm(75, 5), carry1)
                .mods(X));
      t.add(b_slot(op(M::LEA_HI, "LEA.HI", 0x011, L::alu).fix(9, 3, form).fix(80, 1, 1).slots(Rd, Pu, A.nx(72)))
                .slots(C.when(Show::unless_sx32).def(RZ), imm(75, 5), carry1)
                .mods(X, m(K::SX32, 73, 1, t_sx32)));
    }
    two_sources(t, op(M::SGXT, "SGXT", 0x01a, L::alu).slot(Rd), "146", bits,
                [&](const Builder& b) { return b.mods(m(K::Wrap, 75, 1, t_wrap), U32); });
    two_sources(t, op(M::BMSK, "BMSK", 0x01b, L::alu).slot(Rd), "1456", bits,
                [](const Builder& b) { return b.mods(m(K::Wrap, 75, 1, t_wrap)); });
  }
  {  // Selection and permutation
    two_sources(t, op(M::SEL, "SEL", 0x007, L::alu).slot(Rd), "1456", bits,
                [](const Builder& b) { return b.slot(Ps); });
    three_sources(t, op(M::PRMT, "PRMT", 0x016, L::alu).slot(Rd), "1234567", bits,
                  [](const Builder& b) { return b.mods(m(K::PermuteMode, 72, 3, t_permute)); });
  }
  {  // Unary
    two_sources(t, op(M::IABS, "IABS", 0x013, L::alu).slot(Rd), "156", unary, same);
    Sources plain_unary = unary;
    plain_unary.immediate = I32;
    Sources d = unary;
    d.neg_b = true;
    d.neg_style = Style::invert;
    d.immediate = I32;
    two_sources(t, op(M::POPC, "POPC", 0x109, L::sfu).slot(Rd), "1456", d, same);
    two_sources(t, op(M::BREV, "BREV", 0x101, L::sfu).slot(Rd), "1456", plain_unary, same);
    two_sources(t, op(M::FLO, "FLO", 0x100, L::sfu).slots(Rd, Pu), "1456", d,
                [&](const Builder& b) { return b.mods(U32, m(K::ShiftAmount, 74, 1, t_sh)); });
    three_sources(t, op(M::VABSDIFF, "VABSDIFF", 0x014, L::alu).fix(81, 3, 7).slot(Rd), "1234567", bits,
                  [&](const Builder& b) { return b.mods(m(K::Signed, 73, 1, t_unsigned, 0)); });
    three_sources(t, op(M::VABSDIFF4, "VABSDIFF4", 0x015, L::alu).fix(81, 3, 7).slot(Rd), "146", bits,
                  [&](const Builder& b) { return b.mods(m(K::Signed, 73, 1, t_u8), m(K::ACC, 75, 1, t_acc)); });
    two_sources(t, op(M::I2I, "I2I", 0x038, L::alu).slot(Rd), "1456", plain_unary, [&](const Builder& b) {
      return b.mods(m(K::DestSigned, 76, 1, t_silent), m(K::DestSize, 77, 1, t_silent));
    });
  }
  {                                               // Predicates to registers and back
    for (const uint32_t on : {before_90, sm_90})  // sm_90 prints the mask without a sign
      t.add(op(M::P2R, "P2R", 0x803, L::alu, on)
                .slots(Rd, A.as(Style::p_mask), on == sm_90 ? I32 : S32)
                .mods(m(K::Byte, 76, 2, t_byte)));
    t.add(op(M::R2P, "R2P", 0x804, L::alu).slots(A.as(Style::pr_before), I32).mods(m(K::Byte, 76, 2, t_silent)));
    t.add(op(M::CS2R, "CS2R", 0x805, L::cs2r)
              .slots(Rd.with(Span_::wide), special_register)
              .mods(m(K::Wide, 80, 1, t_cs2r, 1)));
  }
  {  // Special registers and moves between files
    t.add(op(M::S2R, "S2R", 0x919, L::special).slots(Rd, special_register));
    t.add(op(M::S2UR, "S2UR", 0x9c3, L::special).guard_uniform().slots(URd, special_register));
    t.add(op(M::R2UR, "R2UR", 0x3c2, L::register_to_uniform, before_90).slots(URd, Pu, A));
    t.add(op(M::R2UR, "R2UR", 0x2ca, L::register_to_uniform, sm_90).slots(URd, Pu, A));
    t.add(op(M::B2R, "B2R", 0x31c, L::special).slots(Rd, Pu).mods(m(K::ResultMode, 78, 2, t_result, 1)));
    t.add(op(M::LEPC, "LEPC", 0x34e, L::special).slots(Rd.with(Span_::two)).from(Provenance::inferred));
    t.add(op(M::LEPC, "LEPC", 0x94e, L::alu, sm_90).slots(Rd.with(Span_::two), make_slot(label_bytes, 24, R)));
  }
}

template <size_t N>
constexpr void float_rows(Table<N>& t) {
  const auto FTZ = m(K::FTZ, 80, 1, t_ftz), RND = m(K::Rounding, 78, 2, t_rounding), SAT = m(K::SAT, 77, 1, t_sat),
             FMZ = m(K::FMZ, 76, 1, t_fmz);
  Sources f;
  f.a = A.n(72).a(73);
  f.neg_b = f.abs_b = true;
  f.immediate = F32;
  Sources f3 = f;
  f3.neg_c = f3.abs_c = true;
  two_sources(t, op(M::FADD, "FADD", 0x021, L::fma).slot(Rd), "1237", f,
              [&](const Builder& b) { return b.mods(FTZ, RND, SAT); });
  two_sources(t, op(M::FMUL, "FMUL", 0x020, L::fma).slot(Rd), "1456", f,
              [&](const Builder& b) { return b.mods(FTZ, FMZ, m(K::Scale, 84, 3, t_scale, 4), RND, SAT); });
  three_sources(t, op(M::FFMA, "FFMA", 0x023, L::fma).slot(Rd), "1234567", f3,
                [&](const Builder& b) { return b.mods(FTZ, FMZ, RND, SAT); });
  for (const uint32_t on : {sm_75, sm_80, after_75 & ~sm_80})
    two_sources(t, op(M::FMNMX, "FMNMX", 0x009, L::alu, on).slot(Rd), "1456", f, [&](const Builder& b) {
      return b.slot(Ps).mods(FTZ, m(K::NaN, 81, 1, on == sm_75 ? t_clear : t_nan),
                             m(K::XorSign, 82, 1, on & (sm_75 | sm_80) ? t_clear : t_xorsign));
    });
  two_sources(t, op(M::FSEL, "FSEL", 0x008, L::alu).slot(Rd), "1456", f,
              [&](const Builder& b) { return b.slot(Ps).mods(FTZ); });
  const auto BOOL = m(K::Bool, 74, 2, t_bool), CMP = m(K::FloatCompare, 76, 4, t_fcompare);
  two_sources(t, op(M::FSETP, "FSETP", 0x00b, L::alu).slots(Pd, Pq), "1456", f,
              [&](const Builder& b) { return b.slot(Ps).mods(CMP, FTZ, BOOL); });
  // FSET: bit 71 is .BF
  two_sources(t, op(M::FSET, "FSET.BF", 0x00a, L::alu).slot(Rd), "1456", f,
              [&](const Builder& b) { return b.slot(Ps).mods(CMP, FTZ, BOOL); });
  t.add(op(M::FCHK, "FCHK", 0x302, L::sfu).slots(Pd, f.a, B.n(63).a(62)));
  t.add(op(M::FCHK, "FCHK", 0x902, L::sfu).slots(Pd, f.a, F32));
  t.add(op(M::FCHK, "FCHK", 0xb02, L::sfu).slots(Pd, f.a, Cb.n(63).a(62)));
  t.add(op(M::FCHK, "FCHK", 0xd02, L::sfu).fix(91, 1, 1).slots(Pd, f.a, UB.n(63).a(62)));

  Sources d = f;
  d.immediate = F64;
  d.span_b = d.span_c = Span_::two;
  d.a = f.a.with(Span_::two);
  const Slot Rd2 = Rd.with(Span_::two);
  t.add(op(M::DADD, "DADD", 0x229, L::fp64).slots(Rd2, d.a, C.n(75).a(74).with(Span_::two)).mods(RND));
  two_sources(t, op(M::DADD, "DADD", 0x029, L::fp64).slot(Rd2), "237", d,
              [&](const Builder& b) { return b.mods(RND); });
  two_sources(t, op(M::DMUL, "DMUL", 0x028, L::fp64).slot(Rd2), "1456", d,
              [&](const Builder& b) { return b.mods(RND); });
  Sources d3 = d;
  d3.neg_c = d3.abs_c = true;
  three_sources(t, op(M::DFMA, "DFMA", 0x02b, L::fp64).slot(Rd2), "1234567", d3,
                [&](const Builder& b) { return b.mods(RND); });
  two_sources(t, op(M::DSETP, "DSETP", 0x02a, L::fp64).slots(Pd, Pq), "1237", d,
              [&](const Builder& b) { return b.slot(Ps).mods(m(K::FloatCompare, 76, 4, t_dcompare), BOOL); });

  // Half precision: Operand::part 0 both halves, 1 F32, 2 H0_H0, 3 H1_H1
  {
    const Slot a = A.n(72).a(73).half(74, 2, 3), b = B.n(63).a(62).half(60, 2, 3), c = C.n(84).a(83).half(81, 2, 3);
    const Slot low = imm(32, 16).as(Style::f16), high = imm(48, 16).as(Style::f16);
    const Slot bc = Cb.n(63).a(62).half(60, 2, 3), bu = UB.n(63).a(62).half(60, 2, 3);
    // B in a register, two literal halves, or a constant; `literal`: the literal form's number
    // bfloat16 pairs: sm_90
    auto pairs = [&](M mn, const char* name, unsigned opcode, unsigned literal, auto&& before, auto&& after) {
      for (bool sm90 : {false, true}) {
        const uint32_t on = mn == M::HMNMX2 ? (sm90 ? sm_86 | sm_89 | sm_90 : sm_80) : sm90 ? sm_90 : before_90;
        t.add(after(before(op(mn, name, 0x200 | opcode, L::half, on)).slots(a, b), sm90));
        t.add(after(before(op(mn, name, literal << 9 | opcode, L::half, on)).slots(a, high, low), sm90));
        t.add(after(before(op(mn, name, (literal + 1) << 9 | opcode, L::half, on)).slots(a, bc), sm90));
        if (!sm90 && mn != M::HADD2 && mn != M::HMUL2) continue;  // seen on sm_90 only
        const unsigned uniform_form = literal == 2 ? 7 : 6;
        const uint32_t uniform_on = sm90 ? sm_90 : mn == M::HADD2 ? before_90 : ampere;
        t.add(after(before(op(mn, name, uniform_form << 9 | opcode, L::half, uniform_on)).fix(91, 1, 1).slots(a, bu),
                    sm90));
      }
    };
    auto to_register = [](const Builder& x) { return x.slot(Rd); };
    pairs(M::HADD2, "HADD2", 0x030, 2, to_register, [&](const Builder& x, bool sm90) {
      const bool literal = x.f.slots[2].kind == immediate;  // .F32 would take one number there
      return x.mods(m(K::HalfFormat, 78, 1, literal ? t_clear : t_half), m(K::Pack, 85, 1, sm90 ? t_bf16 : t_clear),
                    FTZ, SAT);
    });
    pairs(M::HMUL2, "HMUL2", 0x032, 4, to_register, [&](const Builder& x, bool sm90) {
      if (sm90) return x.mods(m(K::Pack, 85, 1, t_bf16), FTZ, FMZ, SAT);
      const bool literal = x.f.slots[2].kind == immediate;
      return x.mods(m(K::HalfFormat, 78, 1, literal ? t_clear : t_half), m(K::Pack, 85, 1, t_clear), FTZ, FMZ, SAT);
    });
    pairs(M::HMNMX2, "HMNMX2", 0x040, 4, to_register, [&](const Builder& x, bool sm90) {
      return x.slot(Ps).mods(m(K::Pack, 85, 1, t_bf16), FTZ, m(K::NaN, 81, 1, t_nan),
                             m(K::XorSign, 82, 1, sm90 ? t_xorsign : t_clear));  // sm_86 up
    });
    const auto HCMP = m(K::FloatCompare, 76, 4, t_fcompare), HBOOL = m(K::Bool, 69, 2, t_bool);
    pairs(M::HSET2, "HSET2", 0x033, 2, to_register, [&](const Builder& x, bool sm90) {
      return x.slot(Ps).mods(m(K::BF, 71, 1, t_bf), m(K::Pack, 65, 1, sm90 ? t_bf16 : t_clear), HCMP, FTZ, HBOOL);
    });
    pairs(
        M::HSETP2, "HSETP2", 0x034, 2, [](const Builder& x) { return x.slots(Pd, Pq); },
        [&](const Builder& x, bool sm90) {
          return x.slot(Ps).mods(m(K::Pack, 65, 1, sm90 ? t_bf16 : t_clear), HCMP, FTZ, m(K::High, 71, 1, t_h_and),
                                 HBOOL);
        });
    // Two registers; two literal halves, or a constant, for B or C. No bfloat16 and no RELU on sm_75.
    for (const uint32_t on : {sm_75, after_75})
      for (bool relu : {false, true}) {
        if (relu && on == sm_75) continue;
        auto rest = [&](const Builder& x, bool any_format = false) {
          Builder y = x.fix(79, 1, relu);
          if (relu) y = y.slot(Px);
          if (any_format) y = y.mods(m(K::HalfFormat, 78, 1, t_half));
          return y.mods(FMZ, FTZ, SAT, m(K::Pack, 85, 1, on == sm_75 ? t_clear : t_bf16),
                        m(K::Relu, 0, 0, relu ? t_is_relu : t_silent));
        };
        auto row = [&](unsigned opcode) { return op(M::HFMA2, "HFMA2", opcode, L::half, on).slots(Rd, a); };
        const Slot b_at_c = C.n(84).a(83).half(81, 2, 3);
        t.add(rest(row(0x231).slots(b, c), true));
        t.add(rest(row(0x831).slots(high, low, c)));
        t.add(rest(row(0x431).slots(b_at_c, high, low)));
        t.add(rest(row(0xa31).slots(bc, c)));
        t.add(rest(row(0x631).slots(b_at_c, bc)));
        if (on == sm_75) continue;
        t.add(rest(row(0xc31).on(relu ? sm_90 : after_75).fix(91, 1, 1).slots(bu, c)));
        t.add(rest(row(0xe31).fix(91, 1, 1).slots(b_at_c, bu)));
      }
    const Slot plain = C.n(84).a(83);
    for (bool relu : {false, true})
      for (const uint32_t on : {sm_80, sm_90}) {
        auto mma = [&](const Builder& x) {
          Builder y = x.fix(79, 1, relu);
          if (relu) y = y.slot(Px);
          return y.mods(m(K::Pack, 85, 1, on == sm_90 ? t_bf16 : t_clear), FMZ, FTZ, SAT,
                        m(K::Relu, 0, 0, relu ? t_is_relu : t_silent));
        };
        const Slot source = A.n(72).a(73), constant = Cb.n(63).a(62);
        auto row = [&](unsigned opcode) {
          return op(M::HFMA2_MMA, "HFMA2.MMA", opcode, L::half_mma, on).slots(Rd, source);
        };
        t.add(mma(row(0x235).slots(B.n(63).a(62), plain)));
        t.add(mma(row(0xa35).slots(constant, plain)));
        t.add(mma(row(0x635).slots(plain, constant)));
        t.add(mma(row(0x435).slots(plain, high, low)));
        t.add(mma(row(0x835).slots(high, low, plain)));
        if (relu) continue;  // not seen beside a uniform register
        const Slot uniform = UB.n(63).a(62);
        t.add(mma(row(0xc35).fix(91, 1, 1).slots(uniform, plain)));
        t.add(mma(row(0xe35).fix(91, 1, 1).slots(plain, uniform)));
      }
    // The second source by the number of the form: a register, a literal, a constant, a uniform register.
    const auto second = [&](const Builder& row, unsigned form, const Slot& literal) {
      const Builder b = row.fix(9, 3, form);
      return form == 1 ? b.slot(B) : form == 4 ? b.slot(literal) : form == 5 ? b.slot(Cb) : b.fix(91, 1, 1).slot(UB);
    };
    for (bool new_text : {false, true})
      for (unsigned form : {1u, 4u, 5u, 6u}) {
        const Builder b =
            op(M::F2FP, "F2FP", 0x03e, L::alu, new_text ? sm_89 | sm_90 : sm_80 | sm_86).fix(64, 8, 255).slots(Rd, A);
        t.add(second(b, form, F32)
                  .mods(m(K::Relu, 75, 1, t_relu), m(K::Pack, 76, 1, new_text ? t_pack_89 : t_pack),
                        m(K::Rounding, 79, 2, t_rz)));
      }
    // One float in the lower half, above it a half of C.
    for (bool new_text : {false, true})
      for (unsigned form : {1u, 4u, 6u}) {
        const Builder b = op(M::F2FP_MERGE_C, "F2FP", 0x03e, L::alu, new_text ? sm_89 | sm_90 : sm_80 | sm_86)
                              .fix(78, 1, 1)
                              .fix(24, 8, 255)
                              .slot(Rd);
        t.add(second(b, form, F32)
                  .slot(C.half(72))
                  .mods(m(K::Relu, 75, 1, t_relu), m(K::Pack, 76, 1, new_text ? t_merge_89 : t_merge),
                        m(K::Rounding, 79, 2, t_rz)));
      }
    for (bool new_text : {false, true})
      t.add(op(M::F2FP_MERGE_C, "F2FP", 0xa3e, L::alu, new_text ? sm_89 : sm_80 | sm_86)
                .fix(78, 1, 1)
                .fix(24, 8, 255)
                .slots(Rd, Cb, C)
                .mods(m(K::Relu, 75, 1, t_relu), m(K::Pack, 76, 1, new_text ? t_merge_89 : t_merge)));
    // 8-bit floats of sm_89 and sm_90. A half of C (.H1: the upper) goes to the upper half of the result.
    for (unsigned form : {1u, 4u, 5u, 6u}) {
      const Builder b = op(M::F2FP_TO_E8, "F2FP.SATFINITE", 0x03e, L::alu, sm_89 | sm_90)
                            .fix(77, 2, 3)
                            .fix(87, 1, 1)
                            .fix(90, 1, 1)
                            .slots(Rd, A);
      t.add(second(b, form, F32).slot(C.half(72)).mods(m(K::Relu, 75, 1, t_relu), m(K::Pack, 76, 1, t_to_e8)));
    }
    t.add(op(M::F2FP_HALF_TO_E8, "F2FP.SATFINITE", 0x23e, L::alu, sm_89 | sm_90)
              .fix(24, 8, 255)
              .fix(73, 1, 1)
              .fix(77, 1, 1)
              .fix(87, 1, 1)
              .fix(90, 1, 1)
              .slots(Rd, B, C.half(72))
              .mods(m(K::Relu, 75, 1, t_relu), m(K::Pack, 76, 1, t_half_to_e8)));
    t.add(op(M::F2FP_FROM_E8, "F2FP", 0x23e, L::alu, sm_89 | sm_90)
              .fix(24, 8, 255)
              .fix(64, 8, 255)
              .fix(74, 1, 1)
              .fix(89, 1, 1)
              .slots(Rd, B.half(88))
              .mods(m(K::Relu, 75, 1, t_relu), m(K::Pack, 73, 1, t_from_e8)));
    // sm_90 has another bit for .SAT.
    for (const uint32_t on : {before_90, sm_90})
      for (unsigned form : {1u, 4u, 5u, 6u}) {
        if (form == 6 && on == before_90) continue;  // not seen
        const Builder b = op(M::I2IP, "I2IP", 0x039, L::alu, on).fix(74, 1, on == sm_90).slots(Rd, A);
        t.add(second(b, form, S32).slot(C.half(72, 2, 4)).mods(m(K::Pack, 76, 3, t_i2ip)));
      }
    t.add(op(M::F2IP, "F2IP", 0x243, L::alu, sm_86 | sm_89 | sm_90)
              .slots(Rd, A, B, C)
              .mods(m(K::Signed, 76, 1, t_f2ip), m(K::Rounding, 78, 2, t_trunc, 3), m(K::NTZ, 74, 1, t_ntz)));
  }

  // One source: function unit and conversions
  Sources u;
  u.a = no_source;
  u.neg_b = u.abs_b = true;
  u.immediate = F32;
  for (bool sm90 : {false, true}) {
    Sources function = u;
    function.h1 = 60;
    two_sources(t, op(M::MUFU, "MUFU", 0x108, L::sfu, sm90 ? sm_90 : before_90).slot(Rd), "1456", function,
                [&](const Builder& b) {
                  return b.mods(m(K::Function, 74, 4, t_function), m(K::HalfFormat, sm90 ? 72 : 73, 1, t_f16));
                });
  }
  const auto INT = m(K::Rounding, 78, 2, t_integral);
  const Slot Rdest = Rd.with(Span_::dest), Rfd = Rd.with(Span_::f64_dest);
  Sources cf = u;  // float source, maybe 64 bits
  cf.span_b = Span_::f64_source;
  Sources ci = u;
  ci.span_b = Span_::source;
  ci.immediate = I32;
  ci.neg_b = ci.abs_b = false;
  Sources cn = ci;  // a byte or half of a register
  cn.part_b = 60;
  // sm_90 converts bfloat16 too, which is format 4.
  for (const uint32_t on : {before_90, sm_90})
    for (unsigned wide : {0u, 1u}) {
      const uint8_t format = wide ? 3 : 2, bits = on == sm_90 ? 3 : 2;
      const auto ftz = FTZ, DF = m(K::DestFormat, 75, bits, t_format, format),
                 SF = m(K::SourceFormat, 84, bits, t_format, format);
      Sources c = cf;
      c.immediate = wide ? F64 : F32;
      c.h1 = 60;
      two_sources(t, op(M::F2I, "F2I", wide ? 0x111 : 0x105, L::sfu, on).slot(Rdest), "1456", c, [&](const Builder& b) {
        return b.mods(m(K::Signed, 72, 1, t_silent, 1), m(K::DestSize, 75, 2, wide ? t_silent : t_to_32, 2), SF, ftz,
                      INT, m(K::NTZ, 77, 1, t_ntz));
      });
      two_sources(t, op(M::F2F, "F2F", wide ? 0x110 : 0x104, L::sfu, on).slot(Rfd), "1456", c,
                  [&](const Builder& b) { return b.mods(ftz, m(K::DestFormat, 75, 3, t_format, 2), SF, RND); });
      two_sources(t, op(M::FRND, "FRND", wide ? 0x113 : 0x107, L::sfu, on).slot(Rfd), "1456", c,
                  [&](const Builder& b) { return b.mods(ftz, DF, SF, INT); });
    }
  for (const uint32_t on : {before_90, sm_90})
    for (unsigned wide : {0u, 1u})
      for (const char* which : {"1", "456"})
        two_sources(t, op(M::I2F, "I2F", wide ? 0x112 : 0x106, L::sfu, on).slot(Rfd), which, *which == '1' ? cn : ci,
                    [&](const Builder& b) {
                      return b.mods(
                          m(K::DestFormat, 75, on == sm_90 ? 3 : 2, wide ? t_format : t_float_32, wide ? 3 : 2),
                          m(K::Signed, 74, 1, t_silent, 1), m(K::SourceSize, 84, 2, t_silent, 2), RND);
                    });
  Sources cp = u;
  cp.immediate = I32;
  cp.neg_b = cp.abs_b = false;
  two_sources(t, op(M::I2FP, "I2FP.F32", 0x045, L::alu, sm_86 | sm_89 | sm_90).fix(75, 3, 2).fix(84, 2, 2).slot(Rd),
              "1456", cp,
              [&](const Builder& b) { return b.mods(m(K::Signed, 74, 1, t_silent, 1), m(K::Rounding, 78, 2, t_rz)); });
}

template <size_t N>
constexpr void memory_rows(Table<N>& t) {
  const auto SIZE = m(K::Size, 73, 3, t_size, 4), E = m(K::E, 72, 1, t_e, 1), EV = m(K::Evict, 84, 3, t_evict, 1);
  const auto ORDER = m(K::Order, 77, 4, t_order), LOAD_ORDER = m(K::Order, 77, 4, t_order_load),
             LTC = m(K::Prefetch, 68, 2, t_prefetch);
  const Slot Rs = Rd.with(Span_::size), data = B.with(Span_::size);
  Slot p_in = make_slot(predicate_inverted, 64, R).n(67).opt(PT);

  // Global and generic; 90 and 91: the uniform register is there. sm_75 has no memory descriptors and other codes for the memory order.
  for (bool turing : {false, true}) {
    const uint32_t on = turing ? sm_75 : volta & ~sm_75;
    const uint8_t flag = turing ? no_bit : 76;
    const auto ORD = turing ? m(K::Order, 77, 4, t_order_75, 7) : ORDER;
    const auto LOAD = turing ? m(K::Order, 77, 4, t_order_load_75, 7) : LOAD_ORDER;
    const auto LSIZE = turing ? m(K::Size, 73, 3, t_size_u, 4) : SIZE;
    t.add(op(M::LDG, "LDG", 0x981, L::global_load, on)
              .fix(90, 2, 3)
              .fix(81, 3, 7)
              .slots(Rs, memory(40, 24, 32, flag), p_in)
              .mods(E, EV, LTC, LSIZE, LOAD));
    t.add(op(M::LDG, "LDG", 0x381, L::global_load, on)
              .fix(81, 3, 7)
              .slots(Rs, memory(40, 24), p_in)
              .mods(E, EV, LTC, LSIZE, LOAD));
    t.add(op(M::STG, "STG", 0x986, L::global_store, on)
              .fix(90, 2, 3)
              .slots(memory(40, 24, 64, flag), data)
              .mods(E, EV, SIZE, ORD));
    if (turing) {
      t.add(op(M::LDG, "LDG", 0x981, L::global_load, on)
                .fix(91, 1, 1)
                .fix(81, 3, 7)
                .slots(Rs, memory(40, 24, 32).as(Style::base_32), p_in)
                .mods(E, EV, LTC, LSIZE, LOAD));
      t.add(op(M::STG, "STG", 0x986, L::global_store, on)
                .fix(91, 1, 1)
                .slots(memory(40, 24, 64).as(Style::base_32), data)
                .mods(E, EV, SIZE, ORD));
    }
    t.add(op(M::STG, "STG", 0x386, L::global_store, on).slots(memory(40, 24), data).mods(E, EV, SIZE, ORD));
    t.add(op(M::LD, "LD", 0x980, L::global_load, on)
              .fix(90, 2, 3)
              .slots(Rs, memory(40, 24, 32, flag))
              .mods(E, EV, SIZE, LOAD));
    t.add(op(M::LD, "LD", 0x980, L::global_load, on).slots(Rs, memory(32, 32)).mods(E, EV, SIZE, LOAD));
    t.add(op(M::LD, "LD", 0x980, L::global_load, on)
              .fix(91, 1, 1)
              .slots(Rs, memory(40, 24, 32).as(Style::base_32))
              .mods(E, EV, SIZE, LOAD));
    t.add(op(M::ST, "ST", 0x985, L::global_store, on)
              .fix(91, 1, 1)
              .slots(memory(40, 24, 64).as(Style::base_32), data)
              .mods(E, EV, SIZE, ORD));
    t.add(op(M::ST, "ST", 0x985, L::global_store, on)
              .fix(90, 2, 3)
              .slots(memory(40, 24, 64, flag), data)
              .mods(E, EV, SIZE, ORD));
    t.add(
        op(M::ST, "ST", 0x385, L::global_store, on).slots(memory(32, 32), C.with(Span_::size)).mods(E, EV, SIZE, ORD));
  }

  // Atomics
  for (bool sm90 : {false, true}) {
    uint32_t on = sm90 ? sm_90 : ampere;
    const auto TYPE = m(K::AtomType, 73, 3, sm90 ? t_atom_type_90 : t_atom_type);
    const auto OP = m(K::AtomOp, 87, 4, t_atom_op), RED_OP = m(K::AtomOp, 87, 3, t_red_op);
    const Slot Ra = Rd.with(Span_::atom), da = B.with(Span_::atom);
    t.add(op(M::ATOMG, "ATOMG", 0x9a8, L::global_atomic, on)
              .fix(70, 1, 1)
              .fix(91, 1, 1)
              .slots(Pd, Ra, memory(40, 24, 64, 71), da)
              .mods(E, OP, EV, TYPE, ORDER));
    t.add(op(M::ATOMG, "ATOMG", 0x3a8, L::global_atomic, on)
              .slots(Pd, Ra, memory(40, 24), da)
              .mods(E, OP, EV, TYPE, ORDER));
    t.add(op(M::ATOM, "ATOM", 0x98a, L::global_atomic, on)
              .fix(70, 1, 1)
              .fix(91, 1, 1)
              .slots(Pd, Ra, memory(40, 24, 64, 71), da)
              .mods(E, OP, EV, TYPE, ORDER));
    t.add(op(M::ATOM, "ATOM", 0x38a, L::global_atomic, on)
              .slots(Pd, Ra, memory(40, 24), da)
              .mods(E, OP, EV, TYPE, ORDER));
    t.add(op(M::RED, sm90 ? "REDG" : "RED", 0x98e, L::global_store, on)
              .fix(90, 2, 3)
              .slots(memory(40, 24, 64, 71), da)
              .mods(E, RED_OP, EV, TYPE, ORDER));
    t.add(op(M::RED, sm90 ? "REDG" : "RED", 0x98e, L::global_store, on)
              .fix(90, 1, 1)
              .slots(memory(40, 24), da)
              .mods(E, RED_OP, EV, TYPE, ORDER));
    // Compare and swap: no uniform register
    const auto CT = m(K::AtomType, 73, 2, t_cas_type);
    const Slot cc = B.with(Span_::atom), cs = C.with(Span_::atom);
    t.add(op(M::ATOMG_CAS, "ATOMG", 0x3a9, L::global_atomic, on)
              .slots(Pd, Ra, memory(40, 24), cc, cs)
              .mods(E, m(K::CasMode, 87, 2, t_cas_only), EV, CT, ORDER));
    t.add(op(M::ATOM_CAS, "ATOM", 0x38b, L::global_atomic, on)
              .slots(Pd, Ra, memory(40, 24), cc, cs)
              .mods(E, m(K::CasMode, 87, 2, t_cas_mode), EV, CT, ORDER));
  }
  {  // sm_75
    const auto TYPE = m(K::AtomType, 73, 3, t_atom_type), CT = m(K::AtomType, 73, 2, t_cas_type);
    const auto OP = m(K::AtomOp, 87, 4, t_atom_op), RED_OP = m(K::AtomOp, 87, 3, t_red_op);
    const auto ORD = m(K::Order, 77, 4, t_order_75, 10), CAS = m(K::CasMode, 87, 2, t_cas_mode),
               CAS_ONLY = m(K::CasMode, 87, 2, t_cas_only);
    const Slot Ra = Rd.with(Span_::atom), da = B.with(Span_::atom), cc = B.with(Span_::atom), cs = C.with(Span_::atom);
    const Slot at = memory(40, 24);
    t.add(op(M::ATOMG, "ATOMG", 0x3a8, L::global_atomic, sm_75)
              .fix(64, 8, 255)
              .slots(Pd, Ra, at, da)
              .mods(E, OP, EV, TYPE, ORD));
    t.add(op(M::ATOM, "ATOM", 0x38a, L::global_atomic, sm_75)
              .fix(64, 8, 255)
              .slots(Pd, Ra, at, da)
              .mods(E, OP, EV, TYPE, ORD));
    const Slot with_uniform = memory(40, 24, 64);
    t.add(op(M::ATOMG, "ATOMG", 0x9a8, L::global_atomic, sm_75)
              .fix(70, 1, 1)
              .fix(91, 1, 1)
              .slots(Pd, Ra, with_uniform, da)
              .mods(E, OP, EV, TYPE, ORD));
    t.add(op(M::ATOM, "ATOM", 0x98a, L::global_atomic, sm_75)
              .fix(70, 1, 1)
              .fix(91, 1, 1)
              .slots(Pd, Ra, with_uniform, da)
              .mods(E, OP, EV, TYPE, ORD));
    t.add(op(M::RED, "RED", 0x98e, L::global_store, sm_75).slots(at, da).mods(E, RED_OP, EV, TYPE, ORD));
    t.add(op(M::RED, "RED", 0x98e, L::global_store, sm_75)
              .fix(90, 2, 3)
              .slots(memory(40, 24, 64), da)
              .mods(E, RED_OP, EV, TYPE, ORD));
    // ptxas 11.8 puts compare and swap in consecutive registers, 12.9 and 13.5 do not; nvdisasm takes no RZ for the first.
    t.add(op(M::ATOMG_CAS, "ATOMG", 0x3a9, L::global_atomic, sm_75)
              .slots(Pd, Ra, at, cc.as(Style::not_rz), cs)
              .mods(E, CAS_ONLY, EV, m(K::AtomType, 73, 2, t_cas_pair), ORD));
    t.add(op(M::ATOM_CAS, "ATOM", 0x38b, L::global_atomic, sm_75).slots(Pd, Ra, at, cc, cs).mods(E, CAS, EV, CT, ORD));
  }
  {
    const auto TYPE = m(K::AtomType, 73, 4, t_atom_float), OP = m(K::AtomOp, 88, 2, t_float_op);
    const Slot Ra = Rd.with(Span_::vector), da = B.with(Span_::vector);
    t.add(op(M::ATOMG_FLOAT, "ATOMG", 0x9a3, L::global_atomic, sm_90)
              .fix(70, 1, 1)
              .fix(91, 1, 1)
              .slots(Pd, Ra, memory(40, 24, 64, 71), da)
              .mods(E, OP, EV, TYPE, ORDER));
    t.add(op(M::ATOM_FLOAT, "ATOM", 0x9a2, L::global_atomic, sm_90)
              .fix(70, 1, 1)
              .fix(91, 1, 1)
              .slots(Pd, Ra, memory(40, 24, 64, 71), da)
              .mods(E, OP, EV, TYPE, ORDER));
    t.add(op(M::RED_FLOAT, "REDG", 0x9a6, L::global_store, sm_90)
              .fix(90, 2, 3)
              .slots(memory(40, 24, 64, 71), da)
              .mods(E, m(K::AtomOp, 88, 2, t_float_op), EV, TYPE, ORDER));
  }
  // Shared and local
  const auto SCALE = m(K::AddressScale, 78, 2, t_silent);
  t.add(op(M::LDS, "LDS", 0x984, L::shared_load, after_75).slots(Rs, memory(40, 24)).mods(SIZE, SCALE));
  t.add(
      op(M::LDS, "LDS", 0x984, L::shared_load, after_75).fix(91, 1, 1).slots(Rs, memory(40, 24, 32)).mods(SIZE, SCALE));
  const auto U = m(K::UniformAddress, 76, 1, t_uniform_address, 1);
  t.add(op(M::LDS, "LDS", 0x984, L::shared_load, sm_75).slots(Rs, memory(40, 24)).mods(U, SIZE, SCALE));
  t.add(
      op(M::LDS, "LDS", 0x984, L::shared_load, sm_75).fix(91, 1, 1).slots(Rs, memory(40, 24, 32)).mods(U, SIZE, SCALE));
  t.add(op(M::STS, "STS", 0x388, L::shared_store).slots(memory(40, 24), data).mods(SIZE, SCALE));
  t.add(op(M::STS, "STS", 0x988, L::shared_store).fix(91, 1, 1).slots(memory(40, 24, 64), data).mods(SIZE, SCALE));
  // Matrices of 8 x 8 halves; the rows' addresses are lanes'.
  const auto MATRICES = m(K::Matrices, 72, 2, t_matrices), TRANSPOSED = m(K::Transposed, 78, 1, t_transposed);
  const Slot Rm = Rd.with(Span_::matrices), dm = B.with(Span_::matrices);
  t.add(op(M::LDSM, "LDSM.16", 0x83b, L::shared_load).slots(Rm, memory(40, 24)).mods(TRANSPOSED, MATRICES));
  t.add(op(M::LDSM, "LDSM.16", 0x83b, L::shared_load)
            .fix(91, 1, 1)
            .slots(Rm, memory(40, 24, 32))
            .mods(TRANSPOSED, MATRICES));
  t.add(op(M::STSM, "STSM.16", 0x844, L::shared_store, sm_90).slots(memory(40, 24), dm).mods(TRANSPOSED, MATRICES));
  t.add(op(M::LDL, "LDL", 0x983, L::local_load).slots(Rs, memory(40, 24)).mods(EV, SIZE));
  t.add(op(M::LDL, "LDL", 0x983, L::local_load).fix(91, 1, 1).slots(Rs, memory(40, 24, 32)).mods(EV, SIZE));
  t.add(op(M::STL, "STL", 0x387, L::local_store).slots(memory(40, 24), data).mods(EV, SIZE));
  const auto STYPE = m(K::AtomType, 73, 2, t_atoms_type);
  const Slot Rt = Rd.with(Span_::atom), dt = B.with(Span_::atom);
  for (bool turing : {false, true}) {
    const Builder atoms = op(M::ATOMS, "ATOMS", 0x38c, L::shared_atomic, turing ? sm_75 : after_75);
    t.add((turing ? atoms.fix(64, 8, 255) : atoms)
              .slots(Rt, memory(40, 24), dt)
              .mods(m(K::AtomOp, 87, 4, t_atom_op), STYPE, SCALE));
  }
  t.add(op(M::ATOMS, "ATOMS", 0x98c, L::shared_atomic)
            .fix(91, 1, 1)
            .slots(Rt, memory(40, 24, 64), dt)
            .mods(m(K::AtomOp, 87, 4, t_atom_op), STYPE, SCALE));
  t.add(op(M::ATOMS_CAS, "ATOMS", 0x38d, L::shared_atomic)
            .slots(Rt, memory(40, 24), dt, C.with(Span_::atom))
            .mods(m(K::CasMode, 87, 2, t_cas_mode), m(K::AtomType, 73, 2, t_cas_type), SCALE));
  for (bool sm90 : {false, true})
    t.add(op(M::ATOMS_POPC, "ATOMS.POPC.INC.32", 0xf8c, L::shared_atomic, sm90 ? sm_90 : before_90)
              .fix(87, 4, sm90 ? 11 : 10)
              .fix(91, 1, 1)
              .slots(Rd, memory(40, 24, 64))
              .mods(SCALE));
  // Constants
  const auto SIZE64 = m(K::Size, 73, 3, t_size64, 4);
  t.add(op(M::LDC, "LDC", 0xb82, L::constant_load)
            .slots(Rs, make_slot(constant_indexed, 24, R))
            .mods(SIZE64, m(K::IndexMode, 78, 2, t_index_mode)));
  t.add(op(M::ULDC, "ULDC", 0xab9, L::uniform_move)
            .guard_uniform()
            .slots(URd.with(Span_::size), make_slot(constant_bytes, 38, R))
            .mods(SIZE64));
  t.add(op(M::ULDC, "ULDC", 0xabb, L::uniform_move)
            .guard_uniform()
            .fix(91, 1, 1)
            .slots(URd.with(Span_::size), make_slot(constant_uniform, 38, R))
            .mods(SIZE64));
  // Asynchronous copies, fences, caches
  {
    Slot shared = memory(44, 20);
    shared.lo = 16;
    Slot global = memory(32, 12, 64, 76);
    t.add(op(M::LDGSTS, "LDGSTS.E", 0xfae, L::async_copy, after_75)
              .fix(70, 1, 1)
              .fix(91, 1, 1)
              .slots(shared, global.with(Span_::two), Px)
              .mods(m(K::Bypass, 81, 1, t_bypass, 1), EV, m(K::Prefetch, 71, 2, t_prefetch),
                    m(K::Size, 73, 3, t_size_async, 4), m(K::ZFill, 82, 1, t_zfill)));
  }
  t.add(op(M::LDGDEPBAR, "LDGDEPBAR", 0x9af, L::async_copy, after_75));
  t.add(op(M::DEPBAR, "DEPBAR", 0x91a, L::wait)
            .slots(make_slot(scoreboard, 44, R), imm(38, 6), imm(32, 6).when(Show::optional).def(0))
            .mods(m(K::LessEqual, 47, 1, t_le, 1)));
  t.add(op(M::MEMBAR, "MEMBAR", 0x992, L::fence).mods(m(K::Fence, 79, 2, t_fence), m(K::Scope, 76, 3, t_scope)));
  t.add(op(M::ERRBAR, "ERRBAR", 0x9ab, L::fence));
  t.add(op(M::CGAERRBAR, "CGAERRBAR", 0x5ab, L::fence, sm_90));
  t.add(op(M::ACQBULK, "ACQBULK", 0x82e, L::fence, sm_90));
  t.add(op(M::PREEXIT, "PREEXIT", 0x82d, L::fence, sm_90));
  t.add(op(M::CCTL, "CCTL", 0x98f, L::fence)
            .slots(memory(32, 32).when(Show::optional))
            .mods(E, m(K::CacheOp, 87, 4, t_cctl)));
  for (const bool sm90 : {false, true})
    t.add(op(M::QSPC, "QSPC", 0x3aa, L::space_query, sm90 ? sm_90 : before_90)
              .slots(Pd, Rd, memory(40, 24))
              .mods(E, m(K::AddressSpace, 73, 2, sm90 ? t_space_90 : t_space)));
  t.add(op(M::QSPC, "QSPC", 0x9aa, L::space_query, before_90)
            .fix(90, 2, 3)
            .slots(Pd, Rd, memory(40, 24, 32))
            .mods(E, m(K::AddressSpace, 73, 2, t_space)));
  t.add(op(M::QSPC, "QSPC", 0x9aa, L::space_query, sm_90)
            .fix(91, 1, 1)
            .slots(Pd, Rd, memory(40, 24, 32).as(Style::base_32))
            .mods(E, m(K::AddressSpace, 73, 2, t_space_90)));
}

template <size_t N>
constexpr void warp_and_control_rows(Table<N>& t) {
  // SHFL: lane and mask each a register or an immediate
  for (unsigned form : {0u, 1u, 2u, 3u}) {
    bool lane_imm = form & 2, mask_imm = form & 1;
    Builder b = op(M::SHFL, "SHFL", lane_imm ? (mask_imm ? 0xf89 : 0x989) : (mask_imm ? 0x589 : 0x389), L::shuffle)
                    .slots(Pd, Rd, A);
    t.add(b.slots(lane_imm ? imm(53, 5) : B, mask_imm ? imm(40, 13) : C).mods(m(K::ShuffleMode, 58, 2, t_shuffle)));
  }
  t.add(op(M::VOTE, "VOTE", 0x806, L::vote).slots(Rd.opt(RZ), Pd, Ps).mods(m(K::VoteMode, 72, 2, t_vote)));
  t.add(op(M::VOTEU, "VOTEU", 0x886, L::uniform_move)
            .slots(URd.opt(URZ), upred_out(81), Ps)
            .mods(m(K::VoteMode, 72, 2, t_vote)));
  t.add(op(M::MATCH, "MATCH", 0x3a1, L::shuffle)
            .slots(Pu, Rd, A.with(Span_::wide))
            .mods(m(K::MatchMode, 79, 1, t_match), m(K::Wide, 73, 1, t_u64)));
  t.add(op(M::REDUX, "REDUX", 0x3c4, L::to_uniform, after_75)
            .slots(URd, A)
            .mods(m(K::ReduceOp, 78, 3, t_reduce), m(K::Signed, 73, 1, t_signed_only)));
  // BAR
  const auto BM = m(K::BarMode, 77, 3, t_bar), BR = m(K::BarReduction, 74, 2, t_silent),
             BD = m(K::Deferred, 80, 1, t_defer);
  const Slot bar_p = pred(87, 90).when(Show::with_bar_red).def(0);
  t.add(op(M::BAR, "BAR", 0xb1d, L::barrier)
            .slots(imm(54, 4), imm(42, 12).when(Show::optional).def(0), bar_p)
            .mods(BM, BR, BD));
  t.add(op(M::BAR, "BAR", 0x91d, L::barrier).slots(imm(54, 4), B, bar_p).mods(BM, BR, BD));
  t.add(op(M::BAR, "BAR", 0x51d, L::barrier).slots(B, imm(42, 12).when(Show::optional).def(0), bar_p).mods(BM, BR, BD));
  t.add(op(M::BAR, "BAR", 0x31d, L::barrier).slots(B, same_register, bar_p).mods(BM, BR, BD));

  // Control
  const auto CTL = [](M mn, const char* name, unsigned opcode, L l, uint32_t on = volta) {
    return op(mn, name, opcode, l, on);
  };
  const Slot bn = make_slot(barrier, 16, R), bd = make_slot(barrier, 16, W);
  for (bool sm90 : {false, true}) {
    uint32_t on = sm90 ? sm_90 : before_90;
    const Slot target = make_slot(sm90 ? label_split : label, 34, R);
    const auto UNI = m(K::BranchUniform, 32, 1, t_branch_uniform), STK = m(K::BranchStack, 85, 2, t_branch_stack);
    t.add(CTL(M::BRA, "BRA", 0x947, L::branch, on).slots(Px, target).mods(STK, UNI));
    t.add(CTL(M::BRA_DIV, "BRA.DIV", 0x947, L::branch, on & ~sm_75)
              .fix(32, 2, 2)
              .fix(87, 3, 7)
              .fix(91, 1, 1)
              .slots(UA.inv(30), target));
    t.add(CTL(M::BRA_CONV, "BRA.CONV", 0x947, L::branch, on & ~sm_75)
              .fix(32, 2, 3)
              .fix(87, 3, 7)
              .fix(91, 1, 1)
              .slots(UA.inv(30), target));
    t.add(CTL(M::BRX, "BRX", 0x949, L::branch, on).fix(87, 3, 7).slots(A.with(Span_::two), target.as(Style::relative)));
    t.add(CTL(M::BRXU, "BRXU", 0x958, L::branch, on)
              .fix(87, 3, 7)
              .fix(91, 1, 1)
              .slots(UA.with(Span_::two), target.as(Style::relative)));
    t.add(CTL(M::CALL_REL, "CALL.REL", 0x944, L::branch, on).slots(Px, target).mods(m(K::NoInc, 86, 1, t_noinc, 1)));
    t.add(CTL(M::CALL_REL_R, "CALL.REL", 0x344, L::branch, on)
              .slots(Px, A.with(Span_::two), target)
              .mods(m(K::NoInc, 86, 1, t_noinc, 1)));
    t.add(CTL(M::RET_REL, "RET.REL", 0x950, L::branch, on)
              .slots(Px, A.with(Span_::two), target)
              .mods(m(K::NoInc, 86, 1, t_nodec, 1)));
  }
  t.add(CTL(M::RET_ABS, "RET.ABS", 0x950, L::branch)
            .fix(85, 1, 1)
            .slots(Px, A.with(Span_::two), imm(34, 0))
            .mods(m(K::NoInc, 86, 1, t_nodec, 1)));
  for (bool together : {false, true})  // sm_75: of all lanes that have not left
    t.add(CTL(together ? M::BRA_CONV : M::BRA_DIV, together ? "BRA.CONV" : "BRA.DIV", 0x947, L::branch, sm_75)
              .fix(32, 2, together ? 3 : 2)
              .fix(87, 3, 7)
              .slots(make_slot(label, 34, R)));
  t.add(CTL(M::BMOV, "BMOV.32.CLEAR", 0x355, L::convergence)
            .fix(84, 1, 1)
            .slots(Rd, make_slot(barrier, 24, Access::read_write)));
  t.add(CTL(M::BMOV, "BMOV.32", 0x356, L::convergence).slots(make_slot(barrier, 24, W), B));
  t.add(CTL(M::CALL_ABS, "CALL.ABS", 0x943, L::branch).slots(Px, I32).mods(m(K::NoInc, 86, 1, t_noinc, 1)));
  t.add(CTL(M::CALL_ABS_R, "CALL.ABS", 0x343, L::branch)
            .slots(Px, A.with(Span_::two))
            .mods(m(K::NoInc, 86, 1, t_noinc, 1)));
  t.add(CTL(M::EXIT, "EXIT", 0x94d, L::branch).slots(Px).mods(m(K::ExitMode, 84, 2, t_exit)));
  t.add(CTL(M::BSSY, "BSSY", 0x945, L::convergence).slots(Px, bd, make_slot(label_short, 34, R)));
  t.add(CTL(M::BSYNC, "BSYNC", 0x941, L::branch).slots(Px, bn));
  t.add(CTL(M::BREAK, "BREAK", 0x942, L::convergence).slots(Px, bn.rw(Access::read_write)));
  t.add(CTL(M::WARPSYNC, "WARPSYNC", 0x948, L::convergence, before_90).slots(Px, I32));
  for (const uint32_t on : {sm_75, ampere})
    t.add(CTL(M::WARPSYNC, "WARPSYNC", 0x348, L::convergence, on)
              .slots(Px, B)
              .mods(m(K::Exclusive, 86, 1, on == sm_75 ? t_clear : t_exclusive)));
  t.add(CTL(M::WARPSYNC_ALL, "WARPSYNC.ALL", 0x948, L::convergence, sm_90).slots(Px));
  t.add(CTL(M::WARPSYNC, "WARPSYNC", 0x348, L::convergence, sm_90)
            .slots(Px, A)
            .mods(m(K::Exclusive, 85, 1, t_exclusive)));
  t.add(CTL(M::WARPSYNC_COLLECTIVE, "WARPSYNC.COLLECTIVE", 0x348, L::convergence, sm_90)
            .fix(86, 1, 1)
            .slots(Px, A, make_slot(label_split, 34, R)));
  t.add(CTL(M::WARPSYNC_COLLECTIVE_ALL, "WARPSYNC.COLLECTIVE.ALL", 0x948, L::convergence, sm_90)
            .fix(86, 1, 1)
            .slots(Px, make_slot(label_split, 34, R)));
  t.add(CTL(M::ENDCOLLECTIVE, "ENDCOLLECTIVE", 0x91b, L::convergence, sm_90).slots(Px));
  t.add(CTL(M::YIELD, "YIELD", 0x946, L::convergence).slots(Px));
  t.add(CTL(M::KILL, "KILL", 0x95b, L::branch).slots(Px).from(Provenance::inferred));
  t.add(CTL(M::NOP, "NOP", 0x918, L::nop));
  t.add(CTL(M::BPT, "BPT", 0x95c, L::nop)
            .slots(imm(34, 4).when(Show::optional).def(0))
            .mods(m(K::TrapMode, 84, 3, t_trap, 3)));
  t.add(CTL(M::PMTRIG, "PMTRIG", 0x801, L::nop).fix(87, 3, 7).slots(imm(32, 16)));
  const auto SLEEP = m(K::SleepMode, 85, 2, t_sleep);
  t.add(CTL(M::NANOSLEEP, "NANOSLEEP", 0x95d, L::nop).slots(Px, I32).mods(SLEEP));
  t.add(CTL(M::NANOSLEEP, "NANOSLEEP", 0x35d, L::nop).slots(Px, B).mods(SLEEP));
}

template <size_t N>
constexpr void uniform_rows(Table<N>& t) {
  const auto X = m(K::X, 74, 1, t_x);
  const auto U32 = m(K::Signed, 73, 1, t_unsigned, 1);
  const Slot UPu = upred_out(81).opt(PT), UPv = upred_out(84).opt(PT), UPd = upred_out(81), UPq = upred_out(84),
             UPs = upred(87, 90);
  const Slot ucarry1 = upred(87, 90).def(PT, true).when(Show::with_x),
             ucarry2 = upred(77, 80).def(PT, true).when(Show::with_x);
  auto base = [](M mn, const char* name, unsigned opcode) {
    return op(mn, name, opcode, L::uniform).guard_uniform().fix(91, 1, 1);
  };
  t.add(op(M::UMOV, "UMOV", 0x882, L::uniform_move).guard_uniform().slots(URd, I32));
  t.add(op(M::UMOV, "UMOV", 0xc82, L::uniform_move).guard_uniform().fix(91, 1, 1).slots(URd, UB));
  for (bool i : {false, true}) {
    unsigned f = i ? 0x800 : 0x200;
    const Slot b_signed = i ? S32 : UB, b_plain = i ? I32 : UB;
    const Slot b_neg = i ? S32 : UB.nx(63), b_neg_plain = i ? I32 : UB.nx(63);
    t.add(base(M::UIADD3, "UIADD3", f | 0x90)
              .slots(URd, UPu, UPv, UA.nx(72), b_neg, UC.nx(75), ucarry1, ucarry2)
              .mods(X));
    t.add(base(M::UIMAD, "UIMAD", f | 0xa4).fix(81, 3, 7).slots(URd, UA, b_signed, UC.nx(75), ucarry1).mods(U32, X));
    t.add(base(M::UIMAD_WIDE, "UIMAD.WIDE", f | 0xa5)
              .slots(URd.with(Span_::two), UPu, UA, b_signed, UC.nx(75).with(Span_::two), ucarry1)
              .mods(U32, X));
    t.add(base(M::ULEA, "ULEA", f | 0x91)
              .fix(64, 8, 63)
              .slots(URd, UPu, UA.nx(72), b_neg_plain, imm(75, 5), ucarry1)
              .mods(X));
    t.add(base(M::ULEA_HI, "ULEA.HI", f | 0x91)
              .fix(80, 1, 1)
              .slots(URd, UPu, UA.nx(72), b_neg_plain, UC.when(Show::unless_sx32).def(URZ), imm(75, 5), ucarry1)
              .mods(X, m(K::SX32, 73, 1, t_sx32)));
    t.add(base(M::ULOP3, "ULOP3.LUT", f | 0x92)
              .slots(UPu, URd, UA, b_plain, UC, imm(72, 8), upred(87, 90).def(PT, true))
              .mods(m(K::PAnd, 80, 1, t_pand)));
    t.add(base(M::USHF, "USHF", f | 0x99)
              .slots(URd, UA, b_plain, UC)
              .mods(m(K::Right, 76, 1, t_right), m(K::Wrap, 75, 1, t_wrap), m(K::ShiftType, 73, 2, t_shift_type, 3),
                    m(K::High, 80, 1, t_high)));
    t.add(base(M::UISETP, "UISETP", f | 0x8c)
              .slots(UPd, UPq, UA, b_signed, UPs, upred(68, 71).when(Show::with_ex).def(PT))
              .mods(m(K::Compare, 76, 3, t_compare), U32, m(K::Bool, 74, 2, t_bool), m(K::EX, 72, 1, t_ex)));
    t.add(base(M::USEL, "USEL", f | 0x87).slots(URd, UA, b_plain, UPs));
    t.add(base(M::UPRMT, "UPRMT", f | 0x96).slots(URd, UA, b_plain, UC));
    t.add(base(M::USGXT, "USGXT", f | 0x9a).slots(URd, UA, b_plain).mods(m(K::Wrap, 75, 1, t_wrap), U32));
    t.add(base(M::UBMSK, "UBMSK", f | 0x9b).slots(URd, UA, b_plain).mods(m(K::Wrap, 75, 1, t_wrap)));
  }
  t.add(base(M::UFLO, "UFLO", 0x2bd).slots(URd, UPu, UB.inv(63)).mods(U32, m(K::ShiftAmount, 74, 1, t_sh)));
  t.add(base(M::UPOPC, "UPOPC", 0x2bf).slots(URd, UB.inv(63)));
  t.add(base(M::UBREV, "UBREV", 0x2be).slots(URd, UB).from(Provenance::inferred));
  Slot lut = imm(64, 3, immediate_split);
  lut.second = 72;
  t.add(op(M::UPLOP3, "UPLOP3.LUT", 0x89c, L::uniform)
            .guard_uniform()
            .slots(UPd, UPq, UPs, upred(77, 80), upred(68, 71), lut, imm(16, 8)));
  t.add(base(M::UPLOP3, "UPLOP3.LUT", 0x29f)
            .slots(UPd, UPq, UA.as(Style::sign), UB.as(Style::sign), UC.as(Style::sign), imm(72, 8), imm(16, 8)));
  t.add(base(M::UP2UR, "UP2UR", 0x883).slots(URd, UA.as(Style::p_mask), I32).mods(m(K::Byte, 76, 2, t_byte)));
  t.add(base(M::UR2UP, "UR2UP", 0x884).slots(UA.as(Style::pr_before), I32).mods(m(K::Byte, 76, 2, t_silent)));
  // An immediate for C, B in C's place
  t.add(base(M::UIMAD, "UIMAD", 0x4a4).fix(81, 3, 7).slots(URd, UA, UC, S32, ucarry1).mods(U32, X));
  t.add(base(M::USHF, "USHF", 0x499)
            .slots(URd, UA, UC, I32)
            .mods(m(K::Right, 76, 1, t_right), m(K::Wrap, 75, 1, t_wrap), m(K::ShiftType, 73, 2, t_shift_type, 3),
                  m(K::High, 80, 1, t_high)));
}

constexpr auto make_table() {
  Table<640> t;
  integer_rows(t);
  float_rows(t);
  memory_rows(t);
  warp_and_control_rows(t);
  uniform_rows(t);
  matrix_rows(t);
  tile_rows(t);
  warp_group_rows(t);
  return t;
}
constexpr auto table = make_table();
static_assert(rows_are_sound(table), "two fields of a row overlap, or a row has too many");
static_assert(ambiguous_rows(table)[0] == table.count, "a word matches two rows");

}  // namespace

std::span<const Form> volta_forms() { return {table.rows.data(), table.count}; }

}  // namespace rndn::isa
