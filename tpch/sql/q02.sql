-- TPC-H query 2: of each brass part of size 15, the European suppliers who ask the least.
with offers as (
  select ps_partkey as part, ps_supplycost as cost, s_acctbal, s_name, n_name, s_address, s_phone, s_comment
  from region
  join nation on r_regionkey = n_regionkey
  join supplier on n_nationkey = s_nationkey
  join partsupp on s_suppkey = ps_suppkey
  where r_name = 'EUROPE'
)
select o.s_acctbal, o.s_name, o.n_name, p_partkey, p_mfgr, o.s_address, o.s_phone, o.s_comment
from part
join offers o on o.part = p_partkey
where p_type like '%BRASS' and p_size = 15
  and o.cost = (select min(other.cost) from offers other where other.part = p_partkey)
order by o.s_acctbal desc, o.n_name, o.s_name, p_partkey
limit 100;
