"""From an entry of models.yaml to something that answers."""

from __future__ import annotations

from pathlib import Path

from xlc_utils.chat.base import Backend
from xlc_utils.chat.record import Record
from xlc_utils.registry import hub
from xlc_utils.registry.files import project_root


def identity(entry) -> dict:
    """What determines a model's replies besides the request: goes into the key of each recorded call."""
    found = entry.model_dump(mode="json", include={"backend", "id", "revision", "sha256", "reasoning_effort"})
    if entry.backend == "gguf" and entry.sha256 is None:
        path = _own_file(entry)  # another file of the same name is another model
        found["file"] = [path.stat().st_size, path.stat().st_mtime_ns] if path.is_file() else None
    if entry.backend == "vllm":
        found |= {"dtype": entry.dtype, "max_model_len": entry.max_model_len}
        if hub.is_folder(entry.id):
            found["files"] = hub.folder_version(entry.id)
    return found


def _own_file(entry) -> Path:
    return project_root() / entry.file


def make_backend(name: str, entry, record: Record | None = None) -> Backend:
    """Starts or connects to a model.

    Args:
        name: its key in models.yaml.
        entry: a `xlc_utils.registry.models.Model` whose backend is ``openai``, ``vllm``, ``embedded`` or ``gguf``.
        record: of the run; only an entry with ``batch`` needs it.
    """
    if entry.backend == "embedded":
        from xlc_utils.chat.embedded import EmbeddedBackend, weights

        return EmbeddedBackend(name, identity(entry), weights(name, entry.package, entry.sha256, entry.file))
    if entry.backend == "gguf":
        from xlc_utils.chat.embedded import EmbeddedBackend, own_weights

        return EmbeddedBackend(name, identity(entry), own_weights(name, _own_file(entry), entry.sha256))
    if entry.backend == "vllm":
        from xlc_utils.chat.vllm_engine import VllmBackend

        return VllmBackend(name, identity(entry), entry.weights, **entry.engine)
    asked = (name, identity(entry), entry.id, [entry.endpoint], entry.api_key_env, entry.concurrency)
    if entry.batch:
        from xlc_utils.chat.batch_api import BatchBackend

        return BatchBackend(*asked, reasoning_effort=entry.reasoning_effort, record=record)
    from xlc_utils.chat.openai_api import OpenAIBackend

    return OpenAIBackend(*asked, reasoning_effort=entry.reasoning_effort)
