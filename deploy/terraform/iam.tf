# One role per function, one for the state machine, one for Scheduler. No action is `*`; a resource is `*` only where
# IAM knows no resource for the action. Rights on jobs, secrets and buckets are opt-in, for the ARNs given.

locals {
  lambda_trust = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "lambda.amazonaws.com" }
    }]
  })

  read_actions  = ["dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:Query"]
  write_actions = ["dynamodb:ConditionCheckItem", "dynamodb:DeleteItem", "dynamodb:PutItem", "dynamodb:UpdateItem"]

  # Every commit writes its events: whoever changes something writes to the events table, too.
  state_tables = {
    "stream-router" = ["control", "joblog", "rerun", "events"]
    "orchestrator"  = ["control", "joblog", "rerun", "events"]
    "sla-monitor"   = ["control", "events"]
    "watchdog"      = ["control", "joblog", "rerun", "events"]
  }
  control_statements = {
    for function, tables in local.state_tables : function => [
      {
        Sid      = "State"
        Effect   = "Allow"
        Action   = concat(local.read_actions, local.write_actions)
        Resource = [for table in tables : local.table_arns[table]]
      },
    ]
  }

  execution_statements = [
    {
      Sid      = "StartExecutions"
      Effect   = "Allow"
      Action   = ["states:StartExecution"]
      Resource = [local.state_machine_arn]
    },
    {
      Sid      = "LookAtExecutions"
      Effect   = "Allow"
      Action   = ["states:DescribeExecution"]
      Resource = [local.execution_arns]
    },
  ]

  # IAM knows no resource for the answer to a task token; a token is good for one wait.
  answer_statements = [
    {
      Sid      = "WakeExecutions"
      Effect   = "Allow"
      Action   = ["states:SendTaskSuccess"]
      Resource = ["*"]
    },
  ]

  # The timers that each arms: the sla-monitor those of an SLA, the watchdog ticks and wake-ups.
  timer_queues = {
    "stream-router" = ["timers", "sla-timers"]
    "sla-monitor"   = ["sla-timers"]
    "watchdog"      = ["timers"]
  }
  timer_statements = {
    for function, queues in local.timer_queues : function => [
      {
        Sid      = "ArmTimersNearby"
        Effect   = "Allow"
        Action   = ["sqs:SendMessage"]
        Resource = [for queue in queues : local.queue_arns[queue]]
      },
      {
        Sid      = "ArmTimersFarAhead"
        Effect   = "Allow"
        Action   = ["scheduler:CreateSchedule", "scheduler:DeleteSchedule", "scheduler:UpdateSchedule"]
        Resource = [local.schedule_arns]
      },
      {
        Sid       = "LetSchedulerSend"
        Effect    = "Allow"
        Action    = ["iam:PassRole"]
        Resource  = [local.scheduler_role_arn]
        Condition = { StringEquals = { "iam:PassedToService" = "scheduler.amazonaws.com" } }
      },
    ]
  }

  stream_statements = {
    for function in ["stream-router", "event-sink"] : function => [
      {
        Sid      = "ReadStreams"
        Effect   = "Allow"
        Action   = ["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"]
        Resource = [for table, stream in local.streams : "${local.table_arns[table]}/stream/*" if stream.function == function]
      },
      {
        # IAM knows no resource for the list of streams.
        Sid      = "FindStreams"
        Effect   = "Allow"
        Action   = ["dynamodb:ListStreams"]
        Resource = ["*"]
      },
      {
        Sid      = "SetAside"
        Effect   = "Allow"
        Action   = ["sqs:SendMessage"]
        Resource = [for table, stream in local.streams : local.queue_arns["${table}-dlq"] if stream.function == function]
      },
    ]
  }

  queue_statements = {
    for function, queue in { "stream-router" = "timers", "sla-monitor" = "sla-timers", "alert-dispatcher" = "alerts.fifo" } : function => [
      {
        Sid      = "ReadQueue"
        Effect   = "Allow"
        Action   = ["sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"]
        Resource = [local.queue_arns[queue]]
      },
    ]
  }

  log_statements = {
    for name in keys(local.functions) : name => [
      {
        Sid      = "Log"
        Effect   = "Allow"
        Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
        Resource = ["arn:${local.partition}:logs:${local.place}:log-group:/aws/lambda/${local.name}-${name}:*"]
      },
    ]
  }

  key_statements = [for statement in [
    {
      Sid      = "UseTheKey"
      Effect   = "Allow"
      Action   = ["kms:Decrypt", "kms:GenerateDataKey"]
      Resource = [var.kms_key_arn]
    },
  ] : statement if var.kms_key_arn != null]

  # IAM knows no resource for traces.
  tracing_statements = [for statement in [
    {
      Sid      = "Trace"
      Effect   = "Allow"
      Action   = ["xray:PutTelemetryRecords", "xray:PutTraceSegments"]
      Resource = ["*"]
    },
  ] : statement if var.enable_tracing]
  # Nobody knows the interfaces of a function before they are made.
  interface_arns = "arn:${local.partition}:ec2:${local.place}:network-interface/*"
  network_statements = [for statement in [
    {
      Sid    = "JoinTheNetwork"
      Effect = "Allow"
      Action = ["ec2:CreateNetworkInterface"]
      Resource = concat(
        [local.interface_arns],
        [for id in try(var.vpc_config.subnet_ids, []) : "arn:${local.partition}:ec2:${local.place}:subnet/${id}"],
        [for id in try(var.vpc_config.security_group_ids, []) : "arn:${local.partition}:ec2:${local.place}:security-group/${id}"],
      )
    },
    {
      Sid      = "LeaveTheNetwork"
      Effect   = "Allow"
      Action   = ["ec2:AssignPrivateIpAddresses", "ec2:DeleteNetworkInterface", "ec2:UnassignPrivateIpAddresses"]
      Resource = [local.interface_arns]
    },
    {
      # IAM knows no resource for the descriptions of a network.
      Sid      = "SeeTheNetwork"
      Effect   = "Allow"
      Action   = ["ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets"]
      Resource = ["*"]
    },
  ] : statement if var.vpc_config != null]

  function_statements = {
    "stream-router" = concat(
      local.control_statements["stream-router"], local.execution_statements, local.answer_statements, local.timer_statements["stream-router"],
      local.stream_statements["stream-router"], local.queue_statements["stream-router"],
      local.look_statements, local.secret_statements,
    )
    "orchestrator" = concat(
      local.control_statements["orchestrator"], local.execution_statements, local.answer_statements,
      local.look_statements, local.start_statements, local.probe_statements, local.secret_statements,
    )
    "sla-monitor" = concat(local.control_statements["sla-monitor"], local.timer_statements["sla-monitor"], local.queue_statements["sla-monitor"])
    "watchdog" = concat(local.control_statements["watchdog"], local.execution_statements, local.answer_statements, local.timer_statements["watchdog"], [
      {
        # A pass is made of slices that several invocations take.
        Sid      = "TakeSlices"
        Effect   = "Allow"
        Action   = ["lambda:InvokeFunction"]
        Resource = [local.function_arns["watchdog"]]
      },
    ])
    "event-sink" = concat(local.stream_statements["event-sink"], [
      {
        Sid      = "Events"
        Effect   = "Allow"
        Action   = ["dynamodb:PutItem"]
        Resource = [local.table_arns["events"]]
      },
      {
        Sid      = "Publish"
        Effect   = "Allow"
        Action   = ["events:PutEvents"]
        Resource = [local.event_bus_arn]
      },
      {
        Sid      = "QueueAlerts"
        Effect   = "Allow"
        Action   = ["sqs:SendMessage"]
        Resource = [local.queue_arns["alerts.fifo"]]
      },
    ])
    "alert-dispatcher" = concat(local.queue_statements["alert-dispatcher"], local.alert_secret_statements, [
      {
        Sid      = "ThreadsAndDeliveries"
        Effect   = "Allow"
        Action   = ["dynamodb:BatchGetItem", "dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"]
        Resource = [local.table_arns["events"]]
      },
      {
        Sid      = "RestBetweenTries"
        Effect   = "Allow"
        Action   = ["sqs:ChangeMessageVisibility"]
        Resource = [local.queue_arns["alerts.fifo"]]
      },
      {
        Sid      = "SetAside"
        Effect   = "Allow"
        Action   = ["sqs:SendMessage"]
        Resource = [local.queue_arns["alerts-dlq.fifo"]]
      },
    ])
  }
}

