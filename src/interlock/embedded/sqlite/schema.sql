-- Version 1 of a store. A later version is a further file, applied after this one: a released file never changes.

-- The four tables of items (SPEC 13). `item` is JSON; `ttl` is a copy of its attribute, in whole epoch seconds.
CREATE TABLE control (
    pk   TEXT NOT NULL,
    sk   TEXT NOT NULL,
    ttl  INTEGER,
    item TEXT NOT NULL,
    PRIMARY KEY (pk, sk)
) STRICT, WITHOUT ROWID;

CREATE TABLE joblog (
    pk   TEXT NOT NULL,
    sk   TEXT NOT NULL,
    ttl  INTEGER,
    item TEXT NOT NULL,
    PRIMARY KEY (pk, sk)
) STRICT, WITHOUT ROWID;

CREATE TABLE rerun (
    pk   TEXT NOT NULL,
    sk   TEXT NOT NULL,
    ttl  INTEGER,
    item TEXT NOT NULL,
    PRIMARY KEY (pk, sk)
) STRICT, WITHOUT ROWID;

-- `type` and `at` are copies of the item's type and of the time its sort key starts with.
CREATE TABLE events (
    pk   TEXT NOT NULL,
    sk   TEXT NOT NULL,
    ttl  INTEGER,
    item TEXT NOT NULL,
    type TEXT,
    at   INTEGER,
    PRIMARY KEY (pk, sk)
) STRICT, WITHOUT ROWID;

CREATE INDEX control_configs ON control (pk) WHERE sk = 'CONFIG';
CREATE INDEX control_ttl ON control (ttl) WHERE ttl IS NOT NULL;
CREATE INDEX joblog_ttl ON joblog (ttl) WHERE ttl IS NOT NULL;
CREATE INDEX rerun_ttl ON rerun (ttl) WHERE ttl IS NOT NULL;
CREATE INDEX events_ttl ON events (ttl) WHERE ttl IS NOT NULL;
CREATE INDEX events_by_type ON events (type, at, sk, pk) WHERE at IS NOT NULL;

-- One row per write to a table with a stream, in commit order. AUTOINCREMENT, so that a number is never used twice even
-- when everything before it was pruned. `consumer` is set on a redriven change: nobody else is to see it again.
CREATE TABLE changes (
    seq      INTEGER PRIMARY KEY AUTOINCREMENT,
    tbl      TEXT NOT NULL,
    pk       TEXT NOT NULL,
    sk       TEXT NOT NULL,
    at       INTEGER NOT NULL,
    item     TEXT,
    consumer TEXT
) STRICT;

-- How far each consumer of the changes has come. What all of them have passed may be pruned.
CREATE TABLE consumers (
    name       TEXT PRIMARY KEY,
    checkpoint INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What failed for good, whole. `ref` tells the failing thing from others of its source, so that the same one, failing
-- again after a crash, is the same letter.
CREATE TABLE dead_letters (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    source   TEXT NOT NULL,
    kind     TEXT NOT NULL,
    ref      TEXT NOT NULL,
    record   TEXT NOT NULL,
    error    TEXT NOT NULL,
    tries    INTEGER NOT NULL,
    first_ms INTEGER NOT NULL,
    last_ms  INTEGER NOT NULL,
    UNIQUE (kind, source, ref)
) STRICT;

-- `id` is new each time a name is armed: a receiver that finishes late cannot delete what was armed meanwhile.
-- `due_us` is when to try next; it leaves `at_us` behind when the receiver fails.
CREATE TABLE timers (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    name      TEXT NOT NULL UNIQUE,
    at_us     INTEGER NOT NULL,
    kind      TEXT NOT NULL,
    payload   TEXT NOT NULL,
    due_us    INTEGER NOT NULL,
    tries     INTEGER NOT NULL DEFAULT 0,
    failed_ms INTEGER
) STRICT;

CREATE INDEX timers_due ON timers (due_us);

-- Executions of the lifecycle: a row each, not a thread each.
CREATE TABLE executions (
    name       TEXT PRIMARY KEY,
    status     TEXT,
    state      TEXT,
    data       TEXT,
    token      TEXT,
    due_ms     INTEGER,
    version    INTEGER,
    started_ms INTEGER,
    ended_ms   INTEGER,
    extra      TEXT
) WITHOUT ROWID, STRICT;

CREATE INDEX executions_due ON executions (due_ms) WHERE due_ms IS NOT NULL;
CREATE UNIQUE INDEX executions_token ON executions (token) WHERE token IS NOT NULL;
