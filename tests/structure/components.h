// The components that CMake declares (cmake/component.cmake, write_component_table).
#pragma once
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

struct Component {
  std::string name, folder;
  std::vector<std::string> deps, headers;
  std::string about;  // what it is
};

// A line per component, in the order of the pipeline; fields are separated by tabs, lists by commas.
inline std::vector<Component> read_components() {
  const auto split = [](const std::string& text, char at) {
    std::vector<std::string> parts;
    std::istringstream in(text);
    for (std::string part; std::getline(in, part, at);) parts.push_back(part);
    return parts;
  };
  std::vector<Component> table;
  std::ifstream in(RNDN_COMPONENT_TABLE);
  for (std::string line; std::getline(in, line);) {
    std::vector<std::string> fields = split(line, '\t');
    if (fields.size() < 2) continue;
    fields.resize(5);
    table.push_back({fields[0], fields[1], split(fields[2], ','), split(fields[3], ','), fields[4]});
  }
  return table;
}
