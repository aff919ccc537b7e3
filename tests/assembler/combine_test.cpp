// Pairs of operations that assembler/optimize/combine.cpp makes one, and pairs that it must leave: our code against the PTX interpreter, on every target.
#include "tests/assembler/three_ways.h"

namespace rndn::assembler::testing::combine_test {
namespace {

// A kernel of the tests' shape: %a, %b, %c are words of the thread's input, %u, %v, %w pairs of them, %f, %g, %h and %d, %e floats; %p tells of the lowest bit
// of %a. What the body leaves in %x, %y and %z is stored.
std::string kernel(const std::string& body) {
  return ".version 7.0\n.target sm_60\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
         ".reg .b32 %a, %b, %c, %x, %y, %t<6>;\n.reg .b32 %i<4>;\n.reg .b64 %d<8>, %u, %v, %w, %z, %s<6>;\n.reg .pred "
         "%p, %q, %r, %k;\n"
         ".reg .f32 %f, %g, %h, %m, %n, %o;\n.reg .f64 %dd, %de, %dm, %dn;\n"
         "ld.param.u64 %d1, [in];\nld.param.u64 %d2, [out];\nmov.u32 %i1, %tid.x;\nmov.u32 %i2, %ctaid.x;\n"
         "mad.lo.u32 %i3, %i2, 96, %i1;\nmad.wide.u32 %d3, %i3, 24, %d1;\nmad.wide.u32 %d4, %i3, 768, %d2;\n"
         "ld.global.u64 %u, [%d3];\nld.global.u64 %v, [%d3+8];\nld.global.u64 %w, [%d3+16];\n"
         "cvt.u32.u64 %a, %u;\ncvt.u32.u64 %b, %v;\ncvt.u32.u64 %c, %w;\nmov.b32 %f, %a;\nmov.b32 %g, %b;\nmov.b32 %h, "
         "%c;\n"
         "mov.b64 %dd, %u;\nmov.b64 %de, %v;\nand.b32 %t0, %a, 1;\nsetp.ne.u32 %p, %t0, 0;\n"
         "mov.u32 %x, 7;\nmov.u32 %y, 9;\nmov.u64 %z, 11;\n" +
         body +
         "st.global.u32 [%d4], %x;\nst.global.u32 [%d4+8], %y;\nst.global.u64 [%d4+16], %z;\nst.global.u64 [%d4+24], "
         "%u;\n"
         "st.global.u32 [%d4+48], %a;\nst.global.u32 [%d4+52], %b;\nst.global.u32 [%d4+56], %c;\n@%p st.global.u32 "
         "[%d4+60], %i3;\n"
         "st.global.u64 [%d4+32], %v;\nst.global.u64 [%d4+40], %w;\nret;\n}\n";
}

struct Case {
  const char* name;
  const char* body;
};
const Case cases[] = {
    {"product and sum",
     "mul.lo.u32 %t1, %a, %b;\nadd.u32 %x, %t1, %c;\nmul.lo.u32 %t2, %a, 77;\nsub.u32 %y, %c, %t2;\n"},
    {"rounded, then an integer",
     "cvt.rni.f32.f32 %m, %f;\ncvt.rzi.s32.f32 %x, %m;\ncvt.rpi.f32.f32 %n, %g;\ncvt.rni.u32.f32 %y, %n;\nmov.b32 %t1, %n;\ncvt.rmi.f32.f32 %o, %h;\n"
     "cvt.rpi.s16.f32 %t2, %o;\nmov.b64 %z, {%t1, %t2};\n"},
    {"rounded with a sign, flushed",
     "neg.f32 %m, %f;\ncvt.rmi.ftz.f32.f32 %n, %m;\ncvt.rzi.s32.f32 %x, %n;\nabs.f32 %m, %g;\ncvt.rpi.f32.f32 %o, %m;\nneg.f32 %o, %o;\n"
     "cvt.rni.s32.f32 %y, %o;\ncvt.rpi.ftz.f32.f32 %m, %h;\ncvt.rzi.u64.f32 %z, %m;\n"},
    {"rounded, and changed",
     "cvt.rni.f32.f32 %m, %f;\nadd.f32 %f, %f, 0f40A00000;\ncvt.rzi.s32.f32 %x, %m;\ncvt.rni.f32.f32 %n, %g;\nadd.f32 %n, %n, 0f3F000000;\n"
     "cvt.rzi.s32.f32 %y, %n;\n@%p cvt.rni.f32.f32 %o, %h;\n@!%p mov.f32 %o, %g;\ncvt.rzi.s64.f32 %z, %o;\n"},
    {"doubles rounded, then integers",
     "cvt.rni.f64.f64 %dm, %dd;\ncvt.rzi.s32.f64 %x, %dm;\ncvt.rpi.f64.f64 %dn, %de;\ncvt.rmi.u32.f64 %y, %dn;\ncvt.rmi.f64.f64 %dm, %de;\n"
     "cvt.rzi.s64.f64 %z, %dm;\n"},
    {"product less a sum",
     "mul.lo.u32 %t1, %a, %b;\nsub.u32 %x, %t1, %c;\nmul.lo.u32 %t2, %a, %c;\nsub.u32 %y, %b, %t2;\n"},
    {"product and literal",
     "mul.lo.u32 %t1, %a, %b;\nadd.u32 %x, %t1, 12345;\nmul.lo.u32 %t2, %a, 3;\nadd.u32 %y, %t2, 5;\n"},
    {"product read twice", "mul.lo.u32 %t1, %a, %b;\nadd.u32 %x, %t1, %c;\nxor.b32 %y, %t1, %c;\n"},
    {"product and itself", "mul.lo.u32 %t1, %a, %b;\nadd.u32 %x, %t1, %t1;\n"},
    {"a factor changes", "mul.lo.u32 %t1, %a, %b;\nadd.u32 %a, %a, 1;\nadd.u32 %x, %t1, %a;\n"},
    {"a factor is the result", "mul.lo.u32 %t1, %x, %b;\nadd.u32 %x, %t1, %c;\n"},
    {"shift and sum", "shl.b32 %t1, %a, 3;\nadd.u32 %x, %t1, %b;\nshl.b32 %t2, %a, 31;\nsub.u32 %y, %t2, %c;\n"},
    {"shift less", "shl.b32 %t1, %a, 3;\nsub.u32 %x, %b, %t1;\nshl.b32 %t2, %a, 0;\nadd.u32 %y, %t2, %c;\n"},
    {"shift by a register", "shl.b32 %t1, %a, %b;\nadd.u32 %x, %t1, %c;\nshl.b32 %t2, %a, 32;\nadd.u32 %y, %t2, %c;\n"},
    {"shift to the right", "shr.u32 %t1, %a, 3;\nadd.u32 %x, %t1, %b;\nshr.s32 %t2, %a, 3;\nadd.u32 %y, %t2, %b;\n"},
    {"rotation and sum",
     "shf.l.wrap.b32 %t1, %a, %a, 7;\nadd.u32 %x, %t1, %b;\nshf.l.wrap.b32 %t2, %b, %c, 31;\nadd.u32 %y, 77, %t2;\nshf.l.clamp.b32 %t3, "
     "%a, %c, 1;\nadd.u32 %t4, %c, %t3;\nmov.b64 %z, {%t4, %t2};\n"},
    {"rotation less, to the right and by a register",
     "shf.l.wrap.b32 %t1, %a, %b, 9;\nsub.u32 %x, %c, %t1;\nshf.r.wrap.b32 %t2, %a, %b, 9;\nadd.u32 %y, %t2, %c;\nshf.l.wrap.b32 %t3, %a, "
     "%b, %c;\nadd.u32 %t3, %t3, %a;\nshf.l.wrap.b32 %t4, %a, %b, 32;\nadd.u32 %t4, %t4, %c;\nmov.b64 %z, {%t3, %t4};\n"},
    {"three terms", "add.u32 %t1, %a, %b;\nadd.u32 %x, %t1, %c;\nsub.u32 %t2, %a, %b;\nsub.u32 %y, %c, %t2;\n"},
    {"terms and literals",
     "add.u32 %t1, %a, 70000;\nadd.u32 %x, %t1, %c;\nsub.u32 %t2, %a, 9;\nadd.u32 %y, %t2, 1000000;\n"},
    {"four terms",
     "add.u32 %t1, %a, %b;\nadd.u32 %t2, %t1, %c;\nadd.u32 %x, %t2, %a;\nneg.s32 %t3, %a;\nadd.u32 %y, %t3, %b;\n"},
    {"terms with signs", "sub.u32 %t1, %c, %a;\nsub.u32 %x, %t1, %b;\nneg.s32 %t2, %a;\nsub.u32 %y, %t2, %b;\n"},
    {"signs beside a constant",
     "mov.u32 %t3, %ntid.x;\nsub.u32 %t1, %a, %t3;\nsub.u32 %x, %t1, %b;\nsub.u32 %t2, %t3, %a;\nsub.u32 %y, %t2, "
     "%b;\n"},
    {"signs before a constant",
     "mov.u32 %t3, %ntid.x;\nadd.u32 %t1, %a, %b;\nsub.u32 %x, %t3, %t1;\nadd.u32 %t2, %a, %t3;\nsub.u32 %y, %b, "
     "%t2;\n"},
    {"carries stay", "add.cc.u32 %t1, %a, %b;\naddc.u32 %x, %a, %c;\nadd.u32 %y, %t1, %c;\n"},
    {"saturation stays",
     "add.sat.s32 %t1, %a, %b;\nadd.s32 %x, %t1, %c;\nadd.s32 %t2, %a, %b;\nadd.sat.s32 %y, %t2, %c;\n"},
    {"short values",
     ".reg .b16 %sh1, %sh2, %sh3;\ncvt.u16.u32 %sh1, %a;\ncvt.u16.u32 %sh2, %b;\nadd.u16 %sh3, %sh1, %sh2;\nadd.u16 "
     "%sh3, %sh3, "
     "%sh1;\n"
     "cvt.s32.s16 %x, %sh3;\nmul.lo.u16 %sh3, %sh1, %sh2;\nadd.u16 %sh3, %sh3, 7;\ncvt.u32.u16 %y, %sh3;\n"},
    {"under one guard", "@%p mul.lo.u32 %t1, %a, %b;\n@%p add.u32 %x, %t1, %c;\n"},
    {"the reader under a guard",
     "mul.lo.u32 %t1, %a, %b;\n@%p add.u32 %x, %t1, %c;\nshl.b32 %t2, %a, 4;\n@!%p add.u32 %y, %t2, %c;\n"},
    {"the maker under a guard", "mov.u32 %t1, 3;\n@%p mul.lo.u32 %t1, %a, %b;\nadd.u32 %x, %t1, %c;\n"},
    {"opposite guards", "mov.u32 %t1, 3;\n@%p mul.lo.u32 %t1, %a, %b;\n@!%p add.u32 %x, %t1, %c;\n"},
    {"the guard changes", "@%p mul.lo.u32 %t1, %a, %b;\nsetp.lt.and.u32 %p, %b, %c, %p;\n@%p add.u32 %x, %t1, %c;\n"},
    {"in an arm", "mul.lo.u32 %t1, %a, %b;\n@%p bra SKIP;\nadd.u32 %x, %t1, %c;\nSKIP:\nadd.u32 %y, %t1, 1;\n"},
    {"round a loop",
     "mov.u32 %t1, 0;\nmov.u32 %t2, 1;\nAGAIN:\nadd.u32 %x, %t2, %b;\nmul.lo.u32 %t2, %x, %a;\nadd.u32 %t1, %t1, 1;\n"
     "setp.lt.u32 %k, %t1, 5;\n@%k bra AGAIN;\nadd.u32 %y, %t2, %c;\n"},
    {"a source of the next round",
     "mov.u32 %t1, 0;\nmov.u32 %t3, %c;\nAGAIN:\nmul.lo.u32 %t2, %t3, %a;\nadd.u32 %t3, %t3, %b;\nadd.u32 %x, %t2, "
     "%t3;\n"
     "add.u32 %t1, %t1, 1;\nsetp.lt.u32 %k, %t1, 5;\n@%k bra AGAIN;\n"},
    {"address",
     "mul.wide.s32 %s1, %a, 4;\nadd.s64 %z, %u, %s1;\nmul.wide.u32 %s2, %b, 12;\nadd.s64 %s3, %s2, %w;\ncvt.u32.u64 "
     "%x, %s3;\nshr.u64 %s3, %s3, 32;\n"
     "cvt.u32.u64 %y, %s3;\n"},
    {"addresses in the constant bank",
     "mul.wide.s32 %s1, %a, 4;\nadd.s64 %s2, %d1, %s1;\nadd.s64 %s3, %d2, %s1;\nsub.s64 %z, %s2, %s3;\n"
     "mul.wide.u32 %s4, %b, 24;\nadd.s64 %s5, %d1, %s4;\nsub.s64 %s5, %s5, %d1;\ncvt.u32.u64 %x, %s5;\n"},
    {"wide product read twice",
     "mul.wide.s32 %s1, %a, %b;\nadd.s64 %s2, %u, %s1;\nadd.s64 %s3, %v, %s1;\nxor.b64 %z, %s2, %s3;\nxor.b64 %z, %z, "
     "%s1;\n"},
    {"wide product less",
     "mul.wide.s32 %s1, %a, %b;\nsub.s64 %s2, %u, %s1;\nsub.s64 %s3, %s1, %v;\nxor.b64 %z, %s2, %s3;\n"},
    {"wide product into its addend",
     "mul.wide.u32 %s1, %a, %b;\nadd.s64 %u, %u, %s1;\nmul.wide.u32 %s2, %a, %b;\nadd.s64 %u, %u, %s2;\nmov.b64 %z, "
     "%u;\n"},
    {"wide product twice itself", "mul.wide.u32 %s1, %a, %b;\nadd.s64 %z, %s1, %s1;\n"},
    {"the wide factor changes",
     "mul.wide.u32 %s1, %a, %b;\nadd.u32 %a, %a, 1;\nadd.s64 %z, %u, %s1;\nmov.u32 %x, %a;\n"},
    {"wide product and literal",
     "mul.wide.u32 %s1, %a, %b;\nadd.s64 %z, %s1, 0x123456789;\nmul.wide.s32 %s2, %a, 24;\nadd.s64 %s3, %s2, "
     "7;\ncvt.u32.u64 %x, %s3;\n"},
    {"wide product under a guard", "mul.wide.u32 %s1, %a, %b;\n@%p add.s64 %z, %u, %s1;\n@!%p add.s64 %z, %v, %s1;\n"},
    {"wide shift",
     "shl.b64 %s1, %u, 3;\nadd.s64 %z, %v, %s1;\nshl.b64 %s2, %w, 31;\nadd.s64 %s3, %s2, %u;\ncvt.u32.u64 %x, "
     "%s3;\nshr.u64 %s3, %s3, 32;\ncvt.u32.u64 %y, %s3;\n"},
    {"wide shift by words",
     "shl.b64 %s1, %u, 35;\nadd.s64 %z, %v, %s1;\nshl.b64 %s2, %w, 32;\nadd.s64 %s3, %s2, %u;\nshr.u64 %s3, %s3, "
     "16;\ncvt.u32.u64 %x, %s3;\n"},
    {"wide shift into its source", "shl.b64 %s1, %u, 3;\nadd.s64 %u, %v, %s1;\nmov.b64 %z, %u;\n"},
    {"wide shift read twice",
     "shl.b64 %s1, %u, 5;\nadd.s64 %s2, %v, %s1;\nadd.s64 %s3, %w, %s1;\nxor.b64 %z, %s2, %s3;\nxor.b64 %z, %z, "
     "%s1;\n"},
    {"wide shift less", "shl.b64 %s1, %u, 3;\nsub.s64 %s2, %v, %s1;\nsub.s64 %s3, %s1, %w;\nxor.b64 %z, %s2, %s3;\n"},
    {"extended and added",
     "cvt.s64.s32 %s1, %a;\nadd.s64 %z, %u, %s1;\ncvt.u64.u32 %s2, %b;\nadd.s64 %s3, %s2, %w;\nmov.b64 {%x, %y}, "
     "%s3;\n"},
    {"extended, shifted and added",
     "cvt.s64.s32 %s1, %a;\nshl.b64 %s2, %s1, 4;\nadd.s64 %z, %u, %s2;\ncvt.u64.u32 %s3, %b;\nshl.b64 %s4, %s3, "
     "30;\nadd.s64 %s5, %s4, %w;\n"
     "mov.b64 {%x, %y}, %s5;\n"},
    {"extended and shifted far",
     "cvt.s64.s32 %s1, %a;\nshl.b64 %s2, %s1, 31;\nadd.s64 %z, %u, %s2;\ncvt.u64.u32 %s3, %b;\nshl.b64 %s4, %s3, "
     "31;\nadd.s64 %s5, %s4, %w;\n"
     "mov.b64 {%x, %y}, %s5;\n"},
    {"extended, shifted and read again",
     "cvt.s64.s32 %s1, %a;\nshl.b64 %s2, %s1, 4;\nadd.s64 %s3, %u, %s2;\nadd.s64 %s4, %v, %s2;\nxor.b64 %z, %s3, "
     "%s4;\nxor.b64 %z, %z, %s1;\n"
     "xor.b64 %z, %z, %s2;\n"},
    {"extended in the constant bank",
     "cvt.s64.s32 %s1, %a;\nadd.s64 %s2, %d1, %s1;\nshl.b64 %s3, %s1, 3;\nadd.s64 %s4, %d1, %s3;\nsub.s64 %z, %s4, "
     "%s2;\n"
     "cvt.u64.u32 %s5, %b;\nadd.s64 %s5, %d1, %s5;\nsub.s64 %s5, %s5, %d1;\nmov.b64 {%x, %y}, %s5;\n"},
    {"the extended value changes",
     "cvt.s64.s32 %s1, %a;\nshl.b64 %s2, %s1, 4;\nadd.s32 %a, %a, 9;\nadd.s64 %z, %u, %s2;\ncvt.s64.s32 %s3, "
     "%b;\nxor.b32 %b, %b, %c;\n"
     "add.s64 %s4, %w, %s3;\nmov.b64 {%x, %y}, %s4;\n"},
    {"extended into itself",
     "cvt.s64.s32 %s1, %a;\nadd.s64 %s1, %s1, %u;\nmov.b64 %z, %s1;\ncvt.u64.u32 %u, %b;\nadd.s64 %u, %u, %v;\nmov.b64 "
     "{%x, %y}, %u;\n"},
    {"the sign of another",
     "shr.s32 %t1, %b, 31;\nmov.b64 %s1, {%a, %t1};\nadd.s64 %z, %u, %s1;\nshr.u32 %t2, %a, 31;\nmov.b64 %s2, {%a, "
     "%t2};\nadd.s64 %s3, %s2, %w;\n"
     "mov.b64 {%x, %y}, %s3;\n"},
    {"the sign by hand",
     "shr.s32 %t1, %a, 31;\nmov.b64 %s1, {%a, %t1};\nadd.s64 %z, %u, %s1;\nshr.s32 %t2, %b, 30;\nmov.b64 %s2, {%b, "
     "%t2};\nadd.s64 %s3, %s2, %w;\n"
     "mov.b64 {%x, %y}, %s3;\n"},
    {"a sum of halves that are no pair",
     "mov.b64 %s1, {%a, %b};\nmul.wide.u32 %s2, %b, %c;\nadd.s64 %s3, %s1, %s2;\nmov.b64 {%x, %y}, %s3;\n"},
    {"extended in front of a loop",
     "cvt.s64.s32 %s1, %a;\ncvt.s64.s32 %s2, %b;\nmov.u32 %t1, 0;\nAGAIN:\nadd.s64 %z, %z, %s1;\nadd.s64 %s3, %s1, "
     "%s2;\nxor.b64 %z, %z, %s3;\n@%p add.s64 %u, %s2, %u;\nadd.u32 %t1, %t1, 1;\nsetp.lt.u32 %k, %t1, 5;\n@%k bra "
     "AGAIN;\nadd.s64 %v, %v, %s1;\nadd.s64 %w, %w, %s2;\n"},
    {"extended in front of a loop and read otherwise",
     "cvt.s64.s32 %s1, %a;\ncvt.s64.s32 %s2, %b;\nmov.u32 %t1, 0;\nAGAIN:\nadd.s64 %z, %z, %s1;\nsub.s64 %v, %v, "
     "%s2;\nadd.s64 %u, %u, %s2;\nadd.u32 %t1, %t1, 1;\nsetp.lt.u32 %k, %t1, 5;\n@%k bra AGAIN;\nxor.b64 %w, %s1, %w;\n"},
    {"extended in front of a loop, the value changes there",
     "cvt.s64.s32 %s1, %a;\nadd.s32 %t2, %b, 3;\ncvt.s64.s32 %s2, %t2;\nmov.u32 %t1, 0;\nAGAIN:\nadd.s64 %z, %z, "
     "%s1;\nadd.s64 %u, %u, %s2;\nadd.s32 %a, %a, %c;\nadd.u32 %t1, %t1, 1;\nsetp.lt.u32 %k, %t1, 5;\n@%k bra "
     "AGAIN;\nadd.s32 %t2, %t2, 1;\nmov.u32 %x, %t2;\n"},
    {"a value of the round before extended",
     "mov.u32 %t1, 0;\nAGAIN:\nsetp.eq.u32 %q, %t1, 0;\n@%q bra FIRST;\ncvt.s64.s32 %s1, %t2;\nFIRST:\nmad.lo.u32 "
     "%t2, %t1, %a, %b;\n@%q bra NOT;\nadd.s64 %z, %z, %s1;\nNOT:\nadd.u32 %t1, %t1, 1;\nsetp.lt.u32 %k, %t1, 5;\n@%k "
     "bra AGAIN;\n"},
    {"extended in each round",
     "mov.u32 %t1, 0;\nAGAIN:\nmad.lo.u32 %t2, %t1, %a, %b;\ncvt.s64.s32 %s1, %t2;\n@%p bra ODD;\nadd.s64 %z, %z, "
     "%s1;\nbra NEXT;\nODD:\nadd.s64 %u, %s1, %u;\nadd.s64 %z, %z, %u;\nNEXT:\nadd.u32 %t1, %t1, 1;\nsetp.lt.u32 %k, "
     "%t1, 5;\n@%k bra AGAIN;\n"},
    {"extended under a guard",
     "mov.u64 %s2, 3;\n@%p cvt.s64.s32 %s1, %a;\n@%p cvt.s64.s32 %s2, %b;\nmov.u32 %t1, 0;\nAGAIN:\n@%p add.s64 %z, %z, "
     "%s1;\nadd.s64 %u, %u, %s2;\nadd.u32 %t1, %t1, 1;\nsetp.lt.u32 %k, %t1, 5;\n@%k bra AGAIN;\n"},
    {"logic of three", "and.b32 %t1, %a, %b;\nxor.b32 %x, %t1, %c;\nor.b32 %t2, %a, 0xf0f0;\nand.b32 %y, %t2, %b;\n"},
    {"logic of one", "not.b32 %t1, %a;\nand.b32 %x, %t1, %b;\nxor.b32 %t2, %b, -1;\nor.b32 %y, %c, %t2;\n"},
    {"logic of four",
     "and.b32 %t1, %a, %b;\nand.b32 %t2, %c, 255;\nor.b32 %x, %t1, %t2;\nxor.b32 %t3, %a, %c;\nxor.b32 %y, %t3, "
     "%t3;\n"},
    {"logic of the same",
     "and.b32 %t1, %a, %b;\nor.b32 %x, %t1, %a;\nxor.b32 %t2, %a, %b;\nand.b32 %t3, %t2, %b;\nand.b32 %y, %t3, %a;\n"},
    {"lop3 of lop3",
     "lop3.b32 %t1, %a, %b, %c, 0x96;\nlop3.b32 %x, %a, %t1, %b, 0x1b;\nlop3.b32 %t2, %c, 0x77, %b, 0xe4;\nlop3.b32 "
     "%y, %t2, %b, %c, 0x2d;\n"},
    {"logic of two literals", "and.b32 %t1, %a, 0xff00;\nxor.b32 %x, %t1, 0x1234;\n"},
    {"logic read twice", "and.b32 %t1, %a, %b;\nxor.b32 %x, %t1, %c;\nor.b32 %y, %t1, %c;\n"},
    {"long logic",
     "and.b64 %s1, %u, %v;\nxor.b64 %z, %s1, %w;\nand.b64 %s2, %u, 0xffffffff;\nor.b64 %s3, %s2, "
     "0xff00000000;\nmov.b64 {%x, %y}, %s3;\n"},
    {"halves of literals",
     "and.b64 %s1, %u, 0xffff;\nor.b64 %s2, %v, 0x100000000;\nxor.b64 %s3, %s1, %s2;\nand.b64 %z, %s3, "
     "0xffffffff00000000;\n"},
    {"conjunction of comparisons",
     "setp.lt.s32 %q, %a, %b;\nsetp.ge.u32 %r, %b, %c;\nand.pred %k, %q, %r;\nselp.u32 %x, %c, 5, %k;\nxor.pred %k, "
     "%k, %p;\nselp.u32 %y, 1, 2, %k;\n"},
    {"disjunction with a negation",
     "setp.lt.s32 %q, %a, %b;\nsetp.ne.u32 %r, %b, 7;\nnot.pred %q, %q;\nor.pred %k, %q, %r;\nselp.u32 %x, 1, 2, "
     "%k;\n"},
    {"comparisons of floats",
     "setp.lt.f32 %q, %f, %g;\nnot.pred %k, %q;\nsetp.geu.f64 %r, %dd, %de;\nor.pred %k, %k, %r;\nselp.u32 %x, 1, 2, "
     "%k;\n"},
    {"comparisons of 64 bits",
     "setp.lt.s64 %q, %u, %v;\nsetp.gt.u64 %r, %v, %w;\nxor.pred %k, %q, %r;\nselp.u32 %x, 1, 2, %k;\nsetp.le.s64 %q, "
     "%u, %w;\nnot.pred %q, %q;\n"
     "and.pred %k, %q, %p;\nselp.u32 %y, 1, 2, %k;\n"},
    {"comparisons with zero",
     "setp.lt.s64 %q, %u, 0;\nselp.u32 %x, 1, 2, %q;\nsetp.ge.s64 %r, %v, 0;\nsetp.gt.s64 %k, %u, 0;\nselp.u32 %t1, 4, "
     "0, %r;\nselp.u32 %t2, 8, 0, %k;\n"
     "setp.lt.u64 %q, %u, 0;\nselp.u32 %t3, 16, 0, %q;\nadd.u32 %y, %t1, %t2;\nadd.u32 %y, %y, %t3;\n"},
    {"a condition read twice",
     "setp.lt.s32 %q, %a, %b;\nand.pred %k, %q, %p;\nselp.u32 %x, 1, 2, %k;\nselp.u32 %y, 1, 2, %q;\n"},
    {"a condition and itself", "setp.lt.s32 %q, %a, %b;\nxor.pred %k, %q, %q;\nselp.u32 %x, 1, 2, %k;\n"},
    {"an operand of the comparison changes",
     "setp.lt.s32 %q, %a, %b;\nadd.s32 %b, %b, 1;\nand.pred %k, %q, %p;\nselp.u32 %x, %b, 2, %k;\n"},
    {"a guarded comparison",
     "setp.eq.s32 %q, %a, %a;\n@%p setp.lt.s32 %q, %a, %b;\nand.pred %k, %q, %p;\nselp.u32 %x, 1, 2, %k;\n"},
    {"special registers read again",
     "mov.u32 %t1, %laneid;\nmov.u32 %t2, %ntid.x;\nmov.u32 %t3, %tid.x;\n@%p bra SKIP;\nmov.u32 %t4, "
     "%laneid;\nmov.u32 %t5, %ctaid.x;\n"
     "mad.lo.u32 %x, %t4, %t2, %t5;\nSKIP:\nmov.u32 %t5, %ctaid.x;\nmad.lo.u32 %y, %t1, %t3, %t5;\n"},
    {"special registers where they are written again",
     "mov.u32 %t1, %tid.x;\nadd.u32 %t1, %t1, 5;\nmov.u32 %t2, %tid.x;\nsub.u32 %x, %t1, %t2;\n@%p mov.u32 %y, "
     "%tid.x;\n"
     "mov.u32 %t3, %tid.x;\nadd.u32 %y, %y, %t3;\n"},
};

TEST(Combine, MeansWhatItMeant) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    our_code_agrees(kernel(c.body), targets, {1, 3});
  }
}

