// Launching kernels: checks that the sizes are those that the code relies on, brings inputs to the device, makes outputs at their upper bound, and
// fills the parameters by their roles (ptx/codegen/codegen.h). Waits for the device only where lengths must be compared (sizes_hold).
#include <algorithm>
#include <map>

#include "outliner/spread.h"
#include "ptx/lookup/lookup.h"
#include "runtime/memory/bounds.h"
#include "runtime/memory/result_memory.h"
#include "runtime/run/execution.h"

namespace rndn::runtime {

using device::Address;
using hir::BasicType;

namespace {
constexpr uint64_t kept_for_messages =
    16 << 20;  // bytes of intermediate inputs that a kernel keeps alive until the next wait

// Of fewer rows it has fewer, as what is full: the run is repeated by ranges.
Error too_long(uint64_t n, uint64_t longest) {
  return input_error("a vector of {} elements is more than the {} that one vector may have", n, longest)
      .as(Cause::device_full);
}
uint64_t flat_elements(const Item& list) { return list.parts.empty() ? 0 : list.parts[0]->capacity; }
}  // namespace

// The upper bound of a size at run time, from what the kernel's inputs have; false when nothing tells it.
bool Run::bound(const outliner::Kernel& kernel, const hir::Function& f, const std::vector<ItemPtr>& inputs,
                outliner::SizeId size, uint64_t& elements, bool& exact) const {
  const outliner::ShapeTable& shapes = plan_.compiled.outlined.shapes;
  if (is_none(size)) return false;
  if (shapes[size].kind == outliner::Size::constant) {
    elements = static_cast<uint64_t>(std::max<int64_t>(0, shapes[size].value));
    exact = true;
    return true;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    outliner::ShapeId shape = kernel.shapes[f.parameters[i]];
    if (is_none(shape) || shapes[shape].size != size ||
        (shapes[shape].kind != outliner::Shape::vector && shapes[shape].kind != outliner::Shape::list))
      continue;
    elements = inputs[i]->capacity;
    exact = inputs[i]->exact;
    return true;
  }
  if (shapes[size].kind == outliner::Size::compressed) {
    bool base_exact = false;
    exact = false;
    return bound(kernel, f, inputs, shapes[size].base, elements, base_exact);
  }
  return false;
}

Result<bool> Run::same_cells(Item& a, Item& b) {
  if (&a == &b || (a.offsets && a.offsets == b.offsets)) return true;
  const auto are_vectors = [](const Item& list) {
    return list.kind == Item::cells ? !list.parts.empty()
                                    : std::all_of(list.parts.begin(), list.parts.end(),
                                                  [](const ItemPtr& cell) { return cell->kind == Item::vector; });
  };
  if (!are_vectors(a) || !are_vectors(b)) return false;
  if (a.kind == Item::cells && b.kind == Item::cells && !a.offsets && !b.offsets)
    return true;  // their numbers of cells are compared as lengths are
  ASSIGN_OR_RETURN(const std::vector<uint64_t> x, offsets_of(a));
  ASSIGN_OR_RETURN(const std::vector<uint64_t> y, offsets_of(b));
  return x == y;
}

// The code relies on it that scalars are scalars and that vectors of one size are equally long. What the analyses proved needs no look at lengths that
// only the device knows; what they assumed does, and everything once an assumption has failed.
Result<Run::Sizes> Run::sizes_hold(const outliner::Kernel& kernel, const hir::Function& f,
                                   const std::vector<ItemPtr>& inputs) {
  const outliner::ShapeTable& shapes = plan_.compiled.outlined.shapes;
  const auto length_of = [&](Item& v) -> Result<uint64_t> {
    return v.kind == Item::list ? Result<uint64_t>(v.parts.size()) : size_of(v);
  };
  std::map<outliner::SizeId, Item*> first;
  Item* first_list = nullptr;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const outliner::ShapeId shape = kernel.shapes[f.parameters[i]];
    if (is_none(shape)) return Sizes::no_vectors;
    Item& v = *inputs[i];
    const bool list = shapes[shape].kind == outliner::Shape::list;
    if (list ? v.kind != Item::cells && v.kind != Item::list : v.kind != Item::vector) return Sizes::no_vectors;
    if (list && !first_list) first_list = &v;
    if (list) {
      ASSIGN_OR_RETURN(const bool same, same_cells(*first_list, v));
      if (!same) return Sizes::other_cells;
    }
    const outliner::SizeId size = shapes[shape].size;
    if (is_none(size)) continue;
    const bool known = v.exact || v.kind == Item::list;
    if (shapes[size].kind == outliner::Size::constant) {
      if (!known && !kernel.assumes && !sizes_unsure_) continue;
      ASSIGN_OR_RETURN(const uint64_t length, length_of(v));
      if (static_cast<int64_t>(length) != shapes[size].value) return Sizes::other_lengths;
      continue;
    }
    const auto [at, fresh] = first.try_emplace(size, &v);
    Item& other = *at->second;
    if (fresh || &other == &v) continue;
    const bool compares = kernel.assumes && (is_none(v.size_id) || v.size_id != other.size_id);
    if (!(known && (other.exact || other.kind == Item::list)) && !compares && !sizes_unsure_) {
      if (known) at->second = &v;
      continue;
    }
    ASSIGN_OR_RETURN(const uint64_t length, length_of(v));
    ASSIGN_OR_RETURN(const uint64_t expected, length_of(other));
    if (length != expected) return Sizes::other_lengths;
  }
  return Sizes::hold;
}

