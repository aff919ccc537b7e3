// The table of encodings.
#include "ptx/encodings/encodings.h"

#include <fmt/format.h>

#include "libraries/base/errors/check.h"
#include "ptx/encodings/rows.h"

namespace rndn::encodings {

const Encoding& find(Kind kind) {
  switch (kind) {
#define ENCODING(id) \
  case Kind::id: return rows::id();
#include "ptx/encodings/encodings.def"
#undef ENCODING
  }
  __builtin_unreachable();
}

const Addressed& find_addressed(const Stored& stored) {
  const Addressed* found = find(stored).addressed();
  CHECK(found, "elements without addresses");
  return *found;
}

Rep rep_of(BasicType type) {
  switch (type) {
#define BASIC_TYPE(id, name, letters, family, rank, bits, stored, rep, ...) \
  case BasicType::id: return Rep::rep;
#include "frontend/types.def"
#undef BASIC_TYPE
  }
  __builtin_unreachable();
}

std::string text(const Stored& s) {
  std::string out(find(s).name());
  if (s.bytes) out += fmt::format("_{}{}", s.is_signed ? 's' : 'u', 8 * s.bytes);
  if (find(s).addressed() == nullptr) out += fmt::format("_{}", s.bits);
  if (s.begin) out += fmt::format("_at{}", s.begin);
  if (s.exponent) out += fmt::format("_e{}", s.exponent);
  if (s.reference) out += fmt::format("_{}{}", s.reference < 0 ? 'm' : 'p', s.reference < 0 ? 0 - static_cast<uint64_t>(s.reference) : static_cast<uint64_t>(s.reference));
  return out;
}

}  // namespace rndn::encodings
