#include "runtime/run/foreseeing.h"

#include <algorithm>
#include <cstring>

#include "runtime/run/state.h"

namespace rndn::runtime {

namespace {
constexpr uint64_t runs_that_agree = 2;
constexpr uint64_t mapped_room_limit = 16 << 20;   // bytes of one result that was not longer in the run before
constexpr uint64_t mapped_room_of_run = 64 << 20;  // of all of them

bool are_same(const ColumnRead& a, const ColumnRead& b) {
  return !a.column.owner_before(b.column) && !b.column.owner_before(a.column);
}
}  // namespace

bool ColumnRead::is_current(const data::Tables& tables) const {
  const auto now = file ? file->read(as) : name.empty() ? tables.key_column(table) : tables.part(table, name, part);
  return now && *now == column.lock();
}

void Foreseeing::start(bool on_device) {
  told_.clear();
  columns_.clear();
  mapped_room_ = 0;
  went_on_ = is_replay_ = false;
  const Answers& before = plan_.answers;
  foresees_ = on_device && plan_.foresees && plan_.options.cache && engine_.memory.limit() == UINT64_MAX &&
              before.evictions == engine_.evictions && before.runs >= runs_that_agree;
}

const uint64_t* Foreseeing::answer(std::string_view question, BufferPtr found, size_t words) {
  const size_t k = told_.size();
  const std::vector<Answers::Answer>& all = plan_.answers.all;
  foresees_ = foresees_ && k < all.size() && all[k].step == step_ && all[k].question == question && all[k].words.size() == words;
  went_on_ |= foresees_;
  told_.push_back({step_, question, words, std::move(found), foresees_});
  return foresees_ ? all[k].words.data() : nullptr;
}

void Foreseeing::note_column(ColumnRead read) {
  const size_t k = columns_.size();
  foresees_ = foresees_ && k < plan_.answers.columns.size() && are_same(plan_.answers.columns[k], read);
  columns_.push_back(std::move(read));
}

bool Foreseeing::gives_room(uint64_t bytes) const {
  return bytes <= mapped_room_limit && mapped_room_ + bytes <= mapped_room_of_run;
}

bool Foreseeing::is_other(size_t k) const {
  return told_[k].foreseen && std::memcmp(told_[k].at->host, plan_.answers.all[k].words.data(), 8 * told_[k].words) != 0;
}

Result<void> Foreseeing::check() const {
  for (size_t k = 0; k < told_.size(); ++k)
    if (is_other(k)) return Error{Fault::internal, fmt::format("the device answers `{}` otherwise than was foreseen", told_[k].question)};
  return {};
}

bool Foreseeing::end(bool ended_well) {
  bool wrong = false;
  for (size_t k = 0; k < told_.size(); ++k) wrong |= is_other(k);
  if (wrong) {
    plan_.foresees = plan_.quiet = false;
  } else if (ended_well && !is_replay_) {
    Answers now{.all = {}, .columns = std::move(columns_), .evictions = engine_.evictions, .runs = 1};
    for (const Told& told : told_) {
      const auto* words = static_cast<const uint64_t*>(told.at->host);
      now.all.push_back({told.step, told.question, {words, words + told.words}});
    }
    Answers& before = plan_.answers;
    if (now.evictions == before.evictions && now.all == before.all && std::ranges::equal(now.columns, before.columns, are_same))
      now.runs += before.runs;
    before = std::move(now);
  }
  return wrong;
}

void Foreseeing::replay(std::vector<Told> told) {
  told_ = std::move(told);
  is_replay_ = true;
  for (const Told& t : told_) std::memset(t.at->host, 0, 8 * t.words);
}

}  // namespace rndn::runtime
