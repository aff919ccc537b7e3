// What assembler/nvidia exports, declared after NVIDIA's documentation (PTX Compiler API and
// nvJitLink of CUDA 13.0). Programs include NVIDIA's own headers; these are for the definitions.
#pragma once
#include <cstddef>
#include <cstdint>

#define RNDN_NVIDIA_EXPORT __attribute__((visibility("default")))

extern "C" {

typedef struct nvPTXCompiler* nvPTXCompilerHandle;
typedef enum {
  NVPTXCOMPILE_SUCCESS = 0,
  NVPTXCOMPILE_ERROR_INVALID_COMPILER_HANDLE = 1,
  NVPTXCOMPILE_ERROR_INVALID_INPUT = 2,
  NVPTXCOMPILE_ERROR_COMPILATION_FAILURE = 3,
  NVPTXCOMPILE_ERROR_INTERNAL = 4,
  NVPTXCOMPILE_ERROR_OUT_OF_MEMORY = 5,
  NVPTXCOMPILE_ERROR_COMPILER_INVOCATION_INCOMPLETE = 6,
  NVPTXCOMPILE_ERROR_UNSUPPORTED_PTX_VERSION = 7
} nvPTXCompileResult;

RNDN_NVIDIA_EXPORT nvPTXCompileResult nvPTXCompilerGetVersion(unsigned int* major, unsigned int* minor);
RNDN_NVIDIA_EXPORT nvPTXCompileResult nvPTXCompilerCreate(nvPTXCompilerHandle* compiler, size_t length,
                                                          const char* text);
RNDN_NVIDIA_EXPORT nvPTXCompileResult nvPTXCompilerDestroy(nvPTXCompilerHandle* compiler);
RNDN_NVIDIA_EXPORT nvPTXCompileResult nvPTXCompilerCompile(nvPTXCompilerHandle compiler, int count,
                                                           const char* const* options);
RNDN_NVIDIA_EXPORT nvPTXCompileResult nvPTXCompilerGetCompiledProgramSize(nvPTXCompilerHandle compiler, size_t* size);
RNDN_NVIDIA_EXPORT nvPTXCompileResult nvPTXCompilerGetCompiledProgram(nvPTXCompilerHandle compiler, void* program);
RNDN_NVIDIA_EXPORT nvPTXCompileResult nvPTXCompilerGetErrorLogSize(nvPTXCompilerHandle compiler, size_t* size);
RNDN_NVIDIA_EXPORT nvPTXCompileResult nvPTXCompilerGetErrorLog(nvPTXCompilerHandle compiler, char* log);
RNDN_NVIDIA_EXPORT nvPTXCompileResult nvPTXCompilerGetInfoLogSize(nvPTXCompilerHandle compiler, size_t* size);
RNDN_NVIDIA_EXPORT nvPTXCompileResult nvPTXCompilerGetInfoLog(nvPTXCompilerHandle compiler, char* log);

typedef struct nvJitLink* nvJitLinkHandle;
typedef enum {
  NVJITLINK_SUCCESS = 0,
  NVJITLINK_ERROR_UNRECOGNIZED_OPTION = 1,
  NVJITLINK_ERROR_MISSING_ARCH = 2,
  NVJITLINK_ERROR_INVALID_INPUT = 3,
  NVJITLINK_ERROR_PTX_COMPILE = 4,
  NVJITLINK_ERROR_NVVM_COMPILE = 5,
  NVJITLINK_ERROR_INTERNAL = 6,
  NVJITLINK_ERROR_THREADPOOL = 7,
  NVJITLINK_ERROR_UNRECOGNIZED_INPUT = 8,
  NVJITLINK_ERROR_FINALIZE = 9,
  NVJITLINK_ERROR_NULL_INPUT = 10,
  NVJITLINK_ERROR_INCOMPATIBLE_OPTIONS = 11,
  NVJITLINK_ERROR_INCORRECT_INPUT_TYPE = 12,
  NVJITLINK_ERROR_UNRECOGNIZED_ARCH = 16,
  NVJITLINK_ERROR_LTO_NOT_ENABLED = 18
} nvJitLinkResult;
typedef enum {
  NVJITLINK_INPUT_NONE = 0,
  NVJITLINK_INPUT_CUBIN = 1,
  NVJITLINK_INPUT_PTX = 2,
  NVJITLINK_INPUT_LTOIR = 3,
  NVJITLINK_INPUT_FATBIN = 4,
  NVJITLINK_INPUT_OBJECT = 5,
  NVJITLINK_INPUT_LIBRARY = 6,
  NVJITLINK_INPUT_INDEX = 7,
  NVJITLINK_INPUT_ANY = 10
} nvJitLinkInputType;

}  // extern "C"

// NVIDIA's header calls the functions by names that end in the release that it is of.
#define NVJITLINK_FUNCTIONS(F)                                                                                   \
  F(Create, (nvJitLinkHandle * handle, uint32_t count, const char** options))                                    \
  F(Destroy, (nvJitLinkHandle * handle))                                                                         \
  F(AddData, (nvJitLinkHandle handle, nvJitLinkInputType type, const void* data, size_t size, const char* name)) \
  F(AddFile, (nvJitLinkHandle handle, nvJitLinkInputType type, const char* name))                                \
  F(Complete, (nvJitLinkHandle handle))                                                                          \
  F(GetLinkedCubinSize, (nvJitLinkHandle handle, size_t * size))                                                 \
  F(GetLinkedCubin, (nvJitLinkHandle handle, void* cubin))                                                       \
  F(GetLinkedPtxSize, (nvJitLinkHandle handle, size_t * size))                                                   \
  F(GetLinkedPtx, (nvJitLinkHandle handle, char* ptx))                                                           \
  F(GetErrorLogSize, (nvJitLinkHandle handle, size_t * size))                                                    \
  F(GetErrorLog, (nvJitLinkHandle handle, char* log))                                                            \
  F(GetInfoLogSize, (nvJitLinkHandle handle, size_t * size))                                                     \
  F(GetInfoLog, (nvJitLinkHandle handle, char* log))                                                             \
  F(Version, (unsigned int* major, unsigned int* minor))
#define NVJITLINK_RELEASES(R) \
  R(12_0) R(12_1) R(12_2) R(12_3) R(12_4) R(12_5) R(12_6) R(12_7) R(12_8) R(12_9) R(13_0) R(13_1) R(13_2) R(13_3)

extern "C" {
#define DECLARE(name, parameters) RNDN_NVIDIA_EXPORT nvJitLinkResult nvJitLink##name parameters;
NVJITLINK_FUNCTIONS(DECLARE)
#undef DECLARE
}
