// See line_tables.h.
//
// Passes move, copy and make instructions, and each keeps the line of the PTX text that it serves; here that line leads to the .loc in force
// there. What serves no line (the frame, padding) belongs to what stands before it, at the beginning to what follows. A place inside an inlined
// function refers to a row of the call, which is added when there is none yet; its .loc is the last one before with the same file, line and column,
// and may itself be inlined (PTX ISA, .loc). Cost: O(n log n) in the lines, only when asked for.
#include "assembler/backend/line_tables.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace rndn::assembler {

SourceLines::SourceLines(const ptx::Module& module, cubin::Image& image) {
  std::map<uint32_t, uint32_t> files;  // number -> index in the image
  const auto file = [&](uint32_t number) {
    const auto [at, is_new] = files.emplace(number, static_cast<uint32_t>(image.files.size()));
    if (is_new) {
      cubin::SourceFile f{"<file " + std::to_string(number) + ">", 0, 0};  // no .file names it
      for (const ptx::SourceFile& x : module.files)
        if (x.number == number) f = {x.name, x.time, x.bytes};
      image.files.push_back(std::move(f));
    }
    return at->second;
  };
  std::vector<uint32_t> names;  // by index into module.inlined: offset
  for (const std::string& name : module.inlined) {
    names.push_back(static_cast<uint32_t>(image.debug_strings.size()));
    const auto* p = reinterpret_cast<const std::byte*>(name.c_str());
    image.debug_strings.insert(image.debug_strings.end(), p, p + name.size() + 1);
  }
  std::map<Place, uint32_t> known;
  for (const ptx::Function& f : module.functions) {
    std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t> latest;  // file, line, column -> place
    size_t next = 0;
    uint32_t place = none;
    for (uint32_t k = 0; k < f.instructions.size(); ++k) {
      for (; next < f.locations.size() && f.locations[next].at <= k; ++next) {
        const ptx::Location& l = f.locations[next];
        Place x{file(l.file), l.line, none, 0};
        if (l.inlined != ptx::Location::not_inlined) {
          const auto caller = latest.find({l.caller_file, l.caller_line, l.caller_column});
          x.function = names[l.inlined];
          if (caller != latest.end()) {
            x.caller = caller->second;
          } else {
            const Place call{file(l.caller_file), l.caller_line, none, 0};
            const auto [at, is_new] = known.emplace(call, static_cast<uint32_t>(places_.size()));
            if (is_new) places_.push_back(call);
            x.caller = at->second;
          }
        }
        const auto [at, is_new] = known.emplace(x, static_cast<uint32_t>(places_.size()));
        if (is_new) places_.push_back(x);
        place = latest[{l.file, l.line, l.column}] = at->second;
      }
      if (place != none && f.instructions[k].line) lines_.push_back({f.instructions[k].line, place});
    }
  }
  std::sort(lines_.begin(), lines_.end());
}

uint32_t SourceLines::place_of(uint32_t line) const {
  const auto at = std::lower_bound(lines_.begin(), lines_.end(), line,
                                   [](const Line& l, uint32_t wanted) { return l.line < wanted; });
  return at == lines_.end() || at->line != line ? none : at->place;
}

// Returns the row's number.
uint32_t SourceLines::add_row(std::vector<cubin::LineRow>& rows, std::vector<uint32_t>& row_of_place, uint32_t place,
                              uint64_t offset) const {
  const Place& p = places_[place];
  uint32_t caller = 0;
  if (p.caller != none) {
    caller = row_of_place[p.caller];
    if (!caller) caller = add_row(rows, row_of_place, p.caller, offset);
  }
  rows.push_back({offset, p.file, p.line, caller, p.function});
  return row_of_place[place] = static_cast<uint32_t>(rows.size());
}

std::vector<cubin::LineRow> SourceLines::rows(const Function& f, const Code& code) const {
  std::vector<cubin::LineRow> rows;
  std::vector<uint32_t> row_of_place(places_.size());  // 0: none yet
  uint32_t current = none;
  for (size_t i = 0; i < code.order.size(); ++i) {
    const uint32_t place = place_of(f[code.order[i]].line);
    if (place == none || place == current) continue;
    add_row(rows, row_of_place, place, rows.empty() ? 0 : code.addresses[i]);
    current = place;
  }
  return rows;
}

}  // namespace rndn::assembler
