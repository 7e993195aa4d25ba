-- How many sensors each pipeline has and what they take, kept up to date by the writes themselves: who checks a quota
-- reads one row, however many sensors there are. `expiring` are those with a ttl.
CREATE TABLE sensor_use (
    pk       TEXT PRIMARY KEY,
    kept     INTEGER NOT NULL,
    expiring INTEGER NOT NULL,
    bytes    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO sensor_use (pk, kept, expiring, bytes)
SELECT pk, sum(ttl IS NULL), sum(ttl IS NOT NULL), sum(length(CAST(item AS BLOB)))
FROM control WHERE sk >= 'SENSOR#' AND sk < 'SENSOR$' GROUP BY pk;

-- A put is an INSERT OR REPLACE, which calls no trigger for the row it replaces, and whose way with conflicts counts for
-- the statements of a trigger, too: so there is no ON CONFLICT here.
CREATE TRIGGER sensor_put BEFORE INSERT ON control WHEN new.sk >= 'SENSOR#' AND new.sk < 'SENSOR$'
BEGIN
    INSERT INTO sensor_use (pk, kept, expiring, bytes)
    SELECT new.pk, 0, 0, 0 WHERE NOT EXISTS (SELECT 1 FROM sensor_use WHERE pk = new.pk);
    UPDATE sensor_use
    SET kept = kept - (old.ttl IS NULL), expiring = expiring - (old.ttl IS NOT NULL),
        bytes = bytes - length(CAST(old.item AS BLOB))
    FROM control AS old WHERE sensor_use.pk = new.pk AND old.pk = new.pk AND old.sk = new.sk;
    UPDATE sensor_use
    SET kept = kept + (new.ttl IS NULL), expiring = expiring + (new.ttl IS NOT NULL),
        bytes = bytes + length(CAST(new.item AS BLOB))
    WHERE pk = new.pk;
END;

CREATE TRIGGER sensor_removed AFTER DELETE ON control WHEN old.sk >= 'SENSOR#' AND old.sk < 'SENSOR$'
BEGIN
    UPDATE sensor_use
    SET kept = kept - (old.ttl IS NULL), expiring = expiring - (old.ttl IS NOT NULL),
        bytes = bytes - length(CAST(old.item AS BLOB))
    WHERE pk = old.pk;
    DELETE FROM sensor_use WHERE pk = old.pk AND kept + expiring <= 0;
END;
