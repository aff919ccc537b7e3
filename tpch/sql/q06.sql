-- TPC-H query 6: what 1994 would have brought without the discounts of 5 to 7 percent on small quantities.
select sum(l_discount * l_extendedprice) as revenue
from lineitem
where l_quantity < 24 and l_discount >= 0.05 and l_discount <= 0.07
  and l_shipdate between date '1994-01-01' and date '1994-12-31';
