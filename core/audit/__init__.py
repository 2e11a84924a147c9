"""The audit log: who changed what, through the API, the pages or a command of `manage.py`."""
