from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from rest_framework import serializers

from core.wire.fields import NumberField
from core.wire.serializers import BodySerializer, RowSerializer, StrictSerializer
from core.wire.shown import shown, shown_as
from prompts import shapes
from prompts.content.checks import Draft, DraftCheck
from prompts.content.messages import MAX_MESSAGES
from prompts.content.version import MAX_TEMPERATURE, MAX_TOKENS, VersionContent, check_content
from prompts.diff.contents import Change, VersionDiff
from prompts.errors import InvalidVersionError
from prompts.labels import name_problem
from prompts.models import (
    COMMIT_MESSAGE_CHARACTERS,
    DESCRIPTION_CHARACTERS,
    MODEL_CHARACTERS,
    NAME_CHARACTERS,
    REASON_CHARACTERS,
    PromptActivation,
    PromptConfig,
    PromptVersion,
)
from prompts.transfer import (
    FORMAT,
    FORMAT_VERSION,
    ImportedConfig,
    ImportedConfigOutcome,
    ImportedLabel,
    NumberedContent,
)

_MAX_IMPORTED_CONFIGS = 1000
_MAX_IMPORTED_VERSIONS = 10_000
_MAX_IMPORTED_LABELS = 1000
_MAX_CHECKED_VARIABLES = 1000


class ConfigSerializer(RowSerializer[PromptConfig]):
    """A config with `version_count`, as the selectors return it."""

    active_version_id = serializers.UUIDField(read_only=True, allow_null=True)
    active_version_number = serializers.IntegerField(
        source="active_version.number", default=None, read_only=True, allow_null=True
    )
    version_count = serializers.IntegerField(read_only=True)

    class Meta:
        model = PromptConfig
        fields = [
            "id",
            "project_id",
            "name",
            "description",
            "active_version_id",
            "active_version_number",
            "version_count",
            "has_active_rollout",
            "created_at",
            "updated_at",
        ]


class ConfigChangeSerializer(BodySerializer):
    """The body of PUT on a config: a field left out stays as it is."""

    written_back = frozenset(ConfigSerializer.Meta.fields) - {"name", "description"}

    name = serializers.CharField(max_length=NAME_CHARACTERS, required=False)
    description = serializers.CharField(max_length=DESCRIPTION_CHARACTERS, allow_blank=True, required=False)


class _ConfigFields(StrictSerializer):
    name = serializers.CharField(max_length=NAME_CHARACTERS)
    description = serializers.CharField(max_length=DESCRIPTION_CHARACTERS, allow_blank=True, required=False)


class NewConfigSerializer(_ConfigFields, BodySerializer):
    """The body of POST on configs."""


