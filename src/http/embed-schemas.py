#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a C file of the schemas: embed-schemas.py INPUT OUTPUT."""
import json
import pathlib
import sys

text = json.dumps(json.loads(pathlib.Path(sys.argv[1]).read_text()), separators=(",", ":"))
data = text.encode() + b"\0"
lines = [", ".join(str(byte) for byte in data[at:at + 24]) for at in range(0, len(data), 24)]
pathlib.Path(sys.argv[2]).write_text('/* schemas.json, made by embed-schemas.py. */\nextern const char openapi_schemas[];\n'
                                     f"const char openapi_schemas[] = {{\n{(',' + chr(10)).join(lines)}\n}};\n")
