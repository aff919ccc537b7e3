// Joins, aggregation and set operations by CUDA's own libraries and by a plain hash table, on the data of bench_operators:
//
//   nvcc -O3 -std=c++17 -arch=native tests/operators/compare_operators.cu -o /tmp/compare_operators && /tmp/compare_operators ROWS SET_ROWS [FOLDER]
//
// With a folder, the columns are written there for compare_cupy.py. Cases have bench_operators's names and its keys from the same seed.
//   join      hash table: open addressing with linear probing, a 64-bit key and a 32-bit row per slot, half of the slots taken; pairs in no order, by a
//             counter per warp, as hash maps of libraries do it. sort and search: cub::DeviceRadixSort of the left side, thrust::lower_bound, and
//             thrust::copy_if of the pairs. Pairs are two i64, as bench_operators's.
//   aggregate cub::DeviceRadixSort::SortPairs over the significant bits, cub::DeviceReduce::ReduceByKey (sums), RunLengthEncode (sizes)
//   sets      thrust::set_intersection, set_difference and set_union; join of ascending columns: thrust::lower_bound and copy_if
#include <thrust/binary_search.h>
#include <thrust/copy.h>
#include <thrust/execution_policy.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/set_operations.h>
#include <thrust/transform.h>

#include <cub/cub.cuh>
#include <map>
#include <random>

#include "compare.cuh"

namespace {

constexpr uint64_t empty = ~uint64_t{0};
const char* folder = nullptr;

template <class T>
void keep(const std::string& name, const std::vector<T>& column) {
  if (!folder) return;
  const std::string path = std::string(folder) + "/" + name + ".bin";
  FILE* f = std::fopen(path.c_str(), "wb");
  if (!f || std::fwrite(column.data(), sizeof(T), column.size(), f) != column.size() || std::fclose(f) != 0) {
    std::fprintf(stderr, "%s cannot be written\n", path.c_str());
    std::exit(3);
  }
}

// Thrust's temporary memory, kept between calls.
struct Pool {
  using value_type = char;
  std::multimap<size_t, char*> free;
  std::map<char*, size_t> size;
  char* allocate(std::ptrdiff_t bytes) {
    auto found = free.lower_bound(static_cast<size_t>(bytes));
    char* p = nullptr;
    if (found != free.end() && found->first <= 2 * static_cast<size_t>(bytes) + 1024) {
      p = found->second;
      free.erase(found);
      return p;
    }
    MUST(cudaMalloc(&p, bytes));
    size[p] = static_cast<size_t>(bytes);
    return p;
  }
  void deallocate(char* p, size_t) { free.emplace(size[p], p); }
  ~Pool() {
    for (auto& [p, bytes] : size) cudaFree(p);
  }
};

__device__ uint64_t mix(uint64_t k) {
  k *= 0x9E3779B97F4A7C15u;
  return k ^ (k >> 32);
}

__global__ void build_table(const int64_t* left, uint32_t n, uint64_t* keys, uint32_t* rows, uint64_t mask) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const uint64_t key = static_cast<uint64_t>(left[i]);
    for (uint64_t at = mix(key) & mask;; at = (at + 1) & mask) {
      if (atomicCAS(reinterpret_cast<unsigned long long*>(keys + at), empty, key) == empty) {
        rows[at] = i;
        break;
      }
    }
  }
}

__global__ void probe_table(const int64_t* right, uint32_t m, const uint64_t* keys, const uint32_t* rows, uint64_t mask,
                            int64_t* out_left, int64_t* out_right, unsigned long long* count) {
  const uint32_t rounded = (m + 31) / 32 * 32;  // whole warps
  for (uint32_t j = blockIdx.x * blockDim.x + threadIdx.x; j < rounded; j += gridDim.x * blockDim.x) {
    int64_t row = -1;
    if (j < m) {
      const uint64_t key = static_cast<uint64_t>(right[j]);
      for (uint64_t at = mix(key) & mask;; at = (at + 1) & mask) {
        const uint64_t seen = keys[at];
        if (seen == key) row = rows[at];
        if (seen == key || seen == empty) break;
      }
    }
    const uint32_t hits = __ballot_sync(~0u, row >= 0), lane = threadIdx.x % 32;
    unsigned long long base = 0;
    if (lane == 0) base = atomicAdd(count, __popc(hits));
    base = __shfl_sync(~0u, base, 0) + __popc(hits & ((1u << lane) - 1));
    if (row >= 0) out_left[base] = row, out_right[base] = j;
  }
}

// The pair of right row j, and whether there is one.
struct Matches {
  const int64_t *sorted, *right;
  const uint32_t* place;
  uint32_t n;
  __device__ bool operator()(int64_t j) const { return place[j] < n && sorted[place[j]] == right[j]; }
};
struct RowAt {
  const uint32_t *rows, *place;  // rows: none when the left side ascends anyway
  __device__ int64_t operator()(int64_t j) const { return rows ? rows[place[j]] : place[j]; }
};

