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


# Runs the tool with a signal where it hurts: as the first process is made, or as the table is read.
PATCHED = """
import builtins, os, pathlib, runpy, signal, subprocess, sys
sys.argv.pop(0)
where, folder = sys.argv[1], pathlib.Path(sys.argv[sys.argv.index("--folder") + 1])
del sys.argv[1]
popen, opened = subprocess.Popen, builtins.open
def start(*arguments, **more):
    run = popen(*arguments, **more)
    if where == "start" and not (folder / "started.pid").exists():
        (folder / "started.pid").write_text(str(run.pid))
        os.kill(os.getpid(), signal.SIGTERM)
    return run
def look(name, mode="r", *arguments, **more):
    if where == "table" and mode == "r" and str(name).endswith("rest.log"):
        os.kill(os.getpid(), signal.SIGALRM)
    return opened(name, mode, *arguments, **more)
subprocess.Popen, builtins.open = start, look
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def start_patched(folder, where, **environment):
    command = [sys.executable, "-c", PATCHED, ROOT / "tools/prove-faults", where, "--jobs", "2", "--folder", folder, "--test", folder / "fake"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment})


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
    check("SIGTERM as a process is made", start_patched(folder, "start"), 3, kept)
    assert not os.path.exists(f"/proc/{(folder / 'started.pid').read_text()}"), "a process that was being made goes on"
    check("a signal behind the table", start_patched(folder, "table", ENDS="1"), 0, "whole table")
