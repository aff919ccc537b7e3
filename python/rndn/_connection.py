"""Connections: tables of one's own, and SQL over them on one device."""

import os
import sys
import warnings

from . import _rndn
from ._error import Error, Warning
from ._parameters import substitute
from ._result import Result


def _say(text: str) -> None:
    for line in filter(None, text.splitlines()):
        warnings.warn(line, Warning, stacklevel=3)


def _load_planner() -> None:
    # The planner is DuckDB's library; that of this interpreter serves when it is loaded. Without
    # it the runtime looks further and says what it tried.
    try:
        import duckdb  # noqa: F401
    except ImportError:
        pass


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class Connection:
    """Tables and a device. Calls of several threads are served one after the other.

    What goes wrong is an `Error`. `close()`, or the end of a `with` block, gives back the tables and
    the device; results that are there stay.
    """

    def __init__(
        self,
        device: str = "auto",
        arch: str = "",
        data: str = "",
        timeout: float | None = None,
        max_memory: int | str | None = None,
        device_memory: int | str = "",
    ):
        self._timeout, self._max_memory = timeout, max_memory
        if data:
            _load_planner()
        self._opened: _rndn.Connection | None = _rndn.Connection(
            device, arch or "", os.fspath(data or ""), str(device_memory), sys.executable
        )

    @property
    def _native(self) -> _rndn.Connection:
        if self._opened is None:
            raise Error("the connection is closed", "usage")
        return self._opened

    def close(self) -> None:
        """Gives back the tables and the device, at the end of a call that another thread makes.
        Later calls are errors, but for `close`."""
        self._opened = None

    def __enter__(self) -> "Connection":
        self._native  # a closed one cannot be entered
        return self

    def __exit__(self, *raised) -> None:
        self.close()

    def sql(
        self,
        text: str,
        params=None,
        timeout: float | None = None,
        max_memory: int | str | None = None,
        prove: bool = False,
    ) -> Result:
        """Runs a query and gives its rows; of several statements, those of the last. A statement
        without rows gives a result without columns.

        `params` are values for `?` and `$1` (a sequence) or `$name` (a mapping). `timeout` (seconds)
        and `max_memory` (bytes, or a text such as "4G") are those of `connect`, for this call.

        `prove` repeats each query by other kernels and on the reference interpreter, as
        `rndn sql --prove` does: a difference is an `Error` whose fault is "internal", and
        `Result.proof` says what was compared.
        """
        native = self._native
        _load_planner()
        if timeout is None:
            timeout = self._timeout
        if max_memory is None:
            max_memory = self._max_memory
        if timeout is not None and not timeout > 0:
            raise Error(f"timeout is a number of seconds above 0, not {timeout}", "usage")
        made = native.sql(
            text if params is None else substitute(text, params),
            timeout or 0,
            "" if max_memory is None else str(max_memory),
            bool(prove),
        )
        _say(made.said)
        return Result(made)

    def execute(self, text: str, params=None) -> Result:
        """`sql`, by the name that DuckDB and sqlite3 have for it."""
        return self.sql(text, params)

    def register(self, name: str, table) -> "Connection":
        """Makes an object a table: anything with `__arrow_c_stream__` or `__arrow_c_array__`
        (pyarrow, Polars, DuckDB, pandas, results), or a DataFrame by way of pyarrow.

        A stream is taken whole; numbers are copied when a query first reads them, so do not change
        them in place meanwhile. The connection keeps the object's memory until the table is
        replaced or forgotten. A table of that name is replaced.
        """
        native = self._native
        if not (hasattr(table, "__arrow_c_stream__") or hasattr(table, "__arrow_c_array__")):
            if not (type(table).__module__.partition(".")[0] == "pandas"):
                raise Error(
                    f"a {type(table).__name__} is no table: expected an object with "
                    "__arrow_c_stream__ or __arrow_c_array__",
                    "usage",
                )
            try:
                import pyarrow
            except ImportError:
                raise Error("this DataFrame needs pyarrow: pip install pyarrow", "world") from None
            table = pyarrow.Table.from_pandas(table, preserve_index=False)
        self._left_out(name, native.add_arrow(name, table))
        return self

    def unregister(self, name: str) -> "Connection":
        """Forgets a table."""
        if not self._native.remove(name):
            raise Error(f"there is no table `{name}` to forget", "usage")
        return self

    def read_csv(self, path, name: str | None = None) -> "Connection":
        """Makes delimited text a table, by default of the file's name: a file (.csv, .tbl, .tsv,
        also .gz and .zst), a folder or a pattern (`sales/*.csv`)."""
        return self._read(path, name)

    def read_parquet(self, path, name: str | None = None) -> "Connection":
        """Makes Parquet a table, by default of the file's name: a file, a folder, also one that is
        partitioned as Hive does, or a pattern. Columns are read when a query first needs them.
        """
        return self._read(path, name)

    def read_json(self, path, name: str | None = None) -> "Connection":
        """Makes JSON or JSON lines a table, by default of the file's name."""
        return self._read(path, name)

    def _read(self, path, name: str | None) -> "Connection":
        _load_planner()
        path = os.fspath(path)
        name = name or _stem(path)
        self._left_out(name, self._native.add_file(name, path))
        return self

    def table(self, name: str) -> Result:
        """All rows of a table or a view."""
        return self.sql(f"SELECT * FROM {_quoted(name)}")

    def tables(self) -> list[str]:
        """The names of the tables and views."""
        return self._native.tables()

    def explain(self, text: str) -> str:
        """What becomes of a query: its HorseIR program, and the kernels that this is cut into."""
        _load_planner()
        program = self._native.translate(text, False)
        kernels = self._native.emit(program, False, "sm_86", "outline").decode()
        return f"// the program\n{program}\n// the same with its kernels\n{kernels}"

    def plan(self, text: str) -> str:
        """The plan of a query, as the planner's JSON."""
        _load_planner()
        return self._native.translate(text, True)

    @staticmethod
    def _left_out(name: str, columns) -> None:
        for column in columns:
            warnings.warn(
                f"table `{name}`: column {column}, which rndn has no type for; it is left out",
                Warning,
                stacklevel=4,
            )


def _stem(path: str) -> str:
    name = os.path.basename(path.rstrip("/"))
    for packed in (".gz", ".zst"):
        name = name.removesuffix(packed)
    return os.path.splitext(name)[0]
