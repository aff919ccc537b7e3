// Interning: equal strings get equal ids, so that names compare in one instruction and print without copies.
#pragma once
#include <string>
#include <string_view>
#include <unordered_map>

#include "libraries/base/arena.h"
#include "libraries/base/id.h"

namespace rndn {

enum class NameId : uint32_t {};

// Owns its texts (in an arena); views stay valid as long as the interner. Not thread-safe: one per compilation.
class Interner {
 public:
  NameId intern(std::string_view text) {
    auto it = ids_.find(text);
    if (it != ids_.end()) return it->second;
    std::string_view owned = arena_.copy(text);
    NameId id = texts_.add(owned);
    ids_.emplace(owned, id);
    return id;
  }
  std::string_view text(NameId id) const { return texts_[id]; }
  size_t size() const { return texts_.size(); }

 private:
  Arena arena_;
  IdVector<NameId, std::string_view> texts_;
  std::unordered_map<std::string_view, NameId> ids_;
};

}  // namespace rndn
