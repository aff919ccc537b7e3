// Random Arrow streams for tests of what takes them: tables of several arrays, of every type that
// has a row in runtime/data/arrow_types.cpp and some that have none, with offsets, missing rows and
// dictionaries; and the same with something wrong in a record or in the stream itself.
//
//   RandomArrow made(random);
//   open_arrow("t", ArrowStream(made.stream({.is_wrong = true})));
//   made.held();                        // records and streams that are not released: 0
//
// What is wrong can always be seen in the records. How long buffers are cannot, so that each has
// bytes to spare beyond what a record may say of it by mistake. Of columns of integers and texts it
// is kept which cells they have. In memory, and as large as it is asked to be.
#pragma once
#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/data/arrow_abi.h"
#include "tests/support/choices.h"

namespace rndn::testing {

class RandomArrow {
 public:
  struct Wanted {
    int most_columns = 4, most_chunks = 3, most_rows = 12;
    bool is_wrong = false;
    bool only_simple = false;  // types that every reader takes, and values within their types
  };
  struct Column {
    std::string name, format;
    bool has_cells = false;  // below: of formats whose cells are kept
    std::vector<std::optional<std::string>> cells;
  };

  explicit RandomArrow(Choices& random) : random_(random) {}
  RandomArrow(const RandomArrow&) = delete;

  int held() const { return held_; }
  // Of the last stream.
  const std::vector<Column>& columns() const { return columns_; }
  int64_t rows() const { return rows_; }

  ArrowArrayStream stream(const Wanted& wanted) {
    columns_.clear();
    rows_ = 0;
    auto* state = new State(this);
    std::vector<Type> types;
    const int count = at_most(wanted.most_columns - 1) + 1;
    for (int c = 0; c < count; ++c) {
      types.push_back(type(wanted.only_simple));
      columns_.push_back({.name = "c" + std::to_string(c), .format = types.back().format});
      columns_.back().has_cells = types.back().codes.empty() && types.back().format.size() == 1 &&
                                  std::strchr("csiluU", types.back().format[0]);
    }
    state->schema = schema(types);
    for (int k = at_most(wanted.most_chunks); k > 0; --k)
      state->arrays.push_back(table(types, at_most(wanted.most_rows), wanted.only_simple));
    if (wanted.is_wrong) spoil(*state);
    ArrowArrayStream stream{};
    stream.private_data = state;
    stream.get_schema = [](ArrowArrayStream* s, ArrowSchema* out) {
      auto& of = *static_cast<State*>(s->private_data);
      if (of.fails_at == 0) return EIO;
      *out = std::exchange(of.schema, ArrowSchema{});
      return 0;
    };
    stream.get_next = [](ArrowArrayStream* s, ArrowArray* out) {
      auto& of = *static_cast<State*>(s->private_data);
      *out = {};
      if (of.fails_at == static_cast<int>(of.next) + 1) return ENOMEM;
      if (of.next < of.arrays.size()) *out = std::exchange(of.arrays[of.next++], ArrowArray{});
      return 0;
    };
    stream.get_last_error = [](ArrowArrayStream* s) -> const char* {
      return static_cast<State*>(s->private_data)->says_why ? "the disk \xff\nis gone" : nullptr;
    };
    stream.release = [](ArrowArrayStream* s) {
      delete static_cast<State*>(s->private_data);
      s->release = nullptr;
    };
    if (state->without == 1) stream.get_schema = nullptr;
    if (state->without == 2) stream.get_next = nullptr;
    if (state->without == 3) {
      stream.get_last_error = nullptr;
      state->fails_at = at_most(static_cast<int>(state->arrays.size()) + 1);
    }
    return stream;
  }

