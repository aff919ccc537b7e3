/* Makes machine code for the GPU of this machine while it runs, and runs it: PTX text -> rndn_assembler -> cuModuleLoadData -> cuLaunchKernel.
 *
 *     build/bin/jit [--assemble-only]
 *
 * Nothing of CUDA is needed to build this; the driver is opened when it runs. Without a GPU, or with --assemble-only, it assembles for sm_90.
 * Exit codes: 0 all is well; 1 the assembler refused the text; 2 wrong usage; 3 no GPU, or its driver failed; 70 the GPU computed something wrong. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rndn_assembler.h"

/* y[i] = a * x[i] + y[i] for i < n */
static const char saxpy[] =
    ".version 7.0\n"
    ".target sm_60\n"
    ".address_size 64\n"
    ".visible .entry saxpy(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n) {\n"
    "  .reg .pred %p;\n"
    "  .reg .b32 %r<5>;\n"
    "  .reg .b64 %rd<4>;\n"
    "  .reg .f32 %f<4>;\n"
    "  mov.u32 %r1, %ctaid.x;\n"
    "  mov.u32 %r2, %ntid.x;\n"
    "  mov.u32 %r3, %tid.x;\n"
    "  mad.lo.u32 %r1, %r1, %r2, %r3;\n"
    "  ld.param.u32 %r4, [n];\n"
    "  setp.ge.u32 %p, %r1, %r4;\n"
    "  @%p ret;\n"
    "  ld.param.u64 %rd1, [x];\n"
    "  ld.param.u64 %rd2, [y];\n"
    "  ld.param.f32 %f1, [a];\n"
    "  mul.wide.u32 %rd3, %r1, 4;\n"
    "  add.u64 %rd1, %rd1, %rd3;\n"
    "  add.u64 %rd2, %rd2, %rd3;\n"
    "  ld.global.f32 %f2, [%rd1];\n"
    "  ld.global.f32 %f3, [%rd2];\n"
    "  fma.rn.f32 %f3, %f1, %f2, %f3;\n"
    "  st.global.f32 [%rd2], %f3;\n"
    "  ret;\n"
    "}\n";

/* The functions of libcuda.so.1 that a launch takes, with the names of its symbols. A result is 0 or an error that cuGetErrorName names. */
typedef uint64_t device_pointer;
#define DRIVER_FUNCTIONS(F)                                                                                 \
  F(cuInit, cuInit, (unsigned flags))                                                                       \
  F(cuGetErrorName, cuGetErrorName, (int error, const char** name))                                         \
  F(cuDeviceGet, cuDeviceGet, (int* device, int ordinal))                                                   \
  F(cuDeviceGetName, cuDeviceGetName, (char* name, int bytes, int device))                                  \
  F(cuDeviceGetAttribute, cuDeviceGetAttribute, (int* value, int attribute, int device))                    \
  F(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (void** context, int device))                       \
  F(cuCtxSetCurrent, cuCtxSetCurrent, (void* context))                                                      \
  F(cuCtxSynchronize, cuCtxSynchronize, (void))                                                             \
  F(cuMemAlloc, cuMemAlloc_v2, (device_pointer * memory, size_t bytes))                                     \
  F(cuMemcpyHtoD, cuMemcpyHtoD_v2, (device_pointer to, const void* from, size_t bytes))                     \
  F(cuMemcpyDtoH, cuMemcpyDtoH_v2, (void* to, device_pointer from, size_t bytes))                           \
  F(cuModuleLoadData, cuModuleLoadData, (void** module, const void* image))                                 \
  F(cuModuleGetFunction, cuModuleGetFunction, (void** function, void* module, const char* name))            \
  F(cuLaunchKernel, cuLaunchKernel,                                                                         \
    (void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
     unsigned block_z, unsigned shared_bytes, void* stream, void** parameters, void** extra))
#define DECLARE(name, symbol, parameters) static int(*name) parameters;
DRIVER_FUNCTIONS(DECLARE)
enum { capability_major = 75, capability_minor = 76, no_device = 100 };

static void driver(int error, const char* what) {
  if (!error) return;
  const char* name = NULL;
  if (cuGetErrorName(error, &name) || !name) name = "an error without a name";
  fprintf(stderr, "error: %s failed: %s (%d)\n", what, name, error);
  exit(3);
}
#define DRIVER(call) driver((call), #call)

/* Whether there is a GPU; says why not. */
static int open_driver(void) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) {
    fprintf(stderr, "no GPU: cannot open libcuda.so.1: %s\n", dlerror());
    return 0;
  }
