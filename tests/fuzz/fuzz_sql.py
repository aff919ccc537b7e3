#!/usr/bin/env python3
"""SQL text through planner, translator, compiler and interpreter, over tiny tables with nulls and numbers at the ends of their types.

The statements of tests/sql_translate/*.sql are cut into words; words and whole parentheses are dropped, doubled, swapped,
taken from other statements and replaced by literals that are hard. Whatever comes of it has an answer or an error.
"""
import glob
import json
import os
import re
import shutil

from harness import ROOT, Fuzzer

WORDS = re.compile(r"""'(?:[^']|'')*'|"[^"]*"|[A-Za-z_]\w*|\d+\.?\d*|<=|>=|<>|\|\||::|.""", re.DOTALL)
LITERALS = """NULL 0 -1 1 2147483647 -2147483648 9223372036854775807 -9223372036854775808 1e308 -1e-320 0.1 'NaN'::double
 99999999999999999999999999999999999999 '' 'x' '%' 'é' '\\' date'0001-01-01' date'9999-12-31' date'1969-12-31' true false
 interval'1'month timestamp'1969-12-31' 1::decimal(38,38) -1::tinyint [] (1,2) 1=1""".split()
# What stands around an expression.
FORMS = """abs(@); cast(@ as varchar); cast(@ as double); try_cast(@ as integer); cast(@ as decimal(9,2)); coalesce(@, @);
nullif(@, @); case when @ is null then 1 else 2 end; case @ when @ then @ end; (@ + 1); (-@); (@ * @); (@ || 'x'); not (@);
(@ is null); sum(@); count(distinct @); min(@); avg(@); string_agg(@, ','); first(@); median(@); stddev(@);
(select max(k) from u); (select count(*) from u where u.k = @); (@ in (select k from u)); exists (select 1 from v where v.k = @);
row_number() over (order by @); sum(@) over (partition by @ order by @ rows between 1 preceding and current row);
lag(@, 1, @) over (order by @); (@ between @ and @); (@ like '%x_'); upper(@); substring(@, 1, 2); length(@); round(@, 2);
(@ // 2); (@ % 3); (@ is distinct from @); greatest(@, @); extract(year from @); date_trunc('month', @); (@ = any(select b from t));
sum(@) filter (where @ > 0); ntile(3) over (order by @ desc nulls first); cast(@ as date); regexp_matches(@, 'x+')""".split(";")
OPERATORS = ["+", "-", "*", "/", "%", "<", ">", "=", "<=", ">=", "<>", "||", " and ", " or ", " is distinct from ", "//"]
PIECES = """select distinct from where group by order having limit offset union intersect except all in exists not between
 case when then else end join left right full cross on using over partition rows range preceding following current row
 filter qualify with recursive values unnest cube rollup grouping sets nulls""".split()


def seeds():
    found = []
    for path in sorted(glob.glob(os.path.join(ROOT, "tests", "sql_translate", "*.sql"))):
        if os.path.basename(path) == "statements.sql":  # over TPC-H
            continue
        with open(path, encoding="utf-8") as file:
            found += [s.strip() for s in file.read().split(";") if s.strip()]
    return [WORDS.findall(" ".join(s.split())) for s in found]


def closing(words, at):
    """Behind the parenthesis that closes the one at `at`."""
    depth = 0
    for i in range(at, len(words)):
        depth += (words[i] == "(") - (words[i] == ")")
        if depth == 0:
            return i + 1
    return len(words)


def group(random, words):
    """The bounds of a parenthesis, or of a few words."""
    opens = [i for i, w in enumerate(words) if w == "("]
    if opens and random.random() < 0.5:
        begin = random.choice(opens)
        return begin, closing(words, begin)
    begin = random.randrange(len(words))
    return begin, min(len(words), begin + random.randrange(1, 6))


COLUMNS = "id a b s d m f k w big small i h l x t".split()


def is_operand(words, i):
    """A column or a literal, and no name of a function or table."""
    word = words[i]
    after = next((w for w in words[i + 1 :] if w != " "), "")
    return (word in COLUMNS and after not in ("(", ".")) or word[:1].isdigit() or word[:1] == "'"


