"""`failwell run --dry-run`: everything that is checked before a run, and nothing of the run."""

import os
from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from failwell.apps.cli.exit_codes import Exit
from failwell.apps.cli.output import say_json


def dry_run(args: Namespace, inputs: Mapping[str, Any]) -> int:
    """Check the file and the inputs; say what would run."""
    from failwell.workflow.check.workflow_tree import check_file
    from failwell.workflow.run_inputs import check_inputs

    checked = check_file(
        args.workflow,
        environ=os.environ,
        allow_outside=args.allow_outside,
        available=frozenset({"script", "job"}),
    )
    mistakes = list(checked.mistakes)
    given: Mapping[str, Any] = {}
    if checked.plan is not None:
        given, wrong = check_inputs(checked.plan, inputs)
        mistakes += wrong
    if checked.plan is None or any(mistake.is_error for mistake in mistakes):
        from failwell.apps.cli.workflows.problems import refuse

        return refuse(mistakes, args)
    plan = checked.plan
    veiled = {name: "(secret)" if plan.inputs[name].secret else value for name, value in given.items()}
    nodes = [{"id": node.name, "type": node.type} for node in plan.nodes.values()]
    say_json({"workflow": plan.name, "entry": plan.entry, "inputs": veiled, "nodes": nodes})
    return Exit.DONE
