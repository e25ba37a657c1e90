"""report.html in a real browser: no errors, every figure is drawn, tables sort, no horizontal scrolling on a phone.

A second page shows the report in a frame as wide as a phone, inspects it from outside, and records its observations.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Trained

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")

LOOK = """<!DOCTYPE html><title>look</title><body><iframe id="report" style="width: WIDTHpx; height: 800px"></iframe>
<pre id="seen">nothing</pre><script>
const frame = document.getElementById("report"), seen = {};
frame.onload = () => {
  const page = frame.contentDocument, root = page.documentElement;
  seen.width = [root.scrollWidth, root.clientWidth];
  seen.drawn = [...page.querySelectorAll("svg")].map((svg) => {
    const box = svg.getBoundingClientRect();
    return [box.width, box.height, svg.querySelectorAll("path, line, rect, circle, polyline").length];
  });
  seen.tables = [...page.querySelectorAll("table")].filter((t) => t.querySelector("th button")).map((table) => {
    const column = [...table.tHead.rows[0].cells].findIndex((c) => c.querySelector("button"));
    const values = () => [...table.tBodies[0].rows].map((r) => r.cells[column].dataset.value ?? r.cells[column].textContent);
    const states = [];
    for (let k = 0; k < 2; k++) {
      table.tHead.rows[0].cells[column].querySelector("button").click();
      states.push([table.tHead.rows[0].cells[column].getAttribute("aria-sort"), values()]);
    }
    return states;
  });
  document.getElementById("seen").textContent = JSON.stringify(seen);
};
frame.src = "report.html";
</script></body>"""


def seen(folder: Path, width: int, scratch: Path) -> dict[str, Any]:
    """Return the observations of the second page for the report in a folder."""
    assert BROWSER is not None
    shutil.copy(folder / "report.html", scratch / "report.html")
    (scratch / "look.html").write_text(LOOK.replace("WIDTH", str(width)))
    command = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
        "--enable-logging=stderr", "--v=0", "--window-size=1200,900", "--virtual-time-budget=5000",
        f"--user-data-dir={scratch / 'profile'}", "--dump-dom", (scratch / "look.html").as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert not re.findall(r"CONSOLE.*", done.stderr)
    found = re.search(r'<pre id="seen">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found is not None
    assert found[1] != "nothing"
    return dict(json.loads(found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")))


@pytest.mark.parametrize("which", ["species", "mass"])
@pytest.mark.parametrize("width", [390, 1000])
def test_a_report_in_a_browser(which: str, width: int, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    what = seen(request.getfixturevalue(which).folder, width, tmp_path)
    assert what["width"][0] <= what["width"][1] <= width
    assert len(what["drawn"]) >= 3
    for across, up, shapes in what["drawn"]:
        assert across > 50
        assert up > 20
        assert shapes > 0
    assert what["tables"]
    for (first, up), (second, down) in what["tables"]:
        assert (first, second) == ("ascending", "descending")
        assert sorted(up) == sorted(down)
        if len(set(up)) > 1:
            assert up != down


def test_the_browser_would_tell_of_an_error(species: Trained, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    text = (species.folder / "report.html").read_text(encoding="utf-8")
    (broken / "report.html").write_text(text.replace('"use strict";', '"use strict"; missing();'), encoding="utf-8")
    with pytest.raises(AssertionError, match="CONSOLE"):
        seen(broken, 390, tmp_path)
