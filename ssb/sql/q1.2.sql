-- SSB query 1.2: the same for one month, discounts of 4 to 6 percent, quantities of 26 to 35.
select sum(lo.lo_extendedprice * lo.lo_discount) as revenue
from lineorder lo
join date d on d.d_datekey = lo.lo_orderdate
where d.d_yearmonthnum = 199401
  and lo.lo_discount between 4 and 6 and lo.lo_quantity between 26 and 35;
