import atexit
import gc

from config import env

# Every program of the product imports this package before its settings.
env.report_in_one_line()

from config import json_log  # noqa: E402 - it reads a variable, which may be wrong

if json_log.IS_ON:
    json_log.begin()

# What a process imports lives as long as the process, and objects of a request are freed by reference counting: with
# Python's own thresholds a quarter of a worker's start went into collections that find nothing. The collection when the
# process ends would look at all modules once more, so it gets nothing to look at.
gc.set_threshold(50_000, 20, 50)
atexit.register(gc.freeze)

from config.celery import app as celery_app  # noqa: E402 - the thresholds also hold for the imports

__all__ = ["celery_app"]
