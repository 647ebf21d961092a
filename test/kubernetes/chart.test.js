// The chart, rendered by the real Helm: its objects fit Kubernetes' schemas and each other, the manifests are what it
// renders, and bad values are refused.
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { HELMS, parse, render, renderNotes, SOURCE } from './helm.js';
import { byKind, nodeOf, podOf, rendered, settingsOf } from './objects.js';
import { NEWEST, OLDEST, wrongs } from './schema.js';
import { BAD, BARE, FULL, LEAST, OPENSHIFT, PLAIN } from './values.js';

const MANIFESTS = join(SOURCE, 'docker/kubernetes/manifests');
const read = (path) => readFileSync(path, 'utf8');
test('Helm 3 and 4 render the same, for the oldest Kubernetes and a new one', () => {
    for (const values of [LEAST, FULL, PLAIN, OPENSHIFT]) {
        const expected = rendered(values);
        for (const helm of HELMS)
            for (const kubernetes of ['1.27.0', '1.36.0'])
                assert.deepEqual(sorted(rendered(values, helm, kubernetes)), sorted(expected));
    }
    assert.match(render('helm-4', LEAST, '1.26.0').error, /kubeVersion/);
});
// The chart's own keys are others each time.
const withoutKeys = (object) =>
    object.kind === 'Secret'
        ? { ...object, data: Object.keys(object.data), metadata: { ...object.metadata, annotations: undefined } }
        : object;
const sorted = (objects) => objects.map(withoutKeys).sort(order);
const order = (a, b) => `${a.kind} ${a.metadata.name}`.localeCompare(`${b.kind} ${b.metadata.name}`);

for (const kubernetes of [OLDEST, NEWEST]) {
    const all = { least: LEAST, full: FULL, plain: PLAIN, bare: BARE, openshift: OPENSHIFT };
    for (const [name, values] of Object.entries(all)) {
        test(`what is rendered with the ${name} values fits the schemas of ${kubernetes}`, async () => {
            assert.deepEqual(await wrongs(rendered(values), kubernetes), []);
        });
    }
}

test('the schemas tell mistakes', async () => {
    const mistakes = [
        [(pod) => (pod.spec.containers[0].readynessProbe = {}), /readynessProbe/],
        [(pod) => (pod.spec.containers[0].startupProbe.httpGet.path = 5), /path/],
        [(pod) => delete pod.spec.containers, /containers/],
        [(pod) => (pod.spec.volumes[0].secret.secret = 'x'), /secret/],
    ];
    for (const [break_, words] of mistakes) {
        const objects = rendered(LEAST);
        break_(podOf(objects));
        assert.match((await wrongs(objects)).join('\n'), words);
    }
    const newer = rendered(LEAST);
    nodeOf(newer).lifecycle.preStop = { sleep: { seconds: 5 } };
    assert.match((await wrongs(newer, OLDEST)).join('\n'), /sleep/);
});

test('the manifests are what the chart renders', () => {
    const folder = mkdtempSync(join(tmpdir(), 'chatelaine-manifests.'));
    try {
        const { status, stderr } = spawnSync(join(SOURCE, 'scripts/render-manifests'), [folder], { encoding: 'utf8' });
        assert.equal(status, 0, stderr);
        const kept = readdirSync(MANIFESTS).filter((name) => !['values.yaml', 'README.md'].includes(name));
        assert.deepEqual(kept.sort(), readdirSync(folder).sort());
        for (const name of kept)
            assert.equal(
                read(join(MANIFESTS, name)),
                read(join(folder, name)),
                `${name}: run scripts/render-manifests`,
            );
    } finally {
        rmSync(folder, { recursive: true });
    }
    assert.deepEqual(parse(read(join(MANIFESTS, 'values.yaml')))[0], PLAIN);
});

test('bad values are refused, with the reason', () => {
    for (const helm of HELMS) {
        for (const [values, words] of BAD) {
            const { error } = render(helm, { ...LEAST, ...values });
            assert.ok(error, `${helm} renders ${JSON.stringify(values)}`);
            assert.ok(error.includes(words), `${helm}, ${JSON.stringify(values)}: ${error}`);
        }
    }
});

