#include "runtime/adbc/database.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "libraries/base/report/sizes.h"
#include "runtime/adbc/parameters.h"
#include "runtime/data/arrow.h"
#include "runtime/data/cache.h"
#include "runtime/data/sources.h"
#include "runtime/files/files.h"
#include "runtime/planner/database.h"
#include "runtime/print_sql.h"
#include "tpch/source.h"

namespace rndn::adbc {

namespace {

constexpr const char* invalid = "22023";

// What a failure is to ADBC: by whose fault it is, and what callers act on.
struct Row {
  Fault fault;
  Cause cause;  // other: any
  AdbcStatusCode status;
  const char* sqlstate;
};
constexpr Row rows[] = {
    {Fault::interrupted, Cause::other, ADBC_STATUS_CANCELLED, "57014"},
    {Fault::world, Cause::cancelled, ADBC_STATUS_TIMEOUT, "57014"},
    {Fault::world, Cause::device_full, ADBC_STATUS_IO, "53200"},
    {Fault::world, Cause::other, ADBC_STATUS_IO, "58000"},
    {Fault::input, Cause::other, ADBC_STATUS_INVALID_ARGUMENT, "42000"},
    {Fault::usage, Cause::other, ADBC_STATUS_INVALID_ARGUMENT, invalid},
    {Fault::internal, Cause::other, ADBC_STATUS_INTERNAL, "XX000"},
};

// The planner beside this library: where tools/sql-planner puts it, seen from build/lib.
planner::Options planner_options() {
  planner::Options options = planner::Options::of_environment();
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&planner_options), &info) && info.dli_fname) {
    std::error_code ignored;
    const auto library = std::filesystem::canonical(info.dli_fname, ignored);
    if (!ignored)
      options.folders.push_back((library.parent_path().parent_path() / "share/duckdb").string());
  }
  return options;
}

bool is_one_of(std::string_view key, std::initializer_list<std::string_view> known) {
  return std::find(known.begin(), known.end(), key) != known.end();
}

void check_autocommit(const std::string& value) {
  if (value == "true") return;
  if (value == "false")
    not_implemented("transactions: each statement is committed when it is done");
  bad_argument(fmt::format("autocommit is true or false, not `{}`", value));
}
void check_only(const std::string& key, const std::string& value, std::string_view only) {
  if (value != only) not_implemented(fmt::format("{} = `{}`: it is `{}`", key, value, only));
}
void check_limits(const std::string& key, const std::string& value) {
  if (key == "rndn.timeout") {
    char* end = nullptr;
    if (!(std::strtod(value.c_str(), &end) > 0) || *end)
      bad_argument(fmt::format("{} is a number of seconds above 0, not `{}`", key, value));
  } else if (auto size = parse_size(value, key); !size) {
    fail(size.error());
  }
}
bool is_limit(const std::string& key) { return is_one_of(key, {"rndn.timeout", "rndn.max_memory"}); }

[[noreturn]] void unknown_option(const std::string& what, const std::string& key,
                                 std::string_view known) {
  not_implemented(fmt::format("option `{}` of a {}; options are {}", key, what, known));
}

}  // namespace

void fail(const Error& error, const std::string& said) {
  std::string message = error.message.empty() ? said : error.message;
  while (message.ends_with('\n')) message.pop_back();
  for (const Row& row : rows)
    if (row.fault == error.fault && (row.cause == Cause::other || row.cause == error.cause))
      throw Failure{row.status, row.sqlstate, std::move(message), error.exit_code()};
  throw Failure{ADBC_STATUS_UNKNOWN, "XX000", std::move(message), error.exit_code()};
}
void not_implemented(const std::string& what) {
  throw Failure{ADBC_STATUS_NOT_IMPLEMENTED, "0A000", "not supported: " + what,
                static_cast<int32_t>(Fault::usage)};
}
void bad_argument(const std::string& what) { fail(Error{Fault::usage, what}); }
void wrong_order(const std::string& what) {
  throw Failure{ADBC_STATUS_INVALID_STATE, "55000", what, static_cast<int32_t>(Fault::usage)};
}

const std::string& Options::get(const std::string& key) const {
  const auto at = values_.find(key);
  if (at == values_.end())
    throw Failure{ADBC_STATUS_NOT_FOUND, invalid, fmt::format("option `{}` is not set", key),
                  static_cast<int32_t>(Fault::usage)};
  return at->second;
}
std::string Options::get_or(const std::string& key, const std::string& other) const {
  const auto at = values_.find(key);
  return at == values_.end() ? other : at->second;
}

// ---- databases

