// like against a matcher that follows every split at once.
#include <algorithm>
#include <optional>
#include <random>

#include "tests/operators/support.h"

namespace rndn::operators::like_test {
namespace {

// By the set of places in the pattern that the text so far can lead to.
bool matches(std::string_view text, std::string_view pattern, std::optional<char> escape = {}) {
  enum Kind : uint8_t { byte, any, run };
  std::vector<std::pair<Kind, char>> parts;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const bool quoted = escape && pattern[i] == *escape && i + 1 < pattern.size();
    i += quoted;
    parts.push_back({quoted || (pattern[i] != '%' && pattern[i] != '_') ? byte : pattern[i] == '%' ? run : any, pattern[i]});
  }
  std::vector<size_t> at, next;  // ascending
  const auto add = [&](std::vector<size_t>& to, size_t k) {
    for (; to.empty() || to.back() < k; ++k) {
      to.push_back(k);
      if (k == parts.size() || parts[k].first != run) return;
    }
  };
  add(at, 0);
  for (char c : text) {
    next.clear();
    for (size_t k : at) {
      if (k == parts.size()) continue;
      if (parts[k].first == run) add(next, k);
      else if (parts[k].first == any || parts[k].second == c) add(next, k + 1);
    }
    std::swap(at, next);
  }
  return !at.empty() && at.back() == parts.size();
}

// Results that nobody stored are neither true nor false.
class MarkedMemory final : public Memory {
 public:
  explicit MarkedMemory(test::Bench& bench) : bench_(bench) {}
  Result<Address> temporary(uint64_t bytes) override { return bench_.memory->temporary(bytes); }
  Result<Address> result(uint64_t bytes) override {
    ASSIGN_OR_RETURN(const Address at, bench_.memory->result(bytes));
    RETURN_IF_ERROR(bench_.device->fill(at, 0xCC, bytes));
    return at;
  }
  Result<device::Mapped> mapped(uint64_t bytes) override { return bench_.memory->mapped(bytes); }

