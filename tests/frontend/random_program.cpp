#include "tests/frontend/random_program.h"

#include <fmt/format.h>

#include <random>
#include <vector>

#include "frontend/builtins.h"

namespace rndn::hir {

namespace {

constexpr const char* types[] = {"bool", "char", "i8",   "i16",   "i32",    "i64",    "f32",  "f64", "complex",
                                 "sym",  "str",  "date", "month", "minute", "second", "time", "dt"};

struct Generator {
  std::mt19937 random;
  std::function<bool(const std::string&)> accept;
  std::string globals, functions;
  std::vector<std::string> body;
  std::vector<std::string> names;      // of variables and globals
  std::vector<std::string> callables;  // own functions
  size_t counter = 0;
  size_t idioms = 0;  // of a hundred statements

  size_t pick(size_t n) { return random() % n; }
  bool chance(size_t percent) { return pick(100) < percent; }

  std::string program() const {
    std::string out = "module m {\n    import Builtin.*;\n" + globals + functions + "    def main() {\n";
    for (const std::string& line : body) out += "        " + line + "\n";
    return out + "    }\n}\n";
  }

  std::string value(std::string_view type) {
    auto number = [&](int64_t low, int64_t high) {
      return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
    };
    if (type == "bool") return fmt::format("{}", pick(2));
    if (type == "char") return fmt::format("'{}'", "abcXYZ01 %"[pick(10)]);
    if (type == "i8") return fmt::format("{}", number(-128, 127));
    if (type == "i16") return fmt::format("{}", number(-300, 300));
    if (type == "i32" || type == "i64") return fmt::format("{}", chance(70) ? number(0, 4) : number(-100000, 100000));
    if (type == "f32" || type == "f64") return fmt::format("{}.{}", number(-9, 9), number(0, 999));
    if (type == "complex") return fmt::format("{}{:+}i", number(-9, 9), number(-9, 9));
    constexpr const char* words[] = {"a", "b", "ab", "", "%a", "a_", "x y", "day", "month", "year", "hour"};
    if (type == "sym") return fmt::format("`\"{}\"", words[pick(11)]);
    if (type == "str") return fmt::format("\"{}\"", words[pick(11)]);
    std::string day = fmt::format("{:04}-{:02}", number(1960, 2030), number(1, 12));
    std::string time = fmt::format("{:02}:{:02}", number(0, 23), number(0, 59));
    if (type == "month") return day;
    day += fmt::format("-{:02}", number(1, 28));
    if (type == "date") return day;
    if (type == "minute") return time;
    time += fmt::format(":{:02}", number(0, 59));
    if (type == "second") return time;
    time += fmt::format(".{:03}", number(0, 999));
    return type == "time" ? time : day + "T" + time;
  }

  std::string literal() {
    const char* type = types[pick(std::size(types))];
    size_t n = chance(40) ? 1 : 2 + pick(3);
    if (n == 1) return fmt::format("{}:{}", value(type), type);
    std::string out = "(";
    for (size_t i = 0; i < n; ++i) out += (i ? ", " : "") + value(type);
    return out + "):" + type;
  }

  std::string operand() { return names.empty() || chance(25) ? literal() : names[pick(names.size())]; }

  std::string builtin() {
    auto all = builtin_names();
    return std::string(all[pick(all.size())]);
  }

  std::string call() {
    Builtin b;
    std::string name = !callables.empty() && chance(10) ? callables[pick(callables.size())] : builtin();
    // Some carry programs more than others.
    constexpr const char* often[] = {"list",         "each",  "each_right", "each_left",  "each_item",
                                     "raze",         "group", "keys",       "values",     "table",
                                     "column_value", "index", "compress",   "join_index", "order"};
    if (chance(35)) name = often[pick(std::size(often))];
    bool own = !find_builtin(name, b);
    size_t least = own ? 1 : row(b).min_arity, most = own ? 2 : row(b).max_arity;
    size_t n = least + (most == 255 ? pick(4) : most > least ? pick(most - least + 1) : 0);
    std::string out = "@" + name + "(";
    for (size_t i = 0; i < n; ++i) {
      bool function = (name.starts_with("each") && i == 0) || (name == "join_index" && i + 2 < n);
      constexpr const char* comparisons[] = {"eq", "eq", "neq", "lt", "gt", "leq", "geq"};
      std::string f = name == "join_index"               ? comparisons[pick(7)]
                      : !callables.empty() && chance(20) ? callables[pick(callables.size())]
                                                         : builtin();
      out += (i ? ", " : "") + (function ? "@" + f : operand());
    }
    return out + ")";
  }

