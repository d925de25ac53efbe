"""Choice of the device that a process computes on."""

import jax

DEVICES = {"auto": None, "cpu": "cpu", "gpu": "cuda"}


def use_device(name: str) -> str:
    """Select "cpu", "gpu" or JAX's default ("auto") as the device of this process; return JAX's name of it.

    This only works before the first computation of a process.
    """
    if name not in DEVICES:
        raise ValueError(f"Unknown device {name!r}. Known: {', '.join(DEVICES)}.")
    before = jax.config.values["jax_platforms"]
    if DEVICES[name] is not None:
        jax.config.update("jax_platforms", DEVICES[name])
    try:
        backend = jax.default_backend()
    except (AssertionError, RuntimeError) as error:  # JAX raises AssertionError if its CUDA plugin is not installed
        jax.config.update("jax_platforms", before)
        reason = "".join(f" ({line.rstrip('.')})" for line in str(error).splitlines()[:1])
        there_are = ", ".join(f"{device.platform}:{device.id}" for device in jax.devices())
        raise ValueError(
            f"JAX cannot use a {name} here{reason}; available devices: {there_are}. Use one of them (device 'auto'), "
            "or install the extra for NVIDIA GPUs: pip install 'multicause[cuda]'."
        ) from error
    if name != "auto" and backend != name:
        jax.config.update("jax_platforms", before)
        raise ValueError(f"JAX already computes on {backend} in this process, so it cannot use {name}.")
    return backend