// One node per Pod; a read-only root; the address of Redis is a secret; the kubelet's probes send no PROXY header; a
// socket is for a gateway in the same Pod (gateways/sidecar.yaml).
const WITHHELD = [
    'check-socket', 'table', 'table-keys', 'table-deployment',
    'reuse-port', 'ready-file', 'redis', 'internal-proxy-protocol', 'unsafe-redis',
    'settings', // a Pod's settings are its environment
];

test("settings are the node's, all of them, and numbers are written out", () => {
    const help = spawnSync(process.env.CHATELAINE_BINARY, ['serve', '--help'], { encoding: 'utf8' }).stdout;
    const known = new Set([...help.matchAll(/^ {2}(?:-\w, )?--([a-z0-9-]+)/gm)].map((match) => match[1]));
    assert.ok(known.has('lease-ms'));
    const { settings } = JSON.parse(read(join(SOURCE, 'docker/kubernetes/chart/values.schema.json'))).properties;
    for (const name of Object.keys(settings.properties)) assert.ok(known.has(name), `${name} is no setting`);
    const optionOf = (name) => name.replace('CHATELAINE_', '').toLowerCase().replaceAll('_', '-');
    const set = Object.keys(settingsOf(rendered(FULL))).map(optionOf);
    for (const name of set) assert.ok(known.has(name), `${name} is no setting`);
    const rest = [...known].filter((name) => !set.includes(name) && !Object.hasOwn(settings.properties, name));
    assert.deepEqual(rest.sort(), WITHHELD.sort(), 'let the chart set it, or say here why not');
    const values = settingsOf(rendered(FULL));
    assert.equal(values.CHATELAINE_CACHE_BYTES, '268435456');
    assert.equal(values.CHATELAINE_PROXY_PROTOCOL, 'true');
    assert.equal(values.CHATELAINE_TRUSTED_PROXIES, '10.244.0.0/16,fd00::/8');
    assert.equal(values.CHATELAINE_MIN_REPLICAS, '1');
});

