// The options of ptxas, a row each: those that its releases 11.8, 12.9 and 13.0 list under --help,
// and what programs that call it are seen to use beside them (Triton 3.7: --regAllocOptLevel).
//
// ptxas takes a value behind `=` or as the next argument, long names behind two dashes and short
// ones behind one; here either name goes with either number of dashes. -O, -o and -m may have their
// value directly behind them. Of an option that is given again the last value counts, as there.
#include "assembler/ptxas/options.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <string_view>

#include "libraries/base/errors/diagnostic.h"
#include "libraries/base/system/files.h"

namespace rndn::ptxas {
namespace {

enum class Treatment : uint8_t {
  own,      // rndn-as has it
  ignored,  // tunes, or asks for what is so anyway
  warned,   // asks for what is not done; the code is right without it
  refused,  // asks for another output
};
using enum Treatment;

struct Option {
  std::string_view name, short_name;
  bool value;
  Treatment treatment;
  std::string_view why = {};  // of warned and refused
};
constexpr Option options[] = {
    {"gpu-name", "arch", true, own},
    {"output-file", "o", true, own},
    {"opt-level", "O", true, own},
    {"maxrregcount", "maxrregcount", true, own},
    {"fmad", "fmad", true, own},
    {"split-compile", "split-compile", true, own},
    {"input-as-string", "ias", true, own},
    {"options-file", "optf", true, own},
    {"verbose", "v", false, own},
    {"generate-line-info", "lineinfo", false, own},
    {"suppress-debug-info", "suppress-debug-info", false, own},
    {"device-debug", "g", false, own},
    {"disable-warnings", "w", false, own},
    {"warning-as-error", "Werror", false, own},
    {"warn-on-spills", "warn-spills", false, own},
    {"warn-on-local-memory-usage", "warn-lmem-usage", false, own},
    {"version", "V", false, own},
    {"help", "h", false, own},

    {"Ofast-compile", "Ofc", true, ignored},
    {"allow-expensive-optimizations", "allow-expensive-optimizations", true, ignored},
    {"compiler-annotations", "annotate", false, ignored},
    {"def-load-cache", "dlcm", true, ignored},
    {"def-store-cache", "dscm", true, ignored},
    {"device-function-maxrregcount", "func-maxrregcount", true, ignored},
    {"disable-optimizer-constants", "disable-optimizer-consts", false, ignored},
    {"dont-merge-basicblocks", "no-bb-merge", false, ignored},
    {"extensible-whole-program", "ewp", false, ignored},
    {"force-load-cache", "flcm", true, ignored},
    {"force-store-cache", "fscm", true, ignored},
    {"g-tensor-memory-access-check", "g-tmem-access-check", false, ignored},
    {"gno-tensor-memory-access-check", "gno-tmem-access-check", false, ignored},
    {"machine", "m", true, ignored},
    {"optimize-float-atomics", "opt-fp-atomics", false, ignored},
    {"position-independent-code", "pic", true, ignored},
    {"preserve-relocs", "preserve-relocs", false, ignored},
    {"regAllocOptLevel", "regAllocOptLevel", true, ignored},
    {"register-usage-level", "regUsageLevel", true, ignored},
    {"return-at-end", "ret-end", false, ignored},
    {"suppress-async-bulk-multicast-advisory-warning", "suppress-async-bulk-multicast-advisory-warning", false,
     ignored},
    {"suppress-double-demote-warning", "suppress-double-demote-warning", false, ignored},
    {"suppress-sparse-mma-advisory-info", "suppress-sparse-mma-advisory-info", false, ignored},
    {"suppress-stack-size-warning", "suppress-stack-size-warning", false, ignored},

    {"device-stack-protector", "device-stack-protector", true, warned, "functions have no stack canaries"},
    {"legacy-bar-warp-wide-behavior", "legacy-bar-warp-wide-behavior", false, warned, "barriers count as PTX says"},
    {"make-errors-visible-at-exit", "make-errors-visible-at-exit", false, warned,
     "kernels end without waiting for faults"},
    {"maxntid", "maxntid", true, warned, "the PTX's .maxntid counts"},
    {"minnctapersm", "minnctapersm", true, warned, "the PTX's .minnctapersm counts"},
    {"override-directive-values", "override-directive-values", false, warned, "the PTX's directives count"},
    {"sp-bounds-check", "sp-bounds-check", false, warned, "the stack pointer is not checked"},
    {"warn-on-double-precision-use", "warn-double-usage", false, warned, "there is no such warning"},

    {"compile-only", "c", false, refused, "cubins are whole programs, there are no relocatable objects"},
    {"compile-as-tools-patch", "astoolspatch", false, refused, "there is no code for tools that patch kernels"},
    {"entry", "e", true, refused, "all entries of a module are assembled"},
    {"list-version", "version-ls", false, refused, "--help and --version say what is taken"},
    {"sanitize", "sanitize", true, refused, "there is no instrumented code"},
};
constexpr std::string_view with_attached_value = "Oom";

const Option* find(std::string_view name) {
  const auto row =
      std::ranges::find_if(options, [&](const Option& o) { return o.name == name || o.short_name == name; });
  return row == std::end(options) ? nullptr : row;
}

struct Token {
  std::string_view name, value;  // without dashes, without `=`
  bool has_value = false;
  const Option* option = nullptr;
};
Token read_token(std::string_view text) {
  Token t;
  const bool one_dash = !text.starts_with("--");
  text.remove_prefix(one_dash ? 1 : 2);
  const size_t equals = text.find('=');
  t.name = text.substr(0, equals);
  t.has_value = equals != text.npos;
  if (t.has_value) t.value = text.substr(equals + 1);
  t.option = find(t.name);
  if (!t.option && one_dash && with_attached_value.find(text[0]) != text.npos) {
    t.option = find(text.substr(0, 1));
    t.name = text.substr(0, 1), t.value = text.substr(1), t.has_value = true;
  }
  return t;
}

class Translation {
 public:
  explicit Translation(const std::function<bool(std::string_view)>& knows) : knows_(knows) {}

