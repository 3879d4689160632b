"""A Kafka broker: one KRaft node of this machine, real in everything but the number of its replicas."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from devtools.certificates import Certificate
from devtools.jars import KAFKA_VERSION, broker_class_path
from devtools.processes import LOOPBACK, Process, ServerFailedError, accepts_connections, free_ports, wait_until
from sink_job.engine.cache import cache_dir

_START_SECONDS = 120
_LARGEST_RECORD = 16 << 20
_SHORT_LIVED = ("-XX:TieredStopAtLevel=1",)

_DEFAULTS: Mapping[str, str] = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    # After a kill the broker waits until its former self has timed out.
    "broker.session.timeout.ms": "5000",
    "log.retention.ms": "-1",
    "log.segment.delete.delay.ms": "1000",
    "log.cleaner.backoff.ms": "200",
    "log.initial.task.delay.ms": "500",
    "message.max.bytes": str(_LARGEST_RECORD),
    "replica.fetch.max.bytes": str(_LARGEST_RECORD),
    "socket.request.max.bytes": str(256 << 20),
}
_PROTOCOLS = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL,SSL:SSL"


class KafkaBroker:
    """A broker over `directory`: its data, its log and its ports stay through stop, kill and start.

    `settings` are broker properties over the defaults above. With `users` (name to password) there is a second
    listener with SASL/PLAIN at `sasl_bootstrap`, encrypted where there is a `certificate`. With `clients`, an
    authority, there is a third one at `tls_bootstrap`, which asks clients for a certificate. `heap` as a JVM writes it.
    `short_lived` compiles less: two thirds of the CPU at the start, at the price of speed later. `host`: the address of
    this machine where clients find it. `jvm`: further options of the JVM; `classes`: further jars.
    """

    def __init__(
        self,
        directory: Path,
        *,
        settings: Mapping[str, str] | None = None,
        users: Mapping[str, str] | None = None,
        certificate: Certificate | None = None,
        clients: Path | None = None,
        heap: str = "512m",
        with_parent: bool = True,
        short_lived: bool = False,
        host: str = LOOPBACK,
        jvm: Sequence[str] = (),
        classes: Sequence[Path] = (),
    ) -> None:
        self.directory = directory
        self.host = host
        self.port, self.controller_port, self.sasl_port, self.tls_port = free_ports(4)
        self.heap = heap
        self.process: Process | None = None
        self._settings = settings or {}
        self._users = users or {}
        self._certificate = certificate
        self._clients = clients
        self._with_parent = with_parent
        self._classes = classes
        self._options = (*(_SHORT_LIVED if short_lived else ()), *jvm)

    @property
    def bootstrap(self) -> str:
        """host:port for clients."""
        return f"{self.host}:{self.port}"

    @property
    def sasl_bootstrap(self) -> str:
        """host:port for clients that log in; only with `users`."""
        return f"{self.host}:{self.sasl_port}"

    @property
    def tls_bootstrap(self) -> str:
        """host:port for clients with a certificate; only with `clients`."""
        return f"{self.host}:{self.tls_port}"

    @property
    def log(self) -> Path:
        return self.directory / "broker.log"

    def start(self) -> None:
        """Starts the broker and returns when it answers; `ServerFailedError` carries the end of its log."""
        properties = self._write_properties()
        command = java_command(
            "kafka.Kafka", str(properties), options=[f"-Xmx{self.heap}", *self._options], more=self._classes
        )
        process = Process(command, log=self.log, with_parent=self._with_parent, cwd=self.directory)
        self.process = process
        try:
            wait_until(
                lambda: accepts_connections(self.port, self.host),
                "Kafka",
                seconds=_START_SECONDS,
                unless=process.failed,
            )
            wait_until(self._answers, "Kafka", seconds=_START_SECONDS, unless=process.failed)
        except ServerFailedError:
            process.kill()
            raise

    def stop(self) -> None:
        """A clean shutdown: logs are flushed and closed."""
        if self.process:
            self.process.terminate(_START_SECONDS)
            self.process = None

    def kill(self) -> None:
        """As a power cut would: the broker recovers its logs at the next start."""
        if self.process:
            self.process.kill()
            self.process = None

    def restart(self) -> None:
        """Stop and start, on the same data and ports."""
        self.stop()
        self.start()

    def _answers(self) -> bool:
        try:
            return bool(
                AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0}).list_topics(timeout=2).brokers
            )
        except KafkaException:
            return False

    def _write_properties(self) -> Path:
        data = self.directory / "data"
        if not data.exists():
            _format(data)
        sasl = "SASL_SSL" if self._certificate else "SASL_PLAINTEXT"
        listeners = {"PLAINTEXT": self.port} | ({sasl: self.sasl_port} if self._users else {})
        listeners |= {"SSL": self.tls_port} if self._clients else {}
        addresses = [f"{name}://{self.host}:{port}" for name, port in listeners.items()]
        settings = {
            **_DEFAULTS,
            "log.dirs": str(data),
            "controller.quorum.voters": f"1@127.0.0.1:{self.controller_port}",
            "listeners": ",".join([*addresses, f"CONTROLLER://127.0.0.1:{self.controller_port}"]),
            "advertised.listeners": ",".join(addresses),
            "listener.security.protocol.map": _PROTOCOLS,
            **(_login(sasl, self._users) if self._users else {}),
            **(_tls(self._certificate) if self._certificate else {}),
            **(_mutual_tls(self._clients) if self._clients else {}),
            **self._settings,
        }
        path = self.directory / "server.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        return path


@contextlib.contextmanager
def kafka_broker(
    *,
    settings: Mapping[str, str] | None = None,
    users: Mapping[str, str] | None = None,
    certificate: Certificate | None = None,
    clients: Path | None = None,
    heap: str = "512m",
    host: str = LOOPBACK,
    jvm: Sequence[str] = (),
    classes: Sequence[Path] = (),
) -> Iterator[KafkaBroker]:
    """A running broker with data of its own in a temporary folder; at the end it is killed and the folder removed."""
    with tempfile.TemporaryDirectory(prefix="s3sink-kafka-", ignore_cleanup_errors=True) as name:
        broker = KafkaBroker(
            Path(name),
            settings=settings,
            users=users,
            certificate=certificate,
            clients=clients,
            heap=heap,
            short_lived=True,
            host=host,
            jvm=jvm,
            classes=classes,
        )
        try:
            broker.start()
            yield broker
        finally:
            broker.kill()


def _login(listener: str, users: Mapping[str, str]) -> dict[str, str]:
    entries = " ".join(f'user_{name}="{password}"' for name, password in users.items())
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return {
        "sasl.enabled.mechanisms": "PLAIN",
        f"listener.name.{listener.lower()}.plain.sasl.jaas.config": f"{module} required {entries};",
    }


def _tls(certificate: Certificate) -> dict[str, str]:
    """The key store as PEM, both in one file, written beside the certificate."""
    both = certificate.key.with_suffix(".pem")
    both.touch(mode=0o600)
    both.write_bytes(certificate.key.read_bytes() + certificate.certificate.read_bytes())
    return {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(both)}


def _mutual_tls(clients: Path) -> dict[str, str]:
    """The listener that trusts client certificates of one authority."""
    prefix = "listener.name.ssl.ssl"
    store = {"client.auth": "required", "truststore.type": "PEM", "truststore.location": str(clients)}
    return {f"{prefix}.{name}": value for name, value in store.items()}


def _format(data: Path) -> None:
    """An empty data folder with a cluster id of its own.

    Kafka's own formatter takes a JVM's start, so it runs once a machine; the cluster id is text in one file.
    """
    template = cache_dir() / "kafka" / f"formatted-{KAFKA_VERSION}"
    if not template.exists():
        _make_template(template)
    shutil.copytree(template, data)
    meta = data / "meta.properties"
    lines = meta.read_text().splitlines()
    replaced = [f"cluster.id={_kafka_uuid()}" if line.startswith("cluster.id=") else line for line in lines]
    meta.write_text("\n".join(replaced) + "\n")


def _make_template(template: Path) -> None:
    template.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=template.parent) as name:
        work = Path(name)
        properties = work / "server.properties"
        settings = {
            **_DEFAULTS,
            "log.dirs": str(work / "data"),
            "controller.quorum.voters": "1@127.0.0.1:1",
            "listeners": "PLAINTEXT://127.0.0.1:2,CONTROLLER://127.0.0.1:1",
            "listener.security.protocol.map": _PROTOCOLS,
        }
        properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        arguments = ["format", "-t", _kafka_uuid(), "-c", str(properties)]
        command = java_command("kafka.tools.StorageTool", *arguments, options=["-Xmx128m", *_SHORT_LIVED])
        tool = Process(command, log=work / "log")
        if tool.wait(60):
            raise ServerFailedError(f"formatting a broker's folder: {tool.last_lines()}")
        # Another process may have been quicker; its template serves as well.
        with contextlib.suppress(OSError):
            (work / "data").rename(template)


def _kafka_uuid() -> str:
    """As by Kafka's `Uuid.randomUuid`: not with a hyphen first, which the formatter takes for an option."""
    while (made := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return made


def class_archive(jars: Sequence[Path]) -> Path:
    """The path of the archive of the broker's classes (`devtools.kafka_classes`) for this Java and its class path. It
    may not exist."""
    identity = "\n".join(f"{file}:{file.stat().st_mtime_ns}" for file in [_java_binary().resolve(), *jars])
    return cache_dir() / "kafka" / f"classes-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.jsa"


def java_command(main: str, *arguments: str, options: Sequence[str], more: Sequence[Path] = ()) -> list[str | Path]:
    """The command that runs a class of Kafka's. `more`: jars after those of the broker."""
    jars = broker_class_path()
    archive = class_archive(jars)
    always = ["-XX:+UseSerialGC", "-Djava.awt.headless=true", "-Dorg.slf4j.simpleLogger.showDateTime=true"]
    if archive.exists():
        # At the address it was made for, as in sink_job.spark.conf.
        always += [f"-XX:SharedArchiveFile={archive}", "-XX:+UnlockDiagnosticVMOptions", "-XX:ArchiveRelocationMode=0"]
    return [_java_binary(), *always, *options, "-cp", os.pathsep.join(map(str, [*jars, *more])), main, *arguments]


def _java_binary() -> Path:
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else shutil.which("java")
    if not java:
        raise ServerFailedError("no java on PATH: a Java 17 runtime is needed")
    return Path(java)
