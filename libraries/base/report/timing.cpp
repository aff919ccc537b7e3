#include "libraries/base/report/timing.h"

#include <fmt/format.h>

#include "libraries/base/errors/check.h"

namespace rndn {
namespace {
struct PhaseRow {
  PhaseGroup group;
  std::string_view name, text;
};
constexpr PhaseRow rows[] = {
#define PHASE(group, name, text) {PhaseGroup::group, #name, text},
#include "libraries/base/report/phases.def"
#undef PHASE
};
const PhaseRow& row(Phase p) { return rows[static_cast<size_t>(p)]; }
}  // namespace

std::string_view phase_name(Phase phase) { return row(phase).name; }
std::string_view phase_text(Phase phase) { return row(phase).text; }
PhaseGroup phase_group(Phase phase) { return row(phase).group; }

Timings::Timings() : origin_(Clock::now()) {}

uint64_t Timings::now() const {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - origin_).count());
}

Timings::Scope Timings::measure(Phase phase, std::string_view detail) {
  uint64_t t = now();
  if (!open_.empty()) exclusive_[static_cast<size_t>(open_.back().phase)] += t - open_.back().resumed_ns;
  events_.push_back({phase, static_cast<uint16_t>(open_.size()), t, 0, std::string(detail)});
  open_.push_back({phase, static_cast<uint32_t>(events_.size() - 1), t});
  return Scope(this);
}

void Timings::leave() {
  CHECK(!open_.empty());
  uint64_t t = now();
  Open top = open_.back();
  open_.pop_back();
  exclusive_[static_cast<size_t>(top.phase)] += t - top.resumed_ns;
  events_[top.event].duration_ns = t - events_[top.event].start_ns;
  if (!open_.empty()) open_.back().resumed_ns = t;
}

void Timings::credit(Phase phase, uint64_t ns) {
  CHECK(!open_.empty(), "credit needs an open phase to take the time from");
  uint64_t t = now();
  Open& top = open_.back();
  uint64_t& from = exclusive_[static_cast<size_t>(top.phase)];
  from += t - top.resumed_ns;
  uint64_t moved = ns < from ? ns : from;  // never more than that phase has had
  from -= moved;
  exclusive_[static_cast<size_t>(phase)] += moved;
  top.resumed_ns = t;
}

void Timings::add_overlap(Phase phase, uint64_t ns) {
  exclusive_[static_cast<size_t>(phase)] += ns;
  overlap_[static_cast<size_t>(phase_group(phase))] += ns;
}

void Timings::add_overlap(const Timings& beside) {
  for (size_t p = 0; p < phase_count; ++p)
    if (beside.exclusive_[p]) add_overlap(static_cast<Phase>(p), beside.exclusive_[p]);
}

uint64_t Timings::total_ns(PhaseGroup group) const {
  uint64_t sum = 0;
  for (size_t p = 0; p < phase_count; ++p)
    if (rows[p].group == group) sum += exclusive_[p];
  return sum - overlap_[static_cast<size_t>(group)];
}

void Timings::reset() {
  CHECK(open_.empty());
  exclusive_ = {};
  overlap_ = {};
  events_.clear();
  device_spans_.clear();
  origin_ = Clock::now();
}

std::string Timings::tree() const {
  auto ms = [](uint64_t ns) { return static_cast<double>(ns) * 1e-6; };
  std::string out;
  uint64_t all = 0;
  for (PhaseGroup group : {PhaseGroup::compile, PhaseGroup::execute}) {
    uint64_t total = total_ns(group);
    all += total;
    out += fmt::format("{:<12} {:>12.3f} ms\n", group == PhaseGroup::compile ? "compile" : "execute", ms(total));
    for (size_t p = 0; p < phase_count; ++p)
      if (rows[p].group == group && exclusive_[p])
        out += fmt::format("  {:<10} {:>12.3f} ms  {:>5.1f} %  {}\n", rows[p].name, ms(exclusive_[p]),
                           total ? 100.0 * static_cast<double>(exclusive_[p]) / static_cast<double>(total) : 0.0,
                           rows[p].text);
    if (overlap_[static_cast<size_t>(group)])
      out += fmt::format("  {:<10} {:>12.3f} ms           counted above, ran beside the rest\n", "overlap",
                         -ms(overlap_[static_cast<size_t>(group)]));
  }
  return out + fmt::format("{:<12} {:>12.3f} ms\n", "total", ms(all));
}

}  // namespace rndn
