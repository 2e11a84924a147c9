from __future__ import annotations

from celery.schedules import crontab

from config import env
from config.settings.redis import REDIS_URL
from core.redis.address import Mode, parse
from core.redis.broker import broker, check_broker


def _checked(raw: str) -> str | None:
    check_broker(raw)
    return raw


def _broker_address() -> str:
    given = env.parsed("CELERY_BROKER_URL", _checked, None)
    if given is None and parse(REDIS_URL).mode is Mode.CLUSTER:
        problem = "expected the address of another Redis, because Celery cannot use the cluster of REDIS_URL"
        raise env.InvalidVariable(f"Environment variable CELERY_BROKER_URL: {problem}")
    return given or REDIS_URL


BROKER_REDIS_URL = _broker_address()
_broker = broker(BROKER_REDIS_URL)
# Celery prefers an environment variable CELERY_BROKER_URL to the setting of that name, and cannot read every form of
# it.
CELERY_BROKER_URL = CELERY_BROKER_READ_URL = CELERY_BROKER_WRITE_URL = _broker.url
CELERY_BROKER_TRANSPORT_OPTIONS = _broker.transport_options
CELERY_BROKER_USE_SSL = _broker.use_ssl
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TIMEZONE = "UTC"
CELERY_ENABLE_UTC = True
CELERY_TASK_IGNORE_RESULT = True
# A task whose worker dies is delivered again; tasks are written to be repeatable.
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
# Every host may run beat: one of them schedules.
CELERY_BEAT_SCHEDULER = "config.supervisor.beat:LeasedScheduler"
CELERY_BEAT_SCHEDULE: dict[str, dict[str, object]] = {
    # A task expires before its next run is due: a worker that was away runs the same check once, not many times.
    "evaluate-rollouts": {"task": "rollouts.evaluate", "schedule": 60.0, "options": {"expires": 55}},
    # After midnight UTC, when the records of the day before have arrived.
    "nightly": {"task": "gateway.nightly", "schedule": crontab(hour=2, minute=17)},
    "check-alerts": {"task": "gateway.check_alerts", "schedule": 30.0, "options": {"expires": 25}},
    "finish-deletions": {"task": "analytics.finish_deletions", "schedule": 5.0, "options": {"expires": 4}},
    "score-verdicts": {"task": "gateway.score_verdicts", "schedule": 30.0, "options": {"expires": 25}},
    # A new integration's models are known within a minute; a list is read again every hour.
    "refresh-model-lists": {
        "task": "integrations.refresh_model_lists",
        "schedule": 60.0,
        "options": {"expires": 55},
    },
    # A minute of the request log is sampled when it is complete, and what is due is judged at once.
    "follow-log": {"task": "gateway.follow_log", "schedule": 10.0, "options": {"expires": 9}},
    # A new experiment begins at once; this takes up those whose worker died or that waited for room in the limits.
    "judge": {"task": "gateway.judge", "schedule": 5.0, "options": {"expires": 4}},
    "score-labelled": {"task": "gateway.score_labelled", "schedule": 300.0, "options": {"expires": 290}},
}
