#!/usr/bin/env python3
"""60 HorseIR programs over TPC-H in other people's style, each with the same question in SQL.

usage: tools/stranger_programs.py [--seed 1] -o DIR

They were written from docs/horseir.md alone, by nobody who had seen a program of this repository, as
a plain translator or another compiler writes them: a statement for each step of each operator, every
column carried along, nothing fused by hand. What differs from one to the next is the style, drawn
with the seed, as are the constants:
  filters  early: every column is compressed at once; mask: masks are put together and applied late;
           rows: columns stay whole, row numbers are carried and composed
  joins    pairs: join_index; lookup: index_of; enum: a foreign key made by enum; rows of a declared
           foreign key where the question says so
  groups   each: each_right of index, each of a reduction, raze; own: a function of the program for
           every cell; scan: sorted, running sums between the places where a key changes
Ten group by three or more columns of which one is text with very many values, ten join on keys that
are not unique, ten nest groups; the rest are semi- and anti-joins, outer joins by counting, first
rows, distinct values, shares, running sums, dates, text and sets.
Out: DIR/NAME.hir and DIR/NAME.sql; programs() gives them to tools/bench-strangers. The rows of both
are the same set, and in the same order where the SQL says one.
"""
import argparse
import ast
import pathlib
import random
from dataclasses import dataclass

COMPARE = {ast.Lt: "lt", ast.Gt: "gt", ast.LtE: "leq", ast.GtE: "geq", ast.Eq: "eq", ast.NotEq: "neq"}
ARITHMETIC = {ast.Add: "plus", ast.Sub: "minus", ast.Mult: "mul", ast.Div: "div", ast.Mod: "mod"}
REDUCTIONS = ("sum", "avg", "min", "max", "len")


@dataclass(frozen=True)
class Style:
    filters: str
    joins: str
    groups: str
    typed: bool


class Program:
    """Statements of one main, and the functions that it needs."""

    def __init__(self, style):
        self.style, self.lines, self.functions, self.tables, self.count = style, [], {}, {}, 0

    def let(self, call, type_="?", hint="t"):
        self.count += 1
        name = f"{hint}{self.count}"
        self.lines.append(f"{name}:{type_ if self.style.typed else '?'} = {call};")
        return name

    def call(self, builtin, *operands, type_="?"):
        return self.let(f"@{builtin}({', '.join(operands)})", type_, builtin[0])

    def columns(self, names):
        """One vector, or a list of several."""
        return names[0] if len(names) == 1 else self.call("list", *names)

    def load(self, table, columns, prefix=""):
        """A frame of these columns of a table. Foreign keys become the values that they stand for."""
        if table not in self.tables:
            self.tables[table] = self.let(f"@load_table(`{table}:sym)", "table", "t")
        frame = Frame(self, {})
        for column in columns.split():
            value = self.let(f"@column_value({self.tables[table]}, `{column}:sym)", hint=column + "_")
            if column in FOREIGN:
                value = self.call("fetch", value)
            frame.columns[prefix + column] = value
        return frame

    def code(self, text):
        """Statements as they are written, all types given."""
        self.lines += [line.strip() for line in text.strip().splitlines()]

    def own(self, name, text):
        """A function of the program, once; its text has the name as NAME."""
        self.functions[name] = text.replace("NAME", name)
        return "@" + name

    def text(self):
        body = "\n".join("    " + line for line in self.lines)
        functions = "".join(f"  {text}\n" for text in self.functions.values())
        return ("module m {\n  import Builtin.*;\n" + functions
                + f"  def main() : table {{\n{body}\n  }}\n}}\n")


FOREIGN = {"n_regionkey", "s_nationkey", "c_nationkey", "ps_partkey", "ps_suppkey", "o_custkey",
           "l_orderkey"}


