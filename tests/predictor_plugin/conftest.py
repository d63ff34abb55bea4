from tests.pipelines.conftest import run, shell, store

__all__ = ["run", "shell", "store"]
