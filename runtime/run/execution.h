// One run of a plan: walks the steps over the slots. Private to this folder; its parts are files of their own:
//   execution.cpp       the steps of the host, waiting, errors
//   foreseeing.cpp      what operators go on with before the device has found it
//   transfer.cpp        values between host and device
//   text_transfer.cpp   text: domains of vectors, and bringing several into one
//   launch.cpp          kernels
//   forecast.cpp        what a run will do, before there is code
//   folds.cpp           tables that kernels reduce groups into
//   lookups.cpp         tables of rows by key, which kernels ask
//   operator_calls.cpp  SQL operators
//   text_calls.cpp      functions of texts
//   complex_keys.cpp    complex numbers as their keys
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/memory/bounds.h"
#include "runtime/run/estimate.h"
#include "runtime/run/foreseeing.h"
#include "runtime/run/state.h"
#include "runtime/text/text_functions.h"

namespace rndn::runtime {

inline constexpr uint64_t least_encoded = 1024;  // elements of a kernel's result that is to have fewer bytes
inline constexpr uint64_t mapped_result_limit = 64 << 10;  // bytes; larger results are copied at full speed instead
inline constexpr size_t most_marks = 1500;  // recorded between two waits; a device keeps at least 2048

class Run {
 public:
  Run(Engine::State& engine, Engine::Plan::State& plan, Timings& timings, std::string* printed);
  ~Run();
  Result<std::vector<reference::Value>> execute();
  // What a run will find, instead of one: no device is used.
  Forecast forecast(DataChoices* choices = nullptr);
  // After an error: nothing may still write to what is given back, nor be found by the next run.
  void settle();
  // Whether operators were told something else than the device found, so that the results are wrong. After the run, which has waited. What all of a
  // run that ended well were told is kept for the next.
  bool was_wrong(bool ended_well) { return foreseeing_.end(ended_well); }
  // Launches of library kernels, one entry per kernel.
  std::vector<KernelReport> take_library_reports();
  // Steps that the reference interpreter ran though they had a kernel or an operator: a phrase each, as Plan::fallbacks().
  std::vector<std::string> take_fallbacks() { return std::exchange(fallbacks_, {}); }
  // Texts that the host read, or whose codes it made, other than those of the results and single ones.
  uint64_t texts_walked() const { return texts_walked_; }

 private:
  using Value = reference::Value;

  // --- execution.cpp ---
  const hir::Program& program() const { return plan_.compiled.outlined.program; }
  Error located(Error e, Span span) const;
  Result<ItemPtr> item(uint32_t slot);
  Result<std::vector<ItemPtr>> items(std::span<const uint32_t> slots);
  void assign(uint32_t slot, ItemPtr value) {
    if (slot != no_slot) slots_[slot] = std::move(value);
  }
  Result<void> assign_value(uint32_t slot, Value value);  // in the type of its variable
  void assign_result(const Step& s, ItemPtr value) {
    if (!s.outputs.empty()) assign(s.outputs[0], std::move(value));
  }
  Result<std::vector<Value>> execute_once();
  Result<std::vector<Value>> steps();
  Result<void> step(const Step& s, std::vector<Value>& results);
  Result<void> finish(std::span<const ItemPtr> items, std::vector<Value>& results);  // the results, on the host
  // Graphs (Plan::State::replay).
  bool may_record() const;
  Result<void> end_recording(std::span<const ItemPtr> results);
  Result<std::optional<std::vector<Value>>> replay();
  bool recording_ = false;
  bool runs_on_device() const;  // but for results
  Foreseeing foreseeing_;
  std::vector<BufferPtr> held_;  // by a graph
  std::vector<DomainPtr> held_domains_;
  uint64_t spared_after_ = 0;  // Engine::State::Sparing where bounds of vectors are sent
  Result<void> load_table(const Step& s);
  Result<void> column_part(const Step& s);
  Result<ItemPtr> file_column(std::shared_ptr<const data::FileColumn> at, std::optional<hir::BasicType> as);
  Result<void> check_cast(const Step& s);
  Result<void> table(const Step& s);
  Result<void> part(const Step& s, size_t which);  // of a dict or an enumeration
  Result<void> fetch(const Step& s);
  Result<void> index_list(const Step& s);
  Result<void> pick(const Step& s);
  Result<void> raze(const Step& s);
  Result<void> length(const Step& s);
  Result<ItemPtr> length_of(const ItemPtr& v);
  // What a step's kernel or operator cannot take, because of what only the run knows, goes to the reference interpreter; `reason` says why.
  // Under --no-fallback that is an error. Arguments that may be wrong are different: the interpreter says what is wrong with them, and it is a
  // fallback only when it finds nothing.
  enum class Arguments : uint8_t { fine, perhaps_wrong };
  Result<void> fall_back(const Step& s, std::string_view reason, Arguments arguments = Arguments::fine);
  Result<void> builtin(const Step& s);  // on the reference interpreter
  void note_lookups_without_table(hir::FunctionId function);
  void note_parts_without_kernel(hir::FunctionId function);
  Result<void> interpret(const Step& s);
  Result<std::vector<Value>> call(hir::FunctionId function, const std::vector<ItemPtr>& inputs);
  // Waits for all launches so far and checks the error words. The time that they ran is taken from the phase that waits.
  Result<void> wait();
  Error kernel_error(uint64_t word) const;
  // The interpreter's error when it meets one in this function, else `otherwise`.
  Error interpreted_error(hir::FunctionId function, const std::vector<ItemPtr>& inputs, Error otherwise);
  Error failed(std::string who, Error e);
  Error launch_error(Error e, std::string_view kernel, std::string_view place);
  Error blamed(Error e);  // names the kernels that may be at fault
  std::string place_of(hir::FunctionId function) const;

