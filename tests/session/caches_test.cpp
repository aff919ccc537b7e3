// The caches of columns and of code under attack: many threads and processes at once, files that
// are damaged, cut short or cannot be written. Answers stay right and nothing half written stays
// behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "libraries/base/system/files.h"
#include "runtime/data/source.h"
#include "runtime/session/session.h"

namespace rndn::runtime::caches_test {
namespace {

namespace fs = std::filesystem;

constexpr const char* program = R"(module m { import Builtin.*; def main() : table {
  t:? = @load_table(`t:sym);
  k:str = check_cast(@column_value(t, `k:sym), str);
  a:i64 = check_cast(@column_value(t, `a:sym), i64);
  x:f64 = check_cast(@column_value(t, `x:sym), f64);
  m:? = @gt(a, 20:i64);
  k1:? = @compress(m, k);
  x1:? = @compress(m, x);
  g:? = @group(k1);
  first:? = @keys(g);
  rows:? = @values(g);
  cells:? = @each_right(@index, x1, rows);
  sums:? = @each(@sum, cells);
  s:? = @raze(sums);
  n:? = @index(k1, first);
  o:? = @order(n, 1:bool);
  n1:? = @index(n, o);
  s1:? = @index(s, o);
  c:? = @list(n1, s1);
  r:? = @table((`n,`s):sym, c);
  return r; } })";

class Caches : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "rndn_caches_" + std::to_string(getpid()) + "/";
    fs::create_directories(folder_ + "data");
    std::ofstream t(folder_ + "data/t.csv");
    t << "k,a,x\n";
    for (int i = 0; i < 3000; ++i) t << "key" << i % 700 << "," << i % 50 << "," << i / 4.0 << "\n";
    t.close();
    // A file that was written a moment ago is not kept: until the clock has left its time.
    struct stat made {};
    ASSERT_EQ(stat((folder_ + "data/t.csv").c_str(), &made), 0);
    timespec now{};
    do clock_gettime(CLOCK_REALTIME_COARSE, &now);
    while (now.tv_sec == made.st_ctim.tv_sec && now.tv_nsec <= made.st_ctim.tv_nsec);
    use(folder_ + "cache");
    const auto first = run("cpu");
    ASSERT_TRUE(first) << first.error().message;
    right_ = *first;
    ASSERT_GT(right_.size(), 1000u);
  }
  void TearDown() override {
    unsetenv("RNDN_CACHE_DIR");
    fs::remove_all(folder_);
  }
  void use(const std::string& cache) {
    cache_ = cache;
    setenv("RNDN_CACHE_DIR", cache.c_str(), 1);  // of code
  }
  // Everything anew: what a process does that runs one program.
  Result<std::string> run(const char* device = "sim") const {
    RunOptions options;
    options.engine.encode = Encode::packed;  // its forms of columns are kept, too
    ASSIGN_OR_RETURN(const auto outcome, outcome_of(options, device));
    return print(outcome, Format::csv);
  }
  Result<Session::Outcome> outcome_of(const RunOptions& run, const char* device = "sim") const {
    data::SourceOptions options;
    options.progress = false;
    options.cache = cache_;
    options.note = [](const std::string&) {};
    ASSIGN_OR_RETURN(auto source, data::open_folder(folder_ + "data", options));
    ASSIGN_OR_RETURN(auto choice, DeviceChoice::start(device, "", [](const std::string&) {}));
    Session session(std::move(source), std::move(choice),
                    {.file_cache = cache_, .say = [](const std::string&) {}});
    return session.run({"m", "m.hir", program}, run);
  }
  // The same with reports; its answer is the right one.
  std::vector<RunReport> reports_of(Encode encode, unsigned repeat = 1, bool cache = true) const {
    RunOptions options;
    options.engine.encode = encode;
    options.engine.cache = cache;
    options.repeat = repeat;
    options.reports = true;
    const auto outcome = outcome_of(options);
    EXPECT_TRUE(outcome) << outcome.error().message;
    if (!outcome) return std::vector<RunReport>(repeat);
    EXPECT_EQ(*print(*outcome, Format::csv), right_);
    return outcome->reports;
  }
  bool is_right() const {
    const auto got = run();
    return got && *got == right_;
  }
  std::vector<std::string> files() const {
    std::vector<std::string> found;
    std::error_code none;
    for (fs::recursive_directory_iterator at(cache_, none), end; !none && at != end;
         at.increment(none))
      if (at->is_regular_file()) found.push_back(at->path().string());
    std::sort(found.begin(), found.end());
    return found;
  }
  // The body's answer, from another process.
  template <class Body>
  static int in_a_process(Body&& body) {
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) _exit(body());
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  std::string folder_, cache_, right_;
};

