/* rndn's assembler as a library for C and what can call C: PTX text in memory to a cubin in memory. C11 and C++.
 *
 *     rndn_assembler_options options = {.size = sizeof options, .target = "sm_90"};
 *     rndn_assembler_result* result;
 *     if (rndn_assembler_assemble(text, length, "saxpy.ptx", &options, NULL, &result) == RNDN_ASSEMBLER_OK)
 *       error = cuModuleLoadData(&module, rndn_assembler_cubin(result));
 *     else
 *       fputs(rndn_assembler_diagnostics(result), stderr);
 *     rndn_assembler_result_free(result);
 *
 * The library reads, writes and prints nothing, changes nothing of the process and never ends it. It keeps no state between calls, so that any number of
 * threads may call it at once; only a workspace belongs to one call at a time, and a result must not be freed while another thread reads it.
 * The same text and options give the same cubin, whatever else runs.
 *
 * The library owns what its functions return pointers to; each says how long it lives. It keeps no pointer that it was given. Functions that take a
 * result take NULL, too: what a call may leave when memory runs out. No exception leaves the library.
 *
 * What grows: options at their end (`size` says how much of them the caller knows), diagnostics and kernels at their end (they are only ever seen through
 * pointers to one), statuses and severities by new values, functions by new ones. Nothing else changes without a new name of the shared library. */
#ifndef RNDN_ASSEMBLER_H
#define RNDN_ASSEMBLER_H

#include <stddef.h>

#if defined(__GNUC__)
#define RNDN_ASSEMBLER_EXPORT __attribute__((visibility("default")))
#else
#define RNDN_ASSEMBLER_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Whose fault it is: the exit codes of rndn-as. */
typedef enum rndn_assembler_status {
  RNDN_ASSEMBLER_OK = 0,
  RNDN_ASSEMBLER_INPUT = 1, /* the text is at fault: see the diagnostics */
  RNDN_ASSEMBLER_USAGE = 2, /* the call is at fault: unknown target, option out of range; the diagnostics say which */
  RNDN_ASSEMBLER_OUT_OF_MEMORY = 3, /* nothing was made; with more memory the call may succeed */
  RNDN_ASSEMBLER_INTERNAL = 70      /* a bug in rndn: please report the diagnostics with the text */
} rndn_assembler_status;

/* The level that stands for rndn-as's -O0: in options, 0 is the default. */
enum { RNDN_ASSEMBLER_LEVEL_0 = -1 };

/* A field that is 0 has its default. A caller sets `size` and what it wants different, all else to 0. */
typedef struct rndn_assembler_options {
  size_t size;            /* sizeof(rndn_assembler_options), as the caller was compiled */
  const char* target;     /* "sm_90"; NULL: what the text's .target says */
  int level;              /* 1, 2, 3: -O1 to -O3 of rndn-as; 0: the default, which is 3; RNDN_ASSEMBLER_LEVEL_0: -O0, which with a
                             workspace is several times as fast, and other code (rndn-as --stencils) */
  unsigned max_registers; /* of a thread, up to 255 (below 16: 16); 0: the target's limit */
  int line_tables;        /* not 0: line tables from .loc and .file */
  int verify_passes;      /* not 0: independent checkers after each pass, slower; what they find is INTERNAL */
  int no_fmad;            /* not 0: products and sums of floats do not become fma, as with --fmad=false */
  unsigned threads;       /* that assemble a text's kernels side by side, up to 1024; 0, 1: the caller's alone */
} rndn_assembler_options;

/* Memory that calls take again, one after the other, and the threads of calls with `threads`: for callers that assemble often. For one call at a time.
 * NULL: no memory for one. Freed by rndn_assembler_workspace_free, which takes NULL; results do not need the workspace that they were made with. */
typedef struct rndn_assembler_workspace rndn_assembler_workspace;
RNDN_ASSEMBLER_EXPORT rndn_assembler_workspace* rndn_assembler_workspace_new(void);
RNDN_ASSEMBLER_EXPORT void rndn_assembler_workspace_free(rndn_assembler_workspace* workspace);

