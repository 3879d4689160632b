"""The jars of a login to Kafka beside Kafka's client: aws-msk-iam-auth, with what it needs of the AWS SDK.

They are not on the class path of other sinks. The job image contains them in its cache; a command of a laptop downloads
them once.
"""

from __future__ import annotations

import os
from pathlib import Path

from sink_job.api.errors import ConfigurationError, TransientError
from sink_job.kafka.properties import KafkaProperties
from sink_job.spark.jar_table import jar_table
from sink_job.spark.jars import Report, cached_jars, client_jars

FOLDER = "msk-iam"
"""Directory of the jars in the cache."""

# What aws-msk-iam-auth depends on, as resolved for that version, without Jackson and slf4j: Spark has them.
MSK_IAM = jar_table("""
    org.apache.httpcomponents.client5:httpclient5:5.6.4
        bdef5f8841145cd76c4c605ff301bc840eea0d5292332b7b892a93316c0d8ee1
    org.apache.httpcomponents.core5:httpcore5-h2:5.4.3
        c7db7026b8e2dea39132b04a6069f6671e2858309b20a146ec5c7dd6ed73a0b6
    org.apache.httpcomponents.core5:httpcore5:5.4.3
        18bfbbabb478dfb67f31aeaf428c387f3c3df654582e1309f708ee1f3086830a
    org.reactivestreams:reactive-streams:1.0.4
        f75ca597789b3dac58f61857b9ac2e1034a68fa672db35055a8fb4509e325f28
    software.amazon.awssdk:annotations:2.51.2
        6053b9cbcb97f44e352db645107569a619c966bd47236cfa4b14d5493325d788
    software.amazon.awssdk:apache5-client:2.51.2
        a045836acbc83c7f4d95b67e59244562b01a4cb685ff048d58d41485e44d27e1
    software.amazon.awssdk:auth:2.51.2
        b69dffc866956d6fc675f0c61322252ca5522d95f068c1794553f7d028e7f70d
    software.amazon.awssdk:aws-core:2.51.2
        3a9c504ab640a3ed38a13d9fc67f29d91f3deeab67e23e49be11d340819e22d1
    software.amazon.awssdk:aws-json-protocol:2.51.2
        a28eb8588aafebe7507ae138e5a5e98ad4cd9ad6d84953a18ec8ddd5245619ca
    software.amazon.awssdk:aws-query-protocol:2.51.2
        ed550affd9d46fa1c4f0eba82a4a8b859698e6f33fe2bb64fc94f43983380121
    software.amazon.awssdk:checksums-spi:2.51.2
        793f3a61e7b3d5dddb1fd7df6560164af9f02222d8aa2eae206cd77cb1219c2b
    software.amazon.awssdk:checksums:2.51.2
        d293dd51c24539e0d7bec7252bcd1776dc5f229d6e7f63574288252e9158a0d6
    software.amazon.awssdk:endpoints-spi:2.51.2
        91426b9cbb04bb28578128bf8c74a03aa7cd99119b92e38797fbf61390cc6051
    software.amazon.awssdk:http-auth-aws-eventstream:2.51.2
        5f411ceb32b1559854824f217a723bd5519568f6b6414e835252b2487090858f
    software.amazon.awssdk:http-auth-aws:2.51.2
        788b6217e8553df84bcb5b3c6a76830245a05e47fab2102fdbd7959e16730292
    software.amazon.awssdk:http-auth-spi:2.51.2
        205211a2b4c360abd0cc817399af5f410c9812f1c09df931e47373a088434ccb
    software.amazon.awssdk:http-auth:2.51.2
        bc7faf23dd40b0c5ae130e476dbba681a9345836e1029f8311aac7b92b760003
    software.amazon.awssdk:http-client-spi:2.51.2
        8a30788170082cbb92c3a127ccaa027b72c34217999a01596efed7ea49361d0e
    software.amazon.awssdk:identity-spi:2.51.2
        f7916db02500d3a0e24bdb59601030c97056b568c88e09855b23c6b2989efe61
    software.amazon.awssdk:json-utils:2.51.2
        58f412ef6fb2dd18760f653b046940ef3b7c3cb90b0ca74eff3801e6e72acf8e
    software.amazon.awssdk:metrics-spi:2.51.2
        d762ef618e3622c5a3fb2b614fe0edc30d9f86f5950ac9d131e2ef925cf51fe9
    software.amazon.awssdk:profiles:2.51.2
        2a305cd07e39a74eb58c76ab88664d0622ca74e98433504557d7257bc343ee09
    software.amazon.awssdk:protocol-core:2.51.2
        b1d4a4ab82b26cf618d52521ec25e32fdf0c15d4adb08e2c407bc10a05a5bad0
    software.amazon.awssdk:regions:2.51.2
        66998fe66f92929bea751a999ef1ed09f51eea1eef424796501367651027f5f8
    software.amazon.awssdk:retries-spi:2.51.2
        7ae0089b39fd3c7ab7c44edc8add83897506c365ab117ec93ca38c4ece70e357
    software.amazon.awssdk:retries:2.51.2
        a6179dda981956bfcd58a30ac6d8be47204e07bdfba9cfc49c2e7c89342e269e
    software.amazon.awssdk:sdk-core:2.51.2
        bcbe7ff03c6cd9ef9df6db3592a2700bf291b4434299f4963f8030e5c99448e8
    software.amazon.awssdk:sso:2.51.2
        b1f9039a28750a80812293a3269e0e27c1dee200792fa507ee29bba83350fc5a
    software.amazon.awssdk:ssooidc:2.51.2
        20eaee83ed42ce0ab5346e0b3eabe8dd934848e108bd428130f802b15b2d8ab9
    software.amazon.awssdk:sts:2.51.2
        567c042af28314d2fb19668a83d23f2d50c2e1404909609db88b66667cb2f254
    software.amazon.awssdk:third-party-jackson-core:2.51.2
        6ab97f0f0fced6c2edc3a6a49daa856888a48790cdfcd678f1d4f6f1c49370a2
    software.amazon.awssdk:utils-lite:2.51.2
        68c01c83937447c86136606328e42ec47246448d6c8db3ce10695b0393486605
    software.amazon.awssdk:utils:2.51.2
        c058107b51cae0bd20d0889814bc78a8068280e1cf5e27271227340fbf624a74
    software.amazon.eventstream:eventstream:1.0.1
        0c37d8e696117f02c302191b8110b0d0eb20fa412fce34c3a269ec73c16ce822
    software.amazon.msk:aws-msk-iam-auth:2.3.9
        d87d4929d0d429877093008fbafd871faee0cdbd20bce23f6b46373c26aa64db
""")


