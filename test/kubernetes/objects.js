// What is in the objects that the chart makes.
import assert from 'node:assert/strict';
import { render } from './helm.js';

export const rendered = (values, helm = 'helm-4', kubernetes = undefined) => {
    const { objects, error } = render(helm, values, kubernetes);
    assert.equal(error, undefined);
    return objects;
};
export const byKind = (objects, kind, name = undefined) => {
    const found = objects.filter((each) => each.kind === kind && (!name || each.metadata.name === name));
    assert.equal(found.length, 1, `not one ${kind} ${name ?? ''}`);
    return found[0];
};
export const podOf = (objects) => byKind(objects, 'StatefulSet').spec.template;
export const nodeOf = (objects) => podOf(objects).spec.containers[0];
export const settingsOf = (objects) => Object.fromEntries(nodeOf(objects).env.map(({ name, value }) => [name, value]));
