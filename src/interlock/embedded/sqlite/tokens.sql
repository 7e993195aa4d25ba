-- Bearer tokens of the HTTP API. Only a hash is kept. A revoked token stays: that there ever was one is what makes the
-- API ask for tokens.
CREATE TABLE tokens (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT NOT NULL UNIQUE,
    hash       BLOB NOT NULL UNIQUE,
    scopes     TEXT NOT NULL,
    pipelines  TEXT NOT NULL,
    owners     TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    revoked_ms INTEGER
) STRICT;
