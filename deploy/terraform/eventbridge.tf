# The bus of Interlock's own events, the watchdog's clock, and what other services tell.

resource "aws_cloudwatch_event_bus" "events" {
  name = "${local.name}-events"
  tags = local.tags
}

locals {
  # Names out of ARNs, as an event pattern compares them: exactly, or with the wildcard that the ARN has.
  glue_jobs      = [for arn in var.glue_job_arns : element(split("/", arn), 1)]
  emr_clusters   = [for arn in var.emr_cluster_arns : element(split("/", arn), 1)]
  emr_serverless = [for arn in var.emr_serverless_application_arns : element(split("/", arn), 2)]
  named = {
    for kind, names in {
      glue           = local.glue_jobs
      emr            = local.emr_clusters
      emr-serverless = local.emr_serverless
      step-function  = var.sfn_trigger_arns
    } : kind => [for name in names : strcontains(name, "*") ? jsonencode({ wildcard = name }) : jsonencode(name)]
  }

  # EventBridge runs schedules on the default bus only, and services report there.
  rules = merge(
    {
      watchdog = {
        function = "watchdog"
        schedule = var.watchdog_schedule
        pattern  = null
        about    = "A pass of the watchdog."
      }
      machine = {
        function = "stream-router"
        schedule = null
        about    = "An execution that ended without a word of its own."
        pattern = jsonencode({
          source      = ["aws.states"]
          detail-type = ["Step Functions Execution Status Change"]
          detail      = { stateMachineArn = [local.state_machine_arn], status = ["TIMED_OUT", "ABORTED", "FAILED"] }
        })
      }
      alarms = {
        function = "event-sink"
        schedule = null
        about    = "The module's alarms become INFRA_ALARM events."
        pattern = jsonencode({
          source      = ["aws.cloudwatch"]
          detail-type = ["CloudWatch Alarm State Change"]
          detail      = { alarmName = [{ prefix = "${local.name}-" }], state = { value = ["ALARM", "OK"] } }
        })
      }
    },
    !var.enable_glue_trigger ? {} : {
      glue = {
        function = "stream-router"
        schedule = null
        about    = "Glue jobs that ended."
        pattern = jsonencode({
          source      = ["aws.glue"]
          detail-type = ["Glue Job State Change"]
          detail      = { jobName = [for name in local.named["glue"] : jsondecode(name)], state = ["SUCCEEDED", "FAILED", "TIMEOUT", "STOPPED"] }
        })
      }
    },
    !var.enable_emr_trigger ? {} : {
      emr = {
        function = "stream-router"
        schedule = null
        about    = "EMR steps that ended."
        pattern = jsonencode({
          source      = ["aws.emr"]
          detail-type = ["EMR Step Status Change"]
          detail      = { clusterId = [for name in local.named["emr"] : jsondecode(name)], state = ["COMPLETED", "FAILED", "CANCELLED"] }
        })
      }
    },
    !var.enable_emr_serverless_trigger ? {} : {
      emr-serverless = {
        function = "stream-router"
        schedule = null
        about    = "EMR Serverless job runs that ended."
        pattern = jsonencode({
          source      = ["aws.emr-serverless"]
          detail-type = ["EMR Serverless Job Run State Change"]
          detail      = { applicationId = [for name in local.named["emr-serverless"] : jsondecode(name)], state = ["SUCCESS", "FAILED", "CANCELLED"] }
        })
      }
    },
    !var.enable_sfn_trigger ? {} : {
      step-function = {
        function = "stream-router"
        schedule = null
        about    = "Executions of other state machines that ended."
        pattern = jsonencode({
          source      = ["aws.states"]
          detail-type = ["Step Functions Execution Status Change"]
          detail      = { stateMachineArn = [for name in local.named["step-function"] : jsondecode(name)], status = ["SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"] }
        })
      }
    },
  )
}

resource "aws_cloudwatch_event_rule" "this" {
  for_each = local.rules

  name                = "${local.name}-${each.key}"
  description         = each.value.about
  schedule_expression = each.value.schedule
  event_pattern       = each.value.pattern
  tags                = local.tags
}

resource "aws_cloudwatch_event_target" "this" {
  for_each = local.rules

  rule      = aws_cloudwatch_event_rule.this[each.key].name
  target_id = each.value.function
  arn       = aws_lambda_function.this[each.value.function].arn
  input     = each.key == "watchdog" ? jsonencode({ source = "interlock.schedule" }) : null

  dynamic "input_transformer" {
    for_each = each.key == "alarms" ? [true] : []

    content {
      input_paths = {
        time      = "$.time"
        alarmName = "$.detail.alarmName"
        state     = "$.detail.state.value"
        previous  = "$.detail.previousState.value"
        reason    = "$.detail.state.reason"
      }
      input_template = <<-TEMPLATE
        {"source": "interlock", "detail-type": "INFRA_ALARM", "time": <time>, "detail": {"alarmName": <alarmName>, "state": <state>, "previous": <previous>, "reason": <reason>}}
      TEMPLATE
    }
  }
}

resource "aws_lambda_permission" "rule" {
  for_each = local.rules

  statement_id  = "rule-${each.key}"
  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_function.this[each.value.function].function_name
  principal     = "events.amazonaws.com"
  source_arn    = aws_cloudwatch_event_rule.this[each.key].arn
}
