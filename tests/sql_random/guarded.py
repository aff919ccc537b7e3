#!/usr/bin/env python3
"""Expressions that fail for some rows, behind what leaves these rows out: random, against DuckDB.

    tests/sql_random/guarded.py build/bin/rndn --seed 1 --schemas 20 --queries 40 [--device sim]

In: tables as in random_sql.py. A failing expression stands with its guard, a condition under which it
never fails: a quotient and a divisor that is not zero, a cast and what fits, error() and its CASE.
The guard stands before it in WHERE, as an arm of CASE, in COALESCE, OR, JOIN .. ON, HAVING, in the
FILTER of an aggregate, a subquery, or a window. Out, for each statement:
  guarded     DuckDB's rows, or no error where DuckDB raises one; in the FILTER of an aggregate it
              computes what stands there twice for all rows, and so does its plan: rare
  bare        the same without the guard: rows as DuckDB's; who raises an error is counted
  parts       the rows for which a guarded predicate is true, false and null are all rows
  reordered   conjuncts in another order: the guarded answer, or an error
Any of them otherwise is a difference, with the statement and the folder of its tables. Bare
statements that one side raises alone are counted: rndn does not evaluate what nothing asks for.
Exit code as random_sql.py's.
"""
import argparse
import collections
import json
import pathlib
import random
import re
import shutil
import sys
import tempfile

import random_sql
from random_sql import duckdb

ERROR = re.compile(r'does not fit|division by zero|out of range|no more|is not met|gives several|'
                   r'cannot be cast')


class Failing:
    """An expression of numbers and the guard under which it does not fail."""

    def __init__(self, r, query, columns):
        pick = lambda *families: query.pick(columns, *families)
        a, b = f'({pick("number")})::BIGINT', f'({pick("number")})::BIGINT'
        text = pick('text')
        forms = [
            (f'({a} // {b})', f'{b} <> 0'),
            (f'({a} % {b})', f'({b} > 0 or {b} < 0)'),
            (f'({a} // ({b} - 1))', f'{b} - 1 <> 0'),
            (f'cast({a} as TINYINT)', f'{a} between -128 and 127'),
            (f'cast({a} as UTINYINT)', f'{a} >= 0 and {a} < 256'),
            (f'cast({a} * 30 as SMALLINT)', f'abs({a}) < 1000'),
            (f'cast({text} as INTEGER)', f"regexp_matches({text}, '^[0-9]+$')"),
            (f'cast({text} as INTEGER)', f'try_cast({text} as INTEGER) is not null'),
            (f'({a} * 9223372036854775807)', f'{a} in (-1, 0, 1)'),
            (f'cast({a} as DECIMAL(3,1))', f'{a} > -100 and {a} < 100'),
            (f'cast({a}::DOUBLE * 1e8 as INTEGER)', f'abs({a}) <= 20'),
            (f'year(make_date(2020, ({a})::INTEGER, 1))', f'{a} >= 1 and {a} <= 12'),
            (f"(case when {a} > 2 then error('no more') else {a} end)", f'{a} <= 2'),
            (f'({a} + (case when {b} = 1 then 9223372036854775807 else 0 end))',
             f'({a} < 1 or {b} is distinct from 1)'),
        ]
        self.value, self.guard = r.choice(forms)
        if r.random() < 0.2:
            self.value = f'({self.value} + 1 - 1)'
        self.test = r.choice([f'{self.value} > {r.randint(-2, 3)}', f'{self.value} = 1', f'{self.value} is null',
                              f'{self.value} in (0, 1, 2)', f'{self.value} between 0 and 5'])


def statements(r, query):
    """(kind, statement, statement that it is compared with or None)."""
    text, columns = query.source()
    f = Failing(r, query, columns)
    g, v, p = f'({f.guard})', f.value, f'({f.test})'
    known = f'({f.guard}) is true'
    other, inner = query.source()
    family = r.choice(['number', 'text', 'date'])
    on = f'{query.pick(columns, family)} = {query.pick(inner, family)}'
    key, any_column = query.value(columns, query.family(columns), 2), r.choice(columns)[0]
    more = query.predicate(columns, 2)
    h = Failing(r, query, columns + inner)
    case = f'(case when {g} then {v} end)'
    yield 'guarded', f'select {v}, {any_column} from {text} where {g}', None
    yield 'bare', f'select {v}, {any_column} from {text}', None
    yield 'guarded', f'select {any_column} from {text} where {g} and {p} and {more}', \
        f'select {any_column} from {text} where case when {g} then {p} else false end and {more}'
    yield 'bare', f'select {any_column} from {text} where {p}', None
    yield 'reordered', f'select {any_column} from {text} where {p} and {more} and {g}', \
        f'select {any_column} from {text} where {g} and {p} and {more}'
    yield 'guarded', f'select {case}, {any_column} from {text}', None
    yield 'guarded', f'select count(*) filter (where {g} and {p}), sum({v}) filter (where {g}), ' \
        f'max({v}) filter (where {g} and {more}) from {text}', None
    yield 'guarded', f'select {key}, sum({case}), count(*) filter (where {g} and {p}) from {text} group by 1 ' \
        f'having count(*) filter (where {g}) > 0', None
    yield 'guarded', f'select {key}, min({v}) from {text} where {g} group by 1 having min({v}) is not null', None
    yield 'guarded', f'select {any_column} from {text} where (not ({known})) or {p}', None
    yield 'guarded', f'select coalesce(case when {known} then null else -7 end, {v}) from {text}', None
    yield 'guarded', f'select t.x from (select {v} x, {any_column} from {text} where {g}) t where t.x is not null', None
    yield 'guarded', f'select {any_column} from {text} {r.choice(["join", "left join", "semi join"])} {other} ' \
        f'on {on} and ({h.guard}) and ({h.test})', None
    yield 'guarded', f'select {any_column} from {text} join {other} on {on} where ({h.guard}) and ({h.test})', None
    yield 'guarded', f'select {any_column} from {text} where exists (select 1 from {other} where {on} and ' \
        f'({h.guard}) and ({h.test}))', None
    yield 'guarded', f'select {any_column}, sum({case}) over (partition by {key}) from {text}', None
    yield 'guarded', f'select {any_column} from {text} where {g} qualify max({v}) over (partition by {key}) > 0', None
    yield 'guarded', f'select {key} from {text} group by 1 having count(*) > 1 and ' \
        f'case when count(*) > 2 then sum(1) // (count(*) - 2) > 1 else false end', None
    yield 'guarded', f'select {any_column} from {text} where {g} order by {v}, 1 limit 1000', None
    whole = f'select count(*) from {text}'
    split = f'(case when {g} then {p} end)'
    yield 'parts', ' + '.join([f'select (select count(*) from {text} where {split})',
                               f'(select count(*) from {text} where not {split})',
                               f'(select count(*) from {text} where {split} is null)']), whole


