-- The tables of an archive on PostgreSQL, and why they are as they are. docs/storage.md
-- has the whole story, and docs/postgres.md the rights that a role needs.
--
-- An archive keeps four kinds of row: heads, versions, records and statuses. The table
-- changes says in which order they were written, and rounds gives them their positions in
-- the log of changes. The other tables follow from these, and make searches and listings
-- fast.
--
-- Instants are microseconds since 1970, UTC. Days are days of UTC since 1970-01-01.
-- Kinds are 1 SBDefinition, 2 SBInstance, 3 ExecutionBlock, 4 Project. Every unique key
-- begins with kind and identifier, or with what takes their place, so that the tables can
-- be partitioned or sharded by them; rows of the log are the exception.
--
-- A digest is the SHA-256 of a text; reading compares it. A seal is the beginning of a
-- SHA-256 over the other columns, one line for each that is not null, and the digest;
-- "oda verify" compares it. The functions below and internal/engine/fixity.go compute it
-- in the same way. Together they show that a row is as it was written, and in its place.
--
-- The tables migrations and migration_progress say which schema a database has; they are
-- made by schema.go. An archive keeps the checksum of this file and is refused if it was
-- made with another.

-- One row per entity. It is the only row at which storing, recording and saying a status
-- meet. Little of it is indexed, so that a write changes few indexes: what listings and
-- searches need is in creations, catalogue and standings.
--
-- Every record changes last_modified_on of its block. An index on it would make each
-- change write new entries in all indexes of the table. So the index is on listed_on,
-- which is never later than last_modified_on, and less than 100 ms earlier
-- (listmodified.go). Most changes of a head stay within its page and change no index. With
-- an index on last_modified_on itself, one record after the other took PostgreSQL a tenth
-- more processor time and a tenth more write-ahead log.
--
-- A constraint for that would take 40 of the 250 microseconds of a change, since
-- PostgreSQL prepares it again for every statement; "oda verify" looks instead.
CREATE TABLE heads (
    kind             smallint NOT NULL,
    identifier       text     COLLATE "C" NOT NULL,
    version          bigint   NOT NULL,
    created_by       text     COLLATE "C" NOT NULL,
    created_on       bigint   NOT NULL,
    last_modified_by text     COLLATE "C" NOT NULL,
    last_modified_on bigint   NOT NULL,
    last_sequence    bigint   NOT NULL, -- of the records; never used again
    listed_on        bigint   NOT NULL,
    telescope        text     COLLATE "C", -- null: the document names none
    summary_hash     bigint   NOT NULL, -- an update with the same hash leaves the catalogue alone
    call_day         integer,           -- the day of the last record, and
    calls_to         bigint,            -- the sequence number up to which call_days has that day
    PRIMARY KEY (kind, identifier)
) WITH (fillfactor = 70);
CREATE INDEX heads_listed ON heads (kind, listed_on, identifier);

-- One row per entity, written once: what listings by user and by creation need. Only the
-- telescope may change.
CREATE TABLE creations (
    kind       smallint NOT NULL,
    identifier text     COLLATE "C" NOT NULL,
    created_by text     COLLATE "C" NOT NULL,
    created_on bigint   NOT NULL,
    telescope  text     COLLATE "C",
    PRIMARY KEY (kind, identifier)
);
CREATE INDEX creations_created   ON creations (kind, created_on, identifier) INCLUDE (created_by);
CREATE INDEX creations_user      ON creations (kind, created_by, created_on, identifier);
CREATE INDEX creations_telescope ON creations (kind, telescope, created_on, identifier) WHERE telescope IS NOT NULL;

-- One row per idempotency key that created an entity.
CREATE TABLE creation_keys (
    kind       smallint NOT NULL,
    key        text     COLLATE "C" NOT NULL,
    identifier text     COLLATE "C" NOT NULL,
    digest     bytea    NOT NULL, -- of the request that came with the key
    seal       bytea    NOT NULL,
    PRIMARY KEY (kind, key)
);
CREATE INDEX creation_keys_identifier ON creation_keys (kind, identifier); -- for exports

