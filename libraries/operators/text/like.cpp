// like: a pattern against every string (docs/horseir.md, "like"). `%` stands for any run of bytes,
// `_` for one byte, the whole string must match.
//
// The pattern is cut at its `%` into pieces. The piece before the first `%` must stand at the start, the one after the last at the end, and
// every piece between is looked for from left to right, each at its leftmost place: that choice leaves the most to the pieces after it, so
// no other needs to be tried. The two fixed pieces come first because they refuse most strings at once.
//
// Behind an escape character `%` and `_` stand for themselves.
// One kernel serves all patterns: pieces are data (a record each, below), so that a new pattern costs no compilation. A thread takes a
// string and reads it in aligned words of eight bytes, which pads consist of, three words ahead of the one that is looked at: lanes are at
// different places of their memory sectors, so that some lane of a warp waits at nearly every word. Four places are tested at once: four
// bytes, and these moved by one, two and three bytes, each compared with one of the piece's first four bytes repeated four times; the bytes
// that stay zero in the union are the places where these agree. Bytes five and on are compared one by one at those places only.
// Strings that follow each other in the pad are read by neighbouring lanes, so that the words of a warp come from few cache lines.
// Bytes beyond a string's last are read, but no place reaches them. Cost per string: O(length) times the pieces that are reached.
// Leaves out: several lanes for one long string.
#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "libraries/operators/fragments.h"
#include "libraries/operators/operators.h"
#include "libraries/operators/ready.h"

