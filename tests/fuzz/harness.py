"""What the fuzzers of this folder share: time, findings, and programs that must neither crash nor hang.

    nice tools/fuzz fuzz_sql.py 300          runs one for 300 s and adds its totals to docs/measurements/fuzz.tsv
    tests/fuzz/fuzz_sql.py 20 --seed 7       the same, without the table

A finding is an input after which the program ended by a signal, said that it has a bug, or did not end.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUGS = (b"internal error", b"this is a bug in rndn", b"Sanitizer", b"runtime error:")


class Fuzzer:
    """`inputs_run` and `findings` so far; `random` decides about everything."""

    def __init__(self, about):
        parser = argparse.ArgumentParser(description=about.split("\n")[0])
        parser.add_argument("seconds", type=float)
        parser.add_argument("--seed", type=int, default=None)
        parser.add_argument("--rndn", default=os.path.join(ROOT, "build", "bin", "rndn"))
        parser.add_argument("--device", default="cpu")
        parser.add_argument("--findings", default=os.path.join(ROOT, "build", "fuzz", "findings"))
        self.options = parser.parse_args()
        seed = self.options.seed
        self.seed = seed if seed is not None else random.SystemRandom().randrange(1 << 32)
        self.random = random.Random(self.seed)
        self.inputs_run = self.findings = self.answered = 0
        self.slow = False  # the last run met a limit of time
        self.begin = time.monotonic()
        self.folder = tempfile.mkdtemp(prefix="rndn-fuzz-")

    def path(self, name):
        return os.path.join(self.folder, name)

    def goes_on(self):
        return time.monotonic() - self.begin < self.options.seconds

    def run(self, arguments, text="", seconds=60):
        """Runs rndn; why that is a finding, or none, and what it wrote."""
        try:
            done = subprocess.run(
                [self.options.rndn, *arguments],
                input=text.encode("utf-8", "surrogateescape"),
                capture_output=True,
                timeout=seconds,
                cwd=self.folder,
                env={**os.environ, "RNDN_CACHE_DIR": self.path("cache")},
            )
        except subprocess.TimeoutExpired:
            return f"no end within {seconds} s", b""
        self.slow = b"the time limit of" in done.stderr
        if done.returncode < 0 or done.returncode not in (0, 1, 2, 3):
            return f"exit code {done.returncode}: {done.stderr[-600:].decode(errors='replace')}", done.stdout
        for words in BUGS:
            if words in done.stderr:
                at = done.stderr.index(words)
                return done.stderr[max(0, at - 200) : at + 600].decode(errors="replace"), done.stdout
        return None, done.stdout

    def finding(self, name, content, why):
        self.findings += 1
        os.makedirs(self.options.findings, exist_ok=True)
        path = os.path.join(self.options.findings, f"{name}-{self.seed}-{self.findings}")
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode("utf-8", "surrogateescape"))
        print(f"FINDING {path}: {why}", flush=True)

    def end(self):
        """The line that tools/fuzz reads; exit code 1 with findings."""
        subprocess.run(["rm", "-rf", self.folder], check=False)
        spent = int(time.monotonic() - self.begin)
        print(
            f"seed {self.seed}: {self.inputs_run} inputs run in {spent} seconds, "
            f"{self.answered} answered, {self.findings} findings"
        )
        sys.exit(1 if self.findings else 0)
