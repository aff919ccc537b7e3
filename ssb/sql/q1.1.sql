-- SSB query 1.1: what dropping the discounts of 1 to 3 percent on small orders of 1993 would have brought.
select sum(lo.lo_extendedprice * lo.lo_discount) as revenue
from lineorder lo
join date d on d.d_datekey = lo.lo_orderdate
where d.d_year = 1993 and lo.lo_discount between 1 and 3 and lo.lo_quantity < 25;
