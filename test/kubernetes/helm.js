// Renders the chart with the real Helm: see scripts/install-helm.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseAllDocuments, stringify } from 'yaml';

export const SOURCE = process.env.CHATELAINE_SOURCE;
export const HELMS = ['helm-3', 'helm-4'];
const CHART = join(SOURCE, 'docker/kubernetes/chart');

for (const helm of HELMS) {
    if (existsSync(join(SOURCE, 'build/helm', helm))) continue;
    console.log('skipped: scripts/install-helm has not been run');
    process.exit(77);
}

/** YAML as Kubernetes reads it: version 1.1. Empty documents are left out. */
export function parse(text) {
    return parseAllDocuments(text, { version: '1.1', merge: true })
        .map((document) => {
            if (document.errors.length > 0) throw document.errors[0];
            return document.toJS();
        })
        .filter(Boolean);
}

const made = new Map();

/** What Helm makes of the values: {objects} or {error}. The caller may change the objects. */
export function render(helm, values, kubernetes = '1.36.0') {
    const key = JSON.stringify([helm, values, kubernetes]);
    if (!made.has(key)) made.set(key, renderAnew(helm, values, kubernetes));
    return structuredClone(made.get(key));
}

function renderAnew(helm, values, kubernetes) {
    const folder = mkdtempSync(join(tmpdir(), 'chatelaine-helm.'));
    try {
        const file = join(folder, 'values.yaml');
        writeFileSync(file, stringify(values));
        const args = ['template', 'chatelaine', CHART, '--namespace', 'chatelaine', '--values', file];
        const { status, stdout, stderr } = spawnSync(
            join(SOURCE, 'build/helm', helm),
            [...args, '--kube-version', kubernetes],
            { encoding: 'utf8' },
        );
        return status === 0 ? { objects: parse(stdout) } : { error: stderr };
    } finally {
        rmSync(folder, { recursive: true });
    }
}

/** What Helm 4 says after an installation with the values: {notes} or {error}. */
export function renderNotes(values) {
    const folder = mkdtempSync(join(tmpdir(), 'chatelaine-helm.'));
    try {
        const file = join(folder, 'values.yaml');
        writeFileSync(file, stringify(values));
        const { status, stdout, stderr } = spawnSync(
            join(SOURCE, 'build/helm/helm-4'),
            ['install', 'chatelaine', CHART, '--namespace', 'chatelaine', '--dry-run=client', '--values', file],
            { encoding: 'utf8' },
        );
        return status === 0 ? { notes: stdout.slice(stdout.lastIndexOf('\nNOTES:\n')) } : { error: stderr };
    } finally {
        rmSync(folder, { recursive: true });
    }
}
