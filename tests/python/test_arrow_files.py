"""Arrow IPC files that are damaged, cut, or such as are not read: an error that names file and batch."""

import random
import re

import pyarrow as pa
import pyarrow.feather
import pytest

import rndn


def table(rows=300):
    return pa.table({
        "i": pa.array([None if n % 7 == 0 else n for n in range(rows)], pa.int32()),
        "s": pa.array([None if n % 5 == 0 else f"text {n}" for n in range(rows)]),
        "v": pa.array([f"a text of a view, number {n}" for n in range(rows)], pa.string_view()),
        "d": pa.array([f"kind {n % 3}" for n in range(rows)]).dictionary_encode(),
        "l": pa.array([[n] for n in range(rows)]),
        "b": pa.array([n % 2 == 0 for n in range(rows)]),
    })


def write(path, new=pa.ipc.new_file, compression=None):
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with new(str(path), table().schema, options=options) as writer:
        writer.write_table(table(), 100)


def test_columns_behind_nested_ones_are_read(tmp_path):
    write(tmp_path / "t.arrow")
    db = rndn.connect("cpu")
    got = db.sql(f"SELECT i, s, v, d, b FROM '{tmp_path}/t.arrow'").arrow()
    wanted = table().select(["i", "s", "v", "d", "b"])
    assert got.to_pydict() == wanted.to_pydict()


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_wrong_bytes_end_in_an_error_or_in_a_table(tmp_path, compression):
    good = tmp_path / "good.arrow"
    write(good, compression=compression)
    bytes_ = good.read_bytes()
    db, r, refused = rndn.connect("cpu"), random.Random(1), 0
    for number in range(120):
        bad = bytearray(bytes_)
        for _ in range(r.randint(1, 3)):
            bad[r.randrange(8, len(bad) - 6)] = r.randrange(256)
        path = tmp_path / f"bad{number}.arrow"
        path.write_bytes(bad)
        try:
            db.sql(f"SELECT count(i), min(s), max(v), min(d), count(b) FROM '{path}'").arrow()
        except rndn.Error as error:
            refused += 1
            assert f"bad{number}.arrow" in str(error), str(error)
    assert refused > 10


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_a_size_that_no_buffer_has_is_damage(tmp_path, compression):
    """Buffers that say 64 GB: refused before memory is taken."""
    good = tmp_path / "good.arrow"
    write(good, compression=compression)
    bytes_ = good.read_bytes()
    magic = {"lz4": b"\x04\x22\x4d\x18", "zstd": b"\x28\xb5\x2f\xfd"}[compression]
    at = bytes_.index(magic)
    bad = tmp_path / "bad.arrow"
    bad.write_bytes(bytes_[:at - 8] + (60 * 1024**3).to_bytes(8, "little") + bytes_[at:])
    with pytest.raises(rndn.Error, match="damaged"):
        rndn.connect("cpu").sql(f"SELECT * FROM '{bad}'").arrow()


@pytest.mark.parametrize("new", [pa.ipc.new_file, pa.ipc.new_stream])
def test_a_file_that_is_cut_is_refused(tmp_path, new):
    good = tmp_path / "good.arrow"
    write(good, new)
    bytes_ = good.read_bytes()
    db = rndn.connect("cpu")
    for size in [0, 3, 8, 100, len(bytes_) // 2, len(bytes_) * 3 // 4, len(bytes_) - 9, len(bytes_) - 1]:
        path = tmp_path / f"cut{size}.arrow"
        path.write_bytes(bytes_[:size])
        with pytest.raises(rndn.Error, match=f"cut{size}.arrow"):
            db.sql(f"SELECT count(*) FROM '{path}'").arrow()


def test_damage_is_named_by_batch_and_column(tmp_path):
    path = tmp_path / "t.arrow"
    write(path)
    bytes_ = path.read_bytes()
    path.write_bytes(bytes_.replace(b"text 231", b"text\xff231"))
    with pytest.raises(rndn.Error, match=re.escape("t.arrow: batch 2: column `s`: a text is no UTF-8")):
        rndn.connect("cpu").sql(f"SELECT min(s) FROM '{path}'").arrow()


def test_what_is_not_read_is_named(tmp_path):
    db = rndn.connect("cpu")
    plain = pa.table({"d": pa.array(["a", "b"]).dictionary_encode()})
    more = pa.table({"d": pa.array(["a", "c"]).dictionary_encode()})
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    both = pa.concat_tables([plain, pa.table({"d": pa.DictionaryArray.from_arrays(
        pa.array([2], pa.int32()), pa.array(["a", "b", "c"]))})])
    with pa.ipc.new_stream(str(tmp_path / "delta.arrows"), both.schema, options=options) as writer:
        writer.write_table(both)
    with pytest.raises(rndn.Error, match="delta.arrows: batch 1: its dictionaries grow"):
        db.sql(f"SELECT count(*) FROM '{tmp_path}/delta.arrows'").arrow()
    # One that takes another's place is read.
    with pa.ipc.new_stream(str(tmp_path / "new.arrows"), plain.schema) as writer:
        writer.write_table(plain)
        writer.write_table(more)
    assert db.sql(f"SELECT d FROM '{tmp_path}/new.arrows'").fetchall() == [("a",), ("b",), ("a",), ("c",)]
    pa.feather.write_feather(pa.table({"x": [1]}), str(tmp_path / "old.feather"), version=1)
    with pytest.raises(rndn.Error, match="old.feather: .*first version"):
        db.sql(f"SELECT x FROM '{tmp_path}/old.feather'").arrow()
    other = pa.table({"y": [1]})
    for name, t in (("a", pa.table({"x": [1]})), ("b", other)):
        (tmp_path / "many").mkdir(exist_ok=True)
        pa.feather.write_feather(t, str(tmp_path / "many" / f"{name}.arrow"))
    with pytest.raises(rndn.Error, match="has other columns than"):
        db.sql(f"SELECT * FROM '{tmp_path}/many/*.arrow'").arrow()
