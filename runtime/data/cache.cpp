// Columns on disk.
//
// A file is a magic number, a checksum of all that follows, and sections of a length in bytes (u64, then a u64 of zero)
// and their bytes, with zeros up to the next multiple of 16: fingerprint, Record, foreign table, elements, validity,
// foreign rows, lengths of the dictionary's values (u32 each), their bytes, pad; or, of texts, the fingerprint and each
// text; or, of a form that a column's bytes were put in for the device (runtime/memory/column_forms.h), a fingerprint
// that names the form and of what it is (the column's file by its fingerprint and sum; where it has none, only where the
// column comes from, and who reads the form compares it), whether they can be put in it, and the bytes. Numbers are in the machine's own order. Files are written under another name and renamed, so that no reader sees
// half of one.
//
// A column is not copied out of its file: its vectors are the mapped file, which goes on existing for them when another
// takes its name. The checksum notices damage, and every number that will serve as an index is checked, since anyone may
// write files with a checksum; both by all cores, 4 MiB a piece: as fast as memory is. (A file that somebody cuts short
// while it is mapped ends the process, as with every mapped file; nothing here does so.)
#include "runtime/data/cache.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <new>
#include <span>
#include <utility>

#include "libraries/base/system/parallel.h"

namespace rndn::data {
namespace {

// Forms have another number with every layout of ptx/encodings (Encodings.LayoutsAreThoseOfKeptFiles).
constexpr std::string_view column_magic = "rndncol4", texts_magic = "rndntxt2", form_magic = "rndnfrm1";
constexpr size_t magic_size = 8;

struct Record {
  uint64_t rows;
  int64_t min, max;
  double float_min, float_max;
  uint32_t width;
  uint8_t type, encoding, known, sorted, dense, unique, is_foreign_key, has_foreign_rows;
};
static_assert(sizeof(Record) == 56, "a new layout needs a new magic number");
static_assert(std::is_trivially_copyable_v<Record>);

// Four independent chains of multiplications, so that they overlap: several bytes per cycle. It finds damage; it says of no
// two contents that they are the same, since bits of one word can be made up for in the next of its chain.
uint64_t checksum(uint64_t seed, const void* bytes, size_t size) {
  constexpr uint64_t factor = 0x9e3779b97f4a7c15u;
  uint64_t lanes[4] = {seed, seed + 1, seed + 2, seed + 3};
  const char* at = static_cast<const char*>(bytes);
  size_t left = size;
  auto mix = [](uint64_t lane, uint64_t word) {
    lane = (lane ^ word) * factor;
    return lane ^ lane >> 29;
  };
  for (; left >= 32; at += 32, left -= 32) {
    uint64_t words[4];
    std::memcpy(words, at, 32);
    for (int i = 0; i < 4; ++i) lanes[i] = mix(lanes[i], words[i]);
  }
  uint64_t words[4] = {};
  if (left) std::memcpy(words, at, left);
  uint64_t sum = size;
  for (int i = 0; i < 4; ++i) sum = mix(sum, mix(lanes[i], words[i]));
  return sum;
}

constexpr size_t piece_size = size_t{4} << 20, section_alignment = 16;

// Calls body(piece, from, to) for all pieces of 0..size, on all cores.
void for_pieces(size_t size, const std::function<void(size_t piece, size_t from, size_t to)>& body) {
  const size_t pieces = (size + piece_size - 1) / piece_size;
  parallel_for(pieces, [&](size_t i) { body(i, i * piece_size, std::min(size, (i + 1) * piece_size)); });
}

// Of a section, after those before it.
uint64_t section_sum(uint64_t seed, std::span<const std::byte> bytes) {
  std::vector<uint64_t> sums((bytes.size() + piece_size - 1) / piece_size);
  for_pieces(bytes.size(),
             [&](size_t piece, size_t from, size_t to) { sums[piece] = checksum(piece, bytes.data() + from, to - from); });
  return checksum(seed ^ bytes.size(), sums.data(), sums.size() * sizeof(uint64_t));
}

size_t padding(size_t size) { return (section_alignment - size % section_alignment) % section_alignment; }

class Output {
 public:
  explicit Output(std::FILE* file) : file_(file) {}
  void section(const void* bytes, size_t size) {
    const uint64_t head[2] = {size, 0};
    const char zeros[section_alignment] = {};
    put(head, sizeof head);
    put(bytes, size);
    put(zeros, padding(size));
    sum_ = section_sum(sum_, {static_cast<const std::byte*>(bytes), size});
  }
  void put(const void* bytes, size_t size) { ok_ = ok_ && (size == 0 || std::fwrite(bytes, 1, size, file_) == size); }
  bool ok() const { return ok_; }
  uint64_t sum() const { return sum_; }

