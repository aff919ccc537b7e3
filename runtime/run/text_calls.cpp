// text_map and text_valid in a run.
//
// A function of one text and of constants is worked once per text of the vector's domain and kept
// with the domain; its values go to the rows by code on the device. Of a large domain the device makes
// what it can (runtime/memory/text_maps.cpp, lengths, places, patterns); texts of that kind are made
// when something compares them, and on the host only those that results have. Otherwise it is host
// work, in parallel. Texts that it makes are a domain of their own, with the same codes where most
// differ. Many texts of several vectors are put together on the device, row by row. Anything else, and a vector that has few rows of a large domain, is called once per distinct combination
// of its elements on the host (runtime/reference/text_calls.cpp).
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "libraries/base/system/parallel.h"
#include "runtime/reference/text_calls.h"
#include "runtime/run/execution.h"

namespace rndn::runtime {

using hir::BasicType;
using reference::Value;

namespace {

constexpr uint64_t piece = 4096;  // texts that one thread takes at a time

// The function's results for all texts of a domain, by code.
struct Results {
  std::vector<std::string> texts;
  std::vector<std::byte> values;
};

template <class T>
void put(std::vector<std::byte>& bytes, uint64_t i, T value) {
  std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
}

operators::Type type_of_bits(BasicType type) {
  return type == BasicType::f64 ? operators::Type::i64
         : type == BasicType::f32 ? operators::Type::i32
                                  : type_on_device(type);
}

}  // namespace

// A vector of the host with codes, whose texts become a domain.
Result<ItemPtr> Run::coded(Value texts) {
  auto made = new_vector(texts.type, texts.size, true);
  made->domain = Domain::of_texts(texts.texts, texts.texts->size());
  ASSIGN_OR_RETURN(made->data_buffer, engine_.buffers.allocate(std::max<uint64_t>(texts.size, 1) * 4));
  made->data = made->data_buffer->address;
  RETURN_IF_ERROR(device_.copy_to_device(made->data, texts.codes->data(), texts.size * 4));
  made->bounds = {0, static_cast<int64_t>(std::max<uint64_t>(1, texts.texts->size())) - 1};
  RETURN_IF_ERROR(size_to_device(*made));
  made->host = std::move(texts);
  return made;
}

// Texts by code, as a domain: where many are alike, of the distinct ones in order, and a table of
// their codes; else with the codes that they have.
Result<Domain::Image> Run::dictionary_of(std::vector<std::string> texts) {
  const uint64_t count = texts.size();
  std::unordered_map<std::string_view, uint32_t> codes;
  for (uint64_t i = 0; i < count && codes.size() <= count / 2; ++i) codes.try_emplace(texts[i], 0);
  if (codes.size() > count / 2)
    return Domain::Image{
        Domain::of_texts(std::make_shared<const std::vector<std::string>>(std::move(texts)), count), nullptr};
  std::vector<std::string> distinct;
  for (const auto& [text, code] : codes) distinct.emplace_back(text);
  std::sort(distinct.begin(), distinct.end());
  for (uint32_t code = 0; code < distinct.size(); ++code) codes.at(distinct[code]) = code;
  std::vector<uint32_t> table(count);
  for (uint64_t i = 0; i < count; ++i) table[i] = codes.at(texts[i]);
  Domain::Image image;
  ASSIGN_OR_RETURN(image.values, engine_.kept.allocate(count * 4));
  RETURN_IF_ERROR(device_.copy_to_device(image.values->address, table.data(), count * 4));
  image.texts = Domain::of_sorted(std::move(distinct));
  return image;
}

// The vector with its codes in a domain that has a text for each code of its own.
Result<ItemPtr> Run::with_domain(const ItemPtr& x, DomainPtr domain) {
  if (!x->codes_are_rows) RETURN_IF_ERROR(to_device(x));
  auto made = std::make_shared<Item>(*x);
  made->host.reset();
  made->column = nullptr;
  made->fields = nullptr;
  made->translated = made->decoded = nullptr;
  made->pieces.clear();
  made->domain = std::move(domain);
  return made;
}

TextMap Run::map_of(const TextCall& call) {
  return {.id = call.id, .constants = call.constants, .variable = call.variable, .held = {}};
}

// Whether a pattern of LIKE means something, with an escape character of one byte where there is one.
bool Run::is_whole_pattern(const TextCall& call) {
  if (call.constants.size() < 3 || call.constants[2].text.empty()) return true;
  if (call.constants[2].text.size() > 1) return false;
  const std::string_view pattern = call.constants[1].text;
  const char escape = call.constants[2].text[0];
  for (size_t at = 0; at < pattern.size(); ++at)
    if (pattern[at] == escape && ++at == pattern.size()) return false;
  return true;
}

// Whether a call's texts are made on the device, and on the host only those that results have.
bool Run::is_mapped(const Domain& domain, const TextCall& call, bool validity) {
  return !validity && hir::is_text(hir::row(call.id).result) && domain.count() > few_texts_of_domain &&
         map_of(call).is_on_device();
}

// Whether the device makes a call's numbers, or those of whether it has values.
bool Run::is_measured(const Domain& domain, const TextCall& call, bool validity) {
  if (domain.count() <= few_texts_of_domain) return false;
  switch (call.id) {
    case hir::TextFunctionId::length:
    case hir::TextFunctionId::strlen: return true;
    case hir::TextFunctionId::prefix:
    case hir::TextFunctionId::suffix:
    case hir::TextFunctionId::contains:
    case hir::TextFunctionId::position: return call.variable == 0;
    case hir::TextFunctionId::like:
    case hir::TextFunctionId::ilike: return call.variable == 0 && is_whole_pattern(call);
    case hir::TextFunctionId::lpad:
    case hir::TextFunctionId::rpad:
    case hir::TextFunctionId::reverse: return validity && map_of(call).is_on_device();
    default: return false;
  }
}

// Of a call that is measured: its numbers, by code.
Result<BufferPtr> Run::measured_texts(Domain& domain, const TextCall& call, bool validity) {
  using hir::TextFunctionId;
  const auto ones = [&]() -> Result<BufferPtr> {
    ASSIGN_OR_RETURN(BufferPtr values, engine_.kept.allocate(domain.count()));
    RETURN_IF_ERROR(device_.fill(values->address, 1, domain.count()));
    return values;
  };
  if (validity && call.id != TextFunctionId::reverse) return ones();
  std::vector<BufferPtr> held;
  DomainPtr of = domain.shared_from_this();
  std::string pattern;
  std::optional<char> escape;
  bool by_characters = false;  // the device compares bytes
  switch (call.id) {
    case TextFunctionId::like:
    case TextFunctionId::ilike: {
      pattern = call.constants[1].text;
      if (call.constants.size() > 2 && !call.constants[2].text.empty()) escape = call.constants[2].text[0];
      by_characters = pattern.find('_') != std::string::npos;
      if (call.id == TextFunctionId::like) break;
      text::TextResult lowered;
      (*text::TextFunction::make(TextFunctionId::lower))(std::span(call.constants).subspan(1, 1), lowered);
      pattern = std::move(lowered.text);
      TextMap lower{.id = TextFunctionId::lower, .constants = {{}}, .variable = 0, .held = {}};
      of = domain.mapped("lower", std::move(lower));
      break;
    }
    case TextFunctionId::prefix:
    case TextFunctionId::suffix:
    case TextFunctionId::contains:
      escape = '\\';
      for (const char c : call.constants[1].text) {
        if (c == '%' || c == '_' || c == *escape) pattern += *escape;
        pattern += c;
      }
      if (call.id != TextFunctionId::prefix) pattern.insert(0, 1, '%');
      if (call.id != TextFunctionId::suffix) pattern += '%';
      break;
    case TextFunctionId::reverse:
      pattern = "%\r\n%";  // these are one character
      by_characters = true;
      break;
    default: break;
  }
  ASSIGN_OR_RETURN(const operators::Strings strings, of->strings(text_tools(), true, held));
  OperatorMemory memory(*this, engine_.kept);
  operators::Vector made;
  if (call.id == TextFunctionId::length || call.id == TextFunctionId::strlen) {
    ASSIGN_OR_RETURN(made, sql_->lengths(strings, call.id == TextFunctionId::length, memory));
  } else if (call.id == TextFunctionId::position) {
    ASSIGN_OR_RETURN(made, sql_->positions(strings, call.constants[1].text, memory));
  } else {
    ASSIGN_OR_RETURN(made, sql_->like(strings, pattern, memory, escape));
  }
  if (validity) {  // where it does not match
    ASSIGN_OR_RETURN(const device::Address table, memory.temporary(8));
    const uint8_t opposite[8] = {1, 0};
    RETURN_IF_ERROR(device_.copy_to_device(table, opposite, sizeof(opposite)));
    ASSIGN_OR_RETURN(made, sql_->gather(made, operators::Type::u8, table, 2, memory));
  }
  if (by_characters) RETURN_IF_ERROR(measure_others(domain, call, validity, made.data, memory));
  note_library_launches();
  return memory.buffer(made.data);
}

// The host's answers, a byte each, for texts that are not ASCII.
Result<void> Run::measure_others(Domain& domain, const TextCall& call, bool validity, device::Address into,
                                 OperatorMemory& memory) {
  std::vector<BufferPtr> held;
  ASSIGN_OR_RETURN(const operators::Strings strings, domain.strings(text_tools(), true, held));
  ASSIGN_OR_RETURN(const operators::Vector others, sql_->not_ascii(strings, memory));
  if (others.capacity == 0) return {};
  std::vector<int64_t> codes(others.capacity);
  RETURN_IF_ERROR(device_.copy_to_host(codes.data(), others.data, 8 * codes.size()));
  texts_walked_ += codes.size();
  RETURN_IF_ERROR(domain.readable(text_tools()));
  std::vector<uint8_t> answers(codes.size());
  in_pieces(codes.size(), [&](uint64_t begin, uint64_t end) {
    text::TextFunction function = *text::TextFunction::make(call.id);
    std::vector<text::TextArgument> in = call.constants;
    TextReader reader;
    for (uint64_t i = begin; i < end; ++i) {
      text::TextResult out;
      in[call.variable].text = reader(domain, static_cast<uint32_t>(codes[i]));
      const bool valid = function(in, out);
      answers[i] = validity ? valid : valid && reference::text_result<uint8_t>(out);
    }
  });
  operators::Vector bytes{.type = operators::Type::u8, .capacity = codes.size()};
  ASSIGN_OR_RETURN(bytes.data, memory.temporary(codes.size()));
  RETURN_IF_ERROR(device_.copy_to_device(bytes.data, answers.data(), answers.size()));
  return sql_->put_bytes(others, bytes, into);
}

void Run::in_pieces(uint64_t count, const std::function<void(uint64_t, uint64_t)>& work) {
  const size_t pieces = (count + piece - 1) / piece;
  const auto run = [&](size_t k) { work(k * piece, std::min<uint64_t>(count, (k + 1) * piece)); };
  if (pieces > 1 && engine_.pool)
    engine_.pool->run(pieces, [&](size_t k, unsigned) { run(k); });
  else
    for (size_t k = 0; k < pieces; ++k) run(k);
}

// The numbers as texts, made on the device; null: they are few, or no integers.
Result<ItemPtr> Run::number_texts(const ItemPtr& x) {
  switch (x->type) {
    case BasicType::i8:
    case BasicType::i16:
    case BasicType::i32:
    case BasicType::i64: break;
    default: return ItemPtr();
  }
  ASSIGN_OR_RETURN(const uint64_t rows, size_of(*x));
  if (rows <= few_texts_of_domain) return ItemPtr();
  OperatorMemory memory(*this, engine_.buffers);
  ASSIGN_OR_RETURN(const operators::Vector numbers, column(x));
  ASSIGN_OR_RETURN(const operators::Strings made, sql_->integer_texts(numbers, rows, memory));
  return made_texts(made, BasicType::str, *x, memory);
}

// Texts that operators made, a string per row of `like`.
Result<ItemPtr> Run::made_texts(const operators::Strings& made, BasicType type, const Item& like,
                                const OperatorMemory& memory) {
  note_library_launches();
  ItemPtr item = new_vector(type, made.count, true);
  item->domain = Domain::of_strings(memory.buffer(made.handles), memory.buffer(made.pad), made.pad_bytes, made.count);
  item->codes_are_rows = true;
  item->bounds = {0, static_cast<int64_t>(made.count) - 1};
  item->size_id = like.size_id;
  RETURN_IF_ERROR(size_to_device(*item));
  return item;
}

// Texts of several vectors put together on the device, a string per row; null: the rows are few, or are not of one length.
Result<ItemPtr> Run::joined_texts(std::span<const ItemPtr> in) {
  ItemPtr longest;
  for (const ItemPtr& x : in) {
    if (!hir::is_text(x->type)) return ItemPtr();
    if (x->exact && x->capacity == 1 && x->host) continue;
    if (longest) {
      ASSIGN_OR_RETURN(const bool same, same_lengths(std::vector<ItemPtr>{longest, x}));
      if (!same) return ItemPtr();
    }
    longest = x;
  }
  if (!longest) return ItemPtr();
  ASSIGN_OR_RETURN(const uint64_t rows, size_of(*longest));
  if (rows <= few_texts_of_domain) return ItemPtr();
  std::vector<BufferPtr> held;
  std::vector<operators::Strings> parts;
  OperatorMemory memory(*this, engine_.buffers);
  for (const ItemPtr& x : in) {
    const DomainPtr domain = domain_of(*x);
    ASSIGN_OR_RETURN(operators::Strings strings, domain->strings(text_tools(), domain->is_kept(), held));
    const bool is_one = x != longest && x->exact && x->capacity == 1;
    if (!is_one && !(x->codes_are_rows && strings.count == rows)) {
      ASSIGN_OR_RETURN(operators::Vector codes, column(x));
      ASSIGN_OR_RETURN(const operators::Vector handles,
                       sql_->gather(codes, operators::Type::i64, strings.handles, strings.count, memory));
      strings.handles = handles.data;
      strings.count = rows;
    }
    parts.push_back(strings);
  }
  ASSIGN_OR_RETURN(const operators::Strings made, sql_->join_strings(parts, rows, memory));
  return made_texts(made, in[0]->type, *longest, memory);
}

// The call's results for the vector `x` of texts, which is the only argument that is no constant.
Result<ItemPtr> Run::text_image(const ItemPtr& x, const TextCall& call, bool validity) {
  const DomainPtr domain = domain_of(*x);
  const hir::TextFunctionRow& row = hir::row(call.id);
  const BasicType type = validity ? BasicType::boolean : hir::is_text(row.result) ? x->type : row.result;
  if (is_mapped(*domain, call, validity)) {  // made when something asks for them
    TextMap map = map_of(call);
    for (text::TextArgument& c : map.constants) c.text = map.held.emplace_back(c.text);
    return with_domain(x, domain->mapped(call.key, std::move(map)));
  }
  Domain::Image& image = domain->image(call.key + (validity ? "?" : ""));
  if (!image.texts && !image.values && is_measured(*domain, call, validity)) {
    ASSIGN_OR_RETURN(BufferPtr values, measured_texts(*domain, call, validity));
    image.values = std::move(values);
  }
  if (!image.texts && !image.values) {
    texts_walked_ += domain->count();
    auto scope = timings_.measure(Phase::cpu, row.name);
    const uint64_t count = domain->count();
    const uint64_t width = hir::is_text(type) ? 0 : data::plain_width(type);
    Results results;
    if (width)
      results.values.resize(count * width);
    else
      results.texts.resize(count);
    RETURN_IF_ERROR(domain->readable(text_tools()));
    ASSIGN_OR_RETURN(const text::TextFunction check, text::TextFunction::make(call.id));
    (void)check;
    in_pieces(count, [&](uint64_t begin, uint64_t end) {
      text::TextFunction function = *text::TextFunction::make(call.id);
      std::vector<text::TextArgument> in = call.constants;
      TextReader reader;
      for (uint64_t i = begin; i < end; ++i) {
        text::TextResult out;
        in[call.variable].text = reader(*domain, static_cast<uint32_t>(i));
        const bool valid = function(in, out);
        if (validity)
          put<uint8_t>(results.values, i, valid);
        else if (!valid)
          continue;
        else if (!width)
          results.texts[i] = std::move(out.text);
        else
          hir::with_stored(type, [&]<class T>() { put(results.values, i, reference::text_result<T>(out)); });
      }
    });
    if (!width) {
      ASSIGN_OR_RETURN(image, dictionary_of(std::move(results.texts)));
    } else {
      ASSIGN_OR_RETURN(BufferPtr values, engine_.kept.allocate(std::max<uint64_t>(results.values.size(), 8)));
      RETURN_IF_ERROR(device_.copy_to_device(values->address, results.values.data(), results.values.size()));
      image.values = std::move(values);  // now that they are there
    }
  }
  ItemPtr made;
  if (image.values && x->codes_are_rows && x->exact && x->capacity == domain->count()) {  // the table is the column
    made = new_vector(type, x->capacity, true);
    made->data = image.values->address;
    made->data_buffer = image.values;
    made->size_id = x->size_id;
    RETURN_IF_ERROR(size_to_device(*made));
    if (!image.texts) return made;
  }
  if (image.texts && image.values) {
    if (!made) {
      ASSIGN_OR_RETURN(made, translate(x, image.values->address, domain->count()));
      made->type = type;
    }
    made->size_id = x->size_id;
    made->domain = image.texts;
    made->bounds = {0, static_cast<int64_t>(std::max<uint64_t>(1, image.texts->count())) - 1};
    return made;
  }
  if (image.texts) return with_domain(x, image.texts);
  ASSIGN_OR_RETURN(const operators::Vector codes, column(x));
  OperatorMemory memory(*this, engine_.buffers);
  ASSIGN_OR_RETURN(operators::Vector gathered, sql_->gather(codes, type_of_bits(type), image.values->address,
                                                            domain->count(), memory));
  gathered.type = type_on_device(type);  // they are the bits of these
  ItemPtr item = from_vector(gathered, type, memory);
  item->size_id = x->size_id;
  if (item->exact != x->exact && x->exact) item->exact = true;
  return item;
}

Result<void> Run::text_map(const Step& s) {
  ASSIGN_OR_RETURN(std::vector<ItemPtr> in, items(s.inputs));
  ASSIGN_OR_RETURN(const Value name, to_host(*in[0]));
  ASSIGN_OR_RETURN(const hir::TextFunctionId id, reference::named_text_function(name));
  const hir::TextFunctionRow& row = hir::row(id);
  const bool validity = s.builtin == hir::Builtin::text_valid;
  TextCall call{.id = id, .key = std::string(row.name)};
  call.constants.resize(in.size() - 1);
  std::vector<Value> held(in.size());  // constants refer to them
  ItemPtr x;
  bool simple = true;
  for (size_t k = 0; k + 1 < in.size(); ++k) {
    const ItemPtr& a = in[k + 1];
    if (a->kind != Item::vector) return builtin(s);
    if (a->exact && a->capacity == 1 && a->host) {
      held[k] = *a->host;
      call.constants[k] = reference::text_argument(row, k, held[k], 0);
      const text::TextArgument& c = call.constants[k];
      call.key += fmt::format("\n{}:{}", k, c.text);
      for (uint64_t part : {static_cast<uint64_t>(c.integer >> 64), static_cast<uint64_t>(c.integer)})
        call.key += fmt::format(" {:x}", part);
      call.key += fmt::format(" {:a}", c.real);
      continue;
    }
    simple = simple && !x && hir::is_text(a->type);
    x = a;
    call.variable = k;
  }
  simple = simple && x && !hir::is_wide(row.result);
  if (simple) {
    // A few rows of a large domain: only these, unless the whole is there already.
    constexpr uint64_t large = 65536, fewer = 8;
    const DomainPtr domain = domain_of(*x);
    const Domain::Image& image = domain->image(call.key + (validity ? "?" : ""));
    const bool is_known = image.texts || image.values || domain->is_mapped(call.key);
    if (!is_known && domain->count() > large) {
      ASSIGN_OR_RETURN(const uint64_t rows, size_of(*x));
      const bool on_device = is_mapped(*domain, call, validity) || is_measured(*domain, call, validity);
      simple = rows > (on_device ? few_texts_of_domain : domain->count() / fewer);
    }
    if (domain->count() == 0) simple = false;
  }
  if (simple) {
    ASSIGN_OR_RETURN(ItemPtr made, text_image(x, call, validity));
    assign_result(s, std::move(made));
    return {};
  }
  if (!validity && (id == hir::TextFunctionId::concat || id == hir::TextFunctionId::of_integer)) {
    ASSIGN_OR_RETURN(ItemPtr made, id == hir::TextFunctionId::concat ? joined_texts(std::span(in).subspan(1))
                                                                     : number_texts(in[1]));
    if (made) {
      assign_result(s, std::move(made));
      return {};
    }
  }
  std::vector<Value> arguments;
  for (size_t k = 1; k < in.size(); ++k) {
    ASSIGN_OR_RETURN(Value value, to_host(*in[k]));
    arguments.push_back(std::move(value));
  }
  auto scope = timings_.measure(Phase::cpu, row.name);
  ASSIGN_OR_RETURN(Value made, reference::call_text_function(id, arguments, validity));
  if (made.is_text_vector()) {
    ASSIGN_OR_RETURN(ItemPtr item, coded(std::move(made)));
    assign_result(s, std::move(item));
  } else {
    assign_result(s, host_item(std::move(made)));
  }
  return {};
}

}  // namespace rndn::runtime