test('the Pod is shut in', () => {
    for (const values of [LEAST, FULL]) {
        const { spec } = podOf(rendered(values));
        assert.equal(spec.automountServiceAccountToken, false);
        assert.equal(byKind(rendered(values), 'ServiceAccount').automountServiceAccountToken, false);
        assert.equal(spec.enableServiceLinks, false);
        const { runAsNonRoot, runAsUser, fsGroup, seccompProfile } = spec.securityContext;
        assert.deepEqual(
            [runAsNonRoot, runAsUser, fsGroup, seccompProfile.type],
            [true, 10001, 10001, 'RuntimeDefault'],
        );
        assert.match(read(join(SOURCE, 'docker/Dockerfile')), /USER 10001:10001/);
        assert.deepEqual(spec.containers.length, 1);
        assert.deepEqual(spec.containers[0].securityContext, {
            ...{ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
        });
        const { requests, limits } = spec.containers[0].resources;
        assert.equal(limits.cpu, undefined);
        assert.equal(requests.memory, limits.memory);
    }
});

test('secrets are files that only the node reads', () => {
    for (const values of [LEAST, FULL]) {
        const objects = rendered(values);
        const { spec } = podOf(objects);
        const { volumeMounts, env } = nodeOf(objects);
        const secrets = spec.volumes.filter(({ secret }) => secret);
        assert.ok(secrets.length >= 2);
        for (const { name, secret } of secrets) {
            assert.equal(secret.defaultMode, 0o400);
            const mount = volumeMounts.find((each) => each.name === name);
            assert.ok(mount.readOnly && !mount.subPath, `${name} is mounted otherwise`);
        }
        for (const { name, valueFrom, value } of env) {
            assert.equal(valueFrom?.secretKeyRef, undefined, `${name} is a secret in the environment`);
            // Every file of a setting is in a volume.
            if (!value?.startsWith('/')) continue;
            assert.ok(
                volumeMounts.some(({ mountPath }) => value.startsWith(`${mountPath}/`)),
                `${name} is nowhere`,
            );
        }
        for (const { name } of volumeMounts.filter((each) => each.name !== 'logs'))
            assert.ok(
                spec.volumes.some((each) => each.name === name),
                `${name} is nowhere`,
            );
        const claims = byKind(objects, 'StatefulSet').spec.volumeClaimTemplates;
        assert.equal(volumeMounts.length, spec.volumes.length + claims.length);
        // Master key and Redis' password never pass through Helm; the keys of the chart's own CAs are in no Pod.
        for (const { metadata, data } of objects.filter(({ kind }) => kind === 'Secret')) {
            assert.match(metadata.name, /-(ca|tls)$/);
            const { items } = secrets.find(({ secret }) => secret.secretName === metadata.name)?.secret ?? {};
            if (items) assert.deepEqual(items, [{ key: 'ca.crt', path: 'ca.crt' }]);
            else if (data['ca.key']) assert.ok(!secrets.some(({ secret }) => secret.secretName === metadata.name));
        }
    }
});

test('each node writes both logs to a volume of its own, unless told otherwise', () => {
    const logsOf = (values) => {
        const objects = rendered(values);
        const { CHATELAINE_AUDIT_LOG: audit, CHATELAINE_REVOCATION_LOG: revocations } = settingsOf(objects);
        const mount = nodeOf(objects).volumeMounts.find(({ name }) => name === 'logs');
        const [claim, ...others] = byKind(objects, 'StatefulSet').spec.volumeClaimTemplates ?? [];
        assert.equal(others.length, 0);
        return { audit, revocations, mount, claim };
    };
    for (const values of [LEAST, PLAIN, FULL]) {
        const { audit, revocations, mount, claim } = logsOf(values);
        assert.ok(audit.startsWith(`${mount.mountPath}/`) && revocations.startsWith(`${mount.mountPath}/`));
        assert.notEqual(audit, revocations);
        assert.ok(!mount.readOnly);
        assert.deepEqual([claim.metadata.name, claim.spec.accessModes], ['logs', ['ReadWriteOnce']]);
        const { size, storageClassName } = values.logs?.volume ?? { size: '10Gi' };
        assert.deepEqual([claim.spec.resources.requests.storage, claim.spec.storageClassName], [size, storageClassName]);
    }
    const one = logsOf({ ...LEAST, logs: { audit: false } });
    assert.ok(!one.audit && one.revocations && one.mount && one.claim);
    assert.deepEqual(logsOf(BARE), { audit: undefined, revocations: undefined, mount: undefined, claim: undefined });
});

const decode = (text) => Buffer.from(text, 'base64').toString();
const secretOf = (objects, name) => {
    const { data } = byKind(objects, 'Secret', name);
    return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, decode(value)]));
};
/** Whether OpenSSL, at its strictest, takes the certificate for this CA, name and side. */
function isTrusted(certificate, ca, purpose, name) {
    const folder = mkdtempSync(join(tmpdir(), 'chatelaine-certificates.'));
    try {
        writeFileSync(join(folder, 'ca.crt'), ca);
        writeFileSync(join(folder, 'tls.crt'), certificate);
        const named = name ? ['-verify_hostname', name] : [];
        const args = ['verify', '-x509_strict', '-purpose', purpose, ...named, '-CAfile', 'ca.crt', 'tls.crt'];
        return spawnSync('openssl', args, { cwd: folder }).status === 0;
    } finally {
        rmSync(folder, { recursive: true });
    }
}

const volumesOf = (objects) =>
    Object.fromEntries(podOf(objects).spec.volumes.map(({ name, secret }) => [name, secret?.secretName]));

test('both listeners speak TLS by default, and the internal one asks for a certificate', () => {
    for (const values of [LEAST, PLAIN, FULL]) {
        const settings = settingsOf(rendered(values));
        for (const name of ['TLS_CERT', 'TLS_KEY', 'INTERNAL_TLS_CERT', 'INTERNAL_TLS_KEY', 'INTERNAL_CLIENT_CA'])
            assert.ok(settings[`CHATELAINE_${name}`], name);
    }
    assert.ok(!Object.keys(settingsOf(rendered(BARE))).some((name) => /TLS|CLIENT_CA/.test(name)));
    // Secrets that are named win, one by one.
    const internalTls = { clientCaSecretName: 'ours' };
    for (const from of ['own', 'cert-manager']) {
        const objects = rendered({ ...LEAST, certificates: { from }, internalTls, tls: { secretName: 'site' } });
        const volumes = volumesOf(objects);
        assert.deepEqual(
            [volumes.tls, volumes['internal-tls'], volumes['internal-client-ca']],
            ['site', 'chatelaine-internal-tls', 'ours'],
        );
        assert.ok(!objects.some(({ metadata }) => /client-ca|gateway-tls|prometheus-tls|e-tls$/.test(metadata.name)));
    }
});