class Frame:
    """Columns of one length: variables by name, with the mask or the row numbers not yet applied."""

    def __init__(self, program, columns):
        self.p, self.columns, self.mask, self.rows = program, columns, None, None

    def get(self, name):
        """The variable of a column as the program may use it now."""
        if self.rows:
            return self.p.call("index", self.columns[name], self.rows)
        return self.columns[name]

    def settle(self):
        """Applies what is pending to every column."""
        if self.mask:
            mask, self.mask = self.mask, None
            for name in self.columns:
                self.columns[name] = self.p.call("compress", mask, self.columns[name])
        if self.rows:
            for name in self.columns:
                self.columns[name] = self.get(name)
            self.rows = None
        return self

    def at(self, rows):
        self.settle()
        return {name: self.p.call("index", value, rows) for name, value in self.columns.items()}

    # expressions, in Python's syntax

    def value(self, text):
        return self.node(ast.parse(text.strip(), mode="eval").body)

    def node(self, e):
        if isinstance(e, ast.Name):
            return self.get(e.id)
        if isinstance(e, ast.Constant):
            if isinstance(e.value, str):
                return f'`"{e.value}":sym'
            return f"{e.value}:{'i64' if isinstance(e.value, int) else 'f64'}"
        if isinstance(e, ast.BinOp):
            return self.p.call(ARITHMETIC[type(e.op)], self.node(e.left), self.node(e.right))
        if isinstance(e, ast.Compare):
            sides = [self.node(side) for side in [e.left] + e.comparators]
            tests = [self.p.call(COMPARE[type(op)], x, y, type_="bool")
                     for op, x, y in zip(e.ops, sides, sides[1:])]
            return self.together("and", tests)
        if isinstance(e, ast.BoolOp):
            return self.together("and" if isinstance(e.op, ast.And) else "or",
                                 [self.node(v) for v in e.values])
        if isinstance(e, ast.UnaryOp):
            return self.p.call("not", self.node(e.operand), type_="bool")
        name, arguments = e.func.id, e.args
        if name in ("date", "char"):
            return f"{arguments[0].value}:date" if name == "date" else f"'{arguments[0].value}':char"
        if name == "cut":
            return self.p.call("sub_string", self.node(arguments[0]),
                               f"({arguments[1].value}, {arguments[2].value}):i64")
        if name == "like":
            return self.p.call("like", self.node(arguments[0]), f'"{arguments[1].value}":str',
                               type_="bool")
        if name == "cast":
            return self.p.let(f"check_cast({self.node(arguments[0])}, {arguments[1].id})", "?", "c")
        return self.p.call(name, *[self.node(a) for a in arguments])

    def together(self, builtin, values):
        result = values[0]
        for value in values[1:]:
            result = self.p.call(builtin, result, value, type_="bool")
        return result

    # operators

    def keep(self, mask):
        style = self.p.style.filters
        if style == "mask":
            self.mask = self.together("and", [m for m in (self.mask, mask) if m])
        elif style == "rows":
            rows = self.p.call("where", mask, type_="i64")
            self.rows = self.p.call("index", self.rows, rows, type_="i64") if self.rows else rows
        else:
            for name in self.columns:
                self.columns[name] = self.p.call("compress", mask, self.columns[name])
        return self

    def filter(self, text):
        return self.keep(self.value(text))

    def derive(self, **expressions):
        if self.rows:
            self.settle()
        for name, text in expressions.items():
            self.columns[name] = self.value(text)
        return self

    def join(self, other, left, right):
        """Pairs of equal keys. A key of `other` that is known to be unique may be looked up."""
        return self.pairs(other, [left], [right]) if self.p.style.joins == "pairs" \
            else self.lookup(other, left, right)

    def pairs(self, other, left, right):
        self.settle(), other.settle()
        pairs = self.p.let("@join_index(@eq, {}, {})".format(
            self.p.columns([self.columns[n] for n in left]),
            self.p.columns([other.columns[n] for n in right])), "list<i64>", "pairs")
        sides = [self.p.call("index", pairs, f"{i}:i64", type_="i64") for i in (0, 1)]
        return Frame(self.p, self.at(sides[0]) | other.at(sides[1]))

    def places(self, other, left, right):
        """The place of each key in `other`, and whether it is there."""
        self.settle(), other.settle()
        mine, theirs = self.columns[left], other.columns[right]
        if self.p.style.joins == "enum":
            place = self.p.call("values", self.p.call("enum", theirs, mine), type_="i64")
        else:
            place = self.p.call("index_of", mine, theirs, type_="i64")
        return place, self.p.call("lt", place, self.p.call("len", theirs, type_="i64"), type_="bool")

    def lookup(self, other, left, right):
        place, found = self.places(other, left, right)
        place = self.p.call("compress", found, place, type_="i64")
        mine = {n: self.p.call("compress", found, v) for n, v in self.columns.items()}
        return Frame(self.p, mine | other.at(place))

    def semi(self, other, left, right, inside=True):
        style = self.p.style.joins
        if style == "pairs" and inside:   # rows that have a partner, each once
            pairs = self.p.let(f"@join_index(@eq, {self.settle().columns[left]}, "
                               f"{other.settle().columns[right]})", "list<i64>", "pairs")
            mine = self.p.call("index", pairs, "0:i64", type_="i64")
            once = self.p.call("index", mine, self.p.call("unique", mine, type_="i64"), type_="i64")
            return Frame(self.p, self.at(once))
        if style == "enum":
            _, mask = self.places(other, left, right)
        else:
            self.settle(), other.settle()
            mask = self.p.call("member", self.columns[left], other.columns[right], type_="bool")
        return self.keep(mask if inside else self.p.call("not", mask, type_="bool"))

    def count_partners(self, other, left, right, name):
        """A left outer join that only counts: 0 where there is no partner."""
        self.settle(), other.settle()
        mine, theirs = self.columns[left], other.columns[right]
        if self.p.style.joins == "pairs":
            pairs = self.p.let(f"@join_index(@eq, {mine}, {theirs})", "list<i64>", "pairs")
            rows = self.p.call("index", pairs, "0:i64", type_="i64")
            counted = Frame(self.p, {"row": rows}).group("row", n="len(row)")
            zeros = self.p.call("vector", self.p.call("len", mine, type_="i64"), "0:i64", type_="i64")
            self.columns[name] = self.p.call("index_a", zeros, counted.columns["row"],
                                             counted.columns["n"], type_="i64")
        else:
            counted = Frame(self.p, {"key": theirs}).group("key", n="len(key)")
            place = self.p.call("index_of", mine, counted.columns["key"], type_="i64")
            self.columns[name] = self.p.call("index_or", counted.columns["n"], place, "0:i64",
                                             type_="i64")
        return self

    def group(self, keys, **aggregates):
        """Aggregates are sum, avg, min, max, len and distinct of an expression."""
        if self.rows:
            self.settle()
        calls = {n: ast.parse(t, mode="eval").body for n, t in aggregates.items()}
        inputs = {n: self.node(c.args[0]) for n, c in calls.items()}
        inputs |= {k: self.columns[k] for k in keys.split()}
        if self.mask:
            inputs = {n: self.p.call("compress", self.mask, v) for n, v in inputs.items()}
        functions = {n: c.func.id for n, c in calls.items()}
        if self.p.style.groups == "scan" and "distinct" not in functions.values():
            return self.sorted_groups(keys.split(), functions, inputs)
        g = self.p.let(f"@group({self.p.columns([inputs[k] for k in keys.split()])})",
                       "dict<i64,i64>", "groups")
        first = self.p.call("keys", g, type_="i64")
        rows = self.p.call("values", g, type_="list<i64>")
        result = {k: self.p.call("index", inputs[k], first) for k in keys.split()}
        for name, function in functions.items():
            if function == "len":
                cells = self.p.let(f"@each(@len, {rows})", "list<i64>", "sizes")
            else:
                parts = self.p.let(f"@each_right(@index, {inputs[name]}, {rows})", "?", "parts")
                cells = self.p.let(f"@each({self.of_cell(function)}, {parts})", "?", "cells")
            result[name] = self.p.let(f"@raze({cells})", "?", name + "_")
        return Frame(self.p, result)

    def of_cell(self, function):
        if function == "distinct":
            return self.p.own(f"distinct_of{len(self.p.functions)}", "def NAME(c:?) : i64 { u:i64 = @unique(c); "
                              "n:i64 = @len(u); return n; }")
        if self.p.style.groups == "own":
            # A parameter of type ? takes the type of the first call, so each call has its own.
            return self.p.own(f"{function}_of{len(self.p.functions)}",
                              f"def NAME(c:?) : ? {{ s:? = @{function}(c); return s; }}")
        return "@" + function

    def sorted_groups(self, keys, functions, inputs):
        order = self.p.let(f"@order({self.p.columns([inputs[k] for k in keys])}, 1:bool)", "i64", "o")
        inputs = {n: self.p.call("index", v, order) for n, v in inputs.items()}
        starts, ends = self.changes([inputs[k] for k in keys], order)
        ends = self.p.call("where", ends, type_="i64")
        begins = self.p.call("where", starts, type_="i64")
        counts = self.p.call("minus", ends, begins, type_="i64")
        counts = self.p.call("plus", counts, "1:i64", type_="i64")
        result = {k: self.p.call("index", inputs[k], begins) for k in keys}
        for name, function in functions.items():
            if function == "len":
                result[name] = counts
                continue
            scan = "scan_sum" if function == "avg" else "scan_" + function
            last = self.p.call("index", self.p.call(scan, inputs[name], starts), ends)
            result[name] = self.p.call("div", last, counts) if function == "avg" else last
        return Frame(self.p, result)

    def changes(self, columns, like):
        """Where a row of sorted columns is the first of its kind, and where the last."""
        pairs = [(self.p.call("drop", "-1:i64", c), self.p.call("drop", "1:i64", c)) for c in columns]
        change = self.together("or", [self.p.call("neq", *pair, type_="bool") for pair in pairs])
        n = self.p.call("len", like, type_="i64")   # of no rows there is no first one
        return [self.p.call("take", n, self.p.call("append", *sides, type_="bool"), type_="bool")
                for sides in (("1:bool", change), (change, "1:bool"))]

    def running(self, name, summed, within):
        """Sums from the first row with the same `within` on; the rows are sorted."""
        starts, _ = self.changes([self.columns[within]], self.columns[within])
        self.columns[name] = self.p.call("scan_sum", self.columns[summed], starts)

    def total(self, **aggregates):
        """Reductions of all rows: a frame of one row."""
        if self.rows:
            self.settle()
        result = {}
        for name, text in aggregates.items():
            call = ast.parse(text, mode="eval").body
            value = self.node(call.args[0])
            if self.mask:
                value = self.p.call("compress", self.mask, value)
            if call.func.id == "distinct":
                value = self.p.call("unique", value, type_="i64")
            result[name] = self.p.call("len" if call.func.id == "distinct" else call.func.id, value)
        return Frame(self.p, result)

    def sort(self, keys, first=None):
        """Keys ascend, or descend behind a minus; the first rows alone where there are more."""
        self.settle()
        names = keys.split()
        columns = self.p.columns([self.columns[n.lstrip("-")] for n in names])
        ways = [str(int(not n.startswith("-"))) for n in names]
        ascending = f"({', '.join(ways)}):bool" if len(ways) > 1 else ways[0] + ":bool"
        order = self.p.let(f"@order({columns}, {ascending})", "i64", "o")
        if first and self.p.style.filters == "early":
            n = self.p.call("len", order, type_="i64")   # take adds places where there are fewer
            less = self.p.call("lt", n, f"{first}:i64", type_="bool")
            n = self.p.call("select", less, n, f"{first}:i64", type_="i64")
            order = self.p.call("take", n, order, type_="i64")
        elif first:
            every = self.p.call("range", self.p.call("len", order, type_="i64"), type_="i64")
            order = self.p.call("compress", self.p.call("lt", every, f"{first}:i64", type_="bool"),
                                order, type_="i64")
        return Frame(self.p, self.at(order))

    def distinct(self, keys):
        self.settle()
        if len(keys.split()) == 1:
            first = self.p.call("unique", self.columns[keys], type_="i64")
            return Frame(self.p, {keys: self.p.call("index", self.columns[keys], first)})
        return self.group(keys)

    def result(self, names):
        self.settle()
        columns = self.p.call("list", *[self.columns[n] for n in names.split()])
        self.p.lines.append("r:table = @table((%s):sym, %s);" % (
            ", ".join("`" + n for n in names.split()), columns))
        self.p.lines.append("return r;")
        return self.p.text()


# The questions: each takes a program and a random generator, and returns its text and the SQL.

def wide_lines(p, r):
    f = p.load("lineitem", "l_returnflag l_linestatus l_comment l_quantity")
    g = f.group("l_returnflag l_linestatus l_comment", n="len(l_quantity)", q="sum(l_quantity)")
    k = r.randint(10, 30)
    g = g.sort("-n -q l_comment l_returnflag l_linestatus", k)
    return g.result("l_returnflag l_linestatus l_comment n q"), f"""
        select l_returnflag, l_linestatus, l_comment, count(*) as n, sum(l_quantity) as q from lineitem
        group by l_returnflag, l_linestatus, l_comment
        order by n desc, q desc, l_comment, l_returnflag, l_linestatus limit {k}"""


