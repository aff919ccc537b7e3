// make-operators-code FILE: assembles operators::ready_kernels() for every target and writes the table that the programs
// hold (table.h). The build runs it; on all cores, and its file hangs on the kernels and the assembler alone.
// Exit: 0; 2 wrong usage; 3 FILE cannot be written; 70 a kernel does not assemble.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "assembler/assemble.h"
#include "libraries/base/system/files.h"
#include "libraries/base/system/parallel.h"
#include "libraries/operators/api.h"
#include "libraries/operators/machine_code/table.h"

using namespace rndn;
namespace table = operators::table;

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: make-operators-code FILE\n");
    return 2;
  }
  std::vector<operators::ReadyKernel> kernels = operators::ready_kernels();
  std::ranges::sort(kernels, {}, &operators::ReadyKernel::name);
  std::vector<const isa::Target*> targets;
  for (const isa::Target& target : isa::targets()) targets.push_back(&target);
  std::ranges::sort(targets, {}, &isa::Target::name);

  std::vector<assembler::Assembled> made(targets.size() * kernels.size());
  std::vector<std::string> wrong(made.size());
  parallel_for(made.size(), [&](size_t i) {
    assembler::Options options;
    options.target = targets[i % targets.size()];
    const operators::ReadyKernel& kernel = kernels[i / targets.size()];
    Timings nobodys;
    auto code = assembler::assemble(kernel.module, options, nobodys);
    if (code)
      made[i] = std::move(*code);
    else
      wrong[i] = fmt::format("{}, {}: {}", kernel.name, options.target->name, code.error().message);
  });

  std::string file(sizeof(table::Header) + made.size() * sizeof(table::Row), '\0');
  const auto add = [&](std::string_view bytes, size_t align) {
    file.resize((file.size() + align - 1) / align * align);
    const table::Piece piece{static_cast<uint32_t>(file.size()), static_cast<uint32_t>(bytes.size())};
    file += bytes;
    return piece;
  };
  for (size_t i = 0; i < made.size(); ++i) {
    if (!wrong[i].empty()) {
      fmt::print(stderr, "make-operators-code: {}\n", wrong[i]);
      return 70;
    }
    const operators::ReadyKernel& kernel = kernels[i / targets.size()];
    const std::vector<std::byte>& cubin = made[i].cubin;
    table::Row row{.block_size = kernel.block_size, .instructions = made[i].kernels[0].instructions};
    row.target = add(targets[i % targets.size()]->name, 1);
    row.kernel = add(kernel.name, 1);
    row.cubin = add({reinterpret_cast<const char*>(cubin.data()), cubin.size()}, table::cubin_align);
    std::memcpy(file.data() + sizeof(table::Header) + i * sizeof row, &row, sizeof row);
  }
  const table::Header header{.rows = static_cast<uint32_t>(made.size())};
  std::memcpy(file.data(), &header, sizeof header);
  if (auto written = write_file(argv[1], file); !written) {
    fmt::print(stderr, "make-operators-code: {}\n", written.error().message);
    return 3;
  }
  return 0;
}
