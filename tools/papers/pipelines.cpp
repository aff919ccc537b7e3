#include "tools/papers/pipelines.h"

#include <algorithm>
#include <map>

#include "assembler/assemble.h"
#include "assembler/isa/isa.h"
#include "libraries/base/errors/diagnostic.h"
#include "ptx/parse.h"
#include "tools/papers/slab.h"

namespace rndn::tools::papers {
namespace {

using device::Address;

// Threads take rows by turns, in whole warps: row %r7, selected if %p3, its value %rd13. %r9: the
// lane; %rd6: where results go, %rd7: the counter, or the counts of warps.
constexpr std::string_view before_row =
    R"((.param .u64 quantity, .param .u64 price, .param .u64 discount, .param .u64 rows,
    .param .u64 x, .param .u64 out, .param .u64 counter)
{
  .reg .pred %p<8>;
  .reg .b32 %r<32>;
  .reg .b64 %rd<32>;
  ld.param.u64 %rd1, [quantity];
  ld.param.u64 %rd2, [price];
  ld.param.u64 %rd3, [discount];
  ld.param.u64 %rd4, [rows];
  ld.param.u64 %rd5, [x];
  ld.param.u64 %rd6, [out];
  ld.param.u64 %rd7, [counter];
  cvt.u32.u64 %r1, %rd4;
  cvt.u32.u64 %r2, %rd5;
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mov.u32 %r6, %nctaid.x;
  mad.lo.u32 %r7, %r3, %r4, %r5;
  mul.lo.u32 %r8, %r4, %r6;
  and.b32 %r9, %r5, 31;
  mov.u64 %rd20, 0;
next:
  sub.u32 %r10, %r7, %r9;
  setp.ge.u32 %p1, %r10, %r1;
  @%p1 bra done;
  setp.lt.u32 %p2, %r7, %r1;
  mov.u32 %r11, 2147483647;
  mul.wide.u32 %rd8, %r7, 4;
  add.u64 %rd9, %rd1, %rd8;
  @%p2 ld.global.s32 %r11, [%rd9];
  setp.le.s32 %p3, %r11, %r2;
  mov.u32 %r12, 0;
  mov.u32 %r13, 0;
  add.u64 %rd11, %rd2, %rd8;
  add.u64 %rd12, %rd3, %rd8;
)";
constexpr std::string_view value = R"(  @%p3 ld.global.s32 %r12, [%rd11];
  @%p3 ld.global.s32 %r13, [%rd12];
  mul.wide.s32 %rd13, %r12, %r13;
)";
// %r15: how many of the warp, %r17: how many before this lane.
constexpr std::string_view ballot = R"(  vote.sync.ballot.b32 %r14, %p3, 4294967295;
  popc.b32 %r15, %r14;
  mov.u32 %r16, %lanemask_lt;
  and.b32 %r16, %r16, %r14;
  popc.b32 %r17, %r16;
  setp.eq.u32 %p4, %r9, 0;
)";
constexpr std::string_view store = R"(  shl.b64 %rd15, %rd14, 3;
  add.u64 %rd15, %rd6, %rd15;
  @%p3 st.global.u64 [%rd15], %rd13;
)";
// Of the warp: in the array at %rd7, an i64 for every 32 rows.
constexpr std::string_view address_of_count = R"(  shr.u32 %r18, %r7, 5;
  mul.wide.u32 %rd16, %r18, 8;
  add.u64 %rd16, %rd7, %rd16;
)";
constexpr std::string_view after_row = "  add.u32 %r7, %r7, %r8;\n  bra next;\ndone:\n";

std::string kernel(std::string_view name, std::initializer_list<std::string_view> of_row, std::string_view end = "") {
  std::string text = fmt::format(".visible .entry {}{}", name, before_row);
  for (const std::string_view part : of_row) text += part;
  return text + std::string(after_row) + std::string(end) + "  ret;\n}\n";
}

