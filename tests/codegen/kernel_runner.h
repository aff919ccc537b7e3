// Runs generated kernels on the PTX interpreter and works out what they should give with the reference interpreter's builtins.
#pragma once
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "assembler/assemble.h"
#include "ptx/codegen/codegen.h"
#include "ptx/parse.h"
#include "runtime/reference/reference.h"
#include "runtime/simulator/simulator_device.h"
#include "tests/outliner/compile.h"
#include "tests/queries/interpreter_device.h"
#include "tests/support/no_tables.h"

namespace rndn::test {

using reference::Value;
using Columns = std::map<std::string, Value>;

struct Generated : Compiled {
  codegen::ModuleCode code;
  std::string text;
};

inline void generate(Generated& g, std::string program, outliner::Options options = {}) {
  compile(g, std::move(program), options);
  ASSERT_EQ(g.errors, "");
  auto code = codegen::generate(g.outlined, {}, g.timings);
  ASSERT_TRUE(code.ok()) << code.error().message;
  g.code = *std::move(code);
  for (const std::string& problem : ptx::verify(g.code.module)) ADD_FAILURE() << problem;
  g.text = ptx::print(g.code.module);
}

struct KernelRun {
  std::vector<Value> results;
  uint64_t error = 0;  // the error word
};

struct LaunchOptions {
  uint32_t grid = 3;
  uint64_t seed = 0;
  uint32_t launches = 1;  // with the same scratch memory
  std::string target;     // assembled for it and run on the simulator with all checks; empty: the PTX interpreter
  std::function<void(std::vector<std::byte>&)> scratch;  // sets what the scratch memory holds at first; empty: zeros
};

// Codes of texts, in order of first occurrence.
class TextCodes {
 public:
  uint32_t code(const std::string& text) {
    const auto [it, fresh] = codes_.try_emplace(text, static_cast<uint32_t>(texts_.size()));
    if (fresh) texts_.push_back(text);
    return it->second;
  }
  std::string text(uint32_t code) const { return code < texts_.size() ? texts_[code] : fmt::format("?{}", code); }

