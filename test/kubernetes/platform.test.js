// What clusters differ in, and the chart leaves to its values: addresses, users, volumes, containers, scaling, networks.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import {
    appendFileSync,
    chmodSync,
    chownSync,
    mkdirSync,
    mkdtempSync,
    readFileSync,
    renameSync,
    rmSync,
    statSync,
    writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { parse, SOURCE } from './helm.js';
import { byKind, nodeOf, podOf, rendered, settingsOf } from './objects.js';
import { LEAST, OPENSHIFT } from './values.js';

const read = (path) => readFileSync(join(SOURCE, path), 'utf8');

test('nodes in containers listen on every address, of IPv4 and of IPv6', () => {
    const EVERY = ['[::]:8080', '[::]:8081'];
    const listened = (settings) => [settings.CHATELAINE_LISTEN, settings.CHATELAINE_INTERNAL_LISTEN];
    assert.deepEqual(listened(settingsOf(rendered(LEAST))), EVERY);
    const image = [...read('docker/Dockerfile').matchAll(/(CHATELAINE_\w*LISTEN)="([^"]*)"/g)];
    assert.deepEqual(listened(Object.fromEntries(image.map(([, name, value]) => [name, value]))), EVERY);
    const gateway = parse(read('docker/kubernetes/gateways/sidecar.yaml')).find(({ spec }) => spec?.template);
    const node = gateway.spec.template.spec.containers.find(({ name }) => name === 'node');
    const settings = Object.fromEntries(node.env.map(({ name, value }) => [name, value]));
    assert.deepEqual(listened(settings), ['127.0.0.1:8080', EVERY[1]]); // nobody is sent to the public one
    for (const file of ['docker-compose.yml', 'docker/cluster.yml']) assert.doesNotMatch(read(file), /_LISTEN/, file);
});

test('the user and the groups are free, the rest of what shuts the Pod in is not', () => {
    const contextOf = (podSecurityContext) => podOf(rendered({ ...LEAST, podSecurityContext })).spec.securityContext;
    const rest = { runAsNonRoot: true, fsGroupChangePolicy: 'OnRootMismatch', seccompProfile: { type: 'RuntimeDefault' } };
    assert.deepEqual(contextOf(OPENSHIFT.podSecurityContext), rest);
    assert.deepEqual(contextOf({ runAsUser: 1000680000, runAsGroup: 0, fsGroup: 1000680000 }), {
        ...{ ...rest, runAsUser: 1000680000, runAsGroup: 0, fsGroup: 1000680000 },
    });
    const seccompProfile = { type: 'Localhost', localhostProfile: 'node.json' };
    assert.deepEqual(contextOf({ seccompProfile }).seccompProfile, seccompProfile);
    const shut = nodeOf(rendered(LEAST)).securityContext;
    assert.deepEqual(nodeOf(rendered(OPENSHIFT)).securityContext, shut);
});

test('volumes, variables and containers of the values are added to the Pod, and shut in like the node', () => {
    const [before, { spec }] = [{ ...LEAST, logs: OPENSHIFT.logs }, OPENSHIFT].map((values) => podOf(rendered(values)));
    const [node, , , sidecar, ...others] = spec.containers;
    const [{ volumeMounts, env }] = before.spec.containers;
    const { extraVolumes, extraVolumeMounts, extraEnv, sidecars, initContainers } = OPENSHIFT;
    assert.deepEqual(spec.volumes, [...before.spec.volumes, ...extraVolumes]);
    assert.deepEqual(node.volumeMounts, [...volumeMounts, ...extraVolumeMounts]);
    assert.deepEqual(node.env, [...env, ...extraEnv]);
    assert.equal(others.length, 0);
    const { securityContext } = node;
    assert.deepEqual(sidecar, {
        ...sidecars[0],
        securityContext: { ...securityContext, readOnlyRootFilesystem: false },
    });
    assert.deepEqual(spec.initContainers, [{ ...initContainers[0], securityContext }]);
});

