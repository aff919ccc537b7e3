// Thrift's compact protocol: a struct is fields, each a byte of its type and how far its number is
// from the one before, and its value; integers are varints, with the sign in the lowest bit.
#include "runtime/files/parquet_footer.h"

#include <algorithm>

namespace rndn::files {
namespace {

enum Type : uint8_t {
  stop = 0,
  true_ = 1,
  false_ = 2,
  byte_ = 3,
  i16 = 4,
  i32 = 5,
  i64 = 6,
  double_ = 7,
  binary = 8,
  list = 9,
  set = 10,
  map = 11,
  structure = 12
};

// After a failure all is empty.
class Thrift {
 public:
  explicit Thrift(std::span<const std::byte> bytes)
      : begin_(bytes.data()), at_(begin_), end_(begin_ + bytes.size()) {}
  bool ok() const { return ok_; }
  size_t consumed() const { return static_cast<size_t>(at_ - begin_); }

  // Calls field(number, type), which reads the value or returns false.
  template <class Field>
  void fields(Field&& field) {
    if (++depth_ > 32) return fail();
    for (int64_t number = 0; ok_;) {
      const uint8_t head = byte();
      const uint8_t type = head & 15;
      if (type == stop) break;
      number = head >> 4 ? number + (head >> 4) : integer();
      if (number != static_cast<int16_t>(number)) return fail();
      if (ok_ && !field(number, type)) skip(type);
    }
    --depth_;
  }
  // Calls element(type) for each.
  template <class Element>
  void elements(Element&& element) {
    const uint8_t head = byte();
    uint64_t count = head >> 4;
    if (count == 15) count = varint();
    if (count > static_cast<uint64_t>(end_ - at_)) return fail();  // each has a byte at least
    for (uint64_t i = 0; ok_ && i < count; ++i) element(head & 15);
  }
  int64_t integer() {
    const uint64_t coded = varint();
    return static_cast<int64_t>(coded >> 1 ^ (~(coded & 1) + 1));
  }
  int64_t small(uint8_t type) {  // of a byte or more
    return type == byte_ ? static_cast<int8_t>(byte()) : integer();
  }
  std::string_view text() {
    const uint64_t size = varint();
    if (size > static_cast<uint64_t>(end_ - at_)) return fail(), std::string_view();
    const auto* characters = reinterpret_cast<const char*>(at_);
    at_ += size;
    return {characters, size};
  }
  void skip(uint8_t type, bool in_list = false) {
    switch (type) {
      case true_:
      case false_:
        if (in_list) byte();
        return;
      case byte_: byte(); return;
      case i16:
      case i32:
      case i64: varint(); return;
      case double_:
        for (int i = 0; i < 8; ++i) byte();
        return;
      case binary: text(); return;
      case list:
      case set:
        if (++depth_ > 32) return fail();
        elements([&](uint8_t of) { skip(of, true); });
        --depth_;
        return;
      case map: return skip_map();
      case structure: return fields([](int64_t, uint8_t) { return false; });
      default: fail();
    }
  }

 private:
  void fail() {
    ok_ = false;
    at_ = end_;
  }
  uint8_t byte() {
    if (at_ == end_) return fail(), uint8_t{0};
    return static_cast<uint8_t>(*at_++);
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const uint8_t part = byte();
      value |= static_cast<uint64_t>(part & 0x7f) << shift;
      if (part < 0x80) return value;
    }
    return fail(), 0;
  }
  void skip_map() {
    const uint64_t count = varint();
    if (count == 0) return;
    const uint8_t types = byte();
    if (count > static_cast<uint64_t>(end_ - at_) || ++depth_ > 32) return fail();
    for (uint64_t i = 0; ok_ && i < count; ++i) {
      skip(types >> 4, true);
      skip(types & 15, true);
    }
    --depth_;
  }

