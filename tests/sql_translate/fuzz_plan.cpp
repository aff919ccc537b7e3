// libFuzzer target for plans: any text as the planner's JSON, and plans of real queries changed as
// trees (changed_plans.h), over the tables that they scan. There is a program or an error; the
// program's text parses.
//   tools/fuzz fuzz_plan 600 tests/sql_translate/plans
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/sql_translate/changed_plans.h"

using rndn::sql::test::Json;

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

// Half of the changes are of bytes, half of trees; what is no JSON begins with a plan again.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  static const std::vector<Json> plans = rndn::sql::test::recorded_plans();
  static const rndn::sql::test::PlanChanges changes(plans);
  std::mt19937 random(seed);
  if (random() % 2) return LLVMFuzzerMutate(data, size, most);
  Json plan = Json::parse(data, data + size, nullptr, false);
  if (plan.is_discarded() || random() % 64 == 0) plan = plans[random() % plans.size()];
  changes.change(plan, random);
  const std::string text = plan.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::copy(text.begin(), text.end(), data);
  return text.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const Json plan = Json::parse(text, nullptr, false);
  const auto outcome = rndn::sql::test::translate_changed(text, rndn::sql::test::catalog_of(plan));
  if (outcome.wrong.empty()) return 0;
  std::fprintf(stderr, "%s\n", outcome.wrong.c_str());
  std::abort();
}
