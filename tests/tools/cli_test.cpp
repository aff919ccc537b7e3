// The command line as users meet it: what each command prints, where, and with which exit code. Runs the built programs.
#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tools/bench_samples.h"

namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;
namespace fs = std::filesystem;

struct Ran {
  int exit_code = -1;  // 128 + signal when one ended it
  std::string out, err;
};

class Cli : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "rndn-cli-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  static std::string read(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  static std::string program(const std::string& statements, const std::string& result = "i64") {
    return "module m {\n    import Builtin.*;\n    def main() : " + result + " {\n" + statements + "    }\n}\n";
  }

  // Runs `arguments` (a shell line) with build/bin in front of PATH, in the test's folder.
  Ran run(const std::string& line) const {
    std::string out = path("stdout"), err = path("stderr");
    std::string command = "cd '" + folder_.string() +
                          "' && export RNDN_CACHE_DIR=\"$PWD/cache\" && PATH='" RNDN_BIN_DIR "':\"$PATH\"; " + line;
    pid_t child = fork();
    if (child == 0) {
      signal(SIGINT, SIG_DFL);  // whoever runs the tests may ignore it
      dup2(open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
      dup2(open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read(out), read(err)};
  }
  void expect(const std::string& line, int exit_code, const std::string& out, const std::string& err) const {
    Ran r = run(line);
    EXPECT_EQ(r.exit_code, exit_code) << line << "\n" << r.out << r.err;
    EXPECT_EQ(r.out, out) << line;
    EXPECT_EQ(r.err, err) << line;
  }

  // Query 6 for sm_90, as a file.
  std::string cubin90() const {
    Ran r = run("rndn compile " RNDN_SOURCE_DIR "/tpch/queries/q06.hir --arch sm_90 -o q06.sm_90.cubin");
    EXPECT_EQ(r.exit_code, 0) << r.err;
    return path("q06.sm_90.cubin");
  }

  fs::path folder_;
};

// --- Limits, and Ctrl-C ---

constexpr const char* endless =
    "        n:i64 = 0:i64;\n        while (1:bool) { n = @plus(n, 1:i64); }\n        return n;\n";

TEST_F(Cli, ALimitOfTimeEndsAProgram) {
  write("p.hir", program(endless));
  for (const char* device : {"cpu", "sim"}) {
    const Ran r = run(fmt::format("rndn run p.hir --device {} --timeout 0.2", device));
    EXPECT_EQ(r.exit_code, 3);
    EXPECT_EQ(r.out, "");
    EXPECT_THAT(r.err, EndsWith("error: the time limit of 0.2 s is over: --timeout sets it\n"));
  }
}

TEST_F(Cli, ALimitOfMemoryEndsAProgram) {
  write("p.hir", program("        a:? = @range(4000000:i64);\n        b:? = @reverse(a);\n        s:i64 = @sum(b);\n"
                         "        return s;\n"));
  for (const char* device : {"cpu", "cpu --max-memory 1G", "sim --max-memory 1M"})
    expect(fmt::format("rndn run p.hir --format csv --device {}", device), 0, "value\r\n7999998000000\r\n", "");
  const Ran r = run("rndn run p.hir --device cpu --max-memory 16M");
  EXPECT_EQ(r.exit_code, 3);
  EXPECT_EQ(r.out, "");
  EXPECT_THAT(r.err, StartsWith("error: values take "));
  EXPECT_THAT(r.err, EndsWith("would be beyond the limit of 16 MiB: --max-memory sets it\n"));
}

TEST_F(Cli, LimitsThatAreNone) {
  write("p.hir", program("        return 1:i64;\n"));
  for (const char* wrong : {"--timeout 0", "--timeout -1", "--timeout soon", "--timeout nan", "--timeout 1s"})
    EXPECT_THAT(run(fmt::format("rndn run p.hir {}", wrong)).err,
                HasSubstr("expected a number of seconds above 0, got `"))
        << wrong;
  for (const char* wrong : {"--max-memory 0", "--max-memory lots", "--max-memory 4Q"}) {
    const Ran r = run(fmt::format("rndn run p.hir {}", wrong));
    EXPECT_EQ(r.exit_code, 2);
    EXPECT_THAT(r.err, HasSubstr("a limit of memory is a number of bytes such as 512M or 4G, not `")) << wrong;
  }
}

// One signal: without --foreground `timeout` sends it to the program and to its group, and the second ends it at once.
TEST_F(Cli, CtrlCEndsAProgram) {
  write("p.hir", program(endless));
  for (const char* device : {"cpu", "sim"}) {
    const Ran r = run(fmt::format("timeout --foreground --preserve-status -s INT 0.5 rndn run p.hir --device {}", device));
    EXPECT_EQ(r.exit_code, 130);
    EXPECT_EQ(r.out, "");
    EXPECT_THAT(r.err, EndsWith("interrupted\n"));
  }
}

// The statement ends, and not the shell; without a terminal its exit code is the highest.
TEST_F(Cli, CtrlCEndsAStatementOfTheShell) {
  write("endless.hir", program(endless));
  write("p.hir", program("        return 7:i64;\n"));
  write("input", "p.hir\nendless.hir\np.hir\n");
  expect("timeout --foreground --preserve-status -s INT 0.5 rndn shell --device cpu --format csv < input", 130,
         "value\r\n7\r\nvalue\r\n7\r\n", "interrupted\n");
}

// DuckDB computes constants while it plans, and does not stop within one of its functions: each of these would take minutes.
constexpr const char* long_constants[] = {"select length(repeat('x', 1000000000)) || repeat('ab', 1000000000)",
                                          "select list_sum(range(400000000))",
                                          "select sum(v) from t where v < list_sum(range(400000000))"};

TEST_F(Cli, ALimitOfTimeEndsConstantsOfSql) {
  write("t.csv", "v\n5\n6\n");
  for (const char* query : long_constants) {
    const Ran r = run(fmt::format("timeout 30 rndn sql \"{}\" --data t.csv --device sim --timeout 0.5", query));
    EXPECT_EQ(r.exit_code, 3) << query << r.err;
    EXPECT_EQ(r.out, "");
    EXPECT_THAT(r.err, EndsWith("error: the time limit of 0.5 s is over: --timeout sets it\n")) << query;
  }
}

TEST_F(Cli, AShellGoesOnAfterLongConstantsOfSql) {
  write("t.csv", "v\n5\n6\n");
  write("input", fmt::format("create view w as select v + 1 as v from t;\n{};\nselect sum(v) as s from w;\n", long_constants[2]));
  const Ran r = run("timeout 60 rndn shell --data t.csv --device sim --format csv --timeout 2 < input");
  EXPECT_EQ(r.exit_code, 3) << r.err;
  EXPECT_THAT(r.out, EndsWith("s\r\n13\r\n"));
  EXPECT_THAT(r.err, HasSubstr("error: the time limit of 2 s is over: --timeout sets it\n"));
}

TEST_F(Cli, ALimitOfMemoryEndsConstantsOfSql) {
  const Ran r = run("timeout 60 rndn sql \"select list_sum(range(400000000))\" --device sim --max-memory 256M");
  EXPECT_EQ(r.exit_code, 3) << r.err;
  EXPECT_EQ(r.out, "");
  EXPECT_THAT(r.err, HasSubstr("would be beyond the limit of 256 MiB: --max-memory sets it\n"));
}

TEST_F(Cli, CtrlCEndsConstantsOfSql) {
  const Ran r = run("timeout --foreground --preserve-status -k 30 -s INT 1 rndn sql \"select list_sum(range(400000000))\" --device sim");
  EXPECT_EQ(r.exit_code, 130);
  EXPECT_EQ(r.out, "");
  EXPECT_THAT(r.err, EndsWith("interrupted\n"));
}

// Statements behind the one that was ended do not run where nobody types them.
TEST_F(Cli, SigtermEndsAShellThatIsNoTerminals) {
  write("input", "select list_sum(range(400000000));\nselect 1 as one;\n");
  const Ran r = run("timeout --preserve-status -k 30 1 rndn shell --device sim --format csv < input");
  EXPECT_EQ(r.exit_code, 130) << r.err;
  EXPECT_EQ(r.out, "");
  EXPECT_THAT(r.err, HasSubstr("interrupted\n"));
}

// --- Bad input: the exact message, the exit code, nothing on stdout -----------------------------------------------------------

TEST_F(Cli, SyntaxError) {
  write("p.hir", program("        x:i64 = @plus(1:i64, 2:i64;\n        return x;\n"));
  for (const char* command : {"rndn check p.hir", "rndn run p.hir --device cpu", "rndn run p.hir --device sim",
                              "rndn compile p.hir --emit hir"})
    expect(command, 1, "",
           "p.hir:4:35: error: expected `)` or `,`, got `;`\n"
           "          x:i64 = @plus(1:i64, 2:i64;\n"
           "                                    ^\n");
}

TEST_F(Cli, UnknownBuiltin) {
  write("p.hir", program("        x:i64 = @pluss(1:i64, 2:i64);\n        return x;\n"));
  expect("rndn check p.hir", 1, "",
         "p.hir:4:17: error: `pluss` is neither a builtin nor a function that is visible here; did you mean `plus`?\n"
         "          x:i64 = @pluss(1:i64, 2:i64);\n"
         "                  ^~~~~~\n");
}

TEST_F(Cli, TypeError) {
  write("p.hir", program("        x:bool = @lt(1:i64, \"a\":str);\n        return x;\n", "bool"));
  expect("rndn run p.hir --device sim", 1, "",
         "p.hir:4:18: error: `lt` expects two real numbers, two texts or two calendar values of one type, got i64 and "
         "str\n"
         "          x:bool = @lt(1:i64, \"a\":str);\n"
         "                   ^~~ ~~~~~  ~~~~~~~\n");
}

// What the outliner finds: `check` says what `compile` and `run` would. These are all messages of the kind shape-mismatch.
TEST_F(Cli, ShapesThatCannotGoTogether) {
  write("p.hir", program("        a:i32 = (1,2,3):i32;\n"
                         "        b:i32 = (1,2):i32;\n"
                         "        c:i32 = @plus(a, b);\n"
                         "        l:? = @list(a, b);\n"
                         "        t:? = @table((`x,`y):sym, l);\n"
                         "        r:? = @replicate(3:i64, a);\n"
                         "        u:? = @table((`x,`y):sym, r);\n"
                         "        return u;\n",
                         "table"));
  for (const char* command : {"rndn check p.hir", "rndn compile p.hir --emit outline", "rndn run p.hir --device sim"})
    expect(command, 1, "",
           "p.hir:6:17: error: `plus` expects operands of one shape, got vector<3> and vector<2>\n"
           "          c:i32 = @plus(a, b);\n"
           "                  ^~~~~~~~~~~\n"
           "p.hir:4:9: note: `a` has 3 elements\n"
           "          a:i32 = (1,2,3):i32;\n"
           "          ^\n"
           "p.hir:5:9: note: `b` has 2 elements\n"
           "          b:i32 = (1,2):i32;\n"
           "          ^\n"
           "p.hir:8:15: error: `table` expects columns of one length, got 3 elements and 2 elements\n"
           "          t:? = @table((`x,`y):sym, l);\n"
           "                ^~~~~~~~~~~~~~~~~~~~~~\n"
           "p.hir:10:15: error: `table` expects a name for every column, got 2 names and 3 columns\n"
           "          u:? = @table((`x,`y):sym, r);\n"
           "                ^~~~~~~~~~~~~~~~~~~~~~\n"
           "3 errors generated\n");
}

TEST_F(Cli, MissingFile) {
  for (const char* command :
       {"rndn check nowhere.hir", "rndn run nowhere.hir --device cpu", "rndn compile nowhere.hir --arch sm_86"})
    expect(command, 1, "", "error: cannot read `nowhere.hir`: No such file or directory\n");
  expect("rndn check .", 1, "", "error: cannot read `.`: it is a directory\n");
}

constexpr const char* missing_column =
    "        t:? = @load_table(`lineitem:sym);\n"
    "        x:f64 = check_cast(@column_value(t, `l_prize:sym), f64);\n"
    "        s:f64 = @sum(x);\n"
    "        return s;\n";

TEST_F(Cli, MissingColumn) {
  write("p.hir", program(missing_column, "f64"));
  for (const char* command : {"rndn check p.hir", "rndn run p.hir --device cpu --data tpch:0.001",
                              "rndn run p.hir --device sim --data tpch:0.001"}) {
    Ran r = run(command);
    EXPECT_EQ(r.exit_code, 1) << command;
    EXPECT_EQ(r.out, "") << command;
    EXPECT_THAT(r.err,
                StartsWith("p.hir:5:45: error: table `lineitem` has no column `l_prize`; it has `l_orderkey`, "));
    EXPECT_THAT(r.err, HasSubstr("          x:f64 = check_cast(@column_value(t, `l_prize:sym), f64);\n"
                                 "                                              ^~~~~~~~~~~~\n"));
  }
}

TEST_F(Cli, TablesWithoutDataSayWhichFlagIsMissing) {
  write("p.hir", program("        t:? = @load_table(`products:sym);\n        n:i64 = 1:i64;\n        return n;\n"));
  for (const char* device : {"cpu", "sim"}) {
    Ran r = run(std::string("rndn run p.hir --device ") + device);
    EXPECT_EQ(r.exit_code, 1) << device;
    EXPECT_THAT(r.err, HasSubstr("note: no data is named: --data FILE or FOLDER, or --table NAME=FILE, does so\n")) << device;
    EXPECT_EQ(r.out, "");
  }
}

TEST_F(Cli, TruncatedCubin) {
  Ran made = run("rndn compile " RNDN_SOURCE_DIR
                 "/tpch/queries/q06.hir --arch sm_86 -o whole.cubin && head -c 1000 whole.cubin > cut.cubin");
  ASSERT_EQ(made.exit_code, 0) << made.err;
  if (!fs::exists(RNDN_BIN_DIR "/rndn-dis")) GTEST_SKIP() << "skipped: rndn-dis is not built";
  Ran r = run("rndn-dis cut.cubin");
  EXPECT_EQ(r.exit_code, 1) << r.err;
  EXPECT_EQ(r.out, "");
  EXPECT_THAT(r.err, HasSubstr("cut.cubin"));
  Ran whole = run("rndn-dis whole.cubin");
  EXPECT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_THAT(whole.out, HasSubstr("EXIT"));
}

TEST_F(Cli, NoDriver) {
  // An empty folder in front of nothing: no libcuda.so.1 is found where this machine has none.
  Ran probe = run("rndn devices");
  if (probe.out.find("cuda   driver") != std::string::npos) GTEST_SKIP() << "skipped: this machine has a CUDA driver";
  write("p.hir", program("        n:i64 = 1:i64;\n        return n;\n"));
  expect("rndn run p.hir --device cuda", 3, "",
         "error: cannot open libcuda.so.1: cannot open shared object file: No such file or directory\n");
  expect("rndn devices --self-test -o list", 3, "",
         "error: cannot open libcuda.so.1: cannot open shared object file: No such file or directory\n");
}

TEST_F(Cli, DriverWithoutGpuAndDriverThatFails) {
  write("p.hir", program("        n:i64 = 1:i64;\n        return n;\n"));
  std::string with = "LD_LIBRARY_PATH='" RNDN_FAKE_CUDA_DIR "' ";
  expect("RNDN_FAKE_CUDA_DEVICES= " + with + "rndn run p.hir --device cuda", 3, "",
         "error: cuInit failed: CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected)\n");
  expect("RNDN_FAKE_CUDA_DEVICES=7.2 " + with + "rndn run p.hir --device cuda:0", 3, "",
         "error: GPU 0 (Fake GPU 0) has compute capability 7.2, whose code is not supported (supported: sm_60 sm_61 "
         "sm_75 sm_80 sm_86 sm_89 sm_90)\n");
  expect(with + "rndn run p.hir --device cuda:3", 3, "",
         "error: there is no GPU 3: the driver reports 1 (numbered from 0)\n");
  expect("RNDN_FAKE_CUDA_FAIL=cuModuleLoadData:209 " + with +
             "rndn tpch run --queries 6 --scale 0.001 --device cuda -o result",
         3, "",
         "error: cuModuleLoadData of a cubin for sm_90 of " + std::to_string(fs::file_size(cubin90())) +
             " bytes on Fake GPU 0 failed: CUDA_ERROR_NO_BINARY_FOR_GPU (no kernel image is available for execution on "
             "the device)\n");
  Ran automatic = run("RNDN_FAKE_CUDA_DEVICES= " + with + "rndn run p.hir --device auto --format csv");
  EXPECT_EQ(automatic.exit_code, 0);
  EXPECT_EQ(automatic.out, "value\r\n1\r\n");
  EXPECT_EQ(automatic.err,
            "note: no usable GPU (cuInit failed: CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected)); running "
            "on the simulator for sm_86\n");
}

TEST_F(Cli, RunTimeErrorsHaveTheSamePlaceOnEveryDevice) {
  write("p.hir", program("        t:? = @load_table(`lineitem:sym);\n"
                         "        x:i32 = check_cast(@column_value(t, `l_linenumber:sym), i32);\n"
                         "        y:? = @minus(x, 3:i32);\n"
                         "        z:? = @div(x, y);\n"
                         "        s:? = @sum(z);\n"
                         "        return s;\n",
                         "?"));
  for (const char* device : {"cpu", "sim"}) {
    Ran r = run(std::string("rndn run p.hir --data tpch:0.001 --device ") + device);
    EXPECT_EQ(r.exit_code, 1) << device;
    EXPECT_THAT(r.err, StartsWith("p.hir:7:9: error: `div` divides by zero")) << device;
    EXPECT_EQ(r.out, "");
  }
}

// Tables of --data load when their columns are asked for: as results they are asked for whole.
TEST_F(Cli, TablesOfTheDataAreResults) {
  write("p.hir", program("        t:table = @load_table(`products:sym);\n"
                         "        k:ktable = @ktable(t, t);\n"
                         "        l:? = @list(t, k);\n"
                         "        return t, k, l;\n",
                         "table, ktable, ?"));
  for (const char* device : {"cpu", "sim"}) {
    const Ran r = run(std::string("rndn run p.hir --format csv --data " RNDN_SOURCE_DIR "/examples/tutorial --device ") +
                      device);
    EXPECT_EQ(r.exit_code, 0) << device << r.err;
    EXPECT_EQ(r.err, "") << device;
    const std::string heads = "id,name,kind,price";
    EXPECT_THAT(r.out, StartsWith(heads + "\r\n1,apple,")) << device;
    EXPECT_THAT(r.out, HasSubstr("\r\n" + heads + "," + heads + "\r\n1,apple,")) << device;
    EXPECT_THAT(r.out, EndsWith("value\r\ntable products\r\nktable products\r\n")) << device;
  }
}

// --- Wrong usage ---------------------------------------------------------------------------------------------------------------

TEST_F(Cli, WrongUsage) {
  write("p.hir", program("        n:i64 = 1:i64;\n        return n;\n"));
  for (const auto& [line, message] : std::vector<std::pair<std::string, std::string>>{
           {"rndn", "error: A subcommand is required\n"},
           {"rndn run", "error: program is required\n"},
           {"rndn run p.hir --devices sim", "error: `run` has no flag `--devices`; did you mean `--device`?\n"},
           {"rndn run --bogus p.hir", "error: `run` has no flag `--bogus`\n"},
           {"rndn --verzion", "error: `rndn` has no flag `--verzion`; did you mean `--version`?\n"},
           {"rndn rum p.hir", "error: `rndn` has no command `rum`; did you mean `run`?\n"},
           {"rndn frob",
            "error: `rndn` has no command `frob`; it has run, sql, shell, check, compile, explain, schema, tpch, ssb, bench, devices, help\n"
            "(see rndn --help)\n"},
           {"rndn tpch run --bogus", "error: `run` has no flag `--bogus`\n(see rndn tpch run --help)\n"},
           {"rndn tpch generat", "error: `tpch` has no command `generat`; did you mean `generate`?\n"},
           {"rndn run --time json p.hir --device cpu",
            "error: there is no program `json`; a format goes with `=`: --time=json\n"},
           {"rndn run p.hir --cache d --no-cache", "error: --cache excludes --no-cache\n"},
           {"rndn run p.hir --device gpu", "error: a device is auto, cuda, cuda:N, sim or cpu, not `gpu`\n"},
           {"rndn run p.hir --device sim --device-memory 4X",
            "error: --device-memory is a number of bytes such as 512M or 4G, not `4X`\n"},
           {"rndn run p.hir --device cpu --device-memory 1G",
            "error: the device cpu has no memory of its own to limit\n"},
           {"rndn run p.hir --backend nvcc --device sim",
            "error: --backend is rndn, ptxas, ptxas:PATH or driver, not `nvcc`\n"},
           {"rndn run p.hir --backend driver --device sim",
            "error: --backend driver needs a GPU: the simulator has no PTX compiler\n"},
           {"rndn run p.hir --device cpu --time=xml",
            "error: --time is text, json, html or trace, with :FILE if wanted, not `xml`\n"},
           {"rndn run p.hir p.hir --device cpu --format csv", "error: --format csv of several programs needs -o DIR\n"},
           {"rndn run p.hir p.hir --device cpu --format json",
            "error: two programs are called `p`: their results would overwrite each other\n"},
           {"rndn run p.hir --device sim --arch sm_70",
            "error: --arch: sm_70 not in {sm_60,sm_61,sm_75,sm_80,sm_86,sm_89,sm_90}\n"},
           {"rndn compile p.hir --emit sass", "error: --emit sass needs --arch\n"},
           {"rndn tpch run --queries 6x --device cpu", "error: --queries is a list such as 1,6,10-14, not `6x`\n"},
           {"rndn tpch run --queries 14-6 --device cpu", "error: --queries is a list such as 1,6,10-14, not `14-6`\n"},
           {"rndn tpch run --form joins", "error: `run` has no flag `--form`; did you mean `--format`?\n"},
           {"rndn ssb run --queries 1.1,2 --device cpu", "error: there is no query 2 (there are: 1.1, 1.2, 1.3, 2.1, "},
           {"rndn ssb run --queries 2.1-1.3 --device cpu", "error: --queries is a list such as 1.1,2.1-2.3, not `2.1-1.3`\n"},
           {"rndn ssb run --form rows", "error: --form: rows not in {keys,joins}\n"},
           {"rndn bench tpch --queries 23 --device sim", "error: there is no query 23 (there are: "},
           {"rndn tpch run --scale 0 --device cpu", "error: --scale: expected a positive scale factor, got `0`\n"}}) {
    Ran r = run(line);
    EXPECT_EQ(r.exit_code, 2) << line;
    EXPECT_THAT(r.err, StartsWith(message)) << line;
    EXPECT_EQ(r.out, "") << line;
  }
  Ran none = run("rndn tpch run --queries 23 --device cpu");
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, StartsWith("error: there is no query 23 (there are: "));
}

