# The medallion on AWS: two feeds, four pipelines, one lake. See README.md.

terraform {
  required_version = ">= 1.9"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 6.25"
    }
  }
}

variable "region" {
  description = "Where everything is created."
  type        = string
  default     = "eu-central-1"
}

variable "environment" {
  description = "Prefix of every name."
  type        = string
  default     = "medallion"
}

variable "architecture" {
  description = "Processor of Interlock's functions: arm64 or x86_64, as make lambda built them."
  type        = string
  default     = "arm64"
}

variable "slack_secret_arn" {
  description = "Secret with the token of a Slack app; null: alerts are in the log of the alert-dispatcher."
  type        = string
  default     = null
}

variable "alarm_topic_arn" {
  description = "Topic for the alarms of the infrastructure; null: none."
  type        = string
  default     = null
}

provider "aws" {
  region = var.region

  default_tags {
    tags = { application = "interlock-medallion" }
  }
}

data "aws_caller_identity" "current" {}

data "aws_partition" "current" {}

locals {
  account   = data.aws_caller_identity.current.account_id
  partition = data.aws_partition.current.partition
  feeds = {
    earthquake = { url = "https://earthquake.usgs.gov/earthquakes/feed/v1.0/summary/all_hour.geojson" }
    crypto     = { url = "https://api.coinlore.net/api/tickers/?start=0&limit=100" }
  }
  jobs = toset(["earthquake-silver", "earthquake-gold", "crypto-silver", "crypto-gold"])
}

module "interlock" {
  source = "../../deploy/terraform"

  environment    = var.environment
  dist_path      = "${path.module}/../../build/lambda"
  architecture   = var.architecture
  pipelines_json = "${path.module}/pipelines.json"
  pipelines_root = path.module

  enable_glue_trigger = true
  glue_job_arns       = [for name in local.jobs : "arn:${local.partition}:glue:${var.region}:${local.account}:job/${var.environment}-${name}"]
  job_environment     = { INTERLOCK_JOB_PREFIX = var.environment }

  slack_secret_arn    = var.slack_secret_arn
  alerts              = var.slack_secret_arn == null ? "[]" : jsonencode([{ type = "slack", channel = "#medallion" }])
  sns_alarm_topic_arn = var.alarm_topic_arn

  # An example is taken down again.
  deletion_protection = false
}
