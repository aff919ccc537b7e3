#!/usr/bin/env python3
"""CONTRIBUTING.md's recipe "Add an encoding" holds: a row and one file are enough, and neither may lack.

    tests/encodings/recipe.py COMPILER FLAG..

In a copy of ptx/encodings the table gets a row `another`, and then
  no file       nothing defines the row's function, which the table calls: it does not link
  a full file   packed.cpp under the new name: all sources of the copy compile, and the row is defined
  an empty file the same without its functions: it does not compile, and the compiler names each
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
COMPILE = sys.argv[1:]


def compiles(source, folder, *more):
    return subprocess.run([*COMPILE, '-I', str(folder), '-I', str(ROOT), '-w', *more, str(source)],
                          capture_output=True, text=True)


def check(condition, what):
    if not condition:
        sys.exit(f'recipe: {what}')


def without(text, function):
    """The class without the body of that function."""
    begin = re.search(rf'^  [^\n/]*\b{function}\([^;{{]*override \{{', text, re.M)
    check(begin, f'packed.cpp has no function `{function}`')
    depth, at = 1, begin.end()
    while depth:
        depth += {'{': 1, '}': -1}.get(text[at], 0)
        at += 1
    return text[:begin.start()] + text[at:]


with tempfile.TemporaryDirectory(prefix='rndn-recipe-') as temporary:
    root = pathlib.Path(temporary)
    folder = root / 'ptx' / 'encodings'
    shutil.copytree(ROOT / 'ptx' / 'encodings', folder)
    table = folder / 'encodings.def'
    rows = table.read_text()
    row = 'ENCODING(packed)\n'
    check(row in rows, 'encodings.def has no row `packed`')
    table.write_text(rows.replace(row, row + 'ENCODING(another)\n'))

    made = compiles(folder / 'encodings.cpp', root, '-c', '-o', str(root / 'table.o'))
    check(made.returncode == 0, 'the table does not compile with a row more:\n' + made.stderr)
    names = subprocess.run(['nm', '-C', str(root / 'table.o')], capture_output=True, text=True).stdout
    check(re.search(r' U rndn::encodings::rows::another\(\)', names), 'the table does not need the row\'s file')

    text = re.sub(r'\bpacked\b', 'another', (folder / 'packed.cpp').read_text())
    file = folder / 'another.cpp'
    file.write_text(text)
    for source in sorted(folder.glob('*.cpp')):
        if source.name != 'encodings.cpp':
            made = compiles(source, root, '-fsyntax-only')
            check(made.returncode == 0, f'{source.name} does not compile beside the new row:\n{made.stderr}')
    check(re.search(r'^const Encoding& rows::another\(\)', text, re.M), 'the file does not define the row')

    declared = re.search(r'class Encoding \{(.*?)^\};', (folder / 'encodings.h').read_text(), re.S | re.M)
    needed = re.findall(r'virtual [^;=]*?\b(\w+)\([^;]*\) const = 0;', declared[1])
    check(len(needed) >= 5, f'the functions of an encoding are not found: {needed}')
    for function in needed:
        text = without(text, function)
    file.write_text(text)
    refused = compiles(file, root, '-fsyntax-only')
    check(refused.returncode != 0, 'a file without functions compiles')
    for function in needed:
        check(re.search(rf'Encoding::{function}\(', refused.stderr), f'nobody misses `{function}`:\n{refused.stderr}')
    print(f'{len(needed)} functions, each needed')
