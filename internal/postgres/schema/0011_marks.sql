-- What was at an instant is found from marks: every sixteenth version and every
-- sixty-fourth record of an entity is in an index by its instant. So few writes
-- write these indexes, and a reader has few rows to look at from a mark on.
CREATE INDEX versions_marks ON versions (kind, identifier, stored_on) WHERE version % 16 = 0;
CREATE INDEX records_marks ON records (kind, identifier, recorded_on, sequence) WHERE sequence % 64 = 0;
