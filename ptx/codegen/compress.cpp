// Storing selections: a single-pass scan with decoupled look-back (Merrill and Garland, "Single-pass Parallel Prefix Scan with Decoupled
// Look-back", NVIDIA technical report 2016), and late materialisation: only masks are evaluated for all elements.
//
// Blocks take tiles in order from a counter, never by their own number: whoever waits for an earlier tile waits for a block that runs. A tile is eight
// segments of 512 elements (fewer when there are many scans), one per warp. The walk back over tiles bounds the speed: with tiles of 2048 elements a
// selection of half of 6 * 10^7 f64 by another column took 0.447 ms on an H200, with 4096 0.362 (by a condition on the elements themselves 0.342 and 0.274),
// with 8192 0.327 (and 0.314: the elements are no longer in the caches when they are read again; bench_codegen
// --elements 60000000 --only compress, Emitter::scan_items of 8, 16, 32, four selected elements side by side where it is two now).
//   1. For all elements: the masks of all scans. A warp writes the positions of its selected elements, in order, to shared memory: a ballot tells
//      every lane its place.
//   2. The segments' counts meet in shared memory. Warp k publishes the tile's count of scan k, looks back over earlier tiles, 32 at a time, until it
//      meets one whose inclusive position is known, publishes its own, and tells the warps where their segments' elements go.
//   3. For the selected elements: every warp walks its positions, some 32 at a time, loads what the results need, evaluates it and stores the results side
//      by side. What is not selected is not loaded, and no lane is idle but at the end of a segment.
// A status word is 64 bits, written and read as a whole: state and value of 32 bits each; state 0 = nothing yet, 1 = the tile's own count, 2 = the
// count up to and including the tile. So no fence is needed between a value and its state. Volatile accesses keep them out of stale
// cache lines. Waiting is by whole warps: no lane waits for another lane of its warp.
// Scratch: one status word per scan and tile, zero between launches. Shared: per scan 8 counts, which become positions, and two bytes per element.
#include <algorithm>
#include <bit>

#include "ptx/codegen/emitter.h"