  const std::byte *begin_, *at_, *end_;
  int depth_ = 0;
  bool ok_ = true;
};

// The number of a union's one field, which says nothing more.
int64_t which(Thrift& in) {
  int64_t found = 0;
  in.fields([&](int64_t field, uint8_t) { return found = field, false; });
  return found;
}

void read_logical(Thrift& in, SchemaElement& out) {
  in.fields([&](int64_t kind, uint8_t kind_type) {
    out.logical = kind;
    if (kind_type != structure) return false;
    in.fields([&](int64_t field, uint8_t type) {
      if (kind == 5 && type == i32) {
        (field == 1 ? out.scale : out.precision) = in.integer();
      } else if (kind == 8 && field == 1) {  // a timestamp
        out.is_utc = type == true_;
      } else if (kind == 8 && field == 2 && type == structure) {
        out.unit = which(in);
      } else if (kind == 10 && field == 1) {  // an integer
        out.bits = in.small(type);
      } else if (kind == 10 && field == 2) {
        out.is_signed = type == true_;
      } else {
        return false;
      }
      return true;
    });
    return true;
  });
}

bool is_integer(uint8_t type) { return type == i16 || type == i32 || type == i64; }

SchemaElement read_element(Thrift& in) {
  SchemaElement out;
  in.fields([&](int64_t field, uint8_t type) {
    if (field == 4 && type == binary) return out.name = in.text(), true;
    if (field == 10 && type == structure) return read_logical(in, out), true;
    if (!is_integer(type)) return false;
    switch (field) {
      case 1: out.type = in.integer(); return true;
      case 2: out.type_length = in.integer(); return true;
      case 3: out.repetition = in.integer(); return true;
      case 5: out.children = in.integer(); return true;
      case 6: out.converted = in.integer(); return true;
      case 7: out.scale = in.integer(); return true;
      case 8: out.precision = in.integer(); return true;
      default: return false;
    }
  });
  return out;
}

void read_statistics(Thrift& in, Chunk& out) {
  in.fields([&](int64_t field, uint8_t type) {
    if (field == 5 && type == binary) return out.greatest = in.text(), true;
    if (field == 6 && type == binary) return out.least = in.text(), true;
    if (field != 3 || !is_integer(type)) return false;
    return out.nulls = in.integer(), true;
  });
}

void read_chunk_data(Thrift& in, Chunk& out) {
  in.fields([&](int64_t field, uint8_t type) {
    if (field == 2 && type == list) {
      in.elements([&](uint8_t of) {
        if (!is_integer(of)) return in.skip(of, true);
        const int64_t encoding = in.integer();
        out.encodings |= uint64_t{1} << (encoding >= 0 && encoding < 64 ? encoding : 63);
      });
      return true;
    }
    if (field == 3 && type == list) {
      in.elements([&](uint8_t of) {
        if (of != binary) return in.skip(of, true);
        if (!out.path.empty()) out.path += '\0';  // no name of a column at the top
        out.path += in.text();
      });
      return true;
    }
    if (field == 12 && type == structure) return read_statistics(in, out), true;
    if (!is_integer(type)) return false;
    switch (field) {
      case 1: out.type = in.integer(); return true;
      case 4: out.codec = in.integer(); return true;
      case 5: out.values = in.integer(); return true;
      case 6: out.uncompressed = in.integer(); return true;
      case 7: out.compressed = in.integer(); return true;
      case 9: out.data_at = in.integer(); return true;
      case 11: out.dictionary_at = in.integer(); return true;
      default: return false;
    }
  });
}

Chunk read_chunk(Thrift& in) {
  Chunk out;
  in.fields([&](int64_t field, uint8_t type) {
    if (field == 3 && type == structure) return read_chunk_data(in, out), true;
    out.is_elsewhere |= field == 1 || field == 8 || field == 9;
    return false;
  });
  return out;
}

RowGroup read_group(Thrift& in) {
  RowGroup out;
  in.fields([&](int64_t field, uint8_t type) {
    if (field == 1 && type == list) {
      in.elements([&](uint8_t of) {
        if (of == structure)
          out.chunks.push_back(read_chunk(in));
        else
          in.skip(of, true);
      });
      return true;
    }
    if (field != 3 || !is_integer(type)) return false;
    return out.rows = in.integer(), true;
  });
  return out;
}

}  // namespace

std::optional<Footer> read_footer(std::span<const std::byte> bytes) {
  Footer out;
  Thrift in(bytes);
  in.fields([&](int64_t field, uint8_t type) {
    if ((field == 2 || field == 4) && type == list) {
      in.elements([&](uint8_t of) {
        if (of != structure)
          in.skip(of, true);
        else if (field == 2)
          out.schema.push_back(read_element(in));
        else
          out.groups.push_back(read_group(in));
      });
      return true;
    }
    if (field != 3 || !is_integer(type)) return false;
    return out.rows = in.integer(), true;
  });
  if (!in.ok()) return std::nullopt;
  return out;
}

std::optional<PageHeader> read_page_header(std::span<const std::byte> bytes) {
  PageHeader out;
  Thrift in(bytes);
  // Fields of the three kinds: of data, of a dictionary, of data as version 2 has it.
  auto read = [&](int64_t kind) {
    in.fields([&](int64_t field, uint8_t type) {
      if (kind == 8 && field == 7) return out.is_compressed = type == true_, false;
      if (!is_integer(type)) return false;
      const int64_t value = in.integer();
      if (field == 1) out.values = value;
      if (field == (kind == 8 ? 4 : 2)) out.encoding = value;
      if (kind == 5 && field == 3) out.level_encoding = value;
      if (kind == 8 && field == 5) out.levels = value;
      if (kind == 8 && field == 6) out.repeats = value;
      return true;
    });
    return true;
  };
  in.fields([&](int64_t field, uint8_t type) {
    if (type == structure && (field == 5 || field == 7 || field == 8)) return read(field);
    if (!is_integer(type) || field > 3) return false;
    (field == 1 ? out.kind : field == 2 ? out.uncompressed : out.compressed) = in.integer();
    return true;
  });
  if (!in.ok()) return std::nullopt;
  out.bytes = in.consumed();
  return out;
}

}  // namespace rndn::files
