-- TPC-H query 14: the share of promoted parts in the revenue of September 1995, in percent.
select 100.00 * sum(case when starts_with(p_type, 'PROMO') then l_extendedprice * (1 - l_discount) else 0 end)
         / sum(l_extendedprice * (1 - l_discount)) as promo_revenue
from part join lineitem on p_partkey = l_partkey
where l_shipdate between date '1995-09-01' and date '1995-09-30';
