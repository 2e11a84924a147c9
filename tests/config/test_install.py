from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import zipfile
from copy import copy
from pathlib import Path

import pytest

from tests.night import cases

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPT = ROOT / "requirements" / "install.py"


class Clone:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.venv = folder / ".venv"
        requirements = folder / "requirements"
        requirements.mkdir(parents=True)
        (requirements / "install.py").write_text(SCRIPT.read_text(encoding="utf-8"), encoding="utf-8")
        wheel = folder / "tiny_package-1-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("tiny_package.py", "")
            archive.writestr(
                "tiny_package-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-package\nVersion: 1\n"
            )
            archive.writestr(
                "tiny_package-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            )
            archive.writestr("tiny_package-1.dist-info/RECORD", "")
        self.wheel_hash = hashlib.sha256(wheel.read_bytes()).hexdigest()
        for part in ("base", "dev"):
            self.lock(part, self.wheel_hash)

    def lock(self, part: str, wheel_hash: str) -> None:
        line = f"{self.folder.as_uri()}/tiny_package-1-py3-none-any.whl --hash=sha256:{wheel_hash}\n"
        (self.folder / "requirements" / f"{part}.lock").write_text(line, encoding="utf-8")

    def install(self, part: str = "base", *, oldest: str = "(3, 11)") -> subprocess.CompletedProcess[str]:
        """Runs the script as one that takes no Python below `oldest`."""
        code = (
            f"import sys; sys.path.insert(0, 'requirements'); import install; install.OLDEST = {oldest};"
            f" install.main({part!r}, '.venv', chosen=False)"
        )
        return subprocess.run(
            [sys.executable, "-c", code], cwd=self.folder, capture_output=True, text=True, check=False
        )

    def python(self, code: str) -> int:
        return subprocess.run([self.venv / "bin" / "python", "-c", code], check=False, capture_output=True).returncode


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path / "a clone")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Clone, Path, str]:
    clone = Clone(tmp_path_factory.mktemp("made") / "a clone")
    first = clone.install()
    assert first.returncode == 0, first.stderr
    kept = clone.folder.with_name("kept")
    shutil.copytree(clone.folder, kept, symlinks=True)
    return clone, kept, first.stdout


@pytest.fixture
def installed(made: tuple[Clone, Path, str]) -> Clone:
    clone, kept, _ = made
    for folder in (clone.folder, _moved(clone)):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(kept, clone.folder, symlinks=True)
    return clone


def _moved(clone: Clone) -> Path:
    return clone.folder.with_name("moved")


def test_install__nothing_there__makes_and_installs_once(made: tuple[Clone, Path, str], installed: Clone) -> None:
    _, _, printed = made

    assert "making .venv" in printed
    assert "installing requirements/base.lock" in printed
    assert installed.python("import tiny_package") == 0
    assert installed.install().stdout == ""


def test_install__dev_after_base__base_is_there_already(installed: Clone) -> None:
    (installed.venv / ".base.installed").unlink()
    assert "installing requirements/dev.lock" in installed.install("dev").stdout

    assert installed.install("base").stdout == ""


def damage(clone: Clone, kind: str) -> Clone:
    if kind == "without pip":
        # Debian without python3-venv leaves such a one.
        shutil.rmtree(clone.venv)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", clone.venv], check=True)
    elif kind == "python gone":
        (clone.venv / "bin" / "python").unlink()
        (clone.venv / "bin" / "python").symlink_to("/nowhere/python3")
    elif kind == "folder moved":
        moved = copy(clone)
        moved.folder = _moved(clone)
        moved.venv = moved.folder / ".venv"
        clone.folder.rename(moved.folder)
        moved.lock("base", clone.wheel_hash)
        return moved
    else:
        (clone.venv / "bin" / "pip").unlink()
    return clone


@pytest.mark.parametrize(
    "kind", cases(["without pip", "python gone", "folder moved", "half removed"], by_day=["folder moved"])
)
def test_install__venv_that_broke__made_anew(installed: Clone, kind: str) -> None:
    broken = damage(installed, kind)

    healed = broken.install()

    assert healed.returncode == 0, healed.stderr
    assert "cannot be used and is made anew" in healed.stdout
    assert broken.python("import tiny_package") == 0


@pytest.mark.parametrize("kind", ["without pip", "python gone", "folder moved", "half removed"])
def test_working_version__venv_that_broke__none(installed: Clone, kind: str) -> None:
    """The script makes an environment anew when it finds no version in it, as the test above shows."""
    code = "import sys; sys.path.insert(0, 'requirements'); import install; print(install.working_version('.venv'))"

    def version(clone: Clone) -> str:
        return subprocess.run(
            [sys.executable, "-c", code], cwd=clone.folder, capture_output=True, text=True, check=True
        ).stdout.strip()

    assert version(installed) == str(sys.version_info[:2])
    assert version(damage(installed, kind)) == "None"


def test_install__python_too_old__one_line_that_names_the_oldest(clone: Clone) -> None:
    refused = clone.install(oldest="(9, 9)")

    assert refused.returncode == 1
    assert refused.stdout == ""
    assert refused.stderr.count("\n") == 1
    assert "needs Python 9.9 or later" in refused.stderr
    assert "{}.{}".format(*sys.version_info[:2]) in refused.stderr
    assert not clone.venv.exists()


def test_install__broken_off__taken_up_again(installed: Clone) -> None:
    subprocess.run([installed.venv / "bin" / "pip", "uninstall", "-qy", "tiny_package"], check=True)
    (installed.venv / ".base.installed").unlink()
    installed.lock("base", "0" * 64)

    assert installed.install().returncode == 1
    installed.lock("base", installed.wheel_hash)
    assert installed.install().returncode == 0

    assert installed.python("import tiny_package") == 0


def test_install__lock_changed__installed_again(installed: Clone) -> None:
    lock = installed.folder / "requirements" / "base.lock"
    lock.write_text(lock.read_text(encoding="utf-8") + "# a new version\n", encoding="utf-8")

    assert "installing" in installed.install().stdout
    assert installed.install().stdout == ""