  // --- transfer.cpp ---
  Result<Value> to_host(Item& v);
  Result<Value> cells_to_host(Item& v);
  Result<std::vector<uint64_t>> offsets_of(Item& list);  // of its cells, in elements; one more than there are cells
  Result<void> bring_back(std::span<const ItemPtr> results);
  Result<uint64_t> size_of(Item& v);  // waits unless it is exact; then it is
  Result<void> learn_length(Item& v);
  Result<void> to_device(const ItemPtr& v);
  Result<void> bring(const ItemPtr& v);        // its elements, which are not there; they may still be on their way
  void send_early(const ItemPtr& v);
  Result<void> cells_to_device(const ItemPtr& v);
  Result<void> send(Item& v, const std::byte* from);
  bool stays_on_host(const Item& v, const std::shared_ptr<const data::Bytes>& bytes) const;
  Result<void> send_column(Item& v);
  const ColumnForm& column_form(const Item& v) const;  // of an item that is a column
  const VectorBounds* bounds_of_vectors(const Item& v) const;  // null: there are none
  // None: there is no room, but for what is used now or was in the run before.
  Result<BufferPtr> bounds_to_device(Item& v);
  void retry_bounds();  // where there is more room than before
  Result<ItemPtr> plain(const ItemPtr& v);
  Result<void> size_to_device(Item& v);
  Result<device::Address> size_slot(uint64_t size);
  Arena& arena_of(const Item& v);
  ItemPtr new_vector(hir::BasicType type, uint64_t capacity, bool exact) const;

  // --- text_transfer.cpp ---
  TextTools text_tools();
  DomainPtr domain_of(Item& v);
  Result<void> codes_to_device(Item& v);
  Result<ItemPtr> in_domain(const ItemPtr& v, const DomainPtr& domain);
  Result<DomainPtr> common_domain(std::span<const ItemPtr> texts, const TextClasses::Class& needs);
  Result<DomainPtr> literal_domain(std::span<const ItemPtr> texts, const TextClasses::Class& needs);
  bool only_with_literals(const TextClasses::Class& texts, const hir::Function& f,
                          const std::vector<ItemPtr>& inputs) const;
  Result<std::vector<std::string>> decode(Item& v, std::span<const uint32_t> codes);
  bool expect_domains(const TextClasses& texts, const hir::Function& f, std::vector<ItemPtr>& inputs,
                      std::vector<DomainPtr>& domains);

  Result<DomainPtr> ordered_domain(std::span<const ItemPtr> texts);
  Result<DomainPtr> known_domain(bool ordered, std::vector<DomainPtr> of, std::vector<std::string> literals,
                                 const std::function<Result<DomainPtr>(Engine::State::CommonDomain&)>& make);

