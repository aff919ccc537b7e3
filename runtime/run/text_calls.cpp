// text_map and text_valid in a run.
//
// A function of one text and of constants is worked once per text of the vector's domain and kept
// with the domain; its values go to the rows by code on the device. Of a large domain the device makes
// what it can (cases, parts, lengths, what is contained); texts of that kind are made when something
// compares them, and on the host only those that results have. Otherwise it is host work, in
// parallel. Texts that it makes are a domain of their own, with the same codes where most differ. Anything
// else, and a vector that has few rows of a large domain, is called once per distinct combination
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

// Whether a call's texts are made on the device, and on the host only those that results have.
bool Run::is_mapped(const Domain& domain, const TextCall& call, bool validity) {
  return !validity && hir::is_text(hir::row(call.id).result) && domain.count() > few_texts_of_domain &&
         TextMap{.id = call.id, .constants = call.constants, .variable = call.variable, .held = {}}.is_on_device();
}

// What the device makes of the texts of a large domain at once; null: the host does.
Result<BufferPtr> Run::measured_texts(Domain& domain, const TextCall& call) {
  const bool characters = call.id == hir::TextFunctionId::length;
  std::string pattern;
  if (domain.count() <= few_texts_of_domain) return BufferPtr();
  if (!characters && call.id != hir::TextFunctionId::strlen) {
    const bool prefix = call.id == hir::TextFunctionId::prefix, suffix = call.id == hir::TextFunctionId::suffix;
    if ((!prefix && !suffix && call.id != hir::TextFunctionId::contains) || call.variable != 0) return BufferPtr();
    const std::string_view part = call.constants[1].text;
    if (part.find_first_of("%_") != std::string_view::npos) return BufferPtr();  // letters of patterns
    pattern = fmt::format("{}{}{}", prefix ? "" : "%", part, suffix ? "" : "%");
  }
  std::vector<BufferPtr> held;
  ASSIGN_OR_RETURN(const operators::Strings strings, domain.strings(text_tools(), true, held));
  OperatorMemory memory(*this, engine_.kept);
  ASSIGN_OR_RETURN(const operators::Vector made, pattern.empty() ? sql_->lengths(strings, characters, memory)
                                                                 : sql_->like(strings, pattern, memory));
  note_library_launches();
  return memory.buffer(made.data);
}

// The call's results for the vector `x` of texts, which is the only argument that is no constant.
Result<ItemPtr> Run::text_image(const ItemPtr& x, const TextCall& call, bool validity) {
  const DomainPtr domain = domain_of(*x);
  const hir::TextFunctionRow& row = hir::row(call.id);
  const BasicType type = validity ? BasicType::boolean : hir::is_text(row.result) ? x->type : row.result;
  if (is_mapped(*domain, call, validity)) {  // made when something asks for them
    TextMap map{.id = call.id, .constants = call.constants, .variable = call.variable, .held = {}};
    for (text::TextArgument& c : map.constants) c.text = map.held.emplace_back(c.text);
    return with_domain(x, domain->mapped(call.key, std::move(map)));
  }
  Domain::Image& image = domain->image(call.key + (validity ? "?" : ""));
  if (!image.texts && !image.values && !validity && !hir::is_text(type)) {
    ASSIGN_OR_RETURN(image.values, measured_texts(*domain, call));
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
    ASSIGN_OR_RETURN(const text::TextFunction check, text::TextFunction::make(call.id));
    (void)check;
    const auto work = [&](size_t k) {
      text::TextFunction function = *text::TextFunction::make(call.id);
      std::vector<text::TextArgument> in = call.constants;
      TextReader reader;
      for (uint64_t i = k * piece; i < std::min<uint64_t>(count, (k + 1) * piece); ++i) {
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
    };
    const size_t pieces = (count + piece - 1) / piece;
    if (pieces > 1 && engine_.pool)
      engine_.pool->run(pieces, [&](size_t k, unsigned) { work(k); });
    else
      for (size_t k = 0; k < pieces; ++k) work(k);
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
      simple = is_mapped(*domain, call, validity) ? rows > few_texts_of_domain : rows > domain->count() / fewer;
    }
    if (domain->count() == 0) simple = false;
  }
  if (simple) {
    ASSIGN_OR_RETURN(ItemPtr made, text_image(x, call, validity));
    assign_result(s, std::move(made));
    return {};
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
