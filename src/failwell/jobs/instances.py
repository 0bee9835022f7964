"""The instances of a runtime: registered by its program, or loaded from the registry when they are first named."""

import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

from failwell.calls.suppress import suppress
from failwell.errors.fault import Fault
from failwell.errors.faults import (
    CapabilityConfigError,
    CapabilityInputError,
    CapabilityNotLoadedError,
)
from failwell.jobs.arguments import ArgumentCheck
from failwell.jobs.capabilities import CapabilityRegistry, RegistryContent
from failwell.jobs.faults import NotEntered, NotReadable
from failwell.jobs.manifest import Manifest, check_instance, manifest_of, rate_limit_in
from failwell.jobs.manifest_file import read_manifest
from failwell.jobs.platform import check_platform
from failwell.jobs.queue.order import Instance
from failwell.jobs.queue.queue import Queue
from failwell.jobs.schedule_spec import ScheduleSpec
from failwell.jobs.workers.protocol import Supervision, WorkerEvent
from failwell.jobs.workers.supervisor import SupervisedWorker
from failwell.processes.memory_groups import MemoryGroups


class ConfigChange(NamedTuple):
    """What changed for one instance; a field is `None` if it did not change."""

    is_enabled: bool | None = None
    config: Mapping[str, Any] | None = None
    """All settings, including the changed ones."""
    secrets: Mapping[str, str] | None = None


NO_CHANGE = ConfigChange()


class ConfigWatcher:
    """Detects changes of the registry of capabilities. A check without a change costs two `stat` calls."""

    def __init__(self, registry: CapabilityRegistry) -> None:
        self._registry = registry
        self._stamp: object = None
        self._before = self._current = RegistryContent({}, {})
        self.look()

    def look(self) -> bool:
        """Whether something changed since the last check; `change_for` then returns what."""
        stamp = self._registry.stamp()
        if stamp == self._stamp:
            return False
        try:
            content = self._registry.content()
        except CapabilityConfigError:
            # The file is being edited by hand. The next change of it is checked again.
            self._stamp = stamp
            return False
        self._before, self._current, self._stamp = self._current, content, stamp
        return True

    def change_for(self, instance: str, capability: str, settings: Mapping[str, Any]) -> ConfigChange:
        """What the last check found for an instance that runs with these settings."""
        before, now = self._before.instances.get(instance, {}), self._current.instances.get(instance, {})
        was_on, is_on = (entry.get("enabled", True) is not False for entry in (before, now))
        old, new = before.get("config", {}), now.get("config", {})
        config = None
        if old != new:
            unchanged = {key: value for key, value in settings.items() if key in new or key not in old}
            config = {**unchanged, **{key: value for key, value in new.items() if old.get(key, new) != value}}
        old_secrets, new_secrets = (
            entry.secrets.get(capability, {}) for entry in (self._before, self._current)
        )
        return ConfigChange(
            is_enabled=is_on if is_on is not was_on else None,
            config=config,
            secrets=new_secrets if old_secrets != new_secrets else None,
        )


async def renew(instance: Instance, secrets: Mapping[str, str]) -> None:
    """Run every job that has not started yet in a process that has these secrets."""
    worker = instance.worker
    if not worker.give_secrets(secrets):
        return
    # The old process gets no new calls, and finishes those it has.
    instance.is_draining = True
    try:
        await instance.emptied()
        await worker.stop()
    finally:
        instance.is_draining = False


CapabilitySource = Manifest | str | os.PathLike[str] | type | Callable[..., Any]
"""A manifest, the path of one, a class or a function."""
EventCallback = Callable[[Instance, WorkerEvent], None]


