# The lifecycle of one attempt: the file that the embedded runtime interprets.

resource "aws_sfn_state_machine" "pipeline" {
  # checkov:skip=CKV_AWS_284:Tracing is a choice of the deployer (enable_tracing).
  # checkov:skip=CKV_AWS_285:Executions are logged by default (sfn_log_level), without their data: it may hold what sensors say.
  name     = "${local.name}-pipeline"
  role_arn = aws_iam_role.state_machine.arn
  type     = "STANDARD"

  definition = templatefile("${path.module}/../../src/interlock/control/lifecycle.asl.json", {
    orchestrator_arn     = local.function_arns["orchestrator"]
    sla_monitor_arn      = local.function_arns["sla-monitor"]
    control_table        = "${local.name}-control"
    sfn_timeout_seconds  = var.sfn_timeout_seconds
    trigger_max_attempts = var.trigger_max_attempts
  })

  logging_configuration {
    level                  = var.sfn_log_level
    include_execution_data = false
    log_destination        = "${aws_cloudwatch_log_group.state_machine.arn}:*"
  }

  dynamic "tracing_configuration" {
    for_each = var.enable_tracing ? [true] : []

    content {
      enabled = true
    }
  }

  tags = local.tags

  # The role must be able to call before the first execution starts.
  depends_on = [aws_iam_role_policy.state_machine, aws_lambda_function.this]
}

resource "aws_cloudwatch_log_group" "state_machine" {
  # checkov:skip=CKV_AWS_338:How long logs are kept is the deployer's choice (log_retention_days).
  # checkov:skip=CKV_AWS_158:Encrypted by CloudWatch unless kms_key_arn names the customer's key.
  name              = "/aws/vendedlogs/states/${local.name}-pipeline"
  retention_in_days = var.log_retention_days
  kms_key_id        = var.kms_key_arn
  tags              = local.tags
}
