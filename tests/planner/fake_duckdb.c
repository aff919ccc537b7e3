// A library with the functions of DuckDB's C API that are called, of a version that is not the
// pinned one.
#include <stddef.h>
#include <stdint.h>

const char* duckdb_library_version(void) { return "v1.4.5"; }
int duckdb_open(const char* path, void** database) { return path || !database; }
void duckdb_close(void** database) { *database = NULL; }
int duckdb_connect(void* database, void** connection) { return !database && !connection; }
void duckdb_disconnect(void** connection) { *connection = NULL; }
int duckdb_query(void* connection, const char* text, void* answer) {
  return !connection && text && answer;
}
const char* duckdb_result_error(void* answer) { return answer ? "none" : NULL; }
char* duckdb_value_varchar(void* answer, uint64_t column, uint64_t row) {
  return answer && column + row ? "" : NULL;
}
void duckdb_destroy_result(void* answer) { (void)answer; }
void duckdb_free(void* memory) { (void)memory; }