def wide_orders(p, r):
    f = p.load("orders", "o_orderpriority o_orderstatus o_comment o_totalprice")
    f.filter("o_totalprice > %d.0" % (low := r.randint(20, 90) * 1000))
    g = f.group("o_orderpriority o_orderstatus o_comment", n="len(o_totalprice)", a="avg(o_totalprice)")
    g = g.total(groups="len(n)", most="max(n)", top="max(a)", sum_of="sum(a)")
    return g.result("groups most top sum_of"), f"""
        select count(*), max(n), max(a), sum(a) from (
          select count(*) as n, avg(o_totalprice) as a from orders where o_totalprice > {low}
          group by o_orderpriority, o_orderstatus, o_comment)"""


def wide_customers(p, r):
    f = p.load("customer", "c_mktsegment c_nationkey c_comment c_acctbal")
    k = r.randint(5, 25)
    g = f.group("c_nationkey c_mktsegment c_comment", top="max(c_acctbal)", low="min(c_acctbal)")
    g = g.sort("-top c_nationkey c_comment", k)
    return g.result("c_nationkey c_mktsegment c_comment top low"), f"""
        select c_nationkey, c_mktsegment, c_comment, max(c_acctbal) as top, min(c_acctbal) as low
        from customer group by c_nationkey, c_mktsegment, c_comment
        order by top desc, c_nationkey, c_comment limit {k}"""


def wide_stock(p, r):
    f = p.load("partsupp", "ps_partkey ps_suppkey ps_comment ps_availqty ps_supplycost")
    f.filter("ps_availqty > %d" % (q := r.randint(1000, 5000)))
    f.derive(worth="ps_supplycost * ps_availqty")
    g = f.group("ps_suppkey ps_partkey ps_comment", worth="sum(worth)").sort("-worth ps_partkey", 15)
    return g.result("ps_suppkey ps_partkey ps_comment worth"), f"""
        select ps_suppkey, ps_partkey, ps_comment, sum(ps_supplycost * ps_availqty) as worth
        from partsupp where ps_availqty > {q} group by ps_suppkey, ps_partkey, ps_comment
        order by worth desc, ps_partkey limit 15"""


def wide_joined(p, r):
    y = r.randint(1993, 1997)
    o = p.load("orders", "o_orderkey o_orderpriority o_orderdate")
    o.filter(f"o_orderdate >= date('{y}-01-01') and o_orderdate < date('{y + 1}-01-01')")
    f = p.load("lineitem", "l_orderkey l_shipmode l_comment l_extendedprice l_discount")
    f = f.join(o, "l_orderkey", "o_orderkey")
    f.derive(x="l_extendedprice * (1 - l_discount)")
    g = f.group("o_orderpriority l_shipmode l_comment", x="sum(x)", n="len(x)")
    g = g.sort("-n -x l_comment l_shipmode", 20)
    return g.result("o_orderpriority l_shipmode l_comment n x"), f"""
        select o_orderpriority, l_shipmode, l_comment, count(*) as n,
          sum(l_extendedprice * (1 - l_discount)) as x
        from lineitem join orders on l_orderkey = o_orderkey
        where o_orderdate >= date '{y}-01-01' and o_orderdate < date '{y + 1}-01-01'
        group by o_orderpriority, l_shipmode, l_comment
        order by n desc, x desc, l_comment, l_shipmode limit 20"""


def wide_parts(p, r):
    f = p.load("part", "p_brand p_size p_comment p_retailprice")
    f.filter("p_size <= %d" % (s := r.randint(20, 45)))
    g = f.group("p_brand p_size p_comment", n="len(p_size)", x="sum(p_retailprice)")
    g = g.filter("n > 1").sort("p_brand p_size p_comment")
    return g.result("p_brand p_size p_comment n x"), f"""
        select p_brand, p_size, p_comment, count(*) as n, sum(p_retailprice) as x from part
        where p_size <= {s} group by p_brand, p_size, p_comment having count(*) > 1
        order by p_brand, p_size, p_comment"""


def wide_suppliers_of_lines(p, r):
    f = p.load("lineitem", "l_comment l_shipmode l_shipinstruct l_shipdate l_suppkey")
    f.derive(y="date_year(l_shipdate)")
    g = f.group("l_comment l_shipmode l_shipinstruct y", s="distinct(l_suppkey)")
    g = g.group("y s", n="len(s)").sort("y s")
    return g.result("y s n"), """
        select y, s, count(*) as n from (
          select year(l_shipdate) as y, count(distinct l_suppkey) as s from lineitem
          group by l_comment, l_shipmode, l_shipinstruct, year(l_shipdate)) group by y, s order by y, s"""


def wide_nations(p, r):
    c = p.load("customer", "c_custkey c_nationkey")
    n = p.load("nation", "n_nationkey n_name")
    o = p.load("orders", "o_custkey o_comment o_orderstatus o_totalprice")
    f = o.join(c, "o_custkey", "c_custkey").join(n, "c_nationkey", "n_nationkey")
    f.filter("o_totalprice > %d.0" % (low := r.randint(100, 200) * 1000))
    g = f.group("n_name o_orderstatus o_comment", x="max(o_totalprice)")
    g = g.group("n_name o_orderstatus", groups="len(x)", x="sum(x)").sort("n_name o_orderstatus")
    return g.result("n_name o_orderstatus groups x"), f"""
        select n_name, o_orderstatus, count(*) as groups, sum(x) as x from (
          select n_name, o_orderstatus, o_comment, max(o_totalprice) as x
          from orders join customer on o_custkey = c_custkey join nation on c_nationkey = n_nationkey
          where o_totalprice > {low} group by n_name, o_orderstatus, o_comment)
        group by n_name, o_orderstatus order by n_name, o_orderstatus"""


def wide_counts(p, r):
    f = p.load("lineitem", "l_comment l_suppkey l_shipmode l_tax")
    f.filter("l_tax < %s" % (tax := r.choice(["0.05", "0.07"])))
    g = f.group("l_comment l_suppkey l_shipmode", n="len(l_tax)").group("n", groups="len(n)").sort("n")
    return g.result("n groups"), f"""
        select n, count(*) as groups from (select count(*) as n from lineitem where l_tax < {tax}
          group by l_comment, l_suppkey, l_shipmode) group by n order by n"""


def wide_clerks(p, r):
    f = p.load("orders", "o_orderdate o_clerk o_comment o_totalprice")
    f.filter("o_orderdate < date('%s')" % (day := f"199{r.randint(5, 8)}-06-01"))
    g = f.group("o_clerk o_orderdate o_comment", low="min(o_totalprice)", top="max(o_totalprice)")
    g.derive(spread="top - low")
    g = g.total(groups="len(low)", spread="sum(spread)", low="sum(low)")
    return g.result("groups spread low"), f"""
        select count(*), sum(top - low), sum(low) from (
          select min(o_totalprice) as low, max(o_totalprice) as top from orders
          where o_orderdate < date '{day}' group by o_clerk, o_orderdate, o_comment)"""


def pairs_stock(p, r):
    s = p.load("partsupp", "ps_partkey ps_supplycost")
    f = p.load("lineitem", "l_partkey l_shipmode l_quantity l_discount")
    f.filter(f"l_quantity == {(q := r.randint(5, 45))}.0")
    f = f.pairs(s, ["l_partkey"], ["ps_partkey"]).derive(x="l_quantity * ps_supplycost")
    g = f.group("l_shipmode", n="len(x)", x="sum(x)").sort("l_shipmode")
    return g.result("l_shipmode n x"), f"""
        select l_shipmode, count(*) as n, sum(l_quantity * ps_supplycost) as x
        from lineitem join partsupp on l_partkey = ps_partkey where l_quantity = {q}
        group by l_shipmode order by l_shipmode"""


def pairs_neighbours(p, r):
    low = r.choice(["9500.0", "9700.0"])
    c = p.load("customer", "c_nationkey c_acctbal").filter(f"c_acctbal > {low}")
    s = p.load("supplier", "s_nationkey s_acctbal").filter(f"s_acctbal > {low}")
    f = c.pairs(s, ["c_nationkey"], ["s_nationkey"])
    g = f.group("c_nationkey", n="len(s_acctbal)", x="sum(c_acctbal + s_acctbal)").sort("c_nationkey")
    return g.result("c_nationkey n x"), f"""
        select c_nationkey, count(*) as n, sum(c_acctbal + s_acctbal) as x
        from customer join supplier on c_nationkey = s_nationkey
        where c_acctbal > {low} and s_acctbal > {low} group by c_nationkey order by c_nationkey"""