-- One row per version: the text as received, less the server's values. The seal of
-- version 1 covers who created the entity, and when, if that was not who stored it.
CREATE TABLE versions (
    kind            smallint  NOT NULL,
    identifier      text      COLLATE "C" NOT NULL,
    version         bigint    NOT NULL,
    stored_by       text      COLLATE "C" NOT NULL,
    stored_on       bigint    NOT NULL,
    sequence_before bigint    NOT NULL, -- last sequence when this version was stored
    sequence_after  bigint    NOT NULL, -- the same, after the records that came with it
    runs            bigint[],           -- records of the version as stored: first, last, ...; null: no list
    slots           integer[] NOT NULL, -- where the server's values go: value, offset, ...
    text            bytea     COMPRESSION lz4 NOT NULL,
    digest          bytea     NOT NULL,
    seal            bytea     NOT NULL,
    PRIMARY KEY (kind, identifier, version)
);

-- One row per record. It never changes, and versions share it.
CREATE TABLE records (
    kind        smallint NOT NULL,
    identifier  text     COLLATE "C" NOT NULL,
    sequence    bigint   NOT NULL,
    version     bigint   NOT NULL, -- of the block when the record came
    recorded_by text     COLLATE "C" NOT NULL,
    recorded_on bigint   NOT NULL,
    key         text     COLLATE "C", -- idempotency key
    digest      bytea    NOT NULL,
    text        bytea    COMPRESSION lz4 NOT NULL,
    seal        bytea    NOT NULL,
    PRIMARY KEY (kind, identifier, sequence)
);
-- A search for a key must end where the key would be. While PostgreSQL has not analyzed
-- the table, it takes any index that begins with kind and identifier for as good as any
-- other, and the primary key would lead through all records of the block. No other index
-- begins with the identifier.
CREATE UNIQUE INDEX records_key ON records (identifier, key) WHERE key IS NOT NULL;

-- What was at an instant is found from marks: every sixteenth version and every
-- sixty-fourth record of an entity is in an index by its instant. So few writes write
-- these indexes, and a reader has few rows to look at from a mark on.
CREATE INDEX versions_marks ON versions (kind, identifier, stored_on) WHERE version % 16 = 0;
CREATE INDEX records_marks  ON records (kind, identifier, recorded_on, sequence) WHERE sequence % 64 = 0;

-- One row per status that was said of an entity. It never changes. The digest is over all
-- other columns, so it is also the seal.
CREATE TABLE statuses (
    kind       smallint NOT NULL,
    identifier text     COLLATE "C" NOT NULL,
    sequence   bigint   NOT NULL, -- counts from 1 for each entity
    version    bigint   NOT NULL, -- of the entity that is meant
    status     text     COLLATE "C" NOT NULL,
    class      smallint NOT NULL, -- 0 none, 1 planned, 2 running, 3 done, 4 failed, 5 stopped
    reason     text     COLLATE "C",
    at         bigint   NOT NULL,
    previous   text     COLLATE "C", -- the current status just before
    current    boolean  NOT NULL,    -- it became the current one
    said_by    text     COLLATE "C" NOT NULL,
    said_on    bigint   NOT NULL,
    key        text     COLLATE "C", -- idempotency key
    key_digest bytea,                -- of the request that came with the key
    digest     bytea    NOT NULL,
    PRIMARY KEY (kind, identifier, sequence)
);
-- As with the keys of records, a search for a key must not take the primary key for as
-- good as this index. So it asks for the identifier and the key only, and looks at the
-- kinds of what it finds.
CREATE UNIQUE INDEX statuses_key ON statuses (identifier, key, kind) WHERE key IS NOT NULL;

-- What the status of each entity is that has one: that of its current entry, or, as long as
-- it has no entries, that of its document. Most entities have none, and neither recording
-- nor an ordinary update touches this table. Searches by status go along its indexes.
CREATE TABLE standings (
    kind       smallint NOT NULL,
    identifier text     COLLATE "C" NOT NULL,
    created_on bigint   NOT NULL, -- of the entity
    status     text     COLLATE "C" NOT NULL,
    folded     text     COLLATE "C" NOT NULL, -- in the form in which statuses are compared
    class      smallint NOT NULL,
    sequence   bigint   NOT NULL, -- of the current entry; 0: the document says it
    at         bigint   NOT NULL, -- of the current entry
    last       bigint   NOT NULL, -- sequence of the last entry
    PRIMARY KEY (kind, identifier)
);
CREATE INDEX standings_status ON standings (kind, folded, created_on, identifier);
CREATE INDEX standings_class  ON standings (kind, class, created_on, identifier) WHERE class > 0;

