"""Large results: they are given and written from the columns that the run has left, a batch at a time."""

import os
import pathlib
import subprocess
import sys
import threading

import numpy
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import rndn

RNDN = pathlib.Path(os.environ["RNDN_BUILD"]) / "bin" / "rndn"


FEW, MANY = 200_000, 1_200_000


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Parquet files of so many rows."""
    folder = tmp_path_factory.mktemp("rows")
    texts = pa.array([f"text {n}" for n in range(1000)])
    numbers = pa.array(numpy.arange(MANY))
    table = pa.table({"i": numbers, "x": numbers.cast(pa.float64()), "s": texts.take(pa.array(numpy.arange(MANY) % 1000))})
    for rows in (FEW, MANY):
        parquet.write_table(table[:rows], folder / f"{rows}.parquet")
    return folder


def peak(files, folder, rows, kind):
    """The most memory that a process has had which writes so many rows, in bytes."""
    out = folder / f"out.{kind}"
    query = ["sql", f"SELECT * FROM '{files}/{rows}.parquet'", "--device", "cpu", "--no-cache"]
    # What a process has had counts for its children, too: a small one comes between.
    small = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
             "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
    ran = subprocess.run([sys.executable, "-c", small, RNDN, *query, "--format", kind, "-o", out],
                         capture_output=True, text=True, check=True)
    return int(ran.stdout) * 1024


# Rows have 26 bytes. They are there once, and what was decoded to make them; a second copy of all of them on
# the way to the file would be 26 more, their text 28 or 33.
@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="AddressSanitizer keeps memory that is given back")
@pytest.mark.parametrize("kind, most", [("arrow", 52), ("csv", 52), ("json", 52), ("parquet", 52)])
def test_memory_is_that_of_the_columns(files, tmp_path, kind, most):
    few, many = peak(files, tmp_path, FEW, kind), peak(files, tmp_path, MANY, kind)
    assert (many - few) / (MANY - FEW) < most, (few, many)


ROWS, BATCH = 250_000, 122_880
SIZES = [BATCH, BATCH, ROWS - 2 * BATCH]


@pytest.fixture(scope="module")
def large():
    numbers = pa.array(range(ROWS))
    table = pa.table({"i": numbers, "s": numbers.cast(pa.string()), "b": pa.array([None, True, False] * ROWS)[:ROWS]})
    with rndn.connect("cpu") as db:
        yield db.register("large", table), table


def test_streams_are_read_batch_by_batch(large):
    db, table = large
    result = db.table("large")
    assert [b.num_rows for b in pa.RecordBatchReader.from_stream(result)] == SIZES
    assert result.arrow().equals(table)
    with pa.RecordBatchReader.from_stream(result) as reader:  # who reads one gets one
        batch = reader.read_next_batch()
    assert batch.equals(table[:BATCH].to_batches()[0])
    some = pa.RecordBatchReader.from_stream(result)
    del result
    assert some.read_all().equals(table), "a stream has its rows"
    assert [b.num_rows for b in pa.RecordBatchReader.from_stream(db.sql("SELECT i FROM large WHERE i < 0"))] == [0]


def test_files_have_a_batch_in_each_group(large, tmp_path):
    db, table = large
    db.sql(f"COPY large TO '{tmp_path}/t.parquet'")
    file = parquet.ParquetFile(tmp_path / "t.parquet")
    assert [file.metadata.row_group(g).num_rows for g in range(file.num_row_groups)] == SIZES
    assert file.read().equals(table), "with the rows in their order"
    db.sql(f"COPY large TO '{tmp_path}/t.arrow'")
    with pa.ipc.open_file(tmp_path / "t.arrow") as file:
        assert [file.get_batch(g).num_rows for g in range(file.num_record_batches)] == SIZES
        assert file.read_all().equals(table)


def test_connections_write_at_once(tmp_path):
    """Each its own rows: DuckDB's writer is one for the process."""
    wrong = []

    def write(number):
        with rndn.connect("cpu") as db:
            db.register("t", pa.table({"x": [number] * 20_000}))
            for _ in range(10):
                path = tmp_path / f"{number}.parquet"
                try:
                    db.sql(f"COPY t TO '{path}'")
                    rows = parquet.read_table(path)["x"].unique().to_pylist()
                except Exception as error:
                    rows = error
                if rows != [number]:
                    wrong.append((number, rows))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
