#include "tests/sql_translate/changed_plans.h"

#include <fmt/format.h>

#include "frontend/frontend.h"
#include "frontend/sql/estimates.h"
#include "frontend/sql/translate.h"
#include "libraries/base/system/files.h"

namespace rndn::sql::test {
namespace {

Json read_json(const std::string& name) {
  return Json::parse(*read_file(fmt::format("{}/tests/sql_translate/{}", RNDN_SOURCE_DIR, name)));
}

const Json* member(const Json& json, const char* name) {
  if (!json.is_object()) return nullptr;
  const auto found = json.find(name);
  return found == json.end() ? nullptr : &*found;
}

std::string text_or_none(const Json* json) {
  return json && json->is_string() ? json->get<std::string>() : "";
}

uint8_t small_or(const Json* json, uint8_t otherwise) {
  return json && json->is_number_unsigned() ? static_cast<uint8_t>(json->get<uint64_t>())
                                            : otherwise;
}

// What LOGICAL_GET says of its table. Whoever changed the plan may have left out any of it.
void add_table(const Json& scan, Catalog& catalog) {
  struct Known {
    TypeId id;
    std::string_view name;
    hir::BasicType stored;
  };
  static constexpr Known types[] = {
#define SQL_TYPE(id, name, horseir) {TypeId::id, name, hir::BasicType::horseir},
#include "frontend/sql/types.def"
#undef SQL_TYPE
  };
  const Json* function = member(scan, "function_data");
  const Json *name = function ? member(*function, "table") : nullptr,
             *names = member(scan, "names"), *returned = member(scan, "returned_types");
  if (!name || !name->is_string() || !names || !names->is_array() || !returned ||
      !returned->is_array())
    return;
  Table table{.name = *name, .rows = 100};
  for (size_t c = 0; c < std::min(names->size(), returned->size()); ++c)
    for (const Known& known : types) {
      const Json& type = (*returned)[c];
      if (text_or_none(member(type, "id")) != known.name || !(*names)[c].is_string()) continue;
      Type is{known.id};
      if (known.id == TypeId::decimal) {
        const Json* info = member(type, "type_info");
        is = {known.id, small_or(info ? member(*info, "width") : nullptr, 18),
              small_or(info ? member(*info, "scale") : nullptr, 3)};
      }
      table.columns.push_back({.name = (*names)[c],
                               .type = is,
                               .stored = known.stored,
                               .has_nulls = c % 2 == 1,
                               .min = c % 3 ? std::optional<int64_t>() : 0,
                               .max = c % 3 ? std::optional<int64_t>() : 90,
                               .unique = c == 0});
    }
  if (!catalog.find(table.name)) catalog.tables.push_back(table);
}

void add_tables(const Json& json, Catalog& catalog) {
  if (text_or_none(member(json, "type")) == "LOGICAL_GET") add_table(json, catalog);
  if (json.is_structured())
    for (const Json& part : json) add_tables(part, catalog);
}

// All nodes of a tree, with the key that each stands under: elements of arrays have their array's.
template <typename J>
struct Node {
  std::string key;
  J* json;
};
template <typename J>
void collect(J& json, const std::string& key, std::vector<Node<J>>& nodes) {
  nodes.push_back({key, &json});
  if (json.is_object())
    for (auto& [name, part] : json.items()) collect(part, name, nodes);
  if (json.is_array())
    for (J& part : json) collect(part, key, nodes);
}

}  // namespace

std::vector<Json> recorded_plans() {
  std::vector<Json> plans;
  for (const char* query : {"q02", "q13", "q16", "q20", "q21", "q22"})
    plans.push_back(read_json(fmt::format("plans/{}.json", query)));
  for (const char* name : {"statements", "nulls", "overflow", "windows", "sets"})
    for (const Json& statement : read_json(fmt::format("{}.json", name)))
      plans.push_back(statement["plan"]);
  return plans;
}

Catalog catalog_of(const Json& plan) {
  Catalog catalog;
  add_tables(plan, catalog);
  return catalog;
}

PlanChanges::PlanChanges(const std::vector<Json>& plans) {
  for (const Json& plan : plans) {
    std::vector<Node<const Json>> nodes;
    collect(plan, "", nodes);
    for (const Node<const Json>& node : nodes)
      if (auto& of = parts_[node.key]; of.size() < 400 && node.json->dump().size() < 3000)
        of.push_back(*node.json);
  }
}

void PlanChanges::change(Json& plan, std::mt19937& random) const {
  std::vector<Node<Json>> nodes;
  collect(plan, "", nodes);
  const Node<Json>& at = nodes[nodes.size() > 1 ? 1 + random() % (nodes.size() - 1) : 0];
  Json& json = *at.json;
  static const Json odd[] = {nullptr,
                             true,
                             "",
                             "x",
                             -1,
                             0,
                             1,
                             40,
                             INT64_MAX,
                             INT64_MIN,
                             UINT64_MAX,
                             1e308,
                             -0.0,
                             Json::array(),
                             Json::object(),
                             "NaN",
                             "99999999999999999999"};
  switch (random() % 8) {
    case 0: json = odd[random() % std::size(odd)]; return;
    case 1: json = Json(*nodes[random() % nodes.size()].json); return;
    case 2:
      if (json.is_object() && !json.empty()) {
        auto gone = json.begin();
        std::advance(gone, random() % json.size());
        json.erase(gone);
      } else if (json.is_array() && !json.empty()) {
        json.erase(random() % json.size());
      }
      return;
    case 3:
      if (json.is_array() && !json.empty()) json.push_back(Json(json[random() % json.size()]));
      return;
    case 4:
      if (json.is_array() && json.size() > 1)
        std::swap(json[random() % json.size()], json[random() % json.size()]);
      return;
    default:
      if (const auto known = parts_.find(at.key); known != parts_.end() && !known->second.empty())
        json = known->second[random() % known->second.size()];
  }
}

Outcome translate_changed(std::string_view text, const Catalog& catalog) {
  const auto refused = [](const Error& error) {
    Outcome outcome;
    if (error.message.empty()) outcome.wrong = "an error without words";
    if (error.fault != Fault::input) outcome.wrong = "not the input's fault: " + error.message;
    return outcome;
  };
  const Result<Plan> plan = read_plan(text);
  if (!plan) return refused(plan.error());
  if (plan_text(*plan).size() > 1u << 22) return {false, "the plan's text is long"};
  for (const auto& [table, columns] : estimated_by(*plan))
    if (table.empty()) return {false, "an estimate of no table"};
  const Result<Translation> translation = translate(*plan, catalog);
  if (!translation) return refused(translation.error());
  const auto run = [&](bool parse_only) {
    SourceManager sources;
    DiagnosticSink sink;
    Timings timings;
    hir::run(sources.add("t.hir", translation->program), sources, {.parse_only = parse_only}, sink,
             timings);
    for (const Diagnostic& d : sink.diagnostics())
      if (d.kind != "literal-type") return render(d, sources).substr(0, 500);
    return std::string();
  };
  run(false);
  return {true, run(true)};
}

}  // namespace rndn::sql::test
