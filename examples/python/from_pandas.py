"""pandas: the same, and a column as a NumPy array that is no copy."""

import numpy
import pandas
import rndn

sales = pandas.DataFrame({"shop": ["a", "b", "a"], "price": [1.5, 2.0, 4.0]})
db = rndn.connect("auto").register("sales", sales)
result = db.sql("SELECT shop, sum(price) AS total FROM sales GROUP BY shop ORDER BY shop")
assert result.df()["shop"].tolist() == ["a", "b"]
assert numpy.from_dlpack(result.array("total")).tolist() == [5.5, 2.0]
print(result.df())
