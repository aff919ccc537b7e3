#!/usr/bin/env python3
"""Variances and covariances of floats against exact arithmetic.

    tests/sql_random/variances.py build/bin/rndn [--device sim]

In: groups of random numbers around means of 1 to 1e15, whose spread is 1 and less: what is added up
without its mean loses all digits there, and Welford's way some. Out: the greatest relative error of
each function, over groups, and over the partitions of windows; each is at most 1e-12 (fractions of
whole numbers are the witness). Exit code 1 where one is greater, 77 where rndn's planner is missing.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile
from fractions import Fraction

import random_sql

MOST = 1e-12
FUNCTIONS = ['var_samp(x)', 'var_pop(y)', 'covar_pop(x, y)', 'covar_samp(y, x)']


def exactly(xs, ys):
    n = len(xs)
    mean_x, mean_y = sum(xs) / n, sum(ys) / n
    of = lambda a, m, b, k: sum((p - m) * (q - k) for p, q in zip(a, b))
    xy = of(xs, mean_x, ys, mean_y)
    return [of(xs, mean_x, xs, mean_x) / (n - 1), of(ys, mean_y, ys, mean_y) / n, xy / n, xy / (n - 1)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('rndn')
    parser.add_argument('--device', default='cpu')
    options = parser.parse_args()
    probe = subprocess.run([options.rndn, 'sql', 'select 1', '--device', 'cpu'], text=True, capture_output=True)
    if probe.returncode == 3:
        print('skipped:', probe.stderr.strip())
        return 77
    r = random.Random(5)
    rows = [(g, (-1) ** g * 10.0 ** (3 * g) + r.random(), r.random() * i) for g in range(6) for i in range(300)]
    r.shuffle(rows)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / 'w.csv').write_text('g,x,y\n' + ''.join(f'{g},{x!r},{y!r}\n' for g, x, y in rows))
        columns = [{'name': n, 'type': t} for n, t in (('g', 'i32'), ('x', 'f64'), ('y', 'f64'))]
        (folder / 'schema.json').write_text(json.dumps(
            {'tables': [{'name': 'w', 'file': 'w.csv', 'header': True, 'columns': columns}]}))
        windows = ', '.join(f'{f} over (partition by g)' for f in FUNCTIONS)
        got = random_sql.Rndn(options.rndn, folder, options.device).run(
            [f'select g, {", ".join(FUNCTIONS)} from w group by g', f'select distinct g, {windows} from w'])
    wrong = False
    for where, answer in zip(('groups', 'windows'), got):
        if isinstance(answer, str) or len(answer) != 6:
            print(where, answer)
            return 1
        errors = [0] * len(FUNCTIONS)
        for row in answer:
            own = [(Fraction(x), Fraction(y)) for g, x, y in rows if g == int(row[0])]
            for k, exact in enumerate(exactly(*zip(*own))):
                errors[k] = max(errors[k], float(abs((Fraction(row[1 + k]) - exact) / exact)))
        for function, error in zip(FUNCTIONS, errors):
            print(f'{where}: {function} is off by {error:.1e} of its value')
            wrong |= not error <= MOST
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
