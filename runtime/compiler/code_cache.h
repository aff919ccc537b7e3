// Machine code that was made before, by the PTX that it was made from: in memory, and in files that several processes share.
//
//   CodeCache cache(default_cache_directory());
//   ASSIGN_OR_RETURN(assembler::Assembled code, assemble(&cache, module, options, timings));
//
// A key is a 128-bit hash of everything that the code hangs on: the module, target and options, and the identity of the running program (its build
// id), so that another build never meets code of this one. Constants that depend on data are kernel parameters, never part of the code.
// Files are written under another name and renamed: whoever reads one finds all of it. What cannot be read or written is as if it were not there.
// Leaves out: a bound on the size of the folder.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "assembler/assemble.h"
#include "libraries/base/errors/result.h"
#include "libraries/base/report/timing.h"
#include "ptx/ir.h"

namespace rndn::runtime {

// Thread-safe.
class CodeCache {
 public:
  // directory: of the cache, made when something is written; empty: in memory only.
  explicit CodeCache(std::string directory);

  struct Key {
    uint64_t high = 0, low = 0;
    auto operator<=>(const Key&) const = default;
  };
  static Key key_of(const ptx::Module& module, const assembler::Options& options);

  std::optional<assembler::Assembled> find(const Key& key);
  void add(const Key& key, const assembler::Assembled& code);

 private:
  std::string path(const Key& key) const;
  std::string directory_;
  std::mutex mutex_;
  std::map<Key, assembler::Assembled> known_;
};

// assembler::assemble, or what the cache has (null: no cache). Looking it up counts as Phase::encode.
Result<assembler::Assembled> assemble(CodeCache* cache, const ptx::Module& module, const assembler::Options& options,
                                      Timings& timings);

}  // namespace rndn::runtime