TEST_F(Caches, TwoProcessesOfSixteenThreadsShareAFolder) {
  const auto threads = [this] {
    std::atomic<int> wrong{0};
    std::vector<std::thread> all;
    for (int t = 0; t < 16; ++t) all.emplace_back([&] { wrong += !is_right(); });
    for (std::thread& t : all) t.join();
    return wrong.load();
  };
  std::fflush(nullptr);
  const pid_t other = fork();
  if (other == 0) _exit(threads());
  EXPECT_EQ(threads(), 0);
  int status = 0;
  waitpid(other, &status, 0);
  EXPECT_EQ(status, 0);
  // Each column and module once, and nothing that was on its way there.
  const std::vector<std::string> kept = files();
  EXPECT_GT(kept.size(), 4u);
  for (const std::string& file : kept) {
    const std::string name = fs::path(file).filename();
    EXPECT_TRUE(file.find("/code/") != file.npos ? name.size() == 32
                                                 : name.ends_with(".column") || name.ends_with(".form") ||
                                                       name.ends_with(".texts") || name.ends_with(".types"))
        << file;
  }
  EXPECT_EQ(in_a_process([&] { return is_right() ? 0 : 1; }), 0);
  EXPECT_EQ(files(), kept);
}

TEST_F(Caches, DamagedFilesAreMadeAgain) {
  ASSERT_EQ(in_a_process([&] { return is_right() ? 0 : 1; }), 0);
  const std::vector<std::string> kept = files();
  std::vector<std::string> contents;
  for (const std::string& file : kept) contents.push_back(*read_file(file));
  std::mt19937 random(5);
  for (int round = 0; round < 12; ++round) {
    for (size_t i = 0; i < kept.size(); ++i) {
      std::string bytes = contents[i];
      if (round % 4 == 0)
        bytes.resize(random() % bytes.size());
      else if (round % 4 == 1)
        bytes.clear();
      else
        bytes[random() % bytes.size()] ^= static_cast<char>(1u << random() % 8);
      std::ofstream(kept[i], std::ios::binary | std::ios::trunc) << bytes;
    }
    ASSERT_EQ(in_a_process([&] { return is_right() ? 0 : 1; }), 0) << round;
    EXPECT_EQ(files(), kept) << round;
    for (size_t i = 0; i < kept.size(); ++i)
      EXPECT_TRUE(*read_file(kept[i]) == contents[i]) << kept[i] << ", round " << round;
  }
}