namespace rndn::operators {

using ptx::Combine;

namespace {

enum PieceKind : uint32_t { at_start, at_end, floating };

// A piece in device memory. Its bytes from the fifth on lie at `rest` from the start of the program: length - 4 values, then as many masks
// (0 for `_`, else 255).
struct Piece {
  uint32_t length, kind, rest, unused;
  uint32_t bytes[4], masks[4];  // of its first four bytes, each repeated four times; mask 0: any byte
};
static_assert(sizeof(Piece) == 48);

struct Pattern {
  std::vector<std::byte> program;  // the pieces, then their further bytes
  uint32_t pieces = 0;
  uint64_t shortest = 0, longest = UINT32_MAX;  // bytes that a matching string may have
};

Pattern compile(std::string_view pattern, std::optional<char> escape) {
  struct Part {
    std::string text, masks;  // masks: 0 for any byte, else 255
    PieceKind kind;
  };
  std::vector<Part> parts(1, {"", "", at_start});
  Pattern out;
  for (size_t at = 0; at < pattern.size(); ++at) {
    const bool quoted = escape && pattern[at] == *escape && at + 1 < pattern.size();
    at += quoted;
    if (!quoted && pattern[at] == '%') {
      parts.push_back({"", "", floating});
      continue;
    }
    parts.back().text += pattern[at];
    parts.back().masks += !quoted && pattern[at] == '_' ? '\0' : '\xff';
  }
  if (parts.size() == 1) {
    out.longest = parts[0].text.size();
  } else {  // the fixed ones first
    parts.back().kind = at_end;
    std::rotate(parts.begin() + 1, parts.end() - 1, parts.end());
  }
  std::erase_if(parts, [](const Part& p) { return p.text.empty(); });
  std::vector<std::byte> rest;
  std::vector<Piece> pieces;
  for (const Part& part : parts) {
    Piece piece{.length = static_cast<uint32_t>(part.text.size()), .kind = part.kind};
    piece.rest = static_cast<uint32_t>(parts.size() * sizeof(Piece) + rest.size());
    for (size_t k = 0; k < std::min<size_t>(4, part.text.size()); ++k) {
      piece.bytes[k] = static_cast<uint8_t>(part.text[k]) * 0x01010101u;
      piece.masks[k] = part.masks[k] ? 0xFFFFFFFFu : 0;
    }
    for (size_t k = 4; k < part.text.size(); ++k) rest.push_back(static_cast<std::byte>(part.text[k]));
    for (size_t k = 4; k < part.text.size(); ++k) rest.push_back(static_cast<std::byte>(part.masks[k]));
    pieces.push_back(piece);
    out.shortest += part.text.size();
  }
  out.pieces = static_cast<uint32_t>(pieces.size());
  out.program.resize(pieces.size() * sizeof(Piece));
  if (!pieces.empty()) std::memcpy(out.program.data(), pieces.data(), out.program.size());
  out.program.insert(out.program.end(), rest.begin(), rest.end());
  return out;
}

// The aligned word of eight bytes at `at` + `offset`, or the last one that counts, where that is before.
Reg<U64> load_word(Builder& b, Reg<U64> at, int32_t offset, Reg<S32> last) {
  return b.ld_nc<U64>(At(b.add(at, b.cvt<U64>(b.min(last, offset)))));
}

// The high bit of each of four bytes where the piece's first four agree: of `word`, and what follows.
Reg<U32> hits_of(Builder& b, Reg<U32> word, Reg<U32> following, std::span<const Reg<U32>> bytes,
                 std::span<const Reg<U32>> masks) {
  Reg<U32> differs = b.and_(b.xor_(word, bytes[0]), masks[0]);
  for (uint32_t k = 1; k < 4; ++k) {
    Reg<U32> moved = b.prmt(word, following, 0x3210 + 0x1111 * k);
    differs = b.or_(differs, b.and_(b.xor_(moved, bytes[k]), masks[k]));
  }
  Reg<U32> low = b.add(b.and_(differs, 0x7F7F7F7Fu), 0x7F7F7F7Fu);
  return b.not_(b.or_(low, differs));  // its other bits are left to who reads it
}

uint32_t build_like(ptx::Module& module, std::string_view name) {
  Builder b(module, std::string(name));
  b.set_block_size(block_threads);
  const Parameter handles_at = b.parameter<U64>("handles"), pad_at = b.parameter<U64>("pad");
  const Parameter count = b.parameter<U64>("count"), program_at = b.parameter<U64>("program");
  const Parameter pieces_at = b.parameter<U64>("pieces"), shortest_at = b.parameter<U64>("shortest");
  const Parameter longest_at = b.parameter<U64>("longest"), out_at = b.parameter<U64>("out");
  const Thread t = thread_of(b);
  Reg<U32> n = b.cvt<U32>(b.ld_param(count));
  Reg<U64> handles = b.ld_param(handles_at), pad = b.ld_param(pad_at), program = b.ld_param(program_at);
  Reg<U64> out = b.ld_param(out_at);
  Reg<U32> pieces = b.cvt<U32>(b.ld_param(pieces_at));
  Reg<U32> shortest = b.cvt<U32>(b.ld_param(shortest_at)), longest = b.cvt<U32>(b.ld_param(longest_at));
  for_tiles(b, tiles_of(b, n, block_threads), [&](Reg<U32> tile) {
    const LabelId next_string = b.label(), next_piece = b.label(), matched = b.label(), refused = b.label();
    Reg<U32> row = b.mad_lo(tile, block_threads, t.tid);
    b.when(b.setp(ptx::Compare::ge, row, n)).bra(next_string);
    Reg<U64> handle = b.ld_nc<U64>(element_at(b, handles, row, 8));
    Reg<U32> bytes = b.and_(b.cvt<U32>(handle), 0xFFFFFF);
    Reg<S32> length = Builder::as<S32>(bytes);
    Reg<U64> text = b.add(pad, b.shr(handle, 24));
    Reg<U32> result = b.constant<U32>(0);
    Reg<S32> position = b.constant<S32>(0), end = b.mov(length);
    Reg<U64> piece = b.mov(program);
    Reg<U32> left = b.mov(pieces);
    b.when(b.setp(ptx::Compare::lt, bytes, shortest)).bra(refused);
    b.when(b.setp(ptx::Compare::gt, bytes, longest)).bra(refused);

    b.bind(next_piece);
    b.when(b.setp(ptx::Compare::eq, left, 0)).bra(matched);
    const auto head = b.ld_v4<U32>(Space::global, At(piece), {.cache = ptx::Cache::nc});
    const auto bytes4 = b.ld_v4<U32>(Space::global, At(piece, 16), {.cache = ptx::Cache::nc});
    const auto masks4 = b.ld_v4<U32>(Space::global, At(piece, 32), {.cache = ptx::Cache::nc});
    Reg<S32> size = Builder::as<S32>(head[0]);
    Reg<Pred> is_end = b.setp(ptx::Compare::eq, head[1], static_cast<uint32_t>(at_end));
    Reg<Pred> is_start = b.setp(ptx::Compare::eq, head[1], static_cast<uint32_t>(at_start));
    Reg<S32> highest = b.sub(end, size);
    b.when(is_start).mov(position, highest);
    Reg<S32> lowest = b.selp(highest, position, is_end);
    b.when(b.setp(ptx::Compare::lt, highest, lowest)).bra(refused);
    Reg<S32> found = b.reg<S32>();

    // The word that holds the lowest place, then word by word. Each loop is left for one place only, so that the lanes of a warp meet again behind it.
    const LabelId next_word = b.label(), word_done = b.label(), next_hit = b.label(), hits_done = b.label(),
                  next_byte = b.label(), rest_done = b.label();
    Reg<U64> first = b.add(text, b.cvt<U64>(lowest));
    Reg<U32> skip = b.and_(b.cvt<U32>(first), 7);
    Reg<U64> at = b.sub(first, b.cvt<U64>(skip));
    Reg<S32> place = b.sub(lowest, Builder::as<S32>(skip));
    // From `at` to the last word that a place reads.
    Reg<S32> last = b.and_(b.sub(b.sub(b.add(highest, size), place), 1), ~7);
    Reg<U64> considered = b.shl(b.constant<U64>(0x8080808080808080u), b.shl(skip, 3));
    Reg<U32> state = b.constant<U32>(0);  // 1: found, 2: there is no place
    Reg<U64> word = b.ld_nc<U64>(At(at)), following = load_word(b, at, 8, last),
             third = load_word(b, at, 16, last);
    b.bind(next_word);
    Reg<U64> fourth = load_word(b, at, 24, last);
    const auto [low, high] = b.unpack(word);
    const Reg<U32> above = b.cvt<U32>(following);
    Reg<U64> hits = b.and_(b.pack<U64>(hits_of(b, low, high, bytes4, masks4), hits_of(b, high, above, bytes4, masks4)),
                           considered);
    b.bind(next_hit);
    b.when(b.setp(ptx::Compare::eq, hits, uint64_t{0})).bra(hits_done);
    Reg<U32> byte = b.shr(b.clz(b.brev(hits)), 3);
    b.add(place, Builder::as<S32>(byte), found);
    Reg<Pred> beyond = b.setp(ptx::Compare::gt, found, highest);
    b.when(beyond).constant<U32>(2, state);
    b.when(beyond).bra(hits_done);
    Reg<S32> further = b.sub(size, 4);
    Reg<U64> value = b.add(program, b.cvt<U64>(head[2]));
    Reg<U64> mask_distance = b.cvt<U64>(further);
    Reg<U64> here = b.add(b.add(at, b.cvt<U64>(byte)), 4);
    Reg<U32> wrong = b.constant<U32>(0);
    b.bind(next_byte);
    b.when(b.setp(ptx::Compare::le, further, 0)).bra(rest_done);
    Reg<U32> difference = b.xor_(b.cvt<U32>(b.ld_nc<ptx::U8>(At(here))), b.cvt<U32>(b.ld_nc<ptx::U8>(At(value))));
    Reg<U32> mask = b.cvt<U32>(b.ld_nc<ptx::U8>(At(b.add(value, mask_distance))));
    b.and_(difference, mask, wrong);
    b.when(b.setp(ptx::Compare::ne, wrong, 0)).bra(rest_done);
    b.add(here, 1, here);
    b.add(value, 1, value);
    b.sub(further, 1, further);
    b.bra(next_byte);
    b.bind(rest_done);
    b.and_(hits, b.sub(hits, 1), hits);
    b.when(b.setp(ptx::Compare::ne, wrong, 0)).bra(next_hit);
    b.assign(state, 1);
    b.bind(hits_done);
    b.when(b.setp(ptx::Compare::ne, state, 0)).bra(word_done);
    b.add(place, 8, place);
    Reg<Pred> no_more = b.setp(ptx::Compare::gt, place, highest);
    b.when(no_more).constant<U32>(2, state);
    b.when(no_more).bra(word_done);
    b.add(at, 8, at);
    b.sub(last, 8, last);
    b.mov(following, word);
    b.mov(third, following);
    b.mov(fourth, third);
    b.constant<U64>(0x8080808080808080u, considered);
    b.bra(next_word);
    b.bind(word_done);
    b.when(b.setp(ptx::Compare::eq, state, 2)).bra(refused);

    b.when(is_end).mov(found, end);
    b.unless(is_end).add(found, size, position);
    b.add(piece, sizeof(Piece), piece);
    b.sub(left, 1, left);
    b.bra(next_piece);
    b.bind(matched);
    b.assign(result, 1);
    b.bind(refused);
    Reg<ptx::U16> answer = b.cvt<ptx::U16>(result);
    b.st<ptx::U8>(Space::global, element_at(b, out, row, 1), answer);
    b.bind(next_string);
  });
  b.ret();
  b.finish();
  return block_threads;
}

}  // namespace

void add_like(KernelRows& rows) { rows.push_back({"like", build_like}); }

Result<Vector> like(Library& library, const Strings& strings, std::string_view pattern, std::optional<char> escape,
                    Memory& memory) {
  if (strings.count > max_rows)
    return input_error("a vector of {} elements is too long for an operator: at most {}", strings.count, max_rows);
  if (pattern.size() > UINT32_MAX / 4) return input_error("a pattern of {} bytes is too long for like", pattern.size());
  Vector out{.type = Type::u8, .capacity = strings.count, .min = 0, .max = 1};
  ASSIGN_OR_RETURN(out.data, memory.result(strings.count));
  if (strings.count == 0) return out;
  const Pattern compiled = compile(pattern, escape);
  Address program = 0;
  if (!compiled.program.empty()) {
    ASSIGN_OR_RETURN(program, memory.temporary(compiled.program.size()));
    RETURN_IF_ERROR(library.device().copy_to_device(program, compiled.program.data(), compiled.program.size()));
  }
  ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel("like", build_like));
  Arguments a;
  a.add(strings.handles).add(strings.pad).add(strings.count).add(program).add(compiled.pieces);
  a.add(compiled.shortest).add(compiled.longest).add(out.data);
  RETURN_IF_ERROR(
      library.launch(*kernel, library.grid(*kernel, tiles_for(strings.count, block_threads)), a, strings.count * 9));
  return out;
}

}  // namespace rndn::operators