// The vector's only element that many times: copies that double.
Result<ItemPtr> Run::copies_of(const ItemPtr& v, uint64_t count) {
  ASSIGN_OR_RETURN(const ItemPtr one, plain(v));
  ItemPtr made = new_vector(one->type, count, true);
  made->bounds = one->bounds;
  const uint64_t width = device_bytes(*made, 1);
  ASSIGN_OR_RETURN(made->data_buffer, engine_.buffers.allocate(count * width));
  made->data = made->data_buffer->address;
  RETURN_IF_ERROR(device_.copy(made->data, one->data, width));
  for (uint64_t k = 1; k < count; k *= 2)
    RETURN_IF_ERROR(device_.copy(made->data + k * width, made->data, std::min(k, count - k) * width));
  pending_ = true;
  return made;
}

Result<bool> Run::spread_single(const outliner::Kernel& kernel, const hir::Function& f, std::vector<ItemPtr>& inputs) {
  const outliner::ShapeTable& shapes = plan_.compiled.outlined.shapes;
  const auto size_of_parameter = [&](hir::VariableId v) {
    const outliner::ShapeId shape = kernel.shapes[v];
    return is_none(shape) ? none<outliner::SizeId>() : shapes[shape].size;
  };
  const auto size_id = [&](size_t i) { return size_of_parameter(f.parameters[i]); };
  std::map<outliner::SizeId, uint64_t> lengths;  // of those that have more than one element
  std::vector<size_t> places;
  std::vector<hir::VariableId> single;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i]->kind != Item::vector) return false;
    if (is_none(size_id(i))) continue;
    ASSIGN_OR_RETURN(const uint64_t length, size_of(*inputs[i]));
    if (length == 1 && !outliner::is_scalar(shapes, kernel.shapes[f.parameters[i]])) {
      if (hir::is_text(inputs[i]->type)) return false;
      places.push_back(i);
      single.push_back(f.parameters[i]);
    } else if (!lengths.try_emplace(size_id(i), length).second && lengths[size_id(i)] != length) {
      return false;
    }
  }
  std::erase_if(places, [&](size_t i) { return !lengths.contains(size_id(i)); });
  std::erase_if(single, [&](hir::VariableId v) { return !lengths.contains(size_of_parameter(v)); });
  if (places.empty() || !outliner::may_be_spread(program(), kernel, shapes, single)) return false;
  for (size_t i : places) {
    const uint64_t length = lengths[size_id(i)];
    if (length == 0) return false;  // what fails for the element fails for none of its copies
    ASSIGN_OR_RETURN(inputs[i], copies_of(inputs[i], length));
  }
  return true;
}

// Inputs of one class of texts become codes of one domain; `domains` gets the domain of each class.
Result<void> Run::texts_to_one_domain(KernelState& state, const hir::Function& f, std::vector<ItemPtr>& inputs,
                                      std::vector<DomainPtr>& domains) {
  const TextClasses& texts = state.texts;
  domains.assign(texts.classes.size(), nullptr);
  for (size_t c = 0; c < texts.classes.size(); ++c) {
    std::vector<size_t> members;
    std::vector<ItemPtr> of_class;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (texts.of[index(f.parameters[i])] == static_cast<int>(c)) {
        members.push_back(i);
        if (inputs[i]->kind != Item::vector) RETURN_IF_ERROR(cells_to_device(inputs[i]));
        of_class.push_back(inputs[i]->kind == Item::vector ? inputs[i] : inputs[i]->parts[0]);
      }
    if (only_with_literals(texts.classes[c], f, inputs)) {
      ASSIGN_OR_RETURN(domains[c], literal_domain(of_class, texts.classes[c]));
    }
    if (!domains[c]) {
      ASSIGN_OR_RETURN(domains[c], common_domain(of_class, texts.classes[c]));
    }
    for (size_t k = 0; k < members.size(); ++k) {
      ASSIGN_OR_RETURN(ItemPtr codes, in_domain(of_class[k], domains[c]));
      if (inputs[members[k]]->kind == Item::vector) {
        inputs[members[k]] = codes;
      } else if (codes != of_class[k]) {
        inputs[members[k]] = std::make_shared<Item>(*inputs[members[k]]);
        inputs[members[k]]->host.reset();
        inputs[members[k]]->parts = {codes};
      }
    }
    domains[c] = domains[c]->meaning();
  }
  return {};
}

