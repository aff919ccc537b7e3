"""Functions and methods with arguments of any kind, in any order: an answer or an exception of Python's
or of ours whose fault is no bug, and every connection that got them answers right afterwards. Among the
arguments are capsules that are none of ours, streams whose functions are missing, fail or call back, and
texts and parameters that other threads change meanwhile. $RNDN_RANDOM_SEEDS seeds from $RNDN_RANDOM_FIRST on.

The interpreter's death, which no exception tells of, ends the whole run of the tests.
"""

import ctypes
import datetime
import decimal
import os
import random
import threading
import traceback

import numpy
import pandas
import pyarrow as pa

import rndn

SEEDS = int(os.environ.get("RNDN_RANDOM_SEEDS", "3"))
FIRST = int(os.environ.get("RNDN_RANDOM_FIRST", "0"))
STEPS = 250


class Lying:
    """Says that it is a table, and is none."""

    def __init__(self, answer):
        self.answer = answer

    def __arrow_c_stream__(self, requested_schema=None):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Stream(ctypes.Structure):
    """ArrowArrayStream, as C has it."""

    GET = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    SAY = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
    RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    _fields_ = [("get_schema", ctypes.c_void_p), ("get_next", ctypes.c_void_p), ("get_last_error", ctypes.c_void_p),
                ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p)]  # fmt: skip


KEPT = []  # what capsules point to
CLOSED = []  # connections that a stream has closed
ESCAPED = []  # what threads and functions that C calls have raised: Python drops it there
SAID = ctypes.create_string_buffer(b"it is \xff gone\n")


def guarded(function, failed=None):
    def run(*arguments):
        try:
            return function(*arguments)
        except BaseException:
            ESCAPED.append(traceback.format_exc())
            return failed

    return run


def pointer(function):
    KEPT.append(function)
    return ctypes.cast(function, ctypes.c_void_p).value


def capsule(record, name=b"arrow_array_stream"):
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    KEPT.extend((record, name))
    return new(ctypes.addressof(record), name, None)


class Wrong:
    """A stream of C's interface with something wrong in it: `fault` is which function is missing, or what it does."""

    def __init__(self, fault, db=None):
        self.fault, self.db = fault, db

    def __arrow_c_stream__(self, requested_schema=None):
        calls = []

        def release(at):
            Stream.from_address(at).release = None

        def get_schema(_, out):
            if self.fault == "no schema":
                return 5
            if self.fault in ("calls back", "closes"):
                call(self.db.sql, "SELECT 1 AS a")
                call(self.db.register, "t", pa.table({"x": [5]}))
                if self.fault == "closes":
                    CLOSED.append(self.db)
                    self.db.close()
            if self.fault == "released schema":
                ctypes.memset(out, 0, 72)
                return 0
            pa.schema([("x", pa.int64())])._export_to_c(out)
            return 0

        def get_next(_, out):
            if self.fault == "no array":
                return 12
            ctypes.memset(out, 0, 80)
            calls.append(out)
            if self.fault == "fails later" and len(calls) > 1:
                return 5
            if self.fault == "a column":
                pa.array([1, 2])._export_to_c(out)
            elif len(calls) < 3:
                pa.record_batch({"x": [1, 2]})._export_to_c(out)
            return 0

        record = Stream(pointer(Stream.GET(guarded(get_schema, 5))), pointer(Stream.GET(guarded(get_next, 5))),
                        pointer(Stream.SAY(lambda _: ctypes.addressof(SAID))),
                        pointer(Stream.RELEASE(guarded(release))), None)  # fmt: skip
        if self.fault in ("get_schema", "get_next", "get_last_error", "release"):
            setattr(record, self.fault, None)
        return capsule(record, b"another" if self.fault == "name" else b"arrow_array_stream")


# Taken: the first since nothing fails. That of "closes" may be, before its connection is gone; the others are errors.
RIGHT = ["get_last_error", "calls back", "nothing"]
FAULTS = ["get_schema", "get_next", "release", "name", "no schema", "released schema", "no array",
          "fails later", "a column", "calls back", *RIGHT, "closes"]  # fmt: skip


class Pair:
    """__arrow_c_array__ that answers anything."""

    def __init__(self, answer):
        self.answer = answer

    def __arrow_c_array__(self, requested_schema=None):
        return self.answer() if callable(self.answer) else self.answer


class Calling:
    """A sequence and a text that use the connection while it is used."""

    def __init__(self, db):
        self.db = db

    def __len__(self):
        call(self.db.sql, "SELECT 1 AS a")
        return 1

    def __getitem__(self, i):
        call(self.db.unregister, "t")
        if i:
            raise IndexError
        return 7

    def __str__(self):
        call(self.db.register, "t", pa.table({"x": [4]}))
        return "4"

    __fspath__ = __str__


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
        Pair(None), Pair((1, 2)), Pair(lambda: pa.array([1]).__arrow_c_array__()),
        Pair(lambda: pa.record_batch({"x": [1]}).__arrow_c_array__()), Pair(lambda: (object(),) * 2), Pair(()),
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


