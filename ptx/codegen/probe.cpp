// GPU.probe: the first row of a table with an item's key, or -1; with a mask, -1 also where that row's is 0.
//
// The table is filled before the launch (libraries/operators/joins/join_table.cpp); ptx/lookup says what it is like. Which form
// it has the code is for (KernelEncodings), or it is known at the launch, so that it is a uniform branch; its words are parameters, which take no registers. The items
// that are looked up side by side send their first loads together; a warp waits once for all of them. Keys are made in 64 bits,
// or in 32 where a key is one column of at most 32 bits on both sides.
// Where the rows of the table were selected, a filter may stand in front of it (its control memory says so, a uniform branch): only keys that have a
// bit there are looked up. It is small enough for the first caches, which answer some six times as fast as the second, where the table
// mostly is not even there (docs/measurements/limits.tsv).
// Cost: one access of 4 or 8 bytes per item where no other key is in the way, none where keys ascend by one; one more per column for
// keys beyond 32 bits, one of the mask, and one of the filter.
// Leaves out: keys of up to three columns beyond 64 bits, for which no table is made.
#include <algorithm>

#include "libraries/base/errors/check.h"
#include "ptx/codegen/emitter.h"
#include "ptx/lookup/lookup.h"

namespace rndn::codegen {

using ptx::Combine;
using ptx::Compare;
using ptx::LabelId;

namespace {

struct Key {
  std::vector<Reg<S64>> elements;  // of the columns; none: the key is narrow
  Reg<U64> value;
  Reg<U32> narrow;  // what there is of the key when both sides have at most 32 bits
  Reg<Pred> valid;
};

bool is_narrow(const Emitter& e, const Lookup& lookup, const ProbeItem& item) {
  const auto fits = [](BasicType t) { return !hir::is_text(t) && rep_of(t) == Rep::s32; };
  return lookup.columns.size() == 1 && fits(e.type_of(lookup.columns[0])) && fits(item.key[0].type);
}

Key make_key(Emitter& e, const Lookup& lookup, const ProbeItem& item) {
  Builder& b = e.b;
  Key key;
  if (is_narrow(e, lookup, item)) {  // what is less than the least number wraps around, and beyond the span
    const auto word = [&](uint32_t w) { return b.cvt<U32>(b.ld_param(lookup.words[lookup::columns + w])); };
    key.narrow = b.sub(Builder::as<U32>(reg<S32>(in_register(e, item.key[0]))), word(lookup::least));
    key.valid = item.wanted.valid() ? b.setp(Compare::le, Combine::and_, key.narrow, word(lookup::span), item.wanted)
                                    : b.setp(Compare::le, key.narrow, word(lookup::span));
    return key;
  }
  for (size_t c = 0; c < lookup.columns.size(); ++c) {
    const auto word = [&](uint32_t w) { return b.ld_param(lookup.words[lookup::columns + lookup::per_column * c + w]); };
    key.elements.push_back(reg<S64>(in_register(e, convert(e, item.key[c], BasicType::i64))));
    Reg<U64> part = b.sub(Builder::as<U64>(key.elements[c]), word(lookup::least));
    const Reg<Pred> before = c == 0 ? item.wanted : key.valid;
    key.valid = before.valid() ? b.setp(Compare::le, Combine::and_, part, word(lookup::span), before)
                               : b.setp(Compare::le, part, word(lookup::span));
    if (lookup.is_hashed())
      key.value = lookup::mix(b, key.value, part);
    else
      key.value = c == 0 ? part : b.or_(key.value, b.shl(part, b.cvt<U32>(word(lookup::shift))));
  }
  return key;
}

// same = the left side's row has the key's elements
Reg<Pred> same_elements(Emitter& e, const Lookup& lookup, Reg<U32> row, const Key& key) {
  Builder& b = e.b;
  Reg<Pred> same;
  for (size_t c = 0; c < lookup.columns.size(); ++c) {
    const BasicType type = e.type_of(lookup.columns[c]);
    const Element x = load_where(e, type, lookup.stored[c], b.ld_param(lookup.data[c]), row, {});
    Reg<S64> element = reg<S64>(in_register(e, convert(e, x, BasicType::i64)));
    same = same.valid() ? b.setp(Compare::eq, Combine::and_, element, key.elements[c], same)
                        : b.setp(Compare::eq, element, key.elements[c]);
  }
  return same;
}

Reg<U32> number_of(Builder& b, const Key& key) { return key.narrow.valid() ? key.narrow : b.cvt<U32>(key.value); }

// Leaves of the keys those that have a bit in the filter. bit_of: its place, computed twice rather than kept in a register.
template <class Bit>
void ask_filter(Emitter& e, const Lookup& lookup, const std::vector<Key>& keys, const Bit& bit_of) {
  Builder& b = e.b;
  const LabelId open = b.label();
  b.when(b.setp(Compare::eq, lookup.shift, lookup::no_filter)).bra_uni(open);
  Reg<U64> control = b.ld_param(lookup.words[lookup::control]);
  std::vector<Reg<U32>> found;
  found.reserve(keys.size());
  for (size_t k = 0; k < keys.size(); ++k) {
    found.push_back(b.constant<U32>(0));
    const Address at(b.mad_wide(b.shr(bit_of(k), 5), 4u, control), lookup::filter_words);
    b.when(keys[k].valid).ld<U32>(Space::global, ptx::Access{.cache = ptx::Cache::nc}, at, found[k]);
  }
  for (size_t k = 0; k < keys.size(); ++k) {
    Reg<U32> bit = b.and_(b.funnel_right(found[k], found[k], bit_of(k)), 1);
    b.setp(Compare::ne, Combine::and_, bit, 0, keys[k].valid, keys[k].valid);
  }
  b.bind(open);
}

Reg<Pred> load_mask(Emitter& e, const Lookup& lookup, Reg<U32> row, Reg<Pred> there) {
  return reg<Pred>(in_register(
      e, load_where(e, BasicType::boolean, lookup.mask_stored, e.b.ld_param(lookup.mask_data), row, there)));
}

// In a table without slots, or a direct one, which the code is for. Rows have 32 bits, -1 among them.
std::vector<Element> look_up_known(Emitter& e, const Lookup& lookup, std::span<const ProbeItem> items,
                                   const std::vector<Key>& keys) {
  Builder& b = e.b;
  std::vector<Reg<U32>> rows;
  std::vector<Reg<Pred>> there;
  rows.reserve(keys.size());
  there.reserve(keys.size());
  for (const Key& key : keys) {
    rows.push_back(number_of(b, key));
    there.push_back(key.valid);
  }
  if (lookup.known == 1 + lookup::direct) {
    Reg<U64> slots = b.ld_param(lookup.words[lookup::slots]);
    for (size_t k = 0; k < keys.size(); ++k) {
      const Address at(b.mad_wide(rows[k], 4u, slots));
      rows[k] = b.constant<U32>(0);
      b.when(there[k]).ld<U32>(Space::global, at, rows[k]);
    }
    for (size_t k = 0; k < keys.size(); ++k) {
      there[k] = b.setp(Compare::ne, rows[k], 0);
      rows[k] = b.not_(rows[k]);
    }
  }
  if (lookup.mask)
    for (size_t k = 0; k < keys.size(); ++k) there[k] = load_mask(e, lookup, rows[k], there[k]);
  std::vector<Element> out;
  out.reserve(keys.size());
  for (size_t k = 0; k < keys.size(); ++k) {
    const Reg<S32> row = Builder::as<S32>(b.selp<U32>(rows[k], ~0u, there[k]));
    out.push_back(element(BasicType::i64, b.cvt<S64>(row), items[k].mask));
    out.back().low = row;
  }
  return out;
}

}  // namespace

void Lookup::load(Builder& b) {
  if (known) return;
  count = b.constant<U32>(0);
  const Address slots_in_use(b.ld_param(words[lookup::control]), lookup::control_slots);
  b.when(b.setp(Compare::ne, b.ld_param(words[lookup::form]), uint64_t{lookup::ascending}))
      .ld<U32>(Space::global, slots_in_use, count);
  if (filtered) shift = b.ld<U32>(Space::global, Address(b.ld_param(words[lookup::control]), lookup::control_shift));
}

std::vector<Element> look_up(Emitter& e, const Lookup& lookup, std::span<const ProbeItem> items) {
  Builder& b = e.b;
  std::vector<Key> keys;
  for (const ProbeItem& item : items) keys.push_back(make_key(e, lookup, item));
  if (lookup.known) return look_up_known(e, lookup, items, keys);
  std::vector<Reg<U32>> marks;  // ~row, or 0
  for (size_t k = 0; k < keys.size(); ++k) marks.push_back(b.constant<U32>(0));
  const LabelId hashed = b.label(), done = b.label();
  Reg<U64> slots = b.mov(b.ld_param(lookup.words[lookup::slots])), form;
  if (!lookup.is_hashed()) {
    const LabelId tables = b.label();
    form = b.mov(b.ld_param(lookup.words[lookup::form]));
    b.when(b.setp(Compare::ne, form, uint64_t{lookup::ascending})).bra_uni(tables);
    for (size_t k = 0; k < keys.size(); ++k)
      b.selp<U32>(b.not_(number_of(b, keys[k])), 0u, keys[k].valid, marks[k]);
    b.bra_uni(done);
    b.bind(tables);
    b.when(b.setp(Compare::ne, form, uint64_t{lookup::direct})).bra_uni(hashed);
    if (lookup.filtered)
      ask_filter(e, lookup, keys, [&](size_t k) { return lookup::filter_bit_of_key(b, number_of(b, keys[k]), lookup.shift); });
    for (size_t k = 0; k < keys.size(); ++k) {
      const Address at(b.mad_wide(number_of(b, keys[k]), 4u, slots));
      b.when(keys[k].valid).ld<U32>(Space::global, at, marks[k]);
    }
    b.bra_uni(done);
  }
  b.bind(hashed);
  std::vector<Reg<U32>> hashes, places, tags;
  std::vector<Reg<U64>> found;
  hashes.reserve(keys.size());
  places.reserve(keys.size());
  tags.reserve(keys.size());
  found.reserve(keys.size());
  for (const Key& key : keys)
    hashes.push_back(key.narrow.valid() ? lookup::hash(b, key.narrow) : lookup::hash(b, key.value));
  if (lookup.filtered)
    ask_filter(e, lookup, keys, [&](size_t k) { return lookup::filter_bit_of_hash(b, hashes[k], lookup.shift); });
  for (size_t k = 0; k < keys.size(); ++k) {
    const Key& key = keys[k];
    const bool narrow = key.narrow.valid();
    places.push_back(lookup::place_of(b, hashes[k], lookup.count));
    tags.push_back(narrow ? key.narrow : lookup::tag(b, key.value));
    found.push_back(b.constant<U64>(0));
    const Address at(b.mad_wide(places.back(), 8u, slots));
    b.when(key.valid).ld<U64>(Space::global, at, found.back());
  }
  for (size_t k = 0; k < keys.size(); ++k) {
    const LabelId again = b.label(), other = b.label(), ends = b.label();
    b.bind(again);
    b.when(b.setp(Compare::eq, found[k], 0)).bra(ends);
    auto [mark, its_tag] = b.unpack(found[k]);
    b.when(b.setp(Compare::ne, its_tag, tags[k])).bra(other);
    if (keys[k].narrow.valid()) {  // its own tag
      b.bra(ends);
    } else {
      if (form.valid()) b.when(b.setp(Compare::eq, form, uint64_t{lookup::exact})).bra(ends);
      b.when(same_elements(e, lookup, b.not_(mark), keys[k])).bra(ends);
    }
    b.bind(other);
    lookup::next_place(b, places[k], lookup.count);
    const Address at(b.mad_wide(places[k], 8u, slots));
    b.ld<U64>(Space::global, at, found[k]);
    b.bra(again);
    b.bind(ends);
    b.cvt<U32>(found[k], marks[k]);
  }
  b.bind(done);
  std::vector<Reg<Pred>> there;
  there.reserve(keys.size());
  for (size_t k = 0; k < keys.size(); ++k) there.push_back(b.setp(Compare::ne, marks[k], 0));
  if (lookup.mask)
    for (size_t k = 0; k < keys.size(); ++k) there[k] = load_mask(e, lookup, b.not_(marks[k]), there[k]);
  std::vector<Element> rows;
  rows.reserve(keys.size());
  for (size_t k = 0; k < keys.size(); ++k) {
    Reg<S64> row = Builder::as<S64>(b.cvt<U64>(b.not_(marks[k])));
    rows.push_back(element(BasicType::i64, b.selp(row, -1, there[k]), items[k].mask));
  }
  return rows;
}

ProbeItem probe_item(Emitter& e, const Step& step) {
  ProbeItem item;
  for (size_t k = step.operands.size() / 2 + 1; k < step.operands.size(); ++k) {
    item.key.push_back(operand_element(e, step.operands[k]));
    item.mask = both(e, item.mask, item.key.back().mask);
  }
  item.wanted = both(e, active(e, item.mask), guard_of(e, step.id));
  return item;
}

const Lookup& lookup_of(const Emitter& e, const Step& step) {
  for (const Lookup& l : e.lookups)
    if (l.step == step.id) return l;
  CHECK(false, "a probe without a table");
}

void plan_lookup(Emitter& e, const Step& step) {
  Lookup lookup{.step = step.id};
  KernelCode::Lookup code;
  const auto& parameters = e.function.parameters;
  const size_t columns = (step.operands.size() - 1) / 2;
  for (size_t k = 1; k <= step.operands.size() / 2; ++k) {
    const hir::VariableId v = step.operands[k].variable_id();
    const auto at = std::find(parameters.begin(), parameters.end(), v);
    if (at == parameters.end()) return refuse(e, "a look-up in what the kernel makes", step.id);
    if (k > columns) {
      lookup.mask = v;
      lookup.mask_stored = e.stored(v);
      code.masked = true;
      break;
    }
    lookup.columns.push_back(v);
    lookup.stored.push_back(e.stored(v));
    code.columns.push_back(static_cast<uint32_t>(at - parameters.begin()));
  }
  const auto* number = std::get_if<std::vector<int64_t>>(&e.program.literals[step.operands[0].literal_id()].values);
  if (number && number->front() != -1) {
    code.once = number->front() >= 0;
    code.join = code.once ? number->front() : -2 - number->front();
  }
  if (e.lookups.size() < e.encodings.lookups.size()) lookup.known = e.encodings.lookups[e.lookups.size()];
  lookup.filtered = lookup.known == KernelEncodings::filtered;
  if (lookup.filtered) lookup.known = 0;
  e.lookups.push_back(std::move(lookup));
  e.code.lookups.push_back(std::move(code));
}

// Each parameter that is read at the rows has no other reader: then it may be given in another order, with the rows.
void plan_fields(Emitter& e) {
  if (e.kernel.list) return;
  const auto& parameters = e.function.parameters;
  const auto is_result = [&](hir::VariableId v) {
    return std::any_of(e.outputs.begin(), e.outputs.end(), [&](const Output& out) { return out.variable == v; });
  };
  const auto is = [](const hir::Operand& o, hir::VariableId v) {
    return o.kind == hir::Operand::variable && o.variable_id() == v;
  };
  for (size_t l = 0; l < e.lookups.size(); ++l) {
    const Lookup& lookup = e.lookups[l];
    const Step& probe = *std::find_if(e.steps.begin(), e.steps.end(), [&](const Step& s) { return s.id == lookup.step; });
    const hir::VariableId row = probe.target;
    if (lookup.columns.size() != 1 || lookup.mask || !probe.casts.empty() || e.definitions[index(row)] != 1 || is_result(row)) continue;
    std::vector<hir::VariableId> rows{row};  // and selections of them
    const auto is_row = [&](const hir::Operand& o) {
      return std::any_of(rows.begin(), rows.end(), [&](hir::VariableId v) { return is(o, v); });
    };
    const auto selects = [&](const Step& s) { return s.call && s.builtin == Builtin::compress && s.casts.empty() && is_row(s.operands[1]); };
    for (const Step& s : e.steps)
      if (selects(s) && e.definitions[index(s.target)] == 1) rows.push_back(s.target);
    if (std::any_of(rows.begin(), rows.end(), is_result)) continue;
    std::vector<uint32_t> fields;
    bool fits = true;
    const auto reads = [&](hir::VariableId v) {
      const auto at = std::find(parameters.begin(), parameters.end(), v);
      fits = fits && at != parameters.end() && v != e.kernel.geometry_variable && e.definitions[index(v)] == 1 && !is_result(v);
      const auto number = static_cast<uint32_t>(at - parameters.begin());
      if (std::find(fields.begin(), fields.end(), number) == fields.end()) fields.push_back(number);
    };
    for (const Step& s : e.steps)
      for (size_t k = 0; k < s.operands.size(); ++k) {
        if (!is_row(s.operands[k])) continue;
        const bool gathers = s.call && s.builtin == Builtin::index && k == 1 && s.operands[0].kind == hir::Operand::variable;
        const bool asks = s.call && s.builtin == Builtin::geq && k == 0 && s.operands[1].kind == hir::Operand::literal;
        if (gathers) reads(s.operands[0].variable_id());
        const bool is_selected = k == 1 && selects(s) && std::find(rows.begin(), rows.end(), s.target) != rows.end();
        fits = fits && (gathers || is_selected || (asks && literal_element(e, e.program.literals[s.operands[1].literal_id()]).value.value == 0));
      }
    for (const uint32_t field : fields)
      for (const Step& s : e.steps)
        for (size_t k = 0; k < s.operands.size(); ++k) {
          if (!fits || !is(s.operands[k], parameters[field])) continue;
          fits = s.call && s.builtin == Builtin::index && k == 0 && is_row(s.operands[1]);
        }
    if (!fits) continue;
    std::sort(fields.begin(), fields.end());
    e.code.lookups[l].fields = std::move(fields);
  }
}

}  // namespace rndn::codegen
