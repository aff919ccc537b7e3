class Error(Exception):
    """What went wrong, as text with its place and caret where it has one.

    `fault` is whose fault it is: "input" (the query or the data), "usage" (the call), "world" (the
    machine: memory, a device, a package that is missing) or "internal" (a bug in rndn).
    """

    def __init__(self, message: str, fault: str = "input"):
        super().__init__(message)
        self.fault = fault


class Warning(UserWarning):
    """Said beside a result: a column that is left out, a device that is not there."""