TEST_F(Cli, OutputThatCannotBeWritten) {
  write("p.hir", program("        n:i64 = 1:i64;\n        return n;\n"));
  expect("rndn run p.hir --device cpu -o no/such/folder", 3, "",
         "error: cannot write `no/such/folder`: No such file or directory\n");
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "skipped: this machine has no device /dev/full";
  for (const char* line : {"rndn run p.hir --device cpu", "rndn --help", "rndn --version", "rndn run --help", "rndn help"})
    expect(std::string(line) + " > /dev/full", 3, "", "error: cannot write `stdout`: No space left on device\n");
}

// Sizes in bytes would overflow: the same error on every device, and no launch.
TEST_F(Cli, AVectorLongerThanAnyMayBeIsRefused) {
  write("huge.hir",
        program("        r:? = @range(2305843009213693953:i64);\n        n:? = @plus(r, 1:i64);\n        return n;\n"));
  for (const char* device : {"cpu", "sim"}) {
    Ran r = run(std::string("rndn run huge.hir --device ") + device);
    EXPECT_EQ(r.exit_code, 1) << device;
    EXPECT_THAT(r.err, ::testing::HasSubstr(
                           "of 2305843009213693953 elements is more than the 4294901760 that one vector may have"))
        << device;
  }
}

// --- A user's own files ----------------------------------------------------------------------------------------------------------

constexpr const char* shop_csv =
    "id,name,price,sold,in stock\n1,pen,0.5,2024-02-29,True\n2,\"ink, "
    "blue\",3.25,2024-03-01,False\n3,pad,2,2024-03-02,True\n";

// Five columns: what they are, as a schema, and a program over them, by every way to name the file.
TEST_F(Cli, AnOwnCsvFromSchemaToResult) {
  fs::create_directory(path("data"));
  write("data/shop.csv", shop_csv);
  Ran schema = run("rndn schema data");
  EXPECT_EQ(schema.exit_code, 0) << schema.err;
  EXPECT_EQ(schema.err, "");
  const auto json = nlohmann::json::parse(schema.out);
  EXPECT_EQ(json["tables"][0]["name"], "shop");
  EXPECT_EQ(json["tables"][0]["file"], "shop.csv");
  EXPECT_EQ(json["tables"][0]["header"], true);
  std::string types;
  for (const auto& column : json["tables"][0]["columns"])
    types += std::string(column["name"]) + ":" + std::string(column["type"]) + " ";
  EXPECT_EQ(types, "id:i64 name:sym price:f64 sold:date in stock:bool ");

  const std::string use =
      "        p:f64 = @column_value(t, `price:sym);\n        d:date = @column_value(t, `sold:sym);\n"
      "        s:bool = @column_value(t, `\"in stock\":sym);\n        late:? = @geq(d, 2024-03-01:date);\n"
      "        m:? = @and(late, s);\n        k:? = @compress(m, p);\n        x:f64 = @sum(k);\n        return x;\n";
  write("table.hir", program("        t:? = @load_table(`shop:sym);\n" + use, "f64"));
  write("file.hir", program("        t:? = @load_csv(\"data/shop.csv\":str);\n" + use, "f64"));
  for (const char* device : {"cpu", "sim"})
    for (const char* how :
         {"table.hir --data data", "table.hir --data data/shop.csv", "table.hir --table shop=data/shop.csv",
          "table.hir --data tpch:0.001 --table shop=data/shop.csv", "file.hir", "file.hir --data tpch:0.001"}) {
      Ran r = run(fmt::format("rndn run {} --format csv --device {}", how, device));
      EXPECT_EQ(r.out, "value\r\n2\r\n") << how << " on " << device << "\n" << r.err;
      EXPECT_EQ(r.exit_code, 0);
    }
  EXPECT_EQ(run("rndn check table.hir --data data").exit_code, 0);
  EXPECT_EQ(run("rndn explain table.hir --data data").exit_code, 0);
  // Written, the schema is what the folder is read by.
  EXPECT_EQ(run("rndn schema data -o data/schema.json").exit_code, 0);
  EXPECT_EQ(read(path("data/schema.json")), schema.out);
  expect("rndn run table.hir --data data --format csv --device sim", 0, "value\r\n2\r\n", "");
}

TEST_F(Cli, ATableThatIsReturnedIsPrinted) {
  write("shop.csv", shop_csv);
  const std::string rows =
      "id,name,price,sold,in stock\r\n1,pen,0.5,2024-02-29,1\r\n2,\"ink, blue\",3.25,2024-03-01,0\r\n"
      "3,pad,2,2024-03-02,1\r\n";
  write("file.hir", program("        t:? = @load_csv(\"shop.csv\":str);\n        return t;\n", "table"));
  write("table.hir", program("        t:? = @load_table(`shop:sym);\n        return t;\n", "table"));
  for (const std::string device : {"cpu", "sim"}) {
    EXPECT_EQ(run("rndn run file.hir --format csv --device " + device).out, rows);
    EXPECT_EQ(run("rndn run table.hir --data shop.csv --format csv --device " + device).out, rows);
  }
}

// Declared types and casts read the fields anew, on every device.
TEST_F(Cli, ColumnsOfAFileAsAnotherType) {
  write("s.csv", "code,n,price\n007,1,2.5\n12,,3\n");
  const auto column = [&](const std::string& use, const std::string& type, const std::string& device) {
    write("p.hir", program("        t:? = @load_csv(\"s.csv\":str);\n        " + use + "\n        return x;\n", type));
    Ran r = run("rndn run p.hir --format csv --device " + device);
    return r.exit_code == 0 ? r.out : r.err;
  };
  for (const std::string device : {"cpu", "sim"}) {
    EXPECT_EQ(column("x:i16 = @column_value(t, `code:sym);", "i16", device), "value\r\n7\r\n12\r\n");
    EXPECT_EQ(column("x:? = check_cast(@column_value(t, `code:sym), i16);", "i16", device), "value\r\n7\r\n12\r\n");
    EXPECT_EQ(column("c:sym = @column_value(t, `code:sym); x:? = check_cast(c, str);", "str", device),
              "value\r\n007\r\n12\r\n");
    EXPECT_EQ(column("x:str = @column_value(t, `n:sym);", "str", device), "value\r\n1\r\n\r\n");
    EXPECT_EQ(column("y:f32 = @column_value(t, `price:sym); x:? = @plus(y, y);", "f32", device), "value\r\n5\r\n6\r\n");
    EXPECT_EQ(column("x:i64 = @column_value(t, `price:sym);", "i64", device),
              "p.hir:5:9: error: s.csv:2:7: expected an i64 for `price`, found `2.5`\n");
    EXPECT_EQ(column("x:i64 = @column_value(t, `n:sym);", "i64", device),
              "p.hir:5:9: error: s.csv:3:4: column `n` has no value here; HorseIR has no missing values; `@column_value(t, c, 1:bool)` has zeros there\n");
  }
}

TEST_F(Cli, AMissingValueIsAnErrorWithItsPlace) {
  write("t.csv", "a,b\n1,5\n2,\n3,\n");
  write(
      "p.hir",
      program("        t:? = @load_table(`t:sym);\n        b:? = @column_value(t, `b:sym);\n        x:i64 = @sum(b);\n"
              "        return x;\n"));
  for (const char* device : {"cpu", "sim"})
    expect(fmt::format("rndn run p.hir --data t.csv --device {}", device), 1, "",
           "p.hir:5:9: error: t.csv:3:3: column `b` has no value here, nor in 1 more rows; HorseIR has no missing "
           "values; `@column_value(t, c, 1:bool)` has zeros there\n");
}

