"""The environment of a worker: a few variables of the host that programs need, and those its manifest names."""

from collections.abc import Mapping
from fnmatch import fnmatchcase

from failwell.errors.faults__capability import CapabilityConfigError
from failwell.errors.redact import register_secret
from failwell.jobs.manifest import Manifest

ALWAYS = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_*", "TZ", "TMPDIR", "TEMP", "TMP", "XDG_*",
    "LD_LIBRARY_PATH", "DYLD_*", "CUDA_*", "NVIDIA_*", "ROCR_*", "HIP_*", "XLA_*", "JAX_*", "OMP_NUM_THREADS",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
    "http_proxy", "https_proxy", "no_proxy", "SYSTEMROOT",
)  # fmt: skip
"""Host variables that every worker gets. Keys and tokens are not among them."""
SHORTEST_SECRET = 6
"""The shortest secret that is masked. A shorter one would occur in ordinary words."""
NEVER = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "VIRTUAL_ENV")
"""They configure the host's interpreter, and the worker may use another one."""


def worker_environment(
    manifest: Manifest, host: Mapping[str, str], secrets: Mapping[str, str]
) -> dict[str, str]:
    """The environment variables of one worker.

    Raises:
        CapabilityConfigError: required variables have no value; each is named.
    """
    patterns = (*ALWAYS, *manifest.inherit)
    variables = {
        name: value
        for name, value in host.items()
        if name not in NEVER and any(fnmatchcase(name, pattern) for pattern in patterns)
    }
    missing: list[str] = []
    for variable in manifest.env:
        value = secrets.get(variable.name) if variable.secret else variable.value
        if value is None and not variable.secret:
            value = host.get(variable.name)
        if value is not None:
            variables[variable.name] = value
            if variable.secret and len(value) >= SHORTEST_SECRET:
                register_secret(value)
        elif variable.required:
            missing.append(variable.name)
    if missing:
        raise CapabilityConfigError(
            f"capability {manifest.name!r} needs {', '.join(f'`{name}`' for name in missing)};"
            f" set it with `failwell capabilities secret {manifest.name} {missing[0]}` or in the manifest's [env]",
            fields_invalid=missing,
        )
    if manifest.resources.gpu:
        # By default CUDA numbers cards by speed. NVML, and so the queue, numbers them by their place on the bus.
        variables.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    return variables
