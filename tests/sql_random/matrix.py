#!/usr/bin/env python3
"""Every type of SQL against every other, at the ends of their ranges: rndn against DuckDB.

    tests/sql_random/matrix.py build/bin/rndn [--kind joins] [--only WORD] [--stride 7] [--device sim]

In: a table for each type, as Parquet files, whose few rows are the type's ends, what is near them,
zero, -0.0, NaN, infinities and NULL; an ENUM is a cast of text. The statements of a kind are all
combinations of types with operators: casts, arithmetic (also pair by pair, where rows overflow),
comparisons, joins of every kind with residual conditions, membership, aggregates over all, some and
no rows, windows with every EXCLUDE, moments with intervals. Out: how many statements were answered
alike, raised an error on both sides, or were refused by name; and each on which the sides differ: in
rows, or in that one of them alone raises an error. Exit code as random_sql.py's.
`--stride n` takes every n-th statement of a kind.
Left out: dates that no timestamp has (years beyond 294247), whose names and last days differ.
"""
import argparse
import collections
import pathlib
import re
import shutil
import sys
import tempfile

import random_sql
from random_sql import duckdb

# Name of the table, SQL type, values.
TYPES = {
    'ti': ('TINYINT', [-128, 127, 0, 1, -1, 12, None]),
    'si': ('SMALLINT', [-32768, 32767, 0, 1, -1, 182, None]),
    'ii': ('INTEGER', [-2**31, 2**31 - 1, 0, 1, -1, 46341, None]),
    'bi': ('BIGINT', [-2**63, 2**63 - 1, 0, 1, -1, 3037000500, None]),
    'hi': ('DECIMAL(38,0)', [1 - 10**38, 10**38 - 1, 0, 1, -1, 2**63, None]),
    'ut': ('UTINYINT', [255, 0, 1, 16, 128, None]),
    'us': ('USMALLINT', [65535, 0, 1, 256, None]),
    'ui': ('UINTEGER', [2**32 - 1, 0, 1, 65536, None]),
    'ub': ('UBIGINT', [2**64 - 1, 0, 1, 2**63, 2**32, None]),
    'fl': ('FLOAT', ['nan', 'inf', '-inf', '-0.0', '0', '1.5', '3.4028235e38', '1e-45', '-2.5',
                     '16777216', None]),
    'db': ('DOUBLE', ['nan', 'inf', '-inf', '-0.0', '0', '1.5', '1.7976931348623157e308', '5e-324',
                      '-2.5', '9007199254740993', '3.4028235677973366e38', None]),
    'd4': ('DECIMAL(4,1)', ['999.9', '-999.9', '0', '0.5', '-0.5', None]),
    'd9': ('DECIMAL(9,2)', ['9999999.99', '-9999999.99', '0', '0.05', '-1.25', None]),
    'd18': ('DECIMAL(18,6)', ['999999999999.999999', '-999999999999.999999', '0', '0.000001', '-2.5',
                              None]),
    'd25': ('DECIMAL(25,3)', ['9999999999999999999999.999', '-9999999999999999999999.999', '0',
                              '0.001', '-2.5', None]),
    'd38': ('DECIMAL(38,10)', ['9999999999999999999999999999.9999999999',
                               '-9999999999999999999999999999.9999999999', '0', '0.0000000001',
                               '-2.5', None]),
    'tx': ('VARCHAR', ['', 'a', 'b', 'ab', '-1', '1.5', 'nan', '2020-01-01', 'é', None]),
    'bo': ('BOOLEAN', ['true', 'false', None]),
    'da': ('DATE', ['1970-01-01', '2020-02-29', '0001-01-01', '9999-12-31', '1969-12-31',
                    '290000-01-01', '-290000-01-01', 'infinity', '-infinity', None]),
    'tm': ('TIME', ['00:00:00', '23:59:59.999999', '12:00:00.5', None]),
    'ts': ('TIMESTAMP', ['1970-01-01 00:00:00', '2020-02-29 12:30:00.5', '1969-12-31 23:59:59.999999',
                         '9999-12-31 23:59:59.999999', '294247-01-10 04:00:54.775806', 'infinity',
                         '-infinity', '290000-01-01 (BC) 00:00:00', None]),
    'tz': ('TIMESTAMPTZ', ['1970-01-01 00:00:00+00', '2020-02-29 12:30:00.5+00',
                           '1969-12-31 23:59:59.999999+00', None]),
}
ENUM = "ENUM('b', 'ab', 'a', '', 'é')"
NUMBERS = ['ti', 'si', 'ii', 'bi', 'hi', 'ut', 'us', 'ui', 'ub', 'fl', 'db', 'd4', 'd9', 'd18', 'd25', 'd38']
JOINS = ['join', 'left join', 'right join', 'full join', 'semi join', 'anti join']


