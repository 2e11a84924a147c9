from __future__ import annotations

import base64
import hashlib
import shutil
import subprocess
import tarfile
from pathlib import Path

_SECONDS = 240


class PackageError(RuntimeError):
    """Raised when a package cannot be fetched, or is not the one that the suite was written for."""


def fetch(package: str, version: str, sha512: str, folder: Path) -> Path:
    """Returns the archive, put into `folder`. `sha512` is in base 64. Raises PackageError."""
    if shutil.which("npm") is None:
        raise PackageError(f"npm is missing, by which {package} {version} would be fetched: install Node.js")
    run("npm", "pack", "--silent", "--pack-destination", str(folder), f"{package}@{version}")
    archive = max(folder.glob("*.tgz"), key=lambda path: path.stat().st_mtime)
    digest = hashlib.sha512()
    with archive.open("rb") as opened:
        while part := opened.read(1 << 20):
            digest.update(part)
    if base64.b64encode(digest.digest()).decode() != sha512:
        raise PackageError(f"{package}@{version} is not the package that the suite was written for")
    return archive


def extract(archive: Path, target: Path) -> None:
    with tarfile.open(archive) as opened:
        # Python before 3.11.4 has no filter for archives.
        opened.extraction_filter = getattr(tarfile, "data_filter", lambda member, path: member)
        opened.extractall(target)  # noqa: S202 - its hash is known


def run(*command: str) -> None:
    """Raises PackageError with the end of the command's output."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SECONDS)
    if done.returncode:
        raise PackageError(f"{' '.join(command[:2])} failed:\n{done.stderr[-2000:]}")
