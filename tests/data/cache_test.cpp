// Columns on disk: what is read is what was written, and nothing but that is ever taken for it.
#include "runtime/data/cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/data/support.h"

namespace rndn::data::cache_test {
namespace {

using hir::BasicType;

Column sample(Encoding encoding) {
  Column column = make_column(encoding == Encoding::plain ? BasicType::i32 : BasicType::sym, 5, encoding,
                              encoding == Encoding::dictionary ? 2 : 0);
  for (size_t i = 0; i < column.data->size(); ++i)
    if (encoding == Encoding::plain || i % column.width == 0) (*column.data)[i] = static_cast<std::byte>(i % 3 == 0);
  if (encoding == Encoding::dictionary) column.dictionary->values = {"", "red", std::string(300, 'x')};
  if (encoding == Encoding::text) column.pad = std::make_shared<Bytes>(Bytes::of("some text in a pad"));
  column.statistics = {
      .known = true, .min = -7, .max = INT64_MAX, .float_min = 0.1, .float_max = 1e300, .sorted = true, .unique = true};
  if (encoding == Encoding::plain) {
    column.validity = std::make_shared<Bytes>(5, std::byte{1});
    (*column.validity)[2] = std::byte{0};
  }
  column.is_foreign_key = encoding == Encoding::plain;
  if (column.is_foreign_key) {
    column.foreign_table = "parent";
    column.foreign_rows = std::make_shared<Bytes>(20, std::byte{3});  // 5 of 4 bytes
  }
  return column;
}

void expect_equal(const Column& a, const Column& b) {
  EXPECT_EQ(a.type, b.type);
  EXPECT_EQ(a.encoding, b.encoding);
  EXPECT_EQ(a.width, b.width);
  EXPECT_EQ(a.rows, b.rows);
  EXPECT_EQ(*a.data, *b.data);
  ASSERT_EQ(!a.dictionary, !b.dictionary);
  if (a.dictionary) {
    EXPECT_EQ(a.dictionary->values, b.dictionary->values);
  }
  ASSERT_EQ(!a.pad, !b.pad);
  if (a.pad) {
    EXPECT_EQ(*a.pad, *b.pad);
  }
  EXPECT_EQ(a.statistics.known, b.statistics.known);
  EXPECT_EQ(a.statistics.min, b.statistics.min);
  EXPECT_EQ(a.statistics.max, b.statistics.max);
  EXPECT_EQ(a.statistics.float_min, b.statistics.float_min);
  EXPECT_EQ(a.statistics.float_max, b.statistics.float_max);
  EXPECT_EQ(a.statistics.sorted, b.statistics.sorted);
  EXPECT_EQ(a.statistics.dense, b.statistics.dense);
  EXPECT_EQ(a.statistics.unique, b.statistics.unique);
  ASSERT_EQ(a.has_nulls(), b.has_nulls());
  if (a.has_nulls()) {
    EXPECT_EQ(*a.validity, *b.validity);
  }
  EXPECT_EQ(a.is_foreign_key, b.is_foreign_key);
  EXPECT_EQ(a.foreign_table, b.foreign_table);
  ASSERT_EQ(!a.foreign_rows, !b.foreign_rows);
  if (a.foreign_rows) {
    EXPECT_EQ(*a.foreign_rows, *b.foreign_rows);
  }
}

TEST(ColumnFile, SurvivesWritingAndReading) {
  for (Encoding encoding : {Encoding::plain, Encoding::dictionary, Encoding::text}) {
    TestFolder folder;
    folder.write("c", "older contents, longer than what will be written over them" + std::string(10'000, '.'));
    std::string path = folder.path() + "/c";
    Column column = sample(encoding);
    ASSERT_TRUE(write_column(path, "this data", column));
    std::optional<Column> again = read_column(path, "this data");
    ASSERT_TRUE(again);
    expect_equal(*again, column);
    EXPECT_FALSE(read_column(path, "that data"));
    EXPECT_FALSE(read_column(path + "x", "this data"));
  }
}

TEST(ColumnFile, DamageIsNoticed) {
  TestFolder folder;
  std::string path = folder.path() + "/c";
  ASSERT_TRUE(write_column(path, "this data", sample(Encoding::dictionary)));
  std::string whole = *read_file(path);
  folder.write("c", whole);
  ASSERT_TRUE(read_column(path, "this data"));
  for (size_t at = 0; at < whole.size(); ++at) {
    for (int bit : {0, 7}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ 1 << bit);
      ASSERT_TRUE(write_file(path, damaged));
      EXPECT_FALSE(read_column(path, "this data")) << "bit " << bit << " of byte " << at;
    }
  }
  for (size_t length = 0; length < whole.size(); ++length) {
    ASSERT_TRUE(write_file(path, whole.substr(0, length)));
    EXPECT_FALSE(read_column(path, "this data")) << length << " bytes";
  }
  ASSERT_TRUE(write_file(path, whole + "x"));
  EXPECT_FALSE(read_column(path, "this data"));
}

// The checksum is made piece by piece, 4 MiB each, by all cores.
TEST(ColumnFile, DamageInAnyPieceIsNoticed) {
  TestFolder folder;
  const std::string path = folder.path() + "/c";
  Column column = make_column(BasicType::i32, (size_t{9} << 20) / 4 + 1);
  for (uint64_t i = 0; i < column.rows; ++i) reinterpret_cast<uint32_t*>(column.data->data())[i] = 0x9e3779b9u * i;
  ASSERT_TRUE(write_column(path, "this data", column));
  const std::string whole = *read_file(path);
  const auto found = read_column(path, "this data");
  ASSERT_TRUE(found);
  EXPECT_EQ(*found->data, *column.data);
  const size_t piece = size_t{4} << 20;
  const size_t data = whole.find(std::string(reinterpret_cast<const char*>(column.data->data()), 64));
  ASSERT_NE(data, whole.npos);
  for (size_t offset : {size_t{1}, piece + 1, 2 * piece + 1}) {
    std::string damaged = whole;
    damaged[data + offset] ^= 4;
    ASSERT_TRUE(write_file(path, damaged));
    EXPECT_FALSE(read_column(path, "this data")) << offset;
  }
  std::string swapped = whole;
  std::swap_ranges(swapped.begin() + data, swapped.begin() + data + piece, swapped.begin() + data + piece);
  ASSERT_TRUE(write_file(path, swapped));
  EXPECT_FALSE(read_column(path, "this data"));
  ASSERT_TRUE(write_file(path, whole));
  EXPECT_TRUE(read_column(path, "this data"));
}

// A column is its file, mapped: another file under the name, or none, changes nothing, nor does a change of the column
// change the file.
TEST(ColumnFile, AColumnOutlivesItsFile) {
  TestFolder folder;
  const std::string path = folder.path() + "/c";
  ASSERT_TRUE(write_column(path, "this data", sample(Encoding::plain)));
  const std::string whole = *read_file(path);
  auto first = read_column(path, "this data"), second = read_column(path, "this data");
  ASSERT_TRUE(first && second);
  const std::string before(first->data->text());
  second->data->data()[0] ^= std::byte{1};
  EXPECT_EQ(*read_file(path), whole);
  EXPECT_EQ(first->data->text(), before);
  ASSERT_TRUE(write_column(path, "other data", make_column(BasicType::i32, 100)));
  EXPECT_EQ(first->data->text(), before);
  ASSERT_EQ(unlink(path.c_str()), 0);
  EXPECT_EQ(first->data->text(), before);
}

// Files with a right checksum and numbers that would lead out of range when used.
TEST(ColumnFile, NumbersOutOfRangeAreNotUsed) {
  TestFolder folder;
  folder.write("c", "");
  std::string path = folder.path() + "/c";
  auto readable = [&](Encoding encoding, auto&& damage) {
    Column column = sample(encoding);
    damage(column);
    EXPECT_TRUE(write_column(path, "this data", column));
    return read_column(path, "this data").has_value();
  };
  auto shorten = [](std::shared_ptr<Bytes>& bytes, size_t by) {
    bytes = std::make_shared<Bytes>(std::vector<std::byte>(bytes->begin(), bytes->end() - by));
  };
  for (Encoding encoding : {Encoding::plain, Encoding::dictionary, Encoding::text}) {
    ASSERT_TRUE(readable(encoding, [](Column&) {}));
    EXPECT_FALSE(readable(encoding, [](Column& c) { c.type = static_cast<BasicType>(hir::basic_type_count); }));
    EXPECT_FALSE(readable(encoding, [](Column& c) { c.type = static_cast<BasicType>(255); }));
    EXPECT_FALSE(readable(encoding, [](Column& c) { c.encoding = static_cast<Encoding>(3); }));
    EXPECT_FALSE(readable(encoding, [](Column& c) { c.rows += 1; }));
    EXPECT_FALSE(readable(encoding, [](Column& c) { c.rows += uint64_t{1} << 62; }));  // rows * width is what it was
    EXPECT_FALSE(readable(encoding, [](Column& c) { c.width = 0; }));
    EXPECT_FALSE(readable(encoding, [](Column& c) { c.width *= 5, c.rows /= 5; }));  // the product is right
    EXPECT_FALSE(readable(encoding, [&](Column& c) { shorten(c.data, 1); }));
    EXPECT_FALSE(
        readable(encoding, [&](Column& c) { c.type = c.type == BasicType::i32 ? BasicType::sym : BasicType::i64; }));
  }
  // Codes: 3 values, so 2 is the last.
  auto code = [](uint16_t value) { return [value](Column& c) { std::memcpy(c.data->data() + 8, &value, 2); }; };
  EXPECT_TRUE(readable(Encoding::dictionary, code(2)));
  EXPECT_FALSE(readable(Encoding::dictionary, code(3)));
  EXPECT_FALSE(readable(Encoding::dictionary, code(0xffff)));
  // Texts: the pad has 18 bytes.
  auto word = [](uint64_t offset, uint64_t length) {
    return [value = offset << 24 | length](Column& c) { std::memcpy(c.data->data() + 32, &value, 8); };
  };
  auto small = [](Column& c) { std::fill_n(c.data->data(), c.data->size(), std::byte{0}); };
  auto text = [&](uint64_t offset, uint64_t length) {
    return readable(Encoding::text, [&](Column& c) { small(c), word(offset, length)(c); });
  };
  EXPECT_TRUE(text(10, 8));
  EXPECT_TRUE(text(18, 0));
  EXPECT_FALSE(text(10, 9));
  EXPECT_FALSE(text(19, 0));
  EXPECT_FALSE(text((uint64_t{1} << 40) - 1, 0xffffff));
  // Validity: a 0 or 1 for each row.
  EXPECT_FALSE(readable(Encoding::plain, [&](Column& c) { shorten(c.validity, 1); }));
  EXPECT_FALSE(readable(Encoding::plain, [](Column& c) { c.validity->data()[4] = std::byte{2}; }));
  auto texts = [&](size_t rows) {
    return readable(Encoding::text,
                    [rows](Column& c) { c.validity = std::make_shared<Bytes>(rows, std::byte{1}); });
  };
  EXPECT_TRUE(texts(5));
  EXPECT_FALSE(texts(4));
  // Foreign rows: a number for each row, and only for keys.
  EXPECT_FALSE(readable(Encoding::plain, [&](Column& c) { shorten(c.foreign_rows, 4); }));
  EXPECT_FALSE(readable(Encoding::plain, [](Column& c) { c.is_foreign_key = false; }));
}

TEST(ColumnFile, IsNotWrittenThroughALink) {
  TestFolder folder;
  folder.write("precious", "do not touch");
  folder.write("c", "");
  std::string path = folder.path() + "/c";
  // The names that come next.
  std::vector<std::string> links;
  for (int i = 0; i < 1000; ++i) {
    links.push_back(fmt::format("{}.{}.{}", path, getpid(), i));
    ASSERT_EQ(symlink("precious", links.back().c_str()), 0);
  }
  write_column(path, "this data", sample(Encoding::plain));
  EXPECT_EQ(*read_file(folder.path() + "/precious"), "do not touch");
  for (const std::string& link : links) unlink(link.c_str());
  EXPECT_TRUE(write_column(path, "this data", sample(Encoding::plain)));
}

// A loader of one key column whose rows lead into a table of 4 rows.
class Keys : public TableLoader {
 public:
  Keys() {
    schema_ = *parse_schema(R"({"tables": [
        {"name": "p", "columns": [{"name": "k", "type": "i32"}], "primary": ["k"]},
        {"name": "c", "columns": [{"name": "k", "type": "i32"}],
         "foreign": [{"column": "k", "table": "p", "key": "k"}]}]})",
                            "schema.json");
  }
  const Schema& schema() const override { return schema_; }
  Result<uint64_t> rows(size_t) override { return uint64_t{4}; }
  Result<std::vector<Column>> load(size_t, std::span<const size_t>) override {
    ++loads;
    Column column = make_column(BasicType::i32, 2);
    column.is_foreign_key = true;
    column.foreign_table = "p";
    column.foreign_rows = std::make_shared<Bytes>(8);
    std::memcpy(column.foreign_rows->data(), foreign, 8);
    return std::vector<Column>{column};
  }
  std::string fingerprint(size_t, size_t) const override { return "keys"; }
  std::string describe(size_t, size_t, uint64_t) override { return ""; }