def sql_type(name):
    return 'HUGEINT' if name == 'hi' else TYPES[name][0]


def rows_of(name):
    return range(len(TYPES[name][1]))


def casts():
    for a in TYPES:
        for b in TYPES:
            yield f'select id, try_cast(x as {sql_type(b)}) from {a}'
    for a in NUMBERS:
        for b in NUMBERS:
            for row in rows_of(a):
                yield f'select cast(x as {sql_type(b)}) from {a} where id = {row}'
    yield f'select id, try_cast(x as {ENUM}), try_cast(x as {ENUM})::VARCHAR || x from tx'
    yield f'select cast(x as {ENUM}) from tx'
    yield f'select cast(x as {ENUM}) from tx where id < 4'


def arithmetic():
    for a in NUMBERS:
        for b in NUMBERS:
            for op in '+-*/%':
                yield (f'select l.id, r.id, l.x {op} r.x from {a} l, {b} r '
                       'where l.id in (2, 3, 4, 5) and r.id in (2, 3)')
        for call in ('-x', 'abs(x)', 'x + 0', 'sign(x)', 'round(x)', 'round(x, 1)', 'round(x, -2)',
                     'floor(x)', 'ceil(x)', 'trunc(x)', 'x // 3', 'x % 3', 'x * 10', 'x / 7'):
            for row in rows_of(a):
                yield f'select {call} from {a} where id = {row}'


def ends():
    for a in NUMBERS:
        for b in (a, 'ii'):
            for op in ('+', '-', '*', '//', '%'):
                for i in rows_of(a):
                    for j in rows_of(b):
                        yield f'select l.x {op} r.x from {a} l, {b} r where l.id = {i} and r.id = {j}'


def comparisons():
    for a in NUMBERS:
        for b in NUMBERS:
            yield ('select l.id, r.id, l.x = r.x, l.x < r.x, l.x >= r.x, l.x is distinct from r.x, '
                   f'case when l.x > r.x then l.x else r.x end is null from {a} l, {b} r')
    for a in TYPES:
        b = 'r.x'
        yield f'select l.id, r.id, l.x = {b}, l.x <> {b}, l.x < {b}, l.x between {b} and l.x from {a} l, {a} r'
        yield f'select l.id, r.id, greatest(l.x, {b}), least(l.x, {b}), nullif(l.x, {b}) from {a} l, {a} r'
    e = f'try_cast(l.x as {ENUM})'
    f = f'try_cast(r.x as {ENUM})'
    yield f"select l.id, r.id, {e} < {f}, {e} = {f}, {e} is distinct from {f}, {e} in ('a', 'b') from tx l, tx r"
    yield f'select l.id, r.id, greatest({e}, {f}), coalesce({e}, {f}), nullif({e}, {f}) from tx l, tx r'


def joins():
    for a in TYPES:
        for b in TYPES:
            if a != b and not (a in NUMBERS and b in NUMBERS):
                continue
            for kind in JOINS:
                columns = 'l.id, l.x' if kind[0] in 'sa' else 'l.id, l.x, r.id, r.x'
                conditions = ['l.x = r.x']
                if a == b:
                    conditions += ['l.x is not distinct from r.x', 'l.x = r.x and l.id = r.id',
                                   'l.x = r.x and l.id < r.id', 'l.x < r.x', 'l.x <> r.x and l.id <> r.id',
                                   'l.x is distinct from r.x', 'l.x = r.x and l.x > r.x',
                                   'l.id = r.id and l.x >= r.x', 'l.id = r.id and 10 // (l.id - 3) > r.id']
                for condition in conditions:
                    yield f'select {columns} from {a} l {kind} {b} r on {condition}'


