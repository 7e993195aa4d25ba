# The four tables. Keys and streams are those of the store port (src/interlock/aws/dynamodb/store.py).

locals {
  tables = {
    control = { stream = true }
    joblog  = { stream = true }
    rerun   = { stream = false }
    events  = { stream = true }
  }
}

resource "aws_dynamodb_table" "this" {
  for_each = local.tables

  # checkov:skip=CKV_AWS_119:Encrypted with a key of AWS unless kms_key_arn names the customer's; which one is the deployer's choice.
  # checkov:skip=CKV_AWS_28:Point-in-time recovery is on by default (point_in_time_recovery).
  # checkov:skip=CKV2_AWS_16:On-demand capacity scales by itself.
  name         = "${local.name}-${each.key}"
  billing_mode = "PAY_PER_REQUEST"
  hash_key     = "PK"
  range_key    = "SK"

  stream_enabled   = each.value.stream
  stream_view_type = each.value.stream ? "NEW_IMAGE" : null

  deletion_protection_enabled = var.deletion_protection

  attribute {
    name = "PK"
    type = "S"
  }

  attribute {
    name = "SK"
    type = "S"
  }

  # Events by type and time; a type is spread over several partitions of the index.
  dynamic "attribute" {
    for_each = each.key == "events" ? ["GSI1PK", "GSI1SK"] : []

    content {
      name = attribute.value
      type = "S"
    }
  }

  dynamic "global_secondary_index" {
    for_each = each.key == "events" ? ["GSI1"] : []

    content {
      name            = global_secondary_index.value
      hash_key        = "GSI1PK"
      range_key       = "GSI1SK"
      projection_type = "ALL"
    }
  }

  ttl {
    attribute_name = "ttl"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = var.point_in_time_recovery
  }

  # Without a key of their own, tables are encrypted with one that DynamoDB owns.
  dynamic "server_side_encryption" {
    for_each = var.kms_key_arn == null ? [] : [var.kms_key_arn]

    content {
      enabled     = true
      kms_key_arn = server_side_encryption.value
    }
  }

  tags = local.tags
}
