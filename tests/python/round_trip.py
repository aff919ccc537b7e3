#!/usr/bin/env python3
"""Random tables through files and rndn, beside pyarrow and DuckDB: values equal, type by type.

usage: round_trip.py [--tables 10000] [--seed 0] [--jobs 1] [--parquet] [-o TABLE.tsv]       (with `rndn` on PYTHONPATH)

Each table has some of the types below, from no row to several row groups, and a share of nulls; values of
their own, or few that repeat, at random or in runs. It is written by pyarrow (Parquet with pages of both
versions and all sizes, every compression, dictionaries that are full in the middle of a column, deltas,
split bytes, with and without statistics; Arrow IPC) or by DuckDB (Parquet, CSV, JSON lines, plain or
compressed). With --parquet all of them are Parquet and are only read: more of them in the time. rndn reads the file as
a query names it; what it gives must be what the writer's own reader gives, cast to the type that docs/python.md says.
Then rndn writes its result as Arrow IPC, which pyarrow must read as the same, as Parquet, for pyarrow and DuckDB, and
as CSV or JSON lines, for DuckDB, which is told the types. test_round_trip.py runs a few of them; -o writes how many
columns of each type, without and with nulls, came and went as what.
"""

import argparse
import collections
import concurrent.futures
import multiprocessing
import os
import random
import sys
import tempfile
import time

import duckdb
import pyarrow as pa
import pyarrow.parquet as parquet

import rndn
from test_arrow import TYPES, decimals, texts, whole

# What text files can say; their types are found out anew by whoever reads them.
TEXT_TYPES = ["bool", "int64", "double", "date32", "string", "decimal128", "timestamp_us", "time64us"]
# Parquet has these under another name, or not at all.
# Values of more than 64 bits, which Parquet files have.
WIDE = {
    "uint64_wide": (pa.uint64(), whole(0, 2**64 - 1), pa.uint64()),
    "decimal_wide": (pa.decimal128(38, 10), decimals(38, 10), pa.decimal128(38, 10)),
    "decimal_20": (pa.decimal128(20, 0), decimals(20, 0), pa.decimal128(20, 0)),
}
PARQUET_TYPES = TYPES | WIDE
NOT_IN_PARQUET = {"decimal256", "date64", "time32s", "time64ns", "timestamp_s", "timestamp_ns"}


def random_cells(r, make, rows, share):
    pool = [make(r) for _ in range(r.choice([1, 2, 10, 300]))] if r.random() < 0.5 else None
    cells = []
    while len(cells) < rows:
        value = None if r.random() < share else r.choice(pool) if pool else make(r)
        cells += [value] * (r.choice([1, 1, 3, 40]) if pool else 1)
    return cells[:rows]


def random_table(r, kinds):
    names = r.sample(kinds, r.randint(1, min(6, len(kinds))))
    rows = r.choice([0, 1, 2, 9, 100, 1000, 5000])
    share = r.choice([0, 0, 0.02, 0.5, 1])
    columns = {}
    for number, kind in enumerate(names):
        arrow, make, _ = PARQUET_TYPES[kind]
        is_coded = make is None
        if is_coded:
            arrow = arrow.value_type
            make = texts if arrow == pa.string() else whole(-5, 5)
        values = pa.array(random_cells(r, make, rows, share), arrow)
        if is_coded:
            values = values.dictionary_encode()
        columns[f"{kind} {number}"] = values
    return pa.table(columns)


def encoding_of(r, arrow):
    """One that Parquet has for the type; None: plain."""
    split = ["BYTE_STREAM_SPLIT"]
    if pa.types.is_decimal(arrow):
        return r.choice(split + [None])
    if pa.types.is_floating(arrow):
        return r.choice(split + [None])
    if pa.types.is_integer(arrow) or pa.types.is_temporal(arrow):
        return r.choice(split + ["DELTA_BINARY_PACKED", None])
    if pa.types.is_boolean(arrow):
        return r.choice(["RLE", None])
    if pa.types.is_string(arrow) or pa.types.is_large_string(arrow):
        return r.choice(["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", None])
    return None