  // --- launch.cpp ---
  bool bound(const outliner::Kernel& kernel, const hir::Function& f, const std::vector<ItemPtr>& inputs,
             outliner::SizeId size, uint64_t& elements, bool& exact) const;
  enum class Sizes : uint8_t {
    hold,
    other_lengths,
    other_cells,
    no_vectors
  };  // no_vectors: an argument is only on the host
  Result<Sizes> sizes_hold(const outliner::Kernel& kernel, const hir::Function& f, const std::vector<ItemPtr>& inputs);
  // Gives vectors of one element as many copies of it as the others of their size have, where the kernel makes the same of them.
  Result<bool> spread_single(const outliner::Kernel& kernel, const hir::Function& f, std::vector<ItemPtr>& inputs);
  Result<ItemPtr> copies_of(const ItemPtr& v, uint64_t count);
  // Do the lists have the same cells? Those that share their offsets do, which costs no look at them.
  Result<bool> same_cells(Item& a, Item& b);
  Result<void> launch(const Step& s);
  Result<void> texts_to_one_domain(KernelState& state, const hir::Function& f, std::vector<ItemPtr>& inputs,
                                   std::vector<DomainPtr>& domains);
  struct Geometry {
    uint64_t elements = 1;
    uint32_t grid = 1;
  };
  Result<Geometry> geometry(const outliner::Kernel& kernel, const codegen::KernelCode& code, const hir::Function& f,
                            const std::vector<ItemPtr>& inputs, uint32_t resident_blocks) const;
  static void set_domains(const TextClasses& texts, const hir::Function& f, std::span<const DomainPtr> domains,
                          std::span<const ItemPtr> outputs);
  Result<ItemPtr> make_output(const Step& s, size_t i, uint64_t elements, const std::vector<ItemPtr>& inputs);
  Result<KernelVariant*> variant(const Step& s, codegen::KernelEncodings key);
  // The bounds that the code reads, by its input; none where there is no room for all of them.
  Result<std::optional<std::vector<BufferPtr>>> bounds_of(const codegen::KernelCode& code,
                                                          std::span<const ItemPtr> inputs);
  Result<void> allocate_output(const Step& s, size_t i, Item& made);
  // Device memory for the vector that becomes result i of the step, at its capacity, the size slot behind it.
  Result<void> allocate_result(const Step& s, size_t i, Item& made);
  Result<ItemPtr> copy_input(const Step& s, size_t i, uint32_t parameter, const ItemPtr& input, bool sole);
  Result<void> reserve_scratch(uint64_t bytes);

