"""numpy: its errors are subclasses of Python's. The one about memory knows how much was asked for."""

from failwell.adapters.classification import Classification
from failwell.adapters.registry import Table
from failwell.adapters.vendor_tables import rows
from failwell.errors.foreign_objects import int_attr


def _memory(error: BaseException) -> Classification:
    size = int_attr(error, "_total_size")
    return Classification.from_rule(
        kind="resource.system_memory",
        rule="numpy.ArrayMemoryError",
        saw="ArrayMemoryError",
        details={} if size is None else {"needed_mb": round(size / 1024 / 1024, 2)},
    )


TABLES: dict[str, Table] = {
    "numpy": {
        "_ArrayMemoryError": _memory,
        **rows(
            "numpy",
            {
                "validation.input_invalid": "LinAlgError AxisError DTypePromotionError TooHardError UFuncTypeError",
            },
        ),
    }
}
