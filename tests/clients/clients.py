"""The clients of the matrix, with the APIs on which each is tried."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# `make clients` installs the clients here, apart from the project's own dependencies.
ENVIRONMENTS = ROOT / ".venv-clients"
SCRIPTS = Path(__file__).parent / "scripts"
NODE_SCRIPTS = Path(__file__).parent / "node"

ANSWERS = ("whole", "streamed", "structured")
REFUSALS = ("bad_key", "unknown_model", "bad_field")
CASES = (*ANSWERS, "tools", *REFUSALS)


@dataclass(frozen=True)
class Client:
    """A client: `environment` is the folder it is installed in, `variants` the names of its classes or APIs.

    `bad_field` is the field that its script gives a value out of bounds. `errors` are the ends of the names of the
    classes that it raises for a wrong key, an unknown model and that field.
    """

    name: str
    environment: str
    variants: tuple[str, ...]
    cases: tuple[str, ...] = CASES
    shows_usage: bool = True
    bad_field: str = "temperature"
    errors: tuple[str, str, str] = ("AuthenticationError", "NotFoundError", "BadRequestError")

    @property
    def command(self) -> list[str]:
        folder = ENVIRONMENTS / self.environment
        if self.environment == "node":
            return ["node", str(folder / f"with_{self.name.removeprefix('node_')}.mjs")]
        return [str(folder / "bin" / "python"), str(SCRIPTS / f"with_{self.name}.py")]


CLIENTS = (
    Client("openai", "python", ("chat", "responses")),
    Client("anthropic", "python", ("messages",)),
    Client("openai_agents", "python", ("responses",)),
    Client(
        "pydantic_ai",
        "python",
        ("responses", "chat", "messages"),
        errors=("ModelAuthenticationError", "ModelNotFoundError", "ModelRequestRejectedError"),
    ),
    Client(
        "langchain",
        "python",
        ("chat", "responses", "messages"),
        errors=("AuthenticationError", "ModelNotFoundError", "InvalidRequestError"),
    ),
    Client("llama_index", "python-openai-2", ("chat", "responses"), shows_usage=False),
    Client("litellm", "python-openai-2", ("chat", "responses", "messages")),
    Client(
        "instructor",
        "python-openai-2",
        ("tools", "json_schema", "responses_tools"),
        # Its one way of answering is a structured value, and its modes decide how it asks for it.
        cases=("streamed", "structured", *REFUSALS),
        shows_usage=False,
        errors=("InstructorRetryException",) * 3,
    ),
    Client("node_openai", "node", ("chat", "responses")),
    Client("node_anthropic", "node", ("messages",)),
    Client(
        "node_ai_sdk", "node", ("responses", "compatible", "messages"), errors=("APICallError",) * 3, bad_field="top_p"
    ),
)
