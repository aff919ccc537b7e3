#!/usr/bin/env python3
"""memory.py that is ended leaves no folder of tables without a difference, keeps those with one, and judges no share of the queries."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

# Stands for rndn: gives one answer, by no ranges, but another one with little memory where it is told so; the third query does not end.
FAKE = """#!/bin/sh
test "$2" = "select 1" && exit 0
little=no
for word; do test "$word" = --device-memory && little=yes; done
test $little = no && echo >> "$FOLDER/asked"
test "$(wc -l < "$FOLDER/asked")" = 3 && echo > "$FOLDER/lasts" && exec sleep 60
test $little = yes && test -n "$DIFFERS" && echo $DIFFERS
echo answer
"""
# With tables of few rows, which take less time to write.
SHORT = """import sys
sys.path.insert(0, sys.argv.pop(1))
import memory, random_sql
memory.LongTable = lambda r, name, is_typed: random_sql.Table(r, name, is_typed=is_typed)
sys.exit(memory.main())"""

try:
    import duckdb
except ImportError:
    print("skipped: this Python has no module duckdb")
    sys.exit(77)
assert duckdb

for differs in (False, True):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        fake, tables, kept = folder / "fake", folder / "tables", folder / "kept"
        fake.write_text(FAKE)
        fake.chmod(0o755)
        tables.mkdir()
        run = subprocess.Popen([sys.executable, "-c", SHORT, pathlib.Path(__file__).parent, fake, "--schemas", "1", "--keep", kept], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               env={**os.environ, "TMPDIR": str(tables), "FOLDER": name, "DIFFERS": "another" if differs else ""})
        for _ in range(3000):
            if (folder / "lasts").exists() or run.poll() is not None:
                break
            time.sleep(0.01)
        run.send_signal(signal.SIGTERM)
        said, _ = run.communicate(timeout=30)
        assert "ended before the last query" in said, said
        assert "too few ran by ranges" not in said, said
        assert run.returncode == differs, f"{run.returncode}: {said}"
        left = [f.name for f in tables.iterdir()]
        if differs:
            assert len(left) == 1 and (kept / left[0]).is_dir(), f"{left}: {said}"
        else:
            assert not left and not kept.exists(), f"{left}: {said}"
