#!/usr/bin/env python3
"""Tables of bench_operators and of the programs that do its work otherwise, side by side in Markdown:

    tests/operators/compare_table.py DOCUMENT TITLE RNDN OTHER..

RNDN is what bench_operators printed, OTHER what compare_operators and compare_cupy.py printed. Writes the table, a line per case and other program, into
DOCUMENT, in the place of the text between the lines "<!-- side by side -->" and "<!-- end -->", which must be there once.
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
        print("usage: compare_table.py DOCUMENT TITLE RNDN OTHER..", file=sys.stderr)
        return 2
    document, title = sys.argv[1:3]
    ours = {(name, rows): ms for name, rows, *ms, _ in cases(sys.argv[3])}
    out = [title, "", "| case | rows | rndn | other | by | rndn's speed to the other's |", "| --- | ---: | ---: | ---: | --- | ---: |"]
    seen = 0
    for path in sys.argv[4:]:
        for name, rows, ms, lowest, highest, by in cases(path):
            if (name, rows) not in ours:
                continue
            own = ours[name, rows]
            seen += 1
            out.append(f"| {name} | {rows} | {own[0]:.4f} ({own[1]:.4f} to {own[2]:.4f}) | {ms:.4f} ({lowest:.4f} to {highest:.4f}) | {by} | "
                       f"{ms / own[0]:.2f} |")
    if not seen:
        sys.exit("compare_table.py: no case is on both sides")
    with open(document) as file:
        text = file.read()
    begin, end = "<!-- side by side -->\n", "<!-- end -->\n"
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        sys.exit(f"{document}: expected one line <!-- side by side --> and one <!-- end --> behind it")
    head, tail = text[:text.index(begin) + len(begin)], text[text.index(end):]
    with open(document, "w") as file:
        file.write(head + "\n".join(out) + "\n" + tail)
    return 0


if __name__ == "__main__":
    sys.exit(main())