test('the service account may be one that exists, and never has a token in the Pod', () => {
    const accountOf = (serviceAccount) => {
        const objects = rendered({ ...LEAST, serviceAccount });
        const { serviceAccountName, automountServiceAccountToken } = podOf(objects).spec;
        assert.equal(automountServiceAccountToken, false);
        return [serviceAccountName, objects.find(({ kind }) => kind === 'ServiceAccount')];
    };
    const [name, made] = accountOf(OPENSHIFT.serviceAccount);
    assert.deepEqual([name, made.metadata.name, made.metadata.annotations], ['shipper', 'shipper', { 'example.org/role': 'ships' }]);
    assert.equal(made.automountServiceAccountToken, false);
    assert.deepEqual(accountOf({ create: false, name: 'theirs' }), ['theirs', undefined]);
});

test('nodes reach Redis, DNS, and what the values name besides', () => {
    const reached = (values) => rendered(values).find(({ kind }) => kind === 'NetworkPolicy').spec.egress;
    const both = (port) => ['UDP', 'TCP'].map((protocol) => ({ port, protocol }));
    const [redis, dns, ...more] = reached(OPENSHIFT);
    assert.deepEqual(redis, reached(LEAST)[0]);
    assert.deepEqual(dns, { ports: both(5353), to: OPENSHIFT.networkPolicy.dns });
    assert.deepEqual(more, OPENSHIFT.networkPolicy.egress);
    assert.deepEqual(reached(LEAST)[1].ports, both(53));
    assert.equal(reached(LEAST).length, 2);
});

test('an autoscaler decides how many nodes there are, and then nobody else does', () => {
    assert.ok(!rendered(LEAST).some(({ kind }) => kind === 'HorizontalPodAutoscaler'));
    assert.equal(byKind(rendered(LEAST), 'StatefulSet').spec.replicas, 3);
    for (const [values, behavior, count] of [
        [OPENSHIFT, { scaleDown: { policies: [{ type: 'Pods', value: 1, periodSeconds: 60 }] } }, 2],
        [{ ...LEAST, replicas: 9, autoscaling: { enabled: true } }, undefined, 1],
    ]) {
        const objects = rendered(values);
        const { metadata, spec, kind } = byKind(objects, 'StatefulSet');
        const autoscaler = byKind(objects, 'HorizontalPodAutoscaler').spec;
        assert.ok(!Object.hasOwn(spec, 'replicas'));
        assert.deepEqual(autoscaler.scaleTargetRef, { apiVersion: 'apps/v1', kind, name: metadata.name });
        assert.equal(autoscaler.minReplicas, values.autoscaling.minReplicas ?? 3);
        assert.equal(autoscaler.metrics.length, count);
        // Utilization is of what the container requests.
        const { container, name } = autoscaler.metrics[0].containerResource;
        assert.ok(spec.template.spec.containers.find((each) => each.name === container).resources.requests[name]);
        if (behavior) assert.deepEqual(autoscaler.behavior, behavior);
        assert.ok(byKind(objects, 'PodDisruptionBudget').spec.maxUnavailable < autoscaler.minReplicas);
    }
    const few = { podDisruptionBudget: { maxUnavailable: '34%' }, autoscaling: { enabled: true } };
    assert.equal(byKind(rendered({ ...LEAST, ...few }), 'PodDisruptionBudget').spec.maxUnavailable, '34%');
    assert.equal(byKind(rendered({ ...LEAST, replicas: 1 }), 'StatefulSet').spec.replicas, 1); // for a trial
});

