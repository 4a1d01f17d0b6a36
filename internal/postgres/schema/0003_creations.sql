-- The tables are named for what they hold: one row for the creation of each
-- entity, and one for each idempotency key with which an entity was created.
-- Rights go with the tables.
ALTER TABLE creations RENAME TO creation_keys;
ALTER INDEX creations_pkey RENAME TO creation_keys_pkey;
ALTER TABLE births RENAME TO creations;
ALTER INDEX births_pkey RENAME TO creations_pkey;
ALTER INDEX births_created RENAME TO creations_created;
ALTER INDEX births_user RENAME TO creations_user;
