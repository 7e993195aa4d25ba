# Four Glue jobs that merge into Delta tables. Interlock gives each run --par_day and --par_hour.

resource "aws_s3_object" "script" {
  for_each = local.jobs

  bucket = aws_s3_bucket.lake.id
  key    = "scripts/${replace(each.key, "-", "_")}.py"
  source = "${path.module}/glue/${replace(each.key, "-", "_")}.py"
  etag   = filemd5("${path.module}/glue/${replace(each.key, "-", "_")}.py")
}

# What the four scripts share.
resource "aws_s3_object" "shared" {
  bucket = aws_s3_bucket.lake.id
  key    = "scripts/lake.py"
  source = "${path.module}/glue/lake.py"
  etag   = filemd5("${path.module}/glue/lake.py")
}

resource "aws_glue_job" "this" {
  for_each = local.jobs

  # checkov:skip=CKV_AWS_195:Public data.
  name              = "${var.environment}-${each.key}"
  description       = "Merges ${each.key} into its Delta table."
  role_arn          = aws_iam_role.glue.arn
  glue_version      = "5.0"
  worker_type       = "G.1X"
  number_of_workers = 2
  timeout           = 30
  # Interlock decides about retries.
  max_retries = 0

  command {
    name            = "glueetl"
    python_version  = "3"
    script_location = "s3://${aws_s3_bucket.lake.bucket}/${aws_s3_object.script[each.key].key}"
  }

  default_arguments = {
    "--bucket"           = aws_s3_bucket.lake.bucket
    "--datalake-formats" = "delta"
    "--extra-py-files"   = "s3://${aws_s3_bucket.lake.bucket}/${aws_s3_object.shared.key}"
    "--conf"             = "spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension --conf spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog"
  }

  # A late hour may run beside the current one.
  execution_property {
    max_concurrent_runs = 5
  }
}

resource "aws_iam_role" "glue" {
  name = "${var.environment}-glue"
  assume_role_policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Effect = "Allow", Action = "sts:AssumeRole", Principal = { Service = "glue.amazonaws.com" } }]
  })
}

resource "aws_iam_role_policy" "glue" {
  name = "lake"
  role = aws_iam_role.glue.name
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid      = "ReadInputs"
        Effect   = "Allow"
        Action   = ["s3:GetObject"]
        Resource = ["${aws_s3_bucket.lake.arn}/bronze/*", "${aws_s3_bucket.lake.arn}/scripts/*"]
      },
      {
        Sid      = "KeepTables"
        Effect   = "Allow"
        Action   = ["s3:DeleteObject", "s3:GetObject", "s3:PutObject"]
        Resource = ["${aws_s3_bucket.lake.arn}/gold/*", "${aws_s3_bucket.lake.arn}/silver/*"]
      },
      {
        Sid      = "SeeTheLake"
        Effect   = "Allow"
        Action   = ["s3:GetBucketLocation", "s3:ListBucket"]
        Resource = [aws_s3_bucket.lake.arn]
      },
      {
        Sid      = "Log"
        Effect   = "Allow"
        Action   = ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"]
        Resource = ["arn:${local.partition}:logs:${var.region}:${local.account}:log-group:/aws-glue/*"]
      },
    ]
  })
}
