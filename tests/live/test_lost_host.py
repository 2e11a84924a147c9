from __future__ import annotations

from pathlib import Path

import psutil
from clickhouse_driver import Client as ClickHouse

from tests.live.conftest import StartService
from tests.live.prompts import Team
from tests.live.service import ROOT
from tests.live.test_backup import ask, done
from tests.services import start_clickhouse
from tests.waiting import wait_until

ANSWERED = 20


def test_host__killed_with_its_records__is_adopted_by_another(start_service: StartService, tmp_path: Path) -> None:
    url_file = tmp_path / "clickhouse.url"
    engine = start_clickhouse(tmp_path / "engine", ROOT / "manage.py", url_file)
    try:
        url = url_file.read_text(encoding="utf-8").strip()
        service = start_service({"CLICKHOUSE_URL": url})
        team = Team(service, "lost")
        store = psutil.Process(engine.pid)
        store.suspend()
        with team.client() as client:
            assert {ask(client, f"session {number}") for number in range(ANSWERED)} == {200}
        children = psutil.Process(service.process.pid).children(recursive=True)
        service.kill_supervisor()
        psutil.wait_procs(children, timeout=60)
        store.resume()
        spool = service.var_dir / "spool"
        wait_until(lambda: not any(child.is_running() for child in children), what="the end of the host")

        other = tmp_path / "other"
        printed = done(other, "ship_records", "--spool", str(spool), CLICKHOUSE_URL=url)

        with ClickHouse.from_url(url) as log:
            [(rows, requests_found)] = log.execute("SELECT count(), uniqExact(request_id) FROM requests")
            [(figures,)] = log.execute("SELECT sum(requests) FROM requests_daily")
        assert printed.strip().endswith("records shipped")
        assert rows == requests_found == figures == ANSWERED
    finally:
        engine.stop()