// Text results are codes of their class's domain.
void Run::set_domains(const TextClasses& texts, const hir::Function& f, std::span<const DomainPtr> domains,
                      std::span<const ItemPtr> outputs) {
  for (hir::StatementId id : f.blocks[f.body].statements) {
    const hir::Statement& statement = f.statements[id];
    if (statement.kind != hir::Statement::return_) continue;
    for (size_t i = 0; i < outputs.size() && i < statement.results.size(); ++i) {
      if (!hir::is_text(outputs[i]->type) || statement.results[i].kind != hir::Operand::variable) continue;
      Item& elements = outputs[i]->kind == Item::cells ? *outputs[i]->parts[0] : *outputs[i];
      elements.domain = domains[static_cast<size_t>(texts.of[statement.results[i].id])];
    }
  }
}

// Threads: one per element of the geometry; of a list: per element of all cells, and per cell.
Result<Run::Geometry> Run::geometry(const outliner::Kernel& kernel, const codegen::KernelCode& code,
                                    const hir::Function& f, const std::vector<ItemPtr>& inputs,
                                    uint32_t resident_blocks) const {
  Geometry g;
  bool known = false, exact = false;
  const uint64_t longest = plan_.options.longest_vector;
  for (const ItemPtr& input : inputs)
    if (const uint64_t n = input->kind == Item::cells ? flat_elements(*input) : input->capacity;
        n > longest)
      return too_long(n, longest);
  for (size_t i = 0; i < f.parameters.size() && i < inputs.size(); ++i)
    if (f.parameters[i] == kernel.geometry_variable) {
      g.elements = kernel.list ? flat_elements(*inputs[i]) + inputs[i]->capacity : inputs[i]->capacity;
      known = true;
    }
  if (!known && !bound(kernel, f, inputs, kernel.geometry, g.elements, exact) && !is_none(kernel.geometry))
    return Error{Fault::internal, fmt::format("the number of threads of kernel `{}` is unknown", code.name)};
  if (g.elements > longest) return too_long(g.elements, longest);
  const uint64_t tile = std::max<uint64_t>(1, uint64_t{code.block_size} * code.items_per_thread);
  g.grid = static_cast<uint32_t>(std::clamp<uint64_t>((g.elements + tile - 1) / tile, 1, resident_blocks));
  return g;
}

// Result i of a kernel, at its upper bound. `elements`: of the geometry.
Result<ItemPtr> Run::make_output(const Step& s, size_t i, uint64_t elements, const std::vector<ItemPtr>& inputs) {
  const outliner::Kernel& kernel = plan_.compiled.outlined.kernels[s.kernel];
  const codegen::KernelCode& code = plan_.compiled.code.kernels[s.kernel];
  const hir::Function& f = program().functions[kernel.function];
  const outliner::ShapeTable& shapes = plan_.compiled.outlined.shapes;
  BasicType type{};
  bool is_list = false;
  if (!element_type(*program().types, f.result_types[i], type, is_list))
    return Error{Fault::internal, fmt::format("result {} of kernel `{}` is no vector", i, code.name)};
  ItemPtr made = new_vector(type, 0, false);
  ItemPtr list;
  const int32_t cells_of = i < code.cells_of.size() ? code.cells_of[i] : -1;
  outliner::ShapeId shape = i < kernel.result_shapes.size() ? kernel.result_shapes[i] : none<outliner::ShapeId>();
  if (is_list && cells_of >= 0) {
    const Item& of = *inputs[static_cast<size_t>(cells_of)];
    made->capacity = flat_elements(of);
    made->exact = of.parts[0]->exact;
    if (!made->exact) {  // as many as those have
      made->size_slot = of.parts[0]->size_slot;
      made->size_buffer = of.parts[0]->size_buffer ? of.parts[0]->size_buffer : of.parts[0]->data_buffer;
    }
    list = parts_item(Item::cells, {made});
    list->type = type;
    list->capacity = of.capacity;
    list->exact = of.exact;
    list->offsets = of.offsets;
    list->offsets_buffer = of.offsets_buffer;
  } else {
    if (is_none(shape) ||
        (shapes[shape].kind != outliner::Shape::vector && shapes[shape].kind != outliner::Shape::list) ||
        !bound(kernel, f, inputs, shapes[shape].size, made->capacity, made->exact)) {
      if (is_none(kernel.geometry))
        return Error{Fault::internal, fmt::format("the size of result {} of kernel `{}` is unknown", i, code.name)};
      made->capacity = elements;
      made->exact = false;
    } else if (shapes[shape].kind == outliner::Shape::vector && !sizes_unsure_) {
      made->size_id = shapes[shape].size;
    }
    if (is_list) {
      list = parts_item(Item::cells, {made});
      list->type = type;
      list->capacity = made->capacity;
      list->exact = made->exact;
    }
  }
  if (const uint64_t longest = plan_.options.longest_vector; made->capacity > longest)
    return too_long(made->capacity, longest);
  return list ? list : made;
}