def pairs_twins(p, r):
    metal = r.choice(["BRASS", "STEEL", "TIN"])
    columns = "p_partkey p_brand p_size p_type p_retailprice"
    a = p.load("part", columns).filter(f"like(p_type, '%{metal}')")
    b = p.load("part", columns, "b_").filter(f"like(b_p_type, '%{metal}')")
    f = a.pairs(b, ["p_brand", "p_size"], ["b_p_brand", "b_p_size"]).filter("p_partkey < b_p_partkey")
    g = f.group("p_brand", n="len(p_size)", x="max(abs(p_retailprice - b_p_retailprice))")
    return g.sort("p_brand").result("p_brand n x"), f"""
        select a.p_brand, count(*) as n, max(abs(a.p_retailprice - b.p_retailprice)) as x
        from part a join part b on a.p_brand = b.p_brand and a.p_size = b.p_size
        where a.p_type like '%{metal}' and b.p_type like '%{metal}' and a.p_partkey < b.p_partkey
        group by a.p_brand order by a.p_brand"""


def pairs_orders(p, r):
    mode = r.choice(["AIR", "RAIL", "SHIP"])
    columns = "l_orderkey l_suppkey l_shipmode l_quantity"
    a = p.load("lineitem", columns).filter(f"l_shipmode == '{mode}'")
    b = p.load("lineitem", columns, "b_").filter(f"b_l_shipmode != '{mode}' and b_l_quantity > 30.0")
    f = a.pairs(b, ["l_orderkey"], ["b_l_orderkey"]).filter("l_suppkey != b_l_suppkey")
    g = f.group("b_l_shipmode", n="len(l_suppkey)", q="sum(b_l_quantity)").sort("b_l_shipmode")
    return g.result("b_l_shipmode n q"), f"""
        select b.l_shipmode, count(*) as n, sum(b.l_quantity) as q
        from lineitem a join lineitem b on a.l_orderkey = b.l_orderkey
        where a.l_shipmode = '{mode}' and b.l_shipmode <> '{mode}' and b.l_quantity > 30
          and a.l_suppkey <> b.l_suppkey group by b.l_shipmode order by b.l_shipmode"""


def pairs_days(p, r):
    columns = "o_orderkey o_custkey o_orderdate o_totalprice"
    a, b = p.load("orders", columns), p.load("orders", columns, "b_")
    f = a.pairs(b, ["o_custkey", "o_orderdate"], ["b_o_custkey", "b_o_orderdate"])
    f = f.filter("o_orderkey < b_o_orderkey").total(n="len(o_orderkey)", x="sum(o_totalprice)")
    return f.result("n x"), """
        select count(*) as n, coalesce(sum(a.o_totalprice), 0) as x from orders a join orders b
        on a.o_custkey = b.o_custkey and a.o_orderdate = b.o_orderdate
        where a.o_orderkey < b.o_orderkey"""


def pairs_cheaper(p, r):
    columns = "ps_partkey ps_suppkey ps_supplycost"
    a, b = p.load("partsupp", columns), p.load("partsupp", columns, "b_")
    f = a.pairs(b, ["ps_partkey"], ["b_ps_partkey"]).filter("b_ps_supplycost < ps_supplycost")
    g = f.group("ps_suppkey", n="len(ps_partkey)", x="sum(ps_supplycost - b_ps_supplycost)")
    return g.sort("-n ps_suppkey", k := r.randint(5, 20)).result("ps_suppkey n x"), f"""
        select a.ps_suppkey, count(*) as n, sum(a.ps_supplycost - b.ps_supplycost) as x
        from partsupp a join partsupp b on a.ps_partkey = b.ps_partkey
        where b.ps_supplycost < a.ps_supplycost group by a.ps_suppkey
        order by n desc, a.ps_suppkey limit {k}"""


def pairs_same_day(p, r):
    y = r.randint(1993, 1997)
    columns = "l_orderkey l_suppkey l_shipdate l_extendedprice"
    where = "{0}l_shipdate >= date('%d-02-01') and {0}l_shipdate < date('%d-05-01')" % (y, y)
    a = p.load("lineitem", columns).filter(where.format(""))
    b = p.load("lineitem", columns, "b_").filter(where.format("b_"))
    f = a.pairs(b, ["l_suppkey", "l_shipdate"], ["b_l_suppkey", "b_l_shipdate"])
    f = f.filter("l_orderkey < b_l_orderkey").derive(m="date_month(l_shipdate)")
    g = f.group("m", n="len(l_suppkey)", x="sum(l_extendedprice + b_l_extendedprice)").sort("m")
    return g.result("m n x"), f"""
        select month(a.l_shipdate) as m, count(*) as n, sum(a.l_extendedprice + b.l_extendedprice) as x
        from lineitem a join lineitem b on a.l_suppkey = b.l_suppkey and a.l_shipdate = b.l_shipdate
        where a.l_orderkey < b.l_orderkey and a.l_shipdate >= date '{y}-02-01'
          and a.l_shipdate < date '{y}-05-01' and b.l_shipdate >= date '{y}-02-01'
          and b.l_shipdate < date '{y}-05-01' group by month(a.l_shipdate) order by m"""


def pairs_phones(p, r):
    c = p.load("customer", "c_phone c_acctbal c_mktsegment").filter("c_acctbal > 9000.0")
    s = p.load("supplier", "s_phone s_acctbal").filter("s_acctbal > 9000.0")
    c.settle().derive(code="cut(c_phone, 1, 2)")
    s.settle().derive(s_code="cut(s_phone, 1, 2)")
    g = c.pairs(s, ["code"], ["s_code"]).group("c_mktsegment", n="len(code)", x="avg(s_acctbal)")
    return g.sort("c_mktsegment").result("c_mktsegment n x"), """
        select c_mktsegment, count(*) as n, avg(s_acctbal) as x from customer join supplier
        on substring(c_phone, 1, 2) = substring(s_phone, 1, 2)
        where c_acctbal > 9000 and s_acctbal > 9000 group by c_mktsegment order by c_mktsegment"""


def pairs_dates(p, r):
    price = r.randint(300, 350) * 1000
    o = p.load("orders", "o_orderdate o_totalprice o_orderpriority").filter(f"o_totalprice > {price}.0")
    f = p.load("lineitem", "l_receiptdate l_quantity l_tax").filter("l_quantity == 50.0 and l_tax < 0.01")
    f = o.pairs(f, ["o_orderdate"], ["l_receiptdate"])
    g = f.group("o_orderpriority", n="len(l_quantity)", x="max(o_totalprice)").sort("o_orderpriority")
    return g.result("o_orderpriority n x"), f"""
        select o_orderpriority, count(*) as n, max(o_totalprice) as x
        from orders join lineitem on o_orderdate = l_receiptdate
        where o_totalprice > {price} and l_quantity = 50 and l_tax < 0.01
        group by o_orderpriority order by o_orderpriority"""


def pairs_other_parts(p, r):
    ship = r.choice(["TAKE BACK RETURN", "NONE", "COLLECT COD"])
    f = p.load("lineitem", "l_suppkey l_partkey l_shipinstruct l_discount l_quantity")
    f.filter(f"l_shipinstruct == '{ship}' and l_discount > 0.09 and l_quantity >= 49.0")
    s = p.load("partsupp", "ps_suppkey ps_partkey ps_availqty").filter("ps_availqty > 9000")
    f = f.pairs(s, ["l_suppkey"], ["ps_suppkey"]).filter("l_partkey != ps_partkey")
    g = f.group("l_suppkey", n="distinct(ps_partkey)", q="sum(cast(ps_availqty, i64))")
    return g.sort("-n -q l_suppkey", 10).result("l_suppkey n q"), f"""
        select l_suppkey, count(distinct ps_partkey) as n, sum(ps_availqty) as q
        from lineitem join partsupp on l_suppkey = ps_suppkey
        where l_shipinstruct = '{ship}' and l_discount > 0.09 and l_quantity >= 49
          and ps_availqty > 9000 and l_partkey <> ps_partkey
        group by l_suppkey order by n desc, q desc, l_suppkey limit 10"""