test("the chart's own certificates are for their names, and for one side each", () => {
    const objects = rendered(LEAST);
    const [server, client] = ['server', 'client'].map((side) => secretOf(objects, `chatelaine-${side}-ca`)['ca.crt']);
    for (const [name, host] of [
        ['chatelaine-tls', 'chatelaine.chatelaine.svc'],
        ['chatelaine-internal-tls', 'chatelaine-internal.chatelaine.svc.cluster.local'],
    ]) {
        const secret = secretOf(objects, name);
        assert.equal(secret['ca.crt'], server);
        assert.ok(isTrusted(secret['tls.crt'], server, 'sslserver', host));
        assert.ok(!isTrusted(secret['tls.crt'], server, 'sslserver', 'other.chatelaine.svc'));
        assert.ok(!isTrusted(secret['tls.crt'], client, 'sslclient'), `${name} opens the internal listener`);
    }
    for (const name of ['chatelaine-gateway-tls', 'chatelaine-prometheus-tls']) {
        const secret = secretOf(objects, name);
        assert.ok(isTrusted(secret['tls.crt'], client, 'sslclient'));
        assert.ok(!isTrusted(secret['tls.crt'], server, 'sslserver'), `${name} passes for a node`);
    }
    const { secretName, items } = podOf(objects).spec.volumes.find(({ name }) => name === 'internal-client-ca').secret;
    assert.deepEqual([secretName, items], ['chatelaine-client-ca', [{ key: 'ca.crt', path: 'ca.crt' }]]);
});

test('cert-manager makes the same Secrets as the chart', () => {
    const made = rendered(PLAIN).filter(({ kind }) => kind === 'Certificate');
    const own = rendered(LEAST).filter(({ kind }) => kind === 'Secret');
    assert.deepEqual(made.map(({ spec }) => spec.secretName).sort(), own.map(({ metadata }) => metadata.name).sort());
    const issuers = rendered(PLAIN).filter(({ kind }) => kind === 'Issuer');
    for (const { spec } of made) {
        const issuer = issuers.find(({ metadata }) => metadata.name === spec.issuerRef.name).spec;
        if (spec.isCA) assert.ok(issuer.selfSigned);
        else assert.match(issuer.ca.secretName, spec.usages.includes('server auth') ? /server-ca$/ : /client-ca$/);
        if (!spec.isCA) assert.equal(spec.usages.length, 2);
        assert.ok((spec.commonName ?? '').length <= 64);
    }
    const mounted = volumesOf(rendered(PLAIN));
    assert.deepEqual(mounted, volumesOf(rendered(LEAST)));
});

const TYPES = {
    v1: { Secret: 'secrets', ConfigMap: 'configmaps', Service: 'services', ServiceAccount: 'serviceaccounts' },
    'apps/v1': { StatefulSet: 'statefulsets', Deployment: 'deployments' },
    'networking.k8s.io/v1': { NetworkPolicy: 'networkpolicies' },
    'policy/v1': { PodDisruptionBudget: 'poddisruptionbudgets' },
};
const rootOf = (version) => (version === 'v1' ? '/api/v1' : `/apis/${version}`);