TEST_F(Cli, AGuessThatBreaksIsSaidOnce) {
  std::string text = "x\n";
  for (int i = 0; i < 3000; ++i) text += i < 2000 ? "1\n" : "1.5\n";
  write("t.csv", text);
  write(
      "p.hir",
      program("        t:? = @load_table(`t:sym);\n        c:? = @column_value(t, `x:sym);\n        x:f64 = @sum(c);\n"
              "        return x;\n",
              "f64"));
  expect("rndn run p.hir --data t.csv --device cpu --format csv", 0, "value\r\n3500\r\n",
         "note: t.csv:2002:1: `1.5` is no i64 as in the first rows: column `x` is read as f64\n");
}

TEST_F(Cli, SourcesThatAreNone) {
  write("p.hir", program("        t:? = @load_table(`t:sym);\n        x:? = @len(t);\n        return x;\n"));
  expect("rndn run p.hir --table t --device cpu", 2, "", "error: --table is NAME=FILE, not `t`\n");
  expect("rndn run p.hir --data tpch1:5 --device cpu", 2, "",
         "error: there is no source `tpch1:5`: expected tpch:SF, ssb:SF, ssb-joins:SF, a folder or a file (.csv, .tbl, "
         ".tsv, .parquet, .csv.gz, .csv.zst, .tsv.gz, .tsv.zst, .tbl.gz, .tbl.zst, .json, .jsonl, .ndjson, .json.gz, "
         ".jsonl.gz, .ndjson.gz, .json.zst, .jsonl.zst, .ndjson.zst, .arrow, .arrows, .feather, .ipc)\n");
  expect("rndn run p.hir --data none.csv --device cpu", 1, "",
         "error: cannot read `none.csv`: No such file or directory\n");
  expect("rndn schema none", 1, "", "error: cannot read `none`: No such file or directory\n");
  write("t.csv", "a\n1\n");
  expect("rndn run p.hir --data t.csv --cache /dev/null/x --device cpu", 3, "",
         "error: cannot make the cache `/dev/null/x`: Not a directory\n");
}

// Neither what was kept of a file nor the machine code is another's to read or a pipe's to hold up.
TEST_F(Cli, CachesHoldWhatIsPrivateAndNoPipes) {
  write("t.csv", "a\n1\n2\n");
  write("p.hir",
        program(
            "        t:? = @load_table(`t:sym);\n        a:? = @column_value(t, `a:sym);\n        b:? = @plus(a, a);\n"
            "        x:i64 = @sum(b);\n        return x;\n"));
  usleep(50'000);
  const std::string command = "timeout 120 rndn run p.hir --data t.csv --device sim --format csv";
  expect(command, 0, "value\r\n6\r\n", "");
  size_t columns = 0, code = 0;
  for (const auto& entry : fs::recursive_directory_iterator(path("cache"))) {
    if (!entry.is_regular_file()) continue;
    const std::string file = entry.path().string();
    if (entry.path().parent_path().filename() == "code") {
      ++code;
    } else {
      ++columns;
      EXPECT_EQ(entry.status().permissions(), fs::perms::owner_read | fs::perms::owner_write) << file;
    }
    fs::remove(entry.path());
    ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  }
  EXPECT_GE(columns, 2u);
  EXPECT_GE(code, 1u);
  expect(command, 0, "value\r\n6\r\n", "");
}

TEST_F(Cli, AByteOrderMarkIsNoPartOfAProgram) {
  write("p.hir", "\xef\xbb\xbf" + program("        return 7:i64;\n"));
  expect("rndn run p.hir --device cpu --format csv", 0, "value\r\n7\r\n", "");
  write("k.ptx", "\xef\xbb\xbf.version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() { ret; }\n");
  expect("rndn-as k.ptx -arch=sm_86 -o k.cubin", 0, "", "");
}

// --- What works ----------------------------------------------------------------------------------------------------------------

// The text is that of docs/horseir.md; tests/docs holds the page against the builtins.
TEST_F(Cli, HelpPrintsEntriesOfTheLanguagesPage) {
  const std::string page = read(RNDN_SOURCE_DIR "/docs/horseir.md");
  for (std::string name : {"abs", "join_index"}) {
    const size_t heading = page.find("\n### " + name + "\n");
    ASSERT_NE(heading, std::string::npos) << name;
    const size_t begin = page.find('`', heading), end = page.find("\n\n##", begin);
    const std::string wanted = name + "\n\n" + page.substr(begin, end - begin) +
                               "\n\nA whole program: examples/horseir/" + name + ".hir\n";
    expect("rndn help " + name, 0, wanted, "");
    expect("rndn help @" + name, 0, wanted, "");
  }
  EXPECT_THAT(run("rndn help enlist").out, StartsWith("list\n"));
  EXPECT_THAT(run("rndn help GPU.top_lib").out, StartsWith("GPU.top_lib\n\n`GPU.top_lib(x, "));

  const Ran list = run("rndn help");
  EXPECT_EQ(list.exit_code, 0);
  EXPECT_EQ(list.err, "");
  EXPECT_THAT(list.out, StartsWith("arithmetic:\n  plus     "));
  EXPECT_THAT(list.out, HasSubstr("\n\nreductions:\n  len  "));
  EXPECT_THAT(list.out, HasSubstr("  abs                     The magnitude of an element.\n"));

  const std::string lists = " (`rndn help` lists them)\n";
  expect("rndn help sumn", 2, "",
         "error: there is no builtin `sumn`; did you mean `sum`?" + lists);
  expect("rndn help qqqqqqqq", 2, "", "error: there is no builtin `qqqqqqqq`" + lists);
  expect("rndn help run", 2, "",
         "error: there is no builtin `run`; the command has `rndn run --help`\n");
  EXPECT_EQ(run("rndn help abs neg").exit_code, 2);
  EXPECT_THAT(run("rndn help --help").out, HasSubstr("BUILTIN"));
  EXPECT_EQ(run("rndn help abs > /dev/full").exit_code, 3);
}

// The lists of SQL are those of the tables of the translator. docs/sql-functions.tsv is what
// `rndn help sql --tsv` prints.
TEST_F(Cli, HelpListsWhatSqlMayHold) {
  const Ran list = run("rndn help sql");
  EXPECT_EQ(list.exit_code, 0);
  EXPECT_EQ(list.err, "");
  const Ran tsv = run("rndn help sql --tsv");
  EXPECT_EQ(tsv.out, read(RNDN_SOURCE_DIR "/docs/sql-functions.tsv"))
      << "rndn help sql --tsv > docs/sql-functions.tsv";
  std::set<std::string> names;
  size_t functions = 0;
  std::istringstream lines(tsv.out);
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    std::vector<std::string> fields(1);
    for (const char c : line)
      if (c == '\t')
        fields.emplace_back();
      else
        fields.back() += c;
    ASSERT_EQ(fields.size(), 4u) << line;
    EXPECT_FALSE(fields[0].empty()) << line << ": a rule without a kind (frontend/sql/function_list.cpp)";
    EXPECT_NE(fields[2].empty(), fields[3].empty()) << line;
    EXPECT_THAT(list.out, HasSubstr("  " + fields[1])) << line;
    functions += fields[3].empty();
    names.insert(fields[1]);
  }
  size_t rows = 0;
  const auto is_listed = [&](const std::string& name) {
    ++rows;
    // Names of plans stand there as queries have them.
    if (name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != name.npos) return;
    if (name == "constant_or_null" || name == "count_star") return;
    EXPECT_TRUE(names.contains(name)) << name;
  };
#define SQL_FUNCTION(id, name, least, most, rule, builtin) is_listed(name);
#define SQL_AGGREGATE(id, name, least, most) is_listed(name);
#include "frontend/sql/functions.def"
#undef SQL_FUNCTION
#undef SQL_AGGREGATE
#define SQL_WINDOW(id, name, least, most) is_listed(#id);
#include "frontend/sql/windows.def"
#undef SQL_WINDOW
  EXPECT_EQ(functions, rows - 1) << "all but constant_or_null, which queries do not have";
  EXPECT_EQ(run("rndn help abs --tsv").exit_code, 2);
}

TEST_F(Cli, SchemaIsOfTextAlone) {
  write("t.parquet", "PAR1");
  expect("rndn schema t.parquet", 1, "",
         "error: `t.parquet` says itself what it holds: rndn sql \"DESCRIBE 't.parquet'\" shows it\n");
}

TEST_F(Cli, TablesThatNobodyNamedAreSaidToBeTpchs) {
  write("p.hir", program("        t:table = @load_table(`shop:sym);\n        n:i64 = @len(t);\n        return n;\n"));
  const std::string note = "note: without --data the tables are TPC-H's: --data FILE or FOLDER, or --table NAME=FILE, names yours\n";
  for (const char* line : {"rndn check p.hir", "rndn compile p.hir --arch sm_86", "rndn explain p.hir"}) {
    const Ran r = run(line);
    EXPECT_EQ(r.exit_code, 1) << line;
    EXPECT_THAT(r.err, HasSubstr("the schema has no table `shop`")) << line;
    EXPECT_THAT(r.err, HasSubstr(note)) << line;
  }
  EXPECT_THAT(run("rndn check p.hir --data tpch:0.01").err, testing::Not(HasSubstr("note: without")));
  EXPECT_THAT(run("rndn run p.hir --device cpu").err, HasSubstr("note: no data is named"));
}

TEST_F(Cli, HelpAndVersionGoToStdout) {
  for (const char* line :
       {"rndn --help", "rndn run --help", "rndn tpch run --help", "rndn compile --help", "rndn sql --help", "rndn devices --help"}) {
    Ran r = run(line);
    EXPECT_EQ(r.exit_code, 0) << line;
    EXPECT_NE(r.out, "") << line;
    EXPECT_EQ(r.err, "") << line;
  }
  Ran version = run("rndn --version");
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, StartsWith("rndn "));
  EXPECT_THAT(version.out, ::testing::ContainsRegex("\\(commit ([0-9a-f]{10}|unknown); sm_60 sm_61 .*sm_90\\)"));
}

// The step of the build that finds the commit, on a checkout of its own.
TEST_F(Cli, TheCommitIsThatOfTheBuild) {
  if (run("git --version && cmake --version").exit_code != 0) GTEST_SKIP() << "skipped: no git or no cmake";
  const std::string step =
      "cmake -DSOURCE=\"$PWD/checkout\" -DVERSION=1.2 -DOUT=values.h -DDEPFILE=values.h.d -P '" RNDN_SOURCE_DIR
      "/libraries/base/write_version.cmake'";
  const std::string commit =
      "git -C checkout -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m x && git -C checkout rev-parse "
      "--short=10 HEAD";
  ASSERT_EQ(run("mkdir checkout").exit_code, 0);
  Ran outside = run(step);
  EXPECT_EQ(outside.exit_code, 0);
  EXPECT_EQ(outside.err, "");
  EXPECT_THAT(read(path("values.h")), HasSubstr("RNDN_COMMIT \"unknown\""));
  ASSERT_EQ(run("git init -q checkout").exit_code, 0);
  std::string first;
  for (int i = 0; i < 2; ++i) {
    std::string id = run("GIT_COMMITTER_DATE='2020-01-0" + std::to_string(i + 1) + "T00:00:00Z' " + commit).out;
    ASSERT_EQ(id.size(), 11u);
    id.pop_back();
    EXPECT_NE(id, first);
    first = id;
    EXPECT_EQ(run(step).exit_code, 0);
    EXPECT_EQ(read(path("values.h")), "#define RNDN_VERSION \"1.2\"\n#define RNDN_COMMIT \"" + id + "\"\n");
  }
  // Everything that moves with HEAD, also of a worktree on a branch of its own.
  EXPECT_THAT(read(path("values.h.d")), HasSubstr("checkout/.git/HEAD "));
  EXPECT_THAT(read(path("values.h.d")), HasSubstr("checkout/.git/refs/heads/"));
  ASSERT_EQ(run("git -C checkout worktree add -q -b other ../tree").exit_code, 0);
  EXPECT_EQ(run("cmake -DSOURCE=\"$PWD/tree\" -DVERSION=1.2 -DOUT=values.h -DDEPFILE=values.h.d -P '" RNDN_SOURCE_DIR
                "/libraries/base/write_version.cmake'")
                .exit_code,
            0);
  EXPECT_THAT(read(path("values.h.d")), HasSubstr("checkout/.git/worktrees/tree/HEAD "));
  EXPECT_THAT(read(path("values.h.d")), HasSubstr("checkout/.git/refs/heads/other"));
}

