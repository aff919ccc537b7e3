#include "runtime/memory/device_value.h"

#include <algorithm>

namespace rndn::runtime {

using hir::BasicType;
using data::Value;

ItemPtr parts_item(Item::Kind kind, std::vector<ItemPtr> parts) {
  auto item = std::make_shared<Item>();
  item->kind = kind;
  item->parts = std::move(parts);
  return item;
}

ItemPtr host_item(Value value, Item::Lifetime lifetime) {
  if (value.kind == Value::dict || value.kind == Value::enumeration) {
    const std::vector<Value>& parts = value.parts();
    ItemPtr item = parts_item(value.kind == Value::dict ? Item::dict : Item::enumeration,
                              {host_item(parts[0], lifetime), host_item(parts[1], lifetime)});
    item->lifetime = lifetime;
    item->host = std::move(value);
    return item;
  }
  auto item = std::make_shared<Item>();
  item->lifetime = lifetime;
  if (value.kind == Value::vector) {
    item->kind = Item::vector;
    item->type = value.type;
    item->capacity = value.size;
    item->exact = true;
    if (value.size == 1 && (hir::is_integer(value.type) || hir::is_calendar(value.type))) {
      int64_t x = 0;
      switch (data::plain_width(value.type)) {
        case 1: x = value.type == BasicType::boolean ? *value.as<uint8_t>() : *value.as<int8_t>(); break;
        case 2: x = *value.as<int16_t>(); break;
        case 4: x = *value.as<int32_t>(); break;
        default: x = *value.as<int64_t>(); break;
      }
      item->bounds = {x, x};
    }
  }
  item->host = std::move(value);
  return item;
}

Bounds bounds_of(const data::Column& column) {
  if (column.encoding == data::Encoding::dictionary)
    return {0, static_cast<int64_t>(std::max<size_t>(1, column.dictionary->values.size())) - 1};
  if (column.encoding == data::Encoding::text) return {0, static_cast<int64_t>(std::max<uint64_t>(1, column.rows)) - 1};
  const data::Statistics& s = column.statistics;
  if (!s.known || hir::is_float(column.type)) return {};
  return {s.min, s.max};
}

// Integers only: what is said of dictionary codes and of texts is not about their values.
static bool is_ascending(const data::Column& column) {
  return column.encoding == data::Encoding::plain && column.statistics.known && column.statistics.sorted &&
         !hir::is_float(column.type);
}

ItemPtr column_item(std::shared_ptr<const data::Column> column) {
  auto item = std::make_shared<Item>();
  item->kind = Item::vector;
  item->lifetime = Item::of_engine;
  item->type = column->type;
  item->capacity = column->rows;
  item->exact = true;
  item->bounds = bounds_of(*column);
  item->ascending = is_ascending(*column);
  item->codes_are_rows = column->encoding == data::Encoding::text;
  item->column = std::move(column);
  return item;
}

ItemPtr enumeration_item(std::shared_ptr<const data::Column> foreign, std::shared_ptr<const data::Column> key) {
  auto rows = std::make_shared<Item>();
  rows->kind = Item::vector;
  rows->lifetime = Item::of_engine;
  rows->type = BasicType::i64;
  rows->capacity = foreign->rows;
  rows->exact = true;
  rows->bounds = {0, static_cast<int64_t>(std::max<uint64_t>(1, key->rows)) - 1};
  rows->ascending = is_ascending(*foreign) && is_ascending(*key);  // both ascend, so do the rows where keys are found
  rows->foreign_rows = true;
  rows->column = std::move(foreign);
  ItemPtr item = parts_item(Item::enumeration, {column_item(std::move(key)), std::move(rows)});
  item->lifetime = Item::of_engine;
  return item;
}

operators::Type type_on_device(hir::BasicType type) { return *operators::type_of(type, {}); }

bool has_different_elements(const Item& v) {
  if (v.kind != Item::vector || !v.column || v.foreign_rows || v.lifetime != Item::of_engine || !v.exact ||
      !(hir::is_integer(v.type) || hir::is_calendar(v.type)) || hir::is_wide(v.type))
    return false;
  const data::Statistics& s = v.column->statistics;
  return v.column->rows == 0 || (s.known && (s.unique || s.dense));
}

}  // namespace rndn::runtime
