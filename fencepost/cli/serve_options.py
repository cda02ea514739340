"""The options of ``fencepost serve``: one table for the command, its help and its environment.

``serve`` reads it with argparse (`fencepost.cli.serve`), because typer would cost a third of
the start-up budget; help and completion read it with typer (`fencepost.cli.commands`).
"""

from typing import Final

from msgspec import Struct


class Option(Struct, frozen=True, kw_only=True):
    """One option of ``serve``, as text."""

    name: str
    """As written, without the dashes."""
    metavar: str
    help: str
    default: str | None = None
    unset: str | None = None
    """The effect of leaving it out, where it has no default."""
    repeated: bool = False
    """May be given more than once; its environment variable holds a list split by white space."""
    switch: bool = False
    """Needs no value; its environment variable holds ``true`` or ``false``."""

    @property
    def flag(self) -> str:
        """Such as ``--control-port``."""
        return f"--{self.name}"

    @property
    def variable(self) -> str:
        """The environment variable, such as ``FENCEPOST_CONTROL_PORT``."""
        return f"FENCEPOST_{self.key.upper()}"

    @property
    def key(self) -> str:
        """The name as a Python identifier."""
        return self.name.replace("-", "_")


SERVE_OPTIONS: Final = (
    Option(
        name="brokers",
        metavar="N",
        unset="1, or one for each of --broker-ids",
        help="The number of brokers; their ids are 1..N unless they are chosen.",
    ),
    Option(
        name="broker-ids",
        metavar="ID,ID,...",
        unset="1..N",
        help="The ids of the brokers, such as 0,1,2.",
    ),
    Option(
        name="controller-ids",
        metavar="ID,ID,...",
        unset="a broker is the only one",
        help="The node ids of the quorum's controllers as clients are shown them, such as 3000, the"
        " active one first. One that is a broker's as well is that broker, which has both roles.",
    ),
    Option(
        name="controller-port",
        metavar="PORT",
        unset="no listener",
        help="The port on which the controller listens for tools with --bootstrap-controller; 0"
        " picks a free one. --listener CONTROLLER://HOST:PORT stands in its place.",
    ),
    Option(name="host", metavar="HOST", default="127.0.0.1", help="The address to listen on."),
    Option(
        name="port",
        metavar="PORT",
        default="9092",
        help="The i-th broker in the order of ids listens on PORT + i - 1; 0 picks free ports.",
    ),
    Option(
        name="advertise",
        metavar="HOST[:PORT]",
        unset="the address they reached",
        help="The address that brokers advertise to clients; the i-th one's port is PORT + i - 1,"
        " or the one it listens on. {broker} and {port} stand for its id and that port.",
    ),
    Option(
        name="listener",
        metavar="NAME://HOST:PORT[,advertised=HOST:PORT]",
        unset="PLAINTEXT, of --host and --port",
        repeated=True,
        help="A listener of each broker, in place of --host and --port, counted on as these are;"
        " its clients are told what it advertises. The first is the bootstrap. May be repeated.",
    ),
    Option(
        name="control-port",
        metavar="PORT",
        default="9644",
        help="The port of the HTTP control API; 0 picks a free one.",
    ),
    Option(
        name="control-host",
        metavar="HOST",
        default="127.0.0.1",
        help="The address that the control API listens on. On any but the loopback it needs a"
        " token.",
    ),
    Option(
        name="control-token",
        metavar="TOKEN",
        unset="none on the loopback, else a new one",
        help="What every request to the control API has to carry, but for /healthz.",
    ),
    Option(
        name="control-token-file",
        metavar="FILE",
        unset="none",
        help="Read the token from this file, unless it is given.",
    ),
    Option(
        name="max-memory",
        metavar="SIZE",
        unset="half of what there is",
        help="What logs in memory may take together, such as 512m or 2g, or none for no limit;"
        " beyond it Produce is answered with POLICY_VIOLATION.",
    ),
    Option(
        name="data-dir",
        metavar="DIR",
        unset="none, in memory",
        help="Keep logs and metadata in this directory, and start from its content;"
        " it may be the log directory of a Kafka.",
    ),
    Option(
        name="fsync",
        metavar="",
        default="false",
        switch=True,
        help="Force every append to disk before it is answered, so that it outlives the machine.",
    ),
    Option(
        name="accept-data-loss",
        metavar="",
        default="false",
        switch=True,
        help="Serve partitions of the data directory whose files miss records that they had;"
        " without it they stay offline until the files are restored.",
    ),
    Option(
        name="remote",
        metavar="URL",
        unset="none",
        help="Let tiered topics move their segments there: memory:, file:///FOLDER, or s3://BUCKET"
        " with a prefix or without; what else S3 needs is read from AWS_ENDPOINT and the like.",
    ),
    Option(
        name="topic",
        metavar="NAME[:PARTITIONS[:RF]][,KEY=VALUE...]",
        repeated=True,
        help="Create this topic at the start, with its configs, unless it exists. May be repeated.",
    ),
    Option(
        name="config",
        metavar="KEY=VALUE",
        repeated=True,
        help="Set a broker config by Kafka's own name. May be repeated.",
    ),
    Option(
        name="kafka-env",
        metavar="",
        default="false",
        switch=True,
        help="Read the variables of Kafka's images too, KAFKA_NUM_PARTITIONS for num.partitions,"
        " KAFKA_LISTENERS and KAFKA_ADVERTISED_LISTENERS among them. An option comes before them.",
    ),
    Option(
        name="broker-config",
        metavar="ID:KEY=VALUE",
        repeated=True,
        help="Set a config of a single broker, or of the active one of --controller-ids, instead of"
        " what --config says. May be repeated.",
    ),
    Option(
        name="feature",
        metavar="NAME=LEVEL",
        repeated=True,
        unset="the highest",
        help="Start with this level of a feature, such as metadata.version=20, as kafka-storage"
        " format does; one that is not given has the level that the metadata.version brings. May"
        " be repeated.",
    ),
    Option(
        name="strict-configs",
        metavar="",
        default="false",
        switch=True,
        help="Refuse configs that have no effect, from clients too, and names that Kafka does not"
        " have, instead of warning of them.",
    ),
    Option(
        name="racks",
        metavar="R1,R2,...",
        unset="broker.rack's",
        help="The rack of each broker in the order of ids, repeated from the first where there are"
        " fewer.",
    ),
    Option(
        name="log-dirs",
        metavar="N",
        default="1",
        help="How many log directories each broker has, between which replicas can be moved.",
    ),
    Option(
        name="api-max",
        metavar="API=VERSION",
        repeated=True,
        help="Serve an API, by name or key, up to this version only. May be repeated.",
    ),
    Option(
        name="like-kafka",
        metavar="RELEASE",
        unset="the newest",
        help="Serve the APIs and versions that this release of Kafka did, such as 2.0; --api-max"
        " has the last word.",
    ),
    Option(
        name="trace",
        metavar="DIR",
        unset="none",
        help="Write every request with its answer, and every event, to files in this directory, a"
        " line of JSON each.",
    ),
    Option(
        name="trace-files",
        metavar="N",
        unset="all of them",
        help="How many files of --trace to keep, the newest; each has some 64 MiB.",
    ),
    Option(
        name="clock",
        metavar="real|manual",
        default="real",
        help="The cluster's clock: a manual one stands still until a test advances it.",
    ),
    Option(
        name="conformance",
        metavar="kip|apache",
        default="kip",
        help="Where a KIP's text and Apache Kafka's code differ: which one to follow.",
    ),
    Option(
        name="dialect",
        metavar="NAME",
        unset="none",
        help="Serve the schemas of a proposal that Kafka does not have, kip-320-draft, to clients"
        " that ask for them.",
    ),
    Option(
        name="seed",
        metavar="N",
        unset="a new one every time",
        help="Draw ids and other random choices from this seed.",
    ),
    Option(
        name="log-level",
        metavar="debug|info|warning|error",
        default="info",
        help="The level of the log on standard error; single requests are at debug.",
    ),
    Option(
        name="stop-with-stdin",
        metavar="",
        default="false",
        switch=True,
        help="Stop when standard input ends, and so when the parent process ends, however it ends."
        " A line 'reset' on it is a reset, answered by the ready line once more.",
    ),
)
