"""What the ADBC driver does at those calls of docs/adbc.tsv that stand below, where nothing else is wrong; driver_test has others."""

import os
import pathlib
import re

import adbc_driver_manager
import pyarrow as pa
import pytest


def prepared(c, s):
    s.set_sql_query("SELECT ? AS a")
    s.prepare()
    return s.get_parameter_schema()


def ran(c, s):
    s.set_sql_query("SELECT x FROM t")
    return s.execute_query()


def bound(c, s):
    rows = pa.table({"a": [1, 2]}).to_reader()
    s.set_sql_query("INSERT INTO t VALUES (?)")
    s.bind_stream(rows)
    return s.execute_update()


def ingested(c, s):
    s.set_options(**{"adbc.ingest.target_table": "u"})
    s.bind(pa.record_batch({"a": [1, 2]}))
    return s.execute_update()


def shaped(c, s):
    s.set_sql_query("SELECT x FROM t")
    return s.execute_schema()


def in_parts(c, s):
    s.set_sql_query("SELECT x FROM t")
    return s.execute_partitions()


def planned(c, s):
    s.set_substrait_plan(b"plan")
    return s.execute_query()


CALLS = {
    "ConnectionCommit": lambda c, s: c.commit(),
    "Rollback": lambda c, s: c.rollback(),
    "ConnectionGetInfo": lambda c, s: c.get_info(),
    "ConnectionGetObjects": lambda c, s: c.get_objects(adbc_driver_manager.GetObjectsDepth.ALL),
    "ConnectionGetOption": lambda c, s: c.get_option("adbc.connection.autocommit"),
    "ConnectionGetTableSchema": lambda c, s: c.get_table_schema(None, None, "t"),
    "ConnectionGetTableTypes": lambda c, s: c.get_table_types(),
    "ConnectionGetStatistics": lambda c, s: c.get_statistics(None, None, "t", False),
    "ConnectionGetStatisticNames": lambda c, s: c.get_statistic_names(),
    "ConnectionReadPartition": lambda c, s: c.read_partition(b"part"),
    "ConnectionSetOption": lambda c, s: c.set_options(**{"adbc.connection.autocommit": "true"}),
    "StatementSetSqlQuery": lambda c, s: s.set_sql_query("SELECT 1"),
    "StatementSetSubstraitPlan": planned,
    "StatementPrepare": lambda c, s: (s.set_sql_query("SELECT x FROM t"), s.prepare()),
    "StatementBind": ingested,
    "BindStream": bound,
    "StatementExecuteQuery": ran,
    "StatementExecuteSchema": shaped,
    "StatementExecutePartitions": in_parts,
    "StatementGetParameterSchema": prepared,
    "StatementSetOption": lambda c, s: s.set_options(**{"rndn.timeout": "5"}),
}


def rows_of_the_table():
    page = (pathlib.Path(__file__).parents[2] / "docs/adbc.tsv").read_text()
    rows = [line.split("\t") for line in page.splitlines()[1:]]
    return {name: answer for names, answer in rows for name in names.split(", ")}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_answers_as_the_table_says(name):
    refusal = re.match("NOT_IMPLEMENTED|INVALID_STATE|", rows_of_the_table()[name])[0]
    driver = str(pathlib.Path(os.environ["RNDN_BUILD"]) / "lib" / "libadbc_driver_rndn.so")
    with adbc_driver_manager.AdbcDatabase(driver=driver, **{"rndn.device": "cpu"}) as database:
        with adbc_driver_manager.AdbcConnection(database) as connection:
            with adbc_driver_manager.AdbcStatement(connection) as statement:
                statement.set_sql_query("CREATE TABLE t AS SELECT 1 AS x")
                statement.execute_update()
            with adbc_driver_manager.AdbcStatement(connection) as statement:
                said = ""
                try:
                    CALLS[name](connection, statement)
                except adbc_driver_manager.Error as error:
                    said = error.status_code.name
    assert said == refusal


def test_refusals_of_the_table_are_all_tried():
    """A call that is said to be refused, and works, or the other way round, would be seen."""
    refused = {n for n, answer in rows_of_the_table().items() if re.match("NOT_IMPLEMENTED|INVALID_STATE", answer)}
    assert refused == {"ConnectionCommit", "Rollback", "ConnectionReadPartition", "StatementSetSubstraitPlan", "StatementExecutePartitions"}
    assert refused < set(CALLS)
