-- TPC-H query 19: revenue of three kinds of small boxes handed over in person after air freight.
select sum((1 - l_discount) * l_extendedprice) as revenue
from lineitem join part on l_partkey = p_partkey
where l_shipinstruct = 'DELIVER IN PERSON' and l_shipmode in ('AIR REG', 'AIR')
  and p_size >= 1
  and (p_brand = 'Brand#12' and p_size <= 5 and l_quantity between 1 and 11
         and p_container in ('SM BOX', 'SM CASE', 'SM PACK', 'SM PKG')
    or p_brand = 'Brand#23' and p_size <= 10 and l_quantity between 10 and 20
         and p_container in ('MED BAG', 'MED BOX', 'MED PACK', 'MED PKG')
    or p_brand = 'Brand#34' and p_size <= 15 and l_quantity between 20 and 30
         and p_container in ('LG BOX', 'LG CASE', 'LG PACK', 'LG PKG'));
