"""Environments, clients and servers that are made once for all clones of this project on a machine.

    cache.py venv base|dev LINK [--chosen]      a virtual environment, as install.py makes it
    cache.py folder LINK KEY... -- COMMAND...   what COMMAND makes in the folder `{}`
    cache.py run NAME KEY -- COMMAND...         a command with a folder `{}` that it keeps things in

They live in $XDG_CACHE_HOME/prompt-gateway, or ~/.cache/prompt-gateway, each in a folder whose name has a hash of what
it is made from: a lock file that changes makes another folder. LINK leads there from the clone. Root has /var/cache,
since PostgreSQL runs as a user who cannot enter root's home. Folders that were
used least recently go when all together exceed MAX_BYTES. Two runs at once wait for each other. Any Python from 3.6 on
can run it.
"""

import contextlib
import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import time

import install

MAX_BYTES = 16 << 30
# What somebody may still be using is kept, whatever it weighs.
_KEPT_SECONDS = 24 * 3600
_READY, _LOCK = ".ready", ".lock"


def root() -> str:
    """Returns the folder of all that is kept: below the clone where the user's cache cannot be written."""
    home = "/var/cache" if os.geteuid() == 0 else os.path.join(os.path.expanduser("~"), ".cache")
    base = os.environ.get("XDG_CACHE_HOME") or home
    folder = os.path.join(base, "prompt-gateway")
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError:
        folder = ""
    if not os.access(folder, os.W_OK | os.X_OK):
        folder = os.path.join(os.path.dirname(install.HERE), ".cache")
        os.makedirs(folder, exist_ok=True)
    return folder


def venv(part: str, link: str, chosen: bool) -> None:
    """Has `link` lead to an environment with all that `part` names."""
    current = os.path.basename(os.path.realpath(link))
    # An environment of another Python is kept, unless this one was chosen; and dev holds what base does.
    kept = [name for name in (part, "dev") if current.startswith(_venv_name(name))]
    if kept and not chosen and _is_usable(os.path.realpath(link)):
        _touch(os.path.realpath(link))
        return
    version = install.dotted(sys.version_info[:2])
    folder = os.path.join(root(), f"{_venv_name(part)}-{version}-{_digest([os.path.realpath(sys.executable)])}")
    with _locked(folder):
        install.main(part, folder, chosen)
        _finish(folder)
    _lead(link, folder)


def folder_of(link: str, keys: list, command: list) -> None:
    """Has the entries of `link` lead to those of the folder that the command makes."""
    name = os.path.basename(link).lstrip(".")
    texts = [install.read(key) for key in keys] + command + [platform.machine(), platform.python_version()]
    folder = os.path.join(root(), f"{name}-{_digest(texts)}")
    with _locked(folder):
        if not os.path.exists(os.path.join(folder, _READY)):
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
            code = subprocess.call([word.replace("{}", folder) for word in command])
            if code:
                sys.exit(code)
        _finish(folder)
    _lead_entries(link, folder)


def run(name: str, key: str, command: list) -> None:
    """Runs a command that keeps things in its folder, and ends with its exit code."""
    folder = os.path.join(root(), f"{name}-{_digest([install.read(key)])}")
    with _locked(folder):
        os.makedirs(folder, exist_ok=True)
        code = subprocess.call([word.replace("{}", folder) for word in command])
        # What the command keeps grows: it is counted anew.
        with contextlib.suppress(OSError):
            os.remove(os.path.join(folder, ".size"))
        _finish(folder)
    sys.exit(code)


def _venv_name(part: str) -> str:
    return f"venv-{part}-{_digest([install.digest(part)])}"


def _is_usable(folder: str) -> bool:
    version = install.working_version(folder)
    return version is not None and version >= install.OLDEST and os.path.exists(os.path.join(folder, _READY))


def _digest(texts: list) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


@contextlib.contextmanager
def _locked(folder: str):
    with open(folder + _LOCK, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _finish(folder: str) -> None:
    _touch(folder)
    _make_room(root(), keep=folder)


def _touch(folder: str) -> None:
    with open(os.path.join(folder, _READY), "w"):
        pass


def _make_room(parent: str, keep: str) -> None:
    """Removes the folders that were used least recently, as long as all are larger than MAX_BYTES."""
    folders = {}
    for name in os.listdir(parent):
        path = os.path.join(parent, name)
        if os.path.isdir(path) and path != keep:
            folders[path] = _last_use(path)
    sizes = {path: _size(path) for path in [keep, *folders]}
    for path in sorted(folders, key=lambda each: folders[each]):
        if sum(sizes.values()) <= MAX_BYTES or folders[path] > time.time() - _KEPT_SECONDS:
            return
        shutil.rmtree(path, ignore_errors=True)
        del sizes[path]


def _last_use(folder: str) -> float:
    for name in (_READY, ""):
        try:
            return os.stat(os.path.join(folder, name)).st_mtime
        except OSError:
            continue
    return 0.0


def _size(folder: str) -> int:
    """Returns the bytes of a folder, which stands in it once it has been counted."""
    note = os.path.join(folder, ".size")
    known = install.read(note)
    if known.isdigit():
        return int(known)
    size = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                size += os.lstat(os.path.join(path, name)).st_size
    with contextlib.suppress(OSError), open(note, "w") as file:
        file.write(str(size))
    return size


def _lead(link: str, folder: str) -> None:
    """Has a symbolic link lead to the folder, in place of whatever stood there."""
    if os.path.islink(link) and os.readlink(link) == folder:
        return
    if os.path.isdir(link) and not os.path.islink(link):
        install.say(f"{link} is replaced by a link to {folder}")
        shutil.rmtree(link)
    fresh = f"{link}.{os.getpid()}"
    os.symlink(folder, fresh)
    os.replace(fresh, link)


def _lead_entries(link: str, folder: str) -> None:
    """Has each entry of the folder be in the folder `link` too, which may hold files of the clone beside them."""
    if os.path.islink(link):
        os.remove(link)
    os.makedirs(link, exist_ok=True)
    for name in os.listdir(folder):
        if name not in (_READY, ".size"):
            _lead(os.path.join(link, name), os.path.join(folder, name))


def main(words: list) -> None:
    kind, rest = words[0], words[1:]
    before = rest[: rest.index("--")] if "--" in rest else rest
    command = rest[len(before) + 1 :]
    if kind == "venv":
        venv(rest[0], rest[1], "--chosen" in rest)
    elif kind == "folder":
        folder_of(before[0], before[1:], command)
    else:
        run(before[0], before[1], command)


if __name__ == "__main__":
    main(sys.argv[1:])
