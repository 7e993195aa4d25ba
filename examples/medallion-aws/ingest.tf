# Two functions read the feeds every 20 minutes, keep them in bronze, and write hourly-status when an hour is over.

resource "aws_lambda_function" "ingest" {
  for_each = local.feeds

  # checkov:skip=CKV_AWS_116:The next reading is in 20 minutes, and finds what this one missed.
  # checkov:skip=CKV_AWS_117:They read public feeds.
  # checkov:skip=CKV_AWS_173:Nothing in the variables is secret.
  # checkov:skip=CKV_AWS_50:An example is not traced.
  # checkov:skip=CKV_AWS_272:Built from this folder.
  function_name = "${var.environment}-ingest-${each.key}"
  description   = "Reads the ${each.key} feed into bronze."
  role          = aws_iam_role.ingest[each.key].arn
  handler       = "${each.key}.handler"
  runtime       = "python3.13"
  architectures = ["arm64"]
  memory_size   = 256
  timeout       = 60

  filename         = "${path.module}/ingest.zip"
  source_code_hash = try(filebase64sha256("${path.module}/ingest.zip"), null)

  # An object of bronze is read, merged and written: by one reader at a time.
  reserved_concurrent_executions = 1

  environment {
    variables = {
      BUCKET        = aws_s3_bucket.lake.bucket
      CONTROL_TABLE = module.interlock.table_names["control"]
      FEED_URL      = each.value.url
    }
  }

  lifecycle {
    precondition {
      condition     = fileexists("${path.module}/ingest.zip")
      error_message = "ingest.zip is not there: python ingest/build.py"
    }
  }

  depends_on = [aws_iam_role_policy.ingest, aws_cloudwatch_log_group.ingest]
}

resource "aws_cloudwatch_log_group" "ingest" {
  for_each = local.feeds

  # checkov:skip=CKV_AWS_158:Public data.
  # checkov:skip=CKV_AWS_338:Two weeks are enough.
  name              = "/aws/lambda/${var.environment}-ingest-${each.key}"
  retention_in_days = 14
}

resource "aws_cloudwatch_event_rule" "ingest" {
  for_each = local.feeds

  name                = "${var.environment}-ingest-${each.key}"
  description         = "A reading of the ${each.key} feed."
  schedule_expression = "cron(0/20 * * * ? *)"
}

resource "aws_cloudwatch_event_target" "ingest" {
  for_each = local.feeds

  rule = aws_cloudwatch_event_rule.ingest[each.key].name
  arn  = aws_lambda_function.ingest[each.key].arn
}

resource "aws_lambda_permission" "ingest" {
  for_each = local.feeds

  statement_id  = "schedule"
  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_function.ingest[each.key].function_name
  principal     = "events.amazonaws.com"
  source_arn    = aws_cloudwatch_event_rule.ingest[each.key].arn
}

resource "aws_iam_role" "ingest" {
  for_each = local.feeds

  name = "${var.environment}-ingest-${each.key}"
  assume_role_policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Effect = "Allow", Action = "sts:AssumeRole", Principal = { Service = "lambda.amazonaws.com" } }]
  })
}

resource "aws_iam_role_policy" "ingest" {
  for_each = local.feeds

  name = "ingest"
  role = aws_iam_role.ingest[each.key].name
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid      = "Bronze"
        Effect   = "Allow"
        Action   = ["s3:GetObject", "s3:PutObject"]
        Resource = ["${aws_s3_bucket.lake.arn}/bronze/${each.key}/*"]
      },
      {
        # Without it S3 answers 403 for an object that is not there yet.
        Sid      = "SeeWhatIsThere"
        Effect   = "Allow"
        Action   = ["s3:ListBucket"]
        Resource = [aws_s3_bucket.lake.arn]
      },
      {
        # The sensors of its own pipeline, and nothing else of the table.
        Sid       = "Tell"
        Effect    = "Allow"
        Action    = ["dynamodb:PutItem"]
        Resource  = [module.interlock.table_arns["control"]]
        Condition = { "ForAllValues:StringEquals" = { "dynamodb:LeadingKeys" = ["PIPELINE#${each.key}-silver"] } }
      },
      {
        Sid      = "Log"
        Effect   = "Allow"
        Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
        Resource = ["${aws_cloudwatch_log_group.ingest[each.key].arn}:*"]
      },
    ]
  })
}
