// What the programs share that do the operators' work by CUDA's own libraries: timing as bench_operators does it, and checked calls.
#pragma once
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#define MUST(call)                                                    \
  do {                                                                \
    cudaError_t e = (call);                                           \
    if (e != cudaSuccess) {                                           \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(e)); \
      std::exit(3);                                                   \
    }                                                                 \
  } while (0)

// A line as bench_operators prints it, and behind it what did the work: ms (median of 5 after two warm-ups, lowest, highest), million rows per second.
inline void measure(const std::string& name, uint64_t n, const std::function<void()>& body, const char* by = "CUB") {
  cudaEvent_t from, to;
  MUST(cudaEventCreate(&from));
  MUST(cudaEventCreate(&to));
  std::vector<float> ms;
  for (int k = 0; k < 7; ++k) {
    MUST(cudaDeviceSynchronize());
    MUST(cudaEventRecord(from));
    body();
    MUST(cudaGetLastError());
    MUST(cudaEventRecord(to));
    MUST(cudaEventSynchronize(to));
    float t;
    MUST(cudaEventElapsedTime(&t, from, to));
    if (k >= 2) ms.push_back(t);
  }
  MUST(cudaEventDestroy(from));
  MUST(cudaEventDestroy(to));
  std::sort(ms.begin(), ms.end());
  std::printf("%-34s %11llu %10.4f %10.4f %10.4f %10.1f  %s\n", name.c_str(), static_cast<unsigned long long>(n),
              ms[ms.size() / 2], ms.front(), ms.back(), n / ms[ms.size() / 2] / 1e3, by);
  std::fflush(stdout);
}

// Device memory with what a vector has, freed at its end.
template <class T>
struct Buffer {
  T* data = nullptr;
  uint64_t count;
  explicit Buffer(uint64_t n) : count(n) { MUST(cudaMalloc(&data, std::max<uint64_t>(n, 1) * sizeof(T))); }
  explicit Buffer(const std::vector<T>& from) : Buffer(from.size()) {
    MUST(cudaMemcpy(data, from.data(), count * sizeof(T), cudaMemcpyHostToDevice));
  }
  Buffer(const Buffer&) = delete;
  ~Buffer() { MUST(cudaFree(data)); }
  std::vector<T> get(uint64_t n) const {
    std::vector<T> out(n);
    MUST(cudaMemcpy(out.data(), data, n * sizeof(T), cudaMemcpyDeviceToHost));
    return out;
  }
};

// Every result is checked once.
inline void expect(bool right, const std::string& name) {
  if (right) return;
  std::fprintf(stderr, "%s: the result is wrong\n", name.c_str());
  std::exit(3);
}
