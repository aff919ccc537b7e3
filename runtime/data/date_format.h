// How the dates of a column are written: the order of year, month and day, and what stands between
// them. schema.json says it as "%d/%m/%Y"; ISO 8601's %Y-%m-%d is what stands where nothing is said.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace rndn::data {

struct DateFormat {
  enum Order : uint8_t { ymd, dmy, mdy };
  Order order = ymd;
  char separator = '-';
  bool operator==(const DateFormat&) const = default;
};

inline constexpr std::string_view date_orders[] = {"Ymd", "dmY", "mdY"};  // by Order
inline constexpr std::string_view date_separators = "-/.";

inline std::string date_format_text(DateFormat format) {
  std::string text;
  for (char part : date_orders[format.order]) {
    if (!text.empty()) text += format.separator;
    (text += '%') += part;
  }
  return text;
}

// False: not one of those that are read.
inline bool parse_date_format(std::string_view text, DateFormat& format) {
  for (char separator : date_separators)
    for (DateFormat::Order order : {DateFormat::ymd, DateFormat::dmy, DateFormat::mdy})
      if (date_format_text({order, separator}) == text) {
        format = {order, separator};
        return true;
      }
  return false;
}

}  // namespace rndn::data
