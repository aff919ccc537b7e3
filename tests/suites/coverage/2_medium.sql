-- Coverage of docs/sql.md, second third: groups, joins, subqueries, sets, windows, each by itself.

-- Groups
select c_country, c_vip, count(*) as n, avg(c_score) as score from customers where isfinite(c_score) group by all order by all;
select c_country, count(*) as n from customers group by c_country having count(*) > 10 and min(c_age) is not null order by n desc, c_country;
select c_country, count(*) filter (where c_age > 40) as older, sum(c_limit) filter (where c_vip) as vip_limit from customers group by c_country order by c_country;
select o_state, stddev(o_total), var_pop(o_total), stddev_pop(o_flags), variance(o_flags) from orders group by o_state order by o_state;
select o_state, median(o_total), quantile_cont(o_total, 0.25), quantile_disc(o_flags, 0.9) from orders group by o_state order by o_state;
select o_state, covar_pop(o_flags, o_id), covar_samp(o_flags, o_id), corr(o_flags, o_id) from orders group by o_state order by o_state;
select c_country, arg_max(c_name, c_id), arg_min(c_name, c_id), max(c_city), min(c_city) from customers group by c_country order by c_country;
select c_country, count(distinct c_city), count(distinct c_age), approx_count_distinct(c_vip) from customers group by c_country order by c_country;
select o_state, year(o_day) as y, sum(o_total) from orders group by rollup (o_state, y) order by 1, 2, 3;
select o_state, year(o_day) as y, grouping(o_state), grouping(y), count(*) from orders group by cube (o_state, y) order by 3, 4, 1, 2;
select o_state, o_customer % 3 as third, count(*) from orders group by grouping sets ((o_state), (third), ()) order by 1, 2, 3;
select distinct on (o_customer) o_customer, o_id, o_total from orders order by o_customer, o_id;
select c_country, c_city, c_vip, c_age // 20 as band, c_id % 2 as half, count(*) from customers group by all order by all;
select sum(o_total) as total, sum(cast(o_id as hugeint) * 1000000000) as big from orders;
select date_trunc('week', o_at) as week, count(distinct o_customer), sum(o_total) from orders where o_at is not null group by 1 order by 1;

-- Joins
select o_id, c_name from orders join customers on o_customer = c_id where o_total > 800 order by o_id;
select c_id, count(o_id) as n, sum(o_total) as total from customers left join orders on o_customer = c_id group by c_id order by c_id;
select o_id, c_id from orders right join customers on o_customer = c_id and o_total > 950 order by c_id, o_id;
select o_id, c_id from (select * from orders where o_id < 100) full join (select * from customers where c_id < 30) on o_customer = c_id order by o_id, c_id;
select c_id from customers where exists (select 1 from orders where o_customer = c_id and o_total > 900) order by c_id;
select c_id from customers where not exists (select 1 from orders where o_customer = c_id) order by c_id;
select p_id from products where p_id in (select i_product from items where i_count > 8) order by p_id;
select p_id from products where p_id not in (select i_product from items where i_count > 8 and i_product is not null) order by p_id;
select count(*) from products where p_id not in (select i_product from items);
select a.c_id, b.c_name as parent from customers a join customers b on a.c_parent = b.c_id order by a.c_id;
select a.p_id, b.p_id as dearer from products a join products b on a.p_kind = b.p_kind and a.p_price < b.p_price and a.p_id < b.p_id where a.p_id < 40 order by 1, 2;
select k.kind, v.city, count(*) from (values ('tool'), ('toy'), (null)) k(kind) cross join (select distinct c_city as city from customers) v group by all order by all;
select c_id, o_id from customers semi join orders on o_customer = c_id join (select o_id, o_customer from orders where o_id < 90) z on z.o_customer = c_id order by 1, 2;
select c_id from customers anti join orders on o_customer = c_id and o_state = 'A' order by c_id;
select i_order, i_line, s_level from items join stock on i_product = s_product and i_back = s_day order by 1, 2;
select o_id, c_name from orders, customers where o_customer = c_id and o_state = 'B' and (c_country = 'NO' or o_total < 50) order by o_id;

-- Subqueries
select c_id, c_score from customers where c_score > (select avg(c_score) from customers where isfinite(c_score)) and isfinite(c_score) order by c_id;
select c_id, (select max(o_total) from orders where o_customer = c_id) as most from customers order by c_id;
select o_id, o_total from orders o where o_total > (select 1.5 * avg(o_total) from orders i where i.o_customer = o.o_customer) order by o_id;
select p_kind, p_id from products p where p_price = (select max(p_price) from products q where q.p_kind = p.p_kind) order by 1, 2;
select c_id, exists (select 1 from orders where o_customer = c_id and o_state = 'C') as has, c_id in (select o_customer from orders where o_total > 990) as big from customers order by c_id;
select c_id from customers where c_age > all (select c_age from customers where c_country = 'IS' and c_age is not null) order by c_id;

-- Sets
select c_city from customers where c_vip union select c_city from customers where c_age > 60 order by 1;
select c_city from customers where c_id < 40 union all select c_country from customers where c_id < 20 order by 1;
select c_city from customers where c_vip except select c_city from customers where c_age > 60 order by 1;
select c_city, c_vip from customers intersect select c_city, c_vip from customers where c_age > 60 order by 1, 2;
select c_age from customers where c_id < 100 except all select c_age from customers where c_id > 150 order by 1;
select c_age from customers where c_id < 100 intersect all select c_age from customers where c_id > 90 order by 1;

-- Windows
select o_id, row_number() over (order by o_total desc nulls last, o_id) as place from orders where o_id < 300 order by o_id;
select o_id, rank() over w, dense_rank() over w, percent_rank() over w, cume_dist() over w from orders where o_id < 300 window w as (partition by o_state order by o_total) order by o_id;
select s_product, s_day, s_level, lag(s_level) over w, lead(s_level, 2, -1) over w from stock window w as (partition by s_product order by s_day) order by 1, 2;
select s_product, s_day, sum(s_move) over (partition by s_product order by s_day) as running, avg(s_move) over (partition by s_product order by s_day rows between 3 preceding and current row) from stock order by 1, 2;
select s_product, s_day, first_value(s_level) over w, last_value(s_level) over w, nth_value(s_level, 3) over w from stock window w as (partition by s_product order by s_day rows between unbounded preceding and unbounded following) order by 1, 2;
select o_id, ntile(7) over (order by o_id) as tile, count(*) over (partition by o_state) as n from orders where o_id < 250 order by o_id;
select s_product, s_day, max(s_level) over (partition by s_product order by s_day rows between 2 preceding and 2 following) as top, min(s_level) over (partition by s_product order by s_day) as low from stock order by 1, 2;

-- Order, limit, series
select o_id, o_total from orders order by o_total nulls first, o_id limit 25 offset 10;
select n, n * n as square, n % 7 as rest from range(1, 60, 3) t(n) order by n;
select d.x, count(o_id) from generate_series(1, 12) d(x) left join orders on month(o_day) = d.x group by 1 order by 1;
