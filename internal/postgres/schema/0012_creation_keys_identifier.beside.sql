-- Who moves an archive asks with which key an entity was created. Only creations
-- with a key write this index.
CREATE INDEX creation_keys_identifier ON creation_keys (kind, identifier);
