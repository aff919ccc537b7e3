-- SSB query 4.2: the same of 1997 and 1998, by nation of the supplier and category.
select d.d_year, s.s_nation, p.p_category, sum(lo.lo_revenue - lo.lo_supplycost) as profit
from lineorder lo
join customer c on c.c_custkey = lo.lo_custkey and c.c_region = 'AMERICA'
join supplier s on s.s_suppkey = lo.lo_suppkey and s.s_region = 'AMERICA'
join part p on p.p_partkey = lo.lo_partkey and p.p_mfgr in ('MFGR#1', 'MFGR#2')
join date d on d.d_datekey = lo.lo_orderdate and d.d_year in (1997, 1998)
group by d.d_year, s.s_nation, p.p_category
order by d.d_year, s.s_nation, p.p_category;
