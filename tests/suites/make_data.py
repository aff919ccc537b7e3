#!/usr/bin/env python3
"""The tables of the two suites of this folder, as Parquet files.

    tests/suites/make_data.py coverage FOLDER [--scale 1]
    tests/suites/make_data.py web FOLDER [--scale 1]

Needs Python's module duckdb, of which the row numbers' hashes alone choose the values: the same
files at every call. coverage: a shop of eight small tables, every type that rndn has, nulls in what may
be null, one table without rows. web: `hits`, 105 columns: flags, small numbers, codes that a few values
fill, keys of many values, texts from none to a few hundred characters, a tenth to nine tenths of
nulls. Scale 1 has 1,500 orders and 20,000 hits.
"""
import argparse
import pathlib
import re
import sys

try:
    import duckdb
except ImportError:
    duckdb = None

# In the expressions: i is the row's number from 0; u(k) is uniform in [0, 1), n(k, m) an integer below
# m, z(k, m) one below m of which the small are much more frequent, of(k, list) a value of a list, all by
# the row's hash number k; maybe(k, p, x) is x, or null with probability p.
MACROS = '''
CREATE MACRO u(i, k) AS (hash(i * 1000 + k) % 1000003)::BIGINT / 1000003.0::DOUBLE;
CREATE MACRO n(i, k, m) AS (hash(i * 1000 + k) % m::UBIGINT)::BIGINT;
CREATE MACRO z(i, k, m) AS floor(m * pow(u(i, k), 4))::BIGINT;
CREATE MACRO of(i, k, list) AS list[n(i, k, len(list)) + 1];
CREATE MACRO maybe(i, k, p, x) AS CASE WHEN u(i, k + 500) >= p THEN x END;
'''
COUNTRIES = "['NO', 'NO', 'NO', 'SE', 'DK', 'FI', 'IS', 'DE']"
CITIES = "['Bergen', 'Oslo', 'Tromsø', 'Malmö', 'Århus', 'Turku', 'Reykjavík', 'Bodø', 'Köln', 'Bonn']"
NAMES = "['Anna', 'Åse', 'Bo', 'Carla', 'Diego', 'Émile', 'Fatima', 'Gunnar', 'Hana', 'Ivo', 'Marta']"
WORDS = ("['late', 'slot', 'garden', 'blue', 'winter', 'über', 'naïve', 'lot', 'spring', 'kiosk', 'river', "
         "'stone', '日本', 'lamp']")