/** An API server that has these objects, for Helm's "lookup". */
function apiServer(objects) {
    const groups = Object.keys(TYPES)
        .filter((version) => version !== 'v1')
        .map((groupVersion) => ({ groupVersion, version: 'v1' }))
        .map((each) => ({ name: each.groupVersion.split('/')[0], versions: [each], preferredVersion: each }));
    const answers = {
        '/version': { major: '1', minor: '36', gitVersion: 'v1.36.0' },
        '/api': { kind: 'APIVersions', versions: ['v1'] },
        '/apis': { kind: 'APIGroupList', apiVersion: 'v1', groups },
    };
    for (const [groupVersion, names] of Object.entries(TYPES)) {
        const resources = Object.entries(names).map(([kind, name]) => ({
            ...{ kind, name, singularName: '', namespaced: true, verbs: ['get', 'list'] },
        }));
        answers[rootOf(groupVersion)] = { kind: 'APIResourceList', apiVersion: 'v1', groupVersion, resources };
    }
    for (const object of objects) {
        const { apiVersion, kind, metadata } = object;
        answers[`${rootOf(apiVersion)}/namespaces/chatelaine/${TYPES[apiVersion][kind]}/${metadata.name}`] = object;
    }
    const server = createServer((request, response) => {
        const answer = answers[request.url.split('?')[0]];
        response.writeHead(answer ? 200 : 404, { 'Content-Type': 'application/json' });
        response.end(JSON.stringify(answer ?? { kind: 'Status', apiVersion: 'v1', reason: 'NotFound', code: 404 }));
    });
    return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}

/** What "helm upgrade" makes of the values where the cluster has these objects. */
async function upgraded(objects, values = LEAST) {
    const server = await apiServer(objects);
    const folder = mkdtempSync(join(tmpdir(), 'chatelaine-upgrade.'));
    try {
        const config = join(folder, 'config');
        const cluster = { server: `http://127.0.0.1:${server.address().port}` };
        const contexts = [{ name: 'a', context: { cluster: 'a', user: 'a' } }];
        writeFileSync(
            config,
            JSON.stringify({ clusters: [{ name: 'a', cluster }], users: [{ name: 'a' }], contexts, 'current-context': 'a' }),
        );
        writeFileSync(join(folder, 'values.yaml'), JSON.stringify(values));
        const args = ['template', 'chatelaine', join(SOURCE, 'docker/kubernetes/chart'), '--namespace', 'chatelaine'];
        const { stdout } = await promisify(execFile)(
            join(SOURCE, 'build/helm/helm-4'),
            [...args, '--values', join(folder, 'values.yaml'), '--dry-run=server', '--is-upgrade', '--disable-openapi-validation'],
            { env: { ...process.env, KUBECONFIG: config }, maxBuffer: 1 << 24 },
        );
        return parse(stdout);
    } finally {
        server.close();
        server.closeAllConnections?.();
        rmSync(folder, { recursive: true });
    }
}

test("an upgrade keeps the chart's own certificates, and renews those older than a year", async () => {
    const first = await upgraded([]);
    const secrets = (objects) => objects.filter(({ kind }) => kind === 'Secret').sort(order);
    assert.deepEqual(secrets(await upgraded(first)), secrets(first));

    const aged = structuredClone(first);
    for (const { kind, metadata } of aged)
        if (kind === 'Secret' && metadata.annotations)
            metadata.annotations['chatelaine/made'] = String(Math.floor(Date.now() / 1000) - 366 * 86400);
    const renewed = await upgraded(aged);
    assert.deepEqual(podOf(renewed), podOf(first), 'nodes load a renewed certificate without another Pod');
    for (const name of ['chatelaine-server-ca', 'chatelaine-client-ca'])
        assert.deepEqual(secretOf(renewed, name), secretOf(first, name), `${name} is another one`);
    const { 'ca.crt': ca } = secretOf(first, 'chatelaine-server-ca');
    for (const name of ['chatelaine-tls', 'chatelaine-internal-tls']) {
        const [before, after] = [first, renewed].map((objects) => secretOf(objects, name));
        assert.notEqual(after['tls.crt'], before['tls.crt'], `${name} was not renewed`);
        assert.notEqual(after['tls.key'], before['tls.key']);
        assert.ok(isTrusted(after['tls.crt'], ca, 'sslserver', `${name.replace('-tls', '')}.chatelaine.svc`));
    }
    const lost = first.filter(({ metadata }) => metadata.name !== 'chatelaine-client-ca');
    const again = await upgraded(lost);
    assert.ok(
        isTrusted(
            secretOf(again, 'chatelaine-gateway-tls')['tls.crt'],
            secretOf(again, 'chatelaine-client-ca')['ca.crt'],
            'sslclient',
        ),
    );
});

