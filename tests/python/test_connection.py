"""Connections, results and errors."""

import datetime
import decimal
import gc
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading

import numpy
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet
import pytest

import rndn

TABLE = {"k": ["a", "b", "a"], "x": [1, 2, 3], "d": [datetime.date(2024, 2, 29)] * 3}


@pytest.fixture(scope="module")
def db():
    return rndn.connect("sim", arch="sm_90").register("t", pa.table(TABLE))


@pytest.mark.parametrize("make", [pandas.DataFrame, polars.DataFrame, pa.table])
def test_data_frames_are_tables(make):
    db = rndn.connect("cpu").register("t", make({"k": TABLE["k"], "x": TABLE["x"]}))
    got = db.sql("SELECT k, sum(x) FROM t GROUP BY k ORDER BY k").fetchall()
    assert got == [("a", 4), ("b", 2)]


def test_results_are_tables_of_every_library(db):
    result = db.sql("SELECT k, x, d, x * 1.25 AS m FROM t ORDER BY x")
    assert result.columns == ["k", "x", "d", "m"]
    assert result.types[:3] == ["VARCHAR", "BIGINT", "DATE"]
    day = datetime.date(2024, 2, 29)
    rows = [("a", 1, day, decimal.Decimal("1.25")), ("b", 2, day, decimal.Decimal("2.50")),
            ("a", 3, day, decimal.Decimal("3.75"))]
    assert result.fetchall() == rows
    assert [tuple(r.values()) for r in result.arrow().to_pylist()] == rows
    assert result.pl().rows() == rows
    assert list(result.df()["x"]) == [1, 2, 3]
    again = rndn.connect("cpu").register("r", db.sql("SELECT k, x FROM t"))
    assert again.sql("SELECT count(*) FROM r").fetchone() == (3,)


def test_memory_of_the_device_is_limited():
    table = pa.table({"g": [i % 7 for i in range(300_000)], "x": list(range(300_000))})
    query = "SELECT g, sum(x) FROM t GROUP BY g ORDER BY g"
    free = rndn.connect("sim").register("t", table).sql(query).fetchall()
    assert rndn.connect("sim", device_memory="2M").register("t", table).sql(query).fetchall() == free
    with pytest.raises(rndn.Error, match="not `2X`"):
        rndn.connect("sim", device_memory="2X")


def test_nulls_of_results(db):
    result = db.sql("SELECT x, CASE WHEN x > 1 THEN k END AS c FROM t ORDER BY x")
    assert result.fetchall() == [(1, None), (2, "b"), (3, "a")]
    assert result.arrow()["c"].null_count == 1
    assert "NULL" in repr(result) and "<i>NULL</i>" in result._repr_html_()
    assert db.sql("SELECT sum(x) FROM t WHERE x > 9").fetchall() == [(None,)]


def test_results_are_readable(db):
    result = db.sql("SELECT k, x FROM t ORDER BY x")
    assert repr(result).splitlines()[0].split() == ["k", "x"]
    assert repr(result).endswith("(3 rows)")
    many = rndn.connect("cpu").register("m", pa.table({"i": range(100)})).table("m")
    assert repr(many).endswith("(100 rows, the first 40 shown)")
    assert "<th>k<br>" in result._repr_html_()
    assert {"compile", "execute"} <= result.timing.report.keys()
    assert "planner" in repr(result.timing) and "<html" in result.timing.html()


def test_columns_are_arrays_of_every_library(db):
    result = db.sql("SELECT x, CAST(x AS SMALLINT) AS s, x / 2 AS h, x > 1 AS b, d, k, "
                    "CASE WHEN x > 1 THEN x END AS n FROM t ORDER BY x")
    for name, type, values in [("x", "int64", [1, 2, 3]), ("s", "int16", [1, 2, 3]),
                               ("h", "float64", [0.5, 1, 1.5]), ("b", "bool", [0, 1, 1]),
                               ("d", "int32", [19782] * 3)]:
        array = numpy.from_dlpack(result.array(name))
        assert (array.dtype.name, array.tolist()) == (type, values)
        assert not array.flags.writeable
    first, second = (numpy.from_dlpack(result.array("x")) for _ in range(2))
    assert first.ctypes.data == second.ctypes.data, "nothing is copied"
    del result, second
    assert first.tolist() == [1, 2, 3], "the array keeps its memory"
    result = db.sql("SELECT k, 1 AS a, 2 AS a, NULL AS n FROM t")
    for name, why in [("k", "no array of numbers"), ("n", "NULLs"), ("a", "several"),
                      ("z", "no column")]:
        with pytest.raises(rndn.Error, match=why):
            result.array(name)


