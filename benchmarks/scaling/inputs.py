from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from benchmarks.scaling.figures import Numbers


class Mix(Numbers, frozen=True, kw_only=True):
    streams: Annotated[float, Meta(description="share that is streamed")] = 0.5
    chunks: Annotated[float, Meta(description="of a stream")] = 100.0
    chunk_bytes: Annotated[float, Meta(description="of a chunk, on its way to the client")] = 250.0
    seconds: Annotated[float, Meta(description="from arrival to the end of the answer, in the mean")] = 5.0
    request_bytes: Annotated[float, Meta(description="of a request")] = 4096.0
    answer_bytes: Annotated[float, Meta(description="of an answer, and of a stream once it is put together")] = 1536.0
    prompts: Annotated[float, Meta(description="share with a managed prompt under a rollout")] = 0.5
    limits: Annotated[float, Meta(description="share with all limits of project, session, key and end user")] = 1.0
    sessions: Annotated[float, Meta(description="share in sessions that have a budget")] = 0.0
    session_requests: Annotated[float, Meta(description="of a session")] = 6.0
    texts: Annotated[float, Meta(description="share whose texts are kept")] = 1.0
    retention_days: Annotated[float, Meta(description="for which a request is kept")] = 30.0
    mean: Annotated[float, Meta(description="the month's rate, as a share of the busiest minute's")] = 0.4
    largest_project: Annotated[float, Meta(description="share of the requests")] = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("streams", "prompts", "limits", "sessions", "texts", "mean", "largest_project"):
            if getattr(self, name) > 1:
                raise ValueError(f"{name} is a share, from 0 to 1, not {getattr(self, name)}")
        if not (self.session_requests >= 1 and self.retention_days >= 1 and self.mean > 0):
            raise ValueError("session_requests and retention_days have to be at least 1, and mean above 0")


class Shape(Numbers, frozen=True, kw_only=True):
    workers: Annotated[int, Meta(description="of a web host, each with a core")] = 2
    max_hosts: Annotated[int, Meta(description="web hosts of an installation")] = 300
    connections: Annotated[int, Meta(description="answers under way of a worker: half of `WEB_CONNECTIONS`")] = 2048
    web_share: Annotated[float, Meta(description="of a web host's CPU that may be used")] = 0.7
    store_share: Annotated[float, Meta(description="of a store's CPU that may be used")] = 0.5
    machine_cores: Annotated[int, Meta(description="of one machine that runs everything")] = 4
    shard_cores: Annotated[int, Meta(description="of a ClickHouse server at most")] = 16
    shard_gb: Annotated[float, Meta(description="disk of a ClickHouse server, of which a fifth stays free")] = 8000.0
    replicas: Annotated[int, Meta(description="of a shard")] = 2
    redis_gb: Annotated[float, Meta(description="data of a Redis server, which has twice the memory")] = 32.0
    postgresql_cores: Annotated[int, Meta(description="of the PostgreSQL server at most")] = 16
    transaction_seconds: Annotated[float, Meta(description="for which PgBouncer lends a connection")] = 0.005

    def __post_init__(self) -> None:
        super().__post_init__()
        if not all(getattr(self, name) > 0 for name in self.__struct_fields__):
            raise ValueError("everything about servers has to be above 0")
        if max(self.web_share, self.store_share) > 1:
            raise ValueError("web_share and store_share are shares, from 0 to 1")
