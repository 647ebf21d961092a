// The ready configurations of gateways are held to each other, and those that cannot be run here to their own rules. Then
// copies with one mistake each: every mistake must be told.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { parse } from 'yaml';
import { BROKEN } from './broken.js';

const TOLD = ['account', 'principal', 'kind', 'mode', 'role', 'scopes', 'billable'];
// What a node needs to judge; what a backend must not be told: of another method, path, host, scheme, certificate or address,
// or of somebody else.
const ASKED = ['cookie', 'origin', 'access-control-request-method', 'x-csrf-token'];
const STEERING = [
  ...['x-http-method', 'x-http-method-override', 'x-method-override', 'x-original-method', 'x-original-uri'],
  ...['x-original-url', 'x-rewrite-url', 'x-forwarded-path', 'x-forwarded-prefix'],
  ...['forwarded', 'x-real-ip', 'x-client-ip', 'true-client-ip'],
  ...['x-forwarded-user', 'x-forwarded-email', 'x-forwarded-groups', 'x-forwarded-preferred-username'],
  ...['x-remote-user', 'remote-user', 'remote-groups', 'remote-email', 'remote-name', 'x-authenticated-user'],
  ...['x-webauth-user', 'http2-settings'],
  ...['x-forwarded', 'x-forwarded-host', 'x-forwarded-port', 'x-forwarded-server', 'x-forwarded-scheme', 'x-forwarded-ssl'],
  ...['x-host', 'x-original-host', 'x-http-host-override', 'x-scheme', 'x-url-scheme', 'front-end-https'],
  ...['x-forwarded-tls-client-cert', 'ssl-client-cert', 'ssl-client-verify', 'x-ssl-client-cert', 'x-client-cert', 'client-cert'],
  ...['x-cluster-client-ip', 'cf-connecting-ip', 'fastly-client-ip', 'x-authentik-username', 'x-authentik-groups', 'x-remote-group'],
];
// Kind, principal and request id: of a node, and of others.
const YES = ['api_key key_01jd req_1', 'device_key dev_01jd req_1', 'session usr_01jd req_1', 'none  req_1'];
const NO_YES = [
  ...['  ', ' key_01jd req_1', 'api_key  req_1', 'api_key key_01jd ', 'api_key usr_01jd req_1', 'none key_01jd req_1'],
  ...['none  ', 'none  1', ' none req_1', 'none none req_1', 'None  req_1', 'nonesuch  req_1', '  req_1'],
];
// Of those that cannot remove X-Auth-* by a pattern.
const KNOWN_AUTH = [
  ...['user', 'user-id', 'username', 'name', 'email', 'subject', 'roles', 'groups', 'group', 'admin', 'tenant'],
  ...['org', 'token', 'key', 'request-user', 'request-email', 'request-groups', 'request-preferred-username'],
  ...['request-access-token'],
].map((name) => `x-auth-${name}`);
// Traefik drops the client's and sets its own.
const OF_TRAEFIK = ['x-forwarded-host', 'x-forwarded-port', 'x-forwarded-server'];
const SECRET = ['authorization', 'cookie'];
// Every path of the contract but the probes, which are for balancers.
const CONTRACT = JSON.parse(readFileSync(join(process.env.CHATELAINE_SOURCE, 'src/api/openapi.json'), 'utf8'));
const OWN = [
  ...Object.keys(CONTRACT.paths).map((path) => path.replace(/\{\w+\}/g, 'x_1')),
  ...['/console', '/console/activate', '/docs', '/docs/errors'],
].filter((path) => !['/livez', '/readyz'].includes(path));
const BACKEND = [
  ...['/', '/v1', '/v1/patients', '/v1/api_keysX', '/v1/console', '/v1/console/patients', '/v1/console/sessionsX'],
  ...['/consoleX', '/docsX', '/openapi.jsonX', '/other'],
];
const AMBIGUOUS = [
  ...['//v1/patients', '/v1//patients', '/v1/../patients', '/v1/..', '/v1/./patients', '/v1/patients;a=b'],
  ...['/v1/patients.', '/v1/patients./1', '/v1/%2e%2E/patients', '/v1/a%2fb', '/v1/a%5Cb', '/v1/%70atients'],
  ...['/v1/a%00', '/v1/a%252fb', '/v1/a\\b', '/v1/api%5Fkeys', '/v1/a%3fb', '/v1/a%3Fb', '/v1/a%23b'],
];
const PLAIN = [
  ...['/v1/patients', '/v1/patients/', '/v1/patients/1.5', '/v1/patients/a%20b', '/v1/patients/%C3%A9'],
  ...['/.well-known/x', '/v1/patients/100%25'],
];