  // --- folds.cpp ---
  // How a kernel finds the entries of one of its groupings.
  struct FoldWay {
    std::vector<uint64_t> words;    // codegen::SinkWord and what follows
    std::vector<uint8_t> key_word;  // codegen::KernelEncodings::hashed
    std::vector<uint64_t> greatest;  // hashed: that each word of a key can be
    uint64_t most_slots = 0;         // hashed
    BufferPtr tables;                // of entries, and of hashed keys before them
    codegen::KernelEncodings::Table table = codegen::KernelEncodings::usual;
    std::string_view not_direct;     // hashed: why its entries are not all that there may be; empty: that was asked for
    bool hashed() const { return !key_word.empty(); }
    uint64_t& entries() { return words[codegen::sink_entries]; }
  };
  // What is known where a kernel folds.
  struct FoldInput {
    const hir::Function& f;
    uint64_t elements = 0;
    std::span<const VariableBounds> bounds;
    std::span<const DomainPtr> domains;  // of the keys that are texts, by key
    bool repeats = false;                // the kernel may be launched twice
    uint64_t slots = 0;                  // KernelState::Hashed
  };
  // Sets the way; why there is none, or an empty view.
  std::string_view fold_way(const codegen::KernelCode::Sink& sink, const FoldInput& in, FoldWay& way) const;
  std::string_view fold_direct(const codegen::KernelCode::Sink& sink, const FoldInput& in, std::span<const Bounds> keys,
                               FoldWay& way) const;
  bool may_be_large(const codegen::KernelCode::Sink& sink, const FoldInput& in, uint64_t entries,
                    codegen::KernelEncodings::Table table) const;
  std::string_view fold_hashed(const codegen::KernelCode::Sink& sink, const FoldInput& in, std::span<const Bounds> keys,
                               FoldWay& way) const;
  static std::vector<DomainPtr> key_domains(const TextClasses& texts, const codegen::KernelCode::Sink& sink,
                                            std::span<const DomainPtr> domains);
  static bool changes_inputs(const codegen::KernelCode& code);
  bool is_own_fold(int64_t number) const;
  bool may_stand_apart(int64_t number) const;
  bool is_better_apart(const codegen::KernelCode::Sink& sink, const FoldInput& in) const;
  Result<void> fold_apart(int64_t number);
  codegen::KernelEncodings forms_of(const Step& s, uint64_t elements, std::span<const ItemPtr> inputs,
                                    std::span<const ItemPtr> outputs, std::span<const FoldWay> ways,
                                    std::vector<uint8_t> lookups, std::span<const VariableBounds> bounds) const;
  // Which share of a kernel's elements the conditions leave by which it could collect them; and whether it does. elements: of the geometry.
  double share_of_collected(const Step& s, uint64_t elements, std::span<const ItemPtr> inputs, std::span<const VariableBounds> bounds) const;
  bool collects(const Step& s, uint64_t elements, std::span<const ItemPtr> inputs, std::span<const VariableBounds> bounds) const;
  // Its results, as empty tables.
  Result<void> fold_tables(const codegen::KernelCode::Sink& sink, const hir::Function& f, FoldWay& way,
                           std::vector<ItemPtr>& outputs);
  // Its results, by the groups that were found, ascending; fold_full: the table was too small, and the way has a larger one now.
  Result<codegen::FoldState> fold_results(const codegen::KernelCode::Sink& sink, FoldWay& way,
                            std::vector<ItemPtr>& outputs, KernelState::Hashed& known);
  Result<void> cannot_fold(const Step& s, int64_t number, std::string_view reason);
  // The way in words, with the figures that it was chosen by.
  std::string way_in_words(const codegen::KernelCode::Sink& sink, const FoldInput& in, FoldWay& way, bool sure) const;

  // --- forecast.cpp ---
  bool forecast_launch(const Step& s, Forecast& found, bool& sure);
  void expect_results(const Step& s, uint64_t most_rows);
  ItemPtr as_sent(const ItemPtr& v);
  std::vector<ItemPtr> least_of(const std::vector<ItemPtr>& inputs, std::span<const uint32_t> slots,
                                uint64_t& rows) const;
  bool is_forecast_ = false;
  DataChoices* choices_ = nullptr;  // what a forecast is to tell; null: nothing
  std::string place_of(const hir::Function& f, hir::Builtin builtin, size_t operand, std::span<const int64_t> numbers) const;
  void tell_fold(bool again, const hir::Function& f, int64_t number, const std::string& what);
  void tell_collecting(const Step& s, uint64_t elements, std::span<const ItemPtr> inputs, std::span<const VariableBounds> bounds);
  // forms: as of record_forms; null: none.
  void tell_join(bool again, const hir::Function& f, const codegen::KernelCode::Lookup& lookup, const Item& column,
                 const std::vector<encodings::Stored>* forms);
  void tell_filter(const hir::Function& f, size_t lookup, uint64_t rows, uint64_t elements);
  void expect_of_step(const Step& s, bool known, uint64_t most);
  model::Work work_of(const Step& s, const Estimate& estimate, double elements, std::span<const ItemPtr> inputs,
                      std::span<const Expected> expected, std::span<FoldWay> ways, std::span<const uint8_t> tables) const;
  // Of DataChoices::columns; no_column: it is none of these.
  uint32_t column_number(const Item& v) const;
  void tell_read_whole(const Item& v) const;
  std::map<const data::Column*, std::string> column_names_;  // of those that were looked at to tell
  std::vector<Expected> expected_;   // per slot
  std::vector<uint64_t> most_rows_;  // per slot: rows at most, where they or their bounds are unsure; 0: they are not