// Memory for a result of make_output, once its form is known.
Result<void> Run::allocate_output(const Step& s, size_t i, Item& made) {
  if (made.kind != Item::cells) return allocate_result(s, i, made);
  Item& elements = *made.parts[0];
  const device::Address size = elements.size_slot;
  RETURN_IF_ERROR(allocate_result(s, i, elements));
  made.size_slot = elements.size_slot;  // the kernel writes the number of cells
  made.size_buffer = elements.data_buffer;
  if (elements.exact) elements.size_slot = 0;
  if (size) {
    elements.size_slot = size;
    elements.mapped_size = nullptr;
  }
  return {};
}

namespace {

Item& elements_of(Item& v) { return v.kind == Item::cells ? *v.parts[0] : v; }

// The form of a kernel's result: fewer bytes where bounds allow it and there are many. Numbers of 64 bits become numbers of 32, which all operators
// and sorts know, and which most bounds allow.
encodings::Stored form_of_result(const Item& v) {
  if (v.capacity < least_encoded) return {};
  if (hir::is_text(v.type)) {
    if (!v.domain) return {};
    const encodings::Facts facts{
        .known = true, .min = 0, .max = static_cast<int64_t>(std::max<uint64_t>(1, v.domain->count())) - 1};
    return encodings::find(encodings::Kind::narrow).fits(v.type, facts).value_or(encodings::Stored{});
  }
  if (encodings::rep_of(v.type) != encodings::Rep::s64 || !v.bounds.known() || v.bounds.min < INT32_MIN ||
      v.bounds.max > INT32_MAX)
    return {};
  return {.kind = encodings::Kind::narrow, .bytes = 4, .is_signed = true};
}

// Per place: all positions are known to lie within the vector. Bounds of columns hold for each element; of what kernels made they do not where an index
// was an error. foreseen: vectors will be as long as they can be, which is what their table is.
std::vector<uint8_t> places_inside(const codegen::KernelCode& code, std::span<const ItemPtr> inputs,
                                   std::span<const VariableBounds> known, bool foreseen) {
  std::vector<uint8_t> inside;
  for (const codegen::KernelCode::Place& place : code.places) {
    const Item& vector = *inputs[place.vector];
    const Bounds& at = known[index(place.at)].bounds;
    inside.push_back(vector.kind == Item::vector && (vector.exact || foreseen) && at.known() && at.min >= 0 &&
                     static_cast<uint64_t>(at.max) < vector.capacity &&
                     std::all_of(place.from.begin(), place.from.begin() + place.from_count, [&](uint32_t k) { return inputs[k]->column || inputs[k]->host; }) &&
                     std::all_of(place.after.begin(), place.after.begin() + place.after_count, [&](uint32_t k) { return inside[k] != 0; }));
  }
  return inside;
}

}  // namespace

// How the elements of a launch lie; sets the forms of its results.
codegen::KernelEncodings Run::forms_of(const Step& s, uint64_t elements, std::span<const ItemPtr> inputs,
                                       std::span<const ItemPtr> outputs, std::span<const FoldWay> ways,
                                       std::vector<uint8_t> lookups, std::span<const VariableBounds> bounds) const {
  const codegen::KernelCode& code = plan_.compiled.code.kernels[s.kernel];
  codegen::KernelEncodings key;
  for (const ItemPtr& input : inputs) key.parameters.push_back(elements_of(*input).stored);
  for (size_t i = 0; i < outputs.size(); ++i) {
    Item& elements = elements_of(*outputs[i]);
    const bool copied = i < s.outputs.size() && s.outputs[i] != no_slot && plan_.copied[s.outputs[i]];
    if (!copied && i < code.may_be_encoded.size() && code.may_be_encoded[i]) elements.stored = form_of_result(elements);
    key.results.push_back(elements.stored);
  }
  for (const FoldWay& way : ways) {
    key.hashed.push_back(way.key_word);
    if (way.table != codegen::KernelEncodings::usual) key.table = way.table;
  }
  for (uint32_t k : code.compared)
    if (plan_.bounds_fit && inputs[k]->capacity >= plan_.options.bounded_rows && bounds_of_vectors(*inputs[k])) {
      key.bounds.resize(std::max<size_t>(key.bounds.size(), k + 1));
      key.bounds[k] = 1;
    }
  key.inside = places_inside(code, inputs, bounds, is_forecast_);
  key.collects = collects(s, elements, inputs, bounds);
  key.lookups = std::move(lookups);
  for (std::vector<uint8_t>* marks : {&key.lookups, &key.inside})
    while (!marks->empty() && marks->back() == 0) marks->pop_back();
  for (std::vector<encodings::Stored>* forms : {&key.parameters, &key.results})
    while (!forms->empty() && forms->back() == encodings::Stored{}) forms->pop_back();
  while (!key.hashed.empty() && key.hashed.back().empty()) key.hashed.pop_back();
  return key;
}