  static inline int loads = 0;
  static inline int32_t foreign[2];

 private:
  Schema schema_;
};

TEST(Cache, ForeignRowsOutOfRangeAreLoadedAgain) {
  for (int32_t row : {3, 4, -1}) {
    TestFolder folder;
    Keys::loads = 0;
    Keys::foreign[0] = 0;
    Keys::foreign[1] = row;
    const size_t wanted[] = {0};
    for (int i = 0; i < 2; ++i) {
      auto columns = cached(std::make_unique<Keys>(), folder.path())->load(1, wanted);
      ASSERT_TRUE(columns);
      ASSERT_EQ(columns->size(), 1u);
    }
    EXPECT_EQ(Keys::loads, row == 3 ? 1 : 2) << row;
    std::string found;
    if (DIR* directory = opendir(folder.path().c_str())) {
      while (dirent* entry = readdir(directory))
        if (entry->d_name[0] != '.') found = entry->d_name;
      closedir(directory);
    }
    unlink((folder.path() + "/" + found).c_str());
  }
}

// --- Forms of columns ---

Bytes bytes_of(std::string text) { return Bytes::of(std::move(text)); }

TEST(FormFile, SurvivesWritingAndReading) {
  TestFolder folder;
  const std::string path = folder.path() + "/t.c.0123456789abcdef.column";
  folder.write("t.c.0123456789abcdef.column", "");
  Column column = sample(Encoding::plain);
  EXPECT_FALSE(FormFile::of(*column.data, "packed_3")) << "it is in no cache";
  ASSERT_TRUE(write_column(path, "this data", column));
  const Bytes made = bytes_of(std::string(100'000, 'm'));
  for (Bytes* of : {column.data.get(), column.foreign_rows.get()}) {
    const auto file = FormFile::of(*of, "packed_3");
    ASSERT_TRUE(file);
    EXPECT_FALSE(file->read());
    ASSERT_TRUE(file->write(&made));
    const auto found = file->read();
    ASSERT_TRUE(found && *found);
    EXPECT_EQ(**found, made);
    EXPECT_FALSE(FormFile::of(*of, "packed_4")->read()) << "another form";
  }
  // Whoever reads the column finds them, and that a form is none that holds the elements.
  const auto again = read_column(path, "this data");
  ASSERT_TRUE(again);
  const auto known = FormFile::of(*again->data, "packed_3")->read();
  ASSERT_TRUE(known && *known);
  EXPECT_EQ(**known, made);
  EXPECT_TRUE(FormFile::of(*again->foreign_rows, "packed_3")->read());
  ASSERT_TRUE(FormFile::of(*again->data, "packed_5")->write(nullptr));
  const auto none = FormFile::of(*again->data, "packed_5")->read();
  ASSERT_TRUE(none);
  EXPECT_EQ(*none, nullptr);
  // Not those of another column under the same name, nor of a copy, a part or other bytes.
  reinterpret_cast<int32_t*>(again->data->data())[1] ^= 1;
  ASSERT_TRUE(write_column(path, "this data", *again));
  EXPECT_FALSE(FormFile::of(*again->data, "packed_3")->read());
  const auto other = read_column(path, "this data");
  ASSERT_TRUE(other);
  EXPECT_FALSE(FormFile::of(*other->data, "packed_3")->read());
  EXPECT_FALSE(FormFile::of(Bytes(std::span(other->data->data(), 8), other->data), "packed_3"));
}

TEST(FormFile, DamageIsNoticed) {
  TestFolder folder;
  folder.write("c", "");
  Column column = sample(Encoding::dictionary);
  ASSERT_TRUE(write_column(folder.path() + "/c", "this data", column));
  const auto file = FormFile::of(*column.data, "packed_1");
  ASSERT_TRUE(file);
  const Bytes made = bytes_of("some words");
  ASSERT_TRUE(file->write(&made));
  std::string name;
  if (DIR* directory = opendir(folder.path().c_str())) {
    while (dirent* entry = readdir(directory))
      if (std::string_view(entry->d_name).ends_with(".form")) name = entry->d_name;
    closedir(directory);
  }
  ASSERT_NE(name, "");
  const std::string path = folder.path() + "/" + name, whole = *read_file(path);
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  folder.write(name, whole);
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1 << at % 8);
    ASSERT_TRUE(write_file(path, damaged));
    EXPECT_FALSE(file->read()) << "byte " << at;
    ASSERT_TRUE(write_file(path, whole.substr(0, at)));
    EXPECT_FALSE(file->read()) << at << " bytes";
  }
  ASSERT_TRUE(write_file(path, whole));
  EXPECT_TRUE(file->read());
}