def membership():
    for a in TYPES:
        for b in TYPES:
            if a != b and not (a in ('bi', 'd9', 'db', 'ub', 'fl') and b in NUMBERS):
                continue
            yield f'select id, x in (select x from {b}) from {a}'
            yield f'select id, x not in (select x from {b} where x is not null) from {a}'
            yield f'select id from {a} where x not in (select x from {b} where id < 2)'
            yield f'select id from {a} where x not in (select x from {b} where id > 99)'
            yield f'select id, (id, x) in (select id, x from {b}) from {a}'
            yield f'select id, (id, x) not in (select id + 1, x from {b}) from {a}'
            yield f'select id, exists (select 1 from {b} where {b}.x = {a}.x and {b}.id > 1) from {a}'
            yield f'select id, (select max(id) from {b} where {b}.x = {a}.x) from {a}'
            yield f'select id, (select count(*) from {b} where {b}.x = {a}.x and {b}.id <> {a}.id) from {a}'
            yield f'select id, (select x from {b} where {b}.id = {a}.id) from {a}'
            yield f'select id, x > all (select x from {b}), x < any (select x from {b} where id < 3) from {a}'


def aggregates():
    calls = ['min(x)', 'max(x)', 'count(distinct x)', 'count(x)', 'any_value(x)', 'arg_max(id, x)',
             'arg_min(id, x)', 'median(x)', 'quantile_disc(x, 0.5)']
    for a in TYPES:
        numeric = ['sum(x)', 'avg(x)', 'var_pop(x)', 'sum(distinct x)'] if a in NUMBERS else []
        for call in calls + numeric:
            yield f'select {call} from {a}'
            yield f'select {call} from {a} where id > 100'
            yield f'select {call} from {a} where x is null'
            yield f'select {call} from {a} where id in (2, 3, 4)'
            yield f'select id % 2, {call} from {a} group by 1'
            yield f'select id % 2, {call} filter (where id > 2) from {a} where id in (1, 2, 3, 4) group by 1'
        yield f'select x, count(*) from {a} group by x'
        yield f'select distinct x from {a}'
        for order in ('x nulls first', 'x desc nulls last', 'x desc', 'x'):
            yield f'select row_number() over (order by {order}, id), id, x from {a} order by 1'
        for word in ('union', 'union all', 'except', 'intersect', 'except all', 'intersect all'):
            yield f'select x from {a} {word} select x from {a} where id < 3'
    e = f'try_cast(x as {ENUM})'
    yield f'select min({e}), max({e}), count(distinct {e}), count({e}) from tx'
    yield f'select id % 2, min({e}), max({e}), count(distinct {e}) from tx group by 1'
    yield f'select {e}, count(*) from tx group by 1'
    yield f'select row_number() over (order by {e} desc nulls last, id), id, {e} from tx order by 1'


def windows():
    frames = ['rows between 1 preceding and 1 following', 'rows between unbounded preceding and 1 following',
              'rows between current row and unbounded following', 'rows between 2 following and 3 following',
              'groups between 1 preceding and current row', 'range between unbounded preceding and current row']
    excludes = ['', ' exclude current row', ' exclude group', ' exclude ties', ' exclude no others']
    for a in TYPES:
        calls = ['min(x)', 'max(x)', 'count(x)', 'first_value(x)', 'last_value(x)', 'nth_value(x, 2)']
        if a in NUMBERS:
            calls += ['sum(x)', 'avg(x)']
        for call in calls:
            for frame in frames:
                for exclude in excludes:
                    yield (f'select id, {call} over (order by id // 2, id {frame}{exclude}) from {a} '
                           'where id > 1')
            yield f'select id, {call} over (order by id // 2 range current row) from {a} where id > 1' \
                if '_value' not in call else f'select id, {call} over (order by id) from {a}'
        yield f'select id, lag(x) over (order by id), lead(x, 2) over (order by id) from {a}'
        yield f'select id, rank() over (order by x), dense_rank() over (order by x desc) from {a}'
        yield f'select id, count(distinct x) over (order by id) from {a}'
    for exclude in excludes:
        yield ('select id, sum(id) over (partition by id % 2 order by id // 3 groups between 1 preceding '
               f'and 1 following{exclude}), first_value(x ignore nulls) over (order by id rows between 2 '
               f'preceding and 2 following{exclude}) from ii')


