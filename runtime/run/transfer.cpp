// Values between host and device. A vector moves when a step needs it on the other side, once: the item then has both. Columns and foreign keys go to
// memory that the engine keeps, literals to the plan's, everything else to the run's.
#include <algorithm>
#include <cstring>
#include <functional>

#include "runtime/memory/result_memory.h"
#include "runtime/run/execution.h"

namespace rndn::runtime {

using device::Address;
using hir::BasicType;
using reference::Value;

Arena& Run::arena_of(const Item& v) {
  switch (v.lifetime) {
    case Item::of_engine: return engine_.kept;
    case Item::of_plan: return plan_.kept;
    case Item::of_run: break;
  }
  return engine_.buffers;
}

ItemPtr Run::new_vector(BasicType type, uint64_t capacity, bool exact) const {
  auto made = std::make_shared<Item>();
  made->kind = Item::vector;
  made->type = type;
  made->capacity = capacity;
  made->exact = exact;
  return made;
}

// --- Sizes ---

// Slots of numbers that the host knows are written once and shared.
Result<Address> Run::size_slot(uint64_t size) {
  auto [at, fresh] = plan_.sizes.try_emplace(size, 0);
  if (!fresh && at->second) return at->second;
  constexpr uint64_t slots = 512;
  if (!plan_.size_page || plan_.sizes_in_page == slots) {
    ASSIGN_OR_RETURN(plan_.size_page, plan_.kept.allocate(slots * 8));
    plan_.size_pages.push_back(plan_.size_page);
    plan_.sizes_in_page = 0;
  }
  const Address slot = plan_.size_page->address + 8 * plan_.sizes_in_page;
  RETURN_IF_ERROR(device_.copy_to_device(slot, &size, 8));
  ++plan_.sizes_in_page;
  return at->second = slot;
}

Result<void> Run::size_to_device(Item& v) {
  // A slot of the plan's does not fit an item of the engine's, which outlives it: it is looked up in every run.
  if (v.size_slot && v.lifetime != Item::of_engine) return {};
  ASSIGN_OR_RETURN(v.size_slot, size_slot(v.capacity));
  return {};
}

Result<uint64_t> Run::size_of(Item& v) {
  if (v.exact) return v.capacity;
  RETURN_IF_ERROR(wait());
  uint64_t size = 0;
  if (v.mapped_size)
    size = *v.mapped_size;
  else
    RETURN_IF_ERROR(device_.copy_to_host(&size, v.size_slot, 8));
  if (size > v.capacity)
    return Error{Fault::internal,
                 fmt::format("a kernel wrote {} elements into a vector of at most {}", size, v.capacity)};
  v.capacity = size;
  v.exact = true;
  return size;
}

// Under a limit, of what may be long: results are then as long as it is, and not as it might be.
Result<void> Run::learn_length(Item& v) {
  if (v.exact || !engine_.memory.limits_unknown(8 * v.capacity)) return {};
  ASSIGN_OR_RETURN([[maybe_unused]] const uint64_t length, size_of(v));
  return {};
}

// --- To the host ---

// Waits. Copies what results still lack into mapped memory before, all of them with that one wait, or another one when sizes are not known: a copy of
// its own costs a wait each. How long those were is kept for the next run, whose kernels write short ones where the host sees them.
// Large vectors of numbers stay on the device where they may (runtime/memory/result_memory.h).
Result<void> Run::bring_back(std::span<const ItemPtr> results) {
  constexpr uint64_t most = 4 << 20;  // bytes of one vector; larger ones are copied directly
  std::vector<ItemPtr> missing, mapped;
  std::vector<const Item*> columns;  // of tables: nothing looks into them before the results are there
  std::function<void(const ItemPtr&)> collect = [&](const ItemPtr& v) {
    if (v->host) return;
    for (const ItemPtr& p : v->parts) {
      if (v->kind == Item::table) columns.push_back(p.get());
      collect(p);
    }
    // What the engine keeps must not hold memory of a run.
    if (v->kind == Item::vector && v->data && !v->mapped_data && !v->column && v->lifetime != Item::of_engine)
      missing.push_back(v);
    if (v->kind == Item::vector && v->mapped_size && v->result_slot != no_slot) mapped.push_back(v);
  };
  for (const ItemPtr& v : results) collect(v);
  std::vector<std::pair<Item*, BufferPtr>> sizes;
  for (const ItemPtr& v : missing) {
    if (v->exact) continue;
    ASSIGN_OR_RETURN(BufferPtr size, engine_.flags.allocate(8));
    RETURN_IF_ERROR(device_.copy(size->address, v->size_slot, 8));
    sizes.push_back({v.get(), std::move(size)});
    pending_ = true;
  }
  if (!sizes.empty()) {
    RETURN_IF_ERROR(wait());
    for (const auto& [v, buffer] : sizes) {
      const uint64_t size = *static_cast<const uint64_t*>(buffer->host);
      if (size > v->capacity)
        return Error{Fault::internal,
                     fmt::format("a kernel wrote {} elements into a vector of at most {}", size, v->capacity)};
      v->capacity = size;
      v->exact = true;
      if (v->result_slot != no_slot) plan_.result_rows[v->result_slot] = size;
    }
  }
  ResultMemory* const stay = ResultMemory::for_results();
  const auto stays = [&](const Item& v, uint64_t bytes) {
    return stay && !hir::is_text(v.type) && stay->takes(device_, bytes) &&
           engine_.memory.in_use() + stay->bytes() + bytes <= engine_.memory.limit() &&
           std::find(columns.begin(), columns.end(), &v) != columns.end();
  };
  for (const ItemPtr& v : missing) {
    const uint64_t plain_bytes = v->capacity * encodings::plain_bytes(v->type);
    if (stays(*v, plain_bytes)) {
      ASSIGN_OR_RETURN(const ItemPtr decoded, plain(v));
      if (auto kept = stay->keep(device_, decoded->data, plain_bytes)) {
        v->host = reference::vector_from_bytes(v->type, v->capacity, std::move(kept));
        pending_ = true;
        continue;
      }
    }
    const uint64_t bytes = device_bytes(*v, v->capacity);
    if (bytes == 0 || bytes > most) continue;
    ASSIGN_OR_RETURN(v->mapped_buffer, engine_.mapped.allocate(bytes));
    RETURN_IF_ERROR(device_.copy(v->mapped_buffer->address, v->data, bytes));
    v->mapped_data = v->mapped_buffer->host;
    pending_ = true;
  }
  RETURN_IF_ERROR(wait());
  // One that has become long is copied from the next run on.
  for (const ItemPtr& v : mapped) {
    plan_.result_rows[v->result_slot] = *v->mapped_size;
    if (device_bytes(*v, std::min(*v->mapped_size, v->capacity)) > mapped_result_limit) plan_.drop_replay(), plan_.quiet = false;
  }
  return {};
}

Result<Value> Run::to_host(Item& v) {
  if (v.host) return *v.host;
  switch (v.kind) {
    case Item::vector: {
      if (v.foreign_rows) {
        std::vector<int64_t> rows(v.capacity);
        for (uint64_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int64_t>(v.column->foreign_row(i));
        v.host = reference::vector_of<int64_t>(BasicType::i64, std::span<const int64_t>(rows));
        return *v.host;
      }
      if (v.column) {
        v.host = reference::from_column(*v.column);
        v.host->fields = v.fields;
        return *v.host;
      }
      ASSIGN_OR_RETURN(uint64_t size, size_of(v));
      if (!v.data && !v.codes_are_rows && size) break;
      RETURN_IF_ERROR(wait());
      expect_memory(device_bytes(v, size) + size * encodings::plain_bytes(v.type));
      const encodings::Encoding& form = encodings::find(v.stored);
      std::vector<std::byte> stored(device_bytes(v, size)), bytes(size * encodings::plain_bytes(v.type));
      if (v.codes_are_rows && !v.data) {
        for (uint32_t i = 0; i < size; ++i) std::memcpy(bytes.data() + 4 * uint64_t{i}, &i, 4);
      } else if (v.mapped_data && size) {
        form.restore(v.type, v.stored, static_cast<const std::byte*>(v.mapped_data), size, bytes.data());
      } else {
        RETURN_IF_ERROR(device_.copy_to_host(stored.data(), v.data, stored.size()));
        form.restore(v.type, v.stored, stored.data(), size, bytes.data());
      }
      if (hir::is_text(v.type)) {
        if (const auto texts = domain_of(v)->texts()) {  // the value refers to the dictionary
          std::vector<uint32_t> codes(size);
          if (size) std::memcpy(codes.data(), bytes.data(), bytes.size());
          for (uint32_t code : codes)
            if (code >= texts->size())
              return Error{Fault::internal, fmt::format("a text has code {} of {}", code, texts->size())};
          v.host = reference::vector_of_codes(v.type, texts, std::move(codes));
          return *v.host;
        }
        ASSIGN_OR_RETURN(std::vector<std::string> texts,
                         decode(v, {reinterpret_cast<const uint32_t*>(bytes.data()), size}));
        v.host = reference::vector_of_texts(v.type, std::move(texts));
      } else {
        v.host = reference::vector_from_bytes(v.type, size, std::move(bytes));
      }
      return *v.host;
    }
    case Item::cells: return cells_to_host(v);
    case Item::picked: {
      ASSIGN_OR_RETURN(const Value numbers, to_host(*v.parts[0]));
      std::vector<Value> all, cells;
      for (size_t k = 1; k < v.parts.size(); ++k) {
        ASSIGN_OR_RETURN(const Value list, to_host(*v.parts[k]));
        all.insert(all.end(), list.parts().begin(), list.parts().end());
      }
      for (const int64_t n : std::span(numbers.as<int64_t>(), numbers.size)) {
        if (n < 0 || static_cast<uint64_t>(n) >= all.size())
          return Error{Fault::internal, fmt::format("a list has cell {} of {}", n, all.size())};
        cells.push_back(all[static_cast<size_t>(n)]);
      }
      v.host = reference::list(std::move(cells));
      return *v.host;
    }
    case Item::list:
    case Item::dict:
    case Item::enumeration:
    case Item::table: {
      std::vector<Value> cells;
      for (const ItemPtr& cell : v.parts) {
        ASSIGN_OR_RETURN(Value value, to_host(*cell));
        cells.push_back(std::move(value));
      }
      if (v.kind == Item::table) return reference::table(*v.names, std::move(cells));
      if (v.kind == Item::list) return reference::list(std::move(cells));
      return v.kind == Item::dict ? reference::dict(cells[0], cells[1]) : reference::enumeration(cells[0], cells[1]);
    }
    case Item::other: break;
  }
  return Error{Fault::internal, "a value is nowhere"};
}

Result<std::vector<uint64_t>> Run::offsets_of(Item& list) {
  std::vector<uint64_t> offsets{0};
  if (list.kind == Item::list) {
    for (const ItemPtr& cell : list.parts) {
      ASSIGN_OR_RETURN(const uint64_t length, size_of(*cell));
      offsets.push_back(offsets.back() + length);
    }
    return offsets;
  }
  ASSIGN_OR_RETURN(const uint64_t count, size_of(list));
  offsets.resize(count + 1);
  if (list.offsets) {
    RETURN_IF_ERROR(wait());
    RETURN_IF_ERROR(device_.copy_to_host(offsets.data(), list.offsets, offsets.size() * 8));
  } else {
    for (uint64_t i = 0; i <= count; ++i) offsets[i] = i;
  }
  return offsets;
}

Result<Value> Run::cells_to_host(Item& v) {
  ASSIGN_OR_RETURN(Value elements, to_host(*v.parts[0]));
  ASSIGN_OR_RETURN(const std::vector<uint64_t> offsets, offsets_of(v));
  const uint64_t count = offsets.size() - 1;
  std::vector<Value> cells(count);
  const uint64_t width = data::plain_width(elements.type);
  const uint64_t all = reference::length(elements);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t from = offsets[i], to = offsets[i + 1];
    if (from > to || to > all)
      return Error{Fault::internal, fmt::format("cell {} lies at {} to {} of {} elements", i, from, to, all)};
    if (elements.kind == Value::list) {
      const auto first = elements.parts().begin();
      cells[i] = reference::list({first + static_cast<std::ptrdiff_t>(from), first + static_cast<std::ptrdiff_t>(to)});
      continue;
    }
    if (hir::is_text(elements.type)) {
      std::vector<std::string> texts(to - from);
      for (uint64_t k = from; k < to; ++k) texts[k - from] = elements.text(k);
      cells[i] = reference::vector_of_texts(elements.type, std::move(texts));
    } else {
      std::vector<std::byte> bytes((to - from) * width);
      if (!bytes.empty()) std::memcpy(bytes.data(), elements.bytes->data() + from * width, bytes.size());
      cells[i] = reference::vector_from_bytes(elements.type, to - from, std::move(bytes));
    }
  }
  v.host = reference::list(std::move(cells));
  return *v.host;
}

// --- To the device ---

Result<void> Run::bring(const ItemPtr& item) {
  Item& v = *item;
  auto scope = timings_.measure(Phase::transfer, "to device");
  if (hir::is_text(v.type)) {
    RETURN_IF_ERROR(codes_to_device(v));
  } else if (v.column) {
    if (!v.foreign_rows &&
        (v.column->encoding != data::Encoding::plain || v.column->width != data::plain_width(v.type)))
      return Error{Fault::internal, "a step reads a column of an encoding that it does not know"};
    RETURN_IF_ERROR(send_column(v));
  } else {
    v.stored = {};
    RETURN_IF_ERROR(send(v, v.host->bytes ? v.host->bytes->data() : nullptr));
  }
  if (v.lifetime == Item::of_engine) engine_.uploaded.push_back({item, 0});
  return {};
}

// A column that the last run sent, where that takes no time of the host: it is on its way while the host waits for steps before its first use. What
// goes wrong is met again there.
void Run::send_early(const ItemPtr& item) {
  if (item->kind == Item::enumeration) return send_early(item->parts[1]);  // the keys are a column of their own
  const Item& v = *item;
  if (v.kind != Item::vector || v.data || v.codes_are_rows || !plan_.early.contains({v.column.get(), v.foreign_rows})) return;
  const ColumnForm& form = column_form(v);
  if (engine_.pinned.has(form.bytes ? form.bytes : v.foreign_rows ? v.column->foreign_rows : v.column->data)) (void)bring(item);
}

Result<void> Run::to_device(const ItemPtr& item) {
  Item& v = *item;
  if (v.kind == Item::cells || v.kind == Item::list) return cells_to_device(item);
  if (v.kind == Item::picked) {  // what reads it reads its parts
    for (const ItemPtr& part : v.parts) RETURN_IF_ERROR(to_device(part));
    return {};
  }
  if (v.kind != Item::vector) return Error{Fault::internal, "a step on the device reads a value that is no vector"};
  if (!v.data) RETURN_IF_ERROR(bring(item));
  if (v.data_buffer && v.data_buffer->owner) RETURN_IF_ERROR(v.data_buffer->owner->arrive(*v.data_buffer));
  if (v.lifetime == Item::of_engine)
    for (Engine::State::Uploaded& u : engine_.uploaded)
      if (u.item == item) u.last_use = ++engine_.clock;
  if (recording_ && v.lifetime != Item::of_run && v.data_buffer) held_.push_back(v.data_buffer);
  return size_to_device(v);
}

const ColumnForm& Run::column_form(const Item& v) const {
  const RowsReferred rows_of =
      v.foreign_rows ? RowsReferred(static_cast<uint64_t>(v.bounds.max) + 1) : std::nullopt;
  auto scope = timings_.measure(Phase::data, "forms of columns");
  return engine_.forms.of(v.column, rows_of, plan_.options.encode, engine_.pool);
}

const VectorBounds* Run::bounds_of_vectors(const Item& v) const {
  if (v.kind != Item::vector || v.lifetime != Item::of_engine || !v.column || v.foreign_rows || v.type != v.column->type ||
      v.capacity != v.column->rows)
    return nullptr;
  auto scope = timings_.measure(Phase::data, "bounds of vectors");
  const VectorBounds& found = engine_.bounds.of(v.column, engine_.pool);
  return found.bytes ? &found : nullptr;
}

void Run::retry_bounds() {
  if (plan_.bounds_fit && plan_.records_fit) return;
  uint64_t room = engine_.memory.room() + engine_.kept.unused();
  for (const Engine::State::Uploaded& u : engine_.uploaded)  // those that are not spared
    if (u.last_use <= plan_.began) room += u.bytes();
  const bool is_first = !plan_.room_without_bounds;
  if (!is_first && room <= *plan_.room_without_bounds) return;
  plan_.room_without_bounds = room;
  if (is_first) return;
  plan_.bounds_fit = plan_.records_fit = true;
  plan_.quiet = false;  // they are sent in this run
  plan_.drop_replay();
}

Result<BufferPtr> Run::bounds_to_device(Item& v) {
  if (!v.vector_bounds) {
    const VectorBounds* bounds = bounds_of_vectors(v);
    CHECK(bounds, "the code for it was asked for");
    auto scope = timings_.measure(Phase::transfer, "to device");
    const Engine::State::Sparing sparing(engine_, spared_after_);
    auto sent = arena_of(v).send(bounds->bytes->data(), bounds->bytes->size());
    if (!sent && sent.error().cause == Cause::device_full) return BufferPtr{};
    if (!sent) return sent.error();
    v.vector_bounds = *std::move(sent);
    engine_.column_bytes += bounds->bytes->size();
  }
  RETURN_IF_ERROR(v.vector_bounds->owner->arrive(*v.vector_bounds));
  if (recording_) held_.push_back(v.vector_bounds);
  return v.vector_bounds;
}

// Where nothing forces it: what has been sent before, since to pin it takes as long as to send it some ten times.
bool Run::stays_on_host(const Item& v, const std::shared_ptr<const data::Bytes>& bytes) const {
  if (!bytes || bytes->empty()) return false;
  if (plan_.options.transfer != Transfer::automatic) return plan_.options.transfer == Transfer::mapped;
  return plan_.mapped && plan_.mapped->contains({v.column.get(), v.foreign_rows}) && engine_.pinned.has_been_sent(bytes);
}

// A column, in the form that is chosen for it.
Result<void> Run::send_column(Item& v) {
  const ColumnForm& form = column_form(v);
  v.stored = form.stored;
  const auto& own = v.foreign_rows ? v.column->foreign_rows : v.column->data;
  const std::shared_ptr<const data::Bytes> bytes = form.bytes ? form.bytes : own;
  if (v.lifetime == Item::of_engine && stays_on_host(v, bytes)) {
    ASSIGN_OR_RETURN(v.data_buffer, engine_.map(bytes));
    v.data = v.data_buffer->address;
    return {};
  }
  if (!form.bytes && own) {
    if (BufferPtr ahead = engine_.take_ahead(own)) {
      engine_.column_bytes += device_bytes(v, v.capacity);
      v.data = ahead->address;
      v.data_buffer = std::move(ahead);
      return {};
    }
  }
  if (v.lifetime != Item::of_engine) return send(v, bytes ? bytes->data() : nullptr);
  ASSIGN_OR_RETURN(v.data_buffer, engine_.send(bytes, device_bytes(v, v.capacity), !plan_.options.cache));
  v.data = v.data_buffer->address;  // now that they are there
  return {};
}

// The elements as they lie at `from`, in the vector's form.
Result<void> Run::send(Item& v, const std::byte* from) {
  const uint64_t bytes = device_bytes(v, v.capacity);
  ASSIGN_OR_RETURN(v.data_buffer, arena_of(v).allocate(bytes));
  RETURN_IF_ERROR(device_.copy_to_device(v.data_buffer->address, from, bytes));
  v.data = v.data_buffer->address;  // now that they are there
  return {};
}

// The vector with its elements in the plain form, for what knows no other: itself, or an item that it remembers.
Result<ItemPtr> Run::plain(const ItemPtr& v) {
  RETURN_IF_ERROR(to_device(v));
  if (v->stored == encodings::Stored{}) return v;
  if (!v->decoded) {
    RETURN_IF_ERROR(learn_length(*v));
    operators::Vector from{.data = v->data, .size_slot = v->exact ? 0 : v->size_slot, .capacity = v->capacity};
    OperatorMemory memory(*this, arena_of(*v));
    ASSIGN_OR_RETURN(const operators::Vector made, sql_->decode(from, v->type, v->stored, memory));
    note_library_launches();
    ItemPtr item = from_vector(made, v->type, memory);
    item->lifetime = v->lifetime;
    item->size_id = v->size_id;
    item->bounds = v->bounds;
    item->ascending = v->ascending;
    item->domain = v->domain;
    v->decoded = std::move(item);
  }
  RETURN_IF_ERROR(to_device(v->decoded));
  return v->decoded;
}

Result<void> Run::cells_to_device(const ItemPtr& item) {
  Item& v = *item;
  if (v.kind == Item::list || v.parts.empty()) {  // a list of vectors on the host: put in one piece
    ASSIGN_OR_RETURN(Value host, to_host(v));
    const std::vector<Value>& cells = host.parts();
    if (cells.empty()) return Error{Fault::internal, "a step on the device reads an empty list of unknown type"};
    const BasicType type = cells[0].type;
    std::vector<uint64_t> offsets{0};
    std::vector<std::byte> bytes;
    std::vector<std::string> texts;
    for (const Value& cell : cells) {
      if (!cell.is_vector() || cell.type != type)
        return Error{Fault::internal, "a step on the device reads a list whose cells are no vectors of one type"};
      offsets.push_back(offsets.back() + cell.size);
      if (hir::is_text(type))
        for (uint64_t i = 0; i < cell.size; ++i) texts.push_back(cell.text(i));
      else if (cell.size)
        bytes.insert(bytes.end(), cell.bytes->data(), cell.bytes->data() + cell.size * data::plain_width(type));
    }
    ASSIGN_OR_RETURN(BufferPtr sent, arena_of(v).allocate(offsets.size() * 8));
    RETURN_IF_ERROR(device_.copy_to_device(sent->address, offsets.data(), offsets.size() * 8));
    v.parts = {host_item(hir::is_text(type) ? reference::vector_of_texts(type, std::move(texts))
                                            : reference::vector_from_bytes(type, offsets.back(), std::move(bytes)),
                         v.lifetime)};
    v.host = std::move(host);
    v.kind = Item::cells;
    v.type = type;
    v.capacity = cells.size();
    v.exact = true;
    v.offsets_buffer = std::move(sent);
    v.offsets = v.offsets_buffer->address;
  }
  RETURN_IF_ERROR(to_device(v.parts[0]));
  if (!v.offsets) {  // a cell per element
    ASSIGN_OR_RETURN(uint64_t count, size_of(v));
    std::vector<uint64_t> offsets(count + 1);
    for (uint64_t i = 0; i <= count; ++i) offsets[i] = i;
    ASSIGN_OR_RETURN(v.offsets_buffer, arena_of(v).allocate(offsets.size() * 8));
    RETURN_IF_ERROR(device_.copy_to_device(v.offsets_buffer->address, offsets.data(), offsets.size() * 8));
    v.offsets = v.offsets_buffer->address;
  }
  return size_to_device(v);
}

}  // namespace rndn::runtime
