"""Backup and restore of an installation: its configuration from the SQL database, and its request log.

A backup is a folder, or a prefix of object storage, with one file per table of the SQL database, the store's own
archive of the request log, and a manifest. The manifest is written last: a backup without one is incomplete.
"""
