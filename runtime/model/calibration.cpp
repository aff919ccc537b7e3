#include "runtime/model/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "libraries/base/report/json.h"

namespace rndn::model {
namespace {

constexpr std::string_view form = "rndn calibration 1";
constexpr int deepest = 8;  // arrays and objects in each other

// As it stands there; of an array or an object, what it is.
std::string shown(const nlohmann::json& of) {
  return of.is_array() ? "an array" : of.is_object() ? "an object" : of.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<double> number_of(const nlohmann::json& of, const char* key, const std::string& where) {
  if (!of.contains(key) || !of[key].is_number())
    return input_error("{}: expected a number as `{}`, found {}", where, key,
                       of.contains(key) ? shown(of[key]) : "none");
  return of[key].get<double>();
}

Result<Point> point_of(const nlohmann::json& json, const RateRow& row, const std::string& where) {
  if (!json.is_object()) return input_error("{}: expected an object, found {}", where, shown(json));
  Point p;
  if (!row.by.empty()) {
    ASSIGN_OR_RETURN(p.at, number_of(json, "at", where));
    if (!(p.at > 0)) return input_error("{}: expected {} above 0, found {}", where, row.by, p.at);
  }
  ASSIGN_OR_RETURN(p.median, number_of(json, "median", where));
  ASSIGN_OR_RETURN(p.low, number_of(json, "low", where));
  ASSIGN_OR_RETURN(p.high, number_of(json, "high", where));
  const bool may_be_zero = row.unit == "share";
  if (!(p.median > 0 || (may_be_zero && p.median == 0)) || !std::isfinite(p.median))
    return input_error("{}: expected a median above 0, found {}", where, p.median);
  if (may_be_zero && p.median > 1) return input_error("{}: expected a share of at most 1, found {}", where, p.median);
  if (!(p.low <= p.median && p.median <= p.high))
    return input_error("{}: expected low <= median <= high, found {}, {}, {}", where, p.low, p.median, p.high);
  return p;
}

}  // namespace

double Calibration::value(Rate r, double at) const {
  const std::vector<Point>& known = of(r);
  if (known.empty()) return 0;
  const auto above =
      std::lower_bound(known.begin(), known.end(), at, [](const Point& p, double x) { return p.at < x; });
  if (above == known.begin()) return above->median;
  if (above == known.end()) return known.back().median;
  const Point &a = above[-1], &b = *above;
  const double share = std::log(at / a.at) / std::log(b.at / a.at);
  return a.median * std::pow(b.median / a.median, share);
}

std::string to_json(const Calibration& c) {
  std::string out = fmt::format("{{\n \"form\": {},\n \"facts\": {{", json_string(form)), separator = "\n  ";
  for (const auto& [name, value] : c.facts) {
    out += separator + json_string(name) + ": " + json_string(value);
    separator = ",\n  ";
  }
  out += "},\n \"rates\": {";
  separator = "\n  ";
  for (const RateRow& row : rate_rows) {
    out += separator + fmt::format("{}: {{\"unit\": {}, \"by\": {}, \"points\": [", json_string(row.name),
                                   json_string(row.unit), json_string(row.by));
    separator = ",\n  ";
    std::string comma;
    for (const Point& p : c.of(row.rate)) {
      const std::string at = row.by.empty() ? "" : fmt::format("\"at\": {}, ", p.at);
      out += fmt::format("{}\n   {{{}\"median\": {}, \"low\": {}, \"high\": {}}}", comma, at, p.median, p.low, p.high);
      comma = ",";
    }
    out += "]}";
  }
  return out + "}\n}\n";
}

Result<Calibration> parse_calibration(const std::string& text, const std::string& name) {
  nlohmann::json json;
  try {
    json = nlohmann::json::parse(text, [](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
      return depth <= deepest;  // what lies deeper is left out
    });
  } catch (const nlohmann::json::out_of_range& e) {
    return input_error("{}: expected numbers of 64 bits, found another: {}", name, e.what());
  } catch (const nlohmann::json::parse_error& e) {
    const size_t at = std::min(text.size(), e.byte ? e.byte - 1 : 0);
    const size_t line =
        1 + static_cast<size_t>(std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(at), '\n'));
    const size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;  // npos + 1 is 0
    return input_error("{}:{}:{}: expected the JSON that `rndn devices --calibrate` writes, found {}", name, line,
                       at - begin + 1, at == text.size() ? "its end" : fmt::format("`{}`", text[at]));
  }
  if (!json.is_object() || !json.contains("form") || json["form"] != form)
    return input_error("{}: expected \"form\": \"{}\", as `rndn devices --calibrate` writes it, found {}", name, form,
                       json.is_object() && json.contains("form") ? shown(json["form"]) : "none");
  Calibration out;
  if (json.contains("facts") && json["facts"].is_object())
    for (const auto& [fact, value] : json["facts"].items())
      if (value.is_string()) out.facts.emplace_back(fact, value.get<std::string>());
  for (const RateRow& row : rate_rows) {
    const std::string where = fmt::format("{}: `{}`", name, row.name);
    const nlohmann::json* points = nullptr;
    if (json.contains("rates") && json["rates"].is_object())
      if (const auto at = json["rates"].find(row.name); at != json["rates"].end() && at->is_object())
        if (const auto in = at->find("points"); in != at->end() && in->is_array()) points = &*in;
    if (row.may_lack && (!points || points->empty())) continue;
    if (!points || points->empty()) return input_error("{}: expected points of it, found none", where);
    if (row.by.empty() && points->size() > 1)
      return input_error("{}: expected one point, found {}", where, points->size());
    for (const nlohmann::json& json_of : *points) {
      ASSIGN_OR_RETURN(const Point p, point_of(json_of, row, where));
      if (!out.of(row.rate).empty() && out.of(row.rate).back().at >= p.at)
        return input_error("{}: expected ascending {}, found {} behind {}", where, row.by, p.at,
                           out.of(row.rate).back().at);
      out.of(row.rate).push_back(p);
    }
  }
  return out;
}

}  // namespace rndn::model
