# ------------------------------------------------------------------------------------------------------ required

variable "environment" {
  description = "Prefix of every name, for example prod. Commands say it as --store aws://prod."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9][a-z0-9-]{0,31}$", var.environment))
    error_message = "environment has 1 to 32 lower-case letters, digits and '-', and does not start with '-'."
  }
}

variable "dist_path" {
  description = "Folder with the packages of the functions, as make lambda writes them."
  type        = string

  validation {
    condition     = length(var.dist_path) > 0
    error_message = "dist_path is the folder that make lambda has written to."
  }
}

# ---------------------------------------------------------------------------------------------------- pipelines

variable "pipelines_json" {
  description = "File with the output of `interlock validate --json`; its pipelines and calendars are stored. Null: they are stored by `interlock apply`."
  type        = string
  default     = null

  validation {
    condition     = var.pipelines_json == null || can(jsondecode(file(var.pipelines_json)).configs)
    error_message = "pipelines_json is not the output of `interlock validate --json`: run it again, with this version of Interlock."
  }
}

variable "pipelines_root" {
  description = "Folder that the file names in pipelines_json start from: where `interlock validate` was run."
  type        = string
  default     = "."
}

variable "pools" {
  description = "How many jobs of a pool may run at once, by the pool's name."
  type        = map(number)
  default     = {}

  validation {
    condition     = alltrue([for size in values(var.pools) : size >= 1 && size <= 10000 && floor(size) == size])
    error_message = "A pool has a size of 1 to 10000."
  }
}

variable "sfn_timeout_seconds" {
  description = "How long one execution may take. A pipeline whose evaluation window and poll window need more (less ten minutes) is refused."
  type        = number
  default     = 14400

  validation {
    condition     = var.sfn_timeout_seconds >= 900 && var.sfn_timeout_seconds <= 31536000 && floor(var.sfn_timeout_seconds) == var.sfn_timeout_seconds
    error_message = "sfn_timeout_seconds is 900 (15 minutes) to 31536000 (a year)."
  }
}

variable "trigger_max_attempts" {
  description = "How often the start of a job is tried again after a failure of the infrastructure."
  type        = number
  default     = 3

  validation {
    condition     = var.trigger_max_attempts >= 1 && var.trigger_max_attempts <= 10 && floor(var.trigger_max_attempts) == var.trigger_max_attempts
    error_message = "trigger_max_attempts is 1 to 10."
  }
}

variable "watchdog_schedule" {
  description = "When the watchdog looks: a rate or cron expression of EventBridge."
  type        = string
  default     = "rate(5 minutes)"

  validation {
    condition     = can(regex("^(rate\\((1 minute|[1-9][0-9]* (minutes|hours?))\\)|cron\\(([^ ()]+ ){5}[^ ()]+\\))$", var.watchdog_schedule))
    error_message = "watchdog_schedule is rate(1 minute), rate(N minutes), rate(N hours) or cron(M H D MONTH WEEKDAY YEAR)."
  }
}

variable "watchdog_silence_seconds" {
  description = "After how long without a pass of the watchdog its alarm rings; longer than watchdog_schedule."
  type        = number
  default     = 900

  validation {
    condition     = var.watchdog_silence_seconds >= 60 && var.watchdog_silence_seconds <= 86400 && var.watchdog_silence_seconds % 60 == 0
    error_message = "watchdog_silence_seconds is 60 to 86400, in whole minutes."
  }
}

# ------------------------------------------------------------------------------------------------------- functions

variable "architecture" {
  description = "Processor of the functions; the packages must have been built for it."
  type        = string
  default     = "arm64"

  validation {
    condition     = contains(["arm64", "x86_64"], var.architecture)
    error_message = "architecture is arm64 or x86_64."
  }
}

variable "lambda_memory_size" {
  description = "Memory of each function in MB; processor time grows with it."
  type        = number
  default     = 256

  validation {
    condition     = var.lambda_memory_size >= 128 && var.lambda_memory_size <= 10240 && floor(var.lambda_memory_size) == var.lambda_memory_size
    error_message = "lambda_memory_size is 128 to 10240."
  }
}

variable "orchestrator_timeout_seconds" {
  description = "How long one call of the orchestrator may take: the longest synchronous job or probe, and some."
  type        = number
  default     = 300

  validation {
    condition     = var.orchestrator_timeout_seconds >= 60 && var.orchestrator_timeout_seconds <= 900 && floor(var.orchestrator_timeout_seconds) == var.orchestrator_timeout_seconds
    error_message = "orchestrator_timeout_seconds is 60 to 900."
  }
}

