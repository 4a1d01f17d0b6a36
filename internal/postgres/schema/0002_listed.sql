-- Recording moves last_modified_on of its block with every record. While that
-- was indexed, each move made new entries in all indexes of the table. The
-- index is now on listed_on, which follows: it is never later than
-- last_modified_on, and less than 100 ms earlier. So most moves of a head stay
-- within its page and touch no index.
ALTER TABLE heads ADD COLUMN listed_on bigint;
UPDATE heads SET listed_on = last_modified_on;
ALTER TABLE heads ALTER COLUMN listed_on SET NOT NULL;
ALTER TABLE heads ADD CONSTRAINT heads_listed_near
    CHECK (listed_on <= last_modified_on AND last_modified_on < listed_on + 100000);
DROP INDEX heads_modified;
CREATE INDEX heads_listed ON heads (kind, listed_on, identifier);