 private:
  std::map<std::string, uint32_t> codes_;
  std::vector<std::string> texts_;
};

inline uint32_t device_width(hir::BasicType type) { return hir::is_text(type) ? 4 : data::plain_width(type); }

// The elements of a vector, or of all cells of a list, as they lie in device memory.
inline std::vector<std::byte> device_bytes(const Value& v, TextCodes& codes) {
  std::vector<std::byte> out;
  if (v.kind == Value::list) {
    for (const Value& cell : v.parts()) {
      const std::vector<std::byte> part = device_bytes(cell, codes);
      out.insert(out.end(), part.begin(), part.end());
    }
    return out;
  }
  if (v.size == 0) return out;
  if (!hir::is_text(v.type)) {
    out.assign(v.bytes->begin(), v.bytes->begin() + static_cast<ptrdiff_t>(v.size * data::plain_width(v.type)));
    return out;
  }
  out.resize(v.size * 4);
  for (uint64_t i = 0; i < v.size; ++i) {
    const uint32_t code = codes.code(v.text(i));
    std::memcpy(&out[i * 4], &code, 4);
  }
  return out;
}

inline Value from_device(hir::BasicType type, uint64_t size, std::vector<std::byte> bytes, const TextCodes& codes) {
  if (!hir::is_text(type)) return reference::vector_from_bytes(type, size, std::move(bytes));
  std::vector<std::string> texts;
  for (uint64_t i = 0; i < size; ++i) {
    uint32_t code = 0;
    std::memcpy(&code, &bytes[i * 4], 4);
    texts.push_back(codes.text(code));
  }
  return reference::vector_of_texts(type, std::move(texts));
}

inline std::vector<uint64_t> list_offsets(const Value& list) {
  std::vector<uint64_t> offsets{0};
  for (const Value& cell : list.parts()) offsets.push_back(offsets.back() + cell.size);
  return offsets;
}

inline KernelRun run_kernel(const Generated& g, size_t k, const Columns& columns, const LaunchOptions& options) {
  const outliner::Kernel& kernel = g.outlined.kernels[k];
  const codegen::KernelCode& code = g.code.kernels[k];
  const hir::Function& function = g.outlined.program.functions[kernel.function];
  const auto name = [&](hir::VariableId v) { return std::string(g.outlined.program.text(function.variables[v].name)); };
  const auto parameter = [&](size_t p) -> const Value& { return columns.at(name(function.parameters[p])); };
  const outliner::Size& size = g.outlined.shapes[kernel.geometry];
  uint64_t n = is_none(kernel.geometry_variable) ? static_cast<uint64_t>(size.value)
                                                 : reference::length(columns.at(name(kernel.geometry_variable)));
  if (kernel.list) n += list_offsets(columns.at(name(kernel.geometry_variable))).back();
  KernelRun run;
  EXPECT_EQ(code.refused, "");
  if (!code.refused.empty()) return run;

  std::unique_ptr<device::Device> device;
  if (options.target.empty()) {
    device = std::make_unique<testing::InterpreterDevice>(g.code.module, options.seed);
  } else {
    sim::Options checks;
    checks.check_memory = checks.check_uninitialised = checks.check_hazards = checks.check_races = true;
    auto opened = runtime::open_simulator(options.target, checks);
    if (!opened.ok()) {
      ADD_FAILURE() << opened.error().message;
      return run;
    }
    device = *std::move(opened);
  }
  std::vector<std::byte> cubin;
  if (!options.target.empty()) {
    assembler::Options assemble;
    assemble.target = isa::find_target(options.target);
    assemble.verify_passes = true;
    Timings timings;
    auto assembled = assembler::assemble(g.code.module, assemble, timings);
    if (!assembled.ok()) {
      ADD_FAILURE() << assembled.error().message << "\n" << g.text;
      return run;
    }
    cubin = std::move(assembled->cubin);
  }
  auto module = device->load_module(cubin);
  EXPECT_TRUE(module.ok());
  auto entry = device->find_kernel(*module, code.name);
  EXPECT_TRUE(entry.ok());

  TextCodes codes;
  const auto allocate = [&](uint64_t bytes) { return *device->allocate(std::max<uint64_t>(bytes, 1)); };
  const auto put = [&](const void* from, uint64_t bytes) {
    const uint64_t at = allocate(bytes);
    EXPECT_TRUE(device->copy_to_device(at, from, bytes).ok());
    return at;
  };
  const auto put64 = [&](uint64_t value) { return put(&value, 8); };
  const auto get64 = [&](uint64_t at) {
    uint64_t value = 0;
    EXPECT_TRUE(device->copy_to_host(&value, at, 8).ok());
    return value;
  };
  uint64_t capacity = std::max<uint64_t>(n, 1);
  for (size_t p = 0; p < function.parameters.size(); ++p)
    capacity = std::max(capacity, reference::length(parameter(p)));
  std::vector<uint64_t> arguments;
  struct Result {
    uint64_t data = 0, size = 0;
    hir::BasicType type{};
  };
  std::vector<Result> results(kernel.result_shapes.size());
  uint64_t scratch = 0, scratch_size = 0, error = 0, sum_flags = 0;
  for (const codegen::KernelParameter& p : code.parameters) {
    switch (p.role) {
      case codegen::ParameterRole::input_data: {
        const std::vector<std::byte> bytes = device_bytes(parameter(p.ordinal), codes);
        arguments.push_back(put(bytes.data(), bytes.size()));
        break;
      }
      case codegen::ParameterRole::input_size:
        arguments.push_back(put64(reference::length(parameter(p.ordinal))));
        break;
      case codegen::ParameterRole::input_value: ADD_FAILURE() << "numbers are passed by engines"; break;
      case codegen::ParameterRole::input_offsets: {
        const std::vector<uint64_t> offsets = list_offsets(parameter(p.ordinal));
        arguments.push_back(put(offsets.data(), offsets.size() * 8));
        break;
      }
      case codegen::ParameterRole::input_bounds: ADD_FAILURE() << "bounds are given by engines"; break;
      case codegen::ParameterRole::output_data:
        arguments.push_back(allocate(capacity * device_width(p.type)));
        results[p.ordinal].data = arguments.back();
        results[p.ordinal].type = p.type;
        break;
      case codegen::ParameterRole::output_size:
        arguments.push_back(put64(0xDEADBEEF));
        results[p.ordinal].size = arguments.back();
        break;
      case codegen::ParameterRole::scratch: {
        scratch_size = codegen::scratch_bytes(code, n, options.grid);
        std::vector<std::byte> start(scratch_size);
        if (options.scratch) options.scratch(start);
        arguments.push_back(scratch = put(start.data(), scratch_size));
        break;
      }
      case codegen::ParameterRole::lookup: ADD_FAILURE() << "look-ups run in engines"; break;
      case codegen::ParameterRole::differs: arguments.push_back(put64(0)); break;
      case codegen::ParameterRole::sum_flags: {
        constexpr uint64_t none[2] = {};
        arguments.push_back(sum_flags = put(none, sizeof none));
        break;
      }
      case codegen::ParameterRole::sink: ADD_FAILURE() << "folds run in engines"; break;
      case codegen::ParameterRole::error: arguments.push_back(error = put64(0)); break;
    }
  }
  for (uint32_t launch = 0; launch < options.launches; ++launch) {
    for (size_t r = 0; r < code.starts_as.size(); ++r) {
      if (code.starts_as[r] < 0) continue;
      const std::vector<std::byte> bytes = device_bytes(parameter(static_cast<size_t>(code.starts_as[r])), codes);
      const uint64_t count = reference::length(parameter(static_cast<size_t>(code.starts_as[r])));
      EXPECT_TRUE(device->copy_to_device(results[r].data, bytes.data(), bytes.size()).ok());
      EXPECT_TRUE(device->copy_to_device(results[r].size, &count, 8).ok());
    }
    auto launched =
        device->launch(*entry, {options.grid, 1, 1}, {code.block_size, 1, 1}, 0, std::as_bytes(std::span(arguments)));
    if (launched.ok()) launched = device->synchronize();
    if (!launched.ok()) {
      ADD_FAILURE() << launched.error().message << "\n" << g.text;
      return {};
    }
  }
  if (scratch_size) {
    std::vector<std::byte> bytes(scratch_size);
    EXPECT_TRUE(device->copy_to_host(bytes.data(), scratch, scratch_size).ok());
    EXPECT_TRUE(std::all_of(bytes.begin(), bytes.end(), [](std::byte x) { return x == std::byte{0}; }))
        << "scratch memory is left dirty";
  }
  if (error) run.error = get64(error);
  if (sum_flags) {
    EXPECT_EQ(static_cast<uint32_t>(get64(sum_flags)), 0u) << "a sum is not sure";
  }
  for (size_t i = 0; i < results.size(); ++i) {
    const Result& r = results[i];
    const hir::TypeId type = function.result_types[i];
    const bool list = !g.outlined.program.types->is_basic(type);
    uint64_t count = get64(r.size);
    std::vector<uint64_t> offsets;
    if (list) {
      const int32_t cells_of = i < code.cells_of.size() ? code.cells_of[i] : -1;
      if (cells_of >= 0) {
        offsets = list_offsets(parameter(static_cast<size_t>(cells_of)));
        EXPECT_EQ(count, offsets.size() - 1);
      } else {
        for (uint64_t c = 0; c <= std::min(count, capacity); ++c) offsets.push_back(c);
      }
      count = offsets.back();
    }
    std::vector<std::byte> bytes;
    if (count <= capacity) {
      bytes.resize(count * device_width(r.type));
      EXPECT_TRUE(bytes.empty() || device->copy_to_host(bytes.data(), r.data, bytes.size()).ok());
    } else {
      ADD_FAILURE() << "a result of " << count << " elements";
      count = 0;
    }
    if (!list) {
      run.results.push_back(from_device(r.type, count, std::move(bytes), codes));
      continue;
    }
    std::vector<Value> cells;
    const uint64_t width = device_width(r.type);
    for (size_t c = 0; c + 1 < offsets.size(); ++c)
      cells.push_back(from_device(r.type, offsets[c + 1] - offsets[c],
                                  {bytes.begin() + static_cast<ptrdiff_t>(offsets[c] * width),
                                   bytes.begin() + static_cast<ptrdiff_t>(offsets[c + 1] * width)},
                                  codes));
    run.results.push_back(reference::list(std::move(cells)));
  }
  return run;
}

struct Expected {
  std::vector<Value> results;
  std::vector<double> tolerance;  // absolute; 0: the same bits (NaN equals NaN)
  std::string error;
};

// Sum of magnitudes of a vector of f32, f64 or i64.
inline double magnitude(const Value& v) {
  double sum = 0;
  for (uint64_t i = 0; i < v.size; ++i)
    sum += v.type == hir::BasicType::i64   ? std::fabs(static_cast<double>(v.as<int64_t>()[i]))
           : v.type == hir::BasicType::f32 ? std::fabs(static_cast<double>(v.as<float>()[i]))
                                           : std::fabs(v.as<double>()[i]);
  return sum;
}

// The kernel's statements, one by one, by the reference interpreter.
inline Expected expect_kernel(const Generated& g, size_t k, const Columns& columns) {
  const hir::Program& program = g.outlined.program;
  const hir::Function& f = program.functions[g.outlined.kernels[k].function];
  std::vector<Value> values(f.variables.size());
  std::vector<double> tolerance(f.variables.size(), 0);
  for (hir::VariableId p : f.parameters) values[index(p)] = columns.at(std::string(program.text(f.variables[p].name)));
  Expected out;
  const auto operand = [&](const hir::Operand& o) {
    return o.kind == hir::Operand::literal ? reference::from_literal(program, program.literals[o.literal_id()])
                                           : values[o.id];
  };
  for (hir::StatementId id : f.blocks[f.body].statements) {
    const hir::Statement& s = f.statements[id];
    if (s.kind == hir::Statement::return_) {
      for (const hir::Operand& o : s.results) {
        out.results.push_back(values[o.id]);
        out.tolerance.push_back(tolerance[o.id]);
      }
      continue;
    }
    std::vector<hir::TypeId> casts;
    hir::ExpressionId e = s.value;
    for (; f.expressions[e].kind == hir::Expression::cast; e = f.expressions[e].inner)
      casts.push_back(f.expressions[e].cast_type);
    const hir::Expression& x = f.expressions[e];
    std::vector<Value> arguments;
    for (const hir::Operand& o : x.operands) arguments.push_back(operand(o));
    Value v = arguments.empty() ? Value{} : arguments[0];
    const uint32_t target = s.targets[0].id;
    if (x.kind == hir::Expression::call) {
      auto called = reference::call(x.callee.builtin_id, arguments, &program, NoTables(), nullptr);
      if (!called.ok()) {
        out.error = called.error().message;
        return out;
      }
      v = called->front();
      if (x.callee.builtin_id == hir::Builtin::raze && v.size == 0 && program.types->is_basic(x.types[0]))
        v = reference::vector_from_bytes(program.types->basic_of(x.types[0]), 0, std::vector<std::byte>{});
      const hir::Builtin b = x.callee.builtin_id;
      if ((b == hir::Builtin::sum || b == hir::Builtin::avg) && hir::is_float(v.type) && v.size == 1) {
        const Value& argument = arguments[0];
        const bool wide = b == hir::Builtin::avg && argument.type == hir::BasicType::i64;  // averaged as f64
        const double eps = v.type == hir::BasicType::f32 ? 0x1p-23 : 0x1p-52;
        const bool floats = hir::is_float(argument.type) || wide;
        tolerance[target] =
            floats ? std::max<double>(1, static_cast<double>(argument.size)) * eps * magnitude(argument) : 0;
        if (b == hir::Builtin::avg && argument.size)
          tolerance[target] = floats ? tolerance[target] / static_cast<double>(argument.size) : 0;
      }
    }
    for (size_t c = casts.size(); c-- > 0;) {
      auto cast = reference::check_cast(v, *program.types, casts[c], true);
      if (!cast.ok()) {
        out.error = cast.error().message;
        return out;
      }
      v = *cast;
    }
    values[target] = v;
  }
  return out;
}

// Empty when equal, else the first difference. Floats: the same bits up to the payload of NaN, or within the tolerance.
inline std::string difference(const Value& got, const Value& want, double tolerance) {
  if (got.kind != want.kind) return "another kind of value";
  if (got.kind == Value::list) {
    if (got.parts().size() != want.parts().size())
      return fmt::format("{} cells instead of {}", got.parts().size(), want.parts().size());
    for (size_t c = 0; c < got.parts().size(); ++c)
      if (const std::string text = difference(got.parts()[c], want.parts()[c], tolerance); !text.empty())
        return fmt::format("cell {}: {}", c, text);
    return {};
  }
  if (got.type != want.type)
    return fmt::format("type {} instead of {}", basic_type_name(got.type), basic_type_name(want.type));
  if (got.size != want.size) return fmt::format("{} elements instead of {}", got.size, want.size);
  const uint32_t width = data::plain_width(got.type);
  for (uint64_t i = 0; i < got.size; ++i) {
    if (hir::is_text(got.type)) {
      if (got.text(i) != want.text(i))
        return fmt::format("element {}: `{}` instead of `{}`", i, got.text(i), want.text(i));
      continue;
    }
    if (got.type == hir::BasicType::complex) {
      const std::complex<double> p = got.as<std::complex<double>>()[i], q = want.as<std::complex<double>>()[i];
      const double a[2] = {p.real(), p.imag()}, b[2] = {q.real(), q.imag()};
      for (int part : {0, 1})
        if (!(std::isnan(a[part]) && std::isnan(b[part])) && std::memcmp(&a[part], &b[part], 8) != 0)
          return fmt::format("element {}: {}{:+}i instead of {}{:+}i", i, a[0], a[1], b[0], b[1]);
      continue;
    }
    if (hir::is_float(got.type)) {
      const bool single = got.type == hir::BasicType::f32;
      const double a = single ? got.as<float>()[i] : got.as<double>()[i],
                   b = single ? want.as<float>()[i] : want.as<double>()[i];
      if (std::isnan(a) && std::isnan(b)) continue;
      if (a == b && std::signbit(a) == std::signbit(b)) continue;
      if (tolerance > 0 && std::fabs(a - b) <= tolerance) continue;
      return fmt::format("element {}: {} instead of {}", i, a, b);
    }
    if (std::memcmp(got.bytes->data() + i * width, want.bytes->data() + i * width, width) != 0) {
      int64_t a = 0, b = 0;
      std::memcpy(&a, got.bytes->data() + i * width, width);
      std::memcpy(&b, want.bytes->data() + i * width, width);
      return fmt::format("element {}: {:#x} instead of {:#x}", i, a, b);
    }
  }
  return {};
}

// Runs all kernels of the program in order, each on the results of those before, and compares every one.
inline void check_program(const Generated& g, Columns columns, const LaunchOptions& options = {}) {
  const hir::Program& program = g.outlined.program;
  for (size_t k = 0; k < g.outlined.kernels.size(); ++k) {
    const hir::Function& f = program.functions[g.outlined.kernels[k].function];
    const Expected want = expect_kernel(g, k, columns);
    const KernelRun got = run_kernel(g, k, columns, options);
    if (!want.error.empty()) {
      EXPECT_NE(got.error, 0u) << "should be: " << want.error;
      return;
    }
    EXPECT_EQ(got.error, 0u);
    ASSERT_EQ(got.results.size(), want.results.size());
    const hir::Statement& ret = f.statements[f.blocks[f.body].statements.back()];
    for (size_t r = 0; r < want.results.size(); ++r) {
      const std::string name(program.text(f.variables[ret.results[r].variable_id()].name));
      EXPECT_EQ(difference(got.results[r], want.results[r], want.tolerance[r]), "") << name << " of\n" << g.kernel(k);
      columns[name] = want.results[r];
    }
  }
}

// Deterministic data for a column: edge cases first, then random values.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ull + 1) {}
  uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }

 private:
  uint64_t state_;
};

