"""The cluster of a schedule, in a form that can be printed and parsed."""

import re
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

NO_TIER: Final = "no"
FROM_LOCAL: Final = "local"
FROM_LAST: Final = "last"
TIERS: Final = (NO_TIER, FROM_LOCAL, FROM_LAST)
"""No tier; or where a follower starts that has nothing: at its leader's local log start, or behind
the last tiered offset (``follower.fetch.last.tiered.offset.enable``, KIP-1023)."""
NO_CONSUMERS: Final = "no"
FINAL_CONSUMERS: Final = "final"
DRAFT_CONSUMERS: Final = "draft"
CONSUMERS: Final = (NO_CONSUMERS, FINAL_CONSUMERS, DRAFT_CONSUMERS)
"""No applications with consumers; those of the final KIP-320; or those of its earlier draft as
well, on a cluster that serves the dialect."""
NO_TRANSACTIONS: Final = "no"
NEW_FLOW: Final = "new"
OLD_FLOW: Final = "old"
MIXED_FLOWS: Final = "mixed"
TRANSACTIONS: Final = (NO_TRANSACTIONS, NEW_FLOW, OLD_FLOW, MIXED_FLOWS)
"""No transactional producers; or those that follow the flow of ``transaction.version`` 2 (KIP-890),
the one before it, or some of them each, of one id as well."""
NEWEST_FETCH: Final = 18
"""The Fetch version of a cluster without a ceiling."""


class ScheduleError(ValueError):
    """A text is no schedule."""


class Setup(Struct, frozen=True, kw_only=True):
    """The cluster of a schedule, with one topic."""

    seed: int = 0
    """Of the cluster's own randomness: ids and the like."""
    brokers: int = 3
    first_id: int = 1
    """The lowest id of the brokers, which have consecutive ones."""
    partitions: int = 1
    replication_factor: int = 3
    min_insync_replicas: int = 1
    unclean: bool = False
    """``unclean.leader.election.enable``."""
    fetch_version: int = NEWEST_FETCH
    """The highest Fetch version that brokers serve (``--api-max``)."""
    tier: str = NO_TIER
    """Whether the topic is tiered, and where new followers start then; see `TIERS`."""

    checks_offsets: bool = False
    """``check.expected.offsets``: producers state where they believe the log to end (KIP-27)."""
    consumers: str = NO_CONSUMERS
    """Which applications there are; see `CONSUMERS`."""
    transactions: str = NO_TRANSACTIONS
    """Which transactional producers there are; see `TRANSACTIONS`."""
    few_epochs: bool = False
    """Whether the epochs of their producer ids are nearly used up."""
    expires: bool = False
    """Whether transactional ids and producer ids expire soon."""
    gate: bool = True
    """Whether ListOffsets waits after an election (KIP-207); off: ``list.offsets.gate=off``."""

    @property
    def broker_ids(self) -> range:
        """The ids of the brokers."""
        return range(self.first_id, self.first_id + self.brokers)

    @property
    def has_transactions(self) -> bool:
        """Whether there are transactional producers."""
        return self.transactions != NO_TRANSACTIONS

    @property
    def is_tiered(self) -> bool:
        """Whether the topic has a remote tier."""
        return self.tier != NO_TIER

    def __str__(self) -> str:
        return _SETUP.format(
            seed=self.seed,
            brokers=self.brokers,
            partitions=self.partitions,
            replication_factor=self.replication_factor,
            min_insync_replicas=self.min_insync_replicas,
            unclean="yes" if self.unclean else "no",
            fetch_version=self.fetch_version,
            tier=f" tier={self.tier}" if self.is_tiered else "",
            check=_CHECK if self.checks_offsets else "",
            consumers=f" consumers={self.consumers}" if self.consumers != NO_CONSUMERS else "",
            transactions=f" transactions={self.transactions}" if self.has_transactions else "",
            few=_FEW_EPOCHS if self.few_epochs else "",
            expires=_EXPIRES if self.expires else "",
            ids="" if self.first_id == 1 else f" ids.from={self.first_id}",
            gate="" if self.gate else _NO_GATE,
        )


_CHECK: Final = " check=yes"
_NO_GATE: Final = " gate=off"
_FEW_EPOCHS: Final = " epochs=few"
_EXPIRES: Final = " expires=yes"
_SETUP: Final = (
    "cluster seed={seed} brokers={brokers} partitions={partitions} replicas={replication_factor}"
    " min.insync={min_insync_replicas} unclean={unclean} fetch={fetch_version}{tier}{check}"
    "{consumers}{transactions}{few}{expires}{ids}{gate}"
)


def parse_setup(line: str) -> Setup:
    """Read the first line of a schedule.

    :raises ScheduleError: When it is none.
    """
    match = _PATTERN_OF_SETUP.fullmatch(line)
    if match is None:
        raise ScheduleError(f"a schedule begins with its cluster, as {str(Setup())!r}: {line!r}")
    fields = match.groupdict()
    unclean = fields.pop("unclean")
    if unclean not in ("yes", "no"):
        raise ScheduleError(f"unclean is yes or no: {line!r}")
    tier = (fields.pop("tier") or f" tier={NO_TIER}").removeprefix(" tier=")
    if tier not in TIERS:
        raise ScheduleError(f"tier is one of {', '.join(TIERS)}: {line!r}")
    checks = fields.pop("check") is not None
    gate = fields.pop("gate") is None
    few_epochs = fields.pop("few") is not None
    expires = fields.pop("expires") is not None
    consumers = fields.pop("consumers") or NO_CONSUMERS
    if consumers not in CONSUMERS:
        raise ScheduleError(f"consumers is one of {', '.join(CONSUMERS)}: {line!r}")
    transactions = fields.pop("transactions") or NO_TRANSACTIONS
    if transactions not in TRANSACTIONS:
        raise ScheduleError(f"transactions is one of {', '.join(TRANSACTIONS)}: {line!r}")
    fields["first_id"] = fields["first_id"] or "1"
    numbers = {name: int(text) for name, text in fields.items()}
    return Setup(
        **numbers,
        unclean=unclean == "yes",
        tier=tier,
        checks_offsets=checks,
        consumers=consumers,
        transactions=transactions,
        few_epochs=few_epochs,
        expires=expires,
        gate=gate,
    )


def form_pattern(
    form: str, words: Iterable[str] = ("how", "unclean"), number: str = r"\d+"
) -> re.Pattern[str]:
    """A form as a regular expression with a group for each field."""
    pattern = re.escape(form)
    for name in re.findall(r"\{(\w+)\}", form):
        kind = r"\S+" if name in words else number
        pattern = pattern.replace(re.escape(f"{{{name}}}"), f"(?P<{name}>{kind})")
    return re.compile(pattern)


_PATTERN_OF_SETUP: Final = re.compile(
    form_pattern(_SETUP.partition("{tier}")[0]).pattern
    + rf"(?P<tier> tier=\S+)?(?P<check>{_CHECK})?(?: consumers=(?P<consumers>\S+))?"
    rf"(?: transactions=(?P<transactions>\S+))?(?P<few>{_FEW_EPOCHS})?(?P<expires>{_EXPIRES})?"
    rf"(?: ids\.from=(?P<first_id>\d+))?(?P<gate>{_NO_GATE})?"
)
