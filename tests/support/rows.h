// Names of the rows of the instruction tables, for docs/status.md and tests/isa/coverage.tsv.
#pragma once
#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "assembler/cubin/cubin.h"
#include "assembler/isa/isa.h"

namespace rndn::testing {

// As printed, then the kinds of the operands (r GPR, p predicate, u uniform register, q uniform predicate, b barrier, i immediate, c constant, s special
// register, l label, a address, x scoreboard), and a number where rows of a family share both.
inline const std::string& row_name(isa::FormId form) {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    std::map<std::string, int> used;
    for (uint32_t f = 0; f < isa::form_count(); ++f) {
      const isa::Instruction in = isa::sample_instruction(static_cast<isa::FormId>(f));
      std::string name(isa::form_name(in.form));
      for (uint32_t k = 0; k < isa::slot_count(in.form); ++k)
        name += fmt::format("{}{}", k ? "," : " ", "-rpuqbicslax"[static_cast<size_t>(in.operands[k].kind)]);
      const int n = ++used[(isa::form_family(in.form) == isa::Family::pascal ? "P " : "V ") + name];
      all.push_back(n == 1 ? name : fmt::format("{} #{}", name, n));
    }
    return all;
  }();
  return names[static_cast<size_t>(form)];
}

inline std::string form_title(isa::FormId form) {
  return (isa::form_family(form) == isa::Family::pascal ? "Pascal " : "Volta ") + row_name(form);
}
// Of the kernels named: names of the rows that their code uses, with the family before them.
inline std::set<std::string> rows_of(const cubin::Image& image, const std::set<std::string>& kernels) {
  std::set<std::string> rows;
  const isa::Target* target = isa::find_target(fmt::format("sm_{}", image.sm));
  for (const cubin::Kernel& k : image.kernels)
    if (target && kernels.count(k.name))
      for (const isa::Located& l : isa::unpack(*target, k.code))
        if (isa::Instruction in; isa::decode(*target, l.word, l.address, in)) rows.insert(form_title(in.form));
  return rows;
}

}  // namespace rndn::testing