def register_wrong(db, fault):
    """Streams with a fault are errors, and others are taken."""
    error = None
    try:
        db.register("t", Wrong(fault, db))
    except rndn.Error as raised:
        error = raised
        assert error.fault in ("input", "usage") and str(error), (fault, error)
    except ValueError as raised:  # Python's own, of a capsule
        error = raised
        assert fault == "name", (fault, error)
    if fault in RIGHT:
        assert error is None, (fault, error)
        assert db.sql("SELECT sum(x) AS s FROM t").fetchall() == [(6,)], fault
    elif fault != "closes":
        assert error is not None, fault
    assert (db in CLOSED) == (fault == "closes"), fault


def is_right(db):
    """The connection's answer over a table of its own; of a closed one, that it is closed."""
    try:
        answer = db.register("mine", pa.table({"x": [1, 2, 3]})).sql("SELECT sum(x) AS s FROM mine").fetchall()
    except rndn.Error as error:
        return db in CLOSED and error.fault == "usage" and "the connection is closed" in str(error)
    return db not in CLOSED and answer == [(6,)]


def meanwhile(db, chance):
    """Several threads with one connection and one result, and parameters that change under them."""
    parameters, answers, sums, fetched = [1, 2], [], [], []
    values = [0, 2**40, None, "x"]
    result = db.sql("SELECT i AS x, CAST(i AS VARCHAR) AS k FROM range(50) AS r(i)")

    def use(kind):
        for i in range(6):
            if kind == 0:
                answers.append(call(db.sql, "SELECT $1 + $2 AS s", parameters))
            elif kind == 1:
                parameters[i % 2] = chance.choice(values)
                parameters.append(i)
                del parameters[2:]
            elif kind == 2:
                db.register("t", pa.table({"x": [i]}))
                sums.extend(db.sql("SELECT sum(x) AS s FROM t").fetchall())
            else:
                fetched.extend(result.fetchmany(7))
                assert result.arrow().num_rows == 50

    threads = [threading.Thread(target=guarded(use), args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not ESCAPED, ESCAPED[0]
    assert sums == [(i,) for i in range(6)]
    assert fetched == [(i, str(i)) for i in range(42)]
    numbers = [1, 2, 0, 2**40]
    possible = {None} | {a + b for a in numbers for b in numbers}
    for answer in answers:
        rows = [] if answer is None else answer.fetchall()
        assert answer is None or (len(rows) == 1 and rows[0][0] in possible), rows
    parameters[:] = [3, 4]
    assert db.sql("SELECT $1 + $2 AS s", parameters).fetchall() == [(7,)]


def test_calls_have_an_answer_or_an_exception(tmp_path, monkeypatch, recwarn):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.csv").write_text("a,b\n1,x\n")
    witness = rndn.connect("cpu").register("t", pa.table({"x": [1, 2, 3]}))
    simulated = rndn.connect("sim")
    for seed in range(FIRST, FIRST + SEEDS):
        chance = random.Random(seed)
        pool = values()
        KEPT.clear()
        CLOSED.clear()
        ESCAPED.clear()

        def some():
            return chance.choice(pool)

        def text():
            return chance.choice([p for p in pool if isinstance(p, str)])

        open_ones = [rndn.connect("cpu")]
        all_ones = list(open_ones)
        results = []
        for _ in range(STEPS):
            db = chance.choice(open_ones)
            kind = chance.randrange(16)
            if kind == 0:
                made = call(rndn.connect, *(chance.choice(["cpu", some()]) for _ in range(chance.randrange(1, 3))))
                if made:
                    open_ones = (open_ones + [made])[-3:]
                    all_ones.append(made)
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
            elif kind == 12:
                register_wrong(db, chance.choice(FAULTS))
                results.append(call(db.sql, "SELECT * FROM t"))
                if db in CLOSED:
                    open_ones = [one for one in open_ones if one not in CLOSED] or [rndn.connect("cpu")]
                    all_ones += [one for one in open_ones if one not in all_ones]
            elif kind == 13:
                proves = chance.random() < 0.1
                db = simulated if proves else db  # no other device has a second path
                results.append(call(db.sql, chance.choice(["SELECT ?", "SELECT x FROM t WHERE x < ?"]), Calling(db),
                                    prove=proves))  # fmt: skip
                assert not proves or results[-1] is None or results[-1].proof.startswith("prove ")
                call(db.read_csv, Calling(db))
            elif kind == 14:
                meanwhile(db, chance)
            elif results and results[-1] is not None:
                look_at(results[-1], some)
            assert not ESCAPED, (seed, ESCAPED[0])
        assert all(is_right(db) for db in all_ones + [simulated]), seed
        proved = simulated.sql("SELECT x FROM mine WHERE x < ?", [3], prove=True)
        assert proved.fetchall() == [(1,), (2,)] and "2 rows the same" in proved.proof, (seed, proved.proof)
        del open_ones, all_ones, results
        assert witness.sql("SELECT sum(x) AS s FROM t").fetchall() == [(6,)], seed
