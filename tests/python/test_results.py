"""Results row by row and as arrays, and connections that are closed."""

import ast
import ctypes
import datetime
import gc
import inspect
import os
import pathlib
import re
import subprocess
import sys
import textwrap

import numpy
import pyarrow as pa
import pytest

import rndn

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def db():
    with rndn.connect("cpu") as connection:
        yield connection.register("t", pa.table({"x": [1, 2, 3, None], "k": ["a", "b", "c", "d"]}))


def test_rows_are_fetched_one_after_the_other(db):
    result = db.execute("SELECT x, k FROM t WHERE x > ? ORDER BY x", [0])
    assert result.fetchone() == (1, "a")
    assert result.fetchmany() == [(2, "b")]
    assert list(result) == [(1, "a"), (2, "b"), (3, "c")], "iteration begins anew"
    assert result.fetchall() == [(3, "c")]
    assert (result.fetchone(), result.fetchmany(5), result.fetchall()) == (None, [], [])
    assert list(zip(*result)) == [(1, 2, 3), ("a", "b", "c")]
    with pytest.raises(rndn.Error, match="size is a number of rows, not -1") as error:
        result.fetchmany(-1)
    assert error.value.fault == "usage"


def test_many_rows_are_iterated_in_pieces(db):
    n = 10_000
    result = db.register("n", pa.table({"x": list(range(n))})).table("n")
    assert [x for (x,) in result] == list(range(n))
    assert [len(result.fetchmany(4096)) for _ in range(4)] == [4096, 4096, 1808, 0]


def test_results_say_what_they_hold(db):
    result = db.sql("SELECT x, k FROM t")
    assert (len(result), result.shape) == (4, (4, 2))
    assert result.description == [("x", "BIGINT", *[None] * 5), ("k", "VARCHAR", *[None] * 5)]
    nothing = db.sql("CREATE TABLE made AS SELECT 1 AS a")
    assert (nothing.shape, nothing.description, nothing.fetchone(), list(nothing)) == (
        (0, 0), [], None, [])


def test_intervals_are_spans_of_time(db):
    query = "SELECT INTERVAL '1 month 2 days 3 microseconds' AS i, TIMESTAMP '2024-01-02' - TIMESTAMP '2024-01-01' AS d"
    assert db.sql(query).fetchall() == [
        (datetime.timedelta(days=32, microseconds=3), datetime.timedelta(days=1))]


def test_a_closed_connection_says_so(db):
    result = db.table("t")
    with db as entered:
        assert entered is db
    db.close()
    for call in (lambda: db.sql("SELECT 1"), lambda: db.execute("SELECT 1"), db.tables,
                 lambda: db.register("u", pa.table({"x": [1]})), lambda: db.table("t"),
                 lambda: db.unregister("t"), lambda: db.read_csv("a.csv"),
                 lambda: db.explain("SELECT 1"), lambda: db.plan("SELECT 1"),
                 lambda: rndn.compile("SELECT 1", "sm_90", db), db.__enter__):
        with pytest.raises(rndn.Error, match="the connection is closed") as error:
            call()
        assert error.value.fault == "usage"
    assert len(result.fetchall()) == 4, "a result outlives its connection"


def test_an_error_within_the_block_is_not_swallowed():
    with pytest.raises(ZeroDivisionError):
        with rndn.connect("cpu"):
            1 / 0


