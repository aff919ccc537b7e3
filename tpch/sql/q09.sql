-- TPC-H query 9: profit on green parts, by the supplier's nation and year.
select nation, o_year, sum(gain) as sum_profit
from (
  select n_name as nation, year(o_orderdate) as o_year,
         (1 - l_discount) * l_extendedprice - l_quantity * ps_supplycost as gain
  from part
  join lineitem on p_partkey = l_partkey
  join partsupp on ps_partkey = l_partkey and ps_suppkey = l_suppkey
  join supplier on s_suppkey = ps_suppkey
  join nation on n_nationkey = s_nationkey
  join orders on o_orderkey = l_orderkey
  where contains(p_name, 'green')
) green
group by nation, o_year
order by nation, o_year desc;
