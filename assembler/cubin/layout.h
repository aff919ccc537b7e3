// ELF structures and the numbers that cubins use (volta-family and Pascal, toolkit 11.8). Private to this folder.
#pragma once
#include <cstdint>
#include <string_view>

namespace rndn::cubin {

// What differs between targets.
struct Layout {
  uint32_t sm;
  bool pascal;
  bool rela;  // relocations with addends, no .nv.rel.action, constants last, registers not in sh_info (sm_90)
  uint32_t parameter_base;  // in constant bank 0
  uint32_t text_alignment;
  uint16_t workaround[2];  // attributes without value that mark the target's workarounds; 0: none
};
inline constexpr Layout layouts[] = {
    {60, true, false, 0x140, 32, {0x30, 0x2a}}, {61, true, false, 0x140, 32, {0x30, 0x2a}},
    {75, false, false, 0x160, 128, {0x36, 0}},  {80, false, false, 0x160, 128, {0x35, 0}},
    {86, false, false, 0x160, 128, {0x35, 0}},  {89, false, false, 0x160, 128, {0, 0}},
    {90, false, true, 0x210, 128, {0, 0}},
};
inline const Layout* find_layout(uint32_t sm) {
  for (const Layout& l : layouts)
    if (l.sm == sm) return &l;
  return nullptr;
}

// ELF64 structures, little endian, as in the file.
struct FileHeader {
  uint8_t ident[16];
  uint16_t type, machine;
  uint32_t version;
  uint64_t entry, program_headers, section_headers;
  uint32_t flags;
  uint16_t header_size, program_header_size, program_header_count, section_header_size, section_count, string_section;
};
struct SectionHeader {
  uint32_t name = 0, type = 0;
  uint64_t flags = 0, address = 0, offset = 0, size = 0;
  uint32_t link = 0, info = 0;
  uint64_t alignment = 0, entry_size = 0;
};
struct ProgramHeader {
  uint32_t type = 0, flags = 0;
  uint64_t offset = 0, virtual_address = 0, physical_address = 0, file_size = 0, memory_size = 0, alignment = 8;
};
struct Symbol {
  uint32_t name = 0;
  uint8_t info = 0, other = 0;
  uint16_t section = 0;
  uint64_t value = 0, size = 0;
};
struct RelocationEntry {
  uint64_t offset = 0, info = 0;
  int64_t addend = 0;  // absent in REL sections
};
static_assert(sizeof(FileHeader) == 64 && sizeof(SectionHeader) == 64 && sizeof(ProgramHeader) == 56 &&
              sizeof(Symbol) == 24);

enum SectionType : uint32_t {
  sht_progbits = 1,
  sht_symtab = 2,
  sht_strtab = 3,
  sht_rela = 4,
  sht_nobits = 8,
  sht_rel = 9,
  sht_nv_info = 0x70000000,
  sht_nv_rel_action = 0x7000000b,
};
enum SectionFlags : uint64_t { shf_write = 1, shf_alloc = 2, shf_execute = 4 };
enum SymbolInfo : uint8_t {
  local_object = 0x01,
  local_function = 0x02,
  local_section = 0x03,
  global_object = 0x11,
  global_function = 0x12,
  weak_function = 0x22
};
inline constexpr uint8_t entry_function = 0x10;  // st_other of a kernel
inline constexpr uint8_t managed_variable = 4;   // st_other of a variable that host and device share

// Records of .nv.info: format byte, attribute byte, then by format.
enum Format : uint8_t { no_value = 1, byte_value = 2, half_value = 3, sized_value = 4 };
enum Attribute : uint8_t {
  attr_ctaidz_used = 0x04,
  attr_max_threads = 0x05,
  attr_param_cbank = 0x0a,
  attr_externs = 0x0f,
  attr_reqntid = 0x10,
  attr_frame_size = 0x11,
  attr_min_stack_size = 0x12,
  attr_kparam_info = 0x17,
  attr_cbank_param_size = 0x19,
  attr_maxreg_count = 0x1b,
  attr_exit_offsets = 0x1c,
  attr_ctaid_offsets = 0x1d,
  attr_crs_stack_size = 0x1e,
  attr_max_stack_size = 0x23,
  attr_coop_offsets = 0x28,
  attr_regcount = 0x2f,
  attr_warp_wide_offsets = 0x31,
  attr_indirect_targets = 0x34,
  attr_kparam_info_v2 = 0x45,  // the same with 16 bits for the size (toolkit 12.1): for more than 4,352 bytes
  attr_api_version = 0x37,
};
// Relocation types. Volta: the immediate in bits 32..63 of the instruction; Pascal: bits 20..51.
enum RelocationType : uint32_t {
  r_32 = 1,  // a word of data
  r_64 = 2,
  r_g64 = 4,
  r_call_pascal = 0x2a,
  r_lo_20 = 0x2b,
  r_hi_20 = 0x2c,
  r_lo_32 = 0x38,
  r_hi_32 = 0x39,
  r_call = 0x3a,
  r_call_90 = 0x4b
};

inline constexpr uint8_t os_abi_13 = 0x41;  // of toolkit 13; before it 0x33
inline constexpr uint32_t toolkit_118 = 0x76;  // CUDA 11.8, as ELF version and API version

}  // namespace rndn::cubin
