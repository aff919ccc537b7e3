// The text that a device-side printf makes: format and packed arguments as vprintf of the CUDA device runtime takes them.
//
// Arguments lie one after the other at multiples of their size: 4 bytes for int, unsigned, char; 8 for long, long long, double, pointers and
// strings (addresses). A conversion that is unknown or has no argument left is printed as it stands. Cost: linear.
// The simulator and the PTX interpreter share it, so that they cannot disagree about text: tests of printing state what they expect.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace rndn {

// argument(offset, bytes): the bytes at that offset of the argument buffer, or nothing; text(address): the string at a device address.
inline std::string device_print(std::string_view format,
                                const std::function<std::optional<uint64_t>(uint64_t, uint32_t)>& argument,
                                const std::function<std::string(uint64_t)>& text) {
  std::string out;
  uint64_t at = 0;
  const auto next = [&](uint32_t bytes) {
    at = (at + bytes - 1) / bytes * bytes;
    const std::optional<uint64_t> value = argument(at, bytes);
    at += bytes;
    return value;
  };
  for (size_t k = 0; k < format.size();) {
    if (format[k] != '%') {
      out += format[k++];
      continue;
    }
    size_t end = k + 1;
    std::string spec = "%";
    bool long_argument = false;
    for (; end < format.size() && std::strchr("-+ #0123456789.*hlLqjzt", format[end]); ++end) {
      const char c = format[end];
      if (c == '*') {
        if (const auto width = next(4)) spec += std::to_string(static_cast<int32_t>(*width));
      } else if (std::strchr("lLqjzt", c)) {
        long_argument = true;
      } else if (c != 'h') {
        spec += c;
      }
    }
    const char kind = end < format.size() ? format[end] : '\0';
    const std::string_view whole = format.substr(k, end - k + (kind != '\0'));
    k += whole.size();
    char buffer[512];
    const auto print = [&](const std::string& f, auto value) {
      const int n = std::snprintf(buffer, sizeof buffer, f.c_str(), value);
      if (n > 0) out.append(buffer, std::min<size_t>(static_cast<size_t>(n), sizeof buffer - 1));
    };
    if (kind == '%') {
      out += '%';
      continue;
    }
    if (spec.size() > 24 || kind == '\0' || !std::strchr("diouxXceEfFgGaAsp", kind)) {
      out += whole;
      continue;
    }
    const bool wide = long_argument || std::strchr("eEfFgGaAsp", kind);
    const std::optional<uint64_t> value = next(wide ? 8 : 4);
    if (!value) {
      out += whole;
    } else if (std::strchr("di", kind)) {
      print(spec + "lld", static_cast<long long>(wide ? static_cast<int64_t>(*value) : static_cast<int32_t>(*value)));
    } else if (std::strchr("ouxX", kind)) {
      print(spec + "ll" + kind, static_cast<unsigned long long>(*value));
    } else if (kind == 'c') {
      out += static_cast<char>(*value);
    } else if (kind == 's') {
      const std::string s = text(*value);
      if (spec == "%")
        out += s;
      else
        print(spec + "s", s.c_str());
    } else if (kind == 'p') {
      print("0x%llx", static_cast<unsigned long long>(*value));
    } else {
      double d;
      std::memcpy(&d, &*value, 8);
      print(spec + kind, d);
    }
  }
  return out;
}

}  // namespace rndn
