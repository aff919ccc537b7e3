// How fast instructions decode, encode and print: bench_isa F.cubin..; processor time of one thread, best of five rounds.
#include <chrono>
#include <cstdio>
#include <ctime>

#include "assembler/cubin/cubin.h"
#include "assembler/isa/isa.h"
#include "libraries/base/system/files.h"

namespace {
using namespace rndn;

// Nanoseconds of f(), best of five.
template <class F>
double best(F&& f) {
  double least = 1e300;
  for (int round = 0; round < 5; ++round) {
    const std::clock_t start = std::clock();
    f();
    const double ns = static_cast<double>(std::clock() - start) * (1e9 / CLOCKS_PER_SEC);
    if (ns < least) least = ns;
  }
  return least;
}
}  // namespace

int main(int argc, char** argv) {
  for (int a = 1; a < argc; ++a) {
    auto bytes = read_file(argv[a]);
    if (!bytes.ok()) return std::fprintf(stderr, "%s\n", bytes.error().message.c_str()), 1;
    auto image = cubin::read(std::as_bytes(std::span(bytes->data(), bytes->size())));
    if (!image.ok()) return std::fprintf(stderr, "%s\n", image.error().message.c_str()), 1;
    const isa::Target* target = isa::find_target("sm_" + std::to_string(image->sm));
    if (!target) return std::fprintf(stderr, "no tables for sm_%u\n", image->sm), 1;
    std::vector<isa::Located> words;
    for (const cubin::Kernel& k : image->kernels)
      for (const isa::Located& l : isa::unpack(*target, k.code)) words.push_back(l);
    const size_t repeats = 1 + 2'000'000 / words.size();
    std::vector<isa::Instruction> code(words.size());
    size_t decoded = 0, encoded = 0, letters = 0;
    const double decode_ns = best([&] {
      decoded = 0;
      for (size_t r = 0; r < repeats; ++r)
        for (size_t i = 0; i < words.size(); ++i)
          decoded += isa::decode(*target, words[i].word, words[i].address, code[i]);
    });
    const double encode_ns = best([&] {
      for (size_t r = 0; r < repeats; ++r)
        for (size_t i = 0; i < words.size(); ++i) {
          isa::Word w;
          encoded += isa::encode(*target, code[i], words[i].address, w);
        }
    });
    const double text_ns = best([&] {
      for (size_t i = 0; i < words.size(); ++i) letters += isa::text(*target, code[i], "", words[i].address).size();
    });
    const double n = static_cast<double>(words.size()), all = n * static_cast<double>(repeats);
    std::printf("%s: %zu words (%zu letters): decode %.1f M/s, encode %.1f M/s, print %.2f M/s\n", argv[a],
                words.size(), letters / 5, all / decode_ns * 1e3, all / encode_ns * 1e3, n / text_ns * 1e3);
    if (decoded != words.size() * repeats || encoded == 0) return 1;
  }
  return 0;
}
