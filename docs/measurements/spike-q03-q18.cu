// Queries 3 and 18 of TPC-H by hand, to settle how grouping and joining are built (docs/decisions.md, 15).
//   nvcc -O3 -arch=sm_90 spike-q03-q18.cu -o spike && ./spike 1 10
// Columns have the shape of the generator's (order rows ascending in lineitem, 1 to 7 lines per order), made on the device.
#include <cub/cub.cuh>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#define CHECK(x)                                                                            \
  do {                                                                                      \
    cudaError_t e = (x);                                                                    \
    if (e != cudaSuccess) std::printf("%s: %s\n", #x, cudaGetErrorString(e)), std::exit(1); \
  } while (0)

template <class T>
T* make(size_t n) {
  T* p;
  CHECK(cudaMalloc(&p, n * sizeof(T)));
  return p;
}
__host__ __device__ inline uint32_t mix(uint64_t x) {
  x ^= x >> 33, x *= 0xff51afd7ed558ccdull, x ^= x >> 33, x *= 0xc4ceb9fe1a85ec53ull, x ^= x >> 33;
  return static_cast<uint32_t>(x);
}
#define EACH(i, n) for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < (n); i += (uint64_t)gridDim.x * blockDim.x)

__global__ void fill_orders(uint8_t* wanted, uint32_t* date, uint64_t n) {
  EACH(i, n) wanted[i] = mix(i) % 10 == 0, date[i] = mix(i + 77) % 2400;  // q3: 1/5 of customers, 1/2 of the dates
}
__global__ void fill_lines(int64_t* row, double* quantity, double* price, double* discount, uint32_t* ship, uint64_t n) {
  EACH(i, n) {
    row[i] = i / 4;
    quantity[i] = 1 + mix(i) % 50;
    price[i] = 900 + mix(i + 1) % 100000;
    discount[i] = (mix(i + 2) % 11) / 100.0;
    ship[i] = mix(i + 3) % 2500;
  }
}

// --- Query 18: sum of quantities per order, orders above 300 -------------------------------------------------------------------
__global__ void to_u32(const int64_t* row, uint32_t* key, uint32_t* id, uint64_t n) { EACH(i, n) key[i] = row[i], id[i] = i; }
__global__ void gather(const double* from, const uint32_t* id, double* to, uint64_t n) { EACH(i, n) to[i] = from[id[i]]; }
__global__ void direct_sum(const int64_t* row, const double* quantity, double* sum, uint64_t n) {
  EACH(i, n) atomicAdd(&sum[row[i]], quantity[i]);
}
// Rows are ascending: a thread sums its run of neighbours first.
__global__ void direct_sum_runs(const int64_t* row, const double* quantity, double* sum, uint64_t n) {
  constexpr int items = 8;
  const uint64_t start = (blockIdx.x * (uint64_t)blockDim.x + threadIdx.x) * items;
  if (start >= n) return;
  int64_t at = row[start];
  double total = quantity[start];
  for (uint64_t i = start + 1; i < start + items && i < n; ++i) {
    if (row[i] != at) atomicAdd(&sum[at], total), total = 0, at = row[i];
    total += quantity[i];
  }
  atomicAdd(&sum[at], total);
}
struct Slot {
  uint64_t key;
  double sum;
};
__global__ void hash_sum(const int64_t* row, const double* quantity, Slot* table, uint64_t mask, uint64_t n) {
  EACH(i, n) {
    const uint64_t key = row[i] + 1;
    for (uint64_t at = mix(key) & mask;; at = (at + 1) & mask) {
      uint64_t seen = table[at].key;
      if (seen == 0) seen = atomicCAS(reinterpret_cast<unsigned long long*>(&table[at].key), 0ull, key);
      if (seen == 0 || seen == key) {
        atomicAdd(&table[at].sum, quantity[i]);
        break;
      }
    }
  }
}

// --- Query 3: revenue of lines that ship late of wanted orders, per order -----------------------------------------------------
__global__ void select_lines(const int64_t* row, const uint32_t* ship, const uint8_t* wanted, uint8_t* flag, uint64_t n) {
  EACH(i, n) flag[i] = ship[i] > 1200 && wanted[row[i]];
}
__global__ void revenue(const double* price, const double* discount, double* out, uint64_t n) { EACH(i, n) out[i] = price[i] * (1 - discount[i]); }
__global__ void fused_q3(const int64_t* row, const uint32_t* ship, const uint8_t* wanted, const double* price, const double* discount, double* sum, uint64_t n) {
  EACH(i, n) if (ship[i] > 1200 && wanted[row[i]]) atomicAdd(&sum[row[i]], price[i] * (1 - discount[i]));
}
__global__ void hash_q3(const int64_t* row, const uint32_t* ship, const uint8_t* wanted, const double* price, const double* discount, Slot* table, uint64_t mask, uint64_t n) {
  EACH(i, n) if (ship[i] > 1200 && wanted[row[i]]) {
    const uint64_t key = row[i] + 1;
    for (uint64_t at = mix(key) & mask;; at = (at + 1) & mask) {
      uint64_t seen = table[at].key;
      if (seen == 0) seen = atomicCAS(reinterpret_cast<unsigned long long*>(&table[at].key), 0ull, key);
      if (seen == 0 || seen == key) {
        atomicAdd(&table[at].sum, price[i] * (1 - discount[i]));
        break;
      }
    }
  }
}

static void time(const char* what, const std::function<void()>& f) {
  cudaEvent_t a, b;
  CHECK(cudaEventCreate(&a));
  CHECK(cudaEventCreate(&b));
  float least = 1e9f, most = 0;
  for (int run = 0; run < 12; ++run) {
    CHECK(cudaEventRecord(a));
    f();
    CHECK(cudaEventRecord(b));
    CHECK(cudaEventSynchronize(b));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, a, b));
    if (run >= 2) least = std::min(least, ms), most = std::max(most, ms);
  }
  std::printf("  %-78s %8.3f ms (to %.3f)\n", what, least, most);
  CHECK(cudaGetLastError());
}

