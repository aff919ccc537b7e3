-- TPC-H query 3: the ten orders not shipped on 15 March 1995 that are worth most, of the building segment.
select o.o_orderkey as l_orderkey, sum((1 - l.l_discount) * l.l_extendedprice) as revenue,
       o.o_orderdate, o.o_shippriority
from customer c
join orders o on o.o_custkey = c.c_custkey and o.o_orderdate < date '1995-03-15'
join lineitem l on l.l_orderkey = o.o_orderkey and l.l_shipdate > date '1995-03-15'
where c.c_mktsegment = 'BUILDING'
group by o.o_orderkey, o.o_orderdate, o.o_shippriority
order by revenue desc, o.o_orderdate
limit 10;