-- On which days a block has calls: for each day and each 4096 sequence numbers (a part,
-- counted from 1), the first sequence of that day. Nights look for days.
CREATE TABLE call_days (
    kind       smallint NOT NULL,
    identifier text     COLLATE "C" NOT NULL,
    day        integer  NOT NULL,
    part       bigint   NOT NULL,
    first      bigint   NOT NULL,
    PRIMARY KEY (kind, identifier, day, part)
);
CREATE INDEX call_days_day ON call_days (kind, day, identifier);

-- The calls that failed, in whatever version of their block: what an answer says of them.
-- Most records add no row here, nor to the next table.
CREATE TABLE failed_calls (
    kind        smallint NOT NULL,
    identifier  text     COLLATE "C" NOT NULL,
    at          bigint   NOT NULL, -- the time of the call
    sequence    bigint   NOT NULL,
    sent        bigint,
    received    bigint,
    request     text     COLLATE "C" NOT NULL,
    function    text     COLLATE "C" NOT NULL, -- the last part of request
    error       text     COLLATE "C",          -- type of the error; empty: not known; null: there is no error
    detail      text     COLLATE "C",          -- of the error
    device      text     COLLATE "C",
    recorded_by text     COLLATE "C" NOT NULL,
    PRIMARY KEY (kind, identifier, at, sequence)
);
CREATE INDEX failed_calls_at       ON failed_calls (at, identifier, sequence);
CREATE INDEX failed_calls_function ON failed_calls (function, at, identifier, sequence);
CREATE INDEX failed_calls_error    ON failed_calls (error, at, identifier, sequence) WHERE error IS NOT NULL;
CREATE INDEX failed_calls_device   ON failed_calls (device, at, identifier, sequence) WHERE device IS NOT NULL;

-- The calls that lasted a second or more, in whatever version of their block.
CREATE TABLE long_calls (
    kind       smallint NOT NULL,
    identifier text     COLLATE "C" NOT NULL,
    at         bigint   NOT NULL, -- when the call was sent
    sequence   bigint   NOT NULL,
    received   bigint   NOT NULL,
    PRIMARY KEY (kind, identifier, at, sequence)
);
CREATE INDEX long_calls_at ON long_calls (at, identifier, sequence);

-- What searches know of the current version of each entity. An update that changes
-- nothing of it, as most do, does not touch it. The instant is here because most searches
-- sort by it: to look up a thousand heads took longer than everything else.
CREATE TABLE catalogue (
    kind       smallint NOT NULL,
    identifier text     COLLATE "C" NOT NULL,
    summary    bytea    COMPRESSION lz4 NOT NULL, -- packed
    terms      tsvector NOT NULL,                 -- of the inverted index
    created_on bigint   NOT NULL,
    PRIMARY KEY (kind, identifier)
);
CREATE INDEX catalogue_terms ON catalogue USING gin (terms) WITH (fastupdate = on, gin_pending_list_limit = 512);

-- How many entities there are: the sum over the shards of a kind. The shards keep
-- creations from waiting for each other.
CREATE TABLE counts (
    kind  smallint NOT NULL,
    shard smallint NOT NULL,
    n     bigint   NOT NULL,
    PRIMARY KEY (kind, shard)
) WITH (fillfactor = 50);
INSERT INTO counts SELECT kind, shard, 0 FROM generate_series(1, 5) AS kind, generate_series(0, 15) AS shard;

