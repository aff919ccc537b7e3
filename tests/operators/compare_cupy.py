#!/usr/bin/env python3
"""The operators' work by CuPy, on the columns that compare_operators has written:

    compare_operators ROWS SET_ROWS FOLDER && tests/operators/compare_cupy.py FOLDER

Lines as bench_operators prints them, and behind them the functions that did the work: ms (median of 5 after two warm-ups, lowest, highest), million rows per
second. Every result is checked for its size. Needs numpy and CuPy.
"""
import os
import sys

import cupy
import numpy


def measure(name, rows, by, body, size):
    from_, to = cupy.cuda.Event(), cupy.cuda.Event()
    ms = []
    for k in range(7):
        cupy.cuda.Device().synchronize()
        from_.record()
        result = body()
        to.record()
        to.synchronize()
        if k >= 2:
            ms.append(cupy.cuda.get_elapsed_time(from_, to))
        if k == 6 and result.size != size:
            sys.exit(f"{name}: {result.size} results and not {size}")
        del result
    ms.sort()
    print(f"{name:<34} {rows:11} {ms[2]:10.4f} {ms[0]:10.4f} {ms[-1]:10.4f} {rows / ms[2] / 1e3:10.1f}  {by}", flush=True)
    cupy.get_default_memory_pool().free_all_blocks()


def join(left, right):
    """Pairs of rows, where the left side's keys are unique."""
    order = cupy.argsort(left)
    keys = left[order]
    place = cupy.minimum(cupy.searchsorted(keys, right), left.size - 1)
    rows = cupy.nonzero(keys[place] == right)[0]
    return order[place[rows]], rows


def join_ascending(left, right):
    place = cupy.minimum(cupy.searchsorted(left, right), left.size - 1)
    rows = cupy.nonzero(left[place] == right)[0]
    return place[rows], rows


def aggregate(keys, values):
    groups, which, sizes = cupy.unique(keys, return_inverse=True, return_counts=True)
    return groups, sizes, cupy.bincount(which, weights=values, minlength=groups.size)


def main():
    if len(sys.argv) != 2:
        print("usage: compare_cupy.py FOLDER", file=sys.stderr)
        return 2
    folder = sys.argv[1]

    def column(name, kind):
        return cupy.asarray(numpy.fromfile(os.path.join(folder, name + ".bin"), dtype=kind))

    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"CuPy {cupy.__version__} on {device}")
    for kind in ("dense", "sparse"):
        left, right = column(f"join_{kind}_left", numpy.int64), column(f"join_{kind}_right", numpy.int64)
        measure(f"join {kind} i64", right.size, "CuPy: argsort, searchsorted", lambda: join(left, right)[0], right.size)
        del left, right
    names = [n for n in os.listdir(folder) if n.startswith("aggregate_keys_")]
    for groups in sorted(int(n[len("aggregate_keys_"):-len(".bin")]) for n in names):
        keys, values = column(f"aggregate_keys_{groups}", numpy.int32), column("aggregate_values", numpy.float64)
        expected = cupy.unique(keys).size
        measure(f"aggregate into {groups}", keys.size, "CuPy: unique, bincount", lambda: aggregate(keys, values)[0], expected)
        del keys, values
    left, right = column("set_left", numpy.int64), column("set_right", numpy.int64)
    n = left.size
    measure("intersection, sorted", n, "CuPy: intersect1d", lambda: cupy.intersect1d(left, right, assume_unique=True), (n + 1) // 2)
    measure("difference, sorted", n, "CuPy: setdiff1d", lambda: cupy.setdiff1d(left, right, assume_unique=True), n // 2)
    measure("union, sorted", n, "CuPy: union1d", lambda: cupy.union1d(left, right), n + n // 2)
    measure("join, sorted", n, "CuPy: searchsorted", lambda: join_ascending(left, right)[0], (n + 1) // 2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
