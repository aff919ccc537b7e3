#include "runtime/memory/text_domains.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <unordered_set>

#include "libraries/base/errors/check.h"
#include "libraries/base/system/parallel.h"

namespace rndn::runtime {

namespace {

Result<BufferPtr> upload(const TextTools& tools, const void* from, uint64_t bytes) {
  ASSIGN_OR_RETURN(BufferPtr buffer, tools.arena.allocate(bytes));
  RETURN_IF_ERROR(tools.device.copy_to_device(buffer->address, from, bytes));
  return buffer;
}

// In whole words, as operators want it.
Result<BufferPtr> upload_pad(const TextTools& tools, std::string_view pad) {
  const uint64_t whole = (std::max<uint64_t>(pad.size(), 1) + 7) / 8 * 8;
  ASSIGN_OR_RETURN(BufferPtr buffer, tools.arena.allocate(whole));
  RETURN_IF_ERROR(tools.device.fill(buffer->address + whole - 8, 0, 8));
  RETURN_IF_ERROR(tools.device.copy_to_device(buffer->address, pad.data(), pad.size()));
  return buffer;
}

// What stays of an operator's results.
class Kept final : public operators::Memory {
 public:
  explicit Kept(const TextTools& tools) : tools_(tools) {}
  Result<device::Address> temporary(uint64_t bytes) override { return tools_.memory->temporary(bytes); }
  Result<device::Address> result(uint64_t bytes) override {
    ASSIGN_OR_RETURN(BufferPtr buffer, tools_.arena.allocate(bytes));
    results_.push_back(buffer);
    return buffer->address;
  }
  Result<device::Mapped> mapped(uint64_t bytes) override { return tools_.memory->mapped(bytes); }
  BufferPtr at(device::Address address) const {
    for (const BufferPtr& b : results_)
      if (b->address == address) return b;
    return nullptr;
  }

