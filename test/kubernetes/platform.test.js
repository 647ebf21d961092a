// What clusters differ in, and the chart leaves to its values: addresses, users, volumes, containers, scaling, networks.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse, SOURCE } from './helm.js';
import { rendered, settingsOf } from './objects.js';
import { LEAST } from './values.js';

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
