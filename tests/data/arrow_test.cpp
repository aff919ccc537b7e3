// Arrow streams as sources: what tests/python does not see, the records' releases, offsets and
// validity as a column has them, and streams that fail.
#include "runtime/data/arrow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <functional>

#include "runtime/data/sources.h"

namespace rndn::data::arrow_test {
namespace {

using testing::HasSubstr;

// A table of one or more chunks, each with a column `x` of i32 behind an offset of 3 rows, and `s`
// of text. Counts what is released.
struct Producer {
  std::vector<std::vector<int32_t>> chunks;
  int missing = -1;      // the row of each chunk without a value
  size_t fails_at = 99;  // the chunk in whose place there is an error
  std::string format = "i";
  int streams = 0, schemas = 0, arrays = 0;  // released, less made
  size_t next = 0;
  std::function<void(ArrowSchema&)> change_schema;  // what a record is made wrong by
  std::function<void(ArrowArray&)> change_array;

  struct Chunk {
    Producer* owner;
    std::vector<int32_t> numbers, offsets;
    std::string characters;
    std::vector<uint8_t> bits;
    const void* number_buffers[2];
    const void* text_buffers[3];
    const void* own_buffers[1] = {nullptr};
    ArrowArray children[2]{};
    ArrowArray* pointers[2];
  };
  struct Schema {
    Producer* owner;
    ArrowSchema children[2]{};
    ArrowSchema* pointers[2];
  };

  void fill(ArrowArray* out) {
    auto* c = new Chunk{.owner = this};
    const std::vector<int32_t>& values = chunks[next];
    const size_t n = values.size();
    constexpr int64_t before = 3;
    c->numbers.assign(before, -1);
    c->numbers.insert(c->numbers.end(), values.begin(), values.end());
    c->bits.assign((n + before + 7) / 8, 0xff);
    if (missing >= 0) {
      const size_t at = static_cast<size_t>(missing + before);
      c->bits[at / 8] &= static_cast<uint8_t>(~(1u << at % 8));
    }
    c->offsets.push_back(0);
    for (int32_t v : values) {
      c->characters += std::to_string(v);
      c->offsets.push_back(static_cast<int32_t>(c->characters.size()));
    }
    c->number_buffers[0] = missing < 0 ? nullptr : c->bits.data();
    c->number_buffers[1] = c->numbers.data();
    c->text_buffers[0] = nullptr;
    c->text_buffers[1] = c->offsets.data();
    c->text_buffers[2] = c->characters.data();
    const auto length = static_cast<int64_t>(n);
    c->children[0] = {.length = length,
                      .null_count = -1,
                      .offset = before,
                      .n_buffers = 2,
                      .buffers = c->number_buffers};
    c->children[1] = {.length = length, .n_buffers = 3, .buffers = c->text_buffers};
    for (int i : {0, 1}) {
      c->children[i].release = [](ArrowArray* a) { a->release = nullptr; };
      c->pointers[i] = &c->children[i];
    }
    *out = {.length = length,
            .n_buffers = 1,
            .n_children = 2,
            .buffers = c->own_buffers,
            .children = c->pointers,
            .private_data = c};
    out->release = [](ArrowArray* a) {
      auto* chunk = static_cast<Chunk*>(a->private_data);
      ++chunk->owner->arrays;
      delete chunk;
      a->release = nullptr;
    };
    --arrays;
    ++next;
    if (change_array) change_array(*out);
  }