def moments():
    steps = ['x + interval 1 day', 'x - interval 1 month', 'x + interval 1 microsecond',
             'x + interval 10000 years', 'x - interval 3000 years', "x + interval '1 day 3 hours'",
             'x::DATE', 'x::TIMESTAMP', 'x::TIMESTAMPTZ', 'year(x)', 'month(x)', 'dayofyear(x)', 'week(x)',
             "date_trunc('month', x)", "date_trunc('week', x)", "date_trunc('hour', x)", 'epoch(x)',
             'x::VARCHAR', 'last_day(x)', "strftime(x, '%Y-%m-%d')", 'dayname(x)',
             "date_diff('month', x, DATE '2020-01-01')"]
    for a in ('da', 'ts', 'tz'):
        for step in steps + (['x + 1', 'x - 5000000', "x - DATE '1970-01-01'"] if a == 'da' else []):
            for row in rows_of(a):
                yield f'select {step} from {a} where id = {row}'


KINDS = {f.__name__: f for f in (casts, arithmetic, ends, comparisons, joins, membership, aggregates,
                                 windows, moments)}


def make_tables(connection, folder):
    for name, (declared, values) in TYPES.items():
        connection.execute(f'create table {name} (id INTEGER, x {declared})')
        for row, value in enumerate(values):
            text = 'NULL' if value is None else f"'{value}'::{declared}"
            connection.execute(f'insert into {name} values ({row}, {text})')
        connection.execute(f"copy {name} to '{folder / name}.parquet'")


def answer_of(connection, query):
    """Types and rows of DuckDB; no types where it raises an error; none where it refuses."""
    try:
        answer = connection.execute(query)
        types = [str(d[1]).split('(')[0] for d in answer.description]
        moments = {'DATE', 'TIMESTAMP', 'TIMESTAMP WITH TIME ZONE'}  # which Python ends at the year 9999
        if moments & set(types):
            cells = ', '.join(f'#{i + 1}::VARCHAR' if t in moments else f'#{i + 1}'
                              for i, t in enumerate(types))
            answer = connection.execute(f'select {cells} from ({query})')
        return types, [[random_sql.plain(v) for v in row] for row in answer.fetchall()]
    except (duckdb.OutOfRangeException, duckdb.ConversionException, duckdb.InvalidInputException):
        return None, None
    except duckdb.Error:
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('rndn')
    parser.add_argument('--kind', choices=list(KINDS), action='append')
    parser.add_argument('--only', default='', help='statements with this word')
    parser.add_argument('--stride', type=int, default=1)
    parser.add_argument('--device', default='cpu')
    parser.add_argument('--show', type=int, default=20, help='differences shown in full')
    options = parser.parse_args()
    if random_sql.is_missing(options.rndn):
        return 77
    folder = pathlib.Path(tempfile.mkdtemp(prefix='rndn-matrix-'))
    connection = duckdb.connect()
    connection.execute("set TimeZone = 'UTC'")
    make_tables(connection, folder)
    counts, reasons, differences = collections.Counter(), collections.Counter(), 0
    for kind in options.kind or KINDS:
        asked = [q for q in KINDS[kind]() if options.only in q][::options.stride]
        answers = [(q, answer_of(connection, q)) for q in asked]
        counts['refused by DuckDB'] += sum(a is None for _, a in answers)
        answers = [(q, a) for q, a in answers if a is not None]
        got = random_sql.Rndn(options.rndn, folder, options.device).run([q for q, _ in answers])
        for (query, (types, wanted)), ours in zip(answers, got):
            raised = isinstance(ours, str) and ours.startswith('input')
            if raised and random_sql.REFUSED.search(ours):
                counts['refused by rndn'] += 1
                first = re.search(r'(?:error: )(.*)', ours)
                reasons[first[1][:110] if first else ours[:110]] += 1
                continue
            if raised and types is None:
                counts['raised by both'] += 1
                continue
            if isinstance(ours, str):
                problem = ours
            elif types is None:
                problem = f'DuckDB raises an error, rndn gives {ours[:4]}'
            else:
                rows = random_sql.cells(ours, types)
                if random_sql.alike(rows, wanted):
                    counts['alike'] += 1
                    continue
                problem = random_sql.difference(rows, wanted)
            differences += 1
            if differences <= options.show:
                print(f'--- {kind}: {query}\n{problem[:600]}')
    shutil.rmtree(folder)
    return random_sql.report(counts, reasons, differences)


if __name__ == '__main__':
    sys.exit(main())
