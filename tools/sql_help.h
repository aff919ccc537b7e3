// What SQL may hold, as lists of the tables that the translator and the session read: functions,
// statements, options of files.
//
//   sql_help();      // for people: sections, one line each
//   sql_help_tsv();  // docs/sql-functions.tsv: kind, name, arguments or value, meaning
#pragma once
#include <string>

namespace rndn::tools {

std::string sql_help();
std::string sql_help_tsv();

}  // namespace rndn::tools