  ArrowStream stream() {
    ArrowArrayStream s{};
    s.private_data = this;
    s.get_schema = [](ArrowArrayStream* from, ArrowSchema* out) {
      auto* p = static_cast<Producer*>(from->private_data);
      auto* schema = new Schema{.owner = p};
      const char* formats[] = {p->format.c_str(), "u"};
      const char* names[] = {"x", "s"};
      for (int i : {0, 1}) {
        schema->children[i] = {.format = formats[i], .name = names[i]};
        schema->children[i].release = [](ArrowSchema* a) { a->release = nullptr; };
        schema->pointers[i] = &schema->children[i];
      }
      *out = {.format = "+s",
              .name = "",
              .n_children = 2,
              .children = schema->pointers,
              .private_data = schema};
      out->release = [](ArrowSchema* a) {
        auto* released = static_cast<Schema*>(a->private_data);
        ++released->owner->schemas;
        delete released;
        a->release = nullptr;
      };
      --p->schemas;
      if (p->change_schema) p->change_schema(*out);
      return 0;
    };
    s.get_next = [](ArrowArrayStream* from, ArrowArray* out) {
      auto* p = static_cast<Producer*>(from->private_data);
      *out = {};
      if (p->next == p->fails_at) return EIO;
      if (p->next < p->chunks.size()) p->fill(out);
      return 0;
    };
    s.get_last_error = [](ArrowArrayStream*) -> const char* { return "the disk is gone"; };
    s.release = [](ArrowArrayStream* from) {
      ++static_cast<Producer*>(from->private_data)->streams;
      from->release = nullptr;
    };
    --streams;
    return ArrowStream(std::move(s));
  }
  void expect_all_released() const {
    EXPECT_EQ(streams, 0);
    EXPECT_EQ(schemas, 0);
    EXPECT_EQ(arrays, 0);
  }
};

TEST(Arrow, ChunksOffsetsAndValidity) {
  Producer p{.chunks = {{5, 7, 5}, {}, {7, 9}}, .missing = 1};
  {
    auto loader = open_arrow("t", p.stream());
    ASSERT_TRUE(loader.ok()) << loader.error().message;
    EXPECT_EQ(p.streams, 0) << "a stream that is taken whole is released";
    Source source(*std::move(loader));
    EXPECT_EQ(*source.rows("t"), 5u);
    const auto x = source.column("t", "x");
    ASSERT_TRUE(x.ok()) << x.error().message;
    const std::vector<int32_t> values((*x)->as<int32_t>(), (*x)->as<int32_t>() + 5);
    EXPECT_EQ(values, (std::vector<int32_t>{5, 0, 5, 7, 0})) << "what is missing is zero";
    ASSERT_TRUE((*x)->has_nulls());
    const std::vector<std::byte> valid{std::byte{1}, std::byte{0}, std::byte{1}, std::byte{1},
                                       std::byte{0}};
    EXPECT_EQ(*(*x)->validity, valid);
    const auto s = source.column("t", "s");
    ASSERT_TRUE(s.ok()) << s.error().message;
    EXPECT_FALSE((*s)->has_nulls());
    EXPECT_EQ((*s)->encoding, Encoding::dictionary);
    EXPECT_EQ((*s)->dictionary->values, (std::vector<std::string>{"5", "7", "9"}));
    EXPECT_EQ((*s)->text_at(4), "9");
    const auto complete = source.complete_column("t", "x");
    ASSERT_FALSE(complete.ok());
    EXPECT_THAT(complete.error().message, HasSubstr("row 2 of column `x`"));
  }
  p.expect_all_released();
}

TEST(Arrow, AValidityWithoutMissingRowsIsNone) {
  Producer p{.chunks = {{1, 2}}, .missing = 4};  // behind the end
  {
    Source source(*open_arrow("t", p.stream()));
    EXPECT_FALSE((*source.column("t", "x"))->has_nulls());
  }
  p.expect_all_released();
}

TEST(Arrow, WhatFailsIsReleasedToo) {
  Producer broken{.chunks = {{1}, {2}, {3}}, .fails_at = 2};
  {
    const auto loader = open_arrow("t", broken.stream());
    ASSERT_FALSE(loader.ok());
    EXPECT_EQ(loader.error().message, "table `t`: the disk is gone");
    EXPECT_EQ(loader.error().fault, Fault::input);
  }
  broken.expect_all_released();
}

TEST(Arrow, OtherTypesAreLeftOutByName) {
  Producer p{.chunks = {{1, 2}}, .format = "e"};
  {
    auto loader = open_arrow("t", p.stream());
    ASSERT_TRUE(loader.ok()) << loader.error().message;
    const TableSchema& table = (*loader)->schema().tables[0];
    ASSERT_EQ(table.refused.size(), 1u);
    EXPECT_EQ(table.refused[0].name, "x");
    EXPECT_EQ(table.refused[0].type, "halffloat");
    ASSERT_EQ(table.columns.size(), 1u);
    EXPECT_EQ((*(*loader)->load(0, std::vector<size_t>{0}))[0].text_at(1), "2");
  }
  p.expect_all_released();
}

TEST(Arrow, SourcesAreJoined) {
  Producer one{.chunks = {{1}}}, two{.chunks = {{2}}};
  {
    auto a = std::make_shared<Source>(*open_arrow("a", one.stream()));
    auto b = std::make_shared<Source>(*open_arrow("b", two.stream()));
    const auto both = join_sources({a, b});
    ASSERT_TRUE(both.ok()) << both.error().message;
    EXPECT_EQ((*both)->rows_at_hand("b"), 1u);
    const auto x = (*both)->column("b", "x");
    ASSERT_TRUE(x.ok()) << x.error().message;
    EXPECT_EQ((*x)->as<int32_t>()[0], 2);
    EXPECT_EQ((*x)->data, (*b->column("b", "x"))->data) << "not copied";
    EXPECT_FALSE(join_sources({a, a}).ok()) << "two tables of one name";
  }
  one.expect_all_released();
  two.expect_all_released();
}

// What the records of a stream can have wrong, each said; nothing of them is read beyond it.
TEST(Arrow, RecordsThatAreWrongAreSaid) {
  struct Row {
    const char* said;
    std::function<void(ArrowSchema&)> schema;
    std::function<void(ArrowArray&)> array;
  };
  static const void* nothing[] = {nullptr, nullptr, nullptr};
  static const int32_t descending[] = {0, 5, 2}, negative[] = {-4, 0, 0};
  static const void *texts_down[] = {nullptr, descending, "hello"},
                    *texts_below[] = {nullptr, negative, "hello"},
                    *no_characters[] = {nullptr, descending, nullptr};
  static const int32_t places[] = {0, 2, 4};
  static const void* latin1[] = {nullptr, places, "ok\xe9t"};
  const Row rows[] = {
      {"its schema has 2 columns", [](auto& s) { s.children = nullptr; }, {}},
      {"its schema has -1 columns", [](auto& s) { s.n_children = -1; }, {}},
      {"does not say what column 2 is", [](auto& s) { s.children[1]->format = nullptr; }, {}},
      {"does not say what column 1 is", [](auto& s) { s.children[0]->release = nullptr; }, {}},
      {"has a length of -2", {}, [](auto& a) { a.length = -2; }},
      {"has an offset of -1", {}, [](auto& a) { a.offset = -1; }},
      {"has an offset of 9223372036854775807", {}, [](auto& a) { a.offset = INT64_MAX; }},
      {"has 7 buffers, and a table has 1", {}, [](auto& a) { a.n_buffers = 7; }},
      {"has another number of columns", {}, [](auto& a) { a.n_children = 1; }},
      {"has another number of columns", {}, [](auto& a) { a.children = nullptr; }},
      {"`x` is not there", {}, [](auto& a) { a.children[0]->release = nullptr; }},
      {"`x` has a length of -1", {}, [](auto& a) { a.children[0]->length = -1; }},
      {"`x` has an offset of -3", {}, [](auto& a) { a.children[0]->offset = -3; }},
      {"`x` has more rows", {}, [](auto& a) { a.children[0]->offset = INT64_MAX; }},
      {"`x` has 1 rows, and the table has 2", {}, [](auto& a) { a.children[0]->length = 1; }},
      {"`x` has 2 rows, and the table has 3", {}, [](auto& a) { a.offset = 1; }},
      {"`x` has 9 missing rows among 2", {}, [](auto& a) { a.children[0]->null_count = 9; }},
      {"`x` has 3 buffers, and its type has 2", {}, [](auto& a) { a.children[0]->n_buffers = 3; }},
      {"`s` has 2 buffers, and its type has 3", {}, [](auto& a) { a.children[1]->n_buffers = 2; }},
      {"`s` has no buffers", {}, [](auto& a) { a.children[1]->buffers = nullptr; }},
      {"`s` has no buffer of values", {}, [](auto& a) { a.children[1]->buffers = nothing; }},
      {"`x` has missing rows, and does not say which",
       {},
       [](auto& a) { a.children[0]->null_count = 1; }},
      {"row 2 of column `s` is a text from byte 5 to 2",
       {},
       [](auto& a) { a.children[1]->buffers = texts_down; }},
      {"row 1 of column `s` is a text from byte -4 to 0",
       {},
       [](auto& a) { a.children[1]->buffers = texts_below; }},
      {"row 1 of column `s` is a text of an array without characters",
       {},
       [](auto& a) { a.children[1]->buffers = no_characters; }},
      {"row 2 of column `s` is no text in UTF-8",
       {},
       [](auto& a) { a.children[1]->buffers = latin1; }},
      {"`x` has no dictionary",
       [](auto& s) {
         static ArrowSchema values{.format = "u", .name = "", .release = [](ArrowSchema*) {}};
         s.children[0]->dictionary = &values;
       },
       {}},
  };
  for (const Row& row : rows) {
    Producer p{.chunks = {{1, 2}}};
    p.change_schema = row.schema;
    p.change_array = row.array;
    std::string said;
    {
      auto loader = open_arrow("t", p.stream());
      if (loader) {
        const auto loaded = (*loader)->load(0, std::vector<size_t>{0, 1});
        said = loaded ? "nothing" : loaded.error().message;
      } else {
        said = loader.error().message;
      }
    }
    EXPECT_THAT(said, HasSubstr(row.said));
    EXPECT_EQ(p.streams, 0);
  }
}

}  // namespace
}  // namespace rndn::data::arrow_test