 private:
  std::FILE* file_;
  uint64_t sum_ = 0;
  bool ok_ = true;
};

// A mapped file, which its sections keep. Written pages are copies, so that who owns a column may change it.
class Mapping {
 public:
  static std::shared_ptr<Mapping> of(int file, size_t size) {
    void* memory = size ? mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0) : MAP_FAILED;
    return memory == MAP_FAILED ? nullptr : std::shared_ptr<Mapping>(new Mapping(memory, size));
  }
  ~Mapping() { munmap(bytes_.data(), bytes_.size()); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  Mapping(void* memory, size_t size) : bytes_(static_cast<std::byte*>(memory), size) {}
  std::span<std::byte> bytes_;
};

class Input {
 public:
  explicit Input(std::shared_ptr<Mapping> file) : file_(std::move(file)), left_(file_->bytes()) {}
  bool get(void* bytes, size_t size) {
    if (size > left_.size()) return false;
    std::memcpy(bytes, left_.data(), size);
    left_ = left_.subspan(size);
    return true;
  }
  // What lies between sections is zero, so that no byte of a file is without meaning.
  std::optional<std::span<std::byte>> section() {
    uint64_t head[2];
    if (!get(head, sizeof head) || head[1] || head[0] > left_.size()) return std::nullopt;
    const std::span<std::byte> bytes = left_.first(head[0]);
    sum_ = section_sum(sum_, bytes);
    left_ = left_.subspan(head[0]);
    char between[section_alignment] = {};
    if (!get(between, padding(head[0])) || std::any_of(between, std::end(between), [](char c) { return c; }))
      return std::nullopt;
    return bytes;
  }
  bool section(std::string& bytes) {
    const auto found = section();
    if (found) bytes.assign(reinterpret_cast<const char*>(found->data()), found->size());
    return found.has_value();
  }
  bool section(std::shared_ptr<Bytes>& bytes) {
    const auto found = section();
    if (found) bytes = std::make_shared<Bytes>(*found, file_);
    return found.has_value();
  }
  bool at_end() const { return left_.empty(); }
  uint64_t sum() const { return sum_; }

 private:
  std::shared_ptr<Mapping> file_;
  std::span<std::byte> left_;
  uint64_t sum_ = 0;
};

// What is kept of the user's data is the user's.
bool make_directories(const std::string& path) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    if (mkdir(path.substr(0, slash).c_str(), 0700) != 0 && errno != EEXIST) return false;
    if (slash == std::string::npos) return true;
  }
}

// A file that is being written beside its place, and is gone unless it gets there.
struct Beside {
  std::string path;
  std::FILE* file = nullptr;
  ~Beside() {
    if (file) std::fclose(file);
    if (!path.empty()) unlink(path.c_str());
  }
};
struct OpenFile {
  int descriptor;
  ~OpenFile() { close(descriptor); }
};