// Registers of literals that the pass makes are values like others for the passes that take values out of registers: a loop with more alive than full
// occupancy has registers for, literals beside addresses in the constant bank.
TEST(Combine, LiteralsOfAddressesUnderPressure) {
  std::string text =
      ".version 7.0\n.target sm_60\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u64 q)\n{\n"
      ".reg .b32 %r<9>, %a<48>, %v<9>, %n, %m;\n.reg .b64 %d<20>;\n.reg .pred %p;\nld.param.u64 %d1, "
      "[p];\nld.param.u64 %d2, [q];\n"
      "mov.u32 %r3, %tid.x;\nmov.u32 %r5, %ctaid.x;\nmad.lo.u32 %r3, %r5, 96, %r3;\nmov.u32 %n, %ntid.x;\nmul.lo.u32 "
      "%r7, %n, 77;\nxor.b32 %r4, %r7, 9;\n"
      "mov.u32 %r6, 0;\n";
  for (int i = 0; i < 48; ++i) text += fmt::format("add.u32 %a{}, %r3, {};\n", i, 3 * i);
  text += "L:\n";
  for (const auto& [k, literal] : {std::pair{0, 12}, {1, 20}, {2, 28}})
    text += fmt::format("mul.wide.u32 %d{0}, %r6, {1};\nadd.s64 %d{2}, %d{0}, %d1;\nld.global.u32 %v{3}, [%d{2}];\n",
                        3 + k, literal, 9 + k, k);
  for (int i = 0; i < 48; ++i) text += fmt::format("mad.lo.u32 %a{0}, %a{0}, %v{1}, %r4;\n", i, i % 3);
  text +=
      "add.u32 %r6, %r6, 1;\nsetp.lt.u32 %p, %r6, 5;\n@%p bra L;\nmul.wide.u32 %d18, %r3, 768;\nadd.s64 %d19, %d2, "
      "%d18;\n";
  for (int i = 0; i < 48; ++i) text += fmt::format("st.global.u32 [%d19+{}], %a{};\n", 8 * i, i);
  our_code_agrees(text + "ret;\n}\n", targets, {1, 2, 3});
}

