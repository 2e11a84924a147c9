"""Unpacks the servers of tests/fleet, as Debian and Ubuntu package them, into a folder: `make servers`.

    python tests/fleet/unpack.py .servers

Nothing is installed and root is not needed: apt downloads from the machine's own package sources, dpkg unpacks. The
libraries are those that apt would install beside the servers on this machine.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

PACKAGES = ("redis-server", "redis-sentinel", "redis-tools", "pgbouncer", "haproxy", "prometheus")
_TOOLS = ("apt-get", "apt-cache", "dpkg")
# apt downloads as the user that runs it, and locks nothing of the machine.
_APT = ("-q", "-o", "APT::Sandbox::User=root", "-o", "Debug::NoLocking=1")


def main() -> int:
    folder = Path(sys.argv[1]).absolute()
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        sys.stderr.write(
            f"{', '.join(missing)} is missing: `make servers` needs Debian or Ubuntu. Elsewhere install"
            f" {', '.join(PACKAGES)} by other means; tests/fleet also finds them in PATH.\n"
        )
        return 1
    packages = folder / "packages"
    packages.mkdir(parents=True, exist_ok=True)
    try:
        _unpack(folder, packages)
    except subprocess.CalledProcessError as error:
        sys.stderr.write(f"{' '.join(map(str, error.cmd))} failed:\n{error.stderr or error.stdout}\n")
        return 1
    return 0


def _unpack(folder: Path, packages: Path) -> None:
    options = [*_APT, *_own_lists(folder)]
    planned = _run(["apt-get", *options, "-s", "--no-install-recommends", "install", *PACKAGES], packages)
    # A plan names what is not installed, as `Inst libjemalloc2 (5.3.0-1 ...)`.
    libraries = {words[1] for line in planned.splitlines() if (words := line.split()) and words[0] == "Inst"}
    wanted = sorted({name for name in libraries if name.startswith("lib")}.union(PACKAGES))
    _run(["apt-get", *options, "download", *wanted], packages)
    for package in sorted(packages.glob("*.deb")):
        _run(["dpkg", "-x", str(package), str(folder)], packages)
    sys.stdout.write(f"unpacked into {folder}: {', '.join(wanted)}\n")


def _own_lists(folder: Path) -> list[str]:
    """Returns options for package lists in `folder`, which are fetched if the machine's lists lack a server."""
    found = _run(["apt-cache", "policy", *PACKAGES], folder)
    if found.count("Candidate: ") - found.count("Candidate: (none)") == len(PACKAGES):
        return []
    lists, cache = folder / "lists", folder / "cache"
    for path in (lists / "partial", cache / "archives" / "partial"):
        path.mkdir(parents=True, exist_ok=True)
    options = ["-o", f"Dir::State::Lists={lists}", "-o", f"Dir::Cache={cache}"]
    _run(["apt-get", *_APT, *options, "update"], folder)
    return options


def _run(command: list[str], folder: Path) -> str:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    sys.exit(main())
