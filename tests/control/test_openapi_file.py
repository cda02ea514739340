"""The OpenAPI document that the control API answers is what its routes and models give."""

from __future__ import annotations

import json

import httpx

from fencepost.control.openapi import description
from tools.generate_openapi import TARGET, render


async def test_the_document_is_what_the_catalogue_gives(control: httpx.AsyncClient) -> None:
    """``python -m tools.generate_openapi`` writes it."""
    assert (await control.get("/openapi.json")).json() == description()


def test_a_path_and_a_schema_each_have_a_line_of_their_own() -> None:
    text = render()
    assert json.loads(text) == description()
    assert TARGET.read_text("utf-8") == text
    lines = text.splitlines()
    for each in (*description()["paths"], *description()["components"]["schemas"]):
        assert sum(line.startswith(f'"{each}":') for line in lines) == 1
