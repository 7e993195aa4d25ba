# Rights on what pipelines run and look at: nothing unless asked for, and then for the ARNs given.
# `look` is what following a job needs, `start` what starting and stopping it needs. What a job wrote is read by
# whoever asks for it (`interlock logs`), with rights of his own.

locals {
  # The account of Glue writes its logs into groups of these names; a group of one's own is named in glue_log_group_arns.
  glue_log_groups = length(var.glue_log_group_arns) > 0 ? var.glue_log_group_arns : [
    "arn:${local.partition}:logs:${local.place}:log-group:/aws-glue/jobs/*",
  ]
  sfn_execution_arns = [for arn in var.sfn_trigger_arns : "${replace(arn, ":stateMachine:", ":execution:")}:*"]
  emr_job_runs       = [for arn in var.emr_serverless_application_arns : "${arn}/jobruns/*"]

  look_statements = concat(
    [for statement in [
      {
        Sid      = "LookAtGlue"
        Effect   = "Allow"
        Action   = ["glue:GetJobRun", "glue:GetJobRuns"]
        Resource = var.glue_job_arns
      },
      {
        # Glue reports success for a driver that swallowed its exception: its log says what happened.
        Sid      = "ReadGlueLogs"
        Effect   = "Allow"
        Action   = ["logs:FilterLogEvents"]
        Resource = local.glue_log_groups
      },
    ] : statement if var.enable_glue_trigger],
    [for statement in [
      {
        Sid      = "LookAtEmr"
        Effect   = "Allow"
        Action   = ["elasticmapreduce:DescribeStep", "elasticmapreduce:ListSteps"]
        Resource = var.emr_cluster_arns
      },
    ] : statement if var.enable_emr_trigger],
    [for statement in [
      {
        Sid      = "LookAtEmrServerless"
        Effect   = "Allow"
        Action   = ["emr-serverless:GetJobRun"]
        Resource = local.emr_job_runs
      },
    ] : statement if var.enable_emr_serverless_trigger],
    [for statement in [
      {
        Sid      = "LookAtStateMachines"
        Effect   = "Allow"
        Action   = ["states:DescribeExecution"]
        Resource = local.sfn_execution_arns
      },
    ] : statement if var.enable_sfn_trigger],
    [for statement in [
      {
        Sid      = "BeAnother"
        Effect   = "Allow"
        Action   = ["sts:AssumeRole"]
        Resource = var.assume_role_arns
      },
    ] : statement if length(var.assume_role_arns) > 0],
  )

  start_statements = concat(
    [for statement in [
      {
        Sid      = "StartGlue"
        Effect   = "Allow"
        Action   = ["glue:BatchStopJobRun", "glue:StartJobRun"]
        Resource = var.glue_job_arns
      },
    ] : statement if var.enable_glue_trigger],
    [for statement in [
      {
        Sid      = "StartEmr"
        Effect   = "Allow"
        Action   = ["elasticmapreduce:AddJobFlowSteps", "elasticmapreduce:CancelSteps"]
        Resource = var.emr_cluster_arns
      },
    ] : statement if var.enable_emr_trigger],
    [for statement in [
      {
        Sid      = "StartEmrServerless"
        Effect   = "Allow"
        Action   = ["emr-serverless:StartJobRun"]
        Resource = var.emr_serverless_application_arns
      },
      {
        Sid      = "StopEmrServerless"
        Effect   = "Allow"
        Action   = ["emr-serverless:CancelJobRun"]
        Resource = local.emr_job_runs
      },
      {
        Sid       = "LetEmrServerlessRun"
        Effect    = "Allow"
        Action    = ["iam:PassRole"]
        Resource  = var.emr_serverless_role_arns
        Condition = { StringEquals = { "iam:PassedToService" = "emr-serverless.amazonaws.com" } }
      },
    ] : statement if var.enable_emr_serverless_trigger],
    [for statement in [
      {
        Sid      = "StartStateMachines"
        Effect   = "Allow"
        Action   = ["states:DescribeStateMachine", "states:StartExecution"]
        Resource = var.sfn_trigger_arns
      },
      {
        Sid      = "StopStateMachines"
        Effect   = "Allow"
        Action   = ["states:StopExecution"]
        Resource = local.sfn_execution_arns
      },
    ] : statement if var.enable_sfn_trigger],
    [for statement in [
      {
        Sid      = "CallFunctions"
        Effect   = "Allow"
        Action   = ["lambda:InvokeFunction"]
        Resource = concat(var.lambda_trigger_arns, [for arn in var.lambda_trigger_arns : "${arn}:*"])
      },
    ] : statement if var.enable_lambda_trigger],
  )

  probe_statements = [for statement in [
    {
      Sid      = "LookIntoBuckets"
      Effect   = "Allow"
      Action   = ["s3:ListBucket"]
      Resource = var.probe_bucket_arns
    },
  ] : statement if length(var.probe_bucket_arns) > 0]

  ssm_arns = [for name in var.ssm_parameter_names : "arn:${local.partition}:ssm:${local.place}:parameter/${trimprefix(name, "/")}"]
  secret_statements = concat(
    [for statement in [
      {
        Sid      = "ReadSecrets"
        Effect   = "Allow"
        Action   = ["secretsmanager:GetSecretValue"]
        Resource = var.secret_arns
      },
    ] : statement if length(var.secret_arns) > 0],
    [for statement in [
      {
        Sid      = "ReadParameters"
        Effect   = "Allow"
        Action   = ["ssm:GetParameter"]
        Resource = local.ssm_arns
      },
    ] : statement if length(var.ssm_parameter_names) > 0],
    [for statement in [
      {
        Sid      = "OpenSecrets"
        Effect   = "Allow"
        Action   = ["kms:Decrypt"]
        Resource = var.secret_kms_key_arns
      },
    ] : statement if length(var.secret_kms_key_arns) > 0],
  )
  # Channels take their secrets from variables; the Slack token may be a secret.
  alert_secret_statements = [for statement in [
    {
      Sid      = "ReadSlackToken"
      Effect   = "Allow"
      Action   = ["secretsmanager:GetSecretValue"]
      Resource = [var.slack_secret_arn]
    },
    {
      Sid      = "OpenSlackToken"
      Effect   = "Allow"
      Action   = ["kms:Decrypt"]
      Resource = var.secret_kms_key_arns
    },
  ] : statement if var.slack_secret_arn != null && (statement.Sid == "ReadSlackToken" || length(var.secret_kms_key_arns) > 0)]
}
