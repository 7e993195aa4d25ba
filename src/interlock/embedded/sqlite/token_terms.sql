-- What a token is bound to beside its scopes. `local` is the owner's token, made at the first start on loopback. After a
-- rotation the text before it works until `old_until_ms`. Networks are a list of JSON; times are epoch milliseconds.
ALTER TABLE tokens ADD COLUMN local INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tokens ADD COLUMN expires_ms INTEGER;
ALTER TABLE tokens ADD COLUMN networks TEXT NOT NULL DEFAULT '[]';
ALTER TABLE tokens ADD COLUMN used_ms INTEGER;
ALTER TABLE tokens ADD COLUMN old_hash BLOB;
ALTER TABLE tokens ADD COLUMN old_until_ms INTEGER;