void Database::set_option(const std::string& key, const std::string& value) {
  std::lock_guard lock(mutex_);  // statements of connections read its limits
  if (is_open() && !is_limit(key)) wrong_order("the database is open: options come before that");
  if (is_limit(key))
    check_limits(key, value);
  else if (!key.starts_with("rndn.table.") &&
           !is_one_of(key, {"uri", "rndn.data", "rndn.device", "rndn.arch", "rndn.device_memory"}))
    unknown_option("database", key,
                   "uri or rndn.data (a folder, a file, tpch:SF), rndn.table.NAME (a file), "
                   "rndn.device, rndn.arch, rndn.timeout, rndn.max_memory, rndn.device_memory");
  options.set(key, value);
}

void Database::init() {
  if (is_open()) wrong_order("the database is open already");
  const auto get = [&]<class T>(Result<T> result) {
    if (!result) fail(result.error(), said_);
    if constexpr (!std::is_void_v<T>) return *std::move(result);
  };
  said_.clear();
  const runtime::Say say = [this](const std::string& text) { said_ += text; };
  auto device = std::make_shared<runtime::DeviceChoice>(get(runtime::DeviceChoice::start(
      options.get_or("rndn.device", "auto"), options.get_or("rndn.arch", ""), say)));
  if (options.has("rndn.device_memory"))
    get(device->limit_memory(
        get(parse_size(options.get("rndn.device_memory"), "rndn.device_memory"))));
  data::SourceNames names{.data = options.get_or("rndn.data", options.get_or("uri", "")),
                          .tables = {}};
  constexpr std::string_view table = "rndn.table.";
  for (const auto& [key, value] : options.all())
    if (key.starts_with(table)) names.tables.push_back(key.substr(table.size()) + "=" + value);
  const std::string cache = data::default_cache_directory();
  std::shared_ptr<data::Source> source;
  if (!names.empty()) {
    data::SourceOptions how;
    how.progress = false;
    how.formats = files::formats();
    how.note = [this](const std::string& text) { said_ += "note: " + text + "\n"; };
    const data::Scheme schemes[] = {tpch::scheme};
    source = get(data::open_source(names, schemes, how, cache));
  }
  session_ = std::make_unique<runtime::Session>(
      std::move(source), std::move(device),
      runtime::SessionOptions{.file_cache = cache, .planner = planner_options(), .say = say});
}

runtime::RunOptions Database::run_options(const Options& own) const {
  const auto limit = [&](const char* key) { return own.get_or(key, options.get_or(key, "")); };
  runtime::RunOptions run;
  const std::string arch = options.get_or("rndn.arch", "");
  if (!arch.empty()) run.compile.target = arch;
  run.own_target = arch.empty();
  run.engine.measure_kernels = false;
  run.limits = {.seconds_name = "rndn.timeout", .bytes_name = "rndn.max_memory"};
  if (const std::string seconds = limit("rndn.timeout"); !seconds.empty())
    run.limits.seconds = std::strtod(seconds.c_str(), nullptr);
  if (const std::string bytes = limit("rndn.max_memory"); !bytes.empty())
    if (auto size = parse_size(bytes, "rndn.max_memory")) run.limits.bytes = *size;
  return run;
}

// ---- connections

void Connection::set_option(const std::string& key, const std::string& value) {
  if (key == "adbc.connection.autocommit")
    check_autocommit(value);
  else if (key == "adbc.connection.readonly")
    check_only(key, value, "false");
  else if (key == "adbc.connection.catalog")
    check_only(key, value, catalog_name);
  else if (key == "adbc.connection.db_schema")
    check_only(key, value, schema_name);
  else if (key == "adbc.connection.transaction.isolation_level")
    check_only(key, value, "adbc.connection.transaction.isolation.default");
  else if (is_limit(key))
    check_limits(key, value);
  else
    unknown_option("connection", key,
                   "adbc.connection.autocommit, .readonly, .catalog and .db_schema, rndn.timeout, "
                   "rndn.max_memory");
  options.set(key, value);
}

void Connection::cancel() {
  std::lock_guard lock(mutex_);
  if (running_.empty()) wrong_order("nothing runs that could be cancelled");
  for (CancelToken* token : running_) token->cancel();
}

Connection::Running::Running(Connection& connection) : connection_(connection) {
  std::lock_guard lock(connection.mutex_);
  connection.running_.insert(&token_);
}
Connection::Running::~Running() {
  std::lock_guard lock(connection_.mutex_);
  connection_.running_.erase(&token_);
}

// ---- statements

