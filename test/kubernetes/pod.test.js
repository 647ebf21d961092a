// The chart's Pod, run by Docker as the kubelet would run it: the same user, rights, files and variables. See
// scripts/kubernetes. It is not a cluster: Services, NetworkPolicy and scheduling are not tested.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
    chmodSync,
    chownSync,
    mkdirSync,
    mkdtempSync,
    readFileSync,
    renameSync,
    rmSync,
    symlinkSync,
    writeFileSync,
} from 'node:fs';
import { get } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { render } from './helm.js';
import { FULL, LEAST, OPENSHIFT } from './values.js';

const IMAGE = process.env.CHATELAINE_IMAGE ?? 'chatelaine';
const REDIS = 'redis:7.2-bookworm';
const NAME = `chatelaine-pod-${randomBytes(4).toString('hex')}`;
const folder = mkdtempSync(join(tmpdir(), 'chatelaine-pod.'));
const started = [];

function docker(...args) {
    const { status, stdout, stderr } = spawnSync('docker', args, { encoding: 'utf8' });
    assert.equal(status, 0, `docker ${args.join(' ')}: ${stderr}`);
    return stdout.trim();
}

function run(name, ...args) {
    started.push(docker('run', '--detach', '--network', NAME, '--name', `${NAME}-${name}`, ...args));
    return started.at(-1);
}

/** Files as the kubelet lays out a Secret: links to links to files of root that the group of fsGroup may read. */
function secretVolume(name, files, { mode, fsGroup }) {
    const volume = join(folder, name);
    const version = `..${Date.now()}`;
    mkdirSync(join(volume, version), { recursive: true });
    chmodSync(folder, 0o755);
    for (const [file, content] of Object.entries(files)) {
        const path = join(volume, version, file);
        writeFileSync(path, content);
        chownSync(path, 0, fsGroup ?? 0);
        // With fsGroup, the group may read whatever the mode says.
        chmodSync(path, fsGroup === undefined ? mode : mode | 0o440);
    }
    symlinkSync(version, join(volume, '..data.new'));
    renameSync(join(volume, '..data.new'), join(volume, '..data'));
    for (const file of Object.keys(files)) {
        rmSync(join(volume, file), { force: true });
        symlinkSync(join('..data', file), join(volume, file));
    }
    return volume;
}

/** A PersistentVolumeClaim's folder, as the kubelet gives it to the group of fsGroup. */
function claimVolume(name, fsGroup) {
    const volume = join(folder, name);
    mkdirSync(volume);
    chownSync(volume, 0, fsGroup ?? 0);
    chmodSync(volume, fsGroup === undefined ? 0o755 : 0o2775);
    return volume;
}

/** The files of a Secret that the chart makes. */
function filesOf(objects, name) {
    const { data } = objects.find(({ kind, metadata }) => kind === 'Secret' && metadata.name === name);
    return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]));
}
const picked = (files, items) => (items ? Object.fromEntries(items.map(({ key, path }) => [path, files[key]])) : files);

const rendered = (values) => {
    const { objects, error } = render('helm-4', { ...LEAST, ...values });
    assert.equal(error, undefined);
    return { deployment: objects.find(({ kind }) => kind === 'StatefulSet').spec.template.spec, objects };
};

