-- No number is given twice, even if the sequence was set back. That of recordings is
-- their primary key.
--
-- While somebody reads the table for long, such as a dump, this would wait, and everybody
-- else with it. So it gives up soon and is tried again.
SET LOCAL lock_timeout = '200ms';
DROP INDEX versions_number;
CREATE UNIQUE INDEX versions_number ON versions (number);

-- The count of kind 0 is that of the positions of the log. It tells whether the last
-- round was lost.
INSERT INTO counts SELECT 0, 0, coalesce(max(last), 0) FROM rounds ON CONFLICT (kind, shard) DO UPDATE SET n = excluded.n;