// A loader whose columns no cache keeps: it has no name for what is in them. Rows lead into a table of 4 rows.
class Nameless : public Keys {
 public:
  std::string fingerprint(size_t, size_t) const override { return ""; }
};

// Forms of columns that have no file are known by where they come from: they may be of other bytes, and say so.
TEST(FormFile, OfColumnsThatAreNotKept) {
  TestFolder folder;
  Keys::foreign[0] = 0, Keys::foreign[1] = 3;
  const size_t wanted[] = {0};
  const Bytes made = bytes_of("words");
  const auto load = [&](bool shown) {
    const auto loader = cached(std::make_unique<Nameless>(), folder.path());
    auto columns = shown ? loader->load(1, wanted, [](const Column&) {}) : loader->load(1, wanted);
    EXPECT_TRUE(columns);
    return std::move((*columns)[0]);
  };
  const Column first = load(false);
  EXPECT_FALSE(FormFile::of(*first.data, "packed_1")->is_of_these());
  ASSERT_TRUE(FormFile::of(*first.data, "packed_1")->write(&made));
  ASSERT_TRUE(FormFile::of(*first.foreign_rows, "packed_2")->write(&made));
  for (const bool shown : {false, true}) {
    const Column second = load(shown);
    EXPECT_TRUE(FormFile::of(*second.data, "packed_1")->read());
    EXPECT_TRUE(FormFile::of(*second.foreign_rows, "packed_2")->read());
    EXPECT_FALSE(FormFile::of(*second.foreign_rows, "packed_1")->read());
  }
  Keys::foreign[1] = 2;
  EXPECT_FALSE(FormFile::of(*load(true).foreign_rows, "packed_2")->is_of_these()) << "other rows";
  const auto elsewhere = cached(std::make_unique<Nameless>(), folder.path(), "/another/place")->load(1, wanted);
  EXPECT_FALSE(FormFile::of(*(*elsewhere)[0].foreign_rows, "packed_2")->read());
}

