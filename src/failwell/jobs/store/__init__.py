"""Where jobs are kept: the protocol, its SQLite home, and jobs as rows."""
