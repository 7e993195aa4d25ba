# The six functions, their logs, and what calls them from streams and queues.

locals {
  functions = {
    "stream-router"    = { timeout = 60, dead = "control-dlq" }
    "orchestrator"     = { timeout = var.orchestrator_timeout_seconds, dead = null }
    "sla-monitor"      = { timeout = 60, dead = null }
    "watchdog"         = { timeout = 300, dead = null }
    "event-sink"       = { timeout = 60, dead = "events-dlq" }
    "alert-dispatcher" = { timeout = 60, dead = null }
  }

  # What the packages were built for: byte code in them is that of one Python.
  build  = jsondecode(fileexists("${var.dist_path}/manifest.json") ? file("${var.dist_path}/manifest.json") : "{}")
  python = try(local.build.python, "unknown")

  # What a function cannot do without is listed in src/interlock/aws/settings.py (REQUIRED); a test compares.
  common_environment = {
    INTERLOCK_ENVIRONMENT = var.environment
    EVENTS_TABLE          = "${local.name}-events"
    EVENTS_TTL_DAYS       = tostring(var.events_ttl_days)
    LOG_LEVEL             = var.log_level
  }
  control_environment = merge(local.common_environment, {
    CONTROL_TABLE        = "${local.name}-control"
    JOBLOG_TABLE         = "${local.name}-joblog"
    RERUN_TABLE          = "${local.name}-rerun"
    SFN_TIMEOUT_SECONDS  = tostring(var.sfn_timeout_seconds)
    TRIGGER_MAX_ATTEMPTS = tostring(var.trigger_max_attempts)
    POOLS                = jsonencode(var.pools)
  })
  machine_environment = { STATE_MACHINE_ARN = local.state_machine_arn }
  timers_environment = {
    TIMER_QUEUE_URL     = local.queue_urls["timers"]
    TIMER_QUEUE_ARN     = local.queue_arns["timers"]
    SLA_TIMER_QUEUE_URL = local.queue_urls["sla-timers"]
    SLA_TIMER_QUEUE_ARN = local.queue_arns["sla-timers"]
    SCHEDULER_GROUP     = "${local.name}-timers"
    SCHEDULER_ROLE_ARN  = local.scheduler_role_arn
    SCHEDULER_DLQ_ARN   = local.queue_arns["scheduler-dlq"]
  }
  jobs_environment = merge(var.job_environment, {
    ALLOW_PRIVATE_ADDRESSES = jsonencode(var.allow_private_addresses)
  })
  alerts_environment = {
    ALERT_QUEUE_URL = local.queue_urls["alerts.fifo"]
    ALERTS          = var.alerts
  }

  environments = {
    "stream-router" = merge(local.jobs_environment, local.control_environment, local.machine_environment, local.timers_environment, {
      CONTROL_DLQ_URL = local.queue_urls["control-dlq"]
      JOBLOG_DLQ_URL  = local.queue_urls["joblog-dlq"]
    })
    "orchestrator" = merge(local.jobs_environment, local.control_environment, local.machine_environment)
    "sla-monitor"  = merge(local.control_environment, local.timers_environment)
    "watchdog"     = merge(local.control_environment, local.machine_environment, local.timers_environment)
    "event-sink" = merge(local.common_environment, local.alerts_environment, {
      EVENT_BUS_NAME = "${local.name}-events"
      EVENTS_DLQ_URL = local.queue_urls["events-dlq"]
    })
    "alert-dispatcher" = merge(
      local.common_environment,
      local.alerts_environment,
      { ALERT_DLQ_URL = local.queue_urls["alerts-dlq.fifo"] },
      var.slack_secret_arn == null ? {} : { SLACK_SECRET_ARN = var.slack_secret_arn },
      var.slack_bot_token == null ? {} : { SLACK_BOT_TOKEN = var.slack_bot_token },
    )
  }
}