  std::string expression() {
    if (chance(8)) return operand();
    if (chance(10))
      return fmt::format("check_cast({}, {})", chance(50) ? operand() : call(), types[pick(std::size(types))]);
    return call();
  }

  // One statement; `fresh` gets the name that it declares.
  std::string statement(std::string& fresh) {
    if (names.empty() || chance(75)) {
      fresh = fmt::format("v{}", counter);
      return fmt::format("{}:? = {};", fresh, expression());
    }
    auto again = [&] { return fmt::format("{} = {};", names[pick(names.size())], expression()); };
    switch (pick(7)) {
      case 0: return fmt::format("if ({}) {} else {{ {} }}", operand(), again(), again());
      case 1: return fmt::format("if ({}) {{ w:? = {}; {} }}", operand(), expression(), again());
      case 2: return fmt::format("repeat ({}:i32) {{ {} {} }}", pick(4), again(), chance(30) ? "break;" : again());
      case 3: return fmt::format("while ({}) {{ {} {} }}", operand(), again(), chance(60) ? "break;" : "continue;");
      case 4:
        fresh = fmt::format("v{}", counter);
        return fmt::format("{}:?, _ = @pair({}, {});", fresh, operand(), operand());
      case 5: return fmt::format("{};", call());
      default: return again();
    }
  }

  // Several values, or for 1 a single one. Long ones come from `range`, so that they fill more than one warp or block.
  std::string numbers(std::vector<std::string>& lines, size_t n, std::string_view type) {
    if (n > 6) {
      const std::string whole = declare(lines, fmt::format("@range({}:i64)", n));
      const std::string few = declare(lines, fmt::format("@mod({}, {}:i64)", whole, 1 + pick(40)));
      return type == "i64" ? few : declare(lines, fmt::format("check_cast({}, {})", few, type));
    }
    std::string out;
    for (size_t i = 0; i < n; ++i) out += (i ? ", " : "") + value(type);
    return declare(lines, fmt::format("{}{}{}:{}", n == 1 ? "" : "(", out, n == 1 ? "" : ")", type));
  }
  std::string declare(std::vector<std::string>& lines, const std::string& value) {
    std::string name = fmt::format("v{}", counter + lines.size());
    lines.push_back(fmt::format("{}:? = {};", name, value));
    return name;
  }
  std::string_view number_type() {
    constexpr const char* numeric[] = {"i64", "i64", "f64", "f64", "i32"};
    return numeric[pick(std::size(numeric))];
  }
  std::string element_wise(std::vector<std::string>& lines, const std::string& a, const std::string& b) {
    constexpr const char* functions[] = {"plus", "minus", "mul", "lt", "geq", "eq"};
    return declare(lines, fmt::format("@{}({}, {})", functions[pick(std::size(functions))], a, b));
  }

  // Two vectors of lengths that only the run knows, equal or one of them a single value, and what is made of them.
  std::vector<std::string> lengths_of_the_run() {
    std::vector<std::string> lines;
    constexpr size_t sizes[] = {1, 2, 3, 6, 33, 300, 1030};
    const std::string keys = numbers(lines, sizes[pick(std::size(sizes))], "i64");
    const std::string unique = declare(lines, fmt::format("@unique({})", keys));
    const std::string n = declare(lines, fmt::format("@len({})", unique));
    const std::string_view type = number_type();
    const std::string x = numbers(lines, 1 + pick(6), type), y = numbers(lines, 1 + pick(6), type);
    std::string other = n;  // or 1, which only the run knows: a single value repeats
    if (chance(25))
      other = declare(lines, fmt::format("@minus({}, {})", n, declare(lines, fmt::format("@minus({}, 1:i64)", n))));
    const std::string a = declare(lines, fmt::format("@take({}, {})", n, x)),
                      b = declare(lines, fmt::format("@take({}, {})", other, y));
    const std::string c = element_wise(lines, a, b);
    if (chance(40)) element_wise(lines, a, c);
    if (chance(40)) declare(lines, fmt::format("@{}({})", chance(50) ? "sum" : "max", chance(50) ? a : b));
    if (chance(40)) {
      const std::string mask = declare(lines, fmt::format("@lt({}, {})", a, b));
      declare(lines, fmt::format("@compress({}, {})", mask, b));
    }
    return lines;
  }

