// The module `rndn._rndn`: a connection to tables and a device, results, and the compiler, as
// Python sees them. The package around it (python/rndn) is what users import.
//
// The GIL is released while the runtime works. A connection serves one call at a time; several are
// independent. What is said beside results (warnings, notes) comes with them as text; errors become
// rndn.Error, with whose fault it is.
#include <sys/syscall.h>
#include <unistd.h>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <optional>

#include "assembler/assemble.h"
#include "assembler/isa/isa.h"
#include "libraries/base/report/sizes.h"
#include "libraries/base/report/utf8.h"
#include "libraries/base/report/version.h"
#include "libraries/base/system/interrupt.h"
#include "ptx/parse.h"
#include "runtime/arrow_result.h"
#include "runtime/compiler/disassemble.h"
#include "runtime/data/arrow.h"
#include "runtime/data/cache.h"
#include "runtime/data/sources.h"
#include "runtime/device/sharing.h"
#include "runtime/files/files.h"
#include "runtime/memory/result_memory.h"
#include "runtime/planner/database.h"
#include "runtime/print_sql.h"
#include "runtime/session/program_text.h"
#include "runtime/session/session.h"
#include "runtime/text/text_functions.h"
#include "tpch/source.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace rndn;

namespace {

struct Failed {
  Error error;
};

// The text of an error that diagnostics have said is theirs.
[[noreturn]] void fail(Error error, const std::string& said = "") {
  if (error.message.empty()) error.message = said;
  while (error.message.ends_with('\n')) error.message.pop_back();
  throw Failed{std::move(error)};
}
template <class T>
T get(Result<T> result, const std::string& said = "") {
  if (!result) fail(result.error(), said);
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

const char* fault_name(Fault fault) {
  switch (fault) {
    case Fault::input:
      return "input";
    case Fault::usage:
      return "usage";
    case Fault::world:
      return "world";
    case Fault::internal:
      return "internal";
    case Fault::interrupted:
      return "interrupted";
  }
  return "internal";
}

// The record in a capsule of Arrow's, which is empty from then on.
template <class Record>
data::Owned<Record> taken(nb::handle capsule, const char* name) {
  auto* record = static_cast<Record*>(PyCapsule_GetPointer(capsule.ptr(), name));
  if (!record) throw nb::python_error();
  if (!record->release) fail(usage_error("this {} was used already", name));
  return data::Owned<Record>(std::move(*record));
}

// What has __arrow_c_stream__ or __arrow_c_array__.
data::ArrowStream open_stream(nb::handle object) {
  if (nb::hasattr(object, "__arrow_c_stream__"))
    return taken<ArrowArrayStream>(object.attr("__arrow_c_stream__")(), "arrow_array_stream");
  const nb::tuple pair = nb::cast<nb::tuple>(object.attr("__arrow_c_array__")());
  return data::stream_of(taken<ArrowSchema>(pair[0], "arrow_schema"),
                   taken<ArrowArray>(pair[1], "arrow_array"));
}

template <class Record>
nb::capsule capsule_of(Record record, const char* name) {
  auto* kept = new Record(record);
  PyObject* capsule = PyCapsule_New(kept, name, [](PyObject* c) {
    auto* r = static_cast<Record*>(PyCapsule_GetPointer(c, PyCapsule_GetName(c)));
    if (r->release) r->release(r);
    delete r;
  });
  return nb::steal<nb::capsule>(capsule);
}

// ---- results

// Values lie on the host, or on the device until they are asked for here (result_memory.h).
class QueryResult {
 public:
  // gpu: where arrays of the device lie; null: on the host, as the device's memory does.
  QueryResult(runtime::Grid grid, std::vector<runtime::RunReport> reports, std::string said,
              std::string proof, std::shared_ptr<runtime::ResultMemory> memory, device::Device* gpu)
      : grid_(std::move(grid)),
        reports_(std::move(reports)),
        said_(std::move(said)),
        proof_(std::move(proof)),
        memory_(std::move(memory)),
        gpu_(gpu) {}

  const std::vector<std::string>& names() const { return grid_.names; }
  const std::vector<std::string>& types() const { return grid_.types; }
  uint64_t rows() const { return grid_.rows; }
  const std::string& said() const { return said_; }
  const std::string& proof() const { return proof_; }

  nb::capsule stream() const {
    for (size_t c = 0; c < grid_.columns.size(); ++c) fetch_column(c);
    const auto made = [&] {
      nb::gil_scoped_release unlocked;
      return get(runtime::ArrowResult::batches({grid_}));
    };
    return capsule_of(made(), "arrow_array_stream");
  }
  std::string table(uint64_t most) const {
    return get(runtime::print_grid(head(most), runtime::Format::table));
  }
  // The numbers of a column where they lie, in the width of its type; dates are days, times
  // microseconds. Elements that are NULL have any value.
  nb::tuple numbers(size_t c, bool on_device) {
    const Number* number = number_of(grid_.sql.at(c).type.id);
    if (!number)
      fail(usage_error("column `{}` is {}, which is no array of numbers", grid_.names[c],
                       grid_.types[c]));
    return array(Part{c, false}, *number, on_device);
  }
  // Whether each element is there.
  nb::tuple mask(size_t c, bool on_device) {
    return array(Part{c, true}, *number_of(sql::TypeId::boolean), on_device);
  }
  uint64_t missing(size_t c) const {
    const auto& valid = grid_.sql.at(c).valid;
    if (!valid) return 0;
    nb::gil_scoped_release unlocked;
    fetch(*valid);
    return static_cast<uint64_t>(
        std::count(valid->as<uint8_t>(), valid->as<uint8_t>() + valid->size, 0));
  }
  // Whether reading the column here would have to bring it from the device.
  bool is_on_device(size_t c) const {
    const auto there = memory_->find(grid_.columns.at(c));
    return there && !there->is_fetched();
  }
  // Cells as text, row by row; None is NULL.
  nb::list texts(uint64_t most) const {
    const runtime::Grid first = head(most);
    nb::list all;
    for (uint64_t r = 0; r < first.rows; ++r) {
      nb::list row;
      for (size_t c = 0; c < first.columns.size(); ++c) {
        if (is_there(first, c, r))
          row.append(nb::str(runtime::sql_text(first.sql[c].type, first.columns[c], r).c_str()));
        else
          row.append(nb::none());
      }
      all.append(row);
    }
    return all;
  }
  // Some values of a column as Python has them: bool, int, float, str or None. Decimals are their
  // text, dates days, times and timestamps microseconds, intervals their parts.
  nb::list values(size_t c, uint64_t first, uint64_t count) const {
    using sql::TypeId;
    nb::list all;
    const data::Value& column = grid_.columns.at(c);
    const sql::Type type = grid_.sql[c].type;
    fetch_column(c);
    const uint64_t begin = std::min(first, grid_.rows);
    for (uint64_t r = begin; r < begin + std::min(count, grid_.rows - begin); ++r) {
      if (!is_there(grid_, c, r))
        all.append(nb::none());
      else if (type.id == TypeId::boolean)
        all.append(nb::bool_(column.as<uint8_t>()[r] != 0));
      else if (type.id == TypeId::decimal)
        all.append(nb::str(runtime::sql_text(type, column, r).c_str()));
      else if (column.is_text_vector())
        all.append(nb::str(column.text(r).data(), column.text(r).size()));
      else if (type.id == TypeId::varchar)
        all.append(nb::str(runtime::element_text(column, r, true).c_str()));
      else if (type.id == TypeId::real)
        all.append(nb::float_(column.as<float>()[r]));
      else if (type.id == TypeId::double_)
        all.append(nb::float_(column.as<double>()[r]));
      else if (type.id == TypeId::interval)
        all.append(parts_of(text::interval_parts(column.as<__int128>()[r])));
      else if (hir::is_wide(column.type))
        all.append(nb::steal<nb::object>(
            PyLong_FromString(runtime::sql_text(type, column, r).c_str(), nullptr, 10)));
      else
        all.append(nb::int_(runtime::integer_at(column, r)));
    }
    return all;
  }
  std::string report(const std::string& format) const {
    runtime::TimeFormat wanted;
    if (!runtime::find_time_format(format, wanted))
      fail(usage_error("a report is text, json, html or trace, not `{}`", format));
    return runtime::report(reports_, wanted);
  }

 private:
  // Types that are numbers to other libraries.
  struct Number {
    sql::TypeId type;
    nb::dlpack::dtype_code code;
    uint8_t bits;
    char letter;  // of NumPy's
  };
  static const Number* number_of(sql::TypeId type) {
    using enum nb::dlpack::dtype_code;
    using enum sql::TypeId;
    static constexpr Number rows[] = {
        {boolean, Bool, 8, 'b'},    {tinyint, Int, 8, 'i'},   {smallint, Int, 16, 'i'},
        {integer, Int, 32, 'i'},    {bigint, Int, 64, 'i'},   {utinyint, UInt, 8, 'u'},
        {usmallint, UInt, 16, 'u'}, {uinteger, UInt, 32, 'u'}, {ubigint, UInt, 64, 'u'},
        {real, Float, 32, 'f'},     {double_, Float, 64, 'f'}, {date, Int, 32, 'i'},
        {time, Int, 64, 'i'},       {timestamp, Int, 64, 'i'}, {timestamptz, Int, 64, 'i'}};
    const auto row = std::find_if(std::begin(rows), std::end(rows),
                                  [&](const Number& r) { return r.type == type; });
    return row == std::end(rows) ? nullptr : row;
  }
  static nb::tuple parts_of(const text::IntervalParts& p) {
    return nb::make_tuple(p.months, p.days, p.micros);
  }

  // The elements of a column, or its mask.
  struct Part {
    size_t column;
    bool mask;
    auto operator<=>(const Part&) const = default;
  };
  struct Here {
    const void* data;
    std::shared_ptr<const void> owner;
  };
  // The value with the elements as they are to be; none: it has them in another form.
  std::optional<data::Value> value_of(Part part, const Number& number) const {
    const std::optional<data::Value>& valid = grid_.sql.at(part.column).valid;
    if (part.mask) return valid;
    const data::Value& value = grid_.columns.at(part.column);
    if (value.is_text_vector() || data::plain_width(value.type) * 8 != number.bits)
      return std::nullopt;
    return value;
  }
  Here on_host(Part part, const Number& number) {
    if (const auto value = value_of(part, number)) {
      nb::gil_scoped_release unlocked;
      fetch(*value);
      return {value->bytes ? value->bytes->data() : nullptr, value->bytes};
    }
    if (part.mask) {  // none is missing
      auto all = std::make_shared<std::vector<uint8_t>>(grid_.rows, uint8_t{1});
      return {all->data(), all};
    }
    const auto made = in_its_width(part.column);
    return {made->columns[0].buffers[1], made};
  }
  std::shared_ptr<runtime::DeviceVector> on_gpu(Part part, const Number& number) {
    if (const auto value = value_of(part, number))
      if (auto there = memory_->find(*value)) return there;
    const Here here = on_host(part, number);
    nb::gil_scoped_release unlocked;
    std::lock_guard lock(mutex_);
    auto& sent = sent_[part];
    if (!sent) sent = get(memory_->send(*gpu_, here.data, grid_.rows * number.bits / 8));
    return sent;
  }
  // The array, its address if that is the GPU's, and its elements' type as NumPy writes it.
  nb::tuple array(Part part, const Number& number, bool on_device) {
    const size_t size = grid_.rows;
    const nb::dlpack::dtype type{static_cast<uint8_t>(number.code), number.bits, 1};
    const std::string letters = fmt::format("{}{}{}", number.bits == 8 ? '|' : '<', number.letter,
                                            number.bits / 8);
    if (!on_device || !gpu_) {
      const Here here = on_host(part, number);
      const nb::ndarray<nb::array_api, nb::ro> made(here.data, 1, &size, owner_of(here.owner),
                                                    nullptr, type);
      return nb::make_tuple(made, nb::none(), letters);
    }
    std::shared_ptr<runtime::DeviceVector> there;
    device::Address address = 0;
    if (size) {
      there = on_gpu(part, number);
      nb::gil_scoped_release unlocked;
      address = get(there->pin());
    }
    const nb::ndarray<nb::array_api> made(reinterpret_cast<void*>(address), 1, &size,
                                          owner_of(there), nullptr, type, nb::device::cuda::value,
                                          device::sharing_of(*gpu_)->ordinal());
    return nb::make_tuple(made, address, letters);
  }
  static nb::capsule owner_of(std::shared_ptr<const void> owner) {
    using Owner = std::shared_ptr<const void>;
    return nb::capsule(new Owner(std::move(owner)),
                       [](void* p) noexcept { delete static_cast<Owner*>(p); });
  }

  void fetch(const data::Value& value) const {
    if (const auto there = memory_->find(value)) get(there->fetch());
  }
  void fetch_column(size_t c) const {
    nb::gil_scoped_release unlocked;
    fetch(grid_.columns.at(c));
    if (const auto& valid = grid_.sql.at(c).valid) fetch(*valid);
  }
  static bool is_there(const runtime::Grid& grid, size_t c, uint64_t r) {
    const auto& valid = grid.sql[c].valid;
    return !valid || valid->as<uint8_t>()[r];
  }
  // The first elements; no more are brought from the device.
  data::Value first_of(const data::Value& value, uint64_t most) const {
    data::Value first = value;
    first.size = std::min(value.size, most);
    const auto there = memory_->find(value);
    if (!there || there->is_fetched()) return first;
    std::vector<std::byte> bytes(first.size * data::plain_width(value.type));
    get(there->read(bytes.data(), bytes.size()));
    return data::vector_from_bytes(value.type, first.size, std::move(bytes));
  }
  runtime::Grid head(uint64_t most) const {
    nb::gil_scoped_release unlocked;
    runtime::Grid first = grid_;  // shares its columns
    first.rows = std::min(first.rows, most);
    for (data::Value& column : first.columns) column = first_of(column, most);
    for (runtime::SqlCells& cells : first.sql)
      if (cells.valid) cells.valid = first_of(*cells.valid, most);
    return first;
  }
  // A column in the width of its type, which the result has it not in.
  std::shared_ptr<const runtime::ArrowResult> in_its_width(size_t c) {
    fetch_column(c);
    nb::gil_scoped_release unlocked;
    std::lock_guard lock(mutex_);
    auto& made = made_[c];
    if (!made)
      made = get(runtime::ArrowResult::make({.names = {grid_.names[c]},
                                             .types = {grid_.types[c]},
                                             .columns = {grid_.columns[c]},
                                             .rows = grid_.rows,
                                             .sql = {grid_.sql[c]}}));
    return made;
  }

  runtime::Grid grid_;
  std::vector<runtime::RunReport> reports_;
  std::string said_, proof_;
  std::shared_ptr<runtime::ResultMemory> memory_;
  device::Device* const gpu_;  // which memory_ keeps
  std::mutex mutex_;
  std::map<Part, std::shared_ptr<runtime::DeviceVector>> sent_;  // of the host's, to the GPU
  std::map<size_t, std::shared_ptr<const runtime::ArrowResult>> made_;  // by their columns
};

// ---- connections

// Work of a call, without the GIL. Ctrl-C ends it where signals come to, in the main thread; Python's
// own handler has heard it, too, and decides what follows.
class Call {
 public:
  Call() {
    if (syscall(SYS_gettid) == getpid()) scope_.emplace(interrupts_.emplace(true).token());
  }

 private:
  nb::gil_scoped_release unlocked_;
  std::optional<InterruptScope> interrupts_;
  std::optional<CancelScope> scope_;
};

class Connection {
 public:
  Connection(const std::string& device, const std::string& arch, const std::string& data,
             const std::string& memory, const std::string& python)
      : arch_(arch), planner_(planner::Options::of_environment()) {
    planner_.python = python;
    if (!arch.empty() && !isa::find_target(arch)) {
      std::string all;
      for (const isa::Target& t : isa::targets()) all += " " + std::string(t.name);
      fail(usage_error("unknown target `{}`; targets are{}", arch, all));
    }
    device_ = std::make_shared<runtime::DeviceChoice>(
        get(runtime::DeviceChoice::start(device, arch, say())));
    results_ = std::make_shared<runtime::ResultMemory>(device_, runtime::ResultMemory::Options());
    if (!memory.empty())
      if (auto set = device_->limit_memory(get(parse_size(memory, "device_memory"))); !set) fail(set.error());
    if (!data.empty()) add_source(get(open({.data = data})), "");
  }

  ~Connection() {
    nb::gil_scoped_release unlocked;
    std::lock_guard lock(results_->in_use());
    if (device::Device* device = opened()) (void)device::attach(*device);
    session_.reset();
    results_->collect();
  }

  // Gives the names and types of columns that SQL has no type for.
  std::vector<std::string> add_arrow(const std::string& name, nb::handle object) {
    data::ArrowStream stream = open_stream(object);
    const Call call;
    return add(name, get(data::open_arrow(name, std::move(stream))));
  }
  // The same of a file, a folder or a pattern.
  std::vector<std::string> add_file(const std::string& name, const std::string& path) {
    const Call call;
    std::lock_guard lock(results_->in_use());
    said_.clear();
    auto source =
        get(data::open_table(name, path, source_options(), data::default_cache_directory()), said_);
    std::vector<std::string> refused = refused_of(source->schema().tables[0]);
    add_source(std::move(source), name);
    return refused;
  }
  bool remove(const std::string& name) {
    nb::gil_scoped_release unlocked;
    std::lock_guard lock(results_->in_use());
    const auto gone = std::erase_if(tables_, [&](const Named& t) { return planner::is_same_name(t.name, name); });
    if (gone) take_tables(name);
    return gone != 0;
  }
  // Names of tables, and of their columns with their types.
  std::vector<std::string> tables() {
    nb::gil_scoped_release unlocked;
    std::lock_guard lock(results_->in_use());
    std::vector<std::string> names;
    for (const Named& t : tables_)
      for (const data::TableSchema& schema : t.source->schema().tables)
        names.push_back(schema.name);
    if (session_)
      for (const std::string& made : session_->made_names()) names.push_back(made);
    return names;
  }

  std::unique_ptr<QueryResult> sql(const std::string& text, double seconds, const std::string& bytes,
                                   bool prove) {
    Limits limits{.seconds = seconds, .seconds_name = "timeout=", .bytes_name = "max_memory="};
    if (!bytes.empty()) limits.bytes = get(parse_size(bytes, "max_memory"));
    const Call call;
    std::lock_guard lock(results_->in_use());
    said_.clear();
    runtime::Session& session = open_session();
    runtime::RunOptions options = run_options();
    options.limits = limits;
    options.prove = prove;
    std::string proof;
    options.told_of_proof = [&](const std::string& line) { proof += line; };
    std::unique_ptr<QueryResult> result;
    results_->collect();
    const runtime::ResultMemory::Scope scope(results_.get(), true);
    for (const runtime::NamedSource& statement : statements(text)) {
      auto outcome = get(session.run(statement, options), said_);
      get(runtime::Session::proven(statement.name, outcome));
      std::optional<runtime::Grid> grid = get(runtime::rows_of(outcome));
      device::Device* const device = opened();
      result = std::make_unique<QueryResult>(
          std::move(grid).value_or(runtime::Grid()), std::move(outcome.reports), said_, proof, results_,
          device && device::sharing_of(*device) ? device : nullptr);
    }
    results_->collect();
    return result;
  }
  // A statement as the HorseIR program that runs, or its plan as JSON.
  std::string translate(const std::string& text, bool plan) {
    const Call call;
    std::lock_guard lock(results_->in_use());
    return query(text, plan);
  }
  nb::bytes emit(const std::string& text, bool is_sql, const std::string& arch,
                 const std::string& stage) {
    std::string out;
    {
      const Call call;
      std::lock_guard lock(results_->in_use());
      const std::string program = is_sql ? query(text, false) : text;
      runtime::CompileOptions options;
      if (!runtime::find_stage(stage, options.until))
        fail(usage_error("there is no stage `{}`", stage));
      options.target = check_arch(arch);
      options.numbers_as_parameters = is_sql;
      runtime::Session& session = open_session();
      const data::Schema* schema = session.source() ? &session.source()->schema() : nullptr;
      said_.clear();
      out = get(runtime::emit_program({"program", is_sql ? "<program of <sql>>" : "<hir>", program},
                                      options, schema, 0, say()),
                said_);
    }
    return nb::bytes(out.data(), out.size());
  }

  static std::string check_arch(const std::string& arch) {
    if (isa::find_target(arch)) return arch;
    std::string all;
    for (const isa::Target& t : isa::targets()) all += " " + std::string(t.name);
    fail(usage_error("unknown target `{}`; targets are{}", arch, all));
  }

 private:
  struct Named {
    std::string name;  // empty: of the connection's own data
    std::shared_ptr<data::Source> source;
  };

  // The device, if it is one and was opened; none waits for it.
  device::Device* opened() {
    if (device_->is_cpu() || device_->is_starting()) return nullptr;
    auto device = device_->open();
    return device ? *device : nullptr;
  }
  runtime::Say say() {
    return [this](const std::string& text) { said_ += text; };
  }
  Result<std::shared_ptr<data::Source>> open(const data::SourceNames& names) {
    const std::array all = {tpch::scheme};
    return data::open_source(names, all, source_options(), data::default_cache_directory());
  }
  data::SourceOptions source_options() {
    data::SourceOptions options;
    options.progress = false;
    options.formats = files::formats();
    options.note = [this](const std::string& text) { said_ += "note: " + text + "\n"; };
    return options;
  }
  static std::vector<std::string> refused_of(const data::TableSchema& table) {
    std::vector<std::string> refused;
    for (const auto& column : table.refused)
      refused.push_back(fmt::format("`{}` is {}", column.name, column.type));
    return refused;
  }
  std::vector<std::string> add(const std::string& name, std::unique_ptr<data::TableLoader> loader) {
    std::vector<std::string> refused = refused_of(loader->schema().tables[0]);
    std::lock_guard lock(results_->in_use());
    add_source(std::make_shared<data::Source>(std::move(loader)), name);
    return refused;
  }
  // A table of that name makes room.
  void add_source(std::shared_ptr<data::Source> source, const std::string& name) {
    if (!tables_.empty() && tables_[0].name.empty())
      for (const data::TableSchema& own : tables_[0].source->schema().tables)
        if (planner::is_same_name(own.name, name))
          fail(usage_error("there is a table `{}` in the connection's data already", own.name));
    std::erase_if(tables_, [&](const Named& t) { return planner::is_same_name(t.name, name); });
    tables_.push_back({name, std::move(source)});
    take_tables(name);
  }
  std::shared_ptr<data::Source> all_tables() const {
    std::vector<std::shared_ptr<data::Source>> sources;
    for (const Named& t : tables_) sources.push_back(t.source);
    return sources.empty() ? nullptr : get(data::join_sources(std::move(sources)));
  }
  // What statements have made stays.
  void take_tables(const std::string& renewed) {
    if (session_) get(session_->set_source(all_tables(), renewed));
  }
  runtime::Session& open_session() {
    if (session_) return *session_;
    session_ = std::make_unique<runtime::Session>(
        all_tables(), device_,
        runtime::SessionOptions{
            .file_cache = data::default_cache_directory(), .planner = planner_, .say = say()});
    return *session_;
  }
  runtime::RunOptions run_options() const {
    runtime::RunOptions options;
    if (!arch_.empty()) options.compile.target = arch_;
    options.own_target = arch_.empty();
    options.engine.measure_kernels = false;
    options.reports = true;
    return options;
  }
  static std::vector<runtime::NamedSource> statements(const std::string& text) {
    std::vector<runtime::NamedSource> all = runtime::split_sql("query", "<sql>", text);
    if (all.empty()) fail(input_error("<sql>: there is no statement"));
    return all;
  }
  std::string query(const std::string& text, bool plan) {
    said_.clear();
    const std::vector<runtime::NamedSource> all = statements(text);
    if (all.size() > 1) fail(usage_error("expected one statement, not {}", all.size()));
    Timings timings;
    using Until = runtime::SqlQueries::Until;
    const runtime::SqlQuery* made = get(
        open_session().prepare_sql(all[0], plan ? Until::plan : Until::program, timings), said_);
    return plan ? made->planned.plan : made->translation->program;
  }

  const std::string arch_;
  planner::Options planner_;
  std::string said_;  // since the call began
  std::shared_ptr<runtime::DeviceChoice> device_;
  std::shared_ptr<runtime::ResultMemory> results_;  // whose lock is that of the connection
  std::vector<Named> tables_;
  std::unique_ptr<runtime::Session> session_;  // null: not opened yet
};

// ---- the assembler

nb::bytes assemble(const std::string& text, const std::string& arch, int level) {
  std::vector<std::byte> cubin;
  {
    nb::gil_scoped_release unlocked;
    SourceManager sources;
    DiagnosticSink sink;
    const ptx::Module module = ptx::parse(sources.add("<ptx>", text), sources, sink);
    if (sink.has_errors()) fail({Fault::input, ""}, render(sink, sources));
    assembler::Options options;
    options.level = level;
    options.target = isa::find_target(
        Connection::check_arch(arch.empty() ? fmt::format("sm_{}", module.target) : arch));
    if (module.target > options.target->sm)
      fail(input_error("<ptx>: .target sm_{} does not run on {}", module.target, arch));
    Timings timings;
    cubin = get(assembler::assemble(module, options, timings)).cubin;
  }
  return nb::bytes(cubin.data(), cubin.size());
}

std::string disassemble(nb::bytes cubin) {
  const auto* data = static_cast<const std::byte*>(cubin.data());
  const std::vector<std::byte> bytes(data, data + cubin.size());
  nb::gil_scoped_release unlocked;
  return get(runtime::disassemble(bytes));
}

}  // namespace

namespace {

void raise(const Error& error) {
  if (error.fault == Fault::interrupted) {
    if (PyErr_CheckSignals() == 0) PyErr_SetNone(PyExc_KeyboardInterrupt);
    return;
  }
  const nb::object type = nb::module_::import_("rndn._error").attr("Error");
  const nb::object made = type(as_utf8(error.message), fault_name(error.fault));
  PyErr_SetObject(type.ptr(), made.ptr());
}

}  // namespace

NB_MODULE(_rndn, m) {
  m.doc() = "The native half of the package rndn.";
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Cancelled& cancelled) {
      raise(cancelled.error);
    } catch (const Failed& failed) {
      raise(failed.error);
    }
  });
  nb::class_<QueryResult>(m, "QueryResult")
      .def_prop_ro("names", &QueryResult::names)
      .def_prop_ro("types", &QueryResult::types)
      .def_prop_ro("rows", &QueryResult::rows)
      .def_prop_ro("said", &QueryResult::said)
      .def_prop_ro("proof", &QueryResult::proof)
      .def("stream", &QueryResult::stream)
      .def("table", &QueryResult::table, "most"_a)
      .def("texts", &QueryResult::texts, "most"_a)
      .def("values", &QueryResult::values, "column"_a, "first"_a, "count"_a)
      .def("numbers", &QueryResult::numbers, "column"_a, "on_device"_a)
      .def("mask", &QueryResult::mask, "column"_a, "on_device"_a)
      .def("missing", &QueryResult::missing, "column"_a)
      .def("is_on_device", &QueryResult::is_on_device, "column"_a)
      .def("report", &QueryResult::report, "format"_a);
  nb::class_<Connection>(m, "Connection")
      .def(nb::init<const std::string&, const std::string&, const std::string&,
                    const std::string&, const std::string&>(),
           "device"_a, "arch"_a, "data"_a, "device_memory"_a, "python"_a)
      .def("add_arrow", &Connection::add_arrow, "name"_a, "object"_a)
      .def("add_file", &Connection::add_file, "name"_a, "path"_a)
      .def("remove", &Connection::remove, "name"_a)
      .def("tables", &Connection::tables)
      .def("sql", &Connection::sql, "text"_a, "seconds"_a, "bytes"_a, "prove"_a)
      .def("translate", &Connection::translate, "text"_a, "plan"_a)
      .def("emit", &Connection::emit, "text"_a, "is_sql"_a, "arch"_a, "stage"_a);
  m.def("assemble", &assemble, "ptx"_a, "arch"_a, "level"_a);
  m.def("disassemble", &disassemble, "cubin"_a);
  m.def("version", [] { return std::string(version()); });
}
