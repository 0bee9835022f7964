# pyright: basic, reportAttributeAccessIssue=false, reportMissingImports=false, reportOptionalMemberAccess=false
"""Capabilities for tests that do what few do, and that a host has to bear."""

import os


class Odd:
    """Fails, answers and speaks in unusual ways."""

    def initialize(self, config):
        self.config = config

    def execute(self, value=None):
        return value

    def pid(self):
        return os.getpid()

    def raise_typed(self, name, given, more):
        import failwell.capability as errors

        if "resource_shortfall" in more:
            more["resource_shortfall"] = errors.ResourceShortfall(**more["resource_shortfall"])
        raise getattr(errors, name)(*given, **more)

    def answer(self, frame):
        """Answers the call itself, with words that no worker of ours would use, and goes on."""
        from _failwell_worker import author

        call = author.current.get()
        call._line.send({"type": "result", "job": call.job, "peaks": [1, 1], **frame})
        return "too late"

    def nested(self, levels, kind="list"):
        made = 1
        for _ in range(levels):
            made = [made] if kind == "list" else {"a": made}
        return {"found": [0, made]}
