// Mistakes that the lint of the configurations must tell: [configuration, file of docker/, what stands there, what stands
// there instead (once), what must be told]. For every check of every configuration one.
const NGINX = 'gateways/nginx/nginx.conf';
const HAPROXY = 'gateways/haproxy/haproxy.cfg';
const CADDY = 'gateways/caddy/Caddyfile';
const TRAEFIK = 'gateways/traefik/dynamic.yml';
const ENVOY = 'gateways/envoy/envoy.yaml';
const COMPOSITION = '../docker-compose.yml';

const REFUSING = [
  ['nginx', NGINX],
  ['haproxy', HAPROXY],
  ['caddy', CADDY],
  ['envoy', ENVOY],
];
// One pattern too few and one too many, in the same words everywhere.
const OWN = [
  ['device_keys|', '', "/v1/console/device_keys is Chatelaine's own"],
  ['session|', 'session|sessions|', "/v1/console/sessions is a backend's"],
];
const AMBIGUOUS = [
  ['(//|;|', '(//|', '/v1/patients;a=b can be read in two ways'],
  ['%(00|', '%(00|20|', '/v1/patients/a%20b can be read in one way only'],
];

export const BROKEN = [
  ...[...REFUSING, ['traefik', TRAEFIK]].flatMap((where) => OWN.map((mistake) => [...where, ...mistake])),
  ...REFUSING.flatMap((where) => AMBIGUOUS.map((mistake) => [...where, ...mistake])),
  ['nginx', NGINX, 'location = /openapi.json', 'location = /openapi', "/openapi.json is Chatelaine's own"],
  ['nginx', NGINX, '|\\x5c)', ')', '/v1/a\\b can be read in two ways'],
  ['nginx', NGINX, 'proxy_set_header X-Auth-Mode $auth_mode;', '', 'X-Auth-Mode is not set'],
  ['nginx', NGINX, 'proxy_pass http://nodes;', 'proxy_pass http://backend;', 'not one way to the backend'],
  ['haproxy', HAPROXY, 'acl is_own path /openapi.json', '', "/openapi.json is Chatelaine's own"],
  ['haproxy', HAPROXY, '|\\\\\\\\)', ')', '/v1/a\\b can be read in two ways'],
  ['haproxy', 'gateways/haproxy/forward-auth.lua', '"x-auth-kind", ', '', 'x-auth-kind is not set'],
  ['caddy', CADDY, '(?i)^[^?]*', '^[^?]*', '/v1/a%5Cb can be read in two ways'],
  ['caddy', CADDY, 'X-Auth-Scopes {http', 'X-Auth-Scope {http', 'X-Auth-Scopes is not set'],
  ['traefik', TRAEFIK, ' || Path(`/openapi.json`)', '', "/openapi.json is Chatelaine's own"],
  ['traefik', TRAEFIK, 'priority: 10', 'priority: 30', 'the backend comes before the own routes'],
  ['traefik', TRAEFIK, 'service: checks', 'service: check', 'checks leads to no service'],
  ['traefik', TRAEFIK, 'entryPoints: [checks]', 'entryPoints: [check]', 'checks has an unknown entry point'],
  ['traefik', TRAEFIK, '[clean, check, keep]', '[clean, check, kept]', 'backend has no middleware kept'],
  ['traefik', TRAEFIK, '[clean, check, keep]', '[clean, keep]', 'backend leads to the backend unchecked'],
  ['traefik', TRAEFIK, 'Header: false', 'Header: true', "the client's X-Forwarded-* are believed"],
  [
    'traefik',
    'gateways/traefik/traefik.yml',
    'insecure: false',
    'insecure: true',
    "the client's X-Forwarded-* are believed",
  ],
  ['traefik', TRAEFIK, 'Origin, X-CSRF', 'X-CSRF', 'the node is not told origin'],
  ['traefik', TRAEFIK, '[clean, check, keep]', '[clean, keep, check]', 'secrets are taken away before the check'],
  ['traefik', TRAEFIK, 'X-Rewrite-URL: ""', 'X-Rewrite-URL: "-"', 'x-rewrite-url passes'],
  ['traefik', TRAEFIK, 'Cookie: ""', 'Cookies: ""', 'cookie passes'],
  ['traefik', TRAEFIK, '"^X-Auth-|', '"^X-Auth-[^M]|', 'X-Auth-Mode is not set'],
  ['traefik', TRAEFIK, '-|_"', '-|X_"', 'X-Auth_account passes'],
  ['traefik', TRAEFIK, 'serversTransport: nodes', 'serversTransport: node', 'no transport node'],
  ['envoy', ENVOY, '(/.*)?|/openapi', '(/.*)?|/open', "/openapi.json is Chatelaine's own"],
  ['envoy', ENVOY, 'name: envoy.filters.http.router', 'name: router', 'the router is not the last filter'],
  [
    'envoy',
    ENVOY,
    /( {18}- name: \S+header_mutation\n.*?)( {18}- name: \S+ext_authz\n.*?)(?= {18}- name)/s,
    '$2$1',
    'headers are removed too late',
  ],
  ['envoy', ENVOY, '- remove: x-auth-mode', '- remove: x-auth-modes', 'x-auth-mode is not removed'],
  ['envoy', ENVOY, '- exact: x-auth-mode', '- exact: x-auth-modes', 'x-auth-mode is not set'],
  ['envoy', ENVOY, '- remove: x-rewrite-url', '', 'x-rewrite-url passes'],
  ['envoy', ENVOY, '- exact: origin', '', 'the node is not told origin'],
  ['envoy', ENVOY, 'DROP_HEADER', 'ALLOW', 'names with underscores pass'],
  ['envoy', ENVOY, 'use_remote_address: true', 'use_remote_address: false', "the client's X-Forwarded-For is believed"],
  ['envoy', ENVOY, 'normalize_path: false', 'normalize_path: true', 'paths are rewritten'],
  ['envoy', ENVOY, 'REJECT_REQUEST', 'KEEP_UNCHANGED', 'escaped slashes pass'],
  ['envoy', ENVOY, 'remove: [authorization, cookie]', 'remove: [authorization]', 'cookie passes'],
  ['envoy', ENVOY, ' failure_mode_allow: false', ' failure_mode_allow: true', 'without an answer requests pass'],
  ['envoy', ENVOY, 'path_prefix: /check/ext-authz', 'path_prefix: /check', "another prefix than the node's"],
  ['envoy', ENVOY, 'direct_response:', 'redirect:', 'routes in another order'],
  ['envoy', ENVOY, 'cluster: nodes', 'cluster: backend', 'routes in another order'],
  ['envoy', ENVOY, 'match: {prefix: "/"}', 'match: {prefix: "/v1"}', 'the backend is not checked'],
  [
    'envoy',
    ENVOY,
    'headers_to_remove: [a',
    'headers_to_remove: []\n                          typed_per_filter_config: *unchecked #',
    'the backend is not checked',
  ],
  ['envoy', ENVOY, '- name: backend', '- name: backends', 'no cluster backend'],
  ['envoy', ENVOY, 'cluster: checks', 'cluster: check', 'no cluster check'],
  ['composition', COMPOSITION, 'cap_drop: [ALL]', 'cap_drop: [NET_RAW]', 'redis is not shut in'],
  ['composition', COMPOSITION, '  back:\n    internal: true\n', '  back:\n', 'back leads to the world'],
  [
    'composition',
    COMPOSITION,
    'networks:\n      back:',
    'networks:\n      edge:\n      back:',
    'backend is in another network',
  ],
  ['composition', COMPOSITION, 'read_only: true', 'read_only: false', 'node1 is not shut in'],
  [
    'composition',
    COMPOSITION,
    '  backend:\n',
    '  backend:\n    ports: ["8090:8080"]\n',
    'backend has a published port',
  ],
];
