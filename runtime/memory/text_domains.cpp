#include "runtime/memory/text_domains.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <unordered_set>

#include "libraries/base/errors/check.h"

namespace rndn::runtime {

namespace {
constexpr uint64_t few = 4096;  // texts that the host ranks while a launch would start

Result<BufferPtr> upload(const TextTools& tools, const void* from, uint64_t bytes) {
  ASSIGN_OR_RETURN(BufferPtr buffer, tools.arena.allocate(bytes));
  RETURN_IF_ERROR(tools.device.copy_to_device(buffer->address, from, bytes));
  return buffer;
}

constexpr uint64_t handle(uint64_t offset, uint64_t length) { return offset << 24 | length; }
constexpr uint64_t offset_of(uint64_t handle) { return handle >> 24; }
constexpr uint64_t length_of(uint64_t handle) { return handle & 0xffffff; }
}  // namespace

DomainPtr Domain::of_column(std::shared_ptr<const data::Column> column, std::vector<DomainPtr>* keeper) {
  auto d = std::make_shared<Domain>();
  d->kind_ = column->encoding == data::Encoding::dictionary ? Kind::dictionary : Kind::column;
  d->is_distinct_ = d->kind_ == Kind::dictionary;
  d->count_ = d->is_distinct_ ? column->dictionary->values.size() : column->rows;
  d->column_ = std::move(column);
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

std::string_view Domain::text(uint32_t code) {
  CHECK(code < count_, "code {} of a domain of {} texts", code, count_);
  switch (kind_) {
    case Kind::texts: return (*texts_)[code];
    case Kind::dictionary: return column_->dictionary->values[code];
    case Kind::column: return column_->text_at(code);
    case Kind::piece: {
      std::string_view whole = base_->text(code);
      return piece_start_ >= whole.size() ? std::string_view() : whole.substr(piece_start_, piece_length_);
    }
    case Kind::more: return code < base_->count_ ? base_->text(code) : (*texts_)[code - base_->count_];
    case Kind::distinct: return base_->text(base_->first_[code]);
    case Kind::inserted: {
      const auto at = std::lower_bound(firsts_.begin(), firsts_.end(), code);
      const auto before = static_cast<uint32_t>(at - firsts_.begin());
      return at != firsts_.end() && *at == code ? (*texts_)[before] : base_->text(code - before);
    }
    case Kind::joined: {
      const auto part = static_cast<size_t>(std::upper_bound(firsts_.begin(), firsts_.end(), code) - firsts_.begin()) - 1;
      return parts_[part]->text(static_cast<uint32_t>(code - firsts_[part]));
    }
  }
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
  uint64_t low = 0, high = count_;
  while (low < high) {
    const uint64_t middle = (low + high) / 2;
    if (text(static_cast<uint32_t>(middle)) < wanted)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

std::optional<uint32_t> Domain::code_of(std::string_view wanted, const TextTools& tools) {
  CHECK(is_distinct_);
  if (is_ordered_) {  // by bisection, without a table
    const uint64_t place = place_of(wanted);
    if (place < count_ && text(static_cast<uint32_t>(place)) == wanted) return static_cast<uint32_t>(place);
    return std::nullopt;
  }
  uint32_t first = 0;  // that is not looked up in base_
  if (kind_ == Kind::more) {
    if (auto code = base_->code_of(wanted, tools)) return code;
    first = static_cast<uint32_t>(base_->count_);
  }
  if (codes_.empty()) {
    *tools.walked += count_ - first;
    codes_.reserve(count_ - first);
    for (uint32_t i = first; i < count_; ++i) codes_.emplace(text(i), i);
  }
  auto at = codes_.find(wanted);
  return at == codes_.end() ? std::nullopt : std::optional(at->second);
}

void Domain::pack(Packed& packed) const {
  auto add = [&](std::string_view text) {
    packed.made_handles.push_back(handle(packed.made_pad.size(), text.size()));
    packed.made_pad += text;
  };
  auto made = [&] {
    packed.handles = packed.made_handles.data();
    packed.pad = packed.made_pad;
  };
  switch (kind_) {
    case Kind::texts:
      for (uint64_t i = 0; i < count_; ++i) add((*texts_)[i]);
      return made();
    case Kind::dictionary:
      for (const std::string& value : column_->dictionary->values) add(value);
      return made();
    case Kind::column:
      packed.handles = column_->as<uint64_t>();
      packed.pad = column_->pad->text();
      return;
    case Kind::piece: {
      base_->pack(packed);
      std::vector<uint64_t> pieces(count_);
      for (uint64_t i = 0; i < count_; ++i) {
        const uint64_t length = length_of(packed.handles[i]), start = std::min(piece_start_, length);
        pieces[i] = handle(offset_of(packed.handles[i]) + start, std::min(piece_length_, length - start));
      }
      packed.made_handles = std::move(pieces);
      packed.handles = packed.made_handles.data();
      return;
    }
    case Kind::more: {
      Packed base;
      base_->pack(base);
      packed.made_handles.assign(base.handles, base.handles + base_->count_);
      packed.made_pad = base.pad;
      for (const std::string& text : *texts_) add(text);
      return made();
    }
    case Kind::distinct: {
      base_->pack(packed);
      std::vector<uint64_t> distinct(count_);
      for (uint64_t i = 0; i < count_; ++i) distinct[i] = packed.handles[base_->first_[i]];
      packed.made_handles = std::move(distinct);
      packed.handles = packed.made_handles.data();
      return;
    }
    case Kind::inserted: {
      Packed base;
      base_->pack(base);
      packed.made_pad = base.pad;
      const uint64_t* next = base.handles;
      for (uint64_t i = 0, k = 0; i < count_; ++i)
        if (k < firsts_.size() && firsts_[k] == i)
          add((*texts_)[k++]);
        else
          packed.made_handles.push_back(*next++);
      return made();
    }
    case Kind::joined:
      for (const DomainPtr& part : parts_) {
        Packed of_part;
        part->pack(of_part);
        const uint64_t shift = handle(packed.made_pad.size(), 0);
        for (uint64_t i = 0; i < part->count_; ++i) packed.made_handles.push_back(of_part.handles[i] + shift);
        packed.made_pad += of_part.pad;
      }
      return made();
  }
}

Result<operators::Strings> Domain::strings(const TextTools& tools, bool keep, std::vector<BufferPtr>& held) {
  BufferPtr handles = handles_, pad = pad_;
  if (!handles) {
    *tools.walked += count_;
    Packed packed;
    pack(packed);
    longest_ = 0;
    for (uint64_t i = 0; i < count_; ++i) longest_ = std::max(longest_, length_of(packed.handles[i]));
    if (kind_ == Kind::piece) {  // the pad is the base's
      ASSIGN_OR_RETURN(operators::Strings base, base_->strings(tools, keep, held));
      (void)base;
      pad = base_->pad_ ? base_->pad_ : held.back();
    } else {
      ASSIGN_OR_RETURN(pad, upload(tools, packed.pad.data(), packed.pad.size()));
    }
    ASSIGN_OR_RETURN(handles, upload(tools, packed.handles, count_ * 8));
  }
  if (keep) {
    handles_ = handles;
    pad_ = pad;
  }
  held.push_back(handles);
  held.push_back(pad);
  return operators::Strings{handles->address, pad->address, count_, longest_};
}

bool Domain::drop_strings() {
  const bool there = handles_ != nullptr;
  handles_ = pad_ = nullptr;
  return there;
}

Result<void> Domain::rank(const TextTools& tools) {
  if (ranks_) return {};
  if (tools.rank && count_ > few) {
    std::vector<BufferPtr> held;
    ASSIGN_OR_RETURN(operators::Strings there, strings(tools, false, held));
    ASSIGN_OR_RETURN(const operators::Ranks made, tools.rank->rank(there, *tools.memory));
    ASSIGN_OR_RETURN(BufferPtr ranks, tools.arena.allocate(count_ * 4));
    RETURN_IF_ERROR(tools.device.copy(ranks->address, made.of.data, count_ * 4));
    distinct_count_ = made.first.capacity;
    std::vector<int64_t> first(distinct_count_);
    RETURN_IF_ERROR(tools.device.copy_to_host(first.data(), made.first.data, 8 * distinct_count_));
    first_.assign(first.begin(), first.end());
    ranks_ = std::move(ranks);
    return {};
  }
  *tools.walked += count_;
  std::vector<uint32_t> order(count_), ranks(count_);
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return text(a) < text(b); });
  for (uint64_t i = 0; i < count_; ++i) {
    if (i == 0 || text(order[i]) != text(order[i - 1])) first_.push_back(order[i]);
    ranks[order[i]] = static_cast<uint32_t>(first_.size() - 1);
  }
  distinct_count_ = first_.size();
  ASSIGN_OR_RETURN(ranks_, upload(tools, ranks.data(), count_ * 4));
  return {};
}

Result<device::Address> Domain::ranks(const TextTools& tools) {
  RETURN_IF_ERROR(rank(tools));
  return ranks_->address;
}

Result<DomainPtr> Domain::distinct(const TextTools& tools) {
  return is_distinct_ ? Result<DomainPtr>(shared_from_this()) : ordered(tools);
}

Result<DomainPtr> Domain::ordered(const TextTools& tools) {
  if (is_ordered_) return shared_from_this();
  if (auto known = ordered_.lock()) return known;
  RETURN_IF_ERROR(rank(tools));
  DomainPtr d = derive();
  d->kind_ = Kind::distinct;
  d->is_distinct_ = d->is_ordered_ = true;
  d->count_ = distinct_count_;
  ordered_ = d;
  return d;
}

Result<device::Address> Domain::translation(const DomainPtr& to, const TextTools& tools) {
  CHECK(is_distinct_ && to->is_distinct_);
  const Domain* root = to.get();
  while (root->kind_ == Kind::more) root = root->base_.get();
  if (root->kind_ == Kind::distinct) {  // of this domain, or of it and others: ranks are codes there
    Domain& ranked = *root->base_;
    if (&ranked == this) return ranks(tools);
    for (size_t k = 0; k < ranked.parts_.size(); ++k)
      if (ranked.parts_[k].get() == this) {
        ASSIGN_OR_RETURN(const device::Address ranks, ranked.ranks(tools));
        return ranks + 4 * ranked.firsts_[k];
      }
  }
  std::erase_if(translations_, [](const auto& t) { return t.second.to.expired(); });
  Translation& known = translations_[to.get()];
  if (known.table && known.to.lock() == to) return known.table->address;
  *tools.walked += count_;
  std::vector<uint32_t> table(count_);
  if (to->inserted_into().get() == this) {
    uint32_t before = 0;  // inserted texts
    for (uint32_t i = 0; i < count_; ++i) {
      while (before < to->firsts_.size() && to->firsts_[before] == uint64_t{i} + before) ++before;
      table[i] = i + before;
    }
  } else {
    for (uint32_t i = 0; i < count_; ++i) table[i] = to->code_of(text(i), tools).value_or(missing_code);
  }
  ASSIGN_OR_RETURN(known.table, upload(tools, table.data(), count_ * 4));
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

DomainPtr Domain::with(const std::vector<std::string>& more, const TextTools& tools) {
  CHECK(is_distinct_);
  std::vector<std::string> fresh;
  std::unordered_set<std::string_view> seen;
  for (const std::string& text : more)
    if (!code_of(text, tools) && seen.insert(text).second) fresh.push_back(text);
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

DomainPtr Domain::inserted(std::vector<std::string> more, const TextTools& tools) {
  CHECK(is_ordered_);
  std::sort(more.begin(), more.end());
  more.erase(std::unique(more.begin(), more.end()), more.end());
  std::erase_if(more, [&](const std::string& text) { return code_of(text, tools).has_value(); });
  if (more.empty()) return shared_from_this();
  auto d = std::make_shared<Domain>();
  d->kind_ = Kind::inserted;
  d->is_kept_ = is_kept_;
  d->base_ = shared_from_this();
  d->count_ = count_ + more.size();
  d->is_distinct_ = d->is_ordered_ = true;
  for (const std::string& text : more) d->firsts_.push_back(place_of(text) + d->firsts_.size());
  d->texts_ = std::make_shared<const std::vector<std::string>>(std::move(more));
  return d;
}

}  // namespace rndn::runtime
