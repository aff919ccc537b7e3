"""Any program with a driver manager of ADBC; here Python's, and rndn's driver by its path."""

import sys

import pyarrow
from adbc_driver_manager import dbapi

driver = sys.argv[1] if len(sys.argv) > 1 else "build/lib/libadbc_driver_rndn.so"
with dbapi.connect(driver=driver, autocommit=True) as connection, connection.cursor() as cursor:
    cursor.adbc_ingest("sales", pyarrow.table({"shop": ["a", "b"], "price": [1.5, 2.0]}))
    cursor.executemany("INSERT INTO sales VALUES (?, ?)", [("a", 4.0), ("c", 1.0)])
    cursor.execute("SELECT sum(price) FROM sales WHERE shop = ?", ("a",))
    assert cursor.fetchall() == [(5.5,)]
    print("ADBC: 5.5")
