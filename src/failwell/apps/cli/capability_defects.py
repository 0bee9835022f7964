"""Who is told of a program's error: where a capability raised it, whoever wrote that, and not us."""

from dataclasses import replace

from failwell.fault.axes import ActionKind, Blame
from failwell.fault.facts import UserAction
from failwell.report.record import ErrorReport

_DEFECT = "internal.bug"


def blamed(report: ErrorReport, *, is_shown: bool = False) -> ErrorReport:
    """`report`; where a capability broke, with words that say so to a person and lead to its author.

    Args:
        report: What went wrong.
        is_shown: Whether the traceback stands beside it, so that nobody has to be told where it is.
    """
    scene = report.scene
    if report.kind != _DEFECT or scene.capability is None:
        return report
    where = f"see where with `failwell job show {scene.job}`, and " if scene.job and not is_shown else ""
    return replace(
        report,
        blame=Blame.WORKER,
        message=f"capability `{scene.capability}` has a defect: it raised {report.error_type}",
        caller_facing=True,
        user_action=UserAction(
            ActionKind.CONTACT_SUPPORT, f"{where}correct it, or tell whoever wrote `{scene.capability}`"
        ),
    )
