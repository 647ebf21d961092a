#!/usr/bin/env python3
"""Holds the ready configurations of gateways to each other, and those that cannot be run here to their own rules.

lint.py ROOT. Exit status 77: python3-yaml is not installed.
"""
import re
import sys
from pathlib import Path

try:
    import yaml
except ImportError:
    print("lint: python3-yaml is not installed")
    sys.exit(77)

ROOT = Path(sys.argv[1]) / "docker"
TOLD = ["account", "principal", "kind", "mode", "scopes", "billable"]
OWN = ["/v1/api_keys", "/v1/whoami", "/v1/auth/login", "/v1/console/session", "/v1/console/step_up",
       "/v1/console/api_keys/key_1", "/v1/console/device_keys", "/v1/console/device_enrolments/AAAA-BBBB",
       "/v1/console/audit_events", "/v1/console/usage", "/console", "/console/activate",
       "/.well-known/oauth-authorization-server", "/openapi.json"]
BACKEND = ["/", "/v1", "/v1/patients", "/v1/api_keysX", "/v1/console", "/v1/console/patients", "/v1/console/sessions",
           "/consoleX", "/openapi.jsonX", "/other"]
AMBIGUOUS = ["//v1/patients", "/v1//patients", "/v1/../patients", "/v1/..", "/v1/./patients", "/v1/patients;a=b",
             "/v1/patients.", "/v1/patients./1", "/v1/%2e%2E/patients", "/v1/a%2fb", "/v1/a%5Cb", "/v1/%70atients",
             "/v1/a%00", "/v1/a%252fb", "/v1/a\\b", "/v1/api%5Fkeys"]
PLAIN = ["/v1/patients", "/v1/patients/", "/v1/patients/1.5", "/v1/patients/a%20b", "/v1/patients/%C3%A9", "/.well-known/x",
         "/v1/patients/100%25"]

problems = []


def expect(condition, where, what):
    if not condition:
        problems.append(f"{where}: {what}")


def read(name):
    return (ROOT / "gateways" / name).read_text(encoding="utf-8")


def decides(where, is_own, is_ambiguous):
    """Paths are told apart in the same way by all."""
    for path in OWN:
        expect(is_own(path), where, f"{path} is Chatelaine's own")
    for path in BACKEND + ["/v1/patients"]:
        expect(not is_own(path), where, f"{path} is a backend's")
    if is_ambiguous:
        for path in AMBIGUOUS:
            expect(is_ambiguous(path), where, f"{path} can be read in two ways")
        for path in PLAIN + OWN:
            expect(not is_ambiguous(path), where, f"{path} can be read in one way only")


def any_of(patterns):
    compiled = [re.compile(pattern) for pattern in patterns]
    return lambda path: any(pattern.search(path) for pattern in compiled)


def lint_nginx():
    text = read("nginx/nginx.conf")
    ambiguous = re.search(r'"~\*(.*)" 1;', text).group(1)
    own = re.findall(r"location ~ (\S+) \{", text)
    exact = re.findall(r"location = (/\S+) \{", text)
    decides("nginx", lambda path: any_of(own)(path) or (path in exact and not path.startswith("/_")),
            re.compile(ambiguous, re.I).search)
    for name in TOLD:
        expect(f"proxy_set_header X-Auth-{name.capitalize()} $auth_{name};" in text, "nginx", f"X-Auth-{name} is not set")
    expect(text.count("proxy_pass http://backend;") == 1, "nginx", "more than one way to the backend")


def lint_haproxy():
    text = read("haproxy/haproxy.cfg")
    ambiguous = re.search(r"path -m reg -i (\S+) \}", text).group(1).replace("\\\\\\\\", "\\\\")
    own = re.findall(r"acl is_own path -m reg (\S+)", text)
    exact = re.findall(r"acl is_own path (/\S+)", text)
    decides("haproxy", lambda path: any_of(own)(path) or path in exact, re.compile(ambiguous, re.I).search)
    lua = read("haproxy/forward-auth.lua")
    for name in TOLD:
        expect(f'"x-auth-{name}"' in lua, "haproxy", f"x-auth-{name} is not set")


def lint_caddy():
    text = read("caddy/Caddyfile")
    ambiguous = re.search(r"orig_uri\} (\S+)", text).group(1)
    own = re.findall(r"@own path_regexp (\S+)", text)
    decides("caddy", any_of(own), re.compile(ambiguous).search)
    for name in TOLD:
        expect(f"X-Auth-{name.capitalize()} {{http.reverse_proxy.header" in text, "caddy", f"X-Auth-{name} is not set")


