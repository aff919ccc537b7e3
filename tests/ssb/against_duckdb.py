"""The programs of SSB, both forms, against DuckDB: it reads the files that `rndn ssb generate` writes and answers the texts in SQL;
`rndn ssb run` makes its tables in memory. Rows must be equal and in DuckDB's order, and nothing may fall back.

usage: against_duckdb.py RNDN [--scale 0.02] [--targets sm_61,sm_90] [--outline none,flow,full] [--device sim]

Exit code 70 where there is a difference, 77 (which CTest reads as skipped) where the module duckdb is missing.
"""
import argparse
import csv
import glob
import json
import os
import subprocess
import sys
import tempfile

try:
    import duckdb
except ImportError:
    duckdb = None

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
QUERIES = sorted(os.path.basename(path)[:-4] for path in glob.glob(f'{ROOT}/ssb/sql/q*.sql'))
TYPES = {'i32': 'INTEGER', 'sym': 'VARCHAR', 'str': 'VARCHAR', 'bool': 'BOOLEAN'}


def answer(folder, answers):
    """Writes what DuckDB answers as ANSWERS/QUERY.csv; gives the queries with rows."""
    connection = duckdb.connect()
    with open(f'{folder}/schema.json') as file:
        tables = json.load(file)['tables']
    for table in tables:
        columns = {column['name']: TYPES[column['type']] for column in table['columns']}
        columns['_'] = 'VARCHAR'  # behind the last delimiter
        names = ', '.join(column['name'] for column in table['columns'])
        connection.execute(f"create table {table['name']} as select {names} from "
                           f"read_csv('{folder}/{table['name']}.tbl', delim='|', header=false, quote='', columns={columns})")
    filled = set()
    for query in QUERIES:
        with open(f'{ROOT}/ssb/sql/{query}.sql') as file:
            result = connection.execute(file.read())
        names, rows = [column[0] for column in result.description], result.fetchall()
        with open(f'{answers}/{query}.csv', 'w', newline='') as file:
            csv.writer(file).writerows([names, *rows])
        if rows and rows != [(None,)]:
            filled.add(query)
    return filled


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('rndn')
    parser.add_argument('--scale', type=float, default=0.02)
    parser.add_argument('--targets', default='sm_60,sm_61,sm_75,sm_80,sm_86,sm_89,sm_90')
    parser.add_argument('--outline', default='none,flow,full')
    parser.add_argument('--device', default='sim')
    options = parser.parse_args()
    if duckdb is None:
        print('skipped: this Python has no module duckdb (pip install duckdb==2.0.1)')
        sys.exit(77)
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        scale = ['--scale', str(options.scale)]
        subprocess.run([options.rndn, 'ssb', 'generate', *scale, '-o', folder], check=True, stderr=subprocess.DEVNULL)
        filled = answer(folder, folder)
        empty = [query for query in QUERIES if query not in filled]
        expected = [] if options.scale >= 1 else ['q3.3', 'q3.4']
        if len(QUERIES) != 13 or empty != expected:
            sys.exit(f'{len(QUERIES)} queries, without rows: {empty}')
        for form in ('keys', 'joins'):
            for target in options.targets.split(','):
                for outline in options.outline.split(','):
                    where = ['--device', options.device] + (['--arch', target] if options.device == 'sim' else [])
                    done = subprocess.run(
                        [options.rndn, 'ssb', 'run', '--form', form, *scale, *where, '--outline', outline, '--no-fallback',
                         f'--verify={folder}'], text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=3000,
                        env={**os.environ, 'RNDN_CACHE_DIR': folder})
                    lines = done.stderr.splitlines()
                    good = sum(line.endswith(' as expected') for line in lines)
                    ok = done.returncode == 0 and good == len(QUERIES)
                    wrong += not ok
                    print(f'{form}, {target}, {outline}: {good} of {len(QUERIES)} right', flush=True)
                    if not ok:
                        print('\n'.join('    ' + line for line in lines if not line.endswith(' as expected'))[:2000])
    sys.exit(70 if wrong else 0)


if __name__ == '__main__':
    main()
