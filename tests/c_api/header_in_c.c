/* The header as C11, without warnings, and the calls of its head comment from C. */
#include "rndn_assembler.h"

size_t size_of_cubin_in_c(const char* text, size_t length, const char* target);

size_t size_of_cubin_in_c(const char* text, size_t length, const char* target) {
  rndn_assembler_options options = {.size = sizeof options, .target = target};
  rndn_assembler_result* result;
  size_t size = 0;
  if (rndn_assembler_assemble(text, length, "t.ptx", &options, NULL, &result) == RNDN_ASSEMBLER_OK)
    size = rndn_assembler_cubin_size(result);
  rndn_assembler_result_free(result);
  return size;
}
