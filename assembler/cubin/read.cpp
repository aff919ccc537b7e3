// Cubin to image. Nothing in the file is trusted: every offset, size, index and string is checked before use, and what is wrong is named.
//
// Formats: ELF ABI version 7 (toolkit 11.8; target in bits 0..7 of e_flags) and 8 or another OS ABI (toolkit 13; target in bits 8..15). Sections that an Image has
// no place for (debug information but for line tables, notes, call graphs) are passed over. Cost linear in the file, plus sorting of the variables.
#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <optional>
#include <tuple>

#include "assembler/cubin/cubin.h"
#include "assembler/cubin/layout.h"
#include "assembler/cubin/lines.h"

namespace rndn::cubin {
namespace {

constexpr uint64_t most_shared_bytes = 1 << 20, most_data_bytes = uint64_t{1} << 40;

class Reader {
 public:
  explicit Reader(std::span<const std::byte> file) : file_(file) {}
  Result<Image> run();

 private:
  struct Section {
    std::string name;
    SectionHeader header;
    std::span<const std::byte> bytes;  // empty for NOBITS
  };

  Result<void> sections();
  Result<void> symbols();
  Result<void> kernels();
  Result<void> kernel_info(Kernel& k, const Section& s);
  Result<void> variables();
  Result<void> relocations();
  Result<void> lines();
  Result<std::string> string_at(std::span<const std::byte> table, uint32_t offset, const char* what) const;

  template <class T>
  static T load(std::span<const std::byte> bytes, size_t at) {
    T v;
    std::memcpy(&v, bytes.data() + at, sizeof v);
    return v;
  }
  static bool starts(const std::string& s, std::string_view prefix) { return s.compare(0, prefix.size(), prefix) == 0; }

  // One record of .nv.info. f(attribute, value of a short record, payload of a long one) returns Result<void>.
  template <class F>
  Result<void> records(const Section& s, F&& f) {
    for (size_t at = 0; at < s.bytes.size();) {
      if (s.bytes.size() - at < 4) return input_error("section {} ends within a record", s.name);
      auto format = load<uint8_t>(s.bytes, at), attribute = load<uint8_t>(s.bytes, at + 1);
      auto value = load<uint16_t>(s.bytes, at + 2);
      at += 4;
      if (format < no_value || format > sized_value)
        return input_error("section {} has a record of unknown format {} at offset {}", s.name, format, at - 4);
      std::span<const std::byte> payload;
      if (format == sized_value) {
        if (value > s.bytes.size() - at)
          return input_error("section {}: the record at offset {} reaches beyond its end", s.name, at - 4);
        payload = s.bytes.subspan(at, value);
        at += value;
      }
      RETURN_IF_ERROR(f(attribute, value, payload));
    }
    return {};
  }

