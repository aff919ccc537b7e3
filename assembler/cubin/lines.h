// Line tables in the section .debug_line: DWARF 2 line programs (DWARF 2.0.0, section 6.2) with the one extension that ptxas 11.8 writes,
// an extended opcode 0x90 that tells of inlined functions. Private to this folder.
#pragma once
#include <span>

#include "assembler/cubin/cubin.h"

namespace rndn::cubin {

// A program with one sequence per kernel that has lines, last kernel first. `addresses[k]`: where the section holds the address at which the
// sequence of kernel k begins, to be relocated; 0: it has no lines.
struct LineProgram {
  Bytes bytes;
  std::vector<uint64_t> addresses;
};
LineProgram write_lines(const Image& image);

// A sequence of rows as it stands in the section.
struct LineSequence {
  uint64_t address_at = 0;  // where the section holds the address of its begin
  uint64_t address = 0;     // what it holds there
  std::vector<LineRow> rows;
};
// Appends the files to the image. Programs of other versions of DWARF are passed over; fails (fault input) with what is wrong with the others.
Result<std::vector<LineSequence>> read_lines(std::span<const std::byte> section, Image& image);

}  // namespace rndn::cubin