CELLS = """
    t:table = @load_table(`{table}:sym);
    {load_key}
    x:{type} = @column_value(t, `{x}:sym);
    g:dict<i64,i64> = @group(key);
    first:i64 = @keys(g);
    rows:list<i64> = @values(g);
    cells:list<{type}> = @each_right(@index, x, rows);"""


def cells(p, table, key, x, type_="f64"):
    """The column x in cells of equal keys, all of it by hand."""
    load_key = f"key:? = @column_value(t, `{key}:sym);"
    if key in FOREIGN:   # a foreign key is no vector: the rows that it refers to are
        load_key = f"fk:enum<i32> = @column_value(t, `{key}:sym);\n    key:i64 = @values(fk);"
    p.code(CELLS.format(table=table, load_key=load_key, x=x, type=type_))


def summary(p, *names):
    """The sum, the largest and the number of the vector of each name, as one row."""
    p.code("\n".join(f"{n}_sum:? = @sum({n}); {n}_max:? = @max({n}); {n}_n:i64 = @len({n});"
                     for n in names))
    columns = [f"{n}_{f}" for n in names for f in ("sum", "max", "n")]
    return Frame(p, {c: c for c in columns}).result(" ".join(columns))


def nest_histogram(p, r):
    f = p.load("orders", "o_custkey o_orderstatus")
    f.filter(f"o_orderstatus == char('{(s := r.choice('FOP'))}')")
    f.settle()
    g = f.group("o_custkey", n="len(o_custkey)").group("n", customers="len(n)").sort("-customers -n")
    return g.result("n customers"), f"""
        select n, count(*) as customers from (select count(*) as n from orders
          where o_orderstatus = '{s}' group by o_custkey) group by n order by customers desc, n desc"""


def nest_best_part(p, r):
    f = p.load("lineitem", "l_suppkey l_partkey l_quantity")
    g = f.group("l_suppkey l_partkey", q="sum(l_quantity)")
    g = g.group("l_suppkey", best="max(q)", parts="len(q)").sort("-best l_suppkey", k := r.randint(5, 30))
    return g.result("l_suppkey best parts"), f"""
        select l_suppkey, max(q) as best, count(*) as parts from (
          select l_suppkey, l_partkey, sum(l_quantity) as q from lineitem group by l_suppkey, l_partkey)
        group by l_suppkey order by best desc, l_suppkey limit {k}"""


def nest_group_in_cell(p, r):
    x, key = r.choice([("l_partkey", "l_suppkey"), ("l_suppkey", "l_partkey")])
    p.own("kinds", "def NAME(c:i32) : i64 {\n    g:dict<i64,i64> = @group(c);\n"
          "    k:i64 = @keys(g);\n    n:i64 = @len(k);\n    return n;\n  }")
    cells(p, "lineitem", key, x, "i32")
    p.code("counts:list<i64> = @each(@kinds, cells); kinds_n:i64 = @raze(counts);")
    return summary(p, "kinds_n"), f"""
        select sum(n), max(n), count(*) from (
          select count(distinct {x}) as n from lineitem group by {key})"""


def nest_dearest(p, r):
    k = r.randint(2, 4)
    p.own("dearest", "def NAME(c:f64) : f64 {\n    o:i64 = @order(c, 0:bool);\n"
          f"    places:i64 = @range({k}:i64);\n    n:i64 = @len(c);\n    there:bool = @lt(places, n);\n"
          f"    top:i64 = @take({k}:i64, o);\n    chosen:i64 = @compress(there, top);\n"
          "    y:f64 = @index(c, chosen);\n    s:f64 = @sum(y);\n    return s;\n  }")
    cells(p, "orders", "o_clerk", "o_totalprice")
    p.code("""sums:list<f64> = @each(@dearest, cells); best:f64 = @raze(sums);
              clerk:sym = @index(key, first);""")
    return Frame(p, {"clerk": "clerk", "best": "best"}).sort("-best", 12).result("clerk best"), f"""
        select o_clerk, sum(o_totalprice) as best from (select o_clerk, o_totalprice, row_number()
          over (partition by o_clerk order by o_totalprice desc) as place from orders)
        where place <= {k} group by o_clerk order by best desc limit 12"""


def nest_median(p, r):
    x = r.choice(["l_extendedprice", "l_quantity"])
    p.own("middle", "def NAME(c:f64) : f64 {\n    o:i64 = @order(c, 1:bool);\n    s:f64 = @index(c, o);\n"
          "    n:i64 = @len(c);\n    m:i64 = @minus(n, 1:i64);\n    k:i64 = @div(m, 2:i64);\n"
          "    y:f64 = @index(s, k);\n    return y;\n  }")
    cells(p, "lineitem", "l_suppkey", x)
    p.code("middles:list<f64> = @each(@middle, cells); y:f64 = @raze(middles);")
    return summary(p, "y"), f"""
        select sum(x), max(x), count(*) from (select {x} as x, row_number() over
            (partition by l_suppkey order by {x}) as place,
            count(*) over (partition by l_suppkey) as n from lineitem)
        where place = (n - 1) // 2 + 1"""


def nest_three_levels(p, r):
    f = p.load("lineitem", "l_orderkey l_suppkey l_shipmode l_extendedprice")
    f.filter(f"l_extendedprice > {(low := r.randint(1, 9) * 1000)}.0")
    g = f.group("l_shipmode l_suppkey l_orderkey", x="sum(l_extendedprice)")
    g = g.group("l_shipmode l_suppkey", x="max(x)", n="len(x)")
    g = g.group("l_shipmode", x="avg(x)", n="sum(n)", m="max(n)").sort("l_shipmode")
    return g.result("l_shipmode x n m"), f"""
        select l_shipmode, avg(x) as x, sum(n) as n, max(n) as m from (
          select l_shipmode, l_suppkey, max(x) as x, count(*) as n from (
            select l_shipmode, l_suppkey, l_orderkey, sum(l_extendedprice) as x from lineitem
            where l_extendedprice > {low} group by l_shipmode, l_suppkey, l_orderkey)
          group by l_shipmode, l_suppkey) group by l_shipmode order by l_shipmode"""


def nest_pairwise(p, r):
    other = r.choice(["l_discount", "l_tax"])
    cells(p, "lineitem", "l_partkey", "l_extendedprice")
    p.code(f"""d:f64 = @column_value(t, `{other}:sym);
        discounts:list<f64> = @each_right(@index, d, rows);
        products:list<f64> = @each_item(@mul, cells, discounts);
        sums:list<f64> = @each(@sum, products);
        y:f64 = @raze(sums);""")
    return summary(p, "y"), f"""select sum(y), max(y), count(*) from (
        select sum(l_extendedprice * {other}) as y from lineitem group by l_partkey)"""


def nest_variance(p, r):
    key = r.choice(["o_custkey", "o_clerk"])
    cells(p, "orders", key, "o_totalprice")
    p.code("""means:list<f64> = @each(@avg, cells);
        off:list<f64> = @each_item(@minus, cells, means);
        squares:list<f64> = @each_item(@mul, off, off);
        sums:list<f64> = @each(@sum, squares);
        y:f64 = @raze(sums);""")
    return summary(p, "y"), f"""select sum(y), max(y), count(*) from (
        select sum((o_totalprice - m) * (o_totalprice - m)) as y from (
          select {key} as k, o_totalprice::double as o_totalprice,
            avg(o_totalprice::double) over (partition by {key}) as m from orders) group by k)"""


def nest_commonest(p, r):
    x = r.choice(["l_shipmode", "l_shipinstruct"])
    p.own("commonest", "def NAME(c:sym) : i64 {\n    g:dict<i64,i64> = @group(c);\n"
          "    places:list<i64> = @values(g);\n    sizes:list<i64> = @each(@len, places);\n"
          "    n:i64 = @raze(sizes);\n    m:i64 = @max(n);\n    return m;\n  }")
    cells(p, "lineitem", "l_suppkey", x, "sym")
    p.code("counts:list<i64> = @each(@commonest, cells); most:i64 = @raze(counts);")
    return summary(p, "most"), f"""
        select sum(m), max(m), count(*) from (select max(n) as m from (
          select l_suppkey, count(*) as n from lineitem group by l_suppkey, {x}) group by l_suppkey)"""


