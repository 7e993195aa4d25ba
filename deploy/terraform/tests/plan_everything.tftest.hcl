# The same with every option that adds something.

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
  environment    = "test"
  pipelines_json = "tests/pipelines/validated.json"
  pipelines_root = "tests/pipelines"
  pools          = { warehouse = 4 }

  architecture            = "x86_64"
  reserved_concurrency    = { "orchestrator" = 50, "alert-dispatcher" = 2 }
  job_environment         = { INTERLOCK_REGION = "us-east-1" }
  allow_private_addresses = ["10.0.0.0/8"]
  vpc_config              = { subnet_ids = ["subnet-0123456789abcdef0"], security_group_ids = ["sg-0123456789abcdef0"] }

  enable_glue_trigger             = true
  glue_job_arns                   = ["arn:aws:glue:us-east-1:123456789012:job/gold-revenue", "arn:aws:glue:us-east-1:123456789012:job/etl-*"]
  enable_emr_trigger              = true
  emr_cluster_arns                = ["arn:aws:elasticmapreduce:us-east-1:123456789012:cluster/j-1ABCDEFGHIJKL"]
  enable_emr_serverless_trigger   = true
  emr_serverless_application_arns = ["arn:aws:emr-serverless:us-east-1:123456789012:/applications/00fabcdefghijk01"]
  emr_serverless_role_arns        = ["arn:aws:iam::123456789012:role/etl"]
  enable_sfn_trigger              = true
  sfn_trigger_arns                = ["arn:aws:states:us-east-1:123456789012:stateMachine:gold-revenue"]
  enable_lambda_trigger           = true
  lambda_trigger_arns             = ["arn:aws:lambda:us-east-1:123456789012:function:gold-revenue"]
  assume_role_arns                = ["arn:aws:iam::210987654321:role/etl"]
  probe_bucket_arns               = ["arn:aws:s3:::landing"]

  secret_arns         = ["arn:aws:secretsmanager:us-east-1:123456789012:secret:warehouse-AbCdEf"]
  ssm_parameter_names = ["/interlock/warehouse-password"]
  secret_kms_key_arns = ["arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"]

  alerts              = "[{\"type\": \"slack\", \"channel\": \"#data\"}]"
  slack_secret_arn    = "arn:aws:secretsmanager:us-east-1:123456789012:secret:slack-AbCdEf"
  sns_alarm_topic_arn = "arn:aws:sns:us-east-1:123456789012:on-call"

  enable_tracing = true
  sfn_log_level  = "ALL"
  kms_key_arn    = "arn:aws:kms:us-east-1:123456789012:key/0234abcd-12ab-34cd-56ef-1234567890ab"
  tags           = { team = "data" }
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
