-- Three kinds of row: heads, version bodies, records. Every version body and
-- every record has a position in one log of changes, given in the order of
-- commits. Instants are microseconds since 1970, UTC.

-- One row per entity: what is needed to judge a write or to list.
CREATE TABLE heads (
    entity           INTEGER PRIMARY KEY,
    kind             INTEGER NOT NULL,
    identifier       TEXT    NOT NULL,
    version          INTEGER NOT NULL,
    created_by       TEXT    NOT NULL,
    created_on       INTEGER NOT NULL,
    last_modified_by TEXT    NOT NULL,
    last_modified_on INTEGER NOT NULL,
    last_sequence    INTEGER NOT NULL, -- of the records; never used again
    position         INTEGER NOT NULL, -- of the current version's body
    create_key       TEXT,             -- idempotency key that created it
    create_digest    BLOB              -- of the request that came with it
) STRICT;
CREATE UNIQUE INDEX heads_identifier ON heads (kind, identifier);
CREATE UNIQUE INDEX heads_create_key ON heads (kind, create_key) WHERE create_key IS NOT NULL;
CREATE INDEX heads_created  ON heads (kind, created_on, identifier, created_by);
CREATE INDEX heads_user     ON heads (kind, created_by, created_on, identifier);
CREATE INDEX heads_modified ON heads (kind, last_modified_on, identifier);

-- One row per version: the text as received, less the server's values.
CREATE TABLE versions (
    position        INTEGER PRIMARY KEY,
    entity          INTEGER NOT NULL,
    version         INTEGER NOT NULL,
    stored_by       TEXT    NOT NULL,
    stored_on       INTEGER NOT NULL,
    sequence_before INTEGER NOT NULL, -- last sequence when this version was stored
    sequence_after  INTEGER NOT NULL, -- the same, after the records that came with it
    runs            BLOB,             -- records of the version as stored; NULL: no list
    slots           BLOB    NOT NULL, -- where the server's values go
    text            BLOB    NOT NULL
) STRICT;
CREATE UNIQUE INDEX versions_entity ON versions (entity, version);

-- One row per record. It never changes, and versions share it.
CREATE TABLE records (
    position    INTEGER PRIMARY KEY,
    entity      INTEGER NOT NULL,
    sequence    INTEGER NOT NULL,
    version     INTEGER NOT NULL, -- of the block when the record came
    recorded_by TEXT    NOT NULL,
    recorded_on INTEGER NOT NULL,
    key         TEXT,             -- idempotency key
    digest      BLOB,             -- of the request that came with it
    text        BLOB    NOT NULL
) STRICT;
CREATE UNIQUE INDEX records_sequence ON records (entity, sequence);
CREATE UNIQUE INDEX records_key      ON records (entity, key) WHERE key IS NOT NULL;

-- One row, written with every commit: where the log ends, and how many
-- entities of each kind there are.
CREATE TABLE state (
    one             INTEGER PRIMARY KEY CHECK (one = 1),
    last_position   INTEGER NOT NULL,
    sbdefinitions   INTEGER NOT NULL,
    sbinstances     INTEGER NOT NULL,
    executionblocks INTEGER NOT NULL,
    projects        INTEGER NOT NULL
) STRICT;
INSERT INTO state VALUES (1, 0, 0, 0, 0, 0);