 private:
  test::Bench& bench_;
};

void check(test::Bench& bench, const std::vector<std::string>& texts, const Strings& strings, std::string_view pattern,
           std::optional<char> escape = {}) {
  MarkedMemory memory(bench);
  auto got = bench.sql->like(strings, pattern, memory, escape);
  ASSERT_TRUE(got.ok()) << got.error().message;
  const std::vector<uint8_t> flags = bench.get<uint8_t>(*got);
  ASSERT_EQ(flags.size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i)
    ASSERT_EQ(flags[i], matches(texts[i], pattern, escape)) << i << ": `" << texts[i] << "` like `" << pattern << "`";
}

// As Bench::put lays strings out, but: with bytes between them, from the last to the first, or all in one text.
enum class Layout : uint8_t { dense, apart, backwards, nested };
Strings lay_out(test::Bench& bench, Layout layout, std::vector<std::string>& texts, std::string_view between, std::mt19937& random) {
  std::string pad;
  std::vector<uint64_t> handles;
  if (layout == Layout::nested) {
    for (size_t i = 0; i < 64; ++i) pad += texts[i % texts.size()] + std::string(between);
    for (std::string& text : texts) {
      const size_t at = random() % pad.size();
      text = pad.substr(at, random() % 40);
      handles.push_back(at << 24 | text.size());
    }
  } else {
    for (size_t k = 0; k < texts.size(); ++k) {
      const std::string& text = texts[layout == Layout::backwards ? texts.size() - 1 - k : k];
      if (layout == Layout::apart) pad += between.substr(0, k % 97 == 0 ? between.size() : random() % std::min<size_t>(33, between.size()));
      handles.push_back(pad.size() << 24 | text.size());
      pad += text;
    }
    if (layout == Layout::backwards) std::reverse(handles.begin(), handles.end());
  }
  Strings out = bench.put({pad});
  out.count = handles.size();
  out.handles = *bench.memory->result(8 * handles.size());
  EXPECT_TRUE(bench.device->copy_to_device(out.handles, handles.data(), 8 * handles.size()).ok());
  return out;
}

class LikeTest : public testing::TestWithParam<const char*> {};

TEST_P(LikeTest, FewLettersManyPatterns) {
  test::Bench bench(GetParam());
  std::mt19937 random(11);
  const auto draw = [&](std::string_view alphabet, size_t n) {
    std::string out;
    while (out.size() < n) out += alphabet[random() % alphabet.size()];
    return out;
  };
  std::vector<std::string> texts = {"", "", "a", "b"};
  for (size_t i = 0; i < 400; ++i) texts.push_back(draw("ab", random() % 24));
  const Strings strings = bench.put(texts);
  for (std::string_view pattern : {"", "%", "%%", "_", "%_", "_%_", "a", "%a", "a%", "a%a", "%a%"})
    check(bench, texts, strings, pattern);
  for (size_t i = 0; i < 120; ++i) {
    check(bench, texts, strings, draw(i % 3 ? "aabb%_" : "ab%", random() % 14));
    if (HasFatalFailure()) return;
  }
}

TEST_P(LikeTest, PatternsOfTheQueries) {
  test::Bench bench(GetParam());
  std::mt19937 random(12);
  const std::vector<std::string> words = {"PROMO",      "MEDIUM",   "POLISHED", "BRASS",    "STEEL",
                                          "green",      "forest",   "special",  "requests", "Customer",
                                          "Complaints", "packages", "s",        "specia",   "lrequests"};
  std::vector<std::string> texts;
  for (size_t i = 0; i < 1100; ++i) {
    std::string text;
    for (size_t k = random() % 9; k > 0; --k) text += (text.empty() ? "" : " ") + words[random() % words.size()];
    texts.push_back(text);
  }
  const Strings strings = bench.put(texts);
  for (std::string_view pattern : {"%BRASS", "%green%", "%special%requests%", "PROMO%", "%Customer%Complaints%",
                                   "MEDIUM POLISHED%", "forest%", "%_pecial%r_quests", "MEDIUM POLISHED BRASS"})
    check(bench, texts, strings, pattern);
}

// Pieces of all lengths, with `_` and without, where the strings follow each other and where they do not, and texts of more words than a warp reads at once.
TEST_P(LikeTest, LayoutsAndPiecesOfEveryLength) {
  test::Bench bench(GetParam());
  std::mt19937 random(13);
  const auto draw = [&](std::string_view alphabet, size_t n) {
    std::string out;
    while (out.size() < n) out += alphabet[random() % alphabet.size()];
    return out;
  };
  for (const Layout layout : {Layout::dense, Layout::apart, Layout::backwards, Layout::nested}) {
    std::vector<std::string> texts;
    for (size_t i = 0; i < 330; ++i) texts.push_back(draw("aab", i % 41 == 7 ? 1000 + random() % 200 : random() % 30));
    texts.insert(texts.begin() + 100, 40, "");
    texts[200] = draw("aab", 2500) + "ba%_ba" + draw("aab", 2500);
    const std::string between = draw("ab", 50);
    const Strings strings = lay_out(bench, layout, texts, between, random);
    for (size_t length = 1; length <= 12; ++length) {
      const std::string piece = draw("aaab", length);
      check(bench, texts, strings, "%" + piece + "%");
      if (length % 3 == 0) check(bench, texts, strings, "%a" + piece + "_" + draw("ab", 13 - length) + "%" + draw("aab", 2) + "%");
      if (length % 4 == 1) check(bench, texts, strings, draw("_%", 2) + "%" + piece + "%b_" + piece + "_");
      if (HasFatalFailure()) return;
    }
    for (std::string_view pattern : {"%a\\%\\_b%", "%\\%%", "b%\\%\\_%", "%\\a_\\%%"}) check(bench, texts, strings, pattern, '\\');
    if (HasFatalFailure()) return;
  }
}

// More strings than all warps take at once: those that few pieces leave are collected over several of their batches, and where most pass, tests pause.
TEST_P(LikeTest, MoreStringsThanWarps) {
  test::Bench bench(GetParam());
  std::mt19937 random(14);
  std::vector<std::string> texts;
  for (size_t i = 0; i < 18000; ++i) {
    static constexpr std::string_view words[] = {"furiously", "special", "packages", "requests"};
    // One in eight has a piece, then all, then one in three.
    const size_t of = i < 6000 ? random() % 8 : i < 9000 ? 1 : random() % 3;
    texts.push_back(std::string(of < 4 ? words[of] : "x") + (random() % 2 ? " requests" : ""));
  }
  const Strings strings = bench.put(texts);
  for (std::string_view pattern : {"%special%req%", "%cia%", "%furious%"}) check(bench, texts, strings, pattern);
}

TEST_P(LikeTest, EveryByteAndLongStrings) {
  test::Bench bench(GetParam());
  std::vector<std::string> texts;
  for (int c = 0; c < 256; ++c) texts.push_back(std::string("x") + static_cast<char>(c) + "y");
  texts.push_back(std::string(5000, 'a') + "b" + std::string(5000, 'a'));
  texts.push_back(std::string(9, '\0'));
  texts.push_back(std::string(5, '\0') + "\x80\x01\x01");
  const Strings strings = bench.put(texts);
  for (int c = 0; c < 256; ++c)
    if (c != '%' && c != '_') check(bench, texts, strings, std::string("x") + static_cast<char>(c) + "%");
  using namespace std::string_view_literals;
  for (std::string_view pattern : {"%\0"sv, "%\0\x80%"sv, "%\x80\x01_"sv, "%\x01\x01"sv, "\0\0\0\0\0\0\0\0\0"sv,
                                   "%ab%"sv, "%aaaab%aaaaaaaa"sv, "%bb%"sv, "x_y"sv, "x[y"sv, "x\\y"sv, "x.y"sv})
    check(bench, texts, strings, pattern);
  const std::string whole(5000, 'a');
  // More than the library keeps on the device.
  for (size_t at : {0, 1, 5000, 7000, 10000}) {
    std::string pattern = whole + "b" + whole;
    pattern[at] = '_';
    check(bench, texts, strings, pattern);
  }
  check(bench, texts, strings, whole + "a%");
}

TEST_P(LikeTest, NoStringsAndCountsAroundABlock) {
  test::Bench bench(GetParam());
  for (size_t n : {0, 1, 31, 32, 33, 255, 256, 257, 1025}) {
    std::vector<std::string> texts;
    for (size_t i = 0; i < n; ++i) texts.push_back(i % 3 ? "abc" : "xabcd");
    check(bench, texts, bench.put(texts), "%bc");
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, LikeTest, testing::ValuesIn(test::targets));

}  // namespace
}  // namespace rndn::operators::like_test
