-- TPC-H query 20: Canadian suppliers who hold more of a forest part than half of what they shipped of it in 1994.
with shipped as (
  select l_partkey as part, l_suppkey as supp, 0.5 * sum(l_quantity) as half
  from lineitem
  where l_shipdate >= date '1994-01-01' and l_shipdate < date '1995-01-01'
  group by l_partkey, l_suppkey
), plenty as (
  select ps_suppkey
  from partsupp join shipped on part = ps_partkey and supp = ps_suppkey
  where ps_availqty > half and ps_partkey in (select p_partkey from part where p_name like 'forest%')
)
select s_name, s_address
from supplier join nation on n_nationkey = s_nationkey
where n_name = 'CANADA' and s_suppkey in (from plenty)
order by s_name;