void Statement::set_option(const std::string& key, const std::string& value) {
  constexpr std::string_view mode = "adbc.ingest.mode.";
  if (key == "adbc.ingest.mode") {
    if (!value.starts_with(mode) || !is_one_of(std::string_view(value).substr(mode.size()),
                                               {"create", "append", "replace", "create_append"}))
      bad_argument(fmt::format("there is no mode of ingestion `{}`", value));
  } else if (key == "adbc.ingest.target_catalog") {
    if (!value.empty()) check_only(key, value, catalog_name);
  } else if (key == "adbc.ingest.target_db_schema") {
    if (!value.empty()) check_only(key, value, schema_name);
  } else if (key == "adbc.statement.exec.incremental") {
    check_only(key, value, "false");
  } else if (is_limit(key)) {
    check_limits(key, value);
  } else if (!is_one_of(key, {"adbc.ingest.target_table", "adbc.ingest.temporary"})) {
    unknown_option("statement", key,
                   "adbc.ingest.target_table, .mode, .temporary, .target_catalog and "
                   ".target_db_schema, rndn.timeout, rndn.max_memory");
  }
  options.set(key, value);
}

void Statement::set_query(std::string text) {
  query_ = std::move(text);
  options.set("adbc.ingest.target_table", "");
  bound_ = {};
}

const std::string& Statement::query() const {
  if (query_.empty()) wrong_order("the statement has no query");
  return query_;
}

namespace {
Result<std::vector<runtime::NamedSource>> statements_of(const std::string& text) {
  std::vector<runtime::NamedSource> all = runtime::split_sql("query", "<sql>", text);
  if (all.empty()) return input_error("<sql>: there is no statement");
  return all;
}
Result<runtime::NamedSource> only_one(const std::string& text) {
  ASSIGN_OR_RETURN(std::vector<runtime::NamedSource> all, statements_of(text));
  if (all.size() > 1) return usage_error("expected one statement, not {}", all.size());
  return std::move(all[0]);
}
}  // namespace

// What is wrong with a statement whose parameters have no values yet shows with their types.
Result<void> Statement::check_prepared(runtime::Session& session) const {
  ASSIGN_OR_RETURN(const runtime::NamedSource statement, only_one(query_));
  if (planner::count_parameters(query_) > 0) return {};
  ASSIGN_OR_RETURN([[maybe_unused]] const auto columns,
                   session.result_columns(statement, connection->database->run_options(options)));
  return {};
}

void Statement::prepare() {
  query();
  Connection::Running running(*connection);
  connection->database->serve([&](runtime::Session& session) { return check_prepared(session); });
}

ArrowSchema Statement::parameter_schema() const {
  const size_t count = planner::count_parameters(query());
  runtime::ArrowResult result;
  for (size_t i = 0; i < count; ++i)
    result.columns.push_back(
        {.name = std::to_string(i + 1), .format = "n", .buffers = {}, .owners = {}});
  return runtime::ArrowResult::schema(std::make_shared<runtime::ArrowResult>(std::move(result)));
}

runtime::Grid no_rows(const std::vector<sql::ResultColumn>& columns) {
  runtime::Grid grid;
  for (const sql::ResultColumn& c : columns) {
    grid.names.push_back(c.name);
    grid.types.push_back(sql::type_name(c.type));
    data::Value none;
    none.kind = data::Value::vector;
    none.type = hir::BasicType::i64;
    grid.columns.push_back(std::move(none));
    grid.sql.push_back({.type = c.type, .valid = {}});
  }
  return grid;
}

ArrowSchema Statement::result_schema() {
  Connection::Running running(*connection);
  auto result = connection->database->serve(
      [&](runtime::Session& session) -> Result<std::shared_ptr<const runtime::ArrowResult>> {
        std::string text = query();
        if (const size_t count = planner::count_parameters(text)) {
          const std::vector<std::string> nulls(count, "NULL");
          ASSIGN_OR_RETURN(text, planner::with_values(text, nulls));
        }
        ASSIGN_OR_RETURN(const runtime::NamedSource statement, only_one(text));
        ASSIGN_OR_RETURN(
            const auto columns,
            session.result_columns(statement, connection->database->run_options(options)));
        return runtime::ArrowResult::make(no_rows(columns));
      });
  return runtime::ArrowResult::schema(std::move(result));
}

void Statement::cancel() {
  std::lock_guard lock(mutex_);
  if (!running_) wrong_order("the statement does not run");
  running_->cancel();
}

