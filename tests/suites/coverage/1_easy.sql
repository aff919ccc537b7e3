-- Coverage of docs/sql.md, first third: one idea a query. Tables: make_data.py.

-- Scans, comparisons, three-valued logic
select c_id, c_name, c_city from customers where c_country = 'NO' order by c_id;
select o_id, o_total from orders where o_total > 900.00 order by o_total desc, o_id;
select count(*), count(o_day), count(o_total), count(o_state) from orders;
select c_id from customers where c_city is null order by c_id;
select c_id from customers where not (c_age > 40) order by c_id;
select c_id, c_age from customers where c_age between 30 and 35 order by c_age, c_id;
select c_id from customers where c_vip and c_score > 50 order by c_id;
select c_id from customers where c_vip or c_limit is null order by c_id desc;
select count(*) from customers where c_vip is not true;
select count(*) from items where i_off in (0.050, 0.100, null);
select count(*) from items where i_count not in (1, 2, 3);
select count(*) from customers where c_city is distinct from 'Bergen';
select count(*) from customers a where a.c_parent is not distinct from a.c_age;
select o_id from orders where o_total <> 10 and o_state >= 'D' order by o_id limit 20;

-- Arithmetic
select i_order, i_line, i_count * i_price as amount from items where i_order < 60 order by 1, 2;
select i_order, i_line, i_price * (1 - i_off) as net, i_price - i_off, i_price + 1 from items where i_order between 60 and 90 order by 1, 2;
select p_id, p_stock // 7, p_stock % 7, -p_stock, abs(p_stock - 500), sign(p_stock - 500) from products order by p_id;
select p_id, p_price / 3, round(p_price, 1), round(p_price), floor(p_price), ceil(p_price), trunc(p_price) from products order by p_id;
select c_id, sqrt(c_score), ln(c_score + 1), exp(c_score / 100), power(c_score, 2), log10(c_score + 1) from customers where c_score >= 0 and c_score < 1000 order by c_id;
select c_id, greatest(c_age, 40), least(c_age, c_parent, 50) from customers order by c_id;
select o_id, o_flags & 15, o_flags << 2, o_flags >> 3, ~o_flags from orders where o_id < 200 order by o_id;
select count(*) from customers where isnan(c_score) or isinf(c_score);
select degrees(c_score), sin(c_score), cos(c_score), atan(c_score) from customers where c_id < 40 and isfinite(c_score) order by c_id;

-- CASE, COALESCE, NULLIF, casts
select c_id, case when c_age < 30 then 'young' when c_age < 60 then 'middle' else 'other' end as band from customers order by c_id;
select c_id, coalesce(c_city, c_country, 'nowhere') as place from customers order by c_id;
select c_id, nullif(c_country, 'NO'), coalesce(c_limit, 0) from customers order by c_id;
select case o_state when 'A' then 1 when 'B' then 2 end as code, count(*) from orders group by 1 order by 1;
select cast(o_total as integer), cast(o_total as bigint), cast(o_total as double), cast(o_id as varchar) from orders where o_id < 80 order by o_id;
select cast(c_score as integer), cast(c_age as double), cast(c_vip as integer), cast(c_birth as varchar) from customers where isfinite(c_score) order by c_id;
select try_cast(p_code as integer) as n, count(*) from products group by 1 order by 1;
select cast(p_price as decimal(12,4)), cast(p_price as decimal(6,1)), cast(p_weight as double) from products order by p_id;
select cast(o_at as date), cast(o_at as time), cast(o_day as timestamp) from orders where o_id < 50 order by o_id;

-- Dates and times
select year(o_day) as y, month(o_day) as m, count(*) from orders group by 1, 2 order by 1, 2;
select extract(quarter from o_day), extract(dow from o_day), extract(doy from o_day), extract(week from o_day) from orders where o_id < 60 order by o_id;
select date_trunc('month', o_at) as m, count(*) from orders group by 1 order by 1;
select o_id, o_day + interval 1 month, o_day - 10, o_at + interval 90 minute from orders where o_id < 60 order by o_id;
select o_id, date_diff('day', o_day, date '2024-06-01'), o_day - date '2024-01-01' from orders where o_id < 70 order by o_id;
select hour(o_at), minute(o_at), second(o_at) from orders where o_id < 70 order by o_id;
select strftime(o_day, '%d.%m.%Y'), dayname(o_day), monthname(o_day), last_day(o_day) from orders where o_id < 60 order by o_id;
select o_id, o_ship from orders where o_ship between time '08:00:00' and time '10:30:00' order by o_id;
select make_date(year(o_day), 1, 1) as first, count(*) from orders group by 1 order by 1;
select epoch(o_at), epoch_ms(o_at) from orders where o_id < 40 order by o_id;
select date_trunc('hour', o_zone), count(*) from orders where o_id < 300 group by 1 order by 1;

-- Text
select upper(c_name), lower(c_name), length(c_name), strlen(c_name), reverse(c_city) from customers order by c_id;
select c_id, substring(c_name, 2, 3), left(c_name, 2), right(c_name, 2) from customers order by c_id;
select c_id, c_name || ' / ' || c_city as both, concat(c_name, '/', c_city), concat_ws('-', c_country, c_city) from customers order by c_id;
select count(*) from customers where c_name like 'A%' or c_name like '%o' or c_name like '%ar%';
select p_id, p_name from products where p_name like '_a%' order by p_id;
select p_id, p_name from products where p_name ilike '%BLUE%' order by p_id;
select p_id from products where p_tags like '%10!%%' escape '!' order by p_id;
select p_id, split_part(p_tags, ',', 1), split_part(p_tags, ',', 2) from products order by p_id;
select p_id, replace(p_name, 'blue', 'red'), trim(p_name), lpad(p_code, 6, '0') from products order by p_id;
select p_id, position('a' in p_name), contains(p_name, 'en'), starts_with(p_name, 'g') from products order by p_id;
select c_id, regexp_matches(c_note, 'l[ao]t'), regexp_extract(c_note, '([a-z]+) ([0-9]+)', 2) from customers order by c_id;
select c_id, regexp_replace(c_note, '[0-9]+', '#', 'g') from customers where c_id < 60 order by c_id;

-- Simple aggregates
select sum(i_count), min(i_price), max(i_price), avg(i_price), count(distinct i_product) from items;
select i_product, sum(i_count * i_price) as amount from items group by i_product order by i_product;
select o_state, count(*), sum(o_total), avg(o_total), min(o_day), max(o_at) from orders group by o_state order by o_state;
select c_country, bool_and(c_vip), bool_or(c_vip), count_if(c_age > 30) from customers group by c_country order by c_country;
select sum(n_value), min(n_text), count(n_day), avg(n_value), max(n_day), count(*) from nothing;
select distinct c_country, c_vip from customers order by 1, 2;