// All that programs and libraries need is found from where `cmake --install` put it.
TEST_F(Cli, WhatIsInstalledWorksFromWhereItLies) {
  if (run("cmake --version").exit_code != 0) GTEST_SKIP() << "skipped: no cmake";
  const Ran installed = run("cmake --install '" RNDN_BIN_DIR "/..' --prefix there");
  ASSERT_EQ(installed.exit_code, 0) << installed.out << installed.err;
  const std::string alone = "PATH=\"$PWD/there/bin:/usr/bin:/bin\"; unset RNDN_DUCKDB; ";
  for (const char* program : {"rndn", "rndn-as", "rndn-dis", "rndn-launch"}) {
    const Ran r = run(alone + program + " --version && command -v " + program);
    EXPECT_EQ(r.exit_code, 0) << r.err;
    EXPECT_THAT(r.out, EndsWith(path("there/bin/") + program + "\n"));
  }
  Ran r = run(alone + "rndn tpch run --queries 6 --device sim --format csv");
  EXPECT_EQ(r.out, "revenue\r\n1193053.2253\r\n") << r.err;
  EXPECT_EQ(r.exit_code, 0);
  for (const auto& [library, function] :
       {std::pair{"librndn_assembler.so.1", "rndn_assembler_assemble"}, {"libadbc_driver_rndn.so", "AdbcDriverInit"},
        {"nvidia/libnvptxcompiler.so", "nvPTXCompilerCreate"}, {"nvidia/libnvJitLink.so.12", "nvJitLinkAddData"}}) {
    void* opened = dlopen(path(std::string("there/lib/") + library).c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(opened, nullptr) << dlerror();
    EXPECT_NE(dlsym(opened, function), nullptr) << library;
  }
  EXPECT_TRUE(fs::exists(path("there/include/rndn_assembler.h")));
  EXPECT_EQ(fs::exists(path("there/share/rndn/libdevice.ptx")), fs::exists(RNDN_BIN_DIR "/../share/rndn/libdevice.ptx"));
  if (!fs::exists(RNDN_BIN_DIR "/../share/duckdb/installed")) return;
  r = run(alone + "rndn sql 'select 40 + 2 as n' --format csv --device cpu");
  EXPECT_EQ(r.out, "n\r\n42\r\n") << r.err;
}

TEST_F(Cli, ProveSaysWhatItHasCompared) {
  const std::string four = "rndn tpch run --queries 4 --scale 0.002 --device ";
  Ran plain = run(four + "sim"), proved = run(four + "sim --prove");
  EXPECT_EQ(proved.exit_code, 0) << proved.err;
  EXPECT_EQ(proved.out, plain.out);
  EXPECT_THAT(proved.err, AllOf(StartsWith("prove q04: second path: "),
                                HasSubstr("prove q04: operators of the second path: 1 `group`, 1 `order`: "),
                                HasSubstr("prove q04: reference interpreter, over all rows: 5 rows the same ("),
                                HasSubstr("prove q04: not checked: ")));
  EXPECT_EQ(run(four + "cpu --prove").exit_code, 2);
}

// The same program over a device that gets a bit wrong.
TEST_F(Cli, ADifferenceOfProveEndsWith70AndTheOtherResult) {
  const std::string twelve = " tpch run --queries 12 --scale 0.002 --device sim";
  const Ran right = run("rndn" + twelve), unchecked = run("rndn_wrong" + twelve), proved = run("rndn_wrong" + twelve + " --prove");
  EXPECT_EQ(unchecked.exit_code, 0) << unchecked.err;
  EXPECT_NE(unchecked.out, right.out);
  EXPECT_EQ(proved.exit_code, 70) << proved.err;
  EXPECT_EQ(proved.out, right.out);
  EXPECT_THAT(proved.err, AllOf(HasSubstr("prove q12: DIFFERENT: second path: "),
                                HasSubstr("prove q12: DIFFERENT: over all rows: row 2, column `low_line_count`: 13, and 14 "),
                                HasSubstr("prove q12: the result is that of the reference interpreter"),
                                HasSubstr("error: prove q12: ")));
  // It says so where it was not wrong.
  const Ran without = run("rndn_wrong --version");
  EXPECT_EQ(without.exit_code, 70);
  EXPECT_THAT(without.err, StartsWith("rndn_wrong: nothing was wrong: "));
}

TEST_F(Cli, QuerySixOnTheSimulatorOfEveryTargetAndOnTheInterpreter) {
  for (const char* device : {"cpu", "sim --arch sm_60", "sim --arch sm_61", "sim --arch sm_75", "sim --arch sm_80",
                             "sim --arch sm_86", "sim --arch sm_89", "sim --arch sm_90"}) {
    Ran r = run(std::string("rndn tpch run --queries 6 --scale 0.01 --format json --verify --device ") + device);
    EXPECT_EQ(r.exit_code, 0) << device << r.err;
    EXPECT_EQ(r.err, "verify q06: ok, 1 row as the reference interpreter has them\n") << device;
    auto j = nlohmann::json::parse(r.out);
    EXPECT_EQ(j["columns"].dump(), "[{\"name\":\"revenue\",\"type\":\"f64\"}]");
    EXPECT_NEAR(j["rows"][0][0].get<double>(), 1193053.2253, 1193053.2253e-9) << device;
  }
}

TEST_F(Cli, VerifyAgainstFilesNoticesADifference) {
  write("q06.csv", "revenue\n1193053.2253\n");
  EXPECT_EQ(run("rndn tpch run --queries 6 --device cpu --verify=.").exit_code, 0);
  write("q06.csv", "revenue\n1193053.2273\n");
  Ran r = run("rndn tpch run --queries 6 --device cpu --verify=.");
  EXPECT_EQ(r.exit_code, 70);
  EXPECT_THAT(r.err, StartsWith("error: verify q06: row 1, column `revenue`: 1193053.225"));
  write("q06.csv", "revenue\n");
  EXPECT_THAT(run("rndn tpch run --queries 6 --device cpu --verify=.").err, HasSubstr("1 rows, expected 0"));
}

// Both forms give the same rows, from memory and from files, and `bench` says which form it has measured.
TEST_F(Cli, SsbRunsInBothForms) {
  ASSERT_EQ(run("rndn ssb generate --scale 0.01 -o data").exit_code, 0);
  ASSERT_EQ(run("rndn ssb run --queries 1.2,4.1-4.3 --data data --device cpu --format csv -o answers").exit_code, 0);
  for (const char* form : {"keys", "joins"}) {
    Ran r = run(std::string("rndn ssb run --queries 1.2,4.1-4.3 --device sim --no-fallback --verify=answers --form ") + form);
    EXPECT_EQ(r.exit_code, 0) << r.err;
    EXPECT_EQ(r.err,
              "verify q1.2: ok, 1 row as expected\nverify q4.1: ok, 28 rows as expected\n"
              "verify q4.2: ok, 77 rows as expected\nverify q4.3: ok, 9 rows as expected\n");
  }
  // The programs differ, not only their tables.
  EXPECT_THAT(run("rndn ssb run --queries 1.2 --form joins --device cpu --strict --data ssb:0.01").err,
              HasSubstr("cannot turn enum<i32> into i32"));
  Ran r = run("rndn bench ssb --form joins --tables execute --queries 1.1 --device sim --warm-up 0 --runs 1 --ptxas no-such-ptxas");
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_THAT(r.out, AllOf(HasSubstr("Written by `rndn bench ssb`;"), HasSubstr("SSB, scale 0.01"), HasSubstr("joins"), HasSubstr("| q1.1 |")));
}

TEST_F(Cli, WhatIsMissingIsSaidBeforeTheWork) {
  const std::string verify = "rndn tpch run --queries 6 --device cpu --data no-data --verify=";
  EXPECT_EQ(run(verify + "no-folder").err, "error: --verify=no-folder: there is no folder `no-folder`\n");
  EXPECT_EQ(run(verify + ".").err, "error: --verify=.: there is no file `./q06.csv`\n");
  // Neither the results nor the report can be written: no warning of a slow run, no result comes first.
  write("p.hir", program("        n:i64 = 1:i64;\n        @print(n);\n        return n;\n"));
  expect("rndn run p.hir --device cpu --time=json:no/file", 3, "",
         "error: cannot write `no/file`: No such file or directory\n");
  write("kept", "kept");
  EXPECT_EQ(run("rndn run p.hir --device cpu -o kept --time=json:no/file").exit_code, 3);
  EXPECT_EQ(read(path("kept")), "kept");
}

// What was in the file of -o stays there whatever fails, and nothing is left beside it.
TEST_F(Cli, OutputFilesAreWholeOrAsTheyWere) {
  write("good.hir", program("        n:i64 = 1:i64;\n        return n;\n"));
  write("syntax.hir", program("        n:i64 = ;\n        return n;\n"));
  write("types.hir", program("        n:i64 = @plus(`a:sym, 1:i64);\n        return n;\n"));
  write("fails.hir", program("        z:i64 = 0:i64;\n        n:i64 = @div(1:i64, z);\n        return n;\n"));
  write("long.hir", program("        n:? = @range(100000:i64);\n        return n;\n"));
  write("good.ptx", ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n");
  write("bad.ptx", ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() { wrong; }\n");
  ASSERT_EQ(run("rndn-as good.ptx -o good.cubin").exit_code, 0);
  write("bad.cubin", read(path("good.cubin")).substr(0, 300));
  const std::string query = "'" RNDN_SOURCE_DIR "/tpch/queries/q06.hir'";
  const std::string cpu = " --device cpu -o kept";
  struct Try {
    std::string line;
    bool works;
  };
  const Try tries[] = {
      {"rndn run syntax.hir" + cpu, false},
      {"rndn run types.hir" + cpu, false},
      {"rndn run fails.hir" + cpu, false},
      {"rndn run good.hir fails.hir" + cpu, false},
      {"rndn run good.hir fails.hir --format json" + cpu, false},
      {"rndn run missing.hir" + cpu, false},
      {"ulimit -f 16; rndn run long.hir --format csv" + cpu, false},
      {"rndn run good.hir" + cpu, true},
      {"rndn run good.hir good.hir" + cpu, true},
      {"rndn run good.hir --device cpu --time=json:kept", true},
      {"rndn run fails.hir --device cpu --time=json:kept", false},
      {"rndn compile types.hir -o kept", false},
      {"ulimit -f 1; rndn compile " + query + " --emit ptx -o kept", false},
      {"rndn compile " + query + " --emit ptx -o kept", true},
      {"rndn explain types.hir -o kept", false},
      {"ulimit -f 1; rndn explain " + query + " -o kept", false},
      {"rndn explain " + query + " -o kept", true},
      {"rndn-as bad.ptx -o kept", false},
      {"ulimit -f 1; rndn-as good.ptx -o kept", false},
      {"rndn-as good.ptx -o kept", true},
      {"rndn-dis bad.cubin -o kept", false},
      {"rndn-dis good.cubin -o kept", true},
      {"rndn-launch bad.cubin --grid 1 --block 32 -o kept", false},
      {"rndn-launch --list good.cubin -o kept", true},
  };
  for (const Try& t : tries) {
    SCOPED_TRACE(t.line);
    write("kept", "kept");
    fs::permissions(path("kept"), fs::perms(0640));
    const Ran r = run(t.line);
    EXPECT_EQ(r.exit_code == 0, t.works) << r.out << r.err;
    EXPECT_LT(r.exit_code, 70) << r.err;
    EXPECT_EQ(read(path("kept")) != "kept", t.works) << r.err;
    EXPECT_EQ(fs::status(path("kept")).permissions(), fs::perms(0640));
    for (const auto& entry : fs::directory_iterator(folder_))
      EXPECT_THAT(entry.path().filename().string(), testing::Not(StartsWith(".rndn")));
  }
  // Into the middle of what others write, too.
  Ran r =
      run("{ echo before; rndn run good.hir --device cpu --format csv -o /dev/stdout; echo after; } > all; cat all");
  EXPECT_EQ(r.out, "before\nvalue\r\n1\r\nafter\n");
  r = run(
      "mkfifo pipe; cat pipe & rndn run good.hir --device cpu --format csv -o pipe; wait; test -p pipe && echo still");
  EXPECT_EQ(r.out, "value\r\n1\r\nstill\n");
  // The shell's file begins with its first result.
  write("kept", "kept");
  EXPECT_EQ(run("echo '.query 99' | rndn shell --device cpu -o kept").exit_code, 2);
  EXPECT_EQ(read(path("kept")), "kept");
}

// A file that takes the place of another with the same size and time of writing, in each way that keeps the time.
TEST_F(Cli, DataThatWasReplacedIsReadAnew) {
  fs::create_directory(path("data"));
  write("data/schema.json", R"({"tables": [{"name": "t", "columns": [{"name": "a", "type": "i64"}]}]})");
  write("p.hir",
        program("        t:? = @load_table(`t:sym);\n        a:i64 = check_cast(@column_value(t, `a:sym), i64);\n"
                "        s:? = @sum(a);\n        return s;\n"));
  const std::string ask = "sleep 0.02; rndn run p.hir --data data --device cpu --format csv";
  write("data/t.tbl", "1|\n2|\n");
  write("other", "3|\n4|\n");
  write("third", "5|\n6|\n");
  write("fourth", "7|\n8|\n");
  for (const char* file : {"data/t.tbl", "other", "third", "fourth"})
    ASSERT_EQ(run(std::string("touch -d 2020-01-01T00:00:00 ") + file).exit_code, 0);
  EXPECT_EQ(run(ask).out, "value\r\n3\r\n");
  ASSERT_EQ(run("cp -p other data/t.tbl").exit_code, 0);
  EXPECT_EQ(run(ask).out, "value\r\n7\r\n");
  ASSERT_EQ(run("mv third data/t.tbl").exit_code, 0);
  EXPECT_EQ(run(ask).out, "value\r\n11\r\n");
  ASSERT_EQ(run("mv fourth t.tbl && tar cf a.tar t.tbl && tar xf a.tar -C data").exit_code, 0);
  EXPECT_EQ(run(ask).out, "value\r\n15\r\n");
}

TEST_F(Cli, VerifyAcceptsAnotherOrderAndSaysSo) {
  ASSERT_EQ(run("rndn tpch run --queries 5 --device cpu --format csv -o q05.csv").exit_code, 0);
  std::string text = read(path("q05.csv"));
  size_t first = text.find('\n') + 1, second = text.find('\n', first) + 1, third = text.find('\n', second) + 1;
  const std::string one = text.substr(first, second - first), two = text.substr(second, third - second);
  text.replace(first, third - first, two + one);
  write("q05.csv", text);
  Ran r = run("rndn tpch run --queries 5 --device cpu --verify=. -o result");
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(r.err, "verify q05: ok, 5 rows as expected, in another order from row 1 on\n");
  text.replace(first, third - first, one + one);  // a row twice and another missing
  write("q05.csv", text);
  r = run("rndn tpch run --queries 5 --device cpu --verify=. -o result");
  EXPECT_EQ(r.exit_code, 70);
  EXPECT_THAT(r.err, StartsWith("error: verify q05: row 2, column `n_name`: "));
}

TEST_F(Cli, TimesAsJsonAddUpAndCoverEveryRun) {
  Ran r = run("rndn tpch run --queries 6 --scale 0.01 --device sim --arch sm_80 --repeat 2 --time=json:times.json");
  ASSERT_EQ(r.exit_code, 0) << r.err;
  auto j = nlohmann::json::parse(read(path("times.json")));
  ASSERT_EQ(j.size(), 2u);
  for (int run = 0; run < 2; ++run) {
    const auto& o = j[static_cast<size_t>(run)];
    EXPECT_EQ(o["program"], "q06");
    EXPECT_EQ(o["run"], run + 1);
    EXPECT_EQ(o["arch"], "sm_80");
    EXPECT_EQ(o["backend"], "rndn");
    for (const char* group : {"compile", "execute"}) {
      uint64_t sum = 0;
      for (const auto& [name, ns] : o[group]["phases"].items()) sum += ns.get<uint64_t>();
      EXPECT_EQ(sum, o[group]["total_ns"].get<uint64_t>() + o[group].value("overlap_ns", uint64_t{0})) << group;
    }
    ASSERT_EQ(o["kernels"].size(), 1u);
    EXPECT_EQ(o["kernels"][0]["launches"], 1);
    EXPECT_EQ(o["kernels"][0]["floor_bytes"], 60175 * 28);
    EXPECT_GT(o["execute"]["phases"]["kernels"], 0);
  }
  EXPECT_GT(j[0]["compile"]["total_ns"], 0);
  EXPECT_EQ(j[1]["compile"]["total_ns"], 0) << "a repeat does not compile";
  EXPECT_GT(j[0]["execute"]["phases"]["data"], 0);
}

TEST_F(Cli, EveryStageIsEmittedAndIsInputAgain) {
  const std::string query = RNDN_SOURCE_DIR "/tpch/queries/q06.hir";
  for (const char* stage : {"hir", "typed", "outline"}) {
    Ran r = run("rndn compile '" + query + "' --emit " + stage + " -o " + stage + ".hir && rndn run " + stage +
                ".hir --device cpu --data tpch:0.01 --format csv");
    EXPECT_EQ(r.exit_code, 0) << stage << r.err;
    EXPECT_EQ(r.out, "revenue\r\n1193053.2253\r\n") << stage;
  }
  EXPECT_THAT(read(path("outline.hir")), HasSubstr("kernel main_1("));
  Ran ptx = run("rndn compile '" + query + "' --emit ptx");
  EXPECT_THAT(ptx.out, StartsWith(".version "));
  EXPECT_THAT(ptx.out, HasSubstr(".entry main_1("));
  Ran sass = run("rndn compile '" + query + "' --emit sass --arch sm_86");
  EXPECT_THAT(sass.out, HasSubstr("EXIT ;"));
  Ran cubin = run("rndn compile '" + query + "' --arch sm_86");
  EXPECT_THAT(cubin.out, StartsWith("\x7f"
                                    "ELF"));
  Ran standard_input = run("rndn check - < '" + query + "'");
  EXPECT_EQ(standard_input.exit_code, 0) << standard_input.err;
}

TEST_F(Cli, EmittedPtxNamesItsTarget) {
  const std::string query = RNDN_SOURCE_DIR "/tpch/queries/q06.hir";
  for (const auto& [target, version] : std::vector<std::pair<std::string, std::string>>{{"sm_60", "6.0"},
                                                                                        {"sm_61", "6.0"},
                                                                                        {"sm_75", "6.3"},
                                                                                        {"sm_80", "7.0"},
                                                                                        {"sm_86", "7.1"},
                                                                                        {"sm_89", "7.8"},
                                                                                        {"sm_90", "7.8"}}) {
    Ran ptx = run("rndn compile '" + query + "' --arch " + target + " --emit ptx -o q.ptx");
    EXPECT_EQ(ptx.exit_code, 0) << ptx.err;
    EXPECT_THAT(read(path("q.ptx")), StartsWith(".version " + version + "\n.target " + target + "\n"));
    ASSERT_EQ(run("rndn-as q.ptx -o q.cubin").exit_code, 0) << target;
    EXPECT_THAT(run("rndn-dis --json q.cubin").out, HasSubstr("\"arch\": \"" + target + "\""));
  }
  EXPECT_THAT(run("rndn compile '" + query + "' --emit ptx").out, HasSubstr(".target sm_60\n")) << "for all of them";
}

TEST_F(Cli, AProgramWithoutKernelsHasNoCodeToWrite) {
  write("p.hir", program("        n:i64 = 1:i64;\n        return n;\n"));
  for (const char* stage : {"ptx", "sass", "cubin"}) {
    expect(std::string("rndn compile p.hir --arch sm_86 -o code --emit ") + stage, 1, "",
           std::string("error: p.hir: the program has no kernels: there is no ") + stage +
               " to write (--emit outline shows what it has)\n");
    EXPECT_FALSE(fs::exists(path("code"))) << stage;
  }
  EXPECT_EQ(run("rndn compile p.hir --emit outline").exit_code, 0);
}

TEST_F(Cli, SeveralProgramsAsCsvAndJson) {
  write("one.hir", program("        n:i64 = 1:i64;\n        return n;\n"));
  write("two.hir", program("        n:i64 = 2:i64;\n        return n;\n"));
  Ran csv = run("rndn run one.hir two.hir --device cpu --format csv -o results && cat results/one.csv results/two.csv");
  EXPECT_EQ(csv.out, "value\r\n1\r\nvalue\r\n2\r\n") << csv.err;
  Ran json = run("rndn run one.hir two.hir --device cpu --format json");
  EXPECT_EQ(nlohmann::json::parse(json.out)["two"]["rows"].dump(), "[[2]]");
}

TEST_F(Cli, DevicesListGpusOfTheDriver) {
  expect("RNDN_FAKE_CUDA_DEVICES=9.0,7.2 LD_LIBRARY_PATH='" RNDN_FAKE_CUDA_DIR "' rndn devices", 0,
         "cuda   driver 12.4, 2 GPUs\n"
         "cuda:0 Fake GPU 0, compute capability 9.0, 3 multiprocessors, 8.0 GiB, runs code for sm_90\n"
         "cuda:1 Fake GPU 1, compute capability 7.2, 3 multiprocessors, 8.0 GiB, not supported\n"
         "sim    simulator for sm_60 sm_61 sm_75 sm_80 sm_86 sm_89 sm_90\n"
         "cpu    reference interpreter\n",
         "");
}

TEST_F(Cli, ShellRunsWhatIsTypedAndKeepsGoingAfterErrors) {
  write("p.hir", program("        n:i64 = @len((1,2,3):i64);\n        return n;\n"));
  write("input", std::string("p.hir\n.format csv\n.query 6\n.nothing\nmodule m { // {\n") +
                     "import Builtin.*; def main():i64 {\n x:i64 = @sum((1,2):i64); return x; } }\nmodule w { def "
                     "main():i64 { return y; } }\n" +
                     ".time on\n.format table\np.hir\n.quit\nnot read\n");
  Ran r = run("rndn shell --data tpch:0.01 --device sim < input");
  EXPECT_EQ(r.out,
            "value\n-----\n    3\n(1 row)\nrevenue\r\n1193053.2253\r\nvalue\r\n3\r\nvalue\n-----\n    3\n(1 row)\n")
      << r.err;
  EXPECT_EQ(r.exit_code, 2) << "the worst of the errors in between";
  EXPECT_THAT(r.err, HasSubstr("`.nothing` is no command of the shell"));
  EXPECT_THAT(r.err, HasSubstr("<input2>:1:36: error: `y` is not declared here"));
  EXPECT_THAT(r.err, HasSubstr("execute")) << "the timing tree";
  EXPECT_EQ(r.err.find("rndn>"), std::string::npos) << "a prompt is for terminals";
}

constexpr const char* printing =
    "module m { import Builtin.*; def main():i64 {\n x:i64 = 3:i64;\n @print(x);\n return x; } }\n";

TEST_F(Cli, ShellHonoursItsFlagsAsRunDoes) {
  write("input", std::string(printing) + ".tables\n");
  Ran r = run("rndn shell --data tpch:0.001 --device sim --format json -o results --time=json:times < input");
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(r.out, "");
  const std::string results = read(path("results"));
  const size_t tables = results.find("lineitem\n");
  ASSERT_NE(tables, std::string::npos) << ".tables goes there too";
  EXPECT_EQ(nlohmann::json::parse(results.substr(0, results.find("\n", results.rfind("]]"))))["rows"].dump(), "[[3]]")
      << results;
  EXPECT_EQ(r.err, "3\n") << "what @print writes";
  EXPECT_EQ(nlohmann::json::parse(read(path("times")))["program"], "input1");

  write("input", std::string(printing) + printing);
  r = run("rndn shell --device sim --time=json:times < input");
  EXPECT_EQ(nlohmann::json::parse(read(path("times"))).size(), 2u) << "as an array, like several programs of run";
  {  // the second time, it is not compiled again
    const auto times = nlohmann::json::parse(read(path("times")));
    EXPECT_GT(times[0]["compile"]["total_ns"], 0);
    EXPECT_EQ(times[1]["compile"]["total_ns"], 0);
  }
  r = run("rndn shell --device sim --no-cache --time=json:times < input");
  EXPECT_GT(nlohmann::json::parse(read(path("times")))[1]["compile"]["total_ns"], 0);
  r = run("rndn shell --device sim --time=trace < input");
  EXPECT_THAT(r.err, StartsWith("{\"traceEvents\"")) << r.err.substr(0, 100);
  r = run("rndn shell --device sim --time=bogus < input");
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_EQ(r.err, "error: --time is text, json, html or trace, with :FILE if wanted, not `bogus`\n");
  EXPECT_EQ(run("rndn shell --device cpu -o no/such/file < input").exit_code, 3);
  EXPECT_EQ(run("rndn shell --device cpu --time=json:no/such/file < input").exit_code, 3);
}

TEST_F(Cli, ShellTakesOnlyLinesThatBeginAProgram) {
  write("p.hir", program("        n:i64 = 7:i64;\n        return n;\n"));
  const std::string run_it = "rndn shell --device cpu --format csv < input";
  write("input", "tables\nmodules\np.hir\nhelp sum\nquit;\nmodules\n");
  Ran r = run(run_it);
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_EQ(r.err,
            "error: `tables` begins no program; did you mean `.tables`? (.help says what can be typed here)\n"
            "error: `modules` begins no program (.help says what can be typed here)\n");
  EXPECT_THAT(r.out, StartsWith("value\r\n7\r\nsum\n\n`sum(x: ")) << "the next line counts again";
  write("input", "help\n?\n");
  EXPECT_EQ(run(run_it).exit_code, 0);
  EXPECT_THAT(run(run_it).err, StartsWith("SELECT ..;"));

  write("input",
        "/* two lines,\nhelp */\n// module {\n\nmodule m { def main():i64 {\n\n.format json\n return 5:i64; } }\n");
  r = run(run_it);
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("[5]]")) << "comments, empty lines, and a command in the middle";
  write("input", "module m { def main() {\n.cancel\np.hir\nmodule m {\n.quit\n");
  r = run(run_it);
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(r.out, "value\r\n7\r\n");
}

TEST_F(Cli, ShellTellsWhatTablesThereAre) {
  write("input", ".tables\n");
  Ran r = run("rndn shell --data tpch:0.01 --device cpu < input");
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("lineitem\n    l_orderkey           enum<i32> (orders.o_orderkey)\n"));
  r = run("rndn shell --device cpu < input");
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_EQ(r.err, "error: there are no tables without --data\n");
  write("input", "module m { def main() {");
  EXPECT_EQ(run("rndn shell --device cpu < input").exit_code, 1) << "input that ends within a program";
}

TEST_F(Cli, BenchWritesItsTablesAndComparesWithEarlierOnes) {
  const std::string command =
      "rndn bench tpch --device sim --queries 6 --warm-up 0 --runs 1 --ptxas no-such-ptxas --nvjitlink no-such-library";
  Ran r = run(command + " -o first");
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_THAT(r.err, HasSubstr("no `no-such-ptxas`: the columns of ptxas are left out"));
  EXPECT_THAT(r.err, HasSubstr("NVIDIA's PTX compiler is not here (tried no-such-library)"));
  const std::string markdown = read(path("first/evaluation.md"));
  EXPECT_THAT(markdown, HasSubstr("| q06 | 13 | 4 | 1 |")) << "outlined kernels: none, flow, full";
  for (const char* title :
       {"## Compile time\n", "## Execution\n", "## Compile time by fusion\n", "## Kernel time by compiler\n",
        "## Loops instead of hash tables\n", "## Registers per thread\n"})
    EXPECT_THAT(markdown, HasSubstr(title));
  EXPECT_THAT(markdown, HasSubstr("| default | --join loop | --member loop |"));
  EXPECT_THAT(markdown, HasSubstr("| cached | uncached | total | kernels |"));
  auto json = nlohmann::json::parse(read(path("first/evaluation.json")));
  EXPECT_EQ(json["facts"]["data"], "TPC-H, scale 0.01");
  EXPECT_THAT(read(path("first/evaluation.html")), StartsWith("<!DOCTYPE html>"));

  // Earlier figures that were half as large: everything is slower now. Twice as large: nothing is.
  const auto scaled = [&](const char* name, double factor) {
    auto other = json;
    for (auto& s : other["samples"])
      for (auto& v : s["values"]) v = v.get<double>() * factor;
    write(name, other.dump());
  };
  scaled("half.json", 0.01);
  scaled("twice.json", 100);
  r = run(command + " --tables execute -o second --compare half.json");
  EXPECT_EQ(r.exit_code, 70);
  EXPECT_THAT(r.err, HasSubstr("execute q06 cached: "));
  r = run(command + " --tables execute -o second --compare twice.json");
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_THAT(r.err, HasSubstr("nothing is slower than in twice.json"));
  // Of other data or another device: they tell nothing.
  const auto elsewhere = [&](const char* fact, const std::string& value) {
    auto other = json;
    other["facts"][fact] = value;
    write("elsewhere.json", other.dump());
    r = run(command + " --tables execute -o second --compare elsewhere.json");
    EXPECT_EQ(r.exit_code, 1);
    return r.err;
  };
  EXPECT_THAT(
      elsewhere("data", "TPC-H, scale 10"),
      HasSubstr(
          "error: elsewhere.json was measured with another data: TPC-H, scale 10 there, TPC-H, scale 0.01 here\n"));
  EXPECT_THAT(elsewhere("device", "NVIDIA H200, driver 12.4, sm_90"),
              HasSubstr("error: elsewhere.json was measured with another device: NVIDIA H200, sm_90 there, simulator"));
  // Before a measurement: data that cannot be opened is the first thing that one needs.
  const std::string no_data = "rndn bench tpch --device sim --data no-data -o ";
  EXPECT_EQ(run(no_data + "third --compare no-file").err, "error: cannot read `no-file`: No such file or directory\n");
  write("a-file", "");
  EXPECT_THAT(run(no_data + "a-file/folder").err, StartsWith("error: cannot make folder `a-file/folder`: "));
  write("bad.json", "{}");
  EXPECT_EQ(run(command + " --tables execute -o second --compare bad.json").exit_code, 1);
  EXPECT_EQ(run("rndn bench tpch --device cpu").exit_code, 2);
  EXPECT_EQ(run("rndn bench tpch --tables nothing").exit_code, 2);
}

constexpr const char* calibration = RNDN_SOURCE_DIR "/docs/measurements/calibration-h200.json";

// Nothing runs: what is predicted stands beside what the table says.
TEST_F(Cli, PredictionsStandBesideWhatWasMeasured) {
  const std::string bench = fmt::format("rndn bench ssb --device sim --arch sm_90 --scale 0.001 --queries 1.1,2.1 --model {} ", calibration);
  write("then.tsv",
        "# of then\ncommit\tmeasured ms\tquery\tscale\tbenchmark\nabc\t0.016\tq1.1\t0.001\tssb\nabc\t7\tq2.1\t0.1\tssb\nabc\t7\tq2.1\t0.001\ttpch\n");
  Ran r = run(bench + "--measured then.tsv -o out");
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(r.out, read(path("out/model.tsv")));
  std::map<std::string, std::vector<std::string>> rows;
  std::istringstream lines(r.out);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    std::vector<std::string> cells;
    std::istringstream of(line);
    for (std::string cell; std::getline(of, cell, '\t');) cells.push_back(cell);
    ASSERT_EQ(cells.size(), 8u) << line;
    rows[cells[2]] = cells;
  }
  ASSERT_EQ(rows.size(), 3u) << r.out;
  EXPECT_EQ(rows["query"], (std::vector<std::string>{"benchmark", "scale", "query", "predicted ms", "measured ms", "error", "not predicted ms", "remark"}));
  const std::vector<std::string>& known = rows["q1.1"];
  EXPECT_EQ(known[4], "0.0160");
  EXPECT_EQ(known[7], "-");
  double predicted = 0;  // of the file that was written before
  const auto json = nlohmann::json::parse(read(path("out/model.json")));
  for (const auto& q : json["queries"])
    if (q["query"] == "q1.1") predicted = q["kernels_ms"];
  ASSERT_GT(predicted, 0.0);
  EXPECT_EQ(known[3], fmt::format("{:.4f}", predicted));
  EXPECT_EQ(known[5], fmt::format("{:+.1f} %", 100 * (0.016 - predicted) / 0.016));
  EXPECT_EQ(rows["q2.1"][4], "0.0000") << "of another scale and another benchmark";
  EXPECT_EQ(rows["q2.1"][5], "-");

  const auto says = [&](const std::string& table, const std::string& what) {
    write("damaged.tsv", table);
    const Ran bad = run(bench + "--measured damaged.tsv -o again");
    EXPECT_EQ(bad.exit_code, 1) << table;
    EXPECT_THAT(bad.err, HasSubstr("damaged.tsv" + what));
  };
  const std::string head = "benchmark\tscale\tquery\tmeasured ms\n";
  says(head + "ssb\t0.001\tq1.1\t-1\n", ":2: expected milliseconds above 0 as `measured ms`, found `-1`");
  says(head + "ssb\t0.001\tq1.1\n", ":2: expected milliseconds above 0 as `measured ms`, found ``");
  says("#\nbenchmark\tscale\tquery\n", ":2: expected a column `measured ms`, found none");
  says(head + "ssb\t1\tq1.1\t1\n", ": expected rows of ssb at scale 0.001, found none");
}

