-- TPC-H query 11: the parts that make up most of the German stock's value.
with german as (
  select ps_partkey as part, ps_availqty * ps_supplycost as worth
  from partsupp
  join supplier on s_suppkey = ps_suppkey
  join nation on n_nationkey = s_nationkey
  where n_name = 'GERMANY'
)
select part as ps_partkey, sum(worth) as value
from german
group by part
having sum(worth) > (select sum(worth) * 0.0001 from german)
order by value desc;
