// The math functions of NVIDIA's libdevice as a PTX module of .func, for code generation to call.
//
// The PTX comes with an installation (share/rndn/libdevice.ptx beside the programs' folder), or is made on first need: the program rndn-libdevice,
// built where LLVM is, turns NVIDIA's bitcode into PTX, which is kept in the cache under a name that has the bitcode's hash. So neither LLVM nor the
// bitcode is needed at run time once the file exists.
#pragma once
#include <mutex>
#include <string>
#include <vector>

#include "libraries/base/errors/result.h"
#include "ptx/ir.h"

namespace rndn::libdevice {

// Where the functions may come from, in this order.
struct Places {
  std::string file;                  // PTX that came with the installation
  std::string program;               // rndn-libdevice
  std::vector<std::string> bitcode;  // files that may be libdevice.10.bc: the first that exists is taken
  std::string cache;                 // folder for what `program` makes; empty: nothing is made
};

// `file` and `program` beside the running program; bitcode where $RNDN_LIBDEVICE says, else in $CUDA_HOME, /usr/local/cuda and Debian's folder.
Places default_places(std::string cache);

// The functions, read on first need. Thread-safe.
class Math {
 public:
  explicit Math(Places places) : places_(std::move(places)) {}
  Math(const Math&) = delete;
  Math& operator=(const Math&) = delete;
  // The module lives as long as this object. Fails (the same way every time) with what is missing.
  Result<const ptx::Module*> module();

 private:
  const Places places_;
  std::once_flag once_;
  ptx::Module module_;
  std::optional<Error> problem_;
};

}  // namespace rndn::libdevice
