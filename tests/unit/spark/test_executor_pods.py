"""Executor pods: their properties file, and the Spark configuration for them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3sink_operator.objects.spark_properties import properties_file
from sink_job.api.errors import ConfigurationError
from sink_job.api.units.quantities import MI
from sink_job.spark.executor_pods import ExecutorConfig, parse_properties, read_executor_config

SIZES = {
    "spark.executor.instances": "3",
    "spark.executor.cores": "2",
    "spark.executor.memory": "640m",
    "spark.executor.memoryOverhead": "1000m",
}


def test_number_and_size_of_executors_are_those_of_sparks_properties() -> None:
    found = ExecutorConfig.of(SIZES)
    assert (found.instances, found.cores, found.slots, found.memory) == (3, 2, 6, 1640 * MI)


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("value", ["", "many", "0.5g"])
def test_the_error_for_an_invalid_number_or_size_names_the_property(name: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=name.replace(".", r"\.")):
        ExecutorConfig.of(SIZES | {name: value})


@given(st.dictionaries(st.from_regex(r"spark\.[a-z.]{1,9}", fullmatch=True), st.text(st.characters(codec="latin-1"))))
def test_the_properties_file_of_the_operator_is_parsed_to_the_same_properties(properties: dict[str, str]) -> None:
    written = {name: value for name, value in properties.items() if value.isprintable()}
    assert dict(parse_properties(properties_file(written))) == written


def test_a_variable_in_the_properties_file_is_replaced_by_its_value(tmp_path: Path) -> None:
    file = tmp_path / "spark.properties"
    file.write_text(properties_file(SIZES | {"spark.driver.host": "${POD_IP}"}))
    assert read_executor_config(file, {"POD_IP": "10.1.2.3"}).properties["spark.driver.host"] == "10.1.2.3"


def test_the_error_for_a_variable_that_is_not_set_names_the_property(tmp_path: Path) -> None:
    file = tmp_path / "spark.properties"
    file.write_text(properties_file(SIZES | {"spark.driver.host": "${POD_IP}"}))
    with pytest.raises(ConfigurationError, match=r"spark\.driver\.host needs the environment variable POD_IP"):
        read_executor_config(file, {})


def test_the_error_for_a_missing_properties_file_names_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"--spark-properties .*nothing\.properties"):
        read_executor_config(tmp_path / "nothing.properties", {})
