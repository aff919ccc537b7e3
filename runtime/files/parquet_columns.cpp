#include "runtime/files/parquet_columns.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <mutex>
#include <numeric>
#include <string_view>

#include "libraries/base/containers/arena.h"
#include "libraries/base/report/utf8.h"
#include "runtime/data/arrow_values.h"
#include "runtime/data/source.h"
#include "runtime/data/text_codes.h"

namespace rndn::files {
namespace {

using data::Column;

uint64_t rows_of(std::span<const ColumnPart> parts) {
  return parts.empty() ? 0 : parts.back().first + parts.back().rows;
}

// Which rows are missing, once one is.
class Validity {
 public:
  explicit Validity(uint64_t rows) : rows_(rows) {}
  void mark(const BatchRows& batch) {
    if (!batch.valid) return;
    std::call_once(is_made_, [&] {
      bytes_ = data::zeros(rows_);
      std::fill_n(bytes_->data(), rows_, std::byte{1});
    });
    std::memcpy(bytes_->data() + batch.first, batch.valid, batch.rows);
  }
  std::shared_ptr<data::Bytes> take() { return std::move(bytes_); }

 private:
  const uint64_t rows_;
  std::once_flag is_made_;
  std::shared_ptr<data::Bytes> bytes_;
};

// ---- numbers

struct Wide {
  std::byte bytes[16];
};
template <class Use>
void with_width(uint32_t bytes, Use&& use) {
  switch (bytes) {
    case 1: return use.template operator()<uint8_t>();
    case 2: return use.template operator()<uint16_t>();
    case 4: return use.template operator()<uint32_t>();
    case 8: return use.template operator()<uint64_t>();
    default: return use.template operator()<Wide>();
  }
}

class NumberColumn final : public ChunkedColumn {
 public:
  NumberColumn(const data::ArrowFormat& format, Physical type, uint32_t length,
               std::vector<ColumnPart> parts)
      : format_(format),
        type_(type),
        length_(length),
        parts_(std::move(parts)),
        column_(data::make_column(format.stored, rows_of(parts_))),
        validity_(column_.rows),
        ranges_(parts_.size()) {}

  std::unique_ptr<PageSink> sink(size_t) override { return std::make_unique<Sink>(*this); }
  void finish_part(size_t part) override {
    const ColumnPart& p = parts_[part];
    ranges_[part] = data::scan_range(column_, p.first, p.first + p.rows);
  }
  void join() override {
    data::join_statistics(column_, ranges_);
    column_.validity = validity_.take();
  }
  bool place(size_t) override { return true; }
  Column take() override { return std::move(column_); }

 private:
  // Values as they are in a page become arrays of format_, `rows` of them dense.
  class Sink final : public PageSink {
   public:
    explicit Sink(NumberColumn& column) : column_(column), bytes_(column.format_.bytes) {}

    bool dictionary(std::span<const std::byte> values, uint64_t count) override {
      if (!holds(values, 0, count)) return false;
      dictionary_ = data::make_column(column_.format_.stored, count);
      return store(as_array(values, 0, count), count, 0, dictionary_);
    }
    bool plain(const BatchRows& rows, std::span<const std::byte> page, uint64_t at) override {
      if (!holds(page, at, rows.present)) return false;
      const std::byte* values = as_array(page, at, rows.present);
      if (!rows.valid) return store(values, rows.rows, rows.first, column_.column_) && finish(rows);
      with_width(bytes_, [&]<class T>() {
        auto* to = reinterpret_cast<T*>(spread_.make(batch_rows * sizeof(T)));
        for (uint32_t i = 0; i < rows.rows; ++i) {
          to[i] = T{};
          if (!rows.valid[i]) continue;
          std::memcpy(&to[i], values, sizeof(T));
          values += sizeof(T);
        }
      });
      return store(spread_.data(), rows.rows, rows.first, column_.column_) && finish(rows);
    }
    // The dictionary's values are stored ones already.
    bool coded(const BatchRows& rows, const uint32_t* codes) override {
      with_width(column_.column_.width, [&]<class T>() {
        const auto* from = dictionary_.as<T>();
        auto* to = reinterpret_cast<T*>(column_.column_.data->data()) + rows.first;
        if (!rows.valid) {
          for (uint32_t i = 0; i < rows.rows; ++i) to[i] = from[codes[i]];
        } else {  // zeros are there already
          for (uint32_t i = 0; i < rows.rows; ++i)
            if (rows.valid[i]) to[i] = from[*codes++];
        }
      });
      return finish(rows);
    }

