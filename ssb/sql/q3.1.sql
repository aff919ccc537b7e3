-- SSB query 3.1: revenue between the nations of Asia, by year.
select c.c_nation, s.s_nation, d.d_year, sum(lo.lo_revenue) as lo_revenue
from lineorder lo
join customer c on c.c_custkey = lo.lo_custkey and c.c_region = 'ASIA'
join supplier s on s.s_suppkey = lo.lo_suppkey and s.s_region = 'ASIA'
join date d on d.d_datekey = lo.lo_orderdate and d.d_year between 1992 and 1997
group by c.c_nation, s.s_nation, d.d_year
order by d.d_year, lo_revenue desc;