SHOP = {
    'customers': (300, '''
        i::INTEGER AS c_id, of(1, {names}) || ' ' || of(2, {names}) AS c_name,
        maybe(3, .15, of(3, {cities})) AS c_city, maybe(4, .05, of(4, {countries})) AS c_country,
        maybe(5, .2, DATE '1940-01-01' + n(5, 25000)::INTEGER) AS c_birth,
        maybe(6, .3, (n(6, 1000000) / 100)::DECIMAL(9, 2)) AS c_limit,
        maybe(7, .1, CASE n(7, 40) WHEN 0 THEN 'nan' WHEN 1 THEN 'inf' ELSE u(8) * 100 END::DOUBLE) AS c_score,
        maybe(9, .2, n(9, 3) = 0) AS c_vip, maybe(10, .1, (18 + n(10, 70))::TINYINT) AS c_age,
        maybe(11, .3, CASE WHEN i > 0 THEN n(11, greatest(i, 1)) END::INTEGER) AS c_parent,
        maybe(12, .1, concat_ws(' ', of(12, {words}), n(13, 900), repeat(of(14, {words}) || ' ', z(15, 40)),
                                of(16, {words}))) AS c_note'''),
    'products': (120, '''
        i::INTEGER AS p_id, of(1, {words}) || ' ' || of(2, {words}) AS p_name,
        of(3, ['tool', 'toy', 'food', 'book']) AS p_kind, maybe(4, .1, (n(4, 90000) / 100)::DECIMAL(7, 2)) AS p_price,
        maybe(5, .2, (n(5, 4000) / 8)::FLOAT) AS p_weight, maybe(6, .1, n(6, 1000)::SMALLINT) AS p_stock,
        maybe(7, .1, concat_ws(',', of(7, ['new', 'sale', '10% off']), of(8, {words}))) AS p_tags,
        CASE n(9, 4) WHEN 0 THEN 'x' ELSE '' END || n(10, 4000) AS p_code'''),
    'orders': (1500, '''
        i AS o_id, maybe(1, .05, z(1, 300)::INTEGER) AS o_customer,
        maybe(2, .1, DATE '2022-12-15' + n(2, 700)::INTEGER) AS o_day,
        maybe(3, .1, TIMESTAMP '2023-01-01' + to_milliseconds(n(3, 60000000000))) AS o_at,
        maybe(4, .1, of(4, ['A', 'A', 'B', 'C', 'D'])) AS o_state,
        maybe(5, .15, (n(5, 100000) / 100)::DECIMAL(15, 2)) AS o_total,
        maybe(6, .2, TIME '00:00:00' + to_seconds(n(6, 86400))) AS o_ship, maybe(7, .1, n(7, 4096)::INTEGER) AS o_flags,
        maybe(8, .3, TIMESTAMPTZ '2023-01-01 00:00:00+00' + to_seconds(n(8, 50000000))) AS o_zone'''),
    'items': (4000, '''
        n(1, 1500) AS i_order, i::INTEGER AS i_line, maybe(2, .05, n(2, 120)::INTEGER) AS i_product,
        maybe(3, .05, (1 + z(3, 12))::SMALLINT) AS i_count, maybe(4, .1, (n(4, 90000) / 100)::DECIMAL(7, 2)) AS i_price,
        maybe(5, .4, (n(5, 8) * .05)::DECIMAL(4, 3)) AS i_off,
        maybe(6, .8, DATE '2023-01-01' + n(6, 200)::INTEGER) AS i_back'''),
    'stock': (1200, '''
        (i % 12)::INTEGER AS s_product, DATE '2023-01-01' + (i // 12 + (i // 12) // 9 * 2)::INTEGER AS s_day,
        maybe(1, .1, (50 + n(1, 100))::INTEGER) AS s_level, maybe(2, .2, (n(2, 41) - 20)::INTEGER) AS s_move'''),
    'nothing': (0, '''
        i AS n_id, 1::DECIMAL(9, 2) AS n_value, '' AS n_text, DATE '2023-01-01' AS n_day'''),
}