/** What the kubelet makes of the Pod's description: the node, and the containers beside it by their names. */
function runPod(name, contents, { values = {}, change = () => {} } = {}) {
    const { deployment: pod, objects } = rendered(values);
    change(pod);
    const { runAsUser, runAsGroup, fsGroup } = pod.securityContext;
    const folders = {};
    const folderOf = (volume) => {
        const { secret, configMap } = pod.volumes.find((each) => each.name === volume) ?? {};
        if (!secret && !configMap) return claimVolume(`${name}-${volume}`, fsGroup);
        const files = secret
            ? picked(contents[secret.secretName] ?? filesOf(objects, secret.secretName), secret.items)
            : objects.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === configMap.name).data;
        return secretVolume(`${name}-${volume}`, files, { mode: secret ? secret.defaultMode : 0o644, fsGroup });
    };
    const start = (suffix, { securityContext, resources, env = [], volumeMounts, command }) => {
        const args = ['--user', `${runAsUser}:${runAsGroup}`];
        if (fsGroup !== undefined) args.push('--group-add', String(fsGroup));
        if (securityContext.readOnlyRootFilesystem) args.push('--read-only');
        for (const capability of securityContext.capabilities.drop) args.push('--cap-drop', capability);
        if (!securityContext.allowPrivilegeEscalation) args.push('--security-opt', 'no-new-privileges');
        args.push('--memory', resources.limits.memory.replace('Mi', 'm'));
        for (const variable of env) args.push('--env', `${variable.name}=${variable.value}`);
        for (const { name: volume, mountPath, readOnly } of volumeMounts) {
            folders[volume] ??= folderOf(volume);
            args.push('--volume', `${folders[volume]}:${mountPath}${readOnly ? ':ro' : ''}`);
        }
        if (command) args.push('--entrypoint', command[0]);
        return run(`${name}${suffix}`, ...args, IMAGE, ...(command ?? []).slice(1));
    };
    const [node, ...others] = pod.containers;
    const id = start('', node);
    const beside = Object.fromEntries(others.map((each) => [each.name, start(`-${each.name}`, each)]));
    return { id, beside, folders, pod, node, objects };
}

const inspect = (id, format) => docker('inspect', '--format', format, id);
const logsOf = (id) => {
    const { stdout, stderr } = spawnSync('docker', ['logs', id], { encoding: 'utf8' });
    return stdout + stderr;
};
const address = (id) => inspect(id, '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}');

/** As the kubelet probes: until it succeeds, at most as often as it may fail. */
async function probe(id, { httpGet, periodSeconds, failureThreshold }, expected = 200) {
    let last;
    for (let attempt = 0; attempt < failureThreshold; attempt++) {
        assert.equal(httpGet.scheme, 'HTTPS');
        // The kubelet verifies nothing.
        const answer = await askOverTls(id, httpGet.path);
        last = answer.status ?? answer.error;
        if (last === expected) return;
        await sleep(periodSeconds * 1000);
    }
    assert.fail(`${httpGet.path}: ${last}\n${logsOf(id)}`);
}

/** A CA, or a certificate that it signs, and its key, in PEM. */
function openssl(name, ...args) {
    const [key, certificate] = [join(folder, `${name}.key`), join(folder, `${name}.crt`)];
    const made = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'];
    const { status, stderr } = spawnSync('openssl', [...made, '-keyout', key, '-out', certificate, ...args], {
        encoding: 'utf8',
    });
    assert.equal(status, 0, stderr);
    return { key: readFileSync(key, 'utf8'), certificate: readFileSync(certificate, 'utf8') };
}
const makeCa = () => openssl('ca', '-subj', '/CN=test CA', '-addext', 'keyUsage=critical,keyCertSign');
const makePair = (name, usage) =>
    openssl(
        ...[name, '-subj', `/CN=${name}`, '-CA', join(folder, 'ca.crt'), '-CAkey', join(folder, 'ca.key')],
        ...['-addext', `subjectAltName=DNS:${name}`, '-addext', `extendedKeyUsage=${usage}`],
        ...['-addext', 'basicConstraints=critical,CA:FALSE'],
    );
const tlsSecret = ({ key, certificate }) => ({ 'tls.crt': certificate, 'tls.key': key });