-- Calls that have begun and not ended (running.go). They are no part of the history, so
-- their table is not logged: it is empty after a crash, and on a standby that took over.
-- Rows whose block has a record with their key have ended. They are removed later.
CREATE UNLOGGED TABLE running (
    kind        smallint NOT NULL, -- 3
    identifier  text     COLLATE "C" NOT NULL,
    key         text     COLLATE "C" NOT NULL,
    request     bytea    NOT NULL, -- UTF-8
    arguments   bytea,             -- JSON
    sent_at     bigint   NOT NULL,
    since       bigint   NOT NULL, -- when it was said first
    renewed_on  bigint   NOT NULL,
    lease_until bigint   NOT NULL,
    said_by     text     COLLATE "C" NOT NULL,
    said_in     xid      NOT NULL, -- the transaction that wrote the row; a copy of a row is of another one
    PRIMARY KEY (kind, identifier, key)
) WITH (fillfactor = 50);

-- The log of changes. Every transaction that stores, records or says leaves one row for
-- each of its statements, however many entities or records that has. It takes a number
-- while it holds the heads of what it writes about. No number is given twice, even if the sequence is set
-- back: versions and records have theirs in one table.
CREATE SEQUENCE numbers AS bigint;
CREATE TABLE changes (
    number bigint   PRIMARY KEY,
    width  bigint   NOT NULL, -- how many positions it takes: one for each version, record and status
    names  text[]   COMPRESSION lz4 NOT NULL, -- of each change: identifier, user
    places bigint[] COMPRESSION lz4 NOT NULL, -- of each change: kind of the version that was stored, or 0
                                              -- for records of a block, or 16 more than the kind for a
                                              -- status; its version; first and last sequence of the
                                              -- records that came, or twice that of the status; instant
                                              -- of the last
    seal   bytea    NOT NULL
);

-- Positions are given later, in rounds (numbering.go): a round takes the numbers that are
-- there by then and that no earlier round has taken.
CREATE TABLE rounds (
    after bigint   PRIMARY KEY, -- position after which it begins
    last  bigint   NOT NULL,    -- position at which it ends
    seen  bigint   NOT NULL,    -- the highest number of this round and all before
    runs  bigint[] COMPRESSION lz4 NOT NULL, -- numbers of the round: first, last, ...
    gaps  bigint[] COMPRESSION lz4, -- lower numbers that may still come: first, last, ...; null: none
    since bigint[] COMPRESSION lz4, -- for each gap, the transaction that noted it
    seal  bytea    NOT NULL         -- not over gaps and since, which matter only in the last round
);

-- One row: where the last round ends. Nothing else shows that the last round was lost.
CREATE TABLE log_end (
    position bigint NOT NULL
) WITH (fillfactor = 50);
INSERT INTO log_end VALUES (0);

-- The seals.
CREATE FUNCTION archive_seal_of_version(kind smallint, identifier text, version bigint, stored_by text, stored_on bigint,
                                        sequence_before bigint, sequence_after bigint, runs bigint[], slots integer[], digest bytea)
RETURNS bytea LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT substr(sha256(convert_to(concat_ws(E'\n', 'version', kind, identifier, version, stored_by, stored_on,
        sequence_before, sequence_after, runs, slots), 'UTF8') || digest), 1, 8)
$$;

CREATE FUNCTION archive_seal_of_record(identifier text, sequence bigint, version bigint, recorded_by text, recorded_on bigint,
                                       key text, digest bytea)
RETURNS bytea LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT substr(sha256(convert_to(concat_ws(E'\n', 'record', identifier, sequence, version, recorded_by, recorded_on,
        key), 'UTF8') || digest), 1, 8)
$$;

CREATE FUNCTION archive_seal_of_change(number bigint, width bigint, names text[], places bigint[])
RETURNS bytea LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT substr(sha256(convert_to(concat_ws(E'\n', 'change', number, width,
        array_to_string(names, E'\n', ''), array_to_string(places, E'\n', '')), 'UTF8')), 1, 8)
$$;

CREATE FUNCTION archive_seal_of_round(after bigint, last bigint, seen bigint, runs bigint[])
RETURNS bytea LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT substr(sha256(convert_to(concat_ws(E'\n', 'round', after, last, seen, array_to_string(runs, E'\n', '')), 'UTF8')), 1, 8)
$$;

-- For people with psql: documents as they are answered, as jsonb. It is null
-- for the odd document that jsonb cannot hold.
CREATE FUNCTION archive_jsonb(text bytea) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    RETURN convert_from(text, 'UTF8')::jsonb;
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
    RETURN NULL;
END $$;