test('an upgrade from nodes that speak clear text must say so', async () => {
    const old = [{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'chatelaine', namespace: 'chatelaine' } }];
    await assert.rejects(upgraded(old), /Set certificates\.from to none, tls\.clearText and internalTls\.clearText for this upgrade/);
    assert.ok((await upgraded(old, BARE)).length > 0);
});

/** What Helm says after an installation. */
const notesOf = (values) => {
    const { notes, error } = renderNotes(values);
    assert.equal(error, undefined);
    return notes;
};
test('the notes warn of each protection that is off, and of nothing else', () => {
    const all = { ...LEAST, trustedProxies: ['10.0.0.0/8'] };
    assert.doesNotMatch(notesOf(all), /WARNING/);
    assert.match(notesOf(all), /https:\/\/chatelaine-internal\.chatelaine\.svc:8081/);
    for (const [values, words] of [
        [{ trustedProxies: [] }, /trustedProxies is empty/],
        [{ logs: { audit: false } }, /logs\.audit is false/],
        [{ logs: { revocations: false } }, /logs\.revocations is false/],
        [{ logs: { toStdout: true, volume: { kind: 'emptyDir' } } }, /logs\.volume\.kind is emptyDir/],
        [
            { certificates: { from: 'none' }, tls: { clearText: true }, internalTls: { secretName: 'a', clientCaSecretName: 'b' } },
            /the public listener has no TLS/,
        ],
        [{ certificates: { from: 'none' }, tls: { secretName: 'a' }, internalTls: { secretName: 'b' } }, /no client certificate/],
    ]) {
        const notes = notesOf({ ...all, ...values });
        assert.match(notes, words);
        assert.equal(notes.match(/WARNING/g).length, 1, notes);
    }
    assert.equal(notesOf(BARE).match(/WARNING/g).length, 6);
});

test('a node has time to leave the Services and to drain', () => {
    for (const [values, drainMs] of [
        [LEAST, 20000],
        [FULL, 12500],
    ]) {
        const objects = rendered(values);
        const { terminationGracePeriodSeconds } = podOf(objects).spec;
        const stop = Number(nodeOf(objects).lifecycle.preStop.exec.command[1]);
        assert.equal(settingsOf(objects).CHATELAINE_DRAIN_MS, String(drainMs));
        assert.ok(stop >= 5);
        assert.ok(terminationGracePeriodSeconds * 1000 >= stop * 1000 + drainMs + 5000);
    }
});

test('probes ask the internal listener, over TLS if it speaks TLS', () => {
    for (const [values, scheme] of [
        [LEAST, 'HTTPS'],
        [PLAIN, 'HTTPS'],
        [FULL, 'HTTPS'],
        [BARE, 'HTTP'],
    ]) {
        const node = nodeOf(rendered(values));
        const paths = ['startupProbe', 'livenessProbe', 'readinessProbe'].map((name) => node[name].httpGet);
        assert.deepEqual(
            paths.map(({ path }) => path),
            ['/livez', '/livez', '/readyz'],
        );
        for (const probe of paths) assert.deepEqual([probe.port, probe.scheme], ['internal', scheme]);
    }
});

const selects = (selector, labels) => Object.entries(selector).every(([name, value]) => labels[name] === value);

