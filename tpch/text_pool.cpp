// Builds the pool of comment text from the grammar of TPC-H clause 4.2.2.14.
//
// One stream of random numbers drives everything: a sentence takes a varying number of draws, and the next one goes on
// where it ended, so the official generator builds the pool serially. Here it is built in parallel: a sentence depends
// on nothing but the position in the stream at which it starts. The stream is cut into chunks of draws; every chunk is
// written by some thread as if a sentence started at its first draw, and the starts of its first sentences are noted.
// Then, in order of chunks, the true text is continued from the end of the chunk before, sentence by sentence, until
// one starts where the chunk has noted a start: from there on both are the same, as two readings of a variable-length
// code fall into step. That takes a few dozen sentences; should the noted starts not suffice, the whole chunk is simply
// written again.
//
// Cost: about 65 million draws, a table look-up and a 24-byte copy each. Memory: the pool and one chunk per thread.
#include "tpch/text_pool.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <vector>

#include "libraries/base/errors/check.h"
#include "libraries/base/system/parallel.h"
#include "libraries/base/system/wait.h"
#include "tpch/distributions.h"
#include "tpch/random.h"

namespace rndn::tpch {
namespace {

constexpr uint32_t pool_seed = 933588178;
constexpr size_t longest_sentence = 1024;  // an upper bound; see the check in Grammar
constexpr size_t noted_starts = 4096;

// A word with the blank behind it, copied as a whole.
struct Token {
  char text[24];
  uint32_t length;
};
using Choice = std::vector<Token>;  // one entry per unit of weight

Choice expand(std::span<const Word> words, std::string_view behind) {
  Choice choice;
  for (const Word& word : words) {
    Token token{};
    token.length = static_cast<uint32_t>(word.text.size() + behind.size());
    CHECK(token.length <= sizeof token.text);
    word.text.copy(token.text, word.text.size());
    behind.copy(token.text + word.text.size(), behind.size());
    choice.insert(choice.end(), word.weight, token);
  }
  return choice;
}

struct Phrase {
  std::array<const Choice*, 3> words{};
  uint32_t count = 0;
};

// The word lists in the form that writing needs.
struct Grammar {
  Choice noun = expand(nouns, " "), verb = expand(verbs, " "), adverb = expand(adverbs, " ");
  Choice adjective = expand(adjectives, " "), listed_adjective = expand(adjectives, ", "),
         auxiliary = expand(auxiliaries, " ");
  Choice preposition = expand(prepositions, " the "), terminator = expand(terminators, " ");
  std::vector<Phrase> noun_forms, verb_forms;
  std::vector<std::string_view> sentence_forms;

  Grammar() {
    for (const Word& form : noun_phrases) noun_forms.insert(noun_forms.end(), form.weight, phrase(form.text, true));
    for (const Word& form : verb_phrases) verb_forms.insert(verb_forms.end(), form.weight, phrase(form.text, false));
    for (const Word& form : sentences) {
      // Per letter at most a preposition and a phrase of three words.
      CHECK(form.text.size() * 4 * sizeof(Token::text) <= longest_sentence);
      sentence_forms.insert(sentence_forms.end(), form.weight, form.text);
    }
  }

  Phrase phrase(std::string_view form, bool is_noun_phrase) const {
    Phrase result;
    for (size_t i = 0; i < form.size(); ++i) {
      bool listed = i + 1 < form.size() && form[i + 1] == ',';
      switch (form[i]) {
        case 'N': result.words[result.count++] = &noun; break;
        case 'J': result.words[result.count++] = listed ? &listed_adjective : &adjective; break;
        case 'D': result.words[result.count++] = &adverb; break;
        case 'V': result.words[result.count++] = &verb; break;
        case 'X': result.words[result.count++] = &auxiliary; break;
        case ' ':
        case ',': break;
        default: CHECK(false, "no such letter in a {} phrase: {}", is_noun_phrase ? "noun" : "verb", form);
      }
    }
    return result;
  }
};

// Writes sentences at `out`, which must have room for longest_sentence bytes behind each start.
struct Writer {
  const Grammar& grammar;
  char* out;
  uint32_t seed;  // of the stream at `draw`
  uint64_t draw;  // draws taken from the stream so far

