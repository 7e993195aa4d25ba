# The lake: bronze as it came, silver and gold as Delta tables.

resource "aws_s3_bucket" "lake" {
  # checkov:skip=CKV_AWS_18:Nobody reads the access log of an example.
  # checkov:skip=CKV_AWS_21:Delta keeps its own versions; bronze can be fetched again.
  # checkov:skip=CKV_AWS_144:One region.
  # checkov:skip=CKV_AWS_145:Encrypted by S3; public data.
  # checkov:skip=CKV2_AWS_62:Interlock is told by sensors, not by notifications.
  bucket = "${var.environment}-lake-${local.account}-${var.region}"
  # `terraform destroy` takes the tables along.
  force_destroy = true
}

resource "aws_s3_bucket_public_access_block" "lake" {
  bucket                  = aws_s3_bucket.lake.id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_lifecycle_configuration" "lake" {
  bucket = aws_s3_bucket.lake.id

  rule {
    id     = "bronze"
    status = "Enabled"

    filter {
      prefix = "bronze/"
    }

    expiration {
      days = 30
    }

    abort_incomplete_multipart_upload {
      days_after_initiation = 1
    }
  }
}
