// The functions of NVIDIA's PTX compiler library ("PTX Compiler API" of CUDA 13.0), over rndn's
// assembler. NVIDIA ships a static library; this one is shared.
//
// As there: a compiler is made of a text, compiles it once, and has a program and two logs. A size
// is in bytes; that of a log is without the NUL that the log has. Errors are the documented ones.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "assembler/nvidia/compile.h"
#include "assembler/nvidia/nvidia.h"
#include "ptx/parse.h"

using namespace rndn;

struct nvPTXCompiler {
  std::string text;
  bool is_compiled = false;
  nvidia::Compiled made;
};

namespace {

nvPTXCompileResult compile_result_of(nvidia::Status status) {
  switch (status) {
    case nvidia::Status::ok: return NVPTXCOMPILE_SUCCESS;
    case nvidia::Status::bad_option:
    case nvidia::Status::unknown_target: return NVPTXCOMPILE_ERROR_INVALID_INPUT;
    case nvidia::Status::bad_text: return NVPTXCOMPILE_ERROR_COMPILATION_FAILURE;
    case nvidia::Status::unsupported_version: return NVPTXCOMPILE_ERROR_UNSUPPORTED_PTX_VERSION;
    case nvidia::Status::internal: return NVPTXCOMPILE_ERROR_INTERNAL;
    case nvidia::Status::out_of_memory: return NVPTXCOMPILE_ERROR_OUT_OF_MEMORY;
  }
  return NVPTXCOMPILE_ERROR_INTERNAL;
}

// The size of a text, or the text.
nvPTXCompileResult give(const nvPTXCompiler* compiler, std::string nvidia::Compiled::*log, size_t* size, char* text) {
  if (!compiler) return NVPTXCOMPILE_ERROR_INVALID_COMPILER_HANDLE;
  if (!size && !text) return NVPTXCOMPILE_ERROR_INVALID_INPUT;
  const std::string& from = compiler->made.*log;
  if (size) *size = from.size();
  if (text) std::memcpy(text, from.c_str(), from.size() + 1);
  return NVPTXCOMPILE_SUCCESS;
}

}  // namespace

nvPTXCompileResult nvPTXCompilerGetVersion(unsigned int* major, unsigned int* minor) {
  if (!major || !minor) return NVPTXCOMPILE_ERROR_INVALID_INPUT;
  *major = ptx::current_version / 10 + 4;
  *minor = ptx::current_version % 10;
  return NVPTXCOMPILE_SUCCESS;
}

nvPTXCompileResult nvPTXCompilerCreate(nvPTXCompilerHandle* compiler, size_t length, const char* text) {
  if (!compiler || !text) return NVPTXCOMPILE_ERROR_INVALID_INPUT;
  try {
    auto made = std::make_unique<nvPTXCompiler>();
    made->text.assign(text, strnlen(text, length));
    *compiler = made.release();
    return NVPTXCOMPILE_SUCCESS;
  } catch (...) {
    return NVPTXCOMPILE_ERROR_OUT_OF_MEMORY;
  }
}

nvPTXCompileResult nvPTXCompilerDestroy(nvPTXCompilerHandle* compiler) {
  if (!compiler || !*compiler) return NVPTXCOMPILE_ERROR_INVALID_COMPILER_HANDLE;
  delete *compiler;
  *compiler = nullptr;
  return NVPTXCOMPILE_SUCCESS;
}

nvPTXCompileResult nvPTXCompilerCompile(nvPTXCompilerHandle compiler, int count, const char* const* options) {
  if (!compiler) return NVPTXCOMPILE_ERROR_INVALID_COMPILER_HANDLE;
  if (count < 0 || (count > 0 && !options)) return NVPTXCOMPILE_ERROR_INVALID_INPUT;
  try {
    compiler->made = {};
    compiler->is_compiled = false;
    std::vector<std::string> given;
    for (int i = 0; i < count; ++i) {
      if (!options[i]) return NVPTXCOMPILE_ERROR_INVALID_INPUT;
      given.emplace_back(options[i]);
    }
    nvidia::Settings settings;
    nvidia::Compiled& made = compiler->made;
    made.status = nvidia::read_options(given, settings, made.errors);
    if (made.status == nvidia::Status::ok) made = nvidia::compile(compiler->text, "<ptx>", settings);
    compiler->is_compiled = made.status == nvidia::Status::ok;
    return compile_result_of(made.status);
  } catch (...) {
    return NVPTXCOMPILE_ERROR_OUT_OF_MEMORY;
  }
}

nvPTXCompileResult nvPTXCompilerGetCompiledProgramSize(nvPTXCompilerHandle compiler, size_t* size) {
  if (!compiler) return NVPTXCOMPILE_ERROR_INVALID_COMPILER_HANDLE;
  if (!size) return NVPTXCOMPILE_ERROR_INVALID_INPUT;
  if (!compiler->is_compiled) return NVPTXCOMPILE_ERROR_COMPILER_INVOCATION_INCOMPLETE;
  *size = compiler->made.cubin.size();
  return NVPTXCOMPILE_SUCCESS;
}

nvPTXCompileResult nvPTXCompilerGetCompiledProgram(nvPTXCompilerHandle compiler, void* program) {
  if (!compiler) return NVPTXCOMPILE_ERROR_INVALID_COMPILER_HANDLE;
  if (!program) return NVPTXCOMPILE_ERROR_INVALID_INPUT;
  if (!compiler->is_compiled) return NVPTXCOMPILE_ERROR_COMPILER_INVOCATION_INCOMPLETE;
  if (!compiler->made.cubin.empty()) std::memcpy(program, compiler->made.cubin.data(), compiler->made.cubin.size());
  return NVPTXCOMPILE_SUCCESS;
}

nvPTXCompileResult nvPTXCompilerGetErrorLogSize(nvPTXCompilerHandle compiler, size_t* size) {
  return give(compiler, &nvidia::Compiled::errors, size, nullptr);
}
nvPTXCompileResult nvPTXCompilerGetErrorLog(nvPTXCompilerHandle compiler, char* log) {
  return give(compiler, &nvidia::Compiled::errors, nullptr, log);
}
nvPTXCompileResult nvPTXCompilerGetInfoLogSize(nvPTXCompilerHandle compiler, size_t* size) {
  return give(compiler, &nvidia::Compiled::info, size, nullptr);
}
nvPTXCompileResult nvPTXCompilerGetInfoLog(nvPTXCompilerHandle compiler, char* log) {
  return give(compiler, &nvidia::Compiled::info, nullptr, log);
}