def nest_above(p, r):
    low = r.randint(100, 250) * 1000
    cells(p, "orders", "o_custkey", "o_totalprice")
    p.code(f"""large:list<bool> = @each_left(@gt, cells, {low}:f64);
        kept:list<f64> = @each_item(@compress, large, cells);
        numbers:list<i64> = @each(@len, kept);
        sums:list<f64> = @each(@sum, kept);
        n:i64 = @raze(numbers);
        s:f64 = @raze(sums);""")
    return summary(p, "n", "s"), f"""
        select sum(n), max(n), count(*), sum(s), max(s), count(*) from (
          select count(*) filter (where o_totalprice > {low}) as n,
            coalesce(sum(o_totalprice) filter (where o_totalprice > {low}), 0) as s
          from orders group by o_custkey)"""


def semi_late(p, r):
    y = r.randint(1993, 1997)
    l = p.load("lineitem", "l_orderkey l_commitdate l_receiptdate").filter("l_commitdate < l_receiptdate")
    o = p.load("orders", "o_orderkey o_orderdate o_orderpriority")
    o.filter(f"o_orderdate >= date('{y}-04-01') and o_orderdate < date('{y}-07-01')")
    g = o.semi(l, "o_orderkey", "l_orderkey").group("o_orderpriority", n="len(o_orderkey)")
    return g.sort("o_orderpriority").result("o_orderpriority n"), f"""
        select o_orderpriority, count(*) as n from orders where o_orderdate >= date '{y}-04-01'
          and o_orderdate < date '{y}-07-01' and exists (select 1 from lineitem
            where l_orderkey = o_orderkey and l_commitdate < l_receiptdate)
        group by o_orderpriority order by o_orderpriority"""


def semi_parts(p, r):
    b = f"Brand#{r.randint(1, 5)}{r.randint(1, 5)}"
    l = p.load("lineitem", "l_partkey l_quantity").filter("l_quantity >= 49.0")
    f = p.load("part", "p_partkey p_brand p_container p_retailprice").filter(f"p_brand == '{b}'")
    g = f.semi(l, "p_partkey", "l_partkey").group("p_container", n="len(p_brand)", x="max(p_retailprice)")
    return g.sort("p_container").result("p_container n x"), f"""
        select p_container, count(*) as n, max(p_retailprice) as x from part where p_brand = '{b}' and
          p_partkey in (select l_partkey from lineitem where l_quantity >= 49)
        group by p_container order by p_container"""


def semi_of_groups(p, r):
    o = p.load("lineitem", "l_orderkey l_quantity").group("l_orderkey", q="sum(l_quantity)")
    o = o.filter(f"q > {(least := r.randint(200, 260))}.0")
    f = p.load("orders", "o_orderkey o_custkey o_totalprice").semi(o, "o_orderkey", "l_orderkey")
    return f.sort("-o_totalprice o_orderkey").result("o_orderkey o_custkey o_totalprice"), f"""
        select o_orderkey, o_custkey, o_totalprice from orders where o_orderkey in (select l_orderkey
          from lineitem group by l_orderkey having sum(l_quantity) > {least})
        order by o_totalprice desc, o_orderkey"""


def anti_customers(p, r):
    o = p.load("orders", "o_custkey")
    f = p.load("customer", "c_custkey c_nationkey c_acctbal").filter(f"c_acctbal > {r.choice(['0.0'])}")
    g = f.semi(o, "c_custkey", "o_custkey", inside=False)
    g = g.group("c_nationkey", n="len(c_acctbal)", x="sum(c_acctbal)").sort("c_nationkey")
    return g.result("c_nationkey n x"), """
        select c_nationkey, count(*) as n, sum(c_acctbal) as x from customer where c_acctbal > 0 and
          not exists (select 1 from orders where o_custkey = c_custkey)
        group by c_nationkey order by c_nationkey"""


def anti_suppliers(p, r):
    f = p.load("part", "p_partkey p_size").filter(f"p_size == {(size := r.randint(1, 50))}")
    ps = p.load("partsupp", "ps_partkey ps_suppkey").semi(f, "ps_partkey", "p_partkey")
    s = p.load("supplier", "s_suppkey s_name s_acctbal").semi(ps, "s_suppkey", "ps_suppkey", inside=False)
    return s.sort("-s_acctbal s_name", 10).result("s_suppkey s_name s_acctbal"), f"""
        select s_suppkey, s_name, s_acctbal from supplier where s_suppkey not in (select ps_suppkey
          from partsupp join part on ps_partkey = p_partkey where p_size = {size})
        order by s_acctbal desc, s_name limit 10"""


def outer_histogram(p, r):
    word = r.choice(["special", "express", "pending"])
    o = p.load("orders", "o_custkey o_comment").filter(f"not like(o_comment, '%{word}%requests%')")
    c = p.load("customer", "c_custkey").count_partners(o, "c_custkey", "o_custkey", "n")
    return c.group("n", customers="len(n)").sort("-customers -n").result("n customers"), f"""
        select n, count(*) as customers from (select count(o_custkey) as n from customer left join
          orders on c_custkey = o_custkey and o_comment not like '%{word}%requests%'
          group by c_custkey) group by n order by customers desc, n desc"""


def outer_nations(p, r):
    s = p.load("supplier", "s_nationkey s_acctbal").filter(f"s_acctbal > {r.choice(['9000.0'])}")
    n = p.load("nation", "n_nationkey n_name").count_partners(s, "n_nationkey", "s_nationkey", "n")
    return n.sort("-n n_name").result("n_name n"), """
        select n_name, count(s_acctbal) as n from nation left join supplier
        on n_nationkey = s_nationkey and s_acctbal > 9000 group by n_name order by n desc, n_name"""


def outer_parts(p, r):
    y, m = r.randint(1993, 1997), r.randint(1, 8)
    l = p.load("lineitem", "l_partkey l_shipdate")
    l.filter(f"l_shipdate >= date('{y}-0{m}-01') and l_shipdate < date('{y}-0{m + 1}-01')")
    f = p.load("part", "p_partkey p_mfgr").count_partners(l, "p_partkey", "l_partkey", "n")
    g = f.group("p_mfgr n", parts="len(n)").sort("p_mfgr n")
    return g.result("p_mfgr n parts"), f"""
        select p_mfgr, n, count(*) as parts from (select p_partkey, p_mfgr, count(l_partkey) as n
          from part left join lineitem on p_partkey = l_partkey and l_shipdate >= date '{y}-0{m}-01'
            and l_shipdate < date '{y}-0{m + 1}-01' group by p_partkey, p_mfgr)
        group by p_mfgr, n order by p_mfgr, n"""


def top_orders(p, r):
    f = p.load("orders", "o_orderkey o_totalprice o_orderdate o_clerk").sort(
        "-o_totalprice o_orderkey", k := r.randint(10, 100))
    return f.result("o_orderkey o_totalprice o_orderdate o_clerk"), f"""
        select o_orderkey, o_totalprice, o_orderdate, o_clerk from orders
        order by o_totalprice desc, o_orderkey limit {k}"""


def top_customers(p, r):
    seg = r.choice(["BUILDING", "MACHINERY", "HOUSEHOLD"])
    c = p.load("customer", "c_custkey c_name c_mktsegment").filter(f"c_mktsegment == '{seg}'")
    o = p.load("orders", "o_orderkey o_custkey").join(c, "o_custkey", "c_custkey")
    f = p.load("lineitem", "l_orderkey l_extendedprice l_discount").join(o, "l_orderkey", "o_orderkey")
    f.derive(x="l_extendedprice * (1 - l_discount)")
    g = f.group("c_custkey c_name", x="sum(x)").sort("-x c_custkey", 10)
    return g.result("c_custkey c_name x"), f"""
        select c_custkey, c_name, sum(l_extendedprice * (1 - l_discount)) as x
        from customer join orders on c_custkey = o_custkey join lineitem on l_orderkey = o_orderkey
        where c_mktsegment = '{seg}' group by c_custkey, c_name order by x desc, c_custkey limit 10"""


def top_cheapest(p, r):
    ps = p.load("partsupp", "ps_partkey ps_suppkey ps_supplycost")
    least = ps.group("ps_partkey", low="min(ps_supplycost)")
    least.columns = {"key": least.columns["ps_partkey"], "low": least.columns["low"]}
    f = ps.join(least, "ps_partkey", "key").filter("ps_supplycost == low")
    s = p.load("supplier", "s_suppkey s_name s_acctbal")
    f = f.join(s, "ps_suppkey", "s_suppkey").sort("-s_acctbal s_name ps_partkey", k := r.randint(10, 50))
    return f.result("s_name s_acctbal ps_partkey ps_supplycost"), f"""
        select s_name, s_acctbal, ps_partkey, ps_supplycost from partsupp a
        join supplier on ps_suppkey = s_suppkey where ps_supplycost = (select min(b.ps_supplycost)
          from partsupp b where b.ps_partkey = a.ps_partkey)
        order by s_acctbal desc, s_name, ps_partkey limit {k}"""


