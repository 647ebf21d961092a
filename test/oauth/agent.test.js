// scripts/agent, the example in shell, from enrolment to upload, by every shell that is here.
import assert from 'node:assert/strict';
import {execFile, spawn} from 'node:child_process';
import {once} from 'node:events';
import {existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, statSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {after, before, test} from 'node:test';
import {promisify} from 'node:util';

import {PATIENCE_MS} from '../support/deployment.js';
import {Stage} from './stage.js';

const AGENT = join(process.env.CHATELAINE_SOURCE, 'scripts/agent');
const SHELLS = ['dash', 'bash'].filter((shell) => existsSync(`/bin/${shell}`));
const run = promisify(execFile);

const stage = new Stage();

before(
    async () => {
        await stage.raise();
    },
    {timeout: 2 * PATIENCE_MS},
);
after(() => stage.strike());

function makeHome() {
    const home = mkdtempSync(join(stage.folder, 'home-'));

    return {home, folder: join(home, 'chatelaine-agent'), env: {...process.env, XDG_CONFIG_HOME: home}};
}

// Starts to enrol; decide(userCode) once the code is shown. {code, output}, and all its command lines that were seen: other
// tests run beside it.
async function enrol(shell, {home, env}, name, decide) {
    const child = spawn(`/bin/${shell}`, [AGENT, 'enrol', stage.origin, name], {env});
    const lines = new Set();
    let output = '',
        decided = false;

    const watch = setInterval(() => {
        for (const process of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
            try {
                if (readFileSync(`/proc/${process}/environ`, 'utf8').split('\0').includes(`XDG_CONFIG_HOME=${home}`))
                    lines.add(readFileSync(`/proc/${process}/cmdline`, 'utf8').replaceAll('\0', ' '));
            } catch {
                // It has ended.
            }
        }
    }, 20);
    for (const stream of [child.stdout, child.stderr]) {
        stream.on('data', (data) => {
            output += data;
            const code = /^ +([A-Z]{4}-[A-Z]{4})$/m.exec(output);
            if (code && !decided) {
                decided = true;
                decide(code[1]);
            }
        });
    }
    const [code] = await once(child, 'close');
    clearInterval(watch);
    return {code, output, lines: [...lines].join('\n')};
}

for (const shell of SHELLS) {
    test(`${shell}: enrols and uploads`, {timeout: 2 * PATIENCE_MS}, async () => {
        const place = makeHome();
        const file = join(place.home, 'Letter [1] {a,b}.pdf'); // no pattern
        let approval;

        writeFileSync(file, 'Läuft\0');
        const enrolled = await enrol(shell, place, 'Ward "1" & 2', (code) => {
            approval = stage.decide(code, 'approve');
        });
        assert.equal(enrolled.code, 0, enrolled.output);
        assert.equal((await approval).json.device_name, 'Ward "1" & 2');

        const {url, key} = JSON.parse(readFileSync(join(place.folder, 'key.json'), 'utf8'));
        assert.equal(url, stage.origin);
        assert.match(key, /^svc_dk_/);
        assert.equal(statSync(join(place.folder, 'key.json')).mode & 0o777, 0o600);
        assert.equal(statSync(place.folder).mode & 0o777, 0o700);
        assert.deepEqual(readdirSync(place.folder), ['key.json']);
        assert.ok(enrolled.lines.includes(AGENT), 'the agent was seen');
        assert.ok(!enrolled.lines.includes('svc_dk_') && !enrolled.lines.includes('device_code='));
        assert.ok(!enrolled.output.includes(key));

        await run(`/bin/${shell}`, [AGENT, 'upload', file], {env: place.env});
        assert.equal(stage.uploads.at(-1).bytes.toString(), 'Läuft\0');
        assert.equal(stage.uploads.at(-1).checked['x-auth-scopes'], 'documents:write');

        // A node alone checks the key, and has nowhere to put the document.
        const keyFile = join(place.folder, 'key.json');
        writeFileSync(keyFile, JSON.stringify({url: stage.other, key}));
        await assert.rejects(run(`/bin/${shell}`, [AGENT, 'upload', file], {env: place.env}), /the key is accepted, but/);
        writeFileSync(keyFile, JSON.stringify({url, key}));

        const keys = await stage.session.send('GET', '/v1/console/device_keys?limit=1');
        await stage.session.send('DELETE', `/v1/console/device_keys/${keys.json.data[0].id}`);
        await assert.rejects(run(`/bin/${shell}`, [AGENT, 'upload', file], {env: place.env}), /was refused: 401/);
    });
}

test('is refused', {timeout: 2 * PATIENCE_MS}, async () => {
    const place = makeHome();
    const refused = await enrol(SHELLS[0], place, 'x', (code) => stage.decide(code, 'deny'));

    assert.equal(refused.code, 1);
    assert.match(refused.output, /agent: the device was denied/);
    assert.ok(!existsSync(place.folder));
    await assert.rejects(run(`/bin/${SHELLS[0]}`, [AGENT, 'upload', AGENT], {env: place.env}), /is not enrolled/);
});

test('cannot wait', {timeout: 2 * PATIENCE_MS}, async () => {
    const place = makeHome();
    const programs = join(place.home, 'programs');

    mkdirSync(programs);
    writeFileSync(join(programs, 'sleep'), '#!/bin/sh\nexit 1\n', {mode: 0o755});
    place.env.PATH = `${programs}:${place.env.PATH}`;
    const given = await enrol(SHELLS[0], place, 'x', () => {});

    assert.equal(given.code, 1);
    assert.ok(!existsSync(place.folder));
});

test('a server that says that it is another one', {timeout: 2 * PATIENCE_MS}, async () => {
    await assert.rejects(
        run(`/bin/${SHELLS[0]}`, [AGENT, 'enrol', stage.other.replace('127.0.0.1', 'localhost')]),
        /names another server as its issuer/,
    );
});

test('how it is used', async () => {
    for (const args of [[], ['enrol'], ['upload'], ['upload', 'a', 'b'], ['other', 'a']]) {
        await assert.rejects(run(`/bin/${SHELLS[0]}`, [AGENT, ...args]), ({code, stderr}) => {
            assert.equal(code, 2);
            assert.match(stderr, /scripts\/agent enrol URL/);
            return true;
        });
    }
});
