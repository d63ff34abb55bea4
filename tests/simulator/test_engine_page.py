"""What the page of the engine shows is what happens."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "engine.md"


def test_the_page_of_the_engine_runs(capsys):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    exec("\n".join(blocks), {})
    lines = capsys.readouterr().out.splitlines()
    forks = ["[ 60.  90. 100.]", "60.0", "[ 60.  90. 100.] 6.0", "[100.0, 200.0, 300.0]"]
    assert lines == [*forks, "[95. 35. 16.]", "True"]
