# SPDX-License-Identifier: Apache-2.0
"""Holds the daemon's answers against its own description, /openapi.json: what it does not name must not be there, and
what it requires must be."""

import re


class Undescribed(AssertionError):
    pass


class Description:
    def __init__(self, document):
        self.document = document
        self.paths = {re.compile(re.sub(r"\{\w+\}", "[^/]+", path) + "$"): item for path, item in document["paths"].items()}

    def operation(self, method, path):
        """Its description; None: there is no such path, or not with this method."""
        verb = "get" if method == "HEAD" else method.lower()
        return next((item[verb] for pattern, item in self.paths.items() if pattern.match(path) and verb in item), None)

    def check(self, method, path, status, content_type, load):
        """LOAD gives the JSON, if it is that."""
        kind = content_type.partition(";")[0]
        if kind == "application/problem+json":
            self.validate(load(), {"$ref": "#/components/schemas/Problem"}, "problem")
            return
        operation = self.operation(method, path.partition("?")[0])
        if operation is None or status == 304:
            return
        answer = operation["responses"].get(str(status))
        if answer is None:
            raise Undescribed(f"{method} {path} answers {status}")
        if kind not in answer["content"]:
            raise Undescribed(f"{method} {path} answers {kind}")
        schema = answer["content"][kind].get("schema")
        if schema:
            self.validate(load(), schema, path)

    def validate(self, value, schema, where):
        schema = self._whole(schema)
        if "anyOf" in schema:
            faults = []
            for one in schema["anyOf"]:
                try:
                    return self.validate(value, one, where)
                except Undescribed as fault:
                    faults.append(fault)
            raise faults[0 if value is not None else -1]
        types = schema.get("type", [])
        types = [types] if isinstance(types, str) else types
        if types and _type(value) not in types and not (_type(value) == "integer" and "number" in types):
            raise Undescribed(f"{where} is {value!r}, not {' or '.join(types)}")
        if "enum" in schema and value not in schema["enum"]:
            raise Undescribed(f"{where} is {value!r}, not of {schema['enum']}")
        if isinstance(value, dict) and "properties" in schema:
            missing = set(schema.get("required", ())) - set(value)
            unknown = set(value) - set(schema["properties"])
            if missing or unknown:
                raise Undescribed(f"{where} lacks {sorted(missing)}, has {sorted(unknown)}")
            for name, one in value.items():
                self.validate(one, schema["properties"][name], f"{where}.{name}")
        if isinstance(value, list) and "items" in schema:
            for i in sorted({*range(min(3, len(value))), *range(max(0, len(value) - 3), len(value))}):
                self.validate(value[i], schema["items"], f"{where}[{i}]")
        return None

    def _whole(self, schema):
        """With references followed and allOf put together."""
        while "$ref" in schema:
            schema = self.document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        if "allOf" not in schema:
            return schema
        whole = {"type": "object", "properties": {}, "required": []}
        for part in map(self._whole, schema["allOf"]):
            whole["properties"] |= part.get("properties", {})
            whole["required"] += part.get("required", [])
        return whole


def _type(value):
    return {type(None): "null", bool: "boolean", int: "integer", float: "number", str: "string", list: "array",
            dict: "object"}[type(value)]