// The sum of a file finds damage and does not tell files apart: these have the same.
TEST(FormFile, IsOfAColumnByItsFingerprintToo) {
  TestFolder folder;
  const std::string path = folder.path() + "/c";
  const auto write = [&](bool other) {
    std::string name(64, 'n');
    Column column = make_column(BasicType::f64, 40);
    auto* values = reinterpret_cast<double*>(column.data->data());
    values[0] = other ? -1 : 1, values[4] = other ? -300001 : 300000;
    if (other) name[7] = static_cast<char>('n' ^ 0x80), name[39] = static_cast<char>('n' ^ 0x80), name[36] = 'n' ^ 4;
    EXPECT_TRUE(write_column(path, name, column));
    uint64_t sum = 0;
    std::memcpy(&sum, read_file(path)->data() + 8, sizeof sum);
    return std::pair(std::move(column), sum);
  };
  const Bytes made = bytes_of("words");
  const auto [first, sum] = write(false);
  ASSERT_TRUE(FormFile::of(*first.data, "packed_1")->write(&made));
  const auto [second, other_sum] = write(true);
  ASSERT_EQ(sum, other_sum) << "they are no example any more";
  EXPECT_TRUE(FormFile::of(*first.data, "packed_1")->read());
  EXPECT_TRUE(FormFile::of(*second.data, "packed_1")->is_of_these());
  EXPECT_FALSE(FormFile::of(*second.data, "packed_1")->read());
}