def change_gently(random, words, other):
    """Another operand, operator or form around an expression: most of it is still SQL."""
    operands = [i for i in range(len(words)) if is_operand(words, i)]
    kind = random.randrange(5)
    if kind == 0 and operands:
        words[random.choice(operands)] = random.choice(LITERALS)
    elif kind == 1 and operands:
        words[random.choice(operands)] = random.choice(COLUMNS)
    elif kind == 2:
        places = [i for i, w in enumerate(words) if w in OPERATORS]
        if places:
            words[random.choice(places)] = random.choice(OPERATORS)
    elif kind == 3 and operands:
        at = random.choice(operands)
        words[at] = random.choice(FORMS).strip().replace("@", words[at])
    else:
        theirs = [i for i, w in enumerate(other) if w == "("]
        ours = [i for i, w in enumerate(words) if w == "("]
        if theirs and ours:
            at, to = random.choice(ours), random.choice(theirs)
            words[at : closing(words, at)] = other[to : closing(other, to)]


def change_at_will(random, words, other):
    begin, end = group(random, words)
    kind = random.randrange(6)
    if kind == 0:
        del words[begin:end]
    elif kind == 1:
        words[begin:begin] = words[begin:end]
    elif kind == 2:
        first, last = group(random, other)
        words[begin:end] = other[first:last]
    elif kind == 3:
        at, to = random.randrange(len(words)), random.randrange(len(words))
        words[at], words[to] = words[to], words[at]
    elif kind == 4:
        words[begin:begin] = [" ", random.choice(PIECES), " "]
    else:
        words[begin:end] = ["(", *words[begin:end], ")"]


def mutated(random, all_seeds):
    words = list(random.choice(all_seeds))
    for _ in range(random.choice((1, 1, 2, 3, 5))):
        if words:
            change = change_gently if random.random() < 0.85 else change_at_will
            change(random, words, random.choice(all_seeds))
    # One line, one statement: what ends one, and comments that would swallow the next, go.
    text = "".join(words).replace(";", " ").replace("--", "- -").replace("/*", "/ *").replace("\n", " ")
    return text if text.count("'") % 2 == 0 and text.count('"') % 2 == 0 and "$" not in text else ""


def main():
    fuzz = Fuzzer(__doc__)
    tables = []
    for name in ("nulls", "overflow"):
        folder = os.path.join(ROOT, "tests", "sql_translate", name)
        with open(os.path.join(folder, "schema.json"), encoding="utf-8") as file:
            tables += json.load(file)["tables"]
        for path in glob.glob(os.path.join(folder, "*.csv")):
            shutil.copy(path, fuzz.folder)
    with open(fuzz.path("schema.json"), "w", encoding="utf-8") as file:
        json.dump({"tables": tables}, file)
    shell = ["shell", "--data", fuzz.folder, "--device", fuzz.options.device, "--format", "csv",
             "--timeout", "5", "--max-memory", "1G"]
    all_seeds = seeds()
    while fuzz.goes_on():
        batch = list(filter(None, (mutated(fuzz.random, all_seeds) for _ in range(60))))
        # A result is what stands between two of these.
        text = "".join(f"select 'answer {i}' as x;\n{s};\n" for i, s in enumerate(batch))
        why, out = fuzz.run(shell, text, seconds=400)
        fuzz.inputs_run += len(batch)
        pieces = re.split(rb"x\r\nanswer \d+\r\n", out)
        fuzz.answered += sum(1 for piece in pieces if piece)
        if not why and len(pieces) != len(batch) + 1 and not fuzz.slow:
            why = f"{len(pieces) - 1} of {len(batch)} statements were reached"
        if not why:
            continue
        for statement in batch:
            alone, _ = fuzz.run(shell, statement + ";\n", seconds=60)
            if alone:
                fuzz.finding("sql", statement + ";\n", alone)
                break
        else:
            fuzz.finding("sql-batch", text, why)
    fuzz.end()


main()
