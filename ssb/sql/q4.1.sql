-- SSB query 4.1: profit by year and nation of the customer, of two makers' parts within America.
select d.d_year, c.c_nation, sum(lo.lo_revenue - lo.lo_supplycost) as profit
from lineorder lo
join customer c on c.c_custkey = lo.lo_custkey and c.c_region = 'AMERICA'
join supplier s on s.s_suppkey = lo.lo_suppkey and s.s_region = 'AMERICA'
join part p on p.p_partkey = lo.lo_partkey and p.p_mfgr in ('MFGR#1', 'MFGR#2')
join date d on d.d_datekey = lo.lo_orderdate
group by d.d_year, c.c_nation
order by d.d_year, c.c_nation;