#define FIND(name, symbol, parameters)                                           \
  *(void**)&name = dlsym(library, #symbol);                                      \
  if (!name) {                                                                   \
    fprintf(stderr, "no GPU: libcuda.so.1 has no %s: %s\n", #symbol, dlerror()); \
    return 0;                                                                    \
  }
  DRIVER_FUNCTIONS(FIND)
  const int error = cuInit(0);
  if (error == no_device) {
    fprintf(stderr, "no GPU: cuInit(0) of libcuda.so.1 says CUDA_ERROR_NO_DEVICE\n");
    return 0;
  }
  driver(error, "cuInit(0)");
  return 1;
}

static double now_us(void) {
  struct timespec t;
  timespec_get(&t, TIME_UTC);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* The cubin for `target`, as a result to free; what it is and what it took goes to standard output. */
static rndn_assembler_result* assemble(const char* target) {
  rndn_assembler_options options = {.size = sizeof options, .target = target};
  rndn_assembler_result* result;
  const double begin = now_us();
  const rndn_assembler_status status =
      rndn_assembler_assemble(saxpy, strlen(saxpy), "saxpy.ptx", &options, NULL, &result);
  const double us = now_us() - begin;
  fputs(rndn_assembler_diagnostics(result), stderr);
  if (status != RNDN_ASSEMBLER_OK) {
    rndn_assembler_result_free(result);
    exit(status);
  }
  const rndn_assembler_kernel* kernel = rndn_assembler_kernel_at(result, 0);
  printf("%s for %s: assembled in %.0f us; %u registers, %u instructions, a cubin of %zu bytes\n", kernel->name, target,
         us, kernel->registers, kernel->instructions, rndn_assembler_cubin_size(result));
  return result;
}

static void run(void) {
  int device, major, minor;
  char name[128] = "";
  void *context, *module, *function;
  DRIVER(cuDeviceGet(&device, 0));
  DRIVER(cuDeviceGetName(name, (int)sizeof name - 1, device));
  DRIVER(cuDeviceGetAttribute(&major, capability_major, device));
  DRIVER(cuDeviceGetAttribute(&minor, capability_minor, device));
  const char* target = rndn_assembler_target_of_capability(major, minor);
  if (!target) {
    fprintf(stderr, "no GPU: %s has compute capability %d.%d, for which no code can be made\n", name, major, minor);
    exit(3);
  }
  rndn_assembler_result* result = assemble(target);

  enum { n = 1000000, block = 256 };
  float a = 3, *x = malloc(n * sizeof *x), *y = malloc(n * sizeof *y);
  if (!x || !y) exit(3);
  for (int i = 0; i < n; ++i) x[i] = (float)(i % 1000), y[i] = (float)(i % 777);
  device_pointer device_x, device_y;
  DRIVER(cuDevicePrimaryCtxRetain(&context, device));
  DRIVER(cuCtxSetCurrent(context));
  DRIVER(cuMemAlloc(&device_x, n * sizeof *x));
  DRIVER(cuMemAlloc(&device_y, n * sizeof *y));
  DRIVER(cuMemcpyHtoD(device_x, x, n * sizeof *x));
  DRIVER(cuMemcpyHtoD(device_y, y, n * sizeof *y));

  unsigned count = n;
  void* parameters[] = {&device_x, &device_y, &a, &count};
  const double begin = now_us();
  DRIVER(cuModuleLoadData(&module, rndn_assembler_cubin(result)));
  DRIVER(cuModuleGetFunction(&function, module, "saxpy"));
  const double loaded = now_us();
  DRIVER(cuLaunchKernel(function, (n + block - 1) / block, 1, 1, block, 1, 1, 0, NULL, parameters, NULL));
  DRIVER(cuCtxSynchronize());
  const double done = now_us();
  rndn_assembler_result_free(result); /* the driver has its own copy */

  DRIVER(cuMemcpyDtoH(y, device_y, n * sizeof *y));
  for (int i = 0; i < n; ++i) {
    const float right = a * x[i] + (float)(i % 777); /* small whole numbers: exact */
    if (y[i] == right) continue;
    fprintf(stderr, "error: y[%d] is %g, not %g\n", i, (double)y[i], (double)right);
    exit(70);
  }
  printf("%s: loaded in %.0f us, ran in %.0f us; all %d elements are right\n", name, loaded - begin, done - loaded, n);
  free(x);
  free(y);
}

int main(int argc, char** argv) {
  const int assemble_only = argc == 2 && strcmp(argv[1], "--assemble-only") == 0;
  if (argc > 1 && !assemble_only) {
    fprintf(stderr, "usage: %s [--assemble-only]\n", argv[0]);
    return 2;
  }
  if (!assemble_only && open_driver()) {
    run();
    return 0;
  }
  rndn_assembler_result_free(assemble("sm_90"));
  return assemble_only ? 0 : 3;
}
