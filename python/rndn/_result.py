"""Results of queries."""

import datetime
import decimal
import html
import json
from functools import cached_property

from ._error import Error

_SHOWN = 40  # rows of repr

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
    """The rows of a query, in memory. Immutable."""

    def __init__(self, native):
        self._native = native

    @property
    def columns(self) -> list:
        """The names of the columns."""
        return list(self._native.names)

    @property
    def types(self) -> list:
        """The SQL types of the columns."""
        return list(self._native.types)

    def __len__(self) -> int:
        return self._native.rows

    @property
    def timing(self) -> Timing:
        """Where the time went."""
        return Timing(self._native)

    def __arrow_c_stream__(self, requested_schema=None):
        """The rows as a stream of Arrow's C interface. Its types are the result's own."""
        return self._native.stream()

    def arrow(self):
        """A pyarrow.Table; numbers are not copied."""
        return _needs("pyarrow", "arrow()").table(self)

    def df(self):
        """A pandas.DataFrame."""
        _needs("pandas", "df()")
        return self.arrow().to_pandas()

    def pl(self):
        """A polars.DataFrame."""
        return _needs("polars", "pl()").DataFrame(self)

    def array(self, name: str):
        """A column of numbers as an object with `__dlpack__`, which arrays of every library are
        made of without a copy: numpy.from_dlpack(result.array("x")). It is in host memory, and
        read-only. Dates are days, times and timestamps microseconds."""
        names = self._native.names
        if names.count(name) != 1:
            which = "is no" if name not in names else "are several"
            raise Error(f"there {which} column `{name}` in the result", "usage")
        return self._native.array(names.index(name))

    def fetchall(self) -> list:
        """A list of tuples: bool, int, float, Decimal, str, date, time, datetime or None."""
        columns = []
        for at, kind in enumerate(self._native.types):
            values = self._native.values(at)
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

    def fetchone(self):
        """The first row, or None."""
        rows = self.fetchall()
        return rows[0] if rows else None

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
