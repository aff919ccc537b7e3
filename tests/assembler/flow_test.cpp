// Regions of control flow: random graphs run against the PTX interpreter, and the checker of regions on code with faults put in.
#include "assembler/assemble.h"
#include "assembler/backend/backend.h"
#include "assembler/check/check.h"
#include "assembler/flow/structurize.h"
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

// Programs of statements: nested ifs and loops, `break` and `continue` of any level, switches with and without falling through, returns in the
// middle, and (without `clean`) gotos to anywhere, into loops too. Conditions are the lane's own or the block's. Every jump backwards needs
// fuel, so that all programs end. The hash of a lane tells its way. Operations of whole warps stand only where all lanes come; they are
// left out of what a lane may leave or skip. `ends`: lanes end anywhere, with more or less to do before that, by ways of their own or shared, while the
// others go on to barriers and votes without them; loops may have no other way out.
enum class Style { gotos, clean, ends };
class RandomProgram {
 public:
  RandomProgram(uint32_t seed, uint32_t size, Style style)
      : random_(seed), left_(size), clean_(style != Style::gotos), ends_(style == Style::ends) {}

  std::string kernel(const std::string& name) {
    labels_ = clean_ ? 0 : 1 + pick(3);
    std::string body;
    while (left_ > 0) body += statement({.meet = clean_, .floor = 0}, 0);
    for (uint32_t l = 0; l < labels_; ++l)
      if (!placed_[l]) body += fmt::format("G{}:\n", l) + work();
    std::string behind;
    if (ends_) {
      const std::string share = label();
      if (ways_out_ > 0 && pick(2)) body += condition(false) + fmt::format("@%p1 bra E{};\n", pick(ways_out_));
      for (uint32_t e = 0; e < ways_out_; ++e) {
        behind += fmt::format("E{}:\n", e) + work();
        if (pick(2)) behind += statement({.meet = false, .floor = 0}, 3);
        behind += "st.global.u32 [%rd4], %r10;\n" + (pick(2) ? "bra " + share + ";\n" : std::string("ret;\n"));
      }
      behind += share + ":\n" + (pick(2) ? "st.global.u32 [%rd4+12], %r10;\n" : "") + "ret;\n";
      body += "vote.sync.ballot.b32 %r15, 1, -1;\n";
    }
    return fmt::format(
               ".visible .entry {}(.param .u64 in, .param .u64 out)\n{{\n.reg .pred %p<4>;\n.reg .b32 %r<24>;\n"
               ".reg .b32 %c<{}>;\n.reg .b64 %rd<8>;\n.shared .b32 cells[8];\n"
               "ld.param.u64 %rd1, [in];\nld.param.u64 %rd2, [out];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\n"
               "mov.u32 %r3, %ntid.x;\nmad.lo.u32 %r4, %r2, %r3, %r1;\nmad.wide.u32 %rd3, %r4, 24, %rd1;\n"
               "mad.wide.u32 %rd4, %r4, 64, %rd2;\nld.global.u32 %r5, [%rd3];\nld.global.u32 %r6, [%rd3+8];\n"
               "mad.lo.u32 %r5, %r1, 0x9e3779b1, %r5;\nmov.u32 %r10, 1;\nmov.u32 %r11, 0;\nmov.u32 %r15, 0;\n",
               name, counters_ + 1) +
           (ends_ ? "ld.global.u32 %r19, [%rd1];\nadd.u32 %r19, %r19, %r2;\n" : "") + (clean_ ? "bar.sync 0;\n" : "") +
           declare_counters() + body + (clean_ && !ends_ ? "shfl.sync.bfly.b32 %r15, %r10, 9, 31, 0xffffffff;\n" : "") +
           "st.global.u32 [%rd4], %r10;\nst.global.u32 [%rd4+4], %r15;\nst.global.u32 [%rd4+8], %r11;\nret;\n" +
           behind + "}\n";
  }

 private:
  struct Place {
    bool meet = false;   // all lanes of the block come here together
    uint32_t floor = 0;  // loops below this level may not be left or continued
  };
  struct Loop {
    std::string again, out;
  };

