#!/usr/bin/env python3
"""Random SQL over random tables with nulls: rndn against DuckDB.

    pip install duckdb==2.0.1          # and tools/sql-planner for rndn's own planner
    tests/sql_random/random_sql.py build/bin/rndn --seed 1 --schemas 40 --queries 100
    tests/sql_random/random_sql.py build/bin/rndn --seed 1 --schemas 12 --queries 25 --device sim

In: seeds. Each schema is three tables of random types (integers, decimals, dates, text, booleans,
doubles; half of them as Parquet files, with unsigned integers, floats, times, timestamps with and
without a zone, decimals of every width, integers of 64 bits without a sign, NaN, infinities and -0.0, too) with 0, 1, 50 or 100 % nulls,
no row to a few hundred, values that repeat, or of which one stands nearly everywhere; the queries are
drawn from the grammar of class Query, of which rndn knows nothing: filters of three values, joins
of all kinds with residual predicates, subqueries as values and as truths, ENUMs, groups and grouping sets, windows, orders, sets,
common table expressions.
Rows are compared as sorted lists (the drawn orders decide no ties): doubles to 1e-12, all else exactly.
Out: counts of the queries that agreed, that rndn refused by name (with the reasons), that DuckDB
itself refused, and every difference with the statement and the folder of its tables. Exit code 1
where there is a difference, 77 (which CTest reads as skipped) where the module duckdb
or rndn's planner is missing.
In some schemas numbers lie at the ends of their types. Errors of range and conversion are counted by
who raises them: rndn does not for the side of a join whose other side is empty (DuckDB only for the side
that it looks rows up for), for values of which only IS NULL is asked, and for what a FILTER leaves out. Both must be rare.
Left out: functions that functions.txt has and random arguments make errors of.
"""
import argparse
import collections
import datetime
import decimal
import json
import math
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import threading

try:
    import duckdb
except ImportError:
    duckdb = None

WORDS = ['a', 'b', 'ab', 'abc', 'x', 'xy', 'zebra', 'Kiwi', 'kiwi', 'lime tree', '10', ' ', 'q"r', 'é', 'éa',
         '日本', 'x😀']
FIRST_DAY = datetime.date(1995, 1, 1)


# How the translator says that it has no translation; any other error is a difference.
REFUSED = re.compile(r'translation|64 bits|128 bits|nested more than')


# What a row that overflows is told.
RAISED = re.compile(r'does not fit')


class Kind:
    """A SQL type: how rndn stores it, how values are drawn, which family of expressions it is."""

    def __init__(self, sql, stored, family, draw):
        self.sql, self.stored, self.family, self.draw = sql, stored, family, draw


def decimals(digits, scale):
    return lambda r: decimal.Decimal(r.choice([0, 1, -1, 5, 250, r.randint(-9999, 9999)])
                                     ).scaleb(-scale)


KINDS = [
    Kind('INTEGER', 'i32', 'number', lambda r: r.randint(-3, 8)),
    Kind('INTEGER', 'i32', 'number', lambda r: r.choice([0, 7, -100000, r.randint(0, 10**6)])),
    Kind('BIGINT', 'i64', 'number', lambda r: r.choice([0, 1, 2, 3, 10**9, -5])),
    Kind('SMALLINT', 'i16', 'number', lambda r: r.randint(-20, 20)),
    Kind('DECIMAL(9,2)', 'decimal(9,2)', 'number', decimals(9, 2)),
    Kind('DECIMAL(12,4)', 'decimal(12,4)', 'number', decimals(12, 4)),
    Kind('DOUBLE', 'f64', 'double', lambda r: r.randint(-12, 12) / 4),
    Kind('DATE', 'date', 'date', lambda r: FIRST_DAY + datetime.timedelta(r.choice(
        [0, 1, 31, 366, r.randint(0, 900)]))),
    Kind('VARCHAR', 'str', 'text', lambda r: r.choice(WORDS)),
    Kind('VARCHAR', 'sym', 'text', lambda r: r.choice(WORDS[:4])),
    Kind('BOOLEAN', 'bool', 'truth', lambda r: r.random() < 0.5),
]


def moment(r):
    return datetime.datetime(1995, 1, 1) + datetime.timedelta(
        r.choice([0, 1, 31, 366, -10000]), r.choice([0, 1, 3600, 86399]), r.choice([0, 0, 500000]))


def utc(r):
    return moment(r).replace(tzinfo=datetime.timezone.utc)


# What Parquet files have beside these.
TYPED = [
    Kind('UTINYINT', None, 'unsigned', lambda r: r.choice([0, 1, 2, 7, 255])),
    Kind('USMALLINT', None, 'unsigned', lambda r: r.choice([0, 1, 2, 7, 65535])),
    Kind('UINTEGER', None, 'unsigned', lambda r: r.choice([0, 1, 2, 7, 2**32 - 1])),
    Kind('UBIGINT', None, 'unsigned', lambda r: r.choice([0, 1, 2, 7, 2**33])),
    Kind('TINYINT', None, 'number', lambda r: r.randint(-3, 8)),
    Kind('DECIMAL(4,1)', None, 'number', decimals(4, 1)),
    Kind('DECIMAL(18,6)', None, 'number', decimals(18, 6)),
    Kind('DECIMAL(18,0)', None, 'number', decimals(18, 0)),
    Kind('DECIMAL(25,3)', None, 'number', decimals(25, 3)),
    Kind('DECIMAL(38,10)', None, 'number', decimals(38, 10)),
    Kind('FLOAT', None, 'float', lambda r: r.randint(-12, 12) / 4),
    Kind('FLOAT', None, 'float', lambda r: r.choice([math.nan, math.inf, -0.0, 0.0, 1.5])),
    Kind('DOUBLE', None, 'double', lambda r: r.choice([math.nan, math.nan, -0.0, 0.0, 1.5, -2.25])),
    Kind('DOUBLE', None, 'double', lambda r: r.choice([math.nan, math.inf, -math.inf, -0.0, 0.0, 1.5])),
    Kind('TIME', None, 'time', lambda r: moment(r).time()),
    Kind('TIMESTAMP', None, 'stamp', moment),
    Kind('TIMESTAMPTZ', None, 'zoned', utc),
]


