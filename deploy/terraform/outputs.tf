output "environment" {
  description = "What commands name: --store aws://ENVIRONMENT."
  value       = var.environment
}

output "table_names" {
  description = "The four tables: control, joblog, rerun, events."
  value       = { for name, table in aws_dynamodb_table.this : name => table.name }
}

output "table_arns" {
  description = "ARNs of the tables; writers of sensors need dynamodb:PutItem on control."
  value       = { for name, table in aws_dynamodb_table.this : name => table.arn }
}

output "function_arns" {
  description = "The six functions."
  value       = { for name, function in aws_lambda_function.this : name => function.arn }
}

output "role_arns" {
  description = "Roles of the functions, the state machine and Scheduler; roles that jobs assume must trust the orchestrator's and the stream-router's."
  value = merge(
    { for name, role in aws_iam_role.function : name => role.arn },
    { state-machine = aws_iam_role.state_machine.arn, scheduler = aws_iam_role.scheduler.arn },
  )
}

output "state_machine_arn" {
  description = "The lifecycle."
  value       = aws_sfn_state_machine.pipeline.arn
}

output "event_bus_name" {
  description = "The bus with Interlock's events; rules for other consumers go there."
  value       = aws_cloudwatch_event_bus.events.name
}

output "event_bus_arn" {
  description = "ARN of the bus."
  value       = aws_cloudwatch_event_bus.events.arn
}

output "queue_urls" {
  description = "Queues of timers and alerts, and their dead letters."
  value       = { for name, queue in aws_sqs_queue.this : name => queue.url }
}

output "scheduler_group_name" {
  description = "The group of one-time schedules."
  value       = aws_scheduler_schedule_group.timers.name
}

output "alarm_names" {
  description = "The alarms."
  value       = [for name, alarm in aws_cloudwatch_metric_alarm.this : alarm.alarm_name]
}

output "pipelines" {
  description = "The pipelines that pipelines_json has stored, with the version of each."
  value       = { for id, config in local.configs : id => config.version }
}
