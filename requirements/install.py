"""Installs what serving or developing needs into a virtual environment that it makes itself.

    python3 requirements/install.py server|base|dev FOLDER [--chosen]

`server` is what a host with servers of its own needs; `base` is what `make serve` and `make demo` need, with the stores
that they start; `dev` has all of it and what the tests and checks need. The environment is made where there is none,
and made anew where it cannot be used: it lacks pip (Debian without python3-venv leaves such a one), its Python is gone
or too old, the folder was moved, or, with --chosen, it has another version than the Python that runs this. Any Python
from 3.6 on can run it, so that one line says which Python is too old.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from subprocess import DEVNULL, PIPE

OLDEST = (3, 11)
HERE = os.path.dirname(os.path.abspath(__file__))
# What is there once a part is installed: dev.lock is compiled against base.lock and repeats it.
CONTAINED = {"server": ["server"], "base": ["base"], "dev": ["base", "dev"]}


def main(part: str, folder: str, chosen: bool) -> None:
    """Leaves `folder` with everything that `part` names, or ends the process with a sentence that says why not."""
    version = working_version(folder)
    if version is None or version < OLDEST or (chosen and version != sys.version_info[:2]):
        make(folder)
    if read(stamp(folder, part)) != digest(part):
        install(part, folder)


def working_version(folder: str):
    """Returns the version of the environment's Python, as (3, 11), or None where the environment cannot be used."""
    question = "import pip, sys; print(*sys.version_info[:2])"
    try:
        answer = subprocess.run([python(folder), "-c", question], check=True, stdout=PIPE, stderr=DEVNULL)
    except (OSError, subprocess.CalledProcessError):
        return None
    # Programs such as bin/pip name their Python by its whole path, and stop working when the folder moves.
    program = read(os.path.join(folder, "bin", "pip"))
    if os.path.realpath(folder) not in program and os.path.abspath(folder) not in program:
        return None
    return tuple(int(part) for part in answer.stdout.split())


def make(folder: str) -> None:
    """Makes the environment anew, with the Python that runs this."""
    if sys.version_info < OLDEST:
        newer = next(filter(runs, [f"python3.{minor}" for minor in range(19, 10, -1)]), "/path/to/python3.11")
        sys.exit(
            f"Prompt Gateway needs Python {dotted(OLDEST)} or later, and {sys.executable} is"
            f" {dotted(sys.version_info[:3])}: add PYTHON={newer} to the command."
        )
    if os.path.isdir(folder):
        say(f"{folder} cannot be used and is made anew")
        shutil.rmtree(os.path.realpath(folder))
    say(f"making {folder} with Python {dotted(sys.version_info[:3])}")
    made = subprocess.run([sys.executable, "-m", "venv", folder], stdout=PIPE, stderr=subprocess.STDOUT)
    if made.returncode:
        # Debian's advice, which names the package to install.
        sys.exit(made.stdout.decode(errors="replace").strip())


def install(part: str, folder: str) -> None:
    """Installs the lock of `part`. What was not finished has no stamp, and is taken up again by the next call."""
    lock = os.path.join(HERE, part + ".lock")
    say(f"installing {os.path.relpath(lock)} into {folder}, which takes a minute or more the first time")
    command = [python(folder), "-m", "pip", "install", "--disable-pip-version-check", "--no-deps", "--require-hashes"]
    if subprocess.run([*command, "-r", lock]).returncode:
        sys.exit("The packages could not be installed, for the reason above; the next call goes on from here.")
    for contained in CONTAINED[part]:
        with open(stamp(folder, contained), "w") as file:
            file.write(digest(contained))


def runs(program: str) -> bool:
    """Tells whether the program is there and starts: a version manager has names on PATH that only print advice."""
    return (
        bool(shutil.which(program))
        and not subprocess.run([program, "-c", ""], stdout=DEVNULL, stderr=DEVNULL).returncode
    )


def python(folder: str) -> str:
    return os.path.join(folder, "bin", "python")


def stamp(folder: str, part: str) -> str:
    return os.path.join(folder, f".{part}.installed")


def digest(part: str) -> str:
    return hashlib.sha256(read(os.path.join(HERE, part + ".lock")).encode()).hexdigest()


def read(path: str) -> str:
    """Returns the file's text; none where there is no file."""
    try:
        with open(path, errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def dotted(version: tuple) -> str:
    return ".".join(str(part) for part in version)


def say(what: str) -> None:
    print(f"Prompt Gateway: {what}.", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], chosen="--chosen" in sys.argv[3:])