variable "reserved_concurrency" {
  description = "Reserved concurrent executions by function; a function that is not named shares the account's."
  type        = map(number)
  default     = {}

  validation {
    condition = alltrue([
      for name, count in var.reserved_concurrency :
      contains(["stream-router", "orchestrator", "sla-monitor", "watchdog", "event-sink", "alert-dispatcher"], name) && count >= 1 && floor(count) == count
    ])
    error_message = "reserved_concurrency names functions (stream-router, orchestrator, sla-monitor, watchdog, event-sink, alert-dispatcher), each with 1 or more: 0 would stop it."
  }
}

variable "stream_parallelization" {
  description = "How many batches of a shard of the control and joblog streams are processed at once. Changes of one item stay in order; events are always processed one batch after the other."
  type        = number
  default     = 4

  validation {
    condition     = var.stream_parallelization >= 1 && var.stream_parallelization <= 10 && floor(var.stream_parallelization) == var.stream_parallelization
    error_message = "stream_parallelization is 1 to 10."
  }
}

variable "job_environment" {
  description = "Variables that templates of jobs may use, by name (INTERLOCK_...). No secrets: they are shown in the console."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for name in keys(var.job_environment) : can(regex("^INTERLOCK_[A-Z0-9_]+$", name)) && name != "INTERLOCK_ENVIRONMENT" && !startswith(name, "INTERLOCK_SECRET_")])
    error_message = "job_environment has names like INTERLOCK_REGION; INTERLOCK_ENVIRONMENT is Interlock's own, and secrets are named by secret_arns or ssm_parameter_names."
  }
}

variable "allow_private_addresses" {
  description = "Networks (CIDR) or hosts with private addresses that http jobs and probes may call; empty: none."
  type        = list(string)
  default     = []
}

variable "vpc_config" {
  description = "Subnets and security groups for the functions, where jobs are called at private addresses. They need a way to the services of AWS (endpoints or NAT)."
  type = object({
    subnet_ids         = list(string)
    security_group_ids = list(string)
  })
  default = null

  validation {
    condition     = var.vpc_config == null || try(length(var.vpc_config.subnet_ids) > 0 && length(var.vpc_config.security_group_ids) > 0, false)
    error_message = "vpc_config has at least one subnet and one security group."
  }
}

# ------------------------------------------------------------------------------------------------- rights on jobs

variable "enable_glue_trigger" {
  description = "Let pipelines run the Glue jobs of glue_job_arns, read their logs, and hear of their ends."
  type        = bool
  default     = false

  validation {
    condition     = !var.enable_glue_trigger || length(var.glue_job_arns) > 0
    error_message = "enable_glue_trigger needs glue_job_arns."
  }
}

variable "glue_job_arns" {
  description = "Glue jobs that pipelines may run; `*` in a name is a wildcard."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for arn in var.glue_job_arns : can(regex("^arn:[a-z-]+:glue:[a-z0-9-]+:[0-9]{12}:job/[^/]+$", arn))])
    error_message = "A Glue job has an ARN like arn:aws:glue:eu-central-1:123456789012:job/gold-revenue."
  }
}

variable "glue_log_group_arns" {
  description = "Log groups of the Glue jobs; empty: /aws-glue/jobs/*."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for arn in var.glue_log_group_arns : can(regex("^arn:[a-z-]+:logs:[a-z0-9-]+:[0-9]{12}:log-group:.+$", arn))])
    error_message = "A log group has an ARN like arn:aws:logs:eu-central-1:123456789012:log-group:/aws-glue/jobs/*."
  }
}

variable "enable_emr_trigger" {
  description = "Let pipelines add steps to the EMR clusters of emr_cluster_arns, and hear of their ends."
  type        = bool
  default     = false

  validation {
    condition     = !var.enable_emr_trigger || length(var.emr_cluster_arns) > 0
    error_message = "enable_emr_trigger needs emr_cluster_arns."
  }
}

variable "emr_cluster_arns" {
  description = "EMR clusters that pipelines may use."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for arn in var.emr_cluster_arns : can(regex("^arn:[a-z-]+:elasticmapreduce:[a-z0-9-]+:[0-9]{12}:cluster/[^/]+$", arn))])
    error_message = "An EMR cluster has an ARN like arn:aws:elasticmapreduce:eu-central-1:123456789012:cluster/j-1ABCDEFGHIJKL."
  }
}

