-- Version 4 of a store: a row that is written to see whether the store can be written.

CREATE TABLE heartbeat (
    id   INTEGER PRIMARY KEY CHECK (id = 1),
    beat INTEGER NOT NULL
) STRICT;
