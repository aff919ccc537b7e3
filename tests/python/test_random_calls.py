"""Functions and methods with arguments of any kind, in any order: an answer or an exception of Python's
or of ours whose fault is no bug, and a connection that goes on to answer right.

The interpreter's death, which no exception tells of, ends the whole run of the tests.
"""

import datetime
import decimal
import os
import random

import numpy
import pandas
import pyarrow as pa

import rndn

SEEDS = int(os.environ.get("RNDN_RANDOM_SEEDS", "3"))
STEPS = 250


class Lying:
    """Says that it is a table, and is none."""

    def __init__(self, answer):
        self.answer = answer

    def __arrow_c_stream__(self, requested_schema=None):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Endless:
    """A sequence that fails in the middle."""

    def __len__(self):
        return 3

    def __getitem__(self, i):
        raise RuntimeError("no item")


def values():
    table = pa.table({"k": ["a", None, "b"], "x": [1, 2, None]})
    taken = table.__arrow_c_stream__()
    rndn.connect("cpu").register("t", Lying(taken))  # the capsule is empty from here on
    return [
        None, True, -1, 0, 1, 7, 2**31, 2**63, -(2**63) - 1, 10**40, 1.5, float("nan"), float("inf"),
        "", "x", "t", "é", "\0", "a\0b", "\ud800", "SELECT 1 AS a", "SELECT * FROM t", "SELECT ?",
        "SELECT $1, $x", "SELECT $0", "SELECT '", "DROP TABLE t", "CREATE OR REPLACE TABLE t AS SELECT 3 AS x",
        "cpu", "sim", "sm_90", "sm_1", "64MiB", "/nowhere", ".", "*.csv", "[", "text", "json", "html", "ptx", "cubin",
        b"", b"x", b"\x7fELF" + bytes(60), bytearray(b"abc"), (), (1,), [1, "x"], {"x": 1}, {1: 2}, object(),
        decimal.Decimal("1.5"), decimal.Decimal("NaN"), decimal.Decimal("1e40"), datetime.date(1, 1, 1),
        datetime.datetime(9999, 12, 31, 23, 59), datetime.time(23, 59, 59, 999999), datetime.timedelta(1),
        numpy.int8(3), numpy.float32(0.1), numpy.array([1, 2]), numpy.datetime64("2020-01-01"), pandas.NaT,
        table, table.to_pandas(), pandas.DataFrame(), pa.table({}), pa.table({"a": [[1]], "b": [1]}),
        pa.RecordBatchReader.from_batches(table.schema, iter(())), table.schema, Lying(None), Lying(7),
        Lying(RuntimeError("no stream")), Lying(taken), Lying(pa.schema([]).__arrow_c_schema__()), Endless(), print, rndn,
    ]  # fmt: skip


def call(what, *arguments, **named):
    """The answer; none after an exception that may be."""
    try:
        return what(*arguments, **named)
    except rndn.Error as error:
        assert error.fault in ("input", "usage", "world"), error
        assert str(error)
    except (TypeError, ValueError, IndexError, KeyError, AttributeError, OverflowError, RuntimeError, OSError):
        pass
    except (ArithmeticError, pa.ArrowException, StopIteration):
        pass
    return None


def look_at(result, some):
    for name in ("columns", "types", "timing"):
        call(getattr, result, name)
    for name in ("arrow", "df", "pl", "fetchall", "fetchone", "__repr__", "_repr_html_", "__len__"):
        call(getattr(result, name))
    call(result.array, some())
    call(result.__arrow_c_stream__, some())
    call(result.__arrow_c_stream__)


def test_calls_have_an_answer_or_an_exception(tmp_path, monkeypatch, recwarn):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.csv").write_text("a,b\n1,x\n")
    witness = rndn.connect("cpu").register("t", pa.table({"x": [1, 2, 3]}))
    for seed in range(SEEDS):
        chance = random.Random(seed)
        pool = values()

        def some():
            return chance.choice(pool)

        def text():
            return chance.choice([p for p in pool if isinstance(p, str)])

        open_ones = [rndn.connect("cpu")]
        results = []
        for _ in range(STEPS):
            db = chance.choice(open_ones)
            kind = chance.randrange(13)
            if kind == 0:
                made = call(rndn.connect, *(chance.choice(["cpu", some()]) for _ in range(chance.randrange(1, 3))))
                open_ones = (open_ones + [made] if made else open_ones)[-3:]
            elif kind < 4:
                arguments = [chance.choice([text(), some()])] + [some() for _ in range(chance.randrange(3))]
                results.append(call(db.sql, *arguments))
            elif kind < 6:
                call(db.register, chance.choice(["t", "u", some()]), some())
            elif kind == 6:
                call(db.unregister, chance.choice(["t", some()]))
            elif kind == 7:
                read = chance.choice([db.read_csv, db.read_parquet, db.read_json])
                call(read, chance.choice(["f.csv", some()]), chance.choice([None, "f", some()]))
            elif kind == 8:
                results.append(call(db.table, chance.choice(["t", some()])))
                call(db.tables)
            elif kind == 9:
                call(chance.choice([db.explain, db.plan]), some())
            elif kind == 10:
                code = call(rndn.compile, some(), chance.choice(["sm_86", some()]), chance.choice([None, db, some()]))
                for part in ("hir", "ptx", "sass", "cubin"):
                    call(getattr, code, part)
            elif kind == 11:
                call(rndn.assemble, some(), some(), some())
                call(rndn.disassemble, some())
            elif results and results[-1] is not None:
                look_at(results[-1], some)
        del open_ones, results
        assert witness.sql("SELECT sum(x) AS s FROM t").fetchall() == [(6,)], seed
