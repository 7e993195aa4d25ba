"""The settings that the deployed functions have, for a command that does their work from elsewhere."""

from interlock.aws.names import Function
from interlock.aws.operations.environment import Environment, is_missing
from interlock.aws.settings import AwsSettings, read_settings
from interlock.model.errors import AccessError


def deployed_settings(environment: Environment, function: Function) -> AwsSettings:
    """What a function was given; the names alone where it is not deployed."""
    name, client = environment.names.function(function), environment.client("lambda")
    try:
        found = environment.ask(
            f"reading the settings of {name} (lambda:GetFunctionConfiguration)",
            lambda: client.get_function_configuration(FunctionName=name),
        )
    except AccessError as error:
        if not is_missing(error):
            raise
        found = {}
    variables = found.get("Environment", {}).get("Variables", {})
    return read_settings({**environment.names.variables, **variables})