  // Groups, reductions of their cells, and work on vectors with an element per group.
  std::vector<std::string> groups() {
    std::vector<std::string> lines;
    constexpr size_t sizes[] = {1, 2, 5, 6, 33, 300, 1030};
    const size_t n = sizes[pick(std::size(sizes))];
    const std::string keys = numbers(lines, n, "i64");
    const std::string values = numbers(lines, n, number_type());
    const std::string dict = declare(lines, fmt::format("@group({})", keys));
    const std::string first = declare(lines, fmt::format("@keys({})", dict));
    const std::string rows = declare(lines, fmt::format("@values({})", dict));
    const std::string cells = declare(lines, fmt::format("@each_right(@index, {}, {})", values, rows));
    constexpr const char* reductions[] = {"sum", "min", "max", "avg", "len"};
    const std::string reduced = declare(lines, fmt::format("@each(@{}, {})", reductions[pick(5)], cells));
    declare(lines, fmt::format("@raze({})", reduced));
    const std::string key = declare(lines, fmt::format("@index({}, {})", chance(50) ? keys : values, first));
    const std::string made = element_wise(lines, key, chance(50) ? key : declare(lines, value("i64") + ":i64"));
    if (chance(50)) element_wise(lines, key, made);
    if (chance(30)) {
      const std::string again = declare(lines, fmt::format("@each(@{}, {})", reductions[pick(5)], cells));
      declare(lines, fmt::format("@raze({})", again));
    }
    return lines;
  }

  // Statements, and the number of the one among them that may fail in the run; what stands behind it only reads its result.
  std::pair<std::vector<std::string>, size_t> failure() {
    std::vector<std::string> lines;
    constexpr size_t sizes[] = {1, 2, 3, 6, 33, 300, 1030};
    const size_t n = sizes[pick(std::size(sizes))];
    const char* type = chance(70) ? "i64" : "i32";
    std::string x = chance(30) ? operand() : numbers(lines, n, type), y = numbers(lines, n, type);
    if (chance(30)) {  // of what a mask selects
      const std::string mask =
          declare(lines, fmt::format("@{}({}, {}:{})", chance(50) ? "leq" : "gt", y, pick(3), type));
      x = declare(lines, fmt::format("@compress({}, {})", mask, x));
      y = declare(lines, fmt::format("@compress({}, {})", mask, y));
    }
    const auto shifted = [&](int by) { return declare(lines, fmt::format("@minus({}, {}:{})", y, by, type)); };
    std::string failed;
    switch (pick(7)) {
      case 0: failed = declare(lines, fmt::format("@{}({}, {})", chance(50) ? "div" : "mod", x, y)); break;
      case 1: failed = declare(lines, fmt::format("@index({}, {})", x, shifted(chance(50) ? 1 : -1))); break;
      case 2: failed = declare(lines, fmt::format("@index_a({}, {}, {})", x, shifted(chance(50) ? 1 : -1), y)); break;
      case 3: failed = declare(lines, fmt::format("@fact({})", shifted(1))); break;
      case 4: {  // lengths that only the run knows
        const std::string unique = declare(lines, fmt::format("@unique({})", y));
        const std::string length = declare(lines, fmt::format("@len({})", unique));
        const std::string more = declare(lines, fmt::format("@plus({}, {}:i64)", length, 1 + pick(2)));
        const std::string a = declare(lines, fmt::format("@take({}, {})", length, x));
        const std::string b = declare(lines, fmt::format("@take({}, {})", more, y));
        failed = element_wise(lines, a, b);
        break;
      }
      case 5: {  // in the cells of a list
        const std::string dict = declare(lines, fmt::format("@group({})", y));
        const std::string rows = declare(lines, fmt::format("@values({})", dict));
        const std::string fewer = declare(lines, fmt::format("@drop(1:i64, {})", x));
        failed = declare(lines, fmt::format("@each_right(@index, {}, {})", fewer, rows));
        break;
      }
      default: failed = declare(lines, expression()); break;
    }
    const size_t at = lines.size() - 1;
    if (chance(40)) declare(lines, fmt::format("@{}({})", chance(50) ? "sum" : "len", failed));
    return {lines, at};
  }

