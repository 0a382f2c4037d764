"""The seed articles' ways to sell a unit, each written as well as it can be: raw SQL and raw Redis, no ORM, no pool.

Part d sets them beside the shop. Their tables are made here, and their keys in the stock Redis; the shop knows neither.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import MySQLdb  # type: ignore[import-untyped]  # mysqlclient ships no types.
from django.conf import settings
from django.db import close_old_connections, connection
from hiredis import pack_command
from MySQLdb.constants import ER  # type: ignore[import-untyped]

from seckill.gate.connection import connection_of_this_thread, raw_client
from seckill.tickets import TicketClaims

FOR_UPDATE, GUARDED, SKIP_LOCKED, WATCH, LUA = "for-update", "guarded", "skip-locked", "watch", "lua"
SQL_WAYS = (FOR_UPDATE, GUARDED, SKIP_LOCKED)
ITEM = 1
UNITS_IN_REDIS = 100_000_000
# A purchase that met another one so often gives up and says so.
WATCH_TRIES_MAX = 200
CHUNK = 5_000

TABLES = (
    "CREATE TABLE IF NOT EXISTS bench_stock (way VARCHAR(16) PRIMARY KEY, units INT UNSIGNED NOT NULL)",
    "CREATE TABLE IF NOT EXISTS bench_unit (item_id INT, unit_no INT, PRIMARY KEY (item_id, unit_no))",
    """CREATE TABLE IF NOT EXISTS bench_order (
        id BIGINT AUTO_INCREMENT PRIMARY KEY, way VARCHAR(16) NOT NULL, order_no VARCHAR(40) NOT NULL,
        buyer_id BIGINT NOT NULL, price DECIMAL(12, 2) NOT NULL, created_at DATETIME(6) NOT NULL,
        UNIQUE KEY (way, order_no), UNIQUE KEY (way, buyer_id))""",
)
ORDER = "INSERT INTO bench_order (way, order_no, buyer_id, price, created_at) VALUES (%s, %s, %s, %s, NOW(6))"

SCRIPT = """
local left = tonumber(redis.call('GET', KEYS[1]))
if redis.call('HEXISTS', KEYS[2], ARGV[1]) == 1 then return 0 end
if left < 1 then return 0 end
redis.call('DECR', KEYS[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
redis.call('XADD', KEYS[3], '*', 'order', ARGV[2], 'buyer', ARGV[1], 'price', ARGV[3])
return 1
"""


@dataclass(frozen=True, kw_only=True)
class Sold:
    """The unit is the buyer's, or it is not: sold out, or he has one."""

    is_sold: bool


def set_up(*, units: int) -> None:
    """Make the tables and the keys, with so many units for each way of MySQL, whose units may be rows."""
    with connection.cursor() as cursor:
        for statement in TABLES:
            cursor.execute(statement)
        for table in ("bench_order", "bench_stock", "bench_unit"):
            cursor.execute(f"DELETE FROM {table}")  # noqa: S608  names from the line above
        cursor.executemany("INSERT INTO bench_stock VALUES (%s, %s)", [(FOR_UPDATE, units), (GUARDED, units)])
        for start in range(0, units, CHUNK):
            rows = [(ITEM, number) for number in range(start, min(units, start + CHUNK))]
            cursor.executemany("INSERT INTO bench_unit VALUES (%s, %s)", rows)
    client = raw_client()
    for way in (WATCH, LUA):
        client.delete(*_keys(way))
        client.set(_keys(way)[0], UNITS_IN_REDIS)


def orders(way: str) -> int:
    """How many units one way has sold so far."""
    if way not in SQL_WAYS:
        return int(raw_client().xlen(_keys(way)[2]))
    close_old_connections()  # The server ends one that was quiet for a minute.
    with connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM bench_order WHERE way = %s", [way])
        return int(cursor.fetchone()[0])


def sell_for_update(claims: TicketClaims) -> Sold:
    """Lock the row of the stock, look, take one and write the order: ``SELECT … FOR UPDATE`` in a transaction."""

    def steps(cursor: Any) -> bool:
        cursor.execute("SELECT units FROM bench_stock WHERE way = %s FOR UPDATE", (FOR_UPDATE,))
        if cursor.fetchone()[0] < 1:
            return False
        cursor.execute("UPDATE bench_stock SET units = units - 1 WHERE way = %s", (FOR_UPDATE,))
        cursor.execute(ORDER, (FOR_UPDATE, claims.order_no, claims.buyer_id, claims.price))
        return True

    return _in_transaction(steps)


def sell_guarded(claims: TicketClaims) -> Sold:
    """Write the order, then take one where there is one: the row is locked as late as can be."""

    def steps(cursor: Any) -> bool:
        cursor.execute(ORDER, (GUARDED, claims.order_no, claims.buyer_id, claims.price))
        cursor.execute("UPDATE bench_stock SET units = units - 1 WHERE way = %s AND units >= 1", (GUARDED,))
        return bool(cursor.rowcount == 1)

    return _in_transaction(steps)


def sell_skip_locked(claims: TicketClaims) -> Sold:
    """Take one row of many, a row for each unit, passing over those that others are taking."""

    def steps(cursor: Any) -> bool:
        cursor.execute("SELECT unit_no FROM bench_unit WHERE item_id = %s LIMIT 1 FOR UPDATE SKIP LOCKED", (ITEM,))
        if (row := cursor.fetchone()) is None:
            return False
        cursor.execute("DELETE FROM bench_unit WHERE item_id = %s AND unit_no = %s", (ITEM, row[0]))
        cursor.execute(ORDER, (SKIP_LOCKED, claims.order_no, claims.buyer_id, claims.price))
        return True

    return _in_transaction(steps)


def sell_watch(claims: TicketClaims) -> Sold:
    """WATCH, look, MULTI … EXEC, and again while others were quicker: two round trips for each try."""
    stock, buyers, queue = _keys(WATCH)
    buyer = str(claims.buyer_id)
    redis = connection_of_this_thread()
    for _ in range(WATCH_TRIES_MAX):
        _, left, is_known = _exchange(redis, ("WATCH", stock, buyers), ("GET", stock), ("HEXISTS", buyers, buyer))
        if int(left) < 1 or is_known:
            _exchange(redis, ("UNWATCH",))
            return Sold(is_sold=False)
        *_, done = _exchange(
            redis,
            ("MULTI",),
            ("DECR", stock),
            ("HSET", buyers, buyer, claims.order_no),
            ("XADD", queue, "*", "order", claims.order_no, "buyer", buyer, "price", claims.price),
            ("EXEC",),
        )
        if done is not None:
            return Sold(is_sold=True)
    return Sold(is_sold=False)


def sell_lua(claims: TicketClaims) -> Sold:
    """The same in one script: one round trip."""
    args = str(claims.buyer_id), claims.order_no, claims.price
    redis = connection_of_this_thread()
    (reply,) = _exchange(redis, ("EVALSHA", _sha(), 3, *_keys(LUA), *args))
    return Sold(is_sold=reply == 1)


WAYS: Mapping[str, Callable[[TicketClaims], Sold]] = {
    FOR_UPDATE: sell_for_update,
    GUARDED: sell_guarded,
    SKIP_LOCKED: sell_skip_locked,
    WATCH: sell_watch,
    LUA: sell_lua,
}


class _Own(threading.local):
    """This thread's database connection, and the name of the script once Redis knows it."""

    database: Any = None
    sha: str = ""


_own = _Own()


def _in_transaction(steps: Callable[[Any], bool]) -> Sold:
    """Run the statements of one purchase; a second order of a buyer is refused by its key."""
    database = _database()
    try:
        is_sold = steps(database.cursor())
    except MySQLdb.IntegrityError as error:
        if error.args[0] != ER.DUP_ENTRY:
            raise
        is_sold = False
    if is_sold:
        database.commit()
    else:
        database.rollback()
    return Sold(is_sold=is_sold)


def _database() -> Any:
    if _own.database is None:
        given = settings.DATABASES["default"]
        _own.database = MySQLdb.connect(
            host=given["HOST"],
            port=int(given["PORT"]),
            user=given["USER"],
            password=given["PASSWORD"],
            database=given["NAME"],
            charset="utf8mb4",
            init_command="SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        )
    return _own.database


def _exchange(redis: Any, *commands: tuple[Any, ...]) -> list[Any]:
    """Send commands at once and read their replies."""
    redis.send_packed_command([pack_command(command) for command in commands], check_health=False)
    return [redis.read_response() for _ in commands]


def _sha() -> str:
    if not _own.sha:
        _own.sha = raw_client().script_load(SCRIPT)
    return _own.sha


def _keys(way: str) -> tuple[str, str, str]:
    return f"bench:{{{way}}}:stock", f"bench:{{{way}}}:buyers", f"bench:{{{way}}}:queue"
