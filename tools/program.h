// What the stand-alone programs have in common: reading the command line, and messages with their exit codes.
#pragma once
#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libraries/base/system/files.h"
#include "libraries/base/errors/result.h"

namespace rndn::tools {

inline int report(const Error& error) {
  std::fprintf(stderr, "error: %s\n", error.message.c_str());
  return error.exit_code();
}

// The exit code when the program ends here: after --help and --version, and when the usage is wrong.
inline std::optional<int> parse_command_line(CLI::App& app, std::vector<std::string> arguments) {
  std::string text;
  try {
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
    app.parse(std::move(arguments));
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    text = app.help();
  } catch (const CLI::CallForVersion& version) {
    text = std::string(version.what()) + "\n";
  } catch (const CLI::ParseError& e) {
    std::fprintf(stderr, "error: %s\n(see %s --help)\n", e.what(), app.get_name().c_str());
    return static_cast<int>(Fault::usage);
  }
  Result<void> written = write_file("-", text);  // checked, unlike std::cout
  return written ? 0 : report(written.error());
}

// A whole number, decimal or 0x.., all of `text` and in the range of T; no sign but the - of signed types.
template <class T>
bool parse_integer(std::string_view text, T& value) {
  const bool negative = text.starts_with('-');
  std::string_view digits = text.substr(negative);
  if (digits.starts_with("0x") || digits.starts_with("0X")) {
    uint64_t magnitude = 0;
    digits.remove_prefix(2);
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), magnitude, 16);
    if (error != std::errc() || end != digits.data() + digits.size()) return false;
    return parse_integer((negative ? "-" : "") + std::to_string(magnitude), value);
  }
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// A flag whose value is a whole number from `least` to `most`.
template <class T>
CLI::Option* add_number(CLI::App& app, const std::string& flags, T& value, T least, T most, const std::string& text) {
  auto set = [&value, least, most, flags](const std::string& given) {
    T number{};
    if (!parse_integer(given, number) || number < least || number > most)
      throw CLI::ValidationError(flags, fmt::format("expected a number from {} to {}, got `{}`", least, most, given));
    value = number;
  };
  return app.add_option_function<std::string>(flags, set, text)->type_name("N");
}

}  // namespace rndn::tools