  // Puts a failure somewhere into the program, if `fails` takes one.
  void fail(const std::function<bool(const std::string&)>& fails) {
    const std::vector<std::string> whole = body;
    for (int tries = 0; tries < 200; ++tries) {
      const auto [lines, failing] = failure();
      const auto at = static_cast<ptrdiff_t>(pick(body.size() + 1));
      const auto with = [&, &lines = lines](size_t count) {
        body.insert(body.begin() + at, lines.begin(), lines.begin() + static_cast<ptrdiff_t>(count));
        const std::string text = returning(results);
        body = whole;
        return text;
      };
      // What goes before must finish: of several statements that fail, any may be the one that is told of.
      if (failing > 0 && !accept(with(failing))) continue;
      const std::string text = with(lines.size());
      if (!fails(text)) continue;
      final = text;
      return;
    }
  }

  // Tries what `change` does to the program; takes it back when it is not accepted.
  template <class F>
  bool attempt(F change) {
    std::string g = globals, f = functions;
    size_t lines = body.size();
    change();
    if (accept(program())) return true;
    globals = g, functions = f;
    body.resize(lines);
    return false;
  }

  void run(size_t statements) {
    functions = "    def pair(x:i64, y:f64) : i64, f64 { return x, y; }\n";
    for (int i = 0; i < 3; ++i) {
      std::string name = fmt::format("g{}", i), text = literal();
      std::string type = chance(50) ? "?" : text.substr(text.rfind(':') + 1);
      if (attempt([&] { globals += fmt::format("    global {}:{} = {};\n", name, type, text); })) names.push_back(name);
    }
    for (int i = 0; i < 40 && callables.size() < 3; ++i) {
      std::string name = fmt::format("f{}", callables.size());
      const char *a = types[pick(std::size(types))], *b = chance(50) ? a : types[pick(std::size(types))];
      std::vector<std::string> saved = std::exchange(names, {"a", "b"});
      bool two = chance(50);
      if (!two) names.pop_back();
      std::string value = call();
      names = std::move(saved);
      if (attempt([&] {
            functions += fmt::format("    {} {}(a:{}{}) : ? {{ r:? = {}; return r; }}\n", chance(80) ? "def" : "kernel",
                                     name, a, two ? fmt::format(", b:{}", b) : "", value);
          }))
        callables.push_back(name);
    }
    for (size_t tries = 0; body.size() < statements && tries < statements * 40; ++tries) {
      if (idioms > 0 && chance(idioms)) {
        const std::vector<std::string> lines = chance(50) ? lengths_of_the_run() : groups();
        if (!attempt([&] { body.insert(body.end(), lines.begin(), lines.end()); })) continue;
        for (size_t i = 0; i < lines.size(); ++i) names.push_back(fmt::format("v{}", counter++));
        continue;
      }
      std::string fresh, line = statement(fresh);
      if (!attempt([&] { body.push_back(line); })) continue;
      if (!fresh.empty()) names.push_back(fresh), ++counter;
    }
    // The results: as many variables as may be returned, of whatever types.
    for (size_t i = names.size(); i-- > 0 && results.size() < 8;) {
      std::vector<std::string> more = results;
      more.push_back(names[i]);
      if (accept(returning(more))) results = std::move(more);
    }
    final = returning(results);
  }

  std::string returning(const std::vector<std::string>& values) const {
    std::string out = program();
    if (values.empty()) return out;
    std::string list, signature;
    for (size_t i = 0; i < values.size(); ++i) {
      list += (i ? ", " : "") + values[i];
      signature += i ? ", ?" : "?";
    }
    out.replace(out.find("main()"), 6, "main() : " + signature);
    out.replace(out.rfind("    }\n}\n"), 0, "        return " + list + ";\n");
    return out;
  }

  std::vector<std::string> results;
  std::string final;
};

}  // namespace

std::string random_program(uint32_t seed, size_t statements, const std::function<bool(const std::string&)>& accept,
                           size_t idioms) {
  return random_failure(seed, statements, accept, idioms, {});
}

std::string random_failure(uint32_t seed, size_t statements, const std::function<bool(const std::string&)>& accept,
                           size_t idioms, const std::function<bool(const std::string&)>& fails) {
  Generator g{std::mt19937(seed), accept, {}, {}, {}, {}, {}, 0, idioms, {}, {}};
  g.run(statements);
  if (fails) g.fail(fails);
  return g.final;
}

}  // namespace rndn::hir