void check_pairs(const std::string& name, const std::vector<int64_t>& left, const std::vector<int64_t>& right,
                 const std::vector<int64_t>& l, const std::vector<int64_t>& r) {
  bool equal = l.size() == r.size();
  for (size_t i = 0; equal && i < l.size(); ++i)
    equal = left[static_cast<size_t>(l[i])] == right[static_cast<size_t>(r[i])];
  expect(equal, name);
}

void join_by_search(const std::string& name, const std::vector<int64_t>& left, const std::vector<int64_t>& right,
                    bool ascending, int bits, uint64_t pairs, Pool& pool) {
  const auto on = thrust::cuda::par(pool);
  const uint64_t n = left.size(), m = right.size();
  Buffer<int64_t> x(left), y(right), sorted(ascending ? 0 : n), out_left(m), out_right(m);
  Buffer<uint32_t> rows(ascending ? 0 : n), order(ascending ? 0 : n), place(m);
  size_t bytes = 0;
  const auto sort = [&](void* scratch) {
    if (ascending) return;
    MUST(cub::DeviceRadixSort::SortPairs(scratch, bytes, x.data, sorted.data, rows.data, order.data, n, 0, bits));
  };
  sort(nullptr);
  Buffer<char> scratch(bytes);
  const int64_t* keys = ascending ? x.data : sorted.data;
  uint64_t found = 0;
  measure(
      name, m,
      [&] {
        if (!ascending)
          thrust::copy(on, thrust::counting_iterator<uint32_t>(0),
                       thrust::counting_iterator<uint32_t>(static_cast<uint32_t>(n)), rows.data);
        sort(scratch.data);
        thrust::lower_bound(on, keys, keys + n, y.data, y.data + m, place.data);
        const thrust::counting_iterator<int64_t> all(0);
        int64_t* end = thrust::copy_if(on, all, all + static_cast<int64_t>(m), out_right.data,
                                       Matches{keys, y.data, place.data, static_cast<uint32_t>(n)});
        found = static_cast<uint64_t>(end - out_right.data);
        thrust::transform(on, out_right.data, end, out_left.data,
                          RowAt{ascending ? nullptr : order.data, place.data});
      },
      ascending ? "Thrust: search" : "CUB, Thrust: sort and search");
  expect(found == pairs, name);
  check_pairs(name, left, right, out_left.get(found), out_right.get(found));
}

// Keys of a join as bench_operators's bench_join makes them: every right row has one left row.
void join(const std::string& name, uint64_t n, bool sparse, Pool& pool) {
  const uint64_t left_rows = n / 10 + 1;
  std::mt19937_64 random(1);
  std::vector<int64_t> left(left_rows), right(n);
  for (uint64_t i = 0; i < left_rows; ++i) left[i] = static_cast<int64_t>(sparse ? i * 0x9E3779B97F4A7C15u : i + 1);
  std::shuffle(left.begin(), left.end(), random);
  for (int64_t& v : right) v = left[random() % left_rows];
  keep(sparse ? "join_sparse_left" : "join_dense_left", left);
  keep(sparse ? "join_sparse_right" : "join_dense_right", right);
  uint64_t slots = 1;
  while (slots < 2 * left_rows) slots *= 2;
  {
    Buffer<int64_t> x(left), y(right), out_left(n), out_right(n);
    Buffer<uint64_t> keys(slots);
    Buffer<uint32_t> rows(slots);
    Buffer<unsigned long long> count(1);
    measure(
        name, n,
        [&] {
          MUST(cudaMemsetAsync(keys.data, 0xFF, slots * 8));
          MUST(cudaMemsetAsync(count.data, 0, 8));
          build_table<<<2048, 256>>>(x.data, static_cast<uint32_t>(left_rows), keys.data, rows.data, slots - 1);
          probe_table<<<2048, 256>>>(y.data, static_cast<uint32_t>(n), keys.data, rows.data, slots - 1, out_left.data,
                                     out_right.data, count.data);
        },
        "hash table");
    expect(count.get(1)[0] == n, name);
    check_pairs(name, left, right, out_left.get(n), out_right.get(n));
  }
  int bits = 64;  // significant ones, as they are known to bench_operators
  if (!sparse)
    for (bits = 1; uint64_t{1} << bits <= left_rows;) ++bits;
  join_by_search(name, left, right, false, bits, n, pool);
}

struct Plus {
  __host__ __device__ double operator()(double a, double b) const { return a + b; }
};