@pytest.mark.parametrize("device", ["cpu", "sim"])
def test_arrays_have_masks(device):
    table = pa.table({"x": pa.array([1, None, 3], pa.int16()), "b": [True, False, None]})
    db = rndn.connect(device).register("t", table)
    result = db.sql("SELECT x, b, x IS NULL AS n FROM t")
    for get in (result.array, result.device_array):
        values, valid = map(numpy.from_dlpack, get("x", masked=True))
        assert values.dtype == numpy.int16 and valid.dtype == bool
        assert valid.tolist() == [True, False, True] and values[valid].tolist() == [1, 3]
        values, valid = map(numpy.from_dlpack, get("b", masked=True))
        assert values[valid].tolist() == [True, False]
        assert numpy.from_dlpack(get("n", masked=True)[1]).all()
        with pytest.raises(rndn.Error, match="`x` has 1 NULLs.*masked=True"):
            get("x")
        array = get("n")
        # Without a GPU the device's memory is the host's.
        assert array.__dlpack_device__() == (1, 0) and "3 |b1 on host" in repr(array)
        assert len(array) == 3 and not hasattr(array, "__cuda_array_interface__")
        with pytest.raises(BufferError):
            array.__dlpack__(dl_device=(2, 0))
        with pytest.raises(BufferError):
            array.__dlpack__(copy=True)


def test_arrays_of_no_rows():
    db = rndn.connect("cpu").register("t", pa.table({"x": [1.5]}))
    result = db.sql("SELECT x FROM t WHERE x > 2")
    assert numpy.from_dlpack(result.array("x")).shape == (0,)
    assert [numpy.from_dlpack(a).size for a in result.device_array("x", masked=True)] == [0, 0]


FAKE = f"{os.environ['RNDN_BUILD']}/fake_cuda"


@pytest.mark.skipif(not os.path.exists(f"{FAKE}/libcuda.so.1"),
                    reason="the driver without a GPU (target fake_cuda) is not built")
