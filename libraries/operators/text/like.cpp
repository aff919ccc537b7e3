// like: a pattern against every string (docs/horseir.md, "like"). `%` stands for any run of bytes,
// `_` for one byte, the whole string must match.
//
// The pattern is cut at its `%` into pieces. The piece before the first `%` must stand at the start, the one after the last at the end, and
// every piece between is looked for from left to right, each at its leftmost place: that choice leaves the most to the pieces after it, so
// no other needs to be tried. The two fixed pieces come first because they refuse most strings at once.
//
// Behind an escape character `%` and `_` stand for themselves.
// One kernel serves all patterns: pieces are data (a record each, below), so that a new pattern costs no compilation. A warp takes 32
// strings. Where no fixed piece refuses most of them, and they follow each other in the pad, the warp first reads all their bytes, in
// neighbouring words of eight, and tests each for bytes of one piece (a probe, below): a string none of whose words passes does not match.
// That costs no lane more than another, however long its string is, and reads each sector of memory once. The strings that are left are
// collected until each lane of the warp has one.
// Then a thread takes a string and reads it in aligned words of eight bytes, which pads consist of, three words ahead of the one that is
// looked at: lanes are at different places of their memory sectors, so that some lane of a warp waits at nearly every word. Four places
// are tested at once: four bytes, and these moved by one, two and three bytes, each compared with one of the piece's first four bytes
// repeated four times; the bytes that stay zero in the union are the places where these agree. Bytes five and on are compared one by one
// at those places only.
// Bytes beyond a string's last are read, but no place reaches them. Cost per string: O(length) times the pieces that are reached.
// Leaves out: several lanes for one long string that passed the test of words; how often bytes occur, when a piece is chosen.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <tuple>

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

// What every matching string has in one of its words of eight bytes. Bytes of a piece between the `%`, without a `_`.
//   aligned  Seven bytes in a row hold an aligned group of four bytes, wherever they stand: one of the first four groups of the piece.
//   anywhere Up to four bytes at fixed distances: of each group of four places, the bytes there moved by the distance are compared with
//            that byte, four times, as hits_of does.
enum class ProbeForm : uint32_t { none, anywhere, aligned };
struct PatternProbe {
  ProbeForm form = ProbeForm::none;
  std::array<uint64_t, 4>
      tests{};  // four bytes, and above them (anywhere) how prmt moves the group and the one behind it
};
constexpr uint32_t batch_rows = 32, words_ahead = 4;  // of a warp; loads in flight
constexpr uint32_t batches_untested = 15;             // behind one that most strings passed
constexpr uint32_t unmoved = 0x3210, one_further = 0x1111;

struct Pattern {
  std::vector<std::byte> program;  // the pieces, then their further bytes
  uint32_t pieces = 0;
  uint64_t shortest = 0, longest = UINT32_MAX;  // bytes that a matching string may have
  PatternProbe probe;
};

struct PatternPart {
  std::string text, masks;  // masks: 0 for any byte, else 255
  PieceKind kind;
};

// The first of the longest rows of bytes that a probe can use; none where a fixed piece refuses most strings already.
PatternProbe probe_of(std::span<const PatternPart> parts) {
  constexpr size_t enough = 7;
  std::string_view best;
  for (const PatternPart& part : parts) {
    if (part.kind != floating && part.masks.find('\xff') != std::string::npos) return {};
    if (part.kind != floating) continue;
    for (size_t at = 0; at < part.text.size();) {
      const size_t end = std::min(part.masks.find('\0', at), part.text.size());
      if (std::min(end - at, enough) > best.size())
        best = std::string_view(part.text).substr(at, std::min(end - at, enough));
      at = end + 1;
    }
  }
  PatternProbe probe;
  if (best.empty()) return probe;
  probe.form = best.size() == enough ? ProbeForm::aligned : ProbeForm::anywhere;
  for (uint32_t k = 0; k < probe.tests.size(); ++k) {
    const auto byte = [&](size_t i) { return uint32_t{static_cast<uint8_t>(best[i])}; };
    const uint32_t at = k < best.size() ? k : 0;
    probe.tests[k] = probe.form == ProbeForm::aligned
                         ? byte(k) | byte(k + 1) << 8 | byte(k + 2) << 16 | byte(k + 3) << 24
                         : byte(at) * 0x01010101u | uint64_t{unmoved + at * one_further} << 32;
  }
  return probe;
}

