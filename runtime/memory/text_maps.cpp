// What functions make of all texts of a domain, as strings on the device (text_domains.h).
//
// Parts of texts, what is put together, padded, replaced or turned around, and the other case of
// ASCII are the device's work (libraries/operators/text). Where a function looks at characters that
// are not ASCII, texts with such are made by the host, in parallel, and take the places of the
// device's; so are all texts of a function that the device does not know.
#include <algorithm>

#include "libraries/base/system/parallel.h"
#include "runtime/memory/text_domains.h"
#include "runtime/memory/text_memory.h"

namespace rndn::runtime {

using hir::TextFunctionId;

namespace {
bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<uint8_t>(c) < 0x80; });
}
}  // namespace

bool TextMap::is_on_device() const {
  const auto at_least = [&](size_t k, int64_t least) {
    return k >= constants.size() || constants[k].integer >= least;
  };
  switch (id) {
    case TextFunctionId::upper:
    case TextFunctionId::lower:
    case TextFunctionId::reverse:
    case TextFunctionId::concat: return true;
    case TextFunctionId::left:
    case TextFunctionId::right: return variable == 0;
    case TextFunctionId::substring: return variable == 0 && at_least(1, 1) && at_least(2, 0);
    case TextFunctionId::trim:
    case TextFunctionId::ltrim:
    case TextFunctionId::rtrim:
      return variable == 0 && (constants.size() == 1 || is_ascii(constants[1].text));
    case TextFunctionId::replace: return variable == 0 && !constants[1].text.empty();
    case TextFunctionId::split_part:
      return variable == 0 && !constants[1].text.empty() && at_least(2, 1);
    case TextFunctionId::lpad:
    case TextFunctionId::rpad:
      return variable == 0 && at_least(1, 0) && constants[1].integer < (1 << 24) &&
             !constants[2].text.empty() && is_ascii(constants[2].text);
    default: return false;
  }
}

Result<Domain::OnDevice> Domain::map_strings(const TextTools& tools) {
  constexpr uint64_t piece = 4096;
  // The function's texts for `count` codes, by the host.
  const auto made_here = [&](uint64_t count, auto&& code_at) -> Result<OnDevice> {
    *tools.walked += count;
    RETURN_IF_ERROR(readable(tools));
    std::vector<std::string> texts(count);
    parallel_for((count + piece - 1) / piece, [&](size_t k) {
      TextReader reader;
      for (uint64_t i = k * piece; i < std::min<uint64_t>(count, (k + 1) * piece); ++i)
        texts[i] = reader(*this, code_at(i));
    });
    return send_texts(texts, tools);
  };
  if (!map_.is_on_device())
    return made_here(count_, [](uint64_t i) { return static_cast<uint32_t>(i); });

  std::vector<BufferPtr> held;
  ASSIGN_OR_RETURN(const operators::Strings base, base_->strings(tools, true, held));
  const BufferPtr handles = held[held.size() - 2], pad = held.back();
  Kept kept(tools);
  operators::Operators& sql = *tools.sql;
  const auto text = [&](size_t k) { return map_.constants[k].text; };
  const auto number = [&](size_t k) {
    return static_cast<uint64_t>(std::min<__int128>(map_.constants[k].integer, UINT32_MAX));
  };
  const auto below_zero = [&](size_t k) {  // how far
    return static_cast<uint64_t>(std::min<__int128>(-map_.constants[k].integer, UINT32_MAX));
  };
  // What operators made, and of the base what they left as it is.
  const auto strings_of = [&](const Result<operators::Strings>& made) -> Result<OnDevice> {
    if (!made.ok()) return made.error();
    const BufferPtr own_handles = kept.at(made->handles), own_pad = kept.at(made->pad);
    return OnDevice{own_handles ? own_handles : handles, own_pad ? own_pad : pad, made->pad_bytes};
  };
  // The same with the host's texts of the codes in `others`.
  const auto but_for = [&](const operators::Strings& made,
                           const operators::Vector& others) -> Result<OnDevice> {
    if (others.capacity == 0) return strings_of(made);
    std::vector<int64_t> codes(others.capacity);
    RETURN_IF_ERROR(tools.device.copy_to_host(codes.data(), others.data, 8 * codes.size()));
    ASSIGN_OR_RETURN(const OnDevice sent, made_here(codes.size(), [&](uint64_t i) {
                       return static_cast<uint32_t>(codes[i]);
                     }));
    const operators::Strings theirs{sent.handles->address, sent.pad->address, codes.size(),
                                    sent.pad_bytes};
    return strings_of(sql.replace(made, others, theirs, kept));
  };
  const bool is_left = map_.id == TextFunctionId::lpad || map_.id == TextFunctionId::ltrim;
  switch (map_.id) {
    case TextFunctionId::upper:
    case TextFunctionId::lower: {
      ASSIGN_OR_RETURN(const operators::Cased cased,
                       sql.to_case(base, map_.id == TextFunctionId::upper, kept));
      return but_for(cased.strings, cased.others);
    }
    case TextFunctionId::reverse: {
      ASSIGN_OR_RETURN(const operators::Strings turned, sql.reversed(base, kept));
      ASSIGN_OR_RETURN(const operators::Vector others, sql.not_ascii(base, *tools.memory));
      return but_for(turned, others);
    }
    case TextFunctionId::trim:
    case TextFunctionId::ltrim:
    case TextFunctionId::rtrim: {
      const bool is_both = map_.id == TextFunctionId::trim, given = map_.constants.size() > 1;
      ASSIGN_OR_RETURN(
          const operators::Strings cut,
          sql.trimmed(base, given ? text(1) : " ", is_both || is_left, is_both || !is_left, kept));
      if (given) return strings_of(cut);
      // There are other spaces.
      ASSIGN_OR_RETURN(const operators::Vector others, sql.not_ascii(base, *tools.memory));
      return but_for(cut, others);
    }
    case TextFunctionId::left:
      if (map_.constants[1].integer < 0)
        return strings_of(sql.tail(base, below_zero(1), true, kept));
      return strings_of(sql.cut(base, 0, number(1), true, kept));
    case TextFunctionId::right:
      if (map_.constants[1].integer < 0)
        return strings_of(sql.cut(base, below_zero(1), UINT64_MAX, true, kept));
      return strings_of(sql.tail(base, number(1), false, kept));
    case TextFunctionId::substring: {
      const uint64_t most = map_.constants.size() > 2 ? number(2) : UINT64_MAX;
      return strings_of(sql.cut(base, number(1) - 1, most, true, kept));
    }
    case TextFunctionId::split_part:
      return strings_of(sql.part_between(base, text(1), number(2) - 1, kept));
    case TextFunctionId::replace:
      return strings_of(sql.replace_parts(base, text(1), text(2), kept));
    case TextFunctionId::lpad:
    case TextFunctionId::rpad:
      return strings_of(sql.pad_strings(base, number(1), text(2), is_left, kept));
    case TextFunctionId::concat: {
      std::vector<OnDevice> sent;
      std::vector<operators::Strings> parts;
      for (size_t k = 0; k < map_.constants.size(); ++k) {
        if (k == map_.variable) {
          parts.push_back(base);
          continue;
        }
        const std::string constant(text(k));
        ASSIGN_OR_RETURN(sent.emplace_back(), send_texts({&constant, 1}, tools));
        parts.push_back(
            {sent.back().handles->address, sent.back().pad->address, 1, sent.back().pad_bytes});
      }
      return strings_of(sql.join_strings(parts, count_, kept));
    }
    default: break;
  }
  return Error{Fault::internal, "a function of texts is not the device's"};
}

}  // namespace rndn::runtime
