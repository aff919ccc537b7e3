// The books: what they and the code refer to is in the repository, the table of components in
// ARCHITECTURE.md is what CMake declares, and prose stays short.
//
//   RNDN_RECORD=1 test_structure --gtest_filter=Books.TheTableOfComponents*    writes the table anew
//
// References that are looked at, in every text file of the repository:
//   a page (`name.md`), with its numbered section or decision where one is named, and its headings
//   where they follow in quotes on the line;
//   links of Markdown, with their anchors;
//   in Markdown, paths and names of source files in backticks;
//   in sources, names of source files in comments.
// Left out: addresses on the web, names with placeholders, files that are made by the build.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/structure/components.h"

namespace {
namespace fs = std::filesystem;

std::string contents(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Generated pages, which are neither prose nor short of it.
const std::set<std::string> written_by_commands = {"docs/evaluation.md", "docs/ptx-opcodes.md", "docs/status.md"};
// The driver's headers, and pages that programs write.
const std::set<std::string> elsewhere = {"cuda.h", "cudaTypedefs.h", "evaluation.md", "first/evaluation.md",
                                         "sql.md", "out/sql.md"};

struct Repository {
  std::vector<std::string> files;      // text files, relative to the root
  std::set<std::string> paths, names;  // of all files and folders; last parts of them

  Repository() {
    const fs::path root = RNDN_SOURCE_DIR;
    for (auto at = fs::recursive_directory_iterator(root); at != fs::recursive_directory_iterator(); ++at) {
      const std::string name = at->path().filename().string();
      if (at->is_directory() && at.depth() == 0 &&
          (name.starts_with("build") || (name.starts_with(".") && name != ".ci") || name == "data")) {
        at.disable_recursion_pending();
        continue;
      }
      const std::string path = fs::relative(at->path(), root).generic_string();
      paths.insert(path), names.insert(name);
      if (at->is_regular_file() && at->file_size() < (8u << 20)) files.push_back(path);
    }
    std::sort(files.begin(), files.end());
  }
  // As seen from a file: relative to the root or to the file's folder.
  std::string find(const std::string& path, const std::string& from) const {
    for (const fs::path& start : {fs::path(), fs::path(from).parent_path()}) {
      std::string full = (start / path).lexically_normal().generic_string();
      if (full.ends_with('/')) full.pop_back();
      if (paths.count(full)) return full;
    }
    return {};
  }
};
const Repository& repository() {
  static const Repository all;
  return all;
}

// The numbers of a page: those that headings begin with, and those of paragraphs in bold (decisions).
const std::set<std::string>& numbers_of(const std::string& page) {
  static std::map<std::string, std::set<std::string>> known;
  const auto [at, fresh] = known.try_emplace(page);
  if (fresh) {
    static const std::regex number(R"(^(?:#+ |\*\*)(\d+(?:\.\d+)*)\.? .*)");
    std::istringstream in(contents(fs::path(RNDN_SOURCE_DIR) / page));
    std::smatch m;
    for (std::string line; std::getline(in, line);)
      if (std::regex_match(line, m, number)) at->second.insert(m[1]);
  }
  return at->second;
}

const std::set<std::string>& headings_of(const std::string& page) {
  static std::map<std::string, std::set<std::string>> known;
  const auto [at, fresh] = known.try_emplace(page);
  if (fresh) {
    std::istringstream in(contents(fs::path(RNDN_SOURCE_DIR) / page));
    for (std::string line; std::getline(in, line);)
      if (line.starts_with('#') && line.find(' ') != line.npos) at->second.insert(line.substr(line.find(' ') + 1));
  }
  return at->second;
}

// Anchors as web hosts make them: lower case, spaces as hyphens, without punctuation.
std::set<std::string> anchors_of(const std::string& page) {
  std::set<std::string> anchors;
  std::istringstream in(contents(fs::path(RNDN_SOURCE_DIR) / page));
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with('#')) continue;
    std::string anchor;
    for (char c : line.substr(std::min(line.find_first_not_of("# "), line.size()))) {
      if (c == ' ') anchor += '-';
      if (std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_')
        anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    anchors.insert(anchor);
  }
  return anchors;
}

bool has_placeholder(const std::string& text) { return text.find_first_of("<>{}$%[]~ ") != std::string::npos; }
bool is_markdown(const std::string& path) { return path.ends_with(".md"); }
bool is_text(const std::string& path) {
  static const std::set<std::string> kinds = {".h",     ".cpp", ".def", ".l",   ".y",  ".c",   ".md",   ".py",  ".txt",
                                              ".cmake", ".hir", ".ptx", ".tsv", ".cu", ".cuh", ".json", ".sql", ""};
  return kinds.count(fs::path(path).extension().string()) != 0;
}

// The references of one file, each with the line that it stands on, that lead nowhere.
class References {
 public:
  explicit References(const std::string& path) : path_(path), markdown_(is_markdown(path)) {
    std::istringstream in(contents(fs::path(RNDN_SOURCE_DIR) / path));
    std::string before;
    for (std::string line; std::getline(in, line); ++number_) {
      pages(line);
      decisions(before + " " + line, before.size());
      if (markdown_) {
        links(line);
        backticks(line);
      } else if (const size_t comment = line.find("//"); comment != std::string::npos) {
        sources(line.substr(comment));
      }
      before = line;
    }
  }
  const std::vector<std::string>& broken() const { return broken_; }
  size_t seen() const { return seen_; }

 private:
  template <class F>
  static void each(const std::string& line, const std::regex& pattern, std::string_view sign, F&& use) {
    if (line.find(sign) == std::string::npos) return;  // what every match has: most lines are quick
    for (auto m = std::sregex_iterator(line.begin(), line.end(), pattern); m != std::sregex_iterator(); ++m) use(*m);
  }
  void expect(bool holds, const std::string& what) {
    ++seen_;
    if (!holds) broken_.push_back(path_ + ":" + std::to_string(number_) + ": " + what);
  }
  // What stands at `at` is part of an address on the web.
  static bool on_the_web(const std::string& line, size_t at) {
    const size_t space = line.find_last_of(" (<\"", at);
    const size_t begin = space == std::string::npos ? 0 : space;
    return line.substr(begin, at - begin + 1).find("://") != std::string::npos;
  }

  void pages(const std::string& line) {
    static const std::regex page(R"(([\w./-]*\w\.md)\b(?:`|\))?(?:,? (?:sections? )?(\d+(?:\.\d+)*))?)");
    each(line, page, ".md", [&](const std::smatch& m) {
      const size_t at = static_cast<size_t>(m.position(1));
      if (on_the_web(line, at) || (at > 0 && std::string("*}>").find(line[at - 1]) != std::string::npos)) return;
      std::string name = m[1];
      if (elsewhere.count(name)) return;
      if (name.starts_with('/')) name.erase(0, 1);  // behind the name of the root
      const std::string full = repository().find(name, path_);
      expect(!full.empty(), "there is no " + name);
      if (!full.empty() && m[2].matched)
        expect(numbers_of(full).count(m[2]) != 0, full + " has no number " + m[2].str());
      if (!full.empty()) headings(full, m.suffix());
    });
  }
  // `, "Types" and "Shapes"` behind the name of a page.
  void headings(const std::string& page, std::string rest) {
    static const std::regex heading(R"(^(?:,| and|, and) "([^"]+)\")");
    for (std::smatch m; std::regex_search(rest, m, heading); rest = m.suffix().str())
      expect(headings_of(page).count(m[1]) != 0, page + " has no heading \"" + m[1].str() + "\"");
  }
  // `decision 4` alone means docs/decisions.md; a reference may be broken between two lines.
  void decisions(const std::string& two_lines, size_t first) {
    static const std::regex decision(R"(\bdecisions? (\d+)\b)");
    each(two_lines, decision, "decision", [&](const std::smatch& m) {
      if (static_cast<size_t>(m.position(1)) <= first) return;  // seen with the line before
      expect(numbers_of("docs/decisions.md").count(m[1]) != 0, "docs/decisions.md has no number " + m[1].str());
    });
  }
  void links(const std::string& line) {
    static const std::regex link(R"(\]\(([^)\s]+)\))");
    each(line, link, "](", [&](const std::smatch& m) {
      const std::string target = m[1];
      if (target.find("://") != std::string::npos || target.starts_with("mailto:")) return;
      const size_t hash = target.find('#');
      const std::string page = hash == 0 ? path_ : repository().find(target.substr(0, hash), path_);
      expect(!page.empty(), "the link to " + target + " leads nowhere");
      if (!page.empty() && hash != std::string::npos)
        expect(anchors_of(page).count(target.substr(hash + 1)) != 0, page + " has no " + target.substr(hash));
    });
  }
  void backticks(const std::string& line) {
    static const std::regex code("`([^`]+)`");
    each(line, code, "`", [&](const std::smatch& m) {
      const std::string text = m[1];
      if (text.starts_with('/') || has_placeholder(text)) return;
      if (const size_t star = text.find('*'); star != std::string::npos) {
        if (text.find('/') < star && repository().paths.count(text.substr(0, text.find('/'))))
          expect(matches(text.substr(0, star), text.substr(star + 1)), "nothing is called `" + text + "`");
        return;
      }
      const size_t slash = text.find('/');
      if (slash != std::string::npos) {
        // A path begins with a folder of the repository; all else with a slash is something else.
        if (!repository().paths.count(text.substr(0, slash)) || text.find("..") != std::string::npos) return;
        expect(!repository().find(text, path_).empty(), "there is no `" + text + "`");
      } else {
        source(text);
      }
    });
  }
  void sources(const std::string& comment) {
    static const std::regex name(R"([\w./-]*\w\.(?:cpp|h|def|y|l|md|py)\b)");
    each(comment, name, ".", [&](const std::smatch& m) {
      if (on_the_web(comment, static_cast<size_t>(m.position(0)))) return;
      source(m.str());
    });
  }
  static bool matches(const std::string& begin, const std::string& end) {
    const auto& paths = repository().paths;
    return end.find('*') != std::string::npos || std::any_of(paths.begin(), paths.end(), [&](const std::string& p) {
             return p.starts_with(begin) && p.ends_with(end);
           });
  }
  // A name of a source file: with folders it is that file, alone it is some file's.
  void source(const std::string& name) {
    static const std::regex file(R"([\w./-]+\.(?:cpp|h|def|y|py))");
    if (!std::regex_match(name, file) || elsewhere.count(name)) return;
    if (name.find('/') == std::string::npos) {
      expect(repository().names.count(name) != 0, "no file is called " + name);
    } else {
      const auto& paths = repository().paths;
      expect(!repository().find(name, path_).empty() ||
                 (!paths.count(name.substr(0, name.find('/'))) && matches("", "/" + name)),
             "there is no " + name);
    }
  }

  const std::string path_;
  const bool markdown_;
  size_t number_ = 1, seen_ = 0;
  std::vector<std::string> broken_;
};

TEST(Books, EveryReferenceLeadsSomewhere) {
  size_t seen = 0;
  for (const std::string& path : repository().files) {
    if (!is_text(path) || path.ends_with("books_test.cpp")) continue;
    const References references(path);
    seen += references.seen();
    for (const std::string& what : references.broken()) ADD_FAILURE() << what;
  }
  EXPECT_GT(seen, 300u) << "hardly any reference was seen: is the test looking in the right place?";
}

constexpr size_t kilobyte = 1000, most_prose = 160 * kilobyte, most_language = 70 * kilobyte,
                 most_status = 16 * kilobyte;

// The rows of ARCHITECTURE.md: in CMake's order, which is that of the pipeline.
std::string table_of_components() {
  std::string out = "| folder | what it is | may include |\n| --- | --- | --- |\n";
  for (const Component& c : read_components()) {
    EXPECT_FALSE(c.about.empty()) << "component(" << c.name << " ..) has no ABOUT";
    std::string deps;
    for (const std::string& d : c.deps) deps += (deps.empty() ? "" : ", ") + d;
    out += "| `" + c.folder + "` | " + c.about + " | " + (deps.empty() ? "–" : deps) + " |\n";
  }
  return out;
}

TEST(Books, ProseIsShort) {
  size_t prose = 0;
  for (const std::string& path : repository().files) {
    if (!is_markdown(path) || written_by_commands.count(path)) continue;
    const size_t bytes = contents(fs::path(RNDN_SOURCE_DIR) / path).size();
    prose += bytes;
    if (path == "docs/horseir.md") {
      EXPECT_LE(bytes, most_language) << path;
    }
  }
  prose -= table_of_components().size();  // in ARCHITECTURE.md, written by the test below
  EXPECT_LE(prose, most_prose) << "all that is written by hand";
  EXPECT_LE(contents(fs::path(RNDN_SOURCE_DIR) / "docs/status.md").size(), most_status);
}

TEST(Books, TheTableOfComponentsIsWhatCMakeDeclares) {
  const fs::path file = fs::path(RNDN_SOURCE_DIR) / "ARCHITECTURE.md";
  const std::string begin = "<!-- components: written by test_structure -->\n", end = "<!-- end -->\n";
  const std::string text = contents(file);
  const size_t from = text.find(begin), to = text.find(end);
  ASSERT_TRUE(from != std::string::npos && to != std::string::npos && from < to) << "the marks are missing";
  const std::string wanted = text.substr(0, from + begin.size()) + table_of_components() + text.substr(to);
  if (std::getenv("RNDN_RECORD")) std::ofstream(file, std::ios::binary) << wanted;
  EXPECT_EQ(contents(file), wanted);
}

}  // namespace
