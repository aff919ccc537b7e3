#!/usr/bin/env python3
"""What jit.c does, from Python and with nothing but its standard library.

usage: examples/jit.py [build/lib/librndn_assembler.so] [--assemble-only]
"""
import ctypes
import os
import sys
import time
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p

LIBRARY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../build/lib/librndn_assembler.so")
SAXPY = b"""
.version 7.0
.target sm_60
.address_size 64
.visible .entry saxpy(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n) {
  .reg .pred %p;
  .reg .b32 %r<5>;
  .reg .b64 %rd<4>;
  .reg .f32 %f<4>;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r1, %r1, %r2, %r3;
  ld.param.u32 %r4, [n];
  setp.ge.u32 %p, %r1, %r4;
  @%p ret;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  ld.param.f32 %f1, [a];
  mul.wide.u32 %rd3, %r1, 4;
  add.u64 %rd1, %rd1, %rd3;
  add.u64 %rd2, %rd2, %rd3;
  ld.global.f32 %f2, [%rd1];
  ld.global.f32 %f3, [%rd2];
  fma.rn.f32 %f3, %f1, %f2, %f3;
  st.global.f32 [%rd2], %f3;
  ret;
}
"""
NO_DEVICE = 100


class Options(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("target", c_char_p), ("level", c_int), ("max_registers", c_uint), ("line_tables", c_int),
                ("verify_passes", c_int), ("no_fmad", c_int), ("threads", c_uint)]


class Kernel(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("registers", c_uint), ("instructions", c_uint), ("spill_bytes", c_uint), ("shared_bytes", c_uint)]


def load_assembler(path):
    library = ctypes.CDLL(path)
    for name, result, *parameters in [("assemble", c_int, c_char_p, c_size_t, c_char_p, c_void_p, c_void_p, c_void_p), ("cubin", c_void_p, c_void_p),
                                      ("cubin_size", c_size_t, c_void_p), ("diagnostics", c_char_p, c_void_p), ("result_free", None, c_void_p),
                                      ("kernel_at", ctypes.POINTER(Kernel), c_void_p, c_size_t), ("target_of_capability", c_char_p, c_int, c_int)]:
        function = getattr(library, "rndn_assembler_" + name)
        function.restype, function.argtypes = result, parameters
    return library


def assemble(library, target):
    """The cubin, as bytes; what it is and what it took goes to standard output."""
    options, result = Options(size=ctypes.sizeof(Options), target=target), c_void_p()
    begin = time.perf_counter()
    status = library.rndn_assembler_assemble(SAXPY, len(SAXPY), b"saxpy.ptx", byref(options), None, byref(result))
    us = (time.perf_counter() - begin) * 1e6
    sys.stderr.write(library.rndn_assembler_diagnostics(result).decode())
    if status:
        sys.exit(status)
    kernel = library.rndn_assembler_kernel_at(result, 0).contents
    cubin = ctypes.string_at(library.rndn_assembler_cubin(result), library.rndn_assembler_cubin_size(result))
    print(f"{kernel.name.decode()} for {target.decode()}: assembled in {us:.0f} us; {kernel.registers} registers, {kernel.instructions} instructions, "
          f"a cubin of {len(cubin)} bytes")
    library.rndn_assembler_result_free(result)
    return cubin


def run(cuda, library):
    def call(name, *arguments):
        if error := getattr(cuda, name)(*arguments):
            sys.exit(f"error: {name} failed: CUDA error {error}")

    device, major, minor = c_int(), c_int(), c_int()
    call("cuDeviceGet", byref(device), 0)
    call("cuDeviceGetAttribute", byref(major), 75, device)
    call("cuDeviceGetAttribute", byref(minor), 76, device)
    target = library.rndn_assembler_target_of_capability(major, minor)
    if not target:
        sys.exit(f"no GPU: no code can be made for compute capability {major.value}.{minor.value}")
    cubin = assemble(library, target)
    context, module, function, n = c_void_p(), c_void_p(), c_void_p(), 1000000
    call("cuDevicePrimaryCtxRetain", byref(context), device)
    call("cuCtxSetCurrent", context)
    x, y = ((ctypes.c_float * n)(*(i % period for i in range(n))) for period in (1000, 777))
    memory = [c_uint64(), c_uint64()]
    for to, values in zip(memory, (x, y)):
        call("cuMemAlloc_v2", byref(to), c_size_t(4 * n))
        call("cuMemcpyHtoD_v2", to, values, c_size_t(4 * n))
    values = [*memory, ctypes.c_float(3), c_uint(n)]
    parameters = (c_void_p * 4)(*(ctypes.addressof(v) for v in values))
    begin = time.perf_counter()
    call("cuModuleLoadData", byref(module), cubin)
    call("cuModuleGetFunction", byref(function), module, b"saxpy")
    loaded = time.perf_counter()
    call("cuLaunchKernel", function, (n + 255) // 256, 1, 1, 256, 1, 1, 0, None, parameters, None)
    call("cuCtxSynchronize")
    done = time.perf_counter()
    call("cuMemcpyDtoH_v2", y, memory[1], c_size_t(4 * n))
    if wrong := [i for i in range(n) if y[i] != 3 * x[i] + i % 777]:
        sys.exit(f"error: y[{wrong[0]}] is {y[wrong[0]]}")
    print(f"loaded in {(loaded - begin) * 1e6:.0f} us, ran in {(done - loaded) * 1e6:.0f} us; all {n} elements are right")


def main():
    paths = [a for a in sys.argv[1:] if a != "--assemble-only"]
    library = load_assembler(paths[0] if paths else LIBRARY)
    if "--assemble-only" in sys.argv:
        assemble(library, b"sm_90")
        return
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
        why = "cuInit says CUDA_ERROR_NO_DEVICE" if cuda.cuInit(0) == NO_DEVICE else None
    except OSError as error:
        why = error
    if why:
        print(f"no GPU: {why}", file=sys.stderr)
        assemble(library, b"sm_90")
        sys.exit(3)
    run(cuda, library)


main()
