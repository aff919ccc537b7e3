// rndn-dis: disassembles the kernels of a cubin.
//
//   rndn-dis F.cubin [--hex] [--json] [-o F]
//
// Instruction and label lines are those of nvdisasm 11.8 -c: labels are numbered in order of first reference, section by section, then the
// targets of indirect branches, then the ends of functions. A word that is no instruction we know prints as `.dword`; unlike nvdisasm 11.8,
// VIMNMX is printed.
//
// Exit codes: 0 success; 1 the input is at fault; 2 wrong usage; 3 output or memory at fault; 70 internal error.
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "assembler/cubin/cubin.h"
#include "assembler/isa/isa.h"
#include "libraries/base/errors/guarded_main.h"
#include "libraries/base/report/json.h"
#include "libraries/base/report/version.h"
#include "libraries/base/system/files.h"
#include "tools/program.h"

namespace {

using namespace rndn;

struct Line {
  uint64_t address = 0;
  isa::Word word;
  isa::Instruction instruction;
  bool known = false;
};

class Listing {
 public:
  Listing(const cubin::Image& image, const isa::Target& target) : image_(image), target_(target) {
    // The file's order of sections is the reverse of the image's order of kernels.
    for (size_t i = image.kernels.size(); i-- > 0;) {
      decode(i);
      number_relocated(i);
    }
    for (size_t i = image.kernels.size(); i-- > 0;) number_labels(i);
    end_labels();
  }

  std::string text(bool hex) const {
    std::string out;
    for (size_t i = image_.kernels.size(); i-- > 0;) section(i, hex, out);
    return out;
  }
  std::string json() const {
    std::string out = fmt::format("{{\n \"arch\": {},\n \"kernels\": [", json_string(target_.name));
    for (size_t i = 0; i < image_.kernels.size(); ++i) {
      const cubin::Kernel& k = image_.kernels[i];
      out += fmt::format(
          "{}\n  {{\"name\": {}, \"registers\": {}, \"shared_bytes\": {}, \"local_bytes\": {}, \"barriers\": {},\n"
          "   \"parameters\": [",
          i ? "," : "", json_string(k.name), k.registers, k.shared_bytes, k.local_bytes, k.barriers);
      for (size_t p = 0; p < k.parameters.size(); ++p)
        out += fmt::format("{}{{\"offset\": {}, \"size\": {}}}", p ? ", " : "", k.parameters[p].offset,
                           k.parameters[p].size);
      out += "],\n   \"instructions\": [";
      for (size_t l = 0; l < code_.at(i).size(); ++l) out += (l ? ",\n    " : "\n    ") + json(i, code_.at(i)[l]);
      out += "]}";
    }
    return out + "]\n}\n";
  }

 private:
  using Place = std::pair<size_t, uint64_t>;  // kernel, address

  std::string json(size_t kernel, const Line& l) const {
    std::string out = fmt::format("{{\"address\": {}", l.address);
    if (auto at = labels_.find({kernel, l.address}); at != labels_.end()) {
      out += ", \"labels\": [";
      for (size_t k = 0; k < at->second.size(); ++k) out += (k ? ", " : "") + json_string(at->second[k]);
      out += "]";
    }
    out += fmt::format(", \"text\": {}, \"word\": \"", json_string(instruction_text(kernel, l)));
    out += target_.family == isa::Family::volta ? fmt::format("{:016x}_{:016x}\"", l.word.hi, l.word.lo)
                                                : fmt::format("{:016x}\"", l.word.lo);
    if (l.known) {
      const isa::Control& c = l.instruction.control;
      out += fmt::format(
          ", \"control\": {{\"stall\": {}, \"yield\": {}, \"write_barrier\": {}, \"read_barrier\": {}, \"wait_mask\": "
          "{}, "
          "\"reuse\": {}}}",
          c.stall, c.yield, c.write_barrier, c.read_barrier, c.wait_mask, c.reuse);
    }
    return out + "}";
  }

  void decode(size_t kernel) {
    std::vector<Line>& lines = code_[kernel];
    for (const isa::Located& l : isa::unpack(target_, image_.kernels[kernel].code)) {
      Line line;
      line.address = l.address;
      line.word = l.word;
      line.known = isa::decode(target_, l.word, l.address, line.instruction);
      lines.push_back(line);
    }
  }

