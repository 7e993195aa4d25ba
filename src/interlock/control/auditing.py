"""What a change says of itself to the audit trail: a note, in the commit of the change.

Only what a person or a token does is recorded: a control that acts for nobody (`Control.actor`) leaves no note, and
neither does one whose store keeps no trail.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from interlock.control.context import Control
from interlock.model.audit import AuditAction, AuditNote
from interlock.model.keys import RunKey
from interlock.ports.store import Delete, Put, Write


def note(
    control: Control,
    action: AuditAction,
    where: RunKey | str = "",
    *,
    subject: str = "",
    reason: str = "",
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    compared: Mapping[str, str] | None = None,
) -> AuditNote | None:
    """The note of a change by whom the control acts for; None when there is nobody. `where`: a run, or a pipeline."""
    if control.actor is None:
        return None
    key = where if isinstance(where, RunKey) else RunKey(where, "", "")
    return AuditNote(
        action=action,
        actor=control.actor,
        pipeline=key.pipeline,
        schedule=key.schedule,
        date=key.date,
        subject=subject,
        reason=reason,
        before=before or {},
        after=after or {},
        compared=compared or {},
    )


def noted(writes: Sequence[Write], made: AuditNote | None) -> list[Write]:
    """The writes of a change, of which the first that writes something carries the note."""
    if made is None:
        return list(writes)
    for index, write in enumerate(writes):
        if isinstance(write, Put | Delete):
            return [*writes[:index], msgspec.structs.replace(write, note=made), *writes[index + 1 :]]
    return list(writes)
