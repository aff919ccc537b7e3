// Dependencies point one way: every #include of a component's file names a file of the component itself, or a public
// header of a component in its DEPS (cmake/component.cmake writes the table). A new include that breaks the direction
// fails here, whatever the linker says.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/structure/components.h"

namespace {
namespace fs = std::filesystem;

// The component that owns a path relative to the root: the one with the longest folder that is a prefix. Components may
// share a folder; then the one that lists the header wins, else the first.
const Component* owner(const std::vector<Component>& table, const std::string& path) {
  const Component* best = nullptr;
  for (const Component& c : table) {
    if (path.rfind(c.folder + "/", 0) != 0) continue;
    if (!best || c.folder.size() > best->folder.size()) best = &c;
  }
  return best;
}

std::vector<std::string> quoted_includes(const fs::path& file) {
  std::vector<std::string> found;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    size_t at = line.find_first_not_of(" \t");
    if (at == std::string::npos || line[at] != '#') continue;
    size_t open = line.find("include \"", at);
    if (open == std::string::npos) continue;
    open += 9;
    found.push_back(line.substr(open, line.find('"', open) - open));
  }
  return found;
}

bool is_source(const fs::path& path) {
  static const std::vector<std::string> kinds = {".h", ".cpp", ".def", ".l", ".y", ".inc"};
  return std::find(kinds.begin(), kinds.end(), path.extension().string()) != kinds.end();
}

TEST(Structure, EveryIncludeFollowsTheDeclaredDependencies) {
  std::vector<Component> table = read_components();
  ASSERT_GE(table.size(), 10u) << "the component table is missing or empty";
  fs::path root = RNDN_SOURCE_DIR;
  size_t checked = 0;
  for (const Component& component : table) {
    for (const auto& entry : fs::recursive_directory_iterator(root / component.folder)) {
      if (!entry.is_regular_file() || !is_source(entry.path())) continue;
      std::string path = fs::relative(entry.path(), root).string();
      if (owner(table, path) != &component) continue;
      for (const std::string& include : quoted_includes(entry.path())) {
        if (!fs::exists(root / include)) continue;  // made by the build
        const Component* target = owner(table, include);
        ++checked;
        ASSERT_NE(target, nullptr) << path << " includes " << include << ", which no component owns";
        if (target == &component) continue;
        bool declared = std::find(component.deps.begin(), component.deps.end(), target->name) != component.deps.end();
        EXPECT_TRUE(declared) << path << " includes " << include << ", but component `" << component.name
                              << "` does not depend on `" << target->name << "`";
        std::string file = include.substr(target->folder.size() + 1);
        bool is_public = std::find(target->headers.begin(), target->headers.end(), file) != target->headers.end();
        EXPECT_TRUE(is_public) << path << " includes " << include << ", which is private to component `" << target->name
                               << "`";
      }
    }
  }
  EXPECT_GT(checked, 50u) << "hardly any include was seen: is the test looking in the right place?";
}

// All components that a component reaches through DEPS, itself not counted.
std::set<std::string> reached(const std::vector<Component>& table, const std::string& from) {
  std::set<std::string> seen;
  std::vector<std::string> open{from};
  while (!open.empty()) {
    const std::string name = open.back();
    open.pop_back();
    for (const Component& c : table)
      if (c.name == name)
        for (const std::string& dep : c.deps)
          if (seen.insert(dep).second) open.push_back(dep);
  }
  return seen;
}

// The lists of DEPS are the one source of who may include whom. What must hold of them whatever they say:
TEST(Structure, DependenciesHaveNoCircle) {
  const std::vector<Component> table = read_components();
  ASSERT_GT(table.size(), 20u);
  for (const Component& c : table)
    EXPECT_FALSE(reached(table, c.name).contains(c.name)) << "`" << c.name << "` depends on itself";
}

TEST(Structure, WitnessesAndStagesStayApart) {
  const std::vector<Component> table = read_components();
  const std::map<std::string, std::set<std::string>> at_most = {
      {"base", {}},
      {"frontend", {"base"}},
      {"planner", {"base", "frontend", "frontend_sql"}},  // the only one that knows DuckDB
      {"outliner", {"base", "frontend"}},
      {"ptx", {"base"}},
      {"transform", {"base", "ptx"}},
      {"ptx_interpreter", {"base", "ptx"}},      // a witness: knows no SASS
      {"isa", {"base"}},
      {"cubin", {"base", "isa"}},
      {"simulator", {"base", "isa", "cubin"}},   // a witness: none of the passes that it checks
      {"check", {"base", "isa", "ptx", "machine"}},  // the same
      {"reference", {"base", "frontend", "data", "text"}},  // the oracle, but for functions of texts
      {"text", {"base", "frontend"}},
      {"data", {"base", "frontend"}},
      {"operators", {"base", "frontend", "ptx", "lookup", "encodings", "sums", "device"}},  // frontend: its types
      {"lookup", {"base", "ptx"}},
      {"encodings", {"base", "frontend", "ptx"}},
      {"sums", {"base", "ptx"}},
  };
  for (const auto& [name, allowed] : at_most) {
    EXPECT_TRUE(std::any_of(table.begin(), table.end(), [&](const Component& c) { return c.name == name; })) << name;
    for (const std::string& dep : reached(table, name)) EXPECT_TRUE(allowed.contains(dep)) << name << " reaches " << dep;
  }
}

// A folder that shows what it holds: no more than thirty sources side by side.
TEST(Structure, NoFolderOfTheProductIsAHall) {
  const fs::path root = RNDN_SOURCE_DIR;
  std::map<fs::path, int> sources;
  for (const char* top : {"libraries", "frontend", "outliner", "ptx", "assembler", "runtime", "tpch", "tools"})
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / top))
      if (entry.path().extension() == ".cpp") ++sources[entry.path().parent_path()];
  EXPECT_GT(sources.size(), 20u);
  for (const auto& [folder, count] : sources) EXPECT_LE(count, 30) << folder;
}

}  // namespace
