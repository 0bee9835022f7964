"""Which processes belong to a worker: by the kernel's list of children, or by a scan where it has none."""

from pathlib import Path

import pytest

from failwell.processes import tree


@pytest.mark.parametrize("lists_children", [True, False])
def test_every_process_below_is_found_also_where_the_kernel_lists_no_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lists_children: bool
) -> None:
    parents = {10: 1, 11: 10, 12: 11, 13: 1}
    for pid, parent in parents.items():
        thread = tmp_path / str(pid) / "task" / str(pid)
        thread.mkdir(parents=True)
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (a b) S {parent} {pid} {pid} " + "0 " * 30)
        if lists_children:
            children = [str(child) for child, above in parents.items() if above == pid]
            (thread / "children").write_text(" ".join(children))
    monkeypatch.setattr(tree, "_PROC", str(tmp_path))

    assert sorted(tree.members_below(10)) == [11, 12]
