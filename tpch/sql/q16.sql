-- TPC-H query 16: how many suppliers without complaints offer the parts of eight sizes, by brand, type and size.
select p_brand, p_type, p_size, count(distinct ps_suppkey) as supplier_cnt
from part join partsupp on ps_partkey = p_partkey
where p_size in (3, 9, 14, 19, 23, 36, 45, 49)
  and p_type not like 'MEDIUM POLISHED%' and p_brand != 'Brand#45'
  and ps_suppkey not in (select s_suppkey from supplier where s_comment like '%Customer%Complaints%')
group by p_brand, p_type, p_size
order by supplier_cnt desc, p_brand, p_type, p_size;
