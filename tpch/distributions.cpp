#include "tpch/distributions.h"

namespace rndn::tpch {

#define TPCH_WORD_LIST(name, ...)                              \
  static constexpr std::string_view name##_[] = {__VA_ARGS__}; \
  constinit const std::span<const std::string_view> name = name##_;
#define TPCH_WEIGHTED_LIST(name, ...)              \
  static constexpr Word name##_[] = {__VA_ARGS__}; \
  constinit const std::span<const Word> name = name##_;
#include "tpch/distributions.def"
#undef TPCH_WORD_LIST
#undef TPCH_WEIGHTED_LIST

static constexpr uint8_t nation_regions_[] = {0, 1, 1, 1, 4, 0, 3, 3, 2, 2, 4, 4, 2,
                                              4, 0, 0, 0, 1, 2, 3, 4, 2, 3, 3, 1};
static_assert(std::size(nation_regions_) == std::size(nations_));
constinit const std::span<const uint8_t> nation_regions = nation_regions_;

static_assert(std::size(part_types_) == 150 && std::size(part_containers_) == 40 && std::size(part_colors_) == 92);
static_assert(std::size(nouns_) == 45 && std::size(verbs_) == 40 && std::size(adverbs_) == 28 &&
              std::size(prepositions_) == 47);
static_assert(std::size(auxiliaries_) == 18 && std::size(adjectives_) == 29 && std::size(terminators_) == 6);

}  // namespace rndn::tpch
