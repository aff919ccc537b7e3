#include "runtime/adbc/nested.h"

#include <utility>

namespace rndn::adbc {
namespace {

// What a record of ours has behind it: everything that it points to.
template <class Record>
struct Behind {
  std::vector<Record> children;
  std::vector<Record*> pointers;
  std::vector<const void*> buffers;
  std::string format, name;
  std::vector<uint8_t> valid, values;
  std::vector<int32_t> offsets;
  std::string characters;
};

template <class Record>
Record owned(std::unique_ptr<Behind<Record>> behind) {
  for (Record& child : behind->children) behind->pointers.push_back(&child);
  Record record{};
  record.n_children = static_cast<int64_t>(behind->children.size());
  record.children = behind->pointers.data();
  record.private_data = behind.release();
  record.release = [](Record* r) {
    auto* b = static_cast<Behind<Record>*>(r->private_data);
    for (Record& child : b->children)
      if (child.release) child.release(&child);
    delete b;
    r->release = nullptr;
  };
  return record;
}

void set_bit(std::vector<uint8_t>& bits, int64_t at, bool value) {
  if (bits.size() <= static_cast<size_t>(at / 8)) bits.push_back(0);
  if (value) bits[at / 8] |= static_cast<uint8_t>(1u << at % 8);
}

}  // namespace

Nested::Nested(const char* format, std::string name, Kind kind, uint8_t bytes)
    : format_(format), name_(std::move(name)), kind_(kind), bytes_(bytes) {
  if (kind == Kind::text || kind == Kind::list) offsets_.push_back(0);
}

Nested Nested::list(std::string name, Nested item, const char* format) {
  Nested made(format, std::move(name), Kind::list, 0);
  made.children_.push_back(std::move(item));
  return made;
}
Nested Nested::record(std::string name, std::vector<Nested> children) {
  Nested made("+s", std::move(name), Kind::record, 0);
  made.children_ = std::move(children);
  return made;
}
Nested Nested::one_of(std::string name, std::vector<Nested> children) {
  Nested made("+ud:", std::move(name), Kind::one_of, 0);
  for (size_t i = 0; i < children.size(); ++i)
    made.format_ += (i ? "," : "") + std::to_string(i);
  made.children_ = std::move(children);
  return made;
}

void Nested::grow(bool there) {
  set_bit(valid_, length_, there);
  missing_ += !there;
  ++length_;
}

void Nested::add(std::string_view text) {
  characters_ += text;
  offsets_.push_back(static_cast<int32_t>(characters_.size()));
  grow(true);
}

void Nested::add_bytes(const void* value) {
  const auto* bytes = static_cast<const uint8_t*>(value);
  values_.insert(values_.end(), bytes, bytes + bytes_);
  grow(true);
}

void Nested::add_bit(bool value) {
  set_bit(values_, length_, value);
  grow(true);
}

void Nested::add_null() {
  switch (kind_) {
    case Kind::text: offsets_.push_back(offsets_.back()); break;
    case Kind::list: offsets_.push_back(offsets_.back()); break;
    case Kind::bits: set_bit(values_, length_, false); break;
    case Kind::number: values_.resize(values_.size() + bytes_); break;
    case Kind::record:
      for (Nested& child : children_) child.add_null();
      break;
    case Kind::one_of:  // which has no missing values of its own
      children_[0].add_null();
      return end_one_of(0);
  }
  grow(false);
}

void Nested::end() {
  if (kind_ == Kind::list) offsets_.push_back(static_cast<int32_t>(children_[0].length_));
  grow(true);
}

void Nested::end_one_of(uint8_t chosen) {
  values_.push_back(chosen);
  offsets_.push_back(static_cast<int32_t>(children_[chosen].length_ - 1));
  ++length_;
}

ArrowSchema Nested::schema() const {
  auto behind = std::make_unique<Behind<ArrowSchema>>();
  behind->format = format_;
  behind->name = name_;
  for (const Nested& child : children_) behind->children.push_back(child.schema());
  const auto* kept = behind.get();
  ArrowSchema schema = owned(std::move(behind));
  schema.format = kept->format.c_str();
  schema.name = kept->name.c_str();
  schema.flags = nullable_ ? ARROW_FLAG_NULLABLE : 0;
  return schema;
}

ArrowArray Nested::array() && {
  auto behind = std::make_unique<Behind<ArrowArray>>();
  for (Nested& child : children_) behind->children.push_back(std::move(child).array());
  behind->valid = std::move(valid_);
  behind->values = std::move(values_);
  behind->offsets = std::move(offsets_);
  behind->characters = std::move(characters_);
  std::vector<const void*>& buffers = behind->buffers;
  if (kind_ != Kind::one_of) buffers.push_back(missing_ ? behind->valid.data() : nullptr);
  if (kind_ == Kind::bits || kind_ == Kind::number || kind_ == Kind::one_of)
    buffers.push_back(behind->values.data());
  if (kind_ == Kind::text || kind_ == Kind::list || kind_ == Kind::one_of)
    buffers.push_back(behind->offsets.data());
  if (kind_ == Kind::text) buffers.push_back(behind->characters.data());
  const auto* kept = behind.get();
  ArrowArray array = owned(std::move(behind));
  array.length = length_;
  array.null_count = missing_;
  array.n_buffers = static_cast<int64_t>(kept->buffers.size());
  array.buffers = const_cast<const void**>(kept->buffers.data());
  return array;
}

ArrowArrayStream Nested::stream() && {
  struct State {
    Nested root;  // whose values the array takes, once
    bool given = false;
  };
  ArrowArrayStream stream{};
  stream.get_schema = [](ArrowArrayStream* s, ArrowSchema* out) {
    *out = static_cast<State*>(s->private_data)->root.schema();
    return 0;
  };
  stream.get_next = [](ArrowArrayStream* s, ArrowArray* out) {
    auto& state = *static_cast<State*>(s->private_data);
    *out = {};
    if (!std::exchange(state.given, true)) *out = std::move(state.root).array();
    return 0;
  };
  stream.get_last_error = [](ArrowArrayStream*) -> const char* { return nullptr; };
  stream.release = [](ArrowArrayStream* s) {
    delete static_cast<State*>(s->private_data);
    s->release = nullptr;
  };
  stream.private_data = new State{std::move(*this)};
  return stream;
}

}  // namespace rndn::adbc