Pattern compile(std::string_view pattern, std::optional<char> escape) {
  std::vector<PatternPart> parts(1, {"", "", at_start});
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
  std::erase_if(parts, [](const PatternPart& p) { return p.text.empty(); });
  out.probe = probe_of(parts);
  std::vector<std::byte> rest;
  std::vector<Piece> pieces;
  for (const PatternPart& part : parts) {
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
    Reg<U32> moved = b.prmt(word, following, unmoved + one_further * k);
    differs = b.or_(differs, b.and_(b.xor_(moved, bytes[k]), masks[k]));
  }
  Reg<U32> low = b.add(b.and_(differs, 0x7F7F7F7Fu), 0x7F7F7F7Fu);
  return b.not_(b.or_(low, differs));  // its other bits are left to who reads it
}

// Whether a group of four bytes, with the one behind it, passes: not 0. The first byte of a probe is never moved.
Reg<U32> passes_anywhere(Builder& b, Reg<U32> word, Reg<U32> following, std::span<const Reg<U32>> bytes,
                         std::span<const Reg<U32>> moves) {
  Reg<U32> differs = b.xor_(word, bytes[0]);
  for (uint32_t k = 1; k < 4; ++k) differs = b.or_(differs, b.xor_(b.prmt(word, following, moves[k]), bytes[k]));
  return b.and_(b.and_(b.add(differs, 0xFEFEFEFFu), b.not_(differs)), 0x80808080u);
}

struct WordTest {
  Reg<U32> form, lane;
  std::array<Reg<U32>, 4> bytes, moves;  // of the probe
};

