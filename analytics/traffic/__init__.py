"""The parts of `manage.py generate_traffic`, which writes a history of requests for demonstrations and benchmarks."""