   private:
    bool holds(std::span<const std::byte> page, uint64_t at, uint64_t count) const {
      if (count > page.size() * 8 || at > page.size() * 8) return false;
      if (column_.type_ == Physical::boolean) return at + count <= page.size() * 8;
      const uint64_t each = column_.type_ == Physical::fixed ? column_.length_ : bytes_;
      return (at + count) * each <= page.size();
    }

    // `count` values of the page, as an array of format_ has them.
    const std::byte* as_array(std::span<const std::byte> page, uint64_t at, uint64_t count) {
      if (column_.type_ == Physical::boolean) {
        std::byte* to = array_.make(count);
        for (uint64_t i = 0; i < count; ++i) to[i] = std::byte{data::bit(page.data(), at + i)};
      } else if (column_.type_ == Physical::fixed) {  // a decimal, the high end first
        const uint32_t length = column_.length_;
        const std::byte* from = page.data() + at * length;
        std::byte* to = array_.make(count * sizeof(Wide));
        for (uint64_t i = 0; i < count; ++i, from += length, to += sizeof(Wide)) {
          std::memset(to, length && (from[0] >> 7) == std::byte{1} ? 0xff : 0, sizeof(Wide));
          for (uint32_t b = 0; b < length; ++b) to[b] = from[length - 1 - b];
        }
      } else {
        const std::byte* from = page.data() + at * bytes_;
        if (reinterpret_cast<uintptr_t>(from) % std::min<size_t>(bytes_, 8) == 0) return from;
        std::memcpy(array_.make(count * bytes_), from, count * bytes_);
      }
      return array_.data();
    }

    // An array of format_ from there on in `to`; false: one of its values does not fit.
    bool store(const std::byte* values, uint64_t count, uint64_t first, Column& to) const {
      const void* buffers[] = {nullptr, values};
      ArrowArray array{};
      array.length = static_cast<int64_t>(count);
      array.n_buffers = 2;
      array.buffers = buffers;
      data::FirstFailedRow failure;
      data::put_values({.array = &array, .first = 0, .rows = count, .at = first}, column_.format_,
                       to, failure);
      return !failure.get();
    }
    bool finish(const BatchRows& rows) {
      column_.validity_.mark(rows);
      return true;
    }

    NumberColumn& column_;
    const uint8_t bytes_;  // of an element of format_
    Column dictionary_;
    Buffer array_, spread_;
  };

  const data::ArrowFormat& format_;
  const Physical type_;
  const uint32_t length_;
  const std::vector<ColumnPart> parts_;
  Column column_;
  Validity validity_;
  std::vector<data::RangeStatistics> ranges_;
};

// ---- texts

// Texts of a page: 4 bytes of length and the characters, each.
class TextCursor {
 public:
  TextCursor() = default;
  explicit TextCursor(std::span<const std::byte> page)
      : rest_(page),
        is_ascii_(is_ascii({reinterpret_cast<const char*>(page.data()), page.size()})) {}
  // Null: there is none that is a text.
  const char* next(size_t& size) {
    uint32_t length;
    if (rest_.size() < sizeof length) return nullptr;
    std::memcpy(&length, rest_.data(), sizeof length);
    if (length > rest_.size() - sizeof length || length > data::longest_text) return nullptr;
    const auto* text = reinterpret_cast<const char*>(rest_.data()) + sizeof length;
    if (!is_ascii_ && !is_utf8({text, length})) return nullptr;
    rest_ = rest_.subspan(sizeof length + length);
    size = length;
    return text;
  }

