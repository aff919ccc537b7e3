#!/usr/bin/env python3
"""Every function of SQL that rndn translates, against DuckDB, over a table of odd values.

    tests/sql_random/functions.py build/bin/rndn --device sim [--only WORD] [--one] [--rows N]
    tests/sql_random/functions.py build/bin/rndn --catalog [--only WORD]

In: the expressions of functions.txt. The table has nulls, empty texts, characters of 1 to 4 bytes,
negative numbers, leap days and ends of months. The expressions of a family are one statement; where
one differs, each is run for itself (`--one`: at once). Out: every difference with its expression, and
counts. With more rows than 70, most texts of `s` and `u` occur once or twice, as in columns that have
no dictionary. Doubles are compared to 1e-12, all else exactly. Exit code as random_sql.py's.
Left out: nothing that functions.txt has; a refusal is a difference here.

`--catalog`: every function of duckdb_functions() over the types of the table, each overload called
with its columns and with constants: answered as DuckDB does, refused by name, or wrong. Left out:
functions of lists, maps, structs and other types that rndn has not, of the database itself, and
those that draw numbers; collations.
"""
import argparse
import datetime
import decimal
import itertools
import json
import pathlib
import random
import re
import sys
import tempfile

import random_sql

COLUMNS = [('id', 'INTEGER', 'i32'), ('s', 'VARCHAR', 'str'), ('u', 'VARCHAR', 'str'),
           ('n', 'VARCHAR', 'str'), ('w', 'VARCHAR', 'str'), ('k', 'VARCHAR', 'sym'),
           ('i', 'INTEGER', 'i32'), ('j', 'INTEGER', 'i32'), ('b', 'BIGINT', 'i64'),
           ('h', 'SMALLINT', 'i16'), ('x', 'DOUBLE', 'f64'), ('f', 'FLOAT', 'f32'),
           ('m', 'DECIMAL(9,2)', 'decimal(9,2)'), ('v', 'DECIMAL(15,4)', 'decimal(15,4)'),
           ('d', 'DATE', 'date'), ('e', 'DATE', 'date'), ('t', 'TIMESTAMP', 'dt'),
           ('o', 'TIMESTAMP', 'dt'), ('q', 'BOOLEAN', 'bool')]
TEXTS = ['a', 'ab', 'Abc', 'éa', 'aé', 'É', '日本語', '日a本', '😀', 'x😀y', ' pad ', 'a_b', 'a%b', 'bab',
         'ß straße', 'Ωmega', ' ', 'aaa', 'A.b*c', '10', 'q"r', 'z' * 40]
LISTS = ['a,b,c', ',', 'é,日', '_x', '%', 'one', 'a,,b', '1,2,3,4']
NUMBERS = ['0', '1', '-7', '+5', ' 12 ', '3.5', '-3.5', '2.49', '1e3', '1.5e-1', '99', '128', '300',
           '12345678901', '1_000', '0x1F', '0b101', '.5', '5.', 'abc', '1e', '--1', '1 2', 'true', 'F',
           'yes', 'nan', 'inf', '1e400', '99999999999999999999', '1.005', '9.995', '-0.005', '1__0']
MOMENTS = ['2020-02-29', '2021-02-29', '2020-1-5', '1999/12/31', '2020-01-05 10:00:00', ' 2020-01-05 ',
           '2020-01-05T10:00:00.5Z', '2020-01-05 24:00:00', '2020-13-01', 'epoch', 'soon', '10:30',
           '23:59:59.25', '2020-01-05 10:00:00+02', '2020-01-05 1:2:3.1234567', '20200105', '1-1-1']
DAYS = ['1995-01-01', '1996-02-29', '1999-12-31', '2000-01-01', '2000-02-29', '2000-12-31', '2001-03-31',
        '2019-12-30', '2020-01-31', '2021-01-03', '1900-02-28', '1969-12-31', '1970-01-01', '2100-03-01']
TIMES = ['00:00:00', '23:59:59.999', '12:00:00.5', '01:02:03.004', '13:45:00']


