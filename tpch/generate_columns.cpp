// Generates columns straight into memory: only those that were asked for, and what they are computed from.
//
// All columns are filled in one parallel pass over the chunks of the table. Text with few possible values becomes a
// dictionary: the pass stores the numbers that stand for the words, a second one turns them into codes in the order
// of the words. Other text is made chunk by chunk; a chunk's goes to its place in the pad as soon as those before it
// are made, so that the pad is in the order of rows.
//
// Cost: O(rows) per column; memory: the columns, and the texts of a few chunks per thread.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <new>

#include "libraries/base/containers/huge_pages.h"
#include "libraries/base/errors/diagnostic.h"
#include "libraries/base/report/progress.h"
#include "runtime/data/schema.h"
#include "runtime/data/text_codes.h"
#include "tpch/generate.h"
#include "tpch/recipe.h"
#include "tpch/source.h"
#include "tpch/workers.h"

namespace rndn::tpch {
namespace {

using data::Column;
using data::Encoding;
using hir::BasicType;

// For columns with few possible values: one more than the largest number that stands for a value; else 0.
uint64_t value_range(ColumnId id, const Sizes& sizes) {
  const ColumnInfo& info = column_info(id);
  if (info.form == Form::choice) return info.words->size();
  switch (id) {
    case ColumnId::p_mfgr: return 6;
    case ColumnId::p_brand: return 56;
    case ColumnId::o_clerk: return static_cast<uint64_t>(sizes.clerks) + 1;
    default: return 0;
  }
}

// The row of the referenced table that has this key.
int64_t referenced_row(ColumnId id, int64_t key) {
  switch (id) {
    case ColumnId::n_regionkey:
    case ColumnId::s_nationkey:
    case ColumnId::c_nationkey: return key;                             // keys count from 0
    case ColumnId::l_orderkey: return (key >> 5 << 3 | (key & 7)) - 1;  // eight keys of 32 are used
    default: return key - 1;
  }
}

// Rows of the table before every chunk, and the total.
std::vector<uint64_t> first_rows(const TableRecipe& table, unsigned threads) {
  constexpr uint64_t size = Chunk::preferred_rows;
  std::vector<uint64_t> first((table.driving_rows + size - 1) / size + 1);
  auto count = [&](size_t chunk) {
    const uint64_t from = chunk * size;
    first[chunk + 1] = table.rows_of(from, std::min(size, table.driving_rows - from));
  };
  parallel_for(first.size() - 1, count, threads);
  for (size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
  return first;
}

// Texts of chunks one behind the other, in the order of the chunks, which come in any.
class Pad {
 public:
  // Addresses for texts of the greatest length; the system gives memory for what is written.
  explicit Pad(uint64_t rows) : size_(std::max<uint64_t>(rows * Chunk::longest_text, 1)) {
    void* memory =
        mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    memory_ = static_cast<char*>(memory);
    prefer_huge_pages(memory_, size_);
  }
  ~Pad() {
    if (memory_) munmap(memory_, size_);
  }
  Pad(const Pad&) = delete;

  // `words` are those of the chunk's rows, with offsets from the begin of its text.
  void add(uint64_t chunk, std::string text, std::span<uint64_t> words) {
    std::vector<Piece> ready;
    {
      std::lock_guard lock(mutex_);
      waiting_.emplace(chunk, Piece{std::move(text), words});
      for (auto at = waiting_.begin(); at != waiting_.end() && at->first == next_; at = waiting_.erase(at), ++next_) {
        ready.push_back(std::move(at->second));
        ready.back().at = used_;
        used_ += ready.back().text.size();
      }
    }
    for (const Piece& piece : ready) {
      std::memcpy(memory_ + piece.at, piece.text.data(), piece.text.size());
      for (uint64_t& word : piece.words) word += piece.at << 24;
    }
  }

  // The texts of all chunks.
  std::shared_ptr<data::Bytes> take() {
    const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    const uint64_t kept = std::max(page, (used_ + page - 1) / page * page);
    if (kept < size_) munmap(memory_ + kept, size_ - kept);
    size_ = std::min(size_, kept);
    auto charge = std::make_shared<MemoryCharge>(size_);
    char* const memory = std::exchange(memory_, nullptr);  // the owner's, whatever fails
    const std::shared_ptr<const void> owner(memory, [size = size_, charge](void* m) { munmap(m, size); });
    return std::make_shared<data::Bytes>(std::span(reinterpret_cast<std::byte*>(memory), used_), owner);
  }

 private:
  struct Piece {
    std::string text;
    std::span<uint64_t> words;
    uint64_t at = 0;
  };
  uint64_t size_, used_ = 0, next_ = 0;
  char* memory_ = nullptr;
  std::mutex mutex_;
  std::map<uint64_t, Piece> waiting_;  // for chunks before them
};

// A column on its way.
struct Target {
  const Recipe* recipe;
  Column column;
  std::vector<uint8_t> seen;  // dictionary: which numbers occur
  std::unique_ptr<Pad> pad;   // text

  template <class T>
  T* out() {
    return reinterpret_cast<T*>(column.data->data());
  }

  template <class T, class F>
  void store(std::span<const int64_t> values, uint64_t at, F&& convert) {
    T* to = out<T>() + at;
    for (size_t i = 0; i < values.size(); ++i) to[i] = convert(values[i]);
  }

  template <class T>
  void store_numbers(std::span<const int64_t> values, uint64_t at) {
    T* to = out<T>() + at;
    for (size_t i = 0; i < values.size(); ++i) {
      to[i] = static_cast<T>(values[i]);
      std::atomic_ref(seen[static_cast<size_t>(values[i])]).store(1, std::memory_order_relaxed);
    }
  }

  void store_text(const Chunk& chunk, std::span<const int64_t> values, uint64_t at, uint64_t number) {
    uint64_t* to = out<uint64_t>() + at;
    std::string text;
    char buffer[Chunk::longest_text];
    for (size_t i = 0; i < values.size(); ++i) {
      size_t length = recipe->write_text(chunk, values[i], buffer) - buffer;
      to[i] = text.size() << 24 | length;  // the offset is within the chunk's text so far
      text.append(buffer, length);
    }
    pad->add(number, std::move(text), {to, values.size()});
  }

  void fill(Chunk& chunk, uint64_t number, uint64_t at) {
    thread_local std::vector<int64_t> scratch;
    std::span<const int64_t> values = recipe->values(chunk, scratch);
    if (recipe->range) {
      if (column.width == 1) return store_numbers<uint8_t>(values, at);
      if (column.width == 2) return store_numbers<uint16_t>(values, at);
      return store_numbers<uint32_t>(values, at);
    }
    if (column.encoding == Encoding::text) return store_text(chunk, values, at, number);
    if (column.type == BasicType::f64) {
      // One division of two exact numbers rounds as reading the decimal text does.
      if (recipe->cents)
        return store<double>(values, at, [](int64_t v) { return static_cast<double>(v) / 100.0; });
      return store<double>(values, at, [](int64_t v) { return static_cast<double>(v); });
    }
    if (column.width == 1) return store<uint8_t>(values, at, [](int64_t v) { return static_cast<uint8_t>(v); });
    CHECK(column.width == 4, "{} is stored in {} bytes", recipe->schema->name, column.width);
    store<int32_t>(values, at, [](int64_t v) { return static_cast<int32_t>(v); });
    if (column.is_foreign_key) {
      int32_t* rows = reinterpret_cast<int32_t*>(column.foreign_rows->data()) + at;
      for (size_t i = 0; i < values.size(); ++i) rows[i] = static_cast<int32_t>(recipe->referenced_row(values[i]));
    }
  }

  // Numbers become codes in the order of their texts.
  void finish_dictionary(const Chunk& chunk, unsigned threads) {
    std::vector<uint32_t> numbers;
    for (uint32_t number = 0; number < recipe->range; ++number)
      if (seen[number]) numbers.push_back(number);
    std::vector<std::string> texts;
    for (uint32_t number : numbers) {
      char buffer[Chunk::longest_text];
      texts.emplace_back(buffer, recipe->write_text(chunk, number, buffer) - buffer);
    }
    const std::vector<uint32_t> places = data::places_of(texts);
    column.dictionary->values = data::at_places(texts, places);
    std::vector<uint32_t> codes(recipe->range);
    for (size_t k = 0; k < numbers.size(); ++k) codes[numbers[k]] = places[k];
    constexpr uint64_t rows_per_part = 1 << 18;
    auto recode = [&](auto* data) {
      auto body = [&](size_t part) {
        for (uint64_t i = part * rows_per_part, end = std::min(i + rows_per_part, column.rows); i < end; ++i)
          data[i] = static_cast<std::remove_reference_t<decltype(data[i])>>(codes[data[i]]);
      };
      parallel_for((column.rows + rows_per_part - 1) / rows_per_part, body, threads);
    };
    if (column.width == 1)
      recode(out<uint8_t>());
    else if (column.width == 2)
      recode(out<uint16_t>());
    else
      recode(out<uint32_t>());
    seen = {};
  }
};

Result<std::vector<Column>> make(const TableRecipe& table, unsigned threads, bool progress) {
  std::vector<Target> targets;
  for (const Recipe& recipe : table.columns) targets.push_back({.recipe = &recipe});
  const std::vector<uint64_t> first = first_rows(table, threads);
  const uint64_t rows = first.back();

  auto bytes_per_row = [](const Target& t) -> uint64_t {
    if (t.recipe->range) return data::code_width(t.recipe->range);
    if (hir::is_text(t.recipe->schema->type)) return 8 + 40;  // a typical text
    return data::plain_width(t.recipe->schema->type) + (t.recipe->schema->is_foreign_key() ? 4 : 0);
  };
  double needed = 0;
  for (const Target& target : targets) needed += static_cast<double>(bytes_per_row(target) * rows);
  double available = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (needed > available)
    return world_error("{} columns of table `{}` at scale {} need {:.1f} GB of memory, this machine has {:.1f} GB",
                       targets.size(), table.name, table.scale, needed * 1e-9, available * 1e-9);

  // No exception may leave a thread.
  std::atomic<bool> out_of_memory{false};
  auto guarded = [&](auto&& body) {
    try {
      body();
    } catch (const std::bad_alloc&) {
      out_of_memory = true;
    }
    return !out_of_memory;
  };
  auto allocate = [&](Target& target) {
    const data::ColumnSchema& schema = *target.recipe->schema;
    const uint64_t range = target.recipe->range;
    Encoding encoding = range ? Encoding::dictionary : hir::is_text(schema.type) ? Encoding::text : Encoding::plain;
    target.column = data::make_column(schema.type, rows, encoding, range ? data::code_width(range) : 0);
    target.seen.assign(range, 0);
    if (encoding == Encoding::text) target.pad = std::make_unique<Pad>(rows);
    if (schema.is_foreign_key()) {
      target.column.is_foreign_key = true;
      target.column.foreign_table = schema.foreign_table;
      target.column.foreign_rows = std::make_shared<data::Bytes>(rows * 4);
    }
  };
  // In parallel, since the pages are touched here for the first time.
  parallel_for(
      targets.size(), [&](size_t i) { guarded([&] { allocate(targets[i]); }); }, threads);
  if (out_of_memory) throw std::bad_alloc();

  std::shared_ptr<const TextPool> pool = table.needs_pool() ? TextPool::get(threads) : nullptr;
  {
    Progress line(fmt::format("generating {}", table.name), rows, progress);
    auto fill = [&](Chunk& chunk, uint64_t number) {
      line.advance(first[number + 1] - first[number]);
      return guarded([&] {
        for (Target& target : targets) target.fill(chunk, number, first[number]);
      });
    };
    for_each_chunk(table.sizes, pool.get(), table.driving_rows, Chunk::preferred_rows, threads, fill);
  }
  if (out_of_memory) throw std::bad_alloc();

  const Chunk words(table.sizes, nullptr);
  std::vector<Column> columns;
  for (Target& target : targets) {
    if (target.recipe->range) target.finish_dictionary(words, threads);
    if (target.column.encoding == Encoding::text) target.column.pad = target.pad->take();
    data::compute_statistics(target.column, threads);
    columns.push_back(std::move(target.column));
  }
  return columns;
}

Recipe column_recipe(ColumnId id, const data::ColumnSchema& schema, const Sizes& sizes) {
  const ColumnInfo& info = column_info(id);
  CHECK(info.name == schema.name, "the schema and the generator disagree about `{}`", schema.name);
  return {.schema = &schema,
          .values = [id](Chunk& chunk, std::vector<int64_t>&) { return chunk.column(id); },
          .write_text = [&info](const Chunk& chunk, int64_t value, char* out) {
            return chunk.write_text(info, value, out);
          },
          .range = value_range(id, sizes),
          .cents = info.form == Form::cents,
          .reads_pool = info.form == Form::comment || id == ColumnId::s_comment,
          .referenced_row = [id](int64_t key) { return referenced_row(id, key); }};
}

}  // namespace

Result<void> check_order_keys(std::string_view table, const Sizes& sizes, double scale) {
  if (sizes.orders > (uint64_t{INT32_MAX} >> 2))
    return input_error("table `{}` at scale {} has order keys beyond 32 bits; the largest scale factor for it is 357",
                       table, scale);
  return {};
}

uint64_t TableRecipe::rows() const {
  constexpr uint64_t part = 1 << 18;
  std::atomic<uint64_t> all{0};
  parallel_for((driving_rows + part - 1) / part, [&](size_t i) {
    const uint64_t first = i * part;
    all += rows_of(first, std::min(part, driving_rows - first));
  });
  return all;
}

bool TableRecipe::needs_pool() const {
  return std::any_of(columns.begin(), columns.end(), [](const Recipe& column) { return column.reads_pool; });
}

Result<TableRecipe> recipe_of(Table table, const data::Schema& schema, std::span<const std::string> names,
                              double scale) {
  RETURN_IF_ERROR(check_scale(scale));
  const data::TableSchema& table_schema = *schema.find(table_name(table));
  const Sizes sizes(scale);
  TableRecipe recipe{.name = table_schema.name, .scale = scale, .sizes = sizes, .driving_rows = sizes.driving_rows(table)};
  recipe.rows_of = [table](uint64_t first, uint64_t count) {
    return table == Table::lineitem ? count_lines(first, count) : table == Table::partsupp ? count * 4 : count;
  };
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(const data::ColumnSchema* column, schema.column(table_schema, name));
    const ColumnId id = columns_of(table)[table_schema.position(*column)];
    recipe.columns.push_back(column_recipe(id, *column, sizes));
  }
  return recipe;
}

Result<std::vector<Column>> make_columns(const TableRecipe& table, unsigned threads, bool progress) {
  try {
    return make(table, threads, progress);
  } catch (const std::bad_alloc&) {
    return world_error("not enough memory for {} columns of table `{}` at scale {}", table.columns.size(), table.name,
                       table.scale);
  }
}

Result<std::vector<Column>> generate_columns(Table table, std::span<const std::string> names, double scale,
                                             unsigned threads, bool progress) {
  const data::Schema schema = tpch::schema();
  ASSIGN_OR_RETURN(const TableRecipe recipe, recipe_of(table, schema, names, scale));
  if (table == Table::orders || table == Table::lineitem)
    RETURN_IF_ERROR(check_order_keys(recipe.name, recipe.sizes, scale));
  return make_columns(recipe, threads, progress);
}

}  // namespace rndn::tpch