int main(int argc, char** argv) {
  for (int k = 1; k < argc; ++k) {
    const double scale = std::atof(argv[k]);
    const uint64_t n = 6000000 * scale, orders = (n + 3) / 4;
    const int grid = 132 * 8, block = 256;
    auto row = make<int64_t>(n);
    auto quantity = make<double>(n), price = make<double>(n), discount = make<double>(n), a = make<double>(n), b = make<double>(n), c = make<double>(n);
    auto ship = make<uint32_t>(n), key = make<uint32_t>(n), id = make<uint32_t>(n), key2 = make<uint32_t>(n), id2 = make<uint32_t>(n), date = make<uint32_t>(orders);
    auto unique = make<uint32_t>(n), count = make<uint32_t>(n + 1), offset = make<uint32_t>(n + 1);
    auto runs = make<uint64_t>(1);
    auto wanted = make<uint8_t>(orders), flag = make<uint8_t>(n);
    auto sum = make<double>(orders);
    uint64_t slots = 1;
    while (slots < 2 * orders) slots *= 2;
    auto table = make<Slot>(slots);
    size_t temp_bytes = size_t{2} << 30;
    auto temp = make<uint8_t>(temp_bytes);
    fill_orders<<<grid, block>>>(wanted, date, orders);
    fill_lines<<<grid, block>>>(row, quantity, price, discount, ship, n);
    CHECK(cudaDeviceSynchronize());
    int bits = 1;
    while ((uint64_t{1} << bits) < orders) ++bits;
    std::printf("scale %g: %llu lines, %llu orders\n query 18, sums per order\n", scale, (unsigned long long)n, (unsigned long long)orders);

    const auto sort = [&] {
      size_t bytes = temp_bytes;
      to_u32<<<grid, block>>>(row, key, id, n);
      CHECK(cub::DeviceRadixSort::SortPairs(temp, bytes, key, key2, id, id2, n, 0, bits));
    };
    const auto boundaries = [&](const uint32_t* keys, uint64_t m) {
      size_t bytes = temp_bytes;
      CHECK(cub::DeviceRunLengthEncode::Encode(temp, bytes, keys, unique, count, runs, (int64_t)m));
      bytes = temp_bytes;
      CHECK(cub::DeviceScan::ExclusiveSum(temp, bytes, count, offset, (int64_t)orders + 1));
    };
    time("radix sort of (order row, line), all significant bits", sort);
    time("group: sort + run lengths + offsets", [&] { sort(), boundaries(key2, n); });
    time("group of rows known to be ascending: run lengths + offsets", [&] { to_u32<<<grid, block>>>(row, key, id, n), boundaries(key, n); });
    time("gather of the quantities + segmented sum", [&] {
      size_t bytes = temp_bytes;
      gather<<<grid, block>>>(quantity, id2, a, n);
      CHECK(cub::DeviceSegmentedReduce::Sum(temp, bytes, a, sum, (int)orders, offset, offset + 1));
    });
    time("fused: hash table of 16-byte slots, atomic add per line", [&] {
      CHECK(cudaMemsetAsync(table, 0, slots * sizeof(Slot)));
      hash_sum<<<grid, block>>>(row, quantity, table, slots - 1, n);
    });
    time("fused: direct index (foreign key), atomic add per line", [&] {
      CHECK(cudaMemsetAsync(sum, 0, orders * 8));
      direct_sum<<<grid, block>>>(row, quantity, sum, n);
    });
    time("fused: direct index, runs of a thread summed first", [&] {
      CHECK(cudaMemsetAsync(sum, 0, orders * 8));
      direct_sum_runs<<<(n / 8 + block) / block, block>>>(row, quantity, sum, n);
    });

    std::printf(" query 3, revenue per order of 1/20 of the lines\n");
    auto picked = make<int64_t>(1);
    const auto compress = [&](auto from, auto to) {
      size_t bytes = temp_bytes;
      CHECK(cub::DeviceSelect::Flagged(temp, bytes, from, flag, to, picked, (int64_t)n));
    };
    auto row2 = make<int64_t>(n);
    int64_t kept = 0;
    const auto selection = [&] {
      select_lines<<<grid, block>>>(row, ship, wanted, flag, n);
      compress(row, row2), compress(price, a), compress(discount, b);
    };
    selection();
    CHECK(cudaMemcpy(&kept, picked, 8, cudaMemcpyDeviceToHost));
    time("mask + three selections", selection);
    time("revenue + group by sort + gather + segmented sum, of the selected", [&] {
      size_t bytes = temp_bytes;
      revenue<<<grid, block>>>(a, b, c, kept);
      to_u32<<<grid, block>>>(row2, key, id, kept);
      CHECK(cub::DeviceRadixSort::SortPairs(temp, bytes, key, key2, id, id2, kept, 0, bits));
      boundaries(key2, kept);
      gather<<<grid, block>>>(c, id2, a, kept);
      bytes = temp_bytes;
      CHECK(cub::DeviceSegmentedReduce::Sum(temp, bytes, a, sum, (int)(kept / 2), offset, offset + 1));
    });
    time("fused: mask, revenue, hash table of 16-byte slots", [&] {
      CHECK(cudaMemsetAsync(table, 0, slots * sizeof(Slot)));
      hash_q3<<<grid, block>>>(row, ship, wanted, price, discount, table, slots - 1, n);
    });
    time("fused: mask, revenue, direct index", [&] {
      CHECK(cudaMemsetAsync(sum, 0, orders * 8));
      fused_q3<<<grid, block>>>(row, ship, wanted, price, discount, sum, n);
    });
    CHECK(cudaDeviceSynchronize());
    for (void* p : std::vector<void*>{row, quantity, price, discount, a, b, c, ship, key, id, key2, id2, date, unique, count, offset, runs, wanted, flag, sum, table, temp, picked, row2})
      CHECK(cudaFree(p));
  }
}