 private:
  std::span<const std::byte> rest_;
  bool is_ascii_ = true;
};

constexpr uint64_t nowhere = UINT64_MAX;

class TextColumn final : public ChunkedColumn {
 public:
  TextColumn(hir::BasicType type, std::vector<ColumnPart> parts)
      : type_(type),
        rows_(rows_of(parts)),
        limit_(data::dictionary_limit(rows_)),
        validity_(rows_),
        parts_(parts.size()),
        ranges_(parts.size()) {
    for (size_t p = 0; p < parts.size(); ++p) {
      parts_[p].place = parts[p];
      parts_[p].region = parts_[p].pad_at = characters_;
      characters_ += parts[p].characters;
    }
  }

  std::unique_ptr<PageSink> sink(size_t part) override {
    return std::make_unique<Sink>(*this, parts_[part]);
  }
  void finish_part(size_t) override {}

  void join() override {
    if (!too_many_ && number_all()) {
      column_ = data::make_column(type_, rows_, data::Encoding::dictionary,
                                  data::code_width(values_.size()));
      column_.dictionary->values = std::move(values_);
      return;
    }
    too_many_ = true;
    make_room();
  }
  bool place(size_t p) override {
    Part& part = parts_[p];
    if (too_many_) return part.is_copied || copy(part);
    part.with_codes([&]<class From>(const From* codes) {
      auto store = [&]<class To>(To* to) {
        for (uint64_t i = 0; i < part.place.rows; ++i)
          to[i] = static_cast<To>(part.joined[codes[i]]);
      };
      std::byte* to = column_.data->data() + part.place.first * column_.width;
      if (column_.width == 1)
        store(reinterpret_cast<uint8_t*>(to));
      else if (column_.width == 2)
        store(reinterpret_cast<uint16_t*>(to));
      else
        store(reinterpret_cast<uint32_t*>(to));
    });
    part.codes = {};
    ranges_[p] = data::scan_range(column_, part.place.first, part.place.first + part.place.rows);
    return true;
  }
  Column take() override {
    if (too_many_) {
      column_ = data::make_column(type_, 0, data::Encoding::text);
      column_.rows = rows_;
      column_.data = std::move(handles_);
      column_.pad = std::move(pad_);
    } else {
      data::join_statistics(column_, ranges_);
    }
    column_.validity = validity_.take();
    return std::move(column_);
  }

 private:
  struct Part {
    ColumnPart place;
    uint64_t region = 0, pad_at = 0;      // where its characters begin, and go on
    Buffer kept;                          // the dictionary
    Arena others;                         // texts that it has not
    std::vector<std::string_view> texts;  // by code
    std::vector<bool> occurs;             // of each
    std::vector<uint32_t> joined;         // of each: the column's code,
    std::vector<uint64_t> handles;        // or where the text is
    Buffer codes;
    uint8_t width = 0;  // bytes of a code; 0: there is none yet
    uint64_t done = 0;  // rows
    bool is_copied = false;

    template <class Use>
    void with_codes(Use&& use) {
      if (width == 1)
        use(reinterpret_cast<uint8_t*>(codes.data()));
      else if (width == 2)
        use(reinterpret_cast<uint16_t*>(codes.data()));
      else
        use(reinterpret_cast<uint32_t*>(codes.data()));
    }
    // Room for codes of all rows, at least as wide.
    void widen(uint8_t wider) {
      if (width >= wider) return;
      Buffer old = std::move(codes);
      codes = {};
      codes.make(place.rows * wider);
      const uint8_t before = std::exchange(width, wider);
      if (done == 0) return;
      with_codes([&]<class To>(To* to) {
        if (before == 1)
          std::copy_n(reinterpret_cast<const uint8_t*>(old.data()), done, to);
        else
          std::copy_n(reinterpret_cast<const uint16_t*>(old.data()), done, to);
      });
    }
  };

  class Sink final : public PageSink {
   public:
    Sink(TextColumn& column, Part& part) : column_(column), part_(part) {}

    bool dictionary(std::span<const std::byte> values, uint64_t count) override {
      if (count > values.size() / 4) return false;  // the length of each
      std::byte* kept = part_.kept.make(values.size());
      std::memcpy(kept, values.data(), values.size());
      TextCursor cursor({kept, values.size()});
      for (uint64_t i = 0; i < count; ++i) {
        size_t size = 0;
        const char* text = cursor.next(size);
        if (!text) return false;
        part_.texts.push_back({text, size});
      }
      in_dictionary_ = unseen_ = count;
      part_.occurs.assign(count, false);
      // One more code is for rows that are missing.
      part_.widen(count < 1 << 8 ? 1 : count < 1 << 16 ? 2 : 4);
      return !column_.too_many_ || column_.copy(part_);
    }

