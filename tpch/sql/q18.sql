-- TPC-H query 18: the hundred largest orders of more than 300 pieces, and who placed them.
with large as (
  select l_orderkey as number, sum(l_quantity) as pieces
  from lineitem
  group by l_orderkey
  having sum(l_quantity) > 300
)
select c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, pieces as sum
from large
join orders on o_orderkey = number
join customer on c_custkey = o_custkey
order by o_totalprice desc, o_orderdate
limit 100;
