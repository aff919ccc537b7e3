// Nested Arrow arrays, built a value at a time: what ADBC's catalog calls answer with.
//
//   Nested root = Nested::table({..});     // name: text, columns: list of text
//   root[0].add("t"); root[1][0].add("a"); root[1].end(); root.end();   // ("t", ["a"])
//   ArrowArrayStream stream = std::move(root).stream();
//
// `end` closes a list or a row of a struct with what its children have; `add_null` adds one that is
// missing, with nothing in the children of a list, and a missing value in each of a struct. A union
// takes its value from the child that it is told. In memory, one array.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/arrow_abi.h"

namespace rndn::adbc {

class Nested {
 public:
  static Nested text(std::string name) { return Nested("u", std::move(name), Kind::text, 0); }
  static Nested bytes(std::string name) { return Nested("z", std::move(name), Kind::text, 0); }
  static Nested bits(std::string name) { return Nested("b", std::move(name), Kind::bits, 0); }
  // The format of an integer or a float, and its bytes.
  static Nested number(std::string name, const char* format, uint8_t bytes) {
    return Nested(format, std::move(name), Kind::number, bytes);
  }
  static Nested list(std::string name, Nested item, const char* format = "+l");
  static Nested record(std::string name, std::vector<Nested> children);
  static Nested one_of(std::string name, std::vector<Nested> children);
  static Nested table(std::vector<Nested> children) { return record("", std::move(children)); }
  Nested required() && { return nullable_ = false, std::move(*this); }

  Nested& operator[](size_t child) { return children_[child]; }
  void add(std::string_view text);
  void add(int64_t value) { add_bytes(&value); }
  void add_float(double value) { add_bytes(&value); }
  void add_bit(bool value);
  void add_null();
  void end();                       // of a list, a row
  void end_one_of(uint8_t chosen);  // of a union: the child has its value

  ArrowArrayStream stream() &&;

 private:
  enum class Kind : uint8_t { text, bits, number, list, record, one_of };
  Nested(const char* format, std::string name, Kind kind, uint8_t bytes);
  void add_bytes(const void* value);
  void grow(bool there);
  ArrowSchema schema() const;
  ArrowArray array() &&;

  std::string format_, name_;
  Kind kind_;
  uint8_t bytes_;
  bool nullable_ = true;
  int64_t length_ = 0, missing_ = 0;
  std::vector<uint8_t> valid_;     // a bit each
  std::vector<uint8_t> values_;    // numbers, bits, the types of a union
  std::vector<int32_t> offsets_;
  std::string characters_;
  std::vector<Nested> children_;
};

}  // namespace rndn::adbc
