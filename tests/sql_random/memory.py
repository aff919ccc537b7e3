#!/usr/bin/env python3
"""Random SQL with little device memory: rndn with `--device-memory` against rndn without.

    tests/sql_random/memory.py build/bin/rndn --seed 1 --schemas 40 --queries 25

In: seeds. The queries are random_sql.py's; one to three of the tables have thousands of rows, whose numbers,
doubles and texts are mostly different ones. The memory is less than their columns take, so that programs are cut
into ranges, parts and halves. What is printed must be the same: every digit of doubles, the order of rows that
ORDER BY does not decide, and errors. Queries of which an operator of DuckDB's gives more than 100,000 rows are
left out: the simulator takes long. Ctrl-C and SIGTERM end the run; what ran by then is reported.
Out: how many ran by ranges, on the host, and not; every difference with the statement and the folder of its
tables. Exit code 1 where there is a difference, or where fewer than a third of the queries ran by ranges; 77
(which CTest reads as skipped) where the module duckdb or rndn's planner is missing.
"""
import argparse
import collections
import json
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

import random_sql
from random_sql import Kind, Query, Table, duckdb

MOST_ROWS = 100000
random_sql.KINDS += [
    Kind('DOUBLE', 'f64', 'double', lambda r: r.uniform(-1000, 1000)),
    Kind('DOUBLE', 'f64', 'double', lambda r: r.choice([1e300, -1e300, 1e-9, 0.1, 3.0, r.random()])),
    Kind('BIGINT', 'i64', 'number', lambda r: r.randint(-10**12, 10**12)),
    Kind('INTEGER', 'i32', 'number', lambda r: r.randint(0, 3000)),
    Kind('VARCHAR', 'str', 'text', lambda r: f'word {r.randint(0, 10**6)}'),
]


class LongTable(Table):
    def __init__(self, r, name, is_typed):
        super().__init__(r, name, is_typed=is_typed)
        rows = r.choice([1500, 3000, 5000])
        step = r.choice([0, 1, 3])
        nulls = [r.choice([0, 0, 0.01, 0.3]) for _ in self.columns]
        self.rows = [[i * step if name + 'k' == n and step else None if r.random() < p else k.draw(r)
                      for (n, k), p in zip(self.columns, nulls)] for i in range(rows)]


ENDED = threading.Event()  # by somebody: what is known by then is reported


def end(*_):
    if not ENDED.is_set():  # once, so that folders are cleared away
        ENDED.set()
        raise KeyboardInterrupt


def rows_of_operators(node):
    yield node.get('operator_cardinality', 0)
    for child in node.get('children', []):
        yield from rows_of_operators(child)


def is_small(connection, query):
    """Whether DuckDB runs it, and no operator gives many rows."""
    too_long = threading.Timer(20, connection.interrupt)
    too_long.start()
    try:
        plan = connection.execute('explain (analyze, format json) ' + query).fetchall()[0][1]
        return max(rows_of_operators(json.loads(plan))) <= MOST_ROWS
    except duckdb.Error:
        return False
    finally:
        too_long.cancel()


def run(command, query, seconds):
    """What is printed, or the error; what ran by ranges; what ran on the host."""
    try:
        ran = subprocess.run(command, input=query + ';\n', text=True, capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return f'no answer in {seconds} s', False, []
    if ran.returncode:
        error = re.search(r'error: .*', ran.stderr)
        answer = f'{ran.returncode} {error[0] if error else ran.stderr[-300:]}'
    else:
        answer = ran.stdout
    by_ranges = re.search(r'^(\S+/)?(range|before|after)/', ran.stderr, re.M) is not None
    return answer, by_ranges, re.findall(r'^fallback to the reference interpreter: (.*)', ran.stderr, re.M)


def first_difference(got, wanted):
    at = next((i for i, (x, y) in enumerate(zip(got, wanted)) if x != y), min(len(got), len(wanted)))
    begin = max(0, at - 60)
    return f'got    {got[begin:at + 240]}\nwanted {wanted[begin:at + 240]}'


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('rndn')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--schemas', type=int, default=10)
    parser.add_argument('--queries', type=int, default=25, help='for each schema')
    parser.add_argument('--memory', default='48K', help='what --device-memory is')
    parser.add_argument('--device', default='sim')
    parser.add_argument('--timeout', type=float, default=300, help='seconds that an answer may take')
    parser.add_argument('--keep', help='a folder for the tables of schemas with differences')
    parser.add_argument('--show', type=int, default=5, help='differences shown in full')
    options = parser.parse_args()
    if random_sql.is_missing(options.rndn):
        return 77
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, end)
    counts, reasons, differences = collections.Counter(), collections.Counter(), 0
    try:
        for number in range(options.schemas):
            r = random.Random(f'{options.seed}/{number}')
            folder = pathlib.Path(tempfile.mkdtemp(prefix='rndn-memory-'))
            kept = False
            try:
                is_typed = r.random() < 0.3
                is_long = r.choice(['pqs', 'p', 'p', 'ps'])
                tables = [LongTable(r, name, is_typed) if name in is_long else Table(r, name, is_typed=is_typed)
                          for name in 'pqs']
                connection = random_sql.stored(tables, folder, is_typed)
                command = [options.rndn, 'sql', '-', '--data', str(folder), '--no-cache', '--format', 'json', '--time',
                           '--device', options.device, '--backend', 'rndn']
                asked = 0
                while asked < options.queries:
                    if ENDED.is_set():
                        raise KeyboardInterrupt
                    query = Query(r, tables, False, is_typed).select()
                    if not is_small(connection, query):
                        continue
                    asked += 1
                    wanted, _, always = run(command, query, options.timeout)
                    if wanted.startswith('1 ') and random_sql.REFUSED.search(wanted):
                        counts['refused by rndn'] += 1
                        continue
                    got, by_ranges, on_host = run(command + ['--device-memory', options.memory], query, options.timeout)
                    counts['by ranges' if by_ranges else 'whole'] += 1
                    on_host = [f for f in on_host if f not in always]
                    counts['on the host in part'] += bool(on_host)
                    for why in on_host:
                        reasons[re.sub(r'<program of[^>]*>|[@\d]+\.?|\w+/', '', why)[:200]] += 1
                    if got == wanted and not got.startswith('no answer'):
                        counts['alike'] += 1
                        continue
                    differences += 1
                    kept = True
                    if differences <= options.show:
                        print(f'--- {folder} (seed {options.seed}/{number})\n{query}\n{first_difference(got, wanted)}',
                              flush=True)
            finally:
                if not kept:
                    shutil.rmtree(folder)
                elif options.keep:
                    shutil.copytree(folder, pathlib.Path(options.keep) / folder.name)
    except (KeyboardInterrupt, RuntimeError):  # the latter of a query that DuckDB ran
        if not ENDED.is_set():
            raise
        print('ended before the last query')
    if not ENDED.is_set() and 2 * counts['by ranges'] < counts['whole']:
        print('too few ran by ranges')
        differences += 1
    return random_sql.report(counts, reasons, differences)


if __name__ == '__main__':
    sys.exit(main())
