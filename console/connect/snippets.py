from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

QUESTION = "Hello"
# The variable of the shell that stands for a key which the page does not know.
KEY_VARIABLE = "KEY"


@dataclass(frozen=True, slots=True)
class Call:
    """`root` is the address without `/v1`. With an empty `secret` the snippets use $KEY. `prompt` names a managed
    prompt and its label or version."""

    root: str
    model: str
    secret: str = ""
    prompt: str = ""
    variables: Mapping[str, Any] = field(default_factory=dict)

    @property
    def base_url(self) -> str:
        return f"{self.root}/v1"

    @property
    def prompt_fields(self) -> dict[str, Any]:
        if not self.prompt:
            return {}
        return {"prompt_config": self.prompt, **({"prompt_variables": self.variables} if self.variables else {})}

    @property
    def shell_key(self) -> str:
        return shlex.quote(self.secret) if self.secret else f'"${KEY_VARIABLE}"'


@dataclass(frozen=True, slots=True)
class Block:
    label: str
    text: str


@dataclass(frozen=True, slots=True)
class Tab:
    name: str
    label: str
    blocks: tuple[Block, ...]


def tabs_of(call: Call) -> list[Tab]:
    """A call of a managed prompt gets no tabs for coding agents and the environment, which cannot name one."""
    tabs = [_curl(call), _python(call), _typescript(call), _anthropic(call)]
    return tabs if call.prompt else [*tabs, _claude_code(call), _codex(call), _environment(call)]


def _curl(call: Call) -> Tab:
    key = call.secret or f"${KEY_VARIABLE}"
    body = {"model": call.model, **call.prompt_fields, "messages": [{"role": "user", "content": QUESTION}]}
    command = [
        f"curl {shlex.quote(f'{call.base_url}/chat/completions')}",
        f'-H "Authorization: Bearer {key}"',
        "-H 'Content-Type: application/json'",
        f"-d {shlex.quote(json.dumps(body, ensure_ascii=False))}",
    ]
    return Tab("curl", "curl", (Block("In a terminal", " \\\n  ".join(command)),))


def _python(call: Call) -> Tab:
    fields = f"    extra_body={_python_literal(call.prompt_fields)},\n" if call.prompt else ""
    program = (
        f"{_python_imports(call)}from openai import OpenAI\n\n"
        f"client = OpenAI(base_url={_text(call.base_url)}, api_key={_python_key(call)})\n"
        "answer = client.chat.completions.create(\n"
        f"    model={_text(call.model)},\n"
        f'    messages=[{{"role": "user", "content": {_text(QUESTION)}}}],\n{fields})\n'
        "print(answer.choices[0].message.content)\n"
    )
    return Tab("python", "Python", (Block("Install once", "pip install openai"), Block("hello.py", program)))


def _typescript(call: Call) -> Tab:
    fields = "  ...prompt,\n" if call.prompt else ""
    prompt = f"const prompt = {json.dumps(call.prompt_fields, ensure_ascii=False)};\n" if call.prompt else ""
    key = _text(call.secret) if call.secret else f"process.env.{KEY_VARIABLE}"
    program = (
        'import OpenAI from "openai";\n\n'
        f"const client = new OpenAI({{ baseURL: {_text(call.base_url)}, apiKey: {key} }});\n{prompt}"
        "const answer = await client.chat.completions.create({\n"
        f"  model: {_text(call.model)},\n"
        f'  messages: [{{ role: "user", content: {_text(QUESTION)} }}],\n{fields}}});\n'
        "console.log(answer.choices[0].message.content);\n"
    )
    return Tab(
        "typescript",
        "TypeScript",
        (Block("Install once", "npm install openai"), Block("hello.mts (npx tsx hello.mts)", program)),
    )


def _anthropic(call: Call) -> Tab:
    fields = f"    extra_body={_python_literal(call.prompt_fields)},\n" if call.prompt else ""
    program = (
        f"{_python_imports(call)}from anthropic import Anthropic\n\n"
        f"client = Anthropic(base_url={_text(call.root)}, api_key={_python_key(call)})\n"
        "answer = client.messages.create(\n"
        f"    model={_text(call.model)},\n    max_tokens=1000,\n"
        f'    messages=[{{"role": "user", "content": {_text(QUESTION)}}}],\n{fields})\n'
        'print("".join(block.text for block in answer.content if block.type == "text"))\n'
    )
    return Tab(
        "anthropic", "Anthropic SDK", (Block("Install once", "pip install anthropic"), Block("hello.py", program))
    )


def _claude_code(call: Call) -> Tab:
    command = (
        f"export ANTHROPIC_BASE_URL={shlex.quote(call.root)}\n"
        f"export ANTHROPIC_AUTH_TOKEN={call.shell_key}\n"
        f"export ANTHROPIC_MODEL={shlex.quote(call.model)}\n"
        f"export ANTHROPIC_DEFAULT_HAIKU_MODEL={shlex.quote(call.model)}\n"
        f'claude -p "{QUESTION}" --tools ""'
    )
    # Without tools one question is one request: the sandbox calls what it is offered, agents below agents among it.
    blocks = (
        Block("Install once", "npm install -g @anthropic-ai/claude-code"),
        Block("In a terminal; from then on, claude alone", command),
    )
    return Tab("claude-code", "Claude Code", blocks)


def _codex(call: Call) -> Tab:
    fields = (
        'name = "Prompt Gateway"',
        f"base_url = {_text(call.base_url)}",
        'env_key = "GATEWAY_API_KEY"',
        'wire_api = "responses"',
    )
    provider = f"model_providers.gateway={{ {', '.join(fields)} }}"
    command = (
        f"export GATEWAY_API_KEY={call.shell_key}\n"
        f"codex exec --skip-git-repo-check --model {shlex.quote(call.model)} \\\n"
        f"  -c model_provider=gateway -c {shlex.quote(provider)} \\\n"
        f'  "{QUESTION}"'
    )
    lines = (f"model = {_text(call.model)}", 'model_provider = "gateway"', "", "[model_providers.gateway]", *fields)
    blocks = (
        Block("Install once", "npm install -g @openai/codex"),
        Block("In a terminal", command),
        Block("To keep it: ~/.codex/config.toml", "\n".join(lines)),
    )
    return Tab("codex", "Codex", blocks)


def _environment(call: Call) -> Tab:
    lines = [
        f"export OPENAI_BASE_URL={shlex.quote(call.base_url)}",
        f"export OPENAI_API_KEY={call.shell_key}",
        f"export ANTHROPIC_BASE_URL={shlex.quote(call.root)}",
        f"export ANTHROPIC_API_KEY={call.shell_key}",
        f"export GOOGLE_GEMINI_BASE_URL={shlex.quote(call.root)}",
        f"export GEMINI_API_KEY={call.shell_key}",
    ]
    label = "SDKs and frameworks that read their address and key from the environment"
    return Tab("environment", "Environment", (Block(label, "\n".join(lines)),))


def _python_imports(call: Call) -> str:
    return "" if call.secret else "import os\n\n"


def _python_key(call: Call) -> str:
    return _text(call.secret) if call.secret else f'os.environ["{KEY_VARIABLE}"]'


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _python_literal(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_text(name)}: {_python_literal(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_python_literal, value)) + "]"
    return _text(value) if isinstance(value, str) else repr(value)