    bool coded(const BatchRows& rows, const uint32_t* codes) override {
      if (!may_stay_coded()) return false;
      if (part_.is_copied) {
        uint64_t* to = column_.handles() + rows.first;
        for_present(rows, [&](uint32_t i) { return to[i] = part_.handles[*codes++], true; });
        return finish(rows);
      }
      const bool may_be_first = unseen_ > 0;
      const uint64_t empty = rows.valid ? number_empty(rows) : 0;
      part_.with_codes([&]<class T>(T* to) {
        to += part_.done;
        if (!rows.valid) {
          for (uint32_t i = 0; i < rows.rows; ++i) to[i] = static_cast<T>(codes[i]);
        } else {
          for (uint32_t i = 0, next = 0; i < rows.rows; ++i)
            to[i] = static_cast<T>(rows.valid[i] ? codes[next++] : empty);
        }
      });
      if (may_be_first) for_present(rows, [&](uint32_t) { return see(*codes++), true; });
      return finish(rows);
    }

    bool plain(const BatchRows& rows, std::span<const std::byte> page, uint64_t at) override {
      if (at == 0) cursor_ = TextCursor(page);
      if (!may_stay_coded()) return false;
      if (part_.is_copied) return copy_plain(rows);
      if (!numbers_) number_dictionary();
      part_.widen(4);
      const auto empty = static_cast<uint32_t>(rows.valid ? number_empty(rows) : 0);
      bool ok = true;
      part_.with_codes([&]<class T>(T* to) {
        to += part_.done;
        if (rows.valid) std::fill_n(to, rows.rows, static_cast<T>(empty));
        ok = for_present(rows, [&](uint32_t i) {
          size_t size = 0;
          const char* text = cursor_.next(size);
          if (text) to[i] = static_cast<T>(number({text, size}));
          return text != nullptr;
        });
      });
      if (part_.texts.size() > column_.limit_ + in_dictionary_ + 1) column_.too_many_ = true;
      return ok && finish(rows);
    }

   private:
    // Calls use(row of the batch) for those that are there, while it returns true.
    template <class Use>
    static bool for_present(const BatchRows& rows, Use&& use) {
      for (uint32_t i = 0; i < rows.rows; ++i)
        if ((!rows.valid || rows.valid[i]) && !use(i)) return false;
      return true;
    }

    // Turns codes into texts where those of the column are too many.
    bool may_stay_coded() {
      return part_.is_copied || !column_.too_many_.load(std::memory_order_relaxed) ||
             column_.copy(part_);
    }

    bool copy_plain(const BatchRows& rows) {
      uint64_t* to = column_.handles() + rows.first;
      auto* pad = reinterpret_cast<char*>(column_.pad_->data());
      const uint64_t end = part_.region + part_.place.characters;
      const bool ok = for_present(rows, [&](uint32_t i) {
        size_t size = 0;
        const char* text = cursor_.next(size);
        if (!text || size > end - part_.pad_at) return false;
        // What is copied beyond the text is written over by the next, and within the region.
        if (size <= 32 && end - part_.pad_at >= 32)
          std::memcpy(pad + part_.pad_at, text, 32);
        else
          std::memcpy(pad + part_.pad_at, text, size);
        to[i] = part_.pad_at << 24 | size;
        part_.pad_at += size;
        return true;
      });
      return ok && finish(rows);
    }

    bool finish(const BatchRows& rows) {
      column_.validity_.mark(rows);
      part_.done += rows.rows;
      return true;
    }

