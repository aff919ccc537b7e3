// Columns of chunks that are decoded on many threads. Private to this folder.
//
//   auto column = make_column(format, type, length, parts);
//   column->sink(p)      // for each part, on any thread: takes its values; then finish_part(p)
//   column->join();      // when all parts are done, on one thread
//   column->place(p);    // for each part, on any thread
//   data::Column whole = column->take();
//
// Numbers go to their place at once; their statistics are made while they are in the cache. Texts
// keep the numbers that the chunk's dictionary has for them, or get some; the numbers are joined in
// the order in which the texts first stand in the column. Where there are too many distinct texts
// (data::dictionary_limit), the texts go to the column's characters, in a region for each part that
// is as large as its pages can make it.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "runtime/data/arrow_types.h"
#include "runtime/data/column.h"
#include "runtime/files/parquet_pages.h"

namespace rndn::files {

struct ColumnPart {
  uint64_t first, rows;  // of the column
  uint64_t characters;   // of text: bytes at most
};

class ChunkedColumn {
 public:
  virtual ~ChunkedColumn() = default;
  virtual std::unique_ptr<PageSink> sink(size_t part) = 0;
  virtual void finish_part(size_t part) = 0;
  virtual void join() = 0;
  // False: the texts do not fit what the file says of them.
  virtual bool place(size_t part) = 0;
  virtual data::Column take() = 0;
};

// `length`: bytes of a value of type `fixed`.
std::unique_ptr<ChunkedColumn> make_column(const data::ArrowFormat& format, Physical type,
                                           uint32_t length, std::vector<ColumnPart> parts);

}  // namespace rndn::files
