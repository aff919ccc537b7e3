#!/usr/bin/env python3
"""Plans rendered to SQL again answer as the statement did: the reader of plans keeps all of them.

    tests/sql_random/render_back.py build/bin/plan_to_sql build/bin/rndn [--seed N] [--schemas N] [--queries N] [--stride N]

The statements are those of the suites and of tests/sql_translate, and random ones (random_sql.py).
DuckDB plans a statement, on the tables and on empty ones; `plan_to_sql` reads the plan and writes SQL,
and DuckDB answers all of them on the tables. rndn only makes the tables of TPC-H and SSB. A statement
that the reader refuses by name is counted.
"""
import argparse
import collections
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import threading

import random_sql

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / 'sql_translate'))
if random_sql.duckdb is not None:
    import duckdb
    import record


class Witness:
    """Compares answers; counts what came of it."""

    def __init__(self, program, show):
        self.renderer = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.counts, self.reasons, self.differences = collections.Counter(), collections.Counter(), 0
        self.show = show

    def answer(self, connection, sql):
        """Types and rows, or the error in place of rows; None: too many rows, or too long."""
        timer = threading.Timer(20, connection.interrupt)
        timer.start()
        try:
            answer = connection.execute(sql)
            # A plan's NULL has a type.
            types = [str(d[1]).replace('"NULL"', 'INTEGER') for d in answer.description]
            rows = answer.fetchmany(20001)
            return None if len(rows) > 20000 else (types, [[random_sql.plain(v) for v in row] for row in rows])
        except duckdb.InterruptException:
            return None
        except (duckdb.OutOfRangeException, duckdb.ConversionException, duckdb.InvalidInputException) as error:
            return [], str(error)
        finally:
            timer.cancel()

    def check(self, full, empty, sql, what, is_random=False):
        """A statement by its plans on full and on empty tables."""
        try:
            wanted = self.answer(full, sql)
            plans = [record.plan(planner, sql) for planner in (full, empty)] if wanted else []
        except duckdb.Error as error:
            self.counts['refused by DuckDB'] += 1
            self.reasons['DuckDB: ' + str(error).split('\n')[0][:90]] += 1
            return
        if wanted is None:
            self.counts['too large'] += 1
        if plans and record.trimmed(plans[0]) == record.trimmed(plans[1]):
            self.counts['plans on full and empty tables that are one'] += 1
            plans.pop()
        for plan in plans:
            self.check_plan(full, plan, wanted, sql, what, is_random)

    def check_plan(self, full, plan, wanted, sql, what, is_random):
        rendered = self.render(plan)
        if 'error' in rendered:
            self.counts['refused by the reader'] += 1
            self.reasons[re.sub(r'`[^`]*`', '..', rendered['error'])[:110]] += 1
            return
        try:
            got = self.answer(full, rendered['sql'])
        except duckdb.Error as error:
            got = [], 'rendered: ' + str(error)
        raised = isinstance(wanted[1], str)
        if got and isinstance(got[1], str) == raised:
            if raised and not got[1].startswith('rendered'):
                self.counts['raised by both'] += 1
                return
            in_order = random_sql.in_order(got[1], sql) if is_random else same_order(got[1], wanted[1])
            if not raised and got[0] == wanted[0] and random_sql.alike(got[1], wanted[1]) and in_order:
                self.counts['alike'] += 1
                return
        # Which rows an error is raised for is the optimizer's choice.
        if raised or got and isinstance(got[1], str) and not got[1].startswith('rendered'):
            self.counts['raised by one'] += 1
            return
        self.differences += 1
        if self.differences <= self.show:
            problem = random_sql.difference(got[1], wanted[1]) if got and not isinstance(got[1], str) else got
            if got and got[0] != wanted[0]:
                problem = f'{got[0]} for {wanted[0]}'
            print(f'--- {what}\n{sql}\n{rendered["sql"][:3000]}\n{str(problem)[:1500]}')

    def render(self, plan):
        self.renderer.stdin.write(record.json.dumps(plan) + '\n')
        self.renderer.stdin.flush()
        return record.json.loads(self.renderer.stdout.readline())


def filled(rndn, suite, scale, folder):
    """DuckDB with the tables of a suite."""
    connection = record.connect(record.tables(suite))
    copies = ''.join(f"copy {table} to '{folder}/{table}.parquet';" for table in record.tables(suite))
    subprocess.run([rndn, 'sql', '-', '--data', f'{suite}:{scale}', '--device', 'cpu'], input=copies.encode(),
                   check=True, capture_output=True)
    for table in record.tables(suite):
        connection.execute(f"insert into {table} select * from '{folder}/{table}.parquet'")
    return connection


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('renderer')
    parser.add_argument('rndn')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--schemas', type=int, default=6)
    parser.add_argument('--queries', type=int, default=40, help='for each schema')
    parser.add_argument('--stride', type=int, default=1, help='each n-th of the statements that are not random')
    parser.add_argument('--show', type=int, default=5, help='differences shown in full')
    options = parser.parse_args()
    if random_sql.duckdb is None:
        print('skipped: this Python has no module duckdb (pip install duckdb==2.0.1)')
        return 77
    witness = Witness(options.renderer, options.show)
    own = record.HERE
    with tempfile.TemporaryDirectory(prefix='rndn-sql-') as folder:
        for suite in record.SUITES:
            full, empty = filled(options.rndn, suite, 0.01, folder), record.connect(record.tables(suite))
            for query in sorted((record.ROOT / suite / 'sql').glob('q*.sql'))[::options.stride]:
                witness.check(full, empty, query.read_text().rstrip().rstrip(';'), query.name)
            if suite == 'tpch':
                statements(witness, full, empty, own / 'statements.sql', options.stride)
    for name, data in (('nulls', 'nulls'), ('windows', 'nulls'), ('sets', 'nulls'), ('overflow', 'overflow')):
        tables = record.own_tables(data)
        full = record.connect(tables, own / data, "delim=',', header=true", 'csv')
        statements(witness, full, record.connect(tables), own / f'{name}.sql', options.stride)
    for number in range(options.schemas):
        r = random.Random(f'{options.seed}/{number}')
        is_extreme, is_typed = r.random() < 0.15, r.random() < 0.5
        tables = [random_sql.Table(r, name, is_extreme, is_typed) for name in 'pqs']
        full, empty = duckdb.connect(), duckdb.connect()
        for connection in full, empty:
            connection.execute("set TimeZone = 'UTC'")
            connection.execute(f"set disabled_optimizers='{record.PROFILE}'")
        for t in tables:
            t.load(full)
            t.load(empty)
            empty.execute(f'delete from {t.name}')
        for _ in range(options.queries):
            witness.check(full, empty, random_sql.Query(r, tables, is_extreme, is_typed).select(),
                          f'seed {options.seed}/{number}', is_random=True)
    counts = witness.counts
    if not counts['alike'] or counts['raised by one'] > 4 + counts['raised by both'] // 4:
        print('nothing alike, or errors that one side raises alone are too many')
        witness.differences += 1
    return random_sql.report(counts, witness.reasons, witness.differences)


def same_order(got, wanted):
    return len(got) == len(wanted) and all(all(map(random_sql.same, x, y)) for x, y in zip(got, wanted))


def statements(witness, full, empty, path, stride):
    texts = [sql.strip() for sql in path.read_text().split(';\n') if sql.strip()]
    for sql in texts[::stride]:
        witness.check(full, empty, sql, path.name)


if __name__ == '__main__':
    sys.exit(main())