test('an Ingress leads to the public listener alone, by https', () => {
    assert.ok(!rendered(LEAST).some(({ kind }) => kind === 'Ingress'));
    const objects = rendered(OPENSHIFT);
    const { metadata, spec } = byKind(objects, 'Ingress');
    const [{ host, http }, ...others] = spec.rules;
    assert.equal(others.length, 0);
    assert.equal(`https://${host}`, OPENSHIFT.publicOrigin);
    assert.deepEqual(spec.tls, [{ hosts: [host], secretName: 'console' }]);
    assert.equal(spec.ingressClassName, 'internal');
    assert.equal(metadata.annotations['example.org/a'], 'b');
    const { name, port } = http.paths[0].backend.service;
    const service = byKind(objects, 'Service', name).spec.ports.find((each) => each.name === port.name);
    assert.deepEqual([http.paths.length, service.targetPort], [1, 'public']);
    const tlsOf = (values) => byKind(rendered({ ...LEAST, ...values }), 'Ingress').spec.tls;
    assert.equal(tlsOf({ ingress: { enabled: true, tls: { providedElsewhere: true } } }), undefined);
    assert.equal(tlsOf({ ingress: { enabled: true }, publicOrigin: 'http://console.example.org:8080' }), undefined);
});

const LOGS = '/var/log/chatelaine';
test('logs may be printed, and then may be in a volume that goes with the Pod', () => {
    const containersOf = (values) => podOf(rendered({ ...LEAST, ...values })).spec.containers;
    assert.equal(containersOf({}).length, 1);
    const printed = (values) =>
        containersOf(values)
            .slice(1)
            .map(({ name, command }) => [name, ...command]);
    const audit = ['audit-log', 'print-log', `${LOGS}/audit.log`, `${LOGS}/audit.log`];
    const revocations = ['revocation-log', 'print-log', `${LOGS}/revocations`, `${LOGS}/audit.log`];
    assert.deepEqual(printed({ logs: { toStdout: true } }), [audit, revocations]);
    assert.deepEqual(printed({ logs: { toStdout: true, revocations: false } }), [audit]);
    assert.match(read('docker/Dockerfile'), /^COPY .*docker\/print-log \/usr\/local\/bin\/$/m);
    // All that the image takes is there for its build: .dockerignore names it, too.
    const sent = read('.dockerignore').split('\n');
    for (const [, names] of read('docker/Dockerfile').matchAll(/^COPY (?!--from)(.*) \S+$/gm))
        for (const name of names.split(' ').filter((each) => each.startsWith('docker/')))
            assert.ok(sent.includes(`!${name}`), `${name} is not sent to the build`);

    const objects = rendered(OPENSHIFT);
    const { spec } = byKind(objects, 'StatefulSet');
    const { CHATELAINE_AUDIT_LOG, CHATELAINE_REVOCATION_LOG } = settingsOf(objects);
    assert.deepEqual([CHATELAINE_AUDIT_LOG, CHATELAINE_REVOCATION_LOG], [audit[2], revocations[2]]);
    assert.equal(spec.volumeClaimTemplates, undefined);
    const { emptyDir } = spec.template.spec.volumes.find(({ name }) => name === 'logs');
    assert.deepEqual(emptyDir, { sizeLimit: '2Gi' });
    const [node, ...printers] = spec.template.spec.containers.slice(0, 3);
    for (const { image, securityContext, volumeMounts, env } of printers) {
        assert.deepEqual([image, securityContext, env], [node.image, node.securityContext, undefined]);
        assert.deepEqual(volumeMounts, [{ name: 'logs', mountPath: LOGS, readOnly: true }]);
    }
});

/** Until it holds. */
async function until(holds) {
    const deadline = Date.now() + 60000;
    while (!(await holds())) {
        assert.ok(Date.now() < deadline, String(holds));
        await sleep(20);
    }
}

