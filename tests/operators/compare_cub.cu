// The same work by CUB, for comparison with bench_operators in one run on one machine:
//
//   nvcc -O3 -std=c++17 -arch=native tests/operators/compare_cub.cu -o /tmp/compare_cub && /tmp/compare_cub ROWS
//
// Lines as bench_operators prints them: ms (median of 5 after two warm-ups, lowest, highest), million rows per second. Sorts carry row numbers
// of 32 bits; "group" is a sort of pairs and a run-length encoding, with the significant bits known, as bench_operators finds them out.
#include <cub/cub.cuh>

#include <random>

#include "compare.cuh"

__global__ void iota(uint32_t* out, uint64_t n) {
  for (uint64_t i = blockIdx.x * uint64_t{blockDim.x} + threadIdx.x; i < n; i += uint64_t{gridDim.x} * blockDim.x)
    out[i] = static_cast<uint32_t>(i);
}

template <class T>
static void sort(const std::string& name, uint64_t n, uint64_t values, int bits, bool group) {
  std::vector<T> host(n);
  std::mt19937_64 random(1);
  for (T& k : host) k = static_cast<T>(values ? random() % values : random());
  T *keys, *keys_out;
  uint32_t *rows, *rows_out, *counts, *found;
  void* scratch;
  MUST(cudaMalloc(&keys, n * sizeof(T)));
  MUST(cudaMalloc(&keys_out, n * sizeof(T)));
  MUST(cudaMalloc(&rows, n * 4));
  MUST(cudaMalloc(&rows_out, n * 4));
  MUST(cudaMalloc(&counts, n * 4));
  MUST(cudaMalloc(&found, 4));
  MUST(cudaMemcpy(keys, host.data(), n * sizeof(T), cudaMemcpyHostToDevice));
  size_t sort_bytes = 0, run_bytes = 0;
  MUST(cub::DeviceRadixSort::SortPairs(nullptr, sort_bytes, keys, keys_out, rows, rows_out, n, 0, bits));
  MUST(cub::DeviceRunLengthEncode::Encode(nullptr, run_bytes, keys_out, keys, counts, found, n));
  MUST(cudaMalloc(&scratch, std::max(sort_bytes, run_bytes)));
  measure(name, n, [&] {
    iota<<<1024, 256>>>(rows, n);
    MUST(cub::DeviceRadixSort::SortPairs(scratch, sort_bytes, keys, keys_out, rows, rows_out, n, 0, bits));
    // The runs go to memory that is not read again.
    if (group) MUST(cub::DeviceRunLengthEncode::Encode(scratch, run_bytes, keys_out, keys_out, counts, found, n));
  });
  for (void* p : {static_cast<void*>(keys), static_cast<void*>(keys_out), static_cast<void*>(rows), static_cast<void*>(rows_out),
                  static_cast<void*>(counts), static_cast<void*>(found), scratch})
    MUST(cudaFree(p));
}

struct Below {
  double limit;
  __host__ __device__ bool operator()(double x) const { return x < limit; }
};

// The elements below 0.5 of n random ones in [0, 1): what bench_codegen's "compress f64 by itself 50%" does. And with a mask beside them, one
// byte per element, which CUB wants where the condition is about another column ("compress f64 50%" reads that column itself, 8 bytes).
static void select(uint64_t n) {
  std::vector<double> host(n);
  std::vector<char> mask(n);
  std::mt19937_64 random(1);
  for (uint64_t i = 0; i < n; ++i) {
    host[i] = static_cast<double>(random() >> 11) * 0x1p-53;
    mask[i] = random() & 1;
  }
  double *in, *out;
  char* flags;
  uint64_t* found;
  void* scratch;
  MUST(cudaMalloc(&in, n * 8));
  MUST(cudaMalloc(&out, n * 8));
  MUST(cudaMalloc(&flags, n));
  MUST(cudaMalloc(&found, 8));
  MUST(cudaMemcpy(in, host.data(), n * 8, cudaMemcpyHostToDevice));
  MUST(cudaMemcpy(flags, mask.data(), n, cudaMemcpyHostToDevice));
  size_t if_bytes = 0, flagged_bytes = 0;
  MUST(cub::DeviceSelect::If(nullptr, if_bytes, in, out, found, n, Below{0.5}));
  MUST(cub::DeviceSelect::Flagged(nullptr, flagged_bytes, in, flags, out, found, n));
  MUST(cudaMalloc(&scratch, std::max(if_bytes, flagged_bytes)));
  measure("compress f64 by itself 50%", n, [&] { MUST(cub::DeviceSelect::If(scratch, if_bytes, in, out, found, n, Below{0.5})); });
  measure("compress f64 by a mask 50%", n, [&] { MUST(cub::DeviceSelect::Flagged(scratch, flagged_bytes, in, flags, out, found, n)); });
  for (void* p : {static_cast<void*>(in), static_cast<void*>(out), static_cast<void*>(flags), static_cast<void*>(found), scratch}) MUST(cudaFree(p));
}

int main(int argc, char** argv) {
  const uint64_t n = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 100000000;
  cudaDeviceProp device;
  MUST(cudaGetDeviceProperties(&device, 0));
  std::printf("CUB %d on %s\n%-34s %11s %10s %10s %10s %10s\n", CUB_VERSION, device.name, "case", "rows", "ms", "lowest", "highest",
              "Mrows/s");
  sort<uint64_t>("order 64-bit keys", n, uint64_t{1} << 63, 64, false);
  sort<uint32_t>("order 31-bit keys", n, uint64_t{1} << 31, 31, false);
  sort<uint32_t>("order 12-bit keys", n, 4096, 12, false);
  for (uint64_t groups : {uint64_t{4}, uint64_t{1000}, uint64_t{100000}, uint64_t{10000000}}) {
    int bits = 1;
    while ((uint64_t{1} << bits) < groups) ++bits;
    if (groups <= n) sort<uint64_t>("group into " + std::to_string(groups), n, groups, bits, true);
  }
  for (uint64_t few : {uint64_t{10}, uint64_t{1000}, uint64_t{2000}, uint64_t{20000}})
    sort<uint32_t>("order " + std::to_string(few) + " rows", few, uint64_t{1} << 20, 20, false);
  select(n);
  return 0;
}
