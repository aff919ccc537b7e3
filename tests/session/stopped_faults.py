#!/usr/bin/env python3
"""tools/prove-faults that is stopped, or of which a process fails, makes the table of what was tried, and its processes end."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Stands for test_session: the share 0/2 of a run that lasts begins and does not end, 1/2 is at its end or, where it is told so, failed.
FAKE = """#!/bin/sh
test -n "$RNDN_PROVE_KEPT" && echo "table of $RNDN_PROVE_FOLDER" && exit 0
test -z "$RNDN_PROVE_SHARD" && echo "whole table" && exit 0
test $RNDN_PROVE_SHARD = 1/2 && exit ${FAILS:-0}
test -n "$ENDS" && exit 0
echo $$ > "$RNDN_PROVE_FOLDER.pid"
exec sleep 60
"""


def start(folder, *more, **environment):
    command = [ROOT / "tools/prove-faults", "--jobs", "2", "--folder", folder, "--test", folder / "fake", *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment})


def check(what, run, status, said):
    out, err = run.communicate(timeout=30)
    assert run.returncode == status and out.strip() == said, f"{what}: {run.returncode}, {out}{err}"


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    fake = folder / "fake"
    fake.write_text(FAKE)
    fake.chmod(0o755)
    kept, pid = f"table of {folder}/outcomes", folder / "outcomes.pid"
    for what, way in (("SIGTERM", signal.SIGTERM), ("SIGINT", signal.SIGINT), ("--limit", None)):
        run = start(folder, *([] if way else ["--limit", "1"]))
        for _ in range(1000):
            if pid.exists() and pid.read_text().endswith("\n"):
                break
            time.sleep(0.01)
        if way:
            run.send_signal(way)
        check(what, run, 3, kept)
        assert not os.path.exists(f"/proc/{pid.read_text().strip()}"), f"{what}: a process goes on"
        pid.unlink()
    check("a share that failed", start(folder, ENDS="1", FAILS="1"), 1, kept)
    check("to the end", start(folder, ENDS="1"), 0, "whole table")
    check("a share alone", start(folder, "--shard", "0/2", "--limit", "1"), 3, "")