// tools/bench-model, of two builds that are scripts.
TEST_F(Cli, ErrorsOfManyPredictionsAreSummed) {
  const std::string head = "benchmark\tscale\tquery\tpredicted ms\tmeasured ms\terror\tnot predicted ms\tremark\n";
  const auto build = [&](const std::string& name, const std::string& rows) {
    write(name + ".rows", "# facts\n" + head + rows);
    write(name, fmt::format("#!/bin/sh\ncat {}\n", path(name + ".rows")));
    fs::permissions(path(name), fs::perms::owner_all);
  };
  build("one", "ssb\t1\ta\t2.0000\t1.0000\t-100.0 %\t0\t-\nssb\t1\tb\t0.5000\t1.0000\t+50.0 %\t0\t-\nssb\t1\tc\t1.0000\t1.0000\t+0.0 %\t0\t-\n");
  build("two", "ssb\t1\ta\t0.8000\t1.0000\t+20.0 %\t0\t-\nssb\t1\tb\t1.1000\t1.0000\t-10.0 %\t0\t-\nssb\t1\tc\t1.0000\t1.0000\t-\t0\t`main_1` was not foreseen\n");
  write("measured.tsv", "benchmark\tscale\tquery\tmeasured ms\tcommit\nssb\t1\ta\t1\tx\nssb\t1\tb\t1\tx\nssb\t1\tc\t1\tx\nssb\t1\td\t1\tx\n");
  const Ran r = run(fmt::format(RNDN_SOURCE_DIR "/tools/bench-model --measured measured.tsv --calibration none --of one={} --of two={} -o out.tsv",
                                path("one"), path("two")));
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const std::string out = read(path("out.tsv"));
  EXPECT_THAT(out, HasSubstr("\nssb\t1\ta\t1\tx\t2.0000\t-100.0 %\t0.8000\t+20.0 %\t-\n"));
  EXPECT_THAT(out, HasSubstr("\nssb\t1\tc\t1\tx\t1.0000\t-\t1.0000\t-\ttwo: `main_1` was not foreseen\n"));
  EXPECT_THAT(out, HasSubstr("\nssb\t1\td\t1\tx\t-\t-\t-\t-\tone: no such query\n"));
  // Of a and b alone: twice and half of it; 1.25 times less and 1.1 times more.
  EXPECT_THAT(out, HasSubstr("\n# all one: 2 count; larger over smaller, geometric mean 2.00; sizes of errors: median 75 %, largest 100 % (ssb 1 a); "
                             "within 10 %: 0, within 25 %: 0, within 50 %: 1\n"));
  EXPECT_THAT(out, HasSubstr("\n# all two: 2 count; larger over smaller, geometric mean 1.17; sizes of errors: median 15 %, largest 20 % (ssb 1 a); "
                             "within 10 %: 1, within 25 %: 2, within 50 %: 2\n"));
}

