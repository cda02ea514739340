"""SASL, ACLs, delegation tokens, quotas and SCRAM credentials, of a cluster without any of them.

What a real broker answers is in tests/oracle; here is what it does not say.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fencepost.broker.controller import Fence
from fencepost.broker.handlers import alter_client_quotas, alter_user_scram_credentials
from fencepost.broker.node import operator_actions
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from fencepost.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from fencepost.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from fencepost.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from fencepost.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from fencepost.protocol.messages.describe_acls import DescribeAclsRequest
from fencepost.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
)
from fencepost.protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from fencepost.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from fencepost.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from fencepost.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from fencepost.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from fencepost.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.harness.driver import NEWEST, Driver

ACL = AclCreation(
    resource_type=2, resource_name="t", principal="User:a", host="*", operation=3, permission_type=3
)
ANY = 1


def quotas(*operations: OpData, user: str | None = "a") -> EntryData:
    return EntryData(entity=(EntityData(entity_type="user", entity_name=user),), ops=operations)


def upsertion(user: str) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(
        name=user, mechanism=1, iterations=4096, salt=b"s", salted_password=b"p"
    )


@pytest.mark.parametrize("broker", [1, 2])
def test_no_acl_is_made_in_a_cluster_without_an_authorizer(broker: int) -> None:
    driver = Driver(2)
    created = driver.ask(broker, "create_acls", NEWEST, CreateAclsRequest(creations=(ACL, ACL)))
    assert [each.error_code for each in created.results] == [ErrorCode.SECURITY_DISABLED] * 2
    every = DeleteAclsFilter(
        resource_type_filter=ANY, pattern_type_filter=ANY, operation=ANY, permission_type=ANY
    )
    deleted = driver.ask(broker, "delete_acls", NEWEST, DeleteAclsRequest(filters=(every,)))
    assert [each.error_code for each in deleted.filter_results] == [ErrorCode.SECURITY_DISABLED]


def test_a_broker_describes_acls_without_its_controller() -> None:
    driver = Driver(2)
    operator_actions.isolate(driver.cluster, 2, from_controller=True, fence=Fence.NEVER)
    request = DescribeAclsRequest(resource_type_filter=ANY, operation=ANY, permission_type=ANY)
    answer = driver.ask(2, "describe_acls", NEWEST, request)
    assert answer.error_code == ErrorCode.SECURITY_DISABLED
    refused = driver.ask(2, "create_acls", NEWEST, CreateAclsRequest(creations=(ACL,)))
    assert [each.error_code for each in refused.results] == [ErrorCode.REQUEST_TIMED_OUT]


@pytest.mark.parametrize(
    ("api", "request_of"),
    [
        ("describe_acls", lambda: DescribeAclsRequest(operation=ANY)),
        ("create_acls", lambda: CreateAclsRequest(creations=(ACL, AclCreation()))),
        ("delete_acls", lambda: DeleteAclsRequest(filters=(DeleteAclsFilter(),))),
    ],
)
def test_an_unknown_element_closes_the_connection(
    api: str, request_of: Callable[[], object]
) -> None:
    assert Driver(1).send(1, api, NEWEST, request_of()).hung_up


def test_a_plaintext_listener_authenticates_no_client() -> None:
    driver = Driver(1)
    handshake = driver.ask(1, "sasl_handshake", NEWEST, SaslHandshakeRequest(mechanism="PLAIN"))
    assert (handshake.error_code, handshake.mechanisms) == (ErrorCode.ILLEGAL_SASL_STATE, ())
    token = driver.ask(1, "sasl_authenticate", NEWEST, SaslAuthenticateRequest(auth_bytes=b"a"))
    assert token.error_code == ErrorCode.ILLEGAL_SASL_STATE


@pytest.mark.parametrize(
    ("api", "request_of"),
    [
        ("create_delegation_token", CreateDelegationTokenRequest),
        ("renew_delegation_token", RenewDelegationTokenRequest),
        ("expire_delegation_token", ExpireDelegationTokenRequest),
        ("describe_delegation_token", DescribeDelegationTokenRequest),
    ],
)
def test_a_plaintext_listener_gives_no_tokens(api: str, request_of: Callable[[], object]) -> None:
    answer = Driver(1).ask(1, api, NEWEST, request_of())
    assert answer.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_a_valid_quota_is_refused_with_the_reason_and_a_removal_is_done() -> None:
    driver = Driver(1)
    rate = OpData(key="producer_byte_rate", value=10.0)
    gone = OpData(key="producer_byte_rate", remove=True)
    entries = (quotas(rate), quotas(gone, user="b"), quotas(rate, user=None))
    for validate_only, refused in ((False, alter_client_quotas.NOT_STORED), (True, (0, None))):
        request = AlterClientQuotasRequest(entries=entries, validate_only=validate_only)
        answer = driver.ask(1, "alter_client_quotas", NEWEST, request).entries
        assert [(each.error_code, each.error_message) for each in answer] == [
            refused,
            (0, None),
            refused,
        ]
        assert [each.entity for each in answer] == [each.entity for each in entries]


def test_no_quota_is_found() -> None:
    user = ComponentData(entity_type="user", match_type=2, match=None)
    request = DescribeClientQuotasRequest(components=(user,))
    answer = Driver(1).ask(1, "describe_client_quotas", NEWEST, request)
    assert (answer.error_code, answer.entries) == (ErrorCode.NONE, ())


def test_a_valid_credential_is_refused_with_the_reason() -> None:
    driver = Driver(1)
    request = AlterUserScramCredentialsRequest(
        deletions=(ScramCredentialDeletion(name="b", mechanism=1),),
        upsertions=(upsertion("a"), upsertion("b"), upsertion("c"), upsertion("c")),
    )
    results = driver.ask(1, "alter_user_scram_credentials", NEWEST, request).results
    assert {each.user: each.error_code for each in results} == {
        "a": alter_user_scram_credentials.NOT_STORED.code,
        "b": ErrorCode.RESOURCE_NOT_FOUND,
        "c": ErrorCode.DUPLICATE_RESOURCE,
    }
    named = DescribeUserScramCredentialsRequest(users=(UserName(name="a"),))
    described = driver.ask(1, "describe_user_scram_credentials", NEWEST, named).results
    assert [each.error_code for each in described] == [ErrorCode.RESOURCE_NOT_FOUND]
