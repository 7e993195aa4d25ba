"""The audit trail: who changed what, from where, why, and what was there before and after.

A note is what a change says of itself; a record is a note as it was kept: numbered, dated, and linked to the record
before it. Secrets and configs, which may hold secrets, are in it by their digests alone.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

import msgspec


class AuditAction(StrEnum):
    """What was done. `ACTIONS` says when each is recorded."""

    PIPELINE_APPLIED = "pipeline-applied"
    PIPELINE_DELETED = "pipeline-deleted"
    CALENDAR_APPLIED = "calendar-applied"
    CALENDAR_DELETED = "calendar-deleted"
    RERUN_REQUESTED = "rerun-requested"
    RUN_CANCELLED = "run-cancelled"
    RUN_CLAIMED = "run-claimed"
    JOB_REPORTED = "job-reported"
    SENSOR_WRITTEN = "sensor-written"
    SENSOR_DELETED = "sensor-deleted"
    PROBE_TRIED = "probe-tried"
    WATCHDOG_RUN = "watchdog-run"
    DEAD_LETTERS_REDRIVEN = "dead-letters-redriven"
    ALERTS_TESTED = "alerts-tested"
    TOKEN_CREATED = "token-created"
    TOKEN_ROTATED = "token-rotated"
    TOKEN_REVOKED = "token-revoked"
    SESSION_CODE_MADE = "session-code-made"
    SESSION_BEGUN = "session-begun"
    SESSION_ENDED = "session-ended"
    ACCESS_REFUSED = "access-refused"
    STORE_BACKED_UP = "store-backed-up"
    STORE_RESTORED = "store-restored"
    LOSS_ACCEPTED = "loss-accepted"
    OPENED_TO_ALL = "opened-to-all"
    AUDIT_PRUNED = "audit-pruned"


ACTIONS: Final[Mapping[AuditAction, str]] = {
    AuditAction.PIPELINE_APPLIED: "a config was stored; before and after: the version, which is a digest of it",
    AuditAction.PIPELINE_DELETED: "a pipeline was removed; before: the version",
    AuditAction.CALENDAR_APPLIED: "a calendar was stored; before and after: its digest",
    AuditAction.CALENDAR_DELETED: "a calendar was removed; before: its digest",
    AuditAction.RERUN_REQUESTED: "another attempt was asked for, with `force` if it was; the decision is an event",
    AuditAction.RUN_CANCELLED: "an attempt was cancelled; before and after: its status",
    AuditAction.RUN_CLAIMED: "an external run was claimed; before and after: its status",
    AuditAction.JOB_REPORTED: "the outcome of a job was reported from outside, also by its callback",
    AuditAction.SENSOR_WRITTEN: "a sensor was written; before and after: its digest. With `[audit] sensors` alone",
    AuditAction.SENSOR_DELETED: "a sensor was deleted; before: its digest",
    AuditAction.PROBE_TRIED: "a probe was tried by hand",
    AuditAction.WATCHDOG_RUN: "the watchdog was run by hand",
    AuditAction.DEAD_LETTERS_REDRIVEN: "dead letters were sent on their way again; after: how many, and which",
    AuditAction.ALERTS_TESTED: "a test alert was sent",
    AuditAction.TOKEN_CREATED: "a token was made; after: its scopes, limits, expiry and digest",
    AuditAction.TOKEN_ROTATED: "a token got a new text; before and after: its digest and expiry",
    AuditAction.TOKEN_REVOKED: "a token was revoked",
    AuditAction.SESSION_CODE_MADE: "a single-use code for a browser was made",
    AuditAction.SESSION_BEGUN: "a browser's session was begun, with a token or a code",
    AuditAction.SESSION_ENDED: "a session was ended by its user",
    AuditAction.ACCESS_REFUSED: "a token that works asked for what it may not do; once a minute for token and address",
    AuditAction.STORE_BACKED_UP: "the store was copied; after: the file and its digest",
    AuditAction.STORE_RESTORED: "a backup took the store's place; before and after: the heads of the two trails",
    AuditAction.LOSS_ACCEPTED: "the controller was started with --accept-lost",
    AuditAction.OPENED_TO_ALL: "the controller was started with --insecure-no-auth",
    AuditAction.AUDIT_PRUNED: "old days of the trail were dropped; before: the last of them and its head",
}
"""When each action is recorded."""


class ActorKind(StrEnum):
    """What an actor is."""

    TOKEN = "token"
    """A bearer token, or a session that was begun with it: `name` is the token's."""
    SIGN_ON = "sign-on"
    """A person or program with a token of the sign-on: `name` is the subject that it names."""
    OWNER = "owner"
    """The user who runs the controller, over the API of their own machine."""
    OS_USER = "os-user"
    """A user of the machine who works on the store directly, with the command line."""
    ANYBODY = "anybody"
    """Somebody on the machine of a controller that was started with --insecure-no-auth."""
    JOB = "job"
    """A job, at the signed address that it was given."""
    FOLDER = "folder"
    """Whoever edits the folder of pipelines that the controller follows; `os_user` owns the file."""
    CONTROLLER = "controller"
    """The controller itself."""


class Actor(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Who changes something, and from where."""

    kind: ActorKind
    name: str
    address: str = ""
    os_user: str = ""


CONTROLLER: Final = Actor(ActorKind.CONTROLLER, "interlock")


class AuditNote(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A change as it is to be recorded.

    `subject` is what was changed, where that is no run: a sensor's key, a token's name. `compared`: attributes of the
    item that carries the note, by their names in the record; the store adds them to `before` and `after`, as they are
    in the commit.
    """

    action: AuditAction
    actor: Actor
    pipeline: str = ""
    schedule: str = ""
    date: str = ""
    subject: str = ""
    reason: str = ""
    before: Mapping[str, Any] = {}
    after: Mapping[str, Any] = {}
    compared: Mapping[str, str] = {}


class AuditRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A change as it was recorded. The hash of a record is made from this and the hash of the record before it.

    `action` is text: a later version may know more of them.
    """

    seq: int
    at: datetime
    action: str
    actor: Actor
    pipeline: str = ""
    schedule: str = ""
    date: str = ""
    subject: str = ""
    reason: str = ""
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
