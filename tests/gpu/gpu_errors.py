"""Real errors of torch, CUDA, cuBLAS, NCCL and jax on a GPU, and what failwell says about each.

Run it on a machine with a GPU: `python tests/gpu/gpu_errors.py [--only NAME] [--json FILE]`. Each case runs in a process of
its own, because a failed assertion on the device ends the whole CUDA context. Cases whose library is missing are
left out. The exit code is 1 if a kind differs from what is expected, 0 if none does, 77 if there is no GPU.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

NO_GPU = 77
_PATIENCE = 300
_MARK = "result: "

Case = Callable[[], object]


def library(name: str) -> Any:
    """A library that need not be installed where this file is checked."""
    return import_module(name)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def torch_out_of_memory() -> None:
    torch = library("torch")

    torch.empty(1 << 46, dtype=torch.uint8, device="cuda")


def torch_memory_by_steps() -> None:
    torch = library("torch")

    blocks: list[Any] = []
    while True:
        blocks.append(torch.empty(1 << 32, dtype=torch.uint8, device="cuda"))


def torch_device_assert() -> None:
    torch = library("torch")

    table = torch.zeros(4, 4, device="cuda")
    torch.nn.functional.embedding(torch.tensor([10_000_000], device="cuda"), table)
    torch.cuda.synchronize()


def torch_illegal_access() -> None:
    torch = library("torch")

    block = torch.zeros(1024, device="cuda")

    class Beyond:
        """The same memory, described as much larger than it is."""

        __cuda_array_interface__: ClassVar[dict[str, Any]] = {
            "data": (block.data_ptr(), False), "shape": (1 << 38,), "typestr": "<f4", "version": 3, "strides": None,
        }  # fmt: skip

    torch.as_tensor(Beyond(), device="cuda").sum()
    torch.cuda.synchronize()


def torch_no_such_device() -> None:
    torch = library("torch")

    torch.empty(1, device="cuda:99")


def torch_without_a_visible_device() -> None:
    torch = library("torch")

    torch.zeros(1, device="cuda")


def torch_cublas_not_supported() -> None:
    torch = library("torch")

    left = torch.ones(17, 3, dtype=torch.int8, device="cuda")
    torch._int_mm(left, torch.ones(3, 5, dtype=torch.int8, device="cuda"))


def torch_cublas_without_memory() -> None:
    torch = library("torch")

    left = torch.ones(64, 64, device="cuda")
    size = 1 << 33
    while size > 1 << 20:
        try:
            torch.cuda.caching_allocator_alloc(size)
        except RuntimeError:
            size //= 2
    torch.mm(left, left)
    torch.cuda.synchronize()


def torch_cudnn_shapes() -> None:
    torch = library("torch")

    picture = torch.ones(1, 3, 8, 8, device="cuda")
    torch.nn.functional.conv2d(picture, torch.ones(4, 5, 3, 3, device="cuda"))


def torch_nccl_twice_on_one_device() -> None:
    torch, distributed = library("torch"), library("torch.distributed")

    rank = int(os.environ.get("RANK", "0"))
    other: subprocess.Popen[bytes] | None = None
    if rank == 0:
        with socket.create_server(("127.0.0.1", 0)) as server:
            os.environ["MASTER_PORT"] = str(server.getsockname()[1])
        os.environ.update(MASTER_ADDR="127.0.0.1", WORLD_SIZE="2", RANK="0")
        command = [sys.executable, __file__, "--case", "torch_nccl_twice_on_one_device"]
        other = subprocess.Popen(command, env={**os.environ, "RANK": "1"}, stdout=subprocess.DEVNULL)
    try:
        torch.cuda.set_device(0)
        distributed.init_process_group("nccl")
        distributed.all_reduce(torch.ones(1, device="cuda:0"))
        torch.cuda.synchronize()
    finally:
        if other is not None:
            other.kill()
            other.wait()


def torch_store_that_nobody_joins() -> None:
    distributed = library("torch.distributed")

    distributed.TCPStore(
        "127.0.0.1", 0, 2, is_master=True, timeout=timedelta(seconds=1), wait_for_workers=True
    )


def torch_cpu_memory() -> None:
    torch = library("torch")

    torch.empty(1 << 50, dtype=torch.uint8)


def jax_out_of_memory() -> None:
    numpy = library("jax.numpy")

    numpy.zeros((1 << 43,), dtype="float32").block_until_ready()


def jax_shapes() -> None:
    numpy = library("jax.numpy")

    numpy.matmul(numpy.ones((2, 3)), numpy.ones((2, 3)))


def jax_callback() -> None:
    jax = library("jax")

    def fail(_value: Any) -> Any:
        raise KeyError("a bug of the caller")

    shape = jax.ShapeDtypeStruct((), "float32")

    def call(value: Any) -> Any:
        return jax.pure_callback(fail, shape, value)

    jax.jit(call)(1.0).block_until_ready()


CASES: dict[str, tuple[Case, tuple[str, ...], dict[str, str]]] = {
    # name → what raises, the kinds that are right, variables of its process
    "torch_out_of_memory": (torch_out_of_memory, ("resource.gpu_memory",), {}),
    "torch_memory_by_steps": (torch_memory_by_steps, ("resource.gpu_memory",), {}),
    "torch_device_assert": (torch_device_assert, ("internal.bug",), {}),
    "torch_illegal_access": (torch_illegal_access, ("internal.bug",), {}),
    "torch_no_such_device": (torch_no_such_device, ("validation.config_invalid",), {}),
    "torch_without_a_visible_device": (
        torch_without_a_visible_device, ("extension.dependency_missing",), {"CUDA_VISIBLE_DEVICES": ""}
    ),
    "torch_cublas_not_supported": (torch_cublas_not_supported, ("validation.input_invalid", "internal.bug"), {}),
    "torch_cublas_without_memory": (
        torch_cublas_without_memory, ("resource.gpu_memory", "worker.crashed"), {}
    ),
    "torch_cudnn_shapes": (torch_cudnn_shapes, ("internal.bug",), {}),
    "torch_nccl_twice_on_one_device": (
        torch_nccl_twice_on_one_device, ("validation.config_invalid",), {"NCCL_DEBUG": "ERROR"}
    ),
    "torch_store_that_nobody_joins": (
        torch_store_that_nobody_joins, ("provider.outcome_unknown", "provider.connection", "worker.crashed"), {}
    ),
    "torch_cpu_memory": (torch_cpu_memory, ("resource.system_memory",), {}),
    "jax_out_of_memory": (jax_out_of_memory, ("resource.gpu_memory",), {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}),
    "jax_shapes": (jax_shapes, ("validation.input_invalid", "internal.bug"), {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}),
    "jax_callback": (jax_callback, ("internal.bug",), {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}),
}  # fmt: skip


def run_case(name: str) -> None:
    """Run one case in this process and print what failwell says about it."""
    from failwell import describe

    try:
        CASES[name][0]()
    except Exception as error:
        report = describe(error)
        row = {
            "class": f"{type(error).__module__}.{type(error).__name__}",
            "text": str(error)[:300],
            "kind": report.kind,
            "category": report.category,
            "retryable": report.retryable,
            "rule": report.evidence[0].rule,
            "shortfall": None if report.resource_shortfall is None else report.resource_shortfall.needed,
        }
    else:
        row = {"class": None}
    say(_MARK + json.dumps(row))


def has_gpu() -> bool:
    """Whether the driver lists a GPU; no library is loaded for it."""
    return Path("/dev/nvidia0").exists() or Path("/dev/dxg").exists()


def observe(name: str) -> dict[str, Any]:
    """The result of one case, run in a process of its own."""
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}", **CASES[name][2]}
    try:
        process = subprocess.run(
            [sys.executable, __file__, "--case", name],
            capture_output=True, text=True, timeout=_PATIENCE, env=environment, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"class": None, "text": "no result in time"}
    lines = [line for line in process.stdout.splitlines() if line.startswith(_MARK)]
    if not lines:
        return {"class": None, "text": f"exit code {process.returncode}: {process.stderr[-300:]}"}
    return json.loads(lines[0].removeprefix(_MARK))


def main(arguments: list[str] | None = None) -> int:
    """Run the cases and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", choices=CASES, help="run this case in this process")
    parser.add_argument(
        "--only", action="append", choices=CASES, help="run only this case; may be given twice"
    )
    parser.add_argument("--json", type=Path, help="write the results there too")
    args = parser.parse_args(arguments)
    if args.case:
        run_case(args.case)
        return 0
    if not has_gpu():
        say("no GPU here; run it on a machine with one")
        return NO_GPU
    rows: dict[str, Any] = {}
    wrong: list[str] = []
    for name in args.only or CASES:
        needed = name.partition("_")[0]
        if find_spec(needed) is None:
            say(f"-     {name}: {needed} is not installed")
            continue
        row = rows[name] = observe(name)
        right = row["class"] is not None and row["kind"] in CASES[name][1]
        wrong += [] if right else [name]
        say(
            f"{'ok   ' if right else 'WRONG'} {name}: {row['class']} → {row.get('kind')} by {row.get('rule')}"
        )
        say(f"        {(row.get('text') or 'nothing was raised')[:200]!r}")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=2), encoding="utf-8")
    say(f"{len(rows) - len(wrong)} passed, {len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