def answer(connection, query):
    try:
        found = connection.execute(query)
        types = [str(d[1]).split('(')[0] for d in found.description]
        return types, [[random_sql.plain(v) for v in row] for row in found.fetchall()]
    except (duckdb.OutOfRangeException, duckdb.ConversionException, duckdb.InvalidInputException):
        return None, None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('rndn')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--schemas', type=int, default=5)
    parser.add_argument('--queries', type=int, default=40, help='for each schema, about')
    parser.add_argument('--device', default='cpu')
    parser.add_argument('--show', type=int, default=5, help='differences shown in full')
    options = parser.parse_args()
    if random_sql.is_missing(options.rndn):
        return 77
    counts, reasons, differences = collections.Counter(), collections.Counter(), 0
    for number in range(options.schemas):
        r = random.Random(f'{options.seed}/guarded/{number}')
        folder = pathlib.Path(tempfile.mkdtemp(prefix='rndn-sql-'))
        tables = [random_sql.Table(r, name) for name in 'pqs']
        (folder / 'schema.json').write_text(json.dumps({'tables': [t.write(folder) for t in tables]}))
        connection = duckdb.connect()
        for t in tables:
            t.load(connection)
        drawn = []  # kind, statement, the other statement, DuckDB's answer
        while len(drawn) < options.queries:
            for kind, query, other in statements(r, random_sql.Query(r, tables, False)):
                try:
                    drawn.append((kind, query, other, answer(connection, query)))
                except duckdb.Error as error:
                    counts['refused by DuckDB'] += 1
                    reasons['DuckDB: ' + str(error).split('\n')[0][:90]] += 1
        rndn = random_sql.Rndn(options.rndn, folder, options.device)
        got = rndn.run([query for _, query, _, _ in drawn])
        others = iter(rndn.run([other for _, _, other, _ in drawn if other]))
        kept = False
        for (kind, query, other, (types, wanted)), rows in zip(drawn, got):
            second = next(others) if other else None
            problem = None
            raised = isinstance(rows, str)
            if raised and rows.startswith('input') and random_sql.REFUSED.search(rows):
                counts['refused by rndn'] += 1
                reasons[re.sub(r'`[^`]*`', '..', rows)[:110]] += 1
                continue
            if raised and not (rows.startswith('input') and ERROR.search(rows)):
                problem = rows
            elif raised and kind not in ('bare', 'reordered') and wanted is not None:
                problem = 'an error for a row that does not count: ' + rows
            elif raised:
                counts[f'{kind}: raised by both' if wanted is None else f'{kind}: raised by rndn alone'] += 1
            elif wanted is None:
                counts[f'{kind}: raised by DuckDB alone'] += 1
            elif not random_sql.alike(random_sql.cells(rows, types), wanted):
                problem = random_sql.difference(random_sql.cells(rows, types), wanted)
            else:
                counts[f'{kind}: alike'] += 1
            if not problem and not raised and second is not None and not isinstance(second, str) and \
                    sorted(map(str, rows)) != sorted(map(str, second)):
                problem = f'{other}\n{rows[:8]}\n{second[:8]}'
            if problem:
                differences += 1
                kept = True
                if differences <= options.show:
                    print(f'--- {folder} (seed {options.seed}/{number}) {kind}\n{query}\n{problem[:1500]}')
        if not kept:
            shutil.rmtree(folder)
    if not counts['bare: raised by both']:
        print('no expression failed')
        differences += 1
    if counts['guarded: raised by both'] * 12 > counts['guarded: alike']:
        print('guarded expressions that fail on both sides are too many')
        differences += 1
    return random_sql.report(counts, reasons, differences)


if __name__ == '__main__':
    sys.exit(main())
