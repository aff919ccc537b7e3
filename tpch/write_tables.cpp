// Writes tables as .tbl files: the values of a row in the order of the columns, each followed by `|`, a line per row.
//
// Threads take batches of rows in order, format them, learn from the batch before where in the file they go, and write
// them there at the same time. So the file does not depend on the number of threads, and memory is a few megabytes per
// thread.
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>

#include "libraries/base/system/files.h"
#include "libraries/base/system/wait.h"
#include "libraries/base/report/progress.h"
#include "runtime/data/schema.h"
#include "tpch/generate.h"
#include "tpch/recipe.h"
#include "tpch/source.h"
#include "tpch/workers.h"

namespace rndn::tpch {
namespace {

using hir::BasicType;

constexpr int64_t first_day = 8035, days = 2557;  // 1992-01-01 and the number of days that occur

// The text of every date that occurs.
struct DateTexts {
  char text[days][10];
  DateTexts() {
    static constexpr int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year = 1992, month = 1, day = 1;
    for (auto& t : text) {
      int digits[] = {year / 1000, year / 100 % 10, year / 10 % 10, year % 10, -1, month / 10, month % 10,
                      -1,          day / 10,        day % 10};
      for (int i = 0; i < 10; ++i) t[i] = digits[i] < 0 ? '-' : static_cast<char>('0' + digits[i]);
      if (++day > lengths[month - 1] + (month == 2 && year % 4 == 0)) {
        day = 1;
        if (++month > 12) month = 1, ++year;
      }
    }
  }
};

char* write_integer(int64_t value, char* out) {
  if (value < 0) *out++ = '-', value = -value;
  char buffer[20];
  char* begin = std::end(buffer);
  uint64_t rest = static_cast<uint64_t>(value);
  do *--begin = static_cast<char>('0' + rest % 10);
  while (rest /= 10);
  size_t length = std::end(buffer) - begin;
  std::memcpy(out, begin, length);
  return out + length;
}

char* write_cents(int64_t value, char* out) {
  if (value < 0) *out++ = '-', value = -value;
  out = write_integer(value / 100, out);
  *out++ = '.';
  *out++ = static_cast<char>('0' + value / 10 % 10);
  *out++ = static_cast<char>('0' + value % 10);
  return out;
}

struct TableWriter {
  std::span<const Recipe> recipes;
  const DateTexts dates;
  const TextPool* pool;

  // Room for one row: its texts, and 24 bytes for anything else.
  size_t longest_row() const {
    size_t bytes = 1;
    for (const Recipe& recipe : recipes) bytes += hir::is_text(recipe.schema->type) ? Chunk::longest_text : 24;
    return bytes;
  }

