"""Tables of Arrow into SQL and out again, type by type."""

import datetime
import decimal
import random

import pyarrow as pa
import pytest

import rndn

UTC = "UTC"
EPOCH = datetime.datetime(1970, 1, 1)


def whole(low, high):
    return lambda r: r.choice([low, high, 0, r.randint(low, high)])


def moments(r):
    return EPOCH + datetime.timedelta(microseconds=r.randint(-(10**14), 10**15))


def seconds(r):
    return EPOCH + datetime.timedelta(seconds=r.randint(-(10**8), 10**9))


def times(r):
    return (EPOCH + datetime.timedelta(microseconds=r.randrange(86_400_000_000))).time()


def whole_seconds(r):
    return (EPOCH + datetime.timedelta(seconds=r.randrange(86_400))).time()


def texts(r):
    return r.choice(["", "a", "zwölf Boxkämpfer", "x" * r.randrange(40), str(r.randrange(10**6))])


def decimals(precision, scale):
    return lambda r: decimal.Decimal(r.randrange(1 - 10**precision, 10**precision)).scaleb(-scale)


def dates(r):
    return datetime.date.fromordinal(719163 + r.randint(-50_000, 50_000))


def floats(r):
    return r.choice([0.0, -1.5, 2.0 ** r.randint(-60, 60), float("inf")])


# Arrow's type, its values, and the type that comes out.
TYPES = {
    "bool": (pa.bool_(), lambda r: r.random() < 0.5, pa.bool_()),
    "int8": (pa.int8(), whole(-128, 127), pa.int8()),
    "int16": (pa.int16(), whole(-(2**15), 2**15 - 1), pa.int16()),
    "int32": (pa.int32(), whole(-(2**31), 2**31 - 1), pa.int32()),
    "int64": (pa.int64(), whole(-(2**63), 2**63 - 1), pa.int64()),
    "uint8": (pa.uint8(), whole(0, 255), pa.uint8()),
    "uint16": (pa.uint16(), whole(0, 65535), pa.uint16()),
    "uint32": (pa.uint32(), whole(0, 2**32 - 1), pa.uint32()),
    "uint64": (pa.uint64(), whole(0, 2**64 - 1), pa.uint64()),
    "float": (pa.float32(), floats, pa.float32()),
    "double": (pa.float64(), floats, pa.float64()),
    "decimal32": (pa.decimal32(9, 2), decimals(9, 2), pa.decimal128(9, 2)),
    "decimal64": (pa.decimal64(18, 0), decimals(18, 0), pa.decimal128(18, 0)),
    "decimal128": (pa.decimal128(18, 6), decimals(18, 6), pa.decimal128(18, 6)),
    "decimal128_38": (pa.decimal128(38, 2), decimals(18, 2), pa.decimal128(38, 2)),
    "decimal256": (pa.decimal256(12, 12), decimals(12, 12), pa.decimal128(12, 12)),
    "date32": (pa.date32(), dates, pa.date32()),
    "date64": (pa.date64(), dates, pa.date32()),
    "time32s": (pa.time32("s"), whole_seconds, pa.time64("us")),
    "time32ms": (pa.time32("ms"), whole_seconds, pa.time64("us")),
    "time64us": (pa.time64("us"), times, pa.time64("us")),
    "time64ns": (pa.time64("ns"), times, pa.time64("us")),
    "timestamp_s": (pa.timestamp("s"), seconds, pa.timestamp("us")),
    "timestamp_ms": (pa.timestamp("ms"), seconds, pa.timestamp("us")),
    "timestamp_us": (pa.timestamp("us"), moments, pa.timestamp("us")),
    "timestamp_ns": (pa.timestamp("ns"), moments, pa.timestamp("us")),
    "timestamp_tz": (pa.timestamp("us", UTC), moments, pa.timestamp("us", UTC)),
    "string": (pa.string(), texts, pa.string()),
    "large_string": (pa.large_string(), texts, pa.string()),
    "string_view": (pa.string_view(), texts, pa.string()),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), None, pa.string()),
    "dictionary_int": (pa.dictionary(pa.uint16(), pa.int32()), None, pa.int32()),
}


def column(kind, r, rows):
    arrow, make, _ = TYPES[kind]
    if make is None:
        values = texts if arrow.value_type == pa.string() else whole(-5, 5)
        plain = pa.array([values(r) for _ in range(rows)], arrow.value_type)
        return plain.dictionary_encode().cast(arrow)
    return pa.array([make(r) for _ in range(rows)], arrow)


@pytest.fixture(scope="module")
def db():
    return rndn.connect("cpu")


@pytest.mark.parametrize("seed", range(4))
def test_tables_come_back_as_they_were(db, seed):
    r = random.Random(seed)
    pieces, rows = [], 0
    for _ in range(r.randint(1, 3)):
        size = r.choice([0, 1, 7, 8, 9, 300])
        skip = r.randint(0, 9)  # an offset that is no whole byte of bits
        table = pa.table({k: column(k, r, size + skip) for k in TYPES})
        pieces.append(table.slice(skip))
        rows += size
    table = pa.concat_tables(pieces)
    db.register("t", table)
    got = db.table("t").arrow()
    assert got.num_rows == rows
    assert got.schema.names == list(TYPES)
    for kind, (_, _, out) in TYPES.items():
        assert got.schema.field(kind).type == out, kind
        assert got[kind].to_pylist() == table[kind].cast(out).to_pylist(), kind


