"""Many jobs in one call: submitting, retrying and cancelling them, and groups with a callback."""
