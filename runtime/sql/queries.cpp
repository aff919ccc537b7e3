#include "runtime/sql/queries.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace rndn::runtime {

// Places in a statement and in all views are numbers of 32 bits.
static constexpr size_t longest_statement = size_t{1} << 30;

Result<planner::Planned> SqlQueries::plan(
    std::string_view written, Span statement, Until until, DiagnosticSink& sink, Timings& timings,
    std::shared_ptr<const data::OverlaidTables::Sources>& ranges) {
  auto scope = timings.measure(Phase::planner);
  if (written.size() >= longest_statement) {
    sink.error("sql-text", {statement.file, statement.begin, statement.begin},
               "the statement has {} bytes, and may have fewer than {}", written.size(),
               longest_statement);
    return Error{Fault::input, ""};
  }
  if (written.size() >= first_place_) {
    first_place_ = std::bit_ceil(static_cast<uint32_t>(written.size() + 1));
    RETURN_IF_ERROR(forget_views());
  }
  if (!planner_) {
    auto opening = timings.measure(Phase::planner, "open");
    ASSIGN_OR_RETURN(auto planner, planner::Planner::open(options_));
    RETURN_IF_ERROR(planner->set_catalog(catalog_.catalog()));
    RETURN_IF_ERROR(planner->set_types(types_));
    planner_ = std::move(planner);
  }
  planner::FileCalls calls;
  const std::string text = planner::name_file_calls(written, readers_, calls);
  planner::Planner::OpenTable open = [&](const std::string& name) -> Result<bool> {
    for (const planner::View& view : views_) {
      if (!planner::is_same_name(view.name, name)) continue;
      RETURN_IF_ERROR(planner_->make_view(view, sink, open));
      return true;
    }
    if (!open_) return false;
    const planner::FileCall* call = nullptr;
    for (const planner::FileCalls* known : {&view_calls_, &calls})
      if (const auto at = known->find(name); at != known->end()) call = &at->second;
    ASSIGN_OR_RETURN(auto source, open_(name, call));
    if (!source) return false;
    opened_by_[name] = call ? call->function : "";
    RETURN_IF_ERROR(set_source(std::move(source), name));
    return true;
  };
  // What another function has read is read anew: `FROM 'x.json'` is not `read_csv('x.json')`.
  for (const auto& [name, call] : calls)
    if (const auto known = opened_by_.find(name);
        known != opened_by_.end() && known->second != call.function) {
      ASSIGN_OR_RETURN([[maybe_unused]] const bool opened, open(name));
    }
  auto learn = [&](const planner::Planned& first) -> Result<void> {
    bool learnt;
    {
      auto loading = timings.measure(Phase::data, "columns of the query");
      auto reads = first.reads;
      ASSIGN_OR_RETURN(auto some, choose_ranges(first.tree, reads, timings));
      ASSIGN_OR_RETURN(learnt, catalog_.learn(reads, shown_));
      if (!some.empty()) {
        learnt = true;
        ranges = std::make_shared<const data::OverlaidTables::Sources>(std::move(some));
      }
    }
    return learnt ? planner_->set_catalog(catalog_.catalog()) : Result<void>();
  };
  if (until == Until::columns) return planner_->plan(text, statement, sink, open, {});
  return planner_->plan(text, statement, sink, open, learn);
}

Result<data::OverlaidTables::Sources> SqlQueries::choose_ranges(
    const std::optional<sql::Plan>& plan, std::map<std::string, std::set<std::string>>& reads,
    Timings& timings) {
  data::OverlaidTables::Sources some;
  if (!plan) return some;  // said when it is translated
  if (!catalog_.source()) return some;
  for (auto at = reads.begin(); at != reads.end();) {
    const std::vector<std::string> columns(at->second.begin(), at->second.end());
    const std::string table = at->first;
    const auto kept = at++;
    if (!RangeReads::has_choice(*catalog_.source(), table, columns)) continue;
    ASSIGN_OR_RETURN(auto choice, range_reads_.choose(*catalog_.source(), *plan, table, columns));
    if (!choice) continue;
    auto said = timings.measure(Phase::data, fmt::format("{} of {} ranges of {}", choice->needed,
                                                         choice->ranges.size(), table));
    catalog_.take_facts(table, columns, choice->ranges);
    some.emplace(table, std::move(choice->some));
    reads.erase(kept);
  }
  return some;
}