def lint_traefik():
    static = yaml.safe_load(read("traefik/traefik.yml"))
    http = yaml.safe_load(read("traefik/dynamic.yml"))["http"]
    own = http["routers"]["own"]
    patterns = re.findall(r"PathRegexp\(`([^`]*)`\)", own["rule"])
    exact = re.findall(r"Path\(`([^`]*)`\)", own["rule"])
    decides("traefik", lambda path: any_of(patterns)(path) or path in exact, None)
    expect(own["priority"] > http["routers"]["backend"]["priority"], "traefik", "the backend comes before the own routes")
    for name, router in http["routers"].items():
        expect(router["service"] in http["services"], "traefik", f"{name} leads to no service")
        expect(set(router["entryPoints"]) <= set(static["entryPoints"]), "traefik", f"{name} has an unknown entry point")
        for middleware in router.get("middlewares", []):
            expect(middleware in http["middlewares"], "traefik", f"{name} has no middleware {middleware}")
        if router["service"] == "backend":
            expect("check" in router["middlewares"], "traefik", f"{name} leads to the backend unchecked")
    check = http["middlewares"]["check"]["forwardAuth"]
    expect(check["trustForwardHeader"] is False, "traefik", "the client's X-Forwarded-* are believed")
    for name in TOLD:
        expect(re.match(check["authResponseHeadersRegex"], f"X-Auth-{name}"), "traefik", f"X-Auth-{name} is not set")
        expect(http["middlewares"]["clean"]["headers"]["customRequestHeaders"].get(f"X_Auth_{name.capitalize()}") == "",
               "traefik", f"X_Auth_{name} passes")
    for service in http["services"].values():
        transport = service["loadBalancer"].get("serversTransport")
        expect(transport is None or transport in http["serversTransports"], "traefik", f"no transport {transport}")


def lint_envoy():
    static = yaml.safe_load(read("envoy/envoy.yaml"))["static_resources"]
    manager = static["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    filters = {each["name"]: each["typed_config"] for each in manager["http_filters"]}
    names = list(filters)
    expect(names[-1] == "envoy.filters.http.router", "envoy", "the router is not the last filter")
    expect(names.index("envoy.filters.http.header_mutation") < names.index("envoy.filters.http.ext_authz"), "envoy",
           "headers are removed after the check")
    removed = [each["remove"] for each in filters["envoy.filters.http.header_mutation"]["mutations"]["request_mutations"]]
    authz = filters["envoy.filters.http.ext_authz"]
    told = [each["exact"] for each in authz["http_service"]["authorization_response"]["allowed_upstream_headers"]["patterns"]]
    for name in TOLD:
        expect(f"x-auth-{name}" in removed and f"x-auth-{name}" in told, "envoy", f"x-auth-{name} is not removed and set")
    expect(authz["failure_mode_allow"] is False, "envoy", "without an answer requests pass")
    expect(authz["http_service"]["path_prefix"] == "/check/ext-authz", "envoy", "another prefix than the node's")
    routes = manager["route_config"]["virtual_hosts"][0]["routes"]
    refused, own, backend = routes
    expect("direct_response" in refused and own["route"]["cluster"] == "nodes", "envoy", "routes in another order")
    expect(backend["match"] == {"prefix": "/"} and "typed_per_filter_config" not in backend, "envoy",
           "the backend is not checked")
    # Matched whole, without the query.
    decides("envoy", re.compile(own["match"]["safe_regex"]["regex"]).fullmatch,
            lambda path: "%2f" in path.lower() or re.compile(refused["match"]["safe_regex"]["regex"]).fullmatch(path))
    clusters = {cluster["name"] for cluster in static["clusters"]}
    used = {route["route"]["cluster"] for route in routes if "route" in route}
    used.add(authz["http_service"]["server_uri"]["cluster"])
    expect(used <= clusters, "envoy", f"no clusters {used - clusters}")


def lint_composition():
    composition = yaml.safe_load((ROOT.parent / "docker-compose.yml").read_text(encoding="utf-8"))
    for name, service in composition["services"].items():
        expect(service.get("read_only") is True and service.get("cap_drop") == ["ALL"], "compose", f"{name} is not shut in")
        expect("ports" not in service or name in ("gateway", "prometheus"), "compose", f"{name} has a published port")
    yaml.safe_load((ROOT / "prometheus" / "prometheus.yml").read_text(encoding="utf-8"))


for lint in (lint_nginx, lint_haproxy, lint_caddy, lint_traefik, lint_envoy, lint_composition):
    lint()
for problem in problems:
    print(problem)
print(f"lint: {len(problems)} problems")
sys.exit(1 if problems else 0)
