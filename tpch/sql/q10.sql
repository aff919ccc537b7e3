-- TPC-H query 10: the twenty customers who returned most of what they ordered in the last quarter of 1993.
with returned as (
  select o_custkey as who, sum(l_extendedprice * (1 - l_discount)) as revenue
  from orders join lineitem on l_orderkey = o_orderkey
  where l_returnflag = 'R' and o_orderdate >= date '1993-10-01' and o_orderdate < date '1994-01-01'
  group by o_custkey
)
select c_custkey, c_name, revenue, c_acctbal, n_name, c_address, c_phone, c_comment
from returned
join customer on c_custkey = who
join nation on c_nationkey = n_nationkey
order by revenue desc
limit 20;