def test_arrays_of_a_gpu_are_cudas():
    """A driver whose device memory is the host's and whose kernels do nothing: columns as they are
    need none. Columns come from files here: no other package needs the driver."""
    program = f"""
        import ctypes, gc, threading
        import pyarrow as pa, rndn
        fake = ctypes.CDLL({FAKE!r} + "/libcuda.so.1")
        fake.fake_cuda_log.restype = ctypes.c_char_p
        fake.fake_cuda_held.restype = ctypes.c_long

        def log():
            text = fake.fake_cuda_log().decode()
            fake.fake_cuda_reset()
            return text

        def at(interface, kind):
            return list((kind * interface["shape"][0]).from_address(interface["data"][0]))

        db = rndn.connect("cuda")
        db.register("t", pa.table({{"x": [1, 2, 3], "f": [0.5, None, 2.5]}}))
        result = db.table("t")
        array = result.device_array("x")
        assert array.__dlpack_device__() == (2, 0)
        one = array.__cuda_array_interface__
        assert (one["shape"], one["typestr"], one["version"]) == ((3,), "<i8", 3), one
        assert one["stream"] is None and one["strides"] is None and one["data"][1] is False
        assert at(one, ctypes.c_int64) == [1, 2, 3]
        assert result.device_array("x").__cuda_array_interface__["data"] == one["data"], "sent once"
        assert "on cuda:0" in repr(array)
        values, valid = result.device_array("f", masked=True)
        assert at(valid.__cuda_array_interface__, ctypes.c_uint8) == [1, 0, 1]
        assert at(values.__cuda_array_interface__, ctypes.c_double)[::2] == [0.5, 2.5]

        # The rules of streams: any is fine, since nothing is being computed; 0 is nobody's.
        for stream in (None, -1, 1, 2, 12345):
            capsule = array.__dlpack__(stream=stream)
        try:
            array.__dlpack__(stream=0)
            raise SystemExit("a stream of 0 was taken")
        except ValueError:
            pass
        import numpy
        assert numpy.from_dlpack(array, device="cpu").tolist() == [1, 2, 3], "on the host if asked"

        # Memory stays for what was made of it, also of a result and a connection that are gone.
        log()
        del result, values, valid, array
        db.close()
        del db
        gc.collect()
        assert at(one, ctypes.c_int64) == [1, 2, 3]
        assert "cuDevicePrimaryCtxRelease" not in log(), "the capsule keeps the context"
        del capsule
        gc.collect()
        said = log()
        assert "cuMemFree" in said and "cuDevicePrimaryCtxRelease" in said, said
        assert fake.fake_cuda_held() == 0

        # Each thread that calls makes the context its own.
        db = rndn.connect("cuda").register("t", pa.table({{"x": [1, 2, 3]}}))
        assert db.table("t").fetchall() == [(1,), (2,), (3,)]
        log()
        got = []
        def use():
            array = db.table("t").device_array("x")
            got.append(at(array.__cuda_array_interface__, ctypes.c_int64))
        for thread in [threading.Thread(target=use) for _ in range(2)]:
            thread.start(); thread.join()
        assert got == [[1, 2, 3]] * 2
        assert log().count("cuCtxSetCurrent") >= 2
    """
    path = os.pathsep.join(filter(None, [FAKE, os.environ.get("LD_LIBRARY_PATH")]))
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True,
                          text=True, env={**os.environ, "LD_LIBRARY_PATH": path})
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_gpu_that_is_not_there_stays_so():
    program = """
        import pyarrow as pa, rndn
        db = rndn.connect("cuda").register("t", pa.table({"x": [1, 2]}))
        for _ in range(2):
            try:
                db.sql("SELECT x + 1 FROM t")
                raise SystemExit("it ran on something else")
            except rndn.Error as error:
                assert error.fault == "world", error.fault
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True,
                          text=True, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
    assert done.returncode == 0, done.stdout + done.stderr


def test_everything_public_is_described():
    for name in rndn.__all__:
        thing = getattr(rndn, name)
        assert thing.__doc__, name
        for member, value in vars(thing).items() if inspect.isclass(thing) else ():
            if member.startswith("_") or not (callable(value) or hasattr(value, "__get__")):
                continue
            assert value.__doc__, f"{name}.{member}"
            hints = getattr(value, "fget", value)
            if inspect.isfunction(hints) and (name, member) not in (("Result", "array"),
                                                                    ("Result", "device_array")):
                assert "return" in hints.__annotations__, f"{name}.{member}"


def test_the_stubs_are_those_of_the_module():
    def members(owner):
        return {name for name in vars(owner) if not name.startswith("_")}

    stub = ast.parse((ROOT / "python/rndn/_rndn.pyi").read_text())
    classes = {c.name: c for c in stub.body if isinstance(c, ast.ClassDef)}
    functions = {f.name for f in stub.body if isinstance(f, ast.FunctionDef)}
    from rndn import _rndn
    assert members(_rndn) == classes.keys() | functions
    for name, declared in classes.items():
        said = {f.name for f in declared.body if isinstance(f, ast.FunctionDef)} - {"__init__"}
        assert members(getattr(_rndn, name)) == said, name


def listed():
    """docs/python.tsv: what there is, how it is called, and the first sentence of its docstring."""

    def row(name, thing):
        call = name
        if inspect.isfunction(thing):
            arguments = list(inspect.signature(thing).parameters.values())
            call += f"({', '.join(a.name for a in arguments if a.name != 'self')})"
        sentence = re.split(r"(?<=\.)\s|:\n|\n\n", inspect.getdoc(thing))[0]
        return f"{call}\t{' '.join(sentence.split())}\n"

    rows = "what\tmeaning\n"
    for name in rndn.__all__:
        thing = getattr(rndn, name)
        rows += row(name, thing)
        if not inspect.isclass(thing) or issubclass(thing, Exception):
            continue
        for member, value in vars(thing).items():
            if not member.startswith("_") and not isinstance(value, staticmethod):
                rows += row(f"{name}.{member}", value)
    return rows


def test_the_list_of_methods_is_the_packages():
    """RNDN_RECORD=1 tests/python/run BUILD -k list_of_methods writes it anew."""
    path = ROOT / "docs/python.tsv"
    if "RNDN_RECORD" in os.environ:
        path.write_text(listed())
    assert path.read_text() == listed()
