-- TPC-H query 1: what was billed, shipped and returned up to 2 September 1998, by flag and status.
with shipped as (
  select l_returnflag as flag, l_linestatus as status, l_quantity as pieces, l_extendedprice as price,
         l_discount as off, l_extendedprice * (1 - l_discount) as net, l_tax as tax
  from lineitem
  where date '1998-09-02' >= l_shipdate
)
select flag as l_returnflag, status as l_linestatus,
       sum(pieces) as sum_qty, sum(price) as sum_base_price, sum(net) as sum_disc_price,
       sum(net * (tax + 1)) as sum_charge,
       avg(pieces) as avg_qty, avg(price) as avg_price, avg(off) as avg_disc, count(*) as count_order
from shipped
group by flag, status
order by flag, status;
