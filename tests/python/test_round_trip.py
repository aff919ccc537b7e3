"""A few of the random tables of round_trip.py; RNDN_RANDOM_TABLES of each sort, where that is set."""

import os

import round_trip

TABLES = os.environ.get("RNDN_RANDOM_TABLES")


def test_random_tables_come_back():
    counts, wrong = round_trip.run(int(TABLES or 45), 0)
    assert not wrong, "\n".join(wrong)
    read = {end for writer, end, _, _ in counts if writer != "rndn"}
    assert read == {"parquet", "arrow", "arrows", "feather", "csv.gz", "csv.zst", "jsonl", "ndjson.gz"}
    written = {end for writer, end, _, _ in counts if writer == "rndn"}
    assert written == {"parquet", "arrow", "arrows", "csv", "jsonl"}
    assert {nulls for _, _, _, nulls in counts} == {False, True}


def test_random_parquet_tables_come_back():
    counts, wrong = round_trip.run(int(TABLES or 60), 1_000_000, only_parquet=True)
    assert not wrong, "\n".join(wrong)
    assert {writer for writer, _, _, _ in counts} == {"pyarrow", "duckdb"}
    assert {kind for _, _, kind, _ in counts} == set(round_trip.PARQUET_TYPES) - {"decimal256"}
