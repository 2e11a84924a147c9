from __future__ import annotations

from analytics.clickhouse.topology.mode import PATTERN
from config import env
from config.settings.paths import VAR_DIR

# None means the embedded engine: its address is in VAR_DIR/run/clickhouse.url and changes with each restart.
CLICKHOUSE_URL = env.url("CLICKHOUSE_URL", schemes=("clickhouse", "clickhouses"))
CLICKHOUSE_DATABASE = env.text("CLICKHOUSE_DATABASE", "llm")
# Which servers keep the store (analytics/clickhouse/topology/mode.py).
CLICKHOUSE_MODE = env.matching(
    "CLICKHOUSE_MODE",
    "single",
    PATTERN,
    "single, replicated, cloud, or cluster: with the cluster's name behind it",
)
# The operator's word that a mode which nobody has run here was proven on the servers at hand.
ANALYTICS_UNPROVEN = env.boolean("ANALYTICS_UNPROVEN", False)
CLICKHOUSE_QUERY_SECONDS = env.integer("CLICKHOUSE_QUERY_SECONDS", 20, minimum=1, maximum=600)
# A query to a store that shows no sign of life fails after this many seconds; queries to a live store may take longer.
# Half of them are for the sign, which a store that is only slow gives within three or four.
CLICKHOUSE_SILENT_SECONDS = env.number("CLICKHOUSE_SILENT_SECONDS", 8.0, minimum=0.2, maximum=60)
CLICKHOUSE_QUERY_BYTES = env.integer("CLICKHOUSE_QUERY_BYTES", 1_000_000_000, minimum=50_000_000)
CLICKHOUSE_ENGINE_BYTES = env.integer("CLICKHOUSE_ENGINE_BYTES", 1_500_000_000, minimum=200_000_000)

# The folder of ClickHouse's disk `backups`, as this host sees it; None where a server has none that this host sees.
CLICKHOUSE_BACKUP_DIR = env.path("CLICKHOUSE_BACKUP_DIR", None if CLICKHOUSE_URL else VAR_DIR / "backups")

SESSION_LISTING_DELAY_MINUTES = env.integer("SESSION_LISTING_DELAY_MINUTES", 0, minimum=0, maximum=1440)
# A migrator that has not renewed its lease for this many seconds is replaced by another.
MIGRATION_LEASE_SECONDS = env.number("MIGRATION_LEASE_SECONDS", 40.0, minimum=1.0, maximum=600.0)

# The maximum size of a file of items in bytes.
DATASET_FILE_BYTES = env.integer("DATASET_FILE_BYTES", 64 * 1024 * 1024, minimum=1024)
# The maximum size after decompression in bytes; OTLP's own default.
OTLP_BODY_BYTES = env.integer("OTLP_BODY_BYTES", 64 * 1024 * 1024, minimum=1024)
# Span attributes that name a session besides gen_ai.session_id and llm.session_id, such as gen_ai.conversation.id.
OTLP_SESSION_ATTRIBUTES = env.strings("OTLP_SESSION_ATTRIBUTES", [])
# OTLP posts within this many seconds share one insert, because ClickHouse has to merge every insert.
OTLP_WINDOW_SECONDS = env.number("OTLP_WINDOW_SECONDS", 0.25, minimum=0.0, maximum=5.0)
TELEMETRY_RETENTION_DAYS = env.integer("TELEMETRY_RETENTION_DAYS", 30, minimum=1, maximum=3650)

GATEWAY_SPANS = env.boolean("GATEWAY_SPANS", True)

# What may wait for one collector on this host, in bytes, and for how long; the oldest spans are dropped beyond either.
TRACE_EXPORT_BYTES = env.integer("TRACE_EXPORT_BYTES", 256 * 1024 * 1024, minimum=1024 * 1024)
TRACE_EXPORT_HOURS = env.number("TRACE_EXPORT_HOURS", 24.0, minimum=0.1, maximum=720.0)

# Whether `serve` runs an inserter, which inserts the small batches of all hosts together (analytics/shipper/inserting).
INSERTER = env.boolean("INSERTER", False)