// Whether a word that holds a byte of the lane's string passes: of all words from the first to the last lane's strings, which follow each
// other. `last`: the last lane that has one.
Reg<Pred> passes(Builder& b, const WordTest& scan, Reg<U64> text, Reg<U32> length, Reg<U32> last) {
  Reg<U64> from = b.and_(b.shfl_sync_64(ShuffleMode::idx, text, 0u, 31u), ~uint64_t{7});
  Reg<U64> end = b.add(text, b.cvt<U64>(length));
  Reg<S32> words =
      Builder::as<S32>(b.cvt<U32>(b.shr(b.add(b.sub(b.shfl_sync_64(ShuffleMode::idx, end, last, 31u), from), 7), 3)));
  // The lane's own words, the first and the one behind the last.
  Reg<S32> begin = Builder::as<S32>(b.cvt<U32>(b.shr(b.sub(text, from), 3)));
  Reg<S32> behind = Builder::as<S32>(b.cvt<U32>(b.shr(b.add(b.sub(end, from), 7), 3)));
  Reg<S32> last_word = b.sub(words, 1), lane = Builder::as<S32>(scan.lane);
  Reg<U32> found = b.constant<U32>(0), all = b.constant<U32>(UINT32_MAX);
  Reg<S32> at = b.constant<S32>(0);
  const LabelId next_round = b.label(), anywhere = b.label(), tested = b.label(), done = b.label();
  b.bind(next_round);
  b.when(b.setp(Is::ge, at, words)).bra_uni(done);
  const auto word_at = [&](Reg<S32> number) {
    return At(b.mad_wide(Builder::as<U32>(b.min(number, last_word)), 8u, from));
  };
  std::array<Reg<U32>, words_ahead> low, high, hits;
  {
    std::array<Reg<U64>, words_ahead> words_read;
    Reg<S32> own = b.add(at, lane);
    for (uint32_t k = 0; k < words_ahead; ++k)
      words_read[k] = b.ld_nc<U64>(word_at(k ? b.add(own, static_cast<int32_t>(32 * k)) : own));
    for (uint32_t k = 0; k < words_ahead; ++k) {
      std::tie(low[k], high[k]) = b.unpack(words_read[k]);
      hits[k] = b.reg<U32>();
    }
  }
  b.when(b.setp(Is::ne, scan.form, static_cast<uint32_t>(ProbeForm::aligned))).bra_uni(anywhere);
  for (uint32_t k = 0; k < words_ahead; ++k) {
    Reg<Pred> hit = b.setp(Is::eq, low[k], scan.bytes[0]);
    for (uint32_t i = 1; i < 4; ++i) hit = b.setp(Is::eq, Combine::or_, low[k], scan.bytes[i], hit);
    for (uint32_t i = 0; i < 4; ++i) hit = b.setp(Is::eq, Combine::or_, high[k], scan.bytes[i], hit);
    b.ballot(hit, 0xFFFFFFFFu, hits[k]);
  }
  b.bra_uni(tested);
  b.bind(anywhere);
  {
    // Behind a lane's word lies that of the next lane, and behind the last lane's the first one of the next load.
    Reg<U32> next_lane = b.and_(b.add(scan.lane, 1), 31);
    Reg<Pred> is_first = b.setp(Is::eq, scan.lane, 0);
    Reg<U32> next = b.ld_nc<U32>(word_at(b.add(at, static_cast<int32_t>(32 * words_ahead))));
    for (uint32_t k = words_ahead; k-- > 0;) {
      Reg<U32> behind_high = b.shfl_sync(ShuffleMode::idx, b.selp(next, low[k], is_first), next_lane, 31u);
      Reg<U32> passed = b.or_(passes_anywhere(b, low[k], high[k], scan.bytes, scan.moves),
                              passes_anywhere(b, high[k], behind_high, scan.bytes, scan.moves));
      b.ballot(b.setp(Is::ne, passed, 0), 0xFFFFFFFFu, hits[k]);
      next = low[k];
    }
  }
  b.bind(tested);
  for (uint32_t k = 0; k < words_ahead; ++k) {
    const LabelId nothing = b.label();
    b.when(b.setp(Is::eq, hits[k], 0)).bra_uni(nothing);
    Reg<S32> of = k ? b.add(at, static_cast<int32_t>(32 * k)) : at;
    const auto below = [&](Reg<S32> word) {  // a bit for each of these words before that one is 0
      return b.shl(all, Builder::as<U32>(b.max(b.sub(word, of), 0)));
    };
    Reg<U32> own = b.and_(below(begin), b.not_(below(behind)));
    b.or_(found, b.and_(hits[k], own), found);
    b.bind(nothing);
  }
  b.add(at, static_cast<int32_t>(32 * words_ahead), at);
  b.bra_uni(next_round);
  b.bind(done);
  return b.setp(Is::ne, found, 0);
}

