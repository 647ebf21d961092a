// What gateways in Kubernetes need to ask: the files fit the schemas of their custom resources, and keep the rules that
// docker/gateways keeps. Then copies with one mistake each: every mistake must be told.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { parse, SOURCE } from './helm.js';
import { wrongs } from './schema.js';

const file = (path) => readFileSync(join(SOURCE, 'docker', path), 'utf8');
const lower = (names) => names.map((name) => name.toLowerCase());
const TOLD = ['account', 'principal', 'kind', 'mode', 'role', 'scopes', 'billable'].map((name) => `x-auth-${name}`);
const ASKED = ['cookie', 'origin', 'access-control-request-method', 'x-csrf-token', 'x-forwarded-for'];
const SECRET = ['authorization', 'cookie'];
// Names that are removed from requests, as docker/gateways/envoy has them: its own lint holds those.
const REMOVED = [...file('gateways/envoy/envoy.yaml').matchAll(/- remove: (\S+)/g)].map((match) => match[1]);
// The first parts of the contract's paths. Gateways route by them; the probes are for balancers alone.
const FOLDER = /^(\/v1\/console\/[^/]+|\/v1\/[^/]+|\/\.well-known)/;
const CONTRACT = JSON.parse(readFileSync(join(SOURCE, 'src/api/openapi.json'), 'utf8'));
const OWN = [...new Set(Object.keys(CONTRACT.paths).flatMap((path) => path.match(FOLDER)?.[0] ?? [])), '/console', '/docs'];
const CHECKS = { name: 'chatelaine-internal', namespace: 'chatelaine', port: 8081 };

const one = (objects, kind, name = undefined) => {
    const found = objects.filter((each) => each.kind === kind && (!name || each.metadata.name === name));
    assert.equal(found.length, 1, `not one ${kind} ${name ?? ''}`);
    return found[0].spec ?? found[0].data;
};
const equalSets = (a, b) => isDeepStrictEqual([...a].sort(), [...b].sort());

/** What a rule of Traefik asks for besides the host. */
const conditions = (rule) =>
    [...rule.matchAll(/\w+\(`[^`]*`(?:, `[^`]*`)?\)/g)].map(String).filter((each) => !each.startsWith('Host('));

/** What gateways do to speak TLS with what the chart makes by default. */
const SERVER_NAMES = ['chatelaine', 'chatelaine-internal'].map((name) => `${name}.chatelaine.svc`);
const CLIENT_SECRET = 'chatelaine-gateway-tls';