resource "aws_lambda_function" "this" {
  for_each = local.functions

  # checkov:skip=CKV_AWS_115:Concurrency is reserved where the deployer wants it (reserved_concurrency).
  # checkov:skip=CKV_AWS_116:Stream-router and event-sink, which others call asynchronously, have a dead-letter queue. The state machine waits for the rest, queues keep their messages, and the watchdog runs again in minutes.
  # checkov:skip=CKV_AWS_117:The functions call AWS only, or addresses outside; they need no network of the customer's. vpc_config gives them one where jobs are private.
  # checkov:skip=CKV_AWS_173:Encrypted by Lambda unless kms_key_arn names the customer's key.
  # checkov:skip=CKV_AWS_50:Tracing is a choice of the deployer (enable_tracing).
  # checkov:skip=CKV_AWS_272:Packages are built reproducibly from this repository (make lambda) and compared by digest.
  function_name = "${local.name}-${each.key}"
  description   = "interlock ${try(local.build.version, "unknown")} source ${try(local.build.source, "unknown")}"
  role          = aws_iam_role.function[each.key].arn
  handler       = "interlock.aws.lambdas.${replace(each.key, "-", "_")}.handler"
  runtime       = "python${local.python}"
  architectures = [var.architecture]
  memory_size   = var.lambda_memory_size
  timeout       = each.value.timeout

  filename         = "${var.dist_path}/${each.key}.zip"
  source_code_hash = try(filebase64sha256("${var.dist_path}/${each.key}.zip"), null)

  reserved_concurrent_executions = lookup(var.reserved_concurrency, each.key, -1)
  kms_key_arn                    = var.kms_key_arn

  environment {
    variables = local.environments[each.key]
  }

  logging_config {
    log_format = "Text"
    log_group  = aws_cloudwatch_log_group.function[each.key].name
  }

  # Events of other services reach a function asynchronously; what it fails on three times is kept.
  dynamic "dead_letter_config" {
    for_each = each.value.dead == null ? [] : [each.value.dead]

    content {
      target_arn = aws_sqs_queue.this[dead_letter_config.value].arn
    }
  }

  dynamic "vpc_config" {
    for_each = var.vpc_config == null ? [] : [var.vpc_config]

    content {
      subnet_ids         = vpc_config.value.subnet_ids
      security_group_ids = vpc_config.value.security_group_ids
    }
  }

  tracing_config {
    mode = var.enable_tracing ? "Active" : "PassThrough"
  }

  tags = local.tags

  depends_on = [aws_iam_role_policy.function]

  lifecycle {
    precondition {
      condition     = fileexists("${var.dist_path}/${each.key}.zip")
      error_message = "${var.dist_path}/${each.key}.zip is not there: build the packages first (make lambda ARCHITECTURE=${var.architecture}), or mend dist_path."
    }
    precondition {
      condition     = contains(["3.11", "3.12", "3.13"], local.python)
      error_message = "${var.dist_path}/manifest.json does not name a Python of Lambda (3.11, 3.12 or 3.13) but ${local.python}: build the packages with make lambda."
    }
    precondition {
      condition     = try(local.build.architecture, var.architecture) == var.architecture
      error_message = "The packages in ${var.dist_path} were built for ${try(local.build.architecture, "?")}: build them again (make lambda ARCHITECTURE=${var.architecture}), or set architecture."
    }
  }
}

resource "aws_cloudwatch_log_group" "function" {
  for_each = local.functions

  # checkov:skip=CKV_AWS_338:How long logs are kept is the deployer's choice (log_retention_days).
  # checkov:skip=CKV_AWS_158:Encrypted by CloudWatch unless kms_key_arn names the customer's key.
  name              = "/aws/lambda/${local.name}-${each.key}"
  retention_in_days = var.log_retention_days
  kms_key_id        = var.kms_key_arn
  tags              = local.tags
}

# ------------------------------------------------------------------------------------------------- streams

