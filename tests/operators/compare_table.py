#!/usr/bin/env python3
"""Tables of bench_operators and of the programs that do its work otherwise, side by side:

    tests/operators/compare_table.py FILE.tsv TITLE RNDN OTHER..

RNDN is what bench_operators printed, OTHER what compare_operators and compare_cupy.py printed. Writes a line per case and other program.
"""
import sys

NAME = 34  # columns of a case's name


def cases(path):
    """(case, rows, ms, lowest, highest, what did it), for each line that has these."""
    with open(path) as lines:
        for line in lines:
            words = line[NAME:].split(None, 5)
            try:
                yield line[:NAME].strip(), int(words[0]), *(float(w) for w in words[1:4]), words[5].strip()
            except (IndexError, ValueError):
                pass  # a heading, or the time of a single kernel


def main():
    if len(sys.argv) < 5:
        print("usage: compare_table.py FILE.tsv TITLE RNDN OTHER..", file=sys.stderr)
        return 2
    document, title = sys.argv[1:3]
    ours = {(name, rows): ms for name, rows, *ms, _ in cases(sys.argv[3])}
    out = [f"# {title}", "case\trows\trndn\tother\tby\trndn's speed to the other's"]
    seen = 0
    for path in sys.argv[4:]:
        for name, rows, ms, lowest, highest, by in cases(path):
            if (name, rows) not in ours:
                continue
            own = ours[name, rows]
            seen += 1
            out.append(f"{name}\t{rows}\t{own[0]:.4f} ({own[1]:.4f} to {own[2]:.4f})\t{ms:.4f} ({lowest:.4f} to {highest:.4f})\t{by}\t"
                       f"{ms / own[0]:.2f}")
    if not seen:
        sys.exit("compare_table.py: no case is on both sides")
    with open(document, "w") as file:
        file.write("\n".join(out) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
