"""The answers of the control API, as data: the one description that OpenAPI shows.

Names are the contract's: fields may be added, none renamed or removed. Log ends and high watermarks
are exclusive, all other offsets inclusive; times are milliseconds. Here are the base class and the
answers without content of their own.
"""

from typing import ClassVar, Literal

from fencepost.verbs.model import Examples, Model


class Answer(Model):
    """An answer; later versions may add fields.

    Its fields are not checked when it is made, but when it is read.
    """


class ErrorAnswer(Answer):
    """Why a request is refused."""

    error: str
    """Kafka's name of the error where there is one, else one in its manner."""
    message: str
    """For a reader."""

    examples: ClassVar[Examples] = [
        {
            "error": "UNKNOWN_TOPIC_OR_PARTITION",
            "message": "there is no partition orders-7",
        }
    ]


class Health(Answer):
    """Whether the cluster is up."""

    status: Literal["ok"] = "ok"


class Done(Answer):
    """The effect is complete; there is no content."""