const capitalized = (name) => name[0].toUpperCase() + name.slice(1);
const all = (text, pattern) => [...text.matchAll(pattern)].map((match) => match[1]);
const all2 = (text, pattern) => [...text.matchAll(pattern)].map(([, first, second]) => [first, second]);
const one = (text, pattern) => {
  const match = text.match(pattern);
  assert.ok(match, `nothing is like ${pattern}`);
  return match[1];
};
/** A pattern of a gateway; JavaScript has no (?i) of its own. */
const compile = (pattern, flags = '') => {
  assert.equal(typeof pattern, 'string');
  return pattern.startsWith('(?i)') ? new RegExp(pattern.slice(4), 'i') : new RegExp(pattern, flags);
};
const whole = (pattern) => compile(pattern.replace(/^(\(\?i\))?(.*)$/s, '$1^(?:$2)$'));
const anyOf = (patterns, exact = []) => {
  const compiled = patterns.map((pattern) => compile(pattern));
  return (path) => compiled.some((pattern) => pattern.test(path)) || exact.includes(path);
};

/** Paths are told apart in the same way by all. */
function decides(expect, isOwn, isAmbiguous) {
  for (const path of OWN) expect(isOwn(path), `${path} is Chatelaine's own`);
  for (const path of BACKEND) expect(!isOwn(path), `${path} is a backend's`);
  if (!isAmbiguous) return;
  for (const path of AMBIGUOUS) expect(isAmbiguous(path), `${path} can be read in two ways`);
  for (const path of [...PLAIN, ...OWN]) expect(!isAmbiguous(path), `${path} can be read in one way only`);
}

/** The only upgrade that passes says websocket, whatever else the client says. */
const UPGRADES = { websocket: true, WebSocket: true, h2c: false, 'h2c, websocket': false, websocketx: false, '': false };
function upgrades(expect, isWebsocket) {
  for (const [value, passes] of Object.entries(UPGRADES))
    expect(isWebsocket(value) === passes, `Upgrade: ${value} ${passes ? 'does not pass' : 'passes'}`);
}

/** Traefik removes a header that is set to nothing. */
function expectEmpty(expect, { headers }, names) {
  const set = Object.entries(headers.customRequestHeaders).filter(([, value]) => value === '');
  const emptied = set.map(([name]) => name.toLowerCase());
  for (const name of names) expect(emptied.includes(name), `${name} passes`);
}

