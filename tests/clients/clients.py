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
TOOLS = ("tools", "tools_streamed")
CASES = (*ANSWERS, *TOOLS, *REFUSALS)
# The case of two turns with a model that reasons, for variants that show its reasoning.
TURNS = "turns"
# The cases of variants that have no tools and no schemas.
OTHER_CASES = {
    "completions": ("whole", "streamed", *REFUSALS),
    "embeddings": ("embedded", "bad_key", "unknown_model"),
    "models": ("listed", "bad_key", "unknown_model"),
}


@dataclass(frozen=True)
class Client:
    """`environment` is the folder it is installed in, `variants` the names of its classes or APIs, `reasoning` those
    that show a model's reasoning, `title` its heading in docs/clients.md.

    `bad_field` is the field to which its script gives a value out of bounds. `errors` are the ends of the names of the
    classes that it raises for a wrong key, an unknown model and that field.
    """

    name: str
    title: str
    environment: str
    variants: tuple[str, ...]
    cases: tuple[str, ...] = CASES
    reasoning: tuple[str, ...] = ()
    shows_usage: bool = True
    bad_field: str = "temperature"
    errors: tuple[str, str, str] = ("AuthenticationError", "NotFoundError", "BadRequestError")

    def cases_of(self, variant: str) -> tuple[str, ...]:
        own = OTHER_CASES.get(variant, self.cases)
        return (*own, TURNS) if variant in self.reasoning else own

    @property
    def command(self) -> list[str]:
        folder = ENVIRONMENTS / self.environment
        if self.environment == "node":
            return ["node", str(folder / f"with_{self.name.removeprefix('node_')}.mjs")]
        return [str(folder / "bin" / "python"), str(SCRIPTS / f"with_{self.name}.py")]


CLIENTS = (
    Client(
        "openai",
        "OpenAI SDK for Python",
        "python",
        ("chat", "responses", "completions", "embeddings", "models"),
        reasoning=("responses",),
    ),
    Client("anthropic", "Anthropic SDK for Python", "python", ("messages", "models"), reasoning=("messages",)),
    Client("openai_agents", "OpenAI Agents SDK", "python", ("responses",), reasoning=("responses",)),
    Client(
        "pydantic_ai",
        "Pydantic AI",
        "python",
        ("responses", "chat", "messages"),
        reasoning=("responses", "chat", "messages"),
        errors=("ModelAuthenticationError", "ModelNotFoundError", "ModelRequestRejectedError"),
    ),
    Client(
        "langchain",
        "LangChain",
        "python",
        ("chat", "responses", "messages", "embeddings"),
        reasoning=("responses", "messages"),
        errors=("AuthenticationError", "NotFoundError", "InvalidRequestError"),
    ),
    Client(
        "llama_index",
        "LlamaIndex",
        "python-openai-2",
        ("chat", "responses", "completions", "embeddings"),
        shows_usage=False,
    ),
    Client("litellm", "LiteLLM", "python-openai-2", ("chat", "responses", "messages", "embeddings")),
    Client(
        "instructor",
        "instructor",
        "python-openai-2",
        ("tools", "json_schema", "responses_tools"),
        # Its one way of answering is a structured value, and its modes decide how it asks for it.
        cases=("streamed", "structured", *REFUSALS),
        shows_usage=False,
        errors=("InstructorRetryException",) * 3,
    ),
    Client("node_openai", "OpenAI SDK for Node.js", "node", ("chat", "responses", "embeddings", "models")),
    Client("node_anthropic", "Anthropic SDK for Node.js", "node", ("messages", "models")),
    Client(
        "node_ai_sdk",
        "AI SDK",
        "node",
        ("responses", "compatible", "messages", "embeddings"),
        reasoning=("responses", "compatible", "messages"),
        errors=("APICallError",) * 3,
        bad_field="top_p",
    ),
)
