"""What the hosts of an installation know of each other: who schedules, and who has fallen silent.

`lease` and `schedule` let Celery's beat run on every host while one of them schedules; `hosts` keeps what each host
reports of itself. All three are rows of the SQL database: every installation has one for all its hosts, and it loses
nothing that it has confirmed. Redis does at a failover, and installations may share one, or have several.
"""
