"""What a worker sees of the host's environment: a few variables that programs need, and what its manifest names."""

from collections.abc import Mapping
from fnmatch import fnmatchcase

from failwell.fault.capability import CapabilityConfigError
from failwell.jobs.manifest import Manifest
from failwell.report.redact import register_secret

ALWAYS = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_*", "TZ", "TMPDIR", "TEMP", "TMP", "XDG_*",
    "LD_LIBRARY_PATH", "DYLD_*", "CUDA_*", "NVIDIA_*", "ROCR_*", "HIP_*", "XLA_*", "JAX_*", "OMP_NUM_THREADS",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
    "http_proxy", "https_proxy", "no_proxy", "SYSTEMROOT",
)  # fmt: skip
"""Host variables that every worker is given. Keys and tokens are not among them."""
SHORTEST_SECRET = 6
"""Characters of a value that can be masked without masking what is no secret."""
NEVER = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "VIRTUAL_ENV")
"""They speak of the host's interpreter, and the worker may be another."""


def worker_environment(
    manifest: Manifest, host: Mapping[str, str], secrets: Mapping[str, str]
) -> dict[str, str]:
    """The variables for one worker.

    Raises:
        CapabilityConfigError: a required variable has no value; every such one is named.
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
                # A shorter one is in too many ordinary words to be masked.
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
        # CUDA numbers cards by their speed unless told so, and the ledger, like NVML, by their place on the bus.
        variables.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    return variables
