from tests.pipelines.conftest import run, shell, shell_home, store

__all__ = ["run", "shell", "shell_home", "store"]
