// Spectral finds nothing to complain of in the document, and would find it: each broken copy must be told by its rule.
import assert from 'node:assert/strict';
import {spawnSync} from 'node:child_process';
import {mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';

const path = join(process.env.CHATELAINE_SOURCE, 'src/api/openapi.json');
const folder = mkdtempSync(join(tmpdir(), 'chatelaine-lint-'));

/** All complaints, as [file, rule]; one run for all files, for it takes seconds to begin. */
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
    return JSON.parse(stdout).map(({source, code, path, message}) => ({
        source,
        code,
        words: `${code}: ${message} (${path.join('.')})`,
    }));
}

const BROKEN = {
    'oas3-schema': (document) => (document.paths['/v1/whoami'].get.responses = 'none'),
    'oas3-valid-media-example': (document) =>
        (document.paths['/v1/whoami'].get.responses[200].content['application/json'].example.mode = 'Live'),
    'oas3-unused-component': (document) =>
        (document.components.schemas.Orphan = {type: 'string', description: 'x', maxLength: 1}),
    'answers-name-their-request': (document) => delete document.components.responses.KeyRefused.headers['X-Request-Id'],
    'objects-are-closed': (document) => delete document.components.schemas.ApiKey.additionalProperties,
    'properties-are-described': (document) => delete document.components.schemas.Usage.properties.keys.description,
    'strings-are-bounded': (document) =>
        delete document.components.schemas.Name.pattern && delete document.components.schemas.Name.maxLength,
    'answers-have-examples': (document) =>
        delete document.components.responses.KeyRefused.content['application/json'].examples,
    'operations-tell-their-errors': (document) => delete document.paths['/v1/whoami'].get.responses[503],
    'operation-summary-is-there': (document) => (document.paths['/v1/whoami'].get.summary = ''),
};

try {
    const copies = Object.entries(BROKEN).map(([rule, breakIt]) => {
        const document = JSON.parse(readFileSync(path, 'utf8'));
        breakIt(document);
        const copy = join(folder, `${rule}.json`);
        writeFileSync(copy, JSON.stringify(document));
        return {rule, copy};
    });
    const complaints = lint([path, ...copies.map(({copy}) => copy)]);
    const ofTheDocument = complaints.filter(({source}) => source === path).map(({words}) => words);
    assert.ok(ofTheDocument.length === 0, ofTheDocument.join('\n'));
    for (const {rule, copy} of copies)
        assert.ok(
            complaints.some(({source, code}) => source === copy && code === rule),
            `${rule} lets its broken copy pass`,
        );
} finally {
    rmSync(folder, {recursive: true});
}