  // The name at a place: the kernel's, a function's, or a numbered label.
  std::string name_of(size_t kernel, uint64_t address) {
    const cubin::Kernel& k = image_.kernels[kernel];
    if (address <= first_address()) return k.name;
    for (const cubin::Function& f : k.functions)
      if (address == place(f.offset)) return f.name;
    auto& names = labels_[{kernel, address}];
    if (names.empty()) names.push_back(fmt::format(".L_x_{}", next_++));
    return names.front();
  }
  // Pascal: the first instruction of a bundle is named by the bundle.
  uint64_t place(uint64_t offset) const {
    return target_.family == isa::Family::pascal && offset % 32 == 0 ? offset + 8 : offset;
  }
  uint64_t first_address() const { return isa::instruction_address(target_, 0); }

  const cubin::Relocation* relocation(size_t kernel, uint64_t address) const {
    const std::vector<cubin::Relocation>& all = image_.kernels[kernel].relocations;  // by offset
    auto r = std::lower_bound(all.begin(), all.end(), address,
                              [](const cubin::Relocation& x, uint64_t at) { return x.offset < at; });
    for (; r != all.end() && r->offset == address; ++r)
      if (r->kind != cubin::Relocation::generic_64) return &*r;
    return nullptr;
  }
  // Places of the code that relocations name (where a call of the driver's functions returns to) take the first numbers.
  void number_relocated(size_t kernel) {
    const std::string& name = image_.kernels[kernel].name;
    for (const Line& l : code_[kernel])
      if (const cubin::Relocation* r = relocation(kernel, l.address); r && r->symbol == name && r->addend)
        targets_[{kernel, l.address}] = name_of(kernel, static_cast<uint64_t>(r->addend));
  }

  static bool is_branch_target(const isa::Instruction& in, uint32_t k) {
    return in.operands[k].kind == isa::OperandKind::label && in.mnemonic != isa::Mnemonic::BRX;
  }

  void number_labels(size_t kernel) {
    const cubin::Kernel& k = image_.kernels[kernel];
    for (const Line& l : code_[kernel]) {
      if (!l.known) continue;
      if (const cubin::Relocation* r = relocation(kernel, l.address)) {
        if (r->kind == cubin::Relocation::call) targets_[{kernel, l.address}] = r->symbol;
        continue;
      }
      for (uint32_t o = 0; o < l.instruction.operand_count; ++o)
        if (is_branch_target(l.instruction, o))
          targets_[{kernel, l.address}] = name_of(kernel, static_cast<uint64_t>(l.instruction.operands[o].value));
    }
    // Each of their places takes a number, even when it has a label already.
    auto numbered = [&](uint64_t address) {
      uint32_t after = next_ + 1;
      std::string name = name_of(kernel, address);
      next_ = after;
      return name;
    };
    for (const cubin::IndirectBranch& b : k.indirect_branches) {
      numbered(b.offset);
      std::string list;
      for (uint32_t t : b.targets) {
        list += (list.empty() ? "" : ",") + numbered(place(t));
      }
      if (!b.targets.empty()) indirect_[{kernel, b.offset}] = list;
    }
  }
  // The end of a function takes a number; it is printed where no function begins.
  void end_label(size_t kernel, uint64_t end) {
    const cubin::Kernel& k = image_.kernels[kernel];
    uint32_t number = next_;
    for (const cubin::Function& f : k.functions)
      if (f.offset == end) {
        ++next_;
        return;
      }
    auto& names = labels_[{kernel, end == k.code.size() ? end : place(end)}];
    if (!names.empty()) return;
    names.push_back(fmt::format(".L_x_{}", number));
    ++next_;
  }
  // Ends are numbered in the order of the symbol table: local functions of all kernels, then each kernel after its weak functions.
  void end_labels() {
    for (bool weak : {false, true})
      for (size_t i = image_.kernels.size(); i-- > 0;) {
        for (const cubin::Function& f : image_.kernels[i].functions)
          if (f.weak == weak) end_label(i, f.offset + f.size);
        if (weak) end_label(i, image_.kernels[i].code.size());
      }
  }

  std::string instruction_text(size_t kernel, const Line& l) const {
    if (!l.known) return fmt::format(".dword 0x{:016x}, 0x{:016x}", l.word.lo, l.word.hi);
    auto at = targets_.find({kernel, l.address});
    std::string s = isa::text(target_, l.instruction, at == targets_.end() ? "" : "`(" + at->second + ")", l.address);
    // A relocated immediate prints as what it becomes.
    const cubin::Relocation* r = relocation(kernel, l.address);
    if (!r) return s;
    if (r->kind == cubin::Relocation::call) return s.substr(0, s.rfind(' ') + 1) + "`(" + r->symbol + ")";
    const size_t comma = s.rfind(", ");
    if (comma == std::string::npos) return s;
    const std::string symbol = at != targets_.end() ? fmt::format("({} + {}@srel)", r->symbol, at->second)
                               : r->addend          ? fmt::format("({}+0x{:x})", r->symbol, r->addend)
                                                    : r->symbol;
    return s.substr(0, comma + 2) + (r->kind == cubin::Relocation::absolute_low_32 ? "32@lo(" : "32@hi(") + symbol +
           ")";
  }

