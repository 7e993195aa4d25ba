# Pipelines and calendars as `interlock validate --json` has checked and completed them (archetypes merged, aliases
# resolved): Terraform stores its output and reads no YAML. The digests in it make sure that it is of these very files.

locals {
  nothing   = jsonencode({ configs = [], calendars = [], files = [], errors = [] })
  validated = jsondecode(var.pipelines_json == null ? local.nothing : file(var.pipelines_json))

  configs   = { for config in local.validated.configs : config.id => config }
  calendars = { for calendar in local.validated.calendars : calendar.name => calendar }

  # Files that are not those that were validated, and files beside them that were not there yet.
  changed_files = [
    for found in local.validated.files : found.path
    if try(filesha256("${var.pipelines_root}/${found.path}"), "") != found.sha256
  ]
  validated_folders = toset([for found in local.validated.files : dirname(found.path)])
  added_files = setsubtract(
    flatten([for folder in local.validated_folders : [for name in fileset("${var.pipelines_root}/${folder}", "*.{yaml,yml,json}") : folder == "." ? name : "${folder}/${name}"]]),
    [for found in local.validated.files : found.path],
  )

  # What needs a machine of its own is refused here, by name, as `interlock plan --store aws://...` refuses it.
  documents = { for id, config in local.configs : id => jsondecode(config.document) }
  refused = concat(
    [for id, document in local.documents : "${id} (a command job)" if try(document.job.type, "") == "command"],
    [for id, document in local.documents : "${id} (callback: true)" if try(document.job.config.callback, false)],
    flatten([
      for id, document in local.documents : [
        for probe in try(document.probes, []) : "${id} (a ${probe.type} probe)" if contains(["command", "file", "sql"], probe.type)
      ]
    ]),
  )
}

# Nothing is stored unless the output is good, and of these files.
resource "terraform_data" "validated" {
  count = var.pipelines_json == null ? 0 : 1

  input = sha256(jsonencode(local.validated))

  lifecycle {
    precondition {
      condition     = length(local.validated.errors) == 0
      error_message = "interlock validate found errors: mend the pipelines, and run it again."
    }
    precondition {
      condition     = length(local.changed_files) == 0
      error_message = "Changed since interlock validate: ${join(", ", local.changed_files)}. Run it again: interlock validate --json FOLDER > ${coalesce(var.pipelines_json, "pipelines.json")}"
    }
    precondition {
      condition     = length(local.added_files) == 0
      error_message = "Not there when interlock validate was run: ${join(", ", local.added_files)}. Run it again: interlock validate --json FOLDER > ${coalesce(var.pipelines_json, "pipelines.json")}"
    }
    precondition {
      condition     = length(local.refused) == 0
      error_message = "Cannot run on AWS: ${join(", ", local.refused)}."
    }
  }
}

resource "aws_dynamodb_table_item" "calendar" {
  for_each = local.calendars

  table_name = aws_dynamodb_table.this["control"].name
  hash_key   = "PK"
  range_key  = "SK"
  item = jsonencode(merge(
    {
      PK   = { S = "CALENDARS" }
      SK   = { S = each.key }
      name = { S = each.key }
    },
    length(each.value.days) == 0 ? {} : { days = { L = [for day in each.value.days : { S = day }] } },
    length(each.value.dates) == 0 ? {} : { dates = { L = [for date in each.value.dates : { S = date }] } },
    each.value.description == "" ? {} : { description = { S = each.value.description } },
  ))

  depends_on = [terraform_data.validated]
}

# The registry lists the pipelines; it is there before the config, whose change is what sets things in motion.
resource "aws_dynamodb_table_item" "registry" {
  for_each = local.configs

  table_name = aws_dynamodb_table.this["control"].name
  hash_key   = "PK"
  range_key  = "SK"
  item = jsonencode({
    PK = { S = "REGISTRY" }
    SK = { S = "PIPELINE#${each.key}" }
  })

  depends_on = [terraform_data.validated]
}

resource "aws_dynamodb_table_item" "config" {
  for_each = local.configs

  table_name = aws_dynamodb_table.this["control"].name
  hash_key   = "PK"
  range_key  = "SK"
  item = jsonencode({
    PK       = { S = "PIPELINE#${each.key}" }
    SK       = { S = "CONFIG" }
    document = { S = each.value.document }
    version  = { S = each.value.version }
  })

  depends_on = [terraform_data.validated, aws_dynamodb_table_item.calendar, aws_dynamodb_table_item.registry]
}
