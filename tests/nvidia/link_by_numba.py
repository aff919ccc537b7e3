#!/usr/bin/env python3
"""numba-cuda compiles kernels and links them by libnvJitLink, which is ours; no GPU is needed.

usage: link_by_numba.py LIB_FOLDER RNDN_DIS   (LD_LIBRARY_PATH=LIB_FOLDER)

Run by the Python that $RNDN_NUMBA_PYTHON names, which has numba-cuda, cuda-bindings and nvidia-cuda-nvcc-cu12 (slow test `nvidia.numba_cuda`). Exit code 77 where they
are not there.
"""
import math
import os
import subprocess
import sys

try:
    from numba import cuda, float32, float64, int32, int64
    from numba.cuda.cudadrv.driver import _Linker
except ImportError as missing:
    print("skipped:", missing)
    sys.exit(77)


def add(x, y, to):
    i = cuda.grid(1)
    if i < to.size:
        to[i] = x[i] + y[i]


def total(x, y, to):
    held = cuda.shared.array(256, float64)
    t = cuda.threadIdx.x
    held[t] = x[cuda.grid(1)] * y[t]
    cuda.syncthreads()
    step = 128
    while step:
        if t < step:
            held[t] += held[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        cuda.atomic.add(to, 0, held[0])


def functions(x, y, to):
    i = cuda.grid(1)
    to[i] = math.sin(x[i]) + math.pow(y[i], 1.5) + cuda.shfl_xor_sync(0xFFFFFFFF, x[i], 1)


linked = 0
for major, minor in ((7, 5), (8, 6), (9, 0)):
    for kernel, types in ((add, (float32, float64, int32, int64)), (total, (float32, float64)), (functions, (float32, float64))):
        for element in types:
            ptx, _ = cuda.compile_ptx(kernel, (element[::1],) * 3, cc=(major, minor))
            linker = _Linker(cc=(major, minor))
            linker.add_ptx(ptx.encode())
            cubin = bytes(linker.complete().code)
            text = subprocess.run([sys.argv[2], "-"], input=cubin, capture_output=True, check=True).stdout.decode()
            assert kernel.__name__ in text and "EXIT" in text, text[:300]
            linked += 1
with open("/proc/self/maps") as maps:
    libraries = {line.split()[-1] for line in maps if "nvJitLink" in line or "librndn_nvidia" in line}
ours = os.path.realpath(os.path.join(sys.argv[1], "libnvJitLink.so.12"))
assert libraries and {os.path.realpath(path) for path in libraries} == {ours}, (libraries, ours)
print(linked, "kernels of numba-cuda linked")