locals {
  written = ["INSERT", "MODIFY"]
  # A removal by the time to live carries the service as its identity; nothing follows from it.
  by_anybody = { type = [{ exists = false }] }

  # A mapping takes five filters. What none of them matches invokes nothing: see control/router.py for what is routed.
  stream_filters = {
    control = [
      # Sensors, SLA states, cascade markers, rerun requests and configs.
      {
        eventName = local.written
        dynamodb = { Keys = {
          PK = { S = [{ prefix = "PIPELINE#" }] }
          SK = { S = [{ prefix = "SENSOR#" }, { prefix = "SLA#" }, { prefix = "MARKER#" }, { prefix = "RERUN_REQUEST#" }, "CONFIG"] }
        } }
      },
      # Runs, unless their execution is about to act; a record without a status is not ours, and is delivered.
      {
        eventName = local.written
        dynamodb = {
          Keys     = { PK = { S = [{ prefix = "PIPELINE#" }] }, SK = { S = [{ prefix = "TRIGGER#" }] } }
          NewImage = { status = { S = [{ anything-but = ["TRIGGERING", "RUNNING"] }, { exists = false }] } }
        }
      },
      # The run of an external job that was claimed, and has not started.
      {
        eventName = local.written
        dynamodb = {
          Keys = { PK = { S = [{ prefix = "PIPELINE#" }] }, SK = { S = [{ prefix = "TRIGGER#" }] } }
          NewImage = {
            status       = { S = ["RUNNING"] }
            claimId      = { S = [{ exists = true }] }
            jobStartedAt = { S = [{ exists = false }] }
          }
        }
      },
      # What somebody deleted: a sensor, a promise, a pipeline.
      {
        eventName = ["REMOVE"]
        dynamodb = { Keys = {
          PK = { S = [{ prefix = "PIPELINE#" }] }
          SK = { S = [{ prefix = "SENSOR#" }, { prefix = "SLA#" }, "CONFIG"] }
        } }
        userIdentity = local.by_anybody
      },
      # Calendars, written or deleted.
      {
        dynamodb     = { Keys = { PK = { S = ["CALENDARS"] } } }
        userIdentity = local.by_anybody
      },
    ]
    joblog = [
      # Ends of jobs. A record of an unknown kind is delivered, too.
      {
        eventName = local.written
        dynamodb = {
          Keys     = { PK = { S = [{ prefix = "PIPELINE#" }] } }
          NewImage = { event = { S = [{ anything-but = ["infra-trigger-failure", "infra-trigger-exhausted", "validation-exhausted", "rerun-rejected"] }, { exists = false }] } }
        }
      },
    ]
    events = [
      # Events, not the threads and deliveries beside them: an event's sort key starts with its time.
      {
        eventName = ["INSERT"]
        dynamodb = { Keys = {
          PK = { S = [{ prefix = "PIPELINE#" }] }
          SK = { S = [for digit in range(10) : { prefix = tostring(digit) }] }
        } }
      },
    ]
  }

  streams = {
    control = { function = "stream-router", parallel = var.stream_parallelization }
    joblog  = { function = "stream-router", parallel = var.stream_parallelization }
    # Lambda keeps the order of an item only, and events are items of their own: alerts would overtake each other.
    events = { function = "event-sink", parallel = 1 }
  }
}

resource "aws_lambda_event_source_mapping" "stream" {
  for_each = local.streams

  event_source_arn  = aws_dynamodb_table.this[each.key].stream_arn
  function_name     = aws_lambda_function.this[each.value.function].arn
  starting_position = "TRIM_HORIZON"

  batch_size                         = 10
  parallelization_factor             = each.value.parallel
  bisect_batch_on_function_error     = true
  function_response_types            = ["ReportBatchItemFailures"]
  maximum_batching_window_in_seconds = 0
  # The function itself sets a record aside that fails by itself. What is left are outages: retried while the stream has it.
  maximum_retry_attempts        = -1
  maximum_record_age_in_seconds = 82800

  filter_criteria {
    dynamic "filter" {
      for_each = local.stream_filters[each.key]

      content {
        pattern = jsonencode(filter.value)
      }
    }
  }

  destination_config {
    on_failure {
      destination_arn = aws_sqs_queue.this["${each.key}-dlq"].arn
    }
  }

  tags = local.tags

  depends_on = [aws_iam_role_policy.function]
}

# -------------------------------------------------------------------------------------------------- queues

resource "aws_lambda_event_source_mapping" "queue" {
  for_each = {
    "timers"      = "stream-router"
    "sla-timers"  = "sla-monitor"
    "alerts.fifo" = "alert-dispatcher"
  }

  event_source_arn        = aws_sqs_queue.this[each.key].arn
  function_name           = aws_lambda_function.this[each.value].arn
  batch_size              = 10
  function_response_types = ["ReportBatchItemFailures"]

  tags = local.tags

  depends_on = [aws_iam_role_policy.function]
}