# Integers of 64 bits without a sign, up to their end.
WIDE = [
    Kind('UBIGINT', None, 'wide', lambda r: r.choice([0, 1, 2**63 - 1, 2**63, 2**64 - 1, r.randint(0, 9)])),
    Kind('DECIMAL(38,0)', None, 'wide', lambda r: r.choice([0, 1, 10**37, -10**37, 2**64, r.randint(-9, 9)])),
]


# Texts in an order of their own; the others are none of it.
ENUM = "ENUM('zebra', 'b', 'a', 'Kiwi', 'ab', 'x')"


# Numbers at the ends of their types.
EXTREMES = [
    Kind('BIGINT', 'i64', 'number', lambda r: r.choice([2**63 - 1, 1 - 2**63, 2**62, 0, r.randint(-9, 9)])),
    Kind('INTEGER', 'i32', 'number', lambda r: r.choice([2**31 - 1, -2**31, 46341, 0, r.randint(-9, 9)])),
    Kind('SMALLINT', 'i16', 'number', lambda r: r.choice([2**15 - 1, -2**15, 182, 0, r.randint(-9, 9)])),
    Kind('TINYINT', 'i8', 'number', lambda r: r.choice([127, -128, 12, 0, r.randint(-9, 9)])),
]


class Table:
    def __init__(self, r, name, is_extreme=False, is_typed=False):
        self.name = name
        # The families that joins need are in every table.
        kinds = [r.choice([k for k in KINDS if k.family == f]) for f in ('number', 'text', 'date')]
        others = EXTREMES if is_extreme else KINDS + 2 * TYPED + WIDE if is_typed else KINDS
        kinds += r.choices(others, k=r.randint(1, 4))
        self.columns = [(f'{name}{i}', k) for i, k in enumerate(kinds)]
        rows = r.choice([0, 1, 2, 9, 40, 40, 130, 400])
        nulls = [r.choice([0, 0, 0.01, 0.5, 0.5, 1]) for _ in kinds]
        usual = [k.draw(r) if r.random() < 0.15 else None for k in kinds]
        self.rows = [[None if r.random() < p else u if u is not None and r.random() < 0.9 else k.draw(r)
                      for k, p, u in zip(kinds, nulls, usual)] for _ in range(rows)]
        if r.random() < 0.4:  # a key: unique, mostly dense and ascending
            step = r.choice([1, 1, 2])
            order = list(range(rows))
            if r.random() < 0.3:
                r.shuffle(order)
            self.columns.append((f'{name}k', KINDS[0]))
            for row, i in zip(self.rows, order):
                row.append(1 + i * step)

    def write(self, folder):
        def field(v):
            if v is None:
                return ''
            text = str(int(v)) if isinstance(v, bool) else str(v)
            if text.strip() == '' or re.search('[",]', text):
                return '"' + text.replace('"', '""') + '"'
            return text
        lines = [','.join(n for n, _ in self.columns)]
        lines += [','.join(map(field, row)) for row in self.rows]
        (folder / f'{self.name}.csv').write_text('\n'.join(lines) + '\n')
        return {'name': self.name, 'file': f'{self.name}.csv', 'header': True,
                'columns': [{'name': n, 'type': k.stored} for n, k in self.columns]}

    def export(self, connection, folder):
        connection.execute(f"copy {self.name} to '{folder / self.name}.parquet'")

    def load(self, connection):
        declared = ', '.join(f'{n} {k.sql}' for n, k in self.columns)
        connection.execute(f'create table {self.name} ({declared})')
        if self.rows:
            marks = ','.join('?' * len(self.columns))
            connection.executemany(f'insert into {self.name} values ({marks})', self.rows)


