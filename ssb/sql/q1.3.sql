-- SSB query 1.3: the same for one week, discounts of 5 to 7 percent.
select sum(lo.lo_extendedprice * lo.lo_discount) as revenue
from lineorder lo
join date d on d.d_datekey = lo.lo_orderdate
where d.d_year = 1994 and d.d_weeknuminyear = 6
  and lo.lo_discount between 5 and 7 and lo.lo_quantity between 26 and 35;
