// The text that comments are cut from: 300 MiB of sentences, the same for every scale factor.
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>

namespace rndn::tpch {

class TextPool {
 public:
  static constexpr uint32_t size = 300u << 20;  // bytes

  // The pool, shared with whoever holds it at the moment, else built on `threads` threads (0 = all cores). Thread-safe.
  static std::shared_ptr<const TextPool> get(unsigned threads = 0);

  explicit TextPool(unsigned threads, uint64_t draws_per_chunk = 1 << 20);

  const char* data() const { return text_.get(); }
  std::string_view view() const { return {text_.get(), size}; }

 private:
  std::unique_ptr<char[]> text_;
};

}  // namespace rndn::tpch