 private:
  struct Type {
    std::string format, codes;  // with codes: a dictionary's
  };
  struct State {
    RandomArrow* owner;
    ArrowSchema schema{};
    std::vector<ArrowArray> arrays{};
    size_t next = 0;
    int fails_at = -1;  // 0: the schema, 1: the first array ..
    int without = 0;    // 1: get_schema, 2: get_next, 3: get_last_error, which is asked for, too
    bool says_why = true;
    explicit State(RandomArrow* of) : owner(of) { ++owner->held_; }
    State(const State&) = delete;
    ~State() {
      --owner->held_;
      if (schema.release) schema.release(&schema);
      for (ArrowArray& array : arrays)
        if (array.release) array.release(&array);
    }
  };
  // What a record of ours points to.
  template <class Record>
  struct Behind {
    RandomArrow* owner;
    std::vector<Record> children{};
    std::vector<Record*> pointers{};
    Record dictionary{};
    std::string format{}, name{};
    std::vector<std::vector<uint8_t>> storage{};
    std::vector<const void*> buffers{};
  };

  int at_most(int n) {
    return n <= 0 ? 0 : static_cast<int>(random_() % static_cast<unsigned>(n + 1));
  }
  bool once_in(int n) { return at_most(n - 1) == 0; }
  template <class T, size_t N>
  const T& one_of(const T (&all)[N]) {
    return all[random_() % N];
  }

  template <class Record>
  Record owned(std::unique_ptr<Behind<Record>> behind) {
    behind->pointers.reserve(behind->children.size() + 4);
    for (Record& child : behind->children) behind->pointers.push_back(&child);
    Record record{};
    record.n_children = static_cast<int64_t>(behind->children.size());
    record.children = behind->pointers.data();
    if (behind->dictionary.release) record.dictionary = &behind->dictionary;
    record.private_data = behind.release();
    record.release = [](Record* r) {
      auto* b = static_cast<Behind<Record>*>(r->private_data);
      for (Record& child : b->children)
        if (child.release) child.release(&child);
      if (b->dictionary.release) b->dictionary.release(&b->dictionary);
      --b->owner->held_;
      delete b;
      r->release = nullptr;
    };
    ++held_;
    return record;
  }

  Type type(bool is_simple) {
    static const char* const simple[] = {"c", "s", "i", "l", "u", "g", "b", "U", "f"};
    static const char* const all[] = {
        "n",          "b",      "c",       "s",        "i",
        "l",          "C",      "S",       "I",        "L",
        "f",          "g",      "u",       "U",        "vu",
        "tdD",        "tdm",    "tts",     "ttm",      "ttu",
        "ttn",        "tss:",   "tsm:UTC", "tsu:",     "tsn:Europe/Rome",
        "d:5,2",      "d:18,0", "d:38,10", "d:9,2,32", "d:18,4,64",
        "d:38,2,256", "e",      "z",       "w:3",      "+s",
        "tDs",        "vz"};
    static const char* const codes[] = {"c", "s", "i", "l", "C", "S", "I", "L"};
    Type made{is_simple ? one_of(simple) : one_of(all), ""};
    if (!is_simple && once_in(4)) made.codes = one_of(codes);
    return made;
  }

  ArrowSchema schema_of(const std::string& format, const std::string& name) {
    auto behind = std::make_unique<Behind<ArrowSchema>>(Behind<ArrowSchema>{.owner = this});
    behind->format = format;
    behind->name = name;
    return finish(std::move(behind));
  }
  ArrowSchema finish(std::unique_ptr<Behind<ArrowSchema>> behind) {
    const auto* kept = behind.get();
    ArrowSchema made = owned(std::move(behind));
    made.format = kept->format.c_str();
    made.name = kept->name.c_str();
    made.flags = ARROW_FLAG_NULLABLE;
    return made;
  }
  ArrowSchema schema(const std::vector<Type>& types) {
    auto root = std::make_unique<Behind<ArrowSchema>>(Behind<ArrowSchema>{.owner = this});
    root->format = "+s";
    for (size_t c = 0; c < types.size(); ++c) {
      auto column = std::make_unique<Behind<ArrowSchema>>(Behind<ArrowSchema>{.owner = this});
      column->name = columns_[c].name;
      column->format = types[c].codes.empty() ? types[c].format : types[c].codes;
      if (!types[c].codes.empty()) column->dictionary = schema_of(types[c].format, "");
      root->children.push_back(finish(std::move(column)));
    }
    return finish(std::move(root));
  }