def test_views_rows_and_other_statements(tmp_path):
    db = rndn.connect("cpu")
    db.sql("CREATE TABLE made AS SELECT 1 AS a; INSERT INTO made VALUES (2)")
    db.sql("CREATE VIEW v AS SELECT sum(a) AS s FROM made")
    db.register("other", pa.table({"x": [5]}))
    assert db.sql("SELECT s + x FROM v, other").fetchall() == [(8,)], "what was made has stayed"
    assert sorted(db.tables()) == ["made", "other", "v"]
    assert db.sql("DESCRIBE v").fetchall() == [("s", "HUGEINT", "")]
    assert any("module query" in row[0] for row in db.sql("EXPLAIN SELECT s FROM v").fetchall())
    assert ("-- run",) in db.sql("EXPLAIN ANALYZE SELECT s FROM v").fetchall()
    db.register("made", pa.table({"a": [10]}))
    assert db.table("v").fetchall() == [(10,)], "a table that is registered takes the place"
    with pytest.raises(rndn.Error, match="`DELETE` is not supported"):
        db.sql("DELETE FROM made")


def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("device", ["cpu", "sim"])
def test_memory_is_given_back(device):
    table = pa.table({"x": range(100_000), "k": [str(i % 100) for i in range(100_000)]})

    def use():
        db = rndn.connect(device).register("t", table)
        result = db.sql("SELECT k, sum(x) AS s FROM t GROUP BY k ORDER BY k")
        assert len(result.arrow()) == 100

    for _ in range(8):
        use()
    # A table that stays would be 1.5 MB each time, a connection without one 0.3, in every batch; one
    # batch may also meet an allocator that takes a new piece of memory.
    grown = []
    while len(grown) < 3 and (not grown or grown[-1] >= 6e6):
        before = resident()
        for _ in range(20):
            use()
        gc.collect()
        grown.append(resident() - before)
    assert min(grown) < 6e6, grown


