"""From an entry of models.yaml to something that answers."""

from __future__ import annotations

from xlc_utils.chat.base import Backend


def identity(entry) -> dict:
    """What determines a model's replies besides the request: goes into the key of each recorded call."""
    return entry.model_dump(mode="json", include={"backend", "id", "revision", "sha256", "reasoning_effort"})


def make_backend(name: str, entry) -> Backend:
    """Starts or connects to a model.

    Args:
        name: its key in models.yaml.
        entry: a `xlc_utils.registry.models.Model` whose backend is ``openai`` or ``embedded``.
    """
    if entry.backend == "embedded":
        from xlc_utils.chat.embedded import EmbeddedBackend, weights

        return EmbeddedBackend(name, identity(entry), weights(name, entry.package, entry.sha256, entry.file))
    from xlc_utils.chat.openai_api import OpenAIBackend

    return OpenAIBackend(
        name,
        identity(entry),
        entry.id,
        [entry.endpoint],
        entry.api_key_env,
        entry.concurrency,
        reasoning_effort=entry.reasoning_effort,
    )
