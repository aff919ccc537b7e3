// Files as no program writes them: numbers of a footer that lie, levels that cannot be, parts that
// stand for many. Each made memory be overwritten, numbers wrap, or time and memory go without end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <ctime>
#include <filesystem>

#include "libraries/base/system/files.h"
#include "runtime/data/batches.h"
#include "runtime/files/arrow_file.h"
#include "runtime/files/parquet_footer.h"
#include "runtime/files/parquet_source.h"

namespace rndn::files {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

// Thrift's compact protocol, written.
class Thrift {
 public:
  enum Type : uint8_t { i64 = 6, binary = 8, list = 9, structure = 12 };

  Thrift& number(int64_t field, int64_t value) { return head(field, i64).integer(value); }
  Thrift& text(int64_t field, const std::string& value) {
    return head(field, binary).characters(value);
  }
  Thrift& begin(int64_t field) {
    head(field, structure);
    return open();
  }
  Thrift& open() { return before_.push_back(0), *this; }  // an element of a list
  Thrift& end() {
    out_ += '\0';
    return before_.pop_back(), *this;
  }
  Thrift& elements(int64_t field, Type of, uint64_t count) {
    head(field, list);
    out_ += static_cast<char>(0xf0 | of);
    return varint(count);
  }
  Thrift& integer(int64_t value) {
    return varint(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63));
  }
  Thrift& characters(const std::string& value) {
    varint(value.size());
    out_ += value;
    return *this;
  }
  const std::string& bytes() const { return out_; }

 private:
  Thrift& varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
    out_ += static_cast<char>(value);
    return *this;
  }
  Thrift& head(int64_t field, Type type) {
    const int64_t step = field - before_.back();
    before_.back() = field;
    if (step > 0 && step < 16) {
      out_ += static_cast<char>(step << 4 | type);
      return *this;
    }
    out_ += static_cast<char>(type);
    return integer(field);
  }

  std::string out_;
  std::vector<int64_t> before_ = {0};  // the field before, of each struct that is open
};

std::string word(uint32_t value) { return {reinterpret_cast<const char*>(&value), 4}; }

std::string page(PageKind kind, int64_t values, Encoding encoding, const std::string& body) {
  Thrift out;
  const auto size = static_cast<int64_t>(body.size());
  out.number(1, static_cast<int64_t>(kind)).number(2, size).number(3, size);
  out.begin(kind == PageKind::dictionary ? 7 : 5);
  out.number(1, values).number(2, static_cast<int64_t>(encoding));
  if (kind == PageKind::data) out.number(3, 3).number(4, 3);
  return out.end().end().bytes() + body;
}

// A row group of one column: its pages, and what the footer says of them.
struct Group {
  std::string pages;
  int64_t rows = 0;
  int64_t uncompressed = 0;
  std::vector<Encoding> encodings = {Encoding::plain};
};

// A file of the columns, of which the last one has pages and the others none.
std::string parquet(const std::vector<std::string>& names, Physical type, bool may_miss,
                    const std::vector<Group>& groups, int64_t rows) {
  std::string file = "PAR1";
  Thrift out;
  out.number(1, 1).elements(2, Thrift::structure, names.size() + 1);
  out.open().text(4, "root").number(5, static_cast<int64_t>(names.size())).end();
  for (const std::string& name : names) {
    out.open().number(1, static_cast<int64_t>(type)).number(3, may_miss).text(4, name);
    if (type == Physical::bytes) out.number(6, 0);  // UTF-8
    out.end();
  }
  out.number(3, rows).elements(4, Thrift::structure, groups.size());
  for (const Group& group : groups) {
    out.open().elements(1, Thrift::structure, 1).open().begin(3);
    out.number(1, static_cast<int64_t>(type)).elements(2, Thrift::i64, group.encodings.size());
    for (const Encoding e : group.encodings) out.integer(static_cast<int64_t>(e));
    out.elements(3, Thrift::binary, 1).characters(names.back());
    out.number(4, 0).number(5, group.rows).number(6, group.uncompressed);
    out.number(7, static_cast<int64_t>(group.pages.size()));
    out.number(9, static_cast<int64_t>(file.size())).end().end();
    out.number(3, group.rows).end();
    file += group.pages;
  }
  const std::string footer = out.end().bytes();
  return file + footer + word(static_cast<uint32_t>(footer.size())) + "PAR1";
}