bool SqlQueries::is_all_loaded(const SqlQuery& query) const {
  for (const auto& [table, source] : *query.ranges)
    for (const std::string& column : query.planned.reads.at(table))
      if (!catalog_.source()->is_loaded(table, column)) return false;
  return true;
}

Result<void> SqlQueries::set_source(std::shared_ptr<data::Source> source,
                                    std::string_view renewed) {
  catalog_.set_source(std::move(source), renewed);
  range_reads_.forget();
  kept_.clear();
  return planner_ ? planner_->set_catalog(catalog_.catalog()) : Result<void>();
}

Result<void> SqlQueries::forget_views() {
  kept_.clear();
  uint32_t place = first_place_;
  for (planner::View& view : views_) {
    view.place = place;
    place += static_cast<uint32_t>(view.text.size());
  }
  return planner_ ? planner_->drop_views() : Result<void>();
}

Result<void> SqlQueries::add_view(std::string name, std::vector<std::string> columns, Span query,
                                  const SourceManager& sources) {
  std::string text = planner::name_file_calls(sources.text(query), readers_, view_calls_);
  views_.push_back({std::move(name), std::move(columns), std::move(text), query});
  return forget_views();
}

Result<void> SqlQueries::drop_view(std::string_view name) {
  std::erase_if(views_, [&](const planner::View& view) { return planner::is_same_name(view.name, name); });
  return forget_views();
}

Result<void> SqlQueries::set_types(std::vector<planner::NamedType> types) {
  types_ = std::move(types);
  RETURN_IF_ERROR(forget_views());  // which may name them
  return planner_ ? planner_->set_types(types_) : Result<void>();
}

Result<const SqlQuery*> SqlQueries::prepare(Span statement, const SourceManager& sources,
                                            Until until, DiagnosticSink& sink, Timings& timings,
                                            std::string_view as) {
  const std::string_view text = as.empty() ? sources.text(statement) : as;
  auto known =
      std::find_if(kept_.begin(), kept_.end(), [&](const auto& q) { return q->text == text; });
  SqlQuery* query = nullptr;
  if (known != kept_.end()) {
    std::rotate(known, known + 1, kept_.end());
    query = kept_.back().get();
    if (query->ranges && is_all_loaded(*query)) query->ranges = nullptr;
  } else {
    auto fresh = std::make_unique<SqlQuery>();
    fresh->text = text;
    ASSIGN_OR_RETURN(fresh->planned, plan(text, statement, until, sink, timings, fresh->ranges));
    query = fresh.get();
    if (fresh->planned.repeatable && until != Until::columns) {
      if (kept_.size() == most_kept) kept_.erase(kept_.begin());
      kept_.push_back(std::move(fresh));
    } else {
      passing_ = std::move(fresh);
    }
  }
  if (until != Until::program || query->translation) return query;
  auto scope = timings.measure(Phase::translate);
  std::vector<std::string> names;
  for (const planner::ResultColumn& column : query->planned.columns) names.push_back(column.name);
  sql::Place place;
  auto refused = [&](const Error& error) {
    if (error.fault != Fault::input) return error;
    sink.error("sql-unsupported",
               place_of(statement, place.known() ? place.offset : 0, place.length), "{}",
               error.message);
    return Error{Fault::input, ""};
  };
  if (!query->planned.tree) {
    auto plan = sql::read_plan(query->planned.plan, &place);
    if (!plan) return refused(plan.error());
    query->planned.tree = *std::move(plan);
  }
  const std::optional<sql::Plan> plan = std::exchange(query->planned.tree, std::nullopt);
  auto translation = sql::translate(*plan, catalog_.catalog(), names, &place);
  if (!translation) return refused(translation.error());
  query->translation = *std::move(translation);
  return query;
}

}  // namespace rndn::runtime
