/* A libcuda.so.1 without a GPU: host memory stands for device memory, kernels do nothing. It records the calls, and fails on request.
 *   RNDN_FAKE_CUDA_FAIL=name:code[:n[:1]]  the n-th call (from 1; default 1) of that function (of any, where the name is *) and all
 *                                      later ones fail with the code; with :1 only that one
 *   RNDN_FAKE_CUDA_DEVICES=9.0,7.5     compute capabilities of the GPUs (default 9.0; empty: none)
 *   RNDN_FAKE_CUDA_MISSING=name        cuGetProcAddress does not know this function
 *   RNDN_FAKE_CUDA_LATE=1              cuEventElapsedTime is not ready before cuEventSynchronize
 * fake_cuda_log() returns the calls so far, one per line, each as `name` or `name:what`; fake_cuda_reset() forgets them.
 * fake_cuda_counted() is how many of them the name of RNDN_FAKE_CUDA_FAIL stands for, fake_cuda_failed() the first that failed since then.
 * fake_cuda_held() is how many objects were taken and not asked back. A thread that has no context current gets
 * CUDA_ERROR_INVALID_CONTEXT from what needs one, logged as `name:no context`. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char log_text[1 << 18];
static size_t log_size;
static int handles[64];
static unsigned long events;

const char* fake_cuda_log(void) { return log_text; }
static int counted;
static long held;
static char failed[64];
void fake_cuda_reset(void) { log_size = 0; log_text[0] = 0; counted = 0; failed[0] = 0; }
int fake_cuda_counted(void) { return counted; }
const char* fake_cuda_failed(void) { return failed; }
long fake_cuda_held(void) { return __atomic_load_n(&held, __ATOMIC_SEQ_CST); }
static void hold(long n) { __atomic_fetch_add(&held, n, __ATOMIC_SEQ_CST); }

static pthread_mutex_t calls_mutex = PTHREAD_MUTEX_INITIALIZER;

static int enter_locked(const char* name, const char* what) {
  size_t room = sizeof log_text - log_size;
  int n = snprintf(log_text + log_size, room, what[0] ? "%s:%s\n" : "%s%s\n", name, what);
  if (n > 0 && (size_t)n < room) log_size += (size_t)n;
  const char* fail = getenv("RNDN_FAKE_CUDA_FAIL");
  size_t length = strlen(name);
  if (fail && fail[0] == '*') length = 1, name = "*";
  if (!fail || strncmp(fail, name, length) != 0 || fail[length] != ':') return 0;
  char* end;
  int code = (int)strtol(fail + length + 1, &end, 10);
  int from = *end == ':' ? (int)strtol(end + 1, &end, 10) : 1;
  int fails = ++counted == from || (counted > from && *end != ':');
  if (fails && !failed[0]) {
    const char* line = log_text + log_size - (n > 0 && (size_t)n < room ? n : 0);
    snprintf(failed, sizeof failed, "%.*s", (int)strcspn(line, ":\n"), line);
  }
  return fails ? code : 0;
}
static int enter(const char* name, const char* what) {
  pthread_mutex_lock(&calls_mutex);
  const int code = enter_locked(name, what);
  pthread_mutex_unlock(&calls_mutex);
  return code;
}
#define ENTER(name, ...)                              \
  do {                                                \
    char what_[256];                                  \
    snprintf(what_, sizeof what_, "" __VA_ARGS__);    \
    int code_ = enter(#name, what_);                  \
    if (code_) return code_;                          \
  } while (0)

static __thread void* current;
#define IN_CONTEXT(name)           \
  do {                             \
    if (current) break;            \
    enter(#name, "no context");    \
    return 201;                    \
  } while (0)

static const char* devices(void) {
  const char* d = getenv("RNDN_FAKE_CUDA_DEVICES");
  return d ? d : "9.0";
}

static int f_cuInit(unsigned flags) {
  (void)flags;
  const char* loading = getenv("CUDA_MODULE_LOADING");
  ENTER(cuInit, "CUDA_MODULE_LOADING=%s", loading ? loading : "");
  return devices()[0] ? 0 : 100;
}
static int f_cuDriverGetVersion(int* v) { ENTER(cuDriverGetVersion); *v = 12040; return 0; }
static int f_cuGetErrorName(int code, const char** name) {
  switch (code) {
    case 1: *name = "CUDA_ERROR_INVALID_VALUE"; return 0;
    case 2: *name = "CUDA_ERROR_OUT_OF_MEMORY"; return 0;
    case 100: *name = "CUDA_ERROR_NO_DEVICE"; return 0;
    case 201: *name = "CUDA_ERROR_INVALID_CONTEXT"; return 0;
    case 209: *name = "CUDA_ERROR_NO_BINARY_FOR_GPU"; return 0;
    case 218: *name = "CUDA_ERROR_INVALID_PTX"; return 0;
    case 999: *name = "CUDA_ERROR_UNKNOWN"; return 0;
    case 901: *name = "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"; return 0;
    case 700: *name = "CUDA_ERROR_ILLEGAL_ADDRESS"; return 0;
  }
  return 1;
}
static int f_cuGetErrorString(int code, const char** text) {
  switch (code) {
    case 1: *text = "invalid argument"; return 0;
    case 2: *text = "out of memory"; return 0;
    case 100: *text = "no CUDA-capable device is detected"; return 0;
    case 201: *text = "invalid device context"; return 0;
    case 209: *text = "no kernel image is available for execution on the device"; return 0;
    case 218: *text = "a PTX JIT compilation failed"; return 0;
    case 901: *text = "operation failed due to a previous error during capture"; return 0;
    case 700: *text = "an illegal memory access was encountered"; return 0;
  }
  return 1;
}
static int f_cuDeviceGetCount(int* n) {
  ENTER(cuDeviceGetCount);
  const char* d = devices();
  *n = d[0] != 0;
  for (; *d; ++d) *n += *d == ',';
  return 0;
}
static int f_cuDeviceGet(int* device, int ordinal) { ENTER(cuDeviceGet, "%d", ordinal); *device = ordinal; return 0; }
static int f_cuDeviceGetName(char* name, int length, int device) { ENTER(cuDeviceGetName); snprintf(name, (size_t)length, "Fake GPU %d", device); return 0; }
static int f_cuDeviceTotalMem(size_t* bytes, int device) { (void)device; ENTER(cuDeviceTotalMem); *bytes = (size_t)8 << 30; return 0; }
static int f_cuDeviceGetAttribute(int* value, int attribute, int device) {
  ENTER(cuDeviceGetAttribute, "%d", attribute);
  const char* d = devices();
  for (; device > 0; --device) d = strchr(d, ',') + 1;
  if (attribute == 16) *value = 3;
  else if (attribute == 75) *value = atoi(d);
  else if (attribute == 76) *value = atoi(strchr(d, '.') + 1);
  else return 1;
  return 0;
}
static int f_cuDevicePrimaryCtxRetain(void** c, int device) { ENTER(cuDevicePrimaryCtxRetain, "%d", device); hold(1); *c = &handles[0]; return 0; }
static int f_cuDevicePrimaryCtxRelease(int device) { hold(-1); ENTER(cuDevicePrimaryCtxRelease, "%d", device); return 0; }
static int f_cuCtxCreate(void** c, unsigned flags, int device) { ENTER(cuCtxCreate, "%u,%d", flags, device); hold(1); *c = current = &handles[0]; return 0; }
static int f_cuCtxDestroy(void* c) { hold(-1); if (current == c) current = 0; ENTER(cuCtxDestroy); return c == &handles[0] ? 0 : 1; }
static int f_cuCtxSetCurrent(void* c) { ENTER(cuCtxSetCurrent); current = c; return c == &handles[0] ? 0 : 1; }
static int f_cuStreamCreate(void** s, unsigned flags) { IN_CONTEXT(cuStreamCreate); ENTER(cuStreamCreate, "%u", flags); hold(1); *s = &handles[1]; return 0; }
static int f_cuStreamDestroy(void* s) { IN_CONTEXT(cuStreamDestroy); hold(-1); ENTER(cuStreamDestroy); return s == &handles[1] ? 0 : 1; }
static int f_cuStreamWaitEvent(void* s, void* e, unsigned flags) { IN_CONTEXT(cuStreamWaitEvent); ENTER(cuStreamWaitEvent, "%u", flags); return s == &handles[1] && *(unsigned long*)e ? 0 : 1; }
static int f_cuStreamSynchronize(void* s) { IN_CONTEXT(cuStreamSynchronize); ENTER(cuStreamSynchronize); return s == &handles[1] ? 0 : 1; }
static int f_cuStreamBeginCapture(void* s, int mode) { IN_CONTEXT(cuStreamBeginCapture); ENTER(cuStreamBeginCapture, "%d", mode); return s == &handles[1] ? 0 : 1; }
static int f_cuStreamEndCapture(void* s, void** g) { IN_CONTEXT(cuStreamEndCapture); ENTER(cuStreamEndCapture); hold(1); *g = &handles[4]; return s == &handles[1] ? 0 : 1; }
static int f_cuGraphInstantiateWithFlags(void** e, void* g, unsigned long long flags) { IN_CONTEXT(cuGraphInstantiateWithFlags); ENTER(cuGraphInstantiateWithFlags, "%llu", flags); hold(1); *e = &handles[5]; return g == &handles[4] ? 0 : 1; }
static int f_cuGraphLaunch(void* e, void* s) { IN_CONTEXT(cuGraphLaunch); ENTER(cuGraphLaunch); return e == &handles[5] && s == &handles[1] ? 0 : 1; }
static int f_cuGraphDestroy(void* g) { IN_CONTEXT(cuGraphDestroy); hold(-1); ENTER(cuGraphDestroy); return g == &handles[4] ? 0 : 1; }
static int f_cuGraphExecDestroy(void* e) { IN_CONTEXT(cuGraphExecDestroy); hold(-1); ENTER(cuGraphExecDestroy); return e == &handles[5] ? 0 : 1; }
static int waited;  /* for an event, since one was asked for */
static int f_cuEventCreate(void** e, unsigned flags) { IN_CONTEXT(cuEventCreate); (void)flags; ENTER(cuEventCreate); hold(1); *e = malloc(8); return 0; }
static int f_cuEventDestroy(void* e) { IN_CONTEXT(cuEventDestroy); hold(-1); free(e); ENTER(cuEventDestroy); return 0; }
static int f_cuEventRecord(void* e, void* s) { IN_CONTEXT(cuEventRecord); ENTER(cuEventRecord); *(unsigned long*)e = ++events; return s == &handles[1] ? 0 : 1; }
static int f_cuEventSynchronize(void* e) { IN_CONTEXT(cuEventSynchronize); (void)e; waited = 1; ENTER(cuEventSynchronize); return 0; }
static int f_cuEventElapsedTime(float* ms, void* a, void* b) { IN_CONTEXT(cuEventElapsedTime);
  ENTER(cuEventElapsedTime);
  if (getenv("RNDN_FAKE_CUDA_LATE") && !waited) return 600;
  waited = 0;
  *ms = (float)(*(unsigned long*)b - *(unsigned long*)a) * 0.25f;
  return 0;
}
static int f_cuMemAlloc(unsigned long long* address, size_t bytes) { IN_CONTEXT(cuMemAlloc); ENTER(cuMemAlloc, "%zu", bytes); hold(1); bytes = (bytes + 255) / 256 * 256; *address = (uintptr_t)memset(aligned_alloc(256, bytes), 0, bytes); return 0; }
static int f_cuMemFree(unsigned long long address) { IN_CONTEXT(cuMemFree); hold(-1); free((void*)(uintptr_t)address); ENTER(cuMemFree); return 0; }
static int f_cuMemHostAlloc(void** memory, size_t bytes, unsigned flags) { IN_CONTEXT(cuMemHostAlloc); ENTER(cuMemHostAlloc, "%zu,%u", bytes, flags); hold(1); *memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096); return 0; }
static int f_cuMemFreeHost(void* memory) { IN_CONTEXT(cuMemFreeHost); hold(-1); free(memory); ENTER(cuMemFreeHost); return 0; }
static int f_cuMemHostGetDevicePointer(unsigned long long* address, void* memory, unsigned flags) { IN_CONTEXT(cuMemHostGetDevicePointer); (void)flags; ENTER(cuMemHostGetDevicePointer); *address = (uintptr_t)memory; return 0; }
static int f_cuMemcpyHtoDAsync(unsigned long long to, const void* from, size_t bytes, void* s) { IN_CONTEXT(cuMemcpyHtoDAsync); (void)s; ENTER(cuMemcpyHtoDAsync, "%zu", bytes); memcpy((void*)(uintptr_t)to, from, bytes); return 0; }
static int f_cuMemcpyDtoHAsync(void* to, unsigned long long from, size_t bytes, void* s) { IN_CONTEXT(cuMemcpyDtoHAsync); (void)s; ENTER(cuMemcpyDtoHAsync, "%zu", bytes); memcpy(to, (void*)(uintptr_t)from, bytes); return 0; }
static int f_cuMemcpyDtoDAsync(unsigned long long to, unsigned long long from, size_t bytes, void* s) { IN_CONTEXT(cuMemcpyDtoDAsync); (void)s; ENTER(cuMemcpyDtoDAsync, "%zu", bytes); memcpy((void*)(uintptr_t)to, (const void*)(uintptr_t)from, bytes); return 0; }
static int f_cuMemsetD8Async(unsigned long long to, unsigned char value, size_t bytes, void* s) { IN_CONTEXT(cuMemsetD8Async); (void)s; ENTER(cuMemsetD8Async, "%zu", bytes); memset((void*)(uintptr_t)to, value, bytes); return 0; }
static int f_cuMemsetD32Async(unsigned long long to, unsigned value, size_t words, void* s) { IN_CONTEXT(cuMemsetD32Async); (void)s; ENTER(cuMemsetD32Async, "%zu", words); for (size_t k = 0; k < words; ++k) ((unsigned*)(uintptr_t)to)[k] = value; return 0; }
static int f_cuModuleLoadData(void** m, const void* image) { IN_CONTEXT(cuModuleLoadData); (void)image; ENTER(cuModuleLoadData); hold(1); *m = &handles[2]; return 0; }
static int f_cuModuleLoadDataEx(void** m, const void* image, unsigned n, int* options, void** values) { IN_CONTEXT(cuModuleLoadDataEx);
  for (unsigned i = 0; i < n; ++i)
    if (options[i] == 5) strcpy(values[i], "ptxas application ptx input, line 3; error");
  ENTER(cuModuleLoadDataEx, "%zu", strlen(image)); hold(1);
  *m = &handles[2];
  return 0;
}
static int f_cuModuleUnload(void* m) { IN_CONTEXT(cuModuleUnload); hold(-1); ENTER(cuModuleUnload); return m == &handles[2] ? 0 : 1; }
static int f_cuModuleGetFunction(void** f, void* m, const char* name) { IN_CONTEXT(cuModuleGetFunction); ENTER(cuModuleGetFunction, "%s", name); *f = &handles[3]; return m == &handles[2] ? 0 : 1; }
static int f_cuFuncGetAttribute(int* value, int attribute, void* f) { IN_CONTEXT(cuFuncGetAttribute); (void)f; ENTER(cuFuncGetAttribute, "%d", attribute); *value = attribute == 4 ? 32 : attribute == 0 ? 1024 : 0; return 0; }
static int f_cuFuncSetAttribute(void* f, int attribute, int value) { IN_CONTEXT(cuFuncSetAttribute); (void)f; ENTER(cuFuncSetAttribute, "%d,%d", attribute, value); return 0; }
static int f_cuOccupancyMaxActiveBlocksPerMultiprocessor(int* n, void* f, int block, size_t shared) { IN_CONTEXT(cuOccupancyMaxActiveBlocksPerMultiprocessor); (void)f; ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessor, "%d,%zu", block, shared); *n = 8; return 0; }
static int f_cuLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void* s, void** parameters, void** extra) { IN_CONTEXT(cuLaunchKernel);
  (void)f; (void)s; (void)parameters;
  size_t bytes = 0;
  if (extra && extra[0] == (void*)1 && extra[2] == (void*)2) memcpy(&bytes, extra[3], sizeof bytes);
  ENTER(cuLaunchKernel, "%u,%u,%u/%u,%u,%u/%u/%zu", gx, gy, gz, bx, by, bz, shared, bytes);
  return 0;
}

static const struct { const char* name; void* function; } table[] = {
#define DRIVER_FUNCTION(name, ...) {#name, (void*)f_##name},
#include "runtime/cuda/driver_functions.def"
#undef DRIVER_FUNCTION
};

int cuGetProcAddress_v2(const char* name, void** function, int version, uint64_t flags, int* status) {
  (void)version; (void)flags;
  const char* missing = getenv("RNDN_FAKE_CUDA_MISSING");
  *function = 0;
  *status = 1;
  if (missing && strcmp(missing, name) == 0) return 500;
  for (size_t i = 0; i < sizeof table / sizeof *table; ++i)
    if (strcmp(table[i].name, name) == 0) {
      *function = table[i].function;
      *status = 0;
      return 0;
    }
  return 500;
}
