-- A search for an idempotency key must end where the key would be. While PostgreSQL has
-- not analyzed the table, it takes any index that begins with the kind and the
-- identifier for as good as any other, and the primary key would lead through all
-- records of the block. No other index begins with the identifier.
--
-- While somebody reads the table for long, such as a dump, this would wait, and everybody
-- else behind it. So it gives up soon and is tried again.
SET LOCAL lock_timeout = '200ms';
DROP INDEX records_key;
CREATE UNIQUE INDEX records_key ON records (identifier, key) WHERE key IS NOT NULL;
