-- Version 8 of a store: ended executions are forgotten after a while, the oldest first.
CREATE INDEX executions_ended ON executions (ended_ms) WHERE ended_ms IS NOT NULL;