def by_pyarrow(r, table, path):
    groups = r.choice([1, 50, 1000, 100_000])
    how = {
        "compression": r.choice(["none", "snappy", "snappy", "gzip", "zstd", "lz4", "brotli"]),
        "data_page_version": r.choice(["1.0", "2.0"]),
        "version": r.choice(["2.4", "2.6"]),
        "data_page_size": r.choice([100, 3000, 1 << 20]),
        "write_batch_size": r.choice([1, 7, 1024]),
        "row_group_size": max(groups, table.num_rows // 50 + 1),
        "write_statistics": r.random() < 0.7,
        "write_page_index": r.random() < 0.3,
        "write_page_checksum": r.random() < 0.3,
        "store_decimal_as_integer": r.random() < 0.3,
    }
    if r.random() < 0.6:
        how["use_dictionary"] = True
        how["dictionary_pagesize_limit"] = r.choice([20, 200, 1 << 20])
    else:
        how["use_dictionary"] = False
        chosen = {f.name: encoding_of(r, f.type) for f in table.schema}
        if r.random() < 0.6:
            how["column_encoding"] = {name: e for name, e in chosen.items() if e} or None
    # DuckDB's reader, which has the other compressions, does not take split decimals.
    is_read_here = how["compression"] in ("none", "snappy", "zstd")
    if (how["store_decimal_as_integer"] or not is_read_here) and how.get("column_encoding"):
        how["column_encoding"] = {name: e for name, e in how["column_encoding"].items()
                                  if not pa.types.is_decimal(table.schema.field(name).type)} or None
    parquet.write_table(table, path, **how)
    return parquet.read_table(path), how


def as_arrow(r, table, path, end):
    how = {"compression": r.choice([None, "lz4", "zstd"]), "rows": r.choice([7, 1000, 100_000])}
    new = pa.ipc.new_stream if end == "arrows" else pa.ipc.new_file
    options = pa.ipc.IpcWriteOptions(compression=how["compression"])
    with new(path, table.unify_dictionaries().schema, options=options) as writer:
        writer.write_table(table.unify_dictionaries(), max(how["rows"], table.num_rows // 20 + 1))
    return table, how


def by_duckdb(r, duck, table, path, kind, packed):
    if kind == "parquet":
        codec = r.choice(["snappy", "snappy", "zstd", "uncompressed", "gzip", "lz4_raw", "brotli"])
        how = f"FORMAT parquet, COMPRESSION {codec}, ROW_GROUP_SIZE 2048, PARQUET_VERSION {r.choice(['V1', 'V2'])}"
        if r.random() < 0.5:
            how += f", DICTIONARY_SIZE_LIMIT {r.choice([1, 100, 5000])}"
        reader = f"read_parquet('{path}')"
    else:
        how = f"FORMAT {kind}" + (f", COMPRESSION {packed}" if packed else "")
        reader = f"read_{kind}('{path}', sample_size = -1)"
    duck.register("random_table", table)
    duck.execute(f"COPY random_table TO '{path}' ({how})")
    duck.unregister("random_table")
    return duck.sql(f"SELECT * FROM {reader}").arrow(), how


def as_rndn_has_it(table):
    """The reader's table in the types that rndn gives."""
    fields = {pa.date64(): pa.date32()}
    out = []
    for field in table.schema:
        t = field.type
        if pa.types.is_dictionary(t):
            t = t.value_type
        if pa.types.is_timestamp(t):
            t = pa.timestamp("us", "UTC" if t.tz else None)
        elif pa.types.is_time(t):
            t = pa.time64("us")
        elif pa.types.is_decimal(t):
            t = pa.decimal128(t.precision, t.scale)
        elif pa.types.is_large_string(t) or pa.types.is_string_view(t):
            t = pa.string()
        elif pa.types.is_null(t):
            t = pa.int32()
        out.append(pa.field(field.name, fields.get(t, t)))
    return table.cast(pa.schema(out))


def cells(values):
    # A text file's `inf` may be a date: Python has none such.
    return (values.cast(pa.int32()) if pa.types.is_date32(values.type) else values).to_pylist()


def differences(got, wanted):
    if got.schema.names != wanted.schema.names:
        return f"columns {got.schema.names} for {wanted.schema.names}"
    for name in wanted.schema.names:
        if got.schema.field(name).type != wanted.schema.field(name).type:
            return f"`{name}` is {got.schema.field(name).type}, not {wanted.schema.field(name).type}"
        if got[name].equals(wanted[name]):
            continue
        mine, other = cells(got[name]), cells(wanted[name])
        if mine != other:
            at = next(i for i, pair in enumerate(zip(mine, other)) if pair[0] != pair[1])
            return f"row {at + 1} of `{name}` is {mine[at]!r}, not {other[at]!r}"
    return None


def round_trip(r, duck, db, folder, counts, only_parquet):
    """One table; the text of what differs, or None."""
    writer = r.choice(["pyarrow", "duckdb"] if only_parquet else ["pyarrow", "ipc", "duckdb", "duckdb", "text"])
    if writer == "text":
        kind, end, packed = r.choice([("csv", "csv.gz", "gzip"), ("csv", "csv.zst", "zstd"),
                                      ("json", "jsonl", ""), ("json", "ndjson.gz", "gzip")])
        path = f"{folder}/t.{end}"
        table = random_table(r, TEXT_TYPES)
        if table.num_rows == 0:
            return None  # such a file says nothing of its columns
        wanted, how = by_duckdb(r, duck, table, path, kind, packed)
    elif writer == "ipc":
        end = r.choice(["arrow", "arrows", "feather"])
        path = f"{folder}/t.{end}"
        table = random_table(r, list(TYPES))
        wanted, how = as_arrow(r, table, path, end)
    else:
        path, kind, end = f"{folder}/t.parquet", "parquet", "parquet"
        kinds = [k for k in PARQUET_TYPES if k not in NOT_IN_PARQUET] if writer == "pyarrow" else list(PARQUET_TYPES)
        kinds = [k for k in kinds if writer == "pyarrow" or k != "decimal256"]
        table = random_table(r, kinds)
        if writer == "pyarrow":
            wanted, how = by_pyarrow(r, table, path)
        else:
            wanted, how = by_duckdb(r, duck, table, path, kind, "")
    if isinstance(wanted, pa.RecordBatchReader):
        wanted = wanted.read_all()
    wanted = as_rndn_has_it(wanted)
    for field, source in zip(wanted.schema, table.schema):
        counts[(writer, end, source.name.split()[0], wanted[field.name].null_count > 0)] += 1
    got = db.sql(f"SELECT * FROM '{path}'").arrow()
    if wrong := differences(got, wanted):
        return f"{writer} {how}: {wrong}"
    if only_parquet:
        return None
    # What rndn writes, and who must read the same.
    is_stream = r.random() < 0.5
    opened = pa.ipc.open_stream if is_stream else pa.ipc.open_file
    types = sql_types(wanted)
    in_text = {"csv": f"read_csv('$', header = true, allow_quoted_nulls = false, columns = {types})",
               "jsonl": f"read_json('$', format = 'newline_delimited', columns = {types})"}
    text = r.choice(list(in_text))
    readers = {
        "arrows" if is_stream else "arrow": [lambda out: opened(out).read_all()],
        "parquet": [parquet.read_table, lambda out: read_by_duckdb(duck, f"read_parquet('{out}')")],
        text: [lambda out: read_by_duckdb(duck, in_text[text].replace("$", out))],
    }
    for end, reads in readers.items():
        out = f"{folder}/out.{end}"
        db.sql(f"COPY (SELECT * FROM '{path}') TO '{out}'")
        for number, read in enumerate(reads):
            if wrong := differences(as_rndn_has_it(read(out)), wanted):
                return f"{writer} {how}, written by rndn as {end}, by reader {number}: {wrong}"
        for field in wanted.schema:
            counts[("rndn", end, field.name.split()[0], wanted[field.name].null_count > 0)] += 1
    return None


def read_by_duckdb(duck, what):
    read = duck.sql(f"SELECT * FROM {what}").arrow()
    return read.read_all() if isinstance(read, pa.RecordBatchReader) else read


def sql_types(table):
    """The columns of a table as DuckDB's readers are told of them."""
    names = {pa.bool_(): "BOOLEAN", pa.int8(): "TINYINT", pa.int16(): "SMALLINT", pa.int32(): "INTEGER",
             pa.int64(): "BIGINT", pa.uint8(): "UTINYINT", pa.uint16(): "USMALLINT", pa.uint32(): "UINTEGER", pa.uint64(): "UBIGINT",
             pa.float32(): "FLOAT", pa.float64(): "DOUBLE", pa.date32(): "DATE", pa.time64("us"): "TIME",
             pa.timestamp("us"): "TIMESTAMP", pa.timestamp("us", "UTC"): "TIMESTAMPTZ", pa.string(): "VARCHAR"}
    told = []
    for f in table.schema:
        decimal = f"DECIMAL({f.type.precision}, {f.type.scale})" if pa.types.is_decimal(f.type) else None
        told.append(f"'{f.name}': '{decimal or names[f.type]}'")
    return "{" + ", ".join(told) + "}"


def run(tables, seed, only_parquet=False):
    """Tables, and values by writer, end, type and whether there are nulls; differences as texts."""
    counts, wrong = collections.Counter(), []
    duck = duckdb.connect()
    duck.execute("SET TimeZone = 'UTC'")
    db = rndn.connect("cpu")
    with tempfile.TemporaryDirectory(prefix="rndn-round-trip.") as folder:
        for number in range(seed, seed + tables):
            try:
                found = round_trip(random.Random(number), duck, db, folder, counts, only_parquet)
            except Exception as error:
                found = f"{type(error).__name__}: {error}"
            if found:
                wrong.append(f"table {number}: {found}")
    return counts, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tables", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--parquet", action="store_true")
    parser.add_argument("-o", metavar="TABLE.tsv")
    options = parser.parse_args()
    begin = time.time()
    counts, wrong = collections.Counter(), []
    with concurrent.futures.ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn")) as processes:
        end, part = options.seed + options.tables, max(1, options.tables // (8 * options.jobs))
        parts = [processes.submit(run, min(part, end - first), first, options.parquet) for first in range(options.seed, end, part)]
        for done in concurrent.futures.as_completed(parts):
            some, differing = done.result()
            counts.update(some)
            wrong += differing
            for text in differing:
                print(text, file=sys.stderr)
    ends = sorted({(writer, end) for writer, end, _, _ in counts})
    lines = ["\t".join(["type"] + [f"{end} by {writer}" for writer, end in ends])]
    for kind in PARQUET_TYPES:
        lines.append("\t".join([kind] + [f"{counts[(*e, kind, False)]}+{counts[(*e, kind, True)]}" for e in ends]))
    if options.o:
        with open(options.o, "w") as file:
            file.write("\n".join(lines) + "\n")
    else:
        print("columns without + with nulls, by file and who wrote it:\n" + "\n".join(lines).expandtabs(20))
    print(f"{options.tables} tables, {len(wrong)} that differ, {time.time() - begin:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    sys.exit(main())
