from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.clients.agents import depot
from tests.clients.agents.brain import AFTER, BEFORE, DONE, FILE, SEARCH, TASK, Turn
from tests.clients.clients import ENVIRONMENTS
from tests.clients.page import snippets_below

NODE = "agents/node_modules"
PROGRAM_SECONDS = 120

_PATH = f"{{folder}}/{FILE}"


@dataclass(frozen=True)
class Program:
    """A coding agent. `title` is its heading in docs/clients.md. The snippets there become files below its home, as
    `settings` numbers them, with `more` appended; a shell's become its environment.

    `package` is its name in the lock file, `file` a pattern of its file below the clients' environments, `words` start
    it (`{task}` is what it has to do), `login` are words that run before, with the key as input. `offline` switches off
    requests to other hosts. `turns` are the model's tool calls before its `answer`; `session` says how requests name
    their session.
    """

    name: str
    title: str
    package: str
    file: str
    words: tuple[str, ...]
    turns: tuple[Turn, ...] = ()
    answer: str = DONE
    settings: Mapping[str, int] = field(default_factory=dict)
    kind: str = ""
    more: str = ""
    login: tuple[str, ...] = ()
    offline: Mapping[str, str] = field(default_factory=dict)
    session: str = "its own"

    def path(self) -> Path:
        """Of several files, returns the last by name, which runs on every processor ("baseline"). Raises
        FileNotFoundError if it is not installed."""
        found = sorted(ENVIRONMENTS.glob(self.file))
        if not found:
            raise FileNotFoundError(f"{self.package} is not installed: there is no {ENVIRONMENTS / self.file}")
        return found[-1]

    def run(self, home: Path, folder: Path, values: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """`values` are the base address, the key and the model that replace the page's."""
        snippets = snippets_below(self.title)
        texts = [_replaced(snippet.source, values) for snippet in snippets]
        environment = {"PATH": _path_variable(), "HOME": str(home), "TMPDIR": str(home / "tmp"), **self.offline}
        environment["GATEWAY_API_KEY"] = values["key"]
        (home / "tmp").mkdir()
        for name, number in self.settings.items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(texts[number] + self.more)
        for snippet, text in zip(snippets, texts, strict=True):
            if snippet.language == "sh":
                environment |= dict(re.findall(r"^export (\w+)=(.*)$", text, re.MULTILINE))
        if self.login:
            _run((str(self.path()), *self.login), folder, environment, values["key"]).check_returncode()
        words = (TASK if word == "{task}" else word for word in self.words)
        return _run((str(self.path()), *words), folder, environment)


def _path_variable() -> str:
    return os.pathsep.join([*map(str, sorted(ENVIRONMENTS.glob(f"{NODE}/node-*/bin"))), os.environ["PATH"]])


def _run(
    words: tuple[str, ...], folder: Path, environment: Mapping[str, str], given: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        cwd=folder,
        env=environment,
        input=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=PROGRAM_SECONDS,
    )


def _replaced(text: str, values: Mapping[str, str]) -> str:
    text = text.replace("http://127.0.0.1:8000", values["url"]).replace("svc_...", values["key"])
    return re.sub(r"(?:gpt-5\.5|claude-sonnet-5|gemini-3-pro)(?=[\"\s]|$)", values["model"], text)


_PATCH = f"*** Begin Patch\n*** Update File: {FILE}\n@@\n-{BEFORE}\n+{AFTER}\n*** End Patch\n"
# Codex offers `apply_patch` for models that it knows. For others its shell understands the command of that name.
_CODEX_TURNS: tuple[Turn, ...] = (
    {"exec_command": {"cmd": f"cat {FILE}"}},
    {"apply_patch": {"input": _PATCH}, "exec_command": {"cmd": f"apply_patch <<'EOF'\n{_PATCH}EOF\n"}},
)
_CODEX = Program(
    "codex",
    "Codex",
    "@openai/codex",
    f"{NODE}/@openai/codex-*/vendor/*/bin/codex",
    ("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "{task}"),
    _CODEX_TURNS,
    settings={".codex/config.toml": 0},
)
_DEPOT = f"""
[mcp_servers.depot]
command = "{sys.executable}"
args = ["-I", "{depot.__file__}"]
"""

_CLAUDE_CODE = Program(
    "claude_code",
    "Claude Code",
    "@anthropic-ai/claude-code",
    f"{NODE}/@anthropic-ai/claude-code-*/claude",
    ("-p", "{task}", "--permission-mode", "acceptEdits"),
    (
        {"Read": {"file_path": _PATH}},
        {"Edit": {"file_path": _PATH, "old_string": BEFORE, "new_string": AFTER}},
    ),
    settings={".claude/settings.json": 0},
    offline={"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"},
)
_CODEX_BY_ADDRESS = replace(
    _CODEX,
    name="codex_by_address",
    kind="by `openai_base_url`",
    settings={".codex/config.toml": 1},
    login=("login", "--with-api-key"),
)
CODEX_COMPACTING = replace(_CODEX_BY_ADDRESS, name="codex_compacting", more="model_auto_compact_token_limit = 1000\n")
"""Codex with a conversation that is too long for it after each turn."""

PROGRAMS = (
    _CLAUDE_CODE,
    _CODEX,
    replace(
        _CODEX,
        name="codex_with_mcp",
        kind="with an MCP server",
        turns=({"mcp__depot__stock": {"item": "greetings"}, SEARCH: {"query": "stock", "limit": 3}}, *_CODEX_TURNS),
        more=_DEPOT,
    ),
    _CODEX_BY_ADDRESS,
    Program(
        "opencode",
        "OpenCode",
        "opencode-ai",
        f"{NODE}/opencode-*/bin/opencode",
        ("run", "{task}"),
        (
            {"read": {"filePath": _PATH}},
            {
                "edit": {"filePath": _PATH, "oldString": BEFORE, "newString": AFTER},
                "apply_patch": {"patchText": _PATCH},
            },
        ),
        settings={".config/opencode/opencode.json": 0},
        offline={"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
    ),
    Program(
        "gemini_cli",
        "Gemini CLI",
        "@google/gemini-cli",
        f"{NODE}/@google/gemini-cli/bundle/gemini.js",
        ("--approval-mode", "yolo", "--skip-trust", "-p", "{task}"),
        (
            {"read_file": {"file_path": _PATH}},
            {"replace": {"file_path": _PATH, "old_string": BEFORE, "new_string": AFTER, "instruction": TASK}},
        ),
        settings={".gemini/settings.json": 1},
        offline={"GEMINI_TELEMETRY_ENABLED": "false"},
        session="a header",
    ),
    Program(
        "qwen_code",
        "qwen-code",
        "@qwen-code/qwen-code",
        f"{NODE}/@qwen-code/qwen-code/cli-entry.js",
        ("--approval-mode", "yolo", "{task}"),
        (
            {"read_file": {"file_path": _PATH}},
            {"edit": {"file_path": _PATH, "old_string": BEFORE, "new_string": AFTER}},
        ),
        settings={".qwen/settings.json": 0},
        offline={"QWEN_USAGE_STATISTICS_ENABLED": "0", "QWEN_TELEMETRY_ENABLED": "0"},
        session="a header",
    ),
    Program(
        "aider",
        "aider",
        "aider-chat",
        "python-aider/bin/aider",
        ("--yes-always", "--no-git", "--message", "{task}", FILE),
        answer=f"{FILE}\n```\n<<<<<<< SEARCH\n{BEFORE}\n=======\n{AFTER}\n>>>>>>> REPLACE\n```\n",
        settings={".aider.conf.yml": 0, ".aider.model.settings.yml": 1},
        offline={
            "AIDER_ANALYTICS": "false",
            "AIDER_CHECK_UPDATE": "false",
            "AIDER_SHOW_MODEL_WARNINGS": "false",
            "AIDER_SHOW_RELEASE_NOTES": "false",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        },
        session="a header",
    ),
)
