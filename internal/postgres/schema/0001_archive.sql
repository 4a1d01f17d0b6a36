-- Three kinds of row: heads, version bodies, records. Instants are
-- microseconds since 1970, UTC. Every unique key begins with kind and
-- identifier (or, for keys of creation, with kind and the key that takes its
-- place), so that each table can be partitioned or sharded by them.
--
-- Every version body and every record has a position in one log of changes and
-- the transaction that wrote it. Positions are given before transactions
-- commit, so a reader of the log goes no further than the oldest transaction
-- that is still running (pg_snapshot_xmin).
CREATE SEQUENCE positions AS bigint;

-- One row per entity. It is the only row at which recording and storing meet.
-- Nothing but its identifier and its last modification is indexed, so moving
-- it costs two index entries, whatever listings need.
CREATE TABLE heads (
    kind             smallint NOT NULL,
    identifier       text     COLLATE "C" NOT NULL,
    version          bigint   NOT NULL,
    created_by       text     COLLATE "C" NOT NULL,
    created_on       bigint   NOT NULL,
    last_modified_by text     COLLATE "C" NOT NULL,
    last_modified_on bigint   NOT NULL,
    last_sequence    bigint   NOT NULL, -- of the records; never used again
    PRIMARY KEY (kind, identifier)
) WITH (fillfactor = 70);
CREATE INDEX heads_modified ON heads (kind, last_modified_on, identifier);

-- One row per entity, written once: what listings by user and by creation need.
CREATE TABLE births (
    kind       smallint NOT NULL,
    identifier text     COLLATE "C" NOT NULL,
    created_by text     COLLATE "C" NOT NULL,
    created_on bigint   NOT NULL,
    PRIMARY KEY (kind, identifier)
);
CREATE INDEX births_created ON births (kind, created_on, identifier) INCLUDE (created_by);
CREATE INDEX births_user    ON births (kind, created_by, created_on, identifier);

-- One row per version: the text as received, less the server's values.
CREATE TABLE versions (
    kind            smallint NOT NULL,
    identifier      text     COLLATE "C" NOT NULL,
    version         bigint   NOT NULL,
    position        bigint   NOT NULL DEFAULT nextval('positions'),
    transaction     xid8     NOT NULL DEFAULT pg_current_xact_id(),
    stored_by       text     COLLATE "C" NOT NULL,
    stored_on       bigint   NOT NULL,
    sequence_before bigint   NOT NULL, -- last sequence when this version was stored
    sequence_after  bigint   NOT NULL, -- the same, after the records that came with it
    runs            bigint[],          -- records of the version as stored: first, last, ...; NULL: no list
    slots           integer[] NOT NULL, -- where the server's values go: value, offset, ...
    text            bytea     COMPRESSION lz4 NOT NULL,
    PRIMARY KEY (kind, identifier, version)
);

-- One row per record. It never changes, and versions share it.
CREATE TABLE records (
    kind        smallint NOT NULL,
    identifier  text     COLLATE "C" NOT NULL,
    sequence    bigint   NOT NULL,
    position    bigint   NOT NULL DEFAULT nextval('positions'),
    transaction xid8     NOT NULL DEFAULT pg_current_xact_id(),
    version     bigint   NOT NULL, -- of the block when the record came
    recorded_by text     COLLATE "C" NOT NULL,
    recorded_on bigint   NOT NULL,
    key         text     COLLATE "C", -- idempotency key
    digest      bytea,                -- of the request that came with it
    text        bytea    COMPRESSION lz4 NOT NULL,
    PRIMARY KEY (kind, identifier, sequence)
);
CREATE UNIQUE INDEX records_key ON records (kind, identifier, key) WHERE key IS NOT NULL;

-- One row per idempotency key that created an entity.
CREATE TABLE creations (
    kind       smallint NOT NULL,
    key        text     COLLATE "C" NOT NULL,
    identifier text     COLLATE "C" NOT NULL,
    digest     bytea    NOT NULL,
    PRIMARY KEY (kind, key)
);

-- How many entities there are: the sum over the shards of a kind. The shards
-- keep creations from waiting for each other.
CREATE TABLE counts (
    kind  smallint NOT NULL,
    shard smallint NOT NULL,
    n     bigint   NOT NULL,
    PRIMARY KEY (kind, shard)
) WITH (fillfactor = 50);
INSERT INTO counts SELECT kind, shard, 0 FROM generate_series(1, 4) AS kind, generate_series(0, 15) AS shard;

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
SELECT (ARRAY['SBDefinition', 'SBInstance', 'ExecutionBlock', 'Project'])[h.kind] AS kind,
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
