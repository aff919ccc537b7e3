// Every program below examples/horseir, examples/tutorial and examples/recipes, run on the reference interpreter and
// on the simulator, gives what its file NAME.out holds. RNDN_UPDATE=1 writes those files anew, from
// the reference interpreter.
#include <gtest/gtest.h>

#include <cstdlib>

#include "libraries/base/system/files.h"
#include "tests/docs/run_program.h"

namespace rndn::docs {
namespace {

bool updating() {
  const char* update = std::getenv("RNDN_UPDATE");
  return update && std::string_view(update) == "1";
}

void run_folder(const std::string& folder) {
  Runner runner;
  const std::vector<std::string> names = stems(folder, ".hir");
  ASSERT_FALSE(names.empty());
  for (const std::string& name : names) {
    const std::string path = folder + "/" + name;
    const std::string program = read(path + ".hir");
    if (updating()) {
      const Outcome outcome = runner.run(Where::reference, path + ".hir", program);
      ASSERT_EQ(outcome.error, "");
      ASSERT_TRUE(write_file(path + ".out", outcome.text).ok());
    }
    const std::string wanted = read(path + ".out");
    for (Where where : both) {
      const Outcome outcome = runner.run(where, path + ".hir", program);
      EXPECT_EQ(outcome.error, "") << name_of(where);
      EXPECT_TRUE(agree(rows_of(outcome.text, true), rows_of(wanted, true)))
          << path << ".hir on the " << name_of(where) << " gives\n"
          << outcome.text << "and " << path << ".out has\n"
          << wanted;
    }
  }
  EXPECT_EQ(stems(folder, ".out"), names) << "outputs without a program in " << folder;
}

TEST(Examples, OfBuiltinsGiveTheirOutputs) { run_folder("examples/horseir"); }
TEST(Examples, OfTheTutorialGiveTheirOutputs) { run_folder("examples/tutorial"); }
TEST(Examples, OfTheRecipesGiveTheirOutputs) { run_folder("examples/recipes"); }

// Each is named where a builtin of it is told.
TEST(Examples, RecipesAreFoundFromTheLanguagesPage) {
  const std::string page = read(RNDN_SOURCE_DIR "/docs/horseir.md");
  for (const std::string& name : stems("examples/recipes", ".hir"))
    EXPECT_NE(page.find("examples/recipes/" + name + ".hir"), std::string::npos) << name;
}

// What the comparison takes for equal, and what not.
TEST(Examples, AreComparedByRowsAndDigits) {
  EXPECT_EQ(rows_of("a   b\n--  -\n 1  x y\n 2  z\n(2 rows)\n", true), "a b, 1 x y, 2 z");
  EXPECT_EQ(rows_of("a   b\n--  -\n 1  x y\n 2  z\n(2 rows)\n", false), "1 x y, 2 z");
  EXPECT_EQ(rows_of("said\nvalue\n-----\n(0 rows)\n\nvalue\n-----\n-3\n(1 row)\n", false),
            "said | -3");
  EXPECT_EQ(rows_of("value\n-----\n(0 rows)\n\nvalue\n-----\n-3\n(1 row)\n", false), "() | -3");
  EXPECT_TRUE(agree("(0.88137358701954297, x)", "(0.88137358701954305, x)"));
  EXPECT_TRUE(agree("", ""));
  for (auto [a, b] : {std::pair("1, 2", "1 2"),
                      {"1", "1, 2"},
                      {"(1, 2)", "1, 2"},
                      {"1", "2"},
                      {"0.5", "0.5000001"},
                      {"nan", "inf"},
                      {"", "1"},
                      {"x", "y"},
                      {"1", "1,"}})
    EXPECT_FALSE(agree(a, b)) << a << " and " << b;
}

}  // namespace
}  // namespace rndn::docs
