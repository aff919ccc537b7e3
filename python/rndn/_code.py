"""The compiler without a device."""

from . import _rndn
from ._connection import Connection, _load_planner


class Code:
    """A program compiled for one target; each form is made when it is asked for."""

    def __init__(self, native, text: str, is_sql: bool, arch: str):
        self._native, self._text, self._is_sql, self._arch = native, text, is_sql, arch

    def _emit(self, stage: str) -> bytes:
        return self._native.emit(self._text, self._is_sql, self._arch, stage)

    @property
    def hir(self) -> str:
        """The HorseIR program with its types."""
        return self._emit("typed").decode()

    @property
    def ptx(self) -> str:
        """PTX."""
        return self._emit("ptx").decode()

    @property
    def sass(self) -> str:
        """The machine code as text."""
        return self._emit("sass").decode()

    @property
    def cubin(self) -> bytes:
        """The file that the driver loads."""
        return self._emit("cubin")


def compile(text: str, arch: str, connection: Connection | None = None) -> Code:
    """Compiles HorseIR (it begins with `module`) or a SQL query over the connection's tables."""
    connection = connection or Connection("cpu")
    first = next(
        (line for line in map(str.strip, text.splitlines()) if line and not line.startswith("//")),
        "",
    )
    is_sql = not first.startswith("module")
    if is_sql:
        _load_planner()
    code = Code(connection._native, text, is_sql, arch)
    code.hir  # what is wrong with the text is said now
    return code


def assemble(ptx: str, arch: str = "", level: int = 3) -> bytes:
    """PTX to a cubin, by default for the target that the text names."""
    return _rndn.assemble(ptx, arch, level)


def disassemble(cubin: bytes) -> str:
    """The machine code of a cubin as text, kernel by kernel."""
    return _rndn.disassemble(cubin)
