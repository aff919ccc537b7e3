"""Large results in files: they are written from the columns that the run has left, a piece at a time."""

import os
import pathlib
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

RNDN = pathlib.Path(os.environ["RNDN_BUILD"]) / "bin" / "rndn"


def peak(folder, rows, kind):
    """The most memory that a process has had which writes so many rows, in bytes."""
    numbers = range(rows)
    table = pa.table({"i": numbers, "x": pa.array(numbers, pa.float64()), "s": [f"text {n % 1000}" for n in numbers]})
    parquet.write_table(table, folder / "t.parquet")
    out = folder / f"out.{kind}"
    query = ["sql", f"SELECT * FROM '{folder}/t.parquet'", "--device", "cpu", "--no-cache"]
    # What a process has had counts for its children, too: a small one comes between.
    small = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
             "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
    ran = subprocess.run([sys.executable, "-c", small, RNDN, *query, "--format", kind, "-o", out],
                         capture_output=True, text=True, check=True)
    return int(ran.stdout) * 1024


# Arrow's rows have 26 bytes. They are there once, and what was decoded to make them; a second copy of all of
# them on the way to the file would be 26 more. DuckDB's writer of Parquet has some row groups beside them.
@pytest.mark.parametrize("kind, most", [("arrow", 52), ("parquet", 130)])
def test_memory_is_that_of_the_columns(tmp_path, kind, most):
    few, many = peak(tmp_path, 200_000, kind), peak(tmp_path, 1_200_000, kind)
    assert (many - few) / 1_000_000 < most, (few, many)
