// The timing facility: declared phases (phases.def), scoped, reported as a tree, JSON or a Chrome trace.
//
//   Timings timings;
//   {
//     auto total = timings.measure(Phase::frontend);   // opens the compile group; glue between passes counts here
//     auto scope = timings.measure(Phase::select);     // pauses the phase around it: times are exclusive
//   }
//   timings.total_ns(PhaseGroup::compile);             // = sum of the group's exclusive phases, by construction
//
// One object per thread of work; hand it down, there is no global. Clock: std::chrono::steady_clock.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rndn {

enum class PhaseGroup : uint8_t { compile, execute };
enum class Phase : uint8_t {
#define PHASE(group, name, text) name,
#include "libraries/base/report/phases.def"
#undef PHASE
};
inline constexpr size_t phase_count = 0
#define PHASE(group, name, text) +1
#include "libraries/base/report/phases.def"
#undef PHASE
    ;
std::string_view phase_name(Phase phase);
std::string_view phase_text(Phase phase);
PhaseGroup phase_group(Phase phase);

class Timings {
 public:
  struct Event {
    Phase phase;
    uint16_t depth;        // nesting, 0 = outermost
    uint64_t start_ns;     // since the object was made
    uint64_t duration_ns;  // inclusive
    std::string detail;    // such as a kernel's name; may be empty
  };
  class [[nodiscard]] Scope {
   public:
    Scope(Timings* owner) : owner_(owner) {}
    Scope(Scope&& other) noexcept : owner_(std::exchange(other.owner_, nullptr)) {}
    Scope& operator=(Scope&&) = delete;
    ~Scope() {
      if (owner_) owner_->leave();
    }

   private:
    Timings* owner_;
  };

  Timings();
  Scope measure(Phase phase, std::string_view detail = {});
  // Time measured elsewhere (a device event): moves `ns` from the phase now open to `phase`, so that totals still add
  // up.
  void credit(Phase phase, uint64_t ns);
  // What a device did by its own clock, beside the events: it adds to no phase.
  struct DeviceSpan {
    Phase phase;
    uint64_t start_ns, duration_ns;  // as of an event
    std::string name;                // of a kernel
  };
  void on_device(DeviceSpan span) { device_spans_.push_back(std::move(span)); }
  // Work that ran beside the measured thread: counts in `phase` and in the group's overlap.
  void add_overlap(Phase phase, uint64_t ns);
  void add_overlap(const Timings& beside);  // all its phases; its events stay its own

  uint64_t exclusive_ns(Phase phase) const { return exclusive_[static_cast<size_t>(phase)]; }
  uint64_t total_ns(PhaseGroup group) const;  // wall time: sum of phases minus overlap
  uint64_t overlap_ns(PhaseGroup group) const { return overlap_[static_cast<size_t>(group)]; }
  const std::vector<Event>& events() const { return events_; }
  const std::vector<DeviceSpan>& device_spans() const { return device_spans_; }
  uint64_t now() const;  // nanoseconds since the object was made
  void reset();

  std::string tree() const;  // for people; ends with the total

 private:
  using Clock = std::chrono::steady_clock;
  struct Open {
    Phase phase;
    uint32_t event;
    uint64_t resumed_ns;  // when this phase last became the innermost one
  };
  void leave();

  Clock::time_point origin_;
  std::array<uint64_t, phase_count> exclusive_{};
  std::array<uint64_t, 2> overlap_{};
  std::vector<Open> open_;
  std::vector<Event> events_;
  std::vector<DeviceSpan> device_spans_;
};

}  // namespace rndn
