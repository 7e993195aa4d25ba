output "store" {
  description = "What commands are given."
  value       = "aws://${module.interlock.environment}?region=${var.region}"
}

output "bucket" {
  description = "The lake."
  value       = aws_s3_bucket.lake.bucket
}

output "ingest_functions" {
  description = "What reads the feeds."
  value       = { for name, function in aws_lambda_function.ingest : name => function.function_name }
}
