// Instruction forms of the 64-bit family, Maxwell and Pascal (sm_60, sm_61). Facts: the encodings that ptxas 11.8 writes, and the texts that
// nvdisasm 11.8 gives for edited words. Operand order: mnemonics.def. The destination is in bits 0..7, A in 8..15, the guard in 16..19, B (a register,
// a constant or an immediate of 20 bits) in 20..38 and 56, C in 39..46; bit 47 writes the condition code.
//
// Left out: textures and surfaces, half-precision pairs, video instructions but VABSDIFF, JMP through constants, LDG and ATOM with a predicate result.
#include "assembler/isa/form.h"

namespace rndn::isa {
namespace {

using enum SlotKind;
using K = ModifierKind;
using M = Mnemonic;
using L = LatencyClass;

constexpr const char* t_silent[] = {"", "", "", "", "", "", "", "", "", "", "", "", "", "", "", ""};
constexpr const char* t_x[] = {"", ".X"};
constexpr const char* t_unsigned[] = {".U32", ""};
constexpr const char* t_bool[] = {".AND", ".OR", ".XOR", nullptr};
constexpr const char* t_compare[] = {".F", ".LT", ".EQ", ".LE", ".GT", ".NE", ".GE", ".T"};
constexpr const char* t_fcompare[] = {".F",   ".LT",  ".EQ",  ".LE",  ".GT",  ".NE",  ".GE",  ".NUM",
                                      ".NAN", ".LTU", ".EQU", ".LEU", ".GTU", ".NEU", ".GEU", ".T"};
// FCMP prints no GT.
constexpr const char* t_fcmp[] = {".F",   ".LT",  ".EQ",  ".LE",  "",     ".NE",  ".GE",  ".NUM",
                                  ".NAN", ".LTU", ".EQU", ".LEU", ".GTU", ".NEU", ".GEU", ".T"};
constexpr const char* t_bf[] = {"", ".BF"};
constexpr const char* t_logic[] = {".AND", ".OR", ".XOR", ".PASS_B"};
constexpr const char* t_predicate_mode[] = {"", ".T", ".Z", ".NZ"};
constexpr const char* t_wrap[] = {"", ".W"};
constexpr const char* t_brev[] = {"", ".BREV"};
constexpr const char* t_shr_x[] = {"", nullptr, ".X", ".XHI"};
constexpr const char* t_shf_x[] = {"", ".HI", ".X", ".XHI"};
constexpr const char* t_minmax_x[] = {"", ".XLO", ".XMED", ".XHI"};
constexpr const char* t_shift_type[] = {"", nullptr, ".U64", ".S64"};
constexpr const char* t_sh[] = {"", ".SH"};
constexpr const char* t_permute[] = {"",      ".F4E",  ".B4E",  ".RC8",  ".ECL",  ".ECR",  ".RC16", nullptr,
                                     nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr};
constexpr const char* t_byte[] = {"", ".B1", ".B2", ".B3"};
constexpr const char* t_rounding[] = {"", ".RM", ".RP", ".RZ"};
constexpr const char* t_ftz[] = {"", ".FTZ"};
constexpr const char* t_ftz_fmz[] = {"", ".FTZ", ".FMZ", nullptr};
constexpr const char* t_sat[] = {"", ".SAT"};
constexpr const char* t_acc[] = {"", ".ACC"};
constexpr const char* t_scale[] = {"", ".D2", ".D4", ".D8", ".M8", ".M4", ".M2", nullptr};
constexpr const char* t_function[] = {".COS",  ".SIN",  ".EX2",  ".LG2",  ".RCP",  ".RSQ",  ".RCP64H", ".RSQ64H",
                                      ".SQRT", nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,   nullptr};
constexpr const char* t_rro[] = {".SINCOS", ".EX2"};
constexpr const char* t_add3[] = {"", ".RS", ".LS", nullptr};
constexpr const char* t_dot[] = {".4A", ".2A"};
constexpr const char* t_xmad_c[] = {"", "", "", "", "", nullptr, nullptr, nullptr};
constexpr const char* t_size[] = {".U8", ".S8", ".U16", ".S16", "", ".64", ".128", nullptr};
constexpr const char* t_size_u[] = {".U8", ".S8", ".U16", ".S16", "", ".64", ".128", ".U.128"};
constexpr const char* t_size_64[] = {".U8", ".S8", ".U16", ".S16", "", ".64", nullptr, nullptr};
constexpr const char* t_e[] = {"", ".E"};
constexpr const char* t_u[] = {"", ".U"};
constexpr const char* t_cache_load[] = {"", ".CG", ".CI", ".CV"};
constexpr const char* t_cache_store[] = {"", ".CG", ".CS", ".WT"};
constexpr const char* t_cache_local[] = {"", ".LU", ".CI", ".CV"};
constexpr const char* t_index_mode[] = {"", ".IL", ".IS", ".ISL"};
constexpr const char* t_atom_op[] = {".ADD",  ".MIN",  ".MAX",  ".INC",  ".DEC",  ".AND",  ".OR",   ".XOR",
                                     ".EXCH", nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr};
constexpr const char* t_red_op[] = {".ADD", ".MIN", ".MAX", ".INC", ".DEC", ".AND", ".OR", ".XOR"};
constexpr const char* t_atom_type[] = {"", ".S32", ".U64", ".F32.FTZ.RN", ".F16x2.RN", ".S64", ".F64.RN", nullptr};
constexpr const char* t_atoms_type[] = {"", ".S32", ".U64", ".S64"};
constexpr const char* t_64[] = {"", ".64"};
constexpr const char* t_cas_mode[] = {".CAST", ".CAST.64", ".CAST.SPIN", ".CAST.SPIN.64",
                                      ".CAS",  ".CAS.64",  nullptr,      nullptr};
constexpr const char* t_cctl[] = {".QRY1", ".PF1",  ".PF1.5", ".PF2",  ".WB",   ".IV",   ".IVALL", ".RS",
                                  ".RSLB", nullptr, nullptr,  nullptr, nullptr, nullptr, nullptr,  nullptr};
constexpr const char* t_scope[] = {".CTA", ".GL", ".SYS", ".VC"};
constexpr const char* t_fence[] = {"", ".IVALLD", ".IVALLT", ".IVALLTD"};
constexpr const char* t_shuffle[] = {".IDX", ".UP", ".DOWN", ".BFLY"};
constexpr const char* t_vote[] = {".ALL", ".ANY", ".EQ", nullptr};
constexpr const char* t_bar[] = {".SYNC", ".ARV", ".RED", nullptr, nullptr, nullptr, nullptr, nullptr};
constexpr const char* t_bar_reduction[] = {"", "", "", nullptr};
constexpr const char* t_result[] = {nullptr, ".RESULT", nullptr, nullptr};
constexpr const char* t_le[] = {"", ".LE"};
constexpr const char* t_limit[] = {"", ".LMT"};
constexpr const char* t_call[] = {".NOINC", ""};
constexpr const char* t_exit[] = {"", ".KEEPREFCOUNT"};
constexpr const char* t_trap[] = {".DRAIN_ILLEGAL", ".CAL",   ".PAUSE",       ".TRAP",
                                  ".INT",           ".DRAIN", ".PAUSE_QUIET", nullptr};
constexpr const char* t_signed_only[] = {nullptr, ""};
constexpr const char* t_h_and[] = {"", ".H_AND"};
constexpr const char* t_half[] = {"", ".F32", ".MRG_H0", ".MRG_H1"};
constexpr const char* t_trigger[] = {"", ".TRIG"};
// Tests of the condition code; printed as an operand (CC.LT) where they are not the name's own.
constexpr const char* t_condition[] = {"", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "",
                                       "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", nullptr};
constexpr const char* t_condition_name[] = {
    ".F",   ".LT",  ".EQ",     ".LE",     ".GT",     ".NE",      ".GE",      ".NUM",     ".NAN", ".LTU", ".EQU",
    ".LEU", ".GTU", ".NEU",    ".GEU",    ".T",      ".OFF",     ".LO",      ".SFF",     ".LS",  ".HI",  ".SFT",
    ".HS",  ".OFT", ".CSM_TA", ".CSM_TR", ".CSM_MX", ".FCSM_TA", ".FCSM_TR", ".FCSM_MX", ".RLE", ".RGT"};

constexpr Mod m(K kind, uint8_t lo, uint8_t width, const char* const* texts, uint8_t initial = 0) {
  return {kind, lo, width, initial, texts};
}

constexpr Access W = Access::write, R = Access::read;
constexpr Slot Rd = make_slot(gpr, 0, W), A = make_slot(gpr, 8, R), B = make_slot(gpr, 20, R),
               C = make_slot(gpr, 39, R);
constexpr Slot Cb = make_slot(constant_20, 20, R), Ib = make_slot(immediate_20, 20, R);
constexpr Slot Fb = make_slot(float_20, 20, R).as(Style::f32), Db = make_slot(float_20, 20, R).as(Style::f64);
constexpr Slot imm(uint8_t lo, uint8_t width, SlotKind kind = immediate) {
  Slot s = make_slot(kind, lo, R);
  s.width = width;
  return s;
}
constexpr Slot S32 = imm(20, 32, immediate_signed), I32 = imm(20, 32), F32 = imm(20, 32).as(Style::f32);
constexpr Slot pred(uint8_t lo, uint8_t neg) { return make_slot(predicate, lo, R).n(neg).def(PT); }
constexpr Slot pred_out(uint8_t lo) { return make_slot(predicate, lo, W).def(PT); }
constexpr Slot Ps = pred(39, 42), Pd = pred_out(3), Pq = pred_out(0);
constexpr Slot P48 = pred_out(48).opt(PT);
constexpr Slot special_register = make_slot(special, 20, R);
constexpr Slot memory(uint8_t offset, uint8_t width, uint8_t scale = 0) {
  Slot s = make_slot(address, 8, R);
  s.second = offset;
  s.width = width;
  s.scale = scale;
  return s;
}
constexpr auto CC = m(K::CC, 47, 1, t_silent);

constexpr Builder op(M mnemonic, const char* name, unsigned top, L latency) {
  Builder b;
  b.f.pascal = true;
  b.f.mnemonic = mnemonic;
  b.f.name = name;
  b.f.latency = latency;
  b.f.targets = pascal;
  return b.fix(48, 16, top);
}

// The forms of an operation: B register, constant, immediate; and, with three sources, B in C's place with C constant. Tops 0: no such form.
struct Tops {
  unsigned reg, constant = 0, immediate = 0, third = 0;
};
// Flags of A, B and C; `b` lists what B's field can be; flags apply to registers and constants.
struct Sources {
  Slot a = A;
  uint8_t neg_b = no_bit, abs_b = no_bit;
  Style neg_style = Style::plain;
  Slot immediate = Ib;
  Span_ span = Span_::one;
  bool c = false;
  uint8_t neg_c = no_bit;
};

template <size_t N, class Post>
constexpr void forms(Table<N>& t, M mnemonic, const char* name, const Tops& tops, L latency, const Sources& d,
                     const Slot* first, size_t n_first, Post&& post) {
  auto flags = [&](Slot s) {
    if (d.neg_b != no_bit) s = s.n(d.neg_b).as(d.neg_style);
    if (d.abs_b != no_bit) s = s.a(d.abs_b);
    return s.with(d.span);
  };
  const Slot c = (d.neg_c == no_bit ? C : C.n(d.neg_c)).with(d.span);
  const Slot c_constant = (d.neg_c == no_bit ? Cb : Cb.n(d.neg_c)).with(d.span);
  for (unsigned which = 0; which < 4; ++which) {
    unsigned top = which == 0 ? tops.reg : which == 1 ? tops.constant : which == 2 ? tops.immediate : tops.third;
    if (!top) continue;
    Builder b = op(mnemonic, name, top, latency);
    for (size_t i = 0; i < n_first; ++i) b = b.slot(first[i]);
    if (d.a.kind != none) b = b.slot(d.a);
    if (which == 3) {
      b = b.slots(flags(C), c_constant);
    } else {
      b = b.slot(which == 0 ? flags(B) : which == 1 ? flags(Cb) : d.immediate);
      if (d.c) b = b.slot(c);
    }
    t.add(post(b, which));
  }
}
template <size_t N, class Post>
constexpr void alu(Table<N>& t, M mnemonic, const char* name, const Tops& tops, const Sources& d, Post&& post,
                   L latency = L::alu) {
  const Slot first[] = {Rd.with(d.span)};
  forms(t, mnemonic, name, tops, latency, d, first, 1, [&](const Builder& b, unsigned) { return post(b); });
}

template <size_t N>
constexpr void integer_rows(Table<N>& t) {
  const auto U32 = m(K::Signed, 48, 1, t_unsigned, 1);
  const auto X43 = m(K::X, 43, 1, t_x);
  Sources two, three, unary;
  three.c = true;
  unary.a = Slot{};

  alu(t, M::MOV, "MOV", {0x5c98, 0x4c98, 0x3898}, unary,
      [](const Builder& b) { return b.mods(m(K::LaneMask, 39, 4, t_silent, 15)); });
  t.add(op(M::MOV32I, "MOV32I", 0x0100, L::alu).slots(Rd, I32).mods(m(K::LaneMask, 12, 4, t_silent, 15)));
  {
    Sources d = two;
    d.a = A.n(49);
    d.neg_b = 48;
    alu(t, M::IADD, "IADD", {0x5c10, 0x4c10, 0x3810}, d,
        [&](const Builder& b) { return b.mods(m(K::SAT, 50, 1, t_sat), X43, CC); });
    t.add(op(M::IADD32I, "IADD32I", 0x1c00, L::alu)
              .slots(Rd, A.n(56), S32)
              .mods(m(K::SAT, 54, 1, t_sat), m(K::X, 53, 1, t_x), m(K::CC, 52, 1, t_silent)));
    alu(t, M::ISCADD, "ISCADD", {0x5c18, 0x4c18, 0x3818}, d,
        [&](const Builder& b) { return b.slot(imm(39, 5)).mods(CC); });
    t.add(op(M::ISCADD32I, "ISCADD32I", 0x1400, L::alu).slots(Rd, A, S32, imm(53, 5)).mods(m(K::CC, 52, 1, t_silent)));
  }
  {  // IADD3: halves in the register form
    const auto X = m(K::X, 48, 1, t_x);
    t.add(op(M::IADD3, "IADD3", 0x5cc0, L::alu)
              .slots(Rd, A.n(51).half(35, 2, 1), B.n(50).half(33, 2, 1), C.n(49).half(31, 2, 1))
              .mods(m(K::Add3Shift, 37, 2, t_add3), X, CC));
    t.add(op(M::IADD3, "IADD3", 0x4cc0, L::alu).slots(Rd, A.n(51), Cb.n(50), C.n(49)).mods(X, CC));
    t.add(op(M::IADD3, "IADD3", 0x38c0, L::alu).slots(Rd, A.n(51), Ib.as(Style::hex20), C.n(49)).mods(X, CC));
  }
  {  // XMAD: .H1 by Operand::part
    const auto SA = m(K::SignedA, 48, 1, t_silent), SB = m(K::SignedB, 49, 1, t_silent);
    const Slot a = A.half(53);
    t.add(op(M::XMAD, "XMAD", 0x5b00, L::alu)
              .slots(Rd, a, B.half(35), C)
              .mods(SA, SB, m(K::PSL, 36, 1, t_silent), m(K::MRG, 37, 1, t_silent), m(K::XmadC, 50, 3, t_xmad_c),
                    m(K::X, 38, 1, t_silent), CC));
    t.add(op(M::XMAD, "XMAD", 0x3600, L::alu)
              .slots(Rd, a, imm(20, 16), C)
              .mods(SA, SB, m(K::PSL, 36, 1, t_silent), m(K::MRG, 37, 1, t_silent), m(K::XmadC, 50, 3, t_xmad_c),
                    m(K::X, 38, 1, t_silent), CC));
    t.add(op(M::XMAD, "XMAD", 0x4e00, L::alu)
              .slots(Rd, a, Cb.half(52), C)
              .mods(SA, SB, m(K::PSL, 55, 1, t_silent), m(K::MRG, 56, 1, t_silent), m(K::XmadC, 50, 2, t_xmad_c),
                    m(K::X, 54, 1, t_silent), CC));
    t.add(op(M::XMAD, "XMAD", 0x5100, L::alu)
              .slots(Rd, a, C.half(52), Cb)
              .mods(SA, SB, m(K::XmadC, 50, 2, t_xmad_c), m(K::X, 54, 1, t_silent), CC));
  }
  {  // Multiplication in one instruction: at -O0 only; the name has both signs unless both are signed
    const auto SA = m(K::SignedA, 40, 1, t_silent, 1), SB = m(K::SignedB, 41, 1, t_silent, 1);
    alu(t, M::IMUL, "IMUL", {0x5c38, 0x4c38, 0x3838}, two,
        [&](const Builder& b) { return b.mods(SA, SB, m(K::High, 39, 1, t_silent), CC); });
    t.add(op(M::IMUL32I, "IMUL32I", 0x1f00, L::alu)
              .slots(Rd, A, S32)
              .mods(m(K::SignedA, 54, 1, t_silent, 1), m(K::SignedB, 55, 1, t_silent, 1), m(K::High, 53, 1, t_silent),
                    m(K::CC, 52, 1, t_silent)));
    Sources d = three;
    d.a = A.n(52);
    d.neg_c = 51;
    alu(t, M::IMAD, "IMAD", {0x5a00, 0x4a00, 0x3400, 0x5200}, d, [&](const Builder& b) {
      return b.mods(m(K::SignedA, 48, 1, t_silent, 1), m(K::SignedB, 53, 1, t_silent, 1), m(K::High, 54, 1, t_silent),
                    m(K::X, 49, 1, t_silent), m(K::SAT, 50, 1, t_silent), CC);
    });
  }
  {  // Shift and add; logic
    const Slot shift = imm(39, 5).when(Show::optional).def(0);
    for (unsigned top : {0x5bd0u, 0x4bd0u, 0x36d0u})
      t.add(op(M::LEA, "LEA", top, L::alu)
                .slots(P48, Rd, A.n(45),
                       top == 0x5bd0u   ? B
                       : top == 0x4bd0u ? Cb
                                        : Ib,
                       shift)
                .mods(m(K::X, 46, 1, t_x), CC));
    t.add(op(M::LEA_HI, "LEA.HI", 0x5bd8, L::alu)
              .slots(P48, Rd, A.n(37), B, C, imm(28, 5).when(Show::optional).def(0))
              .mods(m(K::X, 38, 1, t_x), CC));
    t.add(op(M::LEA_HI, "LEA.HI", 0x1800, L::alu)
              .slots(P48, Rd, A.n(56), Cb, C, imm(51, 5).when(Show::optional).def(0))
              .mods(m(K::X, 57, 1, t_x), CC));
    for (unsigned top : {0x5c40u, 0x4c40u, 0x3840u})
      t.add(op(M::LOP, "LOP", top, L::alu)
                .slots(P48, Rd, A.inv(39),
                       top == 0x5c40u   ? B.inv(40)
                       : top == 0x4c40u ? Cb.inv(40)
                                        : Ib)
                .mods(m(K::LogicOp, 41, 2, t_logic), X43, m(K::PredicateMode, 44, 2, t_predicate_mode), CC));
    t.add(op(M::LOP32I, "LOP32I", 0x0400, L::alu)
              .slots(Rd, A.inv(55), I32.inv(56))
              .mods(m(K::LogicOp, 53, 2, t_logic), m(K::X, 57, 1, t_x), m(K::CC, 52, 1, t_silent)));
    t.add(op(M::LOP3, "LOP3.LUT", 0x5be0, L::alu)
              .slots(P48, Rd, A, B, C, imm(28, 8))
              .mods(m(K::X, 38, 1, t_x), m(K::PredicateMode, 36, 2, t_predicate_mode), CC));
    t.add(op(M::LOP3, "LOP3.LUT", 0x0200, L::alu).slots(Rd, A, Cb, C, imm(48, 8)).mods(m(K::X, 56, 1, t_x), CC));
    t.add(op(M::LOP3, "LOP3.LUT", 0x3c00, L::alu).slots(Rd, A, Ib, C, imm(48, 8)).mods(m(K::X, 57, 1, t_x), CC));
  }
  {  // Shifts and fields
    alu(t, M::SHL, "SHL", {0x5c48, 0x4c48, 0x3848}, two,
        [&](const Builder& b) { return b.mods(m(K::Wrap, 39, 1, t_wrap), X43, CC); });
    alu(t, M::SHR, "SHR", {0x5c28, 0x4c28, 0x3828}, two, [&](const Builder& b) {
      return b.mods(U32, m(K::Wrap, 39, 1, t_wrap), m(K::Extended, 43, 2, t_shr_x), m(K::Brev, 40, 1, t_brev), CC);
    });
    auto shf = [&](M mn, const char* name, unsigned reg, unsigned immediate) {
      for (unsigned top : {reg, immediate})
        t.add(op(mn, name, top, L::alu)
                  .slots(Rd, A, top == reg ? B : imm(20, 6), C)
                  .mods(m(K::Wrap, 50, 1, t_wrap), m(K::ShiftType, 37, 2, t_shift_type), m(K::Extended, 48, 2, t_shf_x),
                        CC));
    };
    shf(M::SHF_L, "SHF.L", 0x5bf8, 0x36f8);
    shf(M::SHF_R, "SHF.R", 0x5cf8, 0x38f8);
    alu(t, M::BFE, "BFE", {0x5c00, 0x4c00, 0x3800}, two,
        [&](const Builder& b) { return b.mods(U32, m(K::Brev, 40, 1, t_brev), CC); });
    alu(t, M::BFI, "BFI", {0x5bf0, 0x4bf0, 0x36f0, 0x53f0}, three, [&](const Builder& b) { return b.mods(CC); });
  }
  {  // Selection, comparison
    alu(t, M::SEL, "SEL", {0x5ca0, 0x4ca0, 0x38a0}, two, [](const Builder& b) { return b.slot(Ps); });
    alu(t, M::PRMT, "PRMT", {0x5bc0, 0x4bc0, 0x36c0, 0x53c0}, three,
        [](const Builder& b) { return b.mods(m(K::PermuteMode, 48, 4, t_permute)); });
    const auto CMP = m(K::Compare, 49, 3, t_compare), BOOL = m(K::Bool, 45, 2, t_bool);
    const Slot both[] = {Pd, Pq};
    forms(t, M::ISETP, "ISETP", {0x5b60, 0x4b60, 0x3660}, L::alu, two, both, 2,
          [&](const Builder& b, unsigned) { return b.slot(Ps).mods(CMP, U32, X43, BOOL); });
    alu(t, M::ISET, "ISET", {0x5b50, 0x4b50, 0x3650}, two,
        [&](const Builder& b) { return b.slot(Ps).mods(m(K::BF, 44, 1, t_bf), CMP, U32, X43, BOOL, CC); });
    alu(t, M::ICMP, "ICMP", {0x5b40, 0x4b40, 0x3640, 0x5340}, three,
        [&](const Builder& b) { return b.mods(CMP, U32); });
    alu(t, M::IMNMX, "IMNMX", {0x5c20, 0x4c20, 0x3820}, two,
        [&](const Builder& b) { return b.slot(Ps).mods(U32, m(K::Extended, 43, 2, t_minmax_x), CC); });
  }
  {  // One source
    Sources d = unary;
    d.neg_b = 40;
    d.neg_style = Style::invert;
    alu(
        t, M::POPC, "POPC", {0x5c08, 0x4c08, 0x3808}, d, [](const Builder& b) { return b; }, L::sfu);
    alu(
        t, M::FLO, "FLO", {0x5c30, 0x4c30, 0x3830}, d,
        [&](const Builder& b) { return b.mods(U32, m(K::ShiftAmount, 41, 1, t_sh), CC); }, L::sfu);
  }
  {  // Dot product (sm_61), sum of absolute differences
    for (unsigned top : {0x53f8u, 0x53d8u})
      t.add(op(M::IDP, "IDP", top, L::alu)
                .on(sm_61)
                .slots(Rd, A, top == 0x53f8u ? B : Cb, C)
                .mods(m(K::DotMode, 48, 1, t_dot), m(K::High, 50, 1, t_silent), m(K::SignedA, 49, 1, t_silent),
                      m(K::SignedB, 47, 1, t_silent)));
    t.add(op(M::VABSDIFF, "VABSDIFF.U32.U32.ACC", 0x5424, L::alu).fix(28, 11, 0x606).slots(Rd, A, B, C));
    t.add(op(M::VABSDIFF, "VABSDIFF.U32.U16.ACC", 0x5420, L::alu).fix(36, 3, 6).slots(Rd, A, imm(20, 16), C));
    for (bool literal : {false, true}) {
      const Builder b = op(M::VABSDIFF, "VABSDIFF.SD.ACC", literal ? 0x5423 : 0x5427, L::alu);
      t.add((literal ? b.fix(36, 3, 6).slots(Rd, A, imm(20, 16), C) : b.fix(28, 11, 0x606).slots(Rd, A, B, C))
                .mods(m(K::Signed, 54, 1, t_signed_only, 1)));
    }
    t.add(op(M::VABSDIFF4, "VABSDIFF4.U8.U8", 0x5018, L::alu)
              .fix(28, 11, 0x344)
              .slots(Rd, A, B, C)
              .mods(m(K::ACC, 53, 1, t_acc)));
  }
  {  // Predicates
    for (unsigned top : {0x5ce8u, 0x38e8u}) {
      t.add(op(M::P2R, "P2R", top, L::alu)
                .slots(Rd, A.as(Style::p_mask), top == 0x5ce8u ? B : Ib)
                .mods(m(K::Byte, 41, 2, t_byte), m(K::FromCC, 40, 1, t_silent)));
      t.add(op(M::R2P, "R2P", top + 8, L::alu)
                .slots(A.as(Style::pr_before), top == 0x5ce8u ? B : Ib.as(Style::hex20))
                .mods(m(K::Byte, 41, 2, t_silent), m(K::FromCC, 40, 1, t_silent)));
    }
    const Slot pa = pred(12, 15), pb = pred(29, 32), pc = pred(39, 42);
    const auto OP1 = m(K::Bool2, 24, 2, t_bool), OP2 = m(K::Bool, 45, 2, t_bool);
    t.add(op(M::PSETP, "PSETP", 0x5090, L::alu).slots(Pd, Pq, pa, pb, pc).mods(OP1, OP2));
    t.add(op(M::PSET, "PSET", 0x5088, L::alu).slots(Rd, pa, pb, pc).mods(m(K::BF, 44, 1, t_bf), OP1, OP2, CC));
    const auto TEST = m(K::Condition, 8, 5, t_condition_name, 15);
    t.add(op(M::CSETP, "CSETP", 0x50a0, L::alu).slots(Pd, Pq, Ps.as(Style::cc_before)).mods(TEST, OP2));
    t.add(op(M::CSET, "CSET", 0x5098, L::alu)
              .slots(Rd, Ps.as(Style::cc_before))
              .mods(m(K::BF, 44, 1, t_bf), TEST, OP2, CC));
  }
  t.add(op(M::S2R, "S2R", 0xf0c8, L::special).slots(Rd, special_register));
  t.add(op(M::CS2R, "CS2R", 0x50c8, L::alu).slots(Rd, special_register));
  t.add(op(M::B2R, "B2R", 0xf0b8, L::special)
            .fix(8, 8, 255)
            .slots(Rd, pred_out(45).opt(PT))
            .mods(m(K::ResultMode, 32, 2, t_result, 1)));
  t.add(op(M::LEPC, "LEPC", 0x50d0, L::alu).slots(Rd).from(Provenance::inferred));
}

template <size_t N>
constexpr void float_rows(Table<N>& t) {
  const auto RND = m(K::Rounding, 39, 2, t_rounding), SAT = m(K::SAT, 50, 1, t_sat);
  Sources f;
  f.a = A.n(48).a(46);
  f.neg_b = 45;
  f.abs_b = 49;
  f.immediate = Fb;
  Sources product;  // one sign for the product, printed at B
  product.neg_b = 48;
  product.immediate = Fb.n(48);
  Sources fma = product;
  fma.c = true;
  fma.neg_c = 49;
  alu(t, M::FADD, "FADD", {0x5c58, 0x4c58, 0x3858}, f,
      [&](const Builder& b) { return b.mods(m(K::FTZ, 44, 1, t_ftz), RND, SAT, CC); });
  t.add(op(M::FADD32I, "FADD32I", 0x0800, L::alu)
            .slots(Rd, A.n(56).a(54), F32)
            .mods(m(K::FTZ, 55, 1, t_ftz), m(K::CC, 52, 1, t_silent)));
  alu(t, M::FMUL, "FMUL", {0x5c68, 0x4c68, 0x3868}, product,
      [&](const Builder& b) { return b.mods(m(K::FTZ, 44, 2, t_ftz_fmz), m(K::Scale, 41, 3, t_scale), RND, SAT, CC); });
  t.add(op(M::FMUL32I, "FMUL32I", 0x1e00, L::alu)
            .slots(Rd, A, F32)
            .mods(m(K::FTZ, 53, 2, t_ftz_fmz), m(K::SAT, 55, 1, t_sat), m(K::CC, 52, 1, t_silent)));
  alu(t, M::FFMA, "FFMA", {0x5980, 0x4980, 0x3280, 0x5180}, fma, [&](const Builder& b) {
    return b.mods(m(K::FTZ, 53, 2, t_ftz_fmz), m(K::Rounding, 51, 2, t_rounding), SAT, CC);
  });
  t.add(op(M::FFMA32I, "FFMA32I", 0x0c00, L::alu)
            .slots(Rd.rw(Access::read_write), A.n(56), F32)
            .from(Provenance::inferred)
            .mods(m(K::FTZ, 53, 2, t_ftz_fmz), m(K::SAT, 55, 1, t_sat), m(K::CC, 52, 1, t_silent)));
  alu(t, M::FMNMX, "FMNMX", {0x5c60, 0x4c60, 0x3860}, f,
      [&](const Builder& b) { return b.slot(Ps).mods(m(K::FTZ, 44, 1, t_ftz), CC); });
  const Slot both[] = {Pd, Pq};
  const auto CMP = m(K::FloatCompare, 48, 4, t_fcompare), BOOL = m(K::Bool, 45, 2, t_bool);
  Sources s = f;
  s.a = A.n(43).a(7);
  s.neg_b = 6;
  s.abs_b = 44;
  forms(t, M::FSETP, "FSETP", {0x5bb0, 0x4bb0, 0x36b0}, L::alu, s, both, 2,
        [&](const Builder& b, unsigned) { return b.slot(Ps).mods(CMP, m(K::FTZ, 47, 1, t_ftz), BOOL); });
  Sources set = f;
  set.a = A.n(43).a(54);
  set.neg_b = 53;
  set.abs_b = 44;
  alu(t, M::FSET, "FSET", {0x5800, 0x4800, 0x3000}, set,
      [&](const Builder& b) { return b.slot(Ps).mods(m(K::BF, 52, 1, t_bf), CMP, m(K::FTZ, 55, 1, t_ftz), BOOL, CC); });
  Sources cmp;
  cmp.c = true;
  cmp.immediate = Fb;
  alu(t, M::FCMP, "FCMP", {0x5ba0, 0x4ba0, 0x36a0, 0x53a0}, cmp,
      [&](const Builder& b) { return b.mods(m(K::FloatCompare, 48, 4, t_fcmp), m(K::FTZ, 47, 1, t_ftz)); });
  for (unsigned top : {0x5c88u, 0x4c88u, 0x3888u})  // no scoreboard announces it, as it does on Volta and later
    t.add(op(M::FCHK, "FCHK.DIVIDE", top, L::alu)
              .slots(Pd, f.a,
                     top == 0x5c88u   ? B.n(45).a(49)
                     : top == 0x4c88u ? Cb.n(45).a(49)
                                      : Fb));
  t.add(op(M::MUFU, "MUFU", 0x5080, L::sfu).slots(Rd, A.n(48).a(46)).mods(m(K::Function, 20, 4, t_function), SAT));
  Sources rro = f;
  rro.a = Slot{};
  alu(
      t, M::RRO, "RRO", {0x5c90, 0x4c90, 0x3890}, rro,
      [&](const Builder& b) { return b.mods(m(K::Function, 39, 1, t_rro)); }, L::range_reduction);

  Sources d = f;
  d.a = f.a.with(Span_::two);
  d.span = Span_::two;
  d.immediate = Db;
  alu(
      t, M::DADD, "DADD", {0x5c70, 0x4c70, 0x3870}, d, [&](const Builder& b) { return b.mods(RND, CC); }, L::fp64);
  alu(
      t, M::DMNMX, "DMNMX", {0x5c50, 0x4c50, 0x3850}, d, [&](const Builder& b) { return b.slot(Ps).mods(CC); },
      L::fp64);
  Sources dp = product;
  dp.a = A.with(Span_::two);
  dp.span = Span_::two;
  dp.immediate = Db.n(48);
  alu(
      t, M::DMUL, "DMUL", {0x5c80, 0x4c80, 0x3880}, dp, [&](const Builder& b) { return b.mods(RND, CC); }, L::fp64);
  Sources df = dp;
  df.c = true;
  df.neg_c = 49;
  alu(
      t, M::DFMA, "DFMA", {0x5b70, 0x4b70, 0x3670, 0x5370}, df,
      [&](const Builder& b) { return b.mods(m(K::Rounding, 50, 2, t_rounding), CC); }, L::fp64);
  Sources ds = s;
  ds.a = s.a.with(Span_::two);
  ds.span = Span_::two;
  ds.immediate = Db;
  forms(t, M::DSETP, "DSETP", {0x5b80, 0x4b80, 0x3680}, L::fp64, ds, both, 2,
        [&](const Builder& b, unsigned) { return b.slot(Ps).mods(CMP, BOOL); });
  Sources dset = set;
  dset.a = set.a.with(Span_::two);
  dset.span = Span_::two;
  dset.immediate = Db;
  const Slot one[] = {Rd};
  forms(t, M::DSET, "DSET", {0x5900, 0x4900, 0x3200}, L::fp64, dset, one, 1,
        [&](const Builder& b, unsigned) { return b.slot(Ps).mods(m(K::BF, 52, 1, t_bf), CMP, BOOL, CC); });

  {  // Half precision, two values per register
    const Slot ha = A.n(43).a(44).half(47, 2, 3), hb = B.n(31).a(30).half(28, 2, 3);
    const auto HF = m(K::HalfFormat, 49, 2, t_half), HSAT = m(K::SAT, 32, 1, t_sat);
    t.add(op(M::HADD2, "HADD2", 0x5d10, L::alu).slots(Rd, ha, hb).mods(HF, m(K::FTZ, 39, 1, t_ftz), HSAT));
    t.add(op(M::HMUL2, "HMUL2", 0x5d08, L::alu)
              .slots(Rd, A.a(44).half(47, 2, 3), hb)
              .mods(HF, m(K::FTZ, 39, 2, t_ftz_fmz), HSAT));
    t.add(op(M::HFMA2, "HFMA2", 0x5d00, L::alu)
              .slots(Rd, A.half(47, 2, 3), B.n(31).half(28, 2, 3), C.n(30).half(35, 2, 3))
              .mods(HF, m(K::FTZ, 37, 2, t_ftz_fmz), HSAT));
    Slot low = make_slot(immediate, 20, R), high = make_slot(immediate, 36, R);
    low.width = high.width = 16;
    low.style = high.style = Style::f16;
    t.add(op(M::HADD2, "HADD2_32I", 0x2c00, L::alu)
              .slots(Rd, A.n(56).half(53, 2, 3), high, low)
              .mods(m(K::FTZ, 55, 1, t_ftz), m(K::SAT, 52, 1, t_sat)));
    t.add(op(M::HMUL2, "HMUL2_32I", 0x2a00, L::alu)
              .slots(Rd, A.half(53, 2, 3), high, low)
              .mods(m(K::FTZ, 55, 2, t_ftz_fmz), m(K::SAT, 52, 1, t_sat)));
    t.add(op(M::HFMA2, "HFMA2_32I", 0x2800, L::alu)
              .slots(Rd.rw(Access::read_write), A.half(53, 2, 3), high, low)
              .mods(m(K::FTZ, 55, 2, t_ftz_fmz)));
    const auto HCMP = m(K::FloatCompare, 35, 4, t_fcompare), HBOOL = m(K::Bool, 45, 2, t_bool);
    t.add(op(M::HSETP2, "HSETP2", 0x5d20, L::alu)
              .slots(Pd, Pq, ha, hb, Ps)
              .mods(HCMP, m(K::FTZ, 6, 1, t_ftz), m(K::High, 49, 1, t_h_and), HBOOL));
    t.add(op(M::HSET2, "HSET2", 0x5d18, L::alu)
              .slots(Rd, ha, hb, Ps)
              .mods(m(K::BF, 49, 1, t_bf), HCMP, m(K::FTZ, 50, 1, t_ftz), HBOOL));
    // B as a constant, or as two literals of ten bits
    Slot h10 = make_slot(half_20, 30, R), l10 = make_slot(half_20, 20, R);
    h10.style = l10.style = Style::f16;
    h10.second = 56, l10.second = 29;
    const Slot a = A.half(47, 2, 3), c = C.n(51).half(53, 2, 3);
    const auto SAT52 = m(K::SAT, 52, 1, t_sat), CMP49 = m(K::FloatCompare, 49, 4, t_fcompare);
    for (bool constant : {false, true}) {
      auto source = [&](const Builder& b, const Slot& k) { return constant ? b.slot(k) : b.slots(h10, l10); };
      const unsigned form = constant ? 0x80 : 0;
      t.add(source(op(M::HADD2, "HADD2", 0x7a00 | form, L::alu).slots(Rd, a.n(43).a(44)), Cb.n(56).a(54))
                .mods(HF, m(K::FTZ, 39, 1, t_ftz), SAT52));
      t.add(source(op(M::HMUL2, "HMUL2", 0x7800 | form, L::alu).slots(Rd, constant ? a.a(44) : a.n(43).a(44)),
                   Cb.n(43).a(54))
                .mods(HF, m(K::FTZ, 39, 2, t_ftz_fmz), SAT52));
      t.add(source(op(M::HFMA2, "HFMA2", 0x7000 | form, L::alu).slots(Rd, a), Cb.n(56))
                .slot(c)
                .mods(HF, m(K::FTZ, 57, 2, t_ftz_fmz), SAT52));
      t.add(source(op(M::HSETP2, "HSETP2", 0x7e00 | form, L::alu).slots(Pd, Pq, a.n(43).a(44)), Cb.n(56).a(54))
                .slot(Ps)
                .mods(CMP49, m(K::FTZ, 6, 1, t_ftz), m(K::High, 53, 1, t_h_and), HBOOL));
      t.add(source(op(M::HSET2, "HSET2", 0x7c00 | form, L::alu).slots(Rd, a.n(43).a(44)), Cb.n(56))
                .slot(Ps)
                .mods(m(K::BF, 53, 1, t_bf), CMP49, m(K::FTZ, 54, 1, t_ftz), HBOOL));
    }
    t.add(op(M::HFMA2, "HFMA2", 0x6080, L::alu)
              .slots(Rd, a, C.n(56).half(53, 2, 3), Cb.n(51))
              .mods(HF, m(K::FTZ, 57, 2, t_ftz_fmz), SAT52));
  }
  // Conversions: names from formats in text.cpp
  const auto D = m(K::DestFormat, 8, 2, t_silent, 2), S = m(K::SourceFormat, 10, 2, t_silent, 2),
             FTZ = m(K::FTZ, 44, 1, t_silent);
  const auto DI = m(K::DestSize, 8, 2, t_silent, 2), SI = m(K::SourceSize, 10, 2, t_silent, 2);
  const auto DS = m(K::DestSigned, 12, 1, t_silent, 1), SS = m(K::SourceSigned, 13, 1, t_silent, 1),
             R2 = m(K::Rounding, 39, 2, t_silent);
  const Slot bf = B.n(45).a(49), cf = Cb.n(45).a(49);
  for (unsigned which : {0u, 1u, 2u}) {
    unsigned add = which == 0 ? 0 : which == 1 ? 0x1000 : 0x2400;
    auto source = [&](Slot r, Slot i, Span_ span) {
      return which == 0 ? r.with(span) : which == 1 ? cf.with(span) : i;
    };
    t.add(op(M::F2F, "F2F", 0x5ca8 - add, L::sfu)
              .slots(Rd.with(Span_::f64_dest), source(bf.half(41), Fb, Span_::f64_source))
              .mods(FTZ, D, S, R2, m(K::Integral, 42, 1, t_silent), m(K::SAT, 50, 1, t_silent), CC));
    t.add(op(M::F2I, "F2I", 0x5cb0 - add, L::sfu)
              .slots(Rd.with(Span_::dest), source(bf.half(41), Fb, Span_::f64_source))
              .mods(FTZ, DI, DS, S, R2, CC));
    t.add(op(M::I2F, "I2F", 0x5cb8 - add, L::sfu)
              .slots(Rd.with(Span_::f64_dest), source(bf.half(41, 2, 2), Ib, Span_::source))
              .mods(D, SI, SS, R2, CC));
    t.add(op(M::I2I, "I2I", 0x5ce0 - add, L::sfu)
              .slots(Rd, source(bf.half(41, 2, 2), Ib, Span_::one))
              .mods(DI, DS, SI, SS, m(K::SAT, 50, 1, t_silent), CC));
  }
}

template <size_t N>
constexpr void memory_rows(Table<N>& t) {
  const auto E45 = m(K::E, 45, 1, t_e, 1), SIZE = m(K::Size, 48, 3, t_size, 4);
  const Slot Rs = Rd.with(Span_::size), data = Rd.with(Span_::size).rw(R);
  t.add(op(M::LDG, "LDG", 0xeed0, L::global_load)
            .slots(Rs, memory(20, 24))
            .mods(E45, m(K::Cache, 46, 2, t_cache_load), m(K::Size, 48, 3, t_size_u, 4)));
  t.add(op(M::STG, "STG", 0xeed8, L::global_store)
            .slots(memory(20, 24), data)
            .mods(E45, m(K::Cache, 46, 2, t_cache_store), SIZE));
  const auto E52 = m(K::E, 52, 1, t_e, 1);
  t.add(op(M::LD, "LD", 0x8000, L::global_load)
            .slots(Rs, memory(20, 32), make_slot(predicate, 58, R).opt(PT))
            .mods(E52, m(K::Cache, 56, 2, t_cache_load), m(K::Size, 53, 3, t_size_u, 4)));
  t.add(op(M::ST, "ST", 0xa000, L::global_store)
            .slots(memory(20, 32), data, make_slot(predicate, 58, R).opt(PT))
            .mods(E52, m(K::Cache, 56, 2, t_cache_store), m(K::Size, 53, 3, t_size, 4)));
  t.add(op(M::LDS, "LDS", 0xef48, L::shared_load)
            .slots(Rs, memory(20, 24))
            .mods(m(K::UniformAddress, 44, 1, t_u, 1), SIZE));
  t.add(op(M::STS, "STS", 0xef58, L::shared_store).slots(memory(20, 24), data).mods(SIZE));
  t.add(
      op(M::LDL, "LDL", 0xef40, L::local_load).slots(Rs, memory(20, 24)).mods(m(K::Cache, 44, 2, t_cache_local), SIZE));
  t.add(op(M::STL, "STL", 0xef50, L::local_store)
            .slots(memory(20, 24), data)
            .mods(m(K::Cache, 44, 2, t_cache_store), SIZE));
  t.add(op(M::LDC, "LDC", 0xef90, L::constant_load)
            .slots(Rs, make_slot(constant_ldc, 8, R))
            .mods(m(K::Size, 48, 3, t_size_64, 4), m(K::IndexMode, 44, 2, t_index_mode)));

  const auto E48 = m(K::E, 48, 1, t_e, 1), TYPE = m(K::AtomType, 49, 3, t_atom_type);
  const Slot Ra = Rd.with(Span_::atom), da = B.with(Span_::atom);
  t.add(op(M::ATOM, "ATOM", 0xed00, L::global_atomic)
            .slots(Ra, memory(28, 20), da)
            .mods(E48, m(K::AtomOp, 52, 4, t_atom_op), TYPE));
  t.add(op(M::ATOM_CAS, "ATOM", 0xeef0, L::global_atomic)
            .slots(Rd.with(Span_::cas_result), memory(28, 20), B.with(Span_::cas))
            .mods(E48, m(K::AtomType, 49, 1, t_64)));
  t.add(op(M::RED, "RED", 0xebf8, L::global_store)
            .slots(memory(28, 20), Rd.rw(R).with(Span_::atom))
            .mods(E48, m(K::AtomOp, 23, 3, t_red_op), m(K::AtomType, 20, 3, t_atom_type)));
  t.add(op(M::ATOMS, "ATOMS", 0xec00, L::shared_atomic)
            .slots(Ra, memory(30, 22, 2), da)
            .mods(m(K::AtomOp, 52, 4, t_atom_op), m(K::AtomType, 28, 2, t_atoms_type)));
  t.add(op(M::ATOMS_CAS, "ATOMS", 0xee00, L::shared_atomic)
            .slots(Rd.with(Span_::cas_result), memory(30, 22, 2), B.with(Span_::cas))
            .mods(m(K::CasMode, 52, 3, t_cas_mode, 4)));

  t.add(op(M::CCTL, "CCTL", 0xef60, L::fence)
            .slots(memory(22, 30, 2).when(Show::optional))
            .mods(m(K::E, 52, 1, t_e), m(K::CacheOp, 0, 4, t_cctl)));
  t.add(op(M::MEMBAR, "MEMBAR", 0xef98, L::fence).mods(m(K::Scope, 8, 2, t_scope), m(K::Fence, 0, 2, t_fence)));
}

template <size_t N>
constexpr void warp_and_control_rows(Table<N>& t) {
  for (unsigned form : {0u, 1u, 2u, 3u}) {  // lane and mask each a register or an immediate
    bool lane = form & 1, mask = form & 2;
    t.add(op(M::SHFL, "SHFL", 0xef10, L::shuffle)
              .fix(28, 1, lane)
              .fix(29, 1, mask)
              .slots(pred_out(48), Rd, A, lane ? imm(20, 5) : B, mask ? imm(34, 13) : C)
              .mods(m(K::ShuffleMode, 30, 2, t_shuffle)));
  }
  t.add(op(M::VOTE, "VOTE", 0x50d8, L::vote).slots(Rd.opt(RZ), pred_out(45), Ps).mods(m(K::VoteMode, 48, 2, t_vote)));
  for (unsigned form : {0u, 1u, 2u, 3u}) {
    bool id = form & 1, count = form & 2;
    t.add(
        op(M::BAR, "BAR", 0xf0a8, L::barrier)
            .fix(44, 1, id)
            .fix(43, 1, count)
            .slots(id ? imm(8, 4) : A, count ? imm(20, 12).when(Show::optional).def(0) : B, Ps.when(Show::with_bar_red))
            .mods(m(K::BarMode, 32, 3, t_bar), m(K::BarReduction, 35, 2, t_bar_reduction)));
  }
  t.add(op(M::DEPBAR, "DEPBAR", 0xf0f0, L::wait)
            .slots(make_slot(scoreboard, 26, R), imm(20, 6), imm(0, 6).when(Show::optional).def(0))
            .mods(m(K::LessEqual, 29, 1, t_le, 1)));
  t.add(
      op(M::NOP, "NOP", 0x50b0, L::nop).mods(m(K::Condition, 8, 5, t_condition, 15), m(K::Trigger, 13, 1, t_trigger)));
  const auto TEST = m(K::Condition, 0, 5, t_condition, 15);
  const Slot target = make_slot(label_pascal, 20, R), absolute = make_slot(label_absolute, 20, R);
  Slot base = target.as(Style::relative);
  base.scale = 1;
  t.add(op(M::BRA, "BRA", 0xe240, L::branch)
            .slots(target)
            .mods(m(K::Limit, 6, 1, t_limit), m(K::BranchUniform, 7, 1, t_u), TEST));
  t.add(op(M::BRX, "BRX", 0xe250, L::branch).slots(A, base).mods(TEST));
  t.add(op(M::JMP, "JMP", 0xe210, L::branch).slots(absolute).mods(TEST).from(Provenance::inferred));
  t.add(op(M::SSY, "SSY", 0xe290, L::convergence).unguarded().slots(target));
  t.add(op(M::PBK, "PBK", 0xe2a0, L::convergence).unguarded().slots(target));
  t.add(op(M::PCNT, "PCNT", 0xe2b0, L::convergence).unguarded().slots(target).from(Provenance::inferred));
  t.add(op(M::PRET, "PRET", 0xe270, L::convergence).unguarded().slots(target).mods(m(K::NoInc, 6, 1, t_call, 1)));
  t.add(op(M::CAL, "CAL", 0xe260, L::branch).unguarded().slots(target).mods(m(K::NoInc, 6, 1, t_call, 1)));
  t.add(op(M::JCAL, "JCAL", 0xe220, L::branch).unguarded().slots(absolute).mods(m(K::NoInc, 6, 1, t_call, 1)));
  t.add(op(M::JMX, "JMX", 0xe200, L::branch).slots(A).mods(TEST));
  t.add(op(M::RET, "RET", 0xe320, L::branch).mods(TEST));
  t.add(op(M::SYNC, "SYNC", 0xf0f8, L::branch).mods(TEST));
  t.add(op(M::BRK, "BRK", 0xe340, L::branch).mods(TEST));
  t.add(op(M::CONT, "CONT", 0xe350, L::branch).mods(TEST).from(Provenance::inferred));
  t.add(op(M::EXIT, "EXIT", 0xe300, L::branch).mods(m(K::ExitMode, 5, 1, t_exit), TEST));
  t.add(op(M::KIL, "KIL", 0xe330, L::branch).mods(TEST).from(Provenance::inferred));
  t.add(op(M::BPT, "BPT", 0xe3a0, L::nop)
            .unguarded()
            .slots(imm(20, 20).when(Show::optional).def(0))
            .mods(m(K::TrapMode, 6, 3, t_trap, 3)));
}

constexpr auto make_table() {
  Table<300> t;
  integer_rows(t);
  float_rows(t);
  memory_rows(t);
  warp_and_control_rows(t);
  return t;
}
constexpr auto table = make_table();
static_assert(rows_are_sound(table), "two fields of a row overlap, or a row has too many");
static_assert(ambiguous_rows(table)[0] == table.count, "a word matches two rows");

}  // namespace

std::span<const Form> pascal_forms() { return {table.rows.data(), table.count}; }

}  // namespace rndn::isa
