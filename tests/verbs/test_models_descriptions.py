"""The docstrings below the fields of the models become their descriptions, when they are wanted."""

from __future__ import annotations

import sys
from pathlib import Path

from fencepost.control.openapi import description
from fencepost.verbs.answers.topics import PartitionState, ReplicaState
from fencepost.verbs.bodies import FaultBody, TraceQuery, TraceWait
from fencepost.verbs.models import add_descriptions
from tests.harness.run import run


def test_fields_are_described_by_the_docstrings_below_them() -> None:
    add_descriptions()
    assert FaultBody.model_fields["group"].description == "Group id."
    text = FaultBody.model_fields["count"].description or ""
    assert text.startswith("How many requests it hits before it ends; ")
    assert "\n" not in text.partition(";")[0]


def test_fields_that_are_inherited_are_described_too() -> None:
    add_descriptions()
    for model in (TraceQuery, TraceWait):
        assert model.model_fields["since"].description == (
            "Only exchanges with a higher ``number``."
        )


def test_schemas_say_so_also_those_of_models_in_models() -> None:
    add_descriptions()
    schema = PartitionState.model_json_schema()
    assert schema["properties"]["leader"]["description"] == "Broker id, -1 while there is none."
    replica = schema["$defs"][ReplicaState.__name__]["properties"]
    assert replica["role"]["description"].startswith("Offline while its broker is down")


def test_openapi_says_so_of_bodies_and_of_queries() -> None:
    document = description()
    body = document["components"]["schemas"]["HoldBody"]["properties"]["at"]
    assert body["description"].startswith("It fetches up to this offset")
    parameters = document["paths"]["/v1/trace"]["get"]["parameters"]
    (since,) = [each for each in parameters if each["name"] == "since"]
    assert since["description"] == "Only exchanges with a higher ``number``."


def test_models_that_were_used_before_are_described_all_the_same() -> None:
    """In a process of its own, where the descriptions have not been read."""
    code = (
        "from fencepost.verbs.bodies import HoldBody\n"
        "from fencepost.verbs.models import add_descriptions\n"
        "HoldBody.model_validate({'at': 3})\n"
        "print('description' in HoldBody.model_json_schema()['properties']['at'])\n"
        "add_descriptions()\n"
        "print('description' in HoldBody.model_json_schema()['properties']['at'])\n"
        "print(HoldBody.model_validate({'at': 3}).at)\n"
    )
    assert run([sys.executable, "-W", "error", "-c", code]).lines == ["False", "True", "3"]


def test_the_control_api_is_made_without_a_warning() -> None:
    code = "from fencepost.control import app; app._description()"
    assert run([sys.executable, "-W", "error", "-c", code]).err == ""


MODEL = '''
from fencepost.verbs.answers import Answer


class Later(Answer):
    """Made after the others were described."""

    size: int
    """Bytes."""
'''


def test_a_model_that_is_made_later_is_described_as_well(tmp_path: Path) -> None:
    """In a process of its own, whose models are not those of other tests."""
    (tmp_path / "later.py").write_text(MODEL)
    code = (
        "import fencepost\n"
        "from fencepost.verbs.models import add_descriptions\n"
        "add_descriptions()\n"
        f"fencepost.__path__.append({str(tmp_path)!r})\n"
        "from fencepost.later import Later\n"
        "add_descriptions()\n"
        "print(Later.model_fields['size'].description)\n"
    )
    assert run([sys.executable, "-W", "error", "-c", code]).lines == ["Bytes."]


def test_models_in_models_are_described_whatever_was_built_before() -> None:
    code = (
        "from fencepost.verbs.answers.records import RecordsMissing\n"
        "from fencepost.verbs.models import add_descriptions, all_models\n"
        "for each in all_models():\n"
        "    each.model_json_schema()\n"
        "add_descriptions()\n"
        "schema = RecordsMissing.model_json_schema()['$defs']['NearRecord']\n"
        "print(schema['properties']['leader_epoch']['description'])\n"
    )
    assert run([sys.executable, "-c", code]).lines == ["In which it was appended."]