// A file with the sections that `fill` puts there, written beside and renamed. Its sum; none: it could not be written.
template <class Fill>
std::optional<uint64_t> write_sections(const std::string& path, std::string_view magic, const std::string& fingerprint,
                                       Fill&& fill) {
  static std::atomic<uint64_t> files{0};  // names only
  std::string temporary;
  int descriptor = -1;
  // The name may be taken by what a process of the same number left behind, or by a link: never write through one.
  for (int attempt = 0; attempt < 16 && descriptor < 0 && (attempt == 0 || errno == EEXIST); ++attempt) {
    temporary = fmt::format("{}.{}.{}", path, getpid(), files++);
    descriptor = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  }
  if (descriptor < 0) return std::nullopt;
  Beside beside{temporary, fdopen(descriptor, "wb")};
  if (!beside.file) {
    close(descriptor);
    return std::nullopt;
  }
  Output output(beside.file);
  uint64_t sum = 0;  // its place
  output.put(magic.data(), magic_size);
  output.put(&sum, sizeof sum);
  output.section(fingerprint.data(), fingerprint.size());
  fill(output);
  sum = output.sum();
  bool ok = output.ok() && std::fseek(beside.file, magic_size, SEEK_SET) == 0 &&
            std::fwrite(&sum, sizeof sum, 1, beside.file) == 1;
  ok &= std::fclose(std::exchange(beside.file, nullptr)) == 0;
  ok = ok && std::rename(temporary.c_str(), path.c_str()) == 0;
  if (!ok) return std::nullopt;
  beside.path.clear();
  return sum;
}

// What `take` (Input&) makes of the sections of such a file; it must reach the end.
template <class Take>
auto read_sections(const std::string& path, std::string_view magic, const std::string& fingerprint, Take&& take)
    -> decltype(take(std::declval<Input&>())) {
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // never wait for the other end of a pipe
  if (file < 0) return std::nullopt;
  const OpenFile opened{file};
  decltype(take(std::declval<Input&>())) taken;
  struct stat status {};
  if (fstat(file, &status) == 0 && S_ISREG(status.st_mode)) {
    try {
      std::shared_ptr<Mapping> mapping = Mapping::of(file, static_cast<size_t>(status.st_size));
      if (!mapping) return taken;
      Input input(std::move(mapping));
      char start[magic_size];
      uint64_t sum = 0;
      std::string found;
      if (input.get(start, sizeof start) && std::string_view(start, magic_size) == magic &&
          input.get(&sum, sizeof sum) && input.section(found) && found == fingerprint)
        taken = take(input);
      if (!input.at_end() || input.sum() != sum) taken.reset();
    } catch (const std::bad_alloc&) {
      taken.reset();
    }
  }
  return taken;
}

// Whether `holds` of every piece of the elements.
template <class T, class Holds>
bool all_pieces(const Bytes& bytes, Holds&& holds) {
  std::atomic<bool> all{true};
  for_pieces(bytes.size(), [&](size_t, size_t from, size_t to) {
    const T* elements = reinterpret_cast<const T*>(bytes.data() + from);
    if (!holds(std::span<const T>(elements, (to - from) / sizeof(T)))) all = false;
  });
  return all;
}

template <class T>
bool all_below(const Bytes& bytes, uint64_t bound) {
  return all_pieces<T>(bytes, [&](std::span<const T> values) {
    T largest = 0;
    for (T value : values) largest = std::max(largest, value);
    return largest < bound;
  });
}

template <class T>
bool all_between(const Bytes& bytes, int64_t min, int64_t max) {
  return all_pieces<T>(bytes, [&](std::span<const T> values) {
    T least = std::numeric_limits<T>::max(), largest = std::numeric_limits<T>::min();
    for (T value : values) least = std::min(least, value), largest = std::max(largest, value);
    return values.empty() || (least >= min && largest <= max);
  });
}

bool all_within(const Bytes& texts, uint64_t pad) {
  return all_pieces<uint64_t>(texts, [&](std::span<const uint64_t> values) {
    uint64_t end = 0;
    for (uint64_t value : values) end = std::max(end, (value >> 24) + (value & 0xffffff));
    return end <= pad;
  });
}

