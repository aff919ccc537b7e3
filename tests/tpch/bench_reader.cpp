// Speed of the reader of delimited files: every column of lineitem.tbl and of the same table as quoted CSV, all in bytes of the file
// per second of wall time. Budget: 200 MB/s on two cores (optimised builds).
//   build/bin/bench_reader                          scale 0.1, 73 MB; RNDN_READER_SCALE=1 for 760 MB
//   taskset -c 0,1 build/bin/bench_reader           on two cores of more
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "libraries/base/system/files.h"
#include "tpch/generate.h"
#include "tpch/source.h"

namespace {

using namespace rndn;

double scale() {
  const char* wanted = std::getenv("RNDN_READER_SCALE");
  return wanted ? std::strtod(wanted, nullptr) : 0.1;
}

// Writes the tables once; `quoted` adds lineitem as CSV, every field in quotes.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "rndn_reader_XXXXXX").string();
    if (!mkdtemp(pattern.data())) std::exit(3);
    path_ = pattern;
    if (!tpch::write_tables(scale(), path_, 0, false).ok()) std::exit(3);
    auto text = read_file(path_ + "/lineitem.tbl");
    if (!text) std::exit(3);
    std::string csv;
    csv.reserve(text->size() * 3 / 2);
    for (size_t at = 0; at < text->size(); ++at) {
      if (at == 0 || (*text)[at - 1] == '\n' || (*text)[at - 1] == '|') csv += '"';
      const bool last = (*text)[at] == '|' && (*text)[at + 1] == '\n';
      if ((*text)[at] == '|')
        csv += last ? "\"" : "\",";
      else
        csv += (*text)[at];
      if (last) csv += (*text)[++at];
    }
    std::filesystem::create_directory(path_ + "/csv");
    data::Schema schema = tpch::schema();
    std::erase_if(schema.tables, [](const data::TableSchema& t) { return t.name != "lineitem"; });
    schema.tables[0].set_file("lineitem.csv");
    for (data::ColumnSchema& c : schema.tables[0].columns) c.foreign_table = c.foreign_key = "";
    if (!write_file(path_ + "/csv/lineitem.csv", csv).ok()) std::exit(3);
    if (!write_file(path_ + "/csv/schema.json", data::schema_text(schema)).ok()) std::exit(3);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void read_all(benchmark::State& state, const std::string& folder, const std::string& file) {
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(folder + "/" + file));
  for (auto _ : state) {
    auto source = data::open_folder(folder, {.threads = 0, .progress = false, .cache = ""});
    std::vector<std::string> names;
    if (source)
      for (const data::ColumnSchema& c : (*source)->schema().find("lineitem")->columns)
        if (!c.is_foreign_key()) names.push_back(c.name);  // looking up keys is no reading
    if (!source || !(*source)->columns("lineitem", names).ok()) {
      state.SkipWithError("the table cannot be read");
      return;
    }
  }
  state.SetBytesProcessed(state.iterations() * bytes);
}

const Folder& folder() {
  static const Folder made;
  return made;
}

void Tbl(benchmark::State& state) { read_all(state, folder().path(), "lineitem.tbl"); }
void QuotedCsv(benchmark::State& state) { read_all(state, folder().path() + "/csv", "lineitem.csv"); }
BENCHMARK(Tbl)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(QuotedCsv)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
