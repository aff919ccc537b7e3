// like against a matcher that tries every split.
#include <random>

#include "tests/operators/support.h"

namespace rndn::operators::like_test {
namespace {

bool matches(std::string_view text, std::string_view pattern) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '%') {
    for (size_t taken = 0; taken <= text.size(); ++taken)
      if (matches(text.substr(taken), pattern.substr(1))) return true;
    return false;
  }
  return !text.empty() && (pattern[0] == '_' || pattern[0] == text[0]) && matches(text.substr(1), pattern.substr(1));
}

void check(test::Bench& bench, const std::vector<std::string>& texts, const Strings& strings,
           std::string_view pattern) {
  auto got = bench.sql->like(strings, pattern, *bench.memory);
  ASSERT_TRUE(got.ok()) << got.error().message;
  const std::vector<uint8_t> flags = bench.get<uint8_t>(*got);
  ASSERT_EQ(flags.size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i)
    ASSERT_EQ(flags[i], matches(texts[i], pattern)) << "`" << texts[i] << "` like `" << pattern << "`";
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
  check(bench, texts, strings, whole + "_" + whole);
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