class Query:
    """One SELECT. Sources are lists of (column, family)."""

    def __init__(self, r, tables, is_extreme, is_typed=False):
        self.r, self.tables, self.aliases = r, tables, 0
        self.is_extreme, self.is_typed = is_extreme, is_typed

    def pick(self, columns, *families):
        found = [c for c, f in columns if f in families]
        return self.r.choice(found) if found else None

    def source(self):
        table = self.r.choice(self.tables)
        self.aliases += 1
        alias = f'r{self.aliases}'
        return f'{table.name} {alias}', [(f'{alias}.{n}', k.family) for n, k in table.columns]

    def literal(self, family):
        r = self.r
        if r.random() < 0.04:
            return 'NULL'
        if family == 'number':
            return str(r.choice([0, 1, 2, 3, 7, -1, 0.5, 2.5]))
        if family in ('double', 'float'):
            number = r.choice(["'nan'", '-0.0']) if self.is_typed and r.random() < 0.2 else r.randint(-8, 8) / 4
            return f'{number}::{"DOUBLE" if family == "double" else "FLOAT"}'
        if family == 'wide':
            return f'{r.choice([0, 1, 7, 2**63, 2**64 - 1])}::UBIGINT'
        if family == 'unsigned':
            return f'{r.choice([0, 1, 7, 255])}::{r.choice(["UTINYINT", "USMALLINT", "UINTEGER"])}'
        if family == 'time':
            return f"TIME '{moment(r).time()}'"
        if family == 'stamp':
            return f"TIMESTAMP '{moment(r)}'"
        if family == 'zoned':
            return f"TIMESTAMPTZ '{moment(r)}+00'"
        if family == 'date':
            return f"DATE '{FIRST_DAY + datetime.timedelta(r.choice([0, 1, 31, 200, 366]))}'"
        if family == 'text':
            return "'" + r.choice(WORDS + ['']) + "'"
        return r.choice(['true', 'false'])

    def value(self, columns, family, depth=0):
        """An expression of the family, or a literal where no column is."""
        r = self.r
        if family == 'truth' and r.random() < 0.5 and depth < 2:
            return self.predicate(columns, depth + 1)
        column = self.pick(columns, family)
        if column is None or r.random() < 0.06:
            return self.literal(family)
        if depth > 2 or r.random() < 0.5:
            return column
        a, b = column, self.value(columns, family, depth + 1)
        forms = [f'coalesce({a}, {b})', f'nullif({a}, {b})',
                 f'case when {self.predicate(columns, depth + 1)} then {a} else {b} end',
                 f'case when {self.predicate(columns, depth + 1)} then {a} end']
        if family in ('number', 'double'):
            forms += [f'({a} + {b})', f'({a} - {b})', f'abs({a})', f'(-{a})']
        if family == 'number' and self.is_extreme:
            forms += [f'({a} * {b})', f'cast({a} as {r.choice(["INTEGER", "SMALLINT", "TINYINT", "BIGINT"])})']
        if family in ('number', 'double'):
            forms += [f'round({a}, {r.randint(0, 2)})', f'floor({a})', f'ceil({a})',
                      f'greatest({a}, {b})', f'least({a}, {b})']
        if family in ('stamp', 'zoned'):
            unit = r.choice(['minute', 'hour', 'day', 'week', 'month', 'year'])
            forms += [f"date_trunc('{unit}', {a})", f"({a} + interval '{r.randint(-90, 90)} minutes')",
                      f"({a} - interval '{r.randint(-20, 20)} months')", f'greatest({a}, {b})']
        if family == 'time':
            forms += [f'least({a}, {b})']
        if family == 'float':
            forms += [f'(-{a})', f'abs({a})', f'greatest({a}, {b})', f'least({a}, {b})']
            forms += [f'({a} + {b})', f'({a} - {b})', f'({a} * {b})']
            number = self.pick(columns, 'number', 'unsigned', 'double', 'wide')
            if number:
                forms += [f'try_cast({number} as FLOAT)', f'({a} + {number}::VARCHAR::FLOAT)']
        if family == 'wide':
            forms += [f'greatest({a}, {b})', f'least({a}, {b})', f'try_cast({a} as UBIGINT)',
                      f'try_cast({a} as DECIMAL(38,1))']
        if family == 'date':
            stamp = self.pick(columns, 'stamp', 'zoned')
            if stamp:
                forms += [f'{stamp}::DATE'] * 3
            unit = r.choice(['week', 'month', 'quarter', 'year'])
            forms += [f'({a} + {r.randint(0, 40)})', f'last_day({a})', f'greatest({a}, {b})',
                      f"date_trunc('{unit}', {a})::DATE",
                      f"({a} + interval '{r.randint(-20, 20)} months')::DATE"]
        if family == 'text':
            other = self.pick(columns, 'number', 'date', 'truth', 'double', 'unsigned', 'time', 'stamp',
                              'zoned', 'float') or "'z'"
            forms += [f'substring({a}, {r.randint(-2, 3)}, {r.randint(-1, 3)})', f'upper({a})',
                      f'lower({a})', f'trim({a})', f'left({a}, {r.randint(-1, 2)})',
                      f'right({a}, {r.randint(-1, 2)})', f"replace({a}, 'a', 'é')",
                      f"lpad({a}, 3, '*')", f'reverse({a})', f'({a} || {b})',
                      f'concat({a}, {b})', f'{other}::VARCHAR', f'try_cast({a} as {ENUM})::VARCHAR',
                      f"regexp_replace({a}, '[a-k]', '-', 'g')"]
        if family == 'number':
            text = self.pick(columns, 'text')
            if text:
                forms += [f'length({text})', f'strlen({text})', f"position('i' in {text})",
                          f'try_cast({text} as INTEGER)']
            stamp = self.pick(columns, 'stamp', 'zoned')
            if stamp:
                forms += [f'{part}({stamp})' for part in ('hour', 'minute', 'second', 'day', 'isoyear')]
                forms += [f"date_diff('hour', {stamp}, {stamp})"]
            unsigned = self.pick(columns, 'unsigned')
            if unsigned:
                forms += [f'({unsigned}::BIGINT - {a})', f'{unsigned}::DECIMAL(18,2)', f'({unsigned} % 4)']
            real = self.pick(columns, 'double', 'float')
            if real:
                forms += [f'try_cast({real} as {t})' for t in ('INTEGER', 'DECIMAL(9,2)', 'UTINYINT', 'BIGINT')]
            forms += [f'try_cast({a} as {t})' for t in ('UTINYINT', 'DECIMAL(3,1)', 'DECIMAL(30,8)')]
            date = self.pick(columns, 'date')
            if date:
                part = r.choice(['year', 'quarter', 'month', 'week', 'dayofweek', 'dayofyear'])
                forms += [f'{part}({date})', f"date_diff('month', {date}, {self.literal('date')})",
                          f'year({date})', f'({date} - {self.literal("date")})']
        return r.choice(forms)

    def family(self, columns):
        return self.r.choice(sorted({f for _, f in columns}))

    def predicate(self, columns, depth=0):
        r = self.r
        kind = r.random()
        if depth < 3 and kind < 0.3:
            a, b = self.predicate(columns, depth + 1), self.predicate(columns, depth + 1)
            return r.choice([f'({a} and {b})', f'({a} or {b})', f'(not {a})'])
        family = self.family(columns)
        a = self.value(columns, family, depth + 1)
        b = self.value(columns, family, depth + 1)
        if r.random() < 0.4:
            b = self.literal(family)
        forms = [f'({a} {op} {b})' for op in ('=', '<>', '<', '>', '<=', '>=')]
        forms += [f'({a} is null)', f'({a} is not null)', f'({a} is distinct from {b})',
                  f'({a} is not distinct from {b})',
                  f'({a} between {b} and {self.literal(family)})']
        items = ', '.join(self.literal(family) for _ in range(r.randint(1, 4)))
        forms += [f'({a} in ({items}))', f'({a} not in ({items}))',
                  f'({a} not in ({items}, NULL))']
        if family == 'text':
            forms += [f"({a} like '{p}')" for p in ('a%', '%i%', '%', 'ab', '_', '_a%', '%_i%')]
            forms += [f"({a} ilike 'k%')", f'contains({a}, {b})', f'starts_with({a}, {b})',
                      f"regexp_matches({a}, '^[a-m]+$')"]
            forms += [f"({a} not like 'a%')"]
            order = r.choice(['<', '<=', '=', '<>', '>', 'is distinct from'])
            forms += [f"(try_cast({a} as {ENUM}) {order} {x})"
                      for x in (f"'ab'::{ENUM}", f'try_cast({b} as {ENUM})')]
        return r.choice(forms)

    def subquery_predicate(self, columns):
        r = self.r
        text, inner = self.source()
        family = r.choice(['number', 'text', 'date'])
        a, b = self.value(columns, family, 2), self.pick(inner, family)
        where = f' where {self.predicate(inner, 2)}' if r.random() < 0.6 else ''
        x, y = self.pick(columns, family), self.pick(inner, family)
        correlated = f'{x} = {y}' if x else self.predicate(inner, 2)
        more = f' and {self.predicate(inner + columns, 2)}' if r.random() < 0.4 else ''
        other = r.choice(['number', 'text', 'date'])
        p, q = self.pick(columns, other), self.pick(inner, other)
        link = f' where {p} = {q}' if p else ''
        if p and r.random() < 0.4:
            more += f" and {q} {r.choice(['<>', 'is distinct from'])} {p}"
        aggregate = r.choice([f'max({b})', f'min({b})', f'count({b})'])
        number = self.pick(columns, 'number') or '1'
        if r.random() < 0.15:
            order = r.choice(['=', '<>', '<', '>='])
            return f'({a} {order} {r.choice(["any", "all"])} (select {b} from {text}{where}))'
        forms = [f'{a} in (select {b} from {text}{where})',
                 f'{a} not in (select {b} from {text}{where})',
                 f'exists (select 1 from {text} where {correlated}{more})',
                 f'not exists (select 1 from {text} where {correlated}{more})',
                 f'{a} in (select {b} from {text}{link})',
                 f'{a} not in (select {b} from {text}{link})',
                 f'({a} in (select {b} from {text}{where})) is null',
                 f'({number if aggregate.startswith("count") else a}) >= '
                 f'(select {aggregate} from {text}{link or where})']
        return '(' + r.choice(forms) + ')'

    def joined(self):
        r = self.r
        text, columns = self.source()
        for _ in range(r.choice([0, 0, 1, 1, 1, 2])):
            other, inner = self.source()
            family = r.choice(['number', 'number', 'text', 'date'])
            shared = {f for _, f in columns} & {f for _, f in inner}
            if r.random() < 0.3:
                family = r.choice(sorted(shared))
            a, b = self.pick(columns, family), self.pick(inner, family)
            on = f'{a} = {b}'
            if r.random() < 0.1:
                on = f'{a} {r.choice(["<", ">=", "<>"])} {b}'
            if r.random() < 0.15:
                on = f'{a} is not distinct from {b}'
            if r.random() < 0.3:
                second = r.choice(['number', 'text', 'date'])
                on += f' and {self.pick(columns, second)} = {self.pick(inner, second)}'
            if r.random() < 0.35:
                on += f' and {self.predicate(columns + inner, 2)}'
            kind = r.choice(['join', 'left join', 'left join', 'right join', 'full join',
                             'semi join', 'anti join'])
            text += f' {kind} {other} on {on}'
            if kind not in ('semi join', 'anti join'):
                columns = columns + inner
        return text, columns

    def where(self, columns):
        r = self.r
        parts = []
        if r.random() < 0.6:
            parts.append(self.predicate(columns))
        if r.random() < 0.25:
            parts.append(self.subquery_predicate(columns))
        return ' where ' + r.choice([' and ', ' and ', ' or ']).join(parts) if parts else ''

    def aggregate(self, columns):
        r = self.r
        family = self.family(columns)
        x = self.value(columns, family, 2)
        forms = ['count(*)', f'count({x})', f'count(distinct {x})', f'min({x})', f'max({x})']
        if family == 'text':
            forms += [f'min(try_cast({x} as {ENUM}))', f'count(distinct try_cast({x} as {ENUM}))']
        if family == 'float':
            forms += [f'median({x})']
        if family == 'wide':
            forms += [f'sum({x})', f'avg({x})', f'median({x})']
        if family in ('unsigned', 'float'):
            forms += [f'sum({x})', f'avg({x})', f'var_pop({x})', f'stddev_samp({x})']
        if family in ('time', 'stamp', 'zoned'):
            forms += [f'quantile_disc({x}, 0.5)']
        if family in ('number', 'double'):
            forms += [f'sum({x})', f'avg({x})', f'median({x})', f'quantile_disc({x}, 0.25)',
                      f'stddev_samp({x})', f'var_pop({x})']
        if family == 'truth':
            forms = [f'count({x})', f'bool_and({x})', f'bool_or({x})', f'count_if({x})']
        out = r.choice(forms)
        if r.random() < 0.15:
            out += f' filter (where {self.predicate(columns, 2)})'
        return out

    def order(self, count):
        r = self.r
        keys = r.sample(range(1, count + 1), r.randint(1, count))
        return ' order by ' + ', '.join(
            f'{k}{r.choice(["", " asc", " desc"])}{r.choice(["", " nulls first", " nulls last"])}'
            for k in keys)

    def keys(self, columns, count):
        return [f'{c}{self.r.choice(["", " desc"])}{self.r.choice(["", " nulls first", " nulls last"])}'
                for c in self.r.sample([c for c, _ in columns], min(count, len(columns)))]

    def all_keys(self, columns):
        """All columns in some order: rows that are apart are apart in it, 0.0 and -0.0 too."""
        return self.keys(columns, len(columns)) + [f'{c}::VARCHAR' for c, family in columns if family in ('double', 'float')]

    def windows(self, columns, count):
        """Window functions, of which one at most depends on the order of rows alike."""
        return [self.window(columns, may_depend=i == 0) for i in range(count)]

    def window(self, columns, may_depend):
        """A window function. Rows alike in all columns are alike in the result, so what depends on
        the order of rows is ordered by all of them."""
        r = self.r
        family = self.family(columns)
        x = self.value(columns, family, 2)
        parts = [self.value(columns, self.family(columns), 2) for _ in range(r.choice([0, 1, 1, 2]))]
        partition = f'partition by {", ".join(parts)} ' if parts else ''
        some, every = self.keys(columns, r.randint(1, 2)), self.all_keys(columns)
        end = lambda n: r.choice(['current row', f'{r.randint(0, n)} preceding',
                                  f'{r.randint(0, n)} following'])
        nulls = r.choice(['', '', ' ignore nulls'])
        aggregate = self.aggregate(columns)
        while 'distinct' in aggregate:
            aggregate = self.aggregate(columns)
        number = self.pick(columns, 'number')
        counted = r.choice([aggregate, aggregate, f'count(distinct {x})',
                            f'sum(distinct {number or "1"})'])
        exclude = r.choice(['', '', ' exclude current row', ' exclude group', ' exclude ties'])
        if 'median' in aggregate or 'quantile' in aggregate:
            exclude = ''
        kind = r.random() if may_depend else r.choice([0.1, 0.1, 0.5, 0.6, 0.7])
        if kind < 0.2:
            call = r.choice(['rank()', 'dense_rank()', 'percent_rank()', 'cume_dist()'])
            return f'{call} over ({partition}order by {", ".join(some)})'
        if kind < 0.4:
            call = r.choice(['row_number()', f'ntile({r.randint(1, 5)})', f'lag({x}{nulls})',
                             f'lead({x}, {r.randint(0, 3)}{nulls})',
                             f'lag({x}, {r.randint(-2, 3)}, {self.literal(family)})'])
            return f'{call} over ({partition}order by {", ".join(every)})'
        if kind < 0.55:
            frame = r.choice(['', ' range between current row and unbounded following',
                              ' range between unbounded preceding and unbounded following'])
            value = aggregate if 'current row and' in frame else counted
            return f'{value} over ({partition}order by {", ".join(some)}{frame})'
        if kind < 0.65:
            return f'{counted} over ({partition.strip()})'
        if kind < 0.72 and number or not may_depend:
            number = number or '1'
            value = r.choice([aggregate, f'sum({number})'])
            ends = r.choice([f'{r.randint(0, 5)} preceding and {r.randint(0, 5)} following',
                             f'{r.randint(3, 5)} preceding and {r.randint(0, 3)} preceding',
                             f'current row and {r.randint(0, 5)} following']) + exclude
            order = f'{number}{r.choice(["", " desc"])}{r.choice(["", " nulls first", " nulls last"])}'
            return f'{value} over ({partition}order by {order} range between {ends})'
        value = r.choice([f'first_value({x}{nulls})', f'last_value({x}{nulls})',
                          f'nth_value({x}, {r.randint(1, 3)}{nulls})', aggregate, aggregate])
        unit = r.choice(['rows', 'rows', 'rows', 'groups'])
        frame = r.choice([f'{unit} between unbounded preceding and {end(3)}',
                          f'{unit} between {end(3)} and unbounded following',
                          f'{unit} between {r.randint(0, 4)} preceding and {end(3)}',
                          f'{unit} between {end(2)} and {r.randint(0, 4)} following']) + exclude
        return f'{value} over ({partition}order by {", ".join(every)} {frame})'

    def grouped_by_sets(self, text, columns, where):
        r = self.r
        keys = [self.pick(columns, self.family(columns)) for _ in range(r.randint(1, 3))]
        keys = list(dict.fromkeys(keys))
        aggregates = [self.aggregate(columns) for _ in range(r.randint(1, 2))]
        aggregates += [f'grouping({", ".join(r.sample(keys, r.randint(1, len(keys))))})'
                       for _ in range(r.randint(0, 2))]
        sets = ', '.join('(' + ', '.join(r.sample(keys, r.randint(0, len(keys)))) + ')'
                         for _ in range(r.randint(1, 3)))
        by = r.choice([f'rollup ({", ".join(keys)})', f'cube ({", ".join(keys)})',
                       f'grouping sets ({sets}, ({", ".join(keys)}))'])
        return f'select {", ".join(keys + aggregates)} from {text}{where} group by {by}'

    def set_operation(self, text, columns, where):
        r = self.r
        other, inner = self.source()
        families = r.choices(['number', 'text', 'date'], k=r.choice([1, 1, 2, 3]))
        a = ', '.join(self.value(columns, f, 2) for f in families)
        b = ', '.join(self.value(inner, f, 2) for f in families)
        kind = r.choice(['union', 'union all', 'except', 'intersect', 'except all',
                         'intersect all'])
        return f'select {a} from {text}{where} {kind} select {b} from {other}'

    def common(self, text, columns, where):
        """A common table expression that is read twice."""
        r = self.r
        families = r.choices(['number', 'text', 'date'], k=2)
        outputs = [f'{self.value(columns, f, 2)} x{i}' for i, f in enumerate(families)]
        keep = r.choice(['', ' materialized'])
        body = f'select {", ".join(outputs)} from {text}{where}'
        if r.random() < 0.4:
            body = (f'select {outputs[0]}, count(*) x1 from {text}{where} group by 1')
        kind = r.choice(['join', 'left join', 'full join', 'semi join', 'anti join'])
        out = 'c.x0, c.x1' if kind[0] in 'sa' else 'c.x0, c.x1, d.x1'
        return (f'with c as{keep} ({body}) select {out} from c {kind} c d on c.x0 = d.x0 '
                f'where c.x1 is not null or (select count(*) from c) > {r.randint(0, 3)}')

    def subquery_value(self, columns):
        """A correlated scalar subquery."""
        r = self.r
        text, inner = self.source()
        family = r.choice(['number', 'text', 'date'])
        x, y = self.pick(columns, family), self.pick(inner, family)
        link = f'{x} = {y}' if x and y else self.predicate(inner, 2)
        keys = [c for c, _ in inner if c.endswith('k')]
        if keys and r.random() < 0.5:  # of one row at most
            a = self.pick(columns, 'number')
            more = f' and {self.predicate(inner + columns, 2)}' if r.random() < 0.4 else ''
            return (f'(select {self.value(inner, self.family(inner), 2)} from {text} '
                    f'where {keys[0]} = {a}{more})')
        more = f' and {self.predicate(inner + columns, 2)}' if r.random() < 0.3 else ''
        b = self.value(inner, self.family(inner), 2)
        call = r.choice([f'max({b})', f'min({b})', f'count({b})', 'count(*)', f'count(distinct {b})'])
        return f'(select {call} from {text} where {link}{more})'

    def select(self):
        r = self.r
        shape = r.random()
        text, columns = self.joined()
        where = self.where(columns)
        more = r.random()
        if more < 0.12:
            outputs = [self.value(columns, self.family(columns)) for _ in range(r.randint(0, 2))]
            windows = self.windows(columns, r.randint(1, 4))
            qualify = f' qualify {windows.pop()} is not null' if r.random() < 0.1 else ''
            outputs += windows or ['1']
            return f'select {", ".join(outputs)} from {text}{where}{qualify}'
        if more < 0.2:
            return self.grouped_by_sets(text, columns, where)
        if more < 0.28:
            return self.set_operation(text, columns, where)
        if more < 0.34:
            return self.common(text, columns, where)
        if more < 0.42:
            outputs = [self.value(columns, self.family(columns)),
                       r.choice([self.subquery_value, self.subquery_value, self.subquery_predicate])(columns)]
            return f'select {", ".join(outputs)} from {text}{where}'
        if more < 0.45:
            names = [c for c, _ in columns]
            key = self.value(columns, self.family(columns), 2)
            ordered = ", ".join(self.all_keys(columns))
            return (f'select distinct on ({key}) {key}, {r.choice(names)} from {text}{where} '
                    f'order by {key}, {ordered}')
        if shape < 0.35:
            outputs = [self.value(columns, self.family(columns)) for _ in range(r.randint(1, 4))]
            if r.random() < 0.1:
                outputs.append(self.subquery_predicate(columns))
            distinct = 'distinct ' if r.random() < 0.3 else ''
            query = f'select {distinct}{", ".join(outputs)} from {text}{where}'
            return query + (self.order(len(outputs)) if r.random() < 0.4 else '')
        if shape < 0.5:
            outputs = [self.aggregate(columns) for _ in range(r.randint(1, 4))]
            return f'select {", ".join(outputs)} from {text}{where}'
        if shape < 0.9:
            keys = [self.value(columns, self.family(columns), 1) for _ in range(r.randint(1, 2))]
            aggregates = [self.aggregate(columns) for _ in range(r.randint(1, 3))]
            having = ''
            if r.random() < 0.2:
                having = f' having {r.choice(["count(*) > 1", aggregates[0] + " is not null"])}'
            query = (f'select {", ".join(keys + aggregates)} from {text}{where} group by '
                     f'{", ".join(str(i + 1) for i in range(len(keys)))}{having}')
            return query + (self.order(len(keys)) if r.random() < 0.4 else '')
        return self.set_operation(text, columns, where)


