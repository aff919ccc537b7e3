// Text columns with few distinct values become codes into a dictionary: parts of the column number their own values, and the numbers
// are joined and put in the order of the values. O(rows), in parallel; a column of many values is given up as soon as they are too many.
#include <algorithm>
#include <atomic>

#include "libraries/base/system/parallel.h"
#include "runtime/data/source.h"
#include "runtime/data/text_codes.h"

namespace rndn::data {

uint64_t dictionary_limit(uint64_t rows) {
  return std::max<uint64_t>(256, std::min<uint64_t>(rows / 8, 1 << 16));
}

void encode_dictionary(Column& column, uint64_t limit, unsigned threads) {
  CHECK(column.encoding == Encoding::text, "only text becomes a dictionary");
  // Every part numbers its own values.
  constexpr uint64_t rows_per_part = 1 << 16;
  struct Part {
    TextCodes values;
    std::vector<uint32_t> codes;  // of the rows
  };
  std::vector<Part> parts((column.rows + rows_per_part - 1) / rows_per_part);
  std::atomic<bool> too_many{false};
  auto number = [&](size_t p) {
    Part& part = parts[p];
    uint64_t first = p * rows_per_part, last = std::min(first + rows_per_part, column.rows);
    part.codes.reserve(last - first);
    for (uint64_t row = first; row < last && !too_many; ++row) {
      part.codes.push_back(part.values.add(column.text_at(row)));
      if (part.values.texts().size() > limit) too_many = true;
    }
  };
  TextCodes values;
  std::vector<std::vector<uint32_t>> code_of_value(parts.size());
  // The first parts alone mostly tell that the values are too many: a comment is no work for the rest.
  constexpr size_t first_parts = 4;
  const size_t first = std::min(first_parts, parts.size());
  for (const std::pair<size_t, size_t>& range : {std::pair(size_t{0}, first), std::pair(first, parts.size())}) {
    const size_t begin = range.first, end = range.second;
    parallel_for(
        end - begin, [&](size_t p) { number(begin + p); }, threads);
    if (too_many) return;
    for (size_t p = begin; p < end; ++p) {
      for (std::string_view value : parts[p].values.texts()) {
        code_of_value[p].push_back(values.add(value));
        if (values.texts().size() > limit) return;
      }
    }
  }
  const std::vector<uint32_t> places = places_of(values.texts());
  for (std::vector<uint32_t>& codes : code_of_value)
    for (uint32_t& code : codes) code = places[code];
  auto dictionary = std::make_shared<Dictionary>();
  dictionary->values = at_places(values.texts(), places);

  Column encoded = make_column(column.type, column.rows, Encoding::dictionary, code_width(dictionary->values.size()));
  auto store = [&](size_t p) {
    std::byte* out = encoded.data->data() + p * rows_per_part * encoded.width;
    for (uint32_t local : parts[p].codes) {
      uint32_t code = code_of_value[p][local];
      switch (encoded.width) {
        case 1: *reinterpret_cast<uint8_t*>(out) = static_cast<uint8_t>(code); break;
        case 2: *reinterpret_cast<uint16_t*>(out) = static_cast<uint16_t>(code); break;
        default: *reinterpret_cast<uint32_t*>(out) = code;
      }
      out += encoded.width;
    }
  };
  parallel_for(parts.size(), store, threads);
  column.encoding = Encoding::dictionary;
  column.width = encoded.width;
  column.data = encoded.data;
  column.dictionary = dictionary;
  column.pad = nullptr;
}

}  // namespace rndn::data
