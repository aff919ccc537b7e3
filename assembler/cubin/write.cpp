// Image to cubin: sections in ptxas 11.8's order, symbols, relocations, .nv.info, program headers. One pass builds the sections in memory,
// then offsets are assigned and everything is copied out; cost linear in the size of the file.
//
// Left out: .debug_frame (the driver does not need it), .nv.info records of functions inside kernels.
#include <algorithm>
#include <cstring>
#include <map>
#include <span>

#include "assembler/cubin/cubin.h"
#include "assembler/cubin/layout.h"
#include "assembler/cubin/lines.h"
#include "libraries/base/containers/arena.h"
#include "libraries/base/containers/intern.h"

namespace rndn::cubin {
namespace {

template <class T>
void put(Bytes& out, const T& value) {
  const size_t at = out.size();
  out.resize(at + sizeof value);
  std::memcpy(out.data() + at, &value, sizeof value);
}
void pad(Bytes& out, uint64_t alignment) {
  if (alignment > 1) out.resize((out.size() + alignment - 1) / alignment * alignment);
}
uint64_t align_up(uint64_t v, uint64_t alignment) {
  return alignment > 1 ? (v + alignment - 1) / alignment * alignment : v;
}

// A string table: each text once.
struct Strings {
  Interner names;
  std::vector<uint32_t> offsets;  // by NameId
  Bytes bytes;
  Strings() {
    bytes.reserve(4096), offsets.reserve(256);
    add("");
  }
  NameId intern(std::string_view s) {
    const NameId id = names.intern(s);
    if (index(id) == offsets.size()) {
      offsets.push_back(static_cast<uint32_t>(bytes.size()));
      const auto* p = reinterpret_cast<const std::byte*>(s.data());
      bytes.insert(bytes.end(), p, p + s.size());
      bytes.push_back(std::byte{0});
    }
    return id;
  }
  uint32_t add(std::string_view s) { return offsets[index(intern(s))]; }
};

struct Section {
  std::string_view name;
  SectionHeader header;
  Bytes bytes;                       // made here
  std::span<const std::byte> given;  // or the image's, or another table's
  std::span<const std::byte> contents() const { return given.empty() ? std::span<const std::byte>(bytes) : given; }
};

// Records of one .nv.info section.
struct Records {
  Bytes bytes;
  Records() { bytes.reserve(512); }
  void none(uint8_t attribute) { head(no_value, attribute, 0); }
  void half(uint8_t attribute, uint32_t value) { head(half_value, attribute, value); }
  void sized(uint8_t attribute, std::initializer_list<uint32_t> words) {
    sized(attribute, std::span(words.begin(), words.size()));
  }
  void sized(uint8_t attribute, std::span<const uint32_t> words) {
    head(sized_value, attribute, static_cast<uint32_t>(words.size_bytes()));
    const std::span<const std::byte> body = std::as_bytes(words);
    bytes.insert(bytes.end(), body.begin(), body.end());
  }
  void offsets(uint8_t attribute, std::span<const uint32_t> words) {
    // The length is 16 bits: longer lists are split into several records.
    constexpr size_t most = 0xfffc / 4;
    for (size_t at = 0; at < words.size(); at += most)
      sized(attribute, words.subspan(at, std::min(words.size() - at, most)));
  }

 private:
  // The format, the attribute, and a value or a length of 16 bits.
  void head(uint32_t format, uint32_t attribute, uint32_t value) { put(bytes, format | attribute << 8 | value << 16); }
};

// The constant table of relocation actions that ptxas writes for sm_8x and Pascal.
Bytes relocation_actions() {
  static constexpr uint8_t head[16] = {0x4b, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 8, 0x10, 0x0a, 0x2f, 0x22};
  static constexpr uint8_t tail[16] = {0, 0, 0, 0x14, 0x2c, 0, 0, 0, 3, 0, 0, 0x0c, 0, 0, 0, 0};
  Bytes out;
  for (uint8_t b : head) put(out, b);
  for (uint32_t kind = 0; kind < 3; ++kind)
    for (uint32_t shift = 0; shift < 64; shift += 8) put(out, uint64_t{kind | shift << 16 | 8u << 24});
  for (uint8_t b : tail) put(out, b);
  return out;
}

class Writer {
 public:
  explicit Writer(const Image& image) : image_(image), layout_(*find_layout(image.sm)) {}
  Bytes run();

