#!/usr/bin/env python3
"""The queries of TPC-H and SSB again with other constants: right, and without compiling.

    tests/sql_random/literals.py build/bin/rndn --device sim [--scale 0.01] [--show]

In: tpch/sql and ssb/sql. Every number, date and text of a query but those that are part of its shape
(LIMIT, lengths, places, units of intervals) is changed; the query runs as it is written and
then changed, in one process with an empty cache. Out: which changed queries were compiled again, with
the count; answers are compared with DuckDB's over the same rows. Queries that `COMPILED` names may
compile again. Exit code as random_sql.py's.
"""
import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import random_sql

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Other rows arrive, and another operator is chosen for them, which is assembled on first use.
COMPILED = {'tpch q17', 'ssb q4.1'}
WORDS = re.compile(
    r"'(?:[^']|'')*'|\b(?:limit|interval|substring|substr|extract)\b[^,;\n]*|\b\d+(?:\.\d+)?\b|"
    r'--[^\n]*|[A-Za-z_#][\w#]*', re.I)


def other_text(text, known):
    """Another value of the column that has this one, where there is one."""
    for values in known:
        if text in values:
            return values[(values.index(text) + 1) % len(values)]
    return text


def changed(query, known):
    def other(match):
        word = match[0]
        if word.startswith("'"):
            text = word[1:-1]
            before = query[:match.start()].rstrip().lower()
            if re.fullmatch(r'\d{4}-\d\d-\d\d', text):
                day = datetime.date.fromisoformat(text) + datetime.timedelta(days=17)
                return f"'{day}'"
            if before.endswith('interval'):
                return word
            if before.endswith('like'):  # a letter less
                return "'" + re.sub(r'[A-Za-z](?=[^A-Za-z]*$)', '', text) + "'"
            return f"'{other_text(text, known)}'"
        if re.fullmatch(r'\d+', word):
            before = query[:match.start()].rstrip().lower()
            if re.search(r'(group by|order by)(\s|,|\d|desc|asc)*$', before):
                return word
            return str(int(word) + 1)
        if re.fullmatch(r'\d+\.\d+', word):
            digits = len(word.split('.')[1])
            return f'{float(word) + 10 ** -digits:.{digits}f}'
        return word
    return WORDS.sub(other, query)


def run(rndn, suite, scale, device, queries, cache):
    report = cache / 'report.json'
    ran = subprocess.run(
        [rndn, 'sql', '-', '--data', f'{suite}:{scale}', '--device', device, '--backend', 'rndn',
         '--format', 'json', f'--time=json:{report}'],
        input=';\n'.join(queries) + ';\n', text=True, capture_output=True,
        env=os.environ | {'XDG_CACHE_HOME': str(cache)})
    if ran.returncode:
        raise RuntimeError(ran.stderr)
    return random_sql.Rndn.results(ran.stdout), json.loads(report.read_text())


def tables(rndn, suite, scale, folder):
    """The suite's tables as views of DuckDB over files that rndn writes."""
    connection = random_sql.duckdb.connect()
    names = {'tpch': 'region nation supplier customer part partsupp orders lineitem',
             'ssb': 'customer supplier part date lineorder'}[suite].split()
    copies = [f"copy \"{name}\" to '{folder}/{suite}_{name}.parquet'" for name in names]
    subprocess.run([rndn, 'sql', '-', '--data', f'{suite}:{scale}', '--device', 'cpu'],
                   input=';\n'.join(copies) + ';\n', text=True, capture_output=True, check=True)
    for name in names:
        connection.execute(
            f"create view \"{name}\" as select * from '{folder}/{suite}_{name}.parquet'")
    return connection, names


def short_texts(connection, names):
    """The values of every column of text that has few."""
    known = []
    for name in names:
        for column, kind, *_ in connection.execute(f'describe "{name}"').fetchall():
            if kind != 'VARCHAR':
                continue
            values = connection.execute(
                f'select distinct "{column}" from "{name}" order by 1 limit 300').fetchall()
            if len(values) < 300:
                known.append([v[0] for v in values])
    return known


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('rndn')
    parser.add_argument('--device', default='sim')
    parser.add_argument('--scale', default='0.01')
    parser.add_argument('--show', action='store_true', help='the changed texts')
    options = parser.parse_args()
    if random_sql.is_missing(options.rndn):
        return 77
    wrong, compiled, count = [], set(), 0
    with tempfile.TemporaryDirectory(prefix='rndn-literals-') as name:
        folder = pathlib.Path(name)
        for suite in ('tpch', 'ssb'):
            connection, names = tables(options.rndn, suite, options.scale, folder)
            known = short_texts(connection, names)
            files = sorted((ROOT / suite / 'sql').glob('*.sql'))
            texts = [f.read_text().strip().rstrip(';') for f in files]
            others = [changed(t, known) for t in texts]
            results, reports = run(options.rndn, suite, options.scale, options.device,
                                   texts + others, folder)
            for k, (file, text, other) in enumerate(zip(files, texts, others)):
                count += 1
                if text == other:
                    wrong.append(f'{suite} {file.stem}: no constant was changed')
                if options.show:
                    print(f'--- {suite} {file.stem}\n{other}')
                if reports[len(files) + k]['compile']['phases'].get('allocate', 0):
                    compiled.add(f'{suite} {file.stem}')
                for at, query in ((k, text), (len(files) + k, other)):
                    answer = connection.execute(query)
                    types = [str(d[1]).split('(')[0] for d in answer.description]
                    wanted = [[random_sql.plain(v) for v in row] for row in answer.fetchall()]
                    got = random_sql.cells(results[at], types)
                    if not random_sql.alike(got, wanted):
                        wrong.append(f'{suite} {file.stem}\n{query}\n  rndn   {got[:3]}\n'
                                     f'  DuckDB {wanted[:3]}')
    for problem in wrong:
        print(f'--- {problem}')
    print(f'{count} queries, {len(compiled)} compiled again: {", ".join(sorted(compiled)) or "none"}')
    return 1 if wrong or compiled - COMPILED else 0


if __name__ == '__main__':
    sys.exit(main())
