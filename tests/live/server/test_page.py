"""The page for people, in a real browser: wide and narrow, by keyboard, dark and light, without a mistake."""

import pytest

from tests.live.server.browser import OVERFLOW, Browser, needed
from tests.live.server.site import NOW_S, Site, filled
from tests.live.server.test_etas import ACCESS, TOKENS, Lender, filled_by_root

pytestmark = [pytest.mark.slow, needed]
MARKUP = '<img src=x onerror="document.title=1">'
SHOWN = "document.querySelectorAll('.pool').length === 2"
TWO_LINES_PX = 46


@pytest.fixture
def browser(tmp_path):
    with Browser(tmp_path / "profile") as browser:
        yield browser


@pytest.fixture
def site(registry):
    with Site(registry, policy="fcfs", advisor=Lender()) as site:
        yield filled(site)


def at(site):
    return f"http://127.0.0.1:{site.port}/"


@pytest.mark.parametrize("width", [1200, 400])
@pytest.mark.parametrize("dark", [False, True])
def test_all_is_shown_within_the_width(browser, site, width, dark):
    browser.open(at(site), width, dark)
    browser.wait(SHOWN)
    text = browser.run("document.body.innerText")
    for words in ("0 of 16 GPUs idle", "16 held", "Leases", "next", "Promises kept", "Jobs to come (90 %)"):
        assert words in text, text
    assert browser.run("document.querySelectorAll('.pool svg path.band').length") == 2
    assert browser.run(OVERFLOW) == 0
    heads = "[...document.querySelectorAll('#leases th')]"
    assert browser.run(f"{heads}.map((one) => one.innerText)") == ["job", "user", "pool", "GPUs", "state", "until"]
    assert browser.run(f"Math.max(...{heads}.map((one) => one.offsetHeight))") < TWO_LINES_PX
    rows = browser.run("[...document.querySelectorAll('#leases tr')].slice(1).map((one) => one.innerText)")
    assert [row.split("\t")[:5] for row in rows] == [
        ["next", "u", "a", "8", "waiting"],
        ["runs", "u", "a", "16", "running"],
    ]
    assert [row.endswith("longer than expected") for row in rows] == [False, True]
    ground = browser.run("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(18, 22, 27)") == dark
    browser.run("document.getElementById('job').value = 'next'; document.getElementById('job-form').requestSubmit()")
    browser.wait("document.getElementById('job-facts').innerText.includes('Starts')")
    browser.picture(f"{width}-{'dark' if dark else 'light'}")
    assert browser.errors == []


def test_my_job_by_keyboard_and_the_focus_stays_while_the_page_is_refreshed(browser, site):
    browser.open(at(site))
    browser.wait(SHOWN)
    browser.press("Tab")
    assert browser.run("document.activeElement.id") == "job"
    browser.type("next")
    browser.press("Enter")
    browser.wait("document.getElementById('job-facts').innerText.includes('Starts')")
    browser.run("document.getElementById('job').focus()")
    browser.type(" and more")
    before = browser.run("document.getElementById('as-of').textContent")
    site.now_s += 7.0
    browser.wait(f"document.getElementById('as-of').textContent !== {before!r}")
    assert browser.run("document.activeElement.id") == "job"
    assert browser.run("document.activeElement.value") == "next and more"
    assert browser.errors == []


def test_names_are_text(browser, site):
    site.post(("submit", MARKUP, NOW_S, {"pool": "busy", "user": MARKUP}))
    browser.open(at(site))
    browser.wait(SHOWN)
    browser.run("document.getElementById('job').focus()")
    browser.type(MARKUP)
    browser.press("Enter")
    browser.wait("document.getElementById('job-line').textContent.includes('<img')")
    assert browser.run("document.querySelectorAll('img').length") == 0
    assert browser.run("document.title") == "jobcast"
    assert browser.errors == []


def test_what_is_old_is_told(browser, site):
    site.now_s += 100.0
    browser.open(at(site))
    browser.wait(SHOWN)
    assert "nothing was heard of the cluster" in browser.run("document.getElementById('degraded').innerText")
    assert browser.errors == []


def test_a_token_is_asked_for_and_kept_for_the_tab_alone(browser, registry):
    with Site(registry, ACCESS, policy="fcfs", private=True) as site:
        filled_by_root(site)
        browser.open(at(site))
        browser.wait("!document.getElementById('token-form').hidden")
        assert browser.run("document.querySelectorAll('.pool').length") == 0
        browser.run("document.getElementById('token').focus()")
        browser.type(TOKENS["bob"])
        browser.picture("token")
        browser.press("Enter")
        browser.wait(SHOWN)
        browser.wait("document.activeElement.id === 'job'")
        assert browser.run("document.getElementById('token-form').hidden")
        assert browser.run("localStorage.length") == 0
        assert browser.run("document.cookie") == ""
        assert browser.errors == []


def test_no_script_from_elsewhere_and_none_in_the_page(site):
    status, page = site.ask("/")
    assert status == 200
    assert b"http" not in page
    assert page.count(b"<script") == page.count(b'<script src="/page.js"') == 1
    assert b"style=" not in page