  template <class T>
  const T& pick(const std::vector<T>& choice) {
    seed = step(seed);
    ++draw;
    return choice[scaled(seed, static_cast<uint32_t>(choice.size()))];
  }
  void word(const Choice& choice) {
    const Token& token = pick(choice);
    std::memcpy(out, token.text, sizeof token.text);
    out += token.length;
  }
  void phrase(const std::vector<Phrase>& forms) {
    const Phrase& phrase = pick(forms);
    for (uint32_t i = 0; i < phrase.count; ++i) word(*phrase.words[i]);
  }
  void sentence() {
    for (char letter : pick(grammar.sentence_forms)) {
      switch (letter) {
        case 'N': phrase(grammar.noun_forms); break;
        case 'V': phrase(grammar.verb_forms); break;
        case 'P':
          word(grammar.preposition);
          phrase(grammar.noun_forms);
          break;
        case 'T':
          --out;  // the terminator takes the place of the blank
          word(grammar.terminator);
          break;
        default: break;  // blanks between the letters
      }
    }
  }
};

struct Start {
  uint64_t draw;
  size_t offset;  // of the sentence in the chunk's text
};

}  // namespace

TextPool::TextPool(unsigned threads, uint64_t draws_per_chunk) : text_(std::make_unique_for_overwrite<char[]>(size)) {
  if (threads == 0) threads = hardware_threads();
  const Grammar grammar;
  const size_t capacity = draws_per_chunk * sizeof(Token::text) + longest_sentence;

  std::mutex mutex;
  std::condition_variable turn_taken;
  uint64_t next_chunk = 0;  // to be handed out
  uint64_t turn = 0;        // to be joined
  uint64_t true_draw = 0;   // where the next sentence of the pool starts in the stream
  size_t used = 0;          // bytes of the pool that are spoken for
  bool failed = false;      // a thread gave up

  auto write_chunks = [&] {
    std::unique_ptr<char[]> text = std::make_unique_for_overwrite<char[]>(capacity);
    std::vector<char> bridge;  // what had to be written again
    std::vector<Start> starts;
    for (;;) {
      uint64_t chunk;
      {
        std::lock_guard lock(mutex);
        if (used >= size || failed) return;
        chunk = next_chunk++;
      }
      uint64_t first = chunk * draws_per_chunk, last = first + draws_per_chunk;
      Writer writer{grammar, text.get(), skip(pool_seed, first), first};
      starts.clear();
      while (writer.draw < last) {
        if (starts.size() < noted_starts) starts.push_back({writer.draw, static_cast<size_t>(writer.out - text.get())});
        writer.sentence();
      }

      size_t at, bridge_size = 0, from = 0, length = 0;
      {
        std::unique_lock lock(mutex);
        wait_for_change(turn_taken, lock, [&] { return turn == chunk || failed; });
        if (failed) return;
        at = used;
        auto noted = starts.begin();
        auto in_step = [&](uint64_t draw) {
          while (noted != starts.end() && noted->draw < draw) ++noted;
          return noted != starts.end() && noted->draw == draw;
        };
        Writer again{grammar, nullptr, skip(pool_seed, true_draw), true_draw};
        while (again.draw < last && !in_step(again.draw)) {
          bridge.resize(std::max(bridge.size(), bridge_size + longest_sentence));
          again.out = bridge.data() + bridge_size;
          again.sentence();
          bridge_size = again.out - bridge.data();
        }
        if (again.draw < last) {
          from = noted->offset;
          length = static_cast<size_t>(writer.out - text.get()) - from;
          true_draw = writer.draw;
        } else {
          true_draw = again.draw;
        }
        used += bridge_size + length;
        ++turn;
      }
      turn_taken.notify_all();
      auto copy = [&](const char* source, size_t bytes) {
        if (at < size) std::memcpy(text_.get() + at, source, std::min<size_t>(bytes, size - at));
        at += bytes;
      };
      if (bridge_size) copy(bridge.data(), bridge_size);
      if (length) copy(text.get() + from, length);
    }
  };
  auto work = [&](size_t) {
    try {
      write_chunks();
    } catch (...) {  // out of memory: nobody may wait for this chunk's turn
      std::lock_guard lock(mutex);
      failed = true;
      turn_taken.notify_all();
      throw;
    }
  };
  parallel_for(threads, work, threads);
}

std::shared_ptr<const TextPool> TextPool::get(unsigned threads) {
  // Remembers an immutable value that others hold; keeps nothing alive.
  static std::mutex mutex;
  static std::weak_ptr<const TextPool> remembered;
  std::lock_guard lock(mutex);
  std::shared_ptr<const TextPool> pool = remembered.lock();
  if (!pool) remembered = pool = std::make_shared<const TextPool>(threads);
  return pool;
}

}  // namespace rndn::tpch