// Each writes its table twice, of the wanted figures, and ends by what it has found.
TEST_F(Cli, PredictsKernelsBeforeItMeasuresThem) {
  Ran r = run("rndn devices --calibrate --device sim -o cal.json");
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(nlohmann::json::parse(read(path("cal.json")))["facts"]["device"], "simulator");
  const std::string bench = "rndn bench ssb --device sim --scale 0.001 --queries 1.1,2.1 --warm-up 0 --runs 1 ";
  r = run(bench + "--model cal.json -o out");
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const auto json = nlohmann::json::parse(read(path("out/model.json")));
  ASSERT_EQ(json["queries"].size(), 2u);
  EXPECT_EQ(json["queries"][0]["query"], "q1.1");
  EXPECT_GT(json["queries"][0]["kernels_ms"], 0.0);
  const auto& kernel = json["queries"][0]["kernels"].back();
  for (const char* key : {"name", "ns", "bound", "rows", "bytes", "memory_ns", "gathers_ns", "adds_ns", "instructions_ns", "launch_ns"})
    EXPECT_TRUE(kernel.contains(key)) << key;
  const std::string table = read(path("out/model.tsv"));
  EXPECT_EQ(table, r.out);
  EXPECT_THAT(table, HasSubstr("\nbenchmark\tscale\tquery\tpredicted ms\tmeasured ms\terror\tnot predicted ms\tremark\nssb\t0.001\tq1.1\t"));
  EXPECT_LT(fs::last_write_time(path("out/model.json")), fs::last_write_time(path("out/model.tsv")));

  r = run("rndn explain " RNDN_SOURCE_DIR "/tpch/queries/q06.hir --data tpch:0.001 --model cal.json");
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("predicted\n  main_1 "));
  EXPECT_THAT(r.out, HasSubstr(", by "));
  EXPECT_THAT(r.out, HasSubstr("\n  tables of rows by key, by the keys' bounds and how many rows there may be: nothing hangs on it here\n"));
  const auto decisions = nlohmann::json::parse(run("rndn explain " RNDN_SOURCE_DIR "/tpch/queries/q06.hir --data tpch:0.001 --json --model cal.json").out);
  const auto& lie = decisions[0]["decisions"][0];
  EXPECT_EQ(lie["name"], "how columns lie");
  EXPECT_EQ(lie["chosen"], "as types have them") << "of few rows that is in few bytes, too";
  ASSERT_EQ(lie["others"].size(), 1u) << lie;
  EXPECT_EQ(lie["others"][0]["name"], "in bits");
  EXPECT_THAT(r.out, HasSubstr(fmt::format("\n  how columns lie, by --encode: as types have them, {:.2f} us; in bits, {:.2f}\n", lie["us"].get<double>(),
                                           lie["others"][0]["us"].get<double>())));
  const auto& where = decisions[0]["decisions"].back();
  EXPECT_EQ(where["name"], "where columns lie");
  ASSERT_EQ(where["others"].size(), 1u) << where;
  EXPECT_GE(where["others"][0]["us"], where["us"]);
  for (const auto& column : decisions[0]["transfers"]) EXPECT_TRUE(column["chosen"] == "copied" || !column["mapped us"].is_null()) << column;
  r = run("rndn explain " RNDN_SOURCE_DIR "/tpch/queries/q06.hir --data tpch:0.001 --dot --model cal.json");
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("  decisions [shape=note, label=\"predicted\\l"));
  EXPECT_THAT(r.out, HasSubstr("; in bits, "));

  write("damaged.json", "{\n \"form\": ");
  for (const std::string& command : {bench + "-o out", std::string("rndn explain " RNDN_SOURCE_DIR "/tpch/queries/q06.hir --data tpch:0.001")}) {
    r = run(command + " --model damaged.json");
    EXPECT_EQ(r.exit_code, 1);
    EXPECT_THAT(r.err, HasSubstr("damaged.json:2:10: expected the JSON that `rndn devices --calibrate` writes, found its end"));
  }
  EXPECT_EQ(run(bench + "--model cal.json").exit_code, 2) << "no folder";
  EXPECT_EQ(run(bench + "--model cal.json -o out --tables execute").exit_code, 2);
  EXPECT_EQ(run("rndn explain " RNDN_SOURCE_DIR "/tpch/queries/q06.hir --model cal.json").exit_code, 2) << "no data";
  EXPECT_EQ(run("rndn devices --calibrate --device cpu").exit_code, 2);
}

TEST_F(Cli, BenchesOfPapersWriteTheirTables) {
  struct Try {
    const char *command, *flags, *figure;
    size_t rows;
  };
  for (const auto& [command, flags, figure, rows] : {Try{"kernel-weaver", "--sizes 8 --figures 4", "Fig 4", 2},
                                                     {"multi-bsp", "--sizes 6 --figures 9", "Fig 9", 14},
                                                     {"horseqc", "--rows 500 --groups 2 --figures 18", "Fig 18", 3},
                                                     {"yin-yang", "--scale 0.001 --figures table4", "Table 4", 10}}) {
    const std::string line = fmt::format("rndn bench {} {} --device sim --warm-up 0 --runs 1 -o out", command, flags);
    const Ran r = run(line);
    EXPECT_EQ(r.exit_code, 0) << line << r.err;
    EXPECT_EQ(r.out, "");
    const std::string tsv = read(path(fmt::format("out/{}.tsv", command)));
    EXPECT_THAT(tsv, AllOf(StartsWith("# rndn bench " + std::string(command) + "; device simulator"),
                           HasSubstr("\nfigure\tcase\trows\t"),
                           ::testing::AnyOf(EndsWith("\tright\n"), EndsWith("\tleft out: no encoding has runs\n"))));
    EXPECT_EQ(static_cast<size_t>(std::count(tsv.begin(), tsv.end(), '\n')), rows + 2) << tsv;
    const auto json = nlohmann::json::parse(read(path(fmt::format("out/{}.json", command))));
    EXPECT_EQ(json["facts"]["rndn bench"], command);
    ASSERT_EQ(json["rows"].size(), rows);
    for (const auto& row : json["rows"]) {
      EXPECT_EQ(row["figure"], figure);
      EXPECT_EQ(row["right"] == true, !row.contains("left_out")) << row.dump();
    }
  }
  // Wrong answers, and cases over their time: the table is there and says so.
  Ran r = run("rndn_wrong bench multi-bsp --sizes 9 --figures 9 --device sim --warm-up 0 --runs 1 -o wrong");
  EXPECT_EQ(r.exit_code, 70) << r.err;
  EXPECT_THAT(r.err, HasSubstr("Fig 9, select half of two columns: wrong answer: the operator's result is wrong\n"));
  EXPECT_THAT(read(path("wrong/multi-bsp.tsv")), HasSubstr("\tthe operator's result is wrong\n"));
  r = run("rndn bench kernel-weaver --sizes 8 --figures 4 --device sim -o late --timeout 0.000001");
  EXPECT_EQ(r.exit_code, 3) << r.err;
  EXPECT_THAT(r.err, HasSubstr("Fig 4, three selections: failed: the time limit of "));
  EXPECT_THAT(read(path("late/kernel-weaver.tsv")), HasSubstr("\tfailed: the time limit of "));
  for (const char* wrong : {"kernel-weaver --figures 5", "horseqc --figures 20 --queries 3", "yin-yang --queries 5",
                            "multi-bsp --sizes 31", "kernel-weaver --device cpu"})
    EXPECT_EQ(run(std::string("rndn bench ") + wrong).exit_code, 2) << wrong;
}

