"""Types of delimited text, as DuckDB's read_csv finds them; where they differ, the table says how and why."""

import duckdb
import pyarrow as pa
import pyarrow.parquet
import pytest

import rndn

SAME = [
    ["2024-01-02 03:04:05.678901", "2024-01-02 03:04:06"],
    ["2024-01-02T03:04:05.678", "2024-01-02T03:04:06"],
    ["2024-01-02 03:04:05.678901234", "1969-12-31 23:59:59.999999999"],
    ["2024-01-02T03:04:05Z", "2024-01-02T03:04:06Z"],
    ["2024-01-02T03:04:05.123456Z", "2024-01-02T03:04:06Z"],
    ["2024-01-02 03:04:05+02:00", "2024-01-02 03:04:06-05:30"],
    ["2024-01-02 03:04:05.123456+02", "2024-01-02 03:04:06-0530"],
    ["2024-01-01 00:04:05+02:00", "2024-03-01 00:04:06"],
    ["2024-01-02 03:04:05Z", "2024-01-02 03:04:06.000001"],
    ["2024-01-02 03:04+15:59", "2024-01-02 03:05-15:59"],
    ["2024-01-02 03:04:05 +02:00", "2024-01-02 03:04:06 -05:30"],
    ["2024-01-02 03:04:05z", "2024-01-02 03:04:06z"],
    ["2024-01-02 03:04:60", "2024-01-02 03:04:06"],
    ["infinity", "2024-01-02 03:04:06"],
    ["2024-01-02", "2024-02-29"], ["2024/01/02 03:04:05", "2024/01/02 03:05:01"],
    ["true", "false"], ["TRUE", "False"], ["t", "f"], ["T", "F"], ["yes", "no"], ["true", "f"],
    ["y", "n"], ["0", "1"], ["2", "t"],
    ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12"],
]
# Ours, DuckDB's, why.
OTHERWISE = [
    (["2024-01-02", "2024-01-02 03:05:01.123456"], "TIMESTAMP", "VARCHAR",
     "a day is a time here: midnight"),
    (["true", "1"], "BOOLEAN", "VARCHAR", "1 and 0 are true and false beside words"),
    (["2024/01/02 03:04:05.123456", "2024/01/02 03:05:01"], "VARCHAR", "TIMESTAMP WITH TIME ZONE",
     "nothing says a zone; digits beyond milliseconds are read behind ISO dates"),
    (["2024-01-02 03:04:05+02:00:30", "2024-01-02 03:04:06+02:00"], "VARCHAR",
     "TIMESTAMP WITH TIME ZONE", "offsets have no seconds"),
    (["2024-01-02 03:04:05 UTC", "2024-01-02 03:04:06 UTC"], "VARCHAR", "TIMESTAMP",
     "zones have no names"),
    (["2024-01-02 24:00:00", "2024-01-02 03:04:06"], "VARCHAR", "TIMESTAMP", "a day ends at 23:59"),
    (["2024-1-2 3:4:5", "2024-01-02 03:04:06"], "VARCHAR", "TIMESTAMP", "ISO dates have two digits"),
    (["-0044-01-02 03:04:05", "2024-01-02 03:04:06"], "VARCHAR", "TIMESTAMP",
     "years have four digits"),
]


def found(tmp_path, fields):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "".join(f"{field},{i}\n" for i, field in enumerate(fields)))
    ours = rndn.connect("cpu").read_csv(path).sql("SELECT a, CAST(a AS VARCHAR) AS s FROM t ORDER BY b")
    duck = duckdb.connect()
    duck.sql("SET TimeZone = 'UTC'")
    theirs = duck.sql(f"SELECT a, CAST(a AS VARCHAR) AS s FROM read_csv('{path}') ORDER BY b")
    return ours, theirs


@pytest.mark.parametrize("fields", SAME, ids=lambda f: f[0])
def test_types_are_duckdbs(tmp_path, fields):
    ours, theirs = found(tmp_path, fields)
    assert (ours.types[0], [r[1] for r in ours]) == (str(theirs.types[0]),
                                                     [r[1] for r in theirs.fetchall()])


@pytest.mark.parametrize("fields, our_type, their_type, why", OTHERWISE, ids=lambda f: f[0])
def test_types_that_differ(tmp_path, fields, our_type, their_type, why):
    ours, theirs = found(tmp_path, fields)
    assert (ours.types[0], str(theirs.types[0])) == (our_type, their_type), why


def test_missing_times_and_a_second_run(tmp_path):
    """The second connection finds the columns, and what they are, in the cache."""
    path = tmp_path / "t.csv"
    path.write_text("a,z,b\n2024-01-02 03:04:05.678901,2024-01-02T03:04:05Z,t\n,,\n")
    for _ in range(2):
        result = rndn.connect("cpu").read_csv(path).table("t")
        assert result.types == ["TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "BOOLEAN"]
        assert [str(v) for v in result.fetchone()] == [
            "2024-01-02 03:04:05.678901", "2024-01-02 03:04:05+00:00", "True"]
        assert result.fetchone() == (None, None, None)
        got = rndn.connect("sim").read_csv(path).sql(
            "SELECT a + INTERVAL 1 microsecond, z - INTERVAL 1 day, NOT b FROM t WHERE z < TIMESTAMPTZ '2025-01-01'")
        assert [str(v) for v in got.fetchone()] == [
            "2024-01-02 03:04:05.678902", "2024-01-01 03:04:05+00:00", "False"]


UNREAD = {"l": pa.array([[1], [2, 3]]), "s": pa.array([{"a": 1}, {"a": 2}]),
          "m": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64())),
          "u": pa.array([b"0123456789abcdef"] * 2, pa.binary(16))}


@pytest.mark.parametrize("kind", ["parquet", "arrow", "registered"])
def test_columns_of_other_types_stop_only_who_reads_them(tmp_path, kind):
    table = pa.table({"x": [1, 2], **UNREAD})
    if kind == "parquet":
        uuid = pa.array([b"0123456789abcdef"] * 2, pa.uuid().storage_type)
        table = table.append_column("id", pa.ExtensionArray.from_storage(pa.uuid(), uuid))
    db = rndn.connect("cpu")
    with pytest.warns(rndn.Warning) as said:
        if kind == "registered":
            db.register("t", table)
        elif kind == "arrow":
            with pa.ipc.new_file(tmp_path / "t.arrow", table.schema) as file:
                file.write_table(table)
            db._read(tmp_path / "t.arrow", None)
        else:
            pa.parquet.write_table(table, tmp_path / "t.parquet")
            db.read_parquet(tmp_path / "t.parquet")
    refused = [name for name in table.column_names if name != "x"]
    for name in refused:
        assert any(f"column `{name}` is" in str(w.message) for w in said), name
    assert db.sql("SELECT sum(x) FROM t").fetchall() == [(3,)]
    assert db.sql("SELECT * FROM t").columns == ["x"]
    for name in refused:
        with pytest.raises(rndn.Error, match=f"`?{name}`?") as error:
            db.sql(f"SELECT x, {name} FROM t")
        assert error.value.fault == "input" and "^" in str(error.value)
