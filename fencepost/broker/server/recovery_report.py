"""What a start on a data directory has found, in the log."""

from fencepost.broker.data_dir.persistence import DataDirPersistence
from fencepost.broker.node.cluster import Cluster
from fencepost.broker.server import logs


def log_recovery(cluster: Cluster) -> None:
    """Log what the directory was, and what recovery has cut and rebuilt: a line, and one a log."""
    persistence = cluster.persistence
    assert isinstance(persistence, DataDirPersistence)
    found = persistence.recovery_report
    if found is None:
        return
    log = logs.logger(data_dir=str(persistence.data_dir.path))
    recovered = checked = 0
    for broker_id, log_dir in persistence.log_dirs.items():
        for problem in log_dir.problems:
            log.warning("data_dir_problem", broker=broker_id, problem=problem)
        for name, recovery in log_dir.recoveries:
            recovered += 1
            checked += recovery.checked_bytes
            if recovery.cut or recovery.rebuilt or recovery.tidied:
                log.warning(
                    "log_recovered",
                    broker=broker_id,
                    log=name,
                    cut=[cut._asdict() for cut in recovery.cut],
                    rebuilt=recovery.rebuilt,
                    tidied=recovery.tidied,
                )
    log.info(
        "data_dir_opened",
        clean=found.clean,
        adopted=found.adopted,
        logs=sum(each.log_count for each in persistence.log_dirs.values()),
        recovered=recovered,
        checked_bytes=checked,
        registry_cut_bytes=found.torn_bytes,
        strays=found.strays,
        missing=found.missing,
        dropped_configs=found.dropped_configs,
    )