    void see(uint64_t code) {
      if (part_.occurs[code]) return;
      part_.occurs[code] = true;
      if (code < in_dictionary_) --unseen_;
    }
    // The code of the empty text, which missing rows have.
    uint64_t number_empty(const BatchRows& rows) {
      if (empty_ == nowhere) {
        const auto& texts = part_.texts;
        empty_ = static_cast<uint64_t>(
            std::find_if(texts.begin(), texts.end(), [](auto t) { return t.empty(); }) -
            texts.begin());
        if (empty_ == texts.size()) add("");
        part_.widen(empty_ < 1 << 8 ? 1 : empty_ < 1 << 16 ? 2 : 4);
      }
      for (uint32_t i = 0; i < rows.rows && !part_.occurs[empty_]; ++i)
        if (!rows.valid[i]) see(empty_);
      return empty_;
    }
    void add(std::string_view text) {
      part_.texts.push_back(text);
      part_.occurs.push_back(false);
    }

    // From now on texts are looked up: those of the dictionary first.
    void number_dictionary() {
      numbers_ = std::make_unique<data::TextCodes>();
      for (uint64_t code = 0; code < part_.texts.size(); ++code)
        if (numbers_->add(part_.texts[code]) == code_of_.size()) code_of_.push_back(code);
    }
    uint64_t number(std::string_view text) {
      const uint32_t known =
          numbers_->add(text, [&](std::string_view t) { return part_.others.copy(t); });
      if (known == code_of_.size()) {
        code_of_.push_back(part_.texts.size());
        if (text.empty()) empty_ = part_.texts.size();
        add(numbers_->texts()[known]);
      }
      see(code_of_[known]);
      return code_of_[known];
    }

    TextColumn& column_;
    Part& part_;
    TextCursor cursor_;
    uint64_t in_dictionary_ = 0, unseen_ = 0, empty_ = nowhere;
    std::unique_ptr<data::TextCodes> numbers_;
    std::vector<uint64_t> code_of_;  // of each number
  };

  uint64_t* handles() {
    make_room();
    return reinterpret_cast<uint64_t*>(handles_->data());
  }
  void make_room() {
    std::call_once(has_room_, [&] {
      handles_ = data::zeros(rows_ * 8);
      pad_ = data::zeros(characters_);
    });
  }

  // The texts that have codes go to the part's region; false: it is too small.
  bool copy(Part& part) {
    uint64_t* to = handles() + part.place.first;
    auto* pad = reinterpret_cast<char*>(pad_->data());
    const uint64_t end = part.region + part.place.characters;
    for (std::string_view text : part.texts) {
      if (text.size() > end - part.pad_at) return false;
      if (!text.empty()) std::memcpy(pad + part.pad_at, text.data(), text.size());
      part.handles.push_back(part.pad_at << 24 | text.size());
      part.pad_at += text.size();
    }
    if (part.done > 0)
      part.with_codes([&]<class T>(const T* codes) {
        for (uint64_t i = 0; i < part.done; ++i) to[i] = part.handles[codes[i]];
      });
    part.codes = {};
    part.is_copied = true;
    return true;
  }

  // One number for each text of the column; false: they are too many.
  bool number_all() {
    data::TextCodes all;
    for (Part& part : parts_) {
      part.joined.resize(part.texts.size());
      for (uint32_t code = 0; code < part.texts.size(); ++code)
        if (part.occurs[code]) part.joined[code] = all.add(part.texts[code]);
      if (all.texts().size() > limit_) return false;
    }
    const std::vector<uint32_t> places = data::places_of(all.texts());
    values_ = data::at_places(all.texts(), places);
    for (Part& part : parts_)
      for (uint32_t code = 0; code < part.texts.size(); ++code)
        if (part.occurs[code]) part.joined[code] = places[part.joined[code]];
    return true;
  }

  const hir::BasicType type_;
  const uint64_t rows_, limit_;
  uint64_t characters_ = 0;
  Validity validity_;
  std::vector<Part> parts_;
  std::vector<data::RangeStatistics> ranges_;
  std::atomic<bool> too_many_{false};
  std::once_flag has_room_;
  std::shared_ptr<data::Bytes> handles_, pad_;
  std::vector<std::string> values_;
  Column column_;
};

}  // namespace

std::unique_ptr<ChunkedColumn> make_column(const data::ArrowFormat& format, Physical type,
                                           uint32_t length, std::vector<ColumnPart> parts) {
  if (data::is_text(format)) return std::make_unique<TextColumn>(format.stored, std::move(parts));
  return std::make_unique<NumberColumn>(format, type, length, std::move(parts));
}

}  // namespace rndn::files
