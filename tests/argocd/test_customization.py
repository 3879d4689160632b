"""Argo CD's health check and actions for S3Sinks, by the same tests that its own project would run, in a real Lua."""

from __future__ import annotations

import importlib
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from s3sink_operator import names

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "argocd" / "s3sink.io" / "S3Sink"
ACTIONS = FOLDER / "actions"
ZERO = "0001-01-01T00:00:00Z"

Json = dict[str, Any]
lua51: Any = importlib.import_module("lupa.lua51")  # without type stubs; Argo CD's Lua is 5.1 too


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


@cache
def schema() -> Json:
    crd: Json = load(ROOT / "crds" / "s3sinks.s3sink.io.yaml")
    found: Json = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def run(script: Path, obj: Json) -> Any:
    """The result of a script on `obj`, with the default libraries of Argo CD and a fixed clock."""
    lua = lua51.LuaRuntime(unpack_returned_tuples=True)
    keep = lua.eval("""function(now)
        for _, library in ipairs({"string", "math", "io", "debug", "coroutine", "os", "dofile", "loadfile"}) do
            _G[library] = nil
        end
        package.loaded.os = {date = function() return now end}
    end""")
    keep(ZERO)
    lua.globals().obj = to_lua(lua, obj)
    return to_python(lua, lua.execute(script.read_text()))


def to_lua(lua: Any, value: Any) -> Any:
    if isinstance(value, dict):
        return lua.table_from({key: to_lua(lua, it) for key, it in value.items()})
    if isinstance(value, list):
        return lua.table_from([to_lua(lua, it) for it in value])
    return value


def to_python(lua: Any, value: Any) -> Any:
    if lua51.lua_type(value) != "table":
        return value
    items = dict(value.items())
    if list(items) == list(range(1, len(items) + 1)):  # an empty table too: Argo CD cannot distinguish it from a list
        return [to_python(lua, it) for it in items.values()]
    return {key: to_python(lua, it) for key, it in items.items()}


HEALTH = load(FOLDER / "health_test.yaml")["tests"]
ACTION = load(ACTIONS / "action_test.yaml")


def name(case: Json) -> str:
    """Of a case: the action, if there is one, and the file."""
    return "-".join([*([case["action"]] if "action" in case else []), Path(case["inputPath"]).stem])


@pytest.mark.parametrize("case", HEALTH, ids=name)
def test_the_health_follows_the_status(case: Json) -> None:
    assert run(FOLDER / "health.lua", load(FOLDER / case["inputPath"])) == case["healthStatus"]


@pytest.mark.parametrize("case", ACTION["actionTests"], ids=name)
def test_an_action_changes_the_annotation_of_its_name_and_nothing_else(case: Json) -> None:
    before, expected = load(ACTIONS / case["inputPath"]), load(ACTIONS / case["expectedOutputPath"])
    assert run(ACTIONS / case["action"] / "action.lua", before) == expected
    changed = [key for key in {*before, *expected} if before.get(key) != expected.get(key)]
    assert changed == ["metadata"]
    assert {*expected["metadata"].get("annotations", {})} <= {names.RESTART_ANNOTATION, names.STATE_ANNOTATION}


@pytest.mark.parametrize("case", ACTION["discoveryTests"], ids=name)
def test_actions_that_make_no_sense_are_disabled(case: Json) -> None:
    found = run(ACTIONS / "discovery.lua", load(ACTIONS / case["inputPath"]))
    assert {name: it["disabled"] for name, it in found.items()} == {it["name"]: it["disabled"] for it in case["result"]}


def test_other_annotations_stay_with_every_action() -> None:
    for action in sorted(path.parent for path in ACTIONS.glob("*/action.lua")):
        given = load(ACTIONS / "testdata" / "paused.yaml")
        given["metadata"]["annotations"]["example.com/owner"] = "lake"
        assert run(action / "action.lua", given)["metadata"]["annotations"]["example.com/owner"] == "lake", action.name


def test_every_action_is_discovered_and_every_testdata_file_is_used() -> None:
    actions = {path.parent.name for path in ACTIONS.glob("*/action.lua")}
    assert actions == {*run(ACTIONS / "discovery.lua", load(ACTIONS / "testdata" / "running.yaml"))}
    assert actions == {case["action"] for case in ACTION["actionTests"]}
    used = {case["inputPath"] for case in HEALTH}
    assert used == {f"testdata/{path.name}" for path in (FOLDER / "testdata").iterdir()}
    cases = [*ACTION["actionTests"], *ACTION["discoveryTests"]]
    used = {case[key] for case in cases for key in ("inputPath", "expectedOutputPath") if key in case}
    assert used == {f"testdata/{path.name}" for path in (ACTIONS / "testdata").iterdir()}


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("testdata/*.yaml")), ids=lambda path: f"{path.stem}")
def test_testdata_is_what_the_crd_allows(path: Path) -> None:
    jsonschema.Draft202012Validator(schema()).validate(load(path))


def test_the_settings_for_argo_cd_hold_these_scripts() -> None:
    data = load(ROOT / "argocd" / "argocd-cm.yaml")["data"]
    assert data["resource.customizations.health.s3sink.io_S3Sink"] == (FOLDER / "health.lua").read_text()
    actions = yaml.safe_load(data["resource.customizations.actions.s3sink.io_S3Sink"])
    assert actions["discovery.lua"] == (ACTIONS / "discovery.lua").read_text()
    held = {it["name"]: it["action.lua"] for it in actions["definitions"]}
    assert held == {path.parent.name: path.read_text() for path in ACTIONS.glob("*/action.lua")}


def test_the_example_syncs_the_operator_before_its_sinks() -> None:
    waves = {
        document["metadata"]["name"]: int(document["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"])
        for document in yaml.safe_load_all((ROOT / "examples" / "argocd" / "applications.yaml").read_text())
    }
    assert waves["s3sink-operator"] < waves["sinks"]