// Whether sizes agree and no code or text is out of range.
bool is_sound(const Record& record, const Column& column, const Bytes& foreign_rows,
              const std::string& lengths, const std::string& values, const Bytes& pad) {
  if (record.type >= hir::basic_type_count || record.encoding > static_cast<uint8_t>(Encoding::text)) return false;
  if (record.known > 1 || record.sorted > 1 || record.dense > 1 || record.unique > 1) return false;
  if (record.is_foreign_key > 1 || record.has_foreign_rows > record.is_foreign_key) return false;
  const auto type = static_cast<hir::BasicType>(record.type);
  const auto encoding = static_cast<Encoding>(record.encoding);
  if (hir::is_text(type) != (encoding != Encoding::plain)) return false;
  const uint32_t width = record.width;
  if (encoding == Encoding::dictionary ? width != 1 && width != 2 && width != 4 : width != plain_width(type))
    return false;
  const Bytes& data = *column.data;
  if (data.size() % width || data.size() / width != record.rows) return false;
  const Bytes& valid = *column.validity;
  if (!valid.empty() && (valid.size() != record.rows || !all_below<uint8_t>(valid, 2)))
    return false;
  if (record.has_foreign_rows ? foreign_rows.size() != record.rows * 4 && foreign_rows.size() != record.rows * 8
                              : !foreign_rows.empty())
    return false;
  if (encoding != Encoding::dictionary && !(lengths.empty() && values.empty())) return false;
  if (encoding != Encoding::text && !pad.empty()) return false;
  if (encoding == Encoding::text) return all_within(data, pad.size());
  if (encoding == Encoding::plain) {
    if (!record.known || !(hir::is_integer(type) || hir::is_calendar(type)) || width > 8) return true;
    switch (width) {  // kernels rely on it that each element lies there
      case 1: return all_between<int8_t>(data, record.min, record.max);
      case 2: return all_between<int16_t>(data, record.min, record.max);
      case 4: return all_between<int32_t>(data, record.min, record.max);
      default: return all_between<int64_t>(data, record.min, record.max);
    }
  }
  const uint64_t distinct = lengths.size() / sizeof(uint32_t);
  uint64_t total = 0;
  for (size_t i = 0; i < distinct; ++i) {
    uint32_t length;
    std::memcpy(&length, lengths.data() + i * sizeof length, sizeof length);
    total += length;
  }
  if (lengths.size() % sizeof(uint32_t) || total != values.size()) return false;
  return width == 1   ? all_below<uint8_t>(data, distinct)
         : width == 2 ? all_below<uint16_t>(data, distinct)
                      : all_below<uint32_t>(data, distinct);
}

// Forms of the column's elements, and of its foreign rows, are kept beside its file.
void keep_forms(const Column& column, const std::string& path, const std::string& fingerprint, uint64_t sum) {
  const size_t slash = path.rfind('/'), hash = path.rfind('.', path.rfind('.') - 1);  // cache_entry
  const std::string directory = path.substr(0, slash);
  const std::string name = path.substr(slash + 1, hash == path.npos || hash < slash ? path.npos : hash - slash - 1);
  const auto keep = [&](const std::shared_ptr<Bytes>& bytes, std::string_view part) {
    if (bytes) bytes->keep_forms({directory, name, fmt::format("{} of {:016x} {}", part, sum, fingerprint), true});
  };
  keep(column.data, "elements");
  keep(column.foreign_rows, "rows");
}

std::optional<Column> take_column(Input& input) {
  std::string foreign_table, record_bytes, lengths, values;
  Column column;
  std::shared_ptr<Bytes> foreign_rows, pad;
  if (!input.section(record_bytes) || record_bytes.size() != sizeof(Record)) return std::nullopt;
  if (!input.section(foreign_table) || !input.section(column.data) || !input.section(column.validity))
    return std::nullopt;
  if (!input.section(foreign_rows) || !input.section(lengths) || !input.section(values) || !input.section(pad))
    return std::nullopt;

  Record record;
  std::memcpy(&record, record_bytes.data(), sizeof record);
  if (!is_sound(record, column, *foreign_rows, lengths, values, *pad)) return std::nullopt;
  column.type = static_cast<hir::BasicType>(record.type);
  column.encoding = static_cast<Encoding>(record.encoding);
  column.width = record.width;
  column.rows = record.rows;
  column.statistics = {.known = record.known != 0,
                       .min = record.min,
                       .max = record.max,
                       .float_min = record.float_min,
                       .float_max = record.float_max,
                       .sorted = record.sorted != 0,
                       .dense = record.dense != 0,
                       .unique = record.unique != 0};
  if (column.type == hir::BasicType::i128) compute_statistics(column);  // the record has 64 bits
  if (column.validity->empty()) column.validity.reset();
  column.is_foreign_key = record.is_foreign_key != 0;
  column.foreign_table = foreign_table;
  if (record.has_foreign_rows) column.foreign_rows = foreign_rows;
  if (column.encoding == Encoding::text) column.pad = pad;
  if (column.encoding == Encoding::dictionary) {
    column.dictionary = std::make_shared<Dictionary>();
    size_t at = 0;
    for (size_t i = 0; i + sizeof(uint32_t) <= lengths.size(); i += sizeof(uint32_t)) {
      uint32_t length;
      std::memcpy(&length, lengths.data() + i, sizeof length);
      column.dictionary->values.push_back(values.substr(at, length));
      at += length;
    }
  }
  return column;
}

