// Kernels with a string per thread, and what they share. Private to this folder.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "libraries/operators/api.h"
#include "libraries/operators/fragments.h"
#include "libraries/operators/library.h"

namespace rndn::operators {

inline constexpr uint32_t longest_string = 0xFFFFFF;  // bytes that a handle can tell

struct Text {
  Reg<U64> handle, at;
  Reg<U32> length;
};
Text text_at(Builder& b, Reg<U64> handles, Reg<U64> pad, Reg<U32> row);

// A kernel of u64 parameters by name, in order, behind the number of rows.
using RowBody = std::function<void(Builder& b, std::span<const Reg<U64>> parameters, Reg<U32> row,
                                   LabelId next_row)>;
uint32_t build_rows(ptx::Module& module, std::string_view name,
                    const std::vector<std::string>& names, const RowBody& body);
Result<void> launch_rows(Library& library, std::string_view name, const Library::Build& build,
                         uint64_t rows, const std::vector<uint64_t>& words, uint64_t bytes_per_row);

inline Result<void> launch_rows(Library& library, const Library::Row& kernel, uint64_t rows,
                                const std::vector<uint64_t>& words, uint64_t bytes_per_row) {
  return launch_rows(library, kernel.name, kernel.build, rows, words, bytes_per_row);
}

Reg<U32> load_byte(Builder& b, Reg<U64> text, Reg<U32> at);
// Moves `at` over at most `most` characters (runtime/text/utf8.h) of the text, and adds them to `passed`.
void pass_characters(Builder& b, Reg<U64> text, Reg<U32> length, Reg<U32> at, Reg<U32> most,
                     Reg<U32> passed);
// Moves `at` on to the next place where these bytes stand; jumps where there is none. No bytes stand everywhere.
void find_bytes(Builder& b, const Text& text, Reg<U64> bytes, Reg<U32> count, Reg<U32> at,
                LabelId nowhere);

// Bytes of the host on the device, in whole words.
Result<Address> send_bytes(Library& library, std::string_view bytes, Memory& memory);
// Handles and a pad of whole words, the last of which is 0.
Result<Strings> room_for_strings(Library& library, uint64_t count, uint64_t pad_bytes,
                                 Memory& memory);

}  // namespace rndn::operators