def test_connections_do_not_wait_for_each_other():
    barrier, got = threading.Barrier(4), []

    def use(i):
        db = rndn.connect("cpu").register("t", pa.table({"x": [i, i]}))
        barrier.wait(timeout=60)
        for _ in range(5):
            got.append(db.sql("SELECT sum(x) FROM t").fetchone()[0] == 2 * i)

    threads = [threading.Thread(target=use, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 20 and all(got)


def test_parameters_are_values(db):
    assert db.sql("SELECT x FROM t WHERE k = ? AND x > ?", ["a", 1]).fetchall() == [(3,)]
    assert db.sql("SELECT x FROM t WHERE k = $k", {"k": "b"}).fetchall() == [(2,)]
    tricky = "'; DROP TABLE t; --"
    assert db.sql("SELECT $1 AS q, '?' AS p -- ?\n", [tricky]).fetchall() == [(tricky, "?")]
    for values, why in [([], "no value"), ([1, 2], "no place"), ([object()], "no literal")]:
        with pytest.raises(rndn.Error, match=why) as error:
            db.sql("SELECT x FROM t WHERE x = ?", values)
        assert error.value.fault == "usage"


def test_errors_have_their_caret(db):
    with pytest.raises(rndn.Error) as error:
        db.sql("SELECT y FROM t")
    assert str(error.value).startswith("<sql>:1:8: error:") and "^" in str(error.value)
    assert error.value.fault == "input"
    with pytest.raises(rndn.Error, match="a device is auto"):
        rndn.connect("gpu")
    with pytest.raises(rndn.Error, match="unknown target `sm_1`"):
        rndn.connect("sim", arch="sm_1")
    with pytest.raises(rndn.Error, match="no statement"):
        db.sql("  ")


def test_files_are_tables(tmp_path):
    pa.parquet.write_table(pa.table(TABLE), tmp_path / "p.parquet")
    (tmp_path / "c.csv").write_text("k,y\na,10\nb,20\n")
    db = rndn.connect("cpu").read_parquet(tmp_path / "p.parquet").read_csv(tmp_path / "c.csv", "c")
    assert sorted(db.tables()) == ["c", "p"]
    got = db.sql("SELECT p.k, sum(x * y) FROM p JOIN c ON p.k = c.k GROUP BY 1 ORDER BY 1")
    assert got.fetchall() == [("a", 40), ("b", 40)]
    with pytest.raises(rndn.Error, match="No such file"):
        db.read_parquet(tmp_path / "q.parquet")
    (tmp_path / "bad.parquet").write_bytes(b"nothing")
    with pytest.raises(rndn.Error, match="bad.parquet"):
        db.read_parquet(tmp_path / "bad.parquet")


def test_files_need_no_pyarrow(tmp_path):
    path = tmp_path / "p.parquet"
    pa.parquet.write_table(pa.table(TABLE), path)
    run_python(f"""
        import sys
        sys.modules['pyarrow'] = None
        import rndn
        db = rndn.connect('cpu').read_parquet({str(path)!r})
        assert db.sql('SELECT sum(x) FROM p').fetchall() == [(6,)]
    """)


def test_queries_name_files_and_write_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pa.parquet.write_table(pa.table(TABLE), "p.parquet")
    db = rndn.connect("cpu")
    assert db.sql("SELECT sum(x) FROM 'p.parquet'").fetchone() == (6,)
    assert db.sql("COPY (SELECT k, x FROM 'p.parquet' WHERE x > 1) TO 'q.csv.gz'").fetchall() == []
    assert db.read_csv("q.csv.gz").table("q").fetchall() == [("b", 2), ("a", 3)]
    db.sql("CREATE TABLE made AS SELECT x * 2 AS y FROM 'p.parquet'")
    assert db.sql("SELECT sum(y) FROM made").fetchone() == (12,)
    with pytest.raises(rndn.Error, match="not on this machine"):
        db.sql("SELECT * FROM 's3://b/x.parquet'")


def test_parts_of_files_are_tables(tmp_path):
    table = pa.table({"k": [1, 1, 2], "x": [1.5, 2.5, 4.0], "b": [b"", b"x", b"y"]})
    with pytest.warns(rndn.Warning, match="`b` is BLOB"):
        pa.parquet.write_to_dataset(table, tmp_path / "sales", partition_cols=["k"])
        db = rndn.connect("cpu").read_parquet(tmp_path / "sales")
    assert db.sql("SELECT k, sum(x) FROM sales GROUP BY k ORDER BY k").fetchall() == [
        (1, 4.0), (2, 4.0)]


def test_the_connections_own_data():
    db = rndn.connect("cpu", data="tpch:0.01")
    assert db.sql("SELECT count(*) FROM nation").fetchone() == (25,)
    with pytest.raises(rndn.Error, match="already"):
        db.register("NATION", pa.table(TABLE))


def test_tables_are_replaced_and_forgotten():
    db = rndn.connect("cpu").register("t", pa.table({"x": [1]})).register("T", pa.table({"x": [2]}))
    assert db.table("t").fetchall() == [(2,)]
    db.unregister("t")
    with pytest.raises(rndn.Error, match="there is no table"):
        db.table("t")


# A product of itself whose pairs are compared one by one.
SLOW = "SELECT count(*) FROM n AS a, n AS b WHERE a.x < b.x + 1 AND a.x * 3 > b.x * 2 + a.x"


@pytest.fixture(scope="module", params=["cpu", "sim"])
def numbers(request):
    return rndn.connect(request.param).register("n", pa.table({"x": list(range(60_000))}))


def test_a_query_has_a_limit_of_time(numbers):
    with pytest.raises(rndn.Error, match="the time limit of 0.2 s is over: timeout= sets it") as e:
        numbers.sql(SLOW, timeout=0.2)
    assert e.value.fault == "world"
    assert numbers.sql("SELECT count(*) FROM n").fetchall() == [(60_000,)]
    with pytest.raises(rndn.Error, match="timeout is a number of seconds above 0, not 0"):
        numbers.sql(SLOW, timeout=0)


def test_a_query_has_a_limit_of_memory():
    db = rndn.connect("cpu", max_memory="1M").register("n", pa.table({"x": list(range(200_000))}))
    with pytest.raises(rndn.Error, match="beyond the limit of 1 MiB: max_memory= sets it") as e:
        db.sql("SELECT x + 1 AS y FROM n ORDER BY y DESC")
    assert e.value.fault == "world"
    assert len(db.sql("SELECT x + 1 AS y FROM n ORDER BY y DESC", max_memory="1G")) == 200_000
    with pytest.raises(rndn.Error, match="max_memory is a number of bytes such as 512M or 4G"):
        db.sql("SELECT 1", max_memory="much")


# The planner computes constants, whatever the device, and its library does not stop within one of them: it computes on for seconds.
LONG_CONSTANT = "SELECT count(*) FROM n WHERE x < length(replace(repeat('ab', 15000000), 'a', 'cd'))"
LARGE_CONSTANT = "SELECT count(*) FROM n WHERE x < length(repeat('ab', 300000000))"


@pytest.mark.parametrize("numbers", ["sim"], indirect=True)
def test_long_constants_have_limits_of_time_and_memory(numbers):
    with pytest.raises(rndn.Error, match="beyond the limit of 64 MiB: max_memory= sets it"):
        numbers.sql(LARGE_CONSTANT, max_memory="64M")
    with pytest.raises(rndn.Error, match="the time limit of 0.5 s is over: timeout= sets it"):
        numbers.sql(LONG_CONSTANT, timeout=0.5)
    assert numbers.sql("SELECT count(*) FROM n").fetchall() == [(60_000,)]


@pytest.mark.parametrize("numbers, query", [("cpu", SLOW), ("sim", SLOW), ("cpu", LONG_CONSTANT)], indirect=["numbers"])
def test_ctrl_c_ends_a_query(numbers, query):
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # may be ignored
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            numbers.sql(query, timeout=60)
        timer.join()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert numbers.sql("SELECT count(*) FROM n").fetchall() == [(60_000,)]


def test_threads_share_a_connection(db):
    answers = []
    threads = [threading.Thread(target=lambda i=i: answers.append(
        db.sql("SELECT sum(x) FROM t WHERE x > ?", [i % 3]).fetchone()[0])) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(answers) == sorted([6, 5, 3, 6, 5, 3, 6, 5])


def test_the_compiler(db):
    code = rndn.compile("SELECT sum(x) FROM t WHERE x > 1", "sm_90", db)
    assert "module" in code.hir and ".entry" in code.ptx and ".text." in code.sass
    assert code.cubin.startswith(b"\x7fELF")
    assert rndn.disassemble(code.cubin) == code.sass
    assert rndn.assemble(code.ptx, "sm_90").startswith(b"\x7fELF")
    assert "main" in db.explain("SELECT sum(x) FROM t")
    with pytest.raises(rndn.Error, match="error:"):
        rndn.compile("module m { def main() { x } }", "sm_90")
    with pytest.raises(rndn.Error, match="<ptx>:1"):
        rndn.assemble("nonsense", "sm_90")
    with pytest.raises(rndn.Error):
        rndn.disassemble(b"nonsense")


def run_python(text):
    command = [sys.executable, "-c", textwrap.dedent(text)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


ORDERS = [["rndn", "pyarrow", "duckdb"], ["duckdb", "pyarrow", "rndn"], ["pyarrow", "rndn", "duckdb"]]


# RNDN_EVERY_CASE: all of them, as in the slow test python.every_case.
@pytest.mark.parametrize("order", ORDERS if "RNDN_EVERY_CASE" in os.environ else ORDERS[:1])
def test_orders_of_imports(order):
    run_python(f"""
        import {order[0]}, {order[1]}, {order[2]}
        mine = pyarrow.table({{'x': [1, 2]}})
        db = rndn.connect('cpu').register('t', mine)
        assert db.sql('SELECT sum(x) FROM t').fetchone() == (3,)
        assert duckdb.sql('SELECT sum(x) FROM mine').fetchall() == [(3,)]
        assert pyarrow.table(duckdb.sql('SELECT 1 AS a')).num_rows == 1
        assert db.register('d', duckdb.sql('SELECT 5 AS y')).table('d').fetchall() == [(5,)]
    """)


def test_a_query_is_proven(db):
    query = "SELECT k, sum(x) AS s FROM t GROUP BY k ORDER BY k"
    plain, proven = db.sql(query), db.sql(query, prove=True)
    assert proven.fetchall() == plain.fetchall() == [("a", 4), ("b", 2)]
    assert plain.proof == ""
    lines = proven.proof.splitlines()
    assert all(line.startswith("prove query: ") for line in lines)
    kernels = re.search(r"second path: (\d+) other kernels? of -O0, one per statement", proven.proof)
    assert kernels and int(kernels.group(1)) > 0  # what fused kernels did is done by others
    assert "reference interpreter, over all rows: 2 rows the same" in proven.proof
    assert lines[-1].startswith("prove query: not checked: ")
    with pytest.raises(rndn.Error, match="divi|zero") as e:  # its own error, which all ways have
        db.sql("SELECT sum(x // (x - x)) FROM t", prove=True)
    assert e.value.fault == "input"
    with pytest.raises(rndn.Error, match="which the device cpu is") as e:
        rndn.connect("cpu").sql("SELECT 1", prove=True)
    assert e.value.fault == "usage"
