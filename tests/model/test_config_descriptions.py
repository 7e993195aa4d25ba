"""Every key of a config is described, and nothing else is."""

import msgspec
import pytest
from msgspec import inspect

from interlock.model import config
from interlock.model.config_descriptions import DESCRIPTIONS
from interlock.model.job_configs import JOB_CONFIGS
from interlock.model.probe_configs import PROBE_CONFIGS

STRUCTS = [
    one
    for one in vars(config).values()
    if isinstance(one, type) and issubclass(one, msgspec.Struct) and msgspec.structs.fields(one)
]


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda one: one.__name__)
def test_every_key_is_described(struct: type[msgspec.Struct]) -> None:
    assert set(DESCRIPTIONS[struct]) == {field.encode_name for field in msgspec.structs.fields(struct)}
    assert all(text.rstrip("`").endswith(".") for text in DESCRIPTIONS[struct].values())


@pytest.mark.parametrize("struct", [*JOB_CONFIGS.values(), *PROBE_CONFIGS.values()], ids=lambda one: one.__name__)
def test_every_key_of_a_job_config_is_described(struct: type[msgspec.Struct]) -> None:
    found = inspect.type_info(struct)
    assert isinstance(found, inspect.StructType)
    for field in found.fields:
        assert _described(field.type), field.encode_name


def _described(type_: inspect.Type) -> bool:
    if isinstance(type_, inspect.UnionType):
        return any(_described(one) for one in type_.types)
    return isinstance(type_, inspect.Metadata) and "description" in (type_.extra_json_schema or {})
