"""Results of queries."""

import datetime
import decimal
import html
import json
import threading
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from ._array import Array
from ._error import Error

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

_SHOWN = 40  # rows of repr
_TOGETHER = 4096  # rows that are made objects of Python's at a time

_EPOCH = datetime.datetime(1970, 1, 1)
_EPOCH_UTC = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_EPOCH_ORDINAL = datetime.date(1970, 1, 1).toordinal()

# From what the module gives to what Python calls it, by the first word of the SQL type.
_CONVERSIONS = {
    "DECIMAL": decimal.Decimal,
    "DATE": lambda days: datetime.date.fromordinal(days + _EPOCH_ORDINAL),
    "TIME": lambda us: (_EPOCH + datetime.timedelta(microseconds=us)).time(),
    "TIMESTAMP": lambda us: _EPOCH + datetime.timedelta(microseconds=us),
    "TIMESTAMP WITH TIME ZONE": lambda us: _EPOCH_UTC + datetime.timedelta(microseconds=us),
    "INTERVAL": lambda v: datetime.timedelta(days=30 * v[0] + v[1], microseconds=v[2]),
}


def _needs(package: str, method: str):
    try:
        return __import__(package)
    except ImportError:
        raise Error(f"{method} needs {package}: pip install {package}", "world") from None


class Timing:
    """Where the time of a query went, phase by phase."""

    def __init__(self, native):
        self._native = native

    @cached_property
    def report(self) -> dict:
        """The whole report, as `rndn --time=json` has it."""
        return json.loads(self._native.report("json"))

    @property
    def text(self) -> str:
        """A table for people."""
        return self._native.report("text")

    def html(self) -> str:
        """A page for a browser."""
        return self._native.report("html")

    def __repr__(self) -> str:
        return self.text


class Result:
    """The rows of a query, in memory; a result outlives its connection. Its values do not change.

    Iteration gives all rows, each time anew. `fetchone`, `fetchmany` and `fetchall` go on where the
    last of them stopped, as those of DuckDB and sqlite3 do. A row is a tuple of bool, int, float,
    Decimal, str, date, time, datetime, or None for NULL; the values of TIMESTAMPTZ are in UTC.
    """

    def __init__(self, native):
        self._native = native
        self._fetched, self._lock = 0, threading.Lock()

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self._native.names)

    @property
    def types(self) -> list[str]:
        """The SQL types of the columns, as `DECIMAL(15,2)`."""
        return list(self._native.types)

    @property
    def description(self) -> list[tuple]:
        """Name and SQL type of each column, and five times None: what DB-API 2.0 asks for."""
        return [(n, t, *[None] * 5) for n, t in zip(self._native.names, self._native.types)]

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and columns there are."""
        return self._native.rows, len(self._native.names)

    def __len__(self) -> int:
        return self._native.rows

    def __iter__(self) -> Iterator[tuple]:
        for first in range(0, len(self), _TOGETHER):
            yield from self._rows(first, _TOGETHER)

    @property
    def timing(self) -> Timing:
        """Where the time went."""
        return Timing(self._native)

    @property
    def proof(self) -> str:
        """What `prove=True` compared and what it could not, in lines; empty without it."""
        return self._native.proof

    def __arrow_c_stream__(self, requested_schema=None) -> object:
        """The rows as a stream of Arrow's C interface. Its types are the result's own.

        It comes in batches of 122,880 rows. Each is made when it is asked for, so that who reads
        some of them pays for no others: `pyarrow.RecordBatchReader.from_stream(result)`.
        """
        return self._native.stream()

    def arrow(self) -> "pyarrow.Table":
        """A pyarrow.Table; numbers are not copied: both keep the memory."""
        return _needs("pyarrow", "arrow()").table(self)

    def df(self) -> "pandas.DataFrame":
        """A pandas.DataFrame."""
        _needs("pandas", "df()")
        return self.arrow().to_pandas()

    def pl(self) -> "polars.DataFrame":
        """A polars.DataFrame."""
        return _needs("polars", "pl()").DataFrame(self)

    def array(self, name: str, masked: bool = False):
        """A column of numbers in host memory as an `Array`, read-only and not copied:
        numpy.from_dlpack(result.array("x")).

        Dates are days, times and timestamps microseconds since 1970, each in the width of its SQL
        type. NULLs are an error, unless `masked` asks for a pair: the values, of which those that
        are NULL have any value, and an array of bool that is true where there is a value.
        """
        return self._arrays(name, masked, False)

    def device_array(self, name: str, masked: bool = False):
        """`array` in the memory of the device that ran the query: on a GPU an `Array` of CUDA's for
        CuPy, PyTorch, Numba and others; with the simulator, or `cpu`, one of the host.

        Large columns of results stay on the GPU until they are read on the host, and are not copied
        here; others are sent. The array is complete: no stream has to wait for it. The GPU's memory
        stays until the result and all that was made of the array are gone. What others write into it
        shows in the result.
        """
        return self._arrays(name, masked, True)

    def _arrays(self, name: str, masked: bool, on_device: bool):
        names = self._native.names
        if names.count(name) != 1:
            which = "is no" if name not in names else "are several"
            raise Error(f"there {which} column `{name}` in the result", "usage")
        at = names.index(name)
        values = Array(self._native, at, False, on_device)
        if masked:
            return values, Array(self._native, at, True, on_device)
        if missing := self._native.missing(at):
            raise Error(
                f"column `{name}` has {missing} NULLs, which an array of numbers cannot hold: "
                "masked=True gives a mask beside it",
                "usage",
            )
        return values

    def fetchone(self) -> tuple | None:
        """The next row; None after the last."""
        rows = self.fetchmany(1)
        return rows[0] if rows else None

    def fetchmany(self, size: int = 1) -> list[tuple]:
        """The next rows, `size` at most; none after the last."""
        if size < 0:
            raise Error(f"size is a number of rows, not {size}", "usage")
        with self._lock:
            rows = self._rows(self._fetched, size)
            self._fetched += len(rows)
        return rows

    def fetchall(self) -> list[tuple]:
        """The rows that were not fetched yet."""
        return self.fetchmany(len(self))

    def _rows(self, first: int, count: int) -> list[tuple]:
        columns = []
        for at, kind in enumerate(self._native.types):
            values = self._native.values(at, first, count)
            convert = _CONVERSIONS.get(kind.split("(")[0])
            if convert:
                try:
                    values = [None if v is None else convert(v) for v in values]
                except (ValueError, OverflowError):
                    raise Error(
                        f"column `{self._native.names[at]}` has a {kind} that Python's datetime "
                        "cannot hold; arrow() can"
                    ) from None
            columns.append(values)
        return list(zip(*columns))

    def __repr__(self) -> str:
        text = self._native.table(_SHOWN).rstrip("\n")
        if len(self) > _SHOWN:
            text = text[: text.rindex("\n") + 1] + f"({len(self)} rows, the first {_SHOWN} shown)"
        return text

    def _repr_html_(self) -> str:
        def row(cells, tag):
            return "<tr>" + "".join(f"<{tag}>{c}</{tag}>" for c in cells) + "</tr>"

        heads = (
            f"{html.escape(n)}<br><small>{html.escape(t)}</small>"
            for n, t in zip(self._native.names, self._native.types)
        )
        body = "".join(
            row(("<i>NULL</i>" if c is None else html.escape(c) for c in cells), "td")
            for cells in self._native.texts(_SHOWN)
        )
        shown = f", the first {_SHOWN} shown" if len(self) > _SHOWN else ""
        return f"<table>{row(heads, 'th')}{body}</table><p>{len(self)} rows{shown}</p>"
