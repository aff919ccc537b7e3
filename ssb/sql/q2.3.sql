-- SSB query 2.3: the same of one brand, from European suppliers.
select sum(lo.lo_revenue) as lo_revenue, d.d_year, p.p_brand1
from lineorder lo
join part p on p.p_partkey = lo.lo_partkey and p.p_brand1 = 'MFGR#2239'
join supplier s on s.s_suppkey = lo.lo_suppkey and s.s_region = 'EUROPE'
join date d on d.d_datekey = lo.lo_orderdate
group by d.d_year, p.p_brand1
order by d.d_year, p.p_brand1;
