// The options of readers and COPY as `rndn help sql` lists them: one row each, tried by a test
// (tests/files/queries_test.cpp). They are handed to DuckDB as they stand in a statement.
#include "runtime/files/files.h"

namespace rndn::files {

std::span<const FileOption> file_options() {
  static constexpr FileOption options[] = {
      {"read_csv", "delim = ','", "what stands between fields"},
      {"read_csv", "header = true", "whether the first row has names"},
      {"read_csv", "names = ['a', 'b']", "names of the columns"},
      {"read_csv", "types = {'a': 'DOUBLE'}", "types of some columns"},
      {"read_csv", "columns = {'a': 'BIGINT', 'b': 'DOUBLE'}", "names and types of all columns"},
      {"read_csv", "all_varchar = true", "every column is text"},
      {"read_csv", "nullstr = 'NA'", "a field that is NULL"},
      {"read_csv", "dateformat = '%d.%m.%Y'", "how dates are written"},
      {"read_csv", "timestampformat = '%d.%m.%Y %H:%M'", "how timestamps are written"},
      {"read_csv", "decimal_separator = '.'", "what stands before a fraction"},
      {"read_csv", "quote = ''''", "what stands around a field"},
      {"read_csv", "escape = ''''", "what stands before a quote in a field"},
      {"read_csv", "skip = 0", "rows above that are no data"},
      {"read_csv", "comment = '#'", "what begins a line that is no data"},
      {"read_csv", "ignore_errors = true", "rows that do not fit are left out"},
      {"read_csv", "null_padding = true", "rows that are too short end with NULL"},
      {"read_csv", "sample_size = -1", "rows that types are told by, -1: all"},
      {"read_csv", "compression = 'none'", "gzip, zstd or none, if the name does not tell"},
      {"read_csv", "union_by_name = true", "columns of several files by their names"},
      {"read_csv", "filename = true", "a column with the name of the file"},
      {"read_csv", "hive_partitioning = false", "columns by folders such as year=2024"},
      {"read_parquet", "union_by_name = true", "columns of several files by their names"},
      {"read_parquet", "filename = true", "a column with the name of the file"},
      {"read_parquet", "hive_partitioning = false", "columns by folders such as year=2024"},
      {"read_parquet", "file_row_number = true", "a column with the number of the row in its file"},
      {"read_json", "format = 'newline_delimited'", "one object a line, array, or auto"},
      {"read_json", "columns = {'a': 'BIGINT'}", "names and types of the columns"},
      {"read_json", "dateformat = '%Y-%m-%d'", "how dates are written"},
      {"COPY to .csv", "FORMAT csv", "csv, parquet, json or arrow, if the name does not tell"},
      {"COPY to .csv", "HEADER false", "whether the first row has names"},
      {"COPY to .csv", "DELIMITER ';'", "what stands between fields"},
      {"COPY to .csv", "NULLSTR 'NA'", "how NULL is written"},
      {"COPY to .csv", "FORCE_QUOTE (a)", "columns whose fields stand in quotes"},
      {"COPY to .csv", "DATEFORMAT '%d.%m.%Y'", "how dates are written"},
      {"COPY to .csv", "TIMESTAMPFORMAT '%d.%m.%Y'", "how timestamps are written"},
      {"COPY to .csv", "COMPRESSION gzip", "gzip, zstd or none, if the name does not tell"},
      {"COPY to .parquet", "COMPRESSION zstd", "snappy, zstd, gzip or uncompressed"},
      {"COPY to .parquet", "ROW_GROUP_SIZE 100000", "rows in a group"},
      {"COPY to .json", "ARRAY true", "one array, instead of an object a line"},
  };
  return options;
}

}  // namespace rndn::files