  static int width_of(const std::string& format) {
    if (format.starts_with("d:"))
      return format.ends_with(",32")    ? 4
             : format.ends_with(",64")  ? 8
             : format.ends_with(",256") ? 32
                                        : 16;
    if (format.starts_with("ts") || format == "tdm" || format == "ttu" || format == "ttn") return 8;
    if (format.starts_with("td") || format.starts_with("tt")) return 4;
    switch (format[0]) {
      case 'c':
      case 'C': return 1;
      case 's':
      case 'S':
      case 'e': return 2;
      case 'i':
      case 'I':
      case 'f': return 4;
      case 'w': return 3;
      default: return 8;
    }
  }

  // `cells`: gets those of the rows from `from` on, where they are kept.
  ArrowArray array(const std::string& format, int64_t rows, int64_t from, bool is_simple,
                   std::optional<uint64_t> below, Column* cells) {
    constexpr size_t spare = 4096;
    auto behind = std::make_unique<Behind<ArrowArray>>(Behind<ArrowArray>{.owner = this});
    behind->format = format;
    const int64_t offset = at_most(5), all = rows + offset;
    auto& storage = behind->storage;
    storage.emplace_back(static_cast<size_t>(all / 8 + 1) + spare, 0xff);
    const bool has_missing = format != "n" && once_in(2);
    std::vector<bool> there(static_cast<size_t>(all), true);
    int64_t missing = 0;
    for (int64_t i = offset; has_missing && i < all; ++i)
      if (once_in(3)) {
        storage[0][static_cast<size_t>(i / 8)] &= static_cast<uint8_t>(~(1u << i % 8));
        there[static_cast<size_t>(i)] = false;
        ++missing;
      }
    std::vector<std::string> kept(static_cast<size_t>(all));
    if (format == "u" || format == "U" || format == "z") {
      const size_t bytes = format == "U" ? 8 : 4;
      storage.emplace_back(bytes * static_cast<size_t>(all + 1) + spare);
      storage.emplace_back(5, uint8_t{'#'});
      const auto put = [&](int64_t i) {
        const uint64_t at = storage[2].size();
        std::memcpy(storage[1].data() + bytes * static_cast<size_t>(i), &at, bytes);
      };
      put(0);
      for (int64_t i = 0; i < all; ++i) {
        kept[static_cast<size_t>(i)] = text(is_simple);
        storage[2].insert(storage[2].end(), kept[static_cast<size_t>(i)].begin(),
                          kept[static_cast<size_t>(i)].end());
        put(i + 1);
      }
      storage[2].resize(storage[2].size() + spare);
    } else if (format == "vu" || format == "vz") {
      storage.emplace_back(16 * static_cast<size_t>(all) + spare);
      std::vector<uint8_t> characters;
      for (int64_t i = 0; i < all; ++i) {
        const std::string value = text(is_simple);
        int32_t word[4] = {static_cast<int32_t>(value.size()), 0, 0,
                           static_cast<int32_t>(characters.size())};
        if (value.size() <= 12) {
          word[3] = 0;
          std::memcpy(word + 1, value.data(), value.size());
        } else {
          std::memcpy(word + 1, value.data(), 4);
          characters.insert(characters.end(), value.begin(), value.end());
        }
        std::memcpy(storage[1].data() + 16 * static_cast<size_t>(i), word, sizeof word);
      }
      const auto length = static_cast<int64_t>(characters.size());
      characters.resize(characters.size() + spare);
      storage.push_back(std::move(characters));
      storage.emplace_back(sizeof length);
      std::memcpy(storage[3].data(), &length, sizeof length);
    } else if (format == "b") {
      storage.emplace_back(static_cast<size_t>(all / 8 + 1) + spare);
      for (uint8_t& byte : storage[1]) byte = static_cast<uint8_t>(random_());
    } else if (format != "n" && format[0] != '+') {
      const auto width = static_cast<size_t>(width_of(format));
      storage.emplace_back(width * static_cast<size_t>(all) + spare);
      for (int64_t i = 0; i < all; ++i) {
        uint8_t* to = storage[1].data() + width * static_cast<size_t>(i);
        if (below) {  // a code
          const uint64_t code = once_in(60) ? *below : *below ? random_() % *below : 0;
          std::memcpy(to, &code, width);
        } else if (format == "f" || format == "g") {
          const double value = number();
          const auto single = static_cast<float>(value);
          format == "f" ? std::memcpy(to, &single, 4) : std::memcpy(to, &value, 8);
        } else {
          const int kind = at_most(5);
          for (size_t b = 0; b < width; ++b)
            to[b] = static_cast<uint8_t>(kind == 0 ? random_() : kind == 1 ? 0xff : 0);
          if (kind > 1) to[0] = static_cast<uint8_t>(random_() % 100);
          int64_t value = 0;
          if (width <= 8) {
            std::memcpy(&value, to, width);
            value = static_cast<int64_t>(static_cast<uint64_t>(value) << (64 - 8 * width)) >>
                    (64 - 8 * width);
          }
          kept[static_cast<size_t>(i)] = std::to_string(value);
        }
      }
    }
    if (cells && cells->has_cells)
      for (int64_t i = offset + from; i < all; ++i)
        cells->cells.push_back(there[static_cast<size_t>(i)]
                                   ? std::optional(kept[static_cast<size_t>(i)])
                                   : std::nullopt);
    const bool says_which = missing > 0 || once_in(2);
    const size_t used = format == "n" || format[0] == '+' ? 0 : storage.size();
    for (size_t b = 0; b < used; ++b)
      behind->buffers.push_back(b == 0 && !says_which ? nullptr : storage[b].data());
    behind->buffers.resize(16);
    const auto* keeps = behind.get();
    ArrowArray made = owned(std::move(behind));
    made.length = rows;
    made.offset = offset;
    made.null_count = format == "n" ? rows : once_in(2) ? -1 : missing;
    made.n_buffers = static_cast<int64_t>(used);
    made.buffers = const_cast<const void**>(keeps->buffers.data());
    return made;
  }