def plain(value):
    """A cell of DuckDB: an exact number, a double, or text."""
    if isinstance(value, (bool, int)):
        return decimal.Decimal(int(value))
    if isinstance(value, float) and math.isnan(value):
        return 'nan'
    if value is None or isinstance(value, (decimal.Decimal, float)):
        return value
    if isinstance(value, datetime.timedelta):
        return decimal.Decimal(value // datetime.timedelta(microseconds=1))
    if isinstance(value, (datetime.datetime, datetime.time)):
        zone = '+00' if value.tzinfo else ''
        value = value.replace(tzinfo=None)
        return (str(value).rstrip('0') if value.microsecond else str(value)) + zone
    return str(value)


def key_of(row):
    """Rows in the same order on both sides: by what rounding cannot change, then by all digits."""
    def key(v, rounds):
        if isinstance(v, str):
            return True, True, v
        rounded = round(float(f'{v:.9g}'), 9) + 0.0 if rounds and isinstance(v, float) else v or 0
        return v is not None, False, rounded
    return [key(v, True) for v in row], [key(v, False) for v in row]


def same(a, b):
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-12)
    return a == b


def difference(got, wanted):
    """What one side has and the other has not."""
    rows, others = sorted(got, key=key_of), sorted(wanted, key=key_of)
    apart = [(x, y) for x, y in zip(rows, others) if len(x) != len(y) or not all(map(same, x, y))]
    return f'{len(rows)} rows, {len(others)} of DuckDB; apart: {len(apart)}\n' + '\n'.join(
        f'rndn: {x}\nDuckDB: {y}' for x, y in apart[:3])


