"""A plan of Terraform as a CloudFormation template, so that `cfn-lint` checks its values against AWS's own schemas.

The stub provider knows names and types of arguments; enums, ranges, lengths and patterns are CloudFormation's.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

Values = Mapping[str, Any]
Resource = dict[str, Any]

UNTRANSLATED: Final = frozenset({"aws_dynamodb_table_item", "aws_sqs_queue_redrive_allow_policy", "terraform_data"})
"""What CloudFormation has no resource for: items, and a policy that it keeps with the queue."""


def template(resources: Mapping[str, Values]) -> dict[str, Any]:
    """The template of planned resources; KeyError for a type that nobody has translated yet."""
    found: dict[str, Any] = {}
    for address, values in resources.items():
        type_ = address.split(".")[0]
        if type_ in UNTRANSLATED or type_ == "aws_cloudwatch_event_target":
            continue
        kind, translate = _TYPES[type_]
        given = dict(values)
        if type_ == "aws_cloudwatch_event_rule":
            given["target"] = resources[address.replace("aws_cloudwatch_event_rule", "aws_cloudwatch_event_target")]
        properties = {name: one for name, one in translate(given).items() if one not in (None, [], {})}
        found[re.sub(r"\W|_", "", address.title())] = {"Type": kind, "Properties": properties}
    return {"AWSTemplateFormatVersion": "2010-09-09", "Resources": found}


def _tags(values: Values) -> list[dict[str, str]]:
    return [{"Key": name, "Value": value} for name, value in values.get("tags", {}).items()]


def _block(values: Values, name: str) -> Values:
    """A block that appears at most once."""
    found = values.get(name) or [{}]
    inner: Values = found[0]
    return inner


def _table(values: Values) -> Resource:
    key = _block(values, "server_side_encryption")
    return {
        "TableName": values["name"],
        "BillingMode": values["billing_mode"],
        "KeySchema": _key_schema(values),
        "AttributeDefinitions": [
            {"AttributeName": one["name"], "AttributeType": one["type"]} for one in values["attribute"]
        ],
        "GlobalSecondaryIndexes": [
            {
                "IndexName": one["name"],
                "KeySchema": _key_schema(one),
                "Projection": {"ProjectionType": one["projection_type"]},
            }
            for one in values.get("global_secondary_index", [])
        ],
        "StreamSpecification": {"StreamViewType": values["stream_view_type"]} if values["stream_enabled"] else None,
        "TimeToLiveSpecification": {"AttributeName": _block(values, "ttl")["attribute_name"], "Enabled": True},
        "PointInTimeRecoverySpecification": {
            "PointInTimeRecoveryEnabled": _block(values, "point_in_time_recovery")["enabled"]
        },
        "DeletionProtectionEnabled": values["deletion_protection_enabled"],
        "SSESpecification": {"SSEEnabled": True, "SSEType": "KMS", "KMSMasterKeyId": key["kms_key_arn"]}
        if key
        else None,
        "Tags": _tags(values),
    }


def _key_schema(values: Values) -> list[dict[str, str]]:
    return [
        {"AttributeName": values["hash_key"], "KeyType": "HASH"},
        {"AttributeName": values["range_key"], "KeyType": "RANGE"},
    ]


def _function(values: Values) -> Resource:
    dead, network = _block(values, "dead_letter_config"), _block(values, "vpc_config")
    reserved = values["reserved_concurrent_executions"]
    logging = _block(values, "logging_config")
    return {
        "FunctionName": values["function_name"],
        "Description": values["description"],
        "Role": values["role"],
        "Handler": values["handler"],
        "Runtime": values["runtime"],
        "Architectures": values["architectures"],
        "MemorySize": values["memory_size"],
        "Timeout": values["timeout"],
        "Code": {"S3Bucket": "packages", "S3Key": "package.zip"},
        "ReservedConcurrentExecutions": reserved if reserved >= 0 else None,
        "KmsKeyArn": values.get("kms_key_arn"),
        "Environment": {"Variables": _block(values, "environment")["variables"]},
        "LoggingConfig": {"LogFormat": logging["log_format"], "LogGroup": logging["log_group"]},
        "DeadLetterConfig": {"TargetArn": dead["target_arn"]} if dead else None,
        "VpcConfig": {"SubnetIds": network["subnet_ids"], "SecurityGroupIds": network["security_group_ids"]}
        if network
        else None,
        "TracingConfig": {"Mode": _block(values, "tracing_config")["mode"]},
        "Tags": _tags(values),
    }


def _mapping(values: Values) -> Resource:
    filters = _block(values, "filter_criteria").get("filter", [])
    failed = _block(_block(values, "destination_config"), "on_failure")
    return {
        "EventSourceArn": values["event_source_arn"],
        "FunctionName": values["function_name"],
        "StartingPosition": values.get("starting_position"),
        "BatchSize": values["batch_size"],
        "ParallelizationFactor": values.get("parallelization_factor"),
        "BisectBatchOnFunctionError": values.get("bisect_batch_on_function_error"),
        "FunctionResponseTypes": values["function_response_types"],
        "MaximumBatchingWindowInSeconds": values.get("maximum_batching_window_in_seconds"),
        "MaximumRetryAttempts": values.get("maximum_retry_attempts"),
        "MaximumRecordAgeInSeconds": values.get("maximum_record_age_in_seconds"),
        "FilterCriteria": {"Filters": [{"Pattern": one["pattern"]} for one in filters]} if filters else None,
        "DestinationConfig": {"OnFailure": {"Destination": failed["destination_arn"]}} if failed else None,
        "Tags": _tags(values),
    }


def _queue(values: Values) -> Resource:
    return {
        "QueueName": values["name"],
        "FifoQueue": values.get("fifo_queue"),
        "DeduplicationScope": values.get("deduplication_scope"),
        "FifoThroughputLimit": values.get("fifo_throughput_limit"),
        "VisibilityTimeout": values["visibility_timeout_seconds"],
        "MessageRetentionPeriod": values["message_retention_seconds"],
        "MaximumMessageSize": values["max_message_size"],
        "RedrivePolicy": json.loads(values["redrive_policy"]) if "redrive_policy" in values else None,
        "SqsManagedSseEnabled": values.get("sqs_managed_sse_enabled"),
        "KmsMasterKeyId": values.get("kms_master_key_id"),
        "KmsDataKeyReusePeriodSeconds": values.get("kms_data_key_reuse_period_seconds"),
        "Tags": _tags(values),
    }


def _role(values: Values) -> Resource:
    return {
        "RoleName": values["name"],
        "Description": values["description"],
        "AssumeRolePolicyDocument": json.loads(values["assume_role_policy"]),
        "Tags": _tags(values),
    }


def _role_policy(values: Values) -> Resource:
    document = json.loads(values["policy"])
    return {"PolicyName": values["name"], "RoleName": values["role"], "PolicyDocument": document}


def _machine(values: Values) -> Resource:
    logging = _block(values, "logging_configuration")
    return {
        "StateMachineName": values["name"],
        "StateMachineType": values["type"],
        "RoleArn": values["role_arn"],
        "DefinitionString": values["definition"],
        "LoggingConfiguration": {
            "Level": logging["level"],
            "IncludeExecutionData": logging["include_execution_data"],
            "Destinations": [{"CloudWatchLogsLogGroup": {"LogGroupArn": logging["log_destination"]}}],
        },
        "TracingConfiguration": {"Enabled": True} if values.get("tracing_configuration") else None,
        "Tags": _tags(values),
    }


def _rule(values: Values) -> Resource:
    target = values["target"]
    transformer = _block(target, "input_transformer")
    return {
        "Name": values["name"],
        "Description": values["description"],
        "ScheduleExpression": values.get("schedule_expression"),
        "EventPattern": json.loads(values["event_pattern"]) if "event_pattern" in values else None,
        "Targets": [
            {
                "Id": target["target_id"],
                "Arn": target["arn"],
                **({"Input": target["input"]} if "input" in target else {}),
                **(
                    {
                        "InputTransformer": {
                            "InputPathsMap": transformer["input_paths"],
                            "InputTemplate": transformer["input_template"],
                        }
                    }
                    if transformer
                    else {}
                ),
            }
        ],
        "Tags": _tags(values),
    }


def _permission(values: Values) -> Resource:
    return {
        "FunctionName": values["function_name"],
        "Action": values["action"],
        "Principal": values["principal"],
        "SourceArn": values["source_arn"],
    }


def _log_group(values: Values) -> Resource:
    return {
        "LogGroupName": values["name"],
        "RetentionInDays": values["retention_in_days"],
        "KmsKeyId": values.get("kms_key_id"),
        "Tags": _tags(values),
    }


def _alarm(values: Values) -> Resource:
    return {
        "AlarmName": values["alarm_name"],
        "AlarmDescription": values["alarm_description"],
        "Namespace": values["namespace"],
        "MetricName": values["metric_name"],
        "Dimensions": [{"Name": name, "Value": value} for name, value in values["dimensions"].items()],
        "Statistic": values["statistic"],
        "Period": values["period"],
        "EvaluationPeriods": values["evaluation_periods"],
        "Threshold": values["threshold"],
        "ComparisonOperator": values["comparison_operator"],
        "TreatMissingData": values["treat_missing_data"],
        "AlarmActions": values.get("alarm_actions"),
        "OKActions": values.get("ok_actions"),
        "Tags": _tags(values),
    }


def _named(values: Values) -> Resource:
    return {"Name": values["name"], "Tags": _tags(values)}


_TYPES: Final[Mapping[str, tuple[str, Callable[[Values], Resource]]]] = {
    "aws_dynamodb_table": ("AWS::DynamoDB::Table", _table),
    "aws_lambda_function": ("AWS::Lambda::Function", _function),
    "aws_lambda_event_source_mapping": ("AWS::Lambda::EventSourceMapping", _mapping),
    "aws_lambda_permission": ("AWS::Lambda::Permission", _permission),
    "aws_sqs_queue": ("AWS::SQS::Queue", _queue),
    "aws_iam_role": ("AWS::IAM::Role", _role),
    "aws_iam_role_policy": ("AWS::IAM::RolePolicy", _role_policy),
    "aws_sfn_state_machine": ("AWS::StepFunctions::StateMachine", _machine),
    "aws_cloudwatch_event_rule": ("AWS::Events::Rule", _rule),
    "aws_cloudwatch_event_bus": ("AWS::Events::EventBus", _named),
    "aws_scheduler_schedule_group": ("AWS::Scheduler::ScheduleGroup", _named),
    "aws_cloudwatch_log_group": ("AWS::Logs::LogGroup", _log_group),
    "aws_cloudwatch_metric_alarm": ("AWS::CloudWatch::Alarm", _alarm),
}
