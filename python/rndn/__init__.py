"""SQL over Arrow tables, DataFrames and files, compiled for NVIDIA GPUs.

    import rndn
    db = rndn.connect()
    db.register("t", {pandas, Polars, pyarrow ..})
    db.sql("SELECT k, sum(x) FROM t GROUP BY k")
"""

from ._array import Array
from ._code import Code, assemble, compile, disassemble
from ._connection import Connection
from ._error import Error, Warning
from ._result import Result, Timing
from ._rndn import version as _version

__version__ = _version()
__all__ = [
    "Array",
    "Code",
    "Connection",
    "Error",
    "Result",
    "Timing",
    "Warning",
    "assemble",
    "compile",
    "connect",
    "disassemble",
]


def connect(
    device: str = "auto",
    arch: str = "",
    data: str = "",
    timeout: float | None = None,
    max_memory: int | str | None = None,
    device_memory: int | str = "",
) -> Connection:
    """A connection to a device: "auto" (a GPU, else the simulator), "cuda", "cuda:N", "sim" or
    "cpu" (the reference interpreter).

    `arch` is the target to compile for, by default the device's own ("sm_86" for the simulator).
    `data` is what `rndn --data` takes: a folder, a file or `tpch:SF`.
    `timeout` is how many seconds a statement may take, `max_memory` how much host memory its values
    may take: bytes, or a text such as "4G"; `device_memory`, how much of the device's memory may be
    in use at once.
    """
    return Connection(device, arch, data, timeout, max_memory, device_memory)