class Instances:
    """The instances of one runtime. Registrations outlive `async with`; workers do not."""

    def __init__(self, registry: CapabilityRegistry, supervision: Supervision | None) -> None:
        self.registry = registry
        self.loaded: dict[str, Instance] = {}
        self._supervision = supervision
        self._manifests: dict[str, Manifest] = {}
        self._from_registry: set[str] = set()
        """Instances from the registry; the next `async with` loads them again."""
        self._stamps: dict[str, object] = {}
        """Instance from the registry → which version of its manifest it has."""
        self._unloaded: set[str] = set()
        self._unsubscribe: dict[str, Callable[[], None]] = {}
        self._queue: Queue | None = None
        self._watcher: ConfigWatcher | None = None
        self._on_event: EventCallback | None = None
        self._results: str | None = None
        self._groups: MemoryGroups | None = None

    # -------------------------------------------------------------- entering and leaving `async with`

    def prepare(self, results: str, on_event: EventCallback, groups: MemoryGroups | None = None) -> None:
        """Create the workers of registered instances; `results` is the folder for result files."""
        self._results, self._on_event, self._groups = results, on_event, groups
        registered = [instance for instance in self.loaded.values() if instance.id not in self._from_registry]
        self.loaded.clear()
        self._unsubscribe.clear()
        self._from_registry.clear()
        for instance in registered:
            manifest = instance.manifest
            secrets = self.registry.secrets(manifest.name)
            self._add(self._make(manifest, instance.id, instance.requested_config, secrets, check=False))
        self._watcher = ConfigWatcher(self.registry)

    def serve(self, queue: Queue) -> None:
        """Use this queue from now on."""
        self._queue = queue

    def leave(self) -> None:
        """Stop listening to the registry and to workers."""
        for leave in self._unsubscribe.values():
            leave()
        self._queue = self._on_event = self._results = self._watcher = self._groups = None

    @property
    def queue(self) -> Queue:
        """The queue.

        Raises:
            NotEntered: outside of `async with`.
        """
        if self._queue is None:
            raise NotEntered
        return self._queue

    # -------------------------------------------------------------- registering and loading

    def register(
        self,
        what: CapabilitySource,
        instance: str | None,
        config: Mapping[str, Any] | None,
        fields: Mapping[str, Any],
    ) -> str:
        """See `Runtime.register`."""
        manifest = _manifest(what, fields)
        check_platform(manifest)
        if instance is not None and not _is(str, instance):
            raise _wrong_type("instance", instance, "text")
        _check_config(config)
        name = check_instance(manifest.name if instance is None else instance)
        if name in self.loaded:
            raise CapabilityInputError(
                f"an instance `{name}` is registered already; give this one another id",
                fields_invalid=["instance"],
            )
        stored = self.registry.config(name)
        new = self._make(manifest, name, {**stored, **(config or {})}, self.registry.secrets(manifest.name))
        self._manifests.setdefault(manifest.name, manifest)
        self._unloaded.discard(name)
        self._add(new)
        return name

    def schedules(self) -> dict[str, ScheduleSpec]:
        """The schedules of the instances that this program registered, by their ids."""
        return {
            f"{instance.id}/{spec.name}": spec
            for instance in self.loaded.values()
            if instance.id not in self._from_registry and instance.id == instance.manifest.name
            for spec in instance.manifest.schedule
        }

    def manifest(self, capability: str) -> Manifest:
        """The manifest of a known capability.

        Raises:
            CapabilityNotLoadedError: it is neither registered here nor in the registry.
        """
        return self._manifests.get(capability) or self.registry.manifest(capability)

    def find(self, name: str, *, check: bool = True) -> Instance | None:
        """An instance of the registry, loaded the first time it is named.

        Raises:
            NotReadable: its stored settings cannot be read.
            CapabilityConfigError: its configuration is no longer valid; every invalid field is named.
        """
        if name in self._unloaded:
            return None
        try:
            capability = self.registry.capability(name)
            manifest = self.manifest(capability)
            config, secrets = self.registry.config(name), self.registry.secrets(manifest.name)
        except CapabilityNotLoadedError:
            return None
        except CapabilityConfigError as error:
            raise NotReadable(str(error)) from error
        except (OSError, ValueError, AttributeError, TypeError) as error:
            # A file that was edited by hand: no longer TOML, or a number in place of an object.
            raise NotReadable(f"the stored settings of `{name}` cannot be read: {error}") from error
        instance = self._make(manifest, name, config, secrets, check=check)
        self._from_registry.add(name)
        self._add(instance)
        return instance

    def get(self, name: str) -> Instance:
        """The instance, even if its configuration is invalid, so that it can be corrected.

        Raises:
            CapabilityNotLoadedError: it does not exist.
        """
        self.queue  # noqa: B018  (raises outside of `async with`)
        instance = self.loaded.get(name) or self.find(name, check=False)
        if instance is None:
            raise CapabilityNotLoadedError(name)
        return instance

    def _make(
        self,
        manifest: Manifest,
        instance: str,
        config: Mapping[str, Any],
        secrets: Mapping[str, str],
        *,
        check: bool = True,
    ) -> Instance:
        worker = SupervisedWorker(
            manifest,
            instance=instance,
            config=config,
            secrets=secrets,
            folder=self._results,
            supervision=self._supervision,
            groups=self._groups,
        )
        if check and manifest.config is not None:
            worker.settle()
        host = os.environ if self._supervision is None else self._supervision.environment
        return Instance(manifest, worker, config, is_enabled=self.registry.is_enabled(instance), host=host)

    def _add(self, instance: Instance) -> None:
        on_event = self._on_event
        self.loaded[instance.id] = instance
        if on_event is not None:
            self._unsubscribe[instance.id] = instance.worker.listen(lambda event: on_event(instance, event))
        if self._queue is not None:
            self._queue.outside.claim_soon()

    # -------------------------------------------------------------- changing

    async def unload(self, name: str) -> None:
        """See `Runtime.unload`."""
        instance = self.get(name)
        # No call starts in it any more, and running jobs go back to the queue.
        instance.is_leaving = True
        await instance.worker.stop()
        await instance.emptied()
        # A job that was assigned just before may have started the worker again.
        await instance.worker.stop()
        if self.loaded.get(name) is not instance:
            # Another task unloaded it in the meantime.
            return
        self._unsubscribe.pop(name)()
        del self.loaded[name]
        self._from_registry.discard(name)
        self._unloaded.add(name)
        self.queue.look_outside()

    async def enable(self, name: str) -> bool:
        """See `Runtime.enable`."""
        instance = self.get(name)
        if instance.is_enabled:
            return False
        instance.is_enabled, instance.hook_is_due = True, False
        self.registry.set_enabled(name, on=True, capability=instance.manifest.name)
        await self.queue.attempts.fire_hook(instance, on=True)
        self.queue.look_outside()
        return True

    async def disable(self, name: str) -> bool:
        """See `Runtime.disable`."""
        instance = self.get(name)
        if not instance.is_enabled:
            return False
        instance.is_enabled = False
        self.registry.set_enabled(name, on=False, capability=instance.manifest.name)
        if instance.entries:
            instance.hook_is_due = True
        else:
            await self.queue.attempts.fire_hook(instance, on=False)
        return True

    async def configure(self, name: str, config: Mapping[str, Any]) -> None:
        """See `Runtime.configure`."""
        _check_config(config)
        instance = self.get(name)
        applied = await instance.worker.reconfigure(config)
        instance.configure(applied)
        self.registry.set_config(name, applied, capability=instance.manifest.name)

    def learn_parameters(self, instance: Instance) -> None:
        """Take over what the actions of a started worker take, and store it for processes that only submit."""
        worker, name = instance.worker, instance.manifest.name
        if "parameters" not in worker.about:
            return
        instance.arguments = ArgumentCheck(name, worker.about["parameters"])
        if instance.id in self._from_registry:
            try:
                self.registry.set_parameters(name, worker.about)
            except Fault:
                # The worker checks arguments too.
                return

    def apply_changes(self) -> None:
        """Apply changes that another process made to the registry to every call that has not started."""
        self._follow_rate_limits()
        if self._watcher is None or not self._watcher.look():
            return
        for instance in list(self.loaded.values()):
            change = self._watcher.change_for(instance.id, instance.manifest.name, instance.requested_config)
            if change != NO_CHANGE:
                self.queue.state.spawn(self._apply(instance, change))

    def _follow_rate_limits(self) -> None:
        """Apply the rate limits of manifests that were replaced since they were read."""
        stamps = self.registry.manifest_stamps() if self._from_registry else {}
        for name in self._from_registry:
            instance = self.loaded[name]
            capability = instance.manifest.name
            stamp = stamps.get(capability)
            if stamp is None or self._stamps.get(name) == stamp:
                continue
            self._stamps[name] = stamp
            with suppress(
                Fault, reason="an invalid manifest was reported when it was added; the old one stays"
            ):
                instance.rate_limit = rate_limit_in(self.registry.manifest(capability))
                self.queue.state.wake()

    async def _apply(self, instance: Instance, change: ConfigChange) -> None:
        if change.is_enabled is not None:
            await (self.enable if change.is_enabled else self.disable)(instance.id)
        if change.config is not None and change.config != instance.requested_config:
            with suppress(Fault, reason="an invalid setting was reported when it was set; the old one stays"):
                instance.configure(await instance.worker.reconfigure(change.config))
        if change.secrets is not None:
            await renew(instance, change.secrets)
        self.queue.look_outside()


def _manifest(what: CapabilitySource, fields: Mapping[str, Any]) -> Manifest:
    if isinstance(what, Manifest):
        return what
    if isinstance(what, str | os.PathLike):
        return read_manifest(os.fspath(cast("str | os.PathLike[str]", what)))
    if callable(what):
        return manifest_of(what, **fields)
    raise _wrong_type("what", what, "a manifest, the path of one, a class or a function")


def _is(kind: type, value: object) -> bool:
    """Whether a value has its annotated type; not every caller has a type checker."""
    return isinstance(value, kind)


def _check_config(config: object) -> None:
    if config is not None and not isinstance(config, Mapping):
        raise _wrong_type("config", config, "a mapping")


def _wrong_type(name: str, value: object, what: str) -> CapabilityInputError:
    return CapabilityInputError(f"`{name}` must be {what}, not {type(value).__name__}", fields_invalid=[name])
