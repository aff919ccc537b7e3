-- SSB query 4.3: the same by city of the supplier, in the United States, and brand, of one category.
select d.d_year, s.s_city, p.p_brand1, sum(lo.lo_revenue - lo.lo_supplycost) as profit
from lineorder lo
join customer c on c.c_custkey = lo.lo_custkey and c.c_region = 'AMERICA'
join supplier s on s.s_suppkey = lo.lo_suppkey and s.s_nation = 'UNITED STATES'
join part p on p.p_partkey = lo.lo_partkey and p.p_category = 'MFGR#14'
join date d on d.d_datekey = lo.lo_orderdate and d.d_year in (1997, 1998)
group by d.d_year, s.s_city, p.p_brand1
order by d.d_year, s.s_city, p.p_brand1;
