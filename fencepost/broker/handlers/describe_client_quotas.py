"""DescribeClientQuotas (48), versions 0-1: the quotas that match a filter (KIP-546).

The cluster has no quotas: a filter that is valid finds none.

Versions: v1 compact types.
"""

from fencepost.broker.handlers.context import Context
from fencepost.broker.security.client_quotas import FilterComponent, filter_error
from fencepost.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)


def handle(_ctx: Context, request: DescribeClientQuotasRequest) -> DescribeClientQuotasResponse:
    """Check the filter."""
    error = filter_error(
        FilterComponent(entity_type=each.entity_type, match_type=each.match_type, match=each.match)
        for each in request.components
    )
    if error is None:
        return DescribeClientQuotasResponse()
    return DescribeClientQuotasResponse(
        error_code=error.code, error_message=error.message, entries=None
    )


def refuse(_request: DescribeClientQuotasRequest, error_code: int) -> DescribeClientQuotasResponse:
    """The error alone."""
    return DescribeClientQuotasResponse(error_code=error_code, error_message=None, entries=None)
