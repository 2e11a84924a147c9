"""The rights of the engine's one user: chDB's own grants on one database.

chDB connects as the user `default`, whom its configuration file may restrict like any other ClickHouse user. Without a
grant on a source, a query cannot read a file, connect to another host or write outside the tables.
https://clickhouse.com/docs/operations/settings/settings-users#grants
"""

from __future__ import annotations

import os
from pathlib import Path
from xml.sax.saxutils import escape

from analytics.clickhouse.engine.protocol import quote_identifier

_CONFIG_NAME = "engine_config.xml"
_USERS_NAME = "engine_users.xml"

_ON_THE_DATABASE = (
    "SHOW", "SELECT", "INSERT", "CREATE DATABASE", "CREATE TABLE", "CREATE VIEW", "DROP TABLE", "DROP VIEW", "TRUNCATE",
    "OPTIMIZE", "CHECK", "ALTER TABLE", "ALTER VIEW", "BACKUP",
)  # fmt: skip
# What the names of databases have behind that of the engine's own which are made for a proof and dropped after it.
SCRATCH = "_proof_"
_ON_A_SCRATCH_DATABASE = ("DROP DATABASE",)
# These rights would write or read parts outside the tables.
_NOT_ON_THE_DATABASE = ("ALTER FREEZE PARTITION", "ALTER FETCH PARTITION")
# External tables of a query are temporary ones; the watcher stops queries whose client has left.
_EVERYWHERE = ("CREATE TEMPORARY TABLE", "KILL QUERY")
# Backups go to the one disk that the configuration names, and `statement_rights` lets no other statement name a disk.
_ON_SOURCES = ("READ ON DISK", "WRITE ON DISK")
# These settings name a file to read or write, or another query language, which `statement_rights` cannot read.
_FIXED_SETTINGS = (
    "dialect", "format_schema", "format_schema_source", "format_template_row", "format_template_resultset",
    "input_format_record_errors_file_path", "rename_files_after_processing", "url_base",
)  # fmt: skip
_INDEX_BYTES = "text_index_max_memory_usage_before_flush"
_IDLE = "background_processing_pool_thread_sleep_seconds_if_nothing_to_do"
_NOWHERE = (
    "user_files_path", "user_scripts_path", "format_schema_path", "dictionaries_lib_path",
    "dynamic_user_defined_executable_functions_path",
)  # fmt: skip


def write_configuration(directory: Path, database: str, backups: Path) -> Path:
    backups.mkdir(mode=0o700, parents=True, exist_ok=True)
    users, config = directory / _USERS_NAME, directory / _CONFIG_NAME
    _write(users, _users(database))
    # The folder does not exist, because this engine offers none of the features that these paths are for.
    nowhere = escape(str(directory / "none"))
    paths = "".join(f"<{name}>{nowhere}/</{name}>" for name in _NOWHERE)
    disk = f"<disks><backups><type>local</type><path>{escape(str(backups))}/</path></backups></disks>"
    _write(
        config,
        f"<clickhouse><users_config>{escape(str(users))}</users_config>{paths}"
        f"<storage_configuration>{disk}</storage_configuration>"
        "<backups><allowed_disk>backups</allowed_disk></backups>"
        # The default is 1 GB for the index of one part, which with all else would be more than the engine may use.
        f"<merge_tree><{_INDEX_BYTES}>{256 << 20}</{_INDEX_BYTES}></merge_tree>"
        # A new part makes its table look for merges at once. After that it looks in ever longer pauses, from 0.1 s on.
        f"<{_IDLE}>5</{_IDLE}></clickhouse>\n",
    )
    return config


def _users(database: str) -> str:
    tables, scratch = f"{quote_identifier(database)}.*", f"{quote_identifier(database + SCRATCH)}*.*"
    grants = (
        f"GRANT {', '.join(_ON_THE_DATABASE)} ON {tables}",
        f"REVOKE {', '.join(_NOT_ON_THE_DATABASE)} ON {tables}",
        f"GRANT {', '.join((*_ON_THE_DATABASE, *_ON_A_SCRATCH_DATABASE))} ON {scratch}",
        f"REVOKE {', '.join(_NOT_ON_THE_DATABASE)} ON {scratch}",
        f"GRANT {', '.join(_EVERYWHERE)} ON *.*",
        *(f"GRANT {source}" for source in _ON_SOURCES),
    )
    queries = "".join(f"<query>{escape(grant)}</query>" for grant in grants)
    constraints = "".join(f"<{name}><const/></{name}>" for name in _FIXED_SETTINGS)
    return (
        f"<clickhouse><profiles><default><constraints>{constraints}</constraints></default></profiles>"
        "<quotas><default/></quotas>"
        # chDB asks for no password inside the process, because clients have shown one to `session`.
        "<users><default><password/><networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota>"
        f"<grants>{queries}</grants></default></users></clickhouse>\n"
    )


def _write(file: Path, text: str) -> None:
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    draft.write_text(text, encoding="utf-8")
    draft.chmod(0o600)
    draft.replace(file)
