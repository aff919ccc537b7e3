// libFuzzer target for what reads Parquet and Arrow files here: a first byte that says which, and the
// file. Never a crash or a hang; columns that are read have all of their rows, and texts within what
// they point to.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "libraries/base/system/files.h"
#include "runtime/data/batches.h"
#include "runtime/files/arrow_file.h"
#include "runtime/files/parquet_source.h"

namespace {

using namespace rndn;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

Result<std::unique_ptr<data::TableLoader>> open(const std::string& path, bool is_arrow) {
  if (is_arrow) return files::open_arrow_files(path, {path}, "t");
  ASSIGN_OR_RETURN(
      auto source,
      files::open_parquet(path, {path}, []() -> Result<std::unique_ptr<data::BatchSource>> {
        return world_error("there is no other reader");
      }));
  return data::open_batches("t", std::move(source));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size == 0) return 0;
  static const std::string path = [] {
    const char* temporary = std::getenv("TMPDIR");  // best in memory, such as /dev/shm
    std::string made = std::string(temporary ? temporary : "/tmp") + "/rndn_fuzz_XXXXXX";
    if (!mkdtemp(made.data())) std::abort();
    return made + "/t";
  }();
  const std::string contents(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  require(write_file(path, contents).ok(), "cannot write");
  auto loader = open(path, bytes[0] & 1);
  if (!loader) return 0;
  data::Source source(*std::move(loader));
  constexpr uint64_t most_rows = 1 << 20;  // what a file says it has may be more than there is time
  if (const auto rows = source.rows("t"); !rows || *rows > most_rows) return 0;
  for (const auto& column : source.schema().tables[0].columns) {
    auto loaded = source.column("t", column.name);
    if (!loaded) continue;
    const data::Column& c = **loaded;
    require(c.data->size() == c.rows * c.width, "a column of another size");
    require(!c.validity || c.validity->size() == c.rows, "a validity of another size");
    [[maybe_unused]] static volatile uint8_t looked_at;
    if (hir::is_text(c.type))
      for (uint64_t row = 0; row < c.rows; ++row)
        for (const char letter : c.text_at(row)) looked_at = static_cast<uint8_t>(letter);
  }
  return 0;
}
