// The kernels of the operators: loaded on first use, and built and assembled where their code is not there (ready.h); kept as long as the
// object. Private to this folder.
//
//   ASSIGN_OR_RETURN(const Kernel* histogram, library.kernel("histogram_u64", [](ptx::Module& m, std::string_view name) { ... }));
//   Arguments a;
//   a.add(keys).add(count);
//   RETURN_IF_ERROR(library.launch(*histogram, library.grid(*histogram, tiles), a));
//
// A kernel is an entry with u64 parameters only and a fixed block size (.reqntid), as those of ptx/codegen. Its name tells everything that it
// was built for (types, widths), so equal names are equal kernels.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "libraries/base/errors/result.h"
#include "libraries/operators/api.h"
#include "ptx/builder.h"
#include "runtime/device/device.h"

namespace rndn::operators {

struct Kernel {
  std::string name;
  device::KernelHandle handle{};
  uint32_t block_size = 256;  // threads
  device::KernelInfo info;
  uint32_t resident_blocks = 1;  // of the whole device at once: a persistent grid has no more
  bool is_late = false;          // until its first launch is reported: it was made when it was asked for
};

struct Arguments {
  std::vector<uint64_t> words;
  Arguments& add(uint64_t word) {
    words.push_back(word);
    return *this;
  }
};

// What an operator asks the device to go on. Kernels write the answer, and where it was foreseen and is another one, that it is.
struct Question {
  device::Mapped found;
  size_t words = 0;
  const uint64_t* foreseen = nullptr;  // null: it is waited for
  Address differs = 0;                 // of a u32 that kernels set then
};
// For answer_parameters: of `count` words from the first on.
void add(Arguments& a, const Question& question, size_t first, size_t count);

// For an operator that another calls: what is a result of the one is temporary for the other.
class Scratch final : public Memory {
 public:
  explicit Scratch(Memory& memory) : memory_(memory) {}
  Result<Address> temporary(uint64_t bytes) override { return memory_.temporary(bytes); }
  Result<Address> result(uint64_t bytes) override { return memory_.temporary(bytes); }
  Result<device::Mapped> mapped(uint64_t bytes) override { return memory_.mapped(bytes); }
  uint64_t most_unknown() const override { return memory_.most_unknown(); }
  const uint64_t* foreseen(std::string_view what, const device::Mapped& found, size_t words) override {
    return memory_.foreseen(what, found, words);
  }
  Result<void> waited() override { return memory_.waited(); }

 private:
  Memory& memory_;
};

class Library {
 public:
  // Adds the entry `name` to the module; gives its block size.
  using Build = std::function<uint32_t(ptx::Module& module, std::string_view name)>;

  struct Row {
    std::string name;
    Build build;
  };

  Library(device::Device& device, Operators::Assemble assemble, Operators::FindCode find = nullptr)
      : device_(device), assemble_(std::move(assemble)), find_(std::move(find)) {}
  ~Library();
  Library(const Library&) = delete;

  device::Device& device() const { return device_; }
  // The pointer lives as long as the library.
  Result<const Kernel*> kernel(std::string_view name, const Build& build);
  Result<const Kernel*> kernel(const Row& row) { return kernel(row.name, row.build); }
  static ptx::Module new_module();  // without a kernel yet
  // Blocks for `tiles` pieces of work: at least one, at most what runs at once.
  uint32_t grid(const Kernel& kernel, uint64_t tiles) const;
  Result<void> launch(const Kernel& kernel, uint32_t grid, const Arguments& arguments, uint64_t floor_bytes = 0,
                      uint32_t dynamic_shared = 0);
  // `what` names the question. Kernels that are launched from now on may answer.
  Result<Question> ask(std::string_view what, size_t words, Memory& memory);
  // The answer of kernels that are launched: foreseen, or waited for.
  Result<const uint64_t*> learn(const Question& question, Memory& memory);
  Result<void> wait(Memory& memory);
  // zeroed_bytes of device memory that are zero, for counters: every kernel that uses them leaves them so.
  static constexpr uint64_t zeroed_bytes = 64 << 10;
  Result<Address> zeroed();
  // Operators::differs
  Result<Address> differs();
  // Device memory that holds these bytes, sent when they are first asked for, as long as the library lives; 0: there is no room for more.
  static constexpr uint64_t kept_bytes = 64 << 10;
  Result<Address> kept(std::span<const std::byte> bytes);
  void zero_again() { is_zero_ = false; }  // after an error between two launches

  Options options;  // which alternatives run
  bool measure = false;
  std::vector<Launch> launches;

 private:
  device::Device& device_;
  Operators::Assemble assemble_;
  Operators::FindCode find_;  // may be null
  std::map<std::string, Kernel, std::less<>> kernels_;
  std::vector<device::ModuleHandle> modules_;
  Address zeroed_ = 0;
  bool is_zero_ = false;
  Address kept_ = 0;
  uint64_t kept_used_ = 0;
  std::map<std::string, Address, std::less<>> kept_at_;  // by the bytes
};

}  // namespace rndn::operators