double Run::share_of_collected(const Step& s, uint64_t elements, std::span<const ItemPtr> inputs,
                               std::span<const VariableBounds> bounds) const {
  const hir::Function& f = program().functions[plan_.compiled.outlined.kernels[s.kernel].function];
  return Estimate(program(), f, static_cast<double>(elements), inputs, {}, bounds)
      .chance(plan_.compiled.code.kernels[s.kernel].collected);
}

bool Run::collects(const Step& s, uint64_t elements, std::span<const ItemPtr> inputs, std::span<const VariableBounds> bounds) const {
  const codegen::KernelCode& code = plan_.compiled.code.kernels[s.kernel];
  const auto no_error_anywhere = [&] {
    const std::vector<uint8_t> inside = places_inside(code, inputs, bounds, is_forecast_);
    for (size_t p = 0; p < inside.size(); ++p)
      if (code.places[p].everywhere && !inside[p]) return false;
    return true;
  };
  return !code.collected.empty() && elements >= plan_.options.collected_rows &&
         share_of_collected(s, elements, inputs, bounds) <= plan_.options.most_collected && no_error_anywhere();
}

// The kernel's code for elements in these forms, made when they first come so.
Result<KernelVariant*> Run::variant(const Step& s, codegen::KernelEncodings key) {
  KernelState& state = plan_.kernels[s.kernel];
  for (const auto& known : state.variants)
    if (known->encodings == key) return known.get();
  ++state.report.late;
  auto made = std::make_unique<KernelVariant>();
  auto again = compile_kernel(plan_.compiled, s.kernel, key, timings_);
  if (!again) {  // its plain form has code
    if (again.error().fault != Fault::input) return again.error();
    return Error{Fault::internal, fmt::format("a variant of kernel `{}`: {}", state.report.name, again.error().message)};
  }
  CompiledKernel compiled = std::move(*again);
  auto scope = timings_.measure(Phase::load);
  made->encodings = std::move(key);
  made->code = std::move(compiled.code);
  ASSIGN_OR_RETURN(made->module, engine_.load(compiled.cubin, compiled.ptx, plan_.compiled.level));
  RETURN_IF_ERROR(made->find(device_, made->module->handle, compiled.reports));
  state.variants.push_back(std::move(made));
  return state.variants.back().get();
}

Result<std::optional<std::vector<BufferPtr>>> Run::bounds_of(const codegen::KernelCode& code,
                                                             std::span<const ItemPtr> inputs) {
  std::vector<BufferPtr> found(inputs.size());
  for (const codegen::KernelParameter& p : code.parameters)
    if (p.role == codegen::ParameterRole::input_bounds) {
      ASSIGN_OR_RETURN(found[p.ordinal], bounds_to_device(*inputs[p.ordinal]));
      if (!found[p.ordinal]) return std::optional<std::vector<BufferPtr>>();
    }
  return std::optional(std::move(found));
}

// A result whose length only the kernel finds takes no more than a tenth of a limit: longer ones are made by ranges.
Result<void> Run::allocate_result(const Step& s, size_t i, Item& made) {
  const uint64_t bytes = (device_bytes(made, made.capacity) + 255) / 256 * 256;
  const uint32_t slot = i < s.outputs.size() ? s.outputs[i] : no_slot;
  const bool for_host = slot == no_slot || !plan_.steps.read_on_device[slot];
  const auto known = made.exact ? plan_.result_rows.end() : plan_.result_rows.find(slot);
  const uint64_t expected =
      known == plan_.result_rows.end() || !foreseeing_.gives_room(bytes) ? bytes : device_bytes(made, std::min(known->second, made.capacity));
  ResultMemory* const stay = ResultMemory::for_results();  // what it takes is left on the device
  const bool mapped = for_host && expected <= mapped_result_limit && (expected == bytes || !stay || !stay->takes(device_, expected));
  if (!made.exact && !mapped && engine_.memory.limits_unknown(bytes))
    return world_error(
               "{} more bytes do not fit on {}: a result of unknown length has at most a tenth of the limit of device "
               "memory, {} bytes",
               bytes, device_.info().name, engine_.memory.limit())
        .as(Cause::device_full);
  ASSIGN_OR_RETURN(made.data_buffer, (mapped ? engine_.mapped : engine_.buffers).allocate(bytes + 8));
  made.data = made.data_buffer->address;
  made.size_slot = made.data + bytes;
  if (for_host && (!mapped || expected < bytes)) made.result_slot = slot;
  if (mapped && expected < bytes) foreseeing_.take_room(bytes);
  if (mapped) {
    made.mapped_data = made.data_buffer->host;
    made.mapped_size = reinterpret_cast<const uint64_t*>(static_cast<const char*>(made.data_buffer->host) + bytes);
  }
  return {};
}

