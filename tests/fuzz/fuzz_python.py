#!/usr/bin/env python3
"""The Python package's functions with arguments of any kind: tests/python/test_random_calls.py from a random seed on, over a build.

    tools/fuzz fuzz_python.py 300 --build build/asan     one with AddressSanitizer, if it is there; else build

A batch whose interpreter dies, or whose test fails, is told by the seed that does so alone.
"""
import os
import subprocess
import sys

from harness import ROOT, Fuzzer

BATCH = 20  # seeds of one interpreter


def main():
    at = sys.argv.index("--build") if "--build" in sys.argv else 0
    build = sys.argv.pop(at + 1) if at else "build"
    if at:
        sys.argv.pop(at)
    fuzz = Fuzzer(__doc__)
    run = [os.path.join(ROOT, "tests", "python", "run"), os.path.join(ROOT, build), "-k", "calls_have_an_answer", "-x"]

    def failure(first, count):
        environment = {**os.environ, "RNDN_RANDOM_FIRST": str(first), "RNDN_RANDOM_SEEDS": str(count)}
        done = subprocess.run(run, env=environment, capture_output=True, check=False)
        if done.returncode == 77:
            raise SystemExit(done.stdout.decode(errors="replace"))
        return done.stdout + done.stderr if done.returncode else None

    while fuzz.goes_on():
        first = fuzz.random.randrange(1 << 30)
        why = failure(first, BATCH)
        fuzz.inputs_run += BATCH
        fuzz.answered += 0 if why else BATCH
        if not why:
            continue
        for seed in range(first, first + BATCH):
            alone = failure(seed, 1)
            if alone:
                fuzz.finding("python", f"RNDN_RANDOM_FIRST={seed} RNDN_RANDOM_SEEDS=1\n", alone[-2000:].decode(errors="replace"))
                break
        else:
            fuzz.finding("python", f"RNDN_RANDOM_FIRST={first} RNDN_RANDOM_SEEDS={BATCH}\n", why[-2000:].decode(errors="replace"))
    fuzz.end()


main()
