// How fast columns get their form for the device: bench_encodings [THREADS] [ROWS]; bytes as the host has them per second, best of five rounds; without
// the time in which the system takes the form's memory back.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <thread>

#include "runtime/memory/column_forms.h"

namespace {
using namespace rndn;
using hir::BasicType;

template <class T>
data::Column filled(BasicType type, uint64_t rows, const std::function<T(uint64_t)>& value) {
  data::Column column = data::make_column(type, rows);
  std::mt19937_64 random(1);
  T* to = reinterpret_cast<T*>(column.data->data());
  for (uint64_t i = 0; i < rows; ++i) to[i] = value(random());
  data::compute_statistics(column);
  return column;
}
}  // namespace

int main(int argc, char** argv) {
  const unsigned threads =
      argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : std::max(1u, std::thread::hardware_concurrency());
  const uint64_t rows = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : uint64_t{1} << 26;
  ThreadPool pool(threads);
  const auto days = [](uint64_t x) { return static_cast<int32_t>(8036 + x % 2526); };
  const auto keys = [](uint64_t x) { return static_cast<int32_t>(1 + x % 2'000'000); };
  const auto wide = [](uint64_t x) { return static_cast<int64_t>(x % 60'000'000); };
  const auto few = [](uint64_t x) { return static_cast<double>(1 + x % 50); };
  const auto money = [](uint64_t x) { return static_cast<double>(90'000 + x % 10'400'000) / 100; };
  const std::pair<const char*, data::Column> columns[] = {
      {"dates", filled<int32_t>(BasicType::date, rows, days)},
      {"keys of 32 bits", filled<int32_t>(BasicType::i32, rows, keys)},
      {"keys of 64 bits", filled<int64_t>(BasicType::i64, rows, wide)},
      {"quantities", filled<double>(BasicType::f64, rows, few)},
      {"prices", filled<double>(BasicType::f64, rows, money)},
  };
  double bytes = 0, seconds = 0;
  for (const auto& [name, column] : columns) {
    double least = 1e300;
    std::string form;
    for (int round = 0; round < 5; ++round) {
      const auto start = std::chrono::steady_clock::now();
      const runtime::ColumnForm made = runtime::form_of(column, {}, runtime::Encode::packed, &pool);
      least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
      form = encodings::text(made.stored);
    }
    const double size = static_cast<double>(column.data->size());
    bytes += size, seconds += least;
    std::printf("%-16s %-20s %6.2f GB/s\n", name, form.c_str(), size / least * 1e-9);
  }
  std::printf("%-16s %-20s %6.2f GB/s, %u threads\n", "all", "", bytes / seconds * 1e-9, threads);
}
