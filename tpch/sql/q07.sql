-- TPC-H query 7: goods shipped between France and Germany in 1995 and 1996, by direction and year.
with trade as (
  select sn.n_name as supp_nation, cn.n_name as cust_nation, year(l_shipdate) as l_year,
         l_extendedprice * (1 - l_discount) as volume
  from lineitem
  join orders on l_orderkey = o_orderkey
  join customer on o_custkey = c_custkey
  join nation cn on c_nationkey = cn.n_nationkey
  join supplier on l_suppkey = s_suppkey
  join nation sn on s_nationkey = sn.n_nationkey
  where l_shipdate >= date '1995-01-01' and l_shipdate <= date '1996-12-31'
    and (cn.n_name = 'GERMANY' and sn.n_name = 'FRANCE' or cn.n_name = 'FRANCE' and sn.n_name = 'GERMANY')
)
select supp_nation, cust_nation, l_year, sum(volume) as revenue
from trade
group by all
order by supp_nation, cust_nation, l_year;
