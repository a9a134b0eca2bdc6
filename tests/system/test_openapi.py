# SPDX-License-Identifier: Apache-2.0
"""/openapi.json is a valid description, and says neither more nor less than the programs do. That every answer is as it
says is seen to by Daemon.request()."""

import copy
import json
import re
import shutil
import subprocess

import pytest

from described import Description, Undescribed
from harness import ROOT
from lab.catalog import GOOD

VALIDATOR = "@seriousme/openapi-schema-validator@2.2.5"


@pytest.fixture
def document(daemon, place):
    return json.loads(daemon(place).get("/openapi.json").body)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("npm"), reason="npm is not installed, which fetches the validator")
def test_it_is_valid(document, tmp_path):
    fetched = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--silent", VALIDATOR], cwd=tmp_path,
                             capture_output=True, text=True, timeout=300)
    if fetched.returncode != 0:
        pytest.skip("the validator cannot be fetched from the npm registry")
    (tmp_path / "openapi.json").write_text(json.dumps(document))
    (tmp_path / "check.mjs").write_text('''
        import { Validator } from "@seriousme/openapi-schema-validator";
        import fs from "fs";
        const result = await new Validator().validate(JSON.parse(fs.readFileSync("openapi.json")));
        console.log(JSON.stringify(result));
        process.exit(result.valid ? 0 : 1);
    ''')
    done = subprocess.run(["node", "check.mjs"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_routes_are_those_of_the_index(daemon, place):
    service = daemon(place)
    document = json.loads(service.get("/openapi.json").body)
    listed = {(route["method"].lower(), re.sub("[A-Z]+", lambda part: f"{{{part[0].lower()}}}", route["path"]))
              for route in service.get("/").json["routes"]}
    assert listed == {(verb, path) for path, item in document["paths"].items() for verb in item}


def test_parameters_are_those_of_the_routes(document):
    """Each that a route takes is explained: the table of routes is the one to name them."""
    text = (ROOT / "src/http/routes.c").read_text()
    table = text[text.index("static const Route routes[]"):text.index("#define N_ROUTES")]
    named = [set(re.findall(r'"(\w+)"', part)) for part in re.findall(r"handle_\w+,\s*\{([^}]*)\}", table)]
    described = [{one["name"] for one in operation["parameters"] if one["in"] == "query"}
                 for item in document["paths"].values() for operation in item.values()]
    assert sorted(map(sorted, named)) == sorted(map(sorted, described))
    assert any(named)


def test_codes_are_those_of_the_programs(document):
    """Every code that the source gives a problem is in the description, and the other way round."""
    source = "".join(path.read_text() for path in sorted((ROOT / "src/http").glob("*.c")) if path.name != "openapi.c")
    codes = set(re.findall(r'problem_set(?:_closing)?\(\s*\&?\w+,\s*\d{3},\s*"(\w+)"', source))
    codes |= set(re.findall(r'unauthorized\(problem,\s*"(\w+)"', source))
    start = re.search(r"json_start_code\(.*?\n\}", (ROOT / "src/json/documents.c").read_text(), re.DOTALL)[0]
    codes |= set(re.findall(r'return "(\w+)"', start)) - {"started"}
    reasons = set(re.findall(r'\[REASON_\w+\]\s*=\s*\{?\s*"(\w+)"', "".join(
        path.read_text() for path in sorted((ROOT / "src/verdict").glob("*.c")))))
    assert len(codes) > 30 and len(reasons) > 30
    assert set(document["components"]["schemas"]["Problem"]["properties"]["code"]["enum"]) == codes | reasons


def test_every_schema_is_used(document):
    text = json.dumps(document)
    for name in document["components"]["schemas"]:
        assert f'"#/components/schemas/{name}"' in text, name


@pytest.mark.disk
def test_what_the_description_does_not_say_is_found(daemon, disk):
    """The check that all other tests rely on."""
    service = daemon(disk(rate=GOOD).path)
    service.whole_run()
    description = Description(json.loads(service.get("/openapi.json").body))
    status = service.status

    def check(document):
        description.check("GET", "/status", 200, "application/json", lambda: document)

    check(status)
    for spoil in (lambda it: it.update(new=1), lambda it: it.pop("verdict"), lambda it: it.update(verdict="good"),
                  lambda it: it["targets"][0]["sample"].update(wkb=1), lambda it: it["targets"][0]["sample"].pop("seq"),
                  lambda it: it["targets"][0]["last_run"]["measured"].update({"wkB/s": "1"}),
                  lambda it: it["targets"][0]["device"]["stack"][0].update(kind=None)):
        spoilt = copy.deepcopy(status)
        spoil(spoilt)
        with pytest.raises(Undescribed):
            check(spoilt)
    with pytest.raises(Undescribed):
        description.check("GET", "/status", 418, "application/json", lambda: status)