variable "enable_emr_serverless_trigger" {
  description = "Let pipelines run jobs on the EMR Serverless applications of emr_serverless_application_arns, and hear of their ends."
  type        = bool
  default     = false

  validation {
    condition     = !var.enable_emr_serverless_trigger || (length(var.emr_serverless_application_arns) > 0 && length(var.emr_serverless_role_arns) > 0)
    error_message = "enable_emr_serverless_trigger needs emr_serverless_application_arns and emr_serverless_role_arns."
  }
}

variable "emr_serverless_application_arns" {
  description = "EMR Serverless applications that pipelines may use."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for arn in var.emr_serverless_application_arns : can(regex("^arn:[a-z-]+:emr-serverless:[a-z0-9-]+:[0-9]{12}:/applications/[^/]+$", arn))])
    error_message = "An EMR Serverless application has an ARN like arn:aws:emr-serverless:eu-central-1:123456789012:/applications/00fabcdefghijk01."
  }
}

variable "emr_serverless_role_arns" {
  description = "Roles that EMR Serverless jobs of pipelines run as (executionRoleArn)."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for arn in var.emr_serverless_role_arns : can(regex("^arn:[a-z-]+:iam::[0-9]{12}:role/.+$", arn))])
    error_message = "A role has an ARN like arn:aws:iam::123456789012:role/etl."
  }
}

variable "enable_sfn_trigger" {
  description = "Let pipelines run the state machines of sfn_trigger_arns, and hear of their ends."
  type        = bool
  default     = false

  validation {
    condition     = !var.enable_sfn_trigger || length(var.sfn_trigger_arns) > 0
    error_message = "enable_sfn_trigger needs sfn_trigger_arns."
  }
}

variable "sfn_trigger_arns" {
  description = "State machines that pipelines may run; `*` in a name is a wildcard."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for arn in var.sfn_trigger_arns : can(regex("^arn:[a-z-]+:states:[a-z0-9-]+:[0-9]{12}:stateMachine:[^:]+$", arn))])
    error_message = "A state machine has an ARN like arn:aws:states:eu-central-1:123456789012:stateMachine:gold-revenue."
  }
}

variable "enable_lambda_trigger" {
  description = "Let pipelines call the functions of lambda_trigger_arns, and read their logs."
  type        = bool
  default     = false

  validation {
    condition     = !var.enable_lambda_trigger || length(var.lambda_trigger_arns) > 0
    error_message = "enable_lambda_trigger needs lambda_trigger_arns."
  }
}

variable "lambda_trigger_arns" {
  description = "Functions that pipelines may call; without a version or alias, which are all allowed."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for arn in var.lambda_trigger_arns : can(regex("^arn:[a-z-]+:lambda:[a-z0-9-]+:[0-9]{12}:function:[A-Za-z0-9_*-]+$", arn))])
    error_message = "A function has an ARN like arn:aws:lambda:eu-central-1:123456789012:function:gold-revenue, without a version."
  }
}

variable "assume_role_arns" {
  description = "Roles that jobs and probes may name as roleArn; those roles must trust the roles of the orchestrator and the stream-router."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for arn in var.assume_role_arns : can(regex("^arn:[a-z-]+:iam::[0-9]{12}:role/.+$", arn))])
    error_message = "A role has an ARN like arn:aws:iam::123456789012:role/etl."
  }
}

variable "probe_bucket_arns" {
  description = "Buckets that s3 probes may list."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for arn in var.probe_bucket_arns : can(regex("^arn:[a-z-]+:s3:::[a-z0-9.*-]+$", arn))])
    error_message = "A bucket has an ARN like arn:aws:s3:::landing."
  }
}

# ---------------------------------------------------------------------------------------------------------- secrets

variable "secret_arns" {
  description = "Secrets that jobs and probes may name as $${secretsmanager:ARN}."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for arn in var.secret_arns : can(regex("^arn:[a-z-]+:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:.+$", arn))])
    error_message = "A secret has an ARN like arn:aws:secretsmanager:eu-central-1:123456789012:secret:warehouse-AbCdEf."
  }
}

variable "ssm_parameter_names" {
  description = "Parameters that jobs and probes may name as $${ssm:NAME}."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for name in var.ssm_parameter_names : can(regex("^[A-Za-z0-9_./*-]+$", name))])
    error_message = "A parameter has a name like /interlock/warehouse-password."
  }
}

variable "secret_kms_key_arns" {
  description = "Keys that these secrets and parameters are encrypted with, where they are not those of AWS."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for arn in var.secret_kms_key_arns : can(regex("^arn:[a-z-]+:kms:[a-z0-9-]+:[0-9]{12}:key/.+$", arn))])
    error_message = "A key has an ARN like arn:aws:kms:eu-central-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab."
  }
}

