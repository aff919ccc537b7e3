#!/usr/bin/env python3
"""Plans and answers of DuckDB for the tests of the translator.

    pip install duckdb==2.0.1
    build/bin/rndn tpch generate --scale 0.01 -o DIR
    tests/sql_translate/record.py DIR [NAME ..]

Writes plans/NAME.json (the plans of tpch/sql and ssb/sql), statements.json (each statement of statements.sql,
its plan without the fields that nothing reads, and its rows on the data of DIR), and nulls.json,
windows.json and sets.json (the same on the tables of nulls/), and overflow.json (on those of
overflow/, where DuckDB's error takes the place of rows). Plans are made on empty tables, as a
plan must not depend on data. With names: only those (plans, statements, nulls, ..).
"""
import datetime
import decimal
import json
import pathlib
import re
import sys

import duckdb

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
# The profile of runtime/planner: what draws conclusions from data, or puts functions of its own
# into plans, is off.
PROFILE = ('compressed_materialization,statistics_propagation,late_materialization,'
           'join_filter_pushdown,row_group_pruner,top_n_window_elimination,grouping_sets,'
           'partial_aggregate_pushdown,window_self_join,self_join_aggregate,aggregate_reuse,'
           'in_clause,reorder_filter')
TYPES = {'i8': 'TINYINT', 'i16': 'SMALLINT', 'i32': 'INTEGER', 'i64': 'BIGINT', 'sym': 'VARCHAR', 'str': 'VARCHAR',
         'date': 'DATE', 'character': 'VARCHAR', 'boolean': 'BOOLEAN'}
SUITES = {'tpch': 'tpch/schema.def', 'ssb': 'ssb/columns.def'}
UNREAD = {'alias', 'arguments', 'has_serialize', 'positional_arguments', 'query_location',
          'query_location_length', 'is_operator', 'bindings', 'bound_columns'}


def tables(suite):
    found = {}
    for line in (ROOT / SUITES[suite]).read_text().splitlines():
        row = re.match(r'([A-Z]+)\((.*)\)', line)
        if not row:
            continue
        cells = [cell.strip() for cell in row[2].split(',')]
        if row[1] == 'TABLE':
            columns = found[cells[0]] = {}
        else:
            columns[cells[0]] = 'DECIMAL(15,2)' if row[1] == 'MONEY' else TYPES[cells[1]]
    return found


def own_tables(name):
    types = {**TYPES, 'f64': 'DECIMAL(15,2)', 'bool': 'BOOLEAN'}
    schema = json.loads((HERE / name / 'schema.json').read_text())
    return {t['name']: {c['name']: types.get(c['type'], c['type']) for c in t['columns']}
            for t in schema['tables']}


def connect(tables, folder=None, read_options="delim='|', header=false", ending='tbl'):
    connection = duckdb.connect()
    for table, columns in tables.items():
        declared = ','.join(f'{c} {t}' for c, t in columns.items())
        connection.execute(f'create table {table} ({declared})')
        if folder:
            read = ','.join(f'{c!r}:{t!r}' for c, t in columns.items())
            connection.execute(
                f"insert into {table} select * from read_csv('{folder}/{table}.{ending}', "
                f"{read_options}, columns={{{read}}})")
    connection.execute(f"set disabled_optimizers='{PROFILE}'")
    return connection


def plan(connection, sql):
    text = sql.replace("'", "''")
    answer = connection.execute(
        f"select json_serialize_plan('{text}', optimize := true, skip_null := true, "
        "skip_empty := true, skip_default := true)").fetchone()[0]
    # As runtime/planner does with what is no JSON.
    return json.loads(re.sub(r':(NAN|-?Infinity)(?=[],}])', r':"\1"', answer))


def trimmed(json_value):
    if isinstance(json_value, dict):
        return {k: trimmed(v) for k, v in json_value.items() if k not in UNREAD}
    return [trimmed(v) for v in json_value] if isinstance(json_value, list) else json_value


def cell(value):
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, decimal.Decimal):
        digits = int(''.join(map(str, value.as_tuple().digits)))
        return float(value) if digits < 2 ** 63 else format(value, 'f')
    if isinstance(value, int) and abs(value) >= 2 ** 63:
        return str(value)
    return str(value) if isinstance(value, datetime.date) else value


def record(name, empty, full):
    text = (HERE / f'{name}.sql').read_text()
    statements = [s.strip() for s in text.split(';\n') if s.strip()]
    lines = []
    for sql in statements:
        answer = {'sql': sql, 'plan': trimmed(plan(empty, sql))}
        try:
            answer['rows'] = [[cell(c) for c in row] for row in full.execute(sql).fetchall()]
        except (duckdb.OutOfRangeException, duckdb.ConversionException,
                duckdb.InvalidInputException) as error:
            answer['error'] = str(error).splitlines()[0]
        lines.append(json.dumps(answer, separators=(',', ':')))
    (HERE / f'{name}.json').write_text('[\n' + ',\n'.join(lines) + '\n]\n')


def main(folder, *names):
    for suite in SUITES if not names or 'plans' in names else ():
        empty = connect(tables(suite))
        for query in sorted((ROOT / suite / 'sql').glob('q*.sql')):
            (HERE / 'plans' / f'{query.stem}.json').write_text(
                json.dumps(plan(empty, query.read_text()), separators=(',', ':')) + '\n')
    if not names or 'statements' in names:
        record('statements', connect(tables('tpch')), connect(tables('tpch'), folder))
    for name, data in (('nulls', 'nulls'), ('windows', 'nulls'), ('sets', 'nulls'),
                       ('overflow', 'overflow')):
        if not names or name in names:
            own = own_tables(data)
            record(name, connect(own), connect(own, HERE / data, "delim=',', header=true", 'csv'))


if __name__ == '__main__':
    main(*sys.argv[1:])
