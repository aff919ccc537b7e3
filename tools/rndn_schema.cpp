// `rndn schema`: what delimited files hold, as the schema.json that says so.
#include <CLI/CLI.hpp>

#include "libraries/base/system/files.h"
#include "tools/rndn.h"

namespace rndn::tools {
namespace {

class SchemaCommand final : public Command {
 public:
  explicit SchemaCommand(CLI::App& program) {
    app = program.add_subcommand("schema",
                                 "what the delimited files of a folder hold: the schema.json that describes them");
    app->add_option("path", path_, "a folder, or one file")->required()->type_name("DIR");
    app->add_option("-o", output_, "the file to write, - for stdout; DIR/schema.json is what --data DIR reads")
        ->type_name("FILE");
  }
  int execute() override {
    for (const std::string_view typed : {".parquet", ".arrow", ".arrows", ".feather", ".ipc"})
      if (path_.ends_with(typed))
        return fail(input_error("`{0}` says itself what it holds: rndn sql \"DESCRIBE '{0}'\" shows it", path_));
    auto schema = data::guess_schema(path_, {});
    if (!schema) return fail(schema.error());
    if (auto written = write_file(output_, data::schema_text(*schema)); !written) return fail(written.error());
    return 0;
  }

 private:
  std::string path_, output_ = "-";
};

}  // namespace

std::unique_ptr<Command> schema_command(CLI::App& program) { return std::make_unique<SchemaCommand>(program); }

}  // namespace rndn::tools