# ----------------------------------------------------------------------------------------------------------- alerts

variable "alerts" {
  description = "Where alerts go: the [[alerts]] tables of interlock.toml as a JSON list."
  type        = string
  default     = "[]"

  validation {
    condition     = can([for route in jsondecode(var.alerts) : keys(route)])
    error_message = "alerts is a JSON list of objects, for example [{\"type\": \"slack\", \"channel\": \"#data\"}]."
  }

  validation {
    condition     = length(var.alerts) <= 3000
    error_message = "alerts has at most 3000 characters: a function has 4 KB for all its variables. Route by patterns instead of by pipeline."
  }
}

variable "slack_bot_token" {
  description = "Token of the Slack app, kept in the function's environment. Prefer slack_secret_arn."
  type        = string
  default     = null
  sensitive   = true

  validation {
    condition     = var.slack_bot_token == null || var.slack_secret_arn == null
    error_message = "Give slack_bot_token or slack_secret_arn, not both."
  }
}

variable "slack_secret_arn" {
  description = "Secret that holds the token of the Slack app; read at cold start."
  type        = string
  default     = null

  validation {
    condition     = var.slack_secret_arn == null || can(regex("^arn:[a-z-]+:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:.+$", var.slack_secret_arn))
    error_message = "slack_secret_arn is like arn:aws:secretsmanager:eu-central-1:123456789012:secret:slack-AbCdEf."
  }
}

variable "sns_alarm_topic_arn" {
  description = "Topic that hears of every alarm besides Interlock's own alerts; null: none. It is the way that does not need Interlock."
  type        = string
  default     = null

  validation {
    condition     = var.sns_alarm_topic_arn == null || can(regex("^arn:[a-z-]+:sns:[a-z0-9-]+:[0-9]{12}:.+$", var.sns_alarm_topic_arn))
    error_message = "sns_alarm_topic_arn is like arn:aws:sns:eu-central-1:123456789012:on-call."
  }
}

# ------------------------------------------------------------------------------------------------ keeping, encrypting

variable "events_ttl_days" {
  description = "How long events are kept."
  type        = number
  default     = 90

  validation {
    condition     = var.events_ttl_days >= 1 && var.events_ttl_days <= 3650 && floor(var.events_ttl_days) == var.events_ttl_days
    error_message = "events_ttl_days is 1 to 3650."
  }
}

variable "log_retention_days" {
  description = "How long logs of the functions and the state machine are kept."
  type        = number
  default     = 14

  validation {
    condition     = contains([1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653], var.log_retention_days)
    error_message = "log_retention_days is one of 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653."
  }
}

variable "log_level" {
  description = "What the functions log: DEBUG, INFO, WARNING or ERROR."
  type        = string
  default     = "INFO"

  validation {
    condition     = contains(["DEBUG", "INFO", "WARNING", "ERROR"], var.log_level)
    error_message = "log_level is DEBUG, INFO, WARNING or ERROR."
  }
}

variable "sfn_log_level" {
  description = "What the state machine logs: ALL, ERROR, FATAL or OFF. Never the data of an execution."
  type        = string
  default     = "ERROR"

  validation {
    condition     = contains(["ALL", "ERROR", "FATAL", "OFF"], var.sfn_log_level)
    error_message = "sfn_log_level is ALL, ERROR, FATAL or OFF."
  }
}

variable "enable_tracing" {
  description = "Trace functions and executions with X-Ray."
  type        = bool
  default     = false
}

variable "kms_key_arn" {
  description = "Key that tables, queues, logs and environment variables are encrypted with; null: keys of AWS. Its policy must allow CloudWatch Logs of this region."
  type        = string
  default     = null

  validation {
    condition     = var.kms_key_arn == null || can(regex("^arn:[a-z-]+:kms:[a-z0-9-]+:[0-9]{12}:key/.+$", var.kms_key_arn))
    error_message = "kms_key_arn is like arn:aws:kms:eu-central-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab."
  }
}

variable "deletion_protection" {
  description = "Refuse to delete the tables. Set it to false, apply, and only then destroy."
  type        = bool
  default     = true
}

variable "point_in_time_recovery" {
  description = "Keep the tables restorable to any second of the last 35 days."
  type        = bool
  default     = true
}

variable "tags" {
  description = "Tags of every resource."
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for name in keys(var.tags) : !startswith(lower(name), "aws:") && length(name) <= 128])
    error_message = "A tag has at most 128 characters, and does not start with aws:."
  }
}