// What the pass is for: the pair takes no more instructions than the other statement.
TEST(Combine, IsOneInstruction) {
  struct Pair {
    const char *pair, *one;
    bool pascal;  // there, too
  };
  const Pair pairs[] = {
      {"mul.lo.u32 %t1, %a, %b;\nadd.u32 %x, %t1, %c;\n", "mad.lo.u32 %x, %a, %b, %c;\n", false},
      {"mul.lo.u32 %t1, %a, 77;\nsub.u32 %x, %c, %t1;\n", "mad.lo.u32 %x, %a, 77, %c;\n", false},
      {"shl.b32 %t1, %a, 3;\nadd.u32 %x, %t1, %b;\n", "add.u32 %x, %a, %b;\n", true},
      {"add.u32 %t1, %a, %b;\nsub.u32 %x, %t1, %c;\n", "add.u32 %x, %a, %b;\n", true},
      {"shf.l.wrap.b32 %t1, %a, %a, 7;\nadd.u32 %x, %t1, %b;\n", "add.u32 %x, %a, %b;\n", false},
      {"and.b32 %t1, %a, %b;\nnot.b32 %t2, %t1;\nxor.b32 %x, %t2, %c;\n", "and.b32 %x, %a, %b;\n", true},
      {"and.b32 %t1, %a, 0xff00;\nor.b32 %t2, %t1, %b;\nxor.b32 %x, %t2, %a;\n", "and.b32 %x, %a, 0xff00;\n", true},
      {"mul.wide.s32 %s1, %a, 4;\nadd.s64 %z, %u, %s1;\n", "mad.wide.s32 %z, %a, 4, %u;\n", false},
      {"mul.wide.s32 %s1, %a, 4;\nadd.s64 %z, %u, %s1;\nadd.s64 %w, %v, %s1;\ncvt.u32.u64 %x, %w;\n",
       "mad.wide.s32 %z, %a, 4, %u;\nmad.wide.s32 %w, %a, 4, %v;\ncvt.u32.u64 %x, %w;\n", false},
      {"cvt.s64.s32 %s1, %a;\nshl.b64 %s2, %s1, 4;\nadd.s64 %z, %u, %s2;\n", "mad.wide.s32 %z, %a, 16, %u;\n", false},
      {"cvt.s64.s32 %s1, %a;\nadd.s64 %z, %u, %s1;\n", "mad.wide.s32 %z, %a, 1, %u;\n", false},
      {"shl.b64 %s1, %u, 3;\nadd.s64 %z, %v, %s1;\n", "add.s64 %z, %v, %u;\n", false},
      {"cvt.s64.s32 %s1, %a;\nAGAIN:\nadd.s64 %z, %z, %s1;\nsetp.lt.s64 %k, %z, %u;\n@%k bra AGAIN;\n",
       "AGAIN:\nmad.wide.s32 %z, %a, 1, %z;\nsetp.lt.s64 %k, %z, %u;\n@%k bra AGAIN;\n", false},
      {"setp.lt.s32 %q, %a, %b;\nand.pred %k, %q, %p;\nselp.u32 %x, 1, 2, %k;\n",
       "setp.lt.and.s32 %k, %a, %b, %p;\nselp.u32 %x, 1, 2, %k;\n", true},
      {"setp.lt.f32 %q, %f, %g;\nnot.pred %k, %q;\nor.pred %r, %k, %p;\nselp.u32 %x, 1, 2, %r;\n",
       "setp.lt.f32 %q, %f, %g;\nnot.pred %k, %q;\nselp.u32 %x, 1, 2, %k;\n", true},
      {"setp.lt.s64 %q, %u, 0;\nselp.u32 %x, 1, 2, %q;\n", "setp.lt.s32 %q, %a, 0;\nselp.u32 %x, 1, 2, %q;\n", true},
      {"cvt.rni.f32.f32 %m, %f;\ncvt.rzi.s32.f32 %x, %m;\n", "cvt.rni.s32.f32 %x, %f;\n", false},
      {"sin.approx.f32 %m, %f;\ncos.approx.f32 %n, %f;\nmov.b32 %x, %m;\nmov.b32 %y, %n;\n",
       "sin.approx.f32 %m, %f;\nrsqrt.approx.ftz.f32 %n, %g;\nmov.b32 %x, %m;\nmov.b32 %y, %n;\n", true},
      {"mov.u32 %t1, %tid.x;\nmov.u32 %t2, %tid.x;\nadd.u32 %x, %t1, %t2;\n", "add.u32 %x, %i1, %a;\n", true},
  };
  for (const Pair& p : pairs)
    for (const std::string target : {"sm_61", "sm_86", "sm_90"}) {
      if (target == "sm_61" && !p.pascal) continue;
      const auto size = [&](const char* body) {
        auto made = assemble_for(parse_text("combine.ptx", kernel(body)), target);
        EXPECT_TRUE(made.ok()) << made.error().message;
        return made.ok() ? made->kernels[0].instructions : 0;
      };
      EXPECT_LE(size(p.pair), size(p.one)) << target << ": " << p.pair;
    }
}

