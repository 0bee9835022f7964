"""The memory of NVIDIA GPUs, and how much of it each process holds. Empty if NVML is not installed."""

from importlib import import_module
from typing import Any

from failwell.jobs.memory.ledger import Pool

_MB = 1024.0 * 1024.0
Processes = dict[tuple[int, int], float]


class Gpus:
    """The memory of GPUs by NVML, which is loaded at the first use. If it is missing, that is remembered."""

    def __init__(self) -> None:
        self._nvml: Any = None
        self._is_absent = False

    def read(self) -> tuple[tuple[Pool, ...], Processes]:
        """The memory of each GPU, and what each process holds on it."""
        nvml = self._loaded()
        if nvml is None:
            return (), {}
        pools: list[Pool] = []
        processes: Processes = {}
        try:
            for index in range(nvml.nvmlDeviceGetCount()):
                device = nvml.nvmlDeviceGetHandleByIndex(index)
                memory = nvml.nvmlDeviceGetMemoryInfo(device)
                pools.append(Pool(memory.total / _MB, memory.free / _MB))
                for process in self._running(nvml, device):
                    # Some drivers report no amount for a process.
                    processes[index, process.pid] = (process.usedGpuMemory or 0) / _MB
        except nvml.NVMLError:
            return tuple(pools), processes
        return tuple(pools), processes

    def ids(self) -> tuple[str, ...]:
        """The driver's id of each card, in the order of their numbers."""
        nvml = self._loaded()
        if nvml is None:
            return ()
        ids: list[str] = []
        try:
            for index in range(nvml.nvmlDeviceGetCount()):
                uuid = nvml.nvmlDeviceGetUUID(nvml.nvmlDeviceGetHandleByIndex(index))
                # Older bindings return bytes.
                ids.append(uuid.decode() if isinstance(uuid, bytes) else str(uuid))
        except nvml.NVMLError:
            return tuple(ids)
        return tuple(ids)

    def can_look(self) -> bool:
        """Whether NVML is available, so that a GPU would be found."""
        return self._loaded() is not None

    def close(self) -> None:
        """Shut NVML down."""
        if self._nvml is not None:
            try:
                self._nvml.nvmlShutdown()
            except self._nvml.NVMLError:
                # The driver was unloaded first.
                self._is_absent = True
            self._nvml = None

    def _running(self, nvml: Any, device: Any) -> list[Any]:
        return [
            *nvml.nvmlDeviceGetComputeRunningProcesses(device),
            *nvml.nvmlDeviceGetGraphicsRunningProcesses(device),
        ]

    def _loaded(self) -> Any:
        if self._nvml is None and not self._is_absent:
            try:
                nvml = import_module("pynvml")
            except ImportError:
                self._is_absent = True
                return None
            try:
                nvml.nvmlInit()
            except nvml.NVMLError:
                self._is_absent = True
                return None
            self._nvml = nvml
        return self._nvml