// A literal between two columns brings their dictionaries together; texts that one of them lacks must not become equal.
TEST_F(Cli, TextsOfDifferentColumnsStayDifferent) {
  write("p.hir", R"(module m { import Builtin.*; def main() : table {
    o:table = @load_table(`orders:sym);
    a:sym = check_cast(@column_value(o, `o_orderpriority:sym), sym);
    b:sym = check_cast(@column_value(o, `o_clerk:sym), sym);
    x:? = @eq(a, `"1-URGENT":sym);
    y:? = @eq(`"1-URGENT":sym, b);
    z:? = @eq(a, b);
    u:? = @eq(`"Clerk#000000001":sym, b);
    v:? = @eq(`"nobody":sym, `"no one":sym);
    p:? = @compress(x, a); q:? = @compress(y, b); r:? = @compress(z, a); s:? = @compress(u, b);
    np:? = @len(p); nq:? = @len(q); nr:? = @len(r); ns:? = @len(s);
    c:? = @list(np, nq, nr, ns, v);
    t:? = @table((`x,`y,`z,`u,`v):sym, c);
    return t; } })");
  const Ran cpu = run("rndn run p.hir --data tpch:0.01 --device cpu --format csv");
  EXPECT_EQ(cpu.out, "x,y,z,u,v\r\n3020,0,0,15,0\r\n") << cpu.err;
  for (const char* arch : {"sm_61", "sm_86"}) {
    const Ran sim = run(std::string("rndn run p.hir --data tpch:0.01 --device sim --format csv --arch ") + arch);
    EXPECT_EQ(sim.out, cpu.out) << arch << "\n" << sim.err;
  }
}

TEST_F(Cli, CodeIsCachedBetweenProcesses) {
  const auto selected_ns = [&](const std::string& flags) {
    Ran r = run("rndn tpch run --queries 6 --device sim --time=json:t.json" + flags);
    EXPECT_EQ(r.exit_code, 0) << r.err;
    EXPECT_THAT(r.out, HasSubstr("1193053.2253"));
    return nlohmann::json::parse(read(path("t.json")))["compile"]["phases"]["select"].get<int64_t>();
  };
  EXPECT_GT(selected_ns(" --no-cache"), 0);
  EXPECT_FALSE(fs::exists(path("cache/code"))) << "--no-cache writes none";
  EXPECT_GT(selected_ns(""), 0) << "nothing was cached before";
  EXPECT_EQ(selected_ns(""), 0) << "the assembler did not run";
  EXPECT_GT(selected_ns(" --no-cache"), 0);
  EXPECT_GT(selected_ns(" --verify-passes"), 0) << "what is to be verified must be made";
}

TEST(BenchSamples, SpreadDropsTheExtremesOfFiveOrMore) {
  using rndn::tools::spread_of;
  EXPECT_EQ(spread_of({3, 1, 2}).median, 2);
  EXPECT_EQ(spread_of({3, 1, 2}).high, 3);
  const auto s = spread_of({100, 1, 4, 2, 3});
  EXPECT_EQ(s.count, 3u);
  EXPECT_EQ(s.low, 2);
  EXPECT_EQ(s.median, 3);
  EXPECT_EQ(s.high, 4);
  EXPECT_EQ(spread_of({1, 2}).median, 1.5);
  EXPECT_EQ(spread_of({}).count, 0u);
}

TEST(BenchSamples, TablesHaveSumsAndMeansAndSurviveJson) {
  rndn::tools::Samples samples;
  for (double v : {1.0, 2.0, 3.0}) samples.add("t", "q01", "a", v);
  samples.add("t", "q01", "b", 8);
  samples.add("t", "q02", "a", 3);
  samples.add("t", "q02", "b", 3);
  const rndn::tools::BenchTable tables[] = {{"t", "Title: text", "ms", "a"}, {"absent", "Absent", "ms", ""}};
  const std::string text = samples.markdown("rndn bench ssb", tables, {{"device", "d"}});
  EXPECT_THAT(text, HasSubstr("- device: d\n"));
  EXPECT_THAT(text, HasSubstr("| q01 | 2.000 ±50% | 8.000 |"));
  EXPECT_THAT(text, HasSubstr("| **sum** | **5.000** | **11.00** |"));
  EXPECT_THAT(text, HasSubstr("relative to a | 1.00x | 2.00x |")) << "the mean of 4 and 1 is geometric";
  EXPECT_EQ(text.find("Absent"), std::string::npos);
  auto again = rndn::tools::Samples::parse(samples.json({}), "x");
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->markdown("rndn bench ssb", tables, {{"device", "d"}}), text);
  EXPECT_EQ(again->regressions(samples), "");
  rndn::tools::Samples slower;
  slower.add("t", "q02", "b", 3.2);
  EXPECT_THAT(slower.regressions(samples), StartsWith("t q02 b: "));
  rndn::tools::Samples noise;
  noise.add("t", "q01", "a", 2.9);
  EXPECT_EQ(noise.regressions(samples), "") << "within the spread of what was measured before";
  EXPECT_FALSE(rndn::tools::Samples::parse("[1]", "x").ok());
  EXPECT_FALSE(
      rndn::tools::Samples::parse(R"({"samples":[{"table":"t","row":"r","column":"c","values":["x"]}]})", "x").ok());
}

TEST_F(Cli, ExplainsFallbacksAsRunReportsThem) {
  write("branch.hir", program("        n:i64 = 3:i64;\n        b:bool = @lt(n, 5:i64);\n"
                              "        if (b) { n = 4:i64; }\n        return n;\n"));
  write("random.hir", program("        u:? = @randk(3:i64, 10:i64);\n        return u;\n", "?"));
  for (const auto& [file, what] : std::vector<std::pair<std::string, std::string>>{
           {"branch.hir", "the whole program (branch.hir:6:9: control flow on the host)"},
           {"random.hir", "random.hir:4:9: `randk`"}}) {
    EXPECT_THAT(run("rndn explain " + file).out, EndsWith("fallbacks to the reference interpreter\n  " + what + "\n"));
    EXPECT_EQ(run("rndn run --device sim " + file).err, "warning: " + what + " runs on the reference interpreter\n");
  }
}

TEST_F(Cli, ExplainsKernels) {
  const std::string queries = std::string(RNDN_SOURCE_DIR) + "/tpch/queries/";
  Ran text = run("rndn explain " + queries + "q06.hir --data tpch:0.01");
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("main_1: 13 statements, a thread per element of vector<data.lineitem.rows>"));
  EXPECT_THAT(text.out, HasSubstr("reads   28 B per data.lineitem.rows: shipdate, discount, quantity, price"));
  EXPECT_THAT(text.out, HasSubstr("moves   1.7 MB"));
  EXPECT_THAT(text.out, EndsWith("fallbacks to the reference interpreter\n  none\n"));
  EXPECT_THAT(text.out, HasSubstr("  lineitem.l_shipdate          plain   32 of  32 bits: as the host has it; tiles of 1024 rows span 100 % of the elements: no skipping\n"));
  Ran packed = run("rndn explain " + queries + "q06.hir --data tpch:0.01 --encode packed");
  EXPECT_THAT(packed.out, HasSubstr("reads   5.75 B per data.lineitem.rows: shipdate, discount, quantity, price"));
  EXPECT_THAT(packed.out, HasSubstr("  lineitem.l_discount          packed   4 of  64 bits, 16.0 times fewer: decimals with 2 digits, 0 to 0.1; tiles of 1024 rows span 100 % of the elements: no skipping\n"));
  EXPECT_EQ(run("rndn explain " + queries + "q06.hir --data tpch:0.01 --encode wide").exit_code, 2);
  EXPECT_THAT(text.out, HasSubstr("by these columns\n  nothing\n"));
  Ran dot = run("rndn explain " + queries + "q06.hir --dot -o graph.dot");
  EXPECT_EQ(dot.exit_code, 0) << dot.err;
  EXPECT_THAT(read(path("graph.dot")), StartsWith("digraph main {"));
  Ran counts = run("rndn explain --counts " + queries + "q06.hir");
  EXPECT_THAT(counts.out, HasSubstr("q06             13     4     1"));
  EXPECT_EQ(run("rndn explain absent.hir").exit_code, 1);
  EXPECT_EQ(run("rndn explain").exit_code, 2);
}

class CliSql : public Cli {
 protected:
  void SetUp() override {
    if (!fs::exists(RNDN_BIN_DIR "/../share/duckdb/libduckdb-planner.so"))
      GTEST_SKIP() << "skipped: the planner of SQL is not installed (tools/sql-planner does that)";
    Cli::SetUp();
  }
};

TEST_F(CliSql, AnswersAQuery) {
  const std::string query =
      "select l_returnflag, sum(l_quantity) as quantity, count(*) from lineitem where l_discount = 0.07 group by 1 order by 1";
  const std::string run_it = " --data tpch:0.01 --device cpu";
  const std::string table =
      "l_returnflag  quantity  count_star()\n"
      "------------  --------  ------------\n";
  Ran r = run("rndn sql \"" + query + "\"" + run_it);
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_THAT(r.out, StartsWith(table));
  EXPECT_THAT(r.out, EndsWith("(3 rows)\n"));
  EXPECT_EQ(r.err, "");
  // The same from a file, stdin, with another statement, and on the simulator.
  write("q.sql", "-- flags\n" + query + ";\n");
  EXPECT_EQ(run("rndn sql q.sql" + run_it).out, r.out);
  EXPECT_EQ(run("rndn sql - < q.sql" + run_it).out, r.out);
  EXPECT_EQ(run("rndn sql q.sql --data tpch:0.01 --device sim --no-fallback").out, r.out);
  write("two.sql", "select 1 as one;\n" + query + ";\n");
  EXPECT_EQ(run("rndn sql two.sql" + run_it).out, "two-1\none\n---\n  1\n(1 row)\n\ntwo-2\n" + r.out + "\n");
  // SQL's names and types.
  const auto json = nlohmann::json::parse(run("rndn sql q.sql --format json" + run_it).out);
  EXPECT_EQ(json["columns"][0]["type"], "VARCHAR");
  EXPECT_EQ(json["columns"][1]["name"], "quantity");
  EXPECT_EQ(json["columns"][1]["type"], "DECIMAL(38,2)");
  EXPECT_EQ(json["columns"][2]["type"], "BIGINT");
  EXPECT_THAT(run("rndn sql q.sql --format csv" + run_it).out, StartsWith("l_returnflag,quantity,count_star()\r\nA,"));
  EXPECT_THAT(run("rndn sql q.sql --time" + run_it).err, HasSubstr("planner"));
}

TEST_F(CliSql, StatementsAreMembersOfOneObject) {
  write("s.sql", "create table t as select * from range(20000) r(a);\nexplain select a from t;\nselect a, 'a text' as b from t;\n"
                 "select count(*) from t;\n");
  Ran r = run("rndn sql s.sql --device cpu --format json");
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const auto json = nlohmann::json::parse(r.out);
  EXPECT_TRUE(json["s-1"].is_null());
  EXPECT_EQ(json["s-2"]["columns"][0]["name"], "explain");
  EXPECT_EQ(json["s-2"]["rows"][0][0], "-- SQL");
  ASSERT_EQ(json["s-3"]["rows"].size(), 20000u) << "in several pieces";
  EXPECT_EQ(json["s-3"]["rows"][19999].dump(), "[19999,\"a text\"]");
  EXPECT_EQ(json["s-4"]["rows"].dump(), "[[20000]]");
  EXPECT_THAT(r.out, EndsWith("[20000]]}}\n"));
  EXPECT_EQ(run("rndn sql s.sql --device cpu --format json -o out").exit_code, 0);
  EXPECT_TRUE(read(path("out")) == r.out);
}

TEST_F(CliSql, PlansAndCompilesARepeatedTextOnce) {
  const std::string query = "select sum(l_tax) from lineitem where l_quantity < 24;\n";
  write("q.sql", query + "select 1;\n" + query);
  Ran r = run("rndn sql q.sql --data tpch:0.01 --device sim --time=json:times.json");
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const auto times = nlohmann::json::parse(read(path("times.json")));
  auto spent = [&](size_t run, const char* phase) {
    return times[run]["compile"]["phases"][phase].get<uint64_t>();
  };
  for (const char* phase : {"planner", "translate", "frontend", "ptx", "encode"}) {
    EXPECT_GT(spent(0, phase), 0u) << phase;
    EXPECT_EQ(spent(2, phase), 0u) << phase;
  }
}

TEST_F(CliSql, AnswersOverAFolder) {
  fs::create_directories(path("shop"));
  write("shop/schema.json",
        R"j({"tables": [{"name": "sales", "file": "sales.csv", "header": true, "columns": [
             {"name": "item", "type": "sym"}, {"name": "price", "type": "decimal(9,2)"}, {"name": "day", "type": "date"}]}]})j");
  write("shop/sales.csv", "item,price,day\npen,1.25,2024-01-01\nink,10.50,2024-01-02\npen,2.25,2024-02-29\n");
  expect("rndn sql 'select item, sum(price) total, max(day) from sales group by item order by item' --data shop --device cpu "
         "--format csv",
         0, "item,total,\"max(\"\"day\"\")\"\r\nink,10.50,2024-01-02\r\npen,3.50,2024-02-29\r\n", "");
}

// The end of a file's name says what is written to it, --format what else.
TEST_F(CliSql, WritesWhatTheNameOfAFileSays) {
  const auto written = [&](const std::string& options, const std::string& file) {
    EXPECT_EQ(run("rndn sql \"select 7 as n\" --device cpu -o " + file + options).exit_code, 0) << file;
    return read(path(file));
  };
  EXPECT_EQ(written("", "x.csv"), "n\r\n7\r\n");
  EXPECT_EQ(written("", "x.json").substr(0, 1), "{");
  EXPECT_EQ(written("", "x.parquet").substr(0, 4), "PAR1");
  EXPECT_EQ(written("", "x.arrow").substr(0, 6), "ARROW1");
  EXPECT_EQ(written(" --format csv", "y.parquet"), "n\r\n7\r\n");
  EXPECT_EQ(written("", "x.txt"), "n\n-\n7\n(1 row)\n");
}

TEST_F(CliSql, EmitsWhatBecomesOfAQuery) {
  const std::string query = "'select sum(l_extendedprice * l_discount) from lineitem where l_quantity < 24' --data tpch:0.01";
  const auto plan = nlohmann::json::parse(run("rndn sql --emit plan " + query).out);
  EXPECT_EQ(plan["error"], false);
  Ran hir = run("rndn sql --emit hir -o q.hir " + query);
  EXPECT_EQ(hir.exit_code, 0) << hir.err;
  EXPECT_EQ(run("rndn run q.hir --data tpch:0.01 --device cpu").exit_code, 0);
  EXPECT_THAT(run("rndn sql --emit outline " + query).out, HasSubstr("kernel"));
  EXPECT_THAT(run("rndn sql --emit ptx " + query).out, HasSubstr(".visible .entry"));
  EXPECT_THAT(run("rndn sql --emit sass --arch sm_86 " + query).out, HasSubstr("EXIT"));
  EXPECT_THAT(run("rndn sql --emit cubin --arch sm_90 " + query).out, StartsWith("\x7f" "ELF"));
  Ran several = run("rndn sql --emit cubin --arch sm_90 'select 1; select 2'");
  EXPECT_EQ(several.exit_code, 2);
  EXPECT_EQ(several.err, "error: --emit cubin is of one statement, not of 2\n");
}

TEST_F(CliSql, AnswersWhatIsNoQuery) {
  const std::string run_it = " --device cpu --format csv --data ";
  Ran r = run("rndn sql 'show tables'" + run_it + "ssb:0.01");
  EXPECT_EQ(r.out, "name,columns,rows\r\nlineorder,17,60175\r\npart,9,2000\r\nsupplier,7,20\r\ncustomer,8,300\r\ndate,17,2556\r\n") << r.err;
  r = run("rndn sql 'describe orders'" + run_it + "tpch:0.01");
  EXPECT_THAT(r.out, StartsWith("column_name,column_type,key\r\no_orderkey,INTEGER,primary\r\no_custkey,INTEGER,customer.c_custkey\r\n")) << r.err;
  r = run("rndn sql 'describe select count(*) as n from orders'" + run_it + "tpch:0.01");
  EXPECT_EQ(r.out, "column_name,column_type,key\r\nn,BIGINT,\r\n") << r.err;
  r = run("rndn sql 'summarize nation'" + run_it + "tpch:0.01");
  EXPECT_THAT(r.out, StartsWith("column_name,column_type,rows,values,min,max,avg,distinct\r\nn_nationkey,INTEGER,25,25,0,24,12,25\r\n"
                                "n_name,VARCHAR,25,25,ALGERIA,VIETNAM,,25\r\nn_regionkey,INTEGER,25,25,0,4,2,5\r\n")) << r.err;
  expect("rndn sql 'describe order' --device cpu --data tpch:0.01", 1, "",
         "<query>:1:10: error: there is no table `order`; did you mean `orders`?\n  describe order\n           ^~~~~\n");
  // Also on a device, and of no tables.
  EXPECT_EQ(run("rndn sql 'summarize nation' --device sim --format csv --data tpch:0.01").out,
            run("rndn sql 'summarize nation'" + run_it + "tpch:0.01").out);
  EXPECT_EQ(run("rndn sql 'show tables' --device cpu --format csv").out, "name,columns,rows\r\n");
}

// What a run decides by figures of the columns is what `explain` says, and what its kernels are; of other columns it says something else.
TEST_F(Cli, ExplainsWhatDataDecide) {
  const auto table = [&](const std::string& name, const char* columns, int rows, const std::function<int64_t(int)>& key) {
    std::string text = std::string(columns) + "\n";
    for (int i = 0; i < rows; ++i) text += std::to_string(key(i)) + "," + std::to_string(i % 100) + "\n";
    write(name, text);
  };
  const auto explained = [&](const std::string& line, const std::string& said, bool operators) {
    const Ran r = run("rndn explain " + line);
    EXPECT_EQ(r.exit_code, 0) << r.err;
    EXPECT_THAT(r.out, HasSubstr("by these columns\n  " + said)) << line;
    EXPECT_EQ(r.out.find("on the host: it is an operator of the library") != std::string::npos, operators) << line;
  };
  write("group.hir",
        "module m { import Builtin.*; def main() : i64 {\nt:? = @load_table(`t:sym);\nk:i64 = check_cast(@column_value(t, `k:sym), i64);\n"
        "v:i64 = check_cast(@column_value(t, `v:sym), i64);\n  g:? = @group(k);\nw:? = @values(g);\nc:? = @each_right(@index, v, w);\n"
        "e:? = @each(@sum, c);\ns:? = @raze(e);\nr:? = @max(s);\nreturn r; } }\n");
  table("few.csv", "k,v", 500, [](int i) { return i * 7 % 11; });
  table("wide.csv", "k,v", 500, [](int i) { return int64_t{i * 7 % 11} << 40; });
  table("many.csv", "k,v", 140000, [](int i) { return int64_t{i * 7 % 11} << 40; });
  table("up.csv", "k,v", 500, [](int i) { return int64_t{i / 3} << 30; });
  const std::string group = "group.hir:5:3: a group: ";
  explained("group.hir --table t=few.csv",
            group + "folded by its kernel, in a table of 11 entries of 12 bytes, 32 copies in each block's shared memory\n", false);
  explained("group.hir --table t=wide.csv", group + "made by an operator, since there may be too many groups\n", true);
  explained("group.hir --table t=many.csv",
            group + "folded by its kernel, with keys hashed into 8192 slots at first and 8192 at most, since there may be too many groups\n", false);
  explained("group.hir --table t=up.csv", group + "made by an operator, since its keys ascend: groups are runs\n", true);

  write("join.hir",
        "module m { import Builtin.*; def main() : i64 {\nf:? = @load_table(`f:sym); d:? = @load_table(`d:sym);\n"
        "fk:i64 = check_cast(@column_value(f, `k:sym), i64); fv:i64 = check_cast(@column_value(f, `v:sym), i64);\n"
        "dk:i64 = check_cast(@column_value(d, `k:sym), i64); dv:i64 = check_cast(@column_value(d, `v:sym), i64);\n"
        "m:? = @gt(dv, 4:i64); k:? = @compress(m, dk);\n  p:? = @join_index(@eq, k, fk);\nr:? = @index(p, 1:i64); v:? = @index(fv, r);\n"
        "s:? = @sum(v); return s; } }\n");
  table("facts.csv", "k,v", 2000, [](int i) { return i * 7919 % 300; });
  table("different.csv", "k,v", 300, [](int i) { return i * 101 % 300; });
  table("alike.csv", "k,v", 300, [](int i) { return i * 101 % 150; });
  table("ascending.csv", "k,v", 300, [](int i) { return i; });
  const std::string join = "join.hir:6:3: a join: ", all = "among all rows of its table, of which a mask says which count, since keys of all rows are different; ";
  explained("join.hir --table f=facts.csv --table d=different.csv", join + all + "a table with an entry for each key from 0 to 299\n", false);
  explained("join.hir --table f=facts.csv --table d=ascending.csv", join + all + "keys ascend by one, and need no table of rows\n", false);
  // Of tables beyond the first caches, what is read lies by key.
  table("many_facts.csv", "k,v", 140000, [](int i) { return i * 7 % 70001; });
  table("many_different.csv", "k,v", 70000, [](int i) { return i * 101 % 70000; });
  const std::string by_key = "each key from the least to the greatest is there, and needs no table of rows";
  explained("join.hir --table f=many_facts.csv --table d=many_different.csv",
            join + all + "a table with an entry for each key from 0 to 69999\n", false);
  write("read.hir",
        "module m { import Builtin.*; def main() : i64 {\nf:? = @load_table(`f:sym); d:? = @load_table(`d:sym);\n"
        "fk:i64 = check_cast(@column_value(f, `k:sym), i64);\n"
        "dk:i64 = check_cast(@column_value(d, `k:sym), i64); dv:i64 = check_cast(@column_value(d, `v:sym), i64);\n"
        "  p:? = @join_index(@eq, dk, fk);\nl:? = @index(p, 0:i64); v:? = @index(dv, l);\n"
        "s:? = @sum(v); return s; } }\n");
  explained("read.hir --table f=many_facts.csv --table d=many_different.csv",
            "read.hir:5:3: a join: among the rows that are left of its table; " + by_key + "; what is read of a row lies in a record of 1 byte by key\n", false);
  explained("join.hir --table f=facts.csv --table d=alike.csv", join + "only among the rows that are selected, since keys of all rows may repeat\n", false);
}

TEST_F(CliSql, Explains) {
  const std::string query = "select o_orderpriority, count(*) from orders join customer on c_custkey = o_custkey where c_nationkey = 3 group by 1";
  write("q.sql", "-- a query\n" + query + ";\n");
  Ran r = run("rndn explain q.sql --data tpch:0.01");
  EXPECT_EQ(r.exit_code, 0) << r.err;
  size_t at = 0;
  for (const char* part : {"-- SQL\nselect o_orderpriority", "-- plan\n", "aggregate count_star() by o_orderpriority\n",
                           "inner join on ", "scan customer: ", "c_nationkey = 3", "-- program\nmodule ", "-- kernels\n",
                           "fallbacks to the reference interpreter\n  none\n"}) {
    const size_t found = r.out.find(part, at);
    ASSERT_NE(found, std::string::npos) << part << "\n" << r.out;
    at = found;
  }
  const std::string typed = run("rndn sql 'explain " + query + "' --data tpch:0.01 --device cpu").out;
  // But for places, which have the statement's name.
  const auto part = [](const std::string& of, const char* from, const char* to) {
    const size_t begin = of.find(from);
    EXPECT_NE(begin, std::string::npos) << from;
    return of.substr(begin, of.find(to) - begin);
  };
  for (const auto& [from, to] : {std::pair("-- SQL\n", "\nby these columns\n"), {"\nstatements\n", "\nfused operators\n"}})
    EXPECT_EQ(part(typed, from, to), part(r.out, from, to));
  EXPECT_THAT(r.out, HasSubstr("\nby these columns\n  <program of q.sql>:17:9: a group: folded by its kernel, in a table of 5 entries of 12 bytes, "));
  Ran counts = run("rndn explain q.sql --data tpch:0.01 --counts");
  EXPECT_THAT(counts.out, HasSubstr("\nq  "));
  Ran ran = run("rndn sql 'explain analyze " + query + "' --data tpch:0.01 --device sim");
  EXPECT_THAT(ran.out, StartsWith("-- plan\n"));
  EXPECT_THAT(ran.out, HasSubstr("\n-- run\n"));
  EXPECT_THAT(ran.out, HasSubstr("execute")) << ran.err;
  EXPECT_EQ(run("rndn sql 'explain selec 1' --device cpu").exit_code, 1);
}

TEST_F(CliSql, TakesParameters) {
  const std::string run_it = " --data tpch:0.01 --device cpu --format csv";
  const std::string count = run("rndn sql \"select count(*) from nation where n_name > 'CHINA' and n_regionkey = 2\"" + run_it).out;
  EXPECT_EQ(run("rndn sql 'select count(*) from nation where n_name > ? and n_regionkey = $2'" + run_it).exit_code, 1) << "no values";
  EXPECT_EQ(run("rndn sql 'select count(*) from nation where n_name > $1 and n_regionkey = $2' --param CHINA --param 2" + run_it).out, count);
  EXPECT_EQ(run("rndn sql 'select ? as x' --param \"O'Brien\" --device cpu --format csv").out, "x\r\nO'Brien\r\n");
  expect("rndn sql 'select 1' --param 1 --device cpu", 2, "", "error: the statement has 0 parameters, and 1 value is given\n");
  write("p.sql", "prepare p as select count(*) from nation where n_name > $1 and n_regionkey = $2;\nexecute p('CHINA', 2);\nexecute p('', 2);\n");
  Ran r = run("rndn sql p.sql --data tpch:0.01 --device cpu");
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("           4\n")) << "INDIA, INDONESIA, JAPAN, VIETNAM";
  EXPECT_THAT(r.out, HasSubstr("           5\n"));
  expect("rndn sql 'prepare p as select 1; execute q' --device cpu", 1, "query-1\n\n",
         "<query>:1:32: error: there is no prepared statement `q`\n  prepare p as select 1; execute q\n                                 ^\n");
  EXPECT_EQ(run("rndn sql 'prepare p as selec 1' --device cpu").exit_code, 1);
  EXPECT_EQ(run("rndn sql 'prepare p as select ?; execute p(1, 2)' --device cpu").exit_code, 1);
}

