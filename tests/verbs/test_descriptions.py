"""The docstrings below the fields of the models become their descriptions, when they are wanted."""

from __future__ import annotations

import sys

from fencepost.control.openapi import description
from fencepost.verbs.answers.topics import PartitionState, ReplicaState
from fencepost.verbs.bodies import TraceQuery, TraceWait
from fencepost.verbs.descriptions import field_description
from fencepost.verbs.fault_bodies import FaultBody
from fencepost.verbs.model_schema import model_schema
from tests.harness.run import run


def test_fields_are_described_by_the_docstrings_below_them() -> None:
    assert field_description(FaultBody.model_fields["group"]) == "Group id."
    text = field_description(FaultBody.model_fields["count"]) or ""
    assert text.startswith("How many requests it hits before it ends; ")
    assert "\n" not in text.partition(";")[0]


def test_fields_that_are_inherited_are_described_too() -> None:
    for model in (TraceQuery, TraceWait):
        assert field_description(model.model_fields["since"]) == (
            "Only exchanges with a higher ``number``."
        )


def test_schemas_say_so_also_those_of_models_in_models() -> None:
    schema = model_schema(PartitionState)
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


def test_the_control_api_is_made_without_a_warning() -> None:
    code = "from fencepost.control import app; app._description()"
    assert run([sys.executable, "-W", "error", "-c", code]).err == ""
