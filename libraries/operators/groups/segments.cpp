// Aggregates over runs of equal keys: no list of rows is built, and what is sorted already is read once.
//
// segments   one pass over the sorted places, in tiles handed out by a counter. A thread has 8 neighbouring places, which it loads in vectors, and a bit
//            for each that starts a run. It accumulates them; where a run ends that also begins there, its result goes to a slot of shared memory, by the
//            run's number in the tile. What the run that is open at a thread's first place has gathered so far comes from the lanes before it (a
//            segmented scan, as far as any lane needs it) and from the warps before, back to one with a start. The number of runs before the tile comes by
//            look-back (emit.h), which has had all that time; then the block stores its slots next to each other. What crosses tiles is left for the
//            next kernel: per tile `heads`, what lies before the first start, and `tails`, what lies behind the last one. Accumulators whose slots find no
//            room together take turns.
//            Behind the last place another run starts, which has no result: so the last one ends as all others do.
// boundaries a warp per tile that a run ends in: that run's tail, the tiles that it fills, and the head, in order.
// Distinct values are counted where the rows of a group are sorted by the value: flags tell which rows differ from the one before them.
// cells      a warp per cell of a list of rows: lanes take every 32nd row, then a butterfly.
// Costs: keys and value columns are read once (through the rows where these were sorted), results written once; 16 bytes per tile and accumulator.
#include "libraries/operators/groups/segments.h"

#include "libraries/operators/groups/runs.h"
#include "libraries/operators/ready.h"

