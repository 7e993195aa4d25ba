"""Which routes leave a record: whoever adds one that changes something says here what the record is."""

from interlock.api.app import VERSIONED
from interlock.model.audit import AuditAction

# By operation: what it records. The records themselves are tested with a real process (tests/security/test_audit.py).
RECORDED = {
    "applyPipeline": AuditAction.PIPELINE_APPLIED,
    "deletePipeline": AuditAction.PIPELINE_DELETED,
    "applyCalendar": AuditAction.CALENDAR_APPLIED,
    "writeSensor": AuditAction.SENSOR_WRITTEN,
    "writeSensors": AuditAction.SENSOR_WRITTEN,
    "sendLineage": AuditAction.SENSOR_WRITTEN,
    "deleteSensor": AuditAction.SENSOR_DELETED,
    "requestRerun": AuditAction.RERUN_REQUESTED,
    "actOnRun": AuditAction.RUN_CANCELLED,
    "reportJob": AuditAction.JOB_REPORTED,
    "reportByCallback": AuditAction.JOB_REPORTED,
    "runProbe": AuditAction.PROBE_TRIED,
    "runWatchdog": AuditAction.WATCHDOG_RUN,
    "redriveDeadLetters": AuditAction.DEAD_LETTERS_REDRIVEN,
    "testAlerts": AuditAction.ALERTS_TESTED,
    "createToken": AuditAction.TOKEN_CREATED,
    "rotateToken": AuditAction.TOKEN_ROTATED,
    "revokeToken": AuditAction.TOKEN_REVOKED,
    "makeSessionCode": AuditAction.SESSION_CODE_MADE,
    "beginSession": AuditAction.SESSION_BEGUN,
    "endSession": AuditAction.SESSION_ENDED,
}
CHANGES_NOTHING = {"previewRerun"}


def test_every_route_that_changes_something_is_known_to_leave_a_record() -> None:
    found = {route.operation_id for route in VERSIONED if route.method != "GET"}
    assert found == RECORDED.keys() | CHANGES_NOTHING
