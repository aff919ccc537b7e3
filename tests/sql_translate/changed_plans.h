// Plans of real queries that are changed as trees: what no planner writes, and what a damaged file
// or an attacker may. plan_test.cpp draws the changes at random, fuzz_plan.cpp by what they reach.
#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/sql/catalog.h"

namespace rndn::sql::test {

using Json = nlohmann::json;

// The plans beside this file: of TPC-H and of our own statements.
std::vector<Json> recorded_plans();

// The tables that a plan scans, as far as it says what they hold.
Catalog catalog_of(const Json& plan);

// Changes one node: a value that is odd there, a part of the plan itself (even one that holds the
// node), something left out, doubled or swapped, or what stands under the same key in another plan.
class PlanChanges {
 public:
  explicit PlanChanges(const std::vector<Json>& plans);
  void change(Json& plan, std::mt19937& random) const;

 private:
  std::map<std::string, std::vector<Json>> parts_;  // by the key that they stand under
};

struct Outcome {
  bool translated = false;
  std::string wrong;  // empty, or what no plan may lead to
};

// Reads a plan and translates it: there is a program that the parser takes, or an error that has
// words and blames the input. The types of the program are checked, too: they may be wrong.
Outcome translate_changed(std::string_view plan, const Catalog& catalog);

}  // namespace rndn::sql::test