class CachedLoader : public TableLoader {
 public:
  CachedLoader(std::unique_ptr<TableLoader> inner, std::string directory, std::string place)
      : inner_(std::move(inner)), directory_(std::move(directory)), place_(std::move(place)) {}

  const Schema& schema() const override { return inner_->schema(); }
  Result<uint64_t> rows(size_t table) override { return inner_->rows(table); }
  Result<Column> load_as(size_t table, size_t column, hir::BasicType type) override {
    return inner_->load_as(table, column, type);
  }
  bool keys_hold(size_t table) const override { return inner_->keys_hold(table); }
  std::optional<uint64_t> rows_at_hand(size_t table) const override { return inner_->rows_at_hand(table); }
  std::string fingerprint(size_t table, size_t column) const override { return inner_->fingerprint(table, column); }
  std::string describe(size_t table, size_t column, uint64_t row) override {
    return inner_->describe(table, column, row);
  }

  // Columns that are not kept on disk go through; forms of them are kept by where they come from.
  Result<std::vector<Column>> load(size_t table, std::span<const size_t> columns,
                                   const Shown& shown) override {
    if (is_kept(table)) return load(table, columns);
    ASSIGN_OR_RETURN(std::vector<Column> loaded, inner_->load(table, columns, shown));
    for (size_t i = 0; i < loaded.size(); ++i) keep_forms_of(table, columns[i], loaded[i]);
    return loaded;
  }
  std::vector<RowRange> ranges(size_t table, std::span<const size_t> columns) const override {
    return is_kept(table) ? std::vector<RowRange>() : inner_->ranges(table, columns);
  }
  std::unique_ptr<TableLoader> of_ranges(size_t table, std::span<const size_t> ranges) const override {
    return is_kept(table) ? nullptr : inner_->of_ranges(table, ranges);
  }
  Result<std::vector<Column>> load(size_t table, std::span<const size_t> columns) override {
    std::vector<std::optional<Column>> found;
    std::vector<std::string> fingerprints;
    std::vector<size_t> missing;
    for (size_t column : columns) {
      fingerprints.push_back(fingerprint(table, column));
      found.push_back(fingerprints.back().empty()
                          ? std::nullopt
                          : read_column(path(table, column, fingerprints.back()), fingerprints.back()));
      if (found.back() && !fits(table, column, *found.back())) found.back().reset();
      if (!found.back()) missing.push_back(column);
    }
    std::vector<Column> loaded;
    if (!missing.empty()) {
      ASSIGN_OR_RETURN(loaded, inner_->load(table, missing));
      // What was read from disk gave way to nothing loaded so far: it has to agree now.
      auto known = rows_.find(table);
      if (known != rows_.end() && !loaded.empty() && known->second != loaded[0].rows)
        return world_error("the cache `{}` has columns of table `{}` with {} rows where there are {}: remove it",
                           directory_, schema().tables[table].name, known->second, loaded[0].rows);
    }
    std::vector<Column> all;
    auto next = loaded.begin();
    for (size_t i = 0; i < columns.size(); ++i) {
      if (found[i]) {
        all.push_back(std::move(*found[i]));
        continue;
      }
      // What is made of a changed file must not go under the name of the file before.
      if (fingerprints[i].empty() || fingerprint(table, columns[i]) != fingerprints[i] ||
          !make_directories(directory_) ||
          !write_column(path(table, columns[i], fingerprints[i]), fingerprints[i], *next))
        keep_forms_of(table, columns[i], *next);
      all.push_back(std::move(*next++));
    }
    return all;
  }

