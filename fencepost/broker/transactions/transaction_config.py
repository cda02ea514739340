"""The configs of the transaction coordinator, as numbers."""

from msgspec import Struct

from fencepost.broker.configs.effective_configs import BrokerConfigs

_DAY_MS = 24 * 60 * 60_000


class TransactionConfig(Struct, frozen=True, kw_only=True):
    """Kafka's broker configs, with its defaults; times are milliseconds."""

    max_timeout_ms: int = 900_000
    """``transaction.max.timeout.ms``: what a producer may ask for, inclusive."""
    abort_interval_ms: int = 10_000
    """``transaction.abort.timed.out.transaction.cleanup.interval.ms``"""
    expiration_ms: int = 7 * _DAY_MS
    """``transactional.id.expiration.ms``: how long an id without a transaction is remembered."""
    expiration_interval_ms: int = 3_600_000
    """``transaction.remove.expired.transaction.cleanup.interval.ms``"""

    @classmethod
    def of_broker(cls, configs: BrokerConfigs) -> "TransactionConfig":
        """The configs of a broker; none of these changes while it runs."""
        return cls(
            max_timeout_ms=configs.transaction_max_timeout_ms,
            abort_interval_ms=configs.transaction_abort_timed_out_transaction_cleanup_interval_ms,
            expiration_ms=configs.transactional_id_expiration_ms,
            expiration_interval_ms=(
                configs.transaction_remove_expired_transaction_cleanup_interval_ms
            ),
        )
