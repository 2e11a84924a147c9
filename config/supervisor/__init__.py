"""`manage.py serve`: the processes of one machine, started, watched and stopped in order."""
