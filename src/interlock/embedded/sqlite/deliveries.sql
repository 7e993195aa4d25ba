-- Version 3 of a store: alerts on their way to people.

-- One row per (event, channel), kept after it was settled, so that an event that is read again makes no second one.
-- `state` is waiting, sent or dead. Of the waiting rows of a (channel, pipeline) the first, and only it, has a `due_ms`:
-- the others wait behind it. `begun_ms` is set before a try and removed when the try is known to have failed: what
-- still has one after a crash may have been sent. `failing_ms` is since when nothing could be sent.
CREATE TABLE deliveries (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    channel    TEXT NOT NULL,
    event      TEXT NOT NULL,
    pipeline   TEXT NOT NULL,
    item       TEXT NOT NULL,
    state      TEXT NOT NULL,
    queued_ms  INTEGER NOT NULL,
    due_ms     INTEGER,
    tries      INTEGER NOT NULL DEFAULT 0,
    refusals   INTEGER NOT NULL DEFAULT 0,
    begun_ms   INTEGER,
    failing_ms INTEGER,
    settled_ms INTEGER,
    UNIQUE (event, channel)
) STRICT;

CREATE INDEX deliveries_waiting ON deliveries (channel, pipeline, id) WHERE state = 'waiting';
CREATE INDEX deliveries_due ON deliveries (channel, due_ms, id) WHERE due_ms IS NOT NULL;
CREATE INDEX deliveries_settled ON deliveries (settled_ms) WHERE settled_ms IS NOT NULL;