uint32_t build_like(ptx::Module& module, std::string_view name) {
  KernelBuilder b(module, name);
  b.set_block_size(block_threads);
  const Parameter handles_at = b.parameter<U64>("handles"), pad_at = b.parameter<U64>("pad");
  const Parameter count = b.parameter<U64>("count"), program_at = b.parameter<U64>("program");
  const Parameter pieces_at = b.parameter<U64>("pieces"), shortest_at = b.parameter<U64>("shortest");
  const Parameter longest_at = b.parameter<U64>("longest"), form_at = b.parameter<U64>("form");
  std::array<Parameter, 4> tests_at;
  for (uint32_t k = 0; k < 4; ++k) tests_at[k] = b.parameter<U64>("test" + std::to_string(k));
  const Parameter out_at = b.parameter<U64>("out");
  const Thread t = thread_of(b);
  Reg<U32> n = b.cvt<U32>(b.ld_param(count));
  Reg<U64> handles = b.ld_param(handles_at), pad = b.ld_param(pad_at), program = b.ld_param(program_at);
  Reg<U64> out = b.ld_param(out_at);
  Reg<U32> pieces = b.cvt<U32>(b.ld_param(pieces_at));
  Reg<U32> shortest = b.cvt<U32>(b.ld_param(shortest_at)), longest = b.cvt<U32>(b.ld_param(longest_at));
  WordTest scan{.form = b.cvt<U32>(b.ld_param(form_at)), .lane = t.lane};
  for (uint32_t k = 0; k < 4; ++k) std::tie(scan.bytes[k], scan.moves[k]) = b.unpack(b.ld_param(tests_at[k]));

  constexpr uint32_t block_warps = block_threads / batch_rows;
  Reg<U32> batch = b.mad_lo(b.special(ptx::SpecialRegister::ctaid_x), block_warps, t.warp);
  Reg<U32> step = b.shl(b.special(ptx::SpecialRegister::nctaid_x), 3);
  static_assert(block_warps == 8);
  Reg<U32> batches = tiles_of(b, n, batch_rows), last_row = b.sub(n, 1);
  Reg<U32> untested = b.constant<U32>(0);                                   // how many batches will not be tested
  Reg<U32> waiting = b.constant<U32>(0), waiting_row = b.constant<U32>(0);  // how many; the lane's, below that number
  Reg<U32> left = b.constant<U32>(0), first_row = b.constant<U32>(0);       // of a batch: those still to be collected
  Reg<U32> row = b.constant<U32>(0);                                        // whose string the lane looks at
  Reg<Pred> looks = b.reg<Pred>();
  const auto handle_of = [&](Reg<U32> of) { return b.ld_nc<U64>(element_at(b, handles, of, 8)); };
  const auto row_of = [&](Reg<U32> in) { return b.min(b.mad_lo(in, batch_rows, t.lane), last_row); };
  Reg<U64> ahead = b.constant<U64>(0);
  const LabelId next = b.label(), no_more = b.label(), select = b.label(), collect = b.label(), flush = b.label(),
                look = b.label(), done = b.label(), is_none = b.label();
  b.when(b.setp(Is::ge, batch, batches)).bra_uni(is_none);
  b.mov(handle_of(row_of(batch)), ahead);
  b.bind(is_none);

  b.bind(next);
  b.when(b.setp(Is::ne, left, 0)).bra_uni(collect);
  b.when(b.setp(Is::ge, batch, batches)).bra_uni(no_more);
  {
    Reg<U64> handle = b.mov(ahead);
    b.shl(batch, 5, first_row);
    static_assert(batch_rows == 32);
    b.add(batch, step, batch);
    b.mov(handle_of(row_of(batch)), ahead);
    Reg<U32> own_row = b.add(first_row, t.lane), length = b.and_(b.cvt<U32>(handle), 0xFFFFFF);
    Reg<Pred> exists = b.setp(Is::lt, own_row, n);
    Reg<Pred> fits =
        b.setp(Is::le, Combine::and_, length, longest, b.setp(Is::ge, Combine::and_, length, shortest, exists));
    b.when(b.setp(Is::eq, scan.form, static_cast<uint32_t>(ProbeForm::none))).bra_uni(select);
    {
      const LabelId test = b.label();
      b.when(b.setp(Is::eq, untested, 0)).bra_uni(test);
      b.sub(untested, 1, untested);
      b.bra_uni(select);
      b.bind(test);
      // One string begins where the one before it ends, or in the same sector.
      Reg<U64> text = b.add(pad, b.shr(handle, 24));
      Reg<U64> end_before = b.shfl_sync_64(ShuffleMode::up, b.add(text, b.cvt<U64>(length)), 1u, 0u);
      Reg<Pred> follows = b.setp(Is::lt, b.sub(text, end_before), uint64_t{32});
      b.or_(follows, b.or_(b.setp(Is::eq, t.lane, 0), b.not_(exists)), follows);
      b.unless(b.vote(VoteMode::all, follows)).bra_uni(select);
      Reg<U32> last = b.min(b.sub(last_row, first_row), 31);
      b.and_(fits, passes(b, scan, text, length, last), fits);
      // Where most strings pass, tests are in vain.
      b.select<U32>(batches_untested, 0u, b.setp(Is::ge, b.popc(b.ballot(fits)), batch_rows / 2), untested);
    }
    b.bind(select);
    b.ballot(fits, 0xFFFFFFFFu, left);
    const At answer = element_at(b, out, own_row, 1);
    store_if<U8>(b, b.and_(exists, b.not_(fits)), Space::global, answer, b.constant<U16>(0));
    Reg<Pred> are_few = b.setp(Is::lt, b.popc(left), batch_rows / 2);
    b.when(are_few).bra_uni(next);
    b.mov(own_row, row);
    b.and_(fits, fits, looks);
    b.constant<U32>(0, left);
    b.bra_uni(look);
  }
  b.bind(collect);
  b.selp(b.add(first_row, b.clz(b.brev(left))), waiting_row, b.setp(Is::eq, t.lane, waiting), waiting_row);
  b.add(waiting, 1, waiting);
  b.and_(left, b.sub(left, 1), left);
  b.when(b.setp(Is::lt, waiting, batch_rows)).bra_uni(next);
  b.bra_uni(flush);
  b.bind(no_more);
  b.when(b.setp(Is::eq, waiting, 0)).bra_uni(done);
  b.bind(flush);
  b.mov(waiting_row, row);
  b.setp(Is::lt, t.lane, waiting, looks);
  b.constant<U32>(0, waiting);

  b.bind(look);
  {
    const LabelId next_string = b.label(), next_piece = b.label(), matched = b.label(), refused = b.label();
    b.unless(looks).bra(next_string);
    Reg<U64> handle = handle_of(row);
    Reg<S32> length = Builder::as<S32>(b.and_(b.cvt<U32>(handle), 0xFFFFFF));
    Reg<U64> text = b.add(pad, b.shr(handle, 24));
    Reg<U32> result = b.constant<U32>(0);
    Reg<S32> position = b.constant<S32>(0), end = b.mov(length);
    Reg<U64> piece = b.mov(program);
    Reg<U32> pieces_left = b.mov(pieces);

    b.bind(next_piece);
    b.when(b.setp(ptx::Compare::eq, pieces_left, 0)).bra(matched);
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
    Reg<U64> word = b.ld_nc<U64>(At(at)), following = load_word(b, at, 8, last), third = load_word(b, at, 16, last);
    b.bind(next_word);
    Reg<U64> fourth = load_word(b, at, 24, last);
    const auto [low, high] = b.unpack(word);
    const Reg<U32> above = b.cvt<U32>(following);
    Reg<U64> hits =
        b.and_(b.pack<U64>(hits_of(b, low, high, bytes4, masks4), hits_of(b, high, above, bytes4, masks4)), considered);
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
    b.sub(pieces_left, 1, pieces_left);
    b.bra(next_piece);
    b.bind(matched);
    b.assign(result, 1);
    b.bind(refused);
    Reg<ptx::U16> answer = b.cvt<ptx::U16>(result);
    b.st<ptx::U8>(Space::global, element_at(b, out, row, 1), answer);
    b.bind(next_string);
  }
  b.bra_uni(next);
  b.bind(done);
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
    ASSIGN_OR_RETURN(program, library.kept(compiled.program));
    if (program == 0) {
      ASSIGN_OR_RETURN(program, memory.temporary(compiled.program.size()));
      RETURN_IF_ERROR(library.device().copy_to_device(program, compiled.program.data(), compiled.program.size()));
    }
  }
  ASSIGN_OR_RETURN(const Kernel* kernel, library.kernel("like", build_like));
  Arguments a;
  a.add(strings.handles).add(strings.pad).add(strings.count).add(program).add(compiled.pieces);
  a.add(compiled.shortest).add(compiled.longest).add(static_cast<uint64_t>(compiled.probe.form));
  for (uint64_t test : compiled.probe.tests) a.add(test);
  a.add(out.data);
  RETURN_IF_ERROR(
      library.launch(*kernel, library.grid(*kernel, tiles_for(strings.count, block_threads)), a, strings.count * 9));
  return out;
}

}  // namespace rndn::operators