  ArrowArray table(const std::vector<Type>& types, int64_t rows, bool is_simple) {
    auto root = std::make_unique<Behind<ArrowArray>>(Behind<ArrowArray>{.owner = this});
    const int64_t before = at_most(3);
    for (size_t c = 0; c < types.size(); ++c) {
      const Type& t = types[c];
      if (t.codes.empty()) {
        root->children.push_back(
            array(t.format, rows + before, before, is_simple, {}, &columns_[c]));
        continue;
      }
      const auto values = static_cast<uint64_t>(at_most(6));
      ArrowArray dictionary =
          array(t.format, static_cast<int64_t>(values), 0, is_simple, {}, nullptr);
      ArrowArray codes = array(t.codes, rows + before, before, is_simple, values, nullptr);
      auto* of_codes = static_cast<Behind<ArrowArray>*>(codes.private_data);
      of_codes->dictionary = dictionary;
      codes.dictionary = &of_codes->dictionary;
      root->children.push_back(codes);
    }
    root->buffers.resize(16);
    const auto* kept = root.get();
    ArrowArray made = owned(std::move(root));
    made.length = rows;
    made.offset = before;
    made.n_buffers = 1;
    made.buffers = const_cast<const void**>(kept->buffers.data());
    rows_ += rows;
    return made;
  }

  std::string text(bool is_simple) {
    static const char* const all[] = {"",  "a",          "b",    "longer than twelve bytes",
                                      "é", "naïve café", "%_\\", "'; DROP TABLE t"};
    if (!is_simple && once_in(40)) return std::string("\xff\xc3", 2);
    if (once_in(30)) return std::string(static_cast<size_t>(at_most(300)), 'x');
    return one_of(all);
  }
  double number() {
    static const double all[] = {0,
                                 -0.0,
                                 1,
                                 -1.5,
                                 1e308,
                                 -1e-320,
                                 3.25e10,
                                 std::numeric_limits<double>::quiet_NaN(),
                                 std::numeric_limits<double>::infinity()};
    return one_of(all);
  }

  // ---- what is wrong

