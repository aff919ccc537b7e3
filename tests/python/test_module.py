"""What the module asks of the machine that it is loaded on."""

import os
import re
import subprocess

import pytest

import rndn._rndn


def newest(pattern, text):
    return max(tuple(map(int, version.split("."))) for version in re.findall(pattern, text))


def test_the_module_runs_with_glibc_2_34():
    """tools/python-wheels names its wheels by it: nothing newer than that glibc, and the libstdc++ of its distributions."""
    if os.confstr("CS_GNU_LIBC_VERSION") != "glibc 2.36":
        pytest.skip("wheels are made on Debian 12: newer headers ask for newer functions")
    if "asan" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("wheels have no sanitizer")
    symbols = subprocess.run(["objdump", "-T", rndn._rndn.__file__], capture_output=True, text=True, check=True).stdout
    assert newest(r"\(GLIBC_([0-9.]+)\)", symbols) == (2, 34)
    assert newest(r"\(GLIBCXX_([0-9.]+)\)", symbols) <= (3, 4, 29)
    assert newest(r"\(CXXABI_([0-9.]+)\)", symbols) <= (1, 3, 13)
