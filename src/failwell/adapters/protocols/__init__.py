"""What the codes of protocols mean, one table each: SQLSTATE, gRPC, WebSocket, Redis, CUDA and others.

A protocol's code is the strongest evidence there is, so each function decides alone. It returns a kind, or
`None` for a code without a meaning here. Each table names the specification or the page that it was read from.
The operating system's numbers are in `system_errors`.
"""
