"""The jars a Kafka broker runs on: pinned, fetched as the product's own are, and never part of it."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pyspark

from sink_job.api.errors import SinkError
from sink_job.spark.jar_table import jar_table
from sink_job.spark.jars import Report, cached_jars, client_jars
from sink_job.spark.login_jars import msk_iam_jars

KAFKA_VERSION = "4.3.1"

# What kafka_2.13 depends on, as resolved for that version, each file alone; and a binding so that the broker logs.
BROKER = jar_table("""
    at.yawk.lz4:lz4-java:1.10.2
        252dabd586d22149a31661a8afc1a50747714eb1a298bd4a6e780c8c91a13866
    com.dynatrace.hash4j:hash4j:0.22.0
        23028a3fd006e530bf495f551083208187cafd8f80624d048eba56442f16a50e
    com.fasterxml.jackson.core:jackson-annotations:2.21
        53ca085f4a150f703f49e1aabd935bd03b43e1ea3d55d135438292af22cef56b
    com.fasterxml.jackson.core:jackson-core:2.21.2
        12e8655b100267b44d0f14d01b1f5082a5105e616174dc4307be1a761e92407b
    com.fasterxml.jackson.core:jackson-databind:2.21.2
        8c982f01f148d805f0aaac2339011244757e0df7c6ff8951f2fa3f433b8ed849
    com.fasterxml.jackson.dataformat:jackson-dataformat-csv:2.21.2
        682f8c7977e02a42748426bf54946e32e52e2f80b84b6642801ab12bd541368a
    com.fasterxml.jackson.dataformat:jackson-dataformat-yaml:2.21.2
        d25551812fa0c14f37cabaa9401e63eadcea42ce36311183af5622d5bc8a1bc7
    com.fasterxml.jackson.datatype:jackson-datatype-jdk8:2.21.2
        e581bbf3fc5622d16b57366dd41e10fc56921fb202879de2ef487f87dd9b30e7
    com.github.ben-manes.caffeine:caffeine:3.2.0
        ec411dfdf0c03f25218648ce89861630b71680e5858a9a7278ebac8e55cab3d7
    com.github.luben:zstd-jni:1.5.6-10
        b6c3237e24b8252a5a9c3a0e1ae30ef8f323412e74bd358548b7a9e527d676df
    com.google.re2j:re2j:1.8
        7b52c72156dd7f98b3237a5b35c1d34fba381b21048c89208913ad80a45dfbd7
    com.typesafe.scala-logging:scala-logging_2.13:3.9.6
        0ad0c3f4d89d538b3b6c300158555e266aa69cf1b5f6522aba8b5bad238eb994
    com.yammer.metrics:metrics-core:2.2.0
        6b7a14a6f34c10f8683f7b5e2f39df0f07b58c7dff0e468ebbc713905c46979c
    commons-beanutils:commons-beanutils:1.11.0
        9e44ba68ec9a3f21286fa2a8bbb003b735c0f69101bb43144b79f4f8aaa74709
    commons-collections:commons-collections:3.2.2
        eeeae917917144a68a741d4c0dff66aa5c5c5fd85593ff217bced3fc8ca783b8
    commons-digester:commons-digester:2.1
        e0b2b980a84fc6533c5ce291f1917b32c507f62bcad64198fff44368c2196a3d
    commons-logging:commons-logging:1.3.5
        6d7a744e4027649fbb50895df9497d109f98c766a637062fe8d2eabbb3140ba4
    commons-validator:commons-validator:1.10.1
        ed74711a78d793ca37f6075e4a1e93d107233dfd20d0bb17e32bad88d38e56aa
    net.sf.jopt-simple:jopt-simple:5.0.4
        df26cc58f235f477db07f753ba5a3ab243ebe5789d9f89ecf68dd62ea9a66c28
    net.sourceforge.argparse4j:argparse4j:0.7.0
        65ceb669d88f63306c680f8088bbf765bbca72d288a61a03703000076c3d3f56
    org.apache.kafka:kafka-clients:4.3.1
        52501b7b47510c66f898871adaf6d2968ab7246561d44ced43643a8a587f0b36
    org.apache.kafka:kafka-coordinator-common:4.3.1
        66a86b8c89718216ffa72fe4e44b9d1bdf3472e4cb9200c36a0742a25febbdba
    org.apache.kafka:kafka-group-coordinator:4.3.1
        4ab56d002e1624185c874199e9e0ffb243dbeb9f68b4d0cadf48ce2f617a1126
    org.apache.kafka:kafka-group-coordinator-api:4.3.1
        d81bc1a3739ff6c9b21815baae00022306342a16d3d94e6a2621201b9980a30d
    org.apache.kafka:kafka-metadata:4.3.1
        4d73a96c6474a4ebdd67a1cee14da1a94cfd6bb9e6e252685ba5667d8ab7f898
    org.apache.kafka:kafka-raft:4.3.1
        46abbf89806dd22d848e997cdfb1431524cab4ec88e38a7d2806e20b24a70609
    org.apache.kafka:kafka-server:4.3.1
        01d736599ec3b0cdbb0480c15219170b28cdae189785e7f0c6f1f26e528eaebc
    org.apache.kafka:kafka-server-common:4.3.1
        d7c719f749579a399011f0df7414de8a78f10f074a6122caa550fdb141351575
    org.apache.kafka:kafka-share-coordinator:4.3.1
        8ceeed7346127e652ea5c650b217890aaff14919f967d27fadce420745bd3066
    org.apache.kafka:kafka-storage:4.3.1
        97e3facddd2914a58f28ec91ef35f8da69963eab3651196e97f487924f6dac98
    org.apache.kafka:kafka-storage-api:4.3.1
        bc2b22639fa554494461d101d599e01bae840d97c4f46e18fdf3d2fe41a47098
    org.apache.kafka:kafka-tools-api:4.3.1
        dcf6785742e0c8ab11a0fc09c62f1192e11e997dc629669a8db82aa40d933c31
    org.apache.kafka:kafka-transaction-coordinator:4.3.1
        c64aaa2a88d8fd382c4800204872917686e542043c7916c9e8797d939d8eb313
    org.apache.kafka:kafka_2.13:4.3.1
        b098abef5ff878e76f60cd6c559b9baa5663ccb1b55f2837558b22c329d32423
    org.apache.logging.log4j:log4j-api:2.25.4
        c4b642a7f047275215de117e0e3847eb2c7711d84a0aa7433e7b3c096daf341d
    org.apache.logging.log4j:log4j-core:2.25.4
        10fee2c0485d54fa44ee75d314f6295508f7b932281873db61a91b88073200e6
    org.bitbucket.b_c:jose4j:0.9.6
        7314af50cde9c99e8eaf43eee617a23edcc6bb43036221064355094999d837ef
    org.hdrhistogram:HdrHistogram:2.2.2
        22d1d4316c4ec13a68b559e98c8256d69071593731da96136640f864fa14fad8
    org.jspecify:jspecify:1.0.0
        1fad6e6be7557781e4d33729d49ae1cdc8fdda6fe477bb0cc68ce351eafdfbab
    org.pcollections:pcollections:4.0.2
        2bbeef5797a241300c4f7513cd546239629ed7deda4fc0c31df90bb95f5f13ef
    org.scala-lang:scala-reflect:2.13.18
        6935ff1982b2ac93d695f15aa66921be2f602921277afe002f018fd8c7d6e29b
    org.slf4j:slf4j-api:1.7.36
        d3ef575e3e4979678dc01bf1dcce51021493b4d11fb7f1be8ad982877c16a1c0
    org.slf4j:slf4j-simple:1.7.36
        2f39bed943d624dfa8f4102d0571283a10870b6aa36f197a8a506f147010c10f
    org.xerial.snappy:snappy-java:1.1.10.7
        4c766cb3f855415ee734b2392949a0b6f12a60879334a74518deaf6270d32e36
    org.yaml:snakeyaml:2.5
        e6682acf1ace77508ef13649cbf4f8d09d2cf5457bdb61d25ffb6ac0233d78dd
""")


def broker_class_path(report: Report | None = None) -> list[Path]:
    """The files of a broker's class path, fetched when missing; errors as of `cached_jars`."""
    jars = cached_jars("broker", BROKER, f"a Kafka {KAFKA_VERSION} broker, 38 MB", report=report)
    # Spark's resolution leaves out the Scala library because Spark has it, and so has PySpark's own folder.
    scala = (Path(pyspark.__file__).parent / "jars").glob("scala-library-*.jar")
    return [*jars, *(_copied(jar, jars[0].parent) for jar in scala)]


def _copied(jar: Path, folder: Path) -> Path:
    """A copy of `jar` in the folder of the cache: an archive of classes belongs to the paths of its jars, and serves
    all checkouts if these are the same."""
    copy = folder / jar.name
    if not copy.exists():
        new = copy.with_suffix(f".{os.getpid()}")
        shutil.copyfile(jar, new)
        new.replace(copy)
    return copy


def main() -> None:
    """`python -m devtools.jars`: fetches the jars of the broker, of the sink's client and of its logins ahead."""
    try:
        broker_class_path()
        client_jars()
        msk_iam_jars()
    except SinkError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
