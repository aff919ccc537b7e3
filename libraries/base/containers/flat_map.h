// A map of few keys: pairs in a sorted vector. What a tree would allocate and chase for five entries costs more than a search.
#pragma once
#include <algorithm>
#include <utility>
#include <vector>

#include "libraries/base/errors/check.h"

namespace rndn {

// References stay valid until the next insertion. Iterates in the order of the keys.
template <class Key, class T>
class FlatMap {
 public:
  using value_type = std::pair<Key, T>;

  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  bool empty() const { return items_.empty(); }
  auto find(const Key& key) {
    const auto at = place(items_, key);
    return at != items_.end() && at->first == key ? at : items_.end();
  }
  auto find(const Key& key) const {
    const auto at = place(items_, key);
    return at != items_.end() && at->first == key ? at : items_.end();
  }
  bool contains(const Key& key) const { return find(key) != end(); }
  const T& at(const Key& key) const {
    const auto found = find(key);
    CHECK(found != end(), "no such key");
    return found->second;
  }
  T& at(const Key& key) { return const_cast<T&>(std::as_const(*this).at(key)); }
  T& operator[](const Key& key) {
    auto at = place(items_, key);
    if (at == items_.end() || at->first != key) at = items_.insert(at, {key, T{}});
    return at->second;
  }

 private:
  template <class Items>
  static auto place(Items& items, const Key& key) {
    return std::lower_bound(items.begin(), items.end(), key,
                            [](const value_type& x, const Key& k) { return x.first < k; });
  }

  std::vector<value_type> items_;
};

}  // namespace rndn
