"""The examples of docs/python.md and of the README, run."""

import pathlib
import re

import pyarrow
import pyarrow.parquet

ROOT = pathlib.Path(__file__).parents[2]


def write_sales():
    sales = pyarrow.table({"shop": ["a", "b"], "price": [1.5, 2.5]})
    pyarrow.parquet.write_table(sales, "sales.parquet")


def test_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_sales()
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/python.md").read_text(), re.DOTALL)
    assert len(blocks) >= 6
    names = {}
    for number, block in enumerate(blocks):
        exec(compile(block, f"docs/python.md, block {number + 1}", "exec"), names)
        if number == 0:  # a first answer, in at most five lines
            assert len(block.splitlines()) <= 5 and "2.5" in capsys.readouterr().out


def test_the_readme(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_sales()
    text = (ROOT / "README.md").read_text()
    section = text[text.index("## Python\n") :]
    code = re.search(r"```python\n(.*?)```", section, re.DOTALL)[1]
    exec(compile(code, "README.md", "exec"), {})
    assert "2.5" in capsys.readouterr().out
