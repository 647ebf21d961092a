// The chart, rendered by the real Helm: its objects fit Kubernetes' schemas and each other, the manifests are what it
// renders, and bad values are refused.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { HELMS, parse, render, SOURCE } from './helm.js';
import { NEWEST, OLDEST, wrongs } from './schema.js';
import { BAD, FULL, LEAST } from './values.js';

const MANIFESTS = join(SOURCE, 'docker/kubernetes/manifests');
const read = (path) => readFileSync(path, 'utf8');
const rendered = (values, helm = 'helm-4', kubernetes = undefined) => {
    const { objects, error } = render(helm, values, kubernetes);
    assert.equal(error, undefined);
    return objects;
};
const byKind = (objects, kind, name = undefined) => {
    const found = objects.filter((each) => each.kind === kind && (!name || each.metadata.name === name));
    assert.equal(found.length, 1, `not one ${kind} ${name ?? ''}`);
    return found[0];
};
const podOf = (objects) => byKind(objects, 'Deployment').spec.template;
const nodeOf = (objects) => podOf(objects).spec.containers[0];
const settingsOf = (objects) => Object.fromEntries(nodeOf(objects).env.map(({ name, value }) => [name, value]));

test('Helm 3 and 4 render the same, for the oldest Kubernetes and a new one', () => {
    for (const values of [LEAST, FULL]) {
        const expected = rendered(values);
        for (const helm of HELMS)
            for (const kubernetes of ['1.27.0', '1.36.0'])
                assert.deepEqual(sorted(rendered(values, helm, kubernetes)), sorted(expected));
    }
    assert.match(render('helm-4', LEAST, '1.26.0').error, /kubeVersion/);
});
const sorted = (objects) => objects.toSorted?.(order) ?? [...objects].sort(order);
const order = (a, b) => `${a.kind} ${a.metadata.name}`.localeCompare(`${b.kind} ${b.metadata.name}`);

for (const kubernetes of [OLDEST, NEWEST]) {
    for (const [name, values] of Object.entries({ least: LEAST, full: FULL })) {
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
    assert.deepEqual(parse(read(join(MANIFESTS, 'values.yaml')))[0], LEAST);
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

// One node per Pod; a read-only root; the address of Redis is a secret; the kubelet's probes send no PROXY header; an
// audit log needs a volume that outlives its Pod; a socket is for a gateway in the same Pod (gateways/sidecar.yaml).
const WITHHELD = ['audit-log', 'check-socket', 'reuse-port', 'ready-file', 'redis', 'internal-proxy-protocol', 'unsafe-redis'];

test("settings are the node's, all of them, and numbers are written out", () => {
    const help = spawnSync(process.env.CHATELAINE_BINARY, ['serve', '--help'], { encoding: 'utf8' }).stdout;
    const known = new Set([...help.matchAll(/^ {2}(?:-\w, )?--([a-z0-9-]+)/gm)].map((match) => match[1]));
    assert.ok(known.has('lease-ms'));
    const { settings } = JSON.parse(read(join(SOURCE, 'docker/kubernetes/chart/values.schema.json'))).properties;
    for (const name of Object.keys(settings.properties)) assert.ok(known.has(name), `${name} is no setting`);
    const optionOf = (name) => name.replace('CHATELAINE_', '').toLowerCase().replaceAll('_', '-');
    const set = Object.keys(settingsOf(rendered(FULL)))
        .filter((name) => name !== 'POD_NAME')
        .map(optionOf);
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
        for (const { name } of volumeMounts)
            assert.ok(
                spec.volumes.some((each) => each.name === name),
                `${name} is nowhere`,
            );
        assert.equal(volumeMounts.length, spec.volumes.length);
        assert.ok(!objects.some(({ kind }) => kind === 'Secret'));
    }
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
        [LEAST, 'HTTP'],
        [FULL, 'HTTPS'],
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
        const { selector, template } = byKind(objects, 'Deployment').spec;
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
});

test('only gateways and Prometheus reach the internal listener', () => {
    for (const values of [LEAST, FULL]) {
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
