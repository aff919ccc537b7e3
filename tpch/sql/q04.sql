-- TPC-H query 4: orders of the third quarter of 1993 with a line received late, by priority.
select o_orderpriority, count(*) as order_count
from orders
where o_orderkey in (select late.l_orderkey from lineitem late where late.l_receiptdate > late.l_commitdate)
  and o_orderdate between date '1993-07-01' and date '1993-09-30'
group by 1
order by 1;
