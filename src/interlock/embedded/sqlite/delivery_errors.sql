-- Version 6 of a store: why the latest try of a delivery failed, for people: no secret is in it.
ALTER TABLE deliveries ADD COLUMN error TEXT NOT NULL DEFAULT '';
