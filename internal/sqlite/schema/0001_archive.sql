-- The tables of an archive on SQLite, and why they are as they are. docs/storage.md has
-- the whole story.
--
-- An archive keeps four kinds of row: heads, versions, records and statuses. Every version,
-- record and status has a position in one log of changes, in the order of commits. The other
-- tables follow from these, and make searches and listings fast.
--
-- Instants are microseconds since 1970, UTC. Days are days of UTC since 1970-01-01.
--
-- A digest is the SHA-256 of a text; reading compares it. A seal is the beginning of a
-- SHA-256 over the other columns (internal/engine/fixity.go); "oda verify" compares it.
-- Together they show that a row is as it was written, and in its place.
--
-- The tables migrations and migration_progress say which schema a file has; they are made
-- by schema.go. An archive keeps the checksum of this file and is refused if it was made
-- with another.

-- One row per entity: what is needed to judge a write, to list and to search. The last
-- three columns are empty unless the entity was created with an idempotency key.
CREATE TABLE heads (
    entity           INTEGER PRIMARY KEY,
    kind             INTEGER NOT NULL, -- 1 SBDefinition, 2 SBInstance, 3 ExecutionBlock, 4 Project, 5 Note
    identifier       TEXT    NOT NULL,
    version          INTEGER NOT NULL,
    created_by       TEXT    NOT NULL,
    created_on       INTEGER NOT NULL,
    last_modified_by TEXT    NOT NULL,
    last_modified_on INTEGER NOT NULL,
    last_sequence    INTEGER NOT NULL, -- of the records; never used again
    position         INTEGER NOT NULL, -- of the current version
    telescope        TEXT,             -- NULL: the document names none
    summary_hash     INTEGER NOT NULL, -- an update with the same hash leaves the catalogue alone
    create_key       TEXT,             -- idempotency key that created it
    create_digest    BLOB,             -- of the request that came with the key
    create_seal      BLOB              -- of key and digest
) STRICT;
CREATE UNIQUE INDEX heads_identifier ON heads (kind, identifier);
CREATE UNIQUE INDEX heads_create_key ON heads (kind, create_key) WHERE create_key IS NOT NULL;
CREATE INDEX heads_created   ON heads (kind, created_on, identifier, created_by);
CREATE INDEX heads_user      ON heads (kind, created_by, created_on, identifier);
CREATE INDEX heads_modified  ON heads (kind, last_modified_on, identifier);
CREATE INDEX heads_telescope ON heads (kind, telescope, created_on, identifier) WHERE telescope IS NOT NULL;

-- One row per version: the text as received, less the server's values. The seal covers
-- the position too, and in version 1 who created the entity, and when.
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
    digest          BLOB    NOT NULL,
    seal            BLOB    NOT NULL,
    text            BLOB    NOT NULL
) STRICT;
CREATE UNIQUE INDEX versions_entity ON versions (entity, version);

-- One row per record. It never changes, and versions share it. The seal covers the
-- position too.
CREATE TABLE records (
    position    INTEGER PRIMARY KEY,
    entity      INTEGER NOT NULL,
    sequence    INTEGER NOT NULL,
    version     INTEGER NOT NULL, -- of the block when the record came
    recorded_by TEXT    NOT NULL,
    recorded_on INTEGER NOT NULL,
    key         TEXT,             -- idempotency key
    digest      BLOB    NOT NULL,
    seal        BLOB    NOT NULL,
    text        BLOB    NOT NULL
) STRICT;
CREATE UNIQUE INDEX records_sequence ON records (entity, sequence);
CREATE UNIQUE INDEX records_key      ON records (entity, key) WHERE key IS NOT NULL;

-- One row per status that was said of an entity. It never changes. The digest is over all
-- other columns, so it is also the seal.
CREATE TABLE statuses (
    position   INTEGER PRIMARY KEY,
    entity     INTEGER NOT NULL,
    sequence   INTEGER NOT NULL, -- counts from 1 for each entity
    version    INTEGER NOT NULL, -- of the entity that is meant
    status     TEXT    NOT NULL,
    class      INTEGER NOT NULL, -- 0 none, 1 planned, 2 running, 3 done, 4 failed, 5 stopped
    reason     TEXT,
    at         INTEGER NOT NULL,
    previous   TEXT,             -- the current status just before
    current    INTEGER NOT NULL, -- 1: it became the current one
    said_by    TEXT    NOT NULL,
    said_on    INTEGER NOT NULL,
    key        TEXT,             -- idempotency key
    key_digest BLOB,             -- of the request that came with the key
    digest     BLOB    NOT NULL
) STRICT;
CREATE UNIQUE INDEX statuses_sequence ON statuses (entity, sequence);
CREATE UNIQUE INDEX statuses_key      ON statuses (entity, key) WHERE key IS NOT NULL;

