-- What search knows of the current version of each entity. An update that
-- changes nothing of it, as most do, touches none of the tables below.
ALTER TABLE heads ADD COLUMN telescope TEXT;
ALTER TABLE heads ADD COLUMN summary_hash INTEGER NOT NULL DEFAULT 0;
CREATE INDEX heads_telescope ON heads (kind, telescope, created_on, identifier) WHERE telescope IS NOT NULL;

-- One row per entity: its summary, packed.
CREATE TABLE catalogue (
    entity  INTEGER PRIMARY KEY,
    summary BLOB NOT NULL
) STRICT;

-- The inverted index of terms, whose rowid is the entity. It follows behind:
-- all entities up to state.indexed_entity are in it as they are, except for
-- those in unindexed, which are in it as they were, or not at all.
CREATE VIRTUAL TABLE terms USING fts5 (list, content = '', contentless_delete = 1, detail = none, tokenize = "ascii tokenchars '._-@'");
INSERT INTO terms (terms, rank) VALUES ('automerge', 16);
CREATE TABLE unindexed (
    entity INTEGER PRIMARY KEY
) STRICT;
ALTER TABLE state ADD COLUMN indexed_entity INTEGER NOT NULL DEFAULT 0;