const LINTS = {
    sidecar(objects, expect) {
        const { securityContext, containers, volumes } = one(objects, 'Deployment').template.spec;
        const named = (list, name) => list.find((each) => each.name === name);
        const [nginx, node] = ['nginx', 'node'].map((name) => named(containers, name));
        const socket = named(node.env, 'CHATELAINE_CHECK_SOCKET').value;
        expect(file('gateways/nginx/nginx.conf').includes(`server unix:${socket} `), 'nginx asks another socket');
        for (const { name, volumeMounts } of containers) {
            const mounted = volumeMounts.find(({ mountPath }) => socket.startsWith(`${mountPath}/`));
            expect(mounted && !mounted.readOnly, `${name} does not have the socket's folder`);
            expect(named(volumes, mounted?.name ?? 'check').emptyDir, "the socket's folder is not the Pod's own");
        }
        expect(securityContext.fsGroup === node.securityContext.runAsGroup, 'nginx is not in the group of the socket');
        const secrets = ['master-key', 'redis', 'internal-tls'];
        for (const { name } of nginx.volumeMounts) expect(!secrets.includes(name), `nginx can read ${name}`);
        for (const name of secrets)
            expect(
                named(volumes, name).secret.defaultMode === 0o400 && named(node.volumeMounts, name)?.readOnly,
                `${name} is not the node's alone`,
            );
        const { name: clientCa } = named(node.volumeMounts, 'internal-client-ca') ?? {};
        const asks = named(node.env, 'CHATELAINE_INTERNAL_CLIENT_CA')?.value === '/etc/chatelaine/internal-client-ca/ca.crt';
        expect(asks && clientCa && named(volumes, clientCa).secret.items.length === 1, 'anybody who reaches it is answered');
        expect(!node.readinessProbe, 'a node that waits takes the gateway out of its Service');
        const open = one(objects, 'NetworkPolicy').ingress.filter(({ from }) => !from);
        const ports = open.flatMap((rule) => rule.ports.map(({ port }) => port));
        expect(isDeepStrictEqual(ports, ['https']), 'anybody reaches the internal listener');
    },
    'envoy-gateway'(objects, expect) {
        const clients = one(objects, 'ClientTrafficPolicy');
        expect(clients.path.escapedSlashesAction === 'RejectRequest', 'escaped slashes pass');
        expect(clients.path.disableMergeSlashes === true, 'slashes are merged');
        expect(clients.headers.withUnderscoresAction === 'DropHeader', 'names with underscores pass');
        const matches = clients.headers.earlyRequestHeaders.removeOnMatch;
        const isRemoved = (header) =>
            matches.some(({ type, value }) => (type === 'Prefix' ? header.startsWith(value) : header === value));
        for (const name of [...REMOVED, ...TOLD, 'x-auth-whatever']) expect(isRemoved(name), `${name} passes`);

        const own = one(objects, 'HTTPRoute', 'chatelaine');
        const paths = own.rules.flatMap(({ matches: each }) => each.map(({ path }) => path));
        const prefixes = paths.filter(({ type }) => type === 'PathPrefix').map(({ value }) => value);
        expect(equalSets(prefixes, OWN), 'other paths than the own ones lead to the nodes');
        expect(
            paths.some(({ type, value }) => type === 'Exact' && value === '/openapi.json'),
            'no /openapi.json',
        );
        const routes = objects.filter(({ kind, metadata }) => kind === 'HTTPRoute' && metadata.name !== 'chatelaine');
        const { targetRefs, extAuth } = one(objects, 'SecurityPolicy');
        for (const { metadata, spec } of routes) {
            const isTarget = targetRefs.some(({ kind, name }) => kind === 'HTTPRoute' && name === metadata.name);
            expect(isTarget, `${metadata.name} is not checked`);
            for (const rule of spec.rules) {
                const removed = lower(
                    rule.filters.flatMap(({ requestHeaderModifier }) => requestHeaderModifier?.remove ?? []),
                );
                for (const name of SECRET) expect(removed.includes(name), `${name} passes`);
                expect(!rule.filters.some(({ type }) => type === 'URLRewrite'), 'a path is rewritten after the check');
            }
        }
        expect(extAuth.failOpen === false, 'without an answer requests pass');
        expect(extAuth.http.path === '/check/ext-authz', "another prefix than the node's");
        expect(isDeepStrictEqual(extAuth.http.backendRefs, [CHECKS]), 'checks go elsewhere');
        for (const name of ASKED) expect(extAuth.headersToExtAuth.includes(name), `the node is not told ${name}`);
        for (const name of TOLD) expect(extAuth.http.headersToBackend.includes(name), `${name} is not set`);
        expect(extAuth.http.backendSettings.retry.retryOn.httpStatusCodes.includes(503), 'no second node is asked');
        const backend = one(objects, 'BackendTrafficPolicy');
        expect(backend.timeout.http.maxStreamDuration !== undefined, 'a WebSocket has no end');
        expect(backend.httpUpgrade === undefined, 'another upgrade passes');
        const policies = objects.filter(({ kind }) => kind === 'BackendTLSPolicy').map(({ spec }) => spec);
        for (const name of SERVER_NAMES) {
            const policy = policies.find(({ validation }) => validation.hostname === name);
            expect(`${policy?.targetRefs[0].name}.chatelaine.svc` === name, `${name} is asked in clear text`);
        }
        const shown = one(objects, 'EnvoyProxy').backendTLS?.clientCertificateRef.name;
        expect(shown === CLIENT_SECRET, 'no client certificate is shown');
        const grant = one(objects, 'ReferenceGrant');
        expect(
            equalSets(
                grant.from.map(({ kind }) => kind),
                ['HTTPRoute', 'SecurityPolicy'],
            ),
            'the nodes are out of reach',
        );
        const logged = one(objects, 'EnvoyProxy').telemetry.accessLog.settings.map(({ format }) =>
            Object.values(format.json),
        );
        expect(!/PATH|REQ\((?!:METHOD)/.test(logged.join()), 'targets are logged');
    },

    istio(objects, expect, mesh) {
        const [own, backend] = one(objects, 'VirtualService').http;
        const uris = own.match.map(({ uri }) => uri);
        const routed = uris.map(({ exact, prefix }) => exact ?? `${prefix}*`);
        const policy = one(objects, 'AuthorizationPolicy');
        const unchecked = policy.rules[0].to[0].operation.notPaths;
        expect(equalSets(routed, unchecked), 'what is not checked is not what leads to the nodes');
        expect(
            equalSets(routed, [...OWN.flatMap((path) => [path, `${path}/*`]), '/openapi.json']),
            'other paths are unchecked',
        );
        expect(policy.action === 'CUSTOM' && policy.rules.length === 1, 'not everything else is checked');
        expect(own.route[0].destination.host.startsWith('chatelaine.'), 'own routes lead elsewhere');
        for (const name of SECRET) expect(backend.headers.request.remove.includes(name), `${name} passes`);
        expect(!backend.rewrite, 'a path is rewritten after the check');

        const tls = objects.filter(({ kind }) => kind === 'DestinationRule').map(({ spec }) => spec.trafficPolicy.tls);
        for (const name of SERVER_NAMES) {
            const { mode, credentialName, subjectAltNames } = tls.find((each) => each?.sni === name) ?? {};
            expect(isDeepStrictEqual(subjectAltNames, [name]), `${name} is asked in clear text`);
            const wanted = name.startsWith('chatelaine-internal.') ? 'MUTUAL' : 'SIMPLE';
            expect(mode === wanted && credentialName === CLIENT_SECRET, `${name}: no client certificate is shown`);
        }

        const { configPatches, workloadSelector } = one(objects, 'EnvoyFilter');
        expect(isDeepStrictEqual(workloadSelector.labels, policy.selector.matchLabels), 'another gateway is meant');
        const [manager, mutation] = configPatches.map(({ patch }) => patch);
        expect(mutation.operation === 'INSERT_FIRST', 'headers are removed too late');
        const removed = mutation.value.typed_config.mutations.request_mutations.map(({ remove }) => remove);
        for (const name of REMOVED) expect(removed.includes(name), `${name} passes`);
        const config = manager.value.typed_config;
        const action = config.common_http_protocol_options.headers_with_underscores_action;
        expect(action === 'DROP_HEADER', 'names with underscores pass');
        expect(config.path_with_escaped_slashes_action === 'REJECT_REQUEST', 'escaped slashes pass');
        expect(
            one(objects, 'Telemetry').accessLogging.every(({ disabled }) => disabled),
            'targets are logged',
        );

        const [provider] = mesh.meshConfig.extensionProviders;
        const { envoyExtAuthzHttp: check } = provider;
        expect(provider.name === policy.provider.name, 'another provider');
        expect(check.failOpen === false && check.statusOnError === '503', 'without an answer requests pass');
        expect(check.pathPrefix === '/check/ext-authz', "another prefix than the node's");
        expect(
            check.service === 'chatelaine-internal.chatelaine.svc.cluster.local' && check.port === 8081,
            'checks go elsewhere',
        );
        for (const name of [...ASKED, 'authorization'])
            expect(check.includeRequestHeadersInCheck.includes(name), `the node is not told ${name}`);
        for (const name of TOLD) expect(check.headersToUpstreamOnAllow.includes(name), `${name} is not set`);
        expect(mesh.meshConfig.pathNormalization.normalization !== 'NONE', 'paths are not normalized');
    },

    traefik(objects, expect) {
        const plain = parse(file('gateways/traefik/dynamic.yml'))[0].http;
        const used = objects.filter(({ kind }) => kind === 'Middleware');
        expect(
            equalSets(
                used.map(({ metadata }) => metadata.name),
                Object.keys(plain.middlewares),
            ),
            'other middlewares',
        );
        for (const { metadata, spec } of used)
            expect(isDeepStrictEqual(spec, plain.middlewares[metadata.name]), `${metadata.name} differs`);
        const { routes } = one(objects, 'IngressRoute', 'api');
        const expected = { 20: plain.routers.own, 15: plain.routers.websockets, 10: plain.routers.backend };
        for (const { match, priority, middlewares = [], services } of routes) {
            const like = expected[priority] ?? {};
            const names = middlewares.map(({ name }) => name);
            expect(isDeepStrictEqual(names, like.middlewares ?? []), `priority ${priority} has other middlewares`);
            expect(
                (services[0].name === 'chatelaine') === (like.service === 'nodes'),
                `priority ${priority} leads elsewhere`,
            );
            const wanted = like === plain.routers.backend ? [] : conditions(like.rule ?? '');
            expect(isDeepStrictEqual(conditions(match), wanted), `priority ${priority} has another rule`);
        }
        const checks = one(objects, 'IngressRoute', 'chatelaine-checks');
        expect(isDeepStrictEqual(checks.entryPoints, ['checks']), 'clients can ask');
        const [{ match, services }] = checks.routes;
        const { port } = CHECKS;
        expect(
            match === plain.routers.checks.rule && services[0].name === CHECKS.name && services[0].port === port,
            'checks go elsewhere',
        );
        const transports = objects
            .filter(({ kind }) => kind === 'ServersTransport')
            .map(({ metadata }) => metadata.name);
        const nodes = [...services, ...routes.flatMap((each) => each.services)].filter((each) => [8080, 8081].includes(each.port));
        for (const { name, scheme, serversTransport } of nodes.filter((each) => each.name.startsWith('chatelaine'))) {
            const { serverName, certificatesSecrets } = serversTransport ? one(objects, 'ServersTransport', serversTransport) : {};
            expect(scheme === 'https' && serverName === `${name}.chatelaine.svc`, `${name} is asked in clear text`);
            if (name === CHECKS.name) expect(certificatesSecrets?.[0] === CLIENT_SECRET, 'no client certificate is shown');
        }
        for (const { serversTransport } of [...services, ...routes.flatMap((each) => each.services)])
            expect(!serversTransport || transports.includes(serversTransport), `no transport ${serversTransport}`);
    },

    'ingress-nginx'(objects, expect) {
        const ingress = (name) => objects.find(({ kind, metadata }) => kind === 'Ingress' && metadata.name === name);
        const pathsOf = ({ spec }) => spec.rules.flatMap(({ http }) => http.paths);
        const own = pathsOf(ingress('chatelaine'));
        const prefixes = own.filter(({ pathType }) => pathType === 'Prefix').map(({ path }) => path);
        expect(equalSets(prefixes, OWN), 'other paths than the own ones lead to the nodes');
        const annotations = Object.fromEntries(
            Object.entries(ingress('patients').metadata.annotations).map(([name, value]) => [
                name.split('/')[1],
                value,
            ]),
        );
        const url = 'http://chatelaine-internal.chatelaine.svc.cluster.local:8081/check/auth-request';
        expect(annotations['auth-url'] === url, 'checks go elsewhere');
        const headers = one(objects, 'ConfigMap', 'chatelaine-check');
        expect(headers['X-Original-URI'] === '$request_uri', 'another path is checked than forwarded');
        const told = lower(annotations['auth-response-headers'].trim().split(','));
        for (const name of TOLD) expect(told.includes(name), `${name} is not set`);
        const emptied = lower(
            [...annotations['configuration-snippet'].matchAll(/proxy_set_header (\S+) "";/g)].map((each) => each[1]),
        );
        // Set by ingress-nginx itself; X-Original-Forwarded-For is the client's, which the file says.
        const its = ['x-real-ip', 'x-forwarded-host', 'x-forwarded-port', 'x-forwarded-scheme', 'x-scheme', 'x-original-forwarded-for'];
        const elsewhere = [...TOLD, ...its, 'x-auth-error'];
        for (const name of [...SECRET, ...REMOVED.filter((each) => !elsewhere.includes(each))])
            expect(emptied.includes(name), `${name} passes`);
        for (const name of ['rewrite-target', 'use-regex', 'auth-cache-key'])
            expect(annotations[name] === undefined, `${name} is set`);
    },
};

const MISTAKES = [
    ['envoy-gateway', 'hostname: chatelaine-internal.', 'hostname: internal.', 'chatelaine-internal.chatelaine.svc is asked in clear text'],
    ['envoy-gateway', 'clientCertificateRef: {group: "", kind: Secret, name: chatelaine-gateway-tls', 'clientCertificateRef: {group: "", kind: Secret, name: other', 'no client certificate is shown'],
    ['istio', 'mode: MUTUAL', 'mode: SIMPLE', 'chatelaine-internal.chatelaine.svc: no client certificate is shown'],
    ['istio', 'sni: chatelaine.chatelaine.svc', 'sni: nodes', 'chatelaine.chatelaine.svc is asked in clear text'],
    ['traefik', 'port: 8081, scheme: https', 'port: 8081', 'chatelaine-internal is asked in clear text'],
    ['traefik', '  certificatesSecrets: [chatelaine-gateway-tls]\n', '', 'no client certificate is shown'],
    ['sidecar', 'CHATELAINE_INTERNAL_CLIENT_CA', 'CHATELAINE_INTERNAL_CLIENT', 'anybody who reaches it is answered'],
    ['envoy-gateway', 'type: Prefix, value: x-auth-', 'type: Exact, value: x-auth-', 'x-auth-account passes'],
    [
        'envoy-gateway',
        'type: Exact, value: x-original-url',
        'type: Exact, value: x-original-ur',
        'x-original-url passes',
    ],
    ['envoy-gateway', 'DropHeader', 'Allow', 'names with underscores pass'],
    ['envoy-gateway', 'RejectRequest', 'KeepUnchanged', 'escaped slashes pass'],
    [
        'envoy-gateway',
        'kind: HTTPRoute, name: patients',
        'kind: HTTPRoute, name: chatelaine',
        'patients is not checked',
    ],
    ['envoy-gateway', 'failOpen: false', 'failOpen: true', 'without an answer requests pass'],
    [
        'envoy-gateway',
        'value: /v1/console/usage',
        'value: /v1/console',
        'other paths than the own ones lead to the nodes',
    ],
    ['envoy-gateway', 'remove: [authorization, cookie]', 'remove: [authorization]', 'cookie passes'],
    ['envoy-gateway', 'path: /check/ext-authz', 'path: /check/forward-auth', "another prefix than the node's"],
    ['envoy-gateway', 'headersToExtAuth: [cookie, ', 'headersToExtAuth: [', 'the node is not told cookie'],
    ['envoy-gateway', '        [x-auth-account, ', '        [', 'x-auth-account is not set'],
    ['envoy-gateway', 'httpStatusCodes: [503]', 'httpStatusCodes: [500]', 'no second node is asked'],
    ['envoy-gateway', 'maxStreamDuration: 900s', 'requestTimeout: 900s', 'a WebSocket has no end'],
    ['envoy-gateway', '%REQ(:METHOD)%', '%REQ(:PATH)%', 'targets are logged'],
    [
        'istio',
        '              - /console/*',
        '              - /console*',
        'what is not checked is not what leads to the nodes',
    ],
    ['istio', 'INSERT_FIRST', 'INSERT_BEFORE', 'headers are removed too late'],
    ['istio', '- remove: x-auth-admin', '- remove: x-auth-admins', 'x-auth-admin passes'],
    ['istio', 'DROP_HEADER', 'ALLOW', 'names with underscores pass'],
    ['istio', 'remove: [authorization, cookie]', 'remove: [cookie]', 'authorization passes'],
    ['istio', 'action: CUSTOM', 'action: ALLOW', 'not everything else is checked'],
    ['istio', 'disabled: true', 'disabled: false', 'targets are logged'],
    [
        'traefik',
        '{name: check}, {name: keep}, {name: plain}',
        '{name: keep}, {name: plain}',
        'priority 10 has other middlewares',
    ],
    ['traefik', '"^X-Auth-|_"', '"^X-Auth-"', 'check differs'],
    ['traefik', '|usage)(/|$)', '|usage)', 'priority 20 has another rule'],
    ['traefik', 'entryPoints: [checks]', 'entryPoints: [websecure]', 'clients can ask'],
    ['sidecar', 'value: /run/chatelaine/check.sock', 'value: /run/chatelaine/node.sock', 'nginx asks another socket'],
    ['sidecar', 'check, mountPath: /run/chatelaine}', 'check, mountPath: /run/x}', "nginx does not have the socket's folder"],
    ['sidecar', 'emptyDir: {medium: Memory,', 'hostPath: {path: /run,', "the socket's folder is not the Pod's own"],
    ['sidecar', 'fsGroup: 10001', 'fsGroup: 101', 'nginx is not in the group of the socket'],
    ['sidecar', '{name: tmp, mountPath: /tmp}', '{name: redis, mountPath: /tmp}', 'nginx can read redis'],
    ['sidecar', 'chatelaine-redis, defaultMode: 256', 'chatelaine-redis, defaultMode: 292', "redis is not the node's alone"],
    [
        'sidecar',
        '          livenessProbe:',
        '          readinessProbe:',
        'a node that waits takes the gateway out of its Service',
    ],
    ['sidecar', '[{port: https, protocol: TCP}]', '[{port: internal}]', 'anybody reaches the internal listener'],
    ['ingress-nginx', 'X-Original-URI: $request_uri', 'X-Original-URI: $uri', 'another path is checked than forwarded'],
    ['ingress-nginx', '/check/auth-request', '/check/forward-auth', 'checks go elsewhere'],
    ['ingress-nginx', 'proxy_set_header Cookie "";', '', 'cookie passes'],
    ['ingress-nginx', 'proxy_set_header X-Original-URL "";', '', 'x-original-url passes'],
    ['ingress-nginx', '      X-Auth-Account,', '      ', 'x-auth-account is not set'],
];

const mesh = parse(file('kubernetes/gateways/istio-mesh.yaml'))[0];
function complaints(name, text) {
    const found = [];
    LINTS[name](parse(text), (condition, words) => condition || found.push(words), mesh);
    return found;
}

for (const name of Object.keys(LINTS)) {
    const text = file(`kubernetes/gateways/${name}.yaml`);
    test(`${name} fits the schemas`, async () => assert.deepEqual(await wrongs(parse(text)), []));
    test(`${name} keeps the rules`, () => assert.deepEqual(complaints(name, text), []));
}
test('the schemas tell mistakes', async () => {
    const mistakes = [
        ['envoy-gateway', 'failOpen:', 'failopen:', /failopen/],
        ['envoy-gateway', 'port: 8081', 'port: many', /port|many/],
        ['istio', 'baseEjectionTime:', 'ejectionTime:', /ejectionTime/],
        ['istio', 'action: CUSTOM', 'action: ASK', /action|ASK/],
        ['traefik', 'trustForwardHeader:', 'trustForwardHeaders:', /trustForwardHeaders/],
        ['ingress-nginx', 'pathType: Prefix', 'path_type: Prefix', /pathType|path_type/],
    ];
    for (const [name, right, wrong, words] of mistakes) {
        const broken = file(`kubernetes/gateways/${name}.yaml`).replace(right, wrong);
        assert.match((await wrongs(parse(broken))).join('\n'), words);
    }
});
for (const [name, right, wrong, words] of MISTAKES) {
    test(`${name}: ${words}`, () => {
        const text = file(`kubernetes/gateways/${name}.yaml`);
        const broken = text.replace(right, wrong);
        assert.notEqual(broken, text, `${name} has no ${right}`);
        const found = complaints(name, broken);
        assert.ok(found.includes(words), `it was told: ${found.join(', ')}`);
    });
}