 private:
  bool is_kept(size_t table) const { return !inner_->fingerprint(table, 0).empty(); }
  // Whether a column read from disk is of the schema's type, and its keys lead to rows that exist.
  bool fits(size_t table, size_t position, const Column& column) {
    const ColumnSchema& schema = this->schema().tables[table].columns[position];
    if (column.type != schema.type || column.is_foreign_key != schema.is_foreign_key() ||
        column.foreign_table != schema.foreign_table)
      return false;
    // Another column of the table told its number of rows.
    if (auto known = rows_.find(table); known != rows_.end() && known->second != column.rows) return false;
    if (column.foreign_rows) {
      const TableSchema* parent = this->schema().find(schema.foreign_table);
      if (!parent) return false;
      Result<uint64_t> parent_rows = inner_->rows(static_cast<size_t>(parent - this->schema().tables.data()));
      if (!parent_rows) return false;
      const Bytes& rows = *column.foreign_rows;
      const uint32_t width = foreign_row_width(*parent_rows);
      if (rows.size() != column.rows * width) return false;
      if (!(width == 4 ? all_below<uint32_t>(rows, *parent_rows) : all_below<uint64_t>(rows, *parent_rows)))
        return false;
    }
    rows_[table] = column.rows;
    return true;
  }

  // Of what has no file.
  void keep_forms_of(size_t table, size_t column, const Column& loaded) const {
    const std::string own = name(table, column), origin = fmt::format("elements of {} in {}", own, place_);
    if (loaded.data) loaded.data->keep_forms({directory_, own, origin});
    if (loaded.foreign_rows) loaded.foreign_rows->keep_forms({directory_, own + ".rows", "rows of " + origin});
  }
  std::string name(size_t table, size_t column) const {
    const TableSchema& schema = this->schema().tables[table];
    return schema.name + "." + schema.columns[column].name;
  }
  std::string path(size_t table, size_t column, const std::string& fingerprint) const {
    return cache_entry(directory_, name(table, column), fingerprint, "column");
  }

  std::unique_ptr<TableLoader> inner_;
  std::string directory_, place_;
  std::map<size_t, uint64_t> rows_;  // by table, of columns read from disk
};

}  // namespace

bool write_column(const std::string& path, const std::string& fingerprint, const Column& column) {
  const Statistics& s = column.statistics;
  Record record{.rows = column.rows,
                .min = s.min,
                .max = s.max,
                .float_min = s.float_min,
                .float_max = s.float_max,
                .width = column.width,
                .type = static_cast<uint8_t>(column.type),
                .encoding = static_cast<uint8_t>(column.encoding),
                .known = s.known,
                .sorted = s.sorted,
                .dense = s.dense,
                .unique = s.unique,
                .is_foreign_key = column.is_foreign_key,
                .has_foreign_rows = column.foreign_rows != nullptr};
  std::vector<uint32_t> lengths;
  std::string values;
  if (column.dictionary) {
    for (const std::string& value : column.dictionary->values) {
      lengths.push_back(static_cast<uint32_t>(value.size()));
      values += value;
    }
  }
  const auto sum = write_sections(path, column_magic, fingerprint, [&](Output& output) {
    auto bytes = [&](const auto& maybe) { output.section(maybe ? maybe->data() : nullptr, maybe ? maybe->size() : 0); };
    output.section(&record, sizeof record);
    output.section(column.foreign_table.data(), column.foreign_table.size());
    bytes(column.data);
    bytes(column.validity);
    bytes(column.foreign_rows);
    output.section(lengths.data(), lengths.size() * sizeof(uint32_t));
    output.section(values.data(), values.size());
    bytes(column.pad);
  });
  if (sum) keep_forms(column, path, fingerprint, *sum);
  return sum.has_value();
}

