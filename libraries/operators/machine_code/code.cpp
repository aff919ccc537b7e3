#include "libraries/operators/machine_code/code.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "libraries/operators/machine_code/table.h"

// The file, in read-only data.
asm(R"(
  .pushsection .rodata
  .balign 16
rndn_operators_code_begin:
  .incbin ")" RNDN_OPERATORS_CODE R"("
  .popsection
)");
extern "C" const std::byte rndn_operators_code_begin[];

namespace rndn::operators {
namespace {

std::span<const table::Row> rows() {
  const auto* header = reinterpret_cast<const table::Header*>(rndn_operators_code_begin);
  return {reinterpret_cast<const table::Row*>(header + 1), header->rows};
}

std::string_view text(table::Piece piece) {
  return {reinterpret_cast<const char*>(rndn_operators_code_begin) + piece.at, piece.bytes};
}

}  // namespace

size_t code_count() { return rows().size(); }

MadeCode code_at(size_t index) {
  const table::Row& row = rows()[index];
  return {text(row.kernel), text(row.target), row.block_size, row.instructions,
          std::span(rndn_operators_code_begin + row.cubin.at, row.cubin.bytes)};
}

std::optional<MadeCode> find_code(std::string_view target, std::string_view kernel) {
  const auto name = [](const table::Row& row) { return std::pair(text(row.kernel), text(row.target)); };
  const auto found = std::ranges::lower_bound(rows(), std::pair(kernel, target), {}, name);
  if (found == rows().end() || name(*found) != std::pair(kernel, target)) return std::nullopt;
  return code_at(static_cast<size_t>(found - rows().begin()));
}

}  // namespace rndn::operators