class _VersionFields(StrictSerializer):
    """The fields of a version's body. Blanks of `system_prompt` are kept; null elsewhere counts as left out."""

    system_prompt = serializers.CharField(
        trim_whitespace=False, required=False, allow_blank=True, allow_null=True, help_text="Required without messages."
    )
    messages = serializers.ListField(
        required=False, allow_null=True, help_text="Objects of role and content, in place of system_prompt."
    )
    model = serializers.CharField(max_length=MODEL_CHARACTERS, required=False, allow_blank=True, allow_null=True)
    temperature = NumberField(min_value=0.0, max_value=MAX_TEMPERATURE, required=False, allow_null=True)
    max_tokens = serializers.IntegerField(min_value=1, max_value=MAX_TOKENS, required=False, allow_null=True)
    variables = serializers.ListField(required=False, allow_null=True)
    tools = serializers.ListField(required=False, allow_null=True)
    response_format = serializers.DictField(required=False, allow_null=True)
    commit_message = serializers.CharField(
        max_length=COMMIT_MESSAGE_CHARACTERS, required=False, allow_blank=True, allow_null=True
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs.get("system_prompt") is None and not attrs.get("messages"):
            raise serializers.ValidationError({"system_prompt": "This field is required."}, code="required")
        content = content_of(attrs)
        try:
            check_content(content)
        except InvalidVersionError as error:
            raise serializers.ValidationError(error.details) from error
        return {**attrs, "content": content}


class NewVersionSerializer(_VersionFields, BodySerializer):
    is_needed = True

    def content(self) -> VersionContent:
        found: VersionContent = self.validated_data["content"]
        return found


class CheckSerializer(BodySerializer):
    """The body of a check: a version as it is being written. `tools` and `response_format` may be JSON in a text."""

    is_needed = True

    system_prompt = serializers.CharField(
        trim_whitespace=False, required=False, allow_blank=True, default="", help_text="The text with its placeholders."
    )
    messages = serializers.ListField(
        required=False, allow_null=True, max_length=MAX_MESSAGES, help_text="The messages, in place of the text."
    )
    variables = serializers.ListField(required=False, allow_null=True, max_length=_MAX_CHECKED_VARIABLES)
    tools = serializers.JSONField(required=False, allow_null=True, help_text="A list, or its JSON as a text.")
    response_format = serializers.JSONField(
        required=False, allow_null=True, help_text="An object, or its JSON as a text."
    )

    def draft(self) -> Draft:
        return Draft(**{name: value for name, value in self.validated_data.items() if value is not None})


class ReasonSerializer(BodySerializer):
    reason = serializers.CharField(max_length=REASON_CHARACTERS, required=False, allow_blank=True, default="")


class ActivationSerializer(RowSerializer[PromptActivation]):
    """A move of the active version; `undoes` is the id of the move that an undo reverted."""

    from_version_number = serializers.IntegerField(
        source="from_version.number", default=None, read_only=True, allow_null=True
    )
    to_version_number = serializers.IntegerField(source="to_version.number", read_only=True)
    undoes = serializers.IntegerField(source="undoes_id", read_only=True, allow_null=True)

    class Meta:
        model = PromptActivation
        fields = [
            "id",
            "kind",
            "from_version_id",
            "from_version_number",
            "to_version_id",
            "to_version_number",
            "undoes",
            "actor",
            "reason",
            "created_at",
        ]


class ImportedVersionSerializer(_VersionFields):
    written_back = frozenset({"created_by", "created_at"})

    version_number = serializers.IntegerField(min_value=1, max_value=2**31 - 1)


class ImportedLabelSerializer(BodySerializer):
    name = serializers.CharField(trim_whitespace=False)
    version_number = serializers.IntegerField(min_value=1, max_value=2**31 - 1)
    is_protected = serializers.BooleanField(required=False, default=False)

    def validate_name(self, value: str) -> str:
        problem = name_problem(value)
        if problem:
            raise serializers.ValidationError(problem)
        return value


class ImportedConfigSerializer(_ConfigFields):
    active_version_number = serializers.IntegerField(required=False, allow_null=True)
    versions = serializers.ListField(child=ImportedVersionSerializer(), max_length=_MAX_IMPORTED_VERSIONS)
    # Documents that were exported before labels were have none.
    labels = serializers.ListField(
        child=ImportedLabelSerializer(), max_length=_MAX_IMPORTED_LABELS, required=False, default=list
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        numbers = [version["version_number"] for version in attrs["versions"]]
        if len(set(numbers)) != len(numbers):
            raise serializers.ValidationError({"versions": "A version number stands there twice."})
        active = attrs.get("active_version_number")
        if active is not None and active not in numbers:
            raise serializers.ValidationError({"active_version_number": "There is no version of this number."})
        labels = attrs["labels"]
        if len({label["name"] for label in labels}) != len(labels):
            raise serializers.ValidationError({"labels": "A name occurs twice."})
        if any(label["version_number"] not in numbers for label in labels):
            raise serializers.ValidationError({"labels": "A label is on a version that is not there."})
        return attrs


class ImportSerializer(BodySerializer):
    """A document of `transfer.export_prompts` to import. With `dry_run` nothing is changed."""

    written_back = frozenset({"exported_at"})

    format = serializers.ChoiceField(choices=[FORMAT])
    format_version = serializers.ChoiceField(choices=[FORMAT_VERSION])
    configs = serializers.ListField(child=ImportedConfigSerializer(), max_length=_MAX_IMPORTED_CONFIGS)
    dry_run = serializers.BooleanField(required=False, default=False)

    def validate_configs(self, value: list[dict[str, Any]]) -> list[dict[str, Any]]:
        names = [config["name"] for config in value]
        if len(set(names)) != len(names):
            raise serializers.ValidationError("A name occurs twice.")
        return value

    def imported(self) -> list[ImportedConfig]:
        return [
            ImportedConfig(
                name=config["name"],
                description=config.get("description", ""),
                active=config.get("active_version_number"),
                versions=[
                    NumberedContent(version["version_number"], version["content"]) for version in config["versions"]
                ],
                labels=[
                    ImportedLabel(label["name"], label["version_number"], label["is_protected"])
                    for label in config["labels"]
                ],
            )
            for config in self.validated_data["configs"]
        ]


def import_body(outcomes: list[ImportedConfigOutcome], *, dry_run: bool) -> dict[str, Any]:
    return {
        "dry_run": dry_run,
        "configs_created": sum(outcome.created for outcome in outcomes),
        "versions_added": sum(len(outcome.versions_added) for outcome in outcomes),
        "versions_skipped": sum(len(outcome.versions_skipped) for outcome in outcomes),
        "labels_added": sum(len(outcome.labels_added) for outcome in outcomes),
        "configs": [asdict(outcome) for outcome in outcomes],
    }


def content_of(data: Mapping[str, Any]) -> VersionContent:
    given = {field.name: data.get(field.name) for field in fields(VersionContent)}
    return VersionContent(**{name: value for name, value in given.items() if value is not None})


def check_body(check: DraftCheck) -> shapes.PromptCheck:
    return shown_as(
        shapes.PromptCheck,
        check,
        valid=all(finding.severity != "error" for finding in check.findings),
        undeclared=[variable.name for variable in check.variables if not variable.is_declared],
        unused=[variable.name for variable in check.variables if not variable.count],
        tokens_estimated=True,
    )


def diff_body(before: PromptVersion, after: PromptVersion, diff: VersionDiff) -> dict[str, Any]:
    """`system_prompt` has a row for each line, of `kind` equal, changed, removed or added; so has each of `messages`,
    which is empty if neither version has messages. The other fields hold only changes."""
    changes = {name: [_change(one) for one in getattr(diff, name)] for name in ("variables", "tools", "parameters")}
    return {"from": _head(before), "to": _head(after), **shown(diff), **changes}


def version_entry(version: PromptVersion) -> shapes.PromptVersionEntry:
    return shown_as(shapes.PromptVersionEntry, version, **_place(version))


def _head(version: PromptVersion) -> shapes.PromptVersionHead:
    return shown_as(shapes.PromptVersionHead, version, **_place(version))


def _place(version: PromptVersion) -> dict[str, Any]:
    return {"version_number": version.number, "is_active": version.config.active_version_id == version.pk}


def _change(change: Change) -> dict[str, Any]:
    return {"name": change.name, "kind": change.kind, "from": change.before, "to": change.after}