  void spoil(State& state) {
    const int kind = at_most(10);
    if (kind == 0) {
      state.fails_at = at_most(static_cast<int>(state.arrays.size()) + 1);
      state.says_why = once_in(2);
    } else if (kind == 10) {
      state.without = 1 + at_most(2);
    } else if (kind == 1) {
      state.schema.release(&state.schema);
      state.schema = {};
    } else if (kind < 5 || state.arrays.empty()) {
      spoil(state.schema);
    } else {
      ArrowArray& array = state.arrays[random_() % state.arrays.size()];
      do spoil(array);  // mostly in one place
      while (once_in(3) && is_whole(array));
    }
  }
  // Whether all of its columns are there, so that more can be wrong with them.
  static bool is_whole(const ArrowArray& root) {
    if (!root.children || root.n_children < 1) return false;
    for (int64_t c = 0; c < root.n_children; ++c)
      if (!root.children[c] || !root.children[c]->release) return false;
    return true;
  }
  // Ends a child as if someone had moved it away.
  template <class Record>
  void drop(Record& record) {
    if (record.release) record.release(&record);
  }
  void spoil(ArrowSchema& root) {
    static const char* const formats[] = {
        "",       "q",     "+s",  "d:",   "d:99,3",          "d:5,-2",
        "d:-1,0", "d:5,9", "tss", "tsx:", "d:99999999999,3", "u ",
        "iu",     "vu,"};
    ArrowSchema& column = *root.children[random_() % static_cast<size_t>(root.n_children)];
    ArrowSchema& node = once_in(4)                        ? root
                        : column.dictionary && once_in(2) ? *column.dictionary
                                                          : column;
    switch (at_most(7)) {
      case 0: node.format = nullptr; break;
      case 1: node.format = one_of(formats); break;
      case 2: node.name = nullptr; break;
      case 3: column.name = root.children[0]->name; break;
      case 4: root.n_children = once_in(2) ? -1 : root.n_children - 1; break;
      case 5: root.children = nullptr; break;
      case 6: drop(column); break;
      default: root.children[random_() % static_cast<size_t>(root.n_children)] = nullptr; break;
    }
  }
  void spoil(ArrowArray& root) {
    static const int64_t numbers[] = {-1, 0, 1, 7, -5, 999, INT64_MIN, INT64_MAX, INT64_MAX - 3};
    const size_t which = random_() % static_cast<size_t>(root.n_children);
    ArrowArray& column = *root.children[which];
    ArrowArray& node = once_in(4)                        ? root
                       : column.dictionary && once_in(2) ? *column.dictionary
                                                         : column;
    switch (at_most(9)) {
      case 0: node.length = std::min<int64_t>(one_of(numbers), std::max<int64_t>(node.length, 0) - 1); break;
      case 1: node.offset = once_in(2) ? -1 : INT64_MAX - at_most(3); break;
      case 2: node.null_count = one_of(numbers); break;
      case 3: node.n_buffers = std::min<int64_t>(one_of(numbers), 15); break;
      case 4: node.buffers = nullptr; break;
      case 5:
        if (const int which_one = at_most(3); node.buffers) node.buffers[which_one] = nullptr;
        break;
      case 6: root.n_children = once_in(2) ? -1 : root.n_children - 1; break;
      case 7:
        if (once_in(2))
          root.children = nullptr;
        else
          root.children[which] = nullptr;
        break;
      case 8:
        if (once_in(2))
          drop(column);
        else
          column.dictionary = nullptr;
        break;
      default: {  // places of texts
        auto* behind = static_cast<Behind<ArrowArray>*>(column.private_data);
        if (column.n_buffers < 3 || behind->storage.size() < 3 || column.offset > 5 || column.length > 999) break;
        std::vector<uint8_t>& places = behind->storage[1];
        static const int32_t words[] = {-1, INT32_MIN, 0, INT32_MAX, 1 << 20};
        // Of views any, as their lengths tell; of offsets what is negative, or descends.
        const bool is_view = column.n_buffers > 3;
        const int64_t word = words[at_most(is_view ? 4 : 2)];
        const size_t bytes = behind->format == "U" ? 8 : 4;
        const auto at =
            static_cast<size_t>(at_most(static_cast<int>(column.length + column.offset)));
        std::memcpy(places.data() + bytes * at, &word, bytes);
      }
    }
  }

  Choices& random_;
  int held_ = 0;
  std::vector<Column> columns_;
  int64_t rows_ = 0;
};

}  // namespace rndn::testing
