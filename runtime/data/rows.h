// Rows of a delimited file, field by field, and what is wrong with them. Private to this folder.
#pragma once
#include <mutex>
#include <optional>
#include <string>

#include "runtime/data/text_file.h"

namespace rndn::data {

struct Failure {
  size_t offset;
  std::string reason;
};

// Of the failures that threads meet, the first in the file.
class FirstFailure {
 public:
  void meet(std::optional<Failure> failure) {
    std::lock_guard lock(mutex_);
    if (failure && (!first_ || failure->offset < first_->offset)) first_ = std::move(failure);
  }
  Result<void> result(const TextFile& file) const {
    if (!first_) return {};
    return input_error("{}: {}", file.describe(first_->offset), first_->reason);
  }

 private:
  std::mutex mutex_;
  std::optional<Failure> first_;
};

// What a message shows of a field.
std::string quote(std::string_view text);

// Reads one row of `columns` fields and calls visit(column, field) for each, which gives a
// std::optional<Failure>. A delimiter may also end the row. What stands behind it is a failure, or,
// when it is one last field, is left to `behind` (field), which gives a failure or none as well.
template <class Visit, class Behind>
std::optional<Failure> read_row(FieldReader& reader, size_t columns, Visit&& visit,
                                Behind&& behind) {
  reader.skip_empty_lines();
  const size_t start = reader.offset();
  for (size_t c = 0; c < columns; ++c) {
    const FieldReader::Field field = reader.next();
    if (field.broken_quote) return Failure{field.offset, "the quotes of this field do not match"};
    const bool last = field.after == FieldReader::After::row;
    if (last && c + 1 < columns)
      return Failure{start, fmt::format("expected {} columns, found {}", columns, c + 1)};
    if (std::optional<Failure> failure = visit(c, field)) return failure;
    if (last || c + 1 < columns || reader.skip_end_of_row()) continue;
    const FieldReader::Field more = reader.next();
    if (more.after != FieldReader::After::row)
      return Failure{start, fmt::format("expected {} columns, found more", columns)};
    if (std::optional<Failure> failure = behind(start, more)) return failure;
  }
  return std::nullopt;
}

}  // namespace rndn::data
