// What an engine and its plans keep between runs. Private to this folder.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "libraries/operators/api.h"
#include "runtime/memory/arena.h"
#include "runtime/engine.h"
#include "runtime/memory/bounds.h"
#include "runtime/memory/device_value.h"
#include "runtime/memory/pinned_bytes.h"
#include "runtime/plan/plan.h"
#include "runtime/run/foreseeing.h"
#include "runtime/memory/text_domains.h"
#include "runtime/memory/vector_bounds.h"
#include "runtime/data/tables.h"

namespace rndn::runtime {

class Stream;

// Operators with one choice of alternatives; their kernels are assembled and loaded once.
struct OperatorSet {
  operators::Options options;
  std::unique_ptr<operators::Operators> operators;
};

// A cubin on the device, for all plans that have the same code: programs that differ only in numbers that they pass.
struct LoadedModule {
  device::Device& device;
  device::ModuleHandle handle{};
  std::vector<std::byte> cubin;

  LoadedModule(device::Device& d, device::ModuleHandle h, std::vector<std::byte> c)
      : device(d), handle(h), cubin(std::move(c)) {}
  LoadedModule(const LoadedModule&) = delete;
  ~LoadedModule() { (void)device.unload_module(handle); }
};

// The code of a kernel for elements that lie in memory as `encodings` says.
struct KernelVariant {
  codegen::KernelEncodings encodings;  // without plain ones at the end
  codegen::KernelCode code;
  std::shared_ptr<LoadedModule> module;  // its own; none: it is in the plan's
  device::KernelHandle handle{};
  device::KernelInfo info;
  uint32_t instructions = 0;
  uint32_t resident_blocks = 1;  // of the whole device at once: the persistent grid
  uint32_t large_bytes = 0;      // of shared memory that launches give, for which that holds

