#!/usr/bin/env python3
"""Files with damage as tables: Parquet, JSON lines, CSV and compressed CSV, whose bytes are flipped, dropped, doubled or cut off.

Each file is read whole and by one column, counted and described, and cached columns are read again. Whatever is in it, there is
an answer or an error.
"""
import gzip
import os

from harness import Fuzzer

ROWS = """SELECT i AS a, i * 1000000007 AS b, i / 7.0 AS c, CAST(i AS VARCHAR) || ' text' AS d,
  DATE '2024-01-01' + CAST(i AS INTEGER) AS e, i % 3 = 0 AS f, CASE WHEN i % 5 > 0 THEN i END AS g,
  CAST(i AS DECIMAL(18,3)) AS h, CASE WHEN i % 4 > 0 THEN 'k' || CAST(i % 9 AS VARCHAR) END AS k FROM range(200) AS r(i)"""


def damaged(random, content):
    data = bytearray(content)
    for _ in range(random.choice((1, 1, 1, 2, 4, 16))):
        if not data:
            break
        # Headers and footers say most.
        near_an_end = random.random() < 0.4
        at = random.choice((random.randrange(min(64, len(data))), len(data) - 1 - random.randrange(min(600, len(data))))) \
            if near_an_end else random.randrange(len(data))
        kind = random.randrange(8)
        length = random.choice((1, 1, 2, 4, 30))
        if kind < 3:
            data[at] ^= 1 << random.randrange(8)
        elif kind == 3:
            data[at] = random.choice((0, 0x7F, 0x80, 0xFF, ord('"'), ord(","), ord("\n"), ord("{")))
        elif kind == 4:
            del data[at : at + length]
        elif kind == 5:
            data[at:at] = data[at : at + length]
        elif kind == 6:
            data[at:at] = bytes(random.randrange(256) for _ in range(length))
        else:
            del data[at:]
    return bytes(data)


def main():
    fuzz = Fuzzer(__doc__)
    seeds = []
    for name, options in (("plain", "FORMAT parquet"), ("zstd", "FORMAT parquet, COMPRESSION zstd"),
                          ("groups", "FORMAT parquet, ROW_GROUP_SIZE 60")):
        why, _ = fuzz.run(["sql", f"COPY ({ROWS}) TO '{name}.parquet' ({options})", "--device", "cpu"])
        if why or not os.path.exists(fuzz.path(name + ".parquet")):
            raise SystemExit(f"cannot write {name}.parquet: {why}")
        with open(fuzz.path(name + ".parquet"), "rb") as file:
            seeds.append((".parquet", file.read()))
    _, csv = fuzz.run(["sql", ROWS, "--device", "cpu", "--format", "csv"])
    lines = csv.decode().splitlines()
    head = lines[0].split(",")
    json_lines = "".join(
        "{" + ",".join(f'"{k}":"{v}"' if v and not v.replace(".", "").isdigit() else f'"{k}":{v or "null"}'
                       for k, v in zip(head, line.split(","))) + "}\n"
        for line in lines[1:]
    ).encode()
    seeds += [(".csv", csv), (".tsv", csv.replace(b",", b"\t")), (".csv.gz", gzip.compress(csv)), (".jsonl", json_lines)]
    shell = ["shell", "--device", fuzz.options.device, "--format", "csv", "--timeout", "10", "--max-memory", "2G"]
    made = 0
    while fuzz.goes_on():
        batch = []
        for _ in range(12):
            end, content = fuzz.random.choice(seeds)
            made += 1
            name = f"damaged{made}{end}"
            with open(fuzz.path(name), "wb") as file:
                file.write(damaged(fuzz.random, content))
            batch.append((name, f"SELECT * FROM '{name}';\nSELECT k, count(*), sum(a), max(d) FROM '{name}' GROUP BY k;\n"
                                f"SELECT count(*) FROM '{name}' WHERE g > 3;\nDESCRIBE SELECT * FROM '{name}';\nSELECT * FROM '{name}';\n"))
        why, out = fuzz.run(shell, "".join(text for _, text in batch) + "SELECT 'the end' AS x;\n", seconds=300)
        fuzz.inputs_run += len(batch)
        fuzz.answered += out.count(b"\r\n") > len(batch)
        if not why and b"the end" not in out and not fuzz.slow:
            why = "the last statement was not reached"
        for name, text in batch if why else ():
            alone, _ = fuzz.run(shell, text, seconds=60)
            if alone:
                with open(fuzz.path(name), "rb") as file:
                    fuzz.finding(name, file.read(), alone)
                why = None
                break
        if why:
            fuzz.finding("files-batch", "".join(text for _, text in batch), why)
        for name, _ in batch:
            os.remove(fuzz.path(name))
    fuzz.end()


main()
