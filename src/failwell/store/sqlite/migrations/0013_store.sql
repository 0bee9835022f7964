-- The identity of this store. A session names the store that it was recorded in.

CREATE TABLE store (id TEXT NOT NULL) STRICT;
INSERT INTO store VALUES (lower(hex(randomblob(16))));