def alike(got, wanted):
    if len(got) != len(wanted):
        return False
    for x, y in zip(sorted(got, key=key_of), sorted(wanted, key=key_of)):
        if len(x) != len(y) or not all(map(same, x, y)):
            return False
    return True


def less(a, b):
    """Of two values of a column; NaN is greater than all numbers."""
    if isinstance(a, str) != isinstance(b, str):
        return isinstance(b, str)
    return a < b


def in_order(got, query):
    """Are rows in the order that the statement asks for?"""
    clause = re.search(r' order by ([\d, a-z]+)$', query)
    if not clause:
        return True
    keys = []
    for part in clause[1].split(','):
        words = part.split()
        keys.append((int(words[0]) - 1, 'desc' in words, 'first' in words))
    for x, y in zip(got, got[1:]):
        for column, descends, nulls_first in keys:
            a, b = x[column], y[column]
            if a == b:
                continue
            if a is None or b is None:
                if (a is None) != nulls_first:
                    return False
            elif less(a, b) == descends:
                return False
            break
    return True


def microseconds(interval):
    """An interval's text as DuckDB's module has intervals: months of 30 days."""
    total, words = 0, interval.split()
    if words and ':' in words[-1]:
        clock = words.pop()
        hours, minutes, seconds = clock.lstrip('-').split(':')
        size = (int(hours) * 60 + int(minutes)) * 60 * 10**6 + int(decimal.Decimal(seconds) * 10**6)
        total += -size if clock.startswith('-') else size
    units = {'year': 360, 'month': 30, 'day': 1}
    for number, unit in zip(words[::2], words[1::2]):
        total += int(number) * units[unit.rstrip('s')] * 86400 * 10**6
    return decimal.Decimal(total)