TEST(ColumnFile, ThatCannotBeWritten) { EXPECT_FALSE(write_column("/does-not-exist/c", "x", sample(Encoding::plain))); }

std::vector<std::string> files_in(const std::string& path) {
  std::vector<std::string> names;
  if (DIR* directory = opendir(path.c_str())) {
    while (dirent* entry = readdir(directory))
      if (entry->d_name[0] != '.') names.push_back(entry->d_name);
    closedir(directory);
  }
  return names;
}

// A file that was changed in this tick of the clock has no name yet: the cache keeps nothing of it. Files may be stamped
// by another clock than this machine's (shared folders), which may be ahead.
void wait_for_tick(const std::string& path) {
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0) << path;
  const timespec changed = status.st_ctim;
  timespec now{};
  do clock_gettime(CLOCK_REALTIME_COARSE, &now);
  while (now.tv_sec < changed.tv_sec || (now.tv_sec == changed.tv_sec && now.tv_nsec <= changed.tv_nsec));
}

mode_t mode_of(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 0777;
}

TEST(Cache, TakesThePlaceOfTheFileUntilThatChanges) {
  TestFolder folder;
  folder.write(
      "schema.json",
      R"({"tables": [{"name": "t", "columns": [{"name": "a", "type": "i32"}, {"name": "b", "type": "sym"}]}]})");
  folder.write("t.tbl", "1|x|\n2|y|\n");
  wait_for_tick(folder.path() + "/t.tbl");
  std::string cache = folder.path() + "/cache/columns";
  auto load = [&](const char* column) {
    std::shared_ptr<Source> source = *open_folder(folder.path(), {.threads = 1, .progress = false, .cache = cache});
    return source->column("t", column);
  };
  EXPECT_EQ((*load("a"))->as<int32_t>()[1], 2);
  EXPECT_EQ((*load("b"))->text_at(1), "y");
  ASSERT_EQ(files_in(cache).size(), 2u);

  // The data may be secret: what is kept of it is its owner's alone.
  EXPECT_EQ(mode_of(cache), 0700u);
  for (const std::string& name : files_in(cache)) EXPECT_EQ(mode_of(cache + "/" + name), 0600u) << name;

  // That the cache is read is shown by what stands in it: another value under the same name.
  std::string path = folder.path() + "/t.tbl";
  const std::string kept = cache + "/" + files_in(cache)[files_in(cache)[0].starts_with("t.a") ? 0 : 1];
  const std::string whole = *read_file(kept);
  uint64_t length = 0;  // of the fingerprint, after magic number and checksum
  std::memcpy(&length, whole.data() + 16, sizeof length);
  const std::string fingerprint = whole.substr(32, length);
  std::optional<Column> other = read_column(kept, fingerprint);
  ASSERT_TRUE(other);
  reinterpret_cast<int32_t*>(other->data->data())[1] = 9;
  ASSERT_TRUE(write_column(kept, fingerprint, *other));
  EXPECT_EQ((*load("a"))->as<int32_t>()[1], 2) << "of a file with an element beyond the bounds that it says";
  compute_statistics(*other);
  ASSERT_TRUE(write_column(kept, fingerprint, *other));
  EXPECT_EQ((*load("a"))->as<int32_t>()[1], 9);
  ASSERT_TRUE(write_file(kept, "damaged"));
  EXPECT_EQ((*load("a"))->as<int32_t>()[1], 2);
  EXPECT_EQ(*read_file(kept), whole);  // written anew

  struct stat before {};
  ASSERT_EQ(stat(path.c_str(), &before), 0);
  timespec times[2] = {before.st_atim, before.st_mtim};

  // Other bytes of the same size and time of writing, in place (cp -p) and in a new file (rsync -t, tar): read again.
  ASSERT_TRUE(write_file(path, "1|x|\n5|w|\n"));
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  wait_for_tick(path);
  EXPECT_EQ((*load("a"))->as<int32_t>()[1], 5);
  EXPECT_EQ((*load("b"))->text_at(1), "w");
  const int same = open(path.c_str(), O_WRONLY);
  ASSERT_EQ(pwrite(same, "7|z|\n", 5, 5), 5);
  close(same);
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  wait_for_tick(path);
  EXPECT_EQ((*load("a"))->as<int32_t>()[1], 7);
  EXPECT_EQ((*load("b"))->text_at(1), "z");

  // Another type of the same column: not the same data.
  ASSERT_TRUE(write_file(
      folder.path() + "/schema.json",
      R"({"tables": [{"name": "t", "columns": [{"name": "a", "type": "i64"}, {"name": "b", "type": "sym"}]}]})"));
  EXPECT_EQ((*load("a"))->as<int64_t>()[1], 7);

  // Files that are gone are errors, whatever is in the cache.
  ASSERT_EQ(unlink(path.c_str()), 0);
  EXPECT_FALSE(load("a"));

  for (const std::string& name : files_in(cache)) unlink((cache + "/" + name).c_str());
  rmdir(cache.c_str());
  rmdir((folder.path() + "/cache").c_str());
}

