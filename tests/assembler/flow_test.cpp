// Regions of control flow: random graphs run against the PTX interpreter, and the checker of regions on code with faults put in.
#include "assembler/passes.h"
#include "tests/assembler/support.h"

namespace rndn::assembler::testing {
namespace {

// A kernel of `count` blocks, each of which counts its visits in the lane's row and then goes on, or to any other block, by a condition that is
// the lane's own or the block's. Back edges end after a number of rounds. All lanes meet in the last block, where a shuffle needs all of them.
std::string random_kernel(uint32_t seed, uint32_t count) {
  std::mt19937 random(seed);
  std::string s =
      ".version 6.0\n.target sm_60\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
      ".reg .pred %p<4>;\n.reg .b32 %r<24>;\n.reg .b64 %rd<8>;\n"
      "ld.param.u64 %rd1, [in];\nld.param.u64 %rd2, [out];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\n"
      "mov.u32 %r3, %ntid.x;\nmad.lo.u32 %r4, %r2, %r3, %r1;\nmad.wide.u32 %rd3, %r4, 24, %rd1;\n"
      "mad.wide.u32 %rd4, %r4, 64, %rd2;\nld.global.u32 %r5, [%rd3];\nld.global.u32 %r6, [%rd3+8];\n"
      "mad.lo.u32 %r5, %r1, 0x9e3779b1, %r5;\nmov.u32 %r10, 1;\nmov.u32 %r11, 0;\n";
  for (uint32_t b = 0; b < count; ++b) {
    s += fmt::format("B{}:\n", b);
    s += fmt::format("ld.global.u32 %r12, [%rd4+{0}];\nadd.u32 %r12, %r12, 1;\nst.global.u32 [%rd4+{0}], %r12;\n",
                     b * 4);
    s += fmt::format("mad.lo.u32 %r10, %r10, 31, {};\n", b + 1);
    if (random() % 2) s += "xor.b32 %r10, %r10, %r6;\nadd.u32 %r10, %r10, %r5;\nmul.lo.u32 %r10, %r10, 7;\n";
    if (b + 1 == count) break;
    const uint32_t to = random() % 3 ? b + 1 + random() % (count - b - 1) : random() % (b + 1);
    if (random() % 6 == 0 && to > b) {
      s += fmt::format("bra B{};\n", to);
      continue;
    }
    const bool uniform = random() % 4 == 0;
    s += fmt::format("shr.u32 %r14, {}, {};\n", uniform ? "%r2" : "%r5", uniform ? random() % 2 : random() % 28);
    s += "add.u32 %r14, %r14, %r11;\nand.b32 %r14, %r14, 1;\nsetp.eq.u32 %p1, %r14, 0;\n";
    if (to <= b) s += "add.u32 %r11, %r11, 1;\nsetp.lt.and.u32 %p1, %r11, 12, %p1;\n";
    s += fmt::format("@%p1 bra B{};\n", to);
  }
  return s + fmt::format(
                 "shfl.sync.bfly.b32 %r15, %r10, 9, 31, 0xffffffff;\nst.global.u32 [%rd4+{}], %r10;\n"
                 "st.global.u32 [%rd4+{}], %r15;\nret;\n}}\n",
                 count * 4, count * 4 + 4);
}

TEST(Flow, RandomGraphsDoWhatThePtxMeans) {
  const std::vector<uint64_t> in = input_words();
  size_t ran = 0, refused = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const std::string text = random_kernel(seed, 4 + seed % 9);
    ptx::Module module = parse_text("k.ptx", text);
    auto expected = run_interpreter(module, "k", in);
    ASSERT_TRUE(expected.ok()) << seed << ": " << expected.error().message << text;
    for (const char* target : {"sm_60", "sm_80"}) {
      auto ours = assemble_for(module, target);
      if (!ours.ok() && ours.error().message.find("unsupported irreducible") != std::string::npos) {
        EXPECT_STREQ(target, "sm_60");
        ++refused;
        continue;
      }
      if (!ours.ok()) {
        ADD_FAILURE() << seed << " " << target << ": " << ours.error().message;
        continue;
      }
      auto got = run_simulator(target, ours->cubin, "k", in);
      if (!got.ok())
        ADD_FAILURE() << seed << " " << target << ": " << got.error().message;
      else
        EXPECT_EQ(difference(*expected, *got, 0), "") << seed << " " << target;
      ++ran;
    }
  }
  std::printf("random graphs run: %zu; refused as irreducible: %zu\n", ran, refused);
  EXPECT_GT(ran, 250u);
}

struct Stream {
  std::vector<isa::Instruction> code;
  std::vector<uint64_t> addresses;
};
Stream decoded(const isa::Target& target, const cubin::Kernel& kernel) {
  Stream s;
  for (const isa::Located& l : isa::unpack(target, kernel.code)) {
    isa::Instruction i;
    EXPECT_TRUE(isa::decode(target, l.word, l.address, i));
    s.code.push_back(i), s.addresses.push_back(l.address);
  }
  return s;
}

// Openings and joinings that are left out, and every opening that is there twice (two regions pushed, one popped), is noticed.
TEST(Flow, CheckerCatchesRegionsThatAreNotJoinedOnce) {
  using M = isa::Mnemonic;
  ptx::Module module = parse_file(RNDN_SOURCE_DIR "/tests/assembler/ptx/joins.ptx");
  for (const std::string& name : targets) {
    const isa::Target& target = *isa::find_target(name);
    auto ours = assemble_for(module, name);
    ASSERT_TRUE(ours.ok()) << ours.error().message;
    auto image = cubin::read(ours->cubin);
    ASSERT_TRUE(image.ok());
    size_t faults = 0;
    for (const cubin::Kernel& k : image->kernels) {
      const Stream s = decoded(target, k);
      EXPECT_TRUE(check_regions(target, s.code, s.addresses).empty()) << name << " " << k.name;
      isa::Instruction plain;
      for (const isa::Instruction& i : s.code)
        if (i.mnemonic == M::NOP) plain = i;
      ASSERT_EQ(plain.mnemonic, M::NOP) << "no padding in " << k.name;
      bool first = true;
      for (size_t at = 1; at < s.code.size(); ++at) {
        const M m = s.code[at].mnemonic;
        const bool opens = m == M::SSY || m == M::BSSY;
        if (!opens && m != M::SYNC && m != M::BSYNC) continue;
        std::vector<isa::Instruction> faulty = s.code;
        faulty[at] = plain;
        // On Pascal these left out are no imbalance: a SYNC that does not lead into the landing behind it (its lanes take another way, at the
        // same depth), and an inner SSY (its lanes join further out).
        // (A landing that only joins the next region is as good as the one behind it.)
        bool landing_follows = false;
        for (const isa::Instruction& i : s.code)
          landing_follows |= i.mnemonic == M::SSY && at + 1 < s.code.size() &&
                             static_cast<uint64_t>(i.operands[0].value) == s.addresses[at + 1];
        const bool always = s.code[at].guard == isa::PT;
        if (m == M::SSY    ? first
            : m == M::SYNC ? always && landing_follows && s.code[at + 1].mnemonic != M::SYNC
                           : true) {
          EXPECT_FALSE(check_regions(target, faulty, s.addresses).empty())
              << name << " " << k.name << fmt::format(" {:#x} ", s.addresses[at]) << isa::text(target, s.code[at]);
          ++faults;
        }
        if (!opens) continue;
        first = false;
        const M before = s.code[at - 1].mnemonic;
        if (before == M::BRA || before == M::SYNC || before == M::BSYNC || before == M::EXIT || before == M::SSY ||
            before == M::BSSY)
          continue;
        faulty = s.code;
        faulty[at - 1] = s.code[at];
        EXPECT_FALSE(check_regions(target, faulty, s.addresses).empty())
            << name << " " << k.name << fmt::format(" {:#x} ", s.addresses[at]) << " twice";
        ++faults;
      }
    }
    EXPECT_GT(faults, 60u) << name;
  }
}

}  // namespace
}  // namespace rndn::assembler::testing
