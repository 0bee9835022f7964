"""Explanations: the call to a provider did not come through, or broke off on the way."""

from failwell.fault.explanations.entry import Explanation, explain

EXPLANATIONS: dict[str, Explanation] = {
    "provider.rate_limited": explain(
        """
        A short usage window is full: requests or tokens per minute, or calls at the same time. The
        provider turned the call away before working on it, so nothing was billed. Signs of a
        used-up quota (credit, balance, spending limit, a window of a day or more) are looked for
        before the status, so a 429 that really means "pay first" is `provider.quota_exhausted`. A
        reply about everybody's load rather than your own window is `provider.overloaded`.
        """,
        """
        1. Let the runtime wait. A `Retry-After` is honoured exactly; without one the waits are 5,
           10, 20, 40 and 80 s, give or take 20 %, and six calls are made in all.
        2. A wait beyond 60 s is not slept through: the work is parked until the announced time, and
           parking uses up no attempt.
        3. If it keeps happening, lower the concurrency, spread the calls over several models, or
           ask the provider for a higher limit.
        """,
        """
        agents:
          - name: summarise
            prompt: "Summarise: {{ workflow.input.text }}"
            routes:
              - on_error: provider.rate_limited
                retry: {max: 3, backoff: exponential, initial_seconds: 20}
              - on_error: true
                halt: {message: "{{ error.kind }}: {{ error.message }}"}
              - to: $end
        """,
        "yaml",
    ),
    "provider.overloaded": explain(
        """
        The provider says that it has no room for anybody's call: status 529, an `overloaded_error`,
        a model that is still loading. Such an error may also arrive inside a stream that began with
        status 200; the error's type decides then, not the status. It is not about your own usage;
        that would be `provider.rate_limited`. A server failure that says nothing about load is
        `provider.unavailable`.
        """,
        """
        1. Let the runtime repeat the call after 1 and 2 s with jitter, three calls in all.
        2. Add an entry for another model or provider to the chain; overload is what it is there
           for.
        3. If the work is not urgent, run it later: overload follows the provider's busy hours.
        """,
        """
        import failwell
        from failwell.fault.classes import ProviderTransient

        try:
            raise ProviderTransient(
                kind="provider.overloaded",
                message="no capacity left",
                provider="anthropic",
                model="claude-haiku-4-5",
            )
        except ProviderTransient as exc:
            report = failwell.describe(exc)
            print(report.kind, report.retryable)  # provider.overloaded True
        """,
    ),
    "provider.unavailable": explain(
        """
        The provider answered with a failure of its own that a later call may not meet: 500, 502 or
        503, or 409 and 425, which ask to come back later. The reply has a status, so the call
        counts as rejected. For a call that was declared not idempotent a 5xx does not prove that
        nothing ran, and the same reply is `provider.outcome_unknown`. Status 401, 403 and 404 never
        land here, because waiting does not give a key or a model to anyone.
        """,
        """
        1. Let the runtime repeat the call after 1 and 2 s with jitter, three calls in all.
        2. Look at the provider's status page; the request id in the report is what its support asks
           for.
        3. Put another provider behind it in the chain if outages must not stop the work.
        """,
        """
        agents:
          - name: translate
            prompt: "Translate into French: {{ workflow.input.text }}"
            routes:
              - on_error: [provider.unavailable, provider.overloaded]
                to: translate_elsewhere
              - to: $end
        """,
        "yaml",
    ),
    "provider.timeout": explain(
        """
        No complete answer came in time, and the call was declared idempotent (text generation,
        embeddings, reads), so a repeat is safe. Its certainty is still `unknown`: the first call
        may have run and been billed. The same silence on a call that was not declared idempotent is
        `provider.outcome_unknown`, which is not repeated blindly. A time-out before anything was
        sent is `provider.connection`.
        """,
        """
        1. Let the runtime repeat the call after 1 and 2 s with jitter, three calls in all.
        2. If long answers run into it, allow the call more time or ask for a shorter answer.
        3. Stream the answer: a stream shows progress, and silence is noticed sooner.
        """,
        """
        import failwell
        from failwell.fault.classes import ProviderTransient

        try:
            raise ProviderTransient(
                kind="provider.timeout",
                message="no answer within 60 s",
                provider="openai",
                model="gpt-5.4-mini",
            )
        except ProviderTransient as exc:
            report = failwell.describe(exc)
            print(report.kind, report.certainty)  # provider.timeout unknown
        """,
    ),
    "provider.connection": explain(
        """
        No connection could be made: the name did not resolve, the port refused, the connect or the
        connection pool timed out. Nothing was sent, so nothing ran and nothing was billed, and a
        repeat is safe even for a call with side effects. A connection lost after the request went
        out is `provider.outcome_unknown` or `provider.stream_interrupted`. A certificate that was
        not accepted is `provider.tls_failed`, because waiting does not change it.
        """,
        """
        1. Check the address and the port, and whether a proxy or a firewall stands in between.
        2. Check that a local model server is running at all.
        3. Otherwise let the runtime repeat the call after 1 and 2 s with jitter.
        """,
        """
        import socket

        import failwell

        try:
            socket.create_connection(("127.0.0.1", 9), timeout=2)
        except OSError as exc:
            report = failwell.describe(exc)
            print(report.kind, report.certainty)  # provider.connection not_sent
        """,
    ),
    "provider.tls_failed": explain(
        """
        The connection was opened, but the service's certificate was refused: expired, issued for
        another name, or signed by an authority this machine does not know. Nothing was sent. Unlike
        `provider.connection` it is a matter of configuration, so it is never repeated
        automatically. A proxy that opens secure connections, a wrong system clock and an outdated
        certificate store are the usual causes.
        """,
        """
        1. Compare the system clock with real time.
        2. Update the certificate store, or point `SSL_CERT_FILE` to the store that knows your
           proxy's authority.
        3. Check that the address carries the name the certificate was issued for.
        4. Do not switch verification off: the key would travel to whoever answers.
        """,
        """
        import ssl

        import failwell
        from failwell.fault.classes import ProviderCapability

        try:
            try:
                raise ssl.SSLCertVerificationError(1, "certificate verify failed")
            except ssl.SSLError as cause:
                raise ProviderCapability(kind="provider.tls_failed", message="certificate refused") from cause
        except ProviderCapability as exc:
            print(failwell.describe(exc).retryable)  # False
        """,
    ),
    "provider.stream_interrupted": explain(
        """
        The answer began to arrive and broke off before its end marker. A cut stream is never taken
        for a complete answer, however plausible the text looks. What arrived is kept as partial,
        and it was most likely billed. It is not repeated or handed to another provider on its own,
        because the reader would see the beginning twice and a tool call could run twice. A stream
        that fails before its first piece of content is treated like any other call.
        """,
        """
        1. Look at what arrived: it may be enough, or a follow-up question may complete it.
        2. Discard it and ask again if nobody has acted on it yet.
        3. If it happens often, look for a proxy with an idle limit shorter than the model's pauses.
        """,
        """
        import failwell
        from failwell.fault.classes import ProviderTransient

        try:
            raise ProviderTransient(
                kind="provider.stream_interrupted",
                message="the stream ended without a finish reason",
                provider="openai",
                details={"characters": 812},
            )
        except ProviderTransient as exc:
            report = failwell.describe(exc)
            print(report.category, report.certainty)  # ambiguous partial
        """,
    ),
    "provider.outcome_unknown": explain(
        """
        The request went out and no complete reply came back: 408, 504, 524, a read time-out, a lost
        connection; for a call declared not idempotent also any other 5xx. The work may have been
        done and billed, or not. That is why it is not retried: a second image, payment or mail
        cannot be taken back. Where the call is declared idempotent the same event is
        `provider.timeout` or `provider.unavailable` and is repeated.
        """,
        """
        1. Check at the provider, by request id or idempotency key, whether the work was done.
        2. If it was, take its result; if it was not, repeat the call.
        3. Make the next time easier: declare the call idempotent where that is true, send an
           idempotency key, or register a reconcile hook that looks the outcome up.
        """,
        """
        agents:
          - name: draw_cover
            type: script
            command: ./draw_cover.py
            routes:
              - on_error: provider.outcome_unknown
                to: ask_whether_it_was_billed
              - to: $end
          - name: ask_whether_it_was_billed
            type: human_gate
            prompt: "The image may exist already. Draw it again?"
            options:
              - {label: Draw again, value: again, route: draw_cover}
              - {label: Leave it, value: leave, route: $end}
        """,
        "yaml",
    ),
    "provider.exhausted": explain(
        """
        Every attempt that the policy and the chain allowed was made, and each failed in a way that
        was worth repeating. The details name the provider, the model, the number of attempts and
        the last error, which is also kept as the cause. A failure that no repeat can change stops
        at once and keeps its own kind, such as `provider.auth` or `provider.rejected`. No further
        layer repeats it automatically; the attempts were spent below.
        """,
        """
        1. Read the ledger in the report: it lists each attempt, its wait and its kind.
        2. Add another provider to the chain, or allow more attempts for the kind that dominates.
        3. Route it, so that an outage ends in a decision instead of a dead run.
        """,
        """
        agents:
          - name: classify
            prompt: "Classify the ticket: {{ workflow.input.ticket }}"
            routes:
              - on_error: provider.exhausted
                to: classify_by_rules
              - to: $end
          - name: classify_by_rules
            type: script
            command: ./rules.sh
        """,
        "yaml",
    ),
}