// A source that has read one column of a file goes on with that file: what it makes of it is not kept under the name of
// the file that came after.
TEST(Cache, KeepsNothingOfAFileThatWasReplacedMeanwhile) {
  TestFolder folder;
  folder.write(
      "schema.json",
      R"({"tables": [{"name": "t", "columns": [{"name": "a", "type": "i32"}, {"name": "b", "type": "i32"}]}]})");
  folder.write("t.tbl", "1|10|\n2|20|\n");
  wait_for_tick(folder.path() + "/t.tbl");
  const std::string cache = folder.path() + "/cache";
  const SourceOptions options{.threads = 1, .progress = false, .cache = cache};
  {
    std::shared_ptr<Source> source = *open_folder(folder.path(), options);
    EXPECT_EQ((*source->column("t", "a"))->as<int32_t>()[1], 2);
    folder.write("t.new", "3|30|\n4|40|\n");
    ASSERT_EQ(rename((folder.path() + "/t.new").c_str(), (folder.path() + "/t.tbl").c_str()), 0);
    wait_for_tick(folder.path() + "/t.tbl");
    EXPECT_EQ((*source->column("t", "b"))->as<int32_t>()[1], 20);
    EXPECT_EQ(files_in(cache).size(), 1u);
  }
  std::shared_ptr<Source> source = *open_folder(folder.path(), options);
  EXPECT_EQ((*source->column("t", "a"))->as<int32_t>()[1], 4);
  EXPECT_EQ((*source->column("t", "b"))->as<int32_t>()[1], 40);
  for (const std::string& name : files_in(cache)) unlink((cache + "/" + name).c_str());
  rmdir(cache.c_str());
}

