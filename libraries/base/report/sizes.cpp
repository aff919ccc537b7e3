#include "libraries/base/report/sizes.h"

#include <charconv>
#include <cmath>

namespace rndn {

std::string size_text(uint64_t bytes) {
  constexpr std::string_view units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  auto n = static_cast<double>(bytes);
  for (; n >= 1024 && unit + 1 < std::size(units); ++unit) n /= 1024;
  return fmt::format("{:.4g} {}", n, units[unit]);
}

Result<uint64_t> parse_size(std::string_view text, std::string_view what) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number,
                                            std::chars_format::fixed);
  std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  for (const std::string_view rest : {"iB", "B"})
    if (unit.size() > rest.size() && unit.ends_with(rest)) {
      unit.remove_suffix(rest.size());
      break;
    }
  constexpr std::string_view prefixes = "KMGT";
  const size_t prefix = unit.size() == 1 ? prefixes.find(unit) : unit.npos;
  const double factor =
      prefix == unit.npos ? 1 : std::exp2(10.0 * static_cast<double>(prefix + 1));
  const double bytes = number * factor;
  if (error != std::errc() || !(unit.empty() || prefix != unit.npos) || !(bytes >= 1) ||
      !(bytes < 0x1p63))
    return usage_error("{} is a number of bytes such as 512M or 4G, not `{}`", what, text);
  return static_cast<uint64_t>(bytes);
}

}  // namespace rndn
