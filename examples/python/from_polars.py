"""Polars: a data frame in, a query, a data frame out."""

import polars
import rndn

sales = polars.DataFrame({"shop": ["a", "b", "a"], "price": [1.5, 2.0, 4.0]})
db = rndn.connect("auto").register("sales", sales)
totals = db.sql("SELECT shop, sum(price) AS total FROM sales GROUP BY shop ORDER BY shop").pl()
assert totals.rows() == [("a", 5.5), ("b", 2.0)]
print(totals)