test('selectors select the Pods, and Services lead to ports that they have', () => {
    for (const values of [LEAST, FULL]) {
        const objects = rendered(values);
        const { labels } = podOf(objects).metadata;
        const { selector, template, serviceName } = byKind(objects, 'StatefulSet').spec;
        assert.equal(byKind(objects, 'Service', serviceName).metadata.name, serviceName);
        assert.ok(selects(selector.matchLabels, labels));
        assert.ok(selects(byKind(objects, 'PodDisruptionBudget').spec.selector.matchLabels, labels));
        assert.ok(selects(byKind(objects, 'NetworkPolicy').spec.podSelector.matchLabels, labels));
        for (const each of template.spec.topologySpreadConstraints)
            assert.ok(selects(each.labelSelector.matchLabels, labels));
        const ports = nodeOf(objects).ports.map(({ name }) => name);
        for (const service of objects.filter(({ kind }) => kind === 'Service')) {
            assert.ok(selects(service.spec.selector, labels));
            for (const { targetPort } of service.spec.ports) assert.ok(ports.includes(targetPort));
        }
        assert.equal(byKind(objects, 'Service', 'chatelaine-internal').spec.type, 'ClusterIP');
    }
    const objects = rendered(FULL);
    const { spec } = byKind(objects, 'ServiceMonitor');
    const [service, ...others] = objects.filter(
        ({ kind, metadata }) => kind === 'Service' && selects(spec.selector.matchLabels, metadata.labels),
    );
    assert.deepEqual([service.metadata.name, others.length], ['chatelaine-internal', 0]);
    assert.equal(service.spec.ports[0].name, spec.endpoints[0].port);
    assert.equal(service.metadata.labels[spec.jobLabel], 'chatelaine');
    assert.equal(spec.endpoints[0].scheme, 'https');
    const { tlsConfig } = byKind(rendered({ ...LEAST, serviceMonitor: { enabled: true } }), 'ServiceMonitor').spec.endpoints[0];
    const made = rendered(LEAST).filter(({ kind }) => kind === 'Secret');
    for (const { name, key } of [tlsConfig.ca.secret, tlsConfig.cert.secret, tlsConfig.keySecret])
        assert.ok(made.find(({ metadata }) => metadata.name === name).data[key], `${name} has no ${key}`);
    const server = secretOf(rendered(LEAST), tlsConfig.ca.secret.name);
    assert.ok(isTrusted(server['tls.crt'], server['ca.crt'], 'sslserver', tlsConfig.serverName));
});

test('only gateways and Prometheus reach the internal listener', () => {
    for (const values of [LEAST, FULL, OPENSHIFT]) {
        const { ingress, egress, policyTypes } = byKind(rendered(values), 'NetworkPolicy').spec;
        assert.deepEqual(policyTypes, ['Ingress', 'Egress']);
        const namespaces = (rule) =>
            rule.from.map((peer) => peer.namespaceSelector?.matchLabels['kubernetes.io/metadata.name']);
        const [internal, ...others] = ingress.filter(({ ports }) => ports.some(({ port }) => port === 'internal'));
        assert.equal(others.length, 0);
        assert.deepEqual(internal.ports, [{ port: 'internal', protocol: 'TCP' }]);
        assert.deepEqual(namespaces(internal), ['gateway', 'monitoring']);
        // A rule without peers or ports would let everybody through.
        for (const rule of [...ingress, ...egress]) {
            assert.ok((rule.from ?? rule.to).length > 0);
            assert.ok(rule.ports.length > 0);
        }
    }
});

test('the policy is the one of docker/, or that of the values', () => {
    const policy = (values) => JSON.parse(byKind(rendered(values), 'ConfigMap').data['policy.json']);
    assert.deepEqual(policy(LEAST), JSON.parse(read(join(SOURCE, 'docker/policy.json'))));
    assert.deepEqual(policy(FULL), FULL.policy);
    const checksum = (values) => podOf(rendered(values)).metadata.annotations['checksum/policy'];
    assert.notEqual(checksum(LEAST), checksum({ ...LEAST, policy: FULL.policy }));
});

test('the alerts are those of docker/prometheus', () => {
    const { spec } = byKind(rendered(FULL), 'PrometheusRule');
    assert.deepEqual(spec, parse(read(join(SOURCE, 'docker/prometheus/alerts.yml')))[0]);
    assert.ok(spec.groups.flatMap(({ rules }) => rules).some(({ expr }) => expr.includes('job="chatelaine"')));
});

test('chart, image and program have one version', () => {
    const chart = parse(read(join(SOURCE, 'docker/kubernetes/chart/Chart.yaml')))[0];
    const version = read(join(SOURCE, 'CMakeLists.txt')).match(/project\(\w+ VERSION ([\d.]+)/)[1];
    assert.deepEqual([chart.version, chart.appVersion], [version, version]);
    assert.equal(nodeOf(rendered(LEAST)).image, `chatelaine:${version}`);
    assert.equal(nodeOf(rendered(FULL)).image, `${FULL.image.repository}@${FULL.image.digest}`);
});