def rows(count):
    r = random.Random(7)

    def or_null(value):
        return None if r.random() < 0.12 else value

    def moment():
        return datetime.datetime.fromisoformat(f'{r.choice(DAYS)} {r.choice(TIMES)}')

    def many(text, at):
        return text if count <= 70 or at % 10 == 0 else f'{text}{at * 7919 % count // 2}'

    for at in range(count):
        yield [at + 1,
               or_null(many(TEXTS[at % len(TEXTS)], at)) if at % 9 else None,
               or_null(many(r.choice(LISTS), at)), or_null(NUMBERS[at % len(NUMBERS)]),
               or_null(MOMENTS[at % len(MOMENTS)]), or_null(r.choice(['a', 'é', 'Ab', '%'])),
               or_null(r.randint(0, 9)), or_null(r.randint(-3, 3)),
               or_null(r.choice([0, 5, -17, 300, 10**10, 123456789])), or_null(r.randint(-9, 30)),
               or_null(r.choice([0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.14159, 1e-3, 12.345, -55.55, 99.95])),
               or_null(r.choice([0.0, 0.5, 0.1, -2.25, 16777216.0])),
               or_null(decimal.Decimal(r.choice([0, 5, -5, 50, 149, 150, -150, 249, 995, -1005, 12345]))
                       .scaleb(-2)),
               or_null(decimal.Decimal(r.choice([0, 5000, -5000, 12344999, 99995])).scaleb(-4)),
               or_null(datetime.date.fromisoformat(r.choice(DAYS))),
               or_null(datetime.date.fromisoformat(r.choice(DAYS))),
               or_null(moment()), or_null(moment()), or_null(r.random() < 0.5)]


def field(value):
    if value is None:
        return ''
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, datetime.datetime):
        return value.strftime('%Y-%m-%dT%H:%M:%S.') + f'{value.microsecond // 1000:03}'
    return '"' + str(value).replace('"', '""') + '"' if isinstance(value, str) else str(value)


# What --catalog calls a parameter of a type with, the more usual first.
ARGUMENTS = {
    'VARCHAR': ['s', "'b'", "'%Y'", 'u', 'n'], 'INTEGER': ['i', '2', 'j'], 'BIGINT': ['b', '3', 'i'],
    'SMALLINT': ['h', '2::smallint'], 'TINYINT': ['(i % 5)::tinyint'], 'UTINYINT': ['i::utinyint'],
    'USMALLINT': ['i::usmallint'], 'UINTEGER': ['i::uinteger'], 'UBIGINT': ['i::ubigint'],
    'HUGEINT': ['b::hugeint', '3::hugeint'], 'DOUBLE': ['x', '0.5::double', 'abs(x) + 1'],
    'FLOAT': ['f', '0.5::float'], 'DECIMAL': ['m', '1.50::decimal(9,2)', 'v'], 'DATE': ['d', 'e'],
    'TIMESTAMP': ['t', 'o'], 'TIMESTAMP WITH TIME ZONE': ['t::timestamptz', 'o::timestamptz'],
    'TIME': ['t::time', 'o::time'], 'BOOLEAN': ['q', 'not q'],
    'INTERVAL': ["interval '1 day'", "to_days(i)", '(t - o)'], 'ANY': ['i', 's', 'x', 'd'],
    'T': ['i', 'x', 's', 'd']}
# Texts that mean something to the function.
WORDS = {'date_trunc': "'month'", 'datetrunc': "'month'", 'date_part': "'month'", 'datepart': "'month'",
         'date_diff': "'day'", 'datediff': "'day'", 'date_sub': "'day'", 'datesub': "'day'",
         'timezone': "'UTC'", 'printf': "'%s'", 'format': "'{}'"}
FOREIGN = re.compile(r'STRUCT|MAP|UNION|\[|GEOMETRY|VARIANT|JSON|BIT$|LAMBDA|UUID|LIST|STATE|BIGNUM|BLOB|'
                     r'UHUGEINT|_NS|_S$|_MS$|TIME WITH|TUPLE|TYPE|NULL|INVALID|ARRAY')
