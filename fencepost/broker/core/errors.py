"""Errors of the controller, and of data directories."""

from fencepost.protocol.errors import ErrorCode


class ControllerError(Exception):
    """A request that the controller refuses, by Kafka's code and words."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class ControllerUnreachable(ControllerError):
    """A broker is cut off from the controller."""

    def __init__(self, broker_id: int) -> None:
        super().__init__(
            ErrorCode.REQUEST_TIMED_OUT, f"broker {broker_id} does not reach the controller"
        )


class DataDirUnusable(Exception):
    """A data directory can't be used. The text is one line, for whoever named it."""
