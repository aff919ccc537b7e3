-- Web analytics over `hits` (make_data.py): what sites ask of their visits.

-- How much
select count(*) from hits;
select count(*) from hits where advert_place > 0;
select sum(advert_place), count(*), avg(window_width) from hits;
select avg(visitor) from hits;
select count(distinct visitor) from hits;
select count(distinct search_phrase) from hits;
select min(day), max(day), min(moment), max(moment) from hits;
select sum(width), sum(width + 1), sum(width + 2), sum(width + 3), sum(height - 4), sum(height * 5), sum(load_time // 6), sum(bytes_down % 7) from hits;

-- Who and where
select advert_place, count(*) as n from hits where advert_place <> 0 group by 1 order by n desc, 1;
select region, count(distinct visitor) as visitors from hits group by region order by visitors desc, region limit 10;
select region, sum(advert_place) as adverts, count(*) as n, avg(window_width), count(distinct visitor) from hits group by region order by n desc, region limit 10;
select device_model, count(distinct visitor) as visitors from hits where device_model <> '' group by 1 order by visitors desc, 1 limit 10;
select device, device_model, count(distinct visitor) as visitors from hits where device_model <> '' group by 1, 2 order by visitors desc, 1, 2 limit 10;
select search_phrase, count(*) as n from hits where search_phrase <> '' group by 1 order by n desc, 1 limit 10;
select search_phrase, count(distinct visitor) as visitors from hits where search_phrase <> '' group by 1 order by visitors desc, 1 limit 10;
select search_engine, search_phrase, count(*) as n from hits where search_phrase <> '' group by 1, 2 order by n desc, 1, 2 limit 10;
select visitor, count(*) as n from hits group by 1 order by n desc, 1 limit 10;
select visitor, search_phrase, count(*) as n from hits group by 1, 2 order by n desc, 1, 2 limit 10;
select visitor, minute(moment) as m, search_phrase, count(*) as n from hits group by all order by n desc, 1, 2, 3 limit 10;
select visit_id, visitor from hits where visitor = (select min(visitor) from hits) order by 1;

-- Texts
select count(*) from hits where page_address like '%garden%';
select search_phrase, min(page_address), count(*) as n from hits where page_address like '%shop%' and search_phrase <> '' group by 1 order by n desc, 1 limit 10;
select search_phrase, min(page_address), min(page_title), count(*) as n, count(distinct visitor) from hits where page_title like '%river%' and page_address not like '%.test%' and search_phrase <> '' group by 1 order by n desc, 1 limit 10;
select * from hits where page_address like '%naïve%kiosk%' order by moment, visit_id limit 10;
select search_phrase, moment from hits where search_phrase <> '' order by moment, search_phrase limit 10;
select search_phrase from hits where search_phrase <> '' order by search_phrase limit 10;
select search_phrase, moment from hits where search_phrase <> '' order by search_phrase, moment limit 10;
select site, avg(strlen(page_address)) as size, count(*) as n from hits where page_address <> '' group by site having count(*) > 100 order by size desc, site limit 25;
select regexp_replace(refer_address, '^https?://([^/]+)/.*$', '\1') as host, avg(strlen(refer_address)) as size, count(*) as n, min(refer_address) from hits where refer_address <> '' group by 1 having count(*) > 5 order by size desc, host limit 25;
select site, count(*) filter (where search_phrase = '') as direct, count(*) filter (where search_phrase <> '') as searched, count(distinct search_phrase) from hits group by site order by site;

-- Groups of many keys
select search_engine, address_hash, count(*) as n, sum(is_refresh), avg(window_width) from hits where search_phrase <> '' group by 1, 2 order by n desc, 1, 2 limit 10;
select visit_id, address_hash, count(*) as n, sum(is_refresh), avg(window_width) from hits group by 1, 2 order by n desc, 1, 2 limit 10;
select page_address, count(*) as n from hits group by 1 order by n desc, 1 limit 10;
select address_hash, address_hash - 1, address_hash - 2, address_hash - 3, count(*) as n from hits group by all order by n desc, 1 limit 10;

-- A site's month
select page_address, count(*) as n from hits where site = 0 and day >= date '2024-03-01' and day <= date '2024-03-31' and is_refresh = 0 and page_address <> '' group by 1 order by n desc, 1 limit 10;
select page_title, count(*) as n from hits where site = 0 and day between date '2024-03-01' and date '2024-03-31' and is_link = 0 and page_title is not null group by 1 order by n desc, 1 limit 10;
select page_address, count(*) as n from hits where site = 0 and day between date '2024-03-01' and date '2024-03-10' and is_refresh = 0 and is_download = 0 group by 1 order by n desc, 1 limit 10 offset 50;
select refer_kind, search_engine, advert_place, case when search_engine = 0 and advert_place = 0 then refer_address else '' end as source, page_address, count(*) as n from hits where site = 0 group by all order by n desc, 1, 2, 3, 4, 5 limit 10 offset 100;
select address_hash, day, count(*) as n from hits where site = 0 and is_refresh = 0 and refer_kind in (1, 6) and page_size > 100 group by 1, 2 order by n desc, 1, 2 limit 10;
select window_width, window_height, count(*) as n from hits where site = 0 and is_refresh = 0 and is_link = 0 group by 1, 2 order by n desc, 1, 2 limit 10 offset 20;
select date_trunc('hour', moment) as hour, count(*) as n from hits where site = 0 and day between date '2024-03-10' and date '2024-03-12' and is_refresh = 0 group by 1 order by 1;
select day, visitors, sum(visitors) over (order by day rows between 6 preceding and current row) as week, visitors - lag(visitors) over (order by day) as change from (select day, count(distinct visitor) as visitors from hits group by day) order by day;
select country, currency, sum(order_value) as value, avg(cart_value), sum(order_value) / nullif(count(order_value), 0) as each, grouping(country) + grouping(currency) as level from hits where not (is_robot = 1 or is_test = 1) group by rollup (country, currency) order by level, 1, 2;
