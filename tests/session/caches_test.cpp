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
    data::SourceOptions options;
    options.progress = false;
    options.cache = cache_;
    options.note = [](const std::string&) {};
    ASSIGN_OR_RETURN(auto source, data::open_folder(folder_ + "data", options));
    ASSIGN_OR_RETURN(auto choice, DeviceChoice::start(device, "", [](const std::string&) {}));
    Session session(std::move(source), std::move(choice),
                    {.file_cache = cache_, .say = [](const std::string&) {}});
    ASSIGN_OR_RETURN(const auto outcome, session.run({"m", "m.hir", program}, {}));
    return print(outcome, Format::csv);
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
    EXPECT_TRUE(file.find("/code/") != file.npos
                    ? name.size() == 32
                    : name.ends_with(".column") || name.ends_with(".texts") || name.ends_with(".types"))
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