void aggregate(uint64_t n, uint64_t groups) {
  const std::string name = "aggregate into " + std::to_string(groups);
  std::mt19937_64 random(1);
  std::vector<int32_t> keys(n);
  std::vector<double> values(n), sums(groups);
  for (uint64_t i = 0; i < n; ++i) {
    keys[i] = static_cast<int32_t>(random() % groups);
    values[i] = static_cast<double>(random() % 1000);
    sums[static_cast<size_t>(keys[i])] += values[i];
  }
  keep("aggregate_keys_" + std::to_string(groups), keys);
  if (groups == 1000) keep("aggregate_values", values);
  int bits = 1;
  while ((uint64_t{1} << bits) < groups) ++bits;
  Buffer<int32_t> k(keys), sorted(n), unique(n);
  Buffer<double> v(values), moved(n), sum(n);
  Buffer<uint32_t> size(n), found(1);
  const auto* from = reinterpret_cast<const uint32_t*>(k.data);
  auto* to = reinterpret_cast<uint32_t*>(sorted.data);
  size_t sort = 0, reduce = 0, runs = 0;
  MUST(cub::DeviceRadixSort::SortPairs(nullptr, sort, from, to, v.data, moved.data, n, 0, bits));
  MUST(cub::DeviceReduce::ReduceByKey(nullptr, reduce, sorted.data, unique.data, moved.data, sum.data, found.data,
                                      Plus(), n));
  MUST(cub::DeviceRunLengthEncode::Encode(nullptr, runs, sorted.data, unique.data, size.data, found.data, n));
  Buffer<char> scratch(std::max({sort, reduce, runs}));
  measure(
      name, n,
      [&] {
        MUST(cub::DeviceRadixSort::SortPairs(scratch.data, sort, from, to, v.data, moved.data, n, 0, bits));
        MUST(cub::DeviceReduce::ReduceByKey(scratch.data, reduce, sorted.data, unique.data, moved.data, sum.data,
                                            found.data, Plus(), n));
        MUST(cub::DeviceRunLengthEncode::Encode(scratch.data, runs, sorted.data, unique.data, size.data, found.data, n));
      },
      "CUB: sort and reduce");
  const uint32_t count = found.get(1)[0];
  const std::vector<double> got = sum.get(count);
  const std::vector<int32_t> key = unique.get(count);
  for (uint32_t j = 0; j < count; ++j) expect(got[j] == sums[static_cast<size_t>(key[j])], name);
}

// Of 2 i and 2 i + i % 2, as bench_operators's bench_set and its join of ascending columns.
void sets(uint64_t n, Pool& pool) {
  std::vector<int64_t> left(n), right(n);
  for (uint64_t i = 0; i < n; ++i)
    left[i] = static_cast<int64_t>(2 * i), right[i] = static_cast<int64_t>(2 * i + i % 2);
  keep("set_left", left);
  keep("set_right", right);
  {
    const auto on = thrust::cuda::par(pool);
    Buffer<int64_t> x(left), y(right), out(2 * n);
    int64_t* end = nullptr;
    const auto size = [&] { return static_cast<uint64_t>(end - out.data); };
    measure(
        "intersection, sorted", n,
        [&] { end = thrust::set_intersection(on, x.data, x.data + n, y.data, y.data + n, out.data); }, "Thrust");
    expect(size() == (n + 1) / 2, "intersection");
    measure(
        "difference, sorted", n,
        [&] { end = thrust::set_difference(on, x.data, x.data + n, y.data, y.data + n, out.data); }, "Thrust");
    expect(size() == n / 2, "difference");
    measure(
        "union, sorted", n, [&] { end = thrust::set_union(on, x.data, x.data + n, y.data, y.data + n, out.data); },
        "Thrust");
    expect(size() == n + n / 2, "union");
  }
  join_by_search("join, sorted", left, right, true, 64, (n + 1) / 2, pool);
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t n = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 100000000;
  const uint64_t set_rows = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 40000000;
  if (n == 0 || n > 2000000000 || set_rows == 0 || set_rows > 1000000000) {
    std::fprintf(stderr, "usage: compare_operators ROWS SET_ROWS [FOLDER]\n");
    return 2;
  }
  folder = argc > 3 ? argv[3] : nullptr;
  cudaDeviceProp device;
  MUST(cudaGetDeviceProperties(&device, 0));
  std::printf("CUB %d on %s\n%-34s %11s %10s %10s %10s %10s  %s\n", CUB_VERSION, device.name, "case", "rows", "ms",
              "lowest", "highest", "Mrows/s", "by");
  Pool pool;
  join("join dense i64", n, false, pool);
  join("join sparse i64", n, true, pool);
  for (uint64_t groups : {uint64_t{1000}, uint64_t{100000}, uint64_t{10000000}})
    if (groups <= n) aggregate(n, groups);
  sets(set_rows, pool);
  return 0;
}
