// Text in a run: which domain a vector's codes belong to, and bringing vectors into one domain before a kernel or an operator compares them.
#include <algorithm>
#include <cstring>

#include "libraries/base/system/parallel.h"
#include "runtime/run/execution.h"

namespace rndn::runtime {

using device::Address;
using reference::Value;

namespace {
constexpr uint64_t few_texts = 1024;  // texts of the host that are looked up rather than made a domain of their own

// As many elements as the other has, whose number may have been asked for meanwhile.
void lie_as(Item& v, const Item& other) {
  v.capacity = other.capacity;
  v.exact = other.exact;
  v.stored = other.stored;
  v.data = other.data;
  v.data_buffer = other.data_buffer;
  v.size_slot = other.size_slot;
  v.size_buffer = other.size_buffer;
}

// Texts of the program: literals, and short results of the host.
bool looked_up(const Item& v) { return !v.domain && !v.column && v.host && v.capacity <= few_texts; }
}  // namespace

TextTools Run::text_tools() {
  text_memory_.clear();  // of the call before
  return {device_, engine_.kept, sql_, &text_memory_, &texts_walked_,
          [this](const std::shared_ptr<const data::Bytes>& bytes) {
            auto scope = timings_.measure(Phase::transfer, "texts to device");
            return engine_.send(bytes, bytes->size(), !plan_.options.cache);
          }};
}

// The domain of the item's own codes, which may not be there yet.
DomainPtr Run::domain_of(Item& v) {
  if (v.domain) return v.domain;
  if (v.column) {
    DomainPtr& known = engine_.domains[domain_key(*v.column)];
    if (!known) known = Domain::of_column(v.column, &engine_.derived_domains);
    v.domain = known;
  } else {
    v.domain = Domain::of_texts(
        v.host->texts ? v.host->plain_texts() : std::make_shared<const std::vector<std::string>>(), v.capacity);
    v.codes_are_rows = true;
    v.bounds = {0, static_cast<int64_t>(std::max<uint64_t>(1, v.capacity)) - 1};
  }
  return v.domain;
}

Result<void> Run::codes_to_device(Item& v) {
  (void)domain_of(v);
  ASSIGN_OR_RETURN(uint64_t size, size_of(v));
  if (!v.codes_are_rows) return send_column(v);
  v.stored = {};
  OperatorMemory memory(*this, arena_of(v));
  ASSIGN_OR_RETURN(const operators::Vector rows, sql_->numbers(0, size, memory));
  note_library_launches();
  v.data_buffer = memory.buffer(rows.data);
  v.data = rows.data;
  return {};
}

Result<std::vector<std::string>> Run::decode(Item& v, std::span<const uint32_t> codes) {
  const DomainPtr domain = domain_of(v);
  const auto unknown = std::find_if(codes.begin(), codes.end(), [&](uint32_t code) { return code >= domain->count(); });
  if (unknown != codes.end())
    return Error{Fault::internal, fmt::format("a text has code {} of {}", *unknown, domain->count())};
  std::vector<std::string> texts(codes.size());
  std::vector<uint32_t> wanted(codes.begin(), codes.end());
  ASSIGN_OR_RETURN(const DomainPtr readable, domain->texts_of(wanted, text_tools()));
  constexpr uint64_t piece = 1024;
  auto decode_piece = [&](size_t k) {
    TextReader reader;
    for (uint64_t i = k * piece; i < std::min<uint64_t>(codes.size(), (k + 1) * piece); ++i)
      texts[i] = reader(*readable, wanted[i]);
  };
  const size_t pieces = (codes.size() + piece - 1) / piece;
  if (pieces > 2 && engine_.pool)
    engine_.pool->run(pieces, [&](size_t k, unsigned) { decode_piece(k); });
  else
    for (size_t k = 0; k < pieces; ++k) decode_piece(k);
  return texts;
}

// The domain in which all of `texts` have codes: distinct ones where `needs` or the mixture asks for it.
Result<DomainPtr> Run::common_domain(std::span<const ItemPtr> texts, const TextClasses::Class& needs) {
  if (needs.ordered) return ordered_domain(texts);
  DomainPtr best;
  bool mixed = false, literals = false;
  for (const ItemPtr& v : texts) {
    if (looked_up(*v)) {
      literals = true;
      continue;
    }
    DomainPtr d = domain_of(*v);
    if (best && d != best) mixed = true;
    if (!best || d->count() > best->count()) best = d;
  }
  if (!best) {
    if (texts.empty()) return Domain::of_texts(nullptr, 0);
    best = domain_of(*texts[0]);
  }
  if (!mixed && !literals && !needs.compared && !best->is_pieces()) return best;
  ASSIGN_OR_RETURN(best, best->distinct(text_tools()));
  // A text that the domain lacks has the one code `missing_code`: enough while a single vector can have such texts, since nothing else has that code.
  size_t strangers = 0;
  uint64_t foreign_texts = 0;
  std::vector<DomainPtr> of{best};
  std::vector<std::string> more;
  for (const ItemPtr& v : texts) {
    if (looked_up(*v)) {
      const size_t before = more.size();
      for (uint64_t i = 0; i < v->capacity; ++i) more.emplace_back(v->host->text(i));
      ASSIGN_OR_RETURN(const std::vector<uint32_t> codes, best->codes_of(std::span(more).subspan(before), text_tools()));
      strangers += std::count(codes.begin(), codes.end(), missing_code) != 0;
    } else if (v->domain != best) {
      ASSIGN_OR_RETURN(DomainPtr own, v->domain->distinct(text_tools()));
      if (best->extends(*own)) continue;
      ++strangers;
      if (std::find(of.begin(), of.end(), own) != of.end()) continue;
      of.push_back(own);
      foreign_texts += own->count();
    }
  }
  // A few texts are looked up by the host, and many are ranked together by the device.
  const bool many = foreign_texts > few_texts;
  if (!needs.escapes && strangers < 2 && !many) return best;
  // In what becomes a result, and where several vectors have texts that the domain lacks, every text keeps a code of its own.
  const bool all_texts = needs.escapes || strangers > 1;
  if (!all_texts) more.clear();
  if (of.size() == 1) return best->with(more, text_tools());
  return known_domain(false, std::move(of), std::move(more), [&](Engine::State::CommonDomain& made) -> Result<DomainPtr> {
    if (!many) {
      DomainPtr all = best;
      for (const DomainPtr& d : std::span(made.of).subspan(1)) {
        texts_walked_ += d->count();
        RETURN_IF_ERROR(d->readable(text_tools()));
        std::vector<std::string> of_domain;
        TextReader reader;
        for (uint32_t c = 0; c < d->count(); ++c) of_domain.emplace_back(reader(*d, c));
        ASSIGN_OR_RETURN(all, all->with(of_domain, text_tools()));
      }
      return all->with(made.literals, text_tools());
    }
    ASSIGN_OR_RETURN(const DomainPtr all, Domain::joined(made.of)->distinct(text_tools()));
    return all->with(made.literals, text_tools());
  });
}

// Are the texts of the class compared with literals alone, which go nowhere else?
bool Run::only_with_literals(const TextClasses::Class& texts, const hir::Function& f,
                             const std::vector<ItemPtr>& inputs) const {
  if (!texts.compared || texts.among_rows || (texts.ordered && texts.escapes)) return false;
  const auto is_literal = [&](uint32_t variable) {
    for (size_t i = 0; i < inputs.size(); ++i)
      if (index(f.parameters[i]) == variable) return inputs[i]->kind == Item::vector && looked_up(*inputs[i]);
    return false;
  };
  for (const std::vector<uint32_t>& operands : texts.comparisons)
    if (std::count_if(operands.begin(), operands.end(), is_literal) + 1 < std::ssize(operands)) return false;
  return std::none_of(texts.carried.begin(), texts.carried.end(), is_literal);
}

// The domain for comparisons of one column's texts with literals, where codes of distinct texts are not there or would be other ones than the
// column's in the result; null: it is another case.
Result<DomainPtr> Run::literal_domain(std::span<const ItemPtr> texts, const TextClasses::Class& needs) {
  DomainPtr of;
  std::vector<std::string> literals;
  for (const ItemPtr& v : texts) {
    if (looked_up(*v)) {
      for (uint64_t i = 0; i < v->capacity; ++i) literals.emplace_back(v->host->text(i));
      continue;
    }
    const DomainPtr d = domain_of(*v);
    if (of && d != of) return DomainPtr();
    of = d;
  }
  if (!of || literals.empty() || literals.size() > few_texts || of->is_distinct() ||
      (of->has_ranks() && !needs.escapes))
    return DomainPtr();
  return known_domain(needs.ordered, {of}, std::move(literals), [&](Engine::State::CommonDomain& made) {
    return Result<DomainPtr>(of->against(made.literals, needs.ordered));
  });
}

// A domain of all these texts whose codes are in byte order.
Result<DomainPtr> Run::ordered_domain(std::span<const ItemPtr> texts) {
  std::vector<DomainPtr> of;
  std::vector<std::string> literals;
  for (const ItemPtr& v : texts) {
    if (looked_up(*v)) {
      for (uint64_t i = 0; i < v->capacity; ++i) literals.emplace_back(v->host->text(i));
      continue;
    }
    ASSIGN_OR_RETURN(DomainPtr d, domain_of(*v)->distinct(text_tools()));
    if (std::find(of.begin(), of.end(), d) == of.end()) of.push_back(d);
  }
  return known_domain(true, std::move(of), std::move(literals), [&](Engine::State::CommonDomain& made) -> Result<DomainPtr> {
    if (made.of.empty()) return Domain::of_sorted(made.literals);
    ASSIGN_OR_RETURN(const DomainPtr all, (made.of.size() == 1 ? made.of[0] : Domain::joined(made.of))->ordered(text_tools()));
    return all->inserted(made.literals, text_tools());
  });
}

// What `make` gives for these domains and literals, once for all runs where the domains stay.
Result<DomainPtr> Run::known_domain(bool ordered, std::vector<DomainPtr> of, std::vector<std::string> literals,
                                    const std::function<Result<DomainPtr>(Engine::State::CommonDomain&)>& make) {
  constexpr size_t most_kept = 32;
  std::sort(literals.begin(), literals.end());
  literals.erase(std::unique(literals.begin(), literals.end()), literals.end());
  std::vector<Engine::State::CommonDomain>& known = engine_.common_domains;
  const auto at = std::find_if(known.begin(), known.end(), [&](const Engine::State::CommonDomain& k) {
    return k.ordered == ordered && k.of == of && k.literals == literals;
  });
  if (at != known.end()) {
    std::rotate(at, at + 1, known.end());
    return known.back().domain;
  }
  Engine::State::CommonDomain made{.ordered = ordered, .of = std::move(of), .literals = std::move(literals), .domain = nullptr};
  ASSIGN_OR_RETURN(made.domain, make(made));
  const DomainPtr domain = made.domain;
  if (!std::all_of(made.of.begin(), made.of.end(), [](const DomainPtr& d) { return d->is_kept(); })) return domain;
  // Their tables are as long as the column, and cheap to make.
  constexpr std::ptrdiff_t most_against = 4;
  const auto is_against = [](const Engine::State::CommonDomain& k) { return k.domain->is_against(); };
  if (domain->is_against() && std::count_if(known.begin(), known.end(), is_against) >= most_against)
    known.erase(std::find_if(known.begin(), known.end(), is_against));
  if (known.size() >= most_kept) known.erase(known.begin());
  known.push_back(std::move(made));
  return domain;
}

// What becomes of the inputs in texts_to_one_domain, for a forecast: `domains` gets one that has as many codes at
// least, and inputs that are translated their form. False: there may be more of them.
bool Run::expect_domains(const TextClasses& texts, const hir::Function& f, std::vector<ItemPtr>& inputs,
                         std::vector<DomainPtr>& domains) {
  domains.assign(texts.classes.size(), nullptr);
  bool sure = true;
  for (const bool second : {false, true})
    for (size_t i = 0; i < inputs.size(); ++i) {
      const int c = texts.of[index(f.parameters[i])];
      if (c < 0) continue;
      DomainPtr& all = domains[static_cast<size_t>(c)];
      const bool is_vector = inputs[i]->kind == Item::vector;
      ItemPtr& v = is_vector ? inputs[i] : inputs[i]->parts[0];
      if (!second) {
        if (v->domain && (!all || v->domain->count() > all->count())) all = v->domain;
        continue;
      }
      const TextClasses::Class& needs = texts.classes[static_cast<size_t>(c)];
      const bool stays = v->domain && v->domain == all && (!needs.ordered || all->is_ordered()) &&
                         (!needs.compared || all->is_distinct());
      sure &= stays || looked_up(*v) || !(needs.escapes || needs.among_rows);
      if (stays || !is_vector) continue;
      v = std::make_shared<Item>(*v);
      v->stored = {};
      if (!looked_up(*v)) v->bounds = {};
    }
  return sure;
}

// The same texts as codes of `domain`: `v` itself, or an item that `v` remembers.
Result<ItemPtr> Run::in_domain(const ItemPtr& v, const DomainPtr& domain) {
  if (recording_) held_domains_.push_back(domain);  // it keeps the tables that translate into it
  if (v->domain == domain) {
    RETURN_IF_ERROR(to_device(v));
    return v;
  }
  if (v->translated && v->translated->domain == domain) {
    RETURN_IF_ERROR(size_to_device(*v->translated));
    return v->translated;
  }
  auto made = std::make_shared<Item>();
  made->kind = Item::vector;
  made->type = v->type;
  made->capacity = v->capacity;
  made->exact = v->exact;
  made->size_id = v->size_id;
  made->lifetime = v->lifetime;
  made->domain = domain;
  if (looked_up(*v)) {
    std::vector<std::string> texts;
    for (uint64_t i = 0; i < v->capacity; ++i) texts.emplace_back(v->host->text(i));
    ASSIGN_OR_RETURN(const std::vector<uint32_t> codes, domain->codes_of(texts, text_tools()));
    if (!codes.empty()) {
      const auto [low, high] = std::minmax_element(codes.begin(), codes.end());
      made->bounds = {*low, *high};
    }
    auto scope = timings_.measure(Phase::transfer, "to device");
    ASSIGN_OR_RETURN(made->data_buffer, arena_of(*v).allocate(codes.size() * 4));
    made->data = made->data_buffer->address;
    RETURN_IF_ERROR(device_.copy_to_device(made->data, codes.data(), codes.size() * 4));
    RETURN_IF_ERROR(size_to_device(*made));
    if (domain->is_against() && domain->meaning() != domain) {  // these are places among its literals
      RETURN_IF_ERROR(domain->base()->translation(domain, text_tools()));
      ASSIGN_OR_RETURN(const ItemPtr codes, translate(made, domain->literal_codes(), missing_code));
      lie_as(*made, *codes);
      made->bounds = {};
    }
    made->host = v->host;
    v->translated = made;
    return made;
  }
  // The elements become those of `to`, or the table does, where it is the column.
  const auto through = [&](Address table, uint64_t entries, Item& to) -> Result<void> {
    if (v->codes_are_rows && v->exact && v->capacity == entries) {
      to.stored = {};
      to.data = table;
    } else {
      RETURN_IF_ERROR(to_device(v));
      ASSIGN_OR_RETURN(const ItemPtr codes, translate(v, table, entries));
      lie_as(to, *codes);
    }
    return to.exact ? size_to_device(to) : Result<void>();
  };
  const DomainPtr own = domain_of(*v), into = domain->inserted_into();
  if (domain->is_against()) {
    ASSIGN_OR_RETURN(const Address table, own->translation(domain, text_tools()));
    made->bounds = {0, static_cast<int64_t>(std::max<uint64_t>(1, domain->count())) - 1};
    RETURN_IF_ERROR(through(table, own->count(), *made));
    v->translated = made;
    return made;
  }
  DomainPtr from;
  ItemPtr at = v;  // in `own`, then in `from`
  if (into && into != own && into->rests_on(*own)) {  // by way of the domain without the inserted texts, which has all of these
    ASSIGN_OR_RETURN(at, in_domain(v, into));
    from = into;
  } else {
    ASSIGN_OR_RETURN(from, own->distinct(text_tools()));
  }
  if (own != from && at == v) {
    ASSIGN_OR_RETURN(const Address table, own->codes_in(*from, text_tools()));
    auto ranked = std::make_shared<Item>(*made);
    ranked->domain = from;
    ranked->bounds = {0, static_cast<int64_t>(std::max<uint64_t>(1, from->count())) - 1};
    RETURN_IF_ERROR(through(table, own->count(), *ranked));
    at = ranked;
  } else {
    RETURN_IF_ERROR(to_device(at));
  }
  if (from == domain) {
    v->translated = at;
    return at;
  }
  lie_as(*made, *at);
  made->bounds = at->bounds;
  if (!domain->extends(*from)) {
    ASSIGN_OR_RETURN(device::Address table, from->translation(domain, text_tools()));
    ASSIGN_OR_RETURN(ItemPtr codes, translate(at, table, from->count()));
    lie_as(*made, *codes);
    made->bounds = {};
  }
  if (made->exact) RETURN_IF_ERROR(size_to_device(*made));
  v->translated = made;
  return made;
}

}  // namespace rndn::runtime
