"""Many clients use the engine at once. A parameter that reached another client's query would be a leak between
tenants."""

from __future__ import annotations

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

from tests.analytics.engine_process import EngineProcess
from tests.waiting import TIMEOUT_SECONDS

CLIENTS = 16
ROUNDS = 60


def test_parameters__sixteen_clients_at_once__never_meet(engine: EngineProcess) -> None:
    barrier = threading.Barrier(CLIENTS)
    sql = (
        "SELECT {project:UUID}, {text:String}, getSetting('log_comment'), count(),"
        " uniqExact(sipHash64(number, {text:String})) FROM numbers({rows:UInt32}) GROUP BY ALL"
    )

    def ask(number: int) -> int:
        project = uuid.UUID(int=number)
        right = 0
        with engine.client() as client:
            barrier.wait(TIMEOUT_SECONDS)
            for turn in range(ROUNDS):
                text, rows = f"tenant {number} turn {turn} it's \\", 1 + number * 100 + turn
                answer = client.execute(
                    sql, {"project": project, "text": text, "rows": rows}, settings={"log_comment": text}
                )
                right += answer == [(project, text, text, rows, rows)]
        return right

    with ThreadPoolExecutor(CLIENTS) as pool:
        assert list(pool.map(ask, range(CLIENTS))) == [ROUNDS] * CLIENTS


def test_tables__sixteen_clients_write_and_read__see_their_own_rows(engine: EngineProcess) -> None:
    with engine.client() as client:
        client.execute("CREATE TABLE shared (tenant UInt8, turn UInt32, s String) ENGINE = MergeTree ORDER BY tenant")

    def work(tenant: int) -> list[tuple[int, int]]:
        seen = []
        with engine.client() as client:
            mine = "SELECT count(), countIf(NOT startsWith(s, {own:String})) FROM shared WHERE tenant = {tenant:UInt8}"
            for turn in range(10):
                client.execute("INSERT INTO shared VALUES", [(tenant, turn, f"{tenant}/{n}") for n in range(50)])
                seen += client.execute(mine, {"tenant": tenant, "own": f"{tenant}/"})
        return seen

    with ThreadPoolExecutor(CLIENTS) as pool:
        for seen in pool.map(work, range(CLIENTS)):
            assert seen == [(50 * (turn + 1), 0) for turn in range(10)]


def test_hang_ups__among_working_clients__disturb_nobody(engine: EngineProcess) -> None:
    """Clients that leave in the middle of a stream harm neither the engine nor other clients' answers."""

    def leave(number: int) -> None:
        for turn in range(8):
            client = engine.new_client()
            rows = client.execute_iter("SELECT number, toString(number) FROM numbers(10000000)")
            for _ in range(1 + (number * 7 + turn) * 1000 % 70000):
                next(rows)
            client.disconnect()

    def stay(number: int) -> int:
        with engine.client() as client:
            return sum(client.execute("SELECT {n:UInt8}", {"n": number}) == [(number,)] for _ in range(100))

    with ThreadPoolExecutor(8) as pool:
        leaving = [pool.submit(leave, number) for number in range(4)]
        staying = [pool.submit(stay, number) for number in range(4)]
        for future in leaving:
            future.result()
        assert [future.result() for future in staying] == [100] * 4