  Result<void> find(device::Device& device, device::ModuleHandle in,
                    std::span<const assembler::KernelReport> reports);
  void describe(KernelReport& report) const;
  // Counts the resident blocks of launches that give so much shared memory.
  Result<void> make_room(device::Device& device, uint32_t bytes);
};

// A compiled kernel and what its launches need. The first variant is that of plain elements; others are made when vectors first come so.
struct KernelState {
  std::vector<std::unique_ptr<KernelVariant>> variants;
  KernelReport report;
  TextClasses texts;
  KeptBounds bounds;
  // Per sink whose keys are hashed: slots of a table that was large enough in the last run, 0: unknown; mapped, where nothing waits for them, the
  // number of groups and whether the table was large enough again (operators::Folded::report).
  struct Hashed {
    uint64_t slots = 0;
    BufferPtr report;
  };
  std::vector<Hashed> hashed;
};

// Launches since the last wait.
struct Launched {
  KernelState* state;
  hir::FunctionId function;
  uint32_t first_mark, last_mark;
  std::optional<std::vector<ItemPtr>>
      inputs;  // for the message of an error; none: too large to keep, or it cannot fail
  uint64_t floor_bytes = 0;
};
struct LibraryLaunch {
  operators::Launch launch;
  bool fused = false;
};

// A run as a graph: every launch up to the results, with its addresses.
struct Replay {
  device::GraphHandle graph{};
  std::vector<ItemPtr> results;  // of the last step, as the graph leaves them
  std::vector<BufferPtr> held;   // what it reads of the engine's memory
  std::vector<DomainPtr> held_domains;
  std::vector<Launched> launched;
  std::vector<LibraryLaunch> library_launched;
  std::vector<Foreseeing::Told> told;
  uint64_t evictions = 0;  // the engine's, when it was made
};

// Parts of a column, and columns that share a dictionary, share what is made of it.
inline const void* domain_key(const data::Column& column) {
  return column.dictionary ? static_cast<const void*>(column.dictionary.get()) : &column;
}

struct Engine::State {
  device::Device& device;
  const reference::Tables& tables;
  DeviceMemory memory;
  Arena kept;  // columns, and the tables of domains
  // Of a run; runs follow each other, so that all plans share the pages.
  Arena buffers;
  Arena mapped;  // small results
  Arena flags;   // what operators read through mapped memory, and the plans' error words
  std::vector<DomainPtr> derived_domains;
  std::map<const void*, DomainPtr> domains;  // by domain_key
  // What texts of several domains were brought into, and of one domain with literals where order counts; the last used come last.
  struct CommonDomain {
    bool ordered = false;
    std::vector<DomainPtr> of;
    std::vector<std::string> literals;  // ascending
    DomainPtr domain;
  };
  std::vector<CommonDomain> common_domains;
  // Columns and foreign keys by their host form; their device data stays until memory is short.
  std::map<const data::Column*, ItemPtr> columns;
  std::map<const data::Column*, ItemPtr> fetched;  // the values of foreign keys
  Encode encode = Encode::narrow;                  // what columns on the device were brought for
  ColumnForms forms;
  ColumnBounds bounds;
  PinnedBytes pinned{device, {}};
  Transfer transfer = Transfer::automatic;  // the same
  uint64_t column_bytes = 0, pinned_column_bytes = 0, mapped_column_bytes = 0;  // Engine::column_bytes, ..
  // The first `size` bytes of a column, or of what was made of one, in memory of the engine. pins: they are sent again and again.
  Result<BufferPtr> send(const std::shared_ptr<const data::Bytes>& bytes, uint64_t size, bool pins);
  // The same in the host's memory, where kernels read them; bytes: not empty.
  Result<BufferPtr> map(const std::shared_ptr<const data::Bytes>& bytes);
  // Columns are nowhere on the device that kernels read in the host's memory; graphs that read them end. Not while a run needs them.
  void unmap();
  struct Uploaded {
    ItemPtr item;
    uint64_t last_use = 0;
    // Of the device; those that kernels read in the host's memory take none of it, but for what was made of them.
    uint64_t bytes() const { return item->data_buffer && !item->data_buffer->host ? item->data_buffer->bytes : 0; }
  };
  std::vector<Uploaded> uploaded;
  // Columns that are on the device, or on their way, before a run has asked for them, by their bytes on the host.
  struct Ahead {
    BufferPtr buffer;
    std::weak_ptr<data::Bytes> of;
  };
  std::map<const data::Bytes*, Ahead> ahead;
  void send_ahead(const data::Column& column, Encode as);
  BufferPtr take_ahead(const std::shared_ptr<data::Bytes>& bytes);  // null: it is not there
  uint64_t clock = 0;
  // While it lives, what is allocated takes no memory from columns that have been used since a time of `clock`, from what belongs to columns, or from
  // results.
  class Sparing {
   public:
    Sparing(State& state, uint64_t after) : state_(state) {
      state_.spared_after = after;
      state_.memory.spares_results = true;
    }
    ~Sparing() {
      state_.spared_after = UINT64_MAX;
      state_.memory.spares_results = false;
    }
    Sparing(const Sparing&) = delete;

   private:
    State& state_;
  };
  uint64_t spared_after = UINT64_MAX;  // the time of Sparing; UINT64_MAX: there is none
  std::vector<OperatorSet> operators;
  std::map<std::string, uint32_t, std::less<>> library_instructions;  // per kernel of the library
  CodeCache* code_cache = nullptr;
  ThreadPool* pool = nullptr;
  Timings* timings = nullptr;  // of the run that is going on: kernels that it makes the library assemble count there

