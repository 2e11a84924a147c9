from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.config.test_install import ROOT, Clone


class CachedClone(Clone):
    def __init__(self, folder: Path, cache: Path) -> None:
        super().__init__(folder)
        self.cache = cache
        script = (ROOT / "requirements" / "cache.py").read_text(encoding="utf-8")
        (folder / "requirements" / "cache.py").write_text(script, encoding="utf-8")
        (folder / "key").write_text("1", encoding="utf-8")

    def start(self, *words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "requirements/cache.py", *words]
        environment = {**os.environ, "XDG_CACHE_HOME": str(self.cache)}
        return subprocess.Popen(command, cwd=self.folder, env=environment, text=True, stdout=subprocess.PIPE)

    def run(self, *words: str) -> int:
        started = self.start(*words)
        started.communicate()
        return started.returncode

    def tool(self, *command: str) -> int:
        made = f"echo made >> {self.cache}.made; echo 1 > {{}}/program"
        return self.run("folder", "tool", "key", "--", *(command or ("sh", "-c", made)))

    @property
    def times_made(self) -> int:
        return Path(f"{self.cache}.made").read_text(encoding="utf-8").count("made")

    @property
    def kept(self) -> list[Path]:
        return sorted(path for path in (self.cache / "prompt-gateway").iterdir() if path.is_dir())


@pytest.fixture
def clone(tmp_path: Path) -> CachedClone:
    return CachedClone(tmp_path / "clone", tmp_path / "cache")


@pytest.fixture
def other(tmp_path: Path) -> CachedClone:
    return CachedClone(tmp_path / "another clone", tmp_path / "cache")


def test_folder__two_clones__is_made_once_and_linked_from_both(clone: CachedClone, other: CachedClone) -> None:
    assert (clone.tool(), other.tool(), clone.tool()) == (0, 0, 0)

    assert clone.times_made == 1
    programs = [each.folder / "tool" / "program" for each in (clone, other)]
    assert programs[0].resolve() == programs[1].resolve() == clone.kept[0] / "program"


def test_folder__two_at_once__is_made_once(clone: CachedClone, other: CachedClone) -> None:
    words = ("folder", "tool", "key", "--", "sh", "-c", f"echo made >> {clone.cache}.made; touch {{}}/program")
    started = [each.start(*words) for each in (clone, other, clone, other)]

    assert [each.wait() for each in started] == [0, 0, 0, 0]
    for each in started:
        each.communicate()

    assert clone.times_made == 1


def test_folder__key_changed__is_another_and_the_link_follows(clone: CachedClone) -> None:
    clone.tool()
    (clone.folder / "key").write_text("2", encoding="utf-8")

    assert clone.tool() == 0

    assert (clone.times_made, len(clone.kept)) == (2, 2)
    assert (clone.folder / "tool" / "program").resolve().parent in clone.kept


def test_folder__files_of_the_clone_beside_its_entries__stay(clone: CachedClone) -> None:
    clone.tool()
    (clone.folder / "tool" / "script").write_text("mine", encoding="utf-8")

    clone.tool()

    assert (clone.folder / "tool" / "script").read_text(encoding="utf-8") == "mine"
    assert not (clone.kept[0] / "script").exists()


def test_folder__command_failed__says_so_and_is_made_anew_the_next_time(clone: CachedClone) -> None:
    assert clone.tool("sh", "-c", "touch {}/half; exit 3") == 3
    assert clone.tool() == 0

    assert clone.times_made == 1


def test_room__more_than_the_limit__what_was_used_least_recently_goes(clone: CachedClone) -> None:
    script = clone.folder / "requirements" / "cache.py"
    script.write_text(script.read_text(encoding="utf-8").replace("16 << 30", "1000"), encoding="utf-8")
    days_ago = time.time() - 3 * 24 * 3600
    for number in range(3):
        (clone.folder / "key").write_text(f"old {number}", encoding="utf-8")
        clone.run("folder", "tool", "key", "--", "sh", "-c", "head -c 400 /dev/zero > {}/program")
        made = (clone.folder / "tool" / "program").resolve().parent
        os.utime(made / ".ready", (days_ago + number, days_ago + number))
    old = (clone.folder / "tool" / "program").resolve().parent
    (clone.folder / "key").write_text("new", encoding="utf-8")
    clone.run("folder", "tool", "key", "--", "sh", "-c", "head -c 400 /dev/zero > {}/program")

    assert set(clone.kept) == {old, (clone.folder / "tool" / "program").resolve().parent}


def test_run__command_with_a_folder__finds_it_again_and_its_exit_code_counts(clone: CachedClone) -> None:
    words = ("run", "checker", "key", "--", "sh", "-c")

    assert clone.run(*words, "test ! -e {}/seen && touch {}/seen") == 0
    assert clone.run(*words, "test -e {}/seen || exit 9; exit 4") == 4


def test_root__cache_that_cannot_be_written__is_below_the_clone(clone: CachedClone) -> None:
    clone.cache.write_text("a file", encoding="utf-8")

    assert clone.tool() == 0

    assert (clone.folder / "tool" / "program").resolve().is_relative_to(clone.folder / ".cache")


@pytest.fixture(scope="module")
def stocked_once(tmp_path_factory: pytest.TempPathFactory) -> CachedClone:
    folder = tmp_path_factory.mktemp("stocked") / "place"
    clone = CachedClone(folder / "clone", folder / "cache")
    assert clone.run("venv", "dev", ".venv") == 0
    shutil.copytree(folder, folder.with_name("copy"), symlinks=True)
    return clone


@pytest.fixture
def stocked(stocked_once: CachedClone) -> CachedClone:
    folder = stocked_once.folder.parent
    shutil.rmtree(folder)
    shutil.copytree(folder.with_name("copy"), folder, symlinks=True)
    return stocked_once


def test_venv__base_after_dev__keeps_the_larger_one(stocked: CachedClone) -> None:
    larger = stocked.venv.resolve()

    assert stocked.run("venv", "base", ".venv") == 0

    assert stocked.venv.resolve() == larger and larger in stocked.kept
    assert stocked.python("import tiny_package") == 0


def test_venv__folder_of_an_earlier_version__becomes_a_link(stocked: CachedClone) -> None:
    stocked.venv.unlink()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", stocked.venv], check=True)

    assert stocked.run("venv", "dev", ".venv") == 0

    assert stocked.venv.is_symlink() and stocked.python("import tiny_package") == 0


def test_venv__removed_by_hand__is_made_again(stocked: CachedClone) -> None:
    subprocess.run(["rm", "-r", str(stocked.cache)], check=True)

    assert stocked.run("venv", "base", ".venv") == 0

    assert stocked.python("import tiny_package") == 0