resource "aws_iam_role" "function" {
  for_each = local.functions

  name               = "${local.name}-${each.key}"
  description        = "The ${each.key} function of Interlock in ${var.environment}."
  assume_role_policy = local.lambda_trust
  tags               = local.tags
}

resource "aws_iam_role_policy" "function" {
  for_each = local.functions

  # checkov:skip=CKV_AWS_355:A resource is `*` only where IAM knows none for the action; each such statement says so.
  # checkov:skip=CKV_AWS_290:As above: answers to task tokens, traces and descriptions of networks have no resource.
  name = "interlock"
  role = aws_iam_role.function[each.key].name
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      local.function_statements[each.key], local.log_statements[each.key],
      local.key_statements, local.tracing_statements, local.network_statements,
    )
  })
}

# --------------------------------------------------------------------------------------------------- state machine

resource "aws_iam_role" "state_machine" {
  name        = "${local.name}-state-machine"
  description = "Executions of Interlock's lifecycle in ${var.environment}."
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "states.amazonaws.com" }
      Condition = {
        StringEquals = { "aws:SourceAccount" = local.account }
        ArnLike      = { "aws:SourceArn" = "arn:${local.partition}:states:${local.place}:stateMachine:${local.name}-*" }
      }
    }]
  })
  tags = local.tags
}

