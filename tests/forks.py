"""Python processes of the suite that are forked from one that has imported the product, instead of started anew.

`begin` forks that process; `subprocess.Popen` then asks it for what would otherwise start `manage.py`, the seeder or
uvicorn with this Python: 0.01 seconds of CPU instead of 1.5. The child reads its settings anew, from its own
environment. `serve` and `demo` start anew, since tests look at how they start. FORKS=0 starts everything anew.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
# Commands whose start is what tests look at, that tests find by their command line, or that have an app of their own.
_ANEW = frozenset({"serve", "demo", "ship_records", "celery_worker", "runserver"})
_MODULES = frozenset({"uvicorn", "tests.analytics.upgrades", "tests.gateway.seed"})
# These modules read the environment or settings while they are imported, or name classes of those that do: each child
# imports them itself.
_READ_AT_IMPORT = (
    "agent.routing",
    "config.asgi",
    "config.json_log",
    "config.web.websockets",
    "gateway.consumers",
    "gateway.routing",
)
_STANDARD_STREAMS = 3

_lock = threading.Lock()
# The connection to the process that forks, once there is one.
_channels: list[socket.socket] = []


class Popen(subprocess.Popen):  # type: ignore[type-arg]
    """A child of this process, like any other, that was forked where possible."""

    def _execute_child(self, args, executable, preexec_fn, close_fds, pass_fds, cwd, env, *rest):  # type: ignore[no-untyped-def]
        _startup, _flags, shell, *pipes = rest[:9]
        _restore, gid, gids, uid, umask, session, group = rest[9:16]
        words = [os.fsdecode(word) for word in args] if isinstance(args, list | tuple) else []
        special = executable or shell or pass_fds or gid or gids or uid or umask != -1 or group != -1
        dies = getattr(preexec_fn, "__name__", "") == "_die_with_parent"
        if special or (preexec_fn and not dies) or not _is_forked(words):
            super()._execute_child(args, executable, preexec_fn, close_fds, pass_fds, cwd, env, *rest)  # type: ignore[misc]
            return
        ours = (pipes[0], pipes[3], pipes[5])
        streams = [given if given != -1 else number for number, given in enumerate(ours)]
        wanted = {
            "words": words[1:],
            "cwd": os.fspath(cwd) if cwd else os.getcwd(),
            "environment": {
                os.fsdecode(key): os.fsdecode(value) for key, value in (os.environ if env is None else env).items()
            },
            "session": bool(session),
            "dies": dies,
        }
        self.pid = _ask(wanted, streams)
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]


def begin(prepare: Callable[[], object]) -> None:
    """Forks from this process as it is now: before it has connections, threads or patches.

    The process that forks runs `prepare`, and ends with this one.
    """
    if os.environ.get("FORKS") == "0" or sys.platform != "linux":
        return
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        ours.close()
        for channel in _channels:
            channel.close()
        prepare()
        _serve(theirs)
    theirs.close()
    _channels[:] = [ours]
    subprocess.Popen = Popen  # type: ignore[misc]
    atexit.register(end)


def end() -> None:
    while _channels:
        _channels.pop().close()


def become(environment: dict[str, str]) -> None:
    """Gives this process the settings of another environment, in the object that all modules hold."""
    os.environ.clear()
    os.environ.update(environment)
    _forget_what_was_read()
    _read_settings()


def _forget_what_was_read() -> None:
    for name in [*sys.modules]:
        if name in _READ_AT_IMPORT or f"{name}.".startswith("config.settings."):
            del sys.modules[name]
            package, _, last = name.rpartition(".")
            # `from package import module` looks for the attribute first.
            if package in sys.modules:
                vars(sys.modules[package]).pop(last, None)


def _is_forked(words: list[str]) -> bool:
    if not _channels or len(words) < 3 or words[0] != sys.executable:
        return False
    if words[1] == "-m":
        return words[2] in _MODULES
    return Path(words[1]).name == "manage.py" and words[2] not in _ANEW


def _ask(wanted: dict[str, Any], streams: list[int]) -> int:
    prctl = ctypes.CDLL(None).prctl
    with _lock:
        channel = _channels[0]
        # The child's own parent ends at once, and this process inherits the child.
        prctl(_PR_SET_CHILD_SUBREAPER, 1)
        try:
            content = json.dumps({**wanted, "parent": os.getpid()}).encode()
            socket.send_fds(channel, [len(content).to_bytes(8, "big")], streams)
            channel.sendall(content)
            answer = channel.recv(64)
        finally:
            prctl(_PR_SET_CHILD_SUBREAPER, 0)
    if not answer:
        raise ChildProcessError("the process that forks has ended")
    return int(answer)


def _serve(channel: socket.socket) -> NoReturn:
    code = 1
    try:
        # Ctrl-C is for pytest, which closes the channel.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.closerange(_STANDARD_STREAMS, channel.fileno())
        os.closerange(channel.fileno() + 1, 1 << 16)
        gc.freeze()
        while _fork_one(channel):
            pass
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _fork_one(channel: socket.socket) -> bool:
    head, streams, _, _ = socket.recv_fds(channel, 8, _STANDARD_STREAMS)
    if not head:
        return False
    length, content = int.from_bytes(head, "big"), b""
    while len(content) < length:
        content += channel.recv(length - len(content))
    reader, writer = os.pipe()
    between = os.fork()
    if between == 0:
        child = os.fork()
        if child == 0:
            channel.close()
            os.close(reader)
            _live(json.loads(content), streams, writer)
        os.write(writer, str(child).encode())
        os._exit(0)
    os.waitpid(between, 0)
    os.close(writer)
    channel.sendall(os.read(reader, 64))
    os.close(reader)
    for stream in streams:
        os.close(stream)
    return True


def _live(wanted: dict[str, Any], streams: list[int], writer: int) -> NoReturn:
    while os.getppid() != wanted["parent"]:
        time.sleep(0.0005)
    os.close(writer)
    _take_streams(streams)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if wanted["session"]:
        os.setsid()
    if wanted["dies"]:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    code = 1
    try:
        _run(wanted)
        code = 0
    except SystemExit as error:
        code = _exit_code(error)
    except BaseException:
        # What the product has set to report errors is asked first, as by the interpreter.
        sys.excepthook(*sys.exc_info())
    finally:
        with suppress(BaseException):
            threading._shutdown()  # type: ignore[attr-defined]
        with suppress(BaseException):
            atexit._run_exitfuncs()
        with suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _take_streams(streams: list[int]) -> None:
    # A stream that arrived as 0, 1 or 2 is moved first, so that none is written over before it is copied.
    high = [os.dup(stream) if stream < _STANDARD_STREAMS else stream for stream in streams]
    for number, stream in enumerate(high):
        os.dup2(stream, number)
    os.closerange(_STANDARD_STREAMS, 1 << 16)
    for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115 - they are open until the process ends
        setattr(sys, f"__{name}__", getattr(sys, name))
    sys.stdout.reconfigure(line_buffering=os.isatty(1))  # type: ignore[union-attr]
    sys.stderr.reconfigure(write_through=True)  # type: ignore[union-attr]


def _exit_code(error: SystemExit) -> int:
    if error.code is None or isinstance(error.code, int):
        return error.code or 0
    sys.stderr.write(f"{error.code}\n")
    return 1


def _run(wanted: dict[str, Any]) -> None:
    import config

    # What pytest had set up for itself is not the child's.
    atexit._clear()
    sys.excepthook = sys.__excepthook__
    threading.excepthook = threading.__excepthook__
    warnings.resetwarnings()
    os.chdir(wanted["cwd"])
    words = wanted["words"]
    sys.argv = words[1:] if words[0] == "-m" else words
    environment = {"DJANGO_SETTINGS_MODULE": "config.settings.base", **wanted["environment"]}
    os.environ.clear()
    os.environ.update(environment)
    _forget_what_was_read()
    # The package sets up the log and the report of wrong variables by the environment.
    importlib.reload(config)
    _read_settings()
    time.tzset()
    _filter_warnings(environment.get("PYTHONWARNINGS", ""))
    if words[0] == "-m":
        # The application that uvicorn is given may hold what one of those made.
        sys.modules.pop(words[2].partition(":")[0] if len(words) > 2 else "", None)
        sys.path.insert(0, wanted["cwd"])
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        return
    sys.path.insert(0, str(Path(words[0]).resolve().parent))
    from django.core.management import execute_from_command_line

    execute_from_command_line(words)


def _filter_warnings(asked: str) -> None:
    for category in (ResourceWarning, ImportWarning, PendingDeprecationWarning, DeprecationWarning):
        warnings.simplefilter("ignore", category)
    warnings.filterwarnings("default", category=DeprecationWarning, module="__main__")
    if asked:
        warnings._processoptions(asked.split(","))  # type: ignore[attr-defined]


def _read_settings() -> None:
    from django.conf import Settings, settings
    from django.core.cache import caches
    from django.core.signals import setting_changed
    from django.db import connections
    from django.utils.log import configure_logging

    from config import env
    from config.celery import app

    env._given.clear()
    fresh = Settings(os.environ["DJANGO_SETTINGS_MODULE"])
    for name in filter(str.isupper, dir(fresh)):
        value = getattr(fresh, name)
        # What apps have added to the settings while they were loaded stays.
        if value != getattr(settings, name, None):
            setattr(settings, name, value)
            if name not in ("DATABASES", "CACHES"):
                setting_changed.send(sender=Settings, setting=name, value=value, enter=True)
    configure_logging(settings.LOGGING_CONFIG, settings.LOGGING)
    handlers: tuple[Any, ...] = (connections, caches)
    for handler in handlers:
        for alias in [alias for alias in handler if hasattr(handler._connections, alias)]:
            del handler[alias]
        handler.__dict__.pop("settings", None)
        handler._settings = None
    app.config_from_object("django.conf:settings", namespace="CELERY")
