// The table in its file: a header, the rows in ascending order of kernel and target, then what they point at. Private to
// this folder: who writes it and who reads it are of one build. The codes of a kernel resemble each other and lie together,
// so that packages are small.
#pragma once
#include <cstdint>

namespace rndn::operators::table {

struct Piece {
  uint32_t at = 0, bytes = 0;  // from the file's beginning
};
struct Row {
  Piece kernel, target, cubin;
  uint32_t block_size = 0, instructions = 0;
};
struct Header {
  uint32_t rows = 0, zero[3] = {};
};
constexpr uint32_t cubin_align = 16;

}  // namespace rndn::operators::table
