"""ray: deaths of workers, actors and nodes, lost objects, limits of its scheduler. A task's own failure decides itself.

A `RayTaskError` is an instance of the task's exception as well; the original is in `cause`.
"""

from failwell.adapters.classification import Classification
from failwell.adapters.registry import Table
from failwell.adapters.vendor_tables import carries, envelopes, inner_of, rows
from failwell.errors.axes import Certainty
from failwell.errors.foreign_objects import safe_getattr


def _task(error: BaseException) -> Classification:
    held = safe_getattr(error, "cause", "_original_exception")
    inner = held if isinstance(held, BaseException) else inner_of(error)
    return carries(inner, f"ray.{type(error).__name__.partition('(')[0]}", otherwise="internal.unknown")


TABLES: dict[str, Table] = {
    "ray": {
        "RayTaskError": _task,
        "gRPCStatusError": _task,
        **envelopes("ray", {
            "internal.unknown": "RayError UserCodeException RayDataUserCodeException RayServeException SandboxError "
                                "CrossLanguageError",
            "worker.fatal": "RaySystemError SystemException",
            "tool.failed": "TuneError EnvError MultiAgentEnvError",
            "provider.unknown": "RayStateApiException",
        }),
        **rows("ray", {
            "worker.crashed": "WorkerCrashedError LocalRayletDiedError NodeDiedError RayActorError ActorDiedError "
                              "OwnerDiedError",
            "worker.transient": "ObjectLostError RayChannelError RayDirectTransportError StepFailedRecreateEnvError",
            "worker.timeout": "GetTimeoutError ObjectFetchTimedOutError PlasmaObjectNotAvailable "
                              "RayChannelTimeoutError ExecutionTimeoutError",
            "worker.fatal": "ObjectReconstructionFailedError UnserializableException",
            "worker.start_failed": "RuntimeEnvSetupError NodeLaunchException SandboxCreationError",
            "worker.not_loaded": "ActorHandleNotFoundError SandboxNotFoundError",
            "resource.system_memory": "ObjectStoreFullError OutOfMemoryError",
            "resource.disk": "OutOfDiskError",
            "resource.never_fits": "TaskUnschedulableError ActorUnschedulableError",
            "tool.busy": "PendingCallsLimitExceeded RayCgraphCapacityExceeded BackPressureError",
            "tool.timeout": "SandboxTimeoutError",
            "internal.script_error": "SandboxExecError",
            "provider.auth": "AuthenticationError",
            "provider.connection": "RpcError",
            "provider.unavailable": "DeploymentUnavailableError ReplicaUnavailableError DataSourceUnavailable "
                                    "ServerUnavailable",
            "cancel.job": "TaskCancelledError AsyncioActorExit TaskPlacementGroupRemoved ActorPlacementGroupRemoved",
            "validation.input_invalid": "ActorAlreadyExistsError",
            "validation.config_invalid": "UnsupportedSpaceException",
            "internal.bug": "ObjectFreedError ReferenceCountingAssertionError ObjectRefStreamEndOfStreamError "
                            "StreamingGeneratorReplayInconsistentError OufOfBandObjectRefSerializationException "
                            "NotSerializable SessionMisuseError",
        }),
        # The call may have reached the actor before the connection was lost.
        **rows("ray", {"worker.transient": "ActorUnavailableError"}, certainty=Certainty.UNKNOWN),
    }
}  # fmt: skip
