"""DuckDB: its relations are tables of rndn's, and rndn's results are tables of its own."""

import duckdb
import rndn

relation = duckdb.sql("SELECT i AS id, i % 3 AS kind FROM range(9) AS r(i)")
db = rndn.connect("auto").register("items", relation)
kinds = db.sql("SELECT kind, count(*) AS n FROM items GROUP BY kind").arrow()
assert duckdb.sql("SELECT sum(n) FROM kinds").fetchall() == [(9,)]
print(duckdb.sql("SELECT * FROM kinds ORDER BY kind"))
