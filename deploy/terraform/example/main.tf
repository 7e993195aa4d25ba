# A root module: one environment of Interlock in one region.
#
#   make lambda                                                # the packages, into build/lambda
#   interlock validate --json pipelines > pipelines.json       # the pipelines, checked and completed
#   terraform init && terraform apply -var environment=dev

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
  default     = "dev"
}

variable "dist_path" {
  description = "Folder with the packages of the functions."
  type        = string
  default     = "../../../build/lambda"
}

variable "slack_secret_arn" {
  description = "Secret with the token of the Slack app; null: no Slack."
  type        = string
  default     = null
}

provider "aws" {
  region = var.region

  default_tags {
    tags = { application = "interlock" }
  }
}

data "aws_caller_identity" "current" {}

module "interlock" {
  source = "../"

  environment    = var.environment
  dist_path      = var.dist_path
  pipelines_json = "${path.module}/pipelines.json"
  pipelines_root = path.module

  # Which jobs pipelines may run is said here, by ARN.
  enable_glue_trigger = true
  glue_job_arns       = ["arn:aws:glue:${var.region}:${data.aws_caller_identity.current.account_id}:job/gold-revenue"]

  slack_secret_arn = var.slack_secret_arn
  alerts           = var.slack_secret_arn == null ? "[]" : jsonencode([{ type = "slack", channel = "#data-alerts" }])

  # An example is taken down again; keep the default for anything that matters.
  deletion_protection = false
}

output "store" {
  description = "What commands are given."
  value       = "--store aws://${module.interlock.environment}?region=${var.region}"
}
