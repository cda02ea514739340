"""Broker configs of the controller and its quorum.

Its rows are read by `fencepost.broker.configs.tables.read`.
"""

from typing import Final

TABLE: Final = """\
broker.heartbeat.interval.ms INT 2000 inert:controller
    How often a broker sends the controller a sign of life, in ms.
broker.session.timeout.ms INT 9000 >=1 acts
    Silence after which the controller fences a broker, in ms.
controller.listener.names LIST - fixed:roles
    Listeners of the controller.
controller.performance.always.log.threshold.ms LONG 2000 >=0 hidden inert:controller
    Duration from which every controller event is logged, in ms.
controller.performance.sample.period.ms LONG 60000 >=100 hidden inert:controller
    How often controller timings are logged, in ms.
controller.quorum.append.linger.ms INT 25 >=0 inert:quorum
    How long the quorum's leader gathers writes, in ms.
controller.quorum.auto.join.enable BOOLEAN false inert:quorum
    Whether a new controller joins the voters by itself.
controller.quorum.bootstrap.servers LIST "" fixed:roles
    Where the controllers are found first.
controller.quorum.election.backoff.max.ms INT 1000 >=0 inert:quorum
    Longest wait before another election of the quorum, in ms.
controller.quorum.election.timeout.ms INT 1000 >=0 inert:quorum
    How long a voter waits for a leader before it stands itself, in ms.
controller.quorum.fetch.max.bytes INT 1048576 >=1 inert:quorum
    Most bytes of the metadata log in one fetch.
controller.quorum.fetch.snapshot.max.bytes INT 1048576 >=1 inert:quorum
    Most bytes of a snapshot in one fetch.
controller.quorum.fetch.timeout.ms INT 2000 >=0 inert:quorum
    How long a voter goes without a successful fetch before it stands itself, in ms.
controller.quorum.request.timeout.ms INT 2000 >=0 inert:quorum
    How long a member of the quorum waits for an answer, in ms.
controller.quorum.retry.backoff.ms INT 20 >=0 inert:quorum
    Wait before a failed request within the quorum is repeated, in ms.
controller.quorum.voters LIST "" fixed:roles
    The voters of a static quorum, as id@host:port.
controller.socket.timeout.ms INT 30000 inert:controller
    How long the controller's connections wait for an answer, in ms.
initial.broker.registration.timeout.ms INT 60000 inert:controller
    How long a starting broker tries to register, in ms.
internal.metadata.delete.delay.millis LONG 60000 hidden inert:quorum
    How long a deleted file of the metadata log remains, in ms.
internal.metadata.log.segment.bytes INT - hidden inert:quorum
    Segment size of the metadata log in Kafka's own tests, in bytes.
internal.metadata.max.batch.size.in.bytes INT 8388608 hidden inert:quorum
    Largest batch of the metadata log in Kafka's own tests, in bytes.
metadata.log.dir STRING - inert:quorum
    Directory of the metadata log.
metadata.log.max.record.bytes.between.snapshots LONG 20971520 >=1 inert:quorum
    Bytes of the metadata log before a new snapshot.
metadata.log.max.snapshot.interval.ms LONG 3600000 >=0 inert:quorum
    Age of the last snapshot before a new one, in ms.
metadata.log.segment.bytes INT 1073741824 >=8388608 inert:quorum
    Segment size of the metadata log, in bytes.
metadata.log.segment.ms LONG 604800000 inert:quorum
    Age at which a segment of the metadata log is closed, in ms.
metadata.max.idle.interval.ms INT 500 >=0 inert:quorum
    How often an idle controller writes a no-op, in ms.
metadata.max.retention.bytes LONG 104857600 inert:quorum
    Bytes of metadata log and snapshots that are kept.
metadata.max.retention.ms LONG 604800000 inert:quorum
    How long metadata log and snapshots are kept, in ms.
"""
