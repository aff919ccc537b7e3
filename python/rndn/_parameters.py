"""Parameters of SQL: `?`, `$1` and `$name` outside of texts, names and comments become literals.

The planner binds no values, so that each statement is planned with its own; the values are quoted
here and never read as SQL.
"""

import datetime
import decimal
import math
import re

from ._error import Error

# What a parameter may look like, and what hides one.
_TOKENS = re.compile(
    r"""(?P<skip>'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|/\*.*?\*/|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$)
      |(?P<next>\?)|\$(?P<number>[0-9]+)\b|\$(?P<name>[A-Za-z_]\w*)""",
    re.VERBOSE | re.DOTALL,
)


def literal(value) -> str:
    """The value as SQL writes it."""
    if value is None:
        return "NULL"
    if hasattr(value, "item") and not isinstance(value, (str, bytes)):
        value = value.item()  # a number of NumPy's
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"({value})"
    if isinstance(value, float):
        if math.isfinite(value):
            return f"CAST({value!r} AS DOUBLE)"
        return f"CAST('{value}' AS DOUBLE)"
    if isinstance(value, decimal.Decimal):
        if not value.is_finite():
            raise Error(f"a parameter is {value}, which is no DECIMAL", "usage")
        return f"({value:f})"
    if isinstance(value, datetime.datetime):
        if value.tzinfo is None:
            return f"TIMESTAMP '{value.isoformat(' ')}'"
        utc = value.astimezone(datetime.timezone.utc)
        return f"TIMESTAMPTZ '{utc.isoformat(' ')}'"
    if isinstance(value, datetime.date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, datetime.time) and value.tzinfo is None:
        return f"TIME '{value.isoformat()}'"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    kind = type(value).__name__
    raise Error(f"a parameter is of type {kind}, which SQL has no literal for", "usage")


def substitute(text: str, parameters) -> str:
    """The text with the values of a sequence (`?`, `$1`) or of a mapping (`$name`) in it."""
    named = hasattr(parameters, "keys")
    values = dict(parameters) if named else list(parameters)
    used = set()
    following = iter(range(len(values)))

    def replace(match: re.Match) -> str:
        if match["skip"] is not None:
            return match[0]
        if match["name"] is not None:
            key = match["name"]
            if not named or key not in values:
                raise Error(f"there is no value for the parameter ${key}", "usage")
        else:
            key = next(following, None) if match["next"] else int(match["number"]) - 1
            if named or key is None or not 0 <= key < len(values):
                raise Error(f"there is no value for the parameter {match[0]}", "usage")
        used.add(key)
        return literal(values[key])

    out = _TOKENS.sub(replace, text)
    unused = [k for k in (values if named else range(len(values))) if k not in used]
    if unused:
        which = f"${unused[0]}" if named else f"value {unused[0] + 1}"
        raise Error(f"the statement has no place for {which} of its parameters", "usage")
    return out
