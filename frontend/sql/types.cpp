// SQL's types as text.
#include <fmt/format.h>

#include "frontend/sql/catalog.h"

namespace rndn::sql {

std::string type_name(Type type) {
  static constexpr std::string_view names[] = {
#define SQL_TYPE(id, name, horseir) name,
#include "frontend/sql/types.def"
#undef SQL_TYPE
  };
  if (type.id == TypeId::enumeration) return "ENUM";
  const std::string_view name = names[static_cast<size_t>(type.id)];
  return type.id == TypeId::decimal ? fmt::format("{}({},{})", name, type.width, type.scale)
                                    : std::string(name);
}

}  // namespace rndn::sql