// The reduction that sine and cosine have in common is of the angle as it is at both.
TEST(Combine, AnglesAreReducedOnce) {
  const std::string store = "mov.b32 %x, %m;\nmov.b32 %y, %n;\n";
  const std::pair<std::string, std::string> same[] = {
      {"sin.approx.f32 %m, %f;\ncos.approx.f32 %n, %f;\n", "sin.approx.f32 %m, %f;\nmov.f32 %o, %f;\n@%p mov.f32 %o, %f;\ncos.approx.f32 %n, %o;\n"},
      {"sin.approx.f32 %m, %f;\nadd.f32 %f, %f, 0f3F800000;\ncos.approx.f32 %n, %f;\n",
       "add.f32 %o, %f, 0f3F800000;\nsin.approx.f32 %m, %f;\ncos.approx.f32 %n, %o;\n"},
      {"mov.f32 %n, 0f00000000;\nmov.f32 %m, %n;\n@%p sin.approx.f32 %m, %f;\n@!%p cos.approx.f32 %n, %f;\n",
       "sin.approx.f32 %m, %f;\ncos.approx.f32 %n, %f;\nselp.f32 %m, %m, 0f00000000, %p;\nselp.f32 %n, 0f00000000, %n, %p;\n"},
      {"mov.u32 %t1, 0;\nAGAIN:\nsin.approx.f32 %m, %g;\nadd.f32 %o, %g, %h;\ncos.approx.f32 %n, %o;\nadd.u32 %t1, %t1, 1;\nsetp.lt.u32 %q, %t1, 3;\n"
       "mov.f32 %g, %m;\n@%q bra AGAIN;\n",
       "sin.approx.f32 %g, %g;\nsin.approx.f32 %g, %g;\nadd.f32 %o, %g, %h;\ncos.approx.f32 %n, %o;\nsin.approx.f32 %m, %g;\n"}};
  for (const auto& [one, other] : same)
    for (const std::string& target : both_families)
      for (int level : {0, 3}) {
        const auto ran = [&](const std::string& body) {
          auto made = assemble_for(parse_text("angles.ptx", kernel(body + store)), target, level);
          EXPECT_TRUE(made.ok()) << made.error().message;
          return run_simulator(target, made->cubin, "k", input_words());
        };
        auto expected = ran(other), got = ran(one);
        ASSERT_TRUE(expected.ok() && got.ok()) << (got.ok() ? expected.error().message : got.error().message);
        EXPECT_EQ(difference(*expected, *got, 96), "") << target << " -O" << level << ": " << one;
      }
}

