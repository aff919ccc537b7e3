// `rndn help`: the builtins of HorseIR by family, or the entry of one, from docs/horseir.md; what
// SQL may hold (sql_help.h).
#include <CLI/CLI.hpp>
#include <algorithm>

#include "frontend/builtins.h"
#include "libraries/base/system/files.h"
#include "tools/builtin_help.h"
#include "tools/rndn.h"
#include "tools/sql_help.h"

namespace rndn::tools {
namespace {

std::string list_of(const std::vector<HelpFamily>& families) {
  size_t width = 0;
  for (const HelpFamily& family : families)
    for (const HelpEntry& entry : family.entries) width = std::max(width, entry.name.size());
  std::string out;
  for (const HelpFamily& family : families) {
    out += fmt::format("{}{}:\n", out.empty() ? "" : "\n", family.title);
    for (const HelpEntry& entry : family.entries)
      out += fmt::format("  {:{}}  {}\n", entry.name, width, entry.summary);
  }
  return out + "\n`rndn help BUILTIN` prints the entry of one, `rndn help sql` what SQL may hold. docs/horseir.md has the "
         "language.\n";
}

// The entry of a builtin by its name or an older one; null: there is none.
const HelpEntry* find_entry(const std::vector<HelpFamily>& families, std::string_view word) {
  hir::Builtin builtin;
  if (!hir::find_builtin(word, builtin)) return nullptr;
  for (const HelpFamily& family : families)
    for (const HelpEntry& entry : family.entries)
      if (entry.name == hir::row(builtin).name) return &entry;
  return nullptr;
}

Error unknown(const CLI::App* program, const std::vector<HelpFamily>& families,
              const std::string& word) {
  std::vector<std::string_view> names;
  for (const HelpFamily& family : families)
    for (const HelpEntry& entry : family.entries) names.push_back(entry.name);
  if (program)
    for (const CLI::App* command : program->get_subcommands([](const CLI::App*) { return true; }))
      if (command->get_name() == word)
        return usage_error("there is no builtin `{0}`; the command has `rndn {0} --help`", word);
  const std::string_view near = did_you_mean(word, names);
  return usage_error("there is no builtin `{}`{} (`rndn help` lists them)", word,
                     near.empty() ? "" : fmt::format("; did you mean `{}`?", near));
}

}  // namespace

Result<std::string> help_text(const std::string& topic, const CLI::App* program) {
  if (topic == "sql") return sql_help();
  const std::vector<HelpFamily> families = parse_builtin_help(language_reference());
  if (topic.empty()) return list_of(families);
  // As programs write it, too.
  const std::string word = topic.substr(topic.starts_with('@') ? 1 : 0);
  const HelpEntry* entry = find_entry(families, word);
  if (!entry) return unknown(program, families, word);
  std::string text = fmt::format("{}\n\n{}\n", entry->name, entry->text);
  if (!entry->is_item)
    text += fmt::format("\nA whole program: examples/horseir/{}.hir\n", entry->name);
  return text;
}

namespace {

class HelpCommand final : public Command {
 public:
  explicit HelpCommand(CLI::App& program) : program_(program) {
    app = program.add_subcommand("help",
                                 "the builtins of HorseIR by family, or what one of them does; what SQL may hold");
    app->add_option("builtin", builtin_, "such as `sum`; `sql`: functions, statements and options of SQL; none: all builtins, a line each")
        ->type_name("BUILTIN");
    app->add_flag("--tsv", tsv_, "of `sql`: the lists as fields apart by tabs, as docs/sql-functions.tsv has them");
  }

  int execute() override {
    if (tsv_ && builtin_ != "sql") return fail(usage_error("--tsv goes with `rndn help sql`"));
    auto text = tsv_ ? Result<std::string>(sql_help_tsv()) : help_text(builtin_, &program_);
    if (!text) return fail(text.error());
    Result<void> written = write_file("-", *text);
    return written ? 0 : fail(written.error());
  }

 private:
  const CLI::App& program_;
  std::string builtin_;
  bool tsv_ = false;
};

}  // namespace

std::unique_ptr<Command> help_command(CLI::App& program) {
  return std::make_unique<HelpCommand>(program);
}

}  // namespace rndn::tools