NOT_CALLED = re.compile(r'__internal|__|icu_|collate|pg_|has_\w+_priv|current_|list_|array_|json|inet_|log|row$|'
                        r'(random|setseed|nextval|currval|setval|uuid|gen_random_uuid|now|today|version|user|'
                        r'getvariable|write_log|sleep_ms|error|txid_current|get_current\w*|transaction_\w+|'
                        r'in_search_path|vector_type|create_sort_key|combine|finalize|cast_to_type|'
                        r'reservoir_quantile|approx_\w+|hash|md5_number\w*|parse_duckdb\w+|from_json\w*|'
                        r'is_histogram\w+|remap_struct|replace_type|struct_\w+|can_cast_\w+|col_desc\w+|'
                        r'format_type|format_pg\w+|map_\w+|get_block_size|obj_d\w+|shobj_d\w+|session_user|'
                        r'generate_subscripts|regexp_split_to_table|variant\w*|timetz\w+|make_type|get_type|'
                        r'alias|typeof|unnest|icu_sort_key|hive_\w+|stats|current\w*|assert_true|'
                        r'combine_aggr|cardinality|enum_\w+|constant_or_null)$')


def calls_of(connection):
    """Of each function and overload: its kind, its name, and calls of it, the most usual first."""
    rows = connection.execute(
        "select distinct function_name, function_type, parameter_types, parameters, return_type, varargs "
        "from duckdb_functions() where function_type in ('scalar', 'aggregate', 'macro') "
        "and database_name = 'system' order by all").fetchall()
    for name, kind, types, parameters, result, more in rows:
        types = ['ANY' if t is None else t for t in types or []]
        if kind == 'macro':
            types = ['ANY'] * len(parameters)
        if NOT_CALLED.match(name) or any(FOREIGN.search(t) for t in [result or '', *types]):
            continue
        if more and len(types) < 2:
            types = types + [more] * (2 - len(types))
        choices = []
        for at, t in enumerate(types):
            known = ARGUMENTS.get(t.split('(')[0], [])
            if at > 0:  # another column before the first
                known = known[1:] + known[:1]
            choices.append([WORDS[name]] if at == 0 and name in WORDS and t == 'VARCHAR' else known)
        word = re.fullmatch(r'\w+', name) is not None
        calls = []
        for arguments in itertools.islice(itertools.product(*choices), 60):
            if word:
                calls.append(f'"{name}"({", ".join(arguments)})')
            elif len(arguments) == 2:
                calls.append(f'({arguments[0]} {name} {arguments[1]})')
            elif len(arguments) == 1:
                calls.append(f'({name} {arguments[0]})')
        yield kind, name, ', '.join(types), calls


def catalog(connection, rndn, only):
    """The table of --catalog; the number of wrong answers."""
    verdicts, wrong = {}, 0
    for kind, name, types, calls in calls_of(connection):
        if only not in name:
            continue
        key, asked = f'{name}({types})', 0
        for call in calls:
            if asked == 2:  # two ways that DuckDB answers are enough
                break
            query = f'select {call} as c from t' if kind == 'aggregate' else f'select id, {call} as c from t order by id'
            try:
                answer = connection.execute(query)
                wanted = [[random_sql.plain(v) for v in row] for row in answer.fetchall()]
            except random_sql.duckdb.Error:
                continue
            asked += 1
            types_of = [str(d[1]).split('(')[0] for d in answer.description]
            got = rndn.run([query])[0]
            if isinstance(got, str):
                reason = re.sub(r'\s+', ' ', got)
                verdict = 'refused' if got.startswith('input') else 'wrong'
            else:
                verdict = 'answered' if random_sql.alike(random_sql.cells(got, types_of), wanted) else 'wrong'
                reason = query
            worst = ['answered', 'refused', 'wrong']
            if worst.index(verdict) >= worst.index(verdicts.get(key, ('answered', ''))[0]):
                verdicts[key] = verdict, f'{call}: {reason[:150]}'
        verdicts.setdefault(key, ('not called', ''))
    for verdict in ('wrong', 'refused', 'not called', 'answered'):
        keys = sorted(k for k, v in verdicts.items() if v[0] == verdict)
        wrong += len(keys) if verdict == 'wrong' else 0
        print(f'{verdict}: {len(keys)}')
        for key in keys if verdict != 'answered' else []:
            print(f'  {key}\t{verdicts[key][1]}')
    return wrong