std::string all_kernels() {
  const std::string by_warp = "  cvt.u64.u32 %rd17, %r17;\n";
  std::string sum_of_warp;  // of %rd20, by halves
  for (const int step : {16, 8, 4, 2, 1})
    sum_of_warp += fmt::format(
        "  mov.b64 {{%r20, %r21}}, %rd20;\n  shfl.sync.down.b32 %r22, %r20, {0}, 31, 4294967295;\n"
        "  shfl.sync.down.b32 %r23, %r21, {0}, 31, 4294967295;\n  mov.b64 %rd21, {{%r22, %r23}};\n"
        "  add.u64 %rd20, %rd20, %rd21;\n",
        step);
  return kernel("count",
                {ballot, address_of_count, "  cvt.u64.u32 %rd17, %r15;\n  @%p4 st.global.u64 [%rd16], %rd17;\n"}) +
         kernel("write", {value, ballot, address_of_count, by_warp,
                          "  ld.global.u64 %rd14, [%rd16];\n  add.u64 %rd14, %rd14, %rd17;\n", store}) +
         kernel("atomic", {value, "  mov.u64 %rd14, 0;\n  @%p3 atom.global.add.u64 %rd14, [%rd7], 1;\n", store}) +
         kernel("local", {value, ballot,
                          "  cvt.u64.u32 %rd16, %r15;\n  mov.u64 %rd14, 0;\n"
                          "  @%p4 atom.global.add.u64 %rd14, [%rd7], %rd16;\n  cvt.u32.u64 %r18, %rd14;\n"
                          "  shfl.sync.idx.b32 %r19, %r18, 0, 31, 4294967295;\n  add.u32 %r19, %r19, %r17;\n"
                          "  cvt.u64.u32 %rd14, %r19;\n",
                          store}) +
         kernel("sum_atomic", {value, "  @%p3 red.global.add.u64 [%rd7], %rd13;\n"}) +
         kernel("sum_local", {value, "  add.u64 %rd20, %rd20, %rd13;\n"},
                sum_of_warp + "  setp.eq.u32 %p4, %r9, 0;\n  @%p4 red.global.add.u64 [%rd7], %rd20;\n");
}

constexpr uint32_t threads = 256;

}  // namespace

struct Pipelines::State {
  Harness& harness;
  std::unique_ptr<operators::Operators> operators;
  std::unique_ptr<Slab> memory;
  uint64_t rows = 0;
  Address columns[3] = {}, out = 0, counter = 0, counts = 0;
  struct Kernel {
    device::KernelHandle handle{};
    uint32_t blocks = 0;
  };
  std::map<std::string, Kernel> kernels;
  uint64_t selected = 0;  // by the last run

  Result<void> launch(const std::string& name, int64_t x, Address to_counter) {
    const Kernel& kernel = kernels.at(name);
    const uint64_t parameters[] = {columns[0], columns[1], columns[2], rows, static_cast<uint64_t>(x), out, to_counter};
    const auto blocks = static_cast<uint32_t>(std::min<uint64_t>(kernel.blocks, (rows + threads - 1) / threads));
    return harness.device().launch(kernel.handle, {blocks}, {threads}, 0, std::as_bytes(std::span(parameters)));
  }
};

Pipelines::Pipelines(std::unique_ptr<State> state) : state_(std::move(state)) {}
Pipelines::~Pipelines() = default;