// What was found out of a file without a schema is kept as its columns are.
TEST(Cache, KnowsFilesWithoutASchema) {
  TestFolder folder;
  std::string text = "x,y\n";
  for (int i = 0; i < 2000; ++i) text += i == 1500 ? "1.5,a\n" : "1,a\n";
  folder.write("t.csv", text);
  wait_for_tick(folder.path() + "/t.csv");
  const std::string cache = folder.path() + "/cache";
  std::vector<std::string> notes;
  SourceOptions options{.threads = 1, .progress = false, .cache = cache};
  options.note = [&](const std::string& note) { notes.push_back(note); };
  const std::string first = schema_text((*open_folder(folder.path(), options))->schema());
  ASSERT_EQ(files_in(cache).size(), 1u);
  const std::string entry = cache + "/" + files_in(cache)[0], bytes = *read_file(entry);
  uint64_t length = 0;  // of the fingerprint, after magic number and checksum
  std::memcpy(&length, bytes.data() + 16, sizeof length);
  const std::string fingerprint = bytes.substr(32, length);
  EXPECT_EQ(schema_text((*open_folder(folder.path(), options))->schema()), first);
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_EQ(notes[0], notes[1]);
  EXPECT_NE(notes[0].find("`1.5`"), std::string::npos);
  // It is what is read, while it makes sense.
  auto texts = read_texts(entry, fingerprint);
  ASSERT_TRUE(texts);
  ASSERT_TRUE(write_texts(entry, fingerprint, {(*texts)[0], "another note"}));
  EXPECT_EQ((*(*open_folder(folder.path(), options))->column("t", "x"))->as<double>()[1500], 1.5);
  EXPECT_EQ(notes.back(), "another note");
  ASSERT_TRUE(write_texts(entry, fingerprint, {"no schema"}));
  EXPECT_EQ(schema_text((*open_folder(folder.path(), options))->schema()), first);
  EXPECT_EQ(notes.back(), notes[0]);
  for (const std::string& name : files_in(cache)) unlink((cache + "/" + name).c_str());
  rmdir(cache.c_str());
}

