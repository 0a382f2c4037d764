"""Rehearse a whole sale: make it, let locust's buyers in, and have the shop judge it. See docs/rehearsal.md.

Without --url the shop is one of this machine's own. Ends with 0 when every buyer had an end and the books agree. The
result is ``var/rehearsal/index.html`` and ``report.json``.
"""

import argparse
import html
import json
import os
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.screen import Screen
from benchmarks.stage import run_on_stage, running_shop

ROOT = Path(__file__).resolve().parent.parent.parent
DIRECTORY = ROOT / "var" / "rehearsal"
LOCUST = ROOT / ".venv-rehearsal" / "bin" / "locust"
LOCUSTFILE = Path(__file__).with_name("locustfile.py")
# All buyers come from one address, which a real crowd does not.
OPEN_THROTTLES = {
    "THROTTLE_ANY": "1000000/second",
    "THROTTLE_TICKET": "1000000/second",
    "THROTTLE_PUBLIC": "1000000/second",
    "THROTTLE_LOGIN": "1000000/second",
}
AFTER_OPENING_SECONDS = 240


def main() -> int:
    """Run the rehearsal; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rehearsal", description=__doc__)
    parser.add_argument("--buyers", type=int, default=300)
    parser.add_argument("--units", type=int, default=50)
    parser.add_argument("--opens-in", type=int, default=120, help="seconds in which all must have logged in (120)")
    parser.add_argument("--url", help="a shop that runs, with SANDBOX=1")
    parser.add_argument("--manage", default=f"{sys.executable} manage.py", help="how its manage.py is run")
    options = parser.parse_args()
    if options.url is None:
        return run_on_stage("rehearsal", partial(_own_shop, options))
    return run_on_stage("rehearsal", partial(_rehearse, options, url=options.url))


def _own_shop(options: argparse.Namespace, screen: Screen) -> int:
    os.environ.update(OPEN_THROTTLES)
    with running_shop(directory=DIRECTORY, screen=screen, is_fresh=True) as stage:
        return _rehearse(options, screen, url=stage.shop.url)


def _rehearse(options: argparse.Namespace, screen: Screen, *, url: str) -> int:
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    size = (f"--buyers={options.buyers}", f"--units={options.units}", f"--opens-in={options.opens_in}")
    with screen.step(f"Making {options.buyers:,} accounts and a sale of {options.units:,} units"):
        plan = _manage(options, "rehearsal", "make", *size)
    with screen.step("Letting the buyers in"):
        ends = _let_in(plan, url=url)
    with screen.step("Having the shop judge"):
        verdict = _manage(options, "rehearsal", "judge", str(plan["sale_id"]))
    report = {"buyers": plan["buyers"], "ends": ends, "verdict": verdict, "troubles": _troubles(plan, ends, verdict)}
    (DIRECTORY / "report.json").write_text(json.dumps(report, indent=2))
    (DIRECTORY / "index.html").write_text(_page(report))
    print(json.dumps(report, indent=2))
    return 1 if report["troubles"] else 0


def _manage(options: argparse.Namespace, *arguments: str) -> dict[str, Any]:
    command = [*shlex.split(options.manage), *arguments]
    ran = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(ran.stdout.splitlines()[-1]))


def _let_in(plan: dict[str, Any], *, url: str) -> dict[str, int]:
    """Run locust until every buyer has an end, or for AFTER_OPENING_SECONDS after the opening."""
    plan_file, ends_file = DIRECTORY / "plan.json", DIRECTORY / "ends.json"
    plan_file.write_text(json.dumps(plan))
    plan_file.chmod(0o600)
    ends_file.unlink(missing_ok=True)
    until = datetime.fromisoformat(plan["opens_at"]) - datetime.now(UTC)
    seconds = int(until.total_seconds()) + AFTER_OPENING_SECONDS
    rate = max(1, plan["buyers"] // max(1, int(until.total_seconds()) // 3))
    command = [
        *(str(LOCUST), "--locustfile", str(LOCUSTFILE), "--headless", "--only-summary", "--host", url),
        *("--users", str(plan["buyers"]), "--spawn-rate", str(rate), "--run-time", f"{seconds}s"),
        *("--html", str(DIRECTORY / "locust.html"), "--csv", str(DIRECTORY / "locust"), "--exit-code-on-error", "0"),
    ]
    environment = {**os.environ, "REHEARSAL_PLAN": str(plan_file), "REHEARSAL_ENDS": str(ends_file)}
    with (DIRECTORY / "locust.log").open("w") as log:
        subprocess.run(command, env=environment, stdout=log, stderr=log, check=True, timeout=seconds + 60)
    plan_file.unlink()
    return dict(json.loads(ends_file.read_text()))


def _troubles(plan: dict[str, Any], ends: dict[str, int], verdict: dict[str, Any]) -> list[str]:
    """Say what must not be; the shop's word decides on units, the buyers' on whether each had an end."""
    troubles = list(verdict["broken"])
    if verdict["sold"] != min(plan["units"], plan["buyers"]):
        troubles.append(f"{verdict['sold']} units are sold, {min(plan['units'], plan['buyers'])} were wanted")
    if verdict["drift"]:
        troubles.append(f"drift {verdict['drift']}")
    if (had := sum(ends.values())) != plan["buyers"]:
        troubles.append(f"{plan['buyers'] - had} buyers had no end")
    return troubles + [f"{number} buyers: {end}" for end, number in ends.items() if end.startswith(("failed", "no "))]


def _page(report: dict[str, Any]) -> str:
    rows = {
        **{f"the shop's books: {name}": value for name, value in report["verdict"].items() if name != "broken"},
        **{f"buyers were told: {end}": number for end, number in sorted(report["ends"].items())},
    }
    table = "".join(f"<tr><td>{html.escape(name)}</td><td>{value}</td></tr>" for name, value in rows.items())
    troubles = "".join(f"<li>{html.escape(trouble)}</li>" for trouble in report["troubles"])
    word = f"<ul>{troubles}</ul>" if troubles else "<p>Every law held, and every buyer had an end.</p>"
    return (
        '<!doctype html><meta charset="utf-8"><title>Rehearsal</title>'
        "<style>body{font:16px sans-serif;margin:2em}td{padding:.2em 1em}iframe{width:100%;height:80vh}</style>"
        f'<h1>Rehearsal: {report["buyers"]} buyers</h1>{word}<table>{table}</table><iframe src="locust.html"></iframe>'
    )


if __name__ == "__main__":
    sys.exit(main())