 private:
  std::string_view join(std::string_view a, std::string_view b) {
    const std::span<char> both = arena_.make_raw<char>(a.size() + b.size());
    std::copy(b.begin(), b.end(), std::copy(a.begin(), a.end(), both.begin()));
    return {both.data(), both.size()};
  }
  uint32_t add(std::string_view name, uint32_t type, uint64_t flags, uint64_t alignment, uint64_t entry_size = 0) {
    Section s;
    s.name = name;
    s.header.type = type;
    s.header.flags = flags;
    s.header.alignment = alignment;
    s.header.entry_size = entry_size;
    sections_.push_back(std::move(s));
    return static_cast<uint32_t>(sections_.size() - 1);
  }
  uint32_t symbol(std::string_view name, uint8_t info, uint32_t section, uint64_t value = 0, uint64_t size = 0,
                  uint8_t other = 0) {
    Symbol s;
    s.name = strings_.add(name);
    s.info = info;
    s.other = other;
    s.section = static_cast<uint16_t>(section);
    s.value = value;
    s.size = size;
    symbols_.push_back(s);
    return static_cast<uint32_t>(symbols_.size() - 1);
  }
  void plan();
  void variables();
  void make_symbols();
  void relocations(uint32_t section, uint32_t target, const std::vector<std::pair<uint64_t, const Relocation*>>& list);
  void line_tables();
  Bytes kernel_info(const Kernel& k, uint32_t constant_symbol);
  Bytes assemble();

