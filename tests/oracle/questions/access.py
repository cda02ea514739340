"""SASL, ACLs, delegation tokens, quotas and SCRAM credentials, of a cluster without any of them.

The listener is a plaintext one, and no authorizer is configured. Rows that end in `STORED` store
something, or remove it again: what is behind them finds nothing, as what was before them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final

from tests.harness.served_cluster import Cluster
from tests.harness.wire import Body, Value
from tests.oracle.asker import Asker
from tests.oracle.asking import Row
from tests.oracle.steering import Steering

QUOTAS: Final = "AlterClientQuotas"
SCRAM: Final = "AlterUserScramCredentials"
STORED: Final = " (stores)"
ACL_VERSIONS: Final = (1, 2, 3)
ANY, LITERAL, ALLOW = 1, 3, 3
EXACT, DEFAULT, SPECIFIED = 0, 1, 2
SHA_256, SHA_512 = 1, 2
FILTER: Final[Body] = {
    "ResourceTypeFilter": ANY,
    "ResourceNameFilter": None,
    "PatternTypeFilter": ANY,
    "PrincipalFilter": None,
    "HostFilter": None,
    "Operation": ANY,
    "PermissionType": ANY,
}
CREATION: Final[Body] = {
    "ResourceType": 2,
    "ResourceName": "t",
    "ResourcePatternType": LITERAL,
    "Principal": "User:a",
    "Host": "*",
    "Operation": 3,
    "PermissionType": ALLOW,
}
FILTERS: Final[Sequence[Body]] = (
    {},
    {"ResourceNameFilter": ""},
    *({field: code} for field in FILTER if FILTER[field] == ANY for code in (0, 99, -1)),
)
CREATIONS: Final[Sequence[Body]] = (
    {},
    {"ResourceName": ""},
    {"Principal": "no-type"},
    *(
        {field: code}
        for field in ("ResourceType", "ResourcePatternType", "Operation", "PermissionType")
        for code in (0, 1, 99, -1)
    ),
)
COMPONENTS: Final = (
    (),
    (("user", EXACT, "a"),),
    (("user", DEFAULT, None),),
    (("user", SPECIFIED, None),),
    (("user", EXACT, None),),
    (("user", DEFAULT, "a"),),
    (("user", SPECIFIED, "a"),),
    (("user", 3, None),),
    (("user", -1, "a"),),
    (("", EXACT, "a"),),
    (("nope", EXACT, "a"),),
    (("nope", 9, "a"),),
    (("user", EXACT, "a"), ("user", EXACT, "b")),
    (("user", SPECIFIED, None), ("user", EXACT, "b")),
    (("nope", EXACT, "a"), ("nope", EXACT, "b")),
    (("user", EXACT, "a"), ("client-id", EXACT, "b")),
    (("user", EXACT, "a"), ("ip", EXACT, "127.0.0.1")),
    (("ip", DEFAULT, None), ("client-id", SPECIFIED, None)),
    (("ip", EXACT, "not an address"),),
)
"""Entity type, kind of match and what is matched."""
USER: Final = (("user", "a"),)
RATE: Final = ("producer_byte_rate", 1024.0, False)
ALTERATIONS: Final[Sequence[Sequence[tuple[Value, Value]]]] = (
    (),
    (((), ()),),
    (((), (RATE,)),),
    ((USER, ()),),
    (((("", "a"),), (RATE,)),),
    (((("nope", "a"),), (RATE,)),),
    (((("user", ""),), ()),),
    (((("ip", ""),), ()),),
    (((("user", None), ("client-id", None)), ()),),
    (((("user", "a"), ("user", "b")), (("nope", 1.0, False),)),),
    (((("user", "a"), ("ip", "127.0.0.1")), (RATE,)),),
    (((("ip", "127.0.0.1"),), (RATE,)),),
    (((("ip", "256.0.0.1"),), (("connection_creation_rate", 5.0, False),)),),
    (((("ip", None),), (("connection_creation_rate", 5.5, False),)),),
    (((("ip", None),), (("connection_creation_rate", 3e9, False),)),),
    ((USER, (("nope", 1.0, False),)),),
    ((USER, (("nope", 1.0, True),)),),
    ((USER, (("", 1.0, False),)),),
    ((USER, (("producer_byte_rate", 0.0, False),)),),
    ((USER, (("producer_byte_rate", -1.0, False),)),),
    ((USER, (("producer_byte_rate", 1.5, False),)),),
    ((USER, (("producer_byte_rate", 1e300, False),)),),
    ((USER, (("consumer_byte_rate", 1.0000001, True),)),),
    ((USER, (("request_percentage", -0.5, False),)),),
    ((USER, (("controller_mutation_rate", 0.0, False),)),),
    ((USER, (("connection_creation_rate", 5.0, False),)),),
    ((USER, (("SCRAM-SHA-256", 5.0, False),)),),
    ((USER, (RATE, RATE)),),
    ((USER, (("producer_byte_rate", 1.0, True), RATE)),),
    ((USER, (("nope", 1.0, True), ("nope", 1.0, True))),),
    ((USER, (("nope", 1.0, False),)), (USER, (("nope", 1.0, False),))),
    ((USER, (("nope", 1.0, True),)), (USER, (("nope", 1.0, True),))),
    ((USER, (("nope", 1.0, False),)), ((("user", "b"),), (("gone", 1.0, True),))),
)
"""Entities, each with its operations: key, value and whether it is removed. Nothing is stored."""
STORES: Final[Sequence[Sequence[tuple[Value, Value]]]] = (
    ((USER, (RATE,)),),
    (((("user", None),), (("request_percentage", 12.5, False),)),),
    (((("client-id", "c"), ("user", "a")), (RATE, ("consumer_byte_rate", 10.0, False))),),
    (((("ip", "127.0.0.1"),), (("connection_creation_rate", 5.0, False),)),),
    (((("ip", "localhost"),), (("connection_creation_rate", 5.0, False),)),),
    (((("ip", "::1"),), (("connection_creation_rate", 5.0, False),)),),
    (((("user", "a"), ("user", "b")), (RATE,)),),
    ((USER, (("producer_byte_rate", float("nan"), False),)),),
)
DELETIONS: Final = (
    (),
    (("a", SHA_256),),
    (("a", SHA_512),),
    (("", SHA_256),),
    (("a", 0),),
    (("a", 3),),
    (("", 3),),
    (("a", -1),),
    (("a", SHA_256), ("a", SHA_256)),
    (("a", SHA_256), ("b", 7)),
)
SALTED: Final = b"p" * 32
CREDENTIAL: Final = (("a", SHA_256, 4096),)
UPSERTIONS: Final = (
    (),
    (("a", SHA_256, 4095),),
    (("a", SHA_512, 4095),),
    (("a", SHA_256, 16385),),
    (("a", SHA_256, -1),),
    (("", SHA_256, 4096),),
    (("a", 0, 4096),),
    (("a", 3, 4096),),
    (("", 3, 1),),
    (("a", SHA_256, 4096), ("a", SHA_256, 4096)),
    (("a", SHA_256, 4096), ("a", SHA_512, 4096)),
    (("a", SHA_256, 1), ("b", SHA_256, 1)),
)
"""User, mechanism and iterations. Nothing is stored."""
STORED_ROWS: Final = (
    *((QUOTAS, f"v1 {entries} validate=False{STORED}") for entries in STORES),
    (SCRAM, f"v0 delete () upsert {CREDENTIAL}{STORED}"),
    (SCRAM, f"v0 delete {(('a', SHA_256),)} upsert (){STORED}"),
)
"""The rows that end in `STORED`."""


def ask(cluster: Cluster, steering: Steering) -> list[Row]:
    """Put the questions to a fresh broker."""
    asker = Asker(cluster, steering)
    try:
        _sasl(asker)
        _acls(asker)
        _tokens(asker)
        _describe_quotas(asker)
        _alter_quotas(asker)
        _scram(asker)
    finally:
        asker.close()
    return asker.rows


def _answer(asker: Asker, api: str, version: int, body: Body) -> str:
    """The answer on a connection of its own; how it ends, where it is closed."""
    with asker.fresh() as connection:
        try:
            return str(_sorted(connection.call(api, version, body)))
        except ConnectionError as closed:
            return repr(closed)


def _sorted(answer: Value) -> Value:
    """Results of several users or entities come in the order of a hash map."""
    if isinstance(answer, dict):
        return {key: _sorted(value) for key, value in answer.items()}
    if isinstance(answer, list):
        return sorted(map(_sorted, answer), key=str)
    return answer


def _sasl(asker: Asker) -> None:
    for version, mechanism in product((0, 1), ("PLAIN", "SCRAM-SHA-256", "nope", "")):
        answer = _answer(asker, "SaslHandshake", version, {"Mechanism": mechanism})
        asker.row("SaslHandshake", f"v{version} {mechanism!r}", answer)
    for version, token in product((0, 1, 2), (b"", b"\0a\0b")):
        answer = _answer(asker, "SaslAuthenticate", version, {"AuthBytes": token})
        asker.row("SaslAuthenticate", f"v{version} {token!r}", answer)
    with asker.fresh() as connection:
        connection.call("SaslHandshake", 1, {"Mechanism": "PLAIN"})
        connection.call("SaslAuthenticate", 2, {"AuthBytes": b""})
        brokers = len(connection.call("Metadata", 12, {"Topics": []})["Brokers"])
    asker.row("SaslHandshake", "Metadata on the same connection", f"{brokers=}")
    for api, version in (("SaslHandshake", 2), ("SaslAuthenticate", 3), ("DescribeAcls", 0)):
        asker.row(api, f"v{version} (unknown)", _unknown(asker, api, version))


def _unknown(asker: Asker, api: str, version: int) -> str:
    with asker.fresh() as connection:
        connection.send(api, version, b"\0\0")
        try:
            return connection.receive().hex()
        except ConnectionError as closed:
            return repr(closed)


def _acls(asker: Asker) -> None:
    for version, change in product(ACL_VERSIONS, FILTERS):
        answer = _answer(asker, "DescribeAcls", version, {**FILTER, **change})
        asker.row("DescribeAcls", f"v{version} {change}", answer)
    for version in ACL_VERSIONS:
        for changes in _some(FILTERS):
            filters = [{**FILTER, **change} for change in changes]
            answer = _answer(asker, "DeleteAcls", version, {"Filters": filters})
            asker.row("DeleteAcls", f"v{version} {changes}", answer)
        for changes in _some(CREATIONS):
            creations = [{**CREATION, **change} for change in changes]
            answer = _answer(asker, "CreateAcls", version, {"Creations": creations})
            asker.row("CreateAcls", f"v{version} {changes}", answer)


def _some(changes: Sequence[Body]) -> Iterator[list[Body]]:
    """None, each alone, and a good one beside a bad one."""
    yield []
    yield from ([change] for change in changes)
    yield [{}, {"Operation": 0}]
    yield [{}, {}, {"Operation": 99}]


def _tokens(asker: Asker) -> None:
    owners = (("", ""), ("User", "a"), ("Group", "g"), (None, None))
    renewers = ((), (("User", "b"),), (("Group", "g"),))
    for version, (kind, name), others in product((1, 2, 3), owners, renewers):
        body: Body = {"OwnerPrincipalType": kind, "OwnerPrincipalName": name}
        body["Renewers"] = [{"PrincipalType": k, "PrincipalName": n} for k, n in others]
        body["MaxLifetimeMs"] = -1
        answer = _answer(asker, "CreateDelegationToken", version, body)
        request = f"v{version} owner={kind!r}:{name!r} renewers={others}"
        asker.row("CreateDelegationToken", request, answer)
    for version, hmac in product((1, 2), (b"", b"nope")):
        answer = _answer(asker, "RenewDelegationToken", version, {"Hmac": hmac})
        asker.row("RenewDelegationToken", f"v{version} {hmac!r}", answer)
        answer = _answer(asker, "ExpireDelegationToken", version, {"Hmac": hmac})
        asker.row("ExpireDelegationToken", f"v{version} {hmac!r}", answer)
    named = [{"PrincipalType": "User", "PrincipalName": "a"}]
    for version, asked in product((1, 2, 3), (None, [], named)):
        answer = _answer(asker, "DescribeDelegationToken", version, {"Owners": asked})
        asker.row("DescribeDelegationToken", f"v{version} {asked}", answer)


def _describe_quotas(asker: Asker) -> None:
    for version, strict, components in product((0, 1), (False, True), COMPONENTS):
        body: Body = {
            "Components": [
                {"EntityType": kind, "MatchType": how, "Match": match}
                for kind, how, match in components
            ],
            "Strict": strict,
        }
        answer = _answer(asker, "DescribeClientQuotas", version, body)
        asker.row("DescribeClientQuotas", f"v{version} {components} {strict=}", answer)


def _alter_quotas(asker: Asker) -> None:
    for version, only, entries in product((0, 1), (False, True), ALTERATIONS):
        _alter(asker, version, entries, only=only)
    for entries in STORES:
        _alter(asker, 1, entries, only=True)
        _alter(asker, 1, entries, note=STORED)
        removal = [(entity, [(key, 0.0, True) for key, _, _ in ops]) for entity, ops in entries]
        _alter(asker, 1, removal)


def _alter(
    asker: Asker,
    version: int,
    entries: Sequence[tuple[Value, Value]],
    *,
    only: bool = False,
    note: str = "",
) -> None:
    body: Body = {
        "Entries": [
            {
                "Entity": [{"EntityType": kind, "EntityName": name} for kind, name in entity],
                "Ops": [{"Key": key, "Value": to, "Remove": gone} for key, to, gone in ops],
            }
            for entity, ops in entries
        ],
        "ValidateOnly": only,
    }
    answer = _answer(asker, QUOTAS, version, body)
    asker.row(QUOTAS, f"v{version} {entries} validate={only}{note}", answer)


def _scram(asker: Asker) -> None:
    for users in (None, [], ["a"], ["a", "b"], ["a", "a"], ["", "a", ""]):
        asked = None if users is None else [{"Name": user} for user in users]
        answer = _answer(asker, "DescribeUserScramCredentials", 0, {"Users": asked})
        asker.row("DescribeUserScramCredentials", f"v0 {users}", answer)
    for deletions in DELETIONS:
        _alter_scram(asker, deletions, ())
    for upsertions in UPSERTIONS:
        _alter_scram(asker, (), upsertions)
    _alter_scram(asker, (("a", SHA_256),), (("a", SHA_256, 1),))
    _alter_scram(asker, (("a", 3),), (("b", SHA_256, 1),))
    _alter_scram(asker, (), CREDENTIAL, " without a password", salted=b"")
    _alter_scram(asker, (), CREDENTIAL, STORED)
    _alter_scram(asker, (("a", SHA_256),), (), STORED)
    _alter_scram(asker, (("a", SHA_256),), ())


def _alter_scram(
    asker: Asker,
    deletions: Sequence[tuple[str, int]],
    upsertions: Sequence[tuple[str, int, int]],
    note: str = "",
    salted: bytes = SALTED,
) -> None:
    body: Body = {
        "Deletions": [{"Name": user, "Mechanism": how} for user, how in deletions],
        "Upsertions": [
            {
                "Name": user,
                "Mechanism": how,
                "Iterations": iterations,
                "Salt": b"salt",
                "SaltedPassword": salted,
            }
            for user, how, iterations in upsertions
        ],
    }
    answer = _answer(asker, SCRAM, 0, body)
    asker.row(SCRAM, f"v0 delete {deletions} upsert {upsertions}{note}", answer)
