from __future__ import annotations

from config import env
from config.settings.paths import RUN_DIR as RUN_DIR
from config.settings.paths import VAR_DIR as VAR_DIR
from config.settings.redis import EMBEDDED_REDIS_URL as EMBEDDED_REDIS_URL
from config.settings.redis import REDIS_IS_EMBEDDED as REDIS_IS_EMBEDDED
from config.settings.redis import REDIS_PING_SECONDS as REDIS_PING_SECONDS
from config.settings.redis import REDIS_URL as REDIS_URL

HOST = env.text("HOST", "127.0.0.1")
PORT = env.integer("PORT", 8000, minimum=0, maximum=65535)
WEB_WORKERS = env.integer("WEB_WORKERS", 2, minimum=1, maximum=256)
# The niceness of the shipper and the embedded engine. At 10, each gets a tenth of a processor that it shares with one
# busy web worker.
BACKGROUND_NICENESS = env.integer("BACKGROUND_NICENESS", 10, minimum=0, maximum=19)
PUBLIC_URL = env.url("PUBLIC_URL", schemes=("http", "https"))

# The origins of web pages that may call the gateway from a browser; none by default.
CORS_ALLOWED_ORIGINS = env.origins("CORS_ALLOWED_ORIGINS")

SPOOL_DIR = env.path("SPOOL_DIR", VAR_DIR / "spool")
# Records that wait for longer than these seconds are copied to object storage (`s3://bucket/prefix`) too.
SPOOL_COPY = env.text("SPOOL_COPY")
SPOOL_COPY_SECONDS = env.number("SPOOL_COPY_SECONDS", 5.0, minimum=0.2, maximum=3600.0)
SPOOL_SEGMENT_BYTES = env.integer("SPOOL_SEGMENT_BYTES", 64 * 1024 * 1024, minimum=64 * 1024)
# Room for records while the disk is full, in bytes for each process: first a reserve on disk, then memory.
SPOOL_RESERVE_BYTES = env.integer("SPOOL_RESERVE_BYTES", 16 * 1024 * 1024, minimum=0)
SPOOL_QUEUE_BYTES = env.integer("SPOOL_QUEUE_BYTES", 32 * 1024 * 1024, minimum=0)

# Providers on private addresses are refused by default, because a base_url is a way into the internal network.
ALLOW_PRIVATE_UPSTREAMS = env.boolean("ALLOW_PRIVATE_UPSTREAMS", False)
SANDBOX = env.boolean("SANDBOX", True)

UPSTREAM_TRANSPORT = env.choice("UPSTREAM_TRANSPORT", "pool", ("pool", "aiohttp"))
UPSTREAM_CONNECT_SECONDS = env.number("UPSTREAM_CONNECT_SECONDS", 5.0, minimum=0.1, maximum=60)
UPSTREAM_FIRST_BYTE_SECONDS = env.number("UPSTREAM_FIRST_BYTE_SECONDS", 300.0, minimum=0.1, maximum=3600)
# Time limits in seconds: to the first output of a provider's stream, and for a whole request with all its attempts.
UPSTREAM_TTFT_SECONDS = env.number("UPSTREAM_TTFT_SECONDS", 300.0, minimum=0.1, maximum=3600)
UPSTREAM_TOTAL_SECONDS = env.number("UPSTREAM_TOTAL_SECONDS", 3600.0, minimum=0.1, maximum=86400)
UPSTREAM_IDLE_SECONDS = env.number("UPSTREAM_IDLE_SECONDS", 120.0, minimum=0.1, maximum=3600)
UPSTREAM_RESPONSE_BYTES = env.integer("UPSTREAM_RESPONSE_BYTES", 64 * 1024 * 1024, minimum=1024)