TEST_F(CliSql, ShellTakesQueries) {
  write("more.sql", "select 7 as seven;\n");
  write("input",
        "-- a comment\nselect 'a;b' as t,\n.format csv\n  1 + 1 as two; select 3 as three;\nshow tables;\n.schema region\n"
        "more.sql\nprepare p as select $1 as x;\nexecute p(5);\n.hir\nselect 1;\n.sql\n.explain select 2 as two\n"
        "module m { def main():i64 { return 9:i64; } }\nselect nothing;\nselect 4\n.cancel\nselect 8 as last");
  Ran r = run("rndn shell --data tpch:0.01 --device cpu < input");
  EXPECT_THAT(r.out, StartsWith("t,two\r\na;b,2\r\nthree\r\n3\r\nname,columns,rows\r\nregion,3,5\r\n"));
  EXPECT_THAT(r.out, HasSubstr("CREATE TABLE \"region\" (\n  \"r_regionkey\" INTEGER,\n  \"r_name\" VARCHAR,\n"
                               "  \"r_comment\" VARCHAR,\n  PRIMARY KEY (\"r_regionkey\")\n);\nseven\r\n7\r\nx\r\n5\r\n"));
  EXPECT_THAT(r.out, HasSubstr("-- plan\n"));
  EXPECT_THAT(r.out, EndsWith("value\r\n9\r\nlast\r\n8\r\n"));
  EXPECT_THAT(r.err, HasSubstr("error: `select` begins no program")) << "after .hir";
  EXPECT_THAT(r.err, HasSubstr("<input7>:1:8: error: there is no column `nothing`"));
  EXPECT_EQ(r.exit_code, 2) << r.err;
}

TEST_F(CliSql, BenchComparesWithDuckdb) {
  Ran r = run("rndn bench sql --data ssb:0.01 --device sim --runs 1 --warm-up 0 --threads 2 -o out");
  EXPECT_EQ(r.exit_code, 0) << r.err;
  const std::string markdown = read(path("out/sql.md"));
  EXPECT_THAT(markdown, HasSubstr("DuckDB, 2 threads"));
  EXPECT_THAT(markdown, HasSubstr("| q1.1 | yes | "));
  EXPECT_THAT(markdown, HasSubstr("| sum | 13 of 13 |"));
  const auto json = nlohmann::json::parse(read(path("out/sql.json")));
  ASSERT_EQ(json["queries"].size(), 13u);
  for (const auto& query : json["queries"]) {
    EXPECT_EQ(query["right"], true) << query;
    EXPECT_EQ(query["fallbacks"], 0) << query;
    for (const char* time : {"planning_ms", "planning_again_ms", "compile_ms", "cached_ms", "duckdb_ms"}) EXPECT_GT(query[time], 0) << query;
    EXPECT_GT(query["kernels"], 0);
  }
  // Own queries over own data, of every type, and one that cannot be translated.
  fs::create_directories(path("shop"));
  fs::create_directories(path("queries"));
  write("shop/t.csv", "b,i,f,s,d,t0\n1,-5,0.5,ink,2024-02-29,2024-02-29 10:00:00\n0,7,1e9,pen,2024-03-01,2024-02-29 10:00:01\n");
  write("queries/a.sql", "select * from t order by i;\nselect b, sum(i), max(d), min(t0) from t group by b;\n");
  r = run("rndn bench sql --queries queries --data shop --device cpu --runs 1");
  EXPECT_THAT(r.out, HasSubstr("| a-1 | yes"));
  EXPECT_THAT(r.out, HasSubstr("| sum | 2 of 2 |")) << r.err << r.out;
  write("queries/b.sql", "select hash(s) from t;\n");
  r = run("rndn bench sql --queries queries --data shop --device cpu --runs 1");
  EXPECT_EQ(r.exit_code, 70);
  EXPECT_THAT(r.out, HasSubstr("| b | refused: the function hash has no translation"));
  EXPECT_THAT(r.err, HasSubstr("b.sql:1:8: error: the function hash has no translation"));
  EXPECT_EQ(run("rndn bench sql --queries no-such --data tpch:0.01 --device cpu").exit_code, 1);
  EXPECT_EQ(run("rndn bench sql --data shop --device cpu").exit_code, 2);
  EXPECT_EQ(run("rndn bench sql --queries tpch --device cpu").exit_code, 2);
}

// `script` gives the program a terminal.
TEST_F(CliSql, ATerminalGetsTheFirstRows) {
  if (run("script --version").exit_code != 0) GTEST_SKIP() << "skipped: there is no `script`";
  const std::string command = "rndn sql 'select o_orderkey from orders order by 1' --data tpch:0.001 --device cpu";
  auto lines = [&](const std::string& more) {
    const std::string text = run("script -qec \"" + command + more + "\" /dev/null").out;
    return std::pair(std::count(text.begin(), text.end(), '\n'), text);
  };
  EXPECT_EQ(lines("").first, 43);
  EXPECT_THAT(lines("").second, HasSubstr("(1500 rows, 40 shown; --max-rows 0 shows all)"));
  EXPECT_EQ(lines(" --max-rows 5").first, 8);
  EXPECT_EQ(lines(" --max-rows 0").first, 1503);
  const std::string all = run(command + " --max-rows 5").out;
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 1503) << "no terminal: nothing is lost";
}

TEST_F(Cli, ATerminalGetsNoCubin) {
  if (run("script --version").exit_code != 0) GTEST_SKIP() << "skipped: there is no `script`";
  const std::string command = "rndn compile " RNDN_SOURCE_DIR "/tpch/queries/q06.hir --arch sm_86";
  const Ran refused = run("script -qec '" + command + "' /dev/null"), taken = run(command);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.out, HasSubstr("a cubin is not for a terminal: -o FILE writes it"));
  EXPECT_EQ(taken.exit_code, 0);
  EXPECT_TRUE(taken.out.starts_with("\x7f" "ELF"));
}

TEST_F(CliSql, SaysWhatIsWrong) {
  write("q.sql", "select 1;\nselect l_qantity\nfrom lineitem;\n");
  Ran r = run("rndn sql q.sql --data tpch:0.01 --device cpu");
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_EQ(r.err,
            "q.sql:2:8: error: there is no column `l_qantity`; did you mean `l_quantity`?\n"
            "  select l_qantity\n"
            "         ^~~~~~~~~\n");
  expect("rndn sql 'selec 1' --device cpu", 1, "",
         "<query>:1:1: error: syntax error at or near `selec`\n  selec 1\n  ^~~~~\n");
  expect("rndn sql 'select * from orders' --device cpu", 1, "",
         "<query>:1:15: error: there is no table `orders`\n  select * from orders\n                ^~~~~~\n"
         "note: tables are files, FROM 'shop.csv', and what --data names\n");
  expect("rndn sql ' -- nothing\n;' --device cpu", 1, "", "error: <query>: there is no statement\n");
  EXPECT_EQ(run("rndn sql missing.sql").exit_code, 1);
  EXPECT_EQ(run("rndn sql").exit_code, 2);
  EXPECT_EQ(run("rndn sql 'select 1' --emit thing").exit_code, 2);
}

TEST_F(Cli, SqlWithoutItsPlannerSaysWhatToInstall) {
  Ran r = run("RNDN_DUCKDB=/nonexistent/libduckdb.so rndn sql 'select 1' --device cpu");
  EXPECT_EQ(r.exit_code, 3);
  EXPECT_EQ(r.out, "");
  EXPECT_THAT(r.err, StartsWith("error: SQL needs DuckDB 2.0.1 as its planner, and RNDN_DUCKDB names "));
  // A copy of the program alone, and no Python that has it.
  fs::create_directories(path("bin"));
  fs::copy(RNDN_BIN_DIR "/rndn", path("bin/rndn"));
  write("bin/python3", "#!/bin/sh\nexit 1\n");
  fs::permissions(path("bin/python3"), fs::perms::owner_all);
  r = run("unset RNDN_DUCKDB; PATH=\"$PWD/bin:$PATH\" bin/rndn sql 'select 1' --device cpu");
  EXPECT_EQ(r.exit_code, 3);
  EXPECT_EQ(r.err,
            "error: SQL needs DuckDB 2.0.1 as its planner: run tools/sql-planner, which installs it (`python3` has no duckdb: "
            "`python3`, which plans SQL, has ended without an answer)\n");
}

}  // namespace
