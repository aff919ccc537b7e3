"""The ADBC driver through the driver manager of PyPI, and in processes that have a Python later."""

import os
import pathlib
import re
import subprocess
import sys
import threading
import time
import time

import polars
import pyarrow as pa
import pytest
from adbc_driver_manager import dbapi

BUILD = pathlib.Path(os.environ["RNDN_BUILD"])
DRIVER = BUILD / "lib" / "libadbc_driver_rndn.so"


def connect(device="sim", **options):
    return dbapi.connect(
        driver=str(DRIVER), db_kwargs={"rndn.device": device, **options}, autocommit=True
    )


@pytest.fixture()
def cursor():
    with connect() as connection, connection.cursor() as cursor:
        yield cursor


def test_queries_and_parameters(cursor):
    cursor.execute("SELECT 1 AS a, 'x' AS b, CAST(2.5 AS DOUBLE) AS c, DATE '2024-02-29' AS d")
    assert cursor.description[1][0] == "b"
    table = cursor.fetch_arrow_table()
    assert table.schema.types == [pa.int32(), pa.utf8(), pa.float64(), pa.date32()]
    cursor.execute("SELECT ? + 1, $2", (41, "it's"))
    assert cursor.fetchall() == [(42, "it's")]
    cursor.execute("SELECT ? IS NULL", (None,))
    assert cursor.fetchone() == (True,)


def test_rows_come_in_batches(cursor):
    rows = pa.table({"i": range(200_000)})
    cursor.adbc_ingest("many", rows)
    cursor.execute("SELECT i FROM many")
    assert [batch.num_rows for batch in cursor.fetch_record_batch()] == [122_880, 77_120]
    cursor.execute("SELECT i FROM many")
    with cursor.fetch_record_batch() as reader:
        first = reader.read_next_batch()
    cursor.execute("SELECT count(*) FROM many")
    assert cursor.fetchall() == [(200_000,)]
    assert first.column(0).equals(rows["i"].chunk(0)[:122_880]), "what was read stays"
    cursor.executescript("DROP TABLE many")


@pytest.mark.parametrize(
    "value",
    [
        pa.scalar(-(2**63), pa.int64()),
        pa.scalar(255, pa.uint8()),
        pa.scalar(0.1, pa.float64()),
        pa.scalar(float("inf"), pa.float64()),
        pa.scalar(True),
        pa.scalar("Grüße 'q'"),
        pa.scalar(19782, pa.date32()),
        pa.scalar(1709210096123456, pa.timestamp("us")),
        pa.scalar(1709210096123456, pa.timestamp("us", "UTC")),
        pa.scalar(3723000001, pa.time64("us")),
        pa.scalar("123.45", pa.string()).cast(pa.decimal128(10, 2)),
    ],
)
def test_a_parameter_comes_back_as_it_is(cursor, value):
    rows = pa.record_batch([pa.array([value.as_py(), None], value.type)], ["p"])
    cursor.adbc_statement.set_sql_query("SELECT ? AS p")
    cursor.adbc_statement.bind(rows)
    stream, _ = cursor.adbc_statement.execute_query()
    got = pa.RecordBatchReader.from_stream(stream).read_all()
    assert got.column("p").to_pylist() == [value.as_py(), None]
    assert got.schema.types == [value.type]


def test_statements_and_ingestion(cursor):
    rows = pa.table({"k": ["a", "b", "a"], "x": [1, 2, 3]})
    assert cursor.adbc_ingest("t", rows) == 3
    with pytest.raises(dbapi.ProgrammingError, match="already"):
        cursor.adbc_ingest("t", rows)
    assert cursor.adbc_ingest("t", rows.slice(0, 1), mode="append") == 1
    cursor.executemany("INSERT INTO t VALUES (?, ?)", [("c", 7), ("c", 8)])
    cursor.execute("CREATE VIEW sums AS SELECT k, sum(x) AS s FROM t GROUP BY k")
    cursor.execute("SELECT * FROM sums ORDER BY k")
    assert cursor.fetchall() == [("a", 5), ("b", 2), ("c", 15)]
    assert cursor.adbc_ingest("t", rows.slice(2), mode="replace") == 1
    cursor.execute("SELECT * FROM sums")
    assert cursor.fetchall() == [("a", 3)]
    cursor.execute("DROP VIEW sums")
    cursor.execute("DROP TABLE t")
    with pytest.raises(dbapi.ProgrammingError, match="there is no table `t`"):
        cursor.execute("SELECT * FROM t")
    with pytest.raises(dbapi.ProgrammingError, match="`UPDATE` is not supported"):
        cursor.execute("UPDATE t SET x = 1")


def test_the_catalog(cursor):
    cursor.adbc_ingest("t", pa.table({"k": ["a", None], "x": [1, 2]}))
    connection = cursor.connection
    info = connection.adbc_get_info()
    assert info["vendor_name"] == "rndn" and info["driver_adbc_version"] == 1001000
    objects = connection.adbc_get_objects(depth="all").read_all()
    objects.validate(full=True)
    [catalog] = objects.to_pylist()
    [schema] = catalog["catalog_db_schemas"]
    [table] = schema["db_schema_tables"]
    assert (catalog["catalog_name"], schema["db_schema_name"]) == ("rndn", "main")
    columns = [(c["column_name"], c["xdbc_type_name"]) for c in table["table_columns"]]
    assert columns == [("k", "VARCHAR"), ("x", "BIGINT")]
    assert connection.adbc_get_table_schema("t").names == ["k", "x"]
    assert connection.adbc_get_table_types() == ["TABLE", "VIEW"]
    found = connection.adbc_get_statistics(approximate=False).read_all()
    found.validate(full=True)
    statistics = found.to_pylist()[0]["catalog_db_schemas"][0]["db_schema_statistics"]
    by_key = {(s["column_name"], s["statistic_key"]): s["statistic_value"] for s in statistics}
    assert by_key[None, 6] == 2 and by_key["k", 5] == 1 and by_key["x", 3] == 2


