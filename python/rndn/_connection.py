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
    """Tables and a device. Calls of several threads are served one after the other."""

    def __init__(self, device: str = "auto", arch: str = "", data: str = ""):
        self._native = _rndn.Connection(device, arch or "", os.fspath(data or ""), sys.executable)

    def sql(self, text: str, params=None) -> Result:
        """Runs a query and gives its rows; of several statements, those of the last.

        `params` are values for `?` and `$1` (a sequence) or `$name` (a mapping).
        """
        _load_planner()
        native = self._native.sql(text if params is None else substitute(text, params))
        _say(native.said)
        return Result(native)

    def register(self, name: str, table) -> "Connection":
        """Makes an object a table: anything with `__arrow_c_stream__` or `__arrow_c_array__`
        (pyarrow, Polars, DuckDB, pandas, results), or a DataFrame by way of pyarrow.

        A stream is taken whole; numbers are copied when a query first reads them, so do not change
        them in place meanwhile. A table of that name is replaced.
        """
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
        self._left_out(name, self._native.add_arrow(name, table))
        return self

    def unregister(self, name: str) -> "Connection":
        """Forgets a table."""
        if not self._native.remove(name):
            raise Error(f"there is no table `{name}` to forget", "usage")
        return self

    def read_csv(self, path, name: str | None = None) -> "Connection":
        """Makes a delimited file (.csv, .tbl, .tsv) a table, by default of the file's name."""
        path = os.fspath(path)
        self._native.add_file(name or _stem(path), path)
        return self

    def read_parquet(self, path, name: str | None = None) -> "Connection":
        """Makes a Parquet file a table, by default of the file's name.

        Columns are read when a query first needs them: by pyarrow, or by the duckdb package.
        """
        path = os.fspath(path)
        name = name or _stem(path)
        empty, rows, read = _parquet(path)
        self._left_out(name, self._native.add_reader(name, path, empty, rows, read))
        return self

    def table(self, name: str) -> Result:
        """All rows of a table."""
        return self.sql(f"SELECT * FROM {_quoted(name)}")

    def tables(self) -> list:
        """The names of the tables."""
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
                stacklevel=3,
            )


def _stem(path: str) -> str:
    return os.path.splitext(os.path.basename(path))[0]


def _parquet(path: str):
    """A table without rows, the number of rows, and a function that reads columns."""
    if not os.path.exists(path):
        raise Error(f"cannot read `{path}`: no such file", "input")
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        parquet = None
    if parquet is not None:
        try:
            file = parquet.ParquetFile(path)
        except Exception as error:
            raise Error(f"cannot read `{path}`: {error}", "input") from None
        schema = file.schema_arrow

        def read(columns):
            return file.read(columns=columns).select(columns)

        return schema.empty_table(), file.metadata.num_rows, read
    try:
        import duckdb
    except ImportError:
        raise Error(f"`{path}` needs a reader: pip install pyarrow", "world") from None
    database = duckdb.connect()
    source = "read_parquet('" + path.replace("'", "''") + "')"
    try:
        rows = database.sql(f"SELECT count(*) FROM {source}").fetchall()[0][0]
        empty = database.sql(f"SELECT * FROM {source} LIMIT 0")
    except duckdb.Error as error:
        raise Error(f"cannot read `{path}`: {error}", "input") from None

    def read_columns(columns):
        names = ", ".join(_quoted(c) for c in columns)
        return database.sql(f"SELECT {names} FROM {source}")

    return empty, rows, read_columns