  void section(size_t kernel, bool hex, std::string& out) const {
    const cubin::Kernel& k = image_.kernels[kernel];
    out += fmt::format("\t.section\t.text.{},\"ax\",@progbits\n{}:\n.text.{}:\n", k.name, k.name, k.name);
    auto labels = [&](uint64_t address) {
      for (const cubin::Function& f : k.functions)
        if (place(f.offset) == address) out += f.name + ":\n";
      if (auto at = labels_.find({kernel, address}); at != labels_.end())
        for (const std::string& name : at->second) out += name + ":\n";
    };
    bool pair = false;  // the instruction before issues together with this one
    const std::vector<Line>& lines = code_.at(kernel);
    for (size_t i = 0; i < lines.size(); ++i) {
      const Line& l = lines[i];
      if (!pair) labels(l.address);  // labels within a pair stand before it
      std::string s = instruction_text(kernel, l), guard;
      if (!s.empty() && s[0] == '@') {
        guard = s.substr(0, s.find(' '));
        s.erase(0, guard.size() + 1);
      }
      if (auto at = indirect_.find({kernel, l.address}); at != indirect_.end()) {
        size_t width = s.find(' ') == std::string::npos ? 40 : 43;
        s.resize(std::max(width, s.size()), ' ');
        s += "(*\"BRANCH_TARGETS " + at->second + "\"*)";
      }
      isa::Control none;
      bool no_control = l.known && l.instruction.control == none;
      bool opens = l.known && !no_control && l.instruction.control.stall == 0 && target_.family == isa::Family::pascal;
      if (opens && i + 1 < lines.size()) labels(lines[i + 1].address);
      std::string line = fmt::format("        /*{:04x}*/{}", l.address,
                                     opens ? fmt::format("         {{{:>8} ", guard) : fmt::format("{:>18} ", guard));
      line += s;
      if (pair)
        line += indirect_.count({kernel, l.address}) ? "        }" : "         }";
      else if (indirect_.count({kernel, l.address}) || no_control)
        line += ";";
      else
        line += " ;";
      pair = opens;
      if (hex) {
        constexpr size_t column = 104;
        if (line.size() < column) line.resize(column, ' ');
        line += fmt::format(" /* 0x{:016x} */\n", l.word.lo);
        line +=
            fmt::format("{:{}} /* 0x{:0{}x} */", "", column, l.word.hi, target_.family == isa::Family::volta ? 16 : 6);
      }
      out += line + "\n";
    }
    labels(k.code.size());
    out += "\n";
  }

  const cubin::Image& image_;
  const isa::Target& target_;
  std::map<size_t, std::vector<Line>> code_;
  std::map<Place, std::vector<std::string>> labels_;  // names to print before an instruction
  std::map<Place, std::string> targets_;              // of the branch at a place
  std::map<Place, std::string> indirect_;             // list of targets
  uint32_t next_ = 0;
};

int run(int argc, char** argv) {
  std::string targets;
  for (const isa::Target& t : isa::targets()) targets += (targets.empty() ? "" : " ") + std::string(t.name);
  CLI::App app{fmt::format("Disassembles any cubin of the supported targets ({}), as nvdisasm -c does", targets),
               "rndn-dis"};
  std::string input, output = "-";
  bool hex = false, json = false;
  app.add_option("cubin", input, "the cubin; - reads standard input")->required();
  app.add_flag("--hex", hex, "the words beside the instructions; on Pascal the second is the control field");
  app.add_flag("--json", json, "kernels, instructions and scheduling fields as JSON");
  app.add_option("-o,--output", output, "output file; - is standard output (default)");
  app.set_version_flag("--version", "rndn-dis " + std::string(version()));
  if (auto code = tools::parse_command_line(app, {argv + 1, argv + argc})) return *code;

  auto file = read_file(input);
  if (!file) return tools::report(file.error());
  auto image = cubin::read({reinterpret_cast<const std::byte*>(file->data()), file->size()});
  if (!image) return tools::report(Error{image.error().fault, fmt::format("{}: {}", input, image.error().message)});
  const isa::Target* target = isa::find_target(fmt::format("sm_{}", image->sm));
  if (!target) return tools::report(input_error("{}: no instruction tables for sm_{}", input, image->sm));
  Listing listing(*image, *target);
  auto written = write_file(output, json ? listing.json() : listing.text(hex));
  return written ? 0 : tools::report(written.error());
}

}  // namespace

int main(int argc, char** argv) { return guarded_main(run, argc, argv); }
