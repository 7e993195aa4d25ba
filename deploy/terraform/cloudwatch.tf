# Alarms. Each becomes an INFRA_ALARM event (eventbridge.tf), and goes to a topic where one is named.

locals {
  dead_letter_alarms = {
    control = "control-dlq", joblog = "joblog-dlq", events = "events-dlq", alert = "alerts-dlq.fifo"
    timers  = "timers-dlq", sla-timers = "sla-timers-dlq", scheduler = "scheduler-dlq"
  }

  alarms = merge(
    {
      for name in keys(local.functions) : "${name}-errors" => {
        about      = "The ${name} function fails."
        namespace  = "AWS/Lambda"
        metric     = "Errors"
        dimensions = { FunctionName = "${local.name}-${name}" }
        statistic  = "Sum"
        period     = 300
        threshold  = 1
        missing    = "notBreaching"
        comparison = "GreaterThanOrEqualToThreshold"
      }
    },
    {
      for status in ["Failed", "TimedOut"] : status == "Failed" ? "executions-failed" : "executions-timed-out" => {
        about      = "Executions of the lifecycle end without an outcome of their own."
        namespace  = "AWS/States"
        metric     = "Executions${status}"
        dimensions = { StateMachineArn = local.state_machine_arn }
        statistic  = "Sum"
        period     = 300
        threshold  = 1
        missing    = "notBreaching"
        comparison = "GreaterThanOrEqualToThreshold"
      }
    },
    {
      for name, queue in local.dead_letter_alarms : "${name}-dead-letters" => {
        about      = "There are dead letters in ${local.name}-${queue}."
        namespace  = "AWS/SQS"
        metric     = "ApproximateNumberOfMessagesVisible"
        dimensions = { QueueName = "${local.name}-${queue}" }
        statistic  = "Maximum"
        period     = 300
        threshold  = 1
        missing    = "notBreaching"
        comparison = "GreaterThanOrEqualToThreshold"
      }
    },
    {
      # Lambda measures the age per function: control and joblog, which the stream-router reads, ring together.
      for table, stream in local.streams : "${table}-stream-age" => {
        about      = "The ${stream.function} is behind: the oldest record of its streams (${table}) waits for five minutes."
        namespace  = "AWS/Lambda"
        metric     = "IteratorAge"
        dimensions = { FunctionName = "${local.name}-${stream.function}" }
        statistic  = "Maximum"
        period     = 300
        threshold  = 300000
        missing    = "notBreaching"
        comparison = "GreaterThanOrEqualToThreshold"
      }
    },
    {
      # A timer further ahead than its queue's delay is not in the queue yet: what is old there is late.
      for name, age in { timers = 300, sla-timers = 300, alerts = 1800 } : "${name}-queue-age" => {
        about                   = "Messages of ${local.name}-${name} wait for more than ${age / 60} minutes."
        namespace               = "AWS/SQS"
        metric                  = "ApproximateAgeOfOldestMessage"
        dimensions              = { QueueName = name == "alerts" ? "${local.name}-alerts.fifo" : "${local.name}-${name}" }
        statistic               = "Maximum"
        period                  = 300
        threshold               = age
        missing                 = "notBreaching"
        comparison              = "GreaterThanOrEqualToThreshold"
      }
    },
    {
      watchdog-silent = {
        about      = "The watchdog has not run: nobody looks for what did not happen."
        namespace  = "AWS/Lambda"
        metric     = "Invocations"
        dimensions = { FunctionName = "${local.name}-watchdog" }
        statistic  = "Sum"
        period     = var.watchdog_silence_seconds
        threshold  = 1
        missing    = "breaching"
        comparison = "LessThanThreshold"
      }
    },
  )
}

resource "aws_cloudwatch_metric_alarm" "this" {
  for_each = local.alarms

  alarm_name          = "${local.name}-${each.key}"
  alarm_description   = each.value.about
  namespace           = each.value.namespace
  metric_name         = each.value.metric
  dimensions          = each.value.dimensions
  statistic           = each.value.statistic
  period              = each.value.period
  evaluation_periods  = 1
  threshold           = each.value.threshold
  comparison_operator = each.value.comparison
  treat_missing_data  = each.value.missing

  alarm_actions = var.sns_alarm_topic_arn == null ? [] : [var.sns_alarm_topic_arn]
  ok_actions    = var.sns_alarm_topic_arn == null ? [] : [var.sns_alarm_topic_arn]

  tags = local.tags
}
