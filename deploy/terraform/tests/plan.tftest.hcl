# What is planned, for tests that build on it (tests/aws/plan.json), and that a second plan changes nothing.

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

run "planned" {
  command = plan
}

run "applied" {
  command = apply
}

run "again" {
  command = plan
}