def cells(rows, types):
    """The rows of rndn's JSON, typed as DuckDB's columns are."""
    def cell(v, t):
        if v is None:
            return None
        if t == 'BOOLEAN':
            return decimal.Decimal(v in (True, 'true', 1))
        if t in ('VARCHAR', 'ENUM', 'DATE', 'TIME', 'TIMESTAMP', 'TIMESTAMP WITH TIME ZONE'):
            return str(v)
        if t == 'INTERVAL':
            return microseconds(v)
        if t in ('DOUBLE', 'FLOAT'):
            number = float(v)
            if t == 'FLOAT' and math.isfinite(number):
                number = struct.unpack('f', struct.pack('f', number))[0]
            return 'nan' if math.isnan(number) else number
        return decimal.Decimal(v)
    return [[cell(v, t) for v, t in zip(row, types)] for row in rows]


class Rndn:
    def __init__(self, program, folder, device, encode='narrow', more=()):
        self.command = [program, 'sql', '-', '--data', str(folder), '--no-cache', '--format',
                        'json', '--device', device]
        if device != 'cpu':
            self.command += ['--backend', 'rndn', '--encode', encode, *more]

    def run(self, queries):
        """For each query its rows, or the error as text."""
        out = []
        while len(out) < len(queries):
            left = queries[len(out):]
            ran = subprocess.run(self.command, input=';\n'.join(left) + ';\n', text=True,
                                 capture_output=True)
            results = self.results(ran.stdout)
            out += results[:len(left)]
            if ran.returncode == 0:
                if len(results) != len(left):
                    raise RuntimeError(f'{len(results)} results of {len(left)} queries')
            elif len(out) < len(queries):
                kind = {1: 'input', 2: 'usage', 3: 'world'}.get(ran.returncode, 'crash')
                out.append(f'{kind}: {ran.stderr.strip()}')
        return out

    @staticmethod
    def results(text):
        if not text.strip():
            return []
        whole = json.loads(text, parse_float=decimal.Decimal)
        return [whole['rows']] if 'rows' in whole else [one['rows'] for one in whole.values()]


