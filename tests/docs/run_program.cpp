#include "tests/docs/run_program.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "libraries/base/errors/check.h"
#include "libraries/base/system/files.h"
#include "runtime/compiler/compile.h"
#include "runtime/data/source.h"
#include "runtime/print_result.h"
#include "runtime/simulator/simulator_device.h"

namespace rndn::docs {
namespace {

constexpr const char* target = "sm_86";

std::shared_ptr<data::Source> tutorial_data() {
  CHECK(chdir(RNDN_SOURCE_DIR) == 0, "no folder " RNDN_SOURCE_DIR);
  auto source = data::open_folder("examples/tutorial", {.threads = 1, .progress = false});
  CHECK(source.ok(), "{}", source.error().message);
  return *source;
}

std::unique_ptr<device::Device> simulator() {
  auto device = runtime::open_simulator(target);
  CHECK(device.ok(), "{}", device.error().message);
  return *std::move(device);
}

bool is_dashes(std::string_view line) {
  return line.find('-') != line.npos && line.find_first_not_of("- ") == line.npos;
}

bool is_count(std::string_view line) {
  return line.starts_with('(') && (line.ends_with(" rows)") || line.ends_with(" row)"));
}

// Blanks at the ends go, those within become one.
std::string squeezed(std::string_view line) {
  std::string out;
  for (char c : line)
    if (c != ' ' || (!out.empty() && out.back() != ' ')) out += c;
  while (out.ends_with(' ')) out.pop_back();
  return out;
}

// The next run of characters that are no punctuation of lists; `at` moves behind it.
std::string_view next_word(std::string_view s, size_t& at) {
  constexpr std::string_view punctuation = " ,()[]{}|";
  const size_t begin = at;
  while (at < s.size() && punctuation.find(s[at]) == s.npos) ++at;
  return s.substr(begin, at - begin);
}

bool same_word(std::string_view a, std::string_view b) {
  if (a == b) return true;
  double x = 0, y = 0;
  auto all_of = [](std::string_view s, double& value) {
    auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value);
    return error == std::errc() && end == s.data() + s.size();
  };
  constexpr double last_digits = 1e-12;
  return all_of(a, x) && all_of(b, y) && std::abs(x - y) <= last_digits * std::abs(x);
}

}  // namespace

std::string_view name_of(Where where) {
  return where == Where::reference ? "reference interpreter" : "simulator";
}

Runner::Runner()
    : source_(tutorial_data()),
      tables_(source_),
      math_(libdevice::default_places("")),
      simulator_(simulator()),
      engine_(*simulator_, tables_) {}

bool Runner::has_math() { return math_.module().ok(); }

Outcome Runner::run(Where where, const std::string& name, const std::string& program) {
  SourceManager sources;
  DiagnosticSink sink;
  Timings timings;
  runtime::CompileOptions options;
  options.target = target;
  options.schema = &source_->schema();
  options.math = &math_;
  if (where == Where::reference) options.until = runtime::Stage::typed;
  Outcome outcome;
  auto compiled = runtime::compile(sources.add(name, program), sources, options, sink, timings);
  if (!compiled) {
    outcome.error = render(sink, sources) + compiled.error().message;
    return outcome;
  }
  Result<std::vector<data::Value>> results = std::vector<data::Value>();
  if (where == Where::reference) {
    results = reference::run(compiled->program, tables_, sources, &outcome.text);
  } else {
    auto plan = engine_.plan(*compiled, sources, {}, timings);
    if (!plan) {
      outcome.error = plan.error().message;
      return outcome;
    }
    outcome.fallbacks = (*plan)->fallbacks();
    results = engine_.run(**plan, timings, &outcome.text, nullptr, &outcome.fallbacks);
  }
  if (!results) {
    outcome.error = results.error().message;
    return outcome;
  }
  auto printed = runtime::print_result(*results, runtime::Format::table);
  if (printed)
    outcome.text += *printed;
  else
    outcome.error = printed.error().message;
  return outcome;
}

std::string read(const std::string& path) {
  Result<std::string> text = read_file(path);
  if (text) return *text;
  ADD_FAILURE() << text.error().message;
  return {};
}

std::vector<std::string> stems(const std::string& folder, const std::string& ending) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(RNDN_SOURCE_DIR "/" + folder)) {
    const std::string name = entry.path().filename();
    if (name.ends_with(ending)) names.push_back(name.substr(0, name.size() - ending.size()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string rows_of(const std::string& printed, bool heads) {
  std::vector<std::string_view> lines;
  for (size_t at = 0; at < printed.size();) {
    const size_t end = std::min(printed.find('\n', at), printed.size());
    if (end > at) lines.push_back(std::string_view(printed).substr(at, end - at));
    at = end + 1;
  }
  std::string out;
  bool begun = false;  // a row of the result at hand is there
  for (size_t i = 0; i < lines.size(); ++i) {
    const bool is_head = i + 1 < lines.size() && is_dashes(lines[i + 1]);
    if (is_dashes(lines[i]) || (is_head && !heads)) continue;
    if (is_count(lines[i])) {
      if (!begun) out += "()";
      begun = false;
      if (i + 1 < lines.size()) out += " | ";
      continue;
    }
    out += (begun ? ", " : "") + squeezed(lines[i]);
    begun = true;
  }
  return out;
}

bool agree(std::string_view a, std::string_view b) {
  for (size_t i = 0, j = 0; i < a.size() || j < b.size();) {
    if (!same_word(next_word(a, i), next_word(b, j))) return false;
    if (i == a.size() || j == b.size()) return i == a.size() && j == b.size();
    if (a[i++] != b[j++]) return false;
  }
  return true;
}

}  // namespace rndn::docs
