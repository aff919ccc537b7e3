-- SSB query 3.3: revenue between two cities of the United Kingdom, by year.
select c.c_city, s.s_city, d.d_year, sum(lo.lo_revenue) as lo_revenue
from lineorder lo
join customer c on c.c_custkey = lo.lo_custkey and c.c_city in ('UNITED KI1', 'UNITED KI5')
join supplier s on s.s_suppkey = lo.lo_suppkey and s.s_city in ('UNITED KI1', 'UNITED KI5')
join date d on d.d_datekey = lo.lo_orderdate and d.d_year between 1992 and 1997
group by c.c_city, s.s_city, d.d_year
order by d.d_year, lo_revenue desc;
