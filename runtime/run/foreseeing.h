// What operators of a run go on with before the device has found it, and whether it found the same.
//
//   foreseeing.start(runs_on_device);
//   const uint64_t* words = foreseeing.answer("bounds", found, 5);  // null: to be waited for
//   RETURN_IF_ERROR(foreseeing.check());                            // whenever the device was waited for
//   const bool wrong = foreseeing.end(ended_well);
//
// Operators ask the device for counts and bounds to go on. Equal runs get equal answers: two that agreed tell the third. Where the device finds
// another answer it sets a word, and later kernels do nothing (operators::Operators::differs, outliner::Kernel::looks): they would read and write by
// sizes of other vectors. The host compares when it waits, gives the run up, and repeats it with waits.
// Left out: under a limit, where counts of kernels decide how much memory there is; after evictions, where columns may have come with other elements.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/tables.h"
#include "runtime/engine.h"
#include "runtime/memory/arena.h"

namespace rndn::runtime {

// A column that a run read, and how it is asked for.
struct ColumnRead {
  std::string table, name;  // of a table; no name: the key of that table
  data::ColumnPart part = data::ColumnPart::values;
  std::shared_ptr<const data::FileColumn> file;  // or of a file
  std::optional<hir::BasicType> as;
  std::weak_ptr<const data::Column> column;
  bool is_current(const data::Tables& tables) const;
};

// What a run was told, for the next.
struct Answers {
  struct Answer {
    size_t step = 0;
    std::string_view question;    // the operator's name for it
    std::vector<uint64_t> words;  // mapped memory, as the work left it
    bool operator==(const Answer&) const = default;
  };
  std::vector<Answer> all;          // in the order of the questions
  std::vector<ColumnRead> columns;  // in the order in which they were read
  uint64_t evictions = 0;           // of the engine at its end
  uint64_t runs = 0;                // one after the other, that got the same
};

class Foreseeing {
 public:
  // An answer on its way, and whether the operator went on with one of the runs before.
  struct Told {
    size_t step = 0;
    std::string_view question;
    size_t words = 0;
    BufferPtr at;
    bool foreseen = false;
  };

  Foreseeing(Engine::State& engine, Engine::Plan::State& plan) : engine_(engine), plan_(plan) {}
  // A run, or one that begins once more. on_device: all its steps but the results are.
  void start(bool on_device);
  void at_step(size_t step) { step_ = step; }
  // The answer of the runs before, which kernels will write to `found`; null: it is waited for. A run that asks something else, or reads another column,
  // waits from there on.
  const uint64_t* answer(std::string_view question, BufferPtr found, size_t words);
  void note_column(ColumnRead read);
  // May a result of so many bytes, which was short in the run before, have them in mapped memory?
  bool gives_room(uint64_t bytes) const;
  void take_room(uint64_t bytes) { mapped_room_ += bytes; }
  bool went_on() const { return went_on_; }  // with an answer that was foreseen
  // After a wait: an error where the device has found another answer.
  Result<void> check() const;
  // After the run: whether it was told something else than the device found, so that its results are wrong. What all of a run that ended well was told
  // is kept for the next.
  bool end(bool ended_well);

  const std::vector<Told>& told() const { return told_; }
  // A graph is launched, in which this was asked.
  void replay(std::vector<Told> told);

 private:
  bool is_other(size_t k) const;

  Engine::State& engine_;
  Engine::Plan::State& plan_;
  std::vector<Told> told_;
  std::vector<ColumnRead> columns_;
  size_t step_ = 0;
  uint64_t mapped_room_ = 0;  // bytes
  bool foresees_ = false;     // so far this run is as those before
  bool went_on_ = false, is_replay_ = false;
};

}  // namespace rndn::runtime