  State(device::Device& d, const reference::Tables& t);
  ~State();
  Result<operators::Operators*> operators_for(const operators::Options& options);
  // Takes the device data of the column that was used longest ago from it, or strings of a domain; false: there are none.
  bool evict();
  bool evict_one();
  // Columns that lie in bits on the device lie so on the host, too, and nowhere else. False: none did otherwise. again: also
  // those that the host has asked for since.
  bool keep_forms_alone(bool again);
  // Between runs: host memory that can be made again goes. False: there was none.
  bool give_back_host();
  // A column that is no more, and what was made of its texts.
  void forget(const data::Column* column);
  void forget_domain(const void* key);
  uint64_t evictions = 0;  // so far: what graphs read may be gone
  std::vector<std::weak_ptr<LoadedModule>> modules;
  Result<std::shared_ptr<LoadedModule>> load(const std::vector<std::byte>& cubin, const std::string& ptx, int level);
  std::string lost;        // why nothing runs on the device any more; empty: it does
  Result<void> check_device() const;
  void note(const Error& error) {
    if (error.cause == Cause::device_lost && lost.empty()) lost = error.message;
  }
  void drop_cache();
  // What a run without the cache has brought to the device, whose pages stay for the next; the next run of the plan sends it early.
  void end_uncached(Plan::State& plan, bool is_early);
};

struct Engine::Plan::State {
  const Compiled& compiled;
  const SourceManager& sources;
  EngineOptions options;
  Engine::State& engine;
  Arena kept;  // literals, scratch; comes first: it outlives whatever has memory of it
  Steps steps;
  operators::Operators* sql = nullptr;
  const reference::Tables* tables;  // of the runs to come: the engine's, or parts of these (runtime/stream)
  data::ColumnsRead columns;  // what steps read, not yet prefetched
  std::vector<KernelState> kernels;
  std::map<uint32_t, uint64_t> result_rows;  // of the last run, by Item::result_slot
  std::vector<bool> copied;  // per slot: a result of a kernel starts as a copy of it, in the plain form
  std::string whole_program;  // why the reference interpreter runs all of it; empty: it does not
  std::shared_ptr<LoadedModule> module;
  BufferPtr errors;                           // mapped: an error word per kernel, 0 = none
  BufferPtr sum_flags;                        // mapped: ptx/sums/exact_sum.h
  BufferPtr repeats;  // mapped: a word per number of a join, not 0 when a left key of it repeats; none: no such joins
  std::vector<uint32_t> unfit;                // groups that turned out to be no folds in the last run
  std::vector<uint32_t> apart;                // folds that turned out to be better apart
  BufferPtr scratch;                          // of all kernels: each leaves it zero
  std::map<uint64_t, device::Address> sizes;  // size slots of numbers that the host knows
  std::vector<BufferPtr> size_pages;
  BufferPtr size_page;  // the last of them
  uint64_t sizes_in_page = 0;
  bool records_fit = true;      // false: the device had no room for records by key, and look-ups ask tables of rows
  bool bounds_fit = true;       // false: the device had no room for bounds of vectors, and runs go without
  std::optional<uint64_t> room_without_bounds;  // the most bytes that runs without them have begun with
  uint64_t began = UINT64_MAX;  // Engine::State::clock when the last run began; none: UINT64_MAX
  // From the third run on a graph runs, where the host has nothing to decide before the results.
  uint64_t runs = 0;             // that ended well
  bool quiet = false;            // the last of them needed nothing of the host before its results
  uint64_t quiet_evictions = 0;  // the engine's, at that time
  bool graphs = true;            // false: one could not be made
  std::optional<Replay> replay;
  void drop_replay();
  Answers answers;       // of the last run
  bool foresees = true;  // false: tables are parts of others, which change; or an answer was another one
  // What it keeps on the device between runs; what the next run needs of it is sent again.
  void give_back();
  // What runs since keys that the code took to be unique turned out to repeat, or sums of floats needed more bits.
  std::unique_ptr<Compiled> compiled_again;
  std::unique_ptr<Plan> instead;
  // What runs since columns and intermediate results turned out not to fit.
  std::unique_ptr<Stream> stream;
  bool stays_whole = false;  // ranges were asked for, and no table can be cut
  // Columns, and rows of foreign keys (true), that kernels read so few elements of that they read them in the host's memory, where columns do not
  // stay on the device; none: it was not asked yet, since there was no run.
  std::optional<std::set<std::pair<const data::Column*, bool>>> mapped;
  // Without the cache: the columns, and rows of foreign keys (true), that the last run sent, where all of them and what runs make fit together.
  std::set<std::pair<const data::Column*, bool>> early;
  // The numbers of those joins, whose words are zero again then.
  std::vector<uint32_t> take_repeats();
  // Whether results are wrong since a number had no parts to sum, which is known no more then; to be asked before take_unsure.
  bool take_without_parts();
  // Whether results may be wrong for want of bits in sums of floats, whose flags are zero again then.
  bool take_unsure();
  // Whether results are wrong since a table of hashed keys had become too small. The next run waits for their numbers.
  bool take_full();

  State(const Compiled& c, const SourceManager& s, const EngineOptions& o, Engine::State& e);
  ~State();
  void lay_out();  // what hangs on the program alone: steps, whole_program, columns, copied, texts of kernels
};

}  // namespace rndn::runtime
