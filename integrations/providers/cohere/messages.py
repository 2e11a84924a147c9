from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from integrations.providers.base import NOTHING, ChatRequest, Media, Needs
from integrations.providers.common.conversation import data_url, tool_reference_text
from integrations.providers.common.parameters import Mapped

_TEXTS = ("application/json", "application/xml", "application/yaml", "application/x-yaml", "application/csv")
_CITATION_FIELDS = ("start", "end", "text", "sources", "content_index", "type")
# Cohere accepts three values of `ImageUrl.detail` (https://docs.cohere.com/reference/chat); OpenAI's `original` is not
# among them.
_DETAILS = ("auto", "low", "high")
_IMAGE_FOLLOWS = "The result is the image that follows."
_SEE_DOCUMENT = "See the document."


def needed_media(request: ChatRequest) -> Needs:
    """Cohere takes the text of documents, so they are fetched here. It fetches images itself."""
    if b'"document_url"' not in request.body and b'"file"' not in request.body:
        return NOTHING
    parts = (part for message in request.fields["messages"] for part in _parts_of(message))
    urls = (_document_url(part) for part in parts)
    addresses = dict.fromkeys(url for url in urls if url[:4].lower() == "http")
    return Needs(media=tuple(addresses)) if addresses else NOTHING


class Messages:
    def __init__(self, mapped: Mapped, media: Mapping[str, Media], *, keep_thinking: bool) -> None:
        self.documents: list[dict[str, Any]] = []
        self._mapped = mapped
        self._media = media
        self._keep_thinking = keep_thinking
        # The images of tool results wait here until the last result is written.
        self._images: list[dict[str, Any]] = []
        self._noted: set[str] = set()

    def translated(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        written: list[dict[str, Any]] = []
        for index, message in enumerate(messages):
            if message["role"] != "tool":
                written += self._held_images()
            made = self._message(message, index)
            if _has_content(made) or index == len(messages) - 1:
                written.append(made)
        return written + self._held_images()

    def _held_images(self) -> list[dict[str, Any]]:
        """A user's message with the images of tool results, which can hold only text and documents."""
        images, self._images = self._images, []
        return [{"role": "user", "content": images}] if images else []

    def _message(self, message: Mapping[str, Any], index: int) -> dict[str, Any]:
        role, place = message["role"], f"messages[{index}]"
        for name in ("name", "is_error"):
            if message.get(name):
                self._note(f"messages.{name}")
        match role:
            case "system" | "developer":
                return {"role": "system", "content": self._texts(message.get("content"), place)}
            case "user":
                return {"role": "user", "content": self._user_content(message.get("content"), place)}
            case "assistant":
                return self._assistant(message, place)
            case "tool":
                content = self._tool_content(message.get("content"), place)
                return {"role": "tool", "tool_call_id": message.get("tool_call_id") or "", "content": content}
        raise self._mapped.refuse("messages", f"{place}: Cohere has no role {role!r}")

    def _texts(self, content: Any, place: str) -> Any:
        if not isinstance(content, list):
            return content or ""
        return [self._text(part, place) for part in content]

    def _text(self, part: Mapping[str, Any], place: str) -> dict[str, Any]:
        if part.get("type") == "tool_reference":
            return {"type": "text", "text": tool_reference_text(part)}
        if part.get("type") not in ("text", "refusal"):
            raise self._mapped.refuse("messages", f"{place}: Cohere takes text only there, not {part.get('type')!r}")
        return {"type": "text", "text": part.get("text") or part.get("refusal") or ""}

    def _user_content(self, content: Any, place: str) -> Any:
        if not isinstance(content, list):
            return content or ""
        parts = []
        for part in content:
            if (image := self._image(part)) is not None:
                parts.append(image)
            elif (document := self._document(part, place)) is not None:
                self.documents.append(document)
            else:
                parts.append(self._text(part, place))
        # A note stands in place of the document, since a message that holds only a document would be empty.
        return parts or ([{"type": "text", "text": _SEE_DOCUMENT}] if content else "")

    def _image(self, part: Mapping[str, Any]) -> dict[str, Any] | None:
        image = _image(part)
        if image is not None and image["image_url"].get("detail", "auto") not in _DETAILS:
            del image["image_url"]["detail"]
            self._note("messages.image_url.detail")
        return image

    def _tool_content(self, content: Any, place: str) -> Any:
        if not isinstance(content, list):
            return content or ""
        parts = []
        for part in content:
            if (image := self._image(part)) is not None:
                self._images.append(image)
            elif part.get("type") == "document":
                parts.append({"type": "document", "document": part.get("document")})  # The part is Cohere's own.
            elif (document := self._document(part, place)) is not None:
                parts.append({"type": "document", "document": document})
            else:
                parts.append(self._text(part, place))
        return parts or [{"type": "text", "text": _IMAGE_FOLLOWS if self._images else ""}]

    def _assistant(self, message: Mapping[str, Any], place: str) -> dict[str, Any]:
        written: dict[str, Any] = {"role": "assistant"}
        calls = [self._call(call, place) for call in message.get("tool_calls") or ()]
        if calls:
            written["tool_calls"] = calls
        content = self._assistant_content(message, place)
        specific = message.get("provider_specific_fields")
        own = specific if isinstance(specific, Mapping) else {}
        plan = message.get("tool_plan") or (_plan(own) if calls else "")
        thinking = _apart(_reasoning(message), plan)
        if thinking and self._keep_thinking:
            content = [{"type": "thinking", "thinking": thinking}, *_as_parts(content)]
        elif thinking and calls:
            # A model without reasoning describes its plan for the tools, which the gateway's answers give as
            # `reasoning_content`.
            plan = plan or thinking
        if plan:
            written["tool_plan"] = plan
        if content is not None or not calls:
            written["content"] = "" if content is None else content
        if citations := _citations(message.get("citations")) or _placed(_citations(own.get("citations"))):
            written["citations"] = citations
        return written

    def _assistant_content(self, message: Mapping[str, Any], place: str) -> Any:
        content = message.get("content")
        if not isinstance(content, list):
            return content or message.get("refusal") or content
        return [
            {"type": "thinking", "thinking": part.get("thinking")}
            if part.get("type") == "thinking"
            else self._text(part, place)
            for part in content
        ]

    def _call(self, call: Mapping[str, Any], place: str) -> dict[str, Any]:
        function = call.get("function")
        if not isinstance(function, Mapping):
            raise self._mapped.refuse("messages", f"{place}.tool_calls: Cohere can call functions only")
        arguments = function.get("arguments") or "{}"
        text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
        return {
            "id": call.get("id") or "",
            "type": "function",
            "function": {"name": function.get("name") or "", "arguments": text},
        }

    def _document(self, part: Mapping[str, Any], place: str) -> dict[str, Any] | None:
        url = _document_url(part)
        if not url:
            return None
        media_type, data = self._loaded(url, place)
        if not media_type.startswith("text/") and media_type not in _TEXTS:
            raise self._mapped.refuse("messages", f"{place}: Cohere takes the text of documents, not {media_type}")
        name = _document_name(part)
        titled = {"title": name} if name else {}
        document: dict[str, Any] = {"data": {**titled, "text": data.decode("utf-8", "replace")}}
        return {"id": name, **document} if name else document

    def _loaded(self, url: str, place: str) -> tuple[str, bytes]:
        if url[:5].lower() == "data:":
            return data_url(url)
        media = self._media.get(url)
        if media is None:
            raise self._mapped.refuse("messages", f"{place}: Cohere takes documents as data URLs or by http address")
        return media.media_type, media.data

    def _note(self, part: str) -> None:
        if part not in self._noted:
            self._noted.add(part)
            self._mapped.drop(part)


def _has_content(message: Mapping[str, Any]) -> bool:
    """Cohere refuses empty messages ("all elements in history must have a message"), except answers."""
    if message["role"] == "tool" or message.get("tool_calls"):
        return True
    content = message["content"]
    if not isinstance(content, list):
        return bool(content)
    return any(part["type"] != "text" or part["text"] for part in content)


def _parts_of(message: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    content = message.get("content")
    if isinstance(content, list):
        yield from content


def _document_url(part: Mapping[str, Any]) -> str:
    if part.get("type") == "document_url":
        holder = part.get("document_url")
        url = holder.get("url") if isinstance(holder, Mapping) else holder
    elif part.get("type") == "file" and isinstance(part.get("file"), Mapping):
        url = part["file"].get("file_data")
    else:
        return ""
    return url if isinstance(url, str) else ""


def _document_name(part: Mapping[str, Any]) -> str:
    file = part.get("file")
    name = file.get("filename") if isinstance(file, Mapping) else part.get("name") or part.get("title")
    return name if isinstance(name, str) else ""


def _image(part: Mapping[str, Any]) -> dict[str, Any] | None:
    if part.get("type") == "image_url":
        image = part.get("image_url")
        if not isinstance(image, Mapping):
            return {"type": "image_url", "image_url": {"url": image}}
        kept = {name: image[name] for name in ("url", "detail") if image.get(name)}
        return {"type": "image_url", "image_url": kept}
    url = _document_url(part)
    return {"type": "image_url", "image_url": {"url": url}} if url[:11].lower() == "data:image/" else None


def _citations(citations: Any) -> list[dict[str, Any]]:
    if not isinstance(citations, list) or not all(isinstance(citation, Mapping) for citation in citations):
        return []
    own = [{name: one[name] for name in _CITATION_FIELDS if name in one} for one in citations]
    return own if all(kept or not one for kept, one in zip(own, citations, strict=True)) else []


def _placed(citations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return citations if all("start" in one and "end" in one for one in citations) else []


def _plan(own: Mapping[str, Any]) -> str:
    plan = own.get("tool_plan")
    return plan if isinstance(plan, str) else ""


def _apart(thinking: str, plan: Any) -> str:
    """The thoughts without the plan, which the gateway's answer appends to them."""
    if not isinstance(plan, str) or not plan or not thinking.endswith(plan):
        return thinking
    return thinking.removesuffix(plan).removesuffix("\n")


def _as_parts(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content or []


def _reasoning(message: Mapping[str, Any]) -> str:
    details = message.get("reasoning_details") or message.get("thinking_blocks")
    if isinstance(details, list) and details:
        own = [detail for detail in details if isinstance(detail, Mapping) and _is_free(detail)]
        return "".join(str(detail.get("text") or "") for detail in own)
    text = message.get("reasoning_content") or message.get("reasoning")
    return text if isinstance(text, str) else ""


def _is_free(detail: Mapping[str, Any]) -> bool:
    return not (detail.get("format") or detail.get("signature") or detail.get("data"))
