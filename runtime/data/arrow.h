// Tables in Arrow's form as a source.
//
//   ASSIGN_OR_RETURN(std::unique_ptr<TableLoader> loader, open_arrow("t", std::move(stream)));
//   Source source(std::move(loader));
//
// A stream is taken whole when the table is opened, without a copy of its values; its arrays are
// released with the loader. A column is converted when it is first loaded: numbers are copied, text
// with few distinct values becomes a dictionary, dictionaries stay some. Pieces of columns are
// converted side by side. Cost: one pass over the column.
//
// Types (arrow.cpp has a row for each): null, bool, 8 to 64 bits with and without sign, float,
// double, decimals of at most 38 digits (integers and decimals of which one is beyond 64 bits are
// kept in 128), dates, times and timestamps of every unit (to microseconds; a value that is none is
// an error that names the row), text of all layouts, dictionaries of all of these. Left out: columns of any other type, each refused by name when a
// query asks for it.
#pragma once
#include <memory>
#include <string>

#include "runtime/data/arrow_abi.h"
#include "runtime/data/source.h"

namespace rndn::data {

// What columns are called: as the stream says, or c1, c2, .. by their place.
enum class ArrowNames : uint8_t { given, places };
Result<std::unique_ptr<TableLoader>> open_arrow(const std::string& table, ArrowStream stream,
                                                ArrowNames names = ArrowNames::given);

// One array as a stream that is read once.
ArrowStream stream_of(Owned<ArrowSchema> schema, Owned<ArrowArray> array);
// The same stream, read to its end now: reading the result calls none of the producer's functions but the `release` of its arrays.
// `place` begins the message of an error.
Result<ArrowStream> read_whole(ArrowStream stream, std::string_view place);

}  // namespace rndn::data
