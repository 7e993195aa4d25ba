# Interlock on AWS: tables, functions, the state machine, timers, alerts and alarms of one environment.
#
# Names and ARNs are computed from the environment, the region and the account (locals below) instead of being read
# from the resources: functions and the state machine name each other, and policies are known when they are planned.

terraform {
  required_version = ">= 1.9"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 6.25"
    }
  }
}

data "aws_caller_identity" "current" {}

data "aws_partition" "current" {}

data "aws_region" "current" {}

locals {
  name      = "${var.environment}-interlock"
  partition = data.aws_partition.current.partition
  region    = data.aws_region.current.region
  account   = data.aws_caller_identity.current.account_id
  place     = "${local.region}:${local.account}"

  tags = merge({ "interlock:environment" = var.environment }, var.tags)

  table_arns = {
    for table in keys(local.tables) : table => "arn:${local.partition}:dynamodb:${local.place}:table/${local.name}-${table}"
  }
  function_arns = {
    for name in keys(local.functions) : name => "arn:${local.partition}:lambda:${local.place}:function:${local.name}-${name}"
  }
  queue_arns = {
    for name, queue in local.queues : name => "arn:${local.partition}:sqs:${local.place}:${local.name}-${name}"
  }
  queue_urls = {
    for name, queue in local.queues : name => "https://sqs.${local.region}.${data.aws_partition.current.dns_suffix}/${local.account}/${local.name}-${name}"
  }

  state_machine_arn  = "arn:${local.partition}:states:${local.place}:stateMachine:${local.name}-pipeline"
  execution_arns     = "arn:${local.partition}:states:${local.place}:execution:${local.name}-pipeline:*"
  event_bus_arn      = "arn:${local.partition}:events:${local.place}:event-bus/${local.name}-events"
  schedule_arns      = "arn:${local.partition}:scheduler:${local.place}:schedule/${local.name}-timers/*"
  scheduler_role_arn = "arn:${local.partition}:iam::${local.account}:role/${local.name}-scheduler"
}