  // --- lookups.cpp ---
  // The words of the table that a kernel asks for, which is filled once for all kernels of the run. Null: there is none for such keys.
  Result<const operators::Lookup*> lookup_table(const codegen::KernelCode::Lookup& wanted, std::span<const ItemPtr> given,
                                                std::span<const ItemPtr> inputs);
  // codegen::KernelEncodings::lookups, of that table; without one, what it is expected to be.
  uint8_t kept_form(const codegen::KernelCode::Lookup& wanted, const Item& column, const operators::Lookup* table) const;
  // Rows of that table at most, where they were selected and a filter is worth its reads; else 0.
  uint64_t filtered_rows(const codegen::KernelCode::Lookup& wanted, std::span<const ItemPtr> inputs) const;
  // Which of the look-ups of a kernel of so many elements ask filters. rows: of their tables, as above.
  static void note_filters(std::span<const uint64_t> rows, uint64_t elements, std::vector<uint8_t>& forms);
  // How the fields of a look-up (KernelCode::Lookup::fields) lie in records by key, in a kernel of so many elements; none: it asks a table of rows.
  std::optional<std::vector<encodings::Stored>> record_forms(const codegen::KernelCode::Lookup& wanted, std::span<const ItemPtr> inputs,
                                                             uint64_t elements) const;
  // With the fields there, in the order of keys: the words of the look-up. Empty: there is no room for them.
  Result<std::vector<uint64_t>> fields_by_key(const codegen::KernelCode::Lookup& wanted, std::vector<ItemPtr>& inputs,
                                              std::span<const encodings::Stored> forms);
  Result<BufferPtr> records(const ItemPtr& keys, std::span<const ItemPtr> fields, std::span<const encodings::Stored> forms);
  Result<void> put_records(const Item& keys, std::span<const ItemPtr> fields, std::span<const encodings::Stored> forms, device::Address to);
  // The same of a column whose elements are all different.
  Result<const operators::Lookup*> kept_table(const ItemPtr& column);
  // Gives the memory of tables back whose columns nothing holds any more.
  void drop_lookups();

  // --- operators.cpp ---
  // What an operator works in; temporary memory goes back with the object.
  class OperatorMemory final : public operators::Memory {
   public:
    OperatorMemory(Run& run, Arena& results) : run_(run), results_arena_(results) {}
    ~OperatorMemory() override;
    Result<device::Address> temporary(uint64_t bytes) override;
    Result<device::Address> result(uint64_t bytes) override;
    Result<device::Mapped> mapped(uint64_t bytes) override;
    void give_back(device::Address result) override;
    const uint64_t* foreseen(std::string_view what, const device::Mapped& found, size_t words) override;
    Result<void> waited() override { return run_.foreseeing_.check(); }
    uint64_t most_unknown() const override { return run_.engine_.memory.most_unknown(); }
    BufferPtr buffer(device::Address address) const;  // the result that it lies in, or null
    void clear();

