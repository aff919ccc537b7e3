-- TPC-H query 17: what a year would lose without the small orders of one brand's medium boxes.
select sum(big.l_extendedprice) / 7.0 as avg_yearly
from part
join lineitem big on big.l_partkey = p_partkey
where p_container = 'MED BOX' and p_brand = 'Brand#23'
  and big.l_quantity < (select 0.2 * avg(every.l_quantity) from lineitem every where every.l_partkey = p_partkey);