class Handmade : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "rndn_handmade_" + std::to_string(getpid()) + "/";
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // The column `a` of files that are one table, by our reader of Parquet alone.
  Result<std::shared_ptr<const data::Column>> read(const std::vector<std::string>& files) {
    std::vector<std::string> paths;
    for (const std::string& file : files) {
      paths.push_back(folder_ + std::to_string(paths.size()) + ".parquet");
      EXPECT_TRUE(write_file(paths.back(), file));
    }
    ASSIGN_OR_RETURN(auto source, open_parquet(folder_, paths,
                                               []() -> Result<std::unique_ptr<data::BatchSource>> {
                                                 return world_error("there is no other reader");
                                               }));
    ASSIGN_OR_RETURN(auto loader, data::open_batches("t", std::move(source)));
    return data::Source(std::move(loader)).column("t", "a");
  }
  std::string error_of(const std::vector<std::string>& files) {
    const auto column = read(files);
    return column ? "none" : column.error().message;
  }

  std::string folder_;
};

std::string numbers(uint32_t count) {
  std::string out;
  for (uint32_t i = 0; i < count; ++i) out += word(i);
  return out;
}
std::string texts(uint32_t first, uint32_t count) {
  std::string out;
  for (uint32_t i = 0; i < count; ++i) {
    const std::string text = std::to_string(first + i) + " is a text";
    out += word(static_cast<uint32_t>(text.size())) + text;
  }
  return out;
}
Group group_of(const std::string& body, int64_t rows) {
  const std::string pages = page(PageKind::data, rows, Encoding::plain, body);
  return {pages, rows, static_cast<int64_t>(pages.size())};
}

// What the cases below change is right.
TEST_F(Handmade, FilesAreReadWhereNothingLies) {
  const auto column = read({parquet({"a"}, Physical::int32, false, {group_of(numbers(7), 7)}, 7),
                            parquet({"a"}, Physical::int32, false, {group_of(numbers(5), 5)}, 5)});
  ASSERT_TRUE(column) << column.error().message;
  ASSERT_EQ((*column)->rows, 12u);
  EXPECT_EQ((*column)->as<int32_t>()[6], 6);
  EXPECT_EQ((*column)->as<int32_t>()[11], 4);
  const auto text =
      read({parquet({"a"}, Physical::bytes, false,
                    {group_of(texts(0, 200), 200), group_of(texts(200, 200), 200)}, 400)});
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ((*text)->text_at(399), "399 is a text");
}

// A run of levels is of one value, which is 0 or 1 where a column may miss values. More of them
// were counted as more values than there is room for.
TEST_F(Handmade, LevelsThatCannotBe) {
  constexpr uint32_t rows = 4096;
  for (const int level : {1, 2, 255}) {
    const std::string run = std::string("\x80\x40", 2) + static_cast<char>(level);
    const std::string levels = word(static_cast<uint32_t>(run.size())) + run;
    const std::string plain = levels + numbers(255 * rows);
    const std::string coded = levels + std::string("\x01\x80\x80\x80\x01\x00", 6);
    const std::string dictionary =
        page(PageKind::dictionary, 2, Encoding::plain, word(8) + word(9));
    const Group groups[] = {
        {page(PageKind::data, rows, Encoding::plain, plain), rows, 1 << 23},
        {dictionary + page(PageKind::data, rows, Encoding::rle_dictionary, coded),
         rows,
         1 << 20,
         {Encoding::plain, Encoding::rle_dictionary}}};
    for (const Group& group : groups)
      EXPECT_THAT(error_of({parquet({"a"}, Physical::int32, true, {group}, rows)}),
                  HasSubstr(level == 1 ? "none" : "a page is damaged"))
          << level;
  }
}

// Sizes whose sum wraps around, so that there is less room than each says.
TEST_F(Handmade, SizesThatWrapAround) {
  std::vector<Group> groups;
  for (const int64_t size : {INT64_MAX, INT64_MAX, int64_t{4000}}) {
    groups.push_back(group_of(texts(static_cast<uint32_t>(200 * groups.size()), 200), 200));
    groups.back().uncompressed = size;
    // A dictionary could be there: so nothing is taken off for the lengths of texts.
    groups.back().encodings = {Encoding::plain, Encoding::rle_dictionary};
  }
  EXPECT_THAT(error_of({parquet({"a"}, Physical::bytes, false, groups, 600)}),
              HasSubstr("there is no other reader"));
}

// The rows of four files are 2^64: the column had none.
TEST_F(Handmade, RowsThatWrapAround) {
  Group group = group_of(numbers(1000), 1000);
  group.rows = int64_t{1} << 62;
  const std::string file = parquet({"a"}, Physical::int32, false, {group}, group.rows);
  EXPECT_THAT(error_of({file, file, file, file}), HasSubstr("there is no other reader"));
}