namespace rndn::operators {

using ptx::Combine;
using ptx::LabelId;
using ptx::RegisterId;
using ptx::SpecialRegister;

namespace {

constexpr uint32_t segment_block = 256, segment_warps = segment_block / 32;
constexpr uint32_t segment_items = 8, segment_tile = segment_block * segment_items;
constexpr uint64_t segment_ticket_at = 4096 + 512;  // in Library::zeroed
// In shared memory: tile number, look-back, counts of warps, starts of warps, then 8 bytes per accumulator and warp, then slots.
constexpr int64_t segment_before_at = 8, segment_sums_at = 16, flags_at = 64, totals_at = 96;
constexpr uint32_t most_slot_bytes = 20;  // of a place

enum class SegmentFrom : uint8_t { keys32, keys64, flags };  // what tells the starts

// Numbers of rows stay below the tile's.
uint32_t slot_bytes(const Accumulator& a) {
  return a.op == Accumulator::count || a.op == Accumulator::distinct ? 4 : width(a.held);
}

// What a sum of floats has gathered before a thread's first start: 8 bytes per part and thread.
constexpr int64_t head_bytes = 8 * int64_t{sums::parts} * segment_block;
// Accumulators begin .. end - 1 have slots at the same time: a slot per place and result, and of a sum of floats the heads before them.
struct Turn {
  size_t begin = 0, end = 0;
  bool has_first = false;         // first rows have some, too
  bool rounds = false;            // has sums of floats
  std::vector<int64_t> slots;     // where those of a result are, by its last accumulator - begin
  int64_t first = 0, shared = 0;  // where those of first rows are; bytes
};
std::vector<Turn> turns_of(const AggregateShape& shape, bool gather) {
  std::vector<Turn> out{{.has_first = !shape.has_distinct()}};
  const uint32_t first_bytes = gather ? 4 : 2;
  uint32_t bytes = out[0].has_first ? first_bytes : 0;
  for (size_t k = 0; k < shape.accumulators.size(); ++k) {
    const Accumulator& a = shape.accumulators[k];
    if (!a.completes()) continue;
    const uint32_t more = slot_bytes(a) + (a.sums_floats() ? static_cast<uint32_t>(head_bytes / segment_tile) : 0);
    if (bytes + more > most_slot_bytes) out.push_back({.begin = out.back().end}), bytes = 0;
    bytes += more;
    out.back().end = k + 1;
    out.back().rounds |= a.sums_floats();
  }
  for (Turn& turn : out) {
    turn.shared = totals_at + 8 * int64_t{segment_warps} * static_cast<int64_t>(turn.end - turn.begin);
    turn.slots.resize(turn.end - turn.begin);
    for (size_t k = turn.begin; k < turn.end; ++k) {
      if (!shape.accumulators[k].completes()) continue;
      if (shape.accumulators[k].sums_floats()) turn.shared += head_bytes;
      turn.slots[k - turn.begin] = turn.shared;
      turn.shared += int64_t{segment_tile} * slot_bytes(shape.accumulators[k]);
      turn.shared = (turn.shared + 7) / 8 * 8;
    }
    turn.first = turn.shared;
    if (turn.has_first) turn.shared += int64_t{segment_tile} * first_bytes;
  }
  return out;
}

std::vector<Element> load_elements(Builder& b, const AggregateShape& shape, const std::vector<Reg<U64>>& columns,
                                   Reg<U32> row) {
  std::vector<Element> out;
  for (size_t c = 0; c < shape.columns.size(); ++c)
    out.push_back(load_element(b, shape.columns[c], element_at(b, columns[c], row, width(shape.columns[c]))));
  return out;
}

std::vector<Param> parameters(Builder& b, const char* name, size_t count) {
  std::vector<Param> out;
  for (size_t k = 0; k < count; ++k) out.push_back(b.parameter<U64>(name + std::to_string(k)));
  return out;
}
std::vector<Reg<U64>> load_all(Builder& b, const std::vector<Param>& parameters) {
  std::vector<Reg<U64>> out;
  for (Param p : parameters) out.push_back(b.ld_param(p));
  return out;
}

constexpr ptx::Access read_once{.cache = ptx::Cache::nc};

// Elements `at` .. `at` + 7, in vectors where they are wide enough for them; `at` is a multiple of eight elements.
std::vector<Element> load_neighbours(Builder& b, Type type, Reg<U64> at) {
  std::vector<Element> out(segment_items, {.type = type});
  const auto load4 = [&]<class T>(Reg<T> Element::*member) {
    for (uint32_t i = 0; i < segment_items; i += 4) {
      const auto four = b.ld_v4<T>(Space::global, At(at, 4 * int64_t{i}), read_once);
      for (uint32_t k = 0; k < 4; ++k) out[i + k].*member = four[k];
    }
  };
  const auto load2 = [&]<class T>(Reg<T> Element::*member) {
    for (uint32_t i = 0; i < segment_items; i += 2) {
      const auto two = b.ld_v2<T>(Space::global, At(at, 8 * int64_t{i}), read_once);
      for (uint32_t k = 0; k < 2; ++k) out[i + k].*member = two[k];
    }
  };
  if (type == Type::f64)
    load2(&Element::f64);
  else if (type == Type::f32)
    load4(&Element::f32);
  else if (type == Type::i64)
    load2(&Element::u64);
  else if (width(type) == 4)
    load4(&Element::u32);
  else
    for (uint32_t i = 0; i < segment_items; ++i) out[i] = load_element(b, type, At(at, int64_t{width(type)} * i));
  return out;
}
// Into the registers of `into`.
void load_again(Builder& b, At at, const Element& into) {
  const Element e = load_element(b, into.type, at);
  if (e.f64.valid())
    b.mov(e.f64, into.f64);
  else if (e.f32.valid())
    b.mov(e.f32, into.f32);
  else if (e.u64.valid())
    b.mov(e.u64, into.u64);
  else
    b.mov(e.u32, into.u32);
}

uint32_t build_segments(ptx::Module& module, std::string_view name, SegmentFrom from, bool gather,
                        const AggregateShape& shape) {
  KernelBuilder b(module, name);
  const size_t count = shape.accumulators.size();
  // whole: tiles of which all places are there, and their neighbours may be loaded in vectors.
  Param p_n = b.parameter<U64>("n"), p_tiles = b.parameter<U64>("tiles"), p_whole = b.parameter<U64>("whole"),
        p_keys = b.parameter<U64>("keys"), p_rows = b.parameter<U64>("rows"), p_first = b.parameter<U64>("first"),
        p_words = b.parameter<U64>("words"), p_ticket = b.parameter<U64>("ticket"), p_values = b.parameter<U64>("values");
  const Answer answer = answer_parameters(b, 1);
  const bool distinct = shape.has_distinct();
  const std::vector<Param> p_columns = parameters(b, "column", shape.columns.size()),
                           p_out = parameters(b, "out", count), p_heads = parameters(b, "heads", count),
                           p_tails = parameters(b, "tails", count);
  SumFlags flags = sum_flags(b, shape);
  b.set_block_size(segment_block);
  const std::vector<Turn> turns = turns_of(shape, gather);
  int64_t shared_bytes = 0;
  for (const Turn& turn : turns) shared_bytes = std::max(shared_bytes, turn.shared);
  auto shared = b.shared<U64>(std::string(name) + "_shared", static_cast<uint64_t>(shared_bytes + 7) / 8, 16);
  const Thread t = thread_of(b);
  Reg<U32> tile = take_ticket(b, t, b.ld_param(p_ticket), b.cvt<U32>(b.ld_param(p_tiles)), At(shared));
  Reg<U64> n = b.ld_param(p_n), start64 = b.mul_wide(tile, segment_tile);
  Reg<U32> left = b.cvt<U32>(b.min(b.sub(n, start64), uint64_t{segment_tile}));
  Reg<U32> start = b.cvt<U32>(start64), within = b.mul_lo(t.tid, segment_items), place = b.add(start, within);
  Reg<Pred> whole = b.setp(Is::lt, tile, b.cvt<U32>(b.ld_param(p_whole)));
  Reg<Pred> lane0 = b.setp(Is::eq, t.lane, 0u);

  // neighbours() loads in vectors; one(i, place) loads again what belongs to place i, for places behind the end the last one's.
  const auto load = [&](auto&& neighbours, auto&& one) {
    const LabelId by_place = b.label(), loaded = b.label();
    b.unless(whole).bra_uni(by_place);
    neighbours();
    b.bra_uni(loaded);
    b.bind(by_place);
    Reg<U32> last = b.sub(left, 1u);
    for (uint32_t i = 0; i < segment_items; ++i) one(i, b.add(start, b.min(b.add(within, i), last)));
    b.bind(loaded);
  };
  const auto for_columns = [&](const Turn& turn, auto&& f) {
    for (size_t c = 0; c < shape.columns.size(); ++c)
      for (size_t k = turn.begin; k < turn.end; ++k) {
        const Accumulator& a = shape.accumulators[k];
        if (a.op > Accumulator::max || a.column != c) continue;
        f(c);
        break;
      }
  };

  // Keys or flags of starts, flags of values, numbers of rows, and the elements of the first turn.
  const bool wide = from == SegmentFrom::keys64;
  std::vector<Reg<U32>> keys32, rows;
  std::vector<Reg<U64>> keys64;
  std::array<Reg<U32>, 2> start_bytes, value_bytes;
  std::vector<std::vector<Element>> elements(segment_items, std::vector<Element>(shape.columns.size()));
  const auto column_neighbours = [&](const Turn& turn) {
    for_columns(turn, [&](size_t c) {
      Reg<U64> at = element_address(b, b.ld_param(p_columns[c]), place, width(shape.columns[c]));
      const std::vector<Element> e = load_neighbours(b, shape.columns[c], at);
      for (uint32_t i = 0; i < segment_items; ++i) elements[i][c] = e[i];
    });
  };
  const auto column_place = [&](const Turn& turn, uint32_t i, Reg<U32> at) {
    for_columns(turn, [&](size_t c) {
      load_again(b, element_at(b, b.ld_param(p_columns[c]), at, width(shape.columns[c])), elements[i][c]);
    });
  };
  const auto gather_columns = [&](const Turn& turn) {
    for_columns(turn, [&](size_t c) {
      Reg<U64> column = b.ld_param(p_columns[c]);
      for (uint32_t i = 0; i < segment_items; ++i)
        elements[i][c] = load_element(b, shape.columns[c], element_at(b, column, rows[i], width(shape.columns[c])));
    });
  };
  Reg<U64> keys = b.ld_param(p_keys);
  Reg<Pred> has_edge = b.setp(Is::ne, Combine::and_, place, 0u, lane0);
  Reg<U32> edge = b.sub(b.min(place, b.cvt<U32>(n)), 1u);  // the place before the warp's first one
  Reg<U32> edge32;
  Reg<U64> edge64;
  if (from == SegmentFrom::keys32) {
    edge32 = b.constant<U32>(0u);
    load_if<U32>(b, has_edge, Space::global, element_at(b, keys, edge, 4), edge32, read_once);
  } else if (wide) {
    edge64 = b.constant<U64>(0);
    load_if<U64>(b, has_edge, Space::global, element_at(b, keys, edge, 8), edge64, read_once);
  }
  const auto load_bytes = [&](Param p) {
    return b.ld_v2<U32>(Space::global, element_at(b, b.ld_param(p), place, 1), read_once);
  };
  const auto load_byte = [&](Param p, uint32_t i, Reg<U32> at, const std::array<Reg<U32>, 2>& into) {
    Reg<U32> byte = b.cvt<U32>(b.ld<U8>(Space::global, read_once, element_at(b, b.ld_param(p), at, 1)));
    const Reg<U32> word = into[i / 4];
    i % 4 == 0 ? b.mov(byte, word) : b.or_(word, b.shl(byte, 8 * (i % 4)), word);
  };
  Reg<U32> inside = b.constant<U32>((1u << segment_items) - 1),
           end = b.constant<U32>(0u);  // bits of places; of the one behind the last
  load(
      [&] {
        if (from == SegmentFrom::flags) {
          start_bytes = load_bytes(p_keys);
        } else if (wide) {
          for (const Element& e : load_neighbours(b, Type::i64, element_address(b, keys, place, 8)))
            keys64.push_back(e.u64);
        } else {
          for (const Element& e : load_neighbours(b, Type::u32, element_address(b, keys, place, 4)))
            keys32.push_back(e.u32);
        }
        if (distinct) value_bytes = load_bytes(p_values);
        if (gather)
          for (const Element& e : load_neighbours(b, Type::i64, element_address(b, b.ld_param(p_rows), place, 8)))
            rows.push_back(b.unpack(e.u64).first);
        else
          column_neighbours(turns[0]);
      },
      [&](uint32_t i, Reg<U32> at) {
        if (from == SegmentFrom::flags)
          load_byte(p_keys, i, at, start_bytes);
        else if (wide)
          b.ld<U64>(Space::global, read_once, element_at(b, keys, at, 8), keys64[i]);
        else
          b.ld<U32>(Space::global, read_once, element_at(b, keys, at, 4), keys32[i]);
        if (distinct) load_byte(p_values, i, at, value_bytes);
        if (gather)
          b.ld<U32>(Space::global, read_once, element_at(b, b.ld_param(p_rows), at, 8), rows[i]);
        else
          column_place(turns[0], i, at);
        if (i > 0) return;
        Reg<U32> own_left = b.sub(b.max(left, within), within);
        Reg<U32> first_behind = b.shl(b.constant<U32>(1u), b.min(own_left, segment_items));
        b.sub(first_behind, 1u, inside);
        b.when(b.setp(Is::ge, left, within)).mov(first_behind, end);
      });
  if (!gather)
    for (uint32_t i = 0; i < segment_items; ++i) rows.push_back(b.add(place, i));
  else
    gather_columns(turns[0]);

  // Bits of what starts runs, and of what differs from the place before in key or value.
  const auto bits_where = [&](auto&& differs) {
    Reg<U32> bits = b.constant<U32>(0u);
    for (uint32_t i = 0; i < segment_items; ++i) b.when(differs(i)).or_(bits, 1u << i, bits);
    return bits;
  };
  const auto bits_of_bytes = [&](const std::array<Reg<U32>, 2>& bytes) {
    return bits_where([&](uint32_t i) { return b.setp(Is::ne, b.and_(bytes[i / 4], 0xffu << 8 * (i % 4)), 0u); });
  };
  const auto bits_of_keys = [&]<class T>(const std::vector<Reg<T>>& key, Reg<T> key_at_edge) {
    Reg<T> before = shuffle(b, ShuffleMode::up, key.back(), 1u, 0u);
    b.when(lane0).mov(key_at_edge, before);
    Reg<Pred> is_first = b.setp(Is::eq, place, 0u);
    return bits_where([&](uint32_t i) {
      return i > 0 ? b.setp(Is::ne, key[i], key[i - 1]) : b.setp(Is::ne, Combine::or_, key[0], before, is_first);
    });
  };
  Reg<U32> bits = from == SegmentFrom::flags ? bits_of_bytes(start_bytes)
                  : wide                     ? bits_of_keys(keys64, edge64)
                                             : bits_of_keys(keys32, edge32);
  bits = b.or_(b.and_(bits, inside), b.and_(end, (1u << segment_items) - 1));
  Reg<U32> differing;
  if (distinct) differing = b.or_(bits, bits_of_bytes(value_bytes));

  // Which run of the tile each start opens.
  Reg<U32> own = b.popc(bits), up_to = warp_sum(b, t, own);
  const BlockSum sum = block_sum(b, t, up_to, segment_warps, shared, segment_sums_at);
  publish_count(b, t, tile, b.cvt<U64>(sum.total), b.ld_param(p_words));
  Reg<U32> first_run = b.add(sum.before, b.sub(up_to, own));

  // Lanes with a start, and the last one of them up to and including this lane.
  Reg<Pred> open = b.setp(Is::ne, bits, 0u);
  Reg<U32> warp_starts = b.ballot(open);
  Reg<U32> below = b.sub(b.shl(b.constant<U32>(1u), t.lane), 1u);
  Reg<Pred> in_warp = b.setp(Is::ne, b.and_(warp_starts, below), 0u);  // a run has begun in the warp before this lane
  Reg<U32> up_to_lane = b.and_(warp_starts, b.or_(below, b.shl(b.constant<U32>(1u), t.lane)));
  Reg<S32> lead = b.max(b.sub(b.constant<S32>(31), Builder::as<S32>(b.clz(up_to_lane))), 0);
  Reg<S32> behind_lead = b.sub(Builder::as<S32>(t.lane), lead);
  Reg<U32> base = b.address_of_32(shared), warp_at = b.mad_lo(t.warp, 4u, base);
  store_if<U32>(b, lane0, Space::shared, At(warp_at, flags_at), warp_starts);

  start_sums(b, shape, flags);
  Reg<U64> before;
  Reg<U32> ghost = b.select<U32>(1u, 0u, b.setp(Is::lt, left, segment_tile));  // the run behind the last place
  for (const Turn& turn : turns) {
    const bool is_first_turn = &turn == &turns[0];
    if (!is_first_turn) {
      if (gather)
        gather_columns(turn);
      else
        load([&] { column_neighbours(turn); }, [&](uint32_t i, Reg<U32> at) { column_place(turn, i, at); });
      b.bar_sync();  // the slots are free
    }
    Registers sums(count), heads(count), carry(count), total(count), both(count);
    const auto for_turn = [&](auto&& f) {
      for (size_t k = turn.begin; k < turn.end; ++k) f(k, shape.accumulators[k]);
    };
    for_turn([&](size_t k, const Accumulator& a) { sums[k] = identity_register(b, a); });
    // Where the slots of run `at` of the tile are, by their bytes.
    struct Slots {
      Reg<U32> two, four, eight;
    };
    const auto slots_of = [&](Reg<U32> at) {
      return Slots{b.mad_lo(at, 2u, base), b.mad_lo(at, 4u, base), b.mad_lo(at, 8u, base)};
    };
    const auto slot_at = [&](const Slots& slots, size_t k) {
      const uint32_t bytes = slot_bytes(shape.accumulators[k]);
      return At(bytes == 4 ? slots.four : slots.eight, turn.slots[k - turn.begin]);
    };
    // A result, or the head of what is none yet, goes to the slot of the run that starts, where `when` holds (not valid: always).
    const auto to_slot = [&]<class T>(Reg<Pred> when, const Slots& slots, size_t k, Reg<T> value) {
      if constexpr (std::same_as<T, S64>)
        if (slot_bytes(shape.accumulators[k]) == 4)
          return store_if<U32>(b, when, Space::shared, slot_at(slots, k), b.cvt<U32>(value));
      store_if<T>(b, when, Space::shared, slot_at(slots, k), value);
    };
    Reg<U32> own_heads = b.mad_lo(t.tid, 8u, base);
    const auto head_at = [&](size_t part) {  // of a sum of floats
      const Accumulator& a = shape.accumulators[part];
      const size_t k = part - a.part + sums::parts - 1;
      return At(own_heads, turn.slots[k - turn.begin] - head_bytes + 8 * int64_t{segment_block} * a.part);
    };

    // A thread's own places. Rounding is long: a branch passes by where nothing starts.
    Slots slots = slots_of(first_run);
    for (uint32_t i = 0; i < segment_items; ++i) {
      Reg<Pred> starts = b.setp(Is::ne, b.and_(bits, 1u << i), 0u), has_begun;  // has_begun: a run has, in this thread
      const Reg<Pred> when = turn.rounds ? Reg<Pred>() : starts;
      const LabelId skip = turn.rounds ? b.label() : LabelId{};
      if (turn.rounds) {
        b.unless(starts).bra(skip);
        if (i > 0) has_begun = b.setp(Is::ne, b.and_(bits, (1u << i) - 1), 0u);
      }
      if (turn.has_first) {
        if (gather)
          store_if<U32>(b, when, Space::shared, At(slots.four, turn.first), rows[i]);
        else
          store_if<U16>(b, when, Space::shared, At(slots.two, turn.first), b.cvt<U16>(b.add(within, i)));
      }
      for_turn([&](size_t k, const Accumulator& a) {
        if (a.sums_floats()) {
          if (has_begun.valid()) b.unless(has_begun);
          b.st<F64>(Space::shared, head_at(k), Reg<F64>{sums[k]});
        }
        if (!a.sums_floats() || i > 0)
          with_result(b, shape, k, sums, flags, has_begun,
                      [&]<class T>(size_t, Reg<T> value) { to_slot(when, slots, k, value); });
        for_parts(shape, k, [&]<class T>(size_t part) {
          if (i > 0) b.when(when).constant<T>(identity_of<T>(a.op), Reg<T>{sums[part]});
        });
      });
      b.when(when).add(slots.two, 2u, slots.two);
      b.when(when).add(slots.four, 4u, slots.four);
      b.when(when).add(slots.eight, 8u, slots.eight);
      if (turn.rounds) b.bind(skip);
      for_turn([&](size_t k, const Accumulator& a) {
        if (a.sums_floats()) {
          if (!a.completes()) return;
          const size_t first = k - a.part;
          const sums::ExactSum sum = sum_with(b, shape.accumulators[first], sum_of(sums, first), elements[i], flags);
          sums[first] = sum.high.id, sums[first + 1] = sum.low.id, sums[k] = sum.error.id;
        } else if (a.op == Accumulator::distinct) {
          b.when(b.setp(Is::ne, b.and_(differing, 1u << i), 0u)).add(Reg<S64>{sums[k]}, 1, Reg<S64>{sums[k]});
        } else if (a.op == Accumulator::row) {
          b.min(Reg<S64>{sums[k]}, Builder::as<S64>(b.cvt<U64>(rows[i])), Reg<S64>{sums[k]});
        } else {
          accumulate(b, a, sums[k], elements[i], Reg<Pred>());
        }
      });
    }

    // Lanes: what the run that is open behind a lane's last place has gathered since its start, or since the warp's first place.
    const LabelId scanned = b.label();
    for (int32_t distance = 1; distance < 32; distance *= 2) {
      Reg<Pred> joins = b.setp(Is::ge, behind_lead, distance);
      b.unless(b.vote(VoteMode::any, joins)).bra_uni(scanned);
      for_turn([&](size_t k, const Accumulator& a) {
        with_held(a.held, [&]<class T>() { total[k] = shuffle(b, ShuffleMode::up, Reg<T>{sums[k]}, distance, 0u).id; });
        combine(b, shape, k, total, sums, sums, joins);
      });
    }
    b.bind(scanned);
    // Warps: back to one in which a run begins.
    Reg<U32> totals = b.mad_lo(t.warp, 8u, base);
    const auto total_at = [&](size_t k) {
      return totals_at + 8 * int64_t{segment_warps} * static_cast<int64_t>(k - turn.begin);
    };
    Reg<Pred> lane31 = b.setp(Is::eq, t.lane, 31u);
    for_turn([&](size_t k, const Accumulator& a) {
      with_held(a.held,
                [&]<class T>() { store_if<T>(b, lane31, Space::shared, At(totals, total_at(k)), Reg<T>{sums[k]}); });
    });
    b.bar_sync();
    for_turn([&](size_t k, const Accumulator& a) { carry[k] = identity_register(b, a); });
    Reg<U32> warp = b.mov(t.warp), starts_there = b.constant<U32>(0u), flag_at = b.mov(warp_at),
             earlier_at = b.mov(totals);
    const LabelId back = b.label(), carried = b.label();
    b.bind(back);
    b.when(b.setp(Is::eq, warp, 0u)).bra_uni(carried);
    b.ld<U32>(Space::shared, At(flag_at, flags_at - 4), starts_there);
    for_turn([&](size_t k, const Accumulator& a) {
      with_held(a.held, [&]<class T>() { total[k] = b.ld<T>(Space::shared, At(earlier_at, total_at(k) - 8)).id; });
      combine(b, shape, k, total, carry, carry);
    });
    b.sub(warp, 1u, warp);
    b.sub(flag_at, 4u, flag_at);
    b.sub(earlier_at, 8u, earlier_at);
    b.when(b.setp(Is::eq, starts_there, 0u)).bra_uni(back);
    b.bind(carried);
    Reg<Pred> in_tile =
        b.or_(in_warp, b.setp(Is::ne, starts_there, 0u));  // a run has begun in the tile before this thread

    // The run that is open at the thread's first place: what it has gathered in the tile. In the warp: lanes before this one; those before the warp's
    // first start lack the warps before it.
    Reg<Pred> ends_run = b.and_(open, in_tile), ends_tile = b.and_(open, b.not_(in_tile));
    for_turn([&](size_t k, const Accumulator& a) {
      with_held(a.held, [&]<class T>() {
        total[k] = shuffle(b, ShuffleMode::up, Reg<T>{sums[k]}, 1u, 0u).id;
        b.when(lane0).mov(Reg<T>{carry[k]}, Reg<T>{total[k]});
      });
    });
    const LabelId complete = b.label();
    b.when(b.setp(Is::ne, b.and_(warp_starts, 1u), 0u)).bra_uni(complete);
    Reg<Pred> lacks = b.and_(b.not_(in_warp), b.not_(lane0));
    for_turn([&](size_t k, const Accumulator&) { combine(b, shape, k, carry, total, total, lacks); });
    b.bind(complete);
    const Slots first_slots = slots_of(first_run);
    for_turn([&](size_t k, const Accumulator& a) {
      with_held(a.held, [&]<class T>() {
        Reg<T> head = b.constant<T>(identity_of<T>(a.op));
        heads[k] = head.id;
        if constexpr (std::same_as<T, S64>)
          if (slot_bytes(a) == 4) {
            Reg<U32> narrow = b.constant<U32>(0u);
            load_if<U32>(b, open, Space::shared, slot_at(first_slots, k), narrow);
            b.mov(Builder::as<S64>(b.cvt<U64>(narrow)), head);
            return;
          }
        load_if<T>(b, open, Space::shared, a.sums_floats() ? head_at(k) : slot_at(first_slots, k), head);
      });
      combine(b, shape, k, total, heads, heads);
      with_result(b, shape, k, heads, flags, ends_run,
                  [&]<class T>(size_t, Reg<T> value) { to_slot(ends_run, first_slots, k, value); });
      for_parts(shape, k, [&]<class T>(size_t part) {
        store_if<T>(b, ends_tile, Space::global, element_at(b, b.ld_param(p_heads[part]), tile, T::size),
                    Reg<T>{heads[part]});
      });
    });
    const LabelId no_tail = b.label();
    Reg<Pred> in_last_warp = b.setp(Is::ne, warp_starts, 0u);
    b.when(b.setp(Is::ne, t.warp, segment_warps - 1)).bra_uni(no_tail);
    for_turn([&](size_t k, const Accumulator&) {
      combine_anew(b, shape, k, carry, sums, both);
      for_parts(shape, k, [&]<class T>(size_t part) {
        b.selp(Reg<T>{sums[part]}, Reg<T>{both[part]}, in_last_warp, Reg<T>{both[part]});
        store_if<T>(b, lane31, Space::global, element_at(b, b.ld_param(p_tails[part]), tile, T::size),
                    Reg<T>{both[part]});
      });
    });
    b.bind(no_tail);

    // The block's slots. The last run has no result yet; one behind the last place is none.
    if (is_first_turn)
      before = sum_before(b, t, tile, b.cvt<U64>(sum.total), b.ld_param(p_words), At(shared, segment_before_at));
    else
      b.bar_sync();
    Reg<U32> slot = b.mov(t.tid), number = b.add(b.cvt<U32>(before), t.tid), first_runs = b.sub(sum.total, ghost);
    const LabelId next = b.label(), stored = b.label();
    b.bind(next);
    b.when(b.setp(Is::ge, slot, sum.total)).bra(stored);
    if (turn.has_first) {
      Reg<U64> row;
      if (gather)
        row = b.cvt<U64>(b.ld<U32>(Space::shared, At(b.mad_lo(slot, 4u, base), turn.first)));
      else
        row = b.cvt<U64>(b.add(start, b.cvt<U32>(b.ld<U16>(Space::shared, At(b.mad_lo(slot, 2u, base), turn.first)))));
      const At to = element_at(b, b.ld_param(p_first), number, 8);
      store_if<U64>(b, b.setp(Is::lt, slot, first_runs), Space::global, to, row);
    }
    b.add(slot, 1u, slot);  // the run ends with the start of the next one
    b.when(b.setp(Is::ge, slot, sum.total)).bra(stored);
    for_turn([&](size_t k, const Accumulator& a) {
      if (!a.completes()) return;
      const At from_slot(b.mad_lo(slot, slot_bytes(a), base), turn.slots[k - turn.begin]);
      const size_t result = k - a.part;
      with_held(a.held, [&]<class T>() {
        const At to = element_at(b, b.ld_param(p_out[result]), number, T::size);
        if constexpr (std::same_as<T, S64>)
          if (slot_bytes(a) == 4) return b.st<U64>(Space::global, to, b.cvt<U64>(b.ld<U32>(Space::shared, from_slot)));
        b.st<T>(Space::global, to, b.ld<T>(Space::shared, from_slot));
      });
    });
    b.add(slot, segment_block - 1, slot);
    b.add(number, segment_block, number);
    b.bra(next);
    b.bind(stored);
  }
  report_sums(b, flags);
  Reg<Pred> is_end = b.setp(Is::eq, b.add(tile, 1u), b.cvt<U32>(b.ld_param(p_tiles)));
  tell(b, answer, 0, b.setp(Is::eq, Combine::and_, t.tid, 0u, is_end), b.add(before, b.cvt<U64>(b.sub(sum.total, ghost))));
  b.ret();
  b.finish();
  return segment_block;
}

// Warp w: the run that ends in tile w + 1, or with the last tile where that is full.
uint32_t build_boundaries(ptx::Module& module, std::string_view name, const AggregateShape& shape) {
  KernelBuilder b(module, name);
  const size_t count = shape.accumulators.size();
  Param p_tiles = b.parameter<U64>("tiles"), p_boundaries = b.parameter<U64>("boundaries"),
        p_words = b.parameter<U64>("words");
  const std::vector<Param> p_out = parameters(b, "out", count), p_heads = parameters(b, "heads", count),
                           p_tails = parameters(b, "tails", count);
  const SumFlags flags = sum_flags(b, shape);
  b.set_block_size(segment_block);
  const Thread t = thread_of(b);
  Reg<U32> tiles = b.cvt<U32>(b.ld_param(p_tiles));
  Reg<U64> words = b.ld_param(p_words);
  Reg<U32> before = b.mad_lo(b.special(SpecialRegister::ctaid_x), segment_warps, t.warp);  // the last tile before the boundary
  const LabelId done = b.label(), window = b.label();
  b.when(b.setp(Is::ge, before, b.cvt<U32>(b.ld_param(p_boundaries)))).bra_uni(done);
  // Runs up to and including a tile.
  const auto runs = [&](Reg<U32> tile) {
    return b.cvt<U32>(b.shr(b.ld<U64>(Space::global, element_at(b, words, tile, 8)), 2u));
  };
  Reg<U32> ended = runs(before);
  Reg<U32> tile = b.add(before, 1u);
  Reg<Pred> at_end = b.setp(Is::eq, tile, tiles);
  Reg<U32> here = b.min(tile, b.sub(tiles, 1u));
  Reg<Pred> nothing = b.setp(Is::eq, runs(here), ended);  // no run begins in the tile
  b.when(b.and_(nothing, b.not_(at_end))).bra_uni(done);

  Registers sums, window_sums(count);
  for (size_t k = 0; k < count; ++k) {
    const Accumulator& a = shape.accumulators[k];
    sums.push_back(identity_register(b, a));
    with_held(a.held, [&]<class T>() {
      load_if<T>(b, !at_end, Space::global, element_at(b, b.ld_param(p_heads[k]), here, T::size), Reg<T>{sums[k]});
    });
  }
  // 32 tiles at a time, back to the one in which the run began.
  Reg<S32> at = b.sub(Builder::as<S32>(before), Builder::as<S32>(t.lane));
  b.bind(window);
  Reg<Pred> exists = b.setp(Is::ge, at, 0);
  Reg<U32> mine = Builder::as<U32>(b.max(at, 0));
  Reg<U32> previous = b.sub(b.max(mine, 1u), 1u);
  Reg<U32> up_to = runs(mine), up_to_previous = runs(previous);
  // The first tile begins with a run.
  Reg<Pred> begins = b.or_(b.setp(Is::ne, up_to, up_to_previous), b.setp(Is::eq, mine, 0u));
  Reg<U32> votes = b.ballot(begins);
  Reg<U32> nearest = b.clz(b.brev(votes));  // 32: none
  Reg<Pred> counts = b.setp(Is::le, Combine::and_, t.lane, nearest, exists);
  for (size_t k = 0; k < count; ++k) {
    const Accumulator& a = shape.accumulators[k];
    with_held(a.held, [&]<class T>() {
      Reg<T> x = b.constant<T>(identity_of<T>(a.op));
      load_if<T>(b, counts, Space::global, element_at(b, b.ld_param(p_tails[k]), mine, T::size), x);
      window_sums[k] = x.id;
    });
  }
  const LabelId together = b.label();
  b.when(b.setp(Is::eq, nearest, 0u)).bra_uni(together);  // the run began in lane 0's tile
  for (size_t k = 0; k < count; ++k) combine_warp(b, shape, k, window_sums);
  b.bind(together);
  for (size_t k = 0; k < count; ++k) combine(b, shape, k, window_sums, sums, sums);
  b.sub(at, 32, at);
  b.when(b.setp(Is::eq, votes, 0u)).bra_uni(window);
  Reg<Pred> lane0 = b.setp(Is::eq, t.lane, 0u);
  for (size_t k = 0; k < count; ++k)
    with_result(b, shape, k, sums, flags, lane0, [&]<class T>(size_t first, Reg<T> x) {
      store_if<T>(b, lane0, Space::global,
                  At(element_address(b, b.ld_param(p_out[first]), ended, T::size), -int64_t{T::size}), x);
    });
  b.bind(done);
  b.ret();
  b.finish();
  return segment_block;
}

uint32_t build_cells(ptx::Module& module, std::string_view name, const AggregateShape& shape) {
  KernelBuilder b(module, name);
  const size_t count = shape.accumulators.size();
  Param p_cells = b.parameter<U64>("cells"), p_offsets = b.parameter<U64>("offsets"), p_rows = b.parameter<U64>("rows");
  const std::vector<Param> p_columns = parameters(b, "column", shape.columns.size()),
                           p_out = parameters(b, "out", count);
  SumFlags flags = sum_flags(b, shape);
  b.set_block_size(segment_block);
  const Thread t = thread_of(b);
  start_sums(b, shape, flags);
  Reg<U32> cells = b.cvt<U32>(b.ld_param(p_cells));
  Reg<U32> cell = b.mad_lo(b.special(SpecialRegister::ctaid_x), segment_warps, t.warp);
  Reg<U32> step = b.mul_lo(b.special(SpecialRegister::nctaid_x), segment_warps);
  Reg<U64> offsets = b.ld_param(p_offsets), rows = b.ld_param(p_rows);
  const std::vector<Reg<U64>> columns = load_all(b, p_columns), out = load_all(b, p_out);
  Reg<Pred> lane0 = b.setp(Is::eq, t.lane, 0u);
  const LabelId next_cell = b.label(), done = b.label(), next_row = b.label(), end_of_cell = b.label();
  b.bind(next_cell);
  b.when(b.setp(Is::ge, cell, cells)).bra_uni(done);
  const At bounds = element_at(b, offsets, cell, 8);
  Reg<U32> place = b.add(b.ld<U32>(Space::global, bounds), t.lane);  // the low halves
  Reg<U32> end = b.ld<U32>(Space::global, bounds.plus(8));
  Registers sums;
  for (const Accumulator& a : shape.accumulators) sums.push_back(identity_register(b, a));
  b.bind(next_row);
  b.when(b.setp(Is::ge, place, end)).bra(end_of_cell);
  Reg<U32> row = b.ld<U32>(Space::global, element_at(b, rows, place, 8));
  const std::vector<Element> elements = load_elements(b, shape, columns, row);
  Reg<Pred> always = b.constant<Pred>(true);
  for (size_t k = 0; k < count; ++k) 
    accumulate(b, shape, k, sums, elements, flags, shape.accumulators[k].sums_floats() ? Reg<Pred>() : always);
  b.add(place, 32u, place);
  b.bra(next_row);
  b.bind(end_of_cell);
  b.bar_warp_sync();
  for (size_t k = 0; k < count; ++k) {
    combine_warp(b, shape, k, sums);
    with_result(b, shape, k, sums, flags, lane0, [&]<class T>(size_t first, Reg<T> x) {
      store_if<T>(b, lane0, Space::global, element_at(b, out[first], cell, T::size), x);
    });
  }
  b.add(cell, step, cell);
  b.bra(next_cell);
  b.bind(done);
  report_sums(b, flags);
  b.ret();
  b.finish();
  return segment_block;
}

Library::Row segments_kernel(SegmentFrom from, bool gather, const AggregateShape& shape) {
  return {fmt::format("segments_{}{}{}", static_cast<int>(from), gather ? "_gather" : "", shape.name()),
          [from, gather, shape](ptx::Module& m, std::string_view entry) {
            return build_segments(m, entry, from, gather, shape);
          }};
}
Library::Row boundaries_kernel(const AggregateShape& shape) {
  return {"boundaries" + shape.name(),
          [shape](ptx::Module& m, std::string_view entry) { return build_boundaries(m, entry, shape); }};
}
Library::Row cells_kernel(const AggregateShape& shape) {
  return {"cells" + shape.name(),
          [shape](ptx::Module& m, std::string_view entry) { return build_cells(m, entry, shape); }};
}

uint64_t segment_bytes_of(const AggregateShape& shape) {
  uint64_t bytes = 0;
  for (Type type : shape.columns) bytes += width(type);
  return bytes;
}

}  // namespace

// One figure of groups, or both bounds, of integers as columns hold them.
void add_aggregates(KernelRows& rows) {
  constexpr auto add = Accumulator::add, min = Accumulator::min, max = Accumulator::max;
  const AggregateShape count{{}, {{Accumulator::count, Held::s64, 0}}};
  rows.push_back(cells_kernel(count));
  for (const auto& [type, held] :
       {std::pair(Type::i8, Held::s32), {Type::i16, Held::s32}, {Type::i32, Held::s32}, {Type::i64, Held::s64}}) {
    const AggregateShape sum{{type}, {{add, Held::s64, 0}}};
    rows.push_back(cells_kernel(sum));
    rows.push_back(cells_kernel({{type}, {{min, held, 0}}}));
    rows.push_back(cells_kernel({{type}, {{max, held, 0}}}));
    rows.push_back(cells_kernel({{type}, {{min, held, 0}, {max, held, 0}}}));
    if (width(type) < 4) continue;
    for (const AggregateShape& shape : {sum, AggregateShape{{type}, {{min, held, 0}, {max, held, 0}}}}) {
      for (bool gather : {false, true}) rows.push_back(segments_kernel(SegmentFrom::keys32, gather, shape));
      rows.push_back(boundaries_kernel(shape));
    }
  }
  for (bool gather : {false, true}) rows.push_back(segments_kernel(SegmentFrom::keys32, gather, count));
  for (SegmentFrom from : {SegmentFrom::keys64, SegmentFrom::flags}) rows.push_back(segments_kernel(from, true, count));
  rows.push_back(boundaries_kernel(count));
}

uint64_t segment_words(uint64_t n) { return (n + segment_tile - 1) / segment_tile; }

Result<uint64_t> reduce_runs(Library& library, const AggregateInput& input, const Sorted& sorted,
                             Address flags, uint64_t n, Address first,
                             std::span<const Address> accumulators, Memory& memory, const Part* value) {
  const AggregateShape& shape = input.shape;
  const SegmentFrom from = flags ? SegmentFrom::flags : sorted.wide ? SegmentFrom::keys64 : SegmentFrom::keys32;
  const Address keys = flags ? flags : sorted.keys;
  Address values = 0;
  if (value) {
    ASSIGN_OR_RETURN(values, differing_rows(library, sorted, {value, 1}, n, memory));
  }
  const bool gather = sorted.rows != 0;
  const uint64_t tiles = segment_words(n), boundaries = n % segment_tile ? tiles - 1 : tiles;
  std::vector<Address> heads, tails;
  for (const Accumulator& a : shape.accumulators) {
    ASSIGN_OR_RETURN(Address at, memory.temporary(2 * tiles * width(a.held)));
    heads.push_back(at);
    tails.push_back(at + tiles * width(a.held));
  }
  ASSIGN_OR_RETURN(const Question question, library.ask("segments", 1, memory));
  ASSIGN_OR_RETURN(Address zeroed, library.zeroed());
  ASSIGN_OR_RETURN(const Kernel* segments, library.kernel(segments_kernel(from, gather, shape)));
  Address aligned = keys | sorted.rows | values;  // for vectors of 16 bytes
  if (!gather)
    for (Address column : input.columns) aligned |= column;
  Arguments a;
  a.add(n)
      .add(tiles)
      .add(aligned % 16 ? 0 : n / segment_tile)
      .add(keys)
      .add(sorted.rows)
      .add(first)
      .add(sorted.words)
      .add(zeroed + segment_ticket_at);
  a.add(values);
  add(a, question, 0, 1);
  for (Address column : input.columns) a.add(column);
  for (Address out : accumulators) a.add(out);
  for (Address at : heads) a.add(at);
  for (Address at : tails) a.add(at);
  if (shape.sums_floats()) a.add(input.sum_flags);
  const uint64_t key_bytes = from == SegmentFrom::flags ? 1 : from == SegmentFrom::keys64 ? 8 : 4;
  RETURN_IF_ERROR(
      library.launch(*segments, static_cast<uint32_t>(tiles), a, n * (key_bytes + (gather ? 8 : 0) + segment_bytes_of(shape))));
  if (!accumulators.empty() && boundaries > 0) {
    ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel(boundaries_kernel(shape)));
    Arguments c;
    c.add(tiles).add(boundaries).add(sorted.words);
    for (Address out : accumulators) c.add(out);
    for (Address at : heads) c.add(at);
    for (Address at : tails) c.add(at);
    if (shape.sums_floats()) c.add(input.sum_flags);
    RETURN_IF_ERROR(library.launch(*kernel, static_cast<uint32_t>((boundaries + segment_warps - 1) / segment_warps), c,
                                   boundaries * 24 * accumulators.size()));
  }
  ASSIGN_OR_RETURN(const uint64_t* runs, library.learn(question, memory));
  return *runs;
}

Result<void> reduce_cells(Library& library, const AggregateInput& input, uint64_t cells, Address offsets, Address rows,
                          std::span<const Address> accumulators) {
  if (cells == 0 || accumulators.empty()) return {};
  ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel(cells_kernel(input.shape)));
  Arguments a;
  a.add(cells).add(offsets).add(rows);
  for (Address column : input.columns) a.add(column);
  for (Address out : accumulators) a.add(out);
  if (input.shape.sums_floats()) a.add(input.sum_flags);
  return library.launch(*kernel, library.grid(*kernel, (cells + segment_warps - 1) / segment_warps), a, cells * 16);
}

}  // namespace rndn::operators
