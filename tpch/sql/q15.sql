-- TPC-H query 15: the supplier who brought in most in the first quarter of 1996.
with income as (
  select l_suppkey as supplier_no, sum(l_extendedprice * (1 - l_discount)) as total_revenue
  from lineitem
  where l_shipdate between date '1996-01-01' and date '1996-03-31'
  group by l_suppkey
), best as (
  select max(total_revenue) as most from income
)
select s_suppkey, s_name, s_address, s_phone, total_revenue
from best
join income on total_revenue = most
join supplier on s_suppkey = supplier_no
order by s_suppkey;
