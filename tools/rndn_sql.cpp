// `rndn sql`: SQL queries, planned by DuckDB, translated to HorseIR, compiled and run as programs
// are.
#include <CLI/CLI.hpp>
#include <filesystem>

#include "libraries/base/system/files.h"
#include "runtime/planner/commands.h"
#include "tools/rndn.h"
#include "tools/session.h"

namespace rndn::tools {
namespace {

class SqlCommand final : public Command {
 public:
  explicit SqlCommand(CLI::App& program) {
    app = program.add_subcommand("sql", "plan, compile and run SQL queries, print their results");
    app->add_option("query", query_, "a query or several, as text or a file; - for stdin")
        ->required()
        ->type_name("TEXT|FILE.sql");
    app->add_option("--param", params_,
                    "the value of a parameter, ? or $1; one for each, in their order")
        ->allow_extra_args(false)
        ->type_name("VALUE");
    app->add_option("--emit", emit_,
                    "do not run: write the plan (as JSON), the HorseIR program (hir), or a stage "
                    "of its compilation")
        ->check(CLI::IsMember({"plan", "hir", "outline", "ptx", "sass", "cubin"}))
        ->type_name("STAGE");
    add_data_flags(*app, flags_);
    add_cache_flags(*app, flags_);
    add_run_flags(*app, flags_);
    add_compiler_flags(*app, flags_);
  }
  int execute() override {
    auto statements = read();
    if (!statements) return fail(statements.error());
    if (!emit_.empty()) {
      auto written = emit(*statements);
      return written ? 0 : fail(written.error());
    }
    auto device = DeviceChoice::start(flags_);
    if (!device) return fail(device.error());
    auto source = open_data(source_names(flags_), flags_);
    if (!source) return fail(source.error());
    return run_programs(*statements, flags_, *source, *std::move(device), nullptr);
  }

 private:
  // A file where there is one of that name, or the name can be nothing else.
  Result<std::vector<NamedSource>> read() const {
    std::error_code ignored;
    const bool is_name = query_.find_first_of(" \t\r\n;") == std::string::npos;
    const bool is_file =
        query_ == "-" || (is_name && (query_.ends_with(".sql") ||
                                      std::filesystem::is_regular_file(query_, ignored)));
    std::vector<NamedSource> statements;
    if (is_file) {
      ASSIGN_OR_RETURN(std::vector<NamedSource> files, read_programs({query_}));
      statements = split_sql(files[0].name, files[0].file, std::move(files[0].text));
    } else {
      statements = split_sql("query", "<query>", query_);
    }
    if (statements.empty())
      return input_error("{}: there is no statement", is_file ? query_ : "<query>");
    if (params_.empty()) return statements;
    if (statements.size() > 1)
      return usage_error("--param is of one statement, not of {}", statements.size());
    std::vector<std::string> values;
    for (const std::string& value : params_) values.push_back(planner::quote_value(value));
    const runtime::NamedSource::Statement& sql = *statements[0].sql;
    ASSIGN_OR_RETURN(std::string with, planner::with_values(sql.text->substr(sql.begin, sql.end - sql.begin), values));
    return split_sql(statements[0].name, statements[0].file, std::move(with));
  }

  Result<void> emit(const std::vector<NamedSource>& statements) {
    using Until = runtime::SqlQueries::Until;
    if (emit_ == "cubin" && statements.size() > 1)
      return usage_error("--emit cubin is of one statement, not of {}", statements.size());
    ASSIGN_OR_RETURN(auto source, open_data(source_names(flags_), flags_));
    Flags on_the_host = flags_;
    on_the_host.device = "cpu";  // none is opened
    ASSIGN_OR_RETURN(DeviceChoice device, DeviceChoice::start(on_the_host));
    Session session(std::move(source), std::move(device), file_cache(flags_));
    std::string out;
    for (const NamedSource& statement : statements) {
      Timings timings;
      ASSIGN_OR_RETURN(
          const runtime::SqlQuery* query,
          session.prepare_sql(statement, emit_ == "plan" ? Until::plan : Until::program, timings));
      if (emit_ == "plan") {
        out += query->planned.plan + "\n";
      } else if (emit_ == "hir") {
        out += query->translation->program;
      } else {
        const NamedSource program{statement.name, "<program of " + statement.file + ">",
                                  query->translation->program};
        const data::Schema schema =
            session.source() ? session.source()->schema() : data::Schema();
        ASSIGN_OR_RETURN(std::string text, emit_program(program, flags_, emit_, schema, true));
        out += text;
      }
    }
    return write_file(flags_.output, out);
  }

  std::string query_, emit_;
  std::vector<std::string> params_;
  Flags flags_;
};

}  // namespace

std::unique_ptr<Command> sql_command(CLI::App& program) {
  return std::make_unique<SqlCommand>(program);
}

}  // namespace rndn::tools
