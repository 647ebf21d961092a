// Spectral finds nothing to complain of in the document, and would find it: in a copy that breaks each rule somewhere, each
// rule must complain there. And what two operations take or answer alike is written once, in components.
import assert from 'node:assert/strict';
import {spawnSync} from 'node:child_process';
import {mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';

const path = join(process.env.CHATELAINE_SOURCE, 'src/api/openapi.json');
const folder = mkdtempSync(join(tmpdir(), 'chatelaine-lint-'));

/** All complaints; one run for all files, for it takes seconds to begin, and as long for each file. */
function lint(files) {
    const {stdout, stderr} = spawnSync(
        process.execPath,
        [
            'node_modules/@stoplight/spectral-cli/dist/index.js',
            'lint',
            ...files,
            '--ruleset',
            'spectral.yaml',
            '--format',
            'json',
            '--quiet',
        ],
        {encoding: 'utf8', maxBuffer: 1 << 26},
    );
    assert.ok(stdout.startsWith('['), stdout + stderr);
    return JSON.parse(stdout).map(({source, code, path: place, message}) => ({
        source,
        code,
        at: place.join('.'),
        words: `${code}: ${message} (${place.join('.')})`,
    }));
}

/** The places of bodies and responses that operations write out alike. */
function twins({paths}) {
    const places = new Map();
    for (const [template, item] of Object.entries(paths))
        for (const [method, {requestBody, responses}] of Object.entries(item))
            for (const [name, {content}] of Object.entries({...responses, ...(requestBody && {requestBody})}))
                if (content) {
                    const key = JSON.stringify(content);
                    places.set(key, [...(places.get(key) ?? []), `${method} ${template} ${name}`]);
                }
    return [...places.values()].filter(({length}) => length > 1);
}

// By rule: where it must complain, and what breaks it there.
const BROKEN = {
    'oas3-schema': ['paths./v1/usage.get', (document) => (document.paths['/v1/usage'].get.responses = 'none')],
    'oas3-valid-media-example': [
        'paths./v1/whoami.get.responses.200',
        (document) => (document.paths['/v1/whoami'].get.responses[200].content['application/json'].example.mode = 'Live'),
    ],
    'oas3-unused-component': [
        'components.schemas.Orphan',
        (document) => (document.components.schemas.Orphan = {type: 'string', description: 'x', maxLength: 1}),
    ],
    'answers-name-their-request': [
        'components.responses.KeyRefused',
        (document) => delete document.components.responses.KeyRefused.headers['X-Request-Id'],
    ],
    'objects-are-closed': [
        'components.schemas.ApiKey',
        (document) => delete document.components.schemas.ApiKey.additionalProperties,
    ],
    'properties-are-described': [
        'components.schemas.Usage.properties.keys',
        (document) => delete document.components.schemas.Usage.properties.keys.description,
    ],
    'strings-are-bounded': [
        'components.schemas.Name',
        (document) =>
            delete document.components.schemas.Name.pattern && delete document.components.schemas.Name.maxLength,
    ],
    'answers-have-examples': [
        'components.responses.KeyRefused',
        (document) => delete document.components.responses.KeyRefused.content['application/json'].examples,
    ],
    'operations-tell-their-errors': [
        'paths./v1/whoami.get',
        (document) => delete document.paths['/v1/whoami'].get.responses[503],
    ],
    'operation-summary-is-there': [
        'paths./v1/whoami.get',
        (document) => (document.paths['/v1/whoami'].get.summary = ''),
    ],
};

try {
    const copy = join(folder, 'broken.json');
    const document = JSON.parse(readFileSync(path, 'utf8'));
    assert.deepEqual(twins(document), [], 'said twice');
    const more = {'/v1/again': {get: document.paths['/v1/whoami'].get}};
    assert.deepEqual(twins({paths: {...document.paths, ...more}}), [['get /v1/whoami 200', 'get /v1/again 200']]);
    for (const [, breakIt] of Object.values(BROKEN)) breakIt(document);
    writeFileSync(copy, JSON.stringify(document));
    const complaints = lint([path, copy]);
    const ofTheDocument = complaints.filter(({source}) => source === path).map(({words}) => words);
    assert.ok(ofTheDocument.length === 0, ofTheDocument.join('\n'));
    for (const [rule, [place]] of Object.entries(BROKEN))
        assert.ok(
            complaints.some(({code, at}) => code === rule && `${at}.`.startsWith(`${place}.`)),
            `${rule} does not complain of ${place}:\n${complaints.map(({words}) => words).join('\n')}`,
        );
} finally {
    rmSync(folder, {recursive: true});
}
