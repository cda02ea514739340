"""The options of serve: from the command line, from the environment, and what is refused."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from fencepost.broker.controller.topic_changes import NewTopic
from fencepost.broker.node.cluster import Conformance
from fencepost.broker.server.run import NO_LIMIT, ClockMode, ServeOptions
from fencepost.cli.option_values import OptionError
from fencepost.cli.serve import parse_options
from fencepost.cli.serve_options import SERVE_OPTIONS
from fencepost.protocol.apis import release_ceilings
from fencepost.protocol.codec.drafts import KIP_320_DRAFT
from fencepost.protocol.listener_text import AdvertisedAddress, ListenerSpec


def test_nothing_given_is_the_defaults() -> None:
    assert parse_options(["--seed", "0"], {}) == ServeOptions(seed=0)


EVERYTHING: Final = ServeOptions(
    brokers=3,
    broker_ids=(0, 1, 2),
    controller_ids=(3000, 3001),
    controller=ListenerSpec(
        name="CONTROLLER", host="0.0.0.0", port=0, advertised=AdvertisedAddress(host="kafka.test")
    ),
    listeners=(
        ListenerSpec(
            host="0.0.0.0",
            port=19092,
            advertised=AdvertisedAddress(host="kafka.test", port="29092"),
        ),
    ),
    control_port=19644,
    control_host="0.0.0.0",
    control_token="a-token.of~ours/=",
    max_memory=2 << 30,
    data_dir=Path("/data/kafka"),
    fsync=True,
    accept_data_loss=True,
    remote="s3://bucket/kafka?region=eu",
    topics=(
        NewTopic(name="one", partitions=4, replication_factor=2, configs={}),
        NewTopic(
            name="two",
            partitions=5,
            replication_factor=2,
            configs={"cleanup.policy": "compact,delete", "segment.ms": "1000"},
        ),
        NewTopic(name="three", partitions=2, replication_factor=3, configs={}),
    ),
    configs={
        "num.partitions": "4",
        "default.replication.factor": "2",
        "log.cleanup.policy": "compact,delete",
        "remote.log.storage.system.enable": "true",
    },
    broker_configs={
        2: {"message.max.bytes": "5", "broker.rack": "a:b"},
        0: {"log.retention.ms": "1"},
    },
    racks=("east", "west"),
    log_dirs=3,
    api_max=release_ceilings("4.1")
    | {"fetch": 8, "list_offsets": 3, "metadata": 6, "offset_for_leader_epoch": 2},
    clock=ClockMode.MANUAL,
    conformance=Conformance.APACHE,
    dialect=KIP_320_DRAFT,
    strict_configs=True,
    log_level="warning",
    seed=7,
    features={"metadata.version": 29, "kraft.version": 0},
    stop_with_stdin=True,
    trace=Path("traces/today"),
    trace_files=2,
)


def test_every_option() -> None:
    arguments = (
        "--brokers 3 --broker-ids 0,2,1 --controller-ids 3000,3001 --host 0.0.0.0 --port 19092"
        " --controller-port 0"
        " --advertise kafka.test:29092 --control-port 19644"
        " --control-host 0.0.0.0 --control-token a-token.of~ours/= --control-token-file none.txt"
        " --max-memory 2g --data-dir /data/kafka --fsync --accept-data-loss"
        " --remote s3://bucket/kafka?region=eu"
        " --topic one --topic two:5,cleanup.policy=compact,delete,segment.ms=1000"
        " --topic three:2:3 --strict-configs"
        " --config num.partitions=4 --config default.replication.factor=2"
        " --config log.cleanup.policy=compact,delete --broker-config 2:message.max.bytes=5"
        " --broker-config 2:broker.rack=a:b --broker-config 0:log.retention.ms=1"
        " --feature metadata.version=29 --feature kraft.version=0"
        " --racks east,west --log-dirs 3 --api-max fetch=8 --api-max ListOffsets=3"
        " --api-max 3=6"
        " --api-max Offset-For-Leader-Epoch=2 --like-kafka v4.1"
        " --clock manual --conformance apache --dialect kip-320-draft --seed 7"
        " --log-level warning --stop-with-stdin --kafka-env --trace traces/today --trace-files 2"
    ).split()
    assert parse_options(arguments, {}) == EVERYTHING


def test_every_option_from_the_environment() -> None:
    environment = {
        "FENCEPOST_BROKERS": "3",
        "FENCEPOST_BROKER_IDS": "0,1,2",
        "FENCEPOST_CONTROLLER_IDS": "3000,3001",
        "FENCEPOST_CONTROLLER_PORT": "0",
        "FENCEPOST_HOST": "0.0.0.0",
        "FENCEPOST_PORT": "19092",
        "FENCEPOST_ADVERTISE": "kafka.test:29092",
        "FENCEPOST_CONTROL_PORT": "19644",
        "FENCEPOST_CONTROL_HOST": "0.0.0.0",
        "FENCEPOST_CONTROL_TOKEN": "a-token.of~ours/=",
        "FENCEPOST_CONTROL_TOKEN_FILE": "none.txt",
        "FENCEPOST_MAX_MEMORY": "2GiB",
        "FENCEPOST_DATA_DIR": "/data/kafka",
        "FENCEPOST_FSYNC": "true",
        "FENCEPOST_ACCEPT_DATA_LOSS": "true",
        "FENCEPOST_REMOTE": "s3://bucket/kafka?region=eu",
        "FENCEPOST_TOPIC": "one two:5,cleanup.policy=compact,delete,segment.ms=1000\nthree:2:3",
        "FENCEPOST_STRICT_CONFIGS": "true",
        "FENCEPOST_CONFIG": "num.partitions=4 default.replication.factor=2"
        " log.cleanup.policy=compact,delete",
        "FENCEPOST_BROKER_CONFIG": "2:message.max.bytes=5 2:broker.rack=a:b\n0:log.retention.ms=1",
        "FENCEPOST_FEATURE": "metadata.version=29 kraft.version=0",
        "FENCEPOST_RACKS": "east,west",
        "FENCEPOST_LOG_DIRS": "3",
        "FENCEPOST_API_MAX": "fetch=8 LIST_OFFSETS=3\n3=6 offset_for_leader_epoch=2",
        "FENCEPOST_LIKE_KAFKA": "4.1.0",
        "FENCEPOST_CLOCK": "manual",
        "FENCEPOST_CONFORMANCE": "apache",
        "FENCEPOST_DIALECT": "kip-320-draft",
        "FENCEPOST_SEED": "7",
        "FENCEPOST_LOG_LEVEL": "warning",
        "FENCEPOST_STOP_WITH_STDIN": "true",
        "FENCEPOST_KAFKA_ENV": "true",
        "FENCEPOST_TRACE": "traces/today",
        "FENCEPOST_TRACE_FILES": "2",
    }
    others = {option.variable for option in SERVE_OPTIONS} - set(environment)
    assert others == {"FENCEPOST_LISTENER"}, "which excludes some of them"
    assert parse_options([], environment) == EVERYTHING


def test_an_argument_beats_the_environment() -> None:
    environment = {"FENCEPOST_BROKERS": "5", "FENCEPOST_TOPIC": "a b"}
    options = parse_options(["--brokers=2", "--topic", "c"], environment)
    assert options.brokers == 2
    assert [topic.name for topic in options.topics] == ["c"]


def test_an_empty_variable_is_as_good_as_none() -> None:
    environment = {"FENCEPOST_BROKERS": "", "FENCEPOST_TOPIC": "", "FENCEPOST_SEED": "0"}
    assert parse_options([], environment) == ServeOptions(seed=0)


def test_a_seed_that_is_not_given_is_drawn() -> None:
    assert parse_options([], {}).seed != parse_options([], {}).seed


def test_the_last_of_two_holds() -> None:
    assert parse_options("--port 1 --port 2".split(), {}).listeners[0].port == 2


def test_configs_without_effect_and_of_plugins_are_taken() -> None:
    arguments = "--config num.io.threads=3 --config my.plugin=x --topic t,segment.jitter.ms=7"
    options = parse_options(arguments.split(), {})
    assert options.configs == {"num.io.threads": "3", "my.plugin": "x"}
    assert [topic.configs for topic in options.topics] == [{"segment.jitter.ms": "7"}]


def test_with_files_the_configs_of_files_act() -> None:
    arguments = "--strict-configs --data-dir d --config log.flush.interval.ms=1"
    options = parse_options(arguments.split(), {})
    assert options.configs == {"log.flush.interval.ms": "1"}
    assert options.data_dir == Path.cwd() / "d"


def test_a_refused_tier_keeps_its_secret() -> None:
    with pytest.raises(OptionError) as refused:
        parse_options(["--remote", "s3:?secret_access_key=hush"], {})
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize(
    ("size", "count"),
    [("none", NO_LIMIT), ("4096", 4096), ("512m", 512 << 20), ("1G", 1 << 30), ("64KiB", 64 << 10)],
)
def test_a_size_of_memory(size: str, count: int) -> None:
    assert parse_options(["--max-memory", size], {}).max_memory == count


@pytest.mark.parametrize(
    ("arguments", "host", "port", "advertised"),
    [
        ("--controller-port 9093", "127.0.0.1", 9093, None),
        ("--controller-port 9093 --advertise h", "127.0.0.1", 9093, AdvertisedAddress(host="h")),
        (
            "--controller-port 9093 --advertise h:29092",
            "127.0.0.1",
            9093,
            AdvertisedAddress(host="h"),
        ),
        (
            "--controller-port 9093 --advertise h:1{port}",
            "127.0.0.1",
            9093,
            AdvertisedAddress(host="h", port="1{port}"),
        ),
        (
            "--port 0 --listener controller://:9093,advertised=h:29093",
            "0.0.0.0",
            9093,
            AdvertisedAddress(host="h", port="29093"),
        ),
    ],
)
def test_the_controllers_listener(
    arguments: str, host: str, port: int, advertised: AdvertisedAddress | None
) -> None:
    options = parse_options(arguments.split(), {})
    assert options.controller == ListenerSpec(
        name="CONTROLLER", host=host, port=port, advertised=advertised
    )
    assert [each.name for each in options.listeners] == ["PLAINTEXT"]


def test_a_controller_port_on_the_command_line_beats_listeners_from_the_environment() -> None:
    environment = {"FENCEPOST_LISTENER": "A://h:1 CONTROLLER://h:2"}
    options = parse_options(["--controller-port=3"], environment)
    assert options.controller == ListenerSpec(name="CONTROLLER", host="h", port=3)
    assert parse_options([], environment).controller == replace(options.controller, port=2)


def test_broker_ids_are_in_ascending_order_and_as_many_as_there_are_brokers() -> None:
    for arguments in ("--broker-ids 2,0,1", "--brokers 3 --broker-ids 0,1,2"):
        options = parse_options(arguments.split(), {})
        assert (options.brokers, options.ids) == (3, (0, 1, 2))
    assert list(parse_options(["--brokers", "3"], {}).ids) == [1, 2, 3]
    assert list(parse_options([], {}).ids) == [1]
    assert parse_options([], {"FENCEPOST_BROKER_IDS": "0,7"}).ids == (0, 7)


def test_a_switch_needs_no_value() -> None:
    assert parse_options("--stop-with-stdin --port 1".split(), {}).stop_with_stdin
    assert not parse_options(["--stop-with-stdin=false"], {}).stop_with_stdin


def test_a_config_value_may_be_empty() -> None:
    assert parse_options(["--config", "log.cleanup.policy="], {}).configs == {
        "log.cleanup.policy": ""
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--brokers 0", "--brokers: '0' is not a number from 1 to 1000"),
        ("--brokers 1001", "--brokers: '1001' is not a number from 1 to 1000"),
        ("--brokers three", "--brokers: 'three' is not a number from 1 to 1000"),
        ("--brokers 2 --broker-ids 0", "--brokers: '2' is not the number of the --broker-ids, 1"),
        ("--broker-ids 0,-1", "--broker-ids: '-1' is not a number from 0 to 2147483647"),
        ("--broker-ids 2147483648", "'2147483648' is not a number from 0 to 2147483647"),
        ("--broker-ids 1,0,1", "--broker-ids: '1' is given a second time"),
        ("--broker-ids 0,", "--broker-ids: '' is not a number from 0 to 2147483647"),
        ("--controller-ids=", "--controller-ids: '' is not a number from 0 to 2147483647"),
        ("--broker-ids 0,5 --control-port 9093", "control port 9093 is also broker 5's port"),
        ("--broker-ids 0,5 --topic t:1:3", "is larger than the number of brokers, 2"),
        ("--port 65536", "--port: '65536' is not a number from 0 to 65535"),
        ("--port -1", "--port: '-1' is not a number from 0 to 65535"),
        ("--control-port x", "--control-port: 'x' is not a number from 0 to 65535"),
        ("--brokers 3 --port 65534", "3 brokers from port 65534 on would need port 65536"),
        ("--brokers 3 --control-port 9094", "control port 9094 is also broker 3's port"),
        ("--brokers 3 --controller-port 9093", "controller port 9093 is also broker 2's port"),
        ("--controller-port 9644", "control port 9644 is also the controller's port"),
        (
            "--advertise kafka:3{port} --controller-port 39093",
            "the controller would advertise port 339093, which is none",
        ),
        ("--listener CONTROLLER://:0,advertised=h:4{port}", "CONTROLLER has free ports, and so no"),
        (
            "--listener CONTROLLER://:9093 --controller-port 9093",
            "--listener CONTROLLER:// stands in place of --controller-port",
        ),
        ("--controller-port -1", "--controller-port: '-1' is not a number from 0 to 65535"),
        ("--host=", "--host: '' is not a host"),
        ("--host kafka:9092", "--host: 'kafka:9092' is not a host: a name or an address, without"),
        ("--advertise http://x", "--advertise: 'http://x' is not HOST or HOST:PORT: a name or an"),
        ("--advertise kafka:", "--advertise: 'kafka:' is not HOST or HOST:PORT"),
        ("--advertise kafka:0", "--advertise: 'kafka:0' has a port that is not a number from 1"),
        ("--advertise kafka:65536", "'kafka:65536' has a port that is not a number from 1 to 65"),
        (f"--advertise kafka:{'9' * 5000}", "has a port that is not a number from 1 to 65535"),
        ("--advertise kafka:1:2", "--advertise: 'kafka:1:2' is not HOST or HOST:PORT"),
        ("--advertise kafka-{id}", "is not HOST or HOST:PORT"),
        ("--advertise kafka:{id}", "{broker} and {port} may stand in it"),
        (
            "--advertise user@kafka",
            "--advertise: 'kafka' is not HOST or HOST:PORT: a name or an address, an IPv6 one in ",
        ),
        ("--advertise [kafka]:1", "--advertise: '[kafka]:1' is not HOST or HOST:PORT"),
        ("--advertise [::1]9092", "--advertise: '[::1]9092' is not HOST or HOST:PORT"),
        ("--advertise ::1%", "--advertise: '::1%' is not HOST or HOST:PORT"),
        (f"--advertise {'x' * 256}", "is not HOST or HOST:PORT"),
        (
            "--brokers 3 --advertise kafka:65534",
            "3 brokers from advertised port 65534 on would need port 65536; the last port is 65535",
        ),
        ("--advertise kafka:7{port}", "broker 1 would advertise port 79092, which is none"),
        (
            "--port 0 --advertise kafka:3{port}",
            "the listener PLAINTEXT has free ports, and so none for the {port} in what it adv",
        ),
        ("--listener A", "--listener: 'A' is not NAME://HOST:PORT[,advertised=HOST:PORT]"),
        ("--listener ://h:1", "--listener: '://h:1' is not NAME://HOST:PORT"),
        ("--listener A:9092", "--listener: 'A:9092' is not NAME://HOST:PORT"),
        ("--listener A://h/x:1", "--listener: 'A://h/x:1' is not NAME://HOST:PORT"),
        ("--listener A://h", "--listener: 'A://h' is not NAME://HOST:PORT"),
        ("--listener A://h:70000", "has a port that is not a number from 0 to 65535"),
        ("--listener A://h:1,advertise=x:1", "'A://h:1,advertise=x:1' is not NAME://HOST:PORT"),
        ("--listener A://h:1,advertised=http://x", "is not HOST or HOST:PORT"),
        ("--listener SSL://h:1", "has the security protocol SSL, and only PLAINTEXT is served"),
        ("--listener A://h:1 --listener a://h:3", "--listener: 'a://h:3' gives A a second time"),
        ("--listener A://h:1 --port 1", "--listener stands in place of --port"),
        ("--listener A://h:1 --host h --port 1", "--listener stands in place of --host and --port"),
        (
            "--brokers 3 --listener A://h:5 --listener B://h:7",
            "port 7 is needed by the listeners A and B",
        ),
        ("--listener A://h:5 --listener B://h:9644", "control port 9644 is also broker 1's port"),
        (
            "--brokers 2 --listener A://h:65535",
            "2 brokers from port 65535 on would need port 65536",
        ),
        (
            "--listener A://h:1,advertised=x:1 --advertise y:1",
            "--advertise: the listener A has an advertised= already",
        ),
        ("--config a=1 --config a=2", "--config: 'a=2' gives a a second time"),
        ("--api-max fetch=8 --api-max Fetch=9", "--api-max: 'Fetch=9' gives fetch a second time"),
        ("--topic :3", "--topic: ':3' does not name a topic: the empty string is not allowed"),
        ("--topic a/b", "--topic: 'a/b' does not name a topic: 'a/b' contains one or more"),
        ("--topic t:0", "--topic: 't:0' is not NAME[:PARTITIONS[:RF]]"),
        ("--topic t:1:1:1", "--topic: 't:1:1:1' is not NAME[:PARTITIONS[:RF]]"),
        ("--topic t:", "--topic: 't:' is not NAME[:PARTITIONS[:RF]]"),
        ("--topic t --topic t:2", "topic t is given twice"),
        ("--topic t:1:2", "replication factor 2 is larger than the number of brokers, 1"),
        ("--config num.partitions", "--config: 'num.partitions' is not KEY=VALUE"),
        ("--config =1", "--config: '=1' is not KEY=VALUE"),
        ("--broker-config a=1", "--broker-config: 'a=1' is not ID:KEY=VALUE"),
        ("--broker-config 1:a", "--broker-config: '1:a' is not ID:KEY=VALUE"),
        ("--broker-config 1:a=1 --broker-config 1:a=1", "'1:a=1' gives a a second time"),
        (
            "--broker-ids 0,5 --broker-config 1:num.partitions=1",
            "'1:num.partitions=1' is of no broker of this cluster, whose ids are 0, 5",
        ),
        (
            "--broker-config 1:num.partitions=x",
            "broker 1: Invalid value x for configuration num.partitions: Not a number of type INT",
        ),
        ("--broker-config 1:num.partition=1", "num.partition; did you mean num.partitions?"),
        (
            "--strict-configs --broker-config 1:node.id=7",
            "broker 1: Configuration node.id cannot be set in fencepost",
        ),
        ("--config num.partition=1", "num.partition; did you mean num.partitions?"),
        ("--strict-configs --config no.such=1", "Unknown config name: no.such"),
        ("--topic t,segment.ms", "--topic: 't,segment.ms' is not NAME[:PARTITIONS[:RF]][,KEY=VAL"),
        ("--topic t,x.ms=1", "--topic: topic t: Unknown topic config name: x.ms"),
        ("--topic t,segment.ms=1,segment.ms=2", "gives segment.ms a second time"),
        ("--topic t,segment.ms=0", "for configuration segment.ms: Value must be at least 1"),
        ("--strict-configs --topic t,flush.ms=7", "nothing is ever forced to disk"),
        ("--config log.cleaner.dedupe.buffer.size=1", "at least 1MB per cleaner thread"),
        ("--config num.partitions=many", "num.partitions"),
        ("--strict-configs --config log.dirs=/tmp/x", "log.dirs cannot be set in fencepost"),
        ("--racks east,", "--racks: 'east,' is not a list of racks, such as east,west"),
        ("--racks= ", "--racks: '' is not a list of racks, such as east,west"),
        ("--brokers 2 --racks a,b,c", "3 racks are too many for 2 brokers"),
        ("--api-max fetch", "--api-max: 'fetch' is not API=VERSION, such as fetch=8"),
        ("--api-max =8", "--api-max: '=8' is not API=VERSION, such as fetch=8"),
        ("--api-max fetch=3", "'fetch=3' is not a version of Fetch from 4 to 18"),
        ("--api-max fetch=19", "'fetch=19' is not a version of Fetch from 4 to 18"),
        ("--api-max fetch=", "'fetch=' is not a version of Fetch from 4 to 18"),
        ("--api-max Produce=2", "'Produce=2' is not a version of Produce from 3 to 13"),
        ("--api-max 999=1", "'999=1' names no API that is served; fetch is 1"),
        ("--api-max feth=8", "'feth=8' names no API that is served; did you mean fetch?"),
        (
            "--api-max OffsetsForLeaderEpoch=3",
            "names no API that is served; did you mean offset_for_leader_epoch?",
        ),
        (
            "--api-max metadata=9 --api-max produce=13",
            "needs the ids of topics, which clients learn from Metadata 10 on, and that is",
        ),
        ("--like-kafka 2.0 --api-max fetch=13", "'fetch=13' needs the ids of topics"),
        ("--api-max zzz=8", "--api-max: 'zzz=8' names no API that is served"),
        ("--like-kafka 2", "--like-kafka: '2' is not a release of Kafka, such as 2.0"),
        ("--like-kafka 2.9", "'2.9' is not a release that is known; they are 0.10.0, 0.10.1, "),
        ("--clock slow", "--clock: 'slow' is not real or manual"),
        ("--conformance strict", "--conformance: 'strict' is not kip or apache"),
        ("--dialect kip-320", "--dialect: 'kip-320' is not kip-320-draft"),
        ("--max-memory 0", "--max-memory: '0' is not a size in bytes or with k, m or g"),
        ("--max-memory half", "--max-memory: 'half' is not a size in bytes or with k, m or g"),
        ("--max-memory=-1m", "--max-memory: '-1m' is not a size in bytes or with k, m or g"),
        ("--log-level loud", "--log-level: 'loud' is not debug or info or warning or error"),
        ("--seed -1", "--seed: '-1' is not a number from 0 on"),
        ("--trace-files 2", "--trace-files: there is no --trace to have files"),
        ("--trace /tmp --trace-files 0", "--trace-files: '0' is not a number from 1 on"),
        ("--stop-with-stdin=yes", "--stop-with-stdin: 'yes' is not true or false"),
        ("--brokers", "argument --brokers: expected one argument"),
        ("--log-dirs 65", "--log-dirs: '65' is not a number from 1 to 64"),
        ("--broker 3", "unrecognized arguments: --broker 3"),
        ("3", "unrecognized arguments: 3"),
        ("--directory /tmp", "unrecognized arguments: --directory /tmp"),
        ("--fsync", "--fsync: there is no --data-dir to have files that it could force"),
        (
            "--accept-data-loss",
            "--accept-data-loss: there is no --data-dir that could miss records",
        ),
        ("--data-dir=", "--data-dir: '' is not the path of a directory; . is the present one"),
        ("--config flush.ms=1", "flush.ms; the broker config is log.flush.interval.ms"),
        (
            "--strict-configs --config log.flush.interval.ms=1",
            "nothing is ever forced to disk without --data-dir",
        ),
        ("--seed 1 --remote file:///tier", "draws the same topic ids again"),
        ("--remote ftp://x", "is not memory:, file:///FOLDER or s3://BUCKET[/PREFIX]"),
        ("--remote /var/tier", "--remote: '/var/tier' is not memory:, file:///FOLDER"),
        (
            "--remote memory: --config remote.log.storage.system.enable=false",
            "--remote: remote.log.storage.system.enable=false says that there is no tier",
        ),
        (
            "--strict-configs --data-dir /tmp --config log.dirs=/x",
            "--data-dir says where logs are kept",
        ),
    ],
)
def test_what_serve_refuses(arguments: str, message: str) -> None:
    with pytest.raises(OptionError, match=re.escape(message)):
        parse_options(arguments.split(), {})


@pytest.mark.parametrize(
    "host", ["::1", "fe80::1%eth0", "192.0.2.1", "kafka", "kafka_1.test.", "käfka", "x" * 255]
)
def test_a_name_and_an_address_are_hosts(host: str) -> None:
    advertised = parse_options(["--advertise", host], {}).listeners[0].advertised
    assert advertised == AdvertisedAddress(host=host)


LISTENERS: Final = (
    ListenerSpec(name="INSIDE", host="0.0.0.0", port=9092),
    ListenerSpec(
        name="OUTSIDE",
        host="::1",
        port=9192,
        advertised=AdvertisedAddress(host="kafka-{broker}.test", port="3{port}"),
    ),
)


def test_listeners_of_the_command_line_and_of_the_environment() -> None:
    texts = ["INSIDE://:9092", "outside://[::1]:9192,advertised=kafka-{broker}.test:3{port}"]
    typed = [f"--listener={text}" for text in texts]
    host = {"FENCEPOST_HOST": "0.0.0.0", "FENCEPOST_PORT": "1"}
    assert parse_options(typed, host).listeners == LISTENERS, "the host and the port yield"
    listener = {"FENCEPOST_LISTENER": " ".join(texts)}
    assert parse_options([], host | listener).listeners == LISTENERS
    single = parse_options(["--port", "7"], host | listener).listeners
    assert single == (ListenerSpec(host="0.0.0.0", port=7),), "an argument beats the environment"


def test_what_is_advertised_is_that_of_the_first_listener_without_its_own() -> None:
    typed = ["--listener", "A://h:1", "--listener", "B://h:3", "--advertise", "[::1]:7"]
    first, second = parse_options(typed, {}).listeners
    assert (first.advertised, second.advertised) == (AdvertisedAddress(host="::1", port="7"), None)
    own = parse_options(["--listener", "A://h:1,advertised=x"], {"FENCEPOST_ADVERTISE": "y"})
    assert own.listeners[0].advertised == AdvertisedAddress(host="x")


def test_a_refusal_names_the_variable_that_is_wrong() -> None:
    with pytest.raises(OptionError, match=r"^FENCEPOST_PORT: 'many' is not a number from 0"):
        parse_options([], {"FENCEPOST_PORT": "many"})


def test_a_free_port_never_meets_the_control_port() -> None:
    options = parse_options("--port 0 --brokers 3 --control-port 1".split(), {})
    assert options.listeners[0].port == 0
