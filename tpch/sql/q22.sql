-- TPC-H query 22: customers of seven countries with money and without orders, by country code.
with callers as (
  select substring(c_phone, 1, 2) as code, c_acctbal as balance, c_custkey as who
  from customer
  where substring(c_phone, 1, 2) in ('13', '17', '18', '23', '29', '30', '31')
)
select code as cntrycode, count(*) as numcust, sum(balance) as totacctbal
from callers
where balance > (select avg(balance) from callers where balance > 0)
  and not exists (select 1 from orders where o_custkey = who)
group by code
order by code;
