#!/usr/bin/env python3
"""Orders of joins judged by the true sizes of what they join.

    tests/sql_random/join_orders.py build/bin/plan_to_sql build/bin/rndn --scale 1 > docs/measurements/join-orders.tsv

Two plans of each query of TPC-H and SSB: rndn's, made on its shadow tables, and DuckDB's, made with
the same optimizers on the real tables. Each is rendered to SQL (plan_to_sql), and DuckDB counts the
rows of every join in it. A line per query: joins and the sum of their rows of both plans, and the
ratio of the sums, which is 1 where the orders are equally good. Fails where the geometric mean of the
ratios is above 1.15.
"""
import argparse
import math
import subprocess
import sys
import tempfile

import random_sql
import render_back


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('renderer')
    parser.add_argument('rndn')
    parser.add_argument('--scale', default='0.01')
    options = parser.parse_args()
    if random_sql.duckdb is None:
        print('skipped: this Python has no module duckdb (pip install duckdb==2.0.1)')
        return 77
    record = render_back.record
    witness = render_back.Witness(options.renderer, 0)

    def rows(connection, plan):
        rendered = witness.render(plan)
        if not rendered['joins']:
            return []
        counts = ', '.join(f'(SELECT count(*) FROM {j})' for j in rendered['joins'])
        return connection.execute(f"{rendered['with']} SELECT {counts}").fetchone()

    logarithms, worst = [], 0
    print('suite\tscale\tquery\tjoins, rndn\trows, rndn\tjoins, real tables\trows, real tables\tratio')
    for suite in record.SUITES:
        with tempfile.TemporaryDirectory(prefix='rndn-sql-') as folder:
            connection = render_back.filled(options.rndn, suite, options.scale, folder)
            queries = sorted((record.ROOT / suite / 'sql').glob('q*.sql'))
            for query in queries:
                text = query.read_text().rstrip().rstrip(';')
                own = subprocess.run([options.rndn, 'sql', str(query), '--data', f'{suite}:{options.scale}', '--emit',
                                      'plan', '--device', 'cpu'], check=True, capture_output=True, text=True).stdout
                ours, theirs = rows(connection, record.json.loads(own)), rows(connection, record.plan(connection, text))
                ratio = (sum(ours) + 1) / (sum(theirs) + 1)
                logarithms.append(math.log(ratio))
                worst = max(worst, ratio)
                print(suite, options.scale, query.stem, len(ours), sum(ours), len(theirs), sum(theirs), f'{ratio:.3f}',
                      sep='\t', flush=True)
    mean = math.exp(sum(logarithms) / len(logarithms))
    print(f'geometric mean {mean:.3f}, most {worst:.3f}', file=sys.stderr)
    return mean > 1.15


if __name__ == '__main__':
    sys.exit(main())