-- What the status of each entity is that has one: that of its current entry, or, as long as
-- it has no entries, that of its document. Most entities have none, and neither recording
-- nor an ordinary update touches this table.
CREATE TABLE standings (
    entity     INTEGER PRIMARY KEY,
    kind       INTEGER NOT NULL,
    identifier TEXT    NOT NULL,
    created_on INTEGER NOT NULL, -- of the entity
    status     TEXT    NOT NULL,
    folded     TEXT    NOT NULL, -- in the form in which statuses are compared
    class      INTEGER NOT NULL,
    sequence   INTEGER NOT NULL, -- of the current entry; 0: the document says it
    at         INTEGER NOT NULL, -- of the current entry
    last       INTEGER NOT NULL  -- sequence of the last entry
) STRICT;
CREATE INDEX standings_status ON standings (kind, folded, created_on, identifier);
CREATE INDEX standings_class  ON standings (kind, class, created_on, identifier) WHERE class > 0;

-- On which days a block has calls: for each day and each 4096 sequence numbers (a part,
-- counted from 1), the first sequence of that day.
CREATE TABLE call_days (
    day    INTEGER NOT NULL,
    entity INTEGER NOT NULL,
    part   INTEGER NOT NULL,
    first  INTEGER NOT NULL,
    PRIMARY KEY (day, entity, part)
) STRICT, WITHOUT ROWID;

-- The calls that failed, in whatever version of their block: what an answer says of them.
CREATE TABLE failed_calls (
    at          INTEGER NOT NULL, -- the time of the call
    identifier  TEXT    NOT NULL, -- of the block
    sequence    INTEGER NOT NULL,
    sent        INTEGER,
    received    INTEGER,
    request     TEXT    NOT NULL,
    function    TEXT    NOT NULL, -- the last part of request
    error       TEXT,             -- type of the error; empty: not known; null: there is no error
    detail      TEXT,             -- of the error
    device      TEXT,
    recorded_by TEXT    NOT NULL,
    PRIMARY KEY (at, identifier, sequence)
) STRICT, WITHOUT ROWID;

-- In which hours there are calls that failed, by block, device, type of error and function.
CREATE TABLE failed_hours (
    what  INTEGER NOT NULL, -- 1 block, 2 device, 3 error, 4 function
    value TEXT    NOT NULL,
    hour  INTEGER NOT NULL, -- since 1970
    PRIMARY KEY (what, value, hour)
) STRICT, WITHOUT ROWID;

-- The calls that lasted a second or more, in whatever version of their block.
CREATE TABLE long_calls (
    at         INTEGER NOT NULL, -- when the call was sent
    identifier TEXT    NOT NULL,
    sequence   INTEGER NOT NULL,
    received   INTEGER NOT NULL,
    PRIMARY KEY (at, identifier, sequence)
) STRICT, WITHOUT ROWID;

-- What searches know of the current version of each entity, packed. An update that
-- changes nothing of it, as most do, touches neither this table nor the two below.
CREATE TABLE catalogue (
    entity  INTEGER PRIMARY KEY,
    summary BLOB NOT NULL
) STRICT;

-- The inverted index of terms, whose rowid is the entity. The writer fills it when it has
-- nothing else to do. All entities up to state.indexed_entity are in it as they are,
-- except for those in unindexed, which are in it as they were, or not at all.
CREATE VIRTUAL TABLE terms USING fts5 (list, content = '', contentless_delete = 1, detail = none, tokenize = "ascii tokenchars '._-@'");
INSERT INTO terms (terms, rank) VALUES ('automerge', 16);
CREATE TABLE unindexed (
    entity INTEGER PRIMARY KEY
) STRICT;

-- One row, written with every commit: where the log ends, and how far the index of terms
-- has come.
CREATE TABLE state (
    one            INTEGER PRIMARY KEY CHECK (one = 1),
    last_position  INTEGER NOT NULL,
    indexed_entity INTEGER NOT NULL
) STRICT;
INSERT INTO state VALUES (1, 0, 0);

-- How many entities of a kind there are. A kind without any has no row.
CREATE TABLE counts (
    kind INTEGER PRIMARY KEY,
    n    INTEGER NOT NULL
) STRICT;
