"""References of a manifest to secrets."""

from __future__ import annotations

from typing import Annotated

from sink_job.api.base_model import SpecModel, description
from sink_job.api.field_types import DataKey, ObjectName


class SecretRef(SpecModel):
    """A reference to a secret: a Kubernetes Secret, or on a laptop a directory (`--secret name=dir`)."""

    secret: Annotated[ObjectName, description(example="s3-keys")]
    """Name of the secret."""


class SecretKey(SecretRef):
    """A reference to one value in a secret."""

    key: Annotated[DataKey, description(example="ca.crt")]
    """Key in the secret."""