namespace rndn::codegen {

using ptx::Access;
using ptx::Compare;
using ptx::Semantics;
using ptx::ShuffleMode;
using ptx::VoteMode;

namespace {

constexpr Access volatile_access{.semantics = Semantics::volatile_};
uint32_t segment(const Emitter& e) { return 32 * e.scan_items; }  // elements of a warp per tile
uint32_t tile(const Emitter& e) { return 8 * segment(e); }
constexpr uint32_t position_bytes = 2;
constexpr uint32_t most_shared_bytes = 46 << 10;

constexpr uint32_t counted = 1, located = 2;  // states of a tile

// Shared memory: [0] tile number; per scan 8 words of warps (u32): the counts, then the places of their first elements among all selected ones; then,
// per scan, positions within the tile.
constexpr int64_t scan_base = 16, scan_bytes = 32;
int64_t positions_of(const Emitter& e, size_t scan) {
  return scan_base + scan_bytes * static_cast<int64_t>(e.scans.size()) +
         static_cast<int64_t>(scan * tile(e) * position_bytes);
}

// The masks that select v's elements; false when they cannot be told from the statements.
bool find_masks(const Emitter& e, const hir::Operand& o, std::vector<hir::Operand>& found) {
  if (o.kind != hir::Operand::variable || e.form(o) != Form::selected) return true;
  const auto step =
      std::find_if(e.steps.begin(), e.steps.end(), [&](const Step& s) { return index(s.target) == o.id; });
  if (step == e.steps.end()) return false;
  const auto add = [&](const hir::Operand& mask) {
    if (std::none_of(found.begin(), found.end(),
                     [&](const hir::Operand& m) { return m.kind == mask.kind && m.id == mask.id; }))
      found.push_back(mask);
  };
  if (masks(*step, 0)) {
    if (!find_masks(e, step->operands[0], found)) return false;
    add(step->operands[0]);
    return step->operands.size() < 2 || find_masks(e, step->operands[1], found);
  }
  for (size_t k = 0; k < step->operands.size(); ++k)
    if (!reads_whole(*step, k) && step->operands[k].kind == hir::Operand::variable &&
        e.form(step->operands[k]) == Form::selected)
      return find_masks(e, step->operands[k], found);
  return false;
}

}  // namespace

void plan_scans(Emitter& e) {
  while (e.scan_items > 1 && positions_of(e, e.scans.size()) > most_shared_bytes) e.scan_items /= 2;
  if (positions_of(e, e.scans.size()) > most_shared_bytes) refuse(e, "so many selections", none<hir::StatementId>());
  const bool single = std::all_of(e.definitions.begin(), e.definitions.end(), [](uint8_t n) { return n <= 1; });
  for (Scan& scan : e.scans) {
    const hir::VariableId v = e.outputs[scan.outputs[0]].variable;
    scan.evaluate = !single || !find_masks(e, {.kind = hir::Operand::variable, .id = index(v)}, scan.masks);
    if (scan.evaluate) scan.masks.clear();
    scan.needed = marks(e.function.variables.size());
    for (uint32_t o : scan.outputs) scan.needed[index(e.outputs[o].variable)] = true;
    scan.wanted = steps_for(e, scan.needed, true);
  }
}

void declare_scan_memory(Emitter& e) {
  CHECK(e.block_size == 256, "eight warps per block");
  Builder& b = e.b;
  e.scan_shared = b.shared<U64>(e.code.name + "_scan", static_cast<uint64_t>(positions_of(e, e.scans.size())) / 8, 16);
  e.lanes_below = b.special(ptx::SpecialRegister::lanemask_lt);
}

namespace {
// The thread's place in the block: made where it is needed, or it would live through the loop over all elements.
void locate(Emitter& e) {
  Builder& b = e.b;
  e.lane = b.and_(e.tid, 31);
  e.warp = b.shr(e.tid, 5);
  e.segment = b.mad_lo(e.warp, segment(e) * position_bytes, b.address_of_32(e.scan_shared));
}
}  // namespace

void take_tile(Emitter& e) {
  Builder& b = e.b;
  Reg<Pred> thread0 = b.setp(Compare::eq, e.tid, 0);
  const ptx::LabelId taken = b.label();
  b.unless(thread0).bra(taken);
  Reg<U32> number = b.atom<U32>(ptx::AtomicOp::add, Space::global, Address(b.ld_param(e.scratch), tile_counter), 1);
  b.st<U32>(Space::shared, Address(e.scan_shared), number);
  b.bind(taken);
  b.bar_sync();
  e.tile_number = b.ld<U32>(Space::shared, Address(e.scan_shared));
}

Reg<U32> start_scans(Emitter& e) {
  locate(e);
  for (Scan& s : e.scans) s.cursor = e.b.mov(e.segment);
  return e.b.mad_lo(e.warp, segment(e), e.lane);
}

namespace {
// Of the warp's segment.
Reg<U32> selected_so_far(Emitter& e, const Scan& scan) {
  return e.b.shr(e.b.sub(scan.cursor, e.segment), std::countr_zero(position_bytes));
}
}  // namespace

void note_selection(Emitter& e, Reg<U32> position) {
  Builder& b = e.b;
  for (size_t k = 0; k < e.scans.size(); ++k) {
    Scan& s = e.scans[k];
    Reg<Pred> selected;
    if (s.evaluate) selected = e.values[index(e.outputs[s.outputs[0]].variable)].mask;
    for (const hir::Operand& o : s.masks) {
      const Element m = in_register(
          e, o.kind == hir::Operand::literal ? literal_element(e, e.program.literals[o.literal_id()]) : e.values[o.id]);
      selected = both(e, selected, both(e, reg<Pred>(m), m.mask));
    }
    selected = active(e, selected);
    Reg<U32> votes = b.ballot(selected);
    Reg<U32> to = b.mad_lo(b.popc(b.and_(votes, e.lanes_below)), position_bytes, s.cursor);
    b.when(selected);
    b.emit(ptx::Opcode::st, ptx::Type::u16, {.space = Space::shared}, {},
           {Address(to, positions_of(e, k)).operand, Builder::use(position)});
    b.mad_lo(b.popc(votes), position_bytes, s.cursor, s.cursor);
  }
}

namespace {

// Of the first eight lanes: the sum up to and including the own one.
Reg<U32> sum_up_to(Builder& b, Reg<U32> x) {
  Reg<U32> sum = b.mov(x);
  for (uint32_t distance = 1; distance < 8; distance *= 2) {
    Reg<U32> lower = b.reg<U32>();
    Reg<Pred> exists = b.reg<Pred>();
    b.emit(ptx::Opcode::shfl, ptx::Type::b32, {.shuffle = ShuffleMode::up, .sync = true},
           {Builder::use(lower), Builder::use(exists)},
           {Builder::use(sum), ptx::Value<U32>(distance).operand, ptx::Value<U32>(0u).operand,
            ptx::Value<U32>(0xFFFFFFFFu).operand});
    b.when(exists).add(sum, lower, sum);
  }
  return sum;
}

// Sum over the lanes of the warp, in all of them.
Reg<U32> sum_of_warp(Emitter& e, Reg<U32> x) {
  if (e.module.target >= 80) return e.b.redux_sync(ptx::AtomicOp::add, x);
  for (uint32_t distance = 16; distance > 0; distance /= 2)
    x = e.b.add(x, e.b.shfl_sync(ShuffleMode::bfly, x, distance, 31));
  return x;
}

// Warp k: positions of the tile in scan k.
void look_back(Emitter& e) {
  Builder& b = e.b;
  const uint32_t scans = static_cast<uint32_t>(e.scans.size());
  const ptx::LabelId positioned = b.label(), window = b.label(), poll = b.label(), another = b.label();
  b.when(b.setp(Compare::ge, e.warp, scans)).bra_uni(positioned);
  Reg<U64> words = b.add(b.ld_param(e.scratch), scratch_fixed_bytes);
  Reg<Pred> lane0 = b.setp(Compare::eq, e.lane, 0);
  Reg<U32> scan = scans > 1 ? b.mov(e.warp) : Reg<U32>{};
  b.bind(another);
  Reg<U32> shared = b.mad_lo(e.lane, 4, b.address_of_32(e.scan_shared));
  Reg<Pred> of_warp = b.setp(Compare::lt, e.lane, 8);  // a lane per warp of the block
  if (scans > 1) b.mad_lo(scan, static_cast<uint32_t>(scan_bytes), shared, shared);
  Reg<U32> count = b.constant<U32>(0);
  b.when(of_warp).ld<U32>(Space::shared, Address(shared, scan_base), count);
  Reg<U32> up_to = sum_up_to(b, count);
  Reg<U32> total = b.shfl_sync(ShuffleMode::idx, up_to, 7, 31);
  const auto word_at = [&](Reg<U32> number) {
    return b.mad_wide(scans > 1 ? b.mad_lo(number, scans, scan) : number, 8, words);
  };
  const auto publish = [&](Reg<U64> at, Reg<U32> value, uint32_t state) {
    Reg<U64> word = b.pack<U64>(b.constant<U32>(state), value);
    b.when(lane0).st<U64>(Space::global, volatile_access, Address(at), word);
  };
  Reg<U64> own = word_at(e.tile_number);
  publish(own, total, counted);
  Reg<U32> before = b.constant<U32>(0);
  Reg<S32> number = b.sub(b.sub(Builder::as<S32>(e.tile_number), 1), Builder::as<S32>(e.lane));
  b.bind(window);
  Reg<Pred> exists = b.setp(Compare::ge, number, 0);
  Reg<U64> at = word_at(Builder::as<U32>(number));
  b.bind(poll);
  Reg<U64> word = b.constant<U64>(located);  // before the first tile: position 0, known
  b.when(exists).ld<U64>(Space::global, volatile_access, Address(at), word);
  auto [state, value] = b.unpack(word);
  b.unless(b.vote(VoteMode::all, b.setp(Compare::ne, state, 0))).bra_uni(poll);
  Reg<U32> inclusive = b.ballot(b.setp(Compare::eq, state, located));
  // The nearest tile whose position is known ends the sum: lanes behind it do not count.
  Reg<U32> nearest = b.clz(b.brev(inclusive));  // 32 when there is none
  b.when(b.setp(Compare::gt, e.lane, nearest)).constant<U32>(0, value);
  b.add(before, sum_of_warp(e, value), before);
  b.sub(number, 32, number);
  b.when(b.setp(Compare::eq, inclusive, 0)).bra_uni(window);
  publish(own, b.add(before, total), located);
  Reg<U32> first = b.sub(b.add(before, up_to), count);
  b.when(of_warp).st<U32>(Space::shared, Address(shared, scan_base), first);
  if (scans > 8) {
    b.add(scan, 8, scan);
    b.when(b.setp(Compare::lt, scan, scans)).bra_uni(another);
  }
  b.bind(positioned);
}

// Evaluates and stores the selected elements of the warp's segment: the emitter's items are these. at: the warp's word of scan 0.
void store_selected(Emitter& e, size_t k, Reg<U32> at) {
  Builder& b = e.b;
  const Scan& scan = e.scans[k];
  Reg<U32> first = b.ld<U32>(Space::shared, Address(at, scan_base + scan_bytes * static_cast<int64_t>(k)));
  Reg<U32> own = selected_so_far(e, scan);
  // The thread after whose segment nothing comes stores the size.
  const ptx::LabelId sized = b.label();
  Reg<Pred> last_tile = b.setp(Compare::eq, b.add(e.tile_number, 1), e.tiles);
  b.unless(b.setp(Compare::eq, ptx::Combine::and_, e.tid, e.block_size - 1, last_tile)).bra(sized);
  Reg<U64> size = b.cvt<U64>(b.add(first, own));
  for (uint32_t o : scan.outputs) b.st<U64>(Space::global, Address(b.ld_param(e.outputs[o].size)), size);
  b.bind(sized);

  const std::vector<Input> inputs = e.inputs;
  const uint32_t items = e.items;
  const bool positions = reads_positions(e, scan.wanted);
  for (Input& in : e.inputs) in.wanted = scan.needed[index(in.variable)];
  // An item has a position of its own; four instead of two made a pure selection 3 % faster and the 22 queries' kernels 2 % longer.
  e.items = positions ? 1 : std::min(items_of(e, scan.wanted), 2u);
  e.item = 0;
  e.selected = true;
  // Where the tile's elements begin: kept over the loop, unless there are so many that an address is better made for every element.
  const bool keep = std::count_if(e.inputs.begin(), e.inputs.end(), [](const Input& in) { return in.wanted; }) <= 4;
  std::vector<Reg<U64>> from(e.inputs.size());
  for (size_t i = 0; i < e.inputs.size(); ++i)
    if (const Input& in = e.inputs[i]; in.wanted && keep)
      from[i] = b.mad_wide(e.tile_number, tile(e) * width_of(in.type), b.ld_param(in.data));
  start_input_items(e, false);
  const ptx::LabelId loop = b.label(), done = b.label();
  const uint32_t step = e.items * e.stride;
  Reg<S32> left = Builder::as<S32>(own);  // from the current elements of lane 0 on
  Reg<U32> position_at = b.mad_lo(e.lane, position_bytes, e.segment), to = b.add(first, e.lane);
  b.when(b.setp(Compare::eq, own, 0)).bra_uni(done);
  b.bind(loop);
  e.room = b.sub(left, Builder::as<S32>(e.lane));
  e.within.clear();
  for (uint32_t item = 0; item < e.items; ++item) {
    Reg<Pred> inside = within(e, item);
    e.within.push_back(inside);
    Reg<U32> position = b.constant<U32>(0);
    b.when(inside);
    b.emit(ptx::Opcode::ld, ptx::Type::u16, {.space = Space::shared}, {Builder::use(position)},
           {Address(position_at, positions_of(e, k) + int64_t{e.local_offset(item) * position_bytes}).operand});
    Reg<U32> number;  // of the element
    if (positions || !keep) number = b.mad_lo(e.tile_number, tile(e), position);
    if (positions) e.first_index = b.cvt<U64>(number);
    for (size_t i = 0; i < e.inputs.size(); ++i) {
      Input& in = e.inputs[i];
      if (!in.wanted) continue;
      in.pointer = keep ? b.mad_wide(position, width_of(in.type), from[i])
                        : b.mad_wide(number, width_of(in.type), b.ld_param(in.data));
      load_input(e, in, item, 0, {});  // lanes that have none load the tile's first element, which is there
    }
  }
  const ItemPlan plan = start_items(e, scan.wanted);
  for (e.item = 0; e.item < e.items; ++e.item) {
    evaluate_item(e, plan);
    for (uint32_t o : scan.outputs) {
      Output& out = e.outputs[o];
      const Element x = storable(e, convert(e, e.values[index(out.variable)], out.type));
      if (e.item == 0) out.pointer = b.mad_wide(to, width_of(out.type), b.ld_param(out.data));
      store_element(e, x, out.pointer, int64_t{e.local_offset(e.item)} * width_of(out.type), e.valid);
    }
  }
  e.within.clear();
  b.add(position_at, step * position_bytes, position_at);
  b.add(to, step, to);
  b.sub(left, static_cast<int32_t>(step), left);
  b.when(b.setp(Compare::gt, left, 0)).bra_uni(loop);
  b.bind(done);
  e.inputs = inputs;
  e.items = items;
  e.selected = false;
}

}  // namespace

void store_selections(Emitter& e) {
  Builder& b = e.b;
  locate(e);
  Reg<Pred> lane0 = b.setp(Compare::eq, e.lane, 0);
  Reg<U32> at = b.mad_lo(e.warp, 4, b.address_of_32(e.scan_shared));
  for (size_t k = 0; k < e.scans.size(); ++k) {
    Reg<U32> count = selected_so_far(e, e.scans[k]);
    b.when(lane0).st<U32>(Space::shared, Address(at, scan_base + scan_bytes * static_cast<int64_t>(k)), count);
  }
  b.bar_sync();
  look_back(e);
  b.bar_sync();
  for (size_t k = 0; k < e.scans.size(); ++k) store_selected(e, k, at);
}

}  // namespace rndn::codegen