resource "aws_iam_role_policy" "state_machine" {
  # checkov:skip=CKV_AWS_355:IAM knows no resource for the delivery of logs and traces.
  # checkov:skip=CKV_AWS_289:As above; the resource policies are those of the delivery of logs.
  # checkov:skip=CKV_AWS_290:As above.
  name = "interlock"
  role = aws_iam_role.state_machine.name
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [
        {
          Sid      = "Call"
          Effect   = "Allow"
          Action   = ["lambda:InvokeFunction"]
          Resource = [local.function_arns["orchestrator"], local.function_arns["sla-monitor"]]
        },
        {
          Sid      = "Wait"
          Effect   = "Allow"
          Action   = ["dynamodb:UpdateItem"]
          Resource = [local.table_arns["control"]]
        },
        {
          # IAM knows no resource for the delivery of logs.
          Sid    = "DeliverLogs"
          Effect = "Allow"
          Action = [
            "logs:CreateLogDelivery", "logs:DeleteLogDelivery", "logs:DescribeLogGroups", "logs:DescribeResourcePolicies",
            "logs:GetLogDelivery", "logs:ListLogDeliveries", "logs:PutResourcePolicy", "logs:UpdateLogDelivery",
          ]
          Resource = ["*"]
        },
      ],
      local.key_statements,
      local.tracing_statements,
    )
  })
}

# -------------------------------------------------------------------------------------------------------- Scheduler

resource "aws_iam_role" "scheduler" {
  name        = "${local.name}-scheduler"
  description = "Timers of Interlock in ${var.environment}."
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "scheduler.amazonaws.com" }
      Condition = {
        StringEquals = {
          "aws:SourceAccount" = local.account
          "aws:SourceArn"     = "arn:${local.partition}:scheduler:${local.place}:schedule-group/${local.name}-timers"
        }
      }
    }]
  })
  tags = local.tags
}

resource "aws_iam_role_policy" "scheduler" {
  name = "interlock"
  role = aws_iam_role.scheduler.name
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat(
      [
        {
          Sid      = "Send"
          Effect   = "Allow"
          Action   = ["sqs:SendMessage"]
          Resource = [local.queue_arns["timers"], local.queue_arns["sla-timers"], local.queue_arns["scheduler-dlq"]]
        },
      ],
      local.key_statements,
    )
  })
}