  char* write_rows(Chunk& chunk, char* out) const {
    thread_local std::vector<std::vector<int64_t>> scratch;
    scratch.resize(std::max(scratch.size(), recipes.size()));
    std::vector<std::span<const int64_t>> columns;
    for (size_t c = 0; c < recipes.size(); ++c) columns.push_back(recipes[c].values(chunk, scratch[c]));
    const size_t rows = columns[0].size();
    for (size_t row = 0; row < rows; ++row) {
      for (size_t c = 0; c < columns.size(); ++c) {
        const Recipe& recipe = recipes[c];
        const int64_t value = columns[c][row];
        switch (recipe.schema->type) {
          case BasicType::i32:
          case BasicType::i64:
          case BasicType::boolean: out = write_integer(value, out); break;
          case BasicType::f64: out = recipe.cents ? write_cents(value, out) : write_integer(value, out); break;
          case BasicType::date:
            std::memcpy(out, dates.text[value - first_day], 10);
            out += 10;
            break;
          case BasicType::character: *out++ = static_cast<char>(value); break;
          default:
            CHECK(hir::is_text(recipe.schema->type), "{} has no text", recipe.schema->name);
            // The pool is read all over: fetch what rows to come will need.
            if (recipe.reads_pool && row + 8 < rows) {
              const char* soon = pool->data() + (static_cast<uint64_t>(columns[c][row + 8]) >> 24);
              __builtin_prefetch(soon);
              __builtin_prefetch(soon + 64);
            }
            out = recipe.write_text(chunk, value, out);
        }
        *out++ = '|';
      }
      *out++ = '\n';
    }
    return out;
  }
};

// All columns of a table of TPC-H.
Result<TableRecipe> whole(Table table, const data::Schema& schema, double scale) {
  std::vector<std::string> names;
  for (const data::ColumnSchema& column : schema.find(table_name(table))->columns) names.push_back(column.name);
  return recipe_of(table, schema, names, scale);
}

Result<void> write_one(const TableRecipe& table, const TextPool* pool, const std::string& path, unsigned threads,
                       Progress& progress) {
  const TableWriter writer{.recipes = table.columns, .dates = {}, .pool = pool};
  ASSIGN_OR_RETURN(NewFile made, NewFile::create(path));
  const int file = made.descriptor();

  std::mutex mutex;
  std::condition_variable turn_taken;
  uint64_t turn = 0;
  off_t used = 0;
  int failure = 0;         // errno of the first write that failed
  bool abandoned = false;  // a thread gave up, its turn never comes
  const size_t longest_row = writer.longest_row();

  auto body = [&](Chunk& chunk, uint64_t number) {
    const size_t rows = table.rows_of(chunk.first(), chunk.count());
    std::unique_ptr<char[]> text = std::make_unique_for_overwrite<char[]>(rows * longest_row);
    size_t size = writer.write_rows(chunk, text.get()) - text.get();
    off_t at;
    {
      std::unique_lock lock(mutex);
      wait_for_change(turn_taken, lock, [&] { return turn == number || abandoned; });
      if (abandoned) return false;
      at = used;
      used += static_cast<off_t>(size);
      ++turn;
      if (failure) size = 0;
    }
    turn_taken.notify_all();
    for (size_t done = 0; done < size;) {
      ssize_t n = pwrite(file, text.get() + done, size - done, at + static_cast<off_t>(done));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        std::lock_guard lock(mutex);
        if (!failure) failure = n < 0 ? errno : EIO;
        break;
      }
      done += static_cast<size_t>(n);
    }
    progress.advance(rows);
    // After a failure every thread goes on taking turns, without writing, so that none waits for ever.
    return true;
  };
  auto give_up = [&] {
    std::lock_guard lock(mutex);
    abandoned = true;
    turn_taken.notify_all();
  };
  try {
    for_each_chunk(table.sizes, pool, table.driving_rows, Chunk::preferred_rows, threads, body, give_up);
  } catch (const std::bad_alloc&) {
    failure = ENOMEM;
  }

  if (failure) return world_error("cannot write `{}`: {}", path, std::strerror(failure));
  return made.commit();
}

}  // namespace

uint64_t row_count(Table table, double scale) {
  const data::Schema schema = tpch::schema();
  const auto recipe = recipe_of(table, schema, {}, scale);
  return recipe ? recipe->rows() : 0;
}

Result<void> write_table(Table table, double scale, const std::string& path, unsigned threads, bool progress) {
  const data::Schema schema = tpch::schema();
  ASSIGN_OR_RETURN(const TableRecipe recipe, whole(table, schema, scale));
  std::shared_ptr<const TextPool> pool = recipe.needs_pool() ? TextPool::get(threads) : nullptr;
  Progress line(fmt::format("writing {}", path), recipe.rows(), progress);
  return write_one(recipe, pool.get(), path, threads, line);
}

Result<void> write_folder(std::string_view what, std::span<const TableRecipe> tables, const data::Schema& schema,
                          const std::string& directory, unsigned threads, bool progress) {
  for (size_t slash = directory.find('/', 1); slash != std::string::npos; slash = directory.find('/', slash + 1))
    mkdir(directory.substr(0, slash).c_str(), 0777);
  if (mkdir(directory.c_str(), 0777) != 0 && errno != EEXIST)
    return world_error("cannot create the folder `{}`: {}", directory, std::strerror(errno));

  uint64_t rows = 0;
  bool needs_pool = false;
  for (const TableRecipe& table : tables) rows += table.rows(), needs_pool |= table.needs_pool();
  Progress line(fmt::format("generating {} at scale {}", what, tables[0].scale), rows, progress);
  std::shared_ptr<const TextPool> pool = needs_pool ? TextPool::get(threads) : nullptr;
  for (const TableRecipe& table : tables)
    RETURN_IF_ERROR(write_one(table, pool.get(), fmt::format("{}/{}.tbl", directory, table.name), threads, line));
  return write_file(directory + "/schema.json", data::schema_text(schema));
}

Result<void> write_tables(double scale, const std::string& directory, unsigned threads, bool progress) {
  constexpr Table all[] = {Table::region,   Table::nation,   Table::supplier, Table::part,
                           Table::partsupp, Table::customer, Table::orders,   Table::lineitem};
  const data::Schema schema = tpch::schema();
  std::vector<TableRecipe> tables;
  for (Table table : all) {
    ASSIGN_OR_RETURN(TableRecipe recipe, whole(table, schema, scale));
    tables.push_back(std::move(recipe));
  }
  return write_folder("TPC-H", tables, schema, directory, threads, progress);
}

}  // namespace rndn::tpch