# A request may hold 1000 messages of 1 MB each; this setting limits the body as a whole, in bytes.
GATEWAY_BODY_BYTES = env.integer("GATEWAY_BODY_BYTES", 32 * 1024 * 1024, minimum=1024)
# The maximum size of one file in a message, in bytes of the encoded text. Smaller files than a message are not checked.
GATEWAY_INLINE_FILE_BYTES = env.integer("GATEWAY_INLINE_FILE_BYTES", 24 * 1024 * 1024, minimum=1024 * 1024)
GATEWAY_BODY_SECONDS = env.number("GATEWAY_BODY_SECONDS", 30.0, minimum=0.1, maximum=600)
# The largest file, or batch of messages, that a client may send, which is kept on disk while it is checked; the seconds
# that it may take to arrive; and the folder for it, which should not be in memory.
GATEWAY_FILE_BYTES = env.integer("GATEWAY_FILE_BYTES", 512 * 1024 * 1024, minimum=1024)
GATEWAY_FILE_SECONDS = env.number("GATEWAY_FILE_SECONDS", 600.0, minimum=0.1, maximum=86_400)
GATEWAY_FILE_DIR = env.path("GATEWAY_FILE_DIR", VAR_DIR)
# Whether plain requests are answered by plans (`gateway.pipeline.plan`) and not by the pipeline's stages.
GATEWAY_PLANS = env.boolean("GATEWAY_PLANS", True)
HEARTBEAT_SECONDS = env.number("HEARTBEAT_SECONDS", 15.0, minimum=0.05, maximum=60)
DRAIN_SECONDS = env.integer("DRAIN_SECONDS", 30, minimum=0, maximum=3600)
# The seconds that `/readyz` answers 503 before the socket closes; a load balancer's polls have to fall into that time.
PRESTOP_SECONDS = env.integer("PRESTOP_SECONDS", 0, minimum=0, maximum=600)
SNAPSHOT_SECONDS = env.number("SNAPSHOT_SECONDS", 30.0, minimum=0.05, maximum=3600)

# The output tokens to reserve for a request that sets no maximum; the seconds after which a silent worker's
# reservations lapse; and the seconds after its arrival by which any request is in the request log.
LIMITS_OUTPUT_TOKENS = env.integer("LIMITS_OUTPUT_TOKENS", 1024, minimum=1, maximum=1_000_000)
LIMITS_LEASE_SECONDS = env.number("LIMITS_LEASE_SECONDS", 60.0, minimum=0.3, maximum=3600)
# The seconds of traffic for which a worker leases limits ahead; with 0 it asks Redis about each request.
LIMITS_AHEAD_SECONDS = env.number("LIMITS_AHEAD_SECONDS", 0.1, minimum=0, maximum=1)
# The seconds that requests wait for the request log to report earlier spend, where a budget may refuse them for it.
LIMITS_LOG_SECONDS = env.number("LIMITS_LOG_SECONDS", 10.0, minimum=0, maximum=60)
LIMITS_SETTLE_SECONDS = env.number("LIMITS_SETTLE_SECONDS", 600.0, minimum=0.1, maximum=86_400)
# Redis counts as unreachable after this many seconds. A false alarm costs more than one slow answer, because budgets
# then hold for each worker alone.
LIMITS_REDIS_SECONDS = env.number("LIMITS_REDIS_SECONDS", 0.25, minimum=0.01, maximum=60)

CACHE_ANSWER_BYTES = env.integer("CACHE_ANSWER_BYTES", 1024 * 1024, minimum=1024)
# The seconds that a request waits for the cache before it continues without an answer from it.
CACHE_REDIS_SECONDS = env.number("CACHE_REDIS_SECONDS", 0.05, minimum=0.001, maximum=60)

# Time limits of the playground in seconds: for one answer, for each of several, and for a judge's grades.
PLAYGROUND_SECONDS = env.number("PLAYGROUND_SECONDS", 300.0, minimum=0.1, maximum=3600)
COMPARE_SECONDS = env.number("COMPARE_SECONDS", 30.0, minimum=0.1, maximum=3600)
JUDGE_SECONDS = env.number("JUDGE_SECONDS", 30.0, minimum=0.1, maximum=3600)