CREATE FUNCTION archive_instant(at bigint) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT to_char(timestamp 'epoch' + at * interval '1 microsecond', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$$;

CREATE FUNCTION archive_render(text bytea, slots integer[], version bigint, created_by text, created_on bigint,
                               last_modified_by text, last_modified_on bigint, records bytea)
RETURNS bytea LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    rendered bytea := '';
    place    integer := 0;
    value    text;
BEGIN
    FOR i IN 1 .. coalesce(array_length(slots, 1), 0) BY 2 LOOP
        value := CASE slots[i]
            WHEN 1 THEN version::text
            WHEN 2 THEN to_json(created_by)::text
            WHEN 3 THEN to_json(archive_instant(created_on))::text
            WHEN 4 THEN to_json(last_modified_by)::text
            WHEN 5 THEN to_json(archive_instant(last_modified_on))::text
            WHEN 6 THEN '['
            WHEN 7 THEN CASE WHEN records IS NULL THEN '' ELSE ',"request_responses":[' END
        END;
        rendered := rendered || substr(text, place + 1, slots[i + 1] - place) || convert_to(value, 'UTF8');
        IF slots[i] = 6 OR slots[i] = 7 AND records IS NOT NULL THEN
            rendered := rendered || coalesce(records, '') || ']';
        END IF;
        place := slots[i + 1];
    END LOOP;
    RETURN rendered || substr(text, place + 1);
END $$;

CREATE VIEW documents AS
SELECT (ARRAY['SBDefinition', 'SBInstance', 'ExecutionBlock', 'Project', 'Note'])[h.kind] AS kind,
       h.identifier, h.version, h.created_by, timestamptz 'epoch' + h.created_on * interval '1 microsecond' AS created_on,
       h.last_modified_by, timestamptz 'epoch' + h.last_modified_on * interval '1 microsecond' AS last_modified_on,
       archive_jsonb(archive_render(v.text, v.slots, h.version, h.created_by, h.created_on, h.last_modified_by, h.last_modified_on,
           CASE WHEN v.runs IS NOT NULL OR h.last_sequence > v.sequence_after THEN (
               SELECT coalesce(string_agg(r.text, ',' ORDER BY run.nth, r.sequence), '')
               FROM (SELECT nth, (coalesce(v.runs, '{}') || ARRAY[v.sequence_after + 1, h.last_sequence])[2 * nth - 1] AS first,
                            (coalesce(v.runs, '{}') || ARRAY[v.sequence_after + 1, h.last_sequence])[2 * nth] AS last
                     FROM generate_series(1, coalesce(array_length(v.runs, 1), 0) / 2 + 1) AS nth) AS run
               JOIN records r ON r.kind = h.kind AND r.identifier = h.identifier AND r.sequence BETWEEN run.first AND run.last
           ) END)) AS document
FROM heads h JOIN versions v USING (kind, identifier, version);

CREATE VIEW record_documents AS
SELECT r.identifier AS eb_id, r.sequence, r.version, r.recorded_by,
       timestamptz 'epoch' + r.recorded_on * interval '1 microsecond' AS recorded_on, r.key, archive_jsonb(r.text) AS record
FROM records r;

CREATE VIEW said_statuses AS
SELECT (ARRAY['SBDefinition', 'SBInstance', 'ExecutionBlock', 'Project', 'Note'])[kind] AS kind, identifier, sequence, version, status,
       (ARRAY['planned', 'running', 'done', 'failed', 'stopped'])[class] AS class, reason,
       timestamptz 'epoch' + at * interval '1 microsecond' AS at, previous, current, said_by,
       timestamptz 'epoch' + said_on * interval '1 microsecond' AS said_on, key
FROM statuses;

CREATE VIEW calls_that_failed AS
SELECT f.identifier AS eb_id, f.sequence, timestamptz 'epoch' + f.at * interval '1 microsecond' AS at,
       timestamptz 'epoch' + f.sent * interval '1 microsecond' AS sent_at, timestamptz 'epoch' + f.received * interval '1 microsecond' AS received_at,
       f.request, f.function, nullif(f.error, '') AS error, f.detail, f.device, h.telescope, f.recorded_by
FROM failed_calls f JOIN heads h USING (kind, identifier);
