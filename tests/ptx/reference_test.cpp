// Every row of opcodes.def against the vendor's assembler: one instruction for each form, type combination and modifier, as our
// printer writes it. What a row allows, ptxas 11.8 must accept.
#include <gtest/gtest.h>

#include <set>

#include "ptx/builder.h"
#include "ptx/opcodes.h"
#include "ptx/parse.h"
#include "tests/ptx/reference_ptxas.h"
#include "tests/support/ptx_rows.h"

namespace rndn::ptx::reference_test {
namespace {

using rndn::testing::merged;
using rndn::testing::settings;

// One kernel with a register of every type.
struct Bench {
  Module module;
  Function f;
  Bench() {
    module.version = 78;
    module.target = 90;
    f.name = "rows";
    f.parameters.push_back({Type::b8, "parameter", 16, 64});
    for (uint32_t t = 1; t <= static_cast<uint32_t>(Type::f64); ++t) {
      Type type = static_cast<Type>(t);
      if (type_bytes(type) == 1 || type == Type::b128) continue;
      Type declared = type == Type::bf16 ? Type::b16 : type == Type::bf16x2 ? Type::b32 : type;
      for (char c = 'a'; c <= 'd'; ++c) f.add_register(declared, fmt::format("{}_{}", type_name(type), c));
    }
    f.labels.add({"somewhere", 0});
    f.targets.push_back({"targets", {LabelId{0}, LabelId{0}}});
    for (Space s : {Space::global, Space::shared, Space::local, Space::constant, Space::param}) {
      bool own = s == Space::local || s == Space::shared || s == Space::param;
      module.variables.add(
          {s, Type::b8, fmt::format("in_{}", name(s)), 16, 64, false, false, {}, own ? 0 : UINT32_MAX});
    }
  }
  Operand reg(Type type, char which) {
    if (type_bytes(type) == 1) type = Type::u16;
    std::string want = fmt::format("{}_{}", type_name(type), which);
    for (uint32_t k = 0; k < f.registers.size(); ++k)
      if (ptx::register_name(f, ptx::RegisterId{k}) == want) return {.kind = Operand::reg, .id = k};
    ADD_FAILURE() << "no register of type " << type_name(type);
    return {};
  }
  // The instruction with a fresh register at every place; false when the form cannot have that many operands.
  bool add(const Form& form, Opcode op, Type type, Type type2, const Modifiers& mods, uint32_t operand_count) {
    Places p;
    if (!places(form, operand_count, p)) return false;
    Instruction i;
    i.op = op;
    i.type = type;
    i.type2 = type2;
    i.mods = mods;
    i.operand_count = p.count;
    i.destination_count = p.destinations;
    std::vector<Operand> operands;
    for (uint32_t k = 0; k < p.count; ++k) {
      char which = static_cast<char>('a' + k % 4);
      Type t = place_type(p.at[k].kind, i);
      switch (p.at[k].kind) {
        case 'a':
          if (mods.space == Space::param && op == Opcode::st)
            operands.push_back({.kind = Operand::address_var, .id = 4, .value = 16});
          else if (mods.space == Space::param)
            operands.push_back({.kind = Operand::parameter, .value = 16});
          else if (op == Opcode::cp && k == 0)
            operands.push_back({.kind = Operand::address_var, .id = 1});
          else
            operands.push_back({.kind = Operand::address_reg, .id = reg(Type::u64, 'a').id, .value = 16});
          break;
        case 'l': operands.push_back({.kind = Operand::label, .id = 0}); break;
        case 'x': operands.push_back({.kind = Operand::targets, .id = 0}); break;
        case 'i':
          operands.push_back({.kind = Operand::immediate,
                              .value = op == Opcode::cp ? (operand_count == 1 ? 0 : 16)
                                       : op == Opcode::applypriority || op == Opcode::discard ? 128
                                                                                              : 4});
          break;
        case 'v':
          if (mods.vector > 1) {
            Operand v{
                .kind = Operand::vector, .count = mods.vector, .id = static_cast<uint32_t>(f.vector_elements.size())};
            for (uint32_t e = 0; e < mods.vector; ++e)
              f.vector_elements.push_back(reg(type, static_cast<char>('a' + e)));
            operands.push_back(v);
            break;
          }
          [[fallthrough]];
        default: operands.push_back(reg(t, which));
      }
    }
    i.first_operand = static_cast<uint32_t>(f.operands.size());
    f.operands.append(operands);
    f.instructions.push_back(i);
    return true;
  }
};

// Modifier sets that a form allows: every choice of what it requires, alone and with each allowed one.
std::vector<Modifiers> variants(Opcode op, const Form& form) {
  std::vector<Modifiers> base = {Modifiers{}};
  ModifierSet left = form.required;
  while (left) {
    ModifierSet group = modifier_groups(left & -left) & form.required;
    std::vector<Modifiers> next;
    for (uint32_t b = 0; b < modifier::count; ++b)
      if (group >> b & 1)
        for (const Modifiers& s : settings(op, b))
          for (const Modifiers& m : base) next.push_back(merged(m, s));
    base = next;
    left &= ~group;
  }
  std::vector<Modifiers> out = base;
  for (uint32_t b = 0; b < modifier::count; ++b) {
    if (!((form.allowed & ~modifier_groups(form.required)) >> b & 1)) continue;
    for (const Modifiers& s : settings(op, b)) {
      // Semantics and scope only come together.
      Modifiers with = s;
      if (with.semantics != Semantics::none && with.semantics != Semantics::weak &&
          with.semantics != Semantics::volatile_)
        with.scope = Scope::gpu;
      out.push_back(merged(base.front(), with));
      if (base.size() > 1) out.push_back(merged(base.back(), with));
    }
  }
  return out;
}

constexpr uint32_t reference_version = 78;  // of PTX: the newest that ptxas 11.8 knows

// `only`: the forms that ask for exactly this (.version, .target); null: all of them up to `version`.
Bench all_rows(size_t& per_opcode_minimum, const std::pair<uint32_t, uint32_t>* only = nullptr,
               uint32_t version = reference_version) {
  Bench bench;
  bench.module.version = version;
  per_opcode_minimum = SIZE_MAX;
  for (size_t o = 0; o < opcode_count; ++o) {
    Opcode op = static_cast<Opcode>(o);
    if (op == Opcode::call) continue;  // needs functions: roundtrip_test has them
    size_t before = bench.f.instructions.size();
    for (const Form& form : forms(op)) {
      if (form.ptx > version) continue;
      if (only && (form.ptx != only->first || form.sm != only->second)) continue;
      for (const Modifiers& mods : variants(op, form))
        for (uint32_t t = 0; t <= static_cast<uint32_t>(Type::f64); ++t)
          for (uint32_t t2 = 0; t2 <= static_cast<uint32_t>(Type::f64); ++t2) {
            if (!(form.types >> t & 1) || !(form.types2 >> t2 & 1)) continue;
            if (mods.vector * type_bytes(static_cast<Type>(t)) > 16) continue;
            for (uint32_t n = 0; n <= 8; ++n) {
              size_t at = bench.f.instructions.size();
              if (!bench.add(form, op, static_cast<Type>(t), static_cast<Type>(t2), mods, n)) continue;
              // A combination that the verifier refuses for a reason of its own is none that we allow.
              (void)at;
            }
          }
    }
    per_opcode_minimum = std::min(per_opcode_minimum, bench.f.instructions.size() - before);
  }
  return bench;
}

TEST(Rows, VerifierAcceptsEveryCombination) {
  size_t least = 0;
  Bench bench = all_rows(least, nullptr, 90);
  EXPECT_GE(least, 1u) << "an opcode without any combination";
  EXPECT_GT(bench.f.instructions.size(), 2000u);
  bench.module.functions.push_back(bench.f);
  for (const std::string& problem : verify(bench.module)) ADD_FAILURE() << problem;
}

TEST(Rows, PrintAndParseAgree) {
  size_t least = 0;
  Bench bench = all_rows(least);
  bench.module.functions.push_back(bench.f);
  std::string text = print(bench.module);
  SourceManager sources;
  DiagnosticSink sink;
  Module again = parse(sources.add("rows.ptx", text), sources, sink);
  ASSERT_FALSE(sink.has_errors()) << render(sink, sources);
  ASSERT_EQ(again.functions.size(), 1u);
  ASSERT_EQ(again.functions[0].instructions.size(), bench.f.instructions.size());
  for (size_t k = 0; k < bench.f.instructions.size(); ++k) {
    const Instruction &a = bench.f.instructions[k], &b = again.functions[0].instructions[k];
    EXPECT_TRUE(a.op == b.op && a.type == b.type && a.type2 == b.type2 && a.mods == b.mods &&
                a.operand_count == b.operand_count && a.destination_count == b.destination_count)
        << print(bench.module, bench.f, a) << " was read as " << print(again, again.functions[0], b);
  }
  EXPECT_EQ(print(again), text);
}

// The names of what ptxas refuses in `text`, one instruction a line; empty when it accepts the text.
std::string refused(const std::string& ptxas, const std::string& text, const std::string& target) {
  std::string messages;
  if (test::ptxas_accepts(ptxas, text, target, messages)) return "";
  std::vector<std::string> lines(1);
  for (char c : text) {
    if (c == '\n')
      lines.emplace_back();
    else
      lines.back() += c;
  }
  std::set<size_t> shown;
  std::string report;
  for (size_t at = 0; (at = messages.find(", line ", at)) != std::string::npos; at += 7) {
    size_t n = std::strtoul(messages.c_str() + at + 7, nullptr, 10);
    size_t end = messages.find('\n', at);
    if (n < lines.size() && n > 0 && shown.insert(n).second)
      report += lines[n - 1] + "   // " + messages.substr(at, end - at) + "\n";
  }
  return report.empty() ? messages : report;
}

TEST(Rows, ReferenceAssemblerAcceptsThem) {
  std::string why, ptxas = test::find_ptxas(why);
  if (ptxas.empty()) GTEST_SKIP() << "skipped: " << why;
  size_t least = 0;
  Bench bench = all_rows(least);
  bench.module.functions.push_back(bench.f);
  EXPECT_EQ(refused(ptxas, print(bench.module), "sm_90"), "");
}

// The lowest .version and .target that a row names are enough (from the lowest that this project supports, sm_60 and 6.0).
TEST(Rows, ReferenceAssemblerAcceptsThemWhereTheyBegin) {
  std::string why, ptxas = test::find_ptxas(why);
  if (ptxas.empty()) GTEST_SKIP() << "skipped: " << why;
  std::set<std::pair<uint32_t, uint32_t>> begins;
  for (size_t o = 0; o < opcode_count; ++o)
    for (const Form& form : forms(static_cast<Opcode>(o)))
      if (form.ptx <= reference_version) begins.insert({form.ptx, form.sm});
  EXPECT_GT(begins.size(), 10u);
  for (const auto& begin : begins) {
    size_t least = 0;
    Bench bench = all_rows(least, &begin);
    Module& m = bench.module;
    m.target = std::max(begin.second, 60u);
    // The version that knows the target, too.
    uint32_t knows = m.target >= 89 ? 78 : m.target >= 80 ? 70 : m.target >= 75 ? 63 : 60;
    m.version = std::max(begin.first, knows);
    Function all = std::move(bench.f);
    bench.f = all;
    bench.f.instructions.clear();
    for (const Instruction& i : all.instructions)  // memory semantics and scopes begin later than their row
      if (m.target >= 70 || (i.mods.scope == Scope::none &&
                             (i.mods.semantics == Semantics::none || i.mods.semantics == Semantics::volatile_ ||
                              i.mods.semantics == Semantics::weak)))
        bench.f.instructions.push_back(i);
    m.functions.push_back(bench.f);
    EXPECT_EQ(refused(ptxas, print(m), "sm_" + std::to_string(m.target)), "")
        << ".version " << m.version << " .target sm_" << m.target;
  }
}

// What the rows refuse for a module's .version and .target, ptxas refuses there too: no row begins later than it must.
TEST(Rows, ReferenceAssemblerRefusesThemBefore) {
  std::string why, ptxas = test::find_ptxas(why);
  if (ptxas.empty()) GTEST_SKIP() << "skipped: " << why;
  size_t least = 0, asked = 0;
  Bench all = all_rows(least, nullptr, 90);
  const std::pair<uint32_t, uint32_t> modules[] = {{14, 13}, {20, 20}, {30, 30}, {43, 52}, {50, 61},
                                                   {60, 70}, {74, 80}, {78, 20}, {78, 52}, {78, 60},
                                                   {78, 75}, {78, 80}, {78, 89}, {78, 90}};
  for (const auto& [version, target] : modules) {
    Bench bench;
    Module& m = all.module = bench.module;
    m.version = version, m.target = target;
    const auto fits = [&, version = version, target = target](const Instruction& i) {
      for (const Form* f = find_form(i); f; f = find_form(i, f))
        if (f->ptx <= version && f->sm <= target) return true;
      return false;
    };
    std::vector<std::string> early;
    for (const Instruction& i : all.f.instructions)
      if (!fits(i)) early.push_back(print(m, all.f, i));
    // The kernel, without what old modules cannot declare.
    bench.f.instructions.clear();
    m.functions.push_back(bench.f);
    std::string text = print(m);
    const auto drop_lines = [&](std::string_view with) {
      for (size_t at; (at = text.find(with)) != std::string::npos;) {
        const size_t begin = text.rfind('\n', at) + 1;
        text.erase(begin, text.find('\n', at) + 1 - begin);
      }
    };
    if (version < 23) drop_lines(".address_size");
    if (version < 60 || target < 30) drop_lines(".branchtargets");
    if (version < 20) drop_lines("in_param");
    if (target < 53) drop_lines(".reg .f16x2");
    const size_t brace = text.rfind('}'),
                 first =
                     static_cast<size_t>(std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(brace), '\n')) +
                     1;
    // It does not name all that is wrong at once: what it names is taken out until nothing is left.
    std::set<size_t> refused;
    for (size_t before = SIZE_MAX; refused.size() != before && refused.size() < early.size();) {
      before = refused.size();
      std::string lines, messages;
      for (size_t k = 0; k < early.size(); ++k) lines += (refused.contains(first + k) ? "" : early[k]) + "\n";
      test::ptxas_accepts(ptxas, std::string(text).insert(brace, lines), "sm_90", messages);
      for (size_t at = 0; (at = messages.find(", line ", at)) != std::string::npos; at += 7)
        if (const size_t n = std::strtoul(messages.c_str() + at + 7, nullptr, 10);
            n >= first && n < first + early.size())
          refused.insert(n);
    }
    asked += early.size();
    for (size_t k = 0; k < early.size(); ++k)
      EXPECT_TRUE(refused.contains(first + k))
          << early[k] << " is taken with .version " << version << " .target sm_" << target;
  }
  EXPECT_GT(asked, 20000u);
}

}  // namespace
}  // namespace rndn::ptx::reference_test