/** A request to the internal listener: {status, shown: the certificate's fingerprint}, or {error}. */
const askOverTls = (id, path, ca, client = {}, headers = {}) =>
    new Promise((resolve) => {
        const options = {
            ...{ host: address(id), port: 8081, path, agent: false, servername: 'chatelaine-internal' },
            ...{ ca: ca?.certificate, key: client.key, cert: client.certificate, rejectUnauthorized: Boolean(ca) },
            headers: { 'X-Original-Method': 'GET', 'X-Original-URI': '/v1/patients', ...headers },
        };
        get(options, (response) => {
            const shown = response.socket.getPeerCertificate().fingerprint256;
            response.resume().on('end', () => resolve({ status: response.statusCode, shown }));
        }).on('error', (error) => resolve({ error: error.code }));
    });

let contents;
before(() => {
    docker('network', 'create', NAME);
    const settings = ['--appendonly', 'yes', '--appendfsync', 'always', '--save', '', '--protected-mode', 'no'];
    run('redis', REDIS, 'redis-server', ...settings, '--maxmemory-policy', 'noeviction');
    contents = {
        'chatelaine-master-key': { 'master-key': `${randomBytes(32).toString('hex')}\n` },
        'chatelaine-redis': { redis: `redis://${NAME}-redis:6379\n` },
    };
});
after(() => {
    for (const id of started.reverse()) spawnSync('docker', ['rm', '--force', '--volumes', id]);
    spawnSync('docker', ['network', 'rm', NAME]);
    rmSync(folder, { recursive: true, force: true });
});

