"""Properties are judged by their result, never by how long a busy machine took."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("patient", deadline=None, max_examples=50)
settings.load_profile("patient")
