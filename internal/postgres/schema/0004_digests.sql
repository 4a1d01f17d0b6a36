-- What tells whether a row is still as it was written. The digest is the
-- SHA-256 of its text; reading compares them. Records had one with their key
-- before, and now all have. The seal is the beginning of a SHA-256 over the
-- other columns and the digest; "oda verify" compares it. A later step fills
-- them.
--
-- A program that knows nothing of these columns must not write any more: what it
-- wrote while the steps run would be missing in the catalogue and in the index of
-- days. So they are NOT NULL from here on, and have no default: its writes fail
-- as a whole. The locks come first, so that no writer is caught halfway.
LOCK TABLE heads, versions, records IN ACCESS EXCLUSIVE MODE;
ALTER TABLE versions ADD COLUMN digest bytea NOT NULL DEFAULT '', ADD COLUMN seal bytea NOT NULL DEFAULT '';
ALTER TABLE versions ALTER COLUMN digest DROP DEFAULT, ALTER COLUMN seal DROP DEFAULT;
ALTER TABLE records ADD COLUMN seal bytea NOT NULL DEFAULT '';
ALTER TABLE records ALTER COLUMN seal DROP DEFAULT;

-- The seals are over one line for each column, without those that are null,
-- followed by the digest. engine.VersionRow and engine.RecordRow do the same.
CREATE FUNCTION archive_version_seal(kind smallint, identifier text, version bigint, stored_by text, stored_on bigint,
                                     sequence_before bigint, sequence_after bigint, runs bigint[], slots integer[], digest bytea)
RETURNS bytea LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT substr(sha256(convert_to(concat_ws(E'\n', 'version', kind, identifier, version, stored_by, stored_on,
        sequence_before, sequence_after, runs, slots), 'UTF8') || digest), 1, 8)
$$;

CREATE FUNCTION archive_record_seal(identifier text, sequence bigint, version bigint, recorded_by text, recorded_on bigint,
                                    key text, digest bytea)
RETURNS bytea LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT substr(sha256(convert_to(concat_ws(E'\n', 'record', identifier, sequence, version, recorded_by, recorded_on,
        key), 'UTF8') || digest), 1, 8)
$$;