test('the Pod starts, serves once there is an account, and stops within its time', async () => {
    const { id, pod, node, objects } = runPod('node', contents);
    await probe(id, node.startupProbe);
    await probe(id, node.livenessProbe);
    await probe(id, node.readinessProbe, 503); // no account yet
    docker('exec', id, 'chatelaine', 'account', 'create', '--name', 'North Clinic');
    await probe(id, node.readinessProbe);
    // The chart's own certificates: the gateway's opens the internal listener, a node's does not.
    const ca = { certificate: filesOf(objects, 'chatelaine-internal-tls')['ca.crt'] };
    const pairOf = (name) => {
        const { 'tls.key': key, 'tls.crt': certificate } = filesOf(objects, name);
        return { key, certificate };
    };
    const ask = (client) =>
        askOverTls(id, '/check/auth-request', ca, client, { Authorization: 'Bearer svc_sk_unknown' });
    const check = await ask(pairOf('chatelaine-gateway-tls'));
    assert.equal(check.status, 401);
    assert.equal((await ask()).status, 403);
    assert.notEqual((await ask(pairOf('chatelaine-tls'))).status, 401);
    const doctor = docker('exec', id, 'chatelaine', 'doctor');
    assert.doesNotMatch(doctor, /^(warn|fail) +(audit-log|revocation-log|tls|internal-tls|internal-client-ca) /m);
    const logs = docker('exec', id, 'stat', '-c', '%u %a %n', '/var/log/chatelaine/audit.log', '/var/log/chatelaine/revocations');
    assert.equal(logs, '10001 600 /var/log/chatelaine/audit.log\n10001 600 /var/log/chatelaine/revocations');
    assert.match(docker('exec', id, 'cat', '/var/log/chatelaine/audit.log'), /"account.created"|"log\./);

    const status = docker('exec', id, 'cat', '/proc/1/status');
    for (const line of [/^Uid:\t10001\t10001/m, /^CapEff:\t0+$/m, /^NoNewPrivs:\t1$/m, /^Seccomp:\t2$/m])
        assert.match(status, line);
    assert.notEqual(spawnSync('docker', ['exec', id, 'touch', '/tmp/x']).status, 0, 'the root can be written');

    const began = Date.now();
    docker('exec', id, ...node.lifecycle.preStop.exec.command);
    assert.ok(Date.now() - began >= 5000, 'preStop does not wait');
    await probe(id, { ...node.readinessProbe, failureThreshold: 1 }); // it serves until it is told to stop
    const rest = Math.floor(pod.terminationGracePeriodSeconds - (Date.now() - began) / 1000);
    docker('stop', '--time', String(rest), id);
    assert.equal(inspect(id, '{{.State.ExitCode}}'), '0', logsOf(id));
});

test('with TLS, the Pod asks gateways for a certificate, the kubelet for none, and takes a renewed Secret', async () => {
    const ca = makeCa();
    const gateway = makePair('gateway', 'clientAuth');
    const secrets = {
        ...contents,
        'chatelaine-tls': tlsSecret(makePair('chatelaine', 'serverAuth')),
        'chatelaine-internal-tls': tlsSecret(makePair('chatelaine-internal', 'serverAuth')),
        'gateways-ca': { 'ca.crt': ca.certificate },
    };
    const { tls, internalTls } = FULL;
    const { id, node } = runPod('tls', secrets, { values: { tls, internalTls } });
    const until = async (what, holds) => {
        for (let attempt = 0; attempt < 60; attempt++) {
            if (await holds()) return;
            await sleep(1000);
        }
        assert.fail(`${what}\n${logsOf(id)}`);
    };
    assert.equal(node.readinessProbe.httpGet.scheme, 'HTTPS');
    await until('not ready', async () => (await askOverTls(id, '/readyz', ca)).status === 200);
    assert.equal((await askOverTls(id, '/check/auth-request', ca)).status, 403);
    const { status, shown } = await askOverTls(id, '/check/auth-request', ca, gateway);
    assert.equal(status, 401);
    docker('exec', id, 'chatelaine', 'ready');

    const renewed = tlsSecret(makePair('chatelaine-internal', 'serverAuth'));
    secretVolume('tls-internal-tls', renewed, { mode: 0o400, fsGroup: 10001 });
    await until('the old certificate is still shown', async () => {
        const answer = await askOverTls(id, '/readyz', ca);
        return answer.status === 200 && answer.shown !== shown;
    });
});

test("a Pod under the cluster's user prints its logs to their ends", async () => {
    const { podSecurityContext, logs } = OPENSHIFT;
    const chosen = { runAsUser: 1000680000, runAsGroup: 0, fsGroup: 1000680000 };
    const change = (pod) => Object.assign(pod.securityContext, chosen); // as OpenShift does
    const { id, beside, folders, node } = runPod('cluster-user', contents, { values: { podSecurityContext, logs }, change });
    await probe(id, node.startupProbe);
    docker('exec', id, 'chatelaine', 'ready', '--or-empty');
    const end = () => Object.values(beside).map((each) => spawnSync('docker', ['kill', '--signal', 'TERM', each]).status);
    assert.deepEqual(end(), [0, 0]);
    docker('stop', id);
    assert.equal(inspect(id, '{{.State.ExitCode}}'), '0', logsOf(id));
    // Again, because one that has only begun ignores it.
    for (let attempt = 0; attempt < 60 && end().includes(0); attempt++) await sleep(1000);
    for (const [name, file] of [
        ['audit-log', 'audit.log'],
        ['revocation-log', 'revocations'],
    ]) {
        assert.equal(inspect(beside[name], '{{.State.Status}} {{.State.ExitCode}}'), 'exited 0');
        assert.equal(logsOf(beside[name]), readFileSync(join(folders.logs, file), 'utf8'));
    }
    assert.match(logsOf(beside['audit-log']), /"log\.ended"/);
});

const masterKeyOf = (volumes) => volumes.find(({ name }) => name === 'master-key').secret;
const REFUSED = [
    ['a Secret mounted with the default mode', ({ volumes }) => (masterKeyOf(volumes).defaultMode = 0o644), /can read it/],
    ['a Secret mounted without fsGroup', ({ securityContext }) => delete securityContext.fsGroup, /Permission denied/],
];
for (const [what, change, words] of REFUSED) {
    test(`${what} is refused`, () => {
        const { id } = runPod(`refused-${REFUSED.findIndex(([each]) => each === what)}`, contents, { change });
        assert.notEqual(docker('wait', id), '0');
        assert.match(logsOf(id), words);
    });
}
