"""Explanations: the provider refused the call, or its answer is of no use."""

from failwell.fault.explanations.entry import Explanation, explain

EXPLANATIONS: dict[str, Explanation] = {
    "provider.quota_exhausted": explain(
        """
        The account may not spend more: credit or balance used up, a spending limit reached, a quota
        of a day or a month full. Providers send it as 400, 402, 403 or 429, so it is recognised by
        code, type and wording before the status is looked at. A window of a minute that reopens by
        itself is `provider.rate_limited`. Waiting a few seconds cannot help, so it is never
        repeated; if the time of renewal is known, the work is parked until then.
        """,
        """
        1. Check the plan, the balance and the spending limit of the account that the key belongs
           to.
        2. Or wait for the quota to renew; the report says when, if the provider did.
        3. Keep another account or provider in the chain for work that cannot wait.
        """,
        """
        import failwell
        from failwell.fault.classes import ProviderCapability

        try:
            raise ProviderCapability(
                kind="provider.quota_exhausted",
                message="the monthly spending limit is reached",
                provider="openai",
                details={"renews": "first of the month"},
            )
        except ProviderCapability as exc:
            report = failwell.describe(exc)
            print(report.category, report.retryable)  # capacity False
        """,
    ),
    "provider.auth": explain(
        """
        The provider did not accept the key: 401, or a 400 that says the key is not valid. The key
        is missing, mistyped, revoked, expired, or belongs to another provider or endpoint. It is
        never transient: repeating a refused key only gets it blocked. A key that is accepted but
        not allowed to do this is `provider.permission`. If a refresh hook is given, it is asked
        once, and exactly one further call is made.
        """,
        """
        1. Check which variable or keychain entry the key is read from, and that it is set in this
           process.
        2. Check that key, endpoint and region belong together.
        3. Create a new key if this one was revoked or has expired, and give the hook for
           short-lived tokens.
        """,
        """
        agents:
          - name: answer
            prompt: "{{ workflow.input.question }}"
            routes:
              - on_error: [provider.auth, provider.permission]
                halt: {message: "Ask the platform team for a valid key, then resume this run."}
              - to: $end
        """,
        "yaml",
    ),
    "provider.permission": explain(
        """
        The credentials are genuine but may not do this: 403, an access-denied code, a project or
        region that is not enabled, a model behind an agreement that nobody signed. It is never
        transient. A refused key is `provider.auth`; a 403 that speaks of balance or credit is
        `provider.quota_exhausted`.
        """,
        """
        1. Ask the account's owner to grant the model, the region or the scope that the report
           names.
        2. Or use a key, project or region that already has it.
        3. Some models need terms to be accepted once in the provider's console.
        """,
        """
        import failwell
        from failwell.fault.classes import ProviderCapability

        try:
            raise ProviderCapability(
                kind="provider.permission",
                message="this project may not call the model",
                provider="bedrock",
                model="anthropic.claude-sonnet-4-6",
            )
        except ProviderCapability as exc:
            report = failwell.describe(exc)
            print(report.user_action.kind)  # request_access
        """,
    ),
    "provider.model_not_found": explain(
        """
        The provider knows no model or deployment of that name, or does not show it to this account:
        404, or a validation error about the model id. It is never transient; a model does not
        appear because one waits. A model that exists but lacks a feature is
        `provider.capability_missing`. A 404 about the path itself usually means a wrong base URL; a
        missing `/v1` is the classic.
        """,
        """
        1. Compare the name with the provider's list of models, letter by letter, with its region
           prefix.
        2. On Azure use the deployment's name, not the model's.
        3. Check the base URL.
        4. Choose the successor if the model was retired.
        """,
        """
        import failwell
        from failwell.fault.classes import ProviderCapability

        try:
            raise ProviderCapability(
                kind="provider.model_not_found",
                message="no model is called `gpt-5.4-minni`",
                provider="openai",
                model="gpt-5.4-minni",
            )
        except ProviderCapability as exc:
            report = failwell.describe(exc)
            print(report.blame, report.user_action.kind)  # model change_model
        """,
    ),
    "provider.capability_missing": explain(
        """
        The call needs something the chosen model does not offer: tools, streaming, images, a JSON
        schema, reasoning. It is usually noticed before anything is sent, from the model's declared
        capabilities, and otherwise from the provider's reply. In a chain an entry that lacks the
        capability is skipped and the skip is recorded; only when the call itself asks for the
        impossible does the kind surface. Parameters that no model accepts are
        `provider.bad_request`.
        """,
        """
        1. Choose a model that has the capability named in the details.
        2. Or leave the feature out: no tools, no image, plain text instead of a schema.
        3. Make sure that every entry of a chain can do what the primary is asked to do.
        """,
        """
        import failwell
        from failwell.fault.classes import ProviderCapability

        try:
            raise ProviderCapability(
                kind="provider.capability_missing",
                message="the model cannot read images",
                provider="deepseek",
                model="deepseek-v4-flash",
                details={"capability": "image_input"},
            )
        except ProviderCapability as exc:
            print(failwell.describe(exc).user_action.kind)  # change_model
        """,
    ),
    "provider.bad_request": explain(
        """
        The provider read the request and found it wrong: a parameter out of range, a malformed
        message list, an invalid tool schema. Status 400 or 422 without a more telling sign. A
        request that is only too long is `provider.context_too_long`, a forbidden one
        `provider.content_refused`, an unknown model `provider.model_not_found`. The same request
        will be refused again, here and by every repeat.
        """,
        """
        1. Correct the parameter that the details name.
        2. Check that every tool call in the history has its result, and that the roles alternate as
           the provider wants.
        3. Compare the request with the provider's reference for this API version.
        """,
        """
        import failwell
        from failwell.fault.classes import ProviderCapability

        try:
            raise ProviderCapability(
                kind="provider.bad_request",
                message="temperature must lie between 0 and 1",
                provider="anthropic",
                details={"parameter": "temperature"},
            )
        except ProviderCapability as exc:
            print(failwell.describe(exc).category)  # user_input
        """,
    ),
    "provider.context_too_long": explain(
        """
        The prompt, the history, the tool schemas and the room kept for the answer together exceed
        what the model can read. Providers send it as 400 or 413 with a code such as
        `context_length_exceeded`, or only in the wording. An answer that grew too long is
        `provider.output_truncated`. It is not repeated, because the request does not get shorter by
        waiting.
        """,
        """
        1. Shorten the input: drop old turns, summarise, send fewer documents or tools.
        2. Lower the room reserved for the answer.
        3. Choose a model with a larger window.
        """,
        """
        agents:
          - name: review
            prompt: "Review this change: {{ workflow.input.diff }}"
            routes:
              - on_error: provider.context_too_long
                to: split_the_change
              - to: $end
          - name: split_the_change
            type: script
            command: ./split_diff.py
            routes:
              - to: review
        """,
        "yaml",
    ),
    "provider.content_refused": explain(
        """
        A content policy refused the request or the answer: a moderation code, a safety filter, a
        refusal as the stop reason. It may arrive as an error status or inside a reply with status
        200; both are the same fault, and what the reply used still counts as cost. The refusal's
        own text is kept for operators and not shown to users or models. Repeating it unchanged will
        be refused again.
        """,
        """
        1. Change the content: remove the passage, or explain the legitimate purpose in the prompt.
        2. Use a model or a deployment whose policy permits the use, if your agreement allows it.
        3. Route it to a person where the input comes from users.
        """,
        """
        agents:
          - name: answer_customer
            prompt: "{{ workflow.input.mail }}"
            routes:
              - on_error: provider.content_refused
                to: hand_to_a_person
              - to: $end
          - name: hand_to_a_person
            type: notification
            emit: refused_mail
            payload: {reason: "{{ answer_customer.error.kind }}"}
        """,
        "yaml",
    ),
    "provider.output_truncated": explain(
        """
        The model stopped because the answer reached its length limit: stop reason `length` or
        `max_tokens`. The reply has status 200, but a cut answer is not handed on as a result; it is
        kept as partial and its tokens are counted. A stream that broke off without any stop reason
        is `provider.stream_interrupted`. Too long a question is `provider.context_too_long`.
        """,
        """
        1. Allow a longer answer, as far as the model's own limit goes.
        2. Ask for less: fewer items, a shorter form, one part per call.
        3. With reasoning models lower the effort; hidden reasoning uses the same allowance.
        """,
        """
        import failwell
        from failwell.fault.classes import ProviderCapability

        try:
            raise ProviderCapability(
                kind="provider.output_truncated",
                message="the answer stopped at 4096 tokens",
                provider="anthropic",
                details={"limit": 4096},
            )
        except ProviderCapability as exc:
            report = failwell.describe(exc)
            print(report.category, report.certainty)  # content partial
        """,
    ),
    "provider.output_invalid": explain(
        """
        The model answered in full, but not in the form the call asked for: not JSON, a field
        missing, a tool call whose arguments cannot be read, no choice at all. The work was done and
        billed, and its result is lost. Asking the model to correct itself happens inside the call;
        this kind means that those corrections are spent. A step whose declared schema is broken is
        `internal.schema_violation`.
        """,
        """
        1. Simplify the requested form: fewer levels, fewer optional fields, shorter enumerations.
        2. Show one complete example in the prompt.
        3. Use a model with native structured output.
        """,
        """
        agents:
          - name: extract
            prompt: "Extract the invoice as JSON: {{ workflow.input.text }}"
            routes:
              - on_error: provider.output_invalid
                to: extract_with_larger_model
              - to: $end
        """,
        "yaml",
    ),
    "provider.output_rejected": explain(
        """
        The model answered, and the provider threw the answer away before it reached you: a tool call
        that did not match its schema, content that the server itself calls invalid. The request was
        valid, so a fresh sample may pass; the thrown-away one may have been billed. An answer that
        did reach you and does not fit is `provider.output_invalid`.
        """,
        """
        1. Let the runtime repeat the call; a second sample usually passes.
        2. If it keeps happening, simplify the tools, or stop forcing a tool call.
        3. Lower the temperature, or use a model that is better at calling tools.
        """,
        """
        agents:
          - name: plan
            prompt: "Plan the next step."
            routes:
              - on_error: provider.output_rejected
                retry: {max: 2, backoff: fixed, initial_seconds: 1}
              - to: $end
        """,
        "yaml",
    ),
    "provider.rejected": explain(
        """
        The provider refused the call with a 4xx that a repeat does not change and that fits no more
        telling kind: 405, 410, 415, a version it no longer speaks, an endpoint that is not there.
        It is the sibling of `provider.exhausted`: that one was worth repeating and was repeated,
        this one was not repeated at all.
        """,
        """
        1. Check the base URL, the path and the API version against the provider's reference.
        2. Update the SDK if the provider has retired what it calls.
        3. Look at the status and the code in the report's provider metadata.
        """,
        """
        agents:
          - name: embed
            type: script
            command: ./embed.py
            routes:
              - on_error: [provider.rejected, provider.bad_request]
                halt: {message: "The call itself is wrong: {{ error.message }}"}
              - to: $end
        """,
        "yaml",
    ),
    "provider.unknown": explain(
        """
        An exception came from a provider's SDK, and neither its class nor its status, code or
        wording is known. Perhaps the SDK is newer than the rules, or a proxy answered in its place.
        Whether the call ran is not known either. Unknown is never retried: a guess in either
        direction could repeat paid work or hide a real defect.
        """,
        """
        1. Read the evidence in the report; it lists what was looked at and which rules nearly
           matched.
        2. Run `failwell doctor`: it names exception classes of the installed SDKs that no rule
           knows.
        3. Raise a fault with a fitting kind yourself, from the original exception, until a rule
           exists.
        """,
        """
        import failwell
        from failwell.fault.classes import ProviderCapability

        try:
            raise ProviderCapability(
                kind="provider.unknown", message="unrecognised reply", provider="gateway"
            )
        except ProviderCapability as exc:
            report = failwell.describe(exc)
            print(report.retryable)  # False
            for seen in report.evidence:
                print(seen)
        """,
    ),
}
