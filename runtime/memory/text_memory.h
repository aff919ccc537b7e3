// What operators make for domains of texts, and what of it stays. Private to this folder.
#pragma once
#include <vector>

#include "runtime/memory/text_domains.h"

namespace rndn::runtime {

// For operators whose results outlive the run: these lie in the domains' arena, where the caller takes
// them by their address; the rest is the memory of the call.
class Kept final : public operators::Memory {
 public:
  explicit Kept(const TextTools& tools) : tools_(tools) {}
  Result<device::Address> temporary(uint64_t bytes) override {
    return tools_.memory->temporary(bytes);
  }
  Result<device::Address> result(uint64_t bytes) override {
    ASSIGN_OR_RETURN(BufferPtr buffer, tools_.arena.allocate(bytes));
    results_.push_back(buffer);
    return buffer->address;
  }
  Result<device::Mapped> mapped(uint64_t bytes) override { return tools_.memory->mapped(bytes); }
  uint64_t most_unknown() const override { return tools_.memory->most_unknown(); }
  Result<void> waited() override { return tools_.memory->waited(); }
  BufferPtr at(device::Address address) const {
    for (const BufferPtr& b : results_)
      if (b->address == address) return b;
    return nullptr;
  }

 private:
  const TextTools& tools_;
  std::vector<BufferPtr> results_;
};

}  // namespace rndn::runtime
