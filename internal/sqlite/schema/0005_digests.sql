-- What tells whether a row is still as it was written. The digest is the
-- SHA-256 of its text; reading compares them. Records had one with their key
-- before, and now all have. The seal is the beginning of a SHA-256 over the
-- other columns and the digest; "oda verify" compares it. Neither is ever NULL
-- once the next step has filled them.
ALTER TABLE versions ADD COLUMN digest BLOB;
ALTER TABLE versions ADD COLUMN seal BLOB;
ALTER TABLE records ADD COLUMN seal BLOB;