 private:
  const TextTools& tools_;
  std::vector<BufferPtr> results_;
};

constexpr uint64_t handle(uint64_t offset, uint64_t length) { return offset << 24 | length; }
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

TextReader::Made::Made(const TextMap& map)
    : function(*text::TextFunction::make(map.id)), arguments(map.constants) {}

std::string_view TextReader::operator()(Domain& domain, uint32_t code) { return domain.read(code, *this); }

std::string_view Domain::read(uint32_t code, TextReader& reader) {
  CHECK(code < count_, "code {} of a domain of {} texts", code, count_);
  switch (kind_) {
    case Kind::texts: return (*texts_)[code];
    case Kind::dictionary: return column_->dictionary->values[code];
    case Kind::column: return column_->text_at(code);
    case Kind::piece: {
      std::string_view whole = base_->read(code, reader);
      return piece_start_ >= whole.size() ? std::string_view() : whole.substr(piece_start_, piece_length_);
    }
    case Kind::more: return code < base_->count_ ? base_->read(code, reader) : (*texts_)[code - base_->count_];
    case Kind::distinct: return base_->read(base_->first_[code], reader);
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

std::optional<uint32_t> Domain::code_of(std::string_view wanted, const TextTools& tools) {
  if (is_against()) {  // where it is among the literals
    const auto at = std::lower_bound(texts_->begin(), texts_->end(), wanted);
    const auto place = static_cast<uint32_t>(at - texts_->begin());
    if (at == texts_->end() || *at != wanted) return std::nullopt;
    return kind_ == Kind::same ? place : 2 * place + 1;
  }
  CHECK(is_distinct_);
  TextReader reader;
  if (is_ordered_) {  // by bisection, without a table
    const uint64_t place = place_of(wanted);
    if (place < count_ && reader(*this, static_cast<uint32_t>(place)) == wanted) return static_cast<uint32_t>(place);
    return std::nullopt;
  }
  uint32_t first = 0;  // that is not looked up in base_
  if (kind_ == Kind::more) {
    if (auto code = base_->code_of(wanted, tools)) return code;
    first = static_cast<uint32_t>(base_->count_);
  }
  if (codes_.empty()) {
    *tools.walked += count_ - first;
    std::unordered_map<std::string_view, uint32_t> codes;
    codes.reserve(count_ - first);
    // Texts of dictionaries and of programs, which stay where they are.
    for (uint32_t i = first; i < count_; ++i) codes.emplace(reader(*this, i), i);
    codes_ = std::move(codes);  // all of them
  }
  auto at = codes_.find(wanted);
  return at == codes_.end() ? std::nullopt : std::optional(at->second);
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
  ASSIGN_OR_RETURN(made.pad, upload_pad(tools, pad));
  return made;
}

// The strings of a function's texts. Those that the device knows no letters of are made by the host.
Result<Domain::OnDevice> Domain::map_strings(const TextTools& tools) {
  constexpr uint64_t piece = 4096;
  const auto texts_at = [&](uint64_t count, auto&& code_of) {
    *tools.walked += count;
    std::vector<std::string> texts(count);
    parallel_for((count + piece - 1) / piece, [&](size_t k) {
      TextReader reader;
      for (uint64_t i = k * piece; i < std::min<uint64_t>(count, (k + 1) * piece); ++i)
        texts[i] = reader(*this, code_of(i));
    });
    return texts;
  };
  if (!map_.is_on_device())
    return send_texts(texts_at(count_, [](uint64_t i) { return static_cast<uint32_t>(i); }), tools);
  std::vector<BufferPtr> held;
  ASSIGN_OR_RETURN(const operators::Strings base, base_->strings(tools, true, held));
  const BufferPtr base_handles = held[held.size() - 2], base_pad = held.back();
  Kept kept(tools);
  if (map_.id == hir::TextFunctionId::upper || map_.id == hir::TextFunctionId::lower) {
    ASSIGN_OR_RETURN(const operators::Cased cased,
                     tools.sql->to_case(base, map_.id == hir::TextFunctionId::upper, kept));
    if (cased.others.capacity == 0) return OnDevice{base_handles, kept.at(cased.strings.pad), base.pad_bytes};
    std::vector<int64_t> codes(cased.others.capacity);
    RETURN_IF_ERROR(tools.device.copy_to_host(codes.data(), cased.others.data, 8 * codes.size()));
    const std::vector<std::string> texts =
        texts_at(codes.size(), [&](uint64_t i) { return static_cast<uint32_t>(codes[i]); });
    ASSIGN_OR_RETURN(const OnDevice sent, send_texts(texts, tools));
    const operators::Strings others{sent.handles->address, sent.pad->address, texts.size(), sent.pad_bytes};
    ASSIGN_OR_RETURN(const operators::Strings all, tools.sql->replace(cased.strings, cased.others, others, kept));
    return OnDevice{kept.at(all.handles), kept.at(all.pad), all.pad_bytes};
  }
  const bool from_start = map_.id == hir::TextFunctionId::left;
  const auto number = [&](size_t k) {
    return static_cast<uint64_t>(std::min<__int128>(map_.constants[k].integer, UINT32_MAX));
  };
  const uint64_t first = from_start ? 0 : number(1) - 1;
  const uint64_t most = from_start ? number(1) : map_.constants.size() > 2 ? number(2) : UINT64_MAX;
  ASSIGN_OR_RETURN(const operators::Strings cut, tools.sql->cut(base, first, most, true, kept));
  return OnDevice{kept.at(cut.handles), base_pad, base.pad_bytes};
}

bool TextMap::is_on_device() const {
  const auto at_least = [&](size_t k, int64_t least) { return k >= constants.size() || constants[k].integer >= least; };
  switch (id) {
    case hir::TextFunctionId::upper:
    case hir::TextFunctionId::lower: return true;
    case hir::TextFunctionId::left: return variable == 0 && at_least(1, 0);
    case hir::TextFunctionId::substring: return variable == 0 && at_least(1, 1) && at_least(2, 0);
    default: return false;
  }
}

Result<Domain::OnDevice> Domain::make_strings(const TextTools& tools, bool keep) {
  std::vector<BufferPtr> held;
  Kept kept(tools);
  switch (kind_) {
    case Kind::texts:
    case Kind::dictionary: {
      *tools.walked += count_;
      const auto all = texts();
      return send_texts(all ? std::span<const std::string>(*all).first(count_) : std::span<const std::string>(), tools);
    }
    case Kind::column: {
      OnDevice made{.handles = nullptr, .pad = nullptr, .pad_bytes = column_->pad->size()};
      ASSIGN_OR_RETURN(made.handles, upload(tools, column_->as<uint64_t>(), count_ * 8));
      ASSIGN_OR_RETURN(made.pad, upload_pad(tools, column_->pad->text()));
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
      ASSIGN_OR_RETURN(const BufferPtr first, upload(tools, base_->first_.data(), 4 * count_));
      const operators::Vector codes{.type = operators::Type::u32, .data = first->address, .capacity = count_};
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
      std::vector<std::string> texts;
      TextReader reader;
      for (uint32_t i = 0; i < count_; ++i) texts.emplace_back(reader(*this, i));
      return send_texts(texts, tools);
    }
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
  held.push_back(there.handles);
  held.push_back(there.pad);
  return operators::Strings{there.handles->address, there.pad->address, count_, there.pad_bytes};
}

bool Domain::drop_strings() {
  const bool there = strings_.handles != nullptr;
  strings_ = {};
  return there;
}

Result<void> Domain::rank(const TextTools& tools) {
  if (ranks_) return {};
  if (count_ > few_texts_of_domain) {
    std::vector<BufferPtr> held;
    ASSIGN_OR_RETURN(operators::Strings there, strings(tools, kind_ == Kind::column, held));
    ASSIGN_OR_RETURN(const operators::Ranks made, tools.sql->rank(there, *tools.memory));
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
  ASSIGN_OR_RETURN(ranks_, upload(tools, ranks.data(), count_ * 4));
  first_ = std::move(first);
  distinct_count_ = first_.size();
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
    std::vector<uint32_t> table(count_);
    TextReader reader;
    for (uint32_t i = 0; i < count_; ++i) table[i] = to->code_of(reader(*this, i), tools).value_or(missing_code);
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
