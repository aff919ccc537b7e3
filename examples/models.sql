-- Models in the manner of dbt: views over a file, then a table of what is asked often, then a file.
CREATE VIEW paid AS SELECT shop, price FROM 'sales.csv' WHERE price > 0;
CREATE VIEW totals AS SELECT shop, sum(price) AS total, count(*) AS n FROM paid GROUP BY shop;
CREATE OR REPLACE TABLE report AS SELECT * FROM totals WHERE n > 1;
INSERT INTO report SELECT 'all', sum(price), count(*) FROM paid;
COPY (SELECT * FROM report ORDER BY total) TO 'report.parquet';
