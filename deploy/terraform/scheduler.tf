# Timers further ahead than 15 minutes are one-time schedules of this group; each puts its message into the queue of
# its kind, the same message that a nearer timer puts there with a delay.

resource "aws_scheduler_schedule_group" "timers" {
  name = "${local.name}-timers"
  tags = local.tags
}