// --fmad: what PTX leaves free is one operation with one rounding, as an fma; what has a rounding of its own is not, nor is anything without --fmad.
TEST(Combine, ContractsWhatPtxLeavesFree) {
  struct Contraction {
    const char *text, *fused;     // the same where it contracts
    const char* apart = nullptr;  // the same where it does not, of what is no single operation
  };
  const Contraction contractions[] = {
      {"mul.f32 %m, %f, %g;\nadd.f32 %n, %m, %h;\nmov.b32 %x, %n;\n", "fma.rn.f32 %n, %f, %g, %h;\nmov.b32 %x, %n;\n"},
      {"mul.f32 %m, %f, %g;\nsub.f32 %n, %h, %m;\nmov.b32 %x, %n;\n",
       "neg.f32 %m, %f;\nfma.rn.f32 %n, %m, %g, %h;\nmov.b32 %x, %n;\n"},
      {"mul.f32 %m, %f, 0f40490FDB;\nsub.f32 %n, %m, %h;\nmov.b32 %x, %n;\n",
       "neg.f32 %m, %h;\nfma.rn.f32 %n, %f, 0f40490FDB, %m;\nmov.b32 %x, %n;\n"},
      {"mul.f32 %m, %f, 0f40490FDB;\nsub.f32 %n, %h, %m;\nmov.b32 %x, %n;\n",
       "fma.rn.f32 %n, %f, 0fC0490FDB, %h;\nmov.b32 %x, %n;\n"},
      {"mul.ftz.f32 %m, %f, %g;\nadd.ftz.sat.f32 %n, %m, %h;\nmov.b32 %x, %n;\n",
       "fma.rn.ftz.sat.f32 %n, %f, %g, %h;\nmov.b32 %x, %n;\n"},
      {"mul.f32 %m, %f, %g;\nadd.f32 %n, %m, %h;\nsub.f32 %o, %m, %f;\nmov.b32 %x, %n;\nmov.b32 %y, %o;\n",
       "fma.rn.f32 %n, %f, %g, %h;\nneg.f32 %m, %f;\nfma.rn.f32 %o, %f, %g, %m;\nmov.b32 %x, %n;\nmov.b32 %y, %o;\n"},
      {"mul.f64 %dm, %dd, %de;\nadd.f64 %dn, %dm, %dd;\nmov.b64 %z, %dn;\n",
       "fma.rn.f64 %dn, %dd, %de, %dd;\nmov.b64 %z, %dn;\n"},
      {"mul.f64 %dm, %dd, %de;\nsub.f64 %dn, %dd, %dm;\nmov.b64 %z, %dn;\n",
       "neg.f64 %dm, %dd;\nfma.rn.f64 %dn, %dm, %de, %dd;\nmov.b64 %z, %dn;\n"},
      {"div.approx.ftz.f32 %m, %f, %g;\nsub.ftz.f32 %n, %h, %m;\nmov.b32 %x, %n;\n",
       "rcp.approx.ftz.f32 %m, %g;\nneg.f32 %m, %m;\nfma.rn.ftz.f32 %n, %m, %f, %h;\nmov.b32 %x, %n;\n",
       "rcp.approx.ftz.f32 %m, %g;\nmul.rn.ftz.f32 %m, %m, %f;\nsub.ftz.f32 %n, %h, %m;\nmov.b32 %x, %n;\n"},
      // Not: a rounding, another reader, another flushing, a saturated product, a magnitude.
      {"mul.rn.f32 %m, %f, %g;\nadd.f32 %n, %m, %h;\nmov.b32 %x, %n;\n", nullptr},
      {"mul.f32 %m, %f, %g;\nadd.rn.f32 %n, %m, %h;\nmov.b32 %x, %n;\n", nullptr},
      {"mul.f32 %m, %f, %g;\nadd.f32 %n, %m, %h;\nmov.b32 %x, %n;\nmov.b32 %y, %m;\n", nullptr},
      {"mul.ftz.f32 %m, %f, %g;\nadd.f32 %n, %m, %h;\nmov.b32 %x, %n;\n", nullptr},
      {"mul.sat.f32 %m, %f, %g;\nadd.f32 %n, %m, %h;\nmov.b32 %x, %n;\n", nullptr},
      {"mul.f32 %m, %f, %g;\nabs.f32 %o, %m;\nadd.f32 %n, %o, %h;\nmov.b32 %x, %n;\n", nullptr},
  };
  std::vector<uint64_t> in = input_words();
  std::mt19937_64 random(3);
  for (uint64_t& w : in)  // factors whose products are seldom exact and never NaN, floats and doubles at once
    w = ((random() % 4 ? w : random()) & 0x800fffff807fffff) | 0x3ff000003f800000;
  const auto run = [&](const std::string& body, const std::string& target, bool contract) {
    Options o;
    o.target = isa::find_target(target);
    o.contract = contract;
    o.verify_passes = true;
    Timings timings;
    auto made = assemble(parse_text("contract.ptx", kernel(body)), o, timings);
    EXPECT_TRUE(made.ok()) << made.error().message;
    auto got = run_simulator(target, made->cubin, "k", in);
    EXPECT_TRUE(got.ok()) << got.error().message;
    return *got;
  };
  for (const Contraction& c : contractions) {
    SCOPED_TRACE(c.text);
    const auto plain = run_interpreter(parse_text("plain.ptx", kernel(c.apart ? c.apart : c.text)), "k", in);
    ASSERT_TRUE(plain.ok()) << plain.error().message;
    const auto fused = c.fused ? run_interpreter(parse_text("fused.ptx", kernel(c.fused)), "k", in) : plain;
    ASSERT_TRUE(fused.ok()) << fused.error().message;
    if (c.fused) {
      EXPECT_NE(difference(*plain, *fused, 96), "") << "the inputs do not tell";
    }
    for (const std::string& target : both_families) {
      EXPECT_EQ(difference(*plain, run(c.text, target, false), 96), "") << target;
      EXPECT_EQ(difference(*fused, run(c.text, target, true), 96), "") << target;
    }
  }
}

}  // namespace
}  // namespace rndn::assembler::testing::combine_test
