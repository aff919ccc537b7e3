// Cubins: the ELF images that the CUDA driver loads (docs/sass.md, section 6).
//
// `Image` is the meaning of a cubin: kernels and data. `write` lays out sections, symbols, relocations and .nv.info; `read` accepts any cubin of
// the supported targets, ours or NVIDIA's, and refuses hostile files with a reason.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "libraries/base/errors/result.h"

namespace rndn::cubin {

using Bytes = std::vector<std::byte>;

struct Parameter {
  uint32_t offset = 0;  // from the start of the parameter area
  uint32_t size = 0;    // bytes
  bool operator==(const Parameter&) const = default;
};

// A place that the loader patches with an address: in code the absolute ones and call, of an instruction that calls a function of the driver; in
// data generic_64, and low_32, the lower word (on Pascal, of functions of the driver).
struct Relocation {
  enum Kind : uint8_t { absolute_low_32, absolute_high_32, generic_64, low_32, call } kind{};
  uint64_t offset = 0;  // byte offset of the instruction (or data word)
  std::string symbol;   // a Variable's or a Kernel's name, the kernel's own among them; or an extern's (in code for a call alone)
  int64_t addend = 0;
  bool operator==(const Relocation&) const = default;
};

// An indirect branch and where it can go (byte offsets of instructions); on Pascal also SYNC and BRK.
struct IndirectBranch {
  uint32_t offset = 0;
  std::vector<uint32_t> targets;
  bool operator==(const IndirectBranch&) const = default;
};

// A function inside a kernel's section, called by it alone. One with a section of its own is a Kernel of another role.
struct Function {
  std::string name;
  uint64_t offset = 0;  // from the start of the section
  uint64_t size = 0;
  bool weak = false;  // one of the vendor compiler's own helpers
  bool operator==(const Function&) const = default;
};

// A row of a line table: from this place on, to the next row's, code comes from this line.
struct LineRow {
  uint64_t offset = 0;  // byte offset in the code; ascending, several rows may share one
  uint32_t file = 0;    // index into Image::files
  uint32_t line = 0;
  uint32_t caller = 0;    // number of the row (from 1) of the call that was inlined; 0: none
  uint32_t function = 0;  // name of the inlined function: offset into Image::debug_strings
  bool operator==(const LineRow&) const = default;
};

struct SourceFile {
  std::string name;              // with its folder
  uint64_t time = 0, bytes = 0;  // of last change, of size; 0: not told
  bool operator==(const SourceFile&) const = default;
};

struct Kernel {
  // A kernel, or a function with a section of its own, by its binding. Any code may call it (ptxas -g, and where addresses of functions are taken).
  enum Role : uint8_t { entry, local, global, weak } role = entry;
  std::string name;
  Bytes code;                         // whole section, padding included
  uint32_t registers = 0;             // as the driver is told (REGCOUNT)
  uint32_t barriers = 0;              // highest named barrier + 1
  uint32_t shared_bytes = 0;          // static, with the target's reserved bytes
  uint32_t local_bytes = 0;           // stack frame per thread
  bool dynamic_stack = false;         // and more, unknown (alloca)
  uint32_t stack_bytes = 0;           // CRS stack (Pascal)
  bool uses_shared = false;           // a .nv.shared section exists (even of size 0)
  bool has_crs_attribute = false;     // Volta+: BSSY or CALL present
  bool uses_ctaid_z = false;          // not on sm_90
  std::vector<Parameter> parameters;  // in order
  uint32_t parameter_bytes = 0;
  Bytes constants;                                            // bank 2: literals, jump tables
  std::array<uint32_t, 3> max_threads{}, required_threads{};  // 0 = absent
  uint32_t max_registers = 255;                               // MAXREG_COUNT
  std::vector<uint32_t> exit_offsets, cooperative_offsets, warp_wide_offsets,
      ctaid_offsets;  // byte offsets of instructions
  std::vector<IndirectBranch> indirect_branches;
  std::vector<Function> functions;
  std::vector<std::string> externs;     // functions of the driver that it calls: vprintf, malloc
  std::vector<Relocation> relocations;  // ascending
  std::vector<LineRow> lines;
  bool operator==(const Kernel&) const = default;
};

struct Variable {
  std::string name;
  uint64_t size = 0;
  uint32_t align = 4;
  Bytes initial;          // empty: zero
  bool constant = false;  // a constant bank instead of global memory
  uint8_t bank =
      3;  // which one; 4 holds the addresses that the vendor's compiler 13 collects (one variable, `.nv.constant4`)
  bool visible = false;  // global symbol, so that the host finds it by name
  bool managed = false;  // memory that host and device share
  uint64_t offset = 0;   // within its section; set by write and read
  std::vector<Relocation> relocations;
  bool operator==(const Variable&) const = default;
};

struct Image {
  uint32_t sm = 0;          // 86
  uint32_t ptx_target = 0;  // virtual architecture of e_flags
  std::vector<Kernel> kernels;
  std::vector<Variable> variables;
  std::vector<SourceFile> files;  // of the kernels' lines
  Bytes debug_strings;            // names that end with a zero
  bool operator==(const Image&) const = default;
};

// Writes an executable cubin in the format of ptxas 11.8. Kernels and functions appear in the file in reverse order, as there; variables keep their order
// within each of the sections (initialised, zero, constant). `Variable::offset` is ignored: write lays them out. What is in an image is
// trusted: relocations must name variables of the image (CHECK).
Bytes write(const Image& image);
// Reads cubins of the supported targets in the format of toolkits 11.8 (ELF ABI version 7) and 13 (8). Every offset and size is checked;
// fails (fault input) with a sentence that says what is wrong. write(read(file)) keeps all that an Image holds, and read(write(image)) == image
// but for the variables' offsets.
Result<Image> read(std::span<const std::byte> file);

}  // namespace rndn::cubin
