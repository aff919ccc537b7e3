-- TPC-H query 13: how many customers have how many orders, orders with special requests apart.
with per_customer as (
  select c_custkey, count(o_orderkey) as c_count
  from customer
  left join orders on c_custkey = o_custkey and not o_comment like '%special%requests%'
  group by c_custkey
)
select c_count, count(*) as custdist
from per_customer
group by c_count
order by custdist desc, c_count desc;
