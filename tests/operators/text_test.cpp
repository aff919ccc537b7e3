// What operators make of strings, against the host: random texts of the kinds that go wrong (empty,
// one byte, equal first words, zeros, characters of two to four bytes, bytes that are none).
#include <algorithm>
#include <random>
#include <set>

#include "runtime/text/utf8.h"
#include "tests/operators/support.h"

namespace rndn::operators {
namespace {

std::vector<std::string> some_texts(size_t count, uint64_t seed, bool ascii) {
  std::mt19937_64 random(seed);
  const std::vector<std::string> bits = {"a",
                                         "Z",
                                         "z{",
                                         "@[`",
                                         "abcdefgh",
                                         "Abcdefgh",
                                         " ",
                                         "0123456789",
                                         std::string(1, '\0'),
                                         std::string(9, '\0'),
                                         "\x7f"};
  const std::vector<std::string> others = {
      "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\x80",     "\xff",
      "\xc3",     "\xe2\x82",     "\xf0\x9f\x98",     "\xf5\x80", "\xc1\x81"};
  std::vector<std::string> texts;
  while (texts.size() < count) {
    std::string text;
    for (uint64_t n = random() % 6; n > 0; --n)
      text += !ascii && random() % 4 == 0 ? others[random() % others.size()]
                                          : bits[random() % bits.size()];
    if (random() % 40 == 0) text += std::string(300, 'q');
    texts.push_back(text);
  }
  return texts;
}

class StringsTest : public testing::TestWithParam<const char*> {
 protected:
  test::Bench bench_{GetParam()};

  std::vector<std::string> get(const Strings& s) {
    std::vector<uint64_t> handles(s.count);
    std::string pad(s.pad_bytes, '\0');
    EXPECT_TRUE(bench_.device->copy_to_host(handles.data(), s.handles, 8 * s.count).ok());
    EXPECT_TRUE(bench_.device->copy_to_host(pad.data(), s.pad, pad.size()).ok());
    std::vector<std::string> out;
    for (uint64_t h : handles) out.push_back(pad.substr(h >> 24, h & 0xffffff));
    return out;
  }
};

TEST_P(StringsTest, LiteralsAreFound) {
  for (const size_t count : {size_t{1}, size_t{255}, size_t{2000}}) {
    const std::vector<std::string> texts = some_texts(count, count, false);
    const Strings strings = bench_.put(texts);
    for (const size_t wanted : {size_t{1}, size_t{2}, size_t{7}, size_t{60}}) {
      std::set<std::string> chosen = {"nowhere at all"};
      for (size_t k = 0; k + 1 < wanted; ++k)
        chosen.insert(texts[(k * 37) % texts.size()] + (k % 5 == 4 ? "\1" : ""));
      const std::vector<std::string> literals(chosen.begin(), chosen.end());
      const Strings few = bench_.put(literals);
      std::vector<uint32_t> first(literals.size(), UINT32_MAX), numbers, places;
      for (uint32_t i = 0; i < texts.size(); ++i) {
        const auto at = std::lower_bound(literals.begin(), literals.end(), texts[i]);
        const auto k = static_cast<size_t>(at - literals.begin());
        const bool equal = at != literals.end() && *at == texts[i];
        if (equal) first[k] = std::min(first[k], i);
        numbers.push_back(equal ? first[k] : i);
        places.push_back(static_cast<uint32_t>(2 * k + equal));
      }
      auto same = bench_.sql->same_as(strings, few, *bench_.memory);
      ASSERT_TRUE(same.ok()) << same.error().message;
      EXPECT_EQ(bench_.get<uint32_t>(same->numbers), numbers);
      EXPECT_EQ(
          bench_.get<uint32_t>({.type = Type::u32, .data = same->literals, .capacity = few.count}),
          first);
      auto placed = bench_.sql->places_among(strings, few, *bench_.memory);
      ASSERT_TRUE(placed.ok()) << placed.error().message;
      EXPECT_EQ(bench_.get<uint32_t>(*placed), places);
    }
  }
}

TEST_P(StringsTest, PartsAndLengths) {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{700}}) {
    const std::vector<std::string> texts = some_texts(count, 3, false);
    const Strings strings = bench_.put(texts);
    for (const bool characters : {false, true}) {
      std::vector<int64_t> lengths;
      for (const std::string& x : texts)
        lengths.push_back(static_cast<int64_t>(characters ? text::characters(x) : x.size()));
      auto got = bench_.sql->lengths(strings, characters, *bench_.memory);
      ASSERT_TRUE(got.ok()) << got.error().message;
      EXPECT_EQ(bench_.get<int64_t>(*got), lengths);
      for (const auto& [first, most] :
           std::vector<std::pair<uint64_t, uint64_t>>{{0, 3},
                                                      {2, 5},
                                                      {0, UINT64_MAX},
                                                      {4, 0},
                                                      {9, 1},
                                                      {1000, 2},
                                                      {UINT64_MAX, UINT64_MAX}}) {
        std::vector<std::string> want;
        for (const std::string& x : texts) {
          const size_t begin =
              characters ? text::byte_of_character(x, first) : std::min<size_t>(first, x.size());
          const std::string rest = x.substr(begin);
          want.push_back(rest.substr(0, characters ? text::byte_of_character(rest, most) : most));
        }
        auto cut = bench_.sql->cut(strings, first, most, characters, *bench_.memory);
        ASSERT_TRUE(cut.ok()) << cut.error().message;
        EXPECT_EQ(get(*cut), want) << first << ", " << most;
      }
    }
    auto numbers = bench_.sql->numbers(7, count, *bench_.memory);
    ASSERT_TRUE(numbers.ok()) << numbers.error().message;
    const std::vector<uint32_t> numbered = bench_.get<uint32_t>(*numbers);
    ASSERT_EQ(numbered.size(), count);
    for (uint32_t i = 0; i < count; ++i) ASSERT_EQ(numbered[i], i + 7);
  }
}