def kafka_jars(properties: KafkaProperties, report: Report | None = None) -> list[Path]:
    """The paths of the jars of Kafka's client with the login of `properties`. Raises the errors of `client_jars` and
    of `msk_iam_jars`."""
    return [*client_jars(report), *(msk_iam_jars(report) if properties.needs_msk_iam else ())]


def msk_iam_jars(report: Report | None = None) -> list[Path]:
    """The paths of the jars of a login to Amazon MSK with IAM: in `$S3SINK_JARS`, else in the cache, to which missing
    ones are downloaded once. Raises ConfigurationError if they can be had nowhere."""
    folder = os.environ.get("S3SINK_JARS")
    if folder and all((Path(folder) / jar.file_name).is_file() for jar in MSK_IAM):
        return [Path(folder) / jar.file_name for jar in MSK_IAM]
    try:
        return cached_jars(FOLDER, MSK_IAM, "aws-msk-iam-auth, 8 MB", report=report)
    except (TransientError, OSError) as error:
        [library] = [jar.coordinates for jar in MSK_IAM if jar.artifact == "aws-msk-iam-auth"]
        raise ConfigurationError(
            f"spec.kafka: the login with IAM of MSK needs {library} and its {len(MSK_IAM) - 1} dependencies, which are "
            f"neither in S3SINK_JARS nor in the cache: {error}. Use the job image of this version, or a mirror in "
            "S3SINK_MAVEN_ROOT"
        ) from None