# hits: by kind, how a column is made; {k} is its number. A column is 'name kind', in the order of HITS.
KINDS = {
    'flag': '(u({k}) < .1)::TINYINT',
    'rare': '(u({k}) < .002)::TINYINT',
    'tiny': 'maybe({k}, .1, z({k}, 12)::TINYINT)',
    'small': 'maybe({k}, .2, z({k}, 3000)::SMALLINT)',
    'count': 'z({k}, 200000)::INTEGER',
    'maybe': 'maybe({k}, .9, n({k}, 1000000)::INTEGER)',
    'key': '(hash(z({k}, 2000) * 7919 + {k}) >> 2)::BIGINT',
    'many': '(hash(i * 31 + {k}) >> 2)::BIGINT',
    'money': 'maybe({k}, .5, (z({k}, 900000) / 100)::DECIMAL(12, 2))',
    'real': 'maybe({k}, .1, u({k}) * 1000)',
    'day': "DATE '2024-03-01' + z({k}, 30)::INTEGER",
    'moment': "TIMESTAMP '2024-03-01' + to_seconds(n({k}, 2592000))",
    'code': "maybe({k}, .1, of({k}, ['en', 'en', 'en', 'de', 'fr', 'no', 'ja']))",
    'empty': "CASE WHEN u({k}) < .03 THEN of({k}, {words}) ELSE '' END",
    'phrase': "CASE WHEN u({k}) < .2 THEN of({k}, {words}) || ' ' || of({k} + 1, {words}) || ' ' || z({k} + 2, 300) "
              "ELSE '' END",
    'title': "maybe({k}, .05, concat_ws(' ', of({k}, {words}), of({k} + 1, {words}), z({k} + 2, 4000), "
             "repeat(of({k} + 3, {words}) || '-', z({k} + 4, 30))))",
    'address': "maybe({k}, .02, 'https://' || of({k}, ['www.', '', 'm.']) || of({k} + 1, {words}) || of({k} + 2, "
               "['.example', '.test/', '.example/shop/']) || of({k} + 3, {words}) || '?id=' || z({k} + 4, 9000) || "
               "repeat('&' || of({k} + 5, {words}) || '=1', z({k} + 6, 25)))",
    'refer': "maybe({k}, .6, 'https://' || of({k}, ['find', 'news', 'mail', 'social']) || '.example/' || "
             "of({k} + 1, {words}) || '/' || z({k} + 2, 5000))",
}
HITS = '''
    visit_id many, visitor key, session key, site tiny, region small, country code, language code, day day, moment moment, zone tiny,
    page_title title, page_address address, page_size count, page_group small, page_author small, page_section tiny,
    refer_address refer, refer_group small, refer_kind tiny, search_phrase phrase, search_engine tiny, search_place tiny,
    campaign small, campaign_source empty, campaign_medium empty, campaign_word phrase, advert small, advert_place tiny,
    browser tiny, browser_major tiny, browser_minor small, system tiny, system_major tiny, device tiny, device_model empty,
    device_maker tiny, width count, height count, window_width small, window_height small, depth tiny, pixel_ratio real,
    is_mobile flag, is_tablet rare, is_robot rare, is_new flag, is_bounce flag, is_download rare, is_link flag,
    is_refresh flag, is_private rare, is_test rare, is_logged_in flag, is_member flag, has_cookies flag, has_script flag,
    has_storage flag, has_blocker flag, connection tiny, carrier empty, provider small, address_hash key, address_class tiny,
    latency count, resolve_time small, connect_time small, reply_time small, load_time count, ready_time count,
    paint_time count, script_errors tiny, resources small, bytes_down count, bytes_up count, scroll tiny, clicks tiny,
    keys tiny, active_time count, total_time count, video_time maybe, video_id maybe, download_id maybe, form_id maybe,
    form_steps tiny, goal_1 flag, goal_2 rare, goal_3 rare, goal_value money, cart_items tiny, cart_value money,
    order_id maybe, order_value money, tax_value money, coupon empty, currency code, test_group tiny, test_variant tiny,
    score real, rank_score real, age_group tiny, interest small, segment small, note title, tags phrase, window_name empty
'''


def sources(suite, scale):
    """(table, rows, columns) of a suite."""
    if suite == 'coverage':
        for table, (rows, columns) in SHOP.items():
            yield table, round(rows * scale), columns
        return
    columns = [column.split() for column in HITS.split(',')]
    yield 'hits', round(20000 * scale), ', '.join(
        f'{KINDS[kind].replace("{k}", str(10 + 8 * at))} AS {name}' for at, (name, kind) in enumerate(columns))


def make(suite, folder, scale=1):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    base = duckdb.connect()
    for macro in MACROS.strip().splitlines():
        base.execute(macro)
    for table, rows, columns in sources(suite, scale):
        for name, values in (('names', NAMES), ('cities', CITIES), ('countries', COUNTRIES), ('words', WORDS)):
            columns = columns.replace('{' + name + '}', values)
        columns = re.sub(r'\b(u|n|z|of|maybe)\(', r'\1(i, ', columns)
        base.execute(f"COPY (SELECT {columns} FROM range({rows}) t(i)) TO '{folder}/{table}.parquet' (COMPRESSION zstd)")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('suite', choices=['coverage', 'web'])
    parser.add_argument('folder')
    parser.add_argument('--scale', type=float, default=1)
    options = parser.parse_args()
    if duckdb is None:
        print('make_data.py: the Python module duckdb is missing: run tools/sql-planner', file=sys.stderr)
        sys.exit(3)
    make(options.suite, options.folder, options.scale)


if __name__ == '__main__':
    main()