def test_keys_are_constraints():
    with connect("cpu", uri="tpch:0.01") as connection:
        objects = connection.adbc_get_objects(depth="all", table_name_filter="nation").read_all()
        objects.validate(full=True)
        [table] = objects.to_pylist()[0]["catalog_db_schemas"][0]["db_schema_tables"]
        keys = {k["constraint_type"]: k for k in table["table_constraints"]}
        assert keys["PRIMARY KEY"]["constraint_column_names"] == ["n_nationkey"]
        assert keys["FOREIGN KEY"]["constraint_column_usage"][0]["fk_table"] == "region"


def test_errors_and_transactions(cursor):
    with pytest.raises(dbapi.ProgrammingError) as error:
        cursor.execute("SELECT prize FROM (SELECT 1 AS price)")
    assert "^" in str(error.value) and error.value.sqlstate == "42000"
    with pytest.raises(dbapi.NotSupportedError, match="transactions"):
        cursor.connection.adbc_connection.set_autocommit(False)
    with pytest.raises(dbapi.NotSupportedError, match="option `colour`"):
        connect(colour="red")


def test_every_call_is_in_the_table():
    root = pathlib.Path(__file__).parents[2]
    abi = (root / "runtime/adbc/adbc_abi.h").read_text()
    record = abi[abi.index("struct AdbcDriver {\n") :]
    members = set(re.findall(r"\(\*(\w+)\)\(", record[: record.index("};")])) - {"release"}
    for kind in ["Database", "Connection", "Statement"]:
        for macro in re.findall(r"\(\*Kind##(\w+)\)", abi):
            members.add(kind + macro)
    listed = set()
    for line in (root / "docs/adbc.tsv").read_text().splitlines()[1:]:
        names = line.split("\t")[0].split(", ")
        kind = re.match("Database|Connection|Statement|", names[0])[0]
        listed |= {n if re.match("Adbc|Error|Database|Connection|Statement", n) else kind + n
                   for n in names}
    assert listed - {"AdbcDriverInit", "AdbcDriverRndnInit"} == members


def test_limits_and_cancel():
    slow = "SELECT count(*) FROM t a, t b WHERE a.x * b.x % 7 = b.x % 5"
    with connect("cpu") as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("t", pa.table({"x": range(4000)}))
        cursor.adbc_statement.set_options(**{"rndn.timeout": "0.05"})
        with pytest.raises(dbapi.OperationalError, match="rndn.timeout"):
            cursor.execute(slow)
    with connect("cpu") as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("t", pa.table({"x": range(4000)}))

        def cancel():  # as soon as it runs, however long a busy machine takes to start it
            for _ in range(3000):
                try:
                    return cursor.adbc_cancel()
                except dbapi.ProgrammingError:  # it does not run yet
                    time.sleep(0.01)

        threading.Thread(target=cancel).start()
        with pytest.raises(dbapi.OperationalError, match="CANCELLED"):
            cursor.execute(slow)
        cursor.execute("SELECT count(*) FROM t")
        assert cursor.fetchone() == (4000,)


def test_polars_reads_through_it():
    with connect("cpu") as connection:
        frame = polars.DataFrame({"x": [1, 2, 3]})
        assert frame.write_database("t", connection, engine="adbc") == 3
        got = polars.read_database("SELECT sum(x) AS s FROM t", connection)
        assert got["s"].to_list() == [6]


# ---- beside other users of DuckDB and of Python

USE = """
import sys
sys.path[:0] = {path!r}
import duckdb, pyarrow
assert duckdb.sql("SELECT sum(i) FROM range(1000) t(i)").fetchall() == [(499500,)]
made = duckdb.sql("SELECT i, i::VARCHAR AS s FROM range(1000) t(i)").to_arrow_table()
assert pyarrow.compute.sum(made["i"]).as_py() == 499500
assert duckdb.sql("SELECT count(DISTINCT s) FROM made").fetchall() == [(1000,)]
"""


def test_duckdb_is_unharmed_in_the_same_process(tmp_path):
    code = f"""
from adbc_driver_manager import dbapi
connection = dbapi.connect(driver={str(DRIVER)!r}, db_kwargs={{"rndn.device": "cpu"}},
                           autocommit=True)
cursor = connection.cursor()
cursor.execute("SELECT 1")
assert "duckdb" not in __import__("sys").modules
import pyarrow.compute
{USE.format(path=[])}
cursor.execute("SELECT 2")
assert cursor.fetchone() == (2,)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_a_python_that_comes_later_is_unharmed():
    program = BUILD / "bin" / "adbc_before_python"
    if not program.exists():
        pytest.skip("no shared libpython was there when adbc_before_python was built")
    path = [p for p in sys.path if p.endswith("site-packages")]
    script = "import sys\n" + USE.format(path=path).replace(
        "import duckdb, pyarrow", "import duckdb, pyarrow, pyarrow.compute"
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    ran = subprocess.run(
        [program, DRIVER, script], capture_output=True, text=True, timeout=120, env=environment
    )
    assert (ran.returncode, ran.stdout) == (0, "unharmed\n"), ran.stderr
