"""An embedded engine that knows a cluster of one server, itself, for what can be run of the modes of several servers.

It has no Keeper: what only Keeper makes possible is taken out of the statements, and the rest runs. So ON CLUSTER and
the replicated engines are not tried by it; Distributed tables, their inserts and subqueries, the cluster's tables of
`system`, both databases of a cluster, and every query over them are.

`python -m tests.analytics.topology.engine` takes the options of `manage.py analytics_engine`.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from xml.sax.saxutils import escape

import django

CLUSTER = "itself"
_PORT = 9000  # Nobody listens there: the server is known by it as itself.

_PATH = re.compile(r"\(('/clickhouse/tables/[^']*', '\{replica\}')(?:, )?")
_RULES = (
    (re.compile(r" ON CLUSTER \w+"), ""),
    (re.compile(r"ENGINE = Replicated\('/clickhouse/databases/[^)]*\)"), "ENGINE = Atomic"),
    (re.compile(r"ENGINE = Replicated(\w*MergeTree)"), r"ENGINE = \1"),
    (_PATH, "("),
    (re.compile(r"(MergeTree)\(\)"), r"\1"),
    (re.compile(r"\breplicated_deduplication_window = (\d+), replicated_deduplication_window_seconds = \d+"),
     r"non_replicated_deduplication_window = \1"),
    (re.compile(r"clusterAllReplicas\('\w+', "), f"clusterAllReplicas('{CLUSTER}', "),
    (re.compile(r"^SYSTEM SYNC .*"), "SELECT 1"),
)  # fmt: skip


def as_run_without_keeper(sql: str) -> str:
    for pattern, by in _RULES:
        sql = pattern.sub(by, sql)
    return sql


def _configuration(directory: Path, database: str, backups: Path) -> Path:
    """Writes a configuration that restricts nothing and names the cluster; there are no backups."""
    users, config = directory / "users.xml", directory / "config.xml"
    users.write_text(
        "<clickhouse><profiles><default/></profiles><quotas><default/></quotas><users><default><password/>"
        "<networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota></default></users></clickhouse>"
    )
    config.write_text(
        f"<clickhouse><users_config>{escape(str(users))}</users_config><tcp_port>{_PORT}</tcp_port>"
        "<macros><shard>1</shard><replica>1</replica></macros>"
        f"<remote_servers><{CLUSTER}><shard><internal_replication>true</internal_replication><replica>"
        f"<host>127.0.0.1</host><port>{_PORT}</port></replica></shard></{CLUSTER}></remote_servers></clickhouse>"
    )
    return config


def _loosen() -> None:
    from analytics.clickhouse.engine import chdb_connection, session
    from analytics.clickhouse.engine.statement_rights import StatementRights

    serve = session.Session._serve_query
    chdb_connection.write_configuration = _configuration  # type: ignore[attr-defined]  # replaced where it is used
    StatementRights.check = lambda self, text: None  # type: ignore[method-assign]
    session.Access.allows = lambda self, database: True  # type: ignore[method-assign]
    session.Session._serve_query = lambda self, query: serve(  # type: ignore[method-assign]
        self, replace(query, text=as_run_without_keeper(query.text))
    )


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.test")
    django.setup()
    _loosen()
    from django.core.management import call_command

    call_command("analytics_engine", *sys.argv[1:])
