"""`manage.py generate_traffic`: a history of requests for demonstrations and benchmarks, by the million."""