  const Image& image_;
  const Layout& layout_;
  Arena arena_;  // names of sections
  std::vector<Section> sections_;
  std::vector<Symbol> symbols_;
  Strings strings_, section_names_;
  struct Place {
    uint32_t info = 0, constant0 = 0, constant2 = 0, text = 0, shared = 0, relocation = 0,
             relocation_addend = 0;  // section indices; 0: none
    uint32_t symbol = 0, constant_symbol = 0;
  };
  std::vector<Place> places_;                      // parallel to image_.kernels
  std::map<uint8_t, uint32_t> constant_sections_;  // by bank
  uint32_t data_ = 0, zero_ = 0, data_relocations_ = 0, actions_ = 0, info_ = 0, lines_ = 0, strings_section_ = 0,
           line_relocations_ = 0;
  std::map<uint8_t, uint32_t> constant_relocations_;
  std::vector<uint64_t> offsets_;  // of the variables
  uint32_t& symbol_named(std::string_view name) {
    const uint32_t id = index(strings_.intern(name));
    if (id >= named_.size()) named_.resize(id + 1, no_symbol);
    return named_[id];
  }
  static constexpr uint32_t no_symbol = UINT32_MAX;
  std::vector<uint32_t> named_;  // symbols of variables, kernels and functions of the driver, by NameId of strings_
  uint32_t first_global_ = 0;
};

bool has_addend(const std::vector<Relocation>& list) {
  for (const Relocation& r : list)
    if (r.addend) return true;
  return false;
}
// Without addends of their own, the relocations of data add to the bytes that stand there.
bool needs_addends(const Variable& v) {
  for (const Relocation& r : v.relocations)
    for (uint64_t at = r.offset; at < std::min<uint64_t>(r.offset + 8, v.initial.size()); ++at)
      if (v.initial[at] != std::byte{0}) return true;
  return has_addend(v.relocations);
}

// Which sections there are, in order.
void Writer::plan() {
  const auto& kernels = image_.kernels;
  places_.resize(kernels.size());
  sections_.reserve(7 * kernels.size() + 16);
  symbols_.reserve(6 * kernels.size() + 16);
  add("", 0, 0, 0);
  add(".shstrtab", sht_strtab, 0, 1);
  add(".strtab", sht_strtab, 0, 1);
  add(".symtab", sht_symtab, 0, 8, 24);
  const bool lines = std::any_of(kernels.begin(), kernels.end(), [](const Kernel& k) { return !k.lines.empty(); });
  if (lines) {
    lines_ = add(".debug_line", sht_progbits, 0, 1);
    if (!image_.debug_strings.empty()) {
      strings_section_ = add(".debug_str", sht_progbits, 0, 1);
      sections_[strings_section_].given = image_.debug_strings;
    }
  }
  info_ = add(".nv.info", sht_nv_info, 0, 4);
  auto backwards = [&](auto&& f) {
    for (size_t i = kernels.size(); i-- > 0;) f(kernels[i], places_[i]);
  };
  backwards([&](const Kernel& k, Place& p) { p.info = add(join(".nv.info.", k.name), sht_nv_info, 0, 4); });
  if (!layout_.rela) {
    actions_ = add(".nv.rel.action", sht_nv_rel_action, 0, 8, 8);
    sections_[actions_].bytes = relocation_actions();
  }
  auto relocation_section = [&](std::string_view of, bool addends) {
    bool rela = layout_.rela || addends;
    return add(join(rela ? ".rela" : ".rel", of), rela ? sht_rela : sht_rel, 0, 8, rela ? 24 : 16);
  };
  if (lines) line_relocations_ = relocation_section(".debug_line", false);
  backwards([&](const Kernel& k, Place& p) {
    if (std::any_of(k.relocations.begin(), k.relocations.end(), [](const Relocation& r) { return r.addend == 0; }))
      p.relocation = relocation_section(join(".text.", k.name), false);
    if (has_addend(k.relocations)) {
      if (layout_.rela && p.relocation)
        p.relocation_addend = p.relocation;
      else
        p.relocation_addend = relocation_section(join(".text.", k.name), true);
    }
  });
  bool data = false, zero = false, data_addends = false, data_relocated = false;
  std::map<uint8_t, bool> banks;
  std::map<uint8_t, bool> bank_relocated, bank_addends;
  for (const Variable& v : image_.variables) {
    if (v.constant) {
      banks[v.bank] = true;
      bank_relocated[v.bank] |= !v.relocations.empty();
      bank_addends[v.bank] |= needs_addends(v);
      continue;
    }
    (v.initial.empty() ? zero : data) = true;
    data_addends |= needs_addends(v);
    data_relocated |= !v.relocations.empty();
  }
  if (data_relocated) data_relocations_ = relocation_section(".nv.global.init", data_addends);
  for (auto [bank, present] : bank_relocated)
    if (present)
      constant_relocations_[bank] = relocation_section(join(".nv.constant", std::to_string(bank)), bank_addends[bank]);
  for (auto [bank, present] : banks)
    constant_sections_[bank] = add(join(".nv.constant", std::to_string(bank)), sht_progbits, shf_alloc, 1);
  backwards([&](const Kernel& k, Place& p) {
    if (!k.constants.empty()) {
      p.constant2 = add(join(".nv.constant2.", k.name), sht_progbits, shf_alloc, 8);
      sections_[p.constant2].given = k.constants;
    }
    if (!layout_.rela && k.role == Kernel::entry)
      p.constant0 = add(join(".nv.constant0.", k.name), sht_progbits, shf_alloc, 4);
  });
  backwards([&](const Kernel& k, Place& p) {
    p.text = add(join(".text.", k.name), sht_progbits, shf_alloc | shf_execute | uint64_t{k.barriers} << 20,
                 layout_.text_alignment);
    sections_[p.text].given = k.code;
  });
  if (data) data_ = add(".nv.global.init", sht_progbits, shf_alloc | shf_write, 1);
  backwards([&](const Kernel& k, Place& p) {
    if (k.uses_shared || k.shared_bytes) {
      p.shared = add(join(".nv.shared.", k.name), sht_nobits, shf_alloc | shf_write, 16);
      sections_[p.shared].header.size = k.shared_bytes;
    }
  });
  if (zero) zero_ = add(".nv.global", sht_nobits, shf_alloc | shf_write, 1);
  if (layout_.rela)
    backwards([&](const Kernel& k, Place& p) {
      if (k.role == Kernel::entry) p.constant0 = add(join(".nv.constant0.", k.name), sht_progbits, shf_alloc, 4);
    });
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (places_[i].constant0)
      sections_[places_[i].constant0].bytes.resize(layout_.parameter_base + kernels[i].parameter_bytes);
    for (uint32_t s : {places_[i].info, places_[i].constant0, places_[i].constant2, places_[i].shared})
      if (s) sections_[s].header.info = places_[i].text;
  }
}

// Lays out the variables in their sections.
void Writer::variables() {
  for (const Variable& v : image_.variables) {
    uint32_t index = v.constant ? constant_sections_[v.bank] : v.initial.empty() ? zero_ : data_;
    Section& s = sections_[index];
    uint64_t alignment = std::max<uint64_t>(v.align, 1);
    s.header.alignment = std::max(s.header.alignment, alignment);
    if (s.header.type == sht_nobits) {
      uint64_t at = align_up(s.header.size, alignment);
      offsets_.push_back(at);
      s.header.size = at + v.size;
    } else {
      pad(s.bytes, alignment);
      offsets_.push_back(s.bytes.size());
      CHECK(v.initial.size() <= v.size, "variable {}", v.name);
      s.bytes.insert(s.bytes.end(), v.initial.begin(), v.initial.end());
      s.bytes.resize(offsets_.back() + v.size);
    }
  }
}

void Writer::make_symbols() {
  symbols_.push_back({});
  auto section_symbol = [&](uint32_t index) { return index ? symbol(sections_[index].name, local_section, index) : 0; };
  const auto& kernels = image_.kernels;
  for (size_t i = kernels.size(); i-- > 0;) {
    section_symbol(places_[i].text);
    section_symbol(places_[i].shared);
    section_symbol(places_[i].constant2);
    places_[i].constant_symbol = section_symbol(places_[i].constant0);
    for (const Function& f : kernels[i].functions)
      if (!f.weak) symbol(f.name, local_function, places_[i].text, f.offset, f.size);
    if (kernels[i].role == Kernel::local)
      places_[i].symbol = symbol(kernels[i].name, local_function, places_[i].text, 0, kernels[i].code.size());
  }
  section_symbol(data_);
  section_symbol(zero_);
  for (auto [bank, index] : constant_sections_) section_symbol(index);
  section_symbol(lines_);
  section_symbol(strings_section_);
  section_symbol(actions_);
  auto variable = [&](size_t i) {
    const Variable& v = image_.variables[i];
    uint32_t index = v.constant ? constant_sections_[v.bank] : v.initial.empty() ? zero_ : data_;
    symbol_named(v.name) = symbol(v.name, v.visible ? global_object : local_object, index, offsets_[i], v.size,
                                  v.managed ? managed_variable : uint8_t{0});
  };
  for (size_t i = 0; i < image_.variables.size(); ++i)
    if (!image_.variables[i].visible) variable(i);
  first_global_ = static_cast<uint32_t>(symbols_.size());
  for (size_t i = kernels.size(); i-- > 0;) {
    for (const Function& f : kernels[i].functions)
      if (f.weak) symbol(f.name, weak_function, places_[i].text, f.offset, f.size);
    const Kernel::Role role = kernels[i].role;
    if (role != Kernel::local)
      places_[i].symbol =
          symbol(kernels[i].name, role == Kernel::weak ? weak_function : global_function, places_[i].text, 0,
                 kernels[i].code.size(), role == Kernel::entry ? uint8_t{entry_function} : uint8_t{0});
  }
  for (const Kernel& k : kernels)
    if (uint32_t& s = symbol_named(k.name); s == no_symbol)
      s = places_[static_cast<size_t>(&k - kernels.data())].symbol;
  for (size_t i = kernels.size(); i-- > 0;)
    for (const std::string& name : kernels[i].externs)
      if (symbol_named(name) == no_symbol) symbol_named(name) = symbol(name, global_function, 0);
  const auto of_variable = [&](const std::string& name) {
    return std::any_of(image_.variables.begin(), image_.variables.end(),
                       [&](const Variable& v) { return v.name == name; });
  };
  for (const Variable& v : image_.variables)  // the driver's functions whose addresses bank 4 holds
    for (const Relocation& r : v.relocations)
      if (symbol_named(r.symbol) == no_symbol && !of_variable(r.symbol))
        symbol_named(r.symbol) = symbol(r.symbol, global_function, 0);
  for (size_t i = 0; i < image_.variables.size(); ++i)
    if (image_.variables[i].visible) variable(i);
}

// Entries in descending order of offset, as ptxas lists them.
void Writer::relocations(uint32_t section, uint32_t target,
                         const std::vector<std::pair<uint64_t, const Relocation*>>& list) {
  Section& s = sections_[section];
  s.header.link = 3;
  s.header.info = target;
  for (size_t i = list.size(); i-- > 0;) {
    const Relocation& r = *list[i].second;
    const uint32_t symbol = symbol_named(r.symbol);
    CHECK(symbol != no_symbol, "relocation against `{}`", r.symbol);
    uint32_t type = r.kind == Relocation::generic_64        ? r_g64
                    : r.kind == Relocation::low_32          ? r_32
                    : r.kind == Relocation::call            ? (layout_.pascal ? r_call_pascal
                                                               : layout_.rela ? r_call_90
                                                                              : r_call)
                    : r.kind == Relocation::absolute_low_32 ? (layout_.pascal ? r_lo_20 : r_lo_32)
                                                            : (layout_.pascal ? r_hi_20 : r_hi_32);
    put(s.bytes, list[i].first + r.offset);
    put(s.bytes, uint64_t{symbol} << 32 | type);
    if (s.header.type == sht_rela) put(s.bytes, r.addend);
  }
}

void Writer::line_tables() {
  LineProgram program = write_lines(image_);
  sections_[lines_].bytes = std::move(program.bytes);
  Section& s = sections_[line_relocations_];
  s.header.link = 3;
  s.header.info = lines_;
  for (size_t i = 0; i < image_.kernels.size(); ++i) {
    if (!program.addresses[i]) continue;
    put(s.bytes, program.addresses[i]);
    put(s.bytes, uint64_t{places_[i].symbol} << 32 | r_64);
    if (s.header.type == sht_rela) put(s.bytes, int64_t{0});
  }
}

Bytes Writer::kernel_info(const Kernel& k, uint32_t constant_symbol) {
  Records r;
  r.sized(attr_api_version, {toolkit_118});
  for (uint16_t w : layout_.workaround)
    if (w) r.none(static_cast<uint8_t>(w));
  auto bank = [&] {
    if (k.parameter_bytes)
      r.sized(attr_param_cbank, {constant_symbol, layout_.parameter_base | k.parameter_bytes << 16});
  };
  auto size = [&] {
    if (k.parameter_bytes) r.half(attr_cbank_param_size, k.parameter_bytes);
  };
  if (!layout_.rela) {
    bank();
    size();
  }
  constexpr uint32_t most_of_kparam_info = 0x1100;
  for (size_t i = k.parameters.size(); i-- > 0;) {
    const uint32_t place = static_cast<uint32_t>(i) | k.parameters[i].offset << 16, size = k.parameters[i].size;
    k.parameter_bytes > most_of_kparam_info ? r.sized(attr_kparam_info_v2, {0, place, size})
                                            : r.sized(attr_kparam_info, {0, place, size << 18 | 0x1f000});
  }
  r.half(attr_maxreg_count, k.max_registers);
  if (!k.externs.empty()) {
    std::vector<uint32_t> symbols;
    for (const std::string& name : k.externs) {
      symbols.push_back(symbol_named(name));
      CHECK(symbols.back() != no_symbol, "kernel `{}`: no symbol for `{}`", k.name, name);
    }
    r.offsets(attr_externs, symbols);
  }
  if (layout_.pascal) {
    r.offsets(attr_coop_offsets, k.cooperative_offsets);
    r.offsets(attr_warp_wide_offsets, k.warp_wide_offsets);
    r.offsets(attr_ctaid_offsets, k.ctaid_offsets);
  } else {
    r.offsets(attr_warp_wide_offsets, k.warp_wide_offsets);
    r.offsets(attr_ctaid_offsets, k.ctaid_offsets);
    r.offsets(attr_coop_offsets, k.cooperative_offsets);
  }
  r.offsets(attr_exit_offsets, k.exit_offsets);
  std::vector<uint32_t> words;
  constexpr size_t most = 0xfffc / 4;  // of one record
  for (const IndirectBranch& b : k.indirect_branches) {
    CHECK(b.targets.size() + 3 <= most, "kernel {}: an indirect branch with {} targets", k.name, b.targets.size());
    if (words.size() + 3 + b.targets.size() > most) r.sized(attr_indirect_targets, words), words.clear();
    words.insert(words.end(), {b.offset, 0, static_cast<uint32_t>(b.targets.size())});
    words.insert(words.end(), b.targets.begin(), b.targets.end());
  }
  if (!words.empty()) r.sized(attr_indirect_targets, words);
  if (k.uses_ctaid_z) r.none(attr_ctaidz_used);
  const auto given = [](const std::array<uint32_t, 3>& v) { return v[0] || v[1] || v[2]; };
  if (given(k.max_threads)) r.sized(attr_max_threads, k.max_threads);
  if (given(k.required_threads)) r.sized(attr_reqntid, k.required_threads);
  if (k.has_crs_attribute || k.stack_bytes) r.sized(attr_crs_stack_size, {k.stack_bytes});
  if (layout_.rela) {
    size();
    bank();
  }
  return std::move(r.bytes);
}

Bytes Writer::run() {
  plan();
  variables();
  make_symbols();
  Records info;
  for (size_t i = image_.kernels.size(); i-- > 0;) {
    const Kernel& k = image_.kernels[i];
    Place& p = places_[i];
    sections_[p.info].header.link = 3;
    sections_[p.info].bytes = kernel_info(k, p.constant_symbol);
    sections_[p.text].header.link = 3;
    sections_[p.text].header.info = (layout_.rela ? 0 : k.registers << 24) | p.symbol;
    info.sized(attr_regcount, {p.symbol, k.registers});
    info.sized(attr_max_stack_size, {p.symbol, 0});
    info.sized(attr_min_stack_size, {p.symbol, k.dynamic_stack ? UINT32_MAX : k.local_bytes});
    info.sized(attr_frame_size, {p.symbol, k.local_bytes});
    for (const bool addends : {false, true}) {
      const uint32_t section = addends ? p.relocation_addend : p.relocation;
      if (!section || (addends && section == p.relocation)) continue;
      std::vector<std::pair<uint64_t, const Relocation*>> list;
      for (const Relocation& r : k.relocations)
        if (p.relocation == p.relocation_addend || (r.addend != 0) == addends) list.push_back({0, &r});
      relocations(section, p.text, list);
    }
  }
  if (lines_) line_tables();
  sections_[info_].header.link = 3;
  sections_[info_].bytes = std::move(info.bytes);
  std::map<uint32_t, std::vector<std::pair<uint64_t, const Relocation*>>> lists;  // by relocation section
  for (size_t i = 0; i < image_.variables.size(); ++i) {
    const Variable& v = image_.variables[i];
    for (const Relocation& r : v.relocations)
      lists[v.constant ? constant_relocations_[v.bank] : data_relocations_].push_back({offsets_[i], &r});
  }
  for (auto& [section, list] : lists) {
    uint32_t target = data_;
    for (auto [bank, index] : constant_relocations_)
      if (index == section) target = constant_sections_[bank];
    relocations(section, target, list);
  }
  return assemble();
}

Bytes Writer::assemble() {
  for (Section& s : sections_) s.header.name = section_names_.add(s.name);
  sections_[1].given = section_names_.bytes;
  sections_[2].given = strings_.bytes;
  Section& table = sections_[3];
  table.given = std::as_bytes(std::span(symbols_));
  table.header.link = 2;
  table.header.info = first_global_;

  size_t most = sizeof(FileHeader) + 8 * sizeof(ProgramHeader);
  for (const Section& s : sections_) most += s.contents().size() + s.header.alignment + sizeof(SectionHeader);
  Bytes out;
  out.reserve(most);
  out.resize(sizeof(FileHeader));
  for (size_t i = 1; i < sections_.size(); ++i) {
    Section& s = sections_[i];
    pad(out, s.header.type == sht_nobits ? std::min<uint64_t>(s.header.alignment, 16) : s.header.alignment);
    s.header.offset = out.size();
    if (s.header.type == sht_nobits) continue;
    const std::span<const std::byte> contents = s.contents();
    s.header.size = contents.size();
    out.insert(out.end(), contents.begin(), contents.end());
  }
  pad(out, 8);
  FileHeader h{};
  static constexpr uint8_t ident[16] = {0x7f, 'E', 'L', 'F', 2, 1, 1, 0x33, 7};
  std::memcpy(h.ident, ident, sizeof ident);
  h.type = 2;
  h.machine = 190;
  h.version = toolkit_118;
  h.flags = image_.ptx_target << 16 | 0x500 | image_.sm;
  h.header_size = sizeof(FileHeader);
  h.program_header_size = sizeof(ProgramHeader);
  h.section_header_size = sizeof(SectionHeader);
  h.section_count = static_cast<uint16_t>(sections_.size());
  h.string_section = 1;
  h.section_headers = out.size();
  for (const Section& s : sections_) put(out, s.header);

  // Segments: runs of consecutive allocated sections of one kind.
  h.program_headers = out.size();
  std::vector<ProgramHeader> segments;
  auto segment = [&](auto&& wanted, uint32_t flags) {
    ProgramHeader p;
    uint64_t begin = UINT64_MAX, end = 0, zero = 0;
    for (const Section& s : sections_) {
      if (!(s.header.flags & shf_alloc) || !wanted(s)) continue;
      begin = std::min(begin, s.header.offset);
      if (s.header.type == sht_nobits)
        zero += s.header.size;
      else
        end = std::max(end, s.header.offset + s.header.size);
    }
    if (begin == UINT64_MAX) return;
    p.type = 1;
    p.flags = flags;
    p.offset = begin;
    p.file_size = end > begin ? end - begin : 0;
    p.memory_size = p.file_size + zero;
    segments.push_back(p);
  };
  auto writable = [](const Section& s) { return (s.header.flags & shf_write) != 0; };
  auto code = [](const Section& s) { return (s.header.flags & shf_execute) != 0; };
  auto starts = [](const Section& s, std::string_view name) { return s.name.starts_with(name); };
  if (layout_.rela) {
    segment([&](const Section& s) { return !writable(s) && !code(s) && !starts(s, ".nv.constant0."); }, 4);
    segment(code, 5);
    segment(writable, 6);
    segment([&](const Section& s) { return starts(s, ".nv.constant0."); }, 4);
  } else {
    segment([&](const Section& s) { return !writable(s); }, 5);
    segment(writable, 6);
  }
  uint32_t read_flags = layout_.rela ? 4 : 5;
  ProgramHeader self;
  self.flags = read_flags;
  self.offset = h.program_headers;
  self.file_size = self.memory_size = (segments.size() + 2) * sizeof(ProgramHeader);
  ProgramHeader load = self;
  self.type = 6;
  load.type = 1;
  segments.insert(segments.begin(), self);
  segments.insert(layout_.rela ? segments.begin() + 1 : segments.end(), load);
  for (const ProgramHeader& p : segments) put(out, p);
  h.program_header_count = static_cast<uint16_t>(segments.size());
  std::memcpy(out.data(), &h, sizeof h);
  return out;
}

}  // namespace

Bytes write(const Image& image) {
  CHECK(find_layout(image.sm), "no layout for sm_{}", image.sm);
  return Writer(image).run();
}

}  // namespace rndn::cubin
