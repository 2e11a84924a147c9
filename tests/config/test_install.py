"""The environment that `make` installs into: made anew where it cannot be used, kept where it can."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPT = ROOT / "requirements" / "install.py"


class Clone:
    """A folder with the install script and locks that name one package, made here; the script runs with `python`."""

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


def test_install__nothing_there__makes_and_installs_once(clone: Clone) -> None:
    first = clone.install()

    assert first.returncode == 0, first.stderr
    assert "making .venv" in first.stdout
    assert "installing requirements/base.lock" in first.stdout
    assert clone.python("import tiny_package") == 0
    assert clone.install().stdout == ""


def test_install__dev_after_base__base_is_there_already(clone: Clone) -> None:
    assert clone.install("dev").returncode == 0

    assert clone.install("base").stdout == ""


def test_install__venv_without_pip__made_anew(clone: Clone) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", clone.venv], check=True)

    healed = clone.install()

    assert healed.returncode == 0, healed.stderr
    assert "cannot be used and is made anew" in healed.stdout
    assert clone.python("import tiny_package") == 0


@pytest.mark.parametrize("damage", ["python gone", "folder moved", "half removed"])
def test_install__venv_that_broke__made_anew(clone: Clone, damage: str) -> None:
    assert clone.install().returncode == 0
    if damage == "python gone":
        (clone.venv / "bin" / "python").unlink()
        (clone.venv / "bin" / "python").symlink_to("/nowhere/python3")
    elif damage == "folder moved":
        moved = clone.folder.rename(clone.folder.with_name("moved"))
        clone.folder, clone.venv = moved, moved / ".venv"
        clone.lock("base", clone.wheel_hash)
    else:
        (clone.venv / "bin" / "pip").unlink()

    healed = clone.install()

    assert healed.returncode == 0, healed.stderr
    assert "made anew" in healed.stdout
    assert clone.python("import tiny_package") == 0


def test_install__python_too_old__one_line_that_names_the_oldest(clone: Clone) -> None:
    refused = clone.install(oldest="(9, 9)")

    assert refused.returncode == 1
    assert refused.stdout == ""
    assert refused.stderr.count("\n") == 1
    assert "needs Python 9.9 or later" in refused.stderr
    assert "{}.{}".format(*sys.version_info[:2]) in refused.stderr
    assert not clone.venv.exists()


def test_install__broken_off__taken_up_again(clone: Clone) -> None:
    clone.lock("base", "0" * 64)

    assert clone.install().returncode == 1
    clone.lock("base", clone.wheel_hash)
    assert clone.install().returncode == 0

    assert clone.python("import tiny_package") == 0


def test_install__lock_changed__installed_again(clone: Clone) -> None:
    assert clone.install().returncode == 0
    lock = clone.folder / "requirements" / "base.lock"
    lock.write_text(lock.read_text(encoding="utf-8") + "# a new version\n", encoding="utf-8")

    assert "installing" in clone.install().stdout
    assert clone.install().stdout == ""
