/* A program in C that knows NVIDIA's interfaces from their documentation alone, and calls the library by name:
 *
 *     from_the_documentation LIBRARY ARCH FILE.ptx OUT.ptxcompiler OUT.jitlink
 *
 * Compiles the text with the functions of the PTX compiler and of nvJitLink, and writes both cubins. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct nvPTXCompiler* compiler_handle;
typedef struct nvJitLink* link_handle;

static void* library;
static void* symbol(const char* name) {
  void* found = dlsym(library, name);
  if (!found) {
    fprintf(stderr, "the library has no %s\n", name);
    exit(3);
  }
  return found;
}
static void check(const char* what, int code) {
  if (code == 0) return;
  fprintf(stderr, "%s: %d\n", what, code);
  exit(1);
}
static void write_file(const char* path, const void* data, size_t size) {
  FILE* file = fopen(path, "wb");
  if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0) exit(3);
}

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    return 3;
  }
  FILE* file = fopen(argv[3], "rb");
  if (!file) return 3;
  static char text[1 << 20];
  const size_t length = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  char arch[64];
  snprintf(arch, sizeof arch, "-arch=%s", argv[2]);

  int (*create)(compiler_handle*, size_t, const char*);
  int (*compile)(compiler_handle, int, const char* const*);
  int (*get_size)(compiler_handle, size_t*);
  int (*get)(compiler_handle, void*);
  int (*log_size)(compiler_handle, size_t*);
  int (*log)(compiler_handle, char*);
  int (*destroy)(compiler_handle*);
  *(void**)&create = symbol("nvPTXCompilerCreate");
  *(void**)&compile = symbol("nvPTXCompilerCompile");
  *(void**)&get_size = symbol("nvPTXCompilerGetCompiledProgramSize");
  *(void**)&get = symbol("nvPTXCompilerGetCompiledProgram");
  *(void**)&destroy = symbol("nvPTXCompilerDestroy");
  compiler_handle compiler;
  check("nvPTXCompilerCreate", create(&compiler, length, text));
  const char* options[] = {arch, "--verbose", "-O3"};
  const int code = compile(compiler, 3, options);
  *(void**)&log_size = symbol(code ? "nvPTXCompilerGetErrorLogSize" : "nvPTXCompilerGetInfoLogSize");
  *(void**)&log = symbol(code ? "nvPTXCompilerGetErrorLog" : "nvPTXCompilerGetInfoLog");
  size_t size;
  check("log size", log_size(compiler, &size));
  char* words = malloc(size + 1);
  check("log", log(compiler, words));
  printf("%s", words);
  free(words);
  check("nvPTXCompilerCompile", code);
  check("nvPTXCompilerGetCompiledProgramSize", get_size(compiler, &size));
  char* cubin = malloc(size);
  check("nvPTXCompilerGetCompiledProgram", get(compiler, cubin));
  write_file(argv[4], cubin, size);
  free(cubin);
  check("nvPTXCompilerDestroy", destroy(&compiler));

  int (*start)(link_handle*, uint32_t, const char**);
  int (*add)(link_handle, int, const void*, size_t, const char*);
  int (*complete)(link_handle);
  int (*cubin_size)(link_handle, size_t*);
  int (*get_cubin)(link_handle, void*);
  int (*end)(link_handle*);
  *(void**)&start = symbol("__nvJitLinkCreate_12_4"); /* as a header of release 12.4 has it */
  *(void**)&add = symbol("__nvJitLinkAddData_12_4");
  *(void**)&complete = symbol("nvJitLinkComplete");
  *(void**)&cubin_size = symbol("nvJitLinkGetLinkedCubinSize");
  *(void**)&get_cubin = symbol("nvJitLinkGetLinkedCubin");
  *(void**)&end = symbol("nvJitLinkDestroy");
  link_handle link;
  const char* link_options[] = {arch, "-O3"};
  check("nvJitLinkCreate", start(&link, 2, link_options));
  check("nvJitLinkAddData", add(link, 2, text, length + 1, argv[3]));
  check("nvJitLinkComplete", complete(link));
  check("nvJitLinkGetLinkedCubinSize", cubin_size(link, &size));
  cubin = malloc(size);
  check("nvJitLinkGetLinkedCubin", get_cubin(link, cubin));
  write_file(argv[5], cubin, size);
  free(cubin);
  check("nvJitLinkDestroy", end(&link));
  return 0;
}