/* What came of a call. Everything reached through it lives until rndn_assembler_result_free, which takes NULL. */
typedef struct rndn_assembler_result rndn_assembler_result;
RNDN_ASSEMBLER_EXPORT void rndn_assembler_result_free(rndn_assembler_result* result);

/* Assembles a PTX module, `length` bytes at `text`; no NUL needs to follow them.
 *   name       what diagnostics call the text, such as a file name; NULL: "<ptx>"
 *   options    NULL: defaults
 *   workspace  NULL: the call's own memory
 *   result     receives the result, whatever the status: the caller frees it. Out of memory, it may be NULL. */
RNDN_ASSEMBLER_EXPORT rndn_assembler_status rndn_assembler_assemble(const char* text, size_t length, const char* name,
                                                                    const rndn_assembler_options* options,
                                                                    rndn_assembler_workspace* workspace,
                                                                    rndn_assembler_result** result);

/* The cubin, as cuModuleLoadData takes it, and its bytes; NULL and 0 unless the status was OK. */
RNDN_ASSEMBLER_EXPORT const void* rndn_assembler_cubin(const rndn_assembler_result* result);
RNDN_ASSEMBLER_EXPORT size_t rndn_assembler_cubin_size(const rndn_assembler_result* result);

/* All diagnostics as rndn-as prints them, with source line and caret, each line ended by a newline; "" when there are none. A result that is OK may
 * have warnings; what ran out of memory, NULL among it, has a line that says so, and nothing one by one. */
RNDN_ASSEMBLER_EXPORT const char* rndn_assembler_diagnostics(const rndn_assembler_result* result);

/* The same, one by one, in the same order. */
typedef enum rndn_assembler_severity {
  RNDN_ASSEMBLER_ERROR = 0,
  RNDN_ASSEMBLER_WARNING = 1,
  RNDN_ASSEMBLER_NOTE = 2 /* belongs to the error or warning before it */
} rndn_assembler_severity;
typedef struct rndn_assembler_diagnostic {
  rndn_assembler_severity severity;
  unsigned line;   /* from 1; 0: no position. What is found after parsing has its statement's or function's line */
  unsigned column; /* from 1, in bytes; 0: no position, as for what is found after parsing */
  const char* message; /* one line, without position and severity */
} rndn_assembler_diagnostic;
RNDN_ASSEMBLER_EXPORT size_t rndn_assembler_diagnostic_count(const rndn_assembler_result* result);
/* Number i, counted from 0; NULL from the count on. */
RNDN_ASSEMBLER_EXPORT const rndn_assembler_diagnostic* rndn_assembler_diagnostic_at(const rndn_assembler_result* result,
                                                                                    size_t i);

/* The kernels of the cubin, in the text's order; none unless the status was OK. */
typedef struct rndn_assembler_kernel {
  const char* name;
  unsigned registers;    /* per thread, as the driver reports them */
  unsigned instructions; /* without padding */
  unsigned spill_bytes;  /* per thread, of local memory */
  unsigned shared_bytes; /* per block, static */
} rndn_assembler_kernel;
RNDN_ASSEMBLER_EXPORT size_t rndn_assembler_kernel_count(const rndn_assembler_result* result);
/* Number i, counted from 0; NULL from the count on. */
RNDN_ASSEMBLER_EXPORT const rndn_assembler_kernel* rndn_assembler_kernel_at(const rndn_assembler_result* result,
                                                                            size_t i);

/* The names of the targets, counted from 0, such as "sm_90"; NULL from their number on. They live as long as the library is loaded, as do the next two's. */
RNDN_ASSEMBLER_EXPORT const char* rndn_assembler_target(size_t i);
/* The target whose cubins a GPU of this compute capability runs: of the same major version the highest that is not above it; NULL: there is none. */
RNDN_ASSEMBLER_EXPORT const char* rndn_assembler_target_of_capability(int major, int minor);

/* The library's version, such as "0.1.0". */
RNDN_ASSEMBLER_EXPORT const char* rndn_assembler_version(void);

#ifdef __cplusplus
}
#endif
#endif
