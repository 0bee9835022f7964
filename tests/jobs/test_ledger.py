"""Admission and the choice of victims, as arithmetic."""

from collections.abc import Mapping

import pytest

from failwell.jobs.memory.ledger import (
    DISK,
    RAM,
    Fits,
    MemorySnapshot,
    Never,
    Pool,
    Short,
    Unknown,
    admit,
    admit_unmeasured,
    first_reserve,
    gpu,
    resource_of,
    share,
    to_free,
    victims,
)
from failwell.jobs.memory.machine import Limits

GPU = gpu(0)


def books(
    *,
    free: float = 10_000,
    reserved: Mapping[str, float] | None = None,
    usage: Mapping[str, float] | None = None,
    pool: str = GPU,
) -> MemorySnapshot:
    return MemorySnapshot(
        pools={pool: Pool(10_000, free)},
        reserved={name: {pool: megabytes} for name, megabytes in (reserved or {}).items()},
        usage={name: {pool: megabytes} for name, megabytes in (usage or {}).items()},
    )


@pytest.mark.acceptance("cjm-substrate 43")
@pytest.mark.parametrize(("other", "fits"), [(6_000, False), (2_000, True)])
def test_peaks_run_together_only_within_nine_tenths(other: float, fits: bool) -> None:
    found = admit("b", {GPU: 6_000}, books(reserved={"a": other}))

    assert isinstance(found, Fits) is fits


@pytest.mark.acceptance("cjm-substrate 44")
def test_a_peak_above_the_whole_budget_never_fits() -> None:
    assert admit("a", {GPU: 9_001}, books()) == Never(GPU, 9_001, 9_000)


def test_what_an_instance_holds_itself_it_need_not_find() -> None:
    resident = books(free=500, usage={"a": 6_000})

    assert isinstance(admit("a", {GPU: 6_400}, resident), Fits)
    assert admit("b", {GPU: 6_400}, resident) == Short(GPU, 6_400, 500, is_reserved=False)


def test_room_that_a_running_job_may_still_grow_into_is_not_free() -> None:
    growing = books(free=5_000, reserved={"a": 4_000}, usage={"a": 1_000})

    assert admit("b", {GPU: 3_000}, growing) == Short(GPU, 3_000, 2_000, is_reserved=False)


def test_jobs_take_turns_on_what_nobody_can_measure() -> None:
    in_use = MemorySnapshot(pools={}, reserved={"b": {gpu(1): 50}}, usage={})

    assert isinstance(admit("a", {gpu(1): 100}, books()), Fits)
    assert admit("a", {gpu(1): 100}, in_use) == Unknown(gpu(1))
    assert isinstance(admit("b", {gpu(1): 100}, in_use), Fits)
    assert isinstance(admit("c", {gpu(2): 100}, in_use), Fits)


@pytest.mark.parametrize("lanes", [1, 3, 7])
def test_the_shares_of_all_lanes_fit_together_and_no_more(lanes: int) -> None:
    reserved: dict[str, dict[str, float]] = {}
    for number in range(lanes):
        snapshot = MemorySnapshot(pools={RAM: Pool(10_000, 10_000)}, reserved=reserved, usage={})
        name = f"fresh-{number}"
        assert isinstance(admit_unmeasured(name, share(RAM, lanes, snapshot), snapshot), Fits)
        reserved[name] = {RAM: first_reserve(name, RAM, lanes, snapshot)}
    full = MemorySnapshot(pools={RAM: Pool(10_000, 10_000)}, reserved=reserved, usage={})

    assert sum(pools[RAM] for pools in reserved.values()) == pytest.approx(9_000)
    assert isinstance(admit_unmeasured("late", share(RAM, lanes, full), full), Short)


def test_of_little_that_is_free_a_first_run_reserves_the_part_of_one_lane() -> None:
    crowded = books(free=800, pool=RAM)

    assert isinstance(admit_unmeasured("a", share(RAM, 4, crowded), crowded), Fits)
    assert first_reserve("a", RAM, 4, crowded) == 200


def test_what_never_fits_is_told_even_if_something_else_is_short_first() -> None:
    short = MemorySnapshot(pools={RAM: Pool(1_000, 10), DISK: Pool(1_000, 1_000)}, reserved={}, usage={})

    assert isinstance(admit("a", {RAM: 500, DISK: 5_000}, short), Never)


@pytest.mark.acceptance("cjm-substrate 47")
def test_the_largest_idle_holder_goes_first_and_no_more_than_needed() -> None:
    residents = books(usage={"a": 9_900, "b": 9_500, "c": 2_000, "hollow": 63})

    assert victims(GPU, 3_000, residents, excluded=()) == ["a"]
    assert victims(GPU, 3_000, residents, excluded={"a"}) == ["b"]
    assert victims(GPU, None, residents, excluded={"b"}) == ["a", "c"]


@pytest.mark.acceptance("cjm-substrate 49")
def test_only_who_holds_what_is_short_is_chosen() -> None:
    mixed = MemorySnapshot(
        pools={}, reserved={}, usage={"gpu_only": {GPU: 9_000, RAM: 60}, "in_memory": {RAM: 60_000}}
    )

    assert victims(RAM, 1_000, mixed, excluded=()) == ["in_memory"]
    assert victims(GPU, 1_000, mixed, excluded=()) == ["gpu_only"]


def test_what_is_freed_goes_by_the_learned_peak_with_a_margin() -> None:
    assert to_free(peak=8_000, needed=20, available=1_000) == 9_000
    assert to_free(peak=100, needed=5_000, available=1_000) == 5_000
    assert to_free(peak=0, needed=20, available=10) is None


def test_pools_are_called_as_reports_call_them() -> None:
    assert [resource_of(one) for one in (GPU, RAM, DISK)] == ["gpu_vram_mb", "system_ram_mb", "disk_mb"]


def test_a_limit_is_kept_however_much_there_is() -> None:
    there = MemorySnapshot(
        pools={RAM: Pool(100_000, 90_000)},
        reserved={"busy": {RAM: 300}},
        usage={"busy": {RAM: 100}, "idle": {RAM: 500}},
        limits={RAM: 1_000},
    )

    assert admit("a", {RAM: 1_100}, there) == Never(RAM, 1_100, 1_000)
    assert admit("a", {RAM: 800}, there) == Short(RAM, 800, 700, is_reserved=True)
    # The idle one holds 500, and the busy one may grow by 200: 200 are left.
    assert admit("a", {RAM: 250}, there) == Short(RAM, 250, 200, is_reserved=False)
    assert admit("a", {RAM: 150}, there) == Fits()
    assert admit("idle", {RAM: 600}, there) == Fits()


def test_a_limit_beyond_the_machine_changes_nothing() -> None:
    there = MemorySnapshot(pools={RAM: Pool(1_000, 400)}, reserved={}, usage={}, limits={RAM: 5_000})

    assert admit("a", {RAM: 950}, there) == Never(RAM, 950, 900)
    assert admit("a", {RAM: 500}, there) == Short(RAM, 500, 400, is_reserved=False)


def test_limits_are_those_of_the_pools_that_are_there() -> None:
    limits = Limits(memory_mb=1_000, gpu_mb=2_000)

    assert limits.of([RAM, DISK, gpu(0), gpu(1)]) == {RAM: 1_000, gpu(0): 2_000, gpu(1): 2_000}
    with pytest.raises(ValueError, match="`disk_mb` must be more than 0"):
        Limits(disk_mb=0)
