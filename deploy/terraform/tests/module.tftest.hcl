# The module by itself: what it makes by default, and what it refuses.

mock_provider "aws" {
  mock_data "aws_caller_identity" {
    defaults = { account_id = "123456789012" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws", dns_suffix = "amazonaws.com" }
  }
  mock_data "aws_region" {
    defaults = { region = "us-east-1" }
  }
}

variables {
  environment = "test"
}

run "defaults" {
  command = plan

  assert {
    condition     = alltrue([for table in aws_dynamodb_table.this : one(table.ttl).enabled && one(table.point_in_time_recovery).enabled && table.deletion_protection_enabled])
    error_message = "Tables expire items, can be restored, and are not deleted by accident."
  }
  assert {
    condition     = [for name, table in aws_dynamodb_table.this : name if table.stream_enabled] == ["control", "events", "joblog"]
    error_message = "Control, joblog and events have streams."
  }
  assert {
    condition     = length(jsondecode(aws_sfn_state_machine.pipeline.definition).States) > 20
    error_message = "The state machine is the shipped lifecycle."
  }
  assert {
    condition     = alltrue([for function in aws_lambda_function.this : function.memory_size == 256 && contains(function.architectures, "arm64")])
    error_message = "256 MB on arm64."
  }
  assert {
    condition     = toset([for rule in aws_cloudwatch_event_rule.this : rule.name]) == toset(["test-interlock-watchdog", "test-interlock-machine", "test-interlock-alarms"])
    error_message = "Without jobs of other services there are no rules for them."
  }
  assert {
    condition     = length(aws_dynamodb_table_item.config) == 0
    error_message = "Without pipelines_json nothing is stored."
  }
}

run "pipelines_are_stored" {
  command = plan

  variables {
    pipelines_json = "tests/pipelines/validated.json"
    pipelines_root = "tests/pipelines"
  }

  assert {
    condition     = jsondecode(aws_dynamodb_table_item.config["gold-revenue"].item).version.S == output.pipelines["gold-revenue"]
    error_message = "The stored version is the validated one."
  }
  assert {
    condition     = jsondecode(aws_dynamodb_table_item.registry["gold-revenue"].item).SK.S == "PIPELINE#gold-revenue"
    error_message = "The registry lists it."
  }
  assert {
    condition     = jsondecode(aws_dynamodb_table_item.calendar["holidays"].item).days.L[0].S == "sunday"
    error_message = "Calendars are stored with their days."
  }
}

run "changed_files_are_refused" {
  command = plan

  variables {
    pipelines_json = "tests/pipelines/validated.json"
    pipelines_root = "tests"
  }

  expect_failures = [terraform_data.validated]
}

run "bad_names_are_refused" {
  command = plan

  variables {
    environment = "Prod!"
  }

  expect_failures = [var.environment]
}

run "numbers_out_of_range_are_refused" {
  command = plan

  variables {
    lambda_memory_size           = 64
    sfn_timeout_seconds          = 60
    trigger_max_attempts         = 0
    stream_parallelization       = 11
    orchestrator_timeout_seconds = 1000
    events_ttl_days              = 0
    log_retention_days           = 8
    watchdog_silence_seconds     = 61
    pools                        = { warehouse = 0 }
    reserved_concurrency         = { orchestrater = 5 }
  }

  expect_failures = [
    var.lambda_memory_size, var.sfn_timeout_seconds, var.trigger_max_attempts, var.stream_parallelization,
    var.orchestrator_timeout_seconds, var.events_ttl_days, var.log_retention_days, var.watchdog_silence_seconds,
    var.pools, var.reserved_concurrency,
  ]
}

run "words_out_of_range_are_refused" {
  command = plan

  variables {
    architecture        = "mips"
    log_level           = "LOUD"
    sfn_log_level       = "SOME"
    watchdog_schedule   = "every five minutes"
    alerts              = "slack"
    job_environment     = { INTERLOCK_SECRET_X = "x" }
    tags                = { "aws:x" = "y" }
    kms_key_arn         = "alias/interlock"
    sns_alarm_topic_arn = "on-call"
    pipelines_json      = "tests/module.tftest.hcl"
    vpc_config          = { subnet_ids = [], security_group_ids = [] }
  }

  expect_failures = [
    var.architecture, var.log_level, var.sfn_log_level, var.watchdog_schedule, var.alerts,
    var.job_environment, var.tags, var.kms_key_arn, var.sns_alarm_topic_arn, var.pipelines_json, var.vpc_config,
  ]
}

run "rights_without_arns_are_refused" {
  command = plan

  variables {
    enable_glue_trigger           = true
    enable_emr_trigger            = true
    enable_emr_serverless_trigger = true
    enable_sfn_trigger            = true
    enable_lambda_trigger         = true
    slack_bot_token               = "xoxb-1"
    slack_secret_arn              = "arn:aws:secretsmanager:us-east-1:123456789012:secret:slack-AbCdEf"
  }

  expect_failures = [
    var.enable_glue_trigger, var.enable_emr_trigger, var.enable_emr_serverless_trigger, var.enable_sfn_trigger,
    var.enable_lambda_trigger, var.slack_bot_token,
  ]
}

run "arns_of_other_things_are_refused" {
  command = plan

  variables {
    glue_job_arns                   = ["gold-revenue"]
    glue_log_group_arns             = ["/aws-glue/jobs"]
    emr_cluster_arns                = ["j-1"]
    emr_serverless_application_arns = ["00f"]
    emr_serverless_role_arns        = ["etl"]
    sfn_trigger_arns                = ["arn:aws:states:us-east-1:123456789012:execution:x:y"]
    lambda_trigger_arns             = ["arn:aws:lambda:us-east-1:123456789012:function:gold:3"]
    assume_role_arns                = ["etl"]
    probe_bucket_arns               = ["landing"]
    secret_arns                     = ["warehouse"]
    ssm_parameter_names             = ["a b"]
    secret_kms_key_arns             = ["key"]
    slack_secret_arn                = "slack"
  }

  expect_failures = [
    var.glue_job_arns, var.glue_log_group_arns, var.emr_cluster_arns, var.emr_serverless_application_arns,
    var.emr_serverless_role_arns, var.sfn_trigger_arns, var.lambda_trigger_arns, var.assume_role_arns,
    var.probe_bucket_arns, var.secret_arns, var.ssm_parameter_names, var.secret_kms_key_arns, var.slack_secret_arn,
  ]
}

run "packages_of_another_platform_are_refused" {
  command = plan

  variables {
    dist_path = "tests/packages-of-another-platform"
  }

  expect_failures = [aws_lambda_function.this]
}