def with_missing(kind, share, r, rows):
    """A column of two chunks, and an offset."""
    arrow = TYPES[kind][0]
    coded = pa.types.is_dictionary(arrow)
    whole = column(kind, r, rows).to_pylist()
    values = pa.array([None if r.random() < share else v for v in whole],
                      arrow.value_type if coded else arrow)
    if coded:
        values = values.dictionary_encode().cast(arrow)
    return pa.chunked_array([values.slice(0, 100), values.slice(100)]).slice(3)


@pytest.mark.parametrize("share", [0, 0.01, 0.5, 1])
def test_missing_values_are_missing(db, share):
    r = random.Random(7)
    table = pa.table({kind: with_missing(kind, share, r, 300) for kind in TYPES})
    db.register("m", table)
    for kind, (_, _, out) in TYPES.items():
        got = db.sql(f'SELECT "{kind}" FROM m').arrow()[kind]
        assert got.to_pylist() == table[kind].cast(out).to_pylist(), kind


def test_a_column_without_type_is_missing_values(db):
    db.register("z", pa.table({"a": [1, 2], "n": pa.nulls(2)}))
    assert db.sql("SELECT a FROM z").fetchall() == [(1,), (2,)]


def test_values_are_computed_with(db):
    db.register("n", pa.table({"a": pa.array([200, 100], pa.uint8()), "b": [1.5, 2.5],
                               "t": pa.array([0, 10**9], pa.timestamp("ns"))}))
    got = db.sql("SELECT sum(a), max(b), max(t) FROM n WHERE a > 50").fetchall()
    assert got == [(300, 2.5, datetime.datetime(1970, 1, 1, 0, 0, 1))]


def test_a_batch_and_a_reader_are_tables(db):
    batch = pa.record_batch({"x": [1, 2, 3]})
    db.register("batch", batch)
    db.register("reader", pa.RecordBatchReader.from_batches(batch.schema, [batch, batch]))
    assert db.sql("SELECT sum(x) FROM batch").fetchone() == (6,)
    assert db.sql("SELECT sum(x) FROM reader").fetchone() == (12,)


@pytest.mark.parametrize(
    "arrow, values, name",
    [
        (pa.float16(), [1.0], "halffloat"),
        (pa.binary(), [b"x"], "binary"),
        (pa.list_(pa.int32()), [[1]], "list"),
        (pa.struct([("a", pa.int32())]), [{"a": 1}], "struct"),
        (pa.map_(pa.string(), pa.int32()), [[("a", 1)]], "map"),
        (pa.duration("s"), [datetime.timedelta(1)], "duration"),
        (pa.decimal256(39, 2), [decimal.Decimal("1.00")], "decimal256(39, 2)"),
    ],
)
def test_other_types_are_refused_by_name(db, arrow, values, name):
    table = pa.table({"good": [7], "bad": pa.array(values, arrow)})
    with pytest.warns(rndn.Warning, match="`bad` is") as said:
        db.register("r", table)
    assert name in str(said[0].message)
    assert db.sql("SELECT good FROM r").fetchall() == [(7,)]
    with pytest.raises(rndn.Error) as error:
        db.sql("SELECT bad FROM r")
    assert "bad" in str(error.value) and "^" in str(error.value)
    assert name in str(error.value)


@pytest.mark.parametrize(
    "arrow, value, reason",
    [
        (pa.timestamp("ns"), 1, "is no whole microsecond"),
        (pa.time64("ns"), 1, "is no whole microsecond"),
        (pa.timestamp("s"), 2**62, "is beyond 64 bits of microseconds"),
        (pa.date64(), 1, "is no whole day"),
        (pa.time32("s"), 90_000, "is no time of a day"),
    ],
)
def test_values_that_sql_cannot_hold_are_named_by_row(db, arrow, value, reason):
    numbers = pa.array([0, value], pa.int32() if arrow == pa.time32("s") else pa.int64())
    db.register("v", pa.table({"x": pa.Array.from_buffers(arrow, 2, numbers.buffers())}))
    with pytest.raises(rndn.Error, match="row 2 of column `x` " + reason) as error:
        db.sql("SELECT x FROM v")
    assert error.value.fault == "input"


@pytest.mark.parametrize(
    "arrow, value",
    [
        (pa.uint64(), 2**64 - 1),
        (pa.decimal128(38, 0), decimal.Decimal(10**37)),
        (pa.decimal256(38, 3), decimal.Decimal(10**30)),
        (pa.dictionary(pa.int8(), pa.uint64()), 2**64 - 1),
    ],
)
def test_integers_beyond_64_bits_are_kept(db, arrow, value):
    db.register("v", pa.table({"x": pa.array([0, None, value], arrow)}))
    assert int(db.sql("SELECT max(x) FROM v").fetchall()[0][0]) == value
    assert [int(row[0]) for row in db.sql("SELECT x FROM v WHERE x > 1").fetchall()] == [value]


def test_tables_must_have_names_apart(db):
    with pytest.raises(rndn.Error, match="both called `X`"):
        db.register("w", pa.table({"x": [1], "X": [2]}))
    with pytest.raises(rndn.Error, match="column 1 has no name"):
        db.register("w", pa.table({"": [1]}))
    with pytest.raises(rndn.Error, match="is no table"):
        db.register("w", [1, 2])
    with pytest.raises(rndn.Error, match="it is one column, and no table"):
        db.register("w", pa.chunked_array([[1]]))


def test_what_is_registered_is_released(db):
    before = pa.total_allocated_bytes()
    data = pa.table({"x": pa.array(range(100_000))})
    db.register("big", data)
    db.sql("SELECT sum(x) FROM big")
    del data
    db.unregister("big")
    assert pa.total_allocated_bytes() - before < 100_000
