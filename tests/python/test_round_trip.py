"""A few of the random tables of round_trip.py."""

import round_trip


def test_random_tables_come_back():
    counts, wrong = round_trip.run(60, 0)
    assert not wrong, "\n".join(wrong)
    assert {end for _, end, _, _ in counts} == {"parquet", "arrow", "arrows", "feather", "csv.gz", "csv.zst",
                                             "jsonl", "ndjson.gz"}
    assert {nulls for _, _, _, nulls in counts} == {False, True}