TEST(Cache, ThatTheUserNamesHasToBeOne) {
  EXPECT_EQ(check_cache("/dev/null").error().message, "cannot write to the cache `/dev/null`: Not a directory");
  const Error below = check_cache("/dev/null/x").error();
  EXPECT_EQ(below.message, "cannot make the cache `/dev/null/x`: Not a directory");
  EXPECT_EQ(below.fault, Fault::world);
  TestFolder folder;
  EXPECT_TRUE(check_cache(folder.path() + "/a/b"));
  EXPECT_TRUE(check_cache(folder.path() + "/a/b/"));
  rmdir((folder.path() + "/a/b").c_str());
  rmdir((folder.path() + "/a").c_str());
}

TEST(Cache, ThatCannotBeWrittenIsDoneWithout) {
  TestFolder folder;
  folder.write("schema.json", R"({"tables": [{"name": "t", "columns": [{"name": "a", "type": "i32"}]}]})");
  folder.write("t.tbl", "5\n");
  for (const char* cache : {"/dev/null", "/dev/null/x"}) {
    std::shared_ptr<Source> source = *open_folder(folder.path(), {.threads = 1, .progress = false, .cache = cache});
    EXPECT_EQ((*source->column("t", "a"))->as<int32_t>()[0], 5);
  }
}

TEST(Cache, StandsWhereTheEnvironmentSays) {
  setenv("HOME", "/h", 1);
  setenv("XDG_CACHE_HOME", "/x", 1);
  setenv("RNDN_CACHE_DIR", "/r", 1);
  EXPECT_EQ(default_cache_directory(), "/r");
  unsetenv("RNDN_CACHE_DIR");
  EXPECT_EQ(default_cache_directory(), "/x/rndn");
  unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(default_cache_directory(), "/h/.cache/rndn");
  unsetenv("HOME");
  EXPECT_EQ(default_cache_directory(), "");
}

}  // namespace
}  // namespace rndn::data::cache_test