namespace {
// Does the kernel look at elements of the variable, other than to start a result as a copy of them?
bool is_read(const hir::Function& kernel, hir::VariableId v) {
  for (const hir::Expression& e : kernel.expressions) {
    if (e.kind == hir::Expression::cast) continue;
    const bool starts = e.kind == hir::Expression::call && e.callee.kind == hir::FunctionRef::builtin && e.callee.builtin_id == hir::Builtin::index_a;
    for (size_t k = starts ? 1 : 0; k < e.operands.size(); ++k)
      if (e.operands[k].kind == hir::Operand::variable && e.operands[k].variable_id() == v) return true;
  }
  return false;
}
}  // namespace

// A result that starts as a copy of an input: its buffer itself when nobody else needs it.
Result<ItemPtr> Run::copy_input(const Step& s, size_t i, uint32_t parameter, const ItemPtr& input, bool sole) {
  const bool last = std::find(s.last_uses.begin(), s.last_uses.end(), s.inputs[parameter]) != s.last_uses.end() &&
                    std::count(s.inputs.begin(), s.inputs.end(), s.inputs[parameter]) == 1;
  const bool own = sole && last && input->lifetime == Item::of_run && input->data_buffer && !input->mapped_data &&
                   input->data_buffer.use_count() == 1 && !input->translated;
  ItemPtr made = new_vector(input->type, input->capacity, input->exact);
  made->size_id = input->size_id;
  if (own) {
    made->data_buffer = input->data_buffer;
    made->size_buffer = input->size_buffer;
    made->data = input->data;
    made->size_slot = input->size_slot;
    return made;
  }
  RETURN_IF_ERROR(allocate_result(s, i, *made));
  RETURN_IF_ERROR(device_.copy(made->data, input->data, device_bytes(*input, input->capacity)));
  RETURN_IF_ERROR(device_.copy(made->size_slot, input->size_slot, 8));
  pending_ = true;
  return made;
}

Result<void> Run::reserve_scratch(uint64_t bytes) {
  if (bytes == 0 || (plan_.scratch && bytes <= plan_.scratch->bytes)) return {};
  plan_.scratch = nullptr;
  ASSIGN_OR_RETURN(BufferPtr scratch, plan_.kept.allocate(bytes));
  RETURN_IF_ERROR(device_.fill(scratch->address, 0, scratch->bytes));
  plan_.scratch = std::move(scratch);
  return {};
}

uint64_t word_of(const data::Value& number, uint32_t part) {
  const std::byte* from = number.bytes->data() + 8 * size_t{part};
  const auto as = [&]<class T>(T value) {
    std::memcpy(&value, from, sizeof value);
    return static_cast<uint64_t>(static_cast<int64_t>(value));
  };
  switch (data::plain_width(number.type)) {
    case 1: return as(int8_t{});
    case 2: return as(int16_t{});
    case 4: return as(int32_t{});
    default: return as(int64_t{});
  }
}

