-- What search knows of the current version of each entity. An update that changes
-- nothing of it, as most do, touches none of this. The next step fills it for
-- what is stored, and makes the indexes. The rows are wide, so listings have their
-- own table, as before.
CREATE TABLE catalogue (
    kind       smallint NOT NULL,
    identifier text     COLLATE "C" NOT NULL,
    summary    bytea    COMPRESSION lz4 NOT NULL, -- packed
    terms      tsvector NOT NULL,                 -- of the inverted index
    PRIMARY KEY (kind, identifier)
);
ALTER TABLE creations ADD COLUMN telescope text COLLATE "C";
ALTER TABLE heads
    ADD COLUMN telescope    text COLLATE "C",
    ADD COLUMN summary_hash bigint NOT NULL DEFAULT 0; -- the same summary has the same
ALTER TABLE heads ALTER COLUMN summary_hash DROP DEFAULT;