  std::span<const std::byte> file_;
  const Layout* layout_ = nullptr;
  Image image_;
  std::vector<Section> sections_;
  std::vector<Symbol> symbols_;
  std::vector<std::string> symbol_names_;
  std::map<uint32_t, size_t> kernel_of_section_;  // section index -> kernel
  std::map<uint32_t, std::vector<size_t>> variables_of_section_;
};

Result<std::string> Reader::string_at(std::span<const std::byte> table, uint32_t offset, const char* what) const {
  if (offset >= table.size()) return input_error("{} lies outside its string table", what);
  const auto* begin = reinterpret_cast<const char*>(table.data()) + offset;
  size_t most = table.size() - offset, length = strnlen(begin, most);
  if (length == most) return input_error("{} has no end", what);
  return std::string(begin, length);
}

Result<void> Reader::sections() {
  if (file_.size() < sizeof(FileHeader)) return input_error("not a cubin: {} bytes are no ELF header", file_.size());
  auto h = load<FileHeader>(file_, 0);
  if (std::memcmp(h.ident, "\177ELF", 4) != 0) return input_error("not a cubin: no ELF file");
  if (h.ident[4] != 2 || h.ident[5] != 1 || h.machine != 190)
    return input_error("not a cubin: an ELF file for another machine ({})", h.machine);
  if (h.type != 2)
    return input_error("not an executable cubin (ELF type {}); relocatable ones have to be linked first", h.type);
  const uint8_t abi = h.ident[8];
  if (abi != 2 && abi != 7 && abi != 8)  // 2: without the ABI, as ptxas makes of modules that do not keep to it
    return input_error("cubin of unknown ELF ABI version {}", abi);
  const bool is_newer = abi == 8 || h.ident[7] == os_abi_13;
  image_.sm = h.flags >> (is_newer ? 8 : 0) & 0xff;
  image_.ptx_target = is_newer ? image_.sm : h.flags >> 16 & 0xff;
  layout_ = find_layout(image_.sm);
  if (!layout_) return input_error("cubin for sm_{}, which is not supported", image_.sm);
  if (h.section_header_size != sizeof(SectionHeader))
    return input_error("damaged cubin: section headers of {} bytes", h.section_header_size);
  if (h.section_headers > file_.size() || h.section_count > (file_.size() - h.section_headers) / sizeof(SectionHeader))
    return input_error("damaged cubin: {} section headers at offset {} reach beyond the file's {} bytes",
                       h.section_count, h.section_headers, file_.size());
  if (h.program_header_count && (h.program_headers > file_.size() ||
                                 h.program_header_count > (file_.size() - h.program_headers) / sizeof(ProgramHeader)))
    return input_error("damaged cubin: {} program headers at offset {} reach beyond the file's {} bytes",
                       h.program_header_count, h.program_headers, file_.size());
  if (h.string_section >= h.section_count) return input_error("damaged cubin: no section name table");
  sections_.resize(h.section_count);
  for (uint32_t i = 0; i < h.section_count; ++i) {
    Section& s = sections_[i];
    s.header = load<SectionHeader>(file_, h.section_headers + i * sizeof(SectionHeader));
    if (s.header.type == sht_nobits || s.header.type == 0) continue;
    if (s.header.offset > file_.size() || s.header.size > file_.size() - s.header.offset)
      return input_error("damaged cubin: section {} ({} bytes at offset {}) reaches beyond the file's {} bytes", i,
                         s.header.size, s.header.offset, file_.size());
    s.bytes = file_.subspan(s.header.offset, s.header.size);
  }
  for (Section& s : sections_) {
    ASSIGN_OR_RETURN(s.name, string_at(sections_[h.string_section].bytes, s.header.name, "the name of a section"));
  }
  return {};
}

Result<void> Reader::symbols() {
  const Section* table = nullptr;
  for (const Section& s : sections_)
    if (s.header.type == sht_symtab) {
      if (table) return input_error("damaged cubin: two symbol tables");
      table = &s;
    }
  if (!table) return input_error("damaged cubin: no symbol table");
  if (table->header.link >= sections_.size()) return input_error("damaged cubin: no string table");
  size_t n = table->bytes.size() / sizeof(Symbol);
  for (size_t i = 0; i < n; ++i) {
    auto s = load<Symbol>(table->bytes, i * sizeof(Symbol));
    ASSIGN_OR_RETURN(std::string name, string_at(sections_[table->header.link].bytes, s.name, "the name of a symbol"));
    if (s.section < 0xff00 && s.section >= sections_.size())
      return input_error("damaged cubin: symbol `{}` lies in section {} of {}", name, s.section, sections_.size());
    symbols_.push_back(s);
    symbol_names_.push_back(std::move(name));
  }
  return {};
}

// Kernels, and functions with sections of their own, are the .text sections, last one first.
Result<void> Reader::kernels() {
  std::map<std::string, size_t, std::less<>> by_name;
  for (size_t i = sections_.size(); i-- > 0;) {
    const Section& s = sections_[i];
    if (!starts(s.name, ".text.")) continue;
    Kernel k;
    k.name = s.name.substr(6);
    if (by_name.count(k.name)) return input_error("damaged cubin: two sections {}", s.name);
    if (s.bytes.size() % (layout_->pascal ? 32 : 16))
      return input_error("section {}: {} bytes are no whole number of instructions", s.name, s.bytes.size());
    k.code.assign(s.bytes.begin(), s.bytes.end());
    k.barriers = static_cast<uint32_t>(s.header.flags >> 20 & 0x7f);
    if (!layout_->rela) k.registers = s.header.info >> 24;
    by_name[k.name] = image_.kernels.size();
    kernel_of_section_[static_cast<uint32_t>(i)] = image_.kernels.size();
    image_.kernels.push_back(std::move(k));
  }
  bool entry = image_.kernels.empty();
  for (size_t i = 0; i < symbols_.size(); ++i) {
    const Symbol& s = symbols_[i];
    if ((s.info & 15) != 2) continue;
    auto at = kernel_of_section_.find(s.section);
    if (at == kernel_of_section_.end()) continue;
    Kernel& k = image_.kernels[at->second];
    if (s.value > k.code.size() || s.size > k.code.size() - s.value)
      return input_error("damaged cubin: function `{}` reaches beyond its section", symbol_names_[i]);
    if (s.other & entry_function) {
      entry = true;
    } else if (symbol_names_[i] == k.name && s.value == 0) {
      k.role = (s.info >> 4) == 0 ? Kernel::local : (s.info >> 4) == 2 ? Kernel::weak : Kernel::global;
    } else {
      k.functions.push_back({symbol_names_[i], s.value, s.size, (s.info >> 4) == 2});
    }
  }
  for (Kernel& k : image_.kernels)
    std::stable_sort(k.functions.begin(), k.functions.end(), [](const Function& a, const Function& b) {
      return a.offset != b.offset ? a.offset < b.offset : a.weak < b.weak;
    });
  if (!entry) return input_error("damaged cubin: it has code but no entry function");
  std::map<std::string, size_t, std::less<>> seen;
  for (const Section& s : sections_) {
    auto kernel = [&](std::string_view prefix) -> Kernel* {
      if (!starts(s.name, prefix)) return nullptr;
      auto at = by_name.find(std::string_view(s.name).substr(prefix.size()));
      return at == by_name.end() ? nullptr : &image_.kernels[at->second];
    };
    if (Kernel* k = kernel(".nv.info.")) {
      if (!seen.emplace(s.name, 1).second) return input_error("damaged cubin: two sections {}", s.name);
      RETURN_IF_ERROR(kernel_info(*k, s));
    } else if (Kernel* k2 = kernel(".nv.constant2.")) {
      k2->constants.assign(s.bytes.begin(), s.bytes.end());
    } else if (Kernel* k3 = kernel(".nv.shared.")) {
      if (s.header.size > most_shared_bytes)
        return input_error("section {}: {} bytes of shared memory", s.name, s.header.size);
      k3->uses_shared = true;
      k3->shared_bytes = static_cast<uint32_t>(s.header.size);
    }
  }
  for (const Section& s : sections_)
    if (s.name == ".nv.info" && s.header.type == sht_nv_info) {
      RETURN_IF_ERROR(records(s, [&](uint8_t attribute, uint16_t, std::span<const std::byte> payload) -> Result<void> {
        if (attribute != attr_regcount && attribute != attr_frame_size && attribute != attr_min_stack_size) return {};
        if (payload.size() < 8)
          return input_error("section {}: attribute {} of {} bytes", s.name, attribute, payload.size());
        auto symbol = load<uint32_t>(payload, 0), value = load<uint32_t>(payload, 4);
        if (symbol >= symbols_.size())
          return input_error("section {}: attribute {} of symbol {}, which does not exist", s.name, attribute, symbol);
        auto at = kernel_of_section_.find(symbols_[symbol].section);
        if (at == kernel_of_section_.end()) return {};
        Kernel& k = image_.kernels[at->second];
        if (!(symbols_[symbol].other & entry_function) && symbol_names_[symbol] != k.name) return {};
        if (attribute == attr_regcount)
          k.registers = value;
        else if (value == UINT32_MAX)
          k.dynamic_stack = true;
        else
          k.local_bytes = std::max(k.local_bytes, value);
        return {};
      }));
    }
  return {};
}

Result<void> Reader::kernel_info(Kernel& k, const Section& s) {
  std::map<uint32_t, Parameter> parameters;
  RETURN_IF_ERROR(
      records(s, [&](uint8_t attribute, uint16_t value, std::span<const std::byte> payload) -> Result<void> {
        auto need = [&](size_t bytes) -> Result<void> {
          if (payload.size() < bytes)
            return input_error("section {}: attribute {} of {} bytes", s.name, attribute, payload.size());
          return {};
        };
        auto offsets = [&](std::vector<uint32_t>& to) {
          for (size_t at = 0; at + 4 <= payload.size(); at += 4) to.push_back(load<uint32_t>(payload, at));
        };
        auto three = [&](std::array<uint32_t, 3>& to) -> Result<void> {
          RETURN_IF_ERROR(need(12));
          for (size_t i = 0; i < 3; ++i) to[i] = load<uint32_t>(payload, 4 * i);
          return {};
        };
        switch (attribute) {
          case attr_param_cbank: {
            RETURN_IF_ERROR(need(8));
            auto base = load<uint16_t>(payload, 4);
            if (base != layout_->parameter_base)
              return input_error("section {}: parameters at offset {} of the constant bank, expected {}", s.name, base,
                                 layout_->parameter_base);
            k.parameter_bytes = load<uint16_t>(payload, 6);
            return {};
          }
          case attr_cbank_param_size: k.parameter_bytes = value; return {};
          case attr_kparam_info:
          case attr_kparam_info_v2: {
            RETURN_IF_ERROR(need(12));
            auto ordinal = load<uint16_t>(payload, 4);
            const uint32_t size =
                attribute == attr_kparam_info ? load<uint32_t>(payload, 8) >> 18 : load<uint16_t>(payload, 8);
            if (!parameters.emplace(ordinal, Parameter{load<uint16_t>(payload, 6), size}).second)
              return input_error("section {}: two parameters {}", s.name, ordinal);
            return {};
          }
          case attr_externs:
            for (size_t at = 0; at + 4 <= payload.size(); at += 4) {
              const uint32_t symbol = load<uint32_t>(payload, at);
              if (symbol >= symbol_names_.size())
                return input_error("section {}: external function {}, which does not exist", s.name, symbol);
              k.externs.push_back(symbol_names_[symbol]);
            }
            return {};
          case attr_maxreg_count: k.max_registers = value; return {};
          case attr_exit_offsets: offsets(k.exit_offsets); return {};
          case attr_coop_offsets: offsets(k.cooperative_offsets); return {};
          case attr_warp_wide_offsets: offsets(k.warp_wide_offsets); return {};
          case attr_ctaid_offsets: offsets(k.ctaid_offsets); return {};
          case attr_ctaidz_used: k.uses_ctaid_z = true; return {};
          case attr_max_threads: return three(k.max_threads);
          case attr_reqntid: return three(k.required_threads);
          case attr_crs_stack_size:
            RETURN_IF_ERROR(need(4));
            k.stack_bytes = load<uint32_t>(payload, 0);
            k.has_crs_attribute = true;
            return {};
          case 0x4c:  // toolkit 13: number of barriers
            if ((value & 0xff) > 16) return input_error("section {}: {} barriers", s.name, value & 0xff);
            k.barriers = value & 0xff;
            return {};
          case attr_indirect_targets: {
            for (size_t at = 0; at + 12 <= payload.size();) {
              IndirectBranch b;
              b.offset = load<uint32_t>(payload, at);
              size_t n = load<uint32_t>(payload, at + 8);
              at += 12;
              if (n > (payload.size() - at) / 4)
                return input_error("section {}: an indirect branch with {} targets", s.name, n);
              for (size_t i = 0; i < n; ++i) b.targets.push_back(load<uint32_t>(payload, at + 4 * i));
              at += 4 * n;
              k.indirect_branches.push_back(std::move(b));
            }
            return {};
          }
          default: return {};
        }
      }));
  for (const auto& [ordinal, p] : parameters) {
    if (ordinal != k.parameters.size()) return input_error("section {}: no parameter {}", s.name, k.parameters.size());
    if (p.offset > k.parameter_bytes || p.size > k.parameter_bytes - p.offset)
      return input_error("section {}: parameter {} ({} bytes at offset {}) lies outside the {} bytes of parameters",
                         s.name, ordinal, p.size, p.offset, k.parameter_bytes);
    k.parameters.push_back(p);
  }
  return {};
}

// Objects of the data sections, in order of address; a section without any is one variable of the section's name.
Result<void> Reader::variables() {
  // Constant banks, then initialised, then zero data, whatever the order of the sections.
  std::vector<uint32_t> order(sections_.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  auto rank = [&](uint32_t i) -> std::string {
    const std::string& name = sections_[i].name;
    return name == ".nv.global" ? "2" : name == ".nv.global.init" ? "1" : "0" + name;
  };
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return rank(a) < rank(b); });
  std::map<std::string_view, int> seen;
  for (uint32_t index : order) {
    const Section& s = sections_[index];
    bool bank = starts(s.name, ".nv.constant") && s.name.size() == 13 && s.name[12] >= '1' && s.name[12] <= '9';
    bool data = s.name == ".nv.global.init", zero = s.name == ".nv.global";
    if (!bank && !data && !zero) continue;
    if ((s.header.type == sht_nobits) != zero)
      return input_error("section {}: type {}, expected {}", s.name, s.header.type,
                         zero ? "one without bytes" : "one with bytes");
    if (!seen.emplace(s.name, 1).second) return input_error("damaged cubin: two sections {}", s.name);
    uint64_t size = zero ? s.header.size : s.bytes.size();
    if (size > most_data_bytes) return input_error("section {}: {} bytes", s.name, size);
    uint64_t alignment = s.header.alignment ? s.header.alignment : 1;
    if (!std::has_single_bit(alignment) || alignment > 4096)
      return input_error("section {}: alignment {}", s.name, alignment);
    std::vector<Variable> found;
    auto add = [&](std::string name, uint64_t offset, uint64_t bytes, bool visible) {
      Variable v;
      v.name = std::move(name);
      v.size = bytes;
      v.offset = offset;
      v.align = static_cast<uint32_t>(offset ? std::min<uint64_t>(alignment, offset & (~offset + 1)) : alignment);
      v.constant = bank;
      if (bank) v.bank = static_cast<uint8_t>(s.name[12] - '0');
      v.visible = visible;
      if (s.header.type != sht_nobits)
        v.initial.assign(s.bytes.begin() + static_cast<long>(offset),
                         s.bytes.begin() + static_cast<long>(offset + bytes));
      found.push_back(std::move(v));
    };
    for (size_t i = 0; i < symbols_.size(); ++i) {
      const Symbol& y = symbols_[i];
      if (y.section != index || (y.info & 15) != 1) continue;
      if (y.value > size || y.size > size - y.value)
        return input_error("damaged cubin: variable `{}` reaches beyond its section", symbol_names_[i]);
      if (found.size() * 16 > file_.size()) return input_error("damaged cubin: too many variables");
      if (y.size == 0 && !zero) return input_error("section {}: variable `{}` of no bytes", s.name, symbol_names_[i]);
      add(symbol_names_[i], y.value, y.size, (y.info >> 4) == 1);
      found.back().managed = (y.other & managed_variable) != 0;
    }
    if (found.empty() && size) add(s.name, 0, size, false);
    // Variables of no bytes share their place with another one.
    std::sort(found.begin(), found.end(), [](const Variable& a, const Variable& b) {
      return std::tie(a.offset, a.size, a.name) < std::tie(b.offset, b.size, b.name);
    });
    for (size_t i = 1; i < found.size(); ++i)
      if (found[i].offset < found[i - 1].offset + found[i - 1].size)
        return input_error("damaged cubin: variables `{}` and `{}` overlap", found[i - 1].name, found[i].name);
    // The alignment that the place shows once write() has closed the gaps: that of the place here, or more.
    uint64_t end = 0;
    for (Variable& v : found) {
      const uint64_t place = (end + v.align - 1) / v.align * v.align;
      v.align = static_cast<uint32_t>(place ? std::min(alignment, place & (~place + 1)) : alignment);
      end = place + v.size;
    }
    for (Variable& v : found) {
      variables_of_section_[index].push_back(image_.variables.size());
      image_.variables.push_back(std::move(v));
    }
  }
  std::map<std::string_view, int> names;
  for (const Variable& v : image_.variables)
    if (!names.emplace(v.name, 1).second) return input_error("damaged cubin: two variables `{}`", v.name);
  for (const Kernel& k : image_.kernels)
    if (names.count(k.name)) return input_error("damaged cubin: `{}` is a variable and a kernel", k.name);
  return {};
}

Result<void> Reader::relocations() {
  std::map<std::string, size_t, std::less<>> by_name;
  for (size_t i = 0; i < image_.variables.size(); ++i) by_name[image_.variables[i].name] = i;
  // The variable of a section (in order of address) that holds the byte.
  auto covering = [&](const std::vector<size_t>& section, uint64_t offset) -> Variable* {
    auto after = std::upper_bound(section.begin(), section.end(), offset,
                                  [&](uint64_t at, size_t v) { return at < image_.variables[v].offset; });
    if (after == section.begin()) return nullptr;
    Variable& v = image_.variables[*(after - 1)];
    return offset - v.offset < v.size ? &v : nullptr;
  };
  for (const Section& s : sections_) {
    bool rela = s.header.type == sht_rela;
    if (!rela && s.header.type != sht_rel) continue;
    if (s.header.info >= sections_.size())
      return input_error("damaged cubin: section {} relocates section {}", s.name, s.header.info);
    uint32_t target = s.header.info;
    auto kernel = kernel_of_section_.find(target);
    auto data = variables_of_section_.find(target);
    if (kernel == kernel_of_section_.end() && data == variables_of_section_.end()) {
      // Tables of the kernels' own constants and debug information hold nothing that an Image could keep.
      if (starts(sections_[target].name, ".nv.constant2.") && !s.bytes.empty())
        return input_error("section {}: relocations of jump tables are not supported", s.name);
      continue;
    }
    size_t entry = rela ? 24 : 16;
    // Listed in descending order: taken from the back.
    for (size_t i = s.bytes.size() / entry; i-- > 0;) {
      auto offset = load<uint64_t>(s.bytes, i * entry), info = load<uint64_t>(s.bytes, i * entry + 8);
      Relocation r;
      switch (static_cast<uint32_t>(info)) {
        case r_64:
        case r_g64: r.kind = Relocation::generic_64; break;
        case r_32: r.kind = Relocation::low_32; break;
        case r_lo_20:
        case r_lo_32: r.kind = Relocation::absolute_low_32; break;
        case r_hi_20:
        case r_hi_32: r.kind = Relocation::absolute_high_32; break;
        case r_call_pascal:
        case r_call:
        case r_call_90: r.kind = Relocation::call; break;
        default: return input_error("section {}: relocation of unknown type {}", s.name, static_cast<uint32_t>(info));
      }
      const Section& patched = sections_[target];
      const uint64_t bytes = r.kind == Relocation::low_32 ? 4 : 8;
      if (bytes == 4 && kernel != kernel_of_section_.end())
        return input_error("section {}: relocation of a word of data in code", s.name);
      if (patched.bytes.size() < bytes || offset > patched.bytes.size() - bytes)
        return input_error("section {}: relocation at offset {}, beyond {}", s.name, offset, patched.name);
      uint64_t symbol = info >> 32;
      if (symbol >= symbols_.size())
        return input_error("section {}: relocation against symbol {}, which does not exist", s.name, symbol);
      const Symbol& y = symbols_[symbol];
      if (rela)
        r.addend = load<int64_t>(s.bytes, i * entry + 16);
      else if (data != variables_of_section_.end())
        r.addend = bytes == 4 ? load<uint32_t>(patched.bytes, offset) : load<int64_t>(patched.bytes, offset);
      // A place in code, a function of the driver, a variable, or a place in a data section. ptxas 13 has the addresses of the driver's functions in
      // bank 4; code calls them, and knows no address.
      const auto code = kernel_of_section_.find(y.section);
      const bool in_code = code != kernel_of_section_.end();
      const bool of_driver = !in_code && (y.info & 15) == 2 && y.section == 0 &&
                             (kernel == kernel_of_section_.end() ? !by_name.count(symbol_names_[symbol])
                                                                 : r.kind == Relocation::call);
      if (in_code) {
        r.symbol = image_.kernels[code->second].name;
        r.addend += static_cast<int64_t>(y.value);
      } else if (of_driver && kernel != kernel_of_section_.end()) {
        r.symbol = symbol_names_[symbol];
        std::vector<std::string>& externs = image_.kernels[kernel->second].externs;
        if (std::find(externs.begin(), externs.end(), r.symbol) == externs.end()) externs.push_back(r.symbol);
      } else if (of_driver) {
        r.symbol = symbol_names_[symbol];
        if (std::any_of(image_.kernels.begin(), image_.kernels.end(),
                        [&](const Kernel& k) { return k.name == r.symbol; }))
          return input_error("damaged cubin: section {} takes the kernel `{}` for a function of the driver", s.name,
                             r.symbol);
      } else {
        auto home = variables_of_section_.find(y.section);
        const Variable* to = nullptr;
        if (home != variables_of_section_.end()) {
          if (auto named = by_name.find(symbol_names_[symbol]); (y.info & 15) != 1)
            to = covering(home->second, static_cast<uint64_t>(r.addend));
          else if (named != by_name.end())
            to = &image_.variables[named->second];
        }
        if (!to)
          return input_error("section {}: relocation against `{}`, which is neither a variable nor code", s.name,
                             symbol_names_[symbol]);
        if ((y.info & 15) != 1) r.addend -= static_cast<int64_t>(to->offset);
        r.symbol = to->name;
      }
      if (kernel != kernel_of_section_.end()) {
        r.offset = offset;
        image_.kernels[kernel->second].relocations.push_back(std::move(r));
        continue;
      }
      Variable* in = covering(data->second, offset);
      if (!in) return input_error("section {}: relocation at offset {}, outside of any variable", s.name, offset);
      r.offset = offset - in->offset;
      if (in->size - r.offset < bytes)
        return input_error("section {}: relocation at offset {}, beyond variable `{}`", s.name, offset, in->name);
      in->relocations.push_back(std::move(r));
    }
  }
  for (Kernel& k : image_.kernels)
    std::stable_sort(k.relocations.begin(), k.relocations.end(), [](const Relocation& a, const Relocation& b) {
      return a.offset != b.offset ? a.offset < b.offset : (a.addend != 0) < (b.addend != 0);
    });
  for (const Kernel& k : image_.kernels)
    for (const std::string& name : k.externs) {
      const bool kernel = std::any_of(image_.kernels.begin(), image_.kernels.end(),
                                      [&](const Kernel& other) { return other.name == name; });
      if (kernel || by_name.count(name))
        return input_error("damaged cubin: kernel `{}` takes `{}` of the module for a function of the driver", k.name,
                           name);
    }
  return {};
}

// A sequence of lines belongs to the kernel that its address is relocated to.
Result<void> Reader::lines() {
  const auto named = [&](std::string_view name) -> const Section* {
    for (const Section& s : sections_)
      if (s.name == name) return &s;
    return nullptr;
  };
  const Section* table = named(".debug_line");
  if (!table) return {};
  if (const Section* strings = named(".debug_str"))
    image_.debug_strings.assign(strings->bytes.begin(), strings->bytes.end());
  ASSIGN_OR_RETURN(std::vector<LineSequence> sequences, read_lines(table->bytes, image_));
  std::map<uint64_t, std::pair<uint32_t, uint64_t>> bases;  // place of the address -> section of code, offset in it
  for (const Section& s : sections_) {
    const bool rela = s.header.type == sht_rela;
    if ((!rela && s.header.type != sht_rel) || s.header.info >= sections_.size() || &sections_[s.header.info] != table)
      continue;
    const size_t entry = rela ? 24 : 16;
    for (size_t i = 0; i < s.bytes.size() / entry; ++i) {
      const auto offset = load<uint64_t>(s.bytes, i * entry), info = load<uint64_t>(s.bytes, i * entry + 8);
      if (info >> 32 >= symbols_.size())
        return input_error("section {}: relocation against symbol {}, which does not exist", s.name, info >> 32);
      const Symbol& y = symbols_[info >> 32];
      bases[offset] = {y.section, y.value + (rela ? load<uint64_t>(s.bytes, i * entry + 16) : 0)};
    }
  }
  for (LineSequence& q : sequences) {
    const auto base = bases.find(q.address_at);
    const auto kernel = base == bases.end() ? kernel_of_section_.end() : kernel_of_section_.find(base->second.first);
    if (kernel == kernel_of_section_.end()) continue;
    Kernel& k = image_.kernels[kernel->second];
    const uint64_t begin = base->second.second + q.address;
    const auto rows_before = static_cast<uint32_t>(k.lines.size());
    for (LineRow& row : q.rows) {
      if (begin > k.code.size() || row.offset > k.code.size() - begin)
        return input_error("section .debug_line: a line at offset {} of kernel `{}` with {} bytes", row.offset, k.name,
                           k.code.size());
      row.offset += begin;
      if (row.caller) row.caller += rows_before;
      k.lines.push_back(row);
    }
  }
  if (std::all_of(image_.kernels.begin(), image_.kernels.end(), [](const Kernel& k) { return k.lines.empty(); })) {
    image_.files.clear();
    image_.debug_strings.clear();
  }
  return {};
}

Result<Image> Reader::run() {
  RETURN_IF_ERROR(sections());
  RETURN_IF_ERROR(symbols());
  RETURN_IF_ERROR(kernels());
  RETURN_IF_ERROR(variables());
  RETURN_IF_ERROR(relocations());
  RETURN_IF_ERROR(lines());
  return std::move(image_);
}

}  // namespace

Result<Image> read(std::span<const std::byte> file) { return Reader(file).run(); }

}  // namespace rndn::cubin
