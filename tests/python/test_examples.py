"""The examples of use beside other libraries, each run."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
BUILD = pathlib.Path(os.environ["RNDN_BUILD"])


@pytest.mark.parametrize("path", sorted(ROOT.glob("examples/python/*.py")), ids=lambda p: p.stem)
def test_an_example(path):
    arguments = [BUILD / "lib/libadbc_driver_rndn.so"] if path.stem == "by_adbc" else []
    ran = subprocess.run(
        [sys.executable, path, *arguments], capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    assert "5.5" in ran.stdout or "3" in ran.stdout


def test_the_page_names_them_all():
    page = (ROOT / "docs/python.md").read_text()
    for path in [*ROOT.glob("examples/python/*.py"), ROOT / "examples/models.sh"]:
        assert path.name in page


def test_a_script_of_the_shell():
    ran = subprocess.run(
        [ROOT / "examples/models.sh", BUILD / "bin/rndn", "cpu"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split()[-3:] == ["shop,total,n", "a,5.5,2", "all,7.5,3"]
