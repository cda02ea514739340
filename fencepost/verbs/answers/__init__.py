"""The answers of the control API, as data: the one description that OpenAPI shows.

Names are the contract's: fields may be added, none renamed or removed. Log ends and high watermarks
are exclusive, all other offsets inclusive; times are milliseconds. Here are the base class and the
answers without content of their own.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict


class Answer(BaseModel):
    """An answer; later versions may add fields."""

    model_config = ConfigDict(strict=True, frozen=True, defer_build=True)


class ErrorAnswer(Answer):
    """Why a request is refused."""

    error: str
    """Kafka's name of the error where there is one, else one in its manner."""
    message: str
    """For a reader."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "error": "UNKNOWN_TOPIC_OR_PARTITION",
                    "message": "there is no partition orders-7",
                }
            ]
        }
    )


class Health(Answer):
    """Whether the cluster is up."""

    status: Literal["ok"] = "ok"


class Done(Answer):
    """The effect is complete; there is no content."""
