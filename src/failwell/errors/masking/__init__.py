"""How secrets are recognised: known values, shapes of tokens, and values under the name of a secret."""
