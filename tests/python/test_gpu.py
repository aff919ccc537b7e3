"""Results that stay on a GPU. On a machine with one:
    tests/python/run BUILD -k test_gpu -rs
Elsewhere each test is skipped with the reason. The driver itself is the other consumer; CuPy and
PyTorch are where they are installed."""

import ctypes
import gc

import numpy
import pyarrow as pa
import pytest

import rndn

ROWS = 2_000_000  # 16 MB of BIGINT: more than what comes to the host at once


class Driver:
    """As much of the driver as another library needs."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        count = ctypes.c_int()
        self.call("cuDeviceGetCount", ctypes.byref(count))
        if count.value == 0:
            raise OSError("the driver has no GPU")
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        if code:
            raise OSError(f"{name} says {code}")

    def read(self, array):
        interface = array.__cuda_array_interface__
        host = numpy.empty(interface["shape"], interface["typestr"])
        self.call("cuMemcpyDtoH_v2", ctypes.c_void_p(host.ctypes.data),
                  ctypes.c_uint64(interface["data"][0]), ctypes.c_size_t(host.nbytes))
        return host

    def free(self):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value


@pytest.fixture(scope="module")
def driver():
    try:
        return Driver()
    except OSError as error:
        pytest.skip(f"no GPU: {error}")


@pytest.fixture
def db(driver):
    x = numpy.arange(ROWS)
    n = pa.array(x, mask=x % 3 == 0)
    with rndn.connect("cuda") as connection:
        yield connection.register("t", pa.table({"x": x, "n": n, "k": x % 7}))


def test_large_results_stay_on_the_device(driver, db):
    result = db.sql("SELECT x * 2 AS y, x + 0.5::DOUBLE AS f, n + 1 AS m, x % 2 = 0 AS b FROM t")
    assert result._native.is_on_device(0) and result._native.is_on_device(1)
    x = numpy.arange(ROWS)
    y, f = result.device_array("y"), result.device_array("f")
    assert y.__dlpack_device__() == (2, 0) and y.__cuda_array_interface__["typestr"] == "<i8"
    assert (driver.read(y) == x * 2).all() and (driver.read(f) == x + 0.5).all()
    assert result._native.is_on_device(0), "an array brings nothing to the host"
    m, valid = result.device_array("m", masked=True)
    valid = driver.read(valid).astype(bool)
    assert (valid == (x % 3 != 0)).all() and (driver.read(m)[valid] == x[valid] + 1).all()
    assert (driver.read(result.device_array("b")) == (x % 2 == 0)).all()
    assert result.fetchone()[0] == 0 and not result._native.is_on_device(0)
    assert (result.arrow()["y"].to_numpy() == x * 2).all()
    assert (numpy.from_dlpack(y, device="cpu") == x * 2).all()


def test_repr_brings_the_first_rows_alone(db):
    result = db.sql("SELECT x + 7 AS y FROM t")
    assert "(2000000 rows, the first 40 shown)" in repr(result) and "<td>7</td>" in result._repr_html_()
    assert result._native.is_on_device(0)


def test_small_results_and_columns_as_they_are(driver, db):
    result = db.sql("SELECT k, sum(x)::BIGINT AS s FROM t GROUP BY k ORDER BY k")
    assert not result._native.is_on_device(1)
    assert driver.read(result.device_array("s")).tolist() == [r[1] for r in result]
    assert (driver.read(db.table("t").device_array("x")) == numpy.arange(ROWS)).all()


def test_results_do_not_share_what_a_later_run_writes(driver, db):
    """From the third run on a query is a graph, which writes where it wrote before."""
    results = [db.sql("SELECT x * 3 AS y FROM t WHERE x >= 0") for _ in range(6)]
    arrays = [r.device_array("y") for r in results]
    assert len({a.__cuda_array_interface__["data"][0] for a in arrays}) == 6
    db.register("t", pa.table({"x": numpy.arange(ROWS) + 1}))
    assert (driver.read(db.sql("SELECT x * 3 AS y FROM t WHERE x >= 0").device_array("y"))
            == (numpy.arange(ROWS) + 1) * 3).all()
    for array in arrays:
        assert (driver.read(array) == numpy.arange(ROWS) * 3).all()


def test_memory_stays_for_its_consumers_and_goes_with_them(driver, db):
    for _ in range(4):
        db.sql("SELECT x * 5 AS y FROM t")
    gc.collect()
    before = driver.free()
    results = [db.sql("SELECT x * 5 AS y FROM t") for _ in range(8)]
    capsules = [r.device_array("y").__dlpack__(stream=2) for r in results]
    assert before - driver.free() >= 8 * 8 * ROWS
    del results
    gc.collect()
    assert before - driver.free() >= 8 * 8 * ROWS
    del capsules
    gc.collect()
    assert before - driver.free() < 8 * ROWS


def test_results_beyond_the_limit_of_memory_go_to_the_host(driver):
    x = numpy.arange(ROWS)
    with rndn.connect("cuda", device_memory="160M") as db:
        db.register("t", pa.table({"x": x}))
        results = [db.sql(f"SELECT x * {i} AS y FROM t") for i in range(12)]
        staying = sum(result._native.is_on_device(0) for result in results)
        assert 0 < staying * 8 * ROWS <= 160 << 20, "12 times 16 MB are more"
        for i, result in enumerate(results):
            assert (result.arrow()["y"].to_numpy() == x * i).all()


def test_cupy_and_torch(db):
    array = db.sql("SELECT x * 2 AS y FROM t").device_array("y")
    total, seen = (ROWS - 1) * ROWS, 0
    try:
        import cupy
        assert int(cupy.asarray(array).sum()) == int(cupy.from_dlpack(array).sum()) == total
        seen += 1
    except ImportError:
        pass
    try:
        import torch
        assert int(torch.from_dlpack(array).sum()) == total
        assert int(torch.as_tensor(array, device="cuda").sum()) == total
        seen += 1
    except ImportError:
        pass
    if not seen:
        pytest.skip("neither CuPy nor PyTorch is installed")
