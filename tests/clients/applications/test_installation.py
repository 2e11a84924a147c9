"""The clients of `clients/` install in every way that their pages name, and import from there.

Builds use a copy, since they leave products beside the sources. Only the client is installed, and the TypeScript
compiler, from npm's cache where it has it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from config.version import VERSION
from tests.clients.clients import ROOT
from tests.night import cases

_SECONDS = 300
_BUILT = shutil.ignore_patterns("build", "dist", "node_modules", "*.egg-info", "__pycache__")
_PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet"]
# Builds take the setuptools that is here, and fetch none.
_OFFLINE = ["--no-deps", "--no-index", "--no-build-isolation"]
_NAMES = "import * as client from 'prompt-gateway-client'; console.log(Object.keys(client).join())"


def run(*command: str | Path, at: Path) -> str:
    environment = {**os.environ, "npm_config_prefer_offline": "true", "npm_config_update_notifier": "false"}
    done = subprocess.run(
        command, cwd=at, env=environment, capture_output=True, text=True, check=False, timeout=_SECONDS
    )
    assert done.returncode == 0, f"{command} failed:\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    repository = tmp_path / "repository"
    shutil.copytree(ROOT / "clients", repository / "clients", ignore=_BUILT)
    for name in ("package.json", ".gitignore"):
        shutil.copy(ROOT / name, repository)
    run("git", "init", "--quiet", at=repository)
    run("git", "add", ".", at=repository)
    person = ("-c", "user.name=Ann", "-c", "user.email=ann@example.com")
    run("git", *person, "commit", "--quiet", "--message", "The clients", at=repository)
    return repository


def by_path(sources: Path) -> str:
    return str(sources / "clients" / "python")


def by_git(sources: Path) -> str:
    return f"git+{sources.as_uri()}#subdirectory=clients/python"


def as_wheel(sources: Path) -> str:
    run(*_PIP, "wheel", *_OFFLINE, "--wheel-dir", "wheels", by_path(sources), at=sources)
    (wheel,) = (sources / "wheels").glob("*.whl")
    with zipfile.ZipFile(wheel) as content:
        assert "prompt_gateway_client/py.typed" in content.namelist()
    return str(wheel)


def as_sources(sources: Path) -> str:
    build = "from setuptools.build_meta import build_sdist; build_sdist('packages')"
    project = sources / "clients" / "python"
    run(sys.executable, "-c", build, at=project)
    return str(project / "packages" / f"prompt_gateway_client-{VERSION}.tar.gz")


@pytest.mark.parametrize("way", cases([by_path, by_git, as_wheel, as_sources], by_day=[by_git, as_wheel]))
def test_client_for_python__installed__is_imported(sources: Path, tmp_path: Path, way: Callable[[Path], str]) -> None:
    folder = tmp_path / "application"
    run(*_PIP, "install", *_OFFLINE, "--target", folder, way(sources), at=tmp_path)

    show = f"import sys; sys.path.insert(0, {str(folder)!r}); import prompt_gateway_client as client; "
    found = run(sys.executable, "-I", "-c", show + "print(client.__file__, client.PromptGateway.__name__)", at=tmp_path)

    assert found.split() == [str(folder / "prompt_gateway_client" / "__init__.py"), "PromptGateway"]


def linked(sources: Path) -> str:
    return str(sources / "clients" / "typescript")


def of_repository(sources: Path) -> str:
    return f"git+{sources.as_uri()}"


def packed(sources: Path) -> str:
    run("npm", "pack", "--loglevel=error", "--pack-destination", sources, linked(sources), at=sources)
    tarball = sources / f"prompt-gateway-client-{VERSION}.tgz"
    with tarfile.open(tarball) as content:
        assert {"package/dist/index.js", "package/dist/index.d.ts"} <= set(content.getnames())
    return str(tarball)


@pytest.mark.parametrize("way", cases([linked, of_repository, packed], by_day=[packed]))
def test_client_for_typescript__installed__is_imported(
    sources: Path, tmp_path: Path, way: Callable[[Path], str]
) -> None:
    folder = tmp_path / "application"
    folder.mkdir()
    (folder / "package.json").write_text('{"private": true}')
    run("npm", "install", "--no-audit", "--no-fund", "--loglevel=error", way(sources), at=folder)

    found = run("node", "--input-type=module", "--eval", _NAMES, at=folder)

    assert "PromptGateway" in found.strip().split(",")
