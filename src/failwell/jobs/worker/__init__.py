"""The host's side of a worker process: started, called, watched, ended."""
