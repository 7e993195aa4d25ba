"""What `plan` and `apply` refuse of configs that are to run on AWS, as errors of the files they stand in."""

from typing import TYPE_CHECKING

import msgspec

from interlock.aws.refusals import refusals
from interlock.cli.aws_backend import opened

if TYPE_CHECKING:
    from interlock.aws.operations.address import AwsAddress
    from interlock.config.loader import LoadResult


def with_refusals(address: "AwsAddress", loaded: "LoadResult") -> "LoadResult":
    """The same result, in which a config that does not run in this environment is one with errors."""
    with opened(address) as backend:
        timeout = backend.execution_timeout
    refused = {
        one.file: tuple(one.merged.locate(finding) for finding in refusals(one.config, timeout))
        for one in loaded.configs
    }
    refused = {file: problems for file, problems in refused.items() if problems}
    if not refused:
        return loaded
    problems = {*loaded.problems, *(problem for found in refused.values() for problem in found)}
    names = (one.config.id for one in loaded.configs if one.file in refused)
    return msgspec.structs.replace(
        loaded,
        configs=tuple(one for one in loaded.configs if one.file not in refused),
        problems=tuple(sorted(problems, key=lambda problem: (problem.file, problem.line or 0, problem.path))),
        invalid=tuple(sorted({*loaded.invalid, *names})),
        rejected={**loaded.rejected, **refused},
    )