def stored(tables, folder, is_typed):
    """Writes the tables to the folder, as Parquet where they are typed; a connection of DuckDB's that has them."""
    connection = duckdb.connect()
    connection.execute("set TimeZone = 'UTC'")
    for t in tables:
        t.load(connection)
    if is_typed:
        for t in tables:
            t.export(connection, folder)
    else:
        (folder / 'schema.json').write_text(json.dumps({'tables': [t.write(folder) for t in tables]}))
    return connection


def report(counts, reasons, differences):
    """Prints what was counted; the exit code."""
    counts['different'] = differences
    for name, count in sorted(counts.items()):
        print(f'{name}: {count}')
    for reason, count in reasons.most_common(25):
        print(f'  {count} {reason}')
    return 1 if differences else 0


def is_missing(program):
    """Says what the comparison lacks: DuckDB here, or the planner of rndn."""
    if duckdb is None:
        print('skipped: this Python has no module duckdb (pip install duckdb==2.0.1)')
        return True
    probe = subprocess.run([program, 'sql', 'select 1', '--device', 'cpu'], text=True, capture_output=True)
    if probe.returncode == 3:
        print('skipped:', probe.stderr.strip())
    return probe.returncode == 3


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('rndn')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--schemas', type=int, default=10)
    parser.add_argument('--queries', type=int, default=50, help='for each schema')
    parser.add_argument('--device', default='cpu')
    parser.add_argument('--arch', help='target of the simulator, such as sm_61')
    parser.add_argument('--encode', default='narrow', help='of columns on the device')
    parser.add_argument('--group', choices=['sort', 'hash'], help='how, on the device; by default as it sees fit')
    parser.add_argument('--keep', help='a folder for the tables of schemas with differences')
    parser.add_argument('--alone', action='store_true', help='show errors that one side alone raises')
    parser.add_argument('--show', type=int, default=5, help='differences shown in full')
    options = parser.parse_args()
    if is_missing(options.rndn):
        return 77
    counts, reasons, differences = collections.Counter(), collections.Counter(), 0
    for number in range(options.schemas):
        r = random.Random(f'{options.seed}/{number}')
        folder = pathlib.Path(tempfile.mkdtemp(prefix='rndn-sql-'))
        is_extreme, is_typed = r.random() < 0.15, r.random() < 0.5
        tables = [Table(r, name, is_extreme, is_typed) for name in 'pqs']
        connection = stored(tables, folder, is_typed)
        more = [f'--{name}={value}' for name in ('arch', 'group') if (value := getattr(options, name))]
        rndn = Rndn(options.rndn, folder, options.device, options.encode, more)
        queries, answers = [], []
        while len(queries) < options.queries:
            query = Query(r, tables, is_extreme, is_typed).select()
            too_long = threading.Timer(10, connection.interrupt)
            too_long.start()
            try:
                answer = connection.execute(query)
                types = [str(d[1]).split('(')[0] for d in answer.description]
                rows = [[plain(v) for v in row] for row in answer.fetchall()]
            except (duckdb.OutOfRangeException, duckdb.ConversionException):
                types, rows = None, None
            except duckdb.Error as error:
                counts['refused by DuckDB'] += 1
                reasons['DuckDB: ' + str(error).split('\n')[0][:90]] += 1
                continue
            finally:
                too_long.cancel()
            if rows is not None and len(rows) > 20000:
                continue
            queries.append(query)
            answers.append((types, rows))
        kept = False
        for query, (types, wanted), got in zip(
                queries, answers, rndn.run(queries)):
            if isinstance(got, str):
                if got.startswith('input') and REFUSED.search(got):
                    counts['refused by rndn'] += 1
                    first = re.search(r'(?:error: )(.*)', got)
                    reasons[re.sub(r'r\d+\.\w+|`[^`]*`', '..', first[1] if first else got)[:110]] += 1
                    continue
                if RAISED.search(got):
                    counts['raised by both' if wanted is None else 'raised by rndn alone'] += 1
                    if wanted is not None and options.alone:
                        print(f'--- rndn alone raises (seed {options.seed}/{number})\n{query}\n{got}')
                    continue
                problem = got
            elif wanted is None:
                counts['raised by DuckDB alone'] += 1
                if options.alone:
                    print(f'--- DuckDB alone raises (seed {options.seed}/{number})\n{query}')
                continue
            else:
                rows = cells(got, types)
                if alike(rows, wanted) and in_order(rows, query):
                    counts['alike'] += 1
                    continue
                problem = difference(rows, wanted)
            differences += 1
            kept = True
            if differences <= options.show:
                print(f'--- {folder} (seed {options.seed}/{number})\n{query}\n{problem[:1500]}')
        if not kept:
            shutil.rmtree(folder)
        elif options.keep:
            shutil.copytree(folder, pathlib.Path(options.keep) / folder.name)
    if (counts['raised by DuckDB alone'] > 4 + counts['raised by both'] or
            counts['raised by rndn alone'] > 1 + counts['raised by both'] // 8):
        print('errors that one side raises alone are too many')
        differences += 1
    return report(counts, reasons, differences)


if __name__ == '__main__':
    sys.exit(main())