def statements(kind, expressions):
    """Queries of one kind over these expressions."""
    columns = ', '.join(f'{e} as c{at}' for at, e in enumerate(expressions))
    if kind == 'agg':
        return [f'select {columns} from t', f'select k, {columns} from t group by k order by k',
                f'select i % 2, q, {columns} from t where id > 5 group by all order by 1, 2',
                f'select {columns} from t where id < 0']
    if kind == 'query':
        return expressions
    return [f'select id, {columns} from t order by id']


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('rndn')
    parser.add_argument('--device', default='cpu')
    parser.add_argument('--only', default='', help='families or expressions with this word')
    parser.add_argument('--rows', type=int, default=70)
    parser.add_argument('--stride', type=int, default=1, help='each n-th expression')
    parser.add_argument('--one', action='store_true', help='a statement for each expression')
    parser.add_argument('--catalog', action='store_true', help="all of DuckDB's functions")
    options = parser.parse_args()
    if random_sql.is_missing(options.rndn):
        return 77
    folder = pathlib.Path(tempfile.mkdtemp(prefix='rndn-functions-'))
    table = list(rows(options.rows))
    lines = [','.join(c[0] for c in COLUMNS)] + [','.join(map(field, row)) for row in table]
    (folder / 't.csv').write_text('\n'.join(lines) + '\n')
    (folder / 'schema.json').write_text(json.dumps({'tables': [
        {'name': 't', 'file': 't.csv', 'header': True,
         'columns': [{'name': c[0], 'type': c[2]} for c in COLUMNS]}]}))
    connection = random_sql.duckdb.connect()
    connection.execute("set TimeZone = 'UTC'")
    connection.execute(f'create table t ({", ".join(f"{c[0]} {c[1]}" for c in COLUMNS)})')
    connection.executemany(f'insert into t values ({",".join("?" * len(COLUMNS))})', table)
    rndn = random_sql.Rndn(options.rndn, folder, options.device)
    if options.catalog:
        return 1 if catalog(connection, rndn, options.only) else 0

    families, family = [], []
    for line in pathlib.Path(__file__).with_name('functions.txt').read_text().splitlines():
        if line.startswith('## '):
            family = []
            families.append((line[3:], family))
        elif line and not line.startswith('#'):
            family.append(line)
    counts = {'alike': 0, 'different': 0, 'errors alike': 0}

    def differs(query):
        """None where both agree, else what is wrong."""
        answer = connection.execute(query)
        types = [str(d[1]).split('(')[0] for d in answer.description]
        wanted = [[random_sql.plain(v) for v in row] for row in answer.fetchall()]
        got = rndn.run([query])[0]
        if isinstance(got, str):
            return got
        got = random_sql.cells(got, types)
        if random_sql.alike(got, wanted):
            return None
        wrong = [(x, y) for x, y in zip(got, wanted) if not all(map(random_sql.same, x, y))]
        return '\n'.join(f'  rndn   {x}\n  DuckDB {y}' for x, y in wrong[:4])

    def check(name, kind, expressions):
        for query in statements(kind, expressions):
            problem = differs(query)
            if problem is None:
                continue
            if len(expressions) > 1:
                before = counts['different']
                for e in expressions:
                    check(name, kind, [e])
                if counts['different'] == before:
                    counts['different'] += 1
                    print(f'--- {name}, together alone: {query}\n{problem[:1200]}')
                return
            counts['different'] += 1
            print(f'--- {name}: {query}\n{problem[:1200]}')
            return
        counts['alike'] += len(expressions)

    at = -1
    for name, lines in families:
        kinds = {}
        for line in lines:
            at += 1
            if at % options.stride:
                continue
            word, _, rest = line.partition(' ')
            kind, expression = (word, rest) if word in ('agg', 'fail', 'query') else ('', line)
            if options.only in name or options.only in expression:
                kinds.setdefault(kind, []).append(expression)
        for kind, expressions in kinds.items():
            if kind != 'fail':
                alone = options.one or kind == 'query'
                for part in ([e] for e in expressions) if alone else [expressions]:
                    check(name, kind, part)
                continue
            for e in expressions:
                expression, _, where = e.partition(' where ')
                query = f'select {expression} from t' + (f' where {where}' if where else '')
                try:
                    connection.execute(query).fetchall()
                    raise RuntimeError(f'DuckDB answers {query}')
                except random_sql.duckdb.Error:
                    pass
                got = rndn.run([query])[0]
                if isinstance(got, str) and got.startswith('input') and 'translation' not in got:
                    counts['errors alike'] += 1
                else:
                    counts['different'] += 1
                    print(f'--- {name}: {query}\n  expected an error, got {str(got)[:300]}')
    for name, count in counts.items():
        print(f'{name}: {count}')
    return 1 if counts['different'] else 0


if __name__ == '__main__':
    sys.exit(main())
