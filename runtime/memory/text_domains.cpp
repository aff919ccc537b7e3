#include "runtime/memory/text_domains.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <unordered_set>

#include "libraries/base/errors/check.h"
#include "libraries/base/system/parallel.h"
#include "runtime/memory/text_memory.h"

namespace rndn::runtime {

namespace {

Result<BufferPtr> upload(const TextTools& tools, const void* from, uint64_t bytes) {
  ASSIGN_OR_RETURN(BufferPtr buffer, tools.arena.allocate(bytes));
  RETURN_IF_ERROR(tools.device.copy_to_device(buffer->address, from, bytes));
  return buffer;
}

// Zeros behind a pad, which operators read in whole words; no other byte is written, since those may still arrive.
Result<void> end_pad(const TextTools& tools, const Buffer& buffer, uint64_t bytes) {
  const uint64_t whole = (std::max<uint64_t>(bytes, 1) + 7) / 8 * 8;
  return tools.device.fill(buffer.address + bytes, 0, whole - bytes);
}

constexpr uint64_t handle(uint64_t offset, uint64_t length) { return offset << 24 | length; }

// Strings of the device as texts.
Result<std::vector<std::string>> fetch_texts(device::Device& device, const operators::Strings& strings) {
  std::vector<uint64_t> handles(strings.count);
  std::string pad(strings.pad_bytes, '\0');
  RETURN_IF_ERROR(device.copy_to_host(handles.data(), strings.handles, 8 * handles.size()));
  RETURN_IF_ERROR(device.copy_to_host(pad.data(), strings.pad, pad.size()));
  std::vector<std::string> texts(strings.count);
  constexpr uint64_t piece = 4096;
  parallel_for((strings.count + piece - 1) / piece, [&](size_t k) {
    for (uint64_t i = k * piece; i < std::min<uint64_t>(strings.count, (k + 1) * piece); ++i)
      texts[i] = pad.substr(handles[i] >> 24, handles[i] & 0xFFFFFF);
  });
  return texts;
}
}  // namespace

DomainPtr Domain::of_column(std::shared_ptr<const data::Column> column, std::vector<DomainPtr>* keeper) {
  auto d = std::make_shared<Domain>();
  d->kind_ = column->encoding == data::Encoding::dictionary ? Kind::dictionary : Kind::column;
  d->is_distinct_ = d->kind_ == Kind::dictionary;
  d->count_ = d->is_distinct_ ? column->dictionary->values.size() : column->rows;
  if (d->is_distinct_)
    d->is_ordered_ = std::is_sorted(column->dictionary->values.begin(), column->dictionary->values.end());
  if (d->is_distinct_) {  // its texts alone
    data::Column texts{.type = column->type, .encoding = column->encoding, .width = column->width};
    texts.dictionary = column->dictionary;
    d->column_ = std::make_shared<const data::Column>(std::move(texts));
  } else {
    d->column_ = std::move(column);
  }
  d->keeper_ = keeper;
  d->is_kept_ = true;
  return d;
}

DomainPtr Domain::of_texts(std::shared_ptr<const std::vector<std::string>> texts, uint64_t count) {
  auto d = std::make_shared<Domain>();
  d->count_ = count;
  d->is_distinct_ = d->is_ordered_ = count <= 1;
  d->texts_ = std::move(texts);
  return d;
}

DomainPtr Domain::of_strings(BufferPtr handles, BufferPtr pad, uint64_t pad_bytes, uint64_t count) {
  auto d = std::make_shared<Domain>();
  d->kind_ = Kind::made;
  d->count_ = count;
  d->is_distinct_ = d->is_ordered_ = count <= 1;
  d->strings_ = {std::move(handles), std::move(pad), pad_bytes};
  return d;
}

DomainPtr Domain::of_sorted(std::vector<std::string> texts) {
  const uint64_t count = texts.size();
  DomainPtr d = of_texts(std::make_shared<const std::vector<std::string>>(std::move(texts)), count);
  d->is_distinct_ = d->is_ordered_ = true;
  return d;
}

DomainPtr Domain::joined(std::span<const DomainPtr> domains) {
  auto d = std::make_shared<Domain>();
  d->kind_ = Kind::joined;
  d->is_kept_ = true;
  d->parts_.assign(domains.begin(), domains.end());
  for (const DomainPtr& part : domains) {
    d->firsts_.push_back(d->count_);
    d->count_ += part->count_;
    d->is_kept_ = d->is_kept_ && part->is_kept_;
  }
  d->is_distinct_ = d->is_ordered_ = d->count_ <= 1;
  return d;
}

DomainPtr Domain::derive() {
  auto d = std::make_shared<Domain>();
  d->base_ = shared_from_this();
  d->keeper_ = keeper_;
  d->is_kept_ = is_kept_;
  if (keeper_) keeper_->push_back(d);
  return d;
}

TextReader::Made::Made(const TextMap& map)
    : function(*text::TextFunction::make(map.id)), arguments(map.constants) {}

std::string_view TextReader::operator()(Domain& domain, uint32_t code) { return domain.read(code, *this); }

std::string_view Domain::read(uint32_t code, TextReader& reader) {
  CHECK(code < count_, "code {} of a domain of {} texts", code, count_);
  switch (kind_) {
    case Kind::texts:
    case Kind::made: return (*texts_)[code];
    case Kind::dictionary: return column_->dictionary->values[code];
    case Kind::column: return column_->text_at(code);
    case Kind::piece: {
      std::string_view whole = base_->read(code, reader);
      return piece_start_ >= whole.size() ? std::string_view() : whole.substr(piece_start_, piece_length_);
    }
    case Kind::more: return code < base_->count_ ? base_->read(code, reader) : (*texts_)[code - base_->count_];
    case Kind::distinct: return base_->read(first_[code], reader);
    case Kind::inserted: {
      const auto at = std::lower_bound(firsts_.begin(), firsts_.end(), code);
      const auto before = static_cast<uint32_t>(at - firsts_.begin());
      return at != firsts_.end() && *at == code ? (*texts_)[before] : base_->read(code - before, reader);
    }
    case Kind::joined: {
      const auto part = static_cast<size_t>(std::upper_bound(firsts_.begin(), firsts_.end(), code) - firsts_.begin()) - 1;
      return parts_[part]->read(static_cast<uint32_t>(code - firsts_[part]), reader);
    }
    case Kind::mapped: {
      TextReader::Made& made = reader.made_.try_emplace(this, map_).first->second;
      made.arguments[map_.variable].text = base_->read(code, reader);
      made.result.text.clear();
      if (!made.function(made.arguments, made.result)) made.result.text.clear();
      return made.result.text;
    }
    case Kind::same:
    case Kind::places: break;
  }
  CHECK(false, "codes among literals are no texts");
  return {};
}

std::shared_ptr<const std::vector<std::string>> Domain::texts() const {
  if (kind_ == Kind::texts) return texts_;
  if (kind_ == Kind::dictionary) return {column_, &column_->dictionary->values};
  return nullptr;
}

bool Domain::rests_on(const Domain& other) const {
  const auto on = [&](const DomainPtr& d) { return d && (d.get() == &other || d->rests_on(other)); };
  return on(base_) || std::any_of(parts_.begin(), parts_.end(), on);
}

bool Domain::extends(const Domain& other) const {
  return this == &other || (kind_ == Kind::more && base_->extends(other));
}

// The first code whose text is not before `wanted`, of ordered domains.
uint64_t Domain::place_of(std::string_view wanted) {
  TextReader reader;
  uint64_t low = 0, high = count_;
  while (low < high) {
    const uint64_t middle = (low + high) / 2;
    if (reader(*this, static_cast<uint32_t>(middle)) < wanted)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

uint32_t Domain::known_code_of(const std::string& wanted, const TextTools& tools) {
  if (is_against()) {  // where it is among the literals
    const auto at = std::lower_bound(texts_->begin(), texts_->end(), wanted);
    const auto place = static_cast<uint32_t>(at - texts_->begin());
    if (at == texts_->end() || *at != wanted) return missing_code;
    return kind_ == Kind::same ? place : 2 * place + 1;
  }
  TextReader reader;
  if (is_ordered_) {  // by bisection, without a table
    const uint64_t place = place_of(wanted);
    const bool there = place < count_ && reader(*this, static_cast<uint32_t>(place)) == wanted;
    return there ? static_cast<uint32_t>(place) : missing_code;
  }
  if (kind_ == Kind::distinct) return found_.at(wanted);
  if (codes_.empty()) {
    const uint64_t first = kind_ == Kind::more ? base_->count_ : 0;  // that is not looked up in base_
    *tools.walked += count_ - first;
    std::unordered_map<std::string_view, uint32_t> codes;
    codes.reserve(count_ - first);
    // Texts of dictionaries and of programs, which stay where they are.
    for (auto i = static_cast<uint32_t>(first); i < count_; ++i) codes.emplace(reader(*this, i), i);
    codes_ = std::move(codes);  // all of them
  }
  const auto at = codes_.find(wanted);
  return at == codes_.end() ? missing_code : at->second;
}

Result<std::vector<uint32_t>> Domain::codes_of(std::span<const std::string> texts, const TextTools& tools) {
  CHECK(is_distinct_ || is_against());
  std::vector<uint32_t> codes(texts.size(), missing_code);
  if (kind_ == Kind::more) {
    ASSIGN_OR_RETURN(codes, base_->codes_of(texts, tools));
  } else if (is_ordered_ && !is_against()) {
    RETURN_IF_ERROR(readable(tools));
  } else if (kind_ == Kind::distinct) {
    RETURN_IF_ERROR(find(texts, tools));
  }
  for (size_t k = 0; k < texts.size(); ++k)
    if (codes[k] == missing_code) codes[k] = known_code_of(texts[k], tools);
  return codes;
}

// Has the device look for texts among distinct ones without order.
Result<void> Domain::find(std::span<const std::string> texts, const TextTools& tools) {
  constexpr size_t most_known = 65536;
  if (found_.size() > most_known) found_.clear();
  std::vector<std::string> wanted;
  for (const std::string& text : texts)
    if (!found_.contains(text)) wanted.push_back(text);
  if (wanted.empty()) return {};
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  std::vector<BufferPtr> held;
  ASSIGN_OR_RETURN(const operators::Strings there, strings(tools, true, held));
  ASSIGN_OR_RETURN(const OnDevice sent, send_texts(wanted, tools));
  const operators::Strings few{sent.handles->address, sent.pad->address, wanted.size(), sent.pad_bytes};
  ASSIGN_OR_RETURN(const operators::Same same, tools.sql->same_as(there, few, *tools.memory));
  std::vector<uint32_t> codes(wanted.size());
  RETURN_IF_ERROR(tools.device.copy_to_host(codes.data(), same.literals, 4 * codes.size()));
  for (size_t k = 0; k < wanted.size(); ++k) found_.emplace(std::move(wanted[k]), codes[k]);
  for (const std::string& text : texts) found_.try_emplace(text, missing_code);
  return {};
}

// The texts that the device made.
Result<void> Domain::fetch(const TextTools& tools) {
  const operators::Strings there{strings_.handles->address, strings_.pad->address, count_, strings_.pad_bytes};
  ASSIGN_OR_RETURN(std::vector<std::string> texts, fetch_texts(tools.device, there));
  texts_ = std::make_shared<const std::vector<std::string>>(std::move(texts));
  return {};
}

Result<void> Domain::readable(const TextTools& tools) {
  if (base_) RETURN_IF_ERROR(base_->readable(tools));
  for (const DomainPtr& part : parts_) RETURN_IF_ERROR(part->readable(tools));
  if (kind_ == Kind::made && !texts_) {
    *tools.walked += count_;
    RETURN_IF_ERROR(fetch(tools));
  }
  if (kind_ != Kind::distinct || first_.size() == count_) return {};
  std::vector<uint32_t> first(count_);
  RETURN_IF_ERROR(tools.device.copy_to_host(first.data(), first_on_device_->address, 4 * count_));
  first_ = std::move(first);
  return {};
}

Result<DomainPtr> Domain::texts_of(std::vector<uint32_t>& codes, const TextTools& tools) {
  DomainPtr d = shared_from_this();
  const auto send = [&]() -> Result<operators::Vector> {
    operators::Vector of{.type = operators::Type::u32, .capacity = codes.size()};
    ASSIGN_OR_RETURN(of.data, tools.memory->temporary(4 * codes.size()));
    RETURN_IF_ERROR(tools.device.copy_to_device(of.data, codes.data(), 4 * codes.size()));
    return of;
  };
  while (d->kind_ == Kind::distinct && d->first_.size() != d->count_) {
    std::unordered_map<uint32_t, uint32_t>& known = d->read_first_;
    if (std::any_of(codes.begin(), codes.end(), [&](uint32_t code) { return !known.contains(code); })) {
      const std::vector<uint32_t> asked = codes;
      ASSIGN_OR_RETURN(const operators::Vector of, send());
      ASSIGN_OR_RETURN(const operators::Vector first,
                       tools.sql->translate(of, d->first_on_device_->address, d->count_, *tools.memory));
      RETURN_IF_ERROR(tools.device.copy_to_host(codes.data(), first.data, 4 * codes.size()));
      constexpr size_t most_known = 65536;
      if (known.size() + codes.size() <= most_known)
        for (size_t k = 0; k < codes.size(); ++k) known.emplace(asked[k], codes[k]);
    } else {
      for (uint32_t& code : codes) code = known.at(code);
    }
    d = d->base_;
  }
  if (d->kind_ == Kind::made && !d->texts_ && codes.size() >= d->count_) RETURN_IF_ERROR(d->fetch(tools));
  if (d->kind_ == Kind::made && !d->texts_ && !codes.empty()) {  // these alone, in one piece
    ASSIGN_OR_RETURN(const operators::Vector of, send());
    operators::Strings wanted{0, d->strings_.pad->address, codes.size(), d->strings_.pad_bytes};
    ASSIGN_OR_RETURN(const operators::Vector handles, tools.sql->gather(of, operators::Type::i64, d->strings_.handles->address,
                                                                        d->count_, *tools.memory));
    wanted.handles = handles.data;
    ASSIGN_OR_RETURN(const operators::Strings alone, tools.sql->join_strings({&wanted, 1}, codes.size(), *tools.memory));
    ASSIGN_OR_RETURN(std::vector<std::string> texts, fetch_texts(tools.device, alone));
    std::iota(codes.begin(), codes.end(), 0u);
    return of_texts(std::make_shared<const std::vector<std::string>>(std::move(texts)), codes.size());
  }
  RETURN_IF_ERROR(d->readable(tools));
  return d;
}

Result<Domain::OnDevice> Domain::send_texts(std::span<const std::string> texts, const TextTools& tools) const {
  std::vector<uint64_t> handles;
  std::string pad;
  handles.reserve(texts.size());
  for (const std::string& text : texts) {
    handles.push_back(handle(pad.size(), text.size()));
    pad += text;
  }
  OnDevice made{.handles = nullptr, .pad = nullptr, .pad_bytes = pad.size()};
  ASSIGN_OR_RETURN(made.handles, upload(tools, handles.data(), handles.size() * 8));
  ASSIGN_OR_RETURN(made.pad, upload(tools, pad.data(), pad.size()));
  RETURN_IF_ERROR(end_pad(tools, *made.pad, pad.size()));
  return made;
}

Result<Domain::OnDevice> Domain::make_strings(const TextTools& tools, bool keep) {
  std::vector<BufferPtr> held;
  Kept kept(tools);
  switch (kind_) {
    case Kind::texts:
    case Kind::dictionary: {
      if (count_ > 1) *tools.walked += count_;  // not for a constant
      const auto all = texts();
      return send_texts(all ? std::span<const std::string>(*all).first(count_) : std::span<const std::string>(), tools);
    }
    case Kind::column: {
      OnDevice made{.handles = nullptr, .pad = nullptr, .pad_bytes = column_->pad->size()};
      ASSIGN_OR_RETURN(made.handles, tools.send(column_->data));
      ASSIGN_OR_RETURN(made.pad, tools.send(column_->pad));
      RETURN_IF_ERROR(end_pad(tools, *made.pad, made.pad_bytes));
      return made;
    }
    case Kind::mapped: return map_strings(tools);
    case Kind::piece: {
      ASSIGN_OR_RETURN(const operators::Strings base, base_->strings(tools, keep, held));
      ASSIGN_OR_RETURN(const operators::Strings cut,
                       tools.sql->cut(base, piece_start_, piece_length_, false, kept));
      return OnDevice{kept.at(cut.handles), held.back(), base.pad_bytes};
    }
    case Kind::distinct: {
      ASSIGN_OR_RETURN(const operators::Strings base, base_->strings(tools, keep, held));
      const operators::Vector codes{
          .type = operators::Type::u32, .data = first_on_device_->address, .capacity = count_};
      ASSIGN_OR_RETURN(const operators::Vector handles,
                       tools.sql->gather(codes, operators::Type::i64, base.handles, base.count, kept));
      return OnDevice{kept.at(handles.data), held.back(), base.pad_bytes};
    }
    case Kind::more:
    case Kind::joined: {
      std::vector<operators::Strings> parts;
      std::vector<DomainPtr> of = parts_;
      if (base_) of = {base_, of_texts(texts_, texts_->size())};
      for (const DomainPtr& part : of) {
        ASSIGN_OR_RETURN(parts.emplace_back(), part->strings(tools, false, held));
      }
      ASSIGN_OR_RETURN(const operators::Strings all, tools.sql->concatenate(parts, kept));
      return OnDevice{kept.at(all.handles), kept.at(all.pad), all.pad_bytes};
    }
    case Kind::inserted: {
      *tools.walked += count_;
      RETURN_IF_ERROR(readable(tools));
      std::vector<std::string> texts;
      TextReader reader;
      for (uint32_t i = 0; i < count_; ++i) texts.emplace_back(reader(*this, i));
      return send_texts(texts, tools);
    }
    case Kind::made:
    case Kind::same:
    case Kind::places: break;
  }
  return Error{Fault::internal, "codes among literals are no texts"};
}

Result<operators::Strings> Domain::strings(const TextTools& tools, bool keep, std::vector<BufferPtr>& held) {
  OnDevice there = strings_;
  if (!there.handles) {
    ASSIGN_OR_RETURN(there, make_strings(tools, keep));
  }
  if (keep) strings_ = there;
  for (const BufferPtr& buffer : {there.handles, there.pad})
    if (buffer->owner) RETURN_IF_ERROR(buffer->owner->arrive(*buffer));
  held.push_back(there.handles);
  held.push_back(there.pad);
  return operators::Strings{there.handles->address, there.pad->address, count_, there.pad_bytes};
}

bool Domain::drop_strings() {
  const bool there = strings_.handles != nullptr && kind_ != Kind::made;
  if (there) strings_ = {};
  return there;
}

Result<void> Domain::rank(const TextTools& tools) {
  if (ranks_) return {};
  ASSIGN_OR_RETURN(const DomainPtr distinct, is_distinct_ ? DomainPtr() : hashed(count_ / 2, tools));
  if (distinct) {  // the ranks of these
    ASSIGN_OR_RETURN(const device::Address ranks, distinct->ranks(tools));
    const operators::Vector codes{
        .type = operators::Type::u32, .data = hashed_codes_->address, .capacity = count_};
    Kept kept(tools);
    ASSIGN_OR_RETURN(const operators::Vector made, tools.sql->translate(codes, ranks, distinct->count_, kept));
    ranks_ = kept.at(made.data);
    return {};
  }
  if (count_ > few_texts_of_domain || kind_ == Kind::distinct) {
    std::vector<BufferPtr> held;
    ASSIGN_OR_RETURN(operators::Strings there, strings(tools, kind_ == Kind::column, held));
    ASSIGN_OR_RETURN(const operators::Ranks made, tools.sql->rank(there, *tools.memory));
    ASSIGN_OR_RETURN(BufferPtr ranks, tools.arena.allocate(count_ * 4));
    RETURN_IF_ERROR(tools.device.copy(ranks->address, made.of.data, count_ * 4));
    Kept kept(tools);
    ASSIGN_OR_RETURN(const operators::Vector first, tools.sql->convert(made.first, operators::Type::u32, kept));
    ranked_first_ = kept.at(first.data);
    ranked_count_ = made.first.capacity;
    ranks_ = std::move(ranks);
    return {};
  }
  *tools.walked += count_;
  RETURN_IF_ERROR(readable(tools));
  std::vector<uint32_t> order(count_), ranks(count_), first;
  std::vector<std::string> texts;
  TextReader reader;
  for (uint32_t i = 0; i < count_; ++i) texts.emplace_back(reader(*this, i));
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return texts[a] < texts[b]; });
  for (uint64_t i = 0; i < count_; ++i) {
    if (i == 0 || texts[order[i]] != texts[order[i - 1]]) first.push_back(order[i]);
    ranks[order[i]] = static_cast<uint32_t>(first.size() - 1);
  }
  ASSIGN_OR_RETURN(ranked_first_, upload(tools, first.data(), first.size() * 4));
  ASSIGN_OR_RETURN(ranks_, upload(tools, ranks.data(), count_ * 4));
  ranked_count_ = first.size();
  return {};
}

Result<device::Address> Domain::ranks(const TextTools& tools) {
  RETURN_IF_ERROR(rank(tools));
  return ranks_->address;
}

DomainPtr Domain::derive_distinct(bool ordered, uint64_t count, BufferPtr first) {
  DomainPtr d = derive();
  d->kind_ = Kind::distinct;
  d->is_distinct_ = true;
  d->is_ordered_ = ordered;
  d->count_ = count;
  d->first_on_device_ = std::move(first);
  return d;
}

// The distinct texts by hashes; null: there are few texts to rank, or more than `most` distinct ones.
Result<DomainPtr> Domain::hashed(uint64_t most, const TextTools& tools) {
  if (auto known = hashed_.lock()) return known;
  if (count_ <= few_texts_of_domain || (has_many_distinct_ && most < count_)) return DomainPtr();
  if (!hashed_codes_) {
    std::vector<BufferPtr> held;
    ASSIGN_OR_RETURN(const operators::Strings there, strings(tools, kind_ == Kind::column, held));
    Kept kept(tools);
    ASSIGN_OR_RETURN(const operators::DistinctStrings made, tools.sql->distinct_strings(there, most, kept));
    has_many_distinct_ = made.first.capacity == 0;
    if (has_many_distinct_) return DomainPtr();
    hashed_first_ = kept.at(made.first.data);
    hashed_count_ = made.first.capacity;
    hashed_codes_ = kept.at(made.of.data);
  }
  DomainPtr d = derive_distinct(hashed_count_ <= 1, hashed_count_, hashed_first_);
  hashed_ = d;
  return d;
}

Result<DomainPtr> Domain::distinct(const TextTools& tools) {
  if (is_distinct_) return shared_from_this();
  if (auto known = ordered_.lock(); known && known->base_.get() == this) return known;
  ASSIGN_OR_RETURN(const DomainPtr d, hashed(count_, tools));
  return d ? d : ordered(tools);
}

Result<DomainPtr> Domain::ordered(const TextTools& tools) {
  if (is_ordered_) return shared_from_this();
  if (auto known = ordered_.lock()) return known;
  ASSIGN_OR_RETURN(const DomainPtr distinct, is_distinct_ ? DomainPtr() : hashed(count_ / 2, tools));
  DomainPtr d;
  if (distinct) {
    ASSIGN_OR_RETURN(d, distinct->ordered(tools));
  } else {
    RETURN_IF_ERROR(rank(tools));
    d = derive_distinct(true, ranked_count_, ranked_first_);
  }
  ordered_ = d;
  return d;
}

Result<device::Address> Domain::codes_in(const Domain& to, const TextTools& tools) {
  if (hashed_.lock().get() == &to) return hashed_codes_->address;
  return ranks(tools);  // those of all orders of these texts are the same
}

// Of a domain from `against`.
Result<device::Address> Domain::look_up(const DomainPtr& literals, const TextTools& tools) {
  Domain& to = *literals;
  if (to.ranks_) return to.ranks_->address;
  std::vector<BufferPtr> held;
  ASSIGN_OR_RETURN(const operators::Strings there, strings(tools, true, held));
  ASSIGN_OR_RETURN(const OnDevice sent, send_texts(*to.texts_, tools));
  const operators::Strings few{sent.handles->address, sent.pad->address, to.texts_->size(), sent.pad_bytes};
  Kept kept(tools);
  if (to.kind_ == Kind::same) {
    ASSIGN_OR_RETURN(const operators::Same same, tools.sql->same_as(there, few, kept));
    to.ranks_ = kept.at(same.numbers.data);
    to.literals_ = kept.at(same.literals);
  } else {
    ASSIGN_OR_RETURN(const operators::Vector places, tools.sql->places_among(there, few, kept));
    to.ranks_ = kept.at(places.data);
  }
  return to.ranks_->address;
}

Result<device::Address> Domain::translation(const DomainPtr& to, const TextTools& tools) {
  if (to->is_against() && to->base_.get() == this) return look_up(to, tools);
  CHECK(is_distinct_ && to->is_distinct_);
  const Domain* root = to.get();
  while (root->kind_ == Kind::more) root = root->base_.get();
  if (root->kind_ == Kind::distinct) {  // of this domain, or of it and others
    Domain* of = root->base_.get();
    if (of != this && of->kind_ == Kind::distinct) of = of->base_.get();  // hashed, then ranked
    if (of == this) return codes_in(*root, tools);
    if (of == base_.get() && root->is_ordered_) return ranks(tools);
    for (size_t k = 0; k < of->parts_.size(); ++k)
      if (of->parts_[k].get() == this) {
        ASSIGN_OR_RETURN(const device::Address codes, of->codes_in(*root, tools));
        return codes + 4 * of->firsts_[k];
      }
  }
  std::erase_if(translations_, [](const auto& t) { return t.second.to.expired(); });
  Translation& known = translations_[to.get()];
  if (known.table && known.to.lock() == to) return known.table->address;
  if (to->inserted_into().get() == this) {  // the codes between two inserted texts follow each other
    ASSIGN_OR_RETURN(BufferPtr table, tools.arena.allocate(count_ * 4));
    for (uint64_t k = 0, at = 0; k <= to->firsts_.size(); ++k) {  // after k of them
      const uint64_t end = k < to->firsts_.size() ? to->firsts_[k] - k : count_;
      if (end == at) continue;
      ASSIGN_OR_RETURN(const operators::Vector codes, tools.sql->numbers(at + k, end - at, *tools.memory));
      RETURN_IF_ERROR(tools.device.copy(table->address + 4 * at, codes.data, 4 * (end - at)));
      at = end;
    }
    known.table = std::move(table);
  } else {
    *tools.walked += count_;
    RETURN_IF_ERROR(readable(tools));
    std::vector<std::string> texts;
    TextReader reader;
    for (uint32_t i = 0; i < count_; ++i) texts.emplace_back(reader(*this, i));
    ASSIGN_OR_RETURN(const std::vector<uint32_t> table, to->codes_of(texts, tools));
    ASSIGN_OR_RETURN(known.table, upload(tools, table.data(), count_ * 4));
  }
  known.to = to;
  return known.table->address;
}

DomainPtr Domain::pieces(uint64_t start, uint64_t length) {
  std::weak_ptr<Domain>& known = pieces_[{start, length}];
  if (DomainPtr d = known.lock()) return d;
  DomainPtr d = derive();
  d->kind_ = Kind::piece;
  d->count_ = count_;
  d->piece_start_ = start;
  d->piece_length_ = length;
  d->is_distinct_ = d->is_ordered_ = count_ <= 1;
  known = d;
  return d;
}

DomainPtr Domain::mapped(const std::string& call, TextMap map) {
  std::weak_ptr<Domain>& known = mapped_[call];
  if (DomainPtr d = known.lock()) return d;
  DomainPtr d = derive();
  d->kind_ = Kind::mapped;
  d->count_ = count_;
  d->map_ = std::move(map);
  d->is_distinct_ = d->is_ordered_ = count_ <= 1;
  known = d;
  return d;
}

DomainPtr Domain::against(std::vector<std::string> literals, bool ordered) {
  auto d = std::make_shared<Domain>();
  d->kind_ = ordered ? Kind::places : Kind::same;
  d->is_kept_ = is_kept_;
  d->base_ = shared_from_this();
  d->count_ = ordered ? 2 * literals.size() + 1 : count_;
  d->texts_ = std::make_shared<const std::vector<std::string>>(std::move(literals));
  return d;
}

Result<DomainPtr> Domain::with(const std::vector<std::string>& more, const TextTools& tools) {
  ASSIGN_OR_RETURN(const std::vector<uint32_t> codes, codes_of(more, tools));
  std::vector<std::string> fresh;
  std::unordered_set<std::string_view> seen;
  for (size_t k = 0; k < more.size(); ++k)
    if (codes[k] == missing_code && seen.insert(more[k]).second) fresh.push_back(more[k]);
  if (fresh.empty()) return shared_from_this();
  std::weak_ptr<Domain>& known = more_[fresh];
  if (DomainPtr d = known.lock()) return d;
  DomainPtr d = derive();
  d->kind_ = Kind::more;
  d->count_ = count_ + fresh.size();
  d->is_distinct_ = true;
  d->texts_ = std::make_shared<const std::vector<std::string>>(std::move(fresh));
  known = d;
  return d;
}

Result<DomainPtr> Domain::inserted(std::vector<std::string> more, const TextTools& tools) {
  CHECK(is_ordered_);
  if (more.empty()) return shared_from_this();
  std::sort(more.begin(), more.end());
  more.erase(std::unique(more.begin(), more.end()), more.end());
  ASSIGN_OR_RETURN(const std::vector<uint32_t> codes, codes_of(more, tools));
  std::vector<std::string> fresh;
  for (size_t k = 0; k < more.size(); ++k)
    if (codes[k] == missing_code) fresh.push_back(std::move(more[k]));
  if (fresh.empty()) return shared_from_this();
  auto d = std::make_shared<Domain>();
  d->kind_ = Kind::inserted;
  d->is_kept_ = is_kept_;
  d->base_ = shared_from_this();
  d->count_ = count_ + fresh.size();
  d->is_distinct_ = d->is_ordered_ = true;
  for (const std::string& text : fresh) d->firsts_.push_back(place_of(text) + d->firsts_.size());
  d->texts_ = std::make_shared<const std::vector<std::string>>(std::move(fresh));
  return d;
}

}  // namespace rndn::runtime
