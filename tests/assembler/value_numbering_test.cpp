// Values that assembler/optimize/value_numbering.cpp computes once, and values that only look the same: our code against the PTX interpreter, on both families, with
// registers to spare and with few.
#include "tests/assembler/three_ways.h"

namespace rndn::assembler::testing::value_numbering_test {
namespace {

// A kernel of the tests' shape: %a, %b, %c are words of the thread's input, %u, %v, %w pairs of them, %f, %g, %h and %dd, %de the same as floats; %p tells of
// the lowest bit of %a, %n is below 4. What the body leaves in %x, %y and %z is stored; [%d4+128] to [%d4+255] are its own. The division by %n makes
// every kernel one that the pass looks through.
std::string kernel(const std::string& body) {
  return ".version 7.1\n.target sm_60\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
         ".reg .b32 %a, %b, %c, %n, %x, %y, %t<24>, %i<8>;\n.reg .b64 %d<8>, %u, %v, %w, %z, %s<12>;\n"
         ".reg .pred %p, %q, %r, %k, %l;\n.reg .b16 %sh<8>;\n.reg .f32 %f, %g, %h, %m<8>;\n.reg .f64 %dd, %de, "
         "%dm<8>;\n"
         "ld.param.u64 %d1, [in];\nld.param.u64 %d2, [out];\nmov.u32 %i1, %tid.x;\nmov.u32 %i2, %ctaid.x;\n"
         "mad.lo.u32 %i3, %i2, 96, %i1;\nmad.wide.u32 %d3, %i3, 24, %d1;\nmad.wide.u32 %d4, %i3, 768, %d2;\n"
         "ld.global.u64 %u, [%d3];\nld.global.u64 %v, [%d3+8];\nld.global.u64 %w, [%d3+16];\n"
         "cvt.u32.u64 %a, %u;\ncvt.u32.u64 %b, %v;\ncvt.u32.u64 %c, %w;\nmov.b32 %f, %a;\nmov.b32 %g, %b;\nmov.b32 %h, "
         "%c;\n"
         "mov.b64 %dd, %u;\nmov.b64 %de, %v;\nand.b32 %i4, %a, 1;\nsetp.ne.u32 %p, %i4, 0;\nshr.u32 %i5, %a, "
         "1;\nand.b32 %n, %i5, 3;\n"
         "mov.u32 %x, 7;\nmov.u32 %y, 9;\nmov.u64 %z, 11;\nrem.u32 %i6, %i3, %n;\nst.global.u32 [%d4+64], %i6;\n" +
         body +
         "st.global.u32 [%d4], %x;\nst.global.u32 [%d4+8], %y;\nst.global.u64 [%d4+16], %z;\nst.global.u64 [%d4+24], "
         "%u;\n"
         "st.global.u32 [%d4+48], %a;\nst.global.u32 [%d4+52], %b;\nst.global.u32 [%d4+56], %c;\n"
         "st.global.u64 [%d4+32], %v;\nst.global.u64 [%d4+40], %w;\nret;\n}\n";
}

struct Case {
  const char* name;
  std::string body;
};
const Case cases[] = {
    {"one divisor",
     "div.u32 %t1, %a, %c;\ndiv.u32 %t2, %b, %c;\nrem.u32 %t3, %i3, %c;\nxor.b32 %x, %t1, %t2;\nadd.u32 %y, %x, "
     "%t3;\n"},
    {"one divisor with signs",
     "div.s32 %t1, %a, %c;\nrem.s32 %t2, %a, %c;\ndiv.s32 %t3, %b, %c;\nrem.s32 %x, %b, %c;\nxor.b32 %y, %t1, "
     "%t2;\nadd.s32 %y, %y, %t3;\n"},
    {"with signs and without",
     "div.s32 %t1, %a, %c;\ndiv.u32 %t2, %a, %c;\nsub.u32 %x, %t1, %t2;\nrem.u32 %y, %b, %c;\n"},
    {"dividend and divisor change places", "div.u32 %x, %a, %c;\ndiv.u32 %y, %c, %a;\n"},
    {"the divisor changes in between", "div.u32 %x, %a, %c;\nadd.u32 %c, %c, 3;\ndiv.u32 %y, %a, %c;\n"},
    {"the divisor changes for some", "div.u32 %x, %a, %c;\n@%p add.u32 %c, %c, 3;\ndiv.u32 %y, %a, %c;\n"},
    {"the divisor changes in an arm",
     "div.u32 %x, %a, %c;\n@%p bra SKIP;\nld.global.u32 %c, [%d3+4];\nst.global.u32 [%d4+128], %c;\nadd.u32 %c, %c, "
     "3;\nSKIP:\ndiv.u32 %y, %a, %c;\n"},
    {"before a branch, in both arms and behind",
     "div.u32 %t1, %i3, %c;\n@%p bra ELSE;\ndiv.u32 %x, %a, %c;\nst.global.u32 [%d4+128], %x;\nbra "
     "JOIN;\nELSE:\ndiv.u32 %x, %b, %c;\n"
     "st.global.u32 [%d4+132], %x;\nJOIN:\nrem.u32 %y, %a, %c;\nadd.u32 %y, %y, %t1;\n"},
    {"in both arms and behind",
     "@%p bra ELSE;\ndiv.u32 %x, %a, %c;\nst.global.u32 [%d4+128], %x;\nbra JOIN;\nELSE:\ndiv.u32 %x, %b, "
     "%c;\nst.global.u32 [%d4+132], %x;\nJOIN:\n"
     "rem.u32 %y, %a, %c;\n"},
    {"in one arm and behind",
     "@%p bra JOIN;\ndiv.u32 %x, %a, %c;\nst.global.u32 [%d4+128], %x;\nst.global.u32 [%d4+132], %a;\nJOIN:\nrem.u32 "
     "%y, %a, %c;\n"},
    {"under a guard and then without", "@%p div.u32 %x, %a, %c;\nrem.u32 %y, %b, %c;\n"},
    {"without and then under a guard", "div.u32 %x, %b, %c;\n@%p rem.u32 %y, %b, %c;\n"},
    {"under opposite guards", "@%p div.u32 %x, %a, %c;\n@!%p div.u32 %y, %a, %c;\n"},
    {"short work under guards",
     "div.u32 %t1, %a, %c;\n@%p popc.b32 %t2, %t1;\n@%p add.u32 %x, %t2, 1;\npopc.b32 %t3, %t1;\n@!%p popc.b32 %t2, "
     "%b;\nadd.u32 %y, %t3, %t1;\n"},
    {"in a loop of no or some rounds",
     "mov.u32 %t1, 0;\nsetp.eq.u32 %q, %n, 0;\n@%q bra DONE;\nAGAIN:\nadd.u32 %t2, %a, %t1;\ndiv.u32 %t3, %t2, "
     "%c;\nxor.b32 %x, %x, %t3;\nadd.u32 %t1, "
     "%t1, 1;\nsetp.lt.u32 %q, %t1, %n;\n@%q bra AGAIN;\nDONE:\nrem.u32 %y, %b, %c;\n"},
    {"the divisor changes round a loop",
     "mov.u32 %t1, 0;\nAGAIN:\ndiv.u32 %t3, %a, %c;\nxor.b32 %x, %x, %t3;\nadd.u32 %c, %c, 5;\nadd.u32 %t1, %t1, "
     "1;\nsetp.le.u32 %q, %t1, %n;\n@%q bra "
     "AGAIN;\nrem.u32 %y, %a, %c;\n"},
    {"in front of a loop and in it, the divisor changes at its end",
     "div.u32 %y, %b, %c;\nmov.u32 %t1, 0;\nAGAIN:\nrem.u32 %t3, %a, %c;\nadd.u32 %x, %x, %t3;\nadd.u32 %t1, %t1, "
     "1;\nadd.u32 %c, %c, %t1;\nsetp.le.u32 "
     "%q, %t1, %n;\n@%q bra AGAIN;\n"},
    {"in a loop within a loop",
     "mov.u32 %t1, 0;\nOUTER:\nadd.u32 %t4, %c, %t1;\nmov.u32 %t2, 0;\nINNER:\nadd.u32 %t5, %a, %t2;\ndiv.u32 %t3, "
     "%t5, %t4;\nxor.b32 %x, %x, %t3;\n"
     "add.u32 %t2, %t2, 1;\nsetp.le.u32 %q, %t2, %n;\n@%q bra INNER;\nrem.u32 %t6, %b, %t4;\nadd.u32 %y, %y, "
     "%t6;\nadd.u32 %t1, %t1, 1;\nsetp.lt.u32 %r, "
     "%t1, 3;\n@%r bra OUTER;\n"},
    // %t5 is read before it is written: what the last round left, though %t4 has the value of this round.
    {"read in the next round, in one block",
     "mov.u32 %t3, %a;\nmov.u32 %t1, 0;\nAGAIN:\npopc.b32 %t4, %t3;\nadd.u32 %y, %y, %t4;\nsetp.ne.u32 %q, %t1, "
     "0;\nmov.u32 %t6, 0;\n@%q mov.u32 %t6, %t5;\nmad.lo.u32 "
     "%x, %x, 3, %t6;\npopc.b32 %t5, %t3;\nadd.u32 %y, %y, %t5;\nmad.lo.u32 %t3, %t3, 77, %b;\nadd.u32 %t1, %t1, "
     "1;\nsetp.lt.u32 %q, %t1, 5;\n@%q bra "
     "AGAIN;\n"},
    {"read in the next round, in another block",
     "mov.u32 %t3, %a;\nmov.u32 %t1, 0;\nAGAIN:\npopc.b32 %t4, %t3;\nadd.u32 %y, %y, %t4;\nsetp.eq.u32 %q, %t1, "
     "0;\n@%q bra FIRST;\nrem.u64 %s1, %u, "
     "%w;\nst.global.u64 [%d4+128], %s1;\nadd.u32 %x, %x, %t5;\nshl.b32 %x, %x, 3;\nFIRST:\npopc.b32 %t5, "
     "%t3;\nadd.u32 %y, %y, %t5;\nmad.lo.u32 %t3, %t3, "
     "77, %b;\nadd.u32 %t1, %t1, 1;\nsetp.lt.u32 %q, %t1, 5;\n@%q bra AGAIN;\n"},
    // The inner loop does not run in every round of the outer one: then %t5 has to keep what it had.
    {"invariant, but read where its loop did not run",
     "mov.u32 %t1, 0;\nOUTER:\nsetp.eq.u32 %q, %t1, 0;\n@%q bra FIRST;\nrem.u64 %s1, %u, %w;\nst.global.u64 [%d4+128], "
     "%s1;\nadd.u32 %x, %x, %t5;\nshl.b32 "
     "%x, %x, 3;\nFIRST:\nmad.lo.u32 %t3, %t1, 77, %c;\nand.b32 %t7, %t1, 1;\nsetp.ne.u32 %r, %t7, 0;\nmov.u32 %t2, "
     "0;\n@%r bra OUT;\nINNER:\npopc.b32 %t5, "
     "%t3;\nadd.u32 %y, %y, %t5;\nst.global.u32 [%d4+136], %y;\nadd.u32 %t2, %t2, 1;\nsetp.lt.u32 %r, %t2, 3;\n@%r bra "
     "INNER;\nOUT:\nadd.u32 %t1, %t1, "
     "1;\nsetp.lt.u32 %q, %t1, 6;\n@%q bra OUTER;\n"},
    {"invariant but for a guarded write",
     "mov.u32 %t1, 0;\nmov.u32 %t2, %b;\nAGAIN:\npopc.b32 %t3, %t2;\nmad.lo.u32 %x, %x, 3, %t3;\nsetp.eq.u32 %r, %t1, "
     "1;\n@%r add.u32 %t2, %t2, %a;\nadd.u32 "
     "%t1, %t1, 1;\nsetp.le.u32 %q, %t1, %n;\n@%q bra AGAIN;\n"},
    {"invariant in one arm of a loop",
     "mov.u32 %t1, 0;\nAGAIN:\nand.b32 %t2, %t1, 1;\nsetp.ne.u32 %r, %t2, 0;\n@%r bra SKIP;\nrem.u64 %s1, %u, "
     "%w;\nst.global.u64 [%d4+128], %s1;\ndiv.s32 %t3, "
     "%a, %c;\nadd.u32 %x, %x, %t3;\nSKIP:\nrem.s32 %t4, %t1, %b;\nadd.u32 %y, %y, %t4;\nadd.u32 %t1, %t1, "
     "1;\nsetp.le.u32 %q, %t1, %n;\n@%q bra AGAIN;\n"},
    {"an operand of the last round",
     "mov.u32 %t3, %a;\nmov.u32 %t1, 0;\nbra FIRST;\nAGAIN:\npopc.b32 %t6, %t4;\nmad.lo.u32 %x, %x, 3, "
     "%t6;\nFIRST:\nxor.b32 %t4, %t3, %t1;\npopc.b32 %t7, "
     "%t4;\nadd.u32 %y, %y, %t7;\nmad.lo.u32 %t3, %t3, 77, %b;\nadd.u32 %t1, %t1, 1;\nsetp.lt.u32 %q, %t1, 5;\n@%q bra "
     "AGAIN;\n"},
    {"a copy of what then changes",
     "mov.b32 %t1, %a;\npopc.b32 %t2, %a;\nadd.u32 %a, %a, %b;\npopc.b32 %t3, %a;\npopc.b32 %t4, %t1;\nmad.lo.u32 %x, "
     "%t2, 64, %t3;\nmad.lo.u32 %y, %t4, 64, "
     "%t2;\n"},
    {"two writes of the result",
     "popc.b32 %x, %a;\nst.global.u32 [%d4+128], %x;\npopc.b32 %y, %a;\nadd.u32 %y, %y, %x;\npopc.b32 %x, "
     "%b;\npopc.b32 %t1, %b;\nadd.u32 %y, %y, %t1;\n"},
    {"the earlier result is written again",
     "popc.b32 %t1, %a;\nadd.u32 %x, %t1, 1;\nadd.u32 %t1, %t1, %b;\npopc.b32 %t2, %a;\nadd.u32 %y, %t2, 1;\nxor.b32 "
     "%x, %x, %t1;\n"},
    {"the later result is written again",
     "popc.b32 %t1, %a;\nadd.u32 %x, %t1, 1;\npopc.b32 %t2, %a;\nadd.u32 %y, %t2, 1;\n@%p add.u32 %t2, %t2, "
     "%b;\nxor.b32 %x, %x, %t2;\n"},
    {"predicates",
     "setp.lt.s32 %q, %a, %b;\nselp.u32 %t1, %c, 5, %q;\nsetp.lt.s32 %r, %a, %b;\nselp.u32 %t2, 3, %c, %r;\nadd.u32 "
     "%x, %t1, %t2;\nsetp.lt.u32 %k, %a, "
     "%b;\nselp.u32 %t3, 1, 2, %k;\nsetp.le.s32 %l, %a, %b;\nselp.u32 %t4, 16, 32, %l;\nadd.u32 %y, %t3, %t4;\n"},
    {"predicates of an operand that changes",
     "setp.lt.s32 %q, %a, %b;\nselp.u32 %x, 1, 2, %q;\nadd.s32 %b, %b, 1;\nsetp.lt.s32 %r, %a, %b;\nselp.u32 %y, 1, 2, "
     "%r;\n"},
    {"predicates that guard and branch",
     "setp.lt.s32 %q, %a, %b;\n@%q add.u32 %x, %x, %c;\nsetp.lt.s32 %r, %a, %b;\n@%r bra SKIP;\nst.global.u32 "
     "[%d4+128], %b;\nst.global.u32 [%d4+132], "
     "%c;\nrem.u32 %y, %a, %b;\nSKIP:\nsetp.lt.s32 %k, %a, %b;\n@!%k add.u32 %x, %x, 1;\n"},
    {"roundings",
     "add.rn.f32 %m1, %f, %g;\nadd.rz.f32 %m2, %f, %g;\nadd.rm.f32 %m3, %f, %g;\nadd.rn.f32 %m4, %f, %g;\nsetp.nan.f32 "
     "%q, %m1, %m1;\nmov.b32 %t1, %m1;\nmov.b32 "
     "%t2, %m2;\nmov.b32 %t3, %m3;\nmov.b32 %t4, %m4;\nxor.b32 %t1, %t1, %t2;\nmad.lo.u32 %t1, %t3, 3, "
     "%t1;\nmad.lo.u32 %t1, %t4, 5, %t1;\nselp.b32 %x, 0, %t1, "
     "%q;\n"},
    {"flushing and saturation",
     "mul.rn.f32 %m1, %f, %g;\nmul.rn.ftz.f32 %m2, %f, %g;\nmul.rn.sat.f32 %m3, %f, %g;\nmul.rn.f32 %m4, %f, "
     "%g;\nsetp.nan.f32 %q, %m1, %m1;\nmov.b32 %t1, "
     "%m1;\nmov.b32 %t2, %m2;\nmov.b32 %t3, %m3;\nmov.b32 %t4, %m4;\nxor.b32 %t1, %t1, %t2;\nmad.lo.u32 %t1, %t3, 3, "
     "%t1;\nmad.lo.u32 %t1, %t4, 5, "
     "%t1;\nselp.b32 %x, 0, %t1, %q;\n"},
    {"signs and magnitudes",
     "neg.f32 %m5, %g;\nabs.f32 %m6, %g;\nadd.rn.f32 %m1, %f, %g;\nadd.rn.f32 %m2, %f, %m5;\nadd.rn.f32 %m3, %f, "
     "%m6;\nadd.rn.f32 %m4, %f, %g;\nsetp.nan.f32 %q, "
     "%m1, %m1;\nsetp.nan.f32 %r, %m2, %m2;\nor.pred %q, %q, %r;\nmov.b32 %t1, %m1;\nmov.b32 %t2, %m2;\nmov.b32 %t3, "
     "%m3;\nmov.b32 %t4, %m4;\nxor.b32 %t1, "
     "%t1, %t2;\nmad.lo.u32 %t1, %t3, 3, %t1;\nmad.lo.u32 %t1, %t4, 5, %t1;\nselp.b32 %x, 0, %t1, %q;\n"},
    {"conversions that round otherwise",
     "cvt.rn.f32.u32 %m1, %a;\ncvt.rz.f32.u32 %m2, %a;\ncvt.rn.f32.s32 %m3, %a;\ncvt.rn.f32.u32 %m4, %a;\nmov.b32 %t1, "
     "%m1;\nmov.b32 %t2, %m2;\nmov.b32 %t3, "
     "%m3;\nmov.b32 %t4, %m4;\nxor.b32 %x, %t1, %t2;\nmad.lo.u32 %y, %t3, 3, %t4;\ncvt.rni.s32.f32 %t5, "
     "%f;\ncvt.rzi.s32.f32 %t6, %f;\ncvt.rni.s32.f32 %t7, "
     "%f;\nadd.u32 %x, %x, %t5;\nmad.lo.u32 %y, %t6, 5, %y;\nadd.u32 %y, %y, %t7;\n"},
    {"one divisor of floats",
     "div.rn.f32 %m1, %f, %h;\ndiv.rn.f32 %m2, %g, %h;\nrcp.rn.f32 %m3, %h;\nsetp.nan.f32 %q, %m1, %m1;\nsetp.nan.f32 "
     "%r, %m2, %m2;\nor.pred %q, %q, "
     "%r;\nsetp.nan.f32 %r, %m3, %m3;\nor.pred %q, %q, %r;\nmov.b32 %t1, %m1;\nmov.b32 %t2, %m2;\nmov.b32 %t3, "
     "%m3;\nselp.b32 %x, 0, %t1, %q;\nxor.b32 %t2, "
     "%t2, %t3;\nselp.b32 %y, 0, %t2, %q;\n"},
    {"one divisor of doubles",
     "mov.b64 %dm7, %w;\ndiv.rn.f64 %dm1, %dd, %dm7;\ndiv.rn.f64 %dm2, %de, %dm7;\ndiv.rn.f64 %dm3, %dd, "
     "%de;\nsetp.nan.f64 %q, %dm1, %dm1;\nsetp.nan.f64 "
     "%r, %dm2, %dm2;\nor.pred %q, %q, %r;\nsetp.nan.f64 %r, %dm3, %dm3;\nor.pred %q, %q, %r;\nmov.b64 %s1, "
     "%dm1;\nmov.b64 %s2, %dm2;\nmov.b64 %s3, "
     "%dm3;\nxor.b64 %s1, %s1, %s2;\nadd.u64 %s1, %s1, %s3;\nselp.b64 %z, 0, %s1, %q;\n"},
    {"one divisor of doubles in arms",
     "mov.b64 %dm7, %w;\ndiv.rn.f64 %dm1, %dd, %dm7;\n@%p bra ELSE;\ndiv.rn.f64 %dm2, %de, %dm7;\nbra "
     "JOIN;\nELSE:\nmul.rn.f64 %dm3, %de, "
     "%de;\ndiv.rn.f64 %dm2, %dm3, %dm7;\nJOIN:\nsetp.nan.f64 %q, %dm1, %dm1;\nsetp.nan.f64 %r, %dm2, %dm2;\nor.pred "
     "%q, %q, %r;\nmov.b64 %s1, "
     "%dm1;\nmov.b64 %s2, %dm2;\nxor.b64 %s1, %s1, %s2;\nselp.b64 %z, 0, %s1, %q;\n"},
    {"one divisor of 64 bits",
     "div.u64 %s1, %u, %w;\nrem.u64 %s2, %v, %w;\ndiv.s64 %s3, %u, %w;\nxor.b64 %z, %s1, %s2;\nadd.u64 %z, %z, %s3;\n"},
    {"pairs that are read whole",
     "mul.wide.u32 %s1, %a, %b;\nadd.u64 %s2, %u, %s1;\nmul.wide.u32 %s3, %a, %b;\nadd.u64 %s4, %v, %s3;\nxor.b64 %z, "
     "%s2, %s4;\ncvt.rn.f64.u64 %dm1, "
     "%s1;\ncvt.rn.f64.u64 %dm2, %s3;\nadd.rn.f64 %dm3, %dm1, %dm2;\nmov.b64 {%x, %y}, %dm3;\n"},
    {"pairs of halves",
     "popc.b32 %t1, %a;\npopc.b32 %t2, %b;\nmov.b64 %s1, {%t1, %t2};\ncvt.rn.f64.u64 %dm1, %s1;\npopc.b32 %t3, "
     "%a;\npopc.b32 %t4, %b;\nmov.b64 %s2, {%t4, "
     "%t3};\ncvt.rn.f64.u64 %dm2, %s2;\nmov.b64 %s3, {%t3, %t4};\ncvt.rn.f64.u64 %dm3, %s3;\nsub.rn.f64 %dm4, %dm1, "
     "%dm2;\nmov.b64 {%x, %y}, "
     "%dm4;\nmov.b64 %z, %dm3;\n"},
    {"halves of which one changes",
     "add.u64 %s1, %u, %v;\nst.global.u64 [%d4+128], %s1;\nadd.u64 %s2, %u, %v;\n@%p add.u64 %s2, %s2, 5;\nmov.b64 "
     "{%x, %t1}, %s2;\nadd.u64 %s3, %u, "
     "%v;\nmov.b64 {%t2, %y}, %s3;\nst.global.u64 [%d4+136], %s3;\nxor.b64 %z, %s1, %s3;\n"},
    {"pairs that have one half in common",
     "mov.b64 {%t1, %t2}, %v;\nmov.b64 %s1, {%t1, %c};\nadd.u64 %s2, %u, %v;\nadd.u64 %s3, %u, %s1;\nst.global.u64 "
     "[%d4+128], %s2;\nst.global.u64 [%d4+136], "
     "%s3;\ncvt.rn.f64.u64 %dm1, %s3;\nmov.b64 %z, %dm1;\nmov.b64 %s4, {%c, %t2};\nadd.u64 %s5, %u, "
     "%s4;\nst.global.u64 [%d4+144], %s5;\n"},
    {"vectors of shared words",
     "popc.b32 %t1, %a;\npopc.b32 %t2, %b;\nst.global.v2.u32 [%d4+128], {%t1, %t2};\npopc.b32 %t3, %a;\npopc.b32 %t4, "
     "%b;\nst.global.v4.u32 [%d4+144], {%t4, "
     "%t3, %t1, %t2};\nst.global.v2.u32 [%d4+160], {%t3, %t4};\n"},
    {"constants",
     "mul.lo.u32 %t1, %a, 65537;\nmul.lo.u32 %t2, %a, 65536;\nmul.lo.u32 %t3, %a, 65537;\nxor.b32 %x, %t1, "
     "%t2;\nadd.u32 %y, %t2, %t3;\nmul.lo.u64 %s1, %u, "
     "0x100000001;\nmul.lo.u64 %s2, %u, 0x200000001;\nmul.lo.u64 %s3, %u, 0x100000001;\nxor.b64 %z, %s1, %s2;\nadd.u64 "
     "%z, %z, %s3;\n"},
    {"zeros on either side",
     "selp.b32 %t1, %a, 0, %p;\nselp.b32 %t2, 0, %a, %p;\nprmt.b32 %t3, %a, 0, 0x6420;\nprmt.b32 %t4, 0, %a, "
     "0x6420;\nshf.l.wrap.b32 %t5, %a, 0, "
     "7;\nshf.l.wrap.b32 %t6, 0, %a, 7;\nmad.lo.u32 %x, %t1, 3, %t2;\nmad.lo.u32 %y, %t3, 3, %t4;\nadd.u32 %x, %x, "
     "%t5;\nmad.lo.u32 %y, %t6, 5, %y;\n"},
    {"literals beside two registers",
     "and.b32 %t1, %a, %b;\nxor.b32 %t2, %a, %b;\nor.b32 %t3, %a, %b;\nmad.lo.u32 %t1, %t2, 3, %t1;\nmad.lo.u32 %x, "
     "%t3, 5, %t1;\nprmt.b32 %t4, %a, %b, "
     "0x1234;\nprmt.b32 %t5, %a, %b, 0x4321;\nshf.l.wrap.b32 %t6, %a, %b, 3;\nshf.l.wrap.b32 %t7, %a, %b, "
     "5;\nmad.lo.u32 %t4, %t5, 3, %t4;\nmad.lo.u32 %t4, "
     "%t6, 5, %t4;\nmad.lo.u32 %y, %t7, 7, %t4;\n"},
    {"constants of 16 bits",
     "cvt.u16.u32 %sh1, %a;\nmul.lo.u16 %sh2, %sh1, 0xffb9;\nmul.lo.u16 %sh3, %sh1, 0x7fb9;\nmul.lo.u16 %sh4, %sh1, "
     "0xffb9;\ncvt.u32.u16 %x, %sh2;\ncvt.s32.s16 "
     "%y, %sh3;\ncvt.s32.s16 %t1, %sh4;\nadd.s32 %y, %y, %t1;\n"},
    {"constants of doubles",
     "cvt.rn.f64.s32 %dm1, %a;\nmul.rn.f64 %dm2, %dm1, 0d3FF8000000000000;\nmul.rn.f64 %dm3, %dm1, "
     "0d3FF8000000000001;\nmul.rn.f64 %dm4, %dm1, "
     "0d3FF8000000000000;\nsub.rn.f64 %dm5, %dm2, %dm3;\nmov.b64 %s1, %dm5;\nmov.b64 %s2, %dm4;\nxor.b64 %z, %s1, "
     "%s2;\n"},
    {"loads of what changes",
     "ld.global.u32 %t1, [%d4+128];\nst.global.u32 [%d4+128], %a;\nld.global.u32 %t2, [%d4+128];\nst.global.u32 "
     "[%d4+128], %b;\nld.global.u32 %t3, "
     "[%d4+128];\nmad.lo.u32 %x, %t2, 3, %t1;\nmad.lo.u32 %y, %t3, 5, %x;\n"},
    {"atomics",
     "st.global.u32 [%d4+128], %a;\natom.global.add.u32 %t1, [%d4+128], 1;\natom.global.add.u32 %t2, [%d4+128], "
     "1;\nmad.lo.u32 %x, %t1, 3, "
     "%t2;\natom.global.add.u32 %t3, [%d4+128], 1;\ndiv.u32 %y, %t3, %c;\n"},
    {"lanes",
     "shfl.sync.down.b32 %t1, %a, 1, 31, -1;\ndiv.u32 %x, %b, %t1;\nshfl.sync.down.b32 %t2, %a, 1, 31, -1;\ndiv.u32 "
     "%y, %c, %t2;\n@%p bra SKIP;\nrem.u32 %t3, %c, "
     "%t1;\nst.global.u32 [%d4+128], %t3;\nst.global.u32 [%d4+132], %c;\nSKIP:\nrem.u32 %t4, %b, %t1;\nst.global.u32 "
     "[%d4+136], %t4;\n"},
    {"votes of other lanes",
     "vote.sync.ballot.b32 %t1, %p, -1;\nxor.b32 %x, %t1, %a;\n@%p bra SKIP;\nactivemask.b32 %t2;\npopc.b32 %t3, "
     "%t2;\nst.global.u32 [%d4+128], "
     "%t3;\nst.global.u32 [%d4+132], %t3;\nrem.u32 %y, %a, %c;\nSKIP:\nbar.warp.sync -1;\nvote.sync.ballot.b32 %t5, "
     "%p, -1;\npopc.b32 %t6, %t5;\nadd.u32 %x, %x, "
     "%t6;\n"},
    {"carries",
     "add.cc.u32 %t1, %a, %b;\naddc.u32 %x, %a, %c;\nadd.cc.u32 %t2, %b, %c;\naddc.u32 %y, %a, %c;\nadd.cc.u32 %t3, "
     "%a, %b;\naddc.u32 %t4, %a, %c;\nxor.b32 %t1, "
     "%t1, %t2;\nxor.b32 %t1, %t1, %t3;\nmad.lo.u32 %y, %t4, 7, %y;\nadd.u32 %y, %y, %t1;\n"},
};

TEST(CommonValues, MeanWhatTheyMeant) {
  const std::vector<uint64_t> in = input_words();
  for (const Case& c : cases) {
    const ptx::Module module = parse_text("common_values.ptx", kernel(c.body));
    auto expected = run_interpreter(module, "k", in);
    ASSERT_TRUE(expected.ok()) << c.name << ": " << expected.error().message;
    SCOPED_TRACE(c.name);
    our_code(module, both_families, {0, 3}, in, *expected);
    for (const std::string& target : both_families) {
      auto made = assemble_for(module, target, 3, 24);
      ASSERT_TRUE(made.ok()) << target << ": " << made.error().message;
      auto got = run_simulator(target, made->cubin, "k", in);
      ASSERT_TRUE(got.ok()) << target << ": " << got.error().message;
      EXPECT_EQ(difference(*expected, *got, 96), "") << target << " with 24 registers";
    }
  }
}

std::vector<isa::Instruction> code_of(const std::string& target, const std::string& body) {
  const isa::Target& t = *isa::find_target(target);
  auto made = assemble_for(parse_text("common_values.ptx", kernel(body)), target);
  EXPECT_TRUE(made.ok()) << made.error().message;
  std::vector<isa::Instruction> code;
  if (!made.ok()) return code;
  auto image = cubin::read(made->cubin);
  EXPECT_TRUE(image.ok()) << image.error().message;
  for (const isa::Located& l : isa::unpack(t, image->kernels[0].code)) {
    isa::Instruction i;
    EXPECT_TRUE(isa::decode(t, l.word, l.address, i));
    code.push_back(i);
  }
  return code;
}
size_t count(const std::string& target, const std::string& body, isa::Mnemonic mnemonic) {
  const std::vector<isa::Instruction> code = code_of(target, body);
  return static_cast<size_t>(std::ranges::count(code, mnemonic, &isa::Instruction::mnemonic));
}

// What the pass is for: the kernel's own division, and one reciprocal of each other divisor.
TEST(CommonValues, AreComputedOnce) {
  struct Quotients {
    const char* body;
    size_t reciprocals;
  };
  const Quotients all[] = {
      {"div.u32 %t1, %a, %c;\ndiv.u32 %t2, %b, %c;\nrem.u32 %x, %t1, %c;\nrem.u32 %y, %t2, %c;\n", 1},
      {"div.s32 %t1, %a, %c;\nrem.s32 %t2, %a, %c;\ndiv.s32 %x, %b, %c;\nadd.s32 %y, %t1, %t2;\n", 1},
      {"div.u32 %x, %a, %c;\ndiv.u32 %y, %c, %b;\n", 2},
      {"div.u32 %x, %a, %c;\nadd.u32 %c, %c, 3;\ndiv.u32 %y, %a, %c;\n", 2},
      {"div.u32 %t1, %i3, %c;\n@%p bra ELSE;\ndiv.u32 %x, %a, %c;\nst.global.u32 [%d4+128], %x;\nbra "
       "JOIN;\nELSE:\ndiv.u32 %x, %b, %c;\nst.global.u32 [%d4+132], "
       "%x;\nJOIN:\nrem.u32 %y, %a, %c;\nadd.u32 %y, %y, %t1;\n",
       1},
      {"@%p bra ELSE;\ndiv.u32 %x, %a, %c;\nst.global.u32 [%d4+128], %x;\nbra JOIN;\nELSE:\ndiv.u32 %x, %b, "
       "%c;\nst.global.u32 [%d4+132], %x;\nJOIN:\nrem.u32 %y, "
       "%a, %c;\n",
       3},
  };
  for (const std::string& target : both_families)
    for (const Quotients& q : all)
      EXPECT_EQ(count(target, q.body, isa::Mnemonic::MUFU), q.reciprocals + 1) << target << ": " << q.body;
}

// The reciprocal of a divisor that does not change is in no loop, that of another one is.
TEST(CommonValues, AreComputedBeforeLoops) {
  struct Loop {
    const char* body;
    size_t reciprocals;  // in loops
  };
  const Loop loops[] = {
      {"mov.u32 %t1, 0;\nAGAIN:\nadd.u32 %t2, %a, %t1;\ndiv.u32 %t3, %t2, %c;\nxor.b32 %x, %x, %t3;\nst.global.u32 "
       "[%d4+128], %x;\nadd.u32 %t1, %t1, "
       "1;\nsetp.le.u32 %q, %t1, %n;\n@%q bra AGAIN;\n",
       0},
      {"mov.u32 %t1, 0;\nAGAIN:\nadd.u32 %t2, %c, %t1;\ndiv.u32 %t3, %a, %t2;\nxor.b32 %x, %x, %t3;\nst.global.u32 "
       "[%d4+128], %x;\nadd.u32 %t1, %t1, "
       "1;\nsetp.le.u32 %q, %t1, %n;\n@%q bra AGAIN;\n",
       1},
      {"mov.u32 %t1, 0;\nOUTER:\nadd.u32 %t4, %c, %t1;\nmov.u32 %t2, 0;\nINNER:\nadd.u32 %t5, %a, %t2;\ndiv.u32 %t3, "
       "%t5, %t4;\nxor.b32 %x, %x, "
       "%t3;\nrem.u32 %t6, %t5, %b;\nadd.u32 %y, %y, %t6;\nst.global.u32 [%d4+128], %y;\nadd.u32 %t2, %t2, "
       "1;\nsetp.le.u32 %q, %t2, %n;\n@%q bra "
       "INNER;\nadd.u32 %t1, %t1, 1;\nsetp.lt.u32 %r, %t1, 3;\n@%r bra OUTER;\n",
       1},
  };
  for (const std::string& target : both_families)
    for (const Loop& loop : loops) {
      const isa::Target& t = *isa::find_target(target);
      const std::vector<isa::Instruction> code = code_of(target, loop.body);
      size_t found = 0, repeated = 0;
      for (size_t m = 0; m < code.size(); ++m) {
        if (code[m].mnemonic != isa::Mnemonic::MUFU) continue;
        const auto at = static_cast<int64_t>(isa::instruction_address(t, m));
        const auto leads_back = [&](const isa::Instruction& i) {
          return i.mnemonic == isa::Mnemonic::BRA && i.operands[i.operand_count - 1].value <= at;
        };
        ++found;
        repeated += std::any_of(code.begin() + static_cast<ptrdiff_t>(m), code.end() - 1,
                                [&](const isa::Instruction& i) { return leads_back(i) && i.guard != isa::PT; });
      }
      EXPECT_GT(found, repeated) << target << ": " << loop.body;
      EXPECT_EQ(repeated, loop.reciprocals) << target << ": " << loop.body;
    }
}

// What has an effect, or depends on more than its operands, is done as often as it is written.
TEST(CommonValues, AreNoEffects) {
  struct Twice {
    const char* body;
    isa::Mnemonic mnemonic;
  };
  using M = isa::Mnemonic;
  const Twice all[] = {
      {"mov.u32 %x, %clock;\nmov.u32 %t1, %clock;\nsub.u32 %y, %t1, %x;\n", M::CS2R},
      {"ld.volatile.global.u32 %x, [%d4+128];\nld.volatile.global.u32 %y, [%d4+128];\n", M::LDG},
      {"atom.global.add.u32 %x, [%d4+128], 1;\natom.global.add.u32 %y, [%d4+128], 1;\n", M::ATOMG},
      {"vote.sync.ballot.b32 %x, %p, -1;\nvote.sync.ballot.b32 %y, %p, -1;\n", M::VOTE},
      {"shfl.sync.down.b32 %x, %a, 1, 31, -1;\nshfl.sync.down.b32 %y, %a, 1, 31, -1;\n", M::SHFL},
  };
  for (const std::string target : {"sm_86", "sm_90"})
    for (const Twice& x : all)
      EXPECT_EQ(count(target, x.body, x.mnemonic), count(target, "", x.mnemonic) + 2) << target << ": " << x.body;
}

}  // namespace
}  // namespace rndn::assembler::testing::value_numbering_test