   private:
    Run& run_;
    Arena& results_arena_;
    std::vector<BufferPtr> temporaries_, results_;
  };
  Result<void> order(const Step& s);
  Result<void> group(const Step& s);
  Result<void> aggregate(const Step& s);
  Result<void> unique(const Step& s);
  Result<void> unique_cells(const Step& s);
  Result<void> exact_sum(const Step& s);
  Result<void> join(const Step& s);
  Result<void> member(const Step& s);
  Result<void> scan(const Step& s);
  Result<void> index_of(const Step& s);
  Result<void> like(const Step& s);
  // Elements of a vector; without one: zeros.
  struct Stretch {
    ItemPtr from;
    uint64_t first = 0, count = 0;
  };
  Result<ItemPtr> concatenate(hir::BasicType type, std::span<const Stretch> stretches);
  Result<void> part_of(const Step& s);  // take, drop
  Result<void> append(const Step& s);
  Result<void> tolist(const Step& s);
  Result<void> cells(const Step& s);
  struct CellOffsets {
    operators::Vector vector;
    BufferPtr buffer;
  };
  Result<CellOffsets> cell_offsets(const ItemPtr& lengths);
  Result<void> cell_begins(const Step& s);
  Result<void> cell_numbers(const Step& s);
  Result<void> sub_string(const Step& s);
  // --- text_calls.cpp ---
  Result<void> text_map(const Step& s);
  struct TextCall {
    hir::TextFunctionId id{};
    std::string key;                            // the function and its constants
    std::vector<text::TextArgument> constants;  // all arguments but the variable one
    size_t variable = 0;
  };
  Result<ItemPtr> text_image(const ItemPtr& x, const TextCall& call, bool validity);
  static TextMap map_of(const TextCall& call);
  static bool is_whole_pattern(const TextCall& call);
  static bool is_mapped(const Domain& domain, const TextCall& call, bool validity);
  static bool is_measured(const Domain& domain, const TextCall& call, bool validity);
  Result<BufferPtr> measured_texts(Domain& domain, const TextCall& call, bool validity);
  Result<void> measure_others(Domain& domain, const TextCall& call, bool validity, device::Address into,
                              OperatorMemory& memory);
  Result<ItemPtr> joined_texts(std::span<const ItemPtr> in);
  Result<ItemPtr> number_texts(const ItemPtr& x);
  Result<ItemPtr> made_texts(const operators::Strings& made, hir::BasicType type, const Item& like,
                             const OperatorMemory& memory);
  // work(begin, end) over pieces of these numbers, by all threads.
  void in_pieces(uint64_t count, const std::function<void(uint64_t, uint64_t)>& work);
  Result<ItemPtr> with_domain(const ItemPtr& x, DomainPtr domain);
  Result<Domain::Image> dictionary_of(std::vector<std::string> texts);
  Result<ItemPtr> coded(reference::Value texts);
  Result<std::vector<ItemPtr>> columns_of(const ItemPtr& v);
  Result<bool> same_lengths(std::span<const ItemPtr> columns);
  // What an operator looks at: numbers, or only which elements are equal and which come first.
  enum class Reading : uint8_t { values, order };
  Result<operators::Vector> column(const ItemPtr& v, Reading reading = Reading::values);
  Result<void> to_comparable(ItemPtr& a, ItemPtr& b, bool ordered = false);
  Result<void> to_one_form(ItemPtr& a, ItemPtr& b);
  Result<ItemPtr> convert(const ItemPtr& v, hir::BasicType to);
  Result<operators::Vector> key_codes(ItemPtr v);
  Result<std::vector<operators::Vector>> group_keys(std::span<const ItemPtr> columns, std::vector<ItemPtr>& parts);

  // --- complex_keys.cpp ---
  Result<ItemPtr> complex_part(const ItemPtr& v, bool imaginary);
  Result<ItemPtr> to_complex(const ItemPtr& v);
  Result<void> number_complex(std::span<ItemPtr* const> vectors, bool nan_equal);

  // --- operators.cpp ---
  Result<ItemPtr> translate(const ItemPtr& v, device::Address table, uint64_t entries);
  ItemPtr from_vector(const operators::Vector& v, hir::BasicType type, OperatorMemory& memory) const;
  void note_library_launches(bool fused = false);
  Result<void> run_operator(const Step& s);
  Result<void> check_operator(const Step& s);
  // The simulator runs kernels in the call; a GPU's time is credited when the host has waited for it.
  Phase library_phase() const { return device_.info().is_simulator ? Phase::library : Phase::overhead; }

  Engine::State& engine_;
  Engine::Plan::State& plan_;
  device::Device& device_;
  Timings& timings_;
  std::string* printed_;
  reference::RunState reference_state_;  // of what the interpreter does in this run
  operators::Operators* sql_ = nullptr;
  std::vector<ItemPtr> slots_;
  std::vector<Launched> launched_;
  std::vector<LibraryLaunch> library_launched_;
  std::vector<KernelReport> library_reports_;
  std::vector<std::string> fallbacks_;
  uint64_t texts_walked_ = 0;
  OperatorMemory text_memory_;
  struct Table {
    std::vector<ItemPtr> columns;    // as the kernel was given them
    std::vector<DomainPtr> domains;  // of those that are texts
    std::optional<int64_t> join;
    std::unique_ptr<OperatorMemory> memory;
    operators::Lookup lookup;
  };
  std::vector<Table> tables_;
  std::vector<BufferPtr> until_wait_;  // mapped memory that kernels may still write
  bool pending_ = false;               // launches since the last wait
  std::string failed_at_;              // what the call was for that failed on a GPU
  // A mark on the device, and when that was by the clock of timings_; with measured kernels.
  uint32_t clock_mark_ = 0;
  uint64_t clock_ns_ = 0;
  // Vectors that the analyses assumed to be equally long need not be, which is no error when one is a single value: sizes prove nothing.
  bool sizes_unsure_ = false;
};

// 64 bits of a number in host memory, the lowest first; narrow integers are extended.
uint64_t word_of(const data::Value& number, uint32_t part);

}  // namespace rndn::runtime