/** By configuration: read(name) is a file of docker/, expect(condition, words) complains. */
const LINTS = {
  nginx(read, expect) {
    const text = read('gateways/nginx/nginx.conf');
    const ambiguous = compile(one(text, /"~\*(.*)" 1;/), 'i');
    const exact = all(text, /location = (\/\S+) \{/g).filter((path) => !path.startsWith('/_'));
    decides(expect, anyOf(all(text, /location ~ (\S+) \{/g), exact), (path) => ambiguous.test(path));
    for (const name of TOLD) {
      const header = `X-Auth-${capitalized(name)}`;
      expect(text.includes(`proxy_set_header ${header} $auth_${name};`), `${header} is not set`);
    }
    expect(text.split('proxy_pass https://$checked;').length === 2 && !/_pass \S*backend/.test(text), 'not one way to the backend');
    const rows = one(text, /map "\$auth_kind \$auth_principal \$auth_request_id" \$checked \{\s+default unchecked;(.*?)\}/s);
    const isChecked = anyOf(all(rows, /"~(.*)" backend;/g));
    for (const yes of YES) expect(isChecked(yes), `${yes} does not reach the backend`);
    for (const other of NO_YES) expect(!isChecked(other), 'who is nobody reaches the backend');
    expect(/upstream unchecked \{\s+zone unchecked 64k;\s+server 127\.0\.0\.1:1 down;\s+\}/.test(text), 'who is nobody reaches somebody');
    const emptied = all(text, /proxy_set_header (\S+) "";/g).map((name) => name.toLowerCase());
    for (const name of [...STEERING, ...KNOWN_AUTH]) expect(emptied.includes(name), `${name} passes`);
    const byGrpc = new Map(all2(read('gateways/nginx/grpc.conf'), /grpc_set_header (\S+) (\S+);/g));
    const location = one(text, /location \/ \{([^}]*)/);
    for (const [name, value] of all2(location, /proxy_set_header (\S+) (\S+);/g))
      if (!['Upgrade', 'Connection', 'HTTP2-Settings'].includes(name)) expect(byGrpc.get(name) === value, `gRPC: ${name} passes`);
    for (const [file, way] of [['fastcgi', 'fastcgi'], ['allowed', 'proxy']]) {
      const list = read(`gateways/nginx/${file}.conf`);
      const passing = all(list, /\$http_(\w+)/g).map((name) => name.replaceAll('_', '-'));
      expect(list.includes(`${way}_pass_request_headers off;`), `${file}: all headers pass`);
      for (const name of [...STEERING, ...SECRET]) expect(!passing.includes(name), `${file}: ${name} passes`);
    }
    for (const name of TOLD)
      expect(read('gateways/nginx/fastcgi.conf').includes(`HTTP_X_AUTH_${name.toUpperCase()} $auth_${name} `), `fastcgi: ${name} is not set`);
    const websocket = compile(one(text, /~\*(\S+) websocket;/), 'i');
    upgrades(expect, (value) => websocket.test(value));
    expect(!/proxy_set_header \S+ \$http_(upgrade|connection)/.test(text), "the client's Upgrade passes");
    expect(!/log_format[^;]*\$(request|request_uri|uri|args|http_\w+)\b/.test(text), 'targets are logged');
    expect(text.includes('    error_log /dev/stderr alert;'), 'targets are logged');
    const sidecar = one(text, /upstream sidecar \{([^}]*)\}/);
    expect(!/server (?!unix:|127\.0\.0\.1:1 down;)/.test(sidecar), 'the sidecar is elsewhere');
    expect(text.includes('error_page 502 503 504 = /_check_elsewhere;'), 'a failing sidecar ends the check');
    for (const name of ['_check', '_check_elsewhere']) {
      const inside = one(text, new RegExp(`location = /${name} \\{([^}]*)\\}`));
      expect(inside.startsWith('\n            internal;'), `clients reach /${name}`);
      expect(inside.includes('client_max_body_size 0;'), `/${name} has a limit for bodies that it does not get`);
    }
    const told = new Map(all2(one(text, /map \$refusal_code \$refusal_message \{(.*?)\n {4}\}/s), /^ +([a-z_]+) "(.*)";$/gm));
    // Where other words are right.
    for (const name of ['default', 'overloaded']) told.delete(name);
    const catalogue = new Map(all2(read('../src/api/problem_internal.h'), /"([a-z_]+)",[\s\\]+"([^"]*)"\)/g));
    for (const [code, message] of told) expect(catalogue.get(code) === message, `${code} is told in other words than a node's`);
    expect(told.size > 20, 'refusals are not told');
    const denials = one(text, /location @refused \{(.*?)location = /s);
    expect(!/_pass /.test(denials), 'a refusal is asked twice');
    for (const [, asked, answered] of denials.matchAll(/\$refusal = (\d+)\) \{\s+return (\d+)/g))
      expect(asked === answered, `${asked} becomes ${answered}`);
    const [ofServer, ofBackend] = ['        error_page', '            error_page'].map((words) =>
      all(text, new RegExp(`^${words} ([^;]*);`, 'gm')),
    );
    for (const page of ['400 /_bad_request', '413 @body_too_large', '502 504 =503 @no_server'])
      expect(ofBackend.includes(page) && ofServer.some((each) => each.endsWith(page)), `no error_page ${page}`);
  },

  module(read, expect) {
    const text = read('gateways/nginx/module.sed').replaceAll('\\\n', ' ');
    const { routes } = JSON.parse(read('policy.json'));
    const rows = routes.filter(({ path }) => !path.startsWith('/v1/console/'));
    const said = [...text.matchAll(/location (\S+) \{\s+chatelaine_scope read=(\S+) write=(\S+);/g)];
    for (const { path, read: reading, write } of rows) {
      const [, , ...scopes] = said.find(([, row]) => row === path) ?? [];
      expect(isDeepStrictEqual(scopes, [reading ?? 'none', write ?? 'none']), `${path} has not the scopes of the policy`);
    }
    expect(said.length === rows.length, 'a location is no row');
    for (const name of TOLD) {
      const header = `X-Auth-${capitalized(name)} $auth_${name};`;
      expect(read('gateways/nginx/nginx.conf').includes(header), `$auth_${name} is not what is replaced`);
    }
    expect(text.includes('s#\\$auth_#$chatelaine_#g'), 'variables are not replaced');
  },

  haproxy(read, expect) {
    const text = read('gateways/haproxy/haproxy.cfg');
    // HAProxy takes away one layer of backslashes.
    const ambiguous = compile(one(text, /path -m reg -i (\S+) \}/).replaceAll('\\\\', '\\'), 'i');
    const own = anyOf(all(text, /acl is_own path -m reg (\S+)/g), all(text, /acl is_own path (\/\S+)/g));
    decides(expect, own, (path) => ambiguous.test(path));
    const lua = read('gateways/haproxy/forward-auth.lua');
    for (const name of TOLD) expect(one(lua, /TOLD = \{([^}]*)\}/).includes(`"x-auth-${name}"`), `x-auth-${name} is not set`);
    const deleted = anyOf(all(text, /^ +http-request del-header (\^\S+) -m reg/gm), ['http2-settings']);
    for (const name of STEERING) expect(deleted(name), `${name} passes`);
    for (const name of ['Connection', 'Upgrade', 'HTTP2-Settings'])
      expect(text.includes(`del-header ${name}\n`), `${name} passes`);
    const [ofAll, ofClients] = all(text, /^ {4}maxconn (\d+)/gm).map(Number);
    expect(ofClients <= ofAll / 2, 'clients take the connections of checks');
    const isDropped = /backend backends\n(?:(?!\nbackend)[^])*\.if version_atleast\(3\.2\)\n +option http-drop-request-trailers\n\.endif/;
    const isRefused = /\.if !version_atleast\(3\.2\)\n +http-request return status 411 .*req\.hdr\(Transfer-Encoding\) -m found \} !is_own\n +http-request return status 505 .* if \{ req\.ver 2\.0 \} !is_own\n\.endif/;
    expect(isDropped.test(text) && isRefused.test(text), 'trailers pass');
    expect(/answer\.status == 200 and is_anybody ~= has_principal and .*\^req_/.test(lua), 'anybody can accept');
    expect(lua.includes('is_anybody, has_principal = first("x-auth-kind") == "none", first("x-auth-principal") ~= ""'), 'anybody can accept');
    for (const name of ASKED) expect(one(lua, /ASKED = \{([^}]*)\}/).includes(`"${name}"`), `the node is not told ${name}`);
    expect(/backend backends[^]*option http-no-delay/.test(text), 'lines of streams are held back');
    expect(!/local0 info/.test(one(text, /^global\n(.*?)\n\n/ms)), 'checks are logged');
    expect(!/log-format .*(%HU|%r|%hr|capture|%\[path|%\[url)/.test(text), 'targets are logged');
  },

  caddy(read, expect) {
    const text = read('gateways/caddy/Caddyfile');
    const ambiguous = compile(one(text, /orig_uri\} (\S+)/));
    decides(expect, anyOf(all(text, /@own path_regexp (\S+)/g)), (path) => ambiguous.test(path));
    for (const name of TOLD) {
      const header = `X-Auth-${capitalized(name)}`;
      expect(text.includes(`${header} {http.reverse_proxy.header`), `${header} is not set`);
    }
    const removed = all(text, /request_header -(\S+)/g).map((name) => name.toLowerCase());
    const patterns = removed.filter((name) => name.endsWith('*')).map((name) => name.slice(0, -1));
    const isRemoved = (name) => removed.includes(name) || patterns.some((start) => start && name.startsWith(start));
    for (const name of [...STEERING, ...SECRET, 'connection']) expect(isRemoved(name), `${name} passes`);
    for (const name of ['x-auth-*', '*_*']) expect(removed.includes(name), `${name} passes`);
    const kinds = 'header X-Auth-Kind api_key\\s+header X-Auth-Kind device_key\\s+header X-Auth-Kind session';
    for (const [name, says] of [['allowed', `${kinds}\\s+header X-Auth-Principal \\*`], ['public', 'header X-Auth-Kind none\\s+header !X-Auth-Principal']])
      expect(new RegExp(`@${name} \\{\\s+status 200\\s+${says}\\s+header X-Request-Id req_\\*\\s+\\}`).test(text), 'anybody can accept');
    expect(/@foreign status 2xx 3xx\s+handle_response @foreign \{\s+error 503/.test(text), "another server's answer is told");
    for (const pattern of all(text, /vars_regexp \{http\.request\.header\.Upgrade\} (\S+)/g))
      upgrades(expect, (value) => compile(pattern).test(value));
    expect(/@plain not vars_regexp[^]*request_header @plain -Upgrade\n/.test(text), 'Upgrade passes');
    const logs = text.split('wrap json').length - 1;
    expect(logs === 2 && text.split('request>uri regexp').length - 1 === logs, 'targets are logged');
  },

  traefik(read, expect) {
    const { entryPoints, accessLog } = parse(read('gateways/traefik/traefik.yml'));
    const { routers, services, middlewares, serversTransports } = parse(read('gateways/traefik/dynamic.yml')).http;
    const { rule, priority } = routers.own;
    decides(expect, anyOf(all(rule, /PathRegexp\(`([^`]*)`\)/g), all(rule, /\bPath\(`([^`]*)`\)/g)));
    expect(priority > routers.backend.priority, 'the backend comes before the own routes');
    for (const [name, router] of Object.entries(routers)) {
      const used = router.middlewares ?? [];
      expect(Object.hasOwn(services, router.service), `${name} leads to no service`);
      for (const entry of router.entryPoints)
        expect(Object.hasOwn(entryPoints, entry), `${name} has an unknown entry point`);
      for (const each of used) expect(Object.hasOwn(middlewares, each), `${name} has no middleware ${each}`);
      expect(router.service !== 'backend' || used.includes('check'), `${name} leads to the backend unchecked`);
    }
    const check = middlewares.check.forwardAuth;
    const kept = ['RequestPath', 'RequestLine'].filter((name) => accessLog.fields.names?.[name] !== 'drop');
    expect(kept.length === 0 && accessLog.fields.headers.defaultMode === 'drop', 'targets are logged');
    const websocket = compile(one(routers.websockets.rule, /HeaderRegexp\(`Upgrade`, `(.*)`\)/));
    upgrades(expect, (value) => websocket.test(value));
    expect(routers.websockets.priority < priority, 'WebSockets come before the own routes');
    expect(routers.websockets.middlewares.includes('websocket'), "the client's Upgrade passes");
    expect(middlewares.websocket.headers.customRequestHeaders.Upgrade === 'websocket', "the client's Upgrade passes");
    expect(routers.backend.middlewares.includes('plain'), 'upgrade passes');
    expectEmpty(expect, middlewares.plain, ['upgrade', 'connection']);
    const believed = check.trustForwardHeader !== false || entryPoints.gateway.forwardedHeaders.insecure !== false;
    expect(!believed, "the client's X-Forwarded-* are believed");
    const asked = check.authRequestHeaders.map((name) => name.toLowerCase());
    for (const name of ['authorization', ...ASKED]) expect(asked.includes(name), `the node is not told ${name}`);
    for (const { middlewares: order } of [routers.backend, routers.websockets]) {
      expect(order.includes('clean') && order.includes('keep'), 'headers of the client pass');
      expect(order.indexOf('check') < order.indexOf('keep'), 'secrets are taken away before the check');
    }
    expectEmpty(expect, middlewares.clean, STEERING.filter((name) => !OF_TRAEFIK.includes(name)));
    expectEmpty(expect, middlewares.keep, SECRET);
    const told = compile(check.authResponseHeadersRegex);
    for (const name of TOLD) {
      expect(told.test(`X-Auth-${capitalized(name)}`), `X-Auth-${capitalized(name)} is not set`);
    }
    // Go's spelling of what a client sends.
    for (const name of ['X_auth_account', 'X-Auth_account', 'X_http_method_override'])
      expect(told.test(name), `${name} passes`);
    for (const { loadBalancer } of Object.values(services)) {
      const transport = loadBalancer.serversTransport;
      expect(transport === undefined || Object.hasOwn(serversTransports, transport), `no transport ${transport}`);
    }
  },

  envoy(read, expect) {
    const { listeners, clusters } = parse(read('gateways/envoy/envoy.yaml')).static_resources;
    const manager = listeners[0].filter_chains[0].filters[0].typed_config;
    const names = manager.http_filters.map(({ name }) => name);
    const filters = Object.fromEntries(manager.http_filters.map(({ name, typed_config }) => [name, typed_config]));
    const mutation = 'envoy.filters.http.header_mutation';
    const authz = filters['envoy.filters.http.ext_authz'];
    expect(names.at(-1) === 'envoy.filters.http.router', 'the router is not the last filter');
    expect(names.indexOf(mutation) < names.indexOf('envoy.filters.http.ext_authz'), 'headers are removed too late');
    const removed = filters[mutation].mutations.request_mutations.map(({ remove }) => remove);
    const told = authz.http_service.authorization_response.allowed_upstream_headers.patterns.map(({ exact }) => exact);
    for (const name of TOLD) {
      expect(removed.includes(`x-auth-${name}`), `x-auth-${name} is not removed`);
      expect(told.includes(`x-auth-${name}`), `x-auth-${name} is not set`);
    }
    for (const name of [...STEERING, ...KNOWN_AUTH]) expect(removed.includes(name), `${name} passes`);
    expect(isDeepStrictEqual(manager.upgrade_configs, [{ upgrade_type: 'websocket' }]), 'another upgrade passes');
    const logged = manager.access_log.map(({ typed_config }) => Object.values(typed_config.log_format.json_format)).join();
    expect(!/PATH|REQ\((?!:METHOD)/.test(logged), 'targets are logged');
    const asked = authz.allowed_headers.patterns.map(({ exact }) => exact);
    for (const name of ASKED) expect(asked.includes(name), `the node is not told ${name}`);
    expect(
      manager.common_http_protocol_options.headers_with_underscores_action === 'DROP_HEADER',
      'names with underscores pass',
    );
    expect(manager.use_remote_address === true, "the client's X-Forwarded-For is believed");
    expect(manager.normalize_path === false && manager.merge_slashes === false, 'paths are rewritten');
    expect(manager.path_with_escaped_slashes_action === 'REJECT_REQUEST', 'escaped slashes pass');
    expect(authz.failure_mode_allow === false, 'without an answer requests pass');
    expect(authz.http_service.path_prefix === '/check/ext-authz', "another prefix than the node's");

    const { routes } = manager.route_config.virtual_hosts[0];
    const [refused, own, backend] = routes;
    expect(routes.length === 3 && refused.direct_response && own.route.cluster === 'nodes', 'routes in another order');
    const isChecked = isDeepStrictEqual(backend.match, { prefix: '/' }) && !('typed_per_filter_config' in backend);
    expect(isChecked, 'the backend is not checked');
    expect(backend.route.max_stream_duration !== undefined, 'a WebSocket has no end');
    for (const name of SECRET) expect(backend.request_headers_to_remove.includes(name), `${name} passes`);
    // Matched whole, without the query. Envoy refuses escaped slashes by itself.
    const isOwn = whole(own.match.safe_regex.regex);
    const isRefused = whole(refused.match.safe_regex.regex);
    const isAmbiguous = (path) => path.toLowerCase().includes('%2f') || isRefused.test(path);
    decides(expect, (path) => isOwn.test(path), isAmbiguous);
    for (const { outlier_detection: outliers } of clusters.filter(({ name }) => name !== 'backend'))
      expect(!outliers || (outliers.enforcing_consecutive_5xx === 0 && outliers.enforcing_consecutive_gateway_failure === 100), 'a 501 ejects a node');
    const used = [...routes.flatMap(({ route }) => route?.cluster ?? []), authz.http_service.server_uri.cluster];
    for (const name of used)
      expect(
        clusters.some((cluster) => cluster.name === name),
        `no cluster ${name}`,
      );
  },

  composition(read, expect) {
    const { services, networks } = parse(read('../docker-compose.yml'), { merge: true });
    for (const [name, service] of Object.entries(services)) {
      const isShutIn = service.read_only === true && isDeepStrictEqual(service.cap_drop, ['ALL']);
      expect(isShutIn, `${name} is not shut in`);
      expect(!service.ports || ['gateway', 'prometheus'].includes(name), `${name} has a published port`);
      const own = name === 'backend' ? 'back' : /^(redis|replica|sentinel)/.test(name) ? 'store' : undefined;
      const isApart = !own || isDeepStrictEqual(Object.keys(service.networks), [own]);
      expect(isApart, `${name} is in another network`);
    }
    for (const [name, network] of Object.entries(networks))
      expect(name === 'edge' || network.internal === true, `${name} leads to the world`);
    const mounts = ({ volumes = [] }) => volumes.map((volume) => volume.split(':')[0]);
    for (const [name, service] of Object.entries(services)) {
      const secrets = mounts(service).filter((volume) => volume.endsWith('-secrets'));
      const isSecret = name !== 'secrets' && (mounts(service).includes('ca') || secrets.length > 1);
      expect(!isSecret, `${name} sees keys of others`);
    }
    const TLS = ['REDIS_CA', 'REDIS_CERT', 'REDIS_KEY', 'TLS_CERT', 'TLS_KEY'];
    TLS.push('INTERNAL_TLS_CERT', 'INTERNAL_TLS_KEY', 'INTERNAL_CLIENT_CA');
    for (const name of ['node1', 'node2', 'node3'])
      for (const setting of TLS)
        expect(services[name].environment[`CHATELAINE_${setting}`]?.startsWith('/run/node/'), `${name} has no ${setting}`);
    const redis = read('redis/tls.conf');
    expect(/^port 0$/m.test(redis) && /^tls-auth-clients yes$/m.test(redis), 'Redis answers everybody');
    expect(/^tls-replication yes$/m.test(redis), 'replicas copy in clear text');
    for (const file of ['redis/redis.conf', 'redis/sentinel.conf'])
      expect(/^include \/etc\/chatelaine\/tls.conf$/m.test(read(file)), `${file} has no TLS`);
    const gateway = read('gateways/nginx/nginx.conf');
    const socket = one(gateway, /server unix:(\S+) /);
    expect(services.node1.environment.CHATELAINE_CHECK_SOCKET === socket, 'the gateway asks another socket');
    const sharing = Object.keys(services).filter((name) => services[name].volumes?.some((each) => /^check:/.test(each)));
    expect(isDeepStrictEqual(sharing.sort(), ['gateway', 'node1']), 'others reach the socket');
    expect(!/proxy_pass http:(?!\/\/sidecar\/)/.test(gateway) && !/listen 8443 (?!ssl)/.test(gateway), 'the gateway has a hop without TLS');
    expect(read('gateways/nginx/tls.conf').includes('proxy_ssl_verify on;'), 'the gateway believes everybody');
    expect(read('backend/tls.conf').includes('ssl_verify_client on;'), 'the backend answers everybody');
    const [{ scheme, tls_config }] = parse(read('prometheus/prometheus.yml')).scrape_configs;
    expect(scheme === 'https' && tls_config.insecure_skip_verify !== true, 'Prometheus believes everybody');
  },
};

const read = (name) => readFileSync(join(process.env.CHATELAINE_SOURCE, 'docker', name), 'utf8');

function complaints(configuration, readFile) {
  const found = [];
  LINTS[configuration](readFile, (condition, words) => condition || found.push(words));
  return found;
}

for (const configuration of Object.keys(LINTS)) {
  test(`${configuration} keeps the rules`, () => assert.deepEqual(complaints(configuration, read), []));
}

for (const [configuration, file, right, wrong, words] of BROKEN) {
  test(`${configuration}: ${words}`, () => {
    const broken = (name) => (name === file ? read(name).replace(right, wrong) : read(name));
    assert.notEqual(broken(file), read(file), `${file} has no ${right}`);
    const found = complaints(configuration, broken);
    assert.ok(found.includes(words), `it was told: ${found.join(', ')}`);
  });
}