  Result<void> add(const std::vector<std::string>& given, bool from_file) {
    for (size_t i = 0; i < given.size(); ++i) {
      const std::string& text = given[i];
      if (text == "--") {
        out_.arguments.insert(out_.arguments.end(), given.begin() + static_cast<std::ptrdiff_t>(i), given.end());
        return {};
      }
      if (text.size() < 2 || text[0] != '-') {
        out_.arguments.push_back(text);
        continue;
      }
      Token t = read_token(text);
      if (!t.option) {
        RETURN_IF_ERROR(unknown(text, t));
        continue;
      }
      if (!t.option->value && t.has_value) return usage_error("{}: the option takes no value", text);
      if (t.option->value && !t.has_value && i + 1 < given.size()) t.value = given[++i], t.has_value = true;
      RETURN_IF_ERROR(known(text, t, from_file));
    }
    return {};
  }
  Arguments take() { return std::move(out_); }

 private:
  Result<void> known(const std::string& text, const Token& t, bool from_file) {
    const Option& o = *t.option;
    switch (o.treatment) {
      case ignored: return {};
      case warned:
        if (t.value != "false") out_.warnings.push_back(fmt::format("--{} is not done: {}", o.name, o.why));
        return {};
      case refused: return usage_error("unsupported: {}; {}", text, o.why);
      case own: break;
    }
    if (o.name == "options-file" && t.has_value) {
      if (from_file) return usage_error("{}: a file of options names another", text);
      ASSIGN_OR_RETURN(const std::string file, read_file(std::string(t.value)));
      std::istringstream words(file);
      std::vector<std::string> given;
      for (std::string word; words >> word;) given.push_back(word);
      return add(given, true);
    }
    std::string argument = "--" + std::string(o.name);
    if (t.has_value) argument += "=" + std::string(t.value);
    const auto [before, first] = places_.try_emplace(&o, out_.arguments.size());
    if (first) {
      out_.arguments.push_back(argument);
      return {};
    }
    std::string& old = out_.arguments[before->second];
    if (old != argument) out_.warnings.push_back(fmt::format("--{} is given again: {} counts", o.name, t.value));
    old = argument;
    return {};
  }

  // A slip in the name of an option whose value decides what is written must not pass for tuning.
  Result<void> unknown(const std::string& text, const Token& t) {
    if (!t.has_value || knows_(t.name)) {
      out_.arguments.push_back(text);
      return {};
    }
    std::vector<std::string_view> names;
    for (const Option& o : options)
      if (o.value && (o.treatment == own || o.treatment == refused)) names.insert(names.end(), {o.name, o.short_name});
    const std::string_view near = did_you_mean(t.name, names);
    if (!near.empty() && near.size() < t.name.size() + 3 && t.name.size() < near.size() + 3)
      return usage_error("unknown option {}; did you mean `{}`?", text, near);
    out_.warnings.push_back(fmt::format("unknown option {} is left out", text));
    return {};
  }

  const std::function<bool(std::string_view)>& knows_;
  Arguments out_;
  std::map<const Option*, size_t> places_;  // of own options among the arguments
};

}  // namespace

Result<Arguments> translate(const std::vector<std::string>& given, const std::function<bool(std::string_view)>& knows) {
  Translation translation(knows);
  RETURN_IF_ERROR(translation.add(given, false));
  return translation.take();
}

}  // namespace rndn::ptxas
