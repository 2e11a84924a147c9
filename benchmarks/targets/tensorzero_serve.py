"""Runs inside TensorZero's own environment: the Rust gateway of its wheel, served over HTTP without a database."""

from __future__ import annotations

import signal
import sys

from tensorzero.tensorzero import _start_http_gateway

gateway = _start_http_gateway(
    config_file=sys.argv[1], clickhouse_url=None, postgres_url=None, valkey_url=None, async_setup=False
)
print(f"listening {gateway.base_url}", flush=True)
signal.sigwait({signal.SIGTERM, signal.SIGINT})