def distinct_modes(p, r):
    f = p.load("lineitem", "l_shipmode l_shipinstruct l_returnflag l_tax")
    f.filter(f"l_tax == {r.choice(['0.04'])}").settle()
    f = f.distinct("l_shipmode l_shipinstruct l_returnflag")
    return f.sort("l_shipmode l_shipinstruct l_returnflag").result(
        "l_shipmode l_shipinstruct l_returnflag"), """
        select distinct l_shipmode, l_shipinstruct, l_returnflag from lineitem where l_tax = 0.04
        order by l_shipmode, l_shipinstruct, l_returnflag"""


def distinct_clerks(p, r):
    f = p.load("orders", "o_clerk o_totalprice").filter(f"o_totalprice > {r.choice(['350000.0'])}")
    return f.distinct("o_clerk").sort("o_clerk").result("o_clerk"), """
        select distinct o_clerk from orders where o_totalprice > 350000 order by o_clerk"""


def count_suppliers(p, r):
    f = p.load("lineitem", "l_shipmode l_suppkey l_quantity")
    f.filter(f"l_quantity < {(q := r.randint(3, 30))}.0")
    g = f.group("l_shipmode", s="distinct(l_suppkey)", n="len(l_suppkey)").sort("l_shipmode")
    return g.result("l_shipmode s n"), f"""
        select l_shipmode, count(distinct l_suppkey) as s, count(*) as n from lineitem
        where l_quantity < {q} group by l_shipmode order by l_shipmode"""


def count_customers(p, r):
    f = p.load("orders", "o_clerk o_custkey o_orderdate").derive(y="date_year(o_orderdate)")
    g = f.group("o_clerk y", c="distinct(o_custkey)").sort("-c o_clerk y", k := r.randint(5, 30))
    return g.result("o_clerk y c"), f"""
        select o_clerk, year(o_orderdate) as y, count(distinct o_custkey) as c from orders
        group by o_clerk, year(o_orderdate) order by c desc, o_clerk, y limit {k}"""


def count_all(p, r):
    f = p.load("lineitem", "l_partkey l_suppkey l_shipdate l_discount l_comment")
    f.filter(f"l_discount == {(d := r.choice(['0.03', '0.05', '0.08']))}")
    f = f.total(parts="distinct(l_partkey)", suppliers="distinct(l_suppkey)",
                days="distinct(l_shipdate)", texts="distinct(l_comment)")
    return f.result("parts suppliers days texts"), f"""
        select count(distinct l_partkey), count(distinct l_suppkey), count(distinct l_shipdate),
          count(distinct l_comment) from lineitem where l_discount = {d}"""


def share_modes(p, r):
    y = r.randint(1993, 1997)
    f = p.load("lineitem", "l_shipmode l_shipdate l_extendedprice")
    f.filter(f"date_year(l_shipdate) == {y}").settle()
    g = f.group("l_shipmode", x="sum(l_extendedprice)")
    all_ = p.call("sum", g.columns["x"])
    g.columns["share"] = p.call("div", g.columns["x"], all_)
    return g.sort("l_shipmode").result("l_shipmode x share"), f"""
        select l_shipmode, x, x / sum(x) over () as share from (
          select l_shipmode, sum(l_extendedprice)::double as x from lineitem
          where year(l_shipdate) = {y} group by l_shipmode) order by l_shipmode"""


def share_nations(p, r):
    side, key = r.choice([("customer", "c"), ("supplier", "s")])
    f = p.load(side, f"{key}_nationkey {key}_acctbal")
    n = p.load("nation", "n_nationkey n_name n_regionkey")
    g = f.group(f"{key}_nationkey", x=f"sum({key}_acctbal)").join(n, f"{key}_nationkey", "n_nationkey")
    whole = g.group("n_regionkey", whole="sum(x)")
    whole.columns = {"region": whole.columns["n_regionkey"], "whole": whole.columns["whole"]}
    g = g.join(whole, "n_regionkey", "region").derive(share="x / whole").sort("n_name")
    return g.result("n_name x share"), f"""
        select n_name, x, x / sum(x) over (partition by n_regionkey) as share from (
          select {key}_nationkey, sum({key}_acctbal)::double as x from {side} group by {key}_nationkey)
        join nation on {key}_nationkey = n_nationkey order by n_name"""


def running_months(p, r):
    f = p.load("orders", "o_orderdate o_totalprice o_orderpriority")
    pr = r.choice(["1-URGENT", "2-HIGH", "5-LOW"])
    f.filter(f"o_orderpriority == '{pr}'").settle()
    f.derive(y="date_year(o_orderdate)", m="date_month(o_orderdate)")
    g = f.group("y m", x="sum(o_totalprice)").sort("y m")
    g.running("so_far", "x", "y")
    return g.result("y m x so_far"), f"""
        select y, m, x, sum(x) over (partition by y order by m) as so_far from (
          select year(o_orderdate) as y, month(o_orderdate) as m, sum(o_totalprice) as x from orders
          where o_orderpriority = '{pr}' group by year(o_orderdate), month(o_orderdate)) order by y, m"""


def running_customers(p, r):
    f = p.load("orders", "o_custkey o_orderkey o_totalprice o_orderdate")
    f = f.sort("o_custkey o_orderdate o_orderkey")
    f.running("so_far", "o_totalprice", "o_custkey")
    f.filter(f"so_far > {(least := r.randint(30, 45) * 100000)}.0")
    g = f.group("o_custkey", n="len(so_far)", top="max(so_far)").sort("o_custkey")
    return g.result("o_custkey n top"), f"""
        select o_custkey, count(*) as n, max(so_far) as top from (select o_custkey, sum(o_totalprice)
          over (partition by o_custkey order by o_orderdate, o_orderkey) as so_far from orders)
        where so_far > {least} group by o_custkey order by o_custkey"""


def dates_revenue(p, r):
    f = p.load("lineitem", "l_shipdate l_extendedprice l_discount l_quantity")
    day = f"{r.randint(1993, 1996)}-01-01"
    f.filter(f"l_shipdate >= date('{day}') and l_quantity < 24.0").settle()
    f.derive(y="date_year(l_shipdate)", m="date_month(l_shipdate)", x="l_extendedprice * l_discount")
    g = f.group("y m", x="sum(x)", n="len(x)").sort("y m")
    return g.result("y m x n"), f"""
        select year(l_shipdate) as y, month(l_shipdate) as m, sum(l_extendedprice * l_discount) as x,
          count(*) as n from lineitem where l_shipdate >= date '{day}' and l_quantity < 24
        group by year(l_shipdate), month(l_shipdate) order by y, m"""


def dates_waiting(p, r):
    f = p.load("lineitem", "l_shipdate l_receiptdate l_commitdate l_shipmode")
    f.derive(days="datetime_diff(l_receiptdate, l_shipdate)")
    f.filter(f"days > {(d := r.randint(5, 25))} and l_receiptdate > l_commitdate").settle()
    g = f.group("days", n="len(days)").sort("days")
    return g.result("days n"), f"""
        select l_receiptdate - l_shipdate as days, count(*) as n from lineitem
        where l_receiptdate - l_shipdate > {d} and l_receiptdate > l_commitdate
        group by l_receiptdate - l_shipdate order by days"""


def dates_windows(p, r):
    months, y = r.randint(2, 9), r.randint(1993, 1996)
    end = p.let(f"@datetime_add({y}-01-31:date, {months}:i32, `month:sym)", "date", "end")
    f = p.load("orders", "o_orderdate o_totalprice o_shippriority")
    f.keep(p.call("and", f.value(f"o_orderdate >= date('{y}-01-31')"),
                  p.call("lt", f.columns["o_orderdate"], end)))
    f = f.total(n="len(o_totalprice)", a="avg(o_totalprice)", low="min(o_orderdate)")
    return f.result("n a low"), f"""
        select count(*), avg(o_totalprice), min(o_orderdate) from orders
        where o_orderdate >= date '{y}-01-31'
          and o_orderdate < date '{y}-01-31' + interval {months} month"""


