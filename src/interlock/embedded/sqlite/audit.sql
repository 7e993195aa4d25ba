-- The audit trail. A record is never changed; `hash` is made from it and the hash of the record before it. `at`, `action`,
-- `pipeline` and `actor` are copies of what the record says. AUTOINCREMENT: a number is never used twice, so that records
-- removed from the end leave a gap.
CREATE TABLE audit (
    seq      INTEGER PRIMARY KEY AUTOINCREMENT,
    day      TEXT NOT NULL,
    at       INTEGER NOT NULL,
    action   TEXT NOT NULL,
    pipeline TEXT NOT NULL,
    actor    TEXT NOT NULL,
    record   TEXT NOT NULL,
    hash     BLOB NOT NULL
) STRICT;

CREATE INDEX audit_by_pipeline ON audit (pipeline, seq);
CREATE INDEX audit_by_actor ON audit (actor, seq);

-- A chain a day (UTC). `previous` is the head of the day before it, empty for the very first. A day is dropped by removing
-- its row here; records before the first day's `first_seq` are only waiting to be removed.
CREATE TABLE audit_days (
    day       TEXT PRIMARY KEY,
    first_seq INTEGER NOT NULL,
    last_seq  INTEGER NOT NULL,
    previous  BLOB NOT NULL,
    head      BLOB NOT NULL
) STRICT, WITHOUT ROWID;
