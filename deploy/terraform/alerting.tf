# Queues: timers, alerts, and where goes what could not be processed.

locals {
  # `receives`: how often a message may be received before it is a dead letter. The alert-dispatcher gives up after a day
  # by itself, and rests between its tries: its count is only the net below.
  queues = {
    "timers"          = { fifo = false, visibility = 360, receives = 5, dead = "timers-dlq" }
    "sla-timers"      = { fifo = false, visibility = 360, receives = 5, dead = "sla-timers-dlq" }
    "alerts.fifo"     = { fifo = true, visibility = 360, receives = 1000, dead = "alerts-dlq.fifo" }
    "timers-dlq"      = { fifo = false, visibility = 60, receives = 0, dead = null }
    "sla-timers-dlq"  = { fifo = false, visibility = 60, receives = 0, dead = null }
    "alerts-dlq.fifo" = { fifo = true, visibility = 60, receives = 0, dead = null }
    "control-dlq"     = { fifo = false, visibility = 60, receives = 0, dead = null }
    "joblog-dlq"      = { fifo = false, visibility = 60, receives = 0, dead = null }
    "events-dlq"      = { fifo = false, visibility = 60, receives = 0, dead = null }
    "scheduler-dlq"   = { fifo = false, visibility = 60, receives = 0, dead = null }
  }
}

resource "aws_sqs_queue" "this" {
  for_each = local.queues

  name       = "${local.name}-${each.key}"
  fifo_queue = each.value.fifo ? true : null
  # One pipeline and channel is one group: groups do not hold each other up.
  deduplication_scope   = each.value.fifo ? "messageGroup" : null
  fifo_throughput_limit = each.value.fifo ? "perMessageGroupId" : null

  visibility_timeout_seconds = each.value.visibility
  message_retention_seconds  = 1209600
  # A dead letter holds a whole record, and an item has up to 400 KB.
  max_message_size = 1048576

  redrive_policy = each.value.dead == null ? null : jsonencode({
    deadLetterTargetArn = local.queue_arns[each.value.dead]
    maxReceiveCount     = each.value.receives
  })

  sqs_managed_sse_enabled           = var.kms_key_arn == null ? true : null
  kms_master_key_id                 = var.kms_key_arn
  kms_data_key_reuse_period_seconds = var.kms_key_arn == null ? null : 3600

  tags = local.tags
}

# Only the queue that names a dead-letter queue may fill it.
resource "aws_sqs_queue_redrive_allow_policy" "this" {
  for_each = { for name, queue in local.queues : name => queue if queue.dead != null }

  queue_url = aws_sqs_queue.this[each.value.dead].url
  redrive_allow_policy = jsonencode({
    redrivePermission = "byQueue"
    sourceQueueArns   = [aws_sqs_queue.this[each.key].arn]
  })
}
