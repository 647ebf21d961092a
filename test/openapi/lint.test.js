// Spectral finds nothing to complain of in the document, and would find it: each broken copy must be told by its rule.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const path = join(process.env.CHATELAINE_SOURCE, 'src/api/openapi.json');
const folder = mkdtempSync(join(tmpdir(), 'chatelaine-lint-'));

function lint(file) {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['node_modules/@stoplight/spectral-cli/dist/index.js', 'lint', file, '--ruleset', 'spectral.yaml', '--fail-severity', 'hint'], { encoding: 'utf8' });
  return { status, said: stdout + stderr };
}

const BROKEN = {
  'oas3-schema': (document) => (document.paths['/v1/whoami'].get.responses = 'none'),
  'oas3-valid-media-example': (document) => (document.paths['/v1/whoami'].get.responses[200].content['application/json'].example.mode = 'Live'),
  'oas3-unused-component': (document) => (document.components.schemas.Orphan = { type: 'string', description: 'x', maxLength: 1 }),
  'answers-name-their-request': (document) => delete document.components.responses.KeyRefused.headers['X-Request-Id'],
  'objects-are-closed': (document) => delete document.components.schemas.ApiKey.additionalProperties,
  'properties-are-described': (document) => delete document.components.schemas.Usage.properties.keys.description,
  'strings-are-bounded': (document) => delete document.components.schemas.Name.pattern && delete document.components.schemas.Name.maxLength,
  'answers-have-examples': (document) => delete document.components.responses.KeyRefused.content['application/json'].examples,
  'operations-tell-their-errors': (document) => delete document.paths['/v1/whoami'].get.responses[503],
  'operation-summary-is-there': (document) => (document.paths['/v1/whoami'].get.summary = ''),
};

try {
  const { status, said } = lint(path);
  assert.equal(status, 0, said);
  for (const [rule, breakIt] of Object.entries(BROKEN)) {
    const document = JSON.parse(readFileSync(path, 'utf8'));
    breakIt(document);
    const copy = join(folder, `${rule}.json`);
    writeFileSync(copy, JSON.stringify(document));
    const verdict = lint(copy);
    assert.notEqual(verdict.status, 0, `${rule} lets its broken copy pass`);
    assert.match(verdict.said, new RegExp(`\\b${rule}\\b`), verdict.said);
  }
} finally {
  rmSync(folder, { recursive: true });
}
