-- Browser sessions: who came in with a token, or with a single-use code made on this machine. Only hashes are kept.
-- `token_id` is null where a code was made by somebody who may open the store itself. Times are real, also in a demo.
CREATE TABLE sessions (
    hash     BLOB PRIMARY KEY,
    token_id INTEGER,
    begun_ms INTEGER NOT NULL,
    seen_ms  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE session_codes (
    hash       BLOB PRIMARY KEY,
    token_id   INTEGER,
    expires_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