TEST_P(StringsTest, CaseAndWhatIsNotAscii) {
  for (const bool ascii : {true, false})
    for (const size_t count : {size_t{0}, size_t{1}, size_t{900}}) {
      const std::vector<std::string> texts = some_texts(count, 5, ascii);
      const Strings strings = bench_.put(texts);
      for (const bool upper : {true, false}) {
        std::vector<std::string> want = texts, mapped;
        std::vector<int64_t> others;
        for (size_t i = 0; i < texts.size(); ++i) {
          bool other = false;
          for (char& c : want[i]) {
            other = other || static_cast<uint8_t>(c) >= 0x80;
            if (upper ? c >= 'a' && c <= 'z' : c >= 'A' && c <= 'Z')
              c = static_cast<char>(c ^ 0x20);
          }
          if (!other) continue;
          others.push_back(static_cast<int64_t>(i));
          mapped.push_back("<" + texts[i] + ">");
        }
        auto got = bench_.sql->to_case(strings, upper, *bench_.memory);
        ASSERT_TRUE(got.ok()) << got.error().message;
        EXPECT_EQ(get(got->strings), want);
        ASSERT_EQ(bench_.get<int64_t>(got->others), others);
        for (size_t k = 0; k < others.size(); ++k) want[static_cast<size_t>(others[k])] = mapped[k];
        auto replaced =
            bench_.sql->replace(got->strings, got->others, bench_.put(mapped), *bench_.memory);
        ASSERT_TRUE(replaced.ok()) << replaced.error().message;
        EXPECT_EQ(get(*replaced), want);
      }
    }
}

TEST_P(StringsTest, OneAfterTheOther) {
  std::vector<std::string> all;
  std::vector<Strings> parts;
  for (const size_t count : {size_t{5}, size_t{0}, size_t{300}, size_t{1}}) {
    const std::vector<std::string> texts = some_texts(count, count, false);
    parts.push_back(bench_.put(texts));
    all.insert(all.end(), texts.begin(), texts.end());
  }
  auto got = bench_.sql->concatenate(parts, *bench_.memory);
  ASSERT_TRUE(got.ok()) << got.error().message;
  EXPECT_EQ(get(*got), all);
}

INSTANTIATE_TEST_SUITE_P(Targets, StringsTest, testing::ValuesIn(test::targets));

}  // namespace
}  // namespace rndn::operators
