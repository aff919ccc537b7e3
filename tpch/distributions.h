// The word lists of the TPC-H specification (clause 4.2.2.13 and 4.2.2.14) in the order and with the weights of the
// official generator: the position of a word is part of the data format.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace rndn::tpch {

struct Word {
  std::string_view text;
  int weight;
};

// Columns whose values are drawn from a list, each word as likely as another.
#define TPCH_WORD_LIST(name, ...) extern const std::span<const std::string_view> name;
// Words and sentence forms of the comments.
#define TPCH_WEIGHTED_LIST(name, ...) extern const std::span<const Word> name;
#include "tpch/distributions.def"
#undef TPCH_WORD_LIST
#undef TPCH_WEIGHTED_LIST

// The region of every nation, in the order of `nations`.
extern const std::span<const uint8_t> nation_regions;

}  // namespace rndn::tpch