  uint32_t pick(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  std::string label() { return fmt::format("L{}", next_label_++); }
  std::string declare_counters() {
    std::string s;
    for (uint32_t c = 0; c <= counters_; ++c) s += fmt::format("mov.u32 %c{}, 0;\n", c);
    return s;
  }
  std::string work() {
    std::string s = fmt::format("mad.lo.u32 %r10, %r10, 31, {};\n", 1 + next_work_++);
    switch (pick(6)) {
      case 0: s += "xor.b32 %r10, %r10, %r6;\n"; break;
      case 1: s += "st.global.u32 [%rd4+16], %r10;\n"; break;
      case 2: s += "ld.global.u32 %r12, [%rd4+16];\nadd.u32 %r10, %r10, %r12;\n"; break;
      case 3:
        s += "and.b32 %r18, %r5, 7;\nmad.wide.u32 %rd5, %r18, 64, %rd2;\nred.global.add.u32 [%rd5+60], 1;\n";
        break;
      case 4: s += "add.u32 %r5, %r5, %r10;\n"; break;
      default: break;
    }
    return s;
  }
  // %p1 = a condition; a uniform one is the same in all lanes of a block (%r19: which only who knows the input can tell).
  std::string condition(bool uniform) {
    std::string s = fmt::format("shr.u32 %r14, {}, {};\n",
                                uniform   ? ends_ && pick(2) ? "%r19" : "%r2"
                                : pick(3) ? "%r5"
                                          : "%r10",
                                uniform ? pick(2) : pick(20));
    const uint32_t mask = pick(3) ? 1 : 3;
    return s + fmt::format("and.b32 %r14, %r14, {};\nsetp.{}.u32 %p1, %r14, 0;\n", mask, pick(2) ? "eq" : "ne");
  }
  // Fuel for a jump backwards: %p1 stays true only while there is some.
  static std::string fuel() { return "add.u32 %r11, %r11, 1;\nsetp.lt.and.u32 %p1, %r11, 40, %p1;\n"; }

  // Some lanes end: at once, here, or by a way behind the program's last statement.
  std::string end() {
    std::string s = condition(pick(6) == 0);
    switch (pick(4)) {
      case 0: return s + "@%p1 st.global.u32 [%rd4], %r10;\n@%p1 ret;\n" + work();
      case 1: {
        const std::string on = label();
        return s + "@!%p1 bra " + on + ";\n" + work() + "st.global.u32 [%rd4], %r10;\nexit;\n" + on + ":\n";
      }
      default:
        if (ways_out_ == 0 || pick(2)) ++ways_out_;
        return s + fmt::format("@%p1 bra E{};\n", pick(ways_out_)) + work();
    }
  }
  std::string block(Place place, uint32_t depth) {
    std::string s;
    for (uint32_t n = 1 + pick(3); n > 0; --n) s += statement(place, depth);
    return s;
  }
  std::string statement(Place place, uint32_t depth) {
    if (left_ > 0) --left_;
    std::string s;
    for (uint32_t l = 0; l < labels_; ++l)
      if (!placed_[l] && pick(6) == 0) placed_[l] = true, s += fmt::format("G{}:\n", l);
    if (depth > 5 || left_ == 0) return s + work();
    const bool uniform = pick(4) == 0;
    const Place inside{place.meet && uniform,
                       place.meet && !uniform ? static_cast<uint32_t>(loops_.size()) : place.floor};
    switch (pick(12)) {
      case 0:
      case 1: {  // if
        const std::string end = label();
        return s + condition(uniform) + fmt::format("@%p1 bra {};\n", end) + block(inside, depth + 1) + end + ":\n";
      }
      case 2: {  // if, else
        const std::string otherwise = label(), end = label();
        s += condition(uniform) + fmt::format("@!%p1 bra {};\n", otherwise) + block(inside, depth + 1);
        return s + fmt::format("bra {};\n{}:\n", end, otherwise) + block(inside, depth + 1) + end + ":\n";
      }
      case 3:
      case 4:
      case 5: {  // loop: of the head, of the foot or endless but for a break
        const uint32_t counter = ++counters_;
        if (ends_ &&
            pick(4) ==
                0) {  // two loops with one head: each lane goes round the inner one as often as it likes, all round the outer one
          const std::string head = label();
          s += fmt::format("mov.u32 %c{}, 0;\n{}:\n", counter, head);
          s += block({.meet = false, .floor = static_cast<uint32_t>(loops_.size())}, depth + 1);
          s += condition(false) + fuel() + fmt::format("@%p1 bra {};\n", head);
          if (place.meet) s += block({.meet = true, .floor = static_cast<uint32_t>(loops_.size())}, depth + 1);
          s += fmt::format("add.u32 %c{0}, %c{0}, 1;\nsetp.lt.u32 %p1, %c{0}, {1};\n", counter, 2 + pick(3));
          return s + fmt::format("@%p1 bra {};\n", head);
        }
        Loop loop{label(), label()};
        const std::string head = pick(2) ? label() : loop.again;
        const uint32_t kind = pick(3);
        s += fmt::format("mov.u32 %c{}, 0;\n{}:\n", counter, head);
        if (head == loop.again || kind == 0)
          s += fmt::format("add.u32 %c{0}, %c{0}, 1;\nsetp.gt.u32 %p1, %c{0}, {1};\n@%p1 bra {2};\n", counter,
                           2 + pick(4), loop.out);
        if (kind == 0 && !uniform) s += condition(false) + fmt::format("@%p1 bra {};\n", loop.out);
        loops_.push_back(loop);
        Place body = inside;
        if (place.meet && uniform) body.floor = static_cast<uint32_t>(loops_.size());  // all lanes stay together
        if (ends_ && pick(3) == 0) s += end();
        s += block(body, depth + 1);
        loops_.pop_back();
        if (ends_ && pick(6) == 0) {  // nothing but ends leads out
          const uint32_t last = ++counters_;
          s = fmt::format("mov.u32 %c{}, 0;\n", last) + s;
          if (head != loop.again) s += loop.again + ":\n" + work();
          s += end() + fmt::format("add.u32 %c{0}, %c{0}, 1;\nsetp.gt.u32 %p1, %c{0}, {1};\n", last, 1 + pick(5));
          return s + "@%p1 st.global.u32 [%rd4], %r10;\n@%p1 ret;\n" + fmt::format("bra {};\n{}:\n", head, loop.out);
        }
        if (head != loop.again) s += loop.again + ":\n" + work();
        if (!uniform && kind == 1) {
          s += condition(false);
        } else {
          s += fmt::format("add.u32 %c{0}, %c{0}, 1;\nsetp.lt.u32 %p1, %c{0}, {1};\n", counter, 3 + pick(4));
        }
        if (!(place.meet && uniform)) s += fuel();
        return s + fmt::format("@%p1 bra {};\n{}:\n", head, loop.out);
      }
      case 6:
      case 7: {  // break or continue
        if (loops_.size() <= place.floor || place.meet) break;
        const Loop& loop = loops_[place.floor + pick(static_cast<uint32_t>(loops_.size()) - place.floor)];
        if (pick(2)) return s + condition(uniform) + fmt::format("@%p1 bra {};\n", loop.out) + work();
        return s + condition(uniform) + fuel() + fmt::format("@%p1 bra {};\n", loop.again) + work();
      }
      case 8: {  // goto
        if (labels_ == 0) break;
        return s + condition(uniform) + fuel() + fmt::format("@%p1 bra G{};\n", pick(labels_)) + work();
      }
      case 9: {  // switch
        const uint32_t cases = 2 + pick(4);
        const std::string end = label(), first = label();
        std::vector<std::string> at;
        s += fmt::format("shr.u32 %r16, {}, {};\nand.b32 %r16, %r16, 3;\n", uniform ? "%r2" : "%r5",
                         uniform ? 0 : pick(16));
        for (uint32_t c = 0; c < cases; ++c) {
          at.push_back(label());
          s += fmt::format("setp.eq.u32 %p1, %r16, {};\n@%p1 bra {};\n", c, at.back());
        }
        s += "bra " + end + ";\n";
        for (uint32_t c = 0; c < cases; ++c) {
          s += at[c] + ":\n" + block(inside, depth + 2);
          if (pick(3)) s += "bra " + end + ";\n";
        }
        return s + end + ":\n";
      }
      case 10: {  // return
        if (ends_) return s + end();
        if (clean_ || pick(3)) break;
        return s + condition(uniform) + "@!%p1 bra " +
               fmt::format("R{0};\nst.global.u32 [%rd4], %r10;\nret;\nR{0}:\n", next_label_++);
      }
      default: {
        if (!place.meet) break;
        switch (pick(4)) {
          case 0: return s + "bar.sync 0;\n" + work();
          case 1:
            if (ends_)  // from the first of those that are left
              return s +
                     "vote.sync.ballot.b32 %r13, 1, -1;\nneg.s32 %r17, %r13;\nand.b32 %r17, %r17, %r13;\n"
                     "bfind.u32 %r17, %r17;\nshfl.sync.idx.b32 %r13, %r10, %r17, 31, " +
                     (pick(2) ? "-1" : "%r13") + ";\nadd.u32 %r10, %r10, %r13;\n";
            return s + "shfl.sync.bfly.b32 %r13, %r10, 5, 31, 0xffffffff;\nadd.u32 %r10, %r10, %r13;\n";
          case 2:
            return s + condition(false) + "vote.sync.ballot.b32 %r13, %p1, 0xffffffff;\nxor.b32 %r10, %r10, %r13;\n";
          default:
            return s +
                   "shl.b32 %r13, %r10, 2;\nand.b32 %r13, %r13, 28;\nmov.u32 %r17, cells;\nadd.u32 %r17, %r17, %r13;\n"
                   "bar.sync 0;\nst.shared.u32 [cells], 0;\nbar.sync 0;\nred.shared.add.u32 [cells], 3;\n"
                   "bar.sync 0;\nld.shared.u32 %r13, [cells];\nadd.u32 %r10, %r10, %r13;\n";
        }
      }
    }
    return s + work();
  }

  std::mt19937 random_;
  uint32_t left_, labels_ = 0, next_label_ = 0, next_work_ = 0, counters_ = 0, ways_out_ = 0;
  bool clean_, ends_;
  bool placed_[8] = {};
  std::vector<Loop> loops_;
};

// Three ways: the PTX interpreter, our code and the vendor's code, on the simulator. RNDN_FLOW_PROGRAMS: how many, from RNDN_FLOW_FIRST on;
// RNDN_FLOW_KEEP: a folder for the texts, the input and a hash of what each must leave in the first 64 bytes of all rows. The vendor's code for
// sm_90 is left out: it gathers warps by WARPSYNC.ALL in ways that the simulator does not model. So is, where lanes end early, that for sm_61: it brings the
// lanes that leave a loop at different times together for no vote behind it, when little is left to do there.
void run_random_programs(uint32_t usual, bool ends) {
  const char* wanted = std::getenv("RNDN_FLOW_PROGRAMS");
  const char* from = std::getenv("RNDN_FLOW_FIRST");
  const uint32_t count = wanted ? static_cast<uint32_t>(std::atoi(wanted)) : usual,
                 first = from ? static_cast<uint32_t>(std::atoi(from)) : 0;
  constexpr uint32_t per_module = 20;
  const std::vector<uint64_t> in = input_words();
  std::string why;
  const std::string ptxas = reference_tool("ptxas", why);
  const char* keep = std::getenv("RNDN_FLOW_KEEP");
  if (keep) {
    ASSERT_TRUE(write_file(std::string(keep) + "/in.bin",
                           std::string_view(reinterpret_cast<const char*>(in.data()), in.size() * 8))
                    .ok());
  }
  size_t ran = 0, refused = 0, theirs_ran = 0, unknown = 0;
  for (uint32_t seed = first; seed < first + count; seed += per_module) {
    const std::string head = ".version 7.0\n.target sm_60\n.address_size 64\n";
    std::string whole = head;
    std::vector<std::string> texts;
    for (uint32_t k = 0; k < per_module; ++k) {
      texts.push_back(RandomProgram(seed + k, 6 + (seed + k) % 40,
                                    ends             ? Style::ends
                                    : (seed + k) % 3 ? Style::gotos
                                                     : Style::clean)
                          .kernel(fmt::format("k{}", k)));
      whole += texts.back();
    }
    const ptx::Module all = parse_text("all.ptx", whole);
    std::vector<Result<std::vector<uint64_t>>> expected;
    for (uint32_t k = 0; k < per_module; ++k) expected.push_back(run_interpreter(all, fmt::format("k{}", k), in));
    if (keep) {
      for (uint32_t k = 0; k < per_module; ++k) {
        ASSERT_TRUE(write_file(fmt::format("{}/{}.ptx", keep, seed + k), head + texts[k]).ok());
        if (!expected[k].ok()) continue;
        uint64_t hash = 1469598103934665603u;
        for (size_t w = 0; w < blocks * threads * 8; ++w) hash = (hash ^ (*expected[k])[w]) * 1099511628211u;
        ASSERT_TRUE(write_file(fmt::format("{}/{}.hash", keep, seed + k), fmt::format("{:016x}\n", hash)).ok());
      }
    }
    for (const char* target : {"sm_61", "sm_86", "sm_90"}) {
      std::vector<std::byte> theirs;
      if (!ptxas.empty() && seed % (per_module * 3) == 0 && target != std::string(ends ? "sm_61" : "sm_90")) {
        const std::string path = temporary(".ptx");
        ASSERT_TRUE(write_file(path, whole).ok());
        std::string said;
        theirs = assemble_with_ptxas(ptxas, path, target, said);
        EXPECT_FALSE(theirs.empty()) << said;
        unlink(path.c_str());
      }
      for (uint32_t k = 0; k < per_module; ++k) {
        const std::string name = fmt::format("k{}", k), who = fmt::format("{} {}", seed + k, target);
        if (!expected[k].ok()) {
          ADD_FAILURE() << who << ": " << expected[k].error().message;
          continue;
        }
        if (!theirs.empty()) {
          auto got = run_simulator(target, theirs, name, in, false, nullptr, false);
          if (!got.ok() && got.error().message.find("is no known instruction") != std::string::npos) {
            ++unknown;
          } else if (!got.ok()) {
            ADD_FAILURE() << who << " theirs: " << got.error().message;
          } else {
            EXPECT_EQ(difference(*expected[k], *got, 0), "") << who << " theirs";
            ++theirs_ran;
          }
        }
        const ptx::Module one = parse_text(name, head + texts[k]);
        for (int level : {3, 0}) {
          if (level == 0 && seed % 2) continue;
          auto ours = assemble_for(one, target, level);
          if (!ours.ok() && ours.error().message.find(ends ? "unsupported barrier" : "unsupported irreducible") !=
                                std::string::npos) {
            EXPECT_STREQ(target, "sm_61");
            ++refused;
            continue;
          }
          if (!ours.ok()) {
            ADD_FAILURE() << who << ": " << ours.error().message;
            continue;
          }
          auto got = run_simulator(target, ours->cubin, name, in);
          if (!got.ok())
            ADD_FAILURE() << who << ": " << got.error().message;
          else
            EXPECT_EQ(difference(*expected[k], *got, 0), "") << who;
          ++ran;
        }
      }
    }
  }
  std::printf(
      "random programs run: %zu; of the vendor's: %zu, with instructions that the simulator does not know: %zu; "
      "refused: %zu\n",
      ran, theirs_ran, unknown, refused);
  EXPECT_GT(ran, ends ? count * 9 / 2 : count);
}
TEST(Flow, RandomProgramsDoWhatThePtxMeans) { run_random_programs(60, false); }
TEST(Flow, RandomProgramsWhoseLanesEndEarlyDoWhatThePtxMeans) { run_random_programs(20, true); }

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

// Ifs, loops, and both in turn, so many in one another: behind all of them the same, the last one first.
std::string nest(uint32_t depth, bool ifs, bool loops) {
  std::string s = fmt::format(
      ".version 7.0\n.target sm_60\n.address_size 64\n.visible .entry k(.param .u64 in)\n{{\n.reg .b32 %s, %x;\n"
      ".reg .b64 %in;\n.reg .pred %p<{}>;\nld.param.u64 %in, [in];\nmov.u32 %s, %tid.x;\n",
      depth);
  const auto is_loop = [&](uint32_t k) { return loops && (!ifs || k % 2); };
  const std::string work = "ld.global.u32 %x, [%in+8];\nmad.lo.u32 %s, %s, 3, %x;\nsetp.eq.u32 %p{0}, %x, {0};\n";
  for (uint32_t k = 0; k < depth; ++k) {
    if (is_loop(k)) s += fmt::format("L{}:\n", k);
    s += fmt::format(fmt::runtime(work), k);
    if (!is_loop(k)) s += fmt::format("@%p{0} bra L{0};\n", k);
  }
  for (uint32_t k = depth; k-- > 0;)
    s += is_loop(k) ? fmt::format("add.u32 %s, %s, {0};\n@%p{0} bra L{0};\n", k)
                    : fmt::format("L{0}:\nadd.u32 %s, %s, {0};\n", k);
  return s + "st.global.u32 [%in], %s;\nret;\n}\n";
}
// Each block is found once, each region once by the one around it, however deep they lie in one another.
TEST(Flow, DeepNestsAreSearchedOnce) {
  for (const auto& [ifs, loops] : {std::pair(true, false), {false, true}, {true, true}})
    for (const uint32_t depth : {300u, 1200u})
      for (const char* target : {"sm_61", "sm_90"}) {
        const ptx::Module module = parse_text("nest", nest(depth, ifs, loops));
        Arena arena;
        const auto flow = structure(module, module.functions[0], *isa::find_target(target), false, false, arena);
        ASSERT_TRUE(flow) << target;
        EXPECT_GE(flow->searched, depth) << target;
        EXPECT_LE(flow->searched, 5 * depth) << target << (ifs ? " ifs" : "") << (loops ? " loops" : "");
      }
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
