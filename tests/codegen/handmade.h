// Kernels written by hand as HorseIR text, with the facts that the outliner would find, so that code generation is tested apart from it.
#pragma once
#include <initializer_list>
#include <set>
#include <string>

#include "tests/codegen/kernel_runner.h"

namespace rndn::test {

struct Handmade {
  std::string parameters;  // "x:f64, rows:list<i64>"
  std::string results;     // types: "f64, i64"
  std::string body;        // statements, the return included
  std::string geometry;    // a parameter, a list in a kernel with list geometry; empty: one thread's worth of work
  std::set<std::string> alike = {};    // further parameters of the geometry's size
  std::set<std::string> scalars = {};  // parameters of size one
};

inline void generate(Generated& g, const Handmade& h) {
  const FileId file =
      g.sources.add("test.hir", fmt::format("module m {{\n  import Builtin.*;\n  kernel main_1({}) : {} {{\n{}\n  }}\n"
                                            "  def main() : i64 {{ return 0:i64; }}\n}}\n",
                                            h.parameters, h.results, h.body));
  g.program = hir::run(file, g.sources, {}, g.sink, g.timings);
  ASSERT_FALSE(g.sink.has_errors()) << render(g.sink, g.sources);
  g.outlined.program = g.program;
  outliner::ShapeTable& shapes = g.outlined.shapes;
  const hir::Program& program = g.outlined.program;
  outliner::Kernel kernel;
  for (uint32_t f = 0; f < program.functions.size(); ++f)
    if (program.functions[static_cast<hir::FunctionId>(f)].is_kernel) kernel.function = static_cast<hir::FunctionId>(f);
  const hir::Function& function = program.functions[kernel.function];
  const auto symbol = [&](NameId name) {
    return shapes.intern(outliner::Size{.kind = outliner::Size::symbol, .name = name});
  };
  kernel.geometry = shapes.constant(1);
  kernel.geometry_variable = none<hir::VariableId>();
  for (hir::VariableId v : function.parameters)
    if (program.text(function.variables[v].name) == h.geometry) {
      kernel.geometry = symbol(function.variables[v].name);
      kernel.geometry_variable = v;
      kernel.list = !program.types->is_basic(function.variables[v].type);
    }
  for (uint32_t v = 0; v < function.variables.size(); ++v) {
    const hir::Variable& variable = function.variables[static_cast<hir::VariableId>(v)];
    const std::string name(program.text(variable.name));
    outliner::ShapeId shape = shapes.vector(kernel.geometry);
    if (h.scalars.count(name)) {
      shape = shapes.scalar();
    } else if (variable.is_parameter && name != h.geometry && !h.alike.count(name)) {
      shape = shapes.vector(symbol(variable.name));
    }
    if (!program.types->is_basic(variable.type)) {
      outliner::Shape list{.kind = outliner::Shape::list, .size = kernel.geometry};
      list.parts.push_back(shapes.vector(symbol(variable.name)));
      shape = shapes.intern(list);
    }
    kernel.shapes.add(shape);
  }
  for (hir::StatementId id : function.blocks[function.body].statements) {
    const hir::Statement& s = function.statements[id];
    if (s.kind != hir::Statement::return_) continue;
    for (const hir::Operand& o : s.results) kernel.result_shapes.push_back(kernel.shapes[o.variable_id()]);
  }
  g.outlined.kernels.push_back(kernel);
  auto code = codegen::generate(g.outlined, {}, g.timings);
  ASSERT_TRUE(code.ok()) << code.error().message;
  g.code = *std::move(code);
  for (const std::string& problem : ptx::verify(g.code.module)) ADD_FAILURE() << problem;
  g.text = ptx::print(g.code.module);
}

}  // namespace rndn::test