enum class Values {
  edges,
  tame,
  nonzero
};  // tame: small numbers that add up without overflow; nonzero: edges without zeros

inline Value column(hir::BasicType type, uint64_t n, uint64_t seed, Values kind = Values::edges) {
  Random random(seed);
  if (hir::is_text(type)) {
    std::vector<std::string> texts;
    for (uint64_t i = 0; i < n; ++i) texts.push_back(fmt::format("text {}", random.next() % 17));
    return reference::vector_of_texts(type, std::move(texts));
  }
  const uint32_t width = data::plain_width(type);
  std::vector<std::byte> bytes(n * width);
  if (type == hir::BasicType::complex) {  // edges of both parts meet in all pairs
    constexpr uint64_t edges = 24;
    const Value real = column(hir::BasicType::f64, n, seed, kind),
                imaginary = column(hir::BasicType::f64, n, seed + 1, kind);
    for (uint64_t i = 0; i < n; ++i) {
      const uint64_t other = i < edges * edges && n >= edges ? i / edges : i;
      const double z[2] = {real.as<double>()[i < edges * edges && n >= edges ? i % edges : i],
                           imaginary.as<double>()[other]};
      std::memcpy(&bytes[i * width], z, width);
    }
    return reference::vector_from_bytes(type, n, std::move(bytes));
  }
  static constexpr double floats[] = {
      0.0,          -0.0,    1.0,  -1.0,   0.5,      -0.5,      1.5, 2.5,   -2.5,   0.49999999999999994,
      1e300,        -1e300,  3e38, 1e-310, INFINITY, -INFINITY, NAN, 127.5, -128.9, 32768.0,
      2147483648.0, -9.3e18, 1e10, 0.1};
  static constexpr int64_t integers[] = {0,     1,      -1,    2,         -2,        127,       -128,      128,     255,
                                         32767, -32768, 65536, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 1000003, -7};
  for (uint64_t i = 0; i < n; ++i) {
    const uint64_t r = random.next();
    if (hir::is_float(type)) {
      double v = kind == Values::edges && i < std::size(floats)
                     ? floats[i]
                     : static_cast<double>(static_cast<int64_t>(r % 20001) - 10000) / 64;
      if (kind == Values::nonzero && v == 0) v = 3;
      if (type == hir::BasicType::f32) {
        const float single = static_cast<float>(v);
        std::memcpy(&bytes[i * width], &single, width);
      } else {
        std::memcpy(&bytes[i * width], &v, width);
      }
      continue;
    }
    int64_t v = kind != Values::tame && i < std::size(integers) ? integers[i] : static_cast<int64_t>(r % 201) - 100;
    if (kind == Values::edges && i >= std::size(integers) && r % 3 == 0) v = static_cast<int64_t>(random.next());
    if (type == hir::BasicType::boolean) v = r >> 7 & 1;
    if (kind == Values::nonzero) {
      const int64_t cut = width == 1   ? static_cast<int8_t>(v)
                          : width == 2 ? static_cast<int16_t>(v)
                          : width == 4 ? static_cast<int32_t>(v)
                                       : v;
      if (cut == 0) v = 3;
      if (type == hir::BasicType::boolean) v = 1;
    }
    std::memcpy(&bytes[i * width], &v, width);
  }
  return reference::vector_from_bytes(type, n, std::move(bytes));
}

}  // namespace rndn::test
