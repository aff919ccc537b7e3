// Line tables: which .loc of the PTX each machine instruction comes from.
#pragma once
#include <vector>

#include "assembler/backend/backend.h"
#include "assembler/cubin/cubin.h"
#include "assembler/machine/inst_facts.h"
#include "assembler/machine/options.h"

namespace rndn::assembler {

// The locations of a module by lines of its text, which instructions keep through all passes.
class SourceLines {
 public:
  SourceLines() = default;
  // Fills the image's files and names. The module is the one that was read, before calls are inlined.
  SourceLines(const ptx::Module& module, cubin::Image& image);
  // The table of a kernel whose code has been emitted.
  std::vector<cubin::LineRow> rows(const Function& f, const Code& code) const;

 private:
  static constexpr uint32_t none = UINT32_MAX;
  struct Place {
    uint32_t file, line;
    uint32_t caller;    // place of the call that was inlined, or none
    uint32_t function;  // offset of the inlined function's name
    auto operator<=>(const Place&) const = default;
  };
  struct Line {
    uint32_t line;   // of the PTX text
    uint32_t place;  // index into places_
    auto operator<=>(const Line&) const = default;
  };
  uint32_t place_of(uint32_t line) const;
  uint32_t add_row(std::vector<cubin::LineRow>& rows, std::vector<uint32_t>& row_of_place, uint32_t place,
                   uint64_t offset) const;

  std::vector<Place> places_;  // callers before those that they call
  std::vector<Line> lines_;    // ascending
};

}  // namespace rndn::assembler