Statement::Answer Statement::execute() {
  const bool is_ingest = !options.get_or("adbc.ingest.target_table", "").empty();
  if (!is_ingest) query();
  if (is_ingest && !bound_.is_there()) wrong_order("there are no rows to ingest: bind them");
  Connection::Running running(*connection);
  struct Cancellable {
    Statement& statement;
    Cancellable(Statement& s, CancelToken& token) : statement(s) {
      std::lock_guard lock(s.mutex_);
      s.running_ = &token;
    }
    ~Cancellable() {
      std::lock_guard lock(statement.mutex_);
      statement.running_ = nullptr;
    }
  } cancellable(*this, running.token());
  // Before the database serves this call: the stream's maker may use it, too.
  if (bound_.is_there()) {
    auto whole = data::read_whole(std::exchange(bound_, {}), "the rows that were bound");
    if (!whole) fail(whole.error());
    bound_ = *std::move(whole);
  }
  return connection->database->serve([&](runtime::Session& session) -> Result<Answer> {
    RETURN_IF_ERROR(check_cancelled());
    return is_ingest            ? ingest(session)
           : bound_.is_there() ? run_with_rows(session)
                               : run(session, query_);
  });
}

Result<Statement::Answer> Statement::run(runtime::Session& session, const std::string& text) {
  ASSIGN_OR_RETURN(const auto statements, statements_of(text));
  Answer answer;
  for (const runtime::NamedSource& statement : statements) {
    ASSIGN_OR_RETURN(const auto outcome,
                     session.run(statement, connection->database->run_options(options)));
    answer = {};
    if (outcome.rows_changed) answer.rows_changed = static_cast<int64_t>(*outcome.rows_changed);
    ASSIGN_OR_RETURN(std::optional<runtime::Grid> grid, runtime::rows_of(outcome));
    if (grid) answer.results.push_back(*std::move(grid));
  }
  return answer;
}

Result<Statement::Answer> Statement::ingest(runtime::Session& session) {
  const std::string name = options.get("adbc.ingest.target_table");
  const std::string mode = options.get_or("adbc.ingest.mode", "adbc.ingest.mode.create");
  const bool is_there = session.has_table(name);
  const bool appends = mode.ends_with("append"), replaces = mode.ends_with("replace");
  if (is_there && !appends && !replaces)
    throw Failure{ADBC_STATUS_ALREADY_EXISTS, "42P07",
                  fmt::format("there is a table `{}` already", name),
                  static_cast<int32_t>(Fault::input)};
  if (!is_there && mode.ends_with(".append"))
    throw Failure{ADBC_STATUS_NOT_FOUND, "42P01", fmt::format("there is no table `{}`", name),
                  static_cast<int32_t>(Fault::input)};
  data::ArrowStream rows = std::exchange(bound_, {});
  uint64_t count = 0;
  if (is_there && appends) {
    ASSIGN_OR_RETURN(count, session.append("INSERT INTO " + planner::quote_name(name),
                                           std::move(rows), data::ArrowNames::given,
                                           connection->database->run_options(options)));
  } else {
    ASSIGN_OR_RETURN(count, session.add_table(name, std::move(rows), replaces));
  }
  return Answer{.results = {}, .rows_changed = static_cast<int64_t>(count)};
}

// A run per row; rows that are inserted as they are go in one.
Result<Statement::Answer> Statement::run_with_rows(runtime::Session& session) {
  data::ArrowStream bound = std::exchange(bound_, {});
  if (const std::string_view insert = planner::insert_of_parameters(query_); !insert.empty()) {
    ASSIGN_OR_RETURN(const uint64_t count,
                     session.append(std::string(insert), std::move(bound),
                                    data::ArrowNames::places,
                                    connection->database->run_options(options)));
    return Answer{.results = {}, .rows_changed = static_cast<int64_t>(count)};
  }
  ASSIGN_OR_RETURN(const Parameters parameters, Parameters::take(std::move(bound)));
  RETURN_IF_ERROR(only_one(query_));
  Answer all;
  for (uint64_t row = 0; row < parameters.rows(); ++row) {
    ASSIGN_OR_RETURN(const std::string text,
                     planner::with_values(query_, parameters.literals(row)));
    ASSIGN_OR_RETURN(Answer answer, run(session, text));
    std::move(answer.results.begin(), answer.results.end(), std::back_inserter(all.results));
    if (answer.rows_changed >= 0)
      all.rows_changed = std::max<int64_t>(all.rows_changed, 0) + answer.rows_changed;
  }
  if (parameters.rows() == 0) {  // no run says what the columns are
    ASSIGN_OR_RETURN(const std::string text, planner::with_values(query_, parameters.nulls()));
    ASSIGN_OR_RETURN(const runtime::NamedSource statement, only_one(text));
    ASSIGN_OR_RETURN(
        const auto columns,
        session.result_columns(statement, connection->database->run_options(options)));
    if (columns.empty()) return all;
    all.results.push_back(no_rows(columns));
  }
  return all;
}

}  // namespace rndn::adbc