// A process sends packed columns as an earlier one has left them in the cache. Bytes that went to the device, and how often
// columns were encoded, repeat exactly.
TEST_F(Caches, PackedColumnsAreEncodedOnce) {
  constexpr uint64_t rows = 3000, word = 4;
  const auto words = [](uint64_t bits) { return (rows * bits + 31) / 32 * word + word; };  // one behind the last
  // k has too many texts for a dictionary. x is tried with one digit first, which is what a sample of it has.
  const uint64_t packed = words(6) + words(17), narrow = rows * (8 + 8);
  const auto expect = [&](Encode encode, uint64_t encoded, uint64_t bytes, const char* when) {
    const RunReport report = reports_of(encode)[0];
    EXPECT_EQ(report.columns_encoded, encoded) << when;
    EXPECT_EQ(report.column_bytes, bytes) << when;
  };
  expect(Encode::narrow, 0, narrow, "nothing is packed");
  expect(Encode::packed, 3, packed, "for the first time");
  expect(Encode::packed, 0, packed, "by a second process");
  expect(Encode::narrow, 0, narrow, "another encoding, of the same cache");
  expect(Encode::packed, 0, packed, "by a third process");
  uint64_t damaged = 0;
  for (const std::string& file : files()) {
    if (!file.ends_with(".form")) continue;
    std::string bytes = *read_file(file);
    bytes[bytes.size() / 2] ^= 1;
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
    expect(Encode::packed, 1, packed, "after damage");
    expect(Encode::packed, 0, packed, "after it was made again");
    ++damaged;
  }
  EXPECT_EQ(damaged, 3u);
  // Forms stay on the host where columns leave the device after each run.
  const std::string kept = cache_;
  use(folder_ + "other");
  const auto runs = reports_of(Encode::packed, 3, false);
  EXPECT_EQ(runs[0].columns_encoded, 3u);
  for (const RunReport& report : runs) EXPECT_EQ(report.column_bytes, packed);
  EXPECT_EQ(runs[1].columns_encoded + runs[2].columns_encoded, 0u);
  // Without a cache nothing is left.
  cache_ = "";
  expect(Encode::packed, 3, packed, "without a cache");
  expect(Encode::packed, 3, packed, "without a cache, again");
  use(kept);
  expect(Encode::plain, 0, narrow, "the host has them so");
}

// Another file under the name: its columns are packed anew.
TEST_F(Caches, FormsOfAnOlderFileAreNotTaken) {
  EXPECT_EQ(reports_of(Encode::packed)[0].columns_encoded, 3u);
  std::string t = *read_file(folder_ + "data/t.csv");
  for (size_t at = t.find('\n'); at != t.npos; at = t.find('\n', at + 1))
    if (at + 1 < t.size() && t.compare(at + 1, 4, "key7") == 0) t[at + 4] = '8';
  std::ofstream(folder_ + "data/t.csv", std::ios::trunc) << t;
  struct stat made {};
  ASSERT_EQ(stat((folder_ + "data/t.csv").c_str(), &made), 0);
  timespec now{};
  do clock_gettime(CLOCK_REALTIME_COARSE, &now);
  while (now.tv_sec == made.st_ctim.tv_sec && now.tv_nsec <= made.st_ctim.tv_nsec);
  right_ = *print(*outcome_of({}, "cpu"), Format::csv);
  EXPECT_EQ(reports_of(Encode::packed)[0].columns_encoded, 3u);
  EXPECT_EQ(reports_of(Encode::packed)[0].columns_encoded, 0u);
}

TEST_F(Caches, AFullDisk) {
  for (const rlim_t most : {0u, 1u, 100u, 1000u, 4000u, 20000u, 60000u}) {
    fs::remove_all(cache_);
    EXPECT_EQ(in_a_process([&] {
                std::signal(SIGXFSZ, SIG_IGN);
                const struct rlimit limit = {most, most};
                setrlimit(RLIMIT_FSIZE, &limit);
                return is_right() && is_right() ? 0 : 1;
              }),
              0)
        << most;
    for (const std::string& file : files())
      EXPECT_LE(fs::file_size(file), most) << file << " is not whole";
    // What is there is whole.
    EXPECT_EQ(in_a_process([&] { return is_right() ? 0 : 1; }), 0) << most;
  }
}

TEST_F(Caches, AFolderThatCannotBeWritten) {
  std::ofstream(folder_ + "file") << "no folder";
  for (const std::string& folder :
       {std::string("/proc/rndn"), folder_ + "file", folder_ + "file/cache"}) {
    use(folder);
    EXPECT_TRUE(is_right()) << folder;
    EXPECT_TRUE(is_right()) << folder;
  }
  EXPECT_EQ(*read_file(folder_ + "file"), "no folder");
}

}  // namespace
}  // namespace rndn::runtime::caches_test
