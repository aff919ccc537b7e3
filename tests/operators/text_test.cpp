// What operators make of strings, against the host: random texts of the kinds that go wrong (empty,
// one byte, equal first words, zeros, characters of two to four bytes, bytes that are none).
#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "runtime/text/text_functions.h"
#include "runtime/text/utf8.h"
#include "tests/operators/support.h"
#include "tests/support/every_case.h"

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

TEST_P(StringsTest, EqualOnesHaveOneNumber) {
  // Whole hashes, and hashes that collide for all, or for most.
  rndn::test::Sample sample(2);
  for (const uint32_t bits : {64u, 0u, 5u}) {
    test::Bench bench(GetParam(), {.hash_slots = 64, .text_hash_bits = bits});
    for (const size_t count : {size_t{0}, size_t{1}, size_t{31}, size_t{1023}, size_t{1025}}) {
      if (!sample.has_next()) continue;
      std::vector<std::string> texts = some_texts(count, count + bits, false);
      for (size_t i = 0; i + 1 < count; i += 3) texts[i] = texts[(i * 7) % count];
      if (count > 40) texts[37] = texts[12] = std::string(10'000, 'x') + "y";
      if (count > 40) texts[38] = std::string(10'000, 'x') + "z";
      std::map<std::string, uint32_t> numbers;
      std::vector<uint32_t> want, first;
      for (uint32_t i = 0; i < count; ++i) {
        const auto [at, fresh] =
            numbers.try_emplace(texts[i], static_cast<uint32_t>(numbers.size()));
        if (fresh) first.push_back(i);
        want.push_back(at->second);
      }
      const Strings strings = bench.put(texts);
      auto got = bench.sql->distinct_strings(strings, count, *bench.memory);
      ASSERT_TRUE(got.ok()) << got.error().message;
      EXPECT_EQ(bench.get<uint32_t>(got->of), want) << bits << " bits";
      EXPECT_EQ(bench.get<uint32_t>(got->first), first);
      if (count < 1000) continue;
      auto few = bench.sql->distinct_strings(strings, 20, *bench.memory);
      ASSERT_TRUE(few.ok()) << few.error().message;
      EXPECT_EQ(few->first.capacity, 0u);
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

// What text_map makes of each text, which is the meaning of these operators.
using Arguments = std::vector<text::TextArgument>;
text::TextArgument of_text(std::string_view x) {
  text::TextArgument a;
  a.text = x;
  return a;
}
text::TextArgument of_number(int64_t x) {
  text::TextArgument a;
  a.integer = x;
  return a;
}
std::vector<text::TextResult> mapped(hir::TextFunctionId id, const std::vector<std::string>& texts,
                                     const Arguments& constants) {
  text::TextFunction function = *text::TextFunction::make(id);
  std::vector<text::TextResult> out(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    Arguments in{of_text(texts[i])};
    in.insert(in.end(), constants.begin(), constants.end());
    if (!function(in, out[i])) out[i].text.clear();
  }
  return out;
}
std::vector<std::string> texts_of(const std::vector<text::TextResult>& results) {
  std::vector<std::string> out;
  for (const text::TextResult& r : results) out.push_back(r.text);
  return out;
}

TEST_P(StringsTest, PartsAreThoseOfTextFunctions) {
  using Id = hir::TextFunctionId;
  for (const size_t count : {size_t{0}, size_t{1}, size_t{rndn::test::in_the_gate(200, 700)}}) {
    std::vector<std::string> texts = some_texts(count, 9, false);
    if (count > 9) texts[9] = std::string(10'000, ' ') + "x,y" + std::string(5'000, ' ');
    const Strings strings = bench_.put(texts);
    for (const std::string_view set : {" ", "aZ ", "@\x7f", ""})
      for (const Id id : {Id::trim, Id::ltrim, Id::rtrim}) {
        auto got =
            bench_.sql->trimmed(strings, set, id != Id::rtrim, id != Id::ltrim, *bench_.memory);
        ASSERT_TRUE(got.ok()) << got.error().message;
        EXPECT_EQ(get(*got), texts_of(mapped(id, texts, {of_text(set)}))) << set;
      }
    const std::string zero(1, '\0');
    for (const std::string& by :
         {std::string("a"), std::string("gh"), zero, std::string("\xc3\xa9")}) {
      for (const int64_t n : {1, 2, 5}) {
        auto got =
            bench_.sql->part_between(strings, by, static_cast<uint64_t>(n - 1), *bench_.memory);
        ASSERT_TRUE(got.ok()) << got.error().message;
        EXPECT_EQ(get(*got), texts_of(mapped(Id::split_part, texts, {of_text(by), of_number(n)})))
            << by;
      }
      std::vector<int64_t> want;
      for (const text::TextResult& r : mapped(Id::position, texts, {of_text(by)}))
        want.push_back(static_cast<int64_t>(r.integer));
      auto places = bench_.sql->positions(strings, by, *bench_.memory);
      ASSERT_TRUE(places.ok()) << places.error().message;
      EXPECT_EQ(bench_.get<int64_t>(*places), want) << by;
      for (const std::string& into :
           {std::string(), std::string("b"), std::string("\xe2\x82\xac and more")}) {
        auto got = bench_.sql->replace_parts(strings, by, into, *bench_.memory);
        ASSERT_TRUE(got.ok()) << got.error().message;
        EXPECT_EQ(get(*got), texts_of(mapped(Id::replace, texts, {of_text(by), of_text(into)})))
            << by;
      }
    }
    for (const int64_t n : {0, 1, 3, 11, 20'000}) {
      auto last = bench_.sql->tail(strings, static_cast<uint64_t>(n), false, *bench_.memory);
      ASSERT_TRUE(last.ok()) << last.error().message;
      EXPECT_EQ(get(*last), texts_of(mapped(Id::right, texts, {of_number(n)})));
      auto rest = bench_.sql->tail(strings, static_cast<uint64_t>(n), true, *bench_.memory);
      ASSERT_TRUE(rest.ok()) << rest.error().message;
      if (n > 0) {
        EXPECT_EQ(get(*rest), texts_of(mapped(Id::left, texts, {of_number(-n)})));
      }
      if (n > 100) continue;
      for (const Id id : {Id::lpad, Id::rpad}) {
        auto padded = bench_.sql->pad_strings(strings, static_cast<uint64_t>(n), "+-*",
                                              id == Id::lpad, *bench_.memory);
        ASSERT_TRUE(padded.ok()) << padded.error().message;
        EXPECT_EQ(get(*padded), texts_of(mapped(id, texts, {of_number(n), of_text("+-*")}))) << n;
      }
    }
  }
}

TEST_P(StringsTest, PutTogetherAndTurnedAround) {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{31}, size_t{1025}}) {
    const std::vector<std::string> left = some_texts(count, 1, false),
                                   right = some_texts(count, 2, false);
    const std::vector<std::string> one = {"\xf0\x9f\x98\x80 and"};
    std::vector<std::string> want;
    for (size_t i = 0; i < count; ++i) want.push_back(left[i] + one[0] + right[i] + left[i]);
    const Strings parts[] = {bench_.put(left), bench_.put(one), bench_.put(right),
                             bench_.put(left)};
    auto got = bench_.sql->join_strings(parts, count, *bench_.memory);
    ASSERT_TRUE(got.ok()) << got.error().message;
    EXPECT_EQ(get(*got), want);
    std::vector<std::string> ascii = some_texts(count, 3, true);
    for (size_t i = 5; i < count; i += 11) ascii[i] += "\r\n";
    for (size_t i = 6; i < count; i += 11) ascii[i] += "\n\r";
    auto turned = bench_.sql->reversed(bench_.put(ascii), *bench_.memory);
    ASSERT_TRUE(turned.ok()) << turned.error().message;
    EXPECT_EQ(get(*turned), texts_of(mapped(hir::TextFunctionId::reverse, ascii, {})));
  }
}

TEST_P(StringsTest, DigitsOfIntegers) {
  const std::vector<int64_t> numbers = {0,  1,   -1,   9,           10,        11,
                                        99, 100, -100, 12345678901, INT64_MAX, INT64_MIN};
  std::vector<std::string> want;
  for (const int64_t x : numbers) want.push_back(std::to_string(x));
  auto got =
      bench_.sql->integer_texts(bench_.put(Type::i64, numbers), numbers.size(), *bench_.memory);
  ASSERT_TRUE(got.ok()) << got.error().message;
  EXPECT_EQ(get(*got), want);
  auto small =
      bench_.sql->integer_texts(bench_.put<int16_t>(Type::i16, {-32768, 0, 7}), 3, *bench_.memory);
  ASSERT_TRUE(small.ok()) << small.error().message;
  EXPECT_EQ(get(*small), (std::vector<std::string>{"-32768", "0", "7"}));
  auto bytes =
      bench_.sql->integer_texts(bench_.put<uint8_t>(Type::u8, {0, 200}), 2, *bench_.memory);
  ASSERT_TRUE(bytes.ok()) << bytes.error().message;
  EXPECT_EQ(get(*bytes), (std::vector<std::string>{"0", "200"}));
}

TEST_P(StringsTest, EscapedPatternsAndBytesInPlaces) {
  std::vector<std::string> texts = {"",    "%",    "_",    "a%b",           "a_b",
                                    "axb", "a\\b", "100%", "100% and more", "x_y_z"};
  const Strings strings = bench_.put(texts);
  for (const std::string_view pattern :
       {"a\\%b", "a\\_b", "a_b", "%\\%%", "%\\_%", "%\\_y\\__", "a\\\\b", "100\\%", "%", ""}) {
    std::vector<uint8_t> want;
    for (const text::TextResult& r :
         mapped(hir::TextFunctionId::like, texts, {of_text(pattern), of_text("\\")}))
      want.push_back(static_cast<uint8_t>(r.integer));
    auto got = bench_.sql->like(strings, pattern, *bench_.memory, '\\');
    ASSERT_TRUE(got.ok()) << got.error().message;
    EXPECT_EQ(bench_.get<uint8_t>(*got), want) << pattern;
  }
  const Vector into = bench_.put<uint8_t>(Type::u8, {0, 1, 2, 3, 4, 5});
  auto put = bench_.sql->put_bytes(bench_.put<int64_t>(Type::i64, {1, 4}),
                                   bench_.put<uint8_t>(Type::u8, {9, 8}), into.data);
  ASSERT_TRUE(put.ok()) << put.error().message;
  EXPECT_EQ(bench_.get<uint8_t>(into), (std::vector<uint8_t>{0, 9, 2, 3, 8, 5}));
}

INSTANTIATE_TEST_SUITE_P(Targets, StringsTest, testing::ValuesIn(test::targets));

}  // namespace
}  // namespace rndn::operators