Result<void> Run::launch(const Step& s) {
  const outliner::Kernel& kernel = plan_.compiled.outlined.kernels[s.kernel];
  const hir::Function& f = program().functions[kernel.function];
  KernelState& state = plan_.kernels[s.kernel];
  // What holds for all variants.
  const codegen::KernelCode& common = state.variants[0]->code;
  if (!kernel.looks && foreseeing_.went_on()) RETURN_IF_ERROR(wait());
  ASSIGN_OR_RETURN(std::vector<ItemPtr> inputs, items(s.inputs));
  for (const ItemPtr& v : inputs)
    if (v->kind == Item::vector || v->kind == Item::cells) RETURN_IF_ERROR(learn_length(elements_of(*v)));
  ASSIGN_OR_RETURN(Sizes sizes, sizes_hold(kernel, f, inputs));
  if (sizes == Sizes::other_lengths) {
    sizes_unsure_ = true;
    ASSIGN_OR_RETURN(const bool spread, spread_single(kernel, f, inputs));
    if (spread) {
      ASSIGN_OR_RETURN(sizes, sizes_hold(kernel, f, inputs));
    }
  }
  switch (sizes) {
    case Sizes::hold: break;
    case Sizes::other_lengths:
      return fall_back(s, "its vectors have other lengths than it was made for", Arguments::perhaps_wrong);
    case Sizes::other_cells:
      return fall_back(s, "its lists have other cells than it was made for", Arguments::perhaps_wrong);
    case Sizes::no_vectors: return fall_back(s, "an argument is only on the host", Arguments::perhaps_wrong);
  }
  // A length that the program states and that no vector has: the error is the interpreter's.
  for (outliner::ShapeId shape : kernel.shapes) {
    const outliner::ShapeTable& shapes = plan_.compiled.outlined.shapes;
    if (is_none(shape) || shapes[shape].kind != outliner::Shape::vector || is_none(shapes[shape].size)) continue;
    const outliner::Size& size = shapes[shapes[shape].size];
    if (size.kind != outliner::Size::constant) continue;
    if (size.value < 0)
      return interpreted_error(s.function, inputs, input_error("a vector cannot have {} elements", size.value));
    if (const auto n = static_cast<uint64_t>(size.value); n > data::longest_vector)
      return interpreted_error(s.function, inputs, too_long(n, data::longest_vector).as(Cause::other));
  }
  const std::vector<ItemPtr> given = inputs;
  std::vector<DomainPtr> domains;
  RETURN_IF_ERROR(texts_to_one_domain(state, f, inputs, domains));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto& values = kernel.by_value;
    if (std::find(values.begin(), values.end(), f.parameters[i]) == values.end())
      RETURN_IF_ERROR(to_device(inputs[i]));
  }
  std::vector<std::vector<uint64_t>> tables;
  std::vector<uint8_t> table_forms;
  std::vector<uint64_t> filtered;  // the rows of those tables that have filters
  ASSIGN_OR_RETURN(Geometry g, geometry(kernel, common, f, inputs, state.variants[0]->resident_blocks));
  for (const codegen::KernelCode::Lookup& l : common.lookups) {
    if (const auto forms = record_forms(l, inputs, g.elements)) {
      ASSIGN_OR_RETURN(std::vector<uint64_t> words, fields_by_key(l, inputs, *forms));
      if (!words.empty()) {
        tables.push_back(std::move(words));
        table_forms.push_back(1 + lookup::ascending);
        filtered.push_back(0);
        continue;
      }
      plan_.records_fit = false;
    }
    ASSIGN_OR_RETURN(const operators::Lookup* table, lookup_table(l, given, inputs));
    if (!table) return fall_back(s, "it looks up keys of more than 64 bits");
    tables.push_back(table->words);
    table_forms.push_back(kept_form(l, *inputs[l.columns[0]], table));
    filtered.push_back(table->filters ? filtered_rows(l, inputs) : 0);
  }
  note_filters(filtered, g.elements, table_forms);
  const std::vector<VariableBounds>& bounds = bounds_in(state.bounds, program(), f, g.elements, inputs);

  std::vector<ItemPtr> outputs(f.result_types.size());
  std::vector<FoldWay> ways(common.sinks.size());
  state.hashed.resize(ways.size());
  for (size_t k = 0; k < ways.size(); ++k) {
    const codegen::KernelCode::Sink& sink = common.sinks[k];
    const std::vector<DomainPtr> of_keys = key_domains(state.texts, sink, domains);
    const FoldInput in{f, g.elements, bounds, of_keys, !changes_inputs(common), state.hashed[k].slots};
    if (const std::string_view unfit = fold_way(sink, in, ways[k]); !unfit.empty())
      return cannot_fold(s, sink.number, unfit);
    if (is_better_apart(sink, in)) return fold_apart(sink.number);
    RETURN_IF_ERROR(fold_tables(sink, f, ways[k], outputs));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i]) continue;
    const int32_t start = i < common.starts_as.size() ? common.starts_as[i] : -1;
    if (start >= 0) {
      ASSIGN_OR_RETURN(inputs[static_cast<size_t>(start)], plain(inputs[static_cast<size_t>(start)]));
      const ItemPtr input = inputs[static_cast<size_t>(start)];
      inputs[static_cast<size_t>(start)] = nullptr;  // not an owner while they are counted
      // Owners otherwise: the slot, the inputs as given, and `input`.
      const bool own = input == given[static_cast<size_t>(start)] && input.use_count() <= 3 &&
                       !is_read(f, f.parameters[static_cast<size_t>(start)]);
      auto made = copy_input(s, i, static_cast<uint32_t>(start), input, own);
      inputs[static_cast<size_t>(start)] = input;
      ASSIGN_OR_RETURN(outputs[i], std::move(made));
    } else {
      ASSIGN_OR_RETURN(outputs[i], make_output(s, i, g.elements, inputs));
    }
  }
  set_bounds(f, bounds, outputs);
  set_domains(state.texts, f, domains, outputs);
  codegen::KernelEncodings forms = forms_of(s, g.elements, inputs, outputs, ways, std::move(table_forms), bounds);
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!outputs[i]->data && !elements_of(*outputs[i]).data) RETURN_IF_ERROR(allocate_output(s, i, *outputs[i]));
  const uint32_t large_bytes =
      ways.size() == 1 && !ways[0].hashed() ? common.sinks[0].large_bytes(ways[0].entries(), ways[0].table) : 0;
  for (bool fits = false; !fits;) {  // the tables of groups are as large as they need to be
    ASSIGN_OR_RETURN(KernelVariant* const variant, this->variant(s, forms));
    const codegen::KernelCode& code = variant->code;
    RETURN_IF_ERROR(variant->make_room(device_, large_bytes));
    ASSIGN_OR_RETURN(g, geometry(kernel, code, f, inputs, variant->resident_blocks));
    RETURN_IF_ERROR(reserve_scratch(codegen::scratch_bytes(code, g.elements, g.grid)));
    ASSIGN_OR_RETURN(const auto bounds_at, bounds_of(code, inputs));
    if (!bounds_at) {
      plan_.bounds_fit = false;
      forms.bounds.clear();
      continue;
    }
    variant->describe(state.report);
    state.report.shared_bytes += large_bytes;
    std::vector<uint64_t> parameters;
    bool can_fail = false;
    auto data_of = [](const Item& v) { return v.kind == Item::cells ? v.parts[0]->data : v.data; };
    for (const codegen::KernelParameter& p : code.parameters) {
      const bool is_input = p.role == codegen::ParameterRole::input_data ||
                            p.role == codegen::ParameterRole::input_size ||
                            p.role == codegen::ParameterRole::input_value ||
                            p.role == codegen::ParameterRole::input_offsets;
      const bool is_output =
          p.role == codegen::ParameterRole::output_data || p.role == codegen::ParameterRole::output_size;
      if ((is_input && p.ordinal >= inputs.size()) || (is_output && p.ordinal >= outputs.size()))
        return Error{Fault::internal, fmt::format("kernel `{}` asks for parameter {} of {}", code.name, p.ordinal,
                                                  is_input ? inputs.size() : outputs.size())};
      switch (p.role) {
        case codegen::ParameterRole::input_data: parameters.push_back(data_of(*inputs[p.ordinal])); break;
        case codegen::ParameterRole::input_size: parameters.push_back(inputs[p.ordinal]->size_slot); break;
        case codegen::ParameterRole::input_value: {
          const Item& number = *inputs[p.ordinal];
          if (!number.host || number.host->size != 1)
            return Error{Fault::internal, fmt::format("kernel `{}`: parameter {} is no number", code.name, p.ordinal)};
          parameters.push_back(word_of(*number.host, p.part));
          break;
        }
        case codegen::ParameterRole::input_offsets: parameters.push_back(inputs[p.ordinal]->offsets); break;
        case codegen::ParameterRole::input_bounds: parameters.push_back((*bounds_at)[p.ordinal]->address); break;
        case codegen::ParameterRole::output_data: parameters.push_back(data_of(*outputs[p.ordinal])); break;
        case codegen::ParameterRole::output_size: parameters.push_back(outputs[p.ordinal]->size_slot); break;
        case codegen::ParameterRole::lookup: parameters.push_back(tables[p.ordinal][p.part]); break;
        case codegen::ParameterRole::sink: parameters.push_back(ways[p.ordinal].words[p.part]); break;
        case codegen::ParameterRole::scratch: parameters.push_back(plan_.scratch ? plan_.scratch->address : 0); break;
        case codegen::ParameterRole::differs: {
          ASSIGN_OR_RETURN(parameters.emplace_back(), sql_->differs());
          break;
        }
        case codegen::ParameterRole::sum_flags: parameters.push_back(plan_.sum_flags->address); break;
        case codegen::ParameterRole::error:
          parameters.push_back(plan_.errors->address + 8 * uint64_t{s.kernel});
          can_fail = true;
          break;
      }
    }

    Launched launched{&state, s.function, 0, 0, std::nullopt};
    if (plan_.options.measure_kernels) {
      ASSIGN_OR_RETURN(launched.first_mark, device_.record_mark());
    }
    {
      // The simulator runs the kernel in the call; a GPU's time is credited when the host has waited for it.
      auto scope = timings_.measure(device_.info().is_simulator ? Phase::kernels : Phase::overhead, code.name);
      auto queued =
          device_.launch(variant->handle, {g.grid, 1, 1}, {code.block_size, 1, 1}, large_bytes,
                         std::as_bytes(std::span(parameters)));
      if (!queued) return launch_error(queued.error(), code.name, place_of(s.function));
    }
    if (plan_.options.measure_kernels) {
      ASSIGN_OR_RETURN(launched.last_mark, device_.record_mark());
    }
    ++state.report.launches;
    launched.floor_bytes = state.report.floor_bytes = code.floor_bits_per_element * g.elements / 8;
    if (can_fail) {
      uint64_t kept = 0;
      for (const ItemPtr& v : given)
        if (v->lifetime == Item::of_run && v->data_buffer) kept += v->data_buffer->bytes;
      if (kept <= kept_for_messages) launched.inputs = given;
    }
    launched_.push_back(std::move(launched));
    pending_ = true;
    fits = true;
    for (size_t k = 0; k < ways.size(); ++k) {
      if (!ways[k].hashed()) continue;
      ASSIGN_OR_RETURN(const codegen::FoldState found,
                       fold_results(common.sinks[k], ways[k], outputs, state.hashed[k]));
      if (found == codegen::fold_impossible)
        return cannot_fold(s, common.sinks[k].number, "it has more groups than are worth a table");
      fits &= found == codegen::fold_fits;
    }
    for (size_t k = 0; k < ways.size() && !fits; ++k) RETURN_IF_ERROR(fold_tables(common.sinks[k], f, ways[k], outputs));
  }
  for (size_t i = 0; i < s.outputs.size(); ++i) assign(s.outputs[i], outputs[i]);
  if (launched_.size() + library_launched_.size() >= most_marks / 2) return wait();
  return {};
}

}  // namespace rndn::runtime