Result<std::unique_ptr<Pipelines>> Pipelines::make(Harness& harness, const data::Column& quantity,
                                                   const data::Column& price, const data::Column& discount) {
  device::Device& device = harness.device();
  auto state = std::make_unique<State>(State{.harness = harness, .rows = quantity.rows});
  ASSIGN_OR_RETURN(state->operators, harness.operators());
  ASSIGN_OR_RETURN(state->memory, Slab::make(device, state->rows * 24 + (uint64_t{1} << 20)));
  Slab& memory = *state->memory;
  const data::Column* const columns[] = {&quantity, &price, &discount};
  for (size_t c = 0; c < 3; ++c) {
    ASSIGN_OR_RETURN(state->columns[c], memory.result(state->rows * 4));
    RETURN_IF_ERROR(device.copy_to_device(state->columns[c], columns[c]->data->data(), state->rows * 4));
  }
  ASSIGN_OR_RETURN(state->out, memory.result(state->rows * 8));
  ASSIGN_OR_RETURN(state->counter, memory.result(8));
  ASSIGN_OR_RETURN(state->counts, memory.result((state->rows + 31) / 32 * 8));
  memory.keep();

  const std::string text =
      fmt::format(".version 7.8\n.target {}\n.address_size 64\n{}", device.info().target, all_kernels());
  SourceManager sources;
  DiagnosticSink sink;
  const ptx::Module module = ptx::parse(sources.add("pipelines.ptx", text), sources, sink);
  if (sink.has_errors()) return Error{Fault::internal, render(sink, sources)};
  assembler::Options options;
  options.target = isa::find_target(device.info().target);
  Timings timings;
  ASSIGN_OR_RETURN(const assembler::Assembled made, assembler::assemble(module, options, timings));
  ASSIGN_OR_RETURN(const device::ModuleHandle loaded, device.load_module(made.cubin));
  for (const char* name : {"count", "write", "atomic", "local", "sum_atomic", "sum_local"}) {
    State::Kernel& kernel = state->kernels[name];
    ASSIGN_OR_RETURN(kernel.handle, device.find_kernel(loaded, name));
    ASSIGN_OR_RETURN(const uint32_t blocks, device.blocks_per_multiprocessor(kernel.handle, threads, 0));
    kernel.blocks = blocks * device.info().multiprocessors;
  }
  return std::unique_ptr<Pipelines>(new Pipelines(std::move(state)));
}

const std::vector<Pipelines::Way>& Pipelines::ways() {
  static const std::vector<Way> all = {
      {"multi-pass", false, true}, {"atomic"}, {"local"}, {"sum_atomic", true}, {"sum_local", true}};
  return all;
}

Result<double> Pipelines::run(const Way& way, int64_t x) {
  State& s = *state_;
  s.memory->reset();
  RETURN_IF_ERROR(s.harness.device().fill(s.counter, 0, 8));
  if (way.name != "multi-pass") return s.harness.timed([&] { return s.launch(way.name, x, s.counter); });
  const uint64_t warps = (s.rows + 31) / 32;
  ASSIGN_OR_RETURN(double ms, s.harness.timed([&] { return s.launch("count", x, s.counts); }));
  const operators::Vector counts{.type = operators::Type::i64, .data = s.counts, .capacity = warps};
  s.operators->measure(true);
  const Result<operators::Vector> found = s.operators->offsets(counts, *s.memory);
  const std::vector<operators::Launch> launches = s.operators->take_launches();
  s.operators->measure(false);
  if (!found) {
    s.operators->recover();
    return found.error();
  }
  for (const operators::Launch& l : launches) {
    ASSIGN_OR_RETURN(const uint64_t ns, s.harness.device().elapsed_ns(l.first_mark, l.last_mark));
    ms += static_cast<double>(ns) * 1e-6;
  }
  ASSIGN_OR_RETURN(const double write_ms, s.harness.timed([&] { return s.launch("write", x, found->data); }));
  RETURN_IF_ERROR(s.harness.device().copy(s.counter, found->data + warps * 8, 8));
  return ms + write_ms;
}

Result<std::vector<int64_t>> Pipelines::written(const Way& way, int64_t x) {
  State& s = *state_;
  RETURN_IF_ERROR(s.harness.device().fill(s.out, 0xa5, s.rows * 8));
  RETURN_IF_ERROR(s.harness.limited([&] { return run(way, x); }));
  std::vector<int64_t> values(1);
  RETURN_IF_ERROR(s.harness.device().copy_to_host(values.data(), s.counter, 8));
  if (way.is_sum) return values;
  const auto count = static_cast<uint64_t>(values[0]);
  if (count > s.rows) return std::vector<int64_t>();
  values.resize(count);
  RETURN_IF_ERROR(s.harness.device().copy_to_host(values.data(), s.out, count * 8));
  return values;
}

}  // namespace rndn::tools::papers