test('a log is printed to its end, through rotations, and until the node has ended', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'chatelaine-print.'));
    const [log, audit] = ['revocations', 'audit.log'].map((name) => join(folder, name));
    const children = [];
    const start = (...command) => {
        const child = spawn(command[0], command.slice(1), { stdio: ['pipe', 'pipe', 'inherit'] });
        children.push(child);
        child.text = '';
        child.stdout.on('data', (chunk) => (child.text += chunk));
        child.closed = new Promise((resolve) => child.on('close', resolve));
        return child;
    };
    try {
        const node = start('flock', audit, 'sh', '-c', 'echo locked; cat'); // holds its audit log as a node does
        await until(() => node.text === 'locked\n');
        const printer = start(join(SOURCE, 'docker/print-log'), log, audit); // before there is a log
        writeFileSync(log, 'one\n');
        await until(() => printer.text === 'one\n');
        appendFileSync(log, 'two\n');
        renameSync(log, `${log}-1`);
        appendFileSync(`${log}-1`, 'three\n');
        await until(() => printer.text === 'one\ntwo\nthree\n');
        printer.kill('SIGSTOP');
        writeFileSync(log, 'four\n');
        appendFileSync(`${log}-1`, 'and a half\n'); // what was under way when the new file was made
        printer.kill('SIGCONT');
        await until(() => printer.text === 'one\ntwo\nthree\nand a half\nfour\n');
        printer.kill('SIGTERM'); // the node drains
        appendFileSync(log, 'five\n');
        await until(() => printer.text.endsWith('five\n'));
        assert.equal(printer.exitCode, null);
        appendFileSync(log, 'six\n');
        node.stdin.end(); // the node ends
        assert.equal(await printer.closed, 0);
        assert.equal(printer.text, 'one\ntwo\nthree\nand a half\nfour\nfive\nsix\n');
    } finally {
        for (const child of children) child.kill('SIGKILL');
        rmSync(folder, { recursive: true });
    }
});

/** A volume as the kubelet gives it to the group of fsGroup: a Secret's files, or (without files) a claim. */
function volume(path, group, files = undefined) {
    mkdirSync(path);
    for (const [name, content] of Object.entries(files ?? {})) {
        writeFileSync(join(path, name), content);
        chownSync(join(path, name), 0, group);
        chmodSync(join(path, name), 0o440);
    }
    chownSync(path, 0, group);
    chmodSync(path, files ? 0o750 : 0o2775);
    return path;
}

/** What the program says, until it says this. */
const said = (child, words) =>
    new Promise((resolve, reject) => {
        let text = '';
        child.stderr.on('data', (chunk) => {
            text += chunk;
            if (words.test(text)) resolve(text);
        });
        child.on('close', () => reject(new Error(text)));
    });

const USER = 1000680000;
test('a user that nobody knows, in the group of root, runs a node', { skip: process.getuid() !== 0 && 'needs root' }, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'chatelaine-user.'));
    let child;
    chmodSync(folder, 0o755);
    try {
        const secrets = volume(join(folder, 'secrets'), USER, { 'master-key': '5a'.repeat(32), redis: 'redis://127.0.0.1:1' });
        const logs = volume(join(folder, 'logs'), USER);
        child = spawn(
            'setpriv',
            [
                ...[`--reuid=${USER}`, '--regid=0', `--groups=${USER}`, '--inh-caps=-all', '--bounding-set=-all', '--no-new-privs'],
                ...[process.env.CHATELAINE_BINARY, 'serve', '--listen', '[::]:0', '--internal-listen', '[::]:0'],
                ...['--public-origin', 'https://console.example.org', '--master-key-file', join(secrets, 'master-key')],
                ...['--redis-file', join(secrets, 'redis'), '--audit-log', join(logs, 'audit.log')],
                ...['--revocation-log', join(logs, 'revocations')],
            ],
            { stdio: ['ignore', 'ignore', 'pipe'] },
        );
        const closed = new Promise((resolve) => child.on('close', resolve));
        await said(child, /Redis connection is down/);
        for (const name of ['audit.log', 'revocations']) {
            const { uid, mode } = statSync(join(logs, name));
            assert.deepEqual([uid, mode & 0o777], [USER, 0o600]);
        }
        // By this, print-log knows when the node has ended.
        const isFree = () => spawnSync('flock', ['--shared', '--nonblock', join(logs, 'audit.log'), 'true']).status === 0;
        assert.ok(!isFree());
        child.kill('SIGTERM');
        assert.equal(await closed, 0);
        assert.ok(isFree());
    } finally {
        child?.kill('SIGKILL');
        rmSync(folder, { recursive: true });
    }
});
