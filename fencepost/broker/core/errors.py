"""The errors of the controller and of a data directory."""

from fencepost.protocol.errors import ErrorCode


class ControllerError(Exception):
    """A request that the controller refuses, with Kafka's error code and message."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class ControllerUnreachable(ControllerError):
    """The broker that handles the request is cut off from the controller."""

    def __init__(self, broker_id: int) -> None:
        super().__init__(
            ErrorCode.REQUEST_TIMED_OUT, f"broker {broker_id} does not reach the controller"
        )


class DataDirUnusable(Exception):
    """A data directory can't be used. The text is one line, for the user."""
