-- TPC-H query 21: Saudi suppliers who alone were late with a line of an order of several suppliers.
select s_name, count(*) as numwait
from nation
join supplier on s_nationkey = n_nationkey
join lineitem mine on mine.l_suppkey = s_suppkey and mine.l_receiptdate > mine.l_commitdate
join orders on o_orderkey = mine.l_orderkey
where n_name = 'SAUDI ARABIA' and o_orderstatus = 'F'
  and not exists (select 1 from lineitem late
                  where late.l_receiptdate > late.l_commitdate
                    and late.l_suppkey != mine.l_suppkey and late.l_orderkey = mine.l_orderkey)
  and exists (select 1 from lineitem other
              where other.l_suppkey != mine.l_suppkey and other.l_orderkey = mine.l_orderkey)
group by s_name
order by 2 desc, 1
limit 100;