def text_likes(p, r):
    metal, word = r.choice(["BRASS", "TIN"]), r.choice(["green", "blue", "almond"])
    f = p.load("part", "p_name p_type p_brand p_retailprice")
    f.filter(f"like(p_type, '%{metal}') or like(p_name, '{word}%')")
    f.filter("not like(p_brand, '%#1_')").settle()
    g = f.group("p_brand", n="len(p_brand)", x="sum(p_retailprice)").sort("p_brand")
    return g.result("p_brand n x"), f"""
        select p_brand, count(*) as n, sum(p_retailprice) as x from part
        where (p_type like '%{metal}' or p_name like '{word}%') and p_brand not like '%#1_'
        group by p_brand order by p_brand"""


def text_codes(p, r):
    f = p.load("customer", "c_phone c_acctbal")
    mean = p.call("avg", f.columns["c_acctbal"])
    f.derive(code="cut(c_phone, 1, %d)" % (k := r.choice([1, 2])))
    f.keep(p.call("gt", f.columns["c_acctbal"], mean)).settle()
    g = f.group("code", n="len(code)", x="sum(c_acctbal)").sort("code")
    return g.result("code n x"), f"""
        select substring(c_phone, 1, {k}) as code, count(*) as n, sum(c_acctbal) as x from customer
        where c_acctbal > (select avg(c_acctbal) from customer)
        group by substring(c_phone, 1, {k}) order by code"""


def sets(p, r, both):
    a, b = r.sample(["AIR", "MAIL", "SHIP", "TRUCK", "FOB"], 2)
    x = p.load("lineitem", "l_suppkey l_shipmode l_quantity")
    x.filter(f"l_shipmode == '{a}' and l_quantity > 45.0").settle()
    y = p.load("lineitem", "l_suppkey l_shipmode l_discount")
    y.filter(f"l_shipmode == '{b}' and l_discount > 0.08").settle()
    sides = f"""(select l_suppkey as k from lineitem where l_shipmode = '{a}' and l_quantity > 45)
        %s (select l_suppkey as k from lineitem where l_shipmode = '{b}' and l_discount > 0.08)"""
    mine, other = x.columns["l_suppkey"], y.columns["l_suppkey"]
    if both == "union":
        f = Frame(p, {"k": p.call("append", mine, other)})
    else:
        mask = p.call("member", mine, other, type_="bool")
        mask = mask if both == "intersect" else p.call("not", mask, type_="bool")
        f = Frame(p, {"k": p.call("compress", mask, mine)})
    return f.distinct("k").sort("k").result("k"), sides % both + " order by k"


def sets_union(p, r):
    return sets(p, r, "union")


def sets_intersect(p, r):
    return sets(p, r, "intersect")


def sets_except(p, r):
    return sets(p, r, "except")


def sets_tagged(p, r):
    day = f"{r.randint(1993, 1997)}-03-15"
    f = p.load("lineitem", "l_shipdate l_commitdate l_quantity l_shipmode").filter("l_quantity < 10.0")
    f.settle()
    late = f.value(f"l_shipdate > date('{day}')")
    soon = f.value(f"l_commitdate <= date('{day}')")
    mode, quantity = f.columns["l_shipmode"], f.columns["l_quantity"]
    sides = [(p.call("compress", m, mode), p.call("compress", m, quantity)) for m in (late, soon)]
    both = Frame(p, {"mode": p.call("append", sides[0][0], sides[1][0]),
                     "q": p.call("append", sides[0][1], sides[1][1])})
    return both.group("mode", n="len(q)", q="sum(q)").sort("mode").result("mode n q"), f"""
        select mode, count(*) as n, sum(q) as q from (
          select l_shipmode as mode, l_quantity as q from lineitem
            where l_quantity < 10 and l_shipdate > date '{day}'
          union all select l_shipmode, l_quantity from lineitem
            where l_quantity < 10 and l_commitdate <= date '{day}') group by mode order by mode"""


def share_market(p, r):
    nation, region = r.choice([("BRAZIL", "AMERICA"), ("FRANCE", "EUROPE"), ("CHINA", "ASIA")])
    p.code(f"""lineitem:table = @load_table(`lineitem:sym);
        orders:table = @load_table(`orders:sym);
        customer:table = @load_table(`customer:sym);
        nation:table = @load_table(`nation:sym);
        region:table = @load_table(`region:sym);
        order_fk:enum<i32> = @column_value(lineitem, `l_orderkey:sym);
        customer_fk:enum<i32> = @column_value(orders, `o_custkey:sym);
        nation_fk:enum<i32> = @column_value(customer, `c_nationkey:sym);
        region_fk:enum<i32> = @column_value(nation, `n_regionkey:sym);
        order_row:i64 = @values(order_fk);
        customer_rows:i64 = @values(customer_fk);
        nation_rows:i64 = @values(nation_fk);
        region_rows:i64 = @values(region_fk);
        day:date = @column_value(orders, `o_orderdate:sym);
        nation_name:sym = @column_value(nation, `n_name:sym);
        region_name:sym = @column_value(region, `r_name:sym);
        price:f64 = @column_value(lineitem, `l_extendedprice:sym);
        discount:f64 = @column_value(lineitem, `l_discount:sym);
        customer_row:i64 = @index(customer_rows, order_row);
        nation_row:i64 = @index(nation_rows, customer_row);
        region_row:i64 = @index(region_rows, nation_row);
        region_of:sym = @index(region_name, region_row);
        name:sym = @index(nation_name, nation_row);
        ordered:date = @index(day, order_row);
        here:bool = @eq(region_of, `{region}:sym);
        rest:f64 = @minus(1:f64, discount);
        volume:f64 = @mul(price, rest);
        year:i16 = @date_year(ordered);
        volume_here:f64 = @compress(here, volume);
        year_here:i16 = @compress(here, year);
        name_here:sym = @compress(here, name);
        ours:bool = @eq(name_here, `{nation}:sym);
        volume_ours:f64 = @mul(ours, volume_here);
        groups:dict<i64,i64> = @group(year_here);
        first:i64 = @keys(groups);
        rows:list<i64> = @values(groups);
        parts_ours:list<f64> = @each_right(@index, volume_ours, rows);
        parts_all:list<f64> = @each_right(@index, volume_here, rows);
        sums_ours:list<f64> = @each(@sum, parts_ours);
        sums_all:list<f64> = @each(@sum, parts_all);
        shares:list<f64> = @each_item(@div, sums_ours, sums_all);
        share:f64 = @raze(shares);
        years:i16 = @index(year_here, first);""")
    f = Frame(p, {"years": "years", "share": "share"}).sort("years")
    return f.result("years share"), f"""
        select year(o_orderdate) as y, sum(case when n_name = '{nation}' then
            l_extendedprice * (1 - l_discount) else 0 end)::double
            / sum(l_extendedprice * (1 - l_discount))::double as share
        from lineitem join orders on l_orderkey = o_orderkey join customer on o_custkey = c_custkey
          join nation on c_nationkey = n_nationkey join region on n_regionkey = r_regionkey
        where r_name = '{region}' group by year(o_orderdate) order by y"""


KINDS = {"wide": "a wide text key", "pairs": "keys not unique", "nest": "groups of groups",
         "semi": "semi-join", "anti": "anti-join", "outer": "outer join", "top": "first rows",
         "distinct": "distinct", "count": "count distinct", "share": "shares", "running": "running sums",
         "dates": "dates", "text": "text", "sets": "sets"}


def questions():
    return [(name, f) for name, f in globals().items() if callable(f) and name.split("_")[0] in KINDS
            and "_" in name]


def programs(seed=1):
    """Name, kind, HorseIR and SQL of each of the 60."""
    styles = [Style(filters, joins, groups, typed) for filters in ("early", "mask", "rows")
              for joins in ("pairs", "lookup", "enum") for groups in ("each", "own", "scan")
              for typed in (True, False)]
    r = random.Random(seed)
    r.shuffle(styles)
    for number, (name, question) in enumerate(questions()):
        style = styles[number % len(styles)]
        text, sql = question(Program(style), random.Random(f"{seed} {name}"))
        kind = KINDS[name.split("_")[0]]
        about = (f"// {kind}: filters {style.filters}, joins {style.joins}, "
                 f"groups {style.groups}\n")
        yield name, kind, about + text, " ".join(sql.split()) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", required=True, metavar="DIR", type=pathlib.Path)
    args = parser.parse_args()
    args.o.mkdir(parents=True, exist_ok=True)
    for name, _, text, sql in programs(args.seed):
        (args.o / f"{name}.hir").write_text(text)
        (args.o / f"{name}.sql").write_text(sql)


if __name__ == "__main__":
    main()