TEST_F(Handmade, NumbersOfFieldsAndChildrenAreSmall) {
  for (const int64_t number : {int64_t{1} << 15, INT64_MAX - 1, INT64_MIN}) {
    const std::string footer = Thrift().number(number, 7).number(number + 1, 8).end().bytes();
    EXPECT_FALSE(read_footer(std::as_bytes(std::span(footer)))) << number;
  }
  const std::string small = Thrift().number(32000, 7).number(32001, 8).end().bytes();
  EXPECT_TRUE(read_footer(std::as_bytes(std::span(small))));
  Thrift tree;
  tree.elements(2, Thrift::structure, 3);
  for (const char* name : {"root", "a", "b"}) tree.open().text(4, name).number(5, INT64_MAX).end();
  const std::string footer = tree.number(3, 0).end().bytes();
  EXPECT_NE(error_of({"PAR1" + footer + word(static_cast<uint32_t>(footer.size())) + "PAR1"}),
            "none");
}

// Names were compared each with each: half a minute for these.
TEST_F(Handmade, ManyColumns) {
  std::vector<std::string> names;
  for (int i = 0; i < 60'000; ++i) names.push_back("column_" + std::to_string(i));
  names.push_back("a");
  const std::clock_t begin = std::clock();
  EXPECT_NE(error_of({parquet(names, Physical::int32, false, {}, 0)}), "");
  EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 8);
}

// A FlatBuffer of a schema whose field has two children, which are one part, that again has two, ..
std::string schema_of_depth(unsigned depth) {
  std::string out(4, '\0');
  const auto put = [&](const auto... values) {
    const size_t at = out.size();
    (out.append(reinterpret_cast<const char*>(&values), sizeof values), ...);
    return at;
  };
  const auto point = [&](size_t from, size_t to) {
    const auto distance = static_cast<uint32_t>(to - from);
    std::memcpy(out.data() + from, &distance, sizeof distance);
  };
  // A table begins with how far behind its fields' places it is.
  const auto table = [&](size_t places) { return put(static_cast<int32_t>(out.size() - places)); };
  using u8 = uint8_t;
  using u16 = uint16_t;
  using u32 = uint32_t;
  const size_t of_message = put(u16{12}, u16{20}, u16{0}, u16{4}, u16{8}, u16{12});
  const size_t of_schema = put(u16{8}, u16{8}, u16{0}, u16{4});
  const size_t of_field = put(u16{16}, u16{16}, u16{4}, u16{0}, u16{8}, u16{0}, u16{0}, u16{12});
  const size_t of_leaf = put(u16{16}, u16{16}, u16{4}, u16{0}, u16{8}, u16{0}, u16{0}, u16{0});
  const size_t message = table(of_message);
  put(u8{1}, u8{0}, u16{0});  // a schema
  const size_t header = put(u32{0});
  put(int64_t{0});
  point(0, message);
  point(header, table(of_schema));
  std::vector<size_t> to_field = {put(u32{0})}, to_name;
  point(to_field[0], put(u32{1}));
  to_field = {put(u32{0})};
  for (unsigned i = 0; i <= depth; ++i) {
    const bool is_leaf = i == depth;
    const size_t field = table(is_leaf ? of_leaf : of_field);
    for (const size_t from : to_field) point(from, field);
    to_name.push_back(put(u32{0}));
    put(u8{is_leaf ? u8{8} : u8{13}}, u8{0}, u16{0});  // a date or a struct
    const size_t children = put(u32{0});
    if (is_leaf) break;
    point(children, put(u32{2}));
    to_field = {put(u32{0}), put(u32{0})};
  }
  const size_t name = put(u32{1}, 'n', u8{0});
  for (const size_t from : to_name) point(from, name);
  const auto size = static_cast<uint32_t>(out.size());
  return word(UINT32_MAX) + word(size) + out + word(UINT32_MAX) + word(0);
}

TEST_F(Handmade, OnePartThatStandsForMany) {
  const std::string path = folder_ + "t.arrows";
  const auto message_of = [&](unsigned depth) {
    EXPECT_TRUE(write_file(path, schema_of_depth(depth)));
    const auto table = open_arrow_files(path, {path}, "t");
    return table ? "none" : table.error().message;
  };
  EXPECT_EQ(message_of(0), "none");
  EXPECT_THAT(message_of(1), HasSubstr("`n` is "));  // nested: no column is left
  EXPECT_THAT(message_of(40), HasSubstr("its schema is damaged"));
}

}  // namespace
}  // namespace rndn::files
