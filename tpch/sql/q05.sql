-- TPC-H query 5: revenue of 1994 where customer and supplier are of one Asian nation.
select n.n_name, sum(l.l_extendedprice - l.l_extendedprice * l.l_discount) as revenue
from lineitem l
join supplier s on s.s_suppkey = l.l_suppkey
join orders o on o.o_orderkey = l.l_orderkey
join customer c on c.c_custkey = o.o_custkey and c.c_nationkey = s.s_nationkey
join nation n on n.n_nationkey = s.s_nationkey
join region r on r.r_regionkey = n.n_regionkey
where o.o_orderdate >= date '1994-01-01' and o.o_orderdate < date '1995-01-01' and r.r_name = 'ASIA'
group by n.n_name
order by 2 desc;
