"""What an installation's hosts know of each other: which one schedules, and which have fallen silent.

`lease` and `schedule` let Celery's beat run on every host while one of them schedules; `hosts` keeps each host's latest
report.

All three are SQL rows: an installation has one SQL database for all hosts, and it keeps what it confirmed. Redis can
lose writes at a failover, and installations may share one or have several.
"""
