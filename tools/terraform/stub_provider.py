"""A provider that knows the schema of hashicorp/aws and nothing else, so that Terraform validates and tests offline.

    python stub_provider.py SCHEMA COMMAND...

serves the schema (JSON: see `schema.py`) to the command over a socket. It needs `tf` and `grpcio`, and so runs in an
environment of its own (`offline.py` makes it). Values are not checked here: `cfn-lint` does that with what is planned.
"""

import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import grpc
from tf.gen import tfplugin_pb2 as pb
from tf.gen import tfplugin_pb2_grpc as pb_grpc

_SOURCE = "hashicorp/aws"
_LARGEST = 256 << 20


def _block(described: dict[str, Any]) -> Any:
    attributes = [
        pb.Schema.Attribute(
            name=name,
            type=json.dumps(one["type"]).encode(),
            required=one["required"],
            optional=one["optional"],
            computed=one["computed"],
        )
        for name, one in sorted(described["attributes"].items())
    ]
    blocks = [
        pb.Schema.NestedBlock(
            type_name=name,
            block=_block(one["block"]),
            nesting=pb.Schema.NestedBlock.NestingMode.Value(one["nesting"].upper()),
            min_items=one["min"],
            max_items=one["max"],
        )
        for name, one in sorted(described["blocks"].items())
    ]
    return pb.Schema.Block(attributes=attributes, block_types=blocks)


def _schema(described: dict[str, Any]) -> Any:
    return pb.Schema(version=0, block=_block(described))


class _Provider(pb_grpc.ProviderServicer):  # type: ignore[misc]  # generated code without types
    """What Terraform asks before it mocks the rest."""

    def __init__(self, described: dict[str, Any]) -> None:
        self._answer = pb.GetProviderSchema.Response(
            provider=_schema(described["provider"]),
            resource_schemas={name: _schema(one) for name, one in described["resource"].items()},
            data_source_schemas={name: _schema(one) for name, one in described["data"].items()},
            server_capabilities=pb.ServerCapabilities(get_provider_schema_optional=False),
        )

    def GetProviderSchema(self, request: Any, context: Any) -> Any:  # noqa: N802 - Terraform's names
        return self._answer

    def ValidateProviderConfig(self, request: Any, context: Any) -> Any:  # noqa: N802
        return pb.ValidateProviderConfig.Response()

    def ValidateResourceConfig(self, request: Any, context: Any) -> Any:  # noqa: N802
        return pb.ValidateResourceConfig.Response()

    def ValidateDataResourceConfig(self, request: Any, context: Any) -> Any:  # noqa: N802
        return pb.ValidateDataResourceConfig.Response()

    def ConfigureProvider(self, request: Any, context: Any) -> Any:  # noqa: N802
        return pb.ConfigureProvider.Response()

    def StopProvider(self, request: Any, context: Any) -> Any:  # noqa: N802
        return pb.StopProvider.Response()


def main() -> int:
    """Serve the schema while the command runs."""
    described = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    pool = concurrent.futures.ThreadPoolExecutor(8)
    server = grpc.server(pool, options=[("grpc.max_send_message_length", _LARGEST)])
    pb_grpc.add_ProviderServicer_to_server(_Provider(described), server)
    with tempfile.TemporaryDirectory() as folder:
        socket = f"{folder}/provider.sock"
        server.add_insecure_port(f"unix:{socket}")
        server.start()
        reattach = {
            _SOURCE: {
                "Protocol": "grpc",
                "ProtocolVersion": 6,
                "Pid": os.getpid(),
                "Test": True,
                "Addr": {"Network": "unix", "String": socket},
            }
        }
        environment = {**os.environ, "TF_REATTACH_PROVIDERS": json.dumps(reattach)}
        code = subprocess.run(sys.argv[2:], env=environment, check=False).returncode
        server.stop(0)
    return code


if __name__ == "__main__":
    sys.exit(main())