std::optional<Column> read_column(const std::string& path, const std::string& fingerprint) {
  return read_sections(path, column_magic, fingerprint, [&](Input& input) {
    std::optional<Column> column = take_column(input);
    if (column) keep_forms(*column, path, fingerprint, input.sum());
    return column;
  });
}

std::optional<FormFile> FormFile::of(const Bytes& bytes, const std::string& form) {
  const FormsKept* kept = bytes.forms();
  if (!kept) return std::nullopt;
  const std::string fingerprint = fmt::format("{} of {}", form, kept->origin);
  // Of a place the newest form only.
  return FormFile(kept->is_version ? cache_entry(kept->directory, kept->name + "." + form, fingerprint, "form")
                                   : cache_entry(kept->directory, kept->name, kept->origin, "form"),
                  fingerprint, kept->is_version);
}

std::optional<std::shared_ptr<Bytes>> FormFile::read() const {
  return read_sections(path_, form_magic, fingerprint_, [](Input& input) -> std::optional<std::shared_ptr<Bytes>> {
    std::string held;
    std::shared_ptr<Bytes> bytes;
    if (!input.section(held) || !input.section(bytes) || held.size() != 1) return std::nullopt;
    if (held[0] == 0 && bytes->empty()) return std::make_optional<std::shared_ptr<Bytes>>(nullptr);
    if (held[0] != 1) return std::nullopt;
    return bytes;
  });
}

bool FormFile::write(const Bytes* made) const {
  const char held = made != nullptr;
  return make_directories(path_.substr(0, path_.rfind('/'))) &&
         write_sections(path_, form_magic, fingerprint_, [&](Output& output) {
           output.section(&held, 1);
           output.section(made ? made->data() : nullptr, made ? made->size() : 0);
         });
}

bool write_texts(const std::string& path, const std::string& fingerprint, const std::vector<std::string>& texts) {
  return make_directories(path.substr(0, path.rfind('/'))) &&
         write_sections(path, texts_magic, fingerprint, [&](Output& output) {
           for (const std::string& text : texts) output.section(text.data(), text.size());
         });
}

std::optional<std::vector<std::string>> read_texts(const std::string& path, const std::string& fingerprint) {
  return read_sections(path, texts_magic, fingerprint, [](Input& input) -> std::optional<std::vector<std::string>> {
    std::vector<std::string> texts;
    while (!input.at_end())
      if (!input.section(texts.emplace_back())) return std::nullopt;
    return texts;
  });
}

std::string cache_entry(const std::string& directory, const std::string& name, const std::string& fingerprint,
                        std::string_view extension) {
  // Names are the user's and may be anything: letters, digits and the hash make the file's name.
  std::string plain;
  for (char c : name.substr(name.rfind('/') + 1))
    if (plain.size() < 64) plain += std::isalnum(static_cast<unsigned char>(c)) || c == '.' ? c : '_';
  return fmt::format("{}/{}.{:016x}.{}", directory, plain, checksum(1, fingerprint.data(), fingerprint.size()), extension);
}

Result<void> check_cache(const std::string& directory) {
  struct stat status {};
  if (!make_directories(directory))
    return world_error("cannot make the cache `{}`: {}", directory, std::strerror(errno));
  if (stat(directory.c_str(), &status) == 0 && !S_ISDIR(status.st_mode))
    errno = ENOTDIR;
  else if (access(directory.c_str(), W_OK | X_OK) == 0)
    return {};
  return world_error("cannot write to the cache `{}`: {}", directory, std::strerror(errno));
}

std::string default_cache_directory() {
  auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (std::string own = variable("RNDN_CACHE_DIR"); !own.empty()) return own;
  if (std::string cache = variable("XDG_CACHE_HOME"); !cache.empty()) return cache + "/rndn";
  if (std::string home = variable("HOME"); !home.empty()) return home + "/.cache/rndn";
  return "";
}

std::unique_ptr<TableLoader> cached(std::unique_ptr<TableLoader> inner, std::string directory, std::string place) {
  return std::make_unique<CachedLoader>(std::move(inner), std::move(directory), std::move(place));
}

}  // namespace rndn::data
