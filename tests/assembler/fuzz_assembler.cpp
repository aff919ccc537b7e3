// libFuzzer on the whole assembler, with every check between its passes on: what the parser takes becomes a cubin that decodes word by word, or is refused
// with a reason. Most inputs should get past the parser, so most mutations work on lines and words of PTX instead of bytes.
// Build with -DRNDN_FUZZ=ON (clang), run: build/fuzz/bin/fuzz_assembler tests/corpus tests/ptx/accept
#include <cctype>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assembler/assemble.h"
#include "assembler/cubin/cubin.h"
#include "assembler/isa/isa.h"
#include "libraries/base/errors/check.h"
#include "ptx/parse.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

using namespace rndn;

constexpr size_t longest = 20'000;  // bytes: beyond it an input only takes time

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '%' || c == '_' || c == '$'; }

// Names and numbers of a line, or the parts of its opcode: where they begin and how long they are.
std::vector<std::pair<size_t, size_t>> words_of(const std::string& line) {
  std::vector<std::pair<size_t, size_t>> words;
  for (size_t at = 0; at < line.size();) {
    size_t end = at;
    while (end < line.size() && in_word(line[end])) ++end;
    if (end > at) words.emplace_back(at, end - at);
    at = end + (end == at);
  }
  return words;
}

// A line is left out, doubled or moved, or one of its words becomes a word of another line.
std::string mutated(std::string_view text, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::string> lines = lines_of(text);
  if (lines.size() < 4) return std::string(text);
  const auto any = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  for (size_t times = 1 + any(3); times > 0; --times) {
    const size_t from = any(lines.size()), to = any(lines.size());
    switch (any(8)) {
      case 0: lines.erase(lines.begin() + static_cast<ptrdiff_t>(from)); break;
      case 1: lines.insert(lines.begin() + static_cast<ptrdiff_t>(to), std::string(lines[from])); break;
      case 2: std::swap(lines[from], lines[to]); break;
      default: {
        const auto theirs = words_of(lines[from]);
        const auto ours = words_of(lines[to]);
        if (theirs.empty() || ours.empty()) break;
        // Of the same kind, as often as not: a register for a register, a number for a number.
        const auto [begin, size] = ours[any(ours.size())];
        auto word = theirs[any(theirs.size())];
        for (size_t tries = 0; tries < 8 && lines[from][word.first] != lines[to][begin]; ++tries)
          word = theirs[any(theirs.size())];
        lines[to].replace(begin, size, lines[from].substr(word.first, word.second));
      }
    }
    if (lines.size() < 4) break;
  }
  std::string out;
  for (const std::string& line : lines) out += line + '\n';
  return out;
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  if (seed % 8 == 0) return LLVMFuzzerMutate(data, size, max_size);
  const std::string text = mutated({reinterpret_cast<const char*>(data), size}, seed);
  size = std::min(text.size(), max_size);
  std::memcpy(data, text.data(), size);
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > longest) return 0;
  SourceManager sources;
  DiagnosticSink sink;
  const ptx::Module module =
      ptx::parse(sources.add("input.ptx", std::string(reinterpret_cast<const char*>(data), size)), sources, sink);
  if (sink.has_errors()) return 0;
  // The text decides how it is assembled.
  size_t hash = size;
  for (size_t k = 0; k < size; ++k) hash = hash * 31 + data[k];
  assembler::Options options;
  options.target = &isa::targets()[hash % isa::targets().size()];
  options.level = hash / 7 % 2 ? 3 : 0;
  options.max_registers = hash / 14 % 4 ? 0 : 24;
  options.contract = hash / 56 % 2;
  options.stencils = hash / 112 % 2 ? assembler::Stencils::always : assembler::Stencils::off;
  options.verify_passes = true;
  Timings timings;
  const auto made = assembler::assemble(module, options, timings);
  if (!made.ok()) {
    CHECK(made.error().fault != Fault::internal, "{}", made.error().message);
    CHECK(!made.error().message.empty(), "refused without a reason");
    return 0;
  }
  const auto image = cubin::read(made->cubin);
  CHECK(image.ok(), "our own cubin is refused: {}", image.error().message);
  for (const cubin::Kernel& kernel : image->kernels)
    for (const isa::Located& at : isa::unpack(*options.target, kernel.code)) {
      isa::Instruction instruction;
      CHECK(isa::decode(*options.target, at.word, at.address, instruction), "{}: no instruction at {:#x}", kernel.name,
            at.address);
    }
  return 0;
}
