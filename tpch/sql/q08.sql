-- TPC-H query 8: Brazil's share of what America bought of one type of steel part, by year.
with sales as (
  select year(o_orderdate) as o_year, l_extendedprice * (1 - l_discount) as volume, home.n_name as nation
  from part
  join lineitem on l_partkey = p_partkey
  join supplier on s_suppkey = l_suppkey
  join nation home on home.n_nationkey = s_nationkey
  join orders on o_orderkey = l_orderkey
  join customer on c_custkey = o_custkey
  join nation buyer on buyer.n_nationkey = c_nationkey
  join region on r_regionkey = buyer.n_regionkey
  where r_name = 'AMERICA' and p_type = 'ECONOMY ANODIZED STEEL'
    and o_orderdate between date '1995-01-01' and date '1996-12-31'
)
select o_year, sum(case nation when 'BRAZIL' then volume else 0 end) / sum(volume) as mkt_share
from sales
group by o_year
order by o_year;
