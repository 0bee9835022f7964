"""Which card a worker uses: the one that its own environment names, by number or by the driver's id."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from failwell.jobs.job import JobState
from failwell.jobs.manifest import Manifest, Resources, Variable
from failwell.jobs.memory.ledger import Pool
from failwell.jobs.memory.machine import MachineMemory
from failwell.jobs.queue.order import Instance
from failwell.jobs.workers.startup import worker_environment
from failwell.jobs.workers.supervisor import SupervisedWorker
from tests.jobs.queues import OutsideWorld, a_gpu, a_model, a_runtime
from tests.jobs.workers import run

VISIBLE = "CUDA_VISIBLE_DEVICES"
TWO = MachineMemory(gpus=(Pool(10.0, 5.0), Pool(20.0, 5.0)), gpu_ids=("GPU-aa11", "GPU-ab22"))


class TwoCards(OutsideWorld):
    """Two cards, of which the second is the one that workers write into."""

    def read(self) -> MachineMemory:
        seen = super().read()
        return MachineMemory(
            ram=seen.ram,
            disk=seen.disk,
            gpus=(Pool(80_000.0, 80_000.0), *seen.gpus),
            gpu_processes={(1, pid): much for (_, pid), much in seen.gpu_processes.items()},
            gpu_ids=TWO.gpu_ids,
        )


@pytest.mark.parametrize(
    ("own", "host", "card"),
    [
        (None, {}, "gpu:0"),
        (None, {VISIBLE: "1"}, "gpu:1"),
        ("0", {VISIBLE: "1"}, "gpu:0"),
        (None, {VISIBLE: "1,0"}, "gpu:1"),
        (None, {VISIBLE: "GPU-ab22"}, "gpu:1"),
        ("gpu-ab", {VISIBLE: "0"}, "gpu:1"),
        (None, {VISIBLE: "MIG-77"}, "gpu:MIG-77"),
        ("", {VISIBLE: "1"}, "gpu:-1"),
    ],
)
def test_a_worker_is_put_down_to_the_card_that_it_sees(
    own: str | None, host: Mapping[str, str], card: str
) -> None:
    told = () if own is None else (Variable(name=VISIBLE, value=own),)
    manifest = Manifest(name="m", object="m:M", resources=Resources(gpu=True), env=told)

    instance = Instance(manifest, SupervisedWorker(manifest), {}, host=host)

    assert TWO.card(instance.card) == card
    assert worker_environment(manifest, host, {}).get(VISIBLE, "0").partition(",")[0] in (
        instance.card,
        "",
    )


def test_cuda_counts_the_cards_as_the_ledger_does_unless_somebody_says_otherwise() -> None:
    model = Manifest(name="m", object="m:M", resources=Resources(gpu=True))
    plain = Manifest(name="p", object="p:P")

    assert worker_environment(model, {}, {})["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert (
        worker_environment(model, {"CUDA_DEVICE_ORDER": "FASTEST_FIRST"}, {})["CUDA_DEVICE_ORDER"]
        == "FASTEST_FIRST"
    )
    assert "CUDA_DEVICE_ORDER" not in worker_environment(plain, {}, {})


def test_a_card_that_is_named_by_its_id_is_the_one_whose_memory_decides(tmp_path: Path) -> None:
    async def work() -> None:
        gpu = a_gpu(tmp_path)
        named = (Variable(name=VISIBLE, value="GPU-ab22"),)
        async with a_runtime(tmp_path, world=TwoCards(gpu)) as jobs:
            jobs.register(a_model("a", env=named), config={"gpu": str(gpu)})
            await jobs.call("a", {"mb": 9_500})
            await jobs.worker("a").stop()
            job = await jobs.submit("a", {"mb": 9_500})
            ended = await jobs.wait(job.id)

            assert ended.error is not None
            assert (ended.state, ended.error.kind) == (JobState.FAILED, "resource.never_fits")
            assert "memory of GPU 1" in ended.error.message

    run(work())
