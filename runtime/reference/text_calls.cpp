// text_map, text_valid and text_join (docs/horseir.md, "Builtins: text").
//
// Arguments are vectors; one element repeats. A function is called once per distinct combination of
// the elements of a row: they are looked up in a hash table by codes of texts and bits of numbers,
// so that many rows with few values cost a look-up each.
#include "runtime/reference/text_calls.h"

#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/reference/builtins.h"

namespace rndn::reference {

using hir::BasicType;

text::TextArgument text_argument(const hir::TextFunctionRow& row, size_t k, const Value& v, uint64_t i) {
  text::TextArgument out;
  if (row.letter(k) == 't') {
    out.text = v.type == BasicType::character
                   ? std::string_view(reinterpret_cast<const char*>(v.as<int8_t>()) + i, 1)
                   : std::string_view(v.text(i));
    return out;
  }
  hir::with_stored(v.type, [&]<class T>() {
    if constexpr (std::is_floating_point_v<T>) {
      out.real = static_cast<double>(v.as<T>()[i]);
      out.is_single = sizeof(T) == 4;
    } else if constexpr (std::is_integral_v<T> || std::is_same_v<T, __int128>) {
      out.integer = static_cast<__int128>(v.as<T>()[i]);
    }
  });
  return out;
}

BasicType text_result_type(const hir::TextFunctionRow& row, std::span<const Value> arguments) {
  if (row.result != BasicType::str) return row.result;
  for (const Value& a : arguments)
    if (a.is_text_vector()) return a.type;
  return BasicType::str;
}

Result<hir::TextFunctionId> named_text_function(const Value& name) {
  hir::TextFunctionId id;
  if (!name.is_text_vector() || name.size != 1 || !hir::find_text_function(name.text(0), id))
    return input_error("there is no function of texts of that name");
  return id;
}

Result<Value> call_text_function(hir::TextFunctionId id, std::span<const Value> arguments, bool validity) {
  const hir::TextFunctionRow& row = hir::row(id);
  if (arguments.size() < row.least() || arguments.size() > row.most())
    return input_error("`{}` takes {} to {} arguments, got {}", row.name, row.least(), row.most(), arguments.size());
  uint64_t size = 1;
  for (const Value& a : arguments)
    if (a.size != 1) size = a.size;
  for (size_t k = 0; k < arguments.size(); ++k) {
    const Value& a = arguments[k];
    const bool fits = a.is_vector() && (row.letter(k) == 't'   ? a.is_text_vector() || a.type == BasicType::character
                                        : row.letter(k) == 'f' ? hir::is_float(a.type)
                                                               : !a.is_text_vector() && !hir::is_float(a.type) &&
                                                                     a.type != BasicType::complex);
    if (!fits) return input_error("`{}` does not take {} as argument {}", row.name, describe(a), k + 1);
    if (a.size != 1 && a.size != size)
      return input_error("`{}` got {} and {} elements", row.name, size, a.size);
  }
  ASSIGN_OR_RETURN(text::TextFunction function, text::TextFunction::make(id));
  std::unordered_map<std::string, uint32_t> known;
  std::vector<text::TextResult> results;
  std::vector<uint8_t> valid;
  GrowthTicker grown;
  std::vector<uint32_t> codes(size);
  std::vector<text::TextArgument> in(arguments.size());
  std::string key;
  CancelTicker tick;
  for (uint64_t i = 0; i < size; ++i) {
    tick();
    key.clear();
    for (size_t k = 0; k < arguments.size(); ++k) {
      const Value& a = arguments[k];
      const uint64_t at = a.size == 1 ? 0 : i;
      if (a.size == 1) {
        if (i == 0) in[k] = text_argument(row, k, a, 0);
        continue;
      }
      if (a.is_text_vector() && a.codes) {
        key.append(reinterpret_cast<const char*>(&(*a.codes)[at]), 4);
      } else if (a.is_text_vector()) {
        const uint64_t length = a.text(at).size();
        key.append(reinterpret_cast<const char*>(&length), 8);
        key += a.text(at);
      } else {
        const uint32_t width = data::plain_width(a.type);
        key.append(reinterpret_cast<const char*>(a.bytes->data()) + at * width, width);
      }
    }
    const auto [found, is_new] = known.try_emplace(key, static_cast<uint32_t>(results.size()));
    codes[i] = found->second;
    if (!is_new) continue;
    for (size_t k = 0; k < arguments.size(); ++k)
      if (arguments[k].size != 1) in[k] = text_argument(row, k, arguments[k], i);
    text::TextResult out;
    valid.push_back(function(in, out));
    grown(sizeof out + out.text.size() + key.size());
    results.push_back(valid.back() ? std::move(out) : text::TextResult{});
  }
  if (validity) {
    std::vector<uint8_t> out(size);
    for (uint64_t i = 0; i < size; ++i) out[i] = valid[codes[i]];
    return make_bool(out);
  }
  const BasicType type = text_result_type(row, arguments);
  if (hir::is_text(type)) {
    std::vector<std::string> texts;
    for (text::TextResult& r : results) texts.push_back(std::move(r.text));
    return vector_of_codes(type, vector_of_texts(type, std::move(texts)).texts, std::move(codes));
  }
  return hir::with_stored(type, [&]<class T>() -> Value {
    std::vector<std::byte> bytes(size * sizeof(T));
    for (uint64_t i = 0; i < size; ++i) {
      const T value = text_result<T>(results[codes[i]]);
      std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
    return vector_from_bytes(type, size, std::move(bytes));
  });
}

namespace {

Result<Value> call(Arguments a, bool validity) {
  ASSIGN_OR_RETURN(const hir::TextFunctionId id, named_text_function(a[0]));
  return call_text_function(id, a.subspan(1), validity);
}
Result<Value> text_map(Context&, Arguments a) { return call(a, false); }
Result<Value> text_valid(Context&, Arguments a) { return call(a, true); }

Result<Value> text_join(Context&, Arguments a) {
  if (!a[0].is_text_vector() || a[1].type != BasicType::boolean || a[2].kind != Value::list ||
      !a[3].is_text_vector() || a[3].size != 1 || (a[1].size != 1 && a[1].size != a[0].size))
    return input_error("`text_join` expects text, bool, a list of row numbers and a text, got {}, {}, {}, {}",
                       describe(a[0]), describe(a[1]), describe(a[2]), describe(a[3]));
  std::vector<std::string> out;
  GrowthTicker grown;
  for (const Value& cell : a[2].parts()) {
    if (!cell.is_vector() || !hir::is_integer(cell.type))
      return input_error("`text_join` expects lists of row numbers, got {}", describe(cell));
    std::string joined;
    bool first = true;
    for (int64_t row : elements<int64_t>(cell)) {
      if (row < 0 || static_cast<uint64_t>(row) >= a[0].size)
        return input_error("`text_join` got row {} of {}", row, a[0].size);
      const uint64_t at = static_cast<uint64_t>(row);
      if (!a[1].as<uint8_t>()[a[1].size == 1 ? 0 : at]) continue;
      grown(a[3].text(0).size() + a[0].text(at).size());
      if (!first) joined += a[3].text(0);
      joined += a[0].text(at);
      first = false;
    }
    out.push_back(std::move(joined));
  }
  return vector_of_texts(a[0].type, std::move(out));
}

}  // namespace

std::span<const BuiltinEntry> text_call_builtins() {
  static constexpr BuiltinEntry entries[] = {
      {"text_map", text_map}, {"text_valid", text_valid}, {"text_join", text_join}};
  return entries;
}

}  // namespace rndn::reference
