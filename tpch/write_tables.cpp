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
#include "tpch/source.h"
#include "tpch/workers.h"

namespace rndn::tpch {
namespace {

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
  std::vector<const ColumnInfo*> infos;
  const DateTexts dates;
  const TextPool* pool;

  // Room for one row: its texts, and 24 bytes for anything else.
  size_t longest_row() const {
    size_t bytes = 1;
    for (const ColumnInfo* info : infos) bytes += is_text(info->form) ? Chunk::longest_text : 24;
    return bytes;
  }

  char* write_rows(Chunk& chunk, std::span<const ColumnId> ids, char* out) const {
    std::vector<std::span<const int64_t>> columns;
    for (ColumnId id : ids) columns.push_back(chunk.column(id));
    const size_t rows = columns[0].size();
    for (size_t row = 0; row < rows; ++row) {
      for (size_t c = 0; c < columns.size(); ++c) {
        const ColumnInfo& info = *infos[c];
        int64_t value = columns[c][row];
        switch (info.form) {
          case Form::integer: out = write_integer(value, out); break;
          case Form::cents: out = write_cents(value, out); break;
          case Form::date:
            std::memcpy(out, dates.text[value - first_day], 10);
            out += 10;
            break;
          case Form::flag: *out++ = static_cast<char>(value); break;
          case Form::comment:
            // The pool is read all over: fetch what rows to come will need.
            if (row + 8 < rows) {
              const char* soon = pool->data() + (static_cast<uint64_t>(columns[c][row + 8]) >> 24);
              __builtin_prefetch(soon);
              __builtin_prefetch(soon + 64);
            }
            [[fallthrough]];
          default: out = chunk.write_text(info, value, out);
        }
        *out++ = '|';
      }
      *out++ = '\n';
    }
    return out;
  }
};

bool needs_pool(std::span<const ColumnId> ids) {
  for (ColumnId id : ids)
    if (column_info(id).form == Form::comment || id == ColumnId::s_comment) return true;
  return false;
}

Result<void> write_one(Table table, const Sizes& sizes, const TextPool* pool, const std::string& path, unsigned threads,
                       Progress& progress) {
  std::span<const ColumnId> ids = columns_of(table);
  TableWriter writer{.infos = {}, .dates = {}, .pool = pool};
  for (ColumnId id : ids) writer.infos.push_back(&column_info(id));

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
    size_t rows = chunk.rows(table);
    std::unique_ptr<char[]> text = std::make_unique_for_overwrite<char[]>(rows * longest_row);
    size_t size = writer.write_rows(chunk, ids, text.get()) - text.get();
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
    progress.advance(chunk.rows(table));
    // After a failure every thread goes on taking turns, without writing, so that none waits for ever.
    return true;
  };
  auto give_up = [&] {
    std::lock_guard lock(mutex);
    abandoned = true;
    turn_taken.notify_all();
  };
  try {
    for_each_chunk(sizes, pool, sizes.driving_rows(table), Chunk::preferred_rows, threads, body, give_up);
  } catch (const std::bad_alloc&) {
    failure = ENOMEM;
  }

  if (failure) return world_error("cannot write `{}`: {}", path, std::strerror(failure));
  return made.commit();
}

}  // namespace

uint64_t row_count(Table table, double scale) {
  if (!check_scale(scale)) return 0;
  Sizes sizes(scale);
  uint64_t driving = sizes.driving_rows(table);
  if (table == Table::partsupp) return driving * 4;
  if (table != Table::lineitem) return driving;
  constexpr uint64_t orders_per_part = 1 << 18;
  std::atomic<uint64_t> lines{0};
  auto count = [&](size_t part) {
    uint64_t first = part * orders_per_part;
    lines += count_lines(first, std::min(orders_per_part, driving - first));
  };
  parallel_for((driving + orders_per_part - 1) / orders_per_part, count);
  return lines;
}

Result<void> write_table(Table table, double scale, const std::string& path, unsigned threads, bool progress) {
  RETURN_IF_ERROR(check_scale(scale));
  Sizes sizes(scale);
  std::shared_ptr<const TextPool> pool = needs_pool(columns_of(table)) ? TextPool::get(threads) : nullptr;
  Progress line(fmt::format("writing {}", path), row_count(table, scale), progress);
  return write_one(table, sizes, pool.get(), path, threads, line);
}

Result<void> write_tables(double scale, const std::string& directory, unsigned threads, bool progress) {
  RETURN_IF_ERROR(check_scale(scale));
  for (size_t slash = directory.find('/', 1); slash != std::string::npos; slash = directory.find('/', slash + 1))
    mkdir(directory.substr(0, slash).c_str(), 0777);
  if (mkdir(directory.c_str(), 0777) != 0 && errno != EEXIST)
    return world_error("cannot create the folder `{}`: {}", directory, std::strerror(errno));

  constexpr Table all[] = {Table::region,   Table::nation,   Table::supplier, Table::part,
                           Table::partsupp, Table::customer, Table::orders,   Table::lineitem};
  uint64_t rows = 0;
  for (Table table : all) rows += row_count(table, scale);
  Progress line(fmt::format("generating TPC-H at scale {}", scale), rows, progress);
  Sizes sizes(scale);
  std::shared_ptr<const TextPool> pool = TextPool::get(threads);
  for (Table table : all)
    RETURN_IF_ERROR(
        write_one(table, sizes, pool.get(), fmt::format("{}/{}.tbl", directory, table_name(table)), threads, line));
  // With it the folder is a data source.
  return write_file(directory + "/schema.json", data::schema_text(schema()));
}

}  // namespace rndn::tpch
